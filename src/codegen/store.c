/* codegen/store.c: what a pass stores: vectors of a tile's elements, and elements one by one. */
#include "codegen/emit.h"

static bool is_pass_store(const Pass *pass, const Store *store)
{
    if (is_of_rows_beside(pass->e, store->node)) return false;
    return store->phase == pass->phase && store->access != ACCESS_ROW && !store->result;
}

/* The type of a value until it is stored. What is no f32 becomes a narrow float through f64, since
 * an f32 between them would round twice. An integer that the program has converted stays narrow,
 * because compilers do not see that it needs no clamping. */
const char *store_type(const Emitter *e, const Store *store)
{
    const DTypeInfo *info = &dtype_info[store->dtype];
    const NodeInfo *value = node(e->g, store->node);
    if (value->op == OP_CAST && value->dtype == store->dtype && value->type == TYPE_I64)
        return info->cuda;
    bool narrow = info->type == TYPE_F32 && info->bytes < 4;
    return type_cuda(narrow && value->type != TYPE_F32 ? TYPE_F64 : info->type);
}

void emit_output_vectors(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (is_pass_store(pass, store) && store->access == ACCESS_VECTOR)
            line(e->out, "%s %s_out[vec];", store_type(e, store), store->name);
    }
}

/* Whether stores omit the check of their column, since all columns exist. Persistent kernels and
 * sums over rows keep the check: without it ptxas holds more vectors at once, which gains nothing
 * there, and spills where an SM is full of threads. */
static bool stores_all(const Kernel *k)
{
    return k->remainder == TILES_FULL && !is_persistent(k) && !k->accumulator_count &&
           !k->counts_places;
}

static bool is_span(const Pass *pass, const Store *store)
{
    return stores_spans(pass->e->k) && is_pass_store(pass, store) && store->access == ACCESS_VECTOR;
}

void declare_spans(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (is_span(pass, store))
            line(e->out, "%s %s_v[tiles];    // stored behind the last column",
                 vector_type(e, store->dtype), store->name);
    }
}

void store_spans(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (is_span(pass, store))
            line(e->out, "store_span<step, teams>(%s_v, %s, here, %s);", store->name,
                 span_text(e, store_pointer(e, store), store->tensor, store->axes),
                 together_text(e));
    }
}

void emit_vector_stores(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (!is_pass_store(pass, store) || store->access != ACCESS_VECTOR) continue;
        if (e->gathers || is_stored_by_blocks(e->k, store)) {
            (e->gathers ? emit_scatter : emit_to_blocks)(e, store);
            continue;
        }
        const char *at =
            address(e, store_pointer(e, store), store->tensor, store->axes, store->access);
        if (is_span(pass, store)) {
            line(e->out, "fill(%s_v[t], %s_out);", store->name, store->name);
            continue;
        }
        if (e->k->beside) {
            line(e->out, "store_some(%s, %s_out, %s, %s);", at, store->name,
                 limit_text(e, store->axes), apart_text(e));
            continue;
        }
        if (rows_share_warps(e->k)) line(e->out, "if (has_row)");
        const char *indent = rows_share_warps(e->k) ? "    " : "";
        if (is_streamed(e->k) || stores_all(e->k))
            line(e->out, "%s%s(%s, %s, %s_out);", indent,
                 is_streamed(e->k) ? "store_streamed" : "store_vector", at,
                 column_text(e, store->axes), store->name);
        else
            line(e->out, "%sstore_row(%s, %s, %s_out, %s);", indent, at,
                 column_text(e, store->axes), store->name, limit_text(e, store->axes));
    }
}

/* A tensor that lacks some of the column axes is stored at their first coordinates alone. */
static const char *store_guard(Emitter *e, const Store *store)
{
    const char *guard = element_guard(e);
    AxisSet missing = column_axes(e->k) & ~store->axes;
    if (e->k->beside)
        guard =
            arena_format(e->arena, "%s%s%s", guard, *guard ? " && " : "",
                         store->axes & e->k->beside
                             ? "i < here"
                             : arena_format(e->arena, "%s == 0", e->coords[fastest_column(e->k)]));
    for (int i = 0; store->access == ACCESS_ELEMENT && i < e->g->axis_count; i++)
        if (missing >> i & 1)
            guard =
                arena_format(e->arena, "%s%s%s == 0", guard, *guard ? " && " : "", e->coords[i]);
    return guard;
}

static bool is_shared_store(const Emitter *e, const Store *store)
{
    const AxisSet fastest = (AxisSet)1 << fastest_column(e->k);
    return store->access == ACCESS_ELEMENT && is_vector_value(e, store->node) &&
           !(store->axes & fastest);
}

void emit_element_stores(const Pass *pass, bool vectors)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (!is_pass_store(pass, store) || is_shared_store(e, store) != vectors) continue;
        if (store->access == ACCESS_VECTOR) {
            line(e->out, "%s_out[i] = %s;", store->name, value_of_vector(e, store));
            continue;
        }
        const char *guard = store_guard(e, store);
        if (*guard) line(e->out, "if (%s)", guard);
        line(e->out, "%s%s = %s;", *guard ? "    " : "",
             element(e, store_pointer(e, store), store->tensor, store->axes),
             stored_value(e, store));
    }
}
