/* explain/traffic.c: the bytes that a plan's kernels read and write, as their rows take them. */
#include "explain/explain.h"

/* Whether a load has columns, and some of the row axes. */
static bool is_row_load(const Kernel *k, const Load *load)
{
    bool columns = load->access == ACCESS_VECTOR || load->access == ACCESS_ELEMENT;
    return columns && load->axes & k->rows;
}

/* Whether some load or store has the columns of every row that a kernel walks. Loads of fewer rows
 * are then the smaller part of the traffic, and come from caches. */
static bool has_own_columns(const Kernel *k)
{
    bool has = false;
    for (int i = 0; i < k->load_count; i++)
        has |= is_row_load(k, &k->loads[i]) && axes_within(k->rows, k->loads[i].axes);
    for (int i = 0; i < k->store_count; i++)
        has |= k->stores[i].access != ACCESS_ROW && axes_within(k->rows, k->stores[i].axes);
    return has;
}

/* The row axes along which a reduction that takes a load has the same result, but is computed for
 * each element all the same. */
static AxisSet repeats_of_reductions(const Graph *g, const Kernel *k, const Load *load)
{
    bool *made = NEW_ARRAY(g->arena, bool, g->nodes.count);
    AxisSet axes = 0;
    made[load->node.id] = true;
    for (int i = 1; i < g->nodes.count; i++)
        for (int j = 0; k->computed[i] && !is_reduction(g, (Node){(uint32_t)i}) &&
                        j < op_info[g->nodes.data[i].op].arity;
             j++)
            made[i] |= made[g->nodes.data[i].args[j].id];
    for (int i = 0; i < k->inner_count; i++) {
        Node n = k->inner[i].node;
        if (!k->inner[i].picked.id && made[arg(g, n, 0).id]) axes |= k->rows & ~node(g, n)->axes;
    }
    return axes;
}

/* The row axes that a load lacks, and for each of whose elements a kernel reads the load's columns
 * again. */
static AxisSet repeats_of(const Graph *g, const Kernel *k, const Load *load)
{
    AxisSet lacks = k->rows & ~load->axes;
    if (!lacks || !k->computed || !is_row_load(k, load)) return 0;
    return has_own_columns(k) ? lacks & repeats_of_reductions(g, k, load) : lacks;
}

/* The bytes a kernel reads of a tensor: one element for each row that gathers one, or the whole
 * tensor, as often as rows read it again. */
static int64_t bytes_of_load(const Graph *g, const Sizes *sizes, const Kernel *k, const Load *load)
{
    int64_t bytes = 0;
    if (load->access != ACCESS_PICKED)
        return axes_bytes(sizes, load->axes | repeats_of(g, k, load), load->dtype);
    for (int i = 0; i < k->inner_count; i++)
        if (k->inner[i].picked.id == load->node.id)
            bytes = add_bytes(bytes, axes_bytes(sizes, k->rows | k->kept, load->dtype));
    return bytes;
}

/* The bytes of the tensors that a kernel reads, and of what it stores; the sums of a group are the
 * finish kernel's. */
static int64_t bytes_read(const Graph *g, const Sizes *sizes, const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].tensor >= 0)
            bytes = add_bytes(bytes, bytes_of_load(g, sizes, k, &k->loads[i]));
    return bytes;
}

static bool repeats_rows(const Graph *g, const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].tensor >= 0 && repeats_of(g, k, &k->loads[i])) return true;
    return false;
}

static int64_t bytes_written(const Sizes *sizes, const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].tensor >= 0 && !k->stores[i].result)
            bytes = add_bytes(bytes, axes_bytes(sizes, k->stores[i].axes, k->stores[i].dtype));
    return bytes;
}

/* Whether a kernel has work to do. A finish kernel's work counts even where the CTAs before it
 * store the sums of their groups themselves. */
static bool has_work(const Plan *plan, int index)
{
    bool in_place = plan->launch.kernels[index].adds_parts >= 0;
    return kernel_ctas(plan, index) > 0 ||
           (in_place && kernel_ctas(plan, plan->kernels[index].finishes) > 0);
}

Traffic count_traffic(const Plan *plan)
{
    Traffic all = {0};
    const Sizes *sizes = &plan->analysis->sizes;
    for (int i = 0; i < plan->kernel_count; i++) {
        if (!has_work(plan, i)) continue;
        all.masked |= has_window(&plan->kernels[i]);
        all.again |= reads_rows_again(&plan->kernels[i]);
        all.repeats |= repeats_rows(plan->analysis->graph, &plan->kernels[i]);
        all.read = add_bytes(all.read, bytes_read(plan->analysis->graph, sizes, &plan->kernels[i]));
        all.written = add_bytes(all.written, bytes_written(sizes, &plan->kernels[i]));
    }
    return all;
}

/* The bytes of values that pass between kernels; the number of partials depends on the grid. */
int64_t bytes_passed(const Plan *plan)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->kernel_count; i++)
        for (int j = 0; j < plan->kernels[i].store_count; j++) {
            const Store *store = &plan->kernels[i].stores[j];
            if (store->slot >= 0)
                bytes =
                    add_bytes(bytes, axes_bytes(&plan->analysis->sizes, store->axes, store->dtype));
        }
    return bytes;
}
