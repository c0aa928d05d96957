/* frontend/lower.c: ast -> graph: the declarations of a graph, its body, its outputs;
 * frontend/lower_expr.c has the expressions. The errors of one graph are collected; after an error
 * the graph is NULL.
 *
 * check_program comes first and reports wrong names inside functions, so lower reports only those
 * in a graph's own body. */
#include "frontend/lower_internal.h"
#include "graph/evaluate_op.h"

#include <math.h>
#include <string.h>

int program_graphs(const Module *program, const Item **graphs, int capacity)
{
    int count = 0;
    for (const Item *item = program ? program->items : NULL; item; item = item->next) {
        if (item->kind != ITEM_GRAPH || !item->name.name) continue;
        if (count < capacity) graphs[count] = item;
        count++;
    }
    return count;
}

const Item **list_graphs(Arena *arena, const Module *program, int *count)
{
    *count = program_graphs(program, NULL, 0);
    const Item **graphs = NEW_ARRAY(arena, const Item *, *count + 1);
    program_graphs(program, graphs, *count);
    return graphs;
}

/* ---- axes ---- */

static void declare_axes(Lowering *l, Scope *s, const AxisDecl *axis)
{
    Graph *g = l->g;
    for (; axis; axis = axis->next) {
        if (g->axis_count == MAX_AXES) {
            name_error(l, s, axis->span, NULL, "a graph has at most %d axes", MAX_AXES);
            return;
        }
        if (axis->size < -1)
            name_error(l, s, axis->span, NULL, "the size of axis '%s' is negative",
                       axis->name.name);
        if (!bind_axis(l, s, &axis->name, (AxisSet)1 << g->axis_count)) continue;
        g->axes[g->axis_count++] = (Axis){axis->name.name, axis->size, axis->span};
    }
}

/* Strides can describe how a tensor lies in memory as long as its last axis is the graph's last,
 * and dense. */
static const char *order_hint(Lowering *l, const ParamDecl *p, AxisSet axes, AxisSet last)
{
    const char *ordered = axes_text(l->arena, l->g, axes);
    return arena_format(
        l->arena,
        axes >> 1 >= last
            ? "write %s : %s%s, and copy the tensor to that order: its last axis is dense"
            : "write %s : %s%s; the launch gives the strides in memory",
        p->name.name, p->dtype.name, ordered);
}

/* The axes of a tensor, which come in the graph's order. */
static bool tensor_axes(Lowering *l, Scope *s, const ParamDecl *p, AxisSet *axes)
{
    bool in_order = true;
    int rank = 0;
    AxisSet bit = 0;
    *axes = 0;
    for (const Ident *axis = p->axes; axis; axis = axis->next, rank++) {
        if (!find_axis(l, s, axis->name, axis->span, &bit)) return false;
        if (*axes & bit) {
            name_error(l, s, axis->span, NULL, "'%s' has axis '%s' twice", p->name.name,
                       axis->name);
            return false;
        }
        in_order &= bit > *axes;
        *axes |= bit;
    }
    if (!in_order)
        name_error(l, s, p->span, order_hint(l, p, *axes, bit),
                   "the axes of '%s' are not in the graph's order", p->name.name);
    if (rank > MAX_RANK)
        name_error(l, s, p->span, NULL, "'%s' has %d axes; a tensor has at most %d", p->name.name,
                   rank, MAX_RANK);
    return in_order && rank <= MAX_RANK;
}

/* Checks the size in bytes with the default sizes, where every axis has one. */
static void check_bytes(Lowering *l, Scope *s, const ParamDecl *p, DType dtype, AxisSet axes)
{
    Sizes sizes;
    for (int i = 0; i < MAX_AXES; i++) {
        sizes.of[i] = i < l->g->axis_count ? l->g->axes[i].size : 1;
        if ((axes >> i & 1) && sizes.of[i] < 0) return;
    }
    if (axes_size(&sizes, axes) > INT64_MAX / dtype_info[dtype].bytes)
        name_error(l, s, p->span, NULL, "'%s' has more than 2^63 bytes", p->name.name);
}

/* ---- parameters ---- */

