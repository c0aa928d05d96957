/* codegen/column_moments.c: a mean and its squares that are accumulated together over rows. A thread
 * adds up, of each of its columns, distances from a shift that is near the mean, and their squares;
 * partials are joined by Chan's rule. The helpers are those of prelude/column_moments.cuh. */
#include "codegen/emit.h"

bool is_satellite(const Accumulator *acc)
{
    return acc->mean.id != 0;
}

bool has_squares(const Accumulator *acc)
{
    return acc->squares.id != 0;
}

static const char *squares_name(const Emitter *e, const Accumulator *mean)
{
    return accumulator_of(e->k, mean->squares)->name;
}

static const char *part_name(Emitter *e, const Accumulator *mean, const char *part)
{
    const char *name = node(e->g, mean->node)->name;
    return unique_name(e, arena_format(e->arena, "%s_%s", name ? name : "column", part));
}

static void name_moments(Emitter *e, Accumulator *mean)
{
    Accumulator *squares =
        &e->k->accumulators[accumulator_of(e->k, mean->squares) - e->k->accumulators];
    mean->name = accumulator_name(e, mean);
    squares->name = part_name(e, mean, "squares");
    e->shifts[mean->node.id] = part_name(e, mean, "shift");
    e->seen[mean->node.id] = part_name(e, mean, "seen");
}

void declare_moments(Emitter *e, Accumulator *mean)
{
    name_moments(e, mean);
    const char *sum = mean->name, *squares = squares_name(e, mean),
               *shift = e->shifts[mean->node.id], *seen = e->seen[mean->node.id];
    if (mean->per_column && walks_rows(e->k)) {
        line(e->out,
             "// distances from a shift near each column's mean, their squares, and how many rows");
        line(e->out, "float %s[tiles][vec] = {}, %s[tiles][vec] = {}, %s[tiles][vec] = {};", sum,
             squares, shift);
        line(e->out, "int %s = 0;", seen);
    } else {
        line(e->out, "float %s = 0, %s = 0, %s = 0, %s = 0;", sum, squares, seen, shift);
    }
}

/* Of variables that are no arrays. */
const char *moments_call(Emitter *e, const Accumulator *mean)
{
    return arena_format(e->arena, "moments_of(%s, %s, %s, %s)", mean->name, squares_name(e, mean),
                        e->seen[mean->node.id], e->shifts[mean->node.id]);
}

/* ---- in a pass ---- */

void add_to_moments(Emitter *e, const Accumulator *mean, const char *value)
{
    if (mean->per_column)
        line(e->out, "add_distance(%s[t][i], %s[t][i], %s - %s[t][i]);", mean->name,
             squares_name(e, mean), value, e->shifts[mean->node.id]);
    else
        line(e->out, "%s[i] = %s;", e->taken[mean->node.id], value);
}

/* Values of all columns are taken a vector at a time. */
static bool takes_vectors(const Emitter *e, const Accumulator *acc, int phase)
{
    return has_squares(acc) && acc->phase == phase && !acc->per_column &&
           is_column_value(e, operand_of(e->g, acc));
}

void declare_taken_vectors(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (!takes_vectors(e, acc, pass->phase)) continue;
        e->taken[acc->node.id] = part_name(e, acc, "of");
        line(e->out, "float %s[vec];", e->taken[acc->node.id]);
    }
}

void emit_taken_vectors(const Pass *pass)
{
    Emitter *e = pass->e;
    const char *guard = element_guard(e);
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (!takes_vectors(e, acc, pass->phase)) continue;
        if (*guard) line(e->out, "if (%s)", guard);
        line(e->out, "%smoments_add(%s, %s);", *guard ? "    " : "", moments_call(e, acc),
             e->taken[acc->node.id]);
    }
}

/* A value that a row has once. */
void add_row_to_moments(Emitter *e, const Accumulator *mean, const char *value)
{
    const char *of = part_name(e, mean, "of");
    line(e->out, "const float %s[1] = {%s};", of, value);
    line(e->out, "moments_add(%s, %s);", moments_call(e, mean), of);
}

