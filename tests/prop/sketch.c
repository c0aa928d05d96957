/* sketch.c: see sketch.h. Parentheses are written only where the language needs them, so
 * that the parser's precedences are tested against the text with all of them. */
#include "sketch.h"

#include "base/text.h"

#include <string.h>

enum { MOST_ARGUMENTS = 8, MOST_SETS = 3, TIGHTEST = 16 };

typedef struct {
    Arena *arena;
    const Sketch *sketch;
    int style;
    /* inside a function: its axis parameters and arguments */
    bool inside;
    AxisSet sets[MOST_SETS];
    int set_count;
    const char *arguments[MOST_ARGUMENTS];
    int argument_count;
} Printer;

static int precedence(const Term *t)
{
    static const struct {
        const char *text;
        int level;
    } levels[] = {{"||", 4},  {"&&", 5}, {"==", 9}, {"!=", 9}, {"<", 10}, {"<=", 10}, {">", 10},
                  {">=", 10}, {"+", 12}, {"-", 12}, {"*", 13}, {"/", 13}, {"**", 15}};
    if (t->kind == TERM_UNARY) return 14;
    if (t->kind == TERM_LITERAL) return t->text[0] == '-' ? 14 : TIGHTEST;
    if (t->kind != TERM_BINARY) return TIGHTEST;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(levels[i].text, t->text)) return levels[i].level;
    return 0;
}

static const char *argument_name(const Printer *p, const char *name)
{
    static const char *const names[MOST_ARGUMENTS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (int i = 0; p->inside && i < p->argument_count; i++)
        if (!strcmp(p->arguments[i], name)) return names[i];
    return name;
}

static const char *set_text(const Printer *p, AxisSet set)
{
    static const char *const names[MOST_SETS] = {"K", "L", "P"};
    Text *out = text_new(p->arena);
    for (int i = 0; p->inside && i < p->set_count; i++)
        if (p->sets[i] == set) return names[i];
    for (int i = 0; i < p->sketch->axis_count; i++)
        if (set >> i & 1) text_print(out, "%s%s", out->length ? ", " : "", p->sketch->axes[i].name);
    return text_string(out);
}

static void print_term(Text *out, const Printer *p, const Term *t);

static void print_operand(Text *out, const Printer *p, const Term *t, int least)
{
    const bool wrap =
        precedence(t) < least || (p->style & PRINT_PARENTHESES && precedence(t) < TIGHTEST);
    text_print(out, wrap ? "(" : "");
    print_term(out, p, t);
    text_print(out, wrap ? ")" : "");
}

/* `**` leans to the right and binds tighter than a sign before it; all others lean to the
 * left. */
static void print_operation(Text *out, const Printer *p, const Term *t)
{
    const int level = precedence(t);
    const bool power = !strcmp(t->text, "**");
    if (t->kind == TERM_UNARY) {
        text_print(out, "%s", t->text);
        print_operand(out, p, t->args[0], level);
        return;
    }
    print_operand(out, p, t->args[0], power ? level + 1 : level);
    text_print(out, " %s ", t->text);
    print_operand(out, p, t->args[1], power ? level : level + 1);
}

static void print_term(Text *out, const Printer *p, const Term *t)
{
    switch (t->kind) {
    case TERM_NAME: text_print(out, "%s", argument_name(p, t->text)); return;
    case TERM_LITERAL: text_print(out, "%s", t->text); return;
    case TERM_AXIS: text_print(out, "%s(%s)", t->text, set_text(p, t->over)); return;
    case TERM_UNARY:
    case TERM_BINARY: print_operation(out, p, t); return;
    case TERM_CALL: break;
    }
    text_print(out, "%s", t->text);
    if (t->over) text_print(out, "[%s]", set_text(p, t->over));
    text_print(out, "(");
    for (int i = 0; i < t->count; i++) {
        text_print(out, i ? ", " : "");
        print_term(out, p, t->args[i]);
    }
    text_print(out, ")");
}

/* ---- functions ---- */

static bool add_set(Printer *p, AxisSet set)
{
    for (int i = 0; i < p->set_count; i++)
        if (p->sets[i] == set) return true;
    if (p->set_count == MOST_SETS) return false;
    p->sets[p->set_count++] = set;
    return true;
}

static bool add_argument(Printer *p, const char *name)
{
    for (int i = 0; i < p->argument_count; i++)
        if (!strcmp(p->arguments[i], name)) return true;
    if (p->argument_count == MOST_ARGUMENTS) return false;
    p->arguments[p->argument_count++] = name;
    return true;
}

static bool collect(Printer *p, const Term *t)
{
    bool good = t->kind != TERM_NAME || add_argument(p, t->text);
    if (t->over) good = good && add_set(p, t->over);
    for (int i = 0; i < t->count && good; i++) good = collect(p, t->args[i]);
    return good;
}

/* Several axis parameters take one axis each, a single one may be given several. */
static bool can_be_function(Printer *p, const SketchStatement *at)
{
    bool good = at->function && !(p->style & PRINT_INLINE) && collect(p, at->value);
    for (int i = 0; i < p->set_count && p->set_count > 1; i++)
        good = good && axes_count(p->sets[i]) == 1;
    return good;
}

static void print_function(Text *out, Printer *p, const SketchStatement *at)
{
    text_print(out, "fn make_%s", at->name);
    p->inside = true;
    for (int i = 0; i < p->set_count; i++)
        text_print(out, "%s%s%s", i ? ", " : "[", set_text(p, p->sets[i]),
                   i + 1 == p->set_count ? "]" : "");
    text_print(out, "(");
    for (int i = 0; i < p->argument_count; i++)
        text_print(out, "%s%s", i ? ", " : "", argument_name(p, p->arguments[i]));
    text_print(out, ") = ");
    print_term(out, p, at->value);
    text_print(out, "\n");
    p->inside = false;
}

static void print_call(Text *out, const Printer *p, const SketchStatement *at)
{
    text_print(out, "make_%s", at->name);
    for (int i = 0; i < p->set_count; i++)
        text_print(out, "%s%s%s", i ? ", " : "[", set_text(p, p->sets[i]),
                   i + 1 == p->set_count ? "]" : "");
    text_print(out, "(");
    for (int i = 0; i < p->argument_count; i++)
        text_print(out, "%s%s", i ? ", " : "", p->arguments[i]);
    text_print(out, ")");
}

/* ---- the program ---- */

static AxisSet axes_of(const Sketch *s, const Term *t);

static AxisSet axes_of_name(const Sketch *s, const char *name)
{
    for (int i = 0; i < s->params.count; i++)
        if (!strcmp(s->params.data[i].name, name)) return s->params.data[i].axes;
    for (int i = 0; i < s->statements.count; i++)
        if (!strcmp(s->statements.data[i].name, name))
            return axes_of(s, s->statements.data[i].value);
    return 0;
}

static AxisSet axes_of(const Sketch *s, const Term *t)
{
    static const char *const kept[] = {"softmax", "log_softmax", "layer_norm", "rms_norm",
                                       "l2_normalize"};
    AxisSet axes = 0;
    if (t->kind == TERM_NAME) return axes_of_name(s, t->text);
    if (t->kind == TERM_AXIS) return !strcmp(t->text, "index") ? t->over : 0;
    for (int i = 0; i < t->count; i++) axes |= axes_of(s, t->args[i]);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(kept[i], t->text)) return axes;
    return axes & ~t->over;
}

