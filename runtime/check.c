/* check.c: whether the tensors of a launch fit the plan. What would be a crash or a wrong result
 * becomes a status and a message. Nothing here allocates. */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORKSPACE_ALIGNMENT = 256 };

/* The bytes that a tensor's elements occupy: [low, high). Empty tensors have low == high. */
typedef struct {
    uintptr_t low, high;
} Extent;

static bool is_empty(const fusec_tensor *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] == 0) return true;
    return false;
}

/* false if the extent does not fit an address space. */
static bool find_extent(const fusec_tensor *t, Extent *extent)
{
    int64_t bytes = dtype_info[t->dtype].bytes, below = 0, above = bytes;
    *extent = (Extent){(uintptr_t)t->data, (uintptr_t)t->data};
    if (is_empty(t)) return true;
    for (int i = 0; i < t->rank; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(t->sizes[i] - 1, t->strides[i], &reach) ||
            __builtin_mul_overflow(reach, bytes, &reach) ||
            __builtin_add_overflow(reach < 0 ? below : above, reach, reach < 0 ? &below : &above))
            return false;
    }
    uintptr_t down = (uintptr_t)0 - (uintptr_t)below;
    if (down > extent->low || (uintptr_t)above > UINTPTR_MAX - extent->high) return false;
    extent->low -= down;
    extent->high += (uintptr_t)above;
    return true;
}

/* ---- one tensor alone ---- */

/* The first tensor that has an axis; its size is then the launch's. */
static const char *first_with(const LaunchPlan *launch, int axis)
{
    for (int i = 0; i < launch->tensor_count; i++)
        if (launch->tensors[i].wanted && launch->tensors[i].axes >> axis & 1)
            return launch->tensors[i].name;
    return "";
}

static fusec_status check_sizes(const fusec_plan *plan, const LaunchTensor *declared,
                                const fusec_tensor *t, Sizes *sizes, AxisSet *known,
                                fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    int i = 0;
    for (int axis = 0; axis < launch->axis_count; axis++) {
        if (!(declared->axes >> axis & 1)) continue;
        int64_t size = t->sizes[i++];
        if (size < 0)
            return fail(error, FUSEC_INVALID_TENSOR, "%s: size of %s is negative", declared->name,
                        launch->axis_names[axis]);
        bool fixed = launch->fixed >> axis & 1;
        if ((fixed || (*known >> axis & 1)) && size != sizes->of[axis])
            return fail(error, FUSEC_INVALID_TENSOR,
                        "%s: size of %s is %" PRId64 ", but %s%s %" PRId64, declared->name,
                        launch->axis_names[axis], size,
                        fixed ? "the plan was compiled for" : first_with(launch, axis),
                        fixed ? "" : " has", sizes->of[axis]);
        sizes->of[axis] = size;
        *known |= (AxisSet)1 << axis;
    }
    return FUSEC_OK;
}

static fusec_status check_layout(const LaunchTensor *declared, const fusec_tensor *t,
                                 fusec_error *error)
{
    Extent extent;
    int last = t->rank - 1;
    if (is_empty(t)) return FUSEC_OK;
    if (!t->data) return fail(error, FUSEC_INVALID_TENSOR, "%s: data is NULL", declared->name);
    if (last >= 0 && t->sizes[last] > 1 && t->strides[last] != 1)
        return fail(error, FUSEC_INVALID_TENSOR,
                    "%s: the stride of the last axis is %" PRId64 ", it must be 1", declared->name,
                    t->strides[last]);
    int bytes = dtype_info[declared->dtype].bytes;
    if ((uintptr_t)t->data % (uintptr_t)bytes != 0)
        return fail(error, FUSEC_INVALID_TENSOR, "%s: data is not aligned to its %d-byte elements",
                    declared->name, bytes);
    if (!find_extent(t, &extent))
        return fail(error, FUSEC_INVALID_TENSOR, "%s: reaches beyond the address space",
                    declared->name);
    if (declared->output && !elements_are_apart(t->rank, t->sizes, t->strides))
        return fail(error, FUSEC_INVALID_TENSOR,
                    "%s: the strides make elements of the output overlap", declared->name);
    return FUSEC_OK;
}

