/* texts.c: a fingerprint of everything the compiler prints: a hash of the texts and launches of
 * many programs, lengths, dtypes and GPUs, a line for each program, dtype and GPU. What changes no
 * kernel changes no line:
 *
 *     build/texts examples/rmsnorm.fuse tests/cases/divided_rows.fuse ... >before
 *
 * Each program is planned with every length of the list for its last axis; other axes keep their
 * sizes. */
#include "compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct {
    const char *name, *arch;
    int sms;
    double memory_rate; /* bytes a ns; 0: the architecture's own GPU */
} Gpu;

static const Gpu gpus[] = {
    {"A100", "sm_80", 108, 0},     {"L40S", "sm_89", 142, 0},   {"H100", "sm_90a", 132, 3300},
    {"H200", "sm_90a", 132, 4800}, {"B200", "sm_100a", 148, 0},
};
static const int lengths[] = {8,      64,     96,     229,    512,    768,   1000,   1023,   1024,
                              1280,   1987,   2048,   2753,   3072,   4095,  4096,   5120,   6144,
                              8191,   8192,   9216,   11008,  12288,  12289, 14336,  16384,  18432,
                              20480,  24576,  32768,  50257,  65536,  98304, 114688, 131072, 163840,
                              196608, 262144, 300001, 524288, 1048576};
enum { GPUS = sizeof gpus / sizeof *gpus, LENGTHS = sizeof lengths / sizeof *lengths };

static char *read_program(const char *path)
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
static char *of_dtype(const char *text, const char *dtype)
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
static bool last_axis(const char *text, char name[64])
{
    const char *graph = strstr(text, "graph "), *end = graph ? strchr(graph, ']') : NULL, *at = end;
    const char *open = graph ? strchr(graph, '[') : NULL,
               *paren = graph ? strchr(graph, '(') : NULL;
    if (!end || !open || open > paren || strstr(end, "\ngraph ")) return false;
    while (at > open && at[-1] != ',' && at[-1] != '[') at--;
    return sscanf(at, " %63[A-Za-z0-9_]", name) == 1;
}

static void add_plan(XXH3_state_t *state, const Compilation *c, int *plans)
{
    if (c->status != COMPILE_OK) {
        XXH3_64bits_update(state, c->diagnostics, strlen(c->diagnostics));
        return;
    }
    ++*plans;
    XXH3_64bits_update(state, c->cuda, strlen(c->cuda));
    for (int i = 0; i < c->launch->kernel_count; i++) {
        const LaunchKernel *k = &c->launch->kernels[i];
        long long facts[] = {k->threads,          k->cluster,          k->smem_bytes,
                             k->overlaps,         k->grid[0].axes,     k->grid[0].per_cta,
                             k->grid[0].max_ctas, k->grid[0].times,    k->grid[1].axes,
                             k->grid[1].per_cta,  k->grid[1].max_ctas, k->grid[1].times};
        XXH3_64bits_update(state, facts, sizeof facts);
    }
}

static void fingerprint(const char *path, const char *text, const char *axis, const char *dtype,
                        const Gpu *gpu)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    int plans = 0;
    for (int i = 0; i < (axis ? LENGTHS : 1); i++) {
        AxisSize size = {axis, lengths[i]};
        CompileRequest request = {.text = text,
                                  .length = strlen(text),
                                  .name = path,
                                  .sizes = &size,
                                  .size_count = axis != NULL,
                                  .rows_at_launch = true,
                                  .target = *target_find(gpu->arch),
                                  .until = UNTIL_CUDA};
        if (gpu->memory_rate > 0) target_set_device(&request.target, gpu->sms, gpu->memory_rate);
        Compilation c = compile(&request);
        add_plan(state, &c, &plans);
        compile_free(&c);
    }
    printf("%s %s %s: %d plans, %016llx\n", path, dtype, gpu->name, plans,
           (unsigned long long)XXH3_64bits_digest(state));
    fflush(stdout);
    XXH3_freeState(state);
}

int main(int argc, char **argv)
{
    static const char *const dtypes[] = {"bf16", "f16", "f32"};
    for (int i = 1; i < argc; i++) {
        char *text = read_program(argv[i]), axis[64];
        bool has_axis = last_axis(text, axis), varies = strstr(text, "bf16") != NULL;
        for (int d = 0; d < (varies ? 3 : 1); d++) {
            char *typed = of_dtype(text, dtypes[d]);
            for (int g = 0; g < GPUS; g++)
                fingerprint(argv[i], typed, has_axis ? axis : NULL, varies ? dtypes[d] : "own",
                            &gpus[g]);
            free(typed);
        }
        free(text);
    }
    return 0;
}
