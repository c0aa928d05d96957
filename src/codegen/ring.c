/* codegen/ring.c: the ring of row buffers in shared memory that a persistent kernel reads through.
 * While a row is computed the next stages - 1 rows are in flight; where rows release their stage
 * early, as many as there are stages; of rows in groups, also those of the next part. Each thread
 * copies and reads its own columns only, so the ring needs no barrier. There are two exceptions:
 * one lane of each warp copies a row's scalars for all, and threads copy whole blocks for each
 * other where copies are line-aligned. */
#include "codegen/emit.h"

typedef LIST(const Load *) Places;

/* The members of a row's stage, or (hoisted) of what all rows share: vectors, then scalars, which
 * then move no vector from its line. */
static Places list_places(const Emitter *e, bool hoisted)
{
    Places places = {0};
    for (int scalars = 0; scalars < 2; scalars++)
        for (int i = 0; i < e->k->load_count; i++) {
            const Load *load = &e->k->loads[i];
            bool scalar = load->access == ACCESS_ROW, used = !scalar || e->users[load->node.id] > 0;
            if (is_staged(load) && is_hoisted(load) == hoisted && used && scalar == scalars)
                *list_push(e->arena, &places) = load;
        }
    return places;
}

static bool has_scalars(const Emitter *e)
{
    Places places = list_places(e, false);
    return places.count && places.data[places.count - 1]->access == ACCESS_ROW;
}

/* The copy of a row's scalar that belongs to the thread's warp. */
const char *staged_scalar(Emitter *e, const Load *load)
{
    return arena_format(e->arena, "current.%s[threadIdx.x / 32]", load->name);
}

const char *line_aligned_row(Emitter *e, const Load *load)
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
            line(e->out, "    lines<%s, tiles * step> %s%s;", dtype_info[load->dtype].cuda,
                 load->name, e->k->teams > 1 ? "[teams]" : "");
        else
            line(e->out, "    %s %s[tiles][%s];", vector_type(e, load->dtype), load->name,
                 feeds_teams(e->k) ? "threads_per_row" : "threads");
    }
    line(e->out, "};");
}

/* Where columns are several axes, each vector has an address of its own. */
static void emit_fetched_tiles(Emitter *e, const char *into, const Places *places)
{
    Text *kernel = open_body(e);
    for (int i = 0; i < places->count; i++) {
        const Load *load = places->data[i];
        const char *slot = arena_format(e->arena, "%s.%s[t][threadIdx.x]", into, load->name);
        if (load->access != ACCESS_VECTOR) continue;
        if (e->gathers)
            emit_gather(e, load, slot);
        else if (!is_in_line(e, load->axes))
            line(e->out, "fetch_vector%s(%s, %s, %s);", load->dropped ? "<dropped_from_l2>" : "",
                 slot, load_address(e, load), limit_text(e, load->axes));
    }
    const Text *fetches = close_body(e, kernel);
    if (fetches->length) emit_tiles(e, fetches, e->gathers ? "#pragma unroll 1" : "#pragma unroll");
}

static void emit_fetches(Emitter *e, const char *into, bool hoisted)
{
    Places places = list_places(e, hoisted);
    if (has_several_columns(e->k) || e->gathers) emit_fetched_tiles(e, into, &places);
    for (int i = 0; i < places.count; i++) {
        const Load *load = places.data[i];
        if (load->access == ACCESS_ROW)
            line(e->out, "fetch_element(%s.%s, &%s);", into, load->name,
                 element(e, load_pointer(e, load), load->tensor, load->axes));
        else if (is_lined_up(e->k, load))
            line(e->out, "fetch_lines<%s, vec>(%s.%s, %s, %s);", team_threads(e), into,
                 line_aligned_row(e, load), slice_address(e, load), own_columns(e));
        else if (is_in_line(e, load->axes) && !e->gathers)
            line(e->out, "fetch_row<step%s>(%s.%s, %s);", l2_argument(load), into, load->name,
                 row_part(e, load));
    }
}

