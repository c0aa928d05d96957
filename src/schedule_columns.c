/* schedule_columns.c: long rows whose column vectors stay in registers, of a mean and its squares. All of shared memory is
 * then a ring of rows: beside those vectors it has room for a stage or two less, of f32 for one only, and read with each row
 * from L2 they are as much as the row itself, two of them twice as much. */
#include "scheduling.h"

/* Whether a row is one input of whole vectors, has one exchange, since a lag has no room for more, and column vectors and
 * results are as wide as its elements. */
static bool may_keep(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2, LEAST = 3 };
    const Forced *f = &s->forced;
    if ((f->any && f->family != FAMILY_ROW) || (f->stages && f->stages < LEAST) || f->reads > 1 || f->bulk) return false;
    if (!k->rows || k->kept || k->dynamic || k->accumulator_count || has_several_columns(k)) return false;
    bool alike = !has_wide_columns(k) && narrowest_stored(k) == row_bytes(k) && k->vec == full_vector(k);
    bool plain = row_inputs(k) == 1 && column_vectors(k) && column_vectors(k) <= PAIR;
    return alike && plain && has_moments(s, k) && k->phases == PAIR;
}

/* How many CTAs are to share such a row, 0: it is of others. Of f32 the largest cluster (layer norm of 229376 and 262144
 * columns 11 % faster than by one copy; 163840 and 196608 1 to 2 % slower than with registers that the next row refills).
 * Of 16 bits eight, as long as registers hold the columns of 640 threads (bf16 of 106496 to 163840 3 to 13 %, f16 of 73728
 * to 152064 3 to 43 % faster; bf16 of 98304 4 % slower, of 196608 no faster), but for slices of 16384, beside which shared
 * memory has room for the vectors (131072 columns 8 % slower). Of f16 four as well (50176 to 61440 2 to 10 % faster). Of
 * bf16 the largest cluster where its slices are those 16384 (2 % faster; 229376 and 256000 4 to 7 % slower; all measured
 * on an H100). */
static int wanted_keepers(const Scheduler *s, const Kernel *k)
{
    enum { LONG_F32 = 196608, LONG_F16 = 65536, LONG_BF16 = 98304, LONGEST = 163840, EIGHT = 8, SLICE = 16384 };
    enum { FEW_F16 = 49152, MANY_F16 = 61440, FOUR = 4 };
    int64_t columns = column_count(s, k);
    int largest = s->target->max_cluster;
    if (is_f32_row(k)) return columns > LONG_F32 && columns <= (int64_t)SLICE * largest ? largest : 0;
    if (!reads_f16(k) && row_bytes(k) == 2 && columns == (int64_t)SLICE * largest) return largest;
    if (reads_f16(k) && row_bytes(k) == 2 && largest >= FOUR && columns > FEW_F16 && columns <= MANY_F16) return FOUR;
    bool fits = row_bytes(k) == 2 && largest >= EIGHT && columns <= LONGEST && columns != SLICE * EIGHT;
    return fits && columns > (reads_f16(k) ? LONG_F16 : LONG_BF16) ? EIGHT : 0;
}

/* For so many vectors a CTA: 32 columns a thread. */
int keeper_threads(const Kernel *k, int64_t vectors)
{
    enum { COLUMNS = 32 };
    int64_t warps = ceil_div(vectors * k->vec, COLUMNS * WARP);
    return (int)warps * WARP;
}

/* About 160 kB of rows, of which one is computed with and one waits for the others. */
int keeper_stages(int64_t stage_bytes)
{
    enum { RING = 160 << 10, LEAST = 3 };
    int64_t stages = (RING + stage_bytes / 2) / stage_bytes;
    return stages < LEAST ? LEAST : (int)stages;
}

/* Where other CTAs, threads or stages are asked for, or shared memory has no room, a row is not of them either. */
int column_keepers(const Scheduler *s, const Kernel *k)
{
    const Forced *f = &s->forced;
    int ctas = may_keep(s, k) ? wanted_keepers(s, k) : 0;
    if (!ctas || (f->cluster && f->cluster != ctas)) return 0;
    int64_t slice = ceil_div(column_count(s, k), ctas), stage = slice * row_bytes(k);
    if (f->threads && f->threads != keeper_threads(k, ceil_div(slice, k->vec))) return 0;
    int64_t stages = f->stages ? f->stages : keeper_stages(stage);
    return stages * (stage + LINE_BYTES) + static_bytes(s, k) <= s->target->smem_per_cta ? ctas : 0;
}
