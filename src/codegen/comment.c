/* codegen/comment.c: the comment above a kernel: where it comes from, what it computes, how
 * threads map to data, and all that a person needs to launch it by hand. */
#include "codegen/emit.h"

#include <inttypes.h>
#include <string.h>

static void emit_origin(Emitter *e)
{
    const Graph *g = e->g;
    int first = 0, last = 0, column = 0;
    source_place(g->span.source, g->span.begin, &first, &column);
    source_place(g->span.source, g->span.end ? g->span.end - 1 : 0, &last, &column);
    line(e->out, "// %s (%s), from %s:%d-%d", e->k->name, family_name(e->k->family),
         shell_word(e->arena, g->span.source->name), first, last);
}

/* Marks whose formulas the comment gives: `tops`, and all that has a name, is computed here and is
 * mentioned in one of them. Operands have smaller ids than what is computed from them. */
static bool *find_mentioned(Emitter *e, const bool *tops)
{
    const Graph *g = e->g;
    bool *mentioned = NEW_ARRAY(e->arena, bool, g->nodes.count);
    memcpy(mentioned, tops, sizeof *tops * (size_t)g->nodes.count);
    for (int i = g->nodes.count - 1; i > 0; i--) {
        const NodeInfo *info = &g->nodes.data[i];
        for (int k = 0; mentioned[i] && k < op_info[info->op].arity; k++) {
            const NodeInfo *of = node(g, info->args[k]);
            mentioned[info->args[k].id] |= op_info[of->op].class != CLASS_LEAF &&
                                           (!of->name || e->k->computed[info->args[k].id]);
        }
    }
    return mentioned;
}

/* What the formulas before it are made of, as far as it has names and they have not defined it:
 * `defined`. */
static void emit_definitions(Emitter *e, const bool *tops, const bool *defined)
{
    const bool *mentioned = find_mentioned(e, tops);
    bool first = true;
    for (int i = 1; i < e->g->nodes.count; i++) {
        const char *name = e->g->nodes.data[i].name;
        if (!mentioned[i] || defined[i] || !name) continue;
        if (first) line(e->out, "// where");
        first = false;
        line(e->out, "//   %s = %s", name, node_text(e->arena, e->g, (Node){(uint32_t)i}, true));
    }
}

/* Under the program's names, which the text may have had to change. An output that is a value of
 * another name has that for its formula. */
static void emit_formulas(Emitter *e)
{
    bool *tops = NEW_ARRAY(e->arena, bool, e->g->nodes.count),
         *defined = NEW_ARRAY(e->arena, bool, e->g->nodes.count);
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        const char *name =
            store->tensor >= 0 ? e->plan->launch.tensors[store->tensor].name : store->name;
        const char *value = node(e->g, store->node)->name;
        bool alias = store->tensor >= 0 && value && strcmp(value, name) && e->k->computed &&
                     e->k->computed[store->node.id];
        tops[store->node.id] = true;
        defined[store->node.id] |= !alias;
        if (e->k->finishes < 0)
            line(e->out, "//   %s = %s", name,
                 alias ? value : node_text(e->arena, e->g, store->node, true));
    }
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        const char *name = node(e->g, acc->node)->name;
        tops[acc->node.id] = defined[acc->node.id] = true;
        if (!e->k->kept)
            line(e->out, "//   %s = %s%s", name ? name : acc->slot_name,
                 node_text(e->arena, e->g, acc->node, true),
                 e->k->finishes >= 0
                     ? ", from the partials"
                     : arena_format(e->arena, ", this %s's rows", sharers_name(e->k)));
    }
    if (e->k->finishes < 0 && e->k->family != FAMILY_CLEAR) emit_definitions(e, tops, defined);
}

