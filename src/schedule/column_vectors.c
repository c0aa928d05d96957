/* schedule/column_vectors.c: where column vectors are while rows pass.
 *
 * Of long rows of a mean and its squares they stay in registers. All of shared memory is then a
 * ring of rows: beside those vectors it has room for a stage or two less, of f32 for one only, and
 * read with each row from L2 they are as much as the row itself, two of them twice as much. Of rows
 * that are alone a later phase may read them a tile ahead, or, of few, from shared memory. */
#include "schedule/internal.h"

/* Whether a row is one input of whole vectors, has one exchange, since a lag has no room for more,
 * and column vectors and results are as wide as its elements. */
static bool may_keep(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2, LEAST = 3 };
    const Schedule *f = &s->forced;
    if ((f->any && f->family != FAMILY_ROW) || (f->stages && f->stages < LEAST) || f->reads > 1 ||
        f->bulk || f->reuse)
        return false;
    if (!k->rows || k->kept || k->dynamic || k->accumulator_count || has_several_columns(k))
        return false;
    bool alike =
        !has_wide_columns(k) && narrowest_stored(k) == row_bytes(k) && k->vec == full_vector(k);
    bool plain = row_inputs(k) == 1 && column_vectors(k) && column_vectors(k) <= PAIR;
    return alike && plain && has_moments(s, k) && k->phases == PAIR;
}

enum { KEEPER_COLUMNS = 32 }; /* of a thread */

/* Whether threads of whole warps, or of half a warp more where there are many, have that many
 * columns each. */
static bool fills_keepers(int64_t columns, int ctas)
{
    enum { MANY = 122880 };
    int64_t unit = (int64_t)ctas * KEEPER_COLUMNS * WARP;
    return columns % (columns > MANY ? unit / 2 : unit) == 0;
}

/* How many CTAs are to share such a row, 0: it is of others. Of f32 the largest cluster (layer norm
 * of 229376 and 262144 columns 11 % faster than by one copy; 163840 and 196608 1 to 2 % slower than
 * with registers that the next row refills). Of 16 bits eight, where their threads are full
 * (114688, 122880 and 147456 columns 3 to 9 % faster than with registers that the next row refills,
 * 106496 and 139264 2 to 4 % slower; others, and all shorter ones, 2 to 17 % slower), but for
 * slices of 16384, beside which shared memory has room for the vectors (131072 columns 8 % slower).
 * Of bf16 the largest cluster where its slices are those 16384 (2 % faster; 229376 and 256000 4 to
 * 7 % slower; all measured on an H100). */
static int wanted_keepers(const Scheduler *s, const Kernel *k)
{
    enum { LONG_F32 = 196608, LONG = 106496, LONGEST = 163840, EIGHT = 8, SLICE = 16384 };
    int64_t columns = column_count(s, k);
    int largest = s->target->max_cluster;
    if (is_f32_row(k))
        return columns > LONG_F32 && columns <= (int64_t)SLICE * largest ? largest : 0;
    if (!reads_f16(k) && row_bytes(k) == 2 && columns == (int64_t)SLICE * largest) return largest;
    bool fits = row_bytes(k) == 2 && largest >= EIGHT && columns > LONG && columns <= LONGEST &&
                columns != SLICE * EIGHT;
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

/* Where other CTAs, threads or stages are asked for, or shared memory has no room, a row is not of
 * them either. */
int column_keepers(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
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
    return shared && load->tensor >= 0 && load->access == ACCESS_VECTOR && load->first_phase > 0 &&
           !load->resident && !load->staged;
}

/* Bytes of a vector of each of them. */
static int late_registers(const Kernel *k)
{
    int bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_read_late(k, &k->loads[i])) bytes += dtype_info[k->loads[i].dtype].bytes * k->vec;
    return bytes;
}

bool may_read_early(const Kernel *k)
{
    return !is_persistent(k) && !k->lag && !k->streamed && !has_several_columns(k);
}

