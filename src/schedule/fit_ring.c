/* schedule/fit_ring.c: what a CTA has in shared memory: how long the stages of a ring are and how
 * many, and what lies beside them. */
#include "schedule/internal.h"

static int64_t whole_lines(int64_t bytes)
{
    return ceil_div(bytes, LINE_BYTES) * LINE_BYTES;
}

/* What a load's vectors take of a stage; where rows that are not whole lines are to lie as they do
 * in memory, another line each. */
static int64_t buffer_bytes(const Scheduler *s, const Kernel *k, const Load *load)
{
    int64_t bytes = (int64_t)k->vec * k->tiles * kernel_threads(k) * dtype_info[load->dtype].bytes;
    if (is_lined_up(k, load)) return k->teams * (whole_lines(bytes / k->teams) + LINE_BYTES);
    bool copied = (k->copy_warp || k->bulk) && !load->hoisted;
    if (!copied) return bytes;
    return whole_lines(bytes) + line_room(column_count(s, k), load->dtype);
}

/* Vectors in shared memory, those of one stage or (hoisted) those that are staged once. */
static int64_t vector_bytes(const Scheduler *s, const Kernel *k, bool hoisted)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (load->staged && load->access != ACCESS_ROW && load->hoisted == hoisted)
            bytes += buffer_bytes(s, k, load);
    }
    return bytes;
}

/* What of a stage are a row's scalars, behind its vectors: a copy for each warp, each array aligned
 * for 8 bytes. */
static int64_t scalar_bytes(const Kernel *k)
{
    enum { ALIGNMENT = 8 };
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        int64_t array = (int64_t)kernel_threads(k) / WARP * dtype_info[load->dtype].bytes;
        if (load->staged && load->access == ACCESS_ROW)
            bytes += ceil_div(array, ALIGNMENT) * ALIGNMENT;
    }
    return whole_lines(bytes);
}

/* Shared memory of a CTA for one stage, or (hoisted) for what is staged once. */
int64_t staged_bytes(const Scheduler *s, const Kernel *k, bool hoisted)
{
    return vector_bytes(s, k, hoisted) + (hoisted ? 0 : scalar_bytes(k));
}

/* Shared memory in which teams meet at the end, where they do not in the ring: a tile of one
 * accumulator. */
static int64_t team_bytes(const Scheduler *s, const Kernel *k)
{
    if (k->teams == 1) return 0;
    return (int64_t)kernel_threads(k) * k->vec * widest_accumulator(s->g, k);
}

/* What all teams, or the warps that have several, have added up. */
static int64_t sum_bytes(const Scheduler *s, const Kernel *k)
{
    enum { BLOCK = 16 };
    int64_t bytes = 0;
    int lanes = k->threads_per_row < WARP ? k->threads_per_row : WARP;
    int64_t columns = (int64_t)kernel_threads(k) / WARP * lanes * k->vec * k->tiles;
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].per_column)
            bytes +=
                ceil_div(columns * (node(s->g, k->accumulators[i].node)->type == TYPE_F32 ? 4 : 8),
                         BLOCK) *
                BLOCK;
    return bytes;
}

/* Rows of more than 2 bytes a column that two CTAs can share, or of f32 that only the
 * largest cluster can, with column vectors: two long stages a CTA, without a copy warp or
 * a lag, as long as the caches hold the column vectors beside them (15 to 25 % over three
 * stages and a lag, measured on an H100). */
int long_slices(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 32768, LARGEST = 131072, STAGES = 2, MOST_CTAS = 16 };
    int64_t columns = column_count(s, k);
    bool f32 = is_f32_row(k) && column_vectors(k);
    int ctas = columns <= PAIR ? 2 : f32 && columns > LARGEST ? MOST_CTAS : 0;
    if (k->accumulator_count || row_bytes(k) <= 2 || !ctas) return 0;
    return is_cached(s, k, STAGES, columns / ctas) ? ctas : 0;
}

