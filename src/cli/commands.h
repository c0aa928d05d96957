/* commands.h: one function a command; each returns the exit status. */
#ifndef FUSEC_CLI_COMMANDS_H
#define FUSEC_CLI_COMMANDS_H

#include "cli/options.h"

int command_emit(Options *o);
int command_check(Options *o);
int command_explain(Options *o);
int command_run(Options *o);
int command_bench(Options *o);
int command_tune(Options *o);
int command_fit(Options *o); /* tune --fit */
int command_fmt(Options *o);
int command_grad(Options *o);
int command_gradcheck(Options *o);
int command_build(Options *o);
int command_plan(Options *o);
int command_cache(Options *o);
int command_completions(Options *o);

#endif
