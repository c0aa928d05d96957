/* schedule/choose.c: the schedule of a kernel: the simplest of those that are about as fast as
 * the model's fastest. Proposals come from the simplest on, so lengths near each other have the
 * same. */
#include "schedule/internal.h"

#include <string.h>

static const double RESOLUTION = 0.995; /* what the model cannot tell apart */
static const bool TUNE_ONLY = false; /* whether it chooses what gained nothing where it was timed */

typedef struct {
    Schedule schedule;
    double time;
} Near;

typedef struct {
    const Scheduler *s;
    LIST(Near) near; /* to the fastest when they came */
    double least;
} Choice;

static void consider(void *data, const Kernel *k, const Schedule *schedule)
{
    Choice *c = data;
    const double time = kernel_time(c->s, k);
    if (!c->near.count || time < c->least) c->least = time;
    if (time * RESOLUTION <= c->least) *list_push(c->s->arena, &c->near) = (Near){*schedule, time};
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

/* The model's best of what s->forced asks for. */
static bool choose_best(Scheduler *s, Kernel *k)
{
    Choice c = {.s = s};
    const Near *near;
    const Schedule asked = s->forced;
    s->problem = NULL;
    propose(s, k, TUNE_ONLY, consider, &c);
    if (!c.near.count) {
        if (!s->problem) s->problem = "no schedule fits the GPU";
        return false;
    }
    for (near = c.near.data; near->time * RESOLUTION > c.least;) near++;
    s->forced = near->schedule;
    const bool fits = fit_copy(s, k);
    s->forced = asked;
    s->problem = NULL;
    return fits;
}

/* As the target's table has it; false: it has nothing of such a kernel, or what cannot be here,
 * which the plan then tells. */
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
