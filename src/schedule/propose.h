/* schedule/propose.h: what propose.c and propose_rings.c share; nobody else includes it. */
#ifndef FUSEC_PROPOSE_H
#define FUSEC_PROPOSE_H

#include "schedule/internal.h"

typedef struct {
    Scheduler *s;
    const Kernel *cut; /* as the graph was cut */
    Load *loads;       /* of the kernel that is tried */
    Schedule asked, now;
    Consider *consider;
    void *data;
    int vec, made;
    bool tune_only;           /* also what the model is not to choose */
    int told;                 /* CTAs an SM that ptxas is told of for streams; 0: none */
    int64_t columns, vectors; /* of a row; of a CTA's part of one */
} Proposals;

/* Makes a kernel of the schedule `now`; false: it cannot be, or is not what was asked for. */
bool make_now(Proposals *p, Kernel *k);
void try_now(Proposals *p);
bool admits_family(const Proposals *p, Family family);
int64_t part_bytes(const Proposals *p, int bytes); /* of a CTA's part of a row */
int tiles_now(const Proposals *p);
int cta_threads(const Proposals *p); /* that compute */
/* With each place that column vectors may have: a list that 0 ends. */
void try_columns(Proposals *p, const int *homes, void (*next)(Proposals *));
/* Rows that pass through a ring. */
void propose_rings(Proposals *p);

#endif
