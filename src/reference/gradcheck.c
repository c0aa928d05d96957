/* reference/gradcheck.c: the gradients of a backward graph against differences of the forward one.
 *
 * The outputs are added up with random weights, so that one number depends on all of them; the
 * weights are what the backward graph is given as gradients. A gradient is off where it disagrees
 * with the differences along most of a few random directions. */
#include "reference/gradcheck_internal.h"

#include "reference/exact.h"

#include <math.h>
#include <string.h>

enum { DIRECTIONS = 3, ENOUGH_WRONG = 2 };

/* Of what a gradient may differ, as a share: a person's constants have six digits or more. */
static const double TOLERANCE = 1e-6;

static const double PI = 3.14159265358979323846;

/* ---- evaluating ---- */

Evaluator evaluator_new(Arena *arena, const Graph *g, const Sizes *sizes)
{
    Evaluator e = {.g = exact_graph(arena, g),
                   .sizes = *sizes,
                   .inputs = NEW_ARRAY(arena, HostTensor, g->params.count + 1),
                   .scalars = NEW_ARRAY(arena, double, g->params.count + 1),
                   .outputs = NEW_ARRAY(arena, double *, g->outputs.count + 1),
                   .stores = NEW_ARRAY(arena, HostTensor, g->outputs.count + 1),
                   .counts = NEW_ARRAY(arena, int64_t, g->outputs.count + 1)};
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &e.g->params.data[i];
        e.inputs[i] = (HostTensor){.dtype = p->dtype, .axes = p->axes};
        if (!p->scalar)
            e.inputs[i].data =
                arena_alloc(arena, (size_t)axes_bytes(sizes, p->axes, p->dtype) + 16);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        e.counts[i] = axes_size(sizes, g->outputs.data[i].axes);
        e.outputs[i] = NEW_ARRAY(arena, double, e.counts[i] + 1);
        e.stores[i] = (HostTensor){NULL, e.g->outputs.data[i].dtype, e.g->outputs.data[i].axes};
    }
    return e;
}

bool evaluator_run(Evaluator *e)
{
    const Evaluation evaluation = {.graph = e->g,
                                   .sizes = e->sizes,
                                   .inputs = e->inputs,
                                   .scalars = e->scalars,
                                   .outputs = e->stores,
                                   .exact = e->outputs,
                                   .threads = 1};
    return evaluate(&evaluation);
}

/* ---- inputs ---- */

double random_normal(uint64_t *state)
{
    double uniform[2];
    for (int i = 0; i < 2; i++) {
        /* splitmix64 */
        uint64_t z = *state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        uniform[i] = ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
    }
    return sqrt(-2 * log(uniform[0])) * cos(2 * PI * uniform[1]);
}

/* How random inputs are drawn: as they are, then of domains that functions such as log want. */
typedef enum { DRAW_NORMAL, DRAW_POSITIVE, DRAW_UNIT, DRAW_COUNT } Draw;

static double drawn(Draw draw, double normal)
{
    if (draw == DRAW_NORMAL) return normal;
    if (draw == DRAW_POSITIVE) return fabs(normal) + 0.5;
    return 0.1 + 0.8 * (0.5 + 0.5 * erf(normal * 0.7071067811865476));
}

static void take_tensor(Checker *c, int i)
{
    const Param *p = &c->check->forward->params.data[i];
    const char *from = c->check->tensors[i];
    char *to = c->forward.inputs[i].data;
    const int bytes = dtype_info[p->dtype].bytes;
    if (!dtype_is_float(p->dtype)) {
        memcpy(to, from, (size_t)c->counts[i] * (size_t)bytes);
        return;
    }
    for (int64_t k = 0; k < c->counts[i]; k++)
        ((double *)(void *)to)[k] = dtype_load_float(p->dtype, from + k * bytes);
}

static void set_inputs(Checker *c, Draw draw)
{
    const Graph *g = c->forward.g;
    for (int i = 0; i < g->params.count; i++) {
        double *values = c->forward.inputs[i].data;
        const bool is_float = dtype_is_float(g->params.data[i].dtype);
        if (g->params.data[i].scalar) {
            c->forward.scalars[i] = c->check->scalars[i];
            values = &c->forward.scalars[i];
        } else if (c->check->tensors) {
            take_tensor(c, i);
        } else {
            random_input(g, i, &c->check->sizes, c->check->seed, values);
            for (int64_t k = 0; is_float && k < c->counts[i]; k++)
                values[k] = drawn(draw, values[k]);
        }
        if (is_float) memcpy(c->values[i], values, sizeof *values * (size_t)c->counts[i]);
    }
}

