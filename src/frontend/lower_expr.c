/* frontend/lower_expr.c: expressions -> nodes: the type rules, the functions inlined.
 *
 * Types. bool counts as 0 and 1 (i64) in arithmetic; i64 becomes f32 under `/`, `**`,
 * with floats and in element functions, f64 beside an f64; f32 becomes f64 beside an f64.
 * Conversions are explicit CONVERT nodes. A literal has no precision of its own: beside
 * an f64 it is an f64 literal with all its digits. Node {0} stands for an expression with
 * an error that was already reported. */
#include "frontend/lower_internal.h"

#include <string.h>
#include <xxhash.h>

enum { MAX_DEPTH = 2500 };

static const Node none = {0};

static Type type_of(Lowering *l, Node n)
{
    return node(l->g, n)->type;
}

/* ---- types ---- */

static Node widen_constant(Lowering *l, Type type, const NodeInfo *info)
{
    if (type == TYPE_I64) return graph_integer(l->g, TYPE_I64, info->integer);
    if (type_is_float(info->type)) return graph_number(l->g, type, info->number);
    double value = type == TYPE_F32 ? (double)(float)info->integer : (double)info->integer;
    return graph_number(l->g, type, value);
}

Node widen(Lowering *l, Type type, Node n)
{
    NodeInfo info = *node(l->g, n);
    if (!n.id || info.type == type) return n;
    if (info.op == OP_CONST) return widen_constant(l, type, &info);
    if (info.type == TYPE_BOOL) n = graph_convert(l->g, TYPE_I64, n);
    return graph_convert(l->g, type, n);
}

static Type wider(Type a, Type b)
{
    if (a == TYPE_F64 || b == TYPE_F64) return TYPE_F64;
    return a == TYPE_F32 || b == TYPE_F32 ? TYPE_F32 : TYPE_I64;
}

static Type float_type(Type type)
{
    return type_is_float(type) ? type : TYPE_F32;
}

static bool require_condition(Lowering *l, Scope *s, const Expr *e, Node n, const char *what)
{
    if (type_of(l, n) == TYPE_BOOL) return true;
    const char *text = expr_text(l, e);
    bool simple = e->kind == EXPR_NAME || e->kind == EXPR_CALL || e->kind == EXPR_PAREN;
    type_error(l, s, e->span,
               !simple || !strcmp(text, "...")
                   ? "compare it, as in (...) != 0"
                   : arena_format(l->arena, "compare it: %s != 0", text),
               "'%s' needs a condition, not a number", what);
    return false;
}

/* ---- operators ---- */

static Node combine_logic(Lowering *l, Scope *s, const Expr *e, Op op, Node a, Node b)
{
    if (!require_condition(l, s, e->left, a, e->name) ||
        (b.id && !require_condition(l, s, e->right, b, e->name)))
        return none;
    return graph_op(l->g, op, a, b, none);
}

/* Operators, and the element functions of two arguments that promote like `+`. */
static Node promote(Lowering *l, Op op, Node a, Node b)
{
    Type type = wider(type_of(l, a), type_of(l, b));
    if (op == OP_DIV || op == OP_POW) type = float_type(type);
    return graph_op(l->g, op, widen(l, type, a), widen(l, type, b), none);
}

static bool is_order(Op op)
{
    return op == OP_LT || op == OP_LE || op == OP_GT || op == OP_GE;
}

/* Warns of a < b < c: here, as in C, the second comparison has 0 or 1 on its left; Python's meaning
 * was probably intended. */
static void warn_compared_condition(Lowering *l, const Expr *e, Op op, Node a)
{
    if (is_order(op) && type_of(l, a) == TYPE_BOOL)
        report_warning(l->d, e->span, "two comparisons are joined by &&, as in a < b && b < c",
                       "'%s' compares a condition, which counts as 0 or 1", e->name);
}

static Node combine(Lowering *l, Scope *s, const Expr *e, Node a, Node b)
{
    if (!a.id || !b.id) return none;
    Op op = find_operator(e->name, 2);
    warn_compared_condition(l, e, op, a);
    return op == OP_AND || op == OP_OR ? combine_logic(l, s, e, op, a, b) : promote(l, op, a, b);
}

/* Chains like a + b + c + ... lean to the left and may be very long. Returns the innermost operand
 * on the left. */
static const Expr *begin_chain(Lowering *l, Task *t)
{
    const Expr *e = t->e;
    for (const Expr *at = e; at->kind == EXPR_BINARY; at = at->left) t->count++;
    t->chain = NEW_ARRAY(l->arena, const Expr *, t->count);
    for (int i = t->count - 1; i >= 0; i--, e = e->left) t->chain[i] = e;
    return e;
}

