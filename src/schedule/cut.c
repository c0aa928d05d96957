/* schedule/cut.c: cuts the graph into kernels. A reduction over exactly the columns happens inside
 * a row; every other reduction needs all CTAs to finish, so its users live in a later kernel, of a
 * higher level (schedule/levels.c). Between kernels only reduction results cross, and
 * what is made of them alone (schedule/finished.c), the cheapest values there are; everything else
 * is recomputed from the inputs. */
#include "schedule/internal.h"

#include <string.h>

/* An array with room for one more item: it doubles where it is full. */
static void *make_room(Arena *arena, void *items, int count, size_t size)
{
    if (count & (count - 1)) return items; /* full at powers of two */
    char *more = NEW_ARRAY(arena, char, size * 2 * ((size_t)count + 1));
    if (count) memcpy(more, items, size * (size_t)count);
    return more;
}
#define push_item(s, items, count)                                                                 \
    (*((items) = make_room((s)->arena, (items), (count), sizeof *(items)), &(items)[(count)++]))

static Kernel *add_kernel(Scheduler *s, int level, AxisSet rows, AxisSet columns)
{
    Kernel *k = list_push(s->arena, &s->kernels);
    memset(k, 0, sizeof *k);
    k->level = level;
    k->rows = rows;
    k->columns = columns;
    k->finishes = k->clears = -1;
    return k;
}

static Kernel *find_kernel(Scheduler *s, int level, AxisSet rows, AxisSet columns)
{
    for (int i = 0; i < s->kernels.count; i++) {
        Kernel *k = &s->kernels.data[i];
        if (k->level == level && k->rows == rows && k->columns == columns && !k->columnwise)
            return k;
    }
    return add_kernel(s, level, rows, columns);
}

static Kernel *find_columnwise(Scheduler *s, int level, AxisSet rows, AxisSet kept)
{
    for (int i = 0; i < s->kernels.count; i++) {
        Kernel *k = &s->kernels.data[i];
        if (k->columnwise && k->level == level && k->rows == rows && k->kept == kept) return k;
    }
    Kernel *k = add_kernel(s, level, rows, s->a->columns);
    k->columnwise = true;
    k->kept = kept;
    return k;
}

/* Of several axes the fastest must have a size that is known: vectors are to divide it. */
static Access find_access(const Scheduler *s, const Kernel *k, AxisSet axes)
{
    AxisSet inside = axes & k->columns, known = k->columns & s->a->fixed;
    if (!inside) return ACCESS_ROW;
    /* the fastest axis is the highest bit: here it is the same of both */
    bool fastest = inside > (axes ^ k->columns);
    bool divides = k->beside || !has_several_columns(k) || known > (k->columns ^ known);
    return fastest && divides ? ACCESS_VECTOR : ACCESS_ELEMENT;
}

static Access store_access(const Scheduler *s, const Kernel *k, const Store *store)
{
    const Access access = find_access(s, k, store->axes);
    /* what lacks a column's axis is stored at its first coordinate alone */
    return access == ACCESS_VECTOR && k->columns & ~store->axes ? ACCESS_ELEMENT : access;
}

DType slot_dtype(Type type)
{
    return type == TYPE_F64 ? DTYPE_F64 : type == TYPE_I64 ? DTYPE_I64 : DTYPE_F32;
}

static void add_store(const Scheduler *s, Kernel *k, Node n, int output, int tensor, int slot)
{
    const Graph *g = s->g;
    Store *store = &push_item(s, k->stores, k->store_count);
    *store = (Store){.node = n, .tensor = tensor, .slot = slot};
    store->axes = node(g, n)->axes;
    store->dtype = slot_dtype(node(g, n)->type);
    if (output >= 0) {
        store->name = g->outputs.data[output].name;
        store->axes = g->outputs.data[output].axes;
        store->dtype = g->outputs.data[output].dtype;
    }
    store->access = store_access(s, k, store);
}

