/* reference/moments.c: which means the kernels compute together with the mean of the squares of
 * their distances.
 *
 * The kernels know such a mean m = mean[K](x) more precisely than its f32: x - m contains what m's
 * rounding lost, so its error is in units of the spread of x, not of its distance from 0
 * (docs/reference/language.md). The compiler decides which means these are, so this file asks its simplify()
 * and analyze(). Where K is the columns this holds in one kernel only, the one that computes both;
 * in others x - m is about a rounded m or a plain mean. Which kernels there will be is unknown
 * here. So x - m counts as close to its own value only where everything that is made of it is sure
 * to be in that kernel. */
#include "analyze/analyze.h"
#include "reference/plan.h"
#include "graph/simplify.h"

/* By node id of the simplified graph. */
typedef struct {
    Node mean;    /* of squares about a mean, and of a distance from one: it; of a mean: itself */
    Node squares; /* of a distance: those */
    bool close;   /* of a distance */
} Pairing;

/* Of one part, by node id: what has to be so for a distance to be close. */
typedef struct {
    const Graph *g;
    AxisSet columns;
    const Pairing *pairings;
    bool *first;  /* in the first kernels that walk the rows: its reductions are all over columns */
    bool *stays;  /* so are all that are made of it, with as many rows; squares aside */
    bool *stored; /* such a kernel stores what is made of it, with as many rows */
} Reach;

static AxisSet rows_of(const Reach *r, Node n)
{
    return node(r->g, n)->axes & ~r->columns;
}

static bool ends_kernel(const Reach *r, Node n)
{
    return is_reduction(r->g, n) && node(r->g, n)->reduced != r->columns;
}

static bool is_squares(const Reach *r, Node n)
{
    return is_reduction(r->g, n) && r->pairings[n.id].mean.id && r->pairings[n.id].mean.id != n.id;
}

static void find_first(Reach *r, const bool *live)
{
    for (uint32_t id = 1; id < (uint32_t)r->g->nodes.count; id++) {
        const Node n = {id};
        r->first[id] = r->stays[id] = live[id];
        for (int i = 0; i < op_info[node(r->g, n)->op].arity; i++)
            r->first[id] =
                r->first[id] && r->first[arg(r->g, n, i).id] && !ends_kernel(r, arg(r->g, n, i));
        r->stays[id] = r->first[id];
    }
    for (int i = 0; i < r->g->outputs.count; i++) {
        const Node v = r->g->outputs.data[i].value;
        const AxisSet own = node(r->g, v)->axes & r->columns;
        r->stored[v.id] =
            v.id && r->first[v.id] && !ends_kernel(r, v) && (!own || own == r->columns);
    }
}

static Reach find_reach(Arena *arena, const Graph *g, AxisSet columns, const Pairing *pairings)
{
    const bool *live = graph_live(g);
    Reach r = {g,
               columns,
               pairings,
               NEW_ARRAY(arena, bool, g->nodes.count),
               NEW_ARRAY(arena, bool, g->nodes.count),
               NEW_ARRAY(arena, bool, g->nodes.count)};
    find_first(&r, live);
    for (uint32_t id = (uint32_t)g->nodes.count - 1; id > 0; id--) {
        const Node n = {id};
        for (int i = 0; live[id] && i < op_info[node(g, n)->op].arity; i++) {
            const Node from = arg(g, n, i);
            const bool same = !ends_kernel(&r, n) && rows_of(&r, from) == rows_of(&r, n);
            r.stays[from.id] = r.stays[from.id] && (is_squares(&r, n) || (same && r.stays[id]));
            r.stored[from.id] = r.stored[from.id] || (same && r.stored[id]);
        }
    }
    return r;
}

static Node distance_of(const Graph *g, Node squares)
{
    return arg(g, arg(g, squares, 0), 0);
}

static bool pair_part(Arena *arena, const Analysis *part, Pairing *pairings)
{
    const Graph *g = part->graph;
    LIST(Node) within = {0};
    bool any = false;
    for (int i = 0; i < part->reduction_count; i++) {
        const Node squares = part->reductions[i].node,
                   mean = find_partner(g, &part->sizes, squares);
        if (!mean.id || node(g, mean)->op != OP_MEAN) continue;
        const Node distance = distance_of(g, squares);
        const bool over_columns = part->reductions[i].partner.id;
        any = true;
        pairings[mean.id].mean = pairings[squares.id].mean = mean;
        pairings[distance.id] = (Pairing){mean, squares, !over_columns};
        if (over_columns) *list_push(arena, &within) = distance;
    }
    if (within.count == 0) return any;
    const Reach r = find_reach(arena, g, part->columns, pairings);
    for (int i = 0; i < within.count; i++) {
        Pairing *distance = &pairings[within.data[i].id];
        distance->close = r.stays[within.data[i].id] && r.stored[distance->squares.id];
    }
    return any;
}

static bool is_mean(const Graph *g, Node n)
{
    return node(g, n)->op == OP_MEAN && node(g, n)->type == TYPE_F32;
}

/* x - a mean, if the argument is the mean of its squares; 0: it is not. */
static Node squared_distance(const Graph *g, Node mean)
{
    const NodeInfo *square = node(g, arg(g, mean, 0));
    const Node none = {0}, d = square->args[0];
    const NodeInfo *by = node(g, square->args[1]);
    const bool squares = (square->op == OP_MUL && square->args[1].id == d.id) ||
                         (square->op == OP_POW && by->op == OP_CONST && by->number == 2);
    return is_mean(g, mean) && squares && node(g, d)->op == OP_SUB && is_mean(g, arg(g, d, 1))
               ? d
               : none;
}

static bool has_squares(const Graph *g)
{
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++)
        if (squared_distance(g, (Node){id}).id) return true;
    return false;
}

/* Carries the simplified graph's pairings over to the evaluator's graph, where both write a value
 * alike. */
static void take_over(Plan *p, const Pairing *pairings, const Node *map)
{
    const Graph *g = p->graph;
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        const Node n = {id}, d = squared_distance(g, n);
        const Pairing *own = &pairings[map[id].id];
        if (!own->mean.id) continue;
        const bool subtracts = node(g, n)->op == OP_SUB && map[arg(g, n, 1).id].id == own->mean.id;
        if (is_mean(g, n) && own->mean.id == map[id].id)
            p->moments[id].mean = id;
        else if (subtracts && is_mean(g, arg(g, n, 1)))
            p->moments[id] = (Moments){.mean = arg(g, n, 1).id, .close = own->close};
        else if (d.id && p->moments[d.id].mean)
            p->moments[id] = (Moments){p->moments[d.id].mean, d.id, p->moments[d.id].close};
    }
}

void find_moments(Plan *p)
{
    p->moments = NEW_ARRAY(p->arena, Moments, p->graph->nodes.count);
    if (!p->bounds || !has_squares(p->graph)) return;
    Node *map = NEW_ARRAY(p->arena, Node, p->graph->nodes.count);
    const Graph *simple = simplify_mapped(p->arena, p->graph, NULL, map);
    const Analysis *a = analyze_as_is(p->arena, simple, &p->evaluation->sizes);
    Pairing *pairings = NEW_ARRAY(p->arena, Pairing, simple->nodes.count);
    bool any = false;
    for (int i = 0; i < a->part_count; i++) any |= pair_part(p->arena, a->parts[i], pairings);
    if (a->part_count == 0) any = pair_part(p->arena, a, pairings);
    if (any) take_over(p, pairings, map);
}
