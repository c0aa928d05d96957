/* graph/algebra.c: terms, atoms and polynomials: graph/algebra.h; sums over axes are in
 * graph/algebra_sum.c. */
#include "graph/algebra.h"

#include <math.h>
#include <string.h>

Algebra *algebra_new(Arena *arena, Graph *g)
{
    Algebra *a = NEW(arena, Algebra);
    a->arena = arena;
    a->g = g;
    *list_push(arena, &a->atoms) = (AtomInfo){0};
    return a;
}

/* ---- atoms ---- */

uint32_t atom_of_node(Algebra *a, Node n)
{
    while (a->of_node.count <= (int)n.id) *list_push(a->arena, &a->of_node) = 0;
    if (a->of_node.data[n.id]) return a->of_node.data[n.id];
    const uint32_t atom = (uint32_t)a->atoms.count;
    *list_push(a->arena, &a->atoms) =
        (AtomInfo){.kind = ATOM_NODE, .axes = node(a->g, n)->axes, .node = n};
    return a->of_node.data[n.id] = atom;
}

/* Content as words: equal content gives equal words. */
typedef LIST(uint64_t) Key;

static void key_put(Algebra *a, Key *key, uint64_t word)
{
    *list_push(a->arena, key) = word;
}

static void key_term(Algebra *a, Key *key, const Term *x)
{
    uint64_t bits;
    memcpy(&bits, &x->coefficient, sizeof bits);
    key_put(a, key, bits);
    key_put(a, key, (uint64_t)x->guard_count << 32 | (uint32_t)x->factor_count);
    for (int i = 0; i < x->guard_count; i++)
        key_put(a, key, (uint64_t)x->guards[i].condition << 1 | x->guards[i].holds);
    for (int i = 0; i < x->factor_count; i++)
        key_put(a, key, (uint64_t)x->factors[i].atom << 32 | (uint32_t)x->factors[i].power);
}

/* The atom of this content; 0: there is none yet, and the next that is made has it. */
static uint32_t find_atom(Algebra *a, const Key *key)
{
    const size_t bytes = sizeof *key->data * (size_t)key->count;
    const int found = map_find(&a->shared, key->data, bytes);
    if (found >= 0) return (uint32_t)found;
    map_add(a->arena, &a->shared, key->data, bytes, a->atoms.count);
    return 0;
}

uint32_t atom_of_sum(Algebra *a, AxisSet reduced, bool is_mean, Term inner)
{
    Key key = {0};
    key_put(a, &key, (uint64_t)reduced << 2 | (uint64_t)is_mean << 1);
    key_term(a, &key, &inner);
    const uint32_t found = find_atom(a, &key);
    if (found) return found;
    *list_push(a->arena, &a->atoms) = (AtomInfo){.kind = ATOM_SUM,
                                                 .axes = term_axes(a, &inner) & ~reduced,
                                                 .reduced = reduced,
                                                 .is_mean = is_mean,
                                                 .inner = inner};
    return (uint32_t)a->atoms.count - 1;
}

uint32_t atom_of_poly(Algebra *a, Poly x, const char *name)
{
    Key key = {0};
    key_put(a, &key, (uint64_t)x.count << 1 | 1);
    for (int i = 0; i < x.count; i++) key_term(a, &key, &x.terms[i]);
    const uint32_t found = find_atom(a, &key);
    if (found) return found;
    *list_push(a->arena, &a->atoms) =
        (AtomInfo){.kind = ATOM_POLY, .axes = poly_axes(a, x), .poly = x, .name = name};
    return (uint32_t)a->atoms.count - 1;
}

/* ---- terms ---- */

Term term_number(double value)
{
    return (Term){.coefficient = value};
}

Term term_atom(Algebra *a, uint32_t atom, int power)
{
    Factor *factor = NEW(a->arena, Factor);
    *factor = (Factor){atom, power};
    return (Term){.coefficient = 1, .factors = factor, .factor_count = power != 0};
}

Term term_node(Algebra *a, Node n)
{
    return term_atom(a, atom_of_node(a, n), 1);
}

static void merge_factors(Algebra *a, Term *product, const Term *x, const Term *y)
{
    Factor *all = NEW_ARRAY(a->arena, Factor, x->factor_count + y->factor_count + 1);
    int count = 0;
    for (int i = 0, j = 0; i < x->factor_count || j < y->factor_count;) {
        const Factor *f = i < x->factor_count ? &x->factors[i] : NULL;
        const Factor *h = j < y->factor_count ? &y->factors[j] : NULL;
        Factor next = f && (!h || f->atom <= h->atom) ? *f : *h;
        if (f && h && f->atom == h->atom) next.power = f->power + h->power;
        i += f && f->atom == next.atom;
        j += h && h->atom == next.atom;
        if (next.power) all[count++] = next;
    }
    product->factors = all;
    product->factor_count = count;
}

