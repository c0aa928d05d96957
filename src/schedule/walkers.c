/* schedule/walkers.c: the kernels of a plan that walk rows, in the order in which schedules name
 * them, and the complete schedule of all. */
#include "schedule/internal.h"

#include <stdlib.h>

static int by_index(const void *left, const void *right)
{
    const Kernel *const *a = left, *const *b = right;
    if ((*a)->part != (*b)->part) return (*a)->part - (*b)->part;
    return (*a)->index - (*b)->index;
}

/* The kernels that walk rows, a part after the other, as they were cut. */
static const Kernel **list_walkers(Arena *arena, const Plan *plan, int *count)
{
    const Kernel **walkers = NEW_ARRAY(arena, const Kernel *, plan->kernel_count + 1);
    *count = 0;
    for (int i = 0; i < plan->kernel_count; i++)
        if (walks_rows(&plan->kernels[i])) walkers[(*count)++] = &plan->kernels[i];
    qsort(walkers, (size_t)*count, sizeof *walkers, by_index);
    return walkers;
}

const Kernel *walker_at(Arena *arena, const Plan *plan, int place)
{
    int count;
    const Kernel **walkers = list_walkers(arena, plan, &count);
    return place >= 0 && place < count ? walkers[place] : NULL;
}

static int64_t work_of(const Plan *plan, const Kernel *k)
{
    const Analysis *a = plan->analysis;
    if (a->part_count) a = a->parts[k->part];
    int64_t rows = axes_size(&a->sizes, k->rows | k->kept);
    return (row_bytes(k) + 1) * axes_size(&a->sizes, k->columns) * (rows > 0 ? rows : 1);
}

int main_walker(Arena *arena, const Plan *plan)
{
    int count, best = -1;
    const Kernel **walkers = list_walkers(arena, plan, &count);
    for (int i = 0; i < count; i++)
        if (best < 0 || work_of(plan, walkers[i]) > work_of(plan, walkers[best])) best = i;
    return best;
}

const char *complete_schedule(Arena *arena, const Plan *plan)
{
    int count;
    const Kernel **walkers = list_walkers(arena, plan, &count);
    Text *text = text_new(arena);
    for (int i = 0; i < count; i++) {
        const Analysis *a = plan->analysis;
        if (a->part_count) a = a->parts[walkers[i]->part];
        const Scheduler s = reading_scheduler(arena, a, &plan->target);
        const Schedule schedule = read_schedule(&s, walkers[i]);
        bool next = i && walkers[i]->part != walkers[i - 1]->part;
        text_print(text, "%s%s", next ? "/" : i ? "+" : "", schedule_text(arena, &schedule));
    }
    return text_string(text);
}
