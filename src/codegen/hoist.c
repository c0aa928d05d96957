/* codegen/hoist.c: what is computed once before the pass over a row's columns, not for each
 * element: what is the same for all elements, and sums of which a single element counts. */
#include "codegen/emit.h"

#include <limits.h>

/* ---- divisors ---- */

/* Whether n divides elements by what can be a value of the row or of a vector, other than a
 * reduction whose inverse is known. */
static bool divides_row(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    if (info->op != OP_DIV || info->type != TYPE_F32) return false;
    Node by = info->args[1];
    Op op = node(e->g, by)->op;
    bool fixed =
        op == OP_CONST || (op == OP_CONVERT && node(e->g, node(e->g, by)->args[0])->op == OP_SIZE);
    return !fixed && !e->inverses[by.id] && !divides_by_constant(e, n);
}

/* Kernels with sums over rows gain more from threads that stay in step than from fewer
 * instructions. */
static bool prepares_divisors(const Kernel *k)
{
    return k->vec * k->tiles > 1 && !k->accumulator_count;
}

static void emit_divisor(Emitter *e, Node n)
{
    Node by = arg(e->g, n, 1);
    if (!divides_row(e, n) || e->divisors[by.id]) return;
    const char *name = name_after(e, by, "_divisor");
    line(e->out, "const Divisor %s = divisor(%s);", name, expression(e, by, 0));
    e->divisors[by.id] = name;
}

/* Whether a pass computes a value, and does not find it kept. */
static bool computes_now(const Emitter *e, Node n, const bool *needed)
{
    return needed[n.id] && e->k->computed[n.id] && (!is_kept(e, n) || is_kept_from(e, n, e->phase));
}

void emit_vector_divisors(Emitter *e, const bool *needed)
{
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i}, by = arg(e->g, n, 1);
        if (!computes_now(e, n, needed) || !is_column_value(e, by)) continue;
        if (is_vector_value(e, n) || !is_vector_value(e, by)) continue;
        e->divisors[by.id] = NULL; /* of another tile */
        if (prepares_divisors(e->k)) emit_divisor(e, n);
    }
}

/* ---- places ---- */

static bool is_place(const Emitter *e, Node n)
{
    return node(e->g, n)->op == OP_INDEX && is_column_value(e, n);
}

bool compares_place(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    bool counted =
        has_several_columns(e->k) || e->k->dynamic; /* `col` is no coordinate, or no int */
    if (counted || info->op < OP_EQ || info->op > OP_GE) return false;
    Node left = info->args[0], right = info->args[1];
    return is_place(e, left) ? !is_column_value(e, right)
                             : is_place(e, right) && !is_column_value(e, left);
}

static Node compared_with(const Emitter *e, Node n)
{
    Node left = arg(e->g, n, 0);
    return is_place(e, left) ? arg(e->g, n, 1) : left;
}

bool mentions_operand(const Emitter *e, Node n, int which)
{
    return !compares_place(e, n) || !is_place(e, arg(e->g, n, which));
}

static void emit_place(Emitter *e, Node with)
{
    if (e->places[with.id]) return;
    const NodeInfo *info = node(e->g, with);
    if (info->op == OP_CONST) {
        int64_t column = info->integer < -1        ? -1
                         : info->integer < INT_MAX ? info->integer
                                                   : INT_MAX;
        e->places[with.id] = arena_format(e->arena, "%d", (int)column);
        return;
    }
    bool named = info->name || info->op == OP_INDEX || find_load(e, with);
    e->places[with.id] = named ? name_after(e, with, "_at") : unique_name(e, "place");
    line(e->out, "const int %s = as_column(%s);", e->places[with.id], expression(e, with, 0));
}

const char *place_text(Emitter *e, Node n)
{
    const char *op = op_info[node(e->g, n)->op].text, *i = "i",
               *with = e->places[compared_with(e, n).id];
    bool left = is_place(e, arg(e->g, n, 0));
    if (e->k->counts_places)
        i = "col + i";
    else
        with = arena_format(e->arena, "%s - col", with);
    return arena_format(e->arena, "%s %s %s", left ? i : with, op, left ? with : i);
}

void emit_hoisted(Emitter *e, const bool *needed)
{
    /* What an earlier pass has declared is not in scope, or belongs to another row. */
    bool other_row = e->phase == 0 || e->k->lag;
    if (other_row) {
        e->divisors = NEW_ARRAY(e->arena, const char *, e->g->nodes.count);
        e->places = NEW_ARRAY(e->arena, const char *, e->g->nodes.count);
    }
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!computes_now(e, n, needed)) continue;
        if (prepares_divisors(e->k) && is_column_value(e, n) &&
            !is_column_value(e, arg(e->g, n, 1)))
            emit_divisor(e, n);
        if (compares_place(e, n)) emit_place(e, compared_with(e, n));
    }
}

/* ---- sums of one element ---- */

static const InnerReduction *find_pick(const Emitter *e, Node n)
{
    const InnerReduction *r = inner_of(e->k, n);
    return r && r->picked.id ? r : NULL;
}

bool picks_element(const Emitter *e, Node n)
{
    return find_pick(e, n) != NULL;
}

Node picked_place(const Emitter *e, Node sum)
{
    return find_pick(e, sum)->place;
}

static void emit_pick(Emitter *e, const InnerReduction *sum)
{
    const Load *load = find_load(e, sum->picked);
    const char **coord = &e->coords[fastest_column(e->k)], *element_of = *coord;
    emit_place(e, sum->place);
    const char *at = *coord = e->places[sum->place.id];
    const char *x = element(e, load_pointer(e, load), load->tensor, load->axes);
    *coord = element_of;
    bool slices = e->k->slice; /* one CTA reads it: the one whose column it is, or the first */
    line(e->out, "if (%s == 0 && %s%s >= %s && %s < %s)", e->thread,
         takes_turns(e->k) ? arena_format(e->arena, "%s == 0 && ", rank_text(e)) : "", at,
         slices ? "slice_begin" : "0", at, slices ? slice_end(e) : e->columns);
    const char *takes = node(e->g, sum->node)->op == OP_SUM ? "+=" : "=";
    line(e->out, "    %s %s (%s)%s;", node_name(e, sum->node), takes,
         type_cuda(node(e->g, sum->node)->type), x);
}

void emit_picks(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++)
        if (e->k->inner[i].phase == phase && e->k->inner[i].picked.id)
            emit_pick(e, &e->k->inner[i]);
}
