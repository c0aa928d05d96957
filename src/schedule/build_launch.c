/* schedule/build_launch.c: the plain data a launcher needs: tensors, scalars, workspace slots,
 * and for each kernel its grid and arguments in the order the printed signature has them.
 */
#include "schedule/internal.h"

#include "base/prelude.h"
#include "base/reserved.h"

#include <ctype.h>

typedef LIST(LaunchArg) Args;

static void list_tensors(Scheduler *s, LaunchPlan *l)
{
    const Graph *g = s->g;
    LIST(LaunchTensor) tensors = {0};
    LIST(LaunchScalar) scalars = {0};
    bool *used = NEW_ARRAY(s->arena, bool, g->params.count + 1);
    for (int i = 1; i < g->nodes.count; i++)
        if (s->live[i] && g->nodes.data[i].op == OP_PARAM) used[g->nodes.data[i].param] = true;
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        if (p->scalar)
            *list_push(s->arena, &scalars) =
                (LaunchScalar){p->name, p->dtype, p->has_default, p->default_value};
        else
            *list_push(s->arena, &tensors) =
                (LaunchTensor){p->name, p->dtype, p->axes, false, used[i]};
    }
    l->input_count = tensors.count;
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        *list_push(s->arena, &tensors) =
            (LaunchTensor){o->name, o->dtype, o->axes, true, o->value.id != 0};
    }
    l->tensors = tensors.data;
    l->tensor_count = tensors.count;
    l->scalars = scalars.data;
    l->scalar_count = scalars.count;
}

/* What an unnamed value is called: variance, mean, rsqrt, ..., else number. */
static const char *unnamed_as(const Scheduler *s, Node n, bool squares)
{
    const char *text = op_info[node(s->g, n)->op].text;
    if (is_variance(s->a, n) && !squares) return "variance";
    return isalpha((unsigned char)*text) && node(s->g, n)->op != OP_WHERE ? text : "number";
}

static const char *slot_name(Scheduler *s, const Slot *slot, int index)
{
    const Node mean = s->a->centres[slot->node.id];
    const bool squares = slot->partial && mean.id; /* named after the mean */
    const char *name = node(s->g, squares ? mean : slot->node)->name;
    if (!name) name = arena_format(s->arena, "%s_%d", unnamed_as(s, slot->node, squares), index);
    return arena_format(s->arena, "%s%s_%s", name,
                        slot->shift ? "_shift"
                        : squares   ? "_squares"
                                    : "",
                        slot->partial ? "partial" : "value");
}

/* Each CTA of a group has 8 bytes for each round, CTA and 4 bytes of its results. */
static int64_t mailbox_words(const Scheduler *s, const Kernel *k)
{
    int words = exchanges_wide(s->g, k) ? 2 : 1;
    return (int64_t)mailbox_rounds(k) * most_exchanged(s->g, k) * words * k->cluster * k->cluster;
}

/* Behind the values' slots. */
static void list_mailboxes(Scheduler *s, Plan *plan, LaunchSlot *slots)
{
    int count = s->slots.count;
    for (int i = 0; i < plan->kernel_count; i++) {
        Kernel *k = &plan->kernels[i];
        if (k->clears >= 0) continue;
        k->mailbox = is_grouped(k) ? count++ : -1;
        if (is_grouped(k)) plan->kernels[i - 1].mailbox = -1;
        if (is_grouped(k))
            slots[k->mailbox] = (LaunchSlot){.name = "mailbox",
                                             .dtype = DTYPE_I64,
                                             .copies_kernel = i,
                                             .width = mailbox_words(s, k)};
    }
    plan->launch.slot_count = count;
}

/* The dimension of its grid that counts partials. */
static int parts_dim(const Kernel *k)
{
    return k->kept ? PARTS_DIM : 0;
}

