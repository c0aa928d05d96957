/* schedule/even_threads.c: evens out how a row's vectors are shared among threads, once it is known
 * about how many each gets: whole warps, all of them alike. */
#include "schedule/internal.h"

/* Warps that do not fill an SM's four parts alike cost a kernel with one accumulator a
 * column 10 % (one vector a thread instead); with two, fewer registers cost more
 * (measured). */
static void even_out_parts(const Scheduler *s, Kernel *k, int64_t vectors)
{
    enum { EVEN = 128, LEAST = 256, MOST = 1024 };
    bool uneven = k->threads_per_row > LEAST && k->threads_per_row % EVEN;
    if (k->cluster > 1 || !uneven || vectors % EVEN || vectors > MOST) return;
    double registers = accumulator_registers(s, k);
    if (registers <= 0 || registers > 1) return;
    k->threads_per_row = (int)vectors;
    k->tiles = 1;
}

/* Four full tiles of a mean and its squares ptxas computes all at once, which takes so many
 * registers that few CTAs fit an SM; with a warp more the last tile is checked, and it does not
 * (layer norm of 7168 and 9216 columns 22 and 21 % faster, measured on an H100; f16 of 9216 7 %, of
 * other lengths it has the registers anyway; of several inputs with two column vectors it is told
 * how many, and 1 % faster so: schedule/occupancy.c; with weights of f32 of 8192 5 %, stored as
 * bytes of 10240 columns 18 % faster without it). */
static void open_last_tile(const Scheduler *s, Kernel *k, int64_t vectors)
{
    enum {
        SHORT = 4096,
        LONG = 12288,
        SHORT_F16 = 8192,
        LONG_F16 = 10240,
        LEAST_BYTES = 9216,
        TILES = 4
    };
    int64_t columns = column_count(s, k);
    bool full = k->tiles == TILES && vectors == (int64_t)TILES * k->threads_per_row,
         f16 = reads_f16(k);
    bool bytes = narrowest_stored(k) < 2 && columns > LEAST_BYTES;
    bool middle = columns > (f16 ? SHORT_F16 : SHORT) && columns < (f16 ? LONG_F16 : LONG);
    if (full && has_moments(s, k) && middle && k->cluster == 1 && k->teams == 1 &&
        k->vec == MAX_VECTOR && !k->accumulator_count && !has_wide_columns(k) && !bytes &&
        (row_inputs(k) == 1 || column_vectors(k) > 2))
        k->threads_per_row += WARP;
}

/* Rows of two inputs of 2 bytes in whole vectors and, since others are better copied by blocks,
 * whole lines of memory. */
static bool has_plain_pairs(const Scheduler *s, const Kernel *k)
{
    enum { LINE = 64 };
    bool plain = row_inputs(k) == 2 && row_bytes(k) <= 4 && k->vec == MAX_VECTOR &&
                 k->inner_count && !k->dynamic;
    return plain && column_count(s, k) % LINE == 0;
}

static bool has_two_sums(const Scheduler *s, const Kernel *k)
{
    double registers = accumulator_registers(s, k);
    return registers >= 2 && registers < 3 && has_plain_pairs(s, k) && k->cluster == 1;
}

/* Whether two vectors a thread leave no warp half empty. */
static bool fills_two_vectors(const Scheduler *s, const Kernel *k)
{
    enum { FULL = 2 * MAX_VECTOR * WARP };
    return column_count(s, k) % FULL == 0;
}

enum { LONGEST_BY_TEAMS = 5120 };

/* Two sums over rows of a little more than 4096 columns by two teams in a CTA, where three steps of
 * theirs are in the ring (layer norm's backward of 4608 and 5120 columns 4 and 2 % faster than by a
 * copy warp; measured on an H100). */
bool pairs_teams(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 4096, TEAMS = 2, STAGES = 3 };
    int64_t columns = column_count(s, k), stage = TEAMS * row_bytes(k) * columns;
    bool some = columns > SHORT && columns <= LONGEST_BY_TEAMS && fills_two_vectors(s, k);
    return some && has_two_sums(s, k) && STAGES * stage <= s->target->smem_per_cta;
}

/* Rows that are just not long enough for a pair of CTAs. (f16 spills then.) */
static bool nearly_fills_pairs(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 10240, LONG = 12288 };
    int64_t columns = column_count(s, k);
    return columns > SHORT && columns < LONG && !reads_f16(k);
}

/* Two sums over rows by a copy warp and four stages, where two vectors a thread leave no warp half
 * empty, and where 256 threads just have the registers: layer norm's backward of 5632 to 6656
 * columns 1 to 3 %, of 10496 to 11264 5 to 9 % faster (measured on an H100). */
bool copies_two_sums(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 7168 };
    int64_t columns = column_count(s, k);
    bool middle = columns > LONGEST_BY_TEAMS && columns < LONG && fills_two_vectors(s, k);
    return has_two_sums(s, k) && (middle || nearly_fills_pairs(s, k));
}

/* How many threads a row of two inputs of 2 bytes has where that is better than two vectors a
 * thread, 0: nowhere else. With one sum over rows: 4608 to 6144 columns with a copy warp 1 to 6 %,
 * 8192 and 9216 without one 1 % faster; with two: 6144 columns by 256 threads, whose three vectors
 * are full, 2 %, 10496 to 11776 columns 5 % (measured on an H100). */
