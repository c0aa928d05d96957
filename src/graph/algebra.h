/* graph/algebra.h: sums of products, the form in which derivatives are simplified.
 *
 * A term is a number times powers of atoms, and counts only where its guards hold (elsewhere it is
 * 0, whatever its factors are). An atom is a node of the graph, a sum over axes of a term, or a
 * whole polynomial that is not multiplied out. Equal atoms are one atom; what an atom is made of
 * comes before it.
 *
 * The laws are those of real numbers, not of IEEE, so they serve derivatives alone. Coefficients
 * that differ by rounding are equal. */
#ifndef FUSEC_ALGEBRA_H
#define FUSEC_ALGEBRA_H

#include "base/map.h"
#include "graph/graph.h"

typedef struct {
    uint32_t atom;
    int power;
} Factor;

typedef struct {
    uint32_t condition; /* a node */
    bool holds;         /* false: the term counts where the condition is false */
} Guard;

typedef struct {
    double coefficient;
    const Guard *guards;   /* by rising condition */
    const Factor *factors; /* by rising atom; no power is 0 */
    int guard_count, factor_count;
} Term;

typedef struct {
    const Term *terms; /* no two alike, no coefficient 0 */
    int count;
} Poly;

typedef enum { ATOM_NODE, ATOM_SUM, ATOM_POLY } AtomKind;

typedef struct {
    AtomKind kind;
    AxisSet axes;
    Node node;       /* NODE; of the others what was built of it */
    AxisSet reduced; /* SUM */
    bool is_mean;    /* SUM: divided by the number of its terms */
    Term inner;      /* SUM: its coefficient is 1, and every atom has a reduced axis */
    Poly poly;       /* POLY */
    const char *name;
} AtomInfo;

typedef struct {
    Arena *arena;
    Graph *g;
    LIST(AtomInfo) atoms; /* atoms.data[0] is none */
    LIST(uint32_t) of_node;
    Map shared;    /* SUM and POLY by content */
    Map known;     /* sums that the forward graph has -> index into known_terms */
    Map additions; /* pairs of atoms -> index into known_terms: what they add up to */
    LIST(Term) known_terms;
} Algebra;

Algebra *algebra_new(Arena *arena, Graph *g);

Term term_number(double value);
Term term_atom(Algebra *a, uint32_t atom, int power);
Term term_node(Algebra *a, Node n); /* the node as one atom */
Term term_times(Algebra *a, Term x, Term y);
Term term_power(Algebra *a, Term x, int power);
Term term_scaled(Term x, double factor);
Term term_guarded(Algebra *a, Term x, Node condition, bool holds);
AxisSet term_axes(const Algebra *a, const Term *x);
/* The same guards and factors, whatever the coefficients. */
bool term_alike(const Term *x, const Term *y);
int term_power_of(const Term *x, uint32_t atom);
bool is_zero_term(const Term *x); /* its coefficient is 0, or its guards contradict each other */

Poly poly_term(Algebra *a, Term x);
Poly poly_add(Algebra *a, Poly x, Poly y);
Poly poly_times(Algebra *a, Poly x, Term y);
Poly poly_guarded(Algebra *a, Poly x, Node condition, bool holds);
AxisSet poly_axes(const Algebra *a, Poly x);
/* The sum over `axes` of what has all of them, if only by being repeated along them. */
Poly poly_sum(Algebra *a, Poly x, AxisSet axes);

uint32_t atom_of_node(Algebra *a, Node n);
uint32_t atom_of_sum(Algebra *a, AxisSet reduced, bool is_mean, Term inner);
uint32_t atom_of_poly(Algebra *a, Poly x, const char *name);
static inline AtomInfo *atom_info(const Algebra *a, uint32_t atom)
{
    return &a->atoms.data[atom];
}

/* From then on the sum over `reduced` of `terms` is `value`. */
void know_sum(Algebra *a, AxisSet reduced, Term terms, Term value);
/* From then on x + y is `value`, where both are single atoms. */
void know_addition(Algebra *a, Term x, Term y, Term value);
/* The only factor of a term without guards, to the power 1; 0: there are others. */
uint32_t single_atom(const Term *x);

#endif
