/* from_text.h: what the suites of the middle stages begin with: a program's text,
 * lowered. */
#ifndef FUSEC_TESTS_FROM_TEXT_H
#define FUSEC_TESTS_FROM_TEXT_H

#include "frontend/ast.h"
#include "graph/graph.h"

typedef struct {
    Arena *arena;
    Graph *graph; /* of the first graph; NULL after errors */
    int errors, warnings;
    const char *report; /* the diagnostics; the file is called t.fuse */
} FromText;

/* Parses, checks and lowers. Free it with arena_free(f.arena). */
FromText from_text(const char *text);
/* The same for the body of a graph with many inputs, whose output is `y : DTYPE_AXES`:
 * axes M N; x : f32[M, N], h : bf16[M, N], d : f64[M, N], i : i32[M, N], p : bool[M, N],
 * q : bool[M, N], r : f32[M], s : f32, k : i64. */
FromText from_body(const char *output, const char *body);
/* The first node that has a name; {0} if there is none. */
Node find_named(const Graph *g, const char *name);
/* The whole expression of an output. */
const char *output_text(const Graph *g, int output);

#endif
