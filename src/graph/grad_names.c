/* graph/grad_names.c: which values of a backward graph are bound to a name, and to which: what the
 * forward pass named, what is used twice, and reductions where a formula has several. */
#include "graph/grad_internal.h"

#include <string.h>

enum { DEEPEST = 32 };

typedef struct {
    Graph *g;
    const bool *is_weak;
    int *uses;
    bool *bound;
    bool *is_output;
    Map taken;
    int numbers[3]; /* of the names c1, t1, when1 */
} Names;

static void take(Names *n, const char *name)
{
    if (name_find(&n->taken, name) < 0) name_add(n->g->arena, &n->taken, name, 0);
}

static void count_uses(Names *n)
{
    const Graph *g = n->g;
    for (int id = 1; id < g->nodes.count; id++)
        for (int i = 0; i < op_info[g->nodes.data[id].op].arity; i++)
            n->uses[g->nodes.data[id].args[i].id]++;
}

/* What is as short as its name would be. */
static bool is_trivial(const NodeInfo *info)
{
    const bool sign = info->op == OP_NEG || info->op == OP_NOT;
    return op_info[info->op].class == CLASS_LEAF || info->op == OP_CONVERT || sign;
}

static void bind_shared(Names *n)
{
    const Graph *g = n->g;
    int *depth = NEW_ARRAY(g->arena, int, g->nodes.count);
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        const bool is_named = info->name && !n->is_weak[id] && info->op != OP_CONVERT;
        if (info->op == OP_PARAM || info->op == OP_CONST) continue;
        for (int i = 0; i < op_info[info->op].arity; i++) {
            const uint32_t operand = info->args[i].id;
            const int below = n->bound[operand] ? 0 : depth[operand];
            if (below >= depth[id]) depth[id] = below + 1;
        }
        n->bound[id] |= is_named || (n->uses[id] > 1 && !is_trivial(info)) || depth[id] > DEEPEST;
    }
}

/* The reductions within the formula of a bound value, of which none is bound yet. */
static int find_inline(const Names *n, uint32_t id, uint32_t *found, int count, int most)
{
    const NodeInfo *info = &n->g->nodes.data[id];
    for (int i = 0; i < op_info[info->op].arity; i++) {
        const uint32_t operand = info->args[i].id;
        if (n->bound[operand]) continue;
        if (is_reduction(n->g, (Node){operand}) && count < most) found[count++] = operand;
        count = find_inline(n, operand, found, count, most);
    }
    return count;
}

static void bind_reductions(Names *n)
{
    enum { MOST = 64 };
    uint32_t found[MOST];
    const int nodes = n->g->nodes.count;
    for (int id = 1; id < nodes; id++) {
        if (!n->bound[id]) continue;
        const int count = find_inline(n, (uint32_t)id, found, 0, MOST);
        for (int i = 0; count > 1 && i < count; i++) n->bound[found[i]] = true;
    }
}

/* What functions of a row or an element are usually called; NULL: nothing. */
static const char *usual_name(Op op)
{
    switch (op) {
    case OP_EXP: return "e";
    case OP_RSQRT: return "rstd";
    case OP_SQRT: return "norm";
    case OP_SIGMOID: return "sig";
    case OP_TANH: return "th";
    default: return NULL;
    }
}

static const char *new_name(Names *n, uint32_t id)
{
    static const char *const stems[] = {"c", "t", "when"};
    const char *usual = usual_name(n->g->nodes.data[id].op);
    if (usual) return name_free(n->g->arena, &n->taken, usual);
    const NodeInfo *info = &n->g->nodes.data[id];
    const int kind = is_reduction(n->g, (Node){id}) ? 0 : info->type == TYPE_BOOL ? 2 : 1;
    const char *name;
    do name = arena_format(n->g->arena, "%s%d", stems[kind], ++n->numbers[kind]);
    while (name_find(&n->taken, name) >= 0);
    return name;
}

/* The forward pass's names first. */
static void give_names(Names *n, bool weak)
{
    Graph *g = n->g;
    for (int id = 1; id < g->nodes.count; id++) {
        NodeInfo *info = &g->nodes.data[id];
        if (info->op == OP_PARAM || n->is_output[id] || n->is_weak[id] != weak) continue;
        if (!n->bound[id]) {
            info->name = NULL;
            continue;
        }
        info->name =
            info->name ? name_free(g->arena, &n->taken, info->name) : new_name(n, (uint32_t)id);
        take(n, info->name);
    }
}

/* The first output of a value names it. */
static void bind_outputs(Names *n)
{
    Graph *g = n->g;
    for (int i = g->outputs.count - 1; i >= 0; i--) {
        const uint32_t id = g->outputs.data[i].value.id;
        NodeInfo *info = &g->nodes.data[id];
        if (info->op == OP_PARAM || info->op == OP_CONST) continue;
        n->bound[id] = n->is_output[id] = true;
        info->name = g->outputs.data[i].name;
    }
}

void bind_names(Graph *g, const bool *is_weak)
{
    Names n = {.g = g,
               .is_weak = is_weak,
               .uses = NEW_ARRAY(g->arena, int, g->nodes.count),
               .bound = NEW_ARRAY(g->arena, bool, g->nodes.count),
               .is_output = NEW_ARRAY(g->arena, bool, g->nodes.count)};
    for (int i = 0; i < g->params.count; i++) take(&n, g->params.data[i].name);
    for (int i = 0; i < g->outputs.count; i++) take(&n, g->outputs.data[i].name);
    count_uses(&n);
    bind_outputs(&n);
    bind_shared(&n);
    bind_reductions(&n);
    give_names(&n, false);
    give_names(&n, true);
}
