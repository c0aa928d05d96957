/* codegen/pass_streamed.c: a pass over a row that each phase reads from memory again: a loop over
 * its columns. Where threads have registers for several vectors of each tensor, they load those
 * before they compute with the first. Otherwise loads would wait for computation: each load has a
 * branch behind it, for unaligned tensors, across which compilers move nothing. */
#include "codegen/emit.h"

/* Bytes of a row that a thread may have in flight, where no other rows hide their latency. CTAs of
 * 1024 threads that share an SM have 32 registers a thread, and none to spare. Coordinates of
 * several column axes take registers, and so do the results of more than two phases. */
static int room_ahead(const Kernel *k)
{
    enum { ONE_CTA = 128, TWO_CTAS = 64, TWO_FULL_CTAS = 32 }; /* CTAs of a group on an SM */
    bool alone = !(k->rows | k->kept), full = has_several_columns(k) || k->phases > 2;
    if (!is_grouped(k)) return alone ? TWO_CTAS : 0;
    return alone ? ONE_CTA : full ? TWO_FULL_CTAS : TWO_CTAS;
}

bool has_runs(const Emitter *e)
{
    return is_streamed(e->k) && !is_grouped(e->k) && has_column_pair(e) &&
           vectors_of_run(e->k, e->k->vec);
}

int vectors_ahead(const Pass *pass)
{
    enum { MOST = 8 };
    const Kernel *k = pass->e->k;
    int bytes = 0, ahead = 1, room = room_ahead(k);
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && pass->needed[k->loads[i].node.id])
            bytes += k->vec * dtype_info[k->loads[i].dtype].bytes;
    if (!is_streamed(k) || !is_ragged(k) || !bytes) return 0;
    if (has_runs(pass->e)) return vectors_of_run(k, k->vec);
    while (ahead < MOST && 2 * ahead * bytes <= room) ahead *= 2;
    return ahead > 1 ? ahead : 0;
}

/* A loop over columns whose threads load several vectors at once. */
typedef struct {
    const char *type, *column, *end, *first, *step;
    const ColumnPair *pair; /* over the columns of one outer coordinate; NULL: over all */
} LoopAhead;

/* Prints `body` for each of the vectors that are loaded at once, except those behind the row's end.
 * Of a run, what is there is taken again in place of those, and counts for nothing: behind a branch
 * each load would wait for the one before. */
static void emit_each(Emitter *e, const Text *body, const LoopAhead *loop)
{
    line(e->out, "#pragma unroll");
    block (e->out, "for (int t = 0; t < %d; t++)", e->ahead) {
        if (loop->pair) {
            const char *text = text_string(body);
            const bool placed = mentions(text, loop->column) || mentions(text, "col");
            if (placed || mentions(text, "next"))
                line(e->out, "const %s next = at + t * %s;", loop->type, loop->step);
            if (placed)
                line(e->out, "const %s %s = next < %s ? next : %s - vec;", loop->type, loop->column,
                     loop->end, loop->end);
        } else {
            line(e->out, "const %s %s = at + t * %s;", loop->type, loop->column, loop->step);
            line(e->out, "if (%s >= %s) break;", loop->column, loop->end);
        }
        if (!loop->pair)
            emit_column_coords(e, body);
        else if (mentions(text_string(body), "col"))
            line(e->out, "const long long col = %s * %s + %s;", loop->pair->outer, loop->pair->size,
                 loop->pair->inner);
        text_put(e->out, body->data, body->length);
    }
}

static void declare_loaded(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (load->access == ACCESS_VECTOR && pass->needed[load->node.id])
            line(e->out, "%s %s_v[%d];", vector_type(e, load->dtype), load->name, e->ahead);
    }
}

static void emit_loop_ahead(const Pass *pass, const Text *tile, const LoopAhead *loop)
{
    Emitter *e = pass->e;
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (%s at = %s; at < %s; at += %d * %s)", loop->type, loop->first, loop->end,
           e->ahead, loop->step) {
        declare_loaded(pass);
        Text *kernel = open_body(e);
        emit_tile_loads(pass);
        emit_each(e, close_body(e, kernel), loop);
        declare_vector_sums(pass);
        declare_pairs_ahead(pass);
        emit_each(e, tile, loop);
        emit_pairs_ahead(pass,
                         arena_format(e->arena, "(%s - at - 1) / %s + 1", loop->end, loop->step));
        emit_vector_sums(pass);
    }
}

bool walks_runs(const Emitter *e)
{
    return e->ahead && has_runs(e);
}

const char *run_outer(Emitter *e)
{
    ColumnPair pair;
    return find_column_pair(e, &pair) ? pair.outer : "";
}

const char *run_guard(Emitter *e)
{
    ColumnPair pair;
    find_column_pair(e, &pair);
    return arena_format(e->arena, "next < %s", pair.size);
}

