/* schedule/window.c: the window of a row, as a mask over places leaves it:
 *
 *   where(index(K) <= index(Q), x, -inf)                       the columns 0 ... q
 *   where(back >= 0 && back < w, x, -inf)                      the last w of them; back is q - k
 *   where(index(K) < length, x, 0)                             as many as a number of the row says
 *
 * What is loaded matters only where all of its uses are chosen by such a condition; elsewhere it may
 * be anything, also NaN. So it is known before the load which columns need not be read. Of a value
 * that is made of it, the same choices tell what it is outside. Where that is one number for the
 * whole row, a phase computes it once.
 *
 * A condition is a set of bounds that hold where it does. What counts if either of two conditions
 * holds counts within the bounds that both have. */
#include "schedule/internal.h"

typedef uint64_t Bounds; /* a set of the bounds below; all: what counts nowhere */

enum { MOST_TESTS = 64, MOST_WORK = 32 };

typedef struct {
    const Scheduler *s;
    const Kernel *k;
    PlaceTest tests[MOST_TESTS]; /* each once */
    int count;
    Bounds *holds, *fails; /* by node id, of conditions: what holds where they do, or do not */
    Bounds *wanted;        /* by node id, of column values: where they count */
} Search;

static bool is_column(const Kernel *k, const Graph *g, Node n)
{
    return (node(g, n)->axes & k->columns) != 0;
}

/* ---- conditions ---- */

static bool are_equal(const PlaceTest *a, const PlaceTest *b)
{
    bool equal = a->op == b->op && a->count == b->count;
    for (int i = 0; equal && i < a->count; i++)
        equal = a->terms[i].n.id == b->terms[i].n.id && a->terms[i].minus == b->terms[i].minus;
    return equal;
}

/* Whether a number is known before a row is loaded. */
static bool is_known(const Search *f, Node n)
{
    const Load *load = load_of(f->k, n);
    return load ? load->access == ACCESS_ROW : f->k->phase[n.id] == 0;
}

/* The set with a bound; none: it is no bound of a window. */
static Bounds bound_of(Search *f, PlaceTest test)
{
    if (test.op == OP_NE) return 0;
    for (int i = 0; i < test.count; i++)
        if (!is_known(f, test.terms[i].n)) return 0;
    int at = 0;
    while (at < f->count && !are_equal(&f->tests[at], &test)) at++;
    if (at == MOST_TESTS) return 0;
    if (at == f->count) f->tests[f->count++] = test;
    return (Bounds)1 << at;
}

static void find_bounds(Search *f, Node n)
{
    const Graph *g = f->s->g;
    const Node a = arg(g, n, 0), b = arg(g, n, 1);
    PlaceTest test;
    switch (node(g, n)->op) {
    case OP_NOT:
        f->holds[n.id] = f->fails[a.id];
        f->fails[n.id] = f->holds[a.id];
        break;
    case OP_AND:
        f->holds[n.id] = f->holds[a.id] | f->holds[b.id];
        f->fails[n.id] = f->fails[a.id] & f->fails[b.id];
        break;
    case OP_OR:
        f->holds[n.id] = f->holds[a.id] & f->holds[b.id];
        f->fails[n.id] = f->fails[a.id] | f->fails[b.id];
        break;
    default:
        if (!find_place_test(g, f->k->columns, n, &test)) return;
        f->holds[n.id] = bound_of(f, test);
        test.op = opposite_comparison(test.op);
        f->fails[n.id] = bound_of(f, test);
    }
}

/* ---- where values count ---- */

/* What is stored or reduced counts everywhere. */
static void want_roots(Search *f)
{
    const Kernel *k = f->k;
    const Graph *g = f->s->g;
    for (int i = 0; i < k->store_count; i++) f->wanted[k->stores[i].node.id] = 0;
    for (int i = 0; i < k->accumulator_count; i++)
        f->wanted[operand_of(g, &k->accumulators[i]).id] = 0;
    for (int i = 0; i < k->inner_count; i++)
        if (!k->inner[i].picked.id) f->wanted[arg(g, k->inner[i].node, 0).id] = 0;
}

