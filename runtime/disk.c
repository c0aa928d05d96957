/* disk.c: the disk cache. Each entry is one sealed file KEY.fusec in one directory; the
 * key hashes all that the code depends on, so that entries are never wrong, only unused.
 * Its modification time is its last use. Writers rename finished files into place, so
 * readers need no lock. */
#include "disk.h"

#include "cubin.h"
#include "error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

const char disk_magic[SEAL_MAGIC] = {'F', 'U', 'S', 'E', 'C', 'O', 'D', '1'};
static const char suffix[] = ".fusec";
enum { KEY_DIGITS = 32, NAME_LENGTH = KEY_DIGITS + sizeof suffix - 1 };
enum { STALE_SECONDS = 3600 };
static const uint64_t default_cap = 256ull << 20;

DiskKey disk_key(const char *cuda, const char *arch, const char *option,
                 const Nvrtc *nvrtc)
{
    char head[256];
    int length = snprintf(head, sizeof head, "%s|%s|%s|%d.%d", FUSEC_VERSION, arch,
                          option ? option : "", nvrtc->major, nvrtc->minor);
    XXH64_hash_t seed = XXH3_64bits(head, (size_t)length);
    XXH128_hash_t hash = XXH3_128bits_withSeed(cuda, strlen(cuda), seed);
    DiskKey key;
    snprintf(key.name, sizeof key.name, "%016llx%016llx%s",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64, suffix);
    return key;
}

/* The directory; 0 if the environment names none, else its length. */
static size_t cache_directory(char path[PATH_MAX])
{
    const char *chosen = getenv("FUSEC_CACHE_DIR");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    if (chosen && *chosen)
        length = snprintf(path, PATH_MAX, "%s", chosen);
    else if (xdg && *xdg == '/')
        length = snprintf(path, PATH_MAX, "%s/fusec", xdg);
    else if (home && *home)
        length = snprintf(path, PATH_MAX, "%s/.cache/fusec", home);
    return length > 0 && length < PATH_MAX ? (size_t)length : 0;
}

size_t fusec_cache_path(char *path, size_t size)
{
    char directory[PATH_MAX];
    size_t length = cache_directory(directory);
    if (size)
        snprintf(path, size, "%s", length ? directory : "");
    return length;
}

static bool entry_path(const char *name, char path[PATH_MAX])
{
    char directory[PATH_MAX];
    if (!cache_directory(directory))
        return false;
    int length = snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 64, directory, name);
    return length > 0 && length < PATH_MAX;
}

/* ------------------------------------------------------------------------- loading,
 * storing -- */

void disk_encode(Writer *w, const DiskEntry *entry)
{
    put_string(w, entry->arch, strlen(entry->arch));
    put_string(w, entry->kernel, strlen(entry->kernel));
    put_double(w, entry->milliseconds);
    put_string(w, entry->log, entry->log_bytes);
    put_string(w, entry->binary, entry->binary_bytes);
}

bool disk_decode(const char *payload, size_t bytes, DiskEntry *entry)
{
    Reader r = {payload, bytes, false};
    entry->arch = get_string(&r, NULL);
    entry->kernel = get_string(&r, NULL);
    entry->milliseconds = get_double(&r);
    entry->log = get_string(&r, &entry->log_bytes);
    entry->binary = get_string(&r, &entry->binary_bytes);
    return !r.failed && !r.left && entry->binary_bytes;
}

static bool copy_code(const DiskEntry *entry, Code *code)
{
    *code = (Code){.bytes = entry->binary_bytes, .milliseconds = entry->milliseconds};
    code->log = malloc(entry->log_bytes + 1);
    code->data = malloc(entry->binary_bytes + 1);
    if (!code->log || !code->data) {
        code_free(code);
        return false;
    }
    memcpy(code->log, entry->log, entry->log_bytes + 1);
    memcpy(code->data, entry->binary, entry->binary_bytes + 1);
    return true;
}

