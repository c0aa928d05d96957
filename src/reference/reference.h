/* reference/reference.h: the CPU evaluator: f64 arithmetic, storage rounded as declared. It is the
 * oracle of all tests, and the device of machines without a GPU.
 *
 * Beside every value it carries a first-order bound E of the error that f32 arithmetic may make (u
 * = 2^-24). Each operation adds its own rounding, |v| * u * op_info.error, and its operands' errors
 * through its derivative; a sum adds the sum of its terms' E and 4u * sum|t|. Integers make no
 * error. f32 arithmetic stays within DOUBT * E. Operations that are not linear are followed that
 * far: a step (floor, a comparison that decides, a cast to an integer, ...) adds to the bound of
 * exactly those elements that may reach it. An infinite E means that f32 may give any number, NaN
 * that it may give NaN as well. */
#ifndef FUSEC_REFERENCE_H
#define FUSEC_REFERENCE_H

#include "graph/graph.h"

#define DOUBT 4

/* A tensor on the host, row-major and dense, in the order of the declaration's axes. */
typedef struct {
    void *data;
    DType dtype;
    AxisSet axes;
} HostTensor;

typedef struct {
    const Graph *graph; /* as lowered, or simplified: both give the same */
    Sizes sizes;
    const HostTensor *inputs; /* by param index; scalars have data NULL */
    const double *scalars;    /* by param index; only scalars' entries are read */
    HostTensor *outputs;      /* by output index; data NULL: not wanted */
    /* By output index: the unrounded f64 values, or in the same place int64_t of an integer output;
     * and E. NULL, or [i] NULL: not wanted. */
    double **exact;
    float **bound;
    int threads;     /* 0: one for each processor */
    bool *cancelled; /* NULL, or set to true elsewhere to stop early */
    void (*progress)(void *data, double fraction); /* NULL allowed */
    void *progress_data;
} Evaluation;

/* false when memory ran out (nothing is kept). Zero sizes are fine. */
bool evaluate(const Evaluation *e);

typedef struct {
    int64_t count, wrong; /* elements; those outside 0.53 ulp + DOUBT E (NaN must match NaN) */
    int64_t worst;        /* the element of worst_share, -1 if none */
    int64_t nans;         /* elements that are rightly NaN */
    int64_t unchecked;    /* other elements, of which the bound allows anything */
    double worst_ulps;    /* the largest |out - ref| in ulps of the stored type */
    double worst_share;   /* the largest |out - ref| / (0.53 ulp + DOUBT E) */
    double relative;      /* |out - ref| / |ref| in the 2-norm, of what was compared */
} Verdict;

/* Judges a stored output against the exact values and bounds of evaluate(). Integers without a
 * bound must be the same. */
Verdict judge(DType dtype, const void *out, const void *exact, const float *bound, int64_t count);
/* How many elements of `out` are outside their bound, of those that differ from `judged`, whose
 * elements are all right: quicker than judge() where few differ. */
int64_t judge_changed(DType dtype, const void *out, const void *judged, const void *exact,
                      const float *bound, int64_t count);

/* Seeded random input for param `param`: standard normal; integers uniform below the smallest axis
 * that they are compared with, or 0/1 for 8-bit; positive for inputs named rstd, rs, std, var or
 * scale. The same for the same (seed, name, index), whatever the sizes of other tensors. */
void random_input(const Graph *g, int param, const Sizes *sizes, uint64_t seed, void *data);

#endif
