/* schedule/explain_cuts.c: why a plan has several kernels, in words: the lines `why` of explain. */
#include "schedule/internal.h"

#include <string.h>

/* Whether a reduction is over the last axes of its operand, which has none of the graph's columns.
 */
static bool has_other_columns(const Scheduler *s, Node n)
{
    AxisSet axes = node(s->g, arg(s->g, n, 0))->axes, reduced = node(s->g, n)->reduced,
            left = axes & ~reduced;
    return reduction_way(s, n) == BY_ITSELF && !(axes & s->a->columns) && left &&
           left < (reduced & -reduced);
}

/* Whether its kernel leaves it for others, or what is made of it. */
static bool is_left(const Scheduler *s, Node n)
{
    if (s->slot_of[n.id] >= 0) return true;
    for (int i = 1; i < s->g->nodes.count; i++)
        if (s->slot_of[i] >= 0 && s->left_by[i].id && end_together(s, n, s->left_by[i]))
            return true;
    return false;
}

static const char RIDES[] = " complete only when every CTA has added its rows";

static const char *cut_text(Arena *arena, const char *names, const char *reason)
{
    const char *verb = strcmp(reason, RIDES) ? "" : strstr(names, ", ") ? " are" : " is";
    return arena_format(arena, "%s%s%s", names, verb, reason);
}

void explain_cuts(Scheduler *s, Plan *plan)
{
    static const char *const why[] = {
        [BY_ROW] = ": several rows share the result, so a separate kernel computes it once",
        [BY_RIDING] = RIDES,
        [BY_COLUMN] = ": summed over rows, in a separate kernel whose threads each have columns",
        [BY_ITSELF] =
            ": reduced over axes that are neither the columns nor only rows, so in a separate kernel"};
    LIST(Rejection) cuts = {0}; /* names and reason, joined where the reason is the same */
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (!s->live[i] || !is_reduction(s->g, n)) continue;
        const Way way = reduction_way(s, n);
        if (way == BY_ROW && !(s->apart[i] && is_left(s, n))) continue;
        const char *reason = why[way];
        if (adds_long_rows(s, n) && s->apart_sums)
            reason = ": adds one number of each row, and rows are long, so in a separate kernel";
        if (has_other_columns(s, n))
            reason = arena_format(
                s->arena,
                ": reduces along %s, and the graph's columns are %s, so in a separate kernel; in a graph of its own, or with --outputs, it could share one with what uses it",
                axes_text(s->arena, s->g, node(s->g, n)->reduced),
                axes_text(s->arena, s->g, s->a->columns));
        int same = 0;
        while (same < cuts.count && strcmp(cuts.data[same].reason, reason)) same++;
        if (same == cuts.count)
            *list_push(s->arena, &cuts) = (Rejection){value_name(s->arena, s->g, n), reason};
        else
            cuts.data[same].schedule = arena_format(s->arena, "%s, %s", cuts.data[same].schedule,
                                                    value_name(s->arena, s->g, n));
    }
    plan->cuts = NEW_ARRAY(s->arena, const char *, cuts.count + 1);
    plan->cut_count = cuts.count;
    for (int i = 0; i < cuts.count; i++)
        plan->cuts[i] = cut_text(s->arena, cuts.data[i].schedule, cuts.data[i].reason);
}
