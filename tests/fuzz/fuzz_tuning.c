/* fuzz_tuning.c: libFuzzer target for the tuning file's reader and writer.
 *
 * Whatever a file holds: an entry that is found has a schedule; one that is written is
 * found as it was written, and not any more once it is taken out; a file that is refused
 * is left as it was. */
#include "demand.h"
#include "tuning.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static void write_file(const uint8_t *data, size_t size)
{
    if (!*path) {
        snprintf(path, sizeof path, "%s/fuzz_tuning.%ld",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
        setenv("FUSEC_TUNING_FILE", path, 1);
        atexit(remove_file);
    }
    FILE *file = fopen(path, "w");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static bool holds(const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "r");
    char *now = malloc(size + 2);
    bool same =
        file && now && fread(now, 1, size + 1, file) == size && memcmp(now, data, size) == 0;
    if (file) fclose(file);
    free(now);
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing[1];
    TuningKey key = {"0123456789abcdef0123456789abcdef"};
    TuningEntry entry = {.key = key,
                         .arch = "sm_90a",
                         .device = "GPU",
                         .us = 1.5,
                         .chosen_us = 2.5,
                         .what = "g N=8",
                         .schedule = "row:threads=64"};
    char why[TUNING_WHY];
    write_file(data ? data : nothing, size);
    char *schedule = tuning_find(&key, entry.arch, entry.device, why);
    demand(!schedule || *schedule, "an entry without a schedule");
    free(schedule);
    if (!tuning_store(&entry, why)) {
        demand(*why && memchr(why, 0, sizeof why), "a refusal without a reason");
        demand(holds(data ? data : nothing, size), "a file that is refused has changed");
        return 0;
    }
    schedule = tuning_find(&key, entry.arch, entry.device, why);
    demand(schedule && strcmp(schedule, entry.schedule) == 0, "what was written is not found");
    free(schedule);
    entry.schedule = NULL;
    demand(tuning_store(&entry, why), "an entry that was written cannot be taken out");
    demand(!tuning_find(&key, entry.arch, entry.device, why), "what was taken out is found");
    return 0;
}
