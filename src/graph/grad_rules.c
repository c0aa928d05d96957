/* graph/grad_rules.c: the walk from the outputs to the inputs. Each node gives to its operands its
 * own gradient times its derivative (graph/derivatives.def), summed over the axes along which the
 * operand was repeated.
 *
 * A value that `where` hides has a gradient with a guard, which stays outermost whatever it is
 * multiplied with, so that an inf or NaN that was hidden in the forward pass stays hidden. */
#include "graph/grad_internal.h"

#include <math.h>
#include <string.h>

/* Longer ones are not multiplied out: work stays in proportion to the graph. */
enum {
    MOST_TERMS = 8,
    MOST_TERMS_IN_PRODUCT = 4,
    MOST_TERMS_IN_SUM = 128,
    MOST_FACTORS_IN_TERM = 16
};

static const double LN2 = 0.69314718055994530942, TWO_OVER_ROOT_PI = 1.12837916709551257390;
static const Node none = {0};

static Term number(double value)
{
    return term_number(value);
}

static Term times(Grad *s, Term x, Term y)
{
    return term_times(s->a, x, y);
}

static Term power(Grad *s, Term x, int exponent)
{
    return term_power(s->a, x, exponent);
}

static Term over(Grad *s, Term x)
{
    return power(s, x, -1);
}

static Term scaled(Term x, double factor)
{
    return term_scaled(x, factor);
}

static const NodeInfo *info_of(const Grad *s, Node n)
{
    return node(s->g, n);
}

static Node literal(Grad *s, Node like, double value)
{
    return graph_number(s->g, info_of(s, like)->type, value);
}

static Term fn(Grad *s, Op op, Node x)
{
    return term_node(s->a, graph_op(s->g, op, x, none, none));
}

static Node square(Grad *s, Node x)
{
    return graph_op(s->g, OP_MUL, x, x, none);
}

static Node minus_square(Grad *s, Node x)
{
    return graph_op(s->g, OP_NEG, square(s, x), none, none);
}

static Term one_plus(Grad *s, Node x)
{
    return term_node(s->a, graph_op(s->g, OP_ADD, literal(s, x, 1), x, none));
}

static Term one_minus(Grad *s, Node x)
{
    return term_node(s->a, graph_op(s->g, OP_SUB, literal(s, x, 1), x, none));
}

static Term unless_zero(Grad *s, Node y, Term x)
{
    if (sign_of_node(s, y) == POSITIVE) return x;
    const Node is_zero = graph_op(s->g, OP_EQ, y, literal(s, y, 0), none);
    return term_guarded(s->a, x, is_zero, false);
}

/* ---- giving to operands ---- */

static Node conjunction(Grad *s, const Term *x)
{
    Node all = none;
    for (int i = 0; i < x->guard_count; i++) {
        Node c = {x->guards[i].condition};
        if (!x->guards[i].holds) c = graph_op(s->g, OP_NOT, c, none, none);
        all = all.id ? graph_op(s->g, OP_AND, all, c, none) : c;
    }
    return all;
}

/* Where any term may count; 0: everywhere. */
static Node where_any(Grad *s, Poly x)
{
    Node any = none;
    for (int i = 0; i < x.count; i++) {
        const Node c = conjunction(s, &x.terms[i]);
        bool is_new = true;
        if (!c.id) return none;
        for (int k = 0; k < i; k++) is_new &= conjunction(s, &x.terms[k]).id != c.id;
        if (is_new) any = any.id ? graph_op(s->g, OP_OR, any, c, none) : c;
    }
    return any;
}

static Poly poly_without_guard(Grad *s, Poly x, uint32_t condition)
{
    Term *terms = NEW_ARRAY(s->arena, Term, x.count);
    for (int i = 0; i < x.count; i++) terms[i] = drop_guard(s->a, x.terms[i], condition);
    return (Poly){terms, x.count};
}

/* The polynomial as one atom, behind the guards that all its terms have. */
static Poly freeze(Grad *s, Node n, Poly x)
{
    Term guards = number(1);
    const Term shared = common_factors(s->a, x);
    guards.guards = shared.guards;
    guards.guard_count = shared.guard_count;
    for (int k = 0; k < guards.guard_count; k++)
        x = poly_without_guard(s, x, guards.guards[k].condition);
    const Node any = guards.guard_count ? none : where_any(s, x);
    const char *name = info_of(s, n)->name;
    if (name) name = arena_format(s->arena, "d%s", name);
    const uint32_t atom = atom_of_poly(s->a, x, name);
    if (any.id) guards = term_guarded(s->a, number(1), any, true);
    return poly_term(s->a, times(s, term_atom(s->a, atom, 1), guards));
}

