/* terminal.c: see terminal.h. */
#include "cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool has_colour(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDERR_FILENO) && !(no && *no);
}

static void paint(const char *colour, const char *text, size_t length)
{
    if (has_colour())
        fprintf(stderr, "\033[%sm%.*s\033[0m", colour, (int)length, text);
    else
        fwrite(text, 1, length, stderr);
}

void complain(const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
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
    fputs("fusec: ", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Colours the first of the compiler's own words in a line. */
static void print_line(const char *text, size_t length)
{
    static const struct {
        const char *word, *colour;
    } words[] = {{"error:", "1;31"}, {"warning:", "1;35"}, {"hint:", "36"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = memmem(text, length, words[i].word, strlen(words[i].word));
        if (!at) continue;
        size_t size = strlen(words[i].word);
        fwrite(text, 1, (size_t)(at - text), stderr);
        paint(words[i].colour, at, size);
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

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Progress progress_begin(const char *what)
{
    return (Progress){what, now(), 0};
}

void progress_step(void *progress, double fraction)
{
    enum { WIDTH = 30 };
    Progress *p = progress;
    double time = now();
    if (time - p->start < 1 || time - p->shown < 0.1 || !isatty(STDERR_FILENO)) return;
    p->shown = time;
    int full = (int)(fraction * WIDTH);
    fprintf(stderr, "\r%s [%.*s%*s] %3.0f%%", p->what, full, "##############################",
            WIDTH - full, "", 100 * fraction);
}

void progress_end(Progress *p)
{
    if (p->shown > 0) fputs("\r\033[K", stderr);
}

void progress_wait(const char *what)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K%s", what ? what : "");
}