bool has_long_slices(const Scheduler *s, const Kernel *k)
{
    return k->cluster > 1 && k->cluster == long_slices(s, k);
}

/* Whether 256 threads of each CTA of the largest cluster have a row's slices in 48 or 64 columns
 * each, all tiles full, with two accumulators for each: then it is better than a group. (64 of f16
 * spill: a group is 9 % faster than what does not, measured on an H100.) */
bool fills_largest(const Scheduler *s, const Kernel *k)
{
    enum { THREADS = 256, SOME = 48, MANY = 64 };
    int64_t tile = (int64_t)THREADS * s->target->max_cluster, columns = column_count(s, k);
    bool full = columns == SOME * tile || (columns == MANY * tile && !reads_f16(k));
    return full && accumulator_registers(s, k) == 2 && row_bytes(k) <= 4 && k->vec == MAX_VECTOR;
}

/* Rows of two f32 inputs with one or two sums over rows, of whole vectors. */
static bool sums_f32(const Scheduler *s, const Kernel *k)
{
    double registers = accumulator_registers(s, k);
    return row_inputs(k) == 2 && row_bytes(k) == 8 && k->vec == full_vector(k) && registers > 0 &&
           registers <= 2;
}

/* One sum by a copy warp, in one CTA an SM (of 2048 and 3072 columns 1 to 2 % faster, of 3584 1 %
 * slower; measured on an H100). */
bool copies_f32_sum(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 2048, LONG = 3072 };
    int64_t columns = column_count(s, k);
    return sums_f32(s, k) && accumulator_registers(s, k) < 2 && k->cluster == 1 &&
           columns >= SHORT && columns <= LONG;
}

/* How many columns a CTA of a cluster has: as many bytes as slices of 8192 columns of 2 bytes (two
 * sums of 5120 to 65536 columns 1 to 5 % faster than by twice as many or by CTAs alone, either of
 * 262144 columns by groups of 64 up to 2 %), or of a group of 32, whose rows wait for half as many
 * results as one of 64's (two sums of 132096 columns 12 %, of 155648 6 %, of 180224 2 % faster, of
 * 196608 2 % slower; all measured on an H100). 0: rows of others, and those for which longer slices
 * are better. */
int64_t sums_f32_slice(const Scheduler *s, const Kernel *k)
{
    enum { SLICE = 4096, SLICE_OF_GROUP = 5632 };
    int64_t columns = column_count(s, k), clusters = s->target->max_cluster,
            widest = SLICE * clusters;
    bool two = accumulator_registers(s, k) > 1, some = two ? columns > SLICE : columns > widest;
    if (!sums_f32(s, k) || !some || (columns > widest && columns <= 2 * widest)) return 0;
    return columns > widest && columns <= 2 * clusters * SLICE_OF_GROUP ? SLICE_OF_GROUP : SLICE;
}

/* One sum of rows of which shared memory has room for no more than two: a group's smaller slices
 * have a copy warp that is ahead (151552 columns 30 %, 155648 to 180224 3 %, 188416 to 229376 49 %
 * faster; measured on an H100). */
bool groups_f32_sum(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 147456 };
    return sums_f32(s, k) && accumulator_registers(s, k) < 2 && column_count(s, k) > LONG;
}

/* Two sums of rows of 16 bits by 448 or 480 threads of each CTA of the largest cluster, in three or
 * four tiles, and a copy warp: better than a group (167936 to 184320 columns 7 to 9 %, 225280 to
 * 245760 4 to 6 %; but four tiles of f16 that are not full spill: 5 % slower; measured on an H100).
 */
