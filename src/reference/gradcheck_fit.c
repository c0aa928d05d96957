/* reference/gradcheck_fit.c: pairs the inputs of a backward graph with the forward graph by name: dy
 * is the gradient of output y, and other inputs are inputs or outputs of the forward pass. */
#include "reference/gradcheck_internal.h"

#include "graph/grad.h"

#include <string.h>

/* Whether two graphs give a tensor the same axes, by name, in the same order. */
static bool same_axes(const Graph *a, AxisSet in_a, const Graph *b, AxisSet in_b)
{
    int k = 0;
    for (int i = 0; i < a->axis_count; i++) {
        if (!(in_a >> i & 1)) continue;
        while (k < b->axis_count && !(in_b >> k & 1)) k++;
        if (k == b->axis_count || strcmp(a->axes[i].name, b->axes[k].name) != 0) return false;
        k++;
    }
    return axes_count(in_a) == axes_count(in_b);
}

static int find_gradient(Arena *arena, const Graph *forward, const char *name)
{
    for (int i = 0; i < forward->outputs.count; i++) {
        const Output *o = &forward->outputs.data[i];
        if (dtype_is_float(o->dtype) && !strcmp(gradient_name(arena, forward, o->name), name))
            return i;
    }
    return -1;
}

static int find_input(const Graph *g, const char *name)
{
    for (int i = 0; i < g->params.count; i++)
        if (!strcmp(g->params.data[i].name, name)) return i;
    return -1;
}

static int find_output(const Graph *g, const char *name)
{
    for (int i = 0; i < g->outputs.count; i++)
        if (!strcmp(g->outputs.data[i].name, name)) return i;
    return -1;
}

static bool fit_param(Arena *arena, const Graph *forward, const char *name, Fit *fit)
{
    int index = find_gradient(arena, forward, name);
    *fit = (Fit){FIT_GRADIENT, index};
    if (index < 0) *fit = (Fit){FIT_INPUT, index = find_input(forward, name)};
    if (index < 0) *fit = (Fit){FIT_SAVED, index = find_output(forward, name)};
    return index >= 0;
}

static void put_wrong_axes(Text *report, const char *name, const Graph *has, AxisSet axes,
                           const Graph *wants, AxisSet wanted)
{
    text_print(report, "'%s' has the axes %s in '%s', but %s would fit '%s'", name,
               axes_text(report->arena, has, axes), has->name,
               axes_text(report->arena, wants, wanted), wants->name);
}

Fit *fit_params(Arena *arena, const Graph *forward, const Graph *backward, Text *report)
{
    Fit *fits = NEW_ARRAY(arena, Fit, backward->params.count + 1);
    for (int i = 0; i < backward->params.count; i++) {
        const Param *p = &backward->params.data[i];
        if (!fit_param(arena, forward, p->name, &fits[i])) {
            text_print(
                report,
                "input '%s' of '%s' is not an input or output of '%s', or the gradient of one of its outputs",
                p->name, backward->name, forward->name);
            return NULL;
        }
        const int index = fits[i].index;
        const bool is_input = fits[i].kind == FIT_INPUT;
        const AxisSet axes =
            is_input ? forward->params.data[index].axes : forward->outputs.data[index].axes;
        const DType dtype =
            is_input ? forward->params.data[index].dtype : forward->outputs.data[index].dtype;
        if (!same_axes(backward, p->axes, forward, axes)) {
            put_wrong_axes(report, p->name, backward, p->axes, forward, axes);
            return NULL;
        }
        /* floats are all f64 here; the others are taken as they lie in memory */
        const bool floats = dtype_is_float(p->dtype) && dtype_is_float(dtype);
        if (!floats && p->dtype != dtype) {
            text_print(report, "'%s' is %s in '%s', and %s in '%s'", p->name,
                       dtype_info[p->dtype].fuse, backward->name, dtype_info[dtype].fuse,
                       forward->name);
            return NULL;
        }
    }
    return fits;
}

int *fit_outputs(Arena *arena, const Graph *forward, const Graph *backward, Text *report)
{
    int *fits = NEW_ARRAY(arena, int, backward->outputs.count + 1);
    for (int i = 0; i < backward->outputs.count; i++) {
        const Output *o = &backward->outputs.data[i];
        fits[i] = -1;
        for (int k = 0; k < forward->params.count; k++) {
            const Param *p = &forward->params.data[k];
            if (dtype_is_float(p->dtype) &&
                !strcmp(gradient_name(arena, forward, p->name), o->name))
                fits[i] = k;
        }
        if (fits[i] < 0 || !dtype_is_float(o->dtype)) {
            text_print(report, "output '%s' of '%s' is not the gradient of an input of '%s'",
                       o->name, backward->name, forward->name);
            return NULL;
        }
        const Param *p = &forward->params.data[fits[i]];
        if (!same_axes(backward, o->axes, forward, p->axes)) {
            put_wrong_axes(report, o->name, backward, o->axes, forward, p->axes);
            return NULL;
        }
    }
    return fits;
}

Sizes fit_sizes(const Graph *forward, const Sizes *sizes, const Graph *backward)
{
    Sizes found;
    for (int i = 0; i < MAX_AXES; i++) found.of[i] = 1;
    for (int i = 0; i < backward->axis_count; i++)
        for (int k = 0; k < forward->axis_count; k++)
            if (!strcmp(backward->axes[i].name, forward->axes[k].name)) found.of[i] = sizes->of[k];
    return found;
}
