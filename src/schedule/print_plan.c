/* schedule/print_plan.c: a plan as text, for --emit=plan. */
#include "schedule/internal.h"

static void print_inner(Text *out, const Graph *g, const InnerReduction *r)
{
    const char *with = r->partner.id ? node_text(out->arena, g, r->partner, true) : "";
    line(out, "phase %d reduces %s%s%s%s", r->phase, node_text(out->arena, g, r->node, true),
         *with ? ", together with " : "", with, r->inverse ? ", inverted" : "");
}

static void print_accumulator(Text *out, const Graph *g, const Kernel *k, const Accumulator *acc)
{
    const char *with = acc->mean.id ? node_text(out->arena, g, acc->mean, true) : "";
    line(out, "%s %s%s%s", k->finishes >= 0 ? "adds the partials of" : "accumulates",
         node_text(out->arena, g, acc->node, true), *with ? ", together with " : "", with);
}

static void print_kernel(Text *out, const Plan *plan, const Kernel *k)
{
    const Graph *g = plan->analysis->graph;
    block (out, "kernel %s: %s", k->name, family_name(k->family)) {
        line(out, "rows %s columns %s kept %s", axes_text(out->arena, g, k->rows),
             axes_text(out->arena, g, k->columns), axes_text(out->arena, g, k->kept));
        if (k->finishes >= 0)
            line(out, "columns a CTA %d, threads a column %d, partials at once %d",
                 k->threads_per_row, k->teams, k->tiles);
        else
            line(out, "threads a row %d, teams %d, vector %d, tiles %d%s%s", k->threads_per_row,
                 k->teams, k->vec, k->tiles, is_streamed(k) ? ", streamed" : "",
                 is_ragged(k) ? ", ragged" : "");
        if (k->groups > 1) line(out, "%d groups take stages of the ring in turn", k->groups);
        if (k->kept) line(out, "a group's rows in parts of %d", k->part_rows);
        if (k->backwards) line(out, "backwards");
        if (is_paced(k)) line(out, "paced");
        if (k->limit_ctas) line(out, "at most %d CTAs an SM", k->limit_ctas);
        if (k->slice)
            line(out, "%d CTAs share a row, %d columns each%s", k->cluster, k->slice,
                 is_refilled(k)      ? ", refilled"
                 : has_bulk_rows(k)  ? ", by one copy"
                 : has_single_row(k) ? ", single"
                                     : "");
        if (takes_turns(k)) line(out, "%d CTAs share a row, in turns along it", k->cluster);
        if (k->meeting == MEET_IN_RING) line(out, "sums meet in the ring");
        if (k->meeting == MEET_BESIDE_RING) line(out, "sums meet beside the ring");
        for (int i = 0; i < k->load_count; i++)
            line(out, "load %s%s%s%s%s", k->loads[i].name,
                 is_masked(k, &k->loads[i]) ? ", masked" : "",
                 is_resident(&k->loads[i]) ? ", resident" : "",
                 is_hoisted(&k->loads[i]) ? ", hoisted" : "",
                 is_lined_up(k, &k->loads[i]) || is_read_by_blocks(k, &k->loads[i]) ? ", by blocks"
                                                                                    : "");
        for (int i = 0; i < k->inner_count; i++) print_inner(out, g, &k->inner[i]);
        for (int i = 0; i < k->accumulator_count; i++)
            print_accumulator(out, g, k, &k->accumulators[i]);
        for (int i = 0; i < k->store_count; i++) line(out, "store %s", k->stores[i].name);
    }
}

void print_plan(Text *out, const Plan *plan)
{
    line(out, "plan for %s: %s", plan->target.arch, family_name(plan->family));
    for (int i = 0; i < plan->kernel_count; i++) print_kernel(out, plan, &plan->kernels[i]);
    for (int i = 0; i < plan->launch.slot_count; i++)
        line(out, "slot %s: %s%s%s", plan->launch.slots[i].name,
             dtype_info[plan->launch.slots[i].dtype].fuse,
             axes_text(out->arena, plan->analysis->graph, plan->launch.slots[i].axes),
             plan->launch.slots[i].width > 1
                 ? arena_format(out->arena, " x %lld", (long long)plan->launch.slots[i].width)
                 : "");
    for (int i = 0; i < plan->rejection_count; i++)
        line(out, "rejected %s: %s", plan->rejections[i].schedule, plan->rejections[i].reason);
}
