/* test_plan_file.c: what a saved plan's file holds comes back as it was, and damaged bytes never
 * get through as a plan that says something else. */
#include "compile.h"
#include "plan_file.h"
#include "schedule/plan.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *path;
    int64_t columns; /* N, of 100 rows M; 0: the sizes in the text */
    int kernels;
    bool mailbox;
    const char *schedule; /* complete: what is saved does not follow the model */
} plans[] = {
    {"examples/rmsnorm.fuse", 64, 1, false, "row:exact=1,threads=4,rows=32,per_sm=12"},
    {"examples/layernorm_bwd.fuse", 4096, 2, false,
     "grid-stride:exact=1,threads=256,rows=2,stages=2,per_sm=1,reuse=1,live=1"},
    {"examples/layernorm_bwd.fuse", 300000, 3, true,
     "warp-specialized:exact=1,threads=416,cluster=32,stages=4,per_sm=1,row=ring,columns=shared,"
     "lag=1,paced=1,live=1,open=1"},
    {"tests/cases/wide_group.fuse", 1 << 20, 3, true,
     "warp-specialized:exact=1,threads=832,cluster=128,stages=2,per_sm=1,row=ring,live=1"},
    {"tests/golden/group_sums.fuse", 0, 2, false,
     "column:exact=1,threads=32,rows=8,stages=2,per_sm=1,reuse=1,live=1,part=64"},
    {"tests/cases/rows_of_two_axes.fuse", 0, 2, false,
     "grid-stride:exact=1,threads=64,rows=8,stages=3,per_sm=1,columns=shared,lines=1,scalars=1,"
     "live=1,open=1"},
    {"tests/cases/wide_moments.fuse", 3584, 1, false,
     "row:exact=1,threads=128,columns=memory,few=256,open=1"},
};
enum { PLANS = sizeof plans / sizeof *plans };

static Compilation compile_plan(int index)
{
    static char program[1 << 14];
    FILE *file = fopen(plans[index].path, "r");
    ck_assert_msg(file != NULL, "%s: run this from the top directory", plans[index].path);
    program[fread(program, 1, sizeof program - 1, file)] = 0;
    fclose(file);
    AxisSize sizes[] = {{"M", 100}, {"N", plans[index].columns}};
    CompileRequest request = {.text = program,
                              .length = strlen(program),
                              .name = "test.fuse",
                              .sizes = sizes,
                              .size_count = plans[index].columns ? 2 : 0,
                              .schedule = plans[index].schedule,
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_CUDA};
    Compilation c = compile(&request);
    ck_assert_msg(c.status == COMPILE_OK, "%s", c.diagnostics);
    return c;
}

static Writer encode(const Compilation *c)
{
    PlanFile file = {.arch = "sm_90a",
                     .cuda = "text",
                     .log = "log",
                     .launch = &c->plan->launch,
                     .code = "machine code",
                     .code_bytes = 12,
                     .in_place = true};
    Writer w = {0};
    plan_encode(&w, &file);
    ck_assert(!w.failed);
    return w;
}

START_TEST(it_comes_back)
{
    Compilation c = compile_plan(_i);
    const LaunchPlan *own = &c.plan->launch;
    Writer w = encode(&c), again = {0};
    Arena *arena = arena_new();
    PlanFile file;
    const char *version;
    ck_assert_int_eq(plan_decode(w.data, w.length, arena, &file, &version), PLAN_READ);
    ck_assert_str_eq(file.arch, "sm_90a");
    ck_assert_str_eq(file.log, "log");
    ck_assert(file.in_place && !file.is_ptx && file.code_bytes == 12);
    ck_assert_int_eq(file.launch->kernel_count, plans[_i].kernels);
    ck_assert((file.launch->kernels[plans[_i].mailbox].mailbox >= 0) == plans[_i].mailbox);
    int64_t offsets[2][MAX_LAUNCH_SLOTS];
    ck_assert_int_eq(launch_workspace(own, &own->sizes, offsets[0]),
                     launch_workspace(file.launch, &own->sizes, offsets[1]));
    ck_assert(!memcmp(offsets[0], offsets[1], sizeof **offsets * (size_t)own->slot_count));
    plan_encode(&again, &file);
    ck_assert(again.length == w.length && !memcmp(again.data, w.data, w.length));
    writer_free(&again);
    writer_free(&w);
    arena_free(arena);
    compile_free(&c);
}
END_TEST

