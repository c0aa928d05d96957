/* cuda_ring.c: the ring of row buffers in shared memory that a persistent kernel reads
 * through. While a row is computed the next stages - 1 are under way, or as many as there are
 * stages where rows hand theirs on. Every thread copies and reads its own columns only, so the
 * ring needs no barrier, but for a row's scalars: one lane of each warp copies them for all; and
 * but for rows that begin anywhere in a line of memory: their threads copy whole blocks for each
 * other. */
#include "cuda_emit.h"

typedef LIST(const Load *) Places;

/* What has a place in a row's stage, or (hoisted) in what all rows share: vectors, then scalars,
 * so that these move no vector from its place of a line. */
static Places list_places(const Emitter *e, bool hoisted)
{
    Places places = {0};
    for (int scalars = 0; scalars < 2; scalars++)
        for (int i = 0; i < e->k->load_count; i++) {
            const Load *load = &e->k->loads[i];
            bool scalar = load->access == ACCESS_ROW, used = !scalar || e->users[load->node.id] > 0;
            if (load->staged && load->hoisted == hoisted && used && scalar == scalars)
                *list_push(e->arena, &places) = load;
        }
    return places;
}

static bool has_scalars(const Emitter *e)
{
    Places places = list_places(e, false);
    return places.count && places.data[places.count - 1]->access == ACCESS_ROW;
}

/* Its warp's copy of a scalar of the row. */
const char *staged_scalar(Emitter *e, const Load *load)
{
    return arena_format(e->arena, "now.%s[threadIdx.x / 32]", load->name);
}

const char *lined_up_row(Emitter *e, const Load *load)
{
    return arena_format(e->arena, e->k->teams > 1 ? "%s[team]" : "%s", load->name);
}

static void emit_buffers(Emitter *e, const char *name, bool hoisted)
{
    Places places = list_places(e, hoisted);
    bool scalars = !hoisted && has_scalars(e);
    line(e->out, "struct %s%s {", scalars ? "alignas(128) " : "", name);
    for (int i = 0; i < places.count; i++) {
        const Load *load = places.data[i];
        if (load->access == ACCESS_ROW)
            line(e->out, "    %s %s[threads / 32];", dtype_info[load->dtype].cuda, load->name);
        else if (is_lined_up(e->k, load))
            line(e->out, "    lines<%s, tiles * step> %s%s;", dtype_info[load->dtype].cuda, load->name,
                 e->k->teams > 1 ? "[teams]" : "");
        else
            line(e->out, "    %s %s[tiles][threads];", vector_type(e, load->dtype), load->name);
    }
    line(e->out, "};");
}

