/* graph/graph.c: the builder that every pass uses. It hash-conses, so equal expressions become one
 * node. It derives each node's type and axes from its operands. verify_graph checks the invariants
 * of graph/graph.h, after each pass in debug builds. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const OpInfo op_info[OP_COUNT] = {
#define OP(name, text, arity, class, prec, f32, f64, i64, err, cost, doc)                          \
    [OP_##name] = {#name, text, arity, CLASS_##class, prec, {f32, f64, i64}, err, COST_##cost, doc},
#include "graph/ops.def"
};

const Combine op_combine[OP_COUNT] = {
#define REDUCTION(name, text, combiner, err, doc) [OP_##name] = COMBINE_##combiner,
#include "graph/ops.def"
};

const CombinerInfo combiner_info[COMBINE_COUNT] = {
#define COMBINER(name, helper, functor, id, int_id, floats, ints, wraps, rule)                     \
    [COMBINE_##name] = {helper, functor, id, int_id, floats, ints, wraps, RULE_##rule},
#include "graph/ops.def"
};

/* What makes two nodes equal; axes follow from it. */
typedef struct {
    uint32_t op, type;
    uint32_t args[MAX_OPERANDS];
    uint32_t zero;
    uint64_t payload;
} Identity;

static Identity identity(const NodeInfo *info)
{
    Identity key = {.op = info->op, .type = info->type};
    for (int i = 0; i < MAX_OPERANDS; i++) key.args[i] = info->args[i].id;
    memcpy(&key.payload, &info->integer, sizeof key.payload);
    return key;
}

static void insert(Graph *g, uint32_t id)
{
    Identity key = identity(&g->nodes.data[id]);
    uint32_t mask = g->bucket_count - 1;
    uint32_t at = (uint32_t)XXH3_64bits(&key, sizeof key) & mask;
    while (g->buckets[at]) at = (at + 1) & mask;
    g->buckets[at] = id;
}

/* Keeps the table at most half full. */
static void grow_table(Graph *g)
{
    if ((uint32_t)g->nodes.count * 2 < g->bucket_count) return;
    g->bucket_count = g->bucket_count ? g->bucket_count * 2 : 256;
    g->buckets = NEW_ARRAY(g->arena, uint32_t, g->bucket_count);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) insert(g, id);
}

static Node find_or_add(Graph *g, const NodeInfo *info)
{
    Identity key = identity(info);
    uint32_t mask = g->bucket_count - 1;
    uint32_t at = (uint32_t)XXH3_64bits(&key, sizeof key) & mask;
    for (; g->buckets[at]; at = (at + 1) & mask) {
        Identity other = identity(&g->nodes.data[g->buckets[at]]);
        if (memcmp(&key, &other, sizeof key) == 0) return (Node){g->buckets[at]};
    }
    Node new = {(uint32_t)g->nodes.count};
    *list_push(g->arena, &g->nodes) = *info;
    g->buckets[at] = new.id;
    grow_table(g);
    return new;
}

/* A node whose unused bits are zero, so that equal nodes are equal byte by byte. */
static NodeInfo blank(Op op, Type type, AxisSet axes)
{
    NodeInfo info;
    memset(&info, 0, sizeof info);
    info.op = op;
    info.type = type;
    info.axes = axes;
    return info;
}

Graph *graph_new(Arena *arena)
{
    Graph *g = NEW(arena, Graph);
    g->arena = arena;
    *list_push(arena, &g->nodes) = blank(OP_NONE, TYPE_F32, 0);
    grow_table(g);
    return g;
}

Node graph_number(Graph *g, Type type, double value)
{
    NodeInfo info = blank(OP_CONST, type, 0);
    info.number = value;
    return find_or_add(g, &info);
}

Node graph_integer(Graph *g, Type type, int64_t value)
{
    NodeInfo info = blank(OP_CONST, type, 0);
    info.integer = value;
    return find_or_add(g, &info);
}

Node graph_param(Graph *g, uint32_t param)
{
    const Param *p = &g->params.data[param];
    NodeInfo info = blank(OP_PARAM, dtype_info[p->dtype].type, p->axes);
    info.param = param;
    Node n = find_or_add(g, &info);
    graph_name(g, n, p->name, p->span);
    return n;
}

