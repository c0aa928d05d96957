/* naive.h: a graph evaluated one element at a time, in f64: what the language says, with
 * nothing between; checks the reference, which is fast and therefore not simple. */
#ifndef FUSEC_PROP_NAIVE_H
#define FUSEC_PROP_NAIVE_H

#include "reference/reference.h"

/* The values of a node in row-major order; NULL if that is
 * too much for it. */
const double *naive_values(Arena *arena, const Graph *g, const Sizes *sizes,
                           const HostTensor *inputs, const double *scalars, Node n);

#endif
