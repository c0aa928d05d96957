/* analyze/moments.c: means of squares about a mean, q = mean[K](d * d) with d = x - mean[K](x), where
 * K is not the columns.
 *
 * A value that depends on such a mean sees it rounded to f32. Where x is far from 0, the rounding is
 * large in units of d. The rounding error is the mean of d, r = mean[K](d), which is small, so f32
 * holds it. So d becomes d - r. (Within rows the helpers of codegen/prelude/ do the same.)
 *
 * Over rows one kernel computes the mean, the squares about it and r, in one pass. Over some of the
 * columns, or where rows are neighbours in memory, the squares are about the rounded mean, and q
 * becomes q - r * r. */
#include "analyze/analyze.h"

#include <math.h>

typedef struct {
    const Graph *from;
    Graph *into;
    const bool *squares; /* by node id: whether it is such a q */
    const bool *found;   /* by node id: whether it is, and found with its mean */
    const bool *centred; /* by node id: whether it is the d of one */
    Node *plain, *map;   /* by node id: the node that replaces it in squares, and elsewhere */
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

static Node correct_distance(Correction *c, Node n)
{
    Graph *g = c->into;
    const Node mean = arg(c->from, n, 1), none = {0};
    const Node lacks = graph_reduce(g, OP_MEAN, node(c->from, mean)->reduced, c->plain[n.id]);
    const Node rest = finite_part(g, lacks, graph_op(g, OP_ABS, lacks, none, none));
    const char *name = node(c->from, mean)->name;
    graph_name(g, rest, arena_format(g->arena, "%s_rest", name ? name : "mean"),
               node(c->from, mean)->span);
    return graph_op(g, OP_SUB, c->plain[n.id], rest, none);
}

/* The plain distances, by which squares are recognized. Clamps at 0, because rounding may leave less
 * than nothing. */
static Node correct_squares(Correction *c, Node q)
{
    Graph *g = c->into;
    const AxisSet reduced = node(c->from, q)->reduced;
    const Node none = {0}, d = c->plain[distance_of(c->from, q).id];
    const Node mean = graph_reduce(g, OP_MEAN, reduced, graph_op(g, OP_MUL, d, d, none));
    if (c->found[q.id]) return mean;
    const Node rest = graph_reduce(g, OP_MEAN, reduced, d);
    const Node over = graph_op(g, OP_MUL, rest, rest, none);
    const Node left = graph_op(g, OP_SUB, mean, finite_part(g, over, over), none);
    return graph_op(g, OP_MAX, left, graph_number(g, TYPE_F32, 0), none);
}

/* The mean of which a value is the mean distance of the same terms; 0: it is none. */
static Node mean_of_rest(const Graph *g, Node n)
{
    const NodeInfo *info = node(g, n), *d = node(g, info->args[0]), *mean = node(g, d->args[1]);
    bool rest = info->op == OP_MEAN && d->op == OP_SUB && mean->op == OP_MEAN &&
                mean->reduced == info->reduced && mean->args[0].id == d->args[0].id;
    return rest ? d->args[1] : (Node){0};
}

static void rebuild(Correction *c, Node n)
{
    Node args[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = c->map[arg(c->from, n, i).id];
    if (mean_of_rest(c->from, n).id) args[0] = c->plain[arg(c->from, n, 0).id];
    if (c->squares[n.id]) {
        c->map[n.id] = correct_squares(c, n);
    } else {
        c->plain[n.id] = graph_copy_node(c->into, c->from, n, args);
        c->map[n.id] = c->centred[n.id] ? correct_distance(c, n) : c->plain[n.id];
    }
    const Node named = c->centred[n.id] ? c->plain[n.id] : c->map[n.id];
    graph_name(c->into, named, node(c->from, n)->name, node(c->from, n)->span);
}

static Graph *correct(Arena *arena, const Graph *g, const bool *squares, const bool *found,
                      const bool *centred)
{
    Correction c = {g, graph_like(arena, g), squares, found, centred, NULL, NULL};
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
         *found = NEW_ARRAY(arena, bool, g->nodes.count),
         *centred = NEW_ARRAY(arena, bool, g->nodes.count);
    bool any = false;
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        const Node mean = r->partner.id ? (Node){0} : find_partner(g, &a->sizes, r->node);
        if (!mean.id || node(g, mean)->op != OP_MEAN) continue;
        any = squares[r->node.id] = centred[distance_of(g, r->node).id] = true;
        found[r->node.id] = r->centre.id != 0;
    }
    return any ? correct(arena, g, squares, found, centred) : NULL;
}

const Node *find_centres(Arena *arena, const Analysis *a)
{
    const Graph *g = a->graph;
    const bool *live = graph_live(g);
    Node *centres = NEW_ARRAY(arena, Node, g->nodes.count);
    bool *has_squares = NEW_ARRAY(arena, bool, g->nodes.count);
    if (a->beside) return centres;
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        if (!live[i] || !is_reduction(g, n) || !(node(g, n)->reduced & a->rows)) continue;
        const Node mean = find_partner(g, &a->sizes, n);
        if (!mean.id || node(g, mean)->op != OP_MEAN) continue;
        centres[i] = mean;
        has_squares[mean.id] = true;
    }
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i}, mean = live[i] ? mean_of_rest(g, n) : (Node){0};
        if (mean.id && has_squares[mean.id]) centres[i] = mean;
    }
    return centres;
}
