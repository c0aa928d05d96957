/* schedule/fit_threads.c: maps one kernel onto threads: vector width, tiles, threads a row, teams
 * and clusters. Column sizes are known here, row sizes are not and decide nothing, so a
 * row's reduction tree is the same in every batch. */
#include "schedule/internal.h"

#include <limits.h>
#include <string.h>

enum {
    TEAM_THREADS = 256
}; /* of a CTA that has several rows at a time; with accumulators SUM_THREADS */

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* The fewest bytes an element has among the tensors that are read or written as vectors.
 */
int narrowest(const Kernel *k)
{
    int bytes = 16;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR)
            bytes = min_int(bytes, dtype_info[k->loads[i].dtype].bytes);
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR)
            bytes = min_int(bytes, dtype_info[k->stores[i].dtype].bytes);
    return bytes;
}

/* Elements of the widest access that the tensors allow. */
int full_vector(const Kernel *k)
{
    return min_int(16 / narrowest(k), MAX_VECTOR);
}

/* Elements along the fastest of the columns' axes. */
static int64_t fastest_count(const Scheduler *s, const Kernel *k)
{
    return k->columns ? axes_size(&s->a->sizes, (AxisSet)1 << fastest_column(k)) : 1;
}

/* A row is whole vectors, so that all rows are alike and every access is aligned: where
 * the number of columns is odd, single elements. Reading such rows by aligned vectors and
 * shifting them took three times the instructions and registers (measured on an H100: 10
 * to 30 % slower). Of several axes the fastest is whole vectors. */
int find_vector(const Scheduler *s, const Kernel *k)
{
    int vec = k->dynamic && !has_several_columns(k) ? 1 : full_vector(k);
    while (fastest_count(s, k) % vec) vec /= 2;
    return vec;
}

/* A short row gets part of a warp or a warp (schedule/short_rows.c), a longer one whole warps,
 * about so many full vectors a thread, up to `most` threads. Rows share a CTA of `cta` threads as
 * teams. */
static void share_row(const Scheduler *s, Kernel *k, int64_t vectors, int64_t full, int wanted,
                      int most, int cta)
{
    k->teams = 1;
    if (is_short_row(s, k, full)) {
        k->threads_per_row = short_row_threads(s, k, vectors, full);
        k->teams = short_row_cta(s, k, full) / k->threads_per_row;
    } else {
        int64_t warps = ceil_div(full, wanted * WARP);
        k->threads_per_row = warps * WARP < most ? (int)warps * WARP : most;
        /* a longer row's team needs a barrier of its own, and there are fifteen; with more than 256
           threads a row, CTAs by themselves measured better than teams (two teams of 256: backward
           norms of 4096 columns 1 %, of few rows 4 % faster, in f32 3 % slower) */
        bool narrow = row_bytes(k) <= 2 * row_inputs(k);
        int largest = narrow ? TEAM_THREADS : TEAM_THREADS - 1;
        if (cta > TEAM_THREADS && k->threads_per_row <= largest)
            k->teams = min_int(cta / k->threads_per_row, 15);
    }
    int64_t shared = ceil_div(vectors, k->threads_per_row);
    k->tiles = shared > 1 << 20 ? 1 << 20 : shared < 1 ? 1 : (int)shared;
}

/* Sums over rows without inner reductions: CTAs with whole rows have a ring of them, parts of rows
 * are loaded when their turn comes (sum over rows of 4096 to 16384 columns 9 to 10 %, with the
 * gradient of gelu 13 to 16 % faster; of 5 bytes a column 1 % slower; measured on an H100). */
static bool sums_whole_rows(const Scheduler *s, const Kernel *k)
{
    enum { MOST = 16384, BYTES = 4, ROOM = 8 << 10 };
    double registers = accumulator_registers(s, k);
    int64_t two_rows = 2 * row_bytes(k) * column_count(s, k);
    if (!row_inputs(k) || two_rows + ROOM > s->target->smem_per_cta) return false;
    return registers > 0 && registers * (double)column_count(s, k) <= MOST &&
           row_bytes(k) <= BYTES && k->rows && k->vec == full_vector(k);
}

/* A kernel with no inner reduction may cut a row into several CTAs. */
static void cut_columns(Kernel *k, int64_t vectors, int tiles)
{
    if (vectors <= TEAM_THREADS * tiles) return;
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column) return;
    k->threads_per_row = TEAM_THREADS;
    k->teams = 1;
    k->tiles = tiles;
    int64_t ctas = ceil_div(vectors, TEAM_THREADS * tiles);
    while (ctas > 65535) {
        k->tiles *= 2;
        ctas = ceil_div(vectors, (int64_t)TEAM_THREADS * k->tiles);
    }
    k->column_ctas = (int)ctas;
}

