/* explain/json.c: plan -> JSON: what explain/explain.c says in words, for programs. */
#include "explain/explain.h"
#include "schedule/keys.h"

/* `, ` before all members but the first. */
static void put_comma(Text *out, bool *first)
{
    if (!*first) text_print(out, ", ");
    *first = false;
}

static void put_axes(Text *out, const Graph *g, AxisSet axes)
{
    bool first = true;
    text_print(out, "[");
    for (int i = 0; i < g->axis_count; i++)
        if (axes >> i & 1) {
            put_comma(out, &first);
            text_quote(out, g->axes[i].name);
        }
    text_print(out, "]");
}

/* One object a line in an array: the opening of the next one. */
static void put_item(Text *out, bool first)
{
    text_print(out, first ? "\n    {" : ",\n    {");
}

static void put_reductions(Text *out, const Analysis *a)
{
    text_print(out, ",\n  \"reductions\": [");
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        put_item(out, i == 0);
        text_print(out, "\"name\": ");
        text_quote(out, r->name);
        text_print(out, ", \"kind\": \"%s\", \"axes\": ", kind_name(r->kind));
        put_axes(out, a->graph, node(a->graph, r->node)->reduced);
        text_print(out, ", \"phase\": %d, \"value\": ", r->phase);
        text_quote(out, node_text(out->arena, a->graph, r->node, true));
        text_print(out, "}");
    }
    text_print(out, "],\n  \"persistent\": [");
    for (int i = 0; i < a->persistent_count; i++) {
        put_item(out, i == 0);
        text_print(out, "\"name\": ");
        text_quote(out, a->persistent[i].name);
        text_print(out, ", \"bytes_per_row\": %lld}", (long long)a->persistent[i].bytes_per_row);
    }
    text_print(out, "]");
}

static void put_kernels(Text *out, const Plan *plan, const KernelUsage *usage)
{
    text_print(out, ",\n  \"kernels\": [");
    for (int i = 0; i < plan->kernel_count; i++) {
        const Kernel *k = &plan->kernels[i];
        const LaunchKernel *launch = &plan->launch.kernels[i];
        put_item(out, i == 0);
        text_print(out, "\"name\": ");
        text_quote(out, k->name);
        text_print(out, ", \"schedule\": \"%s\", \"ctas\": %lld, \"threads\": %d",
                   family_name(k->family), (long long)kernel_ctas(plan, i), launch->threads);
        /* A row outside a ring has one stage. */
        text_print(out, ", \"stages\": %d, \"groups\": %d, \"rows\": %d, \"cluster\": %d",
                   k->stages ? k->stages : 1, k->groups, walks_rows(k) ? rows_of_step(k) : 1,
                   launch->cluster);
        text_known(out, "threads_per_row", walks_rows(k) ? k->threads_per_row : -1);
        text_print(
            out,
            ", \"smem_bytes\": %lld, \"few_ctas\": %d, \"few_bytes\": %lld, \"limit\": %d, \"reuse\": %s",
            (long long)launch->smem_bytes, k->few_ctas, (long long)k->few_bytes, k->limit_ctas,
            reuses_stages(k) ? "true" : "false");
        text_known(out, "registers", usage[i].registers);
        text_known(out, "spill_bytes", usage[i].spill_bytes);
        if (has_strided(launch)) {
            text_print(out, ", \"strided\": {\"name\": ");
            text_quote(out, launch->strided.name);
            text_known(out, "registers", usage[i].strided_registers);
            text_known(out, "spill_bytes", usage[i].strided_spill_bytes);
            text_print(out, "}");
        }
        text_print(out, "}");
    }
    text_print(out, "]");
}

/* `read` and `write`: the graph's inputs and outputs, each once. The others: what its kernels read
 * and write at least. */
static void put_traffic(Text *out, const Plan *plan)
{
    const Traffic all = count_traffic(plan);
    text_print(
        out,
        ",\n  \"traffic\": {\"read\": %lld, \"write\": %lld, \"kernels_read\": %lld, \"kernels_write\": %lld, ",
        (long long)plan->analysis->read_bytes, (long long)plan->analysis->write_bytes,
        (long long)all.read, (long long)all.written);
    text_print(out, "\"rows_again\": %s}", all.again ? "true" : "false");
}

static void put_speed(Text *out, const Plan *plan)
{
    Estimate e = estimate_speed(plan);
    if (!e.unknown)
        text_print(out,
                   ",\n  \"model\": {\"gbps\": %.0f, \"memory_gbps\": %.0f, \"bound_by\": \"%s\"}",
                   e.gbps, e.ceiling, bound_name(e.bound));
}

static void put_target(Text *out, const Target *target)
{
    int constants, measured = target_measured(target, &constants);
    text_print(out, ",\n  \"target\": \"%s\",\n  \"gpu\": \"%s\",\n  \"nearest\": %s", target->arch,
               target->gpu, target->borrowed ? "true" : "false");
    text_print(out,
               ",\n  \"memory_per_sm\": %.4g,\n  \"constants\": {\"all\": %d, \"measured\": %d}",
               target->peak_rate, constants, measured);
}

void explain_json(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin,
                  bool candidates)
{
    const Analysis *a = plan->analysis;
    const Graph *g = a->graph;
    bool first = true;
    text_print(out, "{\n  \"graph\": ");
    text_quote(out, g->name);
    put_target(out, &plan->target);
    text_print(out, ",\n  \"sizes\": {");
    for (int i = 0; i < g->axis_count; i++) {
        put_comma(out, &first);
        text_print(out, "\"%s\": %lld", g->axes[i].name, (long long)a->sizes.of[i]);
    }
    text_print(out, "},\n  \"axes\": {\"rows\": ");
    put_axes(out, g, a->rows);
    text_print(out, ", \"columns\": ");
    put_axes(out, g, a->columns);
    text_print(out, "}");
    if (origin.schedule) {
        text_print(out, ",\n  \"made_by\": {\"schedule\": ");
        text_quote(out, origin.schedule);
        text_print(out, ", \"why\": ");
        text_quote(out, origin.why);
        text_print(out, "}");
    }
    text_print(out, ",\n  \"complete_schedule\": ");
    text_quote(out, complete_schedule(out->arena, plan));
    put_speed(out, plan);
    put_reductions(out, a);
    put_kernels(out, plan, usage);
    text_print(out, ",\n  \"workspace_bytes\": %lld",
               (long long)launch_workspace(&plan->launch, &plan->launch.sizes, NULL));
    put_traffic(out, plan);
    text_print(out, ",\n  \"why\": [");
    for (int i = 0; i < plan->cut_count; i++) {
        text_print(out, i ? ",\n    " : "\n    ");
        text_quote(out, plan->cuts[i]);
    }
    text_print(out, "]");
    text_print(out, ",\n  \"rejected\": [");
    for (int i = 0; i < plan->rejection_count; i++) {
        put_item(out, i == 0);
        text_print(out, "\"schedule\": ");
        text_quote(out, plan->rejections[i].schedule);
        text_print(out, ", \"reason\": ");
        text_quote(out, plan->rejections[i].reason);
        text_print(out, "}");
    }
    text_print(out, "]");
    if (candidates) put_candidates(out, plan);
    text_print(out, "\n}\n");
}
