/* codegen/results.c: what happens to a column's sums once they are complete: means, values that
 * depend on them (schedule/finished.c), and stores. Finish kernels print this, and so do kernels whose
 * CTAs take whole groups of rows. */
#include "codegen/emit.h"

#include <string.h>

static void emit_result_store(Emitter *e, const Store *store)
{
    line(e->out, "%s = %s;", element(e, store_pointer(e, store), store->tensor, store->axes),
         stored_value(e, store));
}

/* From here on the names of sums mean their results. A mean that is only stored needs no name. */
static void name_results(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        Node n = acc->node;
        const NodeInfo *info = node(e->g, n);
        if (has_squares(acc)) emit_moments_result(e, acc);
        if (has_squares(acc) || (is_satellite(acc) && acc->slot < 0)) continue;
        e->names[n.id] = acc->name;
        if (info->op == OP_MEAN) {
            const char *mean =
                arena_format(e->arena, "%s / %s", acc->name, count_text(e, info->reduced));
            e->names[n.id] = is_store_only(e, n) ? mean : NULL;
            if (!is_store_only(e, n) && e->users[n.id])
                line(e->out, "const %s %s = %s;", type_cuda(info->type), node_name(e, n), mean);
        }
        make_local(e, n);
    }
}

void emit_results(Emitter *e)
{
    name_results(e);
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        bool own = e->k->computed[i] || find_load(e, n);
        if (own && !e->local[i] && e->users[i] > 0 && wants_line(e, n) && !is_store_only(e, n))
            emit_value(e, n);
    }
    for (int i = 0; i < e->k->store_count; i++) emit_result_store(e, &e->k->stores[i]);
}

/* The same in another kernel, for a finish kernel: with names of its own. */
void emit_results_of(Emitter *e, const Kernel *finish)
{
    const int count = e->g->nodes.count;
    Kernel k = *finish;
    Emitter own = *e;
    k.accumulators = e->k->accumulators;
    own.k = &k;
    own.line = e->entry == &e->launch->entry ? e->launch->dense : 0;
    own.names = NEW_ARRAY(e->arena, const char *, count);
    own.local = NEW_ARRAY(e->arena, bool, count);
    own.users = NEW_ARRAY(e->arena, int, count);
    own.rests = NEW_ARRAY(e->arena, const char *, count);
    own.serves = NEW_ARRAY(e->arena, bool, count);
    own.breaks = NEW_ARRAY(e->arena, bool, count);
    count_users(&own);
    break_lines(&own);
    emit_results(&own);
    e->used = own.used;
    e->gaps = own.gaps;
    e->numbers = own.numbers;
    e->next = own.next;
}

/* What a column's results are made of beside its sums: it arrives while those are added. */
static const char *emit_result_loads(Emitter *e, const char *stores)
{
    const char *flag = unique_name(e, "stores");
    line(e->out, "const bool %s = %s;", flag, stores);
    for (int i = 0; i < e->k->load_count; i++) {
        Node n = e->k->loads[i].node;
        const DTypeInfo *stored = &dtype_info[e->k->loads[i].dtype];
        const char *type = type_cuda(stored->type), *from = expression(e, n, 0);
        bool same = !strcmp(type, stored->cuda);
        line(e->out, "const %s %s = %s ? %s%s : 0;", type, node_name(e, n), flag,
             same ? "" : arena_format(e->arena, "(%s)", type), from);
        make_local(e, n);
    }
    return flag;
}

/* Turns to a text that comes `deeper` levels within another. */
static Text *turn_to_text(Emitter *e, const Text *within, int deeper)
{
    e->out = text_new(e->arena);
    e->out->indent = within->indent + deeper;
    return e->out;
}

/* Prints `sums` and, of the threads for which `stores` holds, the results. */
void emit_sums_and_results(Emitter *e, const char *stores, void (*sums)(Emitter *e))
{
    Text *kernel = e->out, *loads = turn_to_text(e, kernel, 0);
    if (e->k->load_count) stores = emit_result_loads(e, stores);
    const Text *added = turn_to_text(e, kernel, 0);
    sums(e);
    const Text *results = turn_to_text(e, kernel, 1);
    emit_results(e);
    e->out = kernel;
    if (e->k->load_count) {
        Text *both = text_new(e->arena);
        text_print(both, "%s%s", text_string(loads), text_string(results));
        emit_column_coords(e, both);
        text_put(e->out, loads->data, loads->length);
        blank_line(e->out);
    }
    text_put(e->out, added->data, added->length);
    block (e->out, "if (%s)", stores) {
        if (!e->k->load_count) emit_column_coords(e, results);
        text_put(e->out, results->data, results->length);
    }
}
