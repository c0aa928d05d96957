/* codegen/window.c: the window of a row: its first and last column, found before the row is loaded,
 * and what a phase does with the columns outside, which it does not compute one by one. */
#include "codegen/emit.h"

#include <math.h>

/* ---- where it begins and ends ---- */

/* A bound's column as the first or last of the window. What is behind the row's end counts as its
 * last column, so that one more is an int. */
static const char *end_text(Emitter *e, const PlaceTest *test, bool first)
{
    const char *place = declare_place(e, test);
    const char *within = arena_format(e->arena, "lesser(%s, %s - 1)", place, e->end);
    switch (test->op) {
    case OP_GT: return arena_format(e->arena, "%s + 1", within);
    case OP_GE: return place;
    case OP_LT: return arena_format(e->arena, "lesser(%s, %s) - 1", place, e->end);
    default: return first ? place : within;
    }
}

static bool bounds_first(Op op)
{
    return op == OP_GT || op == OP_GE || op == OP_EQ;
}

static bool bounds_last(Op op)
{
    return op == OP_LT || op == OP_LE || op == OP_EQ;
}

/* The tightest bound of one end; NULL: the row's. */
static const char *find_end(Emitter *e, bool first)
{
    const Window *w = e->k->window;
    const char *end = NULL;
    for (int i = 0; i < w->count; i++) {
        if (first ? !bounds_first(w->bounds[i].op) : !bounds_last(w->bounds[i].op)) continue;
        const char *other = end_text(e, &w->bounds[i], first);
        end =
            !end ? other
                 : arena_format(e->arena, first ? "greater(%s, %s)" : "lesser(%s, %s)", end, other);
    }
    return end;
}

/* "x is", "x, u are" */
static const char *masked_text(Emitter *e)
{
    NameList names = {0};
    for (int i = 0; i < e->k->load_count; i++)
        if (is_masked(e->k, &e->k->loads[i])) *list_push(e->arena, &names) = e->k->loads[i].name;
    return arena_format(e->arena, "%s %s", join(e->arena, &names, ", "),
                        names.count > 1 ? "are" : "is");
}

void emit_window(Emitter *e)
{
    if (!has_window(e->k)) return;
    const char *first = find_end(e, true), *last = find_end(e, false);
    e->first = first ? unique_name(e, "from") : NULL;
    e->last = last ? unique_name(e, "to") : NULL;
    line(e->out, "// a mask excludes the other columns of the row: %s not read there",
         masked_text(e));
    if (first && last)
        line(e->out, "const int %s = %s, %s = %s;", e->first, first, e->last, last);
    else
        line(e->out, "const int %s = %s;", first ? e->first : e->last, first ? first : last);
}

/* Whether a thread's vector has columns of the window, or (outside) has none. */
static const char *window_condition(Emitter *e, bool outside)
{
    const char *in = e->k->vec > 1 ? "col + vec > %s" : "col >= %s",
               *out = e->k->vec > 1 ? "col + vec <= %s" : "col < %s";
    NameList all = {0};
    if (e->last)
        *list_push(e->arena, &all) =
            arena_format(e->arena, outside ? "col > %s" : "col <= %s", e->last);
    if (e->first) *list_push(e->arena, &all) = arena_format(e->arena, outside ? out : in, e->first);
    return join(e->arena, &all, outside ? " || " : " && ");
}

const char *in_window(Emitter *e)
{
    return window_condition(e, false);
}

const char *out_of_window(Emitter *e)
{
    return window_condition(e, true);
}

const char *window_ends(Emitter *e)
{
    return arena_format(e->arena, "%s, %s", e->first ? e->first : "0",
                        e->last ? e->last : arena_format(e->arena, "%s - 1", e->end));
}

/* ---- what is outside ---- */

/* Something that a pass does with each element: the value, and the reduction that takes it. */
typedef struct {
    Node value, reduction; /* 0: it is stored */
    const char *into;      /* the vector that the value goes to, of a pair or a store */
} Effect;

typedef LIST(Effect) Effects;

static bool is_neutral(const Graph *g, Node reduction, Node n)
{
    const NodeInfo *info = node(g, n);
    if (info->op != OP_CONST) return false;
    const bool floats = type_is_float(info->type);
    const double value = floats ? info->number : (double)info->integer;
    switch (op_combine[node(g, reduction)->op]) {
    case COMBINE_SUM: return value == 0;
    case COMBINE_PROD: return value == 1;
    case COMBINE_MAX: return floats && value == -INFINITY;
    case COMBINE_MIN: return floats && value == INFINITY;
    default: return false;
    }
}

static Node outside_of(const Emitter *e, Node n)
{
    return is_column_value(e, n) ? e->k->window->outside[n.id] : n;
}

static void add_reduction(const Emitter *e, Effects *effects, Node reduction, Node value)
{
    if (!is_neutral(e->g, reduction, outside_of(e, value)))
        *list_push(e->arena, effects) = (Effect){value, reduction, NULL};
}

