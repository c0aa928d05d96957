/* completions.c: `fusec completions bash|zsh`: what the tables of commands and options say, as shell
 * functions, before a script that looks it up (completions/fusec.bash and .zsh). */
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/options_internal.h"
#include "schedule/keys.h"
#include "target.h"

#include <string.h>

static const char bash_script[] = {
#include "completions_bash.inc"
};

static const char zsh_script[] = {
#include "completions_zsh.inc"
};

/* ---- what can stand where ---- */

static void add_words(Text *list, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) text_print(list, "%s%s", list->length ? " " : "", words[i]);
}

/* The values that an option takes, with spaces between; "": they are no list. */
static const char *value_words(Arena *arena, Option option)
{
    Text *list = text_new(arena);
    int count;
    switch (option) {
    case OPTION_EMIT: add_words(list, emit_words, EMIT_COUNT); break;
    case OPTION_DEVICE: add_words(list, device_words, DEVICE_COUNT); break;
    case OPTION_COLOR: add_words(list, color_words, COLOUR_COUNT); break;
    case OPTION_PRELUDE: add_words(list, prelude_words, PRELUDE_COUNT); break;
    case OPTION_SAVE: return "auto none";
    case OPTION_ARCH: {
        const char *const *names = target_names(&count);
        add_words(list, names, count);
        names = target_gpus(&count);
        add_words(list, names, count);
        break;
    }
    case OPTION_SCHEDULE: {
        const char *const *names = family_words(&count);
        add_words(list, names, count);
        break;
    }
    default: break;
    }
    return text_string(list);
}

/* The files that an option takes, as a pattern; NULL: it takes no file. */
static const char *files_of(Option option)
{
    switch (option) {
    case OPTION_IN:
    case OPTION_OUT: return "*.safetensors";
    case OPTION_TABLE: return "*.tuned";
    case OPTION_OUTPUT: return "*";
    default: return NULL;
    }
}

/* The files that a command takes as arguments. */
static const char *argument_files(Command command, int verb)
{
    return command == COMMAND_PLAN && verb != PLAN_SAVE ? "*.plan" : "*.fuse";
}

static const char *options_of(Arena *arena, Command command, int verb)
{
    Text *list = text_new(arena);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (takes_option(command, verb, (Option)i)) add_words(list, &flag_words[i], 1);
    return text_string(list);
}

static const char *verb_list(Arena *arena, Command command)
{
    Text *list = text_new(arena);
    const Words verbs = verbs_of(command);
    add_words(list, verbs.words, verbs.count);
    return text_string(list);
}

/* ---- bash ---- */

/* `case` patterns of a command: of each of its verbs, where it has any. */
static void put_bash_cases(Text *out, const char *lines(Arena *, Command, int), Command command)
{
    const Words verbs = verbs_of(command);
    for (int v = 0; v < verbs.count; v++)
        line(out, "'%s %s') %s ;;", command_words[command], verbs.words[v],
             lines(out->arena, command, v));
    line(out, "'%s '*) %s ;;", command_words[command], lines(out->arena, command, -1));
}

static const char *bash_options(Arena *arena, Command command, int verb)
{
    return arena_format(arena, "echo '%s'", options_of(arena, command, verb));
}

static const char *bash_argument(Arena *arena, Command command, int verb)
{
    const char *verbs = verb_list(arena, command);
    if (*verbs && verb < 0) return arena_format(arena, "_fusec_add_words '%s'", verbs);
    if (*verbs && command != COMMAND_PLAN) return ":";
    return arena_format(arena, "_fusec_add_files '%s'", argument_files(command, verb));
}

static void put_bash_function(Text *out, const char *name, const char *lines(Arena *, Command, int))
{
    line(out, "%s() {", name);
    line(out, "    case \"$1 $2\" in");
    out->indent++;
    for (int i = 0; i < COMMAND_COUNT; i++) put_bash_cases(out, lines, (Command)i);
    out->indent--;
    line(out, "    esac");
    line(out, "}\n");
}

/* Of the options that take a value. `tune` has no device but the GPU. */
static void put_bash_values(Text *out)
{
    line(out, "# Adds the values of an option; false where it takes none.");
    line(out, "_fusec_value() {");
    line(out, "    case \"$1 $2\" in");
    line(out, "    'tune --device') _fusec_add_words cuda ;;");
    line(out, "    'build -o') _fusec_add_files '' ;;");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *values = value_words(out->arena, (Option)i), *files = files_of((Option)i);
        if (!flag_info[i].value[0]) continue;
        text_print(out, "    *' %s') ", flag_words[i]);
        if (files)
            text_print(out, "_fusec_add_files '%s' ;;\n", files);
        else
            text_print(out, *values ? "_fusec_add_words '%s' ;;\n" : ": ;;\n", values);
    }
    line(out, "    *) return 1 ;;");
    line(out, "    esac");
    line(out, "}\n");
}

