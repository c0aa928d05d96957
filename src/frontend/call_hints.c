/* frontend/call_hints.c: what to write in place of a call whose function is unknown, or whose axes
 * and arguments are not those that it takes. */
#include "frontend/lower_internal.h"

#include <string.h>

static const char *const special_names[] = {"index", "size", "pow"};

static bool has_string(const char *const *strings, int count, const char *wanted)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(strings[i], wanted)) return true;
    return false;
}

static const char *axis_from_end(const Scope *s, int place)
{
    return s->axes.count >= place ? s->axes.data[s->axes.count - place].name : NULL;
}

/* The names of a scope's axes for a hint: "N", or the last of several, the usual one. */
const char *example_axis(const Scope *s)
{
    const char *last = axis_from_end(s, 1);
    return last ? last : "N";
}

/* The axis that a number in the place of a second argument counts, as in mean(x, 0). */
static const char *counted_axis(const Scope *s, const Expr *call)
{
    const Expr *number = call->left ? call->left->next : NULL;
    bool negative = number && number->kind == EXPR_UNARY;
    if (negative) number = number->left;
    if (!number || number->kind != EXPR_INTEGER || number->integer < 0) return example_axis(s);
    int64_t place = negative ? s->axes.count - number->integer : number->integer;
    return place >= 0 && place < s->axes.count ? s->axes.data[place].name : example_axis(s);
}

const char *axes_meant(Lowering *l, const Scope *s, const Expr *call)
{
    Text *all = text_new(l->arena);
    for (const Expr *e = call->left ? call->left->next : NULL; e; e = e->next)
        if (e->kind == EXPR_NAME && name_find(&s->axis_map, e->name) >= 0)
            text_print(all, "%s%s", all->length ? ", " : "", e->name);
    return all->length ? text_string(all) : counted_axis(s, call);
}

/* The axes in a call's brackets, where all of them are axes here; else those meant by its operands.
 * `before`: the axis before the first of them; NULL: none. */
static const char *axes_of_call(Lowering *l, const Scope *s, const Expr *call, const char **before)
{
    bool known = call->axes != NULL;
    Text *all = text_new(l->arena);
    for (const Ident *axis = call->axes; axis; axis = axis->next) {
        known = known && name_find(&s->axis_map, axis->name) >= 0;
        text_print(all, "%s%s", all->length ? ", " : "", axis->name);
    }
    const char *axes = known        ? text_string(all)
                       : call->axes ? example_axis(s)
                                    : axes_meant(l, s, call);
    const int first = name_find(&s->axis_map, known ? call->axes->name : axes);
    *before = first > 0 ? s->axes.data[first - 1].name : NULL;
    return s->axes.count ? axes : NULL;
}

const char *function_hint(Lowering *l, const Scope *s, const Expr *call)
{
    const char *name = call->name, *before, *axes = axes_of_call(l, s, call, &before);
    int of_std, count = 0;
    const char *const *std = std_functions(l->arena, &of_std);
    if (has_string(std, of_std, name)) return "the standard library has it: import \"std\"";
    const char *meant = function_meant(l->arena, name, axes, before);
    if (meant) return meant;
    int capacity = OP_COUNT + DTYPE_COUNT + 4 + l->items->functions.count + of_std;
    const char **names = NEW_ARRAY(l->arena, const char *, capacity);
    for (int op = 1; op < OP_COUNT; op++)
        if ((op_info[op].class == CLASS_CALL && op != OP_POW) || op_info[op].class == CLASS_REDUCE)
            names[count++] = op_info[op].text;
    for (int i = 0; i < DTYPE_COUNT; i++) names[count++] = dtype_info[i].fuse;
    for (size_t i = 0; i < sizeof special_names / sizeof *special_names; i++)
        names[count++] = special_names[i];
    for (int i = 0; i < l->items->functions.count; i++)
        names[count++] = l->items->functions.data[i]->name.name;
    for (int i = 0; i < of_std; i++) names[count++] = std[i];
    const char *near = nearest_name(name, names, count);
    bool imported = near && name_find(&l->items->function_map, near) >= 0;
    return near && has_string(std, of_std, near) && !imported
               ? arena_format(l->arena,
                              "did you mean '%s'? The standard library has it: import \"std\"",
                              near)
               : did_you_mean(l, name, names, count);
}

const char *expr_text(Lowering *l, const Expr *e)
{
    enum { LONGEST = 60 };
    const size_t length = e->span.end - e->span.begin;
    const char *text = arena_copy(l->arena, e->span.source->text + e->span.begin, length);
    return length > LONGEST || strchr(text, '\n') ? "..." : text;
}

static bool names_axis(const Ident *axes, const char *name)
{
    while (axes && strcmp(axes->name, name)) axes = axes->next;
    return axes != NULL;
}

const char *hint_for_axis_arguments(Lowering *l, const Scope *s, const Expr *call)
{
    const Expr *rest = call->left ? call->left->next : NULL;
    Text *text = text_new(l->arena);
    text_print(text, "axes go in brackets: %s[", call->name);
    for (const Ident *axis = call->axes; axis; axis = axis->next)
        text_print(text, "%s%s", axis == call->axes ? "" : ", ", axis->name);
    for (const Expr *e = rest; e; e = e->next) {
        if (e->kind != EXPR_NAME || name_find(&s->axis_map, e->name) < 0 ||
            name_find(&s->values, e->name) >= 0)
            return NULL;
        if (!names_axis(call->axes, e->name)) text_print(text, ", %s", e->name);
    }
    text_print(text, "](%s)", rest ? expr_text(l, call->left) : "");
    return rest ? text_string(text) : NULL;
}

const char *signature(Lowering *l, const Item *function)
{
    Text *text = text_new(l->arena);
    text_print(text, "%s", function->name.name);
    for (const AxisDecl *axis = function->axes; axis; axis = axis->next)
        text_print(text, "%s%s%s", axis == function->axes ? "[" : ", ", axis->name.name,
                   axis->next ? "" : "]");
    text_print(text, "(");
    for (const Ident *name = function->arguments; name; name = name->next)
        text_print(text, "%s%s", name == function->arguments ? "" : ", ", name->name);
    text_print(text, ")");
    return text_string(text);
}