static void list_slots(Scheduler *s, Plan *plan)
{
    LaunchSlot *slots = NEW_ARRAY(s->arena, LaunchSlot, s->slots.count + plan->kernel_count);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.data[i];
        slots[i] = (LaunchSlot){.name = slot_name(s, slot, i),
                                .dtype = slot_dtype(node(s->g, slot->node)->type),
                                .axes = node(s->g, slot->node)->axes,
                                .copies_kernel = -1,
                                .width = 1};
    }
    for (int i = 0; i < plan->kernel_count; i++)
        for (int j = 0; j < plan->kernels[i].accumulator_count; j++) {
            Accumulator *acc = &plan->kernels[i].accumulators[j];
            const int own[] = {acc->slot, acc->shift_slot};
            for (int which = 0; which < 2 && walks_rows(&plan->kernels[i]); which++) {
                if (own[which] < 0) continue;
                slots[own[which]].copies_kernel = i;
                slots[own[which]].copies_dim = parts_dim(&plan->kernels[i]);
            }
            if (acc->slot >= 0) acc->slot_name = slots[acc->slot].name;
            if (acc->shift_slot >= 0) acc->shift_name = slots[acc->shift_slot].name;
        }
    list_mailboxes(s, plan, slots);
    plan->launch.slots = slots;
}

static void push(Scheduler *s, Args *args, ArgKind kind, int index, int axis, const char *name)
{
    *list_push(s->arena, args) =
        (LaunchArg){.kind = kind, .index = index, .axis = axis, .name = name};
}

/* The axes that an entry counts as one: rows that are evenly apart, columns side by side. */
typedef struct {
    AxisSet rows, columns;
    const char *row; /* what one of these rows is called */
} Merged;

/* A tensor's pointer and the strides of all its axes but the fastest, which is dense; merged
 * rows have one stride, merged columns none. */
static void push_tensor(Scheduler *s, Args *args, int tensor, int phase, const char *name,
                        AxisSet axes, Merged merged)
{
    const AxisSet collapsed = merged.rows,
                  dense = axes_within(merged.columns, axes) ? merged.columns : 0;
    push(s, args, ARG_TENSOR, tensor, 0, name);
    args->data[args->count - 1].phase = phase;
    if (axes & collapsed && axes & ~collapsed)
        push(s, args, ARG_ROW_STRIDE, tensor, 0, arena_format(s->arena, "%s_%s", name, merged.row));
    for (int i = 0; i < s->g->axis_count; i++) {
        bool fastest = axes >> i == 1;
        if ((axes & ~collapsed & ~dense) >> i & 1 && !fastest)
            push(s, args, ARG_STRIDE, tensor, i,
                 arena_format(s->arena, "%s_%s", name, s->g->axes[i].name));
    }
}

/* The last phase that reads a row's elements from memory, not from what is kept of them. One that a
 * sum picks is read by another thread than may write it, so that only the end of its phase keeps
 * the two apart. */
static int last_read(const Kernel *k, const Load *load)
{
    if (k->finishes >= 0) return load->axes == k->columns ? READ_BY_WRITER : 0;
    int last = is_resident(load) && !is_staged(load) ? load->first_phase : 0;
    if (!is_staged(load) && !is_resident(load) && load->phases)
        last =
            is_needed_later(load, LAST_PHASE_BIT) ? k->phases : 63 - __builtin_clzll(load->phases);
    for (int i = 0; i < k->inner_count; i++)
        if (k->inner[i].picked.id == load->node.id && k->inner[i].phase >= last)
            last = k->inner[i].phase + 1;
    return last;
}

/* Whether a row's number is all that it takes to find what the kernel reads and writes of the row,
 * if neighbours are everywhere as far apart as others. */
static bool collapses_rows(const Scheduler *s, const Kernel *k)
{
    bool outside = k->rows < (k->columns & -k->columns) ||
                   !k->columns; /* columns are within rows, not between them */
    bool together = walks_rows(k) && has_several_row_axes(k) && !k->kept && outside;
    for (int i = 0; i < k->load_count; i++)
        together &= axes_within(k->rows, k->loads[i].axes) || !(k->loads[i].axes & k->rows);
    for (int i = 0; i < k->store_count; i++)
        together &= axes_within(k->rows, k->stores[i].axes) || !(k->stores[i].axes & k->rows);
    for (int i = 1; together && i < s->g->nodes.count; i++)
        if (k->computed[i] && node(s->g, (Node){(uint32_t)i})->op == OP_INDEX)
            together = !(k->rows >> node(s->g, (Node){(uint32_t)i})->axis & 1);
    return together;
}

