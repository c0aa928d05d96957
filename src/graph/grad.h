/* graph/grad.h: graph -> graph: the backward pass of a graph, in reverse mode.
 *
 * The gradient of output y comes as an input dy, that of input x is an output dx. What the backward
 * pass needs of the forward pass is computed again, or saved: then it is an input, under its name. */
#ifndef FUSEC_GRAD_H
#define FUSEC_GRAD_H

#include "graph/graph.h"

typedef struct {
    /* Names separated by commas; NULL: all float outputs but statistics, all float tensors. */
    const char *of, *wrt;
    const char *save; /* names, "none", or "auto", which NULL is as well */
    bool is_usage;    /* an error was one of this request, not of the graph */
} GradRequest;

typedef struct {
    Graph *graph;         /* NAME_bwd; only bound nodes have names, each its own */
    const char *of, *wrt; /* as it was chosen */
    const char *left_out; /* outputs of floats that are not differentiated; "" if there are none */
    const char *all;      /* all outputs of floats; "" if the request chose among them */
    const char *saved;    /* "" if nothing is */
    bool chose_saved;     /* by "auto" */
    bool has_choice;      /* some forward output could have been saved */
} Gradient;

/* Reports to `d` what has no gradient, and stops. `g` as lowered, its var and clamp in it; g->arena
 * must be `arena`. */
Gradient grad(Arena *arena, Diagnostics *d, const Graph *g, GradRequest *request);

/* Whether an output is a statistic: it lacks an axis that was reduced, and others are computed from
 * it. By output. */
bool *find_statistics(Arena *arena, const Graph *g);
/* "d" and the name, with a number behind it where an input of `g` has that name. */
const char *gradient_name(Arena *arena, const Graph *g, const char *name);

/* A gradient as a .fuse file (graph/print_fuse.c), with a comment that says of what it is, what it
 * leaves out and what is saved. */
void print_gradient(Text *out, const Graph *forward, const Gradient *gradient);

#endif
