/* base/prelude.c: picks the sections of codegen/prelude/ that a text mentions. A section begins at
 * a line `//@ names`; it is wanted if the text, or a wanted section, mentions one of its names. A
 * section at a line `//@ A+B` joins two others: it is wanted if both A and B are. A line that ends
 * with `//? name` is printed where that section is wanted, and does not make it wanted. */
#include "base/prelude.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char prelude_text[] = {
#include "prelude.inc"
};

static const char mark[] = "//@ ", optional[] = "    //? ";

enum { MAX_SECTIONS = 256, MAX_NAMES = 512 };

typedef struct {
    const char *names; /* the rest of the `//@` line */
    size_t names_length;
    const char *text;
    size_t length;
    bool wanted;
} Section;

/* Finds sections line by line with memchr, because a sanitizer's strstr reads the whole rest of a
 * text each time. */
static int find_sections(Section sections[MAX_SECTIONS])
{
    const char *const text_end = prelude_text + sizeof prelude_text - 1;
    int count = 0;
    for (const char *line = prelude_text, *end;
         (end = memchr(line, '\n', (size_t)(text_end - line))); line = end + 1) {
        if (*line == *mark && strncmp(line, mark, sizeof mark - 1) == 0 && count < MAX_SECTIONS)
            sections[count++] = (Section){.names = line + sizeof mark - 1,
                                          .names_length = (size_t)(end - line) - (sizeof mark - 1),
                                          .text = end + 1};
        else if (count > 0)
            sections[count - 1].length = (size_t)(end + 1 - sections[count - 1].text);
    }
    return count;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether a word is one of the space-separated names. */
static bool has_name(const char *names, size_t length, const char *word, size_t word_length)
{
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && names[end] != ' ') end++;
        if (end - i == word_length && !memcmp(names + i, word, word_length)) return true;
        i = end + 1;
    }
    return false;
}

/* The length of the word at `at`, comments and strings skipped as one long non-word. */
static size_t next_word(const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && !is_word(*p)) {
        const char first = *p++;
        if (first == '/' && p < end && *p == '/')
            while (p < end && *p != '\n') p++;
        else if (first == '"')
            while (p < end && *p++ != '"') {
            }
    }
    *at = p;
    while (p < end && is_word(*p)) p++;
    return (size_t)(p - *at);
}

typedef struct {
    const char *text;
    size_t length;
    Section *section;
} Name;

/* The names of all sections, in order, so that each of a text's many words is found quickly. */
typedef struct {
    Name names[MAX_NAMES];
    int count;
} Index;

static int order_names(const void *left, const void *right)
{
    const Name *a = left, *b = right;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return memcmp(a->text, b->text, a->length);
}

static void index_names(Index *index, Section *sections, int count)
{
    index->count = 0;
    for (int i = 0; i < count; i++) {
        const char *at = sections[i].names, *end = at + sections[i].names_length;
        for (size_t n; at < end && index->count < MAX_NAMES; at += n + 1) {
            n = strcspn(at, " \n");
            index->names[index->count++] = (Name){at, n, &sections[i]};
        }
    }
    qsort(index->names, (size_t)index->count, sizeof *index->names, order_names);
}

/* The end of the line at `at`, and the beginning of the mark that makes it optional; NULL: it has
 * none. */
static const char *end_of_line(const char *at, const char *end, const char **mark_at)
{
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) line_end = end;
    *mark_at = memmem(at, (size_t)(line_end - at), optional, sizeof optional - 1);
    return line_end;
}

static void want_names(const Index *index, const char *text, size_t length);

/* Wants what a section's lines mention, except the optional ones. */
static void want_section(const Index *index, const Section *s)
{
    const char *end = s->text + s->length, *from = s->text, *mark_at;
    for (const char *at = s->text, *line_end; at < end; at = line_end + 1) {
        line_end = end_of_line(at, end, &mark_at);
        if (!mark_at) continue;
        want_names(index, from, (size_t)(at - from));
        from = line_end;
    }
    if (from < end) want_names(index, from, (size_t)(end - from));
}

static void want_names(const Index *index, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    for (size_t n; (n = next_word(&at, end)) > 0; at += n) {
        const Name word = {at, n, NULL};
        const Name *name =
            bsearch(&word, index->names, (size_t)index->count, sizeof word, order_names);
        if (!name || name->section->wanted) continue;
        name->section->wanted = true;
        want_section(index, name->section);
    }
}

static bool is_wanted_name(const Section *sections, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (has_name(sections[i].names, sections[i].names_length, name, length))
            return sections[i].wanted;
    return false;
}

/* Wants the sections that join two wanted ones. */
static void want_joints(Section *sections, int count, const Index *index)
{
    for (int i = 0; i < count; i++) {
        Section *s = &sections[i];
        size_t plus = strcspn(s->names, "+\n");
        bool joint = plus < s->names_length && !s->wanted;
        if (!joint || !is_wanted_name(sections, count, s->names, plus) ||
            !is_wanted_name(sections, count, s->names + plus + 1, s->names_length - plus - 1))
            continue;
        s->wanted = true;
        want_section(index, s);
    }
}

bool is_prelude_name(const char *name)
{
    Section sections[MAX_SECTIONS];
    int count = find_sections(sections);
    for (int i = 0; i < count; i++)
        if (has_name(sections[i].names, sections[i].names_length, name, strlen(name))) return true;
    return false;
}

void add_prelude_names(Arena *arena, Map *names)
{
    Section sections[MAX_SECTIONS];
    int count = find_sections(sections);
    for (int i = 0; i < count; i++) {
        const char *at = sections[i].names, *end = at + sections[i].names_length;
        for (size_t n; at < end; at += n + 1) {
            n = strcspn(at, " \n");
            map_add(arena, names, at, n, 0);
        }
    }
}

/* A section without the optional lines whose section is not wanted. */
static void print_section(Text *out, const Section *sections, int count, const Section *s)
{
    const char *end = s->text + s->length, *mark_at;
    for (const char *at = s->text, *line_end; at < end; at = line_end + 1) {
        line_end = end_of_line(at, end, &mark_at);
        const char *name = mark_at ? mark_at + sizeof optional - 1 : NULL;
        if (mark_at && !is_wanted_name(sections, count, name, (size_t)(line_end - name))) continue;
        text_put(out, at, (size_t)((mark_at ? mark_at : line_end) - at));
        text_put(out, "\n", 1);
    }
}

void emit_prelude(Text *out, const char *body)
{
    Section sections[MAX_SECTIONS] = {0};
    int count = find_sections(sections);
    Index index;
    index_names(&index, sections, count);
    want_names(&index, body, strlen(body));
    want_joints(sections, count, &index);
    text_print(out, "#ifndef FUSEC_SIM    // the simulator brings helpers of its own\n\n");
    for (int i = 0; i < count; i++)
        if (sections[i].wanted) print_section(out, sections, count, &sections[i]);
    text_print(out, "#endif\n");
}
