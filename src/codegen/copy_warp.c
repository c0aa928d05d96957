/* codegen/copy_warp.c: rows that bulk copies bring to shared memory. The copy warp of a
 * warp-specialized kernel keeps a ring of stages full; the other warps compute. Each stage has two
 * transaction barriers: `full` completes when the row's bytes have landed, `empty` when every
 * computing warp has released the stage. A CTA with a single row has one stage and no copy warp. */
#include "codegen/emit.h"

static bool is_ringed(const Load *load)
{
    return is_staged(load) && !is_hoisted(load);
}

static int64_t column_count(const Emitter *e)
{
    return axes_size(&e->plan->analysis->sizes, e->k->columns);
}

/* Where in its stage a row begins: at the start; at the offset within a line of 128 bytes that it
 * has in memory; or with the aligned blocks that hold its ends. */
typedef enum { AT_START, SHIFTED, BLOCKS } Placement;

static Placement placement(const Emitter *e, const Load *load)
{
    int64_t columns = column_count(e);
    if (is_whole_lines(columns, load->dtype)) return AT_START;
    return is_whole_blocks(columns, load->dtype) ? SHIFTED : BLOCKS;
}

/* A thread's vector of the row that the computing warps work on. */
const char *copied_vector(Emitter *e, const Load *load)
{
    static const char *const read[] = {"vector_at", "shifted_at", "elements_at"};
    Placement place = placement(e, load);
    const char *row =
        place == AT_START ? "" : arena_format(e->arena, ", %s", slice_address(e, load));
    return arena_format(e->arena, "%s<vec>(current.%s%s, local_column + t * step%s)", read[place],
                        load->name, rows_of_step(e->k) > 1 ? "[stage_row]" : "", row);
}

/* Additional elements of a buffer whose rows begin within a line. */
static const char *more_elements(Emitter *e, const Load *load)
{
    int bytes = line_room(column_count(e), load->dtype);
    return bytes ? arena_format(e->arena, " + %d", bytes / dtype_info[load->dtype].bytes) : "";
}

/* Each row of several in a stage begins at a multiple of 128 bytes. */
static const char *columns_of_row(Emitter *e, const Load *load, const char *columns)
{
    const int line = LINE_BYTES / dtype_info[load->dtype].bytes;
    const int all = e->k->tiles * e->k->threads_per_row * e->k->vec;
    return rows_of_step(e->k) > 1 && all % line
               ? arena_format(e->arena, "%s + %d", columns, line - all % line)
               : columns;
}

static void emit_stage(Emitter *e)
{
    const Kernel *k = e->k;
    const char *columns = k->slice && !is_ragged(k) ? "slice" : "tiles * step";
    line(e->out, "struct Stage {");
    for (int i = 0; i < k->load_count; i++)
        if (is_ringed(&k->loads[i]))
            line(e->out, "    alignas(128) %s %s%s[%s%s];", dtype_info[k->loads[i].dtype].cuda,
                 k->loads[i].name, rows_of_step(k) > 1 ? "[stage_rows]" : "",
                 columns_of_row(e, &k->loads[i], columns), more_elements(e, &k->loads[i]));
    line(e->out, "};");
}

static void emit_stages(Emitter *e)
{
    const int rows = rows_of_step(e->k);
    line(e->out, "constexpr int stages = %d;", e->k->stages);
    emit_stage(e);
    emit_ring_memory(e);
    line(e->out, "__shared__ unsigned long long full[stages], empty[stages];");
    block (e->out, "if (threadIdx.x < stages)") {
        line(e->out, "barrier_init(full[threadIdx.x], 1);");
        line(e->out, "barrier_init(empty[threadIdx.x], %s%s / 32);",
             rows > 1 ? "stage_rows * " : "", team_threads(e));
    }
    line(e->out, "__syncthreads();");
}

/* Starts the copies of a row's tensors, to one of the rows of a stage that has several. */
static void emit_row_copies(Emitter *e, const char *into, const char *full)
{
    static const char *const copy[][2] = {
        {"copy_row<vec>", "copy_row<vec, dropped_from_l2>"},
        {"copy_shifted<vec>", "copy_shifted<vec, dropped_from_l2>"},
        {"copy_blocks", "copy_blocks<dropped_from_l2>"},
    };
    for (int i = 0; i < e->k->load_count; i++) {
        const Load *load = &e->k->loads[i];
        if (is_ringed(load))
            line(e->out, "bytes += %s(%s.%s%s, %s, %s, %s);",
                 copy[placement(e, load)][load->dropped], into, load->name,
                 rows_of_step(e->k) > 1 ? "[stage_row]" : "", slice_address(e, load),
                 e->k->slice ? slice_text(e) : e->columns, full);
    }
}

