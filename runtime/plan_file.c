/* plan_file.c: see plan_file.h. A checksum (serialize.h) protects a file against damage, not
 * against malice, so everything read back is checked for sense as well. */
#include "plan_file.h"

#include "fusec.h"

#include <string.h>

enum { MAX_ITEMS = 1 << 16, LARGEST_CLUSTER = 16 };

/* ---- writing ---- */

static void put_text(Writer *w, const char *text)
{
    put_string(w, text ? text : "", text ? strlen(text) : 0);
}

static void put_entry(Writer *w, const LaunchEntry *entry)
{
    put_text(w, entry->name);
    put_int(w, entry->arg_count);
    for (int i = 0; i < entry->arg_count; i++) {
        put_int(w, entry->args[i].kind);
        put_int(w, entry->args[i].index);
        put_int(w, entry->args[i].axis);
        put_int(w, entry->args[i].phase);
        put_text(w, entry->args[i].name);
    }
}

static void put_kernel(Writer *w, const LaunchKernel *kernel)
{
    put_entry(w, &kernel->entry);
    put_int(w, kernel->collapsed);
    put_int(w, kernel->dense);
    if (has_strided(kernel)) put_entry(w, &kernel->strided);
    put_int(w, kernel->threads);
    put_int(w, kernel->cluster);
    put_int(w, kernel->mailbox);
    put_int(w, kernel->part_groups);
    put_int(w, kernel->part_ctas);
    put_int(w, kernel->adds_parts);
    put_int(w, kernel->overlaps);
    put_int(w, kernel->smem_bytes);
    put_int(w, kernel->few_bytes);
    put_int(w, kernel->few_ctas);
    put_int(w, kernel->step_bytes);
    put_int(w, kernel->paced_from);
    for (int dim = 0; dim < GRID_RANK; dim++) {
        put_int(w, kernel->grid[dim].axes);
        put_int(w, kernel->grid[dim].per_cta);
        put_int(w, kernel->grid[dim].max_ctas);
        put_int(w, kernel->grid[dim].times);
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
    for (int i = 0; i < plan->kernel_count; i++) put_kernel(w, &plan->kernels[i]);
}

void plan_encode(Writer *w, const PlanFile *file)
{
    put_text(w, FUSEC_VERSION);
    put_text(w, file->arch);
    put_int(w, file->is_ptx);
    put_int(w, file->in_place);
    put_launch(w, file->launch);
    put_text(w, file->cuda);
    put_text(w, file->log);
    put_string(w, file->code, file->code_bytes);
}

/* ---- reading ---- */

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

/* The kernels are read later; copies_kernel is checked then. */
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

static void get_entry(Reader *r, Arena *arena, LaunchEntry *entry)
{
    entry->name = get_text(r, arena);
    entry->arg_count = (int)get_range(r, 0, MAX_LAUNCH_ARGS);
    LaunchArg *args = NEW_ARRAY(arena, LaunchArg, entry->arg_count + 1);
    for (int i = 0; i < entry->arg_count && !r->failed; i++) {
        args[i].kind = (ArgKind)get_range(r, 0, ARG_ALONE);
        args[i].index = (int)get_range(r, -1, MAX_ITEMS);
        args[i].axis = (int)get_range(r, -1, MAX_AXES - 1);
        args[i].phase = (int)get_range(r, READ_BY_WRITER, MAX_ITEMS);
        args[i].name = get_text(r, arena);
    }
    entry->args = args;
}

static void get_kernel(Reader *r, Arena *arena, const LaunchPlan *plan, LaunchKernel *kernel)
{
    get_entry(r, arena, &kernel->entry);
    kernel->collapsed = get_axes(r, plan);
    kernel->dense = get_axes(r, plan);
    if (has_strided(kernel)) get_entry(r, arena, &kernel->strided);
    kernel->threads = (int)get_range(r, 1, 1024);
    kernel->cluster = (int)get_range(r, 0, MAX_ITEMS);
    kernel->mailbox = (int)get_range(r, -1, MAX_LAUNCH_SLOTS);
    kernel->part_groups = get_range(r, 0, INT64_MAX);
    kernel->part_ctas = get_range(r, 0, INT32_MAX);
    kernel->adds_parts = (int)get_range(r, -1, MAX_ITEMS);
    kernel->overlaps = get_range(r, 0, 1);
    kernel->smem_bytes = get_range(r, 0, 1 << 20);
    kernel->few_bytes = get_range(r, 0, 1 << 20);
    kernel->few_ctas = get_range(r, 0, INT32_MAX);
    kernel->step_bytes = get_range(r, 0, INT64_MAX);
    kernel->paced_from = (int)get_range(r, 0, 1024);
    for (int dim = 0; dim < GRID_RANK; dim++) {
        kernel->grid[dim].axes = get_axes(r, plan);
        kernel->grid[dim].per_cta = get_range(r, 1, INT64_MAX);
        kernel->grid[dim].max_ctas = get_range(r, 0, INT64_MAX);
        kernel->grid[dim].times = get_range(r, 0, INT64_MAX);
    }
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
        return is_below(arg->index, plan->tensor_count) && is_below(arg->axis, plan->axis_count);
    case ARG_ROW_STRIDE: return is_below(arg->index, plan->tensor_count);
    case ARG_SIZE: return is_below(arg->axis, plan->axis_count);
    case ARG_SCALAR: return is_below(arg->index, plan->scalar_count);
    case ARG_SLOT: return is_below(arg->index, plan->slot_count);
    case ARG_ROWS:
    case ARG_ALONE:
    case ARG_INTERVAL: return is_below(arg->index, plan->kernel_count);
    case ARG_GRID:
        return is_below(arg->index, plan->kernel_count) && is_below(arg->axis, GRID_RANK);
    }
    return false;
}

