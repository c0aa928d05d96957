/* schedule/fit_residency.c: where a row's elements and the columns' vectors live between a
 * kernel's phases: in registers, in a ring of stages in shared memory, or in memory, from
 * where each phase reads them anew; and what that takes of an SM. */
#include "schedule/internal.h"

enum {
    /* ptxas needs about this many registers a thread beside those counted: addresses,
     * loop counters, scalars, temporaries. Fitted on layer- and RMS-norm backward. */
    BASE_REGISTERS = 50,
    PART_REGISTERS = 16, /* where a ring runs on to the next part: beside where the sums are, ... */
    SHORT_PART_REGISTERS =
        32, /* ... and where several threads of a warp have several vectors each */
    MAX_REGISTERS = 255
};

int register_cap(const Scheduler *s, int threads)
{
    /* a warp's registers are in one of an SM's four parts */
    int warps_a_part = (threads / WARP + 3) / 4;
    int cap = s->target->registers_per_sm / 4 / (WARP * warps_a_part) / 8 * 8;
    return cap < MAX_REGISTERS ? cap : MAX_REGISTERS;
}

/* Whether threads can copy their own vectors to shared memory: 4 bytes are the least. */
static bool may_fetch(const Kernel *k, const Load *load)
{
    return k->vec * dtype_info[load->dtype].bytes >= 4;
}

bool may_fetch_rows(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) && !may_fetch(k, &k->loads[i])) return false;
    return true;
}

static bool is_row_scalar(const Kernel *k, const Load *load)
{
    return load->access == ACCESS_ROW && load->axes & k->rows;
}

/* Threads copy 4 or 8 bytes, or 16. */
static bool may_fetch_scalar(const Load *load)
{
    int bytes = dtype_info[load->dtype].bytes;
    return bytes == 4 || bytes == 8;
}

bool may_fetch_scalars(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_scalar(k, &k->loads[i]) && !may_fetch_scalar(&k->loads[i])) return false;
    return true;
}

/* Whether a row's scalars pass through the ring as well, copied by a thread of each warp. Read into
 * registers a row ahead, they share a wait with whatever ptxas lets them share one with, which can
 * come at once. CTAs of teams of two to four warps that fill an SM are 7 to 25 % faster without
 * that wait. Larger teams and CTAs of one team are 1 to 8 % slower, for it keeps the SMs in step
 * with each other, and so are several small CTAs (measured on an H100). */
static bool fetches_scalars(const Kernel *k)
{
    enum { MOST = 4 * WARP, LARGE_CTA = 384 };
    int team = k->threads_per_row;
    if (k->kept)
        return team >=
               WARP; /* the next part's rows are on their way, so their scalars are to be, too */
    return k->teams > 1 && team > WARP && team <= MOST && kernel_threads(k) >= LARGE_CTA;
}

void set_homes(Kernel *k, bool ring, bool scalars, Home rows, Home columns)
{
    for (int i = 0; i < k->load_count; i++) {
        Load *load = &k->loads[i];
        bool vector = load->access == ACCESS_VECTOR, shared = is_column_vector(k, load);
        bool stageable = vector && (ring || shared) &&
                         (((k->copy_warp || k->lined_up) && !shared) || may_fetch(k, load));
        Home home = shared ? columns : rows;
        if (home == IN_STAGES && !stageable) home = IN_MEMORY;
        load->hoisted = shared && home != IN_MEMORY;
        load->resident = vector && home == IN_REGISTERS;
        load->rewidened = load->widened_once = load->converted = false;
        load->staged = stageable && (shared ? home == IN_STAGES : home != IN_MEMORY);
        if (ring && is_row_scalar(k, load)) load->staged = scalars && may_fetch_scalar(load);
    }
}

/* Those that a ring takes which runs on to the next part of a group. */
static int part_registers(const Kernel *k)
{
    if (!k->kept || k->columnwise || k->threads_per_row == WARP) return 0;
    return k->threads_per_row > WARP        ? PART_REGISTERS
           : k->vec * k->tiles > MAX_VECTOR ? SHORT_PART_REGISTERS
                                            : 0;
}

/* Registers a thread is expected to need. Where it holds nothing of rows and columns that could be
 * left in memory, ptxas makes do with what a CTA's threads have. */
