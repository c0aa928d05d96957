/* ops.c: the operators and their kernels. Torch gives a kernel no pointer to what it belongs to, so
 * each operator has a function of its own from a fixed set. */
#include "ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Op *ops[MOST_OPS];
static int op_count;
static pthread_mutex_t defining = PTHREAD_MUTEX_INITIALIZER;

bool call_fail(Call *call, const char *format, ...)
{
    va_list arguments;
    if (*call->message) return false;
    const int length = snprintf(call->message, sizeof call->message, "%s: ", call->op->graph);
    va_start(arguments, format);
    if (length > 0)
        vsnprintf(call->message + length, sizeof call->message - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- a call ---- */

static double scalar_value(StableValue value, fusec_dtype dtype)
{
    int64_t integer;
    double number;
    memcpy(&integer, &value, sizeof integer);
    memcpy(&number, &value, sizeof number);
    if (dtype == FUSEC_BOOL) return (value & 0xff) != 0;
    return dtype <= FUSEC_F8E5M2 ? number : (double)integer;
}

/* Takes the arguments off the stack: the tensors are the call's from then on. */
static void take_arguments(Call *call)
{
    const Op *op = call->op;
    const StableValue *next = call->stack;
    for (int i = 0; i < op->inputs; i++) call->tensors[i] = (TorchTensor)(uintptr_t)*next++;
    for (int i = 0; i < op->scalars; i++)
        call->scalars[i] = scalar_value(*next++, op->scalar_dtypes[i]);
    call->wanted = op->kind == OP_BACKWARD ? *next++ & ((1ull << op->outputs) - 1) : op->wanted;
    for (int i = 0; op->kind == OP_OUT && i < op->outputs; i++)
        if (op->wanted >> i & 1) call->tensors[op->inputs + i] = (TorchTensor)(uintptr_t)*next++;
}

static bool allocate(Call *call, int output, bool empty)
{
    const int index = call->op->inputs + output;
    const Declared *declared = &call->op->tensors[index];
    fusec_tensor *view = &call->views[index];
    int64_t sizes[2 * FUSEC_MAX_RANK], strides[2 * FUSEC_MAX_RANK], dense = 1;
    int rank = call_output_shape(call, declared, sizes);
    if (empty) rank = 1, sizes[0] = 0;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = dense;
        dense *= sizes[i];
    }
    if (torch.empty_strided(rank, sizes, strides, torch.dtypes[declared->dtype], call->device_type,
                            call->device_index, &call->tensors[index]))
        return call_fail(call, "no memory for %s", declared->name);
    if (empty) return true;
    view->dtype = declared->dtype;
    view->rank = declared->rank;
    torch.get_data_ptr(call->tensors[index], &view->data);
    dense = 1;
    for (int i = declared->rank - 1; i >= 0; i--) {
        view->sizes[i] = call->sizes[declared->axes[i]];
        view->strides[i] = dense;
        dense *= view->sizes[i];
    }
    return true;
}

/* Takes an output that the caller allocated, perhaps a part of a larger tensor. */
static bool accept(Call *call, int output)
{
    const int index = call->op->inputs + output;
    const Declared *declared = &call->op->tensors[index];
    int64_t wanted[2 * FUSEC_MAX_RANK], rank = 0, *sizes = NULL, *strides = NULL;
    const int count = call_output_shape(call, declared, wanted);
    torch.get_dim(call->tensors[index], &rank);
    torch.get_sizes(call->tensors[index], &sizes);
    torch.get_strides(call->tensors[index], &strides);
    bool fits = rank == count;
    for (int i = 0; fits && i < count; i++) fits = sizes[i] == wanted[i];
    if (!fits) return call_fail(call, "%s has another shape than the output", declared->name);
    return call_describe(call, index, count - declared->rank, sizes, strides) ||
           call_fail(call, "%s: its leading axes do not lie evenly", declared->name);
}

static bool provide_outputs(Call *call)
{
    const Op *op = call->op;
    for (int i = 0; i < op->outputs; i++) {
        const bool wanted = call->wanted >> i & 1;
        if (op->kind == OP_OUT ? wanted && !accept(call, i)
                               : (wanted || op->kind == OP_BACKWARD) && !allocate(call, i, !wanted))
            return false;
    }
    return true;
}

static bool launch(Call *call, const fusec_plan *plan)
{
    const Op *op = call->op;
    fusec_size sizes[MOST_AXES];
    TorchTensor workspace = NULL;
    void *memory = NULL, *stream = NULL;
    fusec_error error;
    for (int i = 0; i < op->axes; i++) sizes[i] = (fusec_size){op->axis_names[i], call->sizes[i]};
    const int64_t bytes = (int64_t)fusec_plan_workspace(plan, sizes, (size_t)op->axes), one = 1;
    if (call->device_type == torch.cuda &&
        (!torch_find_stream() || torch.get_current_cuda_stream(call->device_index, &stream)))
        return call_fail(call, "this torch has no CUDA stream");
    if (bytes > 0 && torch.empty_strided(1, &bytes, &one, torch.dtypes[FUSEC_U8], call->device_type,
                                         call->device_index, &workspace))
        return call_fail(call, "no memory for a workspace of %lld bytes", (long long)bytes);
    if (workspace) torch.get_data_ptr(workspace, &memory);
    const fusec_status status =
        fusec_plan_launch(plan, call->views, call->views + op->inputs,
                          op->scalars ? call->scalars : NULL, memory, stream, &error);
    if (workspace) torch.delete_tensor_object(workspace);
    return status == FUSEC_OK || call_fail(call, "%s", error.message);
}

static bool run_call(Call *call)
{
    if (!call_read_inputs(call)) return false;
    if (call->device_type != torch.cpu && call->device_type != torch.cuda)
        return call_fail(call, "tensors are neither on a CPU nor on a CUDA device");
    fusec_plan *plan = call->wanted ? call_find_plan(call) : NULL;
    if (call->wanted && !plan) return false;
    return provide_outputs(call) && (!plan || launch(call, plan));
}

static void drop(TorchTensor *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i]) torch.delete_tensor_object(tensors[i]);
}