/* Of a slot's axes those whose sizes its offsets take: all but the slowest, or, where it has
 * copies, all. */
static AxisSet slot_sizes(const LaunchSlot *slot, AxisSet axes)
{
    return slot->copies_kernel >= 0 ? axes : axes & (axes - 1);
}

/* Row sizes that the kernel's text mentions. */
static AxisSet sizes_used(const Scheduler *s, const LaunchSlot *slots, const Kernel *k,
                          AxisSet collapsed)
{
    AxisSet slowest =
        k->rows & -k->rows; /* what tells the rows of a single CTA apart needs the others */
    AxisSet used =
        ((counts_rows(k) ? k->rows : k->rows & ~slowest) & ~collapsed) | k->kept | k->columns;
    for (int i = 1; k->computed && i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (k->computed[i] && info->op == OP_SIZE) used |= (AxisSet)1 << info->axis;
        if (info->op == OP_MEAN && inner_of(k, (Node){(uint32_t)i})) used |= info->reduced;
    }
    /* the kernel that adds the partials divides by how many rows there are */
    const bool divides = k->finishes >= 0 || k->kept;
    for (int i = 0; i < k->accumulator_count; i++)
        if (divides && node(s->g, k->accumulators[i].node)->op == OP_MEAN)
            used |= node(s->g, k->accumulators[i].node)->reduced;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].slot >= 0)
            used |= slot_sizes(&slots[k->loads[i].slot], k->loads[i].axes) & ~collapsed;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].slot >= 0)
            used |= slot_sizes(&slots[k->stores[i].slot], k->stores[i].axes) & ~collapsed;
    return used & ~s->a->fixed;
}

/* By parameter. */
static const bool *find_computed_params(const Scheduler *s, const Kernel *k)
{
    bool *computed = NEW_ARRAY(s->arena, bool, s->g->params.count + 1);
    for (int i = 1; k->computed && i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (k->computed[i] && info->op == OP_PARAM) computed[info->param] = true;
    }
    return computed;
}

/* The kernel that adds the partials of one that sums rows by groups, where CTAs may do without it;
 * NULL: none. */
static Kernel *finish_of_groups(const Plan *plan, int kernel)
{
    for (int i = kernel + 1; plan->kernels[kernel].kept && i < plan->kernel_count; i++)
        if (plan->kernels[i].finishes == kernel) return &plan->kernels[i];
    return NULL;
}

/* Such CTAs read what it does, so far as they do not read it anyway. */
static void push_finish_loads(Scheduler *s, Args *args, const LaunchSlot *slots, const Kernel *k,
                              const Kernel *finish)
{
    for (int i = 0; finish && i < finish->load_count; i++) {
        const Load *load = &finish->loads[i];
        if (load_of(k, load->node)) continue;
        if (load->slot >= 0)
            push(s, args, ARG_SLOT, load->slot, 0, slots[load->slot].name);
        else
            push_tensor(s, args, load->tensor, 0, load->name, load->axes, (Merged){0, 0, NULL});
    }
}

static void push_partials(Scheduler *s, Args *args, const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++) {
        const Accumulator *acc = &k->accumulators[i];
        if (acc->slot >= 0) push(s, args, ARG_SLOT, acc->slot, 0, acc->slot_name);
        if (acc->shift_slot >= 0) push(s, args, ARG_SLOT, acc->shift_slot, 0, acc->shift_name);
    }
}

