/* saved.c: plans as files: the LaunchPlan, the machine code, the text, sealed with a
 * checksum.
 *
 * A checksum protects against damage, not against malice, so everything read back is also
 * checked to make sense: no index may leave its table. */
#include "internal.h"

#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char magic[SEAL_MAGIC] = {'F', 'U', 'S', 'E', 'C', 'P', 'L', '3'};
enum { MAX_ITEMS = 1 << 16 };

/* ---------------------------------------------------------------------------------
 * writing -- */

static void put_text(Writer *w, const char *text)
{
    put_string(w, text ? text : "", text ? strlen(text) : 0);
}

static void put_kernel(Writer *w, const LaunchKernel *kernel)
{
    put_text(w, kernel->name);
    put_int(w, kernel->threads);
    put_int(w, kernel->cluster);
    put_int(w, kernel->mailbox);
    put_int(w, kernel->overlaps);
    put_int(w, kernel->smem_bytes);
    for (int dim = 0; dim < GRID_RANK; dim++) {
        put_int(w, kernel->grid[dim].axes);
        put_int(w, kernel->grid[dim].per_cta);
        put_int(w, kernel->grid[dim].max_ctas);
    }
    put_int(w, kernel->arg_count);
    for (int i = 0; i < kernel->arg_count; i++) {
        put_int(w, kernel->args[i].kind);
        put_int(w, kernel->args[i].index);
        put_int(w, kernel->args[i].axis);
        put_int(w, kernel->args[i].phase);
        put_text(w, kernel->args[i].name);
    }
}

static void put_tensors(Writer *w, const LaunchPlan *plan)
{
    put_int(w, plan->tensor_count);
    put_int(w, plan->input_count);
    for (int i = 0; i < plan->tensor_count; i++) {
        put_text(w, plan->tensors[i].name);
        put_int(w, plan->tensors[i].dtype);
        put_int(w, plan->tensors[i].axes);
        put_int(w, plan->tensors[i].wanted);
    }
    put_int(w, plan->scalar_count);
    for (int i = 0; i < plan->scalar_count; i++) {
        put_text(w, plan->scalars[i].name);
        put_int(w, plan->scalars[i].dtype);
        put_int(w, plan->scalars[i].has_default);
        put_double(w, plan->scalars[i].default_value);
    }
    put_int(w, plan->slot_count);
    for (int i = 0; i < plan->slot_count; i++) {
        put_text(w, plan->slots[i].name);
        put_int(w, plan->slots[i].dtype);
        put_int(w, plan->slots[i].axes);
        put_int(w, plan->slots[i].copies_kernel);
        put_int(w, plan->slots[i].copies_dim);
        put_int(w, plan->slots[i].width);
    }
}

static void put_launch(Writer *w, const LaunchPlan *plan)
{
    put_text(w, plan->graph);
    put_int(w, plan->axis_count);
    for (int i = 0; i < plan->axis_count; i++) {
        put_text(w, plan->axis_names[i]);
        put_int(w, plan->sizes.of[i]);
    }
    put_int(w, plan->fixed);
    put_tensors(w, plan);
    put_int(w, plan->kernel_count);
    for (int i = 0; i < plan->kernel_count; i++)
        put_kernel(w, &plan->kernels[i]);
}

fusec_status fusec_plan_save(const fusec_plan *plan, const char *path, fusec_error *error)
{
    if (!plan || !path)
        return fail(error, FUSEC_INVALID_ARGUMENT, "%s is NULL",
                    plan ? "the path" : "the plan");
    if (!plan->module)
        return fail(error, FUSEC_UNSUPPORTED,
                    "a plan of the CPU device has no machine code");
    const Code *code = &plan->module->code;
    Writer w = {0};
    put_text(&w, FUSEC_VERSION);
    put_text(&w, plan->arch);
    put_int(&w, plan->module->is_ptx);
    put_int(&w, plan->in_place);
    put_launch(&w, plan->launch);
    put_text(&w, plan->cuda);
    put_text(&w, code->log);
    put_string(&w, code->data, code->bytes);
    fusec_status status = FUSEC_OK;
    if (w.failed)
        status = fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    else if (!file_write_sealed(path, magic, &w))
        status = fail(error, FUSEC_IO_ERROR, "%.600s: %s", path, strerror(errno));
    writer_free(&w);
    return status == FUSEC_OK ? succeed(error) : status;
}

