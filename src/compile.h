/* compile.h: the whole compiler as one function; compile.c shows the pipeline on one page. */
#ifndef FUSEC_COMPILE_H
#define FUSEC_COMPILE_H

#include "frontend/ast.h"
#include "graph/grad.h"
#include "frontend/import.h"
#include "schedule/launch.h"
#include "target.h"

struct Analysis;
struct Plan;

typedef struct {
    const char *axis;
    int64_t size;
} AxisSize;

typedef enum {
    COMPILE_OK,
    /* The program or its data is wrong: exit status 1. */
    COMPILE_WRONG,
    /* Unknown graph or axis, several graphs and none named, an axis without a size, a refused
     * schedule: exit status 2. */
    COMPILE_USAGE,
    /* Out of memory (out_of_memory is set), an unreadable import: exit status 3. */
    COMPILE_MACHINE,
    /* Beyond a limit of the budget, or cancelled (stopped tells): exit status 3. */
    COMPILE_STOPPED
} CompileStatus;

/* How far to go. Each stage implies those before it. */
typedef enum {
    UNTIL_AST,
    UNTIL_CHECK,
    UNTIL_GRAD, /* nothing that the others imply: the backward pass as text */
    UNTIL_GRAPH,
    UNTIL_ANALYSIS,
    UNTIL_PLAN,
    UNTIL_CUDA
} CompileUntil;

typedef struct {
    const char *text; /* the program, need not be NUL-terminated */
    size_t length;
    const char *name;       /* of the file, for diagnostics */
    const Imports *imports; /* NULL: none are allowed but "std" */
    /* NULL, or what an earlier compilation parsed of that text: it is not parsed again, nor checked
     * again where that found no error (is_checked). Its arena must live as long as this
     * compilation's. */
    const Module *parsed;
    bool is_checked;
    const char *graph;     /* NULL: the only one */
    const AxisSize *sizes; /* override the declared defaults */
    int size_count;
    bool rows_at_launch;     /* row axes may have no size yet: a plan does not depend on them */
    const GradRequest *grad; /* UNTIL_GRAD */
    const char *outputs;     /* NULL: all; else names separated by commas */
    const char *schedule;    /* NULL: chosen; else FAMILY[:key=value,...] */
    Target target;
    CompileUntil until;
    /* Begun; NULL: one with the default limits. It may serve several compilations, one after
     * another: they share its time, each may have all its bytes. */
    Budget *budget;
} CompileRequest;

typedef struct {
    CompileStatus status;
    bool out_of_memory;
    Stopped stopped;
    Arena *arena;            /* holds everything below; free it with compile_free */
    const char *diagnostics; /* errors and warnings as text, "" if none */
    const Module *program;
    Graph *lowered;     /* as written: what the reference evaluates */
    const Graph *graph; /* simplified, unwanted outputs dropped */
    Sizes sizes;
    const struct Analysis *analysis; /* with the columns of the plan, once there is one */
    struct Plan *plan;
    const LaunchPlan *launch;
    const char *command; /* that prints the generated text */
    const char *cuda;    /* the generated text */
    const char *grad;    /* UNTIL_GRAD: a .fuse file */
} Compilation;

Compilation compile(const CompileRequest *request);
void compile_free(Compilation *c);

#endif