static LaunchEntry list_args(Scheduler *s, Plan *plan, int kernel, const char *name, Merged merged)
{
    const AxisSet collapsed = merged.rows;
    Kernel *k = &plan->kernels[kernel];
    const LaunchSlot *slots = plan->launch.slots;
    Args args = {0};
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        if (load->slot >= 0)
            push(s, &args, ARG_SLOT, load->slot, 0, load->name = slots[load->slot].name);
        else
            push_tensor(s, &args, load->tensor, last_read(k, load), load->name, load->axes, merged);
    }
    const Kernel *finish = finish_of_groups(plan, kernel);
    push_finish_loads(s, &args, slots, k, finish);
    if (k->finishes >= 0) push_partials(s, &args, k);
    for (int i = 0; i < k->store_count; i++) {
        Store *store = &k->stores[i];
        if (store->slot >= 0)
            push(s, &args, ARG_SLOT, store->slot, 0, store->name = slots[store->slot].name);
        else
            push_tensor(s, &args, store->tensor, store->phase, store->name, store->axes, merged);
    }
    if (k->finishes < 0) push_partials(s, &args, k);
    int mailbox = k->clears >= 0 ? plan->kernels[k->clears].mailbox : k->mailbox;
    if (mailbox >= 0) push(s, &args, ARG_SLOT, mailbox, 0, slots[mailbox].name);
    const bool *used = find_computed_params(s, k),
               *later = finish ? find_computed_params(s, finish) : used;
    int scalar = 0;
    for (int i = 0; i < s->g->params.count; i++) {
        if (!s->g->params.data[i].scalar) continue;
        if (used[i] || later[i]) push(s, &args, ARG_SCALAR, scalar, 0, s->g->params.data[i].name);
        scalar++;
    }
    if (collapsed && counts_rows(k))
        push(s, &args, ARG_ROWS, kernel, 0, k->beside ? "lines" : "rows");
    AxisSet sizes = sizes_used(s, slots, k, collapsed);
    if (finish) sizes |= sizes_used(s, slots, finish, 0);
    for (int i = 0; i < s->g->axis_count; i++)
        if (sizes >> i & 1) push(s, &args, ARG_SIZE, 0, i, s->g->axes[i].name);
    if (k->finishes >= 0)
        push(s, &args, ARG_GRID, k->finishes, parts_dim(&plan->kernels[k->finishes]), "partials");
    if (k->kept) push(s, &args, ARG_GRID, kernel, PARTS_DIM, "parts");
    if (k->kept) push(s, &args, ARG_ALONE, kernel, 0, "alone");
    if (is_paced(k)) push(s, &args, ARG_INTERVAL, kernel, 0, "interval");
    return (LaunchEntry){name, args.count, args.data};
}

/* Bytes that are read and written of a row. What several rows share comes from L2. */
static int64_t row_traffic(const Scheduler *s, const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (axes_within(k->rows, k->loads[i].axes))
            bytes += axes_size(&s->a->sizes, k->loads[i].axes & k->columns) *
                     dtype_info[k->loads[i].dtype].bytes;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].axes & k->rows)
            bytes += axes_size(&s->a->sizes, k->stores[i].axes & k->columns) *
                     dtype_info[k->stores[i].dtype].bytes;
    return bytes;
}

int64_t resident_ctas(const Scheduler *s, const Kernel *k)
{
    int sms = is_grouped(k) ? s->target->sms : target_cluster_sms(s->target, k->cluster);
    int64_t ctas = (int64_t)k->live_ctas * sms / (k->column_ctas * k->cluster);
    int64_t asked = k->most_ctas / k->cluster;
    if (k->most_ctas && (asked < ctas || !is_grouped(k))) ctas = asked; /* a group lives at once */
    return ctas < 1 ? 1 : ctas;
}

/* A mailbox is cleared for as many groups as exchange through it. */
static void set_clear_grid(const Scheduler *s, const Plan *plan, const Kernel *k,
                           LaunchGrid grid[GRID_RANK])
{
    const Kernel *main = &plan->kernels[k->clears];
    grid[0] = (LaunchGrid){main->rows, 1, resident_ctas(s, main),
                           mailbox_words(s, main) / (kernel_threads(k) * CLEARED_WORDS)};
    grid[1] = grid[2] = (LaunchGrid){0, 1, 1, 1};
}

