/* frontend/lower_names.c: scopes, and what a name before `(` or `[` stands for. Values, axes and
 * functions are separate namespaces; built-in functions cannot be redefined. */
#include "frontend/lower_internal.h"

#include <string.h>

/* ---- errors ---- */

bool is_silent(const Lowering *l, const Scope *s)
{
    return l->g && s && s->item->kind == ITEM_FUNCTION;
}

void name_error(Lowering *l, const Scope *s, Span at, const char *hint, const char *format, ...)
{
    l->failed = true;
    if (is_silent(l, s)) return;
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(l->arena, format, args);
    va_end(args);
    report_error(l->d, at, hint, "%s", message);
}

static bool in_std(Span at)
{
    return at.source && strcmp(at.source->name, "std") == 0;
}

static bool was_reported(Lowering *l, Span at)
{
    for (int i = 0; i < l->reported.count; i++)
        if (l->reported.data[i].source == at.source && l->reported.data[i].begin == at.begin)
            return true;
    *list_push(l->arena, &l->reported) = at;
    return false;
}

/* An error inside the embedded library is shown where the user's text calls it. */
void type_error(Lowering *l, const Scope *s, Span at, const char *hint, const char *format, ...)
{
    l->failed = true;
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(l->arena, format, args);
    va_end(args);
    const char *inside = NULL;
    for (; s->caller && in_std(at); s = s->caller) {
        inside = s->item->name.name;
        at = s->call;
    }
    if (was_reported(l, at)) return;
    if (s->caller && !hint) {
        int row, column;
        source_place(s->call.source, s->call.begin, &row, &column);
        hint = arena_format(l->arena, "in '%s' as called at %s:%d:%d", s->item->name.name,
                            s->call.source->name, row, column);
    }
    if (inside)
        report_error(l->d, at, hint, "in '%s': %s", inside, message);
    else
        report_error(l->d, at, hint, "%s", message);
}

const char *did_you_mean(Lowering *l, const char *name, const char *const *names, int count)
{
    const char *near = nearest_name(name, names, count);
    return near ? arena_format(l->arena, "did you mean '%s'?", near) : NULL;
}

/* ---- scopes ---- */

static void index_function(Arena *arena, ItemIndex *index, const Item *item)
{
    if (name_find(&index->function_map, item->name.name) >= 0) return;
    name_add(arena, &index->function_map, item->name.name, index->functions.count);
    *list_push(arena, &index->functions) = item;
}

static void index_graph(Arena *arena, ItemIndex *index, const Item *item)
{
    if (name_find(&index->graph_map, item->name.name) >= 0) return;
    name_add(arena, &index->graph_map, item->name.name, index->graphs.count);
    *list_push(arena, &index->graphs) = item;
}

static const ItemIndex *index_items(Arena *arena, const Module *program)
{
    ItemIndex *index = NEW(arena, ItemIndex);
    for (const Module *module = program; module; module = module->next)
        for (const Item *item = module->items; item; item = item->next) {
            if (item->kind == ITEM_FUNCTION && item->name.name) index_function(arena, index, item);
            if (item->kind == ITEM_GRAPH && item->name.name && module == program)
                index_graph(arena, index, item);
        }
    return index;
}

void index_program(Arena *arena, Module *program)
{
    program->index = index_items(arena, program);
}

static const ItemIndex *index_of(Arena *arena, const Module *program)
{
    return program->index ? program->index : index_items(arena, program);
}

const Item *find_graph(Arena *arena, const Module *program, const char *name)
{
    const ItemIndex *index = index_of(arena, program);
    int found = name_find(&index->graph_map, name);
    return found < 0 ? NULL : index->graphs.data[found];
}

Lowering *lowering_new(Arena *arena, Diagnostics *d, const Module *program)
{
    Lowering *l = NEW(arena, Lowering);
    l->arena = arena;
    l->d = d;
    l->items = index_of(arena, program);
    return l;
}

Scope *scope_new(Lowering *l, const Item *item)
{
    Scope *s = NEW(l->arena, Scope);
    s->item = item;
    return s;
}

