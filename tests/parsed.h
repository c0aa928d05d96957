/* parsed.h: what the suites of the front end begin with: a text, parsed. */
#ifndef FUSEC_TESTS_PARSED_H
#define FUSEC_TESTS_PARSED_H

#include "frontend/ast.h"
#include "frontend/import.h"

typedef struct {
    Arena *arena;
    Diagnostics d;
    Module *program;
    const char *tree, *formatted;
} Parsed;

void parse_with(Parsed *p, Source text, const Imports *imports);
/* The same without imports, of a file called t.fuse. Free it with arena_free(p.arena). */
Parsed parse_bytes(const char *text, size_t length);
Parsed parse_text(const char *text);

#endif
