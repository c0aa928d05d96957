/* plan_info.c: the facts about a plan that fusec.h returns: tensors, scalars, axes, kernels,
 * code. */
#include "internal.h"

#include "cubin.h"

#include <string.h>

#define DTYPE(name, fuse, safetensors, cuda, bytes, type)                                          \
    _Static_assert((int)FUSEC_##name == (int)DTYPE_##name, "fusec_dtype is base/dtypes.def");
#include "base/dtypes.def"
#undef DTYPE
_Static_assert((int)FUSEC_DTYPE_COUNT == (int)DTYPE_COUNT, "fusec_dtype is base/dtypes.def");

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
    return plan && plan->cuda ? plan->cuda : "";
}

const char *fusec_plan_graph(const fusec_plan *plan)
{
    return plan ? plan->launch->graph : "";
}

const char *fusec_plan_arch(const fusec_plan *plan)
{
    return plan ? plan->arch : "";
}

size_t fusec_plan_input_count(const fusec_plan *plan)
{
    return plan ? (size_t)plan->launch->input_count : 0;
}

size_t fusec_plan_output_count(const fusec_plan *plan)
{
    return fusec_plan_tensor_count(plan) - fusec_plan_input_count(plan);
}

size_t fusec_plan_tensor_count(const fusec_plan *plan)
{
    return plan ? (size_t)plan->launch->tensor_count : 0;
}

size_t fusec_plan_scalar_count(const fusec_plan *plan)
{
    return plan ? (size_t)plan->launch->scalar_count : 0;
}

size_t fusec_plan_axis_count(const fusec_plan *plan)
{
    return plan ? (size_t)plan->launch->axis_count : 0;
}

size_t fusec_plan_kernel_count(const fusec_plan *plan)
{
    return plan ? (size_t)plan->launch->kernel_count : 0;
}

fusec_status answer_info(void *info, const void *own, size_t size)
{
    return copy_info(info, own, size) ? FUSEC_OK : FUSEC_INVALID_ARGUMENT;
}

fusec_status fusec_plan_tensor(const fusec_plan *plan, size_t index, fusec_tensor_info *info)
{
    if (!plan || !info || index >= fusec_plan_tensor_count(plan)) return FUSEC_INVALID_ARGUMENT;
    const LaunchTensor *tensor = &plan->launch->tensors[index];
    fusec_tensor_info own = {.name = tensor->name, .dtype = (fusec_dtype)tensor->dtype};
    own.is_output = tensor->output;
    own.is_wanted = tensor->wanted;
    if (tensor->output) own.summed = plan_sums(plan, (int)index - plan->launch->input_count);
    for (int axis = 0; axis < plan->launch->axis_count; axis++)
        if (tensor->axes >> axis & 1) own.axes[own.rank++] = axis;
    return answer_info(info, &own, sizeof own);
}

fusec_status fusec_plan_scalar(const fusec_plan *plan, size_t index, fusec_scalar_info *info)
{
    if (!plan || !info || index >= fusec_plan_scalar_count(plan)) return FUSEC_INVALID_ARGUMENT;
    const LaunchScalar *scalar = &plan->launch->scalars[index];
    const fusec_scalar_info own = {.name = scalar->name,
                                   .dtype = (fusec_dtype)scalar->dtype,
                                   .has_default = scalar->has_default,
                                   .default_value = scalar->default_value};
    return answer_info(info, &own, sizeof own);
}

fusec_status fusec_plan_axis(const fusec_plan *plan, size_t index, fusec_axis_info *info)
{
    if (!plan || !info || index >= fusec_plan_axis_count(plan)) return FUSEC_INVALID_ARGUMENT;
    const fusec_axis_info own = {.name = plan->launch->axis_names[index],
                                 .size = plan->launch->sizes.of[index],
                                 .is_fixed = plan->launch->fixed >> index & 1,
                                 .is_divisible = plan_divisible(plan) >> index & 1};
    return answer_info(info, &own, sizeof own);
}

fusec_status fusec_plan_kernel(const fusec_plan *plan, size_t index, fusec_kernel_info *info)
{
    if (!plan || !info || index >= fusec_plan_kernel_count(plan)) return FUSEC_INVALID_ARGUMENT;
    return answer_info(info, &plan->kernels[index], sizeof plan->kernels[index]);
}

const void *fusec_plan_binary(const fusec_plan *plan, size_t *bytes)
{
    const CodeModule *module = plan ? plan->module : NULL;
    if (bytes) *bytes = module ? module->code.bytes : 0;
    return module ? module->code.data : NULL;
}

const void *fusec_plan_cubin(const fusec_plan *plan, size_t index, size_t *bytes)
{
    const CodeModule *module = plan ? plan->module : NULL;
    if (bytes) *bytes = 0;
    if (!module || module->is_ptx) return NULL;
    for (size_t at = 0; at < module->code.bytes;) {
        const char *cubin = module->code.data + at;
        const size_t own = cubin_bytes(cubin, module->code.bytes - at);
        if (index-- == 0) {
            if (bytes) *bytes = own;
            return cubin;
        }
        at += own;
    }
    return NULL;
}

const char *fusec_plan_schedule(const fusec_plan *plan)
{
    return plan ? plan->schedule : NULL;
}

double fusec_plan_milliseconds(const fusec_plan *plan)
{
    return plan ? plan->milliseconds : 0;
}

int fusec_plan_was_cached(const fusec_plan *plan)
{
    return plan && plan->module && plan->was_cached;
}
