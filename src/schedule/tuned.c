/* schedule/tuned.c: schedules that are asked for as `--schedule` would ask, where those were
 * measured faster than what the rules make of a row. What cannot be is refused as it would be
 * there, and the rules' choice stays.
 *
 * Most of it is for memory that moves about as much for each SM as an H200's (has_fast_memory).
 * There an exchange between CTAs and what CTAs read from L2 again take longer than a row, so that
 * rows want fewer CTAs with more columns each, whose column vectors stay in the SM. All of that was
 * measured on an H200, whose memory moves 36 bytes a ns for each SM, with 268 MB a tensor or 16384
 * rows; times beside those of the rules, which were fitted on an H100 (25 bytes). */
#include "schedule/internal.h"

static Advice first_of(Advice a, Advice b)
{
    return a.threads ? a : b;
}

enum { PAIR = 2, TWO_BYTES = 2, COLUMNS = 32 /* of a thread: four vectors */ };

/* ---- two tensors with sums over rows ---- */

static bool has_one_sum(const Scheduler *s, const Kernel *k)
{
    return accumulator_registers(s, k) < 2;
}

static bool sums_pairs(const Scheduler *s, const Kernel *k, int bytes)
{
    double sums = accumulator_registers(s, k);
    return row_inputs(k) == PAIR && row_bytes(k) == PAIR * bytes && (sums == 1 || sums == 2) &&
           column_vectors(k) <= 1 && stored_rows(k) == 1 && narrowest_stored(k) == bytes;
}

static bool has_pairs_with_sums(const Scheduler *s, const Kernel *k)
{
    return has_plain_rows(s, k) && sums_pairs(s, k, TWO_BYTES);
}

static bool has_f32_pairs_with_one_sum(const Scheduler *s, const Kernel *k)
{
    return has_plain_rows(s, k) && sums_pairs(s, k, sizeof(float)) && has_one_sum(s, k);
}

/* The same in single elements. */
static bool has_odd_pairs_with_sums(const Scheduler *s, const Kernel *k)
{
    return has_light_rows(s, k) && k->vec == 1 && sums_pairs(s, k, TWO_BYTES);
}

/* Two sums of one CTA's row: layer norm's backward of 6144, 7168, 8192, 9216 columns 4, 8, 9, 9 %
 * faster by a copy warp (5632 and 6656 6 and 3 % slower), of 10240 and 12288 6 and 13 % without one
 * (11264 6 % slower; a row alone 12288 35 %, 512 rows 18 %); of 14336 and 16384 a pair of CTAs is
 * as good. */
static Advice two_sums_alone(int64_t columns)
{
    enum { UNIT = 1024, FEW = 6144, MANY = 8192, COPIED = 9216, SHORT_OWN = 10240, LONG = 12288 };
    if (columns < FEW || columns > LONG || columns % UNIT) return no_advice;
    if (columns <= COPIED)
        return (Advice){FAMILY_WARP_SPECIALIZED,
                        .threads = columns > FEW && columns <= MANY ? 512 : 384, .cluster = 1};
    if (columns > SHORT_OWN && columns < LONG) return no_advice;
    return (Advice){FAMILY_GRID_STRIDE, .threads = columns <= SHORT_OWN ? 256 : 384, .cluster = 1};
}

/* Two sums of longer rows, by half as many CTAs, whose threads copy for themselves: 18432 to 32768
 * columns 4, 10, 21, 12, 12, 10, 11 % faster, 36864 to 81920 5, 13, 20, 5, 5, 4, 8, 4, 15 %, 98304
 * to 163840 20, 11, 2, 11, 17, 8, 18 %, 262144 14 %; slices of 11264 31 to 37 % slower, and in the
 * largest cluster those of 8704 3 %, of 14336 and 15360 10 %. More than 12288 columns each of f16
 * spill with 512 threads: those by as many CTAs as the rules have (4 to 6 %). */
