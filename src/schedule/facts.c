/* schedule/facts.c: what is known of a kernel's work: its columns, what it reads of them and
 * adds up. */
#include "schedule/internal.h"

#include <stdlib.h>

static int compare_ids(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int order_load(const void *id, const void *load)
{
    return compare_ids(*(const uint32_t *)id, ((const Load *)load)->node.id);
}

static int order_inner(const void *id, const void *inner)
{
    return compare_ids(*(const uint32_t *)id, ((const InnerReduction *)inner)->node.id);
}

const Load *load_of(const Kernel *k, Node n)
{
    return k->load_count
               ? bsearch(&n.id, k->loads, (size_t)k->load_count, sizeof *k->loads, order_load)
               : NULL;
}

const InnerReduction *inner_of(const Kernel *k, Node n)
{
    return k->inner_count
               ? bsearch(&n.id, k->inner, (size_t)k->inner_count, sizeof *k->inner, order_inner)
               : NULL;
}

static int order_accumulator(const void *id, const void *acc)
{
    return compare_ids(*(const uint32_t *)id, ((const Accumulator *)acc)->node.id);
}

const Accumulator *accumulator_of(const Kernel *k, Node n)
{
    return k->accumulator_count ? bsearch(&n.id, k->accumulators, (size_t)k->accumulator_count,
                                          sizeof *k->accumulators, order_accumulator)
                                : NULL;
}

int64_t column_count(const Scheduler *s, const Kernel *k)
{
    return column_axes(k) ? axes_size(&s->a->sizes, column_axes(k)) : 1;
}

bool has_dynamic_columns(const Scheduler *s, const Kernel *k)
{
    return !axes_within(column_axes(k), s->a->fixed) || column_count(s, k) > 1 << 30;
}

bool has_column_accumulators(const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].per_column) return true;
    return false;
}

/* Registers that the accumulators of one column take. */
double accumulator_registers(const Scheduler *s, const Kernel *k)
{
    double registers = 0;
    for (int i = 0; i < k->accumulator_count; i++) {
        Type type = node(s->g, k->accumulators[i].node)->type;
        if (k->accumulators[i].per_column)
            registers += values_of(&k->accumulators[i]) * (type == TYPE_F32 ? 1 : 2);
    }
    return registers;
}

bool is_row_vector(const Kernel *k, const Load *load)
{
    const bool row = k->beside ? load->axes & column_axes(k) : load->axes & k->rows;
    return load->access == ACCESS_VECTOR && row;
}

bool is_column_vector(const Kernel *k, const Load *load)
{
    return load->access == ACCESS_VECTOR && !k->beside && !(load->axes & k->rows);
}

int row_bytes(const Kernel *k)
{
    int bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) bytes += dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

AxisSet inner_of_two(const Kernel *k)
{
    const AxisSet fastest = k->columns ? (AxisSet)1 << fastest_column(k) : 0,
                  inner = k->dense & fastest ? k->dense : fastest, outer = k->columns & ~inner;
    return outer && !(outer & (outer - 1)) && outer < inner && !is_dense(k) ? inner : 0;
}

int vectors_of_run(const Kernel *k, int vec)
{
    enum { WIDE = 16, ROOM = 32, MOST = 8, MOST_ELEMENTS = 16 };
    int tensors = 0, bytes = 0, at_once = 1;
    if (!k->dynamic || k->window || k->accumulator_count || k->beside || !inner_of_two(k)) return 0;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access != ACCESS_ROW) return 0;
    for (int i = 0; i < k->load_count; i++) {
        if (k->loads[i].access != ACCESS_VECTOR) continue;
        tensors++;
        bytes += vec * dtype_info[k->loads[i].dtype].bytes;
    }
    if (bytes >= tensors * WIDE) return 0;
    while (at_once < (vec > 1 ? MOST : MOST_ELEMENTS) && 2 * at_once * bytes <= ROOM) at_once *= 2;
    return at_once > 1 ? at_once : 0;
}

bool has_one_stride(const Kernel *k)
{
    const AxisSet columns = column_axes(k);
    return k->beside && columns && !(columns & (columns - 1));
}

int columns_for_rows_beside(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count && k->beside; i++)
        count += (k->loads[i].axes & column_axes(k)) && !(k->loads[i].axes & k->beside);
    return count;
}

bool stores_spans(const Kernel *k)
{
    return has_one_stride(k) && !is_streamed(k) && k->inner_count && columns_for_rows_beside(k);
}

/* How many vectors a row has of a column. */
int row_inputs(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++) count += is_row_vector(k, &k->loads[i]);
    return count;
}

int column_vectors(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++) count += is_column_vector(k, &k->loads[i]);
    return count;
}

