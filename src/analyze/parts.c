/* analyze/parts.c: outputs that share no value, as norms of q [M, Q] and of k [M, K], need not have
 * rows along the same axes.
 *
 * The first part takes the outputs that have the graph's columns, and all values without axes. The
 * other outputs are analyzed in turn as a graph of their own. */
#include "analyze/analyze.h"

enum { MOST_PARTS = 16 };

typedef struct {
    const Graph *g;
    int *root;     /* by output: one of the outputs that share a value with it, or itself */
    AxisSet *axes; /* by root: the axes of everything that these outputs need */
    int *part;     /* by output: its part, from 1; 0: none so far */
} Outputs;

static int root_of(const Outputs *o, int output)
{
    while (o->root[output] != output) output = o->root[output] = o->root[o->root[output]];
    return output;
}

static Graph *with_outputs(Arena *arena, const Graph *g, const int *part, int which)
{
    Graph *only = NEW(arena, Graph);
    *only = *g;
    only->outputs.data = NEW_ARRAY(arena, Output, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) {
        only->outputs.data[i] = g->outputs.data[i];
        if (part[i] != which) only->outputs.data[i].value = (Node){0};
    }
    return only;
}

static bool is_leaf(Op op)
{
    return op == OP_PARAM || op == OP_CONST || op == OP_INDEX || op == OP_SIZE;
}

/* Joins two roots; the new root is `into`. */
static void join_roots(Outputs *o, int from, int into)
{
    o->root[root_of(o, from)] = root_of(o, into);
}

/* Joins outputs that share a value; they may share inputs. From the outputs down each value is
 * owned by one of the outputs that need it, which is joined with all others that do. */
static void join_outputs(Arena *arena, Outputs *o)
{
    const Graph *g = o->g;
    int *owner = NEW_ARRAY(arena, int, g->nodes.count); /* an output, from 1 */
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *output = &g->outputs.data[i];
        const uint32_t id = output->value.id;
        if (!id) continue;
        o->axes[i] = output->axes | g->nodes.data[id].axes;
        if (is_leaf(g->nodes.data[id].op)) continue;
        if (owner[id]) join_roots(o, owner[id] - 1, i);
        owner[id] = i + 1;
    }
    for (int id = g->nodes.count - 1; id > 0; id--) {
        const NodeInfo *info = &g->nodes.data[id];
        for (int k = 0; owner[id] && k < op_info[info->op].arity; k++) {
            const uint32_t operand = info->args[k].id;
            o->axes[owner[id] - 1] |= g->nodes.data[operand].axes;
            if (is_leaf(g->nodes.data[operand].op)) continue;
            if (owner[operand])
                join_roots(o, owner[operand] - 1, owner[id] - 1);
            else
                owner[operand] = owner[id];
        }
    }
}

static void join_axes(Outputs *o)
{
    for (int i = 0; i < o->g->outputs.count; i++) o->axes[root_of(o, i)] |= o->axes[i];
    for (int i = 0; i < o->g->outputs.count; i++) o->axes[i] = o->axes[root_of(o, i)];
}

/* Takes a part: of the outputs that are left, those that have their columns, and those without
 * axes; false: none is left. */
static bool take_part(Arena *arena, const Sizes *sizes, Outputs *o, int which)
{
    const Graph *left = with_outputs(arena, o->g, o->part, 0);
    const bool *live = graph_live(left);
    AxisSet columns = find_columns(left, sizes, live, live_axes(left, live)), axes = 0;
    bool any = false;
    for (int i = 0; i < left->outputs.count; i++)
        if (left->outputs.data[i].value.id && o->axes[i] & columns) axes |= o->axes[i];
    for (int i = 0; i < left->outputs.count; i++) {
        if (!left->outputs.data[i].value.id || !axes_within(o->axes[i], axes)) continue;
        o->part[i] = which;
        any = true;
    }
    return any;
}

/* A part's columns are compiled in, so they cannot be the rows of another part. */
static bool are_apart(const Analysis *const *parts, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            if (i != j && parts[i]->fixed & (parts[j]->rows | parts[j]->columns)) return false;
    return true;
}

static int find_parts(Arena *arena, const Graph *g, const Sizes *sizes, const Analysis **parts)
{
    const int count = g->outputs.count;
    Outputs o = {g, NEW_ARRAY(arena, int, count + 1), NEW_ARRAY(arena, AxisSet, count + 1),
                 NEW_ARRAY(arena, int, count + 1)};
    for (int i = 0; i < count; i++) o.root[i] = i;
    join_outputs(arena, &o);
    join_axes(&o);
    int found = 0;
    while (found < MOST_PARTS && take_part(arena, sizes, &o, found + 1)) found++;
    for (int i = 0; i < found; i++)
        parts[i] = analyze_alone(arena, with_outputs(arena, g, o.part, i + 1), sizes, 0);
    return found == MOST_PARTS || !are_apart(parts, found) ? 0 : found;
}

static void add_part(Arena *arena, Analysis *whole, const Analysis *part, int *phase)
{
    Reduction *reductions =
        NEW_ARRAY(arena, Reduction, whole->reduction_count + part->reduction_count + 1);
    Persistent *persistent =
        NEW_ARRAY(arena, Persistent, whole->persistent_count + part->persistent_count + 1);
    for (int i = 0; i < whole->reduction_count; i++) reductions[i] = whole->reductions[i];
    for (int i = 0; i < part->reduction_count; i++)
        reductions[whole->reduction_count + i] = part->reductions[i];
    for (int i = 0; i < whole->persistent_count; i++) persistent[i] = whole->persistent[i];
    for (int i = 0; i < part->persistent_count; i++)
        persistent[whole->persistent_count + i] = part->persistent[i];
    whole->reductions = reductions;
    whole->persistent = persistent;
    whole->reduction_count += part->reduction_count;
    whole->persistent_count += part->persistent_count;
    whole->rows |= part->rows;
    whole->columns |= part->columns;
    whole->fixed |= part->fixed;
    if (part->phases > whole->phases) whole->phases = part->phases;
    for (int i = 0; i < whole->graph->nodes.count; i++)
        if (part->phase[i] > phase[i]) phase[i] = part->phase[i];
}

