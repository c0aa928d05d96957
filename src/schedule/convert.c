/* schedule/convert.c: which elements of 2 bytes are converted to f32 by another instruction after a
 * row's first phase than in it. ptxas keeps what it has converted, and what it has computed from
 * it, where the second time is the same instruction: as f32, in twice the registers. */
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

/* Whether a later phase would compute again what takes many instructions, as a sigmoid does (norm
 * of x * silu(z) of 8192 columns 11 % slower; measured on an H100). */
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

/* Of a CTA's row: f16 with a mean and its squares; several inputs with them (layer norm of a sum of
 * two inputs and a bias of 8192 columns 74 % faster, with a scale and a shift for each sample 4 to
 * 30 %); and what three phases read (rmsnorm with its largest element of 4096 and 8192 columns 6
 * and 14 %). A mean and its squares of one input of bf16 no faster. */
bool rewidens_row(const Scheduler *s, const Kernel *k)
{
    enum { THREE = 3 };
    if (!k->inner_count) return false;
    return has_moments(s, k) ? reads_f16(k) || row_inputs(k) > 1 : k->phases >= THREE;
}

/* Of f16: column vectors that are read with the row anew at each use, else they are f32 in twice
 * the registers; rows only `once` where what follows takes many instructions (norm of x * silu(z)
 * of 4096 and 8192 columns 11 and 24 % faster). */
void convert_f16(Kernel *k, bool once)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool f16 = load->resident && load->dtype == DTYPE_F16;
        load->rewidened = f16 && load->hoisted && k->vec % 2 == 0;
        load->widened_once = f16 && !load->hoisted && once;
    }
}

/* Single elements with two sums over rows (layernorm_bwd of 8193 to 131071 columns 4 to 20 %
 * faster; of whole vectors, with one sum or without, no faster and up to 3 % slower; measured on an
 * H100). */
void convert_bf16(Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        load->converted = load->access == ACCESS_VECTOR && load->dtype == DTYPE_BF16;
    }
}

/* `halves`: f16 as well. Vectors of columns where they are f16, or an earlier phase computes with
 * them what is summed up from several inputs; those of a norm's largest element better not (rmsnorm
 * of 8192 columns 18 % slower). */
void rewiden(Kernel *k, bool halves)
{
    enum { TWO = 2 };
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool half = load->dtype == DTYPE_F16 && halves;
        bool several = load->phases & (load->phases - 1) && row_inputs(k) > 1 && k->phases == TWO;
        bool narrow = half || (load->dtype == DTYPE_BF16 && (is_row_vector(k, load) || several));
        load->rewidened = load->resident && narrow && k->vec % 2 == 0;
    }
}
