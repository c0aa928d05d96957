/* folder.h: whole folders in memory, for the driver of `make faults`. What goes wrong here ends it.
 */
#ifndef FAULTS_FOLDER_H
#define FAULTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH = 4096, MOST_FILES = 512 };

typedef struct {
    char path[256]; /* below the folder */
    char *data;     /* a NUL behind it */
    size_t bytes;
} File;

typedef struct {
    File *files; /* NULL: none */
    int count;
} Folder;

_Noreturn void die(const char *what); /* says errno */
char *load(const char *path, size_t *bytes);
void save(const char *path, const void *data, size_t bytes);
void join(char path[PATH], const char *folder, const char *name);

/* Adds all files in `below` of `root`, hidden ones left out. */
void read_folder(const char *root, const char *below, Folder *folder);
void free_folder(Folder *folder);
const File *find_file(const Folder *folder, const char *path); /* NULL: none */
void empty_folder(const char *path);

/* Whether two texts differ in nothing but their numbers. */
bool same_but_numbers(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

#endif
