/* codegen/epilogue.c: what follows a kernel's last row. Its accumulators become the CTA's partials
 * (sums over groups of rows: codegen/group_sums.c). The finish kernel adds the partials of all CTAs
 * in an order that depends on the grid alone, so the same grid gives the same bits. The clear
 * kernel zeroes a mailbox before its first use. */
#include "codegen/emit.h"

#include <string.h>

const char *accumulator_name(Emitter *e, const Accumulator *acc)
{
    const NodeInfo *info = node(e->g, acc->node);
    const char *kind = combiner_of(e->g, acc->node)->helper;
    if (!info->name) return unique_name(e, arena_format(e->arena, "column_%s", kind));
    return unique_name(e, arena_format(e->arena, "%s_%s", info->name, kind));
}

/* The type of the shared memory that all accumulators use in turn. */
const char *scratch_type(const Emitter *e)
{
    return widest_accumulator(e->g, e->k) > 4 ? "double" : "float";
}

/* Shared memory through which teams add an accumulator, one accumulator after the other. */
void declare_team_scratch(Emitter *e)
{
    if (e->k->teams > 1)
        line(e->out, "__shared__ %s team_scratch[%s * vec];", scratch_type(e),
             e->k->threads_per_row < 32 ? "threads / 32 * threads_per_row" : "threads");
}

void emit_team_reduce(Emitter *e, const Accumulator *acc)
{
    if (has_squares(acc)) meet_moments(e, acc);
    if (has_squares(acc) || is_satellite(acc)) return;
    if (e->k->beside && warps_of_row(e->k) > 1)
        line(e->out, "span_add<lanes, warps, threads, %s>(team_scratch, %s[t]);",
             combiner_of(e->g, acc->node)->functor, acc->name);
    else if (e->k->teams > 1)
        line(e->out, "team_reduce<threads, threads_per_row, %s>(team_scratch, %s[t]);",
             combiner_of(e->g, acc->node)->functor, acc->name);
}

/* Where a CTA's partials begin. */
static const char *partial_place(const Emitter *e)
{
    return arena_format(e->arena, "%s * (long long)%s",
                        e->k->cluster > 1 ? arena_format(e->arena, "blockIdx.x / %s", sharers(e))
                                          : "blockIdx.x",
                        e->columns);
}

/* Where a CTA's partial of an accumulator begins. */
static const char *partial_row(const Emitter *e, const Accumulator *acc)
{
    return arena_format(e->arena, "%s + %s", arg_name(e, ARG_SLOT, acc->slot, 0), partial_place(e));
}

static void emit_partial_store(Emitter *e, const Accumulator *acc)
{
    if (has_squares(acc))
        store_moments(e, acc, partial_place(e), e->k->teams > 1 ? "if (team == 0)" : "");
    if (has_squares(acc) || is_satellite(acc)) return;
    if (e->k->teams > 1) line(e->out, "if (team == 0)");
    line(e->out, "%sstore_aligned(%s, first_column + t * step, %s[t], %s);",
         e->k->teams > 1 ? "    " : "", partial_row(e, acc), acc->name, e->end);
}

/* The copy warp has ended by then. */
static const char *compute_barrier(const Emitter *e)
{
    return has_copy_warp(e->k) ? "team_barrier<threads, 1>()" : "__syncthreads()";
}

/* The teams add their sums in shared memory, between two barriers. */
void emit_meeting(Emitter *e, const char *place)
{
    const Kernel *k = e->k;
    const char *groups = k->threads_per_row < 32 ? "threads / 32" : "teams";
    line(e->out, "struct Sums {");
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column || is_satellite(&k->accumulators[i]))
            continue;
        else if (has_squares(&k->accumulators[i]))
            declare_meeting(e, &k->accumulators[i], groups);
        else
            line(e->out, "    alignas(16) %s %s[%s][tiles * step];",
                 type_cuda(node(e->g, k->accumulators[i].node)->type), k->accumulators[i].name,
                 groups);
    line(e->out, "};");
    line(e->out, "Sums &sums = *(Sums *)%s;", place);
    line(e->out, "%s;", compute_barrier(e));
    for (int i = 0; i < k->accumulator_count; i++)
        if (!k->accumulators[i].per_column || is_satellite(&k->accumulators[i]))
            continue;
        else if (has_squares(&k->accumulators[i]))
            leave_moments(e, &k->accumulators[i]);
        else
            line(e->out, "leave_sums<%s>(sums.%s, %s);",
                 combiner_of(e->g, k->accumulators[i].node)->functor, k->accumulators[i].name,
                 k->accumulators[i].name);
    line(e->out, "%s;", compute_barrier(e));
}

