/* candidates.c: the schedules a graph can have, found by asking for each: schedule/schedule.c
 * refuses what cannot be, so no rule stands here twice. Texts are tried from short to long, so that
 * a plan gets the shortest text that names it. */
#include "candidates.h"

#include "codegen/cuda.h"
#include "schedule/keys.h"

#include <limits.h>
#include <setjmp.h>
#include <string.h>

enum { MOST_VALUES = 15, LEVELS = 4 };
enum {
    THREADS = 1 << KEY_threads,
    ROWS = 1 << KEY_rows,
    CLUSTER = 1 << KEY_cluster,
    STAGES = 1 << KEY_stages,
    CTAS = 1 << KEY_ctas,
    READS = 1 << KEY_reads,
    PER_SM = 1 << KEY_per_sm,
    BULK = 1 << KEY_bulk,
    LIMIT = 1 << KEY_limit,
    REUSE = 1 << KEY_reuse
};

/* Which keys are given together; how many they are is their level. The grid's size is independent
 * of the rest, so it varies by itself. */
static const int combinations[] = {
    0,
    THREADS,
    ROWS,
    CLUSTER,
    STAGES,
    CTAS,
    READS,
    PER_SM,
    BULK,
    LIMIT,
    REUSE,
    THREADS | READS,
    THREADS | ROWS,
    THREADS | CLUSTER,
    THREADS | STAGES,
    ROWS | STAGES,
    CLUSTER | STAGES,
    THREADS | PER_SM,
    CLUSTER | PER_SM,
    THREADS | BULK,
    CLUSTER | BULK,
    THREADS | REUSE,
    CLUSTER | REUSE,
    STAGES | REUSE,
    PER_SM | REUSE,
    THREADS | ROWS | STAGES,
    THREADS | CLUSTER | STAGES,
    THREADS | CLUSTER | REUSE,
    CLUSTER | PER_SM | REUSE,
};
enum { COMBINATIONS = sizeof combinations / sizeof *combinations };

typedef struct {
    Arena *arena;
    const Analysis *a;
    const Target *target;
    int tries[KEYS][MOST_VALUES + 1]; /* values worth trying, 0 behind the last */
    Candidates found;
    bool tells_refused;        /* what is refused is listed, with the reason */
    bool skips_other_families; /* no key makes a graph one for `pointwise` or `column` */
    bool has[FAMILY_FINISH];   /* families that the bare name or one key reaches */
    const Plan *chosen;
    int printed_levels;    /* texts with fewer keys are printed when they are found ... */
    LIST(Candidate) later; /* ... the others are not */
    int printed;           /* of those */
    bool groups;           /* may replace a plan that spills ... */
    int passes;            /* ... and so may plans that walk the rows so often */
} Search;

static void set_tries(Search *s)
{
    const int sms = s->target->sms;
    const int tries[KEYS][MOST_VALUES + 1] = {
#define LIST_VALUES(...)                                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define KEY(name, plain, tries, value, honoured, refusal, meaning) [KEY_##name] = LIST_VALUES tries,
#define EXACT(...)
#include "schedule/keys.def"
    };
    memcpy(s->tries, tries, sizeof tries);
}

static bool same_grid(const LaunchGrid *x, const LaunchGrid *y)
{
    return x->axes == y->axes && x->per_cta == y->per_cta && x->max_ctas == y->max_ctas &&
           x->times == y->times;
}

static bool same_launch(const LaunchPlan *x, const LaunchPlan *y)
{
    if (x->kernel_count != y->kernel_count) return false;
    for (int i = 0; i < x->kernel_count; i++) {
        const LaunchKernel *k = &x->kernels[i], *l = &y->kernels[i];
        if (k->threads != l->threads || k->cluster != l->cluster ||
            k->smem_bytes != l->smem_bytes || k->overlaps != l->overlaps)
            return false;
        for (int dim = 0; dim < GRID_RANK; dim++)
            if (!same_grid(&k->grid[dim], &l->grid[dim])) return false;
    }
    return true;
}

static Candidate *find_same(Candidates *found, const Plan *plan, const char *cuda)
{
    for (int i = 0; i < found->list.count; i++) {
        Candidate *c = &found->list.data[i];
        if (same_launch(&c->plan->launch, &plan->launch) && !strcmp(c->cuda, cuda)) return c;
    }
    return NULL;
}

