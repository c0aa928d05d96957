/* schedule/homes.c: where a row's elements and the vectors that all rows share are between a
 * kernel's phases: in registers, in stages of shared memory, or in memory. */
#include "schedule/internal.h"

enum { MAX_REGISTERS = 255 };

int register_cap(const Scheduler *s, int threads)
{
    /* a warp's registers are in one of an SM's four parts */
    int warps_a_part = (threads / WARP + 3) / 4;
    int cap = s->target->registers_per_sm / 4 / (WARP * warps_a_part) / 8 * 8;
    return cap < MAX_REGISTERS ? cap : MAX_REGISTERS;
}

int register_share(const Scheduler *s, const Kernel *k, int ctas)
{
    return k->registers ? k->registers
                        : register_cap(s, (kernel_threads(k) + helper_threads(k)) * ctas);
}

/* Each warpgroup has a warp in each of an SM's four parts. Those of a CTA have as many registers
 * together as at its launch (PTX ISA, setmaxnreg: a multiple of 8). */
int handed_registers(const Scheduler *s, int threads, int ctas)
{
    enum { STEP = 8, MOST = 240 };
    const int groups = threads / WARPGROUP, at_once = ctas > 1 ? ctas : 1;
    const bool whole = threads % WARPGROUP == 0 && threads + WARPGROUP <= MOST_THREADS;
    if (!groups || !whole || !s->target->setmaxnreg) return 0;
    const int before = register_cap(s, (threads + WARPGROUP) * at_once) / STEP * STEP;
    const int more = (before * (groups + 1) - COPY_REGISTERS) / groups / STEP * STEP;
    const int handed = more < MOST ? more : MOST;
    return handed > register_cap(s, (threads + WARP) * at_once) ? handed : 0;
}

/* Whether threads can copy their own vectors to shared memory: 4 bytes are the least. */
static bool may_fetch(const Kernel *k, const Load *load)
{
    return k->vec * dtype_info[load->dtype].bytes >= 4;
}

bool may_fetch_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && !may_fetch(k, &k->loads[i])) return false;
    return true;
}

static bool is_row_scalar(const Kernel *k, const Load *load)
{
    return load->access == ACCESS_ROW && load->axes & k->rows;
}

/* Threads copy 4 or 8 bytes, or 16. */
static bool may_fetch_scalar(const Load *load)
{
    int bytes = dtype_info[load->dtype].bytes;
    return bytes == 4 || bytes == 8;
}

bool has_scalars_of_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_scalar(k, &k->loads[i]) && may_fetch_scalar(&k->loads[i])) return true;
    return false;
}

/* Whether a row's scalars pass through the ring as well, copied by a thread of each warp. Read
 * into registers a row ahead they share a wait with whatever ptxas lets them share one with.
 * That wait is worth avoiding for teams of a few warps that fill an SM, and needed where a ring
 * runs on to the next part of a group; else it only keeps SMs in step. */
bool fetches_scalars(const Kernel *k)
{
    enum { MOST = 4 * WARP, LARGE_CTA = 384 };
    int team = k->threads_per_row;
    if (k->kept)
        return team >=
               WARP; /* the next part's rows are on their way, so their scalars are to be, too */
    return k->teams > 1 && team > WARP && team <= MOST && kernel_threads(k) >= LARGE_CTA;
}

/* `stageable`: shared memory can have its vectors. */
static Place place_of(const Kernel *k, const Load *load, Home home, bool stageable)
{
    bool in_registers = home == IN_REGISTERS, in_stage = stageable && home != IN_MEMORY;
    if (load->access != ACCESS_VECTOR) return LOADED_WHEN_NEEDED;
    if (is_column_vector(k, load))
        return in_registers ? COLUMNS_IN_REGISTERS
               : in_stage   ? COLUMNS_IN_SHARED
                            : LOADED_WHEN_NEEDED;
    return in_stage && in_registers ? ROW_THROUGH_STAGE
           : in_stage               ? ROW_IN_STAGE
           : in_registers           ? ROW_IN_REGISTERS
                                    : LOADED_WHEN_NEEDED;
}

void set_homes(Kernel *k, bool ring, bool scalars, Home rows, Home columns)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool shared = is_column_vector(k, load);
        bool stageable =
            (ring || shared) &&
            (((has_copy_warp(k) || is_copied_by_lines(k)) && !shared) || may_fetch(k, load));
        load->place = place_of(k, load, shared ? columns : rows, stageable);
        load->widening = WIDENED;
        if (ring && scalars && is_row_scalar(k, load) && may_fetch_scalar(load))
            load->place = ROW_IN_STAGE;
    }
}

/* schedule/stage_reuse.c: rows that hand their stage of the ring on. Threads that have copied a row
 * for themselves read all of it into registers when its turn comes, and the next row to be copied
 * takes its stage. A single stage then has a row on its way while another is computed, so that an
 * SM has room for two or three CTAs beside their column vectors, or for longer slices. */