static Advice two_sums(const Kernel *k, int64_t columns)
{
    enum {
        ALONE = 16384,
        SLICE = 16384,
        LEAST = 9216,
        SHORT = 10240,
        SHORT_SLICE = 12288,
        SIXTEEN = 16
    };
    if (columns <= ALONE) return two_sums_alone(columns);
    int ctas = fewest_ctas(columns, SLICE);
    int64_t slice = ceil_div(columns, ctas);
    bool fits = slice <= SHORT_SLICE, full = slice == SLICE;
    if (slice < LEAST || (slice > SHORT && slice < SHORT_SLICE) ||
        (ctas == SIXTEEN && !fits && !full))
        return no_advice;
    if (!fits && reads_f16(k))
        return (Advice){FAMILY_GRID_STRIDE, .threads = 256, .cluster = 2 * ctas};
    return (Advice){FAMILY_GRID_STRIDE, .threads = fits ? 256 : 512, .cluster = ctas};
}

/* One sum, where that is half as many CTAs: rmsnorm's backward of 10240 and 22528 to 30720 columns
 * 16, 19, 5, 14, 9, 7 % faster, of 45056 to 61440 18, 6, 13, 10, 8 %, of 90112 to 131072 24, 13,
 * 21, 19, 17, 5 %; of 32768 and 65536 as fast. */
static Advice one_sum(const Kernel *k, int64_t columns)
{
    enum { SHORT = 9216, ALONE = 10240, SLICE = 16384, OWN = 10240, MIDDLE = 12288, EIGHT = 8 };
    if (columns <= SHORT || (columns > ALONE && columns <= SLICE)) return no_advice;
    int ctas = fewest_ctas(columns, SLICE);
    int64_t slice = ceil_div(columns, ctas);
    if (k->cluster <= ctas || (slice == SLICE && ctas < EIGHT)) return no_advice;
    if (slice <= OWN) return (Advice){FAMILY_GRID_STRIDE, .threads = 256, .cluster = ctas};
    return (Advice){FAMILY_WARP_SPECIALIZED, .threads = slice <= MIDDLE ? 384 : 512,
                    .cluster = ctas};
}

/* Two sums of more columns than copies_largest knows, by the largest cluster, not by groups: layer
 * norm's backward of 188416, 204800, 212992, 221184 columns 6, 3, 4, 5 % faster, of 196608 2 %
 * (measured on an H100). F16 spills, and so do weights of f32 beside 384 threads. */
static Advice two_long_sums(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 184320, LONG = 225280, FULL_TILES = 196608, SIXTEEN = 16 };
    int64_t columns = column_count(s, k);
    if (has_one_sum(s, k) || reads_f16(k) || columns <= SHORT || columns >= LONG) return no_advice;
    if (columns == FULL_TILES && !has_wide_columns(k))
        return (Advice){FAMILY_WARP_SPECIALIZED, .threads = 384, .cluster = SIXTEEN};
    return (Advice){FAMILY_GRID_STRIDE, .threads = 512, .cluster = SIXTEEN};
}

/* Rows of 704 to 1024 columns, of which a thread has one vector, by four at a time, not six or
 * eight, and one CTA an SM. Whole lines of memory hand on their stages: layer norm's backward 5 to
 * 11 % faster with 64 rows, 4 to 8 % with 512, up to 7 % with 4096, many 6 % faster to 1 % slower
 * (with three stages of 1024 columns 2 % slower); rmsnorm's of up to 832 columns, of f16 up to 896,
 * 4 to 15 % faster with 64 and 512 rows, up to 4 % slower with 2048 to 8192, many 2 to 4 % faster.
 * No whole lines: either norm's of more than 896 columns, with four stages, 5 to 11 % faster with
 * 64 and 512 rows, many 5 % faster to 2.5 % slower; layer norm's of up to 832 by six, many 0 to 5 %
 * faster. (Measured on an H100.) */
static Advice one_vector_sums(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum {
        THREE_WARPS = 3 * WARP,
        FOUR_WARPS = 4 * WARP,
        SHORT_END = 832,
        MIDDLE = 896,
        FULL = 1024,
        FULL_VECTOR = 8
    };
    bool one = has_one_sum(s, k), lines = is_whole_lines(columns, DTYPE_BF16);
    int threads = columns <= FULL_VECTOR * THREE_WARPS ? THREE_WARPS : FOUR_WARPS;
    if (!lines && columns > MIDDLE)
        return (Advice){FAMILY_GRID_STRIDE, .threads = threads, .rows = 4, .stages = 4};
    if (!lines)
        return one || columns > SHORT_END
                   ? no_advice
                   : (Advice){FAMILY_GRID_STRIDE, .threads = 2 * WARP, .rows = 6, .stages = 3};
    if (one && columns > (reads_f16(k) ? MIDDLE : SHORT_END)) return no_advice;
    return (Advice){FAMILY_GRID_STRIDE, .threads = threads,
                    .rows = 4,          .stages = columns < FULL ? 3 : 2,
                    .per_sm = 1,        .reuse = 1};
}

