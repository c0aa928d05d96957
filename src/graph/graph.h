/* graph/graph.h: the graph, the one intermediate form that every later stage reads.
 *
 * A graph is an append-only array of nodes. A Node is an index into it. Operands come before their
 * users, and equal nodes are one node (the builder hash-conses), so common subexpressions are free
 * and no use-lists exist. A pass reads one graph and builds another.
 *
 * A node's shape is a set of the graph's axes: tensors list their axes in the graph's order and
 * broadcasting is by name. A node has the union of its operands' axes; a reduction removes the axes
 * that it reduces. All operands of an operator have one Type (CONVERT nodes see to that; the first
 * operand of WHERE is a bool). */
#ifndef FUSEC_GRAPH_H
#define FUSEC_GRAPH_H

#include "base/dtype.h"
#include "base/source.h"

enum { MAX_AXES = 16, MAX_RANK = 8, MAX_OPERANDS = 3 };

typedef enum {
#define OP(name, text, arity, class, prec, f32, f64, i64, err, cost, doc) OP_##name,
#include "graph/ops.def"
    OP_COUNT
} Op;

typedef enum {
    CLASS_LEAF,
    CLASS_UNARY,
    CLASS_BINARY,
    CLASS_CALL,
    CLASS_CAST,
    CLASS_REDUCE
} OpClass;

/* How many instructions an operation takes: graph/ops.def. */
typedef enum { COST_CHEAP, COST_DIVIDE, COST_EXP, COST_FUNCTION, COST_SERIES, COST_COUNT } OpCost;

/* How two parts of a reduction become one. */
typedef enum {
    COMBINE_NONE, /* no reduction */
#define COMBINER(name, ...) COMBINE_##name,
#include "graph/ops.def"
    COMBINE_COUNT
} Combine;

typedef enum { RULE_SUM, RULE_PRODUCT, RULE_ENDS } ErrorRule;

/* Patterns: $0 is the variable, $1 the term that is added to it. */
typedef struct {
    const char *helper;         /* "sum", of column_sum and sum_of(x) */
    const char *functor;        /* "Sum" */
    const char *identity_float; /* CUDA text, as all of these */
    const char *identity_int;   /* of type i64 */
    const char *floats, *ints,
        *ints_wrap; /* how it accumulates; the last: where integers may wrap around */
    ErrorRule rule;
} CombinerInfo;

extern const CombinerInfo combiner_info[COMBINE_COUNT];

typedef struct {
    const char *name; /* "ADD" */
    const char *text; /* "+", "exp", "sum" */
    int arity;
    OpClass class;
    int precedence;
    const char *cuda[3]; /* patterns for f32, f64, i64; "" where there is none */
    int error;           /* in units of 2^-24 */
    OpCost cost;
    const char *doc;
} OpInfo;

extern const OpInfo op_info[OP_COUNT];
extern const Combine op_combine[OP_COUNT]; /* COMBINE_NONE: no reduction */

typedef struct {
    uint32_t id;
} Node;                   /* 0: none */
typedef uint32_t AxisSet; /* bit i: axis i of the graph, outermost first */

typedef struct {
    const char *name;
    int64_t size; /* the default of the declaration; -1: none */
    Span span;
} Axis;

/* A parameter of the graph. A scalar is passed by value; `T[]` is a tensor with no axes. */
typedef struct {
    const char *name;
    DType dtype;
    bool scalar;
    AxisSet axes;
    bool has_default;     /* scalars only */
    double default_value; /* already rounded to dtype */
    Span span;
} Param;

typedef struct {
    const char *name;
    DType dtype;
    AxisSet axes;
    Node value; /* unrounded; the store rounds it to dtype */
    Span span;  /* of the binding */
} Output;

typedef struct {
    Op op;
    Type type;
    AxisSet axes;
    Node args[MAX_OPERANDS];
    union {
        /* CONST of a float type. An f32 literal is kept unrounded, so that f64 arithmetic sees all
         * of it; its value is (float)number. */
        double number;
        int64_t integer; /* CONST of i64 or bool */
        uint32_t param;  /* PARAM: index into params */
        uint32_t axis;   /* INDEX, SIZE: index into the graph's axes */
        AxisSet reduced; /* reductions: the axes removed */
        DType dtype;     /* CAST: what it rounds like */
    };
    const char *name; /* the first binding that named it, or NULL; not part of its identity */
    Span span;        /* of its first expression; not part of its identity */
} NodeInfo;

typedef struct Graph {
    Arena *arena;
    const char *name;
    const Source *source;
    Span span;
    Axis axes[MAX_AXES];
    int axis_count;
    LIST(Param) params;
    LIST(Output) outputs;
    LIST(NodeInfo) nodes; /* nodes.data[0] is OP_NONE */
    uint32_t *buckets;    /* the hash-consing table, by node id */
    uint32_t bucket_count;
} Graph;

