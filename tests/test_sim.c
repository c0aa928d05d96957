/* test_sim.c: the simulator against the kernels of tests/sim/kernels/: what is planted wrong must be
 * reported, what is right must pass under many seeds with the results of plain C. */
#include "sim/machine.h"
#include "sim/shadow.h"

#include "base/dtype.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 256, NUMBERS = 65536, SEEDS = 8, TEXT = 65536 };

typedef struct {
    const char *kernel;
    int ctas;
    int64_t smem;
    const char *report; /* part of it; NULL: it is right */
    int cluster;        /* 0: 1 */
} Case;

static const Case wrong[] = {
    {"bad_missing_barrier", 1, 0, "of shared s, byte ", 0},
    {"bad_second_barrier", 1, 0, "race: ", 0},
    {"bad_no_syncwarp", 1, 0, "race: ", 0},
    {"bad_scalar_race", 1, 0, "total", 0},
    {"bad_read_past_end", 1, 0, "out of bounds: read of 4 bytes at byte 1024 of in (1024 bytes)",
     0},
    {"bad_write_before", 1, 0, "out of bounds: write of 4 bytes at byte -4 of out", 0},
    {"bad_shared_past_end", 1, 0, "out of bounds: write of 4 bytes at byte 1020 of shared s", 0},
    {"bad_dynamic_past_end", 1, 1024, "out of bounds: write of 4 bytes at byte 1024 of shared smem",
     0},
    {"bad_misaligned", 1, 0, "misaligned: read of 16 bytes", 0},
    {"bad_divergent_barrier", 1, 0, "barrier divergence", 0},
    {"bad_barrier_after_exit", 1, 0, "barrier divergence", 0},
    {"bad_deadlock", 1, 0, "deadlock\n  CTA 0 threads 0-127 wait at barrier 0, 192 of 256", 0},
    {"bad_partial_shuffle", 1, 0, "warp divergence", 0},
    {"bad_uninitialised", 1, 0, "shared s, byte 12, which nobody has written", 0},
    {"bad_unwritten_workspace", 1, 0, "count, byte 0, which nobody has written", 0},
    {"bad_unwritten_output", 1, 0, "element 200 of out", 0},
    {"bad_written_input", 1, 0, "which is an input", 0},
    {"bad_cta_race", 2, 0, "race: write of 4 bytes of out", 0},
    {"bad_no_fence", 5, 0, "race: ", 0},
    {"bad_unwaited_copy", 1, 0, "has not been waited for", 0},
    {"bad_copy_no_barrier", 1, 0, "of shared s, byte ", 0},
    {"bad_local_pointer", 1, 0, "another thread's local memory", 0},
    {"bad_team_neighbour", 1, 0, "of shared s, byte ", 0},
    {"bad_team_sizes", 1, 0, "where others said", 0},
    {"bad_team_skipped", 1, 0, "deadlock\n  CTA 0 threads 0-31 wait at barrier 1, 32 of 64", 0},
    {"bad_cluster_no_sync", 2, 0, "which may not have begun", 2},
    {"bad_cluster_syncthreads", 2, 0, "race: ", 2},
    {"bad_cluster_relaxed", 2, 0, "race: ", 2},
    {"bad_cluster_exit", 2, 0, "exited", 2},
    {"bad_cluster_rank", 2, 0, "peer 2 of a cluster of 2 CTAs", 2},
    {"bad_cluster_past_end", 4, 0, "out of bounds: read of 4 bytes at byte 1024 of shared s", 2},
    {"bad_cluster_half", 2, 0, "wait at the cluster's barrier, 256 threads there", 2},
    {"bad_cluster_wait_only", 2, 0, "cluster_wait without a cluster_arrive", 2},
    {"bad_send_early", 2, 0, "which may not have begun", 2},
    {"bad_send_not_collected", 2, 0, "shared x, byte ", 2},
    {"bad_send_two_ahead", 2, 0, "of shared x, byte ", 2},
    {"bad_bulk_no_wait", 1, 0, "of shared s, byte ", 0},
    {"bad_bulk_early_parity", 1, 0, "of shared s, byte ", 0},
    {"bad_bulk_parity", 1, 0, "byte 0 of shared full for parity 1, 1 phases over, 1 of 1 arrivals",
     0},
    {"bad_bulk_bytes", 1, 0, "0 of 1 arrivals and -896 bytes missing", 0},
    {"bad_bulk_overwrite", 1, 0, "of shared s, byte ", 0},
    {"bad_bulk_misaligned", 1, 0, "misaligned: a bulk copy from", 0},
    {"bad_bulk_size", 1, 0, "no multiple of 16", 0},
    {"bad_bulk_past_end", 1, 0, "out of bounds: read of 1024 bytes at byte 16 of in", 0},
    {"bad_bulk_shared_past_end", 1, 0, "out of bounds: write of 1024 bytes at byte 16 of shared s",
     0},
    {"bad_bulk_unwaited", 1, 0, "exits without waiting for the copy", 0},
    {"bad_bulk_source", 1, 0, "read by a bulk copy of CTA 0", 0},
    {"bad_bulk_no_fence", 1, 0, "without async_fence between", 0},
    {"bad_barrier_init_race", 1, 0, "byte 0 of shared full is used ", 0},
    {"bad_barrier_no_init", 1, 0, "is used before its init", 0},
    {"bad_barrier_arrivals", 1, 0, "more than 1 arrivals in phase 0", 0},
    {"bad_barrier_written", 1, 0, "which is a transaction barrier", 0},
    {"bad_livelock", 1, 0, "livelock", 0},
    {"bad_overlapping", 1, 0, "write of out, byte ", 0},
    {"bad_overlapping_input", 1, 0, "read of in, byte ", 0},
    {"bad_overlapping_read", 2, 0, "which the kernel before may still use", 0},
    {"bad_registers_of_warps", 1, 0, "registers", 0},
    {"bad_registers_of_each", 1, 0, "registers, where thread ", 0},
    {"bad_registers_count", 1, 0, "28 registers: a multiple of 8", 0},
};

