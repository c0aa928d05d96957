/* schedule/operations.c: how many operations a kernel takes for each element, in those of an
 * addition: what the cost model and the estimates of registers count. */
#include "schedule/internal.h"

/* Of an operation, in those of an addition. Where a result's inverse is found once, divisions are
 * taken for products with it. */
static double cost_of(const Scheduler *s, const NodeInfo *info, bool inverted)
{
    enum { QUICK_QUOTIENT = 4 };
    const Target *t = s->target;
    const double costs[COST_COUNT] = {[COST_CHEAP] = 1,
                                      [COST_DIVIDE] = t->division,
                                      [COST_EXP] = t->division,
                                      [COST_FUNCTION] = t->division,
                                      [COST_SERIES] = t->tangent};
    const bool quick = info->op == OP_DIV && is_at_least_one(s->g, info->args[1]);
    return info->op == OP_DIV && inverted ? 1
           : quick                        ? QUICK_QUOTIENT
                                          : costs[op_info[info->op].cost];
}

/* By node id: how many phases need what is computed for each element. */
static int *count_uses(const Scheduler *s, const Kernel *k)
{
    const Graph *g = s->g;
    uint64_t *uses = NEW_ARRAY(s->arena, uint64_t, g->nodes.count);
    int *counts = NEW_ARRAY(s->arena, int, g->nodes.count);
    for (int i = 0; i < k->store_count; i++)
        uses[k->stores[i].node.id] |= phase_bit(k->stores[i].phase);
    for (int i = 0; i < k->accumulator_count; i++)
        uses[operand_of(g, &k->accumulators[i]).id] |= phase_bit(k->accumulators[i].phase);
    for (int i = 0; i < k->inner_count; i++)
        uses[arg(g, k->inner[i].node, 0).id] |= phase_bit(k->inner[i].phase);
    for (int i = g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!k->computed[i] || is_reduction(g, n)) continue;
        for (int j = 0; j < op_info[node(g, n)->op].arity; j++) uses[arg(g, n, j).id] |= uses[i];
        counts[i] = __builtin_popcountll(uses[i]);
    }
    return counts;
}

/* Operations for an element in all phases, and of those as often as ... */
typedef struct {
    double once, again; /* ... each is computed once; what later phases compute again */
    double costly;      /* of that divisions, exponentials and the like */
} Operations;

static Operations count_operations(const Scheduler *s, const Kernel *k)
{
    enum { MOMENTS = 2 }; /* beside the sum */
    Operations o = {0};
    bool inverted = false;
    const int *uses = count_uses(s, k);
    for (int i = 0; i < k->inner_count; i++) inverted |= k->inner[i].inverse;
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (!k->computed[i] || !(info->axes & k->columns)) continue;
        double cost = cost_of(s, info, inverted);
        if (!k->beside && !is_dense(k) && !(info->axes >> fastest_column(k) & 1))
            cost /= k->vec; /* once a vector */
        o.once += cost;
        if (uses[i] > 1) o.again += (uses[i] - 1) * cost;
        if (uses[i] > 1 && cost > 1) o.costly += (uses[i] - 1) * cost;
    }
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].squares.id) o.once += MOMENTS;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR && dtype_info[k->stores[i].dtype].bytes == 1)
            o.once += s->target->byte;
    return o;
}

static const OperationCache *find_operations(const Scheduler *s, const Kernel *k)
{
    OperationCache *cache = s->operations;
    if (cache->of != k->computed || cache->vec != k->vec) {
        Operations o = count_operations(s, k);
        *cache = (OperationCache){k->computed, k->vec, o.once, o.again, o.costly};
    }
    return cache;
}

double repeated_operations(const Scheduler *s, const Kernel *k)
{
    return find_operations(s, k)->costly;
}

/* The same of the kernel as it is: where a phase reads a row's elements again it computes again
 * what is made of them. */
double element_operations(const Scheduler *s, const Kernel *k)
{
    const OperationCache *operations = find_operations(s, k);
    bool resident = true;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) resident &= is_resident(&k->loads[i]);
    return operations->once + (resident ? 0 : operations->again);
}
