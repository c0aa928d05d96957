/* graph/simplify_picks.c: sums in which at most one element counts, however its value is made.
 *
 *   sum[N](where(index(N) == i && c, e, 0))  is  where(0 <= i && i < size(N) && c[i], e[i], 0)
 *
 * Here e[i] is e with i for index(N), and with an element for each tensor x that has N:
 * max[N](where(index(N) == i, x, -inf)), which is exact. One thread of a row reads that element
 * (schedule/gather.c). The sum of integers is exact too. Values that `where` does not choose stay
 * without effect. Means are sums divided by the size; max and min take -inf and inf for the other
 * elements. */
#include "graph/simplify.h"

#include <math.h>

enum { MOST_VALUES = 128, MOST_TENSORS = 4, MOST_CONDITIONS = 16, MOST_AROUND = 8 };

static const Node none = {0};

typedef struct {
    Graph *g;
    AxisSet axis; /* the one that is reduced, as a set */
    uint32_t number;
    Op op;                      /* of the reduction */
    Node place;                 /* i; without the axis */
    Node rest[MOST_CONDITIONS]; /* what else must hold */
    int rest_count;
    /* Values that have the axis, from which e and the conditions are made, by ascending id; the
     * same values at i. */
    Node values[MOST_VALUES], at[MOST_VALUES];
    int count, tensors;
} Pick;

static bool varies(const Pick *p, Node n)
{
    return node(p->g, n)->axes & p->axis;
}

/* Whether a value is what elements that do not count must have. */
static bool is_neutral(const Pick *p, Node n)
{
    const NodeInfo *info = node(p->g, n);
    if (info->op != OP_CONST) return false;
    double number = type_is_float(info->type) ? info->number : (double)info->integer;
    bool extreme = p->op == OP_MAX_OVER || p->op == OP_MIN_OVER;
    return extreme ? isinf(number) && (number < 0) == (p->op == OP_MAX_OVER) : number == 0;
}

/* ---- the condition ---- */

/* i where a == b means index(N) == i. What is added to the index or subtracted from it moves to the
 * other side, which is valid because integers wrap around. */
static Node find_place(const Pick *p, Node a, Node b)
{
    Graph *g = p->g;
    if (varies(p, a) == varies(p, b) || node(g, a)->type != TYPE_I64) return none;
    Node with = varies(p, a) ? a : b, place = varies(p, a) ? b : a;
    for (int i = 0; i < MOST_AROUND; i++) {
        const NodeInfo *info = node(g, with);
        if (info->op == OP_INDEX) return place;
        Node left = info->args[0], right = info->args[1];
        if (info->op != OP_ADD && info->op != OP_SUB && info->op != OP_NEG) return none;
        if (info->op == OP_NEG)
            place = simplify_op(g, OP_NEG, place, none, none);
        else if (varies(p, left) == varies(p, right))
            return none;
        else if (info->op == OP_ADD)
            place = simplify_op(g, OP_SUB, place, varies(p, left) ? right : left, none);
        else if (varies(p, left))
            place = simplify_op(g, OP_ADD, place, right, none);
        else
            place = simplify_op(g, OP_SUB, left, place, none);
        with = info->op == OP_NEG || varies(p, left) ? left : right;
    }
    return none;
}

/* Adds the conditions under which a condition holds, or (contrary) does not; false: there are too
 * many. */
static bool add_conditions(Pick *p, Node condition, bool contrary)
{
    struct {
        Node n;
        bool contrary;
    } open[MOST_CONDITIONS] = {{condition, contrary}};
    for (int count = 1; count > 0;) {
        const Node n = open[--count].n;
        const bool no = open[count].contrary;
        const Op op = node(p->g, n)->op;
        const Node a = arg(p->g, n, 0), b = arg(p->g, n, 1);
        if (op == OP_NOT || op == (no ? OP_OR : OP_AND)) {
            if (count + 2 > MOST_CONDITIONS) return false;
            open[count].n = a;
            open[count++].contrary = op == OP_NOT ? !no : no;
            if (op == OP_NOT) continue;
            open[count].n = b;
            open[count++].contrary = no;
            continue;
        }
        const Node place = !p->place.id && op == (no ? OP_NE : OP_EQ) ? find_place(p, a, b) : none;
        if (place.id) {
            p->place = place;
            continue;
        }
        if (p->rest_count == MOST_CONDITIONS) return false;
        p->rest[p->rest_count++] = no ? simplify_op(p->g, OP_NOT, n, none, none) : n;
    }
    return true;
}

/* ---- what is chosen ---- */