/* A kernel that sums rows by groups. */
static void emit_parts_mapping(Emitter *e)
{
    const Kernel *k = e->k;
    line(
        e->out,
        "// The rows of one %s are a group, and a group is in parts. A CTA walks the rows of its parts%s and\n"
        "// leaves the sums of each. Alone with whole groups it adds them as the finish kernel would, and stores\n"
        "// the results. %d threads share a row.",
        product_text(e, k->kept),
        k->teams > 1 ? arena_format(e->arena, ", %d at a time,", k->teams) : "",
        k->threads_per_row);
}

/* Which rows a CTA or cluster has. */
static void emit_row_mapping(Emitter *e)
{
    const Kernel *k = e->k;
    const char *walk = k->accumulator_count ? "blockIdx.x, + gridDim.x, ... and keeps its sums"
                       : is_persistent(k)
                           ? "blockIdx.x, + gridDim.x, ..."
                           : "blockIdx.x, + gridDim.x, ... (in a grid as below just one)";
    if (k->one_row && k->cluster > 1)
        line(
            e->out,
            "// A cluster of %d CTAs has row blockIdx.x / %d; each CTA has a slice of the columns, its %d threads share it.",
            k->cluster, k->cluster, k->threads_per_row);
    else if (k->one_row)
        line(e->out, "// A CTA has row blockIdx.x; its %d threads share it.", k->threads_per_row);
    else if (k->cluster > 1 && !k->rows)
        line(e->out,
             "// A group of %d CTAs of %d threads shares the columns: they take turns along them.",
             k->cluster, k->threads_per_row);
    else if (takes_turns(k))
        line(
            e->out,
            "// A group of %d CTAs of %d threads walks rows blockIdx.x / %d, + gridDim.x / %d, ...: they take turns along them.",
            k->cluster, k->threads_per_row, k->cluster, k->cluster);
    else if (k->cluster > 1)
        line(
            e->out,
            "// A %s of %d CTAs walks rows blockIdx.x / %d, + gridDim.x / %d, ...%s; each CTA has a "
            "slice of\n// the columns, its %d threads share it.",
            k->grouped ? "group" : "cluster", k->cluster, k->cluster, k->cluster,
            k->accumulator_count ? " and keeps its sums" : "", k->threads_per_row);
    else if (k->kept)
        emit_parts_mapping(e);
    else if (has_parts_in_order(k))
        line(
            e->out,
            "// %d CTAs share a row, one after the other: a CTA has slice blockIdx.x %% %d of rows blockIdx.x / %d,\n"
            "// + gridDim.x / %d, ... (in a grid as below just one); its %d threads share that.",
            k->column_ctas, k->column_ctas, k->column_ctas, k->column_ctas, k->threads_per_row);
    else if (k->teams > 1)
        line(e->out,
             "// A CTA walks %d rows at a time, from blockIdx.x * %d, + gridDim.x * %d, ...%s; %s.",
             k->teams, k->teams, k->teams, k->accumulator_count ? " and keeps its sums" : "",
             k->threads_per_row > 1
                 ? arena_format(e->arena, "%d threads share a row", k->threads_per_row)
                 : "each has a thread");
    else
        line(e->out, "// A CTA walks rows %s; its %d threads share a row.", walk,
             k->threads_per_row);
}

