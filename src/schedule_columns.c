/* schedule_columns.c: where column vectors are while rows pass.
 *
 * Of long rows of a mean and its squares they stay in registers. All of shared memory is then a ring of rows: beside those
 * vectors it has room for a stage or two less, of f32 for one only, and read with each row from L2 they are as much as the
 * row itself, two of them twice as much. Of rows that are alone a later phase may read them a tile ahead. */
#include "scheduling.h"

/* Whether a row is one input of whole vectors, has one exchange, since a lag has no room for more, and column vectors and
 * results are as wide as its elements. */
static bool may_keep(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2, LEAST = 3 };
    const Forced *f = &s->forced;
    if ((f->any && f->family != FAMILY_ROW) || (f->stages && f->stages < LEAST) || f->reads > 1 || f->bulk || f->reuse)
        return false;
    if (!k->rows || k->kept || k->dynamic || k->accumulator_count || has_several_columns(k)) return false;
    bool alike = !has_wide_columns(k) && narrowest_stored(k) == row_bytes(k) && k->vec == full_vector(k);
    bool plain = row_inputs(k) == 1 && column_vectors(k) && column_vectors(k) <= PAIR;
    return alike && plain && has_moments(s, k) && k->phases == PAIR;
}

enum { KEEPER_COLUMNS = 32 };    /* of a thread */

/* Whether threads of whole warps, or of half a warp more where there are many, have that many columns each. */
static bool fills_keepers(int64_t columns, int ctas)
{
    enum { MANY = 122880 };
    int64_t unit = (int64_t)ctas * KEEPER_COLUMNS * WARP;
    return columns % (columns > MANY ? unit / 2 : unit) == 0;
}

/* How many CTAs are to share such a row, 0: it is of others. Of f32 the largest cluster (layer norm of 229376 and 262144
 * columns 11 % faster than by one copy; 163840 and 196608 1 to 2 % slower than with registers that the next row refills).
 * Of 16 bits eight, where their threads are full (114688, 122880 and 147456 columns 3 to 9 % faster than with registers that
 * the next row refills, 106496 and 139264 2 to 4 % slower; others, and all shorter ones, 2 to 17 % slower), but for slices of
 * 16384, beside which shared memory has room for the vectors (131072 columns 8 % slower). Of bf16 the largest cluster where
 * its slices are those 16384 (2 % faster; 229376 and 256000 4 to 7 % slower; all measured on an H100). */
static int wanted_keepers(const Scheduler *s, const Kernel *k)
{
    enum { LONG_F32 = 196608, LONG = 106496, LONGEST = 163840, EIGHT = 8, SLICE = 16384 };
    int64_t columns = column_count(s, k);
    int largest = s->target->max_cluster;
    if (is_f32_row(k)) return columns > LONG_F32 && columns <= (int64_t)SLICE * largest ? largest : 0;
    if (!reads_f16(k) && row_bytes(k) == 2 && columns == (int64_t)SLICE * largest) return largest;
    bool fits = row_bytes(k) == 2 && largest >= EIGHT && columns > LONG && columns <= LONGEST && columns != SLICE * EIGHT;
    return fits && fills_keepers(columns, EIGHT) ? EIGHT : 0;
}

/* For so many vectors a CTA. */
int keeper_threads(const Kernel *k, int64_t vectors)
{
    int64_t warps = ceil_div(vectors * k->vec, KEEPER_COLUMNS * WARP);
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

static bool is_read_late(const Kernel *k, const Load *load)
{
    AxisSet walked = k->rows | k->kept;
    bool shared = walked && !(load->axes & walked);
    return shared && load->tensor >= 0 && load->access == ACCESS_VECTOR && load->first_phase > 0 && !load->resident && !load->staged;
}

/* Bytes of column vectors that a thread has registers for besides a tile's: two of 2 bytes or one of 4. More of them spill, but
 * for two of f32 beside one row of 2 bytes of a layer norm without more, of up to five tiles: of bf16 where the last one is not full
 * (3072 to 15872 columns 3 to 8 %, behind other kernels 3 to 15 % faster with 1 to 64 rows, 1 to 5 % with 512, many 4 % faster to 1 %
 * slower; all tiles full many 1 to 3 % slower, by six tiles 4 to 7 %), of f16 where it is, by up to 448 threads (4096 to 8192 and
 * 14336 columns as much; others hold a CTA less an SM; measured on an H100). */
static int most_early_bytes(const Scheduler *s, const Kernel *k)
{
    enum { MOST = 32, MOST_WIDE = 64, FEW_TILES = 5, FEW_THREADS = 448, TWO_BYTES = 2 };
    bool norm = has_moments(s, k) && row_inputs(k) == 1 && row_bytes(k) == TWO_BYTES && narrowest_stored(k) == TWO_BYTES && has_short_arithmetic(s, k);
    bool wide = has_wide_columns(k) && k->vec == MAX_VECTOR && k->tiles <= FEW_TILES;
    bool fits = reads_f16(k) ? !k->ragged && kernel_threads(k) <= FEW_THREADS : k->ragged;
    return norm && wide && fits ? MOST_WIDE : MOST;
}

/* Column vectors that a later phase reads are read a tile ahead where a row is alone, for its CTA has nothing else to do
 * meanwhile, and a thread has registers for them (layer norm of 2816 to 18000
 * columns 2 to 13 %, of a sum of two 1 to 9 %, rmsnorm 1 to 13 %, to bytes 0 to 7 % faster with 1 to 64 rows, with 512 up to
 * 5 %, many as fast; with weights of f32 rmsnorm and that of a sum 1 to 6 %; in three of f32 an SM holds a CTA less, and 512 rows
 * take 11 % longer; measured on an H100). Some wider than the row spill beside more than 512 threads. */
void set_late(const Scheduler *s, Kernel *k)
{
    enum { MANY_THREADS = 512 };
    bool alone = !is_persistent(k) && !k->lag && !k->streamed;
    bool room = !has_several_columns(k) && (!has_wide_columns(k) || kernel_threads(k) <= MANY_THREADS);
    int bytes = 0, most = most_early_bytes(s, k);
    for (int i = 0; i < k->load_count; i++) {
        k->loads[i].late = is_read_late(k, &k->loads[i]);
        if (k->loads[i].late) bytes += dtype_info[k->loads[i].dtype].bytes * k->vec;
    }
    for (int i = 0; i < k->load_count; i++) k->loads[i].early = alone && room && bytes <= most && k->loads[i].late;
}

bool reads_early(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].early) return true;
    return false;
}
