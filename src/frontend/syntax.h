/* frontend/syntax.h: what the scanner, the grammar, the driver of both and the printers of
 * syntax share.
 *
 * The scanner (grammar/fuse.re) cuts tokens, frontend/parse.c feeds them to the grammar
 * (grammar/fuse.y), whose actions call the constructors of frontend/ast.c. Nothing outside the
 * front end includes this. */
#ifndef FUSEC_SYNTAX_H
#define FUSEC_SYNTAX_H

#include "frontend/ast.h"

enum { MAX_DEPTH = 1000 }; /* of expressions and of imports */

typedef struct {
    int kind;         /* TOKEN_..., 0 at the end of the file */
    Span span;        /* of a binding `NAME =`: the name alone */
    uint32_t end;     /* where the token really ends */
    const char *text; /* NUL-terminated, without a string's quotes */
    bool first_on_line;
} Token;

typedef struct {
    Arena *arena;
    Diagnostics *d;
    const Source *source;
    const char *cursor;
    uint32_t previous_end; /* of the token before, to recognize line starts */
    bool damaged;          /* a character was unreadable: a syntax error is its echo */
    bool in_head;          /* of an item, where names and dtypes stand */
    const char *axis;      /* the last axis of the item; NULL: none */
    bool in_list;          /* a comma could come, which ';' is then taken for */
} Scanner;

typedef struct {
    Expr *first, *last;
} ExprList;
typedef struct {
    Ident *first, *last;
} IdentList;
typedef struct {
    Statement *first, *last;
} StatementList;
typedef struct {
    AxisDecl *first, *last;
} AxisList;
typedef struct {
    ParamDecl *first, *last;
} ParamList;

typedef struct {
    const Token *token;  /* the bracket */
    const Token *before; /* what stands in front of it; NULL: nothing */
} Opened;

typedef struct {
    const char *param, *axis;
} ParamAxis;

typedef struct { /* the parsing of one file */
    Arena *arena;
    Diagnostics *d;
    Scanner scanner;
    Item *first, *last;
    const Token *previous;         /* the token shifted before the current one */
    LIST(Opened) open;             /* the brackets of the current item that are not closed yet */
    Opened closed;                 /* the bracket that was closed last */
    LIST(const char *) axes;       /* that the current graph or function has declared */
    LIST(const char *) axis_sizes; /* of each, as written; NULL: none */
    LIST(ParamAxis) param_axes;    /* of the current graph */
    const Token *param;            /* that is being declared */
    bool declared;                 /* the current item's axes, if any: parameters have begun */
    LIST(const char *) misused;    /* reserved words that the current item has as names */
    int item_kind;                 /* the token that the current item began with */
    bool failed;                   /* the current item had a syntax error */
    bool muted;                    /* until the next statement: errors would be echoes */
} Syntax;

/* Scanner. scan() also reports and skips what is no token. */
void scanner_start(Scanner *s, Arena *arena, Diagnostics *d, const Source *source);
void scan(Scanner *s, Token *token);
bool is_reserved_word(const char *text);
/* Takes a reserved word, which was scanned last, for a name, with the '=' behind it if there is
 * one. */
void scan_as_name(Scanner *s, Token *token);
Span scanner_span(const Scanner *s, const char *begin, const char *end);
/* How a kind of token is called in `--emit=tokens` and in diagnostics. */
const char *token_kind_name(int kind);
const char *token_shown(Arena *arena, const Token *token);

/* Scanner reports (frontend/syntax_errors.c): each is about the bytes from begin to the cursor. */
void report_character(Scanner *s, const char *begin);
void report_number(Scanner *s, const char *begin);
void report_string(Scanner *s, const char *begin);
void report_misspelling(Scanner *s, const char *begin, const char *written, const char *hint);
/* About a reserved word in the place of a name. */
void report_reserved(Syntax *s, const Token *word);

/* Grammar. */
void *grammar_new(Syntax *syntax);
void grammar_restart(void *grammar, Syntax *syntax);
void grammar_push(void *grammar, const Token *token);
bool grammar_accepts(const void *grammar, int kind);
/* Called by the grammar: expected[kind] says which tokens could stand at the place. */
void report_syntax_error(Syntax *s, const Token *found, const bool *expected);
/* A hint for a value's name with brackets up to `end` that index as in another language; NULL: they
 * do not. */
const char *hint_for_element(const Syntax *s, const Opened *bracket, const char *end);
/* Hints for the head of an item, and for numbers in the brackets of a call
 * (frontend/head_hints.c). NULL: none. */
const char *hint_for_head(const Syntax *s, const Token *found, const bool *expected);
const char *hint_for_dashed_name(const Syntax *s, const Token *found, const bool *expected);
bool takes_axes(const char *name);
const char *hint_for_late_axes(const Syntax *s, const Token *found);
const char *hint_for_number(const Syntax *s, const Token *found, const bool *expected);
void report_too_deep(Syntax *s, Span at);

/* Constructors, one for each grammar action. */
Expr *make_number(Syntax *s, const Token *token);
Expr *make_word(Syntax *s, ExprKind kind, const Token *token);
Expr *make_unary(Syntax *s, const Token *op, Expr *operand);
Expr *make_binary(Syntax *s, Expr *left, const Token *op, Expr *right);
Expr *make_paren(Syntax *s, const Token *open, Expr *inner, const Token *close);
Expr *make_call(Syntax *s, const Token *name, const IdentList *axes, ExprList arguments,
                const Token *close);
Statement *make_statement(Syntax *s, const Token *name, Expr *value);
Statement *make_return(Syntax *s, const Token *keyword, Expr *value);
AxisDecl *make_axis(Syntax *s, const Token *name, const Token *size);
ParamDecl *make_param(Syntax *s, const Token *name, const Token *dtype, Expr *initial);
ParamDecl *make_tensor(Syntax *s, const Token *name, const Token *dtype, IdentList axes,
                       const Token *close, Expr *initial);
Item *make_import(Syntax *s, const Token *keyword, const Token *path);
Item *make_function(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                    IdentList arguments, StatementList body, const Token *close);
Item *make_short_function(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                          IdentList arguments, Expr *value);
Item *make_graph(Syntax *s, const Token *keyword, const Token *name, AxisList axes,
                 ParamList params, ParamList outputs, StatementList body, const Token *close);
ExprList append_expr(ExprList list, Expr *expr);
IdentList append_ident(Syntax *s, IdentList list, const Token *name);
StatementList append_statement(StatementList list, Statement *statement);
AxisList append_axis(AxisList list, AxisDecl *axis);
ParamList append_param(ParamList list, ParamDecl *param);
void add_item(Syntax *s, Item *item);

/* Printing. An expression that does not fit behind the text's last line is broken. */
enum { LINE_WIDTH = 90 };
void print_names(Text *out, const Ident *names);
bool fits_on_line(const Expr *expr, int column);
void format_expr(Text *out, const Expr *expr);

/* The items of one file, its imports unread. */
Module *parse_module(Arena *arena, Diagnostics *d, const Source *source);

#endif
