/* retry_spills.h: a plan is chosen by an estimate of its registers; the compiled kernel knows
 * better. */
#ifndef FUSEC_SPILLS_H
#define FUSEC_SPILLS_H

#include "compile.h"

/* Bytes that the compiled kernels of a text spill; SPILLS_UNKNOWN: nobody can tell; SPILLS_FAILED:
 * the machine cannot go on, which whoever counted will say. */
typedef int CountSpills(void *data, const Compilation *c);
enum { SPILLS_UNKNOWN = -1, SPILLS_FAILED = -2 };

typedef enum { LEANER_DONE, LEANER_FAILED, LEANER_OUT_OF_MEMORY } LeanerResult;

/* Takes what a request that names no schedule was compiled to. If it spills, tries up to three
 * other schedules that should need fewer registers, and puts the first that does not spill in the
 * place of *c; *found is its text, for the caller to free, or NULL where *c stays the rules'
 * choice. Either way *c lists those that spill among what it rejected. FAILED: `count` did. */
LeanerResult compile_without_spills(const CompileRequest *request, CountSpills *count, void *data,
                                    Compilation *c, char **found);

#endif
