/* test_target.c: targets, the devices without a GPU: plans are made and saved for them, loaded and
 * looked at, and nothing runs. NVRTC is the stand-in of tests/faults, or else the one here. */
#include "fusec.h"
#include "suites.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "graph scale[M, N = 64](x : bf16[M, N], k : f32 = 2) -> (y : bf16[M, N], s : f32[N]) {\n"
    "  y = x * k  s = sum[M](x) }\n";

static fusec_error error;
static fusec_program *program;
static fusec_device *device;
static char path[] = "/tmp/fusec-plan-XXXXXX";

static void open_all(void)
{
    static char library[4096];
    if (getcwd(library, sizeof library - 64)) strcat(library, "/build/faults/libnvrtc_stub.so");
    if (access(library, R_OK) == 0) setenv("FUSEC_NVRTC", library, 1);
    setenv("FUSEC_CACHE_DIR", "/dev/null/cache", 1);
    strcpy(path, "/tmp/fusec-plan-XXXXXX");
    close(mkstemp(path));
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_device_target("sm_80", &device, &error), FUSEC_OK);
}

static void close_all(void)
{
    remove(path);
    fusec_device_destroy(device);
    fusec_program_destroy(program);
}

/* NULL where there is no NVRTC. */
static fusec_plan *make_plan(const char *arch)
{
    fusec_plan *plan;
    fusec_plan_options options = {.struct_size = sizeof options, .arch = arch};
    fusec_status status =
        fusec_plan_create(device, program, NULL, NULL, 0, &options, &plan, &error);
    if (status == FUSEC_NO_NVRTC)
        printf("target: skipped, there is no NVRTC\n");
    else
        ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    return plan;
}

