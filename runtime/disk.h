/* disk.h: the disk cache of compiled code, one sealed file an entry. */
#ifndef FUSEC_DISK_H
#define FUSEC_DISK_H

#include "serialize.h"
#include "nvrtc.h"

/* Everything that the code depends on, and the name of the entry, which is a hash of it. The
 * strings are the caller's. */
typedef struct {
    char name[48];
    const char *version; /* of fusec */
    const char *arch, *option, *cuda;
    int major, minor; /* of NVRTC */
} DiskKey;

DiskKey disk_key(const char *cuda, const char *arch, const char *option, const Nvrtc *nvrtc);
/* False: there is no entry that can be trusted, is complete and holds this very key; a bad one is
 * removed. A hit counts as a use. */
bool disk_load(const DiskKey *key, Code *code);
/* Stores an entry and drops old ones above the size cap. False: `why` is a warning: the entry could
 * not be stored, or FUSEC_CACHE_BYTES is no size and the default was used. */
bool disk_store(const DiskKey *key, const Code *code, char *why, size_t size);

/* The contents of an entry. The texts are NUL-ended. */
typedef struct {
    DiskKey key;         /* without its name */
    const char *kernel;  /* its main kernel's name, "" if it is not known */
    double milliseconds; /* that compilation took */
    const char *log, *binary;
    size_t log_bytes, binary_bytes;
} DiskEntry;

extern const char disk_magic[SEAL_MAGIC];
/* The payload of an entry's file. */
void disk_encode(Writer *w, const DiskEntry *entry);
/* Reads it back in place. False: disk_encode() does not write such bytes. */
bool disk_decode(const char *payload, size_t bytes, DiskEntry *entry);

#endif
