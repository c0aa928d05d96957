/* schedule/shape.c: which elements of a row each CTA and each thread has: vectors, tiles,
 * slices, and which tiles are checked against the row's end. */
#include "schedule/internal.h"

#include <limits.h>

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* The fewest bytes an element has among the tensors that are read or written as vectors. */
int narrowest(const Kernel *k)
{
    int bytes = 16;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR)
            bytes = min_int(bytes, dtype_info[k->loads[i].dtype].bytes);
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR)
            bytes = min_int(bytes, dtype_info[k->stores[i].dtype].bytes);
    return bytes;
}

/* Elements of the widest access that the tensors allow. */
int full_vector(const Kernel *k)
{
    return min_int(16 / narrowest(k), MAX_VECTOR);
}

/* Elements of a row that surely lie side by side. */
static int64_t dense_count(const Scheduler *s, const Kernel *k)
{
    if (!k->columns) return 1;
    return axes_size(&s->a->sizes, k->dense ? k->dense : (AxisSet)1 << fastest_column(k));
}

/* A row is whole vectors, so that all rows are alike and every access is aligned: where the
 * number of columns is odd, single elements. Of several axes the fastest is whole vectors, or,
 * where they are dense, all together. */
int find_vector(const Scheduler *s, const Kernel *k)
{
    int vec = k->dynamic && !has_several_columns(k) ? 1 : full_vector(k);
    if (k->beside) return vec; /* how many rows there are a launch knows */
    while (dense_count(s, k) % vec) vec /= 2;
    return vec;
}

/* Whether an element's place along some of the columns' axes is found by its place along all of
 * them. */
static bool goes_along(const Kernel *k, AxisSet dense, Access access, AxisSet axes)
{
    if (!(axes & dense)) return true;
    if (access == ACCESS_VECTOR) return axes_within(dense, axes);
    return access == ACCESS_ELEMENT && dense == k->columns;
}

static bool all_go_along(const Scheduler *s, const Kernel *k, AxisSet dense)
{
    bool all = true;
    for (int i = 0; i < k->load_count; i++)
        all &= goes_along(k, dense, k->loads[i].access, k->loads[i].axes);
    for (int i = 0; i < k->store_count; i++)
        all &= goes_along(k, dense, k->stores[i].access, k->stores[i].axes);
    for (int i = 1; i < s->g->nodes.count && dense != k->columns; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        all &= !(k->computed[i] && info->op == OP_INDEX && dense >> info->axis & 1);
    }
    return all;
}

/* As many of the last column axes as may be taken for one. */
static AxisSet merge_columns(const Scheduler *s, const Kernel *k)
{
    AxisSet most = 0;
    const AxisSet ends = k->rows | k->kept | ~s->a->fixed;
    for (int axis = fastest_column(k); axis >= 0 && !(ends >> axis & 1); axis--) {
        const AxisSet dense = k->columns & ~(((AxisSet)1 << axis) - 1);
        if (all_go_along(s, k, dense)) most = dense;
    }
    return most;
}

/* The columns that are taken for one, where vectors then are wider. */
AxisSet find_dense(const Scheduler *s, const Kernel *k)
{
    if (!has_several_column_axes(k) || k->beside || has_parts(s->g, k)) return 0;
    Kernel one = *k, several = *k;
    one.dense = merge_columns(s, k);
    several.dense = 0;
    return find_vector(s, &one) > find_vector(s, &several) ? one.dense : 0;
}

/* Whether no axis of rows stands between those of the columns or behind them, so that tensors can
 * have the columns side by side. */
static bool are_neighbours(const Kernel *k)
{
    const AxisSet first = k->columns & (~k->columns + 1);
    return !(k->rows & ~(first - 1));
}

/* Another entry doubles what is compiled, so it has to gain something. */
AxisSet find_contiguous(const Scheduler *s, const Kernel *k)
{
    static const double LEAST_SHARE = 0.05; /* of a thread's instructions */
    const bool several =
        has_several_columns(k) && !k->dense && axes_within(k->columns, s->a->fixed);
    const bool may = several && !k->beside && are_neighbours(k);
    return may && share_of_places(s, k) >= LEAST_SHARE ? k->columns : 0;
}

