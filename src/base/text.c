/* base/text.c: the growing text that every printer of the compiler writes into.
 *
 * It lives in an arena and doubles as it grows, so a text of n bytes takes at most 4n. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Text *text_new(Arena *arena)
{
    Text *text = NEW(arena, Text);
    text->arena = arena;
    return text;
}

const char *text_string(const Text *text)
{
    return text->data ? text->data : "";
}

/* Makes room for `more` bytes and the final NUL. */
static void reserve(Text *text, size_t more)
{
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) return;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity < needed) capacity *= 2;
    char *data = arena_alloc(text->arena, capacity);
    if (text->length) memcpy(data, text->data, text->length);
    text->data = data;
    text->capacity = capacity;
}

void text_put(Text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void text_vprint(Text *text, const char *format, va_list args)
{
    arena_poll(text->arena);
    va_list again;
    va_copy(again, args);
    reserve(text, 128);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->data + text->length, room, format, args);
    if (length > 0 && (size_t)length >= room) {
        reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    text->length += length > 0 ? (size_t)length : 0;
    text->data[text->length] = 0;
}

void text_print(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vprint(text, format, args);
    va_end(args);
}

static void put_indent(Text *text)
{
    for (int level = 0; level < text->indent; level++) text_put(text, "    ", 4);
}

static void vline(Text *text, const char *format, va_list args)
{
    if (*format) put_indent(text);
    text_vprint(text, format, args);
}

void line(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vline(text, format, args);
    va_end(args);
    text_put(text, "\n", 1);
}

void shortest_digits(char digits[NUMBER_DIGITS], double value, bool single)
{
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, NUMBER_DIGITS, "%.*g", precision, value);
        const double back = strtod(digits, NULL);
        if (single ? (float)back == (float)value : back == value) return;
    }
}

void text_quote(Text *text, const char *string)
{
    text_print(text, "\"");
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\')
            text_print(text, "\\%c", c);
        else if (c < 0x20)
            text_print(text, "\\u%04x", c);
        else
            text_put(text, string, 1);
    }
    text_print(text, "\"");
}

void blank_line(Text *text)
{
    text_put(text, "\n", 1);
}

bool block_open(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vline(text, format, args);
    va_end(args);
    text_put(text, " {\n", 3);
    text->indent++;
    return true;
}

bool block_close(Text *text)
{
    text->indent--;
    line(text, "}");
    return false;
}

void text_known(Text *text, const char *key, int value)
{
    if (value < 0)
        text_print(text, ", \"%s\": null", key);
    else
        text_print(text, ", \"%s\": %d", key, value);
}
