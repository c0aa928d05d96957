/* reference/ints.c: the evaluator's operations whose result is an integer or a bool: their values,
 * and how far they may be off where a computed float decides them.
 *
 * Integers wrap around, so they are computed unsigned. An infinite bound means any integer; no
 * bound is NaN. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "graph/evaluate_op.h"
#include "reference/steps.h"

#define EACH for (int i = 0; i < n; i++)

#define TEST_ROW(name, truth)                                                                      \
    case OP_##name:                                                                                \
        EACH                                                                                       \
        {                                                                                          \
            const ELEMENT a = x[i], b = y[i];                                                      \
            v[i] = truth;                                                                          \
        }                                                                                          \
        break;

static void compare_floats(Op op, int n, int64_t *v, const double *x, const double *y)
{
    switch (op) {
#define ELEMENT double
#define TEST TEST_ROW
#include "graph/values.def"
#undef ELEMENT
    default: break;
    }
}

static void compare_ints(Op op, int n, int64_t *v, const int64_t *x, const int64_t *y)
{
    switch (op) {
#define ELEMENT int64_t
#define TEST TEST_ROW
#include "graph/values.def"
#undef ELEMENT
    default: break;
    }
}

static int64_t int_of_float(DType dtype, double value)
{
    return dtype == DTYPE_BOOL ? value != 0 : dtype_saturate(dtype, int_from_double(value));
}

static void cast_to_int(const Operation *op, int n, int64_t *v, const void *x)
{
    const double *a = x;
    const int64_t *whole = x;
    if (type_is_float(op->from))
        EACH v[i] = int_of_float(op->dtype, a[i]);
    else if (op->op == OP_CAST)
        EACH v[i] = dtype_saturate(op->dtype, whole[i]);
    else
        EACH v[i] = op->type == TYPE_BOOL ? whole[i] != 0 : whole[i];
}

static void find_nan(const Operation *op, int n, int64_t *v, const double *a)
{
    if (type_is_float(op->from))
        EACH v[i] = isnan(a[i]) != 0;
    else
        EACH v[i] = 0;
}

static void choose(int n, int64_t *v, const int64_t *a, const int64_t *b, const int64_t *c)
{
    EACH v[i] = a[i] ? b[i] : c[i];
}

static void compute_ints(const Operation *op, int n, int64_t *v, const Operand args[])
{
    const int64_t *x = args[0].v, *y = args[1].v;
    switch (op->op) {
#define I64_1(name, value)                                                                         \
    case OP_##name:                                                                                \
        EACH                                                                                       \
        {                                                                                          \
            const int64_t a = x[i];                                                                \
            v[i] = value;                                                                          \
        }                                                                                          \
        break;
#define I64_2(name, value)                                                                         \
    case OP_##name:                                                                                \
        EACH                                                                                       \
        {                                                                                          \
            const int64_t a = x[i], b = y[i];                                                      \
            v[i] = value;                                                                          \
        }                                                                                          \
        break;
#include "graph/values.def"
    case OP_WHERE: choose(n, v, x, y, args[2].v); break;
    case OP_ISNAN: find_nan(op, n, v, args[0].v); break;
    case OP_CONVERT:
    case OP_CAST: cast_to_int(op, n, v, args[0].v); break;
    default: EACH v[i] = x[i]; break; /* floor, ceil, round of an integer */
    }
}

void compute_int_values(const Operation *op, int n, int64_t *v, const Operand args[])
{
    if (!is_comparison(op->op))
        compute_ints(op, n, v, args);
    else if (type_is_float(op->from))
        compare_floats(op->op, n, v, args[0].v, args[1].v);
    else
        compare_ints(op->op, n, v, args[0].v, args[1].v);
}

#define EITHER (1.0 / DOUBT) /* the bound of a bool that may be true or false */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Whether the order of two operands is in doubt. A NaN settles the comparison. */
static double doubt_order(double a, double ea, double b, double eb)
{
    const double doubt = DOUBT * (ea + eb);
    const bool certain = doubt == 0 || ((isnan(a) || isnan(b)) && doubt < HUGE_VAL);
    return certain || fabs(a - b) > doubt ? 0 : EITHER;
}

/* Whether two operands that are not NaN always compare alike, the second being the largest along
 * the row of the first. */
static bool is_settled(Op op)
{
    return op == OP_LE || op == OP_GT;
}

/* Whether it is in doubt how a value compares with the largest along its row, by an operation that
 * is not settled. That is the value itself where no other one reaches up to it: both have the same
 * error. With the signs of all changed, the same holds for the smallest. */
static double doubt_extreme(double v, double e, double largest, double e_largest, double second)
{
    const double doubt = doubt_order(v, e, largest, e_largest);
    if (doubt == 0 || isnan(e) || isnan(e_largest)) return doubt;
    return v - DOUBT * e > second ? 0 : doubt;
}

static void bound_with_extreme(const Operation *op, int n, double *e, const Operand args[])
{
    const Operand value = args[op->value], extreme = args[1 - op->value];
    const double *v = value.v, *x = extreme.v, *second = args[2].v;
    const bool largest = op->extreme == COMBINE_MAX, mirrored = largest == (op->value == 1);
    const double sign = largest ? 1 : -1;
    const bool settled = is_settled(mirrored ? turned_comparison(op->op) : op->op);
    EACH
    {
        const bool known = settled && !isnan(value.e[i]) && !isnan(extreme.e[i]);
        e[i] = known ? 0
                     : doubt_extreme(sign * v[i], value.e[i], sign * x[i], extreme.e[i],
                                     sign * second[i]);
    }
}