/* Returns the next operand; NULL: there are no more. */
static const Expr *step_chain(Lowering *l, Task *t, Node operand)
{
    if (!t->begun) return begin_chain(l, t);
    if (t->next == 0) {
        t->value = operand;
    } else {
        const Expr *e = t->chain[t->next - 1];
        t->value = combine(l, t->s, e, t->value, operand);
        if (t->value.id) graph_name(l->g, t->value, NULL, e->span);
    }
    return t->next < t->count ? t->chain[t->next++]->right : NULL;
}

static Node unary(Lowering *l, Scope *s, const Expr *e, Node a)
{
    if (!a.id) return none;
    if (find_operator(e->name, 1) == OP_NOT) return combine_logic(l, s, e, OP_NOT, a, none);
    a = widen(l, wider(type_of(l, a), TYPE_I64), a);
    const NodeInfo *info = node(l->g, a);
    if (info->op != OP_CONST) return graph_op(l->g, OP_NEG, a, none, none);
    if (info->type == TYPE_I64)
        return graph_integer(l->g, TYPE_I64, (int64_t)(0 - (uint64_t)info->integer));
    return graph_number(l->g, info->type, -info->number);
}

static Node lower_constant(Lowering *l, const Expr *e)
{
    switch (e->kind) {
    case EXPR_INTEGER: return graph_integer(l->g, TYPE_I64, e->integer);
    case EXPR_FLOAT: return graph_number(l->g, TYPE_F32, e->number);
    default:
        if (strcmp(e->name, "inf") == 0)
            return graph_number(l->g, TYPE_F32, (double)__builtin_inf());
        return graph_integer(l->g, TYPE_BOOL, strcmp(e->name, "true") == 0);
    }
}

/* ---- calls ---- */

static Node where(Lowering *l, Scope *s, const Expr *e, const Node *args)
{
    if (!require_condition(l, s, e->left, args[0], e->name)) return none;
    Type a = type_of(l, args[1]), b = type_of(l, args[2]);
    /* Choosing between two conditions gives a condition. */
    Type type = a == TYPE_BOOL && b == TYPE_BOOL ? TYPE_BOOL : wider(a, b);
    return graph_op(l->g, OP_WHERE, args[0], widen(l, type, args[1]), widen(l, type, args[2]));
}

static Node clamp(Lowering *l, const Node *args)
{
    Type type = wider(wider(type_of(l, args[0]), type_of(l, args[1])), type_of(l, args[2]));
    return graph_op(l->g, OP_CLAMP, widen(l, type, args[0]), widen(l, type, args[1]),
                    widen(l, type, args[2]));
}

static Node element(Lowering *l, Scope *s, const Expr *e, Op op, const Node *args)
{
    if (op == OP_WHERE) return where(l, s, e, args);
    if (op == OP_CLAMP) return clamp(l, args);
    if (op_info[op].arity == 2) return promote(l, op, args[0], args[1]);
    bool is_float = type_is_float(type_of(l, args[0]));
    Node whole = widen(l, wider(type_of(l, args[0]), TYPE_I64), args[0]);
    if (is_float || op == OP_ABS || op == OP_SIGN) return graph_op(l->g, op, whole, none, none);
    if (op == OP_FLOOR || op == OP_CEIL || op == OP_ROUND) return whole;
    /* No integer is NaN; a comparison keeps the axes. */
    if (op == OP_ISNAN) return graph_op(l->g, OP_NE, whole, whole, none);
    return graph_op(l->g, op, widen(l, TYPE_F32, whole), none, none);
}

static Node cast(Lowering *l, DType dtype, Node a)
{
    Type from = type_of(l, a);
    if (dtype == DTYPE_BOOL) {
        /* Everything but zero is true, NaN too. */
        if (from == TYPE_BOOL) return a;
        return graph_op(l->g, OP_NE, a, widen(l, from, graph_integer(l->g, TYPE_I64, 0)), none);
    }
    a = widen(l, wider(from, TYPE_I64), a);
    if (dtype == DTYPE_F64 && node(l->g, a)->op == OP_CONST) a = widen(l, TYPE_F64, a);
    return graph_cast(l->g, dtype, a);
}