/* Which operand of a function it is that may be a choice: the constant of a product may come first. */
static int carrier(const Pick *p, Node n)
{
    return node(p->g, n)->op == OP_MUL && node(p->g, arg(p->g, n, 0))->op == OP_CONST;
}

/* Whether f maps a zero to a zero, or an infinity to itself. Then f may be applied to the chosen
 * value instead of to the choice. */
static bool keeps_neutral(const Pick *p, Node n)
{
    const NodeInfo *info = node(p->g, n), *by = node(p->g, info->args[1 - carrier(p, n)]);
    bool extreme = p->op == OP_MAX_OVER || p->op == OP_MIN_OVER;
    switch (info->op) {
    case OP_CONVERT: return node(p->g, info->args[0])->type != TYPE_BOOL;
    case OP_CAST: return !extreme || info->dtype == DTYPE_BF16 || info->dtype == DTYPE_F16;
    case OP_NEG: return !extreme;
    case OP_MUL:
        return !extreme && by->op == OP_CONST && (!type_is_float(by->type) || isfinite(by->number));
    case OP_DIV: return !extreme && by->op == OP_CONST && isfinite(by->number) && by->number != 0;
    default: return false;
    }
}

/* Rewrites f(where(c, x, 0)) as where(c, f(x), 0): returns the choice, and in `around` the
 * functions. */
static Node find_choice(const Pick *p, Node n, Node around[MOST_AROUND], int *count)
{
    *count = 0;
    while (node(p->g, n)->op != OP_WHERE && *count < MOST_AROUND && keeps_neutral(p, n)) {
        around[(*count)++] = n;
        n = arg(p->g, n, carrier(p, n));
    }
    return node(p->g, n)->op == OP_WHERE ? n : none;
}

/* Walks choices within choices, collecting their conditions; returns the value that is chosen
 * last. */
static Node find_chosen(Pick *p, Node operand)
{
    Node functions[MOST_AROUND], around[MOST_AROUND], chosen = operand;
    int total = 0;
    for (;;) {
        int count;
        Node choice = find_choice(p, chosen, functions, &count);
        if (!choice.id || total + count > MOST_AROUND) break;
        bool otherwise = is_neutral(p, arg(p->g, choice, 1));
        if (!otherwise && !is_neutral(p, arg(p->g, choice, 2))) break;
        if (!add_conditions(p, arg(p->g, choice, 0), otherwise)) return none;
        for (int i = 0; i < count; i++) around[total++] = functions[i];
        chosen = arg(p->g, choice, otherwise ? 2 : 1);
        if (p->place.id && node(p->g, chosen)->op != OP_WHERE) break;
    }
    while (total-- > 0) {
        Node args[MAX_OPERANDS] = {arg(p->g, around[total], 0), arg(p->g, around[total], 1)};
        args[carrier(p, around[total])] = chosen;
        chosen = simplify_node(p->g, around[total], args);
    }
    return p->place.id ? chosen : none;
}

/* ---- the same at one place ---- */

/* Adds a value that has the axis, in the order of ids; false: there are too many. */
static bool add_value(Pick *p, Node n)
{
    int at = p->count;
    while (at > 0 && p->values[at - 1].id > n.id) at--;
    if (!varies(p, n) || (at > 0 && p->values[at - 1].id == n.id)) return true;
    if (p->count == MOST_VALUES) return false;
    for (int i = p->count++; i > at; i--) p->values[i] = p->values[i - 1];
    p->values[at] = n;
    return true;
}

/* Finds all values with the axis that these values are made of, as far as a thread can compute them
 * from elements of tensors. */
static bool find_values(Pick *p)
{
    for (uint32_t below = UINT32_MAX;;) {
        /* The largest id that has not been looked at; operands have smaller ids. */
        int i = p->count - 1;
        while (i >= 0 && p->values[i].id >= below) i--;
        if (i < 0) return true;
        const Node n = p->values[i];
        below = n.id;
        if (is_reduction(p->g, n)) return false;
        p->tensors += node(p->g, n)->op == OP_PARAM;
        if (p->tensors > MOST_TENSORS) return false;
        for (int k = 0; k < op_info[node(p->g, n)->op].arity; k++)
            if (!add_value(p, arg(p->g, n, k))) return false;
    }
}

/* The element of a tensor at the place. */
static Node pick_element(const Pick *p, Node x)
{
    Graph *g = p->g;
    const Type type = node(g, x)->type;
    Node here = graph_op(g, OP_EQ, graph_index(g, p->number), p->place, none);
    if (type_is_float(type))
        return graph_reduce(g, OP_MAX_OVER, p->axis,
                            graph_op(g, OP_WHERE, here, x, graph_number(g, type, -INFINITY)));
    Node integer = graph_convert(g, TYPE_I64, x), zero = graph_integer(g, TYPE_I64, 0);
    Node sum = graph_reduce(g, OP_SUM, p->axis, graph_op(g, OP_WHERE, here, integer, zero));
    return type == TYPE_BOOL ? graph_op(g, OP_NE, sum, zero, none) : sum;
}

