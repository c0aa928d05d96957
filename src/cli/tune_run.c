/* tune_run.c: runs the candidates on the GPU: verifies them first, then times them. */
#include "cli/device.h"
#include "cli/timer.h"
#include "cli/tune.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_ROUNDS = 12, LONG_ROUNDS = 80, FIRST_ROUNDS = 3, FINALISTS = 5 };

/* One workspace for all plans of a batch. */
static int open_workspace(const Session *s, const Trial *trials, int count, const Sizes *sizes,
                          void **workspace, size_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < count; i++) {
        size_t needed = trials[i].rejected ? 0 : workspace_bytes(s, trials[i].plan, sizes);
        if (needed > *bytes) *bytes = needed;
    }
    return alloc_poisoned(s, *bytes, workspace);
}

/* ---- right or wrong ---- */

/* Fewer rows than are timed, but enough that the CTAs of a persistent grid walk several each. */
static Sizes verified_sizes(const Session *s)
{
    enum { MOST_ROWS = 1021, LEAST_ROWS = 37, ELEMENTS = 4 << 20 };
    Sizes sizes = s->sizes;
    int64_t columns = 1, rows;
    fusec_axis_info axis = {.struct_size = sizeof axis};
    for (size_t i = 0; fusec_plan_axis(s->plan, i, &axis) == FUSEC_OK; i++)
        if (axis.is_fixed && axis.size > 0) columns *= axis.size < ELEMENTS ? axis.size : ELEMENTS;
    rows = ELEMENTS / columns;
    rows = rows > MOST_ROWS ? MOST_ROWS : rows < LEAST_ROWS ? LEAST_ROWS : rows;
    for (int i = s->graph->axis_count - 1; i >= 0; i--) {
        if (fusec_plan_axis(s->plan, (size_t)i, &axis) != FUSEC_OK || axis.is_fixed) continue;
        if (sizes.of[i] > rows) sizes.of[i] = rows;
        rows = sizes.of[i] > 0 ? rows / sizes.of[i] : rows;
        if (rows < 1) rows = 1;
    }
    return sizes;
}

typedef struct {
    Session *session;
    Batch *batch;
    void *workspace;
    size_t bytes;
    void **expected; /* the default's outputs */
    Truth truth;
} Verification;

/* Runs a trial on poisoned outputs and copies them back. A refused launch is the trial's own fault;
 * a later error is the machine's. */
static int run_trial(Verification *v, Trial *t)
{
    const Session *s = v->session;
    Batch *b = v->batch;
    fusec_error error;
    fusec_status status = FUSEC_OK;
    for (int i = 0; i < s->graph->outputs.count && status == FUSEC_OK; i++)
        if (s->wanted[i] && b->outputs[i].bytes)
            status = fusec_fill_async(s->device, b->outputs[i].memory, POISON, b->outputs[i].bytes,
                                      NULL, &error);
    if (status == FUSEC_OK && v->bytes)
        status = fusec_fill_async(s->device, v->workspace, POISON, v->bytes, NULL, &error);
    if (status != FUSEC_OK) return finish_call(status, &error);
    status = fusec_plan_launch(t->plan, b->in, b->out, b->values, v->workspace, NULL, &error);
    if (status == FUSEC_OK) return download_batch(s, b);
    if (status == FUSEC_OUT_OF_MEMORY) return finish_call(status, &error);
    t->rejected = arena_format(s->arena, "%s", error.message);
    return EXIT_DONE;
}

static bool keep_expected(Verification *v)
{
    const Session *s = v->session;
    for (int i = 0; i < s->graph->outputs.count; i++) {
        const Buffer *y = &v->batch->outputs[i];
        if (!s->wanted[i]) continue;
        v->expected[i] = malloc(y->bytes + 1);
        if (!v->expected[i]) return false;
        memcpy(v->expected[i], y->data, y->bytes);
    }
    return true;
}

/* The default's outputs are judged already; of other trials only elements that differ are
 * judged. */
static bool is_right_output(const Verification *v, int i)
{
    const Buffer *y = &v->batch->outputs[i];
    return !judge_changed(v->session->graph->outputs.data[i].dtype, y->data, v->expected[i],
                          v->truth.exact[i], v->truth.bound[i], y->count);
}

static bool is_right(const Verification *v)
{
    for (int i = 0; i < v->session->graph->outputs.count; i++)
        if (v->session->wanted[i] && !is_right_output(v, i)) return false;
    return true;
}

static int verify_default(Verification *v, Trial *t)
{
    Text *table = text_new(v->session->arena);
    int status = run_trial(v, t);
    if (status == EXIT_DONE && t->rejected) {
        complain(NULL, "%s", t->rejected);
        status = EXIT_MACHINE;
    }
    if (status == EXIT_DONE) status = open_truth(v->session, v->batch, &v->truth);
    if (status != EXIT_DONE) return status;
    if (!judge_batch(v->session, v->batch, &v->truth, table)) {
        remark("the default's outputs are wrong, so there is nothing to compare with:\n%s",
               text_string(table));
        return EXIT_VERIFY;
    }
    if (keep_expected(v)) return EXIT_DONE;
    complain(NULL, "out of memory");
    return EXIT_MACHINE;
}

