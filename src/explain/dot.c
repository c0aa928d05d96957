/* explain/dot.c: plan -> graphviz. A kernel is a box around the values that it computes, a phase a
 * box within it. Inputs are at the top, outputs at the bottom; what kernels leave for each other
 * lies between their boxes. A value is drawn where the program names it, where it is reduced or
 * stored, and where two others are made of it; the rest shows in the formulas. */
#include "explain/dot.h"
#include "explain/walk.h"

#include <string.h>

#define INPUT_STYLE "style=filled, fillcolor=\"#e8e8e8\""
#define OUTPUT_STYLE "style=\"filled,bold\", fillcolor=\"#e8e8e8\""
#define SLOT_STYLE "shape=cylinder, style=filled, fillcolor=\"#fff3b0\""

static const char *const kind_colours[] = {
    [KIND_INNER] = "#a9d3f5", [KIND_OUTER] = "#ffbf80", [KIND_PARTIAL_OUTER] = "#ffd9a8",
    [KIND_FULL] = "#f5a9a0",  [KIND_MIXED] = "#d9b8ea",
};
static const char *const kind_meanings[] = {
    [KIND_INNER] = "inner reduction: within a row",
    [KIND_OUTER] = "outer reduction: over all rows",
    [KIND_PARTIAL_OUTER] = "partial outer reduction: over some of the row axes",
    [KIND_FULL] = "full reduction: to a single number",
    [KIND_MIXED] = "mixed reduction: over rows and columns",
};

typedef struct {
    Text *out;
    const Plan *plan;
    const Graph *g;
    uint32_t *seen; /* by node id: the arrows that last came by */
    Node *pending;  /* values that arrows may come from, the next one last */
    int pending_count;
    const int *users;              /* by node id: how many values are made of it */
    const Reduction **reductions;  /* by node id; NULL: it is none */
    const Persistent **persistent; /* by node id; NULL: it is not */
    bool kinds[KIND_MIXED + 1];    /* which kinds of reductions there are */
} Drawing;

/* Text inside a dot string: quotes and backslashes escaped, long ones cut. */
static const char *escape(Arena *arena, const char *text)
{
    enum { LONGEST = 60 };
    size_t length = strlen(text), used = 0;
    bool cut = length > LONGEST;
    if (cut) length = LONGEST;
    char *out = arena_alloc(arena, 2 * length + 8);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\') out[used++] = '\\';
        out[used++] = text[i] == '\n' ? ' ' : text[i];
    }
    memcpy(out + used, cut ? "..." : "", cut ? 4 : 1);
    return out;
}

static Drawing begin_drawing(Text *out, const Plan *plan)
{
    const Analysis *a = plan->analysis;
    const Graph *g = a->graph;
    const int count = g->nodes.count;
    const bool *live = graph_live(g);
    int *users = NEW_ARRAY(out->arena, int, count);
    for (uint32_t id = 1; id < (uint32_t)count; id++)
        for (int i = 0; live[id] && i < op_info[g->nodes.data[id].op].arity; i++)
            users[arg(g, (Node){id}, i).id]++;
    Drawing d = {.out = out, .plan = plan, .g = g, .users = users};
    d.seen = NEW_ARRAY(out->arena, uint32_t, count);
    d.pending = NEW_ARRAY(out->arena, Node, count);
    d.reductions = NEW_ARRAY(out->arena, const Reduction *, count);
    d.persistent = NEW_ARRAY(out->arena, const Persistent *, count);
    for (int i = 0; i < a->reduction_count; i++) {
        d.reductions[a->reductions[i].node.id] = &a->reductions[i];
        d.kinds[a->reductions[i].kind] = true;
    }
    for (int i = 0; i < a->persistent_count; i++)
        d.persistent[a->persistent[i].node.id] = &a->persistent[i];
    return d;
}

/* "x : bf16[M, N]" */
static const char *typed_name(const Drawing *d, const char *name, DType dtype, const char *axes)
{
    return escape(d->out->arena,
                  arena_format(d->out->arena, "%s : %s%s", name, dtype_info[dtype].fuse, axes));
}

