/* prelude.c: picks the sections of prelude.cuh that a text mentions. A section begins at
 * a line
 * `//@ names`; it is wanted if the text, or a wanted section, mentions one of its names.
 * One at a line `//@ A+B` joins two sections: it is wanted if both A and B are.
 */
#include "prelude.h"

#include <ctype.h>
#include <string.h>

static const char prelude_text[] = {
#include "prelude.inc"
};

enum { MAX_SECTIONS = 256 };

typedef struct {
    const char *names; /* the rest of the `//@` line */
    size_t names_length;
    const char *text;
    size_t length;
    bool wanted;
} Section;

static int find_sections(Section sections[MAX_SECTIONS])
{
    int count = 0;
    for (const char *at = strstr(prelude_text, "\n//@ "); at && count < MAX_SECTIONS;
         count++) {
        Section *s = &sections[count];
        s->names = at + 5;
        s->names_length = strcspn(s->names, "\n");
        s->text = s->names + s->names_length + 1;
        at = strstr(s->text - 1, "\n//@ ");
        s->length = at ? (size_t)(at + 1 - s->text) : strlen(s->text);
    }
    return count;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether a word is one of the space-separated names. */
static bool has_name(const char *names, size_t length, const char *word,
                     size_t word_length)
{
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && names[end] != ' ') end++;
        if (end - i == word_length && !memcmp(names + i, word, word_length)) return true;
        i = end + 1;
    }
    return false;
}

/* The length of the word at `at`, comments skipped as one long non-word. */
static size_t next_word(const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && !is_word(*p)) {
        if (p[0] == '/' && p + 1 < end && p[1] == '/')
            while (p < end && *p != '\n') p++;
        else
            p++;
    }
    *at = p;
    while (p < end && is_word(*p)) p++;
    return (size_t)(p - *at);
}

static void want_names(Section *sections, int count, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    for (size_t n; (n = next_word(&at, end)) > 0; at += n)
        for (int i = 0; i < count; i++) {
            Section *s = &sections[i];
            if (s->wanted || !has_name(s->names, s->names_length, at, n)) continue;
            s->wanted = true;
            want_names(sections, count, s->text, s->length);
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
static void want_joints(Section *sections, int count)
{
    for (int i = 0; i < count; i++) {
        Section *s = &sections[i];
        size_t plus = strcspn(s->names, "+\n");
        bool joint = plus < s->names_length && !s->wanted;
        if (!joint || !is_wanted_name(sections, count, s->names, plus) ||
            !is_wanted_name(sections, count, s->names + plus + 1,
                            s->names_length - plus - 1))
            continue;
        s->wanted = true;
        want_names(sections, count, s->text, s->length);
    }
}

bool is_prelude_name(const char *name)
{
    Section sections[MAX_SECTIONS];
    int count = find_sections(sections);
    for (int i = 0; i < count; i++)
        if (has_name(sections[i].names, sections[i].names_length, name, strlen(name)))
            return true;
    return false;
}

void emit_prelude(Text *out, const char *body)
{
    Section sections[MAX_SECTIONS] = {0};
    int count = find_sections(sections);
    want_names(sections, count, body, strlen(body));
    want_joints(sections, count);
    text_print(out, "#ifndef FUSEC_SIM    // the simulator brings helpers of its own\n\n");
    for (int i = 0; i < count; i++)
        if (sections[i].wanted) text_put(out, sections[i].text, sections[i].length);
    text_print(out, "#endif\n");
}
