/* sync.c: what threads do together: shuffles and votes of a warp, barriers, fences and
 * atomics. Only barriers and fences order memory; a shuffle does not (CUDA C++
 * Programming Guide, warp shuffle functions). */
#include "state.h"

#include <string.h>

/* What spins goes on for this much less. */
enum { ATOMIC_QUIET = 256 };

static bool exists(const Thread *t, int lane)
{
    return t->index / SIM_WARP * SIM_WARP + lane < t->cta->machine->launch->threads;
}

/* ---- clocks ---- */

void release(const Machine *m, Thread *t, Clock *into)
{
    clock_join(into, &t->clock, m->actors);
    if (t->known) clock_join(into, t->known, m->actors);
    clock_raise(into, m->actors, t->cta->number, t->index, t->epoch++);
}

static void join_group(const Machine *m, Thread *const *group, int count, Clock *known)
{
    for (int i = 0; i < count; i++) release(m, group[i], known);
    for (int i = 0; i < count; i++) clock_join(&group[i]->clock, known, m->actors);
    clock_clear(known);
}

/* All of a CTA: what they learn goes into the base, and the threads' own clocks are empty
 * again. */
static void join_cta(const Machine *m, Cta *cta, Clock *known)
{
    const Clock *last = NULL;
    clock_join(&cta->base, known, m->actors);
    clock_clear(known);
    for (int i = 0; i < m->launch->threads; i++) {
        Thread *t = &cta->threads[i];
        const Clock *cluster = t->known;
        if (cluster == last) t->known = NULL; /* it is in the base already */
        release(m, t, &cta->base);
        clock_clear(&t->clock);
        t->known = NULL;
        last = cluster;
    }
    cta->changes++;
}

/* ---- within a warp ---- */

static bool meets(const Thread *t, const Wait *mine)
{
    return t->state == THREAD_WAITING && t->wait.kind == mine->kind && t->wait.mask == mine->mask;
}

/* Are all other lanes of the mask there? */
static bool warp_complete(Machine *m, const Wait *mine)
{
    const Thread *t = m->current;
    const Warp *w = warp_of(t);
    const unsigned own = 1U << t->index % SIM_WARP;
    bool complete = true;
    if (!(mine->mask & own))
        fault(m, mine->at, "the mask 0x%08x lacks the thread's own lane", mine->mask);
    if (!(w->exited & mine->mask) && w->ready & mine->mask & ~own) return false;
    for (int lane = 0; lane < SIM_WARP; lane++) {
        if (!(mine->mask >> lane & 1) || !exists(t, lane)) continue;
        const Thread *other = lane_of(t, lane);
        if (other->state == THREAD_DONE)
            fault(m, mine->at, "warp divergence: the mask 0x%08x names lane %d, which has exited",
                  mine->mask, lane);
        if (other != t && !meets(other, mine)) complete = false;
    }
    return complete;
}

static int shuffle_source(const Wait *w, int lane)
{
    const int first = lane & ~(w->width - 1), last = first + w->width - 1;
    int from = lane;
    switch (w->shuffle) {
    case SIM_SHUFFLE_XOR: from = lane ^ w->by; break;
    case SIM_SHUFFLE_INDEX: return first + (w->by & (w->width - 1));
    case SIM_SHUFFLE_DOWN: from = lane + w->by; break;
    case SIM_SHUFFLE_UP: return lane - w->by < first ? lane : lane - w->by;
    }
    return from > last ? lane : from;
}

/* A lane that the mask does not name has nothing to give: NaN. */
static void finish_shuffle(const Thread *t, unsigned mask)
{
    uint64_t given[SIM_WARP];
    for (int lane = 0; lane < SIM_WARP; lane++)
        given[lane] =
            mask >> lane & 1 && exists(t, lane) ? lane_of(t, lane)->wait.value : UINT64_MAX;
    for (int lane = 0; lane < SIM_WARP; lane++) {
        if (!(mask >> lane & 1) || !exists(t, lane)) continue;
        Wait *w = &lane_of(t, lane)->wait;
        w->value = given[shuffle_source(w, lane)];
    }
}

