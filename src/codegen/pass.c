/* codegen/pass.c: one pass of a kernel over a row's columns, tile by tile: load, compute, store.
 * Each pass computes the values that it needs again, one line for each binding. */
#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

/* ---- conditions ---- */

/* A row has part of a warp: teams without a row run along with the last rows and must not count. */
bool rows_share_warps(const Kernel *k)
{
    return k->threads_per_row < 32 && k->teams > 1 && !k->beside;
}

static const char *guard_text(Emitter *e, bool row)
{
    const bool column = is_ragged(e->k) && !is_streamed(e->k);
    if (!column) return row ? "has_row" : "";
    return arena_format(e->arena, row ? "has_row && col < %s" : "col < %s", e->end);
}

/* Where parts of rows are left out, the condition is not needed either, but ptxas takes a third
 * more registers without it. */
const char *column_guard(Emitter *e)
{
    return guard_text(e, rows_share_warps(e->k) && e->k->window);
}

const char *element_guard(Emitter *e)
{
    return guard_text(e, rows_share_warps(e->k));
}

void emit_value(Emitter *e, Node n)
{
    const char *text = expression(e, n, 0);
    if (is_kept(e, n))
        line(e->out, "%s = %s;", variable(e, n), text);
    else
        line(e->out, "const %s %s = %s;", type_cuda(node(e->g, n)->type), node_name(e, n), text);
    make_local(e, n);
}

bool is_store_only(const Emitter *e, Node n)
{
    for (int i = 0; i < e->k->store_count; i++)
        if (e->k->stores[i].node.id == n.id) return e->users[n.id] == 1;
    return false;
}

/* ---- a pass over the columns ---- */

static void need(Pass *pass, Node n)
{
    if (is_column_value(pass->e, n) && !is_of_rows_beside(pass->e, n)) {
        pass->needed[n.id] = true;
        pass->any = true;
    }
}

static Pass find_pass(Emitter *e, int phase)
{
    const Kernel *k = e->k;
    Pass pass = {e, phase, NEW_ARRAY(e->arena, bool, e->g->nodes.count), false};
    for (int i = 0; i < k->inner_count; i++)
        if (k->inner[i].phase == phase && !k->inner[i].partner.id &&
            !picks_element(e, k->inner[i].node))
            need(&pass, arg(e->g, k->inner[i].node, 0));
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].phase == phase) need(&pass, operand_of(e->g, &k->accumulators[i]));
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].phase == phase && !k->stores[i].result) need(&pass, k->stores[i].node);
    for (int i = e->g->nodes.count - 1; i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!pass.needed[i] || !k->computed[i] || is_reduction(e->g, n)) continue;
        if (is_kept(e, n) && !is_kept_from(e, n, phase)) continue;
        Node operands[MOST_MENTIONED];
        const int count = list_mentioned(e, n, operands);
        for (int j = 0; j < count; j++) need(&pass, operands[j]);
    }
    return pass;
}

int count_tile_loads(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    int count = 0;
    for (int i = 0; i < k->load_count; i++)
        count += k->loads[i].access == ACCESS_VECTOR && pass->needed[k->loads[i].node.id];
    return count;
}

/* The cache hint of a streamed row's loads; NULL: none. */
static const char *cache_use(const Pass *pass, const Load *load)
{
    bool several = load->phases & (load->phases - 1);
    if (!is_streamed(pass->e->k) || !several) return NULL;
    return is_needed_later(load, pass->phase) ? "read_again" : "read_last";
}

/* Whether elements are extracted from 32-bit words: that saves instructions, and costs registers,
 * which threads with many elements have not. */
static bool takes_words(const Kernel *k, const Load *load)
{
    enum { MOST = 32 };
    return load->dtype == DTYPE_BF16 && k->vec % 2 == 0 && k->vec * k->tiles <= MOST;
}

