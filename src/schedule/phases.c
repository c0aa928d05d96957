/* schedule/phases.c: the phases of a kernel: in which one it computes each value, and which of them
 * need what it loads. */
#include "schedule/internal.h"

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* The reduction whose phase one shares. */
static Node partner_of(const Kernel *k, Node n)
{
    const InnerReduction *r = inner_of(k, n);
    return r ? r->partner : (Node){0};
}

/* Phases within one kernel: only the reductions it computes itself end one. */
void find_kernel_phases(Scheduler *s, Kernel *k)
{
    const Graph *g = s->g;
    k->phase = NEW_ARRAY(s->arena, int, g->nodes.count);
    k->phases = 1;
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!k->computed[i]) continue;
        for (int j = 0; j < op_info[node(g, n)->op].arity; j++)
            k->phase[i] = max_int(k->phase[i], k->phase[arg(g, n, j).id]);
        k->phase[i] += is_reduction(g, n);
        Node partner = partner_of(k, n);
        if (partner.id) k->phase[i] = k->phase[partner.id];
    }
    for (int i = 0; i < k->inner_count; i++) {
        InnerReduction *r = &k->inner[i];
        r->phase = k->phase[arg(g, r->partner.id ? r->partner : r->node, 0).id];
    }
    for (int i = 0; i < k->accumulator_count; i++)
        k->accumulators[i].phase = k->phase[operand_of(g, &k->accumulators[i]).id];
    for (int i = 0; i < k->store_count; i++) {
        k->stores[i].phase = k->phase[k->stores[i].node.id];
        k->phases = max_int(k->phases, k->stores[i].phase + 1);
    }
    for (int i = 0; i < k->accumulator_count; i++)
        k->phases = max_int(k->phases, k->accumulators[i].phase + 1);
    for (int i = 0; i < k->inner_count; i++) k->phases = max_int(k->phases, k->inner[i].phase + 2);
}

/* Which phases need each load: the operands of column values, again in every phase that
 * computes them; values without a column once, in the phase where they are first known.
 */
void find_load_phases(Scheduler *s, Kernel *k)
{
    const Graph *g = s->g;
    uint64_t *uses = NEW_ARRAY(s->arena, uint64_t, g->nodes.count);
    for (int i = 0; i < k->store_count; i++)
        uses[k->stores[i].node.id] |= phase_bit(k->stores[i].phase);
    for (int i = 0; i < k->accumulator_count; i++)
        uses[operand_of(g, &k->accumulators[i]).id] |= phase_bit(k->accumulators[i].phase);
    for (int i = 0; i < k->inner_count; i++) {
        const InnerReduction *r = &k->inner[i];
        Node operand = r->picked.id ? r->place : arg(g, r->node, 0);
        if (!r->partner.id) uses[operand.id] |= phase_bit(r->phase);
    }
    for (int i = g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!k->computed[i] || is_reduction(g, n)) continue;
        for (int j = 0; j < op_info[node(g, n)->op].arity; j++) uses[arg(g, n, j).id] |= uses[i];
    }
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        load->phases = uses[load->node.id];
        while (load->phases && !(load->phases >> load->first_phase & 1)) load->first_phase++;
    }
}
