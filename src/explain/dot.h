/* explain/dot.h: analysis -> graphviz: the graph with its reductions coloured by kind and its
 * persistent inputs marked (`--emit=dot`). */
#ifndef FUSEC_DOT_H
#define FUSEC_DOT_H

#include "analyze/analyze.h"

void print_dot(Text *out, const Analysis *a);

#endif