/* y != 0 where y is greater than something that is not negative. */
static bool is_implied(const Grad *s, const Term *x, const Guard *guard)
{
    const NodeInfo *zero = &s->g->nodes.data[guard->condition];
    if (guard->holds || zero->op != OP_EQ) return false;
    for (int i = 0; i < x->guard_count; i++) {
        const NodeInfo *info = &s->g->nodes.data[x->guards[i].condition];
        const bool greater = x->guards[i].holds && info->op == OP_GT;
        if (greater && info->args[0].id == zero->args[0].id &&
            sign_of_node(s, info->args[1]) != MAY_BE_NEGATIVE)
            return true;
    }
    return false;
}

static Term drop_implied(Grad *s, Term x)
{
    Guard *left = NEW_ARRAY(s->arena, Guard, x.guard_count + 1);
    int count = 0;
    for (int i = 0; i < x.guard_count; i++)
        if (!is_implied(s, &x, &x.guards[i])) left[count++] = x.guards[i];
    x.guards = left;
    x.guard_count = count;
    return x;
}

/* Whether two operands are given products of the gradient: then it has a name of its own. */
static bool is_given_twice(const Grad *s, Node n)
{
    const NodeInfo *info = info_of(s, n);
    const bool is_product = info->op == OP_MUL || info->op == OP_DIV;
    return is_product && s->active[info->args[0].id] && s->active[info->args[1].id];
}

static bool has_long_term(Poly x)
{
    for (int i = 0; i < x.count; i++)
        if (x.terms[i].factor_count > MOST_FACTORS_IN_TERM) return true;
    return false;
}

static Poly multiply(Grad *s, Node n, Poly y, Term derivative)
{
    const bool varies = term_axes(s->a, &derivative) != 0;
    const int most = is_given_twice(s, n) ? 1 : varies ? MOST_TERMS_IN_PRODUCT : MOST_TERMS;
    if (is_zero_term(&derivative)) return (Poly){0};
    if (y.count > most || has_long_term(y)) y = freeze(s, n, y);
    if (!derivative.guard_count) return poly_times(s->a, y, derivative);
    Poly product = {0};
    for (int i = 0; i < y.count; i++) {
        Term term = times(s, y.terms[i], derivative);
        if (is_zero_term(&term)) continue;
        product = poly_add(s->a, product, poly_term(s->a, drop_implied(s, term)));
    }
    return product;
}

/* Adds to the gradient of an operand of n. */
static void give(Grad *s, Node n, Node operand, Term derivative)
{
    if (!operand.id || !s->active[operand.id]) return;
    const AxisSet repeated = info_of(s, n)->axes & ~info_of(s, operand)->axes;
    const Poly part = multiply(s, n, s->adjoint[n.id], derivative);
    Poly *sum = &s->adjoint[operand.id];
    if (sum->count > MOST_TERMS_IN_SUM) *sum = freeze(s, operand, *sum);
    *sum = poly_add(s->a, *sum, poly_sum(s->a, part, repeated));
}

static Term where_true(Grad *s, Node condition)
{
    return term_guarded(s->a, number(1), condition, true);
}

static Term where_false(Grad *s, Node condition)
{
    return term_guarded(s->a, number(1), condition, false);
}

static Node test(Grad *s, Op op, Node a, Node b)
{
    return graph_op(s->g, op, a, b, none);
}

/* ---- operations that select ---- */

/* min and max: half to each of two equal values, nothing to a value that equals a constant. */
static void give_larger(Grad *s, Node n, Op above)
{
    const Node a = arg(s->g, n, 0), b = arg(s->g, n, 1);
    const Op below = above == OP_GT ? OP_LT : OP_GT;
    const Node first = test(s, above, a, b);
    if (s->varies[a.id] && !s->varies[b.id]) {
        give(s, n, a, where_true(s, first));
        give(s, n, b, where_false(s, first));
        return;
    }
    const Node second = test(s, above, b, a);
    if (!s->varies[a.id] && s->varies[b.id]) {
        give(s, n, b, where_true(s, second));
        give(s, n, a, where_false(s, second));
        return;
    }
    const Term tie = scaled(where_true(s, test(s, OP_EQ, a, b)), 0.5);
    give(s, n, a, where_true(s, first));
    give(s, n, a, tie);
    give(s, n, b, where_true(s, test(s, below, a, b)));
    give(s, n, b, tie);
}

