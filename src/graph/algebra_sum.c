/* graph/algebra_sum.c: sums over axes. A sum is linear: what does not vary along the axes leaves
 * it, and sums that the forward graph has are found by their terms. */
#include "graph/algebra.h"

#include <math.h>
#include <stdlib.h>

/* A term as what varies along some axes times what does not. */
typedef struct {
    Term outer, inner;
    AxisSet reduced; /* the axes along which the inner part varies */
} Split;

static Split split_term(Algebra *a, const Term *x, AxisSet axes)
{
    Factor *factors = NEW_ARRAY(a->arena, Factor, 2 * x->factor_count + 1);
    Guard *guards = NEW_ARRAY(a->arena, Guard, 2 * x->guard_count + 1);
    Split s = {.outer = {x->coefficient, guards, factors, 0, 0},
               .inner = {1, guards + x->guard_count, factors + x->factor_count, 0, 0}};
    for (int i = 0; i < x->factor_count; i++) {
        Term *part = a->atoms.data[x->factors[i].atom].axes & axes ? &s.inner : &s.outer;
        factors[(part == &s.inner ? x->factor_count : 0) + part->factor_count++] = x->factors[i];
    }
    for (int i = 0; i < x->guard_count; i++) {
        const AxisSet has = a->g->nodes.data[x->guards[i].condition].axes;
        Term *part = has & axes ? &s.inner : &s.outer;
        guards[(part == &s.inner ? x->guard_count : 0) + part->guard_count++] = x->guards[i];
    }
    s.reduced = term_axes(a, &s.inner) & axes;
    return s;
}

static Term size_of(Algebra *a, AxisSet axes)
{
    Term product = term_number(1);
    for (uint32_t i = 0; i < MAX_AXES; i++)
        if (axes >> i & 1) product = term_times(a, product, term_node(a, graph_size(a->g, i)));
    return product;
}

/* ---- known sums ---- */

/* The axes of which a node is the size; 0: of none. */
static AxisSet sized_axes(const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    if (info->op == OP_SIZE) return (AxisSet)1 << info->axis;
    if (info->op == OP_CONVERT) return sized_axes(g, info->args[0], depth);
    if (info->op != OP_MUL || depth == 0) return 0;
    const AxisSet x = sized_axes(g, info->args[0], depth - 1);
    const AxisSet y = sized_axes(g, info->args[1], depth - 1);
    return x && y && !(x & y) ? x | y : 0;
}

static bool is_mean_of(const Graph *g, Node n, Node x, AxisSet axes)
{
    enum { DEPTH = 6 };
    const NodeInfo *info = node(g, n);
    if (info->op == OP_MEAN) return info->reduced == axes && info->args[0].id == x.id;
    const NodeInfo *sum = node(g, info->args[0]);
    return info->op == OP_DIV && sum->op == OP_SUM && sum->reduced == axes &&
           sum->args[0].id == x.id && sized_axes(g, info->args[1], DEPTH) == axes;
}

/* Whether an atom is e - mean[axes](e), of which the sum over the axes is 0. */
static bool is_centred(const Algebra *a, uint32_t atom, AxisSet axes)
{
    const AtomInfo *info = &a->atoms.data[atom];
    if (info->kind != ATOM_NODE || node(a->g, info->node)->op != OP_SUB) return false;
    return is_mean_of(a->g, arg(a->g, info->node, 1), arg(a->g, info->node, 0), axes);
}

void know_sum(Algebra *a, AxisSet reduced, Term terms, Term value)
{
    const Split s = split_term(a, &terms, reduced);
    /* What left the sum might be 0 and cannot be divided by. */
    if (s.reduced != reduced || s.outer.coefficient == 0 || s.outer.factor_count) return;
    const Term left = term_times(a, value, term_power(a, s.outer, -1));
    const uint32_t sum = atom_of_sum(a, reduced, false, s.inner);
    if (map_find(&a->known, &sum, sizeof sum) >= 0) return;
    uint32_t *key = NEW(a->arena, uint32_t);
    *key = sum;
    map_add(a->arena, &a->known, key, sizeof *key, a->known_terms.count);
    *list_push(a->arena, &a->known_terms) = left;
}

/* The sum over `reduced` of a term that varies along all of it. *found: it has no sum in it that
 * the forward graph does not have. */
static Term sum_inner(Algebra *a, AxisSet reduced, Term inner, bool *found)
{
    const uint32_t only = single_atom(&inner);
    *found = true;
    if (only && is_centred(a, only, reduced)) return term_number(0);
    if (only && atom_info(a, only)->kind == ATOM_SUM && !atom_info(a, only)->is_mean) {
        const AtomInfo sum = *atom_info(a, only);
        return sum_inner(a, reduced | sum.reduced, sum.inner, found);
    }
    const uint32_t sum = atom_of_sum(a, reduced, false, inner);
    const int known = map_find(&a->known, &sum, sizeof sum);
    if (known >= 0) return a->known_terms.data[known];
    *found = false;
    return term_atom(a, sum, 1);
}

/* ---- sums of polynomials ---- */

