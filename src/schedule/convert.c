/* schedule/convert.c: which 2-byte elements the later phases of a row convert to f32 by another
 * instruction than the first phase. If a later phase used the same instruction, ptxas would keep the
 * f32 values, and what is computed from them, in twice the registers. */
#include "schedule/internal.h"

/* Adds to marked nodes what they are computed from, of the columns, and takes away what is none of
 * that. */
static void mark_operands(const Scheduler *s, const Kernel *k, bool *needed)
{
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        const Node n = {(uint32_t)i};
        const NodeInfo *info = node(s->g, n);
        needed[i] &= k->computed[i] && (info->axes & k->columns) && !is_reduction(s->g, n);
        for (int j = 0; needed[i] && j < op_info[info->op].arity; j++)
            needed[info->args[j].id] = true;
    }
}

/* Whether a later phase would compute again what takes many instructions, as a sigmoid does. */
bool repeats_costly(const Scheduler *s, const Kernel *k)
{
    bool *first = NEW_ARRAY(s->arena, bool, s->g->nodes.count),
         *later = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 0; i < k->inner_count; i++)
        (k->inner[i].phase ? later : first)[arg(s->g, k->inner[i].node, 0).id] = true;
    for (int i = 0; i < k->store_count; i++)
        (k->stores[i].phase ? later : first)[k->stores[i].node.id] = true;
    mark_operands(s, k, first);
    mark_operands(s, k, later);
    for (int i = 1; i < s->g->nodes.count; i++)
        if (first[i] && later[i] && !k->phase[i] &&
            op_info[s->g->nodes.data[i].op].cost != COST_CHEAP)
            return true;
    return false;
}

/* Of f16: rows are converted once, where later phases would repeat what takes many instructions;
 * column vectors again at each use, else they are f32 in twice the registers. */
void convert_once(Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        if (!is_resident(load) || load->dtype != DTYPE_F16) continue;
        if (!is_hoisted(load)) load->widening = WIDENED_ALIKE;
        if (is_hoisted(load) && k->vec % 2 == 0) load->widening = WIDENED_ANEW;
    }
}

/* Of single elements with two sums over rows, which leave no registers for f32. */
void convert_bf16(Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        if (load->access == ACCESS_VECTOR && load->dtype == DTYPE_BF16)
            load->widening = WIDENED_BY_CVT;
    }
}

/* `halves`: f16 as well. Vectors of columns where they are f16, or an earlier phase computes with them
 * what is summed up from several inputs. */
void rewiden(Kernel *k, bool halves)
{
    enum { TWO = 2 };
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool half = load->dtype == DTYPE_F16 && halves;
        bool several = load->phases & (load->phases - 1) && row_inputs(k) > 1 && k->phases == TWO;
        bool narrow = half || (load->dtype == DTYPE_BF16 && (is_row_vector(k, load) || several));
        if (is_resident(load) && narrow && k->vec % 2 == 0) load->widening = WIDENED_ANEW;
    }
}
