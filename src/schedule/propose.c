/* schedule/propose.c: the schedules of one kernel that are worth trying, of two equally fast ones
 * the simpler first. Each is given as the kernel that it makes; impossible ones are left out. No row
 * length is written here: shapes follow from how many vectors a row has, and from what an SM has
 * room for.
 *
 *   how many CTAs share a row      one, or a cluster; a group where nothing else holds the row
 *   how many elements a thread has as many as leave its row in registers, so few that threads do
 *   where a row is between phases  registers, a ring, the registers that it leaves for the next row,
 *                                  a buffer for one bulk copy, or memory
 *
 * The keys that --schedule gives replace the values tried here. */
#include "schedule/propose.h"

#include <string.h>

enum { MOST_ELEMENTS = 64, SHORT_ELEMENTS = 48 };

/* ---- one schedule ---- */

/* Whether its grid may be of fewer CTAs. */
static bool takes_most_ctas(const Kernel *k)
{
    return (is_persistent(k) && k->rows) || k->kept || has_bulk_rows(k);
}

/* Makes a kernel of the schedule; false: it cannot be, or is not what was asked for. */
bool make_now(Proposals *p, Kernel *k)
{
    *k = *p->cut;
    k->loads = p->loads;
    if (k->load_count) memcpy(k->loads, p->cut->loads, sizeof *k->loads * (size_t)k->load_count);
    p->s->forced = p->now;
    p->s->derive = true;
    bool fits = fit_schedule(p->s, k);
    p->s->derive = false;
    for (int key = 0; key < KEYS && fits; key++)
        fits = !p->asked.at[key] || p->s->forced.at[key] == p->asked.at[key];
    return fits && (!p->asked.ctas || takes_most_ctas(k));
}

void try_now(Proposals *p)
{
    Kernel k;
    if (!make_now(p, &k)) return;
    p->made++;
    p->consider(p->data, &k, &p->s->forced);
}

/* Whether a value may be tried: another may be asked for. */
static bool admits(const Proposals *p, Key key, int value)
{
    return !p->asked.at[key] || p->asked.at[key] == value;
}

bool admits_family(const Proposals *p, Family family)
{
    return !p->asked.any || p->asked.family == family;
}

int64_t part_bytes(const Proposals *p, int bytes)
{
    return bytes * p->vectors * p->vec;
}

int tiles_now(const Proposals *p)
{
    return (int)ceil_div(p->vectors, p->now.threads);
}

int cta_threads(const Proposals *p)
{
    return p->now.threads * p->now.rows * p->now.groups;
}

/* ---- how many CTAs an SM holds ---- */

/* Tries as many CTAs an SM as it has threads for, half as many, and one. What has no ring takes
 * what registers it likes. */
static void try_live(Proposals *p, int threads_of_sm, bool told)
{
    int most = threads_of_sm / cta_threads(p);
    if (most > p->s->target->most_ctas_per_sm) most = p->s->target->most_ctas_per_sm;
    if (most < 1) most = 1;
    const int tried[] = {p->asked.per_sm ? p->asked.per_sm : most, (most + 1) / 2, 1};
    for (int i = 0; i < 3; i++) {
        if (i && (tried[i] == tried[i - 1] || p->asked.per_sm)) break;
        p->now.live = tried[i];
        p->now.per_sm = told || p->asked.per_sm ? tried[i] : 0;
        try_now(p);
    }
    p->now.live = p->now.per_sm = 0;
}

/* Of rows that have CTAs of their own: ptxas takes what registers it likes, or is told for how many
 * CTAs an SM is to have room. */
static void try_told(Proposals *p)
{
    if (p->asked.per_sm) {
        p->now.per_sm = p->asked.per_sm;
        try_now(p);
        p->now.per_sm = 0;
        return;
    }
    p->now.per_sm = 0;
    try_now(p);
    int most = p->s->target->threads_per_sm / cta_threads(p);
    if (most > p->s->target->most_ctas_per_sm) most = p->s->target->most_ctas_per_sm;
    for (p->now.per_sm = most; p->now.per_sm > 1; p->now.per_sm = p->now.per_sm * 3 / 4) try_now(p);
    p->now.per_sm = 0;
}

