/* faults.h: what the injector, the stub libraries and the driver of `make faults` know of each
 * other. */
#ifndef FAULTS_H
#define FAULTS_H

/* Kinds of calls, each counted by itself.
 *
 *     memory   malloc and its like, mmap: no memory
 *     file     open, read, write, fsync, rename, close ...: the error that a full disk, a full table
 *              of files or a device gives
 *     short    read and write: less than was asked for is moved
 *     eintr    open, read, write, waitpid, flock: a signal came first
 *     system   threads, child processes, pipes, dlopen
 *     cuda     each entry point of the stub driver and of the stub NVRTC */
enum {
    FAULT_MEMORY,
    FAULT_FILE,
    FAULT_SHORT,
    FAULT_EINTR,
    FAULT_SYSTEM,
    FAULT_CUDA,
    FAULT_FAMILIES
};
#define FAULT_NAMES                                                                                \
    {                                                                                              \
        "memory", "file", "short", "eintr", "system", "cuda"                                       \
    }

/* The file that $FAULT_REPORT names, mapped by the process under test and by the driver. */
typedef struct {
    long calls[FAULT_FAMILIES];
    long live;     /* allocations that were not freed */
    long hits;     /* calls that were made to fail */
    char what[32]; /* the first of them */
} FaultReport;

/* Whether this call, of a function named so, is one that fails. $FAULT says which: "memory:12" is
 * the twelfth alone, "memory:12+" all from the twelfth on. */
int fault_now(int family, const char *name);

#endif
