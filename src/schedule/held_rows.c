/* schedule/held_rows.c: which rows one CTA keeps in its registers between the phases, in those of
 * how many threads, and which are better read again. */
#include "schedule/internal.h"

/* Whether rows are whole vectors of less than 16 bytes, not single elements. */
static bool is_narrow(const Kernel *k)
{
    return may_fetch_rows(k) && row_inputs(k) && k->vec * row_bytes(k) / row_inputs(k) < 16;
}

/* Whether a row that three phases read is stored as bytes: better by few CTAs with many columns
 * each than by clusters with a row each. By one CTA rmsnorm with its largest element of 10240,
 * 12288 and 20480 columns is 10 to 15 %, of 32768 0 to 9 % faster; by two to eight with up to 32768
 * columns, in registers that the next row refills or, without weights and in f16, by a ring, of
 * 49152 to 262144 columns 11 to 23 % (measured on an H100). */
bool stores_bytes(const Scheduler *s, const Kernel *k)
{
    enum { TWO = 2, LONGEST = 262144 };
    bool narrow =
        narrowest_stored(k) < 2 && may_fetch_rows(k) && row_bytes(k) <= 2 && column_vectors(k) <= 1;
    return narrow && exchanges_often(k) && k->phases > TWO && column_count(s, k) <= LONGEST;
}

bool holds_bytes_long(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 12288 };
    return stores_bytes(s, k) && column_count(s, k) > LONG;
}

/* Whether a long row of bytes is better read again, by as many threads as an SM has, where its
 * caches hold two (norm of 8-bit rows of 32768 columns 5 % faster, measured on an H100); shorter
 * ones are better held in registers. */
bool rereads_bytes(const Scheduler *s, const Kernel *k)
{
    enum { LONG = 16384, ROWS = 2, PHASES = 2 };
    int64_t columns = column_count(s, k);
    bool bytes =
        row_bytes(k) == 1 && may_fetch_rows(k) && k->phases == PHASES && !has_moments(s, k);
    return bytes && columns > LONG && is_cached(s, k, ROWS, columns);
}

/* Whether a long row of f32 that three phases read is stored as bytes: by four or eight CTAs with
 * registers that the next row refills rather than by clusters with a row each (rmsnorm with its
 * largest element of 40960 to 114688 columns 12 to 29 % faster), but for powers of two, and for
 * rows that are no whole vectors (of 40001 to 100001 columns clusters with a row each are 29 to 36
 * % faster; measured on an H100). */
bool narrows_f32_long(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 36864, LONG = 131072, TWO = 2 };
    int64_t columns = column_count(s, k);
    bool some =
        columns > SHORT && columns <= LONG && columns & (columns - 1) && k->vec == full_vector(k);
    return some && is_f32_row(k) && narrowest_stored(k) < 2 && exchanges_often(k) &&
           k->phases > TWO;
}

/* A row kernel in which a CTA has a row by itself. */
static bool is_row_alone(const Scheduler *s, const Kernel *k)
{
    bool other = s->forced.any && s->forced.family != FAMILY_ROW;
    return !k->accumulator_count && k->inner_count && k->rows && !k->kept && !k->dynamic &&
           k->column_ctas == 1 && k->cluster == 1 && s->forced.cluster <= 1 && !other &&
           column_count(s, k);
}

/* Registers for a vector of each of a row's inputs: whole ones. */
static int64_t vector_registers(const Kernel *k)
{
    int64_t registers = 0;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]))
            registers += ceil_div(k->vec * dtype_info[k->loads[i].dtype].bytes, 4);
    return registers;
}

/* Whether elements share registers, which takes more to compute with. */
static bool is_packed(const Kernel *k)
{
    return vector_registers(k) < k->vec * row_inputs(k);
}

/* Whether every thread has a vector of the row, and none so many elements that it spills. */
static bool is_spread(const Scheduler *s, const Kernel *k, int threads)
{
    enum { MOST_ELEMENTS = 96 };
    int64_t vectors = column_count(s, k) / k->vec;
    return vectors >= threads && ceil_div(vectors, threads) * k->vec <= MOST_ELEMENTS;
}

/* Whether a row of which a mean and its squares are found is better read again, though
 * registers could hold it: two or four full tiles, whose threads leave room for as many CTAs as
 * fill an SM (measured on an H100: layer norm of 8192 columns 1 %, of 24576 2 % faster; of
 * 16384 5 % slower). */
static bool rereads_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 8192, SHORT_TILES = 2, LONG = 24576, LONG_TILES = 4, RANGE = 8 };
    int64_t columns = column_count(s, k), longest = columns <= SHORT ? SHORT : LONG;
    int tiles = columns <= SHORT ? SHORT_TILES : LONG_TILES;
    bool near = columns <= longest && columns > longest / RANGE * (RANGE - 1);
    bool full = columns % (tiles * k->vec * WARP) == 0;
    bool plain = is_plain_norm(k) && row_dtype(k) == DTYPE_BF16 && !has_wide_columns(k);
    if (!near || !full || !plain || s->forced.reads || s->forced.threads) return false;
    int64_t threads = columns / (tiles * k->vec);
    return is_cached(s, k, (int)(s->target->threads_per_sm / threads), columns);
}

