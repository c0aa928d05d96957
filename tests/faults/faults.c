/* faults.c: the driver of `make faults`. Runs each case once as it is, counting its calls; then
 * again and again, each time with another call that fails; and judges:
 *
 *   - no signal, no hang;
 *   - exit 0 means all of it: the same stdout and the same files;
 *   - any other exit is 3, says why on stderr ("out of memory" where memory ran out), and leaves
 * each file as it was or as it should become;
 *   - no temporary file is left, and nothing in the disk cache is lost;
 *   - the calls of the library lose no memory.
 *
 *     faults [--sample N] [--jobs N] [--only CASE] [--family NAME]
 *
 * --sample takes N calls of each kind and case, evenly spread, in place of all (where they are no
 * more than MOST_CALLS: a benchmark launches thousands of times). */
#include "cases.h"
#include "faults.h"
#include "folder.h"
#include "run.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CALLS = 200, EXIT_MACHINE = 3 };

static const char *const families[] = FAULT_NAMES;
static char scratch[PATH], before_folder[PATH]; /* absolute */
static int failures;

/* ---- judging ---- */

typedef struct {
    const Case *c;
    Folder before, after;
    Result result;
    FaultReport calls;
} Clean;

__attribute__((format(printf, 4, 5))) static void
blame(const Clean *clean, const How *how, const Result *result, const char *format, ...)
{
    va_list args;
    failures++;
    printf("%s, %s%s%s: ", clean->c->name, how->fault ? how->fault : "",
           how->out == TO_FULL ? "stdout full"
           : how->out          ? "no stdout"
                               : "",
           how->error == TO_FULL ? "stderr full"
           : how->error          ? "no stderr"
                                 : "");
    if (how->fault) printf("%s fails: ", report->what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" (exit %d: %.200s)\n", WIFEXITED(result->status) ? WEXITSTATUS(result->status) : -1,
           result->error);
}

static bool same(const Case *c, const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return c->flags & NUMBERS ? same_but_numbers(a, a_bytes, b, b_bytes)
                              : a_bytes == b_bytes && !memcmp(a, b, a_bytes);
}

static bool is_same_file(const Case *c, const File *file, const File *other)
{
    return file && other ? same(c, file->data, file->bytes, other->data, other->bytes)
                         : file == other;
}

/* differs: what is in a result may be another answer. */
static void judge_files(const Clean *clean, const How *how, const Result *result, bool done,
                        bool differs)
{
    Folder now = {0};
    const Case *c = clean->c;
    read_folder(work, "", &now);
    for (int i = 0; i < now.count; i++) {
        const File *file = &now.files[i];
        const File *before = find_file(&clean->before, file->path),
                   *after = find_file(&clean->after, file->path);
        if (!before && !after && !is_entry(file->path))
            blame(clean, how, result, "leaves %s", file->path);
        else if (!differs && !is_cache(file->path) && !is_same_file(c, file, after) &&
                 (done || !is_same_file(c, file, before)))
            blame(clean, how, result, "damages %s", file->path);
    }
    for (int i = 0; i < clean->before.count; i++) {
        const char *path = clean->before.files[i].path;
        const bool may =
            is_cache(path) ? c->flags & (CLEARS | FRESH) : !find_file(&clean->after, path);
        if (!may && !find_file(&now, path)) blame(clean, how, result, "loses %s", path);
    }
    for (int i = 0; i < clean->after.count && done; i++) {
        const char *path = clean->after.files[i].path;
        if (!is_cache(path) && !find_file(&now, path))
            blame(clean, how, result, "does not write %s", path);
    }
    free_folder(&now);
}

/* Without NVRTC or a driver there are other answers, as documented; with a driver that does not
 * start, or without the tuning file, too, and then it is said. A schedule that cannot be compiled takes no one's place. */
static bool may_differ(const Case *c, const How *how, const Result *result, int family)
{
    const bool lasts = how->fault && strchr(how->fault, '+'),
               of_nvrtc = !strncmp(report->what, "nvrtc", 5);
    return (family == FAULT_CUDA && of_nvrtc &&
            (lasts || c->flags & SPILLS || !strcmp(report->what, "nvrtcVersion"))) ||
           (family == FAULT_CUDA && c->flags & TRIES) ||
           (family == FAULT_SYSTEM && (lasts || !strcmp(report->what, "dlopen"))) ||
           (family == FAULT_CUDA && !strncmp(report->what, "cuGetProcAddress", 16)) ||
           (family == FAULT_CUDA && strstr(result->error, "sm_90a; --arch names another")) ||
           (family == FAULT_FILE && strstr(result->error, "going on without it"));
}

