/* base/environment.h: the locale and the floating-point environment that fusec computes and prints
 * in.
 *
 * Both belong to the caller: a locale with a decimal comma would change printed numbers, and
 * traps, another rounding mode or flush to zero would change what they are. Every entry of the
 * public API that computes or prints begins with OWN_ENVIRONMENT. Only the calling thread's
 * state changes, so another thread may call setlocale meanwhile. */
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

/* The C locale, rounding to nearest, no traps, subnormal numbers; what was before goes to *before.
 */
void environment_enter(Environment *before);
/* Back to what was before, exception flags included. */
void environment_leave(const Environment *before);

/* Until the end of the block that it stands in. */
#define OWN_ENVIRONMENT                                                                            \
    __attribute__((cleanup(environment_leave))) Environment environment_before_;                   \
    environment_enter(&environment_before_)

#endif