/* Whether a CTA that walks rows has something from one for the next: sums, a ring for what waits,
 * or column vectors that it holds. Values that a part of a row has in common it would load anew. */
bool gains_by_walking(const Kernel *k)
{
    if (!k->rows || k->inner_count || k->accumulator_count) return k->rows != 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].axes & column_axes(k) && k->loads[i].access != ACCESS_VECTOR) return false;
    return column_vectors(k) > 0;
}

/* Of a column's elements in vectors that all rows share. */
static int column_bytes(const Kernel *k)
{
    int bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_column_vector(k, &k->loads[i])) bytes += dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

/* Whether column vectors are of wider elements than rows are, as weights in f32 beside activations
 * in bf16. */
bool has_wide_columns(const Kernel *k)
{
    int columns = column_vectors(k), inputs = row_inputs(k);
    return columns && inputs && column_bytes(k) * inputs > row_bytes(k) * columns;
}

/* Whether a mean is found together with its squares. */
bool has_moments(const Scheduler *s, const Kernel *k)
{
    for (int i = 0; i < k->inner_count; i++)
        if (node(s->g, k->inner[i].partner)->op == OP_MEAN) return true;
    return false;
}

bool is_stored_row(const Store *store)
{
    return store->access == ACCESS_VECTOR && !store->result;
}

int64_t declared_size(const Scheduler *s, AxisSet axes)
{
    int64_t size = 1;
    for (int i = 0; i < s->g->axis_count; i++) {
        const int64_t own = s->g->axes[i].size;
        if (!(axes >> i & 1)) continue;
        if (own <= 0 || __builtin_mul_overflow(size, own, &size)) return 0;
    }
    return size;
}

double likely_part_rows(const Scheduler *s, const Kernel *k)
{
    const int64_t rows = declared_size(s, k->rows);
    return rows && rows < k->part_rows ? (double)rows : k->part_rows;
}

/* ---- parts of a row ---- */

/* Where the fastest axis is no longer than a vector, or than those of a row's threads, tiles
 * step along the others alone. */
unsigned footprint_of(const Kernel *k, const Sizes *sizes, AxisSet axes)
{
    const AxisSet fastest = k->columns ? (AxisSet)1 << fastest_column(k) : 0;
    AxisSet stepped = axes & k->columns;
    if (is_dense(k)) return stepped ? ALONG_TILES | ALONG_VECTOR : 0;
    const int64_t length = axes_size(sizes, fastest);
    if (k->beside || length == k->vec || length == (int64_t)k->vec * k->threads_per_row)
        stepped &= ~fastest;
    return (stepped ? ALONG_TILES : 0) | (axes & fastest ? ALONG_VECTOR : 0);
}

bool has_parts(const Graph *g, const Kernel *k)
{
    for (int i = 0; i < k->inner_count; i++)
        if (reduces_part(g, k, k->inner[i].node)) return true;
    return false;
}

int block_threads(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction)
{
    const AxisSet reduced = node(g, reduction)->reduced;
    if (!(reduced >> fastest_column(k) & 1)) return 0;
    return (int)(axes_size(sizes, reduced) / k->vec);
}

bool has_whole_parts(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction)
{
    const int64_t left = axes_size(sizes, k->columns & ~node(g, reduction)->reduced);
    return !k->beside && left == (int64_t)k->vec * k->threads_per_row && k->cluster == 1;
}

int block_lanes(const Kernel *k, int threads)
{
    enum { WARP_LANES = 32 };
    const int most = k->threads_per_row < WARP_LANES ? k->threads_per_row : WARP_LANES;
    int lanes = 1;
    while (lanes < most && threads % (2 * lanes) == 0 && k->threads_per_row % (2 * lanes) == 0)
        lanes *= 2;
    return lanes;
}

int block_places(const Kernel *k, int threads)
{
    const int lanes = block_lanes(k, threads), all = k->tiles * k->threads_per_row;
    return lanes == threads ? 0 : (all + threads - 1) / threads * (threads / lanes);
}

int meeting_places(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction)
{
    const int threads = reduces_part(g, k, reduction) ? block_threads(g, k, sizes, reduction) : 0;
    return threads ? block_places(k, threads) : 0;
}

bool reads_early(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].place == LOADED_AHEAD) return true;
    return false;
}

bool copies_stray_bytes(const Kernel *k, int64_t columns)
{
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        bool copied = is_staged(load) && !is_hoisted(load) && load->access == ACCESS_VECTOR;
        bool whole = is_whole_blocks(columns, load->dtype);
        bool blocks = is_copied_by_lines(k) ? k->vec * dtype_info[load->dtype].bytes < 16
                                            : has_copy_warp(k) && !whole;
        if (copied && blocks) return true;
    }
    return false;
}
