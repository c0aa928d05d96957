/* options.c: parsing of the command line. Everything wrong with it is found here, said with a hint,
 * and exits with status 2; commands see only well-formed options. */
#include "cli/options.h"

#include "fusec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const command_words[] = {
#define COMMAND(name, word, arguments, help) word,
#include "cli/commands.def"
#undef COMMAND
};

static const struct {
    const char *arguments, *help;
} command_info[] = {
#define COMMAND(name, word, arguments, help) {arguments, help},
#include "cli/commands.def"
#undef COMMAND
};

typedef enum {
#define OPTION(name, flag, value, commands, help) OPTION_##name,
#include "cli/options.def"
#undef OPTION
    OPTION_COUNT
} Option;

#define IN(name) (1u << COMMAND_##name)
#define COMPILING (IN(EXPLAIN) | IN(RUN) | IN(BENCH))
#define EVERY (~0u)

static const char *const flags[] = {
#define OPTION(name, flag, value, commands, help) flag,
#include "cli/options.def"
#undef OPTION
};

static const struct {
    const char *value;
    unsigned commands;
    const char *help;
} flag_info[] = {
#define OPTION(name, flag, value, commands, help) {value, commands, help},
#include "cli/options.def"
#undef OPTION
};

static const char *const emit_words[EMIT_COUNT] = {
    [EMIT_CUDA] = "cuda",         [EMIT_TOKENS] = "tokens",     [EMIT_AST] = "ast",
    [EMIT_GRAPH] = "graph",       [EMIT_ANALYSIS] = "analysis", [EMIT_PLAN] = "plan",
    [EMIT_SCHEDULE] = "schedule", [EMIT_PTX] = "ptx",           [EMIT_CUBIN] = "cubin",
    [EMIT_DOT] = "dot",
};

static const char *const device_words[] = {"cuda", "cpu", "sim"};
static const char *const prelude_words[] = {"inline", "include"};
static const char *const cache_words[] = {"list", "clear", "path"};

/* ---- help ---- */

/* `fusec tune` takes one device alone, and `fusec bench` and it know no simulator. */
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
        snprintf(head, sizeof head, "%s%s%s", flags[i], flag_info[i].value[0] ? " " : "",
                 flag_info[i].value);
        printf("  %-28s %s\n", head, help_for((Option)i, commands));
    }
}

static void print_help(void)
{
    puts("fusec compiles normalization graphs (.fuse files) to readable CUDA C.\n\n"
         "usage: fusec FILE.fuse [AXIS=SIZE ...] [options]     print the CUDA C\n"
         "       fusec COMMAND ...\n\ncommands:");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s %-21s %s\n", command_words[i], command_info[i].arguments,
               command_info[i].help);
    puts("\nFILE may be `-`. `fusec COMMAND --help` lists the command's options, all of them are:");
    print_flags(EVERY);
    puts("\nexit status: 0 done; 1 the program or its data is wrong; 2 usage; 3 the machine could\n"
         "not (driver, NVRTC, memory, a limit, unwritable output); 4 --verify failed");
}

static void print_command_help(Command command)
{
    printf("usage: fusec %s %s [options]\n\n%s\n\noptions:\n", command_words[command],
           command_info[command].arguments, command_info[command].help);
    print_flags(1u << command);
}

/* ---- values ---- */

static bool parse_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0 && !isspace((unsigned char)text[0]);
}

/* False, and errno ERANGE where a number is too large. */
static bool parse_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    if (!strcmp(text, "true") || !strcmp(text, "false")) {
        *value = text[0] == 't';
        return true;
    }
    *value = strtod(text, &end);
    bool whole = end != text && *end == 0 && !isspace((unsigned char)text[0]);
    bool large = whole && errno == ERANGE && (*value > 1 || *value < -1); /* not: near zero */
    errno = large ? ERANGE : 0;
    return whole && !large;
}

/* Splits NAME=REST where NAME is an identifier; NULL if `text` is nothing such. */
static const char *split_name(Arena *arena, const char *text, const char **rest)
{
    const char *p = text;
    if (!isalpha((unsigned char)*p) && *p != '_') return NULL;
    while (isalnum((unsigned char)*p) || *p == '_') p++;
    if (*p != '=') return NULL;
    *rest = p + 1;
    return arena_copy(arena, text, (size_t)(p - text));
}

static bool parse_word(const char *what, const char *text, const char *const *words, int count,
                       int *index)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(text, words[i])) {
            *index = i;
            return true;
        }
    char hint[256] = "one of";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(hint);
        snprintf(hint + used, sizeof hint - used, "%s %s", i ? "," : "", words[i]);
    }
    complain(hint, "unknown %s '%s'", what, text);
    return false;
}

