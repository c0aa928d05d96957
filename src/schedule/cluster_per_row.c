/* schedule/cluster_per_row.c: rows that a cluster has by itself, in registers, without another
 * after them: the CTAs of an SM have different rows, and while those of one wait for each other the
 * rest read and store. */
#include "schedule/internal.h"

#include <limits.h>

/* Whether slices of up to 4096 columns are whole warps with 32 columns a thread. */
bool fills_slices_of_f32(int64_t columns)
{
    enum { SLICE = 4096, UNIT = 32 * WARP };
    int ctas = 2;
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    return columns % ((int64_t)UNIT * ctas) == 0;
}

/* Rows of which one input is read, up to 2 bytes a column, and a maximum meets the sum under it,
 * whatever the places. */
static bool is_plain_softmax(const Scheduler *s, const Kernel *k)
{
    if (!is_light(s, k) || compares_places(s, k)) return false;
    for (int i = 0; i < k->inner_count; i++)
        if (node(s->g, k->inner[i].partner)->op == OP_MAX_OVER) return true;
    return false;
}

bool is_scaled_by_sum(const Scheduler *s, const Kernel *k)
{
    bool known =
        s->target->timed && !has_fast_memory(s) && k->inner_count == 1 && row_inputs(k) == 1;
    return known && adds_terms(node(s->g, k->inner[0].node)->op) && column_vectors(k) == 1 &&
           (column_bytes(k, 0) == row_bytes(k) || column_bytes(k, 0) == 2 * row_bytes(k)) &&
           stored_rows(k) == 1 && narrowest_stored(k) == row_bytes(k) && !k->accumulator_count;
}

/* How many CTAs share a row of 2 bytes an element with two vectors a thread; 0: it is not shared
 * so. Many rows are 0 to 3 % faster than by one CTA of up to 1024 threads, all of which wait at its
 * barriers, and a few take 6 to 40 % less time: rmsnorm and softmax of 12288, 14336 and 16384
 * columns by four, rmsnorm of a sum by eight, where their warps are full (measured on an H100). But
 * softmax of 12288 is 0.7 %, cross entropy, which exchanges more, 20 % slower. Softmax of 6144 to
 * 8192 columns by two takes 1 to 5 % less time for a few rows, and as much for many (of 5120 2 %,
 * causal softmax 18 % more), rmsnorm of 7168 and 8192 up to 8 % less for 200 to 1000 rows (of 5120
 * and 6144 1 to 2 % more for a few). */
int few_vector_ctas(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 12288, LONG = 16384, PAIRED = 6144, PAIRED_SUMS = 7168, PAIRED_TOO = 8192 };
    enum { TWO = 2, FOUR = 4, EIGHT = 8, EACH = TWO * MAX_VECTOR * WARP };
    int64_t columns = column_count(s, k), shortest = is_light(s, k) ? SHORT + 1 : SHORT;
    bool plain = k->phases == TWO && k->vec == MAX_VECTOR && row_bytes(k) == 2 * row_inputs(k) &&
                 narrowest_stored(k) >= 2;
    bool some = row_inputs(k) == 1 || (row_inputs(k) == TWO && column_vectors(k));
    bool once = !has_moments(s, k) && !exchanges_often(k);
    bool paired = columns >= PAIRED && columns <= PAIRED_TOO && columns % (TWO * EACH) == 0;
    if (!plain || !some || !once || s->forced.cluster) return 0;
    bool sum = is_scaled_by_sum(s, k) && columns >= PAIRED_SUMS;
    if (paired && (sum || is_plain_softmax(s, k))) return s->forced.rows > 1 ? 0 : TWO;
    if (columns < shortest || columns > LONG) return 0;
    if (row_inputs(k) == TWO && columns % (EIGHT * EACH) == 0) return EIGHT;
    return columns % (FOUR * EACH) ? 0 : FOUR;
}

