/* copies.c: cp.async. A copy begins when it is issued and ends, at the latest, when its
 * thread waits for its group: here at either end, as the seed has it. Between the two
 * nobody may touch the place it goes to; the other threads need a barrier after the wait
 * (PTX ISA, cp.async). */
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

static void mark_cells(const Thread *t, const Copy *copy, bool pending)
{
    const size_t first = (size_t)(copy->to - t->cta->smem), end = first + copy->size;
    for (size_t at = first, bytes; at < end; at += bytes) {
        Cell *cell = shadow_grain(&t->cta->shadow, at, end, &bytes);
        cell->flags = (cell->flags & ~(uint32_t)CELL_PENDING) | (pending ? CELL_PENDING : 0);
    }
}

static void check_place(Machine *m, const Copy *copy)
{
    const size_t place = (size_t)(copy->to - m->current->cta->smem);
    if (place >= m->smem_size)
        fault(m, copy->at,
              "an asynchronous copy goes to memory that is not the CTA's shared memory");
    if (copy->size != 4 && copy->size != 8 && copy->size != 16)
        fault(m, copy->at, "an asynchronous copy of %zu bytes", copy->size);
}

static void move_bytes(const Machine *m, const Copy *copy)
{
    copy_blocks(m, copy->to, copy->from, copy->read);
    memset(copy->to + copy->read, 0, copy->size - copy->read);
}

static void begin(Machine *m, Copy copy, void *at)
{
    Thread *t = m->current;
    check_place(m, &copy);
    touch_memory(m, copy.to, copy.size, SIM_WRITE, 1, at);
    if (t->copy_count == t->copy_capacity) {
        const int capacity = t->copy_capacity ? 2 * t->copy_capacity : 16;
        Copy *grown = realloc(t->copies, (size_t)capacity * sizeof *grown);
        if (!grown) fault_out_of_memory(m);
        t->copies = grown;
        t->copy_capacity = capacity;
    }
    t->copies[t->copy_count++] = copy;
    mark_cells(t, &copy, true);
    if (random_below(m, 2))
        move_bytes(m, &copy);
    else
        memset(copy.to, 0xff, copy.size);
}

void begin_copy(void *machine, void *to, const void *from, size_t size, void *at)
{
    Machine *m = machine;
    touch_memory(m, from, size, SIM_READ, 1, at);
    begin(m, (Copy){to, from, size, size, m->current->groups, place_of(m, at)}, at);
}

/* A block of which the first bytes are copied; it may begin before a buffer does, as bulk copies
 * may, but not end behind it. */
void begin_block(void *machine, void *to, const void *from, int bytes, void *at)
{
    Machine *m = machine;
    if (bytes <= 0)
        fault(m, place_of(m, at), "a block is copied of which %d bytes are wanted", bytes);
    const size_t read = bytes < BLOCK ? (size_t)bytes : BLOCK;
    if ((uintptr_t)from % BLOCK)
        fault(m, place_of(m, at),
              "misaligned: a block is copied from an address that is %zu past a multiple of 16",
              (size_t)((uintptr_t)from % BLOCK));
    touch_blocks(m, from, read, at);
    touch_memory(m, (const char *)from + read - 1, 1, SIM_READ, 1, at);
    begin(m, (Copy){to, from, BLOCK, read, m->current->groups, place_of(m, at)}, at);
}

void commit_copies(void *machine)
{
    Machine *m = machine;
    m->current->groups++;
}

static void end_copy(Machine *m, const Copy *copy)
{
    mark_cells(m->current, copy, false);
    move_bytes(m, copy);
    note_landing(m, copy);
}

void wait_for_copies(void *machine, int left)
{
    Machine *m = machine;
    Thread *t = m->current;
    int kept = 0;
    switch_away(m);
    for (int i = 0; i < t->copy_count; i++) {
        if (t->copies[i].group < t->groups - left)
            end_copy(m, &t->copies[i]);
        else
            t->copies[kept++] = t->copies[i];
    }
    t->copy_count = kept;
}
