/* frontend/head_hints.c: what to write where the head of an item is wrong: names, parameters and
 * outputs; and where a number stands in brackets that hold the names of axes, also in a body. */
#include "frontend/syntax.h"

#include "fuse.h"

#include <stdlib.h>
#include <string.h>

static const char PARAMETER[] = "a parameter is written NAME : DTYPE[AXES], a scalar NAME : DTYPE";

static const char *text_at(const Syntax *s, uint32_t offset)
{
    return s->scanner.source->text + offset;
}

static size_t name_length(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- names ---- */

/* "names have no '-'", where one joins words: `at` is what stands behind the first of them. */
static const char *hint_for_dash(const Syntax *s, const char *first, const char *at, bool binds)
{
    Text *text = text_new(s->arena);
    text_print(text, "names have no '-': write %.60s", first);
    if (*at != '-' || !name_length(at + 1) || is_digit(at[1])) return NULL;
    while (*at == '-' && name_length(at + 1)) {
        const int length = (int)name_length(at + 1);
        text_print(text, "_%.*s", length < 60 ? length : 60, at + 1);
        at += 1 + length;
    }
    at += strspn(at, " \t");
    return binds && (at[0] != '=' || at[1] == '=') ? NULL : text_string(text);
}

const char *hint_for_dashed_name(const Syntax *s, const Token *found, const bool *expected)
{
    const bool in_tensor = s->open.count > 1;
    if (found->kind == TOKEN_NAME && expected[TOKEN_BIND])
        return hint_for_dash(s, found->text, text_at(s, found->end), true);
    if (found->kind != TOKEN_MINUS || expected[TOKEN_PLUS] || in_tensor || !s->previous ||
        s->previous->kind != TOKEN_NAME || s->previous->end != found->span.begin)
        return NULL;
    return hint_for_dash(s, s->previous->text, text_at(s, found->span.begin), false);
}

/* ---- parameters ---- */

static bool is_word(const char *at, int length, const char *word)
{
    return strlen(word) == (size_t)length && !memcmp(at, word, (size_t)length);
}

/* The dtype of a scalar with a default: NULL if that is no number or constant. */
static const char *dtype_of_default(const char *at, int length)
{
    const bool sign = length > 1 && *at == '-';
    const char *number = at + sign;
    const int rest = length - sign;
    if (is_word(at, length, "true") || is_word(at, length, "false")) return "bool";
    if (is_word(number, rest, "inf")) return "f32";
    if (!is_digit(*number) && *number != '.') return NULL;
    return strspn(number, "0123456789") >= (size_t)rest ? "i64" : "f32";
}

/* eps = 1e-6, as other languages write it: a scalar, or a dtype behind the wrong sign. */
static const char *hint_for_bound_param(const Syntax *s, const Token *found)
{
    const Token *list = s->open.data[0].before;
    const char *at = text_at(s, found->end) + strspn(text_at(s, found->end), " ");
    int length = (int)strcspn(at, " ,)[\n");
    DType dtype;
    if (length > 60 || (list && list->kind == TOKEN_ARROW)) return PARAMETER;
    const char *of_default = dtype_of_default(at, length);
    if (of_default)
        return arena_format(s->arena, "write %.60s : %s = %.*s", found->text, of_default, length,
                            at);
    if (!dtype_find(arena_copy(s->arena, at, (size_t)length), &dtype)) return PARAMETER;
    const char *end = at[length] == '[' ? strpbrk(at, "]\n") : NULL;
    if (end && *end == ']' && end - at < 60) length = (int)(end - at) + 1;
    return arena_format(s->arena, "write %.60s : %.*s", found->text, length, at);
}

/* f32 x, as C writes it. */
static const char *hint_for_untyped_param(const Syntax *s, const Token *found)
{
    DType dtype;
    if (found->kind == TOKEN_NAME && dtype_find(s->previous->text, &dtype))
        return arena_format(s->arena, "write %.60s : %s", found->text, s->previous->text);
    return PARAMETER;
}

const char *hint_for_head(const Syntax *s, const Token *found, const bool *expected)
{
    int before = s->previous ? s->previous->kind : 0, kind = found->kind;
    bool number = before == TOKEN_FLOAT || before == TOKEN_INTEGER;
    if (number && kind == TOKEN_NAME && s->previous->end == found->span.begin)
        return "numbers have no suffix";
    if (s->item_kind == TOKEN_FN && !expected[TOKEN_PLUS] &&
        (kind == TOKEN_COLON || kind == TOKEN_ARROW))
        return "a function declares no types and no results: write fn f(x) = e, or fn f(x) { ... return e }";
    if (s->item_kind != TOKEN_GRAPH || expected[TOKEN_PLUS]) return NULL;
    if (expected[TOKEN_ARROW] && kind == TOKEN_LBRACE)
        return "a graph names its outputs: graph g(...) -> (y : f32[M, N]) {";
    if (expected[TOKEN_ARROW] && kind && kind != TOKEN_GRAPH && kind != TOKEN_FN)
        return "outputs stand behind '->', in parentheses";
    if (expected[TOKEN_COLON] && (kind == TOKEN_COMMA || kind == TOKEN_RPAREN ||
                                  kind == TOKEN_NAME || kind == TOKEN_LBRACKET))
        return hint_for_untyped_param(s, found);
    if (kind == TOKEN_BIND && expected[TOKEN_NAME] && expected[TOKEN_RPAREN])
        return hint_for_bound_param(s, found);
    if (before == TOKEN_BIND && expected[TOKEN_INTEGER] && !expected[TOKEN_LPAREN])
        return "an axis has a size, as in [M = 4], or none, as in [M]";
    return expected[TOKEN_COMMA] && (kind == TOKEN_NAME || kind == TOKEN_BIND)
               ? "a comma is missing"
               : NULL;
}

/* ---- numbers in brackets ---- */

static bool mentions(const char *at, const char *end, const char *name)
{
    while (at < end) {
        const size_t length = name_length(at);
        if (length && is_word(at, (int)length, name)) return true;
        at += length ? length : 1;
    }
    return false;
}

/* Whether a parameter that occurs in a text has an axis. */
static bool has_axis(const Syntax *s, const char *at, const char *end, const char *axis)
{
    for (int i = 0; i < s->param_axes.count; i++)
        if (!strcmp(s->param_axes.data[i].axis, axis) &&
            mentions(at, end, s->param_axes.data[i].param))
            return true;
    return false;
}

/* The axis of a text that a number counts, from the end where it is negative. Axes are those of the
 * parameters in the text, or all. */
static const char *counted_axis(const Syntax *s, const char *at, const char *end, long place)
{
    LIST(const char *) axes = {0};
    for (int i = 0; i < s->axes.count; i++)
        if (has_axis(s, at, end, s->axes.data[i])) *list_push(s->arena, &axes) = s->axes.data[i];
    const char *const *names = axes.count ? axes.data : s->axes.data;
    const int count = axes.count ? axes.count : s->axes.count;
    if (!count) return "N";
    if (place < 0) place += count;
    return names[place >= 0 && place < count ? place : count - 1];
}

/* The end of what stands in the parenthesis at `open`; NULL: it is not closed on its line. */
static const char *closing(const char *open)
{
    int depth = 0;
    for (const char *at = open; *at && *at != '\n'; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth) return at;
    }
    return NULL;
}

