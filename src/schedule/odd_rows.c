/* schedule/odd_rows.c: rows of an odd number of columns of 2 bytes, whose vectors are single
 * elements. A copy warp brings them by whole blocks, most of them at a pace (schedule/pacing.c),
 * for what they store touches half as many sectors again. Threads have about 16 elements each,
 * those of long rows as many as registers hold, up to 35. All is measured on an H100. */
#include "schedule/internal.h"

enum { NARROW = 2, PAIR = 2, ELEMENTS = 16, LONG_MOMENTS = 6144 };

/* Single elements of 2 bytes of one or two inputs, each of which has rows of its own, and of what
 * is stored. */
static bool has_single_elements(const Kernel *k)
{
    int inputs = row_inputs(k);
    bool narrow = inputs >= 1 && inputs <= PAIR && row_bytes(k) == NARROW * inputs &&
                  narrowest_stored(k) == NARROW;
    bool plain =
        k->rows && !k->kept && !k->dynamic && !has_several_columns(k) && !has_wide_columns(k);
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && !axes_within(k->rows, k->loads[i].axes)) return false;
    return k->vec == 1 && narrow && plain && k->inner_count && k->phases == PAIR;
}

static bool has_row_scalars(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_ROW) return true;
    return false;
}

/* As few CTAs, a power of two, as have no more columns each. */
static int share(const Scheduler *s, int64_t columns, int64_t slice)
{
    int ctas = fewest_ctas(columns, slice);
    return ctas <= s->target->max_cluster ? ctas : 0;
}

/* Whether so many columns fill the tiles of whole warps, but for a few. */
static bool fills_tiles(int64_t columns)
{
    enum { TILES = ELEMENTS * WARP, FEW = 64 };
    return ceil_div(columns, TILES) * TILES - columns < FEW;
}

/* Sums over rows of two tensors (two sums of 8193 to 131071 columns 15 to 80 %, one of 4607 to 8191
 * and of 11001 on 1 to 30 % faster than what other rules make of them; one of 4095 2 %, of slices
 * of 4256 columns 30 % slower). */
static int ctas_of_sums(const Scheduler *s, const Kernel *k)
{
    enum { ALONE = 4096, SLICE = 8192, SHORT_ONE_SUM = 10240, SHORT_SLICE = 5000 };
    int64_t columns = column_count(s, k);
    double sums = accumulator_registers(s, k);
    if (sums < 1 || sums > 2 || row_inputs(k) != PAIR || column_vectors(k) > 1 || has_moments(s, k))
        return 0;
    int ctas = share(s, columns, SLICE);
    if (ctas == 1) return sums < 2 && columns > ALONE && fills_tiles(columns);
    bool some = sums > 1 || columns > SHORT_ONE_SUM;
    return some && (ctas == PAIR || columns > (int64_t)SHORT_SLICE * ctas) ? ctas : 0;
}

/* A mean and its squares (layer norm of up to 6144 columns 1 to 8 %, of a sum of two 4 to 22 %
 * faster than in registers of one CTA). Longer rows are shared by as few CTAs as hold them, one an
 * SM: what meets between CTAs takes longer the more there are, and an SM has the more elements on
 * their way. Layer norm of 6145 to 262143 columns takes 0.32 to 0.99 of the time it took with no
 * more than 16 elements a thread, of a sum of two up to 131071 columns 0.5 to 1.0; but a few rows
 * of 14337 to 32767 columns, which had four or eight CTAs, 1.0 to 1.4 (8.3 µs in place of 5.9). */
static int ctas_of_moments(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 896, LONGEST_ALONE = 12288, SLICE = 16384, SLICE_OF_TWO_INPUTS = 8192 };
    int64_t columns = column_count(s, k);
    if (column_vectors(k) > PAIR || columns <= SHORT) return 0;
    int ctas = share(s, columns, row_inputs(k) > 1 ? SLICE_OF_TWO_INPUTS : SLICE);
    if (ctas == 1 && columns > LONGEST_ALONE) ctas = PAIR;
    return ctas > 1 && has_row_scalars(k)
               ? 0
               : ctas; /* those take registers that clusters do not have */
}

/* A single reduction beside weights (rmsnorm of 8193 to 16384 columns takes 0.85 to 0.97 of the
 * time it took, of 20481 to 131071 0.65 to 0.99, of a sum of two of 8193 to 131071 0.63 to 0.98).
 */
