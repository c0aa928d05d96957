/* reference/gradcheck_internal.h: what the files of the gradient check share.
 *
 *   gradcheck.c          inputs, the backward graph's gradients, the verdict on each
 *   gradcheck_fit.c      which input of the backward graph is what of the forward graph
 *   gradcheck_differ.c   differences along a direction */
#ifndef FUSEC_GRADCHECK_INTERNAL_H
#define FUSEC_GRADCHECK_INTERNAL_H

#include "reference/gradcheck.h"
#include "reference/reference.h"

/* A graph that is evaluated without rounding, and its values. */
typedef struct {
    const Graph *g; /* exact */
    Sizes sizes;
    HostTensor *inputs; /* by param */
    double *scalars;    /* by param */
    HostTensor *stores; /* by output: nothing is stored as its dtype */
    double **outputs;   /* by output; of integers int64_t in the same place */
    int64_t *counts;    /* by output: elements */
} Evaluator;

typedef struct {
    Arena *arena;
    const GradCheck *check;
    Evaluator forward;
    double **weights;       /* by forward output: its gradient; NULL: it is not differentiated */
    double **values;        /* by forward param of floats: what it is */
    int64_t *counts;        /* by forward param */
    double **here, **above; /* by forward output: room for its values */
    bool failed;            /* out of memory */
} Checker;

Evaluator evaluator_new(Arena *arena, const Graph *g, const Sizes *sizes);
bool evaluator_run(Evaluator *e);

double random_normal(uint64_t *state);

/* What a param of the backward graph is of the forward graph. */
typedef enum { FIT_GRADIENT, FIT_INPUT, FIT_SAVED } FitKind;
typedef struct {
    FitKind kind;
    int index; /* of the output or param */
} Fit;

/* By param of `backward`, and by its output the forward param of which it is the gradient. NULL:
 * they do not fit, the reason is in `report`. */
Fit *fit_params(Arena *arena, const Graph *forward, const Graph *backward, Text *report);
int *fit_outputs(Arena *arena, const Graph *forward, const Graph *backward, Text *report);
/* The sizes of the axes of `backward`, which has them by name. */
Sizes fit_sizes(const Graph *forward, const Sizes *sizes, const Graph *backward);

typedef struct {
    double value, error; /* of the derivative; the error is an estimate from above */
    double bend;         /* by how much those on both sides differ */
    double noise;        /* what rounding in f64 may make of it */
    bool is_kink;        /* however small the step */
} Difference;

/* The derivative of the weighted sum of the outputs with respect to a param, along a direction. */
Difference differentiate(Checker *c, int param, const double *direction);

#endif
