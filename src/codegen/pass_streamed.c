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

int vectors_ahead(const Pass *pass)
{
    enum { MOST = 8 };
    const Kernel *k = pass->e->k;
    int bytes = 0, ahead = 1, room = room_ahead(k);
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && pass->needed[k->loads[i].node.id])
            bytes += k->vec * dtype_info[k->loads[i].dtype].bytes;
    if (!is_streamed(k) || !is_ragged(k) || !bytes) return 0;
    while (ahead < MOST && 2 * ahead * bytes <= room) ahead *= 2;
    return ahead > 1 ? ahead : 0;
}

/* Prints `body` for each of the vectors that are loaded at once, except those behind the row's
 * end. */
static void emit_each(Emitter *e, const Text *body)
{
    line(e->out, "#pragma unroll");
    block (e->out, "for (int t = 0; t < %d; t++)", e->ahead) {
        line(e->out, "const %s col = at + t * step;", column_type(e));
        line(e->out, "if (col >= %s) break;", e->columns);
        emit_column_coords(e, body);
        text_put(e->out, body->data, body->length);
    }
}

static void emit_ahead(const Pass *pass, const Text *tile)
{
    Emitter *e = pass->e;
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (%s at = first_column; at < %s; at += %d * step)", column_type(e),
           e->columns, e->ahead) {
        for (int i = 0; i < e->k->load_count; i++) {
            const Load *load = &e->k->loads[i];
            if (load->access == ACCESS_VECTOR && pass->needed[load->node.id])
                line(e->out, "%s %s_v[%d];", vector_type(e, load->dtype), load->name, e->ahead);
        }
        Text *kernel = open_body(e);
        emit_tile_loads(pass);
        emit_each(e, close_body(e, kernel));
        declare_vector_sums(pass);
        emit_each(e, tile);
        emit_vector_sums(pass);
    }
}

void emit_stream(const Pass *pass, const Text *tile)
{
    Emitter *e = pass->e;
    if (e->ahead) {
        emit_ahead(pass, tile);
        return;
    }
    bool several = count_tile_loads(pass) > 1, alone = !(e->k->rows | e->k->kept);
    line(e->out, "#pragma unroll %d", alone ? 8 : several ? 1 : 2);
    block (e->out, "for (%s col = first_column; col < %s; col += step)", column_type(e),
           e->columns) {
        emit_column_coords(e, tile);
        text_put(e->out, tile->data, tile->length);
    }
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
