/* graph/grad_hide.c: guards that a product does not need. A saved softmax is 0 where its mask hid a
 * key; times gradients alone it is 0 there, and the mask need not be read again. */
#include "graph/grad_internal.h"

enum { DEPTH = 16 };

static bool reads_tensor(const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    if (info->op == OP_PARAM) return !g->params.data[info->param].scalar;
    if (depth == 0) return true;
    for (int i = 0; i < op_info[info->op].arity; i++)
        if (reads_tensor(g, info->args[i], depth - 1)) return true;
    return false;
}

static bool is_saved(const Build *b, Node n)
{
    const Grad *s = b->s;
    for (int i = 0; i < s->forward->outputs.count; i++)
        if (b->saved[i] && s->forward->outputs.data[i].value.id == n.id) return true;
    return false;
}

/* Whether a value is made of gradients, scalars and what was saved, which are finite. */
static bool is_finite_node(const Build *b, Node n, int depth)
{
    const Graph *g = b->s->g;
    const NodeInfo *info = node(g, n);
    switch (info->op) {
    case OP_CONST:
    case OP_SIZE:
    case OP_INDEX: return true;
    case OP_PARAM:
        return g->params.data[info->param].scalar ||
               (int)info->param >= b->s->forward->params.count;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_NEG:
    case OP_CONVERT:
    case OP_SUM:
    case OP_MEAN:
    case OP_WHERE: break;
    default: return is_saved(b, n);
    }
    if (is_saved(b, n)) return true;
    if (depth == 0) return false;
    for (int i = info->op == OP_WHERE; i < op_info[info->op].arity; i++)
        if (!is_finite_node(b, info->args[i], depth - 1)) return false;
    return true;
}

/* Whether a saved value is 0 where the guard does not hold. */
static bool is_zero_without(const Build *b, Node n, Guard guard)
{
    const NodeInfo *info = node(b->s->g, n);
    if (info->op != OP_WHERE || !is_saved(b, n) || info->args[0].id != guard.condition)
        return false;
    const NodeInfo *other = node(b->s->g, info->args[guard.holds ? 2 : 1]);
    return other->op == OP_CONST && type_is_float(other->type) && other->number == 0;
}

/* Whether all factors of a product are finite. */
static bool are_factors_finite(const Build *b, Node n, Guard guard, int depth)
{
    const NodeInfo *info = node(b->s->g, n);
    if (is_zero_without(b, n, guard)) return true;
    if (is_finite_node(b, n, DEPTH)) return true;
    if ((info->op != OP_MUL && info->op != OP_NEG) || depth == 0) return false;
    for (int i = 0; i < op_info[info->op].arity; i++)
        if (!are_factors_finite(b, info->args[i], guard, depth - 1)) return false;
    return true;
}

/* is_finite_node() takes a whole product for finite, in which the zero is still to be found. */
static bool has_zero(const Build *b, Node n, Guard guard, int depth)
{
    const NodeInfo *info = node(b->s->g, n);
    if (is_zero_without(b, n, guard)) return true;
    if ((info->op != OP_MUL && info->op != OP_NEG) || depth == 0) return false;
    for (int i = 0; i < op_info[info->op].arity; i++)
        if (has_zero(b, info->args[i], guard, depth - 1)) return true;
    return false;
}

Term needless_guards(Build *b, const Term *x, Node product)
{
    Guard *needless = NEW_ARRAY(b->s->arena, Guard, x->guard_count + 1);
    Term found = {.coefficient = 1, .guards = needless};
    for (int i = 0; i < x->guard_count; i++) {
        const Guard guard = x->guards[i];
        if (!reads_tensor(b->s->g, (Node){guard.condition}, DEPTH)) continue;
        if (!are_factors_finite(b, product, guard, DEPTH)) continue;
        if (has_zero(b, product, guard, DEPTH)) needless[found.guard_count++] = guard;
    }
    return found;
}
