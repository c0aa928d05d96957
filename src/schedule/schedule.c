/* schedule/schedule.c: analysis + target -> plan. Tries the ways to cut the graph, from the fewest
 * kernels (fewest passes over memory) on, and keeps the fastest by the model; one with more kernels
 * must be clearly faster. Of large graphs it keeps the first whose kernels all fit the target. */
#include "schedule/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the choice
 * ------------------------------------------------------------------------------ */

static const int *count_tensors(Arena *arena, const Graph *g)
{
    int *before = NEW_ARRAY(arena, int, g->params.count + 1);
    for (int i = 0; i < g->params.count; i++) before[i + 1] = before[i] + !g->params.data[i].scalar;
    return before;
}

static void index_outputs(Scheduler *s)
{
    const Graph *g = s->g;
    s->first_output = NEW_ARRAY(s->arena, int, g->nodes.count);
    s->next_output = NEW_ARRAY(s->arena, int, g->outputs.count + 1);
    for (int i = 0; i < g->nodes.count; i++) s->first_output[i] = -1;
    for (int i = g->outputs.count - 1; i >= 0; i--) {
        const uint32_t id = g->outputs.data[i].value.id;
        s->next_output[i] = s->first_output[id];
        s->first_output[id] = i;
    }
}

static bool *find_columned(Arena *arena, const Analysis *a)
{
    const Graph *g = a->graph;
    bool *columned = NEW_ARRAY(arena, bool, g->nodes.count);
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        columned[i] = info->axes & a->columns;
        for (int k = 0; k < op_info[info->op].arity; k++) columned[i] |= columned[info->args[k].id];
    }
    return columned;
}

/* Whether estimates of registers were fitted to what ptxas does for that architecture. */
static bool is_ptxas_known(const Target *target)
{
    const Target *first = target_find(target->arch);
    return is_model_fitted(first ? first : target);
}

Scheduler reading_scheduler(Arena *arena, const Analysis *a, const Target *target)
{
    return (Scheduler){
        .arena = arena, .a = a, .g = a->graph, .target = target, .fitted = is_ptxas_known(target)};
}

Scheduler *new_scheduler(Arena *arena, const Analysis *a, const Target *target)
{
    Scheduler *s = NEW(arena, Scheduler);
    *s = reading_scheduler(arena, a, target);
    s->operations = NEW(arena, OperationCache);
    s->live = graph_live(a->graph);
    s->tensor_of = count_tensors(arena, a->graph);
    index_outputs(s);
    s->columned = find_columned(arena, a);
    return s;
}

/* Whether complete schedules are as many as the kernels that walk rows. */
static bool has_schedules(Scheduler *s)
{
    int count = 0;
    for (int i = 0; i < s->kernels.count; i++) count += walks_rows(&s->kernels.data[i]);
    if (s->forced.exact && count != s->asked_count)
        s->problem =
            arena_format(s->arena, "exact: the graph has %d kernels, and the schedule names %d",
                         count, s->asked_count);
    return !s->problem;
}

static void begin_kernel(const Scheduler *s, Kernel *k)
{
    k->rides = s->ride;
    k->adds_apart = s->apart_sums;
    k->parts_apart = s->apart_parts;
    k->column_ctas = k->cluster = k->groups = 1;
    k->dynamic = has_dynamic_columns(s, k);
    k->most_ctas = s->forced.ctas;
    if (walks_rows(k)) find_window(s, k);
    if (walks_rows(k)) find_kept(s, k);
}

/* What was asked for holds for the kernels that can be so; the others are as they would be
 * anyway. */
static bool map_walker(Scheduler *s, Kernel *k)
{
    if (s->forced.exact) return fit_schedule(s, k);
    if (choose_kernel(s, k)) {
        s->taken |= s->forced.any;
        return true;
    }
    if (!s->forced.any) return false;
    const Schedule asked = s->forced;
    s->forced = (Schedule){0};
    k->most_ctas = 0;
    bool fits = choose_kernel(s, k);
    s->forced = asked;
    return fits;
}

