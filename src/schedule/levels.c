/* schedule/levels.c: on which level of kernels each value is computed. The level of a kernel is the
 * number of kernels that must end before it.
 *
 *   level[n]    the first level that can compute n, if row reductions are computed where needed
 *   cut[n]      the same if they are read from the workspace, in kernels that walk other axes
 *   home[n]     the level of the kernels that do compute n: a reduction, or a value that
 *               crosses[n] to a later kernel (an operand of a sum over long rows, which is reduced
 *               to one number a row first)
 *
 * A cut is early or late. Early: a reduction is computed as soon as its operands are there. Late: a
 * row reduction is computed where it is first needed; a sum over all rows from which nothing with
 * columns is computed waits for a kernel whose results have columns. Early is better for a mean of
 * rows that its kernel reads anyway. Late is better where the first sum over all rows reads little
 * of a row, such as the number of labels that count, by which cross entropy is divided.
 * schedule/cut.c makes both cuts and keeps the one that reads fewer tensors. */
#include "schedule/internal.h"

#include <limits.h>

bool has_sums_over_rows(const Scheduler *s)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i] || !is_reduction(s->g, n)) continue;
        if (node(s->g, n)->reduced & s->a->rows && axes_within(s->a->columns, node(s->g, n)->axes))
            return true;
    }
    return false;
}

bool adds_numbers(const Scheduler *s)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (s->live[i] && is_reduction(s->g, n) &&
            !((node(s->g, n)->axes | node(s->g, arg(s->g, n, 0))->axes) & s->a->columns))
            return true;
    }
    return false;
}

/* The axes of whose elements each is a group, where a reduction is over the rows of each group and
 * keeps all columns; else 0. */
static AxisSet groups_of(const Scheduler *s, Node n)
{
    AxisSet rows = s->a->rows, reduced = node(s->g, n)->reduced;
    bool all = node(s->g, arg(s->g, n, 0))->axes == (rows | s->a->columns);
    return all && axes_within(reduced, rows) ? rows & ~reduced : 0;
}

/* Whether a number is the sum of a tensor beside those whose rows the graph's are, over several
 * axes: there is much to add, which a single CTA would take long for. */
static bool adds_apart(const Scheduler *s, Node n)
{
    AxisSet reduced = node(s->g, n)->reduced;
    return reduced & (reduced - 1) && reduced != s->a->rows && !s->columned[arg(s->g, n, 0).id];
}

/* Whether a reduction is over part of a row, and leaves a value for each such part: over blocks of
 * neighbouring columns, or over all columns but those of a vector, which then have the fastest axis.
 */
static bool is_over_part(const Scheduler *s, Node n)
{
    const AxisSet columns = s->a->columns, reduced = node(s->g, n)->reduced,
                  left = columns & ~reduced;
    if (s->apart_parts || s->a->beside || !left || !axes_within(reduced, columns) ||
        !axes_size(&s->a->sizes, columns) ||
        !axes_within(columns, node(s->g, arg(s->g, n, 0))->axes))
        return false;
    const int64_t vector = axes_size(&s->a->sizes, left);
    const bool blocks = left < (reduced & -reduced);
    const bool strided =
        left > reduced && !(left & (left - 1)) && vector <= MAX_VECTOR && !(vector & (vector - 1));
    return blocks || strided;
}

bool has_parts_of_rows(const Scheduler *s)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (s->live[i] && is_reduction(s->g, n) && is_over_part(s, n)) return true;
    }
    return false;
}

