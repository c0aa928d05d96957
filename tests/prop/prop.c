/* prop.c: random programs through the whole compiler.
 *
 *     prop [--first SEED] [--count N] [--device cpu|sim] [--schedules] [--nvrtc]
 *          [--texts N] [--elements N] [--jobs N] [--keep DIR]
 *     prop --replay DIR [...]     the programs in DIR, `# seed: N` and all; --every N: one in N
 *     prop --print --first SEED   one program's text
 *
 * --schedules runs at most seven texts of a program, --texts N at most N: as it is chosen, by the
 * schedule that a kept one names (with --texts 1, too), and by others that its seed picks.
 * A program that fails is made small and, with --keep, written to DIR. Exits 1 after any
 * failure. */
#include "device.h"
#include "generate.h"
#include "shrink.h"

#include <dirent.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* BATCH: variants that are compiled for the host in one go */
enum { BATCH = 48, TRIES = 300 };

enum { MOST_JOBS = 64 };

/* What the jobs share. */
typedef struct {
    _Atomic uint64_t taken;   /* programs so far */
    _Atomic uint64_t texts;   /* of them */
    uint64_t last[MOST_JOBS]; /* that each took last: it may die of it */
} Progress;

typedef struct {
    uint64_t first, count;
    int64_t elements;
    int jobs;
    int every; /* of those to replay one in so many */
    Devices devices;
    bool print;
    Progress *progress;
    const char *keep, *replay;
    const char **paths; /* of the programs to replay */
} Options;

/* Programs whose variants wait to be compiled for the host together. */
typedef struct {
    const Options *options;
    Arena *arenas[BATCH];
    const Sketch *sketches[BATCH]; /* NULL: read from a file, */
    const char *paths[BATCH];      /* this one */
    Case cases[BATCH];
    Checked checked[BATCH];
    Variant variants[BATCH + MOST_VARIANTS];
    int programs, count, failed;
} Batch;

/* ---- one program ---- */

static bool check_all(const Case *c, const Devices *devices, Finding *f)
{
    Checked checked;
    const bool good = check_front(c, &checked, f) && check_devices(&checked, devices, f);
    close_checked(&checked);
    return good;
}

typedef struct {
    Devices devices;
    char schedule[64];
    Finding finding;
} Shrinking;

/* Tries the schedule that failed alone. */
static bool fails_alike(void *data, const Sketch *s)
{
    Shrinking *w = data;
    Arena *arena = arena_new();
    Finding f;
    Case c = case_of(arena, s);
    if (w->schedule[0]) c.schedule = w->schedule;
    const bool fails = !check_all(&c, &w->devices, &f) && !strcmp(f.kind, w->finding.kind);
    if (fails) w->finding = f;
    arena_free(arena);
    return fails;
}

static void keep_program(const Options *o, const Case *c, const Finding *f)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/seed%llu.fuse", o->keep, (unsigned long long)c->seed);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "# seed: %llu\n", (unsigned long long)c->seed);
    if (f->schedule[0]) fprintf(file, "# schedule: %s\n", f->schedule);
    fprintf(file, "# %s: ", f->kind);
    for (const char *at = f->text; *at && at < f->text + 300; at++) {
        fputc(*at, file);
        if (*at == '\n') fputs("# ", file);
    }
    fprintf(file, "\n%s", c->text);
    fclose(file);
}

/* Makes the program small and tells of it. */
static void report(Batch *b, int program, const Finding *f)
{
    const Case *c = &b->cases[program];
    const Sketch *s = b->sketches[program];
    Shrinking w = {.devices = b->options->devices, .finding = *f};
    memcpy(w.schedule, f->schedule, sizeof w.schedule);
    w.devices.schedules = false;
    Arena *arena = arena_new();
    Case small = *c;
    if (s) small = case_of(arena, shrink(arena, s, TRIES, fails_alike, &w));
    printf("=== seed %llu: %s\n%s\n%s\n", (unsigned long long)c->seed, w.finding.kind,
           w.finding.text, small.text);
    if (!s) printf("(%s)\n", b->paths[program]);
    fflush(stdout);
    if (b->options->keep && s) keep_program(b->options, &small, &w.finding);
    b->failed++;
    arena_free(arena);
}

/* ---- batches ---- */

