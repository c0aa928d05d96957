/* frontend/index_hints.c: what to write where other languages index: x[i], x[0, 3], x[:, -1],
 * x[:, None]. */
#include "frontend/syntax.h"

#include <string.h>

enum { MOST_PICKED = 8 };

typedef struct {
    const char *text;
    int length, place; /* which item in brackets it is, of how many */
} IndexItem;

typedef struct {
    IndexItem picked[MOST_PICKED]; /* the items that are neither axis nor slice */
    int count, items;
    bool slices, broadcasts;
} Indices;

static bool is_axis(const Syntax *s, const char *name, size_t length)
{
    for (int i = 0; i < s->axes.count; i++)
        if (strlen(s->axes.data[i]) == length && !memcmp(s->axes.data[i], name, length))
            return true;
    return false;
}

static bool is_word(const IndexItem *item, const char *word)
{
    return strlen(word) == (size_t)item->length && !memcmp(item->text, word, strlen(word));
}

static void note_item(const Syntax *s, Indices *found, IndexItem item)
{
    while (item.length && strchr(" \t\r\n", item.text[item.length - 1])) item.length--;
    if (!item.length) return;
    if (is_word(&item, "None") || is_word(&item, "newaxis"))
        found->broadcasts = true;
    else if (memchr(item.text, ':', (size_t)item.length))
        found->slices = true;
    else if (!is_axis(s, item.text, (size_t)item.length) && found->count < MOST_PICKED)
        found->picked[found->count++] = item;
}

static Indices find_indices(const Syntax *s, const char *from, const char *end)
{
    Indices found = {0};
    for (; from < end; found.items++) {
        from += strspn(from, " \t\r\n");
        const char *comma = memchr(from, ',', (size_t)(end - from)), *last = comma ? comma : end;
        if (last > from) note_item(s, &found, (IndexItem){from, (int)(last - from), found.items});
        from = comma ? comma + 1 : end;
    }
    return found;
}

/* The axis that an item is about. A single number counts along the first axis, as elsewhere; a
 * single name is a label, which counts along the last. */
static const char *axis_of(const Syntax *s, const Indices *found, const IndexItem *item)
{
    const bool number = strspn(item->text, "-0123456789") >= (size_t)item->length;
    if (found->items == 1) return s->axes.data[number ? 0 : s->axes.count - 1];
    return s->axes.data[item->place < s->axes.count ? item->place : s->axes.count - 1];
}

/* "index(N) == 3", from the end of the axis where the item begins with '-', or with an axis. */
static void print_condition(const Syntax *s, Text *out, const char *axis, const IndexItem *item)
{
    size_t name = strcspn(item->text, " -+,]\n");
    const bool of_axis = name < (size_t)item->length && is_axis(s, item->text, name);
    const int skipped = of_axis ? (int)name : 0;
    text_print(out, "index(%s) == ", axis);
    if (of_axis) text_print(out, "size(%.*s)", (int)name, item->text);
    if (*item->text == '-') text_print(out, "size(%s) ", axis);
    text_print(out, "%.*s", item->length < 60 ? item->length - skipped : 0, item->text + skipped);
}

static const char *hint_for_picked(const Syntax *s, const Indices *found, const char *value)
{
    Text *out = text_new(s->arena);
    text_print(out, "pick an element by its index: sum[");
    for (int i = 0; i < found->count; i++)
        text_print(out, "%s%s", i ? ", " : "", axis_of(s, found, &found->picked[i]));
    text_print(out, "](where(");
    for (int i = 0; i < found->count; i++) {
        if (i) text_print(out, " && ");
        print_condition(s, out, axis_of(s, found, &found->picked[i]), &found->picked[i]);
    }
    text_print(out, ", %.60s, 0))", value);
    return text_string(out);
}

const char *hint_for_element(const Syntax *s, const Opened *bracket, const char *end)
{
    const char *value = bracket->before->text;
    const Indices found = find_indices(s, s->scanner.source->text + bracket->token->end, end);
    const char *axis = s->axes.count ? s->axes.data[s->axes.count - 1] : "N";
    if (found.count && s->axes.count) return hint_for_picked(s, &found, value);
    if (found.broadcasts)
        return arena_format(s->arena,
                            "values are broadcast by the names of their axes: write %.60s", value);
    if (found.slices)
        return arena_format(s->arena,
                            "select a part of an axis by a mask: where(index(%s) < 4, %.60s, 0)",
                            axis, value);
    return arena_format(
        s->arena,
        "write the value without its axes: %.60s; a reduction is called, as in sum[%s](x)", value,
        axis);
}