static void give_clamped(Grad *s, Node n)
{
    const Node x = arg(s->g, n, 0), low = arg(s->g, n, 1), high = arg(s->g, n, 2);
    const Node inside = test(s, OP_AND, test(s, OP_GE, x, low), test(s, OP_LE, x, high));
    give(s, n, x, where_true(s, inside));
    /* Where the bounds are the wrong way round, the upper one counts. */
    const Node at_low = test(s, OP_AND, test(s, OP_LT, x, low), test(s, OP_LE, low, high));
    const Node at_high = test(s, OP_OR, test(s, OP_GT, x, high), test(s, OP_GT, low, high));
    give(s, n, low, where_true(s, at_low));
    give(s, n, high, where_true(s, at_high));
}

/* ---- powers ---- */

static void give_constant_power(Grad *s, Node n, double e)
{
    const Node x = arg(s->g, n, 0);
    if (e == 0) return;
    if (e == floor(e) && e >= 1 && e <= 8) {
        give(s, n, x, scaled(power(s, s->factored[x.id], (int)e - 1), e));
        return;
    }
    const Node less = graph_op(s->g, OP_POW, x, literal(s, x, e - 1), none);
    const Term derivative = scaled(term_node(s->a, less), e);
    give(s, n, x, e > 0 && e < 1 ? unless_zero(s, x, derivative) : derivative);
}

static void give_power(Grad *s, Node n)
{
    const Node x = arg(s->g, n, 0), e = arg(s->g, n, 1);
    const Node one = literal(s, e, 1), zero = literal(s, x, 0);
    if (info_of(s, e)->op == OP_CONST && isfinite(info_of(s, e)->number)) {
        give_constant_power(s, n, info_of(s, e)->number);
        return;
    }
    if (s->active[x.id]) {
        const Node less = graph_op(s->g, OP_POW, x, graph_op(s->g, OP_SUB, e, one, none), none);
        const Node flat = test(s, OP_AND, test(s, OP_EQ, x, zero), test(s, OP_LT, e, one));
        give(s, n, x,
             times(s, times(s, s->factored[e.id], term_node(s->a, less)), where_false(s, flat)));
    }
    if (s->active[e.id]) {
        const Term derivative = times(s, s->factored[n.id], fn(s, OP_LOG, x));
        const Term guard = where_false(s, test(s, OP_LE, x, zero));
        give(s, n, e, sign_of_node(s, x) == POSITIVE ? derivative : times(s, derivative, guard));
    }
}

/* ---- reductions ---- */

static void no_rule(Grad *s, Node n)
{
    const NodeInfo *info = info_of(s, n);
    report_error(s->d, info->span, NULL, "'%s' has no derivative", op_info[info->op].text);
    stop(s->d);
}

static Node count_true(Grad *s, Node condition, Node like, AxisSet axes)
{
    const Node one = graph_op(s->g, OP_WHERE, condition, literal(s, like, 1), literal(s, like, 0));
    return graph_reduce(s->g, OP_SUM, axes, one);
}

/* The largest elements share evenly. */
static void give_extreme(Grad *s, Node n)
{
    const Node x = arg(s->g, n, 0), is_extreme = test(s, OP_EQ, x, n);
    graph_name(s->g, is_extreme, info_of(s, n)->op == OP_MAX_OVER ? "is_max" : "is_min", (Span){0});
    const Node ties = count_true(s, is_extreme, x, info_of(s, n)->reduced);
    graph_name(s->g, ties, "ties", (Span){0});
    give(s, n, x, times(s, over(s, term_node(s->a, ties)), where_true(s, is_extreme)));
}

/* The product of the others: of a row with one zero, only the zero has a gradient. */
static void give_product(Grad *s, Node n)
{
    const NodeInfo info = *info_of(s, n);
    const Node x = info.args[0], zero = literal(s, x, 0), one = literal(s, x, 1);
    const Node is_zero = test(s, OP_EQ, x, zero);
    const Node zeros = count_true(s, is_zero, x, info.reduced);
    const Node rest =
        graph_reduce(s->g, OP_PROD, info.reduced, graph_op(s->g, OP_WHERE, is_zero, one, x));
    graph_name(s->g, is_zero, "is_zero", (Span){0});
    graph_name(s->g, zeros, "zeros", (Span){0});
    graph_name(s->g, rest, "others", (Span){0});
    const Term others = term_node(s->a, rest);
    const Term of_zero = times(s, others, where_true(s, test(s, OP_EQ, zeros, one)));
    const Term of_rest = times(s, times(s, others, over(s, s->factored[x.id])),
                               where_true(s, test(s, OP_EQ, zeros, zero)));
    give(s, n, x, times(s, of_zero, where_true(s, is_zero)));
    give(s, n, x, times(s, of_rest, where_false(s, is_zero)));
}

