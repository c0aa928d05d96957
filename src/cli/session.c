/* session.c: see session.h. */
#include "cli/session.h"

#include "cli/device.h"

#include <string.h>

/* Reads --outputs as flags; complains about names that are no outputs. */
static int choose_outputs(Session *s)
{
    const Graph *g = s->graph;
    const char *rest = s->options->outputs;
    const char **names = NEW_ARRAY(s->arena, const char *, g->outputs.count + 1);
    s->wanted = NEW_ARRAY(s->arena, bool, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) {
        s->wanted[i] = !rest;
        names[i] = g->outputs.data[i].name;
    }
    while (rest && *rest) {
        size_t length = strcspn(rest, ",");
        const char *name = arena_copy(s->arena, rest, length);
        rest += length + (rest[length] == ',');
        int found = -1;
        for (int i = 0; i < g->outputs.count; i++)
            if (!strcmp(names[i], name)) found = i;
        if (found >= 0) {
            s->wanted[found] = true;
            continue;
        }
        const char *near = nearest_name(name, names, g->outputs.count);
        complain(near ? arena_format(s->arena, "did you mean %s?", near) : NULL,
                 "graph %s has no output %s", g->name, name);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int open_session(Session *s, const Options *o)
{
    *s = (Session){.arena = o->arena, .options = o};
    int status = open_program(&s->program, o, o->files.data[0]);
    if (status == EXIT_DONE) status = need_one_graph(&s->program);
    if (status != EXIT_DONE) return status;
    status = compile_graph(&s->program, s->program.graphs[0], UNTIL_GRAPH, NULL, 0, &s->checked);
    if (status != EXIT_DONE) return status;
    s->graph = s->checked.lowered;
    return choose_outputs(s);
}

int open_device(Session *s, const char *name)
{
    fusec_error error;
    s->owns_device = true;
    if (!name || !strcmp(name, "cuda")) {
        fusec_status status = fusec_device_open(0, &s->device, &error);
        if (status == FUSEC_OK || name) return finish_call(status, &error);
        remark(
            "no usable GPU, so the CPU reference evaluator runs it, and no kernel; --device sim runs the "
            "CUDA text (%s)",
            error.message);
    }
    s->is_cpu = true;
    s->is_simulated = name && !strcmp(name, "sim");
    return finish_call(fusec_device_cpu(&s->device, &error), &error);
}

static int64_t size_given(const Options *o, const char *axis)
{
    for (int i = 0; i < o->sizes.count; i++)
        if (!strcmp(o->sizes.data[i].axis, axis)) return o->sizes.data[i].size;
    return -1;
}

static int check_axis_names(const Session *s)
{
    const Graph *g = s->graph;
    const Options *o = s->options;
    for (int i = 0; i < o->sizes.count; i++) {
        const char *names[MAX_AXES];
        bool known = false;
        for (int k = 0; k < g->axis_count; k++) {
            names[k] = g->axes[k].name;
            known |= !strcmp(names[k], o->sizes.data[i].axis);
        }
        if (known) continue;
        complain(hint_name(s->arena, o->sizes.data[i].axis, names, g->axis_count),
                 "graph '%s' has no axis '%s'", g->name, o->sizes.data[i].axis);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int settle_sizes(Session *s, const Sizes *from_tensors)
{
    const Graph *g = s->graph;
    int status = check_axis_names(s);
    if (status != EXIT_DONE) return status;
    for (int i = 0; i < g->axis_count; i++) { /* all errors are reported at once */
        const char *axis = g->axes[i].name;
        int64_t given = size_given(s->options, axis);
        int64_t found = from_tensors ? from_tensors->of[i] : -1;
        if (found >= 0 && given >= 0 && found != given) {
            complain(NULL, "the tensors say %s = %lld, the command line %lld", axis,
                     (long long)found, (long long)given);
            status = EXIT_WRONG;
        }
        s->sizes.of[i] = found >= 0 ? found : given >= 0 ? given : g->axes[i].size;
        if (s->sizes.of[i] >= 0) continue;
        complain(NULL, "axis '%s' has no size: give %s=SIZE", axis, axis);
        if (status == EXIT_DONE) status = EXIT_USAGE;
    }
    return status;
}

static int open_simulated(Session *s)
{
    AxisSize sizes[MAX_AXES];
    for (int i = 0; i < s->graph->axis_count; i++)
        sizes[i] = (AxisSize){s->graph->axes[i].name, s->sizes.of[i]};
    return compile_graph(&s->program, s->graph->name, UNTIL_CUDA, sizes, s->graph->axis_count,
                         &s->simulated);
}

int open_plan(Session *s, bool no_cache)
{
    if (s->is_simulated) return open_simulated(s);
    const Graph *g = s->graph;
    const Options *o = s->options;
    fusec_error error;
    fusec_size sizes[MAX_AXES];
    for (int i = 0; i < g->axis_count; i++)
        sizes[i] = (fusec_size){g->axes[i].name, s->sizes.of[i]};
    fusec_plan_options options = {.struct_size = sizeof options,
                                  .outputs = o->outputs,
                                  .schedule = o->schedule,
                                  .arch = o->arch,
                                  .no_cache = no_cache,
                                  .no_tuning = o->no_tuning || o->arch,
                                  .max_nodes = o->limits.nodes,
                                  .max_bytes = o->limits.bytes,
                                  .max_seconds = o->limits.seconds};
    int status = EXIT_DONE;
    if (!s->parsed) status = parse_for_plans(&s->program, &s->parsed);
    if (status != EXIT_DONE) return status;
    Progress progress;
    progress_begin(&progress, s->is_cpu ? "compiling" : "compiling with NVRTC");
    const fusec_status created = fusec_plan_create(
        s->device, s->parsed, g->name, sizes, (size_t)g->axis_count, &options, &s->plan, &error);
    progress_end(&progress);
    status = finish_call(created, &error);
    char warning[1024];
    if (status == EXIT_DONE && fusec_device_warning(s->device, warning, sizeof warning))
        remark("%s", warning);
    return status;
}

void close_session(Session *s)
{
    fusec_plan_destroy(s->plan);
    if (s->owns_device) fusec_device_destroy(s->device);
    fusec_program_destroy(s->parsed);
    close_program(&s->program);
    compile_free(&s->simulated);
    compile_free(&s->checked);
}
