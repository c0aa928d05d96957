/* analyze/split.c: reductions over rows and columns that stand between each other, as the mean over S
 * and C of [B, S, G, C]. Where the columns are all axes behind the last of those rows (G, C), such a
 * reduction is one over rows and then one over part of a row: mean[C](mean[S](x)). The first rides
 * on a pass that reads whole lines of memory; the second has little left to do.
 *
 * Squares about such a mean m are joined by their parts' (Chan, Golub, LeVeque 1979): with m_S and q_S
 * of each column, q = mean[C](q_S + (m_S - m)^2). What the f32 of m and m_S lack is taken into account,
 * as analyze/moments.c does. */
#include "analyze/analyze.h"

#include <math.h>

typedef struct {
    const Graph *from;
    Graph *into;
    const Sizes *sizes;
    AxisSet columns;
    const Node
        *mean_of; /* by node id: of mixed squares about a mean, and of the distance from it: it */
    Node *map;
} Split;

static AxisSet row_part(const Split *s, Node n)
{
    return node(s->from, n)->reduced & ~s->columns;
}

static bool is_mixed(const Split *s, Node n)
{
    const NodeInfo *info = node(s->from, n);
    return is_reduction(s->from, n) && info->type == TYPE_F32 && row_part(s, n) &&
           info->reduced & s->columns;
}

/* The axes behind the last row that a reduction takes beside columns; 0: it takes none. */
static AxisSet columns_behind(AxisSet axes, AxisSet reduced)
{
    AxisSet holes = axes & ~reduced, behind = 0;
    while (holes) {
        const AxisSet first = holes & -holes;
        if (reduced & (first - 1)) behind = axes & ~(first - 1);
        holes &= holes - 1;
    }
    if (!behind) return 0;
    AxisSet below = reduced & ~behind; /* the highest of these ends the rows */
    while (below & (below - 1)) below &= below - 1;
    return axes & ~(below | (below - 1));
}

AxisSet find_split(const Graph *g, const bool *live, AxisSet axes)
{
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        if (!live[i] || !is_reduction(g, n) || node(g, n)->type != TYPE_F32) continue;
        if (node(g, arg(g, n, 0))->axes != axes) continue;
        const AxisSet columns = columns_behind(axes, node(g, n)->reduced);
        if (columns & node(g, n)->reduced) return columns;
    }
    return 0;
}

static Node square(Graph *g, Node x)
{
    return graph_op(g, OP_MUL, x, x, (Node){0});
}

static Node subtract(Graph *g, Node x, Node y)
{
    return graph_op(g, OP_SUB, x, y, (Node){0});
}

/* A reduction over rows and then over columns. */
static Node nest(Split *s, Node n, AxisSet first)
{
    const NodeInfo *info = node(s->from, n);
    const Node rows = graph_reduce(s->into, info->op, first, s->map[info->args[0].id]);
    return graph_reduce(s->into, info->op, info->reduced & ~first, rows);
}

static Node mean_of_rows(Split *s, Node mean)
{
    return graph_reduce(s->into, OP_MEAN, row_part(s, mean), s->map[arg(s->from, mean, 0).id]);
}

/* How far a column's mean over rows is from m, with what its f32 lacks. */
static Node distance_of_part(Split *s, Node mean)
{
    Graph *g = s->into;
    const Node own = mean_of_rows(s, mean), x = s->map[arg(s->from, mean, 0).id];
    const Node lacks = graph_reduce(g, OP_MEAN, row_part(s, mean), subtract(g, x, own));
    return graph_op(g, OP_ADD, subtract(g, own, s->map[mean.id]), lacks, (Node){0});
}

/* What the f32 of m lacks. */
static Node rest_of(Split *s, Node mean)
{
    const AxisSet columns = node(s->from, mean)->reduced & s->columns;
    return graph_reduce(s->into, OP_MEAN, columns, distance_of_part(s, mean));
}

