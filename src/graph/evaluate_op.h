/* graph/evaluate_op.h: the value of one operation on one element, and of two parts of a reduction.
 * Constant folding and the evaluator share it. Floats are double whatever their type, so the caller
 * rounds; i64 wraps around; bool is 0 or 1 of int64_t. Everything is inline and without state, so
 * that compilers vectorize the loops into which graph/values.def is expanded. */
#ifndef FUSEC_EVALUATE_OP_H
#define FUSEC_EVALUATE_OP_H

#include "graph/graph.h"

#include <math.h>

static inline double sigmoid(double x)
{
    const double z = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + z) : z / (1 + z);
}

static inline double sign_of(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* A comparison with NaN is false, so b is the result where it is NaN. */
static inline double max_nan(double a, double b)
{
    const double larger = a > b ? a : b;
    return a != a ? a : larger;
}

static inline double min_nan(double a, double b)
{
    const double smaller = a < b ? a : b;
    return a != a ? a : smaller;
}

static inline int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* ---- operations; false: graph/values.def has none for these operands ---- */

static inline bool f64_value(Op op, double a, double b, double *value)
{
    switch (op) {
#define F64_1(name, of)                                                                            \
    case OP_##name:                                                                                \
        *value = of;                                                                               \
        return true;
#define F64_2(name, of)                                                                            \
    case OP_##name:                                                                                \
        *value = of;                                                                               \
        return true;
#include "graph/values.def"
    default: return false;
    }
}

static inline bool i64_value(Op op, int64_t a, int64_t b, int64_t *value)
{
    switch (op) {
#define I64_1(name, of)                                                                            \
    case OP_##name:                                                                                \
        *value = of;                                                                               \
        return true;
#define I64_2(name, of)                                                                            \
    case OP_##name:                                                                                \
        *value = of;                                                                               \
        return true;
#include "graph/values.def"
    default: return false;
    }
}

static inline bool f64_test(Op op, double a, double b, bool *truth)
{
    switch (op) {
#define TEST(name, of)                                                                             \
    case OP_##name:                                                                                \
        *truth = of;                                                                               \
        return true;
#include "graph/values.def"
    default: return false;
    }
}

static inline bool i64_test(Op op, int64_t a, int64_t b, bool *truth)
{
    switch (op) {
#define TEST(name, of)                                                                             \
    case OP_##name:                                                                                \
        *truth = of;                                                                               \
        return true;
#include "graph/values.def"
    default: return false;
    }
}

/* ---- reductions: what no terms give, and the whole of two parts ---- */

static inline double f64_identity(Combine how)
{
#define F64_COMBINE(name, identity, whole)                                                         \
    if (how == COMBINE_##name) return identity;
#include "graph/values.def"
    return 0;
}

static inline int64_t i64_identity(Combine how)
{
#define I64_COMBINE(name, identity, whole)                                                         \
    if (how == COMBINE_##name) return identity;
#include "graph/values.def"
    return 0;
}

static inline double f64_combine(Combine how, double a, double b)
{
#define F64_COMBINE(name, identity, whole)                                                         \
    if (how == COMBINE_##name) return whole;
#include "graph/values.def"
    return a + b;
}

static inline int64_t i64_combine(Combine how, int64_t a, int64_t b)
{
#define I64_COMBINE(name, identity, whole)                                                         \
    if (how == COMBINE_##name) return whole;
#include "graph/values.def"
    return wrap_add(a, b);
}

#endif
