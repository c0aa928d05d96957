/* launch.c: a launch: checks the arguments, computes grids and arguments from the LaunchPlan, hands
 * them to the driver. Everything is on the stack. The only driver calls are those that make the
 * context current, cuStreamIsCapturing and cuLaunchKernelEx, so a launch may be captured into a
 * CUDA graph. */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GRID_X = INT32_MAX, MAX_GRID_Y = 65535 };

typedef union {
    void *pointer;
    long long integer;
    int number;
    unsigned interval;
    float f32;
    double f64;
    bool boolean;
} ArgValue;

/* What the kernels of one launch have in common. */
typedef struct {
    const fusec_plan *plan;
    const fusec_tensor *inputs, *outputs;
    const double *scalars;
    char *workspace;
    Sizes sizes;
    int64_t offsets[MAX_LAUNCH_SLOTS];
} Launch;

/* A kernel with its arguments. */
typedef struct {
    CUfunction function;
    bool overlaps; /* it may start while the kernel before it ends */
    const LaunchKernel *kernel;
    const LaunchEntry *entry;
    int64_t grid[GRID_RANK];
    ArgValue *values; /* entry->arg_count of them */
} Ready;

struct fusec_call {
    fusec_plan *plan;
    int kernel_count;
    Ready *kernels;
    ArgValue *values;
};

static fusec_status open_launch(Launch *launch, fusec_error *error)
{
    const fusec_plan *plan = launch->plan;
    fusec_status status =
        check_tensors(plan, launch->inputs, launch->outputs, &launch->sizes, error);
    if (status == FUSEC_OK) status = check_scalars(plan, launch->scalars, error);
    if (status != FUSEC_OK || plan->device->cpu) return status;
    int64_t bytes = launch_workspace(plan->launch, &launch->sizes, launch->offsets);
    return check_workspace(plan, launch->inputs, launch->outputs, launch->workspace, bytes, error);
}

/* The stride of a tensor along an axis of the graph; 0 if it has none there. */
static int64_t tensor_stride(const LaunchPlan *plan, const fusec_tensor *tensor, int index,
                             int axis)
{
    AxisSet axes = plan->tensors[index].axes;
    if (!(axes >> axis & 1)) return 0;
    return tensor->strides[__builtin_popcount(axes & (((AxisSet)1 << axis) - 1))];
}

static ArgValue scalar_argument(const Launch *launch, int index)
{
    double value = scalar_value(launch->plan->launch, index, launch->scalars);
    switch (dtype_info[launch->plan->launch->scalars[index].dtype].type) {
    case TYPE_F64: return (ArgValue){.f64 = value};
    case TYPE_I64: return (ArgValue){.integer = int_from_double(value)};
    case TYPE_BOOL: return (ArgValue){.boolean = value != 0};
    case TYPE_F32: break;
    }
    return (ArgValue){.f32 = (float)value};
}

static const int64_t *strides_of(const void *data, int index)
{
    const Launch *launch = data;
    return launch_tensor(launch->plan->launch, index, launch->inputs, launch->outputs)->strides;
}

/* The stride between the rows of a tensor whose rows are evenly spaced. */
static int64_t row_stride(const Launch *launch, int index, AxisSet rows)
{
    int64_t stride;
    collapse_rows(launch->plan->launch, index, rows, &launch->sizes, strides_of(launch, index),
                  &stride);
    return stride;
}

static ArgValue argument(const Launch *launch, const LaunchArg *arg, AxisSet rows)
{
    const LaunchPlan *plan = launch->plan->launch;
    const fusec_tensor *tensor = NULL;
    if (arg->kind == ARG_TENSOR || arg->kind == ARG_STRIDE || arg->kind == ARG_ROW_STRIDE)
        tensor = launch_tensor(plan, arg->index, launch->inputs, launch->outputs);
    switch (arg->kind) {
    case ARG_TENSOR: return (ArgValue){.pointer = tensor->data};
    case ARG_STRIDE:
        return (ArgValue){.integer = tensor_stride(plan, tensor, arg->index, arg->axis)};
    case ARG_ROW_STRIDE: return (ArgValue){.integer = row_stride(launch, arg->index, rows)};
    case ARG_ROWS: return (ArgValue){.integer = collapsed_rows(plan, arg->index, &launch->sizes)};
    case ARG_SIZE: return (ArgValue){.integer = launch->sizes.of[arg->axis]};
    case ARG_SCALAR: return scalar_argument(launch, arg->index);
    case ARG_SLOT: return (ArgValue){.pointer = launch->workspace + launch->offsets[arg->index]};
    case ARG_INTERVAL:
        return (ArgValue){
            .interval = device_interval(launch->plan->device, plan, arg->index, &launch->sizes)};
    case ARG_ALONE:
        return (ArgValue){.number = takes_whole_groups(plan, arg->index, &launch->sizes)};
    case ARG_GRID: break;
    }
    return (ArgValue){.number = (int)launch_groups(plan, arg->index, arg->axis, &launch->sizes)};
}