/* Stores these sums, from `place` of the slots on. */
void emit_sums_store(Emitter *e, const Accumulator *acc, const char *place)
{
    const bool sliced = has_column_parts(e->k);
    const char *end = sliced ? arena_format(e->arena, "%s - first_of_slice", e->end) : e->end;
    if (sliced) place = arena_format(e->arena, "%s + first_of_slice", place);
    if (has_squares(acc)) store_left_moments(e, acc, place, end);
    if (has_squares(acc) || is_satellite(acc)) return;
    line(e->out, "store_sums<threads, vec, %s>(%s + %s, sums.%s, %s);",
         combiner_of(e->g, acc->node)->functor, arg_name(e, ARG_SLOT, acc->slot, 0), place,
         acc->name, end);
}

static void emit_column_results(Emitter *e)
{
    bool any = false;
    for (int i = 0; i < e->k->accumulator_count; i++) any |= e->k->accumulators[i].per_column;
    if (!any) return;
    if (e->k->meeting == MEET_IN_RING) {
        line(
            e->out,
            "// what the teams have summed meets where the ring was: all its copies have been waited for");
        emit_meeting(e, "smem");
        for (int i = 0; i < e->k->accumulator_count; i++)
            if (e->k->accumulators[i].per_column)
                emit_sums_store(e, &e->k->accumulators[i], partial_place(e));
        return;
    }
    declare_team_scratch(e);
    settle_moments(e);
    Text *kernel = open_body(e);
    for (int i = 0; i < e->k->accumulator_count; i++)
        if (e->k->accumulators[i].per_column) emit_team_reduce(e, &e->k->accumulators[i]);
    for (int i = 0; i < e->k->accumulator_count; i++)
        if (e->k->accumulators[i].per_column) emit_partial_store(e, &e->k->accumulators[i]);
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

/* A thread's part of an accumulator without a column. */
static const char *full_call(Emitter *e, const Accumulator *acc)
{
    return has_squares(acc) ? moments_call(e, acc) : reduce_call(e, acc->node, acc->name);
}

/* Accumulators without a column: the CTA's threads add theirs, and one of them stores the
 * partial. */
static void emit_full_results(Emitter *e)
{
    enum { MOMENTS = 4 };
    NameList calls = {0};
    bool wide = false;
    int values = 0;
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (acc->per_column || is_satellite(acc)) continue;
        *list_push(e->arena, &calls) = full_call(e, acc);
        if (has_squares(acc)) line(e->out, "moments_settle(%s);", full_call(e, acc));
        values += has_squares(acc) ? MOMENTS : 1;
        wide |= node(e->g, acc->node)->type != TYPE_F32;
    }
    if (!calls.count) return;
    const char *list = join(e->arena, &calls, ", ");
    if (kernel_threads(e->k) > 32) {
        line(e->out, "__shared__ %s cta_scratch[1][2][%s];", wide ? "double" : "float",
             slots_text(e, values, "threads"));
        line(e->out, "int cta_parity = 0;");
        line(e->out, "row_reduce<threads>(cta_scratch, cta_parity, %s);", list);
    } else {
        line(e->out, "lanes_reduce<threads>(%s);", list);
    }
    block (e->out, "if (threadIdx.x == 0)")
        for (int i = 0; i < e->k->accumulator_count; i++) {
            const Accumulator *acc = &e->k->accumulators[i];
            if (acc->per_column || is_satellite(acc)) continue;
            if (has_squares(acc))
                store_full_moments(e, acc);
            else
                line(e->out, "%s[blockIdx.x] = %s;", arg_name(e, ARG_SLOT, acc->slot, 0),
                     acc->name);
        }
}

/* The wait precedes every load, and every branch (docs/log/2026-11-27-state-before-house.md,
 * Decisions). */
void emit_overlap(Emitter *e)
{
    if (e->launch->overlaps) line(e->out, "wait_for_previous_kernel();");
}

bool is_waited_for(const Emitter *e)
{
    const int next = e->index + 1;
    return next < e->plan->kernel_count && e->plan->kernels[next].finishes >= 0 &&
           e->plan->launch.kernels[next].overlaps;
}

void emit_accumulators_end(Emitter *e)
{
    blank_line(e->out);
    if (is_waited_for(e)) {
        line(e->out,
             "// the next kernel waits, in its wait_for_previous_kernel(), until this one is done");
        line(e->out, "let_next_kernel_start();");
    }
    emit_column_results(e);
    emit_full_results(e);
}

/* ---- the finish kernel ---- */

