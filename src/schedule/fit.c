/* schedule/fit.c: makes a kernel of a complete schedule, or refuses it. Nothing but the schedule
 * decides here. The other way round, it gives the complete schedule of any kernel. */
#include "schedule/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the schedule of a kernel ---- */

/* The place in a list of words. */
static int home_of(const Load *load)
{
    return 1 + (is_resident(load) ? IN_REGISTERS : is_staged(load) ? IN_STAGES : IN_MEMORY);
}

/* Of several vectors the one that is nearest says where the rest would be if they could. */
static int nearest_home(const Kernel *k, bool shared)
{
    int nearest = 1 + IN_MEMORY;
    bool some = false;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (load->access != ACCESS_VECTOR || is_column_vector(k, load) != shared) continue;
        some = true;
        if (home_of(load) < nearest) nearest = home_of(load);
    }
    return some && !is_streamed(k) && !k->dynamic && !has_bulk_rows(k) ? nearest : 1 + IN_REGISTERS;
}

static int row_home(const Kernel *k)
{
    return nearest_home(k, false);
}

static int column_home(const Kernel *k)
{
    return nearest_home(k, true);
}

static bool stages_scalars(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_ROW && is_staged(&k->loads[i])) return true;
    return false;
}

typedef enum { CONVERT_NONE, CONVERT_ROW, CONVERT_HALVES, CONVERT_ONCE, CONVERT_BF16 } Conversion;

static void convert(Kernel *k, int conversion)
{
    for (int i = 0; i < k->load_count; i++) k->loads[i].widening = WIDENED;
    switch (conversion) {
    case CONVERT_ROW: rewiden(k, false); break;
    case CONVERT_HALVES: rewiden(k, true); break;
    case CONVERT_ONCE: convert_once(k); break;
    case CONVERT_BF16: convert_bf16(k); break;
    default: break;
    }
}

static bool converts_alike(const Kernel *k, const Kernel *as)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].widening != as->loads[i].widening) return false;
    return true;
}

static bool converts_nothing(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].widening != WIDENED) return false;
    return true;
}

static int conversion_of(const Scheduler *s, const Kernel *k)
{
    if (converts_nothing(k)) return CONVERT_NONE; /* as most, and trying takes long */
    Kernel copy = *k;
    copy.loads = NEW_ARRAY(s->arena, Load, k->load_count + 1);
    if (k->load_count) memcpy(copy.loads, k->loads, sizeof *k->loads * (size_t)k->load_count);
    int conversion = CONVERT_NONE;
    while (convert(&copy, conversion), !converts_alike(&copy, k) && conversion < CONVERT_BF16)
        conversion++;
    return conversion;
}

/* Vectors of a row, or of a CTA's slice of one. */
static int64_t count_vectors(const Scheduler *s, const Kernel *k)
{
    enum { UNKNOWN = 4096 };
    if (!has_element_work(s->g, k)) return 1;
    return k->dynamic ? ceil_div(UNKNOWN, k->cluster)
                      : ceil_div(columns_of_cta(s, k), vector_columns(k));
}

/* As many as cover a row. */
static int covering_tiles(const Scheduler *s, const Kernel *k)
{
    int64_t vectors = count_vectors(s, k);
    return vectors ? (int)ceil_div(vectors, k->threads_per_row) : 1;
}

Schedule read_schedule(const Scheduler *s, const Kernel *k)
{
    Schedule schedule = {
        .any = true,
        .family = k->family,
#define KEY(name, plain, value, refusal, meaning) .name = value,
#define EXACT(name, plain, most, words, value, meaning) .name = value,
#include "schedule/keys.def"
    };
    if (k->vec == find_vector(s, k)) schedule.vec = 0;
    if (k->tiles == covering_tiles(s, k)) schedule.tiles = 0;
    return schedule;
}

/* ---- a kernel of a schedule ---- */

static Residency residency_of(const Schedule *f)
{
    return f->reads == 2               ? ROWS_STREAMED
           : f->stages > 1 || f->reuse ? ROWS_IN_RING
           : f->bulk                   ? ROWS_BY_BULK_COPY
           : f->refill                 ? ROWS_REFILLED
           : f->blocks                 ? ROWS_BY_BLOCKS
                                       : ROWS_IN_REGISTERS;
}

static Bringer bringer_of(const Schedule *f)
{
    return f->family == FAMILY_WARP_SPECIALIZED
               ? f->paced ? BROUGHT_BY_PACED_COPY_WARP : BROUGHT_BY_COPY_WARP
           : f->reuse ? BROUGHT_BY_THREADS_AHEAD
           : f->lines ? BROUGHT_BY_LINES
                      : BROUGHT_BY_THREADS;
}

