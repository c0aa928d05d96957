/* program.c: see program.h. */
#include "cli/program.h"

#include "cli/files.h"
#include "import_file.h"
#include "frontend/lower.h"
#include "cli/device.h"

#include <stdlib.h>
#include <string.h>

static int exit_status(CompileStatus status)
{
    switch (status) {
    case COMPILE_OK: return EXIT_DONE;
    case COMPILE_WRONG: return EXIT_WRONG;
    case COMPILE_USAGE: return EXIT_USAGE;
    case COMPILE_MACHINE:
    case COMPILE_STOPPED: return EXIT_MACHINE;
    }
    return EXIT_MACHINE;
}

/* Prints each report once, although a file is compiled once for each of its graphs. */
static void show(Program *p, const char *text)
{
    Arena *arena = p->options->arena;
    while (*text) {
        const char *end = text;
        do {
            end += strcspn(end, "\n");
            if (*end) end++;
        } while (*end && !begins_report(end));
        const char *report = arena_copy(arena, text, (size_t)(end - text));
        if (name_find(&p->shown, report) < 0) {
            print_diagnostics(report);
            name_add(arena, &p->shown, report, 1);
        }
        text = end;
    }
}

/* Chooses the graphs of the parsed file that the command takes. */
static int choose_graphs(Program *p)
{
    Arena *arena = p->options->arena;
    int count;
    const Item **items = list_graphs(arena, p->parsed.program, &count);
    const char **names = NEW_ARRAY(arena, const char *, count + 1);
    for (int i = 0; i < count; i++) names[i] = items[i]->name.name;
    p->graphs = names;
    p->graph_count = count;
    const char *wanted = p->options->graph;
    if (!wanted) return EXIT_DONE;
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], wanted)) {
            p->graphs = names + i;
            p->graph_count = 1;
            return EXIT_DONE;
        }
    complain(hint_name(arena, wanted, names, count), "%s has no graph %s", p->name, wanted);
    return EXIT_USAGE;
}

static bool has_axis(const Program *p, const char *graph, const char *axis)
{
    const Item *item = find_graph(p->options->arena, p->parsed.program, graph);
    for (const AxisDecl *a = item ? item->axes : NULL; a; a = a->next)
        if (!strcmp(a->name.name, axis)) return true;
    return false;
}

