/* targets.h: GPUs that a user describes: the files *.def of the directory that $FUSEC_TARGETS
 * names, and the tables GPU.tuned of measured schedules there, in the form of those in src/targets/. */
#ifndef FUSEC_TARGETS_H
#define FUSEC_TARGETS_H

/* Reads them once a process, in the order of their names, tables last; every entry of the API that uses targets
 * calls it first. Returns what is wrong with the first bad file, "" if none is; that file and all
 * later ones are left out. The text lives as long as the process. */
const char *targets_open(void);

#endif
