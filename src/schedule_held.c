/* schedule_held.c: which rows stay in registers between the phases, in those of how many
 * threads, and which are better read again. */
#include "scheduling.h"

#include <limits.h>

bool has_f32_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].dtype == DTYPE_F32) return true;
    return false;
}

/* Whether rows are whole vectors of less than 16 bytes, not single elements. */
static bool is_narrow(const Kernel *k)
{
    return may_fetch_rows(k) && row_inputs(k) && k->vec * row_bytes(k) / row_inputs(k) < 16;
}

/* Bytes of the narrowest element that it stores. */
int narrowest_stored(const Kernel *k)
{
    int bytes = 16;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR && dtype_info[k->stores[i].dtype].bytes < bytes)
            bytes = dtype_info[k->stores[i].dtype].bytes;
    return bytes;
}

/* Whether a row that three phases read is stored as bytes: better by few CTAs with many columns each than by clusters
 * with a row each. By one CTA rmsnorm with its largest element of 10240, 12288 and 20480 columns is 10 to 15 %, of 32768 0 to
 * 9 % faster; by two to eight with up to 32768 columns, in registers that the next row refills or, without weights and in
 * f16, by a ring, of 49152 to 262144 columns 11 to 23 % (measured on an H100). */
static bool stores_bytes(const Scheduler *s, const Kernel *k)
{
    enum { TWO = 2, LONGEST = 262144 };
    bool narrow = narrowest_stored(k) < 2 && may_fetch_rows(k) && row_bytes(k) <= 2 && column_vectors(k) <= 1;
    return narrow && exchanges_often(k) && k->phases > TWO && column_count(s, k) <= LONGEST;
}

bool holds_bytes_long(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 12288 };
    return stores_bytes(s, k) && column_count(s, k) > LONG;
}

/* Whether a long row of bytes is better read again, by as many threads as an SM has, where its caches hold two (norm of
 * 8-bit rows of 32768 columns 5 % faster, measured on an H100); shorter ones are better held in registers. */
static bool rereads_bytes(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 16384, ROWS = 2, PHASES = 2 };
    int64_t columns = column_count(s, k);
    bool bytes = row_bytes(k) == 1 && may_fetch_rows(k) && k->phases == PHASES && !has_moments(s, k);
    return bytes && columns > LONG && is_cached(s, k, ROWS, columns);
}

/* Whether a long row of f32 that three phases read is stored as bytes: by four or eight CTAs with registers that the next row
 * refills rather than by clusters with a row each (rmsnorm with its largest element of 40960 to 114688 columns 12 to
 * 29 % faster), but for powers of two, and for rows that are no whole vectors (of 40001 to
 * 100001 columns clusters with a row each are 29 to 36 % faster; measured on an H100). */
bool narrows_f32_long(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 36864, LONG = 131072, TWO = 2 };
    int64_t columns = column_count(s, k);
    bool some = columns > SHORT && columns <= LONG && columns & (columns - 1) && k->vec == full_vector(k);
    return some && is_f32_row(k) && narrowest_stored(k) < 2 && exchanges_often(k) && k->phases > TWO;
}

/* Whether slices of up to 4096 columns are whole warps with 32 columns a thread. */
bool fills_slices_of_f32(int64_t columns)
{
    enum { SLICE = 4096, UNIT = 32 * WARP };
    int ctas = 2;
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    return columns % ((int64_t)UNIT * ctas) == 0;
}

/* How many CTAs share a row of 2 bytes an element with two vectors a thread; 0: it is not shared so. Many rows are 0 to 3 %
 * faster than by one CTA of up to 1024 threads, all of which wait at its barriers, and a few take 6 to 40 % less time: rmsnorm
 * and softmax of 12288, 14336 and 16384 columns by four, rmsnorm of a sum by eight, where their warps are full (measured on an
 * H100). But softmax of 12288 is 0.7 %, cross entropy, which exchanges more, 20 % slower. */
