/* schedule/pacing.c: rows of two tensors with sums over rows, which a copy warp asks for at
 * memory's pace (keep_pace in codegen/prelude/). They then take as long as memory does, whatever
 * the threads do, as long as those are fast enough: one sum of 12288 columns is within 1 % of its
 * best in a dozen shapes, of which the fastest are 5 % slower without a pace. So the shape is a
 * simple one: as few CTAs a row as may be, few threads with many columns each, column vectors in
 * registers, and but for the largest clusters no lag.
 *
 * Measured on an H100, over what other rules make of such rows: one sum of 16 bits 0 to 5 % faster
 * from 6144 columns on, of f32 0 to 5 % from 4096 on; two sums -1 to 4 %, of f32 -1 to 9 %, at
 * 36864 columns 17. Shorter rows are 1 to 5 % slower so. */
#include "schedule/internal.h"

enum { NARROW = 2, TILE = MAX_VECTOR * WARP };

static int element_bytes(const Kernel *k)
{
    return row_bytes(k) / row_inputs(k);
}

static bool has_one_sum(const Scheduler *s, const Kernel *k)
{
    return accumulator_registers(s, k) < 2;
}

/* Whole vectors, which lie in a stage as they do in memory, and no more beside them than few
 * threads have registers for. */
static bool has_pairs(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2, F32 = 4 };
    if (row_inputs(k) != PAIR || has_several_columns(k) || k->dynamic || k->vec != full_vector(k))
        return false;
    int bytes = element_bytes(k);
    bool known = row_bytes(k) == PAIR * bytes && (bytes == NARROW || bytes == F32);
    bool lean = k->inner_count && k->inner_count <= PAIR && column_vectors(k) <= 1 &&
                has_cheap_columns(s, k);
    return known && lean && k->rows && !k->kept && k->phases == PAIR &&
           column_count(s, k) * bytes % LINE_BYTES == 0;
}

/* 256 threads, in f32 with 16 columns each. */
static int threads_of_one(const Kernel *k, int64_t slice)
{
    enum { THREADS = 256, COLUMNS = 16 };
    if (element_bytes(k) == NARROW) return THREADS;
    return (int)ceil_div(slice, COLUMNS * WARP) * WARP;
}

/* Two sums keep threads so busy that in a cluster all their tiles must be full (slices of 5632
 * columns are 15 % slower than of 6144): four, of f32 with 16 columns, or three. 0: a slice has no
 * such tiles. (Three for slices of 9216 columns are up to 1 % slower; in the largest cluster, where
 * rows have a lag, 4 % faster with 448 threads, which leave the third tile part empty; 384 fill it,
 * and spill.) */
static int threads_of_two(const Kernel *k, int64_t slice, int ctas)
{
    enum {
        THREE = 3,
        FOUR = 4,
        SHORT = 6144,
        LONG = 7168,
        COLUMNS = 16,
        EIGHT = 8,
        NINE = 9216,
        OPEN = 448
    };
    if (element_bytes(k) > NARROW) return slice % (COLUMNS * WARP) ? 0 : (int)slice / COLUMNS;
    if (ctas == 1) return (int)ceil_div(slice, FOUR * TILE) * WARP;
    if (ctas > EIGHT && slice == NINE) return OPEN;
    int tiles = slice >= LONG ? FOUR : THREE;
    return slice < SHORT || slice % (tiles * TILE) ? 0 : (int)slice / (tiles * MAX_VECTOR);
}

int pacing_threads(const Scheduler *s, const Kernel *k, int ctas)
{
    if (odd_ctas(s, k)) return odd_threads(s, k, ctas);
    int64_t slice = ceil_div(column_count(s, k), ctas);
    return has_one_sum(s, k) ? threads_of_one(k, slice) : threads_of_two(k, slice, ctas);
}

/* By the longest row that one CTA has, and the longest slice of others: 20 kB of each tensor, with
 * two sums of 16 bits 22. */
