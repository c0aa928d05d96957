/* graph/grad_facts.c: what is known of the forward pass before the walk: which nodes are products of
 * which others, what sums and additions are, what cannot be negative. */
#include "graph/grad_internal.h"

#include <math.h>
#include <string.h>

enum { MOST_FACTORS = 12, SIZE_DEPTH = 6 };

static const Node none = {0};

static const NodeInfo *info_of(const Grad *s, Node n)
{
    return node(s->g, n);
}

/* ---- what is positive ---- */

enum { SIGN_DEPTH = 16 };

static Sign lesser(Sign a, Sign b)
{
    return a < b ? a : b;
}

static Sign sign_at(const Grad *s, Node n, int depth);

static Sign sign_of_operands(const Grad *s, Node n, int depth)
{
    const NodeInfo *info = info_of(s, n);
    const Sign a = sign_at(s, info->args[0], depth);
    const Sign b = info->args[1].id ? sign_at(s, info->args[1], depth) : a;
    switch (info->op) {
    case OP_ADD: return lesser(a, b) == MAY_BE_NEGATIVE ? MAY_BE_NEGATIVE : a > b ? a : b;
    case OP_MUL:
        if (info->args[0].id == info->args[1].id) return a == POSITIVE ? a : NOT_NEGATIVE;
        return lesser(a, b);
    case OP_DIV:
    case OP_MIN: return lesser(a, b);
    case OP_MAX: return a > b ? a : b;
    case OP_SQRT:
    case OP_CONVERT:
    case OP_CAST:
    case OP_SUM:
    case OP_MEAN:
    case OP_MAX_OVER:
    case OP_MIN_OVER: return a;
    case OP_POW: {
        const NodeInfo *exponent = info_of(s, info->args[1]);
        const bool even = exponent->op == OP_CONST && fmod(exponent->number, 2) == 0;
        return a == MAY_BE_NEGATIVE && even ? NOT_NEGATIVE : a;
    }
    default: return MAY_BE_NEGATIVE;
    }
}

/* A scalar with a positive default counts as positive, and so does eps without one. */
static Sign sign_at(const Grad *s, Node n, int depth)
{
    const NodeInfo *info = info_of(s, n);
    if (depth == 0) return MAY_BE_NEGATIVE;
    switch (info->op) {
    case OP_CONST: {
        const double value = type_is_float(info->type) ? info->number : (double)info->integer;
        return value > 0 ? POSITIVE : value >= 0 ? NOT_NEGATIVE : MAY_BE_NEGATIVE;
    }
    case OP_PARAM: {
        const Param *p = &s->g->params.data[info->param];
        const bool is_eps = !p->has_default && !strncmp(p->name, "eps", 3);
        const bool positive = is_eps || (p->has_default && p->default_value > 0);
        return p->scalar && positive ? POSITIVE : MAY_BE_NEGATIVE;
    }
    case OP_SIZE:
    case OP_EXP:
    case OP_EXP2:
    case OP_RSQRT:
    case OP_SIGMOID: return POSITIVE;
    case OP_ABS:
    case OP_VAR: return NOT_NEGATIVE;
    default: return info->args[0].id ? sign_of_operands(s, n, depth - 1) : MAY_BE_NEGATIVE;
    }
}

Sign sign_of_node(const Grad *s, Node n)
{
    return sign_at(s, n, SIGN_DEPTH);
}

/* ---- sizes and centres ---- */

Node centre_node(Grad *s, Node x, AxisSet axes)
{
    return graph_op(s->g, OP_SUB, x, graph_reduce(s->g, OP_MEAN, axes, x), none);
}

Term size_term(Grad *s, AxisSet axes)
{
    Term product = term_number(1);
    for (uint32_t i = 0; i < MAX_AXES; i++)
        if (axes >> i & 1)
            product = term_times(s->a, product, term_node(s->a, graph_size(s->g, i)));
    return product;
}

/* ---- a node as a product ---- */

static bool is_plain(const Term *x)
{
    return isfinite(x->coefficient) && x->coefficient != 0 && x->factor_count <= MOST_FACTORS;
}