static int verify_others(Verification *v, Trial *trials, int count)
{
    Progress progress;
    progress_begin(&progress, "verifying");
    int status = EXIT_DONE;
    for (int i = 1; i < count && status == EXIT_DONE; i++) {
        progress_step(&progress, (double)i / count);
        if (trials[i].rejected) continue;
        status = run_trial(v, &trials[i]);
        if (status == EXIT_DONE && !trials[i].rejected && !is_right(v))
            trials[i].rejected = "its outputs are wrong";
    }
    progress_end(&progress);
    return status;
}

int verify_trials(Session *s, Trial *trials, int count, Batch *small)
{
    Sizes sizes = verified_sizes(s);
    Verification v = {.session = s,
                      .batch = small,
                      .expected = NEW_ARRAY(s->arena, void *, s->graph->outputs.count + 1)};
    int status = open_batch(s, &sizes, small);
    if (status == EXIT_DONE) {
        fill_random(s, small);
        status = settle_scalars(s, small, NULL, true);
    }
    if (status == EXIT_DONE) status = upload_batch(s, small);
    if (status == EXIT_DONE)
        status = open_workspace(s, trials, count, &sizes, &v.workspace, &v.bytes);
    if (status == EXIT_DONE) status = verify_default(&v, &trials[0]);
    if (status == EXIT_DONE) status = verify_others(&v, trials, count);
    close_truth(s, &v.truth);
    for (int i = 0; i < s->graph->outputs.count; i++) free(v.expected[i]);
    fusec_free(s->device, v.workspace);
    return status;
}

/* ---- times ---- */

typedef struct {
    const Batch *batch;
    void *workspace;
    const Trial *trial;
} TrialWork;

static fusec_status launch_trial(void *data, fusec_error *error)
{
    const TrialWork *w = data;
    const Batch *b = w->batch;
    return fusec_plan_launch(w->trial->plan, b->in, b->out, b->values, w->workspace, NULL, error);
}

/* Runs each trial once, in alternating order, so that no trial always follows the same one. */
static int time_round(Timer *timer, TrialWork *work, Trial *trials, int count, int round)
{
    int status = EXIT_DONE;
    for (int i = 0; i < count && status == EXIT_DONE; i++) {
        Trial *t = &trials[round & 1 ? count - 1 - i : i];
        double us;
        if (!t->times) continue;
        work->trial = t;
        status = time_once(timer, launch_trial, work, &us);
        if (round >= 0) t->times[round] = us;
    }
    return status;
}

static int time_pass(const Session *s, Timer *timer, TrialWork *work, Trial *trials, int count,
                     bool finals)
{
    const int rounds = finals ? LONG_ROUNDS : SHORT_ROUNDS;
    Progress progress;
    progress_begin(&progress, finals ? "timing the best" : "timing all");
    int status = EXIT_DONE;
    for (int i = 0; i < count; i++) {
        bool runs = !trials[i].rejected && (!finals || trials[i].finalist);
        trials[i].times = runs ? NEW_ARRAY(s->arena, double, rounds) : NULL;
        if (runs) trials[i].rounds = rounds;
    }
    for (int round = -FIRST_ROUNDS; round < rounds && status == EXIT_DONE; round++) {
        progress_step(&progress, (double)(round + FIRST_ROUNDS) / (rounds + FIRST_ROUNDS));
        status = time_round(timer, work, trials, count, round);
    }
    progress_end(&progress);
    for (int i = 0; i < count && status == EXIT_DONE; i++)
        if (trials[i].times) set_median(s->arena, &trials[i]);
    return status;
}

int time_trials(Session *s, Trial *trials, int count, const Batch *small, int l2_bytes)
{
    Timer timer = {0};
    Batch full = {0};
    size_t bytes;
    TrialWork work = {.batch = &full};
    int status = open_repeated(s, small, &s->sizes, &full);
    if (status == EXIT_DONE)
        status = open_workspace(s, trials, count, &s->sizes, &work.workspace, &bytes);
    if (status == EXIT_DONE) status = open_timer(&timer, s->device, l2_bytes);
    if (status == EXIT_DONE) status = time_pass(s, &timer, &work, trials, count, false);
    if (status == EXIT_DONE) {
        choose_finalists(s->arena, trials, count, FINALISTS);
        status = time_pass(s, &timer, &work, trials, count, true);
    }
    close_timer(&timer);
    fusec_free(s->device, work.workspace);
    close_batch(s, &full);
    return status;
}
