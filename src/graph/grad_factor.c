/* graph/grad_factor.c: which products a gradient is made of. Products that the forward pass has are
 * put back, factors go into a sum where they complete one there, common factors are taken out. */
#include "graph/grad_internal.h"

#include <math.h>
#include <stdlib.h>

/* How many products with the same last factor are looked at. */
enum { MOST_PRODUCTS = 32 };

static int degree(const Term *x)
{
    int sum = 0;
    for (int i = 0; i < x->factor_count; i++) sum += abs(x->factors[i].power);
    return sum;
}

static bool contains(int power, int part)
{
    return part > 0 ? power >= part : power <= part;
}

/* ---- the products there are ---- */

static void add_product(Build *b, Product product)
{
    const Term *x = &product.term;
    if (!x->factor_count || x->guard_count || x->coefficient <= 0) return;
    const uint32_t last = x->factors[x->factor_count - 1].atom;
    while (b->by_atom.count <= (int)last) *list_push(b->s->arena, &b->by_atom) = NO_PRODUCT;
    product.next = b->by_atom.data[last];
    b->by_atom.data[last] = b->products.count;
    *list_push(b->s->arena, &b->products) = product;
}

/* A value that is 0 where a condition does not hold (or holds) is its other operand elsewhere. */
static void add_saved_choice(Build *b, Node n)
{
    const Grad *s = b->s;
    const NodeInfo *info = node(s->g, n);
    for (int side = 1; side <= 2; side++) {
        const NodeInfo *other = node(s->g, info->args[3 - side]);
        if (other->op != OP_CONST || !type_is_float(other->type) || other->number != 0) continue;
        const Term where = term_guarded(s->a, term_number(1), info->args[0], side == 1);
        add_product(b, (Product){.node = n,
                                 .term = s->factored[info->args[side].id],
                                 .when = where.guards[0],
                                 .is_saved = true});
    }
}

static void add_saved(Build *b)
{
    const Grad *s = b->s;
    for (int i = 0; i < s->forward->outputs.count; i++) {
        const Node n = s->forward->outputs.data[i].value;
        if (!b->saved[i]) continue;
        if (node(s->g, n)->op == OP_WHERE)
            add_saved_choice(b, n);
        else if (degree(&s->factored[n.id]) > 1)
            add_product(b, (Product){.node = n, .term = s->factored[n.id], .is_saved = true});
    }
}

static void add_all(Build *b)
{
    const Grad *s = b->s;
    for (uint32_t id = 1; id < (uint32_t)s->forward_count; id++) {
        const Op op = node(s->g, (Node){id})->op;
        const bool is_product = op == OP_MUL || op == OP_DIV;
        if (is_product && degree(&s->factored[id]) > 1)
            add_product(b, (Product){.node = {id}, .term = s->factored[id]});
        if (s->adjoint[id].count == 1 && degree(&s->adjoint[id].terms[0]) > 1)
            add_product(b, (Product){.of = {id}, .term = s->adjoint[id].terms[0]});
    }
    add_saved(b);
}

static bool guard_holds(const Term *x, Guard guard)
{
    for (int i = 0; x && i < x->guard_count; i++)
        if (x->guards[i].condition == guard.condition) return x->guards[i].holds == guard.holds;
    return false;
}

static bool divides(const Product *p, const Term *x, const Term *guards)
{
    if (p->term.coefficient != 1 && p->term.coefficient != fabs(x->coefficient)) return false;
    for (int i = 0; i < p->term.factor_count; i++) {
        const Factor *f = &p->term.factors[i];
        if (!contains(term_power_of(x, f->atom), f->power)) return false;
    }
    return !p->when.condition || guard_holds(x, p->when) || guard_holds(guards, p->when);
}

static int first_product(const Build *b, uint32_t atom)
{
    return atom < (uint32_t)b->by_atom.count ? b->by_atom.data[atom] : NO_PRODUCT;
}

static void count_term(Build *b, const Term *x)
{
    for (int i = 0; i < x->factor_count; i++) {
        int left = MOST_PRODUCTS;
        for (int p = first_product(b, x->factors[i].atom); p >= 0 && left; left--) {
            Product *product = &b->products.data[p];
            product->uses += divides(product, x, NULL);
            p = product->next;
        }
    }
}