static const Case right[] = {
    {"good_reverse", 1, 0, NULL, 0},        {"good_dynamic", 1, 1024, NULL, 0},
    {"good_syncwarp", 1, 0, NULL, 0},       {"good_reduce", 1, 0, NULL, 0},
    {"good_vectors", 1, 0, NULL, 0},        {"good_shuffles", 1, 0, NULL, 0},
    {"good_last_cta", 7, 0, NULL, 0},       {"good_early_warps", 1, 0, NULL, 0},
    {"good_copy", 1, 0, NULL, 0},           {"good_extremes", 1, 0, NULL, 0},
    {"good_unused_garbage", 1, 0, NULL, 0}, {"good_teams", 1, 0, NULL, 0},
    {"good_cluster", 4, 0, NULL, 2},        {"good_send", 4, 0, NULL, 2},
    {"good_ring", 1, 0, NULL, 0},           {"good_fenced_copy", 1, 0, NULL, 0},
    {"good_overlapping", 2, 0, NULL, 0},    {"good_pace", 1, 0, NULL, 0},
    {"good_registers", 1, 0, NULL, 0},
};

enum { WRONG = sizeof wrong / sizeof *wrong, RIGHT = sizeof right / sizeof *right };

static SimObject *object;
static char message[4096];

static const char *read_kernels(void)
{
    static const char *const paths[] = {
        "tests/sim/kernels/wrong.cu", "tests/sim/kernels/wrong_clusters.cu",
        "tests/sim/kernels/wrong_copies.cu", "tests/sim/kernels/right.cu"};
    static char text[TEXT];
    size_t length = 0;
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(paths[i], "r");
        ck_assert_msg(f != NULL, "%s: run this from the top directory", paths[i]);
        length += fread(text + length, 1, TEXT - 1 - length, f);
        fclose(f);
    }
    text[length] = 0;
    return text;
}

static void load_kernels(void)
{
    const char *text = read_kernels(), *names[WRONG + RIGHT + 3];
    int count = 0;
    for (int i = 0; i < WRONG; i++) names[count++] = wrong[i].kernel;
    for (int i = 0; i < RIGHT; i++) names[count++] = right[i].kernel;
    names[count++] = "prepare";
    names[count++] = "numbers";
    names[count++] = "values";
    object = object_load(text, names, count, message, sizeof message);
    ck_assert_msg(object != NULL, "%.2000s", message);
}

