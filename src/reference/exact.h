/* reference/exact.h: a graph without rounding: all floats are f64, in inputs and outputs as well,
 * and casts between floats are gone. Derivatives are checked on it. */
#ifndef FUSEC_EXACT_H
#define FUSEC_EXACT_H

#include "graph/graph.h"

/* `g` as lowered; the result has the same inputs and outputs, in the same order. */
Graph *exact_graph(Arena *arena, const Graph *g);

#endif