static const char *dtype_hint(Lowering *l, const char *name)
{
    const char *names[DTYPE_COUNT], *meant = dtype_meant(name), *reason = dtype_absent(name);
    if (meant) return arena_format(l->arena, "did you mean '%s'?", meant);
    if (reason) return reason;
    for (int i = 0; i < DTYPE_COUNT; i++) names[i] = dtype_info[i].fuse;
    return list_names(l->arena, names, DTYPE_COUNT);
}

static bool find_dtype(Lowering *l, Scope *s, const ParamDecl *p, DType *dtype)
{
    if (dtype_find(p->dtype.name, dtype)) return true;
    name_error(l, s, p->dtype.span, dtype_hint(l, p->dtype.name), "unknown dtype '%s'",
               p->dtype.name);
    return false;
}

static double literal_value(const Expr *e, bool negative)
{
    if (e->kind == EXPR_CONSTANT && strcmp(e->name, "inf") != 0)
        return strcmp(e->name, "true") == 0;
    double value = e->kind == EXPR_INTEGER ? (double)e->integer
                   : e->kind == EXPR_FLOAT ? e->number
                                           : (double)INFINITY;
    return negative ? -value : value;
}

static const char *number_shown(Lowering *l, DType dtype, double value)
{
    return arena_format(l->arena, dtype_is_float(dtype) ? "%g" : "%.0f", value);
}

static void warn_of_default(Lowering *l, const ParamDecl *p, DType dtype, double kept)
{
    report_warning(l->d, p->initial->span, NULL, "%s cannot hold this number: it becomes %s",
                   p->dtype.name, number_shown(l, dtype, kept));
}

static const Expr *without_sign(const Expr *e, bool *negative)
{
    *negative = e->kind == EXPR_UNARY && strcmp(e->name, "-") == 0;
    return *negative ? e->left : e;
}

double scalar_default(const ParamDecl *scalar, DType dtype)
{
    bool negative;
    const Expr *literal = without_sign(scalar->initial, &negative);
    return dtype_round(dtype, literal_value(literal, negative));
}

/* A default is a literal or a constant, perhaps signed. */
static bool set_default(Lowering *l, Scope *s, const ParamDecl *p, Param *param)
{
    bool negative;
    const Expr *e = without_sign(p->initial, &negative);
    Type to = dtype_info[param->dtype].type;
    bool is_bool = e->kind == EXPR_CONSTANT && strcmp(e->name, "inf") != 0;
    bool is_float = e->kind == EXPR_FLOAT || (e->kind == EXPR_CONSTANT && !is_bool);
    if (e->kind == EXPR_ERROR) {
        l->failed = true;
        return false;
    }
    if ((!is_bool && !is_float && e->kind != EXPR_INTEGER) || (negative && is_bool)) {
        name_error(l, s, p->initial->span, NULL, "a default is a signed literal or constant");
        return false;
    }
    if (is_bool != (to == TYPE_BOOL) || (is_float && to == TYPE_I64)) {
        name_error(l, s, p->initial->span, NULL, "this default does not fit a scalar of %s",
                   p->dtype.name);
        return false;
    }
    if (to == TYPE_I64 && int_from_double((double)e->integer) != e->integer) {
        name_error(
            l, s, p->initial->span, NULL,
            "scalars are passed as f64, which cannot hold this number: beyond 2^53 not all integers");
        return false;
    }
    double value = literal_value(e, negative);
    param->default_value = dtype_round(param->dtype, value);
    if (dtype_distorts(param->dtype, value, param->default_value))
        warn_of_default(l, p, param->dtype, param->default_value);
    param->has_default = true;
    return true;
}

static void declare_param(Lowering *l, Scope *s, const ParamDecl *p)
{
    Param param = {.name = p->name.name, .span = p->span, .scalar = !p->has_brackets};
    bool fine = find_dtype(l, s, p, &param.dtype) && tensor_axes(l, s, p, &param.axes);
    if (fine) check_bytes(l, s, p, param.dtype, param.axes);
    /* The parser has reported a tensor with a default value. */
    if (p->initial && !param.scalar)
        l->failed = true;
    else if (fine && p->initial)
        fine = set_default(l, s, p, &param);
    Node value = {0};
    if (fine) {
        *list_push(l->arena, &l->g->params) = param;
        value = graph_param(l->g, (uint32_t)l->g->params.count - 1);
    }
    if (bind_value(l, s, &p->name, value)) s->bindings.data[s->bindings.count - 1].is_input = true;
}

/* ---- outputs ---- */

