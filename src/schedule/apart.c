/* schedule/apart.c: reductions inside a row whose result several rows of a kernel share, such as a
 * sum over x [M, N] that values along [M, K] need. Suppose that kernel would have to read more than
 * its own elements for the reduction. It would read them again for each row, so instead a kernel
 * that walks the reduction's own rows computes it and stores it in the workspace. If the kernel has
 * all operands anyway, it computes the reduction itself: another kernel would only read a tensor
 * more. But what other kernels leave is little, and reducing it again for each row takes longer. */
#include "schedule/internal.h"

static AxisSet rows_of(const Scheduler *s, Node n)
{
    return node(s->g, n)->axes & s->a->rows;
}

/* Whether it is a reduction BY_ROW. */
static bool is_in_row(const Scheduler *s, Node n)
{
    return is_reduction(s->g, n) && reduction_way(s, n) == BY_ROW;
}

/* What is read, by the columns: a tensor, or what another kernel leaves. */
static bool is_source(const Scheduler *s, Node n)
{
    bool left = node(s->g, n)->op == OP_PARAM || (is_reduction(s->g, n) && !is_in_row(s, n));
    return left && node(s->g, n)->axes & s->a->columns;
}

/* Marks what has to be computed to compute a node, not counting rows that a pick reads one element
 * of. */
static void mark_operands(const Scheduler *s, Node n, bool *marks)
{
    Node place = is_reduction(s->g, n) ? place_of_pick(s, n) : (Node){0};
    if (place.id) {
        marks[place.id] = true;
        return;
    }
    for (int i = 0; i < op_info[node(s->g, n)->op].arity; i++) marks[arg(s->g, n, i).id] = true;
}

/* A kernel that computes rows, by what it has to compute at last. */
typedef struct {
    AxisSet rows;
    int level;
} Walk;

/* What such a kernel has to compute at last for an output, or for a sum over all rows, and which
 * kernel it is; 0: none has. */
static Node root_of(const Scheduler *s, Node n, bool stored, Walk *walk)
{
    bool reduces = is_reduction(s->g, n) && !is_in_row(s, n);
    bool rides = !stored && reduces && reduction_way(s, n) == BY_RIDING;
    Node root = stored && !reduces ? n : rides ? arg(s->g, n, 0) : (Node){0};
    *walk = (Walk){rows_of(s, root), stored ? s->level[root.id] : s->home[n.id]};
    return root;
}

/* The roots one after the other: first of outputs, then of sums; 0: there is none of that number.
 */
static Node root_at(const Scheduler *s, int number, Walk *walk)
{
    const int outputs = s->g->outputs.count;
    if (number < outputs) return root_of(s, s->g->outputs.data[number].value, true, walk);
    Node n = {(uint32_t)(number - outputs)};
    return s->live[n.id] ? root_of(s, n, false, walk) : (Node){0};
}

static int root_numbers(const Scheduler *s)
{
    return s->g->outputs.count + s->g->nodes.count;
}

static bool is_same(Walk a, Walk b)
{
    return a.rows == b.rows && a.level == b.level;
}

static void mark_roots(const Scheduler *s, Walk walk, bool *marks)
{
    Walk own;
    for (int i = 0; i < root_numbers(s); i++) {
        Node root = root_at(s, i, &own);
        if (root.id && is_same(own, walk)) marks[root.id] = true;
    }
}

/* Adds the reductions of fewer rows for which a kernel would read more; true: there are some. */
static bool find_apart(const Scheduler *s, Walk walk, bool *apart)
{
    const Graph *g = s->g;
    const AxisSet rows = walk.rows;
    bool found = false;
    bool *needed = NEW_ARRAY(s->arena, bool, g->nodes.count),
         *more = NEW_ARRAY(s->arena, bool, g->nodes.count),
         *reads = NEW_ARRAY(s->arena, bool, g->nodes.count); /* tensors */
    mark_roots(s, walk, needed);
    for (int i = g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        bool fewer = is_in_row(s, n) && rows_of(s, n) != rows;
        if (needed[i] && !fewer && !is_source(s, n)) mark_operands(s, n, needed);
    }
    for (int i = 1; i < g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i]) continue;
        more[i] = is_source(s, n) && !needed[i];
        reads[i] = is_source(s, n) && node(g, n)->op == OP_PARAM;
        bool ends =
            is_source(s, n) || (is_reduction(g, n) && (!is_in_row(s, n) || place_of_pick(s, n).id));
        for (int k = 0; !ends && k < op_info[node(g, n)->op].arity; k++) {
            more[i] |= more[arg(g, n, k).id];
            reads[i] |= reads[arg(g, n, k).id];
        }
        bool own = rows_of(s, n) == rows || s->home[i] < walk.level;
        if (!needed[i] || own || apart[i] || !is_in_row(s, n)) continue;
        const Node operand = arg(s->g, n, 0);
        const bool again = rows_of(s, operand) != rows && !reads[operand.id];
        if (!more[i] && !again) continue;
        apart[i] = found = true;
    }
    return found;
}

/* Sets it for what is made of those, too, up to where kernels end. */
static void spread_apart(Scheduler *s, const bool *apart)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        s->apart[i] = apart[i];
        if (is_reduction(s->g, n) && !is_in_row(s, n)) continue;
        for (int k = 0; k < op_info[node(s->g, n)->op].arity; k++)
            s->apart[i] |= s->apart[arg(s->g, n, k).id];
    }
}

/* One round over all kernels that there would be. */
static bool find_more(const Scheduler *s, bool *apart)
{
    enum { MOST_WALKS = 32 };
    Walk walks[MOST_WALKS], walk;
    int count = 0;
    bool found = false;
    for (int i = 0; i < root_numbers(s); i++) {
        if (!root_at(s, i, &walk).id) continue;
        int at = 0;
        while (at < count && !is_same(walks[at], walk)) at++;
        if (at < count || count == MOST_WALKS) continue;
        walks[count++] = walk;
        found |= find_apart(s, walk, apart);
    }
    return found;
}

/* What is apart makes kernels later, and so others that have less. */
void find_reductions_apart(Scheduler *s)
{
    enum { MOST_ROUNDS = 4 };
    bool *apart = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    s->apart = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 0; i < MOST_ROUNDS; i++) {
        find_levels(s, false);
        if (!find_more(s, apart)) return;
        spread_apart(s, apart);
    }
}

bool leaves_apart(const Scheduler *s, Node n, Node user)
{
    return s->apart[n.id] && rows_of(s, user) & ~rows_of(s, n);
}
