/* test_failing.c: calls that fail, over and over, hold the memory of the process: what a server does
 * that takes programs and tensors from strangers. Under ASan each is tried a few times, and what is
 * not freed is told at the end. */
#include "fusec.h"
#include "suites.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 40, WARM = 20, HELD_PAGES = 1 << 30 };
#else
enum { ROUNDS = 1200, WARM = 400, HELD_PAGES = 48 };
#endif

static const char text[] =
    "graph g[M = 2, N = 4](x : f32[M, N], k : f32) -> (y : f32[M, N], s : f32[M]) {\n"
    "  y = x * k  s = sum[N](x) }\n"
    "graph ints[N = 4](x : i32[N]) -> (y : i32[N]) { y = x }\n";

static fusec_error error;
static fusec_program *program;
static fusec_device *device, *target;
static fusec_plan *plan;
static char damaged[] = "/tmp/fusec-plan-XXXXXX";

static void open_all(void)
{
    setenv("FUSEC_NVRTC", "/dev/null", 1);
    setenv("FUSEC_CACHE_DIR", "/dev/null/cache", 1);
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_device_target("sm_90a", &target, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_plan_create(device, program, "g", NULL, 0, NULL, &plan, &error),
                     FUSEC_OK);
    strcpy(damaged, "/tmp/fusec-plan-XXXXXX");
    const int file = mkstemp(damaged);
    ck_assert_int_eq(write(file, text, sizeof text), sizeof text);
    close(file);
}

static void close_all(void)
{
    remove(damaged);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    fusec_device_destroy(device);
    fusec_device_destroy(target);
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld %ld", &all, &resident), 2);
    fclose(file);
    return resident;
}

#define FAILS(wanted, call)                                                                        \
    do {                                                                                           \
        ck_assert_int_eq(call, FUSEC_##wanted);                                                    \
        ck_assert_int_eq(error.status, FUSEC_##wanted);                                            \
    } while (0)

static void parse_wrongly(void)
{
    static const char *const wrong[] = {"",
                                        "graph g(",
                                        "graph g[N](x : f32[N]) -> (y : f32[N]) { y = z }",
                                        "import \"nothing\"\n",
                                        "graph g[N](x : f32[N]) -> (y : f32[M]) { y = sum[N](x) }",
                                        "\xff\xfe\x00"};
    fusec_program *none;
    const fusec_parse_options few = {.struct_size = sizeof few, .max_nodes = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS(INVALID_PROGRAM,
              fusec_program_parse(wrong[i], strlen(wrong[i]), NULL, &none, &error));
    FAILS(INVALID_PROGRAM, fusec_program_open("/nowhere/g.fuse", NULL, &none, &error));
    FAILS(LIMIT_EXCEEDED, fusec_program_parse_with(text, strlen(text), NULL, &few, &none, &error));
    FAILS(INVALID_ARGUMENT, fusec_program_grad(program, "h", NULL, &none, &error));
    FAILS(INVALID_PROGRAM, fusec_program_grad(program, "ints", NULL, &none, &error));
}

static int32_t cancel(void *data)
{
    (void)data;
    return 1;
}

static void plan_wrongly(void)
{
    const fusec_size negative = {"N", -1}, unknown = {"Q", 4};
    fusec_plan_options options = {.struct_size = sizeof options};
    fusec_plan *none;
    FAILS(INVALID_ARGUMENT, fusec_plan_create(device, program, NULL, NULL, 0, NULL, &none, &error));
    FAILS(INVALID_ARGUMENT, fusec_plan_create(device, program, "h", NULL, 0, NULL, &none, &error));
    FAILS(INVALID_ARGUMENT,
          fusec_plan_create(device, program, "g", &negative, 1, NULL, &none, &error));
    FAILS(INVALID_ARGUMENT,
          fusec_plan_create(device, program, "g", &unknown, 1, NULL, &none, &error));
    options.outputs = "u";
    FAILS(INVALID_ARGUMENT,
          fusec_plan_create(device, program, "g", NULL, 0, &options, &none, &error));
    options.outputs = NULL, options.schedule = "row:threads=7";
    FAILS(INVALID_ARGUMENT,
          fusec_plan_create(device, program, "g", NULL, 0, &options, &none, &error));
    options.schedule = NULL, options.is_cancelled = cancel;
    FAILS(CANCELLED, fusec_plan_create(device, program, "g", NULL, 0, &options, &none, &error));
    FAILS(NO_NVRTC, fusec_plan_create(target, program, "g", NULL, 0, NULL, &none, &error));
}

static void launch_wrongly(void)
{
    float x[8] = {0}, y[8], s[2];
    const double k = 1;
    fusec_tensor in = {x, FUSEC_F32, 2, {2, 4}, {4, 1}};
    const fusec_tensor out[] = {{y, FUSEC_F32, 2, {2, 4}, {4, 1}}, {s, FUSEC_F32, 1, {2}, {1}}};
    fusec_call *none;
    FAILS(INVALID_ARGUMENT, fusec_plan_launch(plan, &in, out, NULL, NULL, NULL, &error));
    in.dtype = FUSEC_F64;
    FAILS(INVALID_TENSOR, fusec_plan_launch(plan, &in, out, &k, NULL, NULL, &error));
    in.dtype = FUSEC_F32, in.sizes[1] = 3;
    FAILS(INVALID_TENSOR, fusec_plan_launch(plan, &in, out, &k, NULL, NULL, &error));
    in.sizes[1] = 4, in.data = y;
    FAILS(INVALID_TENSOR, fusec_plan_launch(plan, &in, out, &k, NULL, NULL, &error));
    FAILS(UNSUPPORTED, fusec_call_create(plan, &in, out, &k, NULL, &none, &error));
}

static void use_files_wrongly(void)
{
    fusec_plan *none;
    fusec_device *nobody;
    FAILS(UNSUPPORTED, fusec_plan_save(plan, "/nowhere/plan", &error));
    FAILS(UNSUPPORTED, fusec_plan_load(device, damaged, &none, &error));
    FAILS(INVALID_FILE, fusec_plan_load(target, damaged, &none, &error));
    FAILS(IO_ERROR, fusec_plan_load(target, "/nowhere/plan", &none, &error));
    FAILS(INVALID_ARGUMENT, fusec_device_target("sm_1", &nobody, &error));
}

static void (*const doors[])(void) = {parse_wrongly, plan_wrongly, launch_wrongly,
                                      use_files_wrongly};

START_TEST(memory_is_held)
{
    long before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == WARM) before = resident_pages();
        doors[_i]();
    }
    const long more = resident_pages() - before;
    ck_assert_msg(more < HELD_PAGES, "%ld pages more after %d rounds", more, ROUNDS - WARM);
}
END_TEST

Suite *failing_suite(void)
{
    Suite *suite = suite_create("failing");
    TCase *tests = tcase_create("memory");
    tcase_set_tags(tests, "plain"); /* what is held is counted only without sanitizers */
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_loop_test(tests, memory_is_held, 0, sizeof doors / sizeof *doors);
    suite_add_tcase(suite, tests);
    return suite;
}
