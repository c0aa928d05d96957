/* report.c: faults as text: who, where in the source, and what; and a deadlock with all
 * that wait. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The instruction before the return address, from the object's beginning. */
uint32_t place_of(const Machine *m, const void *at)
{
    return (uint32_t)((uintptr_t)at - 1 - m->object->begin);
}

void print_thread(const Machine *m, uint32_t id, char *text, size_t size)
{
    const int index = (int)(id - m->first_id), actor = index % m->actors;
    if (actor < m->launch->threads)
        snprintf(text, size, "CTA %d thread %d", index / m->actors, actor);
    else
        snprintf(text, size, "a bulk copy of CTA %d", index / m->actors);
}

static void append(Machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void vappend(Machine *m, const char *format, va_list args)
{
    const size_t used = strlen(m->message);
    if (used + 1 < m->message_size && !m->exhausted)
        vsnprintf(m->message + used, m->message_size - used, format, args);
}
static void append(Machine *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vappend(m, format, args);
    va_end(args);
}

static void begin_message(Machine *m)
{
    m->failed = true;
    m->exhausted |= clocks_ran_out();
    if (m->exhausted)
        snprintf(m->message, m->message_size, "out of memory");
    else
        snprintf(m->message, m->message_size, "seed %llu: ", (unsigned long long)m->seed);
}

bool complain_about(Machine *m, const char *format, ...)
{
    va_list args;
    begin_message(m);
    va_start(args, format);
    vappend(m, format, args);
    va_end(args);
    return false;
}

void fault_out_of_memory(Machine *m)
{
    m->exhausted = true;
    begin_message(m);
    for (;;) fiber_switch(&m->current->context, &m->context);
}

void fault(Machine *m, uint32_t place, const char *format, ...)
{
    char who[128];
    const char *where = "its end";
    va_list args;
    print_thread(m, m->current->id, who, sizeof who);
    if (place) where = object_place(m->object, place);
    begin_message(m);
    append(m, "%s, %s, at %s: ", m->launch->kernel, who, where);
    va_start(args, format);
    vappend(m, format, args);
    va_end(args);
    for (;;) fiber_switch(&m->current->context, &m->context);
}

void doubt(Machine *m, uint32_t place, const char *name, size_t offset)
{
    char who[128];
    if (m->doubt[0]) return;
    print_thread(m, m->current->id, who, sizeof who);
    snprintf(m->doubt, sizeof m->doubt,
             "seed %llu: %s, %s, at %s: read of shared %s, byte %zu, which nobody has written",
             (unsigned long long)m->seed, m->launch->kernel, who, object_place(m->object, place),
             name, offset);
}

static bool same_wait(const Wait *a, const Wait *b)
{
    return a->kind == b->kind && a->at == b->at && a->mask == b->mask &&
           ((a->kind != WAIT_BARRIER && a->kind != WAIT_TX) || a->by == b->by) &&
           (a->kind != WAIT_TX || a->width == b->width);
}

static void append_transaction(Machine *m, const Cta *cta, const Wait *w)
{
    const TxBarrier *b = &cta->tx[w->by];
    char where[128];
    print_shared(m, b->offset, where, sizeof where);
    append(m,
           "the transaction barrier at %s for parity %d, %u phases over, %d of %d arrivals "
           "and %lld bytes missing",
           where, w->width, b->phase, b->pending, b->count, (long long)b->bytes);
}

static void append_wait(Machine *m, const Cta *cta, const Wait *w)
{
    const char *where = object_place(m->object, w->at);
    switch (w->kind) {
    case WAIT_SHUFFLE: append(m, "a shuffle of lanes 0x%08x", w->mask); break;
    case WAIT_BALLOT: append(m, "a vote of lanes 0x%08x", w->mask); break;
    case WAIT_WARP_BARRIER: append(m, "__syncwarp of lanes 0x%08x", w->mask); break;
    case WAIT_BARRIER:
        append(m, "barrier %d, %d of %d threads there", w->by, cta->barriers[w->by].arrived,
               w->width);
        break;
    case WAIT_CLUSTER:
        append(m, "the cluster's barrier, %d threads there", cta->cluster->arrived);
        break;
    case WAIT_TX: append_transaction(m, cta, w); break;
    }
    append(m, ", %s", where);
}

static bool waits_so(const Cta *cta, int thread, const Wait *w)
{
    const Thread *t = &cta->threads[thread];
    return t->state == THREAD_WAITING && same_wait(&t->wait, w);
}

/* "threads 0-31, 64 wait at ...": all those like the one at `first`, which is told once;
 * many pieces are cut short. */
static void append_group(Machine *m, const Cta *cta, int first)
{
    const Wait *w = &cta->threads[first].wait;
    const int threads = m->launch->threads;
    int pieces = 0;
    for (int i = 0; i < first; i++)
        if (waits_so(cta, i, w)) return;
    append(m, "\n  CTA %d threads", cta->number);
    for (int i = first, end; i < threads; i = end + 1) {
        for (end = i; end < threads && waits_so(cta, end, w); end++) {
        }
        if (end == i || ++pieces > 5) continue;
        if (pieces == 5)
            append(m, ", ...");
        else if (end > i + 1)
            append(m, "%s %d-%d", pieces > 1 ? "," : "", i, end - 1);
        else
            append(m, "%s %d", pieces > 1 ? "," : "", i);
    }
    append(m, " wait at ");
    append_wait(m, cta, w);
}

bool report_deadlock(Machine *m)
{
    begin_message(m);
    append(m, "%s: deadlock", m->launch->kernel);
    for (int c = 0; c < m->resident * m->launch->cluster; c++)
        for (int i = 0; i < m->launch->threads; i++)
            if (m->ctas[c].threads[i].state == THREAD_WAITING) append_group(m, &m->ctas[c], i);
    return false;
}
