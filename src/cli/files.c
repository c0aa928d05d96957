/* files.c: see files.h. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int read_file(Arena *arena, const char *path, const char **text, size_t *length)
{
    LIST(char) bytes = {0};
    bool is_stdin = !strcmp(path, "-");
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0) {
        if (bytes.count > INT32_MAX / 2) {
            complain(NULL, "%s is too large for a program", path);
            if (!is_stdin) close(fd);
            return EXIT_WRONG;
        }
        if (bytes.capacity - bytes.count < 1 << 16)
            bytes.data = list_grow(arena, bytes.data, bytes.capacity, &bytes.capacity, 1);
        size_t room = (size_t)(bytes.capacity - bytes.count);
        if (room == 0) continue;
        got = read(fd, bytes.data + bytes.count, room);
        if (got < 0 && errno == EINTR) got = 1;
        else if (got > 0) bytes.count += (int)got;
    }
    int error = errno;
    if (fd >= 0 && !is_stdin) close(fd);
    if (got < 0) {
        complain(NULL, "cannot read %s: %s", path, strerror(error));
        return error == ENOENT || error == ENOTDIR || error == EISDIR ? EXIT_USAGE : EXIT_MACHINE;
    }
    *text = arena_copy(arena, bytes.data ? bytes.data : "", (size_t)bytes.count);
    *length = (size_t)bytes.count;
    return EXIT_DONE;
}

static void complain_unwritable(const char *path)
{
    complain(NULL, "cannot write %s: %s", path ? path : "to stdout", strerror(errno));
}

/* The permissions the file has, or a new one gets. */
static mode_t result_mode(const struct stat *old)
{
    if (old) return old->st_mode & 07777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool open_result(Arena *arena, const char *path, Result *result)
{
    *result = (Result){-1, NULL, NULL};
    if (!path || !strcmp(path, "-")) {
        result->fd = STDOUT_FILENO;
        return true;
    }
    char *real = realpath(path, NULL);
    result->path = arena_format(arena, "%s", real ? real : path);
    free(real);
    struct stat old;
    bool exists = stat(result->path, &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) {
        result->fd = open(result->path, O_WRONLY | O_CLOEXEC);
    } else if (exists && access(result->path, W_OK) != 0) {
        result->fd = -1;
    } else {
        char *temporary = arena_format(arena, "%s.XXXXXX", result->path);
        result->fd = mkostemp(temporary, O_CLOEXEC);
        if (result->fd >= 0) {
            result->temporary = temporary;
            if (fchmod(result->fd, result_mode(exists ? &old : NULL)) != 0) errno = 0;
        }
    }
    if (result->fd < 0) complain_unwritable(path);
    return result->fd >= 0;
}

bool can_write_result(Arena *arena, const char *path)
{
    Result result;
    struct stat old;
    if (path && stat(path, &old) == 0 && !S_ISREG(old.st_mode)) {    /* not opened: a pipe waits for its reader */
        bool is_directory = S_ISDIR(old.st_mode), can = !is_directory && access(path, W_OK) == 0;
        if (is_directory) errno = EISDIR;
        if (!can) complain_unwritable(path);
        return can;
    }
    if (!open_result(arena, path, &result)) return false;
    drop_result(&result);
    return true;
}

bool write_result(Result *result, const void *data, size_t length)
{
    const char *p = data;
    while (length > 0) {
        ssize_t put = write(result->fd, p, length);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            complain_unwritable(result->path);
            return false;
        }
        p += put;
        length -= (size_t)put;
    }
    return true;
}

void drop_result(Result *result)
{
    if (result->fd >= 0 && result->path) close(result->fd);
    if (result->temporary) unlink(result->temporary);
    result->fd = -1;
}

bool close_result(Result *result)
{
    if (!result->path) return true;
    bool closed = close(result->fd) == 0;
    result->fd = -1;
    if (closed && (!result->temporary || rename(result->temporary, result->path) == 0)) return true;
    complain_unwritable(result->path);
    if (result->temporary) unlink(result->temporary);
    return false;
}

int save_result(Arena *arena, const char *path, const char *text, size_t length)
{
    Result result;
    if (!open_result(arena, path, &result)) return EXIT_MACHINE;
    if (write_result(&result, text, length) && close_result(&result)) return EXIT_DONE;
    drop_result(&result);
    return EXIT_MACHINE;
}

int finish_stdout(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    complain_unwritable(NULL);
    return EXIT_MACHINE;
}
