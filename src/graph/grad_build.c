/* graph/grad_build.c: gradients, which are polynomials, as nodes: common factors in front, then the
 * products that the forward pass has, then what is left, the larger operands first. */
#include "graph/grad_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const Node none = {0};

/* A value, or the negative of it. */
typedef struct {
    Node node;
    bool negative;
} Signed;

static Signed build_poly(Build *b, Poly x, const Term *guards);
static Node build_factors(Build *b, Term x, const Term *guards, int below);

static Type type_of(const Build *b, Node n)
{
    return node(b->s->g, n)->type;
}

/* ---- operators, with the type rules of the language ---- */

static Node widened(Build *b, Type type, Node n)
{
    const NodeInfo info = *node(b->s->g, n);
    if (info.op == OP_CONST && type_is_float(info.type))
        return graph_number(b->s->g, type, info.number);
    return graph_convert(b->s->g, type, n);
}

static Node combine(Build *b, Op op, Node x, Node y)
{
    const bool f64 = type_of(b, x) == TYPE_F64 || type_of(b, y) == TYPE_F64;
    const Type type = f64 ? TYPE_F64 : TYPE_F32;
    return graph_op(b->s->g, op, widened(b, type, x), widened(b, type, y), none);
}

static Node guarded(Build *b, Node x, const Term *guards)
{
    Graph *g = b->s->g;
    const Type type = type_is_float(type_of(b, x)) ? type_of(b, x) : TYPE_F32;
    const Node zero = graph_number(g, type, 0);
    x = widened(b, type, x);
    for (int holds = 1; holds >= 0; holds--) {
        Node all = none;
        for (int i = 0; i < guards->guard_count; i++) {
            const Node c = {guards->guards[i].condition};
            if (guards->guards[i].holds != holds) continue;
            all = all.id ? graph_op(g, holds ? OP_AND : OP_OR, all, c, none) : c;
        }
        if (all.id)
            x = holds ? graph_op(g, OP_WHERE, all, x, zero) : graph_op(g, OP_WHERE, all, zero, x);
    }
    return x;
}

static Node hide(Build *b, Node product, const Term *x)
{
    const Term needless = needless_guards(b, x, product);
    Term needed = *x;
    for (int i = 0; i < needless.guard_count; i++)
        needed = drop_guard(b->s->a, needed, needless.guards[i].condition);
    return guarded(b, product, &needed);
}

static Node choose_between(Build *b, Node condition, Node x, Node y)
{
    const bool f64 = type_of(b, x) == TYPE_F64 || type_of(b, y) == TYPE_F64;
    const Type type = f64 ? TYPE_F64 : TYPE_F32;
    return graph_op(b->s->g, OP_WHERE, condition, widened(b, type, x), widened(b, type, y));
}

/* ---- atoms ---- */

static Node negated(Build *b, Signed x)
{
    const NodeInfo info = *node(b->s->g, x.node);
    if (!x.negative) return x.node;
    if (info.op == OP_CONST && type_is_float(info.type))
        return graph_number(b->s->g, info.type, -info.number);
    /* -a / b rather than -(a / b). */
    const bool is_product = info.op == OP_MUL || info.op == OP_DIV;
    if (is_product && (int)x.node.id >= b->s->forward_count && !info.name) {
        const Node first = negated(b, (Signed){info.args[0], true});
        return graph_op(b->s->g, info.op, first, info.args[1], none);
    }
    return graph_op(b->s->g, OP_NEG, x.node, none, none);
}

static Node build_sum(Build *b, const AtomInfo *sum)
{
    Node x = build_factors(b, sum->inner, &sum->inner, INT_MAX);
    if (sum->inner.guard_count) x = hide(b, x, &sum->inner);
    const Type type = type_is_float(type_of(b, x)) ? type_of(b, x) : TYPE_F32;
    return graph_reduce(b->s->g, sum->is_mean ? OP_MEAN : OP_SUM, sum->reduced,
                        widened(b, type, x));
}

static Node build_atom(Build *b, uint32_t atom)
{
    const AtomInfo info = *atom_info(b->s->a, atom);
    if (info.node.id) return info.node;
    Node built;
    if (info.kind == ATOM_SUM) {
        built = build_sum(b, &info);
    } else {
        built = negated(b, build_poly(b, info.poly, NULL));
        if (info.name) graph_name(b->s->g, built, info.name, (Span){0});
    }
    return atom_info(b->s->a, atom)->node = built;
}

