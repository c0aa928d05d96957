/* terminal.h: output to stderr: diagnostics and remarks. Colour appears on a terminal, unless
 * --color or NO_COLOR says otherwise. */
#ifndef FUSEC_CLI_TERMINAL_H
#define FUSEC_CLI_TERMINAL_H

#include "base/text.h"
#include "cli/progress.h"

#include <stdbool.h>

typedef enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER, COLOUR_COUNT } Colour;
void use_colour(Colour when);
/* Errors and diagnostics: objects of a JSON array with commas between, and the same as text. */
typedef struct {
    Text *json, *text;
} Reports;
/* From now on they go there and not to stderr; NULL: to stderr again. */
void collect_reports(Reports *to);

/* "fusec: error: ..." and a hint (NULL: none). */
void complain(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "fusec: ..." */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether a text's first line is one of the compiler's diagnostics, `PLACE: error: ...`. */
bool begins_report(const char *text);
/* The compiler's diagnostics; one of them where reports are collected. */
void print_diagnostics(const char *text);

#endif
