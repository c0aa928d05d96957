/* bench.h: measurements of `fusec bench` that the public interface lacks: the cost of a bare
 * launch, and a cold start. */
#ifndef FUSEC_BENCH_H
#define FUSEC_BENCH_H

#include "fusec.h"

/* Microseconds of host time that the driver's own launch call takes for `kernels` launches of an
 * empty kernel: the floor for any launcher. */
fusec_status bench_bare_launch(fusec_device *device, int kernels, double *microseconds,
                               fusec_error *error);
/* Milliseconds that a loaded NVRTC takes to compile the text without any cache. */
fusec_status bench_compile(fusec_device *device, const char *cuda, double *milliseconds,
                           fusec_error *error);
/* Gives lines that a kernel asked L2 to keep the usual policy, since overwriting a buffer does not
 * evict them. Waits for work in flight. */
fusec_status bench_reset_cache(fusec_device *device, fusec_error *error);

#endif
