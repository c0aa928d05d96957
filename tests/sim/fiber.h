/* fiber.h: contexts that take turns on one thread of the host; no system call, no allocation. */
#ifndef FUSEC_SIM_FIBER_H
#define FUSEC_SIM_FIBER_H

/* A context whose first switch calls entry(argument) on the stack that ends at `top`; `entry` must
 * not return. */
void *fiber_new(void *top, void (*entry)(void *), void *argument);
/* Leaves the running context in *from and goes on with `to`. */
void fiber_switch(void **from, void *to);

#endif
