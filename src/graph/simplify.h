/* graph/simplify.h: graph -> graph. Folds constants, applies the algebra that keeps IEEE meaning,
 * expands `var` into the mean of squared deviations, drops what no wanted output needs. */
#ifndef FUSEC_SIMPLIFY_H
#define FUSEC_SIMPLIFY_H

#include "graph/graph.h"

/* `wanted[i]` says whether output i is kept; NULL keeps all. Dropped outputs have value {0}. */
Graph *simplify(Arena *arena, const Graph *g, const bool *wanted);
/* The same; map[id], by id in g, is what a node becomes: 0 where that is not needed. */
Graph *simplify_mapped(Arena *arena, const Graph *g, const bool *wanted, Node *map);

/* For graph/simplify_picks.c: a simplified operation; one like a node of the graph's own with other
 * operands. */
Node simplify_op(Graph *g, Op op, Node a, Node b, Node c);
Node simplify_convert(Graph *g, Type type, Node a);
Node simplify_node(Graph *g, Node like, const Node operands[MAX_OPERANDS]);
/* What a reduction of which one element at most counts is in terms of that element; 0: it is none.
 */
Node simplify_pick(Graph *g, Op op, AxisSet reduced, Node operand);

#endif
