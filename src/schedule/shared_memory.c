/* schedule/shared_memory.c: what a CTA has in shared memory: the stages of a ring and what lies beside
 * them, a row that one bulk copy brings, blocks of rows that begin anywhere. */
#include "schedule/internal.h"

static int64_t whole_lines(int64_t bytes)
{
    return ceil_div(bytes, LINE_BYTES) * LINE_BYTES;
}

/* What a load's vectors take of a stage; where rows that are not whole lines are to lie as they do
 * in memory, another line each. */
static int64_t buffer_bytes(const Scheduler *s, const Kernel *k, const Load *load)
{
    /* whose row it has, or whose columns: teams that a copy warp feeds share these */
    const int threads = has_copy_warp(k) ? k->threads_per_row : kernel_threads(k);
    int64_t bytes = (int64_t)k->vec * k->tiles * threads * dtype_info[load->dtype].bytes;
    if (is_lined_up(k, load)) return k->teams * (whole_lines(bytes / k->teams) + LINE_BYTES);
    bool copied = (has_copy_warp(k) || has_bulk_rows(k)) && !is_hoisted(load);
    if (!copied) return bytes;
    return rows_of_step(k) * (whole_lines(bytes) + line_room(column_count(s, k), load->dtype));
}

/* Vectors in shared memory, those of one stage or (hoisted) those that are staged once. */
static int64_t vector_bytes(const Scheduler *s, const Kernel *k, bool hoisted)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (is_staged(load) && load->access != ACCESS_ROW && is_hoisted(load) == hoisted)
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
        if (is_staged(load) && load->access == ACCESS_ROW)
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
    if (k->teams == 1 || (feeds_teams(k) && !has_column_accumulators(k))) return 0;
    return (int64_t)kernel_threads(k) * k->vec * widest_accumulator(s->g, k);
}

/* As the fields of a struct whose arrays are aligned for vectors. */
static int64_t whole_blocks(int64_t bytes)
{
    enum { BLOCK = 16 };
    return ceil_div(bytes, BLOCK) * BLOCK;
}

/* What all teams, or the warps that have several, have added up; with a mean, how many rows each
 * warp has seen. */
static int64_t sum_bytes(const Scheduler *s, const Kernel *k)
{
    int64_t bytes = 0, warps = kernel_threads(k) / WARP;
    const int lanes = k->threads_per_row < WARP ? k->threads_per_row : WARP;
    const int64_t columns = warps * lanes * k->vec * k->tiles;
    for (int i = 0; i < k->accumulator_count; i++) {
        const Accumulator *acc = &k->accumulators[i];
        const int width = node(s->g, acc->node)->type == TYPE_F32 ? 4 : 8;
        if (acc->per_column) bytes += values_of(acc) * whole_blocks(columns * width);
        if (acc->squares.id) bytes += whole_blocks(warps * (int64_t)sizeof(float));
    }
    return bytes;
}

/* Where what lanes have of blocks meets, in two halves. */
static int64_t block_bytes(const Scheduler *s, const Kernel *k)
{
    int64_t most = 0;
    for (int phase = 0; phase < k->phases; phase++) {
        int64_t places = 0;
        for (int i = 0; i < k->inner_count; i++)
            if (k->inner[i].phase == phase)
                places += meeting_places(s->g, k, &s->a->sizes, k->inner[i].node);
        if (places > most) most = places;
    }
    return 2 * most * k->teams * (exchanges_wide(s->g, k) ? 8 : 4);
}

/* Where warps meet, in two halves, and CTAs; where sums of everything meet. */
int64_t exchange_bytes(const Scheduler *s, const Kernel *k)
{
    enum { BARRIER = 8 };
    int64_t value = exchanges_wide(s->g, k) ? 8 : 4, warps = ceil_div(kernel_threads(k), WARP);
    int64_t values = most_exchanged(s->g, k), rounds = mailbox_rounds(k);
    int64_t bytes = k->threads_per_row > WARP ? 2 * values * value * warps : 0;
    if (k->beside)
        bytes = warps_of_row(k) > 1 ? 2 * values * value * k->teams * warps_of_row(k) : 0;
    else
        bytes += block_bytes(s, k);
    if (is_grouped(k))
        bytes += rounds * (values * value * (k->cluster / WARP) + 2 * BARRIER);
    else if (k->cluster > 1)
        bytes += 2 * (values * value * k->cluster + BARRIER);
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column)
            bytes += 2 * 8 * warps * (k->accumulators[i].squares.id ? 3 : 1);
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

