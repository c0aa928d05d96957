/* schedule/fit_unaligned.c: which rows pass through shared memory by blocks of 16 bytes: those that
 * are whole vectors only as single elements of less than 4 bytes. A warp's elements begin anywhere
 * in a sector of memory, and read or stored by themselves they take half as many sectors again. All
 * is measured on an H100. */
#include "schedule/internal.h"

/* Columns: that a CTA has by itself, of one input and of several; of two that a cluster shares. */
enum { SHORT = 8192, LONGEST_ALONE = 20480, LONGEST_PAIR = 36864 };

static bool has_stray_rows(const Kernel *k)
{
    if (k->vec > 1 || k->dynamic || has_several_columns(k)) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && dtype_info[k->loads[i].dtype].bytes < 4) return true;
    return false;
}

/* Whether they are of two tensors, one of 2 bytes, one of that or of bytes, little is computed of
 * each element, nothing else is read and one stored. Then, where there are clusters, 128 threads
 * have all of up to 8192 columns, and of longer rows that a cluster shares up to 5632: softmax_bwd
 * of 2561 to 8191 columns 2 to 11 % faster than by 16 or 32 elements a thread, of 9215 to 20479 3
 * to 28 % than by one CTA, of 22527 and 24577 36 %, to 36863 0 to 7 % than by a copy warp, than
 * which a few rows are 16 to 65 % faster (of 49151 4 % slower); masked softmax of 4095 to 16383 7
 * to 29 %, its gradient 6 to 29 %. (rmsnorm of x * silu(z) of 4095 and 8191 columns 5 and 17 %
 * slower so.) */
static bool is_pair(const Scheduler *s, const Kernel *k)
{
    bool clusters = s->target->max_cluster > 1 && s->forced.cluster != 1 && s->forced.rows <= 1;
    bool narrow =
        row_inputs(k) == 2 && row_bytes(k) <= 4 && stored_rows(k) == 1 && !exchanges_often(k);
    return clusters && narrow && !column_vectors(k) && k->phases == 2 && has_short_arithmetic(s, k);
}

/* Room for so many elements of each row that is read or stored. */
static int64_t blocks_bytes(const Kernel *k, int64_t elements)
{
    enum { OTHER = 32 };
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]))
            bytes += elements * dtype_info[k->loads[i].dtype].bytes + OTHER;
    for (int i = 0; i < k->store_count; i++)
        if (is_stored_row(&k->stores[i]))
            bytes += elements * dtype_info[k->stores[i].dtype].bytes + OTHER;
    return bytes;
}

/* The longest rows that do. Over single elements, softmax of 1023 to 4095 columns is 5 to 7 %, of
 * 20479 to 65535 10 to 20 %, softmax_bwd of 1023 to 2047 5 to 10 % faster. A vector that all rows
 * share is read by elements as before, so rmsnorm is 5 to 8 % faster up to 8191 columns and slower
 * in clusters, layer norm, of two such vectors, 7 to 10 % slower; and a mean with its squares has
 * no registers to spare. */
static int64_t longest_by_blocks(const Scheduler *s, const Kernel *k)
{
    enum { SLICE = 8192 };
    int shared = column_vectors(k);
    if (shared > 1 || has_moments(s, k)) return 0;
    if (shared || k->phases > 2) return SHORT;
    if (is_pair(s, k)) return LONGEST_PAIR;
    return row_inputs(k) > 1 ? LONGEST_ALONE : (int64_t)SLICE * s->target->max_cluster;
}

/* Whether an SM has shared memory for as many threads, of 32 elements each, as hide that a row
 * comes in steps. */
static bool has_room(const Scheduler *s, const Kernel *k)
{
    enum { THREADS = 512, ELEMENTS = 32, OTHER = 3 << 10 };
    int64_t columns = column_count(s, k);
    if (longest_by_blocks(s, k) > LONGEST_ALONE && columns > SHORT) columns = SHORT;
    int64_t ctas = s->target->smem_per_sm / (blocks_bytes(k, columns) + OTHER);
    return ctas * ceil_div(columns, ELEMENTS) >= THREADS;
}

