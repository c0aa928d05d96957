/* reference/exact.c: see exact.h. */
#include "reference/exact.h"

static Node exact_constant(Graph *into, const NodeInfo *info)
{
    return type_is_float(info->type) ? graph_number(into, TYPE_F64, info->number)
                                     : graph_integer(into, info->type, info->integer);
}

static Node exact_node(Graph *into, const Graph *g, uint32_t id, const Node *map)
{
    const NodeInfo *info = &g->nodes.data[id];
    Node args[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = map[info->args[i].id];
    const bool is_float = type_is_float(info->type);
    switch (info->op) {
    case OP_CONST: return exact_constant(into, info);
    case OP_PARAM: return graph_param(into, info->param);
    case OP_CONVERT: return graph_convert(into, is_float ? TYPE_F64 : info->type, args[0]);
    case OP_CAST:
        return is_float ? graph_convert(into, TYPE_F64, args[0])
                        : graph_cast(into, info->dtype, args[0]);
    default: break;
    }
    const OpClass class = op_info[info->op].class;
    if (class == CLASS_LEAF) return graph_copy_node(into, g, (Node){id}, args);
    if (class == CLASS_REDUCE) return graph_reduce(into, info->op, info->reduced, args[0]);
    return graph_op(into, info->op, args[0], args[1], args[2]);
}

Graph *exact_graph(Arena *arena, const Graph *g)
{
    Graph *into = graph_like(arena, g);
    Node *map = NEW_ARRAY(arena, Node, g->nodes.count);
    for (int i = 0; i < into->params.count; i++)
        if (dtype_is_float(into->params.data[i].dtype)) into->params.data[i].dtype = DTYPE_F64;
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++)
        map[id] = exact_node(into, g, id, map);
    for (int i = 0; i < into->outputs.count; i++) {
        Output *o = &into->outputs.data[i];
        if (dtype_is_float(o->dtype)) o->dtype = DTYPE_F64;
        o->value = map[g->outputs.data[i].value.id];
    }
    return into;
}
