/* schedule_map.c: maps one kernel onto threads: vector width, tiles, threads a row,
 * teams, and what stays in registers. Column sizes are known here, row sizes are not and
 * decide nothing, so a row's reduction tree is the same in every batch. */
#include "scheduling.h"

#include <string.h>

enum {
    WARP = 32,
    TEAM_THREADS = 256, /* of a CTA that has several rows at a time ... */
    SUM_THREADS = 512, /* ... and with accumulators: the fewer CTAs, the fewer partials */
    MAX_VECTOR = 8,
    /* ptxas needs about this many registers a thread beside those counted: addresses,
     * loop counters, scalars, temporaries. Fitted on layer- and RMS-norm backward. */
    BASE_REGISTERS = 50,
    MAX_REGISTERS = 255
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a ? (a - 1) / b + 1 : 0;
}

static int64_t column_count(const Scheduler *s, const Kernel *k)
{
    return k->columns ? axes_size(&s->a->sizes, k->columns) : 1;
}

static int power_of_two_from(int64_t n)
{
    int p = 1;
    while (p < n) p *= 2;
    return p;
}

/* The fewest bytes an element has among the tensors that are read or written as vectors.
 */
static int narrowest(const Kernel *k)
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

static int find_vector(const Scheduler *s, const Kernel *k)
{
    int vec = k->dynamic ? 1 : min_int(16 / narrowest(k), MAX_VECTOR);
    while (vec > 1 && vec / 2 >= column_count(s, k)) vec /= 2;
    return vec;
}

static bool has_column_accumulators(const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].per_column) return true;
    return false;
}

/* Registers that the accumulators of one column take. */
static double accumulator_registers(const Scheduler *s, const Kernel *k)
{
    double registers = 0;
    for (int i = 0; i < k->accumulator_count; i++) {
        Type type = node(s->g, k->accumulators[i].node)->type;
        if (k->accumulators[i].per_column) registers += type == TYPE_F32 ? 1 : 2;
    }
    return registers;
}

static int register_cap(const Scheduler *s, int threads)
{
    /* a warp's registers are in one of an SM's four parts */
    int warps_a_part = (threads / WARP + 3) / 4;
    return min_int(MAX_REGISTERS,
                   s->target->registers_per_sm / 4 / (WARP * warps_a_part) / 8 * 8);
}

/* A row of up to 64 vectors gets part of a warp or a warp, a longer one whole warps,
 * about two tiles a thread, up to `most` threads. Short rows share a CTA as teams. */
static void share_row(Kernel *k, int64_t vectors, int most, int cta)
{
    k->teams = 1;
    if (vectors <= 2 * WARP) {
        k->threads_per_row =
            vectors < 1 ? 1 : power_of_two_from(min_int((int)vectors, WARP));
        k->teams = cta / k->threads_per_row;
    } else {
        int64_t warps = ceil_div(vectors, 2 * WARP);
        k->threads_per_row = warps * WARP < most ? (int)warps * WARP : most;
        /* a longer row's team needs a barrier of its own, and there are fifteen; from 256
           threads a row on, CTAs by themselves measured better than teams */
        if (cta > TEAM_THREADS && k->threads_per_row < TEAM_THREADS)
            k->teams = min_int(cta / k->threads_per_row, 15);
    }
    int64_t tiles = ceil_div(vectors, k->threads_per_row);
    k->tiles = tiles > 1 << 20 ? 1 << 20 : tiles < 1 ? 1 : (int)tiles;
}

/* Where a row's vectors live between their load and their last use, and the column
 * vectors that all rows share. From left to right it takes fewer registers. */
typedef enum { IN_REGISTERS, IN_STAGES, IN_MEMORY } Home;

static void set_homes(Kernel *k, bool ring, Home rows, Home columns)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool vector = load->access == ACCESS_VECTOR;
        bool stageable = ring && vector && k->vec * dtype_info[load->dtype].bytes >= 4;
        bool shared = vector && !(load->axes & (k->rows | k->kept));
        Home home = shared ? columns : rows;
        load->hoisted = shared && home != IN_MEMORY;
        load->resident = vector && home == IN_REGISTERS;
        load->staged = stageable && (shared ? home == IN_STAGES : home != IN_MEMORY);
    }
}

/* Registers a thread is expected to need. */
static int estimate(const Scheduler *s, const Kernel *k)
{
    double per_column = accumulator_registers(s, k);
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].resident) per_column += dtype_info[k->loads[i].dtype].bytes / 4.0;
    return BASE_REGISTERS + (int)(per_column * k->vec * k->tiles);
}

