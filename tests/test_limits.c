/* test_limits.c: what a compilation may take, and how it is cancelled: at every question, from
 * another thread, around NVRTC's calls, and while another thread compiles the same text. NVRTC and
 * the driver are stand-ins. */
#include "compile.h"
#include "fusec.h"
#include "internal.h"
#include "suites.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char norm[] =
    "import \"std\"\n"
    "graph norm[M = 64, N = 4096](x : bf16[M, N], g : bf16[N], b : f32[N]) -> (y : bf16[M, N], s : f32[N]) {\n"
    "  h = layer_norm[N](x, 1e-5)  y = softmax[N](h * g + b)  s = sum[M](h) }\n";

static fusec_error error;
static fusec_program *program;
static fusec_device *device;

static void open_norm(void)
{
    ck_assert_int_eq(fusec_program_parse(norm, strlen(norm), "norm.fuse", &program, &error),
                     FUSEC_OK);
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
}

static void close_norm(void)
{
    fusec_device_destroy(device);
    fusec_program_destroy(program);
}

static fusec_status create(const fusec_plan_options *options)
{
    fusec_plan *plan = (fusec_plan *)&error;
    fusec_status status = fusec_plan_create(device, program, NULL, NULL, 0, options, &plan, &error);
    ck_assert_msg((status == FUSEC_OK) == (plan != NULL), "%s", error.message);
    fusec_plan_destroy(plan);
    return status;
}

static void expect(fusec_status wanted, const fusec_plan_options *options, const char *words)
{
    ck_assert_int_eq(create(options), wanted);
    ck_assert_msg(strstr(error.message, words), "'%s' is not in '%s'", words, error.message);
}

START_TEST(limits_are_told)
{
    fusec_plan_options options = {.struct_size = sizeof options};
    options.max_nodes = 10;
    expect(FUSEC_LIMIT_EXCEEDED, &options, "over 10 operations");
    expect(FUSEC_LIMIT_EXCEEDED, &options, "max_nodes");
    expect(FUSEC_LIMIT_EXCEEDED, &options, "norm.fuse:3:");
    options.max_nodes = 1000;
    options.max_bytes = 50000;
    expect(FUSEC_LIMIT_EXCEEDED, &options, "over 50000 bytes");
    expect(FUSEC_LIMIT_EXCEEDED, &options, "max_bytes");
    options.max_bytes = 1;
    expect(FUSEC_LIMIT_EXCEEDED, &options, "over 1 bytes");
    options.max_bytes = 1 << 28;
    options.max_seconds = 1e-9;
    expect(FUSEC_LIMIT_EXCEEDED, &options, "over 1e-09 seconds");
    expect(FUSEC_LIMIT_EXCEEDED, &options, "max_seconds");
    options.max_seconds = 3600;
    ck_assert_int_eq(create(&options), FUSEC_OK);
}
END_TEST

START_TEST(limits_that_are_none)
{
    fusec_plan_options options = {.struct_size = sizeof options, .max_nodes = -1};
    expect(FUSEC_INVALID_ARGUMENT, &options, "options.max_nodes");
    options = (fusec_plan_options){.struct_size = sizeof options, .max_bytes = -1};
    expect(FUSEC_INVALID_ARGUMENT, &options, "options.max_bytes");
    options = (fusec_plan_options){.struct_size = sizeof options, .max_seconds = -1};
    expect(FUSEC_INVALID_ARGUMENT, &options, "options.max_seconds");
    options.max_seconds = __builtin_nan("");
    expect(FUSEC_INVALID_ARGUMENT, &options, "options.max_seconds");
    options.max_nodes = 1;
    /* An older header has none of them. */
    options.struct_size = offsetof(fusec_plan_options, max_nodes);
    ck_assert_int_eq(create(&options), FUSEC_OK);
}
END_TEST

/* Values that grow exponentially with the functions of a small text. */
START_TEST(inlining_is_limited)
{
    char text[4096] = "fn g0(x) = x * 2\n";
    for (int i = 1; i < 40; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "fn g%d(x) = g%d(x * %d) + g%d(x + %d)\n", i,
                 i - 1, i + 2, i - 1, i);
    }
    strcat(text, "graph g[M = 4](x : f32[M]) -> (y : f32[M]) { y = g39(x) }\n");
    Budget budget = {.nodes = 1000};
    budget_begin(&budget);
    CompileRequest request = {.text = text,
                              .length = strlen(text),
                              .name = "g.fuse",
                              .until = UNTIL_CHECK,
                              .budget = &budget};
    Compilation c = compile(&request);
    ck_assert_int_eq(c.status, COMPILE_STOPPED);
    ck_assert_int_eq(c.stopped, STOPPED_BY_NODES);
    ck_assert_msg(strstr(c.diagnostics, "over 1000 operations"), "%s", c.diagnostics);
    compile_free(&c);
}
END_TEST