/* A mean and its squares in one exchange: few warps, two CTAs of which an SM holds where
 * it can. Of vectors of 4 or 8 bytes a ring is 20 to 40 % faster. */
static int held_moments(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 32 << 10,
        PAIR = 48 << 10,
        LONG = 64 << 10,
        FEW = 256,
        MANY = 512,
        SIX = 12288,
        FIVE = 9216
    };
    if (rereads_moments(s, k)) return 0;
    int64_t row = row_bytes(k) * column_count(s, k);
    if (shares_wide_columns(s, k)) return 0;
    bool few = row <= PAIR && may_fetch_rows(k);
    int threads = few && column_vectors(k) <= 2 ? FEW : MANY;
    /* 256 threads with six vectors each: 2 % over 384 with four; with weights of f32, with five 11
     * % over 320 */
    bool middle = column_count(s, k) > FIVE && column_count(s, k) < SIX;
    bool wide = middle && has_wide_columns(k) && column_vectors(k) <= 2 && k->vec == MAX_VECTOR;
    if (row_inputs(k) == 1 && row_bytes(k) == 2 && (wide || column_count(s, k) == SIX)) return FEW;
    if (row <= SHORT || row > LONG || is_narrow(k) || !is_spread(s, k, threads)) return 0;
    return row > PAIR && is_packed(k) ? 0 : threads; /* there a ring is 4 % faster */
}

/* Whether so many threads hold a row without spills. The limits are those that were seen
 * to: with guards, where the last tile is not full, packed elements take more. */
static bool can_hold(const Scheduler *s, const Kernel *k, int threads)
{
    enum { MANY = 512, PACKED = 48, SINGLE = 80, WHOLE = 76, MOST = 88 };
    int64_t vectors = column_count(s, k) / k->vec;
    int64_t registers = ceil_div(vectors, threads) * vector_registers(k);
    if (!is_spread(s, k, threads)) return false;
    if (threads < MANY) return registers <= MOST;
    if (is_packed(k)) return registers <= PACKED && vectors % threads == 0;
    return registers <= (may_fetch_rows(k) ? WHOLE : SINGLE);
}

/* Whether the first-level cache surely holds two rows while they are read a second time.
 * Two inputs leave it less sure of itself: softmax_bwd of 16384 columns takes 527 or 585 us
 * from one run to the next, and 525 held in registers. */
static bool is_read_again_soon(const Scheduler *s, const Kernel *k)
{
    int eighths = row_inputs(k) > 1 ? 4 : 5;
    return 2 * row_bytes(k) * column_count(s, k) <= s->target->smem_per_sm / 8 * eighths;
}

/* How many threads keep a long row in their registers, mostly as one CTA an SM; 0: it is
 * too short or too long for that. The fewer they are, the more registers are left for the
 * row. It pays where the caches are too small to read two rows again, and only while
 * column vectors stay cached beside the row (measured on an H100: 2 to 30 % over rings
 * and over reading again). */
int held_threads(const Scheduler *s, const Kernel *k)
{
    static const int ways[] = {512, 384};
    if (!is_row_alone(s, k) || passes_by_blocks(s, k) || s->forced.threads || s->forced.stages ||
        s->forced.reads > 1 || !is_cached(s, k, 1, column_count(s, k)) || single_slice(s, k))
        return 0;
    if (has_moments(s, k)) return held_moments(s, k);
    if (is_read_again_soon(s, k) || holds_bytes_long(s, k)) return 0;
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++)
        if (can_hold(s, k, ways[i])) return ways[i];
    return 0;
}

/* Whether a CTA's threads read a row anew in each phase, so that two CTAs of 1024
 * threads, which have 32 registers each, fill an SM. It pays where registers cannot hold
 * the row and the first-level cache holds two (measured on an H100: 2 to 6 % over rings;
 * where the cache does not hold them, and as parts in a cluster, up to 40 % under; a mean
 * and its squares mostly take too many instructions). */
bool reads_again(const Scheduler *s, const Kernel *k)
{
    enum { CTAS = 2, OWN = 22 };
    if (!is_row_alone(s, k) || s->forced.stages || takes_bulk(s, k)) return false;
    if (single_slice(s, k) || passes_by_blocks(s, k)) return false;
    if (s->forced.reads) return s->forced.reads > 1;
    if (has_moments(s, k)) return rereads_moments(s, k);
    if (held_threads(s, k) || holds_bytes_long(s, k)) return false;
    int64_t columns = column_count(s, k), row = row_bytes(k) * columns;
    int64_t threads = ceil_div(columns, 2 * MAX_VECTOR);
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    bool fits = CTAS * (OWN * threads + ceil_div(row, 4)) <= s->target->registers_per_sm;
    return (!fits || rereads_bytes(s, k)) && is_cached(s, k, CTAS, columns);
}