bool copies_largest(const Scheduler *s, const Kernel *k)
{
    enum { THREE = 163840, THREE_END = 184320, FOUR = 225280, FOUR_END = 245760, FULL = 16384 };
    int64_t columns = column_count(s, k);
    bool four = columns >= FOUR && columns <= FOUR_END && (!reads_f16(k) || columns % FULL == 0);
    bool fits = (columns > THREE && columns <= THREE_END) || four;
    return fits && accumulator_registers(s, k) == 2 && row_inputs(k) == 2 && row_bytes(k) == 4 &&
           k->vec == MAX_VECTOR;
}

/* How many threads a slice that fills_largest knows has: few, with many registers each (2 % faster
 * than by groups of 32, measured on an H100). 0: it is of others. */
int full_slice_threads(const Scheduler *s, const Kernel *k)
{
    enum { THREADS = 256 };
    return k->cluster == s->target->max_cluster && fills_largest(s, k) ? THREADS : 0;
}

/* Long rows with several exchanges, and those held in registers beside wide column vectors, want 80
 * kB of rows a CTA (rmsnorm with its largest element of 14336 and 20480 columns 1 and 2 % faster
 * than by 128 and 160 kB, layer norm of 40960 columns with weights of f32 3 % than by 40 kB;
 * measured on an H100). 0: it is not of them. */
static int64_t stages_of_few_rows(const Scheduler *s, const Kernel *k, int64_t vectors)
{
    enum { ROWS = 80 << 10, MOST = 8 };
    bool often = exchanges_often(k) && may_fetch_rows(k);
    bool held = k->cluster > 1 && shares_wide_columns(s, k) && row_inputs(k) == 1;
    if (!(often || held) || vectors * MOST <= ROWS) return 0;
    return often ? ceil_div(ROWS, vectors) : ROWS / vectors;
}

/* A mean and its squares of rows that the largest cluster holds in shared memory beside their
 * column vectors: 229376 to 258048 columns are 1 to 5 % faster by four stages than by two (measured
 * on an H100). */
static bool holds_long_moments(const Scheduler *s, const Kernel *k)
{
    return k->cluster == s->target->max_cluster && has_moments(s, k) && row_bytes(k) == 2 &&
           k->vec == MAX_VECTOR && !k->lag;
}

/* How many stages are best: of clusters' single rows of 2 bytes, and of long slices, as few
 * as there can be; in a cluster with a copy warp 96 kB an SM in all (more is 1 to 5 % slower, less
 * up to 10 %), which for longer stages than 16 kB means one CTA; else as many as keep as much under
 * way while one row is computed, or 64 kB of rows with accumulators, where more measured flat or up
 * to 3 % slower, but of many teams' rows of up to 6 kB 160 kB (two inputs of bf16 1 to 2 % faster;
 * all on an H100). `vectors`: the bytes of a stage without its scalars. */
static int64_t wanted_stages(const Scheduler *s, const Kernel *k, int64_t vectors)
{
    enum {
        RING = 96 << 10,
        SHORT_RING = 64 << 10,
        LONG_RING = 160 << 10,
        MOST = 8,
        OF_TWO_SUMS = 4,
        OF_MOMENTS = 4
    };
    enum { MANY_TEAMS = 4, SHORT_ROW = 6 << 10 };
    if (s->forced.stages) return s->forced.stages;
    if (k->reuses) return stages_of_reuse(k);
    if (column_keepers(s, k)) return keeper_stages(vectors);
    if (k->copy_warp && (copies_two_sums(s, k) || pairs_teams(s, k))) return OF_TWO_SUMS;
    if (k->copy_warp && odd_stages(s, k)) return odd_stages(s, k);
    int64_t least = 2 + (k->lag ? k->lag : k->copy_warp);
    bool light = !k->accumulator_count && (row_bytes(k) <= 2 || has_long_slices(s, k));
    int64_t few = stages_of_few_rows(s, k, vectors);
    if (few) return few > least ? few : least;
    if (k->cluster > 1 && !k->grouped && light)
        return holds_long_moments(s, k) ? OF_MOMENTS : least;
    bool pooled = k->copy_warp && k->cluster > 1 && !k->grouped;
    if (!pooled) least = 3 + k->lag;
    int64_t ring = k->accumulator_count && k->cluster == 1 && !k->copy_warp ? SHORT_RING : RING;
    bool short_rows = !k->kept && k->ctas_per_sm == 1 && k->teams >= MANY_TEAMS &&
                      row_bytes(k) * column_count(s, k) <= SHORT_ROW;
    if (short_rows) ring = LONG_RING;
    int64_t wanted = ceil_div(ring, vectors * k->ctas_per_sm) + (pooled ? 0 : 1 + k->lag);
    wanted += k->lined_up && !k->lag; /* the next row has to be there half a row early */
    return wanted > MOST ? MOST : wanted < least ? least : wanted;
}

