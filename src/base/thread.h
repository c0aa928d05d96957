/* base/thread.h: threads that disturb nobody: they take none of the process's signals, and have a
 * stack of a size of their own, whatever the process gives its threads. */
#ifndef FUSEC_THREAD_H
#define FUSEC_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

bool thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *data);

/* Calls run(data) in a thread with a large stack, and returns when it has: programs may be nested
 * deeply, and the caller's stack may be small. Where there is no such thread, calls it directly. */
void run_on_large_stack(void *(*run)(void *), void *data);

#endif
