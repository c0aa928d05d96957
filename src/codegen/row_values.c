/* codegen/row_values.c: values that a row has once, not for each column: loading them, before the
 * row or a row ahead, computing them, storing them, and the coordinates that they are found by. */
#include "codegen/emit.h"

/* The condition of the thread that acts for its row. */
static const char *row_guard(Emitter *e)
{
    NameList all = {0};
    *list_push(e->arena, &all) = arena_format(e->arena, "%s == 0", e->thread);
    if (rows_share_warps(e->k)) *list_push(e->arena, &all) = "has_row";
    if (e->k->beside)
        *list_push(e->arena, &all) =
            arena_format(e->arena, "%s == 0", e->coords[fastest_column(e->k)]);
    if (has_column_parts(e->k))
        *list_push(e->arena, &all) =
            has_parts_in_order(e->k) ? "blockIdx.x % slices == 0" : "blockIdx.y == 0";
    if (e->k->cluster > 1)
        *list_push(e->arena, &all) = arena_format(e->arena, "%s == 0", rank_text(e));
    return join(e->arena, &all, " && ");
}

bool depends_on_row(const Emitter *e, Node n)
{
    return (node(e->g, n)->axes & (e->k->rows | e->k->kept)) != 0;
}

void emit_row_loads(Emitter *e, bool rows)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->access == ACCESS_ROW && depends_on_row(e, load->node) == rows &&
            e->users[load->node.id] > 0 && !e->local[load->node.id])
            emit_value(e, load->node);
    }
}

/* With a ring, scalars of rows are read ahead too, through the ring or a row ahead into a register:
 * a load at the row's start would cost a whole memory latency. */
bool is_ahead(const Emitter *e, const Load *load)
{
    return load->access == ACCESS_ROW && depends_on_row(e, load->node) &&
           e->users[load->node.id] > 0;
}

static bool in_register(const Emitter *e, const Load *load)
{
    return is_ahead(e, load) && !is_staged(load) && e->k->stages > 0;
}

static bool any_in_register(const Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (in_register(e, &e->k->loads[i])) return true;
    return false;
}

/* `set`: the coordinates are declared already. */
static void put_split(Emitter *e, const char *item, AxisSet axes, bool set)
{
    const char *rest = item;
    for (int axis = e->g->axis_count - 1; axis >= 0; axis--) {
        AxisSet outer = axes & (((AxisSet)1 << axis) - 1);
        if (!(axes >> axis & 1) || !outer) continue;
        bool last = !(outer & (outer - 1));
        const char *next = unique_name(e, "rest");
        if (last)
            for (int i = 0; i < axis; i++)
                if (outer >> i & 1) next = e->coords[i];
        if (!set)
            line(e->out, "long long %s, %s;", next, e->coords[axis]);
        else if (!last)
            line(e->out, "long long %s;", next);
        line(e->out, "split(%s, %s, %s, %s);", rest, e->sizes[axis], next, e->coords[axis]);
        rest = next;
    }
}

void emit_split(Emitter *e, const char *item, AxisSet axes)
{
    put_split(e, item, axes, false);
}

/* Between two of these calls, coordinates are those of the row whose scalars are read ahead. */
static void turn_to_next(Emitter *e)
{
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->k->rows >> i & 1) {
            const char *other = e->coords[i];
            e->coords[i] = e->next_coords[i];
            e->next_coords[i] = other;
        }
}

bool keeps_coords(const Emitter *e)
{
    return splits_rows(e) && any_in_register(e) && !rows_share_warps(e->k);
}

void emit_coords_now(Emitter *e)
{
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->k->rows >> i & 1)
            line(e->out, "const long long %s = %s;", e->coords[i], e->next_coords[i]);
}

static void name_next(Emitter *e)
{
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->k->rows >> i & 1)
            e->next_coords[i] =
                splits_rows(e) ? unique_name(e, arena_format(e->arena, "next_%s", e->coords[i]))
                               : "next";
}

