/* test_choice.c: the schedule that is chosen: there is one for every length and GPU, it fits there,
 * it does not hang on the number of rows, choosing takes little time, and lengths that are near each
 * other mostly have the same. */
#include "planned.h"
#include "programs.h"
#include "schedule/internal.h"
#include "suites.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const names[] = {"h100", "h200", "a100", "rtx4090", "b200"};
enum { GPUS = sizeof names / sizeof *names };

/* ---- every length ---- */

typedef struct {
    int kernels, spills; /* ... of which a few lack registers by the model, which knows the price */
} Tally;

/* Whether some of a row's columns are reduced by themselves. */
static bool reduces_parts(const Analysis *a)
{
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        if (r->kind == KIND_INNER && node(a->graph, r->node)->reduced != a->columns) return true;
    }
    return false;
}

/* Why an SM has no room for a kernel; NULL: it has. Nowhere lacks a thread more than a quarter of the
 * registers that it can have, but where parts of rows are reduced: such rows are not read again,
 * however long. */
static const char *find_misfit(const Plan *plan, int kernel, Tally *tally)
{
    const Target *t = &plan->target;
    const Kernel *k = &plan->kernels[kernel];
    const LaunchKernel *launch = &plan->launch.kernels[kernel];
    const Analysis *a = plan->analysis;
    if (a->part_count) a = a->parts[k->part];
    OperationCache operations = {0};
    Scheduler s = reading_scheduler(a->graph->arena, a, t);
    s.operations = &operations;
    s.ride = k->rides;
    const int threads = kernel_threads(k) + helper_threads(k),
              ctas = k->wanted_ctas > 1 ? k->wanted_ctas : 1;
    if (launch->smem_bytes + static_bytes(&s, k) > t->smem_per_cta) return "shared memory";
    if (threads > MOST_THREADS || launch->threads != threads) return "threads of a CTA";
    if (threads * ctas > t->threads_per_sm || ctas > t->most_ctas_per_sm) return "threads";
    if (k->cluster > (is_grouped(k) ? t->sms : t->max_cluster)) return "clusters";
    if ((has_copy_warp(k) || has_bulk_rows(k)) && !t->bulk_copy) return "bulk copies";
    if (!reduces_parts(a) && least_registers(&s, k) * 4 > register_cap(&s, threads * ctas) * 5)
        return "registers";
    tally->kernels++;
    tally->spills += least_registers(&s, k) > register_cap(&s, threads * ctas);
    if (is_persistent(k) && !k->kept &&
        (launch->smem_bytes + 1024) * k->ctas_per_sm > t->smem_per_sm)
        return "shared memory of an SM";
    return NULL;
}

static void check_fit(const char *path, const char *program, const AxisSize *size,
                      const Target *target, Tally *tally)
{
    CompileRequest request = {.text = program,
                              .length = strlen(program),
                              .name = path,
                              .sizes = size,
                              .size_count = 1,
                              .rows_at_launch = true,
                              .target = *target,
                              .until = UNTIL_PLAN};
    Compilation c = compile(&request);
    ck_assert_msg(c.status == COMPILE_OK || strstr(c.diagnostics, "has no size"), "%s of %lld: %s",
                  path, (long long)size->size, c.diagnostics);
    for (int i = 0; c.plan && i < c.plan->kernel_count; i++) {
        if (!walks_rows(&c.plan->kernels[i])) continue;
        const char *misfit = find_misfit(c.plan, i, tally);
        ck_assert_msg(!misfit, "%s of %lld on %s: %s: %s", path, (long long)size->size, target->gpu,
                      complete_schedule(c.arena, c.plan), misfit);
    }
    compile_free(&c);
}