/* Either norm's backward of 1088 to 1216 columns by four rows at a time, not five: 4096 rows 2 to 8
 * %, 16384 up to 5 % faster and 1 % slower at worst; whole lines of up to 1472, which hand on their
 * stages, 3 to 6 % faster with 64 and 512 rows, 1 to 3 % with 4096, many as fast. Two sums of 2688
 * to 3072 columns by three rows of 128 threads, not two of 192: 4096 rows 6 to 10 %, 16384 up to 4
 * % faster, 512 1 to 5 % slower; where they hand on their stages 0 to 4 % faster. (Measured on an
 * H100.) */
static Advice short_sums(const Scheduler *s, const Kernel *k)
{
    enum {
        ONE_VECTOR = 704,
        ONE_VECTOR_END = 1024,
        FIRST = 1088,
        FIRST_END = 1216,
        LINES_END = 1472,
        SECOND = 2688,
        SECOND_END = 3072
    };
    enum { THREE_WARPS = 3 * WARP, FOUR_WARPS = 4 * WARP };
    int64_t columns = column_count(s, k);
    if (columns >= ONE_VECTOR && columns <= ONE_VECTOR_END) return one_vector_sums(s, k, columns);
    bool lines = is_whole_lines(columns, DTYPE_BF16),
         first = columns >= FIRST && columns <= (lines ? LINES_END : FIRST_END);
    bool second = columns >= SECOND && columns <= SECOND_END && !has_one_sum(s, k);
    Advice advice = first    ? (Advice){FAMILY_GRID_STRIDE, .threads = THREE_WARPS, .rows = 4}
                    : second ? (Advice){FAMILY_GRID_STRIDE, .threads = FOUR_WARPS, .rows = 3}
                             : no_advice;
    if (lines && advice.threads) advice.stages = 2, advice.reuse = 1;
    return advice;
}

/* Of f32 rmsnorm's backward of 1408 to 1536 columns by one CTA an SM (the two ends timed): 64 rows
 * 8 and 9 %, 512 5 and 6 %, 16384 2 and 4 % faster, where stages handed on alone are 5 and 7, 4, 1
 * %, and 4096 rows as fast and 2 % faster (measured on an H100). */
static Advice one_sum_of_f32(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 1408, LONG = 1536, THREADS = 192 };
    int64_t columns = column_count(s, k);
    if (!is_whole_lines(columns, DTYPE_F32) || columns < SHORT || columns > LONG) return no_advice;
    return (Advice){FAMILY_GRID_STRIDE, .threads = THREADS, .rows = 2,
                    .stages = 2,        .per_sm = 1,        .reuse = 1};
}

/* Layer norm's backward of an odd number of columns by six rows at a time, not eight: of 641 to 895
 * columns 65536 rows 3 to 4 %, 16384 3 to 7 % faster, 4096 2 to 3 % slower. Either norm's by four
 * rows of four warps and four stages: of 897, 1023, 1101, 1215 two sums 4096 rows 3, 3, 5, 7 %,
 * 16384 2 to 5 % faster, 1024 2 % slower; one 4096 0 to 6 %, 16384 2 to 4 % faster. (Measured on an
 * H100.) */
static Advice short_odd_sums(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 641, WIDE = 897, WIDE_END = 1215, TWO_WARPS = 2 * WARP, FOUR_WARPS = 4 * WARP };
    int64_t columns = column_count(s, k);
    if (columns > WIDE_END || columns < SHORT) return no_advice;
    if (columns >= WIDE)
        return (Advice){FAMILY_GRID_STRIDE, .threads = FOUR_WARPS, .rows = 4, .stages = 4};
    return has_one_sum(s, k) ? no_advice
                             : (Advice){FAMILY_GRID_STRIDE, .threads = TWO_WARPS, .rows = 6};
}

