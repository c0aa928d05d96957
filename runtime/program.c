/* program.c: parsed programs. Every plan compiles its syntax tree for its own sizes. */
#include "internal.h"
#include "targets.h"

#include "import_file.h"
#include "frontend/lower.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

static fusec_status compile_failure(const Compilation *c, fusec_error *error)
{
    fusec_status status = c->status == COMPILE_USAGE   ? FUSEC_INVALID_ARGUMENT
                          : c->status == COMPILE_WRONG ? FUSEC_INVALID_PROGRAM
                                                       : FUSEC_IO_ERROR;
    const char *text = c->diagnostics && *c->diagnostics ? c->diagnostics : NULL;
    if (c->out_of_memory) status = FUSEC_OUT_OF_MEMORY;
    if (c->stopped)
        status = c->stopped == STOPPED_BY_CALLER ? FUSEC_CANCELLED : FUSEC_LIMIT_EXCEEDED;
    return fail(error, status, "%s", text ? text : "the program was refused");
}

fusec_status fail_stopped(const Budget *budget, fusec_error *error)
{
    char reason[256];
    budget_reason(budget, reason, sizeof reason);
    return fail(error,
                budget->stopped == STOPPED_BY_CALLER ? FUSEC_CANCELLED : FUSEC_LIMIT_EXCEEDED, "%s",
                reason);
}

fusec_status check_limits(int64_t max_nodes, int64_t max_bytes, double max_seconds,
                          fusec_error *error)
{
    const char *wrong = max_nodes < 0         ? "max_nodes"
                        : max_bytes < 0       ? "max_bytes"
                        : !(max_seconds >= 0) ? "max_seconds"
                                              : NULL;
    if (!wrong) return FUSEC_OK;
    return fail(error, FUSEC_INVALID_ARGUMENT, "options.%s must be above 0, or 0 for the default",
                wrong);
}

fusec_status compile_checked(const CompileRequest *request, Compilation *c, fusec_error *error)
{
    *c = compile(request);
    return check_compiled(c, error);
}

fusec_status check_compiled(Compilation *c, fusec_error *error)
{
    if (c->status == COMPILE_OK) return FUSEC_OK;
    fusec_status status = compile_failure(c, error);
    compile_free(c);
    *c = (Compilation){0};
    return status;
}

static bool list_program_graphs(fusec_program *program)
{
    int count = program_graphs(program->checked.program, NULL, 0);
    program->graphs = calloc((size_t)count + 1, sizeof *program->graphs);
    if (!program->graphs) return false;
    program_graphs(program->checked.program, program->graphs, count);
    program->graph_count = count;
    return true;
}

static fusec_status check_program_text(fusec_program *program, const fusec_parse_options *options,
                                       const char *identity, fusec_error *error)
{
    ImportCalls calls;
    Budget budget = {.nodes = options->max_nodes,
                     .bytes = options->max_bytes,
                     .seconds = options->max_seconds,
                     .is_cancelled = options->is_cancelled,
                     .data = options->cancel_data};
    CompileRequest request = {.text = program->text, .length = program->length};
    import_calls_open(&calls, options, identity);
    request.name = program->name;
    request.imports = &calls.imports;
    targets_open();
    request.target = *target_find("sm_90a");
    request.until = UNTIL_CHECK;
    request.budget = &budget;
    budget_begin(&budget);
    fusec_status status = compile_checked(&request, &program->checked, error);
    import_calls_close(&calls);
    if (status != FUSEC_OK) return status;
    return list_program_graphs(program) ? FUSEC_OK
                                        : fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
}

static fusec_status read_parse_options(const fusec_parse_options *given,
                                       fusec_parse_options *options, fusec_error *error)
{
    fusec_status status =
        copy_options(options, sizeof *options, given, "fusec_parse_options", error);
    if (status != FUSEC_OK) return status;
    if (options->import == fusec_import_file && !options->release)
        options->release = fusec_release_file;
    return check_limits(options->max_nodes, options->max_bytes, options->max_seconds, error);
}

