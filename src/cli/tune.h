/* tune.h: the parts of `fusec tune` that need a GPU. */
#ifndef FUSEC_CLI_TUNE_H
#define FUSEC_CLI_TUNE_H

#include "cli/session.h"
#include "cli/trials.h"

/* Compiles all trials, on as many threads as there are cores; what does not compile, or spills, is
 * rejected. The default, trial 0, must compile: else an exit status. */
int compile_trials(Session *s, Trial *trials, int count);

/* Rejects trials whose outputs are neither the default's bits nor within the reference's bounds. A
 * default that is wrong is EXIT_VERIFY. `small` is the batch it was tried on, for the caller to
 * close. */
int verify_trials(Session *s, Trial *trials, int count, Batch *small);

/* Times what was not rejected: all of it shortly, then the finalists for longer; in each round
 * every one runs once, so that whatever drifts drifts for all. */
int time_trials(Session *s, Trial *trials, int count, const Batch *small, int l2_bytes);

#endif
