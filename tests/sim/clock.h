/* clock.h: vector clocks. A thread's epoch grows whenever it releases something; a clock
 * says up to which epoch of each thread everything happened before. Clocks are kept by
 * CTA: a kernel whose CTAs do not talk has clocks of one block. */
#ifndef FUSEC_SIM_CLOCK_H
#define FUSEC_SIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int cta;
    uint32_t *epochs; /* by thread of the CTA */
} ClockBlock;

typedef struct {
    ClockBlock *blocks;
    int count, capacity;
} Clock;

/* Few CTAs know of each other, so blocks are found by walking. */
static inline uint32_t clock_get(const Clock *clock, int cta, int thread)
{
    for (int i = 0; i < clock->count; i++)
        if (clock->blocks[i].cta == cta) return clock->blocks[i].epochs[thread];
    return 0;
}

/* All functions that raise a clock take the number of threads of a CTA. */
void clock_raise(Clock *clock, int threads, int cta, int thread, uint32_t epoch);
void clock_join(Clock *to, const Clock *from, int threads);
void clock_clear(Clock *clock);

/* Clocks that there was no memory for know nothing from then on; whoever judges by them asks first.
 * Of this thread. */
bool clocks_ran_out(void);
void clocks_begin(void); /* and forgets that */

#endif
