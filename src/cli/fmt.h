/* fmt.h: `--emit=tokens`, which needs only the text of a file. */
#ifndef FUSEC_CLI_FMT_H
#define FUSEC_CLI_FMT_H

#include "cli/options.h"

/* The tokens of FILE; an exit status. */
int list_tokens(const Options *o, Text *out);

#endif