/* Whether columns of which there are none are all that a kernel stores and adds up. */
static bool has_nothing(const Scheduler *s, const Kernel *k)
{
    bool nothing = walks_rows(k) && column_count(s, k) == 0;
    for (int i = 0; i < k->store_count; i++)
        nothing &= axes_size(&s->a->sizes, k->stores[i].axes & k->columns) == 0;
    for (int i = 0; i < k->accumulator_count; i++)
        nothing &= axes_size(&s->a->sizes, node(s->g, arg(s->g, k->accumulators[i].node, 0))->axes &
                                               k->columns) == 0;
    return nothing && axes_within(k->columns, s->a->fixed);
}

/* CTAs that add parts walk columns where there are more than the GPU holds. */
static int64_t most_finishing(const Scheduler *s, const Kernel *k, int64_t most)
{
    if (!s->kernels.data[k->finishes].kept) return most;
    return (int64_t)s->target->sms * (s->target->threads_per_sm / kernel_threads(k));
}

/* Of rows that are neighbours: along x those that a CTA has at a time, along y the other row
 * axes; or as many CTAs as the GPU holds, which share out both. */
static void set_beside_grid(const Scheduler *s, const Kernel *k, LaunchGrid grid[GRID_RANK])
{
    grid[0] = (LaunchGrid){k->beside, rows_at_once(k), 0x7fffffff, 1};
    grid[1] = (LaunchGrid){k->rows, 1, MOST_ALONG_Y, 1};
    if (!is_persistent(k)) return;
    grid[0] = (LaunchGrid){k->beside | k->rows, 1, resident_ctas(s, k), 1};
    grid[1] = (LaunchGrid){0, 1, 1, 1};
}

/* Rows that a CTA has at least, if there are as many. What it leaves of its columns' sums is as
 * much as several rows are; and where others have the other columns, there are enough CTAs. */
static int least_rows(const Kernel *k)
{
    enum { SEVERAL = 4 };
    const bool shares = has_column_parts(k) && has_column_accumulators(k) && !k->stages;
    return rows_of_step(k) * (shares ? SEVERAL : 1);
}

static void set_grid(const Scheduler *s, const Kernel *k, LaunchGrid grid[GRID_RANK])
{
    int64_t most = 0x7fffffff;
    most /= k->cluster;
    int64_t ctas = k->one_row          ? INT64_MAX
                   : is_persistent(k)  ? resident_ctas(s, k)
                   : has_fewer_ctas(k) ? ceil_div(k->most_ctas, k->cluster)
                                       : most;
    grid[0] = (LaunchGrid){k->rows, least_rows(k), ctas, 1};
    grid[1] = grid[2] = (LaunchGrid){0, 1, 1, 1};
    if (k->kept) {
        int64_t parts = resident_ctas(s, k);
        grid[0] = (LaunchGrid){k->kept, 1, parts, 1};
        grid[PARTS_DIM] = (LaunchGrid){k->rows, k->part_rows, parts, 1};
    }
    if (has_parts_in_order(k))
        grid[0] = (LaunchGrid){k->rows, 1, most / k->column_ctas, k->column_ctas};
    else if (has_column_parts(k))
        grid[1] = (LaunchGrid){k->columns, (int64_t)k->threads_per_row * k->vec * k->tiles,
                               MOST_ALONG_Y, 1};
    if (k->beside) set_beside_grid(s, k, grid);
    if (k->finishes >= 0)
        grid[0] = (LaunchGrid){k->columns, k->threads_per_row, most_finishing(s, k, most), 1};
    if (has_nothing(s, k)) grid[0].axes |= k->columns;
}

/* A kernel's name is the text's to use everywhere: what is declared by others gets
 * another, and so does a name that C++ keeps for its libraries. */
static const char *function_name(Arena *arena, const char *name)
{
    name = plain_name(arena, name);
    if (name[0] == '_') return arena_format(arena, "kernel%s", name);
    bool taken = is_reserved_name(name) || is_own_name(name) || is_library_name(name) ||
                 is_prelude_name(name);
    return taken ? arena_format(arena, "%s_kernel", name) : name;
}

