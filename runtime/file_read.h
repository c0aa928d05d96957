/* file_read.h: reading whole files that are not trusted. A file is opened once, judged by what was
 * opened, and read into memory up to a limit, so that nothing that happens to it meanwhile does
 * harm. */
#ifndef FUSEC_FILE_READ_H
#define FUSEC_FILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef enum {
    FILE_OF_ANYONE, /* a regular file, links followed */
    FILE_OF_OURS    /* also: no link, one name, owned by us, written by nobody else */
} FileTrust;

enum { FILE_WHY = 128 };

/* The bytes of a file, malloc'ed, a NUL behind them. `directory` is what a relative path is
 * relative to, as openat takes it. NULL: `why` says why in words; errno is the system's error, or 0
 * where the file was refused for what it is. */
char *file_read(int directory, const char *path, FileTrust trust, size_t limit, size_t *length,
                char why[FILE_WHY]);
/* The same, telling which file it was. */
char *file_read_known(int directory, const char *path, FileTrust trust, size_t limit,
                      size_t *length, struct stat *about, char why[FILE_WHY]);

/* Opens a regular file, or a pipe; a FIFO that nobody comes to write to within a few seconds is
 * given up. -1: `why` and errno as above. */
int file_open_stream(const char *path, char why[FILE_WHY]);

/* What stands against trusting a file or directory with that owner and mode; NULL: nothing. */
const char *file_distrust(const struct stat *about);

#endif