/* ---- products ---- */

typedef struct {
    Node node;
    int power;
} Item;

typedef LIST(Item) Items;

/* Scalars first, then what has the most axes, gradients before values, sums last. */
static bool goes_before(const Build *b, const Item *x, const Item *y)
{
    const NodeInfo *p = node(b->s->g, x->node), *q = node(b->s->g, y->node);
    const int first = axes_count(p->axes), second = axes_count(q->axes);
    const bool p_new = (int)x->node.id >= b->s->forward_count;
    const bool q_new = (int)y->node.id >= b->s->forward_count;
    const bool p_sum = p_new && (p->op == OP_ADD || p->op == OP_SUB || p->op == OP_WHERE);
    const bool q_sum = q_new && (q->op == OP_ADD || q->op == OP_SUB || q->op == OP_WHERE);
    if (!first != !second) return !first;
    if (first != second) return first > second;
    if (p_sum != q_sum) return !p_sum;
    if (p_new != q_new) return p_new;
    return x->node.id < y->node.id;
}

static void add_item(Build *b, Items *items, Node n, int power)
{
    int at = items->count;
    const Item item = {n, power};
    *list_push(b->s->arena, items) = item;
    for (; at > 0 && goes_before(b, &item, &items->data[at - 1]); at--)
        items->data[at] = items->data[at - 1];
    items->data[at] = item;
}

static Node raise(Build *b, Node n, int power)
{
    if (power == 1) return n;
    if (power == 2) return combine(b, OP_MUL, n, n);
    return combine(b, OP_POW, n, graph_number(b->s->g, TYPE_F32, power));
}

/* The product of the items with positive (or negative) powers, on from `product`. */
static Node multiply_items(Build *b, const Items *items, int sign, Node product)
{
    for (int i = 0; i < items->count; i++) {
        const int power = items->data[i].power * sign;
        if (power <= 0) continue;
        /* a * b * b needs no parentheses, a * (b * b) would. */
        const bool square = power == 2 && product.id;
        const Node factor = square ? items->data[i].node : raise(b, items->data[i].node, power);
        product = product.id ? combine(b, OP_MUL, product, factor) : factor;
        if (square) product = combine(b, OP_MUL, product, factor);
    }
    return product;
}

/* A third is a division by 3. */
static double find_divisor_number(double coefficient)
{
    const double whole = round(1 / coefficient);
    const bool is_inverse = whole > 2 && whole < 1e6 && fabs(whole * coefficient - 1) < 1e-14;
    return is_inverse && fmod(coefficient * 1e4, 1) != 0 ? whole : 1;
}

static Node multiply_out(Build *b, double coefficient, const Items *items)
{
    Graph *g = b->s->g;
    const double divisor = find_divisor_number(coefficient);
    if (divisor != 1) coefficient = 1;
    const Node number = graph_number(g, TYPE_F32, coefficient);
    Node above = multiply_items(b, items, 1, coefficient == 1 ? none : number);
    const Node below =
        multiply_items(b, items, -1, divisor == 1 ? none : graph_number(g, TYPE_F32, divisor));
    if (!above.id) above = number;
    return below.id ? combine(b, OP_DIV, above, below) : above;
}

/* A product of a gradient is built of smaller ones. */
static Node build_product(Build *b, int index)
{
    const Product product = b->products.data[index];
    if (product.node.id) return product.node;
    const Node built = build_factors(b, product.term, NULL, product.term.factor_count);
    Node of = product.of;
    while (op_info[node(b->s->g, of)->op].class == CLASS_CAST && !node(b->s->g, of)->name)
        of = arg(b->s->g, of, 0);
    const char *name = node(b->s->g, of)->name;
    if (name && (int)built.id >= b->s->forward_count)
        graph_name(b->s->g, built, arena_format(b->s->arena, "d%s", name), (Span){0});
    return b->products.data[index].node = built;
}

