/* candidates.h: a plan -> all the other plans of its graph and target that `--schedule` can ask
 * for: what `fusec tune` times.
 *
 * Every plan is there once, whichever texts name it: two plans are one where they print the same
 * CUDA and launch it alike. */
#ifndef FUSEC_CANDIDATES_H
#define FUSEC_CANDIDATES_H

#include "schedule/plan.h"

enum { MOST_CANDIDATES = 64 };

typedef struct {
    const char *schedule; /* the shortest text that names it; NULL: none does (the chosen one) */
    const Plan *plan;
    const char *cuda;
} Candidate;

typedef struct {
    LIST(Candidate) list;        /* the chosen one comes first */
    int refused, same, left_out; /* texts: refused, of a plan listed before, not looked into */
    LIST(Rejection) refusals;    /* of list_near: what was refused, and why */
} Candidates;

/* The plans of a plan's graph and target, at most `most` (one at least): the chosen one, every
 * family by its bare name, each with one key, and as many of those with two and three keys as there
 * is room for, which are taken evenly from the list of all. What more passes over memory than the
 * chosen plan, or cuts a row into too few or too many threads for its size, is left out unless a
 * bare name asks for it. */
Candidates list_candidates(Arena *arena, const Plan *chosen, int most);

/* The chosen plan, every family by its bare name, and each with one key; what is refused is listed
 * with its reason. */
Candidates list_near(Arena *arena, const Plan *chosen);

/* The plan that the model (schedule/cost.c) finds fastest among those with up to two keys, if it
 * finds it so much faster than the rules' choice as it can tell for sure; else the rules' choice.
 */
Plan *find_faster(Arena *arena, Plan *rules);

/* For a chosen plan that spills: the chosen one and at most `most` others that by the estimate
 * leave more registers unused, in even steps up to those that leave the most. None of a graph so
 * large that hundreds of plans for it take long. */
Candidates list_leaner(Arena *arena, const Plan *chosen, int most);

/* A text by which --schedule asks for that plan, with as many of the keys threads, rows, cluster,
 * stages, limit, per_sm and reuse as say what it has; NULL: none does. */
const char *name_plan(Arena *arena, const Plan *plan);

#endif
