/* schedule/partial_vectors.c: what is asked for, as schedule/tuned.c asks, of rows of 2 bytes an
 * element that are whole vectors only of 4 or 8 bytes: 4098 columns are pairs, 4100 fours. The
 * rules give a thread 16 elements as of single ones, or a row a ring that leaves an SM one CTA;
 * threads of such rows are better off with two or three times as many elements, which stay in
 * registers from phase to phase. Measured on an H100 in bf16, some in f16, with 30 million elements
 * a tensor; times beside the rules'. */
#include "schedule/internal.h"

enum { ONE = 1, PAIR = 2, THREE = 3, TWO_BYTES = 2 };

static bool has_partial_vectors(const Kernel *k)
{
    return k->vec > ONE && k->vec < full_vector(k) && row_inputs(k) &&
           row_bytes(k) == TWO_BYTES * row_inputs(k);
}

/* Of f16 such threads have registers for fewer: for two sums of rows of up to 8704 columns, for one
 * of shares of up to 5632. */
static bool fits_f16(const Scheduler *s, const Kernel *k, int ctas)
{
    enum { ALONE = 8704, ALONE_OF_ONE = 7168, SLICE = 5632 };
    int64_t columns = column_count(s, k);
    if (accumulator_registers(s, k) > ONE) return columns <= ALONE;
    return columns <= ALONE_OF_ONE || (ctas > ONE && columns <= (int64_t)SLICE * ctas);
}

/* Sums over rows of two tensors, by 256 threads that copy for themselves. Layer norm's backward of
 * 4098 to 163840 columns in pairs takes 0.72 to 0.98 of the time, in fours 0.77 to 0.98, in f16 of
 * 4610 to 8194 0.89 to 0.95 (of 10242 to 11266 1.01 to 1.13, so not those); rmsnorm's in pairs 0.73
 * to 1.01, in fours 0.88 to 0.99, in f16 of 4610, 6146, 40962 0.98, 0.98, 0.88 (shares of 7169 to
 * 8192 columns 0.99 to 1.05, in fours of 6146 and 8125 1.06 and 1.02; f16 of 8194 and 16386 1.05
 * and 1.03). */
static Advice sums_of_two(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 4096, MIDDLE = 5120, SLICE = 10240, FEW = 192, MANY = 256 };
    enum { SHORT_PAIR = 12288, PLAIN = 7168, PLAIN_OF_FOURS = 6144, PLAIN_END = 8192 };
    int64_t columns = column_count(s, k);
    int ctas = fewest_ctas(columns, SLICE);
    int64_t slice = ceil_div(columns, ctas);
    if (columns <= SHORT || (reads_f16(k) && !fits_f16(s, k, ctas))) return no_advice;
    bool fours = k->vec > PAIR && ctas > ONE;
    bool plain = slice > (fours ? PLAIN_OF_FOURS : PLAIN) && slice <= PLAIN_END;
    if (accumulator_registers(s, k) > ONE ? ctas == PAIR && columns <= SHORT_PAIR : plain)
        return no_advice;
    return (Advice){FAMILY_GRID_STRIDE, .threads = columns <= MIDDLE ? FEW : MANY, .cluster = ctas};
}

/* One sum over rows of three, by 640 threads and a copy warp, where CTAs have more than 6144
 * columns of two, else 8192 each: backward rmsnorm with the residual's gradient of 12290, 16386,
 * 36866, 66002 columns 0.93, 0.79, 0.89, 0.74. */
static Advice sum_of_three(const Scheduler *s, const Kernel *k)
{
    enum { LEAST = 8192, LEAST_OF_TWO = 6144, SLICE = 10240, THREADS = 640 };
    int64_t columns = column_count(s, k);
    int ctas = fewest_ctas(columns, SLICE);
    if (ctas == ONE || columns <= (int64_t)(ctas == PAIR ? LEAST_OF_TWO : LEAST) * ctas ||
        reads_f16(k))
        return no_advice;
    return (Advice){FAMILY_WARP_SPECIALIZED, .threads = THREADS, .cluster = ctas};
}

static Advice sums(const Scheduler *s, const Kernel *k)
{
    double each = accumulator_registers(s, k);
    if (each < ONE || each > PAIR || column_vectors(k) > ONE || stored_rows(k) != ONE)
        return no_advice;
    if (row_inputs(k) == PAIR && has_light_rows(s, k)) return sums_of_two(s, k);
    return row_inputs(k) == THREE && each == ONE ? sum_of_three(s, k) : no_advice;
}

/* Rows of one CTA. (In fours, and in f16, which spills, the rules' are as fast.) */
static Advice moments_alone(const Kernel *k, int64_t columns)
{
    enum { MIDDLE = 10752, EACH = 28 };
    if (reads_f16(k) || k->vec > PAIR) return no_advice;
    int threads = columns <= MIDDLE ? threads_of(columns, EACH, SUM_THREADS) : SUM_THREADS;
    return (Advice){FAMILY_ROW, .threads = threads, .cluster = ONE, .stages = ONE};
}

