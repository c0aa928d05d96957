/* fuzz_safetensors.c: libFuzzer target: any bytes are either refused with a message or give tensors
 * whose every byte can be read. */
#include "cli/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte, for the sanitizers; the sum keeps the reads from being optimized away. */
static unsigned sum_bytes(const Tensor *tensor)
{
    const unsigned char *bytes = tensor->data;
    unsigned sum = 0;
    for (size_t i = 0; i < tensor_bytes(tensor); i++) sum += bytes[i];
    return sum;
}

static unsigned sum_tensors(const TensorFile *file)
{
    unsigned sum = 0;
    for (int i = 0; i < file->count; i++) sum += sum_bytes(&file->tensors[i]);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TensorFile file;
    char message[256] = "";
    void *bytes = malloc(size + 1);
    if (!bytes) return 0;
    memcpy(bytes, data, size);
    if (tensors_parse(bytes, size, "fuzz", &file, message, sizeof message)) {
        if (sum_tensors(&file) > 0 && file.count == 0) abort();
        tensors_close(&file);
    } else if (!message[0]) {
        abort(); /* refused without a word */
    }
    free(bytes);
    return 0;
}
