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
    return !fixed && !is_inverted(e, by) && !divides_by_constant(e, n);
}

/* Kernels with sums over rows gain more from threads that stay in step than from fewer
 * instructions. */
static bool prepares_divisors(const Kernel *k)
{
    return k->vec * k->tiles > 1 && !k->accumulator_count;
}

/* The comment behind the first one. */
static const char *divisor_comment(Emitter *e, const char *divisor)
{
    if (e->explains_divisors) return "";
    e->explains_divisors = true;
    return arena_format(e->arena, "    // x / %s: a product with the inverse, corrected once",
                        divisor);
}

static void emit_divisor(Emitter *e, Node n)
{
    Node by = arg(e->g, n, 1);
    if (!divides_row(e, n) || e->divisors[by.id]) return;
    const char *name = name_after(e, by, "_divisor");
    line(e->out, "const Divisor %s = divisor(%s);%s", name, expression(e, by, 0),
         divisor_comment(e, name));
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

/* Which values are there before a pass loads its columns: those that are made of what reductions
 * left, and of no other element. */
static bool *find_ready(const Emitter *e)
{
    bool *ready = NEW_ARRAY(e->arena, bool, e->g->nodes.count);
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        const OpInfo *op = &op_info[node(e->g, n)->op];
        const bool made = e->k->computed[i] && op->class != CLASS_LEAF && !is_reduction(e->g, n);
        ready[i] = made || e->local[i] || is_part(e, n) || !is_column_value(e, n);
        for (int a = 0; made && !e->local[i] && a < op->arity; a++)
            ready[i] = ready[i] && ready[arg(e->g, n, a).id];
    }
    return ready;
}

/* Whether each element of a vector has a divisor of its own, which is the same for all tiles. */
static bool has_divisor_of_vector(const Emitter *e, Node n)
{
    const Node by = arg(e->g, n, 1);
    return divides_row(e, n) && !e->divisors[by.id] && footprint(e, by) == ALONG_VECTOR &&
           footprint(e, n) & ALONG_TILES;
}

/* Of the elements of a vector: an array, before the loop over tiles. */
static void emit_element_divisors(Emitter *e, const bool *needed)
{
    const bool *ready = NULL;
    for (int i = 1; prepares_divisors(e->k) && e->k->tiles > 1 && i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i}, by = arg(e->g, n, 1);
        if (!computes_now(e, n, needed) || !has_divisor_of_vector(e, n)) continue;
        if (!ready) ready = find_ready(e);
        if (!ready[by.id]) continue;
        const char *name = name_after(e, by, "_divisor"),
                   *each = arena_format(e->arena, "%s[i]", name);
        const Coords outside = enter_vector(e);
        line(e->out, "Divisor %s[vec];%s", name, divisor_comment(e, each));
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        line(e->out, "    %s = divisor(%s);", each, expression(e, by, 0));
        leave_vector(e, &outside);
        e->divisors[by.id] = each;
    }
}

/* ---- places ---- */

/* Whether `col` is a coordinate, and an int. */
static bool counts_columns(const Kernel *k)
{
    return !has_several_column_axes(k) && !k->dynamic;
}

static bool find_test(const Emitter *e, Node n, PlaceTest *test)
{
    return !e->by_column && counts_columns(e->k) && find_place_test(e->g, e->k->columns, n, test);
}

bool compares_place(const Emitter *e, Node n)
{
    PlaceTest test;
    return find_test(e, n, &test);
}

int list_mentioned(const Emitter *e, Node n, Node operands[MOST_MENTIONED])
{
    PlaceTest test;
    int count = 0;
    if (find_test(e, n, &test))
        for (int i = 0; i < test.count; i++) operands[count++] = test.terms[i].n;
    else
        for (int i = 0; i < op_info[node(e->g, n)->op].arity; i++)
            operands[count++] = arg(e->g, n, i);
    return count;
}

/* A constant's text; NULL: it is none. */
static const char *fixed_place(Emitter *e, const PlaceTest *test)
{
    const NodeInfo *info = node(e->g, test->terms[0].n);
    if (test->count > 1 || (test->count && info->op != OP_CONST)) return NULL;
    const uint64_t wrapped = test->count ? (uint64_t)info->integer : 0;
    const int64_t at = (int64_t)(test->count && test->terms[0].minus ? -wrapped : wrapped);
    return arena_format(e->arena, "%d", (int)(at < -1 ? -1 : at < INT_MAX ? at : INT_MAX));
}

static const char *terms_text(Emitter *e, const PlaceTest *test)
{
    enum { ADDEND = 12, UNARY = 14 };
    Text *text = text_new(e->arena);
    for (int i = 0; i < test->count; i++) {
        const PlaceTerm *term = &test->terms[i];
        const bool limits = term->limited && !test->plain, first = i == 0;
        const int need = test->plain || limits ? 0
                         : !first              ? ADDEND + 1
                         : term->minus         ? UNARY
                                               : ADDEND;
        text_print(text, limits ? "%sas_distance(%s)" : "%s%s",
                   first ? (term->minus ? "-" : "") : (term->minus ? " - " : " + "),
                   expression(e, term->n, need));
    }
    return text_string(text);
}

/* The place that elements are compared with, in a variable. One that the program writes beside the
 * index alone is shared by all comparisons with it. */
const char *declare_place(Emitter *e, const PlaceTest *test)
{
    const Node key = test->plain ? test->terms[0].n : test->comparison;
    const char **place = &e->places[key.id];
    if (!*place) *place = fixed_place(e, test);
    if (*place) return *place;
    const NodeInfo *info = node(e->g, key);
    const bool named = test->plain && (info->name || info->op == OP_INDEX || find_load(e, key));
    const char *text = terms_text(e, test);
    *place = named ? name_after(e, key, "_at") : unique_name(e, "place");
    line(e->out, "const int %s = as_column(%s);", *place, text);
    return *place;
}

const char *place_text(Emitter *e, Node n)
{
    PlaceTest test;
    find_test(e, n, &test);
    const Node key = test.plain ? test.terms[0].n : n;
    const bool right = test.plain && test.turned;
    const char *op = op_info[right ? node(e->g, n)->op : test.op].text, *i = "i",
               *with = e->places[key.id];
    if (e->k->counts_places)
        i = "col + i";
    else
        with = arena_format(e->arena, "%s - col", with);
    return arena_format(e->arena, "%s %s %s", right ? with : i, op, right ? i : with);
}

/* What an earlier pass has declared is not in scope, or belongs to another row. */
void forget_hoisted(Emitter *e, int phase)
{
    if (phase > 0 && !e->k->lag) return;
    e->divisors = NEW_ARRAY(e->arena, const char *, e->g->nodes.count);
    e->places = NEW_ARRAY(e->arena, const char *, e->g->nodes.count);
}

void emit_hoisted(Emitter *e, const bool *needed)
{
    emit_element_divisors(e, needed);
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!computes_now(e, n, needed)) continue;
        if (prepares_divisors(e->k) && is_column_value(e, n) &&
            !is_column_value(e, arg(e->g, n, 1)))
            emit_divisor(e, n);
        PlaceTest test;
        if (find_test(e, n, &test)) declare_place(e, &test);
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
    const PlaceTest test = {.plain = true, .count = 1, .terms = {{.n = sum->place}}};
    const char *at = *coord = declare_place(e, &test);
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
