/* graph/fold.c: constant folding, a part of simplify. f32 operations are computed in double and
 * rounded once, which is exact for + - * / and sqrt, and as accurate as possible for the others. */
#include "graph/fold.h"
#include "graph/evaluate_op.h"

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

static Node fold_float(Graph *g, Op op, Type type, double a, double b)
{
    double value;
    bool truth;
    if (f64_value(op, a, b, &value)) return number(g, type, value);
    if (f64_test(op, a, b, &truth)) return boolean(g, truth);
    return op == OP_ISNAN ? boolean(g, isnan(a)) : none;
}

static Node fold_integer(Graph *g, Op op, Type type, int64_t a, int64_t b)
{
    int64_t value;
    bool truth;
    if (i64_value(op, a, b, &value)) return graph_integer(g, type, value);
    return i64_test(op, a, b, &truth) ? boolean(g, truth) : none;
}

Node fold(Graph *g, Op op, Node a, Node b, Node c)
{
    NodeInfo first = *node(g, a), second = *node(g, b);
    if (c.id || first.op != OP_CONST || (b.id && second.op != OP_CONST)) return none;
    if (type_is_float(first.type))
        return fold_float(g, op, first.type, constant_number(&first), constant_number(&second));
    return fold_integer(g, op, first.type, first.integer, second.integer);
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

/* Whether double represents an integer exactly. */
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