/* A copy moves lines of 128 bytes where both of its ends are line-aligned. Elsewhere copies read
 * more from L2 (docs/log/2026-11-27-figures.md). */
void emit_dynamic_memory(Emitter *e)
{
    line(e->out, "alignas(128) extern __shared__ uint4 smem[];");
}

void emit_ring_memory(Emitter *e)
{
    emit_dynamic_memory(e);
    line(e->out, "Stage *const ring = (Stage *)smem;");
}

bool has_held(const Emitter *e)
{
    return list_places(e, true).count > 0;
}

/* Whether some of what stays in shared memory differs between groups of rows, beside a ring that
 * continues from group to group. */
bool is_held_by_group(const Emitter *e)
{
    Places places = list_places(e, true);
    for (int i = 0; i < places.count; i++)
        if (e->k->stages && places.data[i]->axes & e->k->kept) return true;
    return false;
}

/* The first team copies it for all teams that take rows in turn. */
static void emit_held_for_all(Emitter *e)
{
    block (e->out, "if (team == 0)") {
        emit_fetches(e, "held", true);
        line(e->out, "fetch_commit();");
        line(e->out, "fetch_wait<0>();");
    }
    line(e->out, "team_barrier<threads, 1>();    // it is there for all");
}

/* What stays in shared memory for all rows, behind the ring if there is one. */
static void emit_held(Emitter *e)
{
    bool ring = e->k->stages > 0;
    if (!list_places(e, true).count) return;
    if (!ring) {
        blank_line(e->out);
        line(
            e->out,
            "// what all rows share stays in shared memory; a thread reads what it has copied itself");
    }
    emit_buffers(e, "Columns", true);
    if (!ring) emit_dynamic_memory(e);
    line(e->out, "Columns &held = *(Columns *)%s;", ring ? "(ring + stages)" : "smem");
    if (is_held_by_group(e)) return;
    if (feeds_teams(e->k)) {
        emit_held_for_all(e);
        return;
    }
    emit_fetches(e, "held", true);
    line(e->out, "fetch_commit();");
    if (has_copy_warp(e->k) || !ring) line(e->out, "fetch_wait<0>();");
    if (!ring) blank_line(e->out);
}

/* Copies that where a group begins, and waits for the ring's rows as well. */
void emit_held_by_group(Emitter *e)
{
    if (!is_held_by_group(e)) return;
    emit_fetches(e, "held", true);
    line(e->out, "fetch_commit();");
    line(e->out, "fetch_wait<0>();");
}

static const char *own_team(const Emitter *e)
{
    return rows_share_warps(e->k) ? " + team" : "";
}

/* A row's scalars are copied by one lane for its warp. */
static bool has_own_scalars(const Emitter *e)
{
    return has_scalars(e) && !is_copied_by_lines(e->k);
}

/* Starts the copies of a row into a stage. Where rows are summed by groups, fetch() itself knows
 * the next row. */
static void emit_fetch_call(Emitter *e, const char *stage, const char *row)
{
    line(e->out, e->k->kept ? "fetch(%s);" : "fetch(%s, %s);", stage, row);
}

static void emit_first_fetches(Emitter *e)
{
    const char *first = arena_format(e->arena, "first_row%s", own_team(e));
    if (e->k->stages == 1) {
        line(e->out, "Stage &current = ring[0];");
        emit_fetch_call(e, "current", first);
        return;
    }
    line(e->out, "int stage = 0;");
    line(e->out, "for (int s = 0; s < stages; s++)");
    e->out->indent++;
    emit_fetch_call(e, "ring[s]", arena_format(e->arena, "%s + row_step * s", first));
    e->out->indent--;
}

/* Once a row is in registers, the next row to be copied takes its stage. A thread reads its
 * elements before it starts these copies. */
