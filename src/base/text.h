/* base/text.h: a growing text with indentation, so that a generator reads like what it prints:
 *
 *     block(w, "for (int t = 0; t < tiles; t++)") {
 *         line(w, "sum += x[t];");
 *     }
 */
#ifndef FUSEC_TEXT_H
#define FUSEC_TEXT_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct {
    Arena *arena;
    char *data; /* always NUL-terminated once anything was printed */
    size_t length, capacity;
    int indent; /* levels of four spaces that line() starts with */
} Text;

Text *text_new(Arena *arena);
const char *text_string(const Text *text); /* never NULL */

void text_put(Text *text, const char *bytes, size_t length);
void text_print(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprint(Text *text, const char *format, va_list args);

enum { NUMBER_DIGITS = 40 };
/* The fewest digits that read back as the same value (`single`: the same f32), as %g writes them.
 */
void shortest_digits(char digits[NUMBER_DIGITS], double value, bool single);

/* As a JSON string, in its quotes. */
void text_quote(Text *text, const char *string);
/* `, "key": value` of a JSON object; null where the value is negative: it is not known. */
void text_known(Text *text, const char *key, int value);

/* One indented line; an empty format prints an empty line. */
void line(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An empty line. */
void blank_line(Text *text);

/* `head {`, the indented body, `}`. */
bool block_open(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool block_close(Text *text);
#define BLOCK_NAME(number) block_##number
#define BLOCK_LOOP(name, text, ...)                                                                \
    for (bool name = block_open((text), __VA_ARGS__); name; name = block_close(text))
#define BLOCK_AT(number, ...) BLOCK_LOOP(BLOCK_NAME(number), __VA_ARGS__)
#define block(...) BLOCK_AT(__LINE__, __VA_ARGS__)

#endif
