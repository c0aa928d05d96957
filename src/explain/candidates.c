/* explain/candidates.c: the schedules that a graph could have: what the model expects of each, and
 * why others cannot be. */
#include "explain/explain.h"
#include "schedule/keys.h"

#include <string.h>

enum { LISTED = 40, TRIED = 8 * LISTED };

typedef struct {
    Estimate estimate;
    double time; /* of the kernel, by the model; 0: not known */
    const char *schedule;
    Schedule main; /* of the main kernel, without per_sm */
    int few, many; /* per_sm: from, to */
    bool untold;   /* one of the group does not tell per_sm */
    bool chosen;
} Ranked;

static Schedule read_main(Arena *arena, const Plan *chosen, const char *schedule)
{
    Schedule *read;
    int count;
    const char *problem =
        parse_schedules(arena, main_schedule(arena, chosen, schedule), &read, &count);
    return problem ? (Schedule){0} : read[0];
}

static int value_of(const Schedule *s, int key)
{
    return s->at[key] ? s->at[key] : key_info[key].plain;
}

/* Whether a complete schedule has what --schedule asks; the family `cluster` is any with clusters.
 */
static bool is_admitted(Arena *arena, const char *forced, const Schedule *s)
{
    static const char cluster[] = "cluster";
    enum { LENGTH = sizeof cluster - 1 };
    if (!forced || strpbrk(forced, "+/")) return true;
    const bool any = !strncmp(forced, cluster, LENGTH) && strcspn(forced, ":") == LENGTH;
    Schedule *asked;
    int count;
    const char *text = any ? arena_format(arena, "row%s", forced + LENGTH) : forced;
    if (parse_schedules(arena, text, &asked, &count)) return true;
    if (any ? value_of(s, KEY_cluster) < 2 : s->family != asked->family) return false;
    for (int key = 0; key < KEYS; key++)
        if (asked->at[key] && asked->at[key] != value_of(s, key)) return false;
    return true;
}

static Ranked ranked_new(Arena *arena, const Plan *chosen, const char *schedule, double time)
{
    Ranked r = {.schedule = schedule, .time = time, .main = read_main(arena, chosen, schedule)};
    r.few = r.many = value_of(&r.main, KEY_per_sm);
    r.untold = !r.many;
    return r;
}

static bool is_same_speed(const Ranked *one, const Ranked *other)
{
    const Estimate *a = &one->estimate, *b = &other->estimate;
    return a->unknown ? b->unknown && !strcmp(a->unknown, b->unknown) && one->time == other->time
                      : !b->unknown && a->bound == b->bound &&
                            rounded_gbps(a->gbps) == rounded_gbps(b->gbps);
}

/* The one among `all` that differs from `r` in per_sm alone; -1: none does. */
static int find_alike(const Ranked *all, int count, const Ranked *r)
{
    Schedule plain = r->main;
    plain.per_sm = 0;
    for (int i = 0; i < count; i++) {
        Schedule other = all[i].main;
        other.per_sm = 0;
        if (!all[i].chosen && is_same_speed(&all[i], r) && !memcmp(&plain, &other, sizeof plain))
            return i;
    }
    return -1;
}

/* "per_sm=2..6" in place of "per_sm=6"; in brackets where one of the group does not tell it. */
static const char *group_text(Arena *arena, const Ranked *r)
{
    if (r->few == r->many && !r->untold) return r->schedule;
    if (!r->many) return r->schedule;
    const char *key = arena_format(arena, "per_sm=%d", r->many), *at = strstr(r->schedule, key);
    if (!at) return r->schedule;
    const char *range =
        r->few == r->many ? key : arena_format(arena, "per_sm=%d..%d", r->few, r->many);
    const char *rest = at + strlen(key);
    if (r->untold && at[-1] == ',')
        return arena_format(arena, "%.*s[,%s]%s", (int)(at - 1 - r->schedule), r->schedule, range,
                            rest);
    return arena_format(arena, "%.*s%s%s", (int)(at - r->schedule), r->schedule, range, rest);
}

static void widen(Ranked *to, const Ranked *r)
{
    to->untold |= r->untold;
    if (r->few && (!to->few || r->few < to->few)) to->few = r->few;
    if (r->many <= to->many) return;
    to->many = r->many;
    to->schedule = r->schedule; /* that tells per_sm: the least may be what is not told */
}

static const Plan *plan_of(Arena *arena, const Plan *chosen, const char *schedule)
{
    const char *problem;
    return try_schedule(arena, chosen->analysis, &chosen->target, schedule, &problem);
}

static int find_chosen(const Ranked *all)
{
    int at = 0;
    while (!all[at].chosen) at++;
    return at;
}

/* The chosen one and the model's fastest that --schedule admits, in the order of what it expects.
 * `grouped`: those that differ in per_sm alone are one. */
