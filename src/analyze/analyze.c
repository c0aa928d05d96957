/* analyze/analyze.c: graph -> analysis. Facts only; schedule/schedule.c makes every decision.
 *
 * A phase ends where an inner reduction's result is needed: everything before the row barrier is
 * phase 0, everything after it phase 1, and so on. A value needed on both sides of a barrier is
 * traced to the inputs it is computed from: those inputs persist, the rest is recomputed. */
#include "analyze/analyze.h"

#include <math.h>

const char *kind_name(ReductionKind kind)
{
    static const char *const names[] = {"inner", "outer", "partial_outer", "full", "mixed"};
    return names[kind];
}

/* The axes of what is computed, and of the outputs it goes to. Axes that only unwanted outputs have
 * would stand between rows and columns. */
AxisSet live_axes(const Graph *g, const bool *live)
{
    AxisSet axes = 0;
    for (int i = 1; i < g->nodes.count; i++)
        if (live[i]) axes |= g->nodes.data[i].axes;
    for (int i = 0; i < g->outputs.count; i++)
        if (g->outputs.data[i].value.id) axes |= g->outputs.data[i].axes;
    return axes;
}

/* The fastest: it has the highest number. */
AxisSet last_of(AxisSet axes)
{
    while (axes & (axes - 1)) axes &= axes - 1;
    return axes;
}

/* Whether every value that has axes has all of these. Otherwise a single number that reduces them
 * is made of one tensor, and the rows of others lie along some of these axes or along none. */
static bool shared_by_all(const Graph *g, const bool *live, AxisSet axes)
{
    for (int i = 1; i < g->nodes.count; i++) {
        AxisSet own = g->nodes.data[i].axes;
        if (live[i] && own && !axes_within(axes, own)) return false;
    }
    return true;
}

/* Whether a suffix of the axes is the columns because a reduction removes exactly it. */
static bool makes_columns(const Graph *g, const bool *live, Node n)
{
    AxisSet reduced = node(g, n)->reduced;
    bool several = reduced & (reduced - 1);
    return node(g, n)->axes || !several || shared_by_all(g, live, reduced);
}

/* By node id: whether a value with all axes is made of it. */
static bool *find_returning(const Graph *g, const bool *live, AxisSet axes)
{
    bool *returning = NEW_ARRAY(g->arena, bool, g->nodes.count);
    for (int i = g->nodes.count - 1; i > 0; i--) {
        const NodeInfo *info = &g->nodes.data[i];
        const bool all = live[i] && (returning[i] || info->axes == axes);
        for (int k = 0; all && k < op_info[info->op].arity; k++) returning[info->args[k].id] = true;
    }
    return returning;
}

/* The fewest axes by size that some reduction of values with all axes removes, wherever they stand,
 * and whose result such values are made of: such a row fits a tile. Of rows beside each other a
 * tile has several, so they are to be short. */
static AxisSet find_scattered(const Graph *g, const Sizes *sizes, const bool *live, AxisSet axes)
{
    enum { MOST_BESIDE = 2048 };
    const AxisSet fastest = last_of(axes);
    const bool *returning = find_returning(g, live, axes);
    AxisSet best = 0;
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!live[i] || !is_reduction(g, n) || node(g, arg(g, n, 0))->axes != axes) continue;
        if (!returning[i]) continue;
        const AxisSet reduced = node(g, n)->reduced;
        const int64_t size = axes_size(sizes, reduced);
        if (reduced == axes || size < 2 || (!(reduced & fastest) && size > MOST_BESIDE)) continue;
        if (!best || size < axes_size(sizes, best)) best = reduced;
    }
    return best;
}

/* The longest proper suffix of the axes that some reduction removes exactly; where there is none,
 * the axes of one that fits a tile all the same; else the last axis. */
AxisSet find_columns(const Graph *g, const Sizes *sizes, const bool *live, AxisSet axes)
{
    for (AxisSet suffix = axes & (axes - 1); suffix; suffix &= suffix - 1)
        for (int i = 1; i < g->nodes.count; i++) {
            Node n = {(uint32_t)i};
            if (live[i] && is_reduction(g, n) && node(g, n)->reduced == suffix &&
                makes_columns(g, live, n))
                return suffix;
        }
    const AxisSet scattered = find_scattered(g, sizes, live, axes);
    return scattered ? scattered : last_of(axes);
}

