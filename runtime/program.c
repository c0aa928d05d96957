/* program.c: parsed programs. A program keeps its text: every plan compiles it for its
 * own sizes. */
#include "internal.h"
#include "lower.h"

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
    if (c->out_of_memory)
        status = FUSEC_OUT_OF_MEMORY;
    return fail(error, status, "%s", text ? text : "the program was refused");
}

fusec_status compile_checked(const CompileRequest *request, Compilation *c,
                             fusec_error *error)
{
    *c = compile(request);
    if (c->status == COMPILE_OK)
        return FUSEC_OK;
    fusec_status status = compile_failure(c, error);
    compile_free(c);
    *c = (Compilation){0};
    return status;
}

static bool name_graphs(fusec_program *program)
{
    int count = program_graphs(program->checked.program, NULL, 0);
    const Item **items = calloc((size_t)count + 1, sizeof *items);
    program->graphs = calloc((size_t)count + 1, sizeof *program->graphs);
    const bool good = items && program->graphs;
    if (good) program_graphs(program->checked.program, items, count);
    for (int i = 0; good && i < count; i++) program->graphs[i] = items[i]->name.name;
    program->graph_count = good ? count : 0;
    free(items);
    return good;
}

static fusec_status check_program_text(fusec_program *program, fusec_error *error)
{
    const Target *target = target_find("sm_90a");
    CompileRequest request = {.text = program->text, .length = program->length};
    request.name = program->name;
    request.target = *target;
    request.until = UNTIL_CHECK;
    fusec_status status = compile_checked(&request, &program->checked, error);
    if (status == FUSEC_OK && !name_graphs(program))
        status = fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    return status;
}

fusec_status fusec_program_parse(const char *text, size_t length, const char *name,
                                 fusec_program **result, fusec_error *error)
{
    CLEAR_RESULT(result, "the program", error);
    if (!text && length)
        return fail_null(error, "the text");
    if (length > UINT32_MAX - 1)
        return fail(error, FUSEC_INVALID_PROGRAM, "the program has more than 4 GiB");
    fusec_program *program = calloc(1, sizeof *program);
    if (!program)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (!name)
        name = "<memory>";
    program->text = copy_text(text ? text : "", length);
    program->name = copy_text(name, strlen(name));
    program->length = length;
    fusec_status status = FUSEC_OK;
    if (!program->text || !program->name)
        status = fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (status == FUSEC_OK)
        status = check_program_text(program, error);
    if (status != FUSEC_OK) {
        fusec_program_destroy(program);
        return status;
    }
    *result = program;
    return succeed(error);
}

void fusec_program_destroy(fusec_program *program)
{
    if (!program)
        return;
    if (program->checked.arena)
        compile_free(&program->checked);
    free(program->graphs);
    free(program->text);
    free(program->name);
    free(program);
}

size_t fusec_program_graph_count(const fusec_program *program)
{
    return (size_t)program->graph_count;
}

const char *fusec_program_graph(const fusec_program *program, size_t index)
{
    return index < (size_t)program->graph_count ? program->graphs[index] : NULL;
}

const char *fusec_program_warnings(const fusec_program *program)
{
    return program->checked.diagnostics ? program->checked.diagnostics : "";
}
