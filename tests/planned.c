/* planned.c: see planned.h. */
#include "planned.h"
#include "codegen/cuda.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static char program[1 << 14];

Compilation compile_target(const char *schedule, int64_t rows, int64_t columns,
                           const Target *target)
{
    AxisSize sizes[] = {{"M", rows}, {"N", columns}};
    CompileRequest request = {.text = program,
                              .length = strlen(program),
                              .name = "test.fuse",
                              .sizes = sizes,
                              .size_count = 2,
                              .schedule = schedule,
                              .target = *target,
                              .until = UNTIL_CUDA};
    Compilation c = compile(&request);
    ck_assert_msg(c.status == COMPILE_OK, "%s: %s", schedule ? schedule : "chosen", c.diagnostics);
    return c;
}

Compilation compile_sizes(const char *schedule, int64_t rows, int64_t columns, const char *arch)
{
    return compile_target(schedule, rows, columns, target_find(arch));
}

const char *choose_program(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: run this from the top directory", path);
    program[fread(program, 1, sizeof program - 1, file)] = 0;
    fclose(file);
    return program;
}

const char *bare_text(const Compilation *c)
{
    return emit_cuda(c->arena, c->plan, NULL);
}

void choose_text(const char *text)
{
    snprintf(program, sizeof program, "%s", text);
}
