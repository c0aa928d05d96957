/* cli/explain.c: `fusec explain`: asks NVRTC, where there is one, what the kernels use. */
#include "explain/explain.h"

#include "candidates.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/program.h"

#include <string.h>

/* The result of the last text that NVRTC compiled. */
typedef struct {
    Arena *arena;
    const char *arch;
    const char *text;     /* in the arena; NULL: none yet */
    fusec_binary *binary; /* NULL: there is none, for the reason below */
    fusec_status status;
    fusec_error error;
    int count; /* of texts */
} Compiled;

/* A text is compiled once, even where a question about its spills is followed by one about its
 * registers. */
static void compile_text(Compiled *of, const char *cuda)
{
    if (of->text && !strcmp(of->text, cuda)) return;
    fusec_binary_destroy(of->binary);
    of->binary = NULL;
    of->text = arena_format(of->arena, "%s", cuda);
    progress_wait(
        ++of->count == 1
            ? "NVRTC compiles the kernels"
            : arena_format(of->arena,
                           "NVRTC compiles the kernels by schedule %d, since others spill",
                           of->count));
    of->status = fusec_binary_compile(cuda, of->arch, FUSEC_CUBIN, &of->binary, &of->error);
    progress_wait(NULL);
    if (of->binary) remark_warning(of->binary);
}

/* A schedule that replaces the first one need not compile. */
static bool is_fatal(const Compiled *of)
{
    if (of->status == FUSEC_NO_NVRTC || of->status == FUSEC_UNSUPPORTED) return false;
    return of->status == FUSEC_OUT_OF_MEMORY || of->count == 1;
}

static int count_spills(void *data, const Compilation *c)
{
    Compiled *of = data;
    fusec_kernel_info info = {.struct_size = sizeof info};
    int bytes = 0;
    compile_text(of, c->cuda);
    if (of->status != FUSEC_OK && is_fatal(of)) {
        finish_call(of->status, &of->error);
        return SPILLS_FAILED;
    }
    if (of->status != FUSEC_OK) return SPILLS_UNKNOWN;
    for (int i = 0; i < c->launch->kernel_count; i++)
        if (fusec_binary_kernel(of->binary, c->launch->kernels[i].entry.name, &info) == FUSEC_OK &&
            info.spill_bytes > 0)
            bytes += info.spill_bytes;
    return bytes;
}

/* Registers and spills of each kernel; -1, or null in --json, where no NVRTC can tell. */
static int measure_usage(const Options *o, const Compilation *c, Compiled *of, KernelUsage **result)
{
    int count = c->plan->kernel_count;
    KernelUsage *usage = *result = NEW_ARRAY(o->arena, KernelUsage, count + 1);
    compile_text(of, c->cuda);
    const fusec_status status = of->status;
    if (status != FUSEC_OK && status != FUSEC_NO_NVRTC && status != FUSEC_UNSUPPORTED)
        return finish_call(status, &of->error);
    if (status == FUSEC_NO_NVRTC && !o->json)
        remark("without NVRTC nothing is known of registers and spills");
    for (int i = 0; i < count; i++) {
        fusec_kernel_info info = {.struct_size = sizeof info};
        const LaunchKernel *kernel = &c->launch->kernels[i];
        KernelUsage *at = &usage[i];
        *at = (KernelUsage){-1, -1, -1, -1};
        if (status == FUSEC_OK &&
            fusec_binary_kernel(of->binary, kernel->entry.name, &info) == FUSEC_OK)
            at->registers = info.registers, at->spill_bytes = info.spill_bytes;
        if (status == FUSEC_OK && kernel->collapsed &&
            fusec_binary_kernel(of->binary, kernel->strided.name, &info) == FUSEC_OK)
            at->strided_registers = info.registers, at->strided_spill_bytes = info.spill_bytes;
    }
    return EXIT_DONE;
}

/* Finds what chose the plan in *c, the rules or the model; where the plan spills, replaces it. */
static int replace_choice(Program *p, Compiled *of, Compilation *c, Origin *origin)
{
    const Options *o = p->options;
    const bool by_model = c->plan->by_model;
    const int rejections = c->plan->rejection_count;
    const char *other;
    int status = replace_spilling(p, p->graphs[0], count_spills, of, c, &other);
    if (status != EXIT_DONE) return status;
    const bool tried = c->plan->rejection_count > rejections;
    const char *who = by_model ? "the model chooses" : "the rules choose";
    if (other)
        *origin = (Origin){
            other,
            arena_format(
                o->arena,
                "since what %s spills (emit and the simulator take what %s, unless --schedule asks for this one)",
                who, who)};
    else
        *origin = (Origin){
            name_plan(o->arena, c->plan),
            arena_format(o->arena, "as %s%s", who,
                         tried ? ": it spills, and so does what was tried in its place"
                         : by_model
                             ? ": it expects 1.4 times the speed of the rules' choice, or more"
                             : "")};
    return EXIT_DONE;
}

static int settle_schedule(Program *p, Compiled *of, Compilation *c, Origin *origin)
{
    const Options *o = p->options;
    if (*p->tuned.schedule) {
        *origin = (Origin){p->tuned.schedule, "from the tuning file: `fusec tune` measured it to be"
                                              " faster than what the rules choose"};
        return EXIT_DONE;
    }
    if (!o->schedule) return replace_choice(p, of, c, origin);
    const char *named = name_plan(o->arena, c->plan);
    *origin = (Origin){named ? named : o->schedule, "as --schedule asks"};
    return EXIT_DONE;
}

int command_explain(Options *o)
{
    Program p;
    Compilation c;
    int status = open_program(&p, o, o->files.data[0]);
    if (status == EXIT_DONE) status = need_one_graph(&p);
    Text *out = text_new(o->arena);
    if (status != EXIT_DONE) {
        close_program(&p);
        return status;
    }
    status = compile_graph(&p, p.graphs[0], UNTIL_CUDA, NULL, 0, &c);
    Compiled compiled = {.arena = o->arena, .arch = p.target.arch};
    Origin origin;
    KernelUsage *usage;
    if (status == EXIT_DONE) status = settle_schedule(&p, &compiled, &c, &origin);
    if (status == EXIT_DONE) status = measure_usage(o, &c, &compiled, &usage);
    fusec_binary_destroy(compiled.binary);
    if (status == EXIT_DONE) {
        Candidates near = {0};
        if (o->candidates) near = list_near(o->arena, c.plan);
        (o->json ? explain_json : explain_words)(out, c.plan, usage, origin,
                                                 o->candidates ? &near : NULL);
    }
    compile_free(&c);
    close_program(&p);
    if (status != EXIT_DONE) return status;
    return save_result(o->arena, o->output, text_string(out), out->length);
}