/* `collapsed`: whether the entry counts several row axes as one. */
static bool entry_is_sound(const LaunchPlan *plan, const LaunchEntry *entry, bool collapsed)
{
    for (int i = 0; i < entry->arg_count; i++) {
        const LaunchArg *arg = &entry->args[i];
        bool touches =
            arg->kind == ARG_TENSOR || arg->kind == ARG_STRIDE || arg->kind == ARG_ROW_STRIDE;
        bool of_rows = arg->kind == ARG_ROW_STRIDE || arg->kind == ARG_ROWS;
        if (!arg_is_sound(plan, arg) || (touches && !plan->tensors[arg->index].wanted) ||
            (of_rows && !collapsed))
            return false;
    }
    return true;
}

static const LaunchArg *next_tensor(const LaunchEntry *entry, int *at)
{
    while (*at < entry->arg_count)
        if (entry->args[(*at)++].kind == ARG_TENSOR) return &entry->args[*at - 1];
    return NULL;
}

/* Whether both entries read and write the same tensors in the same phases: a launch is checked by
 * the first. */
static bool entries_are_sound(const LaunchPlan *plan, const LaunchKernel *kernel)
{
    const AxisSet rows = kernel->collapsed, columns = kernel->dense;
    const bool several_rows = rows & (rows - 1), several_columns = columns & (columns - 1);
    if (!entry_is_sound(plan, &kernel->entry, several_rows) ||
        !entry_is_sound(plan, &kernel->strided, false) || (rows && !several_rows) ||
        (columns && !several_columns))
        return false;
    if (!has_strided(kernel)) return true;
    for (int i = 0, j = 0;;) {
        const LaunchArg *own = next_tensor(&kernel->entry, &i),
                        *other = next_tensor(&kernel->strided, &j);
        if (!own || !other) return own == other;
        if (own->index != other->index || own->phase != other->phase) return false;
    }
}

/* Checks the numbers that parts of groups are computed with. */
static bool parts_are_sound(const LaunchKernel *kernel)
{
    const LaunchGrid *groups = &kernel->grid[0], *parts = &kernel->grid[PARTS_DIM];
    bool some = groups->max_ctas > 0 && parts->max_ctas > 0;
    return !kernel->part_groups ||
           (some && parts->max_ctas <= INT32_MAX && parts->per_cta <= INT32_MAX);
}

/* Only kernels without other dynamic shared memory get some for launches of few CTAs. */
static bool few_are_sound(const LaunchKernel *kernel)
{
    return !kernel->few_ctas || (kernel->few_bytes && !kernel->smem_bytes && kernel->mailbox < 0);
}

/* Whether every index of a LaunchPlan is inside its table. */
static bool launch_is_sound(const LaunchPlan *plan)
{
    for (int i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].copies_kernel >= plan->kernel_count) return false;
    for (int k = 0; k < plan->kernel_count; k++)
        if (plan->kernels[k].mailbox < 0 ? plan->kernels[k].cluster > LARGEST_CLUSTER
                                         : plan->kernels[k].mailbox >= plan->slot_count ||
                                               plan->kernels[k].grid[0].max_ctas > MAX_ITEMS)
            return false;
    for (int k = 0; k < plan->kernel_count; k++)
        if (plan->kernels[k].adds_parts >= k || !parts_are_sound(&plan->kernels[k])) return false;
    for (int k = 0; k < plan->kernel_count; k++)
        if (!entries_are_sound(plan, &plan->kernels[k]) || !few_are_sound(&plan->kernels[k]))
            return false;
    return true;
}

PlanRead plan_decode(const char *bytes, size_t size, Arena *arena, PlanFile *file,
                     const char **version)
{
    Reader r = {bytes, size, false};
    *version = get_string(&r, NULL);
    if (!r.failed && strcmp(*version, FUSEC_VERSION) != 0) return PLAN_OTHER_VERSION;
    file->arch = get_text(&r, arena);
    file->is_ptx = get_range(&r, 0, 1);
    file->in_place = get_range(&r, 0, 1);
    file->launch = get_launch(&r, arena);
    file->cuda = get_text(&r, arena);
    file->log = get_string(&r, NULL);
    file->code = get_string(&r, &file->code_bytes);
    bool sound = !r.failed && !r.left && file->code_bytes && launch_is_sound(file->launch);
    return sound ? PLAN_READ : PLAN_DAMAGED;
}