/* Of vectors that a maximum or mean takes together with its sum: whether they are `neutral`. */
static void add_taken(const Emitter *e, Effects *effects, int phase, bool neutral)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        const Node partner = r->partner, value = arg(e->g, partner, 0);
        if (r->phase != phase || r->lacking || !partner.id) continue;
        if (is_neutral(e->g, partner, outside_of(e, value)) == neutral)
            *list_push(e->arena, effects) = (Effect){value, partner, e->taken[partner.id]};
    }
}

/* What a phase has to do with elements outside. If it has to do anything, vectors that are taken
 * have to be set, also to what changes nothing. */
static Effects list_effects(Emitter *e, int phase)
{
    const Kernel *k = e->k;
    Effects effects = {0};
    add_taken(e, &effects, phase, false);
    for (int i = 0; i < k->inner_count; i++) {
        const InnerReduction *r = &k->inner[i];
        if (r->phase == phase && !r->partner.id && adds_elements(e, r))
            add_reduction(e, &effects, r->node, arg(e->g, r->node, 0));
    }
    for (int i = 0; i < k->accumulator_count; i++) {
        const Accumulator *acc = &k->accumulators[i];
        const Node value = operand_of(e->g, acc);
        if (acc->phase == phase && is_column_value(e, value))
            add_reduction(e, &effects, acc->node, value);
    }
    for (int i = 0; i < k->store_count; i++) {
        const Store *store = &k->stores[i];
        if (store->phase == phase && store->access == ACCESS_VECTOR && !store->result)
            *list_push(e->arena, &effects) = (Effect){.value = store->node, .into = store->name};
    }
    if (effects.count) add_taken(e, &effects, phase, true);
    return effects;
}

bool has_outside(Emitter *e, int phase)
{
    return list_effects(e, phase).count > 0;
}

void emit_outside_values(Emitter *e, int phase)
{
    const Effects effects = list_effects(e, phase);
    e->outsides = NEW_ARRAY(e->arena, const char *, e->g->nodes.count);
    e->outside = true;
    for (int i = 0; i < effects.count; i++) {
        const Node n = effects.data[i].value, as = outside_of(e, n);
        const char **name = &e->outsides[n.id], *text = expression(e, n, 0);
        const Op op = node(e->g, as)->op;
        const bool row = !is_column_value(e, as);
        const bool plain = op == OP_CONST || (row && (e->local[as.id] || op == OP_PARAM));
        if (*name) continue;
        *name = plain ? text : name_after(e, n, "_outside");
        if (!plain) line(e->out, "const %s %s = %s;", type_cuda(node(e->g, n)->type), *name, text);
    }
    e->outside = false;
}

/* Where all that is left is to add one value, zeros need not be added. */
const char *outside_condition(Emitter *e, int phase)
{
    const Effects effects = list_effects(e, phase);
    const Effect *only = &effects.data[0];
    const bool sum = effects.count == 1 && only->reduction.id && !only->into &&
                     adds_terms(node(e->g, only->reduction)->op);
    return sum ? arena_format(e->arena, " if (%s != 0)", e->outsides[only->value.id]) : "";
}

static void emit_reduced(Emitter *e, const Effect *effect)
{
    const char *into = e->vector_sums[effect->reduction.id];
    const Accumulator *acc = accumulator_of(e->k, effect->reduction);
    if (acc) into = acc->per_column ? arena_format(e->arena, "%s[t][i]", acc->name) : acc->name;
    emit_accumulate(e, effect->reduction, into ? into : variable(e, effect->reduction),
                    e->outsides[effect->value.id]);
}

static void emit_reductions_outside(Emitter *e, const Effects *effects, const char *guard)
{
    int count = 0;
    for (int i = 0; i < effects->count; i++) {
        const Effect *effect = &effects->data[i];
        const char *value = e->outsides[effect->value.id];
        if (!effect->reduction.id) continue;
        count += !effect->into;
        if (*guard) value = arena_format(e->arena, "%s ? %s : -infinity()", guard, value);
        if (effect->into) line(e->out, "%s[i] = %s;", effect->into, value);
    }
    if (*guard && count) line(e->out, count > 1 ? "if (%s) {" : "if (%s)", guard);
    e->out->indent += *guard != 0;
    for (int i = 0; i < effects->count; i++)
        if (effects->data[i].reduction.id && !effects->data[i].into)
            emit_reduced(e, &effects->data[i]);
    e->out->indent -= *guard != 0;
    if (*guard && count > 1) line(e->out, "}");
}

void emit_outside(Emitter *e, int phase)
{
    const Effects effects = list_effects(e, phase);
    emit_reductions_outside(e, &effects, element_guard(e));
    for (int i = 0; i < e->k->store_count; i++) {
        const Store *store = &e->k->stores[i];
        if (store->phase != phase || store->access != ACCESS_VECTOR || store->result) continue;
        line(e->out, "%s_out[i] = %s;", store->name,
             store_value(e, e->outsides[store->node.id], node(e->g, store->node)->type,
                         store->dtype));
    }
}