START_TEST(there_is_one_that_fits)
{
    static const int columns[] = {0,    1,    8,     96,    229,   1000,  1023,   1024,   2753,
                                  4096, 5120, 12289, 16384, 40960, 65536, 131072, 300001, 1048576};
    enum { ONE_IN = 50, ONE_IN_OF_UNFITTED = 16 };
    Tally tally = {0};
    int met = 0, checked = 0;
    glob_t found;
    ck_assert_int_eq(glob("examples/*.fuse", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char axis[64], *bf16 = read_program(found.gl_pathv[i]), *f32 = of_dtype(bf16, "f32");
        const bool has_axis = last_axis(bf16, axis);
        for (size_t n = 0; has_axis && n < sizeof columns / sizeof *columns; n++) {
            if ((met++ + (int)i + _i) % 3 && !tests_whole()) continue;
            checked++;
            check_fit(found.gl_pathv[i], n % 2 ? f32 : bf16, &(AxisSize){axis, columns[n]},
                      target_find(names[_i]), &tally);
        }
        free(f32);
        free(bf16);
    }
    globfree(&found);
    ck_assert_int_gt(checked, 0);
    if (checked < met) printf("-- choices for %s: %d of %d, a sample\n", names[_i], checked, met);
    printf("choice: on %s %d of %d kernels lack registers\n", names[_i], tally.spills,
           tally.kernels);
    /* estimates for GPUs that they were not fitted on ask for more than is needed, to be safe; that
     * nothing spills is what tests/check_nvrtc.sh compiles */
    const bool fitted = is_model_fitted(target_find(names[_i]));
    ck_assert_int_le(tally.spills, tally.kernels / (fitted ? ONE_IN : ONE_IN_OF_UNFITTED));
}
END_TEST

START_TEST(the_number_of_rows_does_not_matter)
{
    static const char *const paths[] = {"examples/layernorm.fuse", "examples/layernorm_bwd.fuse",
                                        "examples/softmax.fuse"};
    static const int64_t rows[] = {0, 1, 131, 1 << 20}, columns[] = {64, 1000, 4096, 65536};
    for (int p = 0; p < 3; p++) {
        choose_program(paths[p]);
        for (int n = 0; n < 4; n++) {
            Compilation usual = compile_sizes(NULL, 64, columns[n], "sm_90a");
            const char *chosen = complete_schedule(usual.arena, usual.plan);
            for (int m = 0; m < 4; m++) {
                Compilation c = compile_sizes(NULL, rows[m], columns[n], "sm_90a");
                ck_assert_str_eq(complete_schedule(c.arena, c.plan), chosen);
                ck_assert_str_eq(bare_text(&c), bare_text(&usual));
                compile_free(&c);
            }
            compile_free(&usual);
        }
    }
}
END_TEST

/* ---- time ---- */

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_size(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The least of a few. */
static double time_choice(const Compilation *c)
{
    enum { TIMES = 3 };
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        const char *problem;
        Arena *arena = arena_scratch(c->arena);
        const double begun = cpu_ms();
        ck_assert_ptr_nonnull(try_schedule(arena, c->analysis, &c->plan->target, NULL, &problem));
        const double took = cpu_ms() - begun;
        arena_free(arena);
        if (!i || took < least) least = took;
    }
    return least;
}

START_TEST(choosing_is_quick)
{
    enum { MOST_MS = 20, LOADED = 10 };
    static const char *const paths[] = {
        "examples/layernorm.fuse",   "examples/layernorm_bwd.fuse",
        "examples/softmax.fuse",     "examples/rmsnorm_residual.fuse",
        "examples/rmsnorm_bwd.fuse", "examples/softmax_bwd.fuse"};
    static const int64_t columns[] = {64, 1000, 1023, 4096, 12288, 65536, 262144};
    enum { PATHS = 6, COLUMNS = 7, CHOICES = PATHS * COLUMNS };
    double ms[CHOICES];
    for (int i = 0; i < CHOICES; i++) {
        choose_program(paths[i / COLUMNS]);
        Target target = *target_find("h100");
        target.no_table = true;
        Compilation c = compile_target(NULL, 64, columns[i % COLUMNS], &target);
        ms[i] = time_choice(&c);
        compile_free(&c);
    }
    qsort(ms, CHOICES, sizeof *ms, by_size);
    printf("choice: %.1f ms of CPU time in the median, at most %.1f\n", ms[CHOICES / 2],
           ms[CHOICES - 1]);
    ck_assert_double_le(ms[CHOICES / 2], MOST_MS);
    ck_assert_double_le(ms[CHOICES - 1], LOADED * MOST_MS);
}
END_TEST

/* ---- near lengths ---- */

enum { LENGTHS = 448, SHORT = 128, SHORT_STEP = 64, LONG_STEP = 512, MOST_COLUMNS = 262144 };

static int64_t length_at(int i)
{
    const int64_t begin = SHORT * SHORT_STEP, steps = (MOST_COLUMNS - begin) / LONG_STEP;
    return i < SHORT ? SHORT_STEP * (i + 1)
                     : begin + (i - SHORT + 1) * steps / (LENGTHS - SHORT) * LONG_STEP;
}

/* A complete schedule without the keys that only tell how many: what is left is its shape. */
static const char *shape_of(Arena *arena, const Plan *plan, bool with_tiles)
{
    static const Key counts[] = {KEY_threads, KEY_rows, KEY_per_sm, KEY_live, KEY_few},
                     tiles[] = {KEY_open, KEY_even_moments, KEY_whole_moments, KEY_checked};
    Schedule *all;
    int count;
    ck_assert_ptr_null(parse_schedules(arena, complete_schedule(arena, plan), &all, &count));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) all->at[counts[i]] = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles && !with_tiles; i++) all->at[tiles[i]] = 0;
    return schedule_text(arena, all);
}

