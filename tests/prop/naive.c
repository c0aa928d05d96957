/* naive.c: see naive.h. Every value is a double; where integers go beyond 2^53 it gives
 * up. */
#include "naive.h"

#include <math.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 20 };

typedef struct {
    Arena *arena;
    const Graph *g;
    const Sizes *sizes;
    const HostTensor *inputs;
    const double *scalars;
    double **values; /* by node id */
} Naive;

/* Where the element of `from` at the coordinates `at` stands in a tensor with axes
 * `axes`. */
static int64_t place_of(const Naive *e, AxisSet axes, const int64_t at[MAX_AXES])
{
    int64_t place = 0;
    for (int axis = 0; axis < e->g->axis_count; axis++)
        if (axes >> axis & 1) place = place * e->sizes->of[axis] + at[axis];
    return place;
}

static void coordinates(const Naive *e, AxisSet axes, int64_t place, int64_t at[MAX_AXES])
{
    for (int axis = e->g->axis_count - 1; axis >= 0; axis--)
        if (axes >> axis & 1) {
            at[axis] = place % e->sizes->of[axis];
            place /= e->sizes->of[axis];
        }
}

static double narrow_integer(double x, DType dtype)
{
    if (isnan(x)) return 0;
    return dtype == DTYPE_I64 ? trunc(x) : (double)dtype_saturate(dtype, int_from_double(x));
}

static double cast(const NodeInfo *info, double x)
{
    return dtype_is_float(info->dtype) ? dtype_round(info->dtype, x)
                                       : narrow_integer(x, info->dtype);
}