/* Either norm's backward of longer odd rows: of slices of 8193 to 10240 columns a thread has up to
 * 40 elements. Two sums, of rows that it copies for itself: of 17409, 18945, 20479 columns 6, 3, 9
 * % faster than by the rules, of 33001 to 40959 6 to 9 %, of 66001 to 79001 9 %, of 140001 13 %
 * (slices of 11264 and 12288 10 and 17 % slower). One sum, by a copy warp: of 16385 to 36001
 * columns 2 to 6 %, of 38001 and 75001 24 and 31 %, of 66001 to 163839 3 to 11 %; without one in
 * f16, which spills with it, 19001, 38001, 75001 columns 8, 4, 10 %, and of single CTAs 8193 to
 * 10239 2 to 10 %, 512 rows 2 to 5 %. (Measured on an H100.) */
static Advice long_odd_sums(const Scheduler *s, const Kernel *k)
{
    enum { SHORT_SLICE = 8192, SLICE = 10240, THREADS = 256 };
    int64_t columns = column_count(s, k);
    int ctas = fewest_ctas(columns, SLICE);
    bool one = has_one_sum(s, k), copied = one && ctas > 1 && !reads_f16(k);
    if (columns <= (int64_t)SHORT_SLICE * ctas || (ctas == 1 && !one)) return no_advice;
    return (Advice){copied ? FAMILY_WARP_SPECIALIZED : FAMILY_GRID_STRIDE, .threads = THREADS,
                    .cluster = ctas};
}

static Advice sums_of_fast_memory(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 2048, THREE_ROWS = 2688, THREE_ROWS_END = 3072 };
    int64_t columns = column_count(s, k);
    /* layer norm's backward 3 %, rmsnorm's 7 % faster (and 3 % slower where stages are handed on)
     */
    if (columns == SHORT)
        return (Advice){FAMILY_GRID_STRIDE, .threads = 128, .rows = 4, .stages = 2};
    if (has_one_sum(s, k)) return one_sum(k, columns);
    /* 4096 rows 9 to 15 %, more 6 to 13 % faster, 64 and 512 2 to 5 % slower */
    if (columns >= THREE_ROWS && columns <= THREE_ROWS_END) return short_sums(s, k);
    return first_of(two_sums(k, columns), two_long_sums(s, k));
}

/* ---- a mean and its squares ---- */

static bool has_plain_moments(const Scheduler *s, const Kernel *k)
{
    return has_plain_rows(s, k) && !k->accumulator_count && has_moments(s, k) &&
           column_vectors(k) <= PAIR && stored_rows(k) <= row_inputs(k) &&
           narrowest_stored(k) * row_inputs(k) == row_bytes(k);
}

/* Rows of 2 bytes that pass through a ring of two stages to registers, which frees their stage at
 * once, beside column vectors in shared memory. Threads have 48 columns where that is whole groups
 * of four warps, else 32. */
static Advice ring_of_two(int64_t columns, int ctas)
{
    enum { MANY = 48, UNIT = 4 * WARP };
    int64_t slice = ceil_div(columns, ctas);
    int threads =
        slice % (MANY * UNIT) ? threads_of(slice, COLUMNS, MOST_THREADS) : (int)slice / MANY;
    return (Advice){FAMILY_ROW, .threads = threads, .cluster = ctas, .stages = 2};
}

/* So many CTAs an SM with a stage each that the row in registers has handed on: a thread has so
 * many columns. */
static Advice one_stage(int64_t columns, int ctas, int each, int per_sm)
{
    int threads = threads_of(ceil_div(columns, ctas), each, MOST_THREADS);
    return (Advice){FAMILY_ROW,  .threads = threads, .cluster = ctas,
                    .stages = 1, .per_sm = per_sm,   .reuse = 1};
}

/* Layer norm of 135168, 139264, 143360, 151936 columns 10, 6, 4, 5 % (f16 of 139264 3 %) faster by
 * a ring of two than by what schedule/column_vectors.c and schedule/register_prefetch.c say; of
 * 147456, 155648, 159744 1, 1, 2 % slower. By one stage, which leaves room for fewer threads,
 * 163840 to 184320 4, 3, 1, 2, 2, 1 %, 200704 to 225280 2, 3, 3, 6, 3, 9, 2 % (one row 5 to 15 %
 * slower); of 188416 to 196608 as fast. (Measured on an H100.) */