static bool is_finite(const Evaluator *e)
{
    for (int i = 0; i < e->g->outputs.count; i++)
        for (int64_t k = 0; dtype_is_float(e->g->outputs.data[i].dtype) && k < e->counts[i]; k++)
            if (!isfinite(e->outputs[i][k])) return false;
    return true;
}

/* Draws inputs for which all outputs are finite, if there are such. */
static void find_inputs(Checker *c)
{
    for (int draw = 0; draw < DRAW_COUNT && !c->failed; draw++) {
        set_inputs(c, (Draw)draw);
        c->failed = !evaluator_run(&c->forward);
        if (c->check->tensors || is_finite(&c->forward)) return;
    }
    set_inputs(c, DRAW_NORMAL);
    c->failed |= !evaluator_run(&c->forward);
}

/* Elements that are not finite do not count. */
static void set_weights(Checker *c)
{
    uint64_t state = c->check->seed ^ 0x5bd1e995;
    for (int i = 0; i < c->forward.g->outputs.count; i++) {
        if (!c->check->of[i]) continue;
        c->weights[i] = NEW_ARRAY(c->arena, double, c->forward.counts[i] + 1);
        for (int64_t k = 0; k < c->forward.counts[i]; k++) {
            const double weight = random_normal(&state);
            c->weights[i][k] = isfinite(c->forward.outputs[i][k]) ? weight : 0;
        }
    }
}

/* ---- the backward graph ---- */

static void give_saved(Evaluator *b, int param, const Evaluator *f, int output)
{
    const DType dtype = b->g->params.data[param].dtype;
    const int64_t *whole = (const int64_t *)(const void *)f->outputs[output];
    char *to = b->inputs[param].data;
    if (dtype_is_float(dtype)) {
        memcpy(to, f->outputs[output], sizeof(double) * (size_t)f->counts[output]);
        return;
    }
    for (int64_t k = 0; k < f->counts[output]; k++)
        dtype_store_int(dtype, to + k * dtype_info[dtype].bytes, whole[k]);
}

static void give_input(const Checker *c, Evaluator *b, int param, int input)
{
    const Param *p = &b->g->params.data[param];
    const bool from_scalar = c->forward.g->params.data[input].scalar;
    const double *values = c->values[input];
    if (p->scalar) {
        b->scalars[param] = from_scalar ? c->forward.scalars[input] : values ? values[0] : 0;
    } else if (dtype_is_float(p->dtype)) {
        memcpy(b->inputs[param].data, values, sizeof *values * (size_t)c->counts[input]);
    } else if (!from_scalar) {
        memcpy(b->inputs[param].data, c->forward.inputs[input].data,
               (size_t)c->counts[input] * (size_t)dtype_info[p->dtype].bytes);
    }
}

/* Evaluates a backward graph for the weights. NULL: it does not fit, or memory ran out. */
static Evaluator *run_backward(Checker *c, const Graph *g, const Fit *fits)
{
    const Sizes sizes = fit_sizes(c->check->forward, &c->check->sizes, g);
    Evaluator *b = NEW(c->arena, Evaluator);
    *b = evaluator_new(c->arena, g, &sizes);
    for (int i = 0; i < g->params.count; i++) {
        const int index = fits[i].index;
        if (fits[i].kind == FIT_INPUT)
            give_input(c, b, i, index);
        else if (fits[i].kind == FIT_SAVED)
            give_saved(b, i, &c->forward, index);
        else if (c->weights[index])
            memcpy(b->inputs[i].data, c->weights[index],
                   sizeof(double) * (size_t)c->forward.counts[index]);
    }
    c->failed |= !evaluator_run(b);
    return b;
}

/* ---- one gradient ---- */

typedef struct {
    Checker *c;
    int param; /* of the forward graph */
    const char *name;
    const double *gradient, *own; /* own NULL: there is none to compare with */
    double *direction;
} Subject;

static double scale_of(const double *values, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += isfinite(values[i]) ? values[i] * values[i] : 0;
    return count ? sqrt(squares / (double)count) : 0;
}

