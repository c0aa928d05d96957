/* front.h: what must hold for every valid program. */
#ifndef FUSEC_PROP_FRONT_H
#define FUSEC_PROP_FRONT_H

#include "data.h"
#include "sketch.h"

typedef struct {
    uint64_t seed;    /* of the inputs */
    uint64_t number;  /* no other program in one object has it */
    const char *text; /* its one graph is called `name` */
    const char *name;
    const char *same[2];  /* texts of the same meaning; NULL: none */
    const char *schedule; /* to be tried in any case; NULL: none */
} Case;

/* The case of a drawn program, with two other texts of the same meaning. */
Case case_of(Arena *arena, const Sketch *s);

/* A compiled program and its data. */
typedef struct {
    const Case *origin;
    Arena *arena;
    Compilation compiled;
    Data data;
} Checked;

Compilation compile_text(const char *text, const char *schedule, CompileUntil until);
/* Everything that needs no device: parsing, formatting, simplifying, evaluating,
 * planning, printing. Afterwards close_checked(), whatever it gave. */
bool check_front(const Case *c, Checked *checked, Finding *f);
void close_checked(Checked *checked);

#endif
