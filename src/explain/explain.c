/* explain/explain.c: plan -> words. Bytes are decimal (1 MB = 1e6 bytes), like the GB/s of `fusec
 * bench`. */
#include "explain/explain.h"
#include "explain/walk.h"
#include "schedule/keys.h"

#include <string.h>

static const char *bytes_text(Arena *arena, int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    if (bytes == 1) return "1 byte";
    for (; value >= 1000 && unit < 6; unit++) value /= 1000;
    return arena_format(arena, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* Which columns these are, as a schedule says it. */
static const char *choice_text(Arena *arena, const Analysis *a)
{
    return arena_format(arena, "axes=%s", key_value(arena, KEY_axes, (int)a->choice + 1));
}

/* What the plan of other columns would take, beside this one. */
static const char *cost_of_columns(Arena *arena, const Plan *plan, const Analysis *other)
{
    const Plan *planned = plan_columns(arena, other, &plan->target);
    return planned && plan->time > 0
               ? arena_format(arena, "%.2fx the time by the cost model", planned->time / plan->time)
               : "which have no plan";
}

static void explain_sizes(Text *out, const Plan *plan)
{
    const Analysis *a = plan->analysis;
    const Graph *g = a->graph;
    const Target *target = &plan->target, *usual = target_find(target->arch);
    bool is_usual = usual && !strcmp(usual->gpu, target->gpu);
    text_print(out, "%s for %s%s with %d SMs", g->name, target->arch,
               is_usual ? "" : arena_format(out->arena, " (%s)", target->gpu), target->sms);
    for (int i = 0; i < g->axis_count; i++)
        text_print(out, ", %s = %lld", g->axes[i].name, (long long)a->sizes.of[i]);
    text_print(out, "\n");
    line(out, "axes: rows %s; columns %s%s", names_text(out->arena, g, a->rows),
         names_text(out->arena, g, a->columns),
         a->first->other ? arena_format(out->arena, " (%s)", choice_text(out->arena, a)) : "");
    for (const Analysis *one = a->first; one; one = one->other)
        if (one != a)
            line(out, "other columns: %s (%s), %s", names_text(out->arena, g, one->columns),
                 choice_text(out->arena, one), cost_of_columns(out->arena, plan, one));
}

/* The width of a column that has room for a name, as long as the name is not out of proportion. */
static int widen_for(int width, const char *name)
{
    enum { MOST = 48 };
    const int length = (int)strlen(name);
    return length <= width ? width : length < MOST ? length : MOST;
}

static void explain_reductions(Text *out, const Analysis *a)
{
    if (!a->reduction_count) {
        line(out, "reductions: none");
        return;
    }
    line(out, "reductions: %d, in %d phase%s (passes over a row)", a->reduction_count, a->phases,
         plural(a->phases));
    int width = 0;
    for (int i = 0; i < a->reduction_count; i++) width = widen_for(width, a->reductions[i].name);
    for (int i = 0; i < a->reduction_count; i++) {
        const Reduction *r = &a->reductions[i];
        const char *text = node_text(out->arena, a->graph, r->node, true);
        bool same = !strcmp(text, r->name);
        line(out, "  %-*s  %-13s  phase %d%s%s%s%s", width, r->name, kind_name(r->kind), r->phase,
             same ? "" : "   ", same ? "" : text, r->partner.id ? "   together with " : "",
             r->partner.id ? node_text(out->arena, a->graph, r->partner, false) : "");
    }
}

/* Whether no kernel can keep what it needs of a tensor in several phases. */
static bool is_always_read_again(const Plan *plan, Node tensor)
{
    bool again = false, kept = false;
    for (int i = 0; i < plan->kernel_count; i++)
        for (int j = 0; j < plan->kernels[i].load_count; j++) {
            const Load *load = &plan->kernels[i].loads[j];
            if (load->node.id != tensor.id) continue;
            again |= is_read_again(&plan->kernels[i], load);
            kept |= load->access == ACCESS_VECTOR;
        }
    return again && !kept;
}

static void explain_persistence(Text *out, const Plan *plan)
{
    const Analysis *a = plan->analysis;
    if (!a->persistent_count) {
        line(out, "to keep on chip (persistent): nothing is needed in more than one phase");
        return;
    }
    int64_t sum = 0;
    int width = 12;
    for (int i = 0; i < a->persistent_count; i++) {
        sum += a->persistent[i].bytes_per_row;
        width = widen_for(width, a->persistent[i].name);
    }
    line(out, "to keep on chip (persistent): what more than one phase needs, %s a row",
         bytes_text(out->arena, sum));
    for (int i = 0; i < a->persistent_count; i++)
        line(out, "  %-*s %s a row%s", width, a->persistent[i].name,
             bytes_text(out->arena, a->persistent[i].bytes_per_row),
             is_always_read_again(plan, a->persistent[i].node) ? ", read again by each phase" : "");
}

int64_t kernel_ctas(const Plan *plan, int kernel)
{
    int64_t ctas = 1;
    for (int dim = 0; dim < GRID_RANK; dim++)
        ctas *= launch_ctas(&plan->launch, kernel, dim, &plan->launch.sizes);
    return ctas;
}

/* Reductions that a kernel of rows along the last axis would compute together. */
static void explain_unpaired(Text *out, const Analysis *a, const Kernel *k, const InnerReduction *r)
{
    const Graph *g = a->graph;
    const Node partner = find_partner(g, &a->sizes, r->node);
    const bool parts = reduces_part(g, k, r->node);
    if (!partner.id || node(g, partner)->op != OP_MAX_OVER || !(k->beside || parts)) return;
    line(out, "    %s and %s are not computed together, because %s",
         node_text(out->arena, g, partner, false), node_text(out->arena, g, r->node, false),
         k->beside ? "rows are neighbours in memory" : "they reduce parts of a row");
}

static void explain_pairs(Text *out, const Analysis *a, const Kernel *k)
{
    const Graph *g = a->graph;
    for (int i = 0; i < k->inner_count; i++) {
        const InnerReduction *r = &k->inner[i];
        if (!r->partner.id) explain_unpaired(out, a, k, r);
        if (!r->partner.id || r->lacking) continue;
        line(out, "    one reduction computes %s and %s%s",
             node_text(out->arena, g, r->partner, false), node_text(out->arena, g, r->node, false),
             r->inverse ? "; the sum is inverted once, and a product replaces each division" : "");
    }
}

/* Which column vectors stay on chip, and where. */
static void explain_columns(Text *out, const Kernel *k)
{
    static const char *const homes[] = {"registers", "shared memory"};
    int count = 0, kept[] = {0, 0};
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        count += load->access == ACCESS_VECTOR && !(load->axes & (k->rows | k->beside));
        if (is_hoisted(load)) kept[is_staged(load)]++;
    }
    const char *verb = is_persistent(k) ? "stay in" : "are read with the row, into";
    for (int home = 0; home < 2; home++) {
        if (kept[home] == count && count)
            line(out, "    column vectors %s %s", verb, homes[home]);
        else if (kept[home])
            line(out, "    %d of %d column vectors %s %s", kept[home], count, verb, homes[home]);
    }
    if (kept[0] + kept[1] == 0 && count && walks_rows(k))
        line(out, "    column vectors are read by each phase that needs them");
}

static void explain_ring(Text *out, const Plan *plan, const Kernel *k)
{
    if (k->cluster > 1) {
        const char *each =
            arena_format(out->arena, "%s%d columns each", k->uneven ? "up to " : "", k->slice);
        line(out, "    %s of %d CTAs share a row, %s%s", is_grouped(k) ? "groups" : "clusters",
             k->cluster, k->slice ? each : "taking its columns in turn",
             is_grouped(k) ? "; they exchange through global memory" : "");
    }
    int scalars = 0;
    for (int i = 0; i < k->load_count; i++)
        scalars += is_staged(&k->loads[i]) && k->loads[i].access == ACCESS_ROW;
    if (k->stages)
        line(out, "    rows pass through %s in shared memory%s",
             k->stages == 1 ? "one stage"
                            : arena_format(out->arena, "a ring of %d stages", k->stages),
             has_copy_warp(k) && rows_of_step(k) > 1
                 ? arena_format(out->arena, ", %d rows each", rows_of_step(k))
             : scalars ? ", their scalars with them"
                       : "");
    if (reuses_stages(k))
        line(
            out,
            "    a row moves from its stage to registers, which frees the stage for the next copy");
    if (is_copied_by_lines(k) ||
        copies_stray_bytes(k, axes_size(&plan->analysis->sizes, k->columns)))
        line(
            out,
            "    copies are line-aligned, in blocks of 16 bytes, because rows begin anywhere in a line of 128 bytes");
    if (k->meeting == MEET_IN_RING)
        line(out, "    after the last row %d teams add their sums in the ring's memory", k->teams);
    if (k->meeting == MEET_BESIDE_RING)
        line(
            out,
            "    after a part's last row %d teams add their sums outside the ring, which already has the next part's rows",
            k->teams);
    if (has_bulk_rows(k))
        line(out, "    one bulk copy brings the row to shared memory, where it stays");
    if (k->one_row && k->cluster > 1) line(out, "    a cluster has one row");
    if (passes_by_blocks(k))
        line(
            out,
            "    unaligned rows pass through shared memory, read and stored in blocks of 16 bytes");
    if (is_refilled(k))
        line(
            out,
            "    register prefetch: a tile's registers take the next row's elements once the tile is stored");
    if (has_copy_warp(k))
        line(out, "    a copy warp fills the ring%s; %s%d warps%s",
             is_grouped(k) ? ", another receives from the other CTAs" : "",
             k->groups > 1 ? arena_format(out->arena, "%d groups of ", k->groups) : "",
             kernel_threads(k) / k->groups / 32,
             k->groups > 1 ? " take its rows in turn" : " compute");
    if (k->registers)
        line(out, "    the copy warp hands registers over: threads that compute have up to %d",
             k->registers);
    else if (is_grouped(k))
        line(out, "    one more warp receives from the other CTAs");
    if (is_paced(k))
        line(out, "    if all rows together exceed L2, copies are paced to the rate of memory");
}

/* How a persistent kernel fills the GPU; clusters leave some SMs idle. */
static const char *residency_text(Arena *arena, const Plan *plan, const Kernel *k)
{
    const Target *target = &plan->target;
    if (!walks_rows(k) || !is_persistent(k)) return "";
    int sms = is_grouped(k) ? target->sms : target_cluster_sms(target, k->cluster);
    return has_column_parts(k) ? ""
           : sms < target->sms ? arena_format(arena, ", %d an SM: its clusters fit %d of %d SMs",
                                              k->ctas_per_sm, sms, target->sms)
                               : arena_format(arena, ", %d an SM", k->ctas_per_sm);
}

/* How many CTAs share the rows of a group, which is one element of the axes that remain. */
static void explain_parts(Text *out, const Plan *plan, int index)
{
    const LaunchPlan *launch = &plan->launch;
    int64_t parts = launch_groups(launch, index, PARTS_DIM, &launch->sizes);
    bool whole = takes_whole_groups(launch, index, &launch->sizes);
    line(out, "    the rows of each %s form %lld part%s%s",
         names_text(out->arena, plan->analysis->graph, plan->kernels[index].kept), (long long)parts,
         plural(parts),
         parts <= 1 ? ""
         : whole    ? ", which one CTA takes one after the other"
                    : ", divided among the CTAs");
}

static const char *append_name(Arena *arena, const char *list, const char *name)
{
    return list ? arena_format(arena, "%s, %s", list, name) : name;
}

/* Whether a value for other kernels is an output as well. */
static bool is_stored_twice(const Kernel *k, int index)
{
    for (int i = 0; i < k->store_count && k->stores[index].tensor < 0; i++)
        if (k->stores[i].tensor >= 0 && k->stores[i].node.id == k->stores[index].node.id)
            return true;
    return false;
}

/* Whether a CTA walks all parts of its groups and stores their sums itself, so that no finish
 * kernel follows. */
static bool stores_sums(const Plan *plan, int index)
{
    return plan->kernels[index].kept &&
           takes_whole_groups(&plan->launch, index, &plan->launch.sizes);
}

/* What a kernel stores: outputs, values for later kernels, and partials for a finish kernel. */
static void explain_results(Text *out, const Plan *plan, int index)
{
    const Kernel *k = &plan->kernels[index];
    const Graph *g = plan->analysis->graph;
    Arena *arena = out->arena;
    const bool leaves_partials =
        k->family != FAMILY_FINISH && k->accumulator_count && !stores_sums(plan, index);
    const char *values = NULL, *partials = NULL;
    for (int i = 0; i < k->store_count; i++) {
        const Store *store = &k->stores[i];
        if ((leaves_partials && store->result) || is_stored_twice(k, i)) continue;
        values = append_name(arena, values,
                             store->tensor >= 0 ? plan->launch.tensors[store->tensor].name
                                                : value_name(arena, g, store->node));
    }
    for (int i = 0; i < k->accumulator_count && leaves_partials; i++)
        if (k->accumulators[i].slot >= 0)
            partials = append_name(arena, partials, value_name(arena, g, k->accumulators[i].node));
    if ((values || partials) && kernel_ctas(plan, index))
        line(out, "    computes %s%s%s%s", values ? values : "", values && partials ? "; " : "",
             partials ? "partials of " : "", partials ? partials : "");
}

static const char *usage_text(Arena *arena, int registers, int spill_bytes)
{
    if (registers < 0) return "";
    if (!spill_bytes) return arena_format(arena, "%d registers a thread, no spills", registers);
    return arena_format(arena, "%d registers a thread, %d bytes of spills", registers, spill_bytes);
}

/* Why a kernel needs the indices of a row along its axes, and not only its number. */
static const char *why_indices(Arena *arena, const Graph *g, const Kernel *k)
{
    const char *lacking = NULL;
    for (int i = 0; i < k->load_count && !lacking; i++)
        if (k->loads[i].axes & k->rows && !axes_within(k->rows, k->loads[i].axes))
            lacking = k->loads[i].name;
    for (int i = 0; i < k->store_count && !lacking; i++)
        if (k->stores[i].axes & k->rows && !axes_within(k->rows, k->stores[i].axes))
            lacking = k->stores[i].name;
    if (lacking) return arena_format(arena, "%s does not have all of these axes", lacking);
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        if (k->computed[i] && info->op == OP_INDEX && k->rows >> info->axis & 1)
            return arena_format(arena, "the program has index(%s)", g->axes[info->axis].name);
    }
    return "columns lie between rows in memory";
}

