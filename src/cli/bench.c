/* bench.c: `fusec bench`: typical event times with a cold L2, beside the bandwidth of a copy and of
 * an elementwise add in the same run. The plan is first verified on a few rows. */
#include "bench.h"

#include "analyze/analyze.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "schedule/plan.h"
#include "cli/session.h"
#include "cli/timer.h"

#include <math.h>

enum { FEW_ROWS = 37 };

typedef struct {
    fusec_device_info info;
    const char *schedule;
    const char
        *by;       /* the text of its schedule where that was asked for, or is of the tuning file */
    int64_t bytes; /* read and written at least */
    double us, queued_us, copy_gbps, add_gbps, compile_ms, launch_us, bare_launch_us;
} Figures;

/* ---- what is timed ---- */

typedef struct {
    const Session *session;
    const Batch *batch;
} PlanWork;

static fusec_status launch_plan(void *data, fusec_error *error)
{
    const PlanWork *w = data;
    const Batch *b = w->batch;
    return fusec_plan_launch(w->session->plan, b->in, b->out, b->values, b->workspace, NULL, error);
}

typedef struct {
    fusec_device *device;
    void *from, *to;
    size_t bytes;
} CopyWork;

static fusec_status copy_once(void *data, fusec_error *error)
{
    const CopyWork *w = data;
    return fusec_copy_async(w->device, w->to, w->from, w->bytes, NULL, error);
}

static int measure_copy(Timer *t, double *gbps)
{
    CopyWork w = {.device = t->device, .bytes = (size_t)512 << 20};
    fusec_error error;
    double us = 1;
    int status = finish_call(fusec_alloc(t->device, w.bytes, &w.from, &error), &error);
    if (status == EXIT_DONE)
        status = finish_call(fusec_alloc(t->device, w.bytes, &w.to, &error), &error);
    if (status == EXIT_DONE) status = time_work(t, copy_once, &w, &us);
    fusec_free(t->device, w.from);
    fusec_free(t->device, w.to);
    *gbps = 2e-3 * (double)w.bytes / us;
    return status;
}

typedef struct {
    fusec_plan *plan;
    fusec_tensor x[2], y;
} AddWork;

static fusec_status add_once(void *data, fusec_error *error)
{
    const AddWork *w = data;
    return fusec_plan_launch(w->plan, w->x, &w->y, NULL, NULL, NULL, error);
}

static const char ADD[] =
    "graph add[M = 32768, N = 8192](x : bf16[M, N], y : bf16[M, N]) -> (z : bf16[M, N]) {\n"
    "    z = x + y\n"
    "}\n";

static int plan_add(fusec_device *device, fusec_plan **plan)
{
    fusec_program *program = NULL;
    fusec_error error;
    int status =
        finish_call(fusec_program_parse(ADD, sizeof ADD - 1, "add.fuse", &program, &error), &error);
    if (status == EXIT_DONE)
        status = finish_call(fusec_plan_create(device, program, NULL, NULL, 0, NULL, plan, &error),
                             &error);
    fusec_program_destroy(program);
    return status;
}

static int measure_add(Timer *t, double *gbps)
{
    const int64_t rows = 32768, columns = 8192;
    AddWork w = {0};
    fusec_tensor *tensors[3] = {&w.x[0], &w.x[1], &w.y};
    fusec_error error;
    size_t bytes = (size_t)(rows * columns) * 2;
    double us = 1;
    int status = plan_add(t->device, &w.plan);
    for (int i = 0; i < 3; i++) {
        *tensors[i] = (fusec_tensor){NULL, FUSEC_BF16, 2, {rows, columns}, {columns, 1}};
        if (status == EXIT_DONE)
            status = finish_call(fusec_alloc(t->device, bytes, &tensors[i]->data, &error), &error);
        if (status == EXIT_DONE)
            status = finish_call(
                fusec_fill_async(t->device, tensors[i]->data, 0x3C, bytes, NULL, &error), &error);
    }
    if (status == EXIT_DONE) status = time_work(t, add_once, &w, &us);
    for (int i = 0; i < 3; i++) fusec_free(t->device, tensors[i]->data);
    fusec_plan_destroy(w.plan);
    *gbps = 3e-3 * (double)bytes / us;
    return status;
}