static bool add_size(Options *o, const char *axis, const char *text)
{
    int64_t size;
    bool whole = *text && text[strspn(text, "0123456789")] == 0;
    if (!parse_integer(text, &size)) {
        if (whole)
            complain(NULL, "axis %s cannot have %s elements", axis, text);
        else
            complain(arena_format(
                         o->arena,
                         "a size is a whole number, as in %s=4096; a scalar is set by --set %s=...",
                         axis, axis),
                     "'%s' is no size for axis %s", text, axis);
        return false;
    }
    if (size < 0) {
        complain(NULL, "axis %s cannot have the negative size %s", axis, text);
        return false;
    }
    for (int i = 0; i < o->sizes.count; i++)
        if (!strcmp(o->sizes.data[i].axis, axis)) {
            complain(NULL, "axis %s is given twice", axis);
            return false;
        }
    *list_push(o->arena, &o->sizes) = (AxisSize){axis, size};
    return true;
}

static bool add_setting(Options *o, const char *text)
{
    const char *rest;
    Setting s = {.name = split_name(o->arena, text, &rest)};
    if (!s.name) {
        complain("write it as --set eps=1e-6", "'%s' sets no scalar", text);
        return false;
    }
    if (!parse_number(s.text = rest, &s.value)) {
        complain(NULL,
                 errno == ERANGE ? "'%s' is too large for scalar %s"
                                 : "'%s' is no number for scalar %s",
                 rest, s.name);
        return false;
    }
    for (int i = 0; i < o->settings.count; i++)
        if (!strcmp(o->settings.data[i].name, s.name)) {
            complain(NULL, "scalar %s is given twice", s.name);
            return false;
        }
    *list_push(o->arena, &o->settings) = s;
    return true;
}

static bool parse_layout(Options *o, const char *flag, const char *text, int most, Layout *layout)
{
    const char *p;
    layout->name = split_name(o->arena, text, &p);
    while (layout->name && layout->count < most) {
        char *end;
        errno = 0;
        int64_t value = strtoll(p, &end, 10);
        if (end == p || errno || value < 0) break;
        layout->values[layout->count++] = value;
        if (*end == 0) return true;
        if (*end != ',') break;
        p = end + 1;
    }
    complain(most == 1 ? "write it as --offset x=3: elements, 0 or more"
                       : "write it as --stride x=576,1: elements, 0 or more",
             "%s cannot take '%s'", flag, text);
    return false;
}

static bool parse_seed(Options *o, const char *text)
{
    char *end;
    errno = 0;
    o->seed = strtoull(text, &end, 0);
    if (isdigit((unsigned char)text[0]) && *end == 0 && errno == 0) return true;
    complain("a seed is a whole number from 0", "'%s' is no seed", text);
    return false;
}

static bool parse_sms(Options *o, const char *text)
{
    int64_t count;
    if (!parse_integer(text, &count) || count < 1 || count > 4096) {
        complain("a whole number from 1 to 4096", "--sms cannot take '%s'", text);
        return false;
    }
    o->sms = (int)count;
    return true;
}

static bool parse_memory(Options *o, const char *text)
{
    int64_t rate;
    if (!parse_integer(text, &rate) || rate < 1 || rate > 1000000) {
        complain("a whole number of GB/s from 1 to 1000000", "--memory cannot take '%s'", text);
        return false;
    }
    o->memory = (int)rate;
    return true;
}

/* One of nodes=N, seconds=S, bytes=B. */
static bool set_limit(Budget *limits, const char *name, const char *text)
{
    int64_t count = 0;
    double seconds = 0;
    const bool timed = !strcmp(name, "seconds");
    if (timed ? !parse_number(text, &seconds) || !isdigit((unsigned char)*text)
              : !parse_integer(text, &count))
        return false;
    if (timed)
        limits->seconds = seconds;
    else if (!strcmp(name, "nodes"))
        limits->nodes = count;
    else if (!strcmp(name, "bytes"))
        limits->bytes = count;
    else
        return false;
    return timed ? seconds > 0 : count > 0;
}

static bool parse_limits(Options *o, const char *text)
{
    for (const char *at = text; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        const char *rest, *name = split_name(o->arena, arena_copy(o->arena, at, length), &rest);
        at += length;
        if (name && set_limit(&o->limits, name, rest)) continue;
        complain(
            "as in --limit nodes=100000,seconds=60,bytes=1000000000: each above 0, any of them",
            "--limit cannot take '%s'", text);
        return false;
    }
    return true;
}

