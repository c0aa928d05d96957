/* codegen/kernel.c: a kernel that walks rows. In each row: per-row scalars, then phase by
 * phase a pass over the columns (load, compute, store) and the reductions that end the
 * phase. */
#include "codegen/emit.h"

#include <string.h>

/* Which thread acts for its row. */
static const char *row_guard(Emitter *e)
{
    NameList all = {0};
    *list_push(e->arena, &all) = arena_format(e->arena, "%s == 0", e->thread);
    if (rows_share_warps(e->k)) *list_push(e->arena, &all) = "has_row";
    if (e->k->column_ctas > 1)
        *list_push(e->arena, &all) =
            has_parts_in_order(e->k) ? "blockIdx.x % slices == 0" : "blockIdx.y == 0";
    if (e->k->cluster > 1)
        *list_push(e->arena, &all) = arena_format(e->arena, "%s == 0", rank_text(e));
    return join(e->arena, &all, " && ");
}

/* ---- one value a row ---- */

bool depends_on_row(const Emitter *e, Node n)
{
    return (node(e->g, n)->axes & (e->k->rows | e->k->kept)) != 0;
}

/* Reads what has one value a row (or one for all rows, where `rows` is false) and was not read
 * ahead. */
static void emit_row_loads(Emitter *e, bool rows)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->access == ACCESS_ROW && depends_on_row(e, load->node) == rows &&
            e->users[load->node.id] > 0 && !e->local[load->node.id])
            emit_value(e, load->node);
    }
}

/* With a ring, the rows' own scalars are read ahead too, for a fresh read is a whole memory
 * latency: through the ring, or a row ahead into a register. */
bool is_ahead(const Emitter *e, const Load *load)
{
    return load->access == ACCESS_ROW && depends_on_row(e, load->node) &&
           e->users[load->node.id] > 0;
}

static bool in_register(const Emitter *e, const Load *load)
{
    return is_ahead(e, load) && !load->staged && e->k->stages > 0;
}

static bool any_in_register(const Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (in_register(e, &e->k->loads[i])) return true;
    return false;
}

/* `set`: the coordinates are variables that are there already. */
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

/* Between two of these, coordinates are those of the row whose scalars are read ahead. */
static void turn_to_next(Emitter *e)
{
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->k->rows >> i & 1) {
            const char *other = e->coords[i];
            e->coords[i] = e->next_coords[i];
            e->next_coords[i] = other;
        }
}

/* Whether a row has the coordinates that its scalars were read by; not where a team without a row
 * repeats another team's. */
static bool keeps_coords(const Emitter *e)
{
    return splits_rows(e) && any_in_register(e) && !rows_share_warps(e->k);
}

static void emit_coords_now(Emitter *e)
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

static void emit_scalars_ahead(Emitter *e)
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

/* This row's scalars are those that were read ahead. */
static void emit_scalars_now(Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!is_ahead(e, load) || !(load->staged || in_register(e, load))) continue;
        const char *from =
            load->staged ? staged_scalar(e, load) : arena_format(e->arena, "%s_next", load->name);
        line(e->out, "const %s %s = %s;", type_cuda(dtype_info[load->dtype].type),
             node_name(e, load->node), from);
        make_local(e, load->node);
    }
}

static void emit_scalars_next(Emitter *e)
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

/* Values without a column that become known at the start of a phase. */
void emit_row_values(Emitter *e, int phase, bool rows)
{
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!wants_row_line(e, n) || e->k->phase[i] != phase) continue;
        if (phase > 0 || depends_on_row(e, n) == rows) emit_value(e, n);
    }
}

/* All under one condition. */
void emit_row_stores(Emitter *e, int phase)
{
    NameList stores = {0};
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (store->access != ACCESS_ROW || store->phase != phase || store->result) continue;
        const char *value =
            rounded(e, expression(e, store->node, 0), node(e->g, store->node)->type, store->dtype);
        *list_push(e->arena, &stores) =
            arena_format(e->arena, "%s = %s;",
                         element(e, store_pointer(e, store), store->tensor, store->axes), value);
    }
    if (!stores.count) return;
    line(e->out, stores.count > 1 ? "if (%s) {" : "if (%s)", row_guard(e));
    for (int i = 0; i < stores.count; i++) line(e->out, "    %s", stores.data[i]);
    if (stores.count > 1) line(e->out, "}");
}