static void finish_ballot(const Thread *t, unsigned mask)
{
    uint64_t votes = 0;
    for (int lane = 0; lane < SIM_WARP; lane++)
        if (mask >> lane & 1 && exists(t, lane) && lane_of(t, lane)->wait.value)
            votes |= 1U << lane;
    for (int lane = 0; lane < SIM_WARP; lane++)
        if (mask >> lane & 1 && exists(t, lane)) lane_of(t, lane)->wait.value = votes;
}

static void finish_warp_barrier(const Machine *m, const Thread *t, unsigned mask)
{
    Thread *group[SIM_WARP];
    Clock known = {0};
    int count = 0;
    for (int lane = 0; lane < SIM_WARP; lane++)
        if (mask >> lane & 1 && exists(t, lane)) group[count++] = lane_of(t, lane);
    join_group(m, group, count, &known);
}

static uint64_t warp_operation(Machine *m, Wait wait)
{
    Thread *t = m->current;
    if (!warp_complete(m, &wait)) {
        wait_for(m, wait);
        return t->wait.value;
    }
    t->wait = wait;
    switch (wait.kind) {
    case WAIT_SHUFFLE: finish_shuffle(t, wait.mask); break;
    case WAIT_BALLOT: finish_ballot(t, wait.mask); break;
    default: finish_warp_barrier(m, t, wait.mask); break;
    }
    for (int lane = 0; lane < SIM_WARP; lane++)
        if (wait.mask >> lane & 1 && exists(t, lane) && lane_of(t, lane) != t)
            wake(m, lane_of(t, lane));
    switch_away(m);
    return t->wait.value;
}

static uint64_t do_shuffle(void *machine, SimShuffle kind, unsigned mask, uint64_t value, int by,
                           int width, void *at)
{
    Machine *m = machine;
    const uint32_t place = place_of(m, at);
    if (width < 1 || width > SIM_WARP || width & (width - 1) || by < 0)
        fault(m, place, "shuffle by %d within %d lanes", by, width);
    return warp_operation(m, (Wait){.kind = WAIT_SHUFFLE,
                                    .at = place,
                                    .mask = mask,
                                    .shuffle = kind,
                                    .by = by,
                                    .width = width,
                                    .value = value});
}

static unsigned do_ballot(void *machine, unsigned mask, int predicate, void *at)
{
    Machine *m = machine;
    return (unsigned)warp_operation(
        m,
        (Wait){.kind = WAIT_BALLOT, .at = place_of(m, at), .mask = mask, .value = predicate != 0});
}

static void do_warp_barrier(void *machine, unsigned mask, void *at)
{
    Machine *m = machine;
    warp_operation(m, (Wait){.kind = WAIT_WARP_BARRIER, .at = place_of(m, at), .mask = mask});
}

/* ---- barriers of a CTA ---- */

static bool waits_at(const Thread *t, int id)
{
    return t->state == THREAD_WAITING && t->wait.kind == WAIT_BARRIER && t->wait.by == id;
}

/* The host compiler may have made two copies of one call: what counts is the source. */
static bool same_place(const Machine *m, uint32_t a, uint32_t b)
{
    return a == b || strcmp(object_place(m->object, a), object_place(m->object, b)) == 0;
}

/* bar.sync is executed by a warp as one (PTX ISA, bar: the .aligned form). */
static void check_divergence(Machine *m, int id, uint32_t place)
{
    const Thread *t = m->current;
    for (unsigned lanes = warp_of(t)->waiting; lanes; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        if (!waits_at(lane_of(t, lane), id)) continue;
        const uint32_t other = lane_of(t, lane)->wait.at;
        if (!same_place(m, other, place))
            fault(m, place,
                  "barrier divergence: lane %d of the same warp is at another call of "
                  "barrier %d, %s",
                  lane, id, object_place(m->object, other));
    }
}