static Split split_of(const Scheduler *s, const Kernel *k)
{
    if (k->cluster > s->target->max_cluster) return is_streamed(k) ? GROUP_TURNS : GROUP_SLICES;
    if (k->cluster > 1) return is_streamed(k) ? CLUSTER_TURNS : CLUSTER_SLICES;
    return k->column_ctas > 1 ? COLUMN_PARTS : WHOLE_ROWS;
}

static void set_threads(const Scheduler *s, Kernel *k)
{
    const Schedule *f = &s->forced;
    k->vec = f->vec ? f->vec : find_vector(s, k);
    k->threads_per_row = f->threads;
    k->groups = f->groups < MOST_TEAMS ? f->groups : MOST_TEAMS;
    k->teams = f->rows * k->groups;
    k->cluster = f->cluster;
    k->lanes = f->lanes;
    k->tiles = f->tiles ? f->tiles : covering_tiles(s, k);
    int64_t parts = ceil_div(count_vectors(s, k), (int64_t)k->threads_per_row * k->tiles);
    bool cut = !k->inner_count && !k->dynamic && !k->beside && parts > 1;
    k->column_ctas = cut ? (int)parts : 1;
    k->split = split_of(s, k);
    k->registers = f->registers == 1 && f->family == FAMILY_WARP_SPECIALIZED && !is_grouped(k)
                       ? handed_registers(s, kernel_threads(k), f->per_sm)
                       : 0;
}

/* Why threads cannot share a row so. */
static const char *find_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    const char *problem = shape_problem(s, k);
    int64_t covered = (int64_t)k->threads_per_row * k->tiles * k->column_ctas;
    if (problem) return problem;
    if (is_grouped(k) && kernel_threads(k) + helper_threads(k) > MOST_THREADS)
        return arena_format(s->arena, "threads: a CTA has up to %d, of which %d copy and exchange",
                            MOST_THREADS, helper_threads(k));
    if (f->groups > 1 && impossible_groups(s)) return impossible_groups(s);
    if (f->limit && f->limit < f->per_sm) return "limit: it is below per_sm";
    if (find_vector(s, k) % k->vec)
        return "vec: a row is not a whole number of vectors of that many elements";
    if (!k->dynamic && covered < count_vectors(s, k)) return "tiles: so few do not cover a row";
    if (k->column_ctas > MOST_ALONG_Y) return "tiles: a row can be cut into at most 65535 parts";
    for (int i = 0; i < k->accumulator_count; i++)
        if ((k->column_ctas > 1 || k->cluster > 1) && !k->accumulators[i].per_column)
            return "a sum over everything needs a whole row in each CTA";
    if (k->column_ctas > 1 && (k->cluster > 1 || (k->teams > 1 && k->family != FAMILY_COLUMN)))
        return "tiles: a row that is cut into parts excludes cluster=, and rows= except in the family column";
    if (f->lag && (f->row != 1 + IN_STAGES || !k->inner_count || k->phases != 2))
        return "lag: only for rows in a ring that two phases read";
    if (f->lag && k->teams > 1 && !has_copy_warp(k)) return "lag: only with one row at a time";
    if (f->lag && f->stages < 2 + f->lag) return "stages: a lag needs 2 + lag or more";
    if (k->kept && !f->part) return "part: sums that keep row axes need it";
    return NULL;
}

/* Why rows that are neighbours in memory cannot be so: their threads are lanes of one warp or of
 * several, and what is left of a warp has the rows beside. */
static const char *find_beside_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    if (!k->beside) return f->lanes ? "lanes: only for rows that are neighbours in memory" : NULL;
    if (!f->lanes || WARP % f->lanes || f->threads % f->lanes)
        return "lanes: a power of two up to 32 that divides the threads of a row";
    if (k->teams % (WARP / f->lanes)) return "rows: must be a multiple of 32 / lanes";
    const bool plain = f->row == 1 + IN_REGISTERS && f->stages == 1 && f->reads == 1 && !f->reuse &&
                       !f->refill && !f->bulk && !f->blocks && f->cluster == 1;
    return plain && k->column_ctas == 1
               ? NULL
               : "rows that are neighbours in memory must stay in registers";
}

