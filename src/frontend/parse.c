/* frontend/parse.c: feeds the scanner's tokens to the grammar and steers error recovery.
 *
 * After a syntax error the grammar discards tokens up to the next statement. This file decides when
 * errors are worth reporting again (at a statement on a new line) and when the grammar starts
 * afresh (at `import`, `fn` and `graph`, which stand nowhere else). frontend/import.c reads other
 * files. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <string.h>

static bool begins_item(const Token *token)
{
    return token->kind == TOKEN_IMPORT || token->kind == TOKEN_FN || token->kind == TOKEN_GRAPH;
}

/* Whether the last token was read as the beginning of a statement, or as the beginning or end of an
 * item: from there on the text makes sense again. */
static bool is_back_in_step(const void *grammar, const Token *token)
{
    bool statement = token->kind == TOKEN_BIND || token->kind == TOKEN_RETURN;
    if (statement && token->first_on_line) return grammar_accepts(grammar, TOKEN_INTEGER);
    if (token->kind == TOKEN_RBRACE) return grammar_accepts(grammar, TOKEN_FN);
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

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Whether the word that was scanned last begins an item by what follows it: a path, or a name,
 * which within a line must have its brackets. At the beginning of a line the name may be missing. */
static bool looks_like_item(const Syntax *s, const Token *word)
{
    const char *at = s->scanner.cursor + strspn(s->scanner.cursor, " \t\r\n");
    if (word->kind == TOKEN_IMPORT && *at == '"') return true;
    if (word->first_on_line && (*at == '(' || *at == '[')) return true;
    if (!is_letter(*at)) return false;
    if (word->first_on_line) return true;
    while (is_letter(*at) || (*at >= '0' && *at <= '9')) at++;
    at += strspn(at, " \t\r\n");
    return *at == '(' || *at == '[';
}

static bool is_reserved(const Token *token)
{
    return begins_item(token) || token->kind == TOKEN_RETURN || token->kind == TOKEN_CONSTANT;
}

/* Whether a reserved word stands where only a name can stand, or begins an item where none can. */
static bool is_misused(const Syntax *s, const void *grammar, const Token *word)
{
    const char *behind = s->scanner.cursor + strspn(s->scanner.cursor, " \t\r\n");
    const bool binds = behind[0] == '=' && behind[1] != '=';
    if (begins_item(word) && looks_like_item(s, word)) return false;
    if (binds && grammar_accepts(grammar, TOKEN_BIND)) return true;
    if (grammar_accepts(grammar, word->kind)) return false;
    if (begins_item(word)) return true;
    if (binds || !grammar_accepts(grammar, TOKEN_NAME) || s->previous->kind == TOKEN_COLON)
        return false;
    return word->kind == TOKEN_CONSTANT || (*behind && strchr(":,)]}*/+", *behind));
}

/* A reserved word that was meant as a name is taken for one, and reported once for each item. */
static void mend_reserved(Syntax *s, const void *grammar, Token *token)
{
    if (!is_reserved(token) || !is_misused(s, grammar, token)) return;
    if (s->muted && !begins_item(token)) return;
    scan_as_name(&s->scanner, token);
    if (s->muted || !grammar_accepts(grammar, token->kind)) return;
    for (int i = 0; i < s->misused.count; i++)
        if (!strcmp(s->misused.data[i], token->text)) return;
    *list_push(s->arena, &s->misused) = token->text;
    report_reserved(s, token);
}

/* A ';' separates what a list has, but ends a statement at the end of its line. */
static bool is_in_list(const Syntax *s, const void *grammar)
{
    const char *at = s->scanner.cursor + strspn(s->scanner.cursor, " \t\r\n");
    const bool ends_line = *at == ';' && at[1 + strspn(at + 1, " \t\r")] == '\n';
    const bool body = s->open.count && s->open.data[0].token->kind == TOKEN_LBRACE;
    return !s->muted && grammar_accepts(grammar, TOKEN_COMMA) && !(body && ends_line);
}

static const Token *next_token(Syntax *s, const void *grammar)
{
    Token *token = NEW(s->arena, Token);
    s->scanner.in_list = is_in_list(s, grammar);
    s->scanner.in_head = !s->open.count || s->open.data[0].token->kind != TOKEN_LBRACE;
    s->scanner.axis = s->axes.count ? s->axes.data[s->axes.count - 1] : NULL;
    scan(&s->scanner, token);
    mend_reserved(s, grammar, token);
    return token;
}

static bool opens(int kind)
{
    return kind == TOKEN_LPAREN || kind == TOKEN_LBRACKET || kind == TOKEN_LBRACE;
}

static bool closes(int kind)
{
    return kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET || kind == TOKEN_RBRACE;
}

/* The axes stand in the brackets behind an item's name. */
static bool declares_axes(const Syntax *s)
{
    return s->open.count == 1 && s->open.data[0].token->kind == TOKEN_LBRACKET && !s->declared;
}

/* Records the axes that a graph's parameters are declared with. */
static void follow_params(Syntax *s, const Token *token)
{
    if (s->item_kind != TOKEN_GRAPH || !s->open.count ||
        s->open.data[0].token->kind != TOKEN_LPAREN)
        return;
    if (token->kind == TOKEN_COLON) s->param = s->previous;
    if (token->kind == TOKEN_NAME && s->open.count > 1 && s->param)
        *list_push(s->arena, &s->param_axes) = (ParamAxis){s->param->text, token->text};
}

static void begin_head(Syntax *s)
{
    s->open.count = s->axes.count = s->axis_sizes.count = 0;
    s->param_axes.count = s->misused.count = 0;
    s->param = NULL;
    s->declared = false;
}

/* Records, for hints, which brackets are open and what the axes are called. */
static void follow_brackets(Syntax *s, const Token *token)
{
    if (begins_item(token)) begin_head(s);
    bool name = token->kind == TOKEN_NAME || token->kind == TOKEN_BIND;
    if (name && declares_axes(s)) {
        *list_push(s->arena, &s->axes) = token->text;
        *list_push(s->arena, &s->axis_sizes) = NULL;
    }
    if (token->kind == TOKEN_INTEGER && declares_axes(s) && s->axis_sizes.count)
        s->axis_sizes.data[s->axis_sizes.count - 1] = token->text;
    follow_params(s, token);
    if (token->kind == TOKEN_LPAREN && !s->open.count) s->declared = true;
    if (opens(token->kind)) *list_push(s->arena, &s->open) = (Opened){token, s->previous};
    if (closes(token->kind) && s->open.count) s->closed = s->open.data[--s->open.count];
}

/* Whether the brace that was opened last is inside a body, or in the expression of a short function
 * or its head, which are wrong. */
static bool is_foreign_block(const Syntax *s)
{
    if (s->open.data[0].token->kind != TOKEN_LBRACE) return false;
    return s->open.count > 1 || s->item_kind == TOKEN_FN;
}

/* Skips a block which is another language's: once that is reported, its end must not be taken for
 * the body's. */
static void skip_block(Syntax *s, const void *grammar)
{
    int depth = s->open.count - 1;
    while (s->open.count > depth) {
        Scanner before = s->scanner;
        const Token *token = next_token(s, grammar);
        if (!token->kind || begins_item(token)) {
            s->scanner = before;
            return;
        }
        follow_brackets(s, token);
        s->previous = token;
    }
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
    if (is_back_in_step(grammar, token)) s->muted = s->scanner.damaged = false;
}

Module *parse_module(Arena *arena, Diagnostics *d, const Source *source)
{
    Module *module = NEW(arena, Module);
    module->source = source;
    if (source->length > MAX_TEXT) {
        report_error(d, whole_file(source), NULL, "the file has over %d MiB", MAX_TEXT >> 20);
        return module;
    }
    Syntax s = {.arena = arena, .d = d};
    scanner_start(&s.scanner, arena, d, source);
    void *grammar = grammar_new(&s);
    const Token *token;
    do {
        token = next_token(&s, grammar);
        warn_of_leading_minus(&s, token);
        push(&s, grammar, token);
        follow_brackets(&s, token);
        s.previous = token;
        if (token->kind == TOKEN_LBRACE && s.muted && is_foreign_block(&s)) skip_block(&s, grammar);
    } while (token->kind);
    module->items = s.first;
    return module;
}