/* Whether rows do, before it is known how many threads share them. Kernels that add over rows walk
 * them with few CTAs, so nothing hides that a row comes in steps (layernorm_bwd of 1023, 1987 and
 * 4095 columns: 12 % slower). */
bool passes_by_blocks(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 512 };
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    bool alone = !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->grouped;
    int ctas = s->forced.cluster;
    bool shared = is_pair(s, k) ? column_count(s, k) <= (int64_t)SHORT * ctas
                                : longest_by_blocks(s, k) > LONGEST_ALONE;
    bool asked = s->forced.stages || s->forced.reads > 1 || (ctas > 1 && !shared);
    return alone && !other && !asked && has_stray_rows(k) && column_count(s, k) > LEAST &&
           column_count(s, k) <= longest_by_blocks(s, k) && has_room(s, k);
}

/* Vectors of 8 elements a thread: few threads with many elements are better, as long as registers
 * hold them. */
int block_vectors(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 4096, STORED = 2, FEW = 2, MANY = 4 };
    return column_count(s, k) > LONG && k->phases <= 2 && stored_rows(k) <= STORED ? MANY : FEW;
}

int pair_vectors(const Scheduler *s, const Kernel *k)
{
    enum { SHORT_PAIR = 2560, THREADS = 128 };
    bool some = column_count(s, k) > SHORT_PAIR && is_pair(s, k) && passes_by_blocks(s, k);
    return some ? (int)ceil_div(ceil_div(column_count(s, k), k->cluster), THREADS * MAX_VECTOR) : 0;
}

/* How many columns a CTA should have of a row that a cluster shares; 0: a CTA has the row to
 * itself. Of 32 elements a thread 4096 columns (65535 by 16) to 6304 (50257 by 8) are 3 to 6 %
 * better than 8192. */
int block_slice(const Scheduler *s, const Kernel *k)
{
    enum { SLICE = 6400, SLICE_OF_PAIR = 5632 };
    int slice = is_pair(s, k) ? SLICE_OF_PAIR : SLICE;
    if (s->forced.cluster) return s->forced.cluster > 1 ? slice : 0;
    bool shared = row_inputs(k) == 1 || is_pair(s, k);
    return column_count(s, k) > SHORT && shared && !s->forced.threads ? slice : 0;
}

/* Whether it is little more than a softmax: one row of 2 bytes an element read, one stored. */
static bool is_simple(const Scheduler *s, const Kernel *k)
{
    return has_short_arithmetic(s, k) && row_inputs(k) == 1 && row_bytes(k) <= 2 &&
           !column_vectors(k) && stored_rows(k) == 1 && k->phases == 2 && !exchanges_wide(s->g, k);
}

/* How many CTAs ptxas is to make room for where threads have many elements, 0: any: some 1024
 * threads, which leaves them 56 to 64 registers (softmax of 50257 columns: 71 without, so one CTA
 * less); with several exchanges no more than 1024 (cross entropy: 128 registers without, half as
 * fast). */
int block_ctas(const Scheduler *s, const Kernel *k)
{
    enum { THREADS = 1024, LEAST = 900, FEW = 16 };
    int threads = kernel_threads(k), ctas = THREADS / threads;
    bool more = ctas * threads < LEAST && !exchanges_often(k);
    return k->tiles <= FEW || !is_simple(s, k) ? 0 : ctas + more;
}

/* Makes room for them. */
bool fit_blocks(const Scheduler *s, Kernel *k)
{
    if (k->threads_per_row <= WARP || k->column_ctas > 1) return false;
    int64_t bytes = blocks_bytes(k, (int64_t)k->threads_per_row * k->tiles) * k->teams;
    k->by_blocks = bytes + static_bytes(s, k) <= s->target->smem_per_cta;
    if (k->by_blocks) k->smem_bytes = bytes;
    return k->by_blocks;
}