/* The loads that are done tile by tile. */
void emit_tile_loads(const Pass *pass)
{
    Emitter *e = pass->e;
    emit_prefetched_tiles(e, pass->phase);
    Reloads late = {0};
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->access != ACCESS_VECTOR || is_resident(load) || load->place == LOADED_AHEAD ||
            !pass->needed[load->node.id])
            continue;
        if (is_staged(load)) {
            line(e->out, "const %s %s_v = %s;",
                 takes_words(e->k, load) ? "packed<bf16, vec>" : vector_type(e, load->dtype),
                 load->name, staged_vector(e, load));
            continue;
        }
        if (!e->ahead) line(e->out, "%s %s_v;", vector_type(e, load->dtype), load->name);
        if (e->gathers) {
            emit_gather(e, load, arena_format(e->arena, e->ahead ? "%s_v[t]" : "%s_v", load->name));
            continue;
        }
        const char *use = cache_use(pass, load), *from = load_address(e, load),
                   *tile = e->ahead ? "[t]" : "";
        if (is_masked(e->k, load) && !skips_outside(e->k, pass->phase))
            line(e->out, "if (%s)", in_window(e));
        const int deeper = is_masked(e->k, load) && !skips_outside(e->k, pass->phase);
        e->out->indent += deeper;
        if (is_late(load) && e->k->few_ctas)
            *list_push(e->arena, &late) = load;
        else if (use)
            line(e->out, "load_hinted<%s>(%s_v%s, %s, %s);", use, load->name, tile, from,
                 column_text(e, load->axes));
        else
            line(e->out, "%s(%s_v%s, %s, %s, %s);", tile_loader(e, load), load->name, tile, from,
                 column_text(e, load->axes), limit_text(e, load->axes));
        e->out->indent -= deeper;
    }
    emit_reloaded_tiles(e, &late, "_v", "t", "col");
}

bool is_vector_value(const Emitter *e, Node n)
{
    const bool shared = e->k->vec > 1 || walks_runs(e);
    return shared && has_several_columns(e->k) && !e->gathers &&
           !(node(e->g, n)->axes >> fastest_column(e->k) & 1);
}

/* The values that a vector's elements share, or those of each element. */
static void emit_column_values(const Pass *pass, bool vectors)
{
    Emitter *e = pass->e;
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        bool load = pass->needed[i] && !e->k->computed[i];
        if (is_vector_value(e, n) != vectors || is_part(e, n)) continue;
        if (is_kept(e, n) && !is_kept_from(e, n, pass->phase)) continue;
        if (!load && (!pass->needed[i] || !wants_line(e, n) || is_store_only(e, n))) continue;
        emit_value(e, n);
    }
}

/* Whether a thread accumulates a reduction element by element. */
bool adds_elements(const Emitter *e, const InnerReduction *r)
{
    return !r->partner.id && !paired_sum(e, r->node) && !picks_element(e, r->node);
}

static void emit_reduced_elements(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        const char *into =
            e->vector_sums[r->node.id] ? e->vector_sums[r->node.id] : variable(e, r->node);
        if (r->phase != pass->phase || !adds_elements(e, r)) continue;
        const bool runs = walks_runs(e);
        const char *value =
            expression(e, arg(e->g, r->node, 0), runs ? op_info[OP_WHERE].precedence + 1 : 0);
        if (runs)
            value = arena_format(e->arena, "%s ? %s : %s", run_guard(e), value,
                                 identity_text(e->g, r->node));
        emit_accumulate(e, r->node, into, value);
    }
}

static void emit_summed_elements(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        Node from = operand_of(e->g, acc);
        if (acc->phase != pass->phase || !pass->needed[from.id] || is_satellite(acc)) continue;
        if (has_squares(acc)) {
            add_to_moments(e, acc, expression(e, from, op_info[OP_SUB].precedence));
            continue;
        }
        const char *place = e->k->beside ? "%s[t][0]" : "%s[t][i]";
        const char *into = acc->per_column ? arena_format(e->arena, place, acc->name) : acc->name;
        const int deeper = e->k->beside != 0;
        if (deeper) line(e->out, "if (i < here)");
        e->out->indent += deeper;
        emit_accumulate(e, acc->node, into, expression(e, from, 0));
        e->out->indent -= deeper;
    }
}

