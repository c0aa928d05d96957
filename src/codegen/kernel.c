/* codegen/kernel.c: a kernel that walks rows. For each row: values of the row, then phase by phase
 * a pass over the columns (load, compute, store) and the reductions that end the phase. */
#include "codegen/emit.h"

#include <string.h>

/* ---- the row ---- */

static void emit_inverses(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        if (!r->inverse || r->phase + 1 != phase || *subscript(e, r->node)) continue;
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
    forget_hoisted(e, phase);
    if (phase == 0) emit_window(e);
    emit_resident_loads(e, phase, false);
    emit_across_values(e, phase);
    emit_across_sums(e, phase);
    if (phase == 0) emit_small_grid_copies(e);
    if (phase == 0) emit_stage_reuse(e);
    emit_prefetch_next(e, phase);
    declare_reductions(e, phase);
    declare_kept(e, phase);
    emit_pass(e, phase);
    end_kept(e, phase);
    /* Behind the pass: the pass's reads of shared memory would otherwise share a wait with these
     * loads. */
    if (phase == 0 && !e->k->lag) emit_scalars_next(e);
    if (phase == 0) emit_small_grid_wait(e, true);
    emit_first_tiles(e, phase + 1);
    emit_reductions(e, phase);
    if (phase == 0) emit_small_grid_wait(e, false);
    emit_row_stores(e, phase);
    emit_across_stores(e, phase);
}

/* ---- the loop over rows ---- */

void emit_row(Emitter *e)
{
    int scope = open_scope(e);
    if (keeps_coords(e))
        emit_coords_now(e);
    else if (splits_rows(e))
        emit_split(e, e->row, e->k->rows);
    emit_scalars_now(e);
    emit_row_loads(e, true);
    emit_prefetch_row(e);
    emit_blocks_read(e);
    if (e->k->lag) emit_scalars_next(e);
    if (e->k->lag) emit_pipelined_phases(e);
    for (int phase = 0; phase < e->k->phases && !e->k->lag; phase++) {
        if (phase) blank_line(e->out);
        emit_phase(e, phase);
    }
    close_scope(e, scope);
}

/* The number of elements of `axes`: a size, or a variable `name` for a product. */
const char *count_name(Emitter *e, AxisSet axes, const char *name)
{
    if (!(axes & (axes - 1))) return count_text(e, axes);
    line(e->out, "const long long %s = %s;", name, product_text(e, axes));
    return name;
}

/* Of teams that share a warp. */
static void emit_shared_row(Emitter *e)
{
    line(e->out, "// a team without a row reads the first team's, and stores nothing");
    line(e->out, "const bool has_row = cta_row + team < %s;", e->rows);
    line(e->out, "const long long row = has_row ? cta_row + team : cta_row;");
}

const char *first_of_walk(const Emitter *e)
{
    return e->k->backwards ? "(gridDim.x - 1 - blockIdx.x)" : "blockIdx.x";
}

/* Declares `row` where a CTA, a cluster or a team has a single one. Teams behind the last row have
 * none: those of whole warps end, and others run along with the first team of their CTA. */
static void emit_single_row(Emitter *e, const char *cta)
{
    const Kernel *k = e->k;
    if (k->cluster > 1) {
        line(e->out, "const long long row = %s / %s;", cta, sharers(e));
    } else if (k->teams == 1) {
        line(e->out, "const long long row = %s;", cta);
    } else if (rows_share_warps(k)) {
        line(e->out, "const long long cta_row = (long long)%s * teams;", cta);
        emit_shared_row(e);
    } else {
        line(e->out, "const long long row = (long long)%s * teams + team;", cta);
        line(e->out, "if (row >= %s)", e->rows);
        line(e->out, "    return;");
    }
}

/* Declares the only row, or `first_row`, `row_step` and the number of rows. */
static void emit_row_bounds(Emitter *e)
{
    const Kernel *k = e->k;
    const char *cta = first_of_walk(e);
    if (!k->rows) return;
    if (k->backwards)
        line(e->out, "// the last rows first: L2 may still have them from the kernel before");
    if (!k->one_row || k->teams > 1)
        e->rows = e->collapsed ? "rows" : count_name(e, k->rows, "rows");
    if (k->one_row)
        emit_single_row(e, cta);
    else if (k->cluster > 1)
        line(e->out, "const long long first_row = blockIdx.x / %s, row_step = gridDim.x / %s;",
             sharers(e), sharers(e));
    else if (k->groups > 1) {
        if (rows_of_step(k) > 1)
            line(e->out,
                 "const long long first_row = (%s + (long long)(team / stage_rows) * "
                 "gridDim.x) * stage_rows + team %% stage_rows;",
                 cta);
        else
            line(e->out, "const long long first_row = %s + (long long)team * gridDim.x;", cta);
        line(e->out, "const long long row_step = (long long)gridDim.x * teams;");
    } else if (k->teams > 1) {
        line(e->out, "const long long first_row = (long long)%s * teams%s;", cta,
             rows_share_warps(k) ? "" : " + team");
        line(e->out, "const long long row_step = (long long)gridDim.x * teams;");
    } else if (has_parts_in_order(k))
        line(e->out,
             "const long long first_row = blockIdx.x / slices, row_step = gridDim.x / slices;");
    else
        line(e->out, "const long long first_row = %s, row_step = gridDim.x;", cta);
}