/* Rows that a cluster takes one at a time: measured on an H100, over rings, refilled registers and
 * reading again. Rmsnorm and softmax of 32768 to 262144 columns 1 to 5 %, softmax_bwd 1 to 5 %,
 * masked softmax 19 %, f32 3 to 5 %, odd rows 20 to 30 % faster. Of two bytes an element shorter
 * ones, too, for a CTA of 700 to 1000 threads has the SM to itself: rmsnorm of 11008 to 16000
 * columns 24 to 42 %, of 20480 4 %, softmax of 9000 8 %, of 11008 to 14336 0 to 3 %, of 16000 and
 * 20480 22 and 7 %, softmax_bwd of 11264 to 20480 0 to 4 % faster. Of those lengths that are as
 * fast otherwise 12288 and 16384 (but not where bytes are stored: scaling by the largest element of
 * 12288 columns 10 %, of 16384 36 %) are left, where few_vector_ctas does not take them; a few rows
 * of 24576 columns take 5 to 19 % less time. Three phases take f32 from 8192 columns on where warps
 * are full (8192 and 16384 columns 9 and 25 %), but bytes are stored faster otherwise; two phases
 * from 12288 on (rmsnorm and softmax of 12288 to 22016 columns 0 to 1 %, of 13000 7 %, a single row
 * 10 to 52 % faster), of a sum of two beyond 16384 (rmsnorm of 18432, 20480 and 22528 columns 4 to
 * 6 %), of two from 9216 on (softmax_bwd of 9216 to 16640 1 to 2 %, to 24064 4 %, of 64 rows 3 to 5
 * %). Masked softmax of 10240 and 16384 columns is 6 and 17 % faster by pairs. */
static bool takes_single_rows(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 8192,
        PAIR = 9216,
        TWO_INPUTS = 10240,
        HELD = 12288,
        HELD_TOO = 16384,
        LONG = 24576,
        TWO = 2
    };
    int64_t columns = column_count(s, k);
    bool f32 = has_f32_rows(k), bytes = narrowest_stored(k) < 2, two = k->phases == TWO;
    if (!may_fetch_rows(k) && row_inputs(k) > 1) return false;
    if (k->phases > TWO && is_f32_row(k) && columns < LONG)
        return columns >= SHORT && fills_slices_of_f32(columns);
    if (stores_bytes(s, k) || rereads_bytes(s, k) || narrows_f32_long(s, k)) return false;
    if (columns >= LONG || few_vector_ctas(s, k)) return true;
    bool pair = row_inputs(k) == TWO && !column_vectors(k) && row_bytes(k) == 8 && columns >= PAIR;
    bool sum = row_inputs(k) == TWO && column_vectors(k) && columns > HELD_TOO;
    bool single = row_inputs(k) == 1 && columns >= HELD;
    if (f32) return (single || sum || pair) && k->vec == full_vector(k) && !bytes;
    bool several = row_inputs(k) > 1 && column_vectors(k) && columns <= HELD_TOO;
    if (!may_fetch_rows(k) || several || row_bytes(k) == 1) return false;
    bool masked = row_inputs(k) == TWO && row_bytes(k) == 3 && !column_vectors(k);
    bool held = columns == HELD_TOO ? !(bytes && two) && !masked : columns == HELD && two && !bytes;
    int shortest = row_inputs(k) == 1 ? SHORT : masked ? TWO_INPUTS - 1 : TWO_INPUTS;
    return columns > shortest && !held;
}

/* Whether CTAs of whole warps with four vectors a thread share a row alike, with no thread idle or
 * few: other numbers of threads, or a shorter last slice, make ptxas spill where an SM is to hold
 * 1024. */
bool fills_warps(int64_t columns, int ctas)
{
    enum { EACH = 4 * MAX_VECTOR, LINE = 64, HALF = 128, FULL = 256, SEVEN = 224 };
    int64_t slice = columns / ctas, threads = ceil_div(slice, EACH * WARP) * WARP;
    int64_t idle = threads * EACH - slice;
    int few = threads == HALF ? 7 : threads == SEVEN || threads == FULL ? 13 : INT_MAX;
    return columns % ((int64_t)LINE * ctas) == 0 && idle <= slice / few;
}

/* Whether registers of 256 threads have room for so many columns' elements and column vectors, so
 * that two CTAs fit an SM; single elements take a register each. */
static bool holds_single(const Kernel *k, int64_t columns)
{
    enum { THREADS = 256, BYTES = 80 * 4, ELEMENTS = 64, SINGLE_ELEMENTS = 32, REGISTER_BYTES = 4 };
    bool vectors = may_fetch_rows(k);
    int64_t bytes =
        vectors ? column_bytes(k, 1) : (row_inputs(k) + column_vectors(k)) * REGISTER_BYTES;
    int most = vectors ? ELEMENTS : SINGLE_ELEMENTS;
    return columns <= most * THREADS && columns * bytes <= BYTES * THREADS;
}

/* The same of a sum of inputs of f32 or f16, by shorter slices, as long as a cluster has CTAs for
 * them: f32 of 12288 to 65536 columns 7 to 29 %, of 10240 1 %, f16 of 32768 4 % faster; of 49152,
 * where slices are longer and not full, 6 % slower. */
