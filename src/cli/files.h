/* files.h: reading whole files, and writing results so that no file is ever incomplete. */
#ifndef FUSEC_CLI_FILES_H
#define FUSEC_CLI_FILES_H

#include "file_write.h"
#include "cli/options.h"

/* Reads a program's file ("-": stdin) into the arena, a NUL behind it. Complains and returns an
 * exit status (EXIT_DONE: read). */
int read_file(Arena *arena, const char *path, const char **text, size_t *length);

/* A file being written, as file_write.h says. Devices, pipes and stdout (path NULL or "-") are
 * written directly. */
typedef struct {
    int fd;           /* -1: failed */
    const char *path; /* NULL: stdout */
    bool renamed;     /* by close_result; else written directly */
    NewFile file;
} Result;

/* These complain, and return false where the machine could not do it. */
bool open_result(Arena *arena, const char *path, Result *result);
/* Whether a file can be written there (path NULL or "-": stdout), to be known before its contents
 * are made. Complains if not, and changes no file. */
bool can_write_result(Arena *arena, const char *path);
bool write_result(Result *result, const void *data, size_t length);
bool close_result(Result *result);
void drop_result(Result *result);

/* All three in one; EXIT_DONE or EXIT_MACHINE. */
int save_result(Arena *arena, const char *path, const char *text, size_t length);
/* Flushes stdout; the status, or EXIT_MACHINE if it could not be written. */
int finish_stdout(int status);

#endif
