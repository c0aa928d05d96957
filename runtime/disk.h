/* disk.h: the disk cache of compiled code, one sealed file an entry. */
#ifndef FUSEC_DISK_H
#define FUSEC_DISK_H

#include "serialize.h"
#include "nvrtc.h"

/* All that the code depends on, and the name of the entry, a hash of it. The strings are the
 * caller's. */
typedef struct {
    char name[48];
    const char *version; /* of fusec */
    const char *arch, *option, *cuda;
    int major, minor; /* of NVRTC */
} DiskKey;

DiskKey disk_key(const char *cuda, const char *arch, const char *option, const Nvrtc *nvrtc);
/* false: there is no entry that can be trusted, is whole and holds this very key; one that is none
 * is removed. A hit counts as a use. */
bool disk_load(const DiskKey *key, Code *code);
/* Stores an entry and drops old ones over the size cap. false: `why` is a warning: it could not be
 * stored, or is but FUSEC_CACHE_BYTES says no size and the default is kept. */
bool disk_store(const DiskKey *key, const Code *code, char *why, size_t size);

/* What an entry holds. The texts are NUL-ended. */
typedef struct {
    DiskKey key;         /* but for its name */
    const char *kernel;  /* its main kernel's name, "" if it is not known */
    double milliseconds; /* that compiling took */
    const char *log, *binary;
    size_t log_bytes, binary_bytes;
} DiskEntry;

extern const char disk_magic[SEAL_MAGIC];
/* The payload of an entry's file. */
void disk_encode(Writer *w, const DiskEntry *entry);
/* Reads it back, in place. false: these bytes are none that disk_encode() writes. */
bool disk_decode(const char *payload, size_t bytes, DiskEntry *entry);

#endif