static fusec_status check_tensor(const fusec_plan *plan, const LaunchTensor *declared,
                                 const fusec_tensor *t, Sizes *sizes, AxisSet *known,
                                 fusec_error *error)
{
    if (t->dtype != (fusec_dtype)declared->dtype) {
        const char *given = fusec_dtype_name(t->dtype);
        return fail(error, FUSEC_INVALID_TENSOR, "%s: is %s, must be %s", declared->name,
                    given ? given : "of no known dtype", dtype_info[declared->dtype].fuse);
    }
    int rank = __builtin_popcount(declared->axes);
    if (t->rank != rank)
        return fail(error, FUSEC_INVALID_TENSOR, "%s: has rank %d, must have %d", declared->name,
                    t->rank, rank);
    fusec_status status = check_sizes(plan, declared, t, sizes, known, error);
    return status == FUSEC_OK ? check_layout(declared, t, error) : status;
}

/* ---- overlaps ---- */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Removes the axes that lie densely behind each other; the others' strides join the pitch. Returns
 * the bytes of the dense run, which begins at the tensor's data modulo the pitch. */
static uint64_t dense_run(const fusec_tensor *t, uint64_t *pitch)
{
    uint64_t bytes = (uint64_t)dtype_info[t->dtype].bytes, run = bytes;
    bool dense = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->sizes[i] == 1) continue;
        uint64_t stride = (uint64_t)imaxabs(t->strides[i]) * bytes;
        dense = dense && t->strides[i] > 0 && stride == run;
        if (dense)
            run *= (uint64_t)t->sizes[i];
        else
            *pitch = greatest_divisor(*pitch, stride);
    }
    return run;
}

/* Two tensors whose extents overlap may still be slices of one wider buffer, side by side: modulo
 * the common divisor of all their outer strides each stays within its own columns. */
static bool are_interleaved(const fusec_tensor *a, const fusec_tensor *b)
{
    uint64_t pitch = 0;
    uint64_t run_a = dense_run(a, &pitch), run_b = dense_run(b, &pitch);
    if (pitch == 0 || run_a > pitch || run_b > pitch) return false;
    uint64_t gap =
        ((uint64_t)(uintptr_t)b->data % pitch + pitch - (uint64_t)(uintptr_t)a->data % pitch) %
        pitch;
    return gap >= run_a && gap + run_b <= pitch;
}

static bool overlap(const fusec_tensor *a, const fusec_tensor *b)
{
    Extent x, y;
    find_extent(a, &x);
    find_extent(b, &y);
    bool apart = x.low == x.high || y.low == y.high || x.high <= y.low || y.high <= x.low;
    return !apart && !are_interleaved(a, b);
}

static bool same_layout(const fusec_tensor *a, const fusec_tensor *b)
{
    bool same = a->data == b->data && a->rank == b->rank &&
                dtype_info[a->dtype].bytes == dtype_info[b->dtype].bytes;
    for (int i = 0; same && i < a->rank; i++)
        same = a->sizes[i] == b->sizes[i] && (a->sizes[i] == 1 || a->strides[i] == b->strides[i]);
    return same;
}

static fusec_status check_pair(const fusec_plan *plan, int output, int other,
                               const fusec_tensor *inputs, const fusec_tensor *outputs,
                               fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    const fusec_tensor *out = launch_tensor(launch, output, inputs, outputs);
    const fusec_tensor *t = launch_tensor(launch, other, inputs, outputs);
    if (!overlap(out, t)) return FUSEC_OK;
    const char *name = launch->tensors[output].name, *other_name = launch->tensors[other].name;
    if (other >= launch->input_count)
        return fail(error, FUSEC_INVALID_TENSOR, "outputs %s and %s overlap", other_name, name);
    if (!plan->in_place || !same_layout(out, t))
        return fail(error, FUSEC_INVALID_TENSOR, "output %s overlaps input %s%s", name, other_name,
                    !same_layout(out, t) ? " and has another layout"
                                         : "; the plan option in_place can allow that");
    if (!may_lie_on(launch, other, output))
        return fail(error, FUSEC_INVALID_TENSOR,
                    "output %s cannot replace input %s: this plan reads it afterwards", name,
                    other_name);
    return FUSEC_OK;
}

