/* frontend/import.h: where the text of an `import` comes from. The compiler opens no file: its
 * caller decides what a path means, and whether there are imports at all. */
#ifndef FUSEC_IMPORT_H
#define FUSEC_IMPORT_H

#include "frontend/ast.h"

enum {
    MAX_PROGRAM_BYTES = 16 << 20,  /* of one file */
    MAX_IMPORTED_BYTES = 64 << 20, /* of all imports together */
    MAX_IMPORTS = 10000            /* statements */
};

typedef enum {
    IMPORT_LOADED,
    IMPORT_WRONG,   /* the program names what is not there */
    IMPORT_MACHINE, /* it is there, and cannot be read */
    IMPORT_NO_MEMORY
} ImportStatus;

/* An import's text. Everything is copied before `release` is called. */
typedef struct {
    const char *text;
    size_t length;
    const char *name;     /* for diagnostics */
    const char *identity; /* files with equal ones are one file; NULL: the name */
    const char *problem;  /* of a failure, in words */
} Imported;

typedef ImportStatus LoadImport(void *data, const Module *importer, const char *path,
                                Imported *imported);
typedef void ReleaseImport(void *data);

typedef struct Imports {
    LoadImport *load;
    /* Called after each load that succeeded; NULL: there is nothing to release. */
    ReleaseImport *release;
    void *data;
    const char *identity; /* of the main file; NULL: its name */
} Imports;

/* The imports of a parsed program, from its tree: nothing is read again. The tree must outlive
 * their use. */
Imports kept_imports(const Module *program);
/* The module that the module of an identity imports by a path; NULL: it does not import it. */
const Module *find_import(const Module *program, const char *identity, const char *path);

#endif
