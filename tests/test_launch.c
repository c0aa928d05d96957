/* test_launch.c: the formulas of a launch: grids, workspaces, intervals between rows, and which entry
 * of a kernel takes tensors of some strides. */
#include "schedule/launch.h"
#include "suites.h"

#include <string.h>

START_TEST(grids_and_workspaces)
{
    LaunchKernel kernels[] = {{.threads = 128,
                               .cluster = 1,
                               .mailbox = -1,
                               .adds_parts = -1,
                               .grid = {{1, 4, 10, 1}, {2, 8, 100, 1}}}};
    LaunchSlot slots[] = {{"a", DTYPE_F32, 2, 0, 0, 1}, {"b", DTYPE_F64, 0, -1, 0, 1}};
    LaunchPlan plan = {.axis_count = 2, .slot_count = 2, .kernel_count = 1};
    plan.kernels = kernels;
    plan.slots = slots;
    Sizes sizes = {{33, 100}};
    int64_t offsets[2];
    ck_assert_int_eq(launch_ctas(&plan, 0, 0, &sizes), 9);
    ck_assert_int_eq(launch_ctas(&plan, 0, 1, &sizes), 13);
    ck_assert_int_eq(launch_workspace(&plan, &sizes, offsets), 15 * 256 + 256);
    ck_assert_int_eq(offsets[1], 15 * 256); /* 9 * 100 * 4 bytes rounded up */
    sizes.of[0] = INT64_MAX;
    ck_assert_int_eq(launch_ctas(&plan, 0, 0, &sizes), 10);
    sizes.of[0] = 0;
    ck_assert_int_eq(launch_ctas(&plan, 0, 0, &sizes), 0);
    ck_assert_int_eq(launch_workspace(&plan, &sizes, NULL), 256);
    sizes = (Sizes){{5, INT64_MAX / 2}};
    ck_assert_int_eq(launch_workspace(&plan, &sizes, NULL), INT64_MAX);
}
END_TEST

