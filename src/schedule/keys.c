/* schedule/keys.c: parses and prints the texts of --schedule. */
#include "schedule/keys.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBER = 1 << 20 };

const KeyInfo key_info[KEYS] = {
#define KEY(name, plain, value, refusal, meaning) {#name, false, plain, MOST_NUMBER, "", meaning},
#define EXACT(name, plain, most, words, value, meaning) {#name, true, plain, most, words, meaning},
#include "schedule/keys.def"
};

static const char *const family_names[] = {"pointwise",        "row",     "grid-stride",
                                           "warp-specialized", "cluster", "column"};
enum { FAMILIES = sizeof family_names / sizeof *family_names };

const char *const *family_words(int *count)
{
    *count = FAMILIES;
    return family_names;
}

const char *reserve_text(Arena *arena, const Kernel *k)
{
    return k->limit_ctas == 1
               ? "reserved only to keep a second CTA off the SM"
               : arena_format(arena, "reserved only to keep an SM to %d CTAs", k->limit_ctas);
}

const char *family_name(Family family)
{
    static const char *const names[] = {"pointwise", "row",    "grid-stride", "warp-specialized",
                                        "column",    "finish", "clear"};
    return names[family];
}

/* ---- parsing ---- */

/* "did you mean 'stages'?", or all names that there are, of which the first `told` are listed. */
static const char *suggest_name(Arena *arena, const char *name, const char *const *names, int count,
                                int told)
{
    const char *near = nearest_name(name, names, count);
    if (near) return arena_format(arena, "did you mean '%s'?", near);
    Text *all = text_new(arena);
    for (int i = 0; i < told; i++) text_print(all, "%s%s", i ? ", " : "", names[i]);
    return text_string(all);
}

/* The keys that every schedule may have come first. */
static const char *suggest_key(Arena *arena, const char *name)
{
    const char *names[KEYS];
    int count = 0, told;
    for (int i = 0; i < KEYS; i++)
        if (!key_info[i].exact) names[count++] = key_info[i].name;
    told = count;
    for (int i = 0; i < KEYS; i++)
        if (key_info[i].exact) names[count++] = key_info[i].name;
    return suggest_name(arena, name, names, count, told);
}

static Key find_key(const char *name)
{
    int key = 0;
    while (key < KEYS && strcmp(key_info[key].name, name)) key++;
    return (Key)key;
}

/* The place of a word in a list, from 1 on; 0: it is not there. */
static int find_word(const char *words, const char *word, size_t length)
{
    for (int i = 1; *words; i++) {
        size_t here = strcspn(words, " ");
        if (here == length && !memcmp(words, word, length)) return i;
        words += here + (words[here] == ' ');
    }
    return 0;
}

/* The value behind `=`; 0: it is none. */
static int parse_value(const KeyInfo *key, const char *text)
{
    size_t length = strcspn(text, ",");
    char *end;
    long number = strtol(text, &end, 10);
    int word = find_word(key->words, text, length);
    if (word) return word;
    return end == text + length && number >= 1 && number <= key->most ? (int)number : 0;
}

static const char *wrong_value(Arena *arena, const KeyInfo *key, const char *text)
{
    if (*key->words)
        return arena_format(arena, "%s: '%s' is not one of: %s (%s)", key->name, text, key->words,
                            key->meaning);
    return arena_format(arena, "'%s=%s' is not key=NUMBER with a number from 1 to %d", key->name,
                        text, key->most);
}

/* One key=value; its length. */
static const char *parse_key(Arena *arena, const char *text, Schedule *s)
{
    size_t length = strcspn(text, "=");
    if (!text[length])
        return arena_format(arena, "'%s' is not key=NUMBER with a number from 1 to %d", text,
                            MOST_NUMBER);
    const char *name = arena_copy(arena, text, length);
    Key key = find_key(name);
    if (key == KEYS)
        return arena_format(arena, "%s has no key '%s' (%s)", family_name(s->family), name,
                            suggest_key(arena, name));
    const char *value = text + length + 1;
    if (s->at[key]) return arena_format(arena, "'%s' is given twice", name);
    s->at[key] = parse_value(&key_info[key], value);
    return s->at[key] ? NULL : wrong_value(arena, &key_info[key], value);
}