/* Accumulators of values without a column: one thread a row adds. */
void emit_row_accumulators(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        Node from = arg(e->g, acc->node, 0);
        if (acc->phase != phase || is_column_value(e, from)) continue;
        line(e->out, "if (%s)", row_guard(e));
        e->out->indent++;
        emit_accumulate(e, acc->node, acc->name, expression(e, from, 0));
        e->out->indent--;
    }
}

/* ---- the row ---- */

static void emit_inverses(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        if (!r->inverse || r->phase + 1 != phase) continue;
        const char *name = node_name(e, r->node);
        const char *inverse = unique_name(e, arena_format(e->arena, "inverse_%s", name));
        line(e->out, "const float %s = quick_inverse(%s);", inverse, name);
        e->inverses[r->node.id] = inverse;
    }
}

void emit_phase(Emitter *e, int phase)
{
    emit_inverses(e, phase);
    emit_row_values(e, phase, true);
    emit_row_accumulators(e, phase);
    emit_resident_loads(e, phase, false);
    if (phase == 0) emit_few_fetches(e);
    if (phase == 0) emit_stage_reuse(e);
    emit_refill_next(e, phase);
    declare_reductions(e, phase);
    emit_pass(e, phase);
    /* not before the pass: its reads of shared memory would share a wait with these */
    if (phase == 0 && !e->k->lag) emit_scalars_next(e);
    if (phase == 0) emit_few_wait(e, true);
    emit_first_tiles(e, phase + 1);
    emit_reductions(e, phase);
    if (phase == 0) emit_few_wait(e, false);
    emit_row_stores(e, phase);
}

/* ---- the loop over rows ---- */

static void emit_row(Emitter *e)
{
    int scope = open_scope(e);
    if (keeps_coords(e))
        emit_coords_now(e);
    else if (splits_rows(e))
        emit_split(e, "row", e->k->rows);
    emit_scalars_now(e);
    emit_row_loads(e, true);
    emit_refill_row(e);
    emit_blocks_read(e);
    if (e->k->lag) emit_scalars_next(e);
    if (e->k->lag) emit_lagged_phases(e);
    for (int phase = 0; phase < e->k->phases && !e->k->lag; phase++) {
        if (phase) blank_line(e->out);
        emit_phase(e, phase);
    }
    close_scope(e, scope);
}

/* `name` for the number of elements of `axes`: a size, or a product. */
const char *count_name(Emitter *e, AxisSet axes, const char *name)
{
    if (!(axes & (axes - 1))) return count_text(e, axes);
    line(e->out, "const long long %s = %s;", name, product_text(e, axes));
    return name;
}

/* `row`, where there is one; else `first_row`, `row_step` and the number of rows. */
static void emit_row_bounds(Emitter *e)
{
    const Kernel *k = e->k;
    if (!k->rows) return;
    if (k->one_row) {
        line(e->out,
             k->cluster > 1 ? "const long long row = blockIdx.x / %s;"
                            : "const long long row = blockIdx.x;",
             sharers(e));
        return;
    }
    e->rows = e->collapsed ? "rows" : count_name(e, k->rows, "rows");
    if (k->cluster > 1)
        line(e->out, "const long long first_row = blockIdx.x / %s, row_step = gridDim.x / %s;",
             sharers(e), sharers(e));
    else if (k->teams > 1) {
        line(e->out, "const long long first_row = (long long)blockIdx.x * teams%s;",
             rows_share_warps(k) ? "" : " + team");
        line(e->out, "const long long row_step = (long long)gridDim.x * teams;");
    } else if (has_parts_in_order(k))
        line(e->out,
             "const long long first_row = blockIdx.x / slices, row_step = gridDim.x / slices;");
    else
        line(e->out, "const long long first_row = blockIdx.x, row_step = gridDim.x;");
}

/* A ring starts its first copies in passes before the first row, unless rows hand their stage on.
 */
static const char *loop_start(Emitter *e)
{
    if (!e->k->stages || e->k->copy_warp || e->k->reuses || e->k->kept) return "first_row";
    return arena_format(e->arena, "first_row - row_step * (stages - %d)", 1 + e->k->lag);
}