/* The last axes of tensors of other rows than the graph's, as of x [M, N] that scales t [M, K]. */
static AxisSet find_other_columns(const Analysis *a, const bool *live)
{
    const Graph *g = a->graph;
    AxisSet rows = 0, others = 0;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        if (live[i] && info->op == OP_PARAM && info->axes & a->columns)
            rows |= info->axes & a->rows;
    }
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        const bool several = info->axes & (info->axes - 1);
        if (!live[i] || info->op != OP_PARAM || info->axes & a->columns || !several) continue;
        if (!axes_within(info->axes, rows)) others |= last_of(info->axes) & ~rows;
    }
    return others;
}

static ReductionKind find_kind(const Analysis *a, Node n)
{
    AxisSet reduced = node(a->graph, n)->reduced;
    if (axes_within(reduced, a->columns)) return KIND_INNER;
    if (!node(a->graph, n)->axes) return KIND_FULL;
    if (reduced & a->columns) return KIND_MIXED;
    return reduced == a->rows ? KIND_OUTER : KIND_PARTIAL_OUTER;
}

/* The difference x - r in a reduction's terms exp(x - r) or (x - r)^2; 0: the terms are neither. */
static Node find_difference(const Graph *g, Node term)
{
    const NodeInfo *info = node(g, term);
    bool fits = info->op == OP_EXP || (info->op == OP_MUL && info->args[0].id == info->args[1].id);
    return fits && node(g, info->args[0])->op == OP_SUB ? info->args[0] : (Node){0};
}

/* Which infinities of r a condition excludes, or (contrary) includes: r > -inf, abs(r) < inf, r !=
 * inf, ... */
static unsigned excluded_infinities(const Graph *g, Node condition, Node r, bool contrary)
{
    const NodeInfo *info = node(g, condition);
    Node value = info->args[0], limit = info->args[1];
    bool swapped = info->op != OP_NONE && node(g, value)->op == OP_CONST;
    if (swapped) value = limit, limit = info->args[0];
    bool absolute = node(g, value)->op == OP_ABS;
    if (node(g, limit)->op != OP_CONST || node(g, limit)->type != TYPE_F32 ||
        !isinf(node(g, limit)->number))
        return 0;
    if (value.id != r.id && !(absolute && arg(g, value, 0).id == r.id)) return 0;
    bool low = node(g, limit)->number < 0;
    bool order = info->op == (low != swapped ? OP_GT : OP_LT);
    if (!(contrary ? info->op == OP_EQ : info->op == OP_NE || order) || (absolute && low)) return 0;
    return absolute ? EXCLUDES_LOW | EXCLUDES_HIGH : low ? EXCLUDES_LOW : EXCLUDES_HIGH;
}

/* r of where(r is infinite, 0, r), where the other value is small enough for its exponential; or r
 * itself. `excludes` gets the infinities that it cannot be. */
static Node find_base(const Graph *g, Node by, unsigned *excludes)
{
    const NodeInfo *info = node(g, by);
    *excludes = 0;
    if (info->op != OP_WHERE) return by;
    bool contrary = node(g, info->args[1])->op == OP_CONST;
    Node r = info->args[contrary ? 2 : 1], other = info->args[contrary ? 1 : 2];
    bool finite = node(g, other)->op == OP_CONST && node(g, other)->type == TYPE_F32 &&
                  fabs(node(g, other)->number) <= 1;
    *excludes = finite ? excluded_infinities(g, info->args[0], r, contrary) : 0;
    return *excludes ? r : by;
}

unsigned excluded_of_base(const Graph *g, Node sum)
{
    unsigned excludes;
    find_base(g, arg(g, find_difference(g, arg(g, sum, 0)), 1), &excludes);
    return excludes;
}

