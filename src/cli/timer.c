/* timer.c: see timer.h. */
#include "cli/timer.h"

#include "bench.h"
#include "cli/device.h"

#include <stdlib.h>

int open_timer(Timer *t, fusec_device *device, int l2_bytes)
{
    fusec_error error;
    *t = (Timer){.device = device,
                 .flush_bytes = l2_bytes > 0 ? 2 * (size_t)l2_bytes : (size_t)128 << 20};
    int status = finish_call(fusec_event_create(device, &t->begin, &error), &error);
    if (status == EXIT_DONE)
        status = finish_call(fusec_event_create(device, &t->end, &error), &error);
    if (status == EXIT_DONE)
        status = finish_call(fusec_alloc(device, t->flush_bytes, &t->flush, &error), &error);
    return status;
}

void close_timer(Timer *t)
{
    fusec_event_destroy(t->begin);
    fusec_event_destroy(t->end);
    if (t->device) fusec_free(t->device, t->flush);
}

static fusec_status run_timed(Timer *t, Work *work, void *data, double *us, fusec_error *error)
{
    double ms = 0;
    fusec_status status = bench_reset_cache(t->device, error);
    if (status == FUSEC_OK)
        status = fusec_fill_async(t->device, t->flush, 0, t->flush_bytes, NULL, error);
    if (status == FUSEC_OK) status = fusec_event_record(t->begin, NULL, error);
    if (status == FUSEC_OK) status = work(data, error);
    if (status == FUSEC_OK) status = fusec_event_record(t->end, NULL, error);
    if (status == FUSEC_OK) status = fusec_event_elapsed(t->begin, t->end, &ms, error);
    *us = 1e3 * ms;
    return status;
}

int time_once(Timer *t, Work *work, void *data, double *us)
{
    fusec_error error;
    return finish_call(run_timed(t, work, data, us, &error), &error);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *times, int count)
{
    if (count == 0) return 0;
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return times[count / 2];
}

double typical_of(double *times, int count)
{
    double median = median_of(times, count), sum = 0;
    if (median >= SHORT_US) return median;
    int first = count / 4, behind = count - first;
    for (int i = first; i < behind; i++) sum += times[i];
    return count ? sum / (behind - first) : 0;
}

int time_work(Timer *t, Work *work, void *data, double *us)
{
    double times[RUNS], unused;
    int status = EXIT_DONE;
    Progress progress;
    progress_begin(&progress, "timing");
    for (int run = -WARM_UP; run < RUNS && status == EXIT_DONE; run++) {
        progress_step(&progress, (double)(run + WARM_UP) / (RUNS + WARM_UP));
        status = time_once(t, work, data, run < 0 ? &unused : &times[run]);
    }
    progress_end(&progress);
    if (status == EXIT_DONE) *us = typical_of(times, RUNS);
    return status;
}

/* The fills in front take until the host has queued all runs. */
static fusec_status run_queued(Timer *t, Work *work, void *data, double *us, fusec_error *error)
{
    enum { FILLS = 8, QUEUED = 20 };
    double ms = 0;
    fusec_status status = FUSEC_OK;
    for (int i = 0; i < FILLS && status == FUSEC_OK; i++)
        status = fusec_fill_async(t->device, t->flush, 0, t->flush_bytes, NULL, error);
    if (status == FUSEC_OK) status = work(data, error);
    if (status == FUSEC_OK) status = fusec_event_record(t->begin, NULL, error);
    for (int i = 0; i < QUEUED && status == FUSEC_OK; i++) status = work(data, error);
    if (status == FUSEC_OK) status = fusec_event_record(t->end, NULL, error);
    if (status == FUSEC_OK) status = fusec_event_elapsed(t->begin, t->end, &ms, error);
    *us = 1e3 * ms / QUEUED;
    return status;
}

int time_queued(Timer *t, Work *work, void *data, double *us)
{
    enum { ROUNDS = 15 };
    double times[ROUNDS];
    fusec_error error;
    int status = EXIT_DONE;
    for (int i = 0; i < ROUNDS && status == EXIT_DONE; i++)
        status = finish_call(run_queued(t, work, data, &times[i], &error), &error);
    if (status == EXIT_DONE) *us = median_of(times, ROUNDS);
    return status;
}
