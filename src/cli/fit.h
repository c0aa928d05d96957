/* fit.h: the cost model's constants of a GPU from a few kernels' speeds, for `fusec tune --fit`.
 * Each probe is a plan that one constant bounds, which is set so that the model expects the speed
 * that was measured. */
#ifndef FUSEC_CLI_FIT_H
#define FUSEC_CLI_FIT_H

#include "schedule/plan.h"

typedef struct {
    int key;     /* of the target: what the probe tells */
    Bound bound; /* what it must be bound by for that */
    const char *name, *schedule;
    int columns;
    const char *text; /* a program of one graph with axes M and N */
} Probe;

extern const Probe probes[];
extern const int probe_count;

/* A plan of each probe (NULL: it was not timed) and the GB/s that were measured of it: sets the
 * constants in `target`, and that they were measured. A constant without which a probe is not bound
 * by what it should be stays as it was. Returns how many are set. */
int fit_constants(Target *target, Plan *const *plans, const double *gbps);

#endif
