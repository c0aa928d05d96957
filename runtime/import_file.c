/* import_file.c: imports from files: regular files of bounded size. Device and inode identify a
 * file, so two paths to it are one file. */
#include "import_file.h"

#include "error.h"
#include "file_read.h"
#include "frontend/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The memory that an answer owns. */
typedef struct {
    char *text;
    char identity[FILE_IDENTITY];
    char name[];
} Owned;

static void identify(const struct stat *about, char identity[FILE_IDENTITY])
{
    snprintf(identity, FILE_IDENTITY, "%llx:%llx", (unsigned long long)about->st_dev,
             (unsigned long long)about->st_ino);
}

bool file_identity(const char *path, char identity[FILE_IDENTITY])
{
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    identify(&about, identity);
    return true;
}

fusec_status program_file_read(const char *path, char **text, size_t *length,
                               char identity[FILE_IDENTITY], char *message, size_t size)
{
    struct stat about;
    char why[FILE_WHY];
    *text = file_read_known(AT_FDCWD, path, FILE_OF_ANYONE, MAX_PROGRAM_BYTES, length, &about, why);
    int error = errno;
    if (*text) {
        identify(&about, identity);
        return FUSEC_OK;
    }
    snprintf(message, size, "cannot read '%.160s': %s", path, why);
    bool wrong = error == 0 || error == ENOENT || error == ENOTDIR || error == EISDIR ||
                 error == ENXIO || error == ELOOP || error == ENAMETOOLONG;
    return error == ENOMEM ? FUSEC_OUT_OF_MEMORY : wrong ? FUSEC_INVALID_PROGRAM : FUSEC_IO_ERROR;
}

/* The path is relative to the importing file. */
static Owned *own_name(const char *importer, const char *path)
{
    const char *slash = importer ? strrchr(importer, '/') : NULL;
    size_t before = *path == '/' || !slash ? 0 : (size_t)(slash + 1 - importer),
           length = strlen(path);
    Owned *owned = calloc(1, sizeof *owned + before + length + 1);
    if (!owned) return NULL;
    memcpy(owned->name, importer ? importer : "", before);
    memcpy(owned->name + before, path, length + 1);
    return owned;
}

fusec_status fusec_import_file(void *unused, const char *importer, const char *path,
                               fusec_imported *imported)
{
    (void)unused;
    if (!path || !imported) return FUSEC_INVALID_ARGUMENT;
    Owned *owned = own_name(importer, path);
    if (!owned) return FUSEC_OUT_OF_MEMORY;
    fusec_status status =
        program_file_read(owned->name, &owned->text, &imported->length, owned->identity,
                          imported->message, sizeof imported->message);
    if (status != FUSEC_OK) {
        free(owned);
        return status;
    }
    imported->text = owned->text;
    imported->name = owned->name;
    imported->identity = owned->identity;
    imported->memory = owned;
    return FUSEC_OK;
}

void fusec_release_file(void *unused, fusec_imported *imported)
{
    (void)unused;
    if (!imported || !imported->memory) return;
    Owned *owned = imported->memory;
    free(owned->text);
    free(owned);
    imported->memory = NULL;
}