static void want_operands(Search *f, Node n)
{
    const Graph *g = f->s->g;
    const bool chooses = node(g, n)->op == OP_WHERE;
    const Node condition = arg(g, n, 0);
    const Bounds within[MAX_OPERANDS] = {0, chooses ? f->holds[condition.id] : 0,
                                         chooses ? f->fails[condition.id] : 0};
    for (int i = 0; i < op_info[node(g, n)->op].arity; i++)
        f->wanted[arg(g, n, i).id] &= f->wanted[n.id] | within[i];
}

/* The bounds that the masked loads of a row have in common, if there are any; else the first's. */
static Bounds common_bounds(const Search *f)
{
    Bounds common = 0, first = 0;
    for (int i = 0; i < f->k->load_count; i++) {
        const Bounds bounds = f->wanted[f->k->loads[i].node.id];
        if (!is_row_vector(f->k, &f->k->loads[i]) || !bounds || !(bounds + 1)) continue;
        if (!first) common = first = bounds;
        common &= bounds;
    }
    return common ? common : first;
}

/* ---- what values are outside ---- */

static bool is_within(Bounds inner, Bounds outer)
{
    return !(inner & ~outer);
}

/* Where a bound of the window does not hold, a condition that has all of them does not either. */
static Node chosen_outside(const Search *f, Node n, Bounds window)
{
    const Node condition = arg(f->s->g, n, 0);
    if (is_within(window, f->holds[condition.id])) return arg(f->s->g, n, 2);
    return is_within(window, f->fails[condition.id]) ? arg(f->s->g, n, 1) : (Node){0};
}

/* Loads of a row, its indices and what it keeps are not the same in all columns. Conditions that
 * are no choice's are left to the elements. */
static bool is_uniform(const Search *f, const bool *uniform, Node n)
{
    const Graph *g = f->s->g;
    const NodeInfo *info = node(g, n);
    const int arity = op_info[info->op].arity;
    if (!is_column(f->k, g, n)) return true;
    bool all = f->k->computed[n.id] && arity > 0 && !is_reduction(g, n);
    for (int i = 0; i < arity; i++) all = all && uniform[info->args[i].id];
    return all;
}

static void find_outside(const Search *f, Bounds window, Window *w)
{
    const Graph *g = f->s->g;
    Node *outside = NEW_ARRAY(f->s->arena, Node, g->nodes.count);
    bool *uniform = NEW_ARRAY(f->s->arena, bool, g->nodes.count);
    int *work = NEW_ARRAY(f->s->arena, int, g->nodes.count);
    for (int i = 1; i < g->nodes.count; i++) {
        const Node n = {(uint32_t)i};
        const NodeInfo *info = node(g, n);
        outside[i] = n;
        if (f->k->computed[i] && info->op == OP_WHERE) {
            const Node chosen = chosen_outside(f, n, window);
            if (chosen.id) outside[i] = outside[chosen.id];
        }
        const bool other = outside[i].id != n.id;
        uniform[i] = other ? uniform[outside[i].id] : is_uniform(f, uniform, n);
        work[i] = other ? work[outside[i].id] : 1;
        if (!other && is_column(f->k, g, n))
            for (int j = 0; j < op_info[info->op].arity; j++) work[i] += work[info->args[j].id];
        if (work[i] > MOST_WORK) uniform[i] = false, work[i] = MOST_WORK;
    }
    w->outside = outside;
    w->uniform = uniform;
}

/* ---- phases ---- */

static bool is_outside_known(const Search *f, const Window *w, Node n)
{
    return !is_column(f->k, f->s->g, n) || w->uniform[n.id];
}

/* A mean that goes with its squares counts elements. */
static bool may_skip(const Search *f, const Window *w, int phase)
{
    const Kernel *k = f->k;
    const Graph *g = f->s->g;
    bool skips = true;
    for (int i = 0; i < k->inner_count; i++) {
        const InnerReduction *r = &k->inner[i];
        if (r->phase != phase || r->picked.id) continue;
        const bool moments = node(g, r->partner)->op == OP_MEAN;
        skips &= !moments && !reduces_part(g, k, r->node);
        if (!r->partner.id) skips &= is_outside_known(f, w, arg(g, r->node, 0));
    }
    for (int i = 0; i < k->accumulator_count; i++) {
        const Accumulator *acc = &k->accumulators[i];
        if (acc->phase != phase) continue;
        skips &= !acc->mean.id && !acc->squares.id && is_outside_known(f, w, arg(g, acc->node, 0));
    }
    for (int i = 0; i < k->store_count; i++) {
        const Store *store = &k->stores[i];
        if (store->phase != phase || store->result || store->access == ACCESS_ROW) continue;
        skips &= store->access == ACCESS_VECTOR && is_outside_known(f, w, store->node);
    }
    return skips;
}

