/* gradients.h: backward graphs of texts, for the suites of gradients. */
#ifndef FUSEC_TESTS_GRADIENTS_H
#define FUSEC_TESTS_GRADIENTS_H

#include "compile.h"
#include "reference/gradcheck.h"

typedef struct {
    Compilation forward, backward; /* as far as UNTIL_GRAPH */
    char *text;                    /* of the backward graph; malloc'ed */
} Pair;

/* Compiles a text with one graph, and the backward graph that grad makes of it; fails the test
 * where either cannot be. `request` NULL: the defaults. */
Pair open_pair(const char *text, const GradRequest *request);
/* The same with a backward graph that is given. */
Pair open_given_pair(const char *text, const char *backward);
void close_pair(Pair *p);
/* Default sizes, at most `most` each. */
Sizes small_sizes(const Graph *g, int most);
/* Compares the gradients of a pair, or of another backward graph, with differences, and with
 * those of `own` (NULL: not). */
GradVerdict check_pair(const Pair *p, const Graph *backward, const Graph *own, uint64_t seed,
                       Text *report);

#endif
