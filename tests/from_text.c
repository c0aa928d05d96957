/* from_text.c: a program's text, lowered, for the suites of the middle stages. */
#include "from_text.h"

#include "frontend/lower.h"

#include <string.h>

static Graph *lower_first(Arena *arena, Diagnostics *d, const Source *source)
{
    jmp_buf escape;
    d->escape = &escape;
    if (setjmp(escape)) return NULL;
    const Module *program = parse_program(arena, d, source, NULL);
    check_program(arena, d, program);
    const Item *graph;
    if (program_graphs(program, &graph, 1) == 0) return NULL;
    return lower(arena, d, program, graph);
}

FromText from_text(const char *text)
{
    Arena *arena = arena_new();
    Source *source = NEW(arena, Source);
    *source = (Source){.name = "t.fuse", .text = text, .length = strlen(text)};
    Diagnostics d = {.arena = arena, .text = text_new(arena)};
    Graph *graph = lower_first(arena, &d, source);
    return (FromText){arena, d.errors ? NULL : graph, d.errors, d.warnings, text_string(d.text)};
}

FromText from_body(const char *output, const char *body)
{
    Arena *arena = arena_new();
    const char *text = arena_format(arena,
                                    "import \"std\"\n"
                                    "graph g[M = 4, N = 8](x : f32[M, N], h : bf16[M, "
                                    "N], d : f64[M, N], i : i32[M, N],"
                                    " p : bool[M, N], q : bool[M, N], r : f32[M], s : "
                                    "f32, k : i64) -> (y : %s) {\n%s\n}\n",
                                    output, body);
    FromText f = from_text(text);
    arena_free(arena);
    return f;
}

Node find_named(const Graph *g, const char *name)
{
    for (int id = 1; id < g->nodes.count; id++)
        if (g->nodes.data[id].name && strcmp(g->nodes.data[id].name, name) == 0)
            return (Node){(uint32_t)id};
    return (Node){0};
}

const char *output_text(const Graph *g, int output)
{
    return node_text(g->arena, g, g->outputs.data[output].value, true);
}
