/* shrink.h: a failing program made small. */
#ifndef FUSEC_PROP_SHRINK_H
#define FUSEC_PROP_SHRINK_H

#include "sketch.h"

/* Does the program still fail in the same way? */
typedef bool StillFails(void *data, const Sketch *s);

/* Deletes outputs, statements, operands, inputs and axes and makes sizes small while the
 * program still fails, with at most `tries` calls. */
const Sketch *shrink(Arena *arena, const Sketch *s, int tries, StillFails *fails, void *data);

#endif
