/* targets.c: see targets.h. */
#include "targets.h"

#include "file_read.h"
#include "library.h"
#include "schedule/plan.h"
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, PROBLEM = PATH_MAX + FILE_WHY + 512 };
static char problem[PROBLEM];
static pthread_once_t is_read = PTHREAD_ONCE_INIT;

static bool ends_in(const char *name, const char *wanted)
{
    const char *ending = strrchr(name, '.');
    return ending && !strcmp(ending, wanted);
}

static int is_target_file(const struct dirent *entry)
{
    return ends_in(entry->d_name, ".def") || ends_in(entry->d_name, ".tuned");
}

static void give_up(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

/* Says what is wrong with a table; false: nothing is. */
static bool tell_damage(const char *path, const char *text)
{
    jmp_buf escape;
    const char *why = "";
    Arena *arena = arena_new();
    if (arena) arena_on_out_of_memory(arena, give_up, &escape);
    if (!arena || setjmp(escape)) {
        snprintf(problem, sizeof problem, "%s: out of memory", path);
        arena_free(arena);
        return true;
    }
    const int line = find_damage(arena, text, &why);
    if (line)
        snprintf(problem, sizeof problem, "%s, line %d is not a row of a table: %.400s", path, line,
                 why);
    arena_free(arena);
    return line != 0;
}

static bool is_gpu(const char *name)
{
    int count;
    const char *const *gpus = target_gpus(&count);
    for (int i = 0; i < count; i++)
        if (!strcmp(gpus[i], name)) return true;
    return false;
}

/* The table of the GPU that the file is named after. */
static void take_table(const char *path, const char *name, const char *text)
{
    char gpu[NAME_MAX + 1];
    snprintf(gpu, sizeof gpu, "%.*s", (int)strcspn(name, "."), name);
    if (!is_gpu(gpu))
        snprintf(problem, sizeof problem, "%s: there is no GPU %s", path, gpu);
    else if (!tell_damage(path, text) && !target_add_table(gpu, text))
        snprintf(problem, sizeof problem, "%s: there are too many tables", path);
}

static void read_target(const char *directory, const char *name)
{
    char path[PATH_MAX], why[FILE_WHY] = "";
    size_t length;
    int wanted = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (wanted < 0 || wanted >= (int)sizeof path) return;
    char *text = file_read(AT_FDCWD, path, FILE_OF_ANYONE, MAX_BYTES, &length, why);
    if (text && ends_in(name, ".tuned"))
        take_table(path, name, text);
    else if (!text)
        snprintf(problem, sizeof problem, "%s cannot be read: %s", path, why);
    else if (!target_add(text, why))
        snprintf(problem, sizeof problem, "%s describes no GPU: %s", path, why);
    free(text);
}

static void read_targets(void)
{
    const char *chosen = secure_getenv("FUSEC_TARGETS");
    const char *directory = environment_path("FUSEC_TARGETS");
    if (chosen && *chosen && !directory)
        snprintf(problem, sizeof problem, "FUSEC_TARGETS is not an absolute path");
    struct dirent **entries;
    int count = directory ? scandir(directory, &entries, is_target_file, alphasort) : 0;
    if (count < 0)
        snprintf(problem, sizeof problem, "FUSEC_TARGETS: %.200s cannot be read", directory);
    /* tables may be of GPUs that these files describe */
    for (int tables = 0; tables < 2; tables++)
        for (int i = 0; i < count; i++)
            if (!*problem && ends_in(entries[i]->d_name, ".tuned") == tables)
                read_target(directory, entries[i]->d_name);
    for (int i = 0; i < count; i++) free(entries[i]);
    if (directory && count >= 0) free(entries);
}

const char *targets_open(void)
{
    pthread_once(&is_read, read_targets);
    return problem;
}
