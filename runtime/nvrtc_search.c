/* nvrtc_search.c: where a libnvrtc may be: the library path, CUDA toolkits, the Python wheel
 * nvidia-cuda-nvrtc in nearby site-packages, and nvrtc/ beside fusec itself.
 *
 * The search globs known places and does not walk the disk, so it is quick. */
#include "nvrtc.h"

#include "library.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Visits matching files, highest name first, so that newer versions come before older ones. */
static bool visit_matches(VisitLibrary *visit, void *data, const char *pattern)
{
    glob_t found = {0};
    errno = 0;
    int failed = glob(pattern, 0, NULL, &found);
    if (failed == GLOB_NOSPACE || (failed && errno == ENOMEM)) {
        globfree(&found);
        visit(data, NULL);
        return true;
    }
    if (failed) return false;
    bool done = false;
    for (size_t i = found.gl_pathc; i-- > 0 && !done;) done = visit(data, found.gl_pathv[i]);
    globfree(&found);
    return done;
}

static bool visit_under(VisitLibrary *visit, void *data, const char *directory,
                        const char *const *patterns)
{
    char pattern[PATH_MAX];
    for (; *patterns; patterns++) {
        int length = snprintf(pattern, sizeof pattern, "%s/%s", directory, *patterns);
        if (length > 0 && (size_t)length < sizeof pattern && visit_matches(visit, data, pattern))
            return true;
    }
    return false;
}

static bool visit_toolkits(VisitLibrary *visit, void *data)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    static const char *const in_toolkit[] = {"lib64/libnvrtc.so.[0-9]*", "lib/libnvrtc.so.[0-9]*",
                                             "targets/*/lib/libnvrtc.so.[0-9]*", NULL};
    static const char *const toolkits[] = {"cuda/lib64/libnvrtc.so.[0-9]*",
                                           "cuda-[0-9]*/lib64/libnvrtc.so.[0-9]*", NULL};
    for (int i = 0; i < 2; i++) {
        const char *home = environment_path(variables[i]);
        if (home && visit_under(visit, data, home, in_toolkit)) return true;
    }
    return visit_under(visit, data, "/usr/local", toolkits) ||
           visit_under(visit, data, "/opt", toolkits);
}

/* The wheel's layouts below a site-packages directory: CUDA 13 first, then 12. */
#define WHEELS(packages)                                                                           \
    packages "/nvidia/cu[0-9]*/lib/libnvrtc.so.[0-9]*",                                            \
        packages "/nvidia/cuda_nvrtc/lib/libnvrtc.so.[0-9]*"

static bool visit_python(VisitLibrary *visit, void *data)
{
    static const char *const below_prefix[] = {WHEELS("lib/python3*/site-packages"),
                                               WHEELS("lib/python3*/dist-packages"),
                                               WHEELS("lib64/python3*/site-packages"), NULL};
    static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (int i = 0; i < 2; i++) {
        const char *prefix = environment_path(variables[i]);
        if (prefix && visit_under(visit, data, prefix, below_prefix)) return true;
    }
    char local[PATH_MAX];
    const char *home = environment_path("HOME");
    int length = snprintf(local, sizeof local, "%s/.local", home ? home : "");
    if (home && length > 0 && (size_t)length < sizeof local &&
        visit_under(visit, data, local, below_prefix))
        return true;
    static const char *const prefixes[] = {"/usr/local", "/usr", "/opt/conda", "/opt/venv"};
    for (int i = 0; i < 4; i++)
        if (visit_under(visit, data, prefixes[i], below_prefix)) return true;
    return false;
}

/* The python3 on PATH names one more prefix: DIR/../lib/python3. */
static bool visit_path_python(VisitLibrary *visit, void *data)
{
    static const char *const beside_bin[] = {WHEELS("../lib/python3*/site-packages"), NULL};
    char directory[PATH_MAX], python[PATH_MAX];
    const char *path = secure_getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        int printed = snprintf(directory, sizeof directory, "%.*s", (int)length, path);
        path += length + (path[length] == ':');
        if (printed <= 0 || (size_t)printed + 9 > sizeof python) continue;
        memcpy(python, directory, (size_t)printed);
        memcpy(python + printed, "/python3", 9);
        if (directory[0] == '/' && access(python, X_OK) == 0)
            return visit_under(visit, data, directory, beside_bin);
    }
    return false;
}

/* nvrtc/ beside the library, or beside the program it is linked into. */
static bool visit_own_directory(VisitLibrary *visit, void *data)
{
    static const char *const below[] = {"nvrtc/libnvrtc.so.[0-9]*", "nvrtc/*/libnvrtc.so.[0-9]*",
                                        "nvrtc/*/*/libnvrtc.so.[0-9]*",
                                        "nvrtc/*/*/*/libnvrtc.so.[0-9]*", NULL};
    char own[PATH_MAX];
    if (library_own_path(own)) {
        *strrchr(own, '/') = 0;
        if (visit_under(visit, data, own, below)) return true;
    }
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0) return false;
    own[length] = 0;
    *strrchr(own, '/') = 0;
    return visit_under(visit, data, own, below);
}

bool nvrtc_search(VisitLibrary *visit, void *data)
{
    const char *chosen = secure_getenv("FUSEC_NVRTC");
    if (chosen && *chosen) return visit(data, chosen);
    return visit(data, "libnvrtc.so.13") || visit(data, "libnvrtc.so.12") ||
           visit(data, "libnvrtc.so") || visit_toolkits(visit, data) || visit_python(visit, data) ||
           visit_path_python(visit, data) || visit_own_directory(visit, data);
}
