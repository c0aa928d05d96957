/* cache.c: `fusec cache list|clear|path`. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"

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

static int put_entry(void *data, const fusec_cache_entry *entry)
{
    Text *out = data;
    text_print(out, "%s\n  {\"name\": ", out->length ? "," : "");
    text_quote(out, entry->name);
    text_print(out, ", \"arch\": ");
    text_quote(out, entry->arch);
    text_print(out, ", \"kernel\": ");
    if (*entry->kernel)
        text_quote(out, entry->kernel);
    else
        text_print(out, "null");
    text_print(out, ", \"bytes\": %llu, \"used\": %lld}", (unsigned long long)entry->bytes,
               (long long)entry->used);
    return 0;
}

/* `{"key": value}` */
static int print_member(const Options *o, const char *key, const char *value)
{
    Text *out = text_new(o->arena);
    text_print(out, "{\"%s\": %s}\n", key, value);
    return save_result(o->arena, NULL, text_string(out), out->length);
}

static int list_cache(const Options *o)
{
    fusec_error error;
    Text *entries = text_new(o->arena);
    int status = o->json ? finish_call(fusec_cache_list(put_entry, entries, &error), &error)
                         : finish_call(fusec_cache_list(print_entry, NULL, &error), &error);
    if (status != EXIT_DONE || !o->json) return status;
    return print_member(o, "entries", arena_format(o->arena, "[%s]", text_string(entries)));
}

static int print_path(const Options *o)
{
    char path[PATH_MAX];
    Text *quoted = text_new(o->arena);
    size_t length = fusec_cache_path(path, sizeof path);
    if (length == 0 || length >= sizeof path) {
        complain("set FUSEC_CACHE_DIR to an absolute path", "there is no place for a cache");
        return EXIT_MACHINE;
    }
    text_quote(quoted, path);
    if (o->json) return print_member(o, "path", text_string(quoted));
    puts(path);
    return EXIT_DONE;
}

static int clear_cache(const Options *o)
{
    fusec_error error;
    size_t count = 0;
    int status = finish_call(fusec_cache_clear(&count, &error), &error);
    if (status != EXIT_DONE) return status;
    if (o->json) return print_member(o, "removed", arena_format(o->arena, "%zu", count));
    printf("%zu %s removed\n", count, count == 1 ? "entry" : "entries");
    return EXIT_DONE;
}

int command_cache(Options *o)
{
    switch ((CacheVerb)o->verb) {
    case CACHE_PATH: return print_path(o);
    case CACHE_CLEAR: return clear_cache(o);
    case CACHE_LIST: return list_cache(o);
    case CACHE_VERBS: break;
    }
    return EXIT_USAGE;
}
