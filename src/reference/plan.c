/* reference/plan.c: Evaluation -> Plan: which values are kept, and which passes make them. */
#include "reference/plan.h"

enum { MAX_BLOCKS = 64, KEEP_RATIO = 8 };

/* More than any memory holds, but its bytes can be counted. */
#define MOST_ITEMS (INT64_C(1) << 56)

/* ---- the graph as the evaluator wants it: only what is wanted; var as the mean of squares,
 * clamp as min and max ---- */

static bool is_wanted(const Evaluation *e, int output)
{
    return e->graph->outputs.data[output].value.id &&
           (e->outputs[output].data || (e->exact && e->exact[output]) ||
            (e->bound && e->bound[output]));
}

/* As graph_live, but without writing to the graph's own arena: threads share programs. */
static bool *find_wanted(Arena *arena, const Evaluation *e)
{
    const Graph *g = e->graph;
    bool *wanted = NEW_ARRAY(arena, bool, g->nodes.count);
    for (int i = 0; i < g->outputs.count; i++)
        if (is_wanted(e, i)) wanted[g->outputs.data[i].value.id] = true;
    for (int id = g->nodes.count - 1; id > 0; id--)
        for (int i = 0; wanted[id] && i < MAX_OPERANDS; i++)
            wanted[g->nodes.data[id].args[i].id] = true;
    return wanted;
}

static Node expand_var(Graph *into, AxisSet reduced, Node x)
{
    const Node mean = graph_reduce(into, OP_MEAN, reduced, x);
    const Node deviation = graph_op(into, OP_SUB, x, mean, (Node){0});
    const Node square = graph_op(into, OP_MUL, deviation, deviation, (Node){0});
    return graph_reduce(into, OP_MEAN, reduced, square);
}

static Node expand_clamp(Graph *into, const Node args[MAX_OPERANDS])
{
    const Node above = graph_op(into, OP_MAX, args[0], args[1], (Node){0});
    return graph_op(into, OP_MIN, above, args[2], (Node){0});
}

static Graph *expand_graph(Arena *arena, const Evaluation *e)
{
    const Graph *g = e->graph;
    Graph *into = graph_like(arena, g);
    Node *map = NEW_ARRAY(arena, Node, g->nodes.count);
    const bool *wanted = find_wanted(arena, e);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        if (!wanted[id]) continue;
        const NodeInfo *info = &g->nodes.data[id];
        Node args[MAX_OPERANDS];
        for (int i = 0; i < MAX_OPERANDS; i++) args[i] = map[info->args[i].id];
        map[id] = info->op == OP_VAR     ? expand_var(into, info->reduced, args[0])
                  : info->op == OP_CLAMP ? expand_clamp(into, args)
                                         : graph_copy_node(into, g, (Node){id}, args);
    }
    for (int i = 0; i < g->outputs.count; i++)
        if (is_wanted(e, i)) into->outputs.data[i].value = map[g->outputs.data[i].value.id];
    return into;
}

/* ---- what is kept ---- */

static double *new_values(Plan *p, uint32_t id)
{
    const NodeInfo *info = &p->graph->nodes.data[id];
    const int64_t size = axes_size(&p->evaluation->sizes, info->axes);
    return NEW_ARRAY(p->arena, double, size < MOST_ITEMS ? size : MOST_ITEMS);
}

/* As many values as a node has, exact ones. */
static Kept *new_exact(Plan *p, uint32_t id)
{
    Kept *kept = NEW(p->arena, Kept);
    kept->v = new_values(p, id);
    return kept;
}

static Kept *new_kept(Plan *p, uint32_t id)
{
    Kept *kept = new_exact(p, id);
    if (p->bounds && !p->exact[id]) kept->e = new_values(p, id);
    return kept;
}

/* A copy of a mean's values, with bounds of its own. */
static Kept *new_centre(Plan *p, uint32_t mean)
{
    Kept *centre = new_kept(p, mean);
    centre->v = p->kept[mean]->v;
    return centre;
}

