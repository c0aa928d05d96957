/* shadow.h: what is known of memory, a cell for each granule (a byte of shared memory, an element of global memory).
 *
 * Granules that are used together know the same. So the cells of 16 bytes, a block, are one grain at first: one cell stands for
 * all. An access to a part of a grain cuts the block's grains in halves, and an access to a whole block makes one grain of it
 * again where all its cells know the same. */
#ifndef FUSEC_SIM_SHADOW_H
#define FUSEC_SIM_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CELL_READERS = 2, BLOCK_BYTES = 16 };

/* `by` are actors counted over all launches, from 1: a CTA's threads, then its copy engines, one a
 * transaction barrier. */
typedef struct {
    uint32_t by, epoch, at;
} Touch;

enum { CELL_WRITABLE = 1, CELL_WRITTEN = 2, CELL_ATOMIC = 4, CELL_PENDING = 8, CELL_BARRIER = 16 };

typedef struct {
    Touch write, read[CELL_READERS];
    uint32_t flags;
} Cell;

/* All zeros: nothing is known. */
typedef struct {
    Cell *cells;   /* the first of each block, then the second of each, ... */
    uint8_t *cuts; /* by block: how often its grains were halved */
    size_t blocks;
    unsigned block; /* cells of one, a power of two */
} Shadow;

static inline size_t shadow_bytes(size_t blocks, size_t block)
{
    return blocks * (block * sizeof(Cell) + 1);
}

/* In memory of so many bytes, which holds zeros. */
static inline Shadow shadow_in(void *memory, size_t blocks, size_t block)
{
    Cell *cells = memory;
    return (Shadow){cells, (uint8_t *)(cells + blocks * block), blocks, (unsigned)block};
}

static inline Cell *shadow_cell(const Shadow *s, size_t block, size_t i)
{
    return &s->cells[i * s->blocks + block];
}

/* What is known of a granule; of so many others behind it the same is. */
static inline const Cell *shadow_look(const Shadow *s, size_t at, size_t *alike)
{
    const size_t block = at / s->block, i = at % s->block, grain = s->block >> s->cuts[block];
    *alike = grain - i % grain;
    return shadow_cell(s, block, i & ~(grain - 1));
}

/* The cell of a grain that begins at `at` and ends before `end`, to be changed; the granules that it stands for. */
static inline Cell *shadow_grain(Shadow *s, size_t at, size_t end, size_t *granules)
{
    const size_t block = at / s->block, i = at % s->block;
    size_t grain = s->block >> s->cuts[block];
    while (i % grain || at + grain > end) {
        for (size_t first = 0; first < s->block; first += grain)
            *shadow_cell(s, block, first + grain / 2) = *shadow_cell(s, block, first);
        grain /= 2;
        s->cuts[block]++;
    }
    *granules = grain;
    return shadow_cell(s, block, i);
}

/* After an access to the granules from `first` on: makes whole blocks one grain where that loses nothing. */
static inline void shadow_join(Shadow *s, size_t first, size_t end)
{
    for (size_t block = (first + s->block - 1) / s->block; (block + 1) * s->block <= end; block++) {
        const size_t grain = s->block >> s->cuts[block];
        size_t i = grain;
        while (i < s->block &&
               !memcmp(shadow_cell(s, block, i), shadow_cell(s, block, 0), sizeof(Cell)))
            i += grain;
        if (i >= s->block) s->cuts[block] = 0;
    }
}

/* Forgets all of the blocks that hold granules from `first` to before `end`. */
static inline void shadow_forget(Shadow *s, size_t first, size_t end)
{
    if (first >= end) return;
    const size_t from = first / s->block, blocks = (end - 1) / s->block + 1 - from;
    memset(s->cells + from, 0, blocks * sizeof *s->cells);
    memset(s->cuts + from, 0, blocks);
}

#endif