/* The loop begins before the first row, with passes that only start copies, unless rows release
 * their stage early. */
static const char *loop_start(Emitter *e)
{
    if (!e->k->stages || has_copy_warp(e->k) || reuses_stages(e->k) || e->k->kept)
        return "first_row";
    return arena_format(e->arena, "first_row - row_step * (stages - %d)", 1 + e->k->lag);
}

/* The only row of a CTA or cluster. */
static void emit_only_row(Emitter *e)
{
    if (has_bulk_rows(e->k))
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
    if (!(k->kept && k->stages))
        emit_ring(
            e); /* a ring of rows in groups continues through all parts, and is there already */
    declare_blocks(e);
    emit_prefetch_start(e);
    emit_scalars_ahead(e);
    if (k->lag) emit_pipeline_start(e);
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long %s = %s; %s < %s; %s += row_step)", row, loop_start(e), row,
           e->rows, row) {
        emit_ring_step(e, row);
        if (shared) emit_shared_row(e);
        emit_row(e);
        if (has_copy_warp(k) && !k->lag) emit_stage_release(e);
        if (has_copy_warp(k)) emit_advance(e, k->groups);
    }
    if (k->lag) emit_pipeline_end(e);
}

/* ---- before the rows ---- */

static void declare_column_sums(Emitter *e, const Accumulator *acc)
{
    const char *extent = e->k->beside ? "1" : "vec";
    const char *name = acc->name;
    const char *type = type_cuda(node(e->g, acc->node)->type);
    const char *identity = identity_text(e->g, acc->node);
    if (!strcmp(identity, "0")) {
        line(e->out, "%s %s[tiles][%s] = {};", type, name, extent);
    } else {
        line(e->out, "%s %s[tiles][%s];", type, name, extent);
        line(e->out, "for (int t = 0; t < tiles; t++)");
        line(e->out, "    for (int i = 0; i < %s; i++)", extent);
        line(e->out, "        %s[t][i] = %s;", name, identity);
    }
}

static void declare_accumulators(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        if (has_squares(acc)) declare_moments(e, acc);
        if (has_squares(acc) || is_satellite(acc)) continue;
        acc->name = accumulator_name(e, acc);
        if (acc->per_column)
            declare_column_sums(e, acc);
        else
            line(e->out, "%s %s = %s;", type_cuda(node(e->g, acc->node)->type), acc->name,
                 identity_text(e->g, acc->node));
    }
}

/* Where the stages of a copy warp have several rows, a team each: how many, and the groups of such
 * teams. */
static const char *stage_constants(Emitter *e)
{
    const int rows = rows_of_step(e->k);
    if (!has_copy_warp(e->k) || rows == 1) return "";
    return arena_format(e->arena, ", stage_rows = %d%s", rows,
                        e->k->groups > 1 ? ", groups = teams / stage_rows" : "");
}

/* The constants that `body` mentions. */
static void emit_constants(Emitter *e, const char *body)
{
    const Kernel *k = e->k;
    const Sizes *sizes = &e->plan->analysis->sizes;
    const AxisSet axes = column_axes(k);
    const char *columns = axes & (axes - 1) ? product_text(e, axes) : "";
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
    if (k->teams > 1 || k->beside)
        line(e->out, "constexpr int threads_per_row = %d, teams = %d%s%s;", k->threads_per_row,
             k->teams, stage_constants(e),
             mentions(body, "threads") ? ", threads = threads_per_row * teams" : "");
    else
        line(e->out, "constexpr int threads = %d%s;", k->threads_per_row,
             mentions(body, "threads_per_row") ? ", threads_per_row = threads" : "");
    if (!has_element_work(e->g, k)) return;
    if (mentions(body, "run")) declare_run(e);
    if (k->beside) {
        line(
            e->out,
            "constexpr int vec = %d, tiles = %d, step = threads_per_row;    // vec rows of each column",
            k->vec, k->tiles);
        return;
    }
    const char *threads = k->teams > 1 ? "threads_per_row" : sharing_threads(e);
    line(e->out, "constexpr int vec = %d, %sstep = %s * vec;", k->vec,
         is_streamed(k) && is_ragged(k) ? "" : arena_format(e->arena, "tiles = %d, ", k->tiles),
         threads);
}

