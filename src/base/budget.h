/* base/budget.h: what one compilation may use, and whether its caller still wants it.
 *
 * The arena asks (base/arena.h): it counts bytes, and every so many allocations it looks at the
 * clock and asks the caller. So every loop that allocates or prints is bounded, in all stages. */
#ifndef FUSEC_BUDGET_H
#define FUSEC_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEFAULT_NODES = 1 << 20, DEFAULT_SECONDS = 600 };
#define DEFAULT_BYTES ((int64_t)4 << 30)

typedef enum {
    NOT_STOPPED,
    STOPPED_BY_NODES,
    STOPPED_BY_SECONDS,
    STOPPED_BY_BYTES,
    STOPPED_BY_CALLER
} Stopped;

typedef struct {
    int64_t nodes, bytes; /* limits; 0: the defaults */
    double seconds;
    int32_t (*is_cancelled)(void *data); /* NULL: never; nonzero: the caller has cancelled */
    void *data;
    double deadline; /* by seconds_now(); set by budget_begin */
    int64_t used;    /* bytes of the arenas that count here */
    int countdown;   /* allocations until the next question */
    Stopped stopped; /* never goes back to none */
} Budget;

double seconds_now(void); /* monotonic */
/* Fills in the defaults and starts the clock. */
void budget_begin(Budget *budget);
/* Whether to continue: looks at the clock and asks the caller. */
bool budget_ask(Budget *budget);
/* Why it stopped, with the limit, its value and its options. */
void budget_reason(const Budget *budget, char *text, size_t size);

#endif