/* The mean or maximum of x that is subtracted in the terms of a reduction; 0: there is none. */
static Node compared_partner(const Graph *g, const Sizes *sizes, Node n)
{
    const NodeInfo *info = node(g, n);
    const Node none = {0};
    if (!adds_terms(info->op) || info->type != TYPE_F32) return none;
    Node term = info->args[0], difference = find_difference(g, term);
    if (!difference.id) return none;
    bool squares = node(g, term)->op == OP_MUL;
    unsigned excludes;
    Node partner = squares ? arg(g, difference, 1) : find_base(g, arg(g, difference, 1), &excludes);
    bool same = info->op == (squares ? OP_MEAN : OP_SUM) &&
                node(g, partner)->op == (squares ? OP_MEAN : OP_MAX_OVER) &&
                node(g, partner)->reduced == info->reduced &&
                arg(g, partner, 0).id == arg(g, difference, 0).id;
    /* The sum of no columns is 0, that of nothing but -inf is NaN: both have -inf as maximum. */
    return same && axes_size(sizes, info->reduced) > 0 ? partner : none;
}

/* A partner's terms must be known, so a partner has no partner of its own: where one follows the
 * other, every second one has a partner. The program decides how long such a chain is; only so many
 * links are followed. */
Node find_partner(const Graph *g, const Sizes *sizes, Node n)
{
    enum { FAR = 64 };
    const Node partner = compared_partner(g, sizes, n);
    int count = 0;
    for (Node at = partner; at.id && count < FAR; count++) at = compared_partner(g, sizes, at);
    return count % 2 ? partner : (Node){0};
}

/* A maximum of rows that are neighbours in memory is found before its sum. */
static bool goes_with(const Analysis *a, Node n, Node partner)
{
    return node(a->graph, n)->reduced == a->columns &&
           (!a->beside || node(a->graph, partner)->op == OP_MEAN);
}

/* By node: the reduction in whose phase a reduction over the columns is accumulated, if it has a
 * partner. */
static Node *find_partners(Arena *arena, const Analysis *a)
{
    const Graph *g = a->graph;
    Node *partners = NEW_ARRAY(arena, Node, g->nodes.count);
    bool *taken = NEW_ARRAY(arena, bool, g->nodes.count);
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        Node partner = is_reduction(g, n) ? find_partner(g, &a->sizes, n) : (Node){0};
        if (!partner.id || taken[partner.id] || !goes_with(a, n, partner)) continue;
        taken[partner.id] = true;
        partners[i] = partner;
    }
    return partners;
}

static Node paired_with(const Analysis *a, Node n)
{
    return a->partners[n.id];
}

static int *find_phases(Arena *arena, const Analysis *a)
{
    const Graph *g = a->graph;
    int *phase = NEW_ARRAY(arena, int, g->nodes.count);
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        for (int k = 0; k < op_info[info->op].arity; k++)
            if (phase[info->args[k].id] > phase[i]) phase[i] = phase[info->args[k].id];
        Node n = {(uint32_t)i};
        Node partner = paired_with(a, n);
        if (partner.id)
            phase[i] = phase[partner.id];
        else if (is_reduction(g, n) && find_kind(a, n) == KIND_INNER)
            phase[i]++;
    }
    return phase;
}

static void find_reductions(Arena *arena, Analysis *a, const bool *live)
{
    const Graph *g = a->graph;
    LIST(Reduction) found = {0};
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!live[i] || !is_reduction(g, n)) continue;
        const char *name = node(g, n)->name;
        Node partner = paired_with(a, n);
        *list_push(arena, &found) = (Reduction){
            .node = n,
            .name = name ? name : node_text(arena, g, n, true),
            .kind = find_kind(a, n),
            .phase = a->phase[arg(g, partner.id ? partner : n, 0).id],
            .partner = partner,
            .centre = a->centres[i],
        };
    }
    a->reductions = found.data;
    a->reduction_count = found.count;
}

/* Which phases compute each node: by node id a bit set of phases. A root is computed in its own
 * phase, together with all of its operands down to inputs and reduction results. */