/* ---- how wide it is ---- */

static bool is_lower(const PlaceTest *test)
{
    return test->op == OP_GT || test->op == OP_GE;
}

static bool is_number(const Graph *g, Node n, double *value)
{
    const NodeInfo *info = node(g, n);
    const Param *param = info->op == OP_PARAM ? &g->params.data[info->param] : NULL;
    if (info->op == OP_CONST) *value = (double)info->integer;
    if (param && param->scalar && param->has_default) *value = param->default_value;
    return info->op == OP_CONST || (param && param->scalar && param->has_default);
}

/* What a number is a sum of. */
enum { MOST_PARTS = 16 };
typedef struct {
    Node n;
    int times;
} Part;
typedef struct {
    int count;
    Part parts[MOST_PARTS];
} Parts;

static bool add_part(Parts *all, Node n, int times)
{
    int at = 0;
    while (at < all->count && all->parts[at].n.id != n.id) at++;
    if (at == MOST_PARTS) return false;
    if (at == all->count) all->parts[all->count++] = (Part){n, 0};
    all->parts[at].times += times;
    return true;
}

static bool add_parts(const Graph *g, Parts *all, Node n, int times, int depth)
{
    const Op op = node(g, n)->op;
    const Node a = arg(g, n, 0), b = arg(g, n, 1);
    if (depth == 0 || (op != OP_ADD && op != OP_SUB && op != OP_NEG))
        return add_part(all, n, times);
    if (op == OP_NEG) return add_parts(g, all, a, -times, depth - 1);
    return add_parts(g, all, a, times, depth - 1) &&
           add_parts(g, all, b, op == OP_SUB ? -times : times, depth - 1);
}

static bool add_bound(const Graph *g, Parts *all, const PlaceTest *bound, int times)
{
    enum { DEPTH = 4 };
    for (int i = 0; i < bound->count; i++)
        if (!add_parts(g, all, bound->terms[i].n, bound->terms[i].minus ? -times : times, DEPTH))
            return false;
    return true;
}

/* How many columns lie between two bounds, if that is a number; negative: it is not. */
static double width_between(const Graph *g, const PlaceTest *upper, const PlaceTest *lower,
                            Node *named)
{
    Parts parts = {0};
    double width = 0, value;
    if (upper->op == OP_EQ) return 1;
    if (is_lower(upper) || !is_lower(lower)) return -1;
    if (!add_bound(g, &parts, upper, 1) || !add_bound(g, &parts, lower, -1)) return -1;
    for (int i = 0; i < parts.count; i++) {
        const Part *part = &parts.parts[i];
        if (!part->times) continue;
        if (!is_number(g, part->n, &value)) return -1;
        width += part->times * value;
        if (node(g, part->n)->op == OP_PARAM) *named = part->n;
    }
    return width > 0 ? width : 0;
}

/* Half of a row, as under a diagonal, unless its ends are as far apart as a number says. */
static void guess_share(const Search *f, Window *w)
{
    static const double HALF = 0.5;
    const double columns = (double)column_count(f->s, f->k);
    double least = -1;
    bool upper = false, lower = false;
    for (int i = 0; i < w->count; i++) {
        upper |= !is_lower(&w->bounds[i]);
        lower |= is_lower(&w->bounds[i]) || w->bounds[i].op == OP_EQ;
    }
    w->ends = upper + lower;
    for (int i = 0; i < w->count; i++)
        for (int j = 0; j < w->count; j++) {
            Node named = {0};
            const double width = width_between(f->s->g, &w->bounds[i], &w->bounds[j], &named);
            if (width < 0 || (least >= 0 && least <= width)) continue;
            least = width;
            w->width = named;
        }
    w->told = least >= 0;
    w->share = least < 0 ? HALF : least < columns ? least / columns : 1;
}

