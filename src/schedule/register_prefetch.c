/* schedule/register_prefetch.c: rows of a cluster whose registers the next row refills. */
#include "schedule/internal.h"

/* F32 of which a ring beside column vectors in shared memory is better than registers that the next
 * row refills (layer norm of 98304, 106496, 114688 and 122880 columns 2 to 8 %, of 131072 1.5 %
 * faster; of 81920 3 % slower). */
bool rings_f32_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 98304, LONG = 131072 };
    int64_t columns = column_count(s, k);
    return is_f32_row(k) && has_moments(s, k) && column_vectors(k) && !k->accumulator_count &&
           columns >= SHORT && columns <= LONG;
}

/* A mean with its squares: as far as 16 CTAs of a cluster can hold the row well (layer norm of
 * 40960 to 196608 columns 4 to 25 % faster than by a ring, f16 of 33792 to 47104 13 to 38 %, of
 * 51200 to 106496 2 to 11 %, of 262144 6 % slower, and 1 to 3 % where a ring has full slices in
 * clusters of 4 and 8; in f32 as fast at 65536, 2 % faster at 262144). Once shared memory has no
 * room for two rows beside column vectors, as far as registers reach (16 bits of 524288 columns 42
 * %, of 786432 48 % faster, but of 327680 and 400000 4 to 6 % slower). */
static bool may_refill_moments(DType dtype, int64_t columns)
{
    enum { LEAST = 32768, MOST = 16 * REFILL_SLICE, LEAST_F32 = 65536, MOST_F32 = 262144 };
    enum { FULL = 16384, BESIDE_RING = 458752 };
    bool full = columns == 4 * FULL || columns == 8 * FULL;
    if (dtype == DTYPE_F32) return columns > LEAST_F32 && columns <= MOST_F32;
    if (columns > BESIDE_RING) return columns <= LONGEST_REFILLED;
    return columns > LEAST && columns <= MOST && !full;
}

/* Sums of two inputs, where no cluster has a row by itself. Bf16 (layer norm of a sum of 131072
 * columns 9 %, of 262144 2 %, of 294912 to 524288 6 to 16 %, rmsnorm of one of up to 262144 1 %, of
 * 393216 20 %, of 524288 3 % faster so than by a ring; of 311296 and 327680, of which shared memory
 * has room for two beside the weights, 6 to 8 % slower), and f16 of 393216 (15 to 19 %; of 524288 9
 * to 17 % slower), and f32 as far as registers reach (layer norm of one of 147456 columns 2 %, of
 * 163840 to 196608 17 to 20 %, rmsnorm of one of 196608 15 % faster, of 163840 and 180224 1 %
 * slower). */
static bool may_refill_sum(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { LEAST = 65536, RING = 303104, BESIDE_RING = 327680, MOST_F16 = 393216, TWO = 2 };
    enum { LEAST_F32_MOMENTS = 147456, LEAST_F32 = 188416 };
    bool rings = columns > RING && columns <= BESIDE_RING && !has_moments(s, k);
    bool bf16 = keeps_rows_of(k, DTYPE_BF16) && columns > LEAST &&
                columns <= LONGEST_SUM_REFILLED && !rings;
    bool f16 = keeps_rows_of(k, DTYPE_F16) && columns > BESIDE_RING && columns <= MOST_F16;
    int least_f32 = has_moments(s, k) ? LEAST_F32_MOMENTS : LEAST_F32;
    bool f32 = keeps_rows_of(k, DTYPE_F32) && column_vectors(k) && columns >= least_f32 &&
               columns <= LONGEST_F32_SUM_REFILLED;
    bool known = columns <= MOST_SHORT_REFILLED || column_vectors(k);
    return row_inputs(k) == TWO && k->phases == TWO && known && (bf16 || f16 || f32);
}

/* A single sum beside column vectors. Beyond what is refilled as shorter rows are f32 as far as
 * registers reach (294912 to 393216 columns 4 to 20 % faster), and bf16 where shared memory has no
 * room for two rows beside column vectors (524288 26 % faster, 400000 5, 458752 2 % slower; of
 * 589824 on groups are 5 % faster). Of rows stored as bytes those of 16 bits from where it has room
 * for none of those (655360 and 786432 29 % faster; of 524288 7 %, of 57344 to 262144 2 to 15 %
 * slower). */
static bool may_refill_single(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { LEAST = 49152, MOST_F32 = 393216, BESIDE_RING = 458752, MOST_BF16 = 524288 };
    if (narrowest_stored(k) < 2 && row_bytes(k) <= 2)
        return columns > MOST_BF16 && columns <= LONGEST_REFILLED;
    if (columns <= MOST_SHORT_REFILLED) return columns > LEAST || narrows_f32_long(s, k);
    if (has_f32_rows(k)) return columns <= MOST_F32;
    return row_dtype(k) == DTYPE_BF16 && columns > BESIDE_RING && columns <= MOST_BF16;
}

/* Whether CTAs that share a row keep their slices in registers, which the next row refills: four
 * vectors or more a thread, of rows that no cluster has by itself. (Rmsnorm of 53248 to 262144
 * columns was 1 to 5 % faster so than by a ring, in f32 and f16 as fast or up to 1 % faster.) */
bool may_refill(const Scheduler *s, const Kernel *k)
{
    enum { VECTOR_BYTES = 16, LEAST_VECTORS = 4 };
    if (k->accumulator_count || !k->inner_count || k->grouped || has_several_columns(k))
        return false;
    if (single_slice(s, k) || column_keepers(s, k)) return false;
    if (s->forced.stages) return asks_no_ring(s);
    int64_t columns = column_count(s, k);
    DType dtype = row_dtype(k);
    int vector = k->vec * dtype_info[dtype].bytes;
    bool fits = vector >= VECTOR_BYTES && vector * LEAST_VECTORS <= 4 * REFILL_REGISTERS;
    bool known = dtype == DTYPE_BF16 || dtype == DTYPE_F16 || dtype == DTYPE_F32;
    if (s->forced.any || !fits || !known) return false;
    if (row_inputs(k) != 1) return may_refill_sum(s, k, columns) && !shares_wide_columns(s, k);
    if (has_moments(s, k))
        return !shares_wide_columns(s, k) && !rings_f32_moments(s, k) &&
               may_refill_moments(dtype, columns);
    return column_vectors(k) && may_refill_single(s, k, columns);
}
