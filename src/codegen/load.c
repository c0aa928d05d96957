/* codegen/load.c: where a row's elements and the column vectors are read from: global memory, a
 * stage of the ring, or blocks in shared memory; and which of them stay in registers. */
#include "codegen/emit.h"

const char *vector_type(Emitter *e, DType dtype)
{
    return arena_format(e->arena, "vector<%s, vec>", dtype_info[dtype].cuda);
}

/* Where a row of a load begins. */
const char *load_address(Emitter *e, const Load *load)
{
    return address(e, load_pointer(e, load), load->tensor, load->axes, load->access);
}

const char *slice_address(Emitter *e, const Load *load)
{
    const char *row = load_address(e, load);
    return e->k->slice ? arena_format(e->arena, "%s + slice_begin", row) : row;
}

/* The arguments of load_row and fetch_row: where this CTA's part of a load begins, a thread's first
 * column in it, and its number of columns. */
const char *row_part(Emitter *e, const Load *load)
{
    const char *from = slice_address(e, load);
    if (!e->k->slice) return arena_format(e->arena, "%s, first_column, %s", from, e->columns);
    return arena_format(e->arena, "%s, local_column, %s", from, slice_text(e));
}

/* Whether a load differs from row to row. Some rows may still read the same elements, which are
 * then kept as well. */
static bool varies_by_row(const Emitter *e, const Load *load)
{
    AxisSet walked = e->k->rows | e->k->kept;
    return !walked || load->axes & walked;
}

const char *l2_argument(const Load *load)
{
    return load->dropped ? ", dropped_from_l2" : "";
}

/* The helper that loads a vector of one tile. */
const char *tile_loader(const Emitter *e, const Load *load)
{
    if (!varies_by_row(e, load)) return "load";
    return load->dropped ? "load_once<dropped_from_l2>" : "load_once";
}

/* The phase before which a row's elements are read. A row that is alone waits for memory once, for
 * what later phases need as well. */
static int phase_of_reading(const Emitter *e, const Load *load)
{
    const bool alone = e->k->family == FAMILY_ROW && !is_persistent(e->k) && !e->k->window;
    /* what rows beside have once is computed as soon as it can be */
    if (is_across(e->k, load)) return 0;
    return alone && varies_by_row(e, load) ? 0 : load->first_phase;
}

static bool is_loaded_here(const Emitter *e, const Load *load, int phase, bool hoisted)
{
    return is_resident(load) && is_hoisted(load) == hoisted && !is_prefetched(e, load) &&
           (hoisted || phase_of_reading(e, load) == phase);
}

/* Where columns are several axes, each vector has an address of its own. */
static void emit_resident_tiles(Emitter *e, int phase, bool hoisted)
{
    Text *kernel = open_body(e);
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!is_loaded_here(e, load, phase, hoisted) || is_staged(load) || is_across(e->k, load))
            continue;
        if (has_one_stride(e->k) || (is_in_line(e, load->axes) && !e->gathers)) continue;
        if (e->gathers)
            emit_gather(e, load, arena_format(e->arena, "%s_v[t]", load->name));
        else if (e->k->beside)
            line(e->out, "load_some(%s_v[t], %s, %s, %s);", load->name, load_address(e, load),
                 limit_text(e, load->axes), apart_text(e));
        else
            line(e->out, "%s(%s_v[t], %s, 0, %s);", tile_loader(e, load), load->name,
                 load_address(e, load), limit_text(e, load->axes));
    }
    const Text *loads = close_body(e, kernel);
    if (loads->length) emit_tiles(e, loads, "#pragma unroll");
}

static void declare_resident(Emitter *e, const Load *load)
{
    line(e->out, "%s %s_v%s;", vector_type(e, load->dtype), load->name,
         is_across(e->k, load) ? "" : "[tiles]");
    if (is_across(e->k, load))
        line(e->out, "load_some(%s_v, %s, here, %s);", load->name, load_address(e, load),
             apart_text(e));
    else if (has_one_stride(e->k))
        line(e->out, "load_span<step, teams%s>(%s_v, %s, left, %s);", l2_argument(load), load->name,
             span_text(e, load_pointer(e, load), load->tensor, load->axes), together_text(e));
}

static void emit_resident_load(Emitter *e, const Load *load)
{
    if (is_lined_up(e->k, load))
        line(e->out, "read_lines<step>(%s_v, current.%s, %s, %s);", load->name,
             line_aligned_row(e, load), slice_address(e, load),
             e->k->slice ? "local_column" : "first_column");
    else if (is_staged(load))
        line(e->out, "read_row(%s_v, current.%s);", load->name, load->name);
    else if (is_read_by_blocks(e->k, load))
        emit_from_blocks(e, load);
    else if (is_masked(e->k, load))
        line(e->out, "load_window<step>(%s_v, %s, first_column, %s);", load->name,
             load_address(e, load), window_ends(e));
    else if (is_in_line(e, load->axes) && !e->gathers)
        line(e->out, "%s<step%s>(%s_v, %s);", varies_by_row(e, load) ? "load_row" : "load_columns",
             l2_argument(load), load->name, row_part(e, load));
}

