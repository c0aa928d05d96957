/* option_words.c: the words of the command line: commands, verbs and flags, and which command takes
 * which flag. */
#include "cli/options_internal.h"

const char *const command_words[COMMAND_COUNT] = {
#define COMMAND(name, word, group, arguments, help) word,
#include "cli/commands.def"
#undef COMMAND
};

const CommandInfo command_info[COMMAND_COUNT] = {
#define COMMAND(name, word, group, arguments, help) {group, arguments, help},
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
const char *const cache_words[CACHE_VERBS] = {"list", "clear", "path"};
const char *const shell_words[SHELL_COUNT] = {"bash", "zsh"};
const char *const device_words[DEVICE_COUNT] = {"cuda", "cpu", "sim"};
const char *const color_words[COLOUR_COUNT] = {"auto", "always", "never"};
const char *const prelude_words[PRELUDE_COUNT] = {"inline", "include"};

Words verbs_of(Command command)
{
    switch (command) {
    case COMMAND_PLAN: return (Words){"verb", plan_words, PLAN_VERBS};
    case COMMAND_CACHE: return (Words){"verb", cache_words, CACHE_VERBS};
    case COMMAND_COMPLETIONS: return (Words){"shell", shell_words, SHELL_COUNT};
    default: return (Words){0};
    }
}

/* The verb of `fusec plan` that alone takes an option; PLAN_VERBS: each takes it. */
static PlanVerb plan_verb_of(Option option)
{
    switch (option) {
    case OPTION_GRAPH:
    case OPTION_ARCH:
    case OPTION_OUTPUTS:
    case OPTION_SCHEDULE:
    case OPTION_NO_TUNING:
    case OPTION_LIMIT:
    case OPTION_OUTPUT: return PLAN_SAVE;
    case OPTION_JSON: return PLAN_SHOW;
    case OPTION_IN:
    case OPTION_OUT:
    case OPTION_SEED:
    case OPTION_SET: return PLAN_RUN;
    default: return PLAN_VERBS;
    }
}

bool takes_option(Command command, int verb, Option option)
{
    if (!(flag_info[option].commands & (1u << command))) return false;
    const PlanVerb of = command == COMMAND_PLAN ? plan_verb_of(option) : PLAN_VERBS;
    return of == PLAN_VERBS || (int)of == verb;
}

/* `fusec tune` takes one device only; neither it nor `fusec bench` runs on the simulator. */
const char *option_help(Option option, unsigned commands)
{
    bool tunes = option == OPTION_DEVICE && commands == IN(TUNE);
    bool times = option == OPTION_SEED && !(commands & IN(RUN));
    return tunes   ? "cuda, the default: tune measures on a GPU"
           : times ? "of the random inputs"
                   : flag_info[option].help;
}
