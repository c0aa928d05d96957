/* schedule/choose.c: the schedule of a kernel. Of those that are about as fast as the model's
 * fastest the simplest kind is taken, so that lengths near each other have the same kind; of that
 * kind the fastest. */
#include "schedule/internal.h"

#include <string.h>

static const double NEAR = 0.985;    /* what the model cannot tell apart */
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

/* Compares, in this order: rows that are read again, CTAs that share a row, column vectors that
 * later phases read, groups of warps, phases of several rows at once, a row's registers that the
 * next row takes, bulk copies, a ring (of two rings that is simpler which frees its stage at once),
 * its stages, a bound on registers. Below 0: `a` is simpler. */
static int compare_kinds(const Schedule *a, const Schedule *b)
{
    const int ring_a = a->stages > 1 || a->reuse, ring_b = b->stages > 1 || b->reuse,
              late_a = a->columns == 1 + IN_MEMORY, late_b = b->columns == 1 + IN_MEMORY,
              told_a = a->per_sm && !a->live, told_b = b->per_sm && !b->live;
    const int steps[] = {a->reads - b->reads,   a->cluster - b->cluster, late_a - late_b,
                         a->groups - b->groups, a->lag - b->lag,         a->refill - b->refill,
                         a->bulk - b->bulk,     ring_a - ring_b,         b->reuse - a->reuse,
                         a->stages - b->stages, told_a - told_b};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i]) return steps[i];
    return 0;
}

static void consider(void *data, const Kernel *k, const Schedule *schedule)
{
    Choice *c = data;
    const double time = kernel_time(c->s, k);
    if (!c->near.count || time < c->least) c->least = time;
    if (time * NEAR <= c->least) *list_push(c->s->arena, &c->near) = (Near){*schedule, time};
}

static const Schedule *simplest(const Choice *c)
{
    const Near *found = NULL;
    for (const Near *n = c->near.data; n < c->near.data + c->near.count; n++) {
        if (n->time * NEAR > c->least) continue;
        const int order = found ? compare_kinds(&n->schedule, &found->schedule) : -1;
        if (order < 0 || (order == 0 && n->time < found->time)) found = n;
    }
    return &found->schedule;
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
    const Schedule asked = s->forced;
    s->problem = NULL;
    propose(s, k, TUNE_ONLY, consider, &c);
    if (!c.near.count) {
        if (!s->problem) s->problem = "no schedule fits the GPU";
        return false;
    }
    s->forced = *simplest(&c);
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
