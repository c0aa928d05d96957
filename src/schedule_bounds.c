/* schedule_bounds.c: how many CTAs of a kernel an SM is to hold, where ptxas is told: it trades registers for
 * them, and by itself does not always choose well. */
#include "scheduling.h"

static bool holds_columns(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].resident && k->loads[i].hoisted) return true;
    return false;
}

/* The threads that an SM should have of a kernel with two column vectors in its registers: as many as leave a thread
 * registers enough, of which short vectors take more. */
static int wanted_threads(const Kernel *k)
{
    enum { WANTED = 1280, MIDDLE = 1152, NARROW = 1024 };
    if (!holds_columns(k) || k->vec == MAX_VECTOR || row_bytes(k) > 2) return WANTED;
    return k->vec == MAX_VECTOR / 2 ? MIDDLE : NARROW;
}

/* Whether ptxas may take so many registers that an SM holds a CTA or two only: of a mean and its squares, where the row
 * stays in registers, with many threads (layer norm of 11008 columns 86 %, of 12000 50 % faster when told; measured
 * on an H100), or with 128 where the last tile is checked (3584 columns: 96 registers, with which it is 25 % slower). */
static bool may_take_sm(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 128, MOST = 512, ELEMENTS = 32 };
    int threads = kernel_threads(k);
    bool whole = k->vec == MAX_VECTOR, few = whole && threads == LEAST && k->ragged;
    bool many = threads > LEAST && threads <= MOST;
    return has_moments(s, k) && k->cluster == 1 && k->teams == 1 && (few || many) &&
           k->vec * k->tiles <= ELEMENTS && row_bytes(k) <= 2;
}

/* The same in CTAs that have a part of one row each, which an SM then reads up to twice as much of at a time (layer norm
 * of 7168 and 13312 columns by pairs 31 and 41 % faster when told). */
static bool may_take_sm_for_one(const Scheduler *s, const Kernel *k)
{
    enum { ELEMENTS = 32 };
    if (!fills_warps(column_count(s, k), k->cluster)) return false;
    return k->single && has_moments(s, k) && k->vec == MAX_VECTOR && k->vec * k->tiles <= ELEMENTS && row_bytes(k) <= 2;
}

/* How many CTAs an SM should hold, where ptxas is to be told. With a ring it is what was
 * planned: left alone, ptxas may spill for one more or take the registers of one. A row
 * kernel hides latency by threads, and where two column vectors are read, ptxas leaves
 * too few; packed in registers they count for less. (Others it must not be told: it would
 * take all that it may.) */
void set_wanted_ctas(const Scheduler *s, Kernel *k)
{
    enum { SEVERAL = 1088, SINGLE = 1024, LIGHT = 60, PACKED = 80, MOST_CTAS = 16 };
    int threads = kernel_threads(k), room = s->target->threads_per_sm / threads;
    k->wanted_ctas = k->stages || k->refill ? k->ctas_per_sm
                     : !reads_again(s, k)   ? 0
                     : room < MOST_CTAS     ? room
                                            : MOST_CTAS;
    if (k->by_blocks) k->wanted_ctas = block_ctas(s, k);
    if (may_take_sm_for_one(s, k)) k->wanted_ctas = SINGLE / threads;
    if (k->by_blocks || k->stages || k->refill || k->single || !k->inner_count || k->streamed || k->dynamic) return;
    int most = holds_columns(k) ? PACKED : LIGHT, wanted = wanted_threads(k);
    bool hungry = column_vectors(k) > 1 && k->registers <= most;
    if (hungry && k->vec * k->tiles <= 16 && threads > WARP && threads <= wanted)
        k->wanted_ctas = wanted / threads;
    else if (may_take_sm(s, k) && !k->wanted_ctas)
        k->wanted_ctas = SEVERAL / threads;
}
