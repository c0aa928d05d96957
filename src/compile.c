/* compile.c: the compiler on one page. Text goes in, CUDA comes out:
 *
 *   parse -> lower -> simplify -> analyze -> schedule -> cuda
 *
 * Every stage reports errors to one Diagnostics and unwinds to the setjmp below. */
#include "compile.h"

#include "analyze/analyze.h"
#include "codegen/cuda.h"
#include "base/environment.h"
#include "frontend/lower.h"
#include "schedule/plan.h"
#include "graph/simplify.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const CompileRequest *request;
    Diagnostics d;
    Compilation *result;
    Arena *scratch;          /* of one stage; NULL: none */
    char *reason;            /* room for the reason of a stop, when there may be no more memory */
    CompileStatus failure;   /* the status that an error of this stage has */
    const GradRequest *grad; /* while gradients are made */
} Pipeline;

/* The place of an error in the request. */
static Span no_place(const Pipeline *p)
{
    return whole_file(p->result->program ? p->result->program->source : NULL);
}

/* The graph that the request names, or the only one. */
static const Item *choose_graph(Pipeline *p)
{
    int count;
    Arena *arena = p->d.arena;
    const char *wanted = p->request->graph;
    const Item *named = wanted ? find_graph(arena, p->result->program, wanted) : NULL;
    p->failure = COMPILE_USAGE;
    if (named) return named;
    const Item **graphs = list_graphs(arena, p->result->program, &count);
    const char **names = NEW_ARRAY(arena, const char *, count + 1);
    for (int i = 0; i < count; i++) names[i] = graphs[i]->name.name;
    if (wanted)
        report_error(&p->d, no_place(p), hint_name(arena, wanted, names, count),
                     "there is no graph '%s'", wanted);
    else if (count == 0)
        report_error(&p->d, no_place(p), NULL, "there is no graph in this file");
    else if (count > 1)
        report_error(&p->d, no_place(p), hint_name(arena, "", names, count),
                     "the file has several graphs: name one");
    stop_on_errors(&p->d);
    return graphs[0];
}

static int find_axis(const Graph *g, const char *name)
{
    for (int i = 0; i < g->axis_count; i++)
        if (!strcmp(g->axes[i].name, name)) return i;
    return -1;
}

/* The declared defaults, overridden by the request. */
static void bind_sizes(Pipeline *p, const Graph *g)
{
    p->failure = COMPILE_USAGE;
    const char *names[MAX_AXES];
    for (int i = 0; i < g->axis_count; i++) {
        names[i] = g->axes[i].name;
        p->result->sizes.of[i] = g->axes[i].size;
    }
    for (int i = 0; i < p->request->size_count; i++) {
        const AxisSize *given = &p->request->sizes[i];
        int axis = find_axis(g, given->axis);
        if (axis < 0)
            report_error(&p->d, no_place(p),
                         hint_name(p->d.arena, given->axis, names, g->axis_count),
                         "graph '%s' has no axis '%s'", g->name, given->axis);
        else if (given->size < 0)
            report_error(&p->d, g->axes[axis].span, NULL, "axis '%s' has a negative size",
                         given->axis);
        else
            p->result->sizes.of[axis] = given->size;
    }
    Sizes one = p->result->sizes;
    for (int i = 0; i < g->axis_count; i++) one.of[i] = one.of[i] < 0 ? 1 : one.of[i];
    AxisSet open = p->request->rows_at_launch ? ~analyze(p->d.arena, g, &one)->fixed : 0;
    for (int i = 0; i < g->axis_count; i++) {
        if (p->result->sizes.of[i] < 0 && !(open >> i & 1))
            report_error(&p->d, g->axes[i].span, NULL, "axis '%s' has no size: give %s=SIZE",
                         names[i], names[i]);
    }
    p->result->sizes = one;
    stop_on_errors(&p->d);
}

static void report_overflow(Pipeline *p, Span span, const char *what)
{
    report_error(&p->d, span, NULL, "the sizes of '%s' overflow", what);
}

/* The bytes of a tensor, and the elements of a computed value, must fit 63 bits. Axes that never
 * occur together may have any sizes. */
