/* sim_cases.c: many cases on the simulator in one process.
 *
 *     sim_cases < CASES       a case a line: the arguments of `fusec run`
 *
 * `--candidates N` at the end of a line stands for N of the schedules that `fusec tune` would time,
 * spread over all of them.
 * ` --sampled` at the end of a line: the case is left out, with a line `left out: CASE`, where a
 * text before it was the same but for its numbers, or where all parts of its complete schedule
 * (`threads=128`) came before.
 * A schedule that is refused is skipped with a line `refused: CASE`, and so is a text that
 * ran before (a forced schedule is often the chosen one). Each text runs under two seeds, whose
 * outputs must be the same bits and within the reference's bounds. Several texts are compiled for
 * the host at once, each with kernels of another name. */
#include "schedule/plan.h"
#include "sim/object.h"
#include "sim_run.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MOST_HASHES = 4096, MESSAGE = 4096, TOGETHER = 8 };

static const char candidates[] = " --candidates ", sampled[] = " --sampled";

typedef struct {
    uint64_t hashes[MOST_HASHES];
    int count;
} Known;

typedef struct {
    Known texts, shapes, parts; /* texts; those without numbers; parts of schedules */
    int count, failed, refused, repeated, left_out;
} Tally;

/* A case whose text waits to be compiled with others. */
typedef struct {
    SimRun run;
    const char *words;
} Waiting;

static Waiting waiting[TOGETHER];
static int waiting_count;

static const uint64_t hash_begin = 14695981039346656037u;

static uint64_t hash_byte(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 1099511628211u;
}

/* A text without its head, which names the schedule that was asked for. */
static const char *body_of(const char *text)
{
    const char *body = strstr(text, "\n\n");
    return body ? body : text;
}

static uint64_t hash_text(const char *text, const char *words)
{
    uint64_t hash = hash_begin;
    for (text = body_of(text); *text; text++) hash = hash_byte(hash, *text);
    for (; *words && strncmp(words, " --schedule", 11) != 0; words++)
        hash = hash_byte(hash, *words);
    return hash;
}

/* Of a text without its numbers. */
static uint64_t hash_shape(const char *text)
{
    uint64_t hash = hash_begin;
    for (text = body_of(text); *text; text++)
        if (*text < '0' || *text > '9') hash = hash_byte(hash, *text);
    return hash;
}

static bool is_new(Known *known, uint64_t hash)
{
    for (int i = 0; i < known->count; i++)
        if (known->hashes[i] == hash) return false;
    if (known->count < MOST_HASHES) known->hashes[known->count++] = hash;
    return true;
}

/* Whether a part of this complete schedule comes for the first time; notes all. */
static bool has_new_part(Known *known, const char *schedule)
{
    bool found = false;
    for (const char *at = schedule; *at; at += *at != 0) {
        uint64_t hash = hash_begin;
        for (; *at && !strchr(":,+/", *at); at++) hash = hash_byte(hash, *at);
        found |= is_new(known, hash);
    }
    return found;
}

/* Notes the text's shape and the parts of its schedule; false: the one or all others came before. */
static bool adds_something(Tally *tally, const SimRun *run)
{
    const char *schedule = complete_schedule(run->arena, run->session.simulated.plan);
    const bool shape = is_new(&tally->shapes, hash_shape(run->session.simulated.cuda));
    const bool part = has_new_part(&tally->parts, schedule);
    return shape && part;
}

static void fail(Tally *tally, const char *words, const char *message)
{
    tally->failed++;
    printf("FAILED: %s\n  %s\n", words, message);
    fflush(stdout);
}

