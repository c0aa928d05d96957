/* schedule/narrow_f32.c: rows of f32 that are no whole vectors of 16 bytes. Loads of 4 or 8 bytes
 * take so many registers and instructions that a CTA has long to wait for a row which it has by
 * itself; so clusters of few threads have a row each, shorter ones than of whole vectors. Measured
 * on an H100. */
#include "schedule/internal.h"

enum { ONE = 1, PAIR = 2, F32 = 4, MIDDLE = 12288, LONG = 24576 };

/* Slices of so many columns, twice as long from 12289 on: by eight CTAs at most. */
static int slice_of_eight(int64_t columns, int slice)
{
    return columns > MIDDLE ? 2 * slice : slice;
}

/* A mean and its squares. One input by two CTAs (layer norm of 5001 to 10001 columns 8 to 16 %, 8
 * and 64 rows 22 to 30 % faster; of 11001 2 % slower, of 12287 as fast as by one, of 16383 as by
 * four); two by four and eight (layer norm of a sum of 4095 to 16383 8 to 28 %, 8 to 512 rows 15 to
 * 56 %; of 20479 1 % faster, of 24001 25 % slower). */
static int slice_of_moments(const Kernel *k, int64_t columns)
{
    enum {
        SHORT = 5000,
        SLICE = 5120,
        SHORT_OF_TWO = 3840,
        LONG_OF_TWO = 16384,
        SLICE_OF_TWO = 1536
    };
    if (column_vectors(k) > PAIR) return 0;
    if (row_inputs(k) == ONE) return columns > SHORT && columns <= PAIR * SLICE ? SLICE : 0;
    bool some = row_inputs(k) == PAIR && columns > SHORT_OF_TWO && columns <= LONG_OF_TWO;
    return some ? slice_of_eight(columns, SLICE_OF_TWO) : 0;
}

/* Rmsnorm and softmax of 6145 to 13001 columns by four 3 to 9 %, of 14001 to 24001 by four and
 * eight 8 to 33 %, 8 rows 11 to 63 %, 64 and 512 rows 3 to 46 % faster; softmax_bwd of 8191 to
 * 24001 by eight 1 to 12 %, 8 rows 13 to 26 %; rmsnorm of a sum of 4095 to 24001 by four and eight
 * 2 to 24 %, 8 rows 31 to 40 %. */
static int slice_of_sum(const Kernel *k, int64_t columns)
{
    enum {
        SHORT = 6144,
        SLICE = 3072,
        LONG_SLICE = 5120,
        SHORT_OF_SUM = 3840,
        SLICE_OF_TWO = 1536
    };
    if (column_vectors(k) > ONE ||
        columns <= (row_inputs(k) == PAIR && column_vectors(k) ? SHORT_OF_SUM : SHORT))
        return 0;
    if (row_inputs(k) == PAIR) return slice_of_eight(columns, SLICE_OF_TWO);
    return row_inputs(k) == ONE ? columns > MIDDLE ? LONG_SLICE : SLICE : 0;
}

/* Several numbers at once by four (cross entropy of 12287, 16383 and 20479 columns 6, 18 and 3 %
 * faster, of 8191 6 % slower). */
static int slice_of_several(const Kernel *k, int64_t columns)
{
    enum { SHORT = 11264, SLICE = 5120 };
    return row_inputs(k) == ONE && !column_vectors(k) && columns > SHORT ? SLICE : 0;
}

/* Three phases, stored as bytes, by four (rmsnorm with its largest element of 16383 and 20479
 * columns 50 and 21 % faster, of 12287 2 % slower). */
static int slice_of_bytes(const Kernel *k, int64_t columns)
{
    enum { SLICE = 6144 };
    return row_inputs(k) == ONE && column_vectors(k) <= ONE && columns > PAIR * SLICE ? SLICE : 0;
}

int narrow_f32_slice(const Scheduler *s, const Kernel *k)
{
    int64_t columns = column_count(s, k);
    bool f32 = has_f32_rows(k) && row_bytes(k) == F32 * row_inputs(k) && !has_several_columns(k);
    if (!f32 || k->vec == full_vector(k) || columns >= LONG) return 0;
    if (k->phases > PAIR)
        return narrowest_stored(k) == 1 && !has_moments(s, k) ? slice_of_bytes(k, columns) : 0;
    if (k->phases != PAIR || narrowest_stored(k) != F32) return 0;
    if (has_moments(s, k)) return slice_of_moments(k, columns);
    return exchanges_often(k) ? slice_of_several(k, columns) : slice_of_sum(k, columns);
}