static void judge(const Clean *clean, const How *how, const Result *result, int family)
{
    const Case *c = clean->c;
    if (result->late) {
        blame(clean, how, result, "hangs");
        return;
    }
    if (!WIFEXITED(result->status)) {
        blame(clean, how, result, "signal %d", WTERMSIG(result->status));
        return;
    }
    const int status = WEXITSTATUS(result->status), usual = WEXITSTATUS(clean->result.status);
    const bool done = status == usual;
    if (!done && status != EXIT_MACHINE) blame(clean, how, result, "another exit status");
    const bool differs = done && may_differ(c, how, result, family);
    if (done && how->out == TO_FILE && !differs &&
        !same(c, result->out, result->out_bytes, clean->result.out, clean->result.out_bytes))
        blame(clean, how, result, "not the whole output");
    if (done && how->out != TO_FILE && clean->result.out_bytes)
        blame(clean, how, result, "lost output");
    if (!done && how->error == TO_FILE && !result->error_bytes)
        blame(clean, how, result, "says nothing");
    if (!done && family == FAULT_MEMORY && how->error == TO_FILE &&
        !strstr(result->error, "out of memory"))
        blame(clean, how, result, "another message");
    if (c->flags & CALLS && report->live > clean->calls.live)
        blame(clean, how, result, "loses %ld allocations", report->live - clean->calls.live);
    judge_files(clean, how, result, done, differs);
}

/* ---- all runs of a case ---- */

static void run_fault(const Clean *clean, int family, long call, bool for_good)
{
    char fault[64];
    snprintf(fault, sizeof fault, "%s:%ld%s", families[family], call, for_good ? "+" : "");
    const How how = {.fault = fault};
    Result result = run(clean->c, &clean->before, &how);
    judge(clean, &how, &result, family);
    free_result(&result);
}

static void run_streams(const Clean *clean)
{
    static const How hows[] = {{NULL, TO_FULL, TO_FILE},        {NULL, TO_NOTHING, TO_FILE},
                               {NULL, TO_FILE, TO_FULL},        {NULL, TO_FILE, TO_NOTHING},
                               {NULL, TO_NOTHING, TO_NOTHING},  {"memory:9+", TO_FILE, TO_FULL},
                               {"memory:20+", TO_FULL, TO_FULL}};
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        Result result = run(clean->c, &clean->before, &hows[i]);
        judge(clean, &hows[i], &result, -1);
        free_result(&result);
    }
}

typedef struct {
    int sample, job, jobs;
    const char *only, *family;
} Choice;

static void run_family(const Clean *clean, const Choice *choice, int family)
{
    const long calls = clean->calls.calls[family];
    const bool closely = clean->c->flags & CLOSELY && family == FAULT_MEMORY;
    const long most = choice->sample ? choice->sample * (closely ? 20 : 1) : MOST_CALLS,
               wanted = calls < most ? calls : most;
    for (long i = 0; i < wanted; i++) {
        const long call = 1 + (wanted < calls ? i * calls / wanted + calls / wanted / 2 : i);
        if (i % choice->jobs != choice->job) continue;
        const bool once =
            family == FAULT_EINTR || (choice->sample && (i + (clean->c - cases) + family) % 2 == 0);
        if (!choice->sample || once) run_fault(clean, family, call, false);
        if (family != FAULT_EINTR && !(choice->sample && once))
            run_fault(clean, family, call, true);
    }
}

static void run_case(const Case *c, const Choice *choice)
{
    Clean clean = {.c = c};
    const How as_it_is = {0};
    read_folder(before_folder, "", &clean.before);
    clean.result = run(c, &clean.before, &as_it_is);
    clean.calls = *report;
    read_folder(work, "", &clean.after);
    if (clean.result.late || !WIFEXITED(clean.result.status) ||
        WEXITSTATUS(clean.result.status) != 0)
        blame(&clean, &as_it_is, &clean.result, "fails without a fault");
    else {
        if (choice->job == 0 && !choice->family && !(c->flags & CALLS)) run_streams(&clean);
        for (int f = 0; f < FAULT_FAMILIES; f++)
            if (!choice->family || !strcmp(choice->family, families[f]))
                run_family(&clean, choice, f);
    }
    if (choice->job == 0 && !choice->sample) {
        printf("%-16s", c->name);
        for (int f = 0; f < FAULT_FAMILIES; f++)
            printf(" %6ld %s", clean.calls.calls[f], families[f]);
        printf("\n");
    }
    free_result(&clean.result);
    free_folder(&clean.before);
    free_folder(&clean.after);
}

/* ---- all cases ---- */

static const char norm_text[] =
    "graph norm[M = 8, N = 16](x : f16[M, N], gamma : f32[N], eps : f32 = 1e-5) -> (y : f16[M, N], s : f32[M]) {\n"
    "    m = mean[N](x)\n    v = var[N](x)\n    s = m * m + v\n    y = (x - m) * rsqrt(v + eps) * gamma\n}\n";
static const char uses_text[] =
    "import \"std\"\nimport \"shared.fuse\"\n"
    "graph uses[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) {\n    y = softmax[N](twice(x))\n}\n";
static const char inputs_text[] =
    "graph inputs[M = 8, N = 16](a : f16[M, N], b : f32[N]) -> (x : f16[M, N], gamma : f32[N]) {\n    x = a\n    gamma = b\n}\n";