static const char *scalar_at(Emitter *e, const Load *load)
{
    const char *at = element(e, load_pointer(e, load), load->tensor, load->axes);
    return arena_format(e->arena, "next < %s ? (%s)%s : 0", e->rows,
                        type_cuda(dtype_info[load->dtype].type), at);
}

void emit_scalars_ahead(Emitter *e)
{
    if (!any_in_register(e)) return;
    line(e->out, "long long next = first_row%s;", rows_share_warps(e->k) ? " + team" : "");
    name_next(e);
    turn_to_next(e);
    if (splits_rows(e)) emit_split(e, "next", e->k->rows);
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!in_register(e, load)) continue;
        Type type = dtype_info[load->dtype].type;
        line(e->out, type == TYPE_BOOL ? "%s %s_next = %s;" : "%s %s_next = arrived(%s);",
             type_cuda(type), load->name, scalar_at(e, load));
    }
    turn_to_next(e);
}

/* Declares this row's scalars, which were read ahead. */
void emit_scalars_now(Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!is_ahead(e, load) || !(is_staged(load) || in_register(e, load))) continue;
        const char *from = is_staged(load) ? staged_scalar(e, load)
                                           : arena_format(e->arena, "%s_next", load->name);
        line(e->out, "const %s %s = %s;", type_cuda(dtype_info[load->dtype].type),
             node_name(e, load->node), from);
        make_local(e, load->node);
    }
}

void emit_scalars_next(Emitter *e)
{
    if (!any_in_register(e)) return;
    line(e->out, "next += row_step;");
    turn_to_next(e);
    if (splits_rows(e)) put_split(e, "next", e->k->rows, true);
    for (int i = 0; i < e->k->load_count; i++)
        if (in_register(e, &e->k->loads[i]))
            line(e->out, "%s_next = %s;", e->k->loads[i].name, scalar_at(e, &e->k->loads[i]));
    turn_to_next(e);
}

bool wants_row_line(const Emitter *e, Node n)
{
    return e->k->computed[n.id] && !is_reduction(e->g, n) && !is_column_value(e, n) &&
           !e->local[n.id] && e->users[n.id] > 0 && node(e->g, n)->op != OP_PARAM &&
           wants_line(e, n) && !is_store_only(e, n);
}

/* Computes values without a column that become known at the start of a phase. */
void emit_row_values(Emitter *e, int phase, bool rows)
{
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!wants_row_line(e, n) || e->k->phase[i] != phase) continue;
        if (phase > 0 || depends_on_row(e, n) == rows) emit_value(e, n);
    }
}

/* Stores the row's values, all under one condition. */
void emit_row_stores(Emitter *e, int phase)
{
    NameList stores = {0};
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (store->access != ACCESS_ROW || store->phase != phase || store->result) continue;
        const char *value = stored_value(e, store);
        *list_push(e->arena, &stores) =
            arena_format(e->arena, "%s = %s;",
                         element(e, store_pointer(e, store), store->tensor, store->axes), value);
    }
    if (!stores.count) return;
    line(e->out, stores.count > 1 ? "if (%s) {" : "if (%s)", row_guard(e));
    for (int i = 0; i < stores.count; i++) line(e->out, "    %s", stores.data[i]);
    if (stores.count > 1) line(e->out, "}");
}

/* Adds to accumulators of values without a column: one thread a row adds. */
void emit_row_accumulators(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        Node from = operand_of(e->g, acc);
        if (acc->phase != phase || is_column_value(e, from) || is_satellite(acc)) continue;
        if (has_squares(acc)) {
            block (e->out, "if (%s)", row_guard(e))
                add_row_to_moments(e, acc, expression(e, from, 0));
            continue;
        }
        line(e->out, "if (%s)", row_guard(e));
        e->out->indent++;
        emit_accumulate(e, acc->node, acc->name, expression(e, from, 0));
        e->out->indent--;
    }
}
