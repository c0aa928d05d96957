/* graph/fold.h: constant folding, with the arithmetic of the generated code: f32 rounds after each
 * operation, integers wrap. Every function returns {0} where nothing folds. */
#ifndef FUSEC_FOLD_H
#define FUSEC_FOLD_H

#include "graph/graph.h"

/* The value of a CONST of a float type, rounded to that type. */
double constant_number(const NodeInfo *constant);
Node fold(Graph *g, Op op, Node a, Node b, Node c);
Node fold_convert(Graph *g, Type type, Node a);
Node fold_cast(Graph *g, DType dtype, Node a);

#endif
