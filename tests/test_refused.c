/* test_refused.c: code from the disk cache that the driver refuses is compiled again, once. */
#include "internal.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[64];
static fusec_error error;

static void make_cache(void)
{
    snprintf(directory, sizeof directory, "/tmp/fusec-refused-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("FUSEC_CACHE_DIR", directory, 1);
    unsetenv("FUSEC_CACHE_BYTES");
}

static void remove_cache(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static int refusals, loads, compilations;

static CUresult no_context(CUcontext *context)
{
    *context = NULL;
    return CUDA_SUCCESS;
}

static CUresult unload(CUmodule module)
{
    return (void)module, 0;
}

static CUresult load_data(CUmodule *module, const void *data)
{
    enum { INVALID_IMAGE = 200 };
    (void)data;
    loads++;
    *module = NULL;
    return refusals-- > 0 ? INVALID_IMAGE : CUDA_SUCCESS;
}

static CUresult name_error(CUresult result, const char **text)
{
    (void)result;
    *text = "refused";
    return CUDA_SUCCESS;
}

static int one_arch(int *count)
{
    return *count = 1, 0;
}
static int known_archs(int *archs)
{
    return *archs = 90, 0;
}
static int no_bytes(NvrtcProgram program, size_t *bytes)
{
    return (void)program, *bytes = 0, 0;
}
static int no_log(NvrtcProgram program, char *log)
{
    return (void)program, (void)log, 0;
}
static int code_bytes(NvrtcProgram program, size_t *bytes)
{
    return (void)program, *bytes = 12, 0;
}
static int give_code(NvrtcProgram program, char *code)
{
    return (void)program, memcpy(code, "machine code", 12), 0;
}
static int end_program(NvrtcProgram *program)
{
    return *program = NULL, 0;
}

static int begin_program(NvrtcProgram *program, const char *text, const char *name, int headers,
                         const char *const *texts, const char *const *names)
{
    (void)text, (void)name, (void)headers, (void)texts, (void)names;
    return *program = NULL, 0;
}

static int compile_program(NvrtcProgram program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    return compilations++, 0;
}

static fusec_device *stub_device(void)
{
    fusec_device *device = calloc(1, sizeof *device);
    ck_assert(device && modules_init(&device->modules));
    pthread_mutex_init(&device->nvrtc_lock, NULL);
    pthread_mutex_init(&device->warning_lock, NULL);
    device->driver.cuCtxGetCurrent = no_context;
    device->driver.cuModuleLoadData = load_data;
    device->driver.cuModuleUnload = unload;
    device->driver.cuGetErrorName = name_error;
    device->driver.cuGetErrorString = name_error;
    device->nvrtc_open = true;
    device->nvrtc = (Nvrtc){.major = 12,
                            .minor = 9,
                            .nvrtcGetNumSupportedArchs = one_arch,
                            .nvrtcGetSupportedArchs = known_archs,
                            .nvrtcCreateProgram = begin_program,
                            .nvrtcDestroyProgram = end_program,
                            .nvrtcCompileProgram = compile_program,
                            .nvrtcGetCUBINSize = code_bytes,
                            .nvrtcGetCUBIN = give_code,
                            .nvrtcGetProgramLogSize = no_bytes,
                            .nvrtcGetProgramLog = no_log};
    return device;
}

static void free_stub(fusec_device *device)
{
    modules_free(device);
    pthread_mutex_destroy(&device->nvrtc_lock);
    pthread_mutex_destroy(&device->warning_lock);
    free(device);
}

/* A module on a device of its own, so that it comes from the disk or from NVRTC. */
static fusec_status make_module(int refused, bool *was_cached)
{
    CodeModule *module;
    fusec_device *device = stub_device();
    refusals = refused;
    loads = compilations = 0;
    fusec_status status =
        module_acquire(device, "text", "sm_90a", NULL, true, NULL, &module, was_cached, &error);
    if (status == FUSEC_OK) module_release(device, module);
    free_stub(device);
    return status;
}

START_TEST(refused_code_is_compiled_anew)
{
    bool cached;
    ck_assert_int_eq(make_module(0, &cached), FUSEC_OK);
    ck_assert(!cached && compilations == 1);
    ck_assert_int_eq(make_module(0, &cached), FUSEC_OK);
    ck_assert(cached && compilations == 0);
    ck_assert_int_eq(make_module(1, &cached), FUSEC_OK);
    ck_assert(!cached && compilations == 1 && loads == 2);
    ck_assert_int_eq(make_module(0, &cached), FUSEC_OK);
    ck_assert(cached && compilations == 0);
    ck_assert_int_eq(make_module(2, &cached), FUSEC_CUDA_ERROR); /* once, and not for ever */
    ck_assert(compilations == 1 && loads == 2);
}
END_TEST

Suite *refused_suite(void)
{
    Suite *suite = suite_create("refused");
    TCase *tests = tcase_create("code");
    tcase_add_checked_fixture(tests, make_cache, remove_cache);
    tcase_add_test(tests, refused_code_is_compiled_anew);
    suite_add_tcase(suite, tests);
    return suite;
}