static void explain_row_axes(Text *out, const Graph *g, const Kernel *k, const LaunchKernel *launch)
{
    if (k->backwards)
        line(out, "    walks rows backwards: L2 may still hold the last rows of the kernel before");
    if (!walks_rows(k) || !has_several_row_axes(k) || k->kept || launch->collapsed) return;
    line(out, "    divides a row's number to find its index along each of %s, because %s",
         names_text(out->arena, g, k->rows), why_indices(out->arena, g, k));
}

static void explain_kernel(Text *out, const Plan *plan, int index, const KernelUsage *usage)
{
    const Kernel *k = &plan->kernels[index];
    const LaunchKernel *launch = &plan->launch.kernels[index];
    Arena *arena = out->arena;
    int64_t ctas = kernel_ctas(plan, index);
    line(out, "  %s: %s, %lld CTA%s of %d threads%s", k->name, family_name(k->family),
         (long long)ctas, plural(ctas), launch->threads, residency_text(arena, plan, k));
    explain_results(out, plan, index);
    if (k->family == FAMILY_CLEAR)
        line(out, "    zeroes the memory through which the CTAs of %s exchange",
             plan->kernels[k->clears].name);
    else if (launch->adds_parts >= 0)
        line(out,
             ctas ? "    adds the partials that the CTAs of %s stored for the parts of each %s"
                  : "    is not launched: a CTA of %s stores the result of each %s",
             plan->kernels[k->finishes].name,
             names_text(arena, plan->analysis->graph, plan->kernels[k->finishes].kept));
    else if (k->family == FAMILY_FINISH)
        line(out, "    adds the partials that the %ss of %s stored",
             sharers_name(&plan->kernels[k->finishes]), plan->kernels[k->finishes].name);
    else
        explain_walk(out, plan, k);
    if (k->kept) explain_parts(out, plan, index);
    explain_row_axes(out, plan->analysis->graph, k, launch);
    explain_ring(out, plan, k);
    explain_columns(out, k);
    explain_window(out, plan->analysis->graph, k);
    explain_phases(out, k);
    explain_pairs(out, plan->analysis, k);
    const char *unused = !k->limit_ctas ? "" : arena_format(arena, ", %s", reserve_text(arena, k));
    if (launch->smem_bytes)
        line(out, "    %s of dynamic shared memory%s", bytes_text(arena, launch->smem_bytes),
             unused);
    if (launch->few_ctas)
        line(
            out,
            "    %s of dynamic shared memory where the grid has up to %lld CTAs: column vectors are copied there with the row",
            bytes_text(arena, launch->few_bytes), (long long)launch->few_ctas);
    if (usage[index].registers >= 0)
        line(out, "    %s", usage_text(arena, usage[index].registers, usage[index].spill_bytes));
    if (has_strided(launch))
        line(out, "    %s serves views whose %s%s%s", launch->strided.name,
             !launch->dense      ? "rows are not evenly spaced"
             : launch->collapsed ? "rows are not evenly spaced, or columns not side by side"
                                 : "columns do not lie side by side",
             usage[index].strided_registers >= 0 ? ": " : "",
             usage_text(arena, usage[index].strided_registers, usage[index].strided_spill_bytes));
}

