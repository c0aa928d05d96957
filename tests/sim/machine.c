/* machine.c: launches: clusters of CTAs come and go in a random order, and the scheduler
 * picks which thread runs on. A launch without clusters has clusters of one CTA.
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

enum {
    STACK = 128 * 1024,
    /* from one stack to the next: not all tops in the same few lines of the cache */
    STACK_STEP = STACK + 4096 + 192,
    VIEW = 128,
    SMS = 4,
    THREADS_PER_SM = 2048,
    CTAS_PER_SM = 32,
    MOST_QUIET = 1 << 24,
    MOST_STEPS = 1 << 30
};
static const int64_t smem_per_sm = 228 * 1024;

uint64_t random_below(Machine *m, uint64_t limit)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (m->random >> 32) * limit >> 32;
}

Machine *machine_new(SimObject *object, uint64_t seed, char *message, size_t message_size)
{
    Machine *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    clocks_begin();
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
    m->laziness = (uint64_t)2 << random_below(m, 12);
    m->sms = SMS;
    object->link->api = &sim_api;
    object->link->machine = m;
    return m;
}

void machine_free(Machine *m)
{
    if (!m) return;
    for (int i = 0; i < m->region_count; i++)
        if (m->regions[i].shadow.cells)
            munmap(m->regions[i].shadow.cells,
                   shadow_bytes(m->regions[i].shadow.blocks, m->regions[i].shadow.block));
    free(m);
}

void machine_fill_shared(Machine *m, unsigned char byte)
{
    m->fill = byte;
}

void machine_on_step(Machine *m, void (*step)(void *data, double fraction), void *data)
{
    m->step = step;
    m->step_data = data;
}

void machine_set_sms(Machine *m, int sms)
{
    m->sms = sms;
}

const char *machine_doubt(const Machine *m)
{
    return m->doubt;
}

/* ---- threads ---- */

static void set_ready(Machine *m, Thread *t)
{
    Warp *w = warp_of(t);
    const unsigned lane = 1U << t->index % SIM_WARP;
    t->state = THREAD_READY;
    w->ready |= lane;
    w->waiting &= ~lane;
    if (w->place >= 0) return;
    w->place = m->ready_count;
    m->ready[m->ready_count++] = w;
    if (m->foremost && w->priority > m->foremost->priority) m->foremost = w;
}

static void set_unready(Machine *m, Thread *t, ThreadState state)
{
    Warp *w = warp_of(t);
    const unsigned lane = 1U << t->index % SIM_WARP;
    t->state = state;
    w->ready &= ~lane;
    *(state == THREAD_WAITING ? &w->waiting : &w->exited) |= lane;
    if (w->ready) return;
    if (w == m->foremost) m->foremost = NULL;
    Warp *last = m->ready[--m->ready_count];
    m->ready[w->place] = last;
    last->place = w->place;
    w->place = -1;
}

void wake(Machine *m, Thread *t)
{
    m->quiet = 0;
    set_ready(m, t);
}

void switch_away(Machine *m)
{
    m->quiet++;
    m->steps++;
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
    cluster_shrink(m, t->cta->cluster);
    m->quiet = 0;
    switch_away(m);
}

static void start_thread(Machine *m, Cta *cta, int index)
{
    Thread *t = &cta->threads[index];
    const SimLaunch *l = m->launch;
    char *stack = m->stacks + ((size_t)cta->slot * (size_t)l->threads + (size_t)index) * STACK_STEP;
    SimThread *view = (SimThread *)(stack + STACK - VIEW);
    *view = (SimThread){
        .thread = {(unsigned)index, 0, 0},
        .block = {(unsigned)(cta->number % l->grid[0]),
                  (unsigned)(cta->number / l->grid[0] % l->grid[1]),
                  (unsigned)(cta->number / l->grid[0] / l->grid[1])},
        .block_size = {(unsigned)l->threads, 1, 1},
        .dynamic_smem = (unsigned)l->smem_bytes,
        .grid_size = {(unsigned)l->grid[0], (unsigned)l->grid[1], (unsigned)l->grid[2]},
        .cluster_rank = l->grouped ? 0 : (unsigned)(cta->number % l->cluster),
        .cluster_size = l->grouped ? 1 : (unsigned)l->cluster,
    };
    *t = (Thread){
        .cta = cta,
        .view = view,
        .stack = stack,
        .index = index,
        .epoch = 1,
        .id = m->first_id + (uint32_t)cta->number * (uint32_t)m->actors + (uint32_t)index,
        .context = fiber_new(stack, STACK, VIEW, run_thread, t),
    };
    set_ready(m, t);
}

