/* schedule/propose_rings.c: part of schedule/propose.c: rows that pass through a ring, which
 * threads or a copy warp fill. */
#include "schedule/propose.h"

enum { BESIDE_RING = 16, MOST_STAGES = 8 };

static bool fits_with(Proposals *p, int stages)
{
    Kernel k;
    p->now.stages = stages;
    return make_now(p, &k);
}

/* As many stages as keep enough of the next rows under way, for so many CTAs an SM. What cannot be
 * with the least cannot be with more. */
static void try_ring_live(Proposals *p, int live)
{
    const Target *t = p->s->target;
    int64_t stage = part_bytes(p, row_bytes(p->cut)) * p->now.rows;
    const int groups = p->now.groups; /* that have as many stages each */
    int least = groups > 1 ? groups * (1 + p->now.lag) : p->now.reuse ? 1 : 2 + p->now.lag;
    int64_t room = t->smem_per_sm / live / (stage ? stage : 1);
    int64_t wanted = ceil_div(ring_bytes(t), (stage ? stage : 1) * live) + least - 1;
    int64_t most = wanted > MOST_STAGES ? MOST_STAGES : wanted > least ? wanted : least;
    int stages = (int)(most < room ? most : room) / groups * groups;
    if (stages < least) return;
    const int before = p->made;
    p->now.live = p->now.per_sm = live;
    p->now.stages = p->asked.stages ? p->asked.stages : stages;
    try_now(p);
    if (p->made > before || p->asked.stages || stages == least || !fits_with(p, least)) return;
    for (p->now.stages = stages - groups; p->made == before; p->now.stages -= groups) try_now(p);
}

static void try_ring(Proposals *p)
{
    int of_sm = p->cut->accumulator_count ? MOST_THREADS : p->s->target->threads_per_sm;
    int most = of_sm / cta_threads(p);
    if (most < 1) most = 1;
    if (p->asked.per_sm)
        try_ring_live(p, p->asked.per_sm);
    else
        for (int live = most; live; live = live > 1 ? (live + 1) / 2 : 0) try_ring_live(p, live);
    p->now.live = p->now.per_sm = 0;
    p->now.stages = 1;
}

/* The same with registers that the copy warp hands over, which sums over rows may lack. */
static void try_handover(Proposals *p)
{
    try_ring(p);
    if (!p->tune_only || !p->cut->accumulator_count || p->asked.registers) return;
    p->now.registers = 1;
    try_ring(p);
    p->now.registers = 0;
}

/* Compute warps in one group, or several that take rows in turn. */
static void try_copy_warp(Proposals *p)
{
    enum { GROUPS = 2, MOST_GROUPS = 3 }; /* that the model may choose; that `tune` tries */
    const int most = p->now.cluster > 1 ? 1 : p->tune_only ? MOST_GROUPS : GROUPS;
    p->now.groups = p->asked.groups ? p->asked.groups : 1;
    do try_handover(p);
    while (++p->now.groups <= most && !p->asked.groups);
    p->now.groups = 1;
}

typedef struct {
    bool copy_warp, reuse;
    Home row;
    int lag;
} Ring;

/* Whose last phase lags, or which a copy warp fills: rows that stay in the ring. */
static const Ring rings[] = {{false, true, IN_REGISTERS, 0}, {false, false, IN_REGISTERS, 0},
                             {false, false, IN_STAGES, 0},   {false, false, IN_STAGES, 1},
                             {true, false, IN_STAGES, 0},    {true, false, IN_STAGES, 1},
                             {true, false, IN_STAGES, 2}};

static bool admits_ring(const Proposals *p, const Ring *ring)
{
    const Kernel *k = p->cut;
    Family family = ring->copy_warp ? FAMILY_WARP_SPECIALIZED : k->family;
    bool lags = k->inner_count && k->phases == 2 && p->now.threads > WARP &&
                (p->now.rows == 1 || ring->copy_warp);
    bool group = p->now.cluster > p->s->target->max_cluster;
    if (!admits_family(p, family) || (ring->lag && !lags) || (group && !ring->copy_warp) ||
        (ring->lag == 2 && !group))
        return false;
    if (p->asked.reuse && !ring->reuse) return false;
    if (ring->copy_warp && p->now.threads <= WARP) return false;
    if (ring->copy_warp && p->now.rows > 1 && !p->tune_only && !p->asked.rows) return false;
    if (p->asked.groups > 1 && !ring->copy_warp) return false;
    return ring->reuse || !p->asked.stages || p->asked.stages > 1;
}

void propose_rings(Proposals *p)
{
    static const int few[] = {1 + IN_REGISTERS, 1 + IN_STAGES, 1 + IN_MEMORY, 0},
                     many[] = {1 + IN_STAGES, 1 + IN_MEMORY, 0};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        const Ring *ring = &rings[i];
        if (!admits_ring(p, ring)) continue;
        p->now.family = ring->copy_warp ? FAMILY_WARP_SPECIALIZED : p->cut->family;
        p->now.reuse = ring->reuse;
        p->now.row = 1 + (int)ring->row;
        p->now.lag = ring->lag;
        bool held = p->cut->accumulator_count || tiles_now(p) * p->vec <= 2 * BESIDE_RING;
        try_columns(p, held ? few : many, ring->copy_warp ? try_copy_warp : try_ring);
    }
    p->now.reuse = p->now.lag = 0;
}
