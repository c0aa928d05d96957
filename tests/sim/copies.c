/* copies.c: cp.async. A copy begins when it is issued and ends, at the latest, when its
 * thread waits for its group: here at either end, as the seed has it. Between the two
 * nobody may touch the place it goes to; the other threads need a barrier after the wait
 * (PTX ISA, cp.async). */
#include "state.h"

#include <stdlib.h>
#include <string.h>

static void mark_cells(const Thread *t, const Copy *copy, bool pending)
{
    Cell *cells = &t->cta->cells[copy->to - t->cta->smem];
    for (size_t i = 0; i < copy->size; i++)
        cells[i].flags =
            (cells[i].flags & ~(uint32_t)CELL_PENDING) | (pending ? CELL_PENDING : 0);
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

void begin_copy(void *machine, void *to, const void *from, size_t size, void *at)
{
    Machine *m = machine;
    Thread *t = m->current;
    const Copy copy = {to, from, size, t->groups, place_of(m, at)};
    check_place(m, &copy);
    touch_memory(m, from, size, SIM_READ, 1, at);
    touch_memory(m, to, size, SIM_WRITE, 1, at);
    if (t->copy_count == t->copy_capacity) {
        t->copy_capacity = t->copy_capacity ? 2 * t->copy_capacity : 16;
        t->copies = realloc(t->copies, (size_t)t->copy_capacity * sizeof *t->copies);
        if (!t->copies) abort();
    }
    t->copies[t->copy_count++] = copy;
    mark_cells(t, &copy, true);
    if (random_below(m, 2))
        memcpy(copy.to, copy.from, copy.size);
    else
        memset(copy.to, 0xff, copy.size);
}

void commit_copies(void *machine)
{
    Machine *m = machine;
    m->current->groups++;
}

static void end_copy(Machine *m, const Copy *copy)
{
    mark_cells(m->current, copy, false);
    memcpy(copy->to, copy->from, copy->size);
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
