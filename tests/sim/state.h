/* state.h: the simulator's own data, shared by memory.c, sync.c, report.c and machine.c.
 */
#ifndef FUSEC_SIM_STATE_H
#define FUSEC_SIM_STATE_H

#include "clock.h"
#include "fiber.h"
#include "machine.h"

enum { BARRIERS = 16, CELL_READERS = 2, MAX_REGIONS = 64, MAX_LOCATIONS = 4096 };

/* What is known of one granule of memory. `by` are threads counted over all launches,
 * from 1. */
typedef struct {
    uint32_t by, epoch, at;
} Touch;

enum { CELL_WRITABLE = 1, CELL_WRITTEN = 2, CELL_ATOMIC = 4, CELL_PENDING = 8 };

typedef struct {
    Touch write, read[CELL_READERS];
    uint32_t flags;
} Cell;

typedef struct {
    SimBuffer buffer;
    char *base;
    size_t bytes;
    bool holes;  /* only cells with CELL_WRITABLE may be written */
    Cell *cells; /* one an element */
    size_t cells_size;
} Region;

typedef enum { THREAD_READY, THREAD_WAITING, THREAD_DONE } ThreadState;

typedef enum { WAIT_SHUFFLE, WAIT_BALLOT, WAIT_WARP_BARRIER, WAIT_BARRIER } WaitKind;

typedef struct {
    WaitKind kind;
    uint32_t at;
    unsigned mask;
    SimShuffle shuffle;
    int by, width;  /* of a shuffle; of a barrier: its number and thread count */
    uint64_t value; /* in and out */
} Wait;

/* An asynchronous copy that has not been waited for. */
typedef struct {
    char *to;
    const char *from;
    size_t size;
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
    Clock released, acquired; /* by a fence; to be had by the next fence */
    Copy *copies;
    int copy_count, copy_capacity, groups;
} Thread;

typedef struct {
    struct Cta *cta;
    int index;
    unsigned ready; /* lanes */
    uint32_t priority;
    int place; /* in Machine.ready, -1: not there */
} Warp;

typedef struct {
    int arrived, expected;
    Clock clock; /* of those that do not wait */
} Barrier;

typedef struct Cta {
    Machine *machine;
    int number, slot;
    int live; /* threads */
    char *smem;
    Cell *cells; /* one a byte of smem */
    Clock base;  /* what all threads know */
    Thread *threads;
    Warp *warps;
    Barrier barriers[BARRIERS];
} Cta;

/* Where atomics meet. */
typedef struct {
    uintptr_t address;
    Clock clock;
} Location;

struct Machine {
    SimObject *object;
    uint64_t seed, random;
    uint64_t skew; /* of the order: 0 uniform, else chance of a change of priorities */
    uint64_t patience; /* a switch every so many accesses, about */
    char *message;
    size_t message_size;
    bool failed;
    unsigned char fill;
    char doubt[512];

    Region regions[MAX_REGIONS];
    int region_count;

    const SimLaunch *launch;
    void (*call)(void **args);
    size_t smem_size, dynamic_at;
    uint32_t first_id, next_id;
    int cta_count, next_cta, resident, done;
    int *order; /* of the CTAs */
    Cta *ctas;  /* the resident ones */
    Warp **ready;
    int ready_count;
    Thread *current;
    Fiber context; /* of the scheduler */
    Location *locations;
    int location_count;
    char *stacks;
    size_t stacks_size;
};

static inline Thread *lane_of(const Thread *t, int lane)
{
    return &t->cta->threads[t->index / SIM_WARP * SIM_WARP + lane];
}

/* machine.c */
uint64_t random_below(Machine *m, uint64_t limit);
void switch_away(Machine *m);         /* the current thread stays ready */
void wait_for(Machine *m, Wait wait); /* until wake() */
void wake(Machine *m, Thread *t);

/* memory.c */
void touch_memory(void *machine, const void *address, size_t size, SimAccess kind,
                  int aligned, void *at);
void note_landing(Machine *m, const Copy *copy); /* a write to shared memory, now */
void *map_zeros(size_t size);

/* copies.c */
void begin_copy(void *machine, void *to, const void *from, size_t size, void *at);
void commit_copies(void *machine);
void wait_for_copies(void *machine, int left);

/* sync.c */
extern const SimApi sim_api;
void thread_exit(Machine *m, Thread *t); /* may find a barrier that waits for it */
void forget_locations(Machine *m);

/* report.c: a fault of the current thread; leaves it for good. */
uint32_t place_of(const Machine *m, const void *at);
_Noreturn void fault(Machine *m, uint32_t place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Not a fault yet: kept if it is the first. */
void doubt(Machine *m, uint32_t place, const char *name, size_t offset);
/* A fault that no thread runs at; returns false. */
bool complain_about(Machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void print_thread(const Machine *m, uint32_t id, char *text, size_t size);
bool report_deadlock(Machine *m);

#endif