/* Owns `text`, which is malloc'ed, from then on. */
static fusec_status make_program(char *text, size_t length, const char *name,
                                 const fusec_parse_options *options, const char *identity,
                                 fusec_program **result, fusec_error *error)
{
    fusec_program *program = calloc(1, sizeof *program);
    if (!program) {
        free(text);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    atomic_init(&program->references, 1);
    program->text = text;
    program->name = copy_text(name, strlen(name));
    program->length = length;
    fusec_status status = program->text && program->name
                              ? check_program_text(program, options, identity, error)
                              : fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (status != FUSEC_OK) {
        fusec_program_destroy(program);
        return status;
    }
    *result = program;
    return succeed(error);
}

fusec_status fusec_program_parse_with(const char *text, size_t length, const char *name,
                                      const fusec_parse_options *given, fusec_program **result,
                                      fusec_error *error)
{
    OWN_ENVIRONMENT;
    fusec_parse_options options;
    char identity[FILE_IDENTITY];
    CLEAR_RESULT(result, "the program", error);
    if (!text && length) return fail_null(error, "the text");
    if (length > MAX_TEXT)
        return fail(error, FUSEC_LIMIT_EXCEEDED, "the program has over %d MiB", MAX_TEXT >> 20);
    fusec_status status = read_parse_options(given, &options, error);
    if (status != FUSEC_OK) return status;
    bool is_file = options.import == fusec_import_file && name && file_identity(name, identity);
    return make_program(copy_text(text ? text : "", length), length, name ? name : "<memory>",
                        &options, is_file ? identity : NULL, result, error);
}

fusec_status fusec_program_parse(const char *text, size_t length, const char *name,
                                 fusec_program **result, fusec_error *error)
{
    return fusec_program_parse_with(text, length, name, NULL, result, error);
}

fusec_status fusec_program_open(const char *path, const fusec_parse_options *given,
                                fusec_program **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    fusec_parse_options options;
    char *text, identity[FILE_IDENTITY], message[256];
    size_t length;
    CLEAR_RESULT(result, "the program", error);
    if (!path) return fail_null(error, "the path");
    fusec_status status = read_parse_options(given, &options, error);
    if (status != FUSEC_OK) return status;
    if (!options.import) {
        options.import = fusec_import_file;
        options.release = fusec_release_file;
    }
    status = program_file_read(path, &text, &length, identity, message, sizeof message);
    if (status != FUSEC_OK)
        return fail(error, status, "%s", status == FUSEC_OUT_OF_MEMORY ? "out of memory" : message);
    bool is_file = options.import == fusec_import_file;
    return make_program(text, length, path, &options, is_file ? identity : NULL, result, error);
}

static fusec_status make_gradient(const CompileRequest *request, fusec_program **result,
                                  fusec_error *error)
{
    Compilation c;
    fusec_status status = compile_checked(request, &c, error);
    if (status != FUSEC_OK) return status;
    const size_t length = strlen(c.grad);
    const fusec_parse_options none = {.struct_size = sizeof none};
    status = make_program(copy_text(c.grad, length), length, "<grad>", &none, NULL, result, error);
    compile_free(&c);
    return status;
}

fusec_status fusec_program_grad(const fusec_program *program, const char *graph,
                                const fusec_grad_options *given, fusec_program **result,
                                fusec_error *error)
{
    OWN_ENVIRONMENT;
    fusec_grad_options options;
    CLEAR_RESULT(result, "the backward program", error);
    if (!program) return fail_null(error, "the program");
    fusec_status status =
        copy_options(&options, sizeof options, given, "fusec_grad_options", error);
    if (status == FUSEC_OK)
        status = check_limits(options.max_nodes, options.max_bytes, options.max_seconds, error);
    if (status != FUSEC_OK) return status;
    Budget budget = {.nodes = options.max_nodes,
                     .bytes = options.max_bytes,
                     .seconds = options.max_seconds,
                     .is_cancelled = options.is_cancelled,
                     .data = options.cancel_data};
    const GradRequest grad = {.of = options.of, .wrt = options.wrt, .save = options.save};
    const CompileRequest request = {.text = program->text,
                                    .length = program->length,
                                    .name = program->name,
                                    .parsed = program->checked.program,
                                    .is_checked = true,
                                    .graph = graph,
                                    .grad = &grad,
                                    .until = UNTIL_GRAD,
                                    .budget = &budget};
    budget_begin(&budget);
    return make_gradient(&request, result, error);
}

fusec_program *program_retain(const fusec_program *program)
{
    /* The count is no part of the program's value. */
    fusec_program *counted = (fusec_program *)(uintptr_t)program;
    atomic_fetch_add_explicit(&counted->references, 1, memory_order_relaxed);
    return counted;
}

void fusec_program_destroy(fusec_program *program)
{
    if (!program || atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1)
        return;
    if (program->checked.arena) compile_free(&program->checked);
    free(program->graphs);
    free(program->text);
    free(program->name);
    free(program);
}

size_t fusec_program_graph_count(const fusec_program *program)
{
    return program ? (size_t)program->graph_count : 0;
}

const char *fusec_program_graph(const fusec_program *program, size_t index)
{
    return index < fusec_program_graph_count(program) ? program->graphs[index]->name.name : NULL;
}

const char *fusec_program_text(const fusec_program *program)
{
    return program ? program->text : "";
}

const char *fusec_program_warnings(const fusec_program *program)
{
    return program && program->checked.diagnostics ? program->checked.diagnostics : "";
}