/* The kernel that computes a reduction. */
static Kernel *reduction_kernel(Scheduler *s, Node n)
{
    AxisSet reduced = node(s->g, n)->reduced, left = node(s->g, n)->axes;
    uint32_t from = arg(s->g, n, 0).id;
    AxisSet from_axes = s->g->nodes.data[from].axes;
    switch (reduction_way(s, n)) {
    case BY_ROW: return find_kernel(s, s->home[n.id], left & s->a->rows, s->a->columns);
    case BY_RIDING:
        return find_kernel(s, s->home[n.id], from_axes & s->a->rows & ~columns_of(s, from_axes),
                           columns_of(s, from_axes));
    case BY_COLUMN: return find_columnwise(s, s->home[n.id], reduced, left & s->a->rows);
    case BY_ITSELF: break;
    }
    return find_kernel(s, s->home[n.id], left, reduced);
}

static int output_tensor(const Scheduler *s, int output)
{
    return s->tensor_of[s->g->params.count] + output;
}

/* Outputs that are a reduction's very value are stored where the reduction ends. */
static void store_results(Scheduler *s, Kernel *k, Node n)
{
    for (int i = s->first_output[n.id]; i >= 0; i = s->next_output[i])
        add_store(s, k, n, i, output_tensor(s, i), -1);
    if (s->slot_of[n.id] >= 0) add_store(s, k, n, -1, -1, s->slot_of[n.id]);
}

/* The kernel that stores an output which no kernel of reductions does. One that walks other columns
 * than rows have reads what rows reduce to, so it comes after that. */
static Kernel *output_kernel(Scheduler *s, const Output *output)
{
    const Node v = output->value;
    AxisSet columns = columns_of_store(s, v);
    int level = columns == s->a->columns ? s->level[v.id] : s->cut[v.id];
    return find_kernel(s, level, node(s->g, v)->axes & s->a->rows & ~columns, columns);
}

/* Whether the kernel of reductions by themselves stores what is made of them alone. */
static bool finishes_itself(const Scheduler *s, Node n)
{
    const Node by = s->finished[n.id];
    return by.id && reduction_way(s, by) == BY_ITSELF;
}

static void place_roots(Scheduler *s)
{
    const Graph *g = s->g;
    for (int i = 0; i < g->outputs.count; i++) {
        Node v = g->outputs.data[i].value;
        if (!v.id || (is_reduction(g, v) && reduction_way(s, v) != BY_ROW)) continue;
        if (s->finished[v.id].id) {
            if (finishes_itself(s, v))
                add_store(s, reduction_kernel(s, s->finished[v.id]), v, i, output_tensor(s, i), -1);
            continue;
        }
        add_store(s, output_kernel(s, &g->outputs.data[i]), v, i, output_tensor(s, i), -1);
    }
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i] || !is_reduction(g, n) || reduction_way(s, n) == BY_ROW) continue;
        Kernel *k = reduction_kernel(s, n);
        if (reduction_way(s, n) != BY_ITSELF)
            push_item(s, k->accumulators, k->accumulator_count) =
                (Accumulator){.node = n,
                              .per_column = node(g, n)->axes != 0,
                              .slot = -1,
                              .mean = s->a->centres[i],
                              .shift_slot = -1};
        else
            push_item(s, k->inner, k->inner_count) = (InnerReduction){.node = n};
    }
}

/* Whether kernel k itself computes reduction n on the way to its roots. */
static bool computes(const Scheduler *s, const Kernel *k, Node n)
{
    if (inner_of(k, n)) return true;
    return computes_rows(s, k) && reduction_way(s, n) == BY_ROW && s->home[n.id] == k->level &&
           axes_within(node(s->g, n)->axes & s->a->rows, k->rows);
}

static int request_slot(Scheduler *s, Node n)
{
    if (s->slot_of[n.id] < 0) {
        s->slot_of[n.id] = s->slots.count;
        *list_push(s->arena, &s->slots) = (Slot){.node = n};
        AxisSet rows = node(s->g, n)->axes & s->a->rows;
        if (finishes_itself(s, n))
            add_store(s, reduction_kernel(s, s->finished[n.id]), n, -1, -1, s->slot_of[n.id]);
        else if (s->finished[n.id].id)
            return s->slot_of[n.id]; /* the finish kernel is yet to come */
        else if (s->left_by[n.id].id)
            add_store(s, reduction_kernel(s, s->left_by[n.id]), n, -1, -1, s->slot_of[n.id]);
        else if (!is_reduction(s->g, n))
            add_store(s, find_kernel(s, s->home[n.id], rows, s->a->columns), n, -1, -1,
                      s->slot_of[n.id]);
        else if (reduction_way(s, n) == BY_ROW)
            add_store(s, reduction_kernel(s, n), n, -1, -1, s->slot_of[n.id]);
    }
    return s->slot_of[n.id];
}

