/* arguments.c: from the tensors that torch passes to the tensors and sizes of a launch. */
#include "ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *dtype_text(int32_t torch_dtype)
{
    for (int i = 0; i < FUSEC_DTYPE_COUNT; i++)
        if (torch.dtypes[i] == torch_dtype) return fusec_dtype_name((fusec_dtype)i);
    return "another dtype";
}

static bool is_float(const char *dtype)
{
    return *dtype == 'f' || !strcmp(dtype, "bf16");
}

static bool fail_dtype(Call *call, const Declared *declared, int32_t torch_dtype)
{
    const char *given = dtype_text(torch_dtype), *wanted = fusec_dtype_name(declared->dtype);
    if (!is_float(given) || !is_float(wanted))
        return call_fail(call, "%s is %s, the graph declares %s", declared->name, given, wanted);
    return call_fail(call,
                     "%s is %s, the graph declares %s: cast it, or make the operator with "
                     "dtypes={\"%s\": \"%s\"}",
                     declared->name, given, wanted, declared->name, given);
}

static bool check_place(Call *call, int index, TorchTensor tensor)
{
    const Declared *declared = &call->op->tensors[index];
    int32_t type = 0, number = 0, dtype = 0;
    torch.get_device_type(tensor, &type);
    torch.get_device_index(tensor, &number);
    torch.get_dtype(tensor, &dtype);
    if (index == 0) call->device_type = type, call->device_index = number;
    if (type != call->device_type || number != call->device_index)
        return call_fail(call, "%s is on another device than %s", declared->name,
                         call->op->tensors[0].name);
    return dtype == torch.dtypes[declared->dtype] || fail_dtype(call, declared, dtype);
}

/* The strides with which the axes 0..count-1 are one axis; false: there are none. */
static bool collapse(const int64_t *sizes, const int64_t *strides, int count, int64_t *stride)
{
    int64_t expected = 0;
    bool any = false;
    *stride = 1;
    for (int i = count - 1; i >= 0; i--) {
        if (sizes[i] == 0) return true;
        if (sizes[i] == 1) continue;
        if (any && strides[i] != expected) return false;
        if (!any) *stride = strides[i];
        any = true;
        expected = strides[i] * sizes[i];
    }
    return true;
}

/* Replaces an argument by a dense copy. */
static bool copy_argument(Call *call, int index, int rank, const int64_t *sizes)
{
    int64_t strides[2 * FUSEC_MAX_RANK], dense = 1;
    TorchTensor copy;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = dense;
        dense *= sizes[i];
    }
    const int32_t dtype = torch.dtypes[call->op->tensors[index].dtype];
    if (torch.empty_strided(rank, sizes, strides, dtype, call->device_type, call->device_index,
                            &copy))
        return call_fail(call, "no memory for a copy of %s", call->op->tensors[index].name);
    if (torch.copy_(copy, call->tensors[index], 0)) {
        torch.delete_tensor_object(copy);
        return call_fail(call, "%s could not be copied", call->op->tensors[index].name);
    }
    torch.delete_tensor_object(call->tensors[index]);
    call->tensors[index] = copy;
    return true;
}

/* "2 x 3" */
static const char *print_times(const int64_t *sizes, int count, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < count && length < size; i++)
        length +=
            (size_t)snprintf(text + length, size - length, "%s%" PRId64, i ? " x " : "", sizes[i]);
    return text;
}

/* The first input that has the axis: its size was taken from there. */
static const char *first_with(const Op *op, int axis)
{
    for (int i = 0; i < op->inputs; i++)
        for (int j = 0; j < op->tensors[i].rank; j++)
            if (op->tensors[i].axes[j] == axis) return op->tensors[i].name;
    return "another input";
}

static bool read_lead(Call *call, int index, int count, const int64_t *sizes)
{
    const Declared *declared = &call->op->tensors[index];
    if (!call->leading) {
        call->leading = count;
        call->sizes[0] = 1;
        for (int i = 0; i < count; i++) {
            call->lead[i] = sizes[i];
            call->sizes[0] *= sizes[i];
        }
        return true;
    }
    bool same = count == call->leading;
    for (int i = 0; same && i < count; i++) same = sizes[i] == call->lead[i];
    if (same) return true;
    char mine[160], others[160];
    return call_fail(call, "axis %s is %s in %s but %s in %s", call->op->axis_names[0],
                     print_times(sizes, count, mine, sizeof mine), declared->name,
                     print_times(call->lead, call->leading, others, sizeof others),
                     first_with(call->op, 0));
}