/* Where warps meet, in two halves, and CTAs; where sums of everything meet. */
int64_t exchange_bytes(const Scheduler *s, const Kernel *k)
{
    enum { BARRIER = 8 };
    int64_t value = exchanges_wide(s->g, k) ? 8 : 4, warps = ceil_div(kernel_threads(k), WARP);
    int64_t values = most_exchanged(s->g, k), rounds = mailbox_rounds(k);
    int64_t bytes = 2 * values * value * warps;
    if (k->grouped)
        bytes += rounds * (values * value * (k->cluster / WARP) + 2 * BARRIER);
    else if (k->cluster > 1)
        bytes += 2 * (values * value * k->cluster + BARRIER);
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column) bytes += 2 * 8 * warps;
    return bytes;
}

/* With barriers, two for each stage; at least what small variables and their alignment take. */
int64_t static_bytes(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 2 << 10, MORE = 256, MOST_STAGES = 8, BARRIER = 8 };
    int64_t stages = s->forced.stages > MOST_STAGES ? s->forced.stages : MOST_STAGES;
    int64_t bytes = exchange_bytes(s, k) + 2 * stages * BARRIER + MORE;
    return bytes > LEAST ? bytes : LEAST;
}

/* Fewer than two stages are no ring, but where rows hand theirs on: there are as many of those as
 * were wanted. */
bool fit_ring(const Scheduler *s, Kernel *k)
{
    enum { LEAST_STAGES = 2 };
    int64_t stage = staged_bytes(s, k, false), once = staged_bytes(s, k, true);
    int64_t vectors = vector_bytes(s, k, false);
    if (!vectors) return false;
    int64_t sure =
        k->reuses ? wanted_stages(s, k, vectors) : LEAST_STAGES; /* stages that there will be */
    bool meet = k->teams > 1 && has_column_accumulators(k);
    k->meets_in_ring = meet && !k->kept && sum_bytes(s, k) <= sure * stage;
    k->meets_beside =
        meet && k->kept &&
        static_bytes(s, k) + once + sum_bytes(s, k) + sure * stage <= s->target->smem_per_cta;
    if (k->meets_beside) once += sum_bytes(s, k);
    int64_t other =
        static_bytes(s, k) + once + (k->meets_in_ring || k->meets_beside ? 0 : team_bytes(s, k));
    for (; k->ctas_per_sm > 0; k->ctas_per_sm--) {
        int64_t room = s->target->smem_per_sm / k->ctas_per_sm - 1024;
        room = (room < s->target->smem_per_cta ? room : s->target->smem_per_cta) - other;
        int64_t wanted = wanted_stages(s, k, vectors);
        k->stages = (int)(wanted * stage <= room ? wanted : room / stage);
        k->smem_bytes = k->stages * stage + once;
        /* of a single input two CTAs with short rings beat one with a long one */
        bool single = k->copy_warp && row_bytes(k) <= 2;
        bool enough = k->stages > LEAST_STAGES + k->lag ||
                      (k->stages == LEAST_STAGES + k->lag && (k->ctas_per_sm == 1 || single));
        if (k->reuses || s->forced.exact ? k->stages == wanted : enough) return true;
    }
    return false;
}
