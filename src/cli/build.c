/* build.c: `fusec build`: kernels for several architectures, and a launcher in C that another
 * program links. */
#include "codegen/launcher.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/program.h"
#include "codegen/cuda.h"
#include "cubin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One architecture; all that the launcher points to. */
typedef struct {
    Options options; /* those of the command line, but for --arch */
    Program program;
    Compilation compilation;
    fusec_binary *binary;
} Built;

typedef LIST(const char *) Words;

static Words split_archs(const Options *o)
{
    Words words = {0};
    const char *rest = o->arch ? o->arch : "";
    do {
        const size_t length = strcspn(rest, ",");
        *list_push(o->arena, &words) = o->arch ? arena_copy(o->arena, rest, length) : NULL;
        rest += length;
    } while (*rest++ == ',');
    return words;
}

/* Which entries may start while their predecessor finishes. */
static bool *find_overlaps(Arena *arena, const LaunchPlan *plan, const void *cubin, size_t bytes)
{
    bool *overlaps = NEW_ARRAY(arena, bool, 2 * plan->kernel_count + 1);
    for (int k = 0; k < plan->kernel_count; k++) {
        const LaunchKernel *kernel = &plan->kernels[k];
        if (!kernel->overlaps) continue;
        overlaps[2 * k] = cubin_waits_first(cubin, bytes, kernel->entry.name);
        overlaps[2 * k + 1] =
            has_strided(kernel) && cubin_waits_first(cubin, bytes, kernel->strided.name);
    }
    return overlaps;
}

static int build_plan(const Options *o, const char *arch, Built *b, LauncherPlan *plan)
{
    fusec_error error;
    b->options = *o;
    b->options.arch = arch;
    int status = open_program(&b->program, &b->options, o->files.data[0]);
    if (status == EXIT_DONE) status = need_one_graph(&b->program);
    if (status == EXIT_DONE)
        status =
            compile_graph(&b->program, b->program.graphs[0], UNTIL_CUDA, NULL, 0, &b->compilation);
    if (status != EXIT_DONE) return status;
    Progress progress;
    progress_begin(&progress, "compiling with NVRTC");
    const fusec_status compiled = fusec_binary_compile(b->compilation.cuda, b->program.target.arch,
                                                       FUSEC_CUBIN, &b->binary, &error);
    progress_end(&progress);
    status = finish_call(compiled, &error);
    if (status != EXIT_DONE) return status;
    remark_warning(b->binary);
    plan->arch = b->program.target.arch;
    plan->launch = b->compilation.launch;
    plan->cubin = fusec_binary_data(b->binary, &plan->cubin_bytes);
    plan->overlaps = find_overlaps(o->arena, plan->launch, plan->cubin, plan->cubin_bytes);
    return EXIT_DONE;
}

static int check_different(const Launcher *l)
{
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(l->plans[i].arch, l->plans[k].arch)) {
                complain("a launcher chooses by compute capability",
                         "--arch names two GPUs of architecture %s", l->plans[i].arch);
                return EXIT_USAGE;
            }
    return EXIT_DONE;
}

/* GRAPH_N4096. */
static const char *choose_name(const Options *o, const LaunchPlan *plan)
{
    if (o->name) return o->name;
    const char *name = plan->graph;
    for (int i = 0; i < plan->axis_count; i++)
        if (plan->fixed >> i & 1)
            name = arena_format(o->arena, "%s_%s%lld", name, plan->axis_names[i],
                                (long long)plan->sizes.of[i]);
    return name;
}

/* The command that writes the same again. */
static const char *build_command(const Options *o, const LaunchPlan *plan, const char *archs)
{
    Text *text = text_new(o->arena);
    text_print(text, "fusec build %s", shell_word(o->arena, o->files.data[0]));
    for (int i = 0; i < plan->axis_count; i++)
        if (plan->fixed >> i & 1)
            text_print(text, " %s=%lld", plan->axis_names[i], (long long)plan->sizes.of[i]);
    if (o->graph) text_print(text, " --graph %s", plan->graph);
    text_print(text, " --arch %s", archs);
    if (o->outputs) text_print(text, " --outputs %s", shell_word(o->arena, o->outputs));
    if (o->schedule) text_print(text, " --schedule %s", shell_word(o->arena, o->schedule));
    if (o->name) text_print(text, " --name %s", o->name);
    text_print(text, " -o %s", shell_word(o->arena, o->output));
    return text_string(text);
}

