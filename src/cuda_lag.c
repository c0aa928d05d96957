/* cuda_lag.c: the last phase of a row after the first phase of the next row, so that the
 * reduction between them is not waited for. The last phase becomes a function of the row,
 * its stage and what the first phase hands over. */
#include "cuda_emit.h"

/* What a row's first phase may hand to its last: the row's scalars and reduction results.
 */
static bool is_row_result(const Emitter *e, Node n)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (e->k->loads[i].node.id == n.id) return is_ahead(e, &e->k->loads[i]);
    if (!e->k->computed[n.id]) return false;
    if (is_reduction(e->g, n))
        return e->k->cluster == 1; /* in a cluster it is collected where it is needed */
    return wants_row_line(e, n) && e->k->phase[n.id] == 0 && depends_on_row(e, n);
}

/* Prints the last phase as a function of a row, its stage and what the first phase hands
 * over. */
static void emit_finish_row(Emitter *e)
{
    LIST(Node) results = {0};
    Text *kernel = e->out;
    int scope = open_scope(e);
    for (int i = 1; i < e->g->nodes.count; i++)
        if (is_row_result(e, (Node){(uint32_t)i}))
            *list_push(e->arena, &results) = (Node){(uint32_t)i};
    for (int i = 0; i < results.count; i++) make_local(e, results.data[i]);
    e->out = text_new(e->arena);
    e->out->indent = kernel->indent + 1;
    if (e->k->rows & (e->k->rows - 1)) emit_split(e, "row", e->k->rows);
    if (e->k->cluster > 1) {
        declare_reductions(e, 0);
        line(e->out, "cluster_collect(exchange, collected, %s);", reduce_list(e, 0));
        finish_reductions(e, 0);
    }
    emit_phase(e, 1);
    Text *body = e->out;
    e->out = kernel;
    close_scope(e, scope);
    Text *parameters = text_new(e->arena);
    for (int i = 0; i < results.count; i++) {
        const char *name = node_name(e, results.data[i]);
        if (!mentions(text_string(body), name)) continue;
        *list_push(e->arena, &e->carried) = results.data[i];
        text_print(parameters, ", %s %s", type_cuda(node(e->g, results.data[i])->type),
                   name);
    }
    bool copy_warp = e->k->copy_warp;
    line(e->out, "const auto finish_row = [&](%s, long long row%s) {",
         copy_warp ? "int stage" : "const Stage &now", text_string(parameters));
    e->out->indent++;
    if (copy_warp) line(e->out, "const Stage &now = ring[stage];");
    text_put(e->out, body->data, body->length);
    if (copy_warp) emit_stage_release(e);
    e->out->indent--;
    line(e->out, "};");
}

static const char *carried_name(Emitter *e, Node n)
{
    return arena_format(e->arena, "last_%s", node_name(e, n));
}

void emit_lag_start(Emitter *e)
{
    emit_finish_row(e);
    line(
        e->out,
        e->k->copy_warp
            ? "int last = -1;    // the stage of the row before, whose last phase is still to come"
            : "const Stage *last = nullptr;    // the row before, whose last phase is to come");
    line(e->out, "long long last_row = 0;");
    for (int i = 0; i < e->carried.count; i++)
        line(e->out, "%s %s = 0;", type_cuda(node(e->g, e->carried.data[i])->type),
             carried_name(e, e->carried.data[i]));
}

void emit_finish_call(Emitter *e)
{
    Text *arguments = text_new(e->arena);
    for (int i = 0; i < e->carried.count; i++)
        text_print(arguments, ", %s", carried_name(e, e->carried.data[i]));
    line(e->out, e->k->copy_warp ? "if (last >= 0)" : "if (last)");
    line(e->out, "    finish_row(%s, last_row%s);", e->k->copy_warp ? "last" : "*last",
         text_string(arguments));
}

void emit_lagged_phases(Emitter *e)
{
    bool cluster = e->k->cluster > 1;
    emit_row_values(e, 0, true);
    emit_row_accumulators(e, 0);
    declare_reductions(e, 0);
    emit_pass(e, 0);
    const char *list = reduce_list(e, 0);
    line(e->out, "row_post<threads>(scratch, turn, %s);", list);
    emit_finish_call(e);
    line(e->out, "row_collect<threads>(scratch, turn, %s);", list);
    if (cluster)
        line(e->out, "cluster_send(exchange, sent, %s);", list);
    else
        finish_reductions(e, 0);
    emit_row_stores(e, 0);
    line(e->out, e->k->copy_warp ? "last = stage;" : "last = &now;");
    line(e->out, "last_row = row;");
    for (int i = 0; i < e->carried.count; i++)
        line(e->out, "%s = %s;", carried_name(e, e->carried.data[i]),
             node_name(e, e->carried.data[i]));
}