static Advice long_moments(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 131072,
        KEPT = 147456,
        MIDDLE = 163840,
        MIDDLE_END = 184320,
        LONG = 196608,
        LONG_END = 229376,
        EIGHT = 8,
        MANY = 48
    };
    int64_t columns = column_count(s, k);
    if (row_inputs(k) != 1 || row_bytes(k) != TWO_BYTES || columns <= SHORT) return no_advice;
    if (columns < KEPT || (columns < MIDDLE && !column_keepers(s, k)))
        return ring_of_two(columns, EIGHT);
    bool some =
        (columns >= MIDDLE && columns <= MIDDLE_END) || (columns > LONG && columns < LONG_END);
    return some ? one_stage(columns, EIGHT, MANY, 1) : no_advice;
}

/* Layer norm of 512 and 768 columns by one warp, whose tiles are full and whose results meet
 * without a barrier: 0 to 10 and 3 to 8 % faster (one row of 768 of f16 as fast; of 640 columns
 * many rows 8 % faster, few 17 % slower). Of 6144 columns by 256 threads, whose three tiles are
 * full: 1 to 64 rows 2 to 5 %, of a sum of two 5 to 8 % faster, many as fast. (Measured on an
 * H100.) */
static Advice short_moments(const Scheduler *s, const Kernel *k)
{
    enum { TWO_TILES = 512, THREE_TILES = 768, OF_EIGHT_WARPS = 6144 };
    int64_t columns = column_count(s, k);
    if (row_inputs(k) < 1 || row_inputs(k) > PAIR || row_bytes(k) != TWO_BYTES * row_inputs(k))
        return no_advice;
    if (columns == OF_EIGHT_WARPS) return (Advice){FAMILY_ROW, .threads = 8 * WARP, .cluster = 1};
    bool some = row_inputs(k) == 1 && (columns == TWO_TILES || columns == THREE_TILES);
    return some ? (Advice){FAMILY_ROW, .threads = WARP} : no_advice;
}

/* Threads of a slice of a row of 2 bytes beside weights of f32, which a ring holds in shared
 * memory: full tiles, of slices up to 9216 three, of 2048's multiples five to eight, in pairs of
 * CTAs of others four. 0: as the rules have it. */
static int wide_moment_threads(int64_t slice, int ctas)
{
    enum {
        SHORT = 8192,
        SHORT_END = 9216,
        THREE = 24,
        MANY = 10240,
        UNIT = 2048,
        FEW_THREADS = 256,
        TWELVE = 12288,
        LONG = 15360,
        HALF_UNIT = 1024
    };
    if (slice > SHORT && slice <= SHORT_END) return threads_of(slice, THREE, MOST_THREADS);
    if (slice % UNIT == 0 && (slice == MANY || (slice > MANY && ctas > PAIR))) return FEW_THREADS;
    if (ctas > PAIR || slice <= MANY || slice > LONG || slice % HALF_UNIT) return 0;
    return threads_of(slice, slice == TWELVE ? THREE : COLUMNS, MOST_THREADS);
}

/* Layer norm with weights of f32 of 16640 to 30720 columns 2 to 12 %, of 36864 to 65536 0 to 6 %,
 * of 73728 to 114688 3 to 6 %, of 131072 11 %, of 147456 to 262144 4 to 7 % faster by other threads
 * than the rules' (few rows 0 to 6 %; measured on an H100). */
static Advice wide_moments(const Scheduler *s, const Kernel *k)
{
    int64_t columns = column_count(s, k);
    bool plain = shares_wide_columns(s, k) && is_plain_norm(k) && row_bytes(k) == TWO_BYTES &&
                 narrowest_stored(k) == TWO_BYTES;
    if (!plain || k->vec != full_vector(k) || k->cluster < PAIR || k->grouped) return no_advice;
    int threads = wide_moment_threads(ceil_div(columns, k->cluster), k->cluster);
    return threads ? (Advice){FAMILY_ROW, .threads = threads, .cluster = k->cluster} : no_advice;
}

