/* inject.c: a library for LD_PRELOAD that counts calls of the C library and makes chosen ones fail.
 * faults.h says which and how they are chosen.
 *
 * Memory comes from glibc's own names (__libc_malloc), since dlsym allocates; everything else from
 * the next library. Children run without the injector: what a compiler does when its memory runs
 * out is not ours to mend. unlink and rmdir never fail, for nothing can be done about it. */
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static FaultReport nowhere, *report = &nowhere;
static bool active, for_good;
static int chosen_family = -1;
static long chosen_call;

/* ---- which calls fail ---- */

EXPORT int fault_now(int family, const char *name)
{
    if (!active) return 0;
    const long call = __atomic_add_fetch(&report->calls[family], 1, __ATOMIC_RELAXED);
    if (family != chosen_family || (for_good ? call < chosen_call : call != chosen_call)) return 0;
    if (__atomic_fetch_add(&report->hits, 1, __ATOMIC_RELAXED) == 0) {
        size_t length = strlen(name);
        if (length >= sizeof report->what) length = sizeof report->what - 1;
        memcpy(report->what, name, length);
    }
    return 1;
}

static bool fails(int family, const char *name, int error)
{
    if (!fault_now(family, name)) return false;
    errno = error;
    return true;
}

static void read_choice(const char *choice)
{
    static const char *const names[] = FAULT_NAMES;
    const char *colon = choice ? strchr(choice, ':') : NULL;
    if (!colon) return;
    for (int i = 0; i < FAULT_FAMILIES; i++)
        if (strlen(names[i]) == (size_t)(colon - choice) &&
            !strncmp(names[i], choice, strlen(names[i])))
            chosen_family = i;
    chosen_call = atol(colon + 1);
    for_good = choice[strlen(choice) - 1] == '+';
}

static void map_report(const char *path)
{
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped =
        (void *)syscall(SYS_mmap, NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (mapped != MAP_FAILED) report = mapped;
}

/* The next library's function of that name. */
static void *next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) abort();
    return symbol;
}

#define NEXT(name) (__extension__(__typeof__(&name)) next(#name))

__attribute__((constructor)) static void begin(void)
{
    read_choice(getenv("FAULT"));
    map_report(getenv("FAULT_REPORT"));
    unsetenv("LD_PRELOAD");
    dlsym(RTLD_NEXT, "free"); /* what it needs once is had before anything fails */
    active = true;
}

/* ---- memory ---- */

static void *counted(void *memory)
{
    if (memory && active) __atomic_add_fetch(&report->live, 1, __ATOMIC_RELAXED);
    return memory;
}

EXPORT void *malloc(size_t bytes)
{
    return fails(FAULT_MEMORY, "malloc", ENOMEM) ? NULL : counted(__libc_malloc(bytes));
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    return fails(FAULT_MEMORY, "calloc", ENOMEM) ? NULL : counted(__libc_calloc(count, bytes));
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    if (fails(FAULT_MEMORY, "realloc", ENOMEM)) return NULL;
    void *grown = __libc_realloc(memory, bytes);
    return memory ? grown : counted(grown);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(FAULT_MEMORY, "aligned_alloc", ENOMEM)
               ? NULL
               : counted(__libc_memalign(alignment, bytes));
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (fault_now(FAULT_MEMORY, "posix_memalign")) return ENOMEM;
    *memory = counted(__libc_memalign(alignment, bytes));
    return *memory ? 0 : ENOMEM;
}

EXPORT void free(void *memory)
{
    if (memory && active) __atomic_sub_fetch(&report->live, 1, __ATOMIC_RELAXED);
    __libc_free(memory);
}

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails(FAULT_MEMORY, "mmap", ENOMEM)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* ---- descriptors ---- */