static void drop_variants(Batch *b, const Checked *checked)
{
    int kept = 0;
    for (int i = 0; i < b->count; i++) {
        if (b->variants[i].checked == checked)
            compile_free(&b->variants[i].compiled);
        else
            b->variants[kept++] = b->variants[i];
    }
    b->count = kept;
}

static void run_batch(Batch *b)
{
    const Devices *devices = &b->options->devices;
    Finding f;
    int fault = 0;
    while (b->count > 0) {
        bool good = !devices->nvrtc || compile_variants(b->variants, b->count, &fault, &f);
        good = good && (!devices->simulate || simulate_variants(b->variants, b->count, &fault, &f));
        if (good) break;
        Checked *checked = b->variants[fault].checked;
        drop_variants(b, checked);
        report(b, (int)(checked - b->checked), &f);
    }
    for (int i = 0; i < b->programs; i++) {
        drop_variants(b, &b->checked[i]);
        close_checked(&b->checked[i]);
        arena_free(b->arenas[i]);
    }
    b->programs = 0;
}

/* A program of a sketch or a file; takes over the arena. */
static void add_program(Batch *b, Arena *arena, const Sketch *s, const char *path, const Case *c)
{
    const int i = b->programs++;
    const Devices *devices = &b->options->devices;
    Finding f;
    int count = 0;
    b->arenas[i] = arena;
    b->sketches[i] = s;
    b->paths[i] = path;
    b->cases[i] = *c;
    bool good = check_front(&b->cases[i], &b->checked[i], &f);
    if (good && (devices->simulate || devices->nvrtc || devices->schedules))
        good = make_variants(&b->checked[i], devices, b->variants + b->count, &count, &f);
    b->count += count;
    atomic_fetch_add(&b->options->progress->texts, (uint64_t)count);
    if (!good) {
        drop_variants(b, &b->checked[i]);
        report(b, i, &f);
    }
    if (b->programs == BATCH || b->count >= BATCH) run_batch(b);
}

static int run_seeds(const Options *o, int job)
{
    Batch *b = calloc(1, sizeof *b);
    if (!b) return 1;
    b->options = o;
    for (uint64_t taken; (taken = atomic_fetch_add(&o->progress->taken, 1)) < o->count;) {
        const uint64_t seed = o->first + taken;
        o->progress->last[job] = seed;
        Arena *arena = arena_new();
        const Sketch *s = generate(arena, seed, o->elements);
        const Case c = case_of(arena, s);
        add_program(b, arena, s, NULL, &c);
    }
    run_batch(b);
    const int failed = b->failed;
    free(b);
    return failed;
}

/* ---- files ---- */

static bool read_case(Arena *arena, const char *path, Case *c)
{
    Text *text = text_new(arena);
    char part[4096];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) text_put(text, part, n);
    fclose(file);
    const char *seed = strstr(text_string(text), "# seed: ");
    const char *head = strstr(text_string(text), "\ngraph ");
    const char *schedule = strstr(text_string(text), "\n# schedule: ");
    *c = (Case){.text = text_string(text), .seed = seed ? strtoull(seed + 8, NULL, 10) : 1};
    if (schedule) c->schedule = arena_copy(arena, schedule + 13, strcspn(schedule + 13, "\n"));
    if (head) c->name = arena_copy(arena, head + 7, strcspn(head + 7, "[( "));
    return head != NULL;
}

static int replay_paths(const Options *o, int job)
{
    Batch *b = calloc(1, sizeof *b);
    if (!b) return 1;
    b->options = o;
    for (uint64_t taken; (taken = atomic_fetch_add(&o->progress->taken, 1)) < o->count;) {
        const char *path = o->paths[taken];
        o->progress->last[job] = taken;
        Arena *arena = arena_new();
        Case c;
        if (read_case(arena, path, &c)) {
            c.number = taken;
            add_program(b, arena, NULL, path, &c);
        } else {
            printf("=== no graph, or not to be read\n(%s)\n", path);
            b->failed++;
            arena_free(arena);
        }
    }
    run_batch(b);
    const int failed = b->failed;
    free(b);
    return failed;
}

static int is_program(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 5 && !strcmp(entry->d_name + length - 5, ".fuse");
}

