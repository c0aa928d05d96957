/* machine.c: launches: CTAs come and go in a random order, and the scheduler picks which
 * thread runs on.
 *
 * Half of the seeds pick warps evenly; the others give each warp a priority and let the
 * first in line run as far as it can, changing priorities now and then: so one warp gets
 * far ahead of another, which even picks hardly ever do. All randomness comes from the
 * seed and none from addresses, so a seed replays exactly. */
#include "state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 128 * 1024, VIEW = 128, SMS = 4, THREADS_PER_SM = 2048, CTAS_PER_SM = 32 };
static const int64_t smem_per_sm = 228 * 1024;

uint64_t random_below(Machine *m, uint64_t limit)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (m->random >> 11) % limit;
}

Machine *machine_new(SimObject *object, uint64_t seed, char *message, size_t message_size)
{
    Machine *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->object = object;
    m->seed = seed;
    m->random = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
    m->message = message;
    m->message_size = message_size;
    m->first_id = m->next_id = 1;
    m->fill = 0xff;
    for (int i = 0; i < 8; i++) random_below(m, 2);
    m->skew = random_below(m, 2) ? 0 : (uint64_t)64 << random_below(m, 6);
    m->patience = (uint64_t)16 << random_below(m, 8);
    object->link->api = &sim_api;
    object->link->machine = m;
    return m;
}

void machine_free(Machine *m)
{
    if (!m) return;
    for (int i = 0; i < m->region_count; i++)
        if (m->regions[i].cells) munmap(m->regions[i].cells, m->regions[i].cells_size);
    free(m);
}

void machine_fill_shared(Machine *m, unsigned char byte)
{
    m->fill = byte;
}

const char *machine_doubt(const Machine *m)
{
    return m->doubt;
}

/* ---- buffers
 * ------------------------------------------------------------------------------- */

static bool is_dense(const SimBuffer *b)
{
    int64_t expected = 1;
    for (int i = b->rank - 1; i >= 0; i--) {
        if (b->sizes[i] != 1 && b->strides[i] != expected) return false;
        expected *= b->sizes[i];
    }
    return true;
}

/* Elements from the first to the last, 0 if there are none. */
static int64_t extent_of(const SimBuffer *b)
{
    int64_t extent = 1;
    for (int i = 0; i < b->rank; i++) {
        if (b->sizes[i] == 0) return 0;
        extent += (b->sizes[i] - 1) * b->strides[i];
    }
    return extent;
}

/* The offset in elements of the item-th element in row-major order; -1 past the last. */
static int64_t offset_of(const SimBuffer *b, int64_t item)
{
    int64_t offset = 0;
    for (int i = b->rank - 1; i >= 0; i--) {
        offset += item % b->sizes[i] * b->strides[i];
        item /= b->sizes[i];
    }
    return item ? -1 : offset;
}

static void poison(Region *r)
{
    int64_t at;
    if (!r->holes) {
        memset(r->base, 0xff, r->bytes);
        return;
    }
    for (int64_t i = 0; (at = offset_of(&r->buffer, i)) >= 0; i++) {
        r->cells[at].flags = CELL_WRITABLE;
        memset(r->base + at * r->buffer.element, 0xff, (size_t)r->buffer.element);
    }
}

static bool overlaps(const Region *a, const Region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes &&
           (a->buffer.kind != BUFFER_INPUT || b->buffer.kind != BUFFER_INPUT);
}

bool machine_add_buffer(Machine *m, const SimBuffer *buffer)
{
    if (m->region_count == MAX_REGIONS)
        return complain_about(m, "more than %d buffers", MAX_REGIONS);
    Region *r = &m->regions[m->region_count];
    const int64_t extent = extent_of(buffer);
    *r = (Region){.buffer = *buffer, .base = buffer->data, .holes = !is_dense(buffer)};
    if (extent == 0) return true;
    r->bytes = (size_t)extent * (size_t)buffer->element;
    for (int i = 0; i < m->region_count; i++)
        if (overlaps(r, &m->regions[i]))
            return complain_about(m, "%s and %s overlap", buffer->name,
                                  m->regions[i].buffer.name);
    if (buffer->kind != BUFFER_INPUT) {
        r->cells_size = (size_t)extent * sizeof *r->cells;
        r->cells = map_zeros(r->cells_size);
        if (!r->cells) return complain_about(m, "no memory to watch %s", buffer->name);
        poison(r);
    }
    m->region_count++;
    return true;
}