static bool open_fails(const char *name)
{
    return fails(FAULT_EINTR, name, EINTR) || fails(FAULT_FILE, name, EMFILE);
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_fails("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_fails("openat") ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}

/* What a build with _FORTIFY_SOURCE calls in their place. */
int __open_2(const char *path, int flags);
EXPORT int __open_2(const char *path, int flags)
{
    return open(path, flags);
}
int __openat_2(int directory, const char *path, int flags);
EXPORT int __openat_2(int directory, const char *path, int flags)
{
    return openat(directory, path, flags);
}

EXPORT int mkostemp(char *name, int flags)
{
    return fails(FAULT_FILE, "mkostemp", ENOSPC) ? -1 : NEXT(mkostemp)(name, flags);
}

static size_t shortened(const char *name, size_t bytes)
{
    return fault_now(FAULT_SHORT, name) && bytes > 1 ? bytes / 2 : bytes;
}

EXPORT ssize_t read(int fd, void *to, size_t bytes)
{
    if (fails(FAULT_EINTR, "read", EINTR) || fails(FAULT_FILE, "read", EIO)) return -1;
    return syscall(SYS_read, fd, to, shortened("read", bytes));
}

EXPORT ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    if (fails(FAULT_EINTR, "pread", EINTR) || fails(FAULT_FILE, "pread", EIO)) return -1;
    return syscall(SYS_pread64, fd, to, shortened("pread", bytes), at);
}

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
EXPORT ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room)
{
    return bytes > room ? -1 : read(fd, to, bytes);
}

EXPORT ssize_t write(int fd, const void *from, size_t bytes)
{
    if (fails(FAULT_EINTR, "write", EINTR) || fails(FAULT_FILE, "write", ENOSPC)) return -1;
    return syscall(SYS_write, fd, from, shortened("write", bytes));
}

EXPORT ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    if (fails(FAULT_EINTR, "pwrite", EINTR) || fails(FAULT_FILE, "pwrite", ENOSPC)) return -1;
    return syscall(SYS_pwrite64, fd, from, shortened("pwrite", bytes), at);
}

/* The descriptor is gone even so, as on Linux. */
EXPORT int close(int fd)
{
    const int result = (int)syscall(SYS_close, fd);
    return fails(FAULT_FILE, "close", EIO) ? -1 : result;
}

#define PLAIN(name, error, parameters, arguments)                                                  \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        return fails(FAULT_FILE, #name, error) ? -1 : NEXT(name) arguments;                        \
    }

PLAIN(fsync, EIO, (int fd), (fd))
PLAIN(fdatasync, EIO, (int fd), (fd))
PLAIN(ftruncate, ENOSPC, (int fd, off_t size), (fd, size))
PLAIN(fchmod, EPERM, (int fd, mode_t mode), (fd, mode))
PLAIN(fchown, EPERM, (int fd, uid_t user, gid_t group), (fd, user, group))
PLAIN(renameat, EIO, (int from_fd, const char *from, int to_fd, const char *to),
      (from_fd, from, to_fd, to))
