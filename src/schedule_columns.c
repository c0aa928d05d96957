/* schedule_columns.c: long rows whose column vectors stay in registers, of a mean and its squares. All of shared memory is
 * then a ring of rows, of one CTA an SM. Read with each row from L2, weights of f32 would be twice the traffic of the rows
 * themselves; in shared memory they would take the room of two stages. */
#include "scheduling.h"

/* How many CTAs share such a row, 0: it is of others. Of f32 the largest cluster (layer norm of 262144 columns 11 % faster
 * than by one copy, of 163840 and 196608 1 to 2 % slower than with registers that the next row refills); of bf16 eight,
 * between those that registers hold and as many as they hold beside 640 threads (106496 to 128256 columns 1 to 5 %, 152064
 * and 163840 12 and 4 % faster, 196608 no faster), but for slices of 16384, beside which shared memory has room for the
 * vectors (131072 columns 8 % slower; all measured on an H100). */
int column_keepers(const Scheduler *s, const Kernel *k)
{
    enum { LONG_F32 = 196608, LONG = 98304, LONGEST = 163840, EIGHT = 8, SLICE = 16384 };
    const Forced *f = &s->forced;
    int64_t columns = column_count(s, k);
    bool other = f->threads || f->cluster || f->stages || f->reads > 1 || f->bulk || f->family == FAMILY_WARP_SPECIALIZED;
    bool whole = k->rows && !k->kept && !k->dynamic && !k->accumulator_count && !has_several_columns(k);
    bool vectors = column_vectors(k) && column_vectors(k) <= 2 && !has_wide_columns(k) && k->vec == full_vector(k);
    if (other || !whole || !vectors || row_inputs(k) != 1 || !has_moments(s, k) || narrowest_stored(k) < row_bytes(k)) return 0;
    int ctas = is_f32_row(k) ? s->target->max_cluster : row_bytes(k) == 2 && !reads_f16(k) ? EIGHT : 0;
    bool fits = ctas > 1 && ctas <= s->target->max_cluster && columns <= (int64_t)SLICE * s->target->max_cluster;
    if (is_f32_row(k)) return fits && columns > LONG_F32 ? ctas : 0;
    return fits && columns > LONG && columns <= LONGEST && columns != (int64_t)SLICE * ctas ? ctas : 0;
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