static bool check_written(Machine *m, const Region *r)
{
    int64_t at;
    for (int64_t i = 0; (at = offset_of(&r->buffer, i)) >= 0; i++)
        if (!(r->cells[at].flags & CELL_WRITTEN))
            return complain_about(
                m, "element %lld of %s (in row-major order) is never written",
                (long long)i, r->buffer.name);
    return true;
}

bool machine_finish(Machine *m)
{
    for (int i = 0; i < m->region_count && !m->failed; i++)
        if (m->regions[i].buffer.kind == BUFFER_OUTPUT) check_written(m, &m->regions[i]);
    return !m->failed;
}

/* ---- threads
 * ------------------------------------------------------------------------------- */

static Warp *warp_of(const Thread *t)
{
    return &t->cta->warps[t->index / SIM_WARP];
}

static void set_ready(Machine *m, Thread *t)
{
    Warp *w = warp_of(t);
    t->state = THREAD_READY;
    w->ready |= 1U << t->index % SIM_WARP;
    if (w->place >= 0) return;
    w->place = m->ready_count;
    m->ready[m->ready_count++] = w;
}

static void set_unready(Machine *m, Thread *t, ThreadState state)
{
    Warp *w = warp_of(t);
    t->state = state;
    w->ready &= ~(1U << t->index % SIM_WARP);
    if (w->ready) return;
    Warp *last = m->ready[--m->ready_count];
    m->ready[w->place] = last;
    last->place = w->place;
    w->place = -1;
}

void wake(Machine *m, Thread *t)
{
    set_ready(m, t);
}

void switch_away(Machine *m)
{
    fiber_switch(&m->current->context, &m->context);
}

void wait_for(Machine *m, Wait wait)
{
    m->current->wait = wait;
    set_unready(m, m->current, THREAD_WAITING);
    switch_away(m);
}

static void run_thread(void *argument)
{
    Thread *t = argument;
    Machine *m = t->cta->machine;
    fiber_entered(&m->context);
    m->call(m->launch->args);
    thread_exit(m, t);
    set_unready(m, t, THREAD_DONE);
    t->cta->live--;
    switch_away(m);
}

static void start_thread(Machine *m, Cta *cta, int index)
{
    Thread *t = &cta->threads[index];
    const SimLaunch *l = m->launch;
    char *stack =
        m->stacks + ((size_t)cta->slot * (size_t)l->threads + (size_t)index) * STACK;
    SimThread *view = (SimThread *)(stack + STACK - VIEW);
    *view = (SimThread){
        .thread = {(unsigned)index, 0, 0},
        .block = {(unsigned)(cta->number % l->grid[0]),
                  (unsigned)(cta->number / l->grid[0]), 0},
        .block_size = {(unsigned)l->threads, 1, 1},
        .grid_size = {(unsigned)l->grid[0], (unsigned)l->grid[1], 1},
        .cluster_size = 1,
    };
    *t = (Thread){
        .cta = cta,
        .view = view,
        .stack = stack,
        .index = index,
        .epoch = 1,
        .id =
            m->first_id + (uint32_t)cta->number * (uint32_t)l->threads + (uint32_t)index,
        .context = fiber_new(stack, STACK, VIEW, run_thread, t),
    };
    set_ready(m, t);
}

/* Only as much of the dynamic shared memory as the launch asks for. */
static void poison_smem(const Machine *m, const Cta *cta)
{
    const size_t end = m->dynamic_at + SIM_DYNAMIC_SMEM;
    memset(cta->smem, m->fill, m->dynamic_at + (size_t)m->launch->smem_bytes);
    memset(cta->smem + end, m->fill, m->smem_size - end);
}

static void start_cta(Machine *m, Cta *cta)
{
    cta->number = m->order[m->next_cta++];
    cta->live = m->launch->threads;
    poison_smem(m, cta);
    madvise(cta->cells, m->smem_size * sizeof *cta->cells, MADV_DONTNEED);
    for (int w = 0; w < (cta->live + SIM_WARP - 1) / SIM_WARP; w++)
        cta->warps[w] = (Warp){.cta = cta,
                               .index = w,
                               .place = -1,
                               .priority = (uint32_t)random_below(m, 1U << 30)};
    for (int i = 0; i < cta->live; i++) start_thread(m, cta, i);
}

