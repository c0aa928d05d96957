/* schedule/cost.c: how fast a kernel moves many rows, by a model of bytes and latencies. It ranks the
 * schedules that can be, and says what a plan is bound by. Its constants are the target's
 * (targets/keys.def).
 *
 * An SM's time for a CTA's part of one row is about the longest of five times: its bytes at memory's
 * rate, its bytes at L2's rate, its instructions, the messages of a group, and the latency from
 * requesting the part to the end of its work. All parts on the SM at the same time share that
 * latency. No time hides the others completely, so the model takes their norm of order P. Times are
 * in ns; bytes a ns are GB/s. */
#include "schedule/internal.h"

#include <math.h>

static const double P = 2.36, NOMINAL_BYTES = 400e6, /* of the rows that are taken for many */
    SOME_BYTES = 100e6, FEW_BYTES = 50e6;            /* of the rows of a small tensor */

enum { STEP = 8, REGISTER_BYTES = 4, PARTS_OF_SM = 4 };

static int expected_registers(const Scheduler *s, const Kernel *k)
{
    static const double FILLS = 1.5; /* ptxas takes more where launch bounds tell it what is left */
    const int ctas = k->wanted_ctas > 1 ? k->wanted_ctas : 1;
    const int cap = k->registers ? k->registers : register_cap(s, kernel_threads(k) * ctas);
    const double needed = natural_registers(s, k) * (k->wanted_ctas ? FILLS : 1);
    return needed > cap ? cap : (int)needed;
}

/* CTAs that an SM holds at once. */
static int resident(const Scheduler *s, const Kernel *k)
{
    enum { RESERVED = 1 << 10 };
    if (is_persistent(k) && k->wanted_ctas) return k->ctas_per_sm > 1 ? k->ctas_per_sm : 1;
    int threads = kernel_threads(k) + helper_threads(k), warps = (threads + WARP - 1) / WARP;
    int registers = (int)ceil_div(expected_registers(s, k), STEP) * STEP * WARP;
    int64_t most = s->target->registers_per_sm / PARTS_OF_SM / registers * PARTS_OF_SM / warps;
    int64_t memory =
        s->target->smem_per_sm / (k->smem_bytes + k->idle_bytes + static_bytes(s, k) + RESERVED);
    if (memory < most) most = memory;
    if (s->target->threads_per_sm / threads < most) most = s->target->threads_per_sm / threads;
    if (s->target->most_ctas_per_sm < most) most = s->target->most_ctas_per_sm;
    if (k->beside && is_persistent(k) && k->live_ctas < most) most = k->live_ctas;
    return most > 1 ? (int)most : 1;
}

/* Until all threads of a row know what its phases found: lanes, warps, CTAs. */
static double exchange_time(const Scheduler *s, const Kernel *k)
{
    const Target *t = s->target;
    double own = t->exchange_of_lanes * (1 + t->moments * has_moments(s, k));
    if (k->threads_per_row > WARP)
        own += t->exchange + t->exchange_of_warps * doublings(k->threads_per_row / (double)WARP);
    double others =
        is_grouped(k) ? t->group_exchange : t->cluster_exchange * sqrt(doublings(k->cluster));
    return k->phases > 1 ? (k->phases - 1) * (own + others) : 0;
}

static double norm(double a, double b)
{
    return pow(pow(a, P) + pow(b, P), 1 / P);
}

/* A CTA's part of a row, in columns and in bytes that go to memory and back. */
typedef struct {
    double columns, traffic, read, shared, masked, /* masked: more, if all of a row were read */
        again;        /* shared: of what all rows read; again: by later phases, from L2 or memory */
    double scattered; /* of sectors for elements that have no neighbour in their row */
    double kept;      /* of column vectors that each row reads from shared memory */
} Part;

/* Sectors of what is read or stored element by element, whose neighbours are other rows'. */
static double scattered_bytes(const Kernel *k, Access access, AxisSet axes, DType dtype,
                              double bytes)
{
    enum { SECTOR = 32 };
    const bool lone = access == ACCESS_ELEMENT && axes & k->rows && axes & column_axes(k);
    return lone && (axes & k->rows) > (axes & k->columns) ? bytes * SECTOR / dtype_info[dtype].bytes
                                                          : 0;
}

/* Of what the rows of a group have in common, and each reads; or neighbouring rows, at once. */
static bool is_of_group(const Kernel *k, const Load *load)
{
    if (k->beside && !(load->axes & k->beside)) return true;
    return !k->inner_count && !k->accumulator_count && (load->axes & k->rows) != k->rows;
}

