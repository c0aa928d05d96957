/* progress.h: a line on stderr that tells what a command is doing and how far it is, once that has
 * taken a second. It appears on a terminal alone, never with --json or where stdout is a pipe, and
 * is wiped before anything else is printed there. */
#ifndef FUSEC_CLI_PROGRESS_H
#define FUSEC_CLI_PROGRESS_H

#include <stdbool.h>

typedef struct Progress {
    const char *what;
    double start, fraction; /* seconds; below 0: unknown, so the line tells the seconds */
    struct Progress *outer; /* what is shown again when this has ended */
} Progress;

/* With false no line appears from now on. */
void progress_allow(bool allowed);
/* `p` must live until progress_end. */
void progress_begin(Progress *p, const char *what);
/* `progress` is a Progress *: this is the callback of long computations. */
void progress_step(void *progress, double fraction);
void progress_end(Progress *p);
/* Wipes the line, which comes back after a moment. */
void progress_hide(void);

double now(void); /* seconds, monotonic */

#endif
