/* gradcheck.c: `fusec gradcheck`: whether a backward graph, given or made by grad, is the
 * derivative of a forward graph. */
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "cli/tensors.h"
#include "frontend/lower.h"
#include "reference/gradcheck.h"

#include <string.h>

/* Axes of which no size is given are this long: each another length, so that none passes for
 * another, and the last ones longest. */
enum { SHORTEST = 3 };

typedef struct {
    Options options; /* those of the command line, completed */
    Session session; /* of FORWARD */
    Batch batch;
    InputFile file;
    Program backward_file;
    Compilation backward, grad, own; /* NAME_bwd; the text of grad, compiled */
    bool has_backward;               /* a file has NAME_bwd */
    const char *backward_name;       /* of that file */
} Check;

static bool has_size(const Options *o, const char *axis)
{
    for (int i = 0; i < o->sizes.count; i++)
        if (!strcmp(o->sizes.data[i].axis, axis)) return true;
    return false;
}

static int settle_inputs(Check *c)
{
    Session *s = &c->session;
    const char *in = c->options.in;
    int status = in ? open_inputs(s, in, &c->file) : EXIT_DONE;
    for (int i = 0; !in && i < s->graph->axis_count; i++) {
        const Axis *axis = &s->graph->axes[i];
        if (has_size(&c->options, axis->name)) continue;
        const int64_t size =
            axis->size > 0 && axis->size < SHORTEST + i ? axis->size : SHORTEST + i;
        *list_push(s->arena, &c->options.sizes) = (AxisSize){axis->name, size};
    }
    if (status == EXIT_DONE) status = settle_sizes(s, in ? &c->file.sizes : NULL);
    if (status == EXIT_DONE) status = open_batch(s, &s->sizes, &c->batch);
    if (status == EXIT_DONE && in) fill_from_inputs(s, &c->file, &c->batch);
    if (status == EXIT_DONE) status = settle_scalars(s, &c->batch, in ? c->file.given : NULL, !in);
    return status;
}

/* ---- the backward graphs ---- */

/* The graph that is called after the forward one, or the only one. */
static int choose_backward(Check *c, const char **name)
{
    Program *p = &c->backward_file;
    const char *wanted = arena_format(c->session.arena, "%s_bwd", c->session.graph->name);
    *name = p->graph_count == 1 ? p->graphs[0] : NULL;
    for (int i = 0; i < p->graph_count; i++)
        if (!strcmp(p->graphs[i], wanted)) *name = p->graphs[i];
    if (*name) return EXIT_DONE;
    complain(p->graph_count ? list_names(c->session.arena, p->graphs, p->graph_count) : NULL,
             "%s has no graph '%s'", p->name, wanted);
    return p->graph_count ? EXIT_USAGE : EXIT_WRONG;
}

static const char *join_name(Arena *arena, const char *list, const char *name)
{
    return list ? arena_format(arena, "%s,%s", list, name) : name;
}

/* Asks grad for what the backward graph of the file has. */
static void ask_for_same(Check *c)
{
    const Graph *forward = c->session.graph, *backward = c->backward.lowered;
    Arena *arena = c->session.arena;
    GradRequest *request = &c->options.grad;
    *request = (GradRequest){.save = "none"};
    for (int i = 0; i < forward->outputs.count; i++) {
        const Output *o = &forward->outputs.data[i];
        for (int k = 0; k < backward->params.count; k++)
            if (dtype_is_float(o->dtype) &&
                !strcmp(backward->params.data[k].name, gradient_name(arena, forward, o->name)))
                request->of = join_name(arena, request->of, o->name);
    }
    for (int i = 0; i < forward->params.count; i++) {
        const Param *p = &forward->params.data[i];
        for (int k = 0; k < backward->outputs.count; k++)
            if (dtype_is_float(p->dtype) &&
                !strcmp(backward->outputs.data[k].name, gradient_name(arena, forward, p->name)))
                request->wrt = join_name(arena, request->wrt, p->name);
    }
}

static int open_backward(Check *c, const char *file)
{
    Options *plain = NEW(c->session.arena, Options);
    const char *name;
    *plain = c->options;
    plain->graph = NULL;
    plain->sizes.count = 0;
    int status = open_program(&c->backward_file, plain, file);
    if (status == EXIT_DONE) status = choose_backward(c, &name);
    if (status == EXIT_DONE)
        status = compile_graph(&c->backward_file, name, UNTIL_GRAPH, NULL, 0, &c->backward);
    if (status == EXIT_DONE) ask_for_same(c);
    c->has_backward = true;
    c->backward_name = c->backward_file.name;
    return status;
}

/* NAME_bwd in the file of the forward graph itself, unless an option tells grad what to derive. */
static int open_beside(Check *c)
{
    Session *s = &c->session;
    const GradRequest *asked = &c->options.grad;
    const char *name = arena_format(s->arena, "%s_bwd", s->graph->name);
    const AxisSize none[1] = {{0}};
    if (asked->of || asked->wrt || asked->save) return EXIT_DONE;
    if (!find_graph(s->arena, s->program.parsed.program, name)) return EXIT_DONE;
    c->has_backward = true;
    c->backward_name = s->program.name;
    const int status = compile_graph(&s->program, name, UNTIL_GRAPH, none, 0, &c->backward);
    if (status == EXIT_DONE) ask_for_same(c);
    return status;
}

