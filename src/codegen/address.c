/* codegen/address.c: where a kernel's elements are: pointers, offsets along the axes of tensors and
 * slots, and the coordinates that a column stands for. */
#include "codegen/emit.h"

#include <string.h>

static int last_axis(AxisSet axes)
{
    int axis = 0;
    while (axes >> axis > 1) axis++;
    return axis;
}

const char *store_pointer(const Emitter *e, const Store *store)
{
    return store->slot >= 0 ? arg_name(e, ARG_SLOT, store->slot, 0)
                            : arg_name(e, ARG_TENSOR, store->tensor, 0);
}

const char *load_pointer(const Emitter *e, const Load *load)
{
    return load->slot >= 0 ? arg_name(e, ARG_SLOT, load->slot, 0)
                           : arg_name(e, ARG_TENSOR, load->tensor, 0);
}

/* The distance of neighbours along an axis, in elements: a kernel argument for tensors, a product
 * of sizes for slots, which are dense. NULL: 1. */
static const char *stride_text(Emitter *e, int tensor, AxisSet axes, int axis)
{
    if (axes >> axis == 1) return NULL;
    if (tensor >= 0 && e->collapsed >> axis & 1) return arg_name(e, ARG_ROW_STRIDE, tensor, 0);
    if (tensor >= 0) return arg_name(e, ARG_STRIDE, tensor, axis);
    NameList factors = {0};
    for (int i = axis + 1; i < e->g->axis_count; i++)
        if (axes >> i & 1) *list_push(e->arena, &factors) = e->sizes[i];
    const char *product = join(e->arena, &factors, " * ");
    return factors.count > 1 ? arena_format(e->arena, "(%s)", product) : product;
}

static const char *offset_text(Emitter *e, int tensor, AxisSet axes, AxisSet over)
{
    NameList terms = {0};
    const AxisSet line = tensor >= 0 && axes_within(e->line, axes & over) ? e->line : 0;
    for (int i = 0; i < e->g->axis_count; i++) {
        if (!(axes & over) || !((axes & over) >> i & 1)) continue;
        /* The row's number stands for all collapsed axes, at the place of the last, and so does one
         * coordinate for merged columns. */
        if (e->collapsed >> i & 1 && e->collapsed >> i > 1) continue;
        if ((e->merged | line) >> i & 1 && (e->merged | line) >> i > 1) continue;
        const char *stride = stride_text(e, tensor, axes, i),
                   *coord = line >> i & 1 ? "col" : e->coords[i];
        bool sum = strchr(coord, ' ') && stride;
        *list_push(e->arena, &terms) =
            stride ? arena_format(e->arena, sum ? "(%s) * %s" : "%s * %s", coord, stride) : coord;
    }
    return join(e->arena, &terms, " + ");
}

bool is_in_line(const Emitter *e, AxisSet axes)
{
    return !has_several_columns(e->k) || (e->contiguous && axes_within(e->contiguous, axes));
}

const char *address(Emitter *e, const char *pointer, int tensor, AxisSet axes, Access access)
{
    bool row = access == ACCESS_VECTOR && is_in_line(e, axes);
    const char *offset = offset_text(e, tensor, axes, row ? axes & ~e->k->columns : axes);
    return *offset ? arena_format(e->arena, "%s + %s", pointer, offset) : pointer;
}

const char *span_text(Emitter *e, const char *pointer, int tensor, AxisSet axes)
{
    const int axis = last_axis(column_axes(e->k));
    const char *offset = offset_text(e, tensor, axes, axes & ~column_axes(e->k));
    return arena_format(e->arena, "%s%s%s, %s, first_column, %s", pointer, *offset ? " + " : "",
                        offset, stride_text(e, tensor, axes, axis), e->columns);
}

const char *alignment_text(Emitter *e, const char *pointer, int tensor, AxisSet axes)
{
    NameList all = {0};
    *list_push(e->arena, &all) = pointer;
    for (int i = 0; i < e->g->axis_count; i++) {
        if (!(axes >> i & 1) || (e->collapsed >> i & 1 && e->collapsed >> i > 1)) continue;
        const char *stride = stride_text(e, tensor, axes, i);
        if (stride) *list_push(e->arena, &all) = stride;
    }
    return arena_format(e->arena, "is_aligned<vec>(%s)", join(e->arena, &all, ", "));
}

const char *column_text(const Emitter *e, AxisSet axes)
{
    return is_in_line(e, axes) ? "col" : "0";
}

const char *limit_text(Emitter *e, AxisSet axes)
{
    if (e->k->beside)
        return is_ragged(e->k) ? arena_format(e->arena, "col < %s ? here : 0", e->end) : "here";
    if (is_in_line(e, axes)) return e->end;
    return is_streamed(e->k) ? "vec" : arena_format(e->arena, "%s - col", e->end);
}

const char *element(Emitter *e, const char *pointer, int tensor, AxisSet axes)
{
    const char *offset = offset_text(e, tensor, axes, axes);
    return arena_format(e->arena, "%s[%s]", pointer, *offset ? offset : "0");
}

/* The axes of groups whose sums a finish kernel adds: each group has left all of its columns. */
static AxisSet groups_of_sums(const Emitter *e)
{
    return e->k->finishes >= 0 ? e->plan->kernels[e->k->finishes].kept : 0;
}

