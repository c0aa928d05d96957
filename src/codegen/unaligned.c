/* codegen/unaligned.c: unaligned rows, which pass through shared memory in blocks of 16 bytes. Such
 * a row begins anywhere in a block. Threads that read and stored single elements would touch up to
 * half as many sectors again. Instead the row's team copies whole blocks, and each thread takes its
 * elements from shared memory. */
#include "codegen/emit.h"

static const char *stored_at(Emitter *e, const Store *store)
{
    const char *row =
        address(e, store_pointer(e, store), store->tensor, store->axes, store->access);
    return e->k->slice ? arena_format(e->arena, "%s + slice_begin", row) : row;
}

static void emit_place(Emitter *e, const char *name, DType dtype)
{
    line(e->out, "    blocks<%s, tiles * step> %s;", dtype_info[dtype].cuda, name);
}

/* Declares `through`, the shared memory of a team's rows. */
void declare_blocks(Emitter *e)
{
    const Kernel *k = e->k;
    if (!passes_by_blocks(k)) return;
    blank_line(e->out);
    line(
        e->out,
        "// rows begin anywhere in a block of 16 bytes: whole blocks are copied, and threads take their elements here");
    line(e->out, "struct Rows {");
    for (int i = 0; i < k->load_count; i++)
        if (is_read_by_blocks(k, &k->loads[i])) emit_place(e, k->loads[i].name, k->loads[i].dtype);
    for (int i = 0; i < k->store_count; i++)
        if (is_stored_by_blocks(k, &k->stores[i]))
            emit_place(e, k->stores[i].name, k->stores[i].dtype);
    line(e->out, "};");
    emit_dynamic_memory(e);
    line(e->out,
         k->teams > 1 ? "Rows &through = ((Rows *)smem)[team];" : "Rows &through = *(Rows *)smem;");
    blank_line(e->out);
}

/* Copies a row, once all threads have taken their elements of the row before. */
void emit_blocks_read(Emitter *e)
{
    if (!passes_by_blocks(e->k)) return;
    if (!e->k->one_row)
        line(e->out,
             "if (row > first_row) %s;    // all have taken their elements of the row before",
             team_barrier(e));
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_read_by_blocks(e->k, load))
            line(e->out, "read_blocks<%s>(through.%s, %s, %s);", team_threads(e), load->name,
                 slice_address(e, load), own_columns(e));
    }
    line(e->out, "%s;", team_barrier(e));
}

/* Reads a thread's elements from there, and writes a tile's on their way to memory. */
void emit_from_blocks(Emitter *e, const Load *load)
{
    line(e->out, "from_blocks<step>(%s_v, through.%s, %s, %s);", load->name, load->name,
         slice_address(e, load), e->k->slice ? "local_column" : "first_column");
}

void emit_to_blocks(Emitter *e, const Store *store)
{
    line(e->out, "to_blocks(through.%s, %s, %s, %s_out);", store->name, stored_at(e, store),
         e->k->slice ? "col - slice_begin" : "col", store->name);
}

/* Stores the rows whose elements a pass has computed. */
void emit_blocks_written(Emitter *e, int phase)
{
    bool barrier = false;
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (!is_stored_by_blocks(e->k, store) || store->phase != phase) continue;
        if (!barrier) line(e->out, "%s;", team_barrier(e));
        barrier = true;
        line(e->out, "write_blocks<%s>(%s, through.%s, %s);", team_threads(e), stored_at(e, store),
             store->name, own_columns(e));
    }
}
