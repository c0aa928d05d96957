/* reference/ops.c: the values of the evaluator's operations, a chunk at a time.
 *
 * Arithmetic is f64 whatever the type; a value of type f32 that f32 could not hold
 * becomes infinite afterwards, as it would on the device. Each loop is one the compiler
 * can vectorise. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "reference/steps.h"

#include <math.h>

#define EACH for (int i = 0; i < n; i++)

bool is_comparison(Op op)
{
    return op == OP_EQ || op == OP_NE || op == OP_LT || op == OP_LE || op == OP_GT || op == OP_GE;
}

static double sigmoid(double x)
{
    const double z = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + z) : z / (1 + z);
}

static double sign_of(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* A comparison with NaN is false, so b's NaN comes through by itself. */
static double max_nan(double a, double b)
{
    const double larger = a > b ? a : b;
    return a != a ? a : larger;
}

static double min_nan(double a, double b)
{
    const double smaller = a < b ? a : b;
    return a != a ? a : smaller;
}

static void cast_float(const Operation *op, int n, double *v, const Operand x)
{
    const double *a = x.v;
    if (op->from == TYPE_I64 || op->from == TYPE_BOOL) {
        const int64_t *whole = x.v;
        if (op->type == TYPE_F64)
            EACH v[i] = (double)whole[i];
        else
            EACH v[i] = (double)(float)whole[i];
        a = v;
    }
    /* A value of type f32 is what f32 arithmetic has already rounded (its bound says so). */
    const bool free = op->op == OP_CONVERT || op->dtype == DTYPE_F64 ||
                      (op->dtype == DTYPE_F32 && op->from != TYPE_F64);
    if (free)
        EACH v[i] = a[i];
    else
        EACH v[i] = dtype_round(op->dtype, a[i]);
}

static void compute_function(const Operation *op, int n, double *v, const double *a)
{
    switch (op->op) {
    case OP_EXP: EACH v[i] = exp(a[i]); break;
    case OP_EXP2: EACH v[i] = exp2(a[i]); break;
    case OP_LOG: EACH v[i] = log(a[i]); break;
    case OP_LOG2: EACH v[i] = log2(a[i]); break;
    case OP_LOG1P: EACH v[i] = log1p(a[i]); break;
    case OP_EXPM1: EACH v[i] = expm1(a[i]); break;
    case OP_SIN: EACH v[i] = sin(a[i]); break;
    case OP_COS: EACH v[i] = cos(a[i]); break;
    case OP_TANH: EACH v[i] = tanh(a[i]); break;
    case OP_SIGMOID: EACH v[i] = sigmoid(a[i]); break;
    case OP_ERF: EACH v[i] = erf(a[i]); break;
    case OP_FLOOR: EACH v[i] = floor(a[i]); break;
    case OP_CEIL: EACH v[i] = ceil(a[i]); break;
    case OP_ROUND: EACH v[i] = rint(a[i]); break;
    case OP_SIGN: EACH v[i] = sign_of(a[i]); break;
    default: break;
    }
}

static void compute_float_values(const Operation *op, int n, double *v, const Operand args[])
{
    const double *a = args[0].v, *b = args[1].v, *c = args[2].v;
    const int64_t *condition = args[0].v;
    switch (op->op) {
    case OP_NEG: EACH v[i] = -a[i]; break;
    case OP_ADD: EACH v[i] = a[i] + b[i]; break;
    case OP_SUB: EACH v[i] = a[i] - b[i]; break;
    case OP_MUL:
        b = op->centred ? a : b;
        EACH v[i] = a[i] * b[i];
        break;
    case OP_DIV: EACH v[i] = a[i] / b[i]; break;
    case OP_POW: EACH v[i] = pow(a[i], b[i]); break;
    case OP_ABS: EACH v[i] = fabs(a[i]); break;
    case OP_SQRT: EACH v[i] = sqrt(a[i]); break;
    case OP_RSQRT: EACH v[i] = 1 / sqrt(a[i]); break;
    case OP_MIN: EACH v[i] = min_nan(a[i], b[i]); break;
    case OP_MAX: EACH v[i] = max_nan(a[i], b[i]); break;
    case OP_WHERE: EACH v[i] = condition[i] ? b[i] : c[i]; break;
    case OP_CONVERT:
    case OP_CAST: cast_float(op, n, v, args[0]); break;
    default: compute_function(op, n, v, a); break;
    }
}

static void compute_values(const Operation *op, int n, void *v, const Operand args[])
{
    if (type_is_float(op->type))
        compute_float_values(op, n, v, args);
    else
        compute_int_values(op, n, v, args);
}

void compute(const Operation *op, int n, void *v, double *e, const Operand args[])
{
    compute_values(op, n, v, args);
    if (e)
        compute_bounds(op, n, v, e, args);
    else if (op->type == TYPE_F32)
        limit_to_f32(n, v);
}
