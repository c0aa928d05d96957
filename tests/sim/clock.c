/* clock.c: see clock.h. Few CTAs know of each other, so blocks are found by walking. */
#include "clock.h"

#include <stdlib.h>

static void *need(void *memory)
{
    if (!memory) abort();
    return memory;
}

uint32_t clock_get(const Clock *clock, int cta, int thread)
{
    for (int i = 0; i < clock->count; i++)
        if (clock->blocks[i].cta == cta) return clock->blocks[i].epochs[thread];
    return 0;
}

static uint32_t *block_of(Clock *clock, int threads, int cta)
{
    for (int i = 0; i < clock->count; i++)
        if (clock->blocks[i].cta == cta) return clock->blocks[i].epochs;
    if (clock->count == clock->capacity) {
        clock->capacity = clock->capacity ? clock->capacity * 2 : 2;
        clock->blocks =
            need(realloc(clock->blocks, (size_t)clock->capacity * sizeof *clock->blocks));
    }
    ClockBlock *block = &clock->blocks[clock->count++];
    block
        ->cta = cta;
    block
        ->epochs = need(calloc((size_t)threads, sizeof *block->epochs));
    return block->epochs;
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
        for (int t = 0; t < threads; t++)
            ours[t] = ours[t] < theirs[t] ? theirs[t] : ours[t];
    }
}

void clock_clear(Clock *clock)
{
    for (int i = 0; i < clock->count; i++) free(clock->blocks[i].epochs);
    free(clock->blocks);
    *clock = (Clock){0};
}
