/* reference/reference.c: the CPU evaluator. reference/plan.c decides what is done; this file walks
 * the passes, with as many threads as asked for.
 *
 * Sizes alone cut a pass into blocks. Threads take blocks as they come, each with chunks of its
 * own, and the blocks' partial reductions are merged in order, so the result does not depend on the
 * number of threads. Only the calling thread allocates. */
#include "base/environment.h"
#include "reference/plan.h"
#include "base/thread.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256, WORKER_STACK = 1 << 20 };

/* What one thread computes in: chunk k's values, then its bounds. */
typedef struct {
    double *chunks;
    const double *zeros;
    int64_t index[MAX_AXES];
    int64_t row;
    int64_t *offsets; /* by chunk: where its source begins in this row */
} Worker;

typedef struct {
    const Plan *plan;
    const Pass *pass;
    Accumulator *partials; /* by sink and block */
    Worker *workers;
    int next_block, next_worker;
    double before, share; /* of the whole evaluation, for progress */
} Run;

static double *values_of(const Worker *w, int slot)
{
    return w->chunks + (size_t)slot * 2 * CHUNK;
}

static double *bounds_of(const Worker *w, int slot)
{
    return values_of(w, slot) + CHUNK;
}

static int64_t offset_in_row(const Pass *pass, const Worker *w, const int64_t *strides)
{
    int64_t offset = 0;
    for (int i = 0; i < pass->outer; i++) offset += w->index[i] * strides[i];
    return offset;
}

/* ---- steps ---- */

static void fill(int n, double *cells, double value)
{
    for (int i = 0; i < n; i++) cells[i] = value;
}

static void fill_constant(const Step *step, int n, void *v)
{
    double *real = v;
    int64_t *whole = v;
    for (int i = 0; i < n; i++) {
        if (type_is_float(step->operation.type))
            real[i] = step->number;
        else
            whole[i] = step->integer;
    }
}

static void fill_index(const Step *step, const Pass *pass, const Worker *w, int64_t begin, int n,
                       int64_t *v)
{
    const bool runs = step->axis == pass->outer;
    const int64_t first = runs ? begin : w->index[step->axis];
    for (int i = 0; i < n; i++) v[i] = runs ? first + i : first;
}

static void run_step(const Step *step, const Pass *pass, const Worker *w, int64_t begin, int n)
{
    double *v = values_of(w, step->slot);
    double *e = step->exact ? NULL : bounds_of(w, step->slot);
    const int64_t offset = w->offsets[step->slot] + begin;
    Operand args[MAX_OPERANDS];
    switch (step->kind) {
    case STEP_CONST: fill_constant(step, n, v); return;
    case STEP_INDEX: fill_index(step, pass, w, begin, n, (int64_t *)(void *)v); return;
    case STEP_TENSOR: load_chunk(step->dtype, step->data, offset, n, v); return;
    case STEP_KEPT:
        memcpy(v, (const double *)step->kept->v + offset, (size_t)n * sizeof *v);
        if (e) memcpy(e, step->kept->e + offset, (size_t)n * sizeof *e);
        return;
    case STEP_COMPUTE: break;
    }
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const int slot = step->args[i] < 0 ? step->slot : step->args[i];
        args[i].v = values_of(w, slot);
        args[i].e = step->exact_args >> i & 1 ? w->zeros : bounds_of(w, slot);
    }
    compute(&step->operation, n, v, e, args);
}

/* Computes a value without the innermost axis once, and repeats it over the chunk. */
static void run_row_step(const Step *step, const Pass *pass, const Worker *w)
{
    const int n = (int)(pass->inner < CHUNK ? pass->inner : CHUNK);
    run_step(step, pass, w, 0, 1);
    double *v = values_of(w, step->slot), *e = bounds_of(w, step->slot);
    if (type_is_float(step->operation.type))
        fill(n, v, v[0]);
    else
        for (int i = 1; i < n; i++) memcpy(v + i, v, sizeof *v);
    if (!step->exact) fill(n, e, e[0]);
}