/* Rmsnorm with weights of f32 of 5120 and 6144 columns 7 to 10 % faster with 1 to 512 rows by four
 * vectors a thread than by two, many as fast (of others, whose four tiles are not full, up to 20 %
 * slower; measured on an H100). */
static Advice wide_sum(const Scheduler *s, const Kernel *k)
{
    enum { FIVE = 5120, SIX = 6144 };
    int64_t columns = column_count(s, k);
    if (!is_scaled_by_sum(s, k) || row_bytes(k) != TWO_BYTES || !has_wide_columns(k) ||
        (columns != FIVE && columns != SIX))
        return no_advice;
    return (Advice){FAMILY_ROW, .threads = (int)columns / COLUMNS};
}

/* Layer norm of 57600 to 71680 columns by two to four CTAs an SM with one stage each 6 to 17 %, of
 * 72192 to 94208 0 to 10 %, of 118784 to 131072 11 to 14 %, of 132096 to 147456 1 to 11 %, of
 * 163840 and 172032 5 and 6 %, of 229888 to 262144 13 to 22 % faster than by rings of two (f16 2 to
 * 13 %, 14 %, 4 %, 4 %, 16 to 24 %; one row of 61440 14 % faster, of 65536 7 % slower); of 98304 to
 * 114688 1 to 3 %, of 147968 to 155648 up to 5 %, of 188416 to 229376 up to 6 % slower. */
static Advice one_stage_of_fast_memory(int64_t columns)
{
    enum {
        FIRST = 57344,
        FIRST_END = 96256,
        SECOND = 116736,
        SECOND_END = 147456,
        FULL_TILES_END = 184320,
        LAST = 229376
    };
    /* as many columns a thread as leave all tiles full; slices of which shared memory has room for
     * four and three CTAs' */
    enum {
        EIGHT = 8,
        EIGHT_END = 131072,
        SIXTEEN = 16,
        MANY = 48,
        MORE = 64,
        FOUR_FIT = 8960,
        THREE_FIT = 11776
    };
    int ctas = columns <= EIGHT_END ? EIGHT : SIXTEEN;
    int64_t slice = ceil_div(columns, ctas);
    int each = slice % (MORE * WARP) == 0 ? MORE : slice % (MANY * WARP) == 0 ? MANY : COLUMNS;
    bool middle =
        columns > SECOND && (columns <= SECOND_END || (each > COLUMNS && columns < FULL_TILES_END));
    if (columns <= FIRST || !(columns < FIRST_END || middle || columns > LAST)) return no_advice;
    int most = each == COLUMNS && slice <= FOUR_FIT ? 4 : 3;
    return one_stage(columns, ctas, each, slice <= THREE_FIT ? most : 2);
}

/* One input of 2 bytes: layer norm of 1024 to 4096 columns 2, 5, 3, 11, 4, 8, 3, 7 % faster with 32
 * columns a thread, not 16 (1 and 64 rows 4 % slower); of 18432 to 61440 columns through a ring of
 * two 4 to 19 %, of 73728 to 262144 3 to 26 % (24576 columns of a row alone 23 %, of 64 rows 9 %
 * slower). */
static Advice moments_of_one(int64_t columns)
{
    enum { SHORT = 1024, SHORT_END = 4096, LONG = 16384, SLICE = 28672 };
    enum { UNIT = 512, SHORTER_UNIT = 256, SHORTER_END = 2048, HALF = COLUMNS / 2 };
    Advice one = one_stage_of_fast_memory(columns);
    if (one.threads) return one;
    if (columns > LONG) return ring_of_two(columns, fewest_ctas(columns, SLICE));
    if (columns < SHORT || columns > SHORT_END ||
        columns % (columns < SHORTER_END ? SHORTER_UNIT : UNIT))
        return no_advice;
    int warps = (int)((columns / COLUMNS + HALF) / WARP);
    return (Advice){FAMILY_ROW, .threads = warps * WARP, .cluster = 1};
}