static void explain_traffic(Text *out, const Plan *plan)
{
    const Analysis *a = plan->analysis;
    Arena *arena = out->arena;
    const Traffic all = count_traffic(plan);
    const char *inputs = bytes_text(arena, a->read_bytes), *read = bytes_text(arena, all.read);
    line(out, "traffic: at %s %s read and %s written", all.masked ? "most" : "least", read,
         bytes_text(arena, all.written));
    if (all.read > a->read_bytes && strcmp(read, inputs))
        line(out, "    inputs are %s: %s", inputs,
             all.repeats ? "some are read again for each of the rows that share them"
                         : "several kernels read some of them");
    if (all.again)
        line(out, "    phases read rows again: more traffic where the caches do not hold them");
    int64_t passed = bytes_passed(plan);
    if (passed)
        line(out, "    kernels also write %s for each other, and read them",
             bytes_text(arena, passed));
    line(out, "workspace: %s",
         bytes_text(arena, launch_workspace(&plan->launch, &plan->launch.sizes, NULL)));
}

/* The inputs that an output may replace in place, if both have their declared sizes; "": none. */
static const char *places_of(Arena *arena, const LaunchPlan *plan, int output)
{
    const LaunchTensor *out = &plan->tensors[output];
    Text *inputs = text_new(arena);
    for (int i = 0; i < plan->input_count; i++) {
        const LaunchTensor *in = &plan->tensors[i];
        bool alike = in->wanted && out->wanted && in->axes == out->axes &&
                     dtype_info[in->dtype].bytes == dtype_info[out->dtype].bytes;
        if (alike && may_lie_on(plan, i, output))
            text_print(inputs, "%s%s", inputs->length ? " or " : "", in->name);
    }
    return text_string(inputs);
}