int estimate(const Scheduler *s, const Kernel *k)
{
    double sums = accumulator_registers(s, k), resident = 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].resident) resident += dtype_info[k->loads[i].dtype].bytes / 4.0;
    int needed = BASE_REGISTERS + (int)((sums + resident) * k->vec * k->tiles),
        all = needed + part_registers(k);
    int cap = register_cap(s, kernel_threads(k));
    return resident == 0 && needed <= cap && all > cap ? cap : all;
}

/* Groups that find a mean and its squares of single elements of f16 or of several inputs, for which
 * ptxas takes more registers than was expected: 8 to 664 bytes of spills where two CTAs are to
 * share an SM. */
static bool spills_in_pairs(const Scheduler *s, const Kernel *k)
{
    return k->grouped && k->vec == 1 && has_moments(s, k) && (reads_f16(k) || row_inputs(k) > 1);
}

/* CTAs of a persistent grid: enough to hide latency; with accumulators few enough
 * partials. */
static void set_ctas_per_sm(const Scheduler *s, Kernel *k)
{
    int most = k->accumulator_count ? 1024 : s->target->threads_per_sm;
    int cta = kernel_threads(k) + helper_threads(k);
    int threads = most / cta, registers = s->target->registers_per_sm / (cta * k->registers);
    k->ctas_per_sm = threads < registers ? threads : registers;
    int asked = s->forced.per_sm;
    if (!asked && k->copy_warp) asked = odd_ctas_per_sm(s, k);
    /* more than were expected where rows hand their stage on: ptxas is told how many registers they
     * may have */
    bool more = k->reuses && asked * cta <= most;
    if (asked && (more || asked < k->ctas_per_sm)) k->ctas_per_sm = asked;
    /* with a copy warp the ring is what hides latency, so one CTA gets all of it */
    if (k->ctas_per_sm < 1 || (k->copy_warp && k->accumulator_count)) k->ctas_per_sm = 1;
    if (!asked && spills_in_pairs(s, k)) k->ctas_per_sm = 1;
}

/* Whether all of a row is read before the row's first reduction, or (with lag) before the next
 * row's: then the barrier of that reduction is all that threads need which copy for each other. */
bool is_read_in_time(const Kernel *k, Home rows)
{
    if (!k->inner_count) return false;
    if (k->lag) return true;
    return is_read_at_once(k) && rows == IN_REGISTERS;
}

/* Whether a ring's rows are better copied by blocks than by each thread's own vectors: where they
 * begin anywhere in a line of memory. Copies between different places of one read a quarter more
 * from L2, and single elements of 2 bytes cannot be copied. */
static bool wants_lines(const Scheduler *s, const Kernel *k, Home rows)
{
    if (k->copy_warp || !k->accumulator_count || has_several_columns(k) ||
        k->threads_per_row < WARP)
        return false;
    if (k->kept && k->lag)
        return false; /* a part's last row may still be read when the next part's first is copied */
    if (!is_read_in_time(k, rows)) return false;
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i]) &&
            !is_whole_lines(column_count(s, k), k->loads[i].dtype))
            return true;
    return false;
}

static bool try_homes(const Scheduler *s, Kernel *k, bool ring, Home rows, Home columns)
{
    k->lined_up = ring && wants_lines(s, k, rows);
    set_homes(k, ring, fetches_scalars(k), rows, columns);
    k->stages = 0;
    k->smem_bytes = 0;
    k->refill = k->meets_in_ring = k->meets_beside = k->by_blocks = false;
    k->registers = estimate(s, k);
    if (k->registers > register_cap(s, kernel_threads(k) + helper_threads(k))) return false;
    set_ctas_per_sm(s, k);
    return !ring || fit_ring(s, k);
}

/* So many CTAs an SM that about 62 kB of rows are under way, but two at least: fewer and more
 * measured up to 10 % slower. As many as shared memory holds with their column vectors. */
