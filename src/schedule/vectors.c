/* schedule/vectors.c: about how many vectors of a row a thread gets, and how many threads a row has
 * at most. */
#include "schedule/internal.h"

/* Rows of which one input of up to 2 bytes a column is read, and nothing else. */
bool is_light(const Scheduler *s, const Kernel *k)
{
    return !has_column_accumulators(k) && row_bytes(k) <= 2 && !column_vectors(k) &&
           !has_moments(s, k);
}

/* Whether two CTAs of 512 threads, of which an SM holds two, have the row in their registers:
 * rmsnorm of 65536 columns is 3 % faster than by eight; with a mean and its squares or
 * without columns it is no faster, and f16 spills. */
bool fills_pairs(const Scheduler *s, const Kernel *k)
{
    enum { MOST = 65536, OTHER = 8 << 10 };
    int64_t held = column_bytes(k, 0) * column_count(s, k); /* by both, twice an SM */
    if (held + OTHER > s->target->smem_per_sm) return false;
    return may_refill(s, k) && column_vectors(k) && !has_moments(s, k) && row_bytes(k) <= 2 &&
           !reads_f16(k) && column_count(s, k) <= MOST;
}

/* Whether a CTA has 32 kB of rows of 131072 columns. */
static bool has_full_slice(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 131072, SLICE_BYTES = 32 << 10 };
    return row_inputs(k) == 1 && column_count(s, k) == LONG &&
           row_bytes(k) * LONG == SLICE_BYTES * k->cluster;
}

/* CTAs that share a row, find a mean and its squares, and are best with many threads: pairs of bf16
 * keep step with the other pairs so (layer norm of 32768 columns 2 % faster), and so do those of
 * 131072 columns (1.5 %; measured on an H100). */
static bool wants_many(const Scheduler *s, const Kernel *k)
{
    bool pair = k->cluster == 2 && row_bytes(k) <= 2 && !reads_f16(k);
    return has_moments(s, k) && (pair || has_full_slice(s, k));
}

/* A last tile that a quarter of the threads have keeps SMs from doing the same at the same time
 * (f32 of 98304 to 122880 columns 2 to 4 % faster than with full tiles). */
int uneven_threads(const Scheduler *s, const Kernel *k, int64_t vectors)
{
    enum { FIVE = 5, SIXTEENTHS = 16 };
    bool shared =
        k->cluster > 1 && k->cluster == s->target->max_cluster && k->vec == full_vector(k);
    if (!shared || !rings_f32_moments(s, k) || has_full_slice(s, k)) return 0;
    return (int)(vectors * FIVE / (SIXTEENTHS * WARP)) * WARP;
}

/* Rows of an input that several phases read; of others only one may. */
static bool keeps_one_input(const Kernel *k)
{
    int kept = 0;
    for (int i = 0; i < k->load_count; i++) {
        uint64_t phases = k->loads[i].phases;
        kept += is_row_vector(k, &k->loads[i]) && phases & (phases - 1);
    }
    return kept == 1;
}

static bool is_one_row_of_moments(const Scheduler *s, const Kernel *k)
{
    return has_moments(s, k) && keeps_one_input(k) && !k->accumulator_count &&
           k->vec == full_vector(k);
}

/* Of rows of up to 4096 columns: fewer warps, that is more vectors a thread, from where they are
 * full (layer norm of 2304, 2816, 3072, 3584 and 3840 columns 3 to 5 %, in f32 of 2560 to 3840 1 to
 * 16 %, of 2048 no faster; with a scale and a shift for each sample of 1024 to 3072 3 to 11 %,
 * stored as bytes of 1024 to 2048 5 to 11 %). */
static int moment_vectors(const Scheduler *s, const Kernel *k, int64_t vectors)
{
    enum { THREE = 3, SHORTEST = 1024, SHORT = 2048, LEAST = 2560, SOME = 3072 };
    int64_t columns = column_count(s, k);
    if (is_f32_row(k)) return columns > SHORT ? 4 : 2;
    if (row_inputs(k) > 1 || (narrowest_stored(k) < 2 && columns <= SHORT))
        return columns >= SHORTEST ? 4 : 2;
    bool full = columns > SHORT && vectors % (THREE * WARP) == 0;
    return columns > SOME ? 4 : columns > LEAST || full ? THREE : 2;
}

/* Full vectors a thread. Sums over the rows want few warps in f32, too (4096 columns:
 * 12 % over two vectors). Where a mean and its squares are exchanged together, which takes a
 * warp some fifty instructions a row, fewer warps do it (measured on an H100: 3 to 14 %
 * from 4096 columns on). Rows that refill registers take as many as fit. */
