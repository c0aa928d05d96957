/* schedule/finished.c: which values are computed where the reductions end that they are made of,
 * and not again by each kernel that needs them. They depend only on reductions of one kernel,
 * earlier ones, column vectors and numbers, and have the axes of those reductions.
 *
 *   sums over rows         the finish kernel stores the outputs among them, and those that others
 *                          need
 *   reductions by          so does the kernel of the reductions
 *   themselves
 *   reductions in rows     their kernel stores those that others need, unless the others reduce the
 *                          rows themselves */
#include "schedule/internal.h"

/* What a value is made of, by its id: no sums; at last those that end with the one of this id;
 * others. */
static const uint32_t NO_SUMS = 0, MIXED = UINT32_MAX;

bool end_together(const Scheduler *s, Node a, Node b)
{
    const NodeInfo *one = node(s->g, a), *other = node(s->g, b);
    const Way way = reduction_way(s, a);
    const AxisSet from = node(s->g, one->args[0])->axes, with = node(s->g, other->args[0])->axes;
    const bool alike = way == BY_ITSELF ? one->reduced == other->reduced
                                        : !((from ^ with) & s->a->rows) &&
                                              columns_of(s, from) == columns_of(s, with);
    return way == reduction_way(s, b) && s->home[a.id] == s->home[b.id] &&
           one->axes == other->axes && alike;
}

/* One of each that end together, as far as they are known. A program may have as many as it has
 * reductions, but few on a level. */
typedef struct {
    uint32_t *newest; /* by level; 0: none */
    uint32_t *older;  /* by node id, on the same level */
} Firsts;

/* The first of those that end together with a sum. */
static uint32_t find_first(const Scheduler *s, const Firsts *firsts, Node n)
{
    uint32_t *newest = &firsts->newest[s->home[n.id]];
    for (uint32_t id = *newest; id; id = firsts->older[id])
        if (end_together(s, (Node){id}, n)) return id;
    firsts->older[n.id] = *newest;
    return *newest = n.id;
}

/* Of a level, reductions by themselves are there before sums over rows end. */
static bool is_there_before(const Scheduler *s, Node n, Node end)
{
    if (s->home[n.id] != s->home[end.id]) return s->home[n.id] < s->home[end.id];
    return reduction_way(s, n) == BY_ITSELF && reduction_way(s, end) != BY_ITSELF;
}

/* Where sums of two kernels meet, the later one goes on. */
static uint32_t join(const Scheduler *s, uint32_t a, uint32_t b)
{
    if (a == NO_SUMS || a == b || b == MIXED) return b;
    if (b == NO_SUMS || a == MIXED) return a;
    return is_there_before(s, (Node){b}, (Node){a})   ? a
           : is_there_before(s, (Node){a}, (Node){b}) ? b
                                                      : MIXED;
}

/* By node id, for reductions in rows (`in_rows`), or for all others. The former's kernel may read
 * any other reduction that is there in time; what is made of reductions in rows no other kernel
 * finishes. */
static uint32_t *find_sums(const Scheduler *s, bool in_rows)
{
    const Graph *g = s->g;
    uint32_t *of = NEW_ARRAY(s->arena, uint32_t, g->nodes.count);
    const Firsts firsts = {NEW_ARRAY(s->arena, uint32_t, g->nodes.count + 1),
                           NEW_ARRAY(s->arena, uint32_t, g->nodes.count)};
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        if (!s->live[i]) continue;
        if (is_reduction(g, n)) {
            const bool own = in_rows == (reduction_way(s, n) == BY_ROW);
            of[i] = own ? find_first(s, &firsts, n) : in_rows ? NO_SUMS : MIXED;
            continue;
        }
        for (int k = 0; k < op_info[node(g, n)->op].arity; k++)
            of[i] = join(s, of[i], of[arg(g, n, k).id]);
        if (of[i] == NO_SUMS || of[i] == MIXED) continue;
        const bool late = in_rows && s->level[i] > s->home[of[i]];
        if (late || node(g, n)->axes != node(g, (Node){of[i]})->axes) of[i] = MIXED;
    }
    return of;
}

/* Whether a value is no reduction, and made of those of one kernel. */
static bool is_made(const Graph *g, const uint32_t *of, int value)
{
    return of[value] != NO_SUMS && of[value] != MIXED && !is_reduction(g, (Node){(uint32_t)value});
}

/* Whether computing a value again, where it is used, would take a costly operation, or several
 * loads; and of one load the node. By node id. */
typedef struct {
    bool *costly;
    uint32_t *leaf; /* 0: it loads nothing; MIXED: several */
} Effort;

