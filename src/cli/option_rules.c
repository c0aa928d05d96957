/* option_rules.c: which arguments and flags go together. */
#include "cli/options_internal.h"

#include <string.h>
#include <sys/stat.h>

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool takes_several(const Options *o)
{
    return o->command == COMMAND_CHECK || o->command == COMMAND_PLAN ||
           (o->command == COMMAND_FMT && (o->write || o->check)) || o->command == COMMAND_GRADCHECK;
}

static bool only_verb(const Options *o)
{
    return o->command == COMMAND_CACHE || o->command == COMMAND_COMPLETIONS;
}

static bool check_verb(const Options *o)
{
    const Words verbs = verbs_of(o->command);
    if (!verbs.count || o->verb >= 0) return true;
    complain(arena_format(o->arena, "usage: fusec %s %s", command_words[o->command],
                          command_info[o->command].arguments),
             "`fusec %s` needs a %s", command_words[o->command], verbs.what);
    return false;
}

static bool check_file_count(const Options *o)
{
    const char *word = command_words[o->command];
    if (o->fit && o->table) {
        complain("one writes a GPU's constants, the other its schedules",
                 "--fit and --table exclude each other");
        return false;
    }
    if (o->fit && (o->files.count || o->json)) {
        complain("fusec tune --fit [-o FILE.def]", "--fit measures the GPU, not a graph");
        return false;
    }
    if (o->files.count == 0 && !o->fit && !verbs_of(o->command).count) {
        complain(
            arena_format(o->arena, "usage: fusec %s %s", word, command_info[o->command].arguments),
            "`fusec %s` needs a FILE", word);
        return false;
    }
    if (o->command == COMMAND_GRADCHECK && o->files.count > 2) {
        complain(NULL, "`fusec gradcheck` takes FORWARD and BACKWARD, and '%s' is a third FILE",
                 o->files.data[2]);
        return false;
    }
    if (o->files.count && only_verb(o)) {
        complain(NULL, "`fusec %s` takes one %s, and '%s' is a second one", word,
                 verbs_of(o->command).what, o->files.data[0]);
        return false;
    }
    if (o->files.count > 1 && !takes_several(o)) {
        bool spaced = !strcmp(o->files.data[1], "=") ||
                      (o->files.count > 2 && !strcmp(o->files.data[2], "="));
        complain(spaced ? "a size is written without spaces, as in M=4096" : NULL,
                 "`fusec %s` takes one FILE, and '%s' is a second one", word, o->files.data[1]);
        return false;
    }
    return true;
}

static bool check_command(const Options *o)
{
    if (o->command == COMMAND_BUILD && (!o->output || !*o->output || !strcmp(o->output, "-"))) {
        complain("fusec build FILE N=4096 -o kernels",
                 "`fusec build` writes several files: name a folder by -o DIR");
        return false;
    }
    if (o->sizes.count &&
        (o->command == COMMAND_FMT || o->command == COMMAND_CHECK || o->command == COMMAND_GRAD)) {
        complain(NULL, "`fusec %s` takes no axis sizes", command_words[o->command]);
        return false;
    }
    return true;
}

static bool check_device(const Options *o)
{
    if (o->command == COMMAND_TUNE && o->device && strcmp(o->device, "cuda")) {
        complain("tune measures kernels, which takes a GPU", "`fusec tune` has no --device %s",
                 o->device);
        return false;
    }
    if (o->sms && (!o->device || strcmp(o->device, "sim"))) {
        complain("a GPU has a fixed number of SMs", "--sms needs --device sim");
        return false;
    }
    if (o->arch && o->device && !strcmp(o->device, "cpu")) {
        complain("the CPU evaluates the graph and compiles nothing", "--device cpu has no --arch");
        return false;
    }
    if (o->memory && !o->arch) {
        complain("as in --arch sm_90a --memory 4800", "--memory needs --arch");
        return false;
    }
    return true;
}

static bool check_file_use(const Options *o)
{
    if (o->in && o->out && is_same_file(o->in, o->out)) {
        complain("give --out another name", "--out %s would replace what --in reads", o->out);
        return false;
    }
    bool reads_stdin = false;
    for (int i = 0; i < o->files.count; i++) reads_stdin |= !strcmp(o->files.data[i], "-");
    if (o->write && (reads_stdin || o->output || o->check)) {
        complain(NULL, "-w rewrites FILE itself: it excludes `-`, -o and --check");
        return false;
    }
    return true;
}

/* The first flag given that this verb of `fusec plan` has no use for; NULL: none. */
static const char *stray_plan_flag(const Options *o)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (o->given >> i & 1 && !takes_option(COMMAND_PLAN, o->verb, (Option)i))
            return flag_words[i];
    return NULL;
}

static bool check_plan(const Options *o)
{
    if (o->command != COMMAND_PLAN) return true;
    const char *word = plan_words[o->verb], *stray = stray_plan_flag(o);
    const bool saves = o->verb == PLAN_SAVE;
    if (o->files.count != 1)
        complain(saves ? "fusec plan save norm.fuse N=4096 -o norm.plan"
                       : arena_format(o->arena, "fusec plan %s norm.plan", word),
                 o->files.count < 1 ? "`fusec plan %s` needs a FILE"
                                    : "`fusec plan %s` takes one FILE",
                 word);
    else if (stray)
        complain(NULL, "`fusec plan %s` has no option %s", word, stray);
    else if (o->verb == PLAN_SHOW && o->sizes.count)
        complain(NULL, "`fusec plan show` takes no axis sizes");
    else if (saves && (!o->output || !strcmp(o->output, "-")))
        complain("fusec plan save norm.fuse N=4096 -o norm.plan",
                 "`fusec plan save` writes a file: name it by -o FILE");
    else
        return true;
    return false;
}

bool check_combination(const Options *o)
{
    return check_verb(o) && check_file_count(o) && check_command(o) && check_plan(o) &&
           check_device(o) && check_file_use(o);
}
