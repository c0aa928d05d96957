/* cuda_copy.c: the copy warp of a warp-specialized kernel. One warp keeps a ring of
 * stages full with bulk copies; the others compute. Two transaction barriers a stage
 * carry the hand-over: `full` when a row's bytes have landed, `empty` when every
 * computing warp is done with it. */
#include "cuda_emit.h"

static bool is_ringed(const Load *load)
{
    return load->staged && !load->hoisted;
}

bool has_whole_blocks(const Emitter *e, const Load *load)
{
    return is_whole_blocks(axes_size(&e->plan->analysis->sizes, e->k->columns), load->dtype);
}

static void emit_stages(Emitter *e)
{
    const Kernel *k = e->k;
    const char *columns = k->slice && !k->ragged ? "slice" : "tiles * step";
    line(e->out, "constexpr int stages = %d;", k->stages);
    line(e->out, "struct Stage {");
    for (int i = 0; i < k->load_count; i++)
        if (is_ringed(&k->loads[i]))
            line(e->out, "    alignas(16) %s %s[%s%s];", dtype_info[k->loads[i].dtype].cuda,
                 k->loads[i].name, columns, has_whole_blocks(e, &k->loads[i]) ? "" : " + 16");
    line(e->out, "};");
    line(e->out, "extern __shared__ uint4 smem[];");
    line(e->out, "Stage *const ring = (Stage *)smem;");
    line(e->out, "__shared__ unsigned long long full[stages], empty[stages];");
    block (e->out, "if (threadIdx.x < stages)") {
        line(e->out, "barrier_init(full[threadIdx.x], 1);");
        line(e->out, "barrier_init(empty[threadIdx.x], threads / 32);");
    }
    line(e->out, "__syncthreads();");
}

/* Starts the copies of a row's tensors and announces their bytes. */
static void emit_copies(Emitter *e)
{
    line(e->out, "Stage &into = ring[stage];");
    line(e->out, "barrier_wait(empty[stage], parity);");
    line(e->out, "int bytes = 0;");
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_ringed(load))
            line(e->out, "bytes += %s(into.%s, %s%s, %s, full[stage]);",
                 has_whole_blocks(e, load) ? "copy_row<vec>" : "copy_blocks", load->name,
                 load_address(e, load), e->k->slice ? " + begin" : "",
                 e->k->slice ? slice_text(e) : e->columns);
    }
    line(e->out, "copies_end(bytes, full[stage]);");
}

/* The branch of the warp that hears for its CTA what the others of the group found. */
static void emit_listening_warp(Emitter *e)
{
    block (e->out, "if (threadIdx.x >= threads + 32)") {
        line(e->out, "int round = 0;");
        block (e->out, "for (long long row = first_row; row < %s; row += row_step)", e->rows)
            for (int phase = 0; phase < e->k->phases; phase++) {
                declare_received(e, phase);
                const char *list = reduce_list(e, phase);
                if (*list) line(e->out, "group_listen(boxes, news, round, %s);", list);
            }
        line(e->out, "return;");
    }
}

/* The ring, its barriers, and the branch in which the copy warp lives. The computing
 * threads go on. */
void emit_copy_warp(Emitter *e)
{
    blank_line(e->out);
    line(e->out,
         e->k->grouped
             ? "// one warp copies rows into a ring of stages, one listens to the other CTAs, the rest compute"
             : "// one warp copies rows into a ring of stages, the others compute");
    emit_stages(e);
    if (e->k->grouped) emit_listening_warp(e);
    block (e->out, "if (threadIdx.x >= threads)") {
        line(
            e->out,
            "int stage = 0, parity = 1;    // the first time round, every stage is empty");
        block (e->out, "for (long long row = first_row; row < %s; row += row_step)",
               e->rows) {
            if (e->k->rows & (e->k->rows - 1)) emit_split(e, "row", e->k->rows);
            emit_copies(e);
            emit_advance(e);
        }
        line(e->out, "return;");
    }
    if (!e->k->slice) line(e->out, "const int local = first;");
}

void emit_advance(Emitter *e)
{
    block (e->out, "if (++stage == stages)") {
        line(e->out, "stage = 0;");
        line(e->out, "parity ^= 1;");
    }
}

/* The computing warps' side: a stage is theirs from the wait to the release. */
void emit_stage_wait(Emitter *e)
{
    line(e->out, "barrier_wait(full[stage], parity);");
    line(e->out, "const Stage &now = ring[stage];");
}

void emit_stage_release(Emitter *e)
{
    line(e->out, "release(empty[stage]);");
}