static void add_plan(Search *s, const char *text, const Plan *plan)
{
    Candidates *found = &s->found;
    const char *cuda = emit_cuda(s->arena, plan, NULL);
    Candidate *same = find_same(found, plan, cuda);
    if (!same)
        *list_push(s->arena, &found->list) = (Candidate){text, plan, cuda};
    else if (same->schedule)
        found->same++;
    else
        same->schedule = text; /* of the chosen plan, which was there before all texts */
}

/* How often the plan's kernels walk the rows. */
static int passes(const Plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->kernel_count; i++) count += walks_rows(&plan->kernels[i]);
    return count;
}

/* A thread with more of a row than this has it in memory, or spills; a row cut among more threads
 * than it has vectors leaves half of them idle. */
static bool is_well_shared(const Plan *plan)
{
    enum { MOST_ELEMENTS = 64 };
    for (int i = 0; i < plan->kernel_count; i++) {
        const Kernel *k = &plan->kernels[i];
        int64_t covered = (int64_t)k->threads_per_row * k->vec * k->tiles * k->cluster;
        if (!walks_rows(k) || k->dynamic || k->column_ctas > 1) continue;
        if (k->tiles * k->vec > MOST_ELEMENTS ||
            covered >= 2 * axes_size(&plan->analysis->sizes, k->columns))
            return false;
    }
    return true;
}

/* Whether variants of a plan are worth a measurement. */
static bool is_promising(const Search *s, const Plan *plan)
{
    return passes(plan) <= passes(s->chosen) &&
           (is_well_shared(plan) || !is_well_shared(s->chosen));
}

static void refuse(Search *s, const char *text, const char *problem)
{
    s->found.refused++;
    if (s->tells_refused) *list_push(s->arena, &s->found.refusals) = (Rejection){text, problem};
}

static void try_text(Search *s, const char *text, int level)
{
    const char *problem;
    const Plan *plan = try_schedule(s->arena, s->a, s->target, text, &problem);
    if (plan) s->has[plan->family] = true;
    if (!plan)
        refuse(s, text, problem);
    else if (level > 0 && !is_promising(s, plan))
        s->found.left_out++;
    else if (level < s->printed_levels)
        add_plan(s, text, plan);
    else
        *list_push(s->arena, &s->later) = (Candidate){text, plan, NULL};
}

/* All values of the keys in `left`, behind a text that gives those before. */
static void try_keys(Search *s, const char *text, int left, int level)
{
    if (!left) {
        try_text(s, text, level);
        return;
    }
    int key = __builtin_ctz((unsigned)left);
    const char *separator = strchr(text, ':') ? "," : ":";
    for (const int *value = s->tries[key]; *value; value++)
        try_keys(s,
                 arena_format(s->arena, "%s%s%s=%d", text, separator, key_info[key].name, *value),
                 left & (left - 1), level);
}

static void try_level(Search *s, int level)
{
    for (int family = 0; family < FAMILY_FINISH; family++) {
        bool other = (family == FAMILY_POINTWISE || family == FAMILY_COLUMN) && !s->has[family];
        if (other && s->skips_other_families) continue;
        for (int i = 0; i < COMBINATIONS && (level <= 1 || s->has[family]); i++)
            if (__builtin_popcount((unsigned)combinations[i]) == level)
                try_keys(s, family_name((Family)family), combinations[i], level);
    }
}

/* Adds every so-many-th of the texts put off, and so on with those between, until there are `most`.
 */
static void spread(Search *s, int most)
{
    int count = s->later.count, step = 1;
    while (step < count) step *= 2;
    for (int first = 0; step >= 1; first = step /= 2)
        for (int i = first; i < count && s->found.list.count < most; i += first ? 2 * step : step) {
            const Candidate *c = &s->later.data[i];
            add_plan(s, c->schedule, c->plan);
            s->printed++;
        }
    s->found.left_out += count - s->printed;
}

static Search begin_search(Arena *arena, const Plan *chosen)
{
    Search s = {.arena = arena, .a = chosen->analysis, .target = &chosen->target, .chosen = chosen};
    set_tries(&s);
    return s;
}

Candidates list_candidates(Arena *arena, const Plan *chosen, int most)
{
    Search s = begin_search(arena, chosen);
    s.printed_levels = 2;
    add_plan(&s, NULL, s.chosen);
    for (int level = 0; level < LEVELS; level++) try_level(&s, level);
    spread(&s, most);
    if (s.found.list.count > most) {
        s.found.left_out += s.found.list.count - most;
        s.found.list.count = most;
    }
    return s.found;
}

