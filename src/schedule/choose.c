/* schedule/choose.c: the schedule of a kernel: the model's best of those that can be. Proposals come
 * from the simplest on, and a later one must be faster by more than the model can tell apart. */
#include "schedule/internal.h"

#include <string.h>

static const double RESOLUTION = 0.98;

typedef struct {
    Scheduler *s;
    Kernel best;
    Load *loads;
    Schedule schedule;
    double time; /* 0: none yet */
} Choice;

static void consider(void *data, const Kernel *k, const Schedule *schedule)
{
    Choice *c = data;
    double time = kernel_time(c->s, k);
    if (c->time > 0 && time > c->time * RESOLUTION) return;
    c->time = time;
    c->best = *k;
    c->schedule = *schedule;
    if (k->load_count) memcpy(c->loads, k->loads, sizeof *k->loads * (size_t)k->load_count);
}

/* The model's best of what s->forced asks for. */
static bool choose_best(Scheduler *s, Kernel *k)
{
    Choice c = {.s = s, .loads = NEW_ARRAY(s->arena, Load, k->load_count + 1)};
    s->problem = NULL;
    propose(s, k, consider, &c);
    if (!(c.time > 0)) {
        if (!s->problem) s->problem = "no schedule has room for it";
        return false;
    }
    s->problem = NULL;
    *k = c.best;
    k->loads = c.loads;
    return true;
}

/* As a complete schedule says, however the graph was cut; else the kernel stays as it is. */
static bool fit_copy(Scheduler *s, Kernel *k)
{
    Kernel copy = *k;
    copy.loads = NEW_ARRAY(s->arena, Load, k->load_count + 1);
    if (k->load_count) memcpy(copy.loads, k->loads, sizeof *copy.loads * (size_t)k->load_count);
    s->forced.ride = k->rides ? 1 : 2;
    s->forced.apart = k->adds_apart;
    s->forced.parts = k->parts_apart ? 2 : 1;
    if (!fit_schedule(s, &copy)) return false;
    *k = copy;
    return true;
}

/* As the target's table has it; false: it has nothing of such a kernel, or what cannot be here, which
 * the plan then tells. */
static bool choose_tuned(Scheduler *s, Kernel *k)
{
    const char *text = k->inner_count ? find_tuned(s, k) : NULL;
    Schedule *schedules;
    int count;
    if (!text || parse_schedules(s->arena, text, &schedules, &count)) return false;
    s->forced = schedules[0];
    const bool fits = s->forced.exact ? fit_copy(s, k) : choose_best(s, k);
    s->forced = (Schedule){0};
    if (!fits) s->refused_row = (Rejection){text, s->problem};
    s->problem = NULL;
    k->tuned = fits;
    return fits;
}

bool choose_kernel(Scheduler *s, Kernel *k)
{
    return (!s->forced.any && choose_tuned(s, k)) || choose_best(s, k);
}