/* Why no CTA can be so; NULL: it can. */
const char *shape_problem(const Scheduler *s, const Kernel *k)
{
    enum { MOST = 1024, MOST_TEAMS = 15 };
    int threads = k->threads_per_row, all = kernel_threads(k);
    if (threads > MOST) return arena_format(s->arena, "threads: a CTA has up to %d", MOST);
    if (threads % WARP && (threads > WARP || (all % WARP && !s->forced.rows)))
        return arena_format(s->arena, "threads: %d of a row are not whole warps of %d", threads,
                            WARP);
    if (all % WARP)
        return arena_format(s->arena, "rows: %d rows of %d threads are not whole warps of %d",
                            k->teams, threads, WARP);
    if (all > MOST)
        return arena_format(s->arena, "rows: %d rows of %d threads are more than the %d of a CTA",
                            k->teams, threads, MOST);
    if (threads > WARP && k->teams > MOST_TEAMS)
        return arena_format(s->arena, "rows: a CTA has up to %d at a time of more than a warp each",
                            MOST_TEAMS);
    return NULL;
}

static bool apply_forced(Scheduler *s, Kernel *k, int64_t vectors)
{
    int threads = s->forced.threads;
    bool several = threads && WARP % threads == 0 && k->threads_per_row <= WARP &&
                   threads != k->threads_per_row;
    bool whole = threads && k->threads_per_row >= WARP && k->column_ctas == 1;
    if (several || whole) {
        k->teams = several && kernel_threads(k) > threads
                       ? kernel_threads(k) / threads
                       : 1; /* rows of a warp, in as large a CTA */
        k->threads_per_row = threads;
        k->tiles = vectors ? (int)ceil_div(vectors, threads) : 1;
    }
    bool copies =
        s->forced.any && s->forced.family == FAMILY_WARP_SPECIALIZED && k->threads_per_row > WARP;
    if (copies) k->teams = 1; /* its copy warp serves one row */
    bool walks = (k->rows | k->kept) && k->cluster == 1 && k->column_ctas == 1;
    if (s->forced.rows && walks) k->teams = s->forced.rows;
    s->problem = shape_problem(s, k);
    return !s->problem;
}

/* A kernel whose columns are no fixed number, or that has a single row, gets whole warps. */
static void widen(Kernel *k)
{
    if (k->rows | k->kept) return;
    if (k->threads_per_row < WARP) k->threads_per_row = WARP;
    k->teams = 1;
}

/* Rows of up to 128 vectors (1024 columns of 2 bytes) with sums over rows: a warp has a row by
 * itself, which takes no barrier, but with one accumulator a column beyond 96; of up to 256: a
 * vector a thread, three rows a CTA where they are full (measured on an H100: 2 to 6 % over CTAs of
 * one row). Where the row's scalars, if there are any, go through the ring, teams with two vectors
 * a thread are 2 to 8 % faster: with two accumulators, or one of up to 224 vectors of 2 bytes.
 * (Layer norm's backward of 1280 columns takes 6 % less with a vector a thread and 100000 rows, and
 * with 512 rows 28 % more, for so many CTAs have sums of their own.) */
static void shape_short_sums(const Scheduler *s, Kernel *k, int64_t vectors)
{
    enum {
        LEAST = 2 * WARP,
        OWN_ONE_SUM = 3 * WARP,
        OWN = 4 * WARP,
        ROWS = 4,
        PAIR = 2,
        THREE = 3,
        LONG_ONE_SUM = 224
    };
    double registers = accumulator_registers(s, k);
    if (registers < 1 || k->cluster > 1) return;
    if (vectors <= LEAST || vectors > TEAM_THREADS || k->vec < full_vector(k)) return;
    bool one = registers < 2, shared = vectors <= OWN;
    bool narrow = row_bytes(k) <= 2 * row_inputs(k) && k->inner_count && vectors <= LONG_ONE_SUM;
    if (may_fetch_scalars(k) && (!one || narrow)) return;
    /* f16 takes an instruction more to widen, which one warp a row does not hide (15 %) */
    bool own = vectors <= (one ? OWN_ONE_SUM : OWN) && !reads_f16(k);
    if (one && ((shared && reads_f16(k)) || !k->inner_count)) return;
    k->threads_per_row = own ? WARP : (int)ceil_div(vectors, WARP) * WARP;
    k->tiles = own ? (int)ceil_div(vectors, WARP) : 1;
    k->teams = own ? ROWS : shared ? PAIR : vectors == TEAM_THREADS ? THREE : 1;
}

