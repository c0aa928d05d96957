/* library.c: see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

const char *environment_path(const char *variable)
{
    const char *path = secure_getenv(variable);
    return path && path[0] == '/' ? path : NULL;
}

/* The directories that the dynamic linker searches, malloc'ed; NULL: not known, or out of
 * memory. */
static Dl_serinfo *search_path(void)
{
    Dl_serinfo size, *path = NULL;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program && dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0)
        path = calloc(1, size.dls_size);
    if (path && (dlinfo(program, RTLD_DI_SERINFOSIZE, path) != 0 ||
                 dlinfo(program, RTLD_DI_SERINFO, path) != 0)) {
        free(path);
        path = NULL;
    }
    if (program) dlclose(program);
    return path;
}

static bool is_absolute(const Dl_serinfo *path)
{
    for (unsigned i = 0; i < path->dls_cnt; i++)
        if (path->dls_serpath[i].dls_name[0] != '/') return false;
    return true;
}

/* Searches without the working directory, which the linker would include, for example because of an
 * empty entry in LD_LIBRARY_PATH. */
static void *open_in_absolute(const Dl_serinfo *path, const char *name)
{
    char file[PATH_MAX];
    void *library = NULL;
    for (unsigned i = 0; i < path->dls_cnt && !library && errno != ENOMEM; i++) {
        const char *directory = path->dls_serpath[i].dls_name;
        int length = snprintf(file, sizeof file, "%s/%s", directory, name);
        if (directory[0] == '/' && length > 0 && length < PATH_MAX) library = dlopen(file, FLAGS);
    }
    return library;
}

void *library_open(const char *name, const char **why)
{
    *why = "is not an absolute path";
    errno = 0;
    if (name[0] != '/' && strchr(name, '/')) return NULL;
    Dl_serinfo *path = name[0] == '/' ? NULL : search_path();
    void *library = NULL;
    if (errno != ENOMEM)
        library = !path || is_absolute(path) ? dlopen(name, FLAGS) : open_in_absolute(path, name);
    int error = errno;
    free(path);
    if (!library) *why = dlerror();
    if (!*why || error == ENOMEM) *why = error == ENOMEM ? "out of memory" : "cannot be opened";
    errno = error;
    return library;
}

/* A line of /proc/self/maps: BEGIN-END RIGHTS OFFSET DEVICE INODE    PATH */
static bool maps_line_holds(const char *line, uintptr_t address)
{
    uintptr_t begin, end;
    return sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 && begin <= address &&
           address < end;
}

static bool read_own_mapping(uintptr_t address, char path[PATH_MAX])
{
    char line[PATH_MAX + 128];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        const char *file = strchr(line, '/');
        if (!file || !maps_line_holds(line, address)) continue;
        int length = snprintf(path, PATH_MAX, "%.*s", (int)strcspn(file, "\n"), file);
        found = length < PATH_MAX;
    }
    if (maps) fclose(maps);
    return found;
}

bool library_own_path(char path[PATH_MAX])
{
    static const char anchor[] = "fusec";
    Dl_info info;
    if (!dladdr((const void *)anchor, &info) || !info.dli_fname) return false;
    /* The linker keeps the path by which it found the file, perhaps with a relative directory. */
    if (info.dli_fname[0] != '/') return read_own_mapping((uintptr_t)anchor, path);
    return snprintf(path, PATH_MAX, "%s", info.dli_fname) < PATH_MAX;
}
