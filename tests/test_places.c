/* test_places.c: what must not be used though it is at hand: the working directory, which is
 * anybody's, and, in a child made by fork, a CUDA device of the parent. */
#include "internal.h"
#include "suites.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 20 };

static char directory[64], home[PATH_MAX];

/* ---- fork ---- */

/* In a child all locks of a device may be held for ever, and its driver is dead. */
static void use_inherited(fusec_device *device, fusec_program *program)
{
    void *memory;
    fusec_plan *plan;
    fusec_event *event;
    char text[8] = "text";
    bool good = fusec_device_warning(device, text, sizeof text) == 0 && !*text;
    good &= fusec_alloc(device, 64, &memory, NULL) == FUSEC_CUDA_ERROR;
    good &= fusec_event_create(device, &event, NULL) == FUSEC_CUDA_ERROR;
    good &= fusec_device_synchronize(device, NULL) == FUSEC_CUDA_ERROR;
    good &=
        fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, NULL) == FUSEC_CUDA_ERROR;
    fusec_device_destroy(device);
    _exit(good ? 0 : 1);
}

START_TEST(children_cannot_use_cuda)
{
    static const char text[] = "graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }";
    fusec_device *device;
    fusec_program *program;
    int status;
    ck_assert_int_eq(fusec_device_cpu(&device, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_program_parse(text, sizeof text - 1, NULL, &program, NULL), FUSEC_OK);
    device->cpu = false; /* as one of CUDA, of which the child must ask nothing */
    pthread_mutex_lock(&device->modules.lock);
    pthread_mutex_lock(&device->nvrtc_lock);
    pthread_mutex_lock(&device->warning_lock);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        use_inherited(device, program);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    pthread_mutex_unlock(&device->modules.lock);
    pthread_mutex_unlock(&device->nvrtc_lock);
    pthread_mutex_unlock(&device->warning_lock);
    device->cpu = true;
    fusec_device_destroy(device);
    fusec_program_destroy(program);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- the working directory ---- */

/* VisitLibrary: wants none, and every path that it is shown must be absolute, or a bare name. */
static bool look(void *data, const char *path)
{
    ck_assert_msg(path[0] == '/' || !strchr(path, '/'), "%s is relative", path);
    ++*(int *)data;
    return false;
}

START_TEST(no_search_goes_by_the_working_directory)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
                                            "HOME"};
    static const char *const values[] = {".", "", "..", "lib/.."};
    int visited = 0;
    ck_assert_int_eq(chdir(directory), 0);
    ck_assert_int_eq(
        system("for place in . lib lib64 .local/lib/python3.11/site-packages/nvidia/cu13/lib "
               "lib/python3.11/site-packages/nvidia/cu13/lib; do "
               "mkdir -p $place; touch $place/libnvrtc.so.13; done"),
        0);
    unsetenv("FUSEC_NVRTC");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (size_t v = 0; v < sizeof variables / sizeof *variables; v++)
            setenv(variables[v], values[i], 1);
        nvrtc_search(look, &visited);
    }
    const int without = visited;
    setenv("CUDA_HOME", directory, 1);
    visited = 0;
    nvrtc_search(look, &visited);
    ck_assert_int_eq(visited, without / 4 + 2); /* an absolute directory is gone through */
}
END_TEST

START_TEST(relative_places_are_none)
{
    char path[PATH_MAX];
    setenv("HOME", "home", 1);
    setenv("XDG_CACHE_HOME", "cache", 1);
    setenv("XDG_CONFIG_HOME", "config", 1);
    setenv("FUSEC_CACHE_DIR", "", 1);
    setenv("FUSEC_TUNING_FILE", "", 1);
    ck_assert_uint_eq(fusec_cache_path(path, sizeof path), 0);
    ck_assert_uint_eq(tuning_path(path), 0);
    setenv("HOME", "/nowhere/h", 1);
    ck_assert_uint_eq(fusec_cache_path(path, sizeof path), strlen("/nowhere/h/.cache/fusec"));
    ck_assert_uint_eq(tuning_path(path), strlen("/nowhere/h/.config/fusec/tuning"));
    setenv("FUSEC_CACHE_DIR", "cache", 1);
    setenv("FUSEC_TUNING_FILE", "tuning", 1);
    ck_assert_uint_eq(fusec_cache_path(path, sizeof path), 0);
    ck_assert_uint_eq(tuning_path(path), 0);
    setenv("FUSEC_CACHE_DIR", directory, 1);
}
END_TEST

static void make_directory(void)
{
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    strcpy(directory, "/tmp/fusec-places-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_directory(void)
{
    char command[128];
    ck_assert_int_eq(chdir(home), 0);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

Suite *places_suite(void)
{
    Suite *suite = suite_create("places");
    TCase *tests = tcase_create("places");
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, no_search_goes_by_the_working_directory);
    tcase_add_test(tests, relative_places_are_none);
    tcase_add_test(tests, children_cannot_use_cuda);
    tcase_set_timeout(tests, 2 * SECONDS);
    suite_add_tcase(suite, tests);
    return suite;
}
