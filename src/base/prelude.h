/* base/prelude.h: the device helpers that generated CUDA calls, in sections. */
#ifndef FUSEC_PRELUDE_H
#define FUSEC_PRELUDE_H

#include <stdbool.h>

#include "base/map.h"
#include "base/text.h"

/* The sections that `body` mentions, in order, wrapped in #ifndef FUSEC_SIM. */
void emit_prelude(Text *out, const char *body);
bool is_prelude_name(const char *name);
void add_prelude_names(Arena *arena, Map *names); /* all of those */

#endif
