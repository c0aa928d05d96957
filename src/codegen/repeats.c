/* codegen/repeats.c: additions that round alike wherever they are printed.
 *
 * The CUDA compiler may make one instruction of a product and the addition that takes it, which
 * then rounds once, and may do so in one phase alone. Where a value is found to be its row's
 * largest in one phase and compared with that in another (graph/extremes.c), both must have the
 * same bits. There such additions are intrinsics, which it leaves as they are (CUDA C++ Programming
 * Guide, "Single Precision Floating-Point Intrinsics"). */
#include "codegen/emit.h"

/* Whether the last step of a value may be a product that rounds. */
static bool may_be_product(const Graph *g, Node n)
{
    const Op op = node(g, n)->op;
    return op_info[op].class != CLASS_LEAF && !is_reduction(g, n) && op != OP_ADD && op != OP_SUB;
}

const char *lone_addition(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    const bool adds = info->op == OP_ADD || info->op == OP_SUB;
    if (!adds || !e->repeated[n.id] || !type_is_float(info->type)) return NULL;
    if (!may_be_product(e->g, info->args[0]) && !may_be_product(e->g, info->args[1])) return NULL;
    if (info->type == TYPE_F64)
        return info->op == OP_ADD ? "__dadd_rn($0, $1)" : "__dsub_rn($0, $1)";
    return info->op == OP_ADD ? "__fadd_rn($0, $1)" : "__fsub_rn($0, $1)";
}