int few_vector_ctas(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 12288, LONG = 16384, TWO = 2, FOUR = 4, EIGHT = 8, EACH = TWO * MAX_VECTOR * WARP };
    int64_t columns = column_count(s, k), shortest = is_light(s, k) ? SHORT + 1 : SHORT;
    bool plain = k->phases == TWO && k->vec == MAX_VECTOR && row_bytes(k) == 2 * row_inputs(k) && narrowest_stored(k) >= 2;
    bool some = row_inputs(k) == 1 || (row_inputs(k) == TWO && column_vectors(k));
    bool once = !has_moments(s, k) && !exchanges_often(k);
    if (!plain || !some || !once || columns < shortest || columns > LONG || s->forced.cluster) return 0;
    if (row_inputs(k) == TWO && columns % (EIGHT * EACH) == 0) return EIGHT;
    return columns % (FOUR * EACH) ? 0 : FOUR;
}

/* Rows that a cluster takes one at a time: measured on an H100, over rings, refilled registers and reading
 * again. Rmsnorm and softmax of 32768 to 262144 columns 1 to 5 %, softmax_bwd 1 to 5 %, masked softmax 19 %,
 * f32 3 to 5 %, odd rows 20 to 30 % faster. Of two bytes an element shorter ones, too, for a CTA of 700 to 1000
 * threads has the SM to itself: rmsnorm of 11008 to 16000 columns 24 to 42 %, of 20480 4 %, softmax of 9000 8 %, of
 * 11008 to 14336 0 to 3 %, of 16000 and 20480 22 and 7 %, softmax_bwd of 11264 to 20480 0 to 4 % faster. Of those
 * lengths that are as fast otherwise 12288 and 16384 (but not where bytes are stored: scaling by the largest element of
 * 12288 columns 10 %, of 16384 36 %) are left, where few_vector_ctas does not take them; a few rows of 24576 columns take 5 to 19 % less time. Three phases take f32 from 8192 columns on
 * where warps are full (8192 and 16384 columns 9 and 25 %), but bytes are stored faster otherwise; two phases from 12288 on
 * (rmsnorm and softmax of 12288 to 22016 columns 0 to 1 %, of 13000 7 %, a single row 10 to 52 % faster), of a sum of two
 * beyond 16384 (rmsnorm of 18432, 20480 and 22528 columns 4 to 6 %), of two from 9216 on (softmax_bwd of 9216 to 16640 1 to 2 %,
 * to 24064 4 %, of 64 rows 3 to 5 %). Masked softmax of 10240 and 16384 columns is 6 and 17 % faster by pairs. */
static bool takes_single_rows(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 8192, PAIR = 9216, TWO_INPUTS = 10240, HELD = 12288, HELD_TOO = 16384, LONG = 24576, TWO = 2 };
    int64_t columns = column_count(s, k);
    bool f32 = has_f32_rows(k), bytes = narrowest_stored(k) < 2, two = k->phases == TWO;
    if (!may_fetch_rows(k) && row_inputs(k) > 1) return false;
    if (k->phases > TWO && is_f32_row(k) && columns < LONG) return columns >= SHORT && fills_slices_of_f32(columns);
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

/* Of the last of its inputs that have rows. */
static DType row_dtype(const Kernel *k)
{
    DType dtype = DTYPE_F32;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) dtype = k->loads[i].dtype;
    return dtype;
}

/* Whether it is little more than a layer norm: one row, read twice, one row stored, and no more column
 * vectors than two. */
static bool is_plain_norm(const Kernel *k)
{
    int stored = 0;
    for (int i = 0; i < k->store_count; i++) stored += k->stores[i].access == ACCESS_VECTOR;
    for (int i = 0; i < k->load_count; i++) {
        uint64_t phases = k->loads[i].phases;
        if (is_row_vector(k, &k->loads[i]) && !(phases & (phases - 1))) return false;
    }
    return row_inputs(k) == 1 && stored == 1 && column_vectors(k) <= 2;
}

