/* schedule/instructions.c: how many instructions a thread takes for its part of a row, by the model
 * of schedule/cost.c. What one costs is the target's (targets/keys.def). */
#include "schedule/internal.h"

#include <math.h>

double doublings(double count)
{
    return count > 1 ? log2(count) : 0;
}

/* Vectors that a thread reads and writes for each of its tiles. What is in shared memory, or is to
 * be read again, each phase reads. */
static double vector_accesses(const Kernel *k)
{
    double count = 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (load->access != ACCESS_VECTOR) continue;
        int phases = __builtin_popcountll(load->phases);
        if (is_column_vector(k, load))
            count += is_resident(load) ? (is_persistent(k) ? 0 : 1) : phases;
        else
            count += is_resident(load) ? 1 + (k->stages > 0) : phases;
    }
    for (int i = 0; i < k->store_count; i++) count += k->stores[i].access == ACCESS_VECTOR;
    return count;
}

/* Instructions by which a thread's vector of rows meets the other threads'. */
static double beside_exchange(const Kernel *k)
{
    enum { SHUFFLE = 2, SLOT = 2, MOMENTS = 10, BARRIER = 16 };
    double count = 0;
    if (!k->beside || k->phases < 2) return 0;
    const int warps = warps_of_row(k);
    for (int i = 0; i < k->inner_count; i++) {
        const int slot = k->inner[i].partner.id ? MOMENTS : SLOT;
        count += SHUFFLE * doublings(k->lanes) * k->vec;
        if (warps > 1) count += slot * warps * k->vec + BARRIER;
    }
    return count;
}

/* Instructions by which a thread finds the places of a tile's vectors along several column axes. */
static double place_instructions(const Kernel *k)
{
    static const double OF_PLACE = 16;
    const bool apart = has_several_columns(k) && !k->beside && !k->contiguous;
    return apart ? OF_PLACE * vector_accesses(k) : 0;
}

/* Operations that convert a vector's narrow elements for each phase that reads them anew, where
 * such phases do much else; elsewhere vector_access has them. */
static double conversions(const Scheduler *s, const Kernel *k)
{
    double count = 0;
    for (int i = 0; i < k->load_count && has_parts(s->g, k); i++) {
        const Load *load = &k->loads[i];
        const bool stays = is_resident(load) || is_column_vector(k, load);
        if (load->access == ACCESS_VECTOR && !stays && dtype_info[load->dtype].bytes < 4)
            count += k->vec * (__builtin_popcountll(load->phases) - 1);
    }
    return count;
}

/* Columns after which a load of single elements has another one. */
static double period_of(const Scheduler *s, const Kernel *k, const Load *load)
{
    const AxisSet own = load->axes & k->columns;
    AxisSet behind = k->columns;
    for (AxisSet left = own; left; left &= left - 1) behind &= ~(((left & -left) << 1) - 1);
    return (double)axes_size(&s->a->sizes, behind);
}

/* Of a tile whose vectors run from one line into the next: what each line has of its own is read
 * for a vector's first and last element, of which each takes one, or for each element. Of kernels
 * with sums this was not compared with measurements. */
static double line_accesses(const Scheduler *s, const Kernel *k)
{
    static const double READ = 6, CHOOSE = 0.7;
    double count = 0;
    if (!is_dense(k) || k->inner_count || k->accumulator_count) return 0;
    for (int i = 0; i < k->load_count; i++) {
        const Load *load = &k->loads[i];
        if (load->access != ACCESS_ELEMENT) continue;
        const bool two = period_of(s, k, load) >= k->vec;
        count += two ? 2 * READ + CHOOSE * k->vec : READ * k->vec;
    }
    return count;
}

/* Instructions of a thread for its part of a row. */
double thread_instructions(const Scheduler *s, const Kernel *k)
{
    const Target *t = s->target;
    double tiles = is_streamed(k)
                       ? (double)column_count(s, k) / k->cluster / k->threads_per_row / k->vec
                       : k->tiles;
    return beside_exchange(k) + window_checks(k) +
           tiles * (place_instructions(k) + line_accesses(s, k) +
                    t->vector_access * (k->vec == 1 && !k->beside ? t->single : 1) *
                        vector_accesses(k) +
                    t->operation * (conversions(s, k) + element_operations(s, k) * k->vec) *
                        computed_share(s, k));
}

double share_of_places(const Scheduler *s, const Kernel *k)
{
    const double places = place_instructions(k);
    return places / (places + s->target->operation * element_operations(s, k) * k->vec);
}

/* Instructions with which a thread adds what teams have of its columns at the end of a group's
 * part; its share of one of the part's rows. */
static double part_end(const Scheduler *s, const Kernel *k)
{
    static const double SUM = 3, MOMENTS = 28, NEXT = 40; /* NEXT: to go to the next part */
    double values = 0;
    if (!k->kept || !k->part_rows) return 0;
    const double rows = likely_part_rows(s, k);
    if (!k->accumulator_count) return NEXT * k->teams / rows;
    for (int i = 0; i < k->accumulator_count; i++)
        if (k->accumulators[i].per_column && !k->accumulators[i].mean.id)
            values += k->accumulators[i].squares.id ? MOMENTS : SUM;
    return values * k->tiles * k->vec * k->teams / rows;
}

/* Instructions with which each thread finds what its row has once, in kernels without sums. */
static double row_values(const Kernel *k)
{
    static const double VALUE = 5, DIVISION = 18; /* DIVISION: of a row's number, for its index */
    double count = 0;
    bool divides = false;
    if (k->inner_count || k->accumulator_count) return 0;
    for (int i = 0; i < k->load_count; i++) {
        const AxisSet of_row = k->loads[i].axes & k->rows;
        if (k->loads[i].axes & column_axes(k)) continue;
        count += VALUE;
        divides |= of_row && of_row != k->rows;
    }
    return count + divides * DIVISION;
}

/* Instructions of a thread for a row, with those by which a row's threads meet and go to the next
 * row, however few elements each has. */
double row_instructions(const Scheduler *s, const Kernel *k)
{
    static const double LAG = 1.7; /* meetings that two rows at once are worth */
    return thread_instructions(s, k) + row_values(k) + part_end(s, k) +
           s->target->meeting * (k->phases - 1 + LAG * k->lag);
}