/* A random direction, as long as the values are large; 0 where there is no gradient to compare. */
static void draw_direction(Subject *s, uint64_t *state)
{
    const double scale = scale_of(s->c->values[s->param], s->c->counts[s->param]);
    for (int64_t i = 0; i < s->c->counts[s->param]; i++) {
        const double length = (scale > 0 ? scale : 1) * random_normal(state);
        s->direction[i] = isfinite(s->gradient[i]) ? length : 0;
    }
}

typedef struct {
    double is, size; /* the gradient along the direction; the magnitude of its terms */
    Difference should;
    bool is_wrong;
} Comparison;

static Comparison compare(Subject *s)
{
    Comparison r = {.should = differentiate(s->c, s->param, s->direction)};
    for (int64_t i = 0; i < s->c->counts[s->param]; i++) {
        const double term = s->direction[i] != 0 ? s->gradient[i] * s->direction[i] : 0;
        r.is += term;
        r.size += term * term;
    }
    r.size = sqrt(r.size);
    const Difference *d = &r.should;
    const double allowed = 10 * d->error + TOLERANCE * (fabs(d->value) + r.size) + d->noise;
    /* At a kink any value between those of the two sides is a gradient. */
    r.is_wrong = !(fabs(r.is - d->value) <= allowed + (d->is_kink ? d->bend : 0));
    return r;
}

/* An element along which the gradient is off, found by halving the direction. */
static int64_t find_wrong(Subject *s, Comparison *at)
{
    int64_t begin = 0, end = s->c->counts[s->param];
    double *whole = NEW_ARRAY(s->c->arena, double, end + 1);
    memcpy(whole, s->direction, sizeof *whole * (size_t)end);
    while (end - begin > 1 && !s->c->failed) {
        const int64_t middle = begin + (end - begin) / 2;
        for (int64_t i = 0; i < s->c->counts[s->param]; i++)
            s->direction[i] = i >= begin && i < middle ? whole[i] : 0;
        if (compare(s).is_wrong)
            end = middle;
        else
            begin = middle;
    }
    for (int64_t i = 0; i < s->c->counts[s->param]; i++) s->direction[i] = 0;
    s->direction[begin] = whole[begin] != 0 ? whole[begin] : 1;
    *at = compare(s);
    at->is /= s->direction[begin];
    at->should.value /= s->direction[begin];
    return begin;
}

/* "[2, 3]" */
static const char *place_text(const Subject *s, int64_t element)
{
    const Graph *g = s->c->forward.g;
    const Param *p = &g->params.data[s->param];
    const char *place = "";
    for (int i = g->axis_count - 1; i >= 0; i--) {
        if (!(p->axes >> i & 1)) continue;
        const int64_t size = s->c->forward.sizes.of[i];
        place = arena_format(s->c->arena, "%lld%s%s", (long long)(element % size),
                             *place ? ", " : "", place);
        element /= size;
    }
    return arena_format(s->c->arena, "[%s]", place);
}

/* The element that differs most from the gradient that is known; -1: none does. */
static int64_t find_other(const Subject *s)
{
    const int64_t count = s->c->counts[s->param];
    const double scale = s->own ? scale_of(s->own, count) : 0;
    double most = 1;
    int64_t found = -1;
    for (int64_t i = 0; s->own && i < count; i++) {
        const double is = s->gradient[i], own = s->own[i];
        if (is == own || (isnan(is) && isnan(own))) continue;
        const double share = fabs(is - own) / (TOLERANCE * (fabs(own) + scale) + 1e-300);
        if (share <= most) continue;
        most = share;
        found = i;
    }
    return found;
}

/* The gradient where it is NaN, though the outputs are finite; -1: nowhere. */
static int64_t find_nan(const Subject *s)
{
    for (int64_t i = 0; i < s->c->counts[s->param]; i++)
        if (isnan(s->gradient[i]) && !(s->own && isnan(s->own[i]))) return i;
    return -1;
}

static void report_wrong(Subject *s, Text *report)
{
    const int64_t other = find_other(s);
    Comparison at;
    if (other >= 0) {
        line(report, "%-12s WRONG   %s%s is %.9g, should be %.9g", s->name, s->name,
             place_text(s, other), s->gradient[other], s->own[other]);
        return;
    }
    const int64_t wrong = find_wrong(s, &at);
    line(report, "%-12s WRONG   %s%s is %.9g, by differences it should be %.9g", s->name, s->name,
         place_text(s, wrong), at.is, at.should.value);
}