static bool map_kernels(Scheduler *s)
{
    const Schedule *next = s->asked;
    for (int i = 0; i < s->kernels.count; i++) {
        Kernel *k = &s->kernels.data[i];
        if (s->forced.exact && walks_rows(k)) s->forced = *next++;
        begin_kernel(s, k);
        if (has_too_many_columns(s, k)) return false;
        if (!walks_rows(k))
            map_finish(s, k);
        else if (!map_walker(s, k))
            return false;
    }
    return true;
}

static bool cut_and_map(Scheduler *s, bool ride, bool apart, bool parts)
{
    s->ride = ride;
    s->apart_sums = apart;
    s->apart_parts = parts;
    s->problem = NULL;
    s->taken = false;
    s->refused_row = (Rejection){0};
    s->groups = ride ? find_groups(s) : 0;
    find_reductions_apart(s);
    cut_graph(s);
    if (s->problem) return false;
    return has_schedules(s) && map_kernels(s);
}

/* Cuts the graph as it was cut for a kernel. */
bool cut_alike(Scheduler *s, const Kernel *k)
{
    s->ride = k->rides;
    s->apart_sums = k->adds_apart;
    s->apart_parts = k->parts_apart;
    s->groups = s->ride ? find_groups(s) : 0;
    find_reductions_apart(s);
    cut_graph(s);
    for (int i = 0; i < s->kernels.count; i++) begin_kernel(s, &s->kernels.data[i]);
    return !s->problem;
}

/* The family that a cut stands for: that of the kernel with most to do. */
static Family main_family(const Scheduler *s)
{
    static const int rank[] = {[FAMILY_POINTWISE] = 1,   [FAMILY_ROW] = 3,
                               [FAMILY_GRID_STRIDE] = 4, [FAMILY_WARP_SPECIALIZED] = 5,
                               [FAMILY_COLUMN] = 2,      [FAMILY_FINISH] = 0,
                               [FAMILY_CLEAR] = 0};
    Family best = FAMILY_FINISH;
    for (int i = 0; i < s->kernels.count; i++)
        if (rank[s->kernels.data[i].family] > rank[best]) best = s->kernels.data[i].family;
    return best == FAMILY_FINISH ? FAMILY_POINTWISE : best;
}

void add_rejection(Arena *arena, Plan *plan, const char *schedule, const char *reason)
{
    for (int i = 0; i < plan->rejection_count; i++)
        if (!strcmp(plan->rejections[i].schedule, schedule) &&
            !strcmp(plan->rejections[i].reason, reason))
            return;
    Rejection *more = NEW_ARRAY(arena, Rejection, plan->rejection_count + 1);
    if (plan->rejection_count)
        memcpy(more, plan->rejections, sizeof *more * (size_t)plan->rejection_count);
    more[plan->rejection_count++] = (Rejection){schedule, reason};
    plan->rejections = more;
}

static void reject(Plan *plan, Arena *arena, Family family, const char *reason)
{
    add_rejection(arena, plan, family_name(family), reason);
}

bool reads_rows_again(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        bool several = load->phases & (load->phases - 1);
        bool row = load->access != ACCESS_ROW && axes_within(k->columns, load->axes) &&
                   (load->axes & k->rows || !k->rows); /* a graph without rows is one */
        if (row && several && !is_resident(load) && !is_staged(load)) return true;
    }
    return false;
}

/* Graphs whose cuts are compared: of larger ones the first that fits is taken. */
enum { COMPARED_NODES = 1000 };

/* A way to cut the graph: whether sums over rows ride on the kernels that walk them, whether
 * sums of one number of each row, and reductions over parts of a row, have kernels of their own. */
typedef struct {
    bool ride, apart, parts, fits, asked; /* whether some kernel is as was asked for */
    double time;
} Cut;

static Cut try_cut(Scheduler *s, bool ride, bool apart, bool parts, Plan *plan)
{
    Cut cut = {ride, apart, parts, .fits = cut_and_map(s, ride, apart, parts)};
    cut.asked = cut.fits && s->taken;
    if (cut.fits)
        cut.time = plan_time(s, false);
    else
        reject(plan, s->arena, main_family(s), s->problem);
    return cut;
}