static int single_sums_of_f32_or_f16(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT_F32 = 9216,
        SLICE_F32 = 2560,
        SHORT_F16 = 20480,
        SLICE = 4096,
        LONG = 65536,
        TWO = 2,
        LINE = 64
    };
    int64_t columns = column_count(s, k);
    bool f32 = keeps_rows_of(k, DTYPE_F32);
    bool f16 = keeps_rows_of(k, DTYPE_F16) && column_vectors(k) <= 2 && !has_wide_columns(k);
    bool fits = row_inputs(k) == TWO && k->phases == TWO && columns % LINE == 0 && columns <= LONG;
    if (!(f32 || f16) || !fits || columns < (f32 ? SHORT_F32 : SHORT_F16)) return 0;
    if (f32 && columns <= SLICE_F32 * s->target->max_cluster) return SLICE_F32;
    return (f16 || columns == LONG) && columns <= SLICE * s->target->max_cluster ? SLICE : 0;
}

/* Of a sum of two of bf16 longer than four slices of 8192, whose eighths are not the best: by up to
 * sixteen CTAs (layer norm of one of 36864, 45056, 53248, 57344, 61440, 73728 and 81920 columns 3,
 * 6, 6, 5, 4, 9 and 3 % faster; measured on an H100). 0: it is another. */
static int short_slices_of_sum(const Scheduler *s, const Kernel *k)
{
    enum {
        SLICE = 5120,
        SHORT = 32768,
        FULL = 49152,
        FULL_TOO = 65536,
        LONG = 81920,
        EIGHT = 8,
        UNIT = 1024
    };
    int64_t columns = column_count(s, k);
    bool plain = row_inputs(k) == 2 && column_vectors(k) <= 2 && !has_wide_columns(k) &&
                 k->vec == MAX_VECTOR;
    bool some = columns > SHORT && columns <= LONG && columns % UNIT == 0 && columns != FULL_TOO;
    if (columns > (int64_t)SLICE * s->target->max_cluster) return 0;
    return plain && some && (columns > FULL || !fills_warps(columns, EIGHT)) ? SLICE : 0;
}

/* Of a sum of inputs of bf16, by the same slices (layer norm of a sum of two of 20480 to 65536
 * columns 2 to 8 %, of 12288 and 16384 1 %, of three 3 %; of two of 8192 and 10240 as fast, a few
 * rows 3 to 6 %; with weights of f32 of 16384 14 % faster, of 32768 3 % slower; measured on an
 * H100). */
static int single_moments_of_sum(const Scheduler *s, const Kernel *k)
{
    enum {
        SLICE = 8192,
        PAIR = 2,
        SHORT_PAIR = 8192,
        SHORT = 12288,
        SHORT_WIDE = 16384,
        LONG_WIDE = 24576,
        LONG = 65536
    };
    int64_t columns = column_count(s, k);
    int ctas = 2;
    if (!keeps_rows_of(k, DTYPE_BF16)) return single_sums_of_f32_or_f16(s, k);
    if (short_slices_of_sum(s, k)) return short_slices_of_sum(s, k);
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    /* with three column vectors 192 threads take too many registers (12288 columns 7 % slower than
     * one CTA of 512) */
    bool full = column_vectors(k) <= 2 || columns % SLICE == 0;
    bool wide = has_wide_columns(k); /* these stay in memory */
    bool fits = wide ? column_vectors(k) <= 2 : holds_single(k, ceil_div(columns, ctas));
    fits &= k->vec == MAX_VECTOR && full;
    int64_t shortest = wide                    ? SHORT_WIDE
                       : row_inputs(k) == PAIR ? SHORT_PAIR
                                               : SHORT,
            longest = wide ? LONG_WIDE : LONG;
    return fits && columns >= shortest && columns <= longest && fills_warps(columns, ctas) ? SLICE
                                                                                           : 0;
}

/* The same for a mean and its squares, whose exchange takes a warp some fifty instructions: by
 * slices of up to 8192 columns, 32 a thread, where an SM holds 1024 threads (schedule/occupancy.c).
 * Layer norm of 13312, 14336, 20480, 26624, 28672, 30720 and 49152 columns 2 to 8 %, of 6144 to
 * 65536 otherwise 1 to 3 % faster (f16 of 26624 and 65536 6 and 4 %); slices that leave a tenth of
 * the threads idle 1 to 4 %, 53248 and 57344 columns 1 to 3 % slower, 81920 to 131072 1 to 2 %. In
 * f32 12288 to 65536 2 to 4 %, 18432 and odd ones 12 to 22 % faster, 49152 1 % slower; 20480 and
 * 40960 by slices of 5120 8 and 16 % faster than by those of 4096. 0: not so. */
