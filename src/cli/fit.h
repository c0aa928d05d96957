/* fit.h: the cost model's constants of a GPU, from the speed of a few kernels, for `fusec tune
 * --fit`. Each probe is a plan that one constant bounds. That constant is set so that the model
 * expects the measured speed. */
#ifndef FUSEC_CLI_FIT_H
#define FUSEC_CLI_FIT_H

#include "compile.h"
#include "schedule/plan.h"

typedef struct {
    int key;     /* of the target: the constant that the probe fits */
    Bound bound; /* what must bound the probe for that */
    const char *name, *schedule;
    int columns;
    const char *text; /* a program of one graph with axes M and N */
} Probe;

extern const Probe probes[];
extern const int probe_count;

/* The plan of a probe with so many rows. The caller frees it, whatever its status. */
Compilation compile_probe(const Probe *probe, const Target *target, int64_t rows);
/* Takes a plan of each probe (NULL: it was not timed) and its measured GB/s; sets the constants in
 * `target`, and marks them as measured. A constant stays as it was where its probe is bound by
 * something else. Returns how many are set. */
int fit_constants(Target *target, Plan *const *plans, const double *gbps);

#endif