/* F32: layer norm of 65536 and 131072 columns 13 and 21 % faster by full slices of 8192, others 9
 * to 26 % slower. A sum of two of 2 bytes: layer norm of one of 16384, 32768, 65536 columns 4, 9, 8
 * % faster by full slices of 4096, others up to 20 % slower; of one of 66560 to 106496 columns 9,
 * 8, 9, 7, 6, 13, 8, 22 % by one stage, of 114688 to 155648 19, 18, 14, 9, 11, 8, 7 %, of 163840 to
 * 196608 4, 1, 2, 2, 1 % (f16 15 % faster to 2 % slower; one row 4 to 10 % slower). */
static Advice moments_of_fast_memory(const Scheduler *s, const Kernel *k)
{
    enum { LONG_F32 = 65536, SLICE_F32 = 8192, SUM = 16384, LONG_SUM = 65536, SLICE_SUM = 4096 };
    enum { EIGHT = 8, EIGHT_END = 163840, LONGEST_SUM = 196608 };
    int64_t columns = column_count(s, k), slice = 0;
    if (row_inputs(k) == 1 && row_bytes(k) == TWO_BYTES) return moments_of_one(columns);
    if (is_f32_row(k) && columns >= LONG_F32 && columns % SLICE_F32 == 0) slice = SLICE_F32;
    bool sum = row_inputs(k) == PAIR && row_bytes(k) == PAIR * TWO_BYTES;
    if (sum && columns > LONG_SUM && columns <= LONGEST_SUM)
        return one_stage(columns, columns <= EIGHT_END ? EIGHT : 2 * EIGHT, COLUMNS, 1);
    if (sum && columns >= SUM && columns <= LONG_SUM) slice = SLICE_SUM;
    int ctas = slice ? fewest_ctas(columns, slice) : 0;
    if (!slice || columns != slice * ctas) return no_advice;
    return (Advice){FAMILY_ROW, .threads = threads_of(slice, COLUMNS, MOST_THREADS),
                    .cluster = ctas};
}

/* ---- other rows without sums over them ---- */

static bool has_single_reductions(const Scheduler *s, const Kernel *k)
{
    return has_plain_rows(s, k) && !k->accumulator_count &&
           row_bytes(k) == TWO_BYTES * row_inputs(k) && narrowest_stored(k) == TWO_BYTES &&
           column_vectors(k) <= 1 && stored_rows(k) == 1;
}

/* One input: rmsnorm of 5120 to 16384 columns 1 to 11 %, softmax 0 to 13 % faster with 32 columns a
 * thread, not 16; of 106496, 114688, 122880, 131072 columns with 64 12, 10, 4, 4 % and 8, 5, 6, 4 %
 * (73728 to 98304 up to 15 % slower). Two: softmax_bwd of 16384 columns 4 % by four CTAs (12800 to
 * 15360 no faster). */
static Advice light_rows_of_fast_memory(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 4096,
        SLICE = 8192,
        MIDDLE = 65536,
        LONG = 98304,
        LONGEST = 131072,
        SIXTEEN = 16,
        FOUR = 4,
        PAIRS = 16384
    };
    int64_t columns = column_count(s, k);
    if (row_inputs(k) == PAIR && !column_vectors(k) && columns == PAIRS)
        return (Advice){FAMILY_ROW,
                        .threads = threads_of(columns / FOUR, COLUMNS / 2, MOST_THREADS),
                        .cluster = FOUR};
    bool middle = columns > SHORT && columns <= MIDDLE,
         longer = columns > LONG && columns <= LONGEST;
    if (row_inputs(k) != 1 || !(middle || longer)) return no_advice;
    int ctas = longer ? SIXTEEN : fewest_ctas(columns, SLICE),
        each = longer ? 2 * COLUMNS : COLUMNS;
    return (Advice){FAMILY_ROW, .threads = threads_of(ceil_div(columns, ctas), each, MOST_THREADS),
                    .cluster = ctas};
}

/* Single elements of 2 bytes: softmax_bwd of 45001 and 50257 columns 4 to 6 and 10 % faster by
 * sixteen CTAs with all of their row in registers (36001 and 65535 2 and 5 % slower). */
static Advice odd_pairs(const Kernel *k, int64_t columns)
{
    enum { SHORT = 45000, LONG = 51200, SIXTEEN = 16, EIGHT = 8 };
    if (row_inputs(k) != PAIR || column_vectors(k) || columns <= SHORT || columns >= LONG)
        return no_advice;
    return (Advice){FAMILY_ROW,
                    .threads = threads_of(ceil_div(columns, SIXTEEN), COLUMNS, MOST_THREADS),
                    .cluster = SIXTEEN, .per_sm = EIGHT};
}

