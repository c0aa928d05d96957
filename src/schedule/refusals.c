/* schedule/refusals.c: why a schedule that was asked for cannot be. A reason that speaks of a key
 * of --schedule begins with it: `stages: ...`. */
#include "schedule/internal.h"

/* The kernel that walks rows with the most threads; NULL: none does. */
static const Kernel *largest_kernel(const Scheduler *s)
{
    const Kernel *largest = NULL;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        if (walks_rows(k) && (!largest || kernel_threads(k) > kernel_threads(largest))) largest = k;
    }
    return largest;
}

/* Why there are not the stages that were asked for. */
static const char *missing_stages(const Scheduler *s)
{
    int most = 0;
    if (s->forced.stages == 1 && s->forced.family == FAMILY_WARP_SPECIALIZED)
        return "stages: a copy warp fills a ring, which has two stages or more";
    for (int i = 0; i < s->kernels.count; i++)
        if (s->kernels.data[i].stages > most) most = s->kernels.data[i].stages;
    const Kernel *k = largest_kernel(s);
    if (most)
        return arena_format(
            s->arena, "stages: beside what else the SM holds, shared memory has room for up to %d",
            most);
    if (!k || (!k->inner_count && !k->accumulator_count))
        return "stages: rows are read once here, by no ring";
    if (!may_fetch_rows(k))
        return k->accumulator_count
                   ? "stages: rows that threads have under 4 bytes of side by side are copied by whole warps "
                     "that share one, and have read it before its first reduction"
                   : "stages: threads copy 4 bytes or more at a time, and here have fewer side by side";
    return "stages: here rows stay in registers or are read again, and pass through no ring";
}

/* Why no row can have so many CTAs; NULL: it depends on the row. */
const char *impossible_cluster(const Scheduler *s)
{
    int asked = s->forced.cluster;
    if (asked & (asked - 1))
        return arena_format(s->arena, "cluster: %d is not a power of two", asked);
    if (asked > 1 && s->target->max_cluster <= 1)
        return arena_format(s->arena, "cluster: %s has none", s->target->arch);
    if (asked > s->target->max_cluster && asked > s->target->sms)
        return arena_format(s->arena, "cluster: all %d CTAs must run at once, and there are %d SMs",
                            asked, s->target->sms);
    return NULL;
}

/* Why so many CTAs do not share a row. */
static const char *missing_cluster(const Scheduler *s)
{
    enum { LEAST_VECTORS = 2 * WARP };
    int most = s->target->max_cluster, asked = s->forced.cluster;
    const char *impossible = impossible_cluster(s);
    const Kernel *k = largest_kernel(s);
    if (impossible) return impossible;
    bool may_group = s->forced.family == FAMILY_WARP_SPECIALIZED || s->forced.family == FAMILY_ROW;
    if (asked > most && (asked % WARP || !may_group))
        return arena_format(
            s->arena,
            "cluster: %s has them of up to %d CTAs; more exchange through global memory, by "
            "multiples of 32, warp-specialized or row",
            s->target->arch, most);
    for (int i = 0; k && i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column)
            return "cluster: a sum over all rows that has no columns wants CTAs with whole rows";
    if (s->forced.threads && s->forced.threads <= WARP)
        return "threads: CTAs that share a row have 64 each, or more";
    if (!k || !k->inner_count)
        return "cluster: CTAs share rows with reductions inside them, and here are none";
    int64_t least = (int64_t)LEAST_VECTORS * find_vector(s, k) * asked;
    if (column_count(s, k) <= least)
        return arena_format(
            s->arena,
            "cluster: each of %d CTAs wants over %d vectors of a row, so over %lld columns; here are %lld",
            asked, LEAST_VECTORS, (long long)least, (long long)column_count(s, k));
    if (asked > most && s->forced.family == FAMILY_ROW)
        return arena_format(
            s->arena,
            "cluster: so many read a row again in each phase, with up to %d threads each and without "
            "rows=, stages=, reuse= and bulk=",
            MOST_THREADS - WARP);
    return asked > most
               ? "cluster: so many want columns of one axis, and room in shared memory for their part of three rows"
               : "cluster: their parts of the row are too short for two warps of each, or fit neither their registers "
                 "nor their shared memory";
}

/* Why an SM does not hold as many CTAs as were asked for. */
static const char *missing_bound(const Scheduler *s)
{
    const Kernel *k = largest_kernel(s);
    if (k && reuses_stages(k))
        return "per_sm: for that many there is no room in shared memory, or for their threads";
    if (k && (k->stages || is_refilled(k) || is_grouped(k)))
        return arena_format(s->arena, "per_sm: with a ring or a group it is planned, here up to %d",
                            k->ctas_per_sm);
    if (!k) return "per_sm: nothing here walks rows";
    int most = s->target->threads_per_sm / kernel_threads(k);
    return arena_format(
        s->arena,
        "per_sm: up to %d; an SM holds %d threads and %d CTAs, and these have %d threads each",
        most < s->target->most_ctas_per_sm ? most : s->target->most_ctas_per_sm,
        s->target->threads_per_sm, s->target->most_ctas_per_sm, kernel_threads(k));
}

