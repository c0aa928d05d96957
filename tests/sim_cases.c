/* sim_cases.c: many cases on the simulator in one process.
 *
 *     sim_cases < CASES       a case a line: the arguments of `fusec run`
 *
 * `--candidates N` at the end of a line stands for N of the schedules that `fusec tune` would time,
 * spread over all of them.
 * A schedule that is refused is skipped with a line `refused: CASE`, and so is a text that
 * ran before (a forced schedule is often the chosen one). Each text runs under two seeds, whose
 * outputs must be the same bits and within the reference's bounds. Several texts are compiled for
 * the host at once, each with kernels of another name. */
#include "schedule/plan.h"
#include "sim/object.h"
#include "sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MOST_TEXTS = 4096, MESSAGE = 4096, TOGETHER = 8 };

static const char candidates[] = " --candidates ";

typedef struct {
    uint64_t texts[MOST_TEXTS]; /* hashes of those that ran */
    int count, failed, refused, repeated;
} Tally;

/* A case whose text waits to be compiled with others. */
typedef struct {
    SimRun run;
    const char *words;
} Waiting;

static Waiting waiting[TOGETHER];
static int waiting_count;

/* Of a text without its head, which names the schedule that was asked for. */
static uint64_t hash_text(const char *text, const char *words)
{
    uint64_t hash = 14695981039346656037u;
    const char *body = strstr(text, "\n\n");
    if (body) text = body;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    for (; *words && strncmp(words, " --schedule", 11) != 0; words++)
        hash = (hash ^ (unsigned char)*words) * 1099511628211u;
    return hash;
}

static bool is_new(Tally *tally, uint64_t hash)
{
    for (int i = 0; i < tally->count; i++)
        if (tally->texts[i] == hash) return false;
    if (tally->count < MOST_TEXTS) tally->texts[tally->count++] = hash;
    return true;
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

static void add_case(const char *words, Tally *tally)
{
    Waiting *w = &waiting[waiting_count];
    const bool open = open_run(&w->run, words);
    if (open && is_new(tally, hash_text(w->run.session.simulated.cuda, words))) {
        w->words = arena_copy(w->run.arena, words, strlen(words));
        if (++waiting_count == TOGETHER) simulate_waiting(tally);
        return;
    }
    if (w->run.refused) {
        tally->refused++;
        printf("refused: %s\n", words);
    } else if (open) {
        tally->repeated++;
    } else {
        fail(tally, words, "it does not compile");
    }
    close_run(&w->run);
}

/* The case as chosen, then by N of its candidates. */
static void add_candidates(char *words, char *option, Tally *tally)
{
    SimRun run;
    const int wanted = atoi(option + strlen(candidates));
    *option = 0;
    add_case(words, tally);
    if (open_run(&run, words)) {
        const Alternatives list = list_candidates(run.arena, run.session.simulated.plan, wanted);
        for (int i = 0; i < list.count; i++)
            add_case(arena_format(run.arena, "%s --schedule %s", words, list.data[i].schedule),
                     tally);
    }
    close_run(&run);
}

int main(void)
{
    static Tally tally;
    char words[4096];
    while (fgets(words, sizeof words, stdin)) {
        words[strcspn(words, "\n")] = 0;
        char *option = strstr(words, candidates);
        if (option)
            add_candidates(words, option, &tally);
        else
            add_case(words, &tally);
    }
    simulate_waiting(&tally);
    printf("%d texts, %d failed; %d schedules refused, %d the same as another\n", tally.count,
           tally.failed, tally.refused, tally.repeated);
    return tally.failed > 0;
}