/* The size of a term, without its sign and guards. */
static Node build_factors(Build *b, Term x, const Term *guards, int below)
{
    Algebra *a = b->s->a;
    Items items = {0};
    int product;
    x = with_means(a, x);
    while (below == INT_MAX && complete_product(b, &x, guards)) {
    }
    while ((product = find_divisor(b, &x, guards, below)) != NO_PRODUCT) {
        const Node built = build_product(b, product);
        Term divisor = b->products.data[product].term;
        divisor.guard_count = 0;
        x = term_times(a, x, term_power(a, divisor, -1));
        add_item(b, &items, built, 1);
    }
    for (int i = 0; i < x.factor_count; i++)
        add_item(b, &items, build_atom(b, x.factors[i].atom), x.factors[i].power);
    return multiply_out(b, fabs(x.coefficient), &items);
}

static Term both_guards(Build *b, const Term *x, const Term *outer)
{
    Term all = *x;
    all.factor_count = 0;
    all.coefficient = 1;
    if (!outer) return all;
    Term more = *outer;
    more.factor_count = 0;
    more.coefficient = 1;
    return term_times(b->s->a, all, more);
}

static Signed build_term(Build *b, const Term *x, const Term *outer)
{
    const Term guards = both_guards(b, x, outer);
    Node product = build_factors(b, *x, &guards, INT_MAX);
    if (x->guard_count) product = hide(b, product, x);
    return (Signed){product, x->coefficient < 0};
}

/* ---- sums ---- */

static Node add_terms(Build *b, const Signed *terms, int count, bool flip)
{
    Node sum = none;
    for (int negative = 0; negative <= 1; negative++)
        for (int size = MAX_AXES; size >= 0; size--)
            for (int i = 0; i < count; i++) {
                const Node n = terms[i].node;
                if (axes_count(node(b->s->g, n)->axes) != size) continue;
                if ((terms[i].negative != flip) != negative) continue;
                sum = sum.id ? combine(b, negative ? OP_SUB : OP_ADD, sum, n) : n;
            }
    return sum;
}

/* Terms of which some count where a condition holds and others where it does not, as one choice
 * between two sums. */
static bool build_choice(Build *b, Poly x, const Term *outer, Signed *built)
{
    Algebra *a = b->s->a;
    Guard guard;
    if (!find_choice(x, &guard)) return false;
    Term *parts[3];
    int counts[3] = {0};
    for (int k = 0; k < 3; k++) parts[k] = NEW_ARRAY(b->s->arena, Term, x.count + 1);
    for (int i = 0; i < x.count; i++) {
        const int side = guarded_side(&x.terms[i], guard.condition);
        Term *term = &parts[side][counts[side]++];
        *term = side == 2 ? x.terms[i] : drop_guard(a, x.terms[i], guard.condition);
    }
    Node sides[2];
    for (int k = 0; k < 2; k++) {
        const Term here = term_guarded(a, term_number(1), (Node){guard.condition}, k == 1);
        const Term guards = both_guards(b, &here, outer);
        sides[k] = negated(b, build_poly(b, (Poly){parts[k], counts[k]}, &guards));
    }
    const Node chosen = choose_between(b, (Node){guard.condition}, sides[1], sides[0]);
    if (!counts[2]) {
        *built = (Signed){chosen, false};
        return true;
    }
    parts[2][counts[2]++] = term_node(a, chosen);
    *built = build_poly(b, (Poly){parts[2], counts[2]}, outer);
    return true;
}

/* Terms without anything in common. */
static Signed build_sum_of_terms(Build *b, Poly x, const Term *guards)
{
    Signed *terms = NEW_ARRAY(b->s->arena, Signed, x.count);
    bool all_negative = true;
    for (int i = 0; i < x.count; i++) {
        terms[i] = build_term(b, &x.terms[i], guards);
        all_negative &= terms[i].negative;
    }
    return (Signed){add_terms(b, terms, x.count, all_negative), all_negative};
}

static Signed build_shared(Build *b, Poly x, const bool *chosen, const Term *guards)
{
    Algebra *a = b->s->a;
    Term *shared = NEW_ARRAY(b->s->arena, Term, x.count);
    Term *rest = NEW_ARRAY(b->s->arena, Term, x.count + 1);
    int shared_count = 0, rest_count = 0;
    for (int i = 0; i < x.count; i++)
        *(chosen[i] ? &shared[shared_count++] : &rest[rest_count++]) = x.terms[i];
    const Signed part = build_poly(b, (Poly){shared, shared_count}, guards);
    const Term whole = term_scaled(term_node(a, part.node), part.negative ? -1 : 1);
    /* The shared part comes first, in its place among the terms. */
    for (int i = rest_count; i > 0; i--) rest[i] = rest[i - 1];
    rest[0] = whole;
    return build_poly(b, (Poly){rest, rest_count + 1}, guards);
}