/* Rmsnorm to bytes: of 9001, 12287, 14001, 16383 columns 7, 11, 22, 2 % faster by 256 threads, of
 * 24575, 28001, 32767 52, 19, 14 % by eight CTAs (20479 and 65535 as fast; few rows and f16 not
 * timed). */
static Advice odd_bytes(const Kernel *k, int64_t columns)
{
    enum { SHORT = 8192, ALONE = 16384, LONG = 20480, LONG_END = 32768, THREADS = 256, EIGHT = 8 };
    bool alone = columns > SHORT && columns <= ALONE,
         shared = columns > LONG && columns <= LONG_END;
    if (row_inputs(k) != 1 || column_vectors(k) != 1 || !(alone || shared)) return no_advice;
    if (alone) return (Advice){FAMILY_ROW, .threads = THREADS, .cluster = 1};
    return (Advice){FAMILY_ROW,
                    .threads = threads_of(ceil_div(columns, EIGHT), COLUMNS, MOST_THREADS),
                    .cluster = EIGHT};
}

static Advice odd_rows(const Scheduler *s, const Kernel *k)
{
    enum { ONE_BYTE = 1, PHASES_OF_BYTES = 3 };
    int64_t columns = column_count(s, k);
    if (has_moments(s, k) || row_bytes(k) != TWO_BYTES * row_inputs(k) || stored_rows(k) != 1)
        return no_advice;
    if (narrowest_stored(k) == ONE_BYTE && k->phases == PHASES_OF_BYTES)
        return odd_bytes(k, columns);
    bool pairs = narrowest_stored(k) == TWO_BYTES && has_light_rows(s, k) && !reads_f16(k);
    return pairs ? odd_pairs(k, columns) : no_advice;
}

/* ---- the advice ---- */

static Advice find_advice(const Scheduler *s, const Kernel *k)
{
    bool fast = has_fast_memory(s);
    Advice partial = fast ? no_advice : partial_advice(s, k);
    if (partial.threads) return partial;
    if (has_pairs_with_sums(s, k))
        return fast ? sums_of_fast_memory(s, k) : first_of(short_sums(s, k), two_long_sums(s, k));
    if (has_f32_pairs_with_one_sum(s, k)) return fast ? no_advice : one_sum_of_f32(s, k);
    if (has_odd_pairs_with_sums(s, k) && !fast)
        return first_of(short_odd_sums(s, k), long_odd_sums(s, k));
    if (k->vec == 1 && !k->accumulator_count && !fast) return odd_rows(s, k);
    Advice spread = spread_advice(s, k);
    if (spread.threads) return spread;
    if (has_plain_moments(s, k))
        return fast ? moments_of_fast_memory(s, k)
                    : first_of(short_moments(s, k), long_moments(s, k));
    if (fast) return has_single_reductions(s, k) ? light_rows_of_fast_memory(s, k) : no_advice;
    return first_of(wide_moments(s, k), wide_sum(s, k));
}

/* The only kernel that walks the graph's rows; NULL: there are several, or none. */
static const Kernel *find_walker(const Scheduler *s)
{
    const Kernel *found = NULL;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        if (!walks_rows(k)) continue;
        if (found || !computes_rows(s, k)) return NULL;
        found = k;
    }
    return found;
}

static void put_key(Text *out, const char *name, int number)
{
    if (number) text_print(out, ",%s=%d", name, number);
}

/* (For sm_100 some of it spills.) */
const char *advised_schedule(const Scheduler *s)
{
    const Kernel *k = s->target->timed ? find_walker(s) : NULL;
    Advice a = k ? find_advice(s, k) : no_advice;
    if (!a.threads || a.cluster > s->target->max_cluster) return NULL;
    Text *out = text_new(s->arena);
    text_print(out, "%s:threads=%d", family_name(a.family), a.threads);
    put_key(out, "rows", a.rows);
    put_key(out, "cluster", a.cluster);
    put_key(out, "stages", a.stages);
    put_key(out, "per_sm", a.per_sm);
    put_key(out, "reuse", a.reuse);
    return text_string(out);
}
