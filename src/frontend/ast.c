/* frontend/ast.c: the constructors that the grammar's actions call.
 *
 * They also check what needs no more than the piece itself: that literals fit, that an expression
 * is not nested so deeply that a recursion over it could overflow, and where `return` may stand. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Ident ident_of(const Token *token)
{
    return (Ident){.name = token->text, .span = token->span};
}

static Expr *new_expr(Syntax *s, ExprKind kind, const char *name, Span span)
{
    Expr *expr = NEW(s->arena, Expr);
    expr->kind = kind;
    expr->name = name;
    expr->span = expr->name_span = span;
    return expr;
}

/* A chain of operators in parentheses or arguments is one level, not two. */
static int depth_inside(const Expr *inner)
{
    return inner->kind == EXPR_BINARY ? inner->depth : inner->depth + 1;
}

static Expr *with_depth(Syntax *s, Expr *expr, int depth)
{
    expr->depth = depth;
    if (depth > MAX_DEPTH) report_too_deep(s, expr->name_span);
    return expr;
}

static void make_integer(Syntax *s, Expr *expr)
{
    errno = 0;
    expr->integer = strtoll(expr->name, NULL, 10);
    expr->number = (double)expr->integer;
    if (errno == ERANGE)
        report_error(s->d, expr->span, "the largest is 9223372036854775807",
                     "the integer literal does not fit in 64 bits");
}

Expr *make_number(Syntax *s, const Token *token)
{
    Expr *expr = new_expr(s, EXPR_INTEGER, token->text, token->span);
    if (token->kind == TOKEN_FLOAT) {
        expr->kind = EXPR_FLOAT;
        expr->number = strtod(token->text, NULL);
        if (isinf(expr->number))
            report_error(s->d, expr->span, "write inf", "the float literal is too large");
    } else if (strspn(token->text, "0123456789") == strlen(token->text)) {
        make_integer(s, expr);
    } else {
        expr->kind = EXPR_ERROR;
    }
    return expr;
}

Expr *make_word(Syntax *s, ExprKind kind, const Token *token)
{
    return new_expr(s, kind, token->text, token->span);
}

Expr *make_unary(Syntax *s, const Token *op, Expr *operand)
{
    Expr *expr = new_expr(s, EXPR_UNARY, op->text, op->span);
    expr->span = span_join(op->span, operand->span);
    expr->left = operand;
    return with_depth(s, expr, operand->depth + 1);
}

Expr *make_binary(Syntax *s, Expr *left, const Token *op, Expr *right)
{
    Expr *expr = new_expr(s, EXPR_BINARY, op->text, op->span);
    expr->span = span_join(left->span, right->span);
    expr->left = left;
    expr->right = right;
    return with_depth(s, expr, (left->depth > right->depth ? left->depth : right->depth) + 1);
}

Expr *make_paren(Syntax *s, const Token *open, Expr *inner, const Token *close)
{
    Expr *expr = new_expr(s, EXPR_PAREN, "()", open->span);
    expr->span = span_join(open->span, close->span);
    expr->left = inner;
    return with_depth(s, expr, depth_inside(inner));
}

Expr *make_call(Syntax *s, const Token *name, const IdentList *axes, ExprList arguments,
                const Token *close)
{
    Expr *expr = new_expr(s, EXPR_CALL, name->text, name->span);
    expr->span = span_join(name->span, close->span);
    expr->has_axes = axes != NULL;
    expr->axes = axes ? axes->first : NULL;
    expr->left = arguments.first;
    int depth = 0;
    for (const Expr *argument = arguments.first; argument; argument = argument->next)
        if (depth_inside(argument) > depth) depth = depth_inside(argument);
    return with_depth(s, expr, depth);
}

Statement *make_statement(Syntax *s, const Token *name, Expr *value)
{
    Statement *statement = NEW(s->arena, Statement);
    statement->name = ident_of(name);
    statement->value = value;
    statement->span = span_join(name->span, value->span);
    return statement;
}

Statement *make_return(Syntax *s, const Token *keyword, Expr *value)
{
    Statement *statement = NEW(s->arena, Statement);
    statement->value = value;
    statement->span = span_join(keyword->span, value->span);
    return statement;
}

AxisDecl *make_axis(Syntax *s, const Token *name, const Token *size)
{
    AxisDecl *axis = NEW(s->arena, AxisDecl);
    axis->name = ident_of(name);
    axis->size = size ? make_number(s, size)->integer : -1;
    axis->span = size ? span_join(name->span, size->span) : name->span;
    return axis;
}

