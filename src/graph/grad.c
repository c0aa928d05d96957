/* graph/grad.c: the backward pass as a graph: what is differentiated, the walk, the gradients as
 * nodes, and the finished graph with the inputs that it needs. */
#include "base/text.h"
#include "graph/grad_internal.h"

#include <string.h>

/* ---- names ---- */

static Map param_names(Arena *arena, const Graph *g)
{
    Map names = {0};
    for (int i = 0; i < g->params.count; i++) name_add(arena, &names, g->params.data[i].name, i);
    return names;
}

static const char *name_beside(Arena *arena, const Map *inputs, const char *name)
{
    const char *wanted = arena_format(arena, "d%s", name), *free = wanted;
    for (int number = 2; name_find(inputs, free) >= 0; number++)
        free = arena_format(arena, "%s_%d", wanted, number);
    return free;
}

const char *gradient_name(Arena *arena, const Graph *g, const char *name)
{
    const Map inputs = param_names(arena, g);
    return name_beside(arena, &inputs, name);
}

const char *name_gradient(const Grad *s, const char *name)
{
    return name_beside(s->arena, &s->inputs, name);
}

static void name_gradients(Grad *s)
{
    const Graph *g = s->forward;
    s->inputs = param_names(s->arena, g);
    for (int i = 0; i < g->outputs.count + g->params.count; i++) {
        const int param = i - g->outputs.count;
        if (param < 0 ? !s->of[i] : !s->wrt[param]) continue;
        const char *of = param < 0 ? g->outputs.data[i].name : g->params.data[param].name;
        const char *name = name_gradient(s, of);
        if (name_find(&s->gradients, name) < 0) name_add(s->arena, &s->gradients, name, i);
    }
}

/* ---- what is differentiated ---- */

/* By node: the axes that any reduction before it, or itself, removes. */
static AxisSet *find_reduced(Arena *arena, const Graph *g)
{
    AxisSet *reduced = NEW_ARRAY(arena, AxisSet, g->nodes.count);
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        for (int i = 0; i < op_info[info->op].arity; i++) reduced[id] |= reduced[info->args[i].id];
        if (op_info[info->op].class == CLASS_REDUCE) reduced[id] |= info->reduced;
    }
    return reduced;
}

bool *find_statistics(Arena *arena, const Graph *g)
{
    const AxisSet *reduced = find_reduced(arena, g);
    bool *used = NEW_ARRAY(arena, bool, g->nodes.count);
    bool *is_statistic = NEW_ARRAY(arena, bool, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++)
        for (int k = 0; k < MAX_OPERANDS; k++)
            used[node(g, g->outputs.data[i].value)->args[k].id] = true;
    for (int id = g->nodes.count - 1; id > 0; id--)
        for (int k = 0; used[id] && k < MAX_OPERANDS; k++)
            used[g->nodes.data[id].args[k].id] = true;
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        is_statistic[i] = used[o->value.id] && (reduced[o->value.id] & ~o->axes);
    }
    return is_statistic;
}

static void no_gradient(Grad *s, GradRequest *request, bool is_usage, Span at, const char *hint,
                        const char *text)
{
    request->is_usage = is_usage;
    report_error(s->d, at, hint, "%s", text);
    stop(s->d);
}

/* Splits "a,b" and sets chosen[i] for each name; `what` is for the error. */
static void choose_names(Grad *s, GradRequest *request, const char *list, const char *what,
                         const char **names, int count, bool *chosen)
{
    for (const char *at = list; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        const char *name = arena_copy(s->arena, at, length);
        bool found = false;
        for (int i = 0; i < count; i++)
            if (!strcmp(names[i], name)) chosen[i] = found = true;
        at += length;
        if (found) continue;
        no_gradient(
            s, request, true, whole_file(s->forward->source),
            hint_name(s->arena, name, names, count),
            arena_format(s->arena, "graph '%s' has no %s '%s'", s->forward->name, what, name));
    }
}

