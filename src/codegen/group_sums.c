/* codegen/group_sums.c: a kernel that sums the rows of each group apart (sum[T] of [B, T, C]), and
 * the kernel that adds its partials. The rows of a group form parts. CTAs share out the parts of
 * all groups, walk theirs one after the other, and store the sums of each part in the workspace.
 * Where there are enough groups for all CTAs, the CTAs share out whole groups instead: each adds
 * parts in the finish kernel's order and stores the results. A ring continues from part to part:
 * while the sums of one part are stored, the rows of the next are on their way. */
#include "codegen/emit.h"

static void store_part(Emitter *e, const Accumulator *acc, const char *place)
{
    if (has_squares(acc)) store_moments(e, acc, place, "");
    if (has_squares(acc) || is_satellite(acc)) return;
    line(e->out, "store_aligned(%s + %s, first_column + t * step, %s[t], %s);",
         arg_name(e, ARG_SLOT, acc->slot, 0), place, acc->name, e->end);
}

static bool meets_beside_ring(const Kernel *k)
{
    return k->meeting == MEET_BESIDE_RING;
}

/* Whether sums that teams left in shared memory are all that the results of a single part need. */
static bool leaves_results(const Kernel *k)
{
    bool plain = meets_beside_ring(k);
    for (int i = 0; i < k->accumulator_count; i++)
        plain &= !has_squares(&k->accumulators[i]) && !is_satellite(&k->accumulators[i]);
    return plain;
}

/* A part's sums, as each team has them, to the workspace. */
static void emit_part_sums(Emitter *e)
{
    const Kernel *k = e->k;
    const char *place = arena_format(e->arena, "own * %s", e->columns);
    if (meets_beside_ring(k)) {
        for (int i = 0; i < k->accumulator_count; i++)
            emit_sums_store(e, &k->accumulators[i], place);
        return;
    }
    declare_team_scratch(e);
    settle_moments(e);
    Text *kernel = open_body(e);
    for (int i = 0; i < k->accumulator_count; i++) emit_team_reduce(e, &k->accumulators[i]);
    if (k->teams > 1) line(e->out, "if (team > 0) continue;");
    for (int i = 0; i < k->accumulator_count; i++) store_part(e, &k->accumulators[i], place);
    emit_tiles(e, close_body(e, kernel), "#pragma unroll");
}

/* The loop in which each thread takes other columns of the CTA's. */
static void emit_column_loop_head(Emitter *e)
{
    if (has_column_parts(e->k))
        line(
            e->out,
            "for (int col = first_of_slice + threadIdx.x; col < %s && col < first_of_slice + tiles * step; col += threads) {",
            e->columns);
    else
        line(e->out, "for (int col = threadIdx.x; col < %s; col += threads) {", e->columns);
}

/* The kernel that adds the parts of this one. */
static const Kernel *finish_of(const Emitter *e)
{
    const Kernel *next = e->plan->kernels + e->index + 1;
    while (next->finishes != e->index) next++;
    return next;
}

/* A column's sum over the parts that the CTA has stored, or (left) over what the teams left of the
 * only one. */
static const char *group_sum(Emitter *e, const Accumulator *acc, bool left)
{
    const char *type = type_cuda(node(e->g, acc->node)->type),
               *how = combiner_of(e->g, acc->node)->functor,
               *identity = arena_format(e->arena, "(%s)%s", type, identity_text(e->g, acc->node));
    if (left)
        return arena_format(e->arena, "sum_of_teams<vec, %s>(%s, sums.%s, col%s)", how, identity,
                            acc->name, has_column_parts(e->k) ? " - first_of_slice" : "");
    return arena_format(e->arena, "add_parts<%s, chunk>(%s, %s, parts, col, %s)", how, identity,
                        arg_name(e, ARG_SLOT, acc->slot, 0), e->columns);
}

static void emit_column_results(Emitter *e, bool left)
{
    Text *kernel = open_body(e);
    const char **names = NEW_ARRAY(e->arena, const char *, e->k->accumulator_count);
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        names[i] = acc->name;
        if (has_squares(acc)) add_part_moments(e, acc);
        if (has_squares(acc) || is_satellite(acc)) continue;
        const char *name = unique_name(e, arena_format(e->arena, "%s_all", acc->name));
        line(e->out, "const %s %s = %s;", type_cuda(node(e->g, acc->node)->type), name,
             group_sum(e, acc, left));
        acc->name = name;
    }
    emit_results_of(e, finish_of(e));
    for (int i = 0; i < e->k->accumulator_count; i++) e->k->accumulators[i].name = names[i];
    const Text *results = close_body(e, kernel);
    emit_column_loop_head(e);
    e->out->indent++;
    emit_column_coords(e, results);
    e->out->indent--;
    text_put(e->out, results->data, results->length);
    line(e->out, "}");
}