PLAIN(faccessat, EIO, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
PLAIN(rename, EIO, (const char *from, const char *to), (from, to))
PLAIN(mkdir, ENOSPC, (const char *path, mode_t mode), (path, mode))
PLAIN(stat, EIO, (const char *path, struct stat *about), (path, about))
PLAIN(lstat, EIO, (const char *path, struct stat *about), (path, about))
PLAIN(fstat, EIO, (int fd, struct stat *about), (fd, about))
PLAIN(fstatat, EIO, (int fd, const char *path, struct stat *about, int flags),
      (fd, path, about, flags))
PLAIN(access, EIO, (const char *path, int mode), (path, mode))
PLAIN(utimensat, EPERM, (int fd, const char *path, const struct timespec times[2], int flags),
      (fd, path, times, flags))

EXPORT int flock(int fd, int operation)
{
    if (fails(FAULT_EINTR, "flock", EINTR) || fails(FAULT_FILE, "flock", ENOLCK)) return -1;
    return NEXT(flock)(fd, operation);
}

/* ---- names, folders ---- */

EXPORT char *realpath(const char *path, char *to)
{
    return fails(FAULT_FILE, "realpath", EIO) ? NULL : NEXT(realpath)(path, to);
}

char *__realpath_chk(const char *path, char *to, size_t room);
EXPORT char *__realpath_chk(const char *path, char *to, size_t room)
{
    return room ? realpath(path, to) : NULL;
}

EXPORT char *mkdtemp(char *name)
{
    return fails(FAULT_FILE, "mkdtemp", ENOSPC) ? NULL : NEXT(mkdtemp)(name);
}

EXPORT DIR *opendir(const char *path)
{
    return fails(FAULT_FILE, "opendir", EMFILE) ? NULL : NEXT(opendir)(path);
}

EXPORT DIR *fdopendir(int fd)
{
    return fails(FAULT_FILE, "fdopendir", ENOMEM) ? NULL : NEXT(fdopendir)(fd);
}

EXPORT ssize_t readlink(const char *path, char *to, size_t room)
{
    return fails(FAULT_FILE, "readlink", EIO) ? -1 : NEXT(readlink)(path, to, room);
}

EXPORT struct dirent *readdir(DIR *directory)
{
    return fails(FAULT_FILE, "readdir", EIO) ? NULL : NEXT(readdir)(directory);
}

/* ---- stdio ---- */

EXPORT FILE *fopen(const char *path, const char *mode)
{
    return fails(FAULT_FILE, "fopen", EMFILE) ? NULL : NEXT(fopen)(path, mode);
}

/* A stream that failed says so from then on, as the C library's does. */
static void spoil(FILE *file)
{
    file->_flags |= 0x20; /* _IO_ERR_SEEN */
}

EXPORT size_t fread(void *to, size_t bytes, size_t count, FILE *file)
{
    if (!fails(FAULT_FILE, "fread", EIO)) return NEXT(fread)(to, bytes, count, file);
    spoil(file);
    return 0;
}

size_t __fread_chk(void *to, size_t room, size_t bytes, size_t count, FILE *file);
EXPORT size_t __fread_chk(void *to, size_t room, size_t bytes, size_t count, FILE *file)
{
    return bytes * count > room ? 0 : fread(to, bytes, count, file);
}

EXPORT int fflush(FILE *file)
{
    if (!fails(FAULT_FILE, "fflush", ENOSPC)) return NEXT(fflush)(file);
    if (file) spoil(file);
    return EOF;
}

EXPORT int fclose(FILE *file)
{
    const int result = NEXT(fclose)(file);
    return fails(FAULT_FILE, "fclose", ENOSPC) ? EOF : result;
}

EXPORT int fputs(const char *text, FILE *file)
{
    if (file == stderr || !fails(FAULT_FILE, "fputs", ENOSPC)) return NEXT(fputs)(text, file);
    spoil(file);
    return EOF;
}

/* ---- threads, children, libraries ---- */

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *data)
{
    return fault_now(FAULT_SYSTEM, "pthread_create")
               ? EAGAIN
               : NEXT(pthread_create)(thread, attributes, run, data);
}

EXPORT int posix_spawnp(pid_t *child, const char *program,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const words[],
                        char *const environment[])
{
    if (fault_now(FAULT_SYSTEM, "posix_spawnp")) return EAGAIN;
    return NEXT(posix_spawnp)(child, program, actions, attributes, words, environment);
}

EXPORT pid_t waitpid(pid_t child, int *status, int options)
{
    return fails(FAULT_EINTR, "waitpid", EINTR) ? -1 : NEXT(waitpid)(child, status, options);
}

EXPORT int pipe2(int ends[2], int flags)
{
    return fails(FAULT_SYSTEM, "pipe2", EMFILE) ? -1 : NEXT(pipe2)(ends, flags);
}

EXPORT void *dlopen(const char *path, int flags)
{
    return fault_now(FAULT_SYSTEM, "dlopen") ? NULL : NEXT(dlopen)(path, flags);
}

EXPORT int glob(const char *pattern, int flags, int (*complain)(const char *, int), glob_t *found)
{
    return fault_now(FAULT_SYSTEM, "glob") ? GLOB_NOSPACE
                                           : NEXT(glob)(pattern, flags, complain, found);
}
