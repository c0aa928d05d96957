/* reference_reduce.c: the evaluator's reductions.
 *
 * Partial results are kept item by item, so that blocks of rows can be reduced apart and
 * merged in a fixed order: the result does not depend on the number of threads. Sums
 * carry sum |t| of their finite terms beside them for the bound; products carry
 * m = prod (|t| + E) and, as e, how far a part of the terms can reach: prod max(1, |t| + E). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")   /* vectors, at -O2 too */
#endif

#include "reference_steps.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

#define EACH for (int i = 0; i < n; i++)

static bool is_sum(Op op)
{
    return op == OP_SUM || op == OP_MEAN;
}

static bool is_real_product(const Operation *op)
{
    return op->op == OP_PROD && type_is_float(op->from);
}

Accumulator accumulator_at(Accumulator a, int64_t offset)
{
    return (Accumulator){
        (char *)a.v + offset * 8,
        a.m ? a.m + offset : NULL,
        a.e ? a.e + offset : NULL,
    };
}

void accumulator_clear(const Operation *op, Accumulator a, int64_t count)
{
    const Op o = op->op;
    const double real = is_sum(o) ? 0 : o == OP_PROD ? 1 : o == OP_MAX_OVER ? -HUGE_VAL : HUGE_VAL;
    const int64_t whole = is_sum(o) ? 0 : o == OP_PROD ? 1
                        : o == OP_MAX_OVER ? INT64_MIN : INT64_MAX;
    double *v = a.v;
    int64_t *w = a.v;
    for (int64_t i = 0; i < count; i++) {
        if (type_is_float(op->from))
            v[i] = real;
        else
            w[i] = whole;
        if (a.e) {
            a.m[i] = o == OP_PROD ? 1 : 0;
            a.e[i] = is_real_product(op) ? 1 : 0;
        }
    }
}

static double larger(double a, double b)   /* NaN wins */
{
    return a > b || a != a ? a : b;
}

static double smaller(double a, double b)
{
    return a < b || a != a ? a : b;
}

static int64_t combine_ints(Op op, int64_t a, int64_t b)
{
    switch (op) {
    case OP_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case OP_MAX_OVER: return a > b ? a : b;
    case OP_MIN_OVER: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static double combine_floats(Op op, double a, double b)
{
    switch (op) {
    case OP_PROD: return a * b;
    case OP_MAX_OVER: return larger(a, b);
    case OP_MIN_OVER: return smaller(a, b);
    default: return a + b;
    }
}

/* In LANES partial sums, so that the compiler may use vectors. */
static double sum_of(int n, const double *x)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += x[i + j];
    for (; i < n; i++)
        lane[0] += x[i];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* |x|, and 0 for infinity and NaN. */
static double finite_size(double x)
{
    const double magnitude = fabs(x);
    return magnitude < HUGE_VAL ? magnitude : 0;
}

static double sum_of_magnitudes(int n, const double *x)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += finite_size(x[i + j]);
    for (; i < n; i++)
        lane[0] += finite_size(x[i]);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* The error that one term adds to m and e; each product rounds a few times. */
static void add_term_error(Op op, double *m, double *e, double t, double et)
{
    if (op == OP_PROD) {
        *m *= (fabs(t) + et) * (1 + op_info[OP_PROD].error * UNIT_F32);
        *e *= larger(1, fabs(t) + et);
    } else {
        *e = larger(*e, et);
    }
}

void accumulate_row(const Operation *op, Accumulator a, int n, Operand x)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = x.v;
    const int64_t *k = x.v;
    if (!type_is_float(op->from)) {
        EACH *w = combine_ints(op->op, *w, k[i]);
        if (a.e)
            *a.e += sum_of(n, x.e);
        return;
    }
    if (is_sum(op->op)) {
        *v += sum_of(n, t);
        if (a.e) {
            *a.m += sum_of_magnitudes(n, t);
            *a.e += sum_of(n, x.e);
        }
        return;
    }
    EACH *v = combine_floats(op->op, *v, t[i]);
    if (a.e)
        EACH add_term_error(op->op, a.m, a.e, t[i], x.e[i]);
}

static void add_columns(Accumulator a, int n, Operand x)
{
    double *restrict v = a.v;
    const double *restrict t = x.v;
    EACH v[i] += t[i];
    if (!a.e)
        return;
    double *restrict m = a.m, *restrict e = a.e;
    EACH m[i] += finite_size(t[i]);
    EACH e[i] += x.e[i];
}

void accumulate_columns(const Operation *op, Accumulator a, int n, Operand x)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = x.v;
    const int64_t *k = x.v;
    if (!type_is_float(op->from)) {
        EACH w[i] = combine_ints(op->op, w[i], k[i]);
        if (a.e)
            EACH a.e[i] += x.e[i];
    } else if (is_sum(op->op)) {
        add_columns(a, n, x);
    } else {
        EACH v[i] = combine_floats(op->op, v[i], t[i]);
        if (a.e)
            EACH add_term_error(op->op, a.m + i, a.e + i, t[i], x.e[i]);
    }
}