/* Rows of groups that are summed apart: so many teams that threads have registers for a ring that
 * runs on from part to part. */
static int teams_of_parts(const Kernel *k)
{
    enum { FEW = 256, MANY = 384 };
    if (k->threads_per_row < WARP) return k->teams;
    int teams = (k->threads_per_row == WARP ? FEW : MANY) / k->threads_per_row;
    return teams > 1 ? teams : 1;
}

/* A thread gets `pack` vectors where vectors are full: so few elements are shared out
 * alike, however wide the vectors are. */
static bool share_threads(Scheduler *s, Kernel *k, int pack)
{
    int64_t vectors = !has_element_work(s->g, k) ? 1
                      : k->dynamic               ? 4096
                                                 : ceil_div(column_count(s, k), k->vec);
    vectors = ceil_div(vectors, k->cluster);
    k->column_ctas = 1;
    int64_t full = ceil_div(vectors, pack);
    int wanted = wanted_vectors(s, k, full);
    while (k->cluster > 1 && wanted > 1 && full <= (int64_t)wanted * WARP)
        wanted /= 2; /* two warps at least */
    bool sums = has_column_accumulators(k) && k->cluster == 1;
    share_row(s, k, vectors, full, wanted, most_threads(s, k), sums ? SUM_THREADS : TEAM_THREADS);
    even_out(s, k, vectors);
    shape_short_sums(s, k, vectors);
    int threads = held_threads(s, k);
    if (!threads) threads = summed_threads(s, k);
    if (!threads) threads = uneven_threads(s, k, vectors);
    if (!threads) threads = threads_of_bytes(s, k);
    if (takes_bulk(s, k)) threads = bulk_threads(k, vectors);
    if (k->cluster > 1 && k->cluster == column_keepers(s, k)) threads = keeper_threads(k, vectors);
    if (k->cluster == pacing_ctas(s, k)) threads = pacing_threads(s, k, k->cluster);
    if (k->holding_threads) threads = k->holding_threads;
    if (threads) {
        k->teams = 1;
        k->threads_per_row = threads;
        k->tiles = (int)ceil_div(vectors, threads);
    }
    if (pairs_teams(s, k)) k->teams = 2;
    if (k->kept && k->inner_count) k->teams = teams_of_parts(k);
    if (reads_again(s, k)) even_out_streams(k, vectors);
    if (!k->inner_count && !k->dynamic && !sums_whole_rows(s, k)) cut_columns(k, vectors, pack);
    widen(k);
    return apply_forced(s, k, vectors);
}

/* A row over so many CTAs: a cluster, or where the GPU has none so large, a group. */
static bool try_cluster(Scheduler *s, Kernel *k, int pack, int ctas)
{
    k->cluster = ctas;
    k->grouped = ctas > s->target->max_cluster;
    return share_threads(s, k, pack) && k->threads_per_row > WARP && k->teams == 1 &&
           column_count(s, k) > (int64_t)kernel_threads(k) * k->vec * k->tiles && fit_homes(s, k) &&
           (k->stages || k->refill || k->single || k->bulk);
}

/* Rows of single elements of 2 bytes for which little is computed in two phases, or in three to be
 * stored as bytes, with weights and, beside a mean, a shift: such were measured, and others spill
 * (four column vectors 100 bytes). */
static bool may_hold(const Scheduler *s, const Kernel *k)
{
    enum { ONE_BYTE = 1, TWO_BYTES = 2, TWO_PHASES = 2 };
    bool single = k->vec == 1 && row_bytes(k) == TWO_BYTES * row_inputs(k),
         moments = has_moments(s, k);
    bool bytes = k->phases > TWO_PHASES && narrowest_stored(k) == ONE_BYTE && !moments &&
                 has_short_functions(s, k);
    return single && column_vectors(k) <= 1 + moments && (has_light_phases(s, k) || bytes);
}

