/* codegen/comment.c: the comment above a kernel: its place in the program, its formulas, and the
 * table of codegen/launch_table.c. */
#include "codegen/emit.h"

#include <string.h>

static void emit_origin(Emitter *e)
{
    const Graph *g = e->g;
    int first = 0, last = 0, column = 0;
    source_place(g->span.source, g->span.begin, &first, &column);
    source_place(g->span.source, g->span.end ? g->span.end - 1 : 0, &last, &column);
    line(e->out, "// %s (%s), from %s:%d%s", e->k->name, family_name(e->k->family),
         shell_word(e->arena, g->span.source->name), first,
         last > first ? arena_format(e->arena, "-%d", last) : "");
}

/* Marks the nodes whose formulas the comment gives: `tops`, and every named value that this kernel
 * computes and that one of these formulas mentions. Operands have smaller ids than their users. */
static bool *find_mentioned(Emitter *e, const bool *tops)
{
    const Graph *g = e->g;
    bool *mentioned = NEW_ARRAY(e->arena, bool, g->nodes.count);
    memcpy(mentioned, tops, sizeof *tops * (size_t)g->nodes.count);
    for (int i = g->nodes.count - 1; i > 0; i--) {
        const NodeInfo *info = &g->nodes.data[i];
        for (int k = 0; mentioned[i] && k < op_info[info->op].arity; k++) {
            const NodeInfo *of = node(g, info->args[k]);
            mentioned[info->args[k].id] |= op_info[of->op].class != CLASS_LEAF &&
                                           (!of->name || e->k->computed[info->args[k].id]);
        }
    }
    return mentioned;
}

typedef struct {
    const char *name, *formula;
} Formula;
typedef LIST(Formula) Formulas;

/* Lists stored values under the program's names, which the text may have had to change; sums,
 * and what a finish kernel stores twice, are left to others. An output that is a value of
 * another name has that name for its formula. Marks the listed nodes in `tops`, and in `defined`
 * those whose own name has its formula. */
static void list_stores(Emitter *e, Formulas *list, bool *tops, bool *defined)
{
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        const char *name =
            store->tensor >= 0 ? e->plan->launch.tensors[store->tensor].name : store->name;
        const char *value = node(e->g, store->node)->name;
        bool alias = store->tensor >= 0 && value && strcmp(value, name) && e->k->computed &&
                     e->k->computed[store->node.id];
        bool again =
            e->k->finishes >= 0 && (tops[store->node.id] || is_reduction(e->g, store->node));
        tops[store->node.id] = true;
        defined[store->node.id] |= !alias;
        if (!again)
            *list_push(e->arena, list) =
                (Formula){name, alias ? value : node_text(e->arena, e->g, store->node, true)};
    }
}

static void list_sums(Emitter *e, Formulas *list, bool *tops, bool *defined)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        const char *name = node(e->g, acc->node)->name;
        tops[acc->node.id] = defined[acc->node.id] = true;
        if (e->k->kept || acc->slot < 0) continue;
        const char *over =
            e->k->finishes >= 0
                ? ", from the partials"
                : arena_format(e->arena, ", over the rows of this %s", sharers_name(e->k));
        *list_push(e->arena, list) = (Formula){
            name ? name : acc->slot_name,
            arena_format(e->arena, "%s%s", node_text(e->arena, e->g, acc->node, true), over)};
    }
}

/* Lists the named values that the formulas so far mention and do not define. */
static void list_definitions(Emitter *e, Formulas *list, const bool *tops, const bool *defined)
{
    const bool *mentioned = find_mentioned(e, tops);
    for (int i = 1; i < e->g->nodes.count; i++) {
        const char *name = e->g->nodes.data[i].name;
        if (mentioned[i] && !defined[i] && name)
            *list_push(e->arena, list) =
                (Formula){name, node_text(e->arena, e->g, (Node){(uint32_t)i}, true)};
    }
}

static int widest_name(const Formulas *list)
{
    enum { MOST = 16 };
    int widest = 0;
    for (int i = 0; i < list->count; i++) {
        const int length = (int)strlen(list->data[i].name);
        if (length > widest && length <= MOST) widest = length;
    }
    return widest;
}

static void emit_formulas(Emitter *e)
{
    bool *tops = NEW_ARRAY(e->arena, bool, e->g->nodes.count),
         *defined = NEW_ARRAY(e->arena, bool, e->g->nodes.count);
    Formulas list = {0};
    list_stores(e, &list, tops, defined);
    list_sums(e, &list, tops, defined);
    const int results = list.count;
    if (e->k->clears < 0) list_definitions(e, &list, tops, defined);
    const int width = widest_name(&list);
    for (int i = 0; i < list.count; i++) {
        if (i == results) line(e->out, "// where");
        line(e->out, "//   %-*s = %s", width, list.data[i].name, list.data[i].formula);
    }
}

static void emit_strided_comment(Emitter *e)
{
    const AxisSet merged = e->launch->collapsed | e->launch->dense;
    line(
        e->out,
        "// %s (%s): %s for tensors whose %s,\n"
        "// with a stride for each axis of %s. Grid, block, cluster and shared memory are the same; the\n"
        "// arguments are those below.",
        e->entry->name, family_name(e->k->family), e->launch->entry.name,
        !e->launch->dense ? arena_format(e->arena, "%ss are not evenly apart", e->row)
        : e->launch->collapsed
            ? arena_format(e->arena, "%ss are not evenly apart, or columns not side by side",
                           e->row)
            : "columns do not lie side by side",
        axes_text(e->arena, e->g, merged));
}

void emit_comment(Emitter *e)
{
    if (e->entry == &e->launch->strided) {
        emit_strided_comment(e);
        return;
    }
    emit_origin(e);
    if (e->k->clears >= 0)
        line(e->out, "//   zeroes the mailbox of %s", e->plan->kernels[e->k->clears].name);
    emit_formulas(e);
    line(e->out, "//");
    emit_launch_table(e);
}
