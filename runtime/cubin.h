/* cubin.h: what a kernel uses, according to its cubin (an ELF file) and the assembler's log. */
#ifndef FUSEC_CUBIN_H
#define FUSEC_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    int registers;   /* a thread; -1: not known */
    int stack_bytes; /* local memory frame a thread */
    int smem_bytes;  /* static, without the system's reserve */
    int spill_bytes; /* stores plus loads, from the log */
} Usage;

/* A code is one cubin or several, one behind another; any bytes are safe. The bytes of the first,
 * and how many there are; of what is no cubin all of them, and 1. */
size_t cubin_bytes(const void *code, size_t bytes);
int cubin_count(const void *code, size_t bytes);
/* Which of them has the kernel; -1: none. */
int cubin_of(const void *code, size_t bytes, const char *kernel);
/* False if no cubin of the code has such a kernel. `log` is that of `ptxas -v`, or NULL:
 * spill_bytes is then -1. */
bool cubin_usage(const void *code, size_t bytes, const char *log, const char *kernel, Usage *usage);
/* Whether the kernel's code always waits for the kernel before it in the stream
 * (griddepcontrol.wait) before it loads from memory, branches, calls or ends. Its text begins with
 * the wait, but a compiler may move a load of const __restrict__ memory before it; stores, atomics
 * and copies stay in order. False where the code does not show it. */
bool cubin_waits_first(const void *code, size_t bytes, const char *kernel);
/* The name of kernel number `index`, or NULL; points into the code. */
const char *cubin_kernel_name(const void *code, size_t bytes, int index);

#endif
