/* base/environment.h: the locale and the floating-point environment in which fusec computes and
 * prints.
 *
 * Both belong to the caller. A locale with a decimal comma would change printed numbers; traps,
 * another rounding mode or flush to zero would change their values. Every entry of the public API
 * that computes or prints begins with OWN_ENVIRONMENT. Only the calling thread's state changes, so
 * another thread may call setlocale meanwhile. */
#ifndef FUSEC_ENVIRONMENT_H
#define FUSEC_ENVIRONMENT_H

#include <fenv.h>
#include <locale.h>

typedef struct {
    femode_t modes;
    fexcept_t flags;
    int raised;
    locale_t locale;
} Environment;

/* Sets the C locale, rounding to nearest, no traps and subnormal numbers; the state before goes to
 * *before. */
void environment_enter(Environment *before);
/* Restores the state before, exception flags included. */
void environment_leave(const Environment *before);

/* The same for the rest of the enclosing block. */
#define OWN_ENVIRONMENT                                                                            \
    __attribute__((cleanup(environment_leave))) Environment environment_before_;                   \
    environment_enter(&environment_before_)

#endif
