/* abi.h: what the simulator and a kernel compiled against sim.h know of each other: the
 * kernel's object exports one `sim_link`, through which it finds the running thread and
 * calls the machine. C and C++. */
#ifndef FUSEC_SIM_ABI_H
#define FUSEC_SIM_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_WARP = 32, SIM_DYNAMIC_SMEM = 227 * 1024 };

typedef struct {
    unsigned x, y, z;
} SimDim;

/* What a thread may read about itself; it lies on the thread's own stack. */
typedef struct {
    SimDim thread, block, block_size, grid_size;
    unsigned dynamic_smem; /* bytes */
    unsigned cluster_rank, cluster_size;
} SimThread;

typedef enum { SIM_READ, SIM_WRITE, SIM_ATOMIC } SimAccess;
typedef enum { SIM_SHUFFLE_XOR, SIM_SHUFFLE_INDEX, SIM_SHUFFLE_DOWN, SIM_SHUFFLE_UP } SimShuffle;

/* The machine's side. `at` is the caller's return address: where in the kernel this
 * happens. Calls that wait come back when the scheduler picks the thread again; a call
 * that finds a fault never comes back. */
typedef struct {
    void (*access)(void *machine, const void *address, size_t size, SimAccess kind, int aligned,
                   void *at);
    uint64_t (*shuffle)(void *machine, SimShuffle kind, unsigned mask, uint64_t value, int by,
                        int width, void *at);
    unsigned (*ballot)(void *machine, unsigned mask, int predicate, void *at);
    void (*warp_barrier)(void *machine, unsigned mask, void *at);
    void (*block_barrier)(void *machine, void *at);
    /* bar.sync (wait = 1) and bar.arrive (0) of barrier `id` for `count` threads of the
     * CTA */
    void (*named_barrier)(void *machine, int id, int count, int wait, void *at);
    void (*fence)(void *machine);
    /* just before it takes place */
    void (*atomic)(void *machine, void *address, size_t size, void *at);
    /* a relaxed store (writes = 1) or load of the whole GPU: it orders nothing else */
    void (*relaxed)(void *machine, void *address, size_t size, int writes, void *at);
    void (*yield)(void *machine);
    /* cp.async, its commit_group, and wait_group: until all but the newest `left` have
     * landed */
    void (*begin_copy)(void *machine, void *to, const void *from, size_t size, void *at);
    void (*begin_block)(void *machine, void *to, const void *from, int bytes, void *at);
    void (*commit_copies)(void *machine);
    void (*wait_for_copies)(void *machine, int left);
    /* clusters: the twin of an address in another CTA's shared memory; both halves of the
     * barrier */
    void *(*peer)(void *machine, void *address, int rank, void *at);
    void (*cluster_arrive)(void *machine, int relaxed, void *at);
    void (*cluster_wait)(void *machine, void *at);
    /* mbarrier.init; arrive, which may announce bytes; try_wait.parity in a loop */
    void (*tx_init)(void *machine, void *barrier, int count, void *at);
    void (*tx_arrive)(void *machine, void *barrier, int64_t bytes, void *at);
    void (*tx_wait)(void *machine, void *barrier, int parity, void *at);
    /* cp.async.bulk from global to shared memory, whose bytes the barrier counts */
    void (*bulk_copy)(void *machine, void *to, const void *from, int64_t size, void *barrier,
                      void *at);
    /* st.async: `to` and `barrier` are named by their twins in this CTA */
    void (*send)(void *machine, void *to, const void *value, size_t size, void *barrier, int rank,
                 void *at);
    void (*async_fence)(void *machine);                    /* fence.proxy.async */
    void (*wait_for_previous)(void *machine);              /* griddepcontrol.wait */
    void (*registers)(void *machine, int count, void *at); /* setmaxnreg */
    void (*trap)(void *machine, const char *what, void *at);
} SimApi;

typedef struct {
    const SimApi *api;
    void *machine;
    SimThread *self;             /* of the running thread */
    char *shared;                /* the running CTA's shared variables */
    uintptr_t stack, stack_size; /* of the running thread: its local memory */
} SimLink;

#endif
