/* transactions.c: mbarriers and the bulk copies that they count (PTX ISA, mbarrier and
 * cp.async.bulk). A copy lands at any time after it was started; its bytes are no
 * thread's but a copy engine's, one a barrier, and only a wait for the barrier's phase
 * orders them before a thread. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { TX_BYTES = 8, MOST_BYTES = (1 << 20) - 1 };

static size_t place_in(Machine *m, const void *barrier, uint32_t at)
{
    const size_t place = (size_t)((const char *)barrier - m->current->cta->smem);
    if (place >= m->smem_size)
        fault(m, at, "a transaction barrier that is not in the CTA's shared memory");
    return place;
}

static TxBarrier *look_up(Cta *cta, size_t place)
{
    for (int i = 0; i < cta->tx_count; i++)
        if (cta->tx[i].offset == place) return &cta->tx[i];
    return NULL;
}

/* The barrier of a CTA at an address in this one's shared memory; it must have been made
 * for this thread to see. */
static TxBarrier *find_barrier(Machine *m, Cta *cta, const void *barrier, uint32_t at)
{
    char where[128], who[128];
    const size_t place = place_in(m, barrier, at);
    TxBarrier *b = look_up(cta, place);
    if (b && happened_before(m, m->current, &b->made)) return b;
    print_shared(m, place, where, sizeof where);
    if (!b) fault(m, at, "the transaction barrier at %s is used before its init", where);
    print_thread(m, b->made.by, who, sizeof who);
    fault(m, at,
          "the transaction barrier at %s is used with nothing between that and its init by "
          "%s at %s that orders the two",
          where, who, object_place(m->object, b->made.at));
}

static void mark(Cta *cta, size_t place, size_t size, uint32_t flag)
{
    for (size_t at = place, bytes; at < place + size; at += bytes)
        shadow_grain(&cta->shadow, at, place + size, &bytes)->flags |= flag;
}

void tx_init(void *machine, void *barrier, int count, void *at)
{
    Machine *m = machine;
    Cta *cta = m->current->cta;
    const uint32_t here = place_of(m, at);
    const size_t place = place_in(m, barrier, here);
    Thread *t = m->current;
    if (count < 1 || count > MOST_BYTES)
        fault(m, here, "a transaction barrier of %d arrivals", count);
    if (look_up(cta, place)) fault(m, here, "init of a transaction barrier in use");
    if (cta->tx_count == TX_BARRIERS)
        fault(m, here, "more than %d transaction barriers", TX_BARRIERS);
    touch_memory(m, barrier, TX_BYTES, SIM_WRITE, 1, at);
    mark(cta, place, TX_BYTES, CELL_BARRIER);
    cta->tx[cta->tx_count++] = (TxBarrier){
        .offset = place, .count = count, .pending = count, .made = {t->id, t->epoch, here}};
    t->made = t->epoch++;
}

/* ---- phases ---- */

static bool has_passed(const TxBarrier *b, int parity)
{
    return (b->phase & 1) != (uint32_t)parity;
}

static void finish_phase(Machine *m, Cta *cta, TxBarrier *b)
{
    if (b->pending > 0 || b->bytes != 0) return;
    clock_join(&b->done, &b->gathering, m->actors);
    clock_clear(&b->gathering);
    b->phase++;
    b->pending = b->count;
    for (int i = 0; i < m->launch->threads; i++) {
        Thread *t = &cta->threads[i];
        if (t->state != THREAD_WAITING || t->wait.kind != WAIT_TX) continue;
        if (&cta->tx[t->wait.by] != b || !has_passed(b, t->wait.width)) continue;
        clock_join(&t->clock, &b->done, m->actors);
        wake(m, t);
    }
}

void tx_arrive(void *machine, void *barrier, int64_t bytes, void *at)
{
    Machine *m = machine;
    const uint32_t here = place_of(m, at);
    TxBarrier *b = find_barrier(m, m->current->cta, barrier, here);
    if (bytes < 0 || bytes > MOST_BYTES)
        fault(m, here, "a transaction barrier cannot expect %lld bytes", (long long)bytes);
    if (b->pending == 0)
        fault(m, here, "more than %d arrivals in phase %u of a transaction barrier", b->count,
              b->phase);
    b->bytes += bytes;
    b->pending--;
    release(m, m->current, &b->gathering);
    finish_phase(m, m->current->cta, b);
    switch_away(m);
}

