/* clock.c: see clock.h. */
#include "clock.h"

#include <stdlib.h>

enum { MOST_ACTORS = 4096 };

static _Thread_local bool ran_out;
/* What is raised in place of a block that is not there. */
static _Thread_local uint32_t spare[MOST_ACTORS];

bool clocks_ran_out(void)
{
    return ran_out;
}
void clocks_begin(void)
{
    ran_out = false;
}

static uint32_t *no_block(void)
{
    ran_out = true;
    return spare;
}

static uint32_t *block_of(Clock *clock, int threads, int cta)
{
    for (int i = 0; i < clock->count; i++)
        if (clock->blocks[i].cta == cta) return clock->blocks[i].epochs;
    if (clock->count == clock->capacity) {
        const int capacity = clock->capacity ? clock->capacity * 2 : 2;
        ClockBlock *blocks = realloc(clock->blocks, (size_t)capacity * sizeof *blocks);
        if (!blocks) return no_block();
        clock->blocks = blocks;
        clock->capacity = capacity;
    }
    uint32_t *epochs = calloc((size_t)threads, sizeof *epochs);
    if (!epochs) return no_block();
    clock->blocks[clock->count++] = (ClockBlock){cta, epochs};
    return epochs;
}

void clock_raise(Clock *clock, int threads, int cta, int thread, uint32_t epoch)
{
    uint32_t *at = &block_of(clock, threads, cta)[thread];
    if (*at < epoch) *at = epoch;
}

void clock_join(Clock *to, const Clock *from, int threads)
{
    for (int i = 0; i < from->count; i++) {
        const uint32_t *theirs = from->blocks[i].epochs;
        uint32_t *ours = block_of(to, threads, from->blocks[i].cta);
        for (int t = 0; t < threads; t++) ours[t] = ours[t] < theirs[t] ? theirs[t] : ours[t];
    }
}

void clock_clear(Clock *clock)
{
    for (int i = 0; i < clock->count; i++) free(clock->blocks[i].epochs);
    free(clock->blocks);
    *clock = (Clock){0};
}
