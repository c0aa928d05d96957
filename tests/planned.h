/* planned.h: plans of one program for many sizes, schedules and GPUs. */
#ifndef FUSEC_TESTS_PLANNED_H
#define FUSEC_TESTS_PLANNED_H

#include "compile.h"

/* The program of a file, which the functions below compile from then on; its text. */
const char *choose_program(const char *path);
/* The same with a text. */
void choose_text(const char *text);
/* Compiles it for sizes of its axes M and N. `schedule` NULL: the chosen one. */
Compilation compile_target(const char *schedule, int64_t rows, int64_t columns,
                           const Target *target);
Compilation compile_sizes(const char *schedule, int64_t rows, int64_t columns, const char *arch);
/* The text as candidates have it: without the command that prints it. */
const char *bare_text(const Compilation *c);

#endif
