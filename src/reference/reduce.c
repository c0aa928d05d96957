/* reference/reduce.c: the evaluator's reductions.
 *
 * Partial results are kept item by item, so that blocks of rows can be reduced separately and
 * merged in a fixed order: the result does not depend on the number of threads. For the bound, m
 * and e hold: for sums, in m the sum |t| of the finite terms; for products m = prod (|t| + DOUBT E)
 * and, as e, the furthest reach of a part of the terms, prod max(1, |t| + DOUBT E); for maxima and
 * minima the ends between which they lie, m the lowest and e the highest. A product of integers
 * with any doubt may be anything. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "graph/evaluate_op.h"
#include "reference/steps.h"

#include <string.h>

enum { LANES = 8 };

/* What a term that rounds as the last one did, zeros aside, adds to a sum's error, in units of
 * 2^-24 times the sum of magnitudes: such additions round the same way. Each is off by half a unit
 * of a sum that is half as large in the mean, and at least four threads share the terms. */
static const double ALIKE_ERROR = 1.0 / 16;

/* The errors of means that are computed with squares about them, in units of 2^-24: relative to the
 * largest distance from the mean; and of the squares, which a thread may sum about a value that is
 * far from the first few others. */
enum { SPREAD_ERROR = 4, SQUARES_ERROR = 16 };

#define EACH for (int i = 0; i < n; i++)

static Combine combine_of(const Operation *op)
{
    return op_combine[op->op];
}

static ErrorRule rule_of(const Operation *op)
{
    return combiner_info[combine_of(op)].rule;
}

/* A reduction of floats, whose errors follow `rule`. */
static bool is_real(const Operation *op, ErrorRule rule)
{
    return type_is_float(op->from) && rule_of(op) == rule;
}

bool is_sum_of_floats(const Operation *op)
{
    return is_real(op, RULE_SUM);
}

Accumulator accumulator_at(Accumulator a, int64_t offset)
{
    return (Accumulator){
        (char *)a.v + offset * 8,          a.m ? a.m + offset : NULL,
        a.e ? a.e + offset : NULL,         a.low ? a.low + offset : NULL,
        a.high ? a.high + offset : NULL,   a.last ? a.last + offset : NULL,
        a.alike ? a.alike + offset : NULL, a.second ? a.second + offset : NULL,
    };
}

void accumulator_clear(const Operation *op, Accumulator a, int64_t count)
{
    const double real = f64_identity(combine_of(op));
    const int64_t whole = i64_identity(combine_of(op));
    const bool ends = is_real(op, RULE_ENDS);
    double *v = a.v;
    int64_t *w = a.v;
    for (int64_t i = 0; i < count; i++) {
        if (type_is_float(op->from))
            v[i] = real;
        else
            w[i] = whole;
        if (a.e) {
            a.m[i] = rule_of(op) == RULE_PRODUCT ? 1 : ends ? real : 0;
            a.e[i] = is_real(op, RULE_PRODUCT) ? 1 : ends ? real : 0;
        }
        if (a.alike) a.last[i] = a.alike[i] = 0;
        if (a.second) a.second[i] = real;
        if (a.low) {
            a.low[i] = HUGE_VAL;
            a.high[i] = -HUGE_VAL;
        }
    }
}

/* Adds in LANES partial sums, so that the compiler can vectorize. */
static double sum_of(int n, const double *x)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j];
    for (; i < n; i++) lane[0] += x[i];
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
        for (int j = 0; j < LANES; j++) lane[j] += finite_size(x[i + j]);
    for (; i < n; i++) lane[0] += finite_size(x[i]);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* x + spaced - spaced is x where x is a multiple of the distance of numbers near `spaced`. */
static int is_multiple(double x, double spaced)
{
    return (x + spaced) - spaced == x;
}

/* 1 if an addition of t rounds as that of `last` did, else 0: both have the same last bits, behind
 * the first 16 of t, as where a constant is added to narrow numbers; or they are equal. Terms of 12
 * bits or fewer, counts among them, are added without rounding as often as a thread adds. */