static void unload_kernels(void)
{
    object_free(object);
}

/* Runs a case; those of several CTAs count in the workspace, which `prepare` makes zero.
 */
static bool run_filled(const Case *c, uint64_t seed, unsigned char fill, float *in, float *out,
                       char *doubted)
{
    static const int64_t sizes[] = {COUNT}, one[] = {1};
    unsigned count[COUNT];
    void *ins = in, *outs = out, *counts = count, *args[] = {&ins, &outs, &counts};
    SimLaunch launch = {.kernel = "prepare",
                        .grid = {1, 1, 1},
                        .threads = COUNT,
                        .cluster = 1,
                        .args = args,
                        .arg_count = 3};
    Machine *m = machine_new(object, seed, message, sizeof message);
    message[0] = 0;
    machine_fill_shared(m, fill);
    bool good =
        machine_add_buffer(m, &(SimBuffer){"in", BUFFER_INPUT, in, 4, 1, sizes, one}) &&
        machine_add_buffer(m, &(SimBuffer){"out", BUFFER_OUTPUT, out, 4, 1, sizes, one}) &&
        machine_add_buffer(m, &(SimBuffer){"count", BUFFER_WORKSPACE, count, 4, 1, sizes, one});
    if (good && c->ctas > 1) good = machine_launch(m, &launch);
    launch.kernel = c->kernel;
    launch.overlaps = strstr(c->kernel, "_overlapping") != NULL;
    if (c->cluster) launch.cluster = c->cluster;
    launch.grid[0] = c->ctas;
    launch.smem_bytes = c->smem;
    good = good && machine_launch(m, &launch) && machine_finish(m);
    snprintf(doubted, sizeof message, "%s", machine_doubt(m));
    machine_free(m);
    return good;
}

static bool run_case(const Case *c, uint64_t seed, float *in, float *out)
{
    float before[COUNT];
    char doubted[sizeof message], again[sizeof message];
    if (!run_filled(c, seed, 0xff, in, out, doubted)) return false;
    if (!doubted[0]) return true;
    memcpy(before, out, sizeof before);
    if (!run_filled(c, seed, 0x3c, in, out, again)) return false;
    memcpy(message, doubted, sizeof message);
    return memcmp(before, out, sizeof before) == 0;
}

static void fill_input(float *in)
{
    for (int i = 0; i < COUNT; i++) in[i] = (float)((i * 37) % 101);
}

START_TEST(wrong_kernels_are_reported)
{
    const Case *c = &wrong[_i];
    float memory[4 * COUNT], *in = memory, *out = memory + 2 * COUNT;
    fill_input(in);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        ck_assert_msg(!run_case(c, seed, in, out), "%s passes under seed %d", c->kernel, (int)seed);
        ck_assert_msg(strstr(message, c->report) != NULL, "%s: '%s' lacks '%s'", c->kernel, message,
                      c->report);
    }
}
END_TEST

static float shuffled(const float *in, int i)
{
    const int warp = i & ~31, lane = i & 31;
    float y = in[warp + (lane ^ 5)] + 2 * in[warp + lane / 2];
    y += 4 * in[warp + (lane + 3 > 31 ? lane : lane + 3)];
    y += 8 * in[lane % 16 < 3 ? i : i - 3];
    return lane < 16 ? y + 0x9249 : y;
}

static float expected(const char *kernel, const float *in, int i)
{
    float sum = 0;
    for (int k = 0; k < COUNT; k++) sum += 5 * in[k] + 10;
    if (!strcmp(kernel, "good_reverse") || !strcmp(kernel, "good_dynamic") ||
        !strcmp(kernel, "good_copy") || !strcmp(kernel, "good_cluster") ||
        !strcmp(kernel, "good_ring") || !strcmp(kernel, "good_fenced_copy"))
        return in[COUNT - 1 - i];
    if (!strcmp(kernel, "good_syncwarp")) return in[i ^ 1];
    if (!strcmp(kernel, "good_teams")) return in[i ^ 63];
    if (!strcmp(kernel, "good_reduce")) return sum;
    if (!strcmp(kernel, "good_extremes")) return 1000 * 50 - 50;
    if (!strcmp(kernel, "good_shuffles")) return shuffled(in, i);
    if (!strcmp(kernel, "good_last_cta")) return in[i] + 1;
    if (strcmp(kernel, "good_early_warps") != 0 || i < 64) return in[i];
    sum = 0;
    for (int k = 0; k < 32; k++) sum += in[(i & ~31) + k];
    return sum;
}