static void emit_mapping(Emitter *e)
{
    const Kernel *k = e->k;
    if (k->clears >= 0) {
        line(e->out, "//   the mailbox of %s is zero before the first mail",
             e->plan->kernels[k->clears].name);
        return;
    }
    if (k->finishes >= 0) {
        const Kernel *main = &e->plan->kernels[k->finishes];
        if (main->kept) {
            line(
                e->out,
                "// %s left a partial for each part. Here the threads of a column of a group add %d in their order\n"
                "// each, and then meet. Not to be launched where the CTAs there were alone with whole groups: they have\n"
                "// stored the results.",
                main->name, main->chunk);
            return;
        }
        line(
            e->out,
            "// %s left a partial for each of its %ss. Here a CTA has up to %d columns; the %d threads of a\n"
            "// column take its partials in turn, and then meet.",
            main->name, sharers_name(main), k->threads_per_row, k->teams);
        return;
    }
    emit_row_mapping(e);
    if (k->streamed)
        line(e->out, "// A thread takes %s at a time%s.",
             k->vec > 1 ? arena_format(e->arena, "%d neighbouring columns", k->vec) : "a column",
             reads_rows_again(k) ? " and reads them again in each phase" : "");
    else if (k->vec == 1 && k->tiles == 1)
        line(e->out, "// A thread has one column.");
    else if (k->vec == 1)
        line(e->out, "// A thread has %d columns, %d apart.", k->tiles, k->threads_per_row);
    else
        line(e->out, "// A thread has %d neighbouring columns%s%s.", k->vec,
             k->tiles > 1 ? arena_format(e->arena, " in each of %d tiles", k->tiles) : "",
             !k->ragged || k->checked ? ""
             : k->tiles > 1           ? ", the last not full"
                                      : ", or none");
    if (has_several_columns(k))
        line(e->out, "// Columns are %s: col counts them%s.", product_text(e, k->columns),
             k->vec > 1
                 ? arena_format(e->arena, ", and a vector lies along %s, a multiple of its length",
                                e->sizes[fastest_column(k)])
                 : "");
}

static const char *grid_text(Emitter *e, const LaunchGrid *grid)
{
    bool alone = grid->per_cta == 1 && grid->max_ctas >= 65535 && grid->times == 1;
    const char *count = !grid->axes ? "1"
                        : alone     ? product_text(e, grid->axes)
                                    : count_text(e, grid->axes);
    if (grid->per_cta > 1)
        count = arena_format(e->arena, "ceil(%s / %" PRId64 ")", count, grid->per_cta);
    if (grid->axes && grid->max_ctas < 65535)
        count = arena_format(e->arena, "min(%s, %" PRId64 ")", count, grid->max_ctas);
    if (grid->times > 1) count = arena_format(e->arena, "%" PRId64 " * %s", grid->times, count);
    return count;
}

static const char *copies_text(Emitter *e, const LaunchSlot *slot)
{
    if (slot->copies_kernel < 0) return "";
    const Kernel *k = &e->plan->kernels[slot->copies_kernel];
    if (slot->copies_dim == PARTS_DIM) return "parts * ";
    return arena_format(e->arena, "one for each %s of %s: ",
                        k->cluster > 1 ? sharers_name(k) : "of the gridDim.x CTAs", k->name);
}

/* Of a slot or of one of its copies. Of groups in parts there is room for as many as
 * schedule/launch.h says. */
static const char *elements_text(Emitter *e, const LaunchSlot *slot)
{
    if (slot->width > 1) return arena_format(e->arena, "%" PRId64, slot->width);
    if (!slot->axes) return "1";
    const LaunchKernel *kernels = e->plan->launch.kernels;
    int64_t few = slot->copies_kernel >= 0 ? kernels[slot->copies_kernel].part_groups : 0;
    AxisSet grouped = few ? slot->axes & kernels[slot->copies_kernel].grid[0].axes : 0;
    if (!grouped) return count_text(e, slot->axes);
    const char *groups =
        arena_format(e->arena, "min(%s, %" PRId64 ")", product_text(e, grouped), few);
    AxisSet others = slot->axes & ~grouped;
    return others ? arena_format(e->arena, "%s * %s", groups, product_text(e, others)) : groups;
}

/* What another kernel has left in a slot for this one. */
static const char *slot_value(Emitter *e, int slot)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (e->k->loads[i].slot == slot)
            return arena_format(e->arena, ": %s",
                                node_text(e->arena, e->g, e->k->loads[i].node, true));
    return "";
}

static void emit_slots(Emitter *e)
{
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind != ARG_SLOT) continue;
        const LaunchSlot *slot = &e->plan->launch.slots[arg->index];
        line(e->out, "// %s: workspace, %s%s of %s%s%s", e->args[i], copies_text(e, slot),
             elements_text(e, slot), dtype_info[slot->dtype].fuse,
             arg->index == e->k->mailbox ? ", all zero before this launch" : "",
             slot_value(e, arg->index));
    }
}

