/* fiber.h: contexts that take turns on one thread of the host; no system call, no
 * allocation. */
#ifndef FUSEC_SIM_FIBER_H
#define FUSEC_SIM_FIBER_H

#include <stddef.h>

typedef struct {
    void *sp;
    const void *stack; /* its lowest byte */
    size_t size;
} Fiber;

/* A context whose first switch calls entry(argument) on the `size` bytes at `stack`, the
 * last `above` of which are left alone. `entry` must call fiber_entered first and not
 * return. */
Fiber fiber_new(void *stack, size_t size, size_t above, void (*entry)(void *), void *argument);
void fiber_entered(Fiber *from);
/* Leaves the running context in *from and goes on with *to. */
void fiber_switch(Fiber *from, const Fiber *to);
/* Before stacks are unmapped on which contexts were abandoned. */
void fiber_forget(void *stacks, size_t size);

#endif
