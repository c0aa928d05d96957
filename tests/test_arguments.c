/* test_arguments.c: what the C API answers to arguments that are none: NULLs, which must
 * leave *result NULL and never crash, numbers outside an enum, sizes and options of plans,
 * scalars that their dtype does not have. */
#include "fusec.h"
#include "suites.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const char program_text[] =
    "graph g(k : i32, n : u8, b : bool, a : f16) -> (y : i32[], z : f32[])\n"
    "{ y = where(b, k, 0) + n  z = a + 1 }\n";

static fusec_error error;
static fusec_device *device;
static fusec_program *program;
static fusec_plan *plan;

static void open_plan_of_scalars(void)
{
    fusec_device_cpu(&device, &error);
    fusec_program_parse(program_text, strlen(program_text), "g.fuse", &program, &error);
    ck_assert_msg(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, &error) ==
                      FUSEC_OK,
                  "%s", error.message);
}

static void close_plan_of_scalars(void)
{
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    fusec_device_destroy(device);
}

/* A creator that is refused for a NULL among its arguments leaves NULL in *p. */
START_TEST(refused_creators_leave_null)
{
#define LEAVES_NULL(type, words, call)                                                             \
    do {                                                                                           \
        type *p = (type *)&error;                                                                  \
        ck_assert_int_eq(call, FUSEC_INVALID_ARGUMENT);                                            \
        ck_assert_ptr_null(p);                                                                     \
        ck_assert_str_eq(error.message, words " is NULL");                                         \
    } while (0)
    LEAVES_NULL(fusec_program, "the text", fusec_program_parse(NULL, 3, NULL, &p, &error));
    LEAVES_NULL(fusec_plan, "the device",
                fusec_plan_create(NULL, program, NULL, NULL, 0, NULL, &p, &error));
    LEAVES_NULL(fusec_plan, "the program",
                fusec_plan_create(device, NULL, NULL, NULL, 0, NULL, &p, &error));
    LEAVES_NULL(fusec_plan, "the list of sizes",
                fusec_plan_create(device, program, NULL, NULL, 1, NULL, &p, &error));
    LEAVES_NULL(fusec_plan, "the device", fusec_plan_load(NULL, "p", &p, &error));
    LEAVES_NULL(fusec_plan, "the path", fusec_plan_load(device, NULL, &p, &error));
    LEAVES_NULL(fusec_call, "the plan",
                fusec_call_create(NULL, NULL, NULL, NULL, NULL, &p, &error));
    LEAVES_NULL(void, "the device", fusec_alloc(NULL, 4, &p, &error));
    LEAVES_NULL(struct CUstream_st, "the device", fusec_stream_create(NULL, &p, &error));
    LEAVES_NULL(fusec_event, "the device", fusec_event_create(NULL, &p, &error));
    LEAVES_NULL(fusec_binary, "the text",
                fusec_binary_compile(NULL, "sm_90a", FUSEC_CUBIN, &p, &error));
    LEAVES_NULL(fusec_binary, "the architecture",
                fusec_binary_compile("", NULL, FUSEC_CUBIN, &p, &error));
#undef LEAVES_NULL
}
END_TEST

START_TEST(creators_need_a_place)
{
#define NEEDS_PLACE(what, call)                                                                    \
    do {                                                                                           \
        ck_assert_int_eq(call, FUSEC_INVALID_ARGUMENT);                                            \
        ck_assert_str_eq(error.message, "the place for " what " is NULL");                         \
    } while (0)
    NEEDS_PLACE("the program", fusec_program_parse("", 0, NULL, NULL, &error));
    NEEDS_PLACE("the device", fusec_device_open(0, NULL, &error));
    NEEDS_PLACE("the device", fusec_device_cpu(NULL, &error));
    NEEDS_PLACE("the plan", fusec_plan_create(device, program, NULL, NULL, 0, NULL, NULL, &error));
    NEEDS_PLACE("the plan", fusec_plan_load(device, "p", NULL, &error));
    NEEDS_PLACE("the call", fusec_call_create(plan, NULL, NULL, NULL, NULL, NULL, &error));
    NEEDS_PLACE("the memory", fusec_alloc(device, 4, NULL, &error));
    NEEDS_PLACE("the stream", fusec_stream_create(device, NULL, &error));
    NEEDS_PLACE("the event", fusec_event_create(device, NULL, &error));
    NEEDS_PLACE("the binary", fusec_binary_compile("", "sm_90a", FUSEC_PTX, NULL, &error));
#undef NEEDS_PLACE
}
END_TEST

START_TEST(nothing_is_told_of_null)
{
    fusec_tensor_info tensor;
    fusec_scalar_info scalar;
    fusec_axis_info axis;
    fusec_kernel_info kernel;
    ck_assert_int_eq(fusec_plan_tensor(NULL, 0, &tensor), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_tensor(plan, 0, NULL), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_scalar(NULL, 0, &scalar), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_scalar(plan, 0, NULL), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_axis(NULL, 0, &axis), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_axis(plan, 0, NULL), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_kernel(NULL, 0, &kernel), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_kernel(plan, 0, NULL), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_binary_kernel(NULL, "k", &kernel), FUSEC_INVALID_ARGUMENT);
}
END_TEST