/* The declarations of the outputs, by name and by number. */
typedef struct {
    Map map;
    Map clashing; /* names of inputs too: already reported */
    LIST(const ParamDecl *) decls;
    LIST(bool) bound;
    LIST(bool) usable; /* its dtype and axes are known */
} Outputs;

static void declare_output(Lowering *l, Scope *s, Outputs *outputs, const ParamDecl *p)
{
    Output output = {.name = p->name.name, .span = p->span};
    bool usable = find_dtype(l, s, p, &output.dtype) && tensor_axes(l, s, p, &output.axes);
    if (usable) check_bytes(l, s, p, output.dtype, output.axes);
    if (!p->has_brackets)
        name_error(l, s, p->span,
                   arena_format(l->arena, "write %s : %s[]", p->name.name, p->dtype.name),
                   "output '%s' needs brackets", p->name.name);
    if (p->initial && !p->has_brackets)
        name_error(l, s, p->initial->span, NULL, "output '%s' cannot have a default", p->name.name);
    l->failed |= p->initial != NULL; /* with brackets, reported by the parser */
    if (name_find(&outputs->map, p->name.name) >= 0) {
        name_error(l, s, p->name.span, NULL, "output '%s' is declared twice", p->name.name);
        return;
    }
    if (name_find(&s->values, p->name.name) >= 0) {
        name_error(
            l, s, p->name.span,
            "give the output a name of its own; the plan option in_place lets the two share memory",
            "'%s' is an input and an output", p->name.name);
        name_add(l->arena, &outputs->clashing, p->name.name, 0);
        return;
    }
    name_add(l->arena, &outputs->map, p->name.name, outputs->decls.count);
    *list_push(l->arena, &outputs->decls) = p;
    *list_push(l->arena, &outputs->bound) = false;
    *list_push(l->arena, &outputs->usable) = usable && p->has_brackets;
    *list_push(l->arena, &l->g->outputs) = output;
}

/* The reduction that alone gives a value its axes; the value itself where there is none near. */
static const NodeInfo *reduction_behind(const Graph *g, Node value)
{
    enum { NEAR = 64 };
    const NodeInfo *whole = node(g, value), *at = whole;
    for (int steps = 0; steps < NEAR && op_info[at->op].class != CLASS_REDUCE; steps++) {
        const NodeInfo *only = NULL;
        int with_axes = 0;
        for (int i = 0; i < op_info[at->op].arity; i++) {
            if (!node(g, at->args[i])->axes) continue;
            only = node(g, at->args[i]);
            with_axes++;
        }
        if (with_axes != 1) return whole;
        at = only;
    }
    return op_info[at->op].class == CLASS_REDUCE ? at : whole;
}

/* The hint for an output that lacks axes of the expression, or for a reduction over other axes than
 * the declaration implies. Anything else only the declaration can mend. */
static const char *store_hint(Lowering *l, const Output *output, const char *dtype, Node value)
{
    const NodeInfo *info = node(l->g, value);
    AxisSet extra = info->axes & ~output->axes;
    const char *has = axes_text(l->arena, l->g, info->axes);
    const NodeInfo *reduction = reduction_behind(l->g, value);
    if (op_info[reduction->op].class == CLASS_REDUCE) {
        AxisSet from = node(l->g, reduction->args[0])->axes;
        if (!(output->axes & ~from) && from != output->axes)
            return arena_format(
                l->arena, "for %s reduce %s: %s%s(...)", axes_text(l->arena, l->g, output->axes),
                reduction->reduced & output->axes ? "other axes" : "more axes",
                op_info[reduction->op].text, axes_text(l->arena, l->g, from & ~output->axes));
    }
    if (extra && !(output->axes & ~info->axes))
        return arena_format(l->arena, "reduce it, e.g. sum%s(...), or declare %s : %s%s",
                            axes_text(l->arena, l->g, extra), output->name, dtype, has);
    return extra ? NULL : arena_format(l->arena, "declare %s : %s%s", output->name, dtype, has);
}

static bool check_output_axes(Lowering *l, Scope *s, const Statement *at, const Output *output,
                              Node value)
{
    AxisSet has = node(l->g, value)->axes;
    if (has == output->axes) return true;
    type_error(l, s, at->value->span, store_hint(l, output, dtype_info[output->dtype].fuse, value),
               "output '%s' is declared with the axes %s, but its expression has %s", output->name,
               axes_text(l->arena, l->g, output->axes), axes_text(l->arena, l->g, has));
    return false;
}

