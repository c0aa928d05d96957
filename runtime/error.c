/* error.c: statuses, their names and the text of messages.
 *
 * This is the only place that writes into a fusec_error. Messages that are too long are cut at the
 * end of a line. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
#define STATUS_NAME(name, text) #name,
    FUSEC_STATUSES(STATUS_NAME)
#undef STATUS_NAME
};

static const char *const status_texts[] = {
#define STATUS_TEXT(name, text) text,
    FUSEC_STATUSES(STATUS_TEXT)
#undef STATUS_TEXT
};

static int is_status(fusec_status status)
{
    return (unsigned)status < (unsigned)FUSEC_STATUS_COUNT;
}

const char *fusec_status_name(fusec_status status)
{
    return is_status(status) ? status_names[status] : "UNKNOWN";
}

const char *fusec_status_text(fusec_status status)
{
    return is_status(status) ? status_texts[status] : "unknown status";
}

const char *fusec_version(void)
{
    return FUSEC_VERSION;
}

static void trim_message(char *message, size_t size, int printed)
{
    if (printed < 0) message[0] = 0;
    size_t length = strlen(message);
    if (printed >= 0 && (size_t)printed >= size) {
        static const char more[] = "\n...";
        message[size - sizeof more] = 0;
        char *end = strrchr(message, '\n');
        memcpy(end ? end : message + size - sizeof more, more, sizeof more);
        length = strlen(message);
    }
    while (length && message[length - 1] == '\n') message[--length] = 0;
}

fusec_status fail(fusec_error *error, fusec_status status, const char *format, ...)
{
    if (!error) return status;
    error->status = status;
    va_list args;
    va_start(args, format);
    int printed = vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    trim_message(error->message, sizeof error->message, printed);
    return status;
}

fusec_status fail_errno(fusec_error *error, int why, const char *what)
{
    return fail(error, why == ENOMEM ? FUSEC_OUT_OF_MEMORY : FUSEC_IO_ERROR, "%.600s: %s", what,
                reason_of(why));
}

fusec_status fail_null(fusec_error *error, const char *what)
{
    return fail(error, FUSEC_INVALID_ARGUMENT, "%s is NULL", what);
}

fusec_status succeed(fusec_error *error)
{
    if (error) {
        error->status = FUSEC_OK;
        error->message[0] = 0;
    }
    return FUSEC_OK;
}

fusec_status copy_options(void *options, size_t size, const void *given, const char *type,
                          fusec_error *error)
{
    enum { LARGEST = 4096 };
    const char *bytes = given;
    size_t known;
    memset(options, 0, size);
    if (!given) return FUSEC_OK;
    memcpy(&known, given, sizeof known);
    if (known < sizeof known || known > LARGEST)
        return fail(error, FUSEC_INVALID_ARGUMENT,
                    "options.struct_size must be sizeof(%s), not %zu", type, known);
    for (size_t i = size; i < known; i++)
        if (bytes[i])
            return fail(error, FUSEC_UNSUPPORTED,
                        "an option is set that libfusec " FUSEC_VERSION " does not know");
    memcpy(options, given, known < size ? known : size);
    return FUSEC_OK;
}

bool copy_info(void *info, const void *own, size_t size)
{
    size_t known;
    memcpy(&known, info, sizeof known);
    if (known <= sizeof known) return false;
    const size_t bytes = known < size ? known : size;
    memcpy((char *)info + sizeof known, (const char *)own + sizeof known, bytes - sizeof known);
    return true;
}
