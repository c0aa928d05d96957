/* simulate.c: see simulate.h. Turns a LaunchPlan into the simulator's buffers and launches, as the
 * runtime turns it into the driver's. */
#include "cli/simulate.h"

#include "cli/progress.h"

#include "../../tests/sim/machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBT = 512, SMS = 4 };
/* The bandwidth of the simulated GPU's memory. With it a row looks at its clock a few times. */
enum { BYTES_A_NS = 64 };

typedef union {
    void *pointer;
    long long wide;
    int count;
    float single;
    double number;
    bool truth;
} Argument;

typedef struct {
    const LaunchPlan *plan;
    const Sizes *sizes;
    void **tensors;
    const int64_t (*strides)[MAX_RANK];
    const double *scalars;
    bool without_few;   /* withholds the shared memory that launches of few CTAs get */
    Progress *progress; /* NULL: nobody watches */
    int sms;            /* 0: the seed decides whether few or many CTAs run at once */
    char *workspace;
    int64_t *offsets; /* of its slots */
    int64_t (*tensor_sizes)[MAX_RANK];
    int64_t *slot_sizes;
    char *message;
    size_t message_size;
} Run;

static bool refuse(const Run *run, const char *why)
{
    snprintf(run->message, run->message_size, "%s", why);
    return false;
}

/* ---- buffers ---- */

static bool add_tensor(const Run *run, Machine *m, int index)
{
    const LaunchTensor *t = &run->plan->tensors[index];
    int64_t *sizes = run->tensor_sizes[index];
    int rank = 0;
    if (t->output && !t->wanted) return true;
    for (int axis = 0; axis < run->plan->axis_count; axis++)
        if (t->axes >> axis & 1) sizes[rank++] = run->sizes->of[axis];
    return machine_add_buffer(m, &(SimBuffer){.name = t->name,
                                              .kind = t->output ? BUFFER_OUTPUT : BUFFER_INPUT,
                                              .data = run->tensors[index],
                                              .element = dtype_info[t->dtype].bytes,
                                              .rank = rank,
                                              .sizes = sizes,
                                              .strides = run->strides[index]});
}

static bool add_slot(const Run *run, Machine *m, int index)
{
    static const int64_t dense = 1;
    const LaunchSlot *slot = &run->plan->slots[index];
    run->slot_sizes[index] = launch_slot_elements(run->plan, index, run->sizes);
    return machine_add_buffer(m, &(SimBuffer){.name = slot->name,
                                              .kind = BUFFER_WORKSPACE,
                                              .data = run->workspace + run->offsets[index],
                                              .element = dtype_info[slot->dtype].bytes,
                                              .rank = 1,
                                              .sizes = &run->slot_sizes[index],
                                              .strides = &dense});
}

static bool add_buffers(const Run *run, Machine *m)
{
    for (int i = 0; i < run->plan->tensor_count; i++)
        if (!add_tensor(run, m, i)) return false;
    for (int i = 0; i < run->plan->slot_count; i++)
        if (!add_slot(run, m, i)) return false;
    return true;
}

/* ---- launches ---- */

static Argument scalar_argument(const Run *run, int index)
{
    const LaunchScalar *s = &run->plan->scalars[index];
    const double given = run->scalars ? run->scalars[index] : s->default_value;
    const double value = dtype_round(s->dtype, given);
    switch (dtype_info[s->dtype].type) {
    case TYPE_F32: return (Argument){.single = (float)value};
    case TYPE_F64: return (Argument){.number = value};
    case TYPE_I64: return (Argument){.wide = int_from_double(value)};
    case TYPE_BOOL: return (Argument){.truth = value != 0};
    }
    return (Argument){.wide = 0};
}

static int64_t stride_of(const Run *run, int tensor, int axis)
{
    const AxisSet before = run->plan->tensors[tensor].axes & ((1U << axis) - 1);
    return run->strides[tensor][axes_count(before)];
}

static int64_t row_stride_of(const Run *run, int tensor, AxisSet rows)
{
    int64_t stride;
    collapse_rows(run->plan, tensor, rows, run->sizes, run->strides[tensor], &stride);
    return stride;
}

static const int64_t *strides_of(const void *run, int tensor)
{
    return ((const Run *)run)->strides[tensor];
}

static Argument argument_of(const Run *run, const LaunchArg *arg, AxisSet rows)
{
    switch (arg->kind) {
    case ARG_TENSOR: return (Argument){.pointer = run->tensors[arg->index]};
    case ARG_STRIDE: return (Argument){.wide = stride_of(run, arg->index, arg->axis)};
    case ARG_ROW_STRIDE: return (Argument){.wide = row_stride_of(run, arg->index, rows)};
    case ARG_ROWS: return (Argument){.wide = collapsed_rows(run->plan, arg->index, run->sizes)};
    case ARG_SIZE: return (Argument){.wide = run->sizes->of[arg->axis]};
    case ARG_SCALAR: return scalar_argument(run, arg->index);
    case ARG_SLOT: return (Argument){.pointer = run->workspace + run->offsets[arg->index]};
    case ARG_GRID:
        return (Argument){.count =
                              (int)launch_groups(run->plan, arg->index, arg->axis, run->sizes)};
    case ARG_ALONE:
        return (Argument){.count = takes_whole_groups(run->plan, arg->index, run->sizes)};
    case ARG_INTERVAL:
        return (Argument){
            .count = (int)launch_interval(run->plan, arg->index, run->sizes, BYTES_A_NS, 0)};
    }
    return (Argument){.wide = 0};
}