static void emit_group_results(Emitter *e, bool left)
{
    const Coords in_tile = enter_only_column(e);
    e->by_column = true;
    emit_column_results(e, left);
    e->by_column = false;
    leave_vector(e, &in_tile);
}

/* Behind the last part of a group: its results. Threads add sums that other threads have stored. */
static void emit_group_end(Emitter *e)
{
    line(e->out, "__syncthreads();    // all of them are there");
    emit_group_results(e, false);
    /* Teams and warps that meet have their barrier there, before they leave other sums. */
    bool meets = e->k->teams > 1 || (e->k->inner_count && e->k->threads_per_row > 32);
    if (!meets) line(e->out, "__syncthreads();    // nobody replaces them before");
}

static void emit_part_stores(Emitter *e, const char *groups)
{
    line(e->out, "// a part's sums go to the workspace; alone, the CTA adds them behind the last");
    line(
        e->out,
        "const long long own = alone ? part * (long long)gridDim.x + blockIdx.x : part * %s + group;",
        groups);
    emit_part_sums(e);
    block (e->out, "if (alone && part == parts - 1)") emit_group_end(e);
}

static void emit_part_end(Emitter *e, const char *groups)
{
    blank_line(e->out);
    if (meets_beside_ring(e->k)) emit_meeting(e, has_held(e) ? "(&held + 1)" : "(ring + stages)");
    if (!leaves_results(e->k)) {
        emit_part_stores(e, groups);
        return;
    }
    line(e->out, "if (parts == 1) {    // which is alone: these are the group's sums");
    e->out->indent++;
    emit_group_results(e, true);
    e->out->indent--;
    block (e->out, "} else") emit_part_stores(e, groups);
}

/* Which parts this CTA has, of the parts of all groups in order: `count` of them, from `part` of
 * `group` on. */
static void emit_share(Emitter *e, const char *groups)
{
    line(
        e->out,
        "// the CTAs share out the parts of all groups, or, alone, whole groups: this one has `count` parts");
    line(e->out, "long long group;");
    line(e->out, "int part = 0, count;");
    line(e->out, "if (alone) {");
    line(e->out, "    share_out(%s, group, count);", groups);
    line(e->out, "    count *= parts;");
    block (e->out, "} else") {
        line(e->out, "long long first_part;");
        line(e->out, "share_out(%s * parts, first_part, count);", groups);
        line(e->out, "split(first_part, parts, group, part);");
    }
}

/* Column vectors that differ between groups, and those that do not. */
static void emit_group_start(Emitter *e)
{
    block (e->out, "if (group != held_group)") {
        emit_hoisted_loads(e);
        emit_held_by_group(e);
        line(e->out, "held_group = group;");
    }
}

void emit_groups(Emitter *e)
{
    const char *groups = count_name(e, e->k->kept, "groups");
    if (e->k->accumulator_count)
        line(e->out, "constexpr int chunk = %d;    // so many parts are added, then chunks",
             e->k->chunk);
    emit_share(e, groups);
    e->rows = count_name(e, e->k->rows, "rows");
    line(e->out, "const long long row_step = %s;",
         e->k->teams > 1 ? "(long long)parts * teams" : "parts");
    if (e->k->stages) emit_ring(e);
    bool by_group = declare_hoisted_loads(e) || is_held_by_group(e);
    if (by_group) line(e->out, "long long held_group = -1;    // whose column vectors are held");
    block (e->out, "for (; count > 0; count--)") {
        if (e->k->kept & (e->k->kept - 1)) emit_split(e, "group", e->k->kept);
        if (by_group) emit_group_start(e);
        line(e->out, "const long long first_row = %s;", first_row_text(e, "part"));
        emit_walk(e);
        if (is_waited_for(e)) {
            line(
                e->out,
                "// the next kernel waits, in its wait_for_previous_kernel(), until this one is done");
            line(e->out, "if (count == 1) let_next_kernel_start();");
        }
        if (e->k->accumulator_count) emit_part_end(e, groups);
        line(e->out, "next_part(group, part, parts);");
    }
}

/* ---- the kernel that adds the parts ---- */