START_TEST(it_tells_what_it_is)
{
    fusec_device_info info = {.struct_size = sizeof info};
    fusec_device *other;
    ck_assert_int_eq(fusec_device_get_info(device, &info), FUSEC_OK);
    ck_assert_str_eq(info.arch, "sm_80");
    ck_assert_str_eq(info.name, "a100");
    ck_assert_int_eq(info.is_cpu, 0);
    ck_assert_int_eq(info.ordinal, -1);
    ck_assert_int_eq(10 * info.major + info.minor, 80);
    ck_assert_int_gt(info.sms, 0);
    ck_assert_int_eq(fusec_device_target("sm_12", &other, &error), FUSEC_INVALID_ARGUMENT);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(strstr(error.message, "'sm_12': there are sm_80"));
    ck_assert_int_eq(fusec_device_target(NULL, &other, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_device_get_info(other, &info), FUSEC_OK);
    ck_assert_str_eq(info.arch, "sm_90a");
    fusec_device_destroy(other);
}
END_TEST

#define IS_REFUSED(call)                                                                           \
    do {                                                                                           \
        ck_assert_int_eq(call, FUSEC_UNSUPPORTED);                                                 \
        ck_assert_msg(strstr(error.message, "sm_80 is a target"), "%s", error.message);            \
    } while (0)

START_TEST(nothing_runs)
{
    void *memory;
    char byte = 0, other = 0;
    fusec_stream stream;
    fusec_event *event;
    fusec_call *call;
    IS_REFUSED(fusec_alloc(device, 64, &memory, &error));
    IS_REFUSED(fusec_copy(device, &byte, &other, 1, &error));
    IS_REFUSED(fusec_copy_async(device, &byte, &other, 1, NULL, &error));
    IS_REFUSED(fusec_fill_async(device, &byte, 1, 1, NULL, &error));
    IS_REFUSED(fusec_device_synchronize(device, &error));
    IS_REFUSED(fusec_stream_create(device, &stream, &error));
    IS_REFUSED(fusec_event_create(device, &event, &error));
    fusec_free(device, &byte);
    fusec_plan *plan = make_plan(NULL);
    if (!plan) return;
    static uint16_t x[4 * 64], y[4 * 64];
    static float s[64];
    static char workspace[1 << 20] __attribute__((aligned(256)));
    const fusec_tensor in = {x, FUSEC_BF16, 2, {4, 64}, {64, 1}};
    const fusec_tensor out[] = {{y, FUSEC_BF16, 2, {4, 64}, {64, 1}}, {s, FUSEC_F32, 1, {64}, {1}}};
    ck_assert_uint_le(fusec_plan_workspace(plan, NULL, 0), sizeof workspace);
    IS_REFUSED(fusec_plan_launch(plan, &in, out, NULL, workspace, NULL, &error));
    IS_REFUSED(fusec_call_create(plan, &in, out, NULL, workspace, &call, &error));
    fusec_plan_destroy(plan);
}
END_TEST

static void expect_same(const fusec_plan *a, const fusec_plan *b)
{
    size_t bytes, others;
    const void *code = fusec_plan_binary(a, &bytes), *other = fusec_plan_binary(b, &others);
    ck_assert_uint_eq(bytes, others);
    ck_assert_mem_eq(code, other, bytes);
    size_t cubins = 0, all = 0, own;
    for (; fusec_plan_cubin(a, cubins, &own); cubins++, all += own)
        ck_assert_ptr_eq(fusec_plan_cubin(a, cubins, NULL), (const char *)code + all);
    ck_assert_uint_eq(all, bytes);
    ck_assert_uint_ge(cubins, fusec_plan_kernel_count(a) > 1 ? 2 : 1);
    ck_assert_str_eq(fusec_plan_text(a), fusec_plan_text(b));
    ck_assert_str_eq(fusec_plan_arch(a), fusec_plan_arch(b));
    ck_assert_uint_eq(fusec_plan_kernel_count(a), fusec_plan_kernel_count(b));
    for (size_t i = 0; i < fusec_plan_kernel_count(a); i++) {
        fusec_kernel_info k = {.struct_size = sizeof k}, l = k;
        ck_assert_int_eq(fusec_plan_kernel(a, i, &k), FUSEC_OK);
        ck_assert_int_eq(fusec_plan_kernel(b, i, &l), FUSEC_OK);
        ck_assert_str_eq(k.name, l.name);
        ck_assert_int_eq(k.registers, l.registers);
        ck_assert_int_eq(k.threads, l.threads);
    }
}

/* Saved here, and read by targets of whatever architecture. */
START_TEST(plans_are_saved_and_loaded)
{
    static const char *const archs[] = {NULL, "sm_80", "sm_90a", "sm_90"};
    static const char *const told[] = {"sm_80", "sm_80", "sm_90a", "sm_90"};
    for (int i = 0; i < 4; i++) {
        fusec_plan *plan = make_plan(archs[i]), *loaded;
        if (!plan) return;
        ck_assert_str_eq(fusec_plan_arch(plan), told[i]);
        ck_assert_msg(fusec_plan_save(plan, path, &error) == FUSEC_OK, "%s", error.message);
        ck_assert_msg(fusec_plan_load(device, path, &loaded, &error) == FUSEC_OK, "%s",
                      error.message);
        expect_same(plan, loaded);
        fusec_plan_destroy(plan);
        fusec_plan_destroy(loaded);
    }
}
END_TEST

/* A plan keeps its target, as it keeps other devices. */
START_TEST(a_plan_outlives_its_target)
{
    fusec_plan *plan = make_plan(NULL);
    fusec_device_destroy(device);
    device = NULL;
    if (!plan) return;
    ck_assert_int_eq(fusec_plan_save(plan, path, &error), FUSEC_OK);
    fusec_plan_destroy(plan);
}
END_TEST

START_TEST(no_nvrtc_is_told)
{
    fusec_plan *plan = (fusec_plan *)&error;
    setenv("FUSEC_NVRTC", "/dev/null", 1);
    ck_assert_int_eq(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, &error),
                     FUSEC_NO_NVRTC);
    ck_assert_ptr_null(plan);
}
END_TEST

Suite *target_suite(void)
{
    Suite *suite = suite_create("target");
    TCase *tests = tcase_create("target");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_test(tests, it_tells_what_it_is);
    tcase_add_test(tests, nothing_runs);
    tcase_add_test(tests, plans_are_saved_and_loaded);
    tcase_add_test(tests, a_plan_outlives_its_target);
    tcase_add_test(tests, no_nvrtc_is_told);
    suite_add_tcase(suite, tests);
    return suite;
}
