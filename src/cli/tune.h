/* tune.h: the parts of `fusec tune` that need a GPU. */
#ifndef FUSEC_CLI_TUNE_H
#define FUSEC_CLI_TUNE_H

#include "cli/session.h"
#include "cli/trials.h"

/* Compiles all trials, on as many threads as there are cores; rejects those that do not compile, or
 * spill. The default, trial 0, must compile: else returns an exit status. */
int compile_trials(Session *s, Trial *trials, int count);

/* Rejects trials whose outputs are neither the default's bits nor within the reference's bounds. A
 * wrong default is EXIT_VERIFY. `small` is the batch that was used, for the caller to close. */
int verify_trials(Session *s, Trial *trials, int count, Batch *small);

/* Times the trials that were not rejected: all of them briefly, then the finalists for longer. In
 * each round every trial runs once, so drift affects all alike. */
int time_trials(Session *s, Trial *trials, int count, const Batch *small, int l2_bytes);

/* What the table of --table has for a plan's kernel: *schedule stays where it has nothing. An exit
 * status. */
int find_row(const Session *s, const struct Plan *plan, const char **schedule);

/* Writes the best trial into the table of --table, if it is faster enough than trial 0, the model's
 * choice of `plan`. An exit status. */
int store_row(const Session *s, const struct Plan *plan, const Trial *trials, const Choice *choice);

#endif
