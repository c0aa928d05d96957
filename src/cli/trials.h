/* trials.h: the results of `fusec tune` for each candidate, the rule that keeps one, and the
 * report. Nothing here needs a GPU: times come from tune_run.c, or from a test. */
#ifndef FUSEC_CLI_TRIALS_H
#define FUSEC_CLI_TRIALS_H

#include "fusec.h"
#include "base/text.h"

typedef struct {
    const char *schedule;       /* NULL: the chosen plan, which no text names */
    const char *rejected;       /* why it was not timed; NULL: it was */
    fusec_plan *plan;           /* NULL: it did not compile */
    int registers, spill_bytes; /* of the kernel that has most; -1: not known */
    double us;                  /* the median of the last pass it was in */
    double *times;              /* of that pass, by round */
    int rounds;
    bool finalist; /* was in the long pass */
} Trial;

/* Sets spill_bytes and registers from the plan, and rejects a plan that spills. */
void read_usage(Arena *arena, Trial *trial);

/* Sets `us` from the times, which keep their order. */
void set_median(Arena *arena, Trial *trial);

/* The indices of all timed trials, fastest first; returns how many. */
int rank_trials(const Trial *trials, int count, int *order);

/* Makes finalists of the default (trial 0) and the `most` fastest others. */
void choose_finalists(Arena *arena, Trial *trials, int count, int most);

/* Compares the fastest finalist with the default. It is kept if its median is at least
 * MIN_GAIN_PERCENT lower and it was faster in at least MIN_WINS_PERCENT of the rounds. All
 * finalists run one after another in each round, so neither drift nor a few outliers can decide. */
enum { MIN_GAIN_PERCENT = 1, MIN_WINS_PERCENT = 80 };

typedef struct {
    int best;    /* 0: the default */
    double gain; /* 1 - its time / the default's */
    int wins, rounds;
    bool kept;
} Choice;

Choice choose_trial(const Trial *trials, int count);

typedef struct {
    const char *graph, *device, *arch;
    const char *file; /* that the choice was written to; NULL: it could not be */
    int axis_count;
    const char *const *axes;
    const int64_t *sizes;
    int64_t bytes; /* read and written at least */
    const Trial *trials;
    int count;
    int left_out; /* schedules that are not timed */
    Choice choice;
} Report;

void print_report(Text *out, const Report *r);
void print_report_json(Text *out, const Report *r);

#endif
