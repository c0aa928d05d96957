/* error.h: filling in a fusec_error, which may be NULL. */
#ifndef FUSEC_ERROR_H
#define FUSEC_ERROR_H

#include "fusec.h"

fusec_status fail(fusec_error *error, fusec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets FUSEC_OK and "". */
fusec_status succeed(fusec_error *error);

#endif