static void set_refill_ctas(const Scheduler *s, Kernel *k)
{
    enum { IN_FLIGHT = 62 << 10, LEAST = 2, RESERVED = 1 << 10 };
    set_ctas_per_sm(s, k);
    int64_t slice = ceil_div(row_bytes(k) * column_count(s, k), k->cluster);
    int64_t wanted = (IN_FLIGHT + slice / 2) / slice;
    wanted = wanted < LEAST ? LEAST : wanted;
    if (k->ctas_per_sm > wanted) k->ctas_per_sm = (int)wanted;
    int64_t cta = k->smem_bytes + static_bytes(s, k) + RESERVED;
    while (k->ctas_per_sm * cta > s->target->smem_per_sm) k->ctas_per_sm--;
}

/* Keeps a cluster's rows in registers, which the next row refills, and column vectors in
 * shared memory. */
static bool fit_refill(const Scheduler *s, Kernel *k)
{
    /* ptxas needs fewer registers beside these rows than where it has a ring to walk */
    enum { BASE = 32, STEP = 8, REGISTER_BYTES = 4 };
    int64_t held = ceil_div(row_bytes(k) * k->vec * k->tiles, REGISTER_BYTES);
    bool whole = k->rows && !k->kept && k->column_ctas == 1 && row_inputs(k) && column_count(s, k);
    bool alone = k->cluster == 1 && !asks_no_ring(s);
    bool known = k->phases <= LAST_PHASE_BIT; /* which phase is the last to need a row */
    if (alone || k->grouped || !whole || !known || held > REFILL_REGISTERS || !may_refill(s, k))
        return false;
    k->registers = (int)ceil_div(BASE + held, STEP) * STEP;
    if (k->registers > register_cap(s, kernel_threads(k))) return false;
    set_homes(k, false, false, IN_REGISTERS, IN_STAGES);
    k->stages = 0;
    k->smem_bytes = staged_bytes(s, k, true);
    set_refill_ctas(s, k);
    if (k->ctas_per_sm < 1) return false;
    rewiden(k, false);
    return k->refill = true;
}

/* Keeps a cluster's only row in registers, and column vectors, which are read with it, but for wide
 * ones of many elements. */
static bool fit_single(const Scheduler *s, Kernel *k)
{
    enum { FEW_ELEMENTS = 16 };
    bool many = k->vec * k->tiles > FEW_ELEMENTS;
    Home columns = has_moments(s, k) && has_wide_columns(k) && many ? IN_MEMORY : IN_REGISTERS;
    k->single =
        k->cluster > 1 && single_slice(s, k) && try_homes(s, k, false, IN_REGISTERS, columns);
    bool costly = k->single && repeats_costly(s, k);
    if (costly)
        convert_f16(k, costly);
    else if (k->single)
        rewiden(k, true);
    return k->single;
}

static bool is_forced(const Scheduler *s, Family family)
{
    return s->forced.any && s->forced.family == family;
}

/* Whether rows pass through a ring: where a persistent grid walks them. That is so with
 * accumulators, and for rows so long that few CTAs fit an SM: a row with two barriers and
 * column vectors, which each CTA would read from L2 again, gains from 8192 columns on,
 * one with two barriers alone from 12288, one with a single barrier from 16384 (measured
 * on an H100). */
bool wants_ring(const Scheduler *s, const Kernel *k)
{
    bool alone = !k->accumulator_count && k->cluster == 1;
    bool copied = is_forced(s, FAMILY_WARP_SPECIALIZED) || pacing_ctas(s, k) ||
                  s->forced.reuse; /* whatever the length */
    if (alone && !copied && (held_threads(s, k) || !may_fetch_rows(k))) return false;
    bool two = k->phases > 2;
    int64_t from = two && column_vectors(k) > 1 ? 8192 : two ? 12289 : 16385;
    bool wanted =
        k->accumulator_count > 0 || copied || column_count(s, k) >= from || k->cluster > 1;
    return wanted && !asks_no_ring(s) && (k->accumulator_count > 0 || k->inner_count > 0) &&
           k->rows && k->column_ctas == 1;
}

/* Whether threads can copy column vectors to shared memory, if there are any. */
static bool may_fetch_columns(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_column_vector(k, &k->loads[i]) && !may_fetch(k, &k->loads[i])) return false;
    return true;
}

/* Column vectors in registers, of few elements or, beside sums over rows, where shared memory
 * cannot have them: single elements that each phase reads take longer than all else (layernorm_bwd
 * of 19457 columns 2.8 times as slow, measured on an H100). Without sums, of more inputs or column
 * vectors, and of f16 it would spill. */
