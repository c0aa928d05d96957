/* base/source.c: turns byte offsets into `file:line:col`, a source line and a caret range.
 *
 * Everything shown from a source is made harmless first: tabs become spaces, unprintable bytes
 * become `?`, and a line that is too long for a terminal is clipped around the place. A UTF-8
 * character takes one cell. Columns in `file:line:col` count bytes. */
#include "base/source.h"

#include <string.h>
#include <strings.h>

enum { SHOWN_BEFORE = 60, SHOWN_BEHIND = 60, TAB_WIDTH = 4, MAX_WARNINGS = 100 };

_Noreturn void stop(Diagnostics *d)
{
    longjmp(*d->escape, 1);
}

void stop_on_errors(Diagnostics *d)
{
    if (d->errors) stop(d);
}

Span span_join(Span first, Span last)
{
    if (!first.source) return last;
    if (last.source != first.source) return first;
    Span both = first;
    if (last.begin < both.begin) both.begin = last.begin;
    if (last.end > both.end) both.end = last.end;
    return both;
}

Span whole_file(const Source *source)
{
    return (Span){source, 1, 0};
}

static uint32_t clamp_offset(const Source *source, uint32_t offset)
{
    return offset < source->length ? offset : (uint32_t)source->length;
}

static uint32_t line_begin(const Source *source, uint32_t offset)
{
    while (offset > 0 && source->text[offset - 1] != '\n') offset--;
    return offset;
}

static uint32_t line_end(const Source *source, uint32_t offset)
{
    while (offset < source->length && source->text[offset] != '\n') offset++;
    if (offset > 0 && offset < source->length && source->text[offset - 1] == '\r') offset--;
    return offset;
}

void index_lines(Arena *arena, Source *source)
{
    LIST(uint32_t) lines = {0};
    const char *at = source->text, *end = at + source->length;
    *list_push(arena, &lines) = 0;
    while ((at = memchr(at, '\n', (size_t)(end - at))))
        *list_push(arena, &lines) = (uint32_t)(++at - source->text);
    source->lines = lines.data;
    source->line_count = lines.count;
}

/* The number, from 0, of the last line that begins at or before an offset. */
static int find_line(const Source *source, uint32_t offset)
{
    int first = 0, count = source->line_count;
    while (count > 1) {
        const int half = count / 2;
        if (source->lines[first + half] <= offset)
            first += half, count -= half;
        else
            count = half;
    }
    return first;
}

void source_place(const Source *source, uint32_t offset, int *line_number, int *column)
{
    offset = clamp_offset(source, offset);
    if (source->lines) {
        const int line = find_line(source, offset);
        *line_number = line + 1;
        *column = (int)(offset - source->lines[line]) + 1;
        return;
    }
    *line_number = 1;
    for (uint32_t at = 0; at < offset; at++) *line_number += source->text[at] == '\n';
    *column = (int)(offset - line_begin(source, offset)) + 1;
}

/* The bytes of the well-formed UTF-8 character at `at`, or 0. */
static uint32_t utf8_length(const unsigned char *at, const unsigned char *end)
{
    uint32_t length = *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (!length || (size_t)(end - at) < length) return 0;
    for (uint32_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool outside = (*at == 0xed && at[1] > 0x9f) || (*at == 0xf4 && at[1] > 0x8f);
    bool control = *at == 0xc2 && at[1] < 0xa0;
    bool direction = *at == 0xe2 && ((at[1] == 0x80 && at[2] >= 0x8b) || at[1] == 0x81);
    return overlong || outside || control || direction ? 0 : length;
}

/* One character of the source, in the form in which it is shown. */
typedef struct {
    uint32_t bytes;    /* in the source */
    int cells;         /* on the screen */
    const char *shown; /* NULL: the bytes themselves */
} Glyph;

static Glyph read_glyph(const Source *source, uint32_t at, uint32_t end)
{
    const unsigned char *byte = (const unsigned char *)source->text + at;
    if (*byte == '\t') return (Glyph){1, TAB_WIDTH, "    "};
    if (*byte >= ' ' && *byte < 0x7f) return (Glyph){1, 1, NULL};
    uint32_t length = utf8_length(byte, (const unsigned char *)source->text + end);
    return length ? (Glyph){length, 1, NULL} : (Glyph){1, 1, "?"};
}

/* Steps back over at most `limit` bytes, not into the middle of a character. */
static uint32_t clip_begin(const Source *source, uint32_t begin, uint32_t at)
{
    if (at - begin <= SHOWN_BEFORE) return begin;
    uint32_t clipped = at - SHOWN_BEFORE;
    for (int i = 0; i < 3 && (source->text[clipped] & 0xc0) == 0x80; i++) clipped++;
    return clipped;
}

static uint32_t clip_end(const Source *source, uint32_t end, uint32_t at)
{
    if (end - at <= SHOWN_BEHIND) return end;
    uint32_t clipped = at + SHOWN_BEHIND;
    for (int i = 0; i < 3 && (source->text[clipped] & 0xc0) == 0x80; i++) clipped--;
    return clipped;
}

static void show_line(Text *out, const Source *source, uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to;) {
        Glyph glyph = read_glyph(source, at, to);
        if (glyph.shown)
            text_put(out, glyph.shown, strlen(glyph.shown));
        else
            text_put(out, source->text + at, glyph.bytes);
        at += glyph.bytes;
    }
}

