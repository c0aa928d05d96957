/* schedule/access.c: how well memory and L2 like the way in which a kernel asks for its rows: whole
 * sectors, long runs, many CTAs in step. Factors of times that cost.c finds. */
#include "schedule/internal.h"

#include <math.h>

/* Bytes of the narrowest element that is read as vectors. Where a warp has little of each row, its
 * stores meet in L2, in whatever pieces they come. */
static int narrowest_read(const Kernel *k)
{
    int bytes = 16;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && dtype_info[k->loads[i].dtype].bytes < bytes)
            bytes = dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

/* How many times as many sectors are read as a warp's lanes need of a row, which begins anywhere in
 * one where rows are not whole sectors. */
double wasted_sectors(const Scheduler *s, const Kernel *k)
{
    enum { SECTOR = 32, PAIR = 2 * SECTOR }; /* L2 fetches sectors by pairs */
    if (k->beside) {
        const int run = WARP / k->lanes * k->vec * narrowest(k);
        return run < SECTOR ? (double)SECTOR / run : 1;
    }
    if (has_several_columns(k)) {
        const AxisSet fastest = (AxisSet)1 << fastest_column(k);
        const double run = (double)axes_size(&s->a->sizes, fastest) * narrowest(k);
        if (run > 0 && fmod(run, SECTOR) > 0) return 1 + SECTOR / run;
    }
    int bytes = narrowest_read(k), lanes = k->threads_per_row < WARP ? k->threads_per_row : WARP;
    if (has_copy_warp(k) || has_bulk_rows(k) || passes_by_blocks(k) || is_copied_by_lines(k))
        return 1;
    if (column_count(s, k) * bytes < SECTOR && !k->stages) return 1; /* L1 has what others read */
    const double run = lanes * k->vec * bytes; /* that a warp reads of a row at a time */
    if (column_count(s, k) * bytes % SECTOR == 0 && run >= SECTOR)
        return run < PAIR ? PAIR / run : 1;
    return 1 + PAIR / run;
}

/* Copies of less than 16 bytes pass through L1, and are more. Single elements of whole warps are
 * what `unaligned` is about. */
static bool copies_narrow_vectors(const Kernel *k)
{
    enum { WIDE = 16 };
    return k->stages && !has_copy_warp(k) && !is_copied_by_lines(k) &&
           (k->vec > 1 || k->threads_per_row < WARP) && narrowest_read(k) * k->vec < WIDE;
}

/* What of memory's rate a kernel gets by how it asks for rows. */
double share_of_rate(const Scheduler *s, const Kernel *k)
{
    static const double PLAIN = 0.83, /* of what only reads and writes rows */
        NARROW = 0.6;
    const Target *t = s->target;
    if (has_bulk_rows(k)) return t->copied;
    if (!is_persistent(k)) return 1;
    if (has_column_accumulators(k)) return is_paced(k) ? 1 : t->loose;
    if (!k->inner_count) return PLAIN * t->loose;
    const bool whole_lines = column_count(s, k) * narrowest(k) % LINE_BYTES == 0;
    return t->walked * (has_copy_warp(k) || whole_lines ? 1 : t->unaligned) *
           (copies_narrow_vectors(k) ? NARROW : 1);
}

/* Elements that a row has side by side, and (gaps) whether what is behind them is no row that
 * the kernel walks next. */
static double run_of_row(const Scheduler *s, const Kernel *k, bool *gaps)
{
    const AxisSet all = s->a->rows | s->a->columns;
    double run = 1;
    *gaps = false;
    for (int axis = s->g->axis_count - 1; axis >= 0; axis--) {
        const AxisSet one = (AxisSet)1 << axis;
        if (!(all & one)) continue;
        if (!(k->columns & one)) {
            *gaps = k->columns & (one - 1) || k->kept & one;
            break;
        }
        run *= (double)s->a->sizes.of[axis];
    }
    return run;
}

/* How many times as much memory moves as is read, where what a row has side by side is short and
 * begins anywhere in the atoms of memory. */
double short_runs(const Scheduler *s, const Kernel *k)
{
    enum { ATOM = 64 };
    bool gaps;
    const double run = run_of_row(s, k, &gaps) * narrowest(k);
    return !k->beside && gaps && run > 0 && fmod(run, ATOM) > 0 ? 1 + ATOM / run : 1;
}

/* How many times as long memory takes where a warp's lanes read many columns of neighbouring
 * rows, or a CTA has few neighbours. */
static double beside_slowdown(const Scheduler *s, const Kernel *k)
{
    static const double OF_RUN = 0.35, OF_ACCESS = 0.3, WHOLE_ACCESS = 8;
    if (!k->beside) return 1;
    const double lanes = k->lanes / s->target->scattered;
    const double run = rows_at_once(k) * narrowest(k) / s->target->whole_run;
    const double access = k->vec * narrowest(k) / WHOLE_ACCESS;
    return (1 + lanes * lanes) * (run < 1 ? pow(run, -OF_RUN) : 1) *
           (access < 1 ? pow(access, -OF_ACCESS) : 1);
}

/* ... where a warp's lanes read little of each of many rows. What is not reduced is read all at
 * once. */
static double narrow_slowdown(const Kernel *k)
{
    enum { WHOLE = 64 };
    static const double NARROW = 0.3;
    const bool at_once = !k->inner_count && !k->accumulator_count && !is_streamed(k);
    const double run = k->threads_per_row * k->vec * narrowest_read(k) * (at_once ? k->tiles : 1);
    return k->beside || run >= WHOLE ? 1 : pow(WHOLE / run, NARROW);
}

/* ... where a kernel that only reads and writes rows does so by a few bytes at a time. */
static double small_accesses(const Kernel *k)
{
    static const double WHOLE = 8, SMALL = 0.12;
    const double bytes = k->vec * narrowest(k);
    const bool plain = !k->inner_count && !k->accumulator_count && !k->beside;
    return plain && bytes > 0 && bytes < WHOLE ? pow(WHOLE / bytes, SMALL) : 1;
}

/* ... where a CTA with sums reads a slice of each row, which is short beside a page of memory. */
static double slice_slowdown(const Scheduler *s, const Kernel *k)
{
    enum { PAGE = 4096 };
    static const double SLICE = 0.02;
    if (k->family != FAMILY_COLUMN || !has_column_parts(k)) return 1;
    const double row = (double)column_count(s, k) * narrowest_read(k),
                 whole = row < PAGE ? row : PAGE, slice = row / k->column_ctas;
    return slice < whole ? pow(whole / slice, SLICE) : 1;
}

double access_slowdown(const Scheduler *s, const Kernel *k)
{
    return beside_slowdown(s, k) * short_runs(s, k) * narrow_slowdown(k) * small_accesses(k) *
           slice_slowdown(s, k);
}
