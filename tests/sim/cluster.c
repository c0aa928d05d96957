/* cluster.c: CTAs of a cluster: their barrier, and shared memory of one that another uses
 * (CUDA C++ Programming Guide, distributed shared memory). Such memory may be used while
 * its CTA lives: after something that says it has begun, and before something that it
 * knows of when it ends. */
#include "state.h"

#include <string.h>

void *find_peer(void *machine, void *address, int rank, void *at)
{
    Machine *m = machine;
    const Cta *cta = m->current->cta;
    const size_t place = (size_t)((char *)address - cta->smem);
    if (rank < 0 || rank >= m->launch->cluster)
        fault(m, place_of(m, at), "peer %d of a cluster of %d CTAs", rank, m->launch->cluster);
    if (place >= m->smem_size)
        fault(m, place_of(m, at), "peer of memory that is not the CTA's shared memory");
    return peer_of(cta, rank)->smem + place;
}

/* ---- the barrier ---- */

/* barrier.cluster.arrive.aligned: a warp executes it as one. */
static void check_warp(Machine *m, const Thread *t)
{
    for (int lane = 0; lane < SIM_WARP; lane++) {
        if (t->index / SIM_WARP * SIM_WARP + lane >= m->launch->threads) break;
        const Thread *other = lane_of(t, lane);
        if (other->arrivals != t->arrivals || other->arrived_at == t->arrived_at) continue;
        fault(m, t->arrived_at,
              "barrier divergence: lane %d of the same warp arrived at the cluster's "
              "barrier elsewhere, at %s",
              lane, object_place(m->object, other->arrived_at));
    }
}

/* The CTA's base is told once a phase, unless it grew meanwhile. */
static void tell_base(const Machine *m, Cta *cta, Clock *clock)
{
    const uint32_t phase = cta->cluster->phase + 1;
    if (cta->told_phase == phase && cta->told_changes == cta->changes) return;
    cta->told_phase = phase;
    cta->told_changes = cta->changes;
    clock_join(clock, &cta->base, m->actors);
}

static int live_threads(const Machine *m, const Cluster *c)
{
    int live = 0;
    for (int i = 0; i < m->launch->cluster; i++) live += c->ctas[i].live;
    return live;
}

static void wake_cluster(Machine *m, const Cluster *c)
{
    for (int i = 0; i < m->launch->cluster; i++)
        for (int k = 0; k < m->launch->threads; k++) {
            Thread *t = &c->ctas[i].threads[k];
            if (t->state == THREAD_WAITING && t->wait.kind == WAIT_CLUSTER) wake(m, t);
        }
}

/* A phase's clock holds those before it. */
void cluster_shrink(Machine *m, Cluster *c)
{
    if (c->arrived == 0 || c->arrived < live_threads(m, c)) return;
    clock_join(&c->clocks[c->phase % 3], &c->clocks[(c->phase + 2) % 3], m->actors);
    clock_clear(&c->clocks[(c->phase + 1) % 3]);
    c->phase++;
    c->arrived = 0;
    wake_cluster(m, c);
}

/* Relaxed, it tells the others that the CTA has begun and what transaction barriers it has made,
 * whose fence is theirs alone (and with them, more than on a GPU, what their maker had done
 * before). */
void cluster_arrive(void *machine, int relaxed, void *at)
{
    Machine *m = machine;
    Thread *t = m->current;
    Cluster *c = t->cta->cluster;
    Clock *clock = &c->clocks[c->phase % 3];
    if (t->arrivals > t->waits)
        fault(m, place_of(m, at),
              "cluster_arrive twice without a cluster_wait between; the first at %s",
              object_place(m->object, t->arrived_at));
    t->arrivals++;
    t->arrived_at = place_of(m, at);
    check_warp(m, t);
    tell_base(m, t->cta, clock);
    if (!relaxed) clock_join(clock, &t->clock, m->actors);
    clock_raise(clock, m->actors, t->cta->number, t->index, relaxed ? t->made : t->epoch++);
    c->arrived++;
    cluster_shrink(m, c);
    switch_away(m);
}

void cluster_wait(void *machine, void *at)
{
    Machine *m = machine;
    Thread *t = m->current;
    const Cluster *c = t->cta->cluster;
    const uint32_t place = place_of(m, at);
    if (t->arrivals == t->waits) fault(m, place, "cluster_wait without a cluster_arrive before it");
    if (c->phase < t->arrivals) wait_for(m, (Wait){.kind = WAIT_CLUSTER, .at = place});
    t->waits++;
    t->known = &c->clocks[(t->waits - 1) % 3];
}

void cluster_exit(Machine *m, const Thread *t)
{
    if (t->arrivals > t->waits)
        fault(m, t->arrived_at, "the thread exits between cluster_arrive and cluster_wait");
}

/* ---- shared memory of another CTA ---- */

static bool has_block(const Clock *clock, int cta)
{
    for (int i = 0; clock && i < clock->count; i++)
        if (clock->blocks[i].cta == cta) return true;
    return false;
}

void visit_peer(Machine *m, Cta *peer, uint32_t at)
{
    const Thread *t = m->current;
    const int rank = (int)(t->cta - t->cta->cluster->ctas);
    if (peer->live == 0)
        fault(m, at, "access to shared memory of CTA %d, which has exited", peer->number);
    if (!has_block(&t->cta->base, peer->number) && !has_block(&t->clock, peer->number) &&
        !has_block(t->known, peer->number))
        fault(m, at,
              "access to shared memory of CTA %d, which may not have begun: no "
              "cluster_wait before it",
              peer->number);
    peer->visits[rank * m->launch->threads + t->index] = (Touch){t->id, t->epoch, at};
}

/* All that the CTA's threads know, in its base: it has ended. */
static void gather_knowledge(const Machine *m, Cta *cta)
{
    const Clock *last = NULL;
    for (int i = 0; i < m->launch->threads; i++) {
        const Thread *t = &cta->threads[i];
        clock_join(&cta->base, &t->clock, m->actors);
        if (t->known && t->known != last) clock_join(&cta->base, t->known, m->actors);
        last = t->known;
    }
}

static bool check_visits(Machine *m, const Cta *cta)
{
    const Touch *visits = cta->visits;
    char who[128];
    for (int i = 0; visits && i < m->launch->cluster * m->launch->threads; i++) {
        if (!visits[i].by || happened_before(m, &cta->threads[0], &visits[i])) continue;
        print_thread(m, visits[i].by, who, sizeof who);
        return complain_about(
            m,
            "%s, %s, at %s: access to shared memory of CTA %d, which may have exited: "
            "nothing makes it wait for the access",
            m->launch->kernel, who, object_place(m->object, visits[i].at), cta->number);
    }
    return true;
}

bool check_farewell(Machine *m, Cta *cta)
{
    if (!cta->visits && cta->tx_count == 0) return true;
    gather_knowledge(m, cta);
    return check_visits(m, cta) && check_landings(m, cta);
}
