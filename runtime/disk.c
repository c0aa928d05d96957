/* disk.c: the disk cache. Each entry is one sealed file KEY.fusec in one directory. It holds the
 * whole key, so no entry is taken for another. The entry and the directory must belong to us alone.
 * An entry's modification time is its last use. Writers rename finished files into place, so
 * readers need no lock. */
#include "disk.h"

#include "cubin.h"
#include "error.h"
#include "library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

const char disk_magic[SEAL_MAGIC] = {'F', 'U', 'S', 'E', 'C', 'O', 'D', '2'};
static const char suffix[] = ".fusec";
enum { KEY_DIGITS = 32, NAME_LENGTH = KEY_DIGITS + sizeof suffix - 1 };
static const uint64_t default_cap = 256ull << 20;

DiskKey disk_key(const char *cuda, const char *arch, const char *option, const Nvrtc *nvrtc)
{
    char head[256];
    DiskKey key = {
        .version = FUSEC_VERSION, .arch = arch, .option = option ? option : "", .cuda = cuda};
    key.major = nvrtc->major;
    key.minor = nvrtc->minor;
    snprintf(head, sizeof head, "%s|%s|%s|%d.%d", key.version, key.arch, key.option, key.major,
             key.minor);
    XXH64_hash_t seed = XXH3_64bits(head, strlen(head));
    XXH128_hash_t hash = XXH3_128bits_withSeed(cuda, strlen(cuda), seed);
    snprintf(key.name, sizeof key.name, "%016llx%016llx%s", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64, suffix);
    return key;
}

static bool same_key(const DiskKey *a, const DiskKey *b)
{
    return a->major == b->major && a->minor == b->minor && strcmp(a->version, b->version) == 0 &&
           strcmp(a->arch, b->arch) == 0 && strcmp(a->option, b->option) == 0 &&
           strcmp(a->cuda, b->cuda) == 0;
}

/* ---- the directory ---- */

/* The directory that the environment names; "": it names none. */
static void name_directory(char path[PATH_MAX])
{
    const char *chosen = secure_getenv("FUSEC_CACHE_DIR");
    const char *xdg = environment_path("XDG_CACHE_HOME");
    const char *home = environment_path("HOME");
    int length = 0;
    if (chosen && *chosen)
        length = snprintf(path, PATH_MAX, "%s", chosen);
    else if (xdg)
        length = snprintf(path, PATH_MAX, "%s/fusec", xdg);
    else if (home)
        length = snprintf(path, PATH_MAX, "%s/.cache/fusec", home);
    if (length <= 0 || length >= PATH_MAX) *path = 0;
}

size_t fusec_cache_path(char *path, size_t size)
{
    OWN_ENVIRONMENT;
    char directory[PATH_MAX];
    name_directory(directory);
    if (*directory != '/') *directory = 0;
    if (path && size) snprintf(path, size, "%s", directory);
    return strlen(directory);
}

/* Whether a file that was not read is useless, not merely unreadable at the moment. */
static bool is_unusable(Sealed sealed, int error)
{
    return sealed == SEALED_REFUSED ||
           (sealed == SEALED_ABSENT && (error == EISDIR || error == EACCES));
}

/* Refuses a directory that is not ours alone. */
static int check_directory(int directory, const char *path, char *why, size_t size)
{
    struct stat about;
    int error = fstat(directory, &about) == 0 ? EPERM : errno;
    const char *reason = error == EPERM ? file_distrust(&about) : reason_of(error);
    if (!reason) return directory;
    snprintf(why, size, "the disk cache %.300s is not used: %s", path, reason);
    close(directory);
    errno = error;
    return -1;
}

/* Opens the directory; `make`: creates it where it is missing. -1: `why` says why; errno is ENOENT
 * where there is merely none so far. */
