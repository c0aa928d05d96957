/* child.h: runs other programs. */
#ifndef FUSEC_SIM_CHILD_H
#define FUSEC_SIM_CHILD_H

#include <stddef.h>

/* Runs a program and gives the first part of what it says; its exit status, or -1: it cannot be
 * run, errno says why. */
int run_program(char *const *words, char *said, size_t size);

#endif