Candidates list_near(Arena *arena, const Plan *chosen)
{
    Search s = begin_search(arena, chosen);
    s.printed_levels = 2;
    s.tells_refused = true;
    add_plan(&s, NULL, s.chosen);
    try_level(&s, 0);
    s.skips_other_families = true;
    try_level(&s, 1);
    return s.found;
}

/* ---- where the model finds the rules' choice far behind ---- */

/* What the model tells apart. In no cell of its fit is the rules' choice more than 1.15 times as
 * slow as another by it. Of 18 cells of other graphs that it finds beyond this, twelve were 3 % to
 * 6 times faster than by the rules, the others up to 8 % slower; of 8 from 1.3 on three were
 * faster, and three 12 to 39 % slower (H100). */
static const double RESOLUTION = 1.4;

/* Whether the model knows plans of that kind well enough to prefer one: not those that are told how
 * many registers to have, whose spills it does not see, nor single elements, nor rows that are
 * copied at once, nor several rows a CTA that is not persistent, which wait for each other, nor
 * groups, nor rows that are read again. */
static bool is_well_known(const Candidate *c)
{
    enum { WARP_THREADS = 32 };
    for (int i = 0; i < c->plan->kernel_count; i++) {
        const Kernel *k = &c->plan->kernels[i];
        bool together = k->teams > 1 && k->threads_per_row > WARP_THREADS && !is_persistent(k);
        if (walks_rows(k) &&
            (k->vec < SHORT_VECTOR || k->bulk || k->grouped || k->streamed || together))
            return false;
    }
    return !strstr(c->schedule, "per_sm=");
}

