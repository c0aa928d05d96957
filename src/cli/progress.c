/* progress.c: see progress.h. A thread draws the line, so that it also appears while one call takes
 * long. */
#include "cli/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Progress *current;
static bool forbidden, shown, has_drawer;

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_allow(bool allowed)
{
    forbidden = !allowed;
}

static bool is_watched(void)
{
    struct stat out;
    return !forbidden && isatty(STDERR_FILENO) && fstat(STDOUT_FILENO, &out) == 0 &&
           !S_ISFIFO(out.st_mode);
}

/* ---- the line; the lock is held ---- */

static void wipe(void)
{
    if (shown) fputs("\r\033[K", stderr);
    shown = false;
}

static void draw(const Progress *p, double seconds)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################";
    const int done = (int)(p->fraction * WIDTH);
    if (p->fraction < 0)
        fprintf(stderr, "\r\033[K%s, %.0f s", p->what, seconds);
    else
        fprintf(stderr, "\r\033[K%s [%.*s%*s] %3.0f%%", p->what, done, full, WIDTH - done, "",
                100 * p->fraction);
    shown = true;
}

static void *keep_drawing(void *unused)
{
    const struct timespec moment = {0, 200000000};
    for (;;) {
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&lock);
        const double seconds = current ? now() - current->start : 0;
        if (seconds >= 1) draw(current, seconds);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Without a thread there is no line. */
static void start_drawer(void)
{
    pthread_t thread;
    if (has_drawer) return;
    has_drawer = pthread_create(&thread, NULL, keep_drawing, NULL) == 0;
    if (has_drawer) pthread_detach(thread);
}

/* ---- what is done ---- */

void progress_begin(Progress *p, const char *what)
{
    *p = (Progress){.what = what, .fraction = -1};
    if (!is_watched()) return;
    p->start = now();
    pthread_mutex_lock(&lock);
    p->outer = current;
    current = p;
    start_drawer();
    pthread_mutex_unlock(&lock);
}

void progress_step(void *progress, double fraction)
{
    Progress *p = progress;
    if (p->start <= 0) return;
    pthread_mutex_lock(&lock);
    p->fraction = fraction > 1 ? 1 : fraction;
    pthread_mutex_unlock(&lock);
}

void progress_end(Progress *p)
{
    if (p->start <= 0) return;
    pthread_mutex_lock(&lock);
    current = p->outer;
    wipe();
    pthread_mutex_unlock(&lock);
    p->start = 0;
}

void progress_hide(void)
{
    pthread_mutex_lock(&lock);
    wipe();
    pthread_mutex_unlock(&lock);
}