void emit_counted_rows(const Pass *pass)
{
    Emitter *e = pass->e;
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (!has_squares(acc) || acc->phase != pass->phase || !acc->per_column) continue;
        const bool guarded = rows_share_warps(e->k);
        if (guarded) line(e->out, "if (has_row)");
        line(e->out, "%scount_row(%s, %s, %s, %s);", guarded ? "    " : "", acc->name,
             squares_name(e, acc), e->shifts[acc->node.id], e->seen[acc->node.id]);
    }
}

/* ---- behind the last row ---- */

static const char *slot_row(const Emitter *e, int slot, const char *row)
{
    return arena_format(e->arena, "%s + %s", arg_name(e, ARG_SLOT, slot, 0), row);
}

static int squares_slot(const Emitter *e, const Accumulator *mean)
{
    return accumulator_of(e->k, mean->squares)->slot;
}

void settle_moments(Emitter *e)
{
    for (int i = 0; i < e->k->accumulator_count; i++) {
        const Accumulator *acc = &e->k->accumulators[i];
        if (has_squares(acc) && acc->per_column)
            line(e->out, "settle_columns(%s, %s, %s);", acc->name, squares_name(e, acc),
                 e->seen[acc->node.id]);
    }
}

/* Memory through which teams join them. */
void declare_meeting(Emitter *e, const Accumulator *mean, const char *writers)
{
    const char *const names[] = {mean->name, squares_name(e, mean), e->shifts[mean->node.id]};
    for (int i = 0; i < 3; i++)
        line(e->out, "    alignas(16) float %s[%s][tiles * step];", names[i], writers);
    line(e->out, "    float %s[%s];", e->seen[mean->node.id], writers);
}

void leave_moments(Emitter *e, const Accumulator *mean)
{
    const char *sum = mean->name, *squares = squares_name(e, mean),
               *shift = e->shifts[mean->node.id], *seen = e->seen[mean->node.id];
    line(e->out, "leave_moments(sums.%s, sums.%s, sums.%s, sums.%s,", sum, squares, shift, seen);
    line(e->out, "              %s, %s, %s, %s);", sum, squares, shift, seen);
}

/* `row`: where a CTA's or part's columns begin in the slots of partials. */
void store_left_moments(Emitter *e, const Accumulator *mean, const char *row, const char *end)
{
    line(e->out, "store_moments<threads, vec>(%s, %s, %s, %s,",
         arg_name(e, ARG_SLOT, mean->slot, 0), arg_name(e, ARG_SLOT, squares_slot(e, mean), 0),
         arg_name(e, ARG_SLOT, mean->shift_slot, 0), row);
    line(e->out, "                            sums.%s, sums.%s, sums.%s, sums.%s, %s);", mean->name,
         squares_name(e, mean), e->shifts[mean->node.id], e->seen[mean->node.id], end);
}

/* The same of a tile, where teams meet one value after the other, or not at all. */
void meet_moments(Emitter *e, const Accumulator *mean)
{
    if (e->k->teams > 1)
        line(e->out,
             "team_moments<threads, threads_per_row>(team_scratch, %s[t], %s[t], %s[t], %s);",
             mean->name, squares_name(e, mean), e->shifts[mean->node.id], e->seen[mean->node.id]);
}

void store_moments(Emitter *e, const Accumulator *mean, const char *row, const char *guard)
{
    const char *const names[] = {mean->name, squares_name(e, mean), e->shifts[mean->node.id]};
    const int slots[] = {mean->slot, squares_slot(e, mean), mean->shift_slot};
    for (int i = 0; i < 3; i++) {
        if (*guard) line(e->out, "%s", guard);
        line(e->out, "%sstore_aligned(%s, first_column + t * step, %s[t], %s);",
             *guard ? "    " : "", slot_row(e, slots[i], row), names[i], e->end);
    }
}