/* What a load takes of a stage: its vectors; of rows that are not whole vectors, strips of
 * neighbouring lanes' vectors with a block more each, or (copy warp) the CTA's columns with
 * 16 elements more. */
static int64_t buffer_bytes(const Scheduler *s, const Kernel *k, const Load *load)
{
    enum { BLOCK = 16 };
    int64_t element = dtype_info[load->dtype].bytes, vector = element * k->vec;
    if (column_count(s, k) % k->vec == 0) return vector * k->tiles * kernel_threads(k);
    if (k->copy_warp && !load->hoisted)
        return vector * k->tiles * kernel_threads(k) + 16 * element;
    int lanes = kernel_lanes(k);
    int64_t strip = lanes * vector + (vector < BLOCK ? vector : BLOCK);
    strip = ceil_div(strip, BLOCK) * BLOCK;
    return strip * k->tiles * (kernel_threads(k) / lanes);
}

/* Shared memory of a CTA for one stage, or (hoisted) for what is staged once. */
static int64_t staged_bytes(const Scheduler *s, const Kernel *k, bool hoisted)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].staged && k->loads[i].hoisted == hoisted)
            bytes += buffer_bytes(s, k, &k->loads[i]);
    return bytes;
}

/* Shared memory in which teams meet at the end: a tile of accumulators, for each type
 * they have. */
static int64_t team_bytes(const Scheduler *s, const Kernel *k)
{
    int64_t bytes[] = {[TYPE_F32] = 0, [TYPE_F64] = 0, [TYPE_I64] = 0, [TYPE_BOOL] = 0};
    for (int i = 0; i < k->accumulator_count && k->teams > 1; i++) {
        Type type = node(s->g, k->accumulators[i].node)->type;
        bytes[type] = (int64_t)kernel_threads(k) * k->vec * (type == TYPE_F32 ? 4 : 8);
    }
    return bytes[TYPE_F32] + bytes[TYPE_F64] + bytes[TYPE_I64];
}

/* Bytes of a row's column that a kernel reads as vectors. */
static int row_bytes(const Kernel *k)
{
    int bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && k->loads[i].axes & (k->rows | k->kept))
            bytes += dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

/* As many stages as keep IN_FLIGHT bytes an SM under way while one row is computed. More
 * measured flat; fewer than two is no ring. */
static bool fit_ring(const Scheduler *s, Kernel *k)
{
    enum { IN_FLIGHT = 96 << 10, MAX_STAGES = 8, STATIC = 2 << 10 };
    int64_t stage = staged_bytes(s, k, false), once = staged_bytes(s, k, true);
    int64_t other = STATIC + once + team_bytes(s, k);
    if (!stage) return false;
    for (; k->ctas_per_sm > 0; k->ctas_per_sm--) {
        int64_t room = s->target->smem_per_sm / k->ctas_per_sm - 1024;
        room = (room < s->target->smem_per_cta ? room : s->target->smem_per_cta) - other;
        int64_t wanted = ceil_div(IN_FLIGHT, stage * k->ctas_per_sm) + 1 + k->lag;
        wanted = wanted > MAX_STAGES   ? MAX_STAGES
                 : wanted < 3 + k->lag ? 3 + k->lag
                                       : wanted;
        wanted = s->forced.stages ? s->forced.stages : wanted;
        k->stages = (int)(wanted * stage <= room ? wanted : room / stage);
        k->smem_bytes = k->stages * stage + once;
        /* of a single input two CTAs with short rings beat one with a long one */
        bool single = k->copy_warp && row_bytes(k) <= 2;
        if (k->stages >= 3 + k->lag ||
            (k->stages == 2 + k->lag && (k->ctas_per_sm == 1 || single)))
            return true;
    }
    return false;
}

/* CTAs of a persistent grid: enough to hide latency; with accumulators few enough
 * partials. */
static void set_ctas_per_sm(const Scheduler *s, Kernel *k)
{
    int most = k->accumulator_count ? 1024 : s->target->threads_per_sm;
    int cta = kernel_threads(k) + (k->copy_warp ? WARP : 0);
    int threads = most / cta,
        registers = s->target->registers_per_sm / (cta * k->registers);
    k->ctas_per_sm = threads < registers ? threads : registers;
    /* with a copy warp the ring is what hides latency, so one CTA gets all of it */
    if (k->ctas_per_sm < 1 || (k->copy_warp && k->accumulator_count)) k->ctas_per_sm = 1;
}

