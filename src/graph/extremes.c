/* graph/extremes.c: comparisons of a value with the largest or smallest along its row, as the
 * backward pass of max has them: which element is the largest?
 *
 * Kernels may compute the value in several phases, to find the largest and to compare. They print
 * it so that its bits are the same in all of them, so the answer depends on the element's lead, not
 * on rounding: codegen/repeats.c and mean_rest() of codegen/reduce.c; reference/ints.c counts on
 * it. */
#include "graph/graph.h"

Node compared_extreme(const Graph *g, Node n)
{
    const Node none = {0};
    if (!is_comparison(node(g, n)->op)) return none;
    for (int i = 0; i < 2; i++) {
        const Node extreme = arg(g, n, i);
        const Combine how = op_combine[node(g, extreme)->op];
        const bool finds = how == COMBINE_MAX || how == COMBINE_MIN;
        if (finds && type_is_float(node(g, extreme)->type) &&
            arg(g, extreme, 0).id == arg(g, n, 1 - i).id)
            return extreme;
    }
    return none;
}

bool *find_repeated(Arena *arena, const Graph *g)
{
    bool *repeated = NEW_ARRAY(arena, bool, g->nodes.count);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        const Node extreme = compared_extreme(g, (Node){id});
        if (extreme.id) repeated[arg(g, extreme, 0).id] = true;
    }
    for (int id = g->nodes.count - 1; id > 0; id--) {
        const NodeInfo *info = &g->nodes.data[id];
        if (is_reduction(g, (Node){(uint32_t)id})) repeated[id] = false;
        for (int i = 0; repeated[id] && i < op_info[info->op].arity; i++)
            repeated[info->args[i].id] = true;
    }
    return repeated;
}