/* x where `compared` is below infinity, else 0. */
static Node finite_part(Graph *g, Node x, Node compared)
{
    const Node below = graph_op(g, OP_LT, compared, graph_number(g, TYPE_F32, HUGE_VAL), (Node){0});
    return graph_op(g, OP_WHERE, below, x, graph_number(g, TYPE_F32, 0));
}

static Node join_squares(Split *s, Node mean)
{
    Graph *g = s->into;
    const AxisSet columns = node(s->from, mean)->reduced & s->columns;
    const Node none = {0}, own = mean_of_rows(s, mean), x = s->map[arg(s->from, mean, 0).id];
    const Node squares =
        graph_reduce(g, OP_MEAN, row_part(s, mean), square(g, subtract(g, x, own)));
    const Node both = graph_op(g, OP_ADD, squares, square(g, distance_of_part(s, mean)), none);
    const Node over = square(g, rest_of(s, mean));
    const Node left =
        subtract(g, graph_reduce(g, OP_MEAN, columns, both), finite_part(g, over, over));
    return graph_op(g, OP_MAX, left, graph_number(g, TYPE_F32, 0), none);
}

/* x - m less what the f32 of m lacks, if that is finite. */
static Node centre(Split *s, Node mean)
{
    Graph *g = s->into;
    const Node none = {0}, rest = rest_of(s, mean), x = s->map[arg(s->from, mean, 0).id];
    const Node less = finite_part(g, rest, graph_op(g, OP_ABS, rest, none, none));
    return subtract(g, subtract(g, x, s->map[mean.id]), less);
}

/* The rows that all mixed reductions take; 0: they differ. */
static AxisSet common_rows(const Split *s, const bool *live)
{
    AxisSet rows = 0;
    for (int i = 1; i < s->from->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        if (!live[i] || !is_mixed(s, n)) continue;
        if (rows && rows != row_part(s, n)) return 0;
        rows = row_part(s, n);
    }
    return rows;
}

/* What takes these rows and others can have them from the same pass. */
static bool takes_more(const Split *s, Node n, AxisSet rows)
{
    const NodeInfo *info = node(s->from, n);
    return rows && is_reduction(s->from, n) && info->type == TYPE_F32 &&
           !(info->reduced & s->columns) && axes_within(rows, info->reduced) &&
           info->reduced != rows && axes_within(s->columns, node(s->from, info->args[0])->axes);
}

static Node rebuild(Split *s, Node n, AxisSet rows)
{
    const Node mean = s->mean_of[n.id];
    Node args[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = s->map[arg(s->from, n, i).id];
    if (mean.id && is_reduction(s->from, n)) return join_squares(s, mean);
    if (mean.id) return centre(s, mean);
    if (is_mixed(s, n)) return nest(s, n, row_part(s, n));
    return takes_more(s, n, rows) ? nest(s, n, rows) : graph_copy_node(s->into, s->from, n, args);
}

/* By node id: mixed squares and the distances that they are of. */
static const Node *find_means(Arena *arena, const Split *s)
{
    Node *means = NEW_ARRAY(arena, Node, s->from->nodes.count);
    for (int i = 1; i < s->from->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        const Node mean = is_mixed(s, n) ? find_partner(s->from, s->sizes, n) : (Node){0};
        if (!mean.id || node(s->from, mean)->op != OP_MEAN) continue;
        means[i] = means[arg(s->from, arg(s->from, n, 0), 0).id] = mean;
    }
    return means;
}

Graph *split_reductions(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns)
{
    Split s = {
        g, graph_like(arena, g), sizes, columns, NULL, NEW_ARRAY(arena, Node, g->nodes.count)};
    const bool *live = graph_live(g);
    s.mean_of = find_means(arena, &s);
    const AxisSet rows = common_rows(&s, live);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        if (!live[id]) continue;
        s.map[id] = rebuild(&s, (Node){id}, rows);
        graph_name(s.into, s.map[id], g->nodes.data[id].name, g->nodes.data[id].span);
    }
    for (int i = 0; i < g->outputs.count; i++)
        s.into->outputs.data[i].value = s.map[g->outputs.data[i].value.id];
    return s.into;
}
