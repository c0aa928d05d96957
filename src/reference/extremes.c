/* reference/extremes.c: which comparisons are of a value with the largest or smallest along its
 * row.
 *
 * Both sides are the same value, with the same error wherever a kernel computes it. An element is
 * the largest, whatever the errors, if it is ahead of all others by more than those: the bounds of
 * such a comparison ask for no more (reference/ints.c). */
#include "reference/plan.h"

/* Kernels subtract a rounded mean from such values, without what its rounding lost: other kernels
 * do not know that. */
static void forget_rests(Plan *p)
{
    const bool *repeated = find_repeated(p->arena, p->graph);
    for (uint32_t id = 1; id < (uint32_t)p->graph->nodes.count; id++) {
        const uint32_t distance = p->moments[id].distance ? p->moments[id].distance : id;
        if (repeated[distance]) p->moments[id].close = false;
    }
}

void find_extremes(Plan *p)
{
    const Graph *g = p->graph;
    p->extremes = NEW_ARRAY(p->arena, uint32_t, g->nodes.count);
    if (!p->bounds) return;
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        const Node extreme = compared_extreme(g, (Node){id});
        if (extreme.id && !p->exact[id]) p->extremes[id] = extreme.id;
    }
    forget_rests(p);
}