static bool try_homes(const Scheduler *s, Kernel *k, bool ring, Home rows, Home columns)
{
    set_homes(k, ring, rows, columns);
    k->stages = 0;
    k->smem_bytes = 0;
    k->registers = estimate(s, k);
    if (k->registers > register_cap(s, kernel_threads(k) + (k->copy_warp ? WARP : 0)))
        return false;
    set_ctas_per_sm(s, k);
    return !ring || fit_ring(s, k);
}

static int column_vectors(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++)
        count += k->loads[i].access == ACCESS_VECTOR &&
                 !(k->loads[i].axes & (k->rows | k->kept));
    return count;
}

static bool is_forced(const Scheduler *s, Family family)
{
    return s->forced.any && s->forced.family == family;
}

/* Whether rows pass through a ring: where a persistent grid walks them. That is so with
 * accumulators, and for rows so long that few CTAs fit an SM: a row with two barriers and
 * column vectors, which each CTA would read from L2 again, gains from 8192 columns on,
 * one with two barriers alone from 12288, one with a single barrier from 16384 (measured
 * on an H100). */
static bool wants_ring(const Scheduler *s, const Kernel *k)
{
    bool two = k->phases > 2;
    int64_t from = two && column_vectors(k) > 1 ? 8192 : two ? 12289 : 16385;
    bool wanted = k->accumulator_count > 0 || is_forced(s, FAMILY_WARP_SPECIALIZED) ||
                  column_count(s, k) >= from || k->cluster > 1;
    return wanted && (k->accumulator_count > 0 || k->inner_count > 0) && k->rows &&
           !k->kept && k->column_ctas == 1;
}

static bool try_ring(const Scheduler *s, Kernel *k, bool copy_warp, int lag)
{
    bool narrow = k->vec * k->tiles <= 16;
    k->copy_warp = copy_warp;
    k->lag = lag;
    if ((narrow && try_homes(s, k, true, IN_STAGES, IN_REGISTERS)) ||
        try_homes(s, k, true, IN_STAGES, IN_STAGES) ||
        try_homes(s, k, true, IN_STAGES, IN_MEMORY))
        return true;
    k->copy_warp = false;
    k->lag = 0;
    return false;
}

/* A copy warp runs ahead of a cluster's waits for each other; a CTA by itself measured
 * better when its threads copy for themselves. It needs bulk copies. */
static bool may_copy(const Scheduler *s, const Kernel *k)
{
    bool wanted = s->forced.any ? is_forced(s, FAMILY_WARP_SPECIALIZED) : k->cluster > 1;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR &&
            k->vec * dtype_info[k->loads[i].dtype].bytes < 4)
            return false;
    return s->target->bulk_copy && k->teams == 1 && k->threads_per_row > WARP &&
           kernel_threads(k) + WARP <= 1024 && wanted;
}

/* One CTA an SM has nothing else to do at a reduction's barrier, so it lags the last
 * phase. */
static bool fit_ring_kernel(const Scheduler *s, Kernel *k)
{
    bool sums = k->accumulator_count > 0;
    bool one = k->teams == 1 && kernel_threads(k) > 1024 / 4;
    int lag = one && k->phases == 2 && k->inner_count;
    /* without lag it paid in clusters of 4 and 8 alone (measured) */
    bool wanted = lag || k->cluster == 4 || k->cluster == 8 ||
                  is_forced(s, FAMILY_WARP_SPECIALIZED);
    return (wanted && may_copy(s, k) && try_ring(s, k, true, lag)) ||
           (lag && try_ring(s, k, false, lag)) ||
           (sums && try_homes(s, k, true, IN_REGISTERS, IN_REGISTERS)) ||
           (!sums && try_homes(s, k, true, IN_REGISTERS, IN_STAGES)) ||
           try_ring(s, k, false, 0);
}

/* Keeps as much in registers as fits. */
static bool fit_homes(const Scheduler *s, Kernel *k)
{
    bool sums = k->accumulator_count > 0;
    k->lag = 0;
    k->copy_warp = false;
    return (wants_ring(s, k) && fit_ring_kernel(s, k)) ||
           (sums && try_homes(s, k, false, IN_REGISTERS, IN_REGISTERS)) ||
           try_homes(s, k, false, IN_REGISTERS, IN_MEMORY) ||
           try_homes(s, k, false, IN_MEMORY, IN_MEMORY);
}

