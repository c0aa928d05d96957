/* program.h: from a FILE of the command line to Compilations: the beginning of all commands. */
#ifndef FUSEC_CLI_PROGRAM_H
#define FUSEC_CLI_PROGRAM_H

#include "cli/device.h"
#include "base/map.h"
#include "cli/options.h"
#include "tuning.h"

typedef struct {
    const Options *options;
    const char *name, *text; /* of the file */
    size_t length;
    Compilation parsed;        /* the first one: all later ones use its syntax tree and imports */
    Imports imports;           /* from there; none until then */
    const char *const *graphs; /* those that the command takes, in order */
    int graph_count;
    Target target;            /* from --arch */
    char device[DEVICE_NAME]; /* the GPU that the target was taken from; "": none */
    Tuned tuned;              /* the tuning file's answer for the latest plan */
    Map shown;                /* diagnostics already printed */
    bool is_checked;          /* whether `parsed` was checked, without an error */
    Budget budget;            /* of the latest graph's compilations */
} Program;

/* Reads and parses FILE and finds its graphs: the one of --graph, else all. Complains and returns
 * an exit status. */
int open_program(Program *p, const Options *o, const char *file);
void close_program(Program *p);
/* The same text and imports as a program of the library. */
int parse_for_plans(const Program *p, fusec_program **program);
/* Exit 2 with the names unless exactly one graph is left. */
int need_one_graph(Program *p);
/* Compiles a graph as far as `until`, with the sizes of the command line, or with `sizes` where not
 * NULL; prints the compiler's reports. A plan for a GPU at hand may come from the tuning file. The
 * caller frees `c`, whatever the result. */
int compile_graph(Program *p, const char *graph, CompileUntil until, const AxisSize *sizes,
                  int size_count, Compilation *c);

#endif
