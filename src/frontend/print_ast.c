/* frontend/print_ast.c: `--emit=tokens` and `--emit=ast`, the first two dumps of the pipeline.
 *
 * The tree is printed without places, one node a line, so that two texts that mean the
 * same print the same; fmt's tests rest on that. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <inttypes.h>
#include <string.h>

/* Advances row and column from the token before, so that a file of n bytes takes n steps. */
static void advance_place(const Source *source, uint32_t *at, uint32_t to, int *row, int *column)
{
    for (; *at < to; ++*at) {
        bool newline = source->text[*at] == '\n';
        *row += newline;
        *column = newline ? 1 : *column + 1;
    }
}

static const char *token_class(int kind)
{
    switch (kind) {
    case 0:
    case TOKEN_NAME:
    case TOKEN_BIND:
    case TOKEN_STRING:
    case TOKEN_INTEGER:
    case TOKEN_FLOAT:
    case TOKEN_CONSTANT: return token_kind_name(kind);
    case TOKEN_IMPORT:
    case TOKEN_FN:
    case TOKEN_GRAPH:
    case TOKEN_RETURN: return "keyword";
    default: return "symbol";
    }
}

void print_tokens(Text *out, Arena *arena, Diagnostics *d, const Source *source)
{
    Scanner scanner;
    scanner_start(&scanner, arena, d, source);
    uint32_t at = 0;
    int row = 1, column = 1;
    Token token;
    for (;;) {
        scan(&scanner, &token);
        advance_place(source, &at, token.span.begin, &row, &column);
        text_print(out, "%d:%d %s", row, column, token_class(token.kind));
        if (token.kind == 0) break;
        text_print(out, token.kind == TOKEN_STRING ? " \"%s\"\n" : " %s\n", token.text);
    }
    text_put(out, "\n", 1);
}

static void open_line(Text *out)
{
    line(out, "%s", "");
    out->length--;
    out->data[out->length] = 0;
}

static void print_expr(Text *out, const Expr *expr)
{
    static const char *const kinds[] = {
        [EXPR_ERROR] = "error",       [EXPR_INTEGER] = "integer", [EXPR_FLOAT] = "float",
        [EXPR_CONSTANT] = "constant", [EXPR_NAME] = "name",       [EXPR_UNARY] = "unary",
        [EXPR_BINARY] = "binary",     [EXPR_CALL] = "call",       [EXPR_PAREN] = "paren",
    };
    open_line(out);
    text_print(out, "%s %s", kinds[expr->kind], expr->name);
    if (expr->has_axes) {
        text_put(out, "[", 1);
        print_names(out, expr->axes);
        text_put(out, "]", 1);
    }
    text_put(out, "\n", 1);
    out->indent++;
    for (const Expr *at = expr->left; at; at = at->next) print_expr(out, at);
    if (expr->right) print_expr(out, expr->right);
    out->indent--;
}

static void print_statements(Text *out, const Statement *body)
{
    for (const Statement *at = body; at; at = at->next) {
        if (at->name.name)
            line(out, "bind %s", at->name.name);
        else
            line(out, "return");
        out->indent++;
        print_expr(out, at->value);
        out->indent--;
    }
}

static void print_params(Text *out, const char *role, const ParamDecl *params)
{
    for (const ParamDecl *at = params; at; at = at->next) {
        open_line(out);
        text_print(out, "%s %s : %s", role, at->name.name, at->dtype.name);
        if (at->has_brackets) {
            text_put(out, "[", 1);
            print_names(out, at->axes);
            text_put(out, "]", 1);
        }
        text_put(out, "\n", 1);
        if (at->initial) {
            out->indent++;
            print_expr(out, at->initial);
            out->indent--;
        }
    }
}

static void print_head(Text *out, const Item *item)
{
    static const char *const kinds[] = {"import", "fn", "graph"};
    open_line(out);
    text_print(out, "%s %s", kinds[item->kind], item->name.name);
    for (const AxisDecl *at = item->axes; at; at = at->next) {
        text_print(out, "%s%s", at == item->axes ? "[" : ", ", at->name.name);
        if (at->size >= 0) text_print(out, " = %" PRId64, at->size);
    }
    text_put(out, "]", item->axes ? 1 : 0);
    if (item->kind == ITEM_FUNCTION) {
        text_put(out, "(", 1);
        print_names(out, item->arguments);
        text_put(out, ")", 1);
    }
    text_put(out, "\n", 1);
}

void print_ast(Text *out, const Module *module)
{
    for (const Item *item = module->items; item; item = item->next) {
        print_head(out, item);
        out->indent++;
        print_params(out, "input", item->params);
        print_params(out, "output", item->outputs);
        print_statements(out, item->body);
        out->indent--;
    }
}