void tx_wait(void *machine, void *barrier, int parity, void *at)
{
    Machine *m = machine;
    const uint32_t here = place_of(m, at);
    Cta *cta = m->current->cta;
    const TxBarrier *b = find_barrier(m, m->current->cta, barrier, here);
    if (parity != 0 && parity != 1)
        fault(m, here, "a transaction barrier's parity is 0 or 1, not %d", parity);
    switch_away(m);
    if (has_passed(b, parity))
        clock_join(&m->current->clock, &b->done, m->actors);
    else
        wait_for(m, (Wait){.kind = WAIT_TX, .at = here, .by = (int)(b - cta->tx), .width = parity});
}

void forget_transactions(Cta *cta)
{
    for (int i = 0; i < cta->tx_count; i++) {
        clock_clear(&cta->tx[i].gathering);
        clock_clear(&cta->tx[i].done);
    }
    cta->tx_count = 0;
}

/* ---- bulk copies ---- */

static void check_bulk(Machine *m, const char *to, const void *from, int64_t size, uint32_t at)
{
    const size_t place = (size_t)(to - m->current->cta->smem);
    if (size <= 0 || size % 16 != 0)
        fault(m, at, "a bulk copy of %lld bytes, which is no multiple of 16", (long long)size);
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        fault(m, at,
              "misaligned: a bulk copy %s an address that is %zu past a multiple "
              "of 16",
              (uintptr_t)to % 16 ? "to" : "from",
              (size_t)((uintptr_t)to % 16 ? (uintptr_t)to % 16 : (uintptr_t)from % 16));
    if (place >= m->smem_size)
        fault(m, at, "a bulk copy goes to memory that is not the CTA's shared memory");
}

/* fence.proxy.async: plain writes and bulk copies to one place need it between them. */
void async_fence(void *machine)
{
    const Machine *m = machine;
    m->current->fenced = m->current->epoch++;
}

static void check_fence(Machine *m, const Cta *cta, size_t place, size_t bytes, uint32_t at)
{
    const size_t room = shared_room(m, place); /* beyond it is another fault */
    for (size_t i = 0, alike; i < bytes && i < room; i += alike) {
        const Touch *write = &shadow_look(&cta->shadow, place + i, &alike)->write;
        const uint32_t index = write->by - cta->threads[0].id;
        if (write->by < m->first_id || index >= (uint32_t)m->launch->threads) continue;
        if (cta->threads[index].fenced >= write->epoch) continue;
        fault(m, at, "a bulk copy to where thread %u wrote at %s, without async_fence between",
              index, object_place(m->object, write->at));
    }
}

/* The copy engine of a barrier, as an actor. */
static uint32_t engine_of(const Machine *m, const Cta *cta, int barrier)
{
    return cta->threads[0].id + (uint32_t)(m->launch->threads + barrier);
}

static BulkCopy *add_bulk(Machine *m, size_t size)
{
    if (m->bulk_count == m->bulk_capacity) {
        const int capacity = m->bulk_capacity ? 2 * m->bulk_capacity : 16;
        BulkCopy *grown = realloc(m->bulk, (size_t)capacity * sizeof *grown);
        if (!grown) fault_out_of_memory(m);
        m->bulk = grown;
        m->bulk_capacity = capacity;
    }
    void *before = malloc(size);
    if (!before) fault_out_of_memory(m);
    BulkCopy *copy = &m->bulk[m->bulk_count++];
    *copy = (BulkCopy){.before = before, .size = size};
    return copy;
}

/* Until it lands nobody may touch the place it goes to. */
static void start_landing(Cta *cta, TxBarrier *b, BulkCopy *copy, char *to, uint32_t at)
{
    b->copied = b->phase + 1;
    b->copied_at = at;
    copy->cta = cta;
    copy->barrier = (int)(b - cta->tx);
    copy->to = to;
    copy->at = at;
    memset(to, 0xff, copy->size);
    mark(cta, (size_t)(to - cta->smem), copy->size, CELL_PENDING);
}