/* ---------------------------------------------------------------------------------
 * reading -- */

static const char *get_text(Reader *r, Arena *arena)
{
    const char *text = get_string(r, NULL);
    return arena_copy(arena, text, strlen(text));
}

static DType get_dtype(Reader *r)
{
    return (DType)get_range(r, 0, DTYPE_COUNT - 1);
}

static AxisSet get_axes(Reader *r, const LaunchPlan *plan)
{
    return (AxisSet)get_range(r, 0, ((int64_t)1 << plan->axis_count) - 1);
}

static int get_count(Reader *r)
{
    return (int)get_range(r, 0, MAX_ITEMS);
}

static void get_tensors(Reader *r, Arena *arena, LaunchPlan *plan)
{
    plan->tensor_count = get_count(r);
    plan->input_count = (int)get_range(r, 0, plan->tensor_count);
    LaunchTensor *tensors = NEW_ARRAY(arena, LaunchTensor, plan->tensor_count + 1);
    for (int i = 0; i < plan->tensor_count && !r->failed; i++) {
        tensors[i].name = get_text(r, arena);
        tensors[i].dtype = get_dtype(r);
        tensors[i].axes = get_axes(r, plan);
        tensors[i].output = i >= plan->input_count;
        tensors[i].wanted = get_range(r, 0, 1);
        r->failed |= __builtin_popcount(tensors[i].axes) > FUSEC_MAX_RANK;
    }
    plan->tensors = tensors;
}

static void get_scalars(Reader *r, Arena *arena, LaunchPlan *plan)
{
    plan->scalar_count = get_count(r);
    LaunchScalar *scalars = NEW_ARRAY(arena, LaunchScalar, plan->scalar_count + 1);
    for (int i = 0; i < plan->scalar_count && !r->failed; i++) {
        scalars[i].name = get_text(r, arena);
        scalars[i].dtype = get_dtype(r);
        scalars[i].has_default = get_range(r, 0, 1);
        scalars[i].default_value = get_double(r);
    }
    plan->scalars = scalars;
}

/* copies_kernel is checked against the kernels once they are read. */
static void get_slots(Reader *r, Arena *arena, LaunchPlan *plan)
{
    plan->slot_count = (int)get_range(r, 0, MAX_LAUNCH_SLOTS);
    LaunchSlot *slots = NEW_ARRAY(arena, LaunchSlot, plan->slot_count + 1);
    for (int i = 0; i < plan->slot_count && !r->failed; i++) {
        slots[i].name = get_text(r, arena);
        slots[i].dtype = get_dtype(r);
        slots[i].axes = get_axes(r, plan);
        slots[i].copies_kernel = (int)get_range(r, -1, MAX_ITEMS);
        slots[i].copies_dim = (int)get_range(r, 0, GRID_RANK - 1);
        slots[i].width = get_range(r, 1, INT32_MAX);
    }
    plan->slots = slots;
}