static void give_up(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

/* The text of the fastest that is more than *most GB/s fast, which it then is; NULL: none is.
 * Hundreds of plans are made for it, in memory of their own. */
static const char *search_faster(Arena *arena, const Plan *rules, double *most)
{
    jmp_buf escape;
    Arena *scratch = arena_scratch(arena);
    arena_on_out_of_memory(scratch, give_up, &escape);
    if (setjmp(escape)) {
        arena_free(scratch);
        arena_out_of_memory(arena); /* another choice for lack of memory would be another text */
    }
    Search s = begin_search(scratch, rules);
    for (int level = 0; level <= 2; level++) try_level(&s, level);
    const Candidate *best = NULL;
    for (int i = 0; i < s.later.count; i++) {
        double gbps = estimate_speed(s.later.data[i].plan).gbps;
        if (gbps <= *most || !is_well_known(&s.later.data[i])) continue;
        *most = gbps;
        best = &s.later.data[i];
    }
    char text[128] = "";
    if (best && strlen(best->schedule) < sizeof text) strcpy(text, best->schedule);
    arena_free(scratch);
    return *text ? arena_format(arena, "%s", text) : NULL;
}

/* Whether rows are single elements or pairs, by any schedule. */
static bool has_short_vectors(const Plan *plan)
{
    for (int i = 0; i < plan->kernel_count; i++)
        if (walks_rows(&plan->kernels[i]) && plan->kernels[i].vec < SHORT_VECTOR) return true;
    return false;
}

/* The model was fitted on norms and losses of dozens of operations. It knows nothing of what is far
 * larger, and hundreds of plans for that take long. */
static bool is_small(const Plan *plan)
{
    enum { LARGE = 1000 };
    return plan->analysis->graph->nodes.count < LARGE;
}

Plan *find_faster(Arena *arena, Plan *rules)
{
    if (!is_small(rules)) return rules;
    if (rules->advice) return rules; /* which was measured */
    if (!is_model_fitted(&rules->target)) return rules;
    Estimate own = estimate_speed(rules);
    if (own.unknown || has_short_vectors(rules)) return rules;
    if (own.gbps * RESOLUTION >= own.ceiling) return rules; /* nothing can be so much faster */
    double most = own.gbps * RESOLUTION;
    const char *problem, *best = search_faster(arena, rules, &most);
    Plan *plan = best ? try_schedule(arena, rules->analysis, &rules->target, best, &problem) : NULL;
    if (!plan) return rules;
    plan->advice = best;
    plan->by_model = true;
    const char *name = name_plan(arena, rules);
    add_rejection(arena, plan, name ? name : family_name(rules->family),
                  arena_format(arena,
                               "the rules' choice: the model expects %.0f GB/s of it, of %s %.0f",
                               own.gbps, best, most));
    return plan;
}

/* ---- the text of a plan ---- */

/* Of the kernels that walk rows the one that the plan's family is of. */
static const Kernel *main_kernel(const Plan *plan)
{
    for (int i = 0; i < plan->kernel_count; i++)
        if (walks_rows(&plan->kernels[i]) && plan->kernels[i].family == plan->family)
            return &plan->kernels[i];
    return NULL;
}

/* The keys that a plan is named by, in this order. */
static const Key naming[] = {KEY_threads, KEY_rows,   KEY_cluster, KEY_stages,
                             KEY_limit,   KEY_per_sm, KEY_reuse};
enum { NAMES = sizeof naming / sizeof *naming };

static int value_of(const Kernel *k, Key key)
{
    const int values[KEYS] = {
#define KEY(name, plain, tries, value, honoured, refusal, meaning) [KEY_##name] = value,
#define EXACT(...)
#include "schedule/keys.def"
    };
    return values[key];
}

static bool names_plan(Arena *arena, const char *text, const Plan *plan, const char *cuda)
{
    const char *problem;
    const Plan *named = try_schedule(arena, plan->analysis, &plan->target, text, &problem);
    return named && same_launch(&named->launch, &plan->launch) &&
           !strcmp(emit_cuda(arena, named, NULL), cuda);
}

/* A family with some of seven keys, as the plan has them. */
static const char *text_of(Arena *arena, const Plan *plan, const Kernel *k, int given)
{
    Text *text = text_new(arena);
    text_print(text, "%s", family_name(plan->family));
    for (int i = 0; i < NAMES; i++)
        if (given >> i & 1)
            text_print(text, "%c%s=%d", given & ((1 << i) - 1) ? ',' : ':',
                       key_info[naming[i]].name, value_of(k, naming[i]));
    return text_string(text);
}

/* With as many of the keys told as there may be; NULL: they name another plan. */
static const char *name_by(Arena *arena, const Plan *plan, const Kernel *k, const char *cuda,
                           int told)
{
    for (int count = NAMES; count >= 0; count--)
        for (int given = 0; given < 1 << NAMES; given++) {
            if ((given & ~told) || __builtin_popcount((unsigned)given) != count) continue;
            const char *text = text_of(arena, plan, k, given);
            if (names_plan(arena, text, plan, cuda)) return text;
        }
    return NULL;
}

const char *name_plan(Arena *arena, const Plan *plan)
{
    const Kernel *k = main_kernel(plan);
    if (!k) return NULL;
    const char *cuda = emit_cuda(arena, plan, NULL);
    int per_sm = (k->wanted_ctas > 0) << 5;
    int told = 1 | (k->teams > 1) << 1 | (k->cluster > 1) << 2 | (k->stages || k->refill) << 3 |
               (k->limit_ctas > 0) << 4 | (k->reuses ? per_sm : 0) | k->reuses << 6;
    const char *name = name_by(arena, plan, k, cuda, told);
    if (name || (told | per_sm) == told) return name;
    return name_by(arena, plan, k, cuda,
                   told | per_sm); /* which seldom is another than the rules' */
}

/* ---- where the chosen plan spills ---- */

/* Registers that a thread may have beyond those expected, in the kernel with the fewest, of
 * those that walk rows: the others need few. Of the plan that spills what it is `bound` to counts.
 */
static int headroom(const Plan *plan, bool bound)
{
    enum { MOST = 255 };
    int least = MOST;
    for (int i = 0; i < plan->kernel_count; i++) {
        const Kernel *k = &plan->kernels[i];
        int threads =
            plan->launch.kernels[i].threads * (bound && k->wanted_ctas > 1 ? k->wanted_ctas : 1);
        if (!walks_rows(k)) continue;
        int cap = plan->target.registers_per_sm / threads / 8 * 8;
        int left = (cap < MOST ? cap : MOST) - k->registers;
        if (left < least) least = left;
    }
    return least;
}

static bool has_group(const Plan *plan)
{
    for (int i = 0; i < plan->kernel_count; i++)
        if (plan->kernels[i].grouped) return true;
    return false;
}

/* Groups, which are slow, replace a plan only if it has one itself or nothing else has more
 * headroom, and plans that walk the rows more often, which are slower still, only if not even a
 * group has; texts with per_sm= come from add_looser alone. */
static bool may_replace(const Search *s, const Candidate *c)
{
    return (s->groups || !has_group(c->plan)) && passes(c->plan) <= s->passes &&
           !strstr(c->schedule, "per_sm=");
}

static int most_headroom(const Search *s)
{
    int most = 0;
    for (int i = 0; i < s->later.count; i++) {
        const Plan *plan = s->later.data[i].plan;
        if (may_replace(s, &s->later.data[i]) && headroom(plan, false) > most)
            most = headroom(plan, false);
    }
    return most;
}

/* The plan with the least headroom that is at least `from`; NULL: there is none. */
static const Candidate *find_leaner(const Search *s, int from)
{
    const Candidate *best = NULL;
    for (int i = 0; i < s->later.count; i++) {
        const Candidate *c = &s->later.data[i];
        int left = headroom(c->plan, false);
        bool better = may_replace(s, c) && left >= from;
        if (better && (!best || left < headroom(best->plan, false))) best = c;
    }
    return best;
}

/* What the model finds fastest of those that have at least so much headroom; NULL: none of which it
 * knows. */
static const Candidate *find_fastest(const Search *s, int from)
{
    const Candidate *best = NULL;
    double most = 0;
    for (int i = 0; i < s->later.count; i++) {
        const Candidate *c = &s->later.data[i];
        if (!may_replace(s, c) || headroom(c->plan, false) < from) continue;
        double gbps = estimate_speed(c->plan).gbps;
        if (gbps <= most) continue;
        most = gbps;
        best = c;
    }
    return best;
}

/* The chosen plan with fewer CTAs asked for an SM: by a sixth, a third, a half; but with a single
 * one, which has nothing to do while it waits, only where it reads so much at a time. */
static void add_looser(Search *s)
{
    enum { ALONE = 64 << 10 };
    int held = 0;
    int64_t row = 0;
    for (int i = 0; i < s->chosen->kernel_count; i++) {
        const Kernel *k = &s->chosen->kernels[i];
        if (!walks_rows(k) || k->stages || k->refill || k->wanted_ctas <= held) continue;
        held = k->wanted_ctas;
        row = row_bytes(k) * axes_size(&s->a->sizes, k->columns) / k->cluster;
    }
    static const int parts[] = {6, 3, 2};
    for (int i = 0, last = held; i < (int)(sizeof parts / sizeof *parts); i++) {
        int asked = held - (held + parts[i] - 1) / parts[i];
        if (asked < 1 || (asked == 1 && row < ALONE) || asked == last) continue;
        last = asked;
        const char *problem,
            *text = arena_format(s->arena, "%s:per_sm=%d", family_name(s->chosen->family), asked);
        const Plan *plan = try_schedule(s->arena, s->a, s->target, text, &problem);
        if (plan) add_plan(s, text, plan);
    }
}

static void add_named(Search *s, const Plan *plan)
{
    const char *text = plan ? name_plan(s->arena, plan) : NULL;
    if (text) add_plan(s, text, plan);
}

/* What the rules chose before the model was asked, and before advice was taken. */
static void add_unadvised(Search *s)
{
    const char *problem;
    if (s->chosen->by_model) add_named(s, try_schedule(s->arena, s->a, s->target, NULL, &problem));
    add_named(s, schedule_by_rules(s->arena, s->a, s->target, &problem));
}

Candidates list_leaner(Arena *arena, const Plan *chosen, int most)
{
    Search s = begin_search(arena, chosen);
    if (!is_small(chosen)) return s.found;
    for (int level = 0; level <= 1; level++) try_level(&s, level);
    int own = headroom(s.chosen, true);
    s.groups = has_group(s.chosen);
    s.passes = passes(s.chosen);
    if (most_headroom(&s) <= own) s.groups = true;
    if (most_headroom(&s) <= own) s.passes = INT_MAX;
    int largest = most_headroom(&s);
    add_plan(&s, NULL, s.chosen);
    if (s.chosen->advice)
        add_unadvised(&s);
    else
        add_looser(&s);
    const Candidate *fastest = largest > own && is_model_fitted(&chosen->target)
                                   ? find_fastest(&s, own + (largest - own + 1) / 2)
                                   : NULL;
    int others = most + 1 - s.found.list.count - (fastest != NULL);
    for (int i = 1; i <= others && largest > own; i++) {
        const Candidate *next = find_leaner(&s, own + ((largest - own) * i + others - 1) / others);
        add_plan(&s, next->schedule, next->plan);
    }
    if (fastest && s.found.list.count <= most) add_plan(&s, fastest->schedule, fastest->plan);
    return s.found;
}