static Part measure_part(const Scheduler *s, const Kernel *k)
{
    const AxisSet rows = k->rows | k->beside;
    Part part = {.columns = (double)column_count(s, k) / k->cluster};
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        double bytes = (double)axes_size(&s->a->sizes, load->axes & column_axes(k)) *
                       dtype_info[load->dtype].bytes / k->cluster;
        if (is_masked(k, load)) part.masked += bytes * (1 - k->window->share);
        if (is_masked(k, load)) bytes *= k->window->share;
        if (!(load->axes & rows) || is_of_group(k, load)) {
            part.shared += bytes;
            if (load->place == COLUMNS_IN_SHARED) part.kept += bytes;
            continue;
        }
        part.scattered += scattered_bytes(k, load->access, load->axes, load->dtype, bytes);
        part.read += bytes;
        if (load->access == ACCESS_VECTOR && !is_resident(load) && !is_staged(load))
            part.again += bytes * (__builtin_popcountll(load->phases) - 1);
    }
    part.traffic = part.read;
    for (int i = 0; i < k->store_count; i++) {
        const Store *store = &k->stores[i];
        if (!(store->axes & rows)) continue;
        const double bytes = (double)axes_size(&s->a->sizes, store->axes & column_axes(k)) *
                             dtype_info[store->dtype].bytes / k->cluster;
        part.traffic += bytes;
        part.scattered += scattered_bytes(k, store->access, store->axes, store->dtype, bytes);
    }
    return part;
}

/* Whether L2 still has what of all rows under way a later phase reads again. */
static bool is_still_cached(const Scheduler *s, const Kernel *k, const Part *part, int ctas)
{
    return part->read * rows_at_once(k) * ctas * s->target->sms <= s->target->cached_bytes;
}

/* Column vectors that a later phase reads from memory, when it comes to them or a tile ahead. */
static double late_time(const Scheduler *s, const Kernel *k)
{
    static const double AHEAD = 0.5;
    double share = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (!is_column_vector(k, load) || is_hoisted(load)) continue;
        double one = load->place == LOADED_AHEAD ? AHEAD : 1;
        share = share > one ? share : one;
    }
    return share * s->target->late * k->tiles;
}

/* A row's wait for memory and for its threads, one after the other, unless a ring has asked for it
 * before. */
static double waiting_time(const Scheduler *s, const Kernel *k, double memory)
{
    const Target *t = s->target;
    double exchange = exchange_time(s, k), own = t->issue * thread_instructions(s, k),
           late = late_time(s, k);
    if (k->stages) {
        double meets = k->lag ? exchange * t->lagged : exchange;
        const double stages = (double)k->stages / k->groups; /* a group's share of the ring */
        return norm(t->latency / (stages + 0.5 * reuses_stages(k)), meets + own + late);
    }
    if (is_streamed(k)) return k->phases * t->latency + memory + exchange + own + late;
    return t->latency + memory + exchange + own + late;
}

static bool keeps_columns(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_hoisted(&k->loads[i])) return is_persistent(k);
    return false;
}

/* Why a kernel's speed is not known; NULL: it is. */
static const char *unknown_kernel(const Scheduler *s, const Kernel *k)
{
    enum { LEAST_COLUMNS = 64, MOST_COLUMNS = 1 << 20 };
    for (int i = 1; i < s->g->nodes.count; i++)
        if (k->computed[i] && node(s->g, (Node){(uint32_t)i})->type == TYPE_F64)
            return "it computes in f64";
    if (column_count(s, k) > MOST_COLUMNS) return "its rows are longer than 1048576 columns";
    if (k->kept) return "it has sums that keep row axes";
    if (!k->inner_count || !row_inputs(k))
        return "it has no reduction inside rows, or reads no rows";
    if (!k->rows || k->dynamic || has_column_parts(k))
        return "it has only one row, or its row length is not fixed";
    if (k->beside) return "its rows are neighbours in memory";
    if (has_several_columns(k)) return "its columns are along several axes";
    return column_count(s, k) < LEAST_COLUMNS ? "its rows are shorter than 64 columns" : NULL;
}

/* The only kernel that walks rows; NULL: there are several, or none. */
static const Kernel *only_walker(const Plan *plan)
{
    const Kernel *found = NULL;
    for (int i = 0; i < plan->kernel_count; i++) {
        if (!walks_rows(&plan->kernels[i])) continue;
        if (found) return NULL;
        found = &plan->kernels[i];
    }
    return found;
}

