/* explain/walk.h: the words about a kernel's walk over its rows, for explain/explain.c. */
#ifndef FUSEC_EXPLAIN_WALK_H
#define FUSEC_EXPLAIN_WALK_H

#include "schedule/plan.h"

const char *names_text(Arena *arena, const Graph *g, AxisSet axes); /* "B, S"; "none" */
const char *plural(int64_t count);                                  /* "s" but for 1 */

/* Which rows and columns, and how many of them a CTA and a thread have at a time. */
void explain_walk(Text *out, const Plan *plan, const Kernel *k);
/* Whether each phase that needs a row's elements reads them again, one by one. */
bool is_read_again(const Kernel *k, const Load *load);
/* How many phases, and where a row is between them. */
void explain_phases(Text *out, const Kernel *k);
void explain_window(Text *out, const Graph *g, const Kernel *k); /* what a mask leaves of a row */

#endif