static bool try_ring(const Scheduler *s, Kernel *k, bool copy_warp, int lag)
{
    enum { PAIR = 2 };
    bool pair =
        k->accumulator_count && row_inputs(k) == PAIR && column_vectors(k) == 1 && !reads_f16(k);
    bool held = k->vec * k->tiles <= HELD_ELEMENTS || (pair && !may_fetch_columns(k));
    k->copy_warp = copy_warp;
    k->lag = lag;
    if ((held && try_homes(s, k, true, IN_STAGES, IN_REGISTERS)) ||
        try_homes(s, k, true, IN_STAGES, IN_STAGES) || try_homes(s, k, true, IN_STAGES, IN_MEMORY))
        return true;
    k->copy_warp = false;
    k->lag = 0;
    return false;
}

/* A copy warp runs ahead of a cluster's waits for each other; a CTA by itself measured
 * better when its threads copy for themselves, if they can. It needs bulk copies. */
static bool may_copy(const Scheduler *s, const Kernel *k)
{
    enum { MANY_ELEMENTS = 32, LONG = 262144 };
    bool middle = k->cluster == 4 || k->cluster == 8;
    bool large = k->cluster > 8 && row_bytes(k) >= 4;
    bool pays = has_moments(s, k) ? middle || large : k->cluster > 1;
    /* single rows of 2 bytes keep step better by their own copies (softmax and layer norm of
     * 65536 and 131072 columns: 1 to 3 %), and so do those that are stored as bytes */
    bool light = !k->accumulator_count && row_bytes(k) <= 2;
    bool weighted = column_vectors(k) > 0 && column_count(s, k) <= LONG && narrowest_stored(k) > 1;
    pays &= !light || (has_moments(s, k) ? reads_f16(k) : weighted);
    /* so do few threads with two accumulators for many columns each (2 to 3 %), or with one of f16
     * (3 to 5 %, but at a pace it is 3 % faster by a copy warp) */
    double registers = accumulator_registers(s, k);
    bool more = k->cluster > 8 && registers >= 2 &&
                k->vec * k->tiles == MANY_ELEMENTS; /* (4 % slower without) */
    bool one = registers < 2 && (!reads_f16(k) || wants_pace(s, k));
    pays &= one || k->vec * k->tiles < MANY_ELEMENTS || more;
    /* pairs with one accumulator a column and stages of 48 kB or more: 12 % better
     * without (measured) */
    bool heavy = k->cluster == 2 && k->accumulator_count && registers < 2 && row_bytes(k) > 4 &&
                 !sums_f32_slice(s, k);
    pays |=
        copies_two_sums(s, k) || copies_f32_sum(s, k) || (registers < 2 && summed_threads(s, k));
    pays &= !rings_f32_moments(s, k);
    pays = !may_fetch_rows(k) || ((pays || k->grouped) && !heavy && !has_long_slices(s, k));
    bool wanted = s->forced.any ? is_forced(s, FAMILY_WARP_SPECIALIZED) : pays;
    bool contiguous = !has_several_columns(k);
    return s->target->bulk_copy && contiguous && !k->kept && k->teams == 1 &&
           k->threads_per_row > WARP && kernel_threads(k) + WARP + WARP * k->grouped <= 1024 &&
           wanted;
}

/* A group hears of each other through global memory, which takes as long as a row or two;
 * so it lags two rows where shared memory has the room. */
static bool fit_group(const Scheduler *s, Kernel *k)
{
    if (!may_copy(s, k)) return false;
    bool lags = k->phases == 2 && k->inner_count;
    return (lags && (try_ring(s, k, true, 2) || try_ring(s, k, true, 1))) ||
           (!lags && try_ring(s, k, true, 0));
}

/* Whether a copy warp is tried before threads copy for themselves: without a lag it pays in
 * clusters from 4 on and for few threads. Odd rows with sums over rows do without it in one CTA an
 * SM (backward norms of 7001 and 8191 columns 0 to 9 % faster, of 5001 and 6007 in two 5 to 13 %
 * slower; measured on an H100). */