static void run(int number, StableValue *stack)
{
    Op *op = ops[number];
    Call call;
    call.op = op;
    call.stack = stack;
    call.leading = 0;
    call.message[0] = 0;
    memset(call.tensors, 0, sizeof *call.tensors * (size_t)(op->inputs + op->outputs));
    take_arguments(&call);
    const bool good = run_call(&call);
    drop(call.tensors, op->inputs);
    if (!good || op->kind == OP_OUT) drop(call.tensors + op->inputs, op->outputs);
    if (!good) torch.check(false, op->graph, "fusec", 0, call.message); /* throws */
    StableValue *result = stack;
    for (int i = 0; op->kind != OP_OUT && i < op->outputs; i++)
        if (call.tensors[op->inputs + i])
            *result++ = (StableValue)(uintptr_t)call.tensors[op->inputs + i];
}

/* ---- the functions ---- */

#define FUNCTION(n)                                                                                \
    static void kernel_##n(StableValue *stack, uint64_t arguments, uint64_t results)               \
    {                                                                                              \
        (void)arguments;                                                                           \
        (void)results;                                                                             \
        run(0x##n, stack);                                                                         \
    }
/* clang-format off */
#define SIXTEEN(F, n)                                                                              \
    F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)                                \
    F(n##8) F(n##9) F(n##a) F(n##b) F(n##c) F(n##d) F(n##e) F(n##f)
#define MANY(F, n)                                                                                 \
    SIXTEEN(F, n##0) SIXTEEN(F, n##1) SIXTEEN(F, n##2) SIXTEEN(F, n##3)                            \
    SIXTEEN(F, n##4) SIXTEEN(F, n##5) SIXTEEN(F, n##6) SIXTEEN(F, n##7)                            \
    SIXTEEN(F, n##8) SIXTEEN(F, n##9) SIXTEEN(F, n##a) SIXTEEN(F, n##b)                            \
    SIXTEEN(F, n##c) SIXTEEN(F, n##d) SIXTEEN(F, n##e) SIXTEEN(F, n##f)
/* clang-format on */
#define NAME(n) kernel_##n,
MANY(FUNCTION, 0)
MANY(FUNCTION, 1)
MANY(FUNCTION, 2)
MANY(FUNCTION, 3)
static TorchKernel *const kernels[] = {MANY(NAME, 0) MANY(NAME, 1) MANY(NAME, 2) MANY(NAME, 3)};
_Static_assert(sizeof kernels / sizeof *kernels == MOST_OPS, "a function for each operator");

/* ---- defining ---- */

static bool read_tensors(Op *op, size_t graph)
{
    for (int i = 0; i < MOST_TENSORS; i++) {
        fusec_tensor_info info = {.struct_size = sizeof info};
        if (fusec_program_tensor(op->program, graph, (size_t)i, &info) != FUSEC_OK) return true;
        Declared *declared = &op->tensors[i];
        *declared = (Declared){.name = info.name, .dtype = info.dtype, .rank = info.rank};
        for (int j = 0; j < info.rank; j++) declared->axes[j] = info.axes[j];
        *(info.is_output ? &op->outputs : &op->inputs) += 1;
    }
    return false;
}

static bool read_scalars(Op *op, size_t graph)
{
    fusec_scalar_info info = {.struct_size = sizeof info};
    while (fusec_program_scalar(op->program, graph, (size_t)op->scalars, &info) == FUSEC_OK) {
        if (op->scalars == MOST_SCALARS) return false;
        op->scalar_dtypes[op->scalars++] = info.dtype;
    }
    return true;
}

static const char *read_graph(Op *op, size_t graph)
{
    fusec_axis_info axis = {.struct_size = sizeof axis};
    while (fusec_program_axis(op->program, graph, (size_t)op->axes, &axis) == FUSEC_OK) {
        op->axis_names[op->axes] = axis.name;
        op->axis_sizes[op->axes++] = axis.size;
    }
    if (!read_tensors(op, graph)) return "a graph of an operator has at most 63 tensors";
    if (!read_scalars(op, graph)) return "a graph of an operator has at most 16 scalars";
    return op->inputs ? "" : "a graph of an operator has at least one input";
}

static const char *register_kernel(const char *name, TorchKernel *kernel)
{
    static TorchLibrary libraries[2];
    static const char *const keys[] = {"CPU", "CUDA"};
    const char *missing = torch.check ? NULL : torch_find();
    if (missing) return missing;
    for (int i = 0; i < 2; i++) {
        if (!libraries[i] &&
            torch.library_init_impl("fusec", keys[i], "fusec_torch", 0, &libraries[i]))
            return "torch's library cannot be extended";
        if (torch.library_impl(libraries[i], name, kernel)) return "the kernel was refused";
    }
    return "";
}

static const char *define(Op *op, const char *name, size_t graph)
{
    const char *wrong = read_graph(op, graph);
    if (*wrong) return wrong;
    if (op_count == MOST_OPS) return "a process has at most 1024 operators";
    ops[op_count] = op;
    wrong = register_kernel(name, kernels[op_count]);
    if (!*wrong) op_count++;
    return wrong;
}

const char *fusec_torch_define(const char *name, const fusec_program *program, size_t graph,
                               int kind, uint64_t wanted)
{
    Op *op = calloc(1, sizeof *op);
    if (!op) return "out of memory";
    op->program = program;
    op->graph = fusec_program_graph(program, graph);
    op->kind = (OpKind)kind;
    op->wanted = wanted;
    pthread_mutex_lock(&defining);
    const char *wrong = define(op, name, graph);
    pthread_mutex_unlock(&defining);
    if (*wrong) free(op);
    return wrong;
}