/* The same of all rows of a stage; announces their bytes. */
static void emit_copies(Emitter *e, const char *into, const char *full)
{
    line(e->out, "int bytes = 0;");
    if (rows_of_step(e->k) > 1) {
        line(e->out, "#pragma unroll 1");
        block (
            e->out,
            "for (int stage_row = 0; stage_row < stage_rows && cta_row + stage_row < %s; stage_row++)",
            e->rows) {
            line(e->out, "const long long row = cta_row + stage_row;");
            if (splits_rows(e)) emit_split(e, "row", e->k->rows);
            emit_row_copies(e, into, full);
        }
    } else {
        emit_row_copies(e, into, full);
    }
    line(e->out, "copies_end(bytes, %s);", full);
}

static void emit_listening(Emitter *e)
{
    for (int phase = 0; phase < e->k->phases; phase++) {
        declare_received(e, phase);
        const char *list = received_list(e, phase);
        if (*list) line(e->out, "group_listen(boxes, news, round, %s);", list);
    }
}

/* The branch of the warp that receives, for its CTA, the results of the group's other CTAs. */
static void emit_listening_warp(Emitter *e)
{
    block (e->out, has_copy_warp(e->k) ? "if (threadIdx.x >= threads + 32)"
                                       : "if (threadIdx.x >= threads)") {
        line(e->out, "int round = 0;");
        if (e->k->rows) {
            block (e->out, "for (long long row = first_row; row < %s; row += row_step)", e->rows)
                emit_listening(e);
        } else {
            emit_listening(e);
        }
        line(e->out, "return;");
    }
}

/* The same warp in kernels without a copy warp. */
void emit_listener(Emitter *e)
{
    blank_line(e->out);
    line(e->out, "// one warp listens to the other CTAs, the others compute");
    line(e->out, "__syncthreads();    // the barriers of news are there for all");
    emit_listening_warp(e);
}

/* The loop over what each stage gets: all rows of the CTA, whichever team takes them. */
static const char *copy_loop_text(Emitter *e)
{
    const Kernel *k = e->k;
    if (!feeds_teams(k))
        return arena_format(e->arena, "for (long long row = first_row; row < %s; row += row_step)",
                            e->rows);
    if (rows_of_step(k) == 1)
        return arena_format(e->arena, "for (long long row = %s; row < %s; row += gridDim.x)",
                            first_of_walk(e), e->rows);
    return arena_format(e->arena,
                        "for (long long cta_row = (long long)%s * stage_rows; cta_row < %s; "
                        "cta_row += (long long)gridDim.x * stage_rows)",
                        first_of_walk(e), e->rows);
}

/* Keeps the ring full. */
static void emit_copy_loop(Emitter *e)
{
    line(e->out,
         "int stage = 0, stage_parity = 1;    // the first time round, every stage is empty");
    if (is_paced(e->k))
        line(e->out, "unsigned due = clock_ns();    // when the next row may be asked for");
    block (e->out, "%s", copy_loop_text(e)) {
        if (splits_rows(e) && rows_of_step(e->k) == 1) emit_split(e, "row", e->k->rows);
        line(e->out, "Stage &into = ring[stage];");
        line(e->out, "barrier_wait(empty[stage], stage_parity);");
        if (is_paced(e->k))
            line(e->out, "keep_pace(due, %s);", arg_name(e, ARG_INTERVAL, e->index, 0));
        emit_copies(e, "into", "full[stage]");
        emit_advance(e, 1);
    }
}

/* What the copy warp does, and who takes the rows. */
static const char *turns_text(Emitter *e)
{
    const Kernel *k = e->k;
    const int rows = rows_of_step(k);
    const char *teams = arena_format(e->arena, "teams of %d warps", k->threads_per_row / 32);
    if (is_grouped(k)) return ", one listens to the other CTAs, the rest compute";
    if (!feeds_teams(k)) return ", the others compute";
    if (rows == 1) return arena_format(e->arena, ", which %d %s take in turn", k->teams, teams);
    const char *groups =
        k->groups > 1 ? arena_format(e->arena, "which %d groups of", k->groups) : "for";
    return arena_format(e->arena, ", %d rows to each, %s %d %s%s", rows, groups, rows, teams,
                        k->groups > 1 ? " take in turn" : "");
}

