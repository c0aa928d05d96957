/* plan.c: plans: compile() for the device's target, a module made from the text, its kernels looked
 * up. */
#include "internal.h"

#include "cubin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* In place, kernels must not promise that their pointers differ. */
static const char no_restrict[] = "--define-macro=__restrict__=";

fusec_plan *plan_new(fusec_device *device)
{
    fusec_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    atomic_init(&plan->references, 1);
    plan->device = device;
    device_retain(device);
    return plan;
}

void plan_retain(const fusec_plan *plan)
{
    fusec_plan *counted = (fusec_plan *)plan; /* the count is no part of the plan's value */
    atomic_fetch_add_explicit(&counted->references, 1, memory_order_relaxed);
}

void fusec_plan_destroy(fusec_plan *plan)
{
    OWN_ENVIRONMENT;
    if (!plan || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) return;
    module_release(plan->device, plan->module);
    if (plan->compilation.arena) compile_free(&plan->compilation);
    fusec_program_destroy(plan->program);
    arena_free(plan->arena);
    free(plan->schedule);
    free(plan->entries);
    free(plan->kernels);
    fusec_device_destroy(plan->device);
    free(plan);
}

/* ---- kernels ---- */

static void describe_kernel(const fusec_plan *plan, int index, fusec_kernel_info *info)
{
    const LaunchKernel *kernel = &plan->launch->kernels[index];
    Usage usage = {-1, -1, -1, -1};
    if (plan->module && !plan->module->is_ptx)
        cubin_usage(plan->module->code.data, plan->module->code.bytes, plan->module->code.log,
                    kernel->entry.name, &usage);
    info->name = kernel->entry.name;
    info->registers = usage.registers;
    info->spill_bytes = usage.spill_bytes;
    info->stack_bytes = usage.stack_bytes;
    info->static_smem_bytes = usage.smem_bytes;
    info->threads = kernel->threads;
    info->cluster = kernel->cluster;
    for (int dim = 0; dim < GRID_RANK; dim++)
        info->grid[dim] = launch_ctas(plan->launch, index, dim, &plan->launch->sizes);
    info->dynamic_smem_bytes = launch_smem(kernel, info->grid[0]);
}

/* CTAs that wait for each other must all be resident on the GPU at once. */
static fusec_status check_group(const fusec_plan *plan, int index, CUfunction function,
                                const char *name, fusec_error *error)
{
    const Driver *driver = &plan->device->driver;
    const LaunchKernel *kernel = &plan->launch->kernels[index];
    int64_t needed = kernel->grid[0].max_ctas * kernel->cluster;
    int ctas_per_sm = 0;
    fusec_status status =
        driver_check(driver,
                     driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
                         &ctas_per_sm, function, kernel->threads, (size_t)kernel->smem_bytes),
                     name, error);
    int64_t held = (int64_t)ctas_per_sm * plan->device->target.sms;
    if (status != FUSEC_OK || needed <= held) return status;
    return fail(error, FUSEC_UNSUPPORTED,
                "kernel %s: %" PRId64 " CTAs must be on the GPU at once, %s holds %" PRId64, name,
                needed, plan->device->info.name, held);
}

/* One of a kernel's entries, by its name. */
static fusec_status prepare_function(fusec_plan *plan, int index, const char *name,
                                     LoadedEntry *entry, fusec_error *error)
{
    enum { PORTABLE_CLUSTER = 8 };
    const Driver *driver = &plan->device->driver;
    const LaunchKernel *kernel = &plan->launch->kernels[index];
    const CodeModule *module = plan->module;
    CUfunction *function = &entry->function;
    entry->overlaps = kernel->overlaps && !module->is_ptx &&
                      cubin_waits_first(module->code.data, module->code.bytes, name);
    fusec_status status =
        driver_check(driver, module_function(plan->device, module, name, function), name, error);
    int64_t smem = most_smem(kernel);
    if (status == FUSEC_OK && smem > 0) /* the amount that needs no opt-in includes static */
        status =
            driver_check(driver,
                         driver->cuFuncSetAttribute(
                             *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)smem),
                         "dynamic shared memory", error);
    if (status == FUSEC_OK && kernel->cluster > PORTABLE_CLUSTER && kernel->mailbox < 0)
        status =
            driver_check(driver,
                         driver->cuFuncSetAttribute(
                             *function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                         "cluster size", error);
    if (status == FUSEC_OK && kernel->mailbox >= 0)
        status = check_group(plan, index, *function, name, error);
    return status;
}

