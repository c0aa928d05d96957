/* explain.h: plan -> words or JSON: how the graph was seen, what runs, what it moves, and why. */
#ifndef FUSEC_EXPLAIN_H
#define FUSEC_EXPLAIN_H

#include "schedule.h"

/* What the assembler said about a kernel; -1 where nobody asked it. */
typedef struct {
    int registers, spill_bytes;
} KernelUsage;

/* By what text of --schedule a plan was made that is not the rules' first choice, and why. */
typedef struct {
    const char *schedule, *why;   /* NULL: it is */
} Origin;

/* `usage` has an entry for each kernel of the plan. */
void explain_words(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin);
void explain_json(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin);

#endif
