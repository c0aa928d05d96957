/* codegen/row_pipeline.c: the row pipeline: the last phase of a row runs after the first phase of
 * the next row, or of the row after that, so that the row does not wait at the reduction between
 * them. The last phase becomes a function of the row, its stage and what the first phase hands
 * over. */
#include "codegen/emit.h"

/* Whether a value may be handed from a row's first phase to its last: the row's scalars and
 * reduction results. */
static bool is_row_result(const Emitter *e, Node n)
{
    const Load *load = find_load(e, n);
    if (load) return is_ahead(e, load);
    if (!e->k->computed[n.id]) return false;
    /* CTAs of a cluster collect a result where it is used. */
    if (is_reduction(e->g, n)) return e->k->cluster == 1;
    return wants_row_line(e, n) && e->k->phase[n.id] == 0 && depends_on_row(e, n);
}

static Carried make_carried(Emitter *e, Node n)
{
    const char *name = node_name(e, n);
    Carried c = {n, unique_name(e, arena_format(e->arena, "last_%s", name)), NULL};
    if (e->k->lag > 1) c.before = unique_name(e, arena_format(e->arena, "before_%s", name));
    return c;
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
    if (splits_rows(e)) emit_split(e, "row", e->k->rows);
    if (e->k->cluster > 1) {
        declare_received(e, 0);
        line(e->out,
             is_grouped(e->k) ? "group_collect(news, collected, %s);"
                              : "cluster_collect(exchange, collected, %s);",
             received_list(e, 0));
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
        *list_push(e->arena, &e->carried) = make_carried(e, results.data[i]);
        text_print(parameters, ", %s %s", type_cuda(node(e->g, results.data[i])->type), name);
    }
    bool copy_warp = has_copy_warp(e->k);
    line(e->out, "const auto finish_row = [&](%s, long long row%s) {",
         copy_warp ? "int stage" : "const Stage &current", text_string(parameters));
    e->out->indent++;
    if (copy_warp) line(e->out, "const Stage &current = ring[stage];");
    text_put(e->out, body->data, body->length);
    if (copy_warp) emit_stage_release(e);
    e->out->indent--;
    line(e->out, "};");
}

/* The variable of the row before, or of the one before that. */
static const char *carried_name(const Emitter *e, bool before, int index)
{
    const Carried *c = &e->carried.data[index];
    return before ? c->before : c->last;
}

static void declare_carried(Emitter *e, bool before, const char *what)
{
    const char *which = before ? "before" : "last";
    if (has_copy_warp(e->k))
        line(e->out, "int %s = -1;    // the stage of %s", which, what);
    else
        line(e->out, "const Stage *%s = nullptr;    // %s", which, what);
    line(e->out, "long long %s_row = 0;", which);
    for (int i = 0; i < e->carried.count; i++)
        line(e->out, "%s %s = 0;", type_cuda(node(e->g, e->carried.data[i].node)->type),
             carried_name(e, before, i));
}

void emit_pipeline_start(Emitter *e)
{
    emit_finish_row(e);
    declare_carried(e, false, "the row before, whose last phase is still to come");
    if (e->k->lag > 1) declare_carried(e, true, "the row before that one");
}

static void emit_finish_call(Emitter *e, bool before)
{
    const char *which = before ? "before" : "last";
    bool copy_warp = has_copy_warp(e->k);
    Text *arguments = text_new(e->arena);
    for (int i = 0; i < e->carried.count; i++)
        text_print(arguments, ", %s", carried_name(e, before, i));
    line(e->out, copy_warp ? "if (%s >= 0)" : "if (%s)", which);
    line(e->out, "    finish_row(%s%s, %s_row%s);", copy_warp ? "" : "*", which, which,
         text_string(arguments));
}

/* The row before becomes the one before that. */
static void emit_shift(Emitter *e)
{
    line(e->out, "before = last;");
    line(e->out, "before_row = last_row;");
    for (int i = 0; i < e->carried.count; i++)
        line(e->out, "%s = %s;", carried_name(e, true, i), carried_name(e, false, i));
}

/* The phases that are left of the last rows. */
void emit_pipeline_end(Emitter *e)
{
    if (e->k->lag > 1) emit_finish_call(e, true);
    emit_finish_call(e, false);
}

/* A group's CTAs send results through the same queues as a row's stores, so they send first. Other
 * kernels finish the older row while their warps exchange. */
static void emit_exchanges(Emitter *e, const char *list)
{
    bool before = e->k->lag > 1;
    line(e->out, "row_post<%s>(scratch, parity, %s);", team_threads(e), list);
    if (!is_grouped(e->k)) emit_finish_call(e, before);
    emit_next_landed(e, "row_collect");
    line(e->out, "row_collect<%s>(scratch, parity, %s);", team_threads(e), list);
    if (is_grouped(e->k)) {
        line(e->out, "group_send(boxes, news, sent, %s);", list);
        emit_finish_call(e, before);
    } else if (e->k->cluster > 1) {
        line(e->out, "cluster_send(exchange, sent, %s);", list);
    } else {
        finish_reductions(e, 0);
    }
}

void emit_pipelined_phases(Emitter *e)
{
    emit_row_values(e, 0, true);
    emit_row_accumulators(e, 0);
    declare_reductions(e, 0);
    forget_hoisted(e, 0);
    emit_pass(e, 0);
    emit_exchanges(e, reduce_list(e, 0));
    emit_row_stores(e, 0);
    if (e->k->lag > 1) emit_shift(e);
    line(e->out, has_copy_warp(e->k) ? "last = stage;" : "last = &current;");
    line(e->out, "last_row = row;");
    for (int i = 0; i < e->carried.count; i++)
        line(e->out, "%s = %s;", carried_name(e, false, i), node_name(e, e->carried.data[i].node));
}
