/* schedule/plan.h: analysis + target -> plan: which kernels run, in which order, what crosses
 * between them. A kernel is described in schedule/kernel.h,
 * and what follows from that in schedule/facts.h. */
#ifndef FUSEC_SCHEDULE_H
#define FUSEC_SCHEDULE_H

#include "schedule/facts.h"
#include "target.h"

/* A value that crosses kernels, unrounded, in the workspace. */
typedef struct {
    Node node;    /* a reduction, or what is made of those of a row */
    int slot;     /* of LaunchPlan */
    bool partial; /* one copy for each CTA that walks rows */
    bool shift;   /* of a mean: what a CTA's distances are from */
} Slot;

typedef struct {
    const char *schedule, *reason;
} Rejection;

typedef struct Plan {
    const Analysis *analysis;
    Target target;
    Family family; /* of the kernel that does the most */
    int kernel_count, slot_count, rejection_count;
    Kernel *kernels; /* in launch order, as launch.kernels */
    Slot *slots;
    Rejection *rejections;
    const char *forced; /* what --schedule asks; NULL: nothing */
    const char **cuts;  /* why there is more than one kernel */
    int cut_count;
    bool tuned;  /* that of some kernel */
    double time; /* ns, by the model, for many rows */
    LaunchPlan launch;
} Plan;

/* `forced` is the text of --schedule or NULL. A schedule that cannot be is refused: an error that
 * begins `schedule refused: ` is reported and *refused set; where none was asked for and there is
 * none, `no schedule: `. */
Plan *schedule(Arena *arena, Diagnostics *d, const Analysis *a, const Target *target,
               const char *forced, bool *refused);
/* The same without a report: NULL and why not where it is refused. */
Plan *try_schedule(Arena *arena, const Analysis *a, const Target *target, const char *forced,
                   const char **problem);
/* How fast a plan moves many rows, and what bounds it, by the model of schedule/cost.c. */
typedef enum {
    BOUND_BY_MEMORY,
    BOUND_BY_L2,
    BOUND_BY_INSTRUCTIONS,
    BOUND_BY_WAITS,
    BOUND_BY_MESSAGES,
    BOUNDS
} Bound;
typedef struct {
    double gbps;         /* of inputs and outputs once each; 0: not modelled, ... */
    const char *unknown; /* ... and why not; else NULL */
    double ceiling;      /* what no plan exceeds: memory's own rate */
    Bound bound;
} Estimate;
Estimate estimate_speed(const Plan *plan);
/* A complete schedule of a plan, and the ns that the model expects. */
typedef struct {
    const char *schedule;
    double time;
    bool tune_only; /* such gained little where they were timed: the model does not choose it */
    int number;     /* in which it was proposed: of equal ones the first comes first */
} Alternative;
typedef LIST(Alternative) Alternatives;
/* The plan of a graph as it was analyzed, without its other columns; NULL: there is none. */
Plan *plan_columns(Arena *arena, const Analysis *a, const Target *target);
/* What else the kernel could be that reads most, with all else as it is, from the fastest on;
 * and at most so many of them, for measurements: the fastest, at most half of them `tune_only`,
 * and some of the others, evenly. */
Alternatives list_alternatives(Arena *arena, const Plan *plan);
Alternatives list_candidates(Arena *arena, const Plan *plan, int most);
/* The plans whose rows have other columns, of those that `first` and its others say, and that compile
 * in no size which the plan leaves to launches; then some of
 * each other kernel that walks rows, and the main kernel's as above. `left_out` gets how many more
 * there are. */
Alternatives list_all_candidates(Arena *arena, const Analysis *first, const Plan *plan, int most,
                                 int *left_out);
/* Complete schedules of all kernels of a plan that walk rows, in the arena: the same target makes
 * the same plan of them. `/` is between those of a graph's parts. */
const char *complete_schedule(Arena *arena, const Plan *plan);
/* What a row of a table begins with, "CLASS DTYPE VECTOR", and the columns of the kernel that reads
 * most; NULL: no row of a table decides its schedule. In the arena. */
const char *row_of_plan(Arena *arena, const Plan *plan, int64_t *columns);
/* Of complete schedules of all kernels that of the kernel that reads most; and a plan's with
 * another in its place. Both in the arena. */
const char *main_schedule(Arena *arena, const Plan *plan, const char *all);
const char *with_main_schedule(Arena *arena, const Plan *plan, const char *schedule);
/* A row of a table. */
typedef struct {
    const char *class; /* as row_of_plan() tells it */
    int64_t from, to;  /* columns */
    const char *schedule;
    double gain; /* percent of the time */
} TableRow;
/* Reads a line, without its end, into the arena; why it is no row, NULL: it is one. */
const char *read_table_row(Arena *arena, const char *line, size_t length, TableRow *row);
/* The number of the first line of a table that is no row, and why; 0: all are. */
int find_damage(Arena *arena, const char *table, const char **why);
/* A text by which --schedule asks for that plan: short, or complete. */
const char *name_plan(Arena *arena, const Plan *plan);
/* Whether all of the model's constants were measured on the target's GPU. */
bool is_model_fitted(const Target *target);
const char *bound_name(Bound bound);
/* Notes a schedule that cannot be, for explain. */
void add_rejection(Arena *arena, Plan *plan, const char *schedule, const char *reason);
void print_plan(Text *out, const Plan *plan); /* --emit=plan */

#endif
