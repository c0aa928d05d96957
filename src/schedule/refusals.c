/* schedule/refusals.c: why a schedule that was asked for is refused. A reason that is about a key of
 * --schedule begins with it: `stages: ...`. */
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
        return "stages: warp-specialized needs a ring of two stages or more";
    for (int i = 0; i < s->kernels.count; i++)
        if (s->kernels.data[i].stages > most) most = s->kernels.data[i].stages;
    const Kernel *k = largest_kernel(s);
    if (most) return arena_format(s->arena, "stages: shared memory has room for at most %d", most);
    if (!k || (!k->inner_count && !k->accumulator_count))
        return "stages: this graph has no reduction, so its rows pass through no ring";
    if (!may_fetch_rows(k))
        return k->accumulator_count
                   ? "stages: a thread's elements are under 4 bytes, so whole warps must copy the rows, and read them before their first reduction"
                   : "stages: a copy to the ring takes 4 bytes or more, and a thread's elements are fewer";
    return "stages: these rows stay in registers or are read again in each phase, so they pass through no ring";
}

/* Why no row can have so many CTAs; NULL: it depends on the row. */
const char *impossible_cluster(const Scheduler *s)
{
    int asked = s->forced.cluster;
    if (asked & (asked - 1))
        return arena_format(s->arena, "cluster: %d is not a power of two", asked);
    if (asked > 1 && s->target->max_cluster <= 1)
        return arena_format(s->arena, "cluster: %s has no clusters", s->target->arch);
    if (asked > s->target->max_cluster && asked > s->target->sms)
        return arena_format(
            s->arena, "cluster: all %d CTAs must run at the same time, and the GPU has %d SMs",
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
            "cluster: a cluster of %s has up to %d CTAs; larger groups need a multiple of 32, and the family warp-specialized or row",
            s->target->arch, most);
    for (int i = 0; k && i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column)
            return "cluster: the graph has a sum over everything, which needs a whole row in each CTA";
    if (s->forced.threads && s->forced.threads <= WARP)
        return "threads: CTAs that share a row need 64 threads or more";
    if (!k || !k->inner_count)
        return "cluster: CTAs share a row only for a reduction inside it, and this graph has none";
    int64_t least = (int64_t)LEAST_VECTORS * find_vector(s, k) * asked;
    if (column_count(s, k) <= least)
        return arena_format(
            s->arena,
            "cluster: a cluster of %d needs more than %lld columns (%d vectors a CTA); this graph has %lld",
            asked, (long long)least, LEAST_VECTORS, (long long)column_count(s, k));
    if (asked > most && s->forced.family == FAMILY_ROW)
        return arena_format(
            s->arena,
            "cluster: a group this large in the family row reads a row again in each phase: it has up to %d threads a CTA, and none of rows=, stages=, reuse= and bulk=",
            MOST_THREADS - WARP);
    return asked > most
               ? "cluster: a group this large needs columns of one axis, and shared memory for its part of three rows"
               : "cluster: a CTA's part of the row is too short for two warps, or too long for its registers and shared memory";
}

/* Why an SM does not hold as many CTAs as were asked for. */
static const char *missing_bound(const Scheduler *s)
{
    const Kernel *k = largest_kernel(s);
    if (k && reuses_stages(k))
        return "per_sm: an SM has too little shared memory or too few threads for that many CTAs";
    if (k && (k->stages || is_refilled(k) || is_grouped(k)))
        return arena_format(s->arena, "per_sm: with this ring or group an SM holds up to %d",
                            k->ctas_per_sm);
    if (!k) return "per_sm: no kernel of this graph walks rows";
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
        return "limit: only for kernels of the family row that have reductions, and no part of a row in shared memory";
    if (s->forced.limit < s->forced.per_sm) return "limit: it is below per_sm";
    return arena_format(
        s->arena, "limit: no amount of shared memory admits exactly %d of these CTAs to an SM",
        s->forced.limit);
}

/* Why rows are not taken by so many groups in turn; NULL: they may be, if there is room. */
const char *impossible_groups(const Scheduler *s)
{
    const Schedule *f = &s->forced;
    const int groups = f->groups, stages = groups * (1 + f->lag);
    const int rows = f->rows > MOST_TEAMS ? MOST_TEAMS + 1 : f->rows > 1 ? f->rows : 1;
    if (f->family != FAMILY_WARP_SPECIALIZED)
        return "groups: only the family warp-specialized has several, which take rows in turn from the ring that a copy warp fills";
    if (f->cluster > 1) return "groups: CTAs that share a row have one";
    if (groups > MOST_TEAMS || groups * rows > MOST_TEAMS)
        return arena_format(s->arena, "groups: up to %d rows at a time, each with a barrier",
                            MOST_TEAMS);
    if (f->threads && groups * rows * f->threads > MOST_THREADS - WARP)
        return arena_format(
            s->arena, "groups: %d of %d threads are more than the %d of a CTA beside the copy warp",
            groups, rows * f->threads, MOST_THREADS - WARP);
    if (f->stages && (f->stages < stages || f->stages % groups))
        return arena_format(
            s->arena,
            "stages: must be a multiple of groups=%d, at least %d: each group has stages of its own",
            groups, stages);
    return NULL;
}