void bulk_copy(void *machine, void *to, const void *from, int64_t size, void *barrier, void *at)
{
    Machine *m = machine;
    Cta *cta = m->current->cta;
    const uint32_t here = place_of(m, at);
    TxBarrier *b = find_barrier(m, cta, barrier, here);
    const size_t bytes = (size_t)size;
    check_bulk(m, to, from, size, here);
    check_fence(m, cta, (size_t)((char *)to - cta->smem), bytes, here);
    touch_blocks(m, from, bytes, at);
    touch_memory(m, to, bytes, SIM_WRITE, 0, at);
    BulkCopy *copy = add_bulk(m, bytes);
    copy_blocks(m, copy->before, from, bytes);
    copy->from = from;
    start_landing(cta, b, copy, to, here);
    note_source(m, from, bytes, (Touch){engine_of(m, cta, copy->barrier), b->copied, here});
    switch_away(m);
}

/* What the sender knows goes along: the receiver may then take for granted that the
 * sender has read what it read. (Its other stores to shared memory may come later on a
 * GPU; that they do not matter is not checked.) */
void send_value(void *machine, void *to, const void *value, size_t size, void *barrier, int rank,
                void *at)
{
    Machine *m = machine;
    Thread *t = m->current;
    const uint32_t here = place_of(m, at);
    char *there = find_peer(m, to, rank, at);
    Cta *cta = peer_of(t->cta, rank);
    if (cta != t->cta) visit_peer(m, cta, here);
    TxBarrier *b = find_barrier(m, cta, barrier, here);
    touch_memory(m, there, size, SIM_WRITE, 1, at);
    BulkCopy *copy = add_bulk(m, size);
    memcpy(copy->before, value, size);
    clock_join(&copy->known, &t->cta->base, m->actors);
    release(m, t, &copy->known);
    start_landing(cta, b, copy, there, here);
    switch_away(m);
}

static void land(Machine *m, const BulkCopy *copy)
{
    Cta *cta = copy->cta;
    TxBarrier *b = &cta->tx[copy->barrier];
    const int engine = m->launch->threads + copy->barrier;
    const uint32_t by = engine_of(m, cta, copy->barrier);
    const size_t first = (size_t)(copy->to - cta->smem), end = first + copy->size;
    b->copied = b->phase + 1;
    for (size_t at = first, bytes; at < end; at += bytes) {
        Cell *cell = shadow_grain(&cta->shadow, at, end, &bytes);
        cell->flags &= ~(uint32_t)CELL_PENDING;
        cell->write = (Touch){by, b->copied, copy->at};
    }
    memcpy(copy->to, copy->before, copy->size);
    clock_join(&b->gathering, &copy->known, m->actors);
    clock_raise(&b->gathering, m->actors, cta->number, engine, b->copied);
    b->bytes -= (int64_t)copy->size;
    finish_phase(m, cta, b);
}

bool land_one(Machine *m)
{
    if (m->bulk_count == 0) return false;
    const uint64_t i = random_below(m, (uint64_t)m->bulk_count);
    BulkCopy copy = m->bulk[i];
    m->bulk[i] = m->bulk[--m->bulk_count];
    m->quiet = 0;
    if (copy.from && !same_blocks(m, copy.before, copy.from, copy.size))
        complain_about(m,
                       "%s, CTA %d: what the bulk copy at %s reads was changed before it "
                       "landed",
                       m->launch->kernel, copy.cta->number, object_place(m->object, copy.at));
    else
        land(m, &copy);
    clock_clear(&copy.known);
    free(copy.before);
    return true;
}

void land_some(Machine *m)
{
    if (m->bulk_count > 0 && random_below(m, m->laziness) == 0) land_one(m);
}

void forget_copies(Machine *m)
{
    for (int i = 0; i < m->bulk_count; i++) {
        clock_clear(&m->bulk[i].known);
        free(m->bulk[i].before);
    }
    free(m->bulk);
    m->bulk = NULL;
    m->bulk_count = m->bulk_capacity = 0;
}

static bool has_landed(const Machine *m, const Cta *cta)
{
    for (int i = 0; i < m->bulk_count; i++)
        if (m->bulk[i].cta == cta) return false;
    return true;
}

bool check_landings(Machine *m, const Cta *cta)
{
    const bool landed = has_landed(m, cta);
    for (int i = 0; i < cta->tx_count; i++) {
        const TxBarrier *b = &cta->tx[i];
        const Touch landing = {engine_of(m, cta, i), b->copied, 0};
        if (b->copied == 0 || (landed && happened_before(m, &cta->threads[0], &landing))) continue;
        return complain_about(m, "%s, CTA %d exits without waiting for the copy at %s",
                              m->launch->kernel, cta->number,
                              object_place(m->object, b->copied_at));
    }
    return true;
}