/* The threads that share the columns of one outer coordinate are so few that each has a load or
 * two of vectors at once. Nobody finds coordinates by division. */
void declare_run(Emitter *e)
{
    ColumnPair pair;
    if (!has_runs(e) || !find_column_pair(e, &pair)) return;
    const Kernel *k = e->k;
    const int threads = k->threads_per_row, most = threads & -threads,
              own = vectors_of_run(k, k->vec) * k->vec;
    int run = 1;
    while (run < most && (!pair.fixed || run * own < pair.fixed)) run *= 2;
    line(e->out, "constexpr int run = %d;    // threads that share the columns of one %s", run,
         pair.outer);
}

static void emit_runs(const Pass *pass, const Text *tile, const ColumnPair *pair,
                      const Text *values)
{
    Emitter *e = pass->e;
    const LoopAhead loop = {.pair = pair,
                            .type = pair->fixed ? "int" : "long long",
                            .column = pair->inner,
                            .end = pair->size,
                            .first = arena_format(e->arena, "%s %% run * vec", e->thread),
                            .step = "(run * vec)"};
    const char *thread =
        takes_turns(e->k) ? arena_format(e->arena, "(%s * threads + %s)", rank_text(e), e->thread)
                          : e->thread;
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long %s = %s / run; %s < %s; %s += %s / run)", pair->outer, thread,
           pair->outer, pair->outer_size, pair->outer, sharing_threads(e)) {
        text_put(e->out, values->data, values->length);
        emit_loop_ahead(pass, tile, &loop);
    }
}

/* How a loop's header finds the next vector's coordinates. */
static const char *advance_text(Emitter *e, const ColumnPair *pair)
{
    return arena_format(e->arena, ", advance<step>(%s, %s, %s)", pair->outer, pair->inner,
                        pair->size);
}

/* An axis that only a launch knows may be empty: then there is no column, and nothing to divide. */
static const char *first_pair(Emitter *e, const ColumnPair *pair)
{
    if (pair->fixed)
        return arena_format(e->arena, ", %s = col / %s, %s = col %% %s", pair->outer, pair->size,
                            pair->inner, pair->size);
    return arena_format(e->arena, ", %s = %s ? col / %s : 0, %s = %s ? col %% %s : 0", pair->outer,
                        pair->size, pair->size, pair->inner, pair->size, pair->size);
}

static void emit_single(const Pass *pass, const Text *tile, const ColumnPair *pair)
{
    Emitter *e = pass->e;
    const bool several = count_tile_loads(pass) > 1, alone = !(e->k->rows | e->k->kept);
    line(e->out, "#pragma unroll %d", alone ? 8 : several ? 1 : 2);
    block (e->out, "for (%s col = first_column%s; col < %s; col += step%s)", column_type(e),
           pair ? first_pair(e, pair) : "", e->columns, pair ? advance_text(e, pair) : "") {
        if (!pair) emit_column_coords(e, tile);
        text_put(e->out, tile->data, tile->length);
    }
}

void emit_stream(const Pass *pass, const Text *tile, const Text *values)
{
    Emitter *e = pass->e;
    const LoopAhead loop = {column_type(e), "col", e->columns, "first_column", "step", NULL};
    ColumnPair pair;
    const bool paired = find_column_pair(e, &pair);
    if (!e->ahead)
        emit_single(pass, tile, paired ? &pair : NULL);
    else if (walks_runs(e))
        emit_runs(pass, tile, &pair, values);
    else
        emit_loop_ahead(pass, tile, &loop);
}

/* Whether a thread sums what it loads at once before it adds that to its sum. A sum of thousands of
 * terms is rounded thousands of times. Where the terms are squares of narrow floats it is always
 * rounded down, because their last bits are those of odd squares. */
static bool adds_vectors(const Pass *pass, const InnerReduction *r)
{
    const Kernel *k = pass->e->k;
    const NodeInfo *info = node(pass->e->g, r->node);
    bool sum = adds_terms(info->op) && info->type == TYPE_F32;
    return sum && is_streamed(k) && (k->vec > 1 || pass->e->ahead) && r->phase == pass->phase &&
           adds_elements(pass->e, r);
}

void name_vector_sums(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++)
        if (adds_vectors(pass, &e->k->inner[i]))
            e->vector_sums[e->k->inner[i].node.id] = name_after(e, e->k->inner[i].node, "_of");
}

void declare_vector_sums(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++)
        if (adds_vectors(pass, &e->k->inner[i]))
            line(e->out, "float %s = 0;", e->vector_sums[e->k->inner[i].node.id]);
}

void emit_vector_sums(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        if (adds_vectors(pass, r))
            emit_accumulate(e, r->node, node_name(e, r->node), e->vector_sums[r->node.id]);
    }
}
