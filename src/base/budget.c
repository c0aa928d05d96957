/* base/budget.c: see base/budget.h. */
#include "base/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { QUESTION_EVERY = 256 };

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void budget_begin(Budget *budget)
{
    if (!budget->nodes) budget->nodes = DEFAULT_NODES;
    if (!budget->bytes) budget->bytes = DEFAULT_BYTES;
    if (!(budget->seconds > 0)) budget->seconds = DEFAULT_SECONDS;
    budget->deadline = seconds_now() + budget->seconds;
    budget->countdown = QUESTION_EVERY;
    budget->stopped = NOT_STOPPED;
    budget->used = 0;
}

bool budget_ask(Budget *budget)
{
    budget->countdown = QUESTION_EVERY;
    if (budget->stopped) return false;
    if (budget->is_cancelled && budget->is_cancelled(budget->data))
        budget->stopped = STOPPED_BY_CALLER;
    else if (seconds_now() > budget->deadline)
        budget->stopped = STOPPED_BY_SECONDS;
    else if (budget->used > budget->bytes)
        budget->stopped = STOPPED_BY_BYTES;
    return !budget->stopped;
}

void budget_reason(const Budget *budget, char *text, size_t size)
{
    switch (budget->stopped) {
    case NOT_STOPPED: snprintf(text, size, "the compilation was not stopped"); break;
    case STOPPED_BY_NODES:
        snprintf(text, size,
                 "the graph has over %" PRId64
                 " operations, its limit: option max_nodes, or --limit nodes=N",
                 budget->nodes);
        break;
    case STOPPED_BY_SECONDS:
        snprintf(
            text, size,
            "compiling takes over %g seconds, its limit: option max_seconds, or --limit seconds=S",
            budget->seconds);
        break;
    case STOPPED_BY_BYTES:
        snprintf(text, size,
                 "compiling takes over %" PRId64
                 " bytes of memory, its limit: option max_bytes, or --limit bytes=B",
                 budget->bytes);
        break;
    case STOPPED_BY_CALLER: snprintf(text, size, "the compilation was cancelled"); break;
    }
}