/* Why parts of a row cannot be reduced so; NULL: they can, or there are none. */
static const char *find_part_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    if (!has_parts(s->g, k)) return NULL;
    if (f->reads == 2) return "reads: with reductions over parts of a row it must be 1";
    if (f->lag) return "lag: not with reductions over parts of a row";
    if (is_grouped(k)) return "cluster: not with reductions over parts of a row";
    for (int i = 0; i < k->inner_count; i++) {
        const Node n = k->inner[i].node;
        const AxisSet left = k->columns & ~node(s->g, n)->reduced;
        const bool strided = reduces_part(s->g, k, n) && !block_threads(s->g, k, &s->a->sizes, n);
        const bool whole = has_whole_parts(s->g, k, &s->a->sizes, n);
        if (strided && !whole && axes_size(&s->a->sizes, left) != k->vec)
            return "vec: the rest of a row must be whole vectors";
    }
    return NULL;
}

/* Why CTAs cannot share a row so. */
static const char *find_cluster_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    const char *impossible = impossible_cluster(s);
    if (k->cluster == 1) return f->single ? "single: needs cluster=2 or more" : NULL;
    if (impossible) return impossible;
    bool plain = k->inner_count && k->rows && !k->kept && !k->dynamic && row_inputs(k);
    bool streamed = f->reads == 2;
    bool turns = streamed && k->inner_count && !k->kept && !(is_grouped(k) && k->dynamic);
    if ((!plain && !turns) || k->teams > 1 || k->threads_per_row <= WARP)
        return "cluster: needs a reduction inside the row, one row at a time, and 64 threads or more";
    if (is_grouped(k) && k->cluster % WARP)
        return "cluster: beyond the largest cluster it must be a multiple of 32";
    if (streamed && f->family != FAMILY_ROW)
        return "cluster: CTAs that share a row and read it again are of the family row";
    if (is_grouped(k) && f->family == FAMILY_ROW && !streamed)
        return "cluster: the family row with 32 CTAs or more goes with reads=2, and only that";
    if (is_grouped(k) && !streamed && f->family != FAMILY_WARP_SPECIALIZED)
        return "cluster: a group this large needs the family warp-specialized";
    bool kept = f->stages > 1 || f->reuse || f->refill || f->single || f->bulk || streamed;
    bool full = column_count(s, k) > (int64_t)kernel_threads(k) * k->vec * k->tiles;
    return kept && (full || streamed)
               ? NULL
               : "cluster: the row is too short for so many, or has no place to stay";
}

/* Why a ring cannot be so. */
static const char *find_ring_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    bool copy_warp = f->family == FAMILY_WARP_SPECIALIZED, ring = f->stages > 1 || f->reuse;
    int threads = kernel_threads(k) + helper_threads(k);
    bool whole = k->column_ctas == 1 || (k->family == FAMILY_COLUMN && !copy_warp && !f->lines);
    bool walks = gains_by_walking(k) && whole && !k->dynamic;
    if (!ring)
        return copy_warp ? "stages: warp-specialized needs a ring of two stages or more"
               : f->lag || f->lines || f->scalars
                   ? "stages: lag, lines and scalars need a ring of two stages or more"
               : f->row == 1 + IN_STAGES ? "row: a row in the ring needs stages=2 or more"
                                         : NULL;
    if (!walks || f->reads == 2 || f->refill || f->single || f->bulk || f->blocks ||
        f->row == 1 + IN_MEMORY)
        return "stages: this kernel cannot have a ring with the other keys given";
    if (copy_warp &&
        (!s->target->bulk_copy || has_several_columns(k) || k->kept || k->threads_per_row <= WARP ||
         threads > MOST_THREADS || f->reuse || f->lines || f->row != 1 + IN_STAGES))
        return "warp-specialized needs bulk copies, columns along one axis, and two warps a row";
    if (copy_warp && f->scalars) return "scalars: a copy warp brings vectors alone";
    if (f->reuse && (!may_reuse(k) || f->row != 1 + IN_REGISTERS || f->lines))
        return missing_reuse(s);
    bool lines = !has_several_column_axes(k) && k->threads_per_row >= WARP &&
                 !(k->kept && f->lag) && is_read_in_time(k, (Home)(f->row - 1));
    return f->lines && !lines ? "lines: a row must be read before its first reduction" : NULL;
}

