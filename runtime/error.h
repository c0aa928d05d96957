/* error.h: fills in a fusec_error, which may be NULL, and checks arguments that may not be. */
#ifndef FUSEC_ERROR_H
#define FUSEC_ERROR_H

#include "base/environment.h"
#include "fusec.h"
#include "reason.h"

#include <stdbool.h>

fusec_status fail(fusec_error *error, fusec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* INVALID_ARGUMENT: `what` is NULL and must not be. */
fusec_status fail_null(fusec_error *error, const char *what);
/* Sets FUSEC_OK and "". */
fusec_status succeed(fusec_error *error);

/* The beginning of a call that creates something, before it looks at any other argument: whatever
 * fails from here on, *result is NULL. `what` is a literal: "the plan". */
#define CLEAR_RESULT(result, what, error)                                                          \
    do {                                                                                           \
        if (!(result)) return fail_null((error), "the place for " what);                           \
        *(result) = NULL;                                                                          \
    } while (0)

/* Copies a struct to the caller's *info. Its first field says how much the caller's header knows of
 * it, and no more is written. False, with *info unchanged: that size ends at none of its fields. */
bool copy_info(void *info, const void *own, size_t size);

/* Copies the options that the caller's header knows into *options, `size` bytes; the others become
 * 0, as all do where `given` is NULL. The first field of both is the size in the caller's header.
 * INVALID_ARGUMENT for a wrong size; UNSUPPORTED for an option that only a later header has. `type`
 * is the struct's name. */
fusec_status copy_options(void *options, size_t size, const void *given, const char *type,
                          fusec_error *error);

/* The status for an errno, of a file or what `what` names: IO_ERROR, or OUT_OF_MEMORY. */
fusec_status fail_errno(fusec_error *error, int why, const char *what);

#endif
