/* safetensors_write.c: writes safetensors files for the command line.
 *
 * No reader ever sees an incomplete file (file_write.h). Tensors with the widest elements come
 * first, so all of them are aligned without holes. */
#include "cli/safetensors.h"

#include "file_write.h"
#include "reason.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX = 8, WIDEST = 8 };

static json_t *describe_tensor(const Tensor *t, size_t begin)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++) {
        if (json_array_append_new(shape, json_integer(t->sizes[i])) == 0) continue;
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_info[t->dtype].safetensors, "shape",
                     shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + tensor_bytes(t)));
}

/* The header's text, padded so that the data is aligned; NULL for names that are not
 * UTF-8, and with errno ENOMEM where memory ran out. */
static char *make_header(const Tensor *tensors, int count, size_t *length)
{
    errno = 0;
    json_t *header = json_object();
    size_t offset = 0;
    bool good = header != NULL;
    for (int width = WIDEST; width > 0; width /= 2) {
        for (int i = 0; i < count && good; i++) {
            if (dtype_info[tensors[i].dtype].bytes != width) continue;
            json_t *entry = describe_tensor(&tensors[i], offset);
            good = entry && json_object_set_new(header, tensors[i].name, entry) == 0;
            offset += tensor_bytes(&tensors[i]);
        }
    }
    const size_t size = good ? json_dumpb(header, NULL, 0, JSON_COMPACT) : 0;
    *length = (size + PREFIX - 1) / PREFIX * PREFIX;
    char *text = size ? malloc(*length) : NULL;
    int why = errno;
    if (text) {
        memset(text, ' ', *length);
        errno = 0;
        good = json_dumpb(header, text, size, JSON_COMPACT) == size;
        why = errno;
    }
    if (!good) {
        free(text);
        text = NULL;
    }
    json_decref(header);
    errno = why;
    return text;
}

static bool write_tensors(NewFile *file, const Tensor *tensors, int count, const char *header,
                          size_t length)
{
    unsigned char prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++) prefix[i] = (unsigned char)(length >> 8 * i);
    if (!file_put(file, prefix, sizeof prefix) || !file_put(file, header, length)) return false;
    for (int width = WIDEST; width > 0; width /= 2)
        for (int i = 0; i < count; i++)
            if (dtype_info[tensors[i].dtype].bytes == width &&
                !file_put(file, tensors[i].data, tensor_bytes(&tensors[i])))
                return false;
    return true;
}

/* ---- where it goes ---- */

typedef struct {
    int fd;
    bool renamed; /* renamed at the end; else written directly */
    NewFile file;
} Destination;

static bool open_destination(Destination *d, const char *path)
{
    struct stat status;
    *d = (Destination){.fd = STDOUT_FILENO};
    if (strcmp(path, "-") == 0) return true;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        do d->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        while (d->fd < 0 && errno == EINTR);
        return d->fd >= 0;
    }
    d->renamed = file_begin(&d->file, path, 0666);
    d->fd = d->file.fd;
    return d->renamed;
}

/* Closes the file, and renames it if it is complete. errno says what went wrong. */
static bool finish_destination(Destination *d, bool good)
{
    if (d->renamed && good) return file_finish(&d->file);
    const int problem = errno;
    if (d->renamed)
        file_drop(&d->file);
    else if (d->fd != STDOUT_FILENO && close(d->fd) != 0 && good)
        return false;
    errno = problem;
    return good;
}

bool tensors_write(const char *path, const Tensor *tensors, int count, char *message,
                   size_t capacity)
{
    const char *shown = strcmp(path, "-") == 0 ? "standard output" : path;
    size_t length;
    Destination destination;
    char *header = make_header(tensors, count, &length);
    if (!header) {
        snprintf(message, capacity,
                 errno == ENOMEM ? "cannot write %s: out of memory"
                                 : "%s: cannot make a header of these tensors' names",
                 shown);
        return false;
    }
    bool good = open_destination(&destination, path);
    if (good)
        good = finish_destination(&destination, write_tensors(&(NewFile){.fd = destination.fd},
                                                              tensors, count, header, length));
    if (!good) snprintf(message, capacity, "cannot write %s: %s", shown, reason_of(errno));
    free(header);
    return good;
}
