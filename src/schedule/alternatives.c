/* schedule/alternatives.c: the other schedules of a plan: those of one of its kernels, with the other
 * kernels unchanged; and the plans whose rows have other columns. */
#include "schedule/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Scheduler *s;
    const char *before, *behind; /* the schedules of other kernels */
    Alternatives *list;
} Listing;

static void add(void *data, const Kernel *k, const Schedule *schedule)
{
    Listing *l = data;
    Arena *arena = l->s->arena;
    *list_push(arena, l->list) = (Alternative){
        arena_format(arena, "%s%s%s", l->before, schedule_text(arena, schedule), l->behind),
        kernel_time(l->s, k), feeds_teams(k) || k->registers, l->list->count};
}

static int by_time(const void *left, const void *right)
{
    const Alternative *a = left, *b = right;
    return a->time != b->time ? (a->time > b->time) - (a->time < b->time) : a->number - b->number;
}

/* The kernel that a graph was cut into at that place among those that walk rows. */
static const Kernel *find_cut(const Scheduler *s, int place)
{
    for (int i = 0; i < s->kernels.count; i++)
        if (walks_rows(&s->kernels.data[i]) && place-- == 0) return &s->kernels.data[i];
    return NULL;
}

/* Where the schedule of the walker `place` begins in a text, and where it ends. */
static const char *find_part(const char *text, int place, size_t *length)
{
    for (; place; place--) text += strcspn(text, "+/") + 1;
    *length = strcspn(text, "+/");
    return text;
}

/* The place of the first kernel of the same part. */
static int first_of_part(Arena *arena, const Plan *plan, int place)
{
    const int part = walker_at(arena, plan, place)->part;
    if (!plan->analysis->part_count) return 0;
    while (place && walker_at(arena, plan, place - 1)->part == part) place--;
    return place;
}

/* Those of the kernel at a place among those that walk rows. */
static Alternatives list_at(Arena *arena, const Plan *plan, int place)
{
    Alternatives list = {0};
    const Kernel *k = walker_at(arena, plan, place);
    const Analysis *a =
        plan->analysis->part_count ? plan->analysis->parts[k->part] : plan->analysis;
    Scheduler *s = new_scheduler(arena, a, &plan->target);
    const Kernel *cut =
        cut_alike(s, k) ? find_cut(s, place - first_of_part(arena, plan, place)) : NULL;
    if (!cut) return list;
    size_t length;
    const char *all = complete_schedule(arena, plan), *own = find_part(all, place, &length);
    Listing l = {s, arena_copy(arena, all, (size_t)(own - all)), own + length, &list};
    propose(s, cut, true, add, &l);
    if (list.count) qsort(list.data, (size_t)list.count, sizeof *list.data, by_time);
    return list;
}

Alternatives list_alternatives(Arena *arena, const Plan *plan)
{
    const int place = main_walker(arena, plan);
    return place < 0 ? (Alternatives){0} : list_at(arena, plan, place);
}

/* Of alternatives at most so many. */
static Alternatives pick(Arena *arena, Alternatives all, const char *chosen, int most)
{
    enum { SLOW = 4 };
    Alternatives list = {0};
    int count = all.count;
    while (count && all.data[count - 1].time > SLOW * all.data[0].time) count--;
    const int best = most / 2, rest = count - best, step = rest > 0 ? rest / (most - best) + 1 : 1;
    for (int i = 0, taken = 0, tune_only = 0; i < count && list.count < most;) {
        const bool fast = taken < best;
        if (fast && all.data[i].tune_only && tune_only++ >= best / 2) {
            i++;
            continue;
        }
        if (strcmp(all.data[i].schedule, chosen)) *list_push(arena, &list) = all.data[i];
        taken++;
        i += fast ? 1 : step;
    }
    return list;
}

Alternatives list_candidates(Arena *arena, const Plan *plan, int most)
{
    return pick(arena, list_alternatives(arena, plan), complete_schedule(arena, plan), most);
}