/* Why an SM is not kept to so few CTAs. */
static const char *missing_limit(const Scheduler *s)
{
    bool some = false;
    for (int i = 0; i < s->kernels.count; i++) some |= takes_limit(&s->kernels.data[i]);
    if (!some)
        return "limit: only for kernels of the row family that reduce rows and have nothing of them in shared memory";
    if (s->forced.limit < s->forced.per_sm) return "limit: per_sm asks for more";
    return arena_format(
        s->arena, "limit: no shared memory lets %d of these CTAs in and keeps the next one out",
        s->forced.limit);
}

/* Why a row does not stay on chip. */
static const char *missing_home(const Scheduler *s)
{
    bool other = s->forced.threads || s->forced.rows || s->forced.cluster || s->forced.stages;
    return other ? "reads: with the other keys as they are, a row does not stay on chip"
                 : "reads: the row is too long to stay on chip";
}

/* Why no row comes to shared memory by one copy. */
const char *missing_bulk(const Scheduler *s)
{
    if (s->forced.bulk > 1)
        return "bulk: 1 (a row comes to shared memory by one bulk copy, for a CTA or cluster of its own)";
    if (!s->target->bulk_copy)
        return arena_format(s->arena, "bulk: %s has no bulk copies", s->target->arch);
    return "bulk: for rows of whole blocks of 16 bytes along one axis, without sums over rows, that shared memory has room for, "
           "and more than a warp each; without rows=, stages=, reuse= and reads=2";
}

/* Why no row hands its stage on. */
const char *missing_reuse(const Scheduler *s)
{
    if (s->forced.reuse > 1)
        return "reuse: 1 (a row goes on from its stage to registers at once, and the next row takes the stage)";
    return "reuse: row or grid-stride, for rows that threads copy to shared memory for themselves, read whole in the first phase and "
           "have registers for, and for stages that it has room for; with sums over rows they are whole lines of 128 bytes";
}

/* Why a row is not shared by so many threads. */
static const char *missing_threads(const Scheduler *s)
{
    const Kernel *k = largest_kernel(s);
    if (s->forced.family == FAMILY_WARP_SPECIALIZED && s->forced.threads > MOST_THREADS - WARP)
        return arena_format(s->arena,
                            "threads: a CTA has up to %d, and %d of them are the copy warp",
                            MOST_THREADS, WARP);
    Kernel asked = k ? *k : (Kernel){0};
    asked.threads_per_row = s->forced.threads;
    asked.teams = s->forced.rows ? s->forced.rows : 1;
    const char *problem = k ? shape_problem(s, &asked) : NULL;
    if (problem) return problem;
    if (k && k->threads_per_row <= WARP)
        return arena_format(s->arena, "threads: a row of %lld columns has a power of two up to %d",
                            (long long)column_count(s, k), WARP);
    return "threads: a row of this size is not shared by that many";
}

static const char *missing_rows(const Scheduler *s)
{
    return s->forced.cluster > 1 ? "rows: CTAs that share a row walk one at a time"
           : s->forced.family == FAMILY_WARP_SPECIALIZED
               ? "rows: with a copy warp a CTA walks one at a time"
               : "rows: with so many threads a row a CTA cannot walk that many at a time; fewer threads= may";
}

static const char *missing_reads(const Scheduler *s)
{
    int asked = s->forced.reads;
    return asked == 1   ? missing_home(s)
           : asked == 2 ? "reads: only a kernel without sums over rows reads a row again"
                        : "reads: 1 (a row stays on chip) or 2 (each phase reads it)";
}

static const char *refusal_of(const Scheduler *s, Key key)
{
    switch ((int)key) {
#define KEY(name, plain, value, refusal, meaning)                                                  \
    case KEY_##name:                                                                               \
        return refusal;
#define EXACT(...)
#include "schedule/keys.def"
    default:
        return arena_format(s->arena,
                            "%s: not for this kernel, with the other keys as they are (%s)",
                            key_info[key].name, key_info[key].meaning);
    }
}