/* All rows, where they are along axes whose sizes are compiled in; else those of a small tensor. */
static double few_rows(const Scheduler *s, const Kernel *k, const Part *part)
{
    const double traffic = part->traffic * k->cluster;
    if (axes_within(k->rows, s->a->fixed)) return (double)axes_size(&s->a->sizes, k->rows);
    return FEW_BYTES / (traffic > 1 ? traffic : 1);
}

/* CTAs that an SM has at once. Rows may be so long that a tensor has fewer than there are SMs, but
 * where they are said to be many. */
static double at_once(const Scheduler *s, const Kernel *k, const Part *part, int sms, bool many)
{
    const double few = few_rows(s, k, part),
                 each = few * k->cluster * k->column_ctas / (rows_at_once(k) * sms),
                 ctas = resident(s, k);
    return !many && !k->accumulator_count && !k->kept && !k->beside && each < 1 ? each : ctas;
}

/* Of kernels without sums, and of rows that are neighbours in memory: many small CTAs hide much of
 * each other's work and waits. */
static void hide(const Scheduler *s, const Kernel *k, double times[BOUNDS])
{
    static const double WORK = 0.7, WAIT = 0.5; /* that is left */
    const bool plain = !k->inner_count && !k->accumulator_count, ends = !is_persistent(k);
    if (plain || (k->beside && ends)) times[BOUND_BY_INSTRUCTIONS] *= WORK;
    if ((plain || k->beside) && ends && resident(s, k) > 1) times[BOUND_BY_WAITS] *= WAIT;
}

/* How long an SM has to do with a CTA's part of a row, for each of the bounds. */
static void find_times(const Scheduler *s, const Kernel *k, const Part *part, int sms, bool many,
                       double times[BOUNDS])
{
    static const double ALONE = 0.4, /* of a CTA without a cluster */
        L1_RATE = 180;               /* GB/s of an SM, of its shared memory too */
    const Target *t = s->target;
    const int rows = rows_at_once(k);
    const double ctas = at_once(s, k, part, sms, many);
    const double parts = has_column_parts(k) ? k->column_ctas : 1; /* of a row, a CTA each */
    const bool plain = !k->inner_count && !k->accumulator_count;
    double shared = keeps_columns(k) || plain ? 0 : part->shared / rows,
           rate = t->l2_rate / wasted_sectors(s, k);
    double starts =
        is_persistent(k) ? 0 : t->start * (ALONE + doublings(k->cluster)) * parts / rows;
    double again = is_still_cached(s, k, part, resident(s, k)) ? 0 : part->again;
    const double slower = access_slowdown(s, k);
    times[BOUND_BY_MEMORY] =
        (part->traffic + again) / (t->memory_rate * share_of_rate(s, k)) * sms / t->sms * slower;
    times[BOUND_BY_L2] = (part->read + part->scattered + shared + part->again) / rate * slower;
    double compute = row_instructions(s, k) * parts * kernel_threads(k) / (rows * t->lane_rate),
           warps = (double)ctas * kernel_threads(k) / WARP;
    times[BOUND_BY_INSTRUCTIONS] = compute * norm(1, t->busy_warps / warps);
    times[BOUND_BY_WAITS] =
        waiting_time(s, k, times[BOUND_BY_MEMORY] * rows / parts) * parts / ((double)ctas * rows) +
        starts;
    times[BOUND_BY_MESSAGES] =
        is_grouped(k) && k->phases > 1 ? t->message * k->cluster * (k->phases - 1) : 0;
    if (plain) times[BOUND_BY_L2] += part->kept / L1_RATE;
    if (plain && !keeps_columns(k)) times[BOUND_BY_L2] += part->shared / L1_RATE * slower;
    hide(s, k, times);
}

/* The same of a plan, whose only kernel that walks rows is `k`. */
static const char *unknown_plan(const Scheduler *s, const Kernel *k)
{
    return k ? unknown_kernel(s, k) : "it does not have one kernel that walks all rows";
}

bool is_model_fitted(const Target *target)
{
    int constants;
    return target_measured(target, &constants) == constants;
}

/* What a thread lacks of the registers that it would take makes it wait; what it cannot do
 * without is spilled, and much of that is out of the question. */