/* Whether a store takes a type: floats take any number (rounded once: an f64 is not narrowed
 * before), integers take integers and bool, bool takes only bool. */
static bool check_output_type(Lowering *l, Scope *s, const Statement *at, const Output *output,
                              Node value)
{
    Type from = node(l->g, value)->type, to = dtype_info[output->dtype].type;
    const char *fuse = dtype_info[output->dtype].fuse;
    if (type_is_float(to) || from == to || (to == TYPE_I64 && from == TYPE_BOOL)) return true;
    const char *hint = to == TYPE_BOOL
                           ? arena_format(l->arena, "compare it: %s = ... != 0", output->name)
                           : arena_format(l->arena, "convert it: %s(...)", fuse);
    type_error(l, s, at->value->span, hint, "output '%s' is %s, but its expression is %s",
               output->name, fuse, type_name(from));
    return false;
}

static void bind_output(Lowering *l, Scope *s, Outputs *outputs, int index, const Statement *at,
                        Node value)
{
    Output *output = &l->g->outputs.data[index];
    outputs->bound.data[index] = true;
    output->span = at->span;
    if (!value.id || !outputs->usable.data[index]) return;
    if (!check_output_axes(l, s, at, output, value) || !check_output_type(l, s, at, output, value))
        return;
    Type to = dtype_info[output->dtype].type;
    bool narrows = to == TYPE_F32 && node(l->g, value)->type == TYPE_F64;
    output->value = narrows ? value : widen(l, to, value);
}

/* ---- the body ---- */

static void lower_statement(Lowering *l, Scope *s, Outputs *outputs, const Statement *at)
{
    Node value = lower_expr(l, s, at->value);
    if (value.id) graph_name(l->g, value, at->name.name, at->value->span);
    if (name_find(&outputs->clashing, at->name.name) >= 0 || !bind_value(l, s, &at->name, value))
        return;
    int index = name_find(&outputs->map, at->name.name);
    if (index < 0) return;
    s->bindings.data[s->bindings.count - 1].is_output = true;
    bind_output(l, s, outputs, index, at, value);
}

/* The hint that a binding nothing uses may be the output: one of a similar name, or the only one
 * where there is one such output. */
static const char *unused_hint(Lowering *l, const Scope *s, const char *output, bool only)
{
    const char **names = NEW_ARRAY(l->arena, const char *, s->bindings.count + 1);
    int count = 0;
    for (int i = 0; i < s->bindings.count; i++) {
        const Binding *b = &s->bindings.data[i];
        if (!b->used && !b->is_output && !b->is_input) names[count++] = b->name;
    }
    const char *near = nearest_name(output, names, count);
    if (!near && only && count == 1) near = names[0];
    return near ? arena_format(l->arena, "'%s' is bound, and never used", near) : NULL;
}

static void check_all_bound(Lowering *l, Scope *s, const Outputs *outputs)
{
    int missing = 0;
    for (int i = 0; i < outputs->decls.count; i++) missing += !outputs->bound.data[i];
    for (int i = 0; i < outputs->decls.count; i++) {
        const char *name = outputs->decls.data[i]->name.name;
        if (!outputs->bound.data[i])
            name_error(l, s, outputs->decls.data[i]->span, unused_hint(l, s, name, missing == 1),
                       "output '%s' is never bound", name);
    }
}

static void warn_unused(Lowering *l, const Scope *s)
{
    for (int i = 0; i < s->bindings.count; i++) {
        const Binding *b = &s->bindings.data[i];
        if (!b->used && !b->is_output)
            report_warning(l->d, b->span, NULL, "%s '%s' is never used",
                           b->is_input ? "input" : "binding", b->name);
    }
}

/* Warns of an axis that no tensor has and whose size nothing uses. */
static void warn_unused_axes(Lowering *l)
{
    const Graph *g = l->g;
    AxisSet used = 0;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        used |= info->axes; /* an operand has the axes that a reduction removes */
        if (info->op == OP_SIZE) used |= (AxisSet)1 << info->axis;
    }
    for (int i = 0; i < g->params.count; i++) used |= g->params.data[i].axes;
    for (int i = 0; i < g->outputs.count; i++) used |= g->outputs.data[i].axes;
    for (int i = 0; i < g->axis_count; i++)
        if (!(used >> i & 1))
            report_warning(l->d, g->axes[i].span, NULL, "axis '%s' is never used", g->axes[i].name);
}

