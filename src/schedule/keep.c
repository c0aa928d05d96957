/* schedule/keep.c: which values of a row's elements stay from the phase that first computes them
 * to the phases that need them again. Kernels that reduce parts of rows keep values: they can
 * have many phases, and each would otherwise compute again everything before it. So do those
 * whose rows have a window, for a compiler does not see that what two phases compute behind the
 * same condition is the same. */
#include "schedule/internal.h"

/* Operations from loads on; what is cheaper is computed again rather than kept. */
static double *count_work(const Scheduler *s, const Kernel *k)
{
    enum { COSTLY = 8 };
    double *work = NEW_ARRAY(s->arena, double, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (!k->computed[i] || is_reduction(s->g, (Node){(uint32_t)i})) continue;
        if (!(info->axes & k->columns)) continue;
        work[i] = op_info[info->op].cost == COST_CHEAP ? 1 : COSTLY;
        for (int j = 0; j < op_info[info->op].arity; j++) work[i] += work[info->args[j].id];
    }
    return work;
}

static uint64_t lowest(uint64_t set)
{
    return set & (~set + 1);
}

/* The phases that end with something made of each node, before it is known what is kept. What is
 * accumulated together with a maximum or a mean takes that one's operand: the terms that follow
 * from the result are not known in that phase. */
static uint64_t *find_ends(const Scheduler *s, const Kernel *k)
{
    uint64_t *uses = NEW_ARRAY(s->arena, uint64_t, s->g->nodes.count);
    for (int i = 0; i < k->store_count; i++)
        uses[k->stores[i].node.id] |= phase_bit(k->stores[i].phase);
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].mean.id)
            uses[arg(s->g, k->accumulators[i].node, 0).id] |= phase_bit(k->accumulators[i].phase);
    for (int i = 0; i < k->inner_count; i++)
        if (!k->inner[i].partner.id)
            uses[arg(s->g, k->inner[i].node, 0).id] |= phase_bit(k->inner[i].phase);
    return uses;
}

/* Whether a phase needs all elements of what the first of these phases has only inside its
 * window. */
static bool lacks_outside(const Kernel *k, uint64_t phases)
{
    if (!k->window || !skips_outside(k, __builtin_ctzll(phases))) return false;
    for (int phase = 0; phase < k->phases; phase++)
        if (phases >> phase & 1 && !skips_outside(k, phase)) return true;
    return false;
}

void find_kept(const Scheduler *s, Kernel *k)
{
    enum { LEAST = 8 };
    if (k->keeps || k->beside || k->phases > LAST_PHASE_BIT) return;
    if (!has_parts(s->g, k) && !k->window && !repeats_costly(s, k)) return;
    const double *work = count_work(s, k);
    uint64_t *uses = find_ends(s, k);
    k->keeps = NEW_ARRAY(s->arena, Kept, s->g->nodes.count);
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!k->computed[i] || is_reduction(s->g, n)) continue;
        const bool again = lowest(uses[i]) != uses[i] && !lacks_outside(k, uses[i]);
        if (again && work[i] >= LEAST) {
            k->keeps[i].first = 1 + __builtin_ctzll(uses[i]);
            k->keeps[i].last = 63 - __builtin_clzll(uses[i]);
            uses[i] = lowest(uses[i]);
        }
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++)
            uses[arg(s->g, n, j).id] |= uses[i];
    }
}

/* The same with what is kept: by node, the phases that need its value. */
static uint64_t *find_needs(const Scheduler *s, const Kernel *k)
{
    uint64_t *needs = find_ends(s, k);
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        const Node n = {(uint32_t)i};
        if (!k->computed[i] || is_reduction(s->g, n)) continue;
        const uint64_t makes = k->keeps[i].first ? lowest(needs[i]) : needs[i];
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++)
            needs[arg(s->g, n, j).id] |= makes;
    }
    return needs;
}

/* Registers of a thread for a value that varies along some axes. */
static int registers_of(const Scheduler *s, const Kernel *k, Node n)
{
    const NodeInfo *info = node(s->g, n);
    const unsigned along = footprint_of(k, &s->a->sizes, info->axes);
    const int values = (along & ALONG_TILES ? k->tiles : 1) * (along & ALONG_VECTOR ? k->vec : 1);
    return values * (info->type == TYPE_F32 ? 1 : 2);
}

static int kept_in_phase(const Scheduler *s, const Kernel *k, int phase, const uint64_t *needs)
{
    int registers = 0;
    for (int i = 1; i < s->g->nodes.count; i++) {
        const Kept *kept = &k->keeps[i];
        if (kept->first && kept->first <= phase && kept->last >= phase)
            registers += registers_of(s, k, (Node){(uint32_t)i});
    }
    for (int i = 0; i < k->inner_count; i++) {
        const Node n = k->inner[i].node;
        const bool found = k->inner[i].phase < phase, needed = needs[n.id] >> phase;
        if (found && needed && footprint_of(k, &s->a->sizes, node(s->g, n)->axes))
            registers += registers_of(s, k, n);
    }
    return registers;
}

/* The most registers that kept values, and results of parts of rows, take of a thread at a time. */
int kept_registers(const Scheduler *s, const Kernel *k)
{
    if (!k->keeps) return 0;
    const uint64_t *needs = find_needs(s, k);
    int most = 0;
    for (int phase = 0; phase < k->phases; phase++) {
        const int now = kept_in_phase(s, k, phase, needs);
        most = now > most ? now : most;
    }
    return most;
}
