/* test_keys.c: the complete schedule of a plan makes the same plan, without any rule. */
#include "codegen/cuda.h"
#include "compile.h"
#include "programs.h"
#include "schedule/keys.h"
#include "suites.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int plans, same;
} Share;

/* Of the plans of a grid a sample has one in so many. */
enum { ONE_IN = 14 };

typedef struct {
    int met, left_out;
} Sample;

static bool is_left_out(Sample *sample)
{
    const bool left_out = sample->met++ % ONE_IN && !tests_whole();
    sample->left_out += left_out;
    return left_out;
}

static bool same_grids(const LaunchKernel *x, const LaunchKernel *y)
{
    for (int dim = 0; dim < GRID_RANK; dim++) {
        const LaunchGrid *a = &x->grid[dim], *b = &y->grid[dim];
        if (a->axes != b->axes || a->per_cta != b->per_cta || a->max_ctas != b->max_ctas ||
            a->times != b->times)
            return false;
    }
    return true;
}

static bool same_launches(const LaunchPlan *x, const LaunchPlan *y)
{
    if (x->kernel_count != y->kernel_count || x->slot_count != y->slot_count) return false;
    for (int i = 0; i < x->kernel_count; i++) {
        const LaunchKernel *k = &x->kernels[i], *l = &y->kernels[i];
        if (k->threads != l->threads || k->cluster != l->cluster || k->mailbox != l->mailbox ||
            k->smem_bytes != l->smem_bytes || k->few_bytes != l->few_bytes ||
            k->few_ctas != l->few_ctas || k->step_bytes != l->step_bytes ||
            k->paced_from != l->paced_from || k->part_groups != l->part_groups ||
            k->part_ctas != l->part_ctas || !same_grids(k, l))
            return false;
    }
    return true;
}

/* Whether a schedule makes the same text for a GPU whose memory is faster or slower, for which the
 * rules choose otherwise. */
static bool is_of_any_memory(Compilation *c, const char *text)
{
    enum { H100 = 3300, H200 = 4800 };
    const char *problem;
    Target other = c->plan->target;
    if (strcmp(other.arch, "sm_90a")) return true;
    target_set_device(&other, other.sms, strcmp(other.gpu, "h200") ? H200 : H100);
    const Plan *plan = try_schedule(c->arena, c->analysis, &other, text, &problem);
    return plan && !strcmp(emit_cuda(c->arena, plan, c->command), c->cuda);
}

/* Why a plan is not what its complete schedule makes; NULL: it is. */
static const char *find_difference(Compilation *c, const char *text)
{
    const char *problem = NULL;
    const Plan *again = try_schedule(c->arena, c->analysis, &c->plan->target, text, &problem);
    if (!again) return problem;
    if (strcmp(emit_cuda(c->arena, again, c->command), c->cuda)) return "another text";
    if (!is_of_any_memory(c, text)) return "another text where memory is faster or slower";
    return same_launches(&again->launch, c->launch) ? NULL : "another launch";
}

static void check_plan(const char *path, const char *dtype, const Gpu *gpu, const char *program,
                       const AxisSize *size, Share *shares)
{
    CompileRequest request = {.text = program,
                              .length = strlen(program),
                              .name = path,
                              .sizes = size,
                              .size_count = size->axis != NULL,
                              .rows_at_launch = true,
                              .target = target_of(gpu),
                              .until = UNTIL_CUDA};
    Compilation c = compile(&request);
    if (c.status == COMPILE_OK) {
        const char *text = complete_schedule(c.arena, c.plan), *problem = find_difference(&c, text);
        shares[c.plan->family].plans++;
        shares[c.plan->family].same += !problem;
        if (problem && getenv("FUSEC_TELL_KEYS"))
            printf("%s %s %s %lld: %s: %s\n", path, dtype, gpu->name, (long long)size->size, text,
                   problem);
    }
    compile_free(&c);
}

