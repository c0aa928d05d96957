/* test_runtime.c: the C API on the CPU device: parsing, plans, the refusals of a launch,
 * results with strides, in place; and on the GPU, if there is one, the same through
 * kernels. */
#include "fusec.h"
#include "internal.h"
#include "schedule/launch.h"
#include "suites.h"

#include <check.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 4 };

static const char scale_program[] =
    "graph scale[M = 2, N = 4](x : f32[M, N], g : f32[N], k : f32 = 2) -> (y : f32[M, N],\n"
    "      s : f32[M]) { y = x * g * k  s = sum[N](x) }\n";

static fusec_error error;

typedef struct {
    fusec_device *device;
    fusec_program *program;
    fusec_plan *plan;
    float x[ROWS * COLUMNS + 4], g[COLUMNS], y[ROWS * COLUMNS + 4], s[COLUMNS],
        more[ROWS * COLUMNS];
    fusec_tensor inputs[2], outputs[2];
} Case;

static fusec_tensor matrix(float *data)
{
    return (fusec_tensor){data, FUSEC_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}};
}

static fusec_tensor vector(float *data, int64_t size)
{
    return (fusec_tensor){data, FUSEC_F32, 1, {size}, {1}};
}

static void open_text(Case *c, const char *text, const fusec_plan_options *options)
{
    memset(c, 0, sizeof *c);
    fusec_status status =
        fusec_program_parse(text, strlen(text), "scale.fuse", &c->program, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    ck_assert_int_eq(fusec_device_cpu(&c->device, &error), FUSEC_OK);
    status = fusec_plan_create(c->device, c->program, NULL, NULL, 0, options, &c->plan, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    for (int i = 0; i < ROWS * COLUMNS; i++) c->x[i] = (float)i;
    for (int i = 0; i < COLUMNS; i++) c->g[i] = (float)(i + 1);
    c->inputs[0] = matrix(c->x);
    c->inputs[1] = vector(c->g, COLUMNS);
    c->outputs[0] = matrix(c->y);
    c->outputs[1] = vector(c->s, ROWS);
}

static void open_case(Case *c, const fusec_plan_options *options)
{
    open_text(c, scale_program, options);
}

static void close_case(Case *c)
{
    fusec_device_destroy(c->device); /* the plan keeps what it needs */
    fusec_program_destroy(c->program);
    fusec_plan_destroy(c->plan);
}

static fusec_status launch(Case *c)
{
    return fusec_plan_launch(c->plan, c->inputs, c->outputs, NULL, NULL, NULL, &error);
}

/* The launch is refused, and the message holds `words`. */
static void expect_refusal(Case *c, fusec_status status, const char *words)
{
    ck_assert_int_eq(launch(c), status);
    ck_assert_int_eq(error.status, status);
    ck_assert_msg(strstr(error.message, words), "'%s' is not in '%s'", words, error.message);
}

START_TEST(statuses_have_names)
{
    ck_assert_str_eq(fusec_status_name(FUSEC_INVALID_TENSOR), "INVALID_TENSOR");
    ck_assert_str_eq(fusec_status_name((fusec_status)999), "UNKNOWN");
    ck_assert_str_eq(fusec_version(), FUSEC_VERSION);
    ck_assert_str_eq(fusec_dtype_name(FUSEC_BF16), "bf16");
    ck_assert_uint_eq(fusec_dtype_bytes(FUSEC_BF16), 2);
}
END_TEST

START_TEST(plan_describes_itself)
{
    Case c;
    fusec_tensor_info tensor = {.struct_size = sizeof tensor};
    fusec_scalar_info scalar = {.struct_size = sizeof scalar};
    fusec_axis_info axis = {.struct_size = sizeof axis};
    open_case(&c, NULL);
    ck_assert_uint_eq(fusec_program_graph_count(c.program), 1);
    ck_assert_str_eq(fusec_program_graph(c.program, 0), "scale");
    ck_assert_uint_eq(fusec_plan_input_count(c.plan), 2);
    ck_assert_uint_eq(fusec_plan_output_count(c.plan), 2);
    ck_assert_int_eq(fusec_plan_tensor(c.plan, 1, &tensor), FUSEC_OK);
    ck_assert_str_eq(tensor.name, "g");
    ck_assert_int_eq(tensor.rank, 1);
    ck_assert_int_eq(tensor.axes[0], 1);
    ck_assert_int_eq(fusec_plan_tensor(c.plan, 4, &tensor), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_plan_scalar(c.plan, 0, &scalar), FUSEC_OK);
    ck_assert_double_eq(scalar.default_value, 2);
    ck_assert_int_eq(fusec_plan_axis(c.plan, 1, &axis), FUSEC_OK);
    ck_assert_int_eq(axis.is_fixed, 1);
    close_case(&c);
}
END_TEST

static void expect_scaled(const Case *c, int64_t row_stride, float k)
{
    for (int m = 0; m < ROWS; m++) {
        for (int n = 0; n < COLUMNS; n++) {
            float want = (float)(m * COLUMNS + n) * (float)(n + 1) * k;
            ck_assert_float_eq(c->y[m * row_stride + n], want);
        }
        ck_assert_float_eq(c->s[m], (float)(m * 16 + 6));
    }
}

START_TEST(cpu_runs_a_plan)
{
    Case c;
    double scalar = 3;
    open_case(&c, NULL);
    ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
    ck_assert_str_eq(error.message, "");
    expect_scaled(&c, COLUMNS, 2);
    ck_assert_int_eq(fusec_plan_launch(c.plan, c.inputs, c.outputs, &scalar, NULL, NULL, NULL),
                     FUSEC_OK);
    expect_scaled(&c, COLUMNS, 3);
    close_case(&c);
}
END_TEST

START_TEST(strides_are_followed)
{
    Case c;
    open_case(&c, NULL);
    float wide_x[ROWS * 7], wide_y[ROWS * 6];
    for (int i = 0; i < ROWS * 7; i++)
        wide_x[i] = i % 7 < COLUMNS ? (float)(i / 7 * COLUMNS + i % 7) : NAN;
    for (int i = 0; i < ROWS * 6; i++) wide_y[i] = -1;
    c.inputs[0] = (fusec_tensor){wide_x, FUSEC_F32, 2, {ROWS, COLUMNS}, {7, 1}};
    c.outputs[0] = (fusec_tensor){wide_y, FUSEC_F32, 2, {ROWS, COLUMNS}, {6, 1}};
    ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
    for (int i = 0; i < ROWS * 6; i++) {
        float want = (float)(i / 6 * COLUMNS + i % 6) * (float)(i % 6 + 1) * 2;
        ck_assert_float_eq(wide_y[i], i % 6 < COLUMNS ? want : -1);
    }
    c.inputs[0] = matrix(c.x);
    c.inputs[0].strides[0] = 0; /* every row is the first */
    c.outputs[0] = matrix(c.y);
    ck_assert_int_eq(launch(&c), FUSEC_OK);
    ck_assert_float_eq(c.y[2 * COLUMNS + 1], 4);
    close_case(&c);
}
END_TEST

START_TEST(no_rows_are_fine)
{
    Case c;
    open_case(&c, NULL);
    c.inputs[0] = (fusec_tensor){NULL, FUSEC_F32, 2, {0, COLUMNS}, {COLUMNS, 1}};
    c.outputs[0] = c.inputs[0];
    c.outputs[1] = vector(NULL, 0);
    ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
    close_case(&c);
}
END_TEST

START_TEST(wrong_tensors_are_refused)
{
    Case c;
    open_case(&c, NULL);
    const Case good = c;
#define REFUSED(change, words)                                                                     \
    do {                                                                                           \
        c = good;                                                                                  \
        c.inputs[0].data = c.x, c.inputs[1].data = c.g;                                            \
        c.outputs[0].data = c.y, c.outputs[1].data = c.s;                                          \
        change;                                                                                    \
        expect_refusal(&c, FUSEC_INVALID_TENSOR, words);                                           \
    } while (0)
    REFUSED(c.inputs[0].dtype = FUSEC_F16, "x: is f16, must be f32");
    REFUSED(c.inputs[0].dtype = (fusec_dtype)77, "no known dtype");
    REFUSED(c.inputs[0].rank = 1, "rank 1, must have 2");
    REFUSED(c.inputs[0].rank = 1000, "rank");
    REFUSED(c.inputs[0].sizes[1] = 5, "compiled for");
    REFUSED(c.outputs[0].sizes[0] = 2, "but x has ");
    REFUSED(c.inputs[0].sizes[0] = -1, "negative");
    REFUSED(c.inputs[0].data = NULL, "x: data is NULL");
    REFUSED(c.inputs[0].data = (char *)c.x + 2, "aligned");
    REFUSED(c.inputs[0].strides[1] = 2, "stride of the last axis");
    REFUSED(c.inputs[0].strides[0] = INT64_MAX / 2, "address space");
    REFUSED(c.inputs[0].strides[0] = INT64_MIN, "address space");
    REFUSED(c.outputs[0].strides[0] = 0, "make elements of the output overlap");
    REFUSED(c.outputs[0].strides[0] = 3, "make elements of the output overlap");
    REFUSED(c.outputs[0].data = c.x + 1, "overlaps input x");
    REFUSED(c.outputs[0].data = c.x, "in_place");
    REFUSED(c.outputs[1].data = c.y + 2, "outputs y and s overlap");
#undef REFUSED
    c = good;
    close_case(&c);
}
END_TEST

START_TEST(slices_side_by_side_do_not_overlap)
{
    Case c;
    float packed[ROWS * 2 * COLUMNS];
    open_case(&c, NULL);
    for (int i = 0; i < ROWS * 2 * COLUMNS; i++) packed[i] = 1;
    c.inputs[0] = (fusec_tensor){packed, FUSEC_F32, 2, {ROWS, COLUMNS}, {2 * COLUMNS, 1}};
    c.outputs[0] = c.inputs[0];
    c.outputs[0].data = packed + COLUMNS;
    ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
    ck_assert_float_eq(packed[COLUMNS + 3], 8);
    ck_assert_float_eq(packed[3], 1);
    c.outputs[0].data = packed + COLUMNS - 1;
    expect_refusal(&c, FUSEC_INVALID_TENSOR, "overlaps");
    close_case(&c);
}
END_TEST

START_TEST(an_output_may_replace_an_input)
{
    Case c;
    fusec_plan_options options = {.struct_size = sizeof options, .in_place = 1};
    options.outputs = "y";
    open_case(&c, &options);
    c.outputs[0] = c.inputs[0];
    c.outputs[1] = (fusec_tensor){0}; /* not wanted: not read */
    ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
    ck_assert_float_eq(c.x[COLUMNS + 1], 20);
    c.outputs[0].data = c.x + 4;
    expect_refusal(&c, FUSEC_INVALID_TENSOR, "has another layout");
    close_case(&c);
}
END_TEST

/* h is written before a row that stays nowhere is read again for y. */
START_TEST(a_row_that_is_read_again_may_not_be_replaced)
{
    static const char program[] = "graph twice[M = 3, N = 4](x : f32[M, N], g : f32[N]) ->"
                                  " (h : f32[M, N], y : f32[M, N])"
                                  " { h = x + g  y = h * sum[N](h) }\n";
    static const char *const schedules[] = {"row:reads=1", "row:reads=2"};
    for (int again = 0; again < 2; again++) {
        Case c;
        fusec_plan_options options = {.struct_size = sizeof options, .in_place = 1};
        options.schedule = schedules[again];
        open_text(&c, program, &options);
        c.outputs[1] = c.inputs[0];
        ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
        c.outputs[1] = matrix(c.more);
        c.outputs[0] = c.inputs[0];
        if (again)
            expect_refusal(&c, FUSEC_INVALID_TENSOR, "reads it afterwards");
        else
            ck_assert_msg(launch(&c) == FUSEC_OK, "%s", error.message);
        close_case(&c);
    }
}
END_TEST

START_TEST(memory_and_events_on_the_cpu)
{
    fusec_device *device;
    fusec_event *begin, *end;
    fusec_device_info about = {.struct_size = sizeof about};
    void *memory;
    char back[4] = "";
    double milliseconds = -1;
    ck_assert_int_eq(fusec_device_cpu(&device, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_device_get_info(device, &about), FUSEC_OK);
    ck_assert_int_eq(about.is_cpu, 1);
    ck_assert_int_eq(fusec_alloc(device, 0, &memory, NULL), FUSEC_OK);
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(fusec_alloc(device, SIZE_MAX, &memory, &error), FUSEC_OUT_OF_MEMORY);
    ck_assert_int_eq(fusec_alloc(device, 4, &memory, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_fill_async(device, memory, 7, 4, NULL, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_copy(device, back, memory, 4, NULL), FUSEC_OK);
    ck_assert_int_eq(back[3], 7);
    ck_assert_int_eq(fusec_event_create(device, &begin, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_event_create(device, &end, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_event_elapsed(begin, end, &milliseconds, NULL), FUSEC_INVALID_ARGUMENT);
    fusec_event_record(begin, NULL, NULL);
    fusec_event_record(end, NULL, NULL);
    ck_assert_int_eq(fusec_event_elapsed(begin, end, &milliseconds, NULL), FUSEC_OK);
    ck_assert(milliseconds >= 0);
    fusec_event_destroy(begin);
    fusec_event_destroy(end);
    fusec_free(device, memory);
    fusec_device_destroy(device);
}
END_TEST

/* A driver that keeps in mind which launches were early: `e` or `-` for each. */
static bool captured;
static char launched[8];

static CUresult no_context(CUcontext *context)
{
    *context = NULL;
    return CUDA_SUCCESS;
}

static CUresult tell_captured(CUstream stream, int *is)
{
    (void)stream;
    *is = captured;
    return CUDA_SUCCESS;
}

static CUresult note_launch(const CUlaunchConfig *config, CUfunction function, void **parameters,
                            void **extra)
{
    bool early = false;
    (void)function, (void)parameters, (void)extra;
    for (unsigned i = 0; i < config->attribute_count; i++)
        early |= config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    strcat(launched, early ? "e" : "-");
    return CUDA_SUCCESS;
}

/* A plan of two kernels, through that driver. */
START_TEST(kernels_start_early)
{
    static const char program[] =
        "graph sums[M = 3, N = 4](x : f32[M, N], g : f32[N]) -> (y : f32[M, N], s : f32[N])"
        " { y = x * g  s = sum[M](x) }\n";
    static const struct {
        bool waits, captured, off;
        int64_t rows;
        const char *launched;
    } cases[] = {{true, false, false, ROWS, "ee"}, {true, true, false, ROWS, "-e"},
                 {true, false, true, ROWS, "--"},  {false, false, false, ROWS, "--"},
                 {true, false, false, 0, "e"},     {true, true, false, 0, "-"},
                 {true, false, true, 0, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        alignas(256) static char workspace[1 << 20];
        fusec_plan_options options = {.struct_size = sizeof options,
                                      .no_early_start = cases[i].off};
        Case c;
        open_text(&c, program, &options);
        ck_assert_uint_eq(fusec_plan_kernel_count(c.plan), 2);
        for (int k = 0; k < 2; k++)
            c.plan->entries[k].overlaps = cases[i].waits && c.plan->launch->kernels[k].overlaps;
        c.inputs[0].sizes[0] = c.outputs[0].sizes[0] = cases[i].rows;
        c.outputs[1] = vector(c.s, COLUMNS);
        c.device->cpu = false;
        c.device->driver = (Driver){.cuCtxGetCurrent = no_context,
                                    .cuStreamIsCapturing = tell_captured,
                                    .cuLaunchKernelEx = note_launch};
        captured = cases[i].captured;
        launched[0] = 0;
        fusec_status status =
            fusec_plan_launch(c.plan, c.inputs, c.outputs, NULL, workspace, NULL, &error);
        c.device->cpu = true;
        ck_assert_msg(status == FUSEC_OK, "%s", error.message);
        ck_assert_msg(!strcmp(launched, cases[i].launched), "case %zu: %s, not %s", i, launched,
                      cases[i].launched);
        close_case(&c);
    }
}
END_TEST

START_TEST(missing_driver_is_told)
{
    fusec_device *device;
    fusec_status status = fusec_device_open(0, &device, &error);
    if (status == FUSEC_OK) {
        fusec_device_destroy(device);
        printf("runtime: missing_driver_is_told: skipped, there is a GPU\n");
        return;
    }
    ck_assert(status == FUSEC_NO_DRIVER || status == FUSEC_NO_DEVICE);
    ck_assert_ptr_null(device);
    ck_assert_uint_gt(strlen(error.message), 0);
}
END_TEST

/* The same plan through kernels: saved, loaded, launched twice. */
START_TEST(gpu_runs_a_plan)
{
    fusec_device *device;
    if (fusec_device_open(0, &device, &error) != FUSEC_OK) {
        printf("runtime: gpu_runs_a_plan: skipped (%s)\n", error.message);
        return;
    }
    Case c;
    char path[] = "/tmp/fusec-plan-XXXXXX";
    fusec_plan *loaded;
    void *x, *g, *y, *s;
    open_case(&c, NULL);
    fusec_plan_destroy(c.plan);
    ck_assert_msg(fusec_plan_create(device, c.program, NULL, NULL, 0, NULL, &c.plan, &error) ==
                      FUSEC_OK,
                  "%s", error.message);
    ck_assert_int_ge(mkstemp(path), 0);
    ck_assert_int_eq(fusec_plan_save(c.plan, path, &error), FUSEC_OK);
    ck_assert_msg(fusec_plan_load(device, path, &loaded, &error) == FUSEC_OK, "%s", error.message);
    remove(path);
    fusec_alloc(device, sizeof c.x, &x, NULL);
    fusec_alloc(device, sizeof c.g, &g, NULL);
    fusec_alloc(device, sizeof c.y, &y, NULL);
    fusec_alloc(device, sizeof c.s, &s, NULL);
    fusec_copy(device, x, c.x, sizeof c.x, NULL);
    fusec_copy(device, g, c.g, sizeof c.g, NULL);
    c.inputs[0].data = x, c.inputs[1].data = g, c.outputs[0].data = y, c.outputs[1].data = s;
    void *workspace;
    fusec_size rows[] = {{"M", ROWS}};
    fusec_alloc(device, fusec_plan_workspace(loaded, rows, 1), &workspace, NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(fusec_plan_launch(i ? loaded : c.plan, c.inputs, c.outputs, NULL, workspace,
                                        NULL, &error) == FUSEC_OK,
                      "%s", error.message);
        fusec_copy(device, c.y, y, sizeof c.y, NULL);
        fusec_copy(device, c.s, s, sizeof c.s, NULL);
        expect_scaled(&c, COLUMNS, 2);
        fusec_fill_async(device, y, 0xff, sizeof c.y, NULL, NULL);
    }
    void *all[] = {x, g, y, s, workspace};
    for (int i = 0; i < 5; i++) fusec_free(device, all[i]);
    fusec_plan_destroy(loaded);
    fusec_device_destroy(device);
    close_case(&c);
}
END_TEST

/* c decides nothing, so the plan does not want it, and the launch gives no memory for it. */
START_TEST(an_unwanted_input_is_not_read)
{
    static const char text[] =
        "graph g[N = 4](x : f32[N], c : bool[N]) -> (y : f32[N]) { y = where(c, x, x) }";
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    fusec_device *device;
    fusec_program *program;
    fusec_plan *plan;
    const fusec_tensor inputs[] = {
        {.data = x, .dtype = FUSEC_F32, .rank = 1, .sizes = {4}, .strides = {1}}, {.data = NULL}};
    const fusec_tensor output = {
        .data = y, .dtype = FUSEC_F32, .rank = 1, .sizes = {4}, .strides = {1}};
    fusec_tensor_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(fusec_device_cpu(&device, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, NULL),
                     FUSEC_OK);
    ck_assert_int_eq(fusec_plan_tensor(plan, 1, &info), FUSEC_OK);
    ck_assert_int_eq(info.is_wanted, 0);
    ck_assert_int_eq(fusec_plan_launch(plan, inputs, &output, NULL, NULL, NULL, NULL), FUSEC_OK);
    ck_assert_mem_eq(x, y, sizeof x);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    fusec_device_destroy(device);
}
END_TEST

Suite *runtime_suite(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tests = tcase_create("api");
    tcase_add_test(tests, an_unwanted_input_is_not_read);
    tcase_add_test(tests, statuses_have_names);
    tcase_add_test(tests, plan_describes_itself);
    tcase_add_test(tests, cpu_runs_a_plan);
    tcase_add_test(tests, strides_are_followed);
    tcase_add_test(tests, no_rows_are_fine);
    tcase_add_test(tests, wrong_tensors_are_refused);
    tcase_add_test(tests, slices_side_by_side_do_not_overlap);
    tcase_add_test(tests, an_output_may_replace_an_input);
    tcase_add_test(tests, a_row_that_is_read_again_may_not_be_replaced);
    tcase_add_test(tests, memory_and_events_on_the_cpu);
    tcase_add_test(tests, kernels_start_early);
    tcase_add_test(tests, missing_driver_is_told);
    tcase_add_test(tests, gpu_runs_a_plan);
    suite_add_tcase(suite, tests);
    return suite;
}