/* Room beside the ring in which teams' sums meet after the last row, if they do not meet in it. */
static int64_t meeting_bytes(const Scheduler *s, Kernel *k, int64_t stage, int64_t once)
{
    enum { LEAST_STAGES = 2 };
    const bool told = reuses_stages(k) || feeds_teams(k);
    const int stages = told ? k->stages : LEAST_STAGES; /* that there surely are */
    const bool meet = k->teams > 1 && has_column_accumulators(k);
    const int64_t sums = meet ? sum_bytes(s, k) : 0, ring = stages * stage;
    const bool beside = static_bytes(s, k) + once + sums + ring <= s->target->smem_per_cta;
    k->meeting = meet && k->kept && beside          ? MEET_BESIDE_RING
                 : meet && !k->kept && sums <= ring ? MEET_IN_RING
                                                    : MEET_BY_TILES;
    return k->meeting == MEET_IN_RING       ? 0
           : k->meeting == MEET_BESIDE_RING ? sums
                                            : team_bytes(s, k);
}

/* Makes room for the stages that are asked for, in as many CTAs as an SM is to hold. */
bool fit_ring(const Scheduler *s, Kernel *k)
{
    enum { RESERVED = 1 << 10 };
    const int64_t stage = staged_bytes(s, k, false);
    int64_t once = staged_bytes(s, k, true);
    if (!vector_bytes(s, k, false)) return false;
    k->stages = s->forced.stages;
    const int64_t meeting = meeting_bytes(s, k, stage, once);
    /* the copy warp has ended by then, so teams have no barrier of the whole CTA to meet tile by tile */
    if (feeds_teams(k) && meeting) return false;
    if (k->meeting == MEET_BESIDE_RING) once += meeting;
    const int64_t other =
        static_bytes(s, k) + once + (k->meeting == MEET_BESIDE_RING ? 0 : meeting);
    int64_t room = s->target->smem_per_sm / k->ctas_per_sm - RESERVED;
    if (room > s->target->smem_per_cta) room = s->target->smem_per_cta;
    k->smem_bytes = k->stages * stage + once;
    return k->stages * stage + other <= room;
}

/* ---- a row that one bulk copy brings ---- */

/* Whether a row can be copied so: whole blocks of 16 bytes, of one axis. */
bool can_take_bulk(const Scheduler *s, const Kernel *k)
{
    bool fits = !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->dynamic &&
                !has_several_columns(k);
    if (!fits || !row_inputs(k) || !s->target->bulk_copy) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) &&
            !is_whole_blocks(column_count(s, k), k->loads[i].dtype))
            return false;
    return true;
}

bool has_fewer_ctas(const Kernel *k)
{
    return has_bulk_rows(k) && k->most_ctas;
}

bool hold_bulk(const Scheduler *s, Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        load->place = is_row_vector(k, load) ? ROW_IN_STAGE : LOADED_WHEN_NEEDED;
        load->widening = WIDENED;
    }
    k->stages = 0;
    k->meeting = MEET_BY_TILES;
    k->smem_bytes = staged_bytes(s, k, false);
    return k->smem_bytes + static_bytes(s, k) <= s->target->smem_per_cta;
}

/* ---- rows of single elements, by blocks of 16 bytes ---- */

static bool has_stray_rows(const Kernel *k)
{
    if (k->vec > 1 || k->dynamic || has_several_columns(k)) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && dtype_info[k->loads[i].dtype].bytes < 4) return true;
    return false;
}

bool may_pass_by_blocks(const Kernel *k, int vec)
{
    bool alone = !k->accumulator_count && k->inner_count && k->rows && !k->kept;
    Kernel copy = *k;
    copy.vec = vec;
    return alone && has_stray_rows(&copy);
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

bool fit_blocks(const Scheduler *s, Kernel *k)
{
    if (k->threads_per_row <= WARP || has_column_parts(k)) return false;
    int64_t bytes = blocks_bytes(k, (int64_t)k->threads_per_row * k->tiles) * k->teams;
    k->smem_bytes = bytes;
    return bytes + static_bytes(s, k) <= s->target->smem_per_cta;
}