bool bind_axis(Lowering *l, Scope *s, const Ident *name, AxisSet set)
{
    if (name_find(&s->axis_map, name->name) >= 0) {
        name_error(l, s, name->span, NULL, "axis '%s' is declared twice", name->name);
        return false;
    }
    name_add(l->arena, &s->axis_map, name->name, s->axes.count);
    *list_push(l->arena, &s->axes) = (AxisName){name->name, set};
    return true;
}

static bool is_reduction_name(const char *name);

bool bind_value(Lowering *l, Scope *s, const Ident *name, Node value)
{
    int first = name_find(&s->values, name->name);
    if (first >= 0) {
        int row, column;
        l->failed = true;
        if (is_silent(l, s)) return false;
        Span span = s->bindings.data[first].span;
        source_place(span.source, span.begin, &row, &column);
        name_error(
            l, s, name->span,
            arena_format(l->arena,
                         s->bindings.data[first].is_input
                             ? "it is the input of %s:%d:%d, which keeps its value: bind a new name"
                             : "first bound at %s:%d:%d",
                         span.source->name, row, column),
            "'%s' is bound twice", name->name);
        return false;
    }
    name_add(l->arena, &s->values, name->name, s->bindings.count);
    *list_push(l->arena, &s->bindings) =
        (Binding){.name = name->name, .span = name->span, .value = value};
    return true;
}

static const char *value_hint(Lowering *l, const Scope *s, const char *name, Span use)
{
    for (const Statement *later = s->item->body; later; later = later->next)
        if (later->name.name && strcmp(later->name.name, name) == 0)
            return arena_format(l->arena,
                                later->name.span.begin < use.begin
                                    ? "'%s' is used in its own definition"
                                    : "'%s' is bound later",
                                name);
    if (name_find(&s->axis_map, name) >= 0)
        return arena_format(
            l->arena,
            "'%s' is an axis: it goes in brackets, as in sum[%s](x); size(%s) and index(%s) are numbers",
            name, name, name, name);
    const char **names = NEW_ARRAY(l->arena, const char *, s->bindings.count + 1);
    for (int i = 0; i < s->bindings.count; i++) names[i] = s->bindings.data[i].name;
    /* A single letter is more often a name than a constant, and "pi" is near to "i". */
    const char *constant = constant_meant(l->arena, name);
    const char *hint = strlen(name) > 1 ? constant : NULL;
    if (!hint) hint = did_you_mean(l, name, names, s->bindings.count);
    if (!hint) hint = constant;
    if (!hint && (is_builtin(name) || name_find(&l->items->function_map, name) >= 0))
        hint = arena_format(l->arena,
                            is_reduction_name(name) ? "'%s' is a reduction: write %s[AXIS](...)"
                                                    : "'%s' is a function: write %s(...)",
                            name, name);
    return hint;
}

Binding *find_value(Lowering *l, Scope *s, const Expr *name)
{
    int found = name_find(&s->values, name->name);
    if (found < 0) {
        name_error(l, s, name->span,
                   is_silent(l, s) ? NULL : value_hint(l, s, name->name, name->span),
                   "unknown name '%s'", name->name);
        return NULL;
    }
    s->bindings.data[found].used = true;
    return &s->bindings.data[found];
}

bool find_axis(Lowering *l, const Scope *s, const char *name, Span at, AxisSet *set)
{
    int found = name_find(&s->axis_map, name);
    if (found >= 0) {
        *set = s->axes.data[found].set;
        return true;
    }
    l->failed = true;
    if (is_silent(l, s)) return false;
    const char **names = NEW_ARRAY(l->arena, const char *, s->axes.count + 1);
    for (int i = 0; i < s->axes.count; i++) names[i] = s->axes.data[i].name;
    const char *hint = did_you_mean(l, name, names, s->axes.count);
    if (!s->axes.count && s->item->name.name)
        hint = arena_format(l->arena, "axes are declared after the name: %s[%s](...)",
                            s->item->name.name, name);
    if (!hint && s->axes.count == 1)
        hint = arena_format(l->arena, "the only axis here is '%s'", names[0]);
    if (!hint && s->axes.count > 1) hint = hint_name(l->arena, name, names, s->axes.count);
    name_error(l, s, at, hint, "unknown axis '%s'", name);
    return false;
}

