/* cuda_parts.c: a kernel that sums the rows of each group apart (sum[T] of [B, T, C]), and the one that adds
 * what it leaves. A group's rows are in parts. A CTA walks one part and leaves its sums in the workspace; or, where
 * there are groups enough for all SMs, it walks the parts of its groups one after the other, adds them as the finish
 * kernel would, and stores the results: then it is alone along z, and nothing is left to add. What its parts so far come
 * to it leaves in the workspace as well: in registers it would take as many as the sums. */
#include "cuda_emit.h"

#include <string.h>

/* Where sums are left in the workspace, those of one accumulator. */
static const char *left_at(Emitter *e, const Accumulator *acc, const char *place)
{
    return arena_format(e->arena, "%s + %s * %s, first + t * step", arg_name(e, ARG_SLOT, acc->slot, 0), place, e->columns);
}

/* What the CTA that is alone with a group has left of it before. */
static void emit_joins(Emitter *e, const char *condition, const char *place)
{
    block (e->out, "if (%s)", condition)
        for (int i = 0; i < e->k->accumulator_count; i++) {
            const Accumulator *acc = &e->k->accumulators[i];
            line(e->out, "join_left<%s>(%s[t], %s, %s);", combiner(e, acc->node), acc->name, left_at(e, acc, place), e->end);
        }
}

/* One tile of a tensor's columns, which lie side by side; sums that are stored as they are need no copy. */
static void emit_result_vector(Emitter *e, const Store *store, const Accumulator *acc, const char *value)
{
    const NodeInfo *info = node(e->g, store->node);
    Type type = dtype_info[store->dtype].type;
    const char *stored = store_value(e, value, info->type, store->dtype);
    bool same = info->type == type && info->op != OP_MEAN && !strcmp(stored, value);
    const char *vector = arena_format(e->arena, same ? "%s[t]" : "%s_out", same ? acc->name : store->name);
    if (!same) {
        line(e->out, "%s %s[vec];", type_cuda(type), vector);
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        line(e->out, "    %s[i] = %s;", vector, stored);
    }
    line(e->out, "store_row(%s, %s, %s, %s);", address(e, store_pointer(e, store), store->tensor, store->axes, store->access),
         column_text(e), vector, limit_text(e));
}

static void emit_result_elements(Emitter *e, const Store *store, const char *value)
{
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)") {
        const char *first = enter_vector(e);
        line(e->out, "if (col + i < %s)", e->end);
        line(e->out, "    %s = %s;", element(e, store_pointer(e, store), store->tensor, store->axes),
             rounded(e, value, node(e->g, store->node)->type, store->dtype));
        leave_vector(e, first);
    }
}

static void emit_result_store(Emitter *e, const Store *store)
{
    const NodeInfo *info = node(e->g, store->node);
    const Accumulator *acc = find_accumulator(e, store->node);
    const char *value = arena_format(e->arena, "%s[t][i]", acc->name);
    if (info->op == OP_MEAN)
        value = arena_format(e->arena, "%s / %s", value, count_text(e, info->reduced));
    if (store->access == ACCESS_VECTOR)
        emit_result_vector(e, store, acc, value);
    else
        emit_result_elements(e, store, value);
}

static void emit_part_end(Emitter *e, const char *groups)
{
    const Kernel *k = e->k;
    blank_line(e->out);
    line(e->out, "// sums are left in the workspace: each part's apart; alone, those of a chunk so far, and of the chunks before");
    line(e->out, "const bool ends = part %% chunk == chunk - 1 || part == parts - 1;    // the last of its chunk");
    line(e->out, "const long long own = alone ? blockIdx.x : (long long)part * %s + group, before = own + gridDim.x;", groups);
    declare_team_scratch(e);
    Text *kernel = open_body(e);
    for (int i = 0; i < k->accumulator_count; i++) emit_team_reduce(e, &k->accumulators[i]);
    if (k->teams > 1) line(e->out, "if (team > 0) continue;");
    emit_joins(e, "alone && part % chunk > 0", "own");
    emit_joins(e, "alone && ends && part >= chunk", "before");
    line(e->out, "if (alone && part == parts - 1) {");
    e->out->indent++;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].result) emit_result_store(e, &k->stores[i]);
    e->out->indent--;
    block (e->out, "} else")
        for (int i = 0; i < k->accumulator_count; i++) {
            const Accumulator *acc = &k->accumulators[i];
            line(e->out, "store_aligned(%s, %s[t], %s);", left_at(e, acc, "(alone && ends ? before : own)"), acc->name, e->end);
        }
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

