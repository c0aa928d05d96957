/* test_fit.c: `fusec tune --fit` without a GPU: constants from speeds, and the file that says them.
 */
#include "compile.h"
#include "suites.h"
#include "cli/fit.h"

#include <string.h>

enum { PROBES = 6, ROWS = 16384 };

/* The speeds that the model expects where each constant is so many times that of `target`. */
static void expect_speeds(Compilation c[PROBES], Target target, double times, double gbps[PROBES])
{
    for (int i = 0; i < PROBES; i++) *target_constant(&target, probes[i].key) *= times;
    for (int i = 0; i < PROBES; i++) {
        if (c[i].status != COMPILE_OK) continue;
        c[i].plan->target = target;
        gbps[i] = estimate_speed(c[i].plan).gbps;
    }
}

/* Those on which every probe that they have is limited by what it measures. */
static const char *const gpus[] = {"a100", "h100", "h200", "b200"};

START_TEST(constants_come_from_speeds)
{
    const Target *gpu = target_find(gpus[_i]);
    Compilation c[PROBES];
    Plan *plans[PROBES];
    double gbps[PROBES];
    const double times = 1.1;
    ck_assert_int_eq(probe_count, PROBES);
    for (int i = 0; i < PROBES; i++) {
        c[i] = compile_probe(&probes[i], gpu, ROWS);
        plans[i] = c[i].status == COMPILE_OK ? c[i].plan : NULL;
        ck_assert(plans[i] || gpu->max_cluster == 1);
    }
    expect_speeds(c, *gpu, times, gbps);
    Target fitted = *gpu;
    int found = fit_constants(&fitted, plans, gbps);
    ck_assert_int_ge(found, gpu->max_cluster > 1 ? 4 : 3);
    for (int i = 0; i < PROBES; i++) {
        int key = probes[i].key;
        double was = *target_constant((Target *)gpu, key), is = *target_constant(&fitted, key);
        if (fitted.evidence[key] == EVIDENCE_MEASURED)
            ck_assert_msg(is > 1.07 * was && is < 1.13 * was, "%s: %s %f of %f", gpus[_i],
                          probes[i].name, is, was);
        else
            ck_assert_double_eq(is, was);
        compile_free(&c[i]);
    }
}
END_TEST

START_TEST(absurd_speeds_fit_nothing)
{
    const Target *h100 = target_find("h100");
    Compilation c[PROBES];
    Plan *plans[PROBES];
    double gbps[PROBES];
    for (int i = 0; i < PROBES; i++) {
        c[i] = compile_probe(&probes[i], h100, ROWS);
        plans[i] = c[i].plan;
        gbps[i] = i & 1 ? 1e9 : 1e-3;
    }
    Target fitted = *h100;
    ck_assert_int_eq(fit_constants(&fitted, plans, gbps), 0);
    ck_assert_mem_eq(fitted.evidence, h100->evidence, sizeof fitted.evidence);
    for (int i = 0; i < PROBES; i++) compile_free(&c[i]);
}
END_TEST

START_TEST(a_file_says_what_a_target_is)
{
    char why[128];
    Arena *arena = arena_new();
    Text *out = text_new(arena), *again = text_new(arena);
    Target target = *target_find("b200");
    strcpy(target.gpu, "lab_b200");
    target_set_sms(&target, 74);
    target.memory_rate = 47.125;
    target.evidence[TARGET_KEY_memory_rate] = EVIDENCE_MEASURED;
    print_target(out, &target);
    ck_assert_ptr_nonnull(
        strstr(text_string(out), "MEASURED(memory_rate, 47.125)\nASSUMED(loose, 0."));
    ck_assert_ptr_nonnull(strstr(text_string(out), "DATA_SHEET(arch, \"sm_100\")\n"));
    ck_assert_ptr_nonnull(strstr(text_string(out), "ASSUMED(cluster8_sms, 64)\n"));
    ck_assert_msg(target_add(text_string(out), why), "%s", why);
    print_target(again, target_find("lab_b200"));
    ck_assert_str_eq(text_string(out), text_string(again));
    arena_free(arena);
}
END_TEST

Suite *fit_suite(void)
{
    Suite *suite = suite_create("fit");
    TCase *cases = tcase_create("fit");
    tcase_add_loop_test(cases, constants_come_from_speeds, 0, sizeof gpus / sizeof *gpus);
    tcase_add_test(cases, absurd_speeds_fit_nothing);
    tcase_add_test(cases, a_file_says_what_a_target_is);
    suite_add_tcase(suite, cases);
    return suite;
}
