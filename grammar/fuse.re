/* fuse.re: the scanner (re2c). One call cuts one token from the text.
 *
 * `NAME =` is one token, so that the grammar sees where a statement begins; `NAME ==`
 * is not. What is no token is reported, and then read as what was probably meant, so
 * that parsing can go on. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <string.h>

void scanner_start(Scanner *s, Arena *arena, Diagnostics *d, const Source *source)
{
    *s = (Scanner){.arena = arena, .d = d, .source = source, .cursor = source->text};
    if (source->length >= 3 && memcmp(source->text, "\xef\xbb\xbf", 3) == 0)
        s->cursor += 3;
}

Span scanner_span(const Scanner *s, const char *begin, const char *end)
{
    const char *text = s->source->text;
    return (Span){s->source, (uint32_t)(begin - text), (uint32_t)(end - text)};
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
}

static const char *name_end(const char *begin)
{
    while (is_name_byte(*begin))
        begin++;
    return begin;
}

static int name_kind(const char *begin, size_t length)
{
    static const struct {
        const char *word;
        int kind;
    } reserved[] = {
        {"import", TOKEN_IMPORT}, {"fn", TOKEN_FN},         {"graph", TOKEN_GRAPH},
        {"return", TOKEN_RETURN}, {"inf", TOKEN_CONSTANT},  {"true", TOKEN_CONSTANT},
        {"false", TOKEN_CONSTANT},
    };
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strlen(reserved[i].word) == length &&
            memcmp(reserved[i].word, begin, length) == 0)
            return reserved[i].kind;
    return TOKEN_NAME;
}

bool is_reserved_word(const char *text)
{
    return name_kind(text, strlen(text)) != TOKEN_NAME;
}

/* `NAME =`: a reserved word stays what it is, the parser says what it wanted instead. */
static int bind_kind(Scanner *s, const char *begin)
{
    const char *end = name_end(begin);
    int kind = name_kind(begin, (size_t)(end - begin));
    if (kind == TOKEN_NAME)
        return TOKEN_BIND;
    s->cursor = end;
    return kind;
}