static bool check_one(Subject *s, Text *report, bool finite)
{
    uint64_t state = s->c->check->seed + 77;
    int wrong = 0, kinks = 0;
    double worst = 0;
    const int64_t nan = finite ? find_nan(s) : -1;
    if (s->c->counts[s->param] == 0) {
        line(report, "%-12s ok      it has no elements", s->name);
        return true;
    }
    if (nan >= 0) {
        line(report, "%-12s WRONG   %s%s is NaN, and the outputs are finite", s->name, s->name,
             place_text(s, nan));
        return false;
    }
    const bool is_other = find_other(s) >= 0;
    /* One direction tells whether that is for a kink. */
    const int directions = is_other ? 1 : DIRECTIONS;
    for (int i = 0; i < directions && !s->c->failed; i++) {
        draw_direction(s, &state);
        const Comparison r = compare(s);
        wrong += r.is_wrong;
        kinks += r.should.is_kink;
        const double share = fabs(r.is - r.should.value) / (fabs(r.should.value) + r.size + 1e-300);
        if (!r.should.is_kink && share > worst) worst = share;
    }
    if (s->c->failed) return true;
    if (wrong >= ENOUGH_WRONG || (is_other && (wrong || kinks < directions))) {
        report_wrong(s, report);
        return false;
    }
    if (kinks)
        line(report, "%-12s ok      between the derivatives on both sides of a kink", s->name);
    else
        line(report, "%-12s ok      agrees with finite differences to %.1e, along %d directions",
             s->name, worst, DIRECTIONS);
    return true;
}

/* ---- all ---- */

static const double *find_own(const Evaluator *own, const int *fits, int param)
{
    for (int i = 0; own && i < own->g->outputs.count; i++)
        if (fits[i] == param) return own->outputs[i];
    return NULL;
}

static Checker checker_new(Arena *arena, const GradCheck *check)
{
    const Graph *g = check->forward;
    Checker c = {.arena = arena,
                 .check = check,
                 .forward = evaluator_new(arena, g, &check->sizes),
                 .weights = NEW_ARRAY(arena, double *, g->outputs.count + 1),
                 .values = NEW_ARRAY(arena, double *, g->params.count + 1),
                 .here = NEW_ARRAY(arena, double *, g->outputs.count + 1),
                 .above = NEW_ARRAY(arena, double *, g->outputs.count + 1),
                 .counts = NEW_ARRAY(arena, int64_t, g->params.count + 1)};
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        c.counts[i] = p->scalar ? 1 : axes_size(&check->sizes, p->axes);
        if (dtype_is_float(p->dtype)) c.values[i] = NEW_ARRAY(arena, double, c.counts[i] + 1);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        c.here[i] = NEW_ARRAY(arena, double, c.forward.counts[i] + 1);
        c.above[i] = NEW_ARRAY(arena, double, c.forward.counts[i] + 1);
    }
    return c;
}

GradVerdict check_gradients(Arena *arena, const GradCheck *check, Text *report)
{
    const Graph *backward = check->backward;
    Checker c = checker_new(arena, check);
    Fit *fits = fit_params(arena, check->forward, backward, report);
    int *of = fits ? fit_outputs(arena, check->forward, backward, report) : NULL;
    Fit *own_fits = of && check->own ? fit_params(arena, check->forward, check->own, report) : NULL;
    int *own_of = own_fits ? fit_outputs(arena, check->forward, check->own, report) : NULL;
    if (!of || (check->own && !own_of)) return GRADCHECK_UNFIT;
    find_inputs(&c);
    set_weights(&c);
    const bool finite = is_finite(&c.forward);
    const Evaluator *own = NULL;
    const Evaluator *b = run_backward(&c, backward, fits);
    if (check->own) own = run_backward(&c, check->own, own_fits);
    bool right = true;
    for (int i = 0; i < backward->outputs.count && !c.failed; i++) {
        if (check->progress)
            check->progress(check->progress_data, (double)i / backward->outputs.count);
        Subject s = {.c = &c,
                     .param = of[i],
                     .name = backward->outputs.data[i].name,
                     .gradient = b->outputs[i],
                     .own = find_own(own, own_of, of[i]),
                     .direction = NEW_ARRAY(arena, double, c.counts[of[i]] + 1)};
        right &= check_one(&s, report, finite);
    }
    if (c.failed) return GRADCHECK_NO_MEMORY;
    return right ? GRADCHECK_RIGHT : GRADCHECK_WRONG;
}
