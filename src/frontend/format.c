/* frontend/format.c: `fusec fmt`, the canonical form of one file with its comments kept.
 *
 * The tree is printed unit by unit (an import, a parameter, a statement, …). A comment behind a
 * unit on its line stays there. Every other comment gets a line of its own before the unit in or
 * before which it stood. Single blank lines between statements are kept. Runs of statements align
 * their `=`. */
#include "base/map.h"
#include "frontend/syntax.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    uint32_t begin, end;
    bool own_line;
} Comment;

typedef struct {
    Text *out;
    const Source *source;
    LIST(Comment) comments;
    int next;    /* the next comment to print */
    bool fresh;  /* the block is empty so far: no blank line */
    Map outputs; /* names of the graph's outputs, if it has several */
} Formatter;

/* ---- comments and blank lines ---- */

static uint32_t skip_string(const Source *source, uint32_t at)
{
    do at++;
    while (at < source->length && source->text[at] != '"' && source->text[at] != '\n');
    return at;
}

static Comment read_comment(const Source *source, uint32_t begin, bool own_line)
{
    uint32_t end = begin;
    while (end < source->length && source->text[end] != '\n') end++;
    while (strchr(" \t\r", source->text[end - 1])) end--;
    return (Comment){begin, end, own_line};
}

static void collect_comments(Formatter *f, Arena *arena)
{
    bool own_line = true;
    for (uint32_t at = 0; at < f->source->length; at++) {
        char c = f->source->text[at];
        if (c == '"') {
            at = skip_string(f->source, at);
            own_line = false;
        } else if (c == '#') {
            Comment comment = read_comment(f->source, at, own_line);
            *list_push(arena, &f->comments) = comment;
            at = comment.end - 1;
        } else if (c == '\n') {
            own_line = true;
        } else if (!strchr(" \t\r", c)) {
            own_line = false;
        }
    }
}

static bool blank_before(const Formatter *f, uint32_t at)
{
    int newlines = 0;
    while (at > 0 && strchr(" \t\r\n", f->source->text[at - 1]))
        newlines += f->source->text[--at] == '\n';
    return newlines > 1;
}

static void put_blank(Formatter *f, bool wanted)
{
    if (wanted && !f->fresh) text_put(f->out, "\n", 1);
    f->fresh = false;
}

/* Puts the pending comments that begin before `limit`, each on its line. */
static void put_comments(Formatter *f, uint32_t limit, bool keep_blanks, bool *forced)
{
    for (; f->next < f->comments.count && f->comments.data[f->next].begin < limit; f->next++) {
        Comment comment = f->comments.data[f->next];
        put_blank(f, *forced || (keep_blanks && blank_before(f, comment.begin)));
        *forced = false;
        line(f->out, "%.*s", (int)(comment.end - comment.begin), f->source->text + comment.begin);
    }
}

/* Puts what comes before a unit: comments, a blank line, the comments from inside the unit. */
static void begin_unit(Formatter *f, Span unit, bool forced)
{
    put_comments(f, unit.begin, true, &forced);
    put_blank(f, forced || blank_before(f, unit.begin));
    forced = false;
    put_comments(f, unit.end, false, &forced);
    text_print(f->out, "%*s", 4 * f->out->indent, "");
}

/* Ends the unit's line with the comment behind it, if that begins before `limit`. */
static void end_unit(Formatter *f, uint32_t end, uint32_t limit)
{
    if (f->next < f->comments.count) {
        Comment comment = f->comments.data[f->next];
        if (!comment.own_line && comment.begin >= end && comment.begin < limit &&
            !memchr(f->source->text + end, '\n', comment.begin - end)) {
            text_print(f->out, "  %.*s", (int)(comment.end - comment.begin),
                       f->source->text + comment.begin);
            f->next++;
        }
    }
    text_put(f->out, "\n", 1);
}

static bool has_comment_between(const Formatter *f, uint32_t begin, uint32_t end)
{
    for (int i = f->next; i < f->comments.count && f->comments.data[i].begin < end; i++)
        if (f->comments.data[i].begin >= begin) return true;
    return false;
}

/* ---- statements ---- */

static int name_width(const char *name)
{
    size_t length = strlen(name);
    return length < LINE_WIDTH ? (int)length : LINE_WIDTH;
}

