/* safetensors_write.c: writes safetensors files for the command line.
 *
 * Nobody ever sees half a file: it is written under a temporary name beside the real
 * one, synced and renamed. Tensors go widest elements first, so that all of them are
 * aligned without holes. */
#include "safetensors.h"

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

static bool write_all(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        const ssize_t written = write(fd, at, length < SSIZE_MAX ? length : SSIZE_MAX);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

static json_t *describe_tensor(const Tensor *t, size_t begin)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->sizes[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_info[t->dtype].safetensors,
                     "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + tensor_bytes(t)));
}

/* The header's text, padded so that the data is aligned; NULL for names that are not
 * UTF-8. */
static char *make_header(const Tensor *tensors, int count, size_t *length)
{
    json_t *header = json_object();
    size_t offset = 0;
    bool good = header != NULL;
    for (int width = WIDEST; width > 0; width /= 2) {
        for (int i = 0; i < count && good; i++) {
            if (dtype_info[tensors[i].dtype].bytes != width)
                continue;
            json_t *entry = describe_tensor(&tensors[i], offset);
            good = entry && json_object_set_new(header, tensors[i].name, entry) == 0;
            offset += tensor_bytes(&tensors[i]);
        }
    }
    const size_t size = good ? json_dumpb(header, NULL, 0, JSON_COMPACT) : 0;
    *length = (size + PREFIX - 1) / PREFIX * PREFIX;
    char *text = size ? malloc(*length) : NULL;
    if (text) {
        memset(text, ' ', *length);
        json_dumpb(header, text, size, JSON_COMPACT);
    }
    json_decref(header);
    return text;
}

static bool write_tensors(int fd, const Tensor *tensors, int count, const char *header,
                          size_t length)
{
    unsigned char prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (unsigned char)(length >> 8 * i);
    if (!write_all(fd, prefix, sizeof prefix) || !write_all(fd, header, length))
        return false;
    for (int width = WIDEST; width > 0; width /= 2)
        for (int i = 0; i < count; i++)
            if (dtype_info[tensors[i].dtype].bytes == width &&
                !write_all(fd, tensors[i].data, tensor_bytes(&tensors[i])))
                return false;
    return true;
}

/* ---- where it goes ---- */

typedef struct {
    char target[PATH_MAX];      /* symbolic links followed */
    char temporary[PATH_MAX];   /* "": written directly */
    int fd;
} Destination;

static bool open_temporary(Destination *d, mode_t mode)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        const int length = snprintf(d->temporary, sizeof d->temporary, "%s.%ld.%d.tmp",
                                    d->target, (long)getpid(), attempt);
        if (length < 0 || (size_t)length >= sizeof d->temporary) {
            errno = ENAMETOOLONG;
            break;
        }
        d->fd = open(d->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (d->fd >= 0 || errno != EEXIST)
            break;
    }
    if (d->fd < 0)
        d->temporary[0] = 0;
    return d->fd >= 0;
}

static bool open_destination(Destination *d, const char *path)
{
    struct stat status;
    d->fd = -1;
    d->temporary[0] = 0;
    if (strcmp(path, "-") == 0) {
        d->fd = STDOUT_FILENO;
        return true;
    }
    const bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        d->fd = open(path, O_WRONLY | O_CLOEXEC);
        return d->fd >= 0;
    }
    if (exists && access(path, W_OK) != 0)
        return false;
    if (!realpath(path, d->target)) {
        const int length = snprintf(d->target, sizeof d->target, "%s", path);
        if (length < 0 || (size_t)length >= sizeof d->target) {
            errno = ENAMETOOLONG;
            return false;
        }
    }
    return open_temporary(d, exists ? status.st_mode & 0777 : 0666);
}

/* Closes, and gives a good file its name. errno says what went wrong. */
static bool finish_destination(Destination *d, bool good)
{
    if (good && d->temporary[0])
        good = fsync(d->fd) == 0;
    int problem = errno;
    if (d->fd != STDOUT_FILENO && close(d->fd) != 0 && good) {
        good = false;
        problem = errno;
    }
    if (good && d->temporary[0] && rename(d->temporary, d->target) != 0) {
        good = false;
        problem = errno;
    }
    if (!good && d->temporary[0])
        unlink(d->temporary);
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
        snprintf(message, capacity, "%s: cannot make a header of these tensors' names", shown);
        return false;
    }
    bool good = open_destination(&destination, path);
    if (good)
        good = finish_destination(&destination, write_tensors(destination.fd, tensors, count,
                                                              header, length));
    if (!good)
        snprintf(message, capacity, "cannot write %s: %s", shown, strerror(errno));
    free(header);
    return good;
}
