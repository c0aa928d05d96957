/* timer.h: times of work on the GPU between two events, the L2 cache overwritten before each. */
#ifndef FUSEC_CLI_TIMER_H
#define FUSEC_CLI_TIMER_H

#include "fusec.h"

enum { RUNS = 60, WARM_UP = 5, SHORT_US = 20 };

typedef struct {
    fusec_device *device;
    fusec_event *begin, *end;
    void *flush; /* larger than the L2 cache */
    size_t flush_bytes;
} Timer;

typedef fusec_status Work(void *data, fusec_error *error);

/* All return an exit status, and complain. */
int open_timer(Timer *t, fusec_device *device, int l2_bytes);
void close_timer(Timer *t);
/* Microseconds of one run of `work`. */
int time_once(Timer *t, Work *work, void *data, double *us);
/* What is typical of RUNS runs, after WARM_UP others. */
int time_work(Timer *t, Work *work, void *data, double *us);

/* Of one run among several that wait in a stream behind each other; what they touch is in L2 as the
 * one before left it. */
int time_queued(Timer *t, Work *work, void *data, double *us);

/* Sorts the times. */
double median_of(double *times, int count);
/* The median or, of less than SHORT_US, which the GPU's clock rounds to steps of up to 0.2 us, the
 * mean of the middle half. Sorts them, too; 0 of none. */
double typical_of(double *times, int count);

#endif
