/* codegen/launcher_json.c: NAME.json of a launcher, for programs that launch the kernels
 * themselves: see launcher.h. Its formulas are those of schedule/launch.c, as text. */
#include "codegen/launcher.h"

#include <inttypes.h>

enum { MAX_CTAS = INT32_MAX }; /* of a dimension: no bound */

static const char *product_text(Arena *arena, const LaunchPlan *plan, AxisSet axes)
{
    const char *product = "";
    for (int i = 0; i < plan->axis_count; i++)
        if (axes >> i & 1)
            product =
                arena_format(arena, "%s%s%s", product, *product ? " * " : "", plan->axis_names[i]);
    return *product ? product : "1";
}

/* Groups along a dimension of a grid. */
static const char *groups_text(Arena *arena, const LaunchPlan *plan, const LaunchGrid *grid)
{
    const char *text = product_text(arena, plan, grid->axes);
    if (!grid->axes) return grid->times > 1 ? arena_format(arena, "%" PRId64, grid->times) : "1";
    if (grid->per_cta > 1)
        text = arena_format(arena, "ceil(%s / %" PRId64 ")", text, grid->per_cta);
    if (grid->max_ctas < MAX_CTAS)
        text = arena_format(arena, "min(%s, %" PRId64 ")", text, grid->max_ctas);
    return grid->times > 1 ? arena_format(arena, "%s * %" PRId64, text, grid->times) : text;
}

/* The parts of a group of rows: the first share of the CTAs that leaves rows enough to each. */
static const char *parts_text(Arena *arena, const LaunchPlan *plan, const LaunchGrid *grid)
{
    const char *rows = product_text(arena, plan, grid->axes);
    const char *text = groups_text(arena, plan, grid);
    for (int of = PART_DIVISORS; of >= 1; of--)
        if (grid->max_ctas / of > 1)
            text = arena_format(arena, "floor(%s / %" PRId64 ") >= %" PRId64 " ? %" PRId64 " : %s",
                                rows, grid->max_ctas / of, least_part_rows(grid),
                                grid->max_ctas / of, text);
    return text;
}

static void put_grid(Text *out, const LaunchPlan *plan, const LaunchKernel *k)
{
    Arena *arena = out->arena;
    const char *x = groups_text(arena, plan, &k->grid[0]), *y, *z;
    y = groups_text(arena, plan, &k->grid[1]);
    z = groups_text(arena, plan, &k->grid[2]);
    if (k->cluster > 1) x = arena_format(arena, "%d * %s", k->cluster, x);
    if (k->part_groups) {
        const char *groups = product_text(arena, plan, k->grid[0].axes);
        const int64_t ctas = k->grid[0].max_ctas;
        text_print(out, ", \"parts\": ");
        text_quote(out, parts_text(arena, plan, &k->grid[PARTS_DIM]));
        text_print(out, ", \"alone\": ");
        text_quote(out, arena_format(arena,
                                     "parts == 1 || (%" PRId64 " - %s %% %" PRId64 ") %% %" PRId64
                                     " <= floor(%s / %d)",
                                     ctas, groups, ctas, ctas, groups, PARTS_SHARE));
        x = arena_format(arena, "alone ? %s : min(%s * parts, %" PRId64 ")", x, groups,
                         k->part_ctas);
        z = "1";
    }
    text_print(out, ", \"grid\": [");
    text_quote(out, x);
    text_print(out, ", ");
    text_quote(out, y);
    text_print(out, ", ");
    text_quote(out, z);
    text_print(out, "]");
}

/* What a parameter of a kernel is. */
static const char *argument_text(Arena *arena, const LaunchPlan *plan, const LaunchArg *arg)
{
    switch (arg->kind) {
    case ARG_TENSOR: return arena_format(arena, "pointer %s", plan->tensors[arg->index].name);
    case ARG_STRIDE:
        return arena_format(arena, "int64 stride of %s along %s, in elements",
                            plan->tensors[arg->index].name, plan->axis_names[arg->axis]);
    case ARG_ROW_STRIDE:
        return arena_format(arena, "int64 elements between the rows of %s",
                            plan->tensors[arg->index].name);
    case ARG_SIZE: return arena_format(arena, "int64 %s", plan->axis_names[arg->axis]);
    case ARG_ROWS:
        return arena_format(arena, "int64 %s",
                            product_text(arena, plan, plan->kernels[arg->index].collapsed));
    case ARG_SCALAR: {
        const LaunchScalar *scalar = &plan->scalars[arg->index];
        static const char *const types[] = {
            [TYPE_F32] = "f32", [TYPE_F64] = "f64", [TYPE_I64] = "int64", [TYPE_BOOL] = "bool"};
        return arena_format(arena, "%s %s", types[dtype_info[scalar->dtype].type], scalar->name);
    }
    case ARG_SLOT: return arena_format(arena, "pointer workspace %s", plan->slots[arg->index].name);
    case ARG_INTERVAL: return "uint32 ns between two rows of a group; 0 is always correct";
    case ARG_ALONE:
        return arena_format(arena, "int32 alone of %s", plan->kernels[arg->index].entry.name);
    case ARG_GRID: break;
    }
    return arena_format(arena, "int32 %s of %s",
                        arg->axis == PARTS_DIM && plan->kernels[arg->index].part_groups
                            ? "parts"
                            : groups_text(arena, plan, &plan->kernels[arg->index].grid[arg->axis]),
                        plan->kernels[arg->index].entry.name);
}

static void put_entry(Text *out, const LaunchPlan *plan, const char *key, const LaunchEntry *entry)
{
    text_print(out, ",\n       \"%s\": {\"name\": \"%s\", \"arguments\": [", key, entry->name);
    for (int i = 0; i < entry->arg_count; i++) {
        if (i) text_print(out, ", ");
        text_quote(out, argument_text(out->arena, plan, &entry->args[i]));
    }
    text_print(out, "]}");
}

