/* base/thread.c: see base/thread.h. */
#include "base/thread.h"

#include <signal.h>

bool thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *), void *data)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    const bool started = pthread_create(thread, &attributes, run, data) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void run_on_large_stack(void *(*run)(void *), void *data)
{
    pthread_t thread;
    if (thread_start(&thread, LARGE_STACK, run, data))
        pthread_join(thread, NULL);
    else
        run(data);
}
