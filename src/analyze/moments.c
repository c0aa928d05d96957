/* analyze/moments.c: means of squares about a mean, q = mean[K](d * d) with d = x - mean[K](x),
 * where K is not the columns.
 *
 * Another kernel computes such a mean, and passes it rounded to f32. Where x is far from 0, the
 * rounding is large in units of d. What the rounded mean lacks is the mean of d: r = mean[K](d). So
 * q becomes q - r * r, and d elsewhere d - r; the kernel that adds up d * d adds up d as well.
 * (Within rows the helpers of codegen/prelude/ do the same in one pass.) */
#include "analyze/analyze.h"

#include <math.h>

typedef struct {
    const Graph *from;
    Graph *into;
    const bool *squares; /* by node id: whether it is such a q */
    const bool *centred; /* by node id: whether it is the d of one */
    Node *plain, *map;   /* by node id: the node that replaces it in a q, and elsewhere */
} Correction;

static Node distance_of(const Graph *g, Node squares)
{
    return arg(g, arg(g, squares, 0), 0);
}

/* x where `compared` is below infinity, else 0: what is not finite lacks nothing. */
static Node finite_part(Graph *g, Node x, Node compared)
{
    const Node infinity = graph_number(g, TYPE_F32, HUGE_VAL);
    const Node below = graph_op(g, OP_LT, compared, infinity, (Node){0});
    return graph_op(g, OP_WHERE, below, x, graph_number(g, TYPE_F32, 0));
}

/* Clamps at 0, because rounding may leave less than nothing. */
static Node correct_squares(Correction *c, Node q)
{
    Graph *g = c->into;
    const AxisSet reduced = node(c->from, q)->reduced;
    const Node none = {0}, d = c->plain[distance_of(c->from, q).id];
    const Node rest = graph_reduce(g, OP_MEAN, reduced, d);
    const Node mean = graph_reduce(g, OP_MEAN, reduced, graph_op(g, OP_MUL, d, d, none));
    const Node over = graph_op(g, OP_MUL, rest, rest, none);
    const Node left = graph_op(g, OP_SUB, mean, finite_part(g, over, over), none);
    return graph_op(g, OP_MAX, left, graph_number(g, TYPE_F32, 0), none);
}

static Node correct_distance(Correction *c, Node n)
{
    Graph *g = c->into;
    const AxisSet reduced = node(c->from, arg(c->from, n, 1))->reduced;
    const Node none = {0}, rest = graph_reduce(g, OP_MEAN, reduced, c->plain[n.id]);
    const Node finite = finite_part(g, rest, graph_op(g, OP_ABS, rest, none, none));
    return graph_op(g, OP_SUB, c->plain[n.id], finite, none);
}

static void rebuild(Correction *c, Node n)
{
    Node args[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = c->map[arg(c->from, n, i).id];
    if (c->squares[n.id]) {
        c->map[n.id] = correct_squares(c, n);
    } else {
        c->plain[n.id] = graph_copy_node(c->into, c->from, n, args);
        c->map[n.id] = c->centred[n.id] ? correct_distance(c, n) : c->plain[n.id];
    }
    const Node named = c->centred[n.id] ? c->plain[n.id] : c->map[n.id];
    graph_name(c->into, named, node(c->from, n)->name, node(c->from, n)->span);
}

static Graph *correct(Arena *arena, const Graph *g, const bool *squares, const bool *centred)
{
    Correction c = {g, graph_like(arena, g), squares, centred, NULL, NULL};
    const bool *live = graph_live(g);
    c.plain = NEW_ARRAY(arena, Node, g->nodes.count);
    c.map = NEW_ARRAY(arena, Node, g->nodes.count);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++)
        if (live[id]) rebuild(&c, (Node){id});
    for (int i = 0; i < g->outputs.count; i++)
        c.into->outputs.data[i].value = c.map[g->outputs.data[i].value.id];
    return c.into;
}

Graph *correct_moments(Arena *arena, const Analysis *a)
{
    const Graph *g = a->graph;
    bool *squares = NEW_ARRAY(arena, bool, g->nodes.count),
         *centred = NEW_ARRAY(arena, bool, g->nodes.count);
    bool any = false;
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        const Node mean = r->partner.id ? (Node){0} : find_partner(g, &a->sizes, r->node);
        if (!mean.id || node(g, mean)->op != OP_MEAN) continue;
        any = squares[r->node.id] = centred[distance_of(g, r->node).id] = true;
    }
    return any ? correct(arena, g, squares, centred) : NULL;
}
