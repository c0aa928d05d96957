/* programs.c: programs of files in many lengths and dtypes, and GPUs to plan them for. */
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Gpu gpus[] = {
    {"A100", "sm_80", 108, 0},     {"L40S", "sm_89", 142, 0},   {"H100", "sm_90a", 132, 3300},
    {"H200", "sm_90a", 132, 4800}, {"B200", "sm_100a", 148, 0},
};
const int lengths[] = {8,      64,     96,     229,    512,    768,   1000,   1023,   1024,
                       1280,   1987,   2048,   2753,   3072,   4095,  4096,   5120,   6144,
                       8191,   8192,   9216,   11008,  12288,  12289, 14336,  16384,  18432,
                       20480,  24576,  32768,  50257,  65536,  98304, 114688, 131072, 163840,
                       196608, 262144, 300001, 524288, 1048576};
const int gpu_count = sizeof gpus / sizeof *gpus, length_count = sizeof lengths / sizeof *lengths;

bool tests_whole(void)
{
    return getenv("FUSEC_TEST_WHOLE") != NULL;
}

Target target_of(const Gpu *gpu)
{
    Target target = *target_find(gpu->arch);
    if (gpu->memory_rate > 0) target_set_device(&target, gpu->sms, gpu->memory_rate);
    return target;
}

char *read_program(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file)) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* The text with every `bf16` become `dtype`, which is no longer. */
char *of_dtype(const char *text, const char *dtype)
{
    char *copy = calloc(1, strlen(text) + 1), *to = copy;
    for (; *text; text++) {
        if (!strncmp(text, "bf16", 4)) {
            to += sprintf(to, "%s", dtype);
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    return copy;
}

/* The last axis of the first graph: before the first `]`. */
bool last_axis(const char *text, char name[64])
{
    const char *graph = strstr(text, "graph "), *end = graph ? strchr(graph, ']') : NULL, *at = end;
    const char *open = graph ? strchr(graph, '[') : NULL,
               *paren = graph ? strchr(graph, '(') : NULL;
    if (!end || !open || open > paren || strstr(end, "\ngraph ")) return false;
    while (at > open && at[-1] != ',' && at[-1] != '[') at--;
    return sscanf(at, " %63[A-Za-z0-9_]", name) == 1;
}
