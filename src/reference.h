/* reference.h: the CPU evaluator: f64 arithmetic, storage rounded as declared. The oracle of all
 * tests, and the device of machines without a GPU.
 *
 * Beside every value it carries a first-order bound E of the error that f32 arithmetic may make
 * (u = 2^-24): each operation adds its own rounding, |v| * u * op_info.error, and its operands'
 * errors through its derivative; a sum adds the sum of its terms' E and 4u * sum|t|. Types f64 and
 * integers make none. Where a program steps on a computed float (floor, comparisons that decide,
 * casts to integers, ...) the bound cannot hold: the graph is `discontinuous`. */
#ifndef FUSEC_REFERENCE_H
#define FUSEC_REFERENCE_H

#include "graph.h"

/* A tensor on the host, row-major and dense, in the order of the declaration's axes. */
typedef struct {
    void *data;
    DType dtype;
    AxisSet axes;
} HostTensor;

typedef struct {
    const Graph *graph;        /* as lowered, or simplified: both give the same */
    Sizes sizes;
    const HostTensor *inputs;  /* by param index; scalars have data NULL */
    const double *scalars;     /* by param index; only scalars' entries are read */
    HostTensor *outputs;       /* by output index; data NULL: not wanted */
    double **exact;            /* by output index: the unrounded f64 values; NULL or [i] NULL: not wanted */
    float **bound;             /* by output index: E; likewise */
    int threads;               /* 0: one for each processor */
    bool *cancelled;           /* NULL, or set to true elsewhere to stop early */
    void (*progress)(void *data, double fraction);   /* NULL allowed */
    void *progress_data;
} Evaluation;

/* false when memory ran out (nothing is kept). Zero sizes are fine. */
bool evaluate(const Evaluation *e);
/* Whether an output steps on a computed float (judged apart). */
bool is_discontinuous(const Graph *g, int output);

typedef struct {
    int64_t count, wrong;        /* elements; those outside 0.53 ulp + 4 E (NaN must match NaN) */
    int64_t worst;               /* index of the worst element, -1 if none */
    int64_t nans;                /* elements that are NaN as they are to be */
    int64_t unbounded;           /* others whose E is infinite: not compared */
    double worst_ulps;           /* its |out - ref| in ulps of the stored type */
    double worst_share;          /* the largest |out - ref| / (0.53 ulp + 4 E) */
    double relative;             /* |out - ref| / |ref| in the 2-norm */
    bool discontinuous;
} Verdict;

/* Judges a stored output against the exact values and bounds of evaluate(). */
Verdict judge(DType dtype, const void *out, const double *exact, const float *bound, int64_t count,
              bool discontinuous);
/* How many elements of `out` are outside their bound, of those that differ from `judged`, whose elements are all
 * right: much quicker where few do. */
int64_t judge_changed(DType dtype, const void *out, const void *judged, const double *exact,
                      const float *bound, int64_t count);

/* Seeded random input for param `param` (design.md section 7): standard normal; integers uniform
 * below the smallest axis they are compared with, or 0/1 for 8-bit; positive for rstd rs std var
 * scale. The same for the same (seed, name, index), whatever the sizes of other tensors. */
void random_input(const Graph *g, int param, const Sizes *sizes, uint64_t seed, void *data);

#endif