static bool launch_kernel(const Run *run, Machine *m, int index)
{
    const LaunchKernel *k = &run->plan->kernels[index];
    const LaunchEntry *entry = choose_entry(run->plan, index, run->sizes, strides_of, run);
    Argument *values = calloc((size_t)entry->arg_count + 1, sizeof *values);
    void **args = calloc((size_t)entry->arg_count + 1, sizeof *args);
    SimLaunch launch = {.kernel = entry->name,
                        .threads = k->threads,
                        .cluster = k->cluster,
                        .grouped = k->mailbox >= 0,
                        .overlaps = k->overlaps,
                        .args = args,
                        .arg_count = entry->arg_count};
    bool fits = true;
    for (int i = 0; i < GRID_RANK; i++) {
        int64_t ctas = launch_ctas(run->plan, index, i, run->sizes);
        fits &= ctas <= INT_MAX;
        launch.grid[i] = (int)ctas;
    }
    launch.smem_bytes = run->without_few ? k->smem_bytes : launch_smem(k, launch.grid[0]);
    for (int i = 0; i < entry->arg_count && values && args; i++) {
        values[i] = argument_of(run, &entry->args[i], k->collapsed);
        args[i] = &values[i];
    }
    const bool good = !fits            ? refuse(run, "the grid has more CTAs than any GPU takes")
                      : values && args ? machine_launch(m, &launch)
                                       : refuse(run, "out of memory");
    free(values);
    free(args);
    return good;
}

/* Runs with unwritten shared memory filled like this; `doubted` gets the first read of such a
 * value. */
static bool run_filled(const Run *run, SimObject *object, uint64_t seed, unsigned char fill,
                       char *doubted)
{
    Machine *m = machine_new(object, seed, run->message, run->message_size);
    if (!m) return refuse(run, "out of memory");
    machine_fill_shared(m, fill);
    machine_set_sms(m, run->sms > 0 ? run->sms : seed % 2 ? 1 : SMS);
    if (run->progress) machine_on_step(m, progress_step, run->progress);
    bool good = add_buffers(run, m);
    for (int i = 0; i < run->plan->kernel_count && good; i++) good = launch_kernel(run, m, i);
    good = good && machine_finish(m);
    snprintf(doubted, DOUBT, "%s", machine_doubt(m));
    machine_free(m);
    return good;
}

/* The bits of an output, in row-major order. */
static uint64_t hash_tensor(const Run *run, int index)
{
    const LaunchTensor *t = &run->plan->tensors[index];
    const size_t bytes = (size_t)dtype_info[t->dtype].bytes;
    const int rank = axes_count(t->axes);
    const int64_t count = axes_size(run->sizes, t->axes);
    uint64_t hash = 14695981039346656037u;
    for (int64_t item = 0; item < count; item++) {
        int64_t at = 0, rest = item;
        for (int i = rank - 1; i >= 0; i--) {
            at += rest % run->tensor_sizes[index][i] * run->strides[index][i];
            rest /= run->tensor_sizes[index][i];
        }
        const unsigned char *element =
            (const unsigned char *)run->tensors[index] + (size_t)at * bytes;
        for (size_t i = 0; i < bytes; i++) hash = (hash ^ element[i]) * 1099511628211u;
    }
    return hash;
}

/* The name of the first wanted output whose bits differ from `hashes`; NULL: none. */
static const char *compare_bits(const Run *run, uint64_t *hashes, bool first)
{
    const char *differs = NULL;
    for (int i = run->plan->input_count; i < run->plan->tensor_count; i++) {
        if (!run->plan->tensors[i].wanted) continue;
        const uint64_t hash = hash_tensor(run, i);
        if (!first && hash != hashes[i] && !differs) differs = run->plan->tensors[i].name;
        hashes[i] = hash;
    }
    return differs;
}

/* Runs twice: values of unwritten shared memory must not show in the outputs. */
static bool run_plan(const Run *run, SimObject *object, uint64_t seed, uint64_t *hashes)
{
    char doubted[DOUBT], again[DOUBT];
    if (!run_filled(run, object, seed, 0xff, doubted)) return false;
    if (!doubted[0]) return true;
    compare_bits(run, hashes, true);
    if (!run_filled(run, object, seed, 0x3c, again)) return false;
    const char *differs = compare_bits(run, hashes, false);
    if (!differs) return true;
    snprintf(run->message, run->message_size, "%s, and it shows in %s", doubted, differs);
    return false;
}

