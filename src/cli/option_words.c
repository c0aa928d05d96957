/* option_words.c: the words of the command line and what `fusec --help` prints of them. */
#include "cli/options_internal.h"

#include <stdio.h>

const char *const command_words[COMMAND_COUNT] = {
#define COMMAND(name, word, arguments, help) word,
#include "cli/commands.def"
#undef COMMAND
};

const CommandInfo command_info[COMMAND_COUNT] = {
#define COMMAND(name, word, arguments, help) {arguments, help},
#include "cli/commands.def"
#undef COMMAND
};

const char *const flag_words[OPTION_COUNT] = {
#define OPTION(name, flag, value, commands, help) flag,
#include "cli/options.def"
#undef OPTION
};

const FlagInfo flag_info[OPTION_COUNT] = {
#define OPTION(name, flag, value, commands, help) {value, commands, help},
#include "cli/options.def"
#undef OPTION
};

const char *const emit_words[EMIT_COUNT] = {
    [EMIT_CUDA] = "cuda",         [EMIT_TOKENS] = "tokens",     [EMIT_AST] = "ast",
    [EMIT_GRAPH] = "graph",       [EMIT_ANALYSIS] = "analysis", [EMIT_PLAN] = "plan",
    [EMIT_SCHEDULE] = "schedule", [EMIT_PTX] = "ptx",           [EMIT_CUBIN] = "cubin",
    [EMIT_DOT] = "dot",
};

const char *const plan_words[PLAN_VERBS] = {"save", "show", "run"};

const char *const device_words[DEVICE_COUNT] = {"cuda", "cpu", "sim"};

/* `fusec tune` takes one device only; neither it nor `fusec bench` runs on the simulator. */
static const char *help_for(Option option, unsigned commands)
{
    bool tunes = option == OPTION_DEVICE && commands == IN(TUNE);
    bool times = option == OPTION_SEED && !(commands & IN(RUN));
    return tunes   ? "cuda, the default: only a GPU has times worth keeping"
           : times ? "of the random inputs"
                   : flag_info[option].help;
}

static void print_flags(unsigned commands)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!(flag_info[i].commands & commands)) continue;
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", flag_words[i], flag_info[i].value[0] ? " " : "",
                 flag_info[i].value);
        printf("  %-28s %s\n", head, help_for((Option)i, commands));
    }
}

void print_help(void)
{
    puts("fusec compiles normalization graphs (.fuse files) to readable CUDA C.\n\n"
         "usage: fusec FILE.fuse [AXIS=SIZE ...] [options]     print the CUDA C\n"
         "       fusec COMMAND ...\n\ncommands:");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %-34s %s\n", command_words[i], command_info[i].arguments,
               command_info[i].help);
    puts("\nFILE may be `-`. `fusec COMMAND --help` lists the command's options, all of them are:");
    print_flags(EVERY);
    puts("\nexit status: 0 done; 1 the program or its data is wrong; 2 usage; 3 the machine could\n"
         "not (driver, NVRTC, memory, a limit, unwritable output); 4 --verify failed");
}

void print_command_help(Command command)
{
    printf("usage: fusec %s %s [options]\n\n%s\n\noptions:\n", command_words[command],
           command_info[command].arguments, command_info[command].help);
    print_flags(1u << command);
}