void emit_stage_reuse(Emitter *e)
{
    if (!reuses_stages(e->k)) return;
    if (has_own_scalars(e))
        line(e->out, "__syncwarp();    // all have read the scalars that are replaced now");
    emit_fetch_call(e, "current",
                    arena_format(e->arena, "%s%s + row_step * stages",
                                 rows_share_warps(e->k) ? "cta_row" : "row", own_team(e)));
}

/* At the start of a row that moves on to registers: waits for its copies. */
static void emit_reused_step(Emitter *e)
{
    if (e->k->stages > 1) {
        line(e->out, "Stage &current = ring[stage];");
        line(e->out, "stage = (stage + 1) %% stages;");
    }
    line(e->out, "fetch_wait<stages - 1>();    // a thread reads what it has copied itself");
    if (has_own_scalars(e))
        line(e->out, "__syncwarp();    // the row's scalars have landed for all");
}

/* The first row of a part of a group. */
const char *first_row_text(Emitter *e, const char *part)
{
    bool own = e->k->teams > 1 && !rows_share_warps(e->k);
    return arena_format(e->arena, "%s%s%s", part, e->k->teams > 1 ? " * teams" : "",
                        own ? " + team" : "");
}

/* Declares the row that is copied next, `ahead_row` of `ahead_group`, which may be of a part behind
 * the one that is summed. */
static void emit_cursor(Emitter *e)
{
    line(e->out, "// the row that is copied next, and how many parts are left from its own on");
    line(e->out, "long long ahead_group = group;");
    line(e->out, "int ahead_part = part, left = count;");
    line(e->out, "long long ahead_row = %s - row_step;", first_row_text(e, "ahead_part"));
}

/* Moves on to the row behind it. */
static void emit_cursor_step(Emitter *e)
{
    line(e->out, "ahead_row += row_step;");
    block (e->out, "while (left > 0 && ahead_row >= %s)", e->rows) {
        line(e->out,
             "next_part(ahead_group, ahead_part, parts);    // until one has a row for this team");
        line(e->out, "ahead_row = %s;", first_row_text(e, "ahead_part"));
        line(e->out, "left--;");
    }
}

/* The function that starts a row's copies; of rows in groups, those of this CTA's next row. */
static void emit_fetch_function(Emitter *e)
{
    bool kept = e->k->kept, shared = rows_share_warps(e->k);
    const char *condition = arena_format(e->arena, "row < %s", e->rows);
    if (kept) {
        emit_cursor(e);
        condition = shared ? arena_format(e->arena, "left > 0 && ahead_row + team < %s", e->rows)
                           : "left > 0";
    }
    line(e->out, kept ? "const auto fetch = [&](Stage &into) {"
                      : "const auto fetch = [&](Stage &into, long long row) {");
    e->out->indent++;
    if (kept) emit_cursor_step(e);
    block (e->out, "if (%s)", condition) {
        if (kept)
            line(e->out, "const long long group = ahead_group, row = ahead_row%s;", own_team(e));
        if (e->k->kept & (e->k->kept - 1)) emit_split(e, "group", e->k->kept);
        if (splits_rows(e)) emit_split(e, "row", e->k->rows);
        emit_fetches(e, "into", false);
    }
    line(e->out, "fetch_commit();");
    e->out->indent--;
    line(e->out, "};");
}

/* The ring is filled once for all parts. */
static void emit_fill(Emitter *e)
{
    int ahead = 1 + e->k->lag;
    line(e->out, "int stage = 0;");
    line(e->out, "#pragma unroll 1");
    line(e->out, "for (int s = 0; s < stages - %d; s++)", ahead);
    line(e->out, "    fetch(ring[s]);");
    if (!is_copied_by_lines(e->k)) return;
    line(e->out, "fetch_wait<stages - %d>();", ahead + 1);
    line(e->out, "%s;    // later rows are shown to all by a reduction of the row before",
         team_barrier(e));
}

/* Declares the ring, what stays in shared memory for all rows, and the function that starts a row's
 * copies. */
