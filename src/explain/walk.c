/* explain/walk.c: how a kernel's threads walk its rows, in words. */
#include "explain/walk.h"

#include <string.h>

const char *names_text(Arena *arena, const Graph *g, AxisSet axes)
{
    Text *text = text_new(arena);
    for (int i = 0; i < g->axis_count; i++)
        if (axes >> i & 1) text_print(text, "%s%s", text->length ? ", " : "", g->axes[i].name);
    return text->length ? text_string(text) : "none";
}

const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Rows that are neighbours in memory: a thread has a vector of them of each of its columns. */
static void explain_beside_walk(Text *out, const Graph *g, const Kernel *k)
{
    enum { WARP = 32 };
    const int teams = rows_at_once(k) / k->vec, warps = warps_of_row(k);
    const char *rows = k->vec > 1 ? arena_format(out->arena, "%d x %d rows", teams, k->vec)
                                  : arena_format(out->arena, "%d row%s", teams, plural(teams));
    const char *across =
        k->vec > 1 ? arena_format(out->arena, " of %d neighbouring rows", k->vec) : "";
    line(out,
         "    walks rows %s, columns %s; %s at a time, %d thread%s a row, %d column%s%s a thread",
         names_text(out->arena, g, k->rows | k->beside), names_text(out->arena, g, column_axes(k)),
         rows, k->threads_per_row, plural(k->threads_per_row), k->tiles, plural(k->tiles), across);
    line(out, "    rows are neighbours in memory along %s: a warp has %d of them%s",
         names_text(out->arena, g, k->beside), WARP / k->lanes * k->vec,
         warps > 1 ? arena_format(out->arena, ", whose columns %d warps share", warps) : "");
}

void explain_walk(Text *out, const Plan *plan, const Kernel *k)
{
    const Graph *g = plan->analysis->graph;
    if (k->beside) {
        explain_beside_walk(out, g, k);
        return;
    }
    const int64_t columns = k->columns ? axes_size(&plan->launch.sizes, k->columns) : 1;
    const int step = k->threads_per_row * k->vec;
    bool open =
        is_streamed(k) ? columns % step != 0 : is_ragged(k) && k->remainder != TILES_FULL_CHECKED;
    const char *vectors = k->vec == 1
                              ? arena_format(out->arena, "%d element%s", k->tiles, plural(k->tiles))
                              : arena_format(out->arena, "%d vector%s of %d elements", k->tiles,
                                             plural(k->tiles), k->vec);
    const int run = vectors_of_run(k, k->vec), at_once = run ? run * k->vec : k->vec;
    const char *elements = k->dynamic ? arena_format(out->arena, "%d element%s a thread at a time",
                                                     at_once, plural(at_once))
                                      : arena_format(out->arena, "%s a thread%s", vectors,
                                                     open ? ", the last tile not full" : "");
    line(out, "    walks rows %s, columns %s; %d row%s at a time, %d thread%s a row, %s",
         names_text(out->arena, g, k->rows), names_text(out->arena, g, k->columns), k->teams,
         plural(k->teams), k->threads_per_row, plural(k->threads_per_row), elements);
}

bool is_read_again(const Kernel *k, const Load *load)
{
    const bool again = (load->phases & (load->phases - 1)) != 0;
    return again && load->access == ACCESS_ELEMENT && load->axes & (k->rows ? k->rows : k->columns);
}

/* Where the elements of a row that two phases need stay in between; NULL: no phase needs them
 * again. */
static const char *home_text(const Kernel *k)
{
    const char *home = NULL, *elements = NULL;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        bool again = (load->phases & (load->phases - 1)) != 0;
        bool row = load->access != ACCESS_ROW && load->axes & (k->rows ? k->rows : k->columns);
        if (!again || !row) continue;
        if (load->access == ACCESS_ELEMENT) {
            elements = "is read again, by single elements";
            continue;
        }
        if (is_streamed(k) || !(is_resident(load) || is_staged(load))) return "is read again";
        home = is_resident(load)  ? "stays in registers"
               : has_bulk_rows(k) ? "stays in shared memory"
                                  : "stays in its stage";
    }
    return home ? home : elements;
}

void explain_phases(Text *out, const Kernel *k)
{
    const char *home = home_text(k), *stays = "stays";
    Text *others = text_new(out->arena);
    for (int i = 0; home && i < k->load_count; i++)
        if (!strncmp(home, stays, strlen(stays)) && is_read_again(k, &k->loads[i]))
            text_print(others, "%s%s",
                       others->length ? ", " : "; each phase reads again: ", k->loads[i].name);
    if (k->phases > 1)
        line(out, "    %d phases%s%s%s", k->phases, home ? "; between them the row " : "",
             home ? home : "", text_string(others));
    if (k->lag)
        line(out,
             "    row pipeline: the last phase of a row runs after the first phase of the next %s",
             k->lag > 1 ? "row but one" : "row");
}

/* How much of a row is taken to be left. */
static const char *share_text(Arena *arena, const Graph *g, const Window *w)
{
    enum { PERCENT = 100 };
    const double left = PERCENT * w->share;
    if (!w->told)
        return arena_format(arena, "how much, rows tell; the model takes %.0f %% to be left", left);
    const char *by = w->width.id ? g->params.data[node(g, w->width)->param].name : NULL;
    return by ? arena_format(arena, "%.0f %% is left where %s has its default", left, by)
              : arena_format(arena, "up to %.0f %% is left", left);
}

void explain_window(Text *out, const Graph *g, const Kernel *k)
{
    if (!has_window(k)) return;
    const Window *w = k->window;
    Text *names = text_new(out->arena);
    int count = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_masked(k, &k->loads[i]))
            text_print(names, "%s%s", count++ ? ", " : "", k->loads[i].name);
    line(out, "    a mask excludes a part of each row, where %s not read: %s",
         arena_format(out->arena, "%s %s", text_string(names), count > 1 ? "are" : "is"),
         share_text(out->arena, g, w));
}