/* The row of a CTA or cluster that has no other. */
static void emit_only_row(Emitter *e)
{
    if (e->k->bulk)
        emit_bulk_wait(e);
    else
        emit_row_bounds(e);
    declare_blocks(e);
    emit_row(e);
}

static void emit_row_loop(Emitter *e)
{
    const Kernel *k = e->k;
    if (!e->rows) emit_row_bounds(e);
    bool shared = rows_share_warps(k);
    const char *row = shared ? "cta_row" : "row";
    if (!(k->kept && k->stages)) emit_ring(e); /* which runs on through parts */
    declare_blocks(e);
    emit_refill_start(e);
    emit_scalars_ahead(e);
    if (k->lag) emit_lag_start(e);
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long %s = %s; %s < %s; %s += row_step)", row, loop_start(e), row,
           e->rows, row) {
        emit_ring_step(e, row);
        if (shared) {
            line(e->out, "// a team without a row reads the first team's, and stores nothing");
            line(e->out, "const bool has_row = cta_row + team < %s;", e->rows);
            line(e->out, "const long long row = has_row ? cta_row + team : cta_row;");
        }
        emit_row(e);
        if (k->copy_warp && !k->lag) emit_stage_release(e);
        if (k->copy_warp) emit_advance(e);
    }
    if (k->lag) emit_lag_end(e);
}

/* ---- before the rows ---- */

static void declare_column_sums(Emitter *e, const Accumulator *acc)
{
    const char *name = acc->name;
    const char *type = type_cuda(node(e->g, acc->node)->type);
    const char *identity = identity_text(e->g, acc->node);
    if (!strcmp(identity, "0")) {
        line(e->out, "%s %s[tiles][vec] = {};", type, name);
    } else {
        line(e->out, "%s %s[tiles][vec];", type, name);
        line(e->out, "for (int t = 0; t < tiles; t++)");
        line(e->out, "    for (int i = 0; i < vec; i++)");
        line(e->out, "        %s[t][i] = %s;", name, identity);
    }
}

static void declare_accumulators(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        acc->name = accumulator_name(e, acc);
        if (acc->per_column)
            declare_column_sums(e, acc);
        else
            line(e->out, "%s %s = %s;", type_cuda(node(e->g, acc->node)->type), acc->name,
                 identity_text(e->g, acc->node));
    }
}

/* The constants that `body` mentions. */
static void emit_constants(Emitter *e, const char *body)
{
    const Kernel *k = e->k;
    const Sizes *sizes = &e->plan->analysis->sizes;
    const char *columns = k->columns & (k->columns - 1) ? product_text(e, k->columns) : "";
    NameList names = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->plan->launch.fixed >> i & 1 &&
            (mentions(body, e->sizes[i]) || mentions(columns, e->sizes[i])))
            *list_push(e->arena, &names) =
                arena_format(e->arena, "%s = %lld", e->sizes[i], (long long)sizes->of[i]);
    if (names.count) line(e->out, "constexpr int %s;", join(e->arena, &names, ", "));
    if (k->slice)
        line(e->out,
             "constexpr int %s = %d, slice = %d;    // CTAs that share a row, columns of each",
             sharers(e), k->cluster, k->slice);
    else if (k->cluster > 1)
        line(e->out, "constexpr int %s = %d;    // CTAs that share a row", sharers(e), k->cluster);
    if (has_parts_in_order(k))
        line(e->out, "constexpr int slices = %d;    // of a row, a CTA each", k->column_ctas);
    if (*columns && mentions(body, "columns"))
        line(e->out, "%s columns = %s;", k->dynamic ? "const long long" : "constexpr int", columns);
    if (k->teams > 1)
        line(e->out, "constexpr int threads_per_row = %d, teams = %d%s;", k->threads_per_row,
             k->teams, mentions(body, "threads") ? ", threads = threads_per_row * teams" : "");
    else
        line(e->out, "constexpr int threads = %d%s;", k->threads_per_row,
             mentions(body, "threads_per_row") ? ", threads_per_row = threads" : "");
    if (!has_element_work(e->g, k)) return;
    const char *threads = k->teams > 1     ? "threads_per_row"
                          : takes_turns(k) ? "group * threads"
                                           : "threads";
    line(e->out, "constexpr int vec = %d, %sstep = %s * vec;", k->vec,
         k->streamed && k->ragged ? "" : arena_format(e->arena, "tiles = %d, ", k->tiles), threads);
}

