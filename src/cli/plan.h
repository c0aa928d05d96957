/* plan.h: what `fusec plan show` prints of a plan. */
#ifndef FUSEC_CLI_PLAN_H
#define FUSEC_CLI_PLAN_H

#include "base/text.h"
#include "fusec.h"

void print_saved_plan(Text *out, const fusec_plan *plan);
void print_saved_plan_json(Text *out, const fusec_plan *plan);

#endif
