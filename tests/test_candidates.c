/* test_candidates.c: the schedules that `fusec tune` lists: each is admissible, is what its text
 * says, and is there once. */
#include "candidates.h"
#include "compile.h"
#include "planned.h"
#include "codegen/cuda.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

static void check_plans(const Candidates *list, int64_t rows, int64_t columns, const char *arch)
{
    for (int i = 0; i < list->list.count; i++) {
        const Candidate *x = &list->list.data[i];
        Compilation c = compile_sizes(x->schedule, rows, columns, arch);
        ck_assert_msg(!strcmp(bare_text(&c), x->cuda), "%s prints another text", x->schedule);
        compile_free(&c);
        for (int k = 0; k < i; k++) {
            const Candidate *y = &list->list.data[k];
            const LaunchKernel *p = x->plan->launch.kernels, *q = y->plan->launch.kernels;
            ck_assert(!x->schedule || !y->schedule || strcmp(x->schedule, y->schedule));
            ck_assert_msg(strcmp(x->cuda, y->cuda) || memcmp(p->grid, q->grid, sizeof p->grid) ||
                              p->smem_bytes != q->smem_bytes,
                          "%s and %s are one plan", x->schedule, y->schedule);
        }
    }
}

static void check_list(const char *path, int64_t rows, int64_t columns, const char *arch, int most)
{
    choose_program(path);
    Compilation chosen = compile_sizes(NULL, rows, columns, arch);
    Candidates list = list_candidates(chosen.arena, chosen.plan, most);
    ck_assert_int_ge(list.list.count, 1);
    ck_assert_int_le(list.list.count, most);
    ck_assert_str_eq(list.list.data[0].cuda, bare_text(&chosen));
    check_plans(&list, rows, columns, arch);
    compile_free(&chosen);
}

static const char *const examples[] = {"examples/layernorm_bwd.fuse", "examples/softmax.fuse",
                                       "examples/rmsnorm.fuse"};

START_TEST(each_is_a_plan_of_its_own)
{
    check_list(examples[_i], 64, 4096, "sm_90a", MOST_CANDIDATES);
    check_list(examples[_i], 64, 1000, "sm_80", 8);
}
END_TEST

START_TEST(degenerate_sizes_have_candidates)
{
    check_list(examples[_i], 0, 1, "sm_90a", MOST_CANDIDATES);
    check_list(examples[_i], 3, 96, "sm_120", 1);
}
END_TEST

START_TEST(they_vary_threads_stages_and_clusters)
{
    choose_program(examples[0]);
    Compilation c = compile_sizes(NULL, 64, 8192, "sm_90a");
    Candidates list = list_candidates(c.arena, c.plan, MOST_CANDIDATES);
    unsigned families = 0, threads = 0, stages = 0, clusters = 0;
    for (int i = 0; i < list.list.count; i++) {
        const Kernel *k = &list.list.data[i].plan->kernels[0];
        families |= 1u << list.list.data[i].plan->family;
        threads |= 1u << k->threads_per_row / 32 % 32;
        stages |= 1u << k->stages;
        clusters |= (unsigned)k->cluster;
    }
    ck_assert_int_ge(__builtin_popcount(families), 3);
    ck_assert_int_ge(__builtin_popcount(threads), 5);
    ck_assert_int_ge(__builtin_popcount(stages), 4);
    ck_assert_int_ge(__builtin_popcount(clusters), 3);
    compile_free(&c);
}
END_TEST

START_TEST(without_reductions_there_are_some_too)
{
    choose_text("graph add[M, N](x : f32[M, N], y : f32[N]) -> (z : f32[M, N]) { z = x + y }");
    Compilation c = compile_sizes(NULL, 16, 256, "sm_90a");
    Candidates list = list_candidates(c.arena, c.plan, 64);
    ck_assert_int_ge(list.list.count, 2);
    ck_assert_str_eq(list.list.data[0].schedule, "pointwise");
    check_plans(&list, 16, 256, "sm_90a");
    compile_free(&c);
}
END_TEST

START_TEST(leaner_ones_are_others)
{
    choose_program(examples[_i]);
    Compilation c = compile_sizes(NULL, 64, 4096, "sm_90a");
    Candidates list = list_leaner(c.arena, c.plan, 3);
    ck_assert_int_ge(list.list.count, 2);
    ck_assert_int_le(list.list.count, 4);
    ck_assert_str_eq(list.list.data[0].cuda, bare_text(&c));
    check_plans(&list, 64, 4096, "sm_90a");
    compile_free(&c);
}
END_TEST