static Effort find_effort(const Scheduler *s, const uint32_t *of)
{
    const Graph *g = s->g;
    Effort e = {NEW_ARRAY(s->arena, bool, g->nodes.count),
                NEW_ARRAY(s->arena, uint32_t, g->nodes.count)};
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        const bool leaf = is_reduction(g, (Node){(uint32_t)i}) || info->op == OP_PARAM;
        if (leaf) e.leaf[i] = info->axes ? (uint32_t)i : 0;
        if (leaf) continue;
        e.costly[i] = op_info[info->op].cost != COST_CHEAP;
        for (int k = 0; k < op_info[info->op].arity; k++) {
            const uint32_t from = info->args[k].id;
            e.costly[i] |= of[from] != NO_SUMS && e.costly[from];
            e.leaf[i] = e.leaf[i] && e.leaf[from] && e.leaf[i] != e.leaf[from] ? MIXED
                        : e.leaf[i]                                            ? e.leaf[i]
                                                                               : e.leaf[from];
        }
    }
    return e;
}

/* Marks the values that other kernels take from memory: where that saves them something. */
static bool *find_passed(const Scheduler *s, const uint32_t *of)
{
    const Graph *g = s->g;
    const Effort effort = find_effort(s, of);
    bool *passed = NEW_ARRAY(s->arena, bool, g->nodes.count);
    bool *used = NEW_ARRAY(s->arena, bool, g->nodes.count); /* by those other kernels */
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        for (int k = 0; s->live[i] && k < op_info[node(g, n)->op].arity; k++) {
            const uint32_t from = arg(g, n, k).id;
            used[from] |= of[i] == MIXED || is_reduction(g, n) || of[i] != of[from];
        }
    }
    for (int i = 1; i < g->nodes.count; i++) {
        if (!used[i] || !is_made(g, of, i) || g->nodes.data[i].type == TYPE_BOOL) continue;
        const uint32_t leaf = effort.leaf[i];
        passed[i] = effort.costly[i] || leaf == MIXED || !used[leaf];
    }
    return passed;
}

void find_finished(Scheduler *s)
{
    const uint32_t *of = find_sums(s, false);
    s->finished = NEW_ARRAY(s->arena, Node, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++)
        if (is_made(s->g, of, i)) s->finished[i] = (Node){of[i]};
    s->passed = find_passed(s, of);
}

void find_left(Scheduler *s)
{
    const uint32_t *of = find_sums(s, true);
    const bool *passed = find_passed(s, of);
    s->left_by = NEW_ARRAY(s->arena, Node, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++)
        if (passed[i]) s->left_by[i] = (Node){of[i]};
}

bool is_finish_load(const Scheduler *s, Node own, Node n)
{
    if (is_reduction(s->g, n)) return is_there_before(s, n, own);
    return is_tensor(s->g, n) || (s->passed[n.id] && s->finished[n.id].id != own.id);
}

static bool is_computed_by_finish(const Scheduler *s, Node own, Node n)
{
    return !is_reduction(s->g, n) && !is_finish_load(s, own, n);
}

void find_finish_needs(const Scheduler *s, Node own, bool *needed)
{
    for (int i = s->g->nodes.count - 1; i > 0; i--) {
        const Node n = {(uint32_t)i};
        if (!needed[i] || !is_computed_by_finish(s, own, n)) continue;
        for (int j = 0; j < op_info[node(s->g, n)->op].arity; j++)
            needed[arg(s->g, n, j).id] = true;
    }
}

void find_finish_contents(Scheduler *s, int kernel)
{
    const Graph *g = s->g;
    const Node own = s->kernels.data[kernel].accumulators[0].node;
    bool *needed = NEW_ARRAY(s->arena, bool, g->nodes.count);
    Kernel *k = &s->kernels.data[kernel];
    k->computed = NEW_ARRAY(s->arena, bool, g->nodes.count);
    for (int i = 0; i < k->store_count; i++) needed[k->stores[i].node.id] = true;
    find_finish_needs(s, own, needed);
    for (int i = 1; i < g->nodes.count; i++) {
        k->computed[i] = needed[i] && is_computed_by_finish(s, own, (Node){(uint32_t)i});
        if (needed[i] && is_finish_load(s, own, (Node){(uint32_t)i}))
            add_load(s, kernel, (Node){(uint32_t)i});
        k = &s->kernels.data[kernel];
    }
    for (int i = 0; i < k->load_count; i++)
        if (k->columns) k->loads[i].access = ACCESS_ELEMENT;
}