static void emit_thread_place(Emitter *e)
{
    const Kernel *k = e->k;
    if (k->teams > 1) {
        line(e->out, "const int team = threadIdx.x / threads_per_row;");
        line(e->out, "const int %s = threadIdx.x %% threads_per_row;", e->thread);
    } else {
        line(e->out, "const int %s = threadIdx.x;", e->thread);
    }
    /* Only the last tile is then checked against the row's end, which takes up to a quarter of the
       instructions and some registers less. Where a thread has many elements all tiles are left
       checked, which keeps ptxas from computing them all at once; so they are where all are full
       (checks_full_tiles in schedule/fit_threads.c). */
    bool few = (k->vec == 1 || k->vec * k->tiles <= 32) && !k->checked;
    if (k->checked)
        line(
            e->out,
            "// all tiles are full: checking them keeps the compiler from computing all at once, and from spilling");
    if (k->ragged && k->teams == 1 && few && !k->streamed && !k->copy_warp)
        line(e->out, "__builtin_assume(%s < threads);", e->thread);
    if (!k->columns) return;
    if (k->slice)
        emit_slice(e);
    else if (takes_turns(k))
        line(e->out, "const int first_column = (blockIdx.x %% group * threads + %s) * vec;",
             e->thread);
    else if (has_element_work(e->g, k))
        line(e->out, "const int first_column = %s%s * vec;",
             has_parts_in_order(k) ? "blockIdx.x % slices * (tiles * step) + "
             : k->column_ctas > 1  ? "blockIdx.y * (tiles * step) + "
                                   : "",
             e->thread);
    int values = most_exchanged(e->g, k);
    if (values && k->threads_per_row > 32) {
        line(e->out, "__shared__ %s scratch[%s][2][%s];",
             exchanges_wide(e->g, k) ? "double" : "float", k->teams > 1 ? "teams" : "1",
             slots_text(e, values, k->teams > 1 ? "threads_per_row" : "threads"));
        if (k->cluster > 1) {
            emit_exchange(e, values);
            line(e->out,
                 k->lag ? "int sent = 0, collected = 0;" : "int round = 0;    // of the exchange");
        }
        if (k->cluster == 1 || k->grouped || k->lag) line(e->out, "int parity = 0;");
    }
}

void emit_walk(Emitter *e)
{
    declare_accumulators(e);
    if (!e->k->rows)
        emit_row(e);
    else if (e->k->one_row)
        emit_only_row(e);
    else
        emit_row_loop(e);
}

/* All but the constants. */
static void emit_body(Emitter *e)
{
    emit_overlap(e);
    emit_thread_place(e);
    if (e->k->bulk) {
        emit_row_bounds(e);
        emit_bulk_stage(e);
    }
    if (e->k->cluster > 1)
        line(e->out, e->k->grouped ? "news_init(news);" : "exchange_init(exchange);");
    if (e->k->bulk) line(e->out, "__syncthreads();    // the barrier is there for all");
    if (e->k->copy_warp || e->k->grouped) emit_row_bounds(e);
    if (e->k->copy_warp)
        emit_copy_warp(e);
    else if (e->k->grouped)
        emit_listener(e);
    emit_few_memory(e);
    emit_asks(e);
    emit_row_loads(e, false);
    emit_row_values(e, 0, false);
    if (!e->k->kept) emit_resident_loads(e, 0, true);
    blank_line(e->out);
    if (e->k->kept) {
        emit_groups(e);
        return;
    }
    emit_walk(e);
    if (e->k->accumulator_count) emit_accumulators_end(e);
}

void emit_rows_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        Text *kernel = e->out;
        e->out = text_new(e->arena);
        e->out->indent = kernel->indent;
        emit_body(e);
        Text *body = e->out;
        e->out = kernel;
        emit_constants(e, text_string(body));
        text_put(e->out, body->data, body->length);
    }
}