/* ---- where a row is between its phases ---- */

/* Where column vectors may be, if there are any: the nearest that has room is not always the
 * best. */
void try_columns(Proposals *p, const int *homes, void (*next)(Proposals *))
{
    static const int none[] = {1 + IN_REGISTERS, 0};
    if (!column_vectors(p->cut)) homes = none;
    for (; *homes; homes++) {
        p->now.columns = *homes;
        next(p);
    }
    p->now.columns = 1 + IN_REGISTERS;
}

static void try_registers(Proposals *p)
{
    const Kernel *k = p->cut;
    if (k->accumulator_count)
        try_live(p, k->kept || !k->inner_count ? p->s->target->threads_per_sm : MOST_THREADS,
                 false);
    else
        try_told(p);
}

/* A row in registers, of a CTA by itself or of a cluster that has no other. */
static void propose_registers(Proposals *p)
{
    static const int homes[] = {1 + IN_REGISTERS, 1 + IN_MEMORY, 0};
    if (!admits_family(p, p->cut->family) || !admits(p, KEY_stages, 1) || p->asked.reuse) return;
    p->now.family = p->cut->family;
    p->now.stages = 1;
    p->now.row = 1 + IN_REGISTERS;
    p->now.single = p->now.cluster > 1;
    for (p->now.blocks = 0; p->now.blocks <= may_pass_by_blocks(p->cut, p->vec); p->now.blocks++)
        try_columns(p, homes, try_registers);
    p->now.blocks = p->now.single = 0;
}

static void try_refill(Proposals *p)
{
    try_live(p, p->s->target->threads_per_sm, true);
}

/* A cluster's row in registers, which the next row takes tile by tile. */
static void propose_refill(Proposals *p)
{
    static const int homes[] = {1 + IN_STAGES, 0};
    if (p->now.cluster == 1 || !admits_family(p, FAMILY_ROW) || !admits(p, KEY_stages, 1) ||
        p->asked.reuse || p->cut->accumulator_count)
        return;
    p->now.family = FAMILY_ROW;
    p->now.stages = p->now.refill = 1;
    p->now.row = 1 + IN_REGISTERS;
    try_columns(p, homes, try_refill);
    p->now.refill = 0;
}

/* A row in shared memory, where one bulk copy brings it. */
static void propose_bulk(Proposals *p)
{
    if (!admits_family(p, FAMILY_ROW) || p->asked.stages || p->asked.reuse || p->now.rows > 1)
        return;
    p->now.family = FAMILY_ROW;
    p->now.bulk = 1;
    p->now.row = 1 + IN_REGISTERS;
    try_told(p);
    p->now.bulk = 0;
}

/* A row that each phase reads again. */
static void propose_streams(Proposals *p)
{
    const Kernel *k = p->cut;
    if (!admits_family(p, k->family) || has_column_accumulators(k) || p->asked.stages > 1 ||
        p->asked.reuse)
        return;
    p->now.family = k->family;
    p->now.reads = 2;
    const bool group = p->now.cluster > p->s->target->max_cluster;
    if (k->accumulator_count && !k->kept && !group) { /* its CTAs walk rows */
        try_live(p, p->s->target->threads_per_sm, false);
        p->now.reads = 1;
        return;
    }
    for (int live = group ? (k->rows ? 2 : 1) : 0; live >= group; live--) {
        p->now.live = live;
        p->now.per_sm = live ? live : p->told;
        try_now(p);
    }
    p->now.reads = 1;
    p->now.live = p->now.per_sm = 0;
}

