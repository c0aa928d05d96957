/* safetensors.c: reads safetensors files for the command line.
 *
 * A file is read into memory, never mapped, so nothing happens when it shrinks. The header is
 * checked against the bytes that are really there before any tensor is used. */
#include "cli/safetensors.h"

#include "file_read.h"
#include "reason.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX = 8, MAX_HEADER = 100000000, SHOWN_NAME = 64, ALIGNMENT = 16 };

/* The file that is being read, and the buffer for a complaint. */
typedef struct {
    const char *path;
    TensorFile *file;
    char *message;
    size_t capacity;
    const char *data; /* behind the header */
    size_t data_length;
    size_t *begins, *ends; /* by tensor */
} Reader;

__attribute__((format(printf, 2, 3))) static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    const int length = snprintf(r->message, r->capacity, "%s: ", r->path);
    if (length >= 0 && (size_t)length < r->capacity) {
        va_start(args, format);
        vsnprintf(r->message + length, r->capacity - (size_t)length, format, args);
        va_end(args);
    }
    return false;
}

/* Memory or a device failed; the file is not at fault. */
static bool fail_machine(Reader *r, int why)
{
    r->file->machine_failed = why != ENOENT && why != ENOTDIR && why != EISDIR;
    return fail(r, "cannot be read: %s", reason_of(why));
}

/* `error` 0: the file is not fit to be read, for the reason in `why`. */
static bool fail_to_open(Reader *r, int error, const char *why)
{
    return error ? fail_machine(r, error) : fail(r, "cannot be read: %s", why);
}

/* A name that is safe to print: names come from the file. */
static const char *shown(const char *name, char text[SHOWN_NAME + 4])
{
    size_t length = strnlen(name, SHOWN_NAME + 1);
    const bool cut = length > SHOWN_NAME;
    if (cut)
        for (length = SHOWN_NAME; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
            length--;
    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
    memcpy(text + length, cut ? "..." : "", cut ? 4 : 1);
    return text;
}

#define fail_tensor(r, t, format, ...)                                                             \
    fail(r, "tensor '%s': " format, shown((t)->name, (char[SHOWN_NAME + 4]){0}), __VA_ARGS__)

int64_t tensor_count(const Tensor *tensor)
{
    int64_t count = 1;
    /* Where one size is 0 the others may be anything. */
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->sizes[i] == 0) return 0;
    for (int i = 0; i < tensor->rank; i++) count *= tensor->sizes[i];
    return count;
}

size_t tensor_bytes(const Tensor *tensor)
{
    return (size_t)tensor_count(tensor) * (size_t)dtype_info[tensor->dtype].bytes;
}

const Tensor *tensors_find(const TensorFile *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    return NULL;
}

/* ---- one tensor ---- */

static bool read_dtype(Reader *r, Tensor *t, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    if (!name) return fail_tensor(r, t, "%s", "has no dtype");
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtype_info[i].safetensors, name) == 0) {
            t->dtype = (DType)i;
            return true;
        }
    }
    return fail_tensor(r, t, "dtype '%s' is not one that fusec has",
                       shown(name, (char[SHOWN_NAME + 4]){0}));
}

static bool read_shape(Reader *r, Tensor *t, const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape");
    int64_t bytes = dtype_info[t->dtype].bytes;
    bool empty = false;
    if (!json_is_array(shape)) return fail_tensor(r, t, "%s", "has no shape");
    if (json_array_size(shape) > MAX_TENSOR_RANK)
        return fail_tensor(r, t, "has %zu axes, more than %d", json_array_size(shape),
                           MAX_TENSOR_RANK);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return fail_tensor(r, t, "size %zu of its shape is not a whole number >= 0", i);
        t->sizes[t->rank++] = json_integer_value(size);
        empty = empty || json_integer_value(size) == 0;
    }
    for (int i = 0; i < t->rank && !empty; i++)
        if (__builtin_mul_overflow(bytes, t->sizes[i], &bytes))
            return fail_tensor(r, t, "%s", "its shape is larger than any memory");
    return true;
}

static bool read_offset(const json_t *offsets, size_t index, size_t *offset)
{
    const json_t *value = json_array_get(offsets, index);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *offset = (size_t)json_integer_value(value);
    return true;
}

static bool read_offsets(Reader *r, Tensor *t, const json_t *entry)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const int index = r->file->count;
    size_t begin, end;
    if (json_array_size(offsets) != 2 || !read_offset(offsets, 0, &begin) ||
        !read_offset(offsets, 1, &end) || begin > end)
        return fail_tensor(r, t, "%s", "its data_offsets are not [begin, end]");
    if (end > r->data_length)
        return fail_tensor(r, t,
                           "its data ends at byte %zu of %zu: the file is truncated or "
                           "its header wrong",
                           end, r->data_length);
    if (end - begin != tensor_bytes(t))
        return fail_tensor(r, t, "%zu bytes of data for a shape of %zu bytes", end - begin,
                           tensor_bytes(t));
    r->begins[index] = begin;
    r->ends[index] = end;
    return true;
}

