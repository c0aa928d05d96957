/* texts.c: a fingerprint of everything the compiler prints: a hash of the texts and launches of
 * many programs, lengths, dtypes and GPUs, a line for each program, dtype and GPU. What changes no
 * kernel changes no line:
 *
 *     build/texts examples/rmsnorm.fuse tests/cases/divided_rows.fuse ... >before
 *
 * Each program is planned with every length of the list for its last axis; other axes keep their
 * sizes. */
#include "compile.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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
    for (int i = 0; i < (axis ? length_count : 1); i++) {
        AxisSize size = {axis, lengths[i]};
        CompileRequest request = {.text = text,
                                  .length = strlen(text),
                                  .name = path,
                                  .sizes = &size,
                                  .size_count = axis != NULL,
                                  .rows_at_launch = true,
                                  .target = target_of(gpu),
                                  .until = UNTIL_CUDA};
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
            for (int g = 0; g < gpu_count; g++)
                fingerprint(argv[i], typed, has_axis ? axis : NULL, varies ? dtypes[d] : "own",
                            &gpus[g]);
            free(typed);
        }
        free(text);
    }
    return 0;
}
