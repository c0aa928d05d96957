/* files.c: see files.h. */
#include "cli/files.h"

#include "file_read.h"
#include "frontend/import.h"
#include "reason.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef LIST(char) Bytes;

static int complain_unreadable(const char *path, const char *why)
{
    int error = errno;
    complain(NULL, "cannot read %s: %s", path, why);
    return !error || error == ENOENT || error == ENOTDIR || error == EISDIR ? EXIT_USAGE
                                                                            : EXIT_MACHINE;
}

/* Reads until the end, or one byte more than a program may have. */
static bool read_bytes(Arena *arena, int fd, Bytes *bytes)
{
    for (;;) {
        if (bytes->capacity - bytes->count < 1 << 16)
            bytes->data = list_grow(arena, bytes->data, bytes->capacity, &bytes->capacity, 1);
        size_t room = (size_t)(bytes->capacity - bytes->count);
        ssize_t got = room ? read(fd, bytes->data + bytes->count, room) : 0;
        if (got < 0 && errno != EINTR) return false;
        if (got == 0 && room) return true;
        bytes->count += got > 0 ? (int)got : 0;
        if (bytes->count > MAX_PROGRAM_BYTES) return true;
    }
}

int read_file(Arena *arena, const char *path, const char **text, size_t *length)
{
    Bytes bytes = {0};
    char why[FILE_WHY];
    bool is_stdin = !strcmp(path, "-");
    int fd = is_stdin ? STDIN_FILENO : file_open_stream(path, why);
    if (fd < 0) return complain_unreadable(path, why);
    bool done = read_bytes(arena, fd, &bytes);
    int error = errno;
    if (!is_stdin) close(fd);
    errno = error;
    if (!done) return complain_unreadable(path, reason_of(error));
    if (bytes.count > MAX_PROGRAM_BYTES) {
        complain(NULL, "%s is too large for a program: it has more than %d bytes", path,
                 (int)MAX_PROGRAM_BYTES);
        return EXIT_WRONG;
    }
    *text = arena_copy(arena, bytes.data ? bytes.data : "", (size_t)bytes.count);
    *length = (size_t)bytes.count;
    return EXIT_DONE;
}

static void complain_unwritable(const char *path)
{
    complain(NULL, "cannot write %s: %s", path ? path : "to stdout", reason_of(errno));
}

/* Whether a path is no regular file, as a device or a FIFO: it is written directly. */
static bool is_written_directly(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

bool open_result(Arena *arena, const char *path, Result *result)
{
    *result = (Result){.fd = -1};
    if (!path || !strcmp(path, "-")) {
        result->fd = STDOUT_FILENO;
        return true;
    }
    result->path = arena_format(arena, "%s", path);
    if (is_written_directly(path)) {
        do result->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        while (result->fd < 0 && errno == EINTR);
    } else if (file_begin(&result->file, path, 0666)) {
        result->fd = result->file.fd;
        result->renamed = true;
    }
    if (result->fd < 0) complain_unwritable(path);
    return result->fd >= 0;
}

bool can_write_result(Arena *arena, const char *path)
{
    Result result;
    struct stat old;
    /* The file is not opened to try it: opening a pipe waits for its reader. */
    if (path && strcmp(path, "-") && is_written_directly(path)) {
        bool is_directory = stat(path, &old) == 0 && S_ISDIR(old.st_mode),
             can = !is_directory && access(path, W_OK) == 0;
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
    NewFile file = {.fd = result->fd};
    if (file_put(&file, data, length)) return true;
    complain_unwritable(result->path);
    return false;
}

void drop_result(Result *result)
{
    if (result->renamed)
        file_drop(&result->file);
    else if (result->fd >= 0 && result->path)
        close(result->fd);
    *result = (Result){.fd = -1};
}

bool close_result(Result *result)
{
    if (!result->path) return true;
    bool good = result->renamed ? file_finish(&result->file) : close(result->fd) == 0;
    if (!good) complain_unwritable(result->path);
    *result = (Result){.fd = -1};
    return good;
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