/* Only what the kernel can mean: an object has the variables of many kernels. */
static void poison_smem(const Machine *m, Cta *cta)
{
    for (int i = 0; i < m->variable_count; i++) {
        const size_t at = m->variables[i]->offset, size = room_of(m, m->variables[i]);
        memset(cta->smem + at, m->fill, size);
        shadow_forget(&cta->shadow, at, at + size);
    }
}

static void start_cta(Machine *m, Cta *cta, int number)
{
    cta->number = number;
    cta->live = m->launch->threads;
    cta->changes = cta->told_changes = cta->told_phase = 0;
    if (cta->visits)
        memset(cta->visits, 0, (size_t)(m->launch->cluster * cta->live) * sizeof *cta->visits);
    poison_smem(m, cta);
    for (int w = 0; w < (cta->live + SIM_WARP - 1) / SIM_WARP; w++)
        cta->warps[w] = (Warp){.cta = cta,
                               .index = w,
                               .place = -1,
                               .priority = LOOKS + (uint32_t)random_below(m, 1U << 30)};
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
    forget_transactions(cta);
    clock_clear(&cta->base);
}

static void start_cluster(Machine *m, Cluster *c)
{
    const int first = m->order[m->next_cluster++] * m->launch->cluster;
    c->live = m->launch->cluster;
    c->arrived = 0;
    c->phase = 0;
    for (int i = 0; i < c->live; i++) start_cta(m, &c->ctas[i], first + i);
}

static void end_cluster(Machine *m, Cluster *c)
{
    for (int i = 0; i < m->launch->cluster; i++) end_cta(m, &c->ctas[i]);
    for (int i = 0; i < 3; i++) clock_clear(&c->clocks[i]);
}

/* ---- scheduler ---- */

static Warp *pick_warp(Machine *m)
{
    if (!m->skew) return m->ready[random_below(m, (uint64_t)m->ready_count)];
    Warp *best = m->foremost ? m->foremost : m->ready[0];
    for (int i = 1; i < m->ready_count && !m->foremost; i++)
        if (m->ready[i]->priority > best->priority) best = m->ready[i];
    m->foremost = best;
    if (random_below(m, m->skew) == 0) {
        best->priority = LOOKS + (uint32_t)random_below(m, 1U << 30);
        m->foremost = NULL;
    }
    return best;
}

static Thread *pick_thread(Machine *m, const Warp *w)
{
    unsigned lanes = w->ready;
    for (uint64_t n = random_below(m, (uint64_t)__builtin_popcount(lanes)); n > 0; n--)
        lanes &= lanes - 1;
    return &w->cta->threads[w->index * SIM_WARP + __builtin_ctz(lanes)];
}

/* A thread that was picked before, or another if it cannot run any more. */
static Thread *pick_again(Machine *m, Thread *t)
{
    return t && t->state == THREAD_READY ? t : pick_thread(m, pick_warp(m));
}

/* Two threads are picked ahead of time, so that what is known of the one and the stack of the other are
 * on their way from memory while the one before them runs. */
static Thread *next_thread(Machine *m)
{
    Thread *t = pick_again(m, m->next);
    m->next = pick_again(m, m->after);
    m->after = pick_thread(m, pick_warp(m));
    const char *sp = m->next->context.sp;
    __builtin_prefetch(m->next->view);
    for (int i = 0; i < 2; i++) __builtin_prefetch(sp + 64 * i);
    __builtin_prefetch(&m->after->state);
    __builtin_prefetch(&m->after->context);
    return t;
}

/* A thread is deepest in its stack where it switches, or nearly so. */
static void check_stack(Machine *m, const Thread *t)
{
    if ((const char *)t->context.sp - t->stack < STACK / 8)
        complain_about(m, "%s: more than %d KB of local memory a thread", m->launch->kernel,
                       STACK / 8 * 7 / 1024);
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
    if (m->failed || t->cta->live > 0 || !check_farewell(m, t->cta)) return;
    Cluster *c = t->cta->cluster;
    if (--c->live > 0) return;
    m->done++;
    end_cluster(m, c);
    if (m->next_cluster < m->cluster_count) start_cluster(m, c);
}