static void find_index(const Pass *pass, Worker *w, int64_t row)
{
    for (int i = pass->outer - 1; i >= 0; i--) {
        w->index[i] = row % pass->sizes[i];
        row /= pass->sizes[i];
    }
}

static void enter_row(const Pass *pass, Worker *w, int64_t row)
{
    w->row = row;
    find_index(pass, w, row);
    for (int i = 0; i < pass->row_steps.count; i++) {
        const Step *step = &pass->row_steps.data[i];
        w->offsets[step->slot] = offset_in_row(pass, w, step->strides);
        run_row_step(step, pass, w);
    }
}

/* ---- sinks ---- */

/* A bound that is stored as f32 must not become less, nor 0. */
static float float_above(double bound)
{
    const float nearest = (float)bound;
    return (double)nearest < bound ? nextafterf(nearest, HUGE_VALF) : nearest;
}

static void put_output(const Plan *p, const Sink *sink, int64_t offset, int n, Operand x)
{
    const Evaluation *e = p->evaluation;
    const HostTensor *out = &e->outputs[sink->output];
    const int64_t *whole = x.v;
    const bool same = dtype_is_float(out->dtype) == type_is_float(sink->type);
    double *exact = e->exact ? e->exact[sink->output] : NULL;
    if (out->data) store_chunk(out->dtype, out->data, offset, n, sink->type, x.v);
    if (exact && same) memcpy(exact + offset, x.v, (size_t)n * sizeof *exact);
    for (int i = 0; exact && !same && i < n; i++) exact[offset + i] = (double)whole[i];
    if (e->bound && e->bound[sink->output])
        for (int i = 0; i < n; i++) e->bound[sink->output][offset + i] = float_above(x.e[i]);
}

static void put_kept(const Sink *sink, int64_t offset, int n, Operand x)
{
    memcpy((double *)sink->kept->v + offset, x.v, (size_t)n * sizeof(double));
    if (sink->kept->e) memcpy(sink->kept->e + offset, x.e, (size_t)n * sizeof *x.e);
}

static void put_reduction(const Sink *sink, Accumulator partial, int64_t offset, int n, Operand x)
{
    const Accumulator at = accumulator_at(partial, offset);
    if (sink->reduces_inner)
        accumulate_row(&sink->operation, at, n, x);
    else
        accumulate_columns(&sink->operation, at, n, x);
}

static void feed_sinks(const Run *run, const Worker *w, int block, int64_t begin, int n)
{
    const Pass *pass = run->pass;
    for (int i = 0; i < pass->sinks.count; i++) {
        const Sink *sink = &pass->sinks.data[i];
        const bool bare = sink->kind == SINK_REDUCE ? sink->exact_source : sink->exact;
        const Operand x = {values_of(w, sink->slot), bare ? w->zeros : bounds_of(w, sink->slot)};
        int64_t offset = offset_in_row(pass, w, sink->strides);
        if (sink->kind != SINK_REDUCE || !sink->reduces_inner) offset += begin;
        if (sink->kind == SINK_OUTPUT)
            put_output(run->plan, sink, offset, n, x);
        else if (sink->kind == SINK_KEEP)
            put_kept(sink, offset, n, x);
        else
            put_reduction(sink, run->partials[i * pass->blocks + block],
                          offset - first_slab(pass, sink, block) * sink->slab, n, x);
    }
}

/* ---- blocks and threads ---- */

