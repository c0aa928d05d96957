/* reference_facts.c: what can be said of a graph's values before any is computed: which
 * are exact in f32 arithmetic, which cannot be negative, and which outputs step on a
 * computed float. */
#include "reference.h"
#include "reference_steps.h"

#include <math.h>

/* Operations that only choose among their operands or change signs are exact on exact
 * operands. */
static bool rounds(const NodeInfo *info)
{
    const OpClass class = op_info[info->op].class;
    if (!type_is_float(info->type) || class == CLASS_LEAF || info->op == OP_CONVERT ||
        info->op == OP_CAST)
        return false;
    if (class == CLASS_REDUCE)
        return info->op != OP_MAX_OVER && info->op != OP_MIN_OVER;
    return op_info[info->op].error > 0;
}

bool *find_exact(Arena *arena, const Graph *g)
{
    bool *exact = NEW_ARRAY(arena, bool, g->nodes.count);
    exact[0] = true;
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        exact[id] = !rounds(info);
        for (int i = 0; i < MAX_OPERANDS; i++)
            exact[id] = exact[id] && exact[info->args[i].id];
    }
    return exact;
}

static bool is_even_power(const Graph *g, const NodeInfo *info)
{
    const NodeInfo *exponent = node(g, info->args[1]);
    return exponent->op == OP_CONST && type_is_float(exponent->type) &&
           fmod(exponent->number, 2) == 0;
}

static bool is_nonnegative(const Graph *g, const NodeInfo *info, const bool *known)
{
    const bool a = known[info->args[0].id], b = known[info->args[1].id];
    switch (info->op) {
    case OP_CONST: return type_is_float(info->type) && info->number >= 0;
    case OP_ABS: case OP_SQRT: case OP_EXP: case OP_EXP2: case OP_SIGMOID: case OP_VAR: return true;
    case OP_MUL: return info->args[0].id == info->args[1].id || (a && b);
    case OP_ADD: case OP_DIV: case OP_MIN: return a && b;
    case OP_MAX: return a || b;
    case OP_WHERE: return b && known[info->args[2].id];
    case OP_POW: return a || is_even_power(g, info);
    case OP_SUM: case OP_MEAN: case OP_PROD: case OP_MAX_OVER: case OP_MIN_OVER:
    case OP_CONVERT: case OP_CAST: return a;
    default: return false;
    }
}

bool *find_nonnegative(Arena *arena, const Graph *g)
{
    bool *known = NEW_ARRAY(arena, bool, g->nodes.count);
    for (int id = 1; id < g->nodes.count; id++)
        known[id] = is_nonnegative(g, &g->nodes.data[id], known);
    return known;
}

static bool is_infinite_constant(const Graph *g, Node n)
{
    const NodeInfo *info = node(g, n);
    if (info->op == OP_NEG || info->op == OP_CONVERT)
        return is_infinite_constant(g, info->args[0]);
    return info->op == OP_CONST && type_is_float(info->type) && isinf(info->number);
}

static bool is_comparison_of_floats(const Graph *g, const NodeInfo *info)
{
    return is_comparison(info->op) && type_is_float(node(g, info->args[0])->type) &&
           !is_infinite_constant(g, info->args[0]) && !is_infinite_constant(g, info->args[1]);
}

static bool steps_on(const Graph *g, Node n, const bool *exact)
{
    const NodeInfo *info = node(g, n);
    if (exact[info->args[0].id] && exact[info->args[1].id])
        return false;
    switch (info->op) {
    case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_SIGN: return true;
    case OP_CAST: return !type_is_float(info->type) && type_is_float(node(g, info->args[0])->type);
    default: return is_comparison_of_floats(g, info);
    }
}

/* Whether the node, or anything it is made of, steps on a computed float. */
static bool is_made_of_steps(Arena *arena, const Graph *g, Node n)
{
    const bool *exact = find_exact(arena, g);
    bool *needed = NEW_ARRAY(arena, bool, g->nodes.count);
    needed[n.id] = true;
    for (uint32_t id = n.id; id > 0; id--) {
        if (needed[id] && steps_on(g, (Node){id}, exact))
            return true;
        for (int i = 0; needed[id] && i < MAX_OPERANDS; i++)
            needed[g->nodes.data[id].args[i].id] = true;
    }
    return false;
}

bool is_discontinuous(const Graph *g, int output)
{
    Arena *arena = arena_new();
    if (!arena)
        return true;
    const bool found = is_made_of_steps(arena, g, g->outputs.data[output].value);
    arena_free(arena);
    return found;
}
