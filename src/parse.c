/* parse.c: feeds the scanner's tokens to the grammar and keeps error recovery in step.
 *
 * After a syntax error the grammar discards tokens up to the next statement. Here it is
 * decided when errors are worth reporting again (at a statement on a new line) and when
 * the grammar begins anew (at `import`, `fn` and `graph`, which stand nowhere else).
 * import.c reads the other files. */
#include "syntax.h"

#include "fuse.h"

static bool begins_item(const Token *token)
{
    return token->kind == TOKEN_IMPORT || token->kind == TOKEN_FN ||
           token->kind == TOKEN_GRAPH;
}

/* Whether the token just pushed was read as the begin of a statement or as an item's end
 * or begin: there the text makes sense again. */
static bool is_back_in_step(const void *grammar, const Token *token)
{
    bool statement = token->kind == TOKEN_BIND || token->kind == TOKEN_RETURN;
    if (statement && token->first_on_line)
        return grammar_accepts(grammar, TOKEN_INTEGER);
    if (token->kind == TOKEN_RBRACE)
        return grammar_accepts(grammar, TOKEN_FN);
    return begins_item(token);
}

static bool ends_operand(const Token *token)
{
    return token && (token->kind == TOKEN_NAME || token->kind == TOKEN_INTEGER ||
                     token->kind == TOKEN_FLOAT || token->kind == TOKEN_CONSTANT ||
                     token->kind == TOKEN_RPAREN);
}

static void warn_of_leading_minus(Syntax *s, const Token *token)
{
    if (token->kind == TOKEN_MINUS && token->first_on_line && ends_operand(s->previous))
        report_warning(s->d, token->span, "put the '-' at the end of the line before",
                       "a line that starts with '-' continues the expression before it");
}

static const Token *next_token(Syntax *s)
{
    Token *token = NEW(s->arena, Token);
    scan(&s->scanner, token);
    return token;
}

static void push(Syntax *s, void *grammar, const Token *token)
{
    grammar_push(grammar, token);
    if (begins_item(token)) {
        s->item_kind = token->kind;
        if (s->failed) {
            s->failed = false;
            grammar_restart(grammar, s);
            grammar_push(grammar, token);
        }
    }
    if (is_back_in_step(grammar, token))
        s->muted = s->scanner.damaged = false;
}

Module *parse_module(Arena *arena, Diagnostics *d, const Source *source)
{
    Module *module = NEW(arena, Module);
    module->source = source;
    if (source->length > INT32_MAX) {
        report_error(d, (Span){.source = NULL}, NULL, "%s is too large", source->name);
        return module;
    }
    Syntax s = {.arena = arena, .d = d};
    scanner_start(&s.scanner, arena, d, source);
    void *grammar = grammar_new(&s);
    const Token *token;
    do {
        token = next_token(&s);
        warn_of_leading_minus(&s, token);
        push(&s, grammar, token);
        s.previous = token;
    } while (token->kind);
    module->items = s.first;
    return module;
}