static void merge_guards(Algebra *a, Term *product, const Term *x, const Term *y)
{
    Guard *all = NEW_ARRAY(a->arena, Guard, x->guard_count + y->guard_count + 1);
    int count = 0;
    for (int i = 0, j = 0; i < x->guard_count || j < y->guard_count;) {
        const Guard *f = i < x->guard_count ? &x->guards[i] : NULL;
        const Guard *h = j < y->guard_count ? &y->guards[j] : NULL;
        const Guard next = f && (!h || f->condition <= h->condition) ? *f : *h;
        if (f && h && f->condition == h->condition && f->holds != h->holds)
            product->coefficient = 0;
        i += f && f->condition == next.condition;
        j += h && h->condition == next.condition;
        all[count++] = next;
    }
    product->guards = all;
    product->guard_count = count;
}

Term term_times(Algebra *a, Term x, Term y)
{
    Term product = {.coefficient = x.coefficient * y.coefficient};
    merge_factors(a, &product, &x, &y);
    merge_guards(a, &product, &x, &y);
    return product;
}

Term term_power(Algebra *a, Term x, int power)
{
    Factor *all = NEW_ARRAY(a->arena, Factor, x.factor_count + 1);
    for (int i = 0; i < x.factor_count; i++)
        all[i] = (Factor){x.factors[i].atom, x.factors[i].power * power};
    x.coefficient = pow(x.coefficient, power);
    x.factors = all;
    return x;
}

Term term_scaled(Term x, double factor)
{
    x.coefficient *= factor;
    return x;
}

Term term_guarded(Algebra *a, Term x, Node condition, bool holds)
{
    for (; node(a->g, condition)->op == OP_NOT; condition = arg(a->g, condition, 0)) holds = !holds;
    Guard *guard = NEW(a->arena, Guard);
    *guard = (Guard){condition.id, holds};
    return term_times(a, x, (Term){.coefficient = 1, .guards = guard, .guard_count = 1});
}

AxisSet term_axes(const Algebra *a, const Term *x)
{
    AxisSet axes = 0;
    for (int i = 0; i < x->factor_count; i++) axes |= a->atoms.data[x->factors[i].atom].axes;
    for (int i = 0; i < x->guard_count; i++) axes |= a->g->nodes.data[x->guards[i].condition].axes;
    return axes;
}

static bool same_factors(const Term *x, const Term *y)
{
    if (x->factor_count != y->factor_count) return false;
    for (int i = 0; i < x->factor_count; i++)
        if (x->factors[i].atom != y->factors[i].atom || x->factors[i].power != y->factors[i].power)
            return false;
    return true;
}

bool term_alike(const Term *x, const Term *y)
{
    if (x->guard_count != y->guard_count || !same_factors(x, y)) return false;
    for (int i = 0; i < x->guard_count; i++)
        if (x->guards[i].condition != y->guards[i].condition ||
            x->guards[i].holds != y->guards[i].holds)
            return false;
    return true;
}

int term_power_of(const Term *x, uint32_t atom)
{
    for (int i = 0; i < x->factor_count; i++)
        if (x->factors[i].atom == atom) return x->factors[i].power;
    return 0;
}

bool is_zero_term(const Term *x)
{
    return x->coefficient == 0;
}

uint32_t single_atom(const Term *x)
{
    return x->guard_count == 0 && x->factor_count == 1 && x->factors[0].power == 1
               ? x->factors[0].atom
               : 0;
}

/* ---- what adds up ---- */

static uint64_t pair_of(uint32_t x, uint32_t y)
{
    return x < y ? (uint64_t)x << 32 | y : (uint64_t)y << 32 | x;
}

void know_addition(Algebra *a, Term x, Term y, Term value)
{
    const uint64_t pair = pair_of(single_atom(&x), single_atom(&y));
    if (!single_atom(&x) || !single_atom(&y) || x.coefficient != 1 || y.coefficient != 1) return;
    if (map_find(&a->additions, &pair, sizeof pair) >= 0) return;
    uint64_t *key = NEW(a->arena, uint64_t);
    *key = pair;
    map_add(a->arena, &a->additions, key, sizeof *key, a->known_terms.count);
    *list_push(a->arena, &a->known_terms) = value;
}

/* The atom of which x has one power more than y, where all their other factors are the same; 0. */
static uint32_t further_atom(const Term *x, const Term *y)
{
    uint32_t further = 0;
    for (int i = 0; i < x->factor_count; i++) {
        const int more = x->factors[i].power - term_power_of(y, x->factors[i].atom);
        if (more <= 0) continue;
        if (more > 1 || further) return 0;
        further = x->factors[i].atom;
    }
    for (int i = 0; i < x->factor_count; i++) {
        const int more = x->factors[i].power - term_power_of(y, x->factors[i].atom);
        if (more < -1) return 0;
    }
    return further;
}

/* m a + m b where a + b is known: *x becomes that times m. */
static bool add_known(Algebra *a, const Term *other, Term *x)
{
    if (!a->additions.count || other->coefficient != x->coefficient) return false;
    const uint32_t one = further_atom(other, x), two = further_atom(x, other);
    const uint64_t pair = pair_of(one, two);
    const int known = one && two ? map_find(&a->additions, &pair, sizeof pair) : -1;
    if (known < 0) return false;
    const Term rest = term_times(a, *x, term_atom(a, two, -1));
    const Term same = term_times(a, *other, term_atom(a, one, -1));
    if (!term_alike(&rest, &same)) return false;
    *x = term_times(a, rest, a->known_terms.data[known]);
    return true;
}

