/* base/reserved.h: identifiers that generated CUDA needs for itself. */
#ifndef FUSEC_RESERVED_H
#define FUSEC_RESERVED_H

#include <stdbool.h>

#include "base/map.h"

bool is_reserved_name(const char *name);           /* a word that no kernel may declare */
void add_reserved_names(Arena *arena, Map *names); /* all of those */

/* What kernels declare for themselves, some this and some that, separated by spaces. */
extern const char own_names[];
bool is_own_name(const char *name);

/* Whether C or CUDA declares the name: a variable of that name shadows it, a kernel clashes with
 * it. */
bool is_library_name(const char *name);

/* The name without the underscores that would make it one of C++'s own: never two in a row, none in
 * front of a capital. */
const char *plain_name(Arena *arena, const char *name);

#endif
