/* schedule/gather.c: sums of which one element at most counts, sum[N](where(index(N) == t, x, 0))
 * of a tensor x, or max[N](where(index(N) == t, x, -inf)): one thread of a row reads it.
 * (graph/simplify_picks.c makes these of others.) A row of which nothing else is needed is not
 * loaded at all (the likelihood of a label, of logarithms that another program left), and the other
 * elements take no instructions. */
#include "schedule/internal.h"

#include <math.h>

static bool is_place(const Graph *g, AxisSet columns, Node n)
{
    return node(g, n)->op == OP_INDEX && node(g, n)->axes & columns;
}

/* The number of a row that a comparison compares its elements' places with; 0: it does not. */
static Node row_number(const Graph *g, AxisSet columns, Node comparison)
{
    Node left = arg(g, comparison, 0), right = arg(g, comparison, 1);
    if (is_place(g, columns, right)) return node(g, left)->axes & columns ? (Node){0} : left;
    return is_place(g, columns, left) && !(node(g, right)->axes & columns) ? right : (Node){0};
}

/* What the elements of a sum or maximum must be that do not count. */
static bool is_neutral(Op op, const NodeInfo *info)
{
    if (info->op != OP_CONST) return false;
    if (op == OP_MAX_OVER) return type_is_float(info->type) && info->number == -INFINITY;
    return type_is_float(info->type) ? info->number == 0 : info->integer == 0;
}

static const Load *find_vector_load(const Kernel *k, Node n)
{
    const Load *load = load_of(k, n);
    return load && load->tensor >= 0 && load->access == ACCESS_VECTOR ? load : NULL;
}

/* The tensor of which a reduction over the columns picks an element, and the place; 0: it is no
 * pick. */
static Node find_picked(const Graph *g, AxisSet columns, Node reduction, Node *place)
{
    const NodeInfo *info = node(g, reduction);
    Node chosen = arg(g, reduction, 0);
    if ((info->op != OP_SUM && info->op != OP_MAX_OVER) || info->reduced != columns)
        return (Node){0};
    if (node(g, chosen)->op != OP_WHERE) return (Node){0};
    Node holds = arg(g, chosen, 0), x = arg(g, chosen, 1);
    if (node(g, holds)->op != OP_EQ || !is_neutral(info->op, node(g, arg(g, chosen, 2))))
        return (Node){0};
    *place = row_number(g, columns, holds);
    if (node(g, x)->op == OP_CONVERT) x = arg(g, x, 0);
    return place->id && node(g, x)->op == OP_PARAM ? x : (Node){0};
}

Node place_of_pick(const Scheduler *s, Node reduction)
{
    Node place = {0};
    AxisSet columns = s->a->columns;
    bool picks = !(columns & (columns - 1)) && find_picked(s->g, columns, reduction, &place).id;
    return picks ? place : (Node){0};
}

static void find_pick(const Scheduler *s, const Kernel *k, InnerReduction *r)
{
    Node place = {0}, x = find_picked(s->g, k->columns, r->node, &place);
    if (!x.id || !find_vector_load(k, x)) return;
    r->picked = x;
    r->place = place;
}

void find_picks(const Scheduler *s, Kernel *k)
{
    /* col is then no coordinate, or no int */
    if (has_several_columns(k) || has_dynamic_columns(s, k)) return;
    for (int i = 0; i < k->inner_count; i++)
        if (!k->inner[i].partner.id) find_pick(s, k, &k->inner[i]);
}

static bool picks(const Kernel *k, Node x)
{
    for (int i = 0; i < k->inner_count; i++)
        if (k->inner[i].picked.id == x.id) return true;
    return false;
}

void leave_picked(Kernel *k)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        if (!load->phases && picks(k, load->node)) load->access = ACCESS_PICKED;
    }
}

bool has_element_work(const Graph *g, const Kernel *k)
{
    for (int i = 0; i < k->inner_count; i++)
        if (!k->inner[i].picked.id) return true;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access != ACCESS_ROW) return true;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR || k->loads[i].access == ACCESS_ELEMENT)
            return true;
    for (int i = 0; i < k->accumulator_count; i++)
        if (node(g, arg(g, k->accumulators[i].node, 0))->axes & k->columns) return true;
    return false;
}