static int32_t cancel_third(void *data)
{
    return ++*(int *)data >= 3;
}

/* Many graphs, each of many operations: the limits of parsing are those of all together. */
START_TEST(parsing_is_limited)
{
    char text[8192] = "fn g0(x) = x * 2\n";
    for (int i = 1; i < 12; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "fn g%d(x) = g%d(x * %d) + g%d(x + %d)\n", i,
                 i - 1, i + 2, i - 1, i);
    }
    for (int i = 0; i < 60; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "graph h%d[M = 4](x : f32[M]) -> (y : f32[M]) { y = g11(x) }\n", i);
    }
    int asked = 0;
    const struct {
        fusec_parse_options options;
        fusec_status status;
        const char *message;
    } cases[] = {
        {{.max_nodes = 1000}, FUSEC_LIMIT_EXCEEDED, "over 1000 operations"},
        {{.max_bytes = 100000}, FUSEC_LIMIT_EXCEEDED, "over 100000 bytes"},
        {{.max_seconds = 1e-9}, FUSEC_LIMIT_EXCEEDED, "over 1e-09 seconds"},
        {{.is_cancelled = cancel_third, .cancel_data = &asked}, FUSEC_CANCELLED, "cancelled"},
        {{.max_nodes = -1}, FUSEC_INVALID_ARGUMENT, "options.max_nodes"},
        {{.max_seconds = 3600, .max_nodes = 1 << 20}, FUSEC_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fusec_parse_options options = cases[i].options;
        fusec_program *parsed;
        options.struct_size = sizeof options;
        const fusec_status status =
            fusec_program_parse_with(text, strlen(text), "h.fuse", &options, &parsed, &error);
        ck_assert_msg(status == cases[i].status && strstr(error.message, cases[i].message),
                      "case %zu: %d %s", i, status, error.message);
        ck_assert((parsed != NULL) == (status == FUSEC_OK));
        fusec_program_destroy(parsed);
    }
    ck_assert_int_ge(asked, 3);
}
END_TEST

START_TEST(texts_are_limited)
{
    const size_t length = (64u << 20) + 1;
    char *text = malloc(length);
    fusec_program *none;
    ck_assert_ptr_nonnull(text);
    memset(text, '\n', length);
    ck_assert_int_eq(fusec_program_parse(text, length, "long.fuse", &none, &error),
                     FUSEC_LIMIT_EXCEEDED);
    ck_assert_msg(strstr(error.message, "over 64 MiB"), "%s", error.message);
    ck_assert_ptr_null(none);
    free(text);
}
END_TEST

/* Of a program with many graphs each is planned from what was parsed once; the program may go
 * before its plans. */
START_TEST(plans_share_a_program)
{
    enum { GRAPHS = 3000, ROOM = 96 };
    char *text = malloc(GRAPHS * ROOM), *at = text, name[16];
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < GRAPHS; i++)
        at += snprintf(at, ROOM, "graph g%d[M = 4](x : f32[M]) -> (y : f32[M]) { y = x * %d }\n", i,
                       i);
    fusec_program *many;
    fusec_plan *plans[GRAPHS];
    ck_assert_int_eq(fusec_program_parse(text, (size_t)(at - text), "many.fuse", &many, &error),
                     FUSEC_OK);
    free(text);
    for (int i = 0; i < GRAPHS; i++) {
        snprintf(name, sizeof name, "g%d", i);
        ck_assert_int_eq(fusec_plan_create(device, many, name, NULL, 0, NULL, &plans[i], &error),
                         FUSEC_OK);
    }
    fusec_program_destroy(many);
    float x[] = {1, 2, 3, 4}, y[4];
    const fusec_tensor in = {x, FUSEC_F32, 1, {4}, {1}}, out = {y, FUSEC_F32, 1, {4}, {1}};
    ck_assert_int_eq(fusec_plan_launch(plans[7], &in, &out, NULL, NULL, NULL, &error), FUSEC_OK);
    ck_assert_float_eq(y[3], 28);
    for (int i = 0; i < GRAPHS; i++) fusec_plan_destroy(plans[i]);
}
END_TEST