static bool read_tensor(Reader *r, const char *name, const json_t *entry)
{
    Tensor *t = &r->file->tensors[r->file->count];
    t->name = strdup(name);
    if (!t->name) return fail_machine(r, ENOMEM);
    const bool good =
        json_is_object(entry)
            ? read_dtype(r, t, entry) && read_shape(r, t, entry) && read_offsets(r, t, entry)
            : fail_tensor(r, t, "%s", "is not described by an object");
    r->file->count++; /* counted first, so that its name is freed */
    return good;
}

/* ---- all of them ---- */

typedef struct {
    size_t begin, end;
    const char *name;
} Extent;

static int compare_extents(const void *a, const void *b)
{
    const Extent *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->name && y->name ? strcmp(x->name, y->name) : 0;
}

static bool check_neighbours(Reader *r, const Extent *before, const Extent *after)
{
    char first[SHOWN_NAME + 4], second[SHOWN_NAME + 4];
    if (after->begin < before->end)
        return fail(r, "the data of tensors '%s' and '%s' overlaps", shown(before->name, first),
                    shown(after->name, second));
    if (after->begin > before->end)
        return fail(r, "bytes %zu to %zu of the data belong to no tensor", before->end,
                    after->begin);
    return true;
}

/* The format demands that tensors cover the data exactly: no holes, no overlaps, nothing behind. */
static bool check_cover(Reader *r)
{
    const TensorFile *file = r->file;
    Extent *extents = calloc((size_t)file->count + 2, sizeof *extents);
    if (!extents) return fail_machine(r, ENOMEM);
    for (int i = 0; i < file->count; i++)
        extents[i + 1] = (Extent){r->begins[i], r->ends[i], file->tensors[i].name};
    qsort(extents + 1, (size_t)file->count, sizeof *extents, compare_extents);
    extents[file->count + 1] = (Extent){r->data_length, r->data_length, "the end"};
    bool good = true;
    for (int i = 0; i <= file->count && good; i++)
        good = check_neighbours(r, &extents[i], &extents[i + 1]);
    free(extents);
    return good;
}

static bool is_aligned(const Reader *r)
{
    for (int i = 0; i < r->file->count; i++) {
        const size_t bytes = (size_t)dtype_info[r->file->tensors[i].dtype].bytes;
        if ((uintptr_t)(r->data + r->begins[i]) % bytes) return false;
    }
    return true;
}

