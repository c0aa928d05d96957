/* state.h: the simulator's own data, shared by all its files. */
#ifndef FUSEC_SIM_STATE_H
#define FUSEC_SIM_STATE_H

#include "clock.h"
#include "fiber.h"
#include "machine.h"
#include "shadow.h"

enum {
    BARRIERS = 16,
    TX_BARRIERS = 32, /* transaction barriers of a CTA */
    MAX_REGIONS = 1024,
    MAX_LOCATIONS = 4096,
    LOOKS = 1 << 24 /* priorities below are of warps that look for what others write */
};

typedef struct {
    SimBuffer buffer;
    char *base;
    size_t bytes;
    bool holes;    /* only cells with CELL_WRITABLE may be written */
    Shadow shadow; /* a cell an element; not of inputs */
} Region;

typedef enum { THREAD_READY, THREAD_WAITING, THREAD_DONE } ThreadState;

typedef enum {
    WAIT_SHUFFLE,
    WAIT_BALLOT,
    WAIT_WARP_BARRIER,
    WAIT_BARRIER,
    WAIT_CLUSTER,
    WAIT_TX
} WaitKind;

typedef struct {
    WaitKind kind;
    uint32_t at;
    unsigned mask;
    SimShuffle shuffle;
    /* of a shuffle; of a barrier: its number and thread count; of a transaction barrier:
     * its number and the parity waited for */
    int by, width;
    uint64_t value; /* in and out */
} Wait;

/* An asynchronous copy that has not been waited for. */
typedef struct {
    char *to;
    const char *from;
    size_t size, read; /* bytes written, and of those read; the others become 0 */
    int group;
    uint32_t at;
} Copy;

struct Cta;

typedef struct {
    struct Cta *cta;
    Fiber context;
    SimThread *view; /* at the top of the stack */
    char *stack;
    int index;
    uint32_t id, epoch;
    ThreadState state;
    Wait wait;
    Clock clock;              /* beside the CTA's base */
    const Clock *known;       /* of the cluster barrier last waited for; or NULL */
    Clock released, acquired; /* by a fence; to be had by the next fence */
    Copy *copies;
    int copy_count, copy_capacity, groups;
    uint32_t arrivals, waits; /* at the cluster's barrier */
    uint32_t arrived_at;
    uint32_t fenced; /* writes up to this epoch come before later bulk copies */
    uint32_t made;   /* a cluster that it arrives at knows transaction barriers up to this epoch */
    bool waited;     /* until the kernel before is over */
    int registers;   /* that it asked for last; 0: it did not */
} Thread;

typedef struct {
    struct Cta *cta;
    int index;
    unsigned ready, waiting, exited; /* lanes */
    uint32_t priority;
    int place; /* in Machine.ready, -1: not there */
} Warp;

typedef struct {
    int arrived, expected;
    Clock clock; /* of those that do not wait */
} Barrier;

/* A transaction barrier (mbarrier) in shared memory. */
typedef struct {
    size_t offset;      /* in shared memory */
    int count, pending; /* arrivals a phase; those still missing */
    int64_t bytes;      /* announced less landed */
    uint32_t phase;     /* phases that have ended */
    uint32_t copied;    /* the newest phase that a copy belongs to, from 1 */
    uint32_t copied_at;
    Touch made;
    Clock gathering, done; /* of this phase; of those that have ended */
} TxBarrier;

/* A bulk copy on its way, or a value sent to another CTA: then `from` is NULL. */
typedef struct {
    struct Cta *cta;
    int barrier;
    uint32_t at;
    char *to, *before; /* before: what lay at `from` when it was started */
    const char *from;
    size_t size;
    Clock known; /* by the sender */
} BulkCopy;

/* CTAs that live at once and meet at a barrier of their own. The clocks of three phases
 * are enough: a phase is over for all before the next but one can end. */
typedef struct {
    struct Cta *ctas;
    int live; /* CTAs */
    int arrived;
    uint32_t phase; /* that have ended */
    Clock clocks[3];
} Cluster;

typedef struct Cta {
    Machine *machine;
    Cluster *cluster;
    int number, slot;
    int live; /* threads */
    char *smem;
    Shadow shadow; /* of smem */
    Clock base;    /* what all threads know */
    Thread *threads;
    Warp *warps;
    Barrier barriers[BARRIERS];
    TxBarrier tx[TX_BARRIERS];
    int tx_count;
    /* Where clusters are: the last access from each thread of the cluster. */
    Touch *visits;
    /* what the base was when the cluster's barrier last heard of it */
    uint32_t changes, told_changes, told_phase;
} Cta;

/* Where atomics meet. */
typedef struct {
    uintptr_t address;
    Clock clock;
} Location;

struct Machine {
    SimObject *object;
    uint64_t seed, random;
    uint64_t skew;      /* of the order: 0 uniform, else chance of a change of priorities */
    uint64_t patience;  /* a switch every so many accesses, about */
    uint32_t last_turn; /* the lowest priority */
    uint64_t laziness;  /* a bulk copy lands every so many switches, about */
    uint64_t steps;     /* accesses and switches */
    uint64_t quiet;     /* those since anybody last wrote anything */
    uint32_t last_at;   /* the last access */
    int sms;
    void (*step)(void *data, double fraction); /* NULL: nobody asks */
    void *step_data;
    char *message;
    size_t message_size;
    bool failed, exhausted; /* exhausted: it failed for lack of memory */
    unsigned char fill;
    char doubt[512];

    Region regions[MAX_REGIONS];
    int region_count;

