/* simplify.h: graph -> graph. Folds constants, applies the algebra that keeps IEEE meaning, expands
 * `var` into the mean of squared deviations, drops what no wanted output needs. */
#ifndef FUSEC_SIMPLIFY_H
#define FUSEC_SIMPLIFY_H

#include "graph.h"

/* `wanted[i]` says whether output i is kept; NULL keeps all. Dropped outputs have value {0}. */
Graph *simplify(Arena *arena, const Graph *g, const bool *wanted);

#endif
