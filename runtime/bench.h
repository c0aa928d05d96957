/* bench.h: what `fusec bench` measures and the public interface does not: the floor of launching,
 * and a cold start. */
#ifndef FUSEC_BENCH_H
#define FUSEC_BENCH_H

#include "fusec.h"

/* Microseconds of host time that the driver's own launch call takes for `kernels` launches of an
 * empty kernel: what no launcher can be faster than. */
fusec_status bench_bare_launch(fusec_device *device, int kernels, double *microseconds,
                               fusec_error *error);
/* Milliseconds that a loaded NVRTC takes to compile the text, nothing cached. */
fusec_status bench_compile(fusec_device *device, const char *cuda, double *milliseconds,
                           fusec_error *error);
/* Makes lines that a kernel asked L2 to keep like all others: overwriting a buffer does not drive
 * them out. Waits for what is under way. */
fusec_status bench_reset_cache(fusec_device *device, fusec_error *error);

#endif
