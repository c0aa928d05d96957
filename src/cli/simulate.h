/* simulate.h: a plan on the simulator: its generated text is compiled for the host and run thread
 * by thread, without a GPU, every access checked. */
#ifndef FUSEC_CLI_SIMULATE_H
#define FUSEC_CLI_SIMULATE_H

#include "schedule/launch.h"

#include <stddef.h>

/* `tensors` are those of the plan, inputs then outputs (NULL where unwanted). strides[i] holds the
 * strides in elements of tensor i, axis by axis in its own order. scalars NULL: the defaults. `sms`
 * limits how many CTAs are resident at once, 0: as on 4 SMs. False: `message` has the first fault,
 * or why nothing could run (a few lines; 4 KB suffice). The same seed gives the same order of
 * events. */
bool simulate(const LaunchPlan *plan, const Sizes *sizes, const char *cuda_text, void **tensors,
              const int64_t (*strides)[MAX_RANK], const double *scalars, int sms, uint64_t seed,
              char *message, size_t message_size);

/* Runs a text compiled before (tests/sim/object.h), perhaps together with others, under the `count`
 * seeds from `seed` on. Outputs must have the same bits every time. An odd seed has one SM, so that
 * fewer CTAs are resident at once. */
struct SimObject;
bool simulate_loaded(const LaunchPlan *plan, const Sizes *sizes, struct SimObject *object,
                     void **tensors, const int64_t (*strides)[MAX_RANK], const double *scalars,
                     uint64_t seed, int count, char *message, size_t message_size);

#endif
