/* reference/ops.c: the values of the evaluator's operations, a chunk at a time.
 *
 * Arithmetic is f64 whatever the type; a value of type f32 that f32 cannot hold becomes infinite
 * afterwards, as on the device. Compilers can vectorize each loop. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "graph/evaluate_op.h"
#include "reference/steps.h"

#define EACH for (int i = 0; i < n; i++)

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

static void choose(int n, double *v, const int64_t *condition, const double *b, const double *c)
{
    EACH v[i] = condition[i] ? b[i] : c[i];
}

static void compute_float_values(const Operation *op, int n, double *v, const Operand args[])
{
    const double *x = args[0].v, *y = op->centred ? x : args[1].v;
    switch (op->op) {
#define F64_1(name, value)                                                                         \
    case OP_##name:                                                                                \
        EACH                                                                                       \
        {                                                                                          \
            const double a = x[i];                                                                 \
            v[i] = value;                                                                          \
        }                                                                                          \
        break;
#define F64_2(name, value)                                                                         \
    case OP_##name:                                                                                \
        EACH                                                                                       \
        {                                                                                          \
            const double a = x[i], b = y[i];                                                       \
            v[i] = value;                                                                          \
        }                                                                                          \
        break;
#include "graph/values.def"
    case OP_WHERE: choose(n, v, args[0].v, args[1].v, args[2].v); break;
    default: cast_float(op, n, v, args[0]); break;
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
