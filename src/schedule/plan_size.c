/* schedule/plan_size.c: refuses plans whose text would be too long. Each phase computes again what it
 * needs of a row's columns, and each kernel what it needs of the inputs. So the text of reductions
 * that wait for each other grows with the square of their number. */
#include "schedule/internal.h"

enum { MOST_PHASES = 1024, MOST_VALUES = 1 << 22 };

/* What is computed for its own sake, by phase. */
typedef struct {
    LIST(Node) nodes;
    LIST(int) next; /* by place in nodes: 1 + the place of another of the phase; 0: none */
    int *first;     /* by phase: the same */
} Roots;

static void add_root(const Scheduler *s, Roots *roots, Node n, int phase)
{
    *list_push(s->arena, &roots->nodes) = n;
    *list_push(s->arena, &roots->next) = roots->first[phase];
    roots->first[phase] = roots->nodes.count;
}

static Roots find_roots(const Scheduler *s, const Kernel *k)
{
    Roots roots = {.first = NEW_ARRAY(s->arena, int, k->phases)};
    for (int i = 0; i < k->inner_count; i++)
        add_root(s, &roots, arg(s->g, k->inner[i].node, 0), k->inner[i].phase);
    for (int i = 0; i < k->store_count; i++)
        add_root(s, &roots, k->stores[i].node, k->stores[i].phase);
    for (int i = 0; i < k->accumulator_count; i++)
        add_root(s, &roots, operand_of(s->g, &k->accumulators[i]), k->accumulators[i].phase);
    return roots;
}

/* How many values of columns a phase computes, and adds them to `all`; no more than MOST_VALUES.
 * `seen`, by node id, is the last phase that has computed it, and one more. */
static void count_phase(const Scheduler *s, const Kernel *k, const Roots *roots, int phase,
                        int *seen, int64_t *all)
{
    LIST(Node) left = {0};
    for (int i = roots->first[phase]; i; i = roots->next.data[i - 1])
        *list_push(s->arena, &left) = roots->nodes.data[i - 1];
    while (left.count && *all <= MOST_VALUES) {
        const Node n = left.data[--left.count];
        const NodeInfo *info = node(s->g, n);
        if (seen[n.id] == phase + 1 || !(info->axes & k->columns)) continue;
        seen[n.id] = phase + 1;
        ++*all;
        for (int i = 0; k->computed[n.id] && !is_reduction(s->g, n) && i < op_info[info->op].arity;
             i++)
            *list_push(s->arena, &left) = info->args[i];
    }
}

/* Those of columns in each phase, those of rows once. */
static void count_values(const Scheduler *s, const Kernel *k, int64_t *all)
{
    const Roots roots = find_roots(s, k);
    int *seen = NEW_ARRAY(s->arena, int, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++)
        *all += k->computed[i] && !(s->g->nodes.data[i].axes & k->columns);
    for (int phase = 0; phase < k->phases; phase++) count_phase(s, k, &roots, phase, seen, all);
}

const char *find_oversize(const Scheduler *s)
{
    int64_t all = 0;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        if (k->phases > MOST_PHASES)
            return arena_format(
                s->arena,
                "phases: a kernel has %d, and the limit is %d: so many of its reductions wait for each other",
                k->phases, MOST_PHASES);
        if (k->computed && all <= MOST_VALUES) count_values(s, k, &all);
    }
    if (all <= MOST_VALUES) return NULL;
    return arena_format(
        s->arena, "values: the phases of all kernels together compute more than the limit of %d",
        MOST_VALUES);
}

const char *too_many(Arena *arena, const char *what, int count, int most)
{
    return arena_format(
        arena, "%s has %d, and the limit is %d: ask for fewer outputs at a time (--outputs)", what,
        count, most);
}

/* Each load, store and sum over rows is an argument at least, and each reduction that has a kernel
 * by itself is stored. */
const char *find_crowd(const Scheduler *s)
{
    int most = 0;
    for (int i = 0; i < s->kernels.count; i++) {
        const Kernel *k = &s->kernels.data[i];
        const bool by_itself = k->inner_count && reduction_way(s, k->inner[0].node) == BY_ITSELF;
        const int counts[] = {k->load_count + k->store_count, k->accumulator_count,
                              by_itself ? k->inner_count : 0};
        for (int c = 0; c < 3; c++) most = counts[c] > most ? counts[c] : most;
    }
    if (most > MAX_LAUNCH_ARGS)
        return too_many(s->arena, "arguments: a kernel", most, MAX_LAUNCH_ARGS);
    if (s->slots.count > MAX_LAUNCH_SLOTS)
        return too_many(s->arena, "workspace: a plan", s->slots.count, MAX_LAUNCH_SLOTS);
    return NULL;
}

const char *find_depth(const Scheduler *s)
{
    int top = 0;
    for (int i = 1; i < s->g->nodes.count; i++)
        if (s->live[i] && s->level[i] > top) top = s->level[i];
    if (top <= MAX_LAUNCH_SLOTS) return NULL;
    return arena_format(
        s->arena,
        "kernels: %d would follow each other, and the limit is %d: so many reductions over rows wait for each other",
        top + 1, MAX_LAUNCH_SLOTS + 1);
}
