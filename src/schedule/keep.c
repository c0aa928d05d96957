/* schedule/keep.c: which values of a row's elements stay from the phase that first computes them to
 * the phases that need them again. Only kernels that reduce parts of rows keep values: they can have
 * many phases, and each would otherwise compute again everything before it. */
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
 * accumulated together with a maximum or a mean takes that one's operand: the terms that follow from
 * the result are not known in that phase. */
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

void find_kept(const Scheduler *s, Kernel *k)
{
    enum { LEAST = 8 };
    if (k->keeps || k->beside || !has_parts(s->g, k) || k->phases > LAST_PHASE_BIT) return;
    const double *work = count_work(s, k);
    uint64_t *uses = find_ends(s, k);
    k->keeps = NEW_ARRAY(s->arena, Kept, s->g->nodes.count);
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!k->computed[i] || is_reduction(s->g, n)) continue;
        const bool again = lowest(uses[i]) != uses[i];
        if (again && work[i] >= LEAST) {
            k->keeps[i].first = 1 + __builtin_ctzll(uses[i]);
            k->keeps[i].last = 63 - __builtin_clzll(uses[i]);
            uses[i] = lowest(uses[i]);
        }
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++)
            uses[arg(s->g, n, j).id] |= uses[i];
    }
}

/* The most registers that they take of a thread at a time. */
int kept_registers(const Scheduler *s, const Kernel *k)
{
    int most = 0;
    for (int phase = 0; k->keeps && phase < k->phases; phase++) {
        int now = 0;
        for (int i = 1; i < s->g->nodes.count; i++) {
            const Kept *kept = &k->keeps[i];
            if (!kept->first || kept->first > phase || kept->last < phase) continue;
            const unsigned along =
                footprint_of(k, &s->a->sizes, node(s->g, (Node){(uint32_t)i})->axes);
            now += (along & ALONG_TILES ? k->tiles : 1) * (along & ALONG_VECTOR ? k->vec : 1);
        }
        most = now > most ? now : most;
    }
    return most;
}
