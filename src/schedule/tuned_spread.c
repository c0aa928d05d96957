/* schedule/tuned_spread.c: what is asked for, as schedule/tuned.c asks, of rows of 2 bytes an
 * element or of f32 that the rules give one CTA, or threads that have four vectors each. Many rows
 * hide what a row waits for; a few do not, and take up to twice as long as spread over more threads
 * or a few CTAs, whose column vectors come with the row. Many rows are then as fast, or faster.
 * Measured on an H100, and every few lengths on an H200, where what many rows lost by is left out;
 * times of 1 and 64 rows that stand behind a matrix product in a stream, 512 and many rows, beside
 * the rules'. */
#include "schedule/internal.h"

enum {
    ONE = 1,
    PAIR = 2,
    FOUR = 4,
    EIGHT = 8,
    TWO_BYTES = 2,
    TWO_PHASES = 2,
    TWO_TILES = 2,
    THREE_TILES = 3,
    FOUR_TILES = 4,
    FIVE_TILES = 5,
    FIVE_THOUSAND = 5120,
    F32_VECTOR = 4
};

/* How many threads have so many vectors each of a slice, all of them; 0: no whole warps do. */
static int full_threads(int64_t slice, int tiles)
{
    int64_t unit = (int64_t)tiles * MAX_VECTOR * WARP;
    return slice % unit ? 0 : (int)(slice / unit) * WARP;
}

/* The same where up to a seventeenth of the places for vectors is empty. */
static int nearly_full_threads(int64_t slice, int tiles)
{
    enum { SHARE = 16 };
    int threads = threads_of(slice, tiles * MAX_VECTOR, MOST_THREADS);
    int64_t idle = (int64_t)threads * tiles * MAX_VECTOR - slice;
    return idle <= slice / SHARE ? threads : 0;
}

static Advice row_by(int threads, int ctas)
{
    return threads ? (Advice){FAMILY_ROW, .threads = threads, .cluster = ctas} : no_advice;
}

/* So many vectors a thread, the last of which some threads do not have. */
static Advice row_of(int64_t columns, int ctas, int tiles)
{
    return row_by(threads_of(ceil_div(columns, ctas), tiles * MAX_VECTOR, MOST_THREADS), ctas);
}

/* What rows of so many columns are shared by: threads that have so many vectors each, in so many
 * CTAs. */
typedef struct {
    int64_t least, most;
    int ctas, tiles;
    enum {
        SOME_HAVE,
        ALL_HAVE,
        MOST_HAVE
    } last; /* the last vector: how many threads have it or the schedule is another */
} Range;

static Advice row_in(const Range *ranges, size_t count, int64_t columns)
{
    for (const Range *r = ranges; r < ranges + count; r++) {
        if (columns < r->least || columns > r->most) continue;
        int64_t slice = ceil_div(columns, r->ctas);
        return r->last == SOME_HAVE
                   ? row_of(columns, r->ctas, r->tiles)
                   : row_by(r->last == ALL_HAVE ? full_threads(slice, r->tiles)
                                                : nearly_full_threads(slice, r->tiles),
                            r->ctas);
    }
    return no_advice;
}
#define ROW_IN(ranges, columns) row_in(ranges, sizeof(ranges) / sizeof *(ranges), columns)

/* Four vectors a thread of slices of up to 4096 columns, which are whole lines of memory (others 2
 * to 4 % slower with many rows). */
static Advice row_of_four_ctas(int64_t columns)
{
    enum { UNIT = 256 };
    return columns % UNIT ? no_advice : row_of(columns, FOUR, FOUR_TILES);
}

/* ---- rows of 2 bytes an element ---- */

/* A mean and its squares of one row: three full vectors a thread, or five, or in a pair two, or
 * nearly three, or four by four CTAs. Layer norm of 4480 to 6400 columns: 1 row 0.72 to 0.94, 64
 * rows 0.79 to 0.92, 512 rows 0.85 to 0.96, many 0.98 to 1.00; of 8704 to 13184 0.72 to 0.85, 0.77
 * to 0.90, 0.80 to 1.02, 0.96 to 1.01; of 14592 to 15104 0.67 to 0.73, 0.79 to 0.86, 0.89 to 0.92,
 * 0.97 to 0.99; of 16512 to 20352 0.43 to 0.54, 0.56 to 0.64, 0.77 to 0.87, 0.96 to 1.02; f16 the
 * same. Other shapes cost many rows more: 224 threads nearly full 1.03, 320 1.05, two full tiles of
 * f16 1.11 to 1.17, of 544 threads 1.21. */
