/* sim_cases.c: many cases on the simulator in one process.
 *
 *     sim_cases < CASES       a case a line: the arguments of `fusec run`
 *
 * `--candidates N` at the end of a line stands for N of the schedules that `fusec tune` would time,
 * spread over all of them.
 * A schedule that is refused is skipped with a line `refused: CASE`, and so is a text that
 * ran before (a forced schedule is often the chosen one). Each text runs under two seeds, whose
 * outputs must be the same bits and within the reference's bounds. */
#include "candidates.h"
#include "sim/object.h"
#include "sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MOST_TEXTS = 4096, MESSAGE = 4096 };

static const char candidates[] = " --candidates ";

typedef struct {
    uint64_t texts[MOST_TEXTS]; /* hashes of those that ran */
    int count, failed, refused, repeated;
} Tally;

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

static bool simulate_case(SimRun *run, char *message)
{
    SimObject *object =
        object_load(run->session.simulated.cuda, run->kernels, run->kernel_count, message, MESSAGE);
    const bool good = object && check_run(run, object, run->options.seed, SEEDS, message, MESSAGE);
    object_free(object);
    return good;
}

static void run_case(const char *words, Tally *tally)
{
    SimRun run;
    char message[MESSAGE] = "it does not compile";
    const bool open = open_run(&run, words);
    if (run.refused) {
        tally->refused++;
        printf("refused: %s\n", words);
    } else if (open && !is_new(tally, hash_text(run.session.simulated.cuda, words))) {
        tally->repeated++;
    } else if (!open || !simulate_case(&run, message)) {
        tally->failed++;
        printf("FAILED: %s\n  %s\n", words, message);
        fflush(stdout);
    }
    close_run(&run);
}

/* The case as chosen, then by N of its candidates. */
static void run_candidates(char *words, char *option, Tally *tally)
{
    SimRun run;
    const int wanted = atoi(option + strlen(candidates));
    *option = 0;
    run_case(words, tally);
    if (open_run(&run, words)) {
        const Candidates list =
            list_candidates(run.arena, run.session.simulated.plan, MOST_CANDIDATES);
        const int step = (list.list.count + wanted - 1) / (wanted > 0 ? wanted : 1);
        for (int i = 0; i<list.list.count; i += step> 0 ? step : 1) {
            const char *schedule = list.list.data[i].schedule;
            if (!schedule) continue;
            run_case(arena_format(run.arena, "%s --schedule %s", words, schedule), tally);
        }
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
            run_candidates(words, option, &tally);
        else
            run_case(words, &tally);
    }
    printf("%d texts, %d failed; %d schedules refused, %d the same as another\n", tally.count,
           tally.failed, tally.refused, tally.repeated);
    return tally.failed > 0;
}