static double register_factor(const Scheduler *s, const Kernel *k)
{
    static const double OF_WAIT = 0.013, OF_SPILL = 3, OF_SPILLS = 60, UNTOLD = 0.04, MOST = 0.25,
                        NEVER = 1e3;
    if (k->tuned) return 1; /* it was compiled before it was measured */
    const int ctas = k->wanted_ctas > 1 ? k->wanted_ctas : 1, cap = register_share(s, k, ctas),
              wish = natural_registers(s, k) - cap;
    const double lack = least_registers(s, k) / (double)cap - 1;
    /* left to itself ptxas may spill though it need not: on a fitted GPU it is known not to */
    const bool unsure = !s->fitted && !k->wanted_ctas && !is_persistent(k) && !k->beside;
    return 1 + (unsure ? UNTOLD : 0) + OF_WAIT * (wish > 0 ? wish : 0) +
           (lack > 0 ? (OF_SPILL + OF_SPILLS * lack) * lack : 0) + (lack > MOST ? NEVER : 0);
}

/* A row that is alone: one CTA, one group or as many CTAs as there are SMs have it, and nothing
 * hides what it waits for. */
static double time_of_one(const Scheduler *s, const Kernel *k)
{
    const Part part = measure_part(s, k);
    const int sharers = k->column_ctas < s->target->sms ? k->column_ctas : s->target->sms;
    const double bytes =
        part.traffic + part.shared + (is_streamed(k) ? (k->phases - 1) * part.shared : 0);
    return waiting_time(s, k, bytes / sharers / s->target->sm_rate) * register_factor(s, k) +
           s->target->launch;
}

/* Rows of partials: each CTA has one, or a slice of it. The parts of groups are taken for as
 * many. */
static double partial_rows(const Scheduler *s, const Kernel *k, int sms)
{
    return (double)resident(s, k) * sms / (k->cluster * (k->kept ? 1 : k->column_ctas));
}

/* How many times as long it takes because teams have nothing to do: a part, or a line of
 * neighbours, has fewer rows, or they are fewer than there are teams at its end. */
static double idle_teams(const Scheduler *s, const Kernel *k)
{
    const double in_line = k->beside ? (double)declared_size(s, k->beside) : 0,
                 rows = k->kept && k->part_rows ? likely_part_rows(s, k) : in_line,
                 at_once = k->teams * (k->beside ? k->vec : 1);
    return rows > 0 ? ceil(rows / at_once) * at_once / rows : 1;
}

/* The same because SMs have nothing to do: a tensor may have fewer parts of groups, or slices of
 * them, than there are SMs. */
static double idle_factor(const Scheduler *s, const Kernel *k, const Part *part)
{
    if (!k->kept || !k->columnwise) return 1;
    const double bytes = part->traffic * k->part_rows / k->column_ctas,
                 parts = SOME_BYTES / (bytes > 1 ? bytes : 1) / s->target->sms;
    return parts < 1 ? 1 / parts : 1;
}

/* What follows the kernel that leaves partials. */
static double finish_time(const Scheduler *s, const Kernel *k, int sms)
{
    const double sums = accumulator_registers(s, k);
    if (!(sums > 0)) return 0;
    return s->target->finish + 2 * REGISTER_BYTES * sums * (double)column_count(s, k) *
                                   partial_rows(s, k, sms) / s->target->partials_rate;
}

static double time_of_rows(const Scheduler *s, const Kernel *k, double rows, bool many,
                           Bound *bound)
{
    const Part part = measure_part(s, k);
    const Target *t = s->target;
    int sms = k->cluster > 1 && !is_grouped(k) ? target_cluster_sms(t, k->cluster) : t->sms;
    double times[BOUNDS], sum = 0;
    find_times(s, k, &part, sms, many, times);
    for (int i = 0; i < BOUNDS; i++) {
        sum += pow(times[i], P);
        if (times[i] > times[*bound]) *bound = (Bound)i;
    }
    double all = rows * k->cluster / sms * pow(sum, 1 / P) * register_factor(s, k) *
                 idle_factor(s, k, &part) * idle_teams(s, k),
           one = time_of_one(s, k) - t->launch; /* however few rows there are */
    return (all > one ? all : one) + finish_time(s, k, sms) + t->launch;
}

/* Rows that are taken for many. */
static double nominal_rows(const Scheduler *s, const Kernel *k)
{
    const Part part = measure_part(s, k);
    double row = (part.traffic + part.masked) * k->cluster;
    return NOMINAL_BYTES / (row > 1 ? row : 1);
}

double kernel_time(const Scheduler *s, const Kernel *k)
{
    if (!k->rows && !k->kept && !k->beside) return time_of_one(s, k);
    Bound bound = BOUND_BY_MEMORY;
    return time_of_rows(s, k, nominal_rows(s, k), false, &bound);
}

static bool walks_all_rows(const Scheduler *s, const Kernel *k)
{
    return (k->rows | k->kept | k->beside) == s->a->rows && s->a->rows && !k->dynamic;
}