static int open_own(Check *c)
{
    Session *s = &c->session;
    int status = compile_graph(&s->program, s->graph->name, UNTIL_GRAD, NULL, 0, &c->grad);
    if (status != EXIT_DONE) return status;
    const CompileRequest request = {.text = c->grad.grad,
                                    .length = strlen(c->grad.grad),
                                    .name = "<grad>",
                                    .target = s->program.target,
                                    .until = UNTIL_GRAPH};
    c->own = compile(&request);
    if (c->own.status == COMPILE_OK) return EXIT_DONE;
    print_diagnostics(c->own.diagnostics);
    return EXIT_MACHINE;
}

/* ---- the verdict ---- */

static bool *list_differentiated(const Check *c)
{
    const Graph *g = c->session.graph;
    const bool *is_statistic = find_statistics(c->session.arena, g);
    bool *of = NEW_ARRAY(c->session.arena, bool, g->outputs.count + 1);
    const char *list = c->options.grad.of;
    for (int i = 0; i < g->outputs.count; i++) {
        of[i] = !list && dtype_is_float(g->outputs.data[i].dtype) && !is_statistic[i];
        for (const char *at = list; at && *at; at += *at == ',') {
            const size_t length = strcspn(at, ",");
            const char *name = g->outputs.data[i].name;
            of[i] |= strlen(name) == length && !strncmp(name, at, length);
            at += length;
        }
    }
    return of;
}

/* Of a backward pass that stands where the forward pass belongs. */
static const char *order_hint(const Check *c)
{
    if (!c->has_backward) return NULL;
    const char *first = c->session.graph->name, *second = c->backward.lowered->name;
    const bool turned = !strcmp(first, arena_format(c->session.arena, "%s_bwd", second));
    return turned ? "the file of the forward pass comes first: fusec gradcheck FORWARD BACKWARD"
                  : NULL;
}

static int judge_gradients(Check *c, Text *out, bool *passed)
{
    const Session *s = &c->session;
    const Graph *g = s->graph, *own = c->own.lowered;
    const void **tensors = NEW_ARRAY(s->arena, const void *, g->params.count + 1);
    for (int i = 0; i < g->params.count; i++) tensors[i] = c->batch.inputs[i].data;
    Progress progress;
    const GradCheck check = {.forward = g,
                             .backward = c->has_backward ? c->backward.lowered : own,
                             .own = c->has_backward ? own : NULL,
                             .of = list_differentiated(c),
                             .sizes = s->sizes,
                             .tensors = c->options.in ? tensors : NULL,
                             .scalars = c->batch.scalars,
                             .seed = c->options.seed,
                             .progress = progress_step,
                             .progress_data = &progress};
    Text *report = text_new(s->arena);
    progress_begin(&progress, "checking gradients");
    const GradVerdict verdict = check_gradients(s->arena, &check, report);
    progress_end(&progress);
    switch (verdict) {
    case GRADCHECK_UNFIT: complain(order_hint(c), "%s", text_string(report)); return EXIT_WRONG;
    case GRADCHECK_NO_MEMORY: complain(NULL, "out of memory"); return EXIT_MACHINE;
    case GRADCHECK_WRONG: *passed = false; break;
    case GRADCHECK_RIGHT: break;
    }
    text_print(out, "%s", check.backward->name);
    text_print(out, c->has_backward ? " of %s, in f64," : " that `fusec grad` derives, in f64,",
               c->backward_name);
    for (int i = 0; i < g->axis_count; i++)
        text_print(out, " %s=%lld", g->axes[i].name, (long long)s->sizes.of[i]);
    text_print(out, "\n%s", text_string(report));
    return EXIT_DONE;
}

int command_gradcheck(Options *o)
{
    Check c = {
        .options = *o,
    };
    bool passed = true;
    Text *out = text_new(o->arena);
    int status = open_session(&c.session, &c.options);
    if (status == EXIT_DONE) status = settle_inputs(&c);
    if (status == EXIT_DONE)
        status = o->files.count > 1 ? open_backward(&c, o->files.data[1]) : open_beside(&c);
    if (status == EXIT_DONE) status = open_own(&c);
    if (status == EXIT_DONE) status = judge_gradients(&c, out, &passed);
    close_inputs(&c.file);
    close_batch(&c.session, &c.batch);
    compile_free(&c.own);
    compile_free(&c.grad);
    compile_free(&c.backward);
    close_program(&c.backward_file);
    close_session(&c.session);
    if (status == EXIT_DONE) status = save_result(o->arena, NULL, text_string(out), out->length);
    return status == EXIT_DONE && !passed ? EXIT_VERIFY : status;
}
