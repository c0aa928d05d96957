/* import_file.h: programs and their imports from files, and the imports of fusec.h in the form that
 * compile() takes. */
#ifndef FUSEC_IMPORT_FILE_H
#define FUSEC_IMPORT_FILE_H

#include "fusec.h"
#include "frontend/import.h"

#include <stdbool.h>

enum { FILE_IDENTITY = 40 };

/* The identity that fusec_import_file gives a file; false: there is no such regular file. */
bool file_identity(const char *path, char identity[FILE_IDENTITY]);
/* A program's file, malloc'ed. On failure `message` says why. */
fusec_status program_file_read(const char *path, char **text, size_t *length,
                               char identity[FILE_IDENTITY], char *message, size_t size);

/* An import function of fusec.h in the form that compile() calls: `imports`. Close it after the
 * compilation. */
typedef struct {
    fusec_parse_options options;
    fusec_imported answer;
    bool answered; /* an answer waits for its release */
    Imports imports;
} ImportCalls;

/* `identity` is that of the main file, NULL: its name; it must outlive the compilation. */
void import_calls_open(ImportCalls *calls, const fusec_parse_options *options,
                       const char *identity);
void import_calls_close(ImportCalls *calls);

#endif
