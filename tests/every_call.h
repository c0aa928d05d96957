/* every_call.h: calls of the C API whose results must be the same in every state of the process, and
 * which must leave that state as it was. */
#ifndef FUSEC_TESTS_EVERY_CALL_H
#define FUSEC_TESTS_EVERY_CALL_H

#include "fusec.h"

#include <check.h>
#include <stdbool.h>

/* What calls gave: texts, messages, tensors. */
typedef struct {
    char *bytes;
    size_t length, capacity;
} Record;

/* Whether the state of the process is compared after each call: there is one thread, and nobody else
 * changes the locale. */
extern bool watches;

/* Reads the programs, fills the inputs, and does all for the first time: that is what is expected.
 * Sets `watches`. */
void expect_calls(void);
void forget_calls(void);

/* The bytes are the caller's, to free. */
Record do_all(void);
/* Frees them. */
bool is_expected(Record r);

/* Fails where the state is not what it was when do_all() began. */
void check_state(const char *what);

#define DO(call)                                                                                   \
    do {                                                                                           \
        fusec_error error_;                                                                        \
        fusec_error *const error = &error_;                                                        \
        ck_assert_msg((call) == FUSEC_OK, "%s", error_.message);                                   \
        check_state(#call);                                                                        \
    } while (0)

#endif