/* Sizes of the axes for one compilation, by axis index. */
typedef struct {
    int64_t of[MAX_AXES];
} Sizes;

static inline const NodeInfo *node(const Graph *g, Node n)
{
    return &g->nodes.data[n.id];
}
static inline Node arg(const Graph *g, Node n, int i)
{
    return g->nodes.data[n.id].args[i];
}
/* Whether n is an f32 of at least 1, or NaN, because of how it is written: 1 + exp(x),
 * 1 + x * x. */
bool is_at_least_one(const Graph *g, Node n);
static inline bool is_reduction(const Graph *g, Node n)
{
    return op_info[node(g, n)->op].class == CLASS_REDUCE;
}
/* Of a reduction. */
static inline const CombinerInfo *combiner_of(const Graph *g, Node n)
{
    return &combiner_info[op_combine[node(g, n)->op]];
}
static inline bool is_comparison(Op op)
{
    return op >= OP_EQ && op <= OP_GE;
}
/* The comparison that holds for b and a where `op` holds for a and b. */
static inline Op turned_comparison(Op op)
{
    switch (op) {
    case OP_LT: return OP_GT;
    case OP_LE: return OP_GE;
    case OP_GT: return OP_LT;
    case OP_GE: return OP_LE;
    default: return op;
    }
}
/* Of a comparison of a float with the largest or smallest along its row, e == max[K](e): the
 * reduction; of others, and of what is no comparison, 0. */
Node compared_extreme(const Graph *g, Node n);
/* By node id: what the other operand of such comparisons is made of, down to reductions. */
bool *find_repeated(Arena *arena, const Graph *g);
/* Whether it is a sum, or a sum that is divided. */
static inline bool adds_terms(Op op)
{
    return op_combine[op] == COMBINE_SUM;
}

/* The builder. It fills in axes and type, and returns the existing node where there is an equal one
 * (which takes `name` and `span` if it had none). Operands must already have one Type. */
Graph *graph_new(Arena *arena);
Node graph_number(Graph *g, Type type, double value);   /* f32 or f64 */
Node graph_integer(Graph *g, Type type, int64_t value); /* i64 or bool */
Node graph_param(Graph *g, uint32_t param);
Node graph_index(Graph *g, uint32_t axis);
Node graph_size(Graph *g, uint32_t axis);
Node graph_op(Graph *g, Op op, Node a, Node b, Node c); /* UNARY, BINARY, CALL */
Node graph_convert(Graph *g, Type type, Node a);        /* a itself if it has that type */
Node graph_cast(Graph *g, DType dtype, Node a);
Node graph_reduce(Graph *g, Op op, AxisSet reduced, Node a);
void graph_name(Graph *g, Node n, const char *name, Span span); /* only if it has none */
/* The beginning of a pass: a new graph with the same name, axes and params, and with outputs that
 * have no values yet. */
Graph *graph_like(Arena *arena, const Graph *g);
/* Adds to `into` a node like `n` of `from`, with the given operands. */
Node graph_copy_node(Graph *into, const Graph *from, Node n, const Node operands[MAX_OPERANDS]);

/* Product of the sizes of the axes in a set; saturates at INT64_MAX. */
int64_t axes_size(const Sizes *sizes, AxisSet axes);
int axes_count(AxisSet axes);
/* The bytes of a tensor with these axes; a sum of bytes. Both saturate. */
int64_t axes_bytes(const Sizes *sizes, AxisSet axes, DType dtype);
int64_t add_bytes(int64_t a, int64_t b);

/* By node id: whether the outputs need it. */
bool *graph_live(const Graph *g);
/* Panics (abort with a message) on a broken invariant; a no-op in release builds. */
void verify_graph(const Graph *g);
/* `--emit=graph`: one node a line, `%5 f32[M,N] xhat = mul %3 %4`, outputs last. */
void print_graph(Text *out, const Graph *g);
/* "[M, N]" */
const char *axes_text(Arena *arena, const Graph *g, AxisSet axes);
/* The expression of a node in the language's own syntax, e.g. `sum[N](xmu * wdy)`. Named operands
 * print as their names; with `expand_top` the node's own name is not used. */
const char *node_text(Arena *arena, const Graph *g, Node n, bool expand_top);
/* A float as a literal of the language. */
void put_literal(Text *out, Type type, double number);
/* The same with the top expanded, complete, to be compiled again. */
const char *source_text(Arena *arena, const Graph *g, Node n);
/* The same with the top expanded, for short labels: what is nested deeply is left out. */
const char *brief_text(Arena *arena, const Graph *g, Node n);
/* The program's name of a value, else the outermost operations of its formula. */
const char *value_name(Arena *arena, const Graph *g, Node n);

#endif