static double rounds_alike(double last, double t)
{
    const double twelfth = t * (0x1p41 + 1), leading = twelfth - (twelfth - t);
    const double first = t * (0x1p52 + 1), power = first - (first - t); /* t's first bit */
    const double spaced = fabs(power) * 0x1.8p36;
    const int equal = (t == last) & (leading != t), multiple = is_multiple(t, spaced),
              near = is_multiple(t - last, spaced);
    return equal | (near & (1 - multiple));
}

static double count_alike(int n, const double *x, double *last)
{
    double alike = 0, before = *last;
    for (int i = 0; i < n; i++) {
        alike += rounds_alike(before, x[i]);
        before = x[i] != 0 ? x[i] : before;
    }
    *last = before;
    return alike;
}

static void widen(double *low, double *high, double from, double to)
{
    *low = from < *low ? from : *low;
    *high = to > *high ? to : *high;
}

/* The end of a maximum or minimum that its own side of the terms' ends decides. */
static double *reach_of(Combine how, double *m, double *e)
{
    return how == COMBINE_MAX ? e : m;
}

/* What reaches less far of `reach`, of what reached furthest, and another end may be second. */
static void take_second(Combine how, double *second, double reach, double end)
{
    const Combine other = how == COMBINE_MAX ? COMBINE_MIN : COMBINE_MAX;
    *second = f64_combine(how, *second, f64_combine(other, reach, end));
}

/* A term that is certainly NaN tells nothing about the others: m and e are not NaN. */
static void add_ends(Combine how, double *m, double *e, double *second, double t, double et)
{
    if (et == 0 && isnan(t)) return;
    const double reach = DOUBT * et;
    double low = et < HUGE_VAL ? t - reach : isnan(et) ? et : -HUGE_VAL;
    double high = et < HUGE_VAL ? t + reach : et;
    if (second) take_second(how, second, *reach_of(how, m, e), *reach_of(how, &low, &high));
    *m = f64_combine(how, *m, low);
    *e = f64_combine(how, *e, high);
}

/* Each multiplication rounds a few times. */
static void add_factor(double *m, double *e, double t, double et)
{
    if (et == 0 && isnan(t)) return;
    const double most = fabs(t) + DOUBT * et;
    *m *= most * (1 + DOUBT * op_info[OP_PROD].error * UNIT_F32);
    *e *= max_nan(1, isnan(et) ? et : most);
}

/* What one term adds to m and e of the first item. */
static void add_term_error(const Operation *op, Accumulator a, double t, double et)
{
    if (rule_of(op) == RULE_PRODUCT)
        add_factor(a.m, a.e, t, et);
    else
        add_ends(combine_of(op), a.m, a.e, a.second, t, et);
}

/* The bound of integers that one more term gives. */
static double int_bound(ErrorRule rule, double e, double more)
{
    switch (rule) {
    case RULE_PRODUCT: return e > 0 || more > 0 ? HUGE_VAL : 0;
    case RULE_ENDS: return max_nan(e, more);
    default: return e + more;
    }
}

void accumulate_row(const Operation *op, Accumulator a, int n, Operand x)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = x.v;
    const int64_t *k = x.v;
    const Combine how = combine_of(op);
    if (!type_is_float(op->from)) {
        EACH *w = i64_combine(how, *w, k[i]);
        if (a.e) EACH *a.e = int_bound(rule_of(op), *a.e, x.e[i]);
        return;
    }
    if (rule_of(op) == RULE_SUM) {
        *v += sum_of(n, t);
        if (a.e) {
            *a.m += sum_of_magnitudes(n, t);
            *a.e += sum_of(n, x.e);
            if (n > 0) *a.alike += count_alike(n, t, a.last);
        }
        if (a.low) EACH widen(a.low, a.high, t[i], t[i]);
        return;
    }
    EACH *v = f64_combine(how, *v, t[i]);
    if (a.e) EACH add_term_error(op, a, t[i], x.e[i]);
}

static void add_columns(Accumulator a, int n, Operand x)
{
    double *restrict v = a.v;
    const double *restrict t = x.v;
    EACH v[i] += t[i];
    if (!a.e) return;
    double *restrict m = a.m, *restrict e = a.e, *restrict alike = a.alike;
    EACH m[i] += finite_size(t[i]);
    EACH e[i] += x.e[i];
    EACH alike[i] += rounds_alike(a.last[i], t[i]);
    EACH a.last[i] = t[i] != 0 ? t[i] : a.last[i];
    if (a.low) EACH widen(a.low + i, a.high + i, t[i], t[i]);
}