/* "xhat = (x - mean) * rstd" */
static const char *value_label(const Drawing *d, Node n)
{
    const char *text = brief_text(d->out->arena, d->g, n), *name = node(d->g, n)->name;
    bool is_named = name && node(d->g, n)->op != OP_PARAM;
    return escape(d->out->arena,
                  is_named ? arena_format(d->out->arena, "%s = %s", name, text) : text);
}

/* ---- inputs, outputs, what passes between kernels ---- */

static void draw_inputs(const Drawing *d, const bool *live)
{
    Arena *arena = d->out->arena;
    for (uint32_t id = 1; id < (uint32_t)d->g->nodes.count; id++) {
        const NodeInfo *info = &d->g->nodes.data[id];
        if (!live[id] || info->op != OP_PARAM) continue;
        const Param *p = &d->g->params.data[info->param];
        const Persistent *kept = d->persistent[id];
        const char *axes = p->scalar ? "" : axes_text(arena, d->g, p->axes);
        const char *more = kept ? arena_format(arena, "\\npersistent: %lld bytes a row",
                                               (long long)kept->bytes_per_row)
                                : "";
        line(d->out, "i%u [label=\"%s%s\", " INPUT_STYLE "%s];", id,
             typed_name(d, p->name, p->dtype, axes), more, kept ? ", peripheries=2" : "");
    }
}

static void draw_outputs(const Drawing *d)
{
    block (d->out, "subgraph") {
        line(d->out, "rank=sink;");
        for (int i = 0; i < d->g->outputs.count; i++) {
            const Output *o = &d->g->outputs.data[i];
            if (o->value.id)
                line(d->out, "o%d [label=\"%s\", " OUTPUT_STYLE "];", i,
                     typed_name(d, o->name, o->dtype, axes_text(d->out->arena, d->g, o->axes)));
        }
    }
}

/* What a part of the workspace holds beside values for other kernels; "": nothing. */
static const char *slot_note(const Drawing *d, int slot)
{
    const Plan *plan = d->plan;
    for (int i = 0; i < plan->kernel_count; i++)
        if (plan->kernels[i].mailbox == slot) return "\\nmailbox of the CTAs that share a row";
    const int by = plan->launch.slots[slot].copies_kernel;
    if (by < 0) return "";
    const Kernel *k = &plan->kernels[by];
    return k->kept ? arena_format(d->out->arena, "\\npartials, one for each part of each %s",
                                  names_text(d->out->arena, d->g, k->kept))
                   : arena_format(d->out->arena, "\\npartials, one for each %s", sharers_name(k));
}

static void draw_slots(const Drawing *d)
{
    for (int i = 0; i < d->plan->launch.slot_count; i++) {
        const LaunchSlot *slot = &d->plan->launch.slots[i];
        const char *axes = axes_text(d->out->arena, d->g, slot->axes);
        line(d->out, "s%d [label=\"%s%s\", " SLOT_STYLE "];", i,
             typed_name(d, slot->name, slot->dtype, axes), slot_note(d, i));
    }
}

/* ---- kernels ---- */

static bool has_store(const Kernel *k, Node n)
{
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].node.id == n.id) return true;
    return false;
}

/* Whether a kernel's box has a node for a value. */
static bool is_drawn(const Drawing *d, const Kernel *k, Node n)
{
    if (k->clears >= 0) return false;
    const Accumulator *acc = accumulator_of(k, n);
    if (acc) return k->finishes >= 0 || acc->slot >= 0;
    if (has_store(k, n)) return true;
    const NodeInfo *info = node(d->g, n);
    return k->computed[n.id] && op_info[info->op].class != CLASS_LEAF &&
           (info->name || is_reduction(d->g, n) || d->users[n.id] > 1);
}

static int phase_of(const Kernel *k, Node n)
{
    if (k->phases <= 1) return 0;
    const Accumulator *acc = accumulator_of(k, n);
    const InnerReduction *inner = inner_of(k, n);
    const int phase = acc ? acc->phase : inner ? inner->phase : k->phase[n.id];
    return phase < 0 ? 0 : phase < k->phases ? phase : k->phases - 1;
}

