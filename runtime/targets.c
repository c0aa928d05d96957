/* targets.c: see targets.h. */
#include "targets.h"

#include "file_read.h"
#include "library.h"
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 64 << 10, PROBLEM = PATH_MAX + FILE_WHY + 64 };
static char problem[PROBLEM];
static pthread_once_t is_read = PTHREAD_ONCE_INIT;

static int is_target_file(const struct dirent *entry)
{
    const char *ending = strrchr(entry->d_name, '.');
    return ending && !strcmp(ending, ".def");
}

static void read_target(const char *directory, const char *name)
{
    char path[PATH_MAX], why[FILE_WHY] = "";
    size_t length;
    int wanted = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (wanted < 0 || wanted >= (int)sizeof path) return;
    char *text = file_read(AT_FDCWD, path, FILE_OF_ANYONE, MAX_BYTES, &length, why);
    if (!text || !target_add(text, why))
        snprintf(problem, sizeof problem, "%s describes no GPU: %s", path, why);
    free(text);
}

static void read_targets(void)
{
    const char *chosen = secure_getenv("FUSEC_TARGETS");
    const char *directory = environment_path("FUSEC_TARGETS");
    if (chosen && *chosen && !directory)
        snprintf(problem, sizeof problem, "FUSEC_TARGETS is no absolute path");
    struct dirent **entries;
    int count = directory ? scandir(directory, &entries, is_target_file, alphasort) : 0;
    if (count < 0)
        snprintf(problem, sizeof problem, "FUSEC_TARGETS: %.200s cannot be read", directory);
    for (int i = 0; i < count; i++) {
        if (!*problem) read_target(directory, entries[i]->d_name);
        free(entries[i]);
    }
    if (directory && count >= 0) free(entries);
}

const char *targets_open(void)
{
    pthread_once(&is_read, read_targets);
    return problem;
}
