/* grad.c: `fusec grad`: the backward pass of a graph, as a .fuse file. */
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/program.h"

#include <string.h>

int command_grad(Options *o)
{
    Program p;
    Compilation c = {0};
    int status = open_program(&p, o, o->files.data[0]);
    if (status == EXIT_DONE) status = need_one_graph(&p);
    if (status == EXIT_DONE) status = compile_graph(&p, p.graphs[0], UNTIL_GRAD, NULL, 0, &c);
    if (status == EXIT_DONE) status = save_result(o->arena, o->output, c.grad, strlen(c.grad));
    compile_free(&c);
    close_program(&p);
    return status;
}
