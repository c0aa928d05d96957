/* explain/dot.h: plan -> graphviz: a box for each kernel around the values that it computes, inputs,
 * outputs and what passes between kernels outside (`--emit=dot`). */
#ifndef FUSEC_DOT_H
#define FUSEC_DOT_H

#include "schedule/plan.h"

void print_dot(Text *out, const Plan *plan);

#endif
