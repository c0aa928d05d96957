/* analyze/places.c: comparisons of an element's place in its row with a number of the row. What is
 * added to the index moves to the other side: index(Q) - index(K) < w becomes index(K) > index(Q) - w.
 * In integers that is the same only where nothing wraps around. Sums of indices and sizes cannot
 * wrap; a number that they are compared with is limited first, which changes no comparison. */
#include "analyze/analyze.h"

#include <math.h>

/* Sums that may move are at most this; what they are compared with is limited to twice as much, so
 * that all of them together still fit. An axis has fewer elements: check_sizes() in compile.c. */
#define MOST 0x1p61
#define AXIS 0x1p59

enum { DEPTH = 8 };

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double most_of_dtype(DType dtype)
{
    const int bytes = dtype_info[dtype].bytes;
    return bytes < 8 ? ldexp(1, 8 * bytes) : INFINITY;
}

/* The largest magnitude that an integer may have; infinity: any. */
static double magnitude(const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    if (info->type != TYPE_I64 || depth == 0) return INFINITY;
    const int arity = op_info[info->op].arity;
    const double a = arity > 0 ? magnitude(g, info->args[0], depth - 1) : 0,
                 b = arity > 1 ? magnitude(g, info->args[1], depth - 1) : 0;
    switch (info->op) {
    case OP_CONST: return fabs((double)info->integer);
    case OP_INDEX:
    case OP_SIZE: return AXIS;
    case OP_PARAM: return most_of_dtype(g->params.data[info->param].dtype);
    case OP_CAST: return most_of_dtype(info->dtype);
    case OP_NEG: return a;
    case OP_MIN:
    case OP_MAX: return larger(a, b);
    case OP_ADD:
    case OP_SUB: return a + b;
    case OP_MUL: return isfinite(a * b) ? a * b : INFINITY;
    case OP_CONVERT: return 1; /* of a bool */
    default: return INFINITY;
    }
}

static bool varies(const Graph *g, AxisSet columns, Node n)
{
    return (node(g, n)->axes & columns) != 0;
}

static void negate(PlaceTest *test)
{
    test->op = turned_comparison(test->op);
    for (int i = 0; i < test->count; i++) test->terms[i].minus = !test->terms[i].minus;
}

/* Zeros are left out, unless there is nothing else. What is added comes before what is subtracted. */
static bool add_term(const Graph *g, PlaceTest *test, Node n, bool minus)
{
    const NodeInfo *info = node(g, n);
    if (info->op == OP_CONST && info->integer == 0) return true;
    if (test->count == MOST_TERMS) return false;
    test->terms[test->count++] = (PlaceTerm){n, minus, magnitude(g, n, DEPTH) > MOST};
    return true;
}

static void order_terms(PlaceTest *test)
{
    for (int i = 1; i < test->count; i++)
        for (int j = i; j > 0 && test->terms[j - 1].minus && !test->terms[j].minus; j--) {
            const PlaceTerm term = test->terms[j];
            test->terms[j] = test->terms[j - 1];
            test->terms[j - 1] = term;
        }
}

/* Moves what stands beside the index in `side` to the terms; false: it is no sum with the index. */
static bool move_terms(const Graph *g, AxisSet columns, PlaceTest *test, Node side)
{
    while (node(g, side)->op != OP_INDEX) {
        const NodeInfo *info = node(g, side);
        const Node left = info->args[0], right = info->args[1];
        const bool sum = info->op == OP_ADD || info->op == OP_SUB;
        if ((!sum && info->op != OP_NEG) || !(magnitude(g, side, DEPTH) <= MOST)) return false;
        if (sum && varies(g, columns, left) == varies(g, columns, right)) return false;
        const bool first = !sum || varies(g, columns, left);
        if (info->op == OP_NEG || !first) {
            if (info->op == OP_ADD) {
                if (!add_term(g, test, left, true)) return false;
            } else {
                negate(test);
                if (sum && !add_term(g, test, left, false)) return false;
            }
        } else if (!add_term(g, test, right, info->op == OP_ADD)) {
            return false;
        }
        side = first ? left : right;
    }
    return true;
}

bool find_place_test(const Graph *g, AxisSet columns, Node comparison, PlaceTest *test)
{
    const NodeInfo *info = node(g, comparison);
    if (info->op < OP_EQ || info->op > OP_GE) return false;
    const Node left = info->args[0], right = info->args[1];
    const bool turn = !varies(g, columns, left);
    const Node side = turn ? right : left, number = turn ? left : right;
    if (!varies(g, columns, side) || varies(g, columns, number)) return false;
    if (node(g, side)->type != TYPE_I64) return false;
    *test = (PlaceTest){.comparison = comparison,
                        .op = turn ? turned_comparison(info->op) : info->op,
                        .turned = turn};
    test->plain = node(g, side)->op == OP_INDEX;
    if (test->plain) {
        test->terms[test->count++] = (PlaceTerm){.n = number};
        return true;
    }
    const bool moved = add_term(g, test, number, false) && move_terms(g, columns, test, side);
    order_terms(test);
    return moved;
}

Op opposite_comparison(Op op)
{
    switch (op) {
    case OP_EQ: return OP_NE;
    case OP_NE: return OP_EQ;
    case OP_LT: return OP_GE;
    case OP_LE: return OP_GT;
    case OP_GT: return OP_LE;
    case OP_GE: return OP_LT;
    default: return OP_NONE;
    }
}
