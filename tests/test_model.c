/* test_model.c: the cost model: what it expects of plans, what it does not know, and where it replaces
 * what the rules choose. */
#include "candidates.h"
#include "planned.h"
#include "suites.h"

#include <string.h>

static Estimate estimate_of(const char *schedule, int64_t columns, const char *arch)
{
    Compilation c = compile_sizes(schedule, 64, columns, arch);
    Estimate e = estimate_speed(c.plan);
    compile_free(&c);
    return e;
}

START_TEST(the_model_tells_what_bounds_a_plan)
{
    choose_program("examples/layernorm_bwd.fuse");
    Estimate chosen = estimate_of(NULL, 4096, "sm_90a"),
             few = estimate_of("warp-specialized:threads=64", 4096, "sm_90a");
    ck_assert_int_eq(chosen.bound, BOUND_BY_MEMORY);
    ck_assert(chosen.gbps > 2500 && chosen.gbps < chosen.ceiling && chosen.ceiling < 3300);
    ck_assert_int_eq(few.bound, BOUND_BY_INSTRUCTIONS);
    ck_assert_int_eq(estimate_of("grid-stride:cluster=4,stages=2", 4096, "sm_90a").bound,
                     BOUND_BY_WAITS);
    ck_assert_int_eq(estimate_of("warp-specialized:cluster=128", 524288, "sm_90a").bound,
                     BOUND_BY_MESSAGES);
}
END_TEST

/* Of every GPU, though it was fitted on one alone; there alone it replaces what the rules choose.
 */
START_TEST(the_model_knows_every_gpu)
{
    int count, constants;
    const char *const *gpus = target_gpus(&count);
    choose_program("examples/layernorm_bwd.fuse");
    for (int i = 0; i < count; i++) {
        const Target *target = target_find(gpus[i]);
        Compilation c = compile_target(NULL, 64, 4096, target);
        Estimate e = estimate_speed(c.plan);
        ck_assert_msg(!e.unknown, "%s: %s", gpus[i], e.unknown);
        double peak = target->peak_rate * target->sms;
        ck_assert_msg(e.ceiling > 0.8 * peak && e.ceiling < peak, "%s: %f of %f", gpus[i],
                      e.ceiling, peak);
        ck_assert_msg(e.gbps > 0.5 * e.ceiling && e.gbps <= e.ceiling, "%s: %f", gpus[i], e.gbps);
        ck_assert_int_le(c.launch->kernels[0].smem_bytes, target->smem_per_cta);
        ck_assert_int_le(c.launch->kernels[0].cluster, target->max_cluster);
        bool fitted = target_measured(target, &constants) == constants;
        ck_assert_int_eq(is_model_fitted(target), fitted);
        ck_assert(fitted || !c.plan->by_model);
        compile_free(&c);
    }
}
END_TEST

static void check_unknown(Compilation c, const char *why)
{
    Estimate e = estimate_speed(c.plan);
    ck_assert_msg(e.unknown && strstr(e.unknown, why), "not '%s' but '%s'", why,
                  e.unknown ? e.unknown : "known");
    ck_assert(e.gbps == 0 && !c.plan->by_model);
    compile_free(&c);
}

/* By the sizes that the program declares. */
static Compilation compile_declared(const char *path)
{
    const char *program = choose_program(path);
    CompileRequest request = {.text = program,
                              .length = strlen(program),
                              .name = path,
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_PLAN};
    Compilation c = compile(&request);
    ck_assert_msg(c.status == COMPILE_OK, "%s: %s", path, c.diagnostics);
    return c;
}

START_TEST(the_model_says_what_it_does_not_know)
{
    choose_program("examples/layernorm_bwd.fuse");
    check_unknown(compile_sizes("row", 64, 4096, "sm_90a"), "several kernels");
    choose_program("tests/cases/held_short.fuse");
    check_unknown(compile_sizes(NULL, 1, 32, "sm_90a"), "shorter than 64");
    /* Nor is a schedule searched for, which took minutes. */
    check_unknown(compile_sizes(NULL, 1, 1 << 29, "sm_90a"), "longer than 1048576");
    check_unknown(compile_declared("examples/adaln_bwd.fuse"), "rows of each group");
    check_unknown(compile_declared("examples/group_norm.fuse"), "several axes");
    check_unknown(compile_declared("tests/cases/sums_of_types.fuse"), "f64");
}
END_TEST

/* Threads that read rows again, for they have no registers for eighteen inputs: what the model
 * finds instead is 6 times as fast. */
START_TEST(the_model_replaces_what_is_far_behind)
{
    const char *problem;
    choose_program("tests/cases/held_short.fuse");
    Compilation c = compile_sizes(NULL, 64, 1000, "sm_90a");
    const Plan *rules = try_schedule(c.arena, c.analysis, target_find("sm_90a"), NULL, &problem);
    ck_assert(c.plan->by_model && c.plan->advice);
    ck_assert(estimate_speed(c.plan).gbps > 1.4 * estimate_speed(rules).gbps);
    ck_assert_int_eq(c.plan->rejection_count, 1);
    ck_assert_ptr_nonnull(strstr(c.plan->rejections[0].reason, "the model expects"));
    Compilation again = compile_sizes(c.plan->advice, 64, 1000, "sm_90a");
    ck_assert_str_eq(bare_text(&c), bare_text(&again));
    /* where that spills, the rules' choice comes next; tune begins with it */
    Candidates leaner = list_leaner(c.arena, c.plan, 3);
    ck_assert_str_eq(leaner.list.data[0].cuda, bare_text(&c));
    ck_assert_str_eq(leaner.list.data[1].schedule, "row:threads=64");
    compile_free(&again);
    compile_free(&c);
}
END_TEST

