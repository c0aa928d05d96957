/* program_info.c: what the graphs of a program declare: axes, tensors and scalars, as fusec.h returns
 * them. They are read off the syntax tree, for they need no sizes. */
#include "internal.h"

#include "frontend/lower.h"

#include <string.h>

static const Item *graph_at(const fusec_program *program, size_t index)
{
    return index < fusec_program_graph_count(program) ? program->graphs[index] : NULL;
}

fusec_status fusec_program_axis(const fusec_program *program, size_t graph, size_t index,
                                fusec_axis_info *info)
{
    const Item *item = graph_at(program, graph);
    const AxisDecl *axis = item ? item->axes : NULL;
    while (axis && index--) axis = axis->next;
    if (!axis || !info) return FUSEC_INVALID_ARGUMENT;
    const fusec_axis_info own = {.name = axis->name.name, .size = axis->size};
    return answer_info(info, &own, sizeof own);
}

/* The parameter of that number among the scalars or among the tensors, outputs behind the inputs. */
static const ParamDecl *find_param(const Item *graph, bool scalar, size_t index, bool *is_output)
{
    *is_output = false;
    for (const ParamDecl *p = graph ? graph->params : NULL; p; p = p->next)
        if (p->has_brackets != scalar && !index--) return p;
    *is_output = true;
    for (const ParamDecl *p = graph && !scalar ? graph->outputs : NULL; p; p = p->next)
        if (!index--) return p;
    return NULL;
}

static int axis_number(const Item *graph, const char *name)
{
    int number = 0;
    for (const AxisDecl *axis = graph->axes; axis; axis = axis->next, number++)
        if (strcmp(axis->name.name, name) == 0) break;
    return number;
}

fusec_status fusec_program_tensor(const fusec_program *program, size_t graph, size_t index,
                                  fusec_tensor_info *info)
{
    bool is_output;
    DType dtype;
    const Item *item = graph_at(program, graph);
    const ParamDecl *tensor = find_param(item, false, index, &is_output);
    if (!tensor || !info || !dtype_find(tensor->dtype.name, &dtype)) return FUSEC_INVALID_ARGUMENT;
    fusec_tensor_info own = {.name = tensor->name.name, .dtype = (fusec_dtype)dtype};
    own.is_output = is_output;
    own.is_wanted = 1;
    for (const Ident *axis = tensor->axes; axis; axis = axis->next)
        own.axes[own.rank++] = axis_number(item, axis->name);
    return answer_info(info, &own, sizeof own);
}

fusec_status fusec_program_scalar(const fusec_program *program, size_t graph, size_t index,
                                  fusec_scalar_info *info)
{
    bool is_output;
    DType dtype;
    const ParamDecl *scalar = find_param(graph_at(program, graph), true, index, &is_output);
    if (!scalar || !info || !dtype_find(scalar->dtype.name, &dtype)) return FUSEC_INVALID_ARGUMENT;
    fusec_scalar_info own = {.name = scalar->name.name, .dtype = (fusec_dtype)dtype};
    own.has_default = scalar->initial != NULL;
    if (scalar->initial) own.default_value = scalar_default(scalar, dtype);
    return answer_info(info, &own, sizeof own);
}
