/* schedule_reuse.c: rows that hand their stage of the ring on. Threads that have copied a row for themselves read all of it into registers
 * when its turn comes, and the stage takes the row whose turn it is next. A single stage then has a row on its way while
 * another is computed, so that an SM has room for two or three CTAs beside their column vectors, or for longer slices. */
#include "scheduling.h"

/* Whether all of a row is read when its turn comes. */
bool is_read_at_once(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].first_phase > 0) return false;
    return true;
}

bool may_reuse(const Kernel *k) { return !k->grouped && may_fetch_rows(k) && is_read_at_once(k); }

/* Backward norms with the stages that such a ring gets: one sum of two inputs of 2 bytes (rmsnorm's of 1280 to 4096 columns
 * 0 to 1.5 % faster than by a ring of three, 4096 rows 1 to 4 %; of 1024 2 % slower), two sums of f32 (layer norm's of 1024 to
 * 4096 columns 0 to 4 %, 2048 rows 1 to 5 %; on an H200 of 3072 7 % slower; rmsnorm's up to 4 % slower). Two sums of 2 bytes are 2 % faster to 2 % slower,
 * but 512 rows up to 14 % slower. (Measured on an H100.) */
bool wants_reuse(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 1024, LONG = 4096, PAIR = 2, F32 = 4 };
    int64_t columns = column_count(s, k);
    if (s->forced.any) return s->forced.reuse == 1;
    bool pair = row_inputs(k) == PAIR && k->vec == full_vector(k) && k->cluster == 1 && columns >= SHORT && columns <= LONG;
    double sums = accumulator_registers(s, k);
    if (!pair || k->kept || !may_reuse(k)) return false;
    return row_bytes(k) <= PAIR * 2 ? sums == 1 && columns > SHORT : row_bytes(k) == PAIR * F32 && sums == 2 && !s->target->swift;
}
