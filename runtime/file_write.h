/* file_write.h: putting a whole new file in the place of an old one. It is written under a
 * temporary name in the same directory, synced and renamed, so that nobody ever sees half of it,
 * and an old one stays if anything goes wrong. */
#ifndef FUSEC_FILE_WRITE_H
#define FUSEC_FILE_WRITE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct {
    int fd;          /* to be written to; -1: none */
    int directory;   /* that it is in */
    bool replaces;   /* a file that is there, */
    struct stat old; /* whose owner, group and mode stay */
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
} NewFile;

/* All return false with errno set. Symbolic links are followed and stay; of a file with several
 * names the one that is written gets the new contents, the others keep the old. `mode` is for one
 * that is not there yet, less the umask. */
bool file_begin(NewFile *file, const char *path, mode_t mode);
/* In a directory at hand, whatever is there under that name now. */
bool file_begin_at(NewFile *file, int directory, const char *name, mode_t mode);
bool file_put(NewFile *file, const void *bytes, size_t length);
/* Gives it its name. On failure it is dropped. */
bool file_finish(NewFile *file);
void file_drop(NewFile *file);

/* Removes the temporary files of writers that were killed, of all files whose names `is_ours`
 * takes. */
typedef bool IsOurs(const void *data, const char *name);
void file_sweep(int directory, IsOurs *is_ours, const void *data);

/* Opens the directory that `path` is in, links of the path itself followed; `name` gets the rest.
 * -1 with errno. */
int file_open_directory(const char *path, char name[NAME_MAX + 1]);

#endif
