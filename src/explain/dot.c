/* explain/dot.c: analysis -> graphviz: inputs at the top, outputs at the bottom, one node for each
 * value, named values under their own names, reductions coloured by kind. */
#include "explain/dot.h"

#include <string.h>

static const char *const kind_colours[] = {
    [KIND_INNER] = "lightblue", [KIND_OUTER] = "orange", [KIND_PARTIAL_OUTER] = "gold",
    [KIND_FULL] = "salmon",     [KIND_MIXED] = "plum",
};

/* Text inside a dot string: quotes and backslashes escaped, long ones cut. */
static const char *escape(Arena *arena, const char *text)
{
    enum { LONGEST = 60 };
    size_t length = strlen(text), used = 0;
    bool cut = length > LONGEST;
    if (cut) length = LONGEST;
    char *out = arena_alloc(arena, 2 * length + 8);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\') out[used++] = '\\';
        out[used++] = text[i] == '\n' ? ' ' : text[i];
    }
    memcpy(out + used, cut ? "..." : "", cut ? 4 : 1);
    return out;
}

/* By node id: what the analysis knows of it; NULL: nothing. */
typedef struct {
    const Reduction **reductions;
    const Persistent **persistent;
} Facts;

static Facts find_facts(Arena *arena, const Analysis *a)
{
    const int count = a->graph->nodes.count;
    Facts facts = {NEW_ARRAY(arena, const Reduction *, count),
                   NEW_ARRAY(arena, const Persistent *, count)};
    for (int i = 0; i < a->reduction_count; i++)
        facts.reductions[a->reductions[i].node.id] = &a->reductions[i];
    for (int i = 0; i < a->persistent_count; i++)
        facts.persistent[a->persistent[i].node.id] = &a->persistent[i];
    return facts;
}

static const char *param_label(Arena *arena, const Graph *g, const Param *p)
{
    return arena_format(arena, "%s : %s%s", p->name, dtype_info[p->dtype].fuse,
                        p->scalar ? "" : axes_text(arena, g, p->axes));
}

static void print_node(Text *out, const Graph *g, const Facts *facts, Node n)
{
    Arena *arena = out->arena;
    const NodeInfo *info = node(g, n);
    const Reduction *reduction = facts->reductions[n.id];
    const Persistent *persistent = facts->persistent[n.id];
    const char *label = info->op == OP_PARAM ? param_label(arena, g, &g->params.data[info->param])
                                             : brief_text(arena, g, n);
    if (info->name && info->op != OP_PARAM)
        label = arena_format(arena, "%s = %s", info->name, label);
    label = escape(arena, label);
    if (reduction)
        line(out, "n%u [label=\"%s\\n%s, phase %d\", style=filled, fillcolor=%s];", n.id, label,
             kind_name(reduction->kind), reduction->phase, kind_colours[reduction->kind]);
    else if (persistent)
        line(out, "n%u [label=\"%s\\npersistent, %lld bytes a row\", shape=box, peripheries=2];",
             n.id, label, (long long)persistent->bytes_per_row);
    else
        line(out, "n%u [label=\"%s\"%s];", n.id, label, info->op == OP_PARAM ? ", shape=box" : "");
}

static void print_outputs(Text *out, const Graph *g)
{
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        if (!o->value.id) continue;
        line(out, "out%d [label=\"%s : %s%s\", shape=box, style=bold];", i, o->name,
             dtype_info[o->dtype].fuse, axes_text(out->arena, g, o->axes));
        line(out, "n%u -> out%d;", o->value.id, i);
    }
}

void print_dot(Text *out, const Analysis *a)
{
    const Graph *g = a->graph;
    const bool *live = graph_live(g);
    const Facts facts = find_facts(out->arena, a);
    block (out, "digraph \"%s\"", g->name) {
        line(out, "node [fontname=\"monospace\", fontsize=10];");
        for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
            if (!live[id]) continue;
            print_node(out, g, &facts, (Node){id});
            for (int i = 0; i < op_info[g->nodes.data[id].op].arity; i++)
                line(out, "n%u -> n%u;", arg(g, (Node){id}, i).id, id);
        }
        print_outputs(out, g);
    }
}