/* ---- cancelling ---- */

typedef struct {
    int asked, cancels; /* at which question; 0: never */
} Caller;

static int32_t count_questions(void *data)
{
    Caller *caller = data;
    return ++caller->asked == caller->cancels;
}

START_TEST(cancelled_at_every_question)
{
    Caller caller = {0};
    fusec_plan_options options = {
        .struct_size = sizeof options, .is_cancelled = count_questions, .cancel_data = &caller};
    ck_assert_int_eq(create(&options), FUSEC_OK);
    const int questions = caller.asked, step = questions / 15 + 1;
    ck_assert_int_gt(questions, 7); /* one a stage at least */
    for (int k = 1; k <= questions; k += k < 12 ? 1 : step) {
        caller = (Caller){.cancels = k};
        expect(FUSEC_CANCELLED, &options, "cancelled");
        ck_assert_int_eq(caller.asked, k); /* and not again */
    }
    caller = (Caller){0};
    ck_assert_int_eq(create(&options), FUSEC_OK);
}
END_TEST

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
}

typedef struct {
    atomic_bool asked, cancelled;
} Flag;

/* Asked for the first time, the compilation waits until the other thread has cancelled it. */
static int32_t read_flag(void *data)
{
    Flag *flag = data;
    atomic_store(&flag->asked, true);
    while (!atomic_load(&flag->cancelled)) nap();
    return 1;
}

static void *cancel(void *data)
{
    Flag *flag = data;
    while (!atomic_load(&flag->asked)) nap();
    atomic_store(&flag->cancelled, true);
    return NULL;
}

START_TEST(cancelled_by_another_thread)
{
    Flag flag = {false, false};
    fusec_plan_options options = {
        .struct_size = sizeof options, .is_cancelled = read_flag, .cancel_data = &flag};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel, &flag), 0);
    expect(FUSEC_CANCELLED, &options, "cancelled");
    pthread_join(thread, NULL);
    ck_assert_int_eq(create(NULL), FUSEC_OK);
}
END_TEST

/* ---- NVRTC and a driver that stand in for the real ones ---- */

static atomic_int nvrtc_calls;
static atomic_bool nvrtc_waits;

static int succeed_compiling(NvrtcProgram of, int count, const char *const *options)
{
    (void)of, (void)count, (void)options;
    atomic_fetch_add(&nvrtc_calls, 1);
    while (atomic_load(&nvrtc_waits)) nap();
    return 0;
}

static int count_archs(int *count)
{
    return *count = 1, 0;
}
static int list_archs(int *archs)
{
    return *archs = 90, 0;
}
static int make_program(NvrtcProgram *of, const char *text, const char *name, int headers,
                        const char *const *texts, const char *const *names)
{
    (void)text, (void)name, (void)headers, (void)texts, (void)names;
    return *of = NULL, 0;
}
static int drop_program(NvrtcProgram *of)
{
    return (void)of, 0;
}
static int give_size(NvrtcProgram of, size_t *bytes)
{
    return (void)of, *bytes = 4, 0;
}
static int give_text(NvrtcProgram of, char *text)
{
    return (void)of, strcpy(text, "abc"), 0;
}

static CUresult no_context(CUcontext *context)
{
    return *context = NULL, 0;
}
static CUresult push_context(CUcontext context)
{
    return (void)context, 0;
}
static CUresult load(CUmodule *module, const void *image)
{
    return (void)image, *module = NULL, 0;
}
static CUresult unload(CUmodule module)
{
    return (void)module, 0;
}
static CUresult find_function(CUfunction *function, CUmodule module, const char *name)
{
    return (void)module, (void)name, *function = NULL, 0;
}
static CUresult set_attribute(CUfunction function, int attribute, int value)
{
    return (void)function, (void)attribute, (void)value, 0;
}