/* Of a plan's time: one that is clearly faster takes less. */
static const double CLEARLY = 0.97;

static bool is_better(const Cut *cut, const Cut *best)
{
    if (!cut->fits || !best->fits) return cut->fits;
    return cut->asked != best->asked ? cut->asked : cut->time < best->time * CLEARLY;
}

static void try_cuts(Scheduler *s, bool parts, Plan *plan, Cut *best, Cut *last)
{
    const bool numbers = adds_numbers(s), large = s->g->nodes.count > COMPARED_NODES;
    for (int ride = 1; ride >= 0; ride--) {
        const bool found = best->fits && (best->asked || !s->forced.any);
        if (!ride && found && (large || !has_sums_over_rows(s))) break;
        for (int apart = 0; apart <= numbers; apart++) {
            *last = try_cut(s, ride, apart, parts, plan);
            if (is_better(last, best)) *best = *last;
            if (large && best->fits && (best->asked || !s->forced.any)) break;
        }
    }
}

/* The fastest by the model of those that are as was asked for; where none is by much, the one with
 * fewest passes over memory. */
static bool choose(Scheduler *s, Plan *plan)
{
    if (s->forced.exact)
        return cut_and_map(s, s->forced.ride == 1, s->forced.apart, s->forced.parts == 2);
    s->apart_parts = false;
    const bool parts = has_parts_of_rows(s);
    Cut best = {0}, last = {0};
    for (int apart = 0; apart <= parts; apart++) {
        if (best.fits && (best.asked || !s->forced.any)) break;
        try_cuts(s, apart, plan, &best, &last);
    }
    if (!best.fits) return false;
    if (last.ride == best.ride && last.apart == best.apart && last.parts == best.parts) return true;
    return cut_and_map(s, best.ride, best.apart, best.parts);
}

/* ---- the plan
 * -------------------------------------------------------------------------------- */

/* Of a level: kernels that end sums themselves, where CTAs have whole groups, and finish kernels
 * come last, for both may load what other kernels of the level have stored. */
static int turn(const Kernel *k)
{
    return k->finishes >= 0 ? 2 : k->kept && k->accumulator_count;
}

static int order(const void *left, const void *right)
{
    const Kernel *a = left, *b = right;
    if (a->level != b->level) return a->level < b->level ? -1 : 1;
    return turn(a) != turn(b) ? turn(a) - turn(b) : a->index - b->index;
}

static void sort_kernels(Scheduler *s, Plan *plan)
{
    Kernel *k = s->kernels.data;
    int count = s->kernels.count;
    for (int i = 0; i < count; i++) k[i].index = i;
    if (count) qsort(k, (size_t)count, sizeof *k, order);
    int *moved = NEW_ARRAY(s->arena, int, count + 1);
    for (int i = 0; i < count; i++) moved[k[i].index] = i;
    for (int i = 0; i < count; i++)
        if (k[i].finishes >= 0) k[i].finishes = moved[k[i].finishes];
    plan->kernels = k;
    plan->kernel_count = count;
}

/* A kernel before each whose CTAs exchange through a mailbox. */
static void insert_clears(Scheduler *s, Plan *plan)
{
    enum { THREADS = 256 };
    Kernel *all = NEW_ARRAY(s->arena, Kernel, 2 * plan->kernel_count + 1);
    int *moved = NEW_ARRAY(s->arena, int, plan->kernel_count + 1), count = 0;
    for (int i = 0; i < plan->kernel_count; i++) {
        const Kernel *k = &plan->kernels[i];
        if (is_grouped(k)) {
            all[count] = (Kernel){.family = FAMILY_CLEAR,
                                  .level = k->level,
                                  .vec = 1,
                                  .tiles = 1,
                                  .threads_per_row = THREADS,
                                  .teams = 1,
                                  .groups = 1,
                                  .cluster = 1,
                                  .column_ctas = 1,
                                  .finishes = -1,
                                  .clears = count + 1};
            count++;
        }
        moved[i] = count;
        all[count++] = *k;
    }
    for (int i = 0; i < count; i++)
        if (all[i].finishes >= 0) all[i].finishes = moved[all[i].finishes];
    plan->kernels = all;
    plan->kernel_count = count;
}

