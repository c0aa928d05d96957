/* graph/grad_save.c: which outputs of the forward pass the backward pass reads instead of computing
 * them again: those with which it costs least.
 *
 * Costs are of a row of nominal size, so that the choice does not depend on the sizes: mostly the
 * bytes that are read, then the reductions that wait for each other, then instructions. */
#include "graph/grad_internal.h"

#include <math.h>
#include <string.h>

enum { NOMINAL_SIZE = 1024 };

static double bytes_of(AxisSet axes, DType dtype)
{
    double bytes = dtype_info[dtype].bytes;
    for (int i = axes_count(axes); i > 0; i--) bytes *= NOMINAL_SIZE;
    return bytes;
}

static int instructions(Op op)
{
    static const int count[COST_COUNT] = {[COST_CHEAP] = 1,
                                          [COST_DIVIDE] = 4,
                                          [COST_EXP] = 4,
                                          [COST_FUNCTION] = 6,
                                          [COST_SERIES] = 20};
    return op_info[op].class == CLASS_LEAF ? 0 : count[op_info[op].cost];
}

/* By node: it is computed, and not to the same bits by every kernel. */
static bool *find_rounded(const Grad *s)
{
    const Graph *g = s->g;
    bool *rounded = NEW_ARRAY(s->arena, bool, g->nodes.count);
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        const bool computes = op_info[info->op].class != CLASS_LEAF && info->op != OP_CONVERT &&
                              info->op != OP_CAST && op_info[info->op].error > 0;
        rounded[id] = computes && type_is_float(info->type);
        for (int i = 0; i < op_info[info->op].arity; i++) rounded[id] |= rounded[info->args[i].id];
    }
    return rounded;
}

/* Whether the backward pass would compute a value again and compare it with its saved maximum. */
static bool compares_saved(const Grad *s, const bool *needed, const int *saved_as)
{
    const bool *rounded = find_rounded(s);
    for (uint32_t id = 1; id < (uint32_t)s->g->nodes.count; id++) {
        const Node extreme = needed[id] ? compared_extreme(s->g, (Node){id}) : (Node){0};
        if (extreme.id && rounded[extreme.id] && (int)extreme.id < s->forward_count &&
            saved_as[extreme.id] >= 0)
            return true;
    }
    return false;
}

static double cost(Grad *s, const bool *saved)
{
    /* What a phase and an instruction cost, as shares of the bytes. */
    const double phase = 0.05, instruction = 0.0002;
    const int *saved_as = find_saved(s, saved);
    const Node *gradients = build_gradients(s, saved);
    const bool *needed = find_needed(s, gradients, saved_as);
    if (compares_saved(s, needed, saved_as)) return HUGE_VAL;
    int *phases = NEW_ARRAY(s->arena, int, s->g->nodes.count);
    double bytes = 0, work = 0;
    int last = 0;
    for (int id = 1; id < s->g->nodes.count; id++) {
        const NodeInfo *info = &s->g->nodes.data[id];
        const int output = id < s->forward_count ? saved_as[id] : -1;
        if (!needed[id]) continue;
        if (output >= 0) {
            bytes += bytes_of(info->axes, s->forward->outputs.data[output].dtype);
            continue;
        }
        if (info->op == OP_PARAM)
            bytes += bytes_of(info->axes, s->g->params.data[info->param].dtype);
        for (int i = 0; i < op_info[info->op].arity; i++)
            if (phases[info->args[i].id] > phases[id]) phases[id] = phases[info->args[i].id];
        phases[id] += op_info[info->op].class == CLASS_REDUCE;
        if (phases[id] > last) last = phases[id];
        work += instructions(info->op);
    }
    return bytes * (1 + phase * last + instruction * work);
}

/* Whether reading an output is as good as computing it: a statistic wants at least f32, and 8 bits
 * are too few for anything. */
static bool is_worth_saving(const Grad *s, const Output *o, bool is_statistic)
{
    const Op op = node(s->g, o->value)->op;
    const bool single = dtype_info[o->dtype].bytes >= 4;
    if (op == OP_PARAM || op == OP_CONST || name_find(&s->gradients, o->name) >= 0) return false;
    if (!dtype_is_float(o->dtype)) return true;
    return single || (!is_statistic && dtype_info[o->dtype].bytes == 2);
}

/* How many choices are tried: fewer of a larger graph. */
static int count_trials(const Grad *s)
{
    enum { MOST_TRIALS = 200, LEAST_TRIALS = 8, NODES = 1 << 20 };
    const int trials = NODES / (s->forward_count + 1);
    return trials > MOST_TRIALS ? MOST_TRIALS : trials < LEAST_TRIALS ? LEAST_TRIALS : trials;
}

/* Saves one output after another, as long as that makes the whole cheaper. */
static void choose_cheapest(Grad *s, const bool *allowed, bool *saved)
{
    const int count = s->forward->outputs.count;
    int trials = count_trials(s);
    double least = cost(s, saved);
    for (;;) {
        int best = -1;
        for (int i = 0; i < count; i++) {
            if (!allowed[i] || saved[i] || trials-- <= 0) continue;
            saved[i] = true;
            const double with = cost(s, saved);
            saved[i] = false;
            arena_ask(s->arena);
            if (with >= least) continue;
            least = with;
            best = i;
        }
        if (best < 0) return;
        saved[best] = true;
    }
}

static bool *choose_named(Grad *s, GradRequest *request, bool *saved)
{
    const Graph *g = s->forward;
    const char **names = NEW_ARRAY(s->arena, const char *, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) names[i] = g->outputs.data[i].name;
    for (const char *at = request->save; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        const char *name = arena_copy(s->arena, at, length);
        int found = -1;
        for (int i = 0; i < g->outputs.count; i++)
            if (!strcmp(names[i], name)) found = i;
        at += length;
        const bool taken = found >= 0 && name_find(&s->gradients, name) >= 0;
        if (found >= 0 && !taken) {
            saved[found] = true;
            continue;
        }
        request->is_usage = true;
        if (taken)
            report_error(s->d, g->outputs.data[found].span, "give the output another name",
                         "'%s' cannot be saved: a gradient has that name", name);
        else
            report_error(s->d, whole_file(g->source),
                         hint_name(s->arena, name, names, g->outputs.count),
                         "graph '%s' has no output '%s' to save", g->name, name);
        stop(s->d);
    }
    return saved;
}

bool *choose_saved(Grad *s, GradRequest *request, Gradient *result)
{
    const Graph *g = s->forward;
    bool *saved = NEW_ARRAY(s->arena, bool, g->outputs.count + 1);
    bool *allowed = NEW_ARRAY(s->arena, bool, g->outputs.count + 1);
    if (request->save && !strcmp(request->save, "none")) return saved;
    if (request->save && strcmp(request->save, "auto") != 0) return choose_named(s, request, saved);
    const bool *is_statistic = find_statistics(s->arena, g);
    for (int i = 0; i < g->outputs.count; i++) {
        allowed[i] = is_worth_saving(s, &g->outputs.data[i], is_statistic[i]);
        result->has_choice |= allowed[i];
    }
    result->chose_saved = true;
    if (result->has_choice) choose_cheapest(s, allowed, saved);
    return saved;
}