Way reduction_way(const Scheduler *s, Node n)
{
    AxisSet rows = s->a->rows, columns = s->a->columns;
    AxisSet reduced = node(s->g, n)->reduced, from = node(s->g, arg(s->g, n, 0))->axes;
    AxisSet left = node(s->g, n)->axes;
    /* what neighbouring rows have in common they do not each reduce */
    const bool common = s->a->beside && !(from & s->a->beside);
    if ((reduced == columns && !common) || is_over_part(s, n)) return BY_ROW;
    bool all_rows = (from & rows) && axes_within(from & rows, reduced);
    if (all_rows && !left && (from & columns) == columns) return BY_RIDING;
    if (all_rows && !left && !(from & columns) && (!s->apart_sums || adds_apart(s, n)))
        return BY_RIDING;
    if (all_rows && left == columns && s->ride) return BY_RIDING;
    if (s->ride && s->groups && groups_of(s, n) == s->groups) return BY_RIDING;
    if (axes_within(reduced, rows) && (left & columns) == columns) return BY_COLUMN;
    return BY_ITSELF;
}

bool adds_long_rows(const Scheduler *s, Node n)
{
    AxisSet axes = node(s->g, n)->axes | node(s->g, arg(s->g, n, 0))->axes;
    return reduction_way(s, n) == BY_ITSELF && !(axes & s->a->columns);
}

/* Whether an output has an element or more of each row. */
static bool stores_rows(const Scheduler *s)
{
    for (int i = 0; i < s->g->outputs.count; i++) {
        Node v = s->g->outputs.data[i].value;
        if (v.id && axes_within(s->a->rows, node(s->g, v)->axes)) return true;
    }
    return false;
}

/* Sums over the rows of each group ride on what else is done with each row. A kernel that rows are
 * shared out to by groups has no other sums over rows, and those of one kind of group. */
AxisSet find_groups(Scheduler *s)
{
    AxisSet groups = 0;
    s->groups = 0;
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i] || !is_reduction(s->g, n)) continue;
        if (reduction_way(s, n) == BY_RIDING &&
            axes_within(s->a->rows, node(s->g, arg(s->g, n, 0))->axes))
            return 0;
        AxisSet own = groups_of(s, n);
        if (own && groups && own != groups) return 0;
        groups |= own;
    }
    return stores_rows(s) ? groups : 0;
}

/* Whether a value, which is no reduction itself, is made of what rows reduce to. */
static bool is_of_rows(const Scheduler *s, Node n)
{
    return !is_reduction(s->g, n) && node(s->g, n)->type != TYPE_BOOL &&
           s->cut[n.id] > s->level[n.id];
}

/* Levels by node: see above. A sum over all rows that is in `later` belongs to that level at least.
 */
static void set_levels(Scheduler *s, const int *later)
{
    const Graph *g = s->g;
    s->level = NEW_ARRAY(s->arena, int, g->nodes.count);
    s->cut = NEW_ARRAY(s->arena, int, g->nodes.count);
    s->home = NEW_ARRAY(s->arena, int, g->nodes.count);
    s->crosses = NEW_ARRAY(s->arena, bool, g->nodes.count);
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i}, mean = s->a->centres[i];
        if (mean.id) { /* the kernel that finds the mean finds it */
            s->home[i] = s->home[mean.id];
            s->level[i] = s->cut[i] = s->home[i] + 1;
            continue;
        }
        for (int k = 0; k < op_info[node(g, n)->op].arity; k++) {
            uint32_t from = arg(g, n, k).id;
            int there = leaves_apart(s, arg(g, n, k), n) ? s->cut[from] : s->level[from];
            s->level[i] = there > s->level[i] ? there : s->level[i];
            s->cut[i] = s->cut[from] > s->cut[i] ? s->cut[from] : s->cut[i];
        }
        s->home[i] = s->level[i];
        if (!is_reduction(g, n)) continue;
        Way way = reduction_way(s, n);
        s->crosses[arg(g, n, 0).id] |= adds_long_rows(s, n) && is_of_rows(s, arg(g, n, 0));
        int first = way == BY_ROW || way == BY_RIDING ? s->level[i] : s->cut[i];
        s->home[i] = later[i] > first ? later[i] : first;
        if (way == BY_ROW)
            s->cut[i] = s->level[i] + 1;
        else
            s->level[i] = s->cut[i] = s->home[i] + 1;
    }
}