static void end_cta(Machine *m, Cta *cta)
{
    for (int i = 0; i < m->launch->threads; i++) {
        clock_clear(&cta->threads[i].clock);
        clock_clear(&cta->threads[i].released);
        clock_clear(&cta->threads[i].acquired);
        free(cta->threads[i].copies);
        cta->threads[i].copies = NULL;
    }
    for (int i = 0; i < BARRIERS; i++) {
        clock_clear(&cta->barriers[i].clock);
        cta->barriers[i] = (Barrier){0};
    }
    clock_clear(&cta->base);
}

/* ---- scheduler
 * ----------------------------------------------------------------------------- */

static Warp *pick_warp(Machine *m)
{
    if (!m->skew) return m->ready[random_below(m, (uint64_t)m->ready_count)];
    Warp *best = m->ready[0];
    for (int i = 1; i < m->ready_count; i++)
        if (m->ready[i]->priority > best->priority) best = m->ready[i];
    if (random_below(m, m->skew) == 0)
        best->priority = (uint32_t)random_below(m, 1U << 30);
    return best;
}

static Thread *pick_thread(Machine *m, const Warp *w)
{
    unsigned lanes = w->ready;
    for (uint64_t n = random_below(m, (uint64_t)__builtin_popcount(lanes)); n > 0; n--)
        lanes &= lanes - 1;
    return &w->cta->threads[w->index * SIM_WARP + __builtin_ctz(lanes)];
}

/* A thread is deepest in its stack where it switches, or nearly so. */
static void check_stack(Machine *m, const Thread *t)
{
    if ((const char *)t->context.sp - t->stack < STACK / 8)
        complain_about(m, "%s: more than %d KB of local memory a thread",
                       m->launch->kernel, STACK / 8 * 7 / 1024);
}

static void run_some(Machine *m, Thread *t)
{
    SimLink *link = m->object->link;
    m->current = t;
    link->self = t->view;
    link->shared = t->cta->smem;
    link->stack = (uintptr_t)t->stack;
    link->stack_size = STACK;
    fiber_switch(&m->context, &t->context);
    check_stack(m, t);
    if (m->failed || t->cta->live > 0) return;
    m->done++;
    end_cta(m, t->cta);
    if (m->next_cta < m->cta_count) start_cta(m, t->cta);
}

static void run_all(Machine *m)
{
    for (int i = 0; i < m->resident; i++) start_cta(m, &m->ctas[i]);
    while (m->done < m->cta_count && !m->failed) {
        if (m->ready_count == 0) {
            report_deadlock(m);
            return;
        }
        run_some(m, pick_thread(m, pick_warp(m)));
    }
}

/* ---- launches
 * ------------------------------------------------------------------------------ */

static bool find_kernel(Machine *m, const SimLaunch *l)
{
    char symbol[512];
    snprintf(symbol, sizeof symbol, "sim_count_%s", l->kernel);
    const int *count = dlsym(m->object->handle, symbol);
    snprintf(symbol, sizeof symbol, "sim_call_%s", l->kernel);
    void *call = dlsym(m->object->handle, symbol);
    if (!call || !count) return complain_about(m, "there is no kernel %s", l->kernel);
    memcpy(&m->call, &call, sizeof call);
    if (*count != l->arg_count)
        return complain_about(m, "%s has %d parameters, not %d", l->kernel, *count,
                              l->arg_count);
    return true;
}

static bool check_limits(Machine *m, const SimLaunch *l)
{
    const uint64_t threads =
        (uint64_t)l->grid[0] * (uint64_t)l->grid[1] * (uint64_t)l->threads;
    if (l->threads < 1 || l->threads > 1024)
        return complain_about(m, "%s: a CTA of %d threads", l->kernel, l->threads);
    if (l->smem_bytes > SIM_DYNAMIC_SMEM)
        return complain_about(m, "%s: %lld bytes of dynamic shared memory", l->kernel,
                              (long long)l->smem_bytes);
    if (l->cluster > 1)
        return complain_about(m, "%s: a cluster of %d CTAs cannot be simulated",
                              l->kernel, l->cluster);
    if (threads + m->next_id > UINT32_MAX / 2)
        return complain_about(m, "%s: too many threads", l->kernel);
    return true;
}

