/* graph/grad_internal.h: what the files of the backward pass share.
 *
 *   grad.c          what is differentiated, and the pass as a whole
 *   grad_facts.c    the forward pass as products, sums and additions that are known
 *   grad_rules.c    the walk from the outputs to the inputs; derivatives.def has its table
 *   grad_build.c    gradients, which are polynomials, as nodes
 *   grad_factor.c   which products they are made of: those of the forward pass, and common factors
 *   grad_hide.c     what is left out where a condition does not hold
 *   grad_save.c     which outputs of the forward pass are worth saving
 *   grad_names.c    names of what is bound */
#ifndef FUSEC_GRAD_INTERNAL_H
#define FUSEC_GRAD_INTERNAL_H

#include "base/map.h"
#include "graph/algebra.h"
#include "graph/grad.h"

typedef struct {
    Arena *arena;
    Diagnostics *d;
    const Graph *forward;
    Graph *g; /* a copy of the forward graph, with the gradients of outputs as further inputs */
    Algebra *a;
    int forward_count; /* nodes of g that are of the forward graph */
    bool *of;          /* by output: it is differentiated */
    bool *wrt;         /* by forward param */
    Map inputs;        /* names of the forward params */
    Map gradients;     /* names of the gradients of outputs and params */
    bool *active;      /* by node: its value depends on these */
    bool *varies;      /* by node: it depends on a float tensor */
    Term *factored;    /* by node: the product that it is */
    Poly *adjoint;     /* by node: its gradient so far */
} Grad;

/* gradient_name of an output or a forward param. */
const char *name_gradient(const Grad *s, const char *name);

/* Fills in active, varies, factored; then adjoint of the params. */
void walk_back(Grad *s);

/* ---- grad_facts.c ---- */

void factor_nodes(Grad *s);
void know_sums(Grad *s);
void know_additions(Grad *s);
/* x - mean[axes](x); the number of elements along the axes. */
Node centre_node(Grad *s, Node x, AxisSet axes);
Term size_term(Grad *s, AxisSet axes);

typedef enum { MAY_BE_NEGATIVE, NOT_NEGATIVE, POSITIVE } Sign;
Sign sign_of_node(const Grad *s, Node n);

/* The gradients as nodes of s->g, by forward param, with these outputs saved (by output). */
Node *build_gradients(Grad *s, const bool *saved);
/* By node of s->g: whether the gradients need it, where outputs are saved; a node that was saved
 * needs nothing else. saved_as[id] is the output whose node it is, -1 for others. */
bool *find_needed(const Grad *s, const Node *gradients, const int *saved_as);
int *find_saved(const Grad *s, const bool *saved);

/* Which outputs are saved, by output; reports wrong names. */
bool *choose_saved(Grad *s, GradRequest *request, Gradient *result);

/* Names the nodes of the finished graph that are bound to a name, and no others. is_weak: by node,
 * a name that was made for it, which it only needs where it is bound. */
void bind_names(Graph *g, const bool *is_weak);

/* ---- between grad_build.c and grad_factor.c ---- */

/* A product that the graph has or may have: of the forward pass, or a gradient of a value of it. */
typedef struct {
    Node node; /* 0: not built yet */
    Node of;   /* the forward node that it is the gradient of; 0: it is a forward node */
    Term term;
    Guard when; /* condition 0: always; else `term` is its value only there */
    bool is_saved;
    int uses; /* how many terms it divides */
    int next; /* the next product with the same last factor; NO_PRODUCT: none */
} Product;

typedef struct {
    Grad *s;
    const bool *saved;
    LIST(Product) products;
    LIST(int) by_atom; /* the first product with this last factor */
} Build;

enum { NO_PRODUCT = -1 };

/* Returns by atom whether the roots need it. */
bool *collect_products(Build *b, const Poly *roots, int count);
/* The best product of fewer than `below` factors that divides a term where the guards hold;
 * NO_PRODUCT: none. */
int find_divisor(Build *b, const Term *x, const Term *guards, int below);
/* Moves factors of *x into one of its sums, where that completes a product; false: nowhere. */
bool complete_product(Build *b, Term *x, const Term *guards);

/* Divisors that do not vary along a sum of guarded terms, within that sum: where all its terms are
 * hidden they may be 0. Not where x itself, or `guards`, hides as much. */
Term shelter_divisors(Algebra *a, Term x, const Term *guards);
/* A condition on which some terms count and without which others do. */
bool find_choice(Poly x, Guard *guard);
/* 1: the term counts where it holds, 0: where it does not, 2: anyway. */
int guarded_side(const Term *x, uint32_t condition);
Term drop_guard(Algebra *a, Term x, uint32_t condition);
/* The guards of x that its value, built as a product, does not need: where they do not hold it is 0
 * by a saved factor, and to know whether they hold takes reading a tensor. */
Term needless_guards(Build *b, const Term *x, Node product);
/* The factors that all terms have, if that exposes nothing that is hidden in each. */
Term common_factors(Algebra *a, Poly x);
/* The largest part of the terms that has factors in common: chosen[i] of its terms; false: no two
 * terms have any. */
bool find_sharing(Algebra *a, Poly x, bool *chosen);
/* Sums that are divided by their size, as means. */
Term with_means(Algebra *a, Term x);

#endif
