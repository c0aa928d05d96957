/* graph/print_fuse.c: a backward graph as .fuse text: what it is, its head, then one statement for each named node,
 * those of the outputs last. fmt aligns it. */
#include "graph/grad.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    Text *out;
    const Graph *g;
    int *output_of; /* by node: the output that names it; -1 */
    bool *done;
    bool *waits; /* by node: it is made of an output */
} Printer;

/* ---- the head ---- */

static AxisSet find_axes(const Graph *g)
{
    AxisSet axes = 0;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        axes |= info->axes;
        if (info->op == OP_SIZE) axes |= (AxisSet)1 << info->axis;
    }
    for (int i = 0; i < g->params.count; i++) axes |= g->params.data[i].axes;
    for (int i = 0; i < g->outputs.count; i++) axes |= g->outputs.data[i].axes;
    return axes;
}

static void put_axes(Text *out, const Graph *g)
{
    const AxisSet axes = find_axes(g);
    const char *before = "[";
    for (int i = 0; i < g->axis_count; i++) {
        if (!(axes >> i & 1)) continue;
        text_print(out, "%s%s", before, g->axes[i].name);
        if (g->axes[i].size >= 0) text_print(out, " = %" PRId64, g->axes[i].size);
        before = ", ";
    }
    text_print(out, "%s", axes ? "]" : "");
}

static void put_default(Text *out, const Param *p)
{
    if (!p->has_default) return;
    text_print(out, " = ");
    if (p->dtype == DTYPE_BOOL)
        text_print(out, "%s", p->default_value != 0 ? "true" : "false");
    else if (dtype_is_float(p->dtype))
        put_literal(out, dtype_info[p->dtype].type, p->default_value);
    else
        text_print(out, "%.0f", p->default_value);
}

static void put_head(Printer *p)
{
    Text *out = p->out;
    const Graph *g = p->g;
    text_print(out, "graph %s", g->name);
    put_axes(out, g);
    text_print(out, "(\n");
    for (int i = 0; i < g->params.count; i++) {
        const Param *param = &g->params.data[i];
        text_print(out, "    %s : %s%s", param->name, dtype_info[param->dtype].fuse,
                   param->scalar ? "" : axes_text(out->arena, g, param->axes));
        put_default(out, param);
        text_print(out, i + 1 < g->params.count ? ",\n" : "\n");
    }
    text_print(out, ") -> (\n");
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        text_print(out, "    %s : %s%s%s\n", o->name, dtype_info[o->dtype].fuse,
                   axes_text(out->arena, g, o->axes), i + 1 < g->outputs.count ? "," : "");
    }
    text_print(out, ") {\n");
}

/* ---- the body ---- */

static bool is_bound(const Graph *g, uint32_t id)
{
    const NodeInfo *info = &g->nodes.data[id];
    return info->name && info->op != OP_PARAM && info->op != OP_CONST;
}

static void put_statement(Printer *p, uint32_t id)
{
    if (p->done[id]) return;
    p->done[id] = true;
    line(p->out, "%s = %s", p->g->nodes.data[id].name,
         source_text(p->out->arena, p->g, (Node){id}));
}

/* What waits for outputs, and the outputs that it waits for. */
static void put_waiting(Printer *p, uint32_t id)
{
    const NodeInfo *info = &p->g->nodes.data[id];
    for (int i = 0; i < op_info[info->op].arity; i++) {
        const uint32_t operand = info->args[i].id;
        if (p->waits[operand] || p->output_of[operand] >= 0) put_waiting(p, operand);
    }
    if (is_bound(p->g, id)) put_statement(p, id);
}

static void put_body(Printer *p)
{
    const Graph *g = p->g;
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        for (int i = 0; i < op_info[info->op].arity; i++) {
            const uint32_t operand = info->args[i].id;
            p->waits[id] |= p->waits[operand] || p->output_of[operand] >= 0;
        }
        if (is_bound(g, id) && !p->waits[id] && p->output_of[id] < 0) put_statement(p, id);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        put_waiting(p, o->value.id);
        if (p->output_of[o->value.id] != i)
            line(p->out, "%s = %s", o->name, node_text(p->out->arena, g, o->value, false));
    }
}

static void print_fuse(Text *out, const Graph *g)
{
    Printer p = {.out = out,
                 .g = g,
                 .output_of = NEW_ARRAY(out->arena, int, g->nodes.count),
                 .done = NEW_ARRAY(out->arena, bool, g->nodes.count),
                 .waits = NEW_ARRAY(out->arena, bool, g->nodes.count)};
    for (int id = 0; id < g->nodes.count; id++) p.output_of[id] = -1;
    for (int i = g->outputs.count - 1; i >= 0; i--)
        if (is_bound(g, g->outputs.data[i].value.id)) p.output_of[g->outputs.data[i].value.id] = i;
    put_head(&p);
    out->indent++;
    put_body(&p);
    out->indent--;
    text_print(out, "}\n");
}

/* ---- what it is ---- */

/* A comment, broken into lines. */
static void put_comment(Text *out, const char *text)
{
    enum { WIDTH = 98 };
    int column = 0;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        const bool breaks = column > 0 && column + 1 + word > WIDTH;
        text_print(out, "%s%.*s", column == 0 ? "# " : breaks ? "\n# " : " ", word, text);
        column = (column == 0 || breaks ? 2 : column + 1) + word;
        text += word;
        while (*text == ' ') text++;
    }
    text_print(out, "\n");
}

/* "# Not differentiated: mean, rstd (statistics). --of y,mean,rstd differentiates them as well." */
static void describe_left_out(Text *out, const Gradient *result)
{
    Arena *arena = out->arena;
    const bool several = strchr(result->left_out, ',') != NULL;
    if (!*result->left_out) return;
    put_comment(out, !*result->all
                         ? arena_format(arena, "Not differentiated: %s.", result->left_out)
                         : arena_format(arena,
                                        "Not differentiated: %s (%s). --of %s differentiates %s "
                                        "as well.",
                                        result->left_out, several ? "statistics" : "a statistic",
                                        result->all, several ? "them" : "it"));
}

/* "# Backward pass of layernorm: the gradient of y with respect to x, gamma, beta." */
static void describe(Text *out, const Graph *forward, const Gradient *result)
{
    Arena *arena = out->arena;
    const bool several = strchr(result->of, ',') != NULL;
    put_comment(out,
                arena_format(arena, "Backward pass of %s: the gradient%s of %s with respect to %s.",
                             forward->name, several ? "s" : "", result->of, result->wrt));
    describe_left_out(out, result);
    if (*result->saved)
        put_comment(out,
                    arena_format(arena, "Saved by the forward pass%s: %s.",
                                 result->chose_saved ? " (chosen because they cost least)" : "",
                                 result->saved));
    else if (result->has_choice)
        put_comment(out, "Nothing is saved by the forward pass (chosen because that costs least).");
}

void print_gradient(Text *out, const Graph *forward, const Gradient *gradient)
{
    describe(out, forward, gradient);
    print_fuse(out, gradient->graph);
}