/* Before NVRTC is looked for, which may be missing. */
START_TEST(unknown_formats_are_refused)
{
    fusec_binary *binary = (fusec_binary *)&error;
    ck_assert_int_eq(fusec_binary_compile("", "sm_90a", (fusec_format)7, &binary, &error),
                     FUSEC_INVALID_ARGUMENT);
    ck_assert_ptr_null(binary);
    ck_assert_str_eq(error.message, "7 is not a fusec_format");
}
END_TEST

static fusec_status launch_scalars(const double *scalars)
{
    int32_t y = 0;
    float z = 0;
    const fusec_tensor outputs[] = {{.data = &y, .dtype = FUSEC_I32},
                                    {.data = &z, .dtype = FUSEC_F32}};
    fusec_status status = fusec_plan_launch(plan, NULL, outputs, scalars, NULL, NULL, &error);
    if (status == FUSEC_OK)
        ck_assert_double_eq(y, (scalars[2] != 0 ? scalars[0] : 0) + scalars[1]);
    else
        ck_assert(y == 0 && z == 0);
    return status;
}

/* No plan of the program for these sizes and options, and the message holds `words`. */
static void expect_no_plan(const fusec_program *of, const fusec_size *sizes, size_t count,
                           const fusec_plan_options *options, const char *words)
{
    fusec_plan *none = (fusec_plan *)&error;
    ck_assert_int_eq(fusec_plan_create(device, of, NULL, sizes, count, options, &none, &error),
                     FUSEC_INVALID_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(error.message, words), "'%s' is not in '%s'", words, error.message);
}

START_TEST(wrong_options_are_refused)
{
    fusec_plan_options options = {.struct_size = 0};
    expect_no_plan(program, NULL, 0, &options, "options.struct_size");
    options.struct_size = sizeof options;
    options.arch = "sm_75";
    expect_no_plan(program, NULL, 0, &options, "'sm_75': there are sm_80, ");
    options.arch = NULL;
    options.outputs = "";
    expect_no_plan(program, NULL, 0, &options, "options.outputs");
    ck_assert_int_eq(fusec_plan_save(plan, "/nowhere/plan", &error), FUSEC_UNSUPPORTED);
}
END_TEST

START_TEST(wrong_sizes_are_named)
{
    static const char text[] =
        "graph g[M = 2, N = 4](x : f32[M, N]) -> (y : f32[M]) { y = sum[N](x) }";
    const fusec_size twice[] = {{"N", 4}, {"M", 2}, {"N", 4}}, nameless[] = {{"M", 4}, {NULL, 4}};
    const fusec_size unknown[] = {{"Q", 4}}, negative[] = {{"M", -4}};
    fusec_program *sums;
    fusec_plan *good;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), "g.fuse", &sums, &error), FUSEC_OK);
    expect_no_plan(sums, unknown, 1, NULL, "has no axis 'Q'");
    expect_no_plan(sums, twice, 3, NULL, "axis N is given twice");
    expect_no_plan(sums, negative, 1, NULL, "axis M cannot have the negative size -4");
    expect_no_plan(sums, nameless, 2, NULL, "sizes[1].axis is NULL");
    ck_assert_int_eq(fusec_plan_create(device, sums, NULL, twice, 2, NULL, &good, &error),
                     FUSEC_OK);
    ck_assert_uint_eq(fusec_plan_workspace(good, unknown, 1), SIZE_MAX);
    ck_assert_uint_eq(fusec_plan_workspace(good, twice, 2), 0);
    ck_assert_uint_eq(fusec_plan_workspace(good, twice, 3), SIZE_MAX);
    fusec_plan_destroy(good);
    fusec_program_destroy(sums);
}
END_TEST

START_TEST(scalars_are_values_of_their_dtype)
{
    static const struct {
        int index;
        double value;
        const char *message; /* "": the launch runs */
    } given[] = {
        {0, -7, ""},
        {0, INT32_MAX, ""},
        {0, 1.5, "1.5 is not a value for k, a scalar of i32"},
        {0, 3e9, "3e+09 is not a value for k, a scalar of i32"},
        {0, NAN, "nan is not a value for k, a scalar of i32"},
        {1, 255, ""},
        {1, 300, "300 is not a value for n, a scalar of u8"},
        {2, 0, ""},
        {2, 2, "2 is not a value for b, a scalar of bool"},
        {3, 1e-3, ""},
        {3, INFINITY, ""},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        double scalars[] = {1, 0, 1, 0.5};
        scalars[given[i].index] = given[i].value;
        fusec_status status = launch_scalars(scalars);
        ck_assert_str_eq(error.message, given[i].message);
        ck_assert_int_eq(status, *given[i].message ? FUSEC_INVALID_ARGUMENT : FUSEC_OK);
    }
}
END_TEST

Suite *arguments_suite(void)
{
    Suite *suite = suite_create("arguments");
    TCase *tests = tcase_create("refused");
    tcase_add_checked_fixture(tests, open_plan_of_scalars, close_plan_of_scalars);
    tcase_add_test(tests, refused_creators_leave_null);
    tcase_add_test(tests, creators_need_a_place);
    tcase_add_test(tests, nothing_is_told_of_null);
    tcase_add_test(tests, unknown_formats_are_refused);
    tcase_add_test(tests, wrong_options_are_refused);
    tcase_add_test(tests, wrong_sizes_are_named);
    tcase_add_test(tests, scalars_are_values_of_their_dtype);
    suite_add_tcase(suite, tests);
    return suite;
}