static void get_kernel(Reader *r, Arena *arena, const LaunchPlan *plan,
                       LaunchKernel *kernel)
{
    kernel->name = get_text(r, arena);
    kernel->threads = (int)get_range(r, 1, 1024);
    kernel->cluster = (int)get_range(r, 0, MAX_ITEMS);
    kernel->mailbox = (int)get_range(r, -1, MAX_LAUNCH_SLOTS);
    kernel->overlaps = get_range(r, 0, 1);
    kernel->smem_bytes = get_range(r, 0, 1 << 20);
    for (int dim = 0; dim < GRID_RANK; dim++) {
        kernel->grid[dim].axes = get_axes(r, plan);
        kernel->grid[dim].per_cta = get_range(r, 1, INT64_MAX);
        kernel->grid[dim].max_ctas = get_range(r, 0, INT64_MAX);
    }
    kernel->arg_count = (int)get_range(r, 0, MAX_LAUNCH_ARGS);
    LaunchArg *args = NEW_ARRAY(arena, LaunchArg, kernel->arg_count + 1);
    for (int i = 0; i < kernel->arg_count && !r->failed; i++) {
        args[i].kind = (ArgKind)get_range(r, 0, ARG_GRID);
        args[i].index = (int)get_range(r, -1, MAX_ITEMS);
        args[i].axis = (int)get_range(r, -1, MAX_AXES - 1);
        args[i].phase = (int)get_range(r, 0, 63);
        args[i].name = get_text(r, arena);
    }
    kernel->args = args;
}

static LaunchPlan *get_launch(Reader *r, Arena *arena)
{
    LaunchPlan *plan = NEW(arena, LaunchPlan);
    plan->graph = get_text(r, arena);
    plan->axis_count = (int)get_range(r, 0, MAX_AXES);
    for (int i = 0; i < plan->axis_count && !r->failed; i++) {
        plan->axis_names[i] = get_text(r, arena);
        plan->sizes.of[i] = get_range(r, 0, INT64_MAX);
    }
    plan->fixed = get_axes(r, plan);
    get_tensors(r, arena, plan);
    get_scalars(r, arena, plan);
    get_slots(r, arena, plan);
    plan->kernel_count = get_count(r);
    LaunchKernel *kernels = NEW_ARRAY(arena, LaunchKernel, plan->kernel_count + 1);
    for (int i = 0; i < plan->kernel_count && !r->failed; i++)
        get_kernel(r, arena, plan, &kernels[i]);
    plan->kernels = kernels;
    return plan;
}

static bool is_below(int index, int count)
{
    return index >= 0 && index < count;
}

static bool arg_is_sound(const LaunchPlan *plan, const LaunchArg *arg)
{
    switch (arg->kind) {
    case ARG_TENSOR: return is_below(arg->index, plan->tensor_count);
    case ARG_STRIDE:
        return is_below(arg->index, plan->tensor_count)
               && is_below(arg->axis, plan->axis_count);
    case ARG_SIZE: return is_below(arg->axis, plan->axis_count);
    case ARG_SCALAR: return is_below(arg->index, plan->scalar_count);
    case ARG_SLOT: return is_below(arg->index, plan->slot_count);
    case ARG_GRID:
        return is_below(arg->index, plan->kernel_count) && is_below(arg->axis, GRID_RANK);
    }
    return false;
}

/* Whether every index of a LaunchPlan is inside its table. */
static bool launch_is_sound(const LaunchPlan *plan)
{
    for (int i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].copies_kernel >= plan->kernel_count)
            return false;
    for (int k = 0; k < plan->kernel_count; k++)
        if (plan->kernels[k].mailbox >= plan->slot_count)
            return false;
    for (int k = 0; k < plan->kernel_count; k++)
        for (int i = 0; i < plan->kernels[k].arg_count; i++) {
            const LaunchArg *arg = &plan->kernels[k].args[i];
            bool touches = arg->kind == ARG_TENSOR || arg->kind == ARG_STRIDE;
            if (!arg_is_sound(plan, arg)
                || (touches && !plan->tensors[arg->index].wanted))
                return false;
        }
    return true;
}