static bool tries_copy_warp(const Scheduler *s, const Kernel *k, int lag)
{
    enum { MOST_OF_TWO = 384, OWN_COPIES = 8192 };
    bool one = kernel_threads(k) > MOST_OF_TWO && column_count(s, k) <= OWN_COPIES;
    bool pays = may_fetch_rows(k) ? lag : !k->accumulator_count || !one;
    if (copies_f32_sum(s, k) || sums_f32_slice(s, k) || copies_two_sums(s, k)) return true;
    return pays || k->cluster >= 4 || full_slice_threads(s, k) ||
           is_forced(s, FAMILY_WARP_SPECIALIZED);
}

/* Rows that a copy warp asks for at a pace. */
static bool fit_pace(const Scheduler *s, Kernel *k)
{
    if (k->teams > 1 || k->threads_per_row <= WARP) return false; /* as was asked for */
    k->copy_warp = true;
    k->lag = pacing_lag(s, k);
    Home columns = pacing_holds_columns(s, k) ? IN_REGISTERS : IN_STAGES;
    k->copy_warp =
        try_homes(s, k, true, IN_STAGES, columns) || try_homes(s, k, true, IN_STAGES, IN_STAGES);
    if (!k->copy_warp) k->lag = 0;
    if (k->copy_warp && is_odd(s, k) && accumulator_registers(s, k) > 1) convert_bf16(k);
    return k->copy_warp;
}

/* Rows that hand their stages on. */
static bool fit_reuse(const Scheduler *s, Kernel *k)
{
    if (is_forced(s, FAMILY_WARP_SPECIALIZED) || !may_reuse(k)) return false;
    k->reuses = true;
    Home columns = k->accumulator_count ? IN_REGISTERS : IN_STAGES;
    k->reuses = try_homes(s, k, true, IN_REGISTERS, columns) && !k->lined_up;
    return k->reuses;
}

/* Column vectors in registers, all of shared memory for rows. */
static bool keep_columns(const Scheduler *s, Kernel *k)
{
    k->lag = k->cluster == column_keepers(s, k);
    return k->lag && try_homes(s, k, true, IN_STAGES, IN_REGISTERS);
}

/* Whether the row that a lag needs room for displaces the column vectors from shared memory, which
 * each phase would then read: rows of 2 bytes in the largest cluster (f16 rmsnorm of 500000 and
 * 524288 columns 20 to 25 % slower so, measured on an H100). */
static bool displaces_columns(const Scheduler *s, const Kernel *k)
{
    enum { ROWS = 3 };
    int64_t slice = ceil_div(column_count(s, k), k->cluster);
    bool light = !k->accumulator_count && row_bytes(k) <= 2 && k->cluster == s->target->max_cluster;
    return light && column_vectors(k) && slice * column_bytes(k, ROWS) > s->target->smem_per_cta;
}

/* One CTA an SM has nothing else to do at a reduction's barrier, so it lags the last
 * phase. */
static bool fit_ring_kernel(const Scheduler *s, Kernel *k)
{
    if (wants_reuse(s, k) && fit_reuse(s, k)) return true;
    if (s->forced.reuse) return false;
    if (k->grouped) return fit_group(s, k);
    if (k->cluster == pacing_ctas(s, k) && fit_pace(s, k)) return true;
    if (column_keepers(s, k)) return keep_columns(s, k);
    bool sums = k->accumulator_count > 0;
    bool one = k->teams == 1 && kernel_threads(k) > 1024 / 4;
    /* a mean and its squares end a phase with many instructions, which a lag does not
     * hide */
    bool held = shares_wide_columns(s, k) && row_inputs(k) == 1; /* the row, in registers */
    bool busy = has_moments(s, k) && (k->cluster == 1 || k->cluster > 8 || held);
    int lag = one && k->phases == 2 && k->inner_count && !busy && !has_long_slices(s, k) &&
              !displaces_columns(s, k);
    return (tries_copy_warp(s, k, lag) && may_copy(s, k) && try_ring(s, k, true, lag)) ||
           (lag && try_ring(s, k, false, lag)) ||
           (sums && try_homes(s, k, true, IN_REGISTERS, IN_REGISTERS)) ||
           (!sums && try_homes(s, k, true, IN_REGISTERS, IN_STAGES)) || try_ring(s, k, false, 0);
}

