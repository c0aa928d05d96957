/* emit.c: `fusec FILE`, `fusec emit`, `fusec check`: the result of each stage of the compiler. */
#include "analyze/analyze.h"
#include "cli/commands.h"
#include "codegen/cuda.h"
#include "cli/device.h"
#include "explain/dot.h"
#include "cli/files.h"
#include "cli/program.h"
#include "schedule/keys.h"
#include "cli/fmt.h"

#include <stdio.h>
#include <string.h>

static const CompileUntil stages[EMIT_COUNT] = {
    [EMIT_TOKENS] = UNTIL_AST,    [EMIT_AST] = UNTIL_AST,           [EMIT_GRAPH] = UNTIL_GRAPH,
    [EMIT_DOT] = UNTIL_PLAN,      [EMIT_ANALYSIS] = UNTIL_ANALYSIS, [EMIT_PLAN] = UNTIL_PLAN,
    [EMIT_SCHEDULE] = UNTIL_PLAN, [EMIT_CUDA] = UNTIL_PLAN,         [EMIT_PTX] = UNTIL_PLAN,
    [EMIT_CUBIN] = UNTIL_PLAN,
};

static int compile_for(Program *p, const char *graph, Compilation *c)
{
    int status = compile_graph(p, graph, stages[p->options->emit], NULL, 0, c);
    if (status == EXIT_DONE && p->tuned.schedule)
        remark("%s has the schedule %s of the tuning file (--no-tuning ignores the file)", graph,
               p->tuned.schedule);
    return status;
}

/* Adds the requested output for one graph. */
static int emit_graph(Program *p, const char *graph, Text *out)
{
    const Options *o = p->options;
    Compilation c;
    int status = compile_for(p, graph, &c);
    if (status == EXIT_DONE && out->length && o->emit != EMIT_DOT) text_print(out, "\n");
    if (status == EXIT_DONE) switch (o->emit) {
        case EMIT_GRAPH: print_graph(out, c.graph); break;
        case EMIT_ANALYSIS: print_analysis(out, c.analysis); break;
        case EMIT_PLAN: print_plan(out, c.plan); break;
        case EMIT_SCHEDULE: text_print(out, "%s\n", complete_schedule(c.arena, c.plan)); break;
        case EMIT_DOT: print_dot(out, c.plan); break;
        case EMIT_CUDA:
        case EMIT_PTX:
        case EMIT_CUBIN:
        case EMIT_TOKENS:
        case EMIT_AST:
        case EMIT_COUNT: break;
        }
    compile_free(&c);
    return status;
}

/* The entries of all graphs so far, in order and by name. */
typedef struct {
    LIST(const char *) list;
    Map map;
} Names;

/* A graph's kernels are named after it (`a`, `a_finish`), which may be the name of another
 * graph. */
static int add_names(const Options *o, Arena *scratch, const LaunchPlan *launch, const char *graph,
                     Names *names)
{
    const LaunchEntry **entries =
        NEW_ARRAY(scratch, const LaunchEntry *, 2 * launch->kernel_count + 1);
    const int count = list_entries(launch, entries), before = names->list.count;
    for (int i = 0; i < count; i++) {
        const char *name = arena_format(o->arena, "%s", entries[i]->name);
        const int known = name_find(&names->map, name);
        if (known >= 0 && known < before) {
            complain(
                "give one of the graphs another name, or emit each by --graph",
                "kernels are named after their graph: one of graph '%s' and one of an earlier graph are both called '%s'",
                graph, name);
            return EXIT_WRONG;
        }
        if (known < 0) name_add(o->arena, &names->map, name, names->list.count);
        *list_push(o->arena, &names->list) = name;
    }
    return EXIT_DONE;
}

/* One module with the kernels of all graphs, or what NVRTC makes of it. A graph's compilation is
 * freed as soon as its kernels are printed. */