/* The coefficient that all terms have; -1 where all are negative. */
static double common_coefficient(Poly x)
{
    double common = x.terms[0].coefficient;
    for (int i = 1; i < x.count; i++) {
        const double own = x.terms[i].coefficient;
        if (own != common) common = own < 0 && common < 0 ? -1 : 1;
    }
    return common;
}

static bool same_outer(const Split *x, const Split *y)
{
    return x->reduced == y->reduced && term_alike(&x->outer, &y->outer);
}

/* The sum of all splits with the same outer part as splits[first], which are then taken. Several
 * are added up first, for a sum of their sums would cost more than the sum of the whole. */
static Poly sum_group(Algebra *a, Split *splits, bool *taken, int first, int count)
{
    Poly whole = {0}, known = {0};
    Term outer = splits[first].outer;
    const AxisSet reduced = splits[first].reduced;
    outer.coefficient = 1;
    for (int i = first; i < count; i++) {
        if (taken[i] || !same_outer(&splits[first], &splits[i])) continue;
        bool found;
        Term inner = splits[i].inner;
        const Term sum = sum_inner(a, reduced, inner, &found);
        taken[i] = true;
        inner.coefficient = splits[i].outer.coefficient;
        if (found)
            known = poly_add(a, known, poly_term(a, term_scaled(sum, inner.coefficient)));
        else
            whole = poly_add(a, whole, poly_term(a, inner));
    }
    if (whole.count == 1) {
        bool found;
        Term inner = whole.terms[0];
        const double coefficient = inner.coefficient;
        inner.coefficient = 1;
        const Term sum = sum_inner(a, reduced, inner, &found);
        known = poly_add(a, known, poly_term(a, term_scaled(sum, coefficient)));
    } else if (whole.count) {
        const double unit = common_coefficient(whole);
        whole = poly_times(a, whole, term_number(1 / unit));
        const Term inner = term_atom(a, atom_of_poly(a, whole, NULL), 1);
        const uint32_t sum = atom_of_sum(a, reduced, false, inner);
        known = poly_add(a, known, poly_term(a, term_scaled(term_atom(a, sum, 1), unit)));
    }
    return poly_times(a, known, outer);
}

/* What all terms have in common that does not vary along the axes. */
static Term find_outer(Algebra *a, Poly x, AxisSet axes)
{
    Term common = split_term(a, &x.terms[0], axes).outer;
    Factor *factors = NEW_ARRAY(a->arena, Factor, common.factor_count + 1);
    int count = 0;
    for (int i = 0; i < common.factor_count; i++) {
        Factor f = common.factors[i];
        for (int k = 1; k < x.count; k++) {
            const int power = term_power_of(&x.terms[k], f.atom);
            if ((power > 0) != (f.power > 0) || power == 0) f.power = 0;
            if (abs(power) < abs(f.power)) f.power = power;
        }
        if (f.power) factors[count++] = f;
    }
    return (Term){.coefficient = 1, .factors = factors, .factor_count = count};
}

static Poly sum_whole(Algebra *a, Poly x, AxisSet axes)
{
    Term outer = find_outer(a, x, axes);
    x = poly_times(a, x, term_power(a, outer, -1));
    const double unit = common_coefficient(x);
    x = poly_times(a, x, term_number(1 / unit));
    const Term inner = term_atom(a, atom_of_poly(a, x, NULL), 1);
    const AxisSet reduced = term_axes(a, &inner) & axes;
    outer = term_times(a, term_scaled(outer, unit), size_of(a, axes & ~reduced));
    return poly_term(a,
                     term_times(a, outer, term_atom(a, atom_of_sum(a, reduced, false, inner), 1)));
}

/* Sums that are new with a polynomial. */
static int count_new_sums(const Algebra *a, Poly x, int first)
{
    int count = 0;
    for (int i = 0; i < x.count; i++)
        for (int k = 0; k < x.terms[i].factor_count; k++) {
            const uint32_t atom = x.terms[i].factors[k].atom;
            count += (int)atom >= first && a->atoms.data[atom].kind == ATOM_SUM;
        }
    return count;
}

static Poly sum_by_terms(Algebra *a, Poly x, AxisSet axes)
{
    Split *splits = NEW_ARRAY(a->arena, Split, x.count);
    bool *taken = NEW_ARRAY(a->arena, bool, x.count);
    Poly sum = {0};
    for (int i = 0; i < x.count; i++) {
        splits[i] = split_term(a, &x.terms[i], axes);
        splits[i].outer = term_times(a, splits[i].outer, size_of(a, axes & ~splits[i].reduced));
        if (splits[i].reduced) continue;
        taken[i] = true;
        sum = poly_add(a, sum, poly_term(a, splits[i].outer));
    }
    for (int i = 0; i < x.count; i++)
        if (!taken[i]) sum = poly_add(a, sum, sum_group(a, splits, taken, i, x.count));
    return sum;
}

/* Several sums that nothing else needs cost more than the sum of the whole. */
Poly poly_sum(Algebra *a, Poly x, AxisSet axes)
{
    if (!axes || !x.count) return x;
    const int first = a->atoms.count;
    const Poly sum = sum_by_terms(a, x, axes);
    return count_new_sums(a, sum, first) > 1 ? sum_whole(a, x, axes) : sum;
}