/* "sm_90a" runs on 9.0 alone, "sm_80" on 8.x, PTX on everything from its version on. */
static fusec_status check_arch(const fusec_device *device, const char *arch, bool is_ptx,
                               fusec_error *error)
{
    int cc = strncmp(arch, "sm_", 3) == 0 ? atoi(arch + 3) : 0;
    int own = device->info.major * 10 + device->info.minor;
    bool exact = strpbrk(arch + (cc ? 3 : 0), "abcdefghijklmnopqrstuvwxyz") != NULL;
    bool fits = exact ? own == cc : own >= cc && (is_ptx || own / 10 == cc / 10);
    if (cc && fits)
        return FUSEC_OK;
    return fail(error, FUSEC_UNSUPPORTED, "the plan is for %.16s, %s is %s", arch,
                device->info.name, device->info.arch);
}

static fusec_status take_code(fusec_plan *plan, Reader *r, bool is_ptx,
                              fusec_error *error)
{
    size_t bytes;
    const char *log = get_string(r, NULL), *binary = get_string(r, &bytes);
    if (r->failed || r->left || !bytes || !launch_is_sound(plan->launch))
        return fail(error, FUSEC_INVALID_FILE, "the plan file is damaged");
    Code code = {.data = malloc(bytes + 1), .bytes = bytes, .log = strdup(log)};
    if (!code.data || !code.log) {
        code_free(&code);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    memcpy(code.data, binary, bytes + 1);
    fusec_status status =
        module_from_code(plan->device, &code, is_ptx, &plan->module, error);
    return status == FUSEC_OK ? plan_attach(plan, error) : status;
}

static fusec_status read_plan(fusec_plan *plan, Reader *r, fusec_error *error)
{
    plan->arena = arena_new();
    if (!plan->arena)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    const char *version = get_string(r, NULL);
    if (!r->failed && strcmp(version, FUSEC_VERSION) != 0)
        return fail(error, FUSEC_INVALID_FILE,
                    "the plan was saved by fusec %.32s, this is %s", version,
                    FUSEC_VERSION);
    plan->arch = get_text(r, plan->arena);
    bool is_ptx = get_range(r, 0, 1);
    plan->in_place = get_range(r, 0, 1);
    plan->launch = get_launch(r, plan->arena);
    plan->cuda = get_text(r, plan->arena);
    if (r->failed)
        return fail(error, FUSEC_INVALID_FILE, "the plan file is damaged");
    fusec_status status = check_arch(plan->device, plan->arch, is_ptx, error);
    return status == FUSEC_OK ? take_code(plan, r, is_ptx, error) : status;
}

static fusec_status load_plan(fusec_device *device, const char *data, size_t bytes,
                              fusec_plan **result, fusec_error *error)
{
    fusec_plan *plan = plan_new(device);
    if (!plan)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    Reader r = {data, bytes, false};
    double begin = milliseconds_now();
    fusec_status status = read_plan(plan, &r, error);
    plan->milliseconds = milliseconds_now() - begin;
    plan->was_cached = true;
    if (status == FUSEC_OK)
        *result = plan;
    else
        fusec_plan_destroy(plan);
    return status;
}

fusec_status fusec_plan_load(fusec_device *device, const char *path, fusec_plan **result,
                             fusec_error *error)
{
    char *data;
    size_t bytes;
    if (!device || !path || !result)
        return fail(error, FUSEC_INVALID_ARGUMENT, "%s is NULL",
                    !device ? "the device"
                    : !path ? "the path"
                            : "the place for the plan");
    *result = NULL;
    if (device->cpu)
        return fail(error, FUSEC_UNSUPPORTED,
                    "the CPU device runs no machine code of a saved plan");
    Sealed sealed = file_read_sealed(path, magic, &data, &bytes);
    if (sealed == SEALED_ABSENT)
        return fail(error, FUSEC_IO_ERROR, "%.600s: %s", path, strerror(errno));
    if (sealed == SEALED_DAMAGED)
        return fail(error, FUSEC_INVALID_FILE, "%.600s: no plan file, or a damaged one",
                    path);
    fusec_status status = load_plan(device, data, bytes, result, error);
    free(data);
    return status == FUSEC_OK ? succeed(error) : status;
}