void accumulate_columns(const Operation *op, Accumulator a, int n, Operand x)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = x.v;
    const int64_t *k = x.v;
    const Combine how = combine_of(op);
    if (!type_is_float(op->from)) {
        EACH w[i] = i64_combine(how, w[i], k[i]);
        if (a.e) EACH a.e[i] = int_bound(rule_of(op), a.e[i], x.e[i]);
    } else if (rule_of(op) == RULE_SUM) {
        add_columns(a, n, x);
    } else {
        EACH v[i] = f64_combine(how, v[i], t[i]);
        if (a.e) EACH add_term_error(op, accumulator_at(a, i), t[i], x.e[i]);
    }
}

void accumulator_merge(const Operation *op, Accumulator a, int64_t count, Accumulator from)
{
    double *v = a.v;
    int64_t *w = a.v;
    const double *t = from.v;
    const int64_t *k = from.v;
    const Combine how = combine_of(op);
    const bool ends = is_real(op, RULE_ENDS), multiplies = is_real(op, RULE_PRODUCT);
    for (int64_t i = 0; i < count; i++) {
        if (type_is_float(op->from))
            v[i] = f64_combine(how, v[i], t[i]);
        else
            w[i] = i64_combine(how, w[i], k[i]);
        if (a.low) widen(a.low + i, a.high + i, from.low[i], from.high[i]);
        if (a.alike) a.alike[i] += from.alike[i];
        if (!a.e) continue;
        if (a.second) {
            take_second(how, a.second + i, *reach_of(how, a.m + i, a.e + i),
                        *reach_of(how, from.m + i, from.e + i));
            a.second[i] = f64_combine(how, a.second[i], from.second[i]);
        }
        a.m[i] = multiplies ? a.m[i] * from.m[i]
                 : ends     ? f64_combine(how, a.m[i], from.m[i])
                            : a.m[i] + from.m[i];
        a.e[i] = multiplies                ? a.e[i] * from.e[i]
                 : ends                    ? f64_combine(how, a.e[i], from.e[i])
                 : type_is_float(op->from) ? a.e[i] + from.e[i]
                                           : int_bound(rule_of(op), a.e[i], from.e[i]);
    }
}

/* Partial products may leave the range of f32 where the whole product does not. Above the range
 * they may become anything, with a 0 even NaN. Below it each loses half a subnormal, times what the
 * other terms reach. */
static double product_bound(const Operation *op, double v, double m, double reach, int64_t terms)
{
    if (isnan(reach) || (op->type != TYPE_F64 && reach > MAX_F32 && !(reach <= m && isfinite(m))))
        return (double)NAN;
    if (!isfinite(m)) return isnan(v) ? 0 : HUGE_VAL;
    const double spread = (m - fabs(v)) / DOUBT;
    return op->type == TYPE_F64 ? spread : spread + (double)terms * SMALLEST_F32 * reach;
}

static double ends_bound(double v, double low, double high)
{
    if (isnan(low) || isnan(high)) return (double)NAN;
    if (isnan(v)) return 0;
    const double below = low == v ? 0 : v - low, above = high == v ? 0 : high - v;
    return max_nan(below, above) / DOUBT;
}

/* Terms that cancel beyond the range of f32 may have left it in either direction. They may then
 * meet an infinity of the other sign, as infinite terms may. */
static double sum_bound(const Operation *op, double v, double m, double e)
{
    const double unit = op->type == TYPE_F64 ? UNIT_F64 : UNIT_F32;
    const double anything = op->nonnegative ? HUGE_VAL : (double)NAN;
    const bool leaves = op->type != TYPE_F64 && m > MAX_F32;
    if (e >= HUGE_VAL || (isinf(v) && leaves))
        return isinf(v) && op->nonnegative && e < HUGE_VAL ? 0 : anything;
    if (isnan(v) || isinf(v)) return e;
    e += op_info[op->op].error * unit * m;
    if (!leaves) return e;
    /* A mean returns into the range that its sum may have left. */
    bool may_fit = m > fabs(v) * (1 + 16 * UNIT_F32) || fabs(v) - DOUBT * e < MAX_F32;
    return op->op == OP_MEAN || may_fit ? anything : 0;
}

