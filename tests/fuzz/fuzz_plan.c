/* fuzz_plan.c: libFuzzer target for the reader of saved plans.
 *
 * Any bytes are refused, or are a plan that encodes to the same bytes again and from which grids
 * and workspace can be worked out. The input is a file's payload: no mutation finds a checksum. */
#include "demand.h"
#include "plan_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t *no_strides(const void *unused, int tensor)
{
    static const int64_t strides[MAX_RANK];
    (void)unused, (void)tensor;
    return strides;
}

static void check_launch(const LaunchPlan *plan)
{
    int64_t offsets[MAX_LAUNCH_SLOTS + 1], end = launch_workspace(plan, &plan->sizes, offsets);
    for (int i = 0; i < plan->slot_count; i++)
        demand(offsets[i] >= 0 && offsets[i] <= end, "a slot lies outside the workspace");
    for (int k = 0; k < plan->kernel_count; k++)
        for (int dim = 0; dim < GRID_RANK; dim++)
            demand(launch_ctas(plan, k, dim, &plan->sizes) >= 0, "a grid has fewer than no CTAs");
    for (int k = 0; k < plan->kernel_count; k++)
        demand(has_strided(&plan->kernels[k]) ||
                   choose_entry(plan, k, &plan->sizes, no_strides, NULL) == &plan->kernels[k].entry,
               "a kernel that is for all strides is not taken");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PlanFile file;
    const char *version;
    Writer again = {0};
    Arena *arena = arena_new();
    /* Ends where the input does, so that a read past it is seen. */
    char *bytes = malloc(size ? size : 1);
    if (!arena || !bytes) exit(0);
    if (size) memcpy(bytes, data, size);
    if (plan_decode(bytes, size, arena, &file, &version) == PLAN_READ) {
        check_launch(file.launch);
        plan_encode(&again, &file);
        demand(again.failed || (again.length == size && memcmp(again.data, bytes, size) == 0),
               "a plan is not what it was read from");
        writer_free(&again);
    }
    free(bytes);
    arena_free(arena);
    return 0;
}
