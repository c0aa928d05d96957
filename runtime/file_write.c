/* file_write.c: see file_write.h. A temporary file is called NAME.tmp-PID-NUMBER and is locked
 * while its writer lives; one that another process can lock was left behind. */
#include "file_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char temporary_mark[] = ".tmp-";
enum { ATTEMPTS = 100, LINKS = 40, STALE_SECONDS = 3600 };

/* ---- where ---- */

/* Replaces `path`, a link, by its target. */
static bool follow_link(char path[PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    char *slash = strrchr(path, '/');
    size_t kept = *target == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
    if (kept + (size_t)length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path + kept, target, (size_t)length + 1);
    return true;
}

static bool follow_links(char path[PATH_MAX])
{
    struct stat about;
    for (int i = 0; i < LINKS; i++) {
        if (lstat(path, &about) != 0 || !S_ISLNK(about.st_mode)) return true;
        if (!follow_link(path)) return false;
    }
    errno = ELOOP;
    return false;
}

/* A directory that may not be listed cannot be synced either. */
static int open_directory(const char *path)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory < 0 && errno == EACCES ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
                                            : directory;
}

int file_open_directory(const char *given, char name[NAME_MAX + 1])
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s", given);
    if (length >= PATH_MAX) errno = ENAMETOOLONG;
    if (length >= PATH_MAX || !follow_links(path)) return -1;
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    if (!*last || strlen(last) > NAME_MAX) {
        errno = *last ? ENAMETOOLONG : *path ? EISDIR : ENOENT;
        return -1;
    }
    strcpy(name, last);
    if (!slash) return open_directory(".");
    slash[slash == path] = 0;
    return open_directory(path);
}

/* ---- the temporary file ---- */

/* Locks the file. False with errno EEXIST: a sweeper has removed it between its creation and its
 * locking. True where the file system has no locks. */
static bool hold(int fd)
{
    struct stat about;
    bool swept = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!swept && fstat(fd, &about) != 0) return false;
    errno = EEXIST;
    return !swept && about.st_nlink > 0;
}

static void drop_temporary(NewFile *file)
{
    int error = errno;
    unlinkat(file->directory, file->temporary, 0);
    close(file->fd);
    file->fd = -1;
    errno = error;
}

static bool open_temporary(NewFile *file, mode_t mode)
{
    static atomic_uint counter;
    enum { KEPT = 200 };
    for (int i = 0; i < ATTEMPTS; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        unsigned long number = (unsigned long)now.tv_nsec * 101u + atomic_fetch_add(&counter, 1u);
        snprintf(file->temporary, sizeof file->temporary, "%.*s%s%ld-%lx", KEPT, file->name,
                 temporary_mark, (long)getpid(), number);
        file->fd =
            openat(file->directory, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file->fd >= 0 && hold(file->fd)) return true;
        if (file->fd >= 0) drop_temporary(file);
        if (errno != EEXIST && errno != EINTR) return false;
    }
    errno = EEXIST;
    return false;
}

static void leave(NewFile *file)
{
    int error = errno;
    if (file->fd >= 0) close(file->fd);
    if (file->directory >= 0) close(file->directory);
    file->fd = file->directory = -1;
    errno = error;
}

/* Whether the existing file may be replaced. */
static bool check_old(NewFile *file)
{
    file->replaces = fstatat(file->directory, file->name, &file->old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!file->replaces) return true;
    if (S_ISREG(file->old.st_mode))
        return faccessat(file->directory, file->name, W_OK, AT_EACCESS) == 0;
    errno = S_ISDIR(file->old.st_mode) ? EISDIR : EINVAL;
    return false;
}

bool file_begin(NewFile *file, const char *path, mode_t mode)
{
    *file = (NewFile){.fd = -1};
    file->directory = file_open_directory(path, file->name);
    if (file->directory >= 0 && check_old(file) &&
        open_temporary(file, file->replaces ? S_IRUSR | S_IWUSR : mode))
        return true;
    leave(file);
    return false;
}

bool file_begin_at(NewFile *file, int directory, const char *name, mode_t mode)
{
    *file = (NewFile){.fd = -1};
    snprintf(file->name, sizeof file->name, "%s", name);
    file->directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    if (file->directory >= 0 && open_temporary(file, mode)) return true;
    leave(file);
    return false;
}

bool file_put(NewFile *file, const void *data, size_t length)
{
    const char *bytes = data;
    while (length) {
        ssize_t written = write(file->fd, bytes, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

/* Sets owner and group first, because changing them clears set-id bits. Where one cannot be kept,
 * no such bit is given to another user or group. */
static bool keep_owner_and_mode(const NewFile *file)
{
    const struct stat *old = &file->old;
    struct stat now;
    mode_t mode = old->st_mode & 07777;
    if (fchown(file->fd, old->st_uid, old->st_gid) != 0 &&
        fchown(file->fd, (uid_t)-1, old->st_gid) != 0)
        errno = 0;
    if (fstat(file->fd, &now) != 0) return false;
    if (now.st_uid != old->st_uid) mode &= ~(mode_t)S_ISUID;
    if (now.st_gid != old->st_gid) mode &= ~(mode_t)S_ISGID & ~(mode_t)(S_IRWXG & ~(mode << 3));
    return (now.st_mode & 07777) == mode || fchmod(file->fd, mode) == 0;
}

bool file_finish(NewFile *file)
{
    bool good = (!file->replaces || keep_owner_and_mode(file)) && fsync(file->fd) == 0 &&
                renameat(file->directory, file->temporary, file->directory, file->name) == 0;
    if (!good) {
        file_drop(file);
        return false;
    }
    good = fsync(file->directory) == 0 || errno != EIO;
    leave(file);
    return good;
}

void file_drop(NewFile *file)
{
    int error = errno;
    if (file->fd >= 0) unlinkat(file->directory, file->temporary, 0);
    errno = error;
    leave(file);
}

/* ---- what others left ---- */

/* Whether a file was left behind: its lock can be taken here, so no writer has it. Without locks,
 * it is left behind if it is old. */
static bool is_left_over(int fd)
{
    struct stat about;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    return errno != EWOULDBLOCK && fstat(fd, &about) == 0 &&
           about.st_mtim.tv_sec < time(NULL) - STALE_SECONDS;
}

static void sweep(int directory, const char *name)
{
    struct stat about;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
        is_left_over(fd))
        unlinkat(directory, name, 0);
    close(fd);
}

void file_sweep(int directory, IsOurs *is_ours, const void *data)
{
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list && again >= 0) close(again);
    for (struct dirent *item; list && (item = readdir(list)) != NULL;) {
        char name[NAME_MAX + 1];
        const char *mark = strstr(item->d_name, temporary_mark);
        if (!mark) continue;
        snprintf(name, sizeof name, "%.*s", (int)(mark - item->d_name), item->d_name);
        if (is_ours(data, name)) sweep(directory, item->d_name);
    }
    if (list) closedir(list);
}
