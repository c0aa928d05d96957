/* codegen/cuda.h: plan -> CUDA C text. Prints what the plan says; decides nothing but names and
 * layout. */
#ifndef FUSEC_CUDA_H
#define FUSEC_CUDA_H

#include "schedule/plan.h"

/* What a command line says that a plan does not hold. */
typedef struct {
    const char *file; /* as it was named; "<...>": no file */
    bool has_several_graphs;
    const char *outputs, *schedule; /* NULL: not asked for */
} CommandWords;

/* `fusec FILE N=4096 --arch sm_90a ...`. */
const char *command_text(Arena *arena, const Plan *plan, const CommandWords *words);
/* A word for a shell, quoted where it has to be; never more than one line. */
const char *shell_word(Arena *arena, const char *word);

/* How a kernel begins, on a line of its own: what stands before the first one, the prelude, serves
 * all of them, and they share nothing else. */
#define KERNEL_BEGINS "extern \"C\" __global__"

/* A whole module: the prelude sections that it mentions, then the kernels of the plan in launch
 * order. `command` prints the text again; NULL: the text does not say which command does. */
const char *emit_cuda(Arena *arena, const Plan *plan, const char *command);

/* A module of several plans, of which one is needed at a time: begin, add each, end. The texts are
 * in the arena of `begin`; what printing a plan takes besides is in `scratch`. */
typedef struct {
    Text *heads, *needs, *kernels;
    bool includes_prelude; /* `#include "fusec.cuh"` in place of the helpers */
} CudaText;

CudaText cuda_begin(Arena *arena, bool includes_prelude);
void cuda_add(CudaText *module, Arena *scratch, const Plan *plan, const char *command);
const char *cuda_end(CudaText *module);

#endif