/* Why there is no room for them. */
static const char *missing_groups(const Scheduler *s)
{
    const char *impossible = impossible_groups(s);
    return impossible
               ? impossible
               : "groups: so many have no room with the other keys given: a CTA has 1024 threads, of which 32 are the copy warp, and its shared memory must have stages for each group, in which their sums over rows meet at the end";
}

/* Why a copy warp hands no registers over. */
const char *missing_registers(const Scheduler *s)
{
    const Schedule *f = &s->forced;
    const int64_t rows = (int64_t)(f->groups ? f->groups : 1) * (f->rows ? f->rows : 1);
    const int64_t threads = rows < MOST_THREADS ? rows * f->threads : MOST_THREADS;
    if (f->registers > 1)
        return "registers: the only value is 1 (the copy warp hands its own over)";
    if (f->family != FAMILY_WARP_SPECIALIZED || f->cluster > s->target->max_cluster)
        return "registers: only the copy warp of the family warp-specialized hands them over, and not in groups of CTAs";
    if (!s->target->setmaxnreg)
        return arena_format(s->arena, "registers: warps of %s cannot hand them over",
                            s->target->arch);
    if (threads % WARPGROUP || threads + WARPGROUP > MOST_THREADS)
        return arena_format(
            s->arena,
            "registers: %lld threads compute, and whole warpgroups of %d must, at most %d threads: a warpgroup copies",
            (long long)threads, WARPGROUP, MOST_THREADS - WARPGROUP);
    return "registers: threads that compute would have no more than without it, or are not whole warpgroups of 128";
}

/* Why a row does not stay on chip. */
static const char *missing_home(const Scheduler *s)
{
    bool other = s->forced.threads || s->forced.rows || s->forced.cluster || s->forced.stages;
    return other ? "reads: with the other keys given, a row does not fit on chip"
                 : "reads: the row is too long to stay on chip";
}

/* Why no row comes to shared memory by one copy. */
const char *missing_bulk(const Scheduler *s)
{
    if (s->forced.bulk > 1)
        return "bulk: the only value is 1 (one bulk copy brings a row to shared memory, and each CTA or cluster has one row)";
    if (!s->target->bulk_copy)
        return arena_format(s->arena, "bulk: %s has no bulk copies", s->target->arch);
    return "bulk: needs rows along one axis that are whole blocks of 16 bytes and fit shared memory, more than a warp for each, and no sum over rows; it excludes rows=, stages=, reuse= and reads=2";
}

/* Why no row hands its stage on. */
const char *missing_reuse(const Scheduler *s)
{
    if (s->forced.reuse > 1)
        return "reuse: the only value is 1 (a row moves from its stage to registers, which frees the stage for the next row)";
    return "reuse: needs the family row or grid-stride, rows that fit registers and that the first phase reads whole, threads that copy their own elements, and shared memory for the stages; with sums over rows, a row must be whole lines of 128 bytes";
}

/* Why a row is not shared by so many threads. */
static const char *missing_threads(const Scheduler *s)
{
    const Kernel *k = largest_kernel(s);
    if (s->forced.family == FAMILY_WARP_SPECIALIZED && s->forced.threads > MOST_THREADS - WARP)
        return arena_format(s->arena, "threads: a CTA has up to %d, of which %d are the copy warp",
                            MOST_THREADS, WARP);
    Kernel asked = k ? *k : (Kernel){0};
    asked.threads_per_row = s->forced.threads;
    asked.teams = s->forced.rows ? s->forced.rows : 1;
    const char *problem = k ? shape_problem(s, &asked) : NULL;
    if (problem) return problem;
    if (k && k->threads_per_row <= WARP)
        return arena_format(s->arena,
                            "threads: a row of %lld columns takes a power of two up to %d",
                            (long long)column_count(s, k), WARP);
    return "threads: that is too few or too many for a row of this size";
}

static const char *missing_rows(const Scheduler *s)
{
    return s->forced.cluster > 1
               ? "rows: CTAs that share a row take one row at a time"
               : "rows: with so many threads a row, a CTA cannot take that many rows at a time: give fewer threads=";
}