static int open_cache(bool make, char *why, size_t size)
{
    char path[PATH_MAX];
    name_directory(path);
    if (*path != '/') {
        if (*path)
            snprintf(why, size, "the disk cache %.300s is not used: its path is not absolute",
                     path);
        else
            snprintf(why, size, "no directory for the disk cache: set FUSEC_CACHE_DIR");
        errno = *path ? EPERM : ENOENT;
        return -1;
    }
    size_t length = strlen(path);
    while (length > 1 &&
           path[length - 1] == '/') /* a link is followed where a slash stands behind it */
        path[--length] = 0;
    int directory = -1;
    if (!make || make_directories(path)) do
            directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        while (directory < 0 && errno == EINTR);
    if (directory >= 0) return check_directory(directory, path, why, size);
    struct stat about;
    int error = errno;
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode))
        snprintf(why, size, "the disk cache %.300s is not used: it is a symbolic link", path);
    else
        snprintf(why, size, "the disk cache %.300s cannot be %s (%s); going on without it", path,
                 make ? "written" : "read", reason_of(error));
    errno = error;
    return -1;
}

/* ---- loading, storing ---- */

void disk_encode(Writer *w, const DiskEntry *entry)
{
    const char *const texts[] = {entry->key.version, entry->key.arch, entry->key.option,
                                 entry->key.cuda, entry->kernel};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_string(w, texts[i], strlen(texts[i]));
    put_int(w, entry->key.major);
    put_int(w, entry->key.minor);
    put_double(w, entry->milliseconds);
    put_string(w, entry->log, entry->log_bytes);
    put_string(w, entry->binary, entry->binary_bytes);
}

bool disk_decode(const char *payload, size_t bytes, DiskEntry *entry)
{
    Reader r = {payload, bytes, false};
    *entry = (DiskEntry){0};
    entry->key.version = get_string(&r, NULL);
    entry->key.arch = get_string(&r, NULL);
    entry->key.option = get_string(&r, NULL);
    entry->key.cuda = get_string(&r, NULL);
    entry->kernel = get_string(&r, NULL);
    entry->key.major = (int)get_range(&r, 0, INT_MAX);
    entry->key.minor = (int)get_range(&r, 0, INT_MAX);
    entry->milliseconds = get_double(&r);
    entry->log = get_string(&r, &entry->log_bytes);
    entry->binary = get_string(&r, &entry->binary_bytes);
    return !r.failed && !r.left && entry->binary_bytes;
}

/* The shortest of the kernels' names; the others have endings behind it. "": none is known. */
static const char *main_kernel_name(const char *code, size_t bytes)
{
    const char *found = "";
    for (int i = 0;; i++) {
        const char *name = cubin_kernel_name(code, bytes, i);
        if (!name) return found;
        if (!*found || strlen(name) < strlen(found)) found = name;
    }
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

static void drop_entry(int directory, const char *name)
{
    if (unlinkat(directory, name, 0) != 0) unlinkat(directory, name, AT_REMOVEDIR);
}

/* Whether these bytes are the entry of that key, with code that matches it. */
static bool holds_key(const char *data, size_t bytes, const DiskKey *key, DiskEntry *entry)
{
    return disk_decode(data, bytes, entry) && same_key(&entry->key, key) &&
           strcmp(main_kernel_name(entry->binary, entry->binary_bytes), entry->kernel) == 0;
}

static bool load_entry(int directory, const DiskKey *key, Code *code)
{
    char *data, why[FILE_WHY];
    size_t bytes;
    DiskEntry entry;
    Sealed sealed =
        file_read_sealed(directory, key->name, FILE_OF_OURS, disk_magic, &data, &bytes, why);
    bool unusable = is_unusable(sealed, errno),
         right = sealed == SEALED_OK && holds_key(data, bytes, key, &entry);
    bool loaded = right && copy_code(&entry, code);
    free(data);
    if (loaded)
        utimensat(directory, key->name, NULL, AT_SYMLINK_NOFOLLOW);
    else if (unusable || (sealed == SEALED_OK && !right))
        drop_entry(directory, key->name);
    return loaded;
}

bool disk_load(const DiskKey *key, Code *code)
{
    char why[512];
    *code = (Code){0};
    int directory = open_cache(false, why, sizeof why);
    if (directory < 0) return false;
    bool loaded = load_entry(directory, key, code);
    close(directory);
    return loaded;
}

static bool is_entry(const void *unused, const char *name)
{
    (void)unused;
    return strlen(name) == NAME_LENGTH && strspn(name, "0123456789abcdef") == KEY_DIGITS &&
           strcmp(name + KEY_DIGITS, suffix) == 0;
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
    const Entry *one = a, *other = b;
    const struct timespec *x = &one->used, *y = &other->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? 1 : -1;
    if (x->tv_nsec != y->tv_nsec) return x->tv_nsec < y->tv_nsec ? 1 : -1;
    return strcmp(one->name, other->name);
}

static bool add_entry(Entries *entries, const char *name, const struct stat *about)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 64;
        Entry *grown = realloc(entries->data, capacity * sizeof *grown);
        if (!grown) return false;
        entries->data = grown;
        entries->capacity = capacity;
    }
    Entry *entry = &entries->data[entries->count++];
    memcpy(entry->name, name, NAME_LENGTH + 1);
    entry->bytes = (uint64_t)about->st_size;
    entry->used = about->st_mtim;
    return true;
}

