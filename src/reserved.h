/* reserved.h: identifiers that generated CUDA uses for something else than the user's names. */
#ifndef FUSEC_RESERVED_H
#define FUSEC_RESERVED_H

#include <stdbool.h>

bool is_reserved_name(const char *name);   /* a word of C++ or CUDA, or a variable of every kernel */

#endif