/* Where the guards of is_well_known are off, each of these gets what they are against: by one bulk
 * copy, rows that wait for each other, rows that are read again, pairs of elements. */
START_TEST(the_model_prefers_what_it_knows)
{
    static const struct {
        const char *path;
        int64_t columns;
    } cells[] = {
        {"tests/cases/moments_chain.fuse", 1280},  {"tests/cases/moments_chain.fuse", 7168},
        {"tests/cases/moments_chain.fuse", 13312}, {"tests/cases/held_short.fuse", 7168},
        {"tests/cases/mean_of_huge.fuse", 9216},   {"tests/cases/channel_scales.fuse", 12288},
        {"tests/cases/moments_chain.fuse", 1023},  {"tests/cases/moments_chain.fuse", 386}};
    int chosen = 0;
    for (int i = 0; i < (int)(sizeof cells / sizeof *cells); i++) {
        const char *program = choose_program(cells[i].path);
        AxisSize sizes[] = {{"M", 64}, {strstr(program, "C = ") ? "C" : "N", cells[i].columns}};
        CompileRequest request = {.text = program,
                                  .length = strlen(program),
                                  .name = cells[i].path,
                                  .sizes = sizes,
                                  .size_count = 2,
                                  .target = *target_find("sm_90a"),
                                  .until = UNTIL_PLAN};
        Compilation c = compile(&request);
        ck_assert_msg(c.status == COMPILE_OK, "%s", c.diagnostics);
        const Kernel *k = &c.plan->kernels[0];
        chosen += c.plan->by_model;
        ck_assert_msg(
            !c.plan->by_model || (k->vec >= 4 && !k->bulk && !k->grouped && !k->streamed &&
                                  !strstr(c.plan->advice, "per_sm") &&
                                  (k->teams == 1 || k->threads_per_row <= 32 || is_persistent(k))),
            "%s of %lld columns: %s", cells[i].path, (long long)cells[i].columns, c.plan->advice);
        compile_free(&c);
    }
    ck_assert_int_ge(chosen, 4);
}
END_TEST

/* Of what is compiled where a choice spills, the last is what the model finds fastest. */
START_TEST(the_last_of_the_leaner_is_the_fastest)
{
    choose_program("tests/cases/held_short.fuse");
    Compilation c = compile_sizes(NULL, 64, 7168, "sm_90a");
    Candidates list = list_leaner(c.arena, c.plan, 5);
    ck_assert_str_eq(list.list.data[list.list.count - 1].schedule, "row:bulk=1");
    compile_free(&c);
}
END_TEST

/* Where the rules' choice is within 3 % of the best that was measured, or nearly (but of 262144
 * columns all were in its fit). */
START_TEST(the_model_lets_good_choices_be)
{
    static const char *const paths[] = {"examples/layernorm_bwd.fuse", "examples/rmsnorm_bwd.fuse",
                                        "examples/layernorm.fuse",     "examples/rmsnorm.fuse",
                                        "examples/softmax.fuse",       "examples/softmax_bwd.fuse"};
    static const int64_t columns[] = {768,   1024,  1536,  2048,  3072,   4096,  5120,  7168,
                                      8192,  11008, 12288, 14336, 16384,  20480, 24576, 32768,
                                      40960, 57344, 65536, 98304, 131072, 262144};
    choose_program(paths[_i]);
    for (int i = 0; i < (int)(sizeof columns / sizeof *columns); i++) {
        Compilation c = compile_sizes(NULL, 64, columns[i], "sm_90a");
        ck_assert_msg(!c.plan->by_model, "%s of %lld columns", paths[_i], (long long)columns[i]);
        ck_assert(estimate_speed(c.plan).gbps > 0);
        compile_free(&c);
    }
}
END_TEST

Suite *model_suite(void)
{
    Suite *suite = suite_create("model");
    TCase *cases = tcase_create("model");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, the_model_tells_what_bounds_a_plan);
    tcase_add_test(cases, the_model_knows_every_gpu);
    tcase_add_test(cases, the_model_says_what_it_does_not_know);
    suite_add_tcase(suite, cases);
    /* thousands of compilations: the sanitizers' run leaves these out */
    TCase *many = tcase_create("model, many");
    tcase_set_timeout(many, 60);
    tcase_set_tags(many, "slow");
    tcase_add_test(many, the_model_replaces_what_is_far_behind);
    tcase_add_test(many, the_model_prefers_what_it_knows);
    tcase_add_test(many, the_last_of_the_leaner_is_the_fastest);
    tcase_add_loop_test(many, the_model_lets_good_choices_be, 0, 6);
    suite_add_tcase(suite, many);
    return suite;
}