static const char **output_names(Grad *s)
{
    const Graph *g = s->forward;
    const char **names = NEW_ARRAY(s->arena, const char *, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) names[i] = g->outputs.data[i].name;
    return names;
}

static void choose_outputs(Grad *s, GradRequest *request)
{
    const Graph *g = s->forward;
    const bool *is_statistic = find_statistics(s->arena, g);
    bool any = false;
    s->of = NEW_ARRAY(s->arena, bool, g->outputs.count + 1);
    if (request->of)
        choose_names(s, request, request->of, "output", output_names(s), g->outputs.count, s->of);
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        const bool is_float = dtype_is_float(o->dtype);
        if (!request->of) s->of[i] = is_float && !is_statistic[i];
        if (s->of[i] && !is_float)
            no_gradient(s, request, false, o->span, NULL,
                        arena_format(s->arena, "output '%s' is %s, and has no gradient", o->name,
                                     dtype_info[o->dtype].fuse));
        any |= s->of[i];
    }
    if (!any)
        no_gradient(
            s, request, false, g->span, "only an output of floats has a gradient",
            arena_format(s->arena, "graph '%s' has no output that has a gradient", g->name));
}

static void choose_inputs(Grad *s, GradRequest *request)
{
    const Graph *g = s->forward;
    const char **names = NEW_ARRAY(s->arena, const char *, g->params.count + 1);
    bool any = false;
    s->wrt = NEW_ARRAY(s->arena, bool, g->params.count + 1);
    for (int i = 0; i < g->params.count; i++) names[i] = g->params.data[i].name;
    if (request->wrt)
        choose_names(s, request, request->wrt, "input", names, g->params.count, s->wrt);
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        const bool is_float = dtype_is_float(p->dtype);
        if (!request->wrt) s->wrt[i] = is_float && !p->scalar;
        if (s->wrt[i] && !is_float)
            no_gradient(s, request, false, p->span, NULL,
                        arena_format(s->arena, "input '%s' is %s, and has no gradient", p->name,
                                     dtype_info[p->dtype].fuse));
        any |= s->wrt[i];
    }
    if (!any)
        no_gradient(s, request, false, g->span,
                    "a tensor of floats has a gradient; a scalar has one if --wrt names it",
                    arena_format(s->arena, "graph '%s' has no input that has a gradient", g->name));
}

/* ---- the working copy ---- */

static void add_gradient_inputs(Grad *s)
{
    for (int i = 0; i < s->forward->outputs.count; i++) {
        const Output *o = &s->forward->outputs.data[i];
        if (!s->of[i]) continue;
        const char *name = name_gradient(s, o->name);
        *list_push(s->arena, &s->g->params) =
            (Param){.name = name, .dtype = o->dtype, .axes = o->axes, .span = o->span};
    }
}

/* What a product of x and an inverse root is called, x normalized: "xhat". NULL: it is none. */
static const char *normalized_name(Arena *arena, const Graph *g, const NodeInfo *info)
{
    if (info->op != OP_MUL && info->op != OP_DIV) return NULL;
    const Op root = info->op == OP_MUL ? OP_RSQRT : OP_SQRT;
    for (int side = info->op == OP_DIV; side < 2; side++) {
        if (node(g, info->args[side])->op != root) continue;
        const NodeInfo *x = node(g, info->args[1 - side]);
        if (x->op == OP_SUB && node(g, x->args[1])->op == OP_MEAN) x = node(g, x->args[0]);
        if (x->op == OP_CONVERT) x = node(g, x->args[0]);
        const size_t length = x->name ? strlen(x->name) : 0;
        const bool is_hat = length > 3 && !strcmp(x->name + length - 3, "hat");
        if (x->name && !is_hat) return arena_format(arena, "%shat", x->name);
    }
    return NULL;
}

