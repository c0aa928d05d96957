/* verify.c: compares outputs with the f64 reference and its error bounds. See session.h. */
#include "cli/session.h"
#include "cli/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool alloc_truth(const Session *s, const Batch *b, Truth *t)
{
    const Graph *g = s->graph;
    *t = (Truth){NEW_ARRAY(s->arena, double *, g->outputs.count + 1),
                 NEW_ARRAY(s->arena, float *, g->outputs.count + 1),
                 NEW_ARRAY(s->arena, HostTensor, g->outputs.count + 1),
                 NEW_ARRAY(s->arena, HostTensor, g->params.count + 1)};
    bool got = true;
    for (int i = 0; i < g->outputs.count; i++) {
        if (!s->wanted[i]) continue;
        t->exact[i] = calloc((size_t)b->outputs[i].count + 1, sizeof(double));
        t->bound[i] = calloc((size_t)b->outputs[i].count + 1, sizeof(float));
        got &= t->exact[i] && t->bound[i];
    }
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        t->inputs[i] = (HostTensor){p->scalar ? NULL : b->inputs[i].data, p->dtype, p->axes};
    }
    for (int i = 0; i < g->outputs.count; i++)
        t->outputs[i] = (HostTensor){NULL, g->outputs.data[i].dtype, g->outputs.data[i].axes};
    return got;
}

void close_truth(const Session *s, Truth *t)
{
    for (int i = 0; t->exact && i < s->graph->outputs.count; i++) {
        free(t->exact[i]);
        free(t->bound[i]);
    }
}

/* An output is `ok` only if each of its elements was compared with something. */
static const char *verdict_text(const Verdict *v)
{
    if (v->wrong) return "WRONG";
    if (v->count && v->unchecked + v->nans == v->count) return "unchecked";
    return v->unchecked ? "partly unchecked" : "ok";
}

/* A tiny share is not printed as none: 0.0 % is for outputs without any error. */
static const char *share_text(Text *table, double share)
{
    const double least = 5e-4;
    return share > 0 && share < least ? "<0.1%" : arena_format(table->arena, "%.1f%%", 100 * share);
}

static void report(Text *table, int width, const Output *o, const Verdict *v)
{
    const char *dtype = dtype_info[o->dtype].fuse;
    const char *verdict = verdict_text(v);
    if (!strcmp(verdict, "unchecked"))
        line(table, "%-*s %-6s %16s %10s %14s   %s", width, o->name, dtype, "-", "-", "-", verdict);
    else
        line(table, "%-*s %-6s %12.3f ulp %10s %14.3e   %s", width, o->name, dtype, v->worst_ulps,
             share_text(table, v->worst_share), v->relative, verdict);
    if (v->wrong)
        line(table, "    %lld of %lld elements outside the bound, the worst is element %lld",
             (long long)v->wrong, (long long)v->count, (long long)v->worst);
    if (v->nans)
        line(
            table,
            "    %lld of %lld elements are NaN, here and by the reference: nothing else is known of them",
            (long long)v->nans, (long long)v->count);
    if (v->unchecked)
        line(
            table,
            "    %lld of %lld elements are unchecked: they may be anything in f32, so there is nothing to compare them with",
            (long long)v->unchecked, (long long)v->count);
}

int open_truth(const Session *s, const Batch *b, Truth *t)
{
    bool got = alloc_truth(s, b, t);
    Progress progress;
    progress_begin(&progress, "reference");
    Evaluation e = {.graph = s->graph,
                    .sizes = b->sizes,
                    .inputs = t->inputs,
                    .scalars = b->scalars,
                    .outputs = t->outputs,
                    .exact = t->exact,
                    .bound = t->bound,
                    .progress = progress_step,
                    .progress_data = &progress};
    got = got && evaluate(&e);
    progress_end(&progress);
    if (got) return EXIT_DONE;
    complain(NULL, "out of memory for the reference");
    return EXIT_MACHINE;
}

Verdict judge_output(const Session *s, const Batch *b, const Truth *t, int output)
{
    return judge(s->graph->outputs.data[output].dtype, b->outputs[output].data, t->exact[output],
                 t->bound[output], b->outputs[output].count);
}

void put_verdict(Text *out, const Verdict *v)
{
    char relative[NUMBER_DIGITS];
    shortest_digits(relative, v->relative, true);
    text_print(out,
               "{\"verdict\": \"%s\", \"elements\": %lld, \"wrong\": %lld, \"nans\": %lld, "
               "\"unchecked\": %lld, ",
               verdict_text(v), (long long)v->count, (long long)v->wrong, (long long)v->nans,
               (long long)v->unchecked);
    if (isfinite(v->worst_ulps) && isfinite(v->worst_share) && isfinite(v->relative))
        text_print(out, "\"worst_ulps\": %.3f, \"bound_share\": %.6f, \"relative\": %s, ",
                   v->worst_ulps, v->worst_share, relative);
    else
        text_print(out, "\"worst_ulps\": null, \"bound_share\": null, \"relative\": null, ");
    text_print(out, v->worst < 0 ? "\"worst\": null}" : "\"worst\": %lld}", (long long)v->worst);
}

bool judge_batch(const Session *s, const Batch *b, const Truth *t, Text *table)
{
    const Graph *g = s->graph;
    const int width = output_width(s);
    bool passed = true, nans = false;
    if (table)
        line(table, "%-*s %-6s %16s %10s %14s", width,
             s->is_cpu && !s->is_simulated ? "no kernel ran" : "verified", "dtype", "worst error",
             "of bound", "|out-ref|/|ref|");
    for (int i = 0; i < g->outputs.count; i++) {
        if (!s->wanted[i]) continue;
        const Output *o = &g->outputs.data[i];
        Verdict v = judge_output(s, b, t, i);
        if (table) report(table, width, o, &v);
        passed &= !v.wrong;
        nans |= v.nans > 0;
    }
    if (table && nans && !s->options->in)
        line(table,
             "    (inputs are random normal numbers, and positive where they are named rstd, rs, "
             "std, var or scale; --in gives others)");
    return passed;
}

int verify_batch(const Session *s, const Batch *b, Text *table, bool *passed)
{
    Truth t;
    int status = open_truth(s, b, &t);
    *passed = status != EXIT_DONE || judge_batch(s, b, &t, table);
    close_truth(s, &t);
    return status;
}
