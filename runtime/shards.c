/* shards.c: along which axes a graph's tensors may be divided among devices that each compute their
 * part alone. */
#include "internal.h"

static bool is_used(const Graph *g, Node value)
{
    for (int i = 1; i < g->nodes.count; i++)
        for (int operand = 0; operand < MAX_OPERANDS; operand++)
            if (g->nodes.data[i].args[operand].id == value.id) return true;
    return false;
}

static bool is_output(const Graph *g, Node value)
{
    for (int i = 0; i < g->outputs.count; i++)
        if (g->outputs.data[i].value.id == value.id) return true;
    return false;
}

AxisSet plan_sums(const fusec_plan *plan, int output)
{
    const Graph *g = plan->compilation.lowered;
    if (!g || output >= g->outputs.count) return 0;
    const Node value = g->outputs.data[output].value;
    return node(g, value)->op == OP_SUM && !is_used(g, value) ? node(g, value)->reduced : 0;
}

/* A part knows neither its place nor the whole size, and of what is reduced only sums can be put
 * together later, if nothing is computed from them. */
AxisSet plan_divisible(const fusec_plan *plan)
{
    const Graph *g = plan->compilation.lowered;
    if (!g) return 0;
    AxisSet divisible = (AxisSet)((1ull << g->axis_count) - 1);
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *n = &g->nodes.data[i];
        const Node value = {(uint32_t)i};
        if (n->op == OP_INDEX || n->op == OP_SIZE) divisible &= ~((AxisSet)1 << n->axis);
        if (!is_reduction(g, value)) continue;
        if (n->op != OP_SUM || !is_output(g, value) || is_used(g, value)) divisible &= ~n->reduced;
    }
    return divisible;
}