/* Shared memory in which a row's threads meet. */
static void declare_scratch(Emitter *e)
{
    const Kernel *k = e->k;
    declare_block_scratch(e);
    int values = most_exchanged(e->g, k);
    if (k->beside) {
        if (!values || warps_of_row(k) == 1) return;
        line(e->out, "__shared__ %s scratch[2][%d * warps][teams];",
             exchanges_wide(e->g, k) ? "double" : "float", values);
        line(e->out, "int parity = 0;");
        return;
    }
    if (values && k->threads_per_row > 32) {
        line(e->out, "__shared__ %s scratch[%s][2][%s];",
             exchanges_wide(e->g, k) ? "double" : "float", k->teams > 1 ? "teams" : "1",
             slots_text(e, values, k->teams > 1 ? "threads_per_row" : "threads"));
        if (k->cluster > 1) {
            emit_exchange(e, values);
            line(e->out,
                 k->lag ? "int sent = 0, collected = 0;" : "int round = 0;    // of the exchange");
        }
        if (k->cluster == 1 || is_grouped(k) || k->lag) line(e->out, "int parity = 0;");
    }
}

static void emit_thread_place(Emitter *e)
{
    const Kernel *k = e->k;
    if (k->beside) {
        emit_beside_place(e);
        declare_scratch(e);
        return;
    }
    if (k->teams > 1) {
        line(e->out, "const int team = threadIdx.x / threads_per_row;");
        line(e->out, "const int %s = threadIdx.x %% threads_per_row;", e->thread);
    } else {
        line(e->out, "const int %s = threadIdx.x;", e->thread);
    }
    /* With this only the last tile is checked against the row's end, which saves instructions and
     * registers. Threads with many elements check all tiles: that keeps ptxas from computing all
     * tiles at once. For the same reason some kernels check tiles that are all full
     * (checks_full_tiles in schedule/shape.c). */
    bool few = (k->vec == 1 || k->vec * k->tiles <= 32) && k->remainder != TILES_FULL_CHECKED;
    if (k->remainder == TILES_FULL_CHECKED)
        line(
            e->out,
            "// all tiles are full: checking them keeps the compiler from computing all at once, and from spilling");
    if (is_ragged(k) && k->teams == 1 && few && !is_streamed(k) && !has_copy_warp(k))
        line(e->out, "__builtin_assume(%s < threads);", e->thread);
    if (!k->columns) return;
    if (k->slice)
        emit_slice(e);
    else if (takes_turns(k))
        line(e->out, "const int first_column = (%s * threads + %s) * vec;", rank_text(e),
             e->thread);
    else if (has_element_work(e->g, k)) {
        if (has_column_parts(k))
            line(e->out, "const int first_of_slice = %s * (tiles * step);",
                 has_parts_in_order(k) ? "blockIdx.x % slices" : "blockIdx.y");
        line(e->out, "const int first_column = %s%s * vec;",
             has_column_parts(k) ? "first_of_slice + " : "", e->thread);
    }
    declare_scratch(e);
}

void emit_walk(Emitter *e)
{
    declare_accumulators(e);
    if (e->k->beside)
        emit_beside_walk(e);
    else if (!e->k->rows)
        emit_row(e);
    else if (e->k->one_row)
        emit_only_row(e);
    else
        emit_row_loop(e);
}

/* Everything but the constants. */
static void emit_body(Emitter *e)
{
    emit_overlap(e);
    emit_thread_place(e);
    if (has_bulk_rows(e->k)) {
        emit_row_bounds(e);
        emit_bulk_stage(e);
    }
    if (e->k->cluster > 1 &&
        most_exchanged(e->g, e->k)) /* not where only parts of rows are reduced */
        line(e->out, is_grouped(e->k) ? "news_init(news);" : "exchange_init(exchange);");
    if (has_bulk_rows(e->k)) line(e->out, "__syncthreads();    // the barrier is there for all");
    if (has_copy_warp(e->k) || is_grouped(e->k)) emit_row_bounds(e);
    if (has_copy_warp(e->k))
        emit_copy_warp(e);
    else if (is_grouped(e->k))
        emit_listener(e);
    emit_small_grid_memory(e);
    emit_l2_prefetch(e);
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