/* The axes that the numbers in brackets count along the axes of an operand: "M, N". NULL: other
 * things stand there. */
static const char *print_counted(const Syntax *s, const char *at, const char *open, const char *end)
{
    Text *text = text_new(s->arena);
    for (;; at++) {
        char *behind;
        const long place = strtol(at, &behind, 10);
        if (behind == at) return NULL;
        text_print(text, "%s%s", text->length ? ", " : "", counted_axis(s, open, end, place));
        at = behind + strspn(behind, " ");
        if (*at == ']') return text_string(text);
        if (*at != ',') return NULL;
    }
}

/* mean[-1](x): the call with the axes that are counted. */
static const char *hint_for_counted(const Syntax *s)
{
    enum { LONGEST = 60 };
    const Opened *bracket = &s->open.data[s->open.count - 1];
    const char *name = bracket->before ? bracket->before->text : "sum";
    const char *number = text_at(s, bracket->token->end), *close = strpbrk(number, "]\n");
    const char *open = close && *close == ']' ? close + 1 + strspn(close + 1, " ") : number;
    const char *end = *open == '(' ? closing(open) : NULL;
    const char *axes = print_counted(s, number, open, end ? end : open);
    if (!strcmp(name, "size") || !strcmp(name, "index"))
        return arena_format(s->arena, "write %s(%s)", name, counted_axis(s, open, open, -1));
    if (end && axes && end - open < LONGEST)
        return arena_format(s->arena, "name the axis: %.60s[%s]%.*s", name, axes,
                            (int)(end + 1 - open), open);
    return arena_format(s->arena, "name the axis, as in %.60s[%s](x)", name,
                        counted_axis(s, open, open, -1));
}