static Node axis_leaf(Graph *g, Op op, uint32_t axis, AxisSet axes)
{
    NodeInfo info = blank(op, TYPE_I64, axes);
    info.axis = axis;
    return find_or_add(g, &info);
}

Node graph_index(Graph *g, uint32_t axis)
{
    return axis_leaf(g, OP_INDEX, axis, (AxisSet)1 << axis);
}

Node graph_size(Graph *g, uint32_t axis)
{
    return axis_leaf(g, OP_SIZE, axis, 0);
}

static bool gives_bool(Op op)
{
    return (op >= OP_EQ && op <= OP_OR) || op == OP_NOT || op == OP_ISNAN;
}

Node graph_op(Graph *g, Op op, Node a, Node b, Node c)
{
    Type type = gives_bool(op) ? TYPE_BOOL : node(g, op == OP_WHERE ? b : a)->type;
    NodeInfo info = blank(op, type, node(g, a)->axes | node(g, b)->axes | node(g, c)->axes);
    info.args[0] = a;
    info.args[1] = b;
    info.args[2] = c;
    return find_or_add(g, &info);
}

Node graph_convert(Graph *g, Type type, Node a)
{
    if (node(g, a)->type == type) return a;
    NodeInfo info = blank(OP_CONVERT, type, node(g, a)->axes);
    info.args[0] = a;
    return find_or_add(g, &info);
}

Node graph_cast(Graph *g, DType dtype, Node a)
{
    NodeInfo info = blank(OP_CAST, dtype_info[dtype].type, node(g, a)->axes);
    info.args[0] = a;
    info.dtype = dtype;
    return find_or_add(g, &info);
}

Node graph_reduce(Graph *g, Op op, AxisSet reduced, Node a)
{
    NodeInfo info = blank(op, node(g, a)->type, node(g, a)->axes & ~reduced);
    info.args[0] = a;
    info.reduced = reduced;
    return find_or_add(g, &info);
}

void graph_name(Graph *g, Node n, const char *name, Span span)
{
    NodeInfo *info = &g->nodes.data[n.id];
    if (!info->span.source) info->span = span;
    /* A literal is printed as itself, whatever binding named it first. */
    if (!info->name && info->op != OP_CONST) info->name = name;
}

Graph *graph_like(Arena *arena, const Graph *g)
{
    Graph *like = graph_new(arena);
    like->name = g->name;
    like->source = g->source;
    like->span = g->span;
    memcpy(like->axes, g->axes, sizeof like->axes);
    like->axis_count = g->axis_count;
    for (int i = 0; i < g->params.count; i++) *list_push(arena, &like->params) = g->params.data[i];
    for (int i = 0; i < g->outputs.count; i++) {
        Output *output = list_push(arena, &like->outputs);
        *output = g->outputs.data[i];
        output->value = (Node){0};
    }
    return like;
}

Node graph_copy_node(Graph *into, const Graph *from, Node n, const Node operands[MAX_OPERANDS])
{
    const NodeInfo *old = node(from, n);
    Node copy;
    switch (op_info[old->op].class) {
    case CLASS_LEAF: {
        NodeInfo info = blank(old->op, old->type, old->axes);
        info.integer = old->integer;
        copy = find_or_add(into, &info);
        break;
    }
    case CLASS_CAST:
        copy = old->op == OP_CAST ? graph_cast(into, old->dtype, operands[0])
                                  : graph_convert(into, old->type, operands[0]);
        break;
    case CLASS_REDUCE: copy = graph_reduce(into, old->op, old->reduced, operands[0]); break;
    default: copy = graph_op(into, old->op, operands[0], operands[1], operands[2]);
    }
    graph_name(into, copy, old->name, old->span);
    return copy;
}

int64_t axes_size(const Sizes *sizes, AxisSet axes)
{
    int64_t product = 1;
    bool overflow = false;
    for (; axes; axes &= axes - 1) {
        const int i = __builtin_ctz(axes);
        if (sizes->of[i] == 0) return 0;
        overflow |= __builtin_mul_overflow(product, sizes->of[i], &product);
    }
    return overflow ? INT64_MAX : product;
}

int64_t axes_bytes(const Sizes *sizes, AxisSet axes, DType dtype)
{
    int64_t bytes;
    bool overflow =
        __builtin_mul_overflow(axes_size(sizes, axes), (int64_t)dtype_info[dtype].bytes, &bytes);
    return overflow ? INT64_MAX : bytes;
}