static void give_reduction(Grad *s, Node n)
{
    const NodeInfo info = *info_of(s, n);
    const Term share = over(s, size_term(s, info.reduced));
    switch (info.op) {
    case OP_SUM: give(s, n, info.args[0], number(1)); break;
    case OP_MEAN: give(s, n, info.args[0], share); break;
    case OP_VAR: {
        const Term distance = term_node(s->a, centre_node(s, info.args[0], info.reduced));
        give(s, n, info.args[0], scaled(times(s, distance, share), 2));
        break;
    }
    case OP_MAX_OVER:
    case OP_MIN_OVER: give_extreme(s, n); break;
    case OP_PROD: give_product(s, n); break;
    default: no_rule(s, n);
    }
}

/* ---- the walk ---- */

static void give_by_table(Grad *s, Node y)
{
    const NodeInfo info = *info_of(s, y);
    const Node x = info.args[0], b = info.args[1];
    const Term X = s->factored[x.id], Y = s->factored[y.id], A = X, B = s->factored[b.id];
    (void)A;
    switch (info.op) {
#define D1(op, derivative, doc)                                                                    \
    case OP_##op:                                                                                  \
        give(s, y, x, derivative);                                                                 \
        break;
#define D2(op, of_a, of_b, doc)                                                                    \
    case OP_##op:                                                                                  \
        give(s, y, x, of_a);                                                                       \
        give(s, y, b, of_b);                                                                       \
        break;
#include "graph/derivatives.def"
    default: no_rule(s, y);
    }
}

static void give_all(Grad *s, Node n)
{
    const NodeInfo info = *info_of(s, n);
    switch (info.op) {
    case OP_WHERE:
        give(s, n, info.args[1], where_true(s, info.args[0]));
        give(s, n, info.args[2], where_false(s, info.args[0]));
        break;
    case OP_MAX: give_larger(s, n, OP_GT); break;
    case OP_MIN: give_larger(s, n, OP_LT); break;
    case OP_CLAMP: give_clamped(s, n); break;
    case OP_POW: give_power(s, n); break;
    default:
        if (op_info[info.op].class == CLASS_REDUCE)
            give_reduction(s, n);
        else
            give_by_table(s, n);
    }
}

/* Whether a derivative passes through an operation at all. */
static bool is_smooth(Op op)
{
    return op != OP_FLOOR && op != OP_CEIL && op != OP_ROUND && op != OP_SIGN;
}

static void find_active(Grad *s)
{
    for (uint32_t id = 1; id < (uint32_t)s->forward_count; id++) {
        const NodeInfo *info = info_of(s, (Node){id});
        const Param *p = info->op == OP_PARAM ? &s->g->params.data[info->param] : NULL;
        if (p) s->active[id] = s->wrt[info->param];
        if (p) s->varies[id] = !p->scalar && dtype_is_float(p->dtype);
        for (int i = 0; i < op_info[info->op].arity; i++) {
            const uint32_t operand = info->args[i].id;
            s->varies[id] |= s->varies[operand];
            s->active[id] |= s->active[operand] && is_smooth(info->op) && type_is_float(info->type);
        }
    }
}

void walk_back(Grad *s)
{
    find_active(s);
    factor_nodes(s);
    know_sums(s);
    know_additions(s);
    uint32_t param = (uint32_t)s->forward->params.count;
    for (int i = 0; i < s->forward->outputs.count; i++) {
        if (!s->of[i]) continue;
        const uint32_t at = s->forward->outputs.data[i].value.id;
        const Node seed = graph_param(s->g, param++);
        s->adjoint[at] = poly_add(s->a, s->adjoint[at], poly_term(s->a, term_node(s->a, seed)));
    }
    for (uint32_t id = (uint32_t)s->forward_count - 1; id > 0; id--) {
        if (s->active[id] && s->adjoint[id].count && info_of(s, (Node){id})->op != OP_PARAM)
            give_all(s, (Node){id});
        arena_poll(s->arena);
    }
}
