/* codegen/launch_mapping.c: of the table of codegen/launch_table.c the lines that say which rows
 * and columns CTAs and threads have. */
#include "codegen/emit.h"

/* Which rows a CTA, cluster or group walks. */
static const char *walk_text(Emitter *e, const char *walker, int divisor)
{
    const Kernel *k = e->k;
    const char *sums = k->accumulator_count ? "; its sums over rows stay in registers" : "";
    if (divisor > 1)
        return arena_format(e->arena, "a %s walks blockIdx.x / %d, + gridDim.x / %d, ...%s", walker,
                            divisor, divisor, sums);
    if (k->groups > 1)
        return arena_format(e->arena,
                            "a CTA walks %s, + gridDim.x, ..., which %d teams take in turn%s",
                            first_of_walk(e), k->groups, sums);
    return arena_format(e->arena, "a %s walks %s, + gridDim.x, ...%s%s", walker, first_of_walk(e),
                        is_persistent(k) ? "" : " (just one in this grid)", sums);
}

static const char *teams_text(Emitter *e)
{
    const Kernel *k = e->k;
    const int rows = rows_of_step(k);
    return arena_format(
        e->arena, "a CTA walks %d at a time, from %s * %d, + gridDim.x * %d, ...%s%s", rows,
        first_of_walk(e), rows, rows,
        k->groups > 1 ? arena_format(e->arena, ", which %d groups of teams take in turn", k->groups)
                      : "",
        k->accumulator_count ? "; its sums over rows stay in registers" : "");
}

/* The same of a kernel that sums each group of rows apart. */
static const char *groups_text(Emitter *e)
{
    const Kernel *k = e->k;
    const char *groups = product_text(e, k->kept),
               *teams = k->teams > 1 ? arena_format(e->arena, ", %d at a time", k->teams) : "";
    if (!k->accumulator_count)
        return arena_format(
            e->arena,
            "those of one %s are a group, which is cut into parts, and have column vectors in "
            "common; a CTA walks the rows of its parts%s",
            groups, teams);
    return arena_format(
        e->arena,
        "those of one %s are a group, which is cut into parts; a CTA walks the rows of its parts%s"
        "%s and stores the sums of each, or, where it has whole groups (alone), adds them as the "
        "finish kernel would and stores the results",
        groups, teams, *teams ? "," : "");
}

static const char *list_axes(Emitter *e, AxisSet axes)
{
    NameList names = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (axes >> i & 1) *list_push(e->arena, &names) = e->sizes[i];
    return join(e->arena, &names, ", ");
}

/* The same of rows that are neighbours in memory. All that are neighbours of each other are a
 * line. */
static const char *beside_rows_text(Emitter *e)
{
    const Kernel *k = e->k;
    const char *axis = e->sizes[fastest_column(k)];
    const int rows = rows_at_once(k);
    const char *line =
        k->rows ? arena_format(e->arena, "; a line is the rows of the same index along %s",
                               list_axes(e, k->rows))
                : "";
    if (is_persistent(k))
        return arena_format(e->arena,
                            "a CTA walks spans of %d neighbours along %s: blockIdx.x, + "
                            "gridDim.x, ...%s%s%s",
                            rows, axis, k->rows ? " of all lines" : "",
                            k->accumulator_count ? "; its sums over rows stay in registers" : "",
                            line);
    return arena_format(e->arena, "a CTA has %d neighbours along %s, from blockIdx.x * %d on%s%s",
                        rows, axis, rows, k->rows ? ", of lines blockIdx.y, + gridDim.y, ..." : "",
                        line);
}

static const char *rows_text(Emitter *e)
{
    const Kernel *k = e->k;
    if (k->one_row && k->cluster > 1)
        return arena_format(e->arena, "a cluster has row blockIdx.x / %d", k->cluster);
    if (k->one_row && k->teams > 1)
        return arena_format(e->arena, "a CTA has %d, from %s * %d", k->teams, first_of_walk(e),
                            k->teams);
    if (k->one_row) return arena_format(e->arena, "a CTA has row %s", first_of_walk(e));
    if (!k->rows) return k->cluster > 1 ? "one, which all CTAs share" : "one";
    if (k->cluster > 1) return walk_text(e, is_grouped(k) ? "group" : "cluster", k->cluster);
    if (k->kept) return groups_text(e);
    if (has_parts_in_order(k))
        return arena_format(
            e->arena, "a CTA walks blockIdx.x / %d, + gridDim.x / %d, ... (just one in this grid)",
            k->column_ctas, k->column_ctas);
    return rows_of_step(k) > 1 ? teams_text(e) : walk_text(e, "CTA", 1);
}

