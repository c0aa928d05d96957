/* schedule/occupancy.c: how many CTAs of a kernel an SM is to hold, where ptxas is told: it trades
 * registers for them, and by itself does not always choose well. */
#include "schedule/internal.h"

static bool holds_columns(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].resident && k->loads[i].hoisted) return true;
    return false;
}

/* The threads that an SM should have of a kernel with two column vectors in its registers: as many
 * as leave a thread registers enough, of which short vectors take more, and so do two or four warps
 * with full tiles (layer norm of 1024 and 2048 columns: 16384 rows 0.2 to 1.2 %, 1 to 512 0 to 2 %
 * faster, 4096 0.6 % slower; measured on an H100). */
static int wanted_threads(const Kernel *k)
{
    enum { WANTED = 1280, MIDDLE = 1152, NARROW = 1024, TWO_WARPS = 64, FOUR_WARPS = 128 };
    int threads = kernel_threads(k);
    if (holds_columns(k) && k->full && k->vec == MAX_VECTOR &&
        (threads == TWO_WARPS || threads == FOUR_WARPS))
        return MIDDLE;
    if (!holds_columns(k) || k->vec == MAX_VECTOR || row_bytes(k) > 2) return WANTED;
    return k->vec == MAX_VECTOR / 2 ? MIDDLE : NARROW;
}

/* Whether ptxas may take so many registers that an SM holds a CTA or two only: of a mean and its
 * squares, where the row stays in registers, with many threads (layer norm of 11008 columns 86 %,
 * of 12000 50 % faster when told; measured on an H100), or with 128 where the last tile is checked
 * (3584 columns: 96 registers, with which it is 25 % slower). */
static bool may_take_sm(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 128, MOST = 512, ELEMENTS = 32 };
    int threads = kernel_threads(k);
    bool whole = k->vec == MAX_VECTOR, few = whole && threads == LEAST && k->ragged;
    bool many = threads > LEAST && threads <= MOST;
    return has_moments(s, k) && k->cluster == 1 && k->teams == 1 && (few || many) &&
           k->vec * k->tiles <= ELEMENTS && row_bytes(k) <= 2;
}

/* The same in CTAs that have a part of one row each, which an SM then reads up to twice as much of
 * at a time (layer norm of 7168 and 13312 columns by pairs 31 and 41 % faster when told). */
static bool may_take_sm_for_part(const Scheduler *s, const Kernel *k)
{
    enum { ELEMENTS = 32 };
    if (!fills_warps(column_count(s, k), k->cluster)) return false;
    return has_moments(s, k) && k->vec == MAX_VECTOR && k->vec * k->tiles <= ELEMENTS &&
           row_bytes(k) <= 2;
}

/* Rows of several inputs in registers, and what a phase keeps beside them: left alone, ptxas takes
 * 110 to 160 registers (layer norm of a sum of two inputs and a bias of 5120 columns 16 % faster
 * when told; measured on an H100). */
static bool holds_several(const Scheduler *s, const Kernel *k)
{
    return has_moments(s, k) && row_inputs(k) > 1 && k->vec == MAX_VECTOR && k->teams == 1 &&
           !k->accumulator_count;
}

/* About so many threads of it an SM has registers for, and a quarter of a CTA's: fitted on layer
 * norms of sums of two and three inputs, of which one in six spills so, and plan creation asks for
 * less. */
static int threads_without_spills(const Scheduler *s, const Kernel *k)
{
    enum { BASE = 40, PERCENT = 105 };
    int64_t held = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        bool first = load->first_phase == 0 && load->access == ACCESS_VECTOR;
        bool wide = first && is_column_vector(k, load) && dtype_info[load->dtype].bytes > 2;
        if (wide || (load->resident && (load->hoisted || first)))
            held += dtype_info[load->dtype].bytes;
    }
    int64_t registers = BASE + ceil_div(held * k->vec * k->tiles, 4) * PERCENT / 100;
    return (int)(s->target->registers_per_sm / registers) + kernel_threads(k) / 4;
}

/* More than 32 registers leave an SM a single CTA of so many threads, and nothing to do while it
 * waits (rmsnorm of 12288 columns with its largest element, without being told twice as slow). */