static const char *missing_reads(const Scheduler *s)
{
    int asked = s->forced.reads;
    return asked == 1 ? missing_home(s)
           : asked == 2
               ? "reads: 2 is only for kernels without sums over rows"
               : "reads: the values are 1 (a row stays on chip) and 2 (each phase reads it)";
}

/* NULL: some kernel can have such vectors. */
static const char *missing_vector(const Scheduler *s)
{
    const Kernel *k = NULL;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *other = &s->kernels.data[i];
        if (walks_rows(other) && (!k || find_vector(s, other) > find_vector(s, k))) k = other;
    }
    const int asked = s->forced.vec, most = k ? find_vector(s, k) : asked;
    if (asked <= most && !(asked & (asked - 1))) return NULL;
    const char *full = k->beside                ? ""
                       : has_several_columns(k) ? ", and whole vectors fill the last axis"
                                                : ", and whole vectors fill a row";
    return arena_format(s->arena,
                        "vec: a vector has a power of two of elements, here up to %d: "
                        "an access moves up to 16 bytes%s",
                        most, full);
}

static const char *refusal_of(const Scheduler *s, Key key)
{
    const char *vector = key == KEY_vec ? missing_vector(s) : NULL;
    if (vector) return vector;
    switch ((int)key) {
#define KEY(name, plain, value, refusal, meaning)                                                  \
    case KEY_##name:                                                                               \
        return refusal;
#define EXACT(...)
#include "schedule/keys.def"
    default:
        return arena_format(s->arena,
                            "%s: this kernel cannot have it with the other keys given (%s)",
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
        return "warp-specialized has no sums that keep row axes, and this graph has one";
    if (!longest)
        return "warp-specialized needs a reduction inside rows or over rows, and this graph has none";
    if (has_several_columns(longest))
        return "warp-specialized needs columns along one axis, and this graph has several";
    if (longest->kept)
        return "warp-specialized has no sums that keep row axes, and this graph has one";
    if (longest->threads_per_row < WARP)
        return arena_format(
            s->arena,
            "warp-specialized needs rows for two warps, and %lld columns fill only a part of one",
            (long long)column_count(s, longest));
    if (longest->threads_per_row == WARP || longest->teams > 1)
        return "warp-specialized needs two warps a row, and here one has it: give threads=64";
    if (s->forced.cluster > 1 && longest->cluster != s->forced.cluster) return missing_cluster(s);
    return "warp-specialized needs shared memory for two stages of a row (three with lag), and registers for what its threads hold: this row is too long";
}

/* What a family is for. */
static const char *family_use(Family family)
{
    switch (family) {
    case FAMILY_POINTWISE: return "graphs without reductions";
    case FAMILY_ROW: return "reductions inside rows and no others";
    case FAMILY_GRID_STRIDE: return "sums over rows beside outputs of each row";
    default: return "sums over rows and nothing else";
    }
}

/* "a sum over rows (sum[M])" */
static const char *sum_over_rows(const Scheduler *s)
{
    if (!s->a->rows) return "a sum over rows";
    return arena_format(s->arena, "a sum over rows (sum%s)", axes_text(s->arena, s->g, s->a->rows));
}

/* "this graph", and its columns where others would do as well. */
static const char *graph_as_planned(const Scheduler *s)
{
    if (!s->a->other && s->a->choice == COLUMNS_REDUCED) return "this graph";
    return arena_format(s->arena, "with the columns %s this graph",
                        axes_text(s->arena, s->g, s->a->columns));
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
    const char *needed =
        s->forced.family == FAMILY_ROW ? (inside ? NULL : "a reduction inside rows")
        : s->forced.family == FAMILY_GRID_STRIDE || s->forced.family == FAMILY_COLUMN
            ? (over ? NULL : sum_over_rows(s))
            : NULL;
    const char *graph = graph_as_planned(s);
    if (needed)
        return arena_format(s->arena, "%s needs %s; %s has none", family_name(s->forced.family),
                            needed, graph);
    return arena_format(s->arena, "%s is for %s; %s has %s", family_name(s->forced.family),
                        family_use(s->forced.family), graph,
                        inside && whole ? "a reduction over everything, beside those inside rows"
                        : over && s->forced.family == FAMILY_GRID_STRIDE
                            ? "sums over rows that need a kernel of their own"
                        : inside && over ? "reductions inside rows and over rows"
                        : inside         ? "reductions inside rows"
                        : !over          ? "no reductions"
                        : s->forced.family == FAMILY_COLUMN
                            ? "sums over rows, and outputs of each row"
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
    return key < KEYS ? refusal_of(s, key) : "no kernel can have all of these keys together";
}