START_TEST(right_kernels_pass)
{
    const Case *c = &right[_i];
    float memory[4 * COUNT], *in = memory, *out = memory + 2 * COUNT;
    fill_input(in);
    for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
        ck_assert_msg(run_case(c, seed, in, out), "%s: %s", c->kernel, message);
        for (int i = 0; i < COUNT; i++)
            ck_assert_msg(out[i] == expected(c->kernel, in, i), "%s: out[%d] is %g, not %g",
                          c->kernel, i, (double)out[i], (double)expected(c->kernel, in, i));
    }
}
END_TEST

START_TEST(seed_replays)
{
    float memory[4 * COUNT], *in = memory, *out = memory + 2 * COUNT;
    char first[sizeof message];
    fill_input(in);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run_case(&wrong[0], seed, in, out);
        memcpy(first, message, sizeof first);
        run_case(&wrong[0], seed, in, out);
        ck_assert_str_eq(message, first);
    }
}
END_TEST

START_TEST(places_are_source_lines)
{
    float memory[4 * COUNT], *in = memory, *out = memory + 2 * COUNT;
    fill_input(in);
    run_case(&wrong[0], 1, in, out);
    const char *line = strstr(message, "kernel.cu:");
    ck_assert_msg(line != NULL, "%s", message);
    const int number = atoi(line + strlen("kernel.cu:"));
    ck_assert_msg(number == 7 || number == 8, "%s", message);
}
END_TEST

static bool run_numbers(const char *kernel, void **args, int arg_count, const SimBuffer *buffers,
                        int count)
{
    const SimLaunch launch = {.kernel = kernel,
                              .grid = {1, 1, 1},
                              .threads = 64,
                              .cluster = 1,
                              .args = args,
                              .arg_count = arg_count};
    Machine *m = machine_new(object, 1, message, sizeof message);
    bool good = true;
    for (int i = 0; i < count && good; i++) good = machine_add_buffer(m, &buffers[i]);
    good = good && machine_launch(m, &launch) && machine_finish(m);
    machine_free(m);
    return good;
}

static const DType narrow[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F8E4M3, DTYPE_F8E5M2};

/* Floats from all over, most of them near a tie of one of the formats or another. */
static float number_at(uint32_t i)
{
    const uint32_t bits = i << 16 | (i % 7 == 0 ? 0 : i * 2654435761U >> 16 & 0xf00f);
    float x;
    memcpy(&x, &bits, sizeof x);
    if (i % 3 == 0) x = ldexpf(1 + (float)(i % 4096) / 4096, (int)(i % 50) - 30);
    return x;
}

START_TEST(stores_round_like_dtype)
{
    static const int64_t n[] = {NUMBERS}, n4[] = {NUMBERS, 4}, one[] = {1}, rows[] = {4, 1};
    float *in = malloc(NUMBERS * sizeof *in);
    uint32_t *out = malloc(NUMBERS * 4 * sizeof *out);
    void *ins = in, *outs = out, *args[] = {&ins, &outs};
    const SimBuffer buffers[] = {{"in", BUFFER_INPUT, in, 4, 1, n, one},
                                 {"bits", BUFFER_OUTPUT, out, 4, 2, n4, rows}};
    for (uint32_t i = 0; i < NUMBERS; i++) in[i] = number_at(i);
    ck_assert_msg(run_numbers("numbers", args, 2, buffers, 2), "%s", message);
    for (int i = 0; i < 4 * NUMBERS; i++) {
        uint32_t bits = 0;
        const DType d = narrow[i % 4];
        if (isnan(in[i / 4])) continue;
        dtype_store_float(d, &bits, (double)in[i / 4]);
        ck_assert_msg(out[i] == bits, "%s of %a is 0x%x, not 0x%x", dtype_info[d].fuse,
                      (double)in[i / 4], out[i], bits);
    }
    free(in);
    free(out);
}
END_TEST