/* ---- polynomials ---- */

Poly poly_term(Algebra *a, Term x)
{
    if (is_zero_term(&x)) return (Poly){0};
    Term *only = NEW(a->arena, Term);
    *only = x;
    return (Poly){only, 1};
}

/* 0 where two coefficients cancel but for rounding. */
static double add_coefficients(double x, double y)
{
    const double sum = x + y, rounding = 1e-14;
    return fabs(sum) <= rounding * fmax(fabs(x), fabs(y)) ? 0 : sum;
}

/* The guard by which x and y differ, where they are otherwise the same: x where it holds and where
 * it does not is x. -1: they differ otherwise. */
static int opposite_guard(const Term *x, const Term *y)
{
    int differs = -1;
    if (x->guard_count != y->guard_count || x->coefficient != y->coefficient || !same_factors(x, y))
        return -1;
    for (int i = 0; i < x->guard_count; i++) {
        if (x->guards[i].condition != y->guards[i].condition) return -1;
        if (x->guards[i].holds == y->guards[i].holds) continue;
        if (differs >= 0) return -1;
        differs = i;
    }
    return differs;
}

/* Where y is x, or the negative of it, under one guard more, the number of that guard in y; -1. */
static int further_guard(const Term *x, const Term *y)
{
    int further = -1;
    if (y->guard_count != x->guard_count + 1 || !same_factors(x, y)) return -1;
    for (int i = 0, k = 0; i < y->guard_count; i++) {
        const bool same = k < x->guard_count && x->guards[k].condition == y->guards[i].condition &&
                          x->guards[k].holds == y->guards[i].holds;
        k += same;
        if (same) continue;
        if (further >= 0) return -1;
        further = i;
    }
    return further;
}

static Term without_guard(Algebra *a, Term x, int at)
{
    Guard *left = NEW_ARRAY(a->arena, Guard, x.guard_count);
    for (int i = 0, count = 0; i < x.guard_count; i++)
        if (i != at) left[count++] = x.guards[i];
    x.guards = left;
    x.guard_count--;
    return x;
}

typedef LIST(Term) Terms;

static void drop_term(Terms *sum, int at)
{
    for (int i = at; i + 1 < sum->count; i++) sum->data[i] = sum->data[i + 1];
    sum->count--;
}

/* m less m where c holds is m where c does not hold. *x becomes that, if other + x is such. */
static bool subtract_guarded(Algebra *a, const Term *other, Term *x)
{
    if (other->coefficient != -x->coefficient) return false;
    const bool x_has = further_guard(other, x) >= 0;
    const int guard = x_has ? further_guard(other, x) : further_guard(x, other);
    if (guard < 0) return false;
    const Term *whole = x_has ? other : x;
    Term rest = x_has ? *x : *other;
    Guard *guards = NEW_ARRAY(a->arena, Guard, rest.guard_count);
    for (int i = 0; i < rest.guard_count; i++) guards[i] = rest.guards[i];
    guards[guard].holds = !guards[guard].holds;
    rest.guards = guards;
    rest.coefficient = whole->coefficient;
    *x = rest;
    return true;
}

static void add_term(Algebra *a, Terms *sum, Term x)
{
    for (int i = 0; i < sum->count; i++) {
        Term *other = &sum->data[i];
        const int guard = opposite_guard(other, &x);
        if (term_alike(other, &x)) {
            other->coefficient = add_coefficients(other->coefficient, x.coefficient);
            if (is_zero_term(other)) drop_term(sum, i);
            return;
        }
        if (guard < 0 && !subtract_guarded(a, other, &x) && !add_known(a, other, &x)) continue;
        drop_term(sum, i);
        if (guard >= 0) x = without_guard(a, x, guard);
        i = -1;
    }
    *list_push(a->arena, sum) = x;
}

Poly poly_add(Algebra *a, Poly x, Poly y)
{
    if (!x.count) return y;
    if (!y.count) return x;
    Terms sum = {0};
    for (int i = 0; i < x.count; i++) *list_push(a->arena, &sum) = x.terms[i];
    for (int i = 0; i < y.count; i++) add_term(a, &sum, y.terms[i]);
    return (Poly){sum.data, sum.count};
}

Poly poly_times(Algebra *a, Poly x, Term y)
{
    Terms product = {0};
    for (int i = 0; i < x.count; i++) {
        const Term term = term_times(a, x.terms[i], y);
        if (!is_zero_term(&term)) add_term(a, &product, term);
    }
    return (Poly){product.data, product.count};
}

Poly poly_guarded(Algebra *a, Poly x, Node condition, bool holds)
{
    return poly_times(a, x, term_guarded(a, term_number(1), condition, holds));
}

AxisSet poly_axes(const Algebra *a, Poly x)
{
    AxisSet axes = 0;
    for (int i = 0; i < x.count; i++) axes |= term_axes(a, &x.terms[i]);
    return axes;
}
