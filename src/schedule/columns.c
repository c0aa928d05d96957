/* schedule/columns.c: which columns a kernel walks that computes a value or stores it. They are the
 * graph's, except of values that have others of their own. */
#include "schedule/internal.h"

/* The columns of a kernel that walks values with these axes: the graph's, or those that they have of
 * their own. */
AxisSet columns_of(const Scheduler *s, AxisSet axes)
{
    const AxisSet own = axes & s->a->fixed;
    return !own || own & s->a->columns ? s->a->columns : own;
}

/* All axes of what a value is made of, but for what other kernels leave. */
static AxisSet axes_below(const Scheduler *s, Node v)
{
    bool *below = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    AxisSet axes = 0;
    below[v.id] = true;
    for (uint32_t i = v.id; i > 0; i--) {
        Node n = {i};
        if (!below[i]) continue;
        axes |= node(s->g, n)->axes;
        if (is_reduction(s->g, n) && reduction_way(s, n) != BY_ROW) continue;
        for (int k = 0; k < op_info[node(s->g, n)->op].arity; k++) below[arg(s->g, n, k).id] = true;
    }
    return axes;
}

/* Whether a kernel with the graph's columns stores another output with the rows of a value. */
static bool walks_them_anyway(const Scheduler *s, Node v)
{
    for (int i = 0; i < s->g->outputs.count; i++) {
        Node other = s->g->outputs.data[i].value;
        AxisSet axes = node(s->g, other)->axes;
        bool same = axes == ((node(s->g, v)->axes & s->a->rows) | s->a->columns);
        if (other.id && same && s->level[other.id] == s->level[v.id]) return true;
    }
    return false;
}

/* Whether a value is made of what its own rows reduce to. */
static bool reduces_own_rows(const Scheduler *s, Node v)
{
    bool *below = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    below[v.id] = true;
    for (uint32_t i = v.id; i > 0; i--) {
        const Node n = {i};
        if (!below[i]) continue;
        if (is_reduction(s->g, n)) {
            if (reduction_way(s, n) == BY_ROW && node(s->g, n)->axes == node(s->g, v)->axes)
                return true;
            continue;
        }
        for (int k = 0; k < op_info[node(s->g, n)->op].arity; k++) below[arg(s->g, n, k).id] = true;
    }
    return false;
}

/* The columns of a kernel that stores a value: the graph's, but where the value has some of their
 * axes, and the others are empty or nothing that it is made of has them, those that it has. */
AxisSet columns_of_store(const Scheduler *s, Node v)
{
    AxisSet columns = s->a->columns, own = node(s->g, v)->axes & columns, others = columns & ~own;
    if (!own) return reduces_own_rows(s, v) ? columns : columns_of(s, node(s->g, v)->axes);
    if (!others) return columns;
    bool lost = axes_size(&s->a->sizes, others) == 0;
    return lost || (!(axes_below(s, v) & others) && !walks_them_anyway(s, v)) ? own : columns;
}
