/* sim_cases.c: many cases on the simulator in one process.
 *
 *     sim_cases < CASES       a case a line: the arguments of `fusec run`
 *
 * A schedule that is refused is skipped, and so is a text that ran before (a forced
 * schedule is often the chosen one). Each text runs under two seeds, whose outputs must be
 * the same bits and within the reference's bounds. */
#include "sim/object.h"
#include "sim_run.h"

#include <stdio.h>
#include <string.h>

enum { SEEDS = 2, MOST_TEXTS = 4096, MESSAGE = 4096 };

typedef struct {
    uint64_t texts[MOST_TEXTS]; /* hashes of those that ran */
    int count, failed, refused, repeated;
} Tally;

static uint64_t hash_text(const char *text, const char *words)
{
    uint64_t hash = 14695981039346656037u;
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
    SimObject *object = object_load(run->session.simulated.cuda, run->kernels,
                                    run->kernel_count, message, MESSAGE);
    const bool good =
        object && check_run(run, object, run->options.seed, SEEDS, message, MESSAGE);
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
    } else if (open && !is_new(tally, hash_text(run.session.simulated.cuda, words))) {
        tally->repeated++;
    } else if (!open || !simulate_case(&run, message)) {
        tally->failed++;
        printf("FAILED: %s\n  %s\n", words, message);
        fflush(stdout);
    }
    close_run(&run);
}

int main(void)
{
    static Tally tally;
    char words[4096];
    while (fgets(words, sizeof words, stdin)) {
        words[strcspn(words, "\n")] = 0;
        run_case(words, &tally);
    }
    printf("%d texts, %d failed; %d schedules refused, %d the same as another\n",
           tally.count, tally.failed, tally.refused, tally.repeated);
    return tally.failed > 0;
}