static bool joins_squares(const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (has_squares(&k->accumulators[i])) return true;
    return false;
}

static void emit_part_constants(Emitter *e)
{
    NameList names = {0};
    if (joins_squares(e->k)) *list_push(e->arena, &names) = teams_before(e);
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->plan->launch.fixed >> i & 1)
            *list_push(e->arena, &names) = arena_format(e->arena, "%s = %lld", e->sizes[i],
                                                        (long long)e->plan->analysis->sizes.of[i]);
    *list_push(e->arena, &names) =
        arena_format(e->arena, "width = %d, slices = %d, threads = width * slices, chunk = %d",
                     e->k->threads_per_row, e->k->teams, e->k->chunk);
    line(e->out, "constexpr int %s;", join(e->arena, &names, ", "));
    line(e->out, "const int slice = threadIdx.x / width;");
    line(e->out, "const long long columns = %s, spans = (columns - 1) / width + 1;",
         product_text(e, e->k->columns));
    line(e->out, "// each slice adds all parts of columns of its own, or a chunk of those of all");
    line(e->out, "const bool whole = partials <= chunk;");
    line(e->out, "const int begin = whole ? 0 : slice * chunk;");
    line(e->out, "const int end = begin + chunk < partials ? begin + chunk : partials;");
    emit_overlap(e);
}

static void declare_chunk_sums(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        Accumulator *acc = &e->k->accumulators[i];
        if (has_squares(acc)) declare_moments(e, acc);
        if (has_squares(acc) || is_satellite(acc)) continue;
        acc->name = accumulator_name(e, acc);
        line(e->out, "%s %s[1] = {%s};", type_cuda(node(e->g, acc->node)->type), acc->name,
             identity_text(e->g, acc->node));
    }
}

/* The loop has a single number for its end, so it is unrolled without a condition for each part.
 * Conditions become branches where ptxas runs out of predicates, and a load behind a branch waits
 * for the load before it. */
static bool has_plain_sums(const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (!has_squares(&k->accumulators[i]) && !is_satellite(&k->accumulators[i])) return true;
    return false;
}

static void emit_chunk_sums(Emitter *e)
{
    declare_chunk_sums(e);
    block (e->out, "if (col < columns)") {
        line(e->out, "#pragma unroll 8");
        block (e->out, "for (int p = begin; p < end; p++)")
            for (int i = 0; i < e->k->accumulator_count; i++) {
                const Accumulator *acc = &e->k->accumulators[i];
                if (has_squares(acc)) join_partial(e, acc, "p * columns + col", "p");
                if (has_squares(acc) || is_satellite(acc)) continue;
                emit_accumulate(e, acc->node, arena_format(e->arena, "%s[0]", acc->name),
                                arena_format(e->arena, "%s[p * columns + col]",
                                             arg_name(e, ARG_SLOT, acc->slot, 0)));
            }
    }
    block (e->out, "if (!whole)") {
        for (int i = 0; i < e->k->accumulator_count; i++)
            if (has_squares(&e->k->accumulators[i]))
                join_slices(e, &e->k->accumulators[i], "threads");
        if (has_plain_sums(e->k)) line(e->out, "__shared__ %s scratch[threads];", scratch_type(e));
        for (int i = 0; i < e->k->accumulator_count; i++) {
            Accumulator *acc = &e->k->accumulators[i];
            if (has_squares(acc) || is_satellite(acc)) continue;
            line(e->out, "team_reduce<threads, width, %s>(scratch, %s);",
                 combiner_of(e->g, acc->node)->functor, acc->name);
            acc->name = arena_format(e->arena, "%s[0]", acc->name);
        }
    }
}

void emit_group_finish_kernel(Emitter *e)
{
    block (e->out, "%s", signature_text(e)) {
        emit_part_constants(e);
        blank_line(e->out);
        line(e->out, "const long long at_once = whole ? slices : 1;");
        line(e->out, "#pragma unroll 1");
        block (e->out,
               "for (long long span = blockIdx.x * at_once + (whole ? slice : 0); span < spans; "
               "span += gridDim.x * at_once)") {
            line(e->out, "const long long col = span * width + threadIdx.x %% width;");
            emit_sums_and_results(e, "(whole || slice == 0) && col < columns", emit_chunk_sums);
            if (joins_squares(e->k)) /* where threads may still read what meets */
                line(e->out,
                     "if (!whole) __syncthreads();    // before the next columns' sums meet");
        }
    }
}