static void shuffle_ctas(Machine *m)
{
    for (int i = 0; i < m->cta_count; i++) {
        const int j = (int)random_below(m, (uint64_t)i + 1);
        m->order[i] = m->order[j];
        m->order[j] = i;
    }
}

static int count_resident(const Machine *m, const SimLaunch *l)
{
    int64_t per_sm = THREADS_PER_SM / l->threads;
    if (per_sm > CTAS_PER_SM) per_sm = CTAS_PER_SM;
    if (per_sm > smem_per_sm / (l->smem_bytes + 1024))
        per_sm = smem_per_sm / (l->smem_bytes + 1024);
    return SMS * per_sm < m->cta_count ? (int)(SMS * per_sm) : m->cta_count;
}

static bool make_cta(Machine *m, int slot)
{
    const size_t threads = (size_t)m->launch->threads;
    Cta *cta = &m->ctas[slot];
    cta->machine = m;
    cta->slot = slot;
    cta->threads = calloc(threads, sizeof *cta->threads);
    cta->warps = calloc(threads / SIM_WARP + 1, sizeof *cta->warps);
    cta->smem = map_zeros(m->smem_size);
    cta->cells = map_zeros(m->smem_size * sizeof *cta->cells);
    return cta->threads && cta->warps && cta->smem && cta->cells;
}

static bool make_stacks(Machine *m)
{
    m->stacks_size = (size_t)m->resident * (size_t)m->launch->threads * STACK;
    m->stacks = map_zeros(m->stacks_size);
    return m->stacks != NULL;
}

static bool make_room(Machine *m)
{
    const size_t warps = (size_t)(m->launch->threads + SIM_WARP - 1) / SIM_WARP;
    m->ctas = calloc((size_t)m->resident, sizeof *m->ctas);
    m->order = calloc((size_t)m->cta_count, sizeof *m->order);
    m->ready = calloc((size_t)m->resident * warps, sizeof *m->ready);
    m->locations = calloc(MAX_LOCATIONS, sizeof *m->locations);
    bool good = m->ctas && m->order && m->ready && m->locations && make_stacks(m);
    for (int i = 0; i < m->resident && good; i++) good = make_cta(m, i);
    return good || complain_about(m, "%s: no memory for its threads", m->launch->kernel);
}

static void free_room(Machine *m)
{
    for (int i = 0; m->ctas && i < m->resident; i++) {
        Cta *cta = &m->ctas[i];
        if (cta->threads) end_cta(m, cta);
        if (cta->smem) munmap(cta->smem, m->smem_size);
        if (cta->cells) munmap(cta->cells, m->smem_size * sizeof *cta->cells);
        free(cta->threads);
        free(cta->warps);
    }
    if (m->stacks) {
        fiber_forget(m->stacks, m->stacks_size);
        munmap(m->stacks, m->stacks_size);
    }
    if (m->locations) forget_locations(m);
    free(m->locations);
    free(m->ctas);
    free(m->order);
    free(m->ready);
    m->ctas = NULL, m->order = NULL, m->ready = NULL, m->locations = NULL,
    m->stacks = NULL;
    m->ready_count = 0;
    m->current = NULL;
}

bool machine_launch(Machine *m, const SimLaunch *l)
{
    m->launch = l;
    m->cta_count = l->grid[0] * l->grid[1];
    if (m->failed || !find_kernel(m, l) || !check_limits(m, l)) return false;
    if (m->cta_count == 0) return true;
    m->first_id = m->next_id;
    m->next_id += (uint32_t)m->cta_count * (uint32_t)l->threads;
    m->resident = count_resident(m, l);
    m->next_cta = m->done = 0;
    m->smem_size = m->object->shared_size;
    for (int i = 0; i < m->object->shared_count; i++)
        if (m->object->shared[i].size == SIM_DYNAMIC_SMEM)
            m->dynamic_at = m->object->shared[i].offset;
    if (make_room(m)) {
        shuffle_ctas(m);
        run_all(m);
    }
    free_room(m);
    return !m->failed;
}
