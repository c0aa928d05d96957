/* schedule/fit_bulk.c: which rows come to shared memory by one bulk copy and stay there, each for a
 * CTA or a cluster that has no other. Registers then need not have room for a row, so that any
 * length is shared out well, and what hides the copy are the other CTAs of the SM: no ring, no lag.
 * What registers hold well they compute as fast without a copy (softmax, rmsnorm and layer norm of
 * most lengths, measured on an H100). */
#include "schedule/internal.h"

enum { SLICE_BYTES = 64 << 10 };

/* Whether a row can be copied so: whole blocks of 16 bytes, of one axis. */
bool can_take_bulk(const Scheduler *s, const Kernel *k)
{
    bool fits = !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->dynamic &&
                !has_several_columns(k);
    if (!fits || !row_inputs(k) || !s->target->bulk_copy) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) &&
            !is_whole_blocks(column_count(s, k), k->loads[i].dtype))
            return false;
    return true;
}

static bool may_take_bulk(const Scheduler *s, const Kernel *k)
{
    const Schedule *f = &s->forced;
    bool other = (f->any && f->family != FAMILY_ROW) || f->rows > 1 || f->stages || f->reads > 1;
    return !other && can_take_bulk(s, k);
}

/* Rows of f32 whose slices of 4096 columns leave threads without a vector (layer norm of 22528
 * columns 4 %, of 45056, 51200, 53248, 57344 and 61440 10, 15, 12, 3 and 8 % faster, but eight rows
 * of 51200 slower by half; measured on an H100). */
static bool wants_bulk_of_f32(int64_t columns)
{
    enum { SHORT = 21504, OF_TWO = 24576, MIDDLE = 40960, LONG = 65536 };
    bool some = (columns > SHORT && columns < OF_TWO) || (columns > MIDDLE && columns < LONG);
    return some && !fills_slices_of_f32(columns);
}

/* Whether a row's mean and squares are found, of which registers have no good share for a thread:
 * bf16 for 384 threads, of which an SM has registers for two CTAs, where no pair of CTAs fills its
 * warps (layer norm of 12000 columns 5 % faster); and of pairs with so much of a row that an SM's
 * shared memory has room for four CTAs (51200 to 55296 columns 1 to 5 % faster, 56320 3 % slower;
 * all measured on an H100). */
static bool wants_bulk(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 11264, LONG = 12288, PAIR = 2, LEAST_OF_PAIR = 50176, MOST_OF_PAIR = 55296 };
    const Schedule *f = &s->forced;
    int64_t columns = column_count(s, k);
    if (f->threads || f->cluster || f->ctas || !has_moments(s, k) || column_vectors(k) > 2)
        return false;
    if (is_f32_row(k))
        return row_inputs(k) == 1 && !has_wide_columns(k) && narrowest_stored(k) == 4 &&
               wants_bulk_of_f32(columns);
    bool plain = row_inputs(k) == 1 && row_bytes(k) == 2 && !reads_f16(k) && !has_wide_columns(k) &&
                 narrowest_stored(k) == 2;
    bool of_pair =
        columns > LEAST_OF_PAIR && columns <= MOST_OF_PAIR && s->target->max_cluster >= PAIR;
    bool alone = columns > SHORT && columns <= LONG && !fills_warps(columns, PAIR);
    return plain && k->vec == MAX_VECTOR && (of_pair || alone);
}

bool takes_bulk(const Scheduler *s, const Kernel *k)
{
    return may_take_bulk(s, k) && (s->forced.bulk || wants_bulk(s, k));
}

int bulk_slice(const Kernel *k)
{
    return SLICE_BYTES / row_bytes(k);
}

/* With 256 threads an SM has too few to compute one row while others are copied, with more it holds
 * fewer CTAs. */
int bulk_threads(const Kernel *k, int64_t vectors)
{
    enum { THREADS = 384, THREADS_F32 = 512 };
    int64_t warps = ceil_div(vectors, WARP),
            most = (has_f32_rows(k) ? THREADS_F32 : THREADS) / WARP;
    return (int)(warps < most ? warps : most) * WARP;
}

/* As many as shared memory has room for, and registers beside 40 a thread. */
int bulk_ctas(const Scheduler *s, const Kernel *k)
{
    enum { REGISTERS = 40, RESERVED = 1 << 10 };
    int64_t memory = s->target->smem_per_sm / (k->smem_bytes + static_bytes(s, k) + RESERVED);
    int64_t registers = s->target->registers_per_sm / (REGISTERS * kernel_threads(k));
    int64_t ctas = memory < registers ? memory : registers;
    return (int)(ctas < 1 ? 1 : ctas);
}

bool has_fewer_ctas(const Kernel *k)
{
    return k->bulk && k->most_ctas;
}

bool fit_bulk(const Scheduler *s, Kernel *k)
{
    k->bulk = takes_bulk(s, k) && k->teams == 1 && k->threads_per_row > WARP && k->column_ctas == 1;
    return k->bulk && hold_bulk(s, k);
}

bool hold_bulk(const Scheduler *s, Kernel *k)
{
    k->bulk = true;
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        load->staged = is_row_vector(k, load);
        load->resident = load->hoisted = load->rewidened = load->widened_once = load->converted =
            false;
    }
    k->stages = 0;
    k->lined_up = k->refill = k->meets_in_ring = k->meets_beside = k->by_blocks = false;
    k->registers = estimate(s, k);
    k->smem_bytes = staged_bytes(s, k, false);
    return k->bulk = k->smem_bytes + static_bytes(s, k) <= s->target->smem_per_cta;
}