/* Spinning threads only read, or change what they change by atomics. */
static bool check_progress(Machine *m)
{
    if (m->quiet < MOST_QUIET && m->steps < MOST_STEPS) return true;
    return complain_about(
        m,
        "%s: livelock, or too much for the simulator: it goes on and on%s; last CTA %d thread %d read or wrote at %s",
        m->launch->kernel, m->quiet < MOST_QUIET ? "" : " and writes nothing",
        m->current->cta->number, m->current->index, object_place(m->object, m->last_at));
}

static void tell_step(const Machine *m)
{
    const double fraction = written_share(m);
    if (fraction > 0) m->step(m->step_data, fraction);
}

static void run_all(Machine *m)
{
    enum { TURNS = 1 << 14 };
    m->quiet = m->steps = 0;
    uint32_t turns = 0;
    for (int i = 0; i < m->resident; i++) start_cluster(m, &m->clusters[i]);
    while (m->done < m->cluster_count && !m->failed && check_progress(m)) {
        if (m->step && ++turns % TURNS == 0) tell_step(m);
        land_some(m);
        if (m->ready_count > 0)
            run_some(m, next_thread(m));
        else if (!land_one(m))
            report_deadlock(m);
    }
}

/* ---- launches ---- */

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
        return complain_about(m, "%s has %d parameters, not %d", l->kernel, *count, l->arg_count);
    return true;
}

static bool check_limits(Machine *m, const SimLaunch *l)
{
    const uint64_t actors =
        (uint64_t)l->grid[0] * (uint64_t)l->grid[1] * (uint64_t)l->grid[2] * (uint64_t)m->actors;
    if (l->threads < 1 || l->threads > 1024)
        return complain_about(m, "%s: a CTA of %d threads", l->kernel, l->threads);
    if (l->smem_bytes > SIM_DYNAMIC_SMEM)
        return complain_about(m, "%s: %lld bytes of dynamic shared memory", l->kernel,
                              (long long)l->smem_bytes);
    if (l->cluster < 1 || (l->cluster > 16 && !l->grouped) || l->grid[0] % l->cluster != 0)
        return complain_about(m, "%s: %d CTAs in clusters of %d", l->kernel, l->grid[0],
                              l->cluster);
    if (actors + m->next_id > UINT32_MAX / 2)
        return complain_about(m, "%s: too many threads", l->kernel);
    return true;
}

static void shuffle_clusters(Machine *m)
{
    for (int i = 0; i < m->cluster_count; i++) {
        const int j = (int)random_below(m, (uint64_t)i + 1);
        m->order[i] = m->order[j];
        m->order[j] = i;
    }
}

/* Clusters that live at once. */
static int count_resident(const Machine *m, const SimLaunch *l)
{
    int64_t per_sm = THREADS_PER_SM / l->threads;
    if (per_sm > CTAS_PER_SM) per_sm = CTAS_PER_SM;
    if (per_sm > smem_per_sm / (l->smem_bytes + 1024))
        per_sm = smem_per_sm / (l->smem_bytes + 1024);
    const int64_t room = m->sms * per_sm / l->cluster;
    return room < 1 ? 1 : room < m->cluster_count ? (int)room : m->cluster_count;
}

static bool make_cta(Machine *m, int slot)
{
    const size_t threads = (size_t)m->launch->threads, blocks = m->smem_size / BLOCK_BYTES;
    Cta *cta = &m->ctas[slot];
    cta->machine = m;
    cta->slot = slot;
    cta->cluster = &m->clusters[slot / m->launch->cluster];
    cta->threads = calloc(threads, sizeof *cta->threads);
    cta->warps = calloc(threads / SIM_WARP + 1, sizeof *cta->warps);
    cta->smem = m->object->smem.at + (size_t)slot * m->smem_size;
    cta->shadow = shadow_in(m->object->cells.at + (size_t)slot * shadow_bytes(blocks, BLOCK_BYTES),
                            blocks, BLOCK_BYTES);
    if (m->launch->cluster > 1)
        cta->visits = calloc((size_t)m->launch->cluster * threads, sizeof *cta->visits);
    return cta->threads && cta->warps && (cta->visits || m->launch->cluster == 1);
}

