/* reference/bounds.c: how far f32 arithmetic may be off, a chunk at a time.
 *
 * Each rule carries the operands' errors through the operation: by its derivative where that holds
 * for large errors too, else by the difference that the errors can make. finish_bounds() then adds
 * the operation's own rounding, and marks where f32 may leave its range. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "graph/evaluate_op.h"
#include "reference/steps.h"

#define EACH for (int i = 0; i < n; i++)
#define LN2 0.693147180559945309417

static bool is_wild(double e)
{
    return !(e < HUGE_VAL);
}

/* x|; for infinity and NaN the largest f32, which keeps 0 * infinity out of the sums. */
static double size_of(double x)
{
    const double magnitude = fabs(x);
    return magnitude < HUGE_VAL ? magnitude : MAX_F32;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double distance(double a, double b)
{
    return a == b ? 0 : fabs(a - b);
}

/* The ends of the interval in which an operand lies; its bound is not NaN. */
static double highest(double a, double e)
{
    return e < HUGE_VAL ? a + DOUBT * e : HUGE_VAL;
}

static double lowest(double a, double e)
{
    return e < HUGE_VAL ? a - DOUBT * e : -HUGE_VAL;
}

/* The bound of a value that lies between two ends. */
static double bound_between(double v, double low, double high)
{
    return larger(distance(v, low), distance(v, high)) / DOUBT;
}

#define SMALL 1e-4 /* below this two terms of a series suffice */

/* exp(x) - 1 for x >= 0, cheap for small x. */
static double growth(double x)
{
    return x < SMALL ? x * (1 + x) : expm1(x);
}

static double exponential(Op op, double x)
{
    return op == OP_EXP2 ? exp2(x) : op == OP_EXPM1 ? expm1(x) : exp(x);
}

/* Far below zero, as where a mask has put -1e30, even a large error vanishes. */
static double bound_exp(const Operation *op, double v, double a, double e)
{
    if (!(e > 0) || is_wild(e)) return e;
    const double reach = (op->op == OP_EXP2 ? LN2 : 1) * DOUBT * e;
    if (reach < SMALL)
        return (op->op == OP_EXPM1 ? size_of(v + 1) : size_of(v)) * growth(reach) / DOUBT;
    const double low = exponential(op->op, a - DOUBT * e),
                 high = exponential(op->op, a + DOUBT * e);
    const double most = op->type == TYPE_F32 ? MAX_F32 * (1 + UNIT_F32) : 0x1.fffffffffffffp1023;
    if (high > most) return low > most ? 0 : HUGE_VAL;
    return bound_between(v, low, high);
}

/* -log(1 - x) for 0 <= x < 1. */
static double shrink(double x)
{
    return x < SMALL ? x * (1 + x) : -log1p(-x);
}

/* The bound where an operand may be below the function's domain. */
static double bound_outside(double a, double e, bool nonnegative)
{
    if (a + DOUBT * e < 0) return 0; /* NaN for certain */
    return nonnegative && !isnan(e) ? HUGE_VAL : (double)NAN;
}

/* The bound of a natural logarithm. */
static double bound_log(double a, double e, bool nonnegative)
{
    if (!(e > 0)) return e;
    if (!is_wild(e) && a > DOUBT * e) return shrink(DOUBT * e / a) / DOUBT;
    return bound_outside(a, e, nonnegative);
}

static double bound_log1p(double v, double a, double e, bool nonnegative)
{
    if (nonnegative && a <= DOUBT * e) return bound_between(v, 0, log1p(highest(a, e)));
    return bound_log(1 + a, e, nonnegative);
}

/* Infinity times a value that may be 0 may be NaN. There are no branches, so the loop over this
 * vectorizes. */
static double bound_product(double a, double ea, double b, double eb)
{
    const bool doubt = (ea > 0) | (eb > 0);
    const bool lost = (((fabs(a) > MAX_F32) | (ea >= HUGE_VAL)) & (fabs(b) <= DOUBT * eb)) |
                      (((fabs(b) > MAX_F32) | (eb >= HUGE_VAL)) & (fabs(a) <= DOUBT * ea));
    const double both = ((ea > 0) & (eb > 0)) ? DOUBT * ea * eb : 0;
    const double sum = size_of(a) * eb + size_of(b) * ea + both;
    return (doubt & lost) ? (double)NAN : sum;
}

/* The square of a distance d from a mean. The distance has the bound of x, e - taken, and the bound
 * of the mean. An error that all distances share counts only by its own square, because the
 * distances add up to 0. */
static double bound_centred(double d, double e, double taken, double centre)
{
    if (is_wild(e) || is_wild(taken) || is_wild(centre)) return bound_product(d, e, d, e);
    const double own = larger(e - taken, 0), whole = own + centre;
    return 2 * size_of(d) * own + DOUBT * whole * whole;
}

static bool may_be_zero(double a, double e)
{
    return fabs(a) <= DOUBT * e;
}

static bool may_be_infinite(double a, double e)
{
    return fabs(a) > MAX_F32 || e >= HUGE_VAL;
}

static double bound_quotient(const Operation *op, double v, double a, double ea, double b,
                             double eb)
{
    if (!(ea > 0) && !(eb > 0)) return ea + eb;
    const bool over_zero = may_be_zero(b, eb) && !op->nonzero;
    if (isnan(ea) || isnan(eb) || (may_be_infinite(a, ea) && may_be_infinite(b, eb)) ||
        (over_zero && may_be_zero(a, ea)))
        return (double)NAN;
    if (over_zero && b == 0 && !(eb > 0)) return is_wild(ea) ? HUGE_VAL : 0;
    if (may_be_zero(b, eb) || is_wild(ea)) return HUGE_VAL;
    return (ea + size_of(v) * eb) / (size_of(b) - DOUBT * eb);
}

static double bound_sqrt(double v, double a, double e, bool nonnegative)
{
    const double reach = DOUBT * e;
    if (!(e > 0)) return e;
    if (a > reach) return reach / (v + sqrt(a - reach)) / DOUBT;
    if (is_wild(e) || !nonnegative)
        return a == reach ? v / DOUBT : bound_outside(a, e, nonnegative);
    return bound_between(v > 0 ? v : 0, 0, sqrt(a + reach));
}

static double bound_rsqrt(double v, double a, double e, bool nonnegative)
{
    const double reach = DOUBT * e;
    if (!(e > 0)) return e;
    if (!(a > reach)) return a == reach ? HUGE_VAL : bound_outside(a, e, nonnegative);
    const double x = reach / (a - reach);
    return size_of(v) * x / (sqrt(1 + x) + 1) / DOUBT;
}

/* A power of a base that may be 0. Only a whole exponent allows a negative base. */
static double bound_power_of_zero(double v, double a, double ea, double b, double eb,
                                  bool nonnegative)
{
    const bool whole = eb == 0 && b == rint(b);
    if (!nonnegative && !whole) return (double)NAN;
    const double most = fabs(a) + DOUBT * ea, spread = DOUBT * eb;
    if (!(b > spread) || is_wild(most)) return HUGE_VAL;
    return (pow(most, b + (most < 1 ? -spread : spread)) + fabs(v)) / DOUBT;
}

static double bound_power(const Operation *op, double v, double a, double ea, double b, double eb)
{
    const double base = fabs(a), reach = DOUBT * ea, spread = DOUBT * eb;
    const bool one = (b == 0 && eb == 0) || (a == 1 && ea == 0);
    if (one || (ea == 0 && eb == 0)) return 0; /* whatever the other is, even NaN */
    if (isnan(ea) || is_wild(eb) || (a < 0 && eb > 0)) return (double)NAN;
    if (base <= reach || base == 0) return bound_power_of_zero(v, a, ea, b, eb, op->nonnegative);
    return size_of(v) *
           growth((fabs(b) + spread) * shrink(reach / base) + fabs(log(base)) * spread) / DOUBT;
}

static double bound_max(double v, double a, double ea, double b, double eb)
{
    if (isnan(ea) || isnan(eb)) return (double)NAN;
    if (isnan(v)) return (isnan(a) && ea == 0) || (isnan(b) && eb == 0) ? 0 : (double)NAN;
    return bound_between(v, larger(lowest(a, ea), lowest(b, eb)),
                         larger(highest(a, ea), highest(b, eb)));
}

/* An uncertain condition may take the other branch. */
static double bound_where(double condition, double v, double e, double other, double e_other)
{
    if (!(condition > 0)) return e;
    if (isnan(v) != isnan(other) || isnan(e) || isnan(e_other)) return (double)NAN;
    return isnan(v) ? 0 : larger(e, distance(v, other) / DOUBT + e_other);
}

static double step(Op op, double x)
{
    switch (op) {
    case OP_FLOOR: return floor(x);
    case OP_CEIL: return ceil(x);
    case OP_ROUND: return rint(x);
    default: return x > 0 ? 1 : x < 0 ? -1 : 0;
    }
}

static double bound_step(Op op, double a, double e)
{
    if (!(e > 0)) return e;
    return bound_between(step(op, a), step(op, lowest(a, e)), step(op, highest(a, e)));
}

/* A cast hides an error that reaches no rounding boundary, and makes a whole unit in the last place
 * of one that does. */
static double bound_cast(const Operation *op, double v, double a, double e)
{
    if (!(e > 0)) return e;
    return bound_between(v, dtype_round(op->dtype, lowest(a, e)),
                         dtype_round(op->dtype, highest(a, e)));
}

static void bound_casts(const Operation *op, int n, const double *v, double *e, Operand x)
{
    const double *a = x.v;
    const bool rounds = op->op == OP_CAST && op->dtype != DTYPE_F64 &&
                        (op->dtype != DTYPE_F32 || op->from == TYPE_F64);
    if (rounds && type_is_float(op->from))
        EACH e[i] = bound_cast(op, v[i], a[i], x.e[i]);
    else
        EACH e[i] = x.e[i];
}

/* The bound of a function that rises from one limit to another; `slope` is its derivative. Where
 * the function is flat, little remains of any error. */
static double bound_rise(double f(double), double slope, double v, double a, double e)
{
    if (!(e > 0)) return e;
    if (DOUBT * e < SMALL) return e * slope * 1.1;
    return bound_between(v, f(lowest(a, e)), f(highest(a, e)));
}

/* 1 / (1 + exp(-x)) loses its value where exp(-x) leaves the range of f32. */
static double bound_sigmoid(double v, double a, double e)
{
    const double bound = bound_rise(sigmoid, v * (1 - v), v, a, e);
    const double most = v + DOUBT * bound;
    return bound + (most < 0x1p-126 ? most : 0x1p-126) / DOUBT;
}

static double bound_sine(double derivative, double e)
{
    if (!(e > 0)) return e; /* of infinity, too */
    if (is_wild(e)) return (double)NAN;
    return fabs(derivative) * e + DOUBT * e * e / 2;
}

static void bound_function(const Operation *op, int n, const double *v, double *e, const double *a,
                           const double *ea)
{
    const bool nonnegative = op->nonnegative;
    switch (op->op) {
    case OP_EXP:
    case OP_EXP2:
    case OP_EXPM1: EACH e[i] = bound_exp(op, v[i], a[i], ea[i]); break;
    case OP_LOG: EACH e[i] = bound_log(a[i], ea[i], nonnegative); break;
    case OP_LOG2: EACH e[i] = bound_log(a[i], ea[i], nonnegative) / LN2; break;
    case OP_LOG1P: EACH e[i] = bound_log1p(v[i], a[i], ea[i], nonnegative); break;
    case OP_SIN: EACH e[i] = bound_sine(cos(a[i]), ea[i]); break;
    case OP_COS: EACH e[i] = bound_sine(sin(a[i]), ea[i]); break;
    case OP_TANH: EACH e[i] = bound_rise(tanh, 1 - v[i] * v[i], v[i], a[i], ea[i]); break;
    case OP_SIGMOID: EACH e[i] = bound_sigmoid(v[i], a[i], ea[i]); break;
    case OP_ERF: EACH e[i] = bound_rise(erf, 1.12838 * exp(-a[i] * a[i]), v[i], a[i], ea[i]); break;
    default: EACH e[i] = bound_step(op->op, a[i], ea[i]); break;
    }
}

/* Infinities of either sign may meet. */
static double bound_sum(double a, double ea, double b, double eb)
{
    const bool lost = ((ea >= HUGE_VAL) & ((eb >= HUGE_VAL) | (fabs(b) > MAX_F32))) |
                      ((eb >= HUGE_VAL) & (fabs(a) > MAX_F32));
    return lost ? (double)NAN : ea + eb;
}

static void take_errors_through(const Operation *op, int n, const double *v, double *e,
                                const Operand args[])
{
    const double *a = args[0].v, *b = args[1].v, *c = args[2].v;
    const double *ea = args[0].e, *eb = args[1].e, *ec = args[2].e;
    const int64_t *condition = args[0].v;
    switch (op->op) {
    case OP_NEG:
    case OP_ABS: EACH e[i] = ea[i]; break;
    case OP_ADD:
    case OP_SUB: EACH e[i] = bound_sum(a[i], ea[i], b[i], eb[i]); break;
    case OP_MUL:
        if (op->centred)
            EACH e[i] = bound_centred(a[i], ea[i], eb[i], ec[i]);
        else
            EACH e[i] = bound_product(a[i], ea[i], b[i], eb[i]);
        break;
    case OP_DIV: EACH e[i] = bound_quotient(op, v[i], a[i], ea[i], b[i], eb[i]); break;
    case OP_POW: EACH e[i] = bound_power(op, v[i], a[i], ea[i], b[i], eb[i]); break;
    case OP_SQRT: EACH e[i] = bound_sqrt(v[i], a[i], ea[i], op->nonnegative); break;
    case OP_RSQRT: EACH e[i] = bound_rsqrt(v[i], a[i], ea[i], op->nonnegative); break;
    case OP_MIN: EACH e[i] = bound_max(-v[i], -a[i], ea[i], -b[i], eb[i]); break;
    case OP_MAX: EACH e[i] = bound_max(v[i], a[i], ea[i], b[i], eb[i]); break;
    case OP_WHERE:
        EACH e[i] = condition[i] ? bound_where(ea[i], b[i], eb[i], c[i], ec[i])
                                 : bound_where(ea[i], c[i], ec[i], b[i], eb[i]);
        break;
    case OP_CONVERT:
    case OP_CAST: bound_casts(op, n, v, e, args[0]); break;
    default: bound_function(op, n, v, e, a, ea); break;
    }
}

/* No value lies outside the range of its operation, whatever its operands' errors. */
static void limit_to_range(Range r, int n, const double *v, double *e)
{
    if (r.low == -HUGE_VAL || r.high == HUGE_VAL) return;
    EACH
    {
        const double most = larger(r.high - v[i], v[i] - r.low) / DOUBT;
        e[i] = e[i] > most ? most : e[i];
    }
}

/* Operations that round to their limits where they come near them. */
static bool is_saturating(Op op)
{
    return op == OP_TANH || op == OP_ERF || op == OP_SIGMOID;
}

/* Adds the operation's own rounding, and makes values infinite that f32 cannot hold. Near the end
 * of the range f32 may be infinite or not. A NaN is NaN in f32 too, unless an operand could be
 * anything. A 0 without an error is 0 in f32 too, as exp(-infinity) is, and so are its products. */
static void finish_f32(int n, double units, bool saturating, double *v, double *e)
{
    EACH
    {
        const double magnitude = fabs(v[i]);
        const bool over = magnitude > MAX_F32 * (1 + UNIT_F32), zero = !(magnitude + e[i] > 0);
        const double rounding =
            size_of(v[i]) * units * UNIT_F32 + (zero ? 0 : units * SMALLEST_F32);
        const double left = units * (1 - magnitude);
        const double sum = e[i] + (saturating && rounding > left ? left : rounding);
        const double room = over ? magnitude - MAX_F32 : MAX_F32 * (1 + UNIT_F32) - magnitude;
        const double edge = DOUBT * sum > room ? HUGE_VAL : over || isnan(magnitude) ? 0 : sum;
        const double wild = isnan(magnitude) ? magnitude : e[i];
        e[i] = e[i] < HUGE_VAL ? edge : wild;
        v[i] = over ? copysign(HUGE_VAL, v[i]) : v[i];
    }
}

static void finish_f64(int n, double units, const double *v, double *e)
{
    EACH
    {
        const double magnitude = fabs(v[i]);
        const double sum = magnitude < HUGE_VAL ? e[i] + magnitude * units * UNIT_F64 : 0;
        const double wild = isnan(magnitude) ? magnitude : e[i];
        e[i] = e[i] < HUGE_VAL ? sum : wild;
    }
}

void compute_bounds(const Operation *op, int n, void *v, double *e, const Operand args[])
{
    if (!type_is_float(op->type)) {
        compute_int_bounds(op, n, v, e, args);
        return;
    }
    take_errors_through(op, n, v, e, args);
    limit_to_range(op->range, n, v, e);
    const bool exact = op->op == OP_CONVERT || op->op == OP_CAST;
    const double units = exact ? 0 : op_info[op->op].error;
    if (op->type == TYPE_F64)
        finish_f64(n, units, v, e);
    else
        finish_f32(n, units, is_saturating(op->op), v, e);
}

/* Limits values of type f32 where no bounds are asked for. */
void limit_to_f32(int n, double *v)
{
    const double limit = MAX_F32 * (1 + UNIT_F32);
    EACH v[i] = fabs(v[i]) > limit ? copysign(HUGE_VAL, v[i]) : v[i];
}