    const SimLaunch *launch;
    void (*call)(void **args);
    size_t smem_size, dynamic_at;
    uint32_t first_id, next_id;
    int actors;                                      /* of a CTA: its threads and copy engines */
    int cluster_count, next_cluster, resident, done; /* clusters */
    int *order;
    Cluster *clusters; /* the resident ones */
    Cta *ctas;         /* theirs */
    Warp **ready;
    int ready_count;
    Warp *foremost;                 /* of those that are ready; NULL: not known */
    Thread *current, *next, *after; /* next and after: if they are ready still */
    Fiber context;                  /* of the scheduler */
    Location *locations;
    int location_count;
    const SharedVariable **variables; /* those that the kernel can mean, by offset */
    int variable_count;
    Thread **group; /* room for a CTA's threads */
    BulkCopy *bulk;
    int bulk_count, bulk_capacity;
    char *stacks;
    size_t stacks_size;
};

static inline Warp *warp_of(const Thread *t)
{
    return &t->cta->warps[t->index / SIM_WARP];
}

static inline Thread *lane_of(const Thread *t, int lane)
{
    return &t->cta->threads[t->index / SIM_WARP * SIM_WARP + lane];
}

static inline Cta *peer_of(const Cta *cta, int rank)
{
    return &cta->cluster->ctas[rank];
}

/* machine.c */
uint64_t random_below(Machine *m, uint64_t limit); /* of at most 32 bits */
void switch_away(Machine *m);                      /* the current thread stays ready */
void wait_for(Machine *m, Wait wait);              /* until wake() */
void wake(Machine *m, Thread *t);

/* memory.c */
void touch_memory(void *machine, const void *address, size_t size, SimAccess kind, int aligned,
                  void *at);
/* A bulk copy brings whole blocks of 16 bytes, of the first and last of which a buffer may have a
 * part; what else they hold must not matter, so it reads as 0xff. Is such a read allowed; what does
 * it give; has that changed since. */
void touch_blocks(Machine *m, const void *from, size_t size, void *at);
void copy_blocks(const Machine *m, void *to, const void *from, size_t size);
bool same_blocks(const Machine *m, const void *was, const void *from, size_t size);
void note_landing(Machine *m, const Copy *copy); /* a write to shared memory, now */
/* A bulk copy reads global memory at any time till its barrier's phase ends. */
void note_source(Machine *m, const char *from, size_t size, Touch reader);
void *map_zeros(size_t size);
bool happened_before(const Machine *m, const Thread *t, const Touch *touch);
/* "byte 8 of shared full": a place in shared memory. */
void print_shared(const Machine *m, size_t place, char *text, size_t size);
/* The shared variables that the launch's kernel can mean: its own and those of device
 * functions. */
bool list_variables(Machine *m);
/* Its bytes; of the dynamic shared memory as many as the launch asks for. */
size_t room_of(const Machine *m, const SharedVariable *v);
/* Bytes from a place in shared memory to its variable's end. */
size_t shared_room(const Machine *m, size_t place);

/* copies.c */
void begin_copy(void *machine, void *to, const void *from, size_t size, void *at);
void begin_block(void *machine, void *to, const void *from, int bytes, void *at);
void commit_copies(void *machine);
void wait_for_copies(void *machine, int left);

/* sync.c */
extern const SimApi sim_api;
void thread_exit(Machine *m, Thread *t); /* may find a barrier that waits for it */
void forget_locations(Machine *m);
/* Adds what a thread knows, its own past too, and begins a new epoch. */
void release(const Machine *m, Thread *t, Clock *into);

/* cluster.c */
void *find_peer(void *machine, void *address, int rank, void *at);
void cluster_arrive(void *machine, int relaxed, void *at);
void cluster_wait(void *machine, void *at);
void cluster_exit(Machine *m, const Thread *t);
/* A thread has exited: the others no longer wait for it. */
void cluster_shrink(Machine *m, Cluster *c);
/* An access to shared memory of another CTA of the cluster. */
void visit_peer(Machine *m, Cta *peer, uint32_t at);
/* Has everybody else's use of the CTA's shared memory ended before the CTA did? */
bool check_farewell(Machine *m, Cta *cta);

/* transactions.c */
void tx_init(void *machine, void *barrier, int count, void *at);
void tx_arrive(void *machine, void *barrier, int64_t bytes, void *at);
void tx_wait(void *machine, void *barrier, int parity, void *at);
void bulk_copy(void *machine, void *to, const void *from, int64_t size, void *barrier, void *at);
void send_value(void *machine, void *to, const void *value, size_t size, void *barrier, int rank,
                void *at);
void async_fence(void *machine);
void land_some(Machine *m); /* now and then a copy */
bool land_one(Machine *m);  /* false: there is none */
void forget_copies(Machine *m);
void forget_transactions(Cta *cta);
/* Has everything landed when the CTA ends, and does it know? */
bool check_landings(Machine *m, const Cta *cta);

/* report.c: a fault of the current thread; leaves it for good. */
uint32_t place_of(const Machine *m, const void *at);
_Noreturn void fault(Machine *m, uint32_t place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void fault_out_of_memory(Machine *m);
/* Not a fault yet: kept if it is the first. */
void doubt(Machine *m, uint32_t place, const char *name, size_t offset);
/* A fault that no thread runs at; returns false. */
bool complain_about(Machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void print_thread(const Machine *m, uint32_t id, char *text, size_t size);
bool report_deadlock(Machine *m);

/* Which share of the outputs' elements is written, by a sample (buffers.c). */
double written_share(const Machine *m);

#endif