/* Which threads share a row, or a CTA's slice of it. */
static const char *sharing_text(Emitter *e)
{
    const Kernel *k = e->k;
    const int threads = k->threads_per_row;
    const char *of = threads > 1 ? arena_format(e->arena, "%d threads", threads) : "one thread";
    if (takes_turns(k))
        return arena_format(e->arena, "%d CTAs of %d threads a row", k->cluster, threads);
    if (k->slice)
        return arena_format(e->arena, "a slice of %d for each CTA of a %s; %s a slice", k->slice,
                            sharers_name(k), of);
    if (has_column_parts(k))
        return arena_format(e->arena, "a CTA has slice %s of %d; %s a slice",
                            has_parts_in_order(k)
                                ? arena_format(e->arena, "blockIdx.x %% %d", k->column_ctas)
                                : "blockIdx.y",
                            k->column_ctas, of);
    return arena_format(e->arena, "%s a row", of);
}

/* Which elements one of these threads has. */
static const char *thread_text(Emitter *e)
{
    const Kernel *k = e->k;
    const char *vector =
        k->vec > 1 ? arena_format(e->arena, "%d adjacent columns", k->vec) : "one column";
    const char *last = !is_ragged(k) || k->remainder == TILES_FULL_CHECKED || k->vec == 1 ? ""
                       : k->tiles > 1 ? ", the last not full"
                                      : ", or none";
    if (has_runs(e))
        return arena_format(e->arena,
                            "`run` of them share those of one %s, each takes up to %d at a time",
                            run_outer(e), vectors_of_run(k, k->vec) * k->vec);
    if (is_streamed(k))
        return arena_format(e->arena, "each takes %s at a time%s", vector,
                            reads_rows_again(k) ? ", and again in each phase" : "");
    if (k->tiles == 1) return arena_format(e->arena, "each with %s%s", vector, last);
    if (k->vec == 1)
        return arena_format(e->arena, "each with %d columns, %d apart", k->tiles,
                            k->threads_per_row);
    return arena_format(e->arena, "each with %d tiles of %s, %d apart%s", k->tiles, vector,
                        k->threads_per_row * k->vec, last);
}

/* Which columns one of a row's threads has, where rows are neighbours in memory. */
static const char *own_columns_text(Emitter *e)
{
    const Kernel *k = e->k;
    const bool open = is_ragged(k) && k->remainder != TILES_FULL_CHECKED;
    if (k->tiles == 1)
        return open ? "column thread_in_row, if there is one," : "column thread_in_row";
    const char *fewer = open ? arena_format(e->arena, "%d or ", k->tiles - 1) : "";
    return arena_format(e->arena, "columns thread_in_row, + %d, ... (%s%d of them)",
                        k->threads_per_row, fewer, k->tiles);
}

static const char *beside_columns_text(Emitter *e)
{
    const Kernel *k = e->k;
    const int warps = warps_of_row(k);
    const char *where = warps > 1 ? arena_format(e->arena, " (%d lane%s of each of %d warps)",
                                                 k->lanes, k->lanes == 1 ? "" : "s", warps)
                                  : "";
    const char *rows =
        k->vec > 1
            ? arena_format(e->arena, "%d rows: neighbours if `together`, else teams apart", k->vec)
            : "one row";
    return arena_format(e->arena, "%s%s; a thread has %s of %s", sharing_text(e), where,
                        own_columns_text(e), rows);
}

static void put_beside_mapping(Emitter *e)
{
    put_row(e, "rows", beside_rows_text(e));
    put_row(e, "columns", beside_columns_text(e));
    if (column_axes(e->k) & (column_axes(e->k) - 1))
        put_row(e, "", arena_format(e->arena, "col counts %s", product_text(e, column_axes(e->k))));
}

void put_mapping(Emitter *e)
{
    const Kernel *k = e->k;
    if (k->beside) {
        put_beside_mapping(e);
        return;
    }
    put_row(e, "rows", rows_text(e));
    put_row(e, "columns", arena_format(e->arena, "%s, %s", sharing_text(e), thread_text(e)));
    if (has_several_column_axes(k))
        put_row(e, "",
                arena_format(e->arena, "col counts %s%s", product_text(e, k->columns),
                             k->vec > 1 && !is_dense(k)
                                 ? arena_format(e->arena, "; a vector lies along %s",
                                                k->dense ? product_text(e, k->dense)
                                                         : e->sizes[fastest_column(k)])
                                 : ""));
    if (copies_stray_bytes(k, axes_size(&e->plan->analysis->sizes, k->columns)))
        put_row(e, "",
                arena_format(e->arena,
                             "reads whole blocks of 16 bytes: up to 15 bytes before%s a row",
                             has_copy_warp(k) ? " and behind" : ""));
}

/* The mapping of a kernel that adds the partials of another. */
void put_finish_mapping(Emitter *e)
{
    const Kernel *k = e->k, *main = &e->plan->kernels[k->finishes];
    if (main->kept) {
        put_row(e, "rows", arena_format(e->arena, "the parts of the groups of %s", main->name));
        put_row(e, "columns",
                arena_format(e->arena,
                             "the threads of a column add %d parts each, in order, and then meet",
                             main->chunk));
        return;
    }
    put_row(e, "rows",
            arena_format(e->arena, "the partials of %s, one from each %s", main->name,
                         sharers_name(main)));
    put_row(
        e, "columns",
        arena_format(e->arena,
                     "up to %d for each CTA; %d threads a column, which take its partials in turn",
                     k->threads_per_row, k->teams));
}