int summed_threads(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 4096,
        COPIED = 6144,
        MIDDLE = 8192,
        SOME = 9216,
        FULL_TWO = 6144,
        FEW = 256,
        WITH_COPIES = 320
    };
    int64_t columns = column_count(s, k);
    double registers = accumulator_registers(s, k);
    if (!has_plain_pairs(s, k) || registers < 1 || registers > 2) return 0;
    bool full_two = columns == FULL_TWO && s->target->bulk_copy;
    if (k->cluster > 1) return 0;
    if (registers > 1) return full_two || nearly_fills_pairs(s, k) ? FEW : 0;
    if (columns > SHORT && columns <= COPIED) return s->target->bulk_copy ? WITH_COPIES : 0;
    return columns >= MIDDLE && columns <= SOME ? FEW : 0;
}

/* Of a slice of bytes, where slices of 57344 to 262144 columns are: as many as leave five to eight
 * tiles full (rmsnorm with its largest element of 73728, 90112, 147456, 180224 columns 13, 3, 12, 4
 * % faster than by 512), but 640 of the longest (114688, 131072, 229376, 262144 columns 4, 2, 1, 3
 * % faster than by 512; f16 spills). 0: as many as others. */
static int threads_of_byte_slices(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORTEST = 57344,
        LONGEST = 262144,
        LONG = 28672,
        LONG_END = 32768,
        MANY = 640,
        MOST = 512,
        FEWEST_TILES = 5,
        MOST_TILES = 8
    };
    int64_t columns = column_count(s, k), slice = ceil_div(columns, k->cluster),
            vectors = slice / k->vec;
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    if (other || k->vec < MAX_VECTOR || columns < SHORTEST || columns > LONGEST) return 0;
    if (slice >= LONG && slice <= LONG_END && !reads_f16(k)) return MANY;
    for (int tiles = FEWEST_TILES; tiles <= MOST_TILES; tiles++)
        if (vectors % (tiles * WARP) == 0 && vectors / tiles <= MOST) return (int)vectors / tiles;
    return 0;
}

/* Long rows of 16 bits that are stored as bytes pass through rings of about 500 threads rather than
 * of up to 1024 (rmsnorm with its largest element of bf16 of 12800 to 18432 columns 1 to 7 %, of
 * f16 of 13312 to 20480 6 to 17 % faster, of bf16 of 19456 and more 1 to 2 % slower; all measured
 * on an H100). 0: as many as others. */
int threads_of_bytes(const Scheduler *s, const Kernel *k)
{
    enum { BF16 = 480, LONGEST_BF16 = 18432, F16 = 512, LONGEST_F16 = 22528 };
    int64_t columns = column_count(s, k);
    int threads = reads_f16(k) ? F16 : BF16, longest = reads_f16(k) ? LONGEST_F16 : LONGEST_BF16;
    if (!holds_bytes_long(s, k) || row_bytes(k) != 2) return 0;
    if (k->cluster > 1) return threads_of_byte_slices(s, k);
    return k->threads_per_row > threads && columns <= longest ? threads : 0;
}

/* How many tiles leave no lane without a vector, where there is such a number: layer norm of
 * 100352 columns is 8 % faster than with 6 % of idle lanes. */
static int full_tiles(const Kernel *k, int64_t vectors)
{
    enum { MOST = 8, REGISTER_BYTES = 4 };
    int tile = row_bytes(k) * k->vec;
    int most = tile ? REFILL_REGISTERS * REGISTER_BYTES / tile : MOST;
    most = most < MOST ? most : MOST;
    for (int tiles = k->tiles; tiles <= most && vectors / tiles > WARP; tiles++)
        if (vectors % (tiles * WARP) == 0) return tiles;
    return k->tiles;
}

/* In a cluster all threads get as many vectors, as far as that goes. Where rows pass through a ring
 * many warps are alike in an SM's four parts: softmax of 100352 columns 5 %, of 128256 4 % faster.
 */
static void even_out_slice(const Scheduler *s, Kernel *k, int64_t vectors)
{
    enum { EVEN = 128 };
    if (k->cluster == 1 || k->teams > 1) return;
    if (may_refill(s, k)) k->tiles = full_tiles(k, vectors);
    bool many = is_light(s, k) && k->tiles > 2 && !may_refill(s, k) && !single_slice(s, k);
    int unit = many ? EVEN : WARP;
    k->threads_per_row = (int)ceil_div(ceil_div(vectors, k->tiles), unit) * unit;
    k->tiles = (int)ceil_div(vectors, k->threads_per_row);
}

void even_out(const Scheduler *s, Kernel *k, int64_t vectors)
{
    even_out_slice(s, k, vectors);
    even_out_parts(s, k, vectors);
    open_last_tile(s, k, vectors);
}

/* As many vectors for every thread, and whole warps; two at a time, for so the first phase's loop
 * is unrolled. More than four vectors each are better read by all the threads there are (cross
 * entropy of 50304 columns 34 %). */
void even_out_streams(Kernel *k, int64_t vectors)
{
    enum { FEW = 4 };
    k->teams = 1;
    if (k->tiles > FEW) return;
    k->tiles += k->tiles > 1 && k->tiles % 2;
    k->threads_per_row = (int)ceil_div(ceil_div(vectors, k->tiles), WARP) * WARP;
}

/* Where a row's threads are a power of two and all have as many elements, a mean and its squares
 * meet without counts and divisions (layer norm of a few rows 1 to 3 %, of 65536 columns 1 %
 * faster; in rings up to 2 % slower; measured on an H100). */
bool has_even_moments(const Scheduler *s, const Kernel *k)
{
    bool full = !k->ragged && !k->streamed && !k->dynamic &&
                !(k->threads_per_row & (k->threads_per_row - 1));
    return full && has_moments(s, k) && !k->whole_moments && !k->stages && !k->lag && !k->grouped;
}