static void check_barrier(Machine *m, int id, int count, uint32_t place)
{
    const Cta *cta = m->current->cta;
    if (id < 0 || id >= BARRIERS || count < 1 || count > m->launch->threads)
        fault(m, place, "barrier %d for %d threads", id, count);
    const Barrier *b = &cta->barriers[id];
    if (b->arrived > 0 && b->expected != count)
        fault(m, place, "barrier %d for %d threads, where others said %d", id, count, b->expected);
    if (count == m->launch->threads && cta->live < count)
        fault(m, place,
              "barrier divergence: barrier %d is for all threads of the CTA, of which %d "
              "have exited",
              id, count - cta->live);
    check_divergence(m, id, place);
}

static void finish_barrier(Machine *m, int id, bool joins)
{
    Cta *cta = m->current->cta;
    Barrier *b = &cta->barriers[id];
    Thread **group = m->group; /* not on a thread's own stack */
    int count = 0;
    for (int i = 0; i < m->launch->threads; i++) {
        Thread *t = &cta->threads[i];
        if (waits_at(t, id) || (joins && t == m->current)) group[count++] = t;
    }
    if (count == m->launch->threads)
        join_cta(m, cta, &b->clock);
    else
        join_group(m, group, count, &b->clock);
    for (int i = 0; i < count; i++)
        if (group[i] != m->current) wake(m, group[i]);
    b->arrived = 0;
}

static void do_named_barrier(void *machine, int id, int count, int wait, void *at)
{
    Machine *m = machine;
    const uint32_t place = place_of(m, at);
    check_barrier(m, id, count, place);
    Barrier *b = &m->current->cta->barriers[id];
    b->expected = count;
    if (!wait) release(m, m->current, &b->clock);
    if (++b->arrived == count) {
        finish_barrier(m, id, wait);
        switch_away(m);
    } else if (wait) {
        wait_for(m, (Wait){.kind = WAIT_BARRIER, .at = place, .by = id, .width = count});
    }
}

static void do_block_barrier(void *machine, void *at)
{
    const Machine *m = machine;
    do_named_barrier(machine, 0, m->launch->threads, 1, at);
}

/* Whether threads wait at a barrier for the whole CTA. */
static bool is_awaited(const Machine *m, const Cta *cta)
{
    for (int i = 0; i < BARRIERS; i++)
        if (cta->barriers[i].arrived > 0 && cta->barriers[i].expected == m->launch->threads)
            return true;
    return false;
}

/* A thread that ends without having asked for registers, where others of its warpgroup have. */
static void check_registers(Machine *m, const Thread *t)
{
    const int first = t->index / SIM_WARP / 4 * 4 * SIM_WARP;
    for (int i = first; !t->registers && i < first + 4 * SIM_WARP && i < m->launch->threads; i++)
        if (t->cta->threads[i].registers)
            fault(m, 0, "the thread ends without asking for registers, as thread %d did", i);
}

void thread_exit(Machine *m, Thread *t)
{
    const char *where;
    check_registers(m, t);
    cluster_exit(m, t);
    if (!warp_of(t)->waiting && !is_awaited(m, t->cta)) return;
    for (int i = 0; i < m->launch->threads; i++) {
        const Thread *other = &t->cta->threads[i];
        if (other->state != THREAD_WAITING) continue;
        const Wait *w = &other->wait;
        if (w->kind == WAIT_CLUSTER || w->kind == WAIT_TX) continue;
        const bool named = w->kind == WAIT_BARRIER ? w->width == m->launch->threads
                                                   : i / SIM_WARP == t->index / SIM_WARP &&
                                                         w->mask >> t->index % SIM_WARP & 1;
        if (!named) continue;
        where = object_place(m->object, w->at);
        fault(m, 0, "%s: the thread exits while thread %d of the CTA waits for it at %s",
              w->kind == WAIT_BARRIER ? "barrier divergence" : "warp divergence", i, where);
    }
}

/* ---- registers ---- */

enum { WARPGROUP = 4 * SIM_WARP };

/* All warps of a warpgroup ask for as many (PTX ISA, setmaxnreg). Those that have not asked yet may
 * still do so; those that have ended cannot. */
