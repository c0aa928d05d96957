/* options.h: the command line as plain data, and the exit statuses that all commands share.
 *
 * commands.def and options.def are the only lists of commands and flags; the parser, the help and
 * the hints expand them. */
#ifndef FUSEC_CLI_OPTIONS_H
#define FUSEC_CLI_OPTIONS_H

#include "compile.h"
#include "cli/terminal.h"

enum {
    EXIT_DONE = 0,
    EXIT_WRONG = 1,   /* the program or its data */
    EXIT_USAGE = 2,   /* the command line; a refused schedule */
    EXIT_MACHINE = 3, /* no driver, NVRTC, memory; unwritable output */
    EXIT_VERIFY = 4   /* an output is not what the reference says */
};

typedef enum {
#define COMMAND(name, word, group, arguments, help) COMMAND_##name,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
} Command;

typedef enum {
    EMIT_CUDA,
    EMIT_TOKENS,
    EMIT_AST,
    EMIT_GRAPH,
    EMIT_ANALYSIS,
    EMIT_PLAN,
    EMIT_SCHEDULE,
    EMIT_PTX,
    EMIT_CUBIN,
    EMIT_DOT,
    EMIT_COUNT
} EmitKind;

typedef enum { PLAN_SAVE, PLAN_SHOW, PLAN_RUN, PLAN_VERBS } PlanVerb;
typedef enum { CACHE_LIST, CACHE_CLEAR, CACHE_PATH, CACHE_VERBS } CacheVerb;
typedef enum { SHELL_BASH, SHELL_ZSH, SHELL_COUNT } Shell;

typedef struct {
    const char *name;
    double value;
    const char *text; /* of the value */
} Setting;

typedef struct {
    const char *name;
    int count;
    int64_t values[MAX_RANK];
} Layout; /* --stride and --offset */

typedef struct {
    Arena *arena;
    Command command;
    int verb;       /* of PLAN, CACHE and COMPLETIONS; -1: none was given */
    uint64_t given; /* a bit for each flag on the command line */
    LIST(const char *) files;
    LIST(AxisSize) sizes; /* each axis once */
    LIST(Setting) settings;
    LIST(Layout) strides, offsets;
    EmitKind emit;
    const char *graph, *arch, *outputs, *schedule; /* NULL: not given */
    const char *output, *name;                     /* -o, --name */
    GradRequest grad;                              /* --of, --wrt, --save */
    const char *in, *out, *device;
    uint64_t seed;
    int sms;       /* of the simulated GPU; 0: not given */
    Budget limits; /* of a compilation; 0: the defaults */
    int memory;    /* GB/s of the GPU that --arch names; 0: not given */
    bool json, verify, write, check, no_tuning, candidates, fit;
    const char *table;    /* the file of tuned rows to write to; NULL: the tuning file */
    bool include_prelude; /* `#include "fusec.cuh"` in place of the device helpers */
} Options;

/* Reads the command line. Returns true to continue; false when help or the version was printed
 * (*status 0), or a usage error (*status 2). */
bool parse_options(Options *o, int argc, char **argv, int *status);

#endif
