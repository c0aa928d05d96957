/* codegen/beside.c: rows that are neighbours in memory while the columns of each are apart, such
 * as the pixels of images whose channels are reduced. A thread has a vector of rows of each of
 * its columns. `lanes` lanes of a warp share a row, and the warp's other lanes have the rows
 * beside it, so the warp reads neighbouring elements. */
#include "codegen/emit.h"

#include <string.h>

static const char *axis_name(const Emitter *e)
{
    return e->sizes[fastest_column(e->k)];
}

static const char *first_row(const Emitter *e)
{
    return e->coords[fastest_column(e->k)];
}

/* Which of a row's threads this is, and which of the vectors of rows it has. */
void emit_beside_place(Emitter *e)
{
    const Kernel *k = e->k;
    if (warps_of_row(k) == 1) {
        line(e->out, "const int team = threadIdx.x / threads_per_row;");
        line(e->out, "const int thread_in_row = threadIdx.x %% threads_per_row;");
    } else {
        line(
            e->out,
            "// a row has `lanes` of each of `warps` warps; their other lanes have the rows beside");
        line(e->out, "constexpr int lanes = %d, warps = %d;", k->lanes, warps_of_row(k));
        line(
            e->out,
            "const int team = threadIdx.x / (32 * warps) * (32 / lanes) + threadIdx.x %% 32 / lanes;");
        line(e->out,
             "const int thread_in_row = threadIdx.x / 32 %% warps * lanes + threadIdx.x %% lanes;");
    }
    line(e->out, "const int first_column = thread_in_row;");
}

const char *apart_text(const Emitter *e)
{
    return e->k->vec > 1 ? "apart" : "1";
}

const char *together_text(const Emitter *e)
{
    return e->k->vec > 1 ? "together" : "here";
}

/* Vectors of what is stored or loaded with rows and columns, as conditions that all are aligned. */
static const char *alignments(Emitter *e)
{
    NameList all = {0};
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->access == ACCESS_VECTOR && load->axes & e->k->beside && !is_across(e->k, load))
            *list_push(e->arena, &all) =
                alignment_text(e, load_pointer(e, load), load->tensor, load->axes);
    }
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (store->access == ACCESS_VECTOR && store->axes & column_axes(e->k))
            *list_push(e->arena, &all) =
                alignment_text(e, store_pointer(e, store), store->tensor, store->axes);
    }
    return all.count ? join(e->arena, &all, " && ") : "true";
}

/* Whether vectors of rows are aligned. */
static void emit_alignment(Emitter *e)
{
    if (e->k->vec > 1) line(e->out, "const bool aligned = %s;", alignments(e));
}

/* The first row of a thread in a span, and how many of its rows there are. Where vectors would not
 * be aligned, or not be full, the lanes of a warp read neighbours all the same. */
static void emit_first_row(Emitter *e, const char *span)
{
    const char *row = first_row(e), *rows = axis_name(e),
               *number = strcmp(span, "blockIdx.x") ? span : "(long long)blockIdx.x";
    if (e->k->vec == 1) {
        line(e->out, "const long long %s = %s * teams + team, left = %s - %s;", row, number, rows,
             row);
        line(e->out, "const int here = left > 0;    // rows that this thread has");
        return;
    }
    line(e->out, "const bool together = aligned && (%s + 1) * (teams * vec) <= %s;", number, rows);
    line(e->out,
         "const int apart = together ? 1 : teams;    // from one of a thread's rows to the next");
    line(e->out,
         "const long long %s = %s * (teams * vec) + team * (together ? vec : 1), left = %s - %s;",
         row, number, rows, row);
    line(e->out, "const int here = rows_here<vec>(left, apart);    // rows that this thread has");
}

/* A grid that has CTAs for all rows: along x those of a line, which are beside each other, along y
 * the lines. */
static void emit_plane(Emitter *e)
{
    emit_first_row(e, "blockIdx.x");
    if (!e->k->rows) {
        emit_row(e);
        return;
    }
    e->rows = e->collapsed ? "lines" : count_name(e, e->k->rows, "lines");
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long line = blockIdx.y; line < %s; line += gridDim.y)", e->rows)
        emit_row(e);
}