bool disk_load(const DiskKey *key, Code *code)
{
    char path[PATH_MAX], *data;
    size_t bytes;
    *code = (Code){0};
    if (!entry_path(key->name, path))
        return false;
    DiskEntry entry;
    Sealed sealed = file_read_sealed(path, disk_magic, &data, &bytes);
    bool ok = sealed == SEALED_OK && disk_decode(data, bytes, &entry)
              && copy_code(&entry, code);
    free(data);
    if (ok)
        utimensat(AT_FDCWD, path, NULL, 0);
    else if (sealed != SEALED_ABSENT)
        unlink(path);
    return ok;
}

static bool is_entry(const char *name)
{
    return strlen(name) == NAME_LENGTH && strspn(name, "0123456789abcdef") == KEY_DIGITS
           && strcmp(name + KEY_DIGITS, suffix) == 0;
}

static bool is_temporary(const char *name)
{
    return strlen(name) > NAME_LENGTH && strspn(name, "0123456789abcdef") == KEY_DIGITS
           && strncmp(name + NAME_LENGTH, ".tmp-", 5) == 0;
}

typedef struct {
    char name[NAME_LENGTH + 1];
    uint64_t bytes;
    struct timespec used;
} Entry;

typedef struct {
    Entry *data;
    size_t count, capacity;
} Entries;

static int compare_entries(const void *a, const void *b)
{
    const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? 1 : -1;
    return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

static bool add_entry(Entries *entries, const char *name, const struct stat *about)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 64;
        Entry *grown = realloc(entries->data, capacity * sizeof *grown);
        if (!grown)
            return false;
        entries->data = grown;
        entries->capacity = capacity;
    }
    Entry *entry = &entries->data[entries->count++];
    memcpy(entry->name, name, NAME_LENGTH + 1);
    entry->bytes = (uint64_t)about->st_size;
    entry->used = about->st_mtim;
    return true;
}

/* All entries, most recently used first. Temporary files older than `stale_before` are
 * removed: their writers are gone. */