/* Whether to keep a value: it is much smaller than a value made of it. */
static bool is_worth_keeping(const Plan *p, const NodeInfo *value, const NodeInfo *user)
{
    if (is_leaf(value) || value->axes == user->axes || op_info[user->op].class == CLASS_REDUCE)
        return false;
    const Sizes *sizes = &p->evaluation->sizes;
    return axes_size(sizes, user->axes) / KEEP_RATIO >= axes_size(sizes, value->axes);
}

static void choose_kept(Plan *p)
{
    const Graph *g = p->graph;
    const bool *live = graph_live(g);
    p->kept = NEW_ARRAY(p->arena, Kept *, g->nodes.count);
    p->centres = NEW_ARRAY(p->arena, Kept *, g->nodes.count);
    p->seconds = NEW_ARRAY(p->arena, Kept *, g->nodes.count);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        if (!live[id]) continue;
        if (is_reduction(g, (Node){id})) p->kept[id] = new_kept(p, id);
        if (p->moments[id].mean == id) p->centres[id] = new_centre(p, id);
        if (p->extremes[id]) p->seconds[p->extremes[id]] = new_exact(p, p->extremes[id]);
        for (int i = 0; i < MAX_OPERANDS; i++) {
            const uint32_t a = info->args[i].id;
            if (a && !p->kept[a] && is_worth_keeping(p, &g->nodes.data[a], info))
                p->kept[a] = new_kept(p, a);
        }
    }
}

/* ---- sinks ---- */

typedef struct {
    uint32_t node; /* the value: an output's, or a kept node */
    int output;    /* -1: kept */
    AxisSet space;
} Target;

static uint32_t source_of(const Plan *p, const Target *t)
{
    const bool reduces = t->output < 0 && is_reduction(p->graph, (Node){t->node});
    if (reduces && p->moments[t->node].distance) return p->moments[t->node].distance;
    return reduces ? p->graph->nodes.data[t->node].args[0].id : t->node;
}

/* Outer axes that a reduction keeps, from the first on, distinguish rows. The items of its result
 * that rows with equal coordinates of these share are a slab. */
static void find_slabs(const Plan *p, const Pass *pass, Sink *sink, AxisSet kept)
{
    const Sizes *sizes = &p->evaluation->sizes;
    int position = 0;
    sink->rows_per_slab = pass->rows;
    sink->slab = sink->count;
    for (int axis = 0; axis < MAX_AXES && position < pass->outer; axis++) {
        if (!(pass->axes >> axis & 1)) continue;
        if (!(kept >> axis & 1) || sizes->of[axis] == 0) return;
        sink->rows_per_slab /= sizes->of[axis];
        sink->slab /= sizes->of[axis];
        position++;
    }
}

static void add_sink(const Plan *p, Pass *pass, const Target *t, int slot)
{
    const NodeInfo *info = &p->graph->nodes.data[t->node];
    Sink sink = {
        .kind = t->output >= 0 ? SINK_OUTPUT : SINK_KEEP,
        .slot = slot,
        .exact = p->exact[t->node] || !p->bounds,
        .type = info->type,
        .output = t->output,
        .kept = p->kept[t->node],
    };
    find_strides(p, pass, info->axes, sink.strides);
    if (sink.kind == SINK_KEEP && is_reduction(p->graph, (Node){t->node})) {
        sink.kind = SINK_REDUCE;
        sink.operation = operation_of(p, t->node);
        sink.centre = p->centres[p->moments[t->node].mean];
        sink.second = p->seconds[t->node];
        sink.mean = p->moments[t->node].distance ? p->kept[p->moments[t->node].mean] : NULL;
        sink.exact_source = !p->bounds || p->exact[source_of(p, t)];
        sink.reduces_inner = !has_inner(pass, info->axes);
        sink.count = axes_size(&p->evaluation->sizes, info->axes);
        sink.terms = axes_size(&p->evaluation->sizes, pass->axes & ~info->axes);
        find_slabs(p, pass, &sink, info->axes);
    }
    *list_push(p->arena, &pass->sinks) = sink;
}

