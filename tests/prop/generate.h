/* generate.h: seed -> a random valid program. */
#ifndef FUSEC_PROP_GENERATE_H
#define FUSEC_PROP_GENERATE_H

#include "sketch.h"

/* The same for the same seed. Every program it draws is valid: one that the compiler
 * refuses is a finding. A case walks at most `elements` elements. */
Sketch *generate(Arena *arena, uint64_t seed, int64_t elements);

#endif