static Node at_place(const Pick *p, Node n)
{
    for (int i = 0; i < p->count; i++)
        if (p->values[i].id == n.id) return p->at[i];
    return n;
}

static void compute_at_place(Pick *p)
{
    for (int i = 0; i < p->count; i++) {
        const Node n = p->values[i];
        const NodeInfo *info = node(p->g, n);
        Node args[MAX_OPERANDS];
        for (int k = 0; k < MAX_OPERANDS; k++) args[k] = at_place(p, info->args[k]);
        p->at[i] = info->op == OP_PARAM   ? pick_element(p, n)
                   : info->op == OP_INDEX ? p->place
                                          : simplify_node(p->g, n, args);
    }
}

/* ---- the whole ---- */

static Node both(Graph *g, Node a, Node b)
{
    return a.id ? simplify_op(g, OP_AND, a, b, none) : b;
}

static Node conditions_at_place(const Pick *p)
{
    Node all = none;
    for (int i = p->rest_count - 1; i >= 0; i--) all = both(p->g, all, at_place(p, p->rest[i]));
    return all;
}

static Node is_in_range(const Pick *p)
{
    Graph *g = p->g;
    Node zero = graph_integer(g, TYPE_I64, 0), size = graph_size(g, p->number);
    return both(g, simplify_op(g, OP_GE, p->place, zero, none),
                simplify_op(g, OP_LT, p->place, size, none));
}

/* The sum of a tensor's own elements needs no range: it is 0 where no element counts. */
static Node sum_element(const Pick *p, Node x, Node neutral)
{
    Graph *g = p->g;
    Node here = graph_op(g, OP_EQ, graph_index(g, p->number), p->place, none);
    Node sum = graph_reduce(g, p->op == OP_MEAN ? OP_SUM : p->op, p->axis,
                            graph_op(g, OP_WHERE, here, x, neutral));
    Node rest = conditions_at_place(p);
    return rest.id ? simplify_op(g, OP_WHERE, rest, sum, neutral) : sum;
}

/* A sum of -0 and zeros is 0. */
static Node choose_element(const Pick *p, Node chosen, Node neutral)
{
    Graph *g = p->g;
    const Type type = node(g, chosen)->type;
    Node rest = conditions_at_place(p), holds = is_in_range(p);
    if (rest.id) holds = both(g, holds, rest);
    Node value = simplify_op(g, OP_WHERE, holds, at_place(p, chosen), neutral);
    bool adds = type_is_float(type) && adds_terms(p->op);
    return adds ? simplify_op(g, OP_ADD, value, graph_number(g, type, 0), none) : value;
}

Node simplify_pick(Graph *g, Op op, AxisSet reduced, Node operand)
{
    const AxisSet axes = node(g, operand)->axes;
    const Type type = node(g, operand)->type;
    bool takes =
        adds_terms(op) || ((op == OP_MAX_OVER || op == OP_MIN_OVER) && type_is_float(type));
    if (!takes || (reduced & (reduced - 1)) || reduced <= (axes & ~reduced)) return none;
    Pick p = {.g = g, .axis = reduced, .op = op};
    while (reduced >> p.number > 1) p.number++;
    const Node chosen = find_chosen(&p, operand);
    if (!chosen.id) return none;
    bool fits = add_value(&p, chosen);
    for (int i = 0; i < p.rest_count; i++) fits = fits && add_value(&p, p.rest[i]);
    if (!fits || !find_values(&p)) return none;
    compute_at_place(&p);
    bool extreme = op == OP_MAX_OVER || op == OP_MIN_OVER;
    Node neutral = type_is_float(type) ? graph_number(g, type,
                                                      !extreme            ? 0
                                                      : op == OP_MAX_OVER ? -INFINITY
                                                                          : INFINITY)
                                       : graph_integer(g, type, 0);
    bool whole = node(g, chosen)->op == OP_PARAM && op != OP_MIN_OVER;
    Node value = whole ? sum_element(&p, chosen, neutral) : choose_element(&p, chosen, neutral);
    if (op == OP_MEAN)
        value =
            simplify_op(g, OP_DIV, value, simplify_convert(g, type, graph_size(g, p.number)), none);
    return node(g, value)->axes == (axes & ~reduced) ? value : none;
}
