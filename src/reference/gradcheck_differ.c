/* reference/gradcheck_differ.c: derivatives by differences. Central differences at steps that halve
 * are extrapolated to a step of 0 (Ridders); neighbours in that table tell how far off each entry
 * may be, and the best one is taken. Where the differences on both sides do not meet as the step
 * shrinks, the forward pass has a kink there. */
#include "reference/gradcheck_internal.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 10 };

/* The weighted sum of the outputs, and the sum of its terms' magnitudes. */
static double weigh(Checker *c, double *magnitude)
{
    Evaluator *f = &c->forward;
    double sum = 0;
    *magnitude = 0;
    if (!evaluator_run(f)) c->failed = true;
    for (int i = 0; i < f->g->outputs.count && !c->failed; i++) {
        for (int64_t k = 0; c->weights[i] && k < f->counts[i]; k++) {
            if (c->weights[i][k] == 0) continue;
            const double term = c->weights[i][k] * f->outputs[i][k];
            sum += term;
            *magnitude += fabs(term);
        }
    }
    return sum;
}

static double weigh_at(Checker *c, int param, const double *direction, double step,
                       double *magnitude)
{
    const bool scalar = c->forward.g->params.data[param].scalar;
    double *moved = scalar ? &c->forward.scalars[param] : c->forward.inputs[param].data;
    for (int64_t i = 0; i < c->counts[param]; i++)
        moved[i] = c->values[param][i] + step * direction[i];
    const double sum = weigh(c, magnitude);
    memcpy(moved, c->values[param], sizeof *moved * (size_t)c->counts[param]);
    return sum;
}

/* Extrapolates the last of `count` central differences at steps that halve, in place: row[k] is
 * accurate to the power 2 k + 2 of the step. Returns the best entry of the new row. */
static void extrapolate(const double *before, double *row, int count, Difference *best)
{
    double factor = 4;
    for (int k = 1; k < count; k++, factor *= 4) {
        row[k] = (factor * row[k - 1] - before[k - 1]) / (factor - 1);
        const double error = fmax(fabs(row[k] - row[k - 1]), fabs(row[k] - before[k - 1]));
        if (!(error < best->error)) continue;
        best->error = error;
        best->value = row[k];
    }
}

/* Copies what the outputs are now. */
static void keep_outputs(const Checker *c, double **to)
{
    for (int i = 0; i < c->forward.g->outputs.count; i++)
        if (c->weights[i])
            memcpy(to[i], c->forward.outputs[i], sizeof **to * (size_t)c->forward.counts[i]);
}

/* By how much the derivatives on both sides differ, added up over all outputs: from the outputs
 * here, above, and those of the evaluator, below. */
static double find_bend(const Checker *c, double step)
{
    double sum = 0;
    for (int i = 0; i < c->forward.g->outputs.count; i++)
        for (int64_t k = 0; c->weights[i] && k < c->forward.counts[i]; k++) {
            const double second = c->above[i][k] - 2 * c->here[i][k] + c->forward.outputs[i][k];
            if (c->weights[i][k] != 0) sum += fabs(c->weights[i][k] * second) / step;
        }
    return sum;
}

static Difference differ_from(Checker *c, int param, const double *direction, double step)
{
    double rows[LEVELS][LEVELS], magnitude, bend_before = 0;
    const double rounding = 1e-15, least = 1e-9;
    weigh_at(c, param, direction, 0, &magnitude);
    keep_outputs(c, c->here);
    Difference best = {.value = NAN, .error = INFINITY, .noise = rounding * magnitude};
    for (int k = 0; k < LEVELS && !c->failed; k++, step /= 2) {
        double size;
        const double above = weigh_at(c, param, direction, step, &size);
        keep_outputs(c, c->above);
        const double below = weigh_at(c, param, direction, -step, &size);
        rows[k][0] = (above - below) / (2 * step);
        if (k > 0) extrapolate(rows[k - 1], rows[k], k + 1, &best);
        bend_before = best.bend;
        best.bend = find_bend(c, step);
    }
    /* It halves with the step where both sides meet. */
    const double noise = 16 * best.noise / step + least * fabs(best.value);
    best.is_kink = best.bend > noise && best.bend > 0.75 * bend_before;
    best.noise *= 1e4;
    return best;
}

static bool is_determined(const Difference *d)
{
    const double enough = 1e-7;
    return d->error <= enough * (fabs(d->value) + 1e-3) + d->noise;
}

Difference differentiate(Checker *c, int param, const double *direction)
{
    const double steps[] = {0x1p-6, 0x1p-12, 0x1p-16};
    Difference best = {.error = INFINITY};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !c->failed; i++) {
        const Difference d = differ_from(c, param, direction, steps[i]);
        if (d.error < best.error || i == 0) best = d;
        best.is_kink = d.is_kink;
        best.bend = d.bend;
        if (is_determined(&best) && !best.is_kink) break;
    }
    return best;
}