/* 66 groups that take rows of 73728 bytes, at 3000 bytes a ns. */
START_TEST(intervals_of_rows)
{
    enum { MANY = 16384, SOME = 1000, FEW = 40, L2 = 50 << 20 };
    LaunchKernel kernels[] = {{.cluster = 2,
                               .step_bytes = 73728,
                               .paced_from = 2,
                               .grid = {{1, 1, 66, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}}};
    LaunchPlan plan = {.axis_count = 1, .kernel_count = 1, .kernels = kernels};
    Sizes many = {{MANY}}, some = {{SOME}}, few = {{FEW}}, none = {{0}}, most = {{INT64_MAX}};
    ck_assert_uint_eq(launch_interval(&plan, 0, &many, 3000, L2), 66 * 73728 / 3000);
    ck_assert_uint_eq(launch_interval(&plan, 0, &most, 3000, L2), 66 * 73728 / 3000);
    ck_assert_uint_eq(launch_interval(&plan, 0, &few, 3000, 0), FEW * 73728 / 3000);
    ck_assert_uint_eq(launch_interval(&plan, 0, &few, 3000, L2), 0); /* what a cache may hold */
    ck_assert_uint_eq(launch_interval(&plan, 0, &none, 3000, 0), 0);
    /* A GPU that does not say how fast it is. */
    ck_assert_uint_eq(launch_interval(&plan, 0, &many, 0, 0), 0);
    ck_assert_uint_eq(launch_interval(&plan, 0, &many, 1e-30, 0), INT32_MAX);
    ck_assert_uint_eq(launch_interval(&plan, 0, &some, 3000, L2), 0);
    kernels[0].paced_from = 1;
    ck_assert_uint_eq(launch_interval(&plan, 0, &some, 3000, L2), 66 * 73728 / 3000);
    ck_assert_uint_eq(launch_interval(&plan, 0, &few, 3000, L2), 0);
    kernels[0].grid[0].per_cta = 4; /* rows at a time */
    ck_assert_uint_eq(launch_interval(&plan, 0, &few, 3000, 0), FEW / 4 * 73728 / 3000);
    kernels[0].step_bytes = 0;
    ck_assert_uint_eq(launch_interval(&plan, 0, &many, 3000, 0), 0);
}
END_TEST

static const int64_t *strides_given(const void *strides, int tensor)
{
    return ((const int64_t *const *)strides)[tensor];
}

/* Tensors of axes 0 and 1, which are rows, and of 2, with a tensor of rows alone and one of
 * columns. */
START_TEST(rows_collapse)
{
    static const LaunchTensor tensors[] = {{.axes = 7}, {.axes = 3}, {.axes = 4}};
    static const LaunchArg args[] = {{.kind = ARG_TENSOR, .index = 0},
                                     {.kind = ARG_ROW_STRIDE, .index = 0},
                                     {.kind = ARG_TENSOR, .index = 1},
                                     {.kind = ARG_TENSOR, .index = 2}};
    LaunchKernel kernel = {
        .entry = {"even", 4, args}, .strided = {"strided", 4, args}, .collapsed = 3};
    LaunchPlan plan = {.axis_count = 3,
                       .tensor_count = 3,
                       .tensors = tensors,
                       .kernel_count = 1,
                       .kernels = &kernel};
    enum { EVEN, UNEVEN };
    static const struct {
        int64_t sizes[2], x[2], mean[2]; /* the strides of both */
        int entry;
        int64_t stride; /* of x, where EVEN */
    } cases[] = {{{5, 7}, {70, 10}, {7, 1}, EVEN, 10},
                 {{5, 7}, {84, 12}, {7, 1}, EVEN, 12},
                 {{5, 7}, {80, 10}, {7, 1}, UNEVEN, 0},
                 {{5, 7}, {70, 10}, {8, 1}, UNEVEN, 0},
                 {{5, 7}, {70, 10}, {14, 2}, UNEVEN, 0},
                 {{5, 7}, {10, 50}, {7, 1}, UNEVEN, 0},
                 {{5, 7}, {0, 0}, {7, 1}, EVEN, 0},
                 {{5, 7}, {0, 10}, {7, 1}, UNEVEN, 0},
                 {{5, 7}, {-70, -10}, {7, 1}, EVEN, -10},
                 {{1, 7}, {3, 10}, {99, 1}, EVEN, 10},
                 {{5, 1}, {30, 4}, {1, 44}, EVEN, 30},
                 {{5, 1}, {30, 4}, {2, 1}, UNEVEN, 0},
                 {{1, 1}, {30, 4}, {9, 9}, EVEN, 0},
                 {{5, 7}, {INT64_MAX / 2, INT64_MAX / 2}, {7, 1}, UNEVEN, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Sizes sizes = {{cases[i].sizes[0], cases[i].sizes[1], 10}};
        const int64_t x[] = {cases[i].x[0], cases[i].x[1], 1}, gamma[] = {1};
        const int64_t *strides[] = {x, cases[i].mean, gamma};
        int64_t stride = -1;
        const LaunchEntry *entry = choose_entry(&plan, 0, &sizes, strides_given, strides);
        ck_assert_msg(entry == (cases[i].entry == EVEN ? &kernel.entry : &kernel.strided),
                      "case %zu", i);
        if (cases[i].entry == EVEN) {
            ck_assert(collapse_rows(&plan, 0, 3, &sizes, x, &stride));
            ck_assert_int_eq(stride, cases[i].stride);
        }
    }
    kernel.collapsed = 0;
    Sizes sizes = {{5, 7, 10}};
    const int64_t x[] = {80, 10, 1}, *strides[] = {x, x, x};
    ck_assert_ptr_eq(choose_entry(&plan, 0, &sizes, strides_given, strides), &kernel.entry);
}
END_TEST

/* Tensors of axis 0, a row, and of 1 to 3, which are columns, with one that lacks an axis of them. */
START_TEST(columns_lie_side_by_side)
{
    static const LaunchTensor tensors[] = {{.axes = 15}, {.axes = 6}};
    static const LaunchArg args[] = {{.kind = ARG_TENSOR, .index = 0},
                                     {.kind = ARG_TENSOR, .index = 1}};
    LaunchKernel kernel = {.entry = {"dense", 2, args}, .strided = {"strided", 2, args}};
    LaunchPlan plan = {.axis_count = 4,
                       .tensor_count = 2,
                       .tensors = tensors,
                       .kernel_count = 1,
                       .kernels = &kernel};
    static const struct {
        AxisSet dense;
        int64_t sizes[4], x[4];
        bool side_by_side;
    } cases[] = {{14, {5, 3, 4, 7}, {84, 28, 7, 1}, true},
                 {14, {5, 3, 4, 7}, {-1000, 28, 7, 1}, true},
                 {14, {5, 3, 4, 7}, {96, 32, 8, 1}, false},
                 {14, {5, 3, 4, 7}, {96, 30, 7, 1}, false},
                 {12, {5, 3, 4, 7}, {96, 30, 7, 1}, true},
                 {12, {5, 3, 4, 7}, {96, 30, -7, 1}, false},
                 {14, {5, 3, 1, 7}, {96, 7, 99, 1}, true},
                 {14, {5, 1, 4, 7}, {96, 99, 7, 1}, true},
                 {14, {5, 3, 4, 1}, {96, 4, 1, 99}, true},
                 {14, {5, 3, 4, 1}, {96, 8, 2, 1}, false},
                 {14, {5, 3, 4, 7}, {84, INT64_MAX, 7, 1}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Sizes sizes;
        memcpy(sizes.of, cases[i].sizes, sizeof cases[i].sizes);
        const int64_t scale[] = {9, 2}, *strides[] = {cases[i].x, scale};
        kernel.dense = cases[i].dense;
        ck_assert_msg(is_dense_along(&plan, 0, kernel.dense, &sizes, cases[i].x) ==
                          cases[i].side_by_side,
                      "case %zu", i);
        ck_assert_msg(choose_entry(&plan, 0, &sizes, strides_given, strides) ==
                          (cases[i].side_by_side ? &kernel.entry : &kernel.strided),
                      "case %zu", i);
    }
}
END_TEST

/* Groups of rows in parts: axis 0 counts groups, axis 1 rows, axis 2 columns. */
START_TEST(grids_of_parts)
{
    LaunchKernel kernels[] = {{.threads = 64,
                               .cluster = 1,
                               .mailbox = -1,
                               .part_groups = 80,
                               .part_ctas = 10,
                               .adds_parts = -1,
                               .grid = {{1, 1, 10, 1}, {0, 1, 1, 1}, {2, 64, 10, 1}}},
                              {.threads = 32,
                               .cluster = 1,
                               .mailbox = -1,
                               .adds_parts = 0,
                               .overlaps = true,
                               .grid = {{5, 32, 1000, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}}};
    LaunchSlot slots[] = {{"sums", DTYPE_F32, 5, 0, PARTS_DIM, 1}};
    LaunchPlan plan = {
        .axis_count = 3, .slot_count = 1, .kernel_count = 2, .kernels = kernels, .slots = slots};
    static const struct {
        int64_t groups, rows, parts, x, z, finish; /* CTAs, of ten at most */
    } cases[] = {
        {3, 64, 1, 3, 1, 0},
        {3, 65, 2, 6, 1, 6},
        {4, 1000, 10, 10, 1, 8},
        {3, 0, 0, 3, 0, 6},
        {0, 65, 2, 0, 1, 0},
        {1, 559, 5, 5, 1, 2},
        {1, 560, 10, 10, 1, 2},
        {1, 279, 3, 3, 1, 2},
        {1, 280, 5, 5, 1, 2},
        {1, 111, 2, 2, 1, 2},
        {9, 1000, 10, 9, 1, 0},
        {8, 1000, 10, 10, 1, 16}, /* alone, where an eighth of the CTAs' time is left or less */
        {20, 1000, 10, 10, 1, 0},
        {21, 1000, 10, 10, 1, 42},
        {81, 1000, 10, 10, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Sizes sizes = {{cases[i].groups, cases[i].rows, 64}};
        ck_assert_int_eq(launch_groups(&plan, 0, PARTS_DIM, &sizes), cases[i].parts);
        ck_assert_int_eq(launch_ctas(&plan, 0, 0, &sizes), cases[i].x);
        ck_assert_int_eq(launch_ctas(&plan, 0, PARTS_DIM, &sizes), cases[i].z);
        ck_assert_int_eq(launch_ctas(&plan, 1, 0, &sizes), cases[i].finish);
    }
    for (int64_t rows = 0; rows < 900; rows += 50) /* a workspace never shrinks */
        for (int64_t groups = 0, before = 0; groups < 90; groups++) {
            Sizes sizes = {{groups, rows, 64}}, more = {{groups, rows + 50, 64}};
            int64_t bytes = launch_workspace(&plan, &sizes, NULL);
            ck_assert_int_ge(bytes, before);
            ck_assert_int_ge(launch_workspace(&plan, &more, NULL), bytes);
            ck_assert_int_ge(bytes, groups < 80
                                        ? groups * launch_groups(&plan, 0, PARTS_DIM, &sizes) * 256
                                        : bytes);
            before = bytes;
        }
}
END_TEST

Suite *launch_suite(void)
{
    Suite *suite = suite_create("launch");
    TCase *tests = tcase_create("formulas");
    tcase_add_test(tests, grids_and_workspaces);
    tcase_add_test(tests, rows_collapse);
    tcase_add_test(tests, columns_lie_side_by_side);
    tcase_add_test(tests, grids_of_parts);
    tcase_add_test(tests, intervals_of_rows);
    suite_add_tcase(suite, tests);
    return suite;
}
