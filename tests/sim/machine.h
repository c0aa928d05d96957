/* machine.h: runs the kernels of a loaded object one after the other, each thread a
 * fiber, in an order that a seed decides, and stops at the first fault: an access out of
 * bounds, a race, a deadlock. */
#ifndef FUSEC_SIM_MACHINE_H
#define FUSEC_SIM_MACHINE_H

#include "object.h"

typedef struct Machine Machine;

typedef enum { BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_WORKSPACE } BufferKind;

/* Global memory that the kernels may touch. Inputs are only read. Outputs and workspace
 * begin as NaN (here: bytes 0xff) and must be written before they are read; every element
 * of an output must be written in the end. */
typedef struct {
    const char *name;
    BufferKind kind;
    void *data;
    int element; /* bytes; all accesses are of whole elements */
    int rank;
    const int64_t *sizes, *strides; /* strides in elements */
} SimBuffer;

typedef struct {
    const char *kernel;
    int grid[3], threads, cluster;
    bool grouped;       /* `cluster` CTAs live at once, but are no cluster */
    bool overlaps;      /* may start while the kernel before it runs */
    int64_t smem_bytes; /* dynamic */
    void **args;        /* as for cuLaunchKernel */
    int arg_count;
} SimLaunch;

/* The first fault is told in `message`. */
Machine *machine_new(SimObject *object, uint64_t seed, char *message, size_t message_size);
void machine_free(Machine *machine); /* NULL allowed */
bool machine_add_buffer(Machine *machine, const SimBuffer *buffer);
bool machine_launch(Machine *machine, const SimLaunch *launch);
/* Multiprocessors, 4 at first: how many CTAs live at once. */
void machine_set_sms(Machine *machine, int sms);
/* Calls step(data, fraction) now and then: which fraction of the outputs' elements is written. */
void machine_on_step(Machine *machine, void (*step)(void *data, double fraction), void *data);
/* What shared memory holds before it is written, 0xff at first: NaN. */
void machine_fill_shared(Machine *machine, unsigned char byte);
/* The first read of shared memory that nobody had written; "" if there was none. Such a
 * value may be read if it is then thrown away: so it is if the outputs come out the same
 * with another fill. */
const char *machine_doubt(const Machine *machine);
/* After the last launch: has every element of the outputs been written? */
bool machine_finish(Machine *machine);

#endif
