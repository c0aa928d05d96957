/* frontend/syntax_errors.c: the reports of the scanner and the grammar about text that is not a
 * program.
 *
 * The grammar knows which tokens could stand at a place. The message names them as a reader would
 * ("an expression"), behind the token that they should have followed. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <string.h>

static const char *const kind_names[] = {
    [0] = "end",
    [TOKEN_OR] = "||",
    [TOKEN_AND] = "&&",
    [TOKEN_EQ] = "==",
    [TOKEN_NE] = "!=",
    [TOKEN_LT] = "<",
    [TOKEN_LE] = "<=",
    [TOKEN_GT] = ">",
    [TOKEN_GE] = ">=",
    [TOKEN_PLUS] = "+",
    [TOKEN_MINUS] = "-",
    [TOKEN_STAR] = "*",
    [TOKEN_SLASH] = "/",
    [TOKEN_NOT] = "!",
    [TOKEN_POWER] = "**",
    [TOKEN_IMPORT] = "import",
    [TOKEN_STRING] = "string",
    [TOKEN_FN] = "fn",
    [TOKEN_NAME] = "name",
    [TOKEN_LPAREN] = "(",
    [TOKEN_RPAREN] = ")",
    [TOKEN_ASSIGN] = "=",
    [TOKEN_LBRACE] = "{",
    [TOKEN_RBRACE] = "}",
    [TOKEN_GRAPH] = "graph",
    [TOKEN_ARROW] = "->",
    [TOKEN_LBRACKET] = "[",
    [TOKEN_RBRACKET] = "]",
    [TOKEN_COMMA] = ",",
    [TOKEN_BIND] = "bind",
    [TOKEN_INTEGER] = "integer",
    [TOKEN_COLON] = ":",
    [TOKEN_FLOAT] = "float",
    [TOKEN_CONSTANT] = "constant",
    [TOKEN_RETURN] = "return",
};

const char *token_kind_name(int kind)
{
    return kind_names[kind];
}

static bool has_own_text(int kind)
{
    return kind == TOKEN_NAME || kind == TOKEN_INTEGER || kind == TOKEN_FLOAT ||
           kind == TOKEN_CONSTANT;
}

const char *token_shown(Arena *arena, const Token *token)
{
    if (token->kind == 0) return "the end of the file";
    if (token->kind == TOKEN_STRING) return "the path";
    if (token->kind == TOKEN_BIND) return arena_format(arena, "'%.60s ='", token->text);
    bool own = has_own_text(token->kind);
    return arena_format(arena, "'%.60s'", own ? token->text : kind_names[token->kind]);
}

/* ---- characters and literals ---- */

static void damage(Scanner *s, const char *begin, const char *hint, const char *message)
{
    s->damaged = true;
    report_error(s->d, scanner_span(s, begin, s->cursor), hint, "%s", message);
}

/* Characters that editors and papers put where an operator was meant. */
static const char *plain_spelling(const char *begin)
{
    static const char *const look_alikes[][2] = {
        {"\xc3\x97", "*"},
        {"\xc2\xb7", "*"},
        {"\xe2\x88\x92", "-"},
        {"\xe2\x80\x93", "-"},
        {"\xe2\x80\x94", "-"},
        {"\xc3\xb7", "/"},
        {"\xe2\x89\xa4", "<="},
        {"\xe2\x89\xa5", ">="},
        {"\xe2\x89\xa0", "!="},
        {"\xe2\x86\x92", "->"},
        {"\xe2\x88\x9e", "inf"},
        {"\xe2\x80\x9c", "\""},
        {"\xe2\x80\x9d", "\""},
        {"\xc2\xa0", "a space"},
        {"%", "x - y * floor(x / y), of integers i32(...) of it"},
        {".to(", "f32(x), not x.to(f32)"},
        {"...", "nothing: an index along an axis is where(index($) == i, x, 0)"},
        {".T", "nothing: axes are matched by name, and nothing is transposed"},
        {".shape", "size($)"},
        {".size", "size($)"},
        {".float(", "f32(x), not x.float()"},
        {".half(", "f16(x), not x.half()"},
        {".bfloat16(", "bf16(x), not x.bfloat16()"},
        {".pow(", "x ** p, not x.pow(p)"},
        {".float32", "f32"},
        {".float16", "f16"},
        {".bfloat16", "bf16"},
        {".float64", "f64"},
        {".int64", "i64"},
        {".unsqueeze", "nothing: values are broadcast by the names of their axes"},
        {".view", "nothing: axes are matched by name, and nothing is reshaped"},
        {".reshape", "nothing: axes are matched by name, and nothing is reshaped"},
        {".transpose", "nothing: axes are matched by name, and nothing is transposed"},
        {".", "exp(x) or mean[$](x), not x.exp() or m.exp(x)"},
        {"~", "! for a logical not; there are no operations on bits"},
        {"?", "where(c, a, b)"},
        {"@", "sum[$](a * b), which is slow for large matrices"},
    };
    for (size_t i = 0; i < sizeof look_alikes / sizeof *look_alikes; i++)
        if (strncmp(begin, look_alikes[i][0], strlen(look_alikes[i][0])) == 0)
            return look_alikes[i][1];
    return NULL;
}