#include "schedule/internal.h"

/* Whether all of a row is read when its turn comes. */
static bool is_read_at_once(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].first_phase > 0) return false;
    return true;
}

/* Whether rows can hand their stage on: threads that have copied a row for themselves read all
 * of it into registers when its turn comes, and the next row to be copied takes its stage. */
bool may_reuse(const Kernel *k)
{
    return !is_grouped(k) && may_fetch_rows(k) && is_read_at_once(k);
}

/* Whether all of a row is read before the row's first reduction, or (with lag) before the next
 * row's: then the barrier of that reduction is all that threads need which copy for each other. */
bool is_read_in_time(const Kernel *k, Home rows)
{
    if (!k->inner_count) return false;
    if (k->lag) return true;
    return is_read_at_once(k) && rows == IN_REGISTERS;
}

/* Whether a ring's rows are better copied by blocks than by each thread's own vectors: where they
 * begin anywhere in a line of memory. Copies between different places of one read a quarter more
 * from L2, and single elements of 2 bytes cannot be copied. */
bool wants_lines(const Scheduler *s, const Kernel *k, Home rows)
{
    /* columns of several axes may lie apart, also if the kernel counts them as one */
    if (has_copy_warp(k) || !k->accumulator_count || has_several_column_axes(k) ||
        k->threads_per_row < WARP)
        return false;
    if (k->kept && k->lag)
        return false; /* a part's last row may still be read when the next part's first is copied */
    if (!is_read_in_time(k, rows)) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) &&
            !is_whole_lines(column_count(s, k), k->loads[i].dtype))
            return true;
    return false;
}

/* ---- column vectors that a later phase reads from memory ---- */

static bool is_read_late(const Kernel *k, const Load *load)
{
    AxisSet walked = k->rows | k->kept;
    bool shared = walked && !(load->axes & walked);
    return shared && load->tensor >= 0 && load->access == ACCESS_VECTOR && load->first_phase > 0 &&
           !is_resident(load) && !is_staged(load);
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
    return !is_persistent(k) && !k->lag && !is_streamed(k) && !has_several_column_axes(k);
}

void place_late(Kernel *k, bool early)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_read_late(k, &k->loads[i])) k->loads[i].place = early ? LOADED_AHEAD : LOADED_LATE;
}

/* They are read a tile ahead where a row is alone, for its CTA has nothing else to do meanwhile,
 * and a thread has registers for them. */
void set_late(Kernel *k)
{
    enum { MANY_THREADS = 512, MOST = 32 }; /* bytes: two vectors of 2 bytes, or one of 4 */
    bool room = !has_wide_columns(k) || kernel_threads(k) <= MANY_THREADS;
    place_late(k, room && may_read_early(k) && late_registers(k) <= MOST);
}

/* Bytes of those, of a CTA; 0: there are none, more than a pair, or some that threads cannot
 * copy for themselves. */
static int64_t late_bytes(const Kernel *k)
{
    enum { PAIR = 2, LEAST = 4 }; /* bytes that cp.async copies */
    int64_t bytes = 0;
    int count = 0;
    for (int i = 0; i < k->load_count; i++) {
        if (!is_late(&k->loads[i])) continue;
        int64_t vector = (int64_t)dtype_info[k->loads[i].dtype].bytes * k->vec;
        if (vector < LEAST || ++count > PAIR) return 0;
        bytes += vector * k->tiles * kernel_threads(k);
    }
    return bytes;
}

/* The same where shared memory can have them, of rows that are alone. */
static int64_t bytes_of_few(const Scheduler *s, const Kernel *k)
{
    bool alone = k->one_row && k->teams == 1 && !is_streamed(k) && !is_grouped(k) &&
                 !is_persistent(k) && !has_several_column_axes(k);
    int64_t bytes = alone && !k->smem_bytes && !k->idle_bytes ? late_bytes(k) : 0;
    return bytes + static_bytes(s, k) > s->target->smem_per_cta ? 0 : bytes;
}

bool place_few(const Scheduler *s, Kernel *k, int ctas)
{
    k->few_bytes = bytes_of_few(s, k);
    k->few_ctas = k->few_bytes ? ctas : 0;
    return k->few_bytes > 0;
}

/* Of few rows that are alone they come to shared memory while the row comes to registers, as
 * long as all CTAs together ask L2 for no more of them than so much. */
void set_few(const Scheduler *s, Kernel *k)
{
    enum { TWO_BYTES = 2 };
    const Target *t = s->target;
    bool narrow = row_bytes(k) <= TWO_BYTES * row_inputs(k);
    int64_t bytes = narrow ? bytes_of_few(s, k) : 0;
    if (!bytes) return;
    int64_t ctas = (has_wide_columns(k) ? t->small_grid_wide_bytes : t->small_grid_bytes) / bytes;
    place_few(s, k, ctas < t->small_grid_ctas ? (int)ctas : t->small_grid_ctas);
}
