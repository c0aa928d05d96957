/* calls.c: the calls of the public interface in the order that programs make them, for the
 * injector. What fails is said on stderr and tried once more: a call that failed must not have
 * broken the next. Exit 3: something failed; 1: an argument was refused, which none should be.
 *
 *     calls cpu|gpu|saved|target|files|grad|cache */
#include "fusec.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 16 };

static const char text[] =
    "graph zero[M = 8, N = 16](x : f32[M, N]) -> (y : f32[M, N]) {\n    y = (x - x) * sum[N](x)\n}\n"
    "graph twice[M = 8, N = 16](x : f32[M, N], by : f32 = 2) -> (y : f32[M, N]) {\n    y = x * by\n}\n";
static const char wrong_text[] = "graph wrong[M](x : f32[M]) -> (y : f32[M]) {\n    y = z\n}\n";
static bool failed;

/* Whether to go on: no error. */
static bool is_done(const char *what, fusec_status status, const fusec_error *error)
{
    if (status == FUSEC_OK) return true;
    failed = true;
    fprintf(stderr, "%s: %s: %s\n", what, fusec_status_name(status), error->message);
    if (status != error->status || !*error->message) exit(1);
    if (status == FUSEC_INVALID_PROGRAM || status == FUSEC_INVALID_ARGUMENT ||
        status == FUSEC_INVALID_TENSOR || status == FUSEC_INVALID_FILE)
        exit(1);
    return false;
}

#define DO(call) (is_done(#call, call, &error) || is_done(#call " again", call, &error))

static fusec_tensor tensor(void *data)
{
    return (fusec_tensor){.data = data,
                          .dtype = FUSEC_F32,
                          .rank = 2,
                          .sizes = {ROWS, COLUMNS},
                          .strides = {COLUMNS, 1}};
}

static fusec_program *parse(void)
{
    fusec_error error;
    fusec_program *program = NULL, *none = NULL;
    if (DO(fusec_program_parse(text, strlen(text), "zero.fuse", &program, &error)))
        printf("%zu graphs, the first is %s\n", fusec_program_graph_count(program),
               fusec_program_graph(program, 0));
    const fusec_status status =
        fusec_program_parse(wrong_text, strlen(wrong_text), NULL, &none, &error);
    if (status != FUSEC_INVALID_PROGRAM) (void)is_done("a wrong program", status, &error);
    fusec_program_destroy(none);
    return program;
}

static void print_values(const float *values)
{
    double sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) sum += (double)values[i];
    printf("sum %g\n", sum);
}

static void launch(fusec_device *device, const fusec_plan *plan)
{
    fusec_error error;
    float values[ROWS * COLUMNS];
    void *x = NULL, *y = NULL, *workspace = NULL;
    fusec_event *begin = NULL, *end = NULL;
    fusec_stream stream = NULL;
    fusec_call *call = NULL;
    double ms = 0;
    const size_t bytes = fusec_plan_workspace(plan, NULL, 0);
    fusec_device_info info = {.struct_size = sizeof info};
    fusec_device_get_info(device, &info);
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (float)(i % 7);
    bool good = DO(fusec_alloc(device, sizeof values, &x, &error)) &&
                DO(fusec_alloc(device, sizeof values, &y, &error)) &&
                DO(fusec_alloc(device, bytes, &workspace, &error)) &&
                DO(fusec_copy(device, x, values, sizeof values, &error)) &&
                DO(fusec_fill_async(device, y, 0xff, sizeof values, NULL, &error)) &&
                DO(fusec_stream_create(device, &stream, &error)) &&
                DO(fusec_event_create(device, &begin, &error)) &&
                DO(fusec_event_create(device, &end, &error)) &&
                DO(fusec_event_record(begin, stream, &error));
    const fusec_tensor in = tensor(x), out = tensor(y);
    good = good && DO(fusec_plan_launch(plan, &in, &out, NULL, workspace, stream, &error));
    if (good && !info.is_cpu)
        good = DO(fusec_call_create(plan, &in, &out, NULL, workspace, &call, &error)) &&
               DO(fusec_call_launch(call, stream, &error));
    good = good && DO(fusec_event_record(end, stream, &error)) &&
           DO(fusec_event_elapsed(begin, end, &ms, &error)) &&
           DO(fusec_device_synchronize(device, &error)) &&
           DO(fusec_copy(device, values, y, sizeof values, &error));
    if (good) print_values(values);
    fusec_call_destroy(call);
    fusec_event_destroy(begin);
    fusec_event_destroy(end);
    fusec_stream_destroy(device, stream);
    fusec_free(device, workspace);
    fusec_free(device, y);
    fusec_free(device, x);
}

