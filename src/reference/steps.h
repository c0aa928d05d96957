/* reference/steps.h: the row arithmetic below the evaluator: what one operation does to a chunk of
 * values and to their error bounds. reference/reference.c decides what runs where.
 *
 * A chunk is up to CHUNK elements of one row. Floats are double, integers and bool int64_t. The
 * bounds `e` are absolute: f32 arithmetic stays within DOUBT * e, and the rules look that far where
 * they are not linear. HUGE_VAL means that f32 may give any number, infinities included (overflow,
 * division by something that may be zero). NaN means that it may give NaN as well (infinity minus
 * infinity, the root of something that may be negative). A NaN whose bound is 0 is certain. Exact
 * values carry no bounds. */
#ifndef FUSEC_REFERENCE_STEPS_H
#define FUSEC_REFERENCE_STEPS_H

#include "reference/reference.h"

enum { CHUNK = 512 };

#define UNIT_F32 0x1p-24
#define UNIT_F64 0x1p-53
#define MAX_F32 0x1.fffffep127
#define SMALLEST_F32 0x1p-150 /* half the distance of f32 subnormals */

/* The ends may be infinite, and belong to the range. */
typedef struct {
    double low, high;
} Range;

typedef struct {
    Op op;
    /* MUL: the square of x - its mean, for the mean of those. Its operands are x - mean, the mean
     * with the bound that was taken for it, and with that of its centre. */
    bool centred;
    Type type;        /* of the result */
    Type from;        /* of the operands (of WHERE: the second) */
    DType dtype;      /* CAST */
    Range range;      /* of the result */
    bool nonnegative; /* the first operand is so in f32 too, whatever its bound */
    bool nonzero;     /* the second is so */
    /* A comparison of a value with the largest or smallest along its row, which COMBINE_MAX or
     * COMBINE_MIN finds: the operand that is the value; and the third operand is how far any other
     * value of the row reaches. COMBINE_NONE: none of these. */
    Combine extreme;
    int value;
} Operation;

typedef struct {
    const void *v;
    const double *e; /* never NULL: zeros where exact */
} Operand;

/* v[i] = op(...), and the bounds e[i] unless e is NULL. Values of type f32 beyond the
 * range of f32 become infinite. */
void compute(const Operation *op, int n, void *v, double *e, const Operand args[]);
void compute_bounds(const Operation *op, int n, void *v, double *e, const Operand args[]);
void limit_to_f32(int n, double *v);
/* The operations on integers and bool, and all comparisons. */
void compute_int_values(const Operation *op, int n, int64_t *v, const Operand args[]);
void compute_int_bounds(const Operation *op, int n, const int64_t *v, double *e,
                        const Operand args[]);

/* Partial results of a reduction, one item for each element of its result. For a sum, m is the sum
 * of magnitudes and e that of bounds; reference/reduce.c describes the others. Both are NULL where
 * exact. For a mean that the kernels compute with squares about it, low and high are the ends of
 * its terms; else NULL. For a sum of floats with a bound, last is the last term that is not 0, and
 * alike the number of terms that round as it did; else NULL. For a maximum whose terms are compared
 * with it, second is how far any term may reach but the one that may reach furthest; for such a
 * minimum likewise; else NULL. */
typedef struct {
    void *v;
    double *m, *e, *low, *high, *last, *alike, *second;
} Accumulator;

bool is_sum_of_floats(const Operation *op);
Accumulator accumulator_at(Accumulator a, int64_t offset);
void accumulator_clear(const Operation *op, Accumulator a, int64_t count);
/* Adds n elements to one item. */
void accumulate_row(const Operation *op, Accumulator a, int n, Operand x);
/* Adds one element to each of n items. */
void accumulate_columns(const Operation *op, Accumulator a, int n, Operand x);
void accumulator_merge(const Operation *op, Accumulator a, int64_t count, Accumulator from);
/* The results and their bounds, after `terms` elements each; e may be NULL. */
void accumulator_finish(const Operation *op, Accumulator a, int64_t count, int64_t terms, void *v,
                        double *e);
/* For means that one kernel computes together with the squares about them. The bounds e of such
 * means, finished, get what that way of adding may lose; centre gets what a distance from the mean
 * adds to the error of x. */
void finish_centres(const Operation *op, Accumulator a, int64_t count, int64_t terms,
                    const double *v, double *e, double *centre);
/* The bounds e of such squares, finished; e_mean and centre belong to the means. */
void finish_squares(int64_t count, int64_t terms, const double *v, double *e, const double *e_mean,
                    const double *centre);

/* n elements of a dense tensor to values and back (the store rounds or saturates). */
void load_chunk(DType dtype, const void *data, int64_t offset, int n, void *v);
void store_chunk(DType dtype, void *data, int64_t offset, int n, Type type, const void *v);

/* By node id: whether f32 arithmetic gives the value without error; the range of the value unless
 * it is NaN. */
bool *find_exact(Arena *arena, const Graph *g);
Range *find_ranges(Arena *arena, const Graph *g, const Evaluation *e);

#endif