static void check_sizes(Pipeline *p, const Graph *g)
{
    const Sizes *sizes = &p->result->sizes;
    p->failure = COMPILE_WRONG;
    for (int i = 0; i < g->params.count; i++) {
        const Param *param = &g->params.data[i];
        if (axes_bytes(sizes, param->axes, param->dtype) == INT64_MAX)
            report_overflow(p, param->span, param->name);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *output = &g->outputs.data[i];
        if (output->value.id && axes_bytes(sizes, output->axes, output->dtype) == INT64_MAX)
            report_overflow(p, output->span, output->name);
    }
    stop_on_errors(&p->d);
    const bool *live = graph_live(g);
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        if (live[i] && axes_size(sizes, info->axes) == INT64_MAX)
            report_overflow(p, info->span, node_text(p->d.arena, g, (Node){(uint32_t)i}, false));
        stop_on_errors(&p->d);
    }
}

/* Which outputs --outputs names; NULL for all. */
static bool *find_wanted(Pipeline *p, const Graph *g)
{
    if (!p->request->outputs) return NULL;
    p->failure = COMPILE_USAGE;
    bool *wanted = NEW_ARRAY(p->d.arena, bool, g->outputs.count + 1);
    const char **names = NEW_ARRAY(p->d.arena, const char *, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) names[i] = g->outputs.data[i].name;
    for (const char *at = p->request->outputs; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        const char *name = arena_copy(p->d.arena, at, length);
        bool found = false;
        for (int i = 0; i < g->outputs.count; i++)
            if (!strcmp(names[i], name)) wanted[i] = found = true;
        if (!found)
            report_error(&p->d, no_place(p), hint_name(p->d.arena, name, names, g->outputs.count),
                         "graph '%s' has no output '%s'", g->name, name);
        at += length;
    }
    stop_on_errors(&p->d);
    return wanted;
}

static void parse(Pipeline *p)
{
    const CompileRequest *request = p->request;
    Compilation *c = p->result;
    Arena *arena = c->arena;
    c->program = request->parsed;
    if (c->program) return;
    Source *source = NEW(arena, Source);
    source->name = arena_copy(arena, request->name, strlen(request->name));
    source->text = arena_copy(arena, request->text, request->length);
    source->length = request->length;
    index_lines(arena, source);
    Module *program = parse_program(arena, &p->d, source, request->imports);
    c->program = program;
    stop_on_errors(&p->d);
    index_program(arena, program);
}

/* Checks the graphs of a program one after another, each in memory of its own. */
static void check_graphs(Pipeline *p)
{
    int count;
    const Item **graphs = list_graphs(p->d.arena, p->result->program, &count);
    for (int i = 0; i < count; i++) {
        p->scratch = arena_scratch(p->d.arena);
        lower(p->scratch, &p->d, p->result->program, graphs[i]);
        arena_free(p->scratch);
        p->scratch = NULL;
        arena_ask(p->d.arena);
    }
    stop_on_errors(&p->d);
}

static const char *find_command(Pipeline *p)
{
    int count;
    list_graphs(p->d.arena, p->result->program, &count);
    return command_text(p->d.arena, p->result->plan,
                        &(CommandWords){.file = p->request->name,
                                        .has_several_graphs = count > 1,
                                        .outputs = p->request->outputs,
                                        .schedule = p->request->schedule});
}

static void differentiate(Pipeline *p)
{
    Compilation *c = p->result;
    Arena *arena = c->arena;
    GradRequest request = *p->request->grad;
    p->grad = &request;
    const Gradient result = grad(arena, &p->d, c->lowered, &request);
    p->grad = NULL;
    verify_graph(result.graph);
    Text *text = text_new(arena), *formatted = text_new(arena);
    print_gradient(text, c->lowered, &result);
    Source *source = NEW(arena, Source);
    *source = (Source){.name = "<grad>", .text = text_string(text), .length = text->length};
    index_lines(arena, source);
    format_source(formatted, arena, &p->d, source);
    stop_on_errors(&p->d);
    c->grad = text_string(formatted);
}

