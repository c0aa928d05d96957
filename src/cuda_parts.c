/* cuda_parts.c: a kernel that sums the rows of each group apart (sum[T] of [B, T, C]), and the one that adds
 * what it leaves. A group's rows are in parts. A CTA walks one part and leaves its sums in the workspace; or, where
 * there are groups enough for all SMs, it walks the parts of its group one after the other, adds them as the finish
 * kernel would, and stores the results: then it is alone along z, and nothing is left to add. */
#include "cuda_emit.h"

#include <string.h>

static void declare_so_far(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        acc->name = accumulator_name(e, acc);
        acc->so_far = unique_name(e, arena_format(e->arena, "%s_so_far", acc->name));
        declare_column_sums(e, acc, acc->so_far);
    }
}

static void emit_part_added(Emitter *e)
{
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)")
        for (int i = 0; i < e->k->accumulator_count; i++) {
            const Accumulator *acc = &e->k->accumulators[i];
            emit_accumulate(e, acc->node, arena_format(e->arena, "%s[t][i]", acc->so_far),
                            arena_format(e->arena, "%s[t][i]", acc->name));
        }
}

static void emit_part_left(Emitter *e, const char *groups)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        line(e->out, "store_aligned(%s + (part * %s + group) * %s, first + t * step, %s[t], %s);",
             arg_name(e, ARG_SLOT, acc->slot, 0), groups, e->columns, acc->name, e->end);
    }
}

static void emit_part_end(Emitter *e, const char *groups)
{
    blank_line(e->out);
    declare_team_scratch(e);
    Text *kernel = open_body(e);
    for (int i = 0; i < e->k->accumulator_count; i++) emit_team_reduce(e, &e->k->accumulators[i]);
    line(e->out, "if (gridDim.z == 1) {");
    e->out->indent++;
    emit_part_added(e);
    e->out->indent--;
    block (e->out, e->k->teams > 1 ? "} else if (team == 0)" : "} else") emit_part_left(e, groups);
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

/* One tile of a tensor's columns, which lie side by side; sums that are stored as they are need no copy. */
static void emit_result_vector(Emitter *e, const Store *store, const Accumulator *acc, const char *value)
{
    const NodeInfo *info = node(e->g, store->node);
    Type type = dtype_info[store->dtype].type;
    const char *stored = store_value(e, value, info->type, store->dtype);
    bool same = info->type == type && info->op != OP_MEAN && !strcmp(stored, value);
    const char *vector = arena_format(e->arena, same ? "%s[t]" : "%s_out", same ? acc->so_far : store->name);
    if (!same) {
        line(e->out, "%s %s[vec];", type_cuda(type), vector);
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        line(e->out, "    %s[i] = %s;", vector, stored);
    }
    if (e->k->teams > 1) line(e->out, "if (team == 0)");
    line(e->out, "%sstore_row(%s, %s, %s, %s);", e->k->teams > 1 ? "    " : "",
         address(e, store_pointer(e, store), store->tensor, store->axes, store->access),
         column_text(e), vector, limit_text(e));
}

static void emit_result_elements(Emitter *e, const Store *store, const char *value)
{
    line(e->out, "#pragma unroll");
    block (e->out, "for (int i = 0; i < vec; i++)") {
        const char *first = enter_vector(e);
        line(e->out, "if (%scol + i < %s)", e->k->teams > 1 ? "team == 0 && " : "", e->end);
        line(e->out, "    %s = %s;", element(e, store_pointer(e, store), store->tensor, store->axes),
             rounded(e, value, node(e->g, store->node)->type, store->dtype));
        leave_vector(e, first);
    }
}

static void emit_result_store(Emitter *e, const Store *store)
{
    const NodeInfo *info = node(e->g, store->node);
    const Accumulator *acc = find_accumulator(e, store->node);
    const char *value = arena_format(e->arena, "%s[t][i]", acc->so_far);
    if (info->op == OP_MEAN)
        value = arena_format(e->arena, "%s / %s", value, count_text(e, info->reduced));
    if (store->access == ACCESS_VECTOR)
        emit_result_vector(e, store, acc, value);
    else
        emit_result_elements(e, store, value);
}

static void emit_group_end(Emitter *e)
{
    line(e->out, "if (gridDim.z > 1) continue;    // the finish kernel adds the parts");
    Text *kernel = open_body(e);
    for (int i = 0; i < e->k->store_count; i++)
        if (e->k->stores[i].result) emit_result_store(e, &e->k->stores[i]);
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

void emit_groups(Emitter *e)
{
    const char *groups = count_name(e, e->k->kept, "groups");
    block (e->out, "for (long long group = blockIdx.x; group < %s; group += gridDim.x)", groups) {
        if (e->k->kept & (e->k->kept - 1)) emit_split(e, "group", e->k->kept);
        declare_so_far(e);
        block (e->out, "for (int part = blockIdx.z; part < parts; part += gridDim.z)") {
            emit_walk(e);
            emit_part_end(e, groups);
        }
        emit_group_end(e);
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
        arena_format(e->arena, "threads = %d, batch = %d", kernel_threads(e->k), e->k->tiles);
    line(e->out, "constexpr int %s;", join(e->arena, &names, ", "));
    line(e->out, "const long long columns = %s, col = blockIdx.x * (long long)threads + threadIdx.x;",
         product_text(e, e->k->columns));
    if (e->launch->overlaps) line(e->out, "wait_for_previous_kernel();");
    line(e->out, "if (col >= columns) return;");
}

static void emit_parts_sum(Emitter *e)
{
    declare_finish_sums(e);
    line(e->out, "for (int p = 0; p < partials; p += batch)");
    line(e->out, "    #pragma unroll");
    line(e->out, "    for (int t = 0; t < batch; t++)");
    e->out->indent += 2;
    block (e->out, "if (p + t < partials)")
        for (int i = 0; i < e->k->accumulator_count; i++) {
            const Accumulator *acc = &e->k->accumulators[i];
            emit_accumulate(e, acc->node, acc->name,
                            arena_format(e->arena, "%s[(p + t) * columns + col]",
                                         arg_name(e, ARG_SLOT, acc->slot, 0)));
        }
    e->out->indent -= 2;
}

void emit_group_finish_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        emit_part_constants(e);
        blank_line(e->out);
        emit_parts_sum(e);
        Text *kernel = open_body(e);
        e->out->indent--;
        emit_finish_stores(e);
        const Text *stores = close_body(e, kernel);
        emit_column_coords(e, stores);
        text_put(e->out, stores->data, stores->length);
    }
}
