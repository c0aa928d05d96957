/* library.h: finds shared libraries and directories without the working directory, which anybody
 * may control. */
#ifndef FUSEC_LIBRARY_H
#define FUSEC_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* An environment variable that names a file or directory; NULL unless it is an absolute path, and
 * always NULL in a program that has more rights than its user. */
const char *environment_path(const char *variable);

/* dlopen of an absolute path, or of a name without a slash, which the dynamic linker searches for;
 * relative directories among those that it would search are left out. NULL: *why says why; errno is
 * ENOMEM only where memory ran out. */
void *library_open(const char *name, const char **why);

/* The absolute path of the file that this code was loaded from; false: not known. */
bool library_own_path(char path[PATH_MAX]);

#endif
