/* schedule/backwards.c: which kernels walk their rows from the last to the first: those that read
 * what the kernel before them has read from first to last. They begin with the rows that L2 still
 * holds, before others replace them. */
#include "schedule/internal.h"

/* Whether its CTAs are one for so many rows each, in the order of the rows. */
static bool has_cta_for_rows(const Kernel *k)
{
    return k->rows && !k->kept && !k->beside && k->split == WHOLE_ROWS && k->cluster == 1 &&
           !is_persistent(k);
}

/* Whether the rows that it reads last are the last, or (backwards) the first. */
static bool ends_with_last_rows(const Kernel *k)
{
    return k->rows && !k->kept && !k->beside;
}

static bool read_alike(const Kernel *a, const Kernel *b)
{
    if (a->rows != b->rows || a->columns != b->columns) return false;
    for (int i = 0; i < a->load_count; i++)
        for (int j = 0; j < b->load_count; j++) {
            const Load *one = &a->loads[i], *other = &b->loads[j];
            if (one->tensor >= 0 && one->tensor == other->tensor &&
                one->axes == (a->rows | a->columns))
                return true;
        }
    return false;
}

void find_backwards(Plan *plan)
{
    const Kernel *before = NULL;
    for (int i = 0; i < plan->kernel_count; i++) {
        Kernel *k = &plan->kernels[i];
        if (!walks_rows(k)) continue;
        k->backwards = before && has_cta_for_rows(k) && ends_with_last_rows(before) &&
                       !before->backwards && read_alike(before, k);
        before = k;
    }
}
