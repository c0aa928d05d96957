/* file_read.h: reads whole files that are not trusted. A file is opened once, judged by what was
 * opened, and read into memory up to a limit, so that later changes to it do no harm. */
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

/* The bytes of a file, malloc'ed, with a NUL behind them. A relative path is relative to
 * `directory`, as for openat. NULL: `why` says why in words; errno is the system's error, or 0
 * where the file itself was refused. */
char *file_read(int directory, const char *path, FileTrust trust, size_t limit, size_t *length,
                char why[FILE_WHY]);
/* The same, and identifies the file. */
char *file_read_known(int directory, const char *path, FileTrust trust, size_t limit,
                      size_t *length, struct stat *about, char why[FILE_WHY]);

/* Opens a regular file or a pipe; gives up a FIFO that nobody opens for writing within a few
 * seconds. -1: `why` and errno as above. */
int file_open_stream(const char *path, char why[FILE_WHY]);

/* Why a file or directory with that owner and mode is not trusted; NULL: it is. */
const char *file_distrust(const struct stat *about);

#endif