static Term factor_power(Grad *s, Node n, const NodeInfo *info)
{
    const NodeInfo *exponent = info_of(s, info->args[1]);
    const double e = exponent->number;
    const bool small = exponent->op == OP_CONST && e == floor(e) && e >= 1 && e <= 8;
    return small ? term_power(s->a, s->factored[info->args[0].id], (int)e) : term_node(s->a, n);
}

static Term factor_node(Grad *s, Node n)
{
    const NodeInfo info = *info_of(s, n);
    const Term *f = s->factored;
    switch (info.op) {
    case OP_CONST:
        if (info.type == TYPE_BOOL || (type_is_float(info.type) && !isfinite(info.number)))
            return term_node(s->a, n);
        return term_number(info.type == TYPE_I64 ? (double)info.integer : info.number);
    case OP_NEG:
        return info.type == TYPE_I64 ? term_node(s->a, n) : term_scaled(f[info.args[0].id], -1);
    case OP_CONVERT: return f[info.args[0].id];
    case OP_MUL: return term_times(s->a, f[info.args[0].id], f[info.args[1].id]);
    case OP_DIV:
        return term_times(s->a, f[info.args[0].id], term_power(s->a, f[info.args[1].id], -1));
    case OP_POW: return factor_power(s, n, &info);
    default: return term_node(s->a, n);
    }
}

/* Whether an integer is a product of sizes, so that it cannot wrap around. */
static bool is_size(const Grad *s, Node n, int depth)
{
    const NodeInfo *info = info_of(s, n);
    if (info->op == OP_SIZE) return true;
    return info->op == OP_MUL && depth > 0 && is_size(s, info->args[0], depth - 1) &&
           is_size(s, info->args[1], depth - 1);
}

void factor_nodes(Grad *s)
{
    for (uint32_t id = 1; id < (uint32_t)s->forward_count; id++) {
        const Node n = {id};
        const Op op = info_of(s, n)->op;
        const bool integer = !type_is_float(info_of(s, n)->type);
        const bool atom = integer && op != OP_CONST && !is_size(s, n, SIZE_DEPTH);
        /* An integer that becomes a float is an atom as that float. */
        const bool converts = op == OP_CONVERT && !type_is_float(info_of(s, arg(s->g, n, 0))->type);
        const bool opaque = converts && !is_size(s, arg(s->g, n, 0), SIZE_DEPTH);
        Term product = atom || opaque ? term_node(s->a, n) : factor_node(s, n);
        if (op != OP_CONST && !is_plain(&product)) product = term_node(s->a, n);
        s->factored[id] = product;
    }
}

/* ---- known sums ---- */

void know_sums(Grad *s)
{
    for (uint32_t id = 1; id < (uint32_t)s->forward_count; id++) {
        const NodeInfo info = *info_of(s, (Node){id});
        if (!type_is_float(info.type) || !adds_terms(info.op)) continue;
        const Node x = info.args[0];
        Term value = term_node(s->a, (Node){id}), terms = s->factored[x.id];
        if (info.op != OP_SUM) value = term_times(s->a, value, size_term(s, info.reduced));
        if (info.op == OP_VAR)
            terms = term_power(s->a, term_node(s->a, centre_node(s, x, info.reduced)), 2);
        know_sum(s->a, info.reduced, terms, value);
    }
}

/* n = a + b, and n + b = a of n = a - b. */
void know_additions(Grad *s)
{
    for (uint32_t id = 1; id < (uint32_t)s->forward_count; id++) {
        const NodeInfo info = *info_of(s, (Node){id});
        const Term n = term_node(s->a, (Node){id});
        if (!type_is_float(info.type)) continue;
        const Term *f = s->factored;
        if (info.op == OP_ADD)
            know_addition(s->a, f[info.args[0].id], f[info.args[1].id], n);
        else if (info.op == OP_SUB)
            know_addition(s->a, n, f[info.args[1].id], f[info.args[0].id]);
    }
}
