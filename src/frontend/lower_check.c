/* frontend/lower_check.c: checks what belongs to no graph. Functions have no types of their own,
 * so their names are checked here, called or not, and their types where lower inlines
 * them. */
#include "frontend/lower_internal.h"

#include <string.h>

/* ---- duplicate items ---- */

static void check_duplicate(Arena *arena, Diagnostics *d, Map *seen, const Item **items,
                            const Item *item, const char *what)
{
    const char *name = item->name.name;
    int first = name_find(seen, name);
    if (first < 0) {
        items[seen->count] = item;
        name_add(arena, seen, name, (int)seen->count);
        return;
    }
    int row, column;
    Span at = items[first]->name.span;
    source_place(at.source, at.begin, &row, &column);
    report_error(d, item->name.span,
                 arena_format(arena, "first defined at %s:%d:%d", at.source->name, row, column),
                 "%s '%s' is defined twice", what, name);
}

static int count_items(const Module *program)
{
    int count = 0;
    for (; program; program = program->next)
        for (const Item *item = program->items; item; item = item->next) count++;
    return count;
}

/* The first place of each name of a program's items. */
typedef struct {
    const Item **functions, **graphs;
    Map function_map, graph_map;
} Items;

static void check_module(Arena *arena, Diagnostics *d, Items *items, const Module *module,
                         bool imported)
{
    for (const Item *item = module->items; item; item = item->next) {
        if (!item->name.name) continue;
        if (item->kind == ITEM_FUNCTION)
            check_duplicate(arena, d, &items->function_map, items->functions, item, "function");
        /* Graphs of imported files are not part of the program. */
        if (item->kind == ITEM_GRAPH && !imported)
            check_duplicate(arena, d, &items->graph_map, items->graphs, item, "graph");
        if (item->kind == ITEM_FUNCTION && is_builtin(item->name.name))
            report_error(d, item->name.span, "give it another name", "'%s' is a built-in function",
                         item->name.name);
    }
}

/* Imported items come first, so that of two definitions the program's own is the second. */
static void check_items(Arena *arena, Diagnostics *d, const Module *program)
{
    int count = count_items(program);
    Items items = {NEW_ARRAY(arena, const Item *, count + 1),
                   NEW_ARRAY(arena, const Item *, count + 1),
                   {0},
                   {0}};
    for (const Module *module = program->next; module; module = module->next)
        check_module(arena, d, &items, module, true);
    check_module(arena, d, &items, program, false);
}

/* ---- names in functions ---- */

static void check_later(Lowering *l, const Expr *e)
{
    *list_push(l->arena, &l->unchecked) = e;
}

/* Reverses the expressions that were put off from `first` on, so that they are taken in order. */
static void reverse(Lowering *l, int first)
{
    for (int last = l->unchecked.count - 1; first < last; first++, last--) {
        const Expr *e = l->unchecked.data[first];
        l->unchecked.data[first] = l->unchecked.data[last];
        l->unchecked.data[last] = e;
    }
}

static void check_call(Lowering *l, Scope *s, const Expr *e)
{
    Callee callee;
    bool resolved = resolve_call(l, s, e, &callee);
    if (resolved && callee.kind == CALLEE_FUNCTION) {
        *list_push(l->arena, &l->callees) = callee.function;
        *list_push(l->arena, &l->callee_spans) = e->span;
    }
    if (strcmp(e->name, "index") == 0 || strcmp(e->name, "size") == 0) return;
    int first = l->unchecked.count;
    for (const Expr *a = e->left; a; a = a->next) check_later(l, a);
    reverse(l, first);
}

/* Checks an expression without recursion, from left to right, because threads may have small
 * stacks. */
static void check_expr(Lowering *l, Scope *s, const Expr *root)
{
    check_later(l, root);
    while (l->unchecked.count > 0) {
        const Expr *e = l->unchecked.data[--l->unchecked.count];
        while (e->kind == EXPR_PAREN || e->kind == EXPR_UNARY) e = e->left;
        if (e->kind == EXPR_BINARY) {
            check_later(l, e->right);
            check_later(l, e->left);
        }
        if (e->kind == EXPR_NAME) find_value(l, s, e);
        if (e->kind == EXPR_CALL) check_call(l, s, e);
    }
}

static void check_function(Lowering *l, const Item *function)
{
    Scope *s = scope_new(l, function);
    uint32_t bit = 0;
    for (const AxisDecl *axis = function->axes; axis; axis = axis->next)
        bind_axis(l, s, &axis->name, (AxisSet)1 << (bit++ % 32));
    if (bit > MAX_AXES)
        report_error(l->d, function->span, NULL, "'%s' has more than %d axes", function->name.name,
                     MAX_AXES);
    for (const Ident *name = function->arguments; name; name = name->next)
        bind_value(l, s, name, (Node){0});
    for (const Statement *at = function->body; at; at = at->next) {
        check_expr(l, s, at->value);
        if (at->name.name) bind_value(l, s, &at->name, (Node){0});
    }
}

/* ---- recursion ---- */

typedef struct {
    int end;  /* its calls in Lowering.callees: next .. end */
    int next; /* the call to follow next */
    enum { UNSEEN, ACTIVE, DONE } state;
} Visit;

static int function_index(const Lowering *l, const Item *function)
{
    return name_find(&l->items->function_map, function->name.name);
}

/* Depth first along the calls without recursing; a call of an active function is an
 * error. */
static void check_recursion(Lowering *l, Visit *visits, int *stack, int root)
{
    int depth = 0;
    stack[depth++] = root;
    visits[root].state = ACTIVE;
    while (depth > 0) {
        int caller = stack[depth - 1];
        Visit *visit = &visits[caller];
        if (visit->next == visit->end) {
            visit->state = DONE;
            depth--;
            continue;
        }
        int call = visit->next++;
        int callee = function_index(l, l->callees.data[call]);
        if (visits[callee].state == ACTIVE)
            report_error(l->d, l->callee_spans.data[call], NULL,
                         callee == caller ? "recursion: '%s' calls itself"
                                          : "recursion: '%s' is called again while it runs",
                         l->items->functions.data[callee]->name.name);
        if (visits[callee].state == UNSEEN) {
            visits[callee].state = ACTIVE;
            stack[depth++] = callee;
        }
    }
}

void check_program(Arena *arena, Diagnostics *d, const Module *program)
{
    check_items(arena, d, program);
    Lowering *l = lowering_new(arena, d, program);
    Visit *visits = NEW_ARRAY(arena, Visit, l->items->functions.count + 1);
    for (int i = 0; i < l->items->functions.count; i++) {
        visits[i].next = l->callees.count;
        check_function(l, l->items->functions.data[i]);
        visits[i].end = l->callees.count;
    }
    int *stack = NEW_ARRAY(arena, int, l->items->functions.count + 1);
    for (int i = 0; i < l->items->functions.count; i++)
        if (visits[i].state == UNSEEN) check_recursion(l, visits, stack, i);
}