static void check_program(const char *path, int step, Sample *sample, Share *shares)
{
    static const char *const dtypes[] = {"bf16", "f16", "f32"};
    char *text = read_program(path), axis[64];
    bool has_axis = last_axis(text, axis), varies = strstr(text, "bf16") != NULL;
    for (int d = 0; d < (varies ? 3 : 1); d++) {
        char *typed = of_dtype(text, dtypes[d]);
        for (int g = 0; g < gpu_count; g++)
            for (int i = has_axis ? (d + g) % step : 0; i < (has_axis ? length_count : 1);
                 i += step)
                if (!is_left_out(sample))
                    check_plan(path, varies ? dtypes[d] : "own", &gpus[g], typed,
                               &(AxisSize){has_axis ? axis : NULL, lengths[i]}, shares);
        free(typed);
    }
    free(text);
}

static void check_programs(const char *pattern, int step, Share *shares)
{
    Sample sample = {0};
    glob_t found;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_program(found.gl_pathv[i], step, &sample, shares);
    globfree(&found);
    if (sample.left_out)
        printf("-- schedules of %s: %d of %d plans, a sample\n", pattern,
               sample.met - sample.left_out, sample.met);
}

static int tell_shares(const char *what, const Share *shares)
{
    int plans = 0, same = 0;
    for (int f = 0; f < FAMILY_FINISH; f++) {
        plans += shares[f].plans;
        same += shares[f].same;
        if (shares[f].plans)
            printf("%s: %s %d of %d plans\n", what, family_name((Family)f), shares[f].same,
                   shares[f].plans);
    }
    printf("%s: %d of %d plans are what their complete schedules make\n", what, same, plans);
    return plans ? 1000 * same / plans : 0;
}

static const struct {
    const char *pattern;
    int step;     /* every so-many-th length, others for each dtype and GPU */
    int thousand; /* of the plans, so many at least are reproduced */
} grids[] = {
    {"examples/*.fuse", 5, 1000},          {"tests/golden/*.fuse", 9, 1000},
    {"tests/long/*.fuse", 9, 1000},        {"tests/cases/[a-m]*.fuse", 13, 1000},
    {"tests/cases/[n-z]*.fuse", 13, 1000},
};
enum { CASES = 3, GRIDS = sizeof grids / sizeof *grids }; /* about half of the plans before CASES */

START_TEST(complete_schedules_make_the_same_plans)
{
    Share shares[FAMILY_COUNT] = {0};
    check_programs(grids[_i].pattern, grids[_i].step, shares);
    ck_assert_int_ge(tell_shares(grids[_i].pattern, shares), grids[_i].thousand);
}
END_TEST

/* ---- texts ---- */

static const char layer_norm[] =
    "graph norm[M = 64, N = 4096](x : bf16[M, N], w : bf16[N]) -> (y : bf16[M, N])"
    " { m = mean[N](x)  y = (x - m) * rsqrt(var[N](x) + 1e-5) * w }";

/* Says why a schedule is refused; "" where it is not. */
static const char *refusal_of(const char *schedule)
{
    static char reason[512];
    CompileRequest request = {.text = layer_norm,
                              .length = strlen(layer_norm),
                              .name = "norm.fuse",
                              .schedule = schedule,
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_CUDA};
    Compilation c = compile(&request);
    snprintf(reason, sizeof reason, "%s", c.status == COMPILE_OK ? "" : c.diagnostics);
    compile_free(&c);
    return reason;
}

static void check_refusal(const char *schedule, const char *why)
{
    const char *reason = refusal_of(schedule);
    ck_assert_msg(*why ? strstr(reason, why) != NULL : !*reason, "%s: %s", schedule, reason);
}

