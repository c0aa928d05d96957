/* schedule/fit_split.c: which rows several CTAs share, a cluster or a group, and how many columns
 * each of those has. */
#include "schedule/internal.h"

enum { NARROW = 2 /* bytes */ };

/* Sums over rows of three inputs of 2 bytes, whose slices of 4096 columns are full (backward norms
 * with the residual's gradient of 16384, 32768 and 65536 columns 0 to 5 % faster than by 8192, of
 * 24576 10 % slower by 3072). */
static bool sums_three_inputs(const Scheduler *s, const Kernel *k)
{
    enum { INPUTS = 3, SLICE = 4096 };
    int64_t columns = column_count(s, k), ctas = columns / SLICE;
    bool full = columns % SLICE == 0 && !(ctas & (ctas - 1)) && ctas <= s->target->max_cluster;
    double sums = accumulator_registers(s, k);
    return full && sums > 0 && sums <= 2 && row_inputs(k) == INPUTS && row_bytes(k) == 2 * INPUTS;
}

/* How many columns of 2 bytes a CTA has whose registers the next row refills. For a mean and its
 * squares somewhat fewer (102400 to 106496 columns 2 to 5 % faster by sixteen CTAs than by eight),
 * but eight CTAs up to 212992, unless sixteen have full warps and no more than 12288 columns each,
 * or schedule/tuned.c knows better (118784 to 151936 columns 1 to 8 %, 172032 and 188416 2 %,
 * 204800 and 212992 10 to 17 % faster so; measured on an H100). */
static int64_t refilled_slice(const Scheduler *s, const Kernel *k)
{
    enum {
        MOMENTS = 12544,
        BY_EIGHT = 26624,
        SHORT = 114688,
        LONG = 8 * BY_EIGHT,
        SIXTEEN = 16,
        MOST = 12288,
        UNIT = 32 * WARP
    };
    int64_t columns = column_count(s, k);
    if (!has_moments(s, k) || row_inputs(k) > 1) return REFILL_SLICE;
    bool even = columns % (SIXTEEN * UNIT) == 0 && columns <= SIXTEEN * MOST;
    return columns > SHORT && columns <= LONG && !even ? BY_EIGHT : MOMENTS;
}

/* How many columns a CTA of a cluster may have: a stage of 32 KB. With accumulators registers
 * are the limit, but slices somewhat longer than of a power of two are better than half as
 * long ones (layernorm_bwd of 66560 columns 28 %, of 20480 and 40960 9 and 4 % faster); where
 * registers take the next row of 2 bytes an element, 192 to 416 threads with 32 to 56 elements
 * are best, but for pairs (measured on an H100). */
static int64_t slice_columns(const Scheduler *s, const Kernel *k)
{
    enum { SMALL = 8192, LARGE = 16384, LARGEST = 32768, EIGHT = 8 };
    enum {
        ONE_SUM = 9216,
        TWO_SUMS = 10240,
        SUMS_OF_THREE = 4096,
        LONG = 229376,
        NARROWED_F32 = 18432
    };
    if (takes_bulk(s, k)) return bulk_slice(k);
    if (column_keepers(s, k)) return ceil_div(column_count(s, k), column_keepers(s, k));
    if (pacing_ctas(s, k) > 1) return ceil_div(column_count(s, k), pacing_ctas(s, k));
    if (single_slice(s, k)) return single_slice(s, k);
    if (sums_three_inputs(s, k)) return SUMS_OF_THREE;
    if (sums_f32_slice(s, k)) return sums_f32_slice(s, k);
    if (holds_bytes_long(s, k) && column_count(s, k) > LARGEST) return LARGEST;
    if (narrows_f32_long(s, k)) return NARROWED_F32;
    if (has_column_accumulators(k))
        return row_bytes(k) > 4 ? SMALL : accumulator_registers(s, k) < 2 ? ONE_SUM : TWO_SUMS;
    /* half the CTAs to wait for, but not of the longest rows (262144 columns: 3 % slower) */
    bool long_row = column_count(s, k) > EIGHT * LARGE && column_count(s, k) <= LONG;
    if (is_light(s, k) && long_row) return LARGEST;
    if (may_refill(s, k))
        return fills_pairs(s, k) ? LARGEST : row_bytes(k) > 2 ? SMALL : refilled_slice(s, k);
    /* single elements of two inputs without column vectors (softmax_bwd of 33001 to 131071 columns
     * 10 to 25 % faster) */
    enum { PAIR = 2, PAIR_BYTES = 4 };
    bool pair = k->vec == 1 && row_inputs(k) == PAIR && row_bytes(k) == PAIR_BYTES;
    bool bare = pair && !column_vectors(k) && !has_moments(s, k) && column_count(s, k) > LARGEST;
    return long_slices(s, k) == 2 || row_bytes(k) <= 2 || bare ? LARGE : SMALL;
}

