/* trials.c: see trials.h. */
#include "cli/trials.h"

#include "cli/timer.h"

#include <stdlib.h>
#include <string.h>

void read_usage(Arena *arena, Trial *trial)
{
    fusec_kernel_info info = {.struct_size = sizeof info};
    trial->registers = trial->spill_bytes = -1;
    for (size_t i = 0; fusec_plan_kernel(trial->plan, i, &info) == FUSEC_OK; i++) {
        if (info.registers > trial->registers) trial->registers = info.registers;
        if (info.spill_bytes > trial->spill_bytes) trial->spill_bytes = info.spill_bytes;
    }
    if (trial->spill_bytes > 0)
        trial->rejected =
            arena_format(arena, "spills %d bytes in the compiled kernel", trial->spill_bytes);
}

void set_median(Arena *arena, Trial *trial)
{
    double *sorted = NEW_ARRAY(arena, double, trial->rounds + 1);
    memcpy(sorted, trial->times, sizeof *sorted * (size_t)trial->rounds);
    trial->us = median_of(sorted, trial->rounds);
}

int rank_trials(const Trial *trials, int count, int *order)
{
    int ranked = 0;
    for (int i = 0; i < count; i++) {
        if (trials[i].rejected) continue;
        int at = ranked++;
        for (; at > 0 && trials[order[at - 1]].us > trials[i].us; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return ranked;
}

void choose_finalists(Arena *arena, Trial *trials, int count, int most)
{
    int *order = NEW_ARRAY(arena, int, count + 1), ranked = rank_trials(trials, count, order);
    trials[0].finalist = true;
    for (int i = 0, taken = 0; i < ranked && taken < most; i++) {
        taken += order[i] != 0;
        trials[order[i]].finalist = true;
    }
}

Choice choose_trial(const Trial *trials, int count)
{
    const Trial *base = &trials[0];
    Choice choice = {0};
    for (int i = 1; i < count; i++)
        if (trials[i].finalist && (!choice.best || trials[i].us < trials[choice.best].us))
            choice.best = i;
    const Trial *best = &trials[choice.best];
    if (!choice.best || best->us >= base->us) return (Choice){0};
    choice.gain = 1 - best->us / base->us;
    choice.rounds = best->rounds;
    for (int i = 0; i < best->rounds; i++) choice.wins += best->times[i] < base->times[i];
    choice.kept = best->schedule && 100 * choice.gain >= MIN_GAIN_PERCENT &&
                  100 * choice.wins >= MIN_WINS_PERCENT * choice.rounds;
    return choice;
}

/* ---- the report ---- */

static double gbps(const Report *r, const Trial *t)
{
    return t->us > 0 ? 1e-3 * (double)r->bytes / t->us : 0;
}

static const char *schedule_text(const Trial *t)
{
    return t->schedule ? t->schedule : "(as chosen)";
}

static void print_sizes(Text *out, const Report *r, const char *format)
{
    for (int i = 0; i < r->axis_count; i++) {
        text_print(out, "%s", i ? *format == '"' ? ", " : " " : "");
        text_print(out, *format == '"' ? "\"%s\": %lld" : "%s=%lld", r->axes[i],
                   (long long)r->sizes[i]);
    }
}

static void print_times(Text *out, const Report *r, const int *order, int ranked)
{
    const double base = r->trials[0].us;
    line(out, "%-46s %9s %10s %9s %9s", "schedule", "registers", "us", "GB/s", "/ default");
    for (int i = 0; i < ranked; i++) {
        const Trial *t = &r->trials[order[i]];
        line(out, "%-46s %9d %10.2f %9.1f %9.3f%s", schedule_text(t), t->registers, t->us,
             gbps(r, t), base > 0 ? t->us / base : 0,
             order[i] == 0 ? "  default"
             : t->finalist ? "  finalist"
                           : "");
    }
}

static void print_outcome(Text *out, const Report *r)
{
    const Choice *c = &r->choice;
    const char *name = schedule_text(&r->trials[c->best]);
    if (c->best)
        line(out, "%s: %.1f%% faster than the default in its median, faster in %d of %d rounds",
             name, 100 * c->gain, c->wins, c->rounds);
    if (c->kept)
        line(out, r->file ? "kept in %s" : "not kept, the tuning file cannot be written", r->file);
    else
        line(
            out,
            "the default is kept: no schedule is %d%% faster in the median and faster in %d%% of the rounds",
            MIN_GAIN_PERCENT, MIN_WINS_PERCENT);
}

void print_report(Text *out, const Report *r)
{
    int *order = NEW_ARRAY(out->arena, int, r->count + 1);
    int ranked = rank_trials(r->trials, r->count, order);
    text_print(out, "%s ", r->graph);
    print_sizes(out, r, "");
    text_print(out, " on %s\n", r->device);
    line(out, "%d schedules timed, %d left out", r->count, r->left_out);
    print_times(out, r, order, ranked);
    for (int i = 0; i < r->count; i++)
        if (r->trials[i].rejected)
            line(out, "rejected: %s: %s", schedule_text(&r->trials[i]), r->trials[i].rejected);
    print_outcome(out, r);
}

static void put_json(Text *out, const char *text)
{
    if (!text) {
        text_print(out, "null");
        return;
    }
    text_quote(out, text);
}

static void put_member(Text *out, const char *key, const char *text)
{
    text_print(out, "\"%s\": ", key);
    put_json(out, text);
    text_print(out, ", ");
}

static void put_candidates(Text *out, const Report *r)
{
    int *order = NEW_ARRAY(out->arena, int, r->count + 1);
    int ranked = rank_trials(r->trials, r->count, order);
    const double base = r->trials[0].us;
    text_print(out, "\n \"candidates\": [");
    for (int i = 0; i < ranked; i++) {
        const Trial *t = &r->trials[order[i]];
        text_print(out, "%s\n  {", i ? "," : "");
        put_member(out, "schedule", t->schedule);
        text_print(out, "\"default\": %s, \"registers\": %s, \"us\": %.3f, \"gbps\": %.1f, ",
                   order[i] == 0 ? "true" : "false",
                   t->registers < 0 ? "null" : arena_format(out->arena, "%d", t->registers), t->us,
                   gbps(r, t));
        text_print(out, "\"ratio\": %.4f, \"rounds\": %d}", base > 0 ? t->us / base : 0, t->rounds);
    }
    text_print(out, "],\n \"rejected\": [");
    for (int i = 0, first = 1; i < r->count; i++) {
        if (!r->trials[i].rejected) continue;
        text_print(out, "%s\n  {", first ? "" : ",");
        put_member(out, "schedule", r->trials[i].schedule);
        text_print(out, "\"reason\": ");
        put_json(out, r->trials[i].rejected);
        text_print(out, "}");
        first = 0;
    }
    text_print(out, "],\n ");
}

void print_report_json(Text *out, const Report *r)
{
    const Choice *c = &r->choice;
    text_print(out, "{");
    put_member(out, "graph", r->graph);
    put_member(out, "device", r->device);
    put_member(out, "arch", r->arch);
    text_print(out, "\"sizes\": {");
    print_sizes(out, r, "\"");
    text_print(out, "},");
    put_candidates(out, r);
    put_member(out, "best", r->trials[c->best].schedule);
    text_print(out, "\"gain\": %.4f, \"wins\": %d, \"rounds\": %d, ", c->gain, c->wins, c->rounds);
    put_member(out, "file", c->kept ? r->file : NULL);
    text_print(out, "\"kept\": %s}\n", c->kept && r->file ? "true" : "false");
}