/* Everything that a row of this shape can be. */
static void propose_homes(Proposals *p)
{
    const Kernel *k = p->cut;
    const bool summed = k->accumulator_count && !k->inner_count && p->now.threads > SUM_THREADS;
    bool resident = (int64_t)tiles_now(p) * p->vec <= MOST_ELEMENTS && !k->dynamic && !summed;
    bool walks = gains_by_walking(k);
    bool group = p->now.cluster > p->s->target->max_cluster;
    if (resident && !group && admits(p, KEY_reads, 1) && !p->asked.bulk) propose_registers(p);
    if (resident && walks && admits(p, KEY_reads, 1) && !p->asked.bulk) {
        propose_rings(p);
        if (!group) propose_refill(p);
    }
    if (walks && k->inner_count && !group && admits(p, KEY_reads, 1) && !p->asked.limit)
        propose_bulk(p);
    if (admits(p, KEY_reads, 2) && !p->asked.bulk && (group || p->now.cluster == 1) &&
        (k->inner_count || !resident))
        propose_streams(p);
}

/* ---- how many threads share a row ---- */

/* Rows that a warp or a part of one has: CTAs of a few sizes. Where a mask
 * leaves a known part of a row, the other elements take registers, but no instructions. */
static void propose_short(Proposals *p)
{
    enum { LEAST_CTA = 128, MOST_CTA = 512 };
    const Window *window = p->cut->window;
    const int most = window && window->told ? MOST_ELEMENTS : SHORT_ELEMENTS;
    for (int threads = WARP; threads >= 1; threads /= 2) {
        int64_t elements = ceil_div(p->vectors, threads) * p->vec;
        bool idle = threads > 1 && 2 * p->vectors <= threads;
        if (idle || !admits(p, KEY_threads, threads)) continue;
        if (elements > most && elements > p->vec && !p->asked.threads) break;
        p->now.threads = threads;
        for (int cta = LEAST_CTA; cta <= MOST_CTA; cta *= 2) {
            p->now.rows = p->asked.rows ? p->asked.rows : cta / threads;
            propose_homes(p);
            if (p->asked.rows) break;
        }
    }
}

/* Rows of whole warps: with sums over rows several of them share a CTA, which has up to
 * SUM_THREADS; more only if so few cannot hold a row. */
static void try_teams(Proposals *p)
{
    const Kernel *k = p->cut;
    const bool long_row = ceil_div(p->vectors, SUM_THREADS) * p->vec > MOST_ELEMENTS;
    int most = k->accumulator_count && p->now.cluster == 1 ? SUM_THREADS / p->now.threads : 1;
    if (most < 1 && long_row) most = 1;
    if (p->asked.rows) {
        p->now.rows = p->asked.rows;
        propose_homes(p);
        return;
    }
    for (p->now.rows = 1; p->now.rows <= most; p->now.rows++) propose_homes(p);
    p->now.rows = 1;
}

static void propose_long(Proposals *p)
{
    const bool group = p->now.cluster > p->s->target->max_cluster;
    const int most = group ? MOST_THREADS - WARP : MOST_THREADS; /* one warp listens */
    int last = 0;
    for (int tiles = 1; tiles * p->vec <= MOST_ELEMENTS || last == 0; tiles++) {
        int64_t threads = ceil_div(ceil_div(p->vectors, tiles), WARP) * WARP;
        if (threads > most) threads = tiles * p->vec >= MOST_ELEMENTS ? most : 0;
        if (p->asked.threads) threads = p->asked.threads;
        if (!threads || threads == last) continue;
        if (threads <= WARP && !p->asked.threads && (p->cut->rows | p->cut->kept)) break;
        p->now.threads = last = (int)threads;
        try_teams(p);
        if (p->asked.threads) break;
    }
}

/* A row that nothing reduces inside may be cut into parts, a CTA each. */
static void propose_parts(Proposals *p)
{
    enum { THREADS = 256 };
    p->now.threads = p->asked.threads ? p->asked.threads : THREADS;
    p->now.rows = 1;
    for (p->now.tiles = 1; p->now.tiles <= 2; p->now.tiles *= 2) {
        if (p->vectors <= (int64_t)p->now.threads * p->now.tiles) break;
        propose_registers(p);
    }
    p->now.tiles = 0;
}