void place_late(Kernel *k, bool early)
{
    for (int i = 0; i < k->load_count; i++) {
        k->loads[i].late = is_read_late(k, &k->loads[i]);
        k->loads[i].early = early && k->loads[i].late;
    }
}

/* Column vectors that a later phase reads are read a tile ahead where a row is alone, for its CTA
 * has nothing else to do meanwhile, and a thread has registers for them (layer norm of 2816 to
 * 18000 columns 2 to 13 %, of a sum of two 1 to 9 %, rmsnorm 1 to 13 %, to bytes 0 to 7 % faster
 * with 1 to 64 rows, with 512 up to 5 %, many as fast; with weights of f32 rmsnorm and that of a
 * sum 1 to 6 %; in three of f32 an SM holds a CTA less, and 512 rows take 11 % longer; measured on
 * an H100). Some wider than the row spill beside more than 512 threads. */
void set_late(Kernel *k)
{
    enum { MANY_THREADS = 512, MOST = 32 }; /* bytes: two vectors of 2 bytes, or one of 4 */
    bool room = !has_wide_columns(k) || kernel_threads(k) <= MANY_THREADS;
    place_late(k, room && may_read_early(k) && late_registers(k) <= MOST);
}

/* Bytes of column vectors that a later phase reads, of a CTA; 0: there are none, more than a pair,
 * which many rows pay 2 % for (32 % of 22528 columns, which then hold a CTA less), or some that
 * threads cannot copy for themselves. */
static int64_t late_bytes(const Kernel *k)
{
    enum { PAIR = 2, LEAST = 4 }; /* bytes that cp.async copies */
    int64_t bytes = 0;
    int count = 0;
    for (int i = 0; i < k->load_count; i++) {
        if (!k->loads[i].late) continue;
        int64_t vector = (int64_t)dtype_info[k->loads[i].dtype].bytes * k->vec;
        if (vector < LEAST || ++count > PAIR) return 0;
        bytes += vector * k->tiles * kernel_threads(k);
    }
    return bytes;
}

/* The same where shared memory can have them, of rows that are alone. */
static int64_t bytes_of_few(const Scheduler *s, const Kernel *k)
{
    bool alone =
        k->one_row && !k->streamed && !k->grouped && !is_persistent(k) && !has_several_columns(k);
    int64_t bytes = alone && !k->smem_bytes && !k->idle_bytes ? late_bytes(k) : 0;
    return bytes + static_bytes(s, k) > s->target->smem_per_cta ? 0 : bytes;
}

bool place_few(const Scheduler *s, Kernel *k, int ctas)
{
    k->few_bytes = bytes_of_few(s, k);
    k->few_ctas = k->few_bytes ? ctas : 0;
    return k->few_bytes > 0;
}

/* Of few rows that are alone, column vectors that a later phase reads come to shared memory while
 * the row comes to registers, as long as all CTAs ask L2 for no more of them than so much (layer
 * norm with weights of f32 of 4096 to 16384 columns 16 to 22 %, behind other kernels 21 to 31 %
 * faster with one row, 7 to 11 % with 64; with weights of 2 bytes, of 3584 columns, 16, 29 and 11
 * %, of 512 rows 4 %; of a sum, and rmsnorm to bytes, 10 to 17 % with one; twice as much of f32 is
 * 5 to 20 % slower; many rows are as fast; rows of f32 gain nothing; measured on an H100). */
void set_few(const Scheduler *s, Kernel *k)
{
    enum { MOST = 24 << 20, MOST_WIDE = 8 << 20, MOST_CTAS = 512, TWO_BYTES = 2 };
    bool narrow = row_bytes(k) <= TWO_BYTES * row_inputs(k);
    int64_t bytes = narrow ? bytes_of_few(s, k) : 0;
    if (!bytes) return;
    int64_t ctas = (has_wide_columns(k) ? MOST_WIDE : MOST) / bytes;
    place_few(s, k, ctas < MOST_CTAS ? (int)ctas : MOST_CTAS);
}
