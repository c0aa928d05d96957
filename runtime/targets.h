/* targets.h: GPUs that a user describes: the files *.def of the directory that $FUSEC_TARGETS
 * names, of the form of those in src/targets/. */
#ifndef FUSEC_TARGETS_H
#define FUSEC_TARGETS_H

/* Reads them once a process, in the order of their names; every entry of the API that asks for
 * targets calls it before. Returns what is wrong with the first that cannot be taken, which is left
 * out, as every one behind it; "" if nothing is. The text lives as long as the process. */
const char *targets_open(void);

#endif
