/* graph/simplify.h: graph -> graph. Folds constants, applies algebra that keeps the IEEE meaning,
 * expands `var` into the mean of squared deviations, drops nodes that no wanted output needs. */
#ifndef FUSEC_SIMPLIFY_H
#define FUSEC_SIMPLIFY_H

#include "graph/graph.h"

/* `wanted[i]` says whether output i is kept; NULL keeps all. Dropped outputs have value {0}. */
Graph *simplify(Arena *arena, const Graph *g, const bool *wanted);
/* The same; map[id], by id in g, is the node that replaces it: 0 where none is needed. */
Graph *simplify_mapped(Arena *arena, const Graph *g, const bool *wanted, Node *map);

/* For graph/simplify_picks.c: a simplified operation; a copy of a node of the same graph with other
 * operands. */
Node simplify_op(Graph *g, Op op, Node a, Node b, Node c);
Node simplify_convert(Graph *g, Type type, Node a);
Node simplify_node(Graph *g, Node like, const Node operands[MAX_OPERANDS]);
/* A reduction in which at most one element counts, expressed by that element; 0: it is no such
 * reduction. */
Node simplify_pick(Graph *g, Op op, AxisSet reduced, Node operand);

#endif