static bool may_be_alone(const Scheduler *s, const Kernel *k)
{
    enum { HALF = 512 };
    int threads = kernel_threads(k);
    bool pair = threads > HALF && 2 * threads <= s->target->threads_per_sm;
    return pair && k->cluster == 1 && (row_bytes(k) <= 2 || exchanges_often(k)) &&
           !k->accumulator_count;
}

/* Rows of which nothing else is read, but that compare the places of their elements: ptxas keeps
 * what it finds of a place, though all of it fits 32 registers where the last tile is not checked
 * (causal softmax of 2048 and 8192 columns 9 and 21 % faster when told). */
static bool mentions_places(const Scheduler *s, const Kernel *k)
{
    return is_light(s, k) && k->threads_per_row > WARP && !k->ragged && compares_places(s, k);
}

/* Of CTAs that have a part of one row each. Beside two column vectors 768 threads for CTAs of 128
 * (layer norm of 8192 columns 0.6 %, of a few rows 2 to 3 % faster than by 1024). With weights of
 * f32 three of 256 threads rather than two (layer norm of a sum of 16384 columns 5 % faster); for
 * several exchanges with 40 columns a thread, of which ptxas takes 114 registers, and for several
 * numbers in one with up to 64 (cross entropy of 128256 columns 2 % faster). Of one input and
 * nothing else with 40 columns a thread 48 registers are enough (softmax and cross entropy of
 * 151936 columns 2 and 5 % faster). */
static int bound_single(const Scheduler *s, const Kernel *k)
{
    enum {
        FULL = 1024,
        FOUR_WARPS = 128,
        OF_FOUR_WARPS = 768,
        OF_TWO = 640,
        OF_WIDE = 768,
        LIGHT = 1344
    };
    enum { SOME = 32, MORE = 40, MOST = 64, PAIR = 2 };
    int elements = k->vec * k->tiles;
    bool four_warps = kernel_threads(k) == FOUR_WARPS && k->full && column_vectors(k) > 1;
    if (may_take_sm_for_part(s, k)) return four_warps ? OF_FOUR_WARPS : FULL;
    if (holds_several(s, k)) return has_wide_columns(k) ? OF_WIDE : OF_TWO;
    if (is_light(s, k) && elements > SOME && elements <= MORE) return LIGHT;
    bool often = exchanges_often(k) && row_bytes(k) <= 2 && elements > SOME &&
                 elements <= (k->phases == PAIR ? MOST : MORE);
    return often || (mentions_places(s, k) && elements <= SOME) ? FULL : 0;
}

/* Rows of which a warp or less has three or four vectors a lane, and up to two column vectors:
 * ptxas keeps more of them than it must (layer norm of 72 to 704 columns 0 to 8 %, of a few rows 4
 * to 9 % faster when told; f16 0 to 4 % slower, measured on an H100). */
static bool has_several_vectors(const Scheduler *s, const Kernel *k)
{
    enum { TWO = 2, FOUR = 4 };
    bool some =
        k->vec == MAX_VECTOR && k->tiles > TWO && k->tiles <= FOUR && k->threads_per_row <= WARP;
    return some && has_moments(s, k) && row_inputs(k) == 1 && row_bytes(k) <= 2 &&
           column_vectors(k) <= TWO && !reads_f16(k);
}

/* A mean and its squares. F16 whose column vectors come early does with 56 registers: CTAs of many
 * threads are told so (layer norm of 8704 columns: 512 rows 16 % faster by four CTAs than by three,
 * of 12000 4096 rows and more 4 % by three than by two; measured on an H100). */
static int bound_moments(const Kernel *k)
{
    enum { SEVERAL = 1088, OF_F16 = 1152, MANY = 256 };
    return reads_f16(k) && kernel_threads(k) > MANY && reads_early(k) ? OF_F16 : SEVERAL;
}

/* How many threads ptxas is told that an SM is to hold, 0: nothing. (Others it must not be told: it
 * would take all registers that it may.) Of a ring, and of rows that are read again, it is told
 * elsewhere. With more than 16 elements a thread of several inputs or exchanges 1024, by the
 * nearest number of CTAs (cross entropy and its gradient of 12288 columns by three of 384 threads 6
 * % faster than by two; with up to 48 where a later phase reads column vectors: rmsnorm to bytes of
 * 8704 to 12000 columns in f16 3 to 12 % faster than left alone). More than two column vectors of
 * f32, or two vectors of f16 a lane of a short row, want 64 registers. Where that spills, plan
 * creation asks for fewer. */