/* ---- callees ---- */

Op find_operator(const char *text, int arity)
{
    for (int op = 1; op < OP_COUNT; op++) {
        OpClass class = op_info[op].class;
        if ((class == CLASS_UNARY || class == CLASS_BINARY || op == OP_POW) &&
            op_info[op].arity == arity && strcmp(op_info[op].text, text) == 0)
            return (Op)op;
    }
    return OP_NONE;
}

static Op find_op(OpClass class, const char *text)
{
    for (int op = 1; op < OP_COUNT; op++)
        if (op_info[op].class == class && strcmp(op_info[op].text, text) == 0) return (Op)op;
    return OP_NONE;
}

static bool find_builtin(const char *name, bool has_axes, Callee *callee)
{
    Op reduction = find_op(CLASS_REDUCE, name), element = find_op(CLASS_CALL, name);
    callee->kind = CALLEE_ELEMENT;
    callee->op = strcmp(name, "pow") == 0 ? OP_POW : element;
    if (reduction && (has_axes || !element)) {
        callee->kind = CALLEE_REDUCTION;
        callee->op = reduction;
    } else if (strcmp(name, "index") == 0 || strcmp(name, "size") == 0) {
        callee->kind = name[0] == 'i' ? CALLEE_INDEX : CALLEE_SIZE;
    } else if (dtype_find(name, &callee->dtype)) {
        callee->kind = CALLEE_CAST;
    }
    return callee->op != OP_NONE || callee->kind != CALLEE_ELEMENT;
}

bool is_builtin(const char *name)
{
    Callee callee = {0};
    return find_builtin(name, false, &callee);
}

static bool is_reduction_name(const char *name)
{
    Callee callee = {0};
    return find_builtin(name, false, &callee) && callee.kind == CALLEE_REDUCTION;
}

static int count_arguments(const Expr *call)
{
    int count = 0;
    for (const Expr *e = call->left; e; e = e->next) count++;
    return count;
}

/* `hint`: the signature, or NULL. */
static bool check_arguments(Lowering *l, const Scope *s, const Expr *call, int wanted,
                            const char *hint)
{
    int given = count_arguments(call);
    if (given == wanted) return true;
    name_error(l, s, call->span, hint, "'%s' takes %d argument%s, not %d", call->name, wanted,
               wanted == 1 ? "" : "s", given);
    return false;
}

static bool check_no_axes(Lowering *l, const Scope *s, const Expr *call)
{
    if (!call->has_axes) return true;
    name_error(l, s, call->span, NULL, "'%s' takes no axes in brackets", call->name);
    return false;
}

/* Adds the axes of one name in brackets to a set; naming one twice is an error. */
static bool add_axis(Lowering *l, const Scope *s, const Expr *call, const Ident *name, AxisSet *all,
                     AxisSet *set)
{
    AxisSet found;
    for (const Ident *earlier = call->axes; earlier != name; earlier = earlier->next) {
        if (strcmp(earlier->name, name->name) == 0) {
            name_error(l, s, name->span, NULL, "axis '%s' is named twice", name->name);
            return false;
        }
    }
    if (!find_axis(l, s, name->name, name->span, &found)) return false;
    if (*all & found) {
        type_error(l, s, name->span, NULL, "axis '%s' stands for an axis named before it",
                   name->name);
        return false;
    }
    *all |= found;
    *set |= found;
    return true;
}

static bool resolve_reduction(Lowering *l, const Scope *s, const Expr *call, Callee *callee)
{
    if (!call->axes) {
        name_error(l, s, call->span,
                   arena_format(l->arena, "name the axis to reduce: %s[%s](...)", call->name,
                                axes_meant(l, s, call)),
                   "'%s' is a reduction and needs its axes in brackets", call->name);
        return false;
    }
    AxisSet all = 0;
    for (const Ident *axis = call->axes; axis; axis = axis->next)
        if (!add_axis(l, s, call, axis, &all, &callee->axes)) return false;
    const bool of_elements = find_op(CLASS_CALL, call->name);
    const char *axes_hint = hint_for_axis_arguments(l, s, call);
    return check_arguments(l, s, call, 1,
                           axes_hint ? axes_hint
                           : of_elements
                               ? arena_format(l->arena,
                                              "for two values, write it without brackets: %s(a, b)",
                                              call->name)
                               : NULL);
}