/* All entries, most recently used first. */
static bool read_entries(int directory, Entries *entries)
{
    *entries = (Entries){0};
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (!dir) {
        if (again >= 0) close(again);
        return false;
    }
    bool ok = true;
    for (struct dirent *item; ok && (errno = 0, item = readdir(dir)) != NULL;) {
        struct stat about;
        if (!is_entry(NULL, item->d_name)) continue;
        if (fstatat(directory, item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0)
            ok = errno == ENOENT;
        else if (!S_ISDIR(about.st_mode))
            ok = add_entry(entries, item->d_name, &about);
    }
    int why = errno; /* of readdir, where that ended the list */
    closedir(dir);
    if (entries->count)
        qsort(entries->data, entries->count, sizeof *entries->data, compare_entries);
    errno = why;
    return ok && !why;
}

/* False where the environment's size is no size; *cap is then the default. */
static bool size_cap(uint64_t *cap)
{
    const char *text = secure_getenv("FUSEC_CACHE_BYTES");
    char *end;
    *cap = default_cap;
    if (!text || !*text) return true;
    errno = 0;
    uint64_t asked = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno) return false;
    *cap = asked;
    return true;
}

/* Keeps the most recently used entries that fit below the cap. */
static void drop_old_entries(int directory, uint64_t cap)
{
    Entries entries;
    uint64_t total = 0;
    file_sweep(directory, is_entry, NULL);
    read_entries(directory, &entries);
    for (size_t i = 0; i < entries.count; i++) {
        total += entries.data[i].bytes;
        if (total > cap) drop_entry(directory, entries.data[i].name);
    }
    free(entries.data);
}

/* Whatever the umask, only we may write to an entry. */
static bool write_entry(int directory, const DiskKey *key, const Writer *payload)
{
    NewFile file;
    if (!file_begin_at(&file, directory, key->name, S_IRUSR | S_IWUSR)) return false;
    if (put_sealed(&file, disk_magic, payload)) return file_finish(&file);
    file_drop(&file);
    return false;
}

static bool store_entry(int directory, const DiskKey *key, const Code *code)
{
    DiskEntry entry = {*key,
                       main_kernel_name(code->data, code->bytes),
                       code->milliseconds,
                       code->log,
                       code->data,
                       strlen(code->log),
                       code->bytes};
    Writer w = {0};
    disk_encode(&w, &entry);
    errno = ENOMEM;
    bool ok = !w.failed && write_entry(directory, key, &w);
    int error = errno;
    writer_free(&w);
    errno = error;
    return ok;
}