static bool is_loaded(const Scheduler *s, const Kernel *k, Node n)
{
    if (is_reduction(s->g, n)) return !computes(s, k, n);
    if (node(s->g, n)->op == OP_PARAM) return is_tensor(s->g, n);
    if (s->passed[n.id]) return !computes(s, k, s->finished[n.id]);
    if (s->left_by[n.id].id && !computes(s, k, s->left_by[n.id])) return true;
    return s->crosses[n.id] && !computes_rows(s, k);
}

/* What a kernel needs: everything below its roots, down to tensors and slots. */
static bool *find_needed(Scheduler *s, const Kernel *k)
{
    bool *needed = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 0; i < k->store_count; i++) needed[k->stores[i].node.id] = true;
    for (int i = 0; i < k->inner_count; i++) needed[k->inner[i].node.id] = true;
    for (int i = 0; i < k->accumulator_count; i++)
        needed[operand_of(s->g, &k->accumulators[i]).id] = true;
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!needed[i] || is_loaded(s, k, n)) continue;
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++)
            needed[arg(s->g, n, j).id] = true;
    }
    return needed;
}

void add_load(Scheduler *s, int kernel, Node n)
{
    const NodeInfo *info = node(s->g, n);
    Load load = {.node = n, .tensor = -1, .slot = -1, .axes = info->axes};
    if (info->op == OP_PARAM) {
        load.tensor = s->tensor_of[info->param];
        load.name = s->g->params.data[info->param].name;
        load.dtype = s->g->params.data[info->param].dtype;
    } else {
        load.slot = request_slot(s, n); /* may add a kernel: s->kernels moves */
        load.dtype = slot_dtype(info->type);
    }
    Kernel *k = &s->kernels.data[kernel];
    load.access = find_access(s, k, load.axes);
    push_item(s, k->loads, k->load_count) = load;
}

/* Fills in what kernel computes and loads. */
static void find_contents(Scheduler *s, int kernel)
{
    const bool *needed = find_needed(s, &s->kernels.data[kernel]);
    int inner = s->kernels.data[kernel].inner_count;
    s->kernels.data[kernel].computed = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        Kernel *k = &s->kernels.data[kernel];
        if (!needed[i]) continue;
        bool own = !is_loaded(s, k, n);
        k->computed[i] = own;
        if (!own)
            add_load(s, kernel, n);
        else if (is_reduction(s->g, n) && inner == 0)
            push_item(s, k->inner, k->inner_count) = (InnerReduction){.node = n};
    }
}

/* What is made of a kernel's sums alone is stored where they end. */
static void store_finished(Scheduler *s, Kernel *k)
{
    for (int i = 1; k->accumulator_count && i < s->g->nodes.count; i++)
        if (s->finished[i].id == k->accumulators[0].node.id)
            store_results(s, k, (Node){(uint32_t)i});
}

/* Asks other kernels for what the finish kernels of a kernel's sums load: they are yet to come, and
 * those kernels have to compute it. */
static void ask_for_results(Scheduler *s, int kernel)
{
    for (int per_column = 0; per_column <= 1; per_column++) {
        const Kernel *k = &s->kernels.data[kernel];
        int first = 0;
        while (first < k->accumulator_count && k->accumulators[first].per_column != per_column)
            first++;
        if (first == k->accumulator_count) continue;
        const Node own = k->accumulators[first].node;
        bool *needed = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
        for (int i = 1; i < s->g->nodes.count; i++)
            needed[i] =
                s->finished[i].id == own.id && (s->first_output[i] >= 0 || s->slot_of[i] >= 0);
        find_finish_needs(s, own, needed);
        for (int i = 1; i < s->g->nodes.count; i++)
            if (needed[i] && is_finish_load(s, own, (Node){(uint32_t)i}) &&
                !is_tensor(s->g, (Node){(uint32_t)i}))
                request_slot(s, (Node){(uint32_t)i});
    }
}