/* What a GPU of so many SMs, whose memory moves so many bytes a ns, limits softmax to. */
static int limit_on(int sms, double memory_rate)
{
    Target target = *target_find("sm_90a");
    target_set_device(&target, sms, memory_rate);
    Compilation c = compile_target(NULL, 64, 2048, &target);
    int limit = c.plan->kernels[0].limit_ctas;
    ck_assert_int_eq(c.launch->kernels[0].smem_bytes > 0, limit > 0);
    compile_free(&c);
    return limit;
}

START_TEST(a_limit_is_for_memory_like_that_measured)
{
    choose_program("examples/softmax.fuse");
    ck_assert_int_eq(limit_on(132, 3352), 11); /* H100 */
    ck_assert_int_eq(limit_on(114, 2039), 11);
    ck_assert_int_eq(limit_on(132, 4800), 0); /* H200 */
    ck_assert_int_eq(limit_on(132, 0), 0);    /* not known */
}
END_TEST

/* The first kernel of a graph's plan for a GPU whose memory moves so many bytes a ns: FAMILY
 * threads x CTAs, stages. */
static void check_shape(const char *path, const char *arch, double memory_rate, int64_t columns,
                        const char *shape)
{
    char text[96];
    Target target = *target_find(arch);
    target_set_device(&target, target.sms, memory_rate);
    choose_program(path);
    Compilation c = compile_target(NULL, 64, columns, &target);
    const Kernel *k = &c.plan->kernels[0];
    snprintf(text, sizeof text, "%s %d x %d, %d", family_name(k->family), kernel_threads(k),
             k->cluster, k->stages);
    ck_assert_str_eq(text, shape);
    compile_free(&c);
}

enum { H100 = 3352, H200 = 4916 };

START_TEST(fast_memory_wants_few_ctas_with_many_columns)
{
    check_shape("examples/layernorm_bwd.fuse", "sm_90a", H100, 131072,
                "warp-specialized 256 x 16, 3");
    check_shape("examples/layernorm_bwd.fuse", "sm_90a", H200, 131072, "grid-stride 512 x 8, 3");
    check_shape("examples/layernorm_bwd.fuse", "sm_90a", H200, 8192, "warp-specialized 512 x 1, 5");
    check_shape("examples/rmsnorm_bwd.fuse", "sm_90a", H100, 24576, "warp-specialized 256 x 4, 4");
    check_shape("examples/rmsnorm_bwd.fuse", "sm_90a", H200, 24576, "warp-specialized 384 x 2, 3");
    check_shape("examples/layernorm.fuse", "sm_90a", H100, 2048, "row 128 x 1, 0");
    check_shape("examples/layernorm.fuse", "sm_90a", H200, 2048, "row 64 x 1, 0");
    check_shape("examples/layernorm.fuse", "sm_90a", H200, 40960, "row 640 x 2, 2");
    check_shape("examples/layernorm.fuse", "sm_90a", H200, 98304, "row 512 x 4, 2");
    check_shape("examples/layernorm.fuse", "sm_90a", H100, 131072, "row 1024 x 8, 3");
    check_shape("examples/layernorm.fuse", "sm_90a", H200, 131072, "row 256 x 8, 1");
    check_shape("examples/softmax.fuse", "sm_90a", H100, 12288, "row 256 x 2, 0");
    check_shape("examples/softmax.fuse", "sm_90a", H200, 14336, "row 224 x 2, 0");
    check_shape("examples/layernorm_residual.fuse", "sm_90a", H200, 32768, "row 128 x 8, 0");
}
END_TEST