/* Sums over the rows of each group, of some of its columns: where groups are few, SMs have more to
 * share out. */
static void propose_slices(Proposals *p)
{
    enum { MOST_OF_SLICE = 256, LEAST_CTA = 128, MOST_CTA = SUM_THREADS };
    const int64_t vectors = p->vectors;
    p->now.tiles = 1;
    for (int threads = WARP; threads <= MOST_OF_SLICE && threads < vectors; threads *= 2) {
        if (!admits(p, KEY_threads, threads)) continue;
        p->now.threads = threads;
        p->vectors = threads;
        for (int cta = threads > LEAST_CTA ? threads : LEAST_CTA; cta <= MOST_CTA; cta *= 2) {
            p->now.rows = p->asked.rows ? p->asked.rows : cta / threads;
            propose_registers(p);
            propose_rings(p);
            if (p->asked.rows) break;
        }
        p->vectors = vectors;
    }
    p->now.tiles = 0;
}

/* Rows that are read again by fewer threads than hold them: each may have more registers. */
static void propose_fewer(Proposals *p)
{
    enum { MOST = MOST_THREADS / 2, LEAST = MOST_THREADS / 4 };
    if (p->asked.threads || !p->cut->inner_count || !admits(p, KEY_reads, 2)) return;
    for (p->now.threads = MOST; p->now.threads >= LEAST; p->now.threads /= 2)
        if ((int64_t)tiles_now(p) * p->vec > MOST_ELEMENTS || p->now.cluster > 1)
            propose_streams(p);
}

static void propose_shapes(Proposals *p)
{
    const Kernel *k = p->cut;
    if (p->now.cluster == 1 && (k->rows | k->kept)) propose_short(p);
    propose_long(p);
    if (p->now.cluster == 1 || p->now.cluster > p->s->target->max_cluster) propose_fewer(p);
    if (!k->inner_count && !k->dynamic && p->now.cluster == 1) propose_parts(p);
    if (k->columnwise && k->kept && !k->dynamic) propose_slices(p);
}

/* Told how many CTAs an SM has, ptxas takes registers for what threads load at once, where there
 * are as many. */
static int told_of_runs(Proposals *p)
{
    Kernel k;
    const int ctas = p->s->target->threads_per_sm / p->now.threads / 2;
    if (!vectors_of_run(p->cut, p->vec)) return 0;
    p->now.family = p->cut->family;
    p->now.reads = 2;
    const bool fits =
        make_now(p, &k) && least_registers(p->s, &k) <= register_share(p->s, &k, ctas);
    p->now.reads = 1;
    return fits ? ctas : 0;
}

/* Columns whose number a launch knows, or a graph without rows. Where it is known how many rows
 * there are, CTAs of a cluster may share each. */
static void propose_unknown(Proposals *p)
{
    enum { THREADS = 512 };
    p->now.threads = p->asked.threads ? p->asked.threads : THREADS;
    p->now.rows = 1;
    const bool known = p->cut->inner_count && axes_within(p->cut->rows, p->s->a->fixed);
    const int most = known ? p->s->target->max_cluster : 1;
    for (int ctas = 1; ctas <= most; ctas *= 2) {
        if (!admits(p, KEY_cluster, ctas)) continue;
        p->now.cluster = ctas;
        p->told = told_of_runs(p);
        propose_streams(p);
        p->told = 0;
    }
}

/* ---- how many CTAs share a row ---- */

static bool may_split(const Proposals *p)
{
    const Kernel *k = p->cut;
    return k->inner_count && k->rows && !k->kept && !k->dynamic;
}