static bool reduces_elements(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    for (int i = 0; i < k->inner_count; i++)
        if (k->inner[i].phase == pass->phase && adds_elements(pass->e, &k->inner[i])) return true;
    return false;
}

static bool sums_elements(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].phase == pass->phase &&
            pass->needed[operand_of(pass->e->g, &k->accumulators[i]).id])
            return true;
    return false;
}

static void open_guard(Emitter *e, const char *guard)
{
    if (*guard) line(e->out, "if (%s) {", guard);
    e->out->indent += *guard != 0;
}

static void close_guard(Emitter *e, const char *guard)
{
    e->out->indent -= *guard != 0;
    if (*guard) line(e->out, "}");
}

/* What an element adds to its row's reductions, and to sums over rows. */
static void emit_contributions(const Pass *pass)
{
    Emitter *e = pass->e;
    const char *column = column_guard(e), *guard = element_guard(e);
    const bool reduces = reduces_elements(pass), sums = sums_elements(pass);
    const bool apart = reduces && sums && strcmp(column, guard) != 0;
    if (!reduces && !sums) return;
    open_guard(e, reduces ? column : guard);
    emit_reduced_elements(pass);
    if (apart) {
        close_guard(e, column);
        open_guard(e, guard);
    }
    emit_summed_elements(pass);
    close_guard(e, reduces && !apart ? column : guard);
}

static void emit_element(const Pass *pass)
{
    Emitter *e = pass->e;
    int scope = open_scope(e);
    const Coords outside = enter_vector(e);
    emit_column_values(pass, false);
    emit_contributions(pass);
    emit_pair_elements(pass);
    emit_element_stores(pass, false);
    leave_vector(e, &outside);
    close_scope(e, scope);
}

/* The elements of a vector, but where all of them are outside the row's window. */
static void emit_window_elements(const Pass *pass)
{
    Emitter *e = pass->e;
    const char *condition = outside_condition(e, pass->phase);
    line(e->out, "if (%s) {", in_window(e));
    e->out->indent++;
    emit_tile_loads(pass);
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)") emit_element(pass);
    e->out->indent--;
    block (e->out, "} else%s", condition) {
        line(e->out, "#pragma unroll");
        block (e->out, "for (int i = 0; i < vec; i++)") emit_outside(e, pass->phase);
    }
}

static void emit_window_tile(const Pass *pass)
{
    Emitter *e = pass->e;
    int scope = open_scope(e);
    const bool outside = has_outside(e, pass->phase);
    if (!outside) {
        line(e->out, "if (%s) continue;", out_of_window(e));
        emit_tile_loads(pass);
    }
    emit_output_vectors(pass);
    emit_pair_vectors(pass);
    declare_vector_sums(pass);
    if (outside) {
        emit_window_elements(pass);
    } else {
        line(e->out, "#pragma unroll");
        block (e->out, "for (int i = 0; i < vec; i++)") emit_element(pass);
    }
    emit_pair_adds(pass);
    emit_vector_sums(pass);
    emit_vector_stores(pass);
    close_scope(e, scope);
}

/* A phase may only store what its row or a part of it has once. */
static void emit_elements(const Pass *pass)
{
    Emitter *e = pass->e;
    Text *kernel = open_body(e);
    emit_element(pass);
    const Text *body = close_body(e, kernel);
    if (!body->length) return;
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)") text_put(e->out, body->data, body->length);
}

static void emit_tile(const Pass *pass)
{
    Emitter *e = pass->e;
    if (skips_outside(e->k, pass->phase)) {
        emit_window_tile(pass);
        return;
    }
    int scope = open_scope(e);
    if (!e->ahead) emit_tile_loads(pass);
    if (!walks_runs(e)) emit_column_values(pass, true);
    emit_two_values(e, pass->needed);
    emit_vector_divisors(e, pass->needed);
    emit_output_vectors(pass);
    emit_pair_vectors(pass);
    declare_taken_vectors(pass);
    if (!e->ahead) declare_vector_sums(pass);
    emit_elements(pass);
    emit_pair_adds(pass);
    emit_taken_vectors(pass);
    if (!e->ahead) emit_vector_sums(pass);
    emit_element_stores(pass, true);
    emit_vector_stores(pass);
    emit_prefetch_tile(e, pass->phase);
    forget_two_values(e);
    close_scope(e, scope);
}