static void mark_atoms(const Term *x, bool *live)
{
    for (int i = 0; i < x->factor_count; i++) live[x->factors[i].atom] = true;
}

/* A product that the forward pass needs anyway, for an operation that is an atom, is used there. */
static void count_operands(Build *b, const bool *live)
{
    const Grad *s = b->s;
    bool *needed = NEW_ARRAY(s->arena, bool, s->forward_count);
    for (int i = 1; i < s->a->atoms.count; i++) {
        const AtomInfo *atom = &s->a->atoms.data[i];
        if (!live[i] || atom->kind != ATOM_NODE || (int)atom->node.id >= s->forward_count) continue;
        for (int k = 0; k < MAX_OPERANDS; k++) needed[arg(s->g, atom->node, k).id] = true;
    }
    for (int p = 0; p < b->products.count; p++) {
        Product *product = &b->products.data[p];
        product->uses += product->node.id && needed[product->node.id];
    }
}

bool *collect_products(Build *b, const Poly *roots, int count)
{
    const Algebra *a = b->s->a;
    bool *live = NEW_ARRAY(b->s->arena, bool, a->atoms.count);
    add_all(b);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < roots[i].count; k++) {
            count_term(b, &roots[i].terms[k]);
            mark_atoms(&roots[i].terms[k], live);
        }
    for (int atom = a->atoms.count - 1; atom > 0; atom--) {
        const AtomInfo *info = &a->atoms.data[atom];
        const int terms = info->kind == ATOM_POLY ? info->poly.count : info->kind == ATOM_SUM;
        for (int k = 0; live[atom] && k < terms; k++) {
            const Term *x = info->kind == ATOM_POLY ? &info->poly.terms[k] : &info->inner;
            count_term(b, x);
            mark_atoms(x, live);
        }
    }
    count_operands(b, live);
    return live;
}

/* ---- which one to take ---- */

/* 0: it is not worth anything. */
static int worth(const Build *b, const Product *p)
{
    enum { SAVED = 10000, NAMED = 1000, FACTOR = 10, MOST_USES = 9 };
    const bool is_gradient = p->of.id != 0;
    const bool is_named = !is_gradient && b->s->forward->nodes.data[p->node.id].name;
    if (!p->is_saved && p->uses < 2 - is_named) return 0;
    const int uses = p->uses < MOST_USES ? p->uses : MOST_USES;
    return (p->is_saved ? SAVED : 0) + (is_named ? NAMED : 0) + FACTOR * degree(&p->term) + uses;
}

int find_divisor(Build *b, const Term *x, const Term *guards, int below)
{
    int best = NO_PRODUCT, most = 0;
    for (int i = 0; i < x->factor_count; i++) {
        int left = MOST_PRODUCTS;
        for (int p = first_product(b, x->factors[i].atom); p >= 0 && left; left--) {
            const Product *product = &b->products.data[p];
            const int value = worth(b, product);
            if (value > most && degree(&product->term) < below && divides(product, x, guards)) {
                best = p;
                most = value;
            }
            p = product->next;
        }
    }
    return best;
}

/* Whether a product would be complete in `inner` with some factors of `outer` that do not vary
 * along the sum's axes: these are put into *moved. */
static bool completes(Build *b, const Product *p, const AtomInfo *sum, const Term *outer,
                      const Term *guards, Term *moved)
{
    const Algebra *a = b->s->a;
    bool some_inside = false;
    *moved = term_number(1);
    if (p->of.id || p->term.coefficient != 1) return false;
    for (int i = 0; i < p->term.factor_count; i++) {
        const Factor *f = &p->term.factors[i];
        if (contains(term_power_of(&sum->inner, f->atom), f->power)) {
            some_inside = true;
            continue;
        }
        if (a->atoms.data[f->atom].axes & sum->reduced) return false;
        if (!contains(term_power_of(outer, f->atom), f->power)) return false;
        *moved = term_times(b->s->a, *moved, term_atom(b->s->a, f->atom, f->power));
    }
    const bool holds =
        !p->when.condition || guard_holds(&sum->inner, p->when) || guard_holds(guards, p->when);
    return some_inside && moved->factor_count && holds;
}