static void open_stand_in(void)
{
    ck_assert_int_eq(fusec_program_parse(norm, strlen(norm), "norm.fuse", &program, &error),
                     FUSEC_OK);
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
    setenv("FUSEC_CACHE_DIR", "/dev/null/none", 1);
    device->cpu = false;
    device->target = *target_find("sm_90a");
    strcpy(device->code_arch, "sm_90a");
    device->nvrtc_open = true;
    device->nvrtc = (Nvrtc){.major = 13,
                            .nvrtcGetNumSupportedArchs = count_archs,
                            .nvrtcGetSupportedArchs = list_archs,
                            .nvrtcCreateProgram = make_program,
                            .nvrtcDestroyProgram = drop_program,
                            .nvrtcCompileProgram = succeed_compiling,
                            .nvrtcGetCUBINSize = give_size,
                            .nvrtcGetCUBIN = give_text,
                            .nvrtcGetProgramLogSize = give_size,
                            .nvrtcGetProgramLog = give_text};
    device->driver = (Driver){.cuCtxGetCurrent = no_context,
                              .cuCtxPushCurrent = push_context,
                              .cuCtxPopCurrent = no_context,
                              .cuModuleLoadData = load,
                              .cuModuleUnload = unload,
                              .cuModuleGetFunction = find_function,
                              .cuFuncSetAttribute = set_attribute};
    atomic_store(&nvrtc_calls, 0);
    atomic_store(&nvrtc_waits, false);
}

/* Once NVRTC was called it is cancelled. */
static int32_t was_compiled(void *data)
{
    (void)data;
    return atomic_load(&nvrtc_calls) > 0;
}

START_TEST(cancelled_while_nvrtc_compiles)
{
    fusec_plan_options options = {
        .struct_size = sizeof options, .no_tuning = 1, .is_cancelled = was_compiled};
    expect(FUSEC_CANCELLED, &options, "cancelled");
    const int calls = atomic_load(&nvrtc_calls);
    options.is_cancelled = NULL;
    ck_assert_int_eq(create(&options), FUSEC_OK);
    ck_assert_int_eq(atomic_load(&nvrtc_calls), calls); /* what it compiled is there */
}
END_TEST

static const fusec_plan_options plain = {.struct_size = sizeof plain, .no_tuning = 1};

static void *compile_it(void *data)
{
    fusec_error own;
    fusec_plan *plan;
    *(fusec_status *)data = fusec_plan_create(device, program, NULL, NULL, 0, &plain, &plan, &own);
    fusec_plan_destroy(plan);
    return NULL;
}

/* Whether this thread waits for the other's module; takes the lock, which nobody may hold now. */
static int32_t is_waiting(void *data)
{
    (void)data;
    pthread_mutex_lock(&device->modules.lock);
    const CodeModule *module = device->modules.first;
    const bool waits = module && module->users > 1;
    pthread_mutex_unlock(&device->modules.lock);
    return waits;
}

START_TEST(a_thread_that_waits_is_cancelled)
{
    pthread_t thread;
    fusec_status status;
    atomic_store(&nvrtc_waits, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, compile_it, &status), 0);
    while (!atomic_load(&nvrtc_calls)) nap();
    fusec_plan_options options = plain;
    options.is_cancelled = is_waiting;
    expect(FUSEC_CANCELLED, &options, "cancelled");
    options.is_cancelled = NULL;
    options.max_seconds = 0.1;
    expect(FUSEC_LIMIT_EXCEEDED, &options, "max_seconds");
    atomic_store(&nvrtc_waits, false); /* the other goes on */
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, FUSEC_OK);
    const int calls = atomic_load(&nvrtc_calls);
    ck_assert_int_eq(create(&plain), FUSEC_OK);
    ck_assert_int_eq(atomic_load(&nvrtc_calls), calls);
}
END_TEST

Suite *limits_suite(void)
{
    Suite *suite = suite_create("limits");
    TCase *limits = tcase_create("limits"), *nvrtc = tcase_create("nvrtc");
    tcase_set_timeout(limits, 60);
    tcase_set_timeout(nvrtc, 60);
    tcase_add_checked_fixture(limits, open_norm, close_norm);
    tcase_add_test(limits, limits_are_told);
    tcase_add_test(limits, limits_that_are_none);
    tcase_add_test(limits, inlining_is_limited);
    tcase_add_test(limits, parsing_is_limited);
    tcase_add_test(limits, texts_are_limited);
    tcase_add_test(limits, plans_share_a_program);
    tcase_add_test(limits, cancelled_at_every_question);
    tcase_add_test(limits, cancelled_by_another_thread);
    suite_add_tcase(suite, limits);
    tcase_add_checked_fixture(nvrtc, open_stand_in, close_norm);
    tcase_add_test(nvrtc, cancelled_while_nvrtc_compiles);
    tcase_add_test(nvrtc, a_thread_that_waits_is_cancelled);
    suite_add_tcase(suite, nvrtc);
    return suite;
}
