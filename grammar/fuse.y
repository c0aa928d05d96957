/* fuse.y: the grammar of .fuse files (lemon). Each action is one constructor call of
 * frontend/ast.c.
 *
 * `NAME =` is one token, BIND, so that a statement's begin is seen with one token of
 * lookahead and error recovery can wait for it. `lemon -g` prints the bare grammar. */
%include {
#ifndef NDEBUG
#define NDEBUG
#endif
#include "frontend/syntax.h"

#include "fuse.h"

void *grammar_Alloc(void *(*allocate)(size_t), Syntax *s);
void grammar_Free(void *parser, void (*release)(void *));
void grammar_Init(void *parser, Syntax *s);
void grammar_Finalize(void *parser);
void grammar_(void *parser, int kind, const Token *token);
int grammar_Fallback(int kind);
}

%name grammar_
%token_prefix TOKEN_
%token_type {const Token *}
%token_destructor { (void)s; (void)$$; }
%default_destructor { (void)s; (void)$$; }
%extra_context {Syntax *s}
%stack_size 16384
%stack_overflow { report_too_deep(s, s->previous->span); }
/* grammar_push reports before lemon reduces: then all that could stand is still known. */
%syntax_error { (void)yymajor; (void)yyminor; }

%left OR.
%left AND.
%left EQ NE.
%left LT LE GT GE.
%left PLUS MINUS.
%left STAR SLASH.
%right NOT.
%right POWER.

%type item {Item *}
%type body {StatementList}
%type statement {Statement *}
%type axis {AxisDecl *}
%type axis_param {AxisDecl *}
%type axes {AxisList}
%type axis_seq {AxisList}
%type axis_params {AxisList}
%type axis_param_seq {AxisList}
%type param {ParamDecl *}
%type params {ParamList}
%type param_seq {ParamList}
%type names {IdentList}
%type name_seq {IdentList}
%type initial {Expr *}
%type expr {Expr *}
%type arguments {ExprList}
%type argument_seq {ExprList}

file ::= items.

items ::= .
items ::= items item(I).                    { add_item(s, I); }
items ::= items error.

item(A) ::= IMPORT(K) STRING(P).            { A = make_import(s, K, P); }
item(A) ::= FN(K) NAME(N) axis_params(X) LPAREN names(P) RPAREN ASSIGN expr(E).
                                            { A = make_short_function(s, K, N, X, P, E); }
item(A) ::= FN(K) NAME(N) axis_params(X) LPAREN names(P) RPAREN LBRACE body(B) RBRACE(C).
                                            { A = make_function(s, K, N, X, P, B, C); }
item(A) ::= GRAPH(K) NAME(N) axes(X) LPAREN params(P) RPAREN ARROW LPAREN params(O) RPAREN
            LBRACE body(B) RBRACE(C).       { A = make_graph(s, K, N, X, P, O, B, C); }

axes(A) ::= .                               { A = (AxisList){0}; }
axes(A) ::= LBRACKET axis_seq(L) RBRACKET.  { A = L; }
axes(A) ::= LBRACKET axis_seq(L) COMMA RBRACKET.
                                            { A = L; }
axis_seq(A) ::= axis(X).                    { A = append_axis((AxisList){0}, X); }
axis_seq(A) ::= axis_seq(L) COMMA axis(X).  { A = append_axis(L, X); }
axis(A) ::= NAME(N).                        { A = make_axis(s, N, NULL); }
axis(A) ::= BIND(N) INTEGER(I).             { A = make_axis(s, N, I); }

axis_params(A) ::= .                        { A = (AxisList){0}; }
axis_params(A) ::= LBRACKET axis_param_seq(L) RBRACKET.
                                            { A = L; }
axis_params(A) ::= LBRACKET axis_param_seq(L) COMMA RBRACKET.
                                            { A = L; }
axis_param_seq(A) ::= axis_param(X).        { A = append_axis((AxisList){0}, X); }
axis_param_seq(A) ::= axis_param_seq(L) COMMA axis_param(X).
                                            { A = append_axis(L, X); }
axis_param(A) ::= NAME(N).                  { A = make_axis(s, N, NULL); }

params(A) ::= .                             { A = (ParamList){0}; }
params(A) ::= param_seq(L).                 { A = L; }
params(A) ::= param_seq(L) COMMA.           { A = L; }
param_seq(A) ::= param(P).                  { A = append_param((ParamList){0}, P); }
param_seq(A) ::= param_seq(L) COMMA param(P).
                                            { A = append_param(L, P); }
param(A) ::= error.                         { A = NULL; }
param(A) ::= NAME(N) COLON NAME(T).         { A = make_param(s, N, T, NULL); }
param(A) ::= NAME(N) COLON BIND(T) initial(I).
                                            { A = make_param(s, N, T, I); }
param(A) ::= NAME(N) COLON NAME(T) LBRACKET names(X) RBRACKET(C).
                                            { A = make_tensor(s, N, T, X, C, NULL); }
param(A) ::= NAME(N) COLON NAME(T) LBRACKET names(X) RBRACKET(C) ASSIGN initial(I).
                                            { A = make_tensor(s, N, T, X, C, I); }