static int count_plain_sums(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->accumulator_count; i++)
        count += !has_squares(&k->accumulators[i]) && !is_satellite(&k->accumulators[i]);
    return count;
}

/* Of a column, a place for each warp's sum; the lanes of a warp that share the column have added
 * theirs before. */
static int finish_places(const Kernel *k)
{
    return k->threads_per_row > 32 ? k->teams : kernel_threads(k) / 32;
}

/* Declares the constants that `body`, the text behind them, mentions. */
static void emit_finish_constants(Emitter *e, const char *body)
{
    const Sizes *sizes = &e->plan->analysis->sizes;
    AxisSet columns = e->k->columns;
    const char *product = columns & (columns - 1) ? product_text(e, columns) : "";
    NameList names = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->plan->launch.fixed >> i & 1 &&
            (mentions(body, e->sizes[i]) || mentions(product, e->sizes[i])))
            *list_push(e->arena, &names) =
                arena_format(e->arena, "%s = %lld", e->sizes[i], (long long)sizes->of[i]);
    *list_push(e->arena, &names) = arena_format(e->arena, "width = %d, slices = %d, batch = %d",
                                                e->k->threads_per_row, e->k->teams, e->k->tiles);
    if (mentions(body, "teams")) *list_push(e->arena, &names) = teams_before(e);
    line(e->out, "constexpr int %s;", join(e->arena, &names, ", "));
    if (*product) line(e->out, "constexpr int columns = %s;", product);
    int places = finish_places(e->k);
    int plain = count_plain_sums(e->k);
    if (plain)
        line(e->out, "__shared__ %s scratch[%d][%d * width];", scratch_type(e), plain, places);
    line(e->out,
         "const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x %% width;");
    emit_overlap(e);
}

static void declare_finish_sums(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        if (has_squares(acc)) declare_moments(e, acc);
        if (has_squares(acc) || is_satellite(acc)) continue;
        acc->name = accumulator_name(e, acc);
        line(e->out, "%s %s = %s;", type_cuda(node(e->g, acc->node)->type), acc->name,
             identity_text(e->g, acc->node));
    }
}

static void emit_finish_sums(Emitter *e)
{
    declare_finish_sums(e);
    block (e->out, "if (col < %s)", e->columns) {
        line(e->out, "#pragma unroll 1");
        line(e->out, "for (int p = slice; p < partials; p += batch * slices)");
        line(e->out, "    #pragma unroll");
        line(e->out, "    for (int t = 0; t < batch; t++)");
        e->out->indent += 2;
        block (e->out, "if (p + t * slices < partials)") {
            if (strcmp(e->columns, "1") == 0)
                line(e->out, "const long long item = p + t * slices;");
            else
                line(e->out, "const long long item = (p + t * slices) * (long long)%s + col;",
                     e->columns);
            for (int i = 0; i < e->k->accumulator_count; i++) {
                const Accumulator *acc = &e->k->accumulators[i];
                if (has_squares(acc)) join_partial(e, acc, "item", "p + t * slices");
                if (has_squares(acc) || is_satellite(acc)) continue;
                emit_accumulate(
                    e, acc->node, acc->name,
                    arena_format(e->arena, "%s[item]", arg_name(e, ARG_SLOT, acc->slot, 0)));
            }
        }
        e->out->indent -= 2;
    }
}

static void emit_sums(Emitter *e)
{
    NameList calls = {0};
    emit_finish_sums(e);
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (has_squares(acc))
            join_slices(e, acc, arena_format(e->arena, "%d * width", finish_places(e->k)));
        else if (!is_satellite(acc))
            *list_push(e->arena, &calls) = reduce_call(e, acc->node, acc->name);
    }
    if (calls.count)
        line(e->out, "slice_reduce<width>(scratch, %s);", join(e->arena, &calls, ", "));
}

void emit_finish_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        Text *out = e->out, *body = e->out = text_new(e->arena);
        body->indent = out->indent;
        emit_sums_and_results(e, arena_format(e->arena, "slice == 0 && col < %s", e->columns),
                              emit_sums);
        e->out = out;
        emit_finish_constants(e, text_string(body));
        blank_line(e->out);
        text_put(e->out, body->data, body->length);
    }
}

/* ---- the kernel that zeroes a mailbox ---- */

void emit_clear_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        line(e->out, "constexpr int threads = %d, words = %d;    // of a thread",
             kernel_threads(e->k), CLEARED_WORDS);
        emit_overlap(e);
        line(e->out, "long long *const own = %s + blockIdx.x * (threads * words);", e->args[0]);
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < words; i++)");
        line(e->out, "    own[i * threads + threadIdx.x] = 0;");
    }
}
