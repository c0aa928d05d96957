/* schedule/window.h: the columns of a row in which it matters what is loaded: a mask that the row's
 * own numbers make excludes all others. schedule/window.c finds them. */
#ifndef FUSEC_WINDOW_H
#define FUSEC_WINDOW_H

#include "analyze/analyze.h"

enum { MOST_BOUNDS = 8 };

typedef struct {
    int count;
    PlaceTest bounds[MOST_BOUNDS]; /* which all hold in a column of the window */
    const Node *outside;           /* by node id: what a column value is outside, of which `uniform`
                                      says whether it is the same there for the whole row */
    const bool *uniform;
    uint64_t phases; /* those that need not compute what is outside, element by element */
    int ends;        /* that a mask makes: 1 or 2 */
    double share;    /* of a row that it is taken for: half, if nothing tells more ... */
    bool told;       /* ... but its ends are as far apart as numbers tell ... */
    Node width;      /* ... one of which is this scalar's default; 0: constants alone */
} Window;

struct Kernel;
struct Load;

/* Whether a kernel makes use of its window: it knows a row's numbers before it loads the row. */
bool has_window(const struct Kernel *k);
/* Whether it does not load such elements outside. */
bool is_masked(const struct Kernel *k, const struct Load *load);
/* Whether a phase computes nothing for single elements outside. */
bool skips_outside(const struct Kernel *k, int phase);

#endif