START_TEST(what_cannot_be_is_refused)
{
    check_refusal("row:exact=1,threads=128", "");
    check_refusal("row:exact=1,threads=128,reads=2", "");
    check_refusal("row:exact=1,threads=128,stages=3,live=1,row=ring", "");
    check_refusal("row:exact=1,threads=128,vec=8,tiles=4,row=registers", "");
    check_refusal("row:exact=1,threads=128,convert=once", "convert: this kernel cannot have it");
    check_refusal("row:exact=1", "threads: a complete schedule must give it");
    check_refusal("row:threads=128,lag=1", "");
    check_refusal("row:threads=128,lag=2", "lag: this kernel cannot have it");
    check_refusal("row:convert=bf16", "convert: this kernel cannot have it");
    check_refusal("row:vec=3", "vec: a vector has a power of two of elements, here up to 8");
    check_refusal("row:vec=16", "vec: a vector has a power of two of elements, here up to 8");
    check_refusal("row:few=7", "few: this kernel cannot have it");
    check_refusal("row:threads=256,cluster=64", "cluster: a cluster of 64 needs more than");
    check_refusal("row:threads=128,stages=500", "stages: shared memory has room for at most");
    check_refusal("warp-specialized:stages=1", "stages: warp-specialized needs a ring");
    check_refusal("row:exact=1,threads=128,lag=1", "lag: only for rows in a ring");
    check_refusal("row:exact=1,threads=128,row=shared",
                  "row: 'shared' is not one of: registers ring memory");
    check_refusal("row:exact=1,threads=128,lag=3", "a number from 1 to 2");
    check_refusal("row:exact=1,threads=100", "not whole warps");
    check_refusal("row:exact=1,threads=128,tiles=1", "tiles: so few do not cover a row");
    check_refusal("row:exact=1,threads=128,stages=64,live=1,row=ring", "does not fit an SM");
    check_refusal("row:exact=1,threads=128,paced=1", "paced: needs a copy warp");
    check_refusal("row:exact=1,threads=128,blocks=1", "blocks: needs rows in registers");
    check_refusal("row:exact=1,threads=128,refill=1", "refill: ");
    check_refusal("row:exact=1,threads=128,open=1", "open: this kernel cannot have it");
    check_refusal("column:exact=1,threads=128", "this kernel is of the family row");
    check_refusal("row:exact=1,threads=128+row:exact=1,threads=128",
                  "the graph has 1 kernels, and the schedule names 2");
    check_refusal("row:threads=128+row:threads=128", "joins complete schedules");
    check_refusal("row:threads=128,threads=64", "given twice");
}
END_TEST

/* Every key has a value that can be printed and read again. */
START_TEST(texts_are_read_as_they_are_printed)
{
    Arena *arena = arena_new();
    for (int key = 0; key < KEYS; key++) {
        Schedule schedule = {.any = true, .family = FAMILY_ROW}, *read;
        int count;
        schedule.exact = key_info[key].exact;
        schedule.at[key] = key_info[key].most;
        const char *text = schedule_text(arena, &schedule);
        ck_assert_ptr_null(parse_schedules(arena, text, &read, &count));
        ck_assert_int_eq(count, 1);
        ck_assert_int_eq(read->at[key], schedule.at[key]);
    }
    arena_free(arena);
}
END_TEST

/* The lines of the list are in the tables of docs/howto/tuning.md, the names in the manual. */
START_TEST(keys_are_documented)
{
    char *tuning = read_program("docs/howto/tuning.md"), *manual = read_program("docs/fusec.1");
    for (int key = 0; key < KEYS; key++) {
        char line[1024], bold[64], list[64];
        snprintf(line, sizeof line, "\n| `%s` | %s |\n", key_info[key].name, key_info[key].meaning);
        snprintf(bold, sizeof bold, "\n.B %s\n", key_info[key].name);
        snprintf(list, sizeof list, "\n.BR %s ", key_info[key].name);
        ck_assert_msg(strstr(tuning, line) != NULL, "docs/howto/tuning.md lacks:%s", line);
        ck_assert_msg(strstr(manual, bold) || strstr(manual, list), "docs/fusec.1 lacks %s",
                      key_info[key].name);
    }
    free(tuning);
    free(manual);
}
END_TEST

Suite *keys_suite(void)
{
    Suite *suite = suite_create("keys");
    TCase *texts = tcase_create("keys");
    tcase_add_test(texts, what_cannot_be_is_refused);
    tcase_add_test(texts, texts_are_read_as_they_are_printed);
    tcase_add_test(texts, keys_are_documented);
    suite_add_tcase(suite, texts);
    return suite;
}

static Suite *make_grids_suite(const char *name, int first, int end)
{
    Suite *suite = suite_create(name);
    TCase *many = tcase_create(name);
    tcase_set_timeout(many, 120);
    tcase_set_tags(many, "slow");
    tcase_add_loop_test(many, complete_schedules_make_the_same_plans, first, end);
    suite_add_tcase(suite, many);
    return suite;
}

Suite *keys_of_examples_suite(void)
{
    return make_grids_suite("keys of examples", 0, CASES);
}

Suite *keys_of_cases_suite(void)
{
    return make_grids_suite("keys of cases", CASES, GRIDS);
}
