/* file_read.c: see file_read.h. */
#include "file_read.h"

#include "reason.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool refuse(char why[FILE_WHY], const char *reason)
{
    snprintf(why, FILE_WHY, "%s", reason);
    errno = 0;
    return false;
}

/* Fails with the system's error, which errno keeps. */
static bool give_up(char why[FILE_WHY])
{
    int error = errno;
    snprintf(why, FILE_WHY, "%s", reason_of(error));
    errno = error;
    return false;
}

const char *file_distrust(const struct stat *about)
{
    if (about->st_uid != geteuid()) return "it belongs to another user";
    return about->st_mode & (S_IWGRP | S_IWOTH) ? "other users may write to it" : NULL;
}

/* Why a file must not be read at all; NULL: nothing. */
static const char *judge(const struct stat *about, FileTrust trust)
{
    if (!S_ISREG(about->st_mode)) return "it is not a regular file";
    if (trust == FILE_OF_ANYONE) return NULL;
    return about->st_nlink > 1 ? "it has several hard links" : file_distrust(about);
}

/* Reads up to `limit` bytes; returns the number, or -1 with errno. */
static ssize_t read_bytes(int file, char *bytes, size_t limit)
{
    size_t length = 0;
    while (length < limit) {
        ssize_t got = read(file, bytes + length, limit - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

/* A directory is an error, as it is where a file is opened for writing. */
static bool stat_opened(int file, struct stat *about)
{
    if (fstat(file, about) != 0) return false;
    if (!S_ISDIR(about->st_mode)) return true;
    errno = EISDIR;
    return false;
}

static bool check_opened(int file, FileTrust trust, size_t limit, struct stat *about,
                         char why[FILE_WHY])
{
    if (!stat_opened(file, about)) return give_up(why);
    const char *reason = judge(about, trust);
    if (reason) return refuse(why, reason);
    if ((uint64_t)about->st_size <= limit) return true;
    snprintf(why, FILE_WHY, "it has more than %zu bytes", limit);
    errno = 0;
    return false;
}

/* Refuses a file that grows or shrinks while it is read, and files of /proc, which have no size. */
static char *read_opened(int file, size_t size, char why[FILE_WHY])
{
    char *bytes = malloc(size + 1);
    ssize_t got = bytes ? read_bytes(file, bytes, size + 1) : -1;
    if (got >= 0 && (size_t)got == size) {
        bytes[size] = 0;
        return bytes;
    }
    if (got < 0)
        give_up(why);
    else
        refuse(why, "its length changed while it was read");
    int error = errno;
    free(bytes);
    errno = error;
    return NULL;
}

/* Opens no device, because opening one may already have an effect. fstat finds out whether the file
 * was replaced meanwhile. */
static int open_no_device(int directory, const char *path, int flags)
{
    struct stat about;
    if (fstatat(directory, path, &about, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0 &&
        (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode) || S_ISSOCK(about.st_mode))) {
        errno = 0;
        return -1;
    }
    int file;
    do file = openat(directory, path, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (file < 0 && errno == EINTR);
    return file;
}

char *file_read_known(int directory, const char *path, FileTrust trust, size_t limit,
                      size_t *length, struct stat *about, char why[FILE_WHY])
{
    int file = open_no_device(directory, path, trust == FILE_OF_OURS ? O_NOFOLLOW : 0);
    *length = 0;
    if (file < 0) {
        if (errno == 0)
            refuse(why, "it is not a regular file");
        else if (errno == ELOOP && trust == FILE_OF_OURS)
            refuse(why, "it is a symbolic link");
        else
            give_up(why);
        return NULL;
    }
    char *bytes = check_opened(file, trust, limit, about, why)
                      ? read_opened(file, (size_t)about->st_size, why)
                      : NULL;
    *length = bytes ? (size_t)about->st_size : 0;
    int error = errno;
    close(file);
    errno = error;
    return bytes;
}

char *file_read(int directory, const char *path, FileTrust trust, size_t limit, size_t *length,
                char why[FILE_WHY])
{
    struct stat about;
    return file_read_known(directory, path, trust, limit, length, &about, why);
}

/* Whether somebody writes to the FIFO, has written, or comes to write. tee() consumes nothing. */
static bool wait_for_writer(int fifo)
{
    enum { STEP = 50, STEPS = 60 }; /* milliseconds */
    int ends[2];
    bool found = false;
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    for (int i = 0; i < STEPS && !found; i++) {
        struct pollfd wanted = {.fd = fifo, .events = POLLIN};
        found = poll(&wanted, 1, STEP) > 0 ||
                (tee(fifo, ends[1], 1, SPLICE_F_NONBLOCK) < 0 && errno == EAGAIN);
    }
    close(ends[0]);
    close(ends[1]);
    return found;
}

/* Whether a stream can be read from. Reading then waits for data as usual. */
static bool accept_stream(int file, char why[FILE_WHY])
{
    struct stat about;
    if (!stat_opened(file, &about)) return give_up(why);
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode)) return refuse(why, "it is a device");
    if (S_ISFIFO(about.st_mode) && !wait_for_writer(file))
        return refuse(why, "nobody writes to this FIFO");
    return fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK) == 0 || give_up(why);
}

int file_open_stream(const char *path, char why[FILE_WHY])
{
    int file = open_no_device(AT_FDCWD, path, 0);
    if (file < 0 && errno == 0)
        refuse(why, "it is a device");
    else if (file < 0)
        give_up(why);
    if (file < 0 || accept_stream(file, why)) return file;
    int error = errno;
    close(file);
    errno = error;
    return -1;
}