static void emit_strides(Emitter *e)
{
    for (int i = 0; i < e->entry->arg_count; i++)
        if (e->entry->args[i].kind == ARG_STRIDE || e->entry->args[i].kind == ARG_ROW_STRIDE) {
            line(e->out, "// Strides, %s and the like, are in elements.", e->args[i]);
            return;
        }
}

/* Tensors of nothing but rows have no stride among the arguments. */
static const char *dense_text(Emitter *e)
{
    NameList names = {0};
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind == ARG_TENSOR && e->plan->launch.tensors[arg->index].axes == e->collapsed)
            *list_push(e->arena, &names) = e->args[i];
    }
    return names.count ? arena_format(e->arena, " (%s: dense)", join(e->arena, &names, ", ")) : "";
}

static void emit_collapsed(Emitter *e)
{
    if (!e->collapsed) return;
    const char *axes = axes_text(e->arena, e->g, e->collapsed);
    if (!e->k->one_row)
        line(e->out, "// rows: how many there are, %s", product_text(e, e->collapsed));
    line(
        e->out,
        "// A row's number is its place in %s, for tensors whose rows are evenly apart%s. For others there is\n"
        "// %s, behind all of these.",
        axes, dense_text(e), e->launch->strided.name);
}

static void emit_strided_comment(Emitter *e)
{
    line(e->out,
         "// %s (%s): %s for tensors whose rows are not evenly apart, by strides for each\n"
         "// axis of %s. Grid, block and shared memory are the same, the parameters those below.",
         e->entry->name, family_name(e->k->family), e->launch->entry.name,
         axes_text(e->arena, e->g, e->k->rows));
}

/* Of CTAs that share out parts or whole groups. */
static const char *parts_grid_text(Emitter *e)
{
    const char *groups = count_text(e, e->launch->grid[0].axes);
    long long few = e->launch->grid[0].max_ctas;
    if (e->launch->part_ctas == few)
        return arena_format(e->arena, "min(alone ? %s : %s * parts, %lld)", groups, groups, few);
    return arena_format(e->arena, "alone ? min(%s, %lld) : %s * parts", groups, few, groups);
}

/* Of all dimensions but z, which is always 1. */
static const char *grids_text(Emitter *e)
{
    const LaunchGrid *grid = e->launch->grid;
    const char *x = grid_text(e, &grid[0]), *y = grid_text(e, &grid[1]);
    if (e->launch->cluster > 1) x = arena_format(e->arena, "%d * %s", e->launch->cluster, x);
    if (e->launch->part_groups) x = parts_grid_text(e);
    return arena_format(e->arena, "(%s, %s)", x, y);
}

