/* bytes.c: the byte format of our files (little-endian, as every machine with an NVIDIA
 * GPU is). */
#include "bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct {
    char magic[SEAL_MAGIC];
    uint64_t length;
    XXH128_canonical_t checksum;
} Seal;

static const char magic_of_type[] = "isd"; /* every item begins with its type */
enum { ITEM_INT, ITEM_STRING, ITEM_DOUBLE };

void put_bytes(Writer *w, const void *bytes, size_t length)
{
    if (w->failed || !length)
        return;
    if (length > w->capacity - w->length) {
        size_t capacity = (w->length + length) * 2;
        char *grown = realloc(w->data, capacity);
        if (!grown) {
            w->failed = true;
            return;
        }
        w->data = grown;
        w->capacity = capacity;
    }
    memcpy(w->data + w->length, bytes, length);
    w->length += length;
}

void put_int(Writer *w, int64_t value)
{
    put_bytes(w, &magic_of_type[ITEM_INT], 1);
    put_bytes(w, &value, sizeof value);
}

void put_double(Writer *w, double value)
{
    put_bytes(w, &magic_of_type[ITEM_DOUBLE], 1);
    put_bytes(w, &value, sizeof value);
}

void put_string(Writer *w, const char *text, size_t length)
{
    uint64_t size = length;
    put_bytes(w, &magic_of_type[ITEM_STRING], 1);
    put_bytes(w, &size, sizeof size);
    put_bytes(w, text, length);
    put_bytes(w, "", 1);
}

void writer_free(Writer *w)
{
    free(w->data);
    *w = (Writer){0};
}

static bool take(Reader *r, void *to, size_t length)
{
    if (r->failed || length > r->left) {
        r->failed = true;
        memset(to, 0, length);
        return false;
    }
    memcpy(to, r->data, length);
    r->data += length;
    r->left -= length;
    return true;
}

static bool take_type(Reader *r, int item)
{
    char type;
    if (take(r, &type, 1) && type != magic_of_type[item])
        r->failed = true;
    return !r->failed;
}

int64_t get_int(Reader *r)
{
    int64_t value = 0;
    if (take_type(r, ITEM_INT))
        take(r, &value, sizeof value);
    return value;
}

int64_t get_range(Reader *r, int64_t least, int64_t most)
{
    int64_t value = get_int(r);
    if (value >= least && value <= most)
        return value;
    r->failed = true;
    return least;
}

double get_double(Reader *r)
{
    double value = 0;
    if (take_type(r, ITEM_DOUBLE))
        take(r, &value, sizeof value);
    return value;
}

const char *get_string(Reader *r, size_t *length)
{
    uint64_t size = 0;
    if (length)
        *length = 0;
    if (!take_type(r, ITEM_STRING) || !take(r, &size, sizeof size) || size >= r->left
        || r->data[size] != 0) {
        r->failed = true;
        return "";
    }
    const char *text = r->data;
    r->data += size + 1;
    r->left -= (size_t)size + 1;
    if (length)
        *length = (size_t)size;
    else if (strlen(text) != size)
        r->failed = true;
    return text;
}

/* ----------------------------------------------------------------------------------
 * files -- */

static bool write_all(int file, const void *data, size_t length)
{
    const char *bytes = data;
    while (length) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

/* A new file beside `path`; its name goes to `name`. */
static int open_temporary(const char *path, char name[PATH_MAX])
{
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        unsigned long unique =
            (unsigned long)now.tv_nsec * 101u + (unsigned long)(uintptr_t)name;
        int length =
            snprintf(name, PATH_MAX, "%s.tmp-%ld-%lx", path, (long)getpid(), unique);
        if (length < 0 || length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

bool file_replace(const char *path, const void *head, size_t head_bytes, const void *data,
                  size_t bytes)
{
    char name[PATH_MAX];
    int file = open_temporary(path, name);
    if (file < 0)
        return false;
    bool ok = write_all(file, head, head_bytes) && write_all(file, data, bytes)
              && fsync(file) == 0;
    int why = errno;
    if (close(file) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(name, path) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok)
        unlink(name);
    errno = why;
    return ok;
}

bool file_write_sealed(const char *path, const char magic[SEAL_MAGIC],
                       const Writer *payload)
{
    Seal seal = {.length = payload->length};
    memcpy(seal.magic, magic, SEAL_MAGIC);
    XXH128_canonicalFromHash(&seal.checksum,
                             XXH3_128bits(payload->data, payload->length));
    return file_replace(path, &seal, sizeof seal, payload->data, payload->length);
}

bool make_directories(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        int made = mkdir(path, 0700);
        int why = errno;
        *slash = '/';
        if (made != 0 && why != EEXIST && why != EROFS && why != EACCES)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool read_all(int file, void *data, size_t length)
{
    char *bytes = data;
    while (length) {
        ssize_t got = read(file, bytes, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        length -= (size_t)got;
    }
    return true;
}

/* Whether the seal is one, and of a file of `size` bytes. */
static bool seal_fits(const Seal *seal, const char magic[SEAL_MAGIC], uint64_t size)
{
    return memcmp(seal->magic, magic, SEAL_MAGIC) == 0 && size >= sizeof *seal
           && size - sizeof *seal == seal->length;
}

static bool seal_holds(const Seal *seal, const char *payload)
{
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(payload, (size_t)seal->length));
    return memcmp(&sum, &seal->checksum, sizeof sum) == 0;
}

const char *unseal(const char *file, size_t size, const char magic[SEAL_MAGIC],
                   size_t *bytes)
{
    Seal seal;
    const char *payload = file + sizeof seal;
    if (size < sizeof seal)
        return NULL;
    memcpy(&seal, file, sizeof seal);
    if (!seal_fits(&seal, magic, size) || !seal_holds(&seal, payload))
        return NULL;
    *bytes = (size_t)seal.length;
    return payload;
}

/* Like unseal(), but a file with another length than it says is not read at all. */
static Sealed read_sealed(int file, const char magic[SEAL_MAGIC], char **data,
                          size_t *bytes)
{
    Seal seal;
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)
        || !read_all(file, &seal, sizeof seal)
        || !seal_fits(&seal, magic, (uint64_t)about.st_size))
        return SEALED_DAMAGED;
    char *payload = malloc((size_t)seal.length + 1);
    if (!payload)
        return SEALED_ABSENT;
    if (!read_all(file, payload, (size_t)seal.length) || !seal_holds(&seal, payload)) {
        free(payload);
        return SEALED_DAMAGED;
    }
    *data = payload;
    *bytes = (size_t)seal.length;
    return SEALED_OK;
}

Sealed file_read_sealed(const char *path, const char magic[SEAL_MAGIC], char **data,
                        size_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return SEALED_ABSENT;
    Sealed result = read_sealed(file, magic, data, bytes);
    int why = errno;
    close(file);
    errno = why;
    return result;
}