static void add_partials(Scheduler *s, Accumulator *acc)
{
    if (acc->mean.id && !is_variance(s->a, acc->node)) return; /* it follows from the mean's */
    acc->slot = s->slots.count;
    *list_push(s->arena, &s->slots) = (Slot){.node = acc->node, .partial = true};
    if (!acc->squares.id) return;
    acc->shift_slot = s->slots.count;
    *list_push(s->arena, &s->slots) = (Slot){.node = acc->node, .partial = true, .shift = true};
}

/* The kernel that adds what the CTAs of `producer` left, one for each shape of result. That of
 * groups has all their columns for its own. */
static void add_finish(Scheduler *s, int producer, bool per_column)
{
    Kernel *made = NULL;
    for (int i = 0; i < s->kernels.data[producer].accumulator_count; i++) {
        Accumulator acc = s->kernels.data[producer].accumulators[i];
        if (acc.per_column != per_column) continue;
        if (!made) {
            const Kernel *from = &s->kernels.data[producer];
            AxisSet columns = per_column ? from->kept | column_axes(from) : 0;
            made = add_kernel(s, from->level, 0, columns);
            made->family = FAMILY_FINISH;
            made->finishes = producer;
        }
        add_partials(s, &acc);
        s->kernels.data[producer].accumulators[i] = acc;
        push_item(s, made->accumulators, made->accumulator_count) = acc;
        store_results(s, made, acc.node);
    }
    if (!made) return;
    store_finished(s, made);
    find_finish_contents(s, (int)(made - s->kernels.data));
}

static void end_accumulators(Scheduler *s, int kernel)
{
    add_finish(s, kernel, true);
    add_finish(s, kernel, false);
    Kernel *k = &s->kernels.data[kernel];
    if (!k->kept) return;
    /* a CTA that takes all of a group has its results */
    int before = k->store_count;
    for (int i = 0; i < k->accumulator_count; i++) store_results(s, k, k->accumulators[i].node);
    store_finished(s, k);
    for (int i = before; i < k->store_count; i++) k->stores[i].result = true;
}

/* Whether a kernel computes something of each row, and not only sums over them. */
static bool stores_of_rows(const Kernel *k)
{
    for (int i = 0; i < k->store_count; i++)
        if (!k->stores[i].result) return true;
    return false;
}

/* A kernel on which sums over the rows of each group ride walks its rows by groups. */
static void group_rows(const Scheduler *s, Kernel *k)
{
    if (!s->groups || !k->accumulator_count || k->columnwise || k->rows != s->a->rows) return;
    k->kept = s->groups;
    k->rows &= ~s->groups;
    k->columnwise = !k->inner_count && !stores_of_rows(k);
}

/* The slowest row axes of vectors that a kernel without reductions reads, if the rows of a group of
 * those axes have them in common; 0: there are none, or others. */
static AxisSet groups_of_vectors(const Kernel *k)
{
    AxisSet groups = 0;
    if (k->accumulator_count || k->inner_count || k->kept) return 0;
    for (int i = 0; i < k->load_count; i++) {
        const AxisSet axes = k->loads[i].axes & k->rows;
        if (k->loads[i].access != ACCESS_VECTOR || !axes || axes == k->rows) continue;
        if (groups && axes != groups) return 0;
        groups = axes;
    }
    return groups < (k->rows & ~groups & -(k->rows & ~groups)) ? groups : 0;
}

/* In a ring it walks its rows by groups, as sums over their rows do, and reads those vectors once a
 * part: fit_schedule(). */
static void group_vectors(const Scheduler *s, Kernel *k)
{
    const AxisSet groups = groups_of_vectors(k);
    if (!groups || k->rows != s->a->rows) return;
    k->kept = groups;
    k->rows &= ~groups;
}