static Advice moments_of_one(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum {
        SHORT = 4480,
        ALONE = 6400,
        PAIRED = 17920,
        LONG = 20480,
        FOURS = 14336,
        FOURS_END = 15360,
        FEW = 384,
        EVEN = 64
    };
    enum { LONG_FAST = 16384, OPEN = 11264, OPEN_END = 12288 };
    if (k->single || columns < SHORT || columns > (has_fast_memory(s) ? LONG_FAST : LONG))
        return no_advice;
    if (columns > FOURS && columns < FOURS_END)
        return has_short_arithmetic(s, k) ? row_of_four_ctas(columns) : no_advice;
    int ctas = columns <= ALONE ? ONE : columns <= PAIRED ? PAIR : FOUR;
    int64_t slice = ceil_div(columns, ctas);
    int three = full_threads(slice, THREE_TILES), five = full_threads(slice, FIVE_TILES),
        two = full_threads(slice, TWO_TILES);
    if (three || five) return row_by(three ? three : five, ctas);
    if (two && two <= FEW && ctas == PAIR && !reads_f16(k)) return row_by(two, ctas);
    if (has_fast_memory(s) && columns > OPEN && columns < OPEN_END) return no_advice;
    int nearly = nearly_full_threads(slice, THREE_TILES);
    return row_by(ctas == ONE && nearly % EVEN ? 0 : nearly, ctas);
}

/* Of a sum of two that is not stored. */
static Advice moments_of_inner_sum(const Kernel *k, int64_t columns)
{
    enum { ALONE = 6144, PAIRED = 12288, FOURS = 14336, FOURS_END = 16384, SLICE = 4096 };
    if (k->single || columns > FOURS_END) return no_advice;
    if (columns > FOURS) return row_of_four_ctas(columns);
    if (columns > PAIRED) return no_advice;
    int ctas = columns < ALONE && columns != FIVE_THOUSAND ? ONE : PAIR;
    return row_of(columns, ctas, columns <= (int64_t)SLICE * PAIR ? TWO_TILES : FOUR_TILES);
}

static Advice moments_of_stored_sum(const Kernel *k, int64_t columns)
{
    static const Range ranges[] = {
        {4096, 5119, ONE, TWO_TILES, SOME_HAVE},
        {5120, 5120, PAIR, TWO_TILES, SOME_HAVE}, /* of f16 */
        {5121, 6143, ONE, TWO_TILES, SOME_HAVE},
        {6144, 10240, PAIR, TWO_TILES, SOME_HAVE},
        {10241, 18432, PAIR, THREE_TILES, SOME_HAVE},
        {18433, 20480, FOUR, TWO_TILES, SOME_HAVE},
        {20481, 24576, FOUR, THREE_TILES, SOME_HAVE},
        {26624, 32768, EIGHT, TWO_TILES, SOME_HAVE},
    };
    static const Range full_threes[] = {{4096, 6143, ONE, THREE_TILES, ALL_HAVE}};
    enum { KEPT = 12288, KEPT_END = 26623, EIGHTS = 26624 };
    bool f16 = reads_f16(k), kept = k->single && columns > KEPT && columns <= KEPT_END;
    if (kept || (f16 ? columns >= EIGHTS : columns == FIVE_THOUSAND)) return no_advice;
    Advice threes = f16 ? no_advice : ROW_IN(full_threes, columns);
    return threes.threads ? threes : ROW_IN(ranges, columns);
}

/* Of a sum of two. Layer norm of one of 4096 and 4352 to 6400 columns: 1 row 0.74 to 0.87, 64 rows
 * 0.76 to 0.87, 512 rows 0.95 to 1.07, many 0.99 to 1.00; of 6912 to 12032 0.55 to 0.96, 0.64 to
 * 0.94, 0.82 to 1.00, 0.98 to 1.00; of 12544 to 18432 0.73 to 0.89, 0.81 to 0.93, 0.98 to 1.06,
 * 0.95 to 1.02; of 18688 to 24320 0.84 to 0.90, 1.06 to 1.11, 1.01 to 1.07, 0.95 to 0.97; of 26624
 * to 32768 0.70 to 0.90, 0.88 to 1.10, 0.97 to 1.03, 0.97 to 1.00. F16 the same, but for more than
 * 24576 columns, where many rows take 1.03. Rows that have clusters without it stay as they are
 * from 12289 to 26623 columns, for 64 rows would take 1.05. */