static int find_completed(Build *b, const Term *from, const AtomInfo *sum, const Term *outer,
                          const Term *guards, Term *moved)
{
    int most = 0;
    for (int i = 0; i < from->factor_count; i++) {
        int left = MOST_PRODUCTS;
        for (int p = first_product(b, from->factors[i].atom); p >= 0 && left; left--) {
            const Product *product = &b->products.data[p];
            Term taken;
            const int value = worth(b, product);
            p = product->next;
            if (value <= most || !completes(b, product, sum, outer, guards, &taken)) continue;
            most = value;
            *moved = taken;
        }
    }
    return most;
}

bool complete_product(Build *b, Term *x, const Term *guards)
{
    Algebra *a = b->s->a;
    for (int i = 0; i < x->factor_count; i++) {
        const uint32_t atom = x->factors[i].atom;
        const AtomInfo sum = *atom_info(a, atom);
        Term moved = {0}, other = {0};
        if (sum.kind != ATOM_SUM || x->factors[i].power != 1) continue;
        const int inside = find_completed(b, &sum.inner, &sum, x, guards, &moved);
        const int outside = find_completed(b, x, &sum, x, guards, &other);
        if (!inside && !outside) continue;
        if (outside > inside) moved = other;
        const uint32_t whole =
            atom_of_sum(a, sum.reduced, sum.is_mean, term_times(a, sum.inner, moved));
        Term rest = term_times(a, *x, term_atom(a, atom, -1));
        rest = term_times(a, rest, term_power(a, moved, -1));
        *x = term_times(a, rest, term_atom(a, whole, 1));
        return true;
    }
    return false;
}

/* ---- what terms have in common ---- */

static int common_power(int a, int b)
{
    if (a > 0 && b > 0) return a < b ? a : b;
    if (a < 0 && b < 0) return a > b ? a : b;
    return 0;
}

static Term common_of_two(Algebra *a, const Term *x, const Term *y)
{
    Factor *factors = NEW_ARRAY(a->arena, Factor, x->factor_count + 1);
    Guard *guards = NEW_ARRAY(a->arena, Guard, x->guard_count + 1);
    const double size = fabs(x->coefficient) == fabs(y->coefficient) ? fabs(x->coefficient) : 1;
    const double sign = x->coefficient < 0 && y->coefficient < 0 ? -1 : 1;
    Term common = {sign * size, guards, factors, 0, 0};
    for (int i = 0; i < x->factor_count; i++) {
        const int power = common_power(x->factors[i].power, term_power_of(y, x->factors[i].atom));
        if (power) factors[common.factor_count++] = (Factor){x->factors[i].atom, power};
    }
    for (int i = 0; i < x->guard_count; i++)
        if (guard_holds(y, x->guards[i])) guards[common.guard_count++] = x->guards[i];
    return common;
}

/* What is hidden in every term must not be taken out of them: that would multiply with a mask. */
static bool is_exposed(Poly x, const bool *chosen, int guards)
{
    for (int i = 0; i < x.count; i++)
        if ((!chosen || chosen[i]) && x.terms[i].guard_count == guards) return true;
    return false;
}

Term common_factors(Algebra *a, Poly x)
{
    Term common = x.terms[0];
    for (int i = 1; i < x.count; i++) common = common_of_two(a, &common, &x.terms[i]);
    if (!is_exposed(x, NULL, common.guard_count)) {
        common.factor_count = 0;
        common.coefficient = common.coefficient < 0 ? -1 : 1;
    }
    return common;
}

int guarded_side(const Term *x, uint32_t condition)
{
    for (int i = 0; i < x->guard_count; i++)
        if (x->guards[i].condition == condition) return x->guards[i].holds;
    return 2;
}

bool find_choice(Poly x, Guard *guard)
{
    for (int i = 0; i < x.count; i++)
        for (int k = 0; k < x.terms[i].guard_count; k++) {
            *guard = x.terms[i].guards[k];
            for (int j = i + 1; j < x.count; j++)
                if (guarded_side(&x.terms[j], guard->condition) == !guard->holds) return true;
        }
    return false;
}

Term drop_guard(Algebra *a, Term x, uint32_t condition)
{
    Guard *left = NEW_ARRAY(a->arena, Guard, x.guard_count + 1);
    int count = 0;
    for (int i = 0; i < x.guard_count; i++)
        if (x.guards[i].condition != condition) left[count++] = x.guards[i];
    x.guards = left;
    x.guard_count = count;
    return x;
}

typedef struct {
    uint32_t atom; /* 0: the guard */
    int sign;
    Guard guard;
} Shared;

