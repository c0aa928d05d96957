/* plan.c: `fusec plan save|show|run`: the kernels of a graph as one file, which machines without
 * NVRTC run. */
#include "cli/plan.h"

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "cli/tensors.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- save ---- */

/* The device that the plan is for: a target, or, without --arch, the GPU here. */
static int open_maker(const Options *o, fusec_device **device)
{
    fusec_error error;
    if (!o->arch) {
        const fusec_status status = fusec_device_open(0, device, &error);
        if (status != FUSEC_NO_DRIVER && status != FUSEC_NO_DEVICE)
            return finish_call(status, &error);
        remark("no usable GPU, so the plan is for sm_90a; --arch names another");
    }
    return finish_call(fusec_device_target(o->arch, device, &error), &error);
}

static int make_plan(const Options *o, const Program *p, fusec_device *device, fusec_plan **plan)
{
    fusec_error error;
    fusec_program *program = NULL;
    fusec_size *sizes = NEW_ARRAY(o->arena, fusec_size, o->sizes.count + 1);
    for (int i = 0; i < o->sizes.count; i++)
        sizes[i] = (fusec_size){o->sizes.data[i].axis, o->sizes.data[i].size};
    const fusec_plan_options options = {.struct_size = sizeof options,
                                        .outputs = o->outputs,
                                        .schedule = o->schedule,
                                        .no_tuning = o->no_tuning,
                                        .max_nodes = o->limits.nodes,
                                        .max_bytes = o->limits.bytes,
                                        .max_seconds = o->limits.seconds};
    int status = parse_for_plans(p, &program);
    if (status != EXIT_DONE) return status;
    Progress progress;
    progress_begin(&progress, "compiling with NVRTC");
    const fusec_status made = fusec_plan_create(device, program, p->graphs[0], sizes,
                                                (size_t)o->sizes.count, &options, plan, &error);
    progress_end(&progress);
    fusec_program_destroy(program);
    return finish_call(made, &error);
}

/* What whoever saves a plan should know of it. */
static void remark_plan(const fusec_device *device, const fusec_plan *plan)
{
    char warning[1024];
    if (fusec_device_warning(device, warning, sizeof warning)) remark("%s", warning);
    for (size_t i = 0; i < fusec_plan_kernel_count(plan); i++) {
        fusec_kernel_info kernel = {.struct_size = sizeof kernel};
        if (fusec_plan_kernel(plan, i, &kernel) == FUSEC_OK && kernel.spill_bytes > 0)
            remark("%s spills %d bytes; `fusec explain --candidates` lists other schedules",
                   kernel.name, kernel.spill_bytes);
    }
}

static int save_plan(const Options *o, const char *file)
{
    fusec_error error;
    Program p;
    fusec_device *device = NULL;
    fusec_plan *plan = NULL;
    int status = open_program(&p, o, file);
    if (status == EXIT_DONE) status = need_one_graph(&p);
    if (status == EXIT_DONE && !can_write_result(o->arena, o->output)) status = EXIT_MACHINE;
    if (status == EXIT_DONE) status = open_maker(o, &device);
    if (status == EXIT_DONE) status = make_plan(o, &p, device, &plan);
    if (status == EXIT_DONE) {
        remark_plan(device, plan);
        status = finish_call(fusec_plan_save(plan, o->output, &error), &error);
    }
    fusec_plan_destroy(plan);
    fusec_device_destroy(device);
    close_program(&p);
    return status;
}

/* ---- show ---- */

static int load_plan(fusec_device *device, const char *file, fusec_plan **plan)
{
    fusec_error error;
    struct stat about;
    int why = stat(file, &about) == 0 ? 0 : errno;
    if (!why && S_ISDIR(about.st_mode)) why = EISDIR;
    if (why == ENOENT || why == ENOTDIR || why == EISDIR) {
        complain(NULL, "cannot read %s: %s", file, strerror(why));
        return EXIT_USAGE;
    }
    return finish_call(fusec_plan_load(device, file, plan, &error), &error);
}

static int show_plan(const Options *o, const char *file)
{
    fusec_error error;
    fusec_device *device = NULL;
    fusec_plan *plan = NULL;
    Text *out = text_new(o->arena);
    int status = finish_call(fusec_device_target(NULL, &device, &error), &error);
    if (status == EXIT_DONE) status = load_plan(device, file, &plan);
    if (status == EXIT_DONE) {
        (o->json ? print_saved_plan_json : print_saved_plan)(out, plan);
        status = save_result(o->arena, NULL, text_string(out), out->length);
    }
    fusec_plan_destroy(plan);
    fusec_device_destroy(device);
    return status;
}

/* ---- run ---- */

