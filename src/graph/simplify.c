/* graph/simplify.c: one walk over the nodes in order, then a copy of the nodes that are still
 * needed. Every rule keeps the IEEE meaning (NaN, infinities, the sign of zero) and the axes of a
 * value: a rule that would drop an operand's axes does not apply. Constants are in graph/fold.c. */
#include "graph/fold.h"
#include "base/map.h"
#include "graph/simplify.h"

#include <math.h>
#include <string.h>

static const Node none = {0};

static bool is_number(const Graph *g, Node n, double value)
{
    const NodeInfo *info = node(g, n);
    double own;
    if (info->op != OP_CONST || info->type == TYPE_BOOL) return false;
    own = info->type == TYPE_I64 ? (double)info->integer : constant_number(info);
    bool sign_matters = type_is_float(info->type);
    return own == value && (!sign_matters || signbit(own) == signbit(value));
}

static bool is_bool(const Graph *g, Node n, bool value)
{
    const NodeInfo *info = node(g, n);
    return info->op == OP_CONST && info->type == TYPE_BOOL && (info->integer != 0) == value;
}

static AxisSet axes_of(const Graph *g, Node n)
{
    return node(g, n)->axes;
}

static Node negate(Graph *g, Node a)
{
    Node folded = fold(g, OP_NEG, a, none, none);
    if (folded.id) return folded;
    return node(g, a)->op == OP_NEG ? arg(g, a, 0) : graph_op(g, OP_NEG, a, none, none);
}

/* x + (-0) is x, but -0 + 0 is 0; for integers there is one zero. */
static Node add(Graph *g, Node a, Node b)
{
    double zero = node(g, a)->type == TYPE_I64 ? 0.0 : -0.0;
    if (is_number(g, a, zero)) return b;
    if (is_number(g, b, zero)) return a;
    if (node(g, b)->op == OP_NEG) return graph_op(g, OP_SUB, a, arg(g, b, 0), none);
    return graph_op(g, OP_ADD, a, b, none);
}

static Node subtract(Graph *g, Node a, Node b)
{
    if (is_number(g, b, 0.0)) return a;
    if (node(g, b)->op == OP_NEG) return graph_op(g, OP_ADD, a, arg(g, b, 0), none);
    return graph_op(g, OP_SUB, a, b, none);
}

static Node multiply(Graph *g, Node a, Node b)
{
    if (is_number(g, a, 1.0)) return b;
    if (is_number(g, b, 1.0)) return a;
    if (is_number(g, a, -1.0)) return negate(g, b);
    if (is_number(g, b, -1.0)) return negate(g, a);
    return graph_op(g, OP_MUL, a, b, none);
}

static Node divide(Graph *g, Node a, Node b)
{
    if (is_number(g, b, 1.0)) return a;
    if (is_number(g, b, -1.0)) return negate(g, a);
    return graph_op(g, OP_DIV, a, b, none);
}

/* x ** 0.5 is not sqrt(x): they differ at -0 and -inf. */
static Node power(Graph *g, Node a, Node b)
{
    if (is_number(g, b, 1.0)) return a;
    Node square = is_number(g, b, 2.0) || is_number(g, b, 3.0) ? multiply(g, a, a) : none;
    if (is_number(g, b, 2.0)) return square;
    if (is_number(g, b, 3.0)) return multiply(g, square, a);
    return graph_op(g, OP_POW, a, b, none);
}

static Node logic(Graph *g, Op op, Node a, Node b)
{
    /* true && x is x, false || x is x; and x && x is x. */
    bool neutral = op == OP_AND;
    if (is_bool(g, a, neutral)) return b;
    if (is_bool(g, b, neutral) || a.id == b.id) return a;
    if (is_bool(g, a, !neutral) && !axes_of(g, b)) return a;
    if (is_bool(g, b, !neutral) && !axes_of(g, a)) return b;
    return graph_op(g, op, a, b, none);
}