/* Fills in a kernel; ready->values has room for its arguments. */
static fusec_status make_ready(const Launch *launch, int index, Ready *ready, fusec_error *error)
{
    const LaunchPlan *plan = launch->plan->launch;
    const LaunchKernel *kernel = &plan->kernels[index];
    ready->kernel = kernel;
    ready->entry = choose_entry(plan, index, &launch->sizes, strides_of, launch);
    const LoadedEntry *loaded =
        &launch->plan->entries[ready->entry == &kernel->entry ? index : plan->kernel_count + index];
    ready->function = loaded->function;
    ready->overlaps = loaded->overlaps && !launch->plan->no_early_start;
    for (int dim = 0; dim < GRID_RANK; dim++) {
        int64_t ctas = launch_ctas(plan, index, dim, &launch->sizes);
        if (ctas > (dim == 0 ? MAX_GRID_X : MAX_GRID_Y))
            return fail(error, FUSEC_UNSUPPORTED,
                        "kernel %s needs %" PRId64 " CTAs along grid dimension %d, too many",
                        ready->entry->name, ctas, dim);
        ready->grid[dim] = ctas;
    }
    if (kernel->cluster > 1 && ready->grid[0] % kernel->cluster != 0)
        return fail(error, FUSEC_UNSUPPORTED,
                    "kernel %s: %" PRId64 " CTAs are not a multiple of its cluster of %d",
                    ready->entry->name, ready->grid[0], kernel->cluster);
    for (int i = 0; i < ready->entry->arg_count; i++)
        ready->values[i] = argument(launch, &ready->entry->args[i], kernel->collapsed);
    return FUSEC_OK;
}

/* Whether launches into a stream become nodes of a CUDA graph. For the default stream the query
 * fails while another stream is captured; the launch then fails too, and reports it. */
static bool is_captured(const Driver *driver, fusec_stream stream)
{
    int is = 0;
    return driver->cuStreamIsCapturing(stream, &is) == CUDA_SUCCESS && is;
}

static unsigned set_attributes(const LaunchKernel *kernel, bool overlaps,
                               CUlaunchAttribute attributes[2])
{
    unsigned count = 0;
    if (kernel->mailbox >= 0) {
        CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
        cooperative.value.cooperative = 1;
        attributes[count++] = cooperative;
    } else if (kernel->cluster > 1) {
        CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        cluster.value.cluster.x = (unsigned)kernel->cluster;
        cluster.value.cluster.y = cluster.value.cluster.z = 1;
        attributes[count++] = cluster;
    }
    if (overlaps) {
        CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
        overlap.value.programmatic_stream_serialization = 1;
        attributes[count++] = overlap;
    }
    return count;
}

/* `first`: no kernel of the plan was launched before. Later kernels start early in a graph, too.
 * The first one does not: nodes of a graph start early anyway, and behind a kernel that does not
 * announce its end such an edge costs more than it gains. */
static fusec_status launch_ready(const Driver *driver, const Ready *ready, bool *first,
                                 fusec_stream stream, fusec_error *error)
{
    const LaunchKernel *kernel = ready->kernel;
    if (ready->grid[0] == 0 || ready->grid[1] == 0 || ready->grid[2] == 0) return FUSEC_OK;
    bool overlaps = ready->overlaps && !(*first && is_captured(driver, stream));
    *first = false;
    void *parameters[MAX_LAUNCH_ARGS];
    for (int i = 0; i < ready->entry->arg_count; i++) parameters[i] = &ready->values[i];
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {.block_y = 1, .block_z = 1};
    config.grid_x = (unsigned)ready->grid[0];
    config.grid_y = (unsigned)ready->grid[1];
    config.grid_z = (unsigned)ready->grid[2];
    config.block_x = (unsigned)kernel->threads;
    config.smem_bytes = (unsigned)launch_smem(kernel, ready->grid[0]);
    config.stream = stream;
    config.attributes = attributes;
    config.attribute_count = set_attributes(kernel, overlaps, attributes);
    return driver_check(driver,
                        driver->cuLaunchKernelEx(&config, ready->function, parameters, NULL),
                        ready->entry->name, error);
}

