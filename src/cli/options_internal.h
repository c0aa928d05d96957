/* options_internal.h: what the files that parse the command line share.
 *
 *   options.c        the walk over argv
 *   option_words.c   the words of commands and flags
 *   help.c           what `fusec --help` prints of them
 *   option_values.c  values of flags, sizes and scalars
 *   option_rules.c   which of them go together
 */
#ifndef FUSEC_CLI_OPTIONS_INTERNAL_H
#define FUSEC_CLI_OPTIONS_INTERNAL_H

#include "cli/options.h"

typedef enum {
#define OPTION(name, flag, value, commands, help) OPTION_##name,
#include "cli/options.def"
#undef OPTION
    OPTION_COUNT
} Option;

/* The sets of commands in options.def. */
#define IN(name) (1u << COMMAND_##name)
#define COMPILING (IN(EXPLAIN) | IN(RUN) | IN(BENCH))
#define GRADIENTS (IN(GRAD) | IN(GRADCHECK))
#define EVERY (~0u)

typedef struct {
    const char *group, *arguments, *help;
} CommandInfo;

typedef struct {
    const char *value;
    unsigned commands;
    const char *help;
} FlagInfo;

/* The words that can stand in a place, and what they are. */
typedef struct {
    const char *what;
    const char *const *words;
    int count;
} Words;

enum { DEVICE_COUNT = 3, PRELUDE_COUNT = 2 };

extern const char *const command_words[COMMAND_COUNT];
extern const CommandInfo command_info[COMMAND_COUNT];
extern const char *const flag_words[OPTION_COUNT];
extern const FlagInfo flag_info[OPTION_COUNT];
extern const char *const emit_words[EMIT_COUNT];
extern const char *const plan_words[PLAN_VERBS];
extern const char *const device_words[DEVICE_COUNT];
extern const char *const color_words[COLOUR_COUNT];
extern const char *const prelude_words[PRELUDE_COUNT];

/* Those of a command that has any; else none. */
Words verbs_of(Command command);
/* Whether a command, with the verb where it has verbs, knows an option. */
bool takes_option(Command command, int verb, Option option);

/* What an option means to these commands. */
const char *option_help(Option option, unsigned commands);

void print_help(void);
void print_command_help(Command command);

/* False for text that is no number; errno is ERANGE where the number is too large. */
bool parse_number(const char *text, double *value);
/* Splits NAME=REST where NAME is an identifier; NULL for any other text. */
const char *split_name(Arena *arena, const char *text, const char **rest);

/* These return false after they have reported what is wrong. */
bool parse_word(const char *what, const char *text, const char *const *words, int count,
                int *index);
bool add_size(Options *o, const char *axis, const char *text);
bool store_option(Options *o, Option option, const char *value);
bool check_combination(const Options *o);

#endif