static int emit_module(Program *p, Text *out)
{
    const Options *o = p->options;
    CudaText module = cuda_begin(o->arena, o->include_prelude && o->emit == EMIT_CUDA);
    Names names = {0};
    int status = EXIT_DONE;
    for (int i = 0; i < p->graph_count && status == EXIT_DONE; i++) {
        Compilation c;
        Arena *scratch = arena_scratch(o->arena);
        status = compile_for(p, p->graphs[i], &c);
        if (status == EXIT_DONE)
            status = add_names(o, scratch, &c.plan->launch, p->graphs[i], &names);
        if (status == EXIT_DONE) cuda_add(&module, scratch, c.plan, c.command);
        arena_free(scratch);
        compile_free(&c);
    }
    if (status != EXIT_DONE) return status;
    const char *text = cuda_end(&module);
    if (o->emit != EMIT_CUDA)
        return emit_machine_code(o, &p->target, text, names.list.data, names.list.count, out);
    text_print(out, "%s", text);
    return EXIT_DONE;
}

static int emit_ast(Program *p, Text *out)
{
    Compilation c;
    int status = compile_graph(p, NULL, UNTIL_AST, NULL, 0, &c);
    if (status == EXIT_DONE) print_ast(out, c.program);
    compile_free(&c);
    return status;
}

static int emit_stage(Program *p, Text *out)
{
    EmitKind kind = p->options->emit;
    int status = EXIT_DONE;
    if (kind == EMIT_AST) return emit_ast(p, out);
    if (p->graph_count == 0) return need_one_graph(p);
    if (kind == EMIT_CUDA || kind == EMIT_PTX || kind == EMIT_CUBIN) return emit_module(p, out);
    for (int i = 0; i < p->graph_count && status == EXIT_DONE; i++)
        status = emit_graph(p, p->graphs[i], out);
    return status;
}

int command_emit(Options *o)
{
    Text *out = text_new(o->arena);
    Program p;
    int status;
    if (o->emit == EMIT_TOKENS) {
        status = list_tokens(o, out);
    } else {
        status = open_program(&p, o, o->files.data[0]);
        if (status == EXIT_DONE) status = emit_stage(&p, out);
        close_program(&p);
    }
    if (status != EXIT_DONE) return status;
    return save_result(o->arena, o->output, text_string(out), out->length);
}

/* The worst of the two. */
static int worse(int a, int b)
{
    return a > b ? a : b;
}

static int check_program_file(Program *p)
{
    int status = EXIT_DONE;
    Compilation c;
    if (p->graph_count == 0 || !p->options->graph) {
        status = compile_graph(p, NULL, UNTIL_CHECK, NULL, 0, &c);
        compile_free(&c);
        return status;
    }
    for (int i = 0; i < p->graph_count; i++) {
        status = worse(status, compile_graph(p, p->graphs[i], UNTIL_GRAPH, NULL, 0, &c));
        compile_free(&c);
    }
    return status;
}

/* Adds the names of the file's graphs to a JSON array. */
static int check_file(const Options *o, const char *file, Text *graphs)
{
    Program p;
    int status = open_program(&p, o, file);
    for (int i = 0; graphs && status == EXIT_DONE && i < p.graph_count; i++) {
        text_print(graphs, "%s", i ? ", " : "");
        text_quote(graphs, p.graphs[i]);
    }
    if (status == EXIT_DONE) status = check_program_file(&p);
    close_program(&p);
    return status;
}

/* Each file with its graphs and what was found. What the machine could not goes to stderr. */
static int check_json(const Options *o)
{
    Text *out = text_new(o->arena);
    int status = EXIT_DONE;
    text_print(out, "{\"files\": [");
    for (int i = 0; i < o->files.count; i++) {
        Text *graphs = text_new(o->arena);
        Reports reports = {text_new(o->arena), text_new(o->arena)};
        collect_reports(&reports);
        const int of_file = check_file(o, o->files.data[i], graphs);
        collect_reports(NULL);
        if (of_file == EXIT_MACHINE) {
            fputs(text_string(reports.text), stderr);
            return of_file;
        }
        text_print(out, "%s\n  {\"file\": ", i ? "," : "");
        text_quote(out, o->files.data[i]);
        text_print(out, ", \"ok\": %s, \"graphs\": [%s],\n   \"diagnostics\": [%s]}",
                   of_file == EXIT_DONE ? "true" : "false", text_string(graphs),
                   text_string(reports.json));
        status = worse(status, of_file);
    }
    text_print(out, "\n]}\n");
    return worse(status, save_result(o->arena, NULL, text_string(out), out->length));
}

int command_check(Options *o)
{
    int status = EXIT_DONE;
    if (o->json) return check_json(o);
    for (int i = 0; i < o->files.count; i++)
        status = worse(status, check_file(o, o->files.data[i], NULL));
    return status;
}