/* "write " and a spelling with the program's axis in it. */
static const char *with_axis(const Scanner *s, const char *plain)
{
    const char *axis = strchr(plain, '$');
    if (!axis) return arena_format(s->arena, "write %s", plain);
    return arena_format(s->arena, "write %.*s%s%s", (int)(axis - plain), plain,
                        s->axis ? s->axis : "N", axis + 1);
}

void report_character(Scanner *s, const char *begin)
{
    const char *plain = plain_spelling(begin);
    const char *hint = plain ? with_axis(s, plain) : NULL;
    if (s->in_head && *begin == '.' && plain && strstr(plain, "exp(x)")) hint = "names have no '.'";
    unsigned char byte = (unsigned char)*begin;
    const char *message =
        byte > ' ' && byte < 0x7f ? arena_format(s->arena, "unexpected character '%c'", byte)
        : byte >= 0x80            ? "unexpected character: names and operators are plain ASCII"
                                  : arena_format(s->arena, "unexpected byte 0x%02x", byte);
    damage(s, begin, hint, message);
}

void report_number(Scanner *s, const char *begin)
{
    const char *hint = begin[0] == '0' && strpbrk(begin, "xX") == begin + 1
                           ? "numbers are decimal"
                           : "numbers look like 42, 1.5 or 1e-5, and '*' multiplies";
    int length = (int)(s->cursor - begin);
    damage(s, begin, hint,
           arena_format(s->arena, "'%.*s' is not a number", length < 60 ? length : 60, begin));
}

void report_string(Scanner *s, const char *begin)
{
    damage(s, begin, "a path ends with '\"' on its line", "the path has no closing quote");
}

void report_misspelling(Scanner *s, const char *begin, const char *written, const char *hint)
{
    report_error(s->d, scanner_span(s, begin, s->cursor), hint, "unexpected '%s'", written);
}

/* ---- syntax ---- */

static const char RESERVED[] = "the word is reserved: choose another name";

void report_reserved(Syntax *s, const Token *word)
{
    if (s->previous && s->previous->kind == TOKEN_COLON)
        report_error(s->d, word->span, NULL, "expected a dtype after ':', found '%s'", word->text);
    else
        report_error(s->d, word->span, RESERVED, "'%s' cannot be a name", word->text);
}

void report_too_deep(Syntax *s, Span at)
{
    report_error(s->d, at, "bind a part of it to a name", "nested too deeply (more than %d levels)",
                 MAX_DEPTH);
    stop(s->d);
}

typedef struct {
    const char *names[8];
    int count;
} Wanted;

static void want(Wanted *wanted, bool expected, const char *name)
{
    if (expected && wanted->count < 8) wanted->names[wanted->count++] = name;
}

/* What a name would be, judged by the token before it. */
static const char *name_role(const Token *previous)
{
    switch (previous ? previous->kind : 0) {
    case TOKEN_FN: return "a function name";
    case TOKEN_GRAPH: return "a graph name";
    case TOKEN_COLON: return "a dtype";
    case TOKEN_LBRACKET: return "an axis name";
    default: return "a name";
    }
}