static int wanted_ctas(const Scheduler *s, const Kernel *k)
{
    enum {
        LEAST = 6144,
        ALONE = 9216,
        LEAST_OF_TWO = 8193,
        ALONE_OF_TWO = 11264,
        SLICE_BYTES = 20 << 10,
        F32 = 4096
    };
    bool narrow = element_bytes(k) == NARROW, one = has_one_sum(s, k);
    int64_t columns = column_count(s, k),
            slice = narrow && !one ? ALONE_OF_TWO : SLICE_BYTES / element_bytes(k);
    int64_t least = !narrow ? F32 + !one : one ? LEAST : LEAST_OF_TWO;
    int64_t alone = !narrow ? F32 : one ? ALONE : ALONE_OF_TWO;
    if (columns < least) return 0;
    if (columns <= alone) return 1;
    int ctas = columns > slice ? fewest_ctas(columns, slice) : 2;
    return ctas <= s->target->max_cluster ? ctas : 0;
}

/* Where another family or cluster is asked for, a row is not of these. */
int pacing_ctas(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    double registers = accumulator_registers(s, k);
    bool other = f->any && f->family != FAMILY_WARP_SPECIALIZED;
    bool pairs = registers >= 1 && registers <= 2 && has_pairs(s, k);
    if (!s->target->bulk_copy || other) return 0;
    int ctas = odd_ctas(s, k);
    if (!ctas && pairs) ctas = wanted_ctas(s, k);
    if (ctas == 1 && has_wide_columns(k))
        return 0; /* rmsnorm's backward of 6144 to 9216 columns 2 to 7 % slower at a pace */
    if (!ctas || (f->cluster && f->cluster != ctas)) return 0;
    return pacing_threads(s, k, ctas) ? ctas : 0;
}

/* Whether column vectors have room in registers: with two sums of 32 columns a thread only of 224
 * threads, since an SM's registers are shared out to four warps at a time. */
bool pacing_holds_columns(const Scheduler *s, const Kernel *k)
{
    enum { MANY = 32, FEW_THREADS = 224 };
    return odd_ctas(s, k) || has_one_sum(s, k) || k->vec * k->tiles < MANY ||
           kernel_threads(k) <= FEW_THREADS;
}

/* The CTAs of the largest clusters wait so long for each other that two sums are better with a lag,
 * if registers have room (layer norm's backward of 98304 and 114688 columns 8 and 5 % faster). */
int pacing_lag(const Scheduler *s, const Kernel *k)
{
    enum { EIGHT = 8, FEW_THREADS = 256 };
    if (odd_ctas(s, k)) return k->accumulator_count && kernel_threads(k) > FEW_THREADS;
    return k->cluster > EIGHT && element_bytes(k) == NARROW && !has_one_sum(s, k) &&
           pacing_holds_columns(s, k);
}

/* Whether its rows are asked for at a pace: of two tensors, of which sums over rows are taken, as
 * they were when the pace was measured. What reads more for each byte that it writes gets more out
 * of memory (backward norms with the residual's gradient over 0.92 of the peak); other rows of one
 * CTA compute about as slowly as memory moves (two sums of 6144 columns 1 % slower at a pace). */
bool wants_pace(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2 };
    if (is_odd(s, k)) return is_odd_at_pace(s, k);
    return k->accumulator_count && row_inputs(k) == PAIR &&
           (k->cluster > 1 || pacing_ctas(s, k) == 1);
}

static bool stores_single_elements(const Kernel *k)
{
    return k->vec == 1 && row_bytes(k) == NARROW * row_inputs(k);
}

/* Single elements of 2 bytes are stored as parts of sectors, of which memory can do less: as if
 * they were 6 % more (backward norms and layer norm of odd rows are best at 0.86 to 0.89 of the
 * peak, and beyond that long ones lose all that they had gained). */
int64_t paced_bytes(const Kernel *k, int64_t traffic)
{
    enum { SIXTEENTHS = 16 };
    return stores_single_elements(k) ? traffic + traffic / SIXTEENTHS : traffic;
}

/* Few rows may still be in L2, from which they come faster than at any pace, and what is written
 * fits there as well. 25 to 95 MB on a GPU whose L2 holds 50: sums over rows of two tensors 0 to 6
 * % slower at a pace; layer norm of single elements up to 2 % slower below 50 MB, 0 to 6 % faster
 * above. */
int paced_from(const Kernel *k)
{
    enum { ALONE = 1, SUMS = 2 };
    return k->accumulator_count ? SUMS : ALONE;
}
