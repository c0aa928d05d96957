/* reference_bounds.c: how far f32 arithmetic may be off, a chunk at a time.
 *
 * Each rule takes the operands' errors through the operation: through its derivative
 * where that is honest for large errors too, else through the difference it can make.
 * finish_bounds() then adds the operation's own rounding, and says where f32 may leave
 * its range. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")   /* vectors, at -O2 too */
#endif

#include "reference_steps.h"

#include <math.h>

#define EACH for (int i = 0; i < n; i++)
#define LN2 0.693147180559945309417

/* |x|; for infinity the largest f32, which keeps 0 * infinity out of the sums, and for NaN. */
static double size_of(double x)
{
    const double magnitude = fabs(x);
    return magnitude < HUGE_VAL ? magnitude : MAX_F32;
}

#define SMALL 1e-4    /* an error for which two terms of a series do */

/* exp(x) - 1 for x >= 0, cheap for the usual tiny errors. */
static double growth(double x)
{
    return x < SMALL ? x * (1 + x) : expm1(x);
}

/* How far exp, exp2 or exp - 1 rises within a large error: to nothing where all of that is far below zero, as where a mask
 * has put -1e30. */
static double rise(double v, double above, double growth)
{
    return fabs(v) < HUGE_VAL ? above - v : size_of(v) * growth;
}

static double bound_exp(Op op, double v, double a, double ea)
{
    if (!(ea > 0)) return 0;
    const double e = op == OP_EXP2 ? LN2 * ea : ea, size = op == OP_EXPM1 ? size_of(v + 1) : size_of(v);
    if (e < SMALL) return size * growth(e);
    const double up = a + ea;
    return rise(v, op == OP_EXP2 ? exp2(up) : op == OP_EXPM1 ? expm1(up) : exp(up), growth(e));
}

/* -log(1 - x) for x >= 0. */
static double shrink(double x)
{
    return x < 1e-4 ? x * (1 + x) : x < 1 ? -log1p(-x) : HUGE_VAL;
}

/* An infinite error times 0 is NaN here: also anything. */
static double ratio(double e, double room)
{
    return !(e <= 0) ? (room > 0 ? e / room : HUGE_VAL) : 0;
}

/* Infinity times what may be 0 may be NaN. (No branches: the loop over this is one of vectors.) */
static double bound_product(double a, double ea, double b, double eb)
{
    const bool lost = ((fabs(a) > MAX_F32) & (eb > 0) & (fabs(b) <= DOUBT * eb)) |
                      ((fabs(b) > MAX_F32) & (ea > 0) & (fabs(a) <= DOUBT * ea));
    const double sum = size_of(a) * eb + size_of(b) * ea + ea * eb;
    return lost ? HUGE_VAL : sum;
}

static double bound_quotient(double v, double ea, double b, double eb)
{
    return ratio(ea + size_of(v) * eb, fabs(b) - eb);
}

static double bound_sqrt(double v, double a, double e, bool nonnegative)
{
    if (!nonnegative && e > 0 && a < DOUBT * e)
        return HUGE_VAL;
    return a > e ? e / (v + sqrt(a - e)) : sqrt(fabs(a) + e);
}

static double bound_rsqrt(double v, double a, double e)
{
    const double x = ratio(e, a - e);
    return size_of(v) * x / (sqrt(1 + x) + 1);
}

static double bound_power(double v, double a, double ea, double b, double eb)
{
    if (ea == 0 && eb == 0)
        return 0;
    const double base = fabs(a);
    if (a < 0 && eb > 0)
        return HUGE_VAL;
    if (base <= ea || base == 0)
        return b > eb ? pow(base + ea, b - (base + ea < 1 ? eb : -eb)) + fabs(v) : HUGE_VAL;
    return size_of(v) * growth(fabs(b) * shrink(ea / base) + fabs(log(base)) * eb);
}

static double bound_minmax(double a, double ea, double b, double eb, bool takes_a)
{
    const double doubt = DOUBT * (ea + eb);
    if (fabs(a - b) <= doubt || isnan(a) || isnan(b))
        return fmax(ea, eb);
    return takes_a ? ea : eb;
}

/* An uncertain condition may take the other branch. */
static double bound_where(bool chosen, double condition, double b, double eb, double c,
                          double ec)
{
    if (!(condition > 0))
        return chosen ? eb : ec;
    return fmax(eb, ec) + (b == c ? 0 : fabs(b - c));
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
    if (!(e > 0))
        return 0;
    const double middle = step(op, a);
    return fmax(step(op, a + DOUBT * e) - middle, middle - step(op, a - DOUBT * e));
}

/* A cast hides an error that reaches no rounding boundary, and makes a whole ulp of one
 * that does. */
