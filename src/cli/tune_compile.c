/* tune_compile.c: compiles the candidates in parallel, because NVRTC takes most of a tuning's
 * time. */
#include "cli/device.h"
#include "cli/tune.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WORKERS = 32 };

typedef struct {
    fusec_status status;
    fusec_error error;
} Outcome;

typedef struct {
    const Session *session;
    fusec_size sizes[MAX_AXES];
    Trial *trials;
    Outcome *outcomes;
    int count, next, done;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* `done` */
} Pool;

static void compile_trial(Pool *pool, int index)
{
    const Session *s = pool->session;
    Trial *t = &pool->trials[index];
    Outcome *o = &pool->outcomes[index];
    fusec_plan_options options = {.struct_size = sizeof options,
                                  .outputs = s->options->outputs,
                                  .schedule = index ? t->schedule : NULL,
                                  .no_tuning = 1};
    o->status = fusec_plan_create(s->device, s->parsed, s->graph->name, pool->sizes,
                                  (size_t)s->graph->axis_count, &options, &t->plan, &o->error);
}

static void *work(void *data)
{
    Pool *pool = data;
    pthread_mutex_lock(&pool->lock);
    while (pool->next < pool->count) {
        int index = pool->next++;
        pthread_mutex_unlock(&pool->lock);
        compile_trial(pool, index);
        pthread_mutex_lock(&pool->lock);
        pool->done++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Shows the progress of the workers. */
static void watch(Pool *pool)
{
    Progress progress;
    progress_begin(&progress, "compiling");
    pthread_mutex_lock(&pool->lock);
    while (pool->done < pool->count) {
        progress_step(&progress, (double)pool->done / pool->count);
        pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    progress_end(&progress);
}

static void compile_all(Pool *pool)
{
    pthread_t workers[MOST_WORKERS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = cores < 1 ? 1 : cores > MOST_WORKERS ? MOST_WORKERS : (int)cores, started = 0;
    if (wanted > pool->count) wanted = pool->count;
    while (started < wanted && pthread_create(&workers[started], NULL, work, pool) == 0) started++;
    if (!started) work(pool);
    watch(pool);
    for (int i = 0; i < started; i++) pthread_join(workers[i], NULL);
}

/* The default is what all others are compared with, even if it spills. */
static void settle_default(Trial *t)
{
    t->rejected = NULL;
}

int compile_trials(Session *s, Trial *trials, int count)
{
    Pool pool = {.session = s,
                 .trials = trials,
                 .count = count,
                 .outcomes = NEW_ARRAY(s->arena, Outcome, count + 1)};
    for (int i = 0; i < s->graph->axis_count; i++)
        pool.sizes[i] = (fusec_size){s->graph->axes[i].name, s->sizes.of[i]};
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.changed, NULL);
    compile_all(&pool);
    pthread_cond_destroy(&pool.changed);
    pthread_mutex_destroy(&pool.lock);
    /* Running out of memory says nothing about a schedule. */
    for (int i = 0; i < count; i++)
        if (pool.outcomes[i].status == FUSEC_OUT_OF_MEMORY)
            return finish_call(pool.outcomes[i].status, &pool.outcomes[i].error);
        else if (pool.outcomes[i].status == FUSEC_OK)
            read_usage(s->arena, &trials[i]);
        else
            trials[i].rejected = arena_format(s->arena, "%s", pool.outcomes[i].error.message);
    if (pool.outcomes[0].status == FUSEC_OK) settle_default(&trials[0]);
    return finish_call(pool.outcomes[0].status, &pool.outcomes[0].error);
}