/* Whether a row is long enough for the CTAs of a cluster to share it. */
static bool may_cluster(const Scheduler *s, const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column) return false;
    return s->target->max_cluster > 1 && k->inner_count > 0 && k->rows && !k->kept && !k->dynamic &&
           (!has_several_columns(k) || row_inputs(k));
}

/* Whether rows pass through a ring beside which column vectors have found no room, so that each
 * phase would read them: of single elements that takes longer than all else. More CTAs have fewer
 * columns a thread, and hold them (measured on an H100: backward norms of 8821 to 12287 columns by
 * two CTAs 22 to 34 %, groups for rows of 131073 to 458752 columns, of single elements 33 to 67 %,
 * of pairs of them 12 to 58 %, of whole vectors 4 to 38 % faster; but of wider vectors in three
 * phases 16 to 53 % slower). */
bool leaves_columns(const Kernel *k)
{
    enum { TWO_PHASES = 2, TWO_ELEMENTS = 2 };
    if (!k->stages || (k->phases > TWO_PHASES && k->vec > TWO_ELEMENTS)) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_column_vector(k, &k->loads[i]) && !k->loads[i].hoisted) return true;
    return false;
}

bool wants_cluster(const Scheduler *s, const Kernel *k)
{
    enum { LONG_WITH_SUMS = 12288, LONG = 24576 };
    if (s->forced.cluster) return s->forced.cluster > 1 && may_cluster(s, k);
    if (takes_bulk(s, k)) return may_cluster(s, k) && column_count(s, k) > bulk_slice(k);
    bool sums = has_column_accumulators(k);
    if (pacing_ctas(s, k)) return pacing_ctas(s, k) > 1 && may_cluster(s, k);
    if (leaves_columns(k)) return may_cluster(s, k);
    if (single_slice(s, k) || shares_wide_columns(s, k) || sums_f32_slice(s, k))
        return may_cluster(s, k);
    if (reads_again(s, k) || held_threads(s, k)) return false;
    bool ring = wants_ring(s, k), no_ring = ring && !k->stages && may_fetch_rows(k);
    /* two accumulators a column fill the registers of a CTA earlier */
    int64_t most = !sums ? LONG : LONG_WITH_SUMS - (accumulator_registers(s, k) >= 2);
    bool short_ring = ring && 3 * row_bytes(k) * column_count(s, k) > s->target->smem_per_cta;
    return may_cluster(s, k) && (no_ring || short_ring || column_count(s, k) > most);
}

/* Single elements of 2 bytes with sums over rows and column vectors, which threads then hold: no
 * shared memory can. */
static bool holds_odd_columns(const Kernel *k)
{
    return k->vec == 1 && has_column_accumulators(k) && column_vectors(k) &&
           row_bytes(k) == NARROW * row_inputs(k);
}

/* Sums over rows that a group is better for: two, which leave a cluster's threads no registers for
 * a copy warp (7 %), but those that schedule/tuned.c knows, and one of more than 1 MB a row
 * (rmsnorm_bwd of 266240 columns 32 %, of 300000 7 %, of 311296 to 344064 as fast, with the
 * residual's gradient of 196608 20 %, of 229376 3 % faster). Of single elements a cluster's threads
 * hold column vectors of up to 30 each (rmsnorm_bwd of 265001 columns 5 % slower, of 276481 9 %
 * faster by a group; all measured on an H100). */
static bool groups_sums(const Scheduler *s, const Kernel *k)
{
    enum { LONGEST_ODD = 276480, MOST_BYTES = 1 << 20 };
    double sums = accumulator_registers(s, k);
    if (holds_odd_columns(k) && column_count(s, k) > LONGEST_ODD) return true;
    if (sums >= 2) return !fills_largest(s, k) && !copies_largest(s, k);
    bool one = sums == 1 && k->vec > 1 && row_bytes(k) == NARROW * row_inputs(k);
    return (one && row_bytes(k) * column_count(s, k) > MOST_BYTES) || groups_f32_sum(s, k);
}