START_TEST(few_rows_want_more_threads_and_ctas)
{
    static const struct {
        const char *path;
        double memory_rate;
        int64_t columns;
        const char *shape;
    } rows[] = {
        {"examples/layernorm.fuse", H100, 4608, "row 192 x 1, 0"},
        {"examples/layernorm.fuse", H100, 5120, "row 128 x 1, 0"},
        {"examples/layernorm.fuse", H100, 5248, "row 192 x 1, 0"}, /* 224 threads would be slower */
        {"examples/layernorm.fuse", H100, 11264, "row 352 x 2, 0"},
        {"examples/layernorm.fuse", H100, 14848, "row 128 x 4, 0"},
        {"examples/layernorm.fuse", H100, 14720, "row 480 x 1, 0"}, /* slices are no whole lines */
        {"examples/layernorm.fuse", H100, 17408, "row 384 x 2, 0"},
        {"examples/layernorm.fuse", H100, 18432, "row 192 x 4, 0"},
        {"examples/layernorm_residual.fuse", H100, 4608, "row 192 x 1, 0"},
        {"examples/layernorm_residual.fuse", H100, 9216, "row 288 x 2, 0"},
        {"examples/layernorm_residual.fuse", H100, 14848, "row 320 x 2, 0"},
        {"examples/layernorm_residual.fuse", H100, 32768, "row 256 x 8, 0"},
        {"examples/rmsnorm_residual.fuse", H100, 8192, "row 256 x 2, 0"},
        {"examples/rmsnorm_residual.fuse", H100, 13824, "row 288 x 2, 0"},
        {"examples/rmsnorm_residual.fuse", H100, 16384,
         "row 128 x 8, 0"}, /* as the rules have it */
        {"examples/rmsnorm_residual.fuse", H100, 18432, "row 288 x 4, 0"},
        {"examples/softmax.fuse", H100, 8704, "row 192 x 2, 0"},
        {"examples/rmsnorm_residual.fuse", H200, 9216, "row 288 x 2, 0"},
        {"examples/layernorm_residual.fuse", H200, 4608, "row 192 x 1, 0"},
        {"examples/layernorm_residual.fuse", H200, 9216,
         "row 256 x 1, 0"}, /* many rows would be slower */
        {"examples/layernorm.fuse", H200, 9216, "row 192 x 2, 0"},
        {"examples/layernorm.fuse", H200, 17408, "row 544 x 1, 2"}, /* many rows would be slower */
        {"tests/cases/residual_f32.fuse", H100, 16384, "row 352 x 4, 0"},
        {"tests/cases/residual_f32.fuse", H100, 12288,
         "row 288 x 4, 0"}, /* a warp more than fills it */
        {"tests/cases/moments_f32.fuse", H100, 10240, "row 128 x 4, 0"},
        {"tests/cases/moments_f32.fuse", H100, 5376, "row 352 x 1, 0"}, /* not full */
        {"tests/cases/wide_weights.fuse", H100, 12288, "row 192 x 4, 0"},
        {"tests/cases/wide_weights.fuse", H100, 9216, "row 192 x 2, 0"},
        {"tests/cases/sum_to_bytes.fuse", H100, 5120, "row 160 x 2, 0"},
        {"tests/cases/sum_to_bytes.fuse", H100, 14336, "row 320 x 2, 0"},
        {"tests/cases/silu_to_bytes.fuse", H100, 13824, "row 288 x 2, 0"},
        {"tests/cases/silu_to_bytes.fuse", H100, 28672, "row 224 x 8, 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_shape(rows[i].path, "sm_90a", rows[i].memory_rate, rows[i].columns, rows[i].shape);
}
END_TEST

/* The same of rows that a warp or a part of one has: THREADS a row x TILES x ELEMENTS of rows a
 * CTA. */
static void check_lanes(const char *path, const char *schedule, int64_t columns, const char *lanes)
{
    char text[96];
    choose_program(path);
    Compilation c = compile_sizes(schedule, 64, columns, "sm_90a");
    const Kernel *k = &c.plan->kernels[0];
    snprintf(text, sizeof text, "%d x %d x %d of %d", k->threads_per_row, k->tiles, k->vec,
             k->teams);
    ck_assert_msg(!strcmp(text, lanes), "%s of %d columns: %s", path, (int)columns, text);
    compile_free(&c);
}

START_TEST(short_rows_leave_few_lanes_idle)
{
    check_lanes("examples/layernorm.fuse", NULL, 96, "4 x 3 x 8 of 32");
    /* Two, for meeting is much of the work. */
    check_lanes("examples/layernorm.fuse", NULL, 128, "8 x 2 x 8 of 32");
    check_lanes("examples/layernorm.fuse", NULL, 112, "8 x 2 x 8 of 16");
    check_lanes("examples/layernorm.fuse", NULL, 16, "2 x 1 x 8 of 128");
    check_lanes("examples/layernorm.fuse", NULL, 68, "8 x 3 x 4 of 16");
    check_lanes("examples/layernorm.fuse", NULL, 77, "16 x 5 x 1 of 8");
    check_lanes("examples/rmsnorm.fuse", NULL, 128, "16 x 1 x 8 of 32");
    check_lanes("examples/rmsnorm.fuse", NULL, 160, "8 x 3 x 8 of 16");
    check_lanes("examples/softmax.fuse", NULL, 112, "16 x 1 x 8 of 8");
    check_lanes("examples/softmax_bwd.fuse", NULL, 96, "16 x 1 x 8 of 8");
    check_lanes("examples/softmax_bwd.fuse", NULL, 160, "8 x 3 x 8 of 16");
    check_lanes("examples/rmsnorm_quantized.fuse", NULL, 320, "16 x 3 x 8 of 8");
    check_lanes("examples/layernorm_bwd.fuse", NULL, 48, "4 x 2 x 8 of 32");
    check_lanes("examples/rmsnorm_bwd.fuse", NULL, 48, "8 x 1 x 8 of 16");
    check_lanes("examples/rmsnorm_bwd.fuse", NULL, 96, "4 x 3 x 8 of 32");
    check_lanes("examples/layernorm.fuse", NULL, 640, "32 x 3 x 8 of 4");
    check_lanes("examples/softmax.fuse", NULL, 720, "64 x 2 x 8 of 1");
    check_lanes("examples/rmsnorm.fuse", NULL, 640, "64 x 2 x 8 of 1");
    check_lanes("examples/rmsnorm_quantized.fuse", NULL, 1280, "32 x 5 x 8 of 4");
    check_lanes("examples/layernorm.fuse", "row:threads=32", 96, "32 x 1 x 8 of 4");
    check_lanes("examples/layernorm.fuse", "row:threads=2", 96, "2 x 6 x 8 of 64");
    check_lanes("examples/layernorm.fuse", "row:threads=8,rows=4", 96, "8 x 2 x 8 of 4");
}
END_TEST

/* Whether the plan for an H200 with so much shared memory is the one that the rules choose without
 * advice. */
static bool is_unadvised(const char *path, int smem, int64_t columns)
{
    const char *problem;
    Target target = *target_find("sm_90a");
    target_set_device(&target, 132, H200);
    target.smem_per_cta = target.smem_per_sm = smem;
    choose_program(path);
    Compilation c = compile_target(NULL, 64, columns, &target);
    const Plan *rules = schedule_by_rules(c.arena, c.analysis, &target, &problem);
    ck_assert_ptr_nonnull(rules);
    bool same = !strcmp(emit_cuda(c.arena, rules, NULL), bare_text(&c));
    ck_assert(same || c.plan->advice);
    compile_free(&c);
    return same;
}

/* Not where there is no room for it, of longer or odder rows than were measured, of other graphs,
 * on other GPUs. */
START_TEST(advice_is_not_taken_where_it_cannot_be)
{
    enum { ALL = 227 << 10, LITTLE = 64 << 10 };
    ck_assert(!is_unadvised("examples/layernorm.fuse", ALL, 40960));
    ck_assert(is_unadvised("examples/layernorm.fuse", LITTLE, 40960));
    ck_assert(is_unadvised("examples/rmsnorm_bwd.fuse", ALL, 524288));
    ck_assert(is_unadvised("examples/layernorm_bwd.fuse", ALL, 300000));
    ck_assert(is_unadvised("examples/layernorm.fuse", ALL, 1032));
    ck_assert(is_unadvised("examples/rmsnorm_quantized.fuse", ALL, 8192));
    ck_assert(is_unadvised("examples/cross_entropy.fuse", ALL, 8192));
    check_shape("examples/layernorm.fuse", "sm_100a", 8000, 40960, "row 160 x 8, 0");
    /* An H100 NVL. */
    check_shape("examples/layernorm.fuse", "sm_90a", 3938, 2048, "row 128 x 1, 0");
}
END_TEST

/* Where advice spills, what the rules say without it comes first. */
START_TEST(without_advice_comes_first_of_the_leaner)
{
    Target target = *target_find("sm_90a");
    target_set_device(&target, 132, H200);
    choose_program("examples/layernorm_bwd.fuse");
    Compilation c = compile_target(NULL, 64, 131072, &target);
    Candidates list = list_leaner(c.arena, c.plan, 3);
    ck_assert_int_gt(list.list.count, 1);
    ck_assert_str_eq(list.list.data[1].schedule,
                     "warp-specialized:threads=256,cluster=16,stages=3");
    compile_free(&c);
}
END_TEST

START_TEST(limits_are_tried_and_none)
{
    choose_program("examples/softmax.fuse");
    Compilation c = compile_sizes(NULL, 64, 4096, "sm_90a");
    Candidates list = list_candidates(c.arena, c.plan, MOST_CANDIDATES);
    int limited = 0, unlimited = 0;
    for (int i = 0; i < list.list.count; i++) {
        bool limit = strstr(list.list.data[i].schedule, "limit=") != NULL;
        limited += limit && list.list.data[i].plan->kernels[0].limit_ctas;
        unlimited += limit && !list.list.data[i].plan->kernels[0].limit_ctas;
    }
    ck_assert_int_ge(limited, 3);
    ck_assert_int_eq(unlimited, 1);
    compile_free(&c);
}
END_TEST

static int walks(const Plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->kernel_count; i++) count += walks_rows(&plan->kernels[i]);
    return count;
}

START_TEST(leaner_ones_walk_the_rows_as_often)
{
    choose_program("examples/layernorm_bwd.fuse");
    Compilation c = compile_sizes(NULL, 64, 262144, "sm_90a");
    Candidates list = list_leaner(c.arena, c.plan, 5);
    ck_assert_int_ge(list.list.count, 2);
    for (int i = 0; i < list.list.count; i++)
        ck_assert_int_eq(walks(list.list.data[i].plan), walks(c.plan));
    compile_free(&c);
}
END_TEST

START_TEST(what_is_refused_has_a_reason)
{
    choose_program("examples/layernorm_bwd.fuse");
    Compilation c = compile_sizes(NULL, 64, 4096, "sm_90a");
    Candidates list = list_near(c.arena, c.plan);
    check_plans(&list, 64, 4096, "sm_90a");
    ck_assert_int_gt(list.list.count, 20);
    ck_assert_int_gt(list.refusals.count, 100);
    for (int i = 0; i < list.refusals.count; i++) {
        const char *problem = NULL;
        ck_assert_ptr_null(try_schedule(c.arena, c.analysis, target_find("sm_90a"),
                                        list.refusals.data[i].schedule, &problem));
        ck_assert_str_eq(problem, list.refusals.data[i].reason);
    }
    compile_free(&c);
}
END_TEST

Suite *candidates_suite(void)
{
    Suite *suite = suite_create("candidates");
    TCase *cases = tcase_create("candidates");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, degenerate_sizes_have_candidates, 0, 1);
    tcase_add_test(cases, without_reductions_there_are_some_too);
    tcase_add_test(cases, a_limit_is_for_memory_like_that_measured);
    suite_add_tcase(suite, cases);
    /* thousands of compilations: the sanitizers' run leaves these out */
    TCase *many = tcase_create("candidates, many");
    tcase_set_timeout(many, 60);
    tcase_set_tags(many, "slow");
    tcase_add_loop_test(many, degenerate_sizes_have_candidates, 1, 3);
    tcase_add_loop_test(many, each_is_a_plan_of_its_own, 0, 3);
    tcase_add_loop_test(many, leaner_ones_are_others, 0, 3);
    tcase_add_test(many, leaner_ones_walk_the_rows_as_often);
    tcase_add_test(many, what_is_refused_has_a_reason);
    tcase_add_test(many, short_rows_leave_few_lanes_idle);
    tcase_add_test(many, fast_memory_wants_few_ctas_with_many_columns);
    tcase_add_test(many, few_rows_want_more_threads_and_ctas);
    tcase_add_test(many, advice_is_not_taken_where_it_cannot_be);
    tcase_add_test(many, without_advice_comes_first_of_the_leaner);
    tcase_add_test(many, limits_are_tried_and_none);
    tcase_add_test(many, they_vary_threads_stages_and_clusters);
    suite_add_tcase(suite, many);
    return suite;
}
