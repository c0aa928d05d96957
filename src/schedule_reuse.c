/* schedule_reuse.c: rows that hand their stage of the ring on. Threads that have copied a row for themselves read all of it
 * into registers when its turn comes, and the next row to be copied takes its stage. A single stage then has a row on its way
 * while another is computed, so that an SM has room for two or three CTAs beside their column vectors, or for longer slices. */
#include "scheduling.h"

/* Whether all of a row is read when its turn comes. */
bool is_read_at_once(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].first_phase > 0) return false;
    return true;
}

bool may_reuse(const Kernel *k) { return !k->grouped && may_fetch_rows(k) && is_read_at_once(k); }

/* Two inputs, from which a third row as wide is computed, and sums over rows in f32: a norm's backward pass. */
static bool is_backward_norm(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2 };
    for (int i = 0; i < k->accumulator_count; i++)
        if (node(s->g, k->accumulators[i].node)->type != TYPE_F32) return false;
    return has_plain_rows(s, k) && row_inputs(k) == PAIR && k->cluster == 1 && may_reuse(k) &&
           PAIR * narrowest_stored(k) == row_bytes(k);
}

/* Rmsnorm's backward pass of 16 bits, with two stages: 1280 to 4096 columns 0 to 1.5 % faster than by a ring of three, 4096
 * rows 1 to 4 % (on an H200 1 to 3 %); of 1024 2 % slower. Layer norm's of f32: 1024 to 4096 columns 0 to 4 %, 2048 rows 1 to 5 %
 * (on an H200 of 3072 7 % slower, so not there); rmsnorm's of f32 is up to 4 % slower. (Measured on an H100.) */
bool wants_reuse(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 1024, SHORT_OF_ONE = 1280, LONG = 4096, TWO_OF_16 = 4, TWO_OF_32 = 8 };
    if (s->forced.any) return s->forced.reuse == 1;
    int64_t columns = column_count(s, k);
    if (!was_measured_on(s->target) || columns < SHORT || columns > LONG || !is_backward_norm(s, k)) return false;
    double sums = accumulator_registers(s, k);
    bool one = sums == 1 && row_bytes(k) == TWO_OF_16 && columns >= SHORT_OF_ONE;
    return one || (sums == 2 && row_bytes(k) == TWO_OF_32 && !s->target->swift);
}
