/* schedule/short_rows.c: rows for which a warp or a part of one is enough: how many threads each
 * has, and how many threads a CTA, which walks several of them. */
#include "schedule/internal.h"

static int power_of_two_from(int64_t n)
{
    int p = 1;
    while (p < n) p *= 2;
    return p;
}

/* Whether a lane has registers for three vectors of all that is read of a row: not of many inputs
 * or column vectors, beside column vectors of f32 where rows meet more than once, or beside sums
 * that a third phase reads the row for. */
static bool has_room_for_three(const Kernel *k)
{
    enum { THREE = 3, BYTES = 192, TWO = 2 };
    bool heavy = exchanges_often(k) && has_wide_columns(k);
    if (heavy || (k->accumulator_count && k->phases > TWO)) return false;
    return column_bytes(k, 1) * THREE * full_vector(k) <= BYTES;
}

/* Rows of up to 64 vectors; and longer ones that meet in a warp's registers for less than through
 * shared memory: of up to 176 vectors with several exchanges (rmsnorm with its largest element of
 * 520 to 768 columns 17 to 21 %, of 832 to 1408 4 to 15 % faster, of 1024 as fast), of up to 88
 * with one of more than a sum (layer norm of 520 to 704 columns 6 to 11 %, softmax of 520 to 640 4
 * to 14 % faster; rmsnorm of 576 and more 1 to 2 % slower; measured on an H100). */
bool is_short_row(const Scheduler *s, const Kernel *k, int64_t full)
{
    enum { LONGEST = 2 * WARP, MEETING = 88, OFTEN = 176 };
    if (full <= LONGEST) return true;
    bool alone = k->inner_count && !k->accumulator_count && k->cluster == 1 && !k->dynamic;
    if (!alone || row_bytes(k) > 2 || k->vec < full_vector(k) || !has_room_for_three(k))
        return false;
    if (exchanges_often(k)) return full <= OFTEN;
    return full <= MEETING && (has_moments(s, k) || !column_vectors(k));
}

/* Whether what a row takes beside its elements, to meet, is much of the work: then few threads with
 * two vectors each do it for less (layer norm of 64, 128 and 256 columns 6 to 9 % faster, in f16 6
 * to 10 %, rmsnorm with its largest element 13 to 17 %, layer norm's backward pass of 128 and 256
 * columns 4 to 5 %; measured on an H100). Of a sum of two inputs, one sum over rows, or f32, memory
 * takes longer than that (0 to 2 % slower). */
static bool meets_long(const Scheduler *s, const Kernel *k)
{
    bool narrow = row_bytes(k) <= 2 * row_inputs(k);
    if (k->accumulator_count) return narrow && accumulator_registers(s, k) >= 2;
    return exchanges_often(k) || (has_moments(s, k) && row_inputs(k) == 1);
}

/* Whether three vectors a thread leave fewer lanes idle than one does. Not where memory takes
 * longer all the same: very short rows of several inputs without a mean and its squares
 * (softmax_bwd of 96 columns 3 % slower) or with one sum over rows (rmsnorm's backward pass of 40
 * and 48 columns 2 to 5 %), and f32 with sums over rows (of 144 and 192 columns 2 to 3 %). */
static bool takes_three(const Scheduler *s, const Kernel *k, int64_t full, int lanes)
{
    enum { PARTS = 4, TWO = 2 };
    bool narrow = row_bytes(k) <= 2 * row_inputs(k);
    if (full > lanes / PARTS * (PARTS - 1)) return false;
    if (!k->accumulator_count) return lanes >= WARP || row_inputs(k) == 1 || has_moments(s, k);
    if (!narrow) return lanes >= WARP / 2 && lanes <= WARP;
    return lanes >= WARP / 2 || accumulator_registers(s, k) >= TWO;
}

/* Among how many times fewer threads a row is shared than it has full vectors, counted as a power
 * of two. Vectors of a quarter of the width and less have as many threads as there are (77 columns
 * by fewer 20 to 90 % slower), and so have the rows of groups that a warp sums in rings (256 rows
 * of 384 columns each 9 % slower by half a warp). */
static int share_of_lanes(const Scheduler *s, const Kernel *k, int64_t full, int lanes)
{
    int pack = full_vector(k) / k->vec;
    bool ring_of_groups = k->kept && lanes > WARP;
    if (!k->inner_count || pack > 2 || ring_of_groups || !has_room_for_three(k)) return 1;
    if (takes_three(s, k, full, lanes)) return 4 / pack;
    return meets_long(s, k) ? 2 : 1;
}

/* Up to 32 lanes, at least four, so that neighbours read 64 bytes. A lane has one full vector or,
 * where meets_long tells, two; but three, where those are full or nearly: of twelve vectors four
 * lanes have three each (rows of 40, 48, 72 to 96, 144 to 192 and 320 columns: layer norm 11 to 35
 * %, softmax 6 to 26 %, rmsnorm 3 to 13 %, rmsnorm with its largest element 10 to 33 %, layer
 * norm's backward pass 9 to 27 % faster; measured on an H100); of vectors of half the width three
 * or four. */
int short_row_threads(const Scheduler *s, const Kernel *k, int64_t vectors, int64_t full)
{
    enum { LEAST = 4 };
    int lanes = power_of_two_from(full), threads = lanes / share_of_lanes(s, k, full, lanes);
    int least = power_of_two_from(vectors < LEAST ? vectors : LEAST);
    if (threads < least) return least;
    return threads < WARP ? threads : WARP;
}

/* Threads of a CTA of such rows: few, but where all lanes have as many vectors, or narrow ones of
 * several inputs (of 40, 48, 72, 144 and 320 columns layer norm 1 to 11 %, rmsnorm 2 to 9 %,
 * softmax 2 to 4 % faster by 128 than by 256 threads); a sum beside column vectors then has many
 * (rmsnorm of 64, 128 and 256 columns 1 to 2 %, of a sum 0 to 1 % faster by 512; layer norm 3 to 4
 * % slower). Several exchanges, or sums over rows, have few all the same (1 to 4 %; 4 to 17 %;
 * measured on an H100). */
int short_row_cta(const Scheduler *s, const Kernel *k, int64_t full)
{
    enum { SMALL = 128, MIDDLE = 256, LARGE = 512 };
    if (!k->inner_count) return has_column_accumulators(k) ? SUM_THREADS : MIDDLE;
    if (has_column_accumulators(k)) return SMALL;
    bool narrow = k->vec < full_vector(k),
         large = column_vectors(k) && !has_moments(s, k) && !narrow;
    if (narrow && row_inputs(k) > 1) return MIDDLE;
    if (exchanges_often(k) || full != power_of_two_from(full)) return SMALL;
    return large ? LARGE : MIDDLE;
}