/* The programs of a directory, in the order of their names. */
static bool list_paths(Arena *arena, Options *o)
{
    struct dirent **names;
    const int count = scandir(o->replay, &names, is_program, alphasort);
    if (count < 1) return false; /* nothing to check is an error */
    o->count = 0;
    o->paths = arena_alloc(arena, (size_t)count * sizeof *o->paths);
    for (int i = 0; i < count; i++) {
        if (i % o->every == 0)
            o->paths[o->count++] = arena_format(arena, "%s/%s", o->replay, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return true;
}

/* ---- the command line ---- */

/* Some work on the programs, in processes of their own: how many failed. */
static int run_jobs(const Options *o, int (*work)(const Options *, int job))
{
    int failed = 0, status;
    pid_t jobs[MOST_JOBS];
    fflush(stdout);
    for (int i = 0; i < o->jobs; i++) {
        o->progress->last[i] = o->paths ? 0 : o->first;
        jobs[i] = fork();
        if (jobs[i] == 0) {
            const int bad = work(o, i);
            fflush(stdout);
            _exit(bad > 100 ? 100 : bad);
        }
    }
    for (int i = 0; i < o->jobs; i++)
        if (jobs[i] < 0 || waitpid(jobs[i], &status, 0) < 0 || !WIFEXITED(status)) {
            const uint64_t last = o->progress->last[i];
            if (o->paths)
                printf("=== a job died at %s or a few before\n", o->paths[last]);
            else
                printf("=== a job died at seed %llu or a few before\n", (unsigned long long)last);
            failed++;
        } else {
            failed += WEXITSTATUS(status);
        }
    return failed;
}

static int job_count(long asked)
{
    return asked < 1 ? 1 : asked > MOST_JOBS ? MOST_JOBS : (int)asked;
}

static int most_texts(long asked)
{
    return asked < 1 ? 1 : asked > SCHEDULES ? SCHEDULES : (int)asked;
}

static bool parse_word(Options *o, const char *word, const char *value, bool *took)
{
    *took = true;
    if (!strcmp(word, "--first") && value)
        o->first = strtoull(value, NULL, 10);
    else if (!strcmp(word, "--count") && value)
        o->count = strtoull(value, NULL, 10);
    else if (!strcmp(word, "--elements") && value)
        o->elements = strtoll(value, NULL, 10);
    else if (!strcmp(word, "--texts") && value)
        o->devices.texts = most_texts(strtol(value, NULL, 10));
    else if (!strcmp(word, "--jobs") && value)
        o->jobs = job_count(strtol(value, NULL, 10));
    else if (!strcmp(word, "--every") && value)
        o->every = atoi(value) > 1 ? atoi(value) : 1;
    else if (!strcmp(word, "--keep") && value)
        o->keep = value;
    else if (!strcmp(word, "--replay") && value)
        o->replay = value;
    else if (!strcmp(word, "--device") && value)
        o->devices.simulate = !strcmp(value, "sim");
    else {
        *took = false;
        if (!strcmp(word, "--schedules")) return o->devices.schedules = true;
        if (!strcmp(word, "--nvrtc")) return o->devices.nvrtc = true;
        if (!strcmp(word, "--print")) return o->print = true;
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    Options o = {.count = 100, .elements = 2048, .jobs = 1, .every = 1, .devices.texts = 7};
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* each program takes what the one before gave back */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    for (int i = 1; i < argc; i++) {
        bool took;
        if (!parse_word(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &took)) {
            fprintf(stderr, "prop: what is %s?\n", argv[i]);
            return 2;
        }
        i += took;
    }
    Arena *arena = arena_new();
    if (o.print) {
        fputs(print_sketch(arena, generate(arena, o.first, o.elements), "g", 0), stdout);
        arena_free(arena);
        return 0;
    }
    o.progress =
        mmap(NULL, sizeof *o.progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o.progress == MAP_FAILED) return 2;
    if (o.replay && !list_paths(arena, &o)) {
        fprintf(stderr, "prop: no programs in %s\n", o.replay);
        return 1;
    }
    const int failed = run_jobs(&o, o.replay ? replay_paths : run_seeds);
    printf("-- prop: %llu of %llu %s programs pass",
           (unsigned long long)(o.count - (uint64_t)failed), (unsigned long long)o.count,
           o.replay ? "kept" : "random");
    if (o.every > 1) printf(", one in %d", o.every);
    if (o.progress->texts > 0)
        printf(", by %llu texts, at most %d each", (unsigned long long)o.progress->texts,
               o.devices.texts);
    puts("");
    arena_free(arena);
    return failed != 0;
}