static void propose_clusters(Proposals *p)
{
    int sms = p->s->target->sms, clusters = p->s->target->max_cluster;
    int most = p->s->target->bulk_copy && sms > clusters ? sms : clusters;
    bool flat = !p->cut->rows && p->cut->inner_count && !p->cut->dynamic;
    for (int ctas = 1; ctas <= most; ctas *= 2) {
        bool group = ctas > clusters;
        if (!admits(p, KEY_cluster, ctas)) continue;
        if (ctas > 1 && !may_split(p) && !(flat && group)) continue;
        if (group && ctas % WARP) continue;
        p->now.cluster = ctas;
        p->vectors = ceil_div(ceil_div(p->columns, p->vec), ctas);
        if (p->vectors < 1) p->vectors = 1; /* no columns */
        if (ctas > 1 && p->vectors <= 2 * WARP) break;
        propose_shapes(p);
    }
}

/* Rows that are neighbours in memory: as many lanes of a warp share one as leave others for
 * lines of memory, and as many warps as leave a thread so many of its elements. */
static void try_beside(Proposals *p)
{
    enum { LEAST_CTA = 128, MOST_CTA = 512, MOST_HELD = 128 };
    const int inputs = row_inputs(p->cut) > 0 ? row_inputs(p->cut) : 1;
    const int tiles = (int)ceil_div(p->columns, p->now.threads);
    const int64_t line = declared_size(p->s, p->cut->beside);
    int least = LEAST_CTA;
    if (tiles * p->now.vec * inputs > MOST_HELD && tiles > 1) return;
    while (line && least > WARP && least / p->now.threads * p->now.vec > line) least /= 2;
    for (int cta = least; cta <= MOST_CTA; cta *= 2) {
        if (!p->asked.rows && (cta < p->now.threads || cta / p->now.threads * p->now.lanes < WARP))
            continue;
        p->now.rows = p->asked.rows ? p->asked.rows : cta / p->now.threads;
        if (p->cut->accumulator_count)
            try_live(p, MOST_THREADS, false);
        else
            try_told(p);
        if (p->asked.rows) break;
    }
}

static void propose_beside(Proposals *p)
{
    const int most = MOST_THREADS / WARP;
    p->now.family = p->cut->family;
    if (!admits_family(p, p->now.family)) return;
    for (int vec = p->vec; vec >= 1; vec /= 2)
        for (int lanes = WARP; lanes >= 1; lanes /= 2)
            for (int warps = 1; warps <= most; warps *= 2) {
                p->now.vec = vec;
                p->now.lanes = lanes;
                p->now.threads = lanes * warps;
                const bool idle = p->now.threads > 1 && p->columns <= p->now.threads / 2;
                if (idle || !admits(p, KEY_vec, vec) || !admits(p, KEY_lanes, lanes) ||
                    !admits(p, KEY_threads, p->now.threads))
                    continue;
                try_beside(p);
            }
}

int propose(Scheduler *s, const Kernel *k, bool tune_only, Consider *consider, void *data)
{
    Proposals p = {.s = s, .cut = k, .asked = s->forced, .consider = consider, .data = data};
    p.tune_only = tune_only;
    p.loads = NEW_ARRAY(s->arena, Load, k->load_count + 1);
    Kernel widest = *k;
    widest.dense = find_dense(s, k);
    p.vec = p.asked.vec ? p.asked.vec : find_vector(s, &widest);
    p.columns = has_element_work(s->g, k) ? column_count(s, k) : 1;
    p.now = (Schedule){.any = true, .family = k->family, .exact = 1};
    p.now.rows = p.now.cluster = p.now.stages = p.now.reads = p.now.groups = 1;
    p.now.ride = k->rides ? 1 : 2;
    p.now.apart = k->adds_apart;
    p.now.parts = k->parts_apart ? 2 : 1;
    p.now.axes = (int)s->a->choice + 1;
    p.now.row = p.now.columns = 1 + IN_REGISTERS;
    p.now.vec = p.asked.vec;
    p.now.ctas = p.asked.ctas;
    p.now.limit = p.asked.limit;
    p.now.registers = p.asked.registers;
    if (k->beside)
        propose_beside(&p);
    else if (k->dynamic)
        propose_unknown(&p);
    else
        propose_clusters(&p);
    s->forced = p.asked;
    return p.made;
}
