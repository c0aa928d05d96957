/* fit_run.c: `fusec tune --fit`: times the probes on the GPU and writes a file for it, in the form
 * of those in src/targets/. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/fit.h"
#include "cli/timer.h"

#include <ctype.h>
#include <string.h>

enum { MOST_PROBES = 16, MOST_TENSORS = 16 };

typedef struct {
    Options *options;
    fusec_device *device;
    fusec_device_info info;
    Timer timer;
    Target target;
    Compilation compiled[MOST_PROBES];
    Plan *plans[MOST_PROBES]; /* NULL: the GPU, or the schedule, does not allow it */
    double gbps[MOST_PROBES];
} Fit;

/* ---- a probe on the GPU ---- */

typedef struct {
    fusec_plan *plan;
    fusec_tensor tensors[MOST_TENSORS];
    size_t count, inputs;
    void *workspace;
} Launch;

static fusec_status launch_probe(void *data, fusec_error *error)
{
    const Launch *l = data;
    return fusec_plan_launch(l->plan, l->tensors, l->tensors + l->inputs, NULL, l->workspace, NULL,
                             error);
}

/* Small numbers in bf16 and f32. */
static fusec_status fill(fusec_device *device, void *data, size_t bytes, fusec_error *error)
{
    enum { SMALL = 0x3C };
    return fusec_fill_async(device, data, SMALL, bytes, NULL, error);
}

static fusec_status open_tensor(const Fit *f, Launch *l, size_t index, const int64_t sizes[2],
                                fusec_error *error)
{
    fusec_tensor_info info = {.struct_size = sizeof info};
    fusec_tensor *t = &l->tensors[index];
    fusec_status status = fusec_plan_tensor(l->plan, index, &info);
    if (status != FUSEC_OK) return status;
    *t = (fusec_tensor){.dtype = info.dtype, .rank = info.rank};
    int64_t elements = 1;
    for (int i = info.rank - 1; i >= 0; i--) {
        t->sizes[i] = sizes[info.axes[i]];
        t->strides[i] = elements;
        elements *= t->sizes[i];
    }
    size_t bytes = (size_t)elements * fusec_dtype_bytes(info.dtype);
    status = fusec_alloc(f->device, bytes, &t->data, error);
    return status == FUSEC_OK ? fill(f->device, t->data, bytes, error) : status;
}

static int open_launch(const Fit *f, const Probe *probe, int64_t rows, Launch *l)
{
    fusec_program *program = NULL;
    fusec_error error;
    fusec_size sizes[] = {{"M", rows}, {"N", probe->columns}};
    fusec_plan_options options = {.struct_size = sizeof options, .schedule = probe->schedule};
    fusec_status status =
        fusec_program_parse(probe->text, strlen(probe->text), probe->name, &program, &error);
    if (status == FUSEC_OK)
        status = fusec_plan_create(f->device, program, NULL, sizes, 2, &options, &l->plan, &error);
    fusec_program_destroy(program);
    if (status != FUSEC_OK) return finish_call(status, &error);
    l->count = fusec_plan_tensor_count(l->plan);
    l->inputs = fusec_plan_input_count(l->plan);
    for (size_t i = 0; i < l->count && i < MOST_TENSORS && status == FUSEC_OK; i++)
        status = open_tensor(f, l, i, (int64_t[]){rows, probe->columns}, &error);
    if (status == FUSEC_OK)
        status =
            fusec_alloc(f->device, fusec_plan_workspace(l->plan, sizes, 1), &l->workspace, &error);
    return finish_call(status, &error);
}

static void close_launch(const Fit *f, Launch *l)
{
    for (size_t i = 0; i < l->count && i < MOST_TENSORS; i++)
        fusec_free(f->device, l->tensors[i].data);
    fusec_free(f->device, l->workspace);
    fusec_plan_destroy(l->plan);
}

/* ---- all of them ---- */

/* Whether a compilation failed for the machine's sake; reports that. */
static bool is_machine_failure(const Compilation *c)
{
    bool failed = c->status == COMPILE_MACHINE || c->status == COMPILE_STOPPED;
    if (failed) complain(NULL, c->out_of_memory ? "out of memory" : "a probe cannot be compiled");
    return failed;
}