initial(A) ::= INTEGER(T).                  { A = make_number(s, T); }
initial(A) ::= FLOAT(T).                    { A = make_number(s, T); }
initial(A) ::= CONSTANT(T).                 { A = make_word(s, EXPR_CONSTANT, T); }
initial(A) ::= MINUS(O) initial(E).         { A = make_unary(s, O, E); }

names(A) ::= .                              { A = (IdentList){0}; }
names(A) ::= name_seq(L).                   { A = L; }
names(A) ::= name_seq(L) COMMA.             { A = L; }
name_seq(A) ::= NAME(N).                    { A = append_ident(s, (IdentList){0}, N); }
name_seq(A) ::= name_seq(L) COMMA NAME(N).  { A = append_ident(s, L, N); }

body(A) ::= .                               { A = (StatementList){0}; }
body(A) ::= body(L) statement(S).           { A = append_statement(L, S); }
statement(A) ::= error.                     { A = NULL; }
statement(A) ::= BIND(N) expr(E).           { A = make_statement(s, N, E); }
statement(A) ::= RETURN(K) expr(E).         { A = make_return(s, K, E); }

expr(A) ::= expr(L) OR(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) AND(O) expr(R).         { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) EQ(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) NE(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) LT(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) LE(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) GT(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) GE(O) expr(R).          { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) PLUS(O) expr(R).        { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) MINUS(O) expr(R).       { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) STAR(O) expr(R).        { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) SLASH(O) expr(R).       { A = make_binary(s, L, O, R); }
expr(A) ::= expr(L) POWER(O) expr(R).       { A = make_binary(s, L, O, R); }
expr(A) ::= MINUS(O) expr(E). [NOT]         { A = make_unary(s, O, E); }
expr(A) ::= NOT(O) expr(E).                 { A = make_unary(s, O, E); }
expr(A) ::= LPAREN(O) expr(E) RPAREN(C).    { A = make_paren(s, O, E, C); }
expr(A) ::= INTEGER(T).                     { A = make_number(s, T); }
expr(A) ::= FLOAT(T).                       { A = make_number(s, T); }
expr(A) ::= CONSTANT(T).                    { A = make_word(s, EXPR_CONSTANT, T); }
expr(A) ::= NAME(T).                        { A = make_word(s, EXPR_NAME, T); }
expr(A) ::= NAME(N) LPAREN arguments(L) RPAREN(C).
                                            { A = make_call(s, N, NULL, L, C); }
expr(A) ::= NAME(N) LBRACKET name_seq(X) RBRACKET LPAREN arguments(L) RPAREN(C).
                                            { A = make_call(s, N, &X, L, C); }
expr(A) ::= NAME(N) LBRACKET name_seq(X) COMMA RBRACKET LPAREN arguments(L) RPAREN(C).
                                            { A = make_call(s, N, &X, L, C); }

arguments(A) ::= .                          { A = (ExprList){0}; }
arguments(A) ::= argument_seq(L).           { A = L; }
arguments(A) ::= argument_seq(L) COMMA.     { A = L; }
argument_seq(A) ::= expr(E).                { A = append_expr((ExprList){0}, E); }
argument_seq(A) ::= argument_seq(L) COMMA expr(E).
                                            { A = append_expr(L, E); }

%code {
void *grammar_new(Syntax *syntax)
{
    yyParser *parser = NEW(syntax->arena, yyParser);
    grammar_Init(parser, syntax);
    return parser;
}

void grammar_restart(void *grammar, Syntax *syntax)
{
    grammar_Finalize(grammar);
    grammar_Init(grammar, syntax);
}

/* Whether `kind` could come next: runs the automaton on states alone, builds nothing. */
bool grammar_accepts(const void *grammar, int kind)
{
    const yyStackEntry *top = ((const yyParser *)grammar)->yytos;
    YYACTIONTYPE pushed[32], state = top->stateno;
    int count = 0;
    for (;;) {
        YYACTIONTYPE action = yy_find_shift_action((YYCODETYPE)kind, state);
        if (action <= YY_MAX_SHIFTREDUCE || action == YY_ACCEPT_ACTION || count == 32)
            return true;
        if (action < YY_MIN_REDUCE)
            return false;
        int rule = action - YY_MIN_REDUCE, length = -yyRuleInfoNRhs[rule];
        int own = length < count ? length : count;
        count -= own;
        top -= length - own;
        state = count ? pushed[count - 1] : top->stateno;
        state = yy_find_reduce_action(state, yyRuleInfoLhs[rule]);
        pushed[count++] = state;
    }
}

void grammar_push(void *grammar, const Token *token)
{
    Syntax *s = ((yyParser *)grammar)->s;
    if (!s->muted && !grammar_accepts(grammar, token->kind)) {
        bool expected[YYNTOKEN] = {false};
        for (int kind = 1; kind < YYNTOKEN; kind++)
            expected[kind] = grammar_accepts(grammar, kind);
        report_syntax_error(s, token, expected);
    }
    grammar_(grammar, token->kind, token);
}
}
