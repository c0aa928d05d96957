/* program.h: from a FILE of the command line to Compilations: what all commands begin with. */
#ifndef FUSEC_CLI_PROGRAM_H
#define FUSEC_CLI_PROGRAM_H

#include "options.h"

typedef struct {
    const Options *options;
    const char *name, *text;              /* of the file */
    size_t length;
    const char *const *graphs;            /* those that the command takes, in order */
    int graph_count;
    Target target;                        /* from --arch */
    LIST(const char *) shown;             /* diagnostics already printed */
} Program;

/* Reads and parses FILE and finds its graphs: the one of --graph, else all. Complains and returns
 * an exit status. */
int open_program(Program *p, const Options *o, const char *file);
/* Exit 2 with the names unless exactly one graph is left. */
int need_one_graph(const Program *p);
/* Compiles a graph as far as `until`, with the sizes of the command line, or with `sizes` where not
 * NULL; prints what the compiler has to say. The caller frees `c`, whatever came back. */
int compile_graph(Program *p, const char *graph, CompileUntil until, const AxisSize *sizes,
                  int size_count, Compilation *c);

#endif