/* ---- passes ---- */

/* The number of blocks: few enough that the partial results of reductions stay small beside
 * everything else. */
static int count_blocks(const Pass *pass)
{
    int64_t shared = 1;
    for (int i = 0; i < pass->sinks.count; i++)
        if (pass->sinks.data[i].kind == SINK_REDUCE) shared += pass->sinks.data[i].slab;
    int64_t blocks = (INT64_C(1) << 23) / shared;
    blocks = blocks < 2 ? 2 : blocks > MAX_BLOCKS ? MAX_BLOCKS : blocks;
    return (int)(blocks > pass->units ? pass->units : blocks);
}

int64_t block_begin(const Pass *pass, int block)
{
    const int64_t each = pass->units / pass->blocks, more = pass->units % pass->blocks;
    return each * block + (block < more ? block : more);
}

int64_t first_slab(const Pass *pass, const Sink *sink, int block)
{
    return block_begin(pass, block) / pass->chunks / sink->rows_per_slab;
}

int64_t slab_items(const Pass *pass, const Sink *sink, int block)
{
    const int64_t last_row = (block_begin(pass, block + 1) - 1) / pass->chunks;
    return (last_row / sink->rows_per_slab - first_slab(pass, sink, block) + 1) * sink->slab;
}

/* A product can overflow only where another axis has no elements. */
static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static void measure_space(const Plan *p, Pass *pass)
{
    const Sizes *sizes = &p->evaluation->sizes;
    const int count = axes_count(pass->axes);
    pass->outer = count ? count - 1 : 0;
    pass->inner = pass->rows = 1;
    int position = 0;
    for (int axis = 0; axis < MAX_AXES; axis++) {
        if (!(pass->axes >> axis & 1)) continue;
        if (position < pass->outer) {
            pass->rows = multiply(pass->rows, sizes->of[axis]);
            pass->sizes[position++] = sizes->of[axis];
        } else {
            pass->inner = sizes->of[axis];
        }
    }
    pass->chunks = (pass->inner + CHUNK - 1) / CHUNK;
    pass->units = pass->rows * pass->chunks;
}

/* Marks the nodes that the targets need in this pass, and each node's last use. */
static bool *find_needed(const Plan *p, const Target *targets, int count, AxisSet space,
                         const bool *done, int *last_use)
{
    bool *needed = NEW_ARRAY(p->arena, bool, p->graph->nodes.count);
    for (int i = 0; i < count; i++) {
        if (targets[i].space != space) continue;
        needed[source_of(p, &targets[i])] = true;
        last_use[source_of(p, &targets[i])] = p->graph->nodes.count;
    }
    for (int id = p->graph->nodes.count - 1; id > 0; id--) {
        for (int i = 0; needed[id] && !done[id] && i < MAX_OPERANDS; i++) {
            const uint32_t a = p->graph->nodes.data[id].args[i].id;
            needed[a] = true;
            if (last_use[a] < id) last_use[a] = id;
        }
    }
    return needed;
}

static void add_pass(Plan *p, const Target *targets, int count, AxisSet space, bool *done)
{
    Pass *pass = NEW(p->arena, Pass);
    pass->axes = space;
    measure_space(p, pass);
    Slots slots = {
        .slot_of = NEW_ARRAY(p->arena, int, p->graph->nodes.count),
        .last_use = NEW_ARRAY(p->arena, int, p->graph->nodes.count),
    };
    const bool *needed = find_needed(p, targets, count, space, done, slots.last_use);
    for (uint32_t id = 1; id < (uint32_t)p->graph->nodes.count; id++)
        if (needed[id]) add_step(p, pass, &slots, id, done[id]);
    for (int i = 0; i < count; i++) {
        if (targets[i].space != space) continue;
        const Moments *m = &p->moments[targets[i].node];
        const bool squares = targets[i].output < 0 && m->distance;
        add_sink(p, pass, &targets[i],
                 squares ? add_square(p, pass, m, slots.slot_of)
                         : slots.slot_of[source_of(p, &targets[i])]);
        if (targets[i].output < 0) done[targets[i].node] = true;
    }
    pass->blocks = count_blocks(pass);
    *list_push(p->arena, &p->passes) = pass;
}

