/* explain.h: plan -> words or JSON: how the graph was seen, what runs, what it moves, and why. */
#ifndef FUSEC_EXPLAIN_H
#define FUSEC_EXPLAIN_H

#include "schedule.h"

/* What the assembler said about a kernel; -1 where nobody asked it. */
typedef struct {
    int registers, spill_bytes;
} KernelUsage;

/* `usage` has an entry for each kernel of the plan. */
void explain_words(Text *out, const Plan *plan, const KernelUsage *usage);
void explain_json(Text *out, const Plan *plan, const KernelUsage *usage);

#endif