/* Why no CTA can be so; NULL: it can. */
const char *shape_problem(const Scheduler *s, const Kernel *k)
{
    enum { MOST = 1024 };
    int threads = k->threads_per_row, all = kernel_threads(k);
    if (threads > MOST) return arena_format(s->arena, "threads: a CTA has up to %d", MOST);
    if (threads % WARP && (threads > WARP || (all % WARP && !s->forced.rows)))
        return arena_format(s->arena, "threads: %d for a row are not whole warps of %d", threads,
                            WARP);
    if (all % WARP)
        return arena_format(s->arena, "rows: %d rows of %d threads are not whole warps of %d",
                            k->teams, threads, WARP);
    if (k->beside)
        return all > MOST ? arena_format(s->arena, "threads: a CTA has up to %d", MOST) : NULL;
    if (all > MOST)
        return arena_format(s->arena, "rows: %d rows of %d threads are more than the %d of a CTA",
                            k->teams, threads, MOST);
    if (threads > WARP && k->teams > MOST_TEAMS)
        return arena_format(s->arena,
                            "rows: a CTA takes up to %d rows at a time of more than a warp each",
                            MOST_TEAMS);
    return NULL;
}

/* Columns are counted in `int`, but for those that a launch counts; each thread of a kernel that
 * sums them over rows must have its own. */
bool has_too_many_columns(Scheduler *s, const Kernel *k)
{
    int most = has_column_accumulators(k) ? 1 << 30 : INT_MAX;
    if (!axes_within(column_axes(k), s->a->fixed) || column_count(s, k) <= most) return false;
    s->problem = arena_format(s->arena, "rows of more than %d columns%s are not supported", most,
                              most < INT_MAX ? " that are reduced over rows" : "");
    return true;
}

/* Whether the rows are those of a tensor with columns, which are never more than a grid has CTAs:
 * no memory holds them. Pairs of the rows of two tensors may be. */
static bool spans_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && axes_within(k->rows, k->loads[i].axes)) return true;
    for (int i = 0; i < k->store_count; i++)
        if (axes_within(k->rows | k->columns, k->stores[i].axes)) return true;
    return false;
}

/* CTAs that end with their rows need no loop over rows, and fewer registers. */
bool may_have_one_row(const Kernel *k)
{
    const bool walks =
        k->kept || k->beside || has_column_parts(k) || is_persistent(k) || has_fewer_ctas(k);
    return k->rows && !walks && spans_rows(k);
}

/* ---- slices and tiles ---- */

/* schedule/tiles.c: which columns each CTA and each thread has, once threads, vectors and tiles are
 * known: slices, whole tiles, and those that are checked against the row's end. */
#include "schedule/internal.h"

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The least multiple of so many columns that is whole blocks of all that are reduced. */
static int64_t whole_blocks(const Scheduler *s, const Kernel *k, int64_t columns)
{
    for (int i = 0; i < k->inner_count; i++) {
        const Node n = k->inner[i].node;
        if (!reduces_part(s->g, k, n)) continue;
        const int threads = block_threads(s->g, k, &s->a->sizes, n);
        const int64_t block = (int64_t)k->vec * (threads ? threads : 1);
        columns *= block / common_divisor(columns, block);
    }
    return columns;
}

/* CTAs that share a row have as many columns each: in whole lines of memory where the row is
 * copied, in vectors of 16 bytes where registers take it; but never more than their warps have
 * vectors, unless blocks that are reduced are longer. Those that read it anew in each phase take
 * turns along it instead, so that they read what lies together. */
static int64_t slice_columns(const Scheduler *s, const Kernel *k)
{
    int64_t unit = (is_refilled(k) ? 16 : LINE_BYTES) / narrowest(k);
    if (unit > k->vec * WARP) unit = k->vec * WARP;
    unit = whole_blocks(s, k, unit);
    return ceil_div(ceil_div(column_count(s, k), k->cluster), unit) * unit;
}

void set_slice(const Scheduler *s, Kernel *k)
{
    k->slice = k->cluster > 1 && !takes_turns(k) ? (int)slice_columns(s, k) : 0;
    k->uneven = k->slice && (int64_t)k->slice * k->cluster != column_count(s, k);
}