void emit_groups(Emitter *e)
{
    const char *groups = count_name(e, e->k->kept, "groups");
    line(e->out, "constexpr int chunk = %d;    // so many parts are added, then chunks", e->k->chunk);
    line(e->out, "const bool alone = gridDim.z == 1;    // with its groups, whose parts it takes in turn");
    block (e->out, "for (long long group = blockIdx.x; group < %s; group += gridDim.x)", groups) {
        if (e->k->kept & (e->k->kept - 1)) emit_split(e, "group", e->k->kept);
        emit_resident_loads(e, 0, true);
        block (e->out, "for (int part = blockIdx.z; part < parts; part += gridDim.z)") {
            emit_walk(e);
            emit_part_end(e, groups);
        }
    }
}

/* ---- the kernel that adds the parts ---- */

static void emit_part_constants(Emitter *e)
{
    NameList names = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->plan->launch.fixed >> i & 1)
            *list_push(e->arena, &names) = arena_format(e->arena, "%s = %lld", e->sizes[i],
                                                        (long long)e->plan->analysis->sizes.of[i]);
    *list_push(e->arena, &names) =
        arena_format(e->arena, "width = %d, slices = %d, threads = width * slices, chunk = %d", e->k->threads_per_row,
                     e->k->teams, e->k->chunk);
    line(e->out, "constexpr int %s;", join(e->arena, &names, ", "));
    line(e->out, "const int slice = threadIdx.x / width;");
    line(e->out, "const long long columns = %s, col = blockIdx.x * (long long)width + threadIdx.x %% width;",
         product_text(e, e->k->columns));
    if (e->launch->overlaps) line(e->out, "wait_for_previous_kernel();");
}

static void declare_chunk_sums(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        acc->name = accumulator_name(e, acc);
        line(e->out, "%s %s[1] = {%s};", type_cuda(node(e->g, acc->node)->type), acc->name, identity_text(e->g, acc->node));
    }
}

/* A loop whose end is one number is unrolled without a condition for each part: ptxas has branches for more of those than
 * it has predicates, and a load behind a branch waits for the one before. */
static void emit_chunk_sums(Emitter *e)
{
    declare_chunk_sums(e);
    line(e->out, "const int begin = slice * chunk, end = begin + chunk < partials ? begin + chunk : partials;");
    block (e->out, "if (col < columns)") {
        line(e->out, "#pragma unroll 8");
        block (e->out, "for (int p = begin; p < end; p++)")
            for (int i = 0; i < e->k->accumulator_count; i++) {
                const Accumulator *acc = &e->k->accumulators[i];
                emit_accumulate(e, acc->node, arena_format(e->arena, "%s[0]", acc->name),
                                arena_format(e->arena, "%s[p * columns + col]", arg_name(e, ARG_SLOT, acc->slot, 0)));
            }
    }
    blank_line(e->out);
    line(e->out, "__shared__ %s scratch[threads];", scratch_type(e));
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        line(e->out, "team_reduce<threads, width, %s>(scratch, %s);", combiner(e, acc->node), acc->name);
        acc->name = arena_format(e->arena, "%s[0]", acc->name);
    }
}

void emit_group_finish_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        emit_part_constants(e);
        blank_line(e->out);
        emit_chunk_sums(e);
        Text *kernel = open_body(e);
        emit_finish_stores(e);
        const Text *stores = close_body(e, kernel);
        block (e->out, "if (slice == 0 && col < columns)") {
            emit_column_coords(e, stores);
            text_put(e->out, stores->data, stores->length);
        }
    }
}
