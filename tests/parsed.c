/* parsed.c: texts parsed for the suites of the front end. */
#include "parsed.h"

#include <string.h>

void parse_with(Parsed *p, Source text, const Imports *imports)
{
    jmp_buf escape;
    *p = (Parsed){.arena = arena_new(), .tree = "", .formatted = ""};
    Source *source = NEW(p->arena, Source);
    *source = text;
    source->name = arena_copy(p->arena, text.name, strlen(text.name));
    p->d = (Diagnostics){.arena = p->arena, .text = text_new(p->arena), .escape = &escape};
    Text *tree = text_new(p->arena), *formatted = text_new(p->arena);
    if (!setjmp(escape)) {
        p->program = parse_program(p->arena, &p->d, source, imports);
        print_ast(tree, p->program);
        if (!p->d.errors) format_source(formatted, p->arena, &p->d, source);
    }
    p->tree = text_string(tree);
    p->formatted = text_string(formatted);
    p->d.escape = NULL;
}

Parsed parse_bytes(const char *text, size_t length)
{
    Parsed p;
    parse_with(&p, (Source){.name = "t.fuse", .text = text, .length = length}, NULL);
    return p;
}

Parsed parse_text(const char *text)
{
    return parse_bytes(text, strlen(text));
}
