/* reference_ints.c: the evaluator's operations whose result is an integer or a bool:
 * their values, and how far they may be off where they step on computed floats.
 *
 * Integers wrap, so they are computed unsigned. A bool that may be either way has the
 * bound 1. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")   /* vectors, at -O2 too */
#endif

#include "reference_steps.h"

#include <math.h>

#define EACH for (int i = 0; i < n; i++)

static int64_t wrap(uint64_t value)
{
    return (int64_t)value;
}

#define COMPARE(T)                                                                       \
    do {                                                                                 \
        const T *a = x, *b = y;                                                          \
        switch (op) {                                                                    \
        case OP_EQ: EACH v[i] = a[i] == b[i]; break;                                     \
        case OP_NE: EACH v[i] = a[i] != b[i]; break;                                     \
        case OP_LT: EACH v[i] = a[i] < b[i]; break;                                      \
        case OP_LE: EACH v[i] = a[i] <= b[i]; break;                                     \
        case OP_GT: EACH v[i] = a[i] > b[i]; break;                                      \
        default: EACH v[i] = a[i] >= b[i]; break;                                        \
        }                                                                                \
    } while (0)

static void compare_floats(Op op, int n, int64_t *v, const void *x, const void *y)
{
    COMPARE(double);
}

static void compare_ints(Op op, int n, int64_t *v, const void *x, const void *y)
{
    COMPARE(int64_t);
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

void compute_int_values(const Operation *op, int n, int64_t *v, const Operand args[])
{
    const int64_t *a = args[0].v, *b = args[1].v, *c = args[2].v;
    const double *real = args[0].v;
    if (is_comparison(op->op)) {
        if (type_is_float(op->from))
            compare_floats(op->op, n, v, a, b);
        else
            compare_ints(op->op, n, v, a, b);
        return;
    }
    switch (op->op) {
    case OP_NEG: EACH v[i] = wrap(0 - (uint64_t)a[i]); break;
    case OP_NOT: EACH v[i] = !a[i]; break;
    case OP_ADD: EACH v[i] = wrap((uint64_t)a[i] + (uint64_t)b[i]); break;
    case OP_SUB: EACH v[i] = wrap((uint64_t)a[i] - (uint64_t)b[i]); break;
    case OP_MUL: EACH v[i] = wrap((uint64_t)a[i] * (uint64_t)b[i]); break;
    case OP_AND: EACH v[i] = a[i] & b[i]; break;
    case OP_OR: EACH v[i] = a[i] | b[i]; break;
    case OP_ABS: EACH v[i] = a[i] < 0 ? wrap(0 - (uint64_t)a[i]) : a[i]; break;
    case OP_SIGN: EACH v[i] = (a[i] > 0) - (a[i] < 0); break;
    case OP_MIN: EACH v[i] = a[i] < b[i] ? a[i] : b[i]; break;
    case OP_MAX: EACH v[i] = a[i] > b[i] ? a[i] : b[i]; break;
    case OP_WHERE: EACH v[i] = a[i] ? b[i] : c[i]; break;
    case OP_ISNAN:
        if (type_is_float(op->from))
            EACH v[i] = isnan(real[i]) != 0;
        else
            EACH v[i] = 0;
        break;
    case OP_CONVERT:
    case OP_CAST: cast_to_int(op, n, v, args[0].v); break;
    default: EACH v[i] = a[i]; break;   /* floor, ceil, round of an integer */
    }
}

/* The operands may stand the other way round. A NaN decides for itself. */
static double doubt_order(double a, double ea, double b, double eb)
{
    const double doubt = DOUBT * (ea + eb);
    if (!(doubt > 0) || ((isnan(a) || isnan(b)) && doubt < HUGE_VAL))
        return 0;
    return !(fabs(a - b) > doubt);
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

static void bound_cast_to_int(const Operation *op, int n, double *e, Operand x)
{
    const double *a = x.v;
    if (!type_is_float(op->from)) {
        EACH e[i] = x.e[i];
        return;
    }
    EACH {
        const double doubt = DOUBT * x.e[i];
        const double low = (double)int_of_float(op->dtype, a[i] - doubt);
        const double high = (double)int_of_float(op->dtype, a[i] + doubt);
        e[i] = op->dtype == DTYPE_BOOL ? fabs(a[i]) <= doubt && doubt > 0 : high - low;
    }
}

/* A certain `decisive` value of either operand decides. */
static double doubt_logic(int64_t a, double ea, int64_t b, double eb, int64_t decisive)
{
    if ((a == decisive && ea == 0) || (b == decisive && eb == 0))
        return 0;
    return ea > 0 || eb > 0;
}

void compute_int_bounds(const Operation *op, int n, double *e, const Operand args[])
{
    const int64_t *a = args[0].v, *b = args[1].v, *c = args[2].v;
    const double *ea = args[0].e, *eb = args[1].e, *ec = args[2].e;
    if (is_comparison(op->op)) {
        bound_comparison(op, n, e, args);
        return;
    }
    switch (op->op) {
    case OP_ADD:
    case OP_SUB: EACH e[i] = ea[i] + eb[i]; break;
    case OP_MUL:
        EACH e[i] = fabs((double)a[i]) * eb[i] + fabs((double)b[i]) * ea[i] + ea[i] * eb[i];
        break;
    case OP_AND: EACH e[i] = doubt_logic(a[i], ea[i], b[i], eb[i], 0); break;
    case OP_OR: EACH e[i] = doubt_logic(a[i], ea[i], b[i], eb[i], 1); break;
    case OP_SIGN: EACH e[i] = ea[i] >= fabs((double)a[i]) && ea[i] > 0 ? 2 : 0; break;
    case OP_MIN:
    case OP_MAX: EACH e[i] = fmax(ea[i], eb[i]); break;
    case OP_WHERE:
        EACH e[i] = ea[i] > 0 ? fmax(eb[i], ec[i]) + fabs((double)b[i] - (double)c[i])
                              : a[i] ? eb[i] : ec[i];
        break;
    case OP_ISNAN: EACH e[i] = ea[i] < HUGE_VAL ? 0 : 1; break;
    case OP_CONVERT:
    case OP_CAST: bound_cast_to_int(op, n, e, args[0]); break;
    default: EACH e[i] = ea[i]; break;
    }
}
