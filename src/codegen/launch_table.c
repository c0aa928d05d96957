/* codegen/launch_table.c: the table above a kernel with all that a launch by hand needs: grid,
 * block, cluster, shared memory, the mapping of rows and columns to threads, and the arguments that
 * the program does not name. */
#include "codegen/emit.h"

#include <inttypes.h>
#include <string.h>

enum { KEY_WIDTH = 15, VALUE_WIDTH = 82 };

/* The length of the longest beginning of a text that fits a line, up to a space. */
static size_t fitting(const char *text)
{
    size_t length = strlen(text);
    if (length <= VALUE_WIDTH) return length;
    for (length = VALUE_WIDTH; length > 0 && text[length] != ' '; length--) {
    }
    return length ? length : strcspn(text, " ");
}

/* Puts a row of the table; with key "" it continues the row before. */
void put_row(Emitter *e, const char *key, const char *value)
{
    do {
        const size_t length = fitting(value);
        line(e->out, "// %-*s%.*s", KEY_WIDTH, key, (int)length, value);
        value += length;
        value += *value == ' ';
        key = "";
    } while (*value);
}

/* ---- grid ---- */

/* Whether the launch takes fewer CTAs along a dimension than its sizes ask for, in which case the
 * kernel's loop steps on by the grid's size. More than a schedule ever asks for, along x, is as
 * good as no limit; along y CUDA's own counts, wherever sizes may reach it. */
static bool is_limited(const Emitter *e, const LaunchGrid *grid)
{
    if (!grid->axes || grid->max_ctas > MOST_ALONG_Y) return false;
    if (!axes_within(grid->axes, e->plan->launch.fixed)) return true;
    return axes_size(&e->plan->analysis->sizes, grid->axes) > grid->max_ctas * grid->per_cta;
}

static const char *grid_text(Emitter *e, const LaunchGrid *grid)
{
    const bool alone = grid->per_cta == 1 && !is_limited(e, grid);
    const char *count = !grid->axes                ? "1"
                        : alone && grid->times > 1 ? count_text(e, grid->axes)
                                                   : product_text(e, grid->axes);
    if (grid->per_cta > 1)
        count = arena_format(e->arena, "ceil(%s / %" PRId64 ")", count, grid->per_cta);
    if (is_limited(e, grid))
        count = arena_format(e->arena, "min(%s, %" PRId64 ")", count, grid->max_ctas);
    if (grid->times > 1) count = arena_format(e->arena, "%" PRId64 " * %s", grid->times, count);
    return count;
}

/* The grid of CTAs that share out parts or whole groups. */
static const char *parts_grid_text(Emitter *e)
{
    const char *groups = count_text(e, e->launch->grid[0].axes);
    long long few = e->launch->grid[0].max_ctas;
    if (e->launch->part_ctas == few)
        return arena_format(e->arena, "min(alone ? %s : %s * parts, %lld)", groups, groups, few);
    return arena_format(e->arena, "alone ? min(%s, %lld) : %s * parts", groups, few, groups);
}

/* The grid in all dimensions but z, which is always 1. */
static const char *grids_text(Emitter *e)
{
    const LaunchGrid *grid = e->launch->grid;
    const char *x = grid_text(e, &grid[0]), *y = grid_text(e, &grid[1]);
    if (e->launch->cluster > 1)
        x = strcmp(x, "1") ? arena_format(e->arena, "%d * %s", e->launch->cluster, x)
                           : arena_format(e->arena, "%d", e->launch->cluster);
    if (e->launch->part_groups) x = parts_grid_text(e);
    return arena_format(e->arena, "(%s, %s)", x, y);
}

/* ---- the launch ---- */

static void put_launch(Emitter *e)
{
    put_row(
        e, "launch",
        arena_format(e->arena, "%d of %d%s", e->index + 1, e->plan->launch.kernel_count,
                     e->launch->overlaps
                         ? "; programmatic stream serialization is allowed: the kernel itself waits"
                         : ""));
    if (e->launch->adds_parts >= 0)
        put_row(e, "",
                arena_format(e->arena,
                             "not after a launch of %s that was `alone`: it has stored "
                             "the results",
                             e->plan->kernels[e->k->finishes].name));
}

static void put_block(Emitter *e)
{
    const Kernel *k = e->k;
    const char *copies = has_copy_warp(k) ? ", one warp copies" : "";
    const char *listens = is_grouped(k) ? ", one warp listens" : "";
    const char *computes = has_copy_warp(k) || is_grouped(k)
                               ? arena_format(e->arena, ": %d compute", kernel_threads(k))
                               : "";
    put_row(
        e, "block",
        arena_format(e->arena, "%d threads%s%s%s", e->launch->threads, computes, copies, listens));
}