static Node choose(Graph *g, Node c, Node a, Node b)
{
    AxisSet all = axes_of(g, c) | axes_of(g, a) | axes_of(g, b);
    if ((is_bool(g, c, true) || a.id == b.id) && axes_of(g, a) == all) return a;
    if (is_bool(g, c, false) && axes_of(g, b) == all) return b;
    if (node(g, c)->op == OP_NOT) return graph_op(g, OP_WHERE, arg(g, c, 0), b, a);
    return graph_op(g, OP_WHERE, c, a, b);
}

Node simplify_op(Graph *g, Op op, Node a, Node b, Node c)
{
    Node folded = fold(g, op, a, b, c);
    if (folded.id) return folded;
    switch (op) {
    case OP_NEG: return negate(g, a);
    case OP_NOT: return node(g, a)->op == OP_NOT ? arg(g, a, 0) : graph_op(g, op, a, b, c);
    case OP_ADD: return add(g, a, b);
    case OP_SUB: return subtract(g, a, b);
    case OP_MUL: return multiply(g, a, b);
    case OP_DIV: return divide(g, a, b);
    case OP_POW: return power(g, a, b);
    case OP_AND:
    case OP_OR: return logic(g, op, a, b);
    case OP_WHERE: return choose(g, a, b, c);
    case OP_CLAMP: return simplify_op(g, OP_MIN, simplify_op(g, OP_MAX, a, b, none), c, none);
    default: return graph_op(g, op, a, b, c);
    }
}

/* ---- casts ---- */

/* Whether every value of a node is already one of a dtype. */
static bool is_stored_as(const Graph *g, Node n, DType dtype)
{
    const NodeInfo *info = node(g, n);
    if (info->op == OP_PARAM) return g->params.data[info->param].dtype == dtype;
    if (info->op == OP_CAST) return info->dtype == dtype;
    return false;
}

Node simplify_convert(Graph *g, Type type, Node a)
{
    Node folded = fold_convert(g, type, a);
    return folded.id ? folded : graph_convert(g, type, a);
}

static Node cast(Graph *g, DType dtype, Node a)
{
    Node folded = fold_cast(g, dtype, a);
    if (folded.id) return folded;
    Type from = node(g, a)->type;
    if (is_stored_as(g, a, dtype)) return a;
    /* Casts to a compute type: nothing, or a conversion that widens. */
    if (dtype == DTYPE_F64) return simplify_convert(g, TYPE_F64, a);
    if ((dtype == DTYPE_F32 && from != TYPE_F64) || (dtype == DTYPE_I64 && from == TYPE_I64))
        return simplify_convert(g, dtype_info[dtype].type, a);
    return graph_cast(g, dtype, a);
}

/* ---- var ---- */

typedef struct {
    Node node;
    const char *name;
    Span span;
} Naming;

typedef struct {
    Graph *from, *into;
    Node *map;            /* by id in `from` */
    LIST(Naming) namings; /* names of nodes made here; they yield to the user's own names */
} Simplify;

static void name_later(Simplify *s, Node n, const char *base, const char *what, Span span)
{
    const char *name = base ? arena_format(s->into->arena, "%s_%s", base, what) : what;
    *list_push(s->into->arena, &s->namings) = (Naming){n, name, span};
}

/* var[K](x) = mean[K](d * d), d = x - mean[K](x). */
static Node expand_var(Simplify *s, const NodeInfo *old, Node x)
{
    Graph *g = s->into;
    const char *base = node(g, x)->name ? node(g, x)->name : old->name;
    Node mean = graph_reduce(g, OP_MEAN, old->reduced, x);
    Node centred = graph_op(g, OP_SUB, x, mean, none);
    name_later(s, mean, base, "mean", old->span);
    name_later(s, centred, base, "centred", old->span);
    Node square = graph_op(g, OP_MUL, centred, centred, none);
    graph_name(g, square, NULL, old->span);
    return graph_reduce(g, OP_MEAN, old->reduced, square);
}

static void take_name(Arena *arena, Map *taken, const char *name)
{
    if (name && name_find(taken, name) < 0) name_add(arena, taken, name, 0);
}

static Map find_taken(const Graph *g)
{
    Map taken = {0};
    for (int i = 0; i < g->params.count; i++) take_name(g->arena, &taken, g->params.data[i].name);
    for (int i = 0; i < g->outputs.count; i++) take_name(g->arena, &taken, g->outputs.data[i].name);
    for (int i = 1; i < g->nodes.count; i++) take_name(g->arena, &taken, g->nodes.data[i].name);
    return taken;
}