static fusec_status prepare_functions(fusec_plan *plan, fusec_error *error)
{
    CurrentContext current;
    fusec_status status = device_enter(plan->device, &current, error);
    int count = plan->launch->kernel_count;
    for (int i = 0; i < count && status == FUSEC_OK; i++) {
        const LaunchKernel *kernel = &plan->launch->kernels[i];
        status = prepare_function(plan, i, kernel->entry.name, &plan->entries[i], error);
        if (status == FUSEC_OK && has_strided(kernel))
            status =
                prepare_function(plan, i, kernel->strided.name, &plan->entries[count + i], error);
    }
    context_leave(&current);
    return status;
}

fusec_status plan_attach(fusec_plan *plan, fusec_error *error)
{
    size_t count = (size_t)plan->launch->kernel_count;
    plan->entries = calloc(2 * count + 1, sizeof *plan->entries);
    plan->kernels = calloc(count + 1, sizeof *plan->kernels);
    if (!plan->entries || !plan->kernels) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    for (int i = 0; i < plan->launch->kernel_count; i++)
        describe_kernel(plan, i, &plan->kernels[i]);
    return plan->device->cpu || plan->device->absent ? FUSEC_OK : prepare_functions(plan, error);
}

/* ---- creating ---- */

/* No wanted output is an error here: to the compiler it would be a plan without kernels. */
static fusec_status read_plan_options(const fusec_plan_options *given, fusec_plan_options *options,
                                      fusec_error *error)
{
    fusec_status status =
        copy_options(options, sizeof *options, given, "fusec_plan_options", error);
    if (status != FUSEC_OK) return status;
    if (options->outputs && !*options->outputs)
        return fail(error, FUSEC_INVALID_ARGUMENT,
                    "options.outputs is empty; NULL stands for all outputs");
    return check_limits(options->max_nodes, options->max_bytes, options->max_seconds, error);
}

/* A plan in the making: what its compilations have in common. */
typedef struct {
    fusec_plan *plan;
    const fusec_plan_options *options;
    const char *code_arch;
    AxisSize sizes[MAX_AXES];
    CompileRequest request;
    Budget budget;
    fusec_error *error;
} Making;

/* Whether an entry before `index` has its axis. */
static bool is_given_before(const fusec_size *sizes, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(sizes[i].axis, sizes[index].axis) == 0) return true;
    return false;
}

static fusec_status read_sizes(Making *m, const fusec_size *sizes, size_t count)
{
    if (count > MAX_AXES)
        return fail(m->error, FUSEC_INVALID_ARGUMENT,
                    "%zu sizes are given, more than a graph can have axes", count);
    for (size_t i = 0; i < count; i++) {
        if (!sizes[i].axis)
            return fail(m->error, FUSEC_INVALID_ARGUMENT, "sizes[%zu].axis is NULL", i);
        if (sizes[i].size < 0)
            return fail(m->error, FUSEC_INVALID_ARGUMENT,
                        "axis %s cannot have the negative size %" PRId64, sizes[i].axis,
                        sizes[i].size);
        if (is_given_before(sizes, i))
            return fail(m->error, FUSEC_INVALID_ARGUMENT, "axis %s is given twice", sizes[i].axis);
        m->sizes[i] = (AxisSize){sizes[i].axis, sizes[i].size};
    }
    return FUSEC_OK;
}

static fusec_status begin_request(Making *m, const fusec_program *program, const char *graph,
                                  const fusec_size *sizes, size_t count)
{
    fusec_status status = read_sizes(m, sizes, count);
    if (status != FUSEC_OK) return status;
    m->request = (CompileRequest){.text = program->text, .length = program->length};
    m->plan->program = program_retain(program);
    m->request.name = program->name;
    m->request.parsed = program->checked.program;
    m->request.is_checked = true;
    m->request.graph = graph;
    m->request.sizes = m->sizes;
    m->request.size_count = (int)count;
    m->request.rows_at_launch = true;
    m->request.outputs = m->options->outputs;
    m->request.schedule = m->options->schedule;
    m->request.until = UNTIL_CUDA;
    m->request.budget = &m->budget;
    return device_target(m->plan->device, m->options->arch, &m->request.target, &m->code_arch,
                         m->error);
}

/* The tuning file is about the device that a plan will run on, so about that device's
 * architecture. */
static bool may_tune(const Making *m)
{
    const fusec_device *device = m->plan->device;
    return !m->options->schedule && !m->options->no_tuning && !device->cpu && !device->absent &&
           strcmp(m->request.target.arch, device->target.arch) == 0;
}

static bool keep_schedule(fusec_plan *plan, const char *schedule)
{
    plan->schedule = schedule ? strdup(schedule) : NULL;
    return plan->schedule || !schedule;
}