static void put_cluster(Emitter *e)
{
    enum { PORTABLE_CLUSTER = 8 };
    const int cluster = e->launch->cluster;
    if (cluster <= 1) return;
    if (is_grouped(e->k)) {
        put_row(e, "cluster",
                arena_format(e->arena,
                             "none: groups of %d CTAs meet in global memory (a cooperative launch)",
                             cluster));
        return;
    }
    put_row(e, "cluster",
            arena_format(e->arena, "%d CTAs, %s%s", cluster,
                         names_cluster(e) ? "by __cluster_dims__" : "an attribute of the launch",
                         cluster > PORTABLE_CLUSTER
                             ? ": set CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED first"
                             : ""));
}

/* A launch must allow more than this explicitly. The limit counts static shared memory, of which
 * there is always some. */
enum { WITHOUT_ASKING = 48 << 10 };

static void put_shared_memory(Emitter *e)
{
    const Kernel *k = e->k;
    const LaunchKernel *launch = e->launch;
    const char *how = most_smem(launch) >= WITHOUT_ASKING
                          ? ": set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first"
                          : "";
    put_row(e, "shared memory",
            arena_format(e->arena, "%lld bytes, dynamic%s", (long long)launch->smem_bytes, how));
    if (k->few_ctas)
        put_row(e, "",
                arena_format(e->arena, "%lld are faster in a grid of up to %d CTAs",
                             (long long)launch->few_bytes, k->few_ctas));
    if (!k->limit_ctas) return;
    put_row(e, "",
            arena_format(e->arena, "%s; 0 is correct too%s", reserve_text(e->arena, k),
                         k->finishes >= 0 && launch->overlaps
                             ? ", but CTAs that start early then crowd on the first free SMs"
                             : ""));
}

/* The registers that __launch_bounds__ leaves a thread, where they are fewer than a thread can have
 * at most: warps get them in steps of eight a thread. */
static void put_registers(Emitter *e)
{
    enum { WARP = 32, UNIT = 8, MOST = 255 };
    const int ctas = e->k->wanted_ctas > 1 ? e->k->wanted_ctas : 1;
    const int threads = (e->launch->threads + WARP - 1) / WARP * WARP;
    const int share = e->plan->target.registers_per_sm / (threads * ctas) / UNIT * UNIT;
    if (share < MOST)
        put_row(e, "registers",
                arena_format(e->arena, "at most %d a thread%s", share,
                             ctas > 1 ? arena_format(e->arena, ", for %d CTAs an SM", ctas) : ""));
    if (e->k->registers)
        put_row(e, share < MOST ? "" : "registers",
                arena_format(e->arena, "later %d in the copy warp, and %d in those that compute",
                             COPY_REGISTERS, e->k->registers));
}

/* ---- arguments and workspace ---- */

/* Puts several rows under one key. */
static void put_list(Emitter *e, const char *key, const NameList *rows)
{
    for (int i = 0; i < rows->count; i++) put_row(e, i ? "" : key, rows->data[i]);
}

static bool is_stride(const LaunchArg *arg)
{
    return arg->kind == ARG_STRIDE || arg->kind == ARG_ROW_STRIDE;
}

static void add_strides(Emitter *e, NameList *rows)
{
    NameList names = {0};
    for (int i = 0; i < e->entry->arg_count; i++)
        if (is_stride(&e->entry->args[i])) *list_push(e->arena, &names) = e->args[i];
    if (names.count)
        *list_push(e->arena, rows) =
            arena_format(e->arena, "%s: stride%s, in elements", join(e->arena, &names, ", "),
                         names.count > 1 ? "s" : "");
}

/* Tensors that have row axes only have no stride among the arguments. */
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

static void add_collapsed(Emitter *e, NameList *rows)
{
    if (e->launch->dense)
        *list_push(e->arena, rows) =
            arena_format(e->arena, "columns, numbered along %s, lie side by side; %s is for others",
                         axes_text(e->arena, e->g, e->launch->dense), e->launch->strided.name);
    if (!e->collapsed) return;
    if (counts_rows(e->k))
        *list_push(e->arena, rows) =
            arena_format(e->arena, "%ss: %s", e->row, product_text(e, e->collapsed));
    *list_push(e->arena, rows) = arena_format(
        e->arena, "%ss, numbered along %s, are evenly apart%s; %s is for others", e->row,
        axes_text(e->arena, e->g, e->collapsed), dense_text(e), e->launch->strided.name);
}

/* The formula of launch_groups in schedule/launch.c. */
static const char *parts_text(Emitter *e, const LaunchKernel *launch)
{
    const LaunchGrid *grid = &launch->grid[PARTS_DIM];
    NameList shares = {0};
    for (int of = 1; of <= PART_DIVISORS && grid->max_ctas / of > 1; of++)
        *list_push(e->arena, &shares) =
            arena_format(e->arena, "%lld", (long long)grid->max_ctas / of);
    if (!shares.count) return grid_text(e, grid);
    return arena_format(e->arena, "the first of %s that leaves %lld rows a part or more, else %s",
                        join(e->arena, &shares, ", "), (long long)least_part_rows(grid),
                        grid_text(e, grid));
}