static uint64_t *find_uses(Arena *arena, const Analysis *a, const bool *live)
{
    const Graph *g = a->graph;
    uint64_t *uses = NEW_ARRAY(arena, uint64_t, g->nodes.count);
    for (int i = 0; i < g->outputs.count; i++) {
        uint32_t root = g->outputs.data[i].value.id;
        if (root) uses[root] |= phase_bit(a->phase[root]);
    }
    for (int i = g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!live[i]) continue;
        /* The partner needs this reduction's operands too, in the same phase. */
        if (paired_with(a, n).id) continue;
        for (int k = 0; k < op_info[node(g, n)->op].arity; k++) {
            uint32_t from = arg(g, n, k).id;
            uses[from] |= is_reduction(g, n) ? phase_bit(a->phase[from]) : uses[i];
        }
    }
    return uses;
}

static int64_t param_bytes(const Param *p, const Sizes *sizes, AxisSet over)
{
    return axes_bytes(sizes, p->axes & over, p->dtype);
}

static void find_persistent(Arena *arena, Analysis *a, const bool *live)
{
    const Graph *g = a->graph;
    const uint64_t *uses = find_uses(arena, a, live);
    LIST(Persistent) found = {0};
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        bool several = uses[i] & (uses[i] - 1);
        AxisSet differing = a->rows ? a->rows : a->columns; /* without row axes there is one row */
        if (!live[i] || info->op != OP_PARAM || !several || !(info->axes & differing)) continue;
        const Param *p = &g->params.data[info->param];
        int64_t bytes = param_bytes(p, &a->sizes, a->columns);
        *list_push(arena, &found) =
            (Persistent){.node = {(uint32_t)i}, .name = p->name, .bytes_per_row = bytes};
    }
    a->persistent = found.data;
    a->persistent_count = found.count;
}

static void count_traffic(Analysis *a, const bool *live)
{
    const Graph *g = a->graph;
    AxisSet all = ~(AxisSet)0;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        if (live[i] && info->op == OP_PARAM && !g->params.data[info->param].scalar)
            a->read_bytes =
                add_bytes(a->read_bytes, param_bytes(&g->params.data[info->param], &a->sizes, all));
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        if (o->value.id)
            a->write_bytes = add_bytes(a->write_bytes, axes_bytes(&a->sizes, o->axes, o->dtype));
    }
}

Analysis *analyze_alone(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns)
{
    Analysis *a = NEW(arena, Analysis);
    const bool *live = graph_live(g);
    a->first = a;
    a->graph = g;
    a->sizes = *sizes;
    const AxisSet axes = live_axes(g, live);
    a->columns = columns ? columns & axes : find_columns(g, sizes, live, axes);
    a->rows = axes & ~a->columns;
    a->beside = last_of(axes) & a->rows;
    a->fixed = a->columns | find_other_columns(a, live);
    a->partners = find_partners(arena, a);
    a->centres = find_centres(arena, a);
    a->phase = find_phases(arena, a);
    for (int i = 1; i < g->nodes.count; i++)
        if (live[i] && a->phase[i] >= a->phases) a->phases = a->phase[i] + 1;
    find_reductions(arena, a, live);
    find_persistent(arena, a, live);
    count_traffic(a, live);
    return a;
}

void print_analysis(Text *out, const Analysis *a)
{
    const Graph *g = a->graph;
    line(out, "graph %s", g->name);
    line(out, "rows %s", axes_text(out->arena, g, a->rows));
    line(out, "columns %s", axes_text(out->arena, g, a->columns));
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        line(out, "reduction %s: %s, phase %d, %s%s%s", r->name, kind_name(r->kind), r->phase,
             node_text(out->arena, g, r->node, true), r->partner.id ? ", together with " : "",
             r->partner.id ? node_text(out->arena, g, r->partner, true) : "");
    }
    for (int i = 0; i < a->persistent_count; i++)
        line(out, "persistent %s: %lld bytes a row", a->persistent[i].name,
             (long long)a->persistent[i].bytes_per_row);
    line(out, "phases %d", a->phases);
    line(out, "traffic: read %lld, write %lld bytes", (long long)a->read_bytes,
         (long long)a->write_bytes);
}