/* The folder of the launcher; *made: it was not there before. */
static int make_folder(const Options *o, bool *made)
{
    *made = mkdir(o->output, 0777) == 0;
    if (*made || errno == EEXIST) return EXIT_DONE;
    complain(NULL, "cannot make the folder %s: %s", o->output, strerror(errno));
    return EXIT_MACHINE;
}

/* A file of the launcher; `result` is its temporary file. */
typedef struct {
    const char *ending, *text;
    Result result;
} Part;

typedef LIST(Part) Parts;

static void add_part(Arena *arena, Parts *parts, const char *ending, const char *text)
{
    *list_push(arena, parts) = (Part){.ending = ending, .text = text, .result = {.fd = -1}};
}

static const char *printed(Arena *arena, const Launcher *l, void print(Text *, const Launcher *))
{
    Text *out = text_new(arena);
    print(out, l);
    return text_string(out);
}

static Parts list_parts(Arena *arena, const Launcher *l, const Built *built)
{
    Parts parts = {0};
    for (int i = 0; i < l->count; i++)
        add_part(arena, &parts, arena_format(arena, ".%s.cu", l->plans[i].arch),
                 built[i].compilation.cuda);
    add_part(arena, &parts, ".h", printed(arena, l, print_launcher_header));
    add_part(arena, &parts, ".c", printed(arena, l, print_launcher_source));
    add_part(arena, &parts, ".json", printed(arena, l, print_launcher_json));
    return parts;
}

static bool write_part(const Options *o, const Launcher *l, Part *part)
{
    const char *path = arena_format(o->arena, "%s/%s%s", o->output, l->name, part->ending);
    return open_result(o->arena, path, &part->result) &&
           write_result(&part->result, part->text, strlen(part->text));
}

/* No file gets its name before all are written: they belong together. */
static int save_launcher(const Options *o, const Launcher *l, const Built *built)
{
    bool made;
    int status = make_folder(o, &made);
    if (status != EXIT_DONE) return status;
    Parts parts = list_parts(o->arena, l, built);
    bool good = true;
    for (int i = 0; i < parts.count && good; i++) good = write_part(o, l, &parts.data[i]);
    for (int i = 0; i < parts.count && good; i++) good = close_result(&parts.data[i].result);
    for (int i = 0; i < parts.count && !good; i++) drop_result(&parts.data[i].result);
    if (!good && made) rmdir(o->output);
    return good ? EXIT_DONE : EXIT_MACHINE;
}

static const char *join_archs(const Options *o, const Launcher *l)
{
    const char *list = "";
    for (int i = 0; i < l->count; i++)
        list = arena_format(o->arena, "%s%s%s", list, i ? "," : "", l->plans[i].arch);
    return list;
}

int command_build(Options *o)
{
    const Words archs = split_archs(o);
    Built *built = NEW_ARRAY(o->arena, Built, archs.count);
    LauncherPlan *plans = NEW_ARRAY(o->arena, LauncherPlan, archs.count);
    Launcher launcher = {.plans = plans};
    int status = EXIT_DONE;
    while (launcher.count < archs.count && status == EXIT_DONE) {
        const int i = launcher.count++;
        status = build_plan(o, archs.data[i], &built[i], &plans[i]);
    }
    if (status == EXIT_DONE) status = check_different(&launcher);
    if (status == EXIT_DONE) {
        launcher.name = choose_name(o, plans[0].launch);
        launcher.command = build_command(o, plans[0].launch, join_archs(o, &launcher));
        status = save_launcher(o, &launcher, built);
    }
    for (int i = 0; i < launcher.count; i++) {
        fusec_binary_destroy(built[i].binary);
        compile_free(&built[i].compilation);
        close_program(&built[i].program);
    }
    return status;
}
