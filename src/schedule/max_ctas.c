/* schedule/max_ctas.c: how many CTAs of a row kernel an SM holds at most. An SM that asks memory
 * for more rows than keep it busy makes it slower; shared memory that CTAs ask for and do not use
 * keeps others out (of a finish kernel, too: schedule/finish.c). */
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

/* Whether a row, which stays in its CTA's registers, is of a kind that was measured (on an H100,
 * 16384 rows): softmax of 1024 to 4096 columns 1 to 2 %, to 8192, by pairs of CTAs, too, 0.5 %
 * faster, rmsnorm to 2048 1 to 2 % (of 4096 as fast), softmax_bwd of 2560 to 4096 0.5 to 1 %. Not
 * those that read more from the first-level cache, of which 28 to 60 kB are left: layer norm of
 * 2048 columns 2 to 4 %, bytes 10 %, softmax_bwd of 1024 1 % slower; causal softmax of 2048, which
 * computes more, 2 %; rmsnorm of f32 and of a sum, and softmax_bwd of 2048, lose with few rows as
 * much as they gain. */
static bool pays(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 2048,
        MIDDLE = 4096,
        SHORT_ROW = 2 << 10,
        LONG_ROW = 16 << 10,
        PAIR = 2,
        TWO_BYTES = 2,
        TWO_PHASES = 2
    };
    int64_t columns = column_count(s, k), row = columns * row_bytes(k);
    bool single = k->cluster == 1 || (k->cluster == PAIR && few_vector_ctas(s, k) == PAIR);
    bool plain = k->one_row && single && k->phases == TWO_PHASES && !k->streamed && !k->by_blocks &&
                 k->vec == full_vector(k) && narrowest_stored(k) >= TWO_BYTES;
    bool quick = !exchanges_often(k) && !compares_places(s, k) && has_short_arithmetic(s, k);
    if (!plain || !quick || has_moments(s, k) || column_vectors(k) > 1) return false;
    bool halves = row_bytes(k) == TWO_BYTES * row_inputs(k), alone = !column_vectors(k);
    if (row_inputs(k) == PAIR) return halves && alone && columns > SHORT && columns <= MIDDLE;
    if (row_inputs(k) != 1) return false;
    if (row < SHORT_ROW || row_bytes(k) < TWO_BYTES) return false;
    return alone ? row <= LONG_ROW : halves && columns <= SHORT;
}

/* As many as have about so many bytes of rows under way, or where no shared memory keeps just those
 * in, one less. 0: any. */
static int rules_limit(const Scheduler *s, const Kernel *k)
{
    int64_t enough = s->target->enough_bytes, part = row_bytes(k) * column_count(s, k) / k->cluster;
    if (!enough || !pays(s, k)) return 0;
    int limit = (int)((enough + part / 2 - 1) / part);
    return may_be_limited(s, k, limit) || limit < 2 ? limit : limit - 1;
}

void keep_to(const Scheduler *s, Kernel *k, int limit)
{
    k->limit_ctas = limit;
    k->idle_bytes = limit ? idle_bytes(s, limit) : 0;
}

void set_limit(const Scheduler *s, Kernel *k)
{
    int limit = s->forced.limit ? s->forced.limit : rules_limit(s, k);
    keep_to(s, k, limit && may_be_limited(s, k, limit) ? limit : 0);
}

bool honours_limit(const Scheduler *s, const Kernel *k)
{
    int asked = s->forced.limit;
    return takes_limit(k) && (k->limit_ctas == asked || asked >= most_held(s, k)) &&
           asked >= s->forced.per_sm;
}