/* Marks the nodes whose value can be computed now, from leaves and finished kept values. */
static void find_available(const Plan *p, const bool *done, bool *available)
{
    available[0] = true;
    for (int id = 1; id < p->graph->nodes.count; id++) {
        const NodeInfo *info = &p->graph->nodes.data[id];
        available[id] = p->kept[id] ? done[id] : true;
        for (int i = 0; available[id] && !done[id] && i < MAX_OPERANDS; i++)
            available[id] = available[info->args[i].id];
    }
}

static bool has_operands(const Plan *p, uint32_t id, const bool *available)
{
    const NodeInfo *info = &p->graph->nodes.data[id];
    for (int i = 0; i < MAX_OPERANDS; i++)
        if (!available[info->args[i].id]) return false;
    return true;
}

static int find_ready(const Plan *p, const bool *live, const bool *done, bool *outputs_done,
                      const bool *available, Target *ready)
{
    const Graph *g = p->graph;
    int count = 0;
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        if (!live[id] || !p->kept[id] || done[id] || !has_operands(p, id, available)) continue;
        ready[count] = (Target){.node = id, .output = -1};
        ready[count].space = g->nodes.data[source_of(p, &ready[count])].axes;
        count++;
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const uint32_t id = g->outputs.data[i].value.id;
        if (id && !outputs_done[i] && available[id])
            ready[count++] = (Target){id, i, g->nodes.data[id].axes};
    }
    return count;
}

/* The smallest space in which a value to be kept is ready, else the first output's. */
static AxisSet choose_space(const Plan *p, const Target *ready, int count)
{
    int best = 0;
    for (int i = 1; i < count && ready[i].output < 0; i++)
        if (axes_size(&p->evaluation->sizes, ready[i].space) <
            axes_size(&p->evaluation->sizes, ready[best].space))
            best = i;
    return ready[best].space;
}

static void plan_passes(Plan *p)
{
    const Graph *g = p->graph;
    const bool *live = graph_live(g);
    bool *done = NEW_ARRAY(p->arena, bool, g->nodes.count);
    bool *available = NEW_ARRAY(p->arena, bool, g->nodes.count);
    bool *outputs_done = NEW_ARRAY(p->arena, bool, g->outputs.count);
    Target *ready = NEW_ARRAY(p->arena, Target, g->nodes.count + g->outputs.count);
    for (;;) {
        find_available(p, done, available);
        const int count = find_ready(p, live, done, outputs_done, available, ready);
        if (count == 0) return;
        const AxisSet space = choose_space(p, ready, count);
        add_pass(p, ready, count, space, done);
        for (int i = 0; i < count; i++)
            if (ready[i].space == space && ready[i].output >= 0)
                outputs_done[ready[i].output] = true;
    }
}

Plan *plan_evaluation(Arena *arena, const Evaluation *e)
{
    Plan *p = NEW(arena, Plan);
    p->arena = arena;
    p->evaluation = e;
    for (int i = 0; e->bound && i < e->graph->outputs.count; i++)
        p->bounds = p->bounds || e->bound[i];
    p->graph = expand_graph(arena, e);
    p->exact = find_exact(arena, p->graph);
    p->ranges = find_ranges(arena, p->graph, e);
    find_moments(p);
    find_extremes(p);
    choose_kept(p);
    plan_passes(p);
    return p;
}