static void bound_comparison(const Operation *op, int n, double *e, const Operand args[])
{
    const double *ea = args[0].e, *eb = args[1].e;
    const double *a = args[0].v, *b = args[1].v;
    const int64_t *whole_a = args[0].v, *whole_b = args[1].v;
    if (type_is_float(op->from))
        EACH e[i] = doubt_order(a[i], ea[i], b[i], eb[i]);
    else
        EACH e[i] = doubt_order((double)whole_a[i], ea[i], (double)whole_b[i], eb[i]);
}

/* NaN gives 0, or true. */
static double bound_float_to_int(DType dtype, int64_t v, double a, double e)
{
    if (e == 0) return 0;
    if (dtype == DTYPE_BOOL) return fabs(a) > DOUBT * e ? 0 : EITHER;
    if (isnan(e)) return HUGE_VAL;
    const double reach = DOUBT * e;
    const double low = (double)int_of_float(dtype, e < HUGE_VAL ? a - reach : -HUGE_VAL);
    const double high = (double)int_of_float(dtype, e < HUGE_VAL ? a + reach : HUGE_VAL);
    return larger((double)v - low, high - (double)v) / DOUBT;
}

static double bound_int_to_bool(int64_t a, double e)
{
    return e == 0 || fabs((double)a) > DOUBT * e ? 0 : EITHER;
}

static void bound_cast_to_int(const Operation *op, int n, const int64_t *v, double *e, Operand x)
{
    const double *a = x.v;
    const int64_t *whole = x.v;
    const DType dtype = op->op == OP_CAST       ? op->dtype
                        : op->type == TYPE_BOOL ? DTYPE_BOOL
                                                : DTYPE_I64;
    if (type_is_float(op->from))
        EACH e[i] = bound_float_to_int(dtype, v[i], a[i], x.e[i]);
    else if (dtype == DTYPE_BOOL)
        EACH e[i] = bound_int_to_bool(whole[i], x.e[i]);
    else
        EACH e[i] = x.e[i];
}

/* A certain `decisive` value of either operand settles the result. */
static double doubt_logic(int64_t a, double ea, int64_t b, double eb, int64_t decisive)
{
    if ((a == decisive && ea == 0) || (b == decisive && eb == 0)) return 0;
    return ea > 0 || eb > 0 ? EITHER : 0;
}

/* 0 times anything is 0. */
static double times(double x, double e)
{
    return x == 0 || e == 0 ? 0 : fabs(x) * e;
}

static double bound_choice(double condition, int64_t v, double e, int64_t other, double e_other)
{
    return condition > 0 ? larger(e, e_other + fabs((double)v - (double)other) / DOUBT) : e;
}

static void take_errors_through(const Operation *op, int n, const int64_t *v, double *e,
                                const Operand args[])
{
    const int64_t *a = args[0].v, *b = args[1].v, *c = args[2].v;
    const double *ea = args[0].e, *eb = args[1].e, *ec = args[2].e;
    switch (op->op) {
    case OP_ADD:
    case OP_SUB: EACH e[i] = ea[i] + eb[i]; break;
    case OP_MUL:
        EACH e[i] =
            times((double)a[i], eb[i]) + times((double)b[i], ea[i]) + DOUBT * times(ea[i], eb[i]);
        break;
    case OP_AND: EACH e[i] = doubt_logic(a[i], ea[i], b[i], eb[i], 0); break;
    case OP_OR: EACH e[i] = doubt_logic(a[i], ea[i], b[i], eb[i], 1); break;
    case OP_SIGN: EACH e[i] = bound_int_to_bool(a[i], ea[i]) * 2; break;
    case OP_MIN:
    case OP_MAX: EACH e[i] = larger(ea[i], eb[i]); break;
    case OP_WHERE:
        EACH e[i] = a[i] ? bound_choice(ea[i], b[i], eb[i], c[i], ec[i])
                         : bound_choice(ea[i], c[i], ec[i], b[i], eb[i]);
        break;
    case OP_ISNAN: EACH e[i] = isnan(ea[i]) ? EITHER : 0; break;
    case OP_CONVERT:
    case OP_CAST: bound_cast_to_int(op, n, v, e, args[0]); break;
    default: EACH e[i] = ea[i]; break;
    }
}

/* No value lies outside the range of its operation; what may wrap around may be anything. */
static void limit_bounds(const Operation *op, int n, const int64_t *v, double *e)
{
    const bool wraps = op->op == OP_ADD || op->op == OP_SUB || op->op == OP_MUL;
    const double end = 0x1p63 - 0x1p10, low = op->range.low, high = op->range.high;
    EACH
    {
        const double x = (double)v[i], most = larger(high - x, x - low) / DOUBT;
        if (wraps && e[i] > 0 && fabs(x) + DOUBT * e[i] >= end) e[i] = HUGE_VAL;
        e[i] = e[i] > most ? most : e[i];
    }
}

void compute_int_bounds(const Operation *op, int n, const int64_t *v, double *e,
                        const Operand args[])
{
    if (op->extreme != COMBINE_NONE)
        bound_with_extreme(op, n, e, args);
    else if (is_comparison(op->op))
        bound_comparison(op, n, e, args);
    else
        take_errors_through(op, n, v, e, args);
    limit_bounds(op, n, v, e);
}
