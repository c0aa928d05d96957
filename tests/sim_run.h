/* sim_run.h: a graph, random inputs and the simulator, for the programs that run many
 * texts of one graph in one process. */
#ifndef FUSEC_TESTS_SIM_RUN_H
#define FUSEC_TESTS_SIM_RUN_H

#include "cli/session.h"

struct SimObject;

typedef struct {
    Arena *arena;
    Options options;
    Session session;
    Batch batch;
    LaunchPlan plan; /* with the names that the object has for the kernels: at first the text's */
    void **tensors;
    int64_t (*strides)[MAX_RANK];
    const char **kernels; /* names, in the text's order */
    int kernel_count;
    bool refused; /* the schedule */
} SimRun;

/* `words` are the arguments of `fusec run --device sim`. False: the case is wrong, or
 * `refused` is set. Close it in any case. */
bool open_run(SimRun *run, const char *words);
/* Under the seeds from `seed` on: faults, other bits and results outside their bounds
 * give false with a message. */
bool check_run(SimRun *run, struct SimObject *object, uint64_t seed, int seeds, char *message,
               size_t size);
void close_run(SimRun *run);

#endif