/* Whether CTAs of whole warps with four vectors a thread share a row alike, with no thread idle or few: other numbers of
 * threads, or a shorter last slice, make ptxas spill where an SM is to hold 1024. */
bool fills_warps(int64_t columns, int ctas)
{
    enum { EACH = 4 * MAX_VECTOR, LINE = 64, HALF = 128, FULL = 256, SEVEN = 224 };
    int64_t slice = columns / ctas, threads = ceil_div(slice, EACH * WARP) * WARP;
    int64_t idle = threads * EACH - slice;
    int few = threads == HALF ? 7 : threads == SEVEN || threads == FULL ? 13 : INT_MAX;
    return columns % ((int64_t)LINE * ctas) == 0 && idle <= slice / few;
}

/* Whether registers of 256 threads have room for so many columns' elements and column vectors, so that two
 * CTAs fit an SM; single elements take a register each. */
static bool holds_single(const Kernel *k, int64_t columns)
{
    enum { THREADS = 256, BYTES = 80 * 4, ELEMENTS = 64, SINGLE_ELEMENTS = 32, REGISTER_BYTES = 4 };
    bool vectors = may_fetch_rows(k);
    int64_t bytes = vectors ? column_bytes(k, 1) : (row_inputs(k) + column_vectors(k)) * REGISTER_BYTES;
    int most = vectors ? ELEMENTS : SINGLE_ELEMENTS;
    return columns <= most * THREADS && columns * bytes <= BYTES * THREADS;
}

/* Whether all rows are of that type, and read in more than one phase. */
static bool keeps_rows_of(const Kernel *k, DType dtype)
{
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (!is_row_vector(k, load)) continue;
        if (load->dtype != dtype || !(load->phases & (load->phases - 1))) return false;
    }
    return true;
}

/* The same of a sum of inputs of f32 or f16, by shorter slices, as long as a cluster has CTAs for them: f32 of 12288 to
 * 65536 columns 7 to 29 %, of 10240 1 %, f16 of 32768 4 % faster; of 49152, where slices are longer and not full, 6 %
 * slower. */
static int single_sums_of_f32_or_f16(const Scheduler *s, const Kernel *k)
{
    enum { SHORT_F32 = 9216, SLICE_F32 = 2560, SHORT_F16 = 20480, SLICE = 4096, LONG = 65536, TWO = 2, LINE = 64 };
    int64_t columns = column_count(s, k);
    bool f32 = keeps_rows_of(k, DTYPE_F32);
    bool f16 = keeps_rows_of(k, DTYPE_F16) && column_vectors(k) <= 2 && !has_wide_columns(k);
    bool fits = row_inputs(k) == TWO && k->phases == TWO && columns % LINE == 0 && columns <= LONG;
    if (!(f32 || f16) || !fits || columns < (f32 ? SHORT_F32 : SHORT_F16)) return 0;
    if (f32 && columns <= SLICE_F32 * s->target->max_cluster) return SLICE_F32;
    return (f16 || columns == LONG) && columns <= SLICE * s->target->max_cluster ? SLICE : 0;
}

/* Of a sum of two of bf16 longer than four slices of 8192, whose eighths are not the best: by up to sixteen CTAs (layer norm of
 * one of 36864, 45056, 53248, 57344, 61440, 73728 and 81920 columns 3, 6, 6, 5, 4, 9 and 3 % faster; measured on an H100).
 * 0: it is another. */
static int short_slices_of_sum(const Scheduler *s, const Kernel *k)
{
    enum { SLICE = 5120, SHORT = 32768, FULL = 49152, FULL_TOO = 65536, LONG = 81920, EIGHT = 8, UNIT = 1024 };
    int64_t columns = column_count(s, k);
    bool plain = row_inputs(k) == 2 && column_vectors(k) <= 2 && !has_wide_columns(k) && k->vec == MAX_VECTOR;
    bool some = columns > SHORT && columns <= LONG && columns % UNIT == 0 && columns != FULL_TOO;
    if (columns > (int64_t)SLICE * s->target->max_cluster) return 0;
    return plain && some && (columns > FULL || !fills_warps(columns, EIGHT)) ? SLICE : 0;
}