static Map several_outputs(Arena *arena, const Item *item)
{
    Map names = {0};
    if (!item->outputs || !item->outputs->next) return names;
    for (const ParamDecl *at = item->outputs; at; at = at->next)
        if (name_find(&names, at->name.name) < 0) name_add(arena, &names, at->name.name, 0);
    return names;
}

/* Whether a statement binds an output: several outputs form a run of their own. */
static bool is_output(const Formatter *f, const Statement *statement)
{
    return statement->name.name && name_find(&f->outputs, statement->name.name) >= 0;
}

static bool is_alignable(const Statement *statement)
{
    return statement->name.name &&
           fits_on_line(statement->value, 4 + 3 + name_width(statement->name.name) + 1);
}

/* Whether a comment on a line of its own, or inside the statement, separates it from the statement
 * before. *next is the first comment to look at; it moves on with the statements. */
static bool is_parted(const Formatter *f, int *next, const Statement *before,
                      const Statement *statement)
{
    const Comment *comments = f->comments.data;
    while (*next < f->comments.count && comments[*next].begin < before->span.end) ++*next;
    if (blank_before(f, statement->span.begin)) return true;
    for (int i = *next; i < f->comments.count; i++) {
        Comment comment = comments[i];
        if (comment.begin >= statement->span.end) break;
        bool behind =
            !comment.own_line && comment.begin < statement->span.begin &&
            !memchr(f->source->text + before->span.end, '\n', comment.begin - before->span.end);
        if (!behind) return true;
    }
    return false;
}

/* The number of statements from `first` on that align with it; *width is their longest name. */
static int measure_run(const Formatter *f, const Statement *first, int *width)
{
    int count = 0, next = f->next;
    *width = 0;
    const Statement *before = NULL;
    for (const Statement *at = first; at; before = at, at = at->next, count++) {
        if (!is_alignable(at)) break;
        if (before && is_output(f, at) != is_output(f, first)) break;
        if (before && is_parted(f, &next, before, at)) break;
        if (name_width(at->name.name) > *width) *width = name_width(at->name.name);
    }
    return count;
}

static void put_statement(Formatter *f, const Statement *statement, int width, uint32_t limit)
{
    begin_unit(f, statement->span, false);
    if (statement->name.name)
        text_print(f->out, "%-*s = ", width, statement->name.name);
    else
        text_print(f->out, "return ");
    format_expr(f->out, statement->value);
    end_unit(f, statement->span.end, limit);
}

static void put_body(Formatter *f, const Item *item)
{
    uint32_t close = item->span.end - 1;
    f->outputs = several_outputs(f->out->arena, item);
    f->out->indent++;
    f->fresh = true;
    int left = 0, width = 0;
    for (const Statement *at = item->body; at; at = at->next, left--) {
        if (left <= 0) {
            left = measure_run(f, at, &width);
            width = left ? width : 0;
        }
        put_statement(f, at, width, at->next ? at->next->span.begin : close);
    }
    bool forced = false;
    put_comments(f, close, true, &forced);
    f->out->indent--;
    text_put(f->out, "}", 1);
}

/* ---- heads ---- */

static void put_axes(Text *out, const Item *item)
{
    if (!item->has_axes) return;
    for (const AxisDecl *at = item->axes; at; at = at->next) {
        text_print(out, "%s%s", at == item->axes ? "[" : ", ", at->name.name);
        if (at->size >= 0) text_print(out, " = %" PRId64, at->size);
    }
    text_put(out, "]", 1);
}

static void put_param(Text *out, const ParamDecl *param, int width)
{
    text_print(out, "%-*s : %s", width, param->name.name, param->dtype.name);
    if (param->has_brackets) {
        text_put(out, "[", 1);
        print_names(out, param->axes);
        text_put(out, "]", 1);
    }
    if (param->initial) {
        text_put(out, " = ", 3);
        format_expr(out, param->initial);
    }
}

static void put_flat_params(Text *out, const ParamDecl *params)
{
    for (const ParamDecl *at = params; at; at = at->next) {
        put_param(out, at, 0);
        text_put(out, ", ", at->next ? 2 : 0);
    }
}

/* The end of the list that has an item before `at`. */
static uint32_t closing(const Formatter *f, uint32_t at)
{
    const char *text = f->source->text;
    while (at < f->source->length && text[at] != ')')
        at += text[at] == '#' ? (uint32_t)strcspn(text + at, "\n") : 1;
    return at;
}