static void put_kernel(Text *out, const LaunchPlan *plan, int index)
{
    const LaunchKernel *k = &plan->kernels[index];
    text_print(out, "%s\n      {\"kernel\": \"%s\"", index ? "," : "", k->entry.name);
    put_grid(out, plan, k);
    text_print(out, ", \"block\": %d, \"cluster\": %d, \"cooperative\": %s", k->threads,
               k->mailbox < 0 ? k->cluster : 1, k->mailbox < 0 ? "false" : "true");
    text_print(out, ", \"smem_bytes\": %" PRId64, k->smem_bytes);
    if (k->few_ctas)
        text_print(out, ", \"few_ctas\": %" PRId64 ", \"few_smem_bytes\": %" PRId64, k->few_ctas,
                   k->few_bytes);
    if (k->adds_parts >= 0)
        text_print(out, ", \"not_after_alone\": \"%s\"", plan->kernels[k->adds_parts].entry.name);
    put_entry(out, plan, has_strided(k) ? "evenly_spaced_rows" : "entry", &k->entry);
    if (has_strided(k)) put_entry(out, plan, "other_rows", &k->strided);
    text_print(out, "}");
}

static void put_slot(Text *out, const LaunchPlan *plan, int index)
{
    const LaunchSlot *slot = &plan->slots[index];
    Arena *arena = out->arena;
    const int few_of = slot->copies_kernel;
    const int64_t few = few_of >= 0 ? plan->kernels[few_of].part_groups : 0;
    const AxisSet grouped = few ? slot->axes & plan->kernels[few_of].grid[0].axes : 0;
    const char *elements = product_text(arena, plan, slot->axes & ~grouped);
    if (grouped)
        elements = arena_format(arena, "min(%s, %" PRId64 ") * %s",
                                product_text(arena, plan, grouped), few, elements);
    if (slot->width > 1) elements = arena_format(arena, "%" PRId64 " * %s", slot->width, elements);
    if (few_of >= 0) {
        const LaunchKernel *k = &plan->kernels[few_of];
        const char *copies = slot->copies_dim == PARTS_DIM && few
                                 ? "parts"
                                 : groups_text(arena, plan, &k->grid[slot->copies_dim]);
        elements = arena_format(arena, "%s * %s", copies, elements);
    }
    text_print(out,
               "%s\n      {\"slot\": \"%s\", \"dtype\": \"%s\", \"elements\": ", index ? "," : "",
               slot->name, dtype_info[slot->dtype].fuse);
    text_quote(out, elements);
    text_print(out, "}");
}

static void put_arguments(Text *out, const LaunchPlan *plan)
{
    bool first = true;
    text_print(out, ",\n  \"tensors\": [");
    for (int i = 0; i < plan->tensor_count; i++) {
        const LaunchTensor *t = &plan->tensors[i];
        if (!t->wanted) continue;
        text_print(out, "%s\n    {\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                   first ? "" : ",", t->name, dtype_info[t->dtype].fuse);
        first = true;
        for (int axis = 0; axis < plan->axis_count; axis++)
            if (t->axes >> axis & 1) {
                text_print(out, "%s\"%s\"", first ? "" : ", ", plan->axis_names[axis]);
                first = false;
            }
        first = false;
        text_print(out, "], \"output\": %s}", t->output ? "true" : "false");
    }
    text_print(out, "],\n  \"scalars\": [");
    for (int i = 0; i < plan->scalar_count; i++) {
        const LaunchScalar *s = &plan->scalars[i];
        char digits[NUMBER_DIGITS];
        shortest_digits(digits, s->default_value, false);
        text_print(out, "%s{\"name\": \"%s\", \"dtype\": \"%s\", \"default\": ", i ? ", " : "",
                   s->name, dtype_info[s->dtype].fuse);
        const bool is_number = *digits != 'i' && *digits != 'n' && digits[1] != 'i';
        text_print(out, !s->has_default ? "null}" : is_number ? "%s}" : "\"%s\"}", digits);
    }
    text_print(out, "]");
}

static void put_plan(Text *out, const LauncherPlan *p, bool first)
{
    text_print(out, "%s\n    {\"arch\": \"%s\", \"cubin_bytes\": %zu, \"kernels\": [",
               first ? "" : ",", p->arch, p->cubin_bytes);
    for (int k = 0; k < p->launch->kernel_count; k++) put_kernel(out, p->launch, k);
    text_print(out, "],\n     \"workspace\": [");
    for (int i = 0; i < p->launch->slot_count; i++) put_slot(out, p->launch, i);
    text_print(out, "]}");
}

void print_launcher_json(Text *out, const Launcher *l)
{
    const LaunchPlan *plan = l->plans[0].launch;
    bool first = true;
    text_print(out, "{\n  \"name\": \"%s\",\n  \"graph\": \"%s\",\n  \"command\": ", l->name,
               plan->graph);
    text_quote(out, l->command);
    text_print(out, ",\n  \"sizes\": {");
    for (int i = 0; i < plan->axis_count; i++) {
        text_print(out, "%s\"%s\": ", first ? "" : ", ", plan->axis_names[i]);
        first = false;
        if (plan->fixed >> i & 1)
            text_print(out, "%" PRId64, plan->sizes.of[i]);
        else
            text_print(out, "null");
    }
    text_print(out, "}");
    put_arguments(out, plan);
    text_print(out, ",\n  \"architectures\": [");
    for (int i = 0; i < l->count; i++) put_plan(out, &l->plans[i], i == 0);
    text_print(out, "]\n}\n");
}