static bool is_comment(const char *text, const char *at)
{
    while (at > text && *at != '\n' && strncmp(at, "//", 2) != 0) at--;
    return strncmp(at, "//", 2) == 0;
}

/* Whether a text holds `name` as a word outside comments. */
bool mentions(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        char before = at == text ? ' ' : at[-1], after = at[length];
        bool word = !isalnum((unsigned char)before) && before != '_' &&
                    !isalnum((unsigned char)after) && after != '_';
        if (word && !is_comment(text, at)) return true;
    }
    return false;
}

/* Whether a pass keeps something in registers for each tile. Then the loop over tiles must unroll,
 * because registers have no index. */
static bool has_tile_registers(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    if (takes_whole_rows(pass)) return true;
    for (int i = 0; i < k->load_count; i++)
        if (is_resident(&k->loads[i]) && pass->needed[k->loads[i].node.id]) return true;
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].phase == pass->phase && k->accumulators[i].per_column) return true;
    return has_parts(pass->e->g, k) || k->keeps;
}

Text *open_body(Emitter *e)
{
    Text *kernel = e->out;
    e->out = text_new(e->arena);
    e->out->indent = kernel->indent + 1;
    return kernel;
}

const Text *close_body(Emitter *e, Text *kernel)
{
    const Text *body = e->out;
    e->out = kernel;
    return body;
}

void emit_tiles(Emitter *e, const Text *body, const char *pragma)
{
    line(e->out, "%s", pragma);
    block (e->out, "for (int t = 0; t < tiles; t++)") {
        emit_tile_column(e, body);
        text_put(e->out, body->data, body->length);
    }
}

/* How many tiles are computed at once. Two where a ring's elements are joined to moments: fully
 * unrolled the counts would be constants, but the kernel is slower, as it is with single tiles. The
 * largest clusters of 16-bit elements want single tiles (docs/log/2026-11-27-figures.md). */
static const char *tile_unrolling(const Pass *pass)
{
    enum { EIGHT = 8 };
    const Kernel *k = pass->e->k;
    bool several = count_tile_loads(pass) > 1, large = k->cluster > EIGHT && k->vec == EIGHT;
    if (has_tile_registers(pass) || (is_streamed(k) && !several)) return "#pragma unroll";
    if (has_bulk_rows(k)) return "#pragma unroll 4";
    return k->stages && joins_moments(pass) && !large ? "#pragma unroll 2" : "#pragma unroll 1";
}

/* What a run's columns have in common. */
static const Text *run_values(const Pass *pass)
{
    Emitter *e = pass->e;
    Text *kernel = open_body(e);
    e->out->indent--;
    emit_column_values(pass, true);
    return close_body(e, kernel);
}

void emit_pass(Emitter *e, int phase)
{
    const Pass found = find_pass(e, phase), *pass = &found;
    e->phase = phase;
    emit_hoisted(e, pass->needed);
    emit_picks(e, phase);
    if (!pass->any) return;
    if (skips_outside(e->k, phase)) emit_outside_values(e, phase);
    emit_whole_rows(pass);
    declare_spans(pass);
    e->ahead = vectors_ahead(pass);
    name_vector_sums(pass);
    Text *kernel = open_body(e);
    const int scope = open_scope(e);
    const Text *values = walks_runs(e) ? run_values(pass) : NULL;
    if (e->ahead) e->out->indent += walks_runs(e) ? 2 : 1;
    emit_tile(pass);
    close_scope(e, scope);
    const Text *tile = close_body(e, kernel);
    if (is_streamed(e->k) && is_ragged(e->k))
        emit_stream(pass, tile, values);
    else
        emit_tiles(e, tile, tile_unrolling(pass));
    e->ahead = 0;
    store_spans(pass);
    emit_pair_ends(pass);
    emit_whole_takes(pass);
    emit_counted_rows(pass);
    emit_blocks_written(e, phase);
}