/* Host microseconds of one fusec_plan_launch. */
static int measure_launch(const Session *s, const Batch *b, double *us)
{
    enum { BURSTS = 20, BURST = 64 };
    int status = EXIT_DONE;
    *us = INFINITY;
    for (int burst = 0; burst < BURSTS && status == EXIT_DONE; burst++) {
        fusec_error error;
        double begin = now();
        for (int i = 0; i < BURST && status == EXIT_DONE; i++) status = launch_batch(s, b);
        *us = fmin(*us, (now() - begin) * 1e6 / BURST);
        if (status == EXIT_DONE)
            status = finish_call(fusec_device_synchronize(s->device, &error), &error);
    }
    return status;
}

/* ---- the graph's own batches ---- */

/* The sizes of a batch with few rows. */
static Sizes few_rows(const Session *s)
{
    Sizes sizes = s->sizes;
    for (int i = 0; i < s->graph->axis_count; i++) {
        fusec_axis_info axis = {.struct_size = sizeof axis};
        if (fusec_plan_axis(s->plan, (size_t)i, &axis) == FUSEC_OK && !axis.is_fixed &&
            sizes.of[i] > FEW_ROWS)
            sizes.of[i] = FEW_ROWS;
    }
    return sizes;
}

/* Verifies the plan on a small batch, which is kept for the launch times and as a source of
 * values. */
static int verify_few_rows(const Session *s, Batch *small)
{
    Sizes sizes = few_rows(s);
    bool passed = false;
    Text *table = text_new(s->arena);
    int status = open_batch(s, &sizes, small);
    if (status == EXIT_DONE) {
        fill_random(s, small);
        status = settle_scalars(s, small, NULL, true);
    }
    if (status == EXIT_DONE) status = upload_batch(s, small);
    if (status == EXIT_DONE) status = launch_batch(s, small);
    if (status == EXIT_DONE) status = download_batch(s, small);
    if (status == EXIT_DONE) status = verify_batch(s, small, table, &passed);
    if (status != EXIT_DONE || passed) return status;
    remark("the outputs are wrong, so there is nothing to time:\n%s", text_string(table));
    return EXIT_VERIFY;
}

/* Describes the plan that is timed, whatever chose it. */
static int describe_plan(Session *s, Figures *f)
{
    Compilation c;
    Options as_planned = *s->options;
    Program program = s->program;
    AxisSize sizes[MAX_AXES];
    for (int i = 0; i < s->graph->axis_count; i++)
        sizes[i] = (AxisSize){s->graph->axes[i].name, s->sizes.of[i]};
    f->by = as_planned.schedule = fusec_plan_schedule(s->plan);
    as_planned.no_tuning = true;
    program.options = &as_planned;
    int status =
        compile_graph(&program, s->graph->name, UNTIL_PLAN, sizes, s->graph->axis_count, &c);
    if (status == EXIT_DONE) {
        f->schedule = family_name(c.plan->family);
        f->bytes = c.analysis->read_bytes + c.analysis->write_bytes;
    }
    compile_free(&c);
    return status;
}

/* How long NVRTC and the driver take. */
static int measure_calls(Session *s, Figures *f)
{
    fusec_error error;
    Progress progress;
    progress_begin(&progress, "timing NVRTC");
    fusec_status status =
        bench_compile(s->device, fusec_plan_text(s->plan), &f->compile_ms, &error);
    progress_end(&progress);
    if (status == FUSEC_OK)
        status = bench_bare_launch(s->device, (int)fusec_plan_kernel_count(s->plan),
                                   &f->bare_launch_us, &error);
    return finish_call(status, &error);
}

