/* schedule/cost.c: how fast a plan moves many rows, by a model of bytes and latencies. It ranks
 * what can be
 * (`fusec explain --candidates`), says what a plan is bound by, and replaces the rules' choice
 * where that is far off (find_faster in candidates.c). It does not know what tells good plans apart
 * by a few percent: the rules do.
 *
 * Its constants are the target's (targets/keys.def): those of an H100 were fitted on what `fusec
 * tune` measured of 8000 plans, 132 cells of norms, softmaxes and their gradients in bf16 and f32,
 * 768 to 131072 columns, and on 90 plans of other graphs. Of the former it is off by 5 % in the
 * median and by less than 23 % in nine of ten; what it ranks first in a cell is within 3 % of the
 * best in three of four, within 10 % in 94 %. Rows of single elements and pairs it knows least: of
 * 5292 plans of those, 92 cells, it is off by 15 % in the median and by less than 62 % in nine of
 * ten, and what it ranks first is 16 % behind the best in the mean.
 *
 * What an SM does to a CTA's part of one row takes as long as the longest of: its bytes at memory's
 * rate, its bytes at L2's, its instructions, the messages of a group, and the part's wait for
 * memory and for other threads, which is shared by all rows that the SM has under way. None of them
 * hides all of another, so their norm of order P is taken. Times are in ns; bytes a ns are GB/s. */
#include "schedule/internal.h"

#include <math.h>

static const double P = 2.6, NOMINAL_BYTES = 400e6; /* of the rows that are taken for many */

/* Registers of a thread of a kernel without a ring; off by 11 % in the median. */
enum {
    BASE = 20,
    MOMENTS_REGISTERS = 12,
    LEAST = 24,
    STEP = 8,
    REGISTER_BYTES = 4,
    PARTS_OF_SM = 4
};
static const double HELD = 0.5, OF_ELEMENT = 0.75;

static int expected_registers(const Scheduler *s, const Kernel *k)
{
    int elements = k->vec * k->tiles,
        cap = register_cap(s, kernel_threads(k) * (k->wanted_ctas > 1 ? k->wanted_ctas : 1));
    int64_t held = row_bytes(k);
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].hoisted) held += dtype_info[k->loads[i].dtype].bytes;
    double needed = BASE + (HELD * (double)held / REGISTER_BYTES + OF_ELEMENT) * elements +
                    MOMENTS_REGISTERS * has_moments(s, k);
    return needed > cap ? cap : needed < LEAST ? LEAST : (int)needed;
}

/* CTAs that an SM holds at once. */
static int resident(const Scheduler *s, const Kernel *k)
{
    enum { RESERVED = 1 << 10 };
    if (is_persistent(k)) return k->ctas_per_sm > 1 ? k->ctas_per_sm : 1;
    int threads = kernel_threads(k) + helper_threads(k), warps = (threads + WARP - 1) / WARP;
    int registers = (int)ceil_div(expected_registers(s, k), STEP) * STEP * WARP;
    int64_t most = s->target->registers_per_sm / PARTS_OF_SM / registers * PARTS_OF_SM / warps;
    int64_t memory =
        s->target->smem_per_sm / (k->smem_bytes + k->idle_bytes + static_bytes(s, k) + RESERVED);
    if (memory < most) most = memory;
    if (s->target->threads_per_sm / threads < most) most = s->target->threads_per_sm / threads;
    if (s->target->most_ctas_per_sm < most) most = s->target->most_ctas_per_sm;
    return most > 1 ? (int)most : 1;
}

static double doublings(double count)
{
    return count > 1 ? log2(count) : 0;
}

/* Until all threads of a row know what its phases found. */
static double exchange_time(const Scheduler *s, const Kernel *k)
{
    const Target *t = s->target;
    double own = t->exchange * (1 + t->moments * has_moments(s, k)) +
                 t->exchange_of_warps * doublings(k->threads_per_row / WARP);
    double others =
        k->grouped ? t->group_exchange : t->cluster_exchange * sqrt(doublings(k->cluster));
    return k->phases > 1 ? (k->phases - 1) * (own + others) : 0;
}