static void put_params(Formatter *f, const ParamDecl *params, uint32_t limit)
{
    bool forced = false;
    int width = 0;
    for (const ParamDecl *at = params; at; at = at->next)
        if (name_width(at->name.name) > width) width = name_width(at->name.name);
    f->out->indent++;
    f->fresh = true;
    for (const ParamDecl *at = params; at; at = at->next) {
        begin_unit(f, at->span, false);
        put_param(f->out, at, width);
        text_put(f->out, ",", at->next ? 1 : 0);
        end_unit(f, at->span.end, at->next ? at->next->span.begin : limit);
        if (!at->next) put_comments(f, closing(f, at->span.end), true, &forced);
    }
    f->out->indent--;
}

static uint32_t head_end(const Item *item)
{
    uint32_t end = item->name.span.end;
    for (const AxisDecl *at = item->axes; at; at = at->next) end = at->span.end;
    for (const Ident *at = item->arguments; at; at = at->next) end = at->span.end;
    for (const ParamDecl *at = item->params; at; at = at->next) end = at->span.end;
    for (const ParamDecl *at = item->outputs; at; at = at->next) end = at->span.end;
    return end;
}

static const char *flat_graph_head(Arena *arena, const Item *item)
{
    Text *flat = text_new(arena);
    text_print(flat, "graph %s", item->name.name);
    put_axes(flat, item);
    text_put(flat, "(", 1);
    put_flat_params(flat, item->params);
    text_print(flat, ") -> (");
    put_flat_params(flat, item->outputs);
    text_print(flat, ") {");
    return text_string(flat);
}

static void put_graph_head(Formatter *f, const Item *item, uint32_t body)
{
    uint32_t end = head_end(item);
    const char *flat = flat_graph_head(f->out->arena, item);
    if (strlen(flat) <= LINE_WIDTH && !strchr(flat, '\n') &&
        !has_comment_between(f, item->span.begin, closing(f, end))) {
        text_print(f->out, "%s", flat);
        end_unit(f, end, body);
        return;
    }
    text_print(f->out, "graph %s", item->name.name);
    put_axes(f->out, item);
    text_print(f->out, "(\n");
    put_params(f, item->params, item->outputs ? item->outputs->span.begin : body);
    text_print(f->out, ") -> (\n");
    put_params(f, item->outputs, body);
    text_print(f->out, ") {\n");
}

static void put_function_head(Formatter *f, const Item *item)
{
    text_print(f->out, "fn %s", item->name.name);
    put_axes(f->out, item);
    text_put(f->out, "(", 1);
    print_names(f->out, item->arguments);
    text_put(f->out, ")", 1);
}

static void put_item(Formatter *f, const Item *item)
{
    uint32_t body = item->body ? item->body->span.begin : item->span.end - 1;
    if (item->kind == ITEM_IMPORT) {
        text_print(f->out, "import \"%s\"", item->name.name);
        return;
    }
    if (item->kind == ITEM_GRAPH) {
        put_graph_head(f, item, body);
        put_body(f, item);
        return;
    }
    put_function_head(f, item);
    if (item->is_short) {
        text_put(f->out, " = ", 3);
        format_expr(f->out, item->body->value);
        return;
    }
    text_print(f->out, " {");
    end_unit(f, head_end(item), body);
    put_body(f, item);
}

static bool is_brief(const Item *item)
{
    return item->kind == ITEM_IMPORT || item->is_short;
}

/* An item with a body has lines inside it for comments; a brief one has none. */
static Span unit_of(const Item *item)
{
    Span unit = item->span;
    if (!is_brief(item)) unit.end = unit.begin;
    return unit;
}

void format_source(Text *out, Arena *arena, Diagnostics *d, const Source *source)
{
    Module *module = parse_module(arena, d, source);
    if (d->errors) return;
    Formatter f = {.out = out, .source = source, .fresh = true};
    collect_comments(&f, arena);
    const Item *before = NULL;
    for (const Item *at = module->items; at; before = at, at = at->next) {
        bool together = before && is_brief(before) && before->kind == at->kind && is_brief(at);
        begin_unit(&f, unit_of(at), before && !together);
        put_item(&f, at);
        end_unit(&f, at->span.end, at->next ? at->next->span.begin : UINT32_MAX);
    }
    bool forced = false;
    put_comments(&f, UINT32_MAX, true, &forced);
}