static bool copy_data(Reader *r)
{
    size_t total = 1;
    for (int i = 0; i < r->file->count; i++)
        total += (r->ends[i] - r->begins[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *at = r->file->copy = malloc(total);
    if (!at) return fail_machine(r, ENOMEM);
    for (int i = 0; i < r->file->count; i++) {
        const size_t bytes = r->ends[i] - r->begins[i];
        memcpy(at, r->data + r->begins[i], bytes);
        r->file->tensors[i].data = at;
        at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return true;
}

static bool place_data(Reader *r)
{
    if (!is_aligned(r)) return copy_data(r);
    for (int i = 0; i < r->file->count; i++)
        r->file->tensors[i].data = (char *)(uintptr_t)(r->data + r->begins[i]);
    return true;
}

static bool read_tensors(Reader *r, json_t *header)
{
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) if (strcmp(name, "__metadata__") != 0 &&
                                                 !read_tensor(r, name, entry)) return false;
    return check_cover(r) && place_data(r);
}

static bool read_header(Reader *r, const char *text, size_t length)
{
    json_error_t error;
    errno = 0;
    json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!header && errno == ENOMEM) return fail_machine(r, ENOMEM);
    if (!json_is_object(header)) {
        json_decref(header);
        return header ? fail(r, "its header is not a JSON object")
                      : fail(r, "its header is not valid at byte %d: %s", PREFIX + error.position,
                             shown(error.text, (char[SHOWN_NAME + 4]){0}));
    }
    const size_t count = json_object_size(header) + 1;
    r->file->tensors = calloc(count, sizeof *r->file->tensors);
    r->begins = calloc(count, sizeof *r->begins);
    r->ends = calloc(count, sizeof *r->ends);
    const bool good = r->file->tensors && r->begins && r->ends ? read_tensors(r, header)
                                                               : fail_machine(r, ENOMEM);
    free(r->begins);
    free(r->ends);
    json_decref(header);
    return good;
}

static uint64_t header_length(const unsigned char *bytes)
{
    uint64_t length = 0;
    for (int i = PREFIX - 1; i >= 0; i--) length = length << 8 | bytes[i];
    return length;
}

static bool check_prefix(Reader *r, const void *bytes, size_t length)
{
    if (length < PREFIX) return fail(r, "is not a safetensors file: %zu bytes", length);
    const uint64_t header = header_length(bytes);
    if (header < 2 || header > MAX_HEADER)
        return fail(r, "is not a safetensors file: it claims a header of %" PRIu64 " bytes",
                    header);
    return true;
}

static bool parse(Reader *r, const char *bytes, size_t length)
{
    if (!check_prefix(r, bytes, length)) return false;
    const size_t header = (size_t)header_length((const unsigned char *)bytes);
    if (header > length - PREFIX)
        return fail(r, "its header of %zu bytes ends beyond the file: it is truncated", header);
    r->data = bytes + PREFIX + header;
    r->data_length = length - PREFIX - header;
    return read_header(r, bytes + PREFIX, header);
}

bool tensors_parse(void *bytes, size_t length, const char *name, TensorFile *file, char *message,
                   size_t capacity)
{
    Reader r = {.path = name, .file = file, .message = message, .capacity = capacity};
    *file = (TensorFile){0};
    if (parse(&r, bytes, length)) return true;
    tensors_close(file);
    return false;
}

/* ---- files ---- */

/* Reads up to `wanted` further bytes, fewer where the file ends. The caller asks for a limited
 * number at a time, so memory grows with what is read. */
static bool read_more(Reader *r, int fd, size_t wanted)
{
    TensorFile *file = r->file;
    char *grown = realloc(file->bytes, file->length + wanted + 1);
    if (!grown) return fail_machine(r, ENOMEM);
    file->bytes = grown;
    while (wanted > 0) {
        const ssize_t got = read(fd, grown + file->length, wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            r->file->machine_failed = true;
            return fail(r, "cannot be read at byte %zu: %s", file->length, reason_of(errno));
        }
        if (got == 0) return true;
        file->length += (size_t)got;
        wanted -= (size_t)got;
    }
    return true;
}

/* The end of the last tensor's data according to the header; wrong ends are reported later. False:
 * out of memory. */
static bool find_end(const char *header, size_t length, size_t *most)
{
    size_t end;
    const char *name;
    errno = 0;
    json_t *entry, *tensors = json_loadb(header, length, JSON_REJECT_DUPLICATES, NULL);
    *most = 0;
    if (!tensors && errno == ENOMEM) return false;
    json_object_foreach(tensors, name,
                        entry) if (read_offset(json_object_get(entry, "data_offsets"), 1, &end) &&
                                   end > *most) *most = end;
    json_decref(tensors);
    return true;
}

/* Reads up to `wanted` bytes, allocating memory for those that exist. `size` is that of the file, 0
 * for a pipe. */
static bool read_data(Reader *r, int fd, size_t wanted, size_t size)
{
    enum { STEP = 1 << 20 };
    size_t before;
    do {
        before = r->file->length;
        size_t step = before + STEP;
        if (size > before && size - before > step) step = size - before;
        if (!read_more(r, fd, wanted < step ? wanted : step)) return false;
        wanted -= r->file->length - before;
    } while (wanted > 0 && r->file->length > before);
    return true;
}

/* Checks each part before it reads the next, because a pipe may be endless and a file may grow.
 * Asks for one byte behind the last tensor. */
static bool read_parts(Reader *r, int fd, size_t size)
{
    if (!read_more(r, fd, PREFIX) || !check_prefix(r, r->file->bytes, r->file->length))
        return false;
    const size_t header = (size_t)header_length(r->file->bytes), begin = PREFIX + header;
    if (!read_data(r, fd, header, 0)) return false;
    if (r->file->length < begin) return true; /* it is then reported as truncated */
    size_t wanted;
    if (!find_end((const char *)r->file->bytes + PREFIX, header, &wanted))
        return fail_machine(r, ENOMEM);
    return read_data(r, fd, wanted < SIZE_MAX ? wanted + 1 : wanted, size);
}

static bool read_file(Reader *r, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) return fail_machine(r, errno);
    return read_parts(r, fd, S_ISREG(status.st_mode) ? (size_t)status.st_size : 0) &&
           parse(r, r->file->bytes, r->file->length);
}

bool tensors_read(const char *path, TensorFile *file, char *message, size_t capacity)
{
    char why[FILE_WHY];
    const bool standard = strcmp(path, "-") == 0;
    Reader r = {.path = standard ? "standard input" : path,
                .file = file,
                .message = message,
                .capacity = capacity};
    *file = (TensorFile){.owned = true};
    const int fd = standard ? STDIN_FILENO : file_open_stream(path, why);
    const bool good = fd >= 0 ? read_file(&r, fd) : fail_to_open(&r, errno, why);
    if (fd >= 0 && !standard) close(fd);
    if (!good) tensors_close(file);
    return good;
}

void tensors_close(TensorFile *file)
{
    for (int i = 0; i < file->count; i++) free(file->tensors[i].name);
    free(file->tensors);
    free(file->copy);
    if (file->owned) free(file->bytes);
    *file = (TensorFile){.machine_failed = file->machine_failed};
}