static double norm(double a, double b)
{
    return pow(pow(a, P) + pow(b, P), 1 / P);
}

/* Where CTAs walk many rows of short vectors: for column vectors that each phase reads again, one
 * of each tile at a time. (Of longer vectors that is not fitted.) */
static double columns_time(const Scheduler *s, const Kernel *k)
{
    int reads = 0;
    for (int i = 0; i < k->load_count && k->vec < SHORT_VECTOR; i++)
        if (is_column_vector(k, &k->loads[i]) && !k->loads[i].hoisted)
            reads += __builtin_popcountll(k->loads[i].phases);
    return s->target->columns_again * reads * k->tiles;
}

/* How often memory is waited for: in each phase that reads a row anew, and of short vectors once
 * more for every eight tiles. */
static double waits(const Kernel *k)
{
    enum { TILES = 8 };
    if (!k->streamed || k->phases <= 1) return 1;
    return k->phases * (k->vec < SHORT_VECTOR ? 1 + (double)k->tiles / TILES : 1);
}

/* A row's wait for memory and for its threads, one after the other, unless a ring has asked for it
 * before. */
static double waiting_time(const Scheduler *s, const Kernel *k, double compute)
{
    double exchange = exchange_time(s, k), latency = s->target->latency;
    if (k->stages)
        return norm(latency / (k->stages + 0.5 * k->reuses), exchange) + columns_time(s, k);
    if (k->refill) return (latency > exchange ? latency : exchange) + columns_time(s, k);
    return exchange + s->target->apart * compute + latency * waits(k);
}

/* Of an operation, in those of an addition. Where a result's inverse is found once, divisions are
 * taken for products with it. */
static double cost_of(const Target *t, Op op, bool inverted)
{
    const double costs[COST_COUNT] = {[COST_CHEAP] = 1,
                                      [COST_DIVIDE] = t->division,
                                      [COST_EXP] = t->division,
                                      [COST_FUNCTION] = t->division,
                                      [COST_SERIES] = t->tangent};
    return op == OP_DIV && inverted ? 1 : costs[op_info[op].cost];
}

/* What is computed for each element, each phase's part once. */
static double element_operations(const Scheduler *s, const Kernel *k)
{
    double count = 0;
    bool inverted = false;
    for (int i = 0; i < k->inner_count; i++) inverted |= k->inner[i].inverse;
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (k->computed[i] && info->axes & k->columns)
            count += cost_of(s->target, info->op, inverted);
    }
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR && dtype_info[k->stores[i].dtype].bytes == 1)
            count += s->target->byte;
    return count;
}

/* A CTA's part of a row, in columns and in bytes that go to memory and back. */
typedef struct {
    double columns, traffic, read, shared,
        again; /* shared: of what all rows read; again: by later phases, from L2 or memory */
} Part;

static Part measure_part(const Scheduler *s, const Kernel *k)
{
    Part part = {.columns = (double)column_count(s, k) / k->cluster};
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        double bytes = (double)axes_size(&s->a->sizes, load->axes & k->columns) *
                       dtype_info[load->dtype].bytes / k->cluster;
        if (!(load->axes & k->rows)) {
            part.shared += bytes;
            continue;
        }
        part.read += bytes;
        if (load->access == ACCESS_VECTOR && !load->resident && !load->staged)
            part.again += bytes * (__builtin_popcountll(load->phases) - 1);
    }
    part.traffic = part.read;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].axes & k->rows)
            part.traffic += (double)axes_size(&s->a->sizes, k->stores[i].axes & k->columns) *
                            dtype_info[k->stores[i].dtype].bytes / k->cluster;
    return part;
}

/* Whether L2 still has what of all rows under way a later phase reads again. */
static bool is_still_cached(const Scheduler *s, const Kernel *k, const Part *part, int ctas)
{
    return part->read * k->teams * ctas * s->target->sms <= s->target->cached_bytes;
}

