/* explain/candidates.c: the schedules that a graph could have: what the model expects of each, and
 * why others cannot be. */
#include "explain/explain.h"

#include <string.h>

enum { LISTED = 40 };

typedef struct {
    Estimate estimate;
    const char *schedule;
    bool chosen;
} Ranked;

static const Plan *plan_of(Arena *arena, const Plan *chosen, const char *schedule)
{
    const char *problem;
    return try_schedule(arena, chosen->analysis, &chosen->target, schedule, &problem);
}

/* The chosen one and the model's fastest, in the order of what it expects. */
static Ranked *rank(Arena *arena, const Plan *chosen, int *count, int *more)
{
    const char *own = complete_schedule(arena, chosen);
    const Alternatives list = list_alternatives(arena, chosen);
    Ranked *all = NEW_ARRAY(arena, Ranked, LISTED + 1);
    all[0] = (Ranked){estimate_speed(chosen), own, true};
    *count = 1;
    for (int i = 0; i < list.count && *count < LISTED; i++) {
        const Plan *plan = strcmp(list.data[i].schedule, own)
                               ? plan_of(arena, chosen, list.data[i].schedule)
                               : NULL;
        if (!plan) continue;
        const Ranked next = {estimate_speed(plan), list.data[i].schedule, false};
        int at = (*count)++;
        for (; at > 0 && all[at - 1].estimate.gbps < next.estimate.gbps; at--)
            all[at] = all[at - 1];
        all[at] = next;
    }
    *more = list.count > *count ? list.count - *count : 0;
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
    const char *before = "?: the model was not fitted on these: ";
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

void explain_candidates(Text *out, const Plan *plan)
{
    int count, more;
    const Ranked *all = rank(out->arena, plan, &count, &more);
    line(out,
         "candidates: GB/s with many rows and what takes longest, by the cost model; * is chosen");
    for (int i = 0; i < count; i++) {
        const Estimate *e = &all[i].estimate;
        const char *gbps =
            e->unknown ? "?" : arena_format(out->arena, "%.0f", rounded_gbps(e->gbps));
        line(out, "%s %5s  %-12s  %s", all[i].chosen ? "  *" : "   ", gbps,
             e->unknown ? "" : bound_name(e->bound), all[i].schedule);
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
    const Ranked *all = rank(out->arena, plan, &count, &more);
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
