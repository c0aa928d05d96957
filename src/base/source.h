/* base/source.h: source files, places in them, and diagnostics that point at those places.
 *
 * Line and column are computed only when something is reported. The reports are collected as text:
 * `file:line:col: error: …`, the source line, a caret range, at most one `hint:`. */
#ifndef FUSEC_SOURCE_H
#define FUSEC_SOURCE_H

#include "base/text.h"

#include <setjmp.h>
#include <stdint.h>

typedef struct {
    const char *name; /* as printed before `:line:col` */
    const char *text; /* NUL behind the last byte (the scanner's sentinel) */
    size_t length;
    /* The beginning of each line (index_lines); NULL: places are searched from the beginning. */
    const uint32_t *lines;
    int line_count;
} Source;

typedef struct {
    const Source *source; /* NULL: no place */
    /* Byte offsets, half open; end < begin: the file as a whole (whole_file). */
    uint32_t begin, end;
} Span;

enum { MAX_ERRORS = 10 };

typedef struct {
    Arena *arena;
    Text *text; /* what was reported so far */
    int errors, warnings;
    jmp_buf *escape; /* the target of stop(): the one setjmp of compile.c */
    bool machine;    /* the error is the machine's (memory, a file), not the program's */
} Diagnostics;

/* Reports an error or a warning. `hint` may be NULL. After MAX_ERRORS errors it stops for good. */
void report_error(Diagnostics *d, Span at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void report_warning(Diagnostics *d, Span at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Ends the compilation after something was reported. */
_Noreturn void stop(Diagnostics *d);
/* Ends it if any error was reported. */
void stop_on_errors(Diagnostics *d);

Span span_join(Span first, Span last);
/* The place of an error of a request, not of the program: `file: error: …`. */
Span whole_file(const Source *source);
/* Finds the lines of a source, to look up many places in it. */
void index_lines(Arena *arena, Source *source);
/* 1-based line and column (in bytes) of an offset. */
void source_place(const Source *source, uint32_t offset, int *line_number, int *column);
/* The candidate that is `name` in other capitals, else the nearest in edit distance if it is near
 * enough for a hint, else NULL. */
const char *nearest_name(const char *name, const char *const *candidates, int count);
/* "did you mean dx?"; where no name is near, the list of names: "there are dx, dgamma". */
const char *hint_name(Arena *arena, const char *name, const char *const *candidates, int count);
/* "there are a, b". */
const char *list_names(Arena *arena, const char *const *candidates, int count);

#endif
