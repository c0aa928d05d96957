/* schedule/registers.c: an estimate of the registers that a thread of a kernel needs, fitted to the
 * output of `ptxas -v` for some five thousand schedules of norms, softmaxes, losses and their
 * gradients. */
#include "schedule/internal.h"

enum { REGISTER_BYTES = 4 };

/* What a thread holds of each of its elements, in registers: of rows, and of column vectors. */
static void find_held(const Kernel *k, double *rows, double *columns)
{
    *rows = *columns = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (!is_resident(load) || load->access != ACCESS_VECTOR) continue;
        if (is_across(k, load)) continue;
        double *held = is_column_vector(k, load) ? columns : rows;
        *held += dtype_info[load->dtype].bytes / (double)REGISTER_BYTES;
    }
}

static bool meets_twice(const Kernel *k)
{
    enum { ONCE = 2 };
    return k->phases > ONCE;
}

/* Where elements are converted by the same instruction each time ptxas keeps what it has
 * converted. */
static bool converts_once(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].widening == WIDENED_ANEW) return false;
    return true;
}

/* What a thread needs beside its elements, and for each of them. */
typedef struct {
    double base, moments, phases, row, column, sum, lag, vector, ragged, tile;
    double kept_row, kept_column; /* more where what is converted is kept */
} Needs;

/* Of column vectors that are read with each tile, where nothing else happens to a row. */
static double passing_vectors(const Kernel *k)
{
    double registers = 0;
    for (int i = 0; i < k->load_count && !k->inner_count; i++)
        if (is_column_vector(k, &k->loads[i]) && !is_resident(&k->loads[i]))
            registers += k->vec * dtype_info[k->loads[i].dtype].bytes / (double)REGISTER_BYTES;
    return registers;
}

/* What is kept takes the place of the row's elements, which only the first phase reads. */
static double beyond_rows(const Kernel *k, double kept)
{
    double rows, columns;
    find_held(k, &rows, &columns);
    const double held = rows * k->vec * k->tiles;
    return kept > held ? kept - held : 0;
}

/* Of parts of rows whose columns lie side by side: what a later phase computes again stays instead,
 * as do its operands in kernels that end with their row. */
static double of_side_by_side(const Kernel *k, double kept)
{
    static const double AGAIN_IN_RING = 0.45, AGAIN = 1.1, BESIDE_KEPT = 0.5, BASE = -20;
    const double elements = k->vec * (is_streamed(k) ? 1 : k->tiles);
    const bool again = kept < elements;
    if (k->stages) return again ? AGAIN_IN_RING * elements : 0;
    return BASE + (again ? AGAIN : BESIDE_KEPT) * elements;
}

/* Where each vector's place is found, by coordinates, a thread holds those. What is read in a loop
 * has addresses; and what is computed of many values has all of them at hand. */
static double add_more(const Scheduler *s, const Kernel *k)
{
    enum { COORDINATES = 6, ADDRESSES = 24, GROUPS = 8, SIMPLE = 24, MOST = 12, UNKNOWN = 22 };
    static const double ELEMENT = 0.6, OPERATION = 1.0, SINGLE = -1.3;
    double more = 0, values = (element_operations(s, k) - SIMPLE) * OPERATION;
    const double kept = kept_registers(s, k);
    if (k->contiguous)
        more += of_side_by_side(k, kept);
    else if (has_several_columns(k))
        more += COORDINATES + ELEMENT * k->vec * (is_streamed(k) ? 1 : k->tiles);
    if (is_streamed(k)) more += is_grouped(k) ? 2 * ADDRESSES : ADDRESSES;
    if (k->kept) more += GROUPS;
    if (k->vec == 1 && k->accumulator_count)
        more += GROUPS + (has_several_columns(k) ? 0 : SINGLE * k->tiles);
    if (!s->fitted) more += UNKNOWN; /* what ptxas does for it */
    more += passing_vectors(k) + beyond_rows(k, kept);
    return more + (values > MOST ? MOST : values > 0 ? values : 0);
}

static double add_needs(const Scheduler *s, const Kernel *k, const Needs *n)
{
    double rows, columns,
        elements = is_streamed(k) || has_bulk_rows(k) ? k->vec : k->vec * k->tiles;
    const bool kept = converts_once(k);
    find_held(k, &rows, &columns);
    return n->base + n->moments * has_moments(s, k) + n->phases * meets_twice(k) +
           (n->row + n->kept_row * kept) * rows * elements +
           (n->column + n->kept_column * kept) * columns * elements +
           n->sum * accumulator_registers(s, k) * k->vec * k->tiles + n->lag * k->lag +
           n->vector * k->vec * row_inputs(k) + n->ragged * (k->remainder != TILES_FULL) +
           n->tile * (is_streamed(k) ? 1 : k->tiles);
}

/* Of vectors of neighbouring rows: a register or two for each element, as it is kept and as it
 * is computed with, more if it is wider than two bytes, and one for each column's sum. CTAs that
 * share out all rows keep where they are. */
