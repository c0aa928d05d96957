/* cache.c: `fusec cache list|clear|path`. */
#include "cli/commands.h"
#include "cli/device.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static int print_entry(void *data, const fusec_cache_entry *entry)
{
    (void)data;
    char used[32];
    time_t seconds = (time_t)entry->used;
    struct tm local;
    if (!localtime_r(&seconds, &local) || !strftime(used, sizeof used, "%F %T", &local))
        snprintf(used, sizeof used, "%lld", (long long)entry->used);
    printf("%s  %9llu  %-8s  %s  %s\n", used, (unsigned long long)entry->bytes, entry->arch,
           entry->name, *entry->kernel ? entry->kernel : "(PTX)");
    return 0;
}

static int print_path(void)
{
    char path[PATH_MAX];
    size_t length = fusec_cache_path(path, sizeof path);
    if (length == 0 || length >= sizeof path) {
        complain("set FUSEC_CACHE_DIR to an absolute path", "there is no place for a cache");
        return EXIT_MACHINE;
    }
    puts(path);
    return EXIT_DONE;
}

static int clear_cache(void)
{
    fusec_error error;
    size_t count = 0;
    int status = finish_call(fusec_cache_clear(&count, &error), &error);
    if (status == EXIT_DONE) printf("%zu %s removed\n", count, count == 1 ? "entry" : "entries");
    return status;
}

int command_cache(Options *o)
{
    fusec_error error;
    switch ((CacheVerb)o->verb) {
    case CACHE_PATH: return print_path();
    case CACHE_CLEAR: return clear_cache();
    case CACHE_LIST: return finish_call(fusec_cache_list(print_entry, NULL, &error), &error);
    case CACHE_VERBS: break;
    }
    return EXIT_USAGE;
}