static double smaller(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double apply(const NodeInfo *info, double a, double b, double c)
{
    switch (info->op) {
    case OP_NEG: return -a;
    case OP_NOT: return a == 0;
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_POW: return pow(a, b);
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_AND: return a != 0 && b != 0;
    case OP_OR: return a != 0 || b != 0;
    case OP_ABS: return fabs(a);
    case OP_SQRT: return sqrt(a);
    case OP_RSQRT: return 1 / sqrt(a);
    case OP_EXP: return exp(a);
    case OP_EXP2: return exp2(a);
    case OP_LOG: return log(a);
    case OP_LOG2: return log2(a);
    case OP_LOG1P: return log1p(a);
    case OP_EXPM1: return expm1(a);
    case OP_SIN: return sin(a);
    case OP_COS: return cos(a);
    case OP_TANH: return tanh(a);
    case OP_SIGMOID: return 1 / (1 + exp(-a));
    case OP_ERF: return erf(a);
    case OP_FLOOR: return floor(a);
    case OP_CEIL: return ceil(a);
    case OP_ROUND: return nearbyint(a);
    case OP_SIGN: return isnan(a) ? a : (a > 0) - (a < 0);
    case OP_ISNAN: return isnan(a);
    case OP_MIN: return smaller(isnan(b) ? b : a, b);
    case OP_MAX: return larger(isnan(b) ? b : a, b);
    case OP_CLAMP: {
        const double above = larger(isnan(b) ? b : a, b);
        return smaller(isnan(c) ? c : above, c);
    }
    case OP_WHERE: return a != 0 ? b : c;
    case OP_CONVERT: return info->type == TYPE_F32 ? (double)(float)a : a;
    case OP_CAST: return cast(info, a);
    default: return NAN;
    }
}

static double constant(const NodeInfo *info)
{
    if (!type_is_float(info->type)) return (double)info->integer;
    return info->type == TYPE_F32 ? (double)(float)info->number : info->number;
}

static double leaf(const Naive *e, const NodeInfo *info, const int64_t at[MAX_AXES])
{
    if (info->op == OP_CONST) return constant(info);
    if (info->op == OP_INDEX) return (double)at[info->axis];
    if (info->op == OP_SIZE) return (double)e->sizes->of[info->axis];
    const Param *p = &e->g->params.data[info->param];
    if (p->scalar) return e->scalars[info->param];
    const char *element = (const char *)e->inputs[info->param].data +
                          place_of(e, p->axes, at) * dtype_info[p->dtype].bytes;
    return dtype_is_float(p->dtype) ? dtype_load_float(p->dtype, element)
                                    : (double)dtype_load_int(p->dtype, element);
}

/* One term of a reduction that has seen `seen` before. */
static long double add_term(Op op, long double sum, double x, int64_t seen)
{
    if (op == OP_PROD) return seen ? sum * x : x;
    if (op == OP_MAX_OVER) return seen ? larger(isnan(x) ? x : (double)sum, x) : x;
    if (op == OP_MIN_OVER) return seen ? smaller(isnan(x) ? x : (double)sum, x) : x;
    return seen ? sum + x : x;
}

static double reduce(const Naive *e, const NodeInfo *info, int64_t at[MAX_AXES])
{
    const AxisSet from = e->g->nodes.data[info->args[0].id].axes;
    const double *terms = e->values[info->args[0].id];
    const int64_t count = axes_size(e->sizes, info->reduced);
    long double result = 0;
    double mean = 0;
    if (count == 0 && info->type == TYPE_I64 &&
        (info->op == OP_MAX_OVER || info->op == OP_MIN_OVER))
        return info->op == OP_MAX_OVER ? (double)INT64_MIN : (double)INT64_MAX;
    if (count == 0)
        return info->op == OP_SUM        ? 0
               : info->op == OP_PROD     ? 1
               : info->op == OP_MAX_OVER ? -HUGE_VAL
               : info->op == OP_MIN_OVER ? HUGE_VAL
                                         : NAN;
    for (int pass = info->op == OP_VAR ? 0 : 1; pass < 2; pass++) {
        for (int64_t i = 0; i < count; i++) {
            coordinates(e, info->reduced, i, at);
            const double x = terms[place_of(e, from, at)] - mean;
            result = add_term(info->op, result, info->op == OP_VAR && pass ? x * x : x, i);
        }
        if (pass == 0) mean = (double)(result / count);
    }
    if (info->op == OP_MEAN || info->op == OP_VAR) result /= count;
    return (double)result;
}

/* f32 arithmetic leaves its range where f64's does not; inside, nothing is rounded. */
static double in_range(Type type, double x)
{
    const float narrow = (float)x;
    return type == TYPE_F32 && isinf(narrow) ? (double)narrow : x;
}

static double element(const Naive *e, const NodeInfo *info, int64_t at[MAX_AXES])
{
    double args[MAX_OPERANDS] = {0};
    const OpClass class = op_info[info->op].class;
    if (class == CLASS_LEAF) return leaf(e, info, at);
    if (class == CLASS_REDUCE) return reduce(e, info, at);
    for (int i = 0; i < op_info[info->op].arity; i++) {
        const uint32_t id = info->args[i].id;
        args[i] = e->values[id][place_of(e, e->g->nodes.data[id].axes, at)];
    }
    return apply(info, args[0], args[1], args[2]);
}

static bool needs_too_much(const Naive *e, const NodeInfo *info)
{
    return axes_size(e->sizes,
                     info->axes | (op_info[info->op].class == CLASS_REDUCE ? info->reduced : 0)) >
           MOST_ELEMENTS;
}

const double *naive_values(Arena *arena, const Graph *g, const Sizes *sizes,
                           const HostTensor *inputs, const double *scalars, Node n)
{
    Naive e = {arena, g, sizes, inputs, scalars, NEW_ARRAY(arena, double *, g->nodes.count)};
    bool *needed = NEW_ARRAY(arena, bool, g->nodes.count);
    needed[n.id] = true;
    for (uint32_t id = n.id; id > 0; id--)
        for (int i = 0; needed[id] && i < MAX_OPERANDS; i++)
            needed[g->nodes.data[id].args[i].id] = true;
    for (uint32_t id = 1; id <= n.id; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        int64_t at[MAX_AXES] = {0};
        if (!needed[id]) continue;
        if (needs_too_much(&e, info)) return NULL;
        const int64_t count = axes_size(sizes, info->axes);
        e.values[id] = NEW_ARRAY(arena, double, count + 1);
        for (int64_t i = 0; i < count; i++) {
            coordinates(&e, info->axes, i, at);
            e.values[id][i] = in_range(info->type, element(&e, info, at));
            if (info->type == TYPE_I64 && fabs(e.values[id][i]) > 0x1p53) return NULL;
        }
    }
    return e.values[n.id];
}
