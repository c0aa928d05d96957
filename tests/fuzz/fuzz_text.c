/* fuzz_text.c: libFuzzer target for the front end.
 *
 * Any bytes must be parsed or refused without a crash. What is valid must format to a
 * text that parses to the same tree and formats to itself. */
#include "frontend/ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *format_text(Arena *arena, Diagnostics *d, const Source *source)
{
    Text *out = text_new(arena);
    format_source(out, arena, d, source);
    return text_string(out);
}

/* Without its imports' trees: the texts differ only in their own. */
static const char *tree_of(Arena *arena, Diagnostics *d, const Source *source)
{
    Text *out = text_new(arena);
    Module *program = parse_program(arena, d, source, NULL);
    program->next = NULL;
    print_ast(out, program);
    return text_string(out);
}

static void demand(bool condition, const char *what, const char *text)
{
    if (condition) return;
    fprintf(stderr, "%s:\n%s\n", what, text);
    abort();
}

static void check_formatting(Arena *arena, Diagnostics *d, const Source *source)
{
    const char *tree = tree_of(arena, d, source);
    if (d->errors) return;
    const char *once = format_text(arena, d, source);
    Source formatted = {.name = "formatted", .text = once, .length = strlen(once)};
    const char *twice = format_text(arena, d, &formatted);
    demand(!d->errors, "formatting broke the program", once);
    demand(strcmp(once, twice) == 0, "formatting is not idempotent", once);
    demand(strcmp(tree, tree_of(arena, d, &formatted)) == 0, "formatting changed the tree", once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    jmp_buf escape;
    Diagnostics d = {.arena = arena, .text = text_new(arena), .escape = &escape};
    Source source = {
        .name = "fuzz", .text = arena_copy(arena, (const char *)data, size), .length = size};
    if (!setjmp(escape)) check_formatting(arena, &d, &source);
    arena_free(arena);
    return 0;
}
