/* codegen/cuda.h: plan -> CUDA C text. Prints what the plan says; decides nothing but names and
 * layout. */
#ifndef FUSEC_CUDA_H
#define FUSEC_CUDA_H

#include "schedule/plan.h"

/* A whole module: the prelude sections it mentions, then the kernels of the plan in launch order.
 */
const char *emit_cuda(Arena *arena, const Plan *plan);

/* The same of several plans, of which one after another is needed: begin, add each, end. The texts
 * are in the arena of the first, and what printing a plan takes besides is in `scratch`. */
typedef struct {
    Text *heads, *needs, *kernels;
} CudaText;

CudaText cuda_begin(Arena *arena);
void cuda_add(CudaText *module, Arena *scratch, const Plan *plan);
const char *cuda_end(CudaText *module);

#endif
