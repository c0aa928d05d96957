/* options.c: parsing of the command line: the walk over argv. Everything wrong with a command line is
 * reported with a hint, and exits with status 2; commands see only well-formed options. */
#include "cli/options_internal.h"

#include "fusec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The option that `arg` is, and its value behind `=` if there is one; OPTION_COUNT if none. */
static Option find_option(const char *arg, const char **value)
{
    size_t length = strcspn(arg, "=");
    *value = arg[length] ? arg + length + 1 : NULL;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(flag_words[i]) == length && !memcmp(flag_words[i], arg, length))
            return (Option)i;
    return OPTION_COUNT;
}

static void complain_unknown(Arena *arena, const char *arg, const char *const *words, int count,
                             const char *what, const char *all)
{
    bool letter = arg[0] == '-' && arg[1] != '-' && !arg[2]; /* every option is near to it */
    const char *near = letter ? NULL : nearest_name(arg, words, count);
    complain(near ? arena_format(arena, "did you mean %s?", near) : all, "unknown %s '%s'", what,
             arg);
}

static const char *list_of_options(const Options *o)
{
    return arena_format(o->arena, "`fusec %s --help` lists its options", command_words[o->command]);
}

/* A hint for a word with dashes that is no option, but has another place on the command line; NULL:
 * it has none. */
static const char *place_of_word(Arena *arena, const char *word)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(word, command_words[i]))
            return arena_format(arena, "it is a command: fusec %s %s", word,
                                command_info[i].arguments);
    for (int i = 0; i < EMIT_COUNT; i++)
        if (!strcmp(word, emit_words[i])) return arena_format(arena, "write --emit=%s", word);
    for (int i = 0; i < DEVICE_COUNT; i++)
        if (!strcmp(word, device_words[i])) return arena_format(arena, "write --device %s", word);
    return NULL;
}

static void complain_flag(const Options *o, const char *arg)
{
    Arena *arena = o->arena;
    const char *flag = arena_copy(arena, arg, strcspn(arg, "="));
    const char *place = place_of_word(arena, flag + strspn(flag, "-"));
    double number;
    /* Short words are near to everything. */
    bool near = nearest_name(flag, flag_words, OPTION_COUNT) && strlen(flag) > 5;
    if (!place && !near && arg[strlen(flag)] && parse_number(arg + strlen(flag) + 1, &number))
        complain(arena_format(arena, "a scalar is set by --set %s, an axis without dashes",
                              arg + strspn(arg, "-")),
                 "unknown option '%s'", flag);
    else if (place)
        complain(place, "unknown option '%s'", flag);
    else
        complain_unknown(arena, flag, flag_words, OPTION_COUNT, "option", list_of_options(o));
}

/* argv[*i] is a flag: stores it, steps over its value. */
static bool take_flag(Options *o, int argc, char **argv, int *i)
{
    const char *value;
    Option option = find_option(argv[*i], &value);
    if (option == OPTION_COUNT) {
        complain_flag(o, argv[*i]);
        return false;
    }
    if (!(flag_info[option].commands & (1u << o->command))) {
        complain(list_of_options(o), "`fusec %s` has no option %s", command_words[o->command],
                 flag_words[option]);
        return false;
    }
    o->given |= UINT64_C(1) << option;
    if (!flag_info[option].value[0]) {
        if (!value) return store_option(o, option, NULL);
        complain(NULL, "%s takes no value", flag_words[option]);
        return false;
    }
    if (!value && *i + 1 < argc) value = argv[++*i];
    if (value && *value) return store_option(o, option, value);
    complain(NULL, "%s needs a value: %s %s", flag_words[option], flag_words[option],
             flag_info[option].value);
    return false;
}

static bool is_file_name(const char *arg)
{
    size_t length = strlen(arg);
    return strchr(arg, '/') || (length > 5 && !strcmp(arg + length - 5, ".fuse"));
}

static bool take_word(Options *o, const char *arg)
{
    const char *rest;
    const Words verbs = verbs_of(o->command);
    if (verbs.count && o->verb < 0)
        return parse_word(verbs.what, arg, verbs.words, verbs.count, &o->verb);
    const char *axis = is_file_name(arg) ? NULL : split_name(o->arena, arg, &rest);
    if (axis) return add_size(o, axis, rest);
    *list_push(o->arena, &o->files) = arg;
    return true;
}

static bool take_arguments(Options *o, int argc, char **argv, int first)
{
    bool only_files = false;
    o->verb = -1;
    for (int i = first; i < argc; i++) {
        if (only_files) {
            *list_push(o->arena, &o->files) = argv[i];
        } else if (!strcmp(argv[i], "--")) {
            only_files = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            if (!take_flag(o, argc, argv, &i)) return false;
        } else if (!take_word(o, argv[i])) {
            return false;
        }
    }
    return true;
}

/* The command that argv[1] names; a FILE there means emit. */
static bool find_command(Options *o, const char *word, int *first)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(word, command_words[i])) {
            o->command = (Command)i;
            *first = 2;
            return true;
        }
    o->command = COMMAND_EMIT;
    *first = 1;
    if (word[0] == '-' || strpbrk(word, "./=") || access(word, F_OK) == 0) return true;
    complain_unknown(o->arena, word, command_words, COMMAND_COUNT, "command",
                     "fusec --help lists them all");
    return false;
}

static bool asks_for(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], flag)) return true;
    return false;
}

/* Prints the help of all commands, or of the one that `word` names. */
static void print_help_for(Options *o, const char *word)
{
    int first;
    if (word && *word && word[0] != '-' && find_command(o, word, &first) && first == 2)
        print_command_help(o->command);
    else
        print_help();
}

bool parse_options(Options *o, int argc, char **argv, int *status)
{
    int first;
    const char *word = argc > 1 ? argv[1] : "";
    *status = EXIT_DONE;
    if (!strcmp(word, "version") || asks_for(argc, argv, "--version")) {
        puts("fusec " FUSEC_VERSION);
        return false;
    }
    if (!strcmp(word, "help") || asks_for(argc, argv, "--help") || asks_for(argc, argv, "-h")) {
        print_help_for(o, strcmp(word, "help") ? word : argv[2]);
        return false;
    }
    *status = EXIT_USAGE;
    if (argc < 2) {
        complain("fusec --help tells more",
                 "usage: fusec FILE.fuse [AXIS=SIZE ...], or fusec COMMAND ...");
        return false;
    }
    return find_command(o, argv[1], &first) && take_arguments(o, argc, argv, first) &&
           check_combination(o);
}