void accumulator_merge(const Operation *op, Accumulator a, int64_t count, Accumulator from)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = from.v;
    const int64_t *k = from.v;
    const bool adds = is_sum(op->op) || !type_is_float(op->from);
    for (int64_t i = 0; i < count; i++) {
        if (type_is_float(op->from))
            v[i] = combine_floats(op->op, v[i], t[i]);
        else
            w[i] = combine_ints(op->op, w[i], k[i]);
        if (!a.e)
            continue;
        a.m[i] = op->op == OP_PROD ? a.m[i] * from.m[i] : a.m[i] + from.m[i];
        a.e[i] = is_real_product(op) ? a.e[i] * from.e[i]
                 : adds              ? a.e[i] + from.e[i]
                                     : larger(a.e[i], from.e[i]);
    }
}

/* A product's partial products may leave the range of f32 where the whole does not: above
 * it anything can come of them; below it each loses half a subnormal, times what the
 * other terms reach. */
static double product_bound(const Operation *op, double v, double m, double reach,
                            int64_t terms)
{
    if (op->type != TYPE_F64 && reach > MAX_F32 && !(reach <= m && isfinite(m)))
        return HUGE_VAL;
    if (!isfinite(m))
        return 0;
    if (op->type == TYPE_F64)
        return m - fabs(v);
    return m - fabs(v) + (double)terms * SMALLEST_F32 * reach;
}

/* The bound of one finished reduction. Terms that cancel beyond the range of f32 may have
 * left it in either direction, and then meet an infinite one of the other sign. */
static double reduction_bound(const Operation *op, double v, double m, double e,
                              int64_t terms)
{
    const double unit = op->type == TYPE_F64 ? UNIT_F64 : UNIT_F32;
    const double magnitude = fabs(v);
    if (op->op == OP_PROD)
        return product_bound(op, v, m, e, terms);
    if (!is_sum(op->op) || !isfinite(m) || isnan(v))
        return e;
    if (isinf(v))
        return op->type != TYPE_F64 && m > MAX_F32 ? HUGE_VAL : e;
    e += op_info[OP_SUM].error * unit * m;
    if (op->type == TYPE_F64 || m <= MAX_F32)
        return e;
    /* a mean comes back into the range that its sum may have left */
    bool may_fit = m > magnitude * (1 + 16 * UNIT_F32) || magnitude - e < MAX_F32;
    return op->op == OP_MEAN || may_fit ? HUGE_VAL : 0;
}

/* One result: the mean's division, and what f32 cannot hold. */
static double finish_result(const Operation *op, double sum, int64_t terms, double m,
                            double *e)
{
    const double unit = op->type == TYPE_F64 ? UNIT_F64 : UNIT_F32;
    const double divisor = op->op == OP_MEAN ? (double)terms : 1;
    const double v = sum / divisor;
    const bool over = op->type == TYPE_F32 && fabs(v) > MAX_F32 * (1 + UNIT_F32);
    if (e) {
        const double bound = reduction_bound(op, sum, m, *e, terms);
        const double rounding = op->op == OP_MEAN ? 2 * unit * fabs(v) : 0;
        *e = bound >= HUGE_VAL ? HUGE_VAL : isfinite(v) ? bound / divisor + rounding : 0;
    }
    return over ? copysign(HUGE_VAL, v) : v;
}

void accumulator_finish(const Operation *op, Accumulator a, int64_t count, int64_t terms,
                        void *out, double *e)
{
    double *v = out;
    const double *sum = a.v;
    if (!type_is_float(op->from)) {
        memcpy(out, a.v, (size_t)count * sizeof(int64_t));
        if (e)
            memcpy(e, a.e, (size_t)count * sizeof *e);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (e)
            e[i] = a.e[i];
        v[i] = finish_result(op, sum[i], terms, e ? a.m[i] : 0, e ? e + i : NULL);
    }
}
