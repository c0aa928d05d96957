/* tune.c: `fusec tune`: times all admissible schedules of a graph and keeps the best in the tuning
 * file. Later plans for this graph, its column sizes and this device use it. */
#include "cli/tune.h"

#include "analyze/analyze.h"
#include "schedule/plan.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "tuning.h"

#include <string.h>

enum { MOST_CANDIDATES = 63, MOST_OF_ROW = 24 };

typedef struct {
    Session session;
    Compilation chosen; /* the first trial */
    int left_out;       /* schedules that are not timed */
    Trial *trials;
    int count;
    Batch small;
    Choice choice;
} Tuning;

/* A row of a table is of the main kernel. */
static Alternatives list_of_row(Tuning *t)
{
    Arena *arena = t->session.arena;
    const Alternatives list = list_candidates(arena, t->chosen.plan, MOST_OF_ROW);
    t->left_out = list_alternatives(arena, t->chosen.plan).count - list.count;
    return list;
}

static Alternatives list_all(Tuning *t)
{
    return list_all_candidates(t->session.arena, t->chosen.analysis->first, t->chosen.plan,
                               MOST_CANDIDATES, &t->left_out);
}

static int list_trials(Tuning *t)
{
    Session *s = &t->session;
    Options untuned = *s->options;
    AxisSize sizes[MAX_AXES];
    for (int i = 0; i < s->graph->axis_count; i++)
        sizes[i] = (AxisSize){s->graph->axes[i].name, s->sizes.of[i]};
    untuned.no_tuning = true;
    Program program = s->program;
    program.target.no_table = s->options->table != NULL;
    program.options = &untuned;
    int status = compile_graph(&program, s->graph->name, UNTIL_PLAN, sizes, s->graph->axis_count,
                               &t->chosen);
    if (status != EXIT_DONE) return status;
    const char *row = NULL;
    if (s->options->table) status = find_row(s, t->chosen.plan, &row);
    if (status != EXIT_DONE) return status;
    const Alternatives list = s->options->table ? list_of_row(t) : list_all(t);
    t->trials = NEW_ARRAY(s->arena, Trial, list.count + 2);
    t->count = 1;
    if (s->options->table) t->trials[0].schedule = complete_schedule(s->arena, t->chosen.plan);
    if (row) t->trials[t->count++].schedule = row;
    for (int i = 0; i < list.count; i++) t->trials[t->count++].schedule = list.data[i].schedule;
    return EXIT_DONE;
}

/* Stores the winner; where the default won, removes an older winner. */
static int store_choice(Tuning *t, const fusec_device_info *info, const char *what)
{
    const Trial *best = &t->trials[t->choice.best];
    char why[TUNING_WHY];
    TuningEntry entry = {.arch = info->arch, .device = info->name, .what = what};
    entry.schedule = t->choice.kept ? best->schedule : NULL;
    entry.us = best->us;
    entry.chosen_us = t->trials[0].us;
    if (!tuning_key(&t->chosen, &entry.key)) {
        complain(NULL, "out of memory");
        return EXIT_MACHINE;
    }
    if (tuning_store(&entry, why)) return EXIT_DONE;
    complain(NULL, "%s", why);
    return EXIT_MACHINE;
}

static const char *sizes_text(const Session *s)
{
    Text *text = text_new(s->arena);
    text_print(text, "%s", s->graph->name);
    for (int i = 0; i < s->graph->axis_count; i++)
        text_print(text, " %s=%lld", s->graph->axes[i].name, (long long)s->sizes.of[i]);
    return text_string(text);
}

static void report_tuning(Text *out, Tuning *t, const fusec_device_info *info, bool stored)
{
    const Session *s = &t->session;
    char file[PATH_MAX] = "";
    tuning_path(file);
    const char **axes = NEW_ARRAY(s->arena, const char *, MAX_AXES);
    for (int i = 0; i < s->graph->axis_count; i++) axes[i] = s->graph->axes[i].name;
    Report r = {.graph = s->graph->name,
                .device = info->name,
                .arch = info->arch,
                .file = stored ? file : NULL,
                .axis_count = s->graph->axis_count,
                .axes = axes,
                .sizes = s->sizes.of,
                .bytes = t->chosen.analysis->read_bytes + t->chosen.analysis->write_bytes,
                .trials = t->trials,
                .count = t->count,
                .left_out = t->left_out,
                .choice = t->choice};
    (s->options->json ? print_report_json : print_report)(out, &r);
}

static int open_tuning(Tuning *t, const Options *o)
{
    Session *s = &t->session;
    int status = open_session(s, o);
    if (status == EXIT_DONE) status = settle_sizes(s, NULL);
    if (status == EXIT_DONE && !can_write_result(o->arena, o->output)) status = EXIT_MACHINE;
    if (status == EXIT_DONE) status = open_device(s, "cuda");
    if (status == EXIT_DONE) status = list_trials(t);
    if (status == EXIT_DONE) status = parse_for_plans(&s->program, &s->parsed);
    if (status == EXIT_DONE) status = compile_trials(s, t->trials, t->count);
    if (status != EXIT_DONE) return status;
    char warning[1024];
    if (fusec_device_warning(s->device, warning, sizeof warning)) remark("%s", warning);
    s->plan = t->trials[0].plan;
    return EXIT_DONE;
}

static void close_tuning(Tuning *t)
{
    close_batch(&t->session, &t->small);
    for (int i = 0; i < t->count; i++) fusec_plan_destroy(t->trials[i].plan);
    t->session.plan = NULL; /* the trial owns it */
    compile_free(&t->chosen);
    close_session(&t->session);
}

int command_tune(Options *o)
{
    Tuning t = {0};
    fusec_device_info info = {.struct_size = sizeof info};
    Text *out = text_new(o->arena);
    int status = open_tuning(&t, o);
    if (status == EXIT_DONE) {
        fusec_device_get_info(t.session.device, &info);
        status = verify_trials(&t.session, t.trials, t.count, &t.small);
    }
    if (status == EXIT_DONE)
        status = time_trials(&t.session, t.trials, t.count, &t.small, info.l2_bytes);
    if (status == EXIT_DONE) {
        t.choice = choose_trial(t.trials, t.count);
        status = o->table ? store_row(&t.session, t.chosen.plan, t.trials, &t.choice)
                          : store_choice(&t, &info, sizes_text(&t.session));
        report_tuning(out, &t, &info, status == EXIT_DONE);
    }
    close_tuning(&t);
    if (out->length == 0) return status;
    int saved = save_result(o->arena, o->output, text_string(out), out->length);
    return status == EXIT_DONE ? saved : status;
}