int wanted_vectors(const Scheduler *s, const Kernel *k, int64_t vectors)
{
    enum { LONG = 4096, ELEMENTS = 16, SINGLE = 32, F32 = 4, MIDDLE = 8448, THREE = 3 };
    enum {
        NARROW_RING = 16384,
        NARROW_HELD = 6144,
        SOME = 1024,
        HELD = 8192,
        NO_RING = 12288,
        ALONE = 1280
    };
    bool often =
        exchanges_often(k) && column_count(s, k) >= SOME && k->vec == full_vector(k) && !k->dynamic;
    often &= k->phases == 2 || column_count(s, k) <= NO_RING;
    bool many = row_bytes(k) <= 2 ||
                (k->phases > 2 && is_f32_row(k)); /* f32 in three phases 6 %, of 5120 columns */
    int some = (many ? SINGLE : ELEMENTS) / full_vector(k);
    if (k->phases > 2 && row_bytes(k) <= 2 && column_count(s, k) > HELD) some += 2;
    if (pair_vectors(s, k)) return pair_vectors(s, k);
    if (column_count(s, k) < LONG)
        return is_one_row_of_moments(s, k) ? moment_vectors(s, k, vectors) : often ? some : 2;
    if (k->cluster > 1 && single_slice(s, k))
        return few_vector_ctas(s, k) ? 2 : SINGLE / full_vector(k);
    if (passes_by_blocks(s, k)) return block_vectors(s, k);
    /* single elements from a copy warp's stages take more instructions (7 to 15 %) */
    if (k->cluster > 1 && !may_fetch_rows(k)) return 1;
    if (has_column_accumulators(k) && full_vector(k) == F32) return ELEMENTS / F32;
    /* from 544 threads with two vectors on, ptxas spills what two sums need */
    bool middle = k->cluster > 1 && column_count(s, k) > (int64_t)MIDDLE * k->cluster;
    if (accumulator_registers(s, k) >= 2 && middle) return THREE;
    if (k->cluster == 2 && fills_pairs(s, k)) return 8;
    if (wants_many(s, k) || (reads_again(s, k) && vectors <= MOST_THREADS)) return 2;
    /* of two inputs, two CTAs then fit an SM (softmax_bwd of 12288 columns 1 %, norm of x * silu(z)
     * of 11008 33 %) */
    bool full = vectors > MOST_THREADS && vectors % (THREE * WARP) == 0;
    bool three = full || (vectors > ALONE && vectors <= THREE * SUM_THREADS);
    bool inputs = row_inputs(k) > 1 && !has_moments(s, k);
    if (three && k->cluster == 1 && !k->accumulator_count && inputs) return THREE;
    /* rows of bytes, or stored as bytes, take few registers (scaling by the largest element of 8192
     * columns 5 %, norm of 8-bit rows of 8192 and 16384 2 to 6 %) */
    bool bytes =
        k->phases == 2 && row_bytes(k) <= 2 && (row_bytes(k) == 1 || narrowest_stored(k) == 1);
    if (bytes && k->cluster == 1 && k->vec == full_vector(k) && !k->accumulator_count &&
        k->inner_count && !reads_again(s, k))
        return SINGLE / full_vector(k);
    /* a mask of bytes takes few registers, too (softmax of 8192 columns 16 %) */
    bool masked =
        row_inputs(k) == 2 && row_bytes(k) == 3 && !column_vectors(k) && !has_moments(s, k);
    if (masked && k->cluster == 1 && !k->accumulator_count && column_count(s, k) <= HELD)
        return SINGLE / full_vector(k);
    /* a ring of short vectors wants many threads (layer norm of 16386 to 20484 columns 6 to 12 %)
     */
    bool narrow = k->vec > 1 && k->vec < full_vector(k) && k->cluster == 1;
    if (has_moments(s, k) && narrow && column_count(s, k) > NARROW_RING) return 2;
    /* ptxas takes registers for two CTAs of 448 to 512 threads an SM (softmax of 7166 and 8190
     * columns 16 %) */
    if (is_light(s, k) && narrow && column_count(s, k) > NARROW_HELD) return 4;
    /* what a ring leaves of registers holds few elements of several inputs beside wide column
     * vectors, or of f16 */
    bool heavy = shares_wide_columns(s, k) || (reads_f16(k) && column_vectors(k) > 2);
    if (k->cluster > 1 && row_inputs(k) > 1 && has_moments(s, k) && heavy) return 2;
    /* with two, 256 threads fill the last tile, and an SM holds as many (layer norm of 4096 columns
     * 1 %) */
    bool even =
        k->cluster == 1 && column_count(s, k) == LONG && row_inputs(k) == 1 && row_bytes(k) == 2;
    if (even && has_moments(s, k) && !k->accumulator_count && !has_wide_columns(k) &&
        narrowest_stored(k) > 1)
        return 2;
    if (has_moments(s, k) || (k->cluster > 1 && may_refill(s, k))) return 4;
    return often ? some : 2;
}

/* Whether registers hold a sum's rows only with all the threads that there are. */
static bool is_long_sum(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 393216 };
    return row_inputs(k) > 1 && column_count(s, k) > LONG && may_refill(s, k);
}

/* How many threads a long row's CTA may have. Accumulators want registers, so fewer
 * threads: in a cluster as many as have two vectors each of the longest slice. Without them
 * a cluster's CTA, which waits for others, should leave room for a second one. */
int most_threads(const Scheduler *s, const Kernel *k)
{
    enum { THREE_QUARTERS = 768, LONGER = 576, SINGLE = 256 };
    if (k->cluster > 1 && single_slice(s, k)) return SINGLE;
    /* 64-bit coordinates take registers, and CTAs are as few as results, but a single one has
       registers to itself; blocks want several CTAs an SM */
    if (k->dynamic && !(k->rows | k->kept)) return MOST_THREADS;
    if (k->dynamic || passes_by_blocks(s, k)) return SUM_THREADS;
    if (k->cluster == 1 && !has_column_accumulators(k)) return MOST_THREADS;
    if (k->cluster == 1) return accumulator_registers(s, k) <= 1 ? THREE_QUARTERS : SUM_THREADS;
    if (full_slice_threads(s, k)) return full_slice_threads(s, k);
    if (has_column_accumulators(k)) return LONGER;
    if (wants_many(s, k) || is_long_sum(s, k)) return MOST_THREADS;
    bool middle = k->cluster <= 8 && column_count(s, k) <= 8 * 16384;
    return is_light(s, k) && middle ? THREE_QUARTERS : SUM_THREADS;
}