static int resident_ctas(const Machine *m)
{
    return m->resident * m->launch->cluster;
}

/* That of the launch before, of whichever machine, where it is large enough. */
static bool make_room_of(SimRoom *room, size_t size)
{
    if (room->size >= size) return true;
    if (room->at) munmap(room->at, room->size);
    room->at = map_zeros(size);
    room->size = room->at ? size : 0;
    return room->at != NULL;
}

static bool make_rooms(Machine *m)
{
    SimObject *o = m->object;
    const size_t ctas = (size_t)resident_ctas(m);
    const bool good =
        make_room_of(&o->stacks, ctas * (size_t)m->launch->threads * STACK_STEP) &&
        make_room_of(&o->smem, ctas * m->smem_size) &&
        make_room_of(&o->cells, ctas * shadow_bytes(m->smem_size / BLOCK_BYTES, BLOCK_BYTES));
    m->stacks = o->stacks.at;
    m->stacks_size = o->stacks.size;
    return good;
}

static bool make_room(Machine *m)
{
    const size_t warps = (size_t)(m->launch->threads + SIM_WARP - 1) / SIM_WARP;
    const size_t ctas = (size_t)resident_ctas(m);
    m->clusters = calloc((size_t)m->resident, sizeof *m->clusters);
    m->ctas = calloc(ctas, sizeof *m->ctas);
    m->order = calloc((size_t)m->cluster_count, sizeof *m->order);
    m->ready = calloc(ctas * warps, sizeof *m->ready);
    m->locations = calloc(MAX_LOCATIONS, sizeof *m->locations);
    m->group = calloc((size_t)m->launch->threads, sizeof *m->group);
    bool good = m->clusters && m->ctas && m->order && m->ready && m->locations && m->group &&
                make_rooms(m) && list_variables(m);
    for (int i = 0; i < m->resident && good; i++)
        m->clusters[i].ctas = &m->ctas[i * m->launch->cluster];
    for (int i = 0; i < resident_ctas(m) && good; i++) good = make_cta(m, i);
    return good || complain_about(m, "%s: out of memory for its threads", m->launch->kernel);
}

static void free_room(Machine *m)
{
    for (int i = 0; m->clusters && i < m->resident; i++)
        for (int k = 0; k < 3; k++) clock_clear(&m->clusters[i].clocks[k]);
    for (int i = 0; m->ctas && i < resident_ctas(m); i++) {
        Cta *cta = &m->ctas[i];
        if (cta->threads) end_cta(m, cta);
        free(cta->threads);
        free(cta->warps);
        free(cta->visits);
    }
    forget_copies(m);
    if (m->stacks) fiber_forget(m->stacks, m->stacks_size);
    if (m->locations) forget_locations(m);
    free(m->locations);
    free(m->variables);
    free(m->group);
    free(m->clusters);
    free(m->ctas);
    free(m->order);
    free(m->ready);
    m->clusters = NULL, m->ctas = NULL, m->order = NULL, m->ready = NULL;
    m->locations = NULL, m->variables = NULL, m->group = NULL;
    m->ready_count = 0;
    m->current = NULL;
    m->foremost = NULL;
    m->next = m->after = NULL;
}

bool machine_launch(Machine *m, const SimLaunch *l)
{
    m->launch = l;
    m->actors = l->threads + TX_BARRIERS;
    if (m->failed || !find_kernel(m, l) || !check_limits(m, l)) return false;
    const int ctas = l->grid[0] * l->grid[1] * l->grid[2];
    if (ctas == 0) return true;
    m->cluster_count = ctas / l->cluster;
    m->first_id = m->next_id;
    m->next_id += (uint32_t)ctas * (uint32_t)m->actors;
    m->resident = count_resident(m, l);
    m->next_cluster = m->done = 0;
    m->smem_size = m->object->shared_size;
    for (int i = 0; i < m->object->shared_count; i++)
        if (m->object->shared[i].size == SIM_DYNAMIC_SMEM)
            m->dynamic_at = m->object->shared[i].offset;
    if (make_room(m)) {
        shuffle_clusters(m);
        run_all(m);
        if (clocks_ran_out() && !m->failed) complain_about(m, "out of memory");
    }
    free_room(m);
    return !m->failed;
}