/* A reduction over axes that its operand lacks: without them a mean or an end is the same. */
static const char *hint_for_missing(Lowering *l, const Expr *e, const Callee *callee, Node a)
{
    const AxisSet has = node(l->g, a)->axes, left = callee->axes & has;
    const bool same = callee->op == OP_MAX_OVER || callee->op == OP_MIN_OVER ||
                      (callee->op == OP_MEAN && type_is_float(type_of(l, a)));
    const char *missing = axes_text(l->arena, l->g, callee->axes & ~has);
    const char *operand = expr_text(l, e->left), *own = axes_text(l->arena, l->g, left);
    const bool simple = e->left->kind != EXPR_BINARY && e->left->kind != EXPR_UNARY;
    if (same && left)
        return arena_format(l->arena, "over %s it changes nothing: write %s%s(%s)", missing,
                            e->name, own, operand);
    if (same && !has)
        return arena_format(l->arena,
                            simple ? "over %s it changes nothing: write %s"
                                   : "over %s it changes nothing: write (%s)",
                            missing, operand);
    if (!has) return "its operand is a single number, which has no axis to reduce";
    const char *last = l->g->axes[31 - __builtin_clz(has)].name;
    return arena_format(l->arena, "it can be reduced over its own axes, as in %s%s", e->name,
                        left ? own : arena_format(l->arena, "[%s]", last));
}

static Node reduction(Lowering *l, Scope *s, const Expr *e, const Callee *callee, Node a)
{
    AxisSet has = node(l->g, a)->axes, missing = callee->axes & ~has;
    if (missing) {
        const char *hint = s->caller ? NULL : hint_for_missing(l, e, callee, a);
        type_error(l, s, e->span, hint, "'%s' over %s of an expression with the axes %s", e->name,
                   axes_text(l->arena, l->g, missing), axes_text(l->arena, l->g, has));
        return none;
    }
    Type type = wider(type_of(l, a), TYPE_I64);
    if (callee->op == OP_MEAN || callee->op == OP_VAR) type = float_type(type);
    return graph_reduce(l->g, callee->op, callee->axes, widen(l, type, a));
}

/* index(K) and size(K); a function's axis parameter may stand for several axes. */
static Node axis_call(Lowering *l, Scope *s, const Expr *e, const Callee *callee)
{
    if (callee->kind == CALLEE_INDEX) {
        if (axes_count(callee->axes) == 1)
            return graph_index(l->g, (uint32_t)__builtin_ctz(callee->axes));
        type_error(l, s, e->span, NULL, "'index(%s)' of several axes %s", e->left->name,
                   axes_text(l->arena, l->g, callee->axes));
        return none;
    }
    Node product = none;
    for (uint32_t axis = 0; axis < MAX_AXES; axis++) {
        if (!(callee->axes >> axis & 1)) continue;
        Node size = graph_size(l->g, axis);
        product = product.id ? graph_op(l->g, OP_MUL, product, size, none) : size;
    }
    return product;
}

/* ---- functions ---- */

static bool is_active(const Scope *s, const Item *function)
{
    for (; s; s = s->caller)
        if (s->item == function) return true;
    return false;
}

static Scope *function_scope(Lowering *l, const Task *t)
{
    const Item *function = t->callee.function;
    Scope *s = scope_new(l, function);
    s->caller = t->s;
    s->call = t->e->span;
    int i = 0;
    for (const AxisDecl *axis = function->axes; axis; axis = axis->next)
        bind_axis(l, s, &axis->name, t->callee.axis_args[i++]);
    i = 0;
    for (const Ident *name = function->arguments; name; name = name->next)
        bind_value(l, s, name, t->args[i++]);
    return s;
}

/* A function's value depends only on its axes and arguments, so equal calls are inlined
 * once; without this, functions that call each other twice would take exponential time.
 */
static void make_key(Lowering *l, Task *t)
{
    int axes = 0, length = 0;
    for (const AxisDecl *axis = t->callee.function->axes; axis; axis = axis->next) axes++;
    uint64_t *key = NEW_ARRAY(l->arena, uint64_t, 1 + axes + t->count);
    key[length++] = (uint64_t)(uintptr_t)t->callee.function;
    for (int i = 0; i < axes; i++) key[length++] = t->callee.axis_args[i];
    for (int i = 0; i < t->count; i++) key[length++] = t->args[i].id;
    t->key = key;
    t->key_bytes = sizeof *key * (size_t)length;
}

static const Expr *end_function(Lowering *l, Task *t, Node value)
{
    t->value = value;
    map_add(l->arena, &l->inlined, t->key, t->key_bytes, l->results.count);
    *list_push(l->arena, &l->results) = value;
    return NULL;
}

/* Returns the first expression of the function's body; NULL: its value is known. */
static const Expr *begin_function(Lowering *l, Task *t)
{
    make_key(l, t);
    int found = map_find(&l->inlined, t->key, t->key_bytes);
    if (found >= 0) {
        t->value = l->results.data[found];
        return NULL;
    }
    if (is_active(t->s, t->callee.function)) {
        name_error(l, t->s, t->e->span, NULL, "recursion: '%s' calls itself", t->e->name);
        return end_function(l, t, none);
    }
    t->body = function_scope(l, t);
    t->at = t->callee.function->body;
    return t->at ? t->at->value : end_function(l, t, none);
}

