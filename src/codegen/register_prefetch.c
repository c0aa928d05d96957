/* codegen/register_prefetch.c: register prefetch, for rows in registers of a persistent kernel
 * without a ring. As soon as a tile is stored its registers take the next row's elements, so loads
 * are in flight while the rest of the row is stored and the next row's reduction waits. */
#include "codegen/emit.h"

#include <string.h>

bool is_prefetched(const Emitter *e, const Load *load)
{
    return is_refilled(e->k) && is_resident(load) && !is_hoisted(load);
}

/* Declares the rows' registers, which live as long as the loop over rows. */
void emit_prefetch_start(Emitter *e)
{
    if (!is_refilled(e->k)) return;
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_prefetched(e, load))
            line(e->out, "%s %s_v[tiles];", vector_type(e, load->dtype), load->name);
    }
    line(e->out,
         "bool ready = false;    // whether a row was loaded while the one before was stored");
}

/* Where the next row begins. */
static void emit_next_addresses(Emitter *e)
{
    const char *coords[MAX_AXES];
    bool several = splits_rows(e);
    memcpy(coords, e->coords, sizeof coords);
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->k->rows >> i & 1)
            e->coords[i] =
                several ? unique_name(e, arena_format(e->arena, "next_%s", coords[i])) : "next";
    if (several) emit_split(e, "next", e->k->rows);
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_prefetched(e, load))
            line(e->out, "const %s *const %s_next = %s;", dtype_info[load->dtype].cuda, load->name,
                 load_address(e, load));
    }
    memcpy(e->coords, coords, sizeof coords);
}

/* Loads the first row, and rows of another alignment than their vectors, which are not
 * prefetched. */
void emit_prefetch_row(Emitter *e)
{
    if (!is_refilled(e->k)) return;
    NameList loads = {0};
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_prefetched(e, load))
            *list_push(e->arena, &loads) =
                arena_format(e->arena, "load_row<step%s>(%s_v, %s);", l2_argument(load), load->name,
                             row_part(e, load));
    }
    line(e->out, loads.count > 1 ? "if (!ready) {" : "if (!ready)");
    for (int i = 0; i < loads.count; i++) line(e->out, "    %s", loads.data[i]);
    if (loads.count > 1) line(e->out, "}");
}

static bool is_last_use(const Load *load, int phase)
{
    return load->phases & phase_bit(phase) && !is_needed_later(load, phase);
}

/* Which row is next and whether its loads may start. It is computed in the phase that starts the
 * first of them: earlier it would occupy registers longer. */
void emit_prefetch_next(Emitter *e, int phase)
{
    NameList conditions = {0};
    bool now = false, before = false;
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        now |= is_prefetched(e, load) && is_last_use(load, phase);
        before |= is_prefetched(e, load) && load->phases < phase_bit(phase);
    }
    if (!now || before) return;
    line(e->out, "const long long next = row + row_step;");
    emit_next_addresses(e);
    *list_push(e->arena, &conditions) = arena_format(e->arena, "next < %s", e->rows);
    for (int i = 0; i < e->k->load_count; i++)
        if (is_prefetched(e, &e->k->loads[i]))
            *list_push(e->arena, &conditions) =
                arena_format(e->arena, "misalignment<vec>(%s_next) == 0", e->k->loads[i].name);
    line(e->out, "ready = %s;", join(e->arena, &conditions, " && "));
}

/* After the last use of this row's tile. */
void emit_prefetch_tile(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (!is_prefetched(e, load) || !is_last_use(load, phase)) continue;
        line(e->out, "if (ready)");
        line(e->out, "    load_aligned(%s_v[t], %s_next, col, %s);", load->name, load->name,
             e->end);
    }
}
