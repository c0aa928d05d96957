/* demand.h: how a fuzz target says that something must hold. */
#ifndef FUSEC_TESTS_FUZZ_DEMAND_H
#define FUSEC_TESTS_FUZZ_DEMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void demand(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

#endif