static bool resolve_axis_call(Lowering *l, const Scope *s, const Expr *call, Callee *callee)
{
    if (!check_no_axes(l, s, call) || !check_arguments(l, s, call, 1, NULL)) return false;
    const Expr *axis = call->left;
    if (axis->kind == EXPR_ERROR) return false;
    if (axis->kind != EXPR_NAME) {
        name_error(l, s, axis->span, arena_format(l->arena, "%s(%s)", call->name, example_axis(s)),
                   "'%s' needs the name of an axis", call->name);
        return false;
    }
    return find_axis(l, s, axis->name, axis->span, &callee->axes);
}

/* One axis argument for each axis parameter, or all of them for the only one. */
static bool resolve_axis_arguments(Lowering *l, const Scope *s, const Expr *call, Callee *callee)
{
    int wanted = 0, given = 0;
    for (const AxisDecl *axis = callee->function->axes; axis; axis = axis->next) wanted++;
    for (const Ident *axis = call->axes; axis; axis = axis->next) given++;
    if (given != wanted && !(wanted == 1 && given > 1)) {
        name_error(l, s, call->span,
                   wanted ? arena_format(l->arena, "%s[%s](...)", call->name,
                                         call->axes ? example_axis(s) : axes_meant(l, s, call))
                          : NULL,
                   "'%s' takes %d ax%ss in brackets, not %d", call->name, wanted,
                   wanted == 1 ? "i" : "e", given);
        return false;
    }
    callee->axis_args = NEW_ARRAY(l->arena, AxisSet, wanted + 1);
    AxisSet all = 0;
    int at = 0;
    for (const Ident *axis = call->axes; axis; axis = axis->next, at++)
        if (!add_axis(l, s, call, axis, &all, &callee->axis_args[wanted == 1 ? 0 : at]))
            return false;
    return true;
}

static bool resolve_function(Lowering *l, const Scope *s, const Expr *call, Callee *callee)
{
    int found = name_find(&l->items->function_map, call->name);
    if (found < 0) {
        const char *hint = is_silent(l, s) ? NULL : function_hint(l, s, call);
        if (!hint && name_find(&s->values, call->name) >= 0)
            hint = arena_format(l->arena, "'%s' is a value; '*' multiplies", call->name);
        name_error(l, s, call->name_span, hint, "unknown function '%s'", call->name);
        return false;
    }
    callee->kind = CALLEE_FUNCTION;
    callee->function = l->items->functions.data[found];
    int arguments = 0;
    for (const Ident *name = callee->function->arguments; name; name = name->next) arguments++;
    return resolve_axis_arguments(l, s, call, callee) &&
           check_arguments(l, s, call, arguments,
                           count_arguments(call) == arguments ? NULL
                                                              : signature(l, callee->function));
}

bool resolve_call(Lowering *l, const Scope *s, const Expr *call, Callee *callee)
{
    *callee = (Callee){0};
    if (!find_builtin(call->name, call->has_axes, callee))
        return resolve_function(l, s, call, callee);
    switch (callee->kind) {
    case CALLEE_REDUCTION: return resolve_reduction(l, s, call, callee);
    case CALLEE_INDEX:
    case CALLEE_SIZE: return resolve_axis_call(l, s, call, callee);
    case CALLEE_CAST: return check_no_axes(l, s, call) && check_arguments(l, s, call, 1, NULL);
    default: break;
    }
    /* min and max with a single argument are probably meant as reductions. */
    if (find_op(CLASS_REDUCE, call->name) && count_arguments(call) == 1)
        return resolve_reduction(l, s, call, callee);
    const char *usage = callee->op == OP_WHERE   ? "where(condition, a, b)"
                        : callee->op == OP_CLAMP ? "clamp(x, lo, hi)"
                                                 : NULL;
    return check_no_axes(l, s, call) &&
           check_arguments(l, s, call, op_info[callee->op].arity, usage);
}