/* A kernel with no inner reduction may cut a row into several CTAs. */
static void cut_columns(Kernel *k, int64_t vectors)
{
    if (vectors <= TEAM_THREADS) return;
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column) return;
    k->threads_per_row = TEAM_THREADS;
    k->teams = 1;
    k->tiles = 1;
    int64_t ctas = ceil_div(vectors, TEAM_THREADS);
    while (ctas > 65535) {
        k->tiles *= 2;
        ctas = ceil_div(vectors, (int64_t)TEAM_THREADS * k->tiles);
    }
    k->column_ctas = (int)ctas;
}

static bool apply_forced(Scheduler *s, Kernel *k, int64_t vectors)
{
    int threads = s->forced.threads;
    if (threads && k->threads_per_row >= WARP && k->column_ctas == 1) {
        k->threads_per_row = threads;
        k->teams = 1;
        k->tiles = (int)ceil_div(vectors, threads);
    }
    bool walks = (k->rows | k->kept) && k->cluster == 1 && k->column_ctas == 1;
    if (s->forced.rows && walks) k->teams = s->forced.rows;
    bool barriers = k->threads_per_row <= WARP || k->teams <= 15;
    bool whole = k->threads_per_row < WARP ? kernel_threads(k) % WARP == 0
                                           : k->threads_per_row % WARP == 0;
    if (!whole || kernel_threads(k) > 1024 || !barriers) {
        s->problem =
            "rows x threads must be a multiple of 32 up to 1024, with at most 15 rows of more "
            "than a warp";
        return false;
    }
    return true;
}

static void set_ragged(const Scheduler *s, Kernel *k)
{
    int64_t covered =
        (int64_t)k->threads_per_row * k->vec * k->tiles * k->column_ctas * k->cluster;
    k->ragged = k->streamed || column_count(s, k) != covered;
}

/* A kernel whose columns are no fixed number, or that has a single row, gets whole warps.
 */
static void widen(Kernel *k)
{
    if (k->rows | k->kept) return;
    if (k->threads_per_row < WARP) k->threads_per_row = WARP;
    k->teams = 1;
}

/* Two CTAs of 1024 threads that copy for themselves: measured best for rows of several
 * inputs that two CTAs can share. */
static bool is_pair(const Scheduler *s, const Kernel *k)
{
    return !has_column_accumulators(k) && row_bytes(k) > 2 &&
           column_count(s, k) <= 32768;
}

/* How many columns a CTA of a cluster may have: a stage of 32 KB. With accumulators
 * registers are the limit. */
static int64_t slice_columns(const Scheduler *s, const Kernel *k)
{
    if (has_column_accumulators(k)) return 8192;
    return is_pair(s, k) || row_bytes(k) <= 2 ? 16384 : 8192;
}

/* Warps that do not fill an SM's four parts alike cost a kernel with one accumulator a column
 * 10 % (one vector a thread instead); with two, fewer registers cost more (measured). */
static void even_out(const Scheduler *s, Kernel *k, int64_t vectors)
{
    enum { EVEN = 128, MOST = 1024 };
    bool uneven = k->threads_per_row > TEAM_THREADS && k->threads_per_row % EVEN;
    if (k->cluster > 1 || !uneven || vectors % EVEN || vectors > MOST) return;
    double registers = accumulator_registers(s, k);
    if (registers <= 0 || registers > 1) return;
    k->threads_per_row = (int)vectors;
    k->tiles = 1;
}

static bool share_threads(Scheduler *s, Kernel *k)
{
    int64_t vectors = k->dynamic ? 4096 : ceil_div(column_count(s, k), k->vec);
    vectors = ceil_div(vectors, k->cluster);
    k->column_ctas = 1;
    bool sums = has_column_accumulators(k);
    share_row(k, vectors, sums || (k->cluster > 1 && !is_pair(s, k)) ? SUM_THREADS : 1024,
              sums && k->cluster == 1 ? SUM_THREADS : TEAM_THREADS);
    even_out(s, k, vectors);
    if (!k->inner_count && !k->dynamic) cut_columns(k, vectors);
    widen(k);
    return apply_forced(s, k, vectors);
}

/* Whether a row is long enough for the CTAs of a cluster to share it. */
static bool may_cluster(const Scheduler *s, const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column) return false;
    return s->target->max_cluster > 1 && k->inner_count > 0 && k->rows && !k->kept &&
           !k->dynamic && !(k->columns & (k->columns - 1));
}