static bool speaks_of_key(const char *problem)
{
    return problem[strcspn(problem, " :")] == ':';
}

/* The family `cluster` is whichever can have its rows shared by several CTAs: of all families and
 * numbers of CTAs, the fastest by the model. */
static Plan *try_clusters(Arena *arena, const Analysis *a, const Target *target, const char *keys,
                          const char **problem)
{
    enum { MOST = 16 };
    static const char *const families[] = {"warp-specialized", "grid-stride", "row"};
    bool given = strstr(keys, "cluster=") != NULL;
    const char *why =
        NULL; /* the first reason that speaks of a key, `cluster: …`, or the last of all */
    static const char one[] = "cluster=1";
    const char *alone = strstr(keys, one);
    Plan *best = NULL;
    if (alone && strchr(",", alone[sizeof one - 1])) { /* , or the end */
        *problem = "cluster: the family cluster needs 2 to 16 CTAs";
        return NULL;
    }
    for (int i = 0; i < 3; i++)
        for (int ctas = 2; ctas <= MOST; ctas = given ? MOST + 1 : 2 * ctas) {
            const char *text = arena_format(arena, "%s%s", families[i], keys);
            if (!given) text = arena_format(arena, "%s%ccluster=%d", text, *keys ? ',' : ':', ctas);
            Plan *plan = try_schedule(arena, a, target, text, problem);
            if (plan && (!best || plan->time < best->time)) best = plan;
            if (!plan && (!why || !speaks_of_key(why))) why = *problem;
        }
    *problem = best ? NULL : why;
    return best;
}

/* What a launch cannot pass; NULL: nothing. */
static const char *find_excess(Arena *arena, const LaunchPlan *l)
{
    for (int i = 0; i < l->kernel_count; i++) {
        const int args = most_args(&l->kernels[i]);
        if (args > MAX_LAUNCH_ARGS)
            return too_many(arena, "arguments: a kernel", args, MAX_LAUNCH_ARGS);
    }
    return l->slot_count > MAX_LAUNCH_SLOTS
               ? too_many(arena, "workspace: a plan", l->slot_count, MAX_LAUNCH_SLOTS)
               : NULL;
}

static const char *read_forced(Scheduler *s, const char *text)
{
    Schedule *schedules;
    const char *problem = parse_schedules(s->arena, text, &schedules, &s->asked_count);
    if (problem) return problem;
    s->asked = schedules;
    s->forced = schedules[0];
    return NULL;
}

bool choose_as(Scheduler *s, const Schedule *asked)
{
    s->forced = *asked;
    return choose(s, NEW(s->arena, Plan)) && s->taken;
}

static const char OTHER_AXES[] = "axes: this graph's rows have no such columns";

static Plan *make_plan(Scheduler *s, const char *forced, const char **problem)
{
    Plan *plan = NEW(s->arena, Plan);
    *problem = forced ? read_forced(s, forced) : NULL;
    if (!*problem && s->forced.axes && s->forced.axes != (int)s->a->choice + 1)
        *problem = OTHER_AXES;
    if (!*problem && !choose(s, plan)) *problem = s->problem;
    if (!*problem) plan->time = plan_time(s, true);
    if (!*problem && forced && !s->forced.exact && !s->taken) *problem = find_refusal(s);
    if (*problem) return NULL;
    plan->analysis = s->a;
    plan->target = *s->target;
    plan->family = forced && !s->forced.exact ? s->forced.family : main_family(s);
    for (int i = 0; i < s->kernels.count; i++) plan->tuned |= s->kernels.data[i].tuned;
    if (s->refused_row.schedule)
        add_rejection(s->arena, plan, s->refused_row.schedule,
                      arena_format(s->arena, "a row of the table of %s: %s", s->target->gpu,
                                   s->refused_row.reason));
    sort_kernels(s, plan);
    find_backwards(plan);
    find_dropped(s, plan);
    insert_clears(s, plan);
    build_launch(s, plan);
    if ((*problem = find_excess(s->arena, &plan->launch))) return NULL;
    plan->slots = s->slots.data;
    plan->slot_count = s->slots.count;
    explain_cuts(s, plan);
    return plan;
}

