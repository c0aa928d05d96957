/* frontend/lower_internal.h: what the files of the lowering share: lower.c (declarations and the
 * body), lower_expr.c (expressions and types), lower_names.c (scopes and callees), lower_check.c
 * (functions by themselves). Nobody else includes it; the interface is frontend/lower.h. */
#ifndef FUSEC_LOWERING_H
#define FUSEC_LOWERING_H

#include "frontend/lower.h"
#include "base/map.h"

typedef struct {
    const char *name;
    Span span;
    Node value; /* {0} after an error, and where only names are checked */
    bool is_input, is_output, used;
} Binding;

typedef struct {
    const char *name;
    AxisSet set; /* one axis in a graph; in a function perhaps several */
} AxisName;

/* The names that one graph's or one function's body sees. */
typedef struct Scope Scope;
struct Scope {
    const Item *item;
    Map values; /* name -> index into bindings */
    LIST(Binding) bindings;
    Map axis_map; /* name -> index into axes */
    LIST(AxisName) axes;
    const Scope *caller; /* NULL for the graph's own body */
    Span call;           /* where the caller calls */
};

/* The first item of each name: functions of all modules, graphs of the main one. */
typedef struct ItemIndex {
    Map function_map; /* name -> index into functions */
    LIST(const Item *) functions;
    Map graph_map; /* name -> index into graphs */
    LIST(const Item *) graphs;
} ItemIndex;

typedef enum {
    CALLEE_ELEMENT,
    CALLEE_INDEX,
    CALLEE_SIZE,
    CALLEE_CAST,
    CALLEE_REDUCTION,
    CALLEE_FUNCTION
} CalleeKind;

typedef struct {
    CalleeKind kind;
    Op op;       /* ELEMENT, REDUCTION */
    DType dtype; /* CAST */
    const Item *function;
    AxisSet axes;       /* REDUCTION: all of them; INDEX and SIZE: the argument's */
    AxisSet *axis_args; /* FUNCTION: by axis parameter */
} Callee;

/* An expression that waits for its operands. Tasks stand in a list, because threads may have small
 * stacks. */
typedef struct Task {
    const Expr *e;
    Scope *s;
    bool begun;
    const Expr **chain;   /* BINARY: its operators from the left */
    int count, next;      /* BINARY: how many, and the next one; CALL: of its arguments */
    Callee callee;        /* CALL */
    const Expr *argument; /* that is being lowered */
    Node *args;
    Scope *body;         /* CALL of a function: its scope */
    const Statement *at; /* and the statement that it is at */
    const uint64_t *key; /* in Lowering.inlined */
    size_t key_bytes;
    Node value;
} Task;

typedef struct {
    Arena *arena;
    Diagnostics *d;
    Graph *g; /* NULL in check_program */
    const ItemIndex *items;
    LIST(Span) reported; /* places in functions whose error is reported */
    Map inlined;         /* (function, axes, arguments) -> index into results */
    LIST(Node) results;
    LIST(const Item *) callees;   /* in check_program: the functions that each function calls */
    LIST(Span) callee_spans;      /* and the places of these calls */
    LIST(const Expr *) unchecked; /* in check_program */
    LIST(Task) tasks;             /* of frontend/lower_expr.c: the innermost last */
    bool failed, overflowed;
} Lowering;

/* Whether name_error would report nothing, so that no hint is needed. */
bool is_silent(const Lowering *l, const Scope *s);
/* Reports an error of names. check_program reports those inside functions, so a lowering is silent
 * about them. */
void name_error(Lowering *l, const Scope *s, Span at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Reports an error of types or axes; in functions once for each place, with the calls that lead
 * there. */
void type_error(Lowering *l, const Scope *s, Span at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

Lowering *lowering_new(Arena *arena, Diagnostics *d, const Module *program);
Scope *scope_new(Lowering *l, const Item *item);
/* false (and an error) if the name was bound before. */
bool bind_axis(Lowering *l, Scope *s, const Ident *name, AxisSet set);
bool bind_value(Lowering *l, Scope *s, const Ident *name, Node value);
Binding *find_value(Lowering *l, Scope *s, const Expr *name);
bool find_axis(Lowering *l, const Scope *s, const char *name, Span at, AxisSet *set);
/* Finds the callee of a call, and checks its brackets and its number of arguments. */
bool resolve_call(Lowering *l, const Scope *s, const Expr *call, Callee *callee);
bool is_builtin(const char *name);
/* The operator node of a UNARY or BINARY expression; OP_NONE if there is none. */
Op find_operator(const char *text, int arity);
/* Names of other languages; letters may be upper or lower case. NULL: none. dtype_meant: the dtype
 * that is called so here. The others return hints: why there is no such dtype, and how a function
 * (`axes`: those of the call, as "H, W", `before`: the axis before them; NULL: none) or a constant
 * is written here. */
const char *dtype_meant(const char *name);
const char *dtype_absent(const char *name);
const char *function_meant(Arena *arena, const char *name, const char *axes, const char *before);
const char *constant_meant(Arena *arena, const char *name);
/* Hints of calls (frontend/call_hints.c). An axis to show: the last one, or "N". */
const char *example_axis(const Scope *s);
/* The axes that are given as if they were operands, as in mean(x, M, N); else one. */
const char *axes_meant(Lowering *l, const Scope *s, const Expr *call);
/* For a function that is unknown; NULL: there is no hint. */
const char *function_hint(Lowering *l, const Scope *s, const Expr *call);
/* The text of an expression, or "..." where it is long. */
const char *expr_text(Lowering *l, const Expr *e);
/* For a reduction whose operand is followed by axes alone, as in sum[N](x, N); NULL: it is not. */
const char *hint_for_axis_arguments(Lowering *l, const Scope *s, const Expr *call);
/* "layer_norm[N](x, eps)" */
const char *signature(Lowering *l, const Item *function);
const char *did_you_mean(Lowering *l, const char *name, const char *const *names, int count);

Node lower_expr(Lowering *l, Scope *s, const Expr *e);
/* Widens a value to a type; literals become it exactly. */
Node widen(Lowering *l, Type type, Node n);

#endif
