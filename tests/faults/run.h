/* run.h: one run of a case of `make faults`. */
#ifndef FAULTS_RUN_H
#define FAULTS_RUN_H

#include "faults.h"
#include "folder.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    GPU = 1,      /* the stub driver is on the library path */
    SPILLS = 2,   /* the stub NVRTC says that kernels spill */
    NUMBERS = 4,  /* what it prints has times in it: digits are not compared */
    CLEARS = 8,   /* the disk cache may become empty */
    FRESH = 16,   /* the disk cache begins empty */
    CALLS = 32,   /* calls.c, not the command line */
    TRIES = 128,  /* a schedule that the driver refuses is listed as such, and others are tried */
    STDIN = 256,  /* stdin is in.safetensors */
    CLOSELY = 64, /* a sample of its faults in memory is a large one */
};

typedef struct {
    const char *name, *words;
    unsigned flags;
} Case;

enum { TO_FILE, TO_FULL, TO_NOTHING };

typedef struct {
    const char *fault; /* $FAULT, or NULL */
    int out, error;    /* where stdout and stderr go */
} How;

typedef struct {
    int status; /* as waitpid has it */
    bool late;
    char *out, *error;
    size_t out_bytes, error_bytes;
} Result;

extern char build[PATH], work[PATH]; /* absolute: where fusec was built; the folder of a run */
extern FaultReport *report;          /* of the last run */
extern long runs;                    /* how many there were */

bool is_cache(const char *path);
/* A name that entries of the cache have, and temporary files have not. */
bool is_entry(const char *path);
void make_folders(const char *root);
Result run(const Case *c, const Folder *before, const How *how);
void free_result(Result *result);

#endif