/* Why rows cannot stay in registers or come at once so. */
static const char *find_row_misfit(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    bool held = k->inner_count && k->rows && !k->kept && !k->accumulator_count && !k->dynamic &&
                f->row == 1 + IN_REGISTERS && k->column_ctas == 1 && f->reads == 1;
    if (f->convert == CONVERT_BF16 && k->vec > 1) return "convert: bf16 needs vec=1";
    if (f->paced && !has_copy_warp(k)) return "paced: needs a copy warp (warp-specialized)";
    if (f->bulk && (!can_take_bulk(s, k) || k->teams > 1 || k->threads_per_row <= WARP ||
                    f->reads == 2 || f->refill || f->blocks))
        return missing_bulk(s);
    if (f->refill &&
        (!held || is_grouped(k) || has_several_columns(k) || k->phases > LAST_PHASE_BIT ||
         (f->columns == 1 + IN_REGISTERS && column_vectors(k))))
        return "refill: needs rows in registers, no sum over rows, and no column vector in registers";
    if (f->single && (!held || is_grouped(k))) return "single: needs rows in registers";
    if (f->blocks && (!held || k->vec > 1 || has_several_columns(k) || f->refill))
        return "blocks: needs rows in registers, and vec=1";
    if (f->columns == 1 + IN_STAGES && f->stages == 1 && !f->reuse && !f->refill)
        return "columns: shared memory needs a ring, or refill=1";
    return f->reads == 2 && has_column_accumulators(k)
               ? "reads: 2 is only for kernels without sums over rows"
               : NULL;
}

/* ---- what follows of a schedule that does not tell all ---- */

static int default_conversion(const Scheduler *s, const Kernel *k)
{
    if (is_refilled(k) || (k->beside && k->inner_count)) return CONVERT_ROW;
    if (has_copy_warp(k) && k->vec == 1 && accumulator_registers(s, k) > 1) return CONVERT_BF16;
    if (k->stages || is_streamed(k) || has_bulk_rows(k) || k->accumulator_count || !k->inner_count)
        return CONVERT_NONE;
    return repeats_costly(s, k) ? CONVERT_ONCE : CONVERT_HALVES;
}

/* Rows of a group that a CTA walks before it stores their sums: a few for each team, and as many as
 * make up for the end of a part. */
static int rows_of_part(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 64, OF_TEAM = 4, LEAST_BYTES = 1 << 16, SMALL = 8, SMALL_OF_TEAM = 2 };
    const int64_t bytes = ceil_div(column_count(s, k), k->column_ctas) * row_bytes(k);
    const int small = SMALL_OF_TEAM * k->teams;
    if (!k->accumulator_count) return small > SMALL ? small : SMALL; /* CTAs get as many each */
    int64_t rows = OF_TEAM * k->teams > LEAST ? OF_TEAM * k->teams : LEAST;
    while (bytes && rows * bytes < LEAST_BYTES) rows *= 2;
    return (int)rows;
}

/* Before it is known where things are. */
static void derive_shape(Scheduler *s, Kernel *k)
{
    enum { PAIR = 2 };
    Schedule *f = &s->forced;
    bool ring = f->stages > 1 || f->reuse;
    f->lines = ring && k->column_ctas == 1 && wants_lines(s, k, (Home)(f->row - 1));
    f->scalars = ring && !has_copy_warp(k) && fetches_scalars(k) && has_scalars_of_rows(k);
    f->paced = has_copy_warp(k) && ((k->accumulator_count && row_inputs(k) == PAIR) || k->vec == 1);
    f->part = k->kept ? rows_of_part(s, k) : 0;
    f->checked = checks_full_tiles(s, k);
    k->bringer = bringer_of(f);
}

/* Once that is known. */
static void derive_details(Scheduler *s, Kernel *k)
{
    Schedule *f = &s->forced;
    convert(k, default_conversion(s, k));
    f->convert = conversion_of(s, k);
    set_slice(s, k);
    set_ragged(s, k);
    set_open_tile(s, k);
    f->checked = k->remainder == TILES_FULL_CHECKED;
    f->open = k->remainder == TILES_LAST_OPEN;
    f->whole_moments = k->moments == MOMENTS_OF_THREADS;
    f->even_moments = may_have_even_moments(s, k);
    k->part_rows = f->part;
    k->one_row = may_have_one_row(k);
    set_late(k);
    f->early = reads_early(k);
    f->lean = f->per_sm * kernel_threads(k) == s->target->threads_per_sm;
    set_few(s, k);
    f->few = k->few_ctas;
}

/* Where the row and column vectors are; false: there is no room. */
static bool place_rows(Scheduler *s, Kernel *k)
{
    const Schedule *f = &s->forced;
    bool ring = f->stages > 1 || f->reuse, nothing = is_streamed(k) || k->dynamic;
    set_homes(k, ring, f->scalars, nothing ? IN_MEMORY : (Home)(f->row - 1),
              nothing ? IN_MEMORY : (Home)(f->columns - 1));
    k->stages = 0;
    k->smem_bytes = ring ? 0 : staged_bytes(s, k, true);
    if (ring && !fit_ring(s, k)) return false;
    if (ring && k->ctas_per_sm != f->live) return false;
    if (f->blocks && !fit_blocks(s, k)) return false;
    return k->smem_bytes + static_bytes(s, k) <= s->target->smem_per_cta ||
           (ring && k->stages == f->stages);
}