int64_t columns_of_cta(const Scheduler *s, const Kernel *k)
{
    const bool blocks = k->cluster > 1 && has_parts(s->g, k);
    return blocks ? slice_columns(s, k) : ceil_div(column_count(s, k), k->cluster);
}

/* Many sums of many threads leave ptxas no register over. Where tiles are checked against the
 * row's end, though all are full, it computes one after the other; else it spills. */
bool checks_full_tiles(const Scheduler *s, const Kernel *k)
{
    enum { MANY_THREADS = 512, MANY = 32 };
    bool many = kernel_threads(k) >= MANY_THREADS && k->vec * k->tiles >= MANY;
    return many && accumulator_registers(s, k) >= 2 && k->teams == 1 && !has_copy_warp(k);
}

void set_ragged(const Scheduler *s, Kernel *k)
{
    enum { FEW_TILES = 4 };
    int64_t tiles = (int64_t)k->threads_per_row * vector_columns(k) * k->tiles,
            ctas = k->column_ctas;
    bool full = k->slice ? k->slice == tiles && !k->uneven : column_count(s, k) == tiles * ctas;
    bool checked = s->forced.exact ? s->forced.checked : checks_full_tiles(s, k);
    bool many = is_streamed(k) && (k->dynamic || is_grouped(k) || k->tiles > FEW_TILES);
    bool ragged = (has_element_work(s->g, k) && !full) || many;
    k->remainder = full && checked                          ? TILES_FULL_CHECKED
                   : ragged                                 ? TILES_RAGGED
                   : full && !is_streamed(k) && !k->dynamic ? TILES_FULL
                                                            : TILES_UNCHECKED;
}

/* Whether all of a row's elements are a CTA's or cluster's, in tiles that are unrolled. */
static bool has_whole_tiles(const Kernel *k)
{
    return !is_streamed(k) && !k->dynamic && !has_column_parts(k);
}

void set_full_tiles(const Scheduler *s, Kernel *k)
{
    int64_t least = column_count(s, k) - (int64_t)k->slice * (k->slice ? k->cluster - 1 : 0);
    int64_t full = least / ((int64_t)k->threads_per_row * vector_columns(k));
    k->full_tiles = !is_ragged(k) ? k->tiles : full > 0 ? (int)full : 0;
}

bool may_leave_open(const Kernel *k)
{
    return has_whole_tiles(k) && is_ragged(k) && k->tiles > 1 && k->full_tiles == k->tiles - 1;
}

bool may_take_whole_moments(const Scheduler *s, const Kernel *k)
{
    return has_whole_tiles(k) && has_moments(s, k) && k->threads_per_row >= WARP && !k->beside;
}

/* Of more tiles ptxas would compute those that are full all at once, and spill. To join a mean
 * and its squares with every vector takes short vectors more instructions than to find them once
 * a thread has all of its elements. */
void set_open_tile(const Scheduler *s, Kernel *k)
{
    enum { FEW = 4, NARROW = 2, ELEMENTS = 48, FULL_BYTES = 16 };
    set_full_tiles(s, k);
    bool one = row_inputs(k) == 1 && k->vec < full_vector(k) && k->vec * row_bytes(k) < FULL_BYTES;
    bool narrow = k->vec <= NARROW || one;
    bool whole = may_take_whole_moments(s, k) && narrow && k->vec * k->tiles <= ELEMENTS;
    if (may_leave_open(k) && k->tiles <= FEW) k->remainder = TILES_LAST_OPEN;
    k->moments = whole ? MOMENTS_OF_THREADS : MOMENTS_OF_VECTORS;
}

/* Where a row's threads are a power of two and all have as many elements, a mean and its squares
 * meet without counts and divisions. */
bool may_have_even_moments(const Scheduler *s, const Kernel *k)
{
    bool full = !is_ragged(k) && !is_streamed(k) && !k->dynamic && !k->beside &&
                !(k->threads_per_row & (k->threads_per_row - 1));
    return full && has_moments(s, k) && k->moments != MOMENTS_OF_THREADS && !k->stages && !k->lag &&
           !is_grouped(k);
}