START_TEST(loads_widen_like_dtype)
{
    static const int64_t n4[] = {NUMBERS, 4}, rows[] = {4, 1};
    float *out = malloc(NUMBERS * 4 * sizeof *out);
    void *outs = out, *args[] = {&outs};
    const SimBuffer buffers[] = {{"of", BUFFER_OUTPUT, out, 4, 2, n4, rows}};
    ck_assert_msg(run_numbers("values", args, 1, buffers, 1), "%s", message);
    for (int i = 0; i < 4 * NUMBERS; i++) {
        const uint16_t bits = (uint16_t)(i / 4);
        const double value = dtype_load_float(narrow[i % 4], &bits);
        ck_assert_msg((isnan(value) && isnan(out[i])) || value == (double)out[i],
                      "%s 0x%x is %a, not %a", dtype_info[narrow[i % 4]].fuse, bits, (double)out[i],
                      value);
    }
    free(out);
}
END_TEST

START_TEST(text_that_does_not_compile_is_told)
{
    const char *name = "k";
    ck_assert(object_load("extern \"C\" void k() { nonsense(); }", &name, 1, message,
                          sizeof message) == NULL);
    ck_assert(strstr(message, "nonsense") != NULL);
}
END_TEST

/* Grains against one cell for each granule, by changes of random parts. */
START_TEST(grains_keep_what_each_cell_would)
{
    enum { GRANULES = 256, CHANGES = 5000 };
    const size_t block = (size_t)1 << _i, blocks = GRANULES / block;
    void *memory = calloc(1, shadow_bytes(blocks, block));
    Shadow shadow = shadow_in(memory, blocks, block);
    uint32_t flags[GRANULES] = {0}, random = 1;
    size_t fewest = GRANULES, most = 0, wrong_cells = 0;
    for (uint32_t n = 1; n <= CHANGES; n++) {
        random = random * 1664525 + 1013904223;
        const size_t size = (size_t)1 << (random >> 8) % 6;
        const size_t first = (random >> 16) % (GRANULES - size), end = first + size;
        const uint32_t value = random >> 28;
        for (size_t at = first, alike; at < end; at += alike) {
            Cell *cell = shadow_grain(&shadow, at, end, &alike);
            for (size_t i = at; i < at + alike; i++) wrong_cells += cell->flags != flags[i];
            cell->flags = value;
        }
        for (size_t i = first; i < end; i++) flags[i] = value;
        shadow_join(&shadow, first, end);
        size_t grains = 0;
        for (size_t at = 0, alike; at < GRANULES; at += alike, grains++) {
            const uint32_t known = shadow_look(&shadow, at, &alike)->flags;
            for (size_t i = at; i < at + alike; i++) wrong_cells += known != flags[i];
        }
        if (grains < fewest) fewest = grains;
        if (grains > most) most = grains;
    }
    ck_assert_uint_eq(wrong_cells, 0);
    if (block > 1) ck_assert_uint_lt(fewest, most);
    shadow_forget(&shadow, 0, GRANULES);
    size_t alike;
    for (size_t i = 0; i < GRANULES; i += alike)
        ck_assert_uint_eq(shadow_look(&shadow, i, &alike)->flags, 0);
    free(memory);
}
END_TEST

Suite *sim_suite(void)
{
    Suite *suite = suite_create("sim");
    TCase *kernels = tcase_create("kernels");
    tcase_add_unchecked_fixture(kernels, load_kernels, unload_kernels);
    tcase_set_timeout(kernels, 60);
    tcase_set_tags(kernels, "slow"); /* most of its time is the C++ compiler's */
    tcase_add_loop_test(kernels, wrong_kernels_are_reported, 0, WRONG);
    tcase_add_loop_test(kernels, right_kernels_pass, 0, RIGHT);
    tcase_add_test(kernels, seed_replays);
    tcase_add_test(kernels, places_are_source_lines);
    tcase_add_test(kernels, stores_round_like_dtype);
    tcase_add_test(kernels, loads_widen_like_dtype);
    tcase_add_test(kernels, text_that_does_not_compile_is_told);
    suite_add_tcase(suite, kernels);
    TCase *cells = tcase_create("cells");
    tcase_add_loop_test(cells, grains_keep_what_each_cell_would, 0, 5);
    suite_add_tcase(suite, cells);
    return suite;
}