/* Adds a case's text, in which macros rename the kernels, and their names. */
static void add_text(Text *text, SimRun *run, int number, const char **names)
{
    const LaunchPlan *plan = run->session.simulated.launch;
    LaunchKernel *kernels = NEW_ARRAY(run->arena, LaunchKernel, plan->kernel_count + 1);
    const LaunchEntry **entries =
        NEW_ARRAY(run->arena, const LaunchEntry *, 2 * plan->kernel_count + 1);
    memcpy(kernels, plan->kernels, sizeof *kernels * (size_t)plan->kernel_count);
    run->plan.kernels = kernels;
    const int count = list_entries(&run->plan, entries);
    for (int i = 0; i < count; i++) {
        names[i] = arena_format(run->arena, "%s_%d", entries[i]->name, number);
        text_print(text, "#define %s %s\n", entries[i]->name, names[i]);
    }
    text_print(text, "%s\n", run->session.simulated.cuda);
    for (int i = 0; i < count; i++) {
        text_print(text, "#undef %s\n", entries[i]->name);
        ((LaunchEntry *)entries[i])->name = names[i]; /* of `kernels` */
    }
}

static void simulate(Waiting *cases, int count, Tally *tally)
{
    char message[MESSAGE];
    Arena *arena = arena_new();
    Text *text = text_new(arena);
    int kernels = 0, at = 0;
    for (int i = 0; i < count; i++) kernels += cases[i].run.kernel_count;
    const char **names = NEW_ARRAY(arena, const char *, kernels + 1);
    for (int i = 0; i < count; at += cases[i++].run.kernel_count)
        add_text(text, &cases[i].run, i, names + at);
    SimObject *object = object_load(text_string(text), names, kernels, message, MESSAGE);
    for (int i = 0; i < count; i++) {
        if (!object && count > 1)
            simulate(&cases[i], 1, tally); /* one of them does not compile: which? */
        else if (!object || !check_run(&cases[i].run, object, cases[i].run.options.seed, SEEDS,
                                       message, MESSAGE))
            fail(tally, cases[i].words, message);
    }
    object_free(object);
    arena_free(arena);
}

static void simulate_waiting(Tally *tally)
{
    if (waiting_count > 0) simulate(waiting, waiting_count, tally);
    for (int i = 0; i < waiting_count; i++) close_run(&waiting[i].run);
    waiting_count = 0;
}

static void add_case(const char *words, bool sample, Tally *tally)
{
    Waiting *w = &waiting[waiting_count];
    const bool open = open_run(&w->run, words);
    if (w->run.refused) {
        tally->refused++;
        printf("refused: %s\n", words);
    } else if (!open) {
        fail(tally, words, "it does not compile");
    } else if (!is_new(&tally->texts, hash_text(w->run.session.simulated.cuda, words))) {
        tally->repeated++;
    } else if (!adds_something(tally, &w->run) && sample) {
        tally->left_out++;
        printf("left out: %s\n", words);
    } else {
        tally->count++;
        w->words = arena_copy(w->run.arena, words, strlen(words));
        if (++waiting_count == TOGETHER) simulate_waiting(tally);
        return;
    }
    close_run(&w->run);
}

/* The case as chosen, then by N of its candidates. */
static void add_candidates(char *words, char *option, Tally *tally)
{
    SimRun run;
    const int wanted = atoi(option + strlen(candidates));
    *option = 0;
    add_case(words, false, tally);
    if (open_run(&run, words)) {
        const Compilation *c = &run.session.simulated;
        int left_out;
        const Alternatives list =
            list_all_candidates(run.arena, c->analysis->first, c->plan, wanted, &left_out);
        for (int i = 0; i < list.count; i++)
            add_case(arena_format(run.arena, "%s --schedule %s", words, list.data[i].schedule),
                     false, tally);
    }
    close_run(&run);
}

int main(void)
{
    static Tally tally;
    char words[4096];
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* each case takes what the one before gave back */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    while (fgets(words, sizeof words, stdin)) {
        words[strcspn(words, "\n")] = 0;
        char *option = strstr(words, candidates), *sample = strstr(words, sampled);
        if (sample) *sample = 0;
        if (option)
            add_candidates(words, option, &tally);
        else
            add_case(words, sample, &tally);
    }
    simulate_waiting(&tally);
    printf("%d texts, %d failed; %d schedules refused, %d the same as another, %d left out\n",
           tally.count, tally.failed, tally.refused, tally.repeated, tally.left_out);
    return tally.failed > 0;
}
