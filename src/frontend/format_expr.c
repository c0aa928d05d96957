/* frontend/format_expr.c: expressions in canonical form, on one line where they fit, else broken.
 *
 * A broken chain ends its lines with the operator, since a line that starts with `-` gets a
 * warning; a broken call has one argument a line. The shape depends on the tree and the column
 * alone, which makes formatting idempotent. */
#include "frontend/syntax.h"

#include <string.h>

enum { DEEPEST_INDENT = 12 };

void print_names(Text *out, const Ident *names)
{
    for (const Ident *at = names; at; at = at->next)
        text_print(out, "%s%s", at == names ? "" : ", ", at->name);
}

/* Subtracts from the budget what the expression needs on one line; stops once the budget is
 * spent. */
static int budget_left(const Expr *expr, int budget)
{
    size_t length = strlen(expr->name);
    budget -= length > LINE_WIDTH ? LINE_WIDTH + 1 : (int)length;
    for (const Ident *at = expr->axes; at && budget >= 0; at = at->next) {
        length = strlen(at->name);
        budget -= length > LINE_WIDTH ? LINE_WIDTH + 1 : (int)length + 2;
    }
    bool binary = expr->kind == EXPR_BINARY, call = expr->kind == EXPR_CALL;
    budget -= binary || call ? 2 : 0;
    for (const Expr *at = expr->left; at && budget >= 0; at = binary ? NULL : at->next)
        budget = budget_left(at, budget - (at == expr->left ? 0 : 2));
    return expr->right && budget >= 0 ? budget_left(expr->right, budget) : budget;
}

bool fits_on_line(const Expr *expr, int column)
{
    return budget_left(expr, LINE_WIDTH - column) >= 0;
}

static int current_column(const Text *out)
{
    size_t begin = out->length;
    while (begin > 0 && out->data[begin - 1] != '\n' && out->length - begin <= LINE_WIDTH) begin--;
    return (int)(out->length - begin);
}

static void break_line(Text *out)
{
    int levels = out->indent < DEEPEST_INDENT ? out->indent : DEEPEST_INDENT;
    text_print(out, "\n%*s", 4 * levels, "");
}

static void put_callee(Text *out, const Expr *call)
{
    text_print(out, "%s", call->name);
    if (call->has_axes) {
        text_put(out, "[", 1);
        print_names(out, call->axes);
        text_put(out, "]", 1);
    }
    text_put(out, "(", 1);
}

static void put_flat(Text *out, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_UNARY:
        text_print(out, "%s", expr->name);
        put_flat(out, expr->left);
        break;
    case EXPR_BINARY:
        put_flat(out, expr->left);
        text_print(out, " %s ", expr->name);
        put_flat(out, expr->right);
        break;
    case EXPR_PAREN:
        text_put(out, "(", 1);
        put_flat(out, expr->left);
        text_put(out, ")", 1);
        break;
    case EXPR_CALL:
        put_callee(out, expr);
        for (const Expr *at = expr->left; at; at = at->next) {
            put_flat(out, at);
            text_put(out, ", ", at->next ? 2 : 0);
        }
        text_put(out, ")", 1);
        break;
    default: text_print(out, "%s", expr->name);
    }
}

static bool same_level(const char *one, const char *other)
{
    static const char *const levels[] = {"||", "&&", "== !=", "< <= > >=", "+ -", "* /"};
    if (strcmp(one, other) == 0) return true;
    for (size_t i = 2; i < sizeof levels / sizeof *levels; i++)
        if (strchr(levels[i], one[0]) && strchr(levels[i], other[0]))
            return strcmp(one, "**") != 0 && strcmp(other, "**") != 0;
    return false;
}

static void put_broken_chain(Text *out, const Expr *chain)
{
    const Expr *left = chain->left;
    if (left->kind == EXPR_BINARY && same_level(left->name, chain->name))
        put_broken_chain(out, left);
    else
        format_expr(out, left);
    text_print(out, " %s", chain->name);
    break_line(out);
    format_expr(out, chain->right);
}

static void put_broken_call(Text *out, const Expr *call)
{
    put_callee(out, call);
    out->indent++;
    for (const Expr *at = call->left; at; at = at->next) {
        break_line(out);
        format_expr(out, at);
        text_put(out, ",", at->next ? 1 : 0);
    }
    out->indent--;
    if (call->left) break_line(out);
    text_put(out, ")", 1);
}

void format_expr(Text *out, const Expr *expr)
{
    if (fits_on_line(expr, current_column(out) + 1)) {
        put_flat(out, expr);
        return;
    }
    switch (expr->kind) {
    case EXPR_UNARY:
        text_print(out, "%s", expr->name);
        format_expr(out, expr->left);
        break;
    case EXPR_BINARY:
        out->indent++;
        put_broken_chain(out, expr);
        out->indent--;
        break;
    case EXPR_PAREN:
        text_put(out, "(", 1);
        format_expr(out, expr->left);
        text_put(out, ")", 1);
        break;
    case EXPR_CALL: put_broken_call(out, expr); break;
    default: text_print(out, "%s", expr->name);
    }
}