/* The same with as many threads as hold column vectors for which there is no other room; where
 * those do not, `k` is left as it was tried. Times beside more CTAs of fewer threads, or beside as
 * many that read them in each phase, on an H100: rmsnorm of 140001, 190001, 600001, 720001 columns
 * 0.84, 0.95, 0.62, 0.63, layer norm of 300001 and 720001 0.70 and 0.30, rmsnorm to bytes 0.45 to
 * 0.85, rmsnorm of a sum of 140001 to 300001 0.81 to 0.95, layer norm of one of 150001 and 163001
 * 0.85 and 0.84, backward rmsnorm with the residual's gradient of 163001 0.97. Beside a mean and
 * its squares, or sums over rows, threads of f16 spill so, and of several inputs where they are as
 * many as 768 (layer norm of a sum of 190001 columns 1.64), or in groups (of 300001 1.04). */
static bool try_holding(Scheduler *s, Kernel *k, int pack, int ctas)
{
    enum { MANY = 672, MORE = 768 };
    int64_t slice = ceil_div(column_count(s, k), ctas);
    int threads = slice <= MANY * HELD_ELEMENTS ? MANY : MORE;
    bool heavy = has_moments(s, k) || k->accumulator_count, several = row_inputs(k) > 1;
    bool spills = heavy && (reads_f16(k) || (several && (threads == MORE || k->grouped)));
    if (!may_hold(s, k) || s->forced.threads || spills || slice > threads * HELD_ELEMENTS)
        return false;
    k->holding_threads = threads;
    bool held = try_cluster(s, k, pack, ctas) && !leaves_columns(k) && k->copy_warp;
    k->holding_threads = 0;
    return held;
}

/* Whether so many CTAs are worth trying where `first` have room, but leave column vectors in
 * memory. Groups of 128 are, of single elements (rmsnorm of 1000001 columns 54 %, layer norm 44 %,
 * backward rmsnorm with the residual's gradient of 720001 50 % faster than by fewer), but in three
 * phases only in place of a cluster (to bytes of 1000001 11 % slower than by 64 that do not hold
 * them, in f16 of 1200001 9 % faster; measured on an H100). */
static bool may_try(const Scheduler *s, const Kernel *k, int ctas, int first)
{
    enum { TWO_PHASES = 2 };
    if (!first || 2 * ctas <= s->target->sms) return true;
    return k->vec == 1 && (k->phases <= TWO_PHASES || first <= s->target->max_cluster);
}

/* The smallest cluster whose CTAs have few enough columns each and hold the column vectors, else
 * the largest; where that has no room or is not wanted, a group, all of which must live at once.
 * Where none holds them, the smallest with room. */
static bool fit_cluster(Scheduler *s, Kernel *k, int pack)
{
    int clusters = s->target->max_cluster, sms = s->target->sms;
    int largest = s->target->bulk_copy && sms > clusters ? sms : clusters;
    Kernel single = *k;
    Load *loads = NEW_ARRAY(s->arena, Load, k->load_count + 1);
    if (k->load_count) memcpy(loads, k->loads, sizeof *loads * (size_t)k->load_count);
    if (wants_cluster(s, k)) {
        int first = 0; /* that has room */
        for (int ctas = 2; ctas <= largest && may_try(s, k, ctas, first); ctas *= 2) {
            if (!may_share(s, k, ctas) || !try_cluster(s, k, pack, ctas)) continue;
            if (!leaves_columns(k) || try_holding(s, k, pack, ctas)) return true;
            if (!first) first = ctas;
        }
        if (first && try_cluster(s, k, pack, first)) return true;
        if (!s->forced.cluster && try_cluster(s, k, pack, clusters)) return true;
    }
    *k = single;
    if (k->load_count) memcpy(k->loads, loads, sizeof *loads * (size_t)k->load_count);
    return false;
}

/* Columns are counted in `int`, but for those that a launch counts; each thread of a kernel that
 * sums them over rows must have its own. */
static bool has_too_many_columns(Scheduler *s, const Kernel *k)
{
    int most = has_column_accumulators(k) ? 1 << 30 : INT_MAX;
    if (!axes_within(k->columns, s->a->columns) || column_count(s, k) <= most) return false;
    s->problem = arena_format(s->arena, "rows of more than %d columns%s are not supported", most,
                              most < INT_MAX ? " that are reduced over rows" : "");
    return true;
}

/* Whether the rows are those of a tensor with columns, which are never more than a grid has CTAs:
 * no memory holds them. Pairs of the rows of two tensors may be. */