static void run_pipeline(Pipeline *p)
{
    const CompileRequest *request = p->request;
    Compilation *c = p->result;
    Arena *arena = c->arena;

    p->failure = COMPILE_WRONG;
    parse(p);
    if (request->until == UNTIL_AST) return;
    arena_ask(arena);
    if (request->until == UNTIL_CHECK) {
        check_program(arena, &p->d, c->program);
        check_graphs(p);
        return;
    }

    const Item *declaration = choose_graph(p);
    p->failure = COMPILE_WRONG;
    if (!request->is_checked) check_program(arena, &p->d, c->program);
    c->lowered = lower(arena, &p->d, c->program, declaration);
    stop_on_errors(&p->d);
    verify_graph(c->lowered);
    arena_ask(arena);

    if (request->until == UNTIL_GRAD) {
        differentiate(p);
        return;
    }

    c->graph = simplify(arena, c->lowered, find_wanted(p, c->lowered));
    verify_graph(c->graph);
    if (request->until == UNTIL_GRAPH) return;
    arena_ask(arena);

    bind_sizes(p, c->graph);
    check_sizes(p, c->graph);
    c->analysis = analyze(arena, c->graph, &c->sizes);
    verify_graph(c->graph = c->analysis->graph);
    if (request->until == UNTIL_ANALYSIS) return;
    arena_ask(arena);

    bool refused = false;
    p->failure = COMPILE_USAGE;
    c->plan = schedule(arena, &p->d, c->analysis, &request->target, request->schedule, &refused);
    c->analysis = c->plan->analysis;
    c->graph = c->analysis->graph;
    c->launch = &c->plan->launch;
    c->command = find_command(p);
    if (request->until == UNTIL_PLAN) return;
    arena_ask(arena);

    c->cuda = emit_cuda(arena, c->plan, c->command);
}

static void leave(void *data)
{
    Pipeline *p = data;
    p->failure = COMPILE_MACHINE;
    longjmp(*p->d.escape, 2);
}

enum { REASON = 512 };

static void end_compilation(Pipeline *p, int jumped, const Budget *budget)
{
    Compilation *result = p->result;
    arena_free(p->scratch);
    arena_set_budget(result->arena, NULL);
    arena_on_out_of_memory(result->arena, NULL, NULL);
    if (p->grad && p->grad->is_usage) p->failure = COMPILE_USAGE;
    result->stopped = jumped && p->reason ? budget->stopped : NOT_STOPPED;
    result->status = jumped == 0       ? COMPILE_OK
                     : result->stopped ? COMPILE_STOPPED
                     : p->d.machine    ? COMPILE_MACHINE
                                       : p->failure;
    result->out_of_memory = !result->stopped && (jumped == 2 || !p->d.text);
    if (result->out_of_memory) return;
    result->diagnostics = p->d.text ? text_string(p->d.text) : "";
    if (jumped != 2) return;
    char why[REASON / 2];
    budget_reason(budget, why, sizeof why);
    snprintf(p->reason, REASON, "%.200s: error: %s\n", p->request->name, why);
    result->diagnostics = p->reason;
}

static Compilation compile_here(const CompileRequest *request)
{
    static const char no_memory[] = "error: out of memory\n";
    Compilation result = {.arena = arena_new(),
                          .diagnostics = no_memory,
                          .out_of_memory = true,
                          .status = COMPILE_MACHINE};
    if (!result.arena) return result;
    jmp_buf escape;
    Budget own = {0}, *budget = request->budget ? request->budget : &own;
    if (!request->budget) budget_begin(&own);
    Pipeline p = {.request = request, .result = &result, .failure = COMPILE_MACHINE};
    p.d.escape = &escape;
    p.d.arena = result.arena;
    arena_on_out_of_memory(result.arena, leave, &p);
    int jumped = setjmp(escape);
    if (jumped == 0) {
        p.reason = arena_alloc(result.arena, REASON);
        p.d.text = text_new(result.arena);
        budget->used = 0;
        arena_set_budget(result.arena, budget);
        arena_ask(result.arena);
        run_pipeline(&p);
    }
    end_compilation(&p, jumped, budget);
    return result;
}

typedef struct {
    const CompileRequest *request;
    Compilation result;
} Job;

static void *do_job(void *data)
{
    OWN_ENVIRONMENT;
    Job *job = data;
    job->result = compile_here(job->request);
    return NULL;
}

Compilation compile(const CompileRequest *request)
{
    Job job = {.request = request};
    run_on_large_stack(do_job, &job);
    return job.result;
}

void compile_free(Compilation *c)
{
    arena_free(c->arena);
    *c = (Compilation){.diagnostics = ""};
}