/* Of a sum of inputs of bf16, by the same slices (layer norm of a sum of two of 20480 to 65536 columns 2 to 8 %, of 12288
 * and 16384 1 %, of three 3 %; of two of 8192 and 10240 as fast, a few rows 3 to 6 %; with weights of f32 of 16384 14 % faster, of 32768 3 % slower; measured on an H100). */
static int single_moments_of_sum(const Scheduler *s, const Kernel *k)
{
    enum { SLICE = 8192, PAIR = 2, SHORT_PAIR = 8192, SHORT = 12288, SHORT_WIDE = 16384, LONG_WIDE = 24576, LONG = 65536 };
    int64_t columns = column_count(s, k);
    int ctas = 2;
    if (!keeps_rows_of(k, DTYPE_BF16)) return single_sums_of_f32_or_f16(s, k);
    if (short_slices_of_sum(s, k)) return short_slices_of_sum(s, k);
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    /* with three column vectors 192 threads take too many registers (12288 columns 7 % slower than one CTA of 512) */
    bool full = column_vectors(k) <= 2 || columns % SLICE == 0;
    bool wide = has_wide_columns(k);    /* these stay in memory */
    bool fits = wide ? column_vectors(k) <= 2 : holds_single(k, ceil_div(columns, ctas));
    fits &= k->vec == MAX_VECTOR && full;
    int64_t shortest = wide ? SHORT_WIDE : row_inputs(k) == PAIR ? SHORT_PAIR : SHORT, longest = wide ? LONG_WIDE : LONG;
    return fits && columns >= shortest && columns <= longest && fills_warps(columns, ctas) ? SLICE : 0;
}

/* The same for a mean and its squares, whose exchange takes a warp some fifty instructions: by slices of up to 8192
 * columns, 32 a thread, where an SM holds 1024 threads (schedule_bounds.c). Layer norm of 13312, 14336, 20480, 26624,
 * 28672, 30720 and 49152 columns 2 to 8 %, of 6144 to 65536 otherwise 1 to 3 % faster (f16 of 26624 and 65536 6 and 4 %);
 * slices that leave a tenth of the threads idle 1 to 4 %, 53248 and 57344 columns 1 to 3 % slower, 81920 to 131072 1 to
 * 2 %. In f32 12288 to 65536 2 to 4 %, 18432 and odd ones 12 to 22 % faster, 49152 1 % slower; 20480 and 40960 by slices of
 * 5120 8 and 16 % faster than by those of 4096. 0: not so. */
static int single_moments(const Scheduler *s, const Kernel *k)
{
    if (row_inputs(k) > 1) return single_moments_of_sum(s, k);
    enum { SLICE = 8192, SHORT = 6144, LONG = 49152, FULL = 61440, FULL_TOO = 65536 };
    enum { SEVEN = 7168, SHORT_F16 = 12288, SLICE_F32 = 4096, SHORT_F32 = 12288, FIVE_F32 = 5120 };
    int64_t columns = column_count(s, k);
    if (!is_plain_norm(k) || !may_fetch_rows(k)) return 0;
    bool fifths = columns == 4 * FIVE_F32 || columns == 8 * FIVE_F32;
    if (is_f32_row(k)) return columns < SHORT_F32 || columns > FULL_TOO ? 0 : fifths ? FIVE_F32 : SLICE_F32;
    if (row_dtype(k) != DTYPE_BF16 && row_dtype(k) != DTYPE_F16) return 0;
    if (has_wide_columns(k)) return 0;    /* a ring holds them in shared memory beside the rows */
    int shortest = row_dtype(k) == DTYPE_F16 ? SHORT_F16 : SHORT;
    bool known = (columns >= shortest && columns <= LONG) || (columns >= FULL && columns <= FULL_TOO);
    int ctas = 2;
    while ((int64_t)SLICE * ctas < columns) ctas *= 2;
    /* rounding to a byte takes registers, too, which 192 threads a slice do not have (12288 columns 9 %) */
    if (narrowest_stored(k) < 2 && columns % SLICE && columns % SEVEN) return 0;
    return known && k->vec == MAX_VECTOR && fills_warps(columns, ctas) ? SLICE : 0;
}