/* Why no kernel got a copy warp. */
static const char *missing_copy_warp(const Scheduler *s)
{
    const Kernel *longest = NULL;
    bool kept = false;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        kept |= walks_rows(k) && k->kept;
        bool rows = walks_rows(k) && !k->dynamic && !k->columnwise &&
                    (k->inner_count || k->accumulator_count);
        if (rows && (!longest || kernel_threads(k) > kernel_threads(longest))) longest = k;
    }
    if (!s->target->bulk_copy)
        return arena_format(s->arena, "warp-specialized needs bulk copies (sm_90 or later), not %s",
                            s->target->arch);
    if (!longest && kept)
        return "warp-specialized sums over all rows, and this graph over those of each group";
    if (!longest)
        return "warp-specialized needs reductions inside rows, or over rows, and this graph has neither";
    if (has_several_columns(longest))
        return "warp-specialized needs columns of one axis, and these are of several";
    if (longest->kept)
        return "warp-specialized sums over all rows, and this graph over those of each group";
    if (longest->threads_per_row < WARP)
        return arena_format(
            s->arena,
            "warp-specialized needs rows that two warps share, and these have %lld columns, for a part of one",
            (long long)column_count(s, longest));
    if (longest->threads_per_row == WARP || longest->teams > 1)
        return "warp-specialized needs rows that two warps share, and here a warp has one: threads=64 asks for two";
    if (s->forced.cluster > 1 && longest->cluster != s->forced.cluster) return missing_cluster(s);
    return "warp-specialized needs shared memory for two stages of a row, or three where phases lag, beside what else a CTA "
           "has there, and registers for what its threads hold";
}

/* What a family is for. */
static const char *family_use(Family family)
{
    switch (family) {
    case FAMILY_POINTWISE: return "graphs without reductions";
    case FAMILY_ROW: return "reductions inside rows alone";
    case FAMILY_GRID_STRIDE: return "sums over rows beside what each row gives";
    default: return "sums over rows and nothing else";
    }
}

/* Why a graph's rows did not become the family that was asked for. */
static const char *missing_family(Scheduler *s)
{
    const char *cluster = impossible_cluster(s);
    bool inside = false, over = false, whole = false;
    if (cluster) return cluster;
    if (s->forced.family == FAMILY_WARP_SPECIALIZED) return missing_copy_warp(s);
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i] || !is_reduction(s->g, n)) continue;
        if (reduction_way(s, n) == BY_ROW)
            inside = true;
        else
            over = true;
        whole |= !node(s->g, n)->axes;
    }
    return arena_format(s->arena, "%s is for %s; this graph has %s", family_name(s->forced.family),
                        family_use(s->forced.family),
                        inside && whole ? "reductions inside rows, and one over everything"
                        : inside && over && s->forced.family == FAMILY_GRID_STRIDE
                            ? "sums over rows that take a kernel of their own"
                        : inside && over ? "reductions inside rows and over rows"
                        : inside         ? "reductions inside rows"
                        : !over          ? "no reductions"
                        : s->forced.family == FAMILY_COLUMN
                            ? "sums over rows, and elements of each row to store"
                            : "reductions over rows");
}

/* The first key that no kernel has as asked beside the family alone, or beside the keys before it,
 * which are put into `now`. KEYS: there is none. */
static Key find_culprit(Scheduler *s, const Schedule *asked, bool alone, Schedule *now)
{
    static const Key first[] = {KEY_threads, KEY_reuse, KEY_cluster,
                                KEY_rows,    KEY_bulk,  KEY_stages};
    enum { FIRST = sizeof first / sizeof *first };
    const Schedule family = *now;
    for (int i = 0; i < FIRST + KEYS; i++) {
        const Key key = i < FIRST ? first[i] : (Key)(i - FIRST);
        const Schedule before = alone ? family : *now;
        *now = before;
        if (now->at[key] == asked->at[key]) continue;
        now->at[key] = asked->at[key];
        if (choose_as(s, now)) continue;
        *now = before;
        return key;
    }
    return KEYS;
}

/* Chooses the longest ring that there is instead of the one that was asked for. */
static void choose_longest_ring(Scheduler *s, Schedule now, int asked)
{
    int fits = 1;
    for (int end = asked; end - fits > 1;) {
        now.stages = fits + (end - fits) / 2;
        if (choose_as(s, &now))
            fits = now.stages;
        else
            end = now.stages;
    }
    now.stages = fits > 1 ? fits : 0;
    (void)choose_as(s, &now);
}

/* Tells the key that is in the way, of kernels that have the others. */
const char *find_refusal(Scheduler *s)
{
    const Schedule asked = s->forced, family = {.any = true, .family = asked.family};
    Schedule now = family;
    if (!choose_as(s, &now)) {
        s->forced = asked;
        return missing_family(s);
    }
    Key key = find_culprit(s, &asked, true, &now);
    if (key == KEYS) {
        now = family;
        key = find_culprit(s, &asked, false, &now);
    }
    if (key == KEY_stages)
        choose_longest_ring(s, now, asked.stages);
    else
        (void)choose_as(s, &now);
    s->forced = asked;
    return key < KEYS ? refusal_of(s, key) : "no kernel has all of these keys";
}