/* Where a group is better than the largest cluster with longer slices than wanted: beside sums over
 * rows; for a mean with its squares in f32 that does not stay in registers, or a sum of two in f32
 * (layer norm and rmsnorm of one of 204800 and 229376 columns 12 to 15 %); and where neither
 * registers have room for rows of 16 bits nor shared memory for two of them beside column vectors
 * (layer norm of 800000 and 917504 columns 23 and 28 %, rmsnorm of 589824 to 917504 5 to 33 %; all
 * measured on an H100). */
static bool wants_group(const Scheduler *s, const Kernel *k)
{
    enum { LONGEST_SINGLE = 524288, F32 = 4 };
    bool heavy = has_moments(s, k) && is_f32_row(k) && !may_refill(s, k);
    bool sum = row_bytes(k) == 2 * F32 && row_inputs(k) == 2 && column_vectors(k) &&
               !k->accumulator_count && column_count(s, k) > LONGEST_F32_SUM_REFILLED;
    int longest = has_moments(s, k) ? LONGEST_REFILLED : LONGEST_SINGLE;
    bool read = row_bytes(k) == NARROW && column_vectors(k) && narrowest_stored(k) == NARROW &&
                column_count(s, k) > longest;
    return groups_sums(s, k) || heavy || sum || read;
}

/* How many columns a CTA of a group may have. Of several inputs of 2 bytes at least 10240 (layer
 * norm of a sum of 327680 columns in f16 18 % faster by 32 CTAs than by 64, rmsnorm_bwd of 300000 1
 * %); but where it finds a mean and its squares of single elements in f16, more than 4096 of two
 * inputs spill in groups of 32, and more than 7680 in larger ones, of which the largest has no
 * choice. Where 576 threads hold column vectors of single elements beside two sums, 16 elements
 * each, beside one 20 (rmsnorm_bwd of 300001 and 360001 columns 13 and 9 % faster than by 64 CTAs;
 * of 400001 5 % slower). The largest group has slices that leave room for two, where a row would be
 * read again otherwise (softmax of 4 million columns 8 % faster, in f32 of 2 million 11 %,
 * softmax_bwd of those 24 %, rmsnorm 1 %, layer norm 10 % slower; measured on an H100). */
static int64_t group_slice(const Scheduler *s, const Kernel *k, int ctas)
{
    enum {
        MOST = 16384,
        OF_SEVERAL = 10240,
        ODD = 9216,
        ODD_OF_ONE = 11520,
        FEW_CTAS = 32,
        LARGEST_GROUP_BYTES = 64 << 10
    };
    enum { ODD_F16 = 4096, ODD_F16_OF_MANY = 7680 };
    bool light = row_bytes(k) && row_bytes(k) <= 4 && !k->accumulator_count && !has_moments(s, k);
    bool several = row_inputs(k) > 1 && row_bytes(k) == NARROW * row_inputs(k);
    int64_t slice = slice_columns(s, k);
    if (light && 2 * ctas > s->target->sms) return LARGEST_GROUP_BYTES / row_bytes(k);
    if (holds_odd_columns(k)) return accumulator_registers(s, k) > 1 ? ODD : ODD_OF_ONE;
    bool spills = k->vec == 1 && has_moments(s, k) && reads_f16(k);
    if (spills && ctas > FEW_CTAS && 2 * ctas <= s->target->sms) return ODD_F16_OF_MANY;
    if (spills && several && ctas <= FEW_CTAS) return ODD_F16;
    if (several && slice < OF_SEVERAL) return OF_SEVERAL;
    return slice < MOST ? slice : MOST;
}

/* Whether so many CTAs are worth trying. A warp of each listens to a group, so it is whole
 * warps large; its stages must leave room for the rows that lag. */
bool may_share(const Scheduler *s, const Kernel *k, int ctas)
{
    bool group = ctas > s->target->max_cluster;
    if (group && ctas % WARP) return false;
    if (s->forced.cluster) return ctas == s->forced.cluster;
    int64_t slice = group ? group_slice(s, k, ctas) : slice_columns(s, k);
    return column_count(s, k) <= slice * ctas ||
           (ctas == s->target->max_cluster && !wants_group(s, k));
}