static bool is_cancelled(const Plan *p)
{
    const bool *flag = p->evaluation->cancelled;
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static void run_unit(const Run *run, Worker *w, int block, int64_t unit)
{
    const Pass *pass = run->pass;
    const int64_t row = unit / pass->chunks, begin = unit % pass->chunks * CHUNK;
    const int n = (int)(pass->inner - begin < CHUNK ? pass->inner - begin : CHUNK);
    if (row != w->row) enter_row(pass, w, row);
    for (int i = 0; i < pass->chunk_steps.count; i++) {
        const Step *step = &pass->chunk_steps.data[i];
        w->offsets[step->slot] = offset_in_row(pass, w, step->strides);
        run_step(step, pass, w, begin, n);
    }
    feed_sinks(run, w, block, begin, n);
}

static void run_block(const Run *run, Worker *w, int block)
{
    const Pass *pass = run->pass;
    const int64_t end = block_begin(pass, block + 1);
    w->row = -1;
    for (int i = 0; i < pass->sinks.count; i++) {
        const Sink *sink = &pass->sinks.data[i];
        if (sink->kind == SINK_REDUCE)
            accumulator_clear(&sink->operation, run->partials[i * pass->blocks + block],
                              slab_items(pass, sink, block));
    }
    for (int64_t unit = block_begin(pass, block); unit < end; unit++) {
        if ((unit & 63) == 0 && is_cancelled(run->plan)) return;
        run_unit(run, w, block, unit);
    }
}

/* The calling thread reports the progress. */
static void work(Run *run, Worker *w, bool reports)
{
    const Evaluation *e = run->plan->evaluation;
    for (;;) {
        const int block = __atomic_fetch_add(&run->next_block, 1, __ATOMIC_RELAXED);
        if (block >= run->pass->blocks) return;
        run_block(run, w, block);
        if (reports && e->progress)
            e->progress(e->progress_data,
                        run->before + run->share * (block + 1) / run->pass->blocks);
    }
}

static void *start_worker(void *data)
{
    OWN_ENVIRONMENT;
    Run *run = data;
    const int worker = __atomic_add_fetch(&run->next_worker, 1, __ATOMIC_RELAXED);
    work(run, &run->workers[worker], false);
    return NULL;
}

/* Threads that cannot be created are done without. */
static void run_threads(Run *run, int threads)
{
    pthread_t started[MAX_THREADS];
    int count = 0;
    if (threads > run->pass->blocks) threads = run->pass->blocks;
    while (count < threads - 1 && thread_start(&started[count], WORKER_STACK, start_worker, run))
        count++;
    work(run, &run->workers[0], true);
    for (int i = 0; i < count; i++) pthread_join(started[i], NULL);
}

/* ---- passes ---- */

static double *new_cells(Arena *arena, int64_t count, bool wanted)
{
    return wanted ? NEW_ARRAY(arena, double, count) : NULL;
}

static Accumulator new_accumulator(Arena *arena, const Sink *sink, int64_t count)
{
    const bool ends = sink->centre && !sink->mean;
    const bool sums = !sink->exact && is_sum_of_floats(&sink->operation);
    return (Accumulator){
        .v = new_cells(arena, count, true),
        .m = new_cells(arena, count, !sink->exact),
        .e = new_cells(arena, count, !sink->exact),
        .low = new_cells(arena, count, ends),
        .high = new_cells(arena, count, ends),
        .last = new_cells(arena, count, sums),
        .alike = new_cells(arena, count, sums),
        .second = new_cells(arena, count, sink->second),
    };
}

static void allocate_partials(Run *run, Arena *arena)
{
    const Pass *pass = run->pass;
    run->partials = NEW_ARRAY(arena, Accumulator, pass->sinks.count * pass->blocks + 1);
    for (int i = 0; i < pass->sinks.count; i++) {
        const Sink *sink = &pass->sinks.data[i];
        for (int b = 0; sink->kind == SINK_REDUCE && b < pass->blocks; b++)
            run->partials[i * pass->blocks + b] =
                new_accumulator(arena, sink, slab_items(pass, sink, b));
    }
}

static void merge_partials(const Run *run, Arena *arena, int index)
{
    const Pass *pass = run->pass;
    const Sink *sink = &pass->sinks.data[index];
    const Accumulator all = new_accumulator(arena, sink, sink->count);
    accumulator_clear(&sink->operation, all, sink->count);
    for (int b = 0; b < pass->blocks; b++)
        accumulator_merge(&sink->operation,
                          accumulator_at(all, first_slab(pass, sink, b) * sink->slab),
                          slab_items(pass, sink, b), run->partials[index * pass->blocks + b]);
    accumulator_finish(&sink->operation, all, sink->count, sink->terms, sink->kept->v,
                       sink->kept->e);
    if (sink->second) memcpy(sink->second->v, all.second, (size_t)sink->count * sizeof *all.second);
    if (sink->mean)
        finish_squares(sink->count, sink->terms, sink->kept->v, sink->kept->e, sink->mean->e,
                       sink->centre->e);
    else if (sink->centre)
        finish_centres(&sink->operation, all, sink->count, sink->terms, sink->kept->v,
                       sink->kept->e, sink->centre->e);
}

static void run_pass(Run *run, Arena *arena, int threads)
{
    const Pass *pass = run->pass;
    run->next_block = run->next_worker = 0;
    allocate_partials(run, arena);
    if (pass->blocks > 0) run_threads(run, threads);
    for (int i = 0; i < pass->sinks.count; i++)
        if (pass->sinks.data[i].kind == SINK_REDUCE) merge_partials(run, arena, i);
}

static Worker *allocate_workers(const Plan *p, int threads)
{
    int slots = 1;
    for (int i = 0; i < p->passes.count; i++)
        if (p->passes.data[i]->slots > slots) slots = p->passes.data[i]->slots;
    Worker *workers = NEW_ARRAY(p->arena, Worker, threads);
    const double *zeros = NEW_ARRAY(p->arena, double, CHUNK);
    for (int i = 0; i < threads; i++) {
        workers[i].chunks = NEW_ARRAY(p->arena, double, (size_t)slots * 2 * CHUNK);
        workers[i].offsets = NEW_ARRAY(p->arena, int64_t, slots);
        workers[i].zeros = zeros;
    }
    return workers;
}

static int count_threads(const Evaluation *e)
{
    const long online = e->threads > 0 ? e->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return (int)(online < 1 ? 1 : online > MAX_THREADS ? MAX_THREADS : online);
}

static double work_of(const Pass *pass)
{
    return 1 +
           (double)pass->rows * (double)pass->inner * (pass->chunk_steps.count + pass->sinks.count);
}

/* ---- the whole ---- */

typedef struct {
    jmp_buf escape;
    Arena *plan, *pass; /* the second one is freed after each pass */
} Memory;

static void leave(void *data)
{
    Memory *memory = data;
    longjmp(memory->escape, 1);
}

static void run_passes(Memory *memory, const Evaluation *e)
{
    const Plan *p = plan_evaluation(memory->plan, e);
    const int threads = count_threads(e);
    Run run = {.plan = p, .workers = allocate_workers(p, threads)};
    double total = 0;
    for (int i = 0; i < p->passes.count; i++) total += work_of(p->passes.data[i]);
    for (int i = 0; i < p->passes.count && !is_cancelled(p); i++) {
        run.pass = p->passes.data[i];
        run.share = work_of(run.pass) / total;
        memory->pass = arena_new();
        if (!memory->pass) leave(memory);
        arena_on_out_of_memory(memory->pass, leave, memory);
        run_pass(&run, memory->pass, threads);
        arena_free(memory->pass);
        memory->pass = NULL;
        run.before += run.share;
    }
}

static bool try_evaluation(Memory *memory, const Evaluation *e)
{
    if (setjmp(memory->escape) != 0) return false;
    arena_on_out_of_memory(memory->plan, leave, memory);
    run_passes(memory, e);
    return !(e->cancelled && __atomic_load_n(e->cancelled, __ATOMIC_RELAXED));
}

bool evaluate(const Evaluation *e)
{
    Memory memory = {.plan = arena_new()};
    if (!memory.plan) return false;
    const bool done = try_evaluation(&memory, e);
    arena_free(memory.pass);
    arena_free(memory.plan);
    return done;
}
