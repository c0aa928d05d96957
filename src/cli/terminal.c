/* terminal.c: see terminal.h. */
#include "cli/terminal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Colour colour = COLOUR_AUTO;
static Reports *reports; /* where reports go; NULL: they are printed */

void use_colour(Colour when)
{
    colour = when;
}

static bool has_colour(void)
{
    const char *no = getenv("NO_COLOR");
    if (colour != COLOUR_AUTO) return colour == COLOUR_ALWAYS;
    return isatty(STDERR_FILENO) && !(no && *no);
}

/* ---- reports as JSON ---- */

void collect_reports(Reports *to)
{
    reports = to;
}

static void put_part(const char *key, const char *text, size_t length)
{
    text_print(reports->json, "\"%s\": ", key);
    if (text)
        text_quote(reports->json, arena_copy(reports->json->arena, text, length));
    else
        text_print(reports->json, "null");
}

/* Takes the number behind the last colon of `place` off it; 0: there is none. */
static int take_number(const char *place, size_t *length)
{
    size_t digits = 0;
    while (digits < *length && isdigit((unsigned char)place[*length - 1 - digits])) digits++;
    if (!digits || digits == *length || place[*length - 1 - digits] != ':') return 0;
    const char *number = place + *length - digits;
    *length -= digits + 1;
    return atoi(number);
}

/* FILE:LINE:COLUMN, of which the numbers may be missing. */
static void put_place(const char *place, size_t length)
{
    const int column = take_number(place, &length), number = take_number(place, &length);
    put_part("file", length ? place : NULL, length);
    text_print(reports->json,
               number ? ", \"line\": %d, \"column\": %d" : ", \"line\": null, \"column\": null",
               number, column);
}

static void collect(const char *severity, const char *place, size_t place_length,
                    const char *message, size_t length, const char *hint)
{
    text_print(reports->json, "%s\n    {", reports->json->length ? "," : "");
    put_part("severity", severity, strlen(severity));
    text_print(reports->json, ", ");
    put_place(place, place_length);
    text_print(reports->json, ", ");
    put_part("message", message, length);
    text_print(reports->json, ", ");
    put_part("hint", hint, hint ? strcspn(hint, "\n") : 0);
    text_print(reports->json, "}");
}

/* A report of the compiler: `PLACE: error: message`, the line of the source, a hint. */
static void collect_report(const char *text)
{
    const size_t length = strcspn(text, "\n");
    const char *error = memmem(text, length, ": error: ", 9);
    const char *warning = memmem(text, length, ": warning: ", 11);
    const bool warns = warning && (!error || warning < error);
    const char *at = warns ? warning : error;
    const char *message = at ? at + (warns ? 11 : 9) : text, *hint = strstr(text, "\nhint: ");
    collect(warns ? "warning" : "error", text, at ? (size_t)(at - text) : 0, message,
            length - (size_t)(message - text), hint ? hint + 7 : NULL);
}

/* ---- reports for people ---- */

static void paint(const char *code, const char *text, size_t length)
{
    if (has_colour())
        fprintf(stderr, "\033[%sm%.*s\033[0m", code, (int)length, text);
    else
        fwrite(text, 1, length, stderr);
}

void complain(const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (reports) {
        Text *message = text_new(reports->json->arena);
        text_vprint(message, format, args);
        va_end(args);
        text_print(reports->text, "fusec: error: %s\n", text_string(message));
        collect("error", "", 0, text_string(message), message->length, hint);
        return;
    }
    progress_hide();
    fputs("fusec: ", stderr);
    paint("1;31", "error:", 6);
    fputc(' ', stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    if (!hint) return;
    paint("36", "hint:", 5);
    fprintf(stderr, " %s\n", hint);
}

void remark(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    progress_hide();
    fputs("fusec: ", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Colours the first of the compiler's own words in a line. */
static void print_line(const char *text, size_t length)
{
    static const struct {
        const char *word, *code;
    } words[] = {{"error:", "1;31"}, {"warning:", "1;35"}, {"hint:", "36"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = memmem(text, length, words[i].word, strlen(words[i].word));
        if (!at) continue;
        size_t size = strlen(words[i].word);
        fwrite(text, 1, (size_t)(at - text), stderr);
        paint(words[i].code, at, size);
        fwrite(at + size, 1, length - size - (size_t)(at - text), stderr);
        return;
    }
    fwrite(text, 1, length, stderr);
}

bool begins_report(const char *text)
{
    size_t length = strcspn(text, "\n");
    return memmem(text, length, ": error: ", 9) || memmem(text, length, ": warning: ", 11);
}

void print_diagnostics(const char *text)
{
    if (reports) {
        collect_report(text);
        text_print(reports->text, "%s\n", text);
        return;
    }
    progress_hide();
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (has_colour())
            print_line(text, length);
        else
            fwrite(text, 1, length, stderr);
        fputc('\n', stderr); /* messages of the library do not end with one */
        text += length + (text[length] != 0);
    }
}