/* Whether the column vectors of a CTA that has a row or two are read into registers before
 * the row is, so that they arrive with it. It pays as long as two CTAs fit an SM: while a
 * row and they take a third of its registers, and threads are few or hold few (measured on
 * an H100: layer norm 0.7 to 4 % faster from 1024 to 12288 columns, 25 % slower at 16384;
 * rmsnorm up to 0.8 % faster; odd rows 2 to 6 % faster at 1023 and 1987 columns, 3 % slower
 * at 4095). Where a thread has many elements all tiles must be full, or ptxas takes twice the
 * registers, but not where a warp or less has a row (of a few rows 8 to 25 %, of many 0 to 7 %
 * faster). f16 is converted anew at each use (layer norm of 1024 to 4096 columns 1 to 2 % faster,
 * rmsnorm to bytes 3 to 6 %), but single elements are not, nor those beside several inputs of a
 * mean and its squares: these are left in memory. */
static bool wants_columns(const Scheduler *s, const Kernel *k)
{
    enum {
        REGISTER_BYTES = 4,
        SHARE = 3,
        FEW_REGISTERS = 16,
        FEW_ELEMENTS = 16,
        WARP_ELEMENTS = 48
    };
    enum { FEW_THREADS = 128, SOME_THREADS = 288, MANY_THREADS = 768, WIDE_BYTES = 128 };
    if (k->accumulator_count) return true;
    bool several = has_moments(s, k) && row_inputs(k) > 1;
    if (!k->inner_count || !k->rows || (reads_f16(k) && (several || k->vec % 2))) return false;
    int64_t bytes = column_bytes(k, 1), file = s->target->registers_per_sm * REGISTER_BYTES;
    int64_t columns = column_count(s, k), elements = k->vec * k->tiles;
    int few_elements = k->threads_per_row <= WARP ? WARP_ELEMENTS : FEW_ELEMENTS;
    bool full = columns == elements * k->threads_per_row || elements <= few_elements;
    int most = k->vec == 1                                          ? FEW_THREADS
               : bytes * elements <= FEW_REGISTERS * REGISTER_BYTES ? MANY_THREADS
                                                                    : SOME_THREADS;
    bool few = kernel_threads(k) <= most;
    if (has_wide_columns(k) && column_bytes(k, 0) * elements > WIDE_BYTES) return false;
    return full && few && bytes * columns <= file / SHARE;
}

/* Keeps a CTA's row in registers. */
static bool fit_row(const Scheduler *s, Kernel *k)
{
    bool fits = (wants_columns(s, k) && try_homes(s, k, false, IN_REGISTERS, IN_REGISTERS)) ||
                try_homes(s, k, false, IN_REGISTERS, IN_MEMORY);
    if (!fits || k->accumulator_count) return fits;
    bool costly = repeats_costly(s, k);
    if (!costly && rewidens_row(s, k))
        rewiden(k, true);
    else
        convert_f16(k, costly);
    return true;
}

/* Keeps rows that pass through shared memory by blocks in registers, of a CTA by itself or a
 * cluster's only row. */
static bool keep_blocks(const Scheduler *s, Kernel *k)
{
    bool columns = k->cluster > 1 || wants_columns(s, k);
    if (!passes_by_blocks(s, k)) return false;
    if (!try_homes(s, k, false, IN_REGISTERS, columns ? IN_REGISTERS : IN_MEMORY) ||
        !fit_blocks(s, k))
        return false;
    k->single = k->cluster > 1;
    return true;
}

bool keep_nothing(const Scheduler *s, Kernel *k)
{
    return try_homes(s, k, false, IN_MEMORY, IN_MEMORY);
}

/* Keeps as much in registers as fits. */
bool fit_homes(const Scheduler *s, Kernel *k)
{
    k->lag = 0;
    k->copy_warp = k->single = k->reuses = false;
    if (fit_bulk(s, k)) return true;
    if (reads_again(s, k)) return keep_nothing(s, k);
    return keep_blocks(s, k) || fit_single(s, k) || fit_refill(s, k) ||
           (wants_ring(s, k) && fit_ring_kernel(s, k)) || fit_row(s, k) || keep_nothing(s, k);
}