/* Returns the kind of the token that begins at *begin and ends at s->cursor. */
static int scan_kind(Scanner *s, const char **begin)
{
    const char *YYCURSOR = s->cursor, *YYMARKER;
#define TOKEN(kind) return s->cursor = YYCURSOR, (kind)
    for (;;) {
        const char *start = *begin = YYCURSOR;
        /*!re2c
        re2c:define:YYCTYPE = "unsigned char";
        re2c:yyfill:enable = 0;

        space   = [ \t\r\n];
        comment = "#" [^\n\x00]*;
        blank   = space | comment "\n";
        digit   = [0-9];
        letter  = [A-Za-z_];
        name    = letter (letter | digit)*;
        power   = [eE] [+-]? digit+;
        float   = digit+ "." digit* power? | "." digit+ power? | digit+ power;
        text    = [^"\n\r\x00-\x1f\x7f];
        bad     = [\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\xff];

        space+          { continue; }
        comment         { continue; }
        "\x00" {
            if (start == s->source->text + s->source->length) {
                s->cursor = start;
                return 0;
            }
            s->cursor = YYCURSOR;
            report_character(s, start);
            continue;
        }

        name            { TOKEN(name_kind(start, (size_t)(YYCURSOR - start))); }
        name blank* "=" [^=] {
            s->cursor = YYCURSOR - 1;
            return bind_kind(s, start);
        }
        digit+          { TOKEN(TOKEN_INTEGER); }
        float           { TOKEN(TOKEN_FLOAT); }
        "."? digit (letter | digit | ".")* {
            s->cursor = YYCURSOR;
            report_number(s, start);
            return TOKEN_INTEGER;
        }
        ["] text* ["]   { TOKEN(TOKEN_STRING); }
        ["] text* {
            s->cursor = YYCURSOR;
            report_string(s, start);
            return TOKEN_STRING;
        }

        "||"            { TOKEN(TOKEN_OR); }
        "&&"            { TOKEN(TOKEN_AND); }
        "=="            { TOKEN(TOKEN_EQ); }
        "!="            { TOKEN(TOKEN_NE); }
        "<"             { TOKEN(TOKEN_LT); }
        "<="            { TOKEN(TOKEN_LE); }
        ">"             { TOKEN(TOKEN_GT); }
        ">="            { TOKEN(TOKEN_GE); }
        "+"             { TOKEN(TOKEN_PLUS); }
        "-"             { TOKEN(TOKEN_MINUS); }
        "*"             { TOKEN(TOKEN_STAR); }
        "/"             { TOKEN(TOKEN_SLASH); }
        "!"             { TOKEN(TOKEN_NOT); }
        "**"            { TOKEN(TOKEN_POWER); }
        "->"            { TOKEN(TOKEN_ARROW); }
        "("             { TOKEN(TOKEN_LPAREN); }
        ")"             { TOKEN(TOKEN_RPAREN); }
        "["             { TOKEN(TOKEN_LBRACKET); }
        "]"             { TOKEN(TOKEN_RBRACKET); }
        "{"             { TOKEN(TOKEN_LBRACE); }
        "}"             { TOKEN(TOKEN_RBRACE); }
        ","             { TOKEN(TOKEN_COMMA); }
        ":"             { TOKEN(TOKEN_COLON); }
        "="             { TOKEN(TOKEN_ASSIGN); }

        name blank* ":=" {
            s->cursor = YYCURSOR;
            report_misspelling(s, YYCURSOR - 2, ":=", "write '=' to bind a name");
            return bind_kind(s, start);
        }
        name blank* [-+*/] "=" [^=] {
            s->cursor = YYCURSOR - 1;
            static const char operators[][3] = {"-=", "+=", "*=", "/="};
            int which = YYCURSOR[-3] == '-' ? 0 : YYCURSOR[-3] == '+' ? 1
                                            : YYCURSOR[-3] == '*' ? 2 : 3;
            report_misspelling(s, YYCURSOR - 3, operators[which],
                               "every name is bound once: bind a new name");
            return bind_kind(s, start);
        }
        "^" {
            s->cursor = YYCURSOR;
            report_misspelling(s, start, "^", "write '**' for a power");
            return TOKEN_POWER;
        }
        "&" {
            s->cursor = YYCURSOR;
            report_misspelling(s, start, "&", "write '&&' for a logical and");
            return TOKEN_AND;
        }
        "|" {
            s->cursor = YYCURSOR;
            report_misspelling(s, start, "|", "write '||' for a logical or");
            return TOKEN_OR;
        }
        ";" {
            s->cursor = YYCURSOR;
            report_misspelling(s, start, ";",
                               s->in_list ? "write ','"
                                          : "statements end by themselves: leave it out");
            if (s->in_list)
                return TOKEN_COMMA;
            continue;
        }
        ("//" | "/*") [^\n\x00]* {
            s->cursor = start + 2;
            report_misspelling(s, start, start[1] == '/' ? "//" : "/*",
                               start[1] == '/' ? "comments begin with '#'; floor(x / y) rounds a quotient down"
                                               : "comments begin with '#'");
            continue;
        }
        bad+ | "."+ {
            s->cursor = YYCURSOR;
            report_character(s, start);
            continue;
        }
        * {
            s->cursor = YYCURSOR;
            report_character(s, start);
            continue;
        }
        */
    }
#undef TOKEN
}

void scan_as_name(Scanner *s, Token *token)
{
    const char *end = s->cursor + strspn(s->cursor, " \t\r\n");
    token->kind = end[0] == '=' && end[1] != '=' ? TOKEN_BIND : TOKEN_NAME;
    if (token->kind == TOKEN_BIND)
        s->cursor = end + 1;
    token->end = s->previous_end = (uint32_t)(s->cursor - s->source->text);
}

void scan(Scanner *s, Token *token)
{
    const char *begin = s->cursor;
    token->kind = scan_kind(s, &begin);
    const char *end = token->kind == TOKEN_BIND ? name_end(begin) : s->cursor;
    token->span = scanner_span(s, begin, end);
    token->end = (uint32_t)(s->cursor - s->source->text);

    const char *gap = s->source->text + s->previous_end;
    token->first_on_line =
        s->previous_end == 0 || memchr(gap, '\n', (size_t)(begin - gap));
    s->previous_end = token->end;

    bool quoted = token->kind == TOKEN_STRING;
    const char *last = quoted && end - begin > 1 && end[-1] == '"' ? end - 1 : end;
    begin += quoted;
    token->text = arena_copy(s->arena, begin, (size_t)(last - begin));
}