static double beside_registers(const Scheduler *s, const Kernel *k, double of_element,
                               double of_sum, double of_column)
{
    enum { NARROW_BYTES = 2 };
    static const double BASE = 22, SHARE = 18, SINGLE = 1.4, FURTHER = 0.65;
    const double values = k->vec * k->tiles,
                 inputs = row_inputs(k) > 1 ? 1 + FURTHER * (row_inputs(k) - 1) : row_inputs(k),
                 elements = values * inputs * (k->vec == 1 ? SINGLE : 1),
                 beyond = row_bytes(k) - NARROW_BYTES * row_inputs(k), /* of a column */
        wide = k->vec > 1 && beyond > 0 ? values * beyond / REGISTER_BYTES : 0;
    const double columns = stores_spans(k) ? of_column * columns_for_rows_beside(k) : 0;
    return BASE + (is_persistent(k) ? SHARE : 0) + of_element * elements + wide +
           (of_sum * accumulator_registers(s, k) + columns) * k->tiles;
}

/* Where later phases need more than one costly value of each element of a row in registers,
 * ptxas keeps those, and what they are made of. */
static double kept_results(const Scheduler *s, const Kernel *k)
{
    static const double OF_OPERATION = 0.6;
    const double again = repeated_operations(s, k) - s->target->division;
    double rows, columns;
    find_held(k, &rows, &columns);
    return rows > 0 && k->inner_count && !k->beside && again > 0
               ? OF_OPERATION * again * k->vec * k->tiles
               : 0;
}

/* The same of rows that a ring has brought; and of their single bytes, which all phases convert by
 * the same instruction. */
static double kept_from_ring(const Scheduler *s, const Kernel *k)
{
    if (has_parts(s->g, k) || k->keeps) return 0;
    double bytes = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        const bool again = load->phases & (load->phases - 1);
        bytes += again && is_row_vector(k, load) && is_resident(load) &&
                 dtype_info[load->dtype].bytes == 1;
    }
    const double beside = 1 - 1.0 / REGISTER_BYTES; /* the byte itself */
    return kept_results(s, k) + beside * bytes * k->vec * k->tiles;
}

/* Of what later phases need, as the kernel keeps it or as ptxas does. Where a window's rows keep
 * values, no later phase has operands to compute them anew. */
static double later_results(const Scheduler *s, const Kernel *k)
{
    static const double OPERANDS = 13;
    if (has_parts(s->g, k)) return add_more(s, k);
    if (k->keeps) return beyond_rows(k, kept_registers(s, k)) - OPERANDS;
    return kept_results(s, k);
}

/* What ptxas does for a GPU that the estimates were not fitted on may take more. */
static double doubt(const Scheduler *s, const Kernel *k)
{
    static const double UNFITTED = 1.4, SINGLE = 2.6;
    return s->fitted ? 1 : k->vec == 1 ? SINGLE : UNFITTED;
}

/* Of the places of tiles along several axes that a division finds: ptxas finds all of them first
 * where no tile is checked against the row's end, or where all vectors are held as f32 at once. */
static double place_registers(const Kernel *k)
{
    static const double CHECKED = 0.3, FULL = 2.2, WHOLE = 3.5;
    if (!has_several_columns(k) || (k->vec > 1 && !k->dense) || is_streamed(k)) return 0;
    const bool whole = k->dense && k->moments == MOMENTS_OF_THREADS;
    return (whole ? WHOLE : k->remainder == TILES_FULL ? FULL : CHECKED) * k->tiles;
}

/* That ptxas takes if it may. */
int natural_registers(const Scheduler *s, const Kernel *k)
{
    static const Needs needs = {.base = 19,
                                .moments = 14,
                                .phases = 13,
                                .row = 0.75,
                                .column = 0.5,
                                .sum = 1,
                                .vector = 0.7,
                                .tile = 1.15,
                                .kept_row = 0.1,
                                .kept_column = 0.55};
    double needed = add_needs(s, k, &needs) + later_results(s, k);
    needed *= doubt(s, k);
    const int cap = register_share(s, k, 1);
    needed += place_registers(k);
    if (k->beside) needed = beside_registers(s, k, 1.2, 1.2, 0.5);
    return needed < cap ? (int)needed : cap;
}

/* Without which it spills. */
int least_registers(const Scheduler *s, const Kernel *k)
{
    enum { UNFITTED = 28 }; /* what ptxas may need of neighbouring rows on other GPUs */
    static const Needs of_row = {.base = 10,
                                 .moments = 13,
                                 .phases = 10,
                                 .row = 0.67,
                                 .column = 0.54,
                                 .vector = 1.05,
                                 .ragged = 3.7,
                                 .tile = 0.94,
                                 .kept_row = 0.65,
                                 .kept_column = 0.55};
    static const Needs of_ring = {.base = 20,
                                  .moments = 5,
                                  .phases = 9,
                                  .row = 1.3,
                                  .column = 1.3,
                                  .lag = 2.4,
                                  .vector = 0.3,
                                  .tile = 1.7};
    static const Needs of_sums = {.base = 10,
                                  .moments = 11,
                                  .phases = 11,
                                  .row = 0.96,
                                  .column = 1.72,
                                  .sum = 1.5,
                                  .lag = 10,
                                  .vector = 1.43,
                                  .tile = 2.44};
    const double of_element = stores_spans(k) ? 1 : 0.75;
    if (k->beside)
        return (int)beside_registers(s, k, of_element, 1, 1) + (s->fitted ? 0 : UNFITTED);
    const bool ring = k->stages || is_refilled(k);
    const Needs *needs = k->accumulator_count ? &of_sums : ring ? &of_ring : &of_row;
    return (int)(add_needs(s, k, needs) * doubt(s, k) + add_more(s, k) +
                 (ring && !k->accumulator_count ? kept_from_ring(s, k) : 0));
}