const char *kernel_name(Arena *arena, const Graph *g, const Plan *plan, int index, bool strided)
{
    const Kernel *k = &plan->kernels[index];
    const char *role = strided            ? "_strided"
                       : k->clears >= 0   ? "_clear"
                       : k->finishes >= 0 ? "_finish"
                                          : "";
    int before = 0, twin = 0;
    for (int i = 0; i < plan->kernel_count; i++) {
        before += walks_rows(&plan->kernels[i]) && i < index;
        twin += plan->kernels[i].finishes >= 0 && i < index;
    }
    const int which = k->finishes >= 0 ? twin : before;
    const char *number = which ? arena_format(arena, "_%d", which + 1) : "";
    return function_name(arena, arena_format(arena, "%s%s%s", g->name, role, number));
}

static bool stores_single_elements(const Kernel *k)
{
    return k->vec == 1 && row_bytes(k) == 2 * row_inputs(k);
}

/* Single elements of 2 bytes are stored as parts of sectors, of which memory can do less: as if
 * they were a sixteenth more. */
static int64_t paced_bytes(const Kernel *k, int64_t traffic)
{
    enum { SIXTEENTHS = 16 };
    return stores_single_elements(k) ? traffic + traffic / SIXTEENTHS : traffic;
}

/* Few rows may still be in L2, from which they come faster than at any pace, and what is written
 * fits there as well. */
static int paced_from(const Kernel *k)
{
    enum { ALONE = 1, SUMS = 2 };
    return k->accumulator_count ? SUMS : ALONE;
}

void build_launch(Scheduler *s, Plan *plan)
{
    LaunchPlan *l = &plan->launch;
    l->graph = s->g->name;
    l->axis_count = s->g->axis_count;
    for (int i = 0; i < s->g->axis_count; i++) l->axis_names[i] = s->g->axes[i].name;
    l->fixed = s->a->fixed;
    l->sizes = s->a->sizes;
    list_tensors(s, l);
    list_slots(s, plan);
    LaunchKernel *kernels = NEW_ARRAY(s->arena, LaunchKernel, plan->kernel_count);
    for (int i = 0; i < plan->kernel_count; i++) {
        Kernel *k = &plan->kernels[i];
        k->name = kernel_name(s->arena, s->g, plan, i, false);
        kernels[i].threads = kernel_threads(k) + helper_threads(k);
        kernels[i].cluster = k->cluster;
        kernels[i].mailbox = k->mailbox;
        kernels[i].part_groups = k->kept ? PARTS_SHARE * resident_ctas(s, k) : 0;
        /* rows that are loaded when their turn comes, not through a ring, want as many CTAs as an
         * SM has room for */
        kernels[i].part_ctas = !k->kept ? 0 : k->stages ? resident_ctas(s, k) : INT32_MAX;
        kernels[i].adds_parts =
            k->finishes >= 0 && plan->kernels[k->finishes].kept ? k->finishes : -1;
        kernels[i].overlaps = s->target->bulk_copy && k->mailbox < 0;
        kernels[i].smem_bytes = k->smem_bytes + k->idle_bytes;
        kernels[i].few_bytes = k->few_bytes;
        kernels[i].few_ctas = k->few_ctas;
        kernels[i].step_bytes =
            is_paced(k) ? rows_of_step(k) * paced_bytes(k, row_traffic(s, k)) : 0;
        kernels[i].paced_from = paced_from(k);
        if (k->clears >= 0)
            set_clear_grid(s, plan, k, kernels[i].grid);
        else
            set_grid(s, k, kernels[i].grid);
        kernels[i].collapsed = collapses_rows(s, k) ? k->rows : 0;
        kernels[i].dense = k->dense | k->contiguous;
        const Merged merged = {kernels[i].collapsed, kernels[i].dense, k->beside ? "line" : "row"};
        kernels[i].entry = list_args(s, plan, i, k->name, merged);
        if (has_strided(&kernels[i])) {
            const char *name = kernel_name(s->arena, s->g, plan, i, true);
            kernels[i].strided = list_args(s, plan, i, name, (Merged){0, 0, NULL});
        }
    }
    l->kernels = kernels;
    l->kernel_count = plan->kernel_count;
}
