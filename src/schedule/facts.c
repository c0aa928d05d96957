/* schedule/facts.c: what the rules ask of a kernel: its columns, what it reads of them and adds up.
 */
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

int64_t column_count(const Scheduler *s, const Kernel *k)
{
    return k->columns ? axes_size(&s->a->sizes, k->columns) : 1;
}

bool has_dynamic_columns(const Scheduler *s, const Kernel *k)
{
    return !axes_within(k->columns, s->a->columns) || column_count(s, k) > 1 << 30;
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
        if (k->accumulators[i].per_column) registers += type == TYPE_F32 ? 1 : 2;
    }
    return registers;
}

bool is_row_vector(const Kernel *k, const Load *load)
{
    return load->access == ACCESS_VECTOR && load->axes & k->rows;
}

bool is_column_vector(const Kernel *k, const Load *load)
{
    return load->access == ACCESS_VECTOR && !(load->axes & k->rows);
}

int row_bytes(const Kernel *k)
{
    int bytes = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) bytes += dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

bool reads_f16(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && k->loads[i].dtype == DTYPE_F16) return true;
    return false;
}

/* How many vectors a row has of a column. */
int row_inputs(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++) count += is_row_vector(k, &k->loads[i]);
    return count;
}

bool is_f32_row(const Kernel *k)
{
    return row_inputs(k) == 1 && row_bytes(k) == 4;
}

int column_vectors(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++) count += is_column_vector(k, &k->loads[i]);
    return count;
}

int64_t column_bytes(const Kernel *k, int rows)
{
    int64_t bytes = rows * row_bytes(k);
    for (int i = 0; i < k->load_count; i++)
        if (is_column_vector(k, &k->loads[i])) bytes += dtype_info[k->loads[i].dtype].bytes;
    return bytes;
}

/* Whether column vectors are of wider elements than rows are, as weights in f32 beside activations
 * in bf16. */
bool has_wide_columns(const Kernel *k)
{
    int columns = column_vectors(k), inputs = row_inputs(k);
    return columns && inputs && column_bytes(k, 0) * inputs > row_bytes(k) * columns;
}

/* Whether an SM's caches and shared memory hold `columns` of so many rows and of the
 * column vectors. */
bool is_cached(const Scheduler *s, const Kernel *k, int rows, int64_t columns)
{
    return column_bytes(k, rows) * columns <= s->target->smem_per_sm / 8 * 7;
}

/* Whether a mean is found together with its squares. */
bool has_moments(const Scheduler *s, const Kernel *k)
{
    for (int i = 0; i < k->inner_count; i++)
        if (node(s->g, k->inner[i].partner)->op == OP_MEAN) return true;
    return false;
}

/* Whether a cluster is to share rows of which a mean and its squares are found beside such column
 * vectors: where it does not have them one at a time, it has the vectors in shared memory, beside a
 * ring (layer norm of 20480 to 65536 columns 6 to 17 %, of a sum of two inputs and a bias of 12288
 * and 14336 17 %, of 20480 61 % faster; measured on an H100). */
bool shares_wide_columns(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 16384, LONG_OF_THREE = 11264 };
    bool wide = has_wide_columns(k) && row_bytes(k) >= 2 * row_inputs(k) && has_moments(s, k) &&
                !k->accumulator_count;
    return wide && s->target->max_cluster > 1 &&
           column_count(s, k) > (column_vectors(k) > 2 ? LONG_OF_THREE : LONG);
}

/* Whether a row without sums over rows has several exchanges, or one of more than a pair: then
 * fewer warps, with more of the row each, are better (rmsnorm with its largest element of 1024 to
 * 8192 columns 5 to 12 %, cross entropy and its gradient of 8192 12 %; measured on an H100). */
bool exchanges_often(const Kernel *k)
{
    enum { PAIR = 2 };
    return !k->accumulator_count && k->inner_count && (k->phases > PAIR || k->inner_count > PAIR);
}

bool has_f32_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].dtype == DTYPE_F32) return true;
    return false;
}

bool is_stored_row(const Store *store)
{
    return store->access == ACCESS_VECTOR && !store->result;
}

/* Tensors that it stores rows of. */
int stored_rows(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->store_count; i++) count += is_stored_row(&k->stores[i]);
    return count;
}

/* Bytes of the narrowest element that it stores. */
int narrowest_stored(const Kernel *k)
{
    int bytes = 16;
    for (int i = 0; i < k->store_count; i++)
        if (k->stores[i].access == ACCESS_VECTOR && dtype_info[k->stores[i].dtype].bytes < bytes)
            bytes = dtype_info[k->stores[i].dtype].bytes;
    return bytes;
}

/* Of the last of its inputs that have rows. */
DType row_dtype(const Kernel *k)
{
    DType dtype = DTYPE_F32;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) dtype = k->loads[i].dtype;
    return dtype;
}

/* Whether it is little more than a layer norm: one row, read twice, one row stored, and no more
 * column vectors than two. */