/* Whether some kernel gets more shared memory in launches of few CTAs. */
static bool has_few(const Run *run)
{
    for (int i = 0; i < run->plan->kernel_count; i++) {
        const LaunchKernel *k = &run->plan->kernels[i];
        if (launch_smem(k, launch_ctas(run->plan, i, 0, run->sizes)) != k->smem_bytes) return true;
    }
    return false;
}

/* Without that memory the bits must be the same, because a row's result may not depend on the
 * number of rows. */
static bool run_both_ways(const Run *run, SimObject *object, uint64_t seed, uint64_t *hashes)
{
    if (!has_few(run)) return run_plan(run, object, seed, hashes);
    Run without = *run;
    without.without_few = true;
    if (!run_plan(&without, object, seed, hashes)) return false;
    uint64_t *first = hashes + run->plan->tensor_count;
    compare_bits(run, first, true);
    if (!run_plan(run, object, seed, hashes)) return false;
    const char *differs = compare_bits(run, first, false);
    if (!differs) return true;
    snprintf(run->message, run->message_size,
             "%s has other bits where column vectors are copied to shared memory, as for few rows",
             differs);
    return false;
}

/* ---- one run after the other ---- */

static SimObject *load(const LaunchPlan *plan, const char *text, char *message, size_t size)
{
    const LaunchEntry **entries = calloc(2 * (size_t)plan->kernel_count + 1, sizeof *entries);
    const char **names = calloc(2 * (size_t)plan->kernel_count + 1, sizeof *names);
    SimObject *object = NULL;
    snprintf(message, size, "out of memory");
    if (entries && names) {
        int count = list_entries(plan, entries);
        for (int i = 0; i < count; i++) names[i] = entries[i]->name;
        object = object_load(text, names, count, message, size);
    }
    free(entries);
    free(names);
    return object;
}

static bool check_bits(const Run *run, uint64_t *hashes, bool first, uint64_t seed)
{
    const char *differs = compare_bits(run, hashes, first);
    if (!differs) return true;
    snprintf(run->message, run->message_size,
             "seed %llu: %s has other bits than under the first seed", (unsigned long long)seed,
             differs);
    return false;
}

static bool run_seeds(const Run *run, SimObject *object, uint64_t seed, int count)
{
    const size_t tensors = (size_t)run->plan->tensor_count + 1;
    uint64_t *hashes = calloc(3 * tensors, sizeof *hashes);
    bool good = hashes ? true : refuse(run, "out of memory");
    for (int i = 0; i < count && good; i++)
        good = run_both_ways(run, object, seed + (uint64_t)i, hashes + tensors) &&
               (count == 1 || check_bits(run, hashes, i == 0, seed + (uint64_t)i));
    free(hashes);
    return good;
}

static bool run_object(const LaunchPlan *plan, const Sizes *sizes, SimObject *object,
                       void **tensors, const int64_t (*strides)[MAX_RANK], const double *scalars,
                       int sms, Progress *progress, uint64_t seed, int count, char *message,
                       size_t message_size)
{
    Run run = {.plan = plan,
               .progress = progress,
               .sizes = sizes,
               .tensors = tensors,
               .strides = strides,
               .scalars = scalars,
               .sms = sms,
               .message = message,
               .message_size = message_size};
    const size_t slots = (size_t)plan->slot_count + 1;
    bool good = false;
    snprintf(message, message_size, "out of memory");
    run.offsets = calloc(slots, sizeof *run.offsets);
    run.slot_sizes = calloc(slots, sizeof *run.slot_sizes);
    run.tensor_sizes = calloc((size_t)plan->tensor_count + 1, sizeof *run.tensor_sizes);
    if (run.offsets && run.slot_sizes && run.tensor_sizes) {
        const int64_t bytes = launch_workspace(plan, sizes, run.offsets);
        run.workspace = aligned_alloc(256, ((size_t)bytes + 511) / 256 * 256);
        good = run.workspace && run_seeds(&run, object, seed, count);
    }
    if (good && message_size > 0) message[0] = 0;
    free(run.workspace);
    free(run.tensor_sizes);
    free(run.slot_sizes);
    free(run.offsets);
    return good;
}

bool simulate_loaded(const LaunchPlan *plan, const Sizes *sizes, SimObject *object, void **tensors,
                     const int64_t (*strides)[MAX_RANK], const double *scalars, uint64_t seed,
                     int count, char *message, size_t message_size)
{
    return run_object(plan, sizes, object, tensors, strides, scalars, 0, NULL, seed, count, message,
                      message_size);
}

bool simulate(const LaunchPlan *plan, const Sizes *sizes, const char *cuda_text, void **tensors,
              const int64_t (*strides)[MAX_RANK], const double *scalars, int sms, uint64_t seed,
              char *message, size_t message_size)
{
    Progress progress;
    progress_begin(&progress, "compiling for the simulator");
    SimObject *object = load(plan, cuda_text, message, message_size);
    progress_end(&progress);
    progress_begin(&progress, "simulating");
    const bool good =
        object && run_object(plan, sizes, object, tensors, strides, scalars, sms > 0 ? sms : SMS,
                             &progress, seed, 1, message, message_size);
    progress_end(&progress);
    object_free(object);
    return good;
}
