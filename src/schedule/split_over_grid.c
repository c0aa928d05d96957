/* schedule/split_over_grid.c: rows that nothing on chip has room for, and the columns of a graph
 * without rows. One CTA would read such a row at a thirtieth of the memory's speed, while the other
 * SMs have none: a group of CTAs shares it. Each reads its slice anew in each phase, and after a
 * phase they exchange through global memory. */
#include "schedule/internal.h"

/* Whether CTAs can share a row so: those of a group live at once and listen by barriers in shared
 * memory. */
static bool may_share_streams(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    bool other = (f->any && f->family != FAMILY_ROW) || f->rows > 1 || f->stages > 1 || f->bulk ||
                 f->threads == WARP;
    bool whole = !k->kept && !k->dynamic && k->column_ctas == 1;
    return !other && whole && k->inner_count && !k->accumulator_count && s->target->bulk_copy;
}

/* A multiple of 32, for the lanes of a warp listen; as many as there are SMs for at most. */
static int group_for(const Scheduler *s, int64_t wanted)
{
    int ctas = WARP;
    while (ctas < wanted && 2 * ctas <= s->target->sms) ctas *= 2;
    return ctas <= s->target->sms ? ctas : 0;
}

/* How many CTAs read a row anew in each phase; 1: it has not so many, or stays on chip. A row has
 * 64, of which an SM has two: with 32 four rows more are under way, which the L2 cache has no room
 * for, with 128 all wait for one row (2 to 16 million columns; of layer norm of 2 and 4 million 32
 * are 5 % faster, of softmax_bwd 30 % slower). A graph without rows has as many as have something
 * to do: from 64 thousand columns on an exchange costs less than one CTA takes to read them twice,
 * from 192 thousand on less than to read them once (all measured on an H100). */
static int streaming_group(const Scheduler *s, const Kernel *k, bool on_chip)
{
    enum { LONG_BYTES = 2 << 20, CTAS = 64, ONCE = 196608, TWICE = 65536, SLICE = 8192 };
    const Schedule *f = &s->forced;
    int64_t columns = column_count(s, k);
    if (!may_share_streams(s, k)) return 1;
    if (f->cluster > s->target->max_cluster)
        return f->cluster % WARP || impossible_cluster(s) ? 1 : f->cluster;
    if (f->cluster || f->reads > 1) return 1;
    bool flat = !k->rows && columns >= (k->phases > 1 ? TWICE : ONCE);
    bool long_row = k->rows && !on_chip && columns * row_bytes(k) >= LONG_BYTES;
    int ctas = flat ? group_for(s, columns / SLICE) : long_row ? group_for(s, CTAS) : 0;
    return ctas ? ctas : 1;
}

/* Two CTAs an SM have different rows: one reads while the other waits for its group. */
bool share_streams(const Scheduler *s, Kernel *k, bool on_chip)
{
    enum { THREADS = 480, LEAST = 2 * WARP };
    int ctas = streaming_group(s, k, on_chip);
    int64_t vectors = ceil_div(ceil_div(column_count(s, k), k->vec), ctas),
            warps = ceil_div(vectors, WARP);
    int threads = s->forced.threads        ? s->forced.threads
                  : warps * WARP < THREADS ? (int)warps * WARP
                                           : THREADS;
    if (ctas == 1 || vectors < LEAST || threads + WARP > MOST_THREADS) return false;
    k->cluster = ctas;
    k->grouped = k->streamed = true;
    k->copy_warp = k->single = k->bulk = false;
    k->lag = 0;
    k->teams = 1;
    k->threads_per_row = threads;
    k->tiles = (int)ceil_div(vectors, threads);
    (void)keep_nothing(s, k);
    k->ctas_per_sm = k->rows ? 2 : 1;
    return true;
}