/* The most columns that a CTA should have: 16 kB of bf16 for 256 threads are best, but 49 elements each rather
 * than twice as many CTAs that are not full; of f32 16 kB of all inputs (1 to 4 % faster than twice as much,
 * measured on an H100). 0: registers have no room for as many as pay. */
static int widest_single(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { SLICE = 8192, BYTES = 32 << 10, BYTES_F32 = 16 << 10, EIGHT = 8, LONGER = 12800, PAIR = 2, PAIR_SLICE = 3072 };
    if (few_vector_ctas(s, k)) return (int)columns / few_vector_ctas(s, k);
    bool f32 = has_f32_rows(k);
    /* two of f32 by eight CTAs (softmax_bwd of 17408 and 20480 columns, of many rows as fast as by sixteen, of 64 rows 8 to
     * 12 %, of 512 3 % faster; of 24576 0.7 % slower) */
    bool pair = row_inputs(k) == PAIR && row_bytes(k) == 8 && !column_vectors(k);
    if (pair && columns < EIGHT * PAIR_SLICE) return columns > EIGHT / 2 * PAIR_SLICE ? PAIR_SLICE : PAIR_SLICE / 2;
    int most = (f32 ? BYTES_F32 : BYTES) / row_bytes(k), least = f32 ? SLICE / 4 : SLICE / 2;
    /* for several numbers at once half as many CTAs (cross entropy of 65536 and 128256 columns 10 and 16 %) */
    int longest = exchanges_often(k) && k->phases == PAIR ? 2 * SLICE : SLICE;
    int slice = most < longest ? most : longest;
    while (slice >= least && !holds_single(k, slice)) slice /= 2;
    if (slice == SLICE && columns > EIGHT * SLICE && columns <= EIGHT * LONGER && holds_single(k, LONGER))
        return LONGER;
    return slice < least ? 0 : slice;
}

/* How many columns a CTA takes of a row that a cluster has by itself, without another after it; 0: rows are
 * not taken so. The CTAs of an SM have different rows, and while those of one wait for each other the rest
 * read and store. In the largest cluster a thread has up to 64 elements. */
int single_slice(const Scheduler *s, const Kernel *k)
{
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    bool fits = !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->dynamic &&
                row_inputs(k) && !k->grouped && s->target->max_cluster > 1 && !other;
    if (!fits || s->forced.stages || s->forced.ctas || s->forced.reads > 1 || takes_bulk(s, k)) return 0;
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

/* A row kernel in which a CTA has a row by itself. */
static bool is_row_alone(const Scheduler *s, const Kernel *k)
{
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    return !k->accumulator_count && k->inner_count && k->rows && !k->kept &&
           !k->dynamic && k->column_ctas == 1 && k->cluster == 1 &&
           s->forced.cluster <= 1 && !other && column_count(s, k);
}

/* Registers for a vector of each of a row's inputs: whole ones. */
static int64_t vector_registers(const Kernel *k)
{
    int64_t registers = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]))
            registers += ceil_div(k->vec * dtype_info[k->loads[i].dtype].bytes, 4);
    return registers;
}

/* Whether elements share registers, which takes more to compute with. */
static bool is_packed(const Kernel *k)
{
    return vector_registers(k) < k->vec * row_inputs(k);
}

/* Whether every thread has a vector of the row, and none so many elements that it spills. */
static bool is_spread(const Scheduler *s, const Kernel *k, int threads)
{
    enum { MOST_ELEMENTS = 96 };
    int64_t vectors = column_count(s, k) / k->vec;
    return vectors >= threads && ceil_div(vectors, threads) * k->vec <= MOST_ELEMENTS;
}