/* A program of two files. */
static void open_files(void)
{
    fusec_error error;
    fusec_program *program = NULL;
    if (DO(fusec_program_open("uses.fuse", NULL, &program, &error)))
        printf("%zu graphs, the first is %s\n", fusec_program_graph_count(program),
               fusec_program_graph(program, 0));
    fusec_program_destroy(program);
}

/* A backward pass. */
static void differentiate(void)
{
    fusec_error error;
    fusec_program *program = parse(), *backward = NULL;
    if (program &&
        DO(fusec_program_grad(program, fusec_program_graph(program, 0), NULL, &backward, &error)))
        printf("%s", fusec_program_text(backward));
    fusec_program_destroy(backward);
    fusec_program_destroy(program);
}

static void plan_and_launch(fusec_device *device, const char *graph, const char *path)
{
    fusec_error error;
    fusec_plan *plan = NULL;
    fusec_program *program = parse();
    const fusec_size sizes[] = {{"M", ROWS}, {"N", COLUMNS}};
    if (program && DO(fusec_plan_create(device, program, graph, sizes, 2, NULL, &plan, &error))) {
        printf("%s: %zu kernels, %zu bytes of text\n", fusec_plan_graph(plan),
               fusec_plan_kernel_count(plan), strlen(fusec_plan_text(plan)));
        launch(device, plan);
        if (path) (void)DO(fusec_plan_save(plan, path, &error));
    }
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
}

static void load_and_launch(fusec_device *device, const char *path)
{
    fusec_error error;
    fusec_plan *plan = NULL;
    if (DO(fusec_plan_load(device, path, &plan, &error))) {
        printf("%s, loaded\n", fusec_plan_graph(plan));
        launch(device, plan);
    }
    fusec_plan_destroy(plan);
}

/* A plan of a machine without a GPU. */
static void save_for_target(fusec_device *device)
{
    fusec_error error;
    fusec_plan *plan = NULL, *loaded = NULL;
    fusec_program *program = parse();
    if (program && DO(fusec_plan_create(device, program, "zero", NULL, 0, NULL, &plan, &error)) &&
        DO(fusec_plan_save(plan, "zero.plan", &error)) &&
        DO(fusec_plan_load(device, "zero.plan", &loaded, &error)))
        printf("%s for %s\n", fusec_plan_graph(loaded), fusec_plan_arch(loaded));
    fusec_plan_destroy(loaded);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
}

static int print_entry(void *data, const fusec_cache_entry *entry)
{
    (void)data;
    printf("%s %s\n", entry->name, entry->kernel);
    return 0;
}

static void use_cache(void)
{
    fusec_error error;
    fusec_binary *binary = NULL;
    fusec_kernel_info info = {.struct_size = sizeof info};
    static const char cuda[] = "extern \"C\" __global__\nvoid nothing() {}\n";
    if (DO(fusec_binary_compile(cuda, "sm_90a", FUSEC_CUBIN, &binary, &error)) &&
        fusec_binary_kernel(binary, "nothing", &info) == FUSEC_OK)
        printf("%s spills %d\n", info.name, info.spill_bytes);
    if (binary && *fusec_binary_warning(binary)) {
        fprintf(stderr, "%s\n", fusec_binary_warning(binary));
        failed = true;
    }
    fusec_binary_destroy(binary);
    if (failed) return; /* it may not have been stored */
    (void)DO(fusec_cache_list(print_entry, NULL, &error));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    fusec_device *device = NULL;
    fusec_error error;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(what, "cpu")) {
        if (DO(fusec_device_cpu(&device, &error))) plan_and_launch(device, "twice", NULL);
    } else if (!strcmp(what, "gpu")) {
        if (DO(fusec_device_open(0, &device, &error))) plan_and_launch(device, "zero", NULL);
    } else if (!strcmp(what, "saved")) {
        if (DO(fusec_device_open(0, &device, &error))) plan_and_launch(device, "zero", "zero.plan");
        if (device && !failed) load_and_launch(device, "zero.plan");
    } else if (!strcmp(what, "target")) {
        if (DO(fusec_device_target("sm_90a", &device, &error))) save_for_target(device);
    } else if (!strcmp(what, "files")) {
        open_files();
    } else if (!strcmp(what, "grad")) {
        differentiate();
    } else {
        use_cache();
    }
    fusec_device_destroy(device);
    return failed ? 3 : 0;
}