static fusec_status check_overlaps(const fusec_plan *plan, const fusec_tensor *inputs,
                                   const fusec_tensor *outputs, fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    fusec_status status = FUSEC_OK;
    for (int o = launch->input_count; o < launch->tensor_count; o++)
        for (int i = 0; i < o && launch->tensors[o].wanted && status == FUSEC_OK; i++)
            if (launch->tensors[i].wanted) status = check_pair(plan, o, i, inputs, outputs, error);
    return status;
}

/* ---- all of them ---- */

fusec_status check_tensors(const fusec_plan *plan, const fusec_tensor *inputs,
                           const fusec_tensor *outputs, Sizes *sizes, fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    AxisSet known = 0;
    *sizes = launch->sizes;
    if ((!inputs && launch->input_count) ||
        (!outputs && launch->tensor_count > launch->input_count))
        return fail_null(error, outputs ? "inputs" : "outputs");
    for (int i = 0; i < launch->tensor_count; i++) {
        if (!launch->tensors[i].wanted) continue;
        fusec_status status =
            check_tensor(plan, &launch->tensors[i], launch_tensor(launch, i, inputs, outputs),
                         sizes, &known, error);
        if (status != FUSEC_OK) return status;
    }
    return check_overlaps(plan, inputs, outputs, error);
}

fusec_status check_workspace(const fusec_plan *plan, const fusec_tensor *inputs,
                             const fusec_tensor *outputs, const void *workspace, int64_t bytes,
                             fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    if (bytes == 0) return FUSEC_OK;
    uintptr_t low = (uintptr_t)workspace;
    if (!workspace)
        return fail(error, FUSEC_INVALID_ARGUMENT,
                    "the workspace is NULL, but the plan needs %" PRId64 " bytes", bytes);
    if (low % WORKSPACE_ALIGNMENT != 0 || (uint64_t)bytes > UINTPTR_MAX - low)
        return fail(error, FUSEC_INVALID_ARGUMENT, "the workspace is not aligned to %d bytes",
                    WORKSPACE_ALIGNMENT);
    for (int i = 0; i < launch->tensor_count; i++) {
        Extent extent;
        if (!launch->tensors[i].wanted) continue;
        find_extent(launch_tensor(launch, i, inputs, outputs), &extent);
        if (extent.low < extent.high && extent.low < low + (uintptr_t)bytes && low < extent.high)
            return fail(error, FUSEC_INVALID_ARGUMENT, "the workspace overlaps %s",
                        launch->tensors[i].name);
    }
    return FUSEC_OK;
}

fusec_status check_scalars(const fusec_plan *plan, const double *scalars, fusec_error *error)
{
    const LaunchPlan *launch = plan->launch;
    for (int i = 0; i < launch->scalar_count; i++) {
        const LaunchScalar *scalar = &launch->scalars[i];
        if (!scalars && !scalar->has_default)
            return fail(error, FUSEC_INVALID_ARGUMENT, "scalar %s has no default: give the scalars",
                        scalar->name);
        if (scalars && !dtype_takes(scalar->dtype, scalars[i]))
            return fail(error, FUSEC_INVALID_ARGUMENT, "%g is not a value for %s, a scalar of %s",
                        scalars[i], scalar->name, dtype_info[scalar->dtype].fuse);
    }
    return FUSEC_OK;
}

double scalar_value(const LaunchPlan *plan, int index, const double *scalars)
{
    const LaunchScalar *scalar = &plan->scalars[index];
    return scalars ? dtype_round(scalar->dtype, scalars[index]) : scalar->default_value;
}