static void explain_in_place(Text *out, const LaunchPlan *plan)
{
    Text *pairs = text_new(out->arena);
    for (int o = plan->input_count; o < plan->tensor_count; o++) {
        const char *inputs = places_of(out->arena, plan, o);
        if (*inputs)
            text_print(pairs, "%s%s may overwrite %s", pairs->length ? "; " : "",
                       plan->tensors[o].name, inputs);
    }
    if (pairs->length)
        line(out, "in place, if asked for (each input for one output only): %s",
             text_string(pairs));
}

/* No more digits than the model knows. */
double rounded_gbps(double gbps)
{
    enum { STEP = 10 };
    return STEP * (double)(int64_t)(gbps / STEP + 0.5);
}

/* Says what the model's figures rest on, where that is not the GPU at hand. */
static void explain_target(Text *out, const Target *target)
{
    int constants, measured = target_measured(target, &constants);
    if (target->borrowed)
        line(out, "target: no file describes this GPU, so that of the nearest, %s, is used",
             target->gpu);
    if (!measured)
        line(
            out,
            "target: the model's constants of %s are not measured: they come from data sheets, or are an H100's",
            target->gpu);
    else if (measured < constants)
        line(
            out,
            "target: %d of the model's %d constants of %s are measured, the others come from data sheets, or are an H100's",
            measured, constants, target->gpu);
}