static void add_partial_count(Emitter *e, NameList *rows)
{
    if (e->k->kept) {
        const char *groups = count_text(e, e->launch->grid[0].axes);
        long long ctas = e->launch->grid[0].max_ctas;
        *list_push(e->arena, rows) =
            arena_format(e->arena, "parts: of a group, %s", parts_text(e, e->launch));
        *list_push(e->arena, rows) = arena_format(
            e->arena,
            "alone: whether each CTA has whole groups, parts == 1 or (%lld - %s %% %lld) %% %lld <= "
            "%s / %d",
            ctas, groups, ctas, ctas, groups, PARTS_SHARE);
    }
    if (e->k->finishes < 0) return;
    const LaunchKernel *main = &e->plan->launch.kernels[e->k->finishes];
    const bool parts = e->plan->kernels[e->k->finishes].kept;
    *list_push(e->arena, rows) = arena_format(
        e->arena, "partials: %s", parts ? parts_text(e, main) : grid_text(e, &main->grid[0]));
}

/* The interval that device_interval in the runtime computes. */
static void add_interval(Emitter *e, NameList *rows)
{
    if (!is_paced(e->k)) return;
    *list_push(e->arena, rows) = arena_format(
        e->arena, "interval: ns between two %s that a %s asks for; 0 is always correct, and for %s",
        rows_of_step(e->k) > 1 ? "stages" : "rows", sharers_name(e->k),
        e->launch->paced_from > 1 ? "twice the data that L2 holds, or more,"
                                  : "more data than L2 holds,");
    *list_push(e->arena, rows) =
        arena_format(e->arena, "%lld * %s / (0.92 * peak memory bandwidth in bytes/ns) is faster",
                     (long long)e->launch->step_bytes, grid_text(e, &e->launch->grid[0]));
}

static void put_arguments(Emitter *e)
{
    NameList rows = {0};
    add_strides(e, &rows);
    add_collapsed(e, &rows);
    add_partial_count(e, &rows);
    add_interval(e, &rows);
    put_list(e, "arguments", &rows);
}

/* The elements of a slot, or of one of its copies. Groups in parts have room for as many as
 * schedule/launch.h says. */
static const char *elements_text(Emitter *e, const LaunchSlot *slot)
{
    if (slot->width > 1) return arena_format(e->arena, "%" PRId64, slot->width);
    if (!slot->axes) return "1";
    const LaunchKernel *kernels = e->plan->launch.kernels;
    int64_t few = slot->copies_kernel >= 0 ? kernels[slot->copies_kernel].part_groups : 0;
    AxisSet grouped = few ? slot->axes & kernels[slot->copies_kernel].grid[0].axes : 0;
    if (!grouped && slot->copies_dim != PARTS_DIM) return product_text(e, slot->axes);
    if (!grouped) return count_text(e, slot->axes);
    const char *groups =
        arena_format(e->arena, "min(%s, %" PRId64 ")", product_text(e, grouped), few);
    AxisSet others = slot->axes & ~grouped;
    return others ? arena_format(e->arena, "%s * %s", groups, product_text(e, others)) : groups;
}

/* `f32[N] for each CTA of layernorm_bwd`. */
static const char *slot_text(Emitter *e, const LaunchSlot *slot)
{
    const char *elements = elements_text(e, slot), *type = dtype_info[slot->dtype].fuse;
    if (slot->copies_kernel < 0) return arena_format(e->arena, "%s[%s]", type, elements);
    if (slot->copies_dim == PARTS_DIM)
        return arena_format(e->arena, "%s[parts * %s]", type, elements);
    const Kernel *k = &e->plan->kernels[slot->copies_kernel];
    return arena_format(e->arena, "%s[%s] for each %s of %s", type, elements, sharers_name(k),
                        k->name);
}

/* What another kernel has stored in a slot for this one. */
static const char *slot_value(Emitter *e, int slot)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (e->k->loads[i].slot == slot)
            return arena_format(e->arena, ", %s",
                                node_text(e->arena, e->g, e->k->loads[i].node, true));
    return "";
}

static void put_workspace(Emitter *e)
{
    NameList rows = {0};
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind != ARG_SLOT) continue;
        *list_push(e->arena, &rows) = arena_format(
            e->arena, "%s: %s%s%s", e->args[i], slot_text(e, &e->plan->launch.slots[arg->index]),
            arg->index == e->k->mailbox ? ", all zero before this launch" : "",
            slot_value(e, arg->index));
    }
    put_list(e, "workspace", &rows);
}

void emit_launch_table(Emitter *e)
{
    put_launch(e);
    put_row(e, "grid", grids_text(e));
    put_block(e);
    put_cluster(e);
    put_shared_memory(e);
    put_registers(e);
    if (e->k->finishes >= 0)
        put_finish_mapping(e);
    else if (e->k->clears < 0)
        put_mapping(e);
    put_arguments(e);
    put_workspace(e);
}
