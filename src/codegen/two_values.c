/* codegen/two_values.c: loads that change at most once along a vector. Where columns of several
 * axes count as one, a vector may begin in one channel and end in the next. What is read for
 * each channel is then read for the vector's first and last element, and the others take one of
 * the two. */
#include "codegen/emit.h"

/* Columns after which another element of a load is due; 0: it is not read so. */
static AxisSet period_axes(const Emitter *e, const Load *load)
{
    const AxisSet columns = e->k->columns, own = load->axes & columns;
    if (!(is_dense(e->k) || e->gathers) || load->access != ACCESS_ELEMENT || !own) return 0;
    int last = 0;
    while (own >> last > 1) last++;
    return columns & ~(((AxisSet)2 << last) - 1);
}

static bool has_two_values(const Emitter *e, const Load *load)
{
    const AxisSet period = period_axes(e, load);
    return period && axes_size(&e->plan->analysis->sizes, period) >= e->k->vec;
}

/* An element at a column of this tile. */
static const char *element_at(Emitter *e, const Load *load, const char *column)
{
    const Coords outside = enter_column(e, column);
    const char *at = element(e, load_pointer(e, load), load->tensor, load->axes);
    leave_vector(e, &outside);
    const char *type = type_cuda(dtype_info[load->dtype].type);
    if (!is_ragged(e->k)) return at;
    return arena_format(e->arena, "col < %s ? (%s)%s : 0", e->end, type, at);
}

void emit_two_values(Emitter *e, const bool *needed)
{
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        const uint32_t id = load->node.id;
        if (!needed[id] || !has_two_values(e, load)) continue;
        TwoValues *two = &e->two_values[id];
        if (!two->first) {
            two->first = unique_name(e, arena_format(e->arena, "%s_first", load->name));
            two->last = unique_name(e, arena_format(e->arena, "%s_last", load->name));
        }
        two->known = true;
        const char *type = type_cuda(dtype_info[load->dtype].type);
        line(e->out, "const %s %s = %s;", type, two->first, element_at(e, load, "col"));
        line(e->out, "const %s %s = %s;", type, two->last, element_at(e, load, "(col + vec - 1)"));
    }
}

void forget_two_values(Emitter *e)
{
    for (int i = 0; i < e->k->load_count; i++) e->two_values[e->k->loads[i].node.id].known = false;
}

const char *choose_value(Emitter *e, const Load *load)
{
    const TwoValues *two = &e->two_values[load->node.id];
    if (!two->known) return NULL;
    const AxisSet axes = period_axes(e, load);
    const char *period = axes & (axes - 1) ? arena_format(e->arena, "(%s)", product_text(e, axes))
                                           : product_text(e, axes);
    return arena_format(e->arena, "i < %s - col %% %s ? %s : %s", period, period, two->first,
                        two->last);
}
