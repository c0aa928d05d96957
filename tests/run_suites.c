/* run_suites.c: runs the Check suites: all, or those named on the command line (`arena` for
 * arena_suite). */
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Suite *MakeSuite(void);

/* One line each, from suites.h. */
static MakeSuite *const suites[] = {
#include "suites.inc"
};

static const char *const names[] = {
#include "suite_names.inc"
};

static int is_wanted(const char *name, int argc, char **argv)
{
    size_t length = strlen(name) - strlen("_suite");
    for (int i = 1; i < argc; i++)
        if (strlen(argv[i]) == length && !strncmp(argv[i], name, length)) return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    int added = 0;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (is_wanted(names[i], argc, argv)) {
            srunner_add_suite(runner, suites[i]());
            added++;
        }
    if (added == 0) {
        fprintf(stderr, "no such suite\n");
        return EXIT_FAILURE;
    }
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
