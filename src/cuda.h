/* cuda.h: plan -> CUDA C text. Prints what the plan says; decides nothing but names and layout. */
#ifndef FUSEC_CUDA_H
#define FUSEC_CUDA_H

#include "schedule.h"

/* A whole module: the prelude sections it mentions, then the kernels of each plan in launch order. */
const char *emit_cuda(Arena *arena, const Plan *const *plans, int count);

#endif
