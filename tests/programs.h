/* programs.h: programs of files in many lengths and dtypes, and GPUs to plan them for. */
#ifndef FUSEC_TESTS_PROGRAMS_H
#define FUSEC_TESTS_PROGRAMS_H

#include "target.h"

#include <stdbool.h>

typedef struct {
    const char *name, *arch;
    int sms;
    double memory_rate; /* bytes a ns; 0: the architecture's own GPU */
} Gpu;

extern const Gpu gpus[];
extern const int gpu_count;
/* Whether all is to be tested of which `make check` tests a sample: FUSEC_TEST_WHOLE is set. */
bool tests_whole(void);

extern const int lengths[]; /* of the last axis */
extern const int length_count;

Target target_of(const Gpu *gpu);
/* The text of a file, to be freed; ends the process where there is none. */
char *read_program(const char *path);
/* The text with every `bf16` become `dtype`, which is no longer; to be freed. */
char *of_dtype(const char *text, const char *dtype);
/* The last axis of the first graph, before its first `]`; false: there are several graphs, or no
 * axes. */
bool last_axis(const char *text, char name[64]);

#endif