static bool has_shared(const Term *x, const Shared *what)
{
    if (!what->atom) return guard_holds(x, what->guard);
    return term_power_of(x, what->atom) * what->sign > 0;
}

static int count_sharing(Poly x, const Shared *what)
{
    int count = 0;
    for (int i = 0; i < x.count; i++) count += has_shared(&x.terms[i], what);
    return count;
}

bool find_sharing(Algebra *a, Poly x, bool *chosen)
{
    Shared best = {0};
    int most = 1;
    for (int i = 0; i < x.count; i++) {
        const Term *term = &x.terms[i];
        for (int k = 0; k < term->factor_count + term->guard_count; k++) {
            const bool is_guard = k >= term->factor_count;
            Shared what = {0};
            if (is_guard)
                what.guard = term->guards[k - term->factor_count];
            else
                what = (Shared){.atom = term->factors[k].atom,
                                .sign = term->factors[k].power > 0 ? 1 : -1};
            const bool is_size = !is_guard && a->atoms.data[what.atom].kind == ATOM_NODE &&
                                 node(a->g, a->atoms.data[what.atom].node)->op == OP_SIZE;
            const int count = is_size ? 0 : count_sharing(x, &what);
            for (int j = 0; j < x.count; j++) chosen[j] = has_shared(&x.terms[j], &what);
            if (count <= most || (!is_guard && !is_exposed(x, chosen, 0))) continue;
            most = count;
            best = what;
        }
    }
    for (int i = 0; i < x.count; i++) chosen[i] = most > 1 && has_shared(&x.terms[i], &best);
    return most > 1;
}

static bool hides_as_much(const Term *x, const Term *guards, const Term *inner)
{
    for (int i = 0; i < inner->guard_count; i++)
        if (!guard_holds(x, inner->guards[i]) && !guard_holds(guards, inner->guards[i]))
            return false;
    return true;
}

Term shelter_divisors(Algebra *a, Term x, const Term *guards)
{
    for (int i = 0; i < x.factor_count; i++) {
        const uint32_t atom = x.factors[i].atom;
        const AtomInfo sum = *atom_info(a, atom);
        if (sum.kind != ATOM_SUM || x.factors[i].power != 1) continue;
        if (hides_as_much(&x, guards, &sum.inner)) continue;
        Term moved = term_number(1);
        for (int k = 0; k < x.factor_count; k++) {
            const Factor f = x.factors[k];
            const AtomInfo *info = atom_info(a, f.atom);
            const bool is_size = info->kind == ATOM_NODE && node(a->g, info->node)->op == OP_SIZE;
            if (f.power < 0 && !is_size && !(info->axes & sum.reduced))
                moved = term_times(a, moved, term_atom(a, f.atom, f.power));
        }
        if (!moved.factor_count) continue;
        const uint32_t whole =
            atom_of_sum(a, sum.reduced, sum.is_mean, term_times(a, sum.inner, moved));
        x = term_times(a, term_times(a, x, term_atom(a, atom, -1)), term_power(a, moved, -1));
        return shelter_divisors(a, term_times(a, x, term_atom(a, whole, 1)), guards);
    }
    return x;
}

/* ---- means ---- */

static bool is_divided(Algebra *a, const Term *x, AxisSet axes, Term *size)
{
    *size = term_number(1);
    for (uint32_t i = 0; i < MAX_AXES; i++) {
        if (!(axes >> i & 1)) continue;
        const uint32_t atom = atom_of_node(a, graph_size(a->g, i));
        if (term_power_of(x, atom) >= 0) return false;
        *size = term_times(a, *size, term_atom(a, atom, 1));
    }
    return true;
}

Term with_means(Algebra *a, Term x)
{
    for (int i = 0; i < x.factor_count; i++) {
        const uint32_t atom = x.factors[i].atom;
        const AtomInfo sum = *atom_info(a, atom);
        Term size;
        if (sum.kind != ATOM_SUM || sum.is_mean || x.factors[i].power != 1) continue;
        if (!is_divided(a, &x, sum.reduced, &size)) continue;
        const uint32_t mean = atom_of_sum(a, sum.reduced, true, sum.inner);
        x = term_times(a, term_times(a, x, size), term_atom(a, atom, -1));
        x = term_times(a, x, term_atom(a, mean, 1));
        i = -1;
    }
    return x;
}
