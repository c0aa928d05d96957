/* launch_cpu.c: a launch on the CPU device: the reference evaluator on host pointers.
 *
 * The evaluator takes dense tensors. Strided inputs are gathered into buffers first; strided
 * outputs, and outputs that replace an input, are computed into buffers and scattered
 * afterwards. */
#include "internal.h"

#include "reference/reference.h"

#include <stdlib.h>
#include <string.h>

/* One launch, by parameter or output index of the graph; buffers[] are ours to free. */
typedef struct {
    const fusec_plan *plan;
    HostTensor *inputs, *outputs;
    double *scalars;
    void **buffers;
    int buffer_count;
} CpuLaunch;

static int64_t element_count(const fusec_tensor *t)
{
    int64_t count = 1;
    bool overflow = false;
    for (int i = 0; i < t->rank; i++) {
        if (t->sizes[i] == 0) return 0;
        overflow |= __builtin_mul_overflow(count, t->sizes[i], &count);
    }
    return overflow ? INT64_MAX : count;
}

static bool is_dense(const fusec_tensor *t)
{
    int64_t expected = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->sizes[i] != 1 && t->strides[i] != expected) return false;
        expected *= t->sizes[i];
    }
    return true;
}

/* Copies between a tensor and its dense form, a dense row at a time. */
static void copy_rows(const fusec_tensor *t, int axis, char *strided, char **dense, bool gather)
{
    int64_t bytes = dtype_info[t->dtype].bytes;
    if (axis >= t->rank - 1) {
        size_t row = (size_t)((t->rank ? t->sizes[t->rank - 1] : 1) * bytes);
        memcpy(gather ? *dense : strided, gather ? strided : *dense, row);
        *dense += row;
        return;
    }
    for (int64_t i = 0; i < t->sizes[axis]; i++)
        copy_rows(t, axis + 1, strided + i * t->strides[axis] * bytes, dense, gather);
}

static void *new_buffer(CpuLaunch *launch, const fusec_tensor *t)
{
    int64_t count = element_count(t), bytes;
    if (__builtin_mul_overflow(count, (int64_t)dtype_info[t->dtype].bytes, &bytes)) return NULL;
    void *buffer = malloc(bytes ? (size_t)bytes : 1);
    if (buffer) launch->buffers[launch->buffer_count++] = buffer;
    return buffer;
}

static bool bind_input(CpuLaunch *launch, const fusec_tensor *t, HostTensor *host)
{
    *host = (HostTensor){t->data, (DType)t->dtype, host->axes};
    if (t->data && element_count(t) != 0 && is_dense(t)) return true;
    char *dense = host->data = new_buffer(launch, t);
    if (dense && element_count(t) != 0) copy_rows(t, 0, t->data, &dense, true);
    return host->data != NULL;
}

static bool bind_inputs(CpuLaunch *launch, const fusec_tensor *inputs, const double *scalars)
{
    const LaunchPlan *plan = launch->plan->launch;
    const Graph *graph = launch->plan->compilation.lowered;
    int tensor = 0, scalar = 0;
    for (int p = 0; p < graph->params.count; p++) {
        const Param *param = &graph->params.data[p];
        launch->inputs[p] = (HostTensor){NULL, param->dtype, param->axes};
        if (param->scalar) {
            launch->scalars[p] = scalar_value(plan, scalar++, scalars);
            continue;
        }
        bool wanted = plan->tensors[tensor].wanted;
        if (wanted && !bind_input(launch, &inputs[tensor], &launch->inputs[p])) return false;
        tensor++;
    }
    return true;
}

static bool bind_outputs(CpuLaunch *launch, const fusec_tensor *outputs)
{
    const LaunchPlan *plan = launch->plan->launch;
    for (int o = 0; o < plan->tensor_count - plan->input_count; o++) {
        const LaunchTensor *declared = &plan->tensors[plan->input_count + o];
        launch->outputs[o] = (HostTensor){NULL, declared->dtype, declared->axes};
        if (!declared->wanted || element_count(&outputs[o]) == 0) continue;
        bool direct = is_dense(&outputs[o]) && !launch->plan->in_place;
        launch->outputs[o].data = direct ? outputs[o].data : new_buffer(launch, &outputs[o]);
        if (!launch->outputs[o].data) return false;
    }
    return true;
}

static void scatter_outputs(const CpuLaunch *launch, const fusec_tensor *outputs)
{
    const LaunchPlan *plan = launch->plan->launch;
    for (int o = 0; o < plan->tensor_count - plan->input_count; o++) {
        char *dense = launch->outputs[o].data;
        if (dense && dense != outputs[o].data)
            copy_rows(&outputs[o], 0, outputs[o].data, &dense, false);
    }
}

/* The graph as written; or, where it names an input that no output needs, and that has no memory,
 * the simplified graph, which does not name it. Both give the same. */
static const Graph *graph_to_evaluate(const fusec_plan *plan)
{
    for (int i = 0; i < plan->launch->input_count; i++)
        if (!plan->launch->tensors[i].wanted) return plan->compilation.graph;
    return plan->compilation.lowered;
}

static bool run(CpuLaunch *launch, const fusec_tensor *inputs, const fusec_tensor *outputs,
                const double *scalars, const Sizes *sizes)
{
    if (!bind_inputs(launch, inputs, scalars) || !bind_outputs(launch, outputs)) return false;
    Evaluation evaluation = {.graph = graph_to_evaluate(launch->plan), .sizes = *sizes};
    evaluation.inputs = launch->inputs;
    evaluation.scalars = launch->scalars;
    evaluation.outputs = launch->outputs;
    if (!evaluate(&evaluation)) return false;
    scatter_outputs(launch, outputs);
    return true;
}

fusec_status launch_on_cpu(const fusec_plan *plan, const fusec_tensor *inputs,
                           const fusec_tensor *outputs, const double *scalars, const Sizes *sizes,
                           fusec_error *error)
{
    size_t params = (size_t)plan->compilation.lowered->params.count + 1;
    size_t tensors = (size_t)plan->launch->tensor_count + 1;
    CpuLaunch launch = {.plan = plan};
    launch.inputs = calloc(params, sizeof *launch.inputs);
    launch.scalars = calloc(params, sizeof *launch.scalars);
    launch.outputs = calloc(tensors, sizeof *launch.outputs);
    launch.buffers = calloc(tensors, sizeof *launch.buffers);
    bool ok = launch.inputs && launch.scalars && launch.outputs && launch.buffers &&
              run(&launch, inputs, outputs, scalars, sizes);
    for (int i = 0; i < launch.buffer_count; i++) free(launch.buffers[i]);
    free(launch.buffers);
    free(launch.outputs);
    free(launch.scalars);
    free(launch.inputs);
    return ok ? FUSEC_OK : fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
}