/* CTAs that share out all rows, as sums over rows want it. */
static void emit_share(Emitter *e)
{
    const bool several = e->k->rows;
    if (several) e->rows = e->collapsed ? "lines" : count_name(e, e->k->rows, "lines");
    line(e->out,
         "const long long spans = (%s - 1) / (teams * vec) + 1;    // of neighbouring rows%s",
         axis_name(e), several ? " in a line" : "");
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long item = blockIdx.x; item < %s; item += gridDim.x)",
           several ? arena_format(e->arena, "%s * spans", e->rows) : "spans") {
        if (several) {
            line(e->out, "long long line, span;");
            line(e->out, "split(item, spans, line, span);");
        }
        emit_first_row(e, several ? "span" : "item");
        emit_row(e);
    }
}

void emit_beside_walk(Emitter *e)
{
    emit_alignment(e);
    if (is_persistent(e->k))
        emit_share(e);
    else
        emit_plane(e);
}

/* ---- what each of the rows has once ---- */

bool is_of_rows_beside(const Emitter *e, Node n)
{
    const AxisSet axes = node(e->g, n)->axes;
    return axes & e->k->beside && !(axes & column_axes(e->k));
}

bool is_across_value(const Emitter *e, Node n)
{
    const Op op = node(e->g, n)->op;
    if (!e->k->beside || !e->k->computed[n.id] || !is_of_rows_beside(e, n)) return false;
    if (is_reduction(e->g, n) || op == OP_PARAM || e->users[n.id] < 1 || is_store_only(e, n))
        return false;
    return wants_line(e, n) || op_info[op].cost != COST_CHEAP;
}

typedef LIST(Node) Nodes;

/* Prints how a phase's are computed for one row, and lists them. */
static const Text *across_body(Emitter *e, int phase, Nodes *all)
{
    Text *kernel = open_body(e);
    const int scope = open_scope(e);
    const Coords outside = enter_vector(e);
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!is_across_value(e, n) || e->k->phase[i] != phase) continue;
        const char *text = expression(e, n, 0);
        line(e->out, "%s = %s;", variable(e, n), text);
        make_local(e, n);
        *list_push(e->arena, all) = n;
    }
    leave_vector(e, &outside);
    close_scope(e, scope);
    return close_body(e, kernel);
}

/* In arrays, all of a phase's in one loop. */
void emit_across_values(Emitter *e, int phase)
{
    Nodes all = {0};
    if (!e->k->beside) return;
    const Text *body = across_body(e, phase, &all);
    for (int i = 0; i < all.count; i++) {
        line(e->out, "%s %s[vec];", type_cuda(node(e->g, all.data[i])->type),
             node_name(e, all.data[i]));
        make_local(e, all.data[i]);
    }
    if (!all.count) return;
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)") text_put(e->out, body->data, body->length);
}

static void emit_across_store(Emitter *e, const Store *store)
{
    const char *at = element(e, store_pointer(e, store), store->tensor, store->axes);
    block (e->out, "if (thread_in_row == 0)") {
        line(e->out, "%s %s_out[vec];", store_type(e, store), store->name);
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        const Coords outside = enter_vector(e);
        line(e->out, "    %s_out[i] = %s;", store->name, value_of_vector(e, store));
        leave_vector(e, &outside);
        line(e->out, "store_some(&%s, %s_out, here, %s);", at, store->name, apart_text(e));
    }
}

void emit_across_stores(Emitter *e, int phase)
{
    for (int i = 0; e->k->beside && i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        const bool own = store->phase == phase && !store->result;
        if (own && is_of_rows_beside(e, store->node)) emit_across_store(e, store);
    }
}

/* Sums over rows of what each has once: one of a row's threads adds it. */
void emit_across_sums(Emitter *e, int phase)
{
    for (int i = 0; e->k->beside && i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        const Node from = arg(e->g, acc->node, 0);
        if (acc->phase != phase || !is_of_rows_beside(e, from)) continue;
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        line(e->out, "    if (thread_in_row == 0 && i < here)");
        e->out->indent += 2;
        const Coords outside = enter_vector(e);
        emit_accumulate(e, acc->node, acc->name, expression(e, from, 0));
        leave_vector(e, &outside);
        e->out->indent -= 2;
    }
}