static Signed build_common(Build *b, Poly x, Term common, const Term *outer)
{
    Algebra *a = b->s->a;
    Term *rest = NEW_ARRAY(b->s->arena, Term, x.count);
    Term divisor = common;
    divisor.guard_count = 0;
    const Term guards = both_guards(b, &common, outer);
    for (int i = 0; i < x.count; i++) {
        rest[i] = term_times(a, x.terms[i], term_power(a, divisor, -1));
        rest[i].coefficient = x.terms[i].coefficient / common.coefficient;
        for (int k = 0; k < common.guard_count; k++)
            rest[i] = drop_guard(a, rest[i], common.guards[k].condition);
    }
    const Signed inside = build_poly(b, (Poly){rest, x.count}, &guards);
    Term whole = term_times(a, common, term_node(a, inside.node));
    if (inside.negative) whole.coefficient = -whole.coefficient;
    return build_term(b, &whole, outer);
}

static bool is_one(const Term *x)
{
    return x->coefficient == 1 && !x->factor_count && !x->guard_count;
}

static Signed build_poly(Build *b, Poly x, const Term *guards)
{
    Algebra *a = b->s->a;
    Term *terms = NEW_ARRAY(b->s->arena, Term, x.count + 1);
    bool *chosen = NEW_ARRAY(b->s->arena, bool, x.count + 1);
    if (!x.count) return (Signed){graph_number(b->s->g, TYPE_F32, 0), false};
    for (int i = 0; i < x.count; i++)
        terms[i] = shelter_divisors(a, with_means(a, x.terms[i]), guards);
    x.terms = terms;
    if (x.count == 1) return build_term(b, &terms[0], guards);
    const Term common = common_factors(a, x);
    if (!is_one(&common)) return build_common(b, x, common, guards);
    Signed built;
    if (build_choice(b, x, guards, &built)) return built;
    if (x.count > 2 && find_sharing(a, x, chosen)) return build_shared(b, x, chosen, guards);
    return build_sum_of_terms(b, x, guards);
}

/* ---- the whole ---- */

/* Repeats a value along the axes that it lacks. */
static Node repeat(Build *b, Node x, AxisSet axes)
{
    Graph *g = b->s->g;
    Node everywhere = none;
    const AxisSet missing = axes & ~node(g, x)->axes;
    for (uint32_t i = 0; i < MAX_AXES; i++) {
        if (!(missing >> i & 1)) continue;
        const Node inside =
            graph_op(g, OP_GE, graph_index(g, i), graph_integer(g, TYPE_I64, 0), none);
        everywhere = everywhere.id ? graph_op(g, OP_AND, everywhere, inside, none) : inside;
    }
    return everywhere.id ? graph_op(g, OP_WHERE, everywhere, x, x) : x;
}

Node *build_gradients(Grad *s, const bool *saved)
{
    const int count = s->forward->params.count;
    Build b = {.s = s, .saved = saved};
    Poly *roots = NEW_ARRAY(s->arena, Poly, count + 1);
    Node *gradients = NEW_ARRAY(s->arena, Node, count + 1);
    for (int i = 0; i < count; i++)
        if (s->wrt[i]) roots[i] = s->adjoint[graph_param(s->g, (uint32_t)i).id];
    for (int i = 1; i < s->a->atoms.count; i++)
        if (s->a->atoms.data[i].kind != ATOM_NODE) s->a->atoms.data[i].node = none;
    const int atoms = s->a->atoms.count;
    const bool *live = collect_products(&b, roots, count);
    /* In order, so that nothing recurses deeply. */
    for (int i = 1; i < atoms; i++)
        if (live[i]) build_atom(&b, (uint32_t)i);
    for (int i = 0; i < count; i++) {
        if (!s->wrt[i]) continue;
        const Node whole = negated(&b, build_poly(&b, roots[i], NULL));
        gradients[i] = repeat(&b, whole, s->forward->params.data[i].axes);
    }
    return gradients;
}