/* As many CTAs an SM as have 1024 threads, in whose registers the row stays: with 32 columns each.
 */
static Advice moments_of_cluster(const Scheduler *s, const Kernel *k, int64_t columns)
{
    enum { SLICE = 10752, FEW_OF_SLICE = 320, EACH = 32, SHORT = 114688, LONG = 131072, EIGHT = 8 };
    int most = s->target->max_cluster,
        ctas = columns > SHORT && columns <= LONG ? EIGHT : fewest_ctas(columns, SLICE);
    if (ctas > most) ctas = most;
    if (k->vec > PAIR && (ctas == PAIR || columns > SLICE * EIGHT)) return no_advice;
    int64_t slice = ceil_div(columns, ctas);
    int threads = threads_of(slice, EACH, SUM_THREADS);
    if (threads > FEW_OF_SLICE && slice <= SLICE && !reads_f16(k))
        threads = FEW_OF_SLICE; /* f16 spills */
    return (Advice){FAMILY_ROW, .threads = threads, .cluster = ctas, .stages = ONE,
                    .per_sm = MOST_THREADS / threads};
}

/* A mean and its squares of one input, without a ring. Layer norm of 5634 to 262144 columns in
 * pairs takes 0.54 to 1.0 of the time (16 rows 0.62 to 0.97), in f16 from 18434 on 0.74 to 0.93, in
 * fours of 24580 to 66004 0.65 to 0.97 (of 20484 1.19, of 100004 and more 0.99 to 1.06). */
static Advice moments_of_one(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 5120, ALONE = 16640, LONGEST = 262144 };
    int64_t columns = column_count(s, k);
    if (columns <= SHORT || columns > LONGEST) return no_advice;
    return columns <= ALONE ? moments_alone(k, columns) : moments_of_cluster(s, k, columns);
}

/* Of a sum of two, by 640 threads and a copy warp: layer norm of 5634 to 163840 columns in pairs
 * 0.79 to 1.0 (16 rows 0.66 to 0.79), in f16 0.85 to 0.92 where CTAs have up to 8192 columns (with
 * more it spills), in fours by clusters 0.80 to 0.87 (by one CTA 1.01 to 1.15). */
static Advice moments_of_two(const Scheduler *s, const Kernel *k)
{
    enum { SHORT = 5120, LONGEST = 163840, SLICE = 12544, F16 = 8192, THREADS = 640 };
    int64_t columns = column_count(s, k);
    int ctas = fewest_ctas(columns, SLICE);
    bool spills = reads_f16(k) && columns > (int64_t)F16 * ctas;
    if (columns <= SHORT || columns > LONGEST || spills || (k->vec > PAIR && ctas == ONE))
        return no_advice;
    return (Advice){FAMILY_WARP_SPECIALIZED, .threads = THREADS, .cluster = ctas};
}

static Advice moments(const Scheduler *s, const Kernel *k)
{
    if (!has_moments(s, k) || column_vectors(k) > PAIR) return no_advice;
    return row_inputs(k) == ONE    ? moments_of_one(s, k)
           : row_inputs(k) == PAIR ? moments_of_two(s, k)
                                   : no_advice;
}

/* Rows stored as bytes, by one CTA in whose registers they stay: rmsnorm with its largest element
 * of 2562 to 16386 columns in pairs 0.79 to 0.97 (16 rows of 8194 1.07), in f16 0.80 to 0.87, in
 * fours to 12292 0.84 to 0.95 (of 16388 1.15). */
static Advice bytes_of_one(const Scheduler *s, const Kernel *k)
{
    enum {
        SHORT = 2048,
        MIDDLE = 8704,
        LONG = 16640,
        LONG_OF_FOURS = 12544,
        EACH = 24,
        EACH_OF_LONG = 32,
        MOST = 480
    };
    int64_t columns = column_count(s, k);
    bool plain = row_inputs(k) == ONE && k->phases == THREE && column_vectors(k) == ONE &&
                 !has_moments(s, k);
    if (!plain || columns <= SHORT || columns > (k->vec > PAIR ? LONG_OF_FOURS : LONG))
        return no_advice;
    int threads = threads_of(columns, columns <= MIDDLE ? EACH : EACH_OF_LONG, MOST);
    return (Advice){FAMILY_ROW, .threads = threads, .cluster = ONE, .stages = ONE};
}

Advice partial_advice(const Scheduler *s, const Kernel *k)
{
    if (!has_partial_vectors(k) || stored_rows(k) > row_inputs(k)) return no_advice;
    if (!k->accumulator_count && narrowest_stored(k) == ONE) return bytes_of_one(s, k);
    if (!has_light_phases(s, k) || narrowest_stored(k) != TWO_BYTES) return no_advice;
    if (k->accumulator_count) return sums(s, k);
    return has_light_rows(s, k) ? moments(s, k) : no_advice;
}