/* Whether a row of which a mean and its squares are found is better read again, though
 * registers could hold it: two or four full tiles, whose threads leave room for as many CTAs as
 * fill an SM (measured on an H100: layer norm of 8192 columns 1 %, of 24576 2 % faster; of
 * 16384 5 % slower). */
static bool rereads_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 8192, SHORT_TILES = 2, LONG = 24576, LONG_TILES = 4, RANGE = 8 };
    int64_t columns = column_count(s, k), longest = columns <= SHORT ? SHORT : LONG;
    int tiles = columns <= SHORT ? SHORT_TILES : LONG_TILES;
    bool near = columns <= longest && columns > longest / RANGE * (RANGE - 1);
    bool full = columns % (tiles * k->vec * WARP) == 0;
    bool plain = is_plain_norm(k) && row_dtype(k) == DTYPE_BF16 && !has_wide_columns(k);
    if (!near || !full || !plain || s->forced.reads || s->forced.threads) return false;
    int64_t threads = columns / (tiles * k->vec);
    return is_cached(s, k, (int)(s->target->threads_per_sm / threads), columns);
}

/* A mean and its squares in one exchange: few warps, two CTAs of which an SM holds where
 * it can. Of vectors of 4 or 8 bytes a ring is 20 to 40 % faster. */
static int held_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 32 << 10, PAIR = 48 << 10, LONG = 64 << 10, FEW = 256, MANY = 512, SIX = 12288, FIVE = 9216 };
    if (rereads_moments(s, k)) return 0;
    int64_t row = row_bytes(k) * column_count(s, k);
    if (shares_wide_columns(s, k)) return 0;
    bool few = row <= PAIR && may_fetch_rows(k);
    int threads = few && column_vectors(k) <= 2 ? FEW : MANY;
    /* 256 threads with six vectors each: 2 % over 384 with four; with weights of f32, with five 11 % over 320 */
    bool middle = column_count(s, k) > FIVE && column_count(s, k) < SIX;
    bool wide = middle && has_wide_columns(k) && column_vectors(k) <= 2 && k->vec == MAX_VECTOR;
    if (row_inputs(k) == 1 && row_bytes(k) == 2 && (wide || column_count(s, k) == SIX)) return FEW;
    if (row <= SHORT || row > LONG || is_narrow(k) || !is_spread(s, k, threads)) return 0;
    return row > PAIR && is_packed(k) ? 0 : threads; /* there a ring is 4 % faster */
}

/* Whether so many threads hold a row without spills. The limits are those that were seen
 * to: with guards, where the last tile is not full, packed elements take more. */
static bool can_hold(const Scheduler *s, const Kernel *k, int threads)
{
    enum { MANY = 512, PACKED = 48, SINGLE = 80, WHOLE = 76, MOST = 88 };
    int64_t vectors = column_count(s, k) / k->vec;
    int64_t registers = ceil_div(vectors, threads) * vector_registers(k);
    if (!is_spread(s, k, threads)) return false;
    if (threads < MANY) return registers <= MOST;
    if (is_packed(k)) return registers <= PACKED && vectors % threads == 0;
    return registers <= (may_fetch_rows(k) ? WHOLE : SINGLE);
}

/* Whether the first-level cache surely holds two rows while they are read a second time.
 * Two inputs leave it less sure of itself: softmax_bwd of 16384 columns takes 527 or 585 us
 * from one run to the next, and 525 held in registers. */
static bool is_read_again_soon(const Scheduler *s, const Kernel *k)
{
    int eighths = row_inputs(k) > 1 ? 4 : 5;
    return 2 * row_bytes(k) * column_count(s, k) <= s->target->smem_per_sm / 8 * eighths;
}

/* How many threads keep a long row in their registers, mostly as one CTA an SM; 0: it is
 * too short or too long for that. The fewer they are, the more registers are left for the
 * row. It pays where the caches are too small to read two rows again, and only while
 * column vectors stay cached beside the row (measured on an H100: 2 to 30 % over rings
 * and over reading again). */
