/* frontend/lower.h: ast -> graph. Name, axis and type checking; functions are inlined here. */
#ifndef FUSEC_LOWER_H
#define FUSEC_LOWER_H

#include "frontend/ast.h"
#include "graph/graph.h"

/* The graphs declared in the main module, in order. */
int program_graphs(const Module *program, const Item **graphs, int capacity);
/* All of them. */
const Item **list_graphs(Arena *arena, const Module *program, int *count);
/* Finds the items of a parsed program by name, once for all its graphs. */
void index_program(Arena *arena, Module *program);
/* A graph of the main module; NULL: there is none. */
const Item *find_graph(Arena *arena, const Module *program, const char *name);
/* The default value of a scalar that has one, rounded to its dtype; of a program without errors. */
double scalar_default(const ParamDecl *scalar, DType dtype);
/* Checks what belongs to no graph: functions that nothing calls, duplicate items. */
void check_program(Arena *arena, Diagnostics *d, const Module *program);
/* Checks one graph declaration and builds its graph; NULL after errors. */
Graph *lower(Arena *arena, Diagnostics *d, const Module *program, const Item *graph);

#endif
