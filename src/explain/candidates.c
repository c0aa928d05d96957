/* explain/candidates.c: the schedules that a graph could have: what the model expects of each, and
 * why others are impossible. */
#include "explain/explain.h"

#include <string.h>

typedef struct {
    Estimate estimate;
    const char *schedule;
    bool chosen;
} Ranked;

/* Ranks the candidates; those without an estimate come last. */
static Ranked *rank(Arena *arena, const Candidates *c)
{
    Ranked *all = NEW_ARRAY(arena, Ranked, c->list.count + 1);
    for (int i = 0; i < c->list.count; i++) {
        const Candidate *x = &c->list.data[i];
        Ranked next = {estimate_speed(x->plan),
                       x->schedule ? x->schedule : name_plan(arena, x->plan), i == 0};
        int at = i;
        for (; at > 0 && all[at - 1].estimate.gbps < next.estimate.gbps; at--)
            all[at] = all[at - 1];
        all[at] = next;
    }
    return all;
}

static const char *schedule_text(const Ranked *r)
{
    return r->schedule ? r->schedule : "(no text names it)";
}

/* Prints ` row:threads=64`, or only ` 96` where nothing but the number differs from the last
 * schedule. Returns the schedule, to be the last. */
static const char *list_schedule(Text *out, const char *schedule, const char *last)
{
    const char *number = strchr(schedule, '=');
    size_t key = number ? (size_t)(number - schedule) + 1 : 0;
    bool same = key && last && !strncmp(schedule, last, key);
    text_print(out, " %s", same ? schedule + key : schedule);
    return schedule;
}

/* Lists each reason once, with the schedules that it excludes. */
static void list_refused(Text *out, const Candidates *c)
{
    bool *listed = NEW_ARRAY(out->arena, bool, c->refusals.count + 1);
    for (int i = 0; i < c->refusals.count; i++) {
        const Rejection *first = &c->refusals.data[i];
        if (listed[i]) continue;
        line(out, "  %s", first->reason);
        text_print(out, "     ");
        const char *last = NULL;
        for (int j = i; j < c->refusals.count; j++) {
            if (strcmp(c->refusals.data[j].reason, first->reason)) continue;
            listed[j] = true;
            last = list_schedule(out, c->refusals.data[j].schedule, last);
        }
        text_print(out, "\n");
    }
}

/* Lists, each reason once, why the model has no estimate for some schedules. */
static void list_unknown(Text *out, const Ranked *all, int count)
{
    const char *before = "?: the model does not know these: ";
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

void explain_candidates(Text *out, const Candidates *c)
{
    const Ranked *all = rank(out->arena, c);
    line(
        out,
        "candidates: %d schedules with up to one key; GB/s with many rows and what takes longest, by a model that is off by up",
        c->list.count);
    line(
        out,
        "to a quarter and does not see what spills. Where it expects 1.4 times as much as of the rules' choice, that is taken: *.");
    for (int i = 0; i < c->list.count; i++) {
        const Estimate *e = &all[i].estimate;
        const char *gbps =
            e->unknown ? "?" : arena_format(out->arena, "%.0f", rounded_gbps(e->gbps));
        line(out, "%s %5s  %-12s  %s", all[i].chosen ? "  *" : "   ", gbps,
             e->unknown ? "" : bound_name(e->bound), schedule_text(&all[i]));
    }
    list_unknown(out, all, c->list.count);
    if (c->same + c->left_out)
        line(
            out,
            "not listed: %d that are the same plan as one of these, %d that walk rows more often or share them badly",
            c->same, c->left_out);
    line(out, "refused: %d", c->refusals.count);
    list_refused(out, c);
}

void put_candidates(Text *out, const Candidates *c)
{
    const Ranked *all = rank(out->arena, c);
    text_print(out, ",\n  \"candidates\": [");
    for (int i = 0; i < c->list.count; i++) {
        const Estimate *e = &all[i].estimate;
        text_print(out, "%s\n    {\"schedule\": ", i ? "," : "");
        text_quote(out, schedule_text(&all[i]));
        text_print(out, ", \"chosen\": %s, \"model_gbps\": ", all[i].chosen ? "true" : "false");
        if (!e->unknown)
            text_print(out, "%.0f, \"bound_by\": \"%s\"}", e->gbps, bound_name(e->bound));
        else
            text_print(out, "null, \"bound_by\": null}");
    }
    text_print(out, "],\n  \"refused\": [");
    for (int i = 0; i < c->refusals.count; i++) {
        text_print(out, "%s\n    {\"schedule\": ", i ? "," : "");
        text_quote(out, c->refusals.data[i].schedule);
        text_print(out, ", \"reason\": ");
        text_quote(out, c->refusals.data[i].reason);
        text_print(out, "}");
    }
    text_print(out, "]");
}