/* Compiles to a text, by the given schedule, the tuning file's, or what is chosen. */
static fusec_status compile_graph(Making *m)
{
    fusec_plan *plan = m->plan;
    Tuned tuned = {0};
    fusec_status status = compile_checked(&m->request, &plan->compilation, m->error);
    plan->arch = m->code_arch;
    if (status != FUSEC_OK) return status;
    if (may_tune(m) &&
        !compile_tuned(&m->request, plan->device->info.name, &plan->compilation, &tuned))
        return fail(m->error, FUSEC_OUT_OF_MEMORY, "out of memory");
    status = check_compiled(&plan->compilation, m->error);
    if (status != FUSEC_OK) return status;
    if (*tuned.warning) device_warn(plan->device, tuned.warning);
    if (!keep_schedule(plan, tuned.schedule ? tuned.schedule : m->options->schedule))
        return fail(m->error, FUSEC_OUT_OF_MEMORY, "out of memory");
    return FUSEC_OK;
}

/* Machine code of the text. */
static fusec_status load_plan(Making *m)
{
    fusec_plan *plan = m->plan;
    if (!budget_ask(&m->budget)) return fail_stopped(&m->budget, m->error);
    return module_acquire(plan->device, plan->compilation.cuda, m->code_arch,
                          m->options->in_place ? no_restrict : NULL, !m->options->no_cache,
                          &m->budget, &plan->module, &plan->was_cached, m->error);
}

static fusec_status make_plan(fusec_plan *plan, const fusec_program *program, const char *graph,
                              const fusec_size *sizes, size_t count,
                              const fusec_plan_options *options, fusec_error *error)
{
    Making m = {.plan = plan, .options = options, .error = error};
    m.budget = (Budget){.nodes = options->max_nodes,
                        .bytes = options->max_bytes,
                        .seconds = options->max_seconds,
                        .is_cancelled = options->is_cancelled,
                        .data = options->cancel_data};
    budget_begin(&m.budget);
    fusec_status status = begin_request(&m, program, graph, sizes, count);
    if (status == FUSEC_OK) status = compile_graph(&m);
    if (status == FUSEC_OK && !plan->device->cpu) status = load_plan(&m);
    if (status == FUSEC_OK && m.budget.is_cancelled && m.budget.is_cancelled(m.budget.data)) {
        m.budget.stopped = STOPPED_BY_CALLER;
        status = fail_stopped(&m.budget, error);
    }
    if (status != FUSEC_OK) return status;
    plan->launch = plan->compilation.launch;
    plan->cuda = plan->compilation.cuda;
    plan->in_place = options->in_place != 0;
    plan->no_early_start = options->no_early_start != 0;
    return plan_attach(plan, error);
}

fusec_status fusec_plan_create(fusec_device *device, const fusec_program *program,
                               const char *graph, const fusec_size *sizes, size_t count,
                               const fusec_plan_options *given, fusec_plan **result,
                               fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the plan", error);
    if (!device || !program || (count && !sizes))
        return fail_null(error, !device    ? "the device"
                                : !program ? "the program"
                                           : "the list of sizes");
    double begin = milliseconds_now();
    fusec_plan_options options;
    fusec_status status = read_plan_options(given, &options, error);
    if (status != FUSEC_OK) return status;
    fusec_plan *plan = plan_new(device);
    if (!plan) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    status = make_plan(plan, program, graph, sizes, count, &options, error);
    if (status != FUSEC_OK) {
        fusec_plan_destroy(plan);
        return status;
    }
    plan->milliseconds = milliseconds_now() - begin;
    *result = plan;
    return succeed(error);
}

size_t fusec_plan_workspace(const fusec_plan *plan, const fusec_size *rows, size_t count)
{
    if (!plan || (!rows && count > 0)) return 0;
    const LaunchPlan *launch = plan->launch;
    Sizes sizes = launch->sizes;
    for (size_t i = 0; i < count; i++) {
        int axis = 0;
        while (axis < launch->axis_count && rows[i].axis &&
               strcmp(launch->axis_names[axis], rows[i].axis) != 0)
            axis++;
        bool wrong = !rows[i].axis || axis == launch->axis_count || rows[i].size < 0 ||
                     is_given_before(rows, i) ||
                     ((launch->fixed >> axis & 1) && rows[i].size != sizes.of[axis]);
        if (wrong) return SIZE_MAX;
        sizes.of[axis] = rows[i].size;
    }
    if (plan->device->cpu) return 0;
    int64_t bytes = launch_workspace(launch, &sizes, NULL);
    return bytes == INT64_MAX ? SIZE_MAX : (size_t)bytes;
}