static void print_bash(Text *out)
{
    Text *commands = text_new(out->arena);
    add_words(commands, command_words, COMMAND_COUNT);
    line(out, "# Completions of fusec for bash, printed by `fusec completions bash`.\n");
    line(out, "_fusec_commands='%s'\n", text_string(commands));
    line(out, "# The options of a command and verb.");
    put_bash_function(out, "_fusec_options", bash_options);
    line(out, "# Adds what a command takes as an argument.");
    put_bash_function(out, "_fusec_argument", bash_argument);
    put_bash_values(out);
    text_print(out, "%s", bash_script);
}

/* ---- zsh ---- */

/* Text inside '...', where `also` are characters that get a backslash. */
static void put_zsh(Text *out, const char *text, const char *also)
{
    for (; *text; text++) {
        if (*text == '\'')
            text_print(out, "'\\''");
        else
            text_print(out, strchr(also, *text) ? "\\%c" : "%c", *text);
    }
}

/* '--option=[help]:VALUE:(what it can be)', as _arguments takes it. */
static void put_zsh_option(Text *out, Command command, Option option)
{
    const FlagInfo *flag = &flag_info[option];
    const char *values = value_words(out->arena, option), *files = files_of(option);
    const bool takes = flag->value[0], is_long = flag_words[option][1] == '-';
    const bool often = option == OPTION_SET || option == OPTION_STRIDE || option == OPTION_OFFSET;
    if (command == COMMAND_TUNE && option == OPTION_DEVICE) values = "cuda";
    text_print(out, " \\\n            '%s%s%s[", often ? "*" : "", flag_words[option],
               takes && is_long ? "=" : "");
    put_zsh(out, option_help(option, 1u << command), "[]:\\");
    text_print(out, "]");
    if (takes) {
        text_print(out, ":");
        put_zsh(out, flag->value, ":\\");
        if (command == COMMAND_BUILD && option == OPTION_OUTPUT)
            text_print(out, ":_files -/");
        else if (files)
            text_print(out, ":_files -g \"%s\"", files);
        else if (command == COMMAND_BUILD && option == OPTION_ARCH)
            text_print(out, ":_values -s , architecture %s", values); /* a list */
        else
            text_print(out, *values ? ":(%s)" : ": ", values);
    }
    text_print(out, "'");
}

static void put_zsh_arguments(Text *out, Command command, int verb)
{
    const Words verbs = verbs_of(command);
    line(out, "    '%s %s')", command_words[command], verb < 0 ? "" : verbs.words[verb]);
    text_print(out, "        options=(");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (takes_option(command, verb, (Option)i)) put_zsh_option(out, command, (Option)i);
    line(out, ")");
    if (!verbs.count || command == COMMAND_PLAN)
        line(out, "        argument='*:file:_files -g \"%s\"'", argument_files(command, verb));
    line(out, "        ;;");
}

static void print_zsh(Text *out)
{
    line(out, "#compdef fusec");
    line(out, "# Completions of fusec for zsh, printed by `fusec completions zsh`.\n");
    line(out, "typeset -ga _fusec_commands=(");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        text_print(out, "    '%s:", command_words[i]);
        put_zsh(out, command_info[i].help, ":\\");
        line(out, "'");
    }
    line(out, ")\n");
    line(out, "typeset -gA _fusec_verbs=(");
    for (int i = 0; i < COMMAND_COUNT; i++)
        line(out, "    %s '%s'", command_words[i], verb_list(out->arena, (Command)i));
    line(out, ")\n");
    line(out,
         "# Sets the options and the argument of a command and verb, as _arguments takes them.");
    line(out, "_fusec_arguments() {");
    line(out, "    case \"$1 $2\" in");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const int count = verbs_of((Command)i).count;
        for (int v = count ? 0 : -1; v < count; v++) put_zsh_arguments(out, (Command)i, v);
    }
    line(out, "    esac");
    line(out, "}\n");
    text_print(out, "%s", zsh_script);
}

int command_completions(Options *o)
{
    Text *out = text_new(o->arena);
    if (o->verb == SHELL_BASH)
        print_bash(out);
    else
        print_zsh(out);
    return save_result(o->arena, o->output, text_string(out), out->length);
}