/* What ptxas is told, and what keeps CTAs out. */
static bool set_bounds(const Scheduler *s, Kernel *k)
{
    const Schedule *f = &s->forced;
    k->wanted_ctas = f->per_sm;
    k->counts_places = f->lean;
    if (f->limit) set_limit(s, k);
    return f->per_sm <= s->target->most_ctas_per_sm &&
           f->per_sm * (kernel_threads(k) + helper_threads(k)) <= s->target->threads_per_sm;
}

/* The first key that a kernel does not have as asked; KEYS: it has all. */
static Key find_difference(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    Schedule made = read_schedule(s, k);
    int key = 0;
    /* what is told though it is plain, and two words for what is the same here */
    if (f->vec == k->vec) made.vec = f->vec;
    if (f->tiles == k->tiles) made.tiles = f->tiles;
    if (made.convert && f->convert) made.convert = f->convert;
    while (key < KEYS && made.at[key] == f->at[key]) key++;
    return (Key)key;
}

static const char *find_problem(const Scheduler *s, const Kernel *k)
{
    const char *problem = find_beside_misfit(s, k);
    if (!problem) problem = find_misfit(s, k);
    if (!problem && !k->beside) problem = find_part_misfit(s, k);
    if (!problem) problem = find_cluster_misfit(s, k);
    if (!problem) problem = find_ring_misfit(s, k);
    if (!problem && s->forced.registers && !k->registers) problem = missing_registers(s);
    return problem ? problem : find_row_misfit(s, k);
}

static void set_details(Scheduler *s, Kernel *k)
{
    const Schedule *f = &s->forced;
    set_slice(s, k);
    set_ragged(s, k);
    set_full_tiles(s, k);
    bool whole = f->whole_moments && may_take_whole_moments(s, k);
    if (f->open && may_leave_open(k)) k->remainder = TILES_LAST_OPEN;
    k->moments = whole ? MOMENTS_OF_THREADS : MOMENTS_OF_VECTORS;
    if (f->even_moments && may_have_even_moments(s, k)) k->moments = MOMENTS_EVEN;
    k->part_rows = k->kept ? f->part : 0;
    k->one_row = may_have_one_row(k);
    place_late(k, f->early && may_read_early(k));
}

/* Without a ring, rows that have only vectors in common with their group are walked one by one. */
static void leave_groups(Kernel *k)
{
    if (!k->kept || k->accumulator_count) return;
    k->rows |= k->kept;
    k->kept = 0;
}

bool fit_schedule(Scheduler *s, Kernel *k)
{
    const Schedule *f = &s->forced;
    if (f->stages <= 1 && !f->reuse) leave_groups(k);
    if (!f->threads) {
        s->problem = "threads: a complete schedule must give it";
        return false;
    }
    if (f->family != FAMILY_WARP_SPECIALIZED && f->family != k->family) {
        s->problem = arena_format(s->arena, "%s: this kernel is of the family %s",
                                  family_name(f->family), family_name(k->family));
        return false;
    }
    k->residency = residency_of(f);
    if (k->residency != ROWS_IN_REGISTERS && !has_parts(s->g, k)) k->keeps = NULL;
    const bool walked = is_streamed(k) && f->cluster == 1;
    const bool own = f->family != FAMILY_WARP_SPECIALIZED && !f->bulk && !f->blocks && !f->refill;
    k->dense = own && (!is_streamed(k) || walked) ? find_dense(s, k) : 0;
    set_threads(s, k);
    k->contiguous = 0;
    k->contiguous = find_contiguous(s, k);
    k->family = f->family;
    k->lag = f->lag;
    k->bringer = bringer_of(f);
    k->ctas_per_sm = k->live_ctas = f->live ? f->live : 1;
    if (s->derive) derive_shape(s, k);
    s->problem = find_problem(s, k);
    if (s->problem) return false;
    bool room = f->bulk ? hold_bulk(s, k) : place_rows(s, k);
    if (s->derive) derive_details(s, k);
    convert(k, f->convert);
    set_details(s, k);
    room &= set_bounds(s, k);
    if (f->few) (void)place_few(s, k, f->few);
    Key other = find_difference(s, k);
    if (!room)
        s->problem = "exact: the schedule does not fit an SM's registers, shared memory or threads";
    else if (other < KEYS)
        s->problem = arena_format(s->arena, "%s: this kernel cannot have it (%s)",
                                  key_info[other].name, key_info[other].meaning);
    return !s->problem;
}
