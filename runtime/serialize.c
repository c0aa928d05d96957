/* serialize.c: the byte format of our files (little-endian, like every machine with an NVIDIA
 * GPU). */
#include "serialize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    if (w->failed || !length) return;
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
    if (take(r, &type, 1) && type != magic_of_type[item]) r->failed = true;
    return !r->failed;
}

int64_t get_int(Reader *r)
{
    int64_t value = 0;
    if (take_type(r, ITEM_INT)) take(r, &value, sizeof value);
    return value;
}

int64_t get_range(Reader *r, int64_t least, int64_t most)
{
    int64_t value = get_int(r);
    if (value >= least && value <= most) return value;
    r->failed = true;
    return least;
}

double get_double(Reader *r)
{
    double value = 0;
    if (take_type(r, ITEM_DOUBLE)) take(r, &value, sizeof value);
    return value;
}

const char *get_string(Reader *r, size_t *length)
{
    uint64_t size = 0;
    if (length) *length = 0;
    if (!take_type(r, ITEM_STRING) || !take(r, &size, sizeof size) || size >= r->left ||
        r->data[size] != 0) {
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

/* ---- files ---- */

bool file_replace(const char *path, const void *head, size_t head_bytes, const void *data,
                  size_t bytes)
{
    NewFile file;
    if (!file_begin(&file, path, 0666)) return false;
    if (file_put(&file, head, head_bytes) && file_put(&file, data, bytes))
        return file_finish(&file);
    file_drop(&file);
    return false;
}

bool put_sealed(NewFile *file, const char magic[SEAL_MAGIC], const Writer *payload)
{
    Seal seal = {.length = payload->length};
    memcpy(seal.magic, magic, SEAL_MAGIC);
    XXH128_canonicalFromHash(&seal.checksum, XXH3_128bits(payload->data, payload->length));
    return file_put(file, &seal, sizeof seal) && file_put(file, payload->data, payload->length);
}

bool file_write_sealed(const char *path, const char magic[SEAL_MAGIC], const Writer *payload)
{
    NewFile file;
    if (!file_begin(&file, path, 0666)) return false;
    if (put_sealed(&file, magic, payload)) return file_finish(&file);
    file_drop(&file);
    return false;
}

bool make_directories(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        int made = mkdir(path, 0700);
        int why = errno;
        *slash = '/';
        if (made != 0 && why != EEXIST && why != EROFS && why != EACCES) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Whether the seal is valid, and fits a file of `size` bytes. */
static bool seal_fits(const Seal *seal, const char magic[SEAL_MAGIC], uint64_t size)
{
    return memcmp(seal->magic, magic, SEAL_MAGIC) == 0 && size >= sizeof *seal &&
           size - sizeof *seal == seal->length;
}

static bool seal_holds(const Seal *seal, const char *payload)
{
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(payload, (size_t)seal->length));
    return memcmp(&sum, &seal->checksum, sizeof sum) == 0;
}

const char *unseal(const char *file, size_t size, const char magic[SEAL_MAGIC], size_t *bytes)
{
    Seal seal;
    const char *payload = file + sizeof seal;
    if (size < sizeof seal) return NULL;
    memcpy(&seal, file, sizeof seal);
    if (!seal_fits(&seal, magic, size) || !seal_holds(&seal, payload)) return NULL;
    *bytes = (size_t)seal.length;
    return payload;
}

Sealed file_read_sealed(int directory, const char *path, FileTrust trust,
                        const char magic[SEAL_MAGIC], char **data, size_t *bytes,
                        char why[FILE_WHY])
{
    size_t size;
    *data = NULL;
    *bytes = 0;
    char *file = file_read(directory, path, trust, MAX_SEALED, &size, why);
    if (!file) return errno ? SEALED_ABSENT : SEALED_REFUSED;
    const char *payload = unseal(file, size, magic, bytes);
    if (!payload) {
        snprintf(why, FILE_WHY, "its checksum or its length is wrong");
        free(file);
        return SEALED_REFUSED;
    }
    memmove(file, payload, *bytes);
    *data = file;
    return SEALED_OK;
}