int held_threads(const Scheduler *s, const Kernel *k)
{
    static const int ways[] = {512, 384};
    if (!is_row_alone(s, k) || passes_by_blocks(s, k) || s->forced.threads || s->forced.stages ||
        s->forced.reads > 1 || !is_cached(s, k, 1, column_count(s, k)) || single_slice(s, k))
        return 0;
    if (has_moments(s, k)) return held_moments(s, k);
    if (is_read_again_soon(s, k) || holds_bytes_long(s, k)) return 0;
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++)
        if (can_hold(s, k, ways[i])) return ways[i];
    return 0;
}

/* Whether a CTA's threads read a row anew in each phase, so that two CTAs of 1024
 * threads, which have 32 registers each, fill an SM. It pays where registers cannot hold
 * the row and the first-level cache holds two (measured on an H100: 2 to 6 % over rings;
 * where the cache does not hold them, and as parts in a cluster, up to 40 % under; a mean
 * and its squares mostly take too many instructions). */
bool reads_again(const Scheduler *s, const Kernel *k)
{
    enum { CTAS = 2, OWN = 22 };
    if (!is_row_alone(s, k) || s->forced.stages || takes_bulk(s, k)) return false;
    if (single_slice(s, k) || passes_by_blocks(s, k)) return false;
    if (s->forced.reads) return s->forced.reads > 1;
    if (has_moments(s, k)) return rereads_moments(s, k);
    if (held_threads(s, k) || holds_bytes_long(s, k)) return false;
    int64_t columns = column_count(s, k), row = row_bytes(k) * columns;
    int64_t threads = ceil_div(columns, 2 * MAX_VECTOR);
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    bool fits = CTAS * (OWN * threads + ceil_div(row, 4)) <= s->target->registers_per_sm;
    return (!fits || rereads_bytes(s, k)) && is_cached(s, k, CTAS, columns);
}

/* F32 of which a ring beside column vectors in shared memory is better than registers that the next row refills (layer norm of
 * 98304, 106496, 114688 and 122880 columns 2 to 8 %, of 131072 1.5 % faster; of 81920 3 % slower). */
bool rings_f32_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 98304, LONG = 131072 };
    int64_t columns = column_count(s, k);
    return is_f32_row(k) && has_moments(s, k) && column_vectors(k) && !k->accumulator_count && columns >= SHORT && columns <= LONG;
}

/* A mean with its squares: as far as 16 CTAs of a cluster can hold the row well (layer norm of
 * 40960 to 196608 columns 4 to 25 % faster than by a ring, f16 of 33792 to 47104 13 to 38 %, of 51200 to 106496 2 to 11 %, of
 * 262144 6 % slower, and 1 to 3 % where a ring has full slices in clusters of 4 and 8; in f32 as fast at 65536, 2 % faster at
 * 262144). Once shared memory has no room for two rows beside column vectors, as far as registers reach (16 bits of 524288
 * columns 42 %, of 786432 48 % faster, but of 327680 and 400000 4 to 6 % slower). */
static bool may_refill_moments(DType dtype, int64_t columns)
{
    enum { LEAST = 32768, MOST = 16 * REFILL_SLICE, LEAST_F32 = 65536, MOST_F32 = 262144 };
    enum { FULL = 16384, BESIDE_RING = 458752 };
    bool full = columns == 4 * FULL || columns == 8 * FULL;
    if (dtype == DTYPE_F32) return columns > LEAST_F32 && columns <= MOST_F32;
    if (columns > BESIDE_RING) return columns <= LONGEST_REFILLED;
    return columns > LEAST && columns <= MOST && !full;
}

