/* codegen/small_grid.c: column vectors that a later phase reads, in launches of few CTAs. With many
 * rows, threads read these vectors tile by tile through the caches, and while one CTA of an SM
 * waits another computes. With few rows, each row has an SM alone. The launch then has shared
 * memory to spare: the column vectors are copied there while the row is loaded, so no tile waits
 * for L2. One kernel serves both cases, so a row has the same bits in any batch. A thread reads
 * what it has copied itself, so there is no barrier. */
#include "codegen/emit.h"

void emit_small_grid_memory(Emitter *e)
{
    if (!e->k->few_ctas) return;
    line(
        e->out,
        "// few rows are given shared memory: what all of them share comes to it while the row comes to registers");
    line(e->out, "struct Columns {");
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_late(load))
            line(e->out, "    %s %s[tiles][threads];", vector_type(e, load->dtype), load->name);
    }
    line(e->out, "};");
    line(e->out, "const bool few = dynamic_smem() >= sizeof(Columns);");
    emit_dynamic_memory(e);
    line(e->out, "Columns &held = *(Columns *)smem;");
}

/* Behind the row's loads, which are waited for first. */
void emit_small_grid_copies(Emitter *e)
{
    if (!e->k->few_ctas) return;
    block (e->out, "if (few)") {
        for (int i = 0; i < e->k->load_count; i++) {
            const Load *load = &e->k->loads[i];
            if (is_late(load))
                line(e->out, "fetch_row<step>(held.%s, %s);", load->name, row_part(e, load));
        }
        line(e->out, "fetch_commit();");
    }
}

/* Before the first tile where that is prefetched, else when the row's results are known. */
void emit_small_grid_wait(Emitter *e, bool early)
{
    if (e->k->few_ctas && reads_early(e->k) == early)
        line(e->out, "fetch_wait<0>();    // a thread reads what it has copied itself");
}

static void emit_held_tiles(Emitter *e, const Reloads *loads, const char *suffix, const char *tile)
{
    for (int i = 0; i < loads->count; i++) {
        const char *name = loads->data[i]->name;
        line(e->out, "%s%s = held.%s[%s][threadIdx.x];", name, suffix, name, tile);
    }
}

static void emit_read_tiles(Emitter *e, const Reloads *loads, const char *suffix,
                            const char *column)
{
    for (int i = 0; i < loads->count; i++) {
        const Load *load = loads->data[i];
        line(e->out, "load(%s%s, %s, %s, %s);", load->name, suffix, load_address(e, load), column,
             limit_text(e, load->axes));
    }
}

/* One condition for all vectors: a condition for each slows down launches of many rows. */
void emit_reloaded_tiles(Emitter *e, const Reloads *loads, const char *suffix, const char *tile,
                         const char *column)
{
    if (!loads->count) return;
    if (!e->k->few_ctas) {
        emit_read_tiles(e, loads, suffix, column);
        return;
    }
    line(e->out, "if (few) {");
    e->out->indent++;
    emit_held_tiles(e, loads, suffix, tile);
    e->out->indent--;
    block (e->out, "} else") emit_read_tiles(e, loads, suffix, column);
}
