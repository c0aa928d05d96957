/* file_write.h: replaces a file by a new one as a whole. The new file is written under a temporary
 * name in the same directory, synced and renamed. No reader ever sees half of it, and the old file
 * stays if anything fails. */
#ifndef FUSEC_FILE_WRITE_H
#define FUSEC_FILE_WRITE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct {
    int fd;          /* open for writing; -1: none */
    int directory;   /* the directory that it is in */
    bool replaces;   /* an existing file */
    struct stat old; /* whose owner, group and mode are kept */
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
} NewFile;

/* These return false with errno set. Symbolic links are followed and stay. Of a file with several
 * names only the name that is written gets the new contents. A file that does not exist gets
 * `mode`, less the umask. */
bool file_begin(NewFile *file, const char *path, mode_t mode);
/* The same in an open directory, whatever that name stands for now. */
bool file_begin_at(NewFile *file, int directory, const char *name, mode_t mode);
bool file_put(NewFile *file, const void *bytes, size_t length);
/* Gives the file its name. On failure it is removed. */
bool file_finish(NewFile *file);
void file_drop(NewFile *file);

/* Removes temporary files that killed writers left behind, of all files whose names `is_ours`
 * accepts. */
typedef bool IsOurs(const void *data, const char *name);
void file_sweep(int directory, IsOurs *is_ours, const void *data);

/* Opens the directory that `path` is in, following links of the path itself; `name` gets the rest.
 * -1 with errno. */
int file_open_directory(const char *path, char name[NAME_MAX + 1]);

#endif