/* Whether all columns of a tensor are read for a value, by the kernel that computes it. */
static bool *find_heavy(const Scheduler *s)
{
    bool *heavy = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        heavy[i] = info->op == OP_PARAM && info->axes & s->a->columns;
        for (int k = 0; k < op_info[info->op].arity; k++) heavy[i] |= heavy[info->args[k].id];
        if (is_reduction(s->g, (Node){(uint32_t)i}) &&
            reduction_way(s, (Node){(uint32_t)i}) != BY_ROW)
            heavy[i] = false;
    }
    return heavy;
}

/* What the outputs that have columns are made of; the highest of their levels. */
static int find_below(const Scheduler *s, bool *below)
{
    int top = 0;
    for (int i = 0; i < s->g->outputs.count; i++) {
        Node v = s->g->outputs.data[i].value;
        bool outer = v.id && ((is_reduction(s->g, v) && reduction_way(s, v) != BY_ROW) ||
                              s->finished[v.id].id);
        if (!v.id || outer || !(node(s->g, v)->axes & s->a->columns)) continue;
        below[v.id] = true;
        top = s->level[v.id] > top ? s->level[v.id] : top;
    }
    for (int i = s->g->nodes.count - 1; i > 0; i--)
        for (int k = 0; below[i] && k < op_info[s->g->nodes.data[i].op].arity; k++)
            below[s->g->nodes.data[i].args[k].id] = true;
    return top;
}

void find_levels(Scheduler *s, bool late)
{
    int *later = NEW_ARRAY(s->arena, int, s->g->nodes.count);
    set_levels(s, later);
    find_finished(s);
    if (!late) return;
    bool *below = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    const bool *heavy = find_heavy(s);
    int top = find_below(s, below);
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!is_reduction(s->g, n) || below[i] || !heavy[arg(s->g, n, 0).id]) continue;
        Way way = reduction_way(s, n);
        later[i] = way == BY_RIDING ? top : way == BY_ROW ? 0 : top + 1;
    }
    set_levels(s, later);
    find_finished(s);
}

/* By when a kernel's root must be there: what walks other axes does not compute row reductions, but
 * reads them. */
static void want(const Scheduler *s, int *wants, const Kernel *k, Node n)
{
    int level = k->level - !computes_rows(s, k);
    if (level < wants[n.id]) wants[n.id] = level;
}

/* Squares about a mean are accumulated with it: alone they would be about a rounded one. They are
 * made of nothing else that is not there yet. */
static void join_means(Scheduler *s)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i}, mean = s->live[i] ? find_partner(s->g, &s->a->sizes, n) : (Node){0};
        if (!mean.id || node(s->g, mean)->op != OP_MEAN || reduction_way(s, n) != BY_ROW) continue;
        if (s->home[mean.id] < s->home[i]) s->home[i] = s->home[mean.id];
    }
}

void find_homes(Scheduler *s)
{
    int *wants = NEW_ARRAY(s->arena, int, s->g->nodes.count);
    for (int i = 0; i < s->g->nodes.count; i++) wants[i] = INT_MAX;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        for (int j = 0; j < k->store_count; j++) want(s, wants, k, k->stores[j].node);
        for (int j = 0; j < k->accumulator_count; j++)
            want(s, wants, k, operand_of(s->g, &k->accumulators[j]));
        for (int j = 0; j < k->inner_count; j++) want(s, wants, k, arg(s->g, k->inner[j].node, 0));
    }
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (wants[i] == INT_MAX || (is_reduction(s->g, n) && reduction_way(s, n) != BY_ROW))
            continue;
        bool kept = is_reduction(s->g, n) || s->crosses[i];
        if (kept && wants[i] < s->level[i])
            wants[i] = s->level[i]; /* none is there earlier, and none has to be */
        if (kept) s->home[i] = wants[i];
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++) {
            int *operand = &wants[arg(s->g, n, j).id],
                by = wants[i] - leaves_apart(s, arg(s->g, n, j), n);
            if (by < *operand) *operand = by;
        }
    }
    join_means(s);
}