Plan *plan_columns(Arena *arena, const Analysis *a, const Target *target)
{
    const char *problem;
    return make_plan(new_scheduler(arena, a, target), NULL, &problem);
}

/* Where the schedules of each part are told, with `/` between, those of the next. */
static const char *next_part(const char *forced)
{
    const char *end = strchr(forced, '/');
    return end ? end + 1 : forced;
}

/* A plan of all parts; NULL where one has none, or none can be as `forced` wants it: the others are
 * as they would be anyway. */
static Plan *plan_parts(Arena *arena, const Analysis *a, const Target *target, const char *forced,
                        const char **problem)
{
    Plan **plans = NEW_ARRAY(arena, Plan *, a->part_count);
    const char *refused = NULL, *why;
    bool taken = false;
    for (int i = 0; i < a->part_count; i++) {
        if (forced && i) forced = next_part(forced);
        const char *mine = forced ? arena_copy(arena, forced, strcspn(forced, "/")) : NULL;
        plans[i] = mine ? try_schedule(arena, a->parts[i], target, mine, &why) : NULL;
        taken |= plans[i] != NULL;
        if (forced && !plans[i] && (!refused || speaks_of_key(why))) refused = why;
        if (!plans[i]) plans[i] = try_schedule(arena, a->parts[i], target, NULL, problem);
        if (!plans[i]) return NULL;
    }
    if (forced && !taken) {
        *problem = refused;
        return NULL;
    }
    Plan *plan = join_plans(arena, a, plans);
    *problem = find_excess(arena, &plan->launch);
    return *problem ? NULL : plan;
}

Plan *try_schedule(Arena *arena, const Analysis *a, const Target *target, const char *forced,
                   const char **problem)
{
    enum { CLUSTER = sizeof "cluster" - 1 };
    if (forced && !strncmp(forced, "cluster", CLUSTER) && strcspn(forced, ":") == CLUSTER)
        return try_clusters(arena, a, target, forced + CLUSTER, problem);
    if (a->part_count) return plan_parts(arena, a, target, forced, problem);
    Plan *plan = make_plan(new_scheduler(arena, a, target), forced, problem);
    if (!a->other || (plan && forced)) return plan;
    const char *why;
    Plan *other = try_schedule(arena, a->other, target, forced, &why);
    if (!plan && (!forced || *problem == OTHER_AXES)) *problem = why;
    return !plan || (other && other->time < plan->time * CLEARLY) ? other : plan;
}

/* "axes: this graph's columns can be reduced [B, S] or last [S]" */
static const char *list_columns(Arena *arena, const Analysis *a)
{
    Text *text = text_new(arena);
    const Graph *g = a->graph;
    text_print(text, "axes: this graph's columns can be");
    for (const Analysis *one = a; one; one = one->other)
        text_print(text, "%s %s %s",
                   one == a     ? ""
                   : one->other ? ","
                                : " or",
                   key_value(arena, KEY_axes, (int)one->choice + 1),
                   axes_text(arena, g, one->columns));
    return text_string(text);
}

Plan *schedule(Arena *arena, Diagnostics *d, const Analysis *a, const Target *target,
               const char *forced, bool *refused)
{
    const char *problem;
    Plan *plan = try_schedule(arena, a, target, forced, &problem);
    if (!plan && problem == OTHER_AXES) problem = list_columns(arena, a);
    if (!plan) {
        *refused = true;
        Span at = a->graph->span;
        report_error(d, forced ? whole_file(at.source) : at, NULL, "%s: %s",
                     forced ? "schedule refused" : "no schedule", problem);
        stop(d);
    }
    plan->forced = forced;
    return plan;
}