/* Checks that every axis on the command line belongs to some graph that is taken. */
static int check_sizes(const Program *p)
{
    const Options *o = p->options;
    for (int i = 0; i < o->sizes.count; i++) {
        bool known = p->graph_count == 0;
        for (int g = 0; g < p->graph_count && !known; g++)
            known = has_axis(p, p->graphs[g], o->sizes.data[i].axis);
        if (known) continue;
        complain(NULL, "no graph of %s has an axis %s", p->name, o->sizes.data[i].axis);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

/* Parses the text and the files that it imports, which are read once. `path` is that of the file
 * itself; NULL: stdin. */
static int parse_file(Program *p, const char *path)
{
    ImportCalls calls;
    char identity[FILE_IDENTITY];
    const fusec_parse_options files = {.import = fusec_import_file, .release = fusec_release_file};
    import_calls_open(&calls, &files, path && file_identity(path, identity) ? identity : NULL);
    p->imports = calls.imports;
    int status = compile_graph(p, NULL, UNTIL_AST, NULL, 0, &p->parsed);
    import_calls_close(&calls);
    p->imports = status == EXIT_DONE ? kept_imports(p->parsed.program) : (Imports){0};
    return status;
}

int open_program(Program *p, const Options *o, const char *file)
{
    *p = (Program){.options = o, .name = strcmp(file, "-") ? file : "<stdin>"};
    int status = choose_target(o, &p->target, p->device);
    if (status == EXIT_DONE) status = read_file(o->arena, file, &p->text, &p->length);
    if (status != EXIT_DONE) return status;
    status = parse_file(p, strcmp(file, "-") ? file : NULL);
    if (status == EXIT_DONE) status = choose_graphs(p);
    if (status == EXIT_DONE && p->graph_count != 1) status = check_sizes(p);
    return status;
}

void close_program(Program *p)
{
    compile_free(&p->parsed);
}

static fusec_status give_import(void *data, const char *importer, const char *path,
                                fusec_imported *imported)
{
    const Program *p = data;
    const Module *from = p->parsed.program;
    while (from && strcmp(from->source->name, importer)) from = from->next;
    const Module *module = from ? find_import(p->parsed.program, from->identity, path) : NULL;
    if (!module) return FUSEC_INVALID_PROGRAM;
    imported->text = module->source->text;
    imported->length = module->source->length;
    imported->name = module->source->name;
    imported->identity = module->identity;
    return FUSEC_OK;
}

int parse_for_plans(const Program *p, fusec_program **program)
{
    fusec_error error;
    fusec_parse_options options = {
        .struct_size = sizeof options, .import = give_import, .data = (void *)(uintptr_t)p};
    return finish_call(
        fusec_program_parse_with(p->text, p->length, p->name, &options, program, &error), &error);
}

/* The only graph that is not the backward pass NAME_bwd of another one; NULL: there is none. */
static const char *const *find_forward(const Program *p)
{
    const char *const *found = NULL;
    for (int i = 0; i < p->graph_count; i++) {
        const char *name = p->graphs[i];
        const int length = (int)strlen(name) - (int)strlen("_bwd");
        const bool is_backward = length > 0 && !strcmp(name + length, "_bwd") &&
                                 find_graph(p->options->arena, p->parsed.program,
                                            arena_format(p->options->arena, "%.*s", length, name));
        if (is_backward) continue;
        if (found) return NULL;
        found = p->graphs + i;
    }
    return found;
}

int need_one_graph(Program *p)
{
    const char *const *forward =
        p->options->command == COMMAND_GRADCHECK && p->graph_count > 1 ? find_forward(p) : NULL;
    if (forward) {
        p->graphs = forward;
        p->graph_count = 1;
    }
    if (p->graph_count == 1) return EXIT_DONE;
    if (p->graph_count == 0) {
        complain(NULL, "%s holds no graph", p->name);
        return EXIT_WRONG;
    }
    complain(arena_format(p->options->arena, "--graph %s", p->graphs[0]),
             "%s holds %d graphs, name one of them (%s)", p->name, p->graph_count,
             list_names(p->options->arena, p->graphs, p->graph_count));
    return EXIT_USAGE;
}

static bool may_tune(const Program *p)
{
    return *p->device && !p->options->schedule && !p->options->no_tuning;
}

static void tune_graph(Program *p, const CompileRequest *request, Compilation *c)
{
    if (!compile_tuned(request, p->device, c, &p->tuned)) arena_out_of_memory(p->options->arena);
    if (c->status != COMPILE_OK) show(p, c->diagnostics);
    if (*p->tuned.warning) remark("%s", p->tuned.warning);
}

static CompileRequest request_for(Program *p, const char *graph, CompileUntil until,
                                  const AxisSize *sizes, int size_count)
{
    const Options *o = p->options;
    LIST(AxisSize) given = {0};
    for (int i = 0; i < size_count && graph; i++)
        if (p->graph_count <= 1 || has_axis(p, graph, sizes[i].axis))
            *list_push(o->arena, &given) = sizes[i];
    return (CompileRequest){.text = p->text,
                            .length = p->length,
                            .name = p->name,
                            .imports = &p->imports,
                            .graph = graph,
                            .parsed = p->parsed.program,
                            .is_checked = p->is_checked,
                            .budget = &p->budget,
                            .sizes = given.data,
                            .size_count = given.count,
                            .grad = &o->grad,
                            .outputs = o->outputs,
                            .schedule = o->schedule,
                            .target = p->target,
                            .until = until,
                            .rows_at_launch =
                                (o->command == COMMAND_EMIT || o->command == COMMAND_BUILD) &&
                                until >= UNTIL_PLAN};
}

int compile_graph(Program *p, const char *graph, CompileUntil until, const AxisSize *sizes,
                  int size_count, Compilation *c)
{
    const Options *o = p->options;
    p->budget = o->limits;
    budget_begin(&p->budget);
    CompileRequest request = request_for(p, graph, until, sizes ? sizes : o->sizes.data,
                                         sizes ? size_count : o->sizes.count);
    Progress progress;
    progress_begin(&progress, "compiling");
    *c = compile(&request);
    progress_end(&progress);
    show(p, c->diagnostics);
    p->is_checked |= c->status == COMPILE_OK && until > UNTIL_AST;
    if (c->status == COMPILE_OK && until >= UNTIL_PLAN && may_tune(p)) tune_graph(p, &request, c);
    return exit_status(c->status);
}