/* The ring, its barriers, and the copy warp's branch. The computing threads go on behind it. */
void emit_copy_warp(Emitter *e)
{
    blank_line(e->out);
    const Kernel *k = e->k;
    line(e->out, "// one warp copies rows into a ring of stages%s", turns_text(e));
    emit_stages(e);
    if (is_grouped(e->k)) emit_listening_warp(e);
    block (e->out, "if (threadIdx.x >= threads)") {
        if (k->registers) {
            line(e->out,
                 "fewer_registers<%d>();    // by a whole warpgroup, of which one warp copies",
                 COPY_REGISTERS);
            block (e->out, "if (threadIdx.x < threads + 32)") emit_copy_loop(e);
        } else {
            emit_copy_loop(e);
        }
        if (e->k->cluster > 1 && !is_grouped(e->k))
            line(e->out, "cluster_wait();    // as the others do before they first send");
        line(e->out, "return;");
    }
    if (k->registers)
        line(e->out, "more_registers<%d>();    // those that it gives back", k->registers);
    if (!e->k->slice) line(e->out, "const int local_column = first_column;");
    if (rows_of_step(k) > 1) line(e->out, "const int stage_row = team %% stage_rows;");
}

void emit_advance(Emitter *e, int groups)
{
    const char *step = rows_of_step(e->k) > 1 ? "groups" : "teams";
    const char *several = arena_format(e->arena, "if ((stage += %s) >= stages)", step);
    block (e->out, "%s", groups > 1 ? several : "if (++stage == stages)") {
        line(e->out, groups > 1 ? "stage -= stages;" : "stage = 0;");
        line(e->out, "stage_parity ^= 1;");
    }
}

/* The computing warps own a stage from the wait to the release. */
void emit_stage_wait(Emitter *e)
{
    line(e->out, "barrier_wait(full[stage], stage_parity);");
    line(e->out, "const Stage &current = ring[stage];");
}

void emit_stage_release(Emitter *e)
{
    line(e->out, "release(empty[stage]);");
}

/* ---- a row by one copy ---- */

/* Starts the copy of a row. */
static void emit_bulk_copies(Emitter *e)
{
    if (splits_rows(e)) emit_split(e, "row", e->k->rows);
    emit_copies(e, "current", "full");
}

/* The copy of any row, where a CTA has several. */
static void emit_bulk_start(Emitter *e)
{
    line(e->out, "int stage_parity = 0;");
    line(e->out, "const auto start = [&](long long row) {    // by the first warp");
    e->out->indent++;
    emit_bulk_copies(e);
    e->out->indent--;
    line(e->out, "};");
}

/* One warp starts the copy, because misaligned rows may have to be copied element by element. It
 * does so before anything else that the CTA does. */
void emit_bulk_stage(Emitter *e)
{
    blank_line(e->out);
    line(e->out, "// the row comes to shared memory at once, and stays there");
    emit_stage(e);
    emit_dynamic_memory(e);
    line(e->out, "Stage &current = *(Stage *)smem;");
    line(e->out, "__shared__ unsigned long long full;");
    if (!e->k->one_row) emit_bulk_start(e);
    block (e->out, "if (threadIdx.x < 32)") {
        line(e->out, "if (threadIdx.x == 0)");
        line(e->out, "    barrier_init(full, 1);");
        if (e->k->one_row)
            emit_bulk_copies(e);
        else
            line(e->out, "start(first_row);");
    }
    if (!e->k->slice) line(e->out, "const int local_column = first_column;");
}

void emit_bulk_wait(Emitter *e)
{
    if (e->k->one_row) {
        line(e->out, "barrier_wait(full, 0);");
        return;
    }
    block (e->out, "if (row > first_row)") {
        line(e->out, "__syncthreads();    // all have read the row before");
        line(e->out, "if (threadIdx.x < 32)");
        line(e->out, "    start(row);");
    }
    line(e->out, "barrier_wait(full, stage_parity);");
    line(e->out, "stage_parity ^= 1;");
}