static int measure(Session *s, Figures *f)
{
    Timer timer = {0};
    Batch small = {0}, full = {0};
    PlanWork work = {s, &full};
    f->info.struct_size = sizeof f->info;
    fusec_device_get_info(s->device, &f->info);
    int status = describe_plan(s, f);
    if (status == EXIT_DONE) status = verify_few_rows(s, &small);
    if (status == EXIT_DONE) status = open_repeated(s, &small, &s->sizes, &full);
    if (status == EXIT_DONE) status = open_timer(&timer, s->device, f->info.l2_bytes);
    if (status == EXIT_DONE) status = time_work(&timer, launch_plan, &work, &f->us);
    if (status == EXIT_DONE) status = time_queued(&timer, launch_plan, &work, &f->queued_us);
    if (status == EXIT_DONE) status = measure_launch(s, &small, &f->launch_us);
    close_batch(s, &full);
    close_batch(s, &small);
    if (status == EXIT_DONE) status = measure_copy(&timer, &f->copy_gbps);
    if (status == EXIT_DONE) status = measure_add(&timer, &f->add_gbps);
    close_timer(&timer);
    return status == EXIT_DONE ? measure_calls(s, f) : status;
}

/* ---- the result ---- */

static void print_figures(Text *out, const Session *s, const Figures *f, bool json)
{
    const Graph *g = s->graph;
    double gbps = f->us > 0 ? 1e-3 * (double)f->bytes / f->us : 0;
    Text *sizes = text_new(s->arena);
    for (int i = 0; i < g->axis_count; i++)
        text_print(sizes, json ? "%s\"%s\": %lld" : "%s%s=%lld", i ? (json ? ", " : " ") : "",
                   g->axes[i].name, (long long)s->sizes.of[i]);
    if (json) {
        text_print(out, "{\"graph\": \"%s\", \"device\": \"%s\", \"sizes\": {%s}, ", g->name,
                   f->info.name, text_string(sizes));
        text_print(out, "\"schedule\": \"%s\", \"us\": %.3f, \"gbps\": %.1f, ", f->schedule, f->us,
                   gbps);
        text_print(out, "\"copy_gbps\": %.1f, \"add_gbps\": %.1f, \"fraction\": %.4f, ",
                   f->copy_gbps, f->add_gbps, gbps / f->copy_gbps);
        text_print(
            out,
            "\"compile_ms\": %.2f, \"launch_us\": %.3f, \"bare_launch_us\": %.3f, \"queued_us\": %.3f}\n",
            f->compile_ms, f->launch_us, f->bare_launch_us, f->queued_us);
        return;
    }
    line(out, "%s %s on %s, %s", g->name, text_string(sizes), f->info.name,
         f->by ? f->by : f->schedule);
    const char *typical = f->us < SHORT_US ? "mean of the middle half" : "median";
    line(out, "  time      %9.2f us   (%s of %d, cold L2)", f->us, typical, RUNS);
    line(out, "  queued    %9.2f us   (behind itself in a stream, L2 as it leaves it)",
         f->queued_us);
    line(out, "  bandwidth %9.1f GB/s, %.1f%% of the copy's %.1f, %.1f%% of an add's %.1f", gbps,
         100 * gbps / f->copy_gbps, f->copy_gbps, 100 * gbps / f->add_gbps, f->add_gbps);
    line(out, "  compile   %9.2f ms   (NVRTC, nothing cached)", f->compile_ms);
    line(out, "  launch    %9.2f us   of host time; the driver's own call takes %.2f us",
         f->launch_us, f->bare_launch_us);
}

int command_bench(Options *o)
{
    Session s;
    Figures f = {0};
    Text *out = text_new(o->arena);
    int status = open_session(&s, o);
    if (status == EXIT_DONE) status = settle_sizes(&s, NULL);
    if (status == EXIT_DONE && !can_write_result(o->arena, o->output)) status = EXIT_MACHINE;
    if (status == EXIT_DONE) status = open_device(&s, "cuda");
    if (status == EXIT_DONE) status = open_plan(&s, false);
    if (status == EXIT_DONE) status = measure(&s, &f);
    if (status == EXIT_DONE) print_figures(out, &s, &f, o->json);
    close_session(&s);
    if (status != EXIT_DONE) return status;
    return save_result(o->arena, o->output, text_string(out), out->length);
}