/* In a complete schedule a key that is not given has its plain value. */
static void complete(Schedule *s)
{
    for (int i = 0; i < KEYS; i++)
        if (s->exact && !s->at[i]) s->at[i] = key_info[i].plain;
    if (s->reuse && !s->stages) s->stages = 1;
}

static const char *parse_family(Arena *arena, const char *name, Schedule *s)
{
    s->any = true;
    for (int family = 0; family < FAMILY_FINISH; family++)
        if (!strcmp(family_name((Family)family), name)) {
            s->family = (Family)family;
            return NULL;
        }
    if (strchr(name, '='))
        return arena_format(arena,
                            "no family stands before the keys: write row:%s, or another of %s",
                            name, suggest_name(arena, "", family_names, FAMILIES, FAMILIES));
    return arena_format(arena, "there is no family '%s' (%s)", name,
                        suggest_name(arena, name, family_names, FAMILIES, FAMILIES));
}

/* Numbers whose product later stages could not count; a CTA has far fewer threads. */
static const char *uncountable_threads(const Schedule *s)
{
    const int factors[] = {s->threads, s->rows, s->groups};
    int64_t threads = 1;
    for (int i = 0; i < 3 && threads <= MOST_NUMBER; i++) threads *= factors[i] ? factors[i] : 1;
    return threads <= MOST_NUMBER
               ? NULL
               : "threads: a CTA has up to 1024, of all rows and groups together";
}

static const char *parse_schedule(Arena *arena, const char *text, Schedule *s)
{
    if (strchr(text, '[') || strstr(text, ".."))
        return "[...] and 2..4 stand for several schedules in a list of candidates: write one of "
               "their values";
    size_t length = strcspn(text, ":");
    const char *problem = parse_family(arena, arena_copy(arena, text, length), s);
    for (const char *at = text + length; *at && !problem; at += 1 + strcspn(at + 1, ",")) {
        if (!at[1])
            return arena_format(arena,
                                "'%s' ends without a key: key=NUMBER with a number from 1 to %d",
                                text, MOST_NUMBER);
        problem = parse_key(arena, arena_copy(arena, at + 1, strcspn(at + 1, ",")), s);
    }
    complete(s);
    return problem ? problem : uncountable_threads(s);
}

const char *parse_schedules(Arena *arena, const char *text, Schedule **schedules, int *count)
{
    LIST(Schedule) list = {0};
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "+");
        Schedule *s = list_push(arena, &list);
        *s = (Schedule){0};
        const char *problem = parse_schedule(arena, arena_copy(arena, at, length), s);
        if (problem) return problem;
        at += length;
        if (!*at) break;
    }
    *schedules = list.data;
    *count = list.count;
    for (int i = 0; i < list.count && list.count > 1; i++)
        if (!list.data[i].exact) return "'+' joins complete schedules, each with exact=1";
    return NULL;
}

/* ---- printing ---- */

const char *key_value(Arena *arena, Key key, int value)
{
    const char *words = key_info[key].words;
    if (!*words) return arena_format(arena, "%d", value);
    while (--value) words += strcspn(words, " ") + 1;
    return arena_copy(arena, words, strcspn(words, " "));
}

const char *schedule_text(Arena *arena, const Schedule *s)
{
    Text *text = text_new(arena);
    text_print(text, "%s", family_name(s->family));
    for (int i = 0, told = 0; i < KEYS; i++) {
        const KeyInfo *key = &key_info[i];
        if (!s->at[i] || (s->exact && s->at[i] == key->plain)) continue;
        text_print(text, "%c%s=%s", told++ ? ',' : ':', key->name,
                   key_value(arena, (Key)i, s->at[i]));
    }
    return text_string(text);
}