static void print_declarations(Text *out, const Printer *p, const char *graph_name)
{
    const Sketch *s = p->sketch;
    text_print(out, "graph %s", graph_name);
    for (int i = 0; i < s->axis_count; i++)
        text_print(out, "%s%s = %lld%s", i ? ", " : "[", s->axes[i].name,
                   (long long)s->axes[i].size, i + 1 == s->axis_count ? "]" : "");
    text_print(out, "(\n");
    for (int i = 0; i < s->params.count; i++) {
        const SketchParam *param = &s->params.data[i];
        text_print(out, "    %s : %s", param->name, dtype_info[param->dtype].fuse);
        if (!param->scalar) text_print(out, "[%s]", set_text(p, param->axes));
        if (param->initial) text_print(out, " = %s", param->initial);
        text_print(out, ",\n");
    }
    text_print(out, ") -> (\n");
    for (int i = 0; i < s->statements.count; i++) {
        const SketchStatement *at = &s->statements.data[i];
        if (at->output)
            text_print(out, "    %s : %s[%s],\n", at->name, dtype_info[at->dtype].fuse,
                       set_text(p, axes_of(s, at->value)));
    }
    text_print(out, ") {\n");
}

const char *print_sketch(Arena *arena, const Sketch *s, const char *graph_name, int style)
{
    Text *head = text_new(arena), *body = text_new(arena);
    Printer p = {.arena = arena, .sketch = s, .style = style};
    text_print(head, "import \"std\"\n\n");
    print_declarations(body, &p, graph_name);
    for (int i = 0; i < s->statements.count; i++) {
        const SketchStatement *at = &s->statements.data[i];
        Printer own = {.arena = arena, .sketch = s, .style = style};
        text_print(body, "    %s = ", at->name);
        if (can_be_function(&own, at)) {
            print_function(head, &own, at);
            print_call(body, &own, at);
        } else {
            own.set_count = own.argument_count = 0;
            print_term(body, &own, at->value);
        }
        text_print(body, "\n");
    }
    text_print(body, "}\n");
    return arena_format(arena, "%s%s", text_string(head), text_string(body));
}