ParamDecl *make_param(Syntax *s, const Token *name, const Token *dtype, Expr *initial)
{
    ParamDecl *param = NEW(s->arena, ParamDecl);
    param->name = ident_of(name);
    param->dtype = ident_of(dtype);
    param->initial = initial;
    param->span = span_join(name->span, initial ? initial->span : dtype->span);
    return param;
}

ParamDecl *make_tensor(Syntax *s, const Token *name, const Token *dtype, IdentList axes,
                       const Token *close, Expr *initial)
{
    ParamDecl *param = make_param(s, name, dtype, initial);
    param->has_brackets = true;
    param->axes = axes.first;
    param->span = span_join(param->span, close->span);
    if (initial)
        report_error(s->d, initial->span, "leave out the brackets to make it a scalar",
                     "'%s' is a tensor, and only a scalar has a default", name->text);
    return param;
}

Item *make_import(Syntax *s, const Token *keyword, const Token *path)
{
    Item *item = NEW(s->arena, Item);
    item->kind = ITEM_IMPORT;
    item->name = ident_of(path);
    item->span = span_join(keyword->span, path->span);
    return item;
}

static Item *make_item(Syntax *s, ItemKind kind, const Token *keyword, const Token *name,
                       AxisList axes)
{
    Item *item = NEW(s->arena, Item);
    item->kind = kind;
    item->name = ident_of(name);
    item->axes = axes.first;
    item->has_axes = axes.first != NULL;
    item->span = span_join(keyword->span, name->span);
    return item;
}

static void check_returns(Syntax *s, const Item *item, const Token *close)
{
    bool returned = false;
    for (const Statement *at = item->body; at; at = at->next) {
        if (returned)
            report_error(s->d, at->span, NULL, "a statement after the return of '%s'",
                         item->name.name);
        returned = !at->name.name;
    }
    if (!returned && !s->failed)
        report_error(s->d, close->span, "end it with: return EXPRESSION",
                     "function '%s' returns nothing", item->name.name);
}

Item *make_function(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                    IdentList arguments, StatementList body, const Token *close)
{
    Item *item = make_item(s, ITEM_FUNCTION, keyword, name, axes);
    item->arguments = arguments.first;
    item->body = body.first;
    item->span = span_join(item->span, close->span);
    check_returns(s, item, close);
    return item;
}

Item *make_short_function(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                          IdentList arguments, Expr *value)
{
    Item *item = make_item(s, ITEM_FUNCTION, keyword, name, axes);
    item->arguments = arguments.first;
    item->is_short = true;
    item->body = NEW(s->arena, Statement);
    item->body->value = value;
    item->body->span = value->span;
    item->span = span_join(item->span, value->span);
    return item;
}

Item *make_graph(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                 ParamList params, ParamList outputs, StatementList body, const Token *close)
{
    Item *item = make_item(s, ITEM_GRAPH, keyword, name, axes);
    item->params = params.first;
    item->outputs = outputs.first;
    item->body = body.first;
    item->span = span_join(item->span, close->span);
    for (const Statement *at = item->body; at; at = at->next)
        if (!at->name.name)
            report_error(s->d, at->span, "bind an output: NAME = EXPRESSION",
                         "a graph returns nothing, it binds its outputs");
    return item;
}

/* Appends to a singly linked list of which the last element is known; NULL is what error recovery
 * left. */
#define APPEND(list, item)                                                                         \
    do {                                                                                           \
        if (!(item)) break;                                                                        \
        if ((list).last)                                                                           \
            (list).last->next = (item);                                                            \
        else                                                                                       \
            (list).first = (item);                                                                 \
        (list).last = (item);                                                                      \
    } while (0)

ExprList append_expr(ExprList list, Expr *expr)
{
    APPEND(list, expr);
    return list;
}

IdentList append_ident(Syntax *s, IdentList list, const Token *name)
{
    Ident *ident = NEW(s->arena, Ident);
    *ident = ident_of(name);
    APPEND(list, ident);
    return list;
}

StatementList append_statement(StatementList list, Statement *statement)
{
    APPEND(list, statement);
    return list;
}

AxisList append_axis(AxisList list, AxisDecl *axis)
{
    APPEND(list, axis);
    return list;
}

ParamList append_param(ParamList list, ParamDecl *param)
{
    APPEND(list, param);
    return list;
}

void add_item(Syntax *s, Item *item)
{
    APPEND(*s, item);
}