static const Expr *step_body(Lowering *l, Task *t, Node value)
{
    const Statement *at = t->at;
    if (!at->name.name) return end_function(l, t, value);
    bind_value(l, t->body, &at->name, value);
    if (value.id) graph_name(l->g, value, at->name.name, at->value->span);
    t->at = at->next;
    return t->at ? t->at->value : end_function(l, t, value);
}

static Node builtin(Lowering *l, Task *t)
{
    switch (t->callee.kind) {
    case CALLEE_ELEMENT: return element(l, t->s, t->e, t->callee.op, t->args);
    case CALLEE_CAST: return cast(l, t->callee.dtype, t->args[0]);
    default: return reduction(l, t->s, t->e, &t->callee, t->args[0]);
    }
}

/* All arguments are lowered even after an error in one, so that each is reported. */
static const Expr *end_arguments(Lowering *l, Task *t)
{
    for (int i = 0; i < t->count; i++)
        if (!t->args[i].id) return NULL;
    if (t->callee.kind == CALLEE_FUNCTION) return begin_function(l, t);
    t->value = builtin(l, t);
    return NULL;
}

static const Expr *begin_call(Lowering *l, Task *t)
{
    if (!resolve_call(l, t->s, t->e, &t->callee)) return NULL;
    if (t->callee.kind == CALLEE_INDEX || t->callee.kind == CALLEE_SIZE) {
        t->value = axis_call(l, t->s, t->e, &t->callee);
        return NULL;
    }
    for (const Expr *a = t->e->left; a; a = a->next) t->count++;
    t->args = NEW_ARRAY(l->arena, Node, t->count + 1);
    t->argument = t->e->left;
    return t->argument ? t->argument : end_arguments(l, t);
}

static const Expr *step_call(Lowering *l, Task *t, Node value)
{
    if (!t->begun) return begin_call(l, t);
    if (t->body) return step_body(l, t, value);
    t->args[t->next++] = value;
    t->argument = t->argument->next;
    return t->argument ? t->argument : end_arguments(l, t);
}

/* ---- expressions ---- */

static Node leaf(Lowering *l, Scope *s, const Expr *e)
{
    switch (e->kind) {
    case EXPR_INTEGER:
    case EXPR_FLOAT:
    case EXPR_CONSTANT: return lower_constant(l, e);
    case EXPR_NAME: {
        Binding *found = find_value(l, s, e);
        return found ? found->value : none;
    }
    default: l->failed = true; return none;
    }
}

/* Continues with the operands of a task, of which `value` was lowered last. Returns the next; NULL:
 * there are no more, and the task has its value. */
static const Expr *step(Lowering *l, Task *t, Node value)
{
    switch (t->e->kind) {
    case EXPR_UNARY:
        if (!t->begun) return t->e->left;
        t->value = unary(l, t->s, t->e, value);
        return NULL;
    case EXPR_BINARY: return step_chain(l, t, value);
    case EXPR_CALL: return step_call(l, t, value);
    default: t->value = leaf(l, t->s, t->e); return NULL;
    }
}

static bool is_too_deep(Lowering *l, Scope *s, const Expr *e)
{
    if (l->overflowed) return true;
    if (l->tasks.count < MAX_DEPTH) return false;
    l->overflowed = true;
    type_error(l, s, e->span, NULL, "functions and expressions nest over %d levels", MAX_DEPTH);
    return true;
}

/* Ends the compilation where a graph exceeds its limit of nodes, naming the expression that exceeds
 * it. */
static void limit_nodes(Lowering *l, const Expr *e)
{
    Budget *budget = arena_budget(l->arena);
    char reason[256];
    if (!budget || l->g->nodes.count - 1 <= budget->nodes) return;
    budget->stopped = STOPPED_BY_NODES;
    budget_reason(budget, reason, sizeof reason);
    report_error(l->d, e->span, NULL, "%s", reason);
    stop(l->d);
}

static bool begin_task(Lowering *l, Scope *s, const Expr *e)
{
    while (e->kind == EXPR_PAREN) e = e->left;
    if (is_too_deep(l, s, e)) return false;
    limit_nodes(l, e);
    *list_push(l->arena, &l->tasks) = (Task){.e = e, .s = s};
    return true;
}

Node lower_expr(Lowering *l, Scope *s, const Expr *e)
{
    Node value = none;
    if (!begin_task(l, s, e)) return none;
    while (l->tasks.count > 0) {
        Task *t = &l->tasks.data[l->tasks.count - 1];
        const Expr *inside = step(l, t, value);
        t->begun = true;
        value = inside ? none : t->value;
        if (inside) {
            /* A body that is too large gives the value `none`. */
            begin_task(l, t->body ? t->body : t->s, inside);
            continue;
        }
        if (value.id) graph_name(l->g, value, NULL, t->e->span);
        l->tasks.count--;
    }
    return value;
}