static void declare_tensors(Graph *g, const fusec_plan *plan, Session *s)
{
    const size_t inputs = fusec_plan_input_count(plan), count = fusec_plan_tensor_count(plan);
    s->wanted = NEW_ARRAY(g->arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        fusec_tensor_info tensor = {.struct_size = sizeof tensor};
        fusec_plan_tensor(plan, i, &tensor);
        AxisSet axes = 0;
        for (int d = 0; d < tensor.rank; d++) axes |= (AxisSet)1 << tensor.axes[d];
        if (i < inputs)
            *list_push(g->arena, &g->params) =
                (Param){.name = tensor.name, .dtype = (DType)tensor.dtype, .axes = axes};
        else
            *list_push(g->arena, &g->outputs) =
                (Output){.name = tensor.name, .dtype = (DType)tensor.dtype, .axes = axes};
        if (i >= inputs) s->wanted[i - inputs] = tensor.is_wanted;
    }
}

/* The graph of a plan as far as tensors are made by it: what it declares, and no formula. */
static const Graph *declared_graph(Session *s)
{
    const fusec_plan *plan = s->plan;
    Graph *g = graph_new(s->arena);
    g->name = fusec_plan_graph(plan);
    g->axis_count = (int)fusec_plan_axis_count(plan);
    for (int i = 0; i < g->axis_count; i++) {
        fusec_axis_info axis = {.struct_size = sizeof axis};
        fusec_plan_axis(plan, (size_t)i, &axis);
        g->axes[i] = (Axis){.name = axis.name, .size = axis.size};
    }
    declare_tensors(g, plan, s);
    for (size_t i = 0; i < fusec_plan_scalar_count(plan); i++) {
        fusec_scalar_info scalar = {.struct_size = sizeof scalar};
        fusec_plan_scalar(plan, i, &scalar);
        *list_push(s->arena, &g->params) = (Param){.name = scalar.name,
                                                   .dtype = (DType)scalar.dtype,
                                                   .scalar = true,
                                                   .has_default = scalar.has_default,
                                                   .default_value = scalar.default_value};
    }
    return g;
}

/* A size that is compiled in may be said, and not changed. */
static int check_fixed_sizes(const Session *s)
{
    for (int i = 0; i < s->graph->axis_count; i++) {
        fusec_axis_info axis = {.struct_size = sizeof axis};
        fusec_plan_axis(s->plan, (size_t)i, &axis);
        if (!axis.is_fixed || s->sizes.of[i] == axis.size) continue;
        complain("a plan takes any rows, and the columns that it was saved for",
                 "%s = %lld is compiled into %s, which cannot run with %lld", axis.name,
                 (long long)axis.size, s->options->files.data[0], (long long)s->sizes.of[i]);
        return s->options->in ? EXIT_WRONG : EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int open_gpu(Session *s)
{
    fusec_error error;
    const fusec_status status = fusec_device_open(0, &s->device, &error);
    s->owns_device = true;
    if (status != FUSEC_NO_DRIVER && status != FUSEC_NO_DEVICE) return finish_call(status, &error);
    complain("`fusec plan show` needs no GPU; `fusec run --device sim` runs the kernels of a .fuse "
             "file on the CPU",
             "%s", error.message);
    return EXIT_MACHINE;
}

static int run_plan(const Options *o, const char *file)
{
    Session s = {.arena = o->arena, .options = o};
    Batch b = {0};
    Text *out = text_new(o->arena);
    int status = can_write_result(o->arena, o->out) ? open_gpu(&s) : EXIT_MACHINE;
    if (status == EXIT_DONE) status = load_plan(s.device, file, &s.plan);
    if (status == EXIT_DONE) {
        s.graph = declared_graph(&s);
        status = fill_batch(&s, &b);
        if (status == EXIT_DONE) status = check_fixed_sizes(&s);
    }
    if (status == EXIT_DONE) status = upload_batch(&s, &b);
    if (status == EXIT_DONE) status = launch_batch(&s, &b);
    if (status == EXIT_DONE) status = download_batch(&s, &b);
    if (status == EXIT_DONE && o->out) status = save_outputs(&s, &b, o->out);
    if (status == EXIT_DONE && !o->out) {
        summarize_outputs(&s, &b, out);
        status = save_result(o->arena, NULL, text_string(out), out->length);
    }
    if (s.graph) close_batch(&s, &b);
    close_session(&s);
    return status;
}

int command_plan(Options *o)
{
    const char *file = o->files.data[0];
    switch ((PlanVerb)o->verb) {
    case PLAN_SAVE: return save_plan(o, file);
    case PLAN_SHOW: return show_plan(o, file);
    case PLAN_RUN: return run_plan(o, file);
    case PLAN_VERBS: break;
    }
    return EXIT_USAGE;
}