static Advice moments_of_sum(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { FIRST = 4096, SHORT = 4352, BY_EIGHT_WARPS = 6144 };
    bool stored = stored_rows(k) > ONE;
    if (columns < SHORT && !(stored && columns == FIRST)) return no_advice;
    if (columns == BY_EIGHT_WARPS || (has_fast_memory(s) && (!stored || columns > BY_EIGHT_WARPS)))
        return no_advice;
    return stored ? moments_of_stored_sum(k, columns) : moments_of_inner_sum(k, columns);
}

/* One reduction of two rows that a vector of 2 or 4 bytes an element scales. Rmsnorm of a sum of
 * 7168 to 13312 columns: 1 row 0.78 to 0.97, 64 rows 0.88 to 0.99, 512 rows 0.91 to 0.99, many as
 * fast; of 13568 to 16128 0.37 to 0.73, 0.58 to 0.90, 0.86 to 0.96, 0.84 to 1.00; of 16640 to 18432
 * 0.91 to 0.97, 0.98 to 1.05, 0.96 to 0.99, as fast; of 26880 to 32768 0.82 to 0.96, 0.93 to 0.99,
 * 0.98 to 1.00, as fast. Of x * silu(z) and rmsnorm's gradient without its sums of up to 18432
 * columns 0.40 to 0.99 (f16's gradient of 7168 and 8192 1.01), 0.51 to 1.0, 0.74 to 0.98, 0.71
 * to 1.03; longer ones many rows 1.04. (12288, 14336 and 16384 columns have four or eight CTAs by
 * few_vector_ctas.) */
static Advice sum_of_two(const Kernel *k, int64_t columns)
{
    static const Range ranges[] = {
        {7168, 13312, PAIR, TWO_TILES, SOME_HAVE},
        {13313, 16384, PAIR, THREE_TILES, SOME_HAVE},
        {16385, 18432, FOUR, TWO_TILES, SOME_HAVE},
        {26625, 32768, EIGHT, TWO_TILES, SOME_HAVE}, /* where both rows are stored */
    };
    enum { LONG = 18432 };
    return columns > LONG && stored_rows(k) == ONE ? no_advice : ROW_IN(ranges, columns);
}

/* The same where a largest element, found in a phase of its own, scales it to bytes: rmsnorm of a
 * sum of two of 5120 and 7168 to 12287 columns: 1 row 0.81 to 0.94, 64 rows 0.91 to 0.98, 1024 rows
 * 0.91 to 1.01, many 0.98 to 1.00; of 12288 to 16384 0.44 to 0.95, 0.58 to 1.04, 0.70 to 1.04, 0.73
 * to 0.99 (f16 of 16384 1.02); of 18432 0.84 to 0.92, 0.99, 0.99, 1.00. With a scale that is given
 * 0.38 to 0.99, 0.58 to 1.0, 0.83 to 0.99, 0.82 to 1.01 (7168 to 18432, 26625 to 32768). */
static Advice scaled_bytes_of_sum(int64_t columns)
{
    static const Range ranges[] = {
        {5120, 5120, PAIR, TWO_TILES, SOME_HAVE},
        {7168, 12287, PAIR, TWO_TILES, SOME_HAVE},
        {12288, 16384, PAIR, THREE_TILES, SOME_HAVE},
        {16385, 18432, FOUR, TWO_TILES, ALL_HAVE},
    };
    return ROW_IN(ranges, columns);
}

/* Two rows that nothing else scales, to bytes, by threads that all have as many. silu(x) * y by its
 * largest element of 8192 to 12288 columns: 1 row 0.62 to 0.96, 64 rows 0.64 to 0.96, 512 rows 0.82
 * to 0.97, many 0.95 to 0.99; of 13824 0.73 to 0.77, 0.76 to 0.79, 0.87, 0.99; of 14336 to 18432
 * 0.63 to 0.81, 0.83 to 0.96, 0.82 to 0.95, 0.95 to 0.99; of 28672 and 32768 0.74, 0.84, 0.95,
 * 0.99. Where some threads have less many rows take 1.0 to 1.09. */
