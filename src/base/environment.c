/* base/environment.c: see base/environment.h. Every launch enters and leaves, so this uses the
 * cheap calls, not fegetenv and fesetenv. */
#include "base/environment.h"

void environment_enter(Environment *before)
{
    /* glibc keeps one object of this locale: nothing is allocated, nothing can fail. */
    before->locale = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    fegetmode(&before->modes);
    fegetexceptflag(&before->flags, FE_ALL_EXCEPT);
    before->raised = fetestexcept(FE_ALL_EXCEPT);
    fesetmode(FE_DFL_MODE);
}

void environment_leave(const Environment *before)
{
    if (fetestexcept(FE_ALL_EXCEPT) != before->raised)
        fesetexceptflag(&before->flags, FE_ALL_EXCEPT);
    fesetmode(&before->modes);
    uselocale(before->locale);
}
