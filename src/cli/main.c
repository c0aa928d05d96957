/* main.c: the entry point: options.c parses the command line, then one function runs the
 * command. */
#include "cli/commands.h"
#include "cli/files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

static void give_up(void *data)
{
    (void)data;
    collect_reports(NULL); /* which would need memory */
    complain(NULL, "out of memory");
    exit(EXIT_MACHINE);
}

static int dispatch(Options *o)
{
    switch (o->command) {
    case COMMAND_EMIT: return command_emit(o);
    case COMMAND_CHECK: return command_check(o);
    case COMMAND_EXPLAIN: return command_explain(o);
    case COMMAND_RUN: return command_run(o);
    case COMMAND_BENCH: return command_bench(o);
    case COMMAND_TUNE: return o->fit ? command_fit(o) : command_tune(o);
    case COMMAND_FMT: return command_fmt(o);
    case COMMAND_GRAD: return command_grad(o);
    case COMMAND_GRADCHECK: return command_gradcheck(o);
    case COMMAND_BUILD: return command_build(o);
    case COMMAND_PLAN: return command_plan(o);
    case COMMAND_CACHE: return command_cache(o);
    case COMMAND_COMPLETIONS: return command_completions(o);
    case COMMAND_COUNT: break;
    }
    return EXIT_USAGE;
}

/* Opens closed standard streams, so that no other file takes their numbers; using such a stream
 * stays an error. */
static bool fill_streams(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_streams()) return EXIT_MACHINE;
    signal(SIGXFSZ, SIG_IGN); /* a file that would grow too large fails in write */
    Arena *arena = arena_new();
    if (!arena) give_up(NULL);
    arena_on_out_of_memory(arena, give_up, NULL);
    Options options = {.arena = arena};
    int status;
    if (parse_options(&options, argc, argv, &status)) {
        progress_allow(!options.json);
        status = dispatch(&options);
    }
    arena_free(arena);
    return finish_stdout(status);
}
