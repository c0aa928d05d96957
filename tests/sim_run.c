/* sim_run.c: see sim_run.h. */
#include "sim_run.h"

#include "cli/simulate.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 32 };

static bool parse_words(SimRun *run, const char *words)
{
    static char program[] = "fusec", command[] = "run", device[] = "--device", sim[] = "sim";
    char *argv[MOST_WORDS + 1] = {program, command, device, sim};
    int argc = 4, status;
    char *text = arena_copy(run->arena, words, strlen(words)), *rest = NULL;
    for (char *word = strtok_r(text, " \n", &rest); word && argc < MOST_WORDS;
         word = strtok_r(NULL, " \n", &rest))
        argv[argc++] = word;
    run->options.arena = run->arena;
    return parse_options(&run->options, argc, argv, &status);
}

static void name_tensors(SimRun *run)
{
    const LaunchPlan *plan = run->session.simulated.launch;
    run->plan = *plan;
    const size_t count = (size_t)plan->tensor_count + 1;
    run->tensors = arena_alloc(run->arena, count * sizeof *run->tensors);
    run->strides = arena_alloc(run->arena, count * sizeof *run->strides);
    const size_t entries = 2 * (size_t)plan->kernel_count + 1;
    const LaunchEntry **all = arena_alloc(run->arena, entries * sizeof *all);
    run->kernels = arena_alloc(run->arena, entries * sizeof *run->kernels);
    run->kernel_count = list_entries(plan, all);
    for (int i = 0; i < run->kernel_count; i++) run->kernels[i] = all[i]->name;
    for (int i = 0; i < plan->tensor_count; i++) {
        const fusec_tensor *t =
            i < plan->input_count ? &run->batch.in[i] : &run->batch.out[i - plan->input_count];
        run->tensors[i] = t->data;
        memcpy(run->strides[i], t->strides, sizeof run->strides[i]);
    }
}

bool open_run(SimRun *run, const char *words)
{
    *run = (SimRun){.arena = arena_new()};
    Session *s = &run->session;
    if (!run->arena || !parse_words(run, words)) return false;
    int status = open_session(s, &run->options);
    if (status == EXIT_DONE) status = open_device(s, "sim");
    if (status == EXIT_DONE) status = settle_sizes(s, NULL);
    if (status == EXIT_DONE) status = open_plan(s, false);
    const char *said = s->simulated.diagnostics;
    run->refused = status == EXIT_USAGE && said && strstr(said, "schedule refused: ");
    if (status == EXIT_DONE) status = open_batch(s, &s->sizes, &run->batch);
    if (status != EXIT_DONE) return false;
    fill_random(s, &run->batch);
    status = settle_scalars(s, &run->batch, NULL, true);
    if (status == EXIT_DONE) status = upload_batch(s, &run->batch);
    if (status == EXIT_DONE) name_tensors(run);
    return status == EXIT_DONE;
}

static bool judge_run(SimRun *run, char *message, size_t size)
{
    Text *table = text_new(run->arena);
    bool passed = false;
    snprintf(message, size, "the outputs cannot be judged");
    if (download_batch(&run->session, &run->batch) != EXIT_DONE ||
        verify_batch(&run->session, &run->batch, table, &passed) != EXIT_DONE)
        return false;
    snprintf(message, size, "wrong results\n%s", passed ? "" : text_string(table));
    return passed;
}

bool check_run(SimRun *run, struct SimObject *object, uint64_t seed, int seeds, char *message,
               size_t size)
{
    return simulate_loaded(&run->plan, &run->batch.sizes, object, run->tensors,
                           (const int64_t(*)[MAX_RANK])run->strides, run->batch.values, seed, seeds,
                           message, size) &&
           judge_run(run, message, size);
}

void close_run(SimRun *run)
{
    if (!run->arena) return;
    close_batch(&run->session, &run->batch);
    close_session(&run->session);
    arena_free(run->arena);
}
