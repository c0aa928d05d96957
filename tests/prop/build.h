/* build.h: random numbers and typed terms, for generate.c. */
#ifndef FUSEC_PROP_BUILD_H
#define FUSEC_PROP_BUILD_H

#include "generate.h"

typedef struct {
    Arena *arena;
    uint64_t state;
    Sketch *sketch;
    LIST(Term *) values; /* inputs and statements so far */
    AxisSet reduced;     /* by the last reduction; 0: there is none */
    bool wild;           /* any value may be of any size */
    bool stepping;       /* may step on computed floats */
} Draw;

uint64_t bits(Draw *d);
uint32_t below(Draw *d, uint32_t limit);
bool chance(Draw *d, uint32_t of, uint32_t in);
/* A name that is not taken: `stem` and a number (NULL: any letter), or a nasty one. */
const char *draw_name(Draw *d, const char *stem);
void add_value(Draw *d, Term *t);

Term *new_term(Draw *d, TermKind kind, const char *text, Type type, AxisSet axes);
Term *literal(Draw *d, const char *text);
Term *axis_term(Draw *d, const char *text, int axis);
Term *unary(Draw *d, const char *text, Term *a);
Term *binary(Draw *d, const char *text, Term *a, Term *b);
/* An element function, a cast, or one of the library that has no axes. */
Term *call(Draw *d, const char *name, AxisSet over, int count, Term *const *args);
Term *unary_call(Draw *d, const char *name, Term *a);
Term *reduce(Draw *d, const char *name, AxisSet over, Term *a);
/* A function of the library with an axis. */
Term *library(Draw *d, const char *name, AxisSet over, int count, Term *const *args);

/* The same value bent into a range, unless it is there or the program is wild. */
Term *positive(Draw *d, Term *a);
Term *away_from_zero(Draw *d, Term *a);
Term *within(Draw *d, Term *a, double most);
Term *near_one(Draw *d, Term *a);
Term *tame(Draw *d, Term *a);

#endif