static void copy_forward(Grad *s)
{
    const Graph *from = s->forward;
    s->g = graph_like(s->arena, from);
    add_gradient_inputs(s);
    for (uint32_t id = 1; id < (uint32_t)from->nodes.count; id++) {
        graph_copy_node(s->g, from, (Node){id}, from->nodes.data[id].args);
        const NodeInfo *info = &s->g->nodes.data[id];
        if (!info->name)
            graph_name(s->g, (Node){id}, normalized_name(s->arena, s->g, info), (Span){0});
    }
    s->forward_count = s->g->nodes.count;
}

/* ---- the finished graph ---- */

int *find_saved(const Grad *s, const bool *saved)
{
    int *saved_as = NEW_ARRAY(s->arena, int, s->forward_count);
    for (int id = 0; id < s->forward_count; id++) saved_as[id] = -1;
    for (int i = s->forward->outputs.count - 1; i >= 0; i--)
        if (saved[i]) saved_as[s->forward->outputs.data[i].value.id] = i;
    return saved_as;
}

bool *find_needed(const Grad *s, const Node *gradients, const int *saved_as)
{
    bool *needed = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 0; i < s->forward->params.count; i++) needed[gradients[i].id] = true;
    needed[0] = false;
    for (int id = s->g->nodes.count - 1; id > 0; id--) {
        const NodeInfo *info = &s->g->nodes.data[id];
        if (!needed[id] || (id < s->forward_count && saved_as[id] >= 0)) continue;
        for (int i = 0; i < op_info[info->op].arity; i++) needed[info->args[i].id] = true;
    }
    return needed;
}

typedef struct {
    Grad *s;
    Graph *into;
    const Node *gradients;
    const int *saved_as;
    const bool *needed;
    int *param_of;    /* by param of s->g: in `into`; -1: not needed */
    int *saved_param; /* by output: the param that it became; -1 */
    bool *is_weak;
} Finish;

static void add_param(Finish *f, int param)
{
    Graph *into = f->into;
    if (!f->needed[graph_param(f->s->g, (uint32_t)param).id]) return;
    f->param_of[param] = into->params.count;
    *list_push(into->arena, &into->params) = f->s->g->params.data[param];
}

/* Gradients first, then inputs, then what was saved, then scalars. */
static void add_params(Finish *f)
{
    const Grad *s = f->s;
    const int forward = s->forward->params.count, all = s->g->params.count;
    for (int i = 0; i < all; i++) f->param_of[i] = -1;
    for (int i = forward; i < all; i++) add_param(f, i);
    for (int i = 0; i < forward; i++)
        if (!s->g->params.data[i].scalar) add_param(f, i);
    for (int i = 0; i < s->forward->outputs.count; i++) {
        const Output *o = &s->forward->outputs.data[i];
        f->saved_param[i] = -1;
        if (f->saved_as[o->value.id] != i || !f->needed[o->value.id]) continue;
        f->saved_param[i] = f->into->params.count;
        *list_push(s->arena, &f->into->params) =
            (Param){.name = o->name, .dtype = o->dtype, .axes = o->axes, .span = o->span};
    }
    for (int i = 0; i < forward; i++)
        if (s->g->params.data[i].scalar) add_param(f, i);
}

static Node finish_node(Finish *f, uint32_t id, const Node *map)
{
    const Graph *g = f->s->g;
    const NodeInfo *info = &g->nodes.data[id];
    const int saved = (int)id < f->s->forward_count ? f->saved_as[id] : -1;
    if (saved >= 0)
        return graph_convert(f->into, info->type,
                             graph_param(f->into, (uint32_t)f->saved_param[saved]));
    if (info->op == OP_PARAM) return graph_param(f->into, (uint32_t)f->param_of[info->param]);
    Node args[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) args[i] = map[info->args[i].id];
    return graph_copy_node(f->into, g, (Node){id}, args);
}