/* ---- the walk over argv ---- */

static bool store_option(Options *o, Option option, const char *value)
{
    int index = 0;
    Layout layout = {0};
    switch (option) {
    case OPTION_EMIT:
        if (!parse_word("--emit kind", value, emit_words, EMIT_COUNT, &index)) return false;
        o->emit = (EmitKind)index;
        return true;
    case OPTION_DEVICE:
        o->device = value;
        return o->command == COMMAND_TUNE /* check_combination refuses all but one */
               || parse_word("device", value, device_words, LENGTH(device_words), &index);
    case OPTION_PRELUDE:
        if (!parse_word("prelude", value, prelude_words, LENGTH(prelude_words), &index))
            return false;
        o->include_prelude = index == 1;
        return true;
    case OPTION_STRIDE:
        if (!parse_layout(o, "--stride", value, MAX_RANK, &layout)) return false;
        *list_push(o->arena, &o->strides) = layout;
        return true;
    case OPTION_OFFSET:
        if (!parse_layout(o, "--offset", value, 1, &layout)) return false;
        *list_push(o->arena, &o->offsets) = layout;
        return true;
    case OPTION_SET: return add_setting(o, value);
    case OPTION_SEED: return parse_seed(o, value);
    case OPTION_SMS: return parse_sms(o, value);
    case OPTION_MEMORY: return parse_memory(o, value);
    case OPTION_LIMIT: return parse_limits(o, value);
    case OPTION_GRAPH: o->graph = value; return true;
    case OPTION_ARCH: o->arch = value; return true;
    case OPTION_OUTPUTS: o->outputs = value; return true;
    case OPTION_SCHEDULE: o->schedule = value; return true;
    case OPTION_OUTPUT: o->output = value; return true;
    case OPTION_IN:
        if (o->in)
            complain("one file holds all inputs", "--in is given twice");
        else
            o->in = value;
        return o->in == value;
    case OPTION_OUT: o->out = value; return true;
    case OPTION_NO_TUNING: o->no_tuning = true; return true;
    case OPTION_FIT: o->fit = true; return true;
    case OPTION_CANDIDATES: o->candidates = true; return true;
    case OPTION_JSON: o->json = true; return true;
    case OPTION_VERIFY: o->verify = true; return true;
    case OPTION_WRITE: o->write = true; return true;
    case OPTION_CHECK: o->check = true; return true;
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_COUNT: break;
    }
    return true;
}

/* Which option `arg` is, with its value behind `=` if there is one; OPTION_COUNT if none. */
static Option find_option(const char *arg, const char **value)
{
    size_t length = strcspn(arg, "=");
    *value = arg[length] ? arg + length + 1 : NULL;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(flags[i]) == length && !memcmp(flags[i], arg, length)) return (Option)i;
    return OPTION_COUNT;
}

static void complain_unknown(Arena *arena, const char *arg, const char *const *words, int count,
                             const char *what)
{
    bool letter = arg[0] == '-' && arg[1] != '-' && !arg[2]; /* near to all others */
    const char *near = letter ? NULL : nearest_name(arg, words, count);
    complain(near ? arena_format(arena, "did you mean %s?", near) : "fusec --help lists them all",
             "unknown %s '%s'", what, arg);
}

/* How a word with dashes is written that is no option, but has another place on the command line;
 * NULL: it has none. */
static const char *place_of_word(Arena *arena, const char *word)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(word, command_words[i]))
            return arena_format(arena, "it is a command: fusec %s %s", word,
                                command_info[i].arguments);
    for (int i = 0; i < EMIT_COUNT; i++)
        if (!strcmp(word, emit_words[i])) return arena_format(arena, "write --emit=%s", word);
    for (int i = 0; i < LENGTH(device_words); i++)
        if (!strcmp(word, device_words[i])) return arena_format(arena, "write --device %s", word);
    return NULL;
}

static void complain_flag(Arena *arena, const char *arg)
{
    const char *flag = arena_copy(arena, arg, strcspn(arg, "="));
    const char *place = place_of_word(arena, flag + strspn(flag, "-"));
    double number;
    /* Short words are near to everything. */
    bool near = nearest_name(flag, flags, OPTION_COUNT) && strlen(flag) > 5;
    if (!place && !near && arg[strlen(flag)] && parse_number(arg + strlen(flag) + 1, &number))
        complain(arena_format(arena, "a scalar is set by --set %s, an axis without dashes",
                              arg + strspn(arg, "-")),
                 "unknown option '%s'", flag);
    else if (place)
        complain(place, "unknown option '%s'", flag);
    else
        complain_unknown(arena, flag, flags, OPTION_COUNT, "option");
}