static bool read_entries(Entries *entries, time_t stale_before)
{
    char directory[PATH_MAX];
    *entries = (Entries){0};
    if (!cache_directory(directory))
        return true;
    DIR *dir = opendir(directory);
    if (!dir)
        return errno == ENOENT;
    bool ok = true;
    for (struct dirent *item; ok && (item = readdir(dir)) != NULL;) {
        struct stat about;
        bool temporary = is_temporary(item->d_name);
        if ((!temporary && !is_entry(item->d_name))
            || fstatat(dirfd(dir), item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0
            || !S_ISREG(about.st_mode))
            continue;
        if (!temporary)
            ok = add_entry(entries, item->d_name, &about);
        else if (about.st_mtim.tv_sec < stale_before)
            unlinkat(dirfd(dir), item->d_name, 0);
    }
    closedir(dir);
    if (entries->count)
        qsort(entries->data, entries->count, sizeof *entries->data, compare_entries);
    return ok;
}

/* False where the environment says a size that is none; *cap is the default then. */
static bool size_cap(uint64_t *cap)
{
    const char *text = getenv("FUSEC_CACHE_BYTES");
    char *end;
    *cap = default_cap;
    if (!text || !*text)
        return true;
    errno = 0;
    uint64_t asked = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return false;
    *cap = asked;
    return true;
}

/* Keeps the most recently used entries that fit below the cap. */
static void drop_old_entries(uint64_t cap)
{
    Entries entries;
    char path[PATH_MAX];
    uint64_t total = 0;
    read_entries(&entries, time(NULL) - STALE_SECONDS);
    for (size_t i = 0; i < entries.count; i++) {
        total += entries.data[i].bytes;
        if (total > cap && entry_path(entries.data[i].name, path))
            unlink(path);
    }
    free(entries.data);
}

/* The shortest of its kernels' names, which the others have before endings of their own; "": none is known. */
static const char *main_kernel_name(const Code *code)
{
    const char *found = "";
    for (int i = 0;; i++) {
        const char *name = cubin_kernel_name(code->data, code->bytes, i);
        if (!name) return found;
        if (!*found || strlen(name) < strlen(found)) found = name;
    }
}

bool disk_store(const DiskKey *key, const char *arch, const Code *code, char *why,
                size_t size)
{
    char directory[PATH_MAX], path[PATH_MAX];
    if (!cache_directory(directory) || !entry_path(key->name, path)) {
        snprintf(why, size, "no directory for the disk cache: set FUSEC_CACHE_DIR");
        return false;
    }
    DiskEntry entry = {arch, main_kernel_name(code), code->milliseconds,
                       code->log, code->data, strlen(code->log), code->bytes};
    Writer w = {0};
    disk_encode(&w, &entry);
    bool ok = !w.failed && make_directories(directory)
              && file_write_sealed(path, disk_magic, &w);
    if (!ok)
        snprintf(why, size,
                 "the disk cache %.300s cannot be written (%s); going on without it",
                 directory, strerror(w.failed ? ENOMEM : errno));
    writer_free(&w);
    if (!ok)
        return false;
    uint64_t cap;
    ok = size_cap(&cap);
    if (!ok)
        snprintf(why, size, "FUSEC_CACHE_BYTES is no number of bytes: '%.64s'; the disk cache keeps %llu",
                 getenv("FUSEC_CACHE_BYTES"), (unsigned long long)cap);
    drop_old_entries(cap);
    return ok;
}

/* ------------------------------------------------------------------------ for `fusec
 * cache` -- */

/* Describes an entry; false if it is gone or damaged. */
static bool list_entry(const Entry *found,
                       int (*entry)(void *data, const fusec_cache_entry *entry),
                       void *data, bool *stop)
{
    char path[PATH_MAX], *payload;
    size_t bytes;
    if (!entry_path(found->name, path)
        || file_read_sealed(path, disk_magic, &payload, &bytes) != SEALED_OK)
        return false;
    DiskEntry holds;
    bool ok = disk_decode(payload, bytes, &holds);
    if (ok) {
        fusec_cache_entry about = {.name = found->name, .bytes = found->bytes};
        about.used = (int64_t)found->used.tv_sec;
        about.arch = holds.arch;
        about.kernel = holds.kernel;
        *stop = entry(data, &about) != 0;
    }
    free(payload);
    return ok;
}

fusec_status fusec_cache_list(int (*entry)(void *data, const fusec_cache_entry *entry),
                              void *data, fusec_error *error)
{
    Entries entries;
    if (!entry)
        return fail(error, FUSEC_INVALID_ARGUMENT, "no function to call for the entries");
    bool ok = read_entries(&entries, 0), stop = false;
    int why = errno;
    for (size_t i = 0; i < entries.count && !stop; i++)
        list_entry(&entries.data[i], entry, data, &stop);
    free(entries.data);
    if (!ok)
        return fail(error, FUSEC_IO_ERROR, "the disk cache cannot be read: %s",
                    strerror(why));
    return succeed(error);
}

fusec_status fusec_cache_clear(size_t *count, fusec_error *error)
{
    Entries entries;
    char path[PATH_MAX];
    size_t removed = 0;
    bool ok = read_entries(&entries, time(NULL) + 1);
    int why = errno;
    for (size_t i = 0; i < entries.count; i++) {
        if (entry_path(entries.data[i].name, path) && unlink(path) == 0) {
            removed++;
        } else if (errno != ENOENT) {
            ok = false;
            why = errno;
        }
    }
    free(entries.data);
    if (!ok)
        return fail(error, FUSEC_IO_ERROR, "the disk cache cannot be cleared: %s",
                    strerror(why));
    if (count)
        *count = removed;
    return succeed(error);
}