/* Collects the facts of all parts; each input once. */
static void join_parts(Arena *arena, Analysis *whole, const Analysis *const *parts, int count)
{
    int *phase = NEW_ARRAY(arena, int, whole->graph->nodes.count);
    whole->rows = whole->columns = whole->fixed = 0;
    whole->reduction_count = whole->persistent_count = whole->phases = 0;
    whole->phase = phase;
    for (int i = 0; i < count; i++) add_part(arena, whole, parts[i], phase);
    whole->parts = parts;
    whole->part_count = count;
}

static Analysis *analyze_parts(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns)
{
    Analysis *whole = analyze_alone(arena, g, sizes, columns);
    const Analysis **parts = NEW_ARRAY(arena, const Analysis *, MOST_PARTS);
    const int count = columns ? 0 : find_parts(arena, g, sizes, parts);
    if (count > 1) join_parts(arena, whole, parts, count);
    return whole;
}

/* What corrects squares depends on the columns, and so the graph does, too. */
static Analysis *analyze_with(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns)
{
    Analysis *a = analyze_parts(arena, g, sizes, columns);
    Graph *corrected = correct_moments(arena, a);
    return corrected ? analyze_parts(arena, corrected, sizes, columns) : a;
}

Analysis *analyze_as_is(Arena *arena, const Graph *g, const Sizes *sizes)
{
    return analyze_parts(arena, g, sizes, 0);
}

/* Elements of the longest vector of which so many are whole ones. */
static int64_t whole_vector(int64_t size)
{
    enum { LONGEST = 16 };
    return size % LONGEST ? size & -size : LONGEST;
}

/* Where lines along the last axis are no whole vectors: the fewest of the last axes that make longer
 * ones together, as the channels and pixels of an image; 0: none do, or it takes all axes. */
static AxisSet find_wider(const Sizes *sizes, AxisSet axes)
{
    const AxisSet last = last_of(axes);
    const int64_t least = whole_vector(axes_size(sizes, last));
    AxisSet wider = last, best = 0;
    int64_t longest = least;
    while (wider != axes) {
        wider |= last_of(axes & ~wider);
        const int64_t length = whole_vector(axes_size(sizes, wider));
        if (wider != axes && length > longest) best = wider, longest = length;
    }
    return best;
}

/* The axes that a reduction of the largest tensors removes, where they have a handful of elements,
 * as the experts of a token or the window of a pool, and do not include the first: that is most
 * often the batch, whose size is not to be compiled in. 0: no reduction does. */
static AxisSet find_short(const Graph *g, const Sizes *sizes)
{
    enum { MOST = 16 };
    const bool *live = graph_live(g);
    const AxisSet axes = live_axes(g, live), first = axes & -axes;
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        if (!live[i] || !is_reduction(g, n) || node(g, arg(g, n, 0))->axes != axes) continue;
        const AxisSet reduced = node(g, n)->reduced;
        const int64_t size = axes_size(sizes, reduced);
        if (size > 1 && size <= MOST && !(reduced & first)) return reduced;
    }
    return 0;
}

static Analysis *analyze_as(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns,
                            Columns choice)
{
    Analysis *a = analyze_with(arena, g, sizes, columns);
    a->choice = choice;
    return a;
}

/* Appends an analysis to the list that ends with `end`; returns its new end. */
static Analysis *add_choice(Analysis *end, Analysis *other)
{
    end->other = other;
    other->first = end->first;
    return other;
}

/* With the last axis, then with reductions split. */
static Analysis *add_scattered(Arena *arena, const Graph *g, const Sizes *sizes, Analysis *end)
{
    const bool *live = graph_live(g);
    const AxisSet axes = live_axes(g, live), columns = find_split(g, live, axes);
    end = add_choice(end, analyze_as(arena, g, sizes, last_of(axes), COLUMNS_LAST));
    if (!columns) return end;
    const Graph *split = split_reductions(arena, g, sizes, columns);
    return add_choice(end, analyze_as(arena, split, sizes, columns, COLUMNS_SPLIT));
}

static bool has_inner(const Analysis *a)
{
    for (int i = 0; i < a->reduction_count; i++)
        if (a->reductions[i].kind == KIND_INNER) return true;
    return false;
}

Analysis *analyze(Arena *arena, const Graph *g, const Sizes *sizes)
{
    Analysis *a = analyze_with(arena, g, sizes, 0);
    if (a->part_count) return a;
    const bool scattered = a->rows > (a->columns & -a->columns); /* rows stand between columns */
    const AxisSet wider = find_wider(sizes, live_axes(g, graph_live(g)));
    Analysis *end = scattered ? add_scattered(arena, g, sizes, a) : a;
    if (wider && (scattered || !has_inner(a)))
        end = add_choice(end, analyze_as(arena, g, sizes, wider, COLUMNS_WIDER));
    const AxisSet few = has_inner(a) ? 0 : find_short(g, sizes);
    if (few) add_choice(end, analyze_as(arena, g, sizes, few, COLUMNS_SHORT));
    return a;
}
