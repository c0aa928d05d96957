/* gpu_cases.c: many `run --verify` cases in one process, so that the device is opened once.
 *
 *     gpu_cases cuda|cpu < CASES       a case a line: the arguments of `fusec run`
 *
 * Prints what went wrong, and at the end how many cases passed; exits 1 if any did not, and 3 with
 * the word `skipped` when there is no device. Each case is named on stderr before it runs, so that
 * the last line there tells which one never ended. */
#include "cli/session.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 32 };

static bool parse_case(Arena *arena, char *text, Options *o)
{
    static char program[] = "fusec", command[] = "run";
    char *argv[MOST_WORDS + 1] = {program, command};
    int argc = 2, status;
    for (char *word = strtok(text, " \n"); word && argc < MOST_WORDS; word = strtok(NULL, " \n"))
        argv[argc++] = word;
    *o = (Options){.arena = arena};
    return argc > 2 && parse_options(o, argc, argv, &status);
}

static int run_batch(Session *s, Batch *b, Text *table, bool *passed)
{
    int status = settle_sizes(s, NULL);
    if (status == EXIT_DONE) status = open_batch(s, &s->sizes, b);
    if (status != EXIT_DONE) return status;
    fill_random(s, b);
    status = settle_scalars(s, b, NULL, true);
    if (status == EXIT_DONE) status = open_plan(s, false);
    if (status == EXIT_DONE) status = upload_batch(s, b);
    if (status == EXIT_DONE) status = launch_batch(s, b);
    if (status == EXIT_DONE) status = download_batch(s, b);
    if (status == EXIT_DONE) status = verify_batch(s, b, table, passed);
    return status;
}

static bool run_case(fusec_device *device, const char *text)
{
    Arena *arena = arena_new();
    if (!arena) return false;
    Options o;
    Session s;
    Batch b = {0};
    bool passed = false;
    Text *table = text_new(arena);
    if (parse_case(arena, arena_copy(arena, text, strlen(text)), &o)) {
        int status = open_session(&s, &o);
        s.device = device;
        if (status == EXIT_DONE) status = run_batch(&s, &b, table, &passed);
        passed &= status == EXIT_DONE;
        close_batch(&s, &b);
        close_session(&s);
    }
    if (!passed) printf("FAILED: %s%s", text, text_string(table));
    fflush(stdout);
    arena_free(arena);
    return passed;
}

int main(int argc, char **argv)
{
    char text[4096];
    fusec_device *device;
    fusec_error error;
    bool cpu = argc > 1 && !strcmp(argv[1], "cpu");
    if ((cpu ? fusec_device_cpu(&device, &error) : fusec_device_open(0, &device, &error))) {
        printf("skipped: %s\n", error.message);
        return EXIT_MACHINE;
    }
    int cases = 0, good = 0;
    while (fgets(text, sizeof text, stdin)) {
        cases++;
        fputs(text, stderr);
        good += run_case(device, text);
    }
    fusec_device_destroy(device);
    printf("%d of %d cases passed\n", good, cases);
    return good == cases ? EXIT_DONE : EXIT_WRONG;
}
