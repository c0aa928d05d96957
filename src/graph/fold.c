/* graph/fold.c: constant folding, a part of simplify. f32 operations are computed in double and
 * rounded once, which is exact for + - * / and sqrt, and as near as can be for the
 * others. */
#include "graph/fold.h"

#include <math.h>

static const Node none = {0};

double constant_number(const NodeInfo *constant)
{
    return constant->type == TYPE_F32 ? (double)(float)constant->number : constant->number;
}

static Node number(Graph *g, Type type, double value)
{
    return graph_number(g, type, type == TYPE_F32 ? (double)(float)value : value);
}

static Node boolean(Graph *g, bool value)
{
    return graph_integer(g, TYPE_BOOL, value);
}

/* ---- floats ---- */

static double sign_of(double a)
{
    return a > 0 ? 1.0 : a < 0 ? -1.0 : a;
}

static bool unary_float(Op op, double a, double *value)
{
    switch (op) {
    case OP_NEG: *value = -a; return true;
    case OP_ABS: *value = fabs(a); return true;
    case OP_SQRT: *value = sqrt(a); return true;
    case OP_RSQRT: *value = 1.0 / sqrt(a); return true;
    case OP_EXP: *value = exp(a); return true;
    case OP_EXP2: *value = exp2(a); return true;
    case OP_LOG: *value = log(a); return true;
    case OP_LOG2: *value = log2(a); return true;
    case OP_LOG1P: *value = log1p(a); return true;
    case OP_EXPM1: *value = expm1(a); return true;
    case OP_SIN: *value = sin(a); return true;
    case OP_COS: *value = cos(a); return true;
    case OP_TANH: *value = tanh(a); return true;
    case OP_SIGMOID: *value = 1.0 / (1.0 + exp(-a)); return true;
    case OP_ERF: *value = erf(a); return true;
    case OP_FLOOR: *value = floor(a); return true;
    case OP_CEIL: *value = ceil(a); return true;
    case OP_ROUND: *value = rint(a); return true;
    case OP_SIGN: *value = sign_of(a); return true;
    default: return false;
    }
}

static bool binary_float(Op op, double a, double b, double *value)
{
    switch (op) {
    case OP_ADD: *value = a + b; return true;
    case OP_SUB: *value = a - b; return true;
    case OP_MUL: *value = a * b; return true;
    case OP_DIV: *value = a / b; return true;
    case OP_POW: *value = pow(a, b); return true;
    case OP_MIN: *value = isnan(a) || a < b ? a : b; return true;
    case OP_MAX: *value = isnan(a) || a > b ? a : b; return true;
    default: return false;
    }
}

static bool compare(Op op, bool less, bool equal, bool greater, bool *value)
{
    switch (op) {
    case OP_EQ: *value = equal; return true;
    case OP_NE: *value = !equal; return true;
    case OP_LT: *value = less; return true;
    case OP_LE: *value = less || equal; return true;
    case OP_GT: *value = greater; return true;
    case OP_GE: *value = greater || equal; return true;
    default: return false;
    }
}

static Node fold_float(Graph *g, Op op, Type type, double a, double b)
{
    double value;
    bool truth;
    if (op_info[op].arity == 1 && unary_float(op, a, &value)) return number(g, type, value);
    if (op == OP_ISNAN) return boolean(g, isnan(a));
    if (op_info[op].arity == 2 && binary_float(op, a, b, &value)) return number(g, type, value);
    if (compare(op, a<b, a == b, a> b, &truth)) return boolean(g, truth);
    return none;
}

/* ---- integers ---- */

static bool integer_op(Op op, int64_t a, int64_t b, int64_t *value)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case OP_NEG: *value = (int64_t)(0 - x); return true;
    case OP_ABS: *value = a < 0 ? (int64_t)(0 - x) : a; return true;
    case OP_SIGN: *value = (a > 0) - (a < 0); return true;
    case OP_ADD: *value = (int64_t)(x + y); return true;
    case OP_SUB: *value = (int64_t)(x - y); return true;
    case OP_MUL: *value = (int64_t)(x * y); return true;
    case OP_MIN: *value = a < b ? a : b; return true;
    case OP_MAX: *value = a > b ? a : b; return true;
    default: return false;
    }
}

static Node fold_integer(Graph *g, Op op, int64_t a, int64_t b)
{
    int64_t value;
    bool truth;
    if (integer_op(op, a, b, &value)) return graph_integer(g, TYPE_I64, value);
    if (compare(op, a<b, a == b, a> b, &truth)) return boolean(g, truth);
    return none;
}

static Node fold_bool(Graph *g, Op op, bool a, bool b)
{
    bool truth;
    switch (op) {
    case OP_NOT: return boolean(g, !a);
    case OP_AND: return boolean(g, a && b);
    case OP_OR: return boolean(g, a || b);
    default: return compare(op, a<b, a == b, a> b, &truth) ? boolean(g, truth) : none;
    }
}

Node fold(Graph *g, Op op, Node a, Node b, Node c)
{
    NodeInfo first = *node(g, a), second = *node(g, b);
    if (c.id || first.op != OP_CONST || (b.id && second.op != OP_CONST)) return none;
    if (type_is_float(first.type))
        return fold_float(g, op, first.type, constant_number(&first), constant_number(&second));
    if (first.type == TYPE_I64) return fold_integer(g, op, first.integer, second.integer);
    return fold_bool(g, op, first.integer != 0, second.integer != 0);
}

/* ---- conversions ---- */

Node fold_convert(Graph *g, Type type, Node a)
{
    NodeInfo info = *node(g, a);
    if (info.op != OP_CONST || info.type == type) return none;
    if (type == TYPE_I64) return graph_integer(g, TYPE_I64, info.integer);
    if (type_is_float(info.type)) return number(g, type, constant_number(&info));
    return graph_number(g, type,
                        type == TYPE_F32 ? (double)(float)info.integer : (double)info.integer);
}

/* Whether an integer passes through double unchanged. */
static bool is_exact(int64_t value)
{
    return value >= -((int64_t)1 << 53) && value <= (int64_t)1 << 53;
}

Node fold_cast(Graph *g, DType dtype, Node a)
{
    NodeInfo info = *node(g, a);
    Type to = dtype_info[dtype].type;
    if (info.op != OP_CONST || to == TYPE_BOOL) return none;
    bool is_float = type_is_float(info.type);
    if (type_is_float(to)) {
        if (!is_float && !is_exact(info.integer)) return none;
        double value = is_float ? constant_number(&info) : (double)info.integer;
        return graph_number(g, to, dtype_round(dtype, value));
    }
    int64_t value = is_float ? int_from_double(constant_number(&info)) : info.integer;
    return graph_integer(g, to, dtype_saturate(dtype, value));
}