static Advice bytes_of_two(int64_t columns)
{
    static const Range ranges[] = {
        {8192, 12288, PAIR, TWO_TILES, ALL_HAVE},
        {12289, 14080, PAIR, THREE_TILES, ALL_HAVE},
        {14081, 18432, FOUR, TWO_TILES, ALL_HAVE},
        {26625, 32768, EIGHT, TWO_TILES, ALL_HAVE},
    };
    return ROW_IN(ranges, columns);
}

/* One reduction, or a maximum and the sum under it, of one row that nothing scales. Softmax of 8704
 * to 12288 columns: 1 row 0.85 to 1.0, 64 rows 0.95 to 1.02, 512 rows 0.94 to 1.06, many 0.99
 * to 1.00. */
static Advice plain_row(int64_t columns)
{
    static const Range ranges[] = {{8704, 12288, PAIR, THREE_TILES, MOST_HAVE}};
    return ROW_IN(ranges, columns);
}

/* ---- column vectors of f32 ---- */

/* A mean and its squares of a sum of two of 2 bytes: two vectors a thread, so that registers have
 * room for column vectors, too, or, where slices would be short, three. Layer norm of one of 4096
 * columns: 1 row 0.66, 64 rows 0.77, 512 rows 0.95, many 0.99; of 5120 to 8192 0.62 to 0.76, 0.71
 * to 0.86, 0.83 to 1.02, 0.98 to 1.03; of 8448 to 11520 0.63 to 0.80, 0.73 to 0.89, 0.87 to 0.93,
 * 0.98 to 1.03; of 12032 to 16384 0.47 to 0.77, 0.68 to 0.90, 0.84 to 1.02, 0.94 to 1.02. */
static Advice wide_moments_of_sum(int64_t columns)
{
    static const Range ranges[] = {
        {4096, 4096, PAIR, TWO_TILES, SOME_HAVE},   {5120, 7168, PAIR, TWO_TILES, SOME_HAVE},
        {7169, 8192, FOUR, TWO_TILES, SOME_HAVE},   {8193, 11776, PAIR, THREE_TILES, SOME_HAVE},
        {11777, 14336, FOUR, TWO_TILES, SOME_HAVE}, {14337, 16384, EIGHT, TWO_TILES, SOME_HAVE},
    };
    return ROW_IN(ranges, columns);
}

/* The same of one row of f32: up to 24 columns a thread, of up to 8192 columns all threads as many,
 * but for 7168 and 8192. Layer norm of f32 of 4608, 5120, 6144, 7168, 7680 and 8192 columns: 1 row
 * 0.70 to 0.83, 64 rows 0.81 to 0.91, 512 rows 0.90 to 1.01, many 0.99 to 1.00; of 8320 to 11520
 * 0.46 to 0.62, 0.65 to 0.82, 0.84 to 0.97, 0.98 to 1.03. */
static Advice moments_of_f32(const Scheduler *s, int64_t columns)
{
    enum {
        SHORT = 4608,
        PAIRED = 6144,
        MIDDLE = 8192,
        LONG = 11520,
        EACH = 24,
        UNIT = 1024,
        FIVE_WARPS = 5 * WARP
    };
    if (columns < SHORT || columns > (has_fast_memory(s) ? PAIRED : LONG)) return no_advice;
    int ctas = columns <= PAIRED ? PAIR : FOUR;
    if (columns > PAIRED && columns <= MIDDLE && columns % UNIT == 0)
        return row_by(FIVE_WARPS, ctas);
    int threads = threads_of(ceil_div(columns, ctas), EACH, MOST_THREADS);
    bool full = columns % ((int64_t)ctas * threads * F32_VECTOR) == 0;
    return columns <= MIDDLE && !full ? no_advice : row_by(threads, ctas);
}

/* A sum of two of f32: up to twelve columns a thread, and some threads of the last warp idle, for
 * where all have as many a few rows are 10 to 20 % slower. Rmsnorm of one of 5120 to 8192 columns:
 * 1 row 0.73 to 0.91, 64 rows 0.91 to 0.96, 512 rows 0.90 to 0.99, many as fast; of 8704 to 16384
 * 0.49 to 0.71, 0.90 to 1.02, 0.91 to 0.98, as fast. Layer norm of one of 4096 and 5632 to 8192
 * columns 0.70 to 0.79, 0.83 to 0.97, 0.89 to 1.02, as fast. */