static const char shared_text[] = "fn twice(x) = x * 2\n";
static const char ugly_text[] = "graph ugly[M=4,N=8](x:f32[M,N])->(y:f32[M,N]){y=x*2+1}\n";
static const char zero_text[] =
    "graph zero[M = 8, N = 16](x : f32[M, N]) -> (y : f32[M, N]) {\n    y = (x - x) * sum[N](x)\n}\n";

static void write_text(const char *name, const char *text)
{
    char path[PATH];
    join(path, before_folder, name);
    save(path, text, strlen(text));
}

/* What a run without faults leaves is part of the folder that all begin with. */
static void keep_files(const Case *c)
{
    Folder before = {0}, after = {0};
    read_folder(before_folder, "", &before);
    Result result = run(c, &before, &(How){0});
    if (!WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0) {
        fprintf(stderr, "faults: `fusec %s` fails: %s", c->words, result.error);
        exit(1);
    }
    read_folder(work, "", &after);
    for (int i = 0; i < after.count; i++) {
        char path[PATH];
        join(path, before_folder, after.files[i].path);
        save(path, after.files[i].data, after.files[i].bytes);
    }
    free_result(&result);
    free_folder(&before);
    free_folder(&after);
}

static void make_before(void)
{
    static const Case fill[] = {
        {"", "fmt -w norm.fuse", 0},
        {"", "run inputs.fuse --device cpu --out in.safetensors", 0},
        {"", "explain norm.fuse N=64 -o old.txt", 0},
        {"", "explain zero.fuse", GPU},
        {"", "emit zero.fuse --emit=cubin -o old.txt", 0},
        {"", "run zero.fuse --device cuda", GPU},
        {"", "tune zero.fuse", GPU},
        {"", "plan save zero.fuse --arch sm_90a -o zero.plan", 0},
    };
    empty_folder(before_folder);
    make_folders(before_folder);
    write_text("norm.fuse", norm_text);
    write_text("uses.fuse", uses_text);
    write_text("inputs.fuse", inputs_text);
    write_text("shared.fuse", shared_text);
    write_text("ugly.fuse", ugly_text);
    write_text("zero.fuse", zero_text);
    size_t bytes;
    char *held = load("tests/cases/held_short.fuse", &bytes);
    write_text("held.fuse", held);
    free(held);
    for (size_t i = 0; i < sizeof fill / sizeof *fill; i++) keep_files(&fill[i]);
    write_text("old.txt", "what was there\n");
    write_text("old.safetensors", "what was there\n");
}

static void map_report(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof *report) != 0) die(path);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (report == MAP_FAILED) die(path);
    setenv("FAULT_REPORT_FILE", path, 1);
    close(fd);
}

static int run_job(const Choice *choice)
{
    char path[PATH];
    snprintf(work, sizeof work, "%.3000s/work%d", scratch, choice->job);
    snprintf(path, sizeof path, "%.3000s/faults/report%d", build, choice->job);
    map_report(path);
    for (int i = 0; i < CASES; i++)
        if (!choice->only || !strcmp(choice->only, cases[i].name)) run_case(&cases[i], choice);
    printf("%ld runs, %d of them answered wrongly\n", runs, failures);
    return failures != 0;
}

/* Where files need no disk, if there is such a place: the commands sync what they write. */
static void make_scratch(void)
{
    snprintf(scratch, sizeof scratch, "/dev/shm/fusec-faults-XXXXXX");
    if (mkdtemp(scratch)) return;
    snprintf(scratch, sizeof scratch, "%.3000s/faults/XXXXXX", build);
    if (!mkdtemp(scratch)) die(scratch);
}

static int read_choice(int argc, char **argv, Choice *choice)
{
    *choice = (Choice){.jobs = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--sample"))
            choice->sample = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--jobs"))
            choice->jobs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--only"))
            choice->only = argv[i + 1];
        else if (!strcmp(argv[i], "--family"))
            choice->family = argv[i + 1];
        else
            return 2;
    }
    return argc % 2 == 1 && choice->jobs > 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    Choice choice;
    if (read_choice(argc, argv, &choice) != 0 || !realpath("build", build)) {
        fprintf(
            stderr,
            "usage: build/faults/faults [--sample N] [--jobs N] [--only CASE] [--family NAME]\n");
        return 2;
    }
    umask(077);
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("LC_ALL", "C", 1);
    char compiler[PATH], path[PATH];
    if (realpath("tests/faults/compiler.sh", compiler)) setenv("CXX", compiler, 1);
    make_scratch();
    join(before_folder, scratch, "before");
    join(work, scratch, "work");
    join(path, build, "faults/report");
    map_report(path);
    make_before();
    for (choice.job = 1; choice.job < choice.jobs; choice.job++) {
        const pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) exit(run_job(&choice));
    }
    choice.job = 0;
    int result = run_job(&choice), status;
    while (wait(&status) > 0) result |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    empty_folder(scratch);
    rmdir(scratch);
    return result;
}