static int single_moments(const Scheduler *s, const Kernel *k)
{
    if (row_inputs(k) > 1) return single_moments_of_sum(s, k);
    enum { SLICE = 8192, SHORT = 6144, LONG = 49152, FULL = 61440, FULL_TOO = 65536 };
    enum { SEVEN = 7168, SHORT_F16 = 12288, SLICE_F32 = 4096, SHORT_F32 = 12288, FIVE_F32 = 5120 };
    int64_t columns = column_count(s, k);
    if (!is_plain_norm(k) || !may_fetch_rows(k)) return 0;
    bool fifths = columns == 4 * FIVE_F32 || columns == 8 * FIVE_F32;
    if (is_f32_row(k))
        return columns < SHORT_F32 || columns > FULL_TOO ? 0 : fifths ? FIVE_F32 : SLICE_F32;
    if (row_dtype(k) != DTYPE_BF16 && row_dtype(k) != DTYPE_F16) return 0;
    if (has_wide_columns(k)) return 0; /* a ring holds them in shared memory beside the rows */
    int shortest = row_dtype(k) == DTYPE_F16 ? SHORT_F16 : SHORT;
    bool known =
        (columns >= shortest && columns <= LONG) || (columns >= FULL && columns <= FULL_TOO);
    int ctas = 2;
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    /* rounding to a byte takes registers, too, which 192 threads a slice do not have (12288 columns
     * 9 %) */
    if (narrowest_stored(k) < 2 && columns % SLICE && columns % SEVEN) return 0;
    return known && k->vec == MAX_VECTOR && fills_warps(columns, ctas) ? SLICE : 0;
}

/* The most columns that a CTA should have: 16 kB of bf16 for 256 threads are best, but 49 elements
 * each rather than twice as many CTAs that are not full; of f32 16 kB of all inputs (1 to 4 %
 * faster than twice as much, measured on an H100). 0: registers have no room for as many as pay. */
static int widest_single(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum {
        SLICE = 8192,
        BYTES = 32 << 10,
        BYTES_F32 = 16 << 10,
        EIGHT = 8,
        LONGER = 12800,
        PAIR = 2,
        PAIR_SLICE = 3072
    };
    if (few_vector_ctas(s, k)) return (int)columns / few_vector_ctas(s, k);
    bool f32 = has_f32_rows(k);
    /* two of f32 by eight CTAs (softmax_bwd of 17408 and 20480 columns, of many rows as fast as by
     * sixteen, of 64 rows 8 to 12 %, of 512 3 % faster; of 24576 0.7 % slower) */
    bool pair = row_inputs(k) == PAIR && row_bytes(k) == 8 && !column_vectors(k);
    if (pair && columns < EIGHT * PAIR_SLICE)
        return columns > EIGHT / 2 * PAIR_SLICE ? PAIR_SLICE : PAIR_SLICE / 2;
    int most = (f32 ? BYTES_F32 : BYTES) / row_bytes(k), least = f32 ? SLICE / 4 : SLICE / 2;
    /* for several numbers at once half as many CTAs (cross entropy of 65536 and 128256 columns 10
     * and 16 %) */
    int longest = exchanges_often(k) && k->phases == PAIR ? 2 * SLICE : SLICE;
    int slice = most < longest ? most : longest;
    while (slice >= least && !holds_single(k, slice)) slice /= 2;
    if (slice == SLICE && columns > EIGHT * SLICE && columns <= EIGHT * LONGER &&
        holds_single(k, LONGER))
        return LONGER;
    return slice < least ? 0 : slice;
}

/* How many columns a CTA takes of a row that a cluster has by itself, without another after it; 0:
 * rows are not taken so. The CTAs of an SM have different rows, and while those of one wait for
 * each other the rest read and store. In the largest cluster a thread has up to 64 elements. */
int single_slice(const Scheduler *s, const Kernel *k)
{
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    bool fits = !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->dynamic &&
                row_inputs(k) && !k->grouped && s->target->max_cluster > 1 && !other;
    if (!fits || s->forced.stages || s->forced.ctas || s->forced.reads > 1 || takes_bulk(s, k))
        return 0;
    if (pacing_ctas(s, k)) return 0;
    if (passes_by_blocks(s, k)) return block_slice(s, k);
    int64_t columns = column_count(s, k);
    int slice = widest_single(s, k, columns), ctas = s->forced.cluster;
    if (ctas) return ctas > 1 && holds_single(k, ceil_div(columns, ctas)) ? slice : 0;
    if (s->forced.threads) return 0;
    if (narrow_f32_slice(s, k)) return narrow_f32_slice(s, k);
    if (has_moments(s, k)) return single_moments(s, k);
    bool holds = holds_single(k, ceil_div(columns, s->target->max_cluster));
    return holds && takes_single_rows(s, k) ? slice : 0;
}