static bool wants_cluster(const Scheduler *s, const Kernel *k)
{
    enum { LONG_WITH_SUMS = 12288, LONG = 24576 };
    if (s->forced.cluster) return s->forced.cluster > 1 && may_cluster(s, k);
    bool sums = has_column_accumulators(k);
    bool no_ring = wants_ring(s, k) && !k->stages;
    return may_cluster(s, k) &&
           (no_ring || column_count(s, k) > (sums ? LONG_WITH_SUMS : LONG));
}

/* The smallest cluster whose CTAs have few enough columns each; else the largest that
 * fits. */
static bool fit_cluster(Scheduler *s, Kernel *k)
{
    int64_t most = slice_columns(s, k);
    Kernel single = *k;
    Load *loads = NEW_ARRAY(s->arena, Load, k->load_count + 1);
    memcpy(loads, k->loads, sizeof *loads * (size_t)k->load_count);
    if (wants_cluster(s, k))
        for (k->cluster = 2; k->cluster <= s->target->max_cluster; k->cluster *= 2) {
            bool enough = column_count(s, k) <= most * k->cluster ||
                          k->cluster == s->target->max_cluster;
            if (s->forced.cluster ? k->cluster != s->forced.cluster : !enough) continue;
            if (share_threads(s, k) && k->threads_per_row > WARP && k->teams == 1 &&
                column_count(s, k) > (int64_t)kernel_threads(k) * k->vec * k->tiles &&
                fit_homes(s, k) && k->stages)
                return true;
        }
    *k = single;
    memcpy(k->loads, loads, sizeof *loads * (size_t)k->load_count);
    return false;
}

/* How many CTAs an SM should hold, where ptxas is to be told. With a ring it is what was
 * planned: left alone, ptxas may spill for one more or take the registers of one. A row
 * kernel hides latency by threads, and where two column vectors are read, or one whose rows
 * are not whole vectors (they take twice the registers), ptxas leaves too few. (Others it must not be told: it
 * would take all that it may.) */
static void set_wanted_ctas(const Scheduler *s, Kernel *k)
{
    enum { WHOLE = 1280, RAGGED = 896, LIGHT = 60 };
    int threads = kernel_threads(k);
    k->wanted_ctas = k->stages ? k->ctas_per_sm : 0;
    if (k->stages || !k->inner_count || k->streamed || k->dynamic) return;
    bool whole = column_count(s, k) % k->vec == 0;
    bool hungry = column_vectors(k) > whole && k->registers <= LIGHT;
    int wanted = whole ? WHOLE : RAGGED;
    if (hungry && k->vec * k->tiles <= 16 && threads > WARP && threads <= wanted)
        k->wanted_ctas = wanted / threads;
}

bool map_kernel(Scheduler *s, Kernel *k)
{
    k->column_ctas = k->cluster = 1;
    if (k->family == FAMILY_FINISH) {
        k->threads_per_row = TEAM_THREADS;
        k->vec = k->tiles = k->teams = 1;
        k->registers = BASE_REGISTERS;
        return true;
    }
    bool columns_acc = has_column_accumulators(k);
    /* columns are counted in int unless there are too many or the count comes at launch
     */
    k->dynamic = !axes_within(k->columns, s->a->columns) || column_count(s, k) > 1 << 30;
    k->vec = find_vector(s, k);
    if (!share_threads(s, k)) return false;
    bool fits = !k->dynamic && fit_homes(s, k);
    fits = (fits && !wants_cluster(s, k)) || fit_cluster(s, k) || fits;
    /* a columnwise kernel is the last resort, so it takes narrower vectors until it fits
     */
    while (!fits && k->columnwise && columns_acc && k->vec > 1) {
        k->vec /= 2;
        if (!share_threads(s, k)) return false;
        fits = fit_homes(s, k);
    }
    if (!fits && columns_acc && !k->columnwise) {
        s->problem = arena_format(
            s->arena,
            "%d column accumulators need about %d registers a thread, %d are there",
            k->accumulator_count, estimate(s, k), register_cap(s, kernel_threads(k)));
        return false;
    }
    bool any_resident = false;
    for (int i = 0; i < k->load_count; i++)
        any_resident |= k->loads[i].resident || k->loads[i].staged;
    k->streamed = !columns_acc && (!fits || (!any_resident && k->tiles > 8));
    if (k->copy_warp) k->family = FAMILY_WARP_SPECIALIZED;
    if (k->streamed || k->dynamic) (void)try_homes(s, k, false, IN_MEMORY, IN_MEMORY);
    set_ragged(s, k);
    set_wanted_ctas(s, k);
    return true;
}