/* Loads that keep every tile of the row in registers. */
void emit_resident_loads(Emitter *e, int phase, bool hoisted)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!is_loaded_here(e, load, phase, hoisted)) continue;
        declare_resident(e, load);
        emit_resident_load(e, load);
    }
    if (has_several_columns(e->k) || e->gathers) emit_resident_tiles(e, phase, hoisted);
}

/* Declares the loads that are the same for all rows, or for a group of them. Whether there are
 * any. */
bool declare_hoisted_loads(Emitter *e)
{
    bool any = false;
    for (int i = 0; i < e->k->load_count; i++) {
        if (!is_loaded_here(e, &e->k->loads[i], 0, true)) continue;
        declare_resident(e, &e->k->loads[i]);
        any = true;
    }
    return any;
}

/* Loads them. */
void emit_hoisted_loads(Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (is_loaded_here(e, &e->k->loads[i], 0, true)) emit_resident_load(e, &e->k->loads[i]);
    if (has_several_columns(e->k) || e->gathers) emit_resident_tiles(e, 0, true);
}

/* Brings column vectors to L2 early. Each tile of a reloaded vector waits for the tile before,
 * because its load stands behind a branch, or for what is computed from that tile. A load from
 * global memory then costs the whole latency. Only a few CTAs prefetch for all, since many at once
 * would delay each other. */
void emit_l2_prefetch(Emitter *e)
{
    if (is_streamed(e->k) || is_grouped(e->k) || has_several_column_axes(e->k)) return;
    Text *kernel = open_body(e);
    for (int i = 0; i < e->k->load_count; i++)
        if (is_late(&e->k->loads[i]))
            line(e->out, "ask_for_columns<threads>(%s, %s);", slice_address(e, &e->k->loads[i]),
                 own_columns(e));
    const Text *asks = close_body(e, kernel);
    if (!asks->length) return;
    line(
        e->out,
        "// a later phase reads this tile by tile; so that none waits for memory then, a few CTAs have L2 fetch it now");
    const char *asking = e->k->cluster > 1 ? arena_format(e->arena, "4 * %s", sharers(e)) : "4";
    block (e->out, "if (%sblockIdx.x < %s)", e->k->few_ctas ? "!few && " : "", asking)
        text_put(e->out, asks->data, asks->length);
}

/* The loads of a phase that are done one tile ahead. */
static Reloads list_early(const Emitter *e, int phase)
{
    Reloads early = {0};
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->place == LOADED_AHEAD && load->phases & phase_bit(phase))
            *list_push(e->arena, &early) = load;
    }
    return early;
}

void emit_first_tiles(Emitter *e, int phase)
{
    Reloads early = list_early(e, phase);
    if (early.count)
        line(e->out,
             "// the next phase reads a tile while it computes the one before; this is the first");
    for (int i = 0; i < early.count; i++)
        if (phase == early.data[i]->first_phase)
            line(e->out, "%s %s_next;", vector_type(e, early.data[i]->dtype), early.data[i]->name);
    emit_reloaded_tiles(e, &early, "_next", "0", "first_column");
}

void emit_prefetched_tiles(Emitter *e, int phase)
{
    Reloads early = list_early(e, phase);
    for (int i = 0; i < early.count; i++) {
        const char *name = early.data[i]->name;
        line(e->out, "const %s %s_v = %s_next;", vector_type(e, early.data[i]->dtype), name, name);
    }
    if (early.count && e->k->tiles > 1)
        block (e->out, "if (t + 1 < tiles)")
            emit_reloaded_tiles(e, &early, "_next", "t + 1", "col + step");
}

/* A thread's vector in shared memory. */
const char *staged_vector(Emitter *e, const Load *load)
{
    if (is_lined_up(e->k, load))
        return arena_format(e->arena, "vector_in<vec>(current.%s, %s + t * step, %s)",
                            line_aligned_row(e, load),
                            e->k->slice ? "local_column" : "first_column", slice_address(e, load));
    if (!(has_copy_warp(e->k) || has_bulk_rows(e->k)) || is_hoisted(load))
        return arena_format(e->arena, "%s.%s[t][%s]", is_hoisted(load) ? "held" : "current",
                            load->name, feeds_teams(e->k) ? e->thread : "threadIdx.x");
    return copied_vector(e, load);
}
