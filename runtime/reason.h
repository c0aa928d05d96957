/* reason.h: errno in words. */
#ifndef FUSEC_REASON_H
#define FUSEC_REASON_H

#include <errno.h>
#include <string.h>

/* strerror(), except that running out of memory is "out of memory" everywhere. */
static inline const char *reason_of(int error)
{
    return error == ENOMEM ? "out of memory" : strerror(error);
}

#endif