/* If the SM has warps enough. */
static double instruction_time(const Scheduler *s, const Kernel *k, const Part *part)
{
    const Target *t = s->target;
    double accesses = row_inputs(k) * sqrt(k->phases > 1 ? k->phases : 1) + 1 + column_vectors(k);
    double instructions = part->columns * (t->vector_access * accesses / k->vec +
                                           t->operation * element_operations(s, k));
    return instructions / t->lane_rate;
}

static bool keeps_columns(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].hoisted) return is_persistent(k);
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
    if (k->kept) return "it sums the rows of each group apart";
    if (!k->inner_count || !row_inputs(k)) return "it reduces no vectors inside rows";
    if (!k->rows || k->dynamic || k->column_ctas > 1)
        return "its rows are one, or of no fixed length";
    if (has_several_columns(k)) return "its columns are of several axes";
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

/* How long an SM has to do with a CTA's part of a row, for each of the bounds. */
static void find_times(const Scheduler *s, const Kernel *k, const Part *part, int sms,
                       double times[BOUNDS])
{
    const Target *t = s->target;
    int ctas = resident(s, k);
    bool loose = is_persistent(k) && !k->paced;
    double shared = keeps_columns(k) ? 0 : part->shared / k->teams,
           rate = t->l2_rate / (k->vec == 1 ? t->elementwise : 1);
    double starts = is_persistent(k) ? 0 : t->start * doublings(k->cluster) / k->teams;
    double again = is_still_cached(s, k, part, ctas) ? 0 : part->again;
    times[BOUND_BY_MEMORY] =
        (part->traffic + again) / (t->memory_rate * (loose ? t->loose : 1)) * sms / t->sms;
    times[BOUND_BY_L2] = (part->read + shared + part->again) / rate;
    double compute = instruction_time(s, k, part), warps = (double)ctas * kernel_threads(k) / WARP;
    times[BOUND_BY_INSTRUCTIONS] = compute * (warps < t->busy_warps ? t->busy_warps / warps : 1);
    times[BOUND_BY_WAITS] =
        waiting_time(s, k, compute * k->teams) / ((double)ctas * k->teams) + starts;
    times[BOUND_BY_MESSAGES] =
        k->grouped && k->phases > 1 ? t->message * k->cluster * (k->phases - 1) : 0;
}

/* The same of a plan, whose only kernel that walks rows is `k`. */
static const char *unknown_plan(const Scheduler *s, const Kernel *k)
{
    return k ? unknown_kernel(s, k) : "several kernels walk rows, or none";
}

bool is_model_fitted(const Target *target)
{
    int constants;
    return target_measured(target, &constants) == constants;
}

Estimate estimate_speed(const Plan *plan)
{
    const Kernel *k = only_walker(plan);
    const Scheduler s = {.a = plan->analysis, .g = plan->analysis->graph, .target = &plan->target};
    Estimate estimate = {.unknown = unknown_plan(&s, k)};
    if (estimate.unknown) return estimate;
    const Part part = measure_part(&s, k);
    const Target *t = s.target;
    int sms = k->cluster > 1 && !k->grouped ? target_cluster_sms(t, k->cluster) : t->sms;
    double times[BOUNDS], sum = 0;
    find_times(&s, k, &part, sms, times);
    for (int i = 0; i < BOUNDS; i++) {
        sum += pow(times[i], P);
        if (times[i] > times[estimate.bound]) estimate.bound = (Bound)i;
    }
    double rows = NOMINAL_BYTES / (part.traffic * k->cluster);
    double sums = accumulator_registers(&s, k), ctas = (double)resident(&s, k) * sms / k->cluster;
    double finish = sums > 0 ? t->finish + 2 * REGISTER_BYTES * sums * (double)column_count(&s, k) *
                                               ctas / t->partials_rate
                             : 0;
    double ns = rows * k->cluster / sms * pow(sum, 1 / P) + finish + t->launch;
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