/* Where columns are several axes, each vector has a place of its own. */
static void emit_fetched_tiles(Emitter *e, const char *into, const Places *places)
{
    Text *kernel = open_body(e);
    for (int i = 0; i < places->count; i++) {
        const Load *load = places->data[i];
        if (load->access == ACCESS_VECTOR)
            line(e->out, "fetch_vector(%s.%s[t][threadIdx.x], %s, %s);", into, load->name,
                 load_address(e, load), limit_text(e));
    }
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

static void emit_fetches(Emitter *e, const char *into, bool hoisted)
{
    Places places = list_places(e, hoisted);
    bool several = has_several_columns(e->k);
    if (several && places.count) emit_fetched_tiles(e, into, &places);
    for (int i = 0; i < places.count; i++) {
        const Load *load = places.data[i];
        if (load->access == ACCESS_ROW)
            line(e->out, "fetch_element(%s.%s, &%s);", into, load->name,
                 element(e, load_pointer(e, load), load->tensor, load->axes));
        else if (is_lined_up(e->k, load))
            line(e->out, "fetch_lines<%s, vec>(%s.%s, %s, %s);", team_threads(e), into, lined_up_row(e, load),
                 slice_address(e, load), own_columns(e));
        else if (!several)
            line(e->out, "fetch_row<step>(%s.%s, %s);", into, load->name, row_part(e, load));
    }
}

/* 128 bytes are what a copy moves at once, where both of its ends are at multiples of them:
 * where they are not, bulk copies read a quarter more from L2 and take up to 18 % longer, and
 * those that threads make for themselves 1 to 12 %. */
void emit_dynamic_memory(Emitter *e)
{
    line(e->out, "alignas(128) extern __shared__ uint4 smem[];");
}

void emit_ring_memory(Emitter *e)
{
    emit_dynamic_memory(e);
    line(e->out, "Stage *const ring = (Stage *)smem;");
}

/* What stays in shared memory for all rows, behind the ring if there is one. */
static void emit_held(Emitter *e)
{
    bool ring = e->k->stages > 0;
    if (!list_places(e, true).count) return;
    if (!ring) {
        blank_line(e->out);
        line(e->out, "// what all rows share stays in shared memory; a thread reads what it has copied itself");
    }
    emit_buffers(e, "Columns", true);
    if (!ring) emit_dynamic_memory(e);
    line(e->out, "Columns &held = *(Columns *)%s;", ring ? "(ring + stages)" : "smem");
    emit_fetches(e, "held", true);
    line(e->out, "fetch_commit();");
    if (e->k->copy_warp || !ring) line(e->out, "fetch_wait<0>();");
    if (!ring) blank_line(e->out);
}

static const char *own_team(const Emitter *e) { return rows_share_warps(e->k) ? " + team" : ""; }

/* A row's scalars are copied by one lane for its warp. */
static bool has_own_scalars(const Emitter *e) { return has_scalars(e) && !e->k->lined_up; }

static void emit_first_fetches(Emitter *e)
{
    if (e->k->stages == 1) {
        line(e->out, "Stage &now = ring[0];");
        line(e->out, "fetch(now, first_row%s);", own_team(e));
        return;
    }
    line(e->out, "int stage = 0;");
    line(e->out, "for (int s = 0; s < stages; s++)");
    line(e->out, "    fetch(ring[s], first_row%s + row_step * s);", own_team(e));
}

/* Once a row is in registers, the next row to be copied takes its stage. (A thread's copies are behind its reads, which are in
 * order.) */
void emit_stage_reuse(Emitter *e)
{
    if (!e->k->reuses) return;
    if (has_own_scalars(e)) line(e->out, "__syncwarp();    // all have read the scalars that are replaced now");
    line(e->out, "fetch(now, %s%s + row_step * stages);", rows_share_warps(e->k) ? "base" : "row", own_team(e));
}

/* At the start of a row that goes on to registers, its copies have landed. */
static void emit_reused_step(Emitter *e)
{
    if (e->k->stages > 1) {
        line(e->out, "Stage &now = ring[stage];");
        line(e->out, "stage = (stage + 1) %% stages;");
    }
    line(e->out, "fetch_wait<stages - 1>();");
    if (has_own_scalars(e)) line(e->out, "__syncwarp();    // the row's scalars have landed for all");
}

/* The ring, what stays in shared memory for all rows, and the function that starts a
 * row's copies. */
void emit_ring(Emitter *e)
{
    if (!e->k->stages || e->k->copy_warp) {
        emit_held(e);
        if (e->k->copy_warp) line(e->out, "int stage = 0, parity = 0;");
        return;
    }
    blank_line(e->out);
    if (e->k->reuses)
        line(e->out, "// a row goes on to registers at once, and the next one to be copied takes its stage");
    else
        line(e->out, "// while a row is computed, the next stages - %d are on their way to shared memory", 1 + e->k->lag);
    if (e->k->lined_up)
        line(e->out, "// rows begin anywhere in a line of memory: threads copy whole blocks of 16 bytes, for each other");
    line(e->out, "constexpr int stages = %d;", e->k->stages);
    emit_buffers(e, "Stage", false);
    emit_ring_memory(e);
    emit_held(e);
    line(e->out, "const auto fetch = [&](Stage &into, long long row) {");
    e->out->indent++;
    block (e->out, "if (row < %s)", e->rows) {
        if (e->k->rows & (e->k->rows - 1)) emit_split(e, "row", e->k->rows);
        emit_fetches(e, "into", false);
    }
    line(e->out, "fetch_commit();");
    e->out->indent--;
    line(e->out, "};");
    if (e->k->reuses)
        emit_first_fetches(e);
    else
        line(e->out, "int stage = %d;    // the loop begins early, to fill the ring; the first row has stage 0", 1 + e->k->lag);
}

/* Before a reduction of a row that is lined up, the next row's blocks have landed; its barrier shows them to all. Then
 * nobody reads any more what the next row's fetch replaces either: rows are in registers by now, or (with lag) the
 * last phase of the row before is over. */
void emit_next_landed(Emitter *e, const char *reduction)
{
    if (!e->k->lined_up) return;
    line(e->out, "fetch_wait<stages - %d>();    // the next row's blocks: %s shows them to all", 2 + e->k->lag,
         e->k->threads_per_row > 32 ? reduction : "a barrier");
    if (e->k->threads_per_row <= 32) line(e->out, "%s;", team_barrier(e));
}

/* The first row's blocks, which no reduction comes before. */
static void emit_first_landed(Emitter *e, const char *row)
{
    block (e->out, "if (%s == first_row)", row) {
        line(e->out, "fetch_wait<stages - %d>();", 1 + e->k->lag);
        line(e->out, "%s;    // later rows are shown to all by a reduction of the row before", team_barrier(e));
    }
}

/* At the start of a row, its copies have landed and those of the furthest row start, unless rows hand their stage on: they
 * go where the row before was (with lag, the one before that). Before the first row the
 * ring only fills. */
void emit_ring_step(Emitter *e, const char *row)
{
    if (e->k->bulk) emit_bulk_wait(e);
    if (!e->k->stages) return;
    if (e->k->copy_warp) {
        emit_stage_wait(e);
        return;
    }
    if (e->k->reuses) {
        emit_reused_step(e);
        return;
    }
    int ahead = 1 + e->k->lag;
    bool own_scalars = has_own_scalars(e);
    line(e->out, "const Stage &now = ring[stage];");
    if (own_scalars) line(e->out, "__syncwarp();    // all have read the scalars that are replaced now");
    line(e->out,
         "fetch(ring[(stage + stages - %d) %% stages], %s%s + row_step * (stages - %d));",
         ahead, row, own_team(e), ahead);
    line(e->out, "stage = (stage + 1) %% stages;");
    line(e->out, "if (%s < first_row)", row);
    line(e->out, "    continue;");
    if (e->k->lined_up)
        emit_first_landed(e, row);
    else
        line(e->out, "fetch_wait<stages - %d>();", ahead);
    if (own_scalars) line(e->out, "__syncwarp();    // those of this row have landed for all");
}