/* The bound of one finished reduction. */
static double reduction_bound(const Operation *op, double v, double m, double e, int64_t terms)
{
    if (rule_of(op) == RULE_PRODUCT) return product_bound(op, v, m, e, terms);
    return rule_of(op) == RULE_SUM ? sum_bound(op, v, m, e) : ends_bound(v, m, e);
}

/* What rounding the same way again and again adds to the bound of a sum. */
static double alike_bound(const Operation *op, Accumulator a, int64_t i)
{
    const double unit = op->type == TYPE_F64 ? UNIT_F64 : UNIT_F32;
    return a.alike ? ALIKE_ERROR * a.alike[i] * unit * a.m[i] : 0;
}

/* Finishes one result: the division of a mean, and values that f32 cannot hold. */
static double finish_result(const Operation *op, double sum, int64_t terms, double m, double *e)
{
    const double unit = op->type == TYPE_F64 ? UNIT_F64 : UNIT_F32;
    const double divisor = op->op == OP_MEAN ? (double)terms : 1;
    const double v = sum / divisor;
    const bool over = op->type == TYPE_F32 && fabs(v) > MAX_F32 * (1 + UNIT_F32);
    if (e) {
        const double bound = reduction_bound(op, sum, m, *e, terms);
        const double rounding = op->op == OP_MEAN ? 2 * unit * fabs(v) : 0;
        *e = bound < HUGE_VAL ? (isfinite(v) ? bound / divisor + rounding : 0) : bound;
    }
    return over ? copysign(HUGE_VAL, v) : v;
}

void accumulator_finish(const Operation *op, Accumulator a, int64_t count, int64_t terms, void *out,
                        double *e)
{
    double *v = out;
    const double *sum = a.v;
    if (!type_is_float(op->from)) {
        memcpy(out, a.v, (size_t)count * sizeof(int64_t));
        if (e) memcpy(e, a.e, (size_t)count * sizeof *e);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (e) e[i] = a.e[i] + (a.low ? 0 : alike_bound(op, a, i));
        v[i] = finish_result(op, sum[i], terms, e ? a.m[i] : 0, e ? e + i : NULL);
    }
}

/* Sums distances from one value of the row, which may be as far from the mean as any; beyond 2^96,
 * plain values. */
void finish_centres(const Operation *op, Accumulator a, int64_t count, int64_t terms,
                    const double *v, double *e, double *centre)
{
    for (int64_t i = 0; i < count; i++) {
        const double spread = max_nan(a.high[i] - v[i], v[i] - a.low[i]);
        const double reach = max_nan(a.high[i], -a.low[i]) + DOUBT * a.e[i];
        const bool near = isfinite(v[i]) && reach < 0x1p96 && e[i] < HUGE_VAL;
        e[i] += near ? SPREAD_ERROR * UNIT_F32 * spread : alike_bound(op, a, i) / (double)terms;
        centre[i] =
            near ? a.e[i] / (double)terms + UNIT_F32 * SPREAD_ERROR * (spread + e[i]) : e[i];
    }
}

/* Squares about another value than the mean (a value of the row, or a rounded mean) are corrected
 * where they are finite. */
void finish_squares(int64_t count, int64_t terms, const double *v, double *e, const double *e_mean,
                    const double *centre)
{
    for (int64_t i = 0; i < count; i++) {
        const double lost = DOUBT * e_mean[i];
        const double reach = 2 * (centre[i] / (UNIT_F32 * SPREAD_ERROR) + lost);
        if (!isfinite(v[i]) || !(e[i] < HUGE_VAL) || !(lost < HUGE_VAL)) continue;
        e[i] += UNIT_F32 * (SQUARES_ERROR * v[i] + SPREAD_ERROR * lost * lost);
        if (reach * reach * (double)terms > MAX_F32) e[i] = HUGE_VAL;
    }
}
