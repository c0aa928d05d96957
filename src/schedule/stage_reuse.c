/* schedule/stage_reuse.c: rows that hand their stage of the ring on. Threads that have copied a row
 * for themselves read all of it into registers when its turn comes, and the next row to be copied
 * takes its stage. A single stage then has a row on its way while another is computed, so that an
 * SM has room for two or three CTAs beside their column vectors, or for longer slices. */
#include "schedule/internal.h"

/* Whether all of a row is read when its turn comes. */
bool is_read_at_once(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && k->loads[i].first_phase > 0) return false;
    return true;
}

bool may_reuse(const Kernel *k)
{
    return !k->grouped && may_fetch_rows(k) && is_read_at_once(k);
}

/* Two inputs, from which a third row as wide is computed, and sums over rows in f32: a norm's
 * backward pass. */
static bool is_backward_norm(const Scheduler *s, const Kernel *k)
{
    enum { PAIR = 2 };
    for (int i = 0; i < k->accumulator_count; i++)
        if (node(s->g, k->accumulators[i].node)->type != TYPE_F32) return false;
    return has_plain_rows(s, k) && row_inputs(k) == PAIR && k->cluster == 1 && may_reuse(k) &&
           PAIR * narrowest_stored(k) == row_bytes(k);
}

/* With two stages, or three of many teams (stages_of_reuse). Of 16 bits layer norm's backward pass
 * of up to 3840 columns is 0 to 9 % faster than by a longer ring (of 2560 to 3840 512 rows 2 %
 * slower), rmsnorm's of up to 512 0 to 6 %, of 1280 to 4096 0 to 1.5 %, 4096 rows 1 to 4 % (of 640
 * to 1024 up to 4 % slower, in f16 of 960 and 1024 0 to 6 % faster); on an H200 up to 3072 columns
 * 0 to 10 %. Of f32 layer norm's of up to 256 and of 576 to 4096, rmsnorm's of up to 1920 0 to 7 %
 * (others up to 4 % slower); on an H200 0 to 10 %, of 576 columns 3 % slower, of 3072 5 %.
 * (Measured on an H100.) */
bool wants_reuse(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 32, MOST = 4096, TWO_OF_16 = 4, TWO_OF_32 = 8 };
    enum {
        SHORT_ONE_OF_16 = 512,
        LONG_ONE_OF_16 = 1280,
        LONG_ONE_OF_F16 = 960,
        TWO_SUMS_OF_16 = 3840
    };
    enum { FAST_TWO_OF_32 = 2560, ONE_OF_32 = 1920, SHORT_TWO_OF_32 = 256, LONG_TWO_OF_32 = 576 };
    if (s->forced.any) return s->forced.reuse == 1;
    int64_t columns = column_count(s, k);
    if (!s->target->timed || columns < LEAST || columns > MOST || !is_backward_norm(s, k))
        return false;
    double sums = accumulator_registers(s, k);
    bool one = sums == 1, two = sums == 2;
    int64_t long_one = reads_f16(k) && !has_fast_memory(s) ? LONG_ONE_OF_F16 : LONG_ONE_OF_16;
    if (row_bytes(k) == TWO_OF_16)
        return one ? columns <= SHORT_ONE_OF_16 || columns >= long_one
                   : two && columns <= TWO_SUMS_OF_16;
    if (row_bytes(k) != TWO_OF_32 || (has_fast_memory(s) && columns > FAST_TWO_OF_32)) return false;
    return one ? columns <= ONE_OF_32
               : two && (columns <= SHORT_TWO_OF_32 || columns >= LONG_TWO_OF_32);
}

/* Eight teams of two warps or five of three: layer norm's backward pass of 513 to 640 and 1536
 * columns of 2 bytes, of 576 to 768 of 4, is by three 0 to 1 % faster than by two. */
int stages_of_reuse(const Kernel *k)
{
    enum { FEW = 2, MORE = 3, MANY_TEAMS = 5 };
    return k->teams >= MANY_TEAMS && k->threads_per_row > WARP ? MORE : FEW;
}