/* Blanks up to `begin`, then `^~~~` under the cells of [begin, end). */
static void show_caret(Text *out, const Source *source, uint32_t from, uint32_t begin, uint32_t end)
{
    uint32_t at = from;
    while (at < begin) {
        Glyph glyph = read_glyph(source, at, begin);
        text_print(out, "%*s", glyph.cells, "");
        at += glyph.bytes;
    }
    text_put(out, "^", 1);
    for (int first = 1; at < end; first = 0) {
        Glyph glyph = read_glyph(source, at, end);
        for (int cell = first; cell < glyph.cells; cell++) text_put(out, "~", 1);
        at += glyph.bytes;
    }
}

static void show_place(Text *out, Span at)
{
    const Source *source = at.source;
    uint32_t begin = clamp_offset(source, at.begin), end = clamp_offset(source, at.end);
    uint32_t first = line_begin(source, begin), last = line_end(source, begin);
    if (last < begin) last = begin;
    end = end < begin ? begin : end > last ? last : end;
    uint32_t from = clip_begin(source, first, begin), to = clip_end(source, last, begin);
    end = end < to ? end : to;
    const char *before = from > first ? "..." : "", *behind = to < last ? "..." : "";
    text_print(out, "  %s", before);
    show_line(out, source, from, to);
    text_print(out, "%s\n  %*s", behind, (int)strlen(before), "");
    show_caret(out, source, from, begin, end);
    text_put(out, "\n", 1);
}

static const char *format_report(Arena *arena, Span at, const char *kind, const char *hint,
                                 const char *message)
{
    Text *out = text_new(arena);
    const bool placed = at.source && at.begin <= at.end;
    if (placed) {
        int line_number, column;
        source_place(at.source, at.begin, &line_number, &column);
        text_print(out, "%s:%d:%d: ", at.source->name, line_number, column);
    } else if (at.source) {
        text_print(out, "%s: ", at.source->name);
    }
    text_print(out, "%s: %s\n", kind, message);
    if (placed) show_place(out, at);
    if (hint) text_print(out, "  hint: %s\n", hint);
    return text_string(out);
}

/* Several passes may find the same error; each report is made once. */
static bool is_reported(const Diagnostics *d, const char *report)
{
    return d->text && strstr(text_string(d->text), report);
}

static void add_report(Diagnostics *d, const char *report)
{
    if (!d->text) d->text = text_new(d->arena);
    text_put(d->text, report, strlen(report));
}

void report_error(Diagnostics *d, Span at, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(d->arena, format, args);
    va_end(args);
    const char *report = format_report(d->arena, at, "error", hint, message);
    if (is_reported(d, report)) return;
    if (d->errors == MAX_ERRORS) {
        add_report(d, "too many errors, no more are shown\n");
        stop(d);
    }
    add_report(d, report);
    d->errors++;
}

void report_warning(Diagnostics *d, Span at, const char *hint, const char *format, ...)
{
    if (d->warnings > MAX_WARNINGS) return;
    va_list args;
    va_start(args, format);
    const char *message = arena_vformat(d->arena, format, args);
    va_end(args);
    const char *report = d->warnings == MAX_WARNINGS
                             ? "warning: too many warnings, no more are shown\n"
                             : format_report(d->arena, at, "warning", hint, message);
    if (is_reported(d, report)) return;
    add_report(d, report);
    d->warnings++;
}

enum { LONGEST_NAME = 63, MOST_NAMES = 50 };

/* Damerau-Levenshtein (adjacent swaps count once) on names of at most LONGEST_NAME bytes.
 */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][LONGEST_NAME + 1];
    int m = (int)strlen(a), n = (int)strlen(b);
    for (int j = 0; j <= n; j++) rows[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && two_above[j - 2] + 1 < best) best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[m % 3][n];
}

/* How many letters may differ between a name and its suggestion. Short names are close to too many
 * others; a name of one letter has no suggestion. */
static int letters_that_may_differ(size_t length, size_t other)
{
    size_t longer = other > length ? other : length, shorter = other > length ? length : other;
    return length < 2 ? 0 : longer < 5 || shorter < 4 ? 1 : longer < 9 ? 2 : 3;
}

const char *nearest_name(const char *name, const char *const *candidates, int count)
{
    size_t length = strlen(name);
    if (length > LONGEST_NAME) return NULL;
    const char *nearest = NULL;
    int least = LONGEST_NAME;
    for (int i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > LONGEST_NAME || strcmp(candidates[i], name) == 0) continue;
        if (strcasecmp(candidates[i], name) == 0) return candidates[i];
        int distance = edit_distance(name, candidates[i]);
        if (distance < least && distance <= letters_that_may_differ(length, other)) {
            nearest = candidates[i];
            least = distance;
        }
    }
    return nearest;
}

const char *hint_name(Arena *arena, const char *name, const char *const *candidates, int count)
{
    const char *near = nearest_name(name, candidates, count);
    return near ? arena_format(arena, "did you mean %s?", near)
                : list_names(arena, candidates, count);
}

const char *list_names(Arena *arena, const char *const *candidates, int count)
{
    if (count == 0) return "there is none";
    Text *list = text_new(arena);
    const int shown = count <= MOST_NAMES ? count : MOST_NAMES;
    for (int i = 0; i < shown; i++) text_print(list, "%s%s", i ? ", " : "", candidates[i]);
    if (shown < count) text_print(list, " and %d more", count - shown);
    return arena_format(arena, "there %s %s", count == 1 ? "is" : "are", text_string(list));
}