static Ranked *rank(Arena *arena, const Plan *chosen, bool grouped, int *count, int *more)
{
    int tried = 0, left = 0;
    const char *own = complete_schedule(arena, chosen);
    const Alternatives list = list_alternatives(arena, chosen);
    Ranked *all = NEW_ARRAY(arena, Ranked, LISTED + 1);
    all[0] = ranked_new(arena, chosen, own, 0);
    all[0].estimate = estimate_speed(chosen);
    all[0].chosen = true;
    *count = 1;
    for (int i = 0; i < list.count; i++) {
        Ranked next = ranked_new(arena, chosen, list.data[i].schedule, list.data[i].time);
        if (!strcmp(next.schedule, own)) all[find_chosen(all)].time = next.time;
        if (!strcmp(next.schedule, own) || !is_admitted(arena, chosen->forced, &next.main))
            continue;
        if (*count >= LISTED || tried >= TRIED) {
            left++;
            continue;
        }
        const Plan *plan = plan_of(arena, chosen, next.schedule);
        if (!plan) continue;
        tried++;
        next.estimate = estimate_speed(plan);
        const int alike = grouped ? find_alike(all, *count, &next) : -1;
        if (alike >= 0) {
            widen(&all[alike], &next);
            continue;
        }
        int at = (*count)++;
        for (; at > 0 && all[at - 1].estimate.gbps < next.estimate.gbps; at--)
            all[at] = all[at - 1];
        all[at] = next;
    }
    *more = left;
    return all;
}

typedef LIST(Rejection) Rejections;

/* The families that the graph cannot have. */
static Rejections list_refused(Arena *arena, const Plan *chosen)
{
    Rejections refused = {0};
    for (int family = 0; family < FAMILY_FINISH; family++) {
        const char *problem, *name = family_name((Family)family);
        if (!try_schedule(arena, chosen->analysis, &chosen->target, name, &problem))
            *list_push(arena, &refused) = (Rejection){name, problem};
    }
    return refused;
}

/* Why the model has no figure for some, each reason once. */
static void list_unknown(Text *out, const Ranked *all, int count)
{
    const char *before = "1.00x: how many times as long as the fastest; no GB/s, for ";
    for (int i = 0; i < count; i++) {
        const char *reason = all[i].estimate.unknown;
        bool said = !reason;
        for (int j = 0; j < i && !said; j++)
            said = all[j].estimate.unknown && !strcmp(all[j].estimate.unknown, reason);
        if (said) continue;
        text_print(out, "%s%s", before, reason);
        before = "; ";
    }
    if (*before == ';') text_print(out, "\n");
}

static double least_time(const Ranked *all, int count)
{
    double least = 0;
    for (int i = 0; i < count; i++)
        if (all[i].time > 0 && (least <= 0 || all[i].time < least)) least = all[i].time;
    return least;
}

/* GB/s, or how many times as long as the fastest; "?": neither is known. */
static const char *speed_text(Arena *arena, const Ranked *r, double least)
{
    if (!r->estimate.unknown) return arena_format(arena, "%.0f", rounded_gbps(r->estimate.gbps));
    return r->time > 0 ? arena_format(arena, "%.2fx", r->time / least) : "?";
}

void explain_candidates(Text *out, const Plan *plan)
{
    int count, more;
    const Ranked *all = rank(out->arena, plan, true, &count, &more);
    const double least = least_time(all, count);
    line(out,
         "candidates: GB/s with many rows and what takes longest, by the cost model; * is chosen");
    for (int i = 0; i < count; i++) {
        const Estimate *e = &all[i].estimate;
        line(out, "%s %5s  %-12s  %s", all[i].chosen ? "  *" : "   ",
             speed_text(out->arena, &all[i], least), e->unknown ? "" : bound_name(e->bound),
             group_text(out->arena, &all[i]));
    }
    list_unknown(out, all, count);
    if (more) line(out, "not listed: %d that the model expects to be slower", more);
    const Rejections refused = list_refused(out->arena, plan);
    line(out, "refused: %d famil%s", refused.count, refused.count == 1 ? "y" : "ies");
    for (int i = 0; i < refused.count; i++)
        line(out, "  %s: %s", refused.data[i].schedule, refused.data[i].reason);
}

void put_candidates(Text *out, const Plan *plan)
{
    int count, more;
    const Ranked *all = rank(out->arena, plan, false, &count, &more);
    const Rejections refused = list_refused(out->arena, plan);
    text_print(out, ",\n  \"candidates\": [");
    for (int i = 0; i < count; i++) {
        const Estimate *e = &all[i].estimate;
        text_print(out, "%s\n    {\"schedule\": ", i ? "," : "");
        text_quote(out, all[i].schedule);
        text_print(out, ", \"chosen\": %s, \"model_gbps\": ", all[i].chosen ? "true" : "false");
        if (!e->unknown)
            text_print(out, "%.0f, \"bound_by\": \"%s\"}", e->gbps, bound_name(e->bound));
        else
            text_print(out, "null, \"bound_by\": null}");
    }
    text_print(out, "],\n  \"refused\": [");
    for (int i = 0; i < refused.count; i++) {
        text_print(out, "%s\n    {\"schedule\": ", i ? "," : "");
        text_quote(out, refused.data[i].schedule);
        text_print(out, ", \"reason\": ");
        text_quote(out, refused.data[i].reason);
        text_print(out, "}");
    }
    text_print(out, "]");
}
