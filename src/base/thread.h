/* base/thread.h: threads that do not disturb the process: they handle none of its signals, and have
 * a stack size of their own. */
#ifndef FUSEC_THREAD_H
#define FUSEC_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Of a thread that runs a compiler. This reserves address space; a thread takes as much memory as
 * it uses. */
enum { LARGE_STACK = 32 << 20 };

bool thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *data);

/* Calls run(data) in a thread with a large stack, and returns when it has returned: programs may be
 * nested deeply, and the caller's stack may be small. Where no such thread can be created, calls it
 * directly. */
void run_on_large_stack(void *(*run)(void *), void *data);

#endif