static void draw_value(const Drawing *d, int index, Node n)
{
    const Kernel *k = &d->plan->kernels[index];
    const Reduction *reduction = d->reductions[n.id];
    const char *label = value_label(d, n);
    if (k->finishes >= 0 && accumulator_of(k, n))
        line(d->out, "k%d_%u [label=\"%s\\nadds the partials\", fillcolor=\"%s\"];", index, n.id,
             label, reduction ? kind_colours[reduction->kind] : "white");
    else if (reduction && (inner_of(k, n) || accumulator_of(k, n)))
        line(d->out, "k%d_%u [label=\"%s\\n%s\", fillcolor=\"%s\"];", index, n.id, label,
             kind_name(reduction->kind), kind_colours[reduction->kind]);
    else
        line(d->out, "k%d_%u [label=\"%s\"];", index, n.id, label);
}

static void draw_phase(const Drawing *d, int index, int phase)
{
    const Kernel *k = &d->plan->kernels[index];
    for (uint32_t id = 1; id < (uint32_t)d->g->nodes.count; id++)
        if (is_drawn(d, k, (Node){id}) && phase_of(k, (Node){id}) == phase)
            draw_value(d, index, (Node){id});
}

static void draw_kernel(const Drawing *d, int index)
{
    const Kernel *k = &d->plan->kernels[index];
    block (d->out, "subgraph cluster_%d", index) {
        line(
            d->out,
            "label=\"kernel %s: %s\"; labelloc=t; style=\"filled,rounded\"; fillcolor=\"#e6eff7\";",
            k->name, family_name(k->family));
        if (k->clears >= 0) line(d->out, "k%d [label=\"zeroes the mailbox\"];", index);
        if (k->phases <= 1) draw_phase(d, index, 0);
        for (int phase = 0; phase < k->phases && k->phases > 1; phase++)
            block (d->out, "subgraph cluster_%d_%d", index, phase) {
                line(d->out, "label=\"phase %d\"; style=\"filled,dashed\"; fillcolor=\"#f8fafc\";",
                     phase);
                draw_phase(d, index, phase);
            }
    }
}

/* ---- arrows ---- */

/* Puts off a value until the arrows that come before it are drawn; each only once for a node. */
static void put_off(Drawing *d, uint32_t arrows, Node n)
{
    if (d->seen[n.id] == arrows) return;
    d->seen[n.id] = arrows;
    d->pending[d->pending_count++] = n;
}

/* The arrow from `from` to a node of a kernel; false: what `from` is made of has the arrows. */
static bool draw_arrow(const Drawing *d, int index, Node from, Node to)
{
    const Kernel *k = &d->plan->kernels[index];
    const Load *load = load_of(k, from);
    const InnerReduction *inner = inner_of(k, to);
    if (load && load->slot >= 0)
        line(d->out, "s%d -> k%d_%u;", load->slot, index, to.id);
    else if (node(d->g, from)->op == OP_PARAM)
        line(d->out, "i%u -> k%d_%u;", from.id, index, to.id);
    else if (inner && inner->partner.id == from.id)
        line(d->out, "k%d_%u -> k%d_%u [style=dashed, label=\" together\"];", index, from.id, index,
             to.id);
    else if (from.id != to.id && is_drawn(d, k, from) && phase_of(k, from) <= phase_of(k, to))
        line(d->out, "k%d_%u -> k%d_%u;", index, from.id, index, to.id);
    else
        return false;
    return true;
}

/* To a node of a kernel, from what the kernel reads or has computed of its operand `first`. What
 * has no node is passed over, and so is what belongs to a later phase: a reduction that is computed
 * together with another needs only what the other is of. */
static void draw_arrows_from(Drawing *d, int index, Node first, Node to)
{
    const uint32_t arrows = (uint32_t)(index * d->g->nodes.count) + to.id;
    put_off(d, arrows, first);
    while (d->pending_count) {
        const Node from = d->pending[--d->pending_count];
        if (draw_arrow(d, index, from, to)) continue;
        for (int i = op_info[node(d->g, from)->op].arity; i-- > 0;)
            put_off(d, arrows, arg(d->g, from, i));
    }
}