/* Sums of two inputs, where no cluster has a row by itself. Bf16 (layer norm of a sum of 131072 columns 9 %, of 262144
 * 2 %, of 294912 to 524288 6 to 16 %, rmsnorm of one of up to 262144 1 %, of 393216 20 %, of 524288 3 % faster so than by a
 * ring; of 311296 and 327680, of which shared memory has room for two beside the weights, 6 to 8 % slower), and f16 of
 * 393216 (15 to 19 %; of 524288 9 to 17 % slower), and f32 as far as registers reach (layer norm of one of 147456 columns 2 %,
 * of 163840 to 196608 17 to 20 %, rmsnorm of one of 196608 15 % faster, of 163840 and 180224 1 % slower). */
static bool may_refill_sum(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { LEAST = 65536, RING = 303104, BESIDE_RING = 327680, MOST_F16 = 393216, TWO = 2 };
    enum { LEAST_F32_MOMENTS = 147456, LEAST_F32 = 188416 };
    bool rings = columns > RING && columns <= BESIDE_RING && !has_moments(s, k);
    bool bf16 = keeps_rows_of(k, DTYPE_BF16) && columns > LEAST && columns <= LONGEST_SUM_REFILLED && !rings;
    bool f16 = keeps_rows_of(k, DTYPE_F16) && columns > BESIDE_RING && columns <= MOST_F16;
    int least_f32 = has_moments(s, k) ? LEAST_F32_MOMENTS : LEAST_F32;
    bool f32 = keeps_rows_of(k, DTYPE_F32) && column_vectors(k) && columns >= least_f32 && columns <= LONGEST_F32_SUM_REFILLED;
    bool known = columns <= MOST_SHORT_REFILLED || column_vectors(k);
    return row_inputs(k) == TWO && k->phases == TWO && known && (bf16 || f16 || f32);
}

/* A single sum beside column vectors. Beyond what is refilled as shorter rows are f32 as far as registers reach (294912 to
 * 393216 columns 4 to 20 % faster), bf16 where shared memory has no room for two rows beside column vectors (524288 26 %
 * faster, 400000 5, 458752 2 % slower; of 589824 on groups are 5 % faster), and bytes from where it has room for none of
 * those (655360 and 786432 29 %; of 524288 7 % slower). */
static bool may_refill_single(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { LEAST = 49152, MOST_F32 = 393216, BESIDE_RING = 458752, MOST_BF16 = 524288 };
    if (columns <= MOST_SHORT_REFILLED) return columns > LEAST || narrows_f32_long(s, k);
    if (has_f32_rows(k)) return columns <= MOST_F32;
    if (narrowest_stored(k) < 2) return columns > MOST_BF16 && columns <= LONGEST_REFILLED;
    return row_dtype(k) == DTYPE_BF16 && columns > BESIDE_RING && columns <= MOST_BF16;
}

/* Whether CTAs that share a row keep their slices in registers, which the next row refills: four vectors
 * or more a thread, of rows that no cluster has by itself. (Rmsnorm of 53248 to 262144 columns was 1 to 5 %
 * faster so than by a ring, in f32 and f16 as fast or up to 1 % faster.) */
bool may_refill(const Scheduler *s, const Kernel *k)
{
    enum { VECTOR_BYTES = 16, LEAST_VECTORS = 4 };
    if (k->accumulator_count || !k->inner_count || k->grouped || has_several_columns(k)) return false;
    if (single_slice(s, k) || column_keepers(s, k)) return false;
    if (s->forced.stages) return s->forced.stages == 1;
    int64_t columns = column_count(s, k);
    DType dtype = row_dtype(k);
    int vector = k->vec * dtype_info[dtype].bytes;
    bool fits = vector >= VECTOR_BYTES && vector * LEAST_VECTORS <= 4 * REFILL_REGISTERS;
    bool known = dtype == DTYPE_BF16 || dtype == DTYPE_F16 || dtype == DTYPE_F32;
    if (s->forced.any || !fits || !known) return false;
    if (row_inputs(k) != 1) return may_refill_sum(s, k, columns) && !shares_wide_columns(s, k);
    if (has_moments(s, k))
        return !shares_wide_columns(s, k) && !rings_f32_moments(s, k) && may_refill_moments(dtype, columns);
    return column_vectors(k) && may_refill_single(s, k, columns);
}
