/* schedule/tiles.c: which columns each CTA and each thread has, once threads, vectors and tiles are
 * known: slices, whole tiles, and those that are checked against the row's end. */
#include "schedule/internal.h"

/* CTAs that share a row have as many columns each: in whole lines of memory where the row is
 * copied, in vectors of 16 bytes where registers take it; but never more than their warps
 * have vectors. Those that read it anew in each phase take turns along it instead, so that they
 * read what lies together. */
void set_slice(const Scheduler *s, Kernel *k)
{
    int unit = (k->refill ? 16 : LINE_BYTES) / narrowest(k);
    if (unit > k->vec * WARP) unit = k->vec * WARP;
    int64_t units = ceil_div(ceil_div(column_count(s, k), k->cluster), unit);
    k->slice = k->cluster > 1 && !k->streamed ? (int)units * unit : 0;
    k->uneven = k->slice && (int64_t)k->slice * k->cluster != column_count(s, k);
}

/* Two sums of 32 columns each leave 512 threads no register over. If their tiles are checked
 * against the row's end, though all are full, ptxas computes one after the other; else it spills
 * (layernorm_bwd of 131072 columns by eight CTAs 40 bytes). */
static bool checks_full_tiles(const Scheduler *s, const Kernel *k)
{
    enum { MANY_THREADS = 512, MANY = 32 };
    bool many = kernel_threads(k) >= MANY_THREADS && k->vec * k->tiles >= MANY;
    return many && accumulator_registers(s, k) >= 2 && k->teams == 1 && !k->copy_warp;
}

void set_ragged(const Scheduler *s, Kernel *k)
{
    enum { FEW_TILES = 4 };
    int64_t tiles = (int64_t)k->threads_per_row * k->vec * k->tiles, ctas = k->column_ctas;
    bool full = k->slice ? k->slice == tiles && !k->uneven : column_count(s, k) == tiles * ctas;
    bool checked = s->forced.exact ? s->forced.checked : checks_full_tiles(s, k);
    k->checked = full && checked;
    k->full = full && !k->checked && !k->streamed && !k->dynamic;
    k->ragged = (has_element_work(s->g, k) && !full) || k->checked ||
                (k->streamed && (k->dynamic || k->grouped || k->tiles > FEW_TILES));
}

/* Whether all of a row's elements are a CTA's or cluster's, in tiles that are unrolled. */
static bool has_whole_tiles(const Kernel *k)
{
    return !k->streamed && !k->dynamic && k->column_ctas == 1;
}

void set_full_tiles(const Scheduler *s, Kernel *k)
{
    int64_t least = column_count(s, k) - (int64_t)k->slice * (k->slice ? k->cluster - 1 : 0);
    int64_t full = least / ((int64_t)k->threads_per_row * k->vec);
    k->full_tiles = !k->ragged ? k->tiles : full > 0 ? (int)full : 0;
}

bool may_leave_open(const Kernel *k)
{
    return has_whole_tiles(k) && k->ragged && k->tiles > 1 && k->full_tiles == k->tiles - 1;
}

bool may_take_whole_moments(const Scheduler *s, const Kernel *k)
{
    return has_whole_tiles(k) && has_moments(s, k) && k->threads_per_row >= WARP;
}

/* With more tiles ptxas computes those that are full all at once, and spills. To join a mean and
 * its squares with every vector takes short vectors more instructions than to find them at once, by
 * the warp (layer norm of 8190 columns 41 % faster so, of 1990, 3004 and 4092 3 to 4 %, of 20479 11
 * %, of 1987, 4095 and 8191 1 to 3 %; of whole vectors no faster, in f16 of 2048 2 % slower;
 * measured on an H100). */
void set_open_tile(const Scheduler *s, Kernel *k)
{
    enum { FEW = 4, NARROW = 2, ELEMENTS = 48, FULL_BYTES = 16 };
    set_full_tiles(s, k);
    bool one = row_inputs(k) == 1 && k->vec < full_vector(k) && k->vec * row_bytes(k) < FULL_BYTES;
    bool narrow = k->vec <= NARROW || one;
    k->open_tile = may_leave_open(k) && k->tiles <= FEW;
    k->whole_moments = may_take_whole_moments(s, k) && narrow && k->vec * k->tiles <= ELEMENTS;
}