static Advice nearly_twelve(int64_t columns, int ctas)
{
    enum { EACH = 12 };
    int threads = threads_of(ceil_div(columns, ctas), EACH, MOST_THREADS);
    return row_by((int64_t)threads * EACH * ctas == columns ? threads + WARP : threads, ctas);
}

static Advice sum_of_two_of_f32(int64_t columns)
{
    enum { SHORT = 5120, PAIRED = 8192, LONG = 16384 };
    return columns < SHORT || columns > LONG
               ? no_advice
               : nearly_twelve(columns, columns <= PAIRED ? PAIR : FOUR);
}

static Advice moments_of_sum_of_f32(int64_t columns)
{
    enum { FIRST = 4096, SHORT = 5632, LONG = 8192 };
    return columns == FIRST || (columns >= SHORT && columns <= LONG) ? nearly_twelve(columns, PAIR)
                                                                     : no_advice;
}

static Advice rows_of_f32(const Scheduler *s, const Kernel *k, int64_t columns)
{
    bool pair = row_inputs(k) == PAIR;
    bool all = row_bytes(k) == (pair ? PAIR : ONE) * (int)sizeof(float) &&
               narrowest_stored(k) == sizeof(float) && k->vec == F32_VECTOR;
    if (!all || k->phases != TWO_PHASES || column_vectors(k) > PAIR) return no_advice;
    if (has_moments(s, k))
        return pair ? moments_of_sum_of_f32(columns) : moments_of_f32(s, columns);
    return pair && column_vectors(k) == ONE ? sum_of_two_of_f32(columns) : no_advice;
}

/* ---- the advice ---- */

/* Of two rows of 2 bytes each, stored as bytes, or bytes beside others. (Not measured on an H200.)
 */
static Advice rows_to_bytes(const Scheduler *s, const Kernel *k, int64_t columns)
{
    bool sum = row_inputs(k) == PAIR && column_vectors(k) == ONE && !has_wide_columns(k) &&
               stored_rows(k) == PAIR;
    if (has_fast_memory(s) || has_moments(s, k)) return no_advice;
    if (k->phases > TWO_PHASES) return sum ? scaled_bytes_of_sum(columns) : no_advice;
    if (row_inputs(k) == PAIR && !column_vectors(k)) return bytes_of_two(columns);
    return sum && k->inner_count == ONE ? sum_of_two(k, columns) : no_advice;
}

static Advice rows_of_two_bytes(const Scheduler *s, const Kernel *k, int64_t columns)
{
    int inputs = row_inputs(k), vectors = column_vectors(k);
    if (row_bytes(k) != TWO_BYTES * inputs) return no_advice;
    if (narrowest_stored(k) == ONE) return rows_to_bytes(s, k, columns);
    if (narrowest_stored(k) != TWO_BYTES || k->phases != TWO_PHASES) return no_advice;
    if (!has_moments(s, k) && few_vector_ctas(s, k)) return no_advice;
    if (!has_moments(s, k) && inputs == PAIR && vectors == ONE && k->inner_count == ONE)
        return sum_of_two(k, columns);
    bool wide = has_moments(s, k) && inputs == PAIR && vectors <= PAIR && !has_fast_memory(s);
    if (has_wide_columns(k)) return wide ? wide_moments_of_sum(columns) : no_advice;
    if (!has_moments(s, k)) return inputs == ONE && !vectors ? plain_row(columns) : no_advice;
    if (vectors > PAIR) return no_advice;
    return inputs == ONE    ? moments_of_one(s, k, columns)
           : inputs == PAIR ? moments_of_sum(s, k, columns)
                            : no_advice;
}

Advice spread_advice(const Scheduler *s, const Kernel *k)
{
    bool passes = passes_twice(s, k) || passes_in(s, k, TWO_PHASES + 1);
    bool plain = passes && keeps_rows_of(k, row_dtype(k)) && k->vec == full_vector(k) &&
                 !k->accumulator_count;
    if (!plain || stored_rows(k) > row_inputs(k)) return no_advice;
    int64_t columns = column_count(s, k);
    return row_dtype(k) == DTYPE_F32 ? rows_of_f32(s, k, columns)
                                     : rows_of_two_bytes(s, k, columns);
}