/* What a launch works out from it: nothing that it may hold divides by zero. */
static void work_out(const LaunchPlan *plan)
{
    for (int k = 0; k < plan->kernel_count; k++) {
        for (int dim = 0; dim < GRID_RANK; dim++) launch_ctas(plan, k, dim, &plan->sizes);
        takes_whole_groups(plan, k, &plan->sizes);
    }
    launch_workspace(plan, &plan->sizes, NULL);
}

/* Every byte changed, and every length cut: refused, or another value that is encoded as it is
 * read. */
START_TEST(damage_is_seen)
{
    Compilation c = compile_plan(_i);
    Writer w = encode(&c);
    for (size_t at = 0; at < 2 * w.length; at++) {
        bool cut = at >= w.length;
        size_t size = cut ? at - w.length : w.length;
        char *bytes = malloc(size + 1);
        Writer again = {0};
        PlanFile file;
        const char *version;
        memcpy(bytes, w.data, size);
        if (!cut) bytes[at] = (char)(bytes[at] ^ 0x81);
        Arena *arena = arena_new();
        PlanRead read = plan_decode(bytes, size, arena, &file, &version);
        if (read == PLAN_READ) {
            plan_encode(&again, &file);
            work_out(file.launch);
        }
        ck_assert_msg(read != PLAN_READ ||
                          (!cut && again.length == size && !memcmp(again.data, bytes, size)),
                      "byte %zu of %s", at, plans[_i].path);
        writer_free(&again);
        arena_free(arena);
        free(bytes);
    }
    writer_free(&w);
    compile_free(&c);
}
END_TEST

/* What comes of a plan that is written and read. */
static PlanRead read_again(const Compilation *c)
{
    Writer w = encode(c);
    Arena *arena = arena_new();
    PlanFile file;
    const char *version;
    PlanRead read = plan_decode(w.data, w.length, arena, &file, &version);
    arena_free(arena);
    writer_free(&w);
    return read;
}

/* Numbers of a plan that sums rows by groups. */
static const struct {
    int dim;
    int64_t per_cta, max_ctas;
    PlanRead read;
} grids[] = {
    {0, 1, 132, PLAN_READ},           {0, 1, 0, PLAN_DAMAGED},
    {PARTS_DIM, 64, 132, PLAN_READ},  {PARTS_DIM, INT64_MAX, 132, PLAN_DAMAGED},
    {PARTS_DIM, 64, 0, PLAN_DAMAGED}, {PARTS_DIM, 64, INT64_MAX, PLAN_DAMAGED},
};
enum { GRIDS = sizeof grids / sizeof *grids };

START_TEST(parts_without_ctas_are_refused)
{
    enum { GROUP_SUMS = 4 };
    Compilation c = compile_plan(GROUP_SUMS);
    LaunchKernel *kernel = (LaunchKernel *)&c.plan->launch.kernels[0];
    ck_assert_int_gt(kernel->part_groups, 0);
    LaunchGrid *grid = &kernel->grid[grids[_i].dim];
    grid->per_cta = grids[_i].per_cta;
    grid->max_ctas = grids[_i].max_ctas;
    ck_assert_int_eq(read_again(&c), grids[_i].read);
    compile_free(&c);
}
END_TEST

/* A launch is checked by the first entry of a kernel alone, so the second must touch the same
 * tensors in the same phases. */