/* How often the shape changes from a length to the next: without tiles and with them. */
static void count_changes(bool with_table, int changes[2])
{
    static char before[2][512];
    memset(before, 0, sizeof before);
    changes[0] = changes[1] = -1;
    for (int i = 0; i < LENGTHS; i++) {
        Target target = *target_find("h100");
        target.no_table = !with_table;
        Compilation c = compile_target(NULL, 64, length_at(i), &target);
        for (int tiles = 0; tiles < 2; tiles++) {
            const char *shape = shape_of(c.arena, c.plan, tiles);
            changes[tiles] += strcmp(shape, before[tiles]) != 0;
            snprintf(before[tiles], sizeof before[tiles], "%s", shape);
        }
        compile_free(&c);
    }
}

/* Tiles: whether all are full, which follows from the length and the threads. */
START_TEST(near_lengths_have_the_same_shape)
{
    static const int most[] = {20, 40}; /* without the table, and with it */
    ck_assert_int_eq(length_at(LENGTHS - 1), MOST_COLUMNS);
    choose_program("examples/layernorm.fuse");
    for (int table = 0; table < 2; table++) {
        int changes[2];
        count_changes(table, changes);
        const int without_tiles = changes[0], all = changes[1];
        printf("choice: with%s the table the shape of layer norm changes %d times over %d lengths, "
               "but for tiles %d times\n",
               table ? "" : "out", all, LENGTHS, without_tiles);
        ck_assert_int_le(without_tiles, most[table]);
    }
}
END_TEST

/* ---- what the model says ---- */

static Estimate estimate_of(const char *schedule, int64_t columns)
{
    Compilation c = compile_sizes(schedule, 64, columns, "sm_90a");
    const Estimate e = estimate_speed(c.plan);
    compile_free(&c);
    return e;
}

START_TEST(the_model_tells_what_bounds_a_plan)
{
    choose_program("examples/layernorm_bwd.fuse");
    const Estimate chosen = estimate_of(NULL, 4096);
    ck_assert_int_eq(chosen.bound, BOUND_BY_MEMORY);
    ck_assert(chosen.gbps > 2000 && chosen.gbps < chosen.ceiling);
    ck_assert_int_eq(
        estimate_of("grid-stride:threads=64,rows=1,cluster=1,stages=2,per_sm=1", 4096).bound,
        BOUND_BY_INSTRUCTIONS);
    ck_assert_int_eq(estimate_of("warp-specialized:cluster=128", 131072).bound, BOUND_BY_MESSAGES);
    choose_program("examples/softmax.fuse");
    ck_assert_int_eq(estimate_of("row:threads=256,cluster=4,stages=2,per_sm=1", 8192).bound,
                     BOUND_BY_WAITS);
}
END_TEST