static void finish_nodes(Finish *f)
{
    const Graph *g = f->s->g, *forward = f->s->forward;
    Node *map = NEW_ARRAY(f->s->arena, Node, g->nodes.count);
    f->is_weak = NEW_ARRAY(f->s->arena, bool, g->nodes.count + g->outputs.count + 1);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) {
        if (!f->needed[id]) continue;
        map[id] = finish_node(f, id, map);
        f->is_weak[map[id].id] =
            id >= (uint32_t)f->s->forward_count || !forward->nodes.data[id].name;
    }
    for (int i = 0; i < forward->params.count; i++) {
        const Param *p = &forward->params.data[i];
        if (!f->gradients[i].id) continue;
        *list_push(f->s->arena, &f->into->outputs) = (Output){.name = name_gradient(f->s, p->name),
                                                              .dtype = p->dtype,
                                                              .axes = p->axes,
                                                              .value = map[f->gradients[i].id]};
    }
}

static Graph *finish_graph(Grad *s, const bool *saved)
{
    const Graph *forward = s->forward;
    Graph *into = graph_new(s->arena);
    into->name = arena_format(s->arena, "%s_bwd", forward->name);
    into->source = forward->source;
    into->span = forward->span;
    memcpy(into->axes, forward->axes, sizeof into->axes);
    into->axis_count = forward->axis_count;
    Finish f = {.s = s,
                .into = into,
                .gradients = build_gradients(s, saved),
                .saved_as = find_saved(s, saved),
                .param_of = NEW_ARRAY(s->arena, int, s->g->params.count + 1),
                .saved_param = NEW_ARRAY(s->arena, int, forward->outputs.count + 1)};
    f.needed = find_needed(s, f.gradients, f.saved_as);
    add_params(&f);
    finish_nodes(&f);
    bind_names(into, f.is_weak);
    return into;
}

/* ---- the whole ---- */

static void list_name(Text *list, const char *between, const char *name)
{
    text_print(list, "%s%s", list->length ? between : "", name);
}

static void list_outputs(const Grad *s, const GradRequest *request, Gradient *result)
{
    Text *of = text_new(s->arena), *left_out = text_new(s->arena), *all = text_new(s->arena);
    for (int i = 0; i < s->forward->outputs.count; i++) {
        const Output *o = &s->forward->outputs.data[i];
        if (!dtype_is_float(o->dtype)) continue;
        list_name(s->of[i] ? of : left_out, ", ", o->name);
        if (!request->of) list_name(all, ",", o->name);
    }
    result->of = text_string(of);
    result->left_out = text_string(left_out);
    result->all = text_string(all);
}

static void list_inputs(const Grad *s, const bool *saved, Gradient *result)
{
    const Graph *g = s->forward;
    const Map read = param_names(s->arena, result->graph);
    Text *wrt = text_new(s->arena), *of_forward = text_new(s->arena);
    for (int i = 0; i < g->params.count; i++)
        if (s->wrt[i]) list_name(wrt, ", ", g->params.data[i].name);
    for (int i = 0; i < g->outputs.count; i++)
        if (saved[i] && name_find(&read, g->outputs.data[i].name) >= 0)
            list_name(of_forward, ", ", g->outputs.data[i].name);
    result->wrt = text_string(wrt);
    result->saved = text_string(of_forward);
}

Gradient grad(Arena *arena, Diagnostics *d, const Graph *g, GradRequest *request)
{
    Grad s = {.arena = arena, .d = d, .forward = g};
    Gradient result = {0};
    choose_outputs(&s, request);
    choose_inputs(&s, request);
    name_gradients(&s);
    copy_forward(&s);
    s.a = algebra_new(arena, s.g);
    s.active = NEW_ARRAY(arena, bool, s.forward_count);
    s.varies = NEW_ARRAY(arena, bool, s.forward_count);
    s.factored = NEW_ARRAY(arena, Term, s.forward_count);
    s.adjoint = NEW_ARRAY(arena, Poly, s.forward_count);
    walk_back(&s);
    const bool *saved = choose_saved(&s, request, &result);
    result.graph = finish_graph(&s, saved);
    list_outputs(&s, request, &result);
    list_inputs(&s, saved, &result);
    return result;
}