bool disk_store(const DiskKey *key, const Code *code, char *why, size_t size)
{
    uint64_t cap;
    int directory = open_cache(true, why, size);
    if (directory < 0) return false;
    bool ok = store_entry(directory, key, code);
    if (!ok) {
        int error = errno;
        char path[PATH_MAX];
        name_directory(path);
        snprintf(why, size, "the disk cache %.300s cannot be written (%s); going on without it",
                 path, reason_of(error));
    } else if (!size_cap(&cap)) {
        snprintf(why, size,
                 "FUSEC_CACHE_BYTES is not a number of bytes: '%.64s'; the disk cache keeps %llu",
                 secure_getenv("FUSEC_CACHE_BYTES"), (unsigned long long)cap);
        ok = false;
        drop_old_entries(directory, cap);
    } else {
        drop_old_entries(directory, cap);
    }
    close(directory);
    return ok;
}

/* ---- for `fusec cache` ---- */

/* Describes an entry, unless it is gone, damaged or not to be trusted; false with errno set if it
 * cannot be read. */
static bool list_entry(int directory, const Entry *found,
                       int (*entry)(void *data, const fusec_cache_entry *entry), void *data,
                       bool *stop)
{
    char *payload, why[FILE_WHY];
    size_t bytes;
    Sealed sealed =
        file_read_sealed(directory, found->name, FILE_OF_OURS, disk_magic, &payload, &bytes, why);
    if (sealed != SEALED_OK) return is_unusable(sealed, errno) || errno == ENOENT;
    DiskEntry holds;
    if (disk_decode(payload, bytes, &holds)) {
        fusec_cache_entry about = {
            .struct_size = sizeof about, .name = found->name, .bytes = found->bytes};
        about.used = (int64_t)found->used.tv_sec;
        about.arch = holds.key.arch;
        about.kernel = holds.kernel;
        *stop = entry(data, &about) != 0;
    }
    free(payload);
    return true;
}

/* Opens the directory and lists its entries. OK with *directory -1: there is none, and no entry. */
static fusec_status open_entries(int *directory, Entries *entries, fusec_error *error)
{
    char why[512];
    *entries = (Entries){0};
    *directory = open_cache(false, why, sizeof why);
    if (*directory < 0)
        return errno == ENOENT
                   ? FUSEC_OK
                   : fail(error, errno == ENOMEM ? FUSEC_OUT_OF_MEMORY : FUSEC_IO_ERROR, "%s", why);
    if (read_entries(*directory, entries)) return FUSEC_OK;
    fusec_status status = fail_errno(error, errno, "the disk cache cannot be read");
    free(entries->data);
    close(*directory);
    return status;
}

fusec_status fusec_cache_list(int (*entry)(void *data, const fusec_cache_entry *entry), void *data,
                              fusec_error *error)
{
    OWN_ENVIRONMENT;
    Entries entries;
    int directory, why = 0;
    bool stop = false;
    if (!entry)
        return fail(error, FUSEC_INVALID_ARGUMENT, "the function to call for each entry is NULL");
    fusec_status status = open_entries(&directory, &entries, error);
    if (status != FUSEC_OK) return status;
    for (size_t i = 0; i < entries.count && !stop; i++)
        if (!list_entry(directory, &entries.data[i], entry, data, &stop)) why = errno;
    free(entries.data);
    if (directory >= 0) close(directory);
    if (why) return fail_errno(error, why, "the disk cache cannot be read");
    return succeed(error);
}

/* Another process may clear it at the same time. Files that writers have not finished stay. */
fusec_status fusec_cache_clear(size_t *count, fusec_error *error)
{
    OWN_ENVIRONMENT;
    Entries entries;
    int directory, why = 0;
    size_t removed = 0;
    fusec_status status = open_entries(&directory, &entries, error);
    if (status != FUSEC_OK) return status;
    for (size_t i = 0; i < entries.count; i++) {
        if (unlinkat(directory, entries.data[i].name, 0) == 0)
            removed++;
        else if (errno != ENOENT)
            why = errno;
    }
    free(entries.data);
    if (directory >= 0) {
        file_sweep(directory, is_entry, NULL);
        close(directory);
    }
    if (why) return fail_errno(error, why, "the disk cache cannot be cleared");
    if (count) *count = removed;
    return succeed(error);
}