static int bound_threads(const Scheduler *s, const Kernel *k)
{
    enum {
        FULL = 1024,
        OF_WARPS = 896,
        FEW = 16,
        SOME = 32,
        OF_LATE = 48,
        LIGHT = 60,
        PACKED = 80,
        MANY_BYTES = 8
    };
    int threads = kernel_threads(k), most = holds_columns(k) ? PACKED : LIGHT,
        wanted = wanted_threads(k);
    int elements = k->vec * k->tiles;
    int most_threads = elements <= FEW ? wanted : FULL + threads / 2,
        room = threads_without_spills(s, k);
    int least = 2 * threads <= FULL ? 2 * threads
                                    : threads; /* one would have nothing to do while it waits */
    if (has_several_vectors(s, k)) return OF_WARPS;
    if (holds_several(s, k))
        return most_threads < room ? most_threads : room > least ? room : least;
    bool hungry = column_vectors(k) > 1 && k->registers <= most;
    bool many = column_bytes(k, 0) > MANY_BYTES ||
                (reads_f16(k) && elements == FEW && k->threads_per_row < WARP);
    if (hungry && elements <= FEW && threads > WARP && threads <= wanted)
        return many && wanted > FULL ? FULL : wanted;
    if (elements <= FEW && mentions_places(s, k)) return s->target->threads_per_sm;
    int several = reads_f16(k) && reads_early(k) ? OF_LATE : SOME;
    bool often = exchanges_often(k) && k->vec == MAX_VECTOR && row_bytes(k) <= 2 &&
                 elements > FEW && elements <= several;
    return often                ? FULL + threads / 2
           : may_take_sm(s, k)  ? bound_moments(k)
           : may_be_alone(s, k) ? 2 * threads
                                : 0;
}

/* CTAs that sum rows of groups without a ring: as many as registers hold. Left alone, ptxas spills
 * in some of them to hold one more. (Of the rows that are left to them, two sums of 12288 columns
 * of 256 groups take 23 % longer so, others 0 to 5 %.) */
static int bound_parts(const Scheduler *s, const Kernel *k)
{
    enum { BASE = 26, STEP = 8, REGISTER_BYTES = 4 };
    int elements = k->vec * k->tiles;
    int64_t needed = BASE + (int64_t)(accumulator_registers(s, k) * elements) +
                     ceil_div(row_bytes(k) * elements, REGISTER_BYTES);
    int64_t ctas =
        s->target->registers_per_sm / (ceil_div(needed, STEP) * STEP * kernel_threads(k));
    return ctas > 1 ? (int)ctas : 1;
}

/* How many CTAs an SM should hold, where ptxas is to be told. With a ring it is what was
 * planned: left alone, ptxas may spill for one more or take the registers of one. A row
 * kernel hides latency by threads, and where two column vectors are read, ptxas leaves
 * too few; packed in registers they count for less. */
static int rules_bound(const Scheduler *s, const Kernel *k)
{
    enum { MOST_CTAS = 16 };
    int room = s->target->threads_per_sm / kernel_threads(k);
    if (k->bulk) return bulk_ctas(s, k);
    if (k->by_blocks) return block_ctas(s, k);
    if (k->stages || k->refill || k->grouped) return k->ctas_per_sm;
    if (reads_again(s, k)) return room < MOST_CTAS ? room : MOST_CTAS;
    if (k->kept && k->columnwise) return bound_parts(s, k);
    if (!k->inner_count || k->streamed || k->dynamic) return 0;
    return (k->single ? bound_single(s, k) : bound_threads(s, k)) / kernel_threads(k);
}

void set_wanted_ctas(const Scheduler *s, Kernel *k)
{
    int asked = k->stages || k->refill || k->grouped ? 0 : s->forced.per_sm;
    int most = s->target->most_ctas_per_sm, rules = rules_bound(s, k);
    bool fits = asked <= most &&
                asked * (kernel_threads(k) + helper_threads(k)) <= s->target->threads_per_sm;
    k->wanted_ctas = asked && fits ? asked : rules < most ? rules : most;
    if (asked && fits && is_persistent(k)) k->ctas_per_sm = asked;
    /* a difference for each vector is a register more, which spills where an SM is to be full of
     * threads */
    k->counts_places = k->wanted_ctas * kernel_threads(k) == s->target->threads_per_sm;
}
