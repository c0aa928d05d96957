/* replay.c: feeds files to a fuzz target, so that corpora are checked where there is no libFuzzer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return 1;
    long length = ftell(file);
    uint8_t *bytes = length < 0 ? NULL : malloc((size_t)length + 1);
    rewind(file);
    int failed = !bytes || fread(bytes, 1, (size_t)length, file) != (size_t)length;
    fclose(file);
    if (!failed) LLVMFuzzerTestOneInput(bytes, (size_t)length);
    free(bytes);
    return failed;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (replay(argv[i])) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
    return 0;
}