static void append(Arena *arena, Alternatives *list, const Alternatives *more)
{
    for (int i = 0; i < more->count; i++) *list_push(arena, list) = more->data[i];
}

/* The plans of other columns than a plan has, which compile in no size that it leaves to launches;
 * `first`: what its graph's columns may be. */
static void add_other_columns(Arena *arena, const Analysis *first, const Plan *plan,
                              Alternatives *list)
{
    for (const Analysis *a = first; a; a = a->other) {
        const bool fits = a->choice != plan->analysis->choice && !a->part_count &&
                          axes_within(a->fixed, plan->analysis->fixed);
        const Plan *other = fits ? plan_columns(arena, a, &plan->target) : NULL;
        if (other)
            *list_push(arena, list) = (Alternative){.schedule = complete_schedule(arena, other)};
    }
}

Alternatives list_all_candidates(Arena *arena, const Analysis *first, const Plan *plan, int most,
                                 int *left_out)
{
    enum { OF_OTHERS = 4 }; /* one in so many is of a kernel beside the main one */
    const char *chosen = complete_schedule(arena, plan);
    const int main = main_walker(arena, plan);
    Alternatives list = {0};
    int all = 0, walkers = 0;
    add_other_columns(arena, first, plan, &list);
    all += list.count;
    while (walker_at(arena, plan, walkers)) walkers++;
    for (int i = 0; i < walkers; i++) {
        if (i == main) continue;
        const Alternatives own = list_at(arena, plan, i),
                           some = pick(arena, own, chosen, most / OF_OTHERS / (walkers - 1) + 1);
        all += own.count;
        append(arena, &list, &some);
    }
    const Alternatives own = list_alternatives(arena, plan),
                       some = pick(arena, own, chosen, most - list.count);
    append(arena, &list, &some);
    *left_out = all + own.count - list.count;
    return list;
}

/* ---- the schedule of the main kernel ---- */

const char *main_schedule(Arena *arena, const Plan *plan, const char *all)
{
    size_t length;
    const char *own = find_part(all, main_walker(arena, plan), &length);
    return arena_copy(arena, own, length);
}

const char *with_main_schedule(Arena *arena, const Plan *plan, const char *schedule)
{
    size_t length;
    const char *all = complete_schedule(arena, plan);
    const char *own = find_part(all, main_walker(arena, plan), &length);
    if (own == all && !own[length]) return schedule;
    return arena_format(arena, "%.*s%s%s", (int)(own - all), all, schedule, own + length);
}

/* ---- the text of a plan ---- */

/* The family with the keys that say most of it. */
static const char *short_text(Arena *arena, const Plan *plan, const Kernel *k)
{
    Text *text = text_new(arena);
    text_print(text, "%s:threads=%d", family_name(k->family), k->threads_per_row);
    if (rows_of_step(k) > 1) text_print(text, ",rows=%d", rows_of_step(k));
    if (k->cluster > 1) text_print(text, ",cluster=%d", k->cluster);
    if (k->stages) text_print(text, ",stages=%d", k->stages);
    if (reuses_stages(k)) text_print(text, ",reuse=1");
    if (has_bulk_rows(k)) text_print(text, ",bulk=1");
    if (k->groups > 1) text_print(text, ",groups=%d", k->groups);
    const int axes = (int)plan->analysis->choice + 1;
    if (axes != key_info[KEY_axes].plain)
        text_print(text, ",axes=%s", key_value(arena, KEY_axes, axes));
    return family_name(plan->family) == family_name(k->family) ? text_string(text) : NULL;
}

const char *name_plan(Arena *arena, const Plan *plan)
{
    const int place = main_walker(arena, plan);
    const char *complete = complete_schedule(arena, plan), *problem;
    if (place < 0 || plan->analysis->part_count) return complete;
    const char *text = short_text(arena, plan, walker_at(arena, plan, place));
    const Plan *named =
        text ? try_schedule(arena, plan->analysis, &plan->target, text, &problem) : NULL;
    return named && !strcmp(complete_schedule(arena, named), complete) ? text : complete;
}
