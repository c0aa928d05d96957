/* plan_info.c: what fusec.h tells about a plan: tensors, scalars, axes, kernels, code. */
#include "internal.h"

#include <string.h>

#define DTYPE(name, fuse, safetensors, cuda, bytes, type)                                \
    _Static_assert((int)FUSEC_##name == (int)DTYPE_##name, "fusec_dtype is dtypes.def");
#include "dtypes.def"
#undef DTYPE
_Static_assert((int)FUSEC_DTYPE_COUNT == (int)DTYPE_COUNT, "fusec_dtype is dtypes.def");

static bool is_dtype(fusec_dtype dtype)
{
    return (unsigned)dtype < (unsigned)FUSEC_DTYPE_COUNT;
}

const char *fusec_dtype_name(fusec_dtype dtype)
{
    return is_dtype(dtype) ? dtype_info[dtype].fuse : NULL;
}

size_t fusec_dtype_bytes(fusec_dtype dtype)
{
    return is_dtype(dtype) ? (size_t)dtype_info[dtype].bytes : 0;
}

const char *fusec_plan_text(const fusec_plan *plan)
{
    return plan->cuda ? plan->cuda : "";
}

const char *fusec_plan_graph(const fusec_plan *plan)
{
    return plan->launch->graph;
}

size_t fusec_plan_input_count(const fusec_plan *plan)
{
    return (size_t)plan->launch->input_count;
}

size_t fusec_plan_output_count(const fusec_plan *plan)
{
    return (size_t)(plan->launch->tensor_count - plan->launch->input_count);
}

size_t fusec_plan_tensor_count(const fusec_plan *plan)
{
    return (size_t)plan->launch->tensor_count;
}

size_t fusec_plan_scalar_count(const fusec_plan *plan)
{
    return (size_t)plan->launch->scalar_count;
}

size_t fusec_plan_axis_count(const fusec_plan *plan)
{
    return (size_t)plan->launch->axis_count;
}

size_t fusec_plan_kernel_count(const fusec_plan *plan)
{
    return (size_t)plan->launch->kernel_count;
}

fusec_status fusec_plan_tensor(const fusec_plan *plan, size_t index,
                               fusec_tensor_info *info)
{
    if (!plan || !info || index >= fusec_plan_tensor_count(plan))
        return FUSEC_INVALID_ARGUMENT;
    const LaunchTensor *tensor = &plan->launch->tensors[index];
    *info =
        (fusec_tensor_info){.name = tensor->name, .dtype = (fusec_dtype)tensor->dtype};
    info->is_output = tensor->output;
    info->is_wanted = tensor->wanted;
    for (int axis = 0; axis < plan->launch->axis_count; axis++)
        if (tensor->axes >> axis & 1)
            info->axes[info->rank++] = axis;
    return FUSEC_OK;
}

fusec_status fusec_plan_scalar(const fusec_plan *plan, size_t index,
                               fusec_scalar_info *info)
{
    if (!plan || !info || index >= fusec_plan_scalar_count(plan))
        return FUSEC_INVALID_ARGUMENT;
    const LaunchScalar *scalar = &plan->launch->scalars[index];
    *info = (fusec_scalar_info){scalar->name, (fusec_dtype)scalar->dtype,
                                scalar->has_default, scalar->default_value};
    return FUSEC_OK;
}

fusec_status fusec_plan_axis(const fusec_plan *plan, size_t index, fusec_axis_info *info)
{
    if (!plan || !info || index >= fusec_plan_axis_count(plan))
        return FUSEC_INVALID_ARGUMENT;
    *info =
        (fusec_axis_info){plan->launch->axis_names[index], plan->launch->sizes.of[index],
                          plan->launch->fixed >> index & 1};
    return FUSEC_OK;
}

fusec_status fusec_plan_kernel(const fusec_plan *plan, size_t index,
                               fusec_kernel_info *info)
{
    if (!plan || !info || index >= fusec_plan_kernel_count(plan))
        return FUSEC_INVALID_ARGUMENT;
    *info = plan->kernels[index];
    return FUSEC_OK;
}

const void *fusec_plan_binary(const fusec_plan *plan, size_t *bytes)
{
    if (bytes)
        *bytes = plan->module ? plan->module->code.bytes : 0;
    return plan->module ? plan->module->code.data : NULL;
}

const char *fusec_plan_schedule(const fusec_plan *plan)
{
    return plan->schedule;
}

double fusec_plan_milliseconds(const fusec_plan *plan)
{
    return plan->milliseconds;
}

int fusec_plan_was_cached(const fusec_plan *plan)
{
    return plan->module && plan->was_cached;
}
