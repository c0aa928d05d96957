/* folder.c: see folder.h. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void die(const char *what)
{
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(1);
}

char *load(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    struct stat about;
    if (!f || fstat(fileno(f), &about) != 0) die(path);
    char *data = malloc((size_t)about.st_size + 1);
    if (!data) die(path);
    *bytes = fread(data, 1, (size_t)about.st_size, f);
    data[*bytes] = 0;
    fclose(f);
    return data;
}

void save(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) die(path);
}

void join(char path[PATH], const char *folder, const char *name)
{
    if (snprintf(path, PATH, "%s/%s", folder, name) >= PATH) die(name);
}

void read_folder(const char *root, const char *below, Folder *folder)
{
    char path[PATH], name[PATH];
    join(path, root, below);
    DIR *dir = opendir(path);
    if (!folder->files) folder->files = calloc(MOST_FILES, sizeof *folder->files);
    if (!dir || !folder->files) die(path);
    for (struct dirent *item; (item = readdir(dir)) != NULL;) {
        struct stat about;
        if (item->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", item->d_name);
        join(path, root, name);
        if (lstat(path, &about) != 0) die(path);
        if (S_ISDIR(about.st_mode)) {
            read_folder(root, name, folder);
            continue;
        }
        File *file = &folder->files[folder->count++];
        if (folder->count == MOST_FILES) die("too many files");
        snprintf(file->path, sizeof file->path, "%.255s", name);
        file->data = load(path, &file->bytes);
    }
    closedir(dir);
}

void free_folder(Folder *folder)
{
    for (int i = 0; i < folder->count; i++) free(folder->files[i].data);
    free(folder->files);
    *folder = (Folder){0};
}

const File *find_file(const Folder *folder, const char *path)
{
    for (int i = 0; i < folder->count; i++)
        if (!strcmp(folder->files[i].path, path)) return &folder->files[i];
    return NULL;
}

void empty_folder(const char *path)
{
    char name[PATH];
    DIR *dir = opendir(path);
    for (struct dirent *item; dir && (item = readdir(dir)) != NULL;) {
        if (!strcmp(item->d_name, ".") || !strcmp(item->d_name, "..")) continue;
        join(name, path, item->d_name);
        if (unlink(name) == 0) continue;
        empty_folder(name);
        rmdir(name);
    }
    if (dir) closedir(dir);
}

/* Digits as '#'; runs of them, and of spaces, count as one. */
static char *plain(const char *text, size_t bytes, size_t *kept)
{
    char *copy = malloc(bytes + 1);
    if (!copy) die("malloc");
    *kept = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char to = text[i] && strchr("0123456789.-+e", text[i]) ? '#' : text[i];
        const bool again = *kept && (copy[*kept - 1] == '#' || copy[*kept - 1] == ' ');
        if (!again || (to != '#' && to != ' ')) copy[(*kept)++] = to;
    }
    return copy;
}

bool same_but_numbers(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t a_kept, b_kept;
    char *x = plain(a, a_bytes, &a_kept), *y = plain(b, b_bytes, &b_kept);
    const bool same = a_kept == b_kept && !memcmp(x, y, a_kept);
    free(x);
    free(y);
    return same;
}
