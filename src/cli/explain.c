/* explain/explain.c: `fusec explain`: asks NVRTC, where there is one, what the kernels use. */
#include "explain/explain.h"

#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/program.h"

#include <string.h>

/* Registers and spills of each kernel; -1 where there is no NVRTC to tell, which --json says by
 * null. */
static int measure_usage(const Options *o, const Compilation *c, const char *arch,
                         KernelUsage **result)
{
    const int count = c->plan->kernel_count;
    KernelUsage *usage = *result = NEW_ARRAY(o->arena, KernelUsage, count + 1);
    fusec_binary *binary = NULL;
    fusec_error error;
    Progress progress;
    progress_begin(&progress, "compiling with NVRTC");
    const fusec_status status = fusec_binary_compile(c->cuda, arch, FUSEC_CUBIN, &binary, &error);
    progress_end(&progress);
    if (binary) remark_warning(binary);
    if (status != FUSEC_OK && status != FUSEC_NO_NVRTC && status != FUSEC_UNSUPPORTED)
        return finish_call(status, &error);
    if (status == FUSEC_NO_NVRTC && !o->json)
        remark("without NVRTC, registers and spills are unknown");
    for (int i = 0; i < count; i++) {
        fusec_kernel_info info = {.struct_size = sizeof info};
        const LaunchKernel *kernel = &c->launch->kernels[i];
        KernelUsage *at = &usage[i];
        *at = (KernelUsage){-1, -1, -1, -1};
        if (status == FUSEC_OK &&
            fusec_binary_kernel(binary, kernel->entry.name, &info) == FUSEC_OK)
            at->registers = info.registers, at->spill_bytes = info.spill_bytes;
        if (status == FUSEC_OK && has_strided(kernel) &&
            fusec_binary_kernel(binary, kernel->strided.name, &info) == FUSEC_OK)
            at->strided_registers = info.registers, at->strided_spill_bytes = info.spill_bytes;
    }
    fusec_binary_destroy(binary);
    return EXIT_DONE;
}

/* What the plan was made by. */
static Origin find_origin(const Program *p, const Compilation *c)
{
    const Options *o = p->options;
    if (p->tuned.schedule)
        return (Origin){
            p->tuned.schedule,
            "from the tuning file: `fusec tune` measured it as faster than the default"};
    const char *named = name_plan(o->arena, c->plan);
    if (o->schedule) return (Origin){named, "as --schedule asks"};
    if (c->plan->tuned)
        return (Origin){
            named, arena_format(o->arena, "from the table of %s, measured by `fusec tune --table`",
                                c->plan->target.gpu)};
    return (Origin){named, "the cost model's choice"};
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
    KernelUsage *usage;
    if (status == EXIT_DONE) status = measure_usage(o, &c, p.target.arch, &usage);
    if (status == EXIT_DONE)
        (o->json ? explain_json : explain_words)(out, c.plan, usage, find_origin(&p, &c),
                                                 o->candidates);
    compile_free(&c);
    close_program(&p);
    if (status != EXIT_DONE) return status;
    return save_result(o->arena, o->output, text_string(out), out->length);
}