static void explain_speed(Text *out, const Plan *plan)
{
    Estimate e = estimate_speed(plan);
    explain_target(out, &plan->target);
    if (e.unknown)
        line(out, "model: ranks such plans, and gives no speed: %s", e.unknown);
    else
        line(out, "model: about %.0f GB/s with many rows%s, where memory moves %.0f; bound by %s",
             rounded_gbps(e.gbps),
             count_traffic(plan).masked ? ", counting what a mask excludes" : "",
             rounded_gbps(e.ceiling), bound_name(e.bound));
}

static void explain_cut(Text *out, const Plan *plan, const char *cut)
{
    const char *why = plan->kernel_count > 1 && !plan->analysis->part_count
                          ? arena_format(out->arena, "why %d kernels", plan->kernel_count)
                          : "why";
    line(out, "%s: %s", why, cut);
}

void explain_words(Text *out, const Plan *plan, const KernelUsage *usage, Origin origin,
                   bool candidates)
{
    explain_sizes(out, plan);
    explain_reductions(out, plan->analysis);
    explain_persistence(out, plan);
    if (origin.schedule) line(out, "schedule: %s (%s)", origin.schedule, origin.why);
    explain_speed(out, plan);
    int launched = 0;
    for (int i = 0; i < plan->kernel_count; i++) launched += kernel_ctas(plan, i) > 0;
    const char *fewer = launched < plan->kernel_count
                            ? arena_format(out->arena, ", of which %d run%s at these sizes",
                                           launched, launched == 1 ? "s" : "")
                            : "";
    line(out, "kernels: %d%s", plan->kernel_count, fewer);
    for (int i = 0; i < plan->kernel_count; i++) explain_kernel(out, plan, i, usage);
    explain_traffic(out, plan);
    explain_in_place(out, &plan->launch);
    for (int i = 0; i < plan->cut_count; i++) explain_cut(out, plan, plan->cuts[i]);
    for (int i = 0; i < plan->rejection_count; i++)
        line(out, "rejected: %s: %s", plan->rejections[i].schedule, plan->rejections[i].reason);
    if (candidates) explain_candidates(out, plan);
}