static int axis_of_name(const Syntax *s, const char *at, int length)
{
    for (int i = 0; i < s->axes.count; i++)
        if (is_word(at, length, s->axes.data[i])) return i;
    return -1;
}

/* Whether brackets hold names of axes alone. */
static bool holds_axes(const Syntax *s, const char *at)
{
    for (;;) {
        at += strspn(at, " ");
        const int length = (int)name_length(at);
        if (axis_of_name(s, at, length) < 0) return false;
        at += length;
        at += strspn(at, " ");
        if (*at != ',') return *at == ']';
        at++;
    }
}

/* sum(x)[N]: the brackets of a reduction behind its operand. */
const char *hint_for_late_axes(const Syntax *s, const Token *found)
{
    enum { LONGEST = 60 };
    const Token *open = s->closed.token, *function = s->closed.before;
    if (found->kind != TOKEN_LBRACKET || s->previous->kind != TOKEN_RPAREN || !function ||
        function->kind != TOKEN_NAME || !takes_axes(function->text) ||
        !strcmp(function->text, "size") || !strcmp(function->text, "index"))
        return NULL;
    const char *begin = text_at(s, open->span.begin), *end = text_at(s, s->previous->span.begin);
    const char *axes = text_at(s, found->end), *close = strpbrk(axes, "]\n");
    if (closing(begin) != end || memchr(begin, ',', (size_t)(end - begin)) || end - begin > LONGEST)
        return NULL;
    axes = holds_axes(s, axes) ? arena_copy(s->arena, axes, (size_t)(close - axes))
                               : print_counted(s, axes, begin, end);
    return axes ? arena_format(s->arena, "write %s[%s]%.*s", function->text, axes,
                               (int)(end + 1 - begin), begin)
                : NULL;
}

/* The place of the only axis with a size; -1: there is none, or several. */
static int axis_of_size(const Syntax *s, const char *at, int length)
{
    int place = -1;
    for (int i = 0; i < s->axes.count && i < s->axis_sizes.count; i++) {
        if (!s->axis_sizes.data[i] || !is_word(at, length, s->axis_sizes.data[i])) continue;
        if (place >= 0) return -1;
        place = i;
    }
    return place;
}

/* "f32[M, N]" for f32[4, 1, N]: axes by their sizes, without those of one element. NULL: some
 * number is the size of no axis, or of several. */
static const char *hint_for_sizes(const Syntax *s, const char *dtype, const char *at)
{
    Text *text = text_new(s->arena);
    text_print(text, "write %.60s[", dtype);
    for (int last = -1, next; *at != ']'; at += *at == ',') {
        at += strspn(at, " ");
        const int length = (int)name_length(at);
        if (!length || !strchr(" ,]", at[length])) return NULL;
        const bool one = is_word(at, length, "1");
        next = is_digit(*at) ? axis_of_size(s, at, length) : axis_of_name(s, at, length);
        at += length;
        at += strspn(at, " ");
        if (one && next < 0) continue;
        if (next <= last) return NULL;
        text_print(text, "%s%s", last < 0 ? "" : ", ", s->axes.data[next]);
        last = next;
    }
    text_print(text, "]");
    return text_string(text);
}

/* In the declaration of a tensor. */
static const char *hint_for_tensor(const Syntax *s, const Token *found)
{
    const Opened *bracket = &s->open.data[s->open.count - 1];
    const char *written = hint_for_sizes(s, bracket->before->text, text_at(s, bracket->token->end));
    if (written) return written;
    const char *names = "KLPQRST";
    while (names[1] && axis_of_name(s, names, 1) >= 0) names++;
    return arena_format(s->arena,
                        "brackets hold the names of axes: declare one of this size behind the "
                        "graph's name, as in [%c = %.20s]",
                        *names, found->text);
}

const char *hint_for_number(const Syntax *s, const Token *found, const bool *expected)
{
    const bool number = found->kind == TOKEN_INTEGER || found->kind == TOKEN_MINUS;
    if (!number || !expected[TOKEN_NAME] || expected[TOKEN_INTEGER] || !s->open.count ||
        s->open.data[s->open.count - 1].token->kind != TOKEN_LBRACKET)
        return NULL;
    const bool declared = s->declared, graph = s->item_kind == TOKEN_GRAPH;
    if (s->open.data[0].token->kind == TOKEN_LBRACE || (declared && !graph))
        return hint_for_counted(s);
    if (declared) return found->kind == TOKEN_INTEGER ? hint_for_tensor(s, found) : NULL;
    return graph && found->kind == TOKEN_INTEGER
               ? arena_format(s->arena, "an axis has a name: [N = %.20s]", found->text)
               : "an axis is a name, as in [N]";
}