/* ---- the whole ---- */

static Search *search(const Scheduler *s, const Kernel *k)
{
    const int nodes = s->g->nodes.count;
    Search *f = NEW(s->arena, Search);
    f->s = s;
    f->k = k;
    f->holds = NEW_ARRAY(s->arena, Bounds, nodes);
    f->fails = NEW_ARRAY(s->arena, Bounds, nodes);
    f->wanted = NEW_ARRAY(s->arena, Bounds, nodes);
    for (int i = 1; i < nodes; i++) {
        f->wanted[i] = ~(Bounds)0;
        if (k->computed[i] && is_column(k, s->g, (Node){(uint32_t)i}))
            find_bounds(f, (Node){(uint32_t)i});
    }
    want_roots(f);
    for (int i = nodes - 1; i > 0; i--)
        if (k->computed[i] && !is_reduction(s->g, (Node){(uint32_t)i}))
            want_operands(f, (Node){(uint32_t)i});
    return f;
}

/* With fewer bounds than there are the window is only larger. */
static Bounds take_bounds(const Search *f, Window *w, Bounds wanted)
{
    Bounds taken = 0;
    for (int i = 0; i < f->count && w->count < MOST_BOUNDS; i++) {
        if (!(wanted >> i & 1)) continue;
        w->bounds[w->count++] = f->tests[i];
        taken |= (Bounds)1 << i;
    }
    return taken;
}

/* Most kernels have nothing to search. */
static bool compares_places(const Graph *g, const Kernel *k)
{
    PlaceTest test;
    for (int i = 1; i < g->nodes.count; i++)
        if (k->computed[i] && find_place_test(g, k->columns, (Node){(uint32_t)i}, &test))
            return true;
    return false;
}

static bool may_have_window(const Graph *g, const Kernel *k)
{
    return k->computed && k->columns && k->rows && !k->beside && !k->dynamic &&
           !has_several_column_axes(k) && row_inputs(k) && compares_places(g, k);
}

void find_window(const Scheduler *s, Kernel *k)
{
    k->window = NULL;
    for (int i = 0; i < k->load_count; i++) k->loads[i].masked = false;
    if (!may_have_window(s->g, k)) return;
    Search *f = search(s, k);
    Window *w = NEW(s->arena, Window);
    const Bounds window = take_bounds(f, w, common_bounds(f));
    if (!window) return;
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        load->masked = is_row_vector(k, load) && is_within(window, f->wanted[load->node.id]);
    }
    find_outside(f, window, w);
    for (int phase = 0; phase < k->phases && phase < LAST_PHASE_BIT; phase++)
        if (may_skip(f, w, phase)) w->phases |= phase_bit(phase);
    guess_share(f, w);
    k->window = w;
}

/* ---- what a kernel makes of it ---- */

bool has_window(const Kernel *k)
{
    const bool waits = k->residency == ROWS_IN_REGISTERS || is_streamed(k);
    return k->window && waits && !k->stages && !is_grouped(k);
}

bool is_masked(const Kernel *k, const Load *load)
{
    return load->masked && has_window(k);
}

/* A phase that reads column vectors a tile ahead takes all tiles in turn. */
bool skips_outside(const Kernel *k, int phase)
{
    return has_window(k) && k->window->phases & phase_bit(phase) && !reads_early(k);
}

static int skipping_phases(const Kernel *k)
{
    int skip = 0;
    for (int phase = 0; phase < k->phases; phase++) skip += skips_outside(k, phase);
    return skip;
}

double window_checks(const Kernel *k)
{
    enum { CHECK = 8 };
    return CHECK * skipping_phases(k) * k->tiles;
}

/* A warp skips its vectors of a tile together. So at each end of a window it computes, in the mean,
 * half of them for nothing. */
double computed_share(const Scheduler *s, const Kernel *k)
{
    const int skip = skipping_phases(k);
    if (!skip) return 1;
    const int lanes = k->threads_per_row < WARP ? k->threads_per_row : WARP;
    const double half = lanes * k->vec / 2.0 / (double)column_count(s, k),
                 share = k->window->share + k->window->ends * half;
    return share < 1 ? 1 - (1 - share) * skip / k->phases : 1;
}