void emit_ring(Emitter *e)
{
    if (!e->k->stages || has_copy_warp(e->k)) {
        emit_held(e);
        if (has_copy_warp(e->k))
            line(e->out, "int stage = %s, stage_parity = 0;",
                 e->k->groups == 1         ? "0"
                 : rows_of_step(e->k) == 1 ? "team"
                                           : "team / stage_rows");
        return;
    }
    blank_line(e->out);
    if (reuses_stages(e->k))
        line(
            e->out,
            "// a row goes on to registers at once, and the next one to be copied takes its stage");
    else
        line(e->out,
             "// while a row is computed, the next stages - %d are on their way to shared memory",
             1 + e->k->lag);
    if (is_copied_by_lines(e->k))
        line(
            e->out,
            "// rows begin anywhere in a line of memory: threads copy whole blocks of 16 bytes, for each other");
    line(e->out, "constexpr int stages = %d;", e->k->stages);
    emit_buffers(e, "Stage", false);
    emit_ring_memory(e);
    emit_held(e);
    emit_fetch_function(e);
    if (reuses_stages(e->k))
        emit_first_fetches(e);
    else if (e->k->kept)
        emit_fill(e);
    else
        line(
            e->out,
            "int stage = %d;    // passes before first_row only start copies: first_row's to stage 0, and so on",
            1 + e->k->lag);
}

/* Before a reduction of a row with line-aligned copies: waits for the next row's blocks, which the
 * reduction's barrier then shows to all threads. From then on nobody reads what the next row's
 * copies replace: rows are in registers by now, or (row pipeline) the last phase of the row before
 * is over. */
void emit_next_landed(Emitter *e, const char *reduction)
{
    if (!is_copied_by_lines(e->k)) return;
    line(e->out, "fetch_wait<stages - %d>();    // the next row's blocks: %s shows them to all",
         2 + e->k->lag, e->k->threads_per_row > 32 ? reduction : "a barrier");
    if (e->k->threads_per_row <= 32) line(e->out, "%s;", team_barrier(e));
}

/* Waits for the first row's blocks, which no reduction precedes. */
static void emit_first_landed(Emitter *e, const char *row)
{
    block (e->out, "if (%s == first_row)", row) {
        line(e->out, "fetch_wait<stages - %d>();", 1 + e->k->lag);
        line(e->out, "%s;    // later rows are shown to all by a reduction of the row before",
             team_barrier(e));
    }
}

/* At the start of a row: waits for its copies and starts those of the furthest row, unless rows
 * release their stage early. The new copies go where the row before was (row pipeline: the row
 * before that one). Before the first row the ring only fills. */
void emit_ring_step(Emitter *e, const char *row)
{
    if (has_bulk_rows(e->k)) emit_bulk_wait(e);
    if (!e->k->stages) return;
    if (has_copy_warp(e->k)) {
        emit_stage_wait(e);
        return;
    }
    if (reuses_stages(e->k)) {
        emit_reused_step(e);
        return;
    }
    int ahead = 1 + e->k->lag;
    bool own_scalars = has_own_scalars(e);
    line(e->out, "const Stage &current = ring[stage];");
    if (own_scalars)
        line(e->out, "__syncwarp();    // all have read the scalars that are replaced now");
    emit_fetch_call(
        e, arena_format(e->arena, "ring[(stage + stages - %d) %% stages]", ahead),
        arena_format(e->arena, "%s%s + row_step * (stages - %d)", row, own_team(e), ahead));
    line(e->out, "stage = (stage + 1) %% stages;");
    if (!e->k->kept) {
        line(e->out, "if (%s < first_row)", row);
        line(e->out, "    continue;");
    }
    if (!is_copied_by_lines(e->k))
        line(e->out, "fetch_wait<stages - %d>();    // a thread reads what it has copied itself",
             ahead);
    else if (!e->k->kept)
        emit_first_landed(e, row);
    if (own_scalars) line(e->out, "__syncwarp();    // the row's scalars have landed for all");
}
