/* fuzz_cache.c: libFuzzer target for the disk cache's reader.
 *
 * Any bytes are refused, or are an entry that encodes to the same bytes again; what is
 * said of an entry's code is read off any bytes too. The input is taken for a file and for
 * a file's payload, since no mutation finds a checksum. */
#include "cubin.h"
#include "demand.h"
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory that ends where the bytes do, so that a read past them is seen. */
static char *copy_bytes(const void *bytes, size_t size)
{
    char *copy = malloc(size ? size : 1);
    if (!copy) exit(0);
    if (size) memcpy(copy, bytes, size);
    return copy;
}

static bool same_usage(const Usage *a, const Usage *b)
{
    return a->registers == b->registers && a->stack_bytes == b->stack_bytes &&
           a->smem_bytes == b->smem_bytes && a->spill_bytes == b->spill_bytes;
}

static void check_code(const DiskEntry *entry)
{
    char *cubin = copy_bytes(entry->binary, entry->binary_bytes);
    for (int i = 0; i < KERNELS; i++) {
        Usage first, second;
        const char *kernel = cubin_kernel_name(cubin, entry->binary_bytes, i);
        if (!kernel) break;
        cubin_usage(cubin, entry->binary_bytes, entry->log, kernel, &first);
        cubin_usage(cubin, entry->binary_bytes, entry->log, kernel, &second);
        demand(same_usage(&first, &second), "a cubin is read in two ways");
    }
    free(cubin);
}

static void check_payload(const char *payload, size_t bytes)
{
    DiskEntry entry;
    Writer again = {0};
    if (!disk_decode(payload, bytes, &entry)) return;
    disk_encode(&again, &entry);
    demand(again.failed || (again.length == bytes && memcmp(again.data, payload, bytes) == 0),
           "an entry is not what it was read from");
    writer_free(&again);
    check_code(&entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *file = copy_bytes(data, size);
    size_t bytes = 0;
    const char *payload = unseal(file, size, disk_magic, &bytes);
    if (payload) {
        demand(payload > file && bytes < size, "a file holds less than its payload");
        check_payload(payload, bytes);
    }
    check_payload(file, size);
    free(file);
    return 0;
}