static double bound_cast(const Operation *op, double v, double a, double e)
{
    if (!(e > 0))
        return 0;
    if (!(e < HUGE_VAL))
        return HUGE_VAL;    /* NaN, for one */
    const double up = dtype_round(op->dtype, a + DOUBT * e);
    const double down = dtype_round(op->dtype, a - DOUBT * e);
    if (up == down)
        return 0;
    return fmin(fmax(fabs(up - v), fabs(v - down)), e + dtype_ulp(op->dtype, a));
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

/* Of a function whose values are in a range: an operand that may be anything may be NaN. */
static double bound_in_range(double bound, double range, double ea)
{
    return ea < HUGE_VAL ? fmin(bound, range) : HUGE_VAL;
}

static double bound_sine(double derivative, double e)
{
    return bound_in_range(fabs(derivative) * e + e * e / 2, 2, e);
}

static void bound_function(const Operation *op, int n, const double *v, double *e,
                           const double *a, const double *ea)
{
    switch (op->op) {
    case OP_EXP: EACH e[i] = bound_exp(OP_EXP, v[i], a[i], ea[i]); break;
    case OP_EXP2: EACH e[i] = bound_exp(OP_EXP2, v[i], a[i], ea[i]); break;
    case OP_LOG: EACH e[i] = shrink(ratio(ea[i], a[i])); break;
    case OP_LOG2: EACH e[i] = shrink(ratio(ea[i], a[i])) / LN2; break;
    case OP_LOG1P: EACH e[i] = shrink(ratio(ea[i], 1 + a[i])); break;
    case OP_EXPM1: EACH e[i] = bound_exp(OP_EXPM1, v[i], a[i], ea[i]); break;
    case OP_SIN: EACH e[i] = bound_sine(cos(a[i]), ea[i]); break;
    case OP_COS: EACH e[i] = bound_sine(sin(a[i]), ea[i]); break;
    /* The square terms: half the largest second derivative. */
    case OP_TANH:
        EACH e[i] = bound_in_range(ea[i] * (1 - v[i] * v[i]) + 0.4 * ea[i] * ea[i], 2, ea[i]);
        break;
    /* 1 / (1 + exp(-x)) is lost where exp(-x) leaves the range of f32. */
    case OP_SIGMOID:
        EACH e[i] = 0x1p-126 +
                    bound_in_range(ea[i] * v[i] * (1 - v[i]) + 0.05 * ea[i] * ea[i], 1, ea[i]);
        break;
    case OP_ERF:
        EACH e[i] = bound_in_range(ea[i] * 1.12838 * exp(-a[i] * a[i]) + 0.5 * ea[i] * ea[i], 2, ea[i]);
        break;
    default: EACH e[i] = bound_step(op->op, a[i], ea[i]); break;
    }
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
    case OP_SUB: EACH e[i] = ea[i] + eb[i]; break;
    case OP_MUL: EACH e[i] = bound_product(a[i], ea[i], b[i], eb[i]); break;
    case OP_DIV: EACH e[i] = bound_quotient(v[i], ea[i], b[i], eb[i]); break;
    case OP_POW: EACH e[i] = bound_power(v[i], a[i], ea[i], b[i], eb[i]); break;
    case OP_SQRT: EACH e[i] = bound_sqrt(v[i], a[i], ea[i], op->nonnegative); break;
    case OP_RSQRT: EACH e[i] = bound_rsqrt(v[i], a[i], ea[i]); break;
    case OP_MIN:
        EACH e[i] = bound_minmax(a[i], ea[i], b[i], eb[i], a[i] < b[i]);
        break;
    case OP_MAX:
        EACH e[i] = bound_minmax(a[i], ea[i], b[i], eb[i], a[i] > b[i]);
        break;
    case OP_WHERE:
        EACH e[i] = bound_where(condition[i] != 0, ea[i], b[i], eb[i], c[i], ec[i]);
        break;
    case OP_CONVERT:
    case OP_CAST: bound_casts(op, n, v, e, args[0]); break;
    default: bound_function(op, n, v, e, a, ea); break;
    }
}

/* Adds the operation's own rounding, and makes what f32 cannot hold infinite. Near the
 * end of the range f32 may be infinite or not. A NaN is one in f32 too, unless an
 * operand could be anything. What is 0 without an error is 0 in f32 too: of exp(-infinity) so is whatever it is multiplied by. */
static void finish_f32(int n, double units, double *v, double *e)
{
    EACH {
        const double magnitude = fabs(v[i]);
        const bool over = magnitude > MAX_F32 * (1 + UNIT_F32), zero = !(magnitude + e[i] > 0);
        const double own = zero ? 0 : units * SMALLEST_F32;
        const double sum = e[i] + size_of(v[i]) * units * UNIT_F32 + own;
        const double room = over ? magnitude - MAX_F32 : MAX_F32 * (1 + UNIT_F32) - magnitude;
        const double edge = sum > room ? HUGE_VAL : over || isnan(magnitude) ? 0 : sum;
        e[i] = e[i] < HUGE_VAL ? edge : HUGE_VAL;
        v[i] = over ? copysign(HUGE_VAL, v[i]) : v[i];
    }
}

static void finish_f64(int n, double units, const double *v, double *e)
{
    EACH {
        const double magnitude = fabs(v[i]);
        const double sum = magnitude < HUGE_VAL ? e[i] + magnitude * units * UNIT_F64 : 0;
        e[i] = e[i] < HUGE_VAL ? sum : HUGE_VAL;
    }
}

void compute_bounds(const Operation *op, int n, void *v, double *e, const Operand args[])
{
    if (!type_is_float(op->type)) {
        compute_int_bounds(op, n, e, args);
        return;
    }
    take_errors_through(op, n, v, e, args);
    const bool exact = op->op == OP_CONVERT || op->op == OP_CAST;
    const double units = exact ? 0 : op_info[op->op].error;
    if (op->type == TYPE_F64)
        finish_f64(n, units, v, e);
    else
        finish_f32(n, units, v, e);
}

/* What limits a value of type f32 where nobody asks for bounds. */
void limit_to_f32(int n, double *v)
{
    const double limit = MAX_F32 * (1 + UNIT_F32);
    EACH v[i] = fabs(v[i]) > limit ? copysign(HUGE_VAL, v[i]) : v[i];
}