static double tensor_bytes(const Scheduler *s, AxisSet axes, DType dtype)
{
    if (!axes_within(s->a->rows, axes)) return 0;
    return (double)axes_size(&s->a->sizes, axes & s->a->columns) * dtype_info[dtype].bytes;
}

/* Rows of the graph with which its tensors have so many bytes. */
static double rows_of_graph(const Scheduler *s, double wanted)
{
    const Graph *g = s->g;
    double bytes = 0;
    for (int i = 0; i < g->params.count; i++)
        if (!g->params.data[i].scalar)
            bytes += tensor_bytes(s, g->params.data[i].axes, g->params.data[i].dtype);
    for (int i = 0; i < g->outputs.count; i++)
        if (g->outputs.data[i].value.id)
            bytes += tensor_bytes(s, g->outputs.data[i].axes, g->outputs.data[i].dtype);
    return wanted / (bytes > 1 ? bytes : 1);
}

/* Of the numbers of rows, or of columns that a launch counts, a few bytes each. */
static double time_of_numbers(const Scheduler *s, double rows)
{
    enum { NUMBER = 4 };
    return rows * NUMBER / (s->target->memory_rate * s->target->sms);
}

/* Of tensors with all rows that a kernel reads though it walks other axes; elements that have no
 * neighbour in its rows take a sector each. */
static double time_of_tensors(const Scheduler *s, const Kernel *k, double rows)
{
    double bytes = 0, scattered = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        const double own = tensor_bytes(s, load->axes, load->dtype);
        bytes += own;
        scattered += scattered_bytes(k, load->access, load->axes, load->dtype, own);
    }
    const Target *t = s->target;
    const double memory = bytes / t->memory_rate, l2 = (bytes + scattered) / t->l2_rate;
    return rows * short_runs(s, k) * (memory > l2 ? memory : l2) / t->sms;
}

/* What its CTAs do however short their rows are, where the program declares how many it has for
 * each row of the graph, and has more of them if the graph does: along the first axis. */
static double time_of_ctas(const Scheduler *s, const Kernel *k, double rows)
{
    static const double LEAST = 60; /* instructions of a thread */
    const AxisSet axes = k->rows | k->kept | k->beside, first = s->a->rows & -s->a->rows;
    const double own = (double)declared_size(s, axes), all = (double)declared_size(s, s->a->rows);
    if (!(axes & first) || !(own > 0) || !(all > 0)) return 0;
    const double threads = (double)kernel_threads(k) / rows_at_once(k);
    return rows * own / all * LEAST * threads / (s->target->lane_rate * s->target->sms);
}

double plan_time(const Scheduler *s, bool few)
{
    const double rows = rows_of_graph(s, few ? SOME_BYTES : NOMINAL_BYTES);
    double time = 0;
    Bound bound = BOUND_BY_MEMORY;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        if (!walks_rows(k)) continue;
        time += walks_all_rows(s, k)
                    ? time_of_rows(s, k, rows, false, &bound)
                    : time_of_one(s, k) + time_of_numbers(s, rows) +
                          fmax(time_of_tensors(s, k, rows), time_of_ctas(s, k, rows));
    }
    return time;
}

Estimate estimate_speed(const Plan *plan)
{
    const Kernel *k = only_walker(plan);
    OperationCache operations = {0};
    Scheduler s = reading_scheduler(plan->analysis->graph->arena, plan->analysis, &plan->target);
    s.operations = &operations;
    Estimate estimate = {.unknown = unknown_plan(&s, k)};
    if (estimate.unknown) return estimate;
    const Target *t = s.target;
    double ns = time_of_rows(&s, k, nominal_rows(&s, k), true, &estimate.bound);
    estimate.gbps = NOMINAL_BYTES / ns;
    estimate.ceiling = NOMINAL_BYTES / (NOMINAL_BYTES / (t->memory_rate * t->sms) + t->launch);
    return estimate;
}

const char *bound_name(Bound bound)
{
    static const char *const names[BOUNDS] = {[BOUND_BY_MEMORY] = "memory",
                                              [BOUND_BY_L2] = "L2",
                                              [BOUND_BY_INSTRUCTIONS] = "instructions",
                                              [BOUND_BY_WAITS] = "waits",
                                              [BOUND_BY_MESSAGES] = "messages"};
    return names[bound];
}

int64_t ring_bytes(const Target *target)
{
    enum { TIMES = 2 };
    return (int64_t)(TIMES * target->latency * target->memory_rate);
}