/* Where rows are neighbours in memory and their columns are apart, a kernel has vectors of rows. */
static void lay_beside(const Scheduler *s, Kernel *k)
{
    if (k->columns != s->a->columns || !(k->rows & s->a->beside) || k->kept) return;
    k->beside = s->a->beside;
    k->columns |= k->beside;
    k->rows &= ~k->beside;
    for (int i = 0; i < k->load_count; i++)
        k->loads[i].access = find_access(s, k, k->loads[i].axes);
    for (int i = 0; i < k->store_count; i++)
        k->stores[i].access = store_access(s, k, &k->stores[i]);
}

static Family find_family(const Kernel *k)
{
    if (k->finishes >= 0) return FAMILY_FINISH;
    if (k->accumulator_count == 0) return k->inner_count ? FAMILY_ROW : FAMILY_POINTWISE;
    return k->inner_count || stores_of_rows(k) ? FAMILY_GRID_STRIDE : FAMILY_COLUMN;
}

static void cut(Scheduler *s, bool late)
{
    s->kernels.count = s->slots.count = 0;
    s->slot_of = NEW_ARRAY(s->arena, int, s->g->nodes.count);
    for (int i = 0; i < s->g->nodes.count; i++) s->slot_of[i] = -1;
    find_levels(s, late);
    if ((s->problem = find_depth(s))) return;
    place_roots(s);
    if ((s->problem = find_crowd(s))) return;
    if (late) find_homes(s);
    find_left(s);
    int top = 0;
    for (int i = 0; i < s->kernels.count; i++)
        if (s->kernels.data[i].level > top) top = s->kernels.data[i].level;
    /* from the last level down, because what a kernel loads is stored on a lower level, or, if a
     * finish kernel does, on its own */
    for (int level = top; level >= 0; level--) {
        for (int i = 0; i < s->kernels.count; i++)
            if (s->kernels.data[i].level == level) ask_for_results(s, i);
        for (int i = 0; i < s->kernels.count; i++)
            if (s->kernels.data[i].level == level) find_contents(s, i);
    }
    if ((s->problem = find_crowd(s))) return;
    for (int i = 0; i < s->kernels.count; i++) {
        Kernel *k = &s->kernels.data[i];
        for (int j = 0; j < k->inner_count; j++)
            if (reduction_way(s, k->inner[j].node) == BY_ITSELF)
                store_results(s, k, k->inner[j].node);
        pair_reductions(s, k);
        pair_accumulators(s, k);
        find_picks(s, k);
        find_kernel_phases(s, k);
        find_load_phases(s, k);
        leave_picked(k);
    }
    if ((s->problem = find_oversize(s))) return;
    for (int i = 0; i < s->kernels.count; i++) {
        group_rows(s, &s->kernels.data[i]);
        group_vectors(s, &s->kernels.data[i]);
        lay_beside(s, &s->kernels.data[i]);
    }
    const int walkers = s->kernels.count;
    for (int level = top; level >= 0; level--) /* what one finish kernel loads another stores */
        for (int i = 0; i < walkers; i++)
            if (s->kernels.data[i].level == level) end_accumulators(s, i);
    for (int i = 0; i < s->kernels.count; i++)
        s->kernels.data[i].family = find_family(&s->kernels.data[i]);
}

/* How many kernels read each tensor that has columns. */
static int *count_reads(const Scheduler *s)
{
    int *reads = NEW_ARRAY(s->arena, int, s->g->params.count + 1);
    for (int i = 0; i < s->kernels.count; i++)
        for (int j = 0; j < s->kernels.data[i].load_count; j++) {
            const Load *load = &s->kernels.data[i].loads[j];
            if (load->tensor >= 0 && load->axes & s->a->columns) reads[load->tensor]++;
        }
    return reads;
}

void cut_graph(Scheduler *s)
{
    cut(s, false);
    if (s->kernels.count == 1 || s->problem) return;
    const int *early = count_reads(s), kernels = s->kernels.count;
    cut(s, true);
    const int *late = count_reads(s);
    bool fewer = s->kernels.count < kernels, more = false;
    for (int i = 0; i < s->g->params.count; i++) {
        fewer |= late[i] < early[i];
        more |= late[i] > early[i];
    }
    if (!fewer || more || s->problem) cut(s, false);
}
