/* reference/gradcheck.h: whether a graph is the backward pass of another: its gradients are
 * compared with central differences of the forward pass along random directions, and with gradients
 * that are known to be right. Everything is computed in f64, without rounding to what is stored. */
#ifndef FUSEC_GRADCHECK_H
#define FUSEC_GRADCHECK_H

#include "graph/graph.h"

typedef struct {
    const Graph *forward, *backward; /* as lowered */
    const Graph *own;                /* another backward graph to compare with; NULL: none */
    const bool *of;                  /* by forward output: it is differentiated */
    Sizes sizes;                     /* of the forward graph's axes */
    /* By forward param: a tensor in its dtype; NULL: random ones. */
    const void *const *tensors;
    const double *scalars; /* by forward param */
    uint64_t seed;
    void (*progress)(void *data, double fraction); /* NULL: none */
    void *progress_data;
} GradCheck;

typedef enum {
    GRADCHECK_RIGHT,
    GRADCHECK_WRONG,
    GRADCHECK_UNFIT, /* the backward graph does not belong to the forward one */
    GRADCHECK_NO_MEMORY
} GradVerdict;

/* Puts a line for each gradient into `report`, more for one that is off: where, and by how much.
 * UNFIT: the reason, without a newline. */
GradVerdict check_gradients(Arena *arena, const GradCheck *check, Text *report);

#endif