static void emit_launch(Emitter *e)
{
    enum {
        WITHOUT_ASKING = 48 << 10, /* with what is static, of which there is always some */
        PORTABLE_CLUSTER = 8
    };
    const LaunchPlan *plan = &e->plan->launch;
    long long bytes = e->launch->smem_bytes;
    const char *smem = bytes ? arena_format(e->arena, "%lld bytes of", bytes) : "no";
    const char *cluster = "";
    if (e->launch->cluster > 1)
        cluster = e->k->grouped ? "cooperative, "
                  : names_cluster(e)
                      ? arena_format(e->arena, "cluster %d (its own), ", e->launch->cluster)
                      : arena_format(e->arena, "cluster %d (an attribute of the launch), ",
                                     e->launch->cluster);
    line(e->out, "// Launch %d of %d: grid %s, %sblock %d, %s dynamic shared memory.", e->index + 1,
         plan->kernel_count, grids_text(e), cluster, e->launch->threads, smem);
    if (e->k->few_ctas)
        line(e->out, "// A grid of up to %d CTAs is faster with %lld bytes (and right with none).",
             e->k->few_ctas, (long long)e->launch->few_bytes);
    if (e->k->limit_ctas)
        line(e->out, "// None of it is used: it keeps an SM to %d CTA%s.", e->k->limit_ctas,
             e->k->limit_ctas > 1 ? "s" : "");
    if (e->k->limit_ctas && e->k->finishes >= 0 && e->launch->overlaps)
        line(
            e->out,
            "// (0 is right as well, and slower where programmatic stream serialization lets CTAs in early: they crowd on the first free SMs.)");
    if (e->launch->cluster > PORTABLE_CLUSTER && !e->k->grouped)
        line(
            e->out,
            "// So large a cluster wants CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED set first.");
    if (e->k->wanted_ctas > 1)
        line(e->out,
             "// The second number of __launch_bounds__ leaves registers for %d CTAs an SM.",
             e->k->wanted_ctas);
    if (most_smem(e->launch) >= WITHOUT_ASKING)
        line(
            e->out,
            "// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.");
    if (copies_stray_bytes(e->k, axes_size(&e->plan->analysis->sizes, e->k->columns)))
        line(e->out,
             "// Inputs are read by whole blocks of 16 bytes: up to 15 bytes before%s their own.",
             e->k->copy_warp ? " and behind" : "");
    emit_strides(e);
    emit_collapsed(e);
    if (e->launch->overlaps)
        line(
            e->out,
            "// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.");
    emit_slots(e);
}

/* launch_groups in schedule/launch.c. */
static const char *parts_text(Emitter *e, const LaunchKernel *launch)
{
    const LaunchGrid *grid = &launch->grid[PARTS_DIM];
    NameList shares = {0};
    for (int of = 1; of <= PART_DIVISORS && grid->max_ctas / of > 1; of++)
        *list_push(e->arena, &shares) =
            arena_format(e->arena, "%lld", (long long)grid->max_ctas / of);
    if (!shares.count) return grid_text(e, grid);
    return arena_format(e->arena, "the first of %s that leaves %lld rows a part or more; else %s",
                        join(e->arena, &shares, ", "), (long long)least_part_rows(grid),
                        grid_text(e, grid));
}

static void emit_partial_count(Emitter *e)
{
    if (e->k->kept) {
        const char *groups = count_text(e, e->launch->grid[0].axes);
        long long ctas = e->launch->grid[0].max_ctas;
        line(e->out, "// parts: of a group, %s", parts_text(e, e->launch));
        line(
            e->out,
            "// alone: whether each CTA has whole groups: parts == 1 or (%lld - %s %% %lld) %% %lld <= %s / %d",
            ctas, groups, ctas, ctas, groups, PARTS_SHARE);
    }
    if (e->k->finishes < 0) return;
    const LaunchKernel *main = &e->plan->launch.kernels[e->k->finishes];
    bool parts = e->plan->kernels[e->k->finishes].kept;
    line(e->out, "// partials: how many there are, %s",
         parts ? parts_text(e, main) : grid_text(e, &main->grid[0]));
}

/* What device_interval in the runtime works out. */
static void emit_interval(Emitter *e)
{
    if (!e->k->paced) return;
    line(
        e->out,
        "// interval: ns from one row that a %s asks for to its next. 0, each as soon as there is room, is always right;",
        sharers_name(e->k));
    line(e->out,
         "// for %s, %lld * %s / (0.92 * bytes that memory moves in a ns by its clock) is faster.",
         e->launch->paced_from > 1 ? "twice the data that L2 holds, or more"
                                   : "more data than L2 holds",
         (long long)e->launch->step_bytes, grid_text(e, &e->launch->grid[0]));
}

void emit_comment(Emitter *e)
{
    if (e->entry == &e->launch->strided) {
        emit_strided_comment(e);
        return;
    }
    emit_origin(e);
    emit_formulas(e);
    emit_mapping(e);
    emit_launch(e);
    emit_partial_count(e);
    emit_interval(e);
}