/* Of all columns together. */
void store_full_moments(Emitter *e, const Accumulator *mean)
{
    const char *const names[] = {mean->name, squares_name(e, mean), e->shifts[mean->node.id]};
    const int slots[] = {mean->slot, squares_slot(e, mean), mean->shift_slot};
    for (int i = 0; i < 3; i++)
        line(e->out, "%s[blockIdx.x] = %s;", arg_name(e, ARG_SLOT, slots[i], 0), names[i]);
}

/* ---- partials ---- */

/* How many rows, or elements, a partial is of. The rows are the reduced axes that walk. */
static const char *rows_text(Emitter *e, const Accumulator *mean, const char *part)
{
    const Kernel *from = &e->plan->kernels[e->k->finishes];
    AxisSet reduced = node(e->g, mean->node)->reduced;
    AxisSet inside = reduced & from->columns, rows = reduced & ~inside;
    const char *text = arena_format(e->arena, "rows_of_part(%s, teams, partials, %s)",
                                    rows ? product_text(e, rows) : "1", part);
    return inside ? arena_format(e->arena, "%s * %s", text, count_text(e, inside)) : text;
}

const char *teams_before(Emitter *e)
{
    return arena_format(e->arena, "teams = %d", rows_of_step(&e->plan->kernels[e->k->finishes]));
}

/* `item`: the partial's place; `part`: which of all it is. */
void join_partial(Emitter *e, const Accumulator *mean, const char *item, const char *part)
{
    line(e->out, "join_moments(%s, %s[%s], %s[%s],", moments_call(e, mean),
         arg_name(e, ARG_SLOT, mean->slot, 0), item,
         arg_name(e, ARG_SLOT, squares_slot(e, mean), 0), item);
    line(e->out, "             %s, %s[%s]);", rows_text(e, mean, part),
         arg_name(e, ARG_SLOT, mean->shift_slot, 0), item);
}

/* The threads of a finish kernel that have a column join theirs. */
void join_slices(Emitter *e, const Accumulator *mean, const char *places)
{
    const char *scratch = part_name(e, mean, "scratch");
    line(e->out, "__shared__ float %s[4][%s];", scratch, places);
    line(e->out, "slice_moments<width>(%s, %s);", scratch, moments_call(e, mean));
}

/* The same of a group's parts, all by one thread. */
void add_part_moments(Emitter *e, Accumulator *mean)
{
    const char *rows = product_text(e, node(e->g, mean->node)->reduced);
    name_moments(e, mean);
    line(e->out, "float %s = 0, %s = 0, %s = 0, %s = 0;", mean->name, squares_name(e, mean),
         e->seen[mean->node.id], e->shifts[mean->node.id]);
    line(e->out, "add_part_moments<chunk, %s>(%s,", e->k->teams > 1 ? "teams" : "1",
         moments_call(e, mean));
    line(e->out, "    %s, %s, %s, %s, parts, col, %s);", arg_name(e, ARG_SLOT, mean->slot, 0),
         arg_name(e, ARG_SLOT, squares_slot(e, mean), 0),
         arg_name(e, ARG_SLOT, mean->shift_slot, 0), rows, e->columns);
}

/* The result of a mean, whose name is that of its distance from the shift until then. */
void emit_moments_result(Emitter *e, const Accumulator *acc)
{
    Node n = acc->node;
    const char *count = count_text(e, node(e->g, n)->reduced);
    bool lacks = acc->rest.id && e->users[acc->rest.id];
    if (!e->users[n.id] && !lacks) return;
    line(e->out, "float %s = %s / %s;", node_name(e, n), acc->name, count);
    line(e->out, "%s%s%smoments_end(%s, %s);", lacks ? "const float " : "",
         lacks ? node_name(e, acc->rest) : "", lacks ? " = " : "", node_name(e, n),
         e->shifts[n.id]);
    make_local(e, n);
    if (lacks) make_local(e, acc->rest);
}
