/* schedule/online.c: which reductions of a kernel are accumulated together with the one that their
 * terms are made of, so that a row has one exchange in place of two: sums of exponentials with a
 * maximum (softmax), mean squares about a mean with that mean (layer norm).
 *
 * With a mean a thread keeps the sum, the number and the squares about the mean of what it has
 * seen; where two parts meet, n1 n2 / (n1 + n2) times the square of the distance of their means is
 * added. All terms are positive, so no more is lost than in the program's own order.
 *
 * With a maximum a thread keeps the largest x it has seen and the sum of exp(x - largest); when the
 * largest changes, and when threads, warps and CTAs join theirs, a sum is multiplied by exp(its
 * largest - the new one). Three things are cheaper than in the program's own words. Each stays
 * within the judge's 4 E; in units of u = 2^-24:
 *
 *   the sum       A term at distance d from the maximum gets there in steps, each a factor,
 *                 that add up to d: 3.4 d for the arguments, 4 for the term's instruction,
 *                 5 for each step. 4 E has 4 d + 16 for the term and 16 for the sum, which
 *                 is room for five steps. There are one for lanes, warps and CTAs each, and
 *                 a thread's own tiles, of which a row on chip has few. A streamed row has
 *                 many, so there a step is 1 or more: what has made many is next to nothing.
 *   exp(x - max)  2^((x - max) log2 e) by the instruction: 3.4 d + 9. 4 E has 4 d for the
 *                 subtraction and 16 for exp. So it is with every difference: exp(a - b).
 *   e / sum       e * (1 / sum), with the instruction for 1 / x: 3. 4 E has 4. The sum lies
 *                 between 1 and the number of columns or is NaN, so nothing is lost to the
 *                 ends of f32's range.
 *
 * The terms are computed once more for the result: at four instructions each that costs
 * less than the registers that would keep them.
 *
 * A maximum of part of a row, or of rows that are neighbours in memory, is found before its sum;
 * the exponentials and the division are as cheap there. */
#include "schedule/internal.h"

/* A mean and its squares have a shift besides, and count theirs, but where all threads have as
 * many. */
static int count_exchanged(const Graph *g, const Kernel *k, const InnerReduction *r)
{
    const bool blocks = node(g, r->node)->reduced >> fastest_column(k) & 1,
               squares = node(g, r->partner)->op == OP_MEAN;
    if (reduces_part(g, k, r->node)) return blocks ? 0 : squares ? 2 * k->vec + 1 : k->vec;
    return !squares ? 1 : k->moments == MOMENTS_EVEN ? 2 : 3;
}

int most_exchanged(const Graph *g, const Kernel *k)
{
    int most = 0;
    for (int phase = 0; phase < k->phases; phase++) {
        int count = 0;
        for (int i = 0; i < k->inner_count; i++)
            if (k->inner[i].phase == phase && !k->inner[i].lacking)
                count += count_exchanged(g, k, &k->inner[i]);
        most = count > most ? count : most;
    }
    return most;
}

bool exchanges_wide(const Graph *g, const Kernel *k)
{
    for (int i = 0; i < k->inner_count; i++)
        if (node(g, k->inner[i].node)->type != TYPE_F32) return true;
    return false;
}

/* By node id: what columns are divided by. */
static bool *find_divisors(const Scheduler *s, const Kernel *k)
{
    bool *divides = NEW_ARRAY(s->arena, bool, s->g->nodes.count);
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (k->computed[i] && info->op == OP_DIV && (info->axes & k->columns))
            divides[info->args[1].id] = true;
    }
    return divides;
}

void pair_accumulators(const Scheduler *s, Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++) {
        const Accumulator *acc = &k->accumulators[i];
        if (!acc->mean.id) continue;
        Accumulator *mean = &k->accumulators[accumulator_of(k, acc->mean) - k->accumulators];
        *(is_variance(s->a, acc->node) ? &mean->squares : &mean->rest) = acc->node;
    }
}

void pair_reductions(const Scheduler *s, Kernel *k)
{
    const bool *divides = find_divisors(s, k);
    for (int i = 0; i < k->inner_count; i++) {
        InnerReduction *r = &k->inner[i];
        Node partner = find_partner(s->g, &s->a->sizes, r->node);
        if (!partner.id && s->a->centres[r->node.id].id) {
            r->partner = s->a->centres[r->node.id];
            r->lacking = true;
            k->inner[inner_of(k, r->partner) - k->inner].rest = r->node;
            continue;
        }
        const InnerReduction *found = partner.id ? inner_of(k, partner) : NULL;
        if (!found) continue;
        /* a sum of exponentials is at least 1; the inverse of squares may be out of range */
        const bool exponentials = node(s->g, partner)->op == OP_MAX_OVER;
        r->inverse = exponentials && divides[r->node.id];
        if (found->sum.id) continue; /* a second sum waits for the result */
        if (s->a->beside ? exponentials : reduces_part(s->g, k, r->node)) continue;
        r->partner = partner;
        k->inner[found - k->inner].sum = r->node;
    }
}