static bool read_size(Call *call, int index, int axis, int64_t size)
{
    if (call->sizes[axis] >= 0 && call->sizes[axis] != size)
        return call_fail(call, "axis %s is %" PRId64 " in %s but %" PRId64 " in %s",
                         call->op->axis_names[axis], size, call->op->tensors[index].name,
                         call->sizes[axis], first_with(call->op, axis));
    call->sizes[axis] = size;
    return true;
}

static bool fail_rank(Call *call, const Declared *declared, int rank)
{
    enum { ROOM = 128 };
    char names[ROOM] = "";
    for (int i = 0; i < declared->rank; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.32s", i ? ", " : "",
                 call->op->axis_names[declared->axes[i]]);
    }
    return call_fail(call, "%s has %d %s, the graph declares %d: view it as [%s]", declared->name,
                     rank, rank == 1 ? "axis" : "axes", declared->rank, names);
}

/* Takes the sizes of the axes from a tensor. Its leading axes beyond those declared, and the one
 * behind them, are the graph's first axis: *extra is their number less one. */
static bool read_shape(Call *call, int index, int rank, const int64_t *sizes, int *extra)
{
    const Declared *declared = &call->op->tensors[index];
    const bool has_rows = declared->rank && declared->axes[0] == 0;
    *extra = rank - declared->rank;
    if (*extra < 0 || (*extra && !has_rows) || *extra >= FUSEC_MAX_RANK)
        return fail_rank(call, declared, rank);
    if (has_rows && !read_lead(call, index, *extra + 1, sizes)) return false;
    for (int i = has_rows; i < declared->rank; i++)
        if (!read_size(call, index, declared->axes[i], sizes[*extra + i])) return false;
    return true;
}

bool call_describe(Call *call, int index, int extra, const int64_t *sizes, const int64_t *strides)
{
    const Declared *declared = &call->op->tensors[index];
    fusec_tensor *view = &call->views[index];
    view->dtype = declared->dtype;
    view->rank = declared->rank;
    torch.get_data_ptr(call->tensors[index], &view->data);
    for (int i = 0; i < declared->rank; i++) {
        view->sizes[i] = sizes[extra + i];
        view->strides[i] = strides[extra + i];
    }
    if (!extra) return true;
    view->sizes[0] = call->sizes[0];
    return collapse(sizes, strides, extra + 1, &view->strides[0]);
}

static bool is_dense(const fusec_tensor *view)
{
    for (int i = 0; i < view->rank; i++)
        if (!view->sizes[i]) return true;
    return !view->rank || view->sizes[view->rank - 1] <= 1 || view->strides[view->rank - 1] == 1;
}

static bool fail_stride(Call *call, int index)
{
    const fusec_tensor *view = &call->views[index];
    const char *name = call->op->tensors[index].name;
    return call_fail(
        call, "the last axis of %s has stride %" PRId64 ", it must be 1: pass %s.contiguous()",
        name, view->strides[view->rank - 1], name);
}

static bool read_tensor(Call *call, int index)
{
    int64_t rank = 0, *sizes = NULL, *strides = NULL;
    int extra;
    torch.get_dim(call->tensors[index], &rank);
    torch.get_sizes(call->tensors[index], &sizes);
    torch.get_strides(call->tensors[index], &strides);
    if (!check_place(call, index, call->tensors[index]) ||
        !read_shape(call, index, (int)rank, sizes, &extra))
        return false;
    if (call_describe(call, index, extra, sizes, strides)) {
        if (is_dense(&call->views[index])) return true;
        if (call->op->kind != OP_BACKWARD) return fail_stride(call, index);
    }
    if (!copy_argument(call, index, (int)rank, sizes)) return false;
    torch.get_sizes(call->tensors[index], &sizes);
    torch.get_strides(call->tensors[index], &strides);
    return call_describe(call, index, extra, sizes, strides);
}

bool call_read_inputs(Call *call)
{
    const Op *op = call->op;
    for (int i = 0; i < op->axes; i++) call->sizes[i] = -1;
    for (int i = 0; i < op->inputs; i++)
        if (!read_tensor(call, i)) return false;
    for (int i = 0; i < op->axes; i++) {
        if (call->sizes[i] >= 0) continue;
        call->sizes[i] = op->axis_sizes[i];
        if (call->sizes[i] < 0)
            return call_fail(call, "no input has axis %s, and it has no default size",
                             op->axis_names[i]);
    }
    return true;
}

int call_output_shape(const Call *call, const Declared *output, int64_t *sizes)
{
    int rank = 0;
    for (int i = 0; i < output->rank; i++) {
        if (output->axes[i] || !call->leading) {
            sizes[rank++] = call->sizes[output->axes[i]];
            continue;
        }
        for (int j = 0; j < call->leading; j++) sizes[rank++] = call->lead[j];
    }
    return rank;
}
