/* explain.c: what `fusec explain` says of a graph, said of a plan. */
#include "internal.h"

#include "explain/explain.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static void leave(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

static void explain(Text *out, const fusec_plan *plan, bool json)
{
    const Plan *schedule = plan->compilation.plan;
    KernelUsage *usage = NEW_ARRAY(out->arena, KernelUsage, plan->launch->kernel_count + 1);
    for (int i = 0; i < plan->launch->kernel_count; i++) {
        const fusec_kernel_info *kernel = &plan->kernels[i];
        usage[i] = (KernelUsage){kernel->registers, kernel->spill_bytes, -1, -1};
    }
    const Origin origin = {name_plan(out->arena, schedule),
                           plan->schedule    ? "as the caller or the tuning file asks"
                           : schedule->tuned ? "from the table, measured by `fusec tune --table`"
                                             : "the cost model's choice"};
    (json ? explain_json : explain_words)(out, schedule, usage, origin, false);
}

/* The text, in the arena; NULL for lack of memory. */
static Text *try_to_explain(Arena *arena, const fusec_plan *plan, bool json)
{
    jmp_buf escape;
    if (setjmp(escape)) return NULL;
    arena_on_out_of_memory(arena, leave, &escape);
    Text *out = text_new(arena);
    explain(out, plan, json);
    text_string(out);
    return out;
}

size_t fusec_plan_explain(const fusec_plan *plan, int32_t as_json, char *text, size_t size)
{
    OWN_ENVIRONMENT;
    if (!plan || !plan->compilation.plan) return 0;
    Arena *arena = arena_new();
    Text *out = arena ? try_to_explain(arena, plan, as_json != 0) : NULL;
    const size_t length = out ? out->length : 0;
    const size_t kept = length < size ? length : size ? size - 1 : 0;
    if (text && size) {
        if (out) memcpy(text, text_string(out), kept);
        text[kept] = 0;
    }
    arena_free(arena);
    return length;
}
