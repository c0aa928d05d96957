/* explain/explain.h: plan -> words or JSON: how the graph was analyzed, which kernels run, what
 * they move, and why. */
#ifndef FUSEC_EXPLAIN_H
#define FUSEC_EXPLAIN_H

#include "schedule/plan.h"

/* What the assembler reported of a kernel; -1 where it was not asked. */
typedef struct {
    int registers, spill_bytes;
    int strided_registers, strided_spill_bytes; /* of its entry for views, where it has one */
} KernelUsage;

/* The text of --schedule that makes a plan, and why that schedule was chosen. */
typedef struct {
    const char *schedule, *why; /* NULL: no text makes it, or the user gave it */
} Origin;

typedef struct {
    int64_t read, written; /* bytes, by all kernels */
    bool again;            /* rows are read in more than one phase */
    bool masked;           /* where a mask leaves a part of each row, less is read */
    bool repeats;          /* several of a kernel's rows read the same row of a tensor */
} Traffic;

double rounded_gbps(double gbps);
/* Of each kernel's inputs and outputs: once, or as often as its rows read them. */
Traffic count_traffic(const Plan *plan);
/* Of values that pass from one kernel to another. */
int64_t bytes_passed(const Plan *plan);
int64_t kernel_ctas(const Plan *plan, int kernel);

/* `usage` has an entry for each kernel of the plan; `candidates`: with the other schedules. */
void explain_words(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin,
                   bool candidates);
void explain_json(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin,
                  bool candidates);
/* The same for the candidates alone; in JSON as two members behind others. */
void explain_candidates(Text *out, const Plan *plan);
void put_candidates(Text *out, const Plan *plan);

#endif
