/* serialize.h: writes and reads our files: numbers and strings one after another, sealed by a
 * header with a magic, the length and a checksum. Saved plans and the disk cache use it. */
#ifndef FUSEC_BYTES_H
#define FUSEC_BYTES_H

#include "file_read.h"
#include "file_write.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *data; /* malloc'ed */
    size_t length, capacity;
    bool failed; /* out of memory: later output is dropped */
} Writer;

void put_bytes(Writer *w, const void *bytes, size_t length);
void put_int(Writer *w, int64_t value);
void put_double(Writer *w, double value);
void put_string(Writer *w, const char *text, size_t length); /* stored with a NUL */
void writer_free(Writer *w);

typedef struct {
    const char *data;
    size_t left;
    bool failed; /* read past the end, or an impossible value; later reads give 0 */
} Reader;

int64_t get_int(Reader *r);
int64_t get_range(Reader *r, int64_t least, int64_t most); /* fails outside */
double get_double(Reader *r);
const char *get_string(Reader *r, size_t *length); /* in place, NUL-ended, "" on failure */

enum { SEAL_MAGIC = 8 };

/* Writes `magic`, length, checksum and payload, as file_write.h says. false with errno set. */
bool file_write_sealed(const char *path, const char magic[SEAL_MAGIC], const Writer *payload);
/* The same to a file that was begun. */
bool put_sealed(NewFile *file, const char magic[SEAL_MAGIC], const Writer *payload);

/* Replaces a file by given bytes: those of `head`, then those of `data`. */
bool file_replace(const char *path, const void *head, size_t head_bytes, const void *data,
                  size_t bytes);
/* Creates a directory and those above it; false with errno set. `path` is unchanged afterwards. */
bool make_directories(char *path);

enum { MAX_SEALED = 1 << 28 };
typedef enum { SEALED_OK, SEALED_ABSENT, SEALED_REFUSED } Sealed;
/* Reads it back: `*data` is malloc'ed and holds the payload. Else `why` says why. ABSENT: the
 * system's error, also in errno; REFUSED: the file is damaged, or must not be read
 * (file_read.h). */
Sealed file_read_sealed(int directory, const char *path, FileTrust trust,
                        const char magic[SEAL_MAGIC], char **data, size_t *bytes,
                        char why[FILE_WHY]);

/* The payload of such a file's bytes; NULL: damaged. */
const char *unseal(const char *file, size_t size, const char magic[SEAL_MAGIC], size_t *bytes);

#endif