/* Times a probe with about as many bytes as the model takes for many. */
static int run_probe(Fit *f, int index)
{
    const Probe *probe = &probes[index];
    const int64_t nominal = 400000000, some = 1024;
    Compilation *c = &f->compiled[index];
    *c = compile_probe(probe, &f->target, some);
    if (is_machine_failure(c)) return EXIT_MACHINE;
    if (c->status != COMPILE_OK) {
        remark("%s: not measured: this GPU has no such schedule", probe->name);
        return EXIT_DONE;
    }
    int64_t rows = nominal * some / (c->analysis->read_bytes + c->analysis->write_bytes);
    compile_free(c);
    *c = compile_probe(probe, &f->target, rows);
    if (is_machine_failure(c) || c->status != COMPILE_OK) return EXIT_MACHINE;
    Launch launch = {0};
    double us = 0;
    int status = open_launch(f, probe, rows, &launch);
    if (status == EXIT_DONE) status = time_work(&f->timer, launch_probe, &launch, &us);
    close_launch(f, &launch);
    if (status != EXIT_DONE) return status;
    f->plans[index] = c->plan;
    f->gbps[index] = 1e-3 * (double)(c->analysis->read_bytes + c->analysis->write_bytes) / us;
    remark("%s: %.0f GB/s", probe->name, f->gbps[index]);
    return EXIT_DONE;
}

/* "NVIDIA GeForce RTX 4090" becomes rtx_4090. */
static void name_gpu(Target *target, const char *name)
{
    static const char *const makers[] = {"NVIDIA ", "GeForce "};
    size_t length = 0;
    for (int i = 0; i < 2; i++)
        if (!strncmp(name, makers[i], strlen(makers[i]))) name += strlen(makers[i]);
    for (; *name && length < TARGET_NAME_SIZE - 4; name++)
        target->gpu[length++] =
            isalnum((unsigned char)*name) ? (char)tolower((unsigned char)*name) : '_';
    target->gpu[length] = 0;
}

/* Of a GPU that no file describes, nothing counts as measured. */
static void begin_target(Fit *f)
{
    Target *target = &f->target;
    target_set_sms(target, target->sms);
    target->evidence[TARGET_KEY_sms] = target->evidence[TARGET_KEY_smem_per_cta] =
        EVIDENCE_MEASURED;
    if (f->info.smem_per_cta > 0 && f->info.smem_per_cta < target->smem_per_cta)
        target->smem_per_cta = f->info.smem_per_cta;
    if (!target->borrowed) return;
    name_gpu(target, f->info.name);
    for (int key = 0; key < TARGET_KEYS; key++)
        if (target->evidence[key] == EVIDENCE_FITTED) target->evidence[key] = EVIDENCE_ASSUMED;
}

static int open_fit(Fit *f)
{
    fusec_error error;
    char device[DEVICE_NAME];
    f->info.struct_size = sizeof f->info;
    if (!can_write_result(f->options->arena, f->options->output)) return EXIT_MACHINE;
    int status = finish_call(fusec_device_open(0, &f->device, &error), &error);
    if (status == EXIT_DONE) status = choose_target(f->options, &f->target, device);
    if (status != EXIT_DONE) return status;
    fusec_device_get_info(f->device, &f->info);
    begin_target(f);
    return open_timer(&f->timer, f->device, f->info.l2_bytes);
}

static void close_fit(Fit *f)
{
    for (int i = 0; i < probe_count; i++) compile_free(&f->compiled[i]);
    close_timer(&f->timer);
    fusec_device_destroy(f->device);
}

int command_fit(Options *o)
{
    Fit f = {.options = o};
    Text *out = text_new(o->arena);
    int status = open_fit(&f);
    Progress progress;
    progress_begin(&progress, "timing probes");
    for (int i = 0; i < probe_count && status == EXIT_DONE; i++) {
        progress_step(&progress, (double)i / probe_count);
        status = run_probe(&f, i);
    }
    progress_end(&progress);
    if (status == EXIT_DONE) {
        int found = fit_constants(&f.target, f.plans, f.gbps);
        remark("%d of %d probes are limited by what they measure", found, probe_count);
        text_print(out, "/* %s, by `fusec tune --fit`. */\n", f.info.name);
        print_target(out, &f.target);
    }
    close_fit(&f);
    return status == EXIT_DONE ? save_result(o->arena, o->output, text_string(out), out->length)
                               : status;
}