static void want_punctuation(Wanted *wanted, const bool *expected)
{
    static const int kinds[] = {TOKEN_STRING,   TOKEN_COLON, TOKEN_COMMA,  TOKEN_RPAREN,
                                TOKEN_RBRACKET, TOKEN_ARROW, TOKEN_LBRACE, TOKEN_ASSIGN};
    static const char *const shown[] = {
        "a path in quotes", "':'", "','", "')'", "']'", "'->'", "'{'", "'='"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        want(wanted, expected[kinds[i]], shown[i]);
}

static Wanted list_wanted(const Token *previous, const bool *expected)
{
    Wanted wanted = {0};
    bool expression = expected[TOKEN_INTEGER] && expected[TOKEN_LPAREN];
    bool operator= expected[TOKEN_PLUS];
    want(&wanted, expression, "an expression");
    want(&wanted, operator, "an operator");
    want(&wanted, expected[TOKEN_FN], operator? "the next item" : "'import', 'fn' or 'graph'");
    if (expected[TOKEN_FN]) return wanted;
    want(&wanted, !expression && expected[TOKEN_INTEGER],
         expected[TOKEN_FLOAT] ? "a number" : "an integer");
    want(&wanted, !expression && expected[TOKEN_NAME], name_role(previous));
    want(&wanted, !expression && !operator&& expected[TOKEN_LPAREN], "'('");
    want(&wanted, !expression && !operator&& expected[TOKEN_LBRACKET], "'['");
    if (!expression) want_punctuation(&wanted, expected);
    want(&wanted, expected[TOKEN_BIND] && expected[TOKEN_RETURN], "a statement");
    want(&wanted, expected[TOKEN_RBRACE], "'}'");
    return wanted;
}

static const char *join_wanted(Arena *arena, const Wanted *wanted)
{
    Text *text = text_new(arena);
    for (int i = 0; i < wanted->count; i++) {
        const char *comma = i == 0 ? "" : i == wanted->count - 1 ? " or " : ", ";
        text_print(text, "%s%s", comma, wanted->names[i]);
    }
    return text_string(text);
}

static const char *hint_for_item(Arena *arena, const Token *found)
{
    static const char *const items[] = {"import", "fn", "graph"};
    static const char *const others[] = {"def", "func", "function"};
    if (found->kind != TOKEN_NAME && found->kind != TOKEN_BIND) return NULL;
    const char *meant = nearest_name(found->text, items, 3);
    for (int i = 0; i < 3; i++)
        if (strcmp(found->text, others[i]) == 0) meant = "fn";
    return meant ? arena_format(arena, "did you mean '%s'?", meant) : NULL;
}

static bool is_branch(const char *word)
{
    static const char *const words[] = {"if",   "elif", "else",   "then",      "unless",
                                        "when", "case", "switch", "otherwise", "match"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

/* Words of other languages where an operator or a name's argument should stand. */
static const char *hint_for_word(const Token *previous, const Token *found, bool operator)
{
    static const char *const operators[][2] = {{"and", "write &&"},
                                               {"or", "write ||"},
                                               {"is", "write =="},
                                               {"as", "write f32(x), or another dtype"}};
    static const char branch[] = "write where(condition, a, b)";
    if (!operator|| found->kind != TOKEN_NAME) return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strcmp(found->text, operators[i][0])) return operators[i][1];
    if (is_branch(found->text)) return branch;
    if (!previous || previous->kind != TOKEN_NAME) return NULL;
    return !strcmp(previous->text, "not") ? "write !x" : is_branch(previous->text) ? branch : NULL;
}

/* x << 2: two tokens of a comparison. */
static const char *hint_for_shift(const Token *previous, const Token *found)
{
    const bool twice =
        previous && found->kind == previous->kind && found->span.begin == previous->span.end;
    if (!twice || (found->kind != TOKEN_LT && found->kind != TOKEN_GT)) return NULL;
    return found->kind == TOKEN_LT ? "there are no operations on bits: write x * 2 ** n"
                                   : "there are no operations on bits: write floor(x / 2 ** n)";
}

/* "REDUCE sum", "LEAF index", ...: what stands before axes in brackets. */
static const char *const operations[] = {
#define OP(name, text, arity, class, prec, f32, f64, i64, err, cost, doc) #class " " text,
#include "graph/ops.def"
};

bool takes_axes(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const char *class = operations[i], *text = strchr(class, ' ') + 1;
        if ((!strncmp(class, "REDUCE", 6) || !strcmp(text, "size") || !strcmp(text, "index")) &&
            !strcmp(text, name))
            return true;
    }
    return false;
}

static bool names_value(const Opened *bracket)
{
    return bracket->before && bracket->before->kind == TOKEN_NAME &&
           !takes_axes(bracket->before->text);
}

/* Behind a name in a body, or behind its brackets: an index of another language. */
static const char *hint_for_index(const Syntax *s, const Token *found, const bool *expected)
{
    if (!s->open.count || s->open.data[0].token->kind != TOKEN_LBRACE) return NULL;
    const char *text = s->scanner.source->text;
    if (s->previous->kind == TOKEN_RBRACKET && expected[TOKEN_LPAREN] && !expected[TOKEN_PLUS] &&
        names_value(&s->closed))
        return hint_for_element(s, &s->closed, text + s->previous->span.begin);
    const Opened *inner = &s->open.data[s->open.count - 1];
    if (inner->token->kind != TOKEN_LBRACKET || !names_value(inner) ||
        found->kind == TOKEN_RBRACKET)
        return NULL;
    const char *close = strpbrk(text + found->span.begin, "]\n");
    if (!found->kind || !close || *close != ']' || close[1] == '(') return NULL; /* a call */
    return hint_for_element(s, inner, close);
}

/* Brackets and parentheses that stand elsewhere in other languages. */
static const char *hint_for_brackets(const Syntax *s, const Token *found, const bool *expected)
{
    int before = s->previous ? s->previous->kind : 0;
    const char *late = before ? hint_for_late_axes(s, found) : NULL;
    if (late) return late;
    if (before == TOKEN_IMPORT && found->kind == TOKEN_NAME)
        return "write import \"std\", or the path of a file in quotes";
    if (before == TOKEN_ARROW && found->kind == TOKEN_NAME)
        return "write outputs in parentheses: -> (y : f32[M, N])";
    if (before == TOKEN_LBRACKET && found->kind == TOKEN_RBRACKET)
        return "write axes in brackets; a scalar has no brackets";
    bool header =
        found->kind == TOKEN_ARROW || found->kind == TOKEN_LBRACE || found->kind == TOKEN_NAME;
    if (before == TOKEN_RBRACKET && expected[TOKEN_LPAREN] && !expected[TOKEN_PLUS] &&
        s->item_kind == TOKEN_GRAPH && !header)
        return "a reduction is called, as in sum[N](x); the size of an axis is size(N)";
    return NULL;
}

/* Which bracket of a kind is not closed: the innermost one. 0: of any kind. */
static const char *hint_unclosed(const Syntax *s, int kind)
{
    for (int i = s->open.count - 1; i >= 0; i--) {
        const Token *bracket = s->open.data[i].token;
        const Span at = bracket->span;
        int line, column;
        if (kind && bracket->kind != kind) continue;
        source_place(at.source, at.begin, &line, &column);
        return arena_format(s->arena, "the '%s' at %s:%d:%d is not closed",
                            kind_names[bracket->kind], at.source->name, line, column);
    }
    return NULL;
}

/* A token that closes another bracket, or begins the next statement or item, where this bracket
 * could still be closed; and the end of all that could close it. */
static const char *hint_for_open(const Syntax *s, const Token *found, const bool *expected)
{
    int kind = found->kind;
    bool next = !kind || kind == TOKEN_IMPORT || kind == TOKEN_FN || kind == TOKEN_GRAPH;
    bool ends = next || kind == TOKEN_RBRACE || (kind == TOKEN_BIND && found->first_on_line) ||
                kind == TOKEN_LBRACE || kind == TOKEN_ARROW;
    if (expected[TOKEN_RPAREN] && (ends || kind == TOKEN_RBRACKET))
        return hint_unclosed(s, TOKEN_LPAREN);
    if (expected[TOKEN_RBRACKET] && (ends || kind == TOKEN_RPAREN || kind == TOKEN_LPAREN))
        return hint_unclosed(s, TOKEN_LBRACKET);
    return next ? hint_unclosed(s, 0) : NULL;
}

/* Statements of other languages. */
static const char *hint_for_statement(const Syntax *s, const Token *found)
{
    static const char branch[] = "there are no branches: write NAME = where(condition, a, b)";
    const Token *before = s->previous ? s->closed.before : NULL;
    if (found->kind == TOKEN_LBRACE && s->previous && s->previous->kind == TOKEN_RPAREN && before &&
        before->kind == TOKEN_NAME && !strcmp(before->text, "if"))
        return branch;
    if (found->kind != TOKEN_NAME) return NULL;
    if (is_branch(found->text)) return branch;
    if (!strcmp(found->text, "for") || !strcmp(found->text, "while"))
        return "there are no loops: a reduction runs over an axis";
    return NULL;
}

/* mean(x, axis=1): the function and an axis of the program. */
static const char *hint_for_named_argument(const Syntax *s, const Token *found)
{
    const char *number = s->scanner.source->text + found->end;
    number += strspn(number, " ");
    const bool counted = *number >= '0' && *number - '0' < s->axes.count;
    const int place = counted ? *number - '0' : s->axes.count - 1;
    const Token *function = s->open.count ? s->open.data[s->open.count - 1].before : NULL;
    bool named = function && function->kind == TOKEN_NAME;
    return arena_format(
        s->arena, "arguments are not named, and an axis goes in brackets: %.60s[%s](x)",
        named ? function->text : "softmax", s->axes.count ? s->axes.data[place] : "N");
}

static bool begins_operand(const Token *token)
{
    return token->kind == TOKEN_NAME || token->kind == TOKEN_INTEGER ||
           token->kind == TOKEN_FLOAT || token->kind == TOKEN_LPAREN;
}

static const char *hint_for(const Syntax *s, const Token *found, const bool *expected)
{
    const bool word = found->kind != TOKEN_STRING && is_reserved_word(found->text),
               named = found->kind == TOKEN_BIND || found->kind == TOKEN_NAME;
    const bool fits = (expected[TOKEN_NAME] && s->previous->kind != TOKEN_COLON) ||
                      (expected[TOKEN_BIND] && !expected[TOKEN_PLUS]);
    if (word && (named || (fits && found->kind == TOKEN_CONSTANT))) return RESERVED;
    const char *dashed = hint_for_dashed_name(s, found, expected);
    if (dashed) return dashed;
    const char *element = s->previous ? hint_for_index(s, found, expected) : NULL;
    const char *number = element ? element : hint_for_number(s, found, expected);
    const char *brackets = number ? number : hint_for_brackets(s, found, expected);
    if (brackets) return brackets;
    bool expression = expected[TOKEN_INTEGER] && expected[TOKEN_LPAREN];
    const char *foreign = hint_for_word(s->previous, found, expected[TOKEN_PLUS]);
    if (expected[TOKEN_FN] && !foreign) foreign = hint_for_statement(s, found);
    if (expected[TOKEN_FN]) return foreign ? foreign : hint_for_item(s->arena, found);
    if (found->kind == TOKEN_BIND && !found->first_on_line) {
        if (expression && s->previous && s->previous->kind == TOKEN_COMMA)
            return hint_for_named_argument(s, found);
        if (expected[TOKEN_PLUS] || expression) return "'==' compares, '=' binds a name";
    }
    if (!foreign && expression) foreign = hint_for_shift(s->previous, found);
    if (foreign) return foreign;
    if (found->kind == TOKEN_ASSIGN && expected[TOKEN_PLUS])
        return "'==' compares, '=' binds a name";
    bool arithmetic = found->kind == TOKEN_SLASH || found->kind == TOKEN_STAR ||
                      found->kind == TOKEN_PLUS || found->kind == TOKEN_MINUS;
    if (arithmetic && expected[TOKEN_RBRACKET] && !expected[TOKEN_PLUS])
        return "an axis is a name, not a computed size: declare an axis of that size, as in graph g[N = 8, HALF = 4](...)";
    const char *head = hint_for_head(s, found, expected), *open = hint_for_open(s, found, expected);
    if (head || open) return head ? head : open;
    const char *statement = expected[TOKEN_BIND] ? hint_for_statement(s, found) : NULL;
    if (statement) return statement;
    if (expected[TOKEN_BIND] && begins_operand(found) &&
        (!expected[TOKEN_PLUS] || s->item_kind == TOKEN_FN || found->first_on_line))
        return s->item_kind == TOKEN_FN
                   ? "a statement is written NAME = EXPRESSION, the last one return EXPRESSION"
                   : "a statement is written NAME = EXPRESSION";
    return NULL;
}

/* What is missing at the end of a line is reported there, not on the following line. */
static Span place_of(const Token *previous, const Token *found, const bool *expected)
{
    bool word = found->kind == TOKEN_NAME || found->kind == TOKEN_CONSTANT;
    bool wrong = word && expected[TOKEN_BIND];
    bool moved = found->first_on_line || found->kind == 0;
    if (!previous || !moved || wrong || expected[TOKEN_FN]) return found->span;
    if (previous->kind == TOKEN_BIND)
        return (Span){previous->span.source, previous->end - 1, previous->end};
    return previous->span;
}

static const char *format_syntax_error(Syntax *s, const Token *found, const bool *expected)
{
    Wanted wanted = list_wanted(s->previous, expected);
    const char *wish = join_wanted(s->arena, &wanted);
    const char *shown = token_shown(s->arena, found);
    if (!s->previous || expected[TOKEN_FN])
        return arena_format(s->arena, "expected %s, found %s", wish, shown);
    const char *before =
        s->previous->kind == TOKEN_BIND ? "'='" : token_shown(s->arena, s->previous);
    return arena_format(s->arena, "expected %s after %s, found %s", wish, before, shown);
}

void report_syntax_error(Syntax *s, const Token *found, const bool *expected)
{
    s->failed = s->muted = true;
    if (!s->scanner.damaged)
        report_error(s->d, place_of(s->previous, found, expected), hint_for(s, found, expected),
                     "%s", format_syntax_error(s, found, expected));
}
