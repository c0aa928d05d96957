/* schedule/max_ctas.c: the most CTAs of a row kernel on an SM. If an SM requests more rows than it
 * needs to keep memory busy, memory gets slower. To limit the CTAs, each asks for shared memory that
 * it does not use (schedule/finish.c does the same for finish kernels). */
#include "schedule/internal.h"

enum {
    RESERVED = 1 << 10,
    UNIT = 128
}; /* bytes that each CTA takes beside its own, and in what steps */

/* So much that one CTA more has no room. */
static int64_t idle_bytes(const Scheduler *s, int limit)
{
    return s->target->smem_per_sm / (limit + 1) / UNIT * UNIT + UNIT - RESERVED;
}

/* Rows that no shared memory holds: what does is planned for with it. */
bool takes_limit(const Kernel *k)
{
    return k->family == FAMILY_ROW && k->inner_count && !is_persistent(k) && !k->smem_bytes;
}

/* CTAs of it that an SM holds as far as threads go. */
static int most_held(const Scheduler *s, const Kernel *k)
{
    int threads = s->target->threads_per_sm / kernel_threads(k), most = s->target->most_ctas_per_sm;
    return threads < most ? threads : most;
}

static bool may_be_limited(const Scheduler *s, const Kernel *k, int limit)
{
    int64_t cta = idle_bytes(s, limit) + ceil_div(exchange_bytes(s, k), UNIT) * UNIT;
    bool fits =
        cta <= s->target->smem_per_cta && limit * (cta + RESERVED) <= s->target->smem_per_sm;
    return takes_limit(k) && fits && limit < most_held(s, k);
}

void keep_to(const Scheduler *s, Kernel *k, int limit)
{
    k->limit_ctas = limit;
    k->idle_bytes = limit ? idle_bytes(s, limit) : 0;
}

void set_limit(const Scheduler *s, Kernel *k)
{
    const int limit = s->forced.limit;
    keep_to(s, k, limit && may_be_limited(s, k, limit) ? limit : 0);
}
