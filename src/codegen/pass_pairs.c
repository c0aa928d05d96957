/* codegen/pass_pairs.c: reductions that a pass over a row's columns computes together: a maximum
 * and its sum of exponentials, a mean and the squares about it. They take a vector at a time, or
 * all of a thread's values at once. */
#include "codegen/emit.h"

static bool is_pass_pair(const Pass *pass, const InnerReduction *sum)
{
    return sum->partner.id && sum->phase == pass->phase && !sum->lacking;
}

static bool is_moments(const Emitter *e, const InnerReduction *squares)
{
    return node(e->g, squares->partner)->op == OP_MEAN;
}

bool joins_moments(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    for (int i = 0; i < k->inner_count; i++)
        if (is_pass_pair(pass, &k->inner[i]) && is_moments(pass->e, &k->inner[i])) return true;
    return false;
}

/* Whether the pair takes a thread's values all at once, not vector by vector. */
static bool is_taken_whole(const Emitter *e, const InnerReduction *sum)
{
    return e->k->moments == MOMENTS_OF_THREADS && is_moments(e, sum);
}

bool takes_whole_rows(const Pass *pass)
{
    const Kernel *k = pass->e->k;
    for (int i = 0; i < k->inner_count; i++)
        if (is_pass_pair(pass, &k->inner[i]) && is_taken_whole(pass->e, &k->inner[i])) return true;
    return false;
}

/* Whether a mean and its squares take all that is loaded at once. */
static bool is_taken_ahead(const Emitter *e, const InnerReduction *sum)
{
    return walks_runs(e) && is_moments(e, sum);
}

void declare_pairs_ahead(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        Node mean = e->k->inner[i].partner;
        if (is_pass_pair(pass, &e->k->inner[i]) && is_taken_ahead(e, &e->k->inner[i]))
            line(e->out, "float %s[%d][vec];", e->taken[mean.id], e->ahead);
    }
}

/* Of what is loaded at once some is behind the row's end. */
void emit_pairs_ahead(const Pass *pass, const char *count)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        Node mean = e->k->inner[i].partner;
        if (is_pass_pair(pass, &e->k->inner[i]) && is_taken_ahead(e, &e->k->inner[i]))
            line(e->out, "moments_add_some(%s, %s, %s);", reduce_call(e, mean, node_name(e, mean)),
                 e->taken[mean.id], count);
    }
}

void emit_pair_vectors(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        Node partner = e->k->inner[i].partner;
        if (!is_pass_pair(pass, &e->k->inner[i])) continue;
        if (is_taken_whole(e, &e->k->inner[i])) continue;
        e->taken[partner.id] = name_after(e, partner, "_of");
        if (!is_taken_ahead(e, &e->k->inner[i]))
            line(e->out, "float %s[vec];", e->taken[partner.id]);
    }
}

/* Declares a thread's values of a row, for a mean and its squares. */
void emit_whole_rows(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *squares = &e->k->inner[i];
        if (!is_pass_pair(pass, squares) || !is_taken_whole(e, squares)) continue;
        e->taken[squares->partner.id] = name_after(e, squares->partner, "_of");
        line(e->out, "float %s[tiles][vec];", e->taken[squares->partner.id]);
    }
}

void emit_whole_takes(const Pass *pass)
{
    Emitter *e = pass->e;
    int open = e->k->tiles - e->k->full_tiles;
    const char *full = open ? arena_format(e->arena, "tiles - %d", open) : "tiles";
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *squares = &e->k->inner[i];
        if (!is_pass_pair(pass, squares) || !is_taken_whole(e, squares)) continue;
        Node mean = squares->partner;
        line(e->out, "moments_take<step, %s>(%s, %s, first_column, %s);", full,
             reduce_call(e, mean, node_name(e, mean)), e->taken[mean.id], e->end);
    }
}

void emit_pair_elements(const Pass *pass)
{
    Emitter *e = pass->e;
    const char *guard = walks_runs(e) ? run_guard(e) : column_guard(e);
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *sum = &e->k->inner[i];
        if (!is_pass_pair(pass, sum)) continue;
        bool masked = *guard && !is_moments(e, sum);
        const char *x = expression(e, arg(e->g, sum->partner, 0), masked ? 4 : 0);
        line(e->out, masked ? "%s%s[i] = %s ? %s : -infinity();" : "%s%s[i] = %s%s;",
             e->taken[sum->partner.id],
             is_taken_whole(e, sum) || is_taken_ahead(e, sum) ? "[t]" : "", masked ? guard : "", x);
    }
}

/* Joins a vector to a mean and its squares. Where all tiles but the last are full, the compiler
 * knows how many values a thread has seen, which saves divisions. */
static void emit_moments_add(const Pass *pass, const InnerReduction *squares)
{
    Emitter *e = pass->e;
    Node mean = squares->partner;
    bool guarded = is_ragged(e->k) && !is_streamed(e->k);
    if (guarded)
        line(e->out, "if (%scol < %s)",
             e->k->remainder == TILES_LAST_OPEN ? "t + 1 < tiles || " : "", e->end);
    line(e->out, "%s%smoments_add(%s, %s);", guarded ? "    " : "", e->k->beside ? "each_" : "",
         reduce_call(e, mean, node_name(e, mean)), e->taken[mean.id]);
}

void emit_pair_adds(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *sum = &e->k->inner[i];
        if (!is_pass_pair(pass, sum) || is_taken_whole(e, sum) || is_taken_ahead(e, sum)) continue;
        if (is_moments(e, sum))
            emit_moments_add(pass, sum);
        else
            line(e->out, "%s(%s, %s, %s);", is_streamed(e->k) ? "online_stream" : "online_add",
                 node_name(e, sum->partner), node_name(e, sum->node), e->taken[sum->partner.id]);
    }
}

void emit_pair_ends(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *sum = &e->k->inner[i];
        if (!is_pass_pair(pass, sum) || is_taken_whole(e, sum)) continue;
        const char *name = node_name(e, sum->partner);
        if (is_moments(e, sum))
            line(e->out, "moments_settle(%s);", reduce_call(e, sum->partner, name));
        else if (is_streamed(e->k))
            line(e->out, "online_settle(%s, %s);", name, node_name(e, sum->node));
    }
}