START_TEST(unlike_entries_are_refused)
{
    enum {
        ROWS_OF_TWO_AXES = PLANS - 2,
        AS_IT_IS,
        OTHER_PHASE,
        OTHER_TENSOR,
        FEWER_TENSORS,
        ONE_AXIS,
        NOT_COLLAPSED,
        ONE_COLUMN
    };
    for (int change = AS_IT_IS; change <= ONE_COLUMN; change++) {
        Compilation c = compile_plan(ROWS_OF_TWO_AXES);
        LaunchKernel *kernel = (LaunchKernel *)&c.plan->launch.kernels[0];
        LaunchArg *first = (LaunchArg *)&kernel->strided.args[0];
        ck_assert(kernel->collapsed && first->kind == ARG_TENSOR);
        if (change == OTHER_PHASE) first->phase++;
        if (change == OTHER_TENSOR) first->index++;
        if (change == FEWER_TENSORS) first->kind = ARG_STRIDE;
        if (change == ONE_AXIS) kernel->collapsed = 1;
        if (change == NOT_COLLAPSED) kernel->collapsed = 0;
        if (change == ONE_COLUMN) kernel->dense = 1;
        ck_assert_msg(read_again(&c) == (change == AS_IT_IS ? PLAN_READ : PLAN_DAMAGED),
                      "change %d", change);
        compile_free(&c);
    }
}
END_TEST

/* Memory for few CTAs has a size, and is given by kernels that take none else. */
START_TEST(few_without_memory_are_refused)
{
    enum { WIDE_MOMENTS = PLANS - 1, AS_IT_IS, NO_BYTES, OTHER_BYTES, GROUPED };
    for (int change = AS_IT_IS; change <= GROUPED; change++) {
        Compilation c = compile_plan(WIDE_MOMENTS);
        LaunchKernel *kernel = (LaunchKernel *)&c.plan->launch.kernels[0];
        ck_assert(kernel->few_ctas > 0 && kernel->few_bytes > 0);
        ck_assert_int_eq(launch_smem(kernel, kernel->few_ctas), kernel->few_bytes);
        ck_assert_int_eq(launch_smem(kernel, kernel->few_ctas + 1), 0);
        if (change == NO_BYTES) kernel->few_bytes = 0;
        if (change == OTHER_BYTES) kernel->smem_bytes = 16;
        if (change == GROUPED) kernel->mailbox = 0;
        ck_assert_msg(read_again(&c) == (change == AS_IT_IS ? PLAN_READ : PLAN_DAMAGED),
                      "change %d", change);
        compile_free(&c);
    }
}
END_TEST

/* The fuzzer begins with these files, and finds little if they are of an older format.
 * WRITE_SEEDS=1 writes them. */
START_TEST(seeds_are_of_this_format)
{
    char path[128];
    const char *name = strrchr(plans[_i].path, '/') + 1;
    snprintf(path, sizeof path, "tests/fuzz/corpus/plan/%.*s_%lld", (int)strcspn(name, "."), name,
             (long long)plans[_i].columns);
    Compilation c = compile_plan(_i);
    Writer w = encode(&c);
    bool writes = getenv("WRITE_SEEDS") != NULL;
    FILE *file = fopen(path, writes ? "w" : "r");
    ck_assert_msg(file != NULL, "%s", path);
    if (writes) ck_assert_uint_eq(fwrite(w.data, 1, w.length, file), w.length);
    char *bytes = malloc(w.length + 1);
    if (!writes) {
        ck_assert_uint_eq(fread(bytes, 1, w.length + 1, file), w.length);
        ck_assert_msg(!memcmp(bytes, w.data, w.length), "%s is not what this plan is saved as",
                      path);
    }
    fclose(file);
    free(bytes);
    writer_free(&w);
    compile_free(&c);
}
END_TEST

Suite *plan_file_suite(void)
{
    Suite *suite = suite_create("plan_file");
    TCase *tests = tcase_create("plan_file");
    tcase_add_loop_test(tests, it_comes_back, 0, PLANS);
    tcase_add_loop_test(tests, damage_is_seen, 0, PLANS);
    tcase_add_loop_test(tests, parts_without_ctas_are_refused, 0, GRIDS);
    tcase_add_test(tests, unlike_entries_are_refused);
    tcase_add_test(tests, few_without_memory_are_refused);
    tcase_add_loop_test(tests, seeds_are_of_this_format, 0, PLANS);
    suite_add_tcase(suite, tests);
    return suite;
}