static bool spans_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && axes_within(k->rows, k->loads[i].axes)) return true;
    for (int i = 0; i < k->store_count; i++)
        if (axes_within(k->rows | k->columns, k->stores[i].axes)) return true;
    return false;
}

bool may_have_one_row(const Kernel *k)
{
    bool several =
        k->kept || k->teams > 1 || k->column_ctas > 1 || is_persistent(k) || has_fewer_ctas(k);
    return k->rows && k->inner_count && !several && spans_rows(k);
}

/* Of short rows a CTA has several; what passes through a ring, or is summed over rows, stays for
 * many. Without a loop a row takes 2 to 8 registers less (a sum of two inputs of 1024 columns 2 %
 * faster), but of two kinds ptxas makes better code in a loop that runs once: of several exchanges
 * it takes up to 20 registers more without (rmsnorm to bytes of 6144, 12288 and 1987 columns 3, 10
 * and 14 % slower, but single elements of a cluster's row, 50257, 30 % faster), and single elements
 * of several inputs it loads later (layer norm of a sum of 1987 columns 8 %; all measured on an
 * H100). */
static bool wants_one_row(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2 };
    bool often = k->phases > PAIR && (k->vec > 1 || k->cluster == 1);
    bool looped = often || (k->vec == 1 && has_moments(s, k) && row_inputs(k) > 1);
    return !looped;
}

/* Why a row and its sums have no room. What several CTAs lack was lost with them: `k` is of one
 * again. */
static const char *missing_room(const Scheduler *s, const Kernel *k)
{
    int ctas = s->forced.cluster, count = k->accumulator_count;
    if (ctas > s->target->max_cluster && s->forced.family != FAMILY_WARP_SPECIALIZED)
        return arena_format(s->arena, "cluster: sums over rows of %d CTAs are warp-specialized",
                            ctas);
    if (ctas > 1)
        return arena_format(s->arena, "cluster: %d CTAs have no room for a row and its sums", ctas);
    return arena_format(
        s->arena,
        "%d column accumulator%s of a row in one CTA need%s about %d registers a thread, %d are there",
        count, count > 1 ? "s" : "", count > 1 ? "" : "s", estimate(s, k),
        register_cap(s, kernel_threads(k)));
}

bool map_kernel(Scheduler *s, Kernel *k)
{
    k->column_ctas = k->cluster = 1;
    if (k->family == FAMILY_FINISH) {
        map_finish(s, k);
        return true;
    }
    if (has_too_many_columns(s, k)) return false;
    bool columns_acc = has_column_accumulators(k);
    k->dynamic = has_dynamic_columns(s, k);
    if (s->forced.exact) return fit_schedule(s, k);
    k->vec = find_vector(s, k);
    int pack = k->dynamic ? 1 : full_vector(k) / k->vec, most_tiles = 8 * pack;
    if (!share_threads(s, k, pack)) return false;
    bool fits = !k->dynamic && fit_homes(s, k);
    fits = (fits && !wants_cluster(s, k)) || fit_cluster(s, k, pack) || fits;
    /* a columnwise kernel is the last resort, so it takes fewer elements a thread until
     * it fits */
    while (!fits && k->columnwise && columns_acc && pack * k->vec > 1) {
        if (pack > 1)
            pack /= 2;
        else
            k->vec /= 2;
        if (!share_threads(s, k, pack)) return false;
        fits = fit_homes(s, k);
    }
    if (!fits && columns_acc && !k->columnwise) {
        s->problem = missing_room(s, k);
        return false;
    }
    bool any_resident = false;
    for (int i = 0; i < k->load_count; i++)
        any_resident |= k->loads[i].resident || k->loads[i].staged;
    bool looped = !fits || (!any_resident && k->tiles > most_tiles) || reads_again(s, k);
    k->streamed = looped && !columns_acc && k->column_ctas == 1;
    if (k->streamed || k->dynamic) (void)keep_nothing(s, k);
    if (!columns_acc) share_streams(s, k, !looped);
    if (k->copy_warp) k->family = FAMILY_WARP_SPECIALIZED;
    k->paced = k->copy_warp && wants_pace(s, k);
    set_slice(s, k);
    set_ragged(s, k);
    set_open_tile(s, k);
    k->even_moments = has_even_moments(s, k);
    set_parts(k);
    k->one_row = may_have_one_row(k) && wants_one_row(s, k);
    set_late(k);
    set_wanted_ctas(s, k);
    set_limit(s, k);
    set_few(s, k);
    k->live_ctas = find_live_ctas(s, k);
    return true;
}