static void warn_of_literal(Lowering *l, Span at, DType dtype, const NodeInfo *literal)
{
    double value = type_is_float(literal->type) ? literal->number : (double)literal->integer;
    double kept = dtype_round(dtype, value);
    if (literal->op == OP_CONST && !isinf(value) && dtype_distorts(dtype, value, kept))
        report_warning(l->d, at, NULL, "%s cannot hold this number: it becomes %s",
                       dtype_info[dtype].fuse, number_shown(l, dtype, kept));
}

/* Warns of literals that their type cannot hold. A literal has a type only where it is used: f32 in
 * arithmetic, the dtype of a cast or of an output. */
static void warn_of_literals(Lowering *l)
{
    const Graph *g = l->g;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        for (int k = 0; k < op_info[info->op].arity; k++) {
            const NodeInfo *literal = node(g, info->args[k]);
            if (info->op == OP_CAST)
                warn_of_literal(l, literal->span, info->dtype, literal);
            else if (literal->type == TYPE_F32)
                warn_of_literal(l, literal->span, DTYPE_F32, literal);
        }
    }
    for (int i = 0; i < g->outputs.count; i++)
        warn_of_literal(l, g->outputs.data[i].span, g->outputs.data[i].dtype,
                        node(g, g->outputs.data[i].value));
}

/* The number that a node of numbers alone comes to, NaN where it is none: `of` has those of the nodes before. */
static double number_of(const Graph *g, const NodeInfo *info, const double *of)
{
    double value;
    if (info->op == OP_CONST)
        value = type_is_float(info->type) ? info->number : (double)info->integer;
    else if (info->op == OP_CONVERT)
        value = of[info->args[0].id];
    else if (!type_is_float(info->type) || op_info[info->op].arity > 2 ||
             !type_is_float(node(g, info->args[0])->type) ||
             !f64_value(info->op, of[info->args[0].id], of[info->args[1].id], &value))
        return (double)NAN;
    return info->type == TYPE_F32 ? (double)(float)value : value;
}

/* Warns of numbers that come to one beyond their type, as 2 ** 200 does; 1 / 0 is infinite in any. */
static void warn_of_overflow(Lowering *l)
{
    const Graph *g = l->g;
    double *of = NEW_ARRAY(l->arena, double, g->nodes.count);
    of[0] = 1;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        of[i] = number_of(g, info, of);
        if (!isinf(of[i]) || info->op == OP_CONST || info->op == OP_CONVERT) continue;
        bool overflows = true;
        for (int k = 0; k < op_info[info->op].arity; k++) {
            const double argument = of[info->args[k].id];
            overflows &= isfinite(argument) && argument != 0;
        }
        if (overflows)
            report_warning(l->d, info->span, NULL, "%s cannot hold this number: it becomes %g",
                           info->type == TYPE_F32 ? "f32" : "f64", of[i]);
    }
}

Graph *lower(Arena *arena, Diagnostics *d, const Module *program, const Item *graph)
{
    Lowering *l = lowering_new(arena, d, program);
    Graph *g = l->g = graph_new(arena);
    Scope *s = scope_new(l, graph);
    Outputs outputs = {0};
    g->name = graph->name.name;
    g->source = graph->span.source;
    g->span = graph->span;
    declare_axes(l, s, graph->axes);
    for (const ParamDecl *p = graph->params; p; p = p->next) declare_param(l, s, p);
    for (const ParamDecl *p = graph->outputs; p; p = p->next) declare_output(l, s, &outputs, p);
    if (!graph->outputs)
        name_error(l, s, graph->name.span, NULL, "graph '%s' has no output", g->name);
    /* A statement without a name is a stray return, which the parser has reported. */
    for (const Statement *at = graph->body; at; at = at->next)
        if (at->name.name) lower_statement(l, s, &outputs, at);
    check_all_bound(l, s, &outputs);
    if (l->failed) return NULL;
    warn_unused(l, s);
    warn_unused_axes(l);
    warn_of_literals(l);
    warn_of_overflow(l);
    return g;
}