/* Whether there are no columns, which is compiled in: nothing is divided by their axes' sizes. */
static bool has_no_columns(const Emitter *e)
{
    return !axes_size(&e->plan->analysis->sizes, column_axes(e->k) & e->plan->launch.fixed);
}

/* Declares the coordinates of `col` that `body` mentions, where a column stands for several axes.
 * Where one of the axes is empty there is no element, but the text must still not divide by its
 * size. */
static const char *coordinates_text(Emitter *e, const Text *body)
{
    NameList all = {0};
    AxisSet columns = column_axes(e->k);
    if (!(columns & (columns - 1)) || is_dense(e->k) || e->gathers) return "";
    const bool empty = has_no_columns(e);
    const char *rest = empty ? "0" : "col";
    const AxisSet groups = groups_of_sums(e);
    for (AxisSet left = columns; left;) {
        const int axis = last_axis(left & ~groups ? left & ~groups : left);
        left &= ~((AxisSet)1 << axis);
        if (e->merged >> axis & 1 && e->merged >> axis > 1) continue;
        const bool several = e->merged >> axis & 1;
        const char *size =
            several ? arena_format(e->arena, "(%s)", product_text(e, e->merged)) : e->sizes[axis];
        /* The last that is found takes the whole quotient. */
        bool whole = empty || !(left & ~(several ? e->merged : 0));
        if (mentions(text_string(body), e->coords[axis]))
            *list_push(e->arena, &all) = arena_format(e->arena, whole ? "%s = %s" : "%s = %s %% %s",
                                                      e->coords[axis], rest, size);
        if (!whole) rest = arena_format(e->arena, "%s / %s", rest, size);
    }
    return join(e->arena, &all, ", ");
}

const char *column_type(const Emitter *e)
{
    return e->k->dynamic ? "long long" : "int";
}

/* Not where the inner axes are empty: nothing is divided by their size. */
bool has_column_pair(const Emitter *e)
{
    const AxisSet inner = inner_of_two(e->k);
    const bool empty =
        axes_within(inner, e->plan->launch.fixed) && !axes_size(&e->plan->analysis->sizes, inner);
    return inner && !empty && !e->gathers;
}

bool find_column_pair(Emitter *e, ColumnPair *found)
{
    if (!has_column_pair(e)) return false;
    const AxisSet inner = inner_of_two(e->k), outer = column_axes(e->k) & ~inner;
    const int axis = last_axis(outer);
    *found = (ColumnPair){.outer = e->coords[axis],
                          .inner = e->coords[fastest_column(e->k)],
                          .outer_size = e->sizes[axis],
                          .size = count_text(e, inner)};
    if (axes_within(inner, e->plan->launch.fixed))
        found->fixed = axes_size(&e->plan->analysis->sizes, inner);
    return true;
}

void emit_column_coords(Emitter *e, const Text *body)
{
    const char *coordinates = coordinates_text(e, body);
    if (*coordinates) line(e->out, "const %s %s;", column_type(e), coordinates);
}

void emit_tile_column(Emitter *e, const Text *body)
{
    const char *coordinates = coordinates_text(e, body);
    if (*coordinates || mentions(text_string(body), "col"))
        line(e->out, "const int col = first_column + t * step%s%s;", *coordinates ? ", " : "",
             coordinates);
}

/* The coordinates of a column, given as an expression. */
static void set_coords(Emitter *e, const char *column)
{
    const AxisSet columns = e->k->columns;
    const bool empty = has_no_columns(e);
    for (int axis = e->g->axis_count - 1; axis >= 0; axis--) {
        if (!(columns >> axis & 1)) continue;
        const bool whole = empty || !(columns & (((AxisSet)1 << axis) - 1));
        e->coords[axis] =
            whole ? column : arena_format(e->arena, "%s %% %s", column, e->sizes[axis]);
        if (!empty) column = arena_format(e->arena, "%s / %s", column, e->sizes[axis]);
    }
}

static Coords keep_coords(const Emitter *e)
{
    Coords kept;
    memcpy(kept.of, e->coords, sizeof kept.of);
    return kept;
}

Coords enter_column(Emitter *e, const char *column)
{
    const Coords outside = keep_coords(e);
    set_coords(e, column);
    return outside;
}

Coords enter_only_column(Emitter *e)
{
    if (is_dense(e->k) || e->gathers) return enter_column(e, "col");
    const Coords outside = keep_coords(e);
    if (e->k->columns && !has_several_columns(e->k)) e->coords[fastest_column(e->k)] = "col";
    return outside;
}

Coords enter_vector(Emitter *e)
{
    if (is_dense(e->k) || e->gathers) return enter_column(e, "(col + i)");
    const Coords outside = keep_coords(e);
    const char **fastest = &e->coords[fastest_column(e->k)];
    if (has_several_columns(e->k) && e->k->vec > 1)
        *fastest = arena_format(e->arena, e->k->beside ? "%s + i * apart" : "%s + i", *fastest);
    return outside;
}

void leave_vector(Emitter *e, const Coords *outside)
{
    memcpy(e->coords, outside->of, sizeof outside->of);
}

const char *place_function(Emitter *e, const char *pointer, int tensor, AxisSet axes)
{
    const Coords outside = enter_column(e, "at");
    const char *offset = offset_text(e, tensor, axes, axes);
    leave_vector(e, &outside);
    return arena_format(e->arena, "[&](%s at) { return %s + %s; }", column_type(e), pointer,
                        offset);
}