/* Prepares all kernels before the first one runs, so an argument error launches nothing. */
static fusec_status check_grids(const Launch *launch, fusec_error *error)
{
    fusec_status status = FUSEC_OK;
    ArgValue values[MAX_LAUNCH_ARGS];
    for (int k = 1; k < launch->plan->launch->kernel_count && status == FUSEC_OK; k++) {
        Ready ready = {.values = values};
        status = make_ready(launch, k, &ready, error);
    }
    return status;
}

static fusec_status launch_kernels(const Launch *launch, fusec_stream stream, fusec_error *error)
{
    const fusec_device *device = launch->plan->device;
    CurrentContext current;
    ArgValue values[MAX_LAUNCH_ARGS];
    bool first = true;
    fusec_status status = check_grids(launch, error);
    if (status == FUSEC_OK) status = device_enter(device, &current, error);
    if (status != FUSEC_OK) return status;
    for (int k = 0; k < launch->plan->launch->kernel_count && status == FUSEC_OK; k++) {
        Ready ready = {.values = values};
        status = make_ready(launch, k, &ready, error);
        if (status == FUSEC_OK)
            status = launch_ready(&device->driver, &ready, &first, stream, error);
    }
    context_leave(&current);
    return status;
}

fusec_status fusec_plan_launch(const fusec_plan *plan, const fusec_tensor *inputs,
                               const fusec_tensor *outputs, const double *scalars, void *workspace,
                               fusec_stream stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!plan) return fail_null(error, "the plan");
    Launch launch;
    launch.plan = plan;
    launch.inputs = inputs;
    launch.outputs = outputs;
    launch.scalars = scalars;
    launch.workspace = workspace;
    fusec_status status = open_launch(&launch, error);
    if (status == FUSEC_OK)
        status = plan->device->cpu
                     ? launch_on_cpu(plan, inputs, outputs, scalars, &launch.sizes, error)
                     : launch_kernels(&launch, stream, error);
    return status == FUSEC_OK ? succeed(error) : status;
}

/* ---- calls kept ready ---- */

static fusec_status fill_call(fusec_call *call, const Launch *launch, fusec_error *error)
{
    const LaunchPlan *plan = launch->plan->launch;
    size_t total = 0;
    for (int k = 0; k < plan->kernel_count; k++) total += (size_t)most_args(&plan->kernels[k]);
    call->kernels = calloc((size_t)plan->kernel_count + 1, sizeof *call->kernels);
    call->values = calloc(total + 1, sizeof *call->values);
    if (!call->kernels || !call->values) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    ArgValue *values = call->values;
    fusec_status status = FUSEC_OK;
    for (int k = 0; k < plan->kernel_count && status == FUSEC_OK; k++) {
        call->kernels[k].values = values;
        values += most_args(&plan->kernels[k]);
        status = make_ready(launch, k, &call->kernels[k], error);
    }
    call->kernel_count = plan->kernel_count;
    return status;
}

fusec_status fusec_call_create(const fusec_plan *plan, const fusec_tensor *inputs,
                               const fusec_tensor *outputs, const double *scalars, void *workspace,
                               fusec_call **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the call", error);
    if (!plan) return fail_null(error, "the plan");
    if (plan->device->cpu)
        return fail(error, FUSEC_UNSUPPORTED, "the CPU device has no prepared calls");
    if (plan->device->absent) return fail_absent(plan->device, error);
    Launch launch = {.plan = plan, .inputs = inputs, .outputs = outputs, .scalars = scalars};
    launch.workspace = workspace;
    fusec_status status = open_launch(&launch, error);
    if (status != FUSEC_OK) return status;
    fusec_call *call = calloc(1, sizeof *call);
    if (!call) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    plan_retain(plan);
    call->plan = (fusec_plan *)plan;
    status = fill_call(call, &launch, error);
    if (status != FUSEC_OK) {
        fusec_call_destroy(call);
        return status;
    }
    *result = call;
    return succeed(error);
}

fusec_status fusec_call_launch(const fusec_call *call, fusec_stream stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!call) return fail_null(error, "the call");
    const fusec_device *device = call->plan->device;
    CurrentContext current;
    bool first = true;
    fusec_status status = device_enter(device, &current, error);
    for (int k = 0; k < call->kernel_count && status == FUSEC_OK; k++)
        status = launch_ready(&device->driver, &call->kernels[k], &first, stream, error);
    context_leave(&current);
    return status == FUSEC_OK ? succeed(error) : status;
}

void fusec_call_destroy(fusec_call *call)
{
    if (!call) return;
    fusec_plan_destroy(call->plan);
    free(call->kernels);
    free(call->values);
    free(call);
}