/* Of two groups one computes while the other waits; a copy warp's registers may save others from
 * being spilled. */
START_TEST(groups_hide_waits)
{
    choose_program("examples/softmax.fuse");
    const Estimate one =
                       estimate_of("warp-specialized:threads=128,stages=6,per_sm=1,groups=1", 8192),
                   two =
                       estimate_of("warp-specialized:threads=128,stages=6,per_sm=1,groups=2", 8192);
    ck_assert_msg(two.gbps > 1.3 * one.gbps, "%f %f", one.gbps, two.gbps);
    choose_program("examples/layernorm_bwd.fuse");
    const Estimate kept = estimate_of("warp-specialized:threads=128,groups=3,ride=yes", 4096),
                   handed = estimate_of(
                       "warp-specialized:threads=128,groups=3,ride=yes,registers=1", 4096);
    ck_assert_msg(handed.gbps > kept.gbps, "%f %f", kept.gbps, handed.gbps);
}
END_TEST

START_TEST(the_model_knows_every_gpu)
{
    int count;
    const char *const *all = target_gpus(&count);
    choose_program("examples/layernorm_bwd.fuse");
    for (int i = 0; i < count; i++) {
        const Target *target = target_find(all[i]);
        Compilation c = compile_target(NULL, 64, 4096, target);
        const Estimate e = estimate_speed(c.plan);
        const double peak = target->peak_rate * target->sms;
        ck_assert_msg(!e.unknown, "%s: %s", all[i], e.unknown);
        ck_assert_msg(e.ceiling > 0.8 * peak && e.ceiling < 1.1 * peak, "%s: %f of %f", all[i],
                      e.ceiling, peak);
        ck_assert_msg(e.gbps > 0.4 * e.ceiling && e.gbps <= e.ceiling, "%s: %f", all[i], e.gbps);
        compile_free(&c);
    }
}
END_TEST

static void check_unknown(int64_t columns, const char *why)
{
    const Estimate e = estimate_of(NULL, columns);
    ck_assert_msg(e.unknown && strstr(e.unknown, why), "not '%s' but '%s'", why,
                  e.unknown ? e.unknown : "known");
    ck_assert(!(e.gbps > 0));
}

START_TEST(the_model_says_what_it_does_not_know)
{
    choose_program("tests/cases/held_short.fuse");
    check_unknown(32, "shorter than 64");
    check_unknown(1 << 29, "longer than 1048576");
    choose_text("graph g[M, N](x : f64[M, N]) -> (y : f64[M, N]) { y = x - sum[N](x) }");
    check_unknown(1024, "f64");
    choose_text("graph g[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x + x }");
    check_unknown(1024, "no reduction inside rows");
}
END_TEST

Suite *choice_suite(void)
{
    Suite *suite = suite_create("choice");
    TCase *cases = tcase_create("choice");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, the_number_of_rows_does_not_matter);
    tcase_add_test(cases, the_model_tells_what_bounds_a_plan);
    tcase_add_test(cases, groups_hide_waits);
    tcase_add_test(cases, the_model_knows_every_gpu);
    tcase_add_test(cases, the_model_says_what_it_does_not_know);
    suite_add_tcase(suite, cases);
    /* thousands of compilations: the sanitizers' run leaves these out */
    TCase *many = tcase_create("choice, many");
    tcase_set_timeout(many, 120);
    tcase_set_tags(many, "slow");
    tcase_add_loop_test(many, there_is_one_that_fits, 0, GPUS);
    tcase_add_test(many, choosing_is_quick);
    tcase_add_test(many, near_lengths_have_the_same_shape);
    suite_add_tcase(suite, many);
    return suite;
}