int64_t add_bytes(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int axes_count(AxisSet axes)
{
    return __builtin_popcount(axes);
}

bool *graph_live(const Graph *g)
{
    bool *live = NEW_ARRAY(g->arena, bool, g->nodes.count);
    for (int i = 0; i < g->outputs.count; i++) live[g->outputs.data[i].value.id] = true;
    live[0] = false;
    for (int id = g->nodes.count - 1; id > 0; id--)
        for (int i = 0; live[id] && i < MAX_OPERANDS; i++)
            live[g->nodes.data[id].args[i].id] |= g->nodes.data[id].args[i].id != 0;
    return live;
}

#ifdef NDEBUG
void verify_graph(const Graph *g)
{
    (void)g;
}
#else
static void require(bool holds, const Graph *g, uint32_t id, const char *law)
{
    if (holds) return;
    fprintf(stderr, "fusec: broken graph %s at %%%u: %s\n", g->name ? g->name : "", id, law);
    abort();
}

/* Checks that all operands of an operator have one type, apart from the condition of WHERE. */
static void verify_types(const Graph *g, uint32_t id)
{
    const NodeInfo *info = &g->nodes.data[id];
    int first = info->op == OP_WHERE;
    Type type = node(g, info->args[first])->type;
    if (info->op == OP_WHERE)
        require(node(g, info->args[0])->type == TYPE_BOOL, g, id, "where needs a bool");
    for (int i = first + 1; i < op_info[info->op].arity; i++)
        require(node(g, info->args[i])->type == type, g, id, "operands have one type");
    if (info->op == OP_NOT || info->op == OP_AND || info->op == OP_OR)
        require(type == TYPE_BOOL, g, id, "logic is of bool");
    if (info->op == OP_DIV || info->op == OP_MEAN || info->op == OP_VAR)
        require(type_is_float(type), g, id, "division is of floats");
    Type result = gives_bool(info->op)     ? TYPE_BOOL
                  : info->op == OP_CAST    ? dtype_info[info->dtype].type
                  : info->op == OP_CONVERT ? info->type
                                           : type;
    require(info->type == result, g, id, "its type follows from its operands");
}

static void verify_node(const Graph *g, uint32_t id)
{
    const NodeInfo *info = &g->nodes.data[id];
    AxisSet axes = 0;
    for (int i = 0; i < MAX_OPERANDS; i++) {
        uint32_t operand = info->args[i].id;
        require((operand != 0) == (i < op_info[info->op].arity), g, id, "arity");
        require(operand < id, g, id, "operands come before their users");
        axes |= g->nodes.data[operand].axes;
    }
    if (op_info[info->op].class == CLASS_REDUCE) {
        require(info->reduced && !(info->reduced & ~axes), g, id, "it reduces its operand");
        axes &= ~info->reduced;
    }
    if (op_info[info->op].class != CLASS_LEAF) {
        require(info->axes == axes, g, id, "its axes are the union of its operands'");
        verify_types(g, id);
    }
}

void verify_graph(const Graph *g)
{
    require(g->nodes.count > 0 && g->nodes.data[0].op == OP_NONE, g, 0, "node 0 is none");
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) verify_node(g, id);
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *output = &g->outputs.data[i];
        uint32_t id = output->value.id;
        require(id < (uint32_t)g->nodes.count, g, id, "an output is a node");
        require(!id || g->nodes.data[id].axes == output->axes, g, id,
                "an output has its node's axes");
    }
}
#endif

static bool is_nonnegative(const NodeInfo *info)
{
    return info->op == OP_EXP || info->op == OP_EXP2 || info->op == OP_ABS ||
           (info->op == OP_MUL && info->args[0].id == info->args[1].id);
}

bool is_at_least_one(const Graph *g, Node n)
{
    const NodeInfo *sum = node(g, n);
    if (sum->op != OP_ADD || sum->type != TYPE_F32) return false;
    for (int i = 0; i < 2; i++) {
        const NodeInfo *one = node(g, sum->args[i]);
        if (one->op == OP_CONST && one->number >= 1 && is_nonnegative(node(g, sum->args[1 - i])))
            return true;
    }
    return false;
}
