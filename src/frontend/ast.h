/* frontend/ast.h: the syntax tree, a faithful picture of one .fuse file and those it imports.
 *
 * The grammar's actions call the constructors; nothing here knows a type. Lists are singly linked
 * in source order. fmt prints a tree back, lower turns a graph declaration into a Graph. */
#ifndef FUSEC_AST_H
#define FUSEC_AST_H

#include "base/dtype.h"
#include "base/source.h"

enum { MAX_TEXT = 64 << 20 }; /* bytes of a file */

typedef struct Expr Expr;
typedef struct Ident Ident;

struct Ident { /* a name at a place; lists of axes and of parameters */
    const char *name;
    Span span;
    Ident *next;
};

typedef enum {
    EXPR_ERROR,   /* already reported */
    EXPR_INTEGER, /* text holds the digits */
    EXPR_FLOAT,
    EXPR_CONSTANT, /* inf, true, false */
    EXPR_NAME,
    EXPR_UNARY, /* operator text in `name` */
    EXPR_BINARY,
    EXPR_CALL, /* name, axes (may be empty), arguments */
    EXPR_PAREN /* kept for fmt */
} ExprKind;

struct Expr {
    ExprKind kind;
    const char *name; /* the name, the operator, or the literal's text */
    Span span;        /* of the whole expression */
    Span name_span;   /* of the operator or callee */
    Ident *axes;      /* CALL: in brackets */
    bool has_axes;
    Expr *left, *right; /* UNARY and PAREN use left; CALL keeps its first argument in left */
    Expr *next;         /* the next argument of the same call */
    double number;
    int64_t integer;
    int depth; /* bounded, so that recursions over a tree are */
};

typedef struct Statement Statement;
struct Statement { /* name = value;  in a function, `return value` has no name */
    Ident name;
    Expr *value;
    Span span;
    Statement *next;
};

typedef struct AxisDecl AxisDecl;
struct AxisDecl {
    Ident name;
    int64_t size; /* -1: none */
    Span span;
    AxisDecl *next;
};

typedef struct ParamDecl ParamDecl;
struct ParamDecl { /* name : dtype[axes] = default */
    Ident name;
    Ident dtype;
    bool has_brackets;
    Ident *axes;
    Expr *initial; /* NULL: none */
    Span span;
    ParamDecl *next;
};

typedef enum { ITEM_IMPORT, ITEM_FUNCTION, ITEM_GRAPH } ItemKind;

typedef struct Item Item;
struct Item {
    ItemKind kind;
    Span span;
    Ident name;     /* IMPORT: the path */
    AxisDecl *axes; /* GRAPH: with sizes; FUNCTION: axis parameters */
    bool has_axes;
    Ident *arguments;  /* FUNCTION */
    ParamDecl *params; /* GRAPH: inputs */
    ParamDecl *outputs;
    Statement *body;               /* FUNCTION: the last one is the return */
    bool is_short;                 /* fn f(x) = e */
    const struct Module *imported; /* IMPORT: NULL where it could not be read */
    Item *next;
};

typedef struct Module Module;
struct Module { /* one file */
    const Source *source;
    const char *identity; /* one for each file, however it is named */
    Item *items;
    Module *next; /* all modules of a program, the main one first, each file once */
    /* Of the main module: its items by name, once index_program() has made it. */
    const struct ItemIndex *index;
};

/* Parses a source and everything that it imports. "std" is embedded; frontend/import.h says where
 * other files come from, NULL: there are none. Reports errors, recovers at the next statement, and
 * returns what it could read. */
struct Imports;
Module *parse_program(Arena *arena, Diagnostics *d, const Source *main,
                      const struct Imports *imports);
/* The names of the functions that "std" defines. */
const char *const *std_functions(Arena *arena, int *count);
/* `--emit=tokens` (one a line: line:col kind text) and `--emit=ast`. */
void print_tokens(Text *out, Arena *arena, Diagnostics *d, const Source *source);
void print_ast(Text *out, const Module *module);
/* The canonical formatting of one file, comments kept. Needs a file without syntax errors. */
void format_source(Text *out, Arena *arena, Diagnostics *d, const Source *source);

#endif