static void ask_for_registers(void *machine, int count, void *at)
{
    Machine *m = machine;
    Thread *t = m->current;
    const int first = t->index / WARPGROUP * WARPGROUP;
    if (count < 24 || count > 256 || count % 8)
        fault(m, place_of(m, at), "%d registers: a multiple of 8 from 24 to 256", count);
    if (first + WARPGROUP > m->launch->threads)
        fault(m, place_of(m, at), "registers of a warpgroup that has fewer than four warps");
    t->registers = count;
    for (int i = first; i < first + WARPGROUP; i++) {
        const Thread *other = &t->cta->threads[i];
        if (other->registers ? other->registers != count : other->state == THREAD_DONE)
            fault(m, place_of(m, at), "%d registers, where thread %d of the warpgroup %s", count, i,
                  other->registers ? "asked for others" : "has ended");
    }
}

/* ---- fences and atomics ---- */

/* As in C++: a fence before an atomic releases, a fence behind one acquires. */
static void do_fence(void *machine)
{
    Machine *m = machine;
    Thread *t = m->current;
    clock_join(&t->clock, &t->acquired, m->actors);
    clock_clear(&t->acquired);
    clock_join(&t->released, &t->cta->base, m->actors);
    release(m, t, &t->released);
}

static Location *find_location(Machine *m, uintptr_t address)
{
    size_t i = address / 4 % MAX_LOCATIONS;
    while (m->locations[i].address && m->locations[i].address != address)
        i = (i + 1) % MAX_LOCATIONS;
    if (!m->locations[i].address) {
        m->locations[i].address = address;
        m->location_count++;
    }
    return &m->locations[i];
}

void forget_locations(Machine *m)
{
    for (int i = 0; i < MAX_LOCATIONS; i++) clock_clear(&m->locations[i].clock);
    m->location_count = 0;
}

static void do_atomic(void *machine, void *address, size_t size, void *at)
{
    Machine *m = machine;
    m->quiet += ATOMIC_QUIET;
    switch_away(m);
    touch_memory(m, address, size, SIM_ATOMIC, 1, at);
    if (m->location_count == MAX_LOCATIONS / 2)
        fault(m, place_of(m, at), "atomics at more than %d addresses", MAX_LOCATIONS / 2);
    Location *l = find_location(m, (uintptr_t)address);
    clock_join(&l->clock, &m->current->released, m->actors);
    clock_join(&m->current->acquired, &l->clock, m->actors);
}

/* A warp that looks for what others write lets all go first, others that look too. */
static void do_relaxed(void *machine, void *address, size_t size, int writes, void *at)
{
    Machine *m = machine;
    if (!writes) {
        if (m->last_turn == 0) m->last_turn = LOOKS;
        warp_of(m->current)->priority = --m->last_turn;
        m->foremost = NULL;
    }
    m->quiet = writes ? 0 : m->quiet + ATOMIC_QUIET;
    switch_away(m);
    touch_memory(m, address, size, SIM_ATOMIC, 1, at);
}

static void wait_for_previous(void *machine)
{
    const Machine *m = machine;
    m->current->waited = true;
}

static void do_yield(void *machine)
{
    switch_away(machine);
}

static void do_trap(void *machine, const char *what, void *at)
{
    Machine *m = machine;
    fault(m, place_of(m, at), "%s", what);
}

const SimApi sim_api = {
    .access = touch_memory,
    .shuffle = do_shuffle,
    .ballot = do_ballot,
    .warp_barrier = do_warp_barrier,
    .block_barrier = do_block_barrier,
    .named_barrier = do_named_barrier,
    .fence = do_fence,
    .atomic = do_atomic,
    .relaxed = do_relaxed,
    .yield = do_yield,
    .registers = ask_for_registers,
    .trap = do_trap,
    .begin_copy = begin_copy,
    .begin_block = begin_block,
    .commit_copies = commit_copies,
    .wait_for_copies = wait_for_copies,
    .peer = find_peer,
    .cluster_arrive = cluster_arrive,
    .cluster_wait = cluster_wait,
    .tx_init = tx_init,
    .tx_arrive = tx_arrive,
    .tx_wait = tx_wait,
    .bulk_copy = bulk_copy,
    .send = send_value,
    .async_fence = async_fence,
    .wait_for_previous = wait_for_previous,
};