/* Partials, from the kernel that leaves them or to the one that adds them. */
static void draw_partials(const Drawing *d, int index, const Accumulator *acc)
{
    const Kernel *k = &d->plan->kernels[index];
    const Accumulator *mean = acc->mean.id ? accumulator_of(k, acc->mean) : NULL;
    const int slots[] = {acc->slot, acc->shift_slot, mean ? mean->slot : -1};
    for (int i = 0; i < 3; i++) {
        if (slots[i] < 0) continue;
        if (k->finishes >= 0)
            line(d->out, "s%d -> k%d_%u;", slots[i], index, acc->node.id);
        else if (i < 2)
            line(d->out, "k%d_%u -> s%d;", index, acc->node.id, slots[i]);
    }
}

static bool is_finished(const Plan *plan, int index)
{
    for (int i = 0; i < plan->kernel_count; i++)
        if (plan->kernels[i].finishes == index) return true;
    return false;
}

static void draw_stores(const Drawing *d, int index)
{
    const Plan *plan = d->plan;
    const Kernel *k = &plan->kernels[index];
    for (int i = 0; i < k->store_count; i++) {
        const Store *store = &k->stores[i];
        if (store->result && is_finished(plan, index)) continue;
        if (store->slot >= 0) line(d->out, "k%d_%u -> s%d;", index, store->node.id, store->slot);
        for (int o = 0; store->tensor >= 0 && o < d->g->outputs.count; o++)
            if (!strcmp(d->g->outputs.data[o].name, plan->launch.tensors[store->tensor].name))
                line(d->out, "k%d_%u -> o%d;", index, store->node.id, o);
    }
}

static void draw_arrows(Drawing *d, int index)
{
    const Kernel *k = &d->plan->kernels[index];
    if (k->clears >= 0) line(d->out, "k%d -> s%d;", index, d->plan->kernels[k->clears].mailbox);
    for (uint32_t id = 1; id < (uint32_t)d->g->nodes.count; id++) {
        const Node n = {id};
        if (!is_drawn(d, k, n)) continue;
        const Accumulator *acc = accumulator_of(k, n);
        if (acc) draw_partials(d, index, acc);
        if (!acc)
            draw_arrows_from(d, index, n, n);
        else if (k->finishes < 0)
            draw_arrows_from(d, index, operand_of(d->g, acc), n);
    }
    draw_stores(d, index);
}

/* ---- the legend ---- */

static void draw_legend_line(const Drawing *d, const char *colour, const char *meaning)
{
    line(d->out, "<tr><td bgcolor=\"%s\">      </td><td align=\"left\">%s</td></tr>", colour,
         meaning);
}

static void draw_legend(const Drawing *d)
{
    line(d->out, "labelloc=b; label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"2\">");
    draw_legend_line(d, "#e8e8e8", "input, or with a bold border output");
    for (int i = 0; i <= KIND_MIXED; i++)
        if (d->kinds[i]) draw_legend_line(d, kind_colours[i], kind_meanings[i]);
    if (d->plan->launch.slot_count)
        draw_legend_line(d, "#fff3b0", "workspace: from one kernel to another");
    if (d->plan->analysis->persistent_count)
        line(
            d->out,
            "<tr><td><table border=\"1\" cellborder=\"1\" cellspacing=\"2\"><tr>"
            "<td bgcolor=\"#e8e8e8\">  </td></tr></table></td>"
            "<td align=\"left\">to keep on chip (persistent): what more than one phase needs</td></tr>");
    line(d->out, "</table>>;");
}

void print_dot(Text *out, const Plan *plan)
{
    Drawing d = begin_drawing(out, plan);
    block (out, "strict digraph \"%s\"", d.g->name) {
        line(out, "bgcolor=white; fontname=\"sans-serif\"; fontsize=11; labeljust=l;");
        line(
            out,
            "node [fontname=\"monospace\", fontsize=11, shape=box, style=\"rounded,filled\", fillcolor=white];");
        line(out, "edge [fontname=\"sans-serif\", fontsize=11];");
        draw_legend(&d);
        draw_inputs(&d, graph_live(d.g));
        for (int i = 0; i < plan->kernel_count; i++) draw_kernel(&d, i);
        draw_slots(&d);
        draw_outputs(&d);
        for (int i = 0; i < plan->kernel_count; i++) draw_arrows(&d, i);
    }
}