static int ctas_of_single(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 8192, LONGEST_ALONE = 12288, SLICE = 8192, SHORT_SLICE = 4480 };
    int64_t columns = column_count(s, k);
    if (k->inner_count > 1 || column_vectors(k) != 1 || columns <= SHORT) return 0;
    if (row_inputs(k) > 1) return share(s, columns, SLICE);
    if (columns <= LONGEST_ALONE) return 1;
    int ctas = share(s, columns, SLICE);
    return ctas == PAIR || columns > (int64_t)SHORT_SLICE * ctas
               ? ctas
               : 0; /* shorter ones 0 to 5 % slower so */
}

int odd_ctas(const Scheduler *s, const Kernel *k)
{
    if (!s->target->bulk_copy || !has_single_elements(k)) return 0;
    if (k->accumulator_count) return ctas_of_sums(s, k);
    return has_moments(s, k) ? ctas_of_moments(s, k) : ctas_of_single(s, k);
}

/* Single CTAs, pairs and two inputs are asked for at a pace; of more CTAs one input with one
 * reduction is up to 3 % slower so. */
bool is_odd_at_pace(const Scheduler *s, const Kernel *k)
{
    return k->accumulator_count || has_moments(s, k) || row_inputs(k) > 1 || k->cluster <= PAIR;
}

bool is_odd(const Scheduler *s, const Kernel *k)
{
    return odd_ctas(s, k) && k->cluster == pacing_ctas(s, k);
}

/* Without sums over rows, and so long that threads have more than 16 elements each. */
static bool is_long(const Scheduler *s, const Kernel *k)
{
    return !k->accumulator_count && (!has_moments(s, k) || column_count(s, k) > LONG_MOMENTS);
}

/* With a warp that copies, 512 threads have 128 registers each, which 34 elements and two column
 * vectors just fit; 416 have more, and 32 elements each are a little faster so. Two CTAs of 256 fit
 * an SM, with 20 elements a thread of two inputs. */
static int threads_of_long(const Scheduler *s, const Kernel *k, int ctas)
{
    enum { FEW = 256, SOME = 384, MANY = 480, FEW_COLUMNS = 5120, SOME_COLUMNS = 12288 };
    int64_t slice = ceil_div(column_count(s, k), ctas);
    if (row_inputs(k) > 1) return slice <= FEW_COLUMNS ? FEW : SOME;
    if (has_moments(s, k)) return slice <= SOME_COLUMNS ? SOME : MANY;
    return ctas > 1 ? FEW : SOME;
}

static int ctas_per_sm_of_long(const Scheduler *s, const Kernel *k)
{
    enum { TWO_OF = 256, MOMENTS_OF_TWO = 6912 };
    bool light = row_inputs(k) == 1 && has_moments(s, k) &&
                 ceil_div(column_count(s, k), k->cluster) <= MOMENTS_OF_TWO;
    return light || threads_of_long(s, k, k->cluster) <= TWO_OF ? 2 : 1;
}

/* Of a slice with sums over rows: 384 are up to 13 % faster than 512 with one sum, up to 4 % with
 * two, of which a thread has registers for 17 columns; of 352 threads each has half as many again.
 */
static int threads_of_sums(const Scheduler *s, const Kernel *k, int ctas)
{
    enum { FEW = 352, SOME = 384, MOST_OF_TWO = 17 * SOME };
    bool lean =
        accumulator_registers(s, k) <= 1 || ceil_div(column_count(s, k), ctas) <= MOST_OF_TWO;
    return lean ? SOME : FEW;
}

int odd_threads(const Scheduler *s, const Kernel *k, int ctas)
{
    enum { THREE_WARPS = 96, MOST_OF_THREE = 1280 };
    if (is_long(s, k)) return threads_of_long(s, k, ctas);
    if (ctas > 1) return threads_of_sums(s, k, ctas);
    int64_t columns = column_count(s, k);
    int threads = (int)ceil_div(columns, ELEMENTS * WARP) * WARP;
    return threads == THREE_WARPS && columns > MOST_OF_THREE ? threads + WARP : threads;
}

/* About as many as have 512 threads, of two inputs 256; of long rows two, where they have registers
 * for it. */
int odd_ctas_per_sm(const Scheduler *s, const Kernel *k)
{
    enum { THREADS = 512, FEW_THREADS = 256 };
    if (!is_odd(s, k) || k->accumulator_count) return 0;
    if (is_long(s, k)) return ctas_per_sm_of_long(s, k);
    return (int)ceil_div(row_inputs(k) > 1 ? FEW_THREADS : THREADS, kernel_threads(k));
}

int odd_stages(const Scheduler *s, const Kernel *k)
{
    enum { STAGES = 3 };
    return is_odd(s, k) && k->cluster == 1 && !k->accumulator_count ? STAGES : 0;
}