/* argv[*i] is a flag: stores it, steps over its value. */
static bool take_flag(Options *o, int argc, char **argv, int *i)
{
    const char *value;
    Option option = find_option(argv[*i], &value);
    if (option == OPTION_COUNT) {
        complain_flag(o->arena, argv[*i]);
        return false;
    }
    if (!(flag_info[option].commands & (1u << o->command))) {
        complain(arena_format(o->arena, "`fusec %s --help` lists the options it has",
                              command_words[o->command]),
                 "`fusec %s` has no option %s", command_words[o->command], flags[option]);
        return false;
    }
    if (!flag_info[option].value[0]) {
        if (!value) return store_option(o, option, NULL);
        complain(NULL, "%s takes no value", flags[option]);
        return false;
    }
    if (!value && *i + 1 < argc) value = argv[++*i];
    if (value && *value) return store_option(o, option, value);
    complain(NULL, "%s needs a value: %s %s", flags[option], flags[option],
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
    const char *axis = is_file_name(arg) ? NULL : split_name(o->arena, arg, &rest);
    if (axis && o->command != COMMAND_CACHE) return add_size(o, axis, rest);
    *list_push(o->arena, &o->files) = arg;
    return true;
}

static bool take_arguments(Options *o, int argc, char **argv, int first)
{
    bool only_files = false;
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

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool check_combination(const Options *o)
{
    const char *word = command_words[o->command];
    int index;
    if (o->fit && (o->files.count || o->json)) {
        complain("fusec tune --fit [-o FILE.def]", "--fit measures the GPU, not a graph");
        return false;
    }
    if (o->files.count == 0 && !o->fit) {
        complain(
            arena_format(o->arena, "usage: fusec %s %s", word, command_info[o->command].arguments),
            o->command == COMMAND_CACHE ? "`fusec %s` needs a verb" : "`fusec %s` needs a FILE",
            word);
        return false;
    }
    bool several =
        o->command == COMMAND_CHECK || (o->command == COMMAND_FMT && (o->write || o->check));
    if (o->files.count > 1 && !several) {
        bool spaced = !strcmp(o->files.data[1], "=") ||
                      (o->files.count > 2 && !strcmp(o->files.data[2], "="));
        complain(spaced ? "a size is written without spaces, as in M=4096" : NULL,
                 "`fusec %s` takes one %s, and '%s' is a second one", word,
                 o->command == COMMAND_CACHE ? "verb" : "FILE", o->files.data[1]);
        return false;
    }
    if (o->command == COMMAND_CACHE &&
        !parse_word("cache verb", o->files.data[0], cache_words, LENGTH(cache_words), &index))
        return false;
    if (o->sizes.count && (o->command == COMMAND_FMT || o->command == COMMAND_CHECK)) {
        complain(NULL, "`fusec %s` takes no axis sizes", word);
        return false;
    }
    if (o->command == COMMAND_TUNE && o->device && strcmp(o->device, "cuda")) {
        complain("only a GPU has times worth keeping", "`fusec tune` has no --device %s",
                 o->device);
        return false;
    }
    if (o->sms && (!o->device || strcmp(o->device, "sim"))) {
        complain("a GPU has as many as it has", "--sms is of --device sim");
        return false;
    }
    if (o->arch && o->device && !strcmp(o->device, "cpu")) {
        complain("it evaluates the graph, and compiles nothing", "--device cpu has no --arch");
        return false;
    }
    if (o->memory && !o->arch) {
        complain("as in --arch sm_90a --memory 4800", "--memory is of the GPU that --arch names");
        return false;
    }
    if (o->in && o->out && is_same_file(o->in, o->out)) {
        complain("give --out another name", "--out %s would replace what --in reads", o->out);
        return false;
    }
    bool reads_stdin = false;
    for (int i = 0; i < o->files.count; i++) reads_stdin |= !strcmp(o->files.data[i], "-");
    if (o->write && (reads_stdin || o->output || o->check)) {
        complain(NULL, "-w rewrites FILE itself: it goes with no `-`, -o or --check");
        return false;
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
    complain_unknown(o->arena, word, command_words, COMMAND_COUNT, "command");
    return false;
}

static bool asks_for(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], flag)) return true;
    return false;
}

/* Of all commands, or of the one that `word` names. */
static void print_help_for(Options *o, const char *word)
{
    int first;
    if (word && word[0] != '-' && find_command(o, word, &first) && first == 2)
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