bool is_plain_norm(const Kernel *k)
{
    int stored = 0;
    for (int i = 0; i < k->store_count; i++) stored += k->stores[i].access == ACCESS_VECTOR;
    for (int i = 0; i < k->load_count; i++) {
        uint64_t phases = k->loads[i].phases;
        if (is_row_vector(k, &k->loads[i]) && !(phases & (phases - 1))) return false;
    }
    return row_inputs(k) == 1 && stored == 1 && column_vectors(k) <= 2;
}

/* Whether all rows are of that type, and read in more than one phase. */
bool keeps_rows_of(const Kernel *k, DType dtype)
{
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (!is_row_vector(k, load)) continue;
        if (load->dtype != dtype || !(load->phases & (load->phases - 1))) return false;
    }
    return true;
}

static bool is_of_each(const Scheduler *s, const Kernel *k, Node n)
{
    return k->computed[n.id] && node(s->g, n)->axes & k->columns;
}

/* Whether it takes more registers than a softmax's exp, which of ptxas's long sequences is the
 * shortest. (A division's is elsewhere: has_short_arithmetic.) */
static bool is_long(const Scheduler *s, Node n)
{
    return op_info[node(s->g, n)->op].cost >= COST_FUNCTION;
}

bool has_short_functions(const Scheduler *s, const Kernel *k)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (is_of_each(s, k, n) && (node(s->g, n)->type == TYPE_F64 || is_long(s, n))) return false;
    }
    return true;
}

static bool multiplies_by_inverse(const Scheduler *s, const Kernel *k, Node division)
{
    const InnerReduction *r = inner_of(k, arg(s->g, division, 1));
    return r && r->inverse;
}

bool has_short_arithmetic(const Scheduler *s, const Kernel *k)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        bool division = node(s->g, n)->op == OP_DIV && is_of_each(s, k, n);
        if (division && !multiplies_by_inverse(s, k, n)) return false;
    }
    return has_short_functions(s, k);
}

bool compares_places(const Scheduler *s, const Kernel *k)
{
    for (int i = 1; i < s->g->nodes.count; i++) {
        const NodeInfo *info = &s->g->nodes.data[i];
        if (k->computed[i] && info->op == OP_INDEX && info->axes & k->columns) return true;
    }
    return false;
}

/* Whether threads, L2 and exchanges bound kernels before memory does. What the rules know of such
 * was timed on an H200, whose memory moves 36 bytes a ns for each SM, and the rest on an H100, of
 * 25. */
bool has_fast_memory(const Scheduler *s)
{
    enum { HALFWAY = 31 };
    return s->target->timed && s->target->peak_rate > HALFWAY;
}

/* Whether column vectors are as wide as rows, or cost no more than such: beside sums over rows, by
 * the schedules for weights of 2 bytes (backward norms with weights of f32 of 64 to 180224 columns
 * up to 14 % faster with 64 rows, 17 % with 512, 8 % with many, and as fast as with those; 640
 * columns 5 %, 64 rows of which half as many CTAs share each up to 36 % slower; measured on an
 * H100; on an H200 of up to 4096 columns 0 to 16 % faster, longer ones slower or as fast). */
bool has_cheap_columns(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 4096 };
    return !has_wide_columns(k) ||
           (k->accumulator_count && (!has_fast_memory(s) || column_count(s, k) <= SHORT));
}

/* Rows that pass in so many phases, for which little is computed. */
bool passes_in(const Scheduler *s, const Kernel *k, int phases)
{
    bool plain = k->rows && !k->kept && !k->dynamic && !has_several_columns(k);
    return plain && k->inner_count && k->phases == phases && has_short_functions(s, k) &&
           !compares_places(s, k);
}

bool passes_twice(const Scheduler *s, const Kernel *k)
{
    return passes_in(s, k, 2) && !exchanges_often(k);
}

/* And column vectors are narrow: such were measured, and others spill. */
bool has_light_phases(const Scheduler *s, const Kernel *k)
{
    return has_cheap_columns(s, k) && passes_twice(s, k);
}

/* Those that both phases read. */
bool has_light_rows(const Scheduler *s, const Kernel *k)
{
    return has_light_phases(s, k) && keeps_rows_of(k, row_dtype(k));
}

/* Those in whole vectors. */
bool has_plain_rows(const Scheduler *s, const Kernel *k)
{
    return has_light_rows(s, k) && k->vec == full_vector(k);
}

/* The fewest CTAs, a power of two, of which none has more than `slice` columns. */
int fewest_ctas(int64_t columns, int64_t slice)
{
    int ctas = 1;
    while (columns > slice * ctas) ctas *= 2;
    return ctas;
}

/* Whole warps in which a thread has up to `each` columns, but no more than `most` threads. */
int threads_of(int64_t columns, int each, int most)
{
    int64_t threads = ceil_div(columns, (int64_t)each * WARP) * WARP;
    return threads < most ? (int)threads : most;
}