static void give_names(Simplify *s)
{
    Arena *arena = s->into->arena;
    Map taken = find_taken(s->into);
    for (int i = 0; i < s->namings.count; i++) {
        const Naming *naming = &s->namings.data[i];
        if (node(s->into, naming->node)->name) continue;
        const char *name = name_free(arena, &taken, naming->name);
        graph_name(s->into, naming->node, name, naming->span);
        take_name(arena, &taken, name);
    }
}

/* ---- the walk ---- */

static Node like_node(Graph *into, const Graph *from, Node n, const Node args[MAX_OPERANDS])
{
    const NodeInfo *old = node(from, n);
    if (old->op == OP_CAST) return cast(into, old->dtype, args[0]);
    if (old->op == OP_CONVERT) return simplify_convert(into, old->type, args[0]);
    OpClass class = op_info[old->op].class;
    if (class == CLASS_LEAF || class == CLASS_REDUCE) return graph_copy_node(into, from, n, args);
    return simplify_op(into, old->op, args[0], args[1], args[2]);
}

Node simplify_node(Graph *g, Node like, const Node operands[MAX_OPERANDS])
{
    return like_node(g, g, like, operands);
}

static Node rebuild(Simplify *s, Node n)
{
    const NodeInfo *old = node(s->from, n);
    Node args[MAX_OPERANDS], pick = none;
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = s->map[old->args[i].id];
    if (old->op == OP_VAR) return expand_var(s, old, args[0]);
    if (op_info[old->op].class == CLASS_REDUCE)
        pick = simplify_pick(s->into, old->op, old->reduced, args[0]);
    return pick.id ? pick : like_node(s->into, s->from, n, args);
}

static Graph *rewrite(Arena *arena, Graph *from, Node *map)
{
    Simplify s = {.from = from, .into = graph_like(arena, from), .map = map};
    const bool *live = graph_live(from);
    for (uint32_t id = 1; id < (uint32_t)from->nodes.count; id++) {
        if (!live[id]) continue;
        s.map[id] = rebuild(&s, (Node){id});
        graph_name(s.into, s.map[id], from->nodes.data[id].name, from->nodes.data[id].span);
    }
    give_names(&s);
    for (int i = 0; i < from->outputs.count; i++)
        s.into->outputs.data[i].value = s.map[from->outputs.data[i].value.id];
    return s.into;
}

/* Copies the nodes that the outputs need. */
static Graph *drop_dead(Arena *arena, const Graph *from, Node *map)
{
    Graph *into = graph_like(arena, from);
    const bool *live = graph_live(from);
    for (uint32_t id = 1; id < (uint32_t)from->nodes.count; id++) {
        Node args[MAX_OPERANDS];
        for (int i = 0; i < MAX_OPERANDS; i++) args[i] = map[from->nodes.data[id].args[i].id];
        if (live[id]) map[id] = graph_copy_node(into, from, (Node){id}, args);
    }
    for (int i = 0; i < from->outputs.count; i++)
        into->outputs.data[i].value = map[from->outputs.data[i].value.id];
    return into;
}

Graph *simplify_mapped(Arena *arena, const Graph *g, const bool *wanted, Node *map)
{
    Graph kept = *g;
    kept.arena = arena;
    kept.outputs.data = NEW_ARRAY(arena, Output, g->outputs.count);
    for (int i = 0; i < g->outputs.count; i++) {
        kept.outputs.data[i] = g->outputs.data[i];
        if (wanted && !wanted[i]) kept.outputs.data[i].value = none;
    }
    const Graph *whole = rewrite(arena, &kept, map);
    Node *left = NEW_ARRAY(arena, Node, whole->nodes.count);
    Graph *live = drop_dead(arena, whole, left);
    for (int id = 1; id < g->nodes.count; id++) map[id] = left[map[id].id];
    return live;
}

Graph *simplify(Arena *arena, const Graph *g, const bool *wanted)
{
    return simplify_mapped(arena, g, wanted, NEW_ARRAY(arena, Node, g->nodes.count));
}
