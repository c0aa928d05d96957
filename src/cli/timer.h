/* timer.h: times of work on the GPU between two events; the L2 cache is overwritten before each
 * run. */
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

/* These complain, and return an exit status. */
int open_timer(Timer *t, fusec_device *device, int l2_bytes);
void close_timer(Timer *t);
/* Microseconds of one run of `work`. */
int time_once(Timer *t, Work *work, void *data, double *us);
/* The typical time of RUNS runs, after WARM_UP others. */
int time_work(Timer *t, Work *work, void *data, double *us);

/* The same for runs that are queued in a stream one behind another; L2 then holds what the run
 * before left there. */
int time_queued(Timer *t, Work *work, void *data, double *us);

/* Sorts the times. */
double median_of(double *times, int count);
/* The median; for times below SHORT_US, which the GPU's clock rounds coarsely, the mean of the
 * middle half. Sorts the times; 0 where there are none. */
double typical_of(double *times, int count);

#endif
