/* schedule/internal.h: what the files of the schedule stage share; nobody else includes it.
 *
 *   schedule/schedule.c           the choice: tries ways to cut the graph, maps them, keeps the
 * first that fits
 *   schedule/keys.c      the texts of schedules
 *   schedule/fit.c       the kernel that a complete schedule makes, and the schedule of a kernel
 *   schedule/levels.c    when each value can be computed, and when it is
 *   schedule/apart.c     row reductions that kernels with more rows read from the workspace
 *   schedule/cut.c       graph -> kernels: who computes what, and which values cross
 *   schedule/facts.c     what rules ask of a kernel
 *   schedule/fit_residency.c     where rows and columns live between phases
 *   schedule/convert.c   which elements are converted anew in each phase
 *   schedule/fit_ring.c      how much shared memory that takes, how many stages a ring has
 *   schedule/held_rows.c      which rows stay in a CTA's registers, in those of how many threads
 *   schedule/cluster_per_row.c    which rows have a cluster to themselves
 *   schedule/register_prefetch.c    which rows refill the registers of the one before
 *   schedule/stage_reuse.c     which rows hand their stage of the ring on
 *   schedule/narrow_f32.c    rows of f32 that are no whole vectors
 *   schedule/tuned_spread.c    what is asked for rows of 16 bits or f32 that more threads or CTAs
 * share better schedule/partial_vectors.c   what is asked for rows of 16 bits whose vectors are of
 * 4 or 8 bytes schedule/fit_unaligned.c    which rows pass through shared memory by blocks
 *   schedule/fit_bulk.c      which rows come to shared memory by one bulk copy
 *   schedule/column_vectors.c   where column vectors are: registers beside a ring, a tile ahead,
 * shared memory of few rows schedule/split_over_grid.c    rows that a group of CTAs reads anew in
 * each phase schedule/single_numbers.c    which reduction's kernel computes a number that is made
 * of several schedule/plan_size.c      what a plan would be too large for schedule/online.c which
 * reductions go with another, and what that allows schedule/gather.c     sums of which one element
 * counts schedule/fit_threads.c       a kernel's threads, vectors, tiles, cluster
 *   schedule/fit_split.c     which rows a cluster or a group shares, how many columns each of its
 * CTAs has schedule/vectors.c   how many vectors a thread has, and threads a row
 *   schedule/short_rows.c     rows for which a warp or a part of one is enough
 *   schedule/even_threads.c      threads that have all as much to do
 *   schedule/tiles.c      slices, whole tiles and those that are checked
 *   schedule/occupancy.c    how many CTAs ptxas makes room for
 *   schedule/max_ctas.c     how many CTAs an SM holds at most
 *   schedule/tuned.c    schedules that are asked for where the rules' are slower
 *   schedule/finish.c    the kernel that adds partials
 *   schedule/refusals.c   why a schedule that was asked for cannot be
 *   schedule/cost.c     how fast a plan is expected to be
 *   schedule/build_launch.c    grids, arguments, workspace: the LaunchPlan
 */
#ifndef FUSEC_SCHEDULING_H
#define FUSEC_SCHEDULING_H

#include "schedule/keys.h"
#include "schedule/plan.h"

typedef struct {
    Arena *arena;
    const Analysis *a;
    const Graph *g;
    const Target *target;
    Schedule forced;       /* of the kernel that is mapped, where there are several: ... */
    const Schedule *asked; /* ... those of all kernels that walk rows, in the order of `kernels` */
    int asked_count;
    bool ride;      /* reductions over rows, kept by column, ride on the row kernels: those over all
                       rows, or ... */
    AxisSet groups; /* ... those over the rows of each group, which is an element of these axes; 0:
                       none do */
    const bool *live;
    const bool *columned; /* by node id: something that it is made of has columns */
    bool *apart; /* by node id: made of row reductions that kernels with more rows do not compute:
                    schedule/apart.c */
    int *level, *cut, *home; /* by node id: see schedule/levels.c */
    bool *crosses;           /* the same */
    const int *tensor_of;    /* by parameter: how many before it are tensors */
    int *first_output,
        *next_output; /* the outputs of each node, in order: by node id, by output; -1: no more */
    int *slot_of;     /* by node id: the slot with the value, -1 none */
    LIST(Kernel) kernels;
    LIST(Slot) slots;
    const char *problem; /* why this cut cannot be mapped, NULL if it can */
} Scheduler;

/* One stage that no row hands on is no ring. */
static inline bool asks_no_ring(const Scheduler *s)
{
    return s->forced.stages == 1 && !s->forced.reuse;
}

/* How a reduction that is not computed inside a row is computed. */
typedef enum {
    BY_ROW,    /* it reduces exactly the columns: inside a row-walking kernel */
    BY_RIDING, /* over all rows of its operand: accumulated by the kernel that walks them */
    BY_COLUMN, /* over row axes: a kernel of its own whose threads keep their columns */
    BY_ITSELF  /* a row kernel of its own whose columns are the reduced axes */
} Way;

Way reduction_way(const Scheduler *s, Node n);
bool has_long_rows(
    const Scheduler *s); /* so long that what adds one number of each has a kernel of its own */
bool adds_numbers(const Scheduler *s); /* whether something adds one number of each row */
bool adds_long_rows(
    const Scheduler *s,
    Node n); /* whether a reduction by itself takes no column: where rows are long, such numbers */
AxisSet find_groups(Scheduler *s); /* of sums that may ride: see Scheduler.groups */
void find_reductions_apart(Scheduler *s);
/* Whether what has more rows than `n` takes from the workspace what n is made of. */
bool leaves_apart(const Scheduler *s, Node n, Node user);
void find_levels(Scheduler *s, bool late);
static inline bool computes_rows(const Scheduler *s, const Kernel *k)
{
    return k->columns == s->a->columns && !k->columnwise;
}
void find_homes(
    Scheduler *s); /* late: of reductions inside rows, once all kernels' roots are placed */
/* The reduction with a kernel by itself that can compute as well what single number is made of it;
 * 0: there is none. */
Node last_reduction(Scheduler *s, Node v);
/* "arguments: a kernel has 513, more than 512: ..." */
const char *too_many(Arena *arena, const char *what, int count, int most);
/* Why a plan would be too large, once its levels or its kernels' contents are known; NULL: it is
 * not. */
const char *find_depth(const Scheduler *s);
const char *find_crowd(const Scheduler *s); /* of what is placed so far */
const char *find_oversize(const Scheduler *s);
void cut_graph(Scheduler *s); /* s->problem: into too much */
void pair_reductions(const Scheduler *s, Kernel *k);
/* Which sums pick one element; and what is read by them alone, once it is known which phases need
 * what. */
Node place_of_pick(const Scheduler *s,
                   Node reduction); /* inside a row; 0: it takes all of the row */
void find_picks(const Scheduler *s, Kernel *k);
void leave_picked(Kernel *k);
bool map_kernel(Scheduler *s, Kernel *k);
/* schedule/fit.c: the same as its complete schedule says, without any rule; false: s->problem. */
bool fit_schedule(Scheduler *s, Kernel *k);
int narrowest(const Kernel *k);   /* bytes of an element that is read or stored as vectors */
int full_vector(const Kernel *k); /* elements of the widest access */
int find_vector(const Scheduler *s, const Kernel *k); /* ... of which a row is whole ones */
const char *shape_problem(const Scheduler *s,
                          const Kernel *k); /* why no CTA can be so; NULL: it can */
/* What follows of threads, vectors and tiles: slices of CTAs, which tiles are full. */
void set_slice(const Scheduler *s, Kernel *k);
void set_ragged(const Scheduler *s, Kernel *k);
void set_full_tiles(const Scheduler *s, Kernel *k);
void set_open_tile(const Scheduler *s, Kernel *k); /* by the rules */
bool may_leave_open(const Kernel *k);              /* the last tile, which alone is checked */
bool may_take_whole_moments(const Scheduler *s, const Kernel *k);
bool may_have_one_row(const Kernel *k);
/* Whether several CTAs are to share a row, of which fit_homes() has tried what one CTA makes;
 * whether so many are worth trying; whether what they made leaves column vectors to be read in each
 * phase, so that more are. */
bool wants_cluster(const Scheduler *s, const Kernel *k);
bool may_share(const Scheduler *s, const Kernel *k, int ctas);
bool leaves_columns(const Kernel *k);
void map_finish(const Scheduler *s, Kernel *k); /* after the kernel whose partials it adds */
void set_parts(Kernel *k); /* of the rows of each group, where some row axes are kept */
/* CTAs, or groups of those that share a row, of the largest grid of a persistent kernel: mostly
 * those that live at once. Of a kernel that sums rows by groups, the most parts of one. */
int64_t resident_ctas(const Scheduler *s, const Kernel *k);
int find_live_ctas(const Scheduler *s, const Kernel *k); /* ... of an SM, by the rules */
/* Keys that the kernels do not have as asked are no schedule: s->problem. */
bool honours_keys(Scheduler *s);
/* Why a graph's rows did not become the family that was asked for. */
const char *missing_reason(Scheduler *s);
const char *missing_bulk(const Scheduler *s);  /* why no row comes by one bulk copy */
const char *missing_reuse(const Scheduler *s); /* why none hands its stage on */
/* Why no row can have so many CTAs as were asked for; NULL: it depends on the row. */
const char *impossible_cluster(const Scheduler *s);
/* The graph's name, with what the kernel does, and which of several of a plan it is. */
const char *kernel_name(Arena *arena, const Graph *g, const Plan *plan, int index, bool strided);
/* schedule/join_parts.c: the plans of a graph's parts as one. */
Plan *join_plans(Arena *arena, const Analysis *a, Plan *const *plans);
void build_launch(Scheduler *s, Plan *plan);

DType slot_dtype(Type type);

/* ---- schedule/facts.c ---- */

enum { WARP = 32, MOST_THREADS = 1024, MAX_VECTOR = 8 };
enum {
    HELD_ELEMENTS = 16
}; /* that a thread has at most where it holds column vectors beside a ring */
enum { SUM_THREADS = 512 }; /* of a CTA with accumulators: the fewer CTAs, the fewer partials */

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a ? (a - 1) / b + 1 : 0;
}
int64_t column_count(const Scheduler *s, const Kernel *k);
bool has_dynamic_columns(const Scheduler *s,
                         const Kernel *k); /* too many for int, or known at launch */
bool has_column_accumulators(const Kernel *k);
double accumulator_registers(const Scheduler *s, const Kernel *k); /* of one column */
bool is_row_vector(const Kernel *k, const Load *load);
bool is_column_vector(const Kernel *k, const Load *load);
int64_t column_bytes(const Kernel *k,
                     int rows);      /* of a column: of so many rows, and what they share */
int row_inputs(const Kernel *k);     /* row vectors */
int column_vectors(const Kernel *k); /* that all rows share */
/* Whether an SM's caches and shared memory hold `columns` of so many rows and of the column
 * vectors. */
bool is_cached(const Scheduler *s, const Kernel *k, int rows, int64_t columns);
bool reads_f16(const Kernel *k);    /* some vector */
bool is_f32_row(const Kernel *k);   /* one input of 4 bytes */
bool has_f32_rows(const Kernel *k); /* some row is of f32 */
DType row_dtype(const Kernel *k);   /* of the last of its inputs that have rows */
bool keeps_rows_of(const Kernel *k,
                   DType dtype);     /* all are of that type, and read in more than one phase */
bool is_plain_norm(const Kernel *k); /* little more than a layer norm */
bool is_scaled_by_sum(const Scheduler *s,
                      const Kernel *k); /* one input, by what its row sums up to and by weights of
                                           as many bytes or twice as many: rmsnorm */
bool is_stored_row(const Store *store);
int stored_rows(const Kernel *k);                    /* tensors */
int fewest_ctas(int64_t columns, int64_t slice);     /* that share so many, a power of two */
int threads_of(int64_t columns, int each, int most); /* whole warps */
int narrowest_stored(const Kernel *k);               /* bytes of an element */
bool has_short_functions(const Scheduler *s,
                         const Kernel *k); /* for each element, in f32, and maybe divisions */
bool passes_in(const Scheduler *s, const Kernel *k,
               int phases);                             /* little is computed in so many phases */
bool passes_twice(const Scheduler *s, const Kernel *k); /* in two, and few numbers meet */
bool has_light_phases(const Scheduler *s,
                      const Kernel *k); /* and column vectors are narrow, or cost no more */
bool has_light_rows(const Scheduler *s, const Kernel *k); /* and both read all rows */
bool has_plain_rows(const Scheduler *s, const Kernel *k); /* and those are of whole vectors */
bool has_short_arithmetic(const Scheduler *s,
                          const Kernel *k); /* and no divisions but by what is inverted once */
bool compares_places(const Scheduler *s, const Kernel *k); /* uses the index of a column */
bool has_moments(const Scheduler *s, const Kernel *k);     /* a mean goes with its squares */
bool has_wide_columns(const Kernel *k);   /* column vectors of wider elements than rows */
bool has_fast_memory(const Scheduler *s); /* more bytes a ns for each SM than an H100 */
bool has_cheap_columns(const Scheduler *s, const Kernel *k); /* or cost no more than narrow ones */
bool shares_wide_columns(const Scheduler *s,
                         const Kernel *k); /* and a cluster is to have such rows */
bool exchanges_often(const Kernel *k);     /* several times a row, or more than a pair */

/* ---- schedule/fit_residency.c ---- */

/* Rows that registers keep for the next one: how many columns a CTA has at most, and
 * registers of a thread that hold them. */
enum { REFILL_SLICE = 13312, REFILL_REGISTERS = 48, MOST_SHORT_REFILLED = 262144 };
/* as many columns as the largest cluster's registers hold, of 16 bits, and of a sum of two such */
enum {
    LONGEST_REFILLED = 786432,
    LONGEST_SUM_REFILLED = 524288,
    LONGEST_F32_SUM_REFILLED = 196608
};
/* Where a row's vectors live between their load and their last use, and the column vectors that
 * all rows share. From left to right it takes fewer registers. */
typedef enum { IN_REGISTERS, IN_STAGES, IN_MEMORY } Home;
/* Of all loads; whether there is a ring, and what has one value a row passes through it. */
void set_homes(Kernel *k, bool ring, bool scalars, Home rows, Home columns);
/* Whether all of a row is read before its first reduction, or (with lag) the next row's. */
bool is_read_in_time(const Kernel *k, Home rows);
int estimate(const Scheduler *s, const Kernel *k); /* registers a thread needs ... */
int register_cap(const Scheduler *s, int threads); /* ... and may have */
bool may_fetch_rows(const Kernel *k);    /* threads can copy their vectors to shared memory */
bool may_fetch_scalars(const Kernel *k); /* and what has one value a row, if anything has */
bool wants_ring(const Scheduler *s, const Kernel *k);
bool keep_nothing(const Scheduler *s, Kernel *k); /* all is read when it is needed */
bool fit_homes(const Scheduler *s, Kernel *k);    /* once its row is shared out to threads */

/* ---- schedule/convert.c ---- */

bool repeats_costly(const Scheduler *s,
                    const Kernel *k); /* a later phase would compute a sigmoid or the like again */
bool rewidens_row(const Scheduler *s, const Kernel *k);
void rewiden(Kernel *k, bool halves); /* sets it for the loads that gain by it */
void convert_bf16(Kernel *k);
void convert_f16(Kernel *k, bool once);

/* ---- schedule/vectors.c ---- */

bool is_light(const Scheduler *s,
              const Kernel *k); /* a row of up to 2 bytes a column, and nothing else is read */
bool fills_pairs(const Scheduler *s,
                 const Kernel *k); /* two CTAs, of which an SM holds two, a row */
int wanted_vectors(const Scheduler *s, const Kernel *k,
                   int64_t vectors);                   /* of full width, a thread */
int most_threads(const Scheduler *s, const Kernel *k); /* a long row's CTA */
int uneven_threads(const Scheduler *s, const Kernel *k,
                   int64_t vectors); /* where those are best; 0: nowhere else */

/* ---- schedule/occupancy.c ---- */

void set_wanted_ctas(const Scheduler *s, Kernel *k); /* what ptxas is told to make room for */

/* ---- schedule/max_ctas.c ---- */

void set_limit(const Scheduler *s, Kernel *k); /* CTAs that an SM holds at most */
void keep_to(const Scheduler *s, Kernel *k,
             int limit);           /* ... so many, by shared memory that it does not use; 0: any */
bool takes_limit(const Kernel *k); /* whether it may have one */
bool honours_limit(
    const Scheduler *s,
    const Kernel *k); /* it has the one that was asked for: all that fit, where that is more */

/* ---- schedule/short_rows.c ---- */

bool is_short_row(const Scheduler *s, const Kernel *k,
                  int64_t full); /* of so many vectors of full width */
int short_row_threads(const Scheduler *s, const Kernel *k, int64_t vectors, int64_t full);
int short_row_cta(const Scheduler *s, const Kernel *k,
                  int64_t full); /* threads of a CTA of such rows */

/* ---- schedule/even_threads.c ---- */

void even_out(const Scheduler *s, Kernel *k,
              int64_t vectors); /* so many vectors a row or slice, among its threads */
bool pairs_teams(const Scheduler *s,
                 const Kernel *k); /* two rows a CTA, though they are long for that */
bool copies_two_sums(const Scheduler *s, const Kernel *k);
int summed_threads(const Scheduler *s,
                   const Kernel *k); /* of a row with sums over rows; 0: as many as others have */
int threads_of_bytes(
    const Scheduler *s,
    const Kernel *k); /* of a long row that is stored as bytes; 0: as many as others have */
void even_out_streams(Kernel *k, int64_t vectors); /* the same of rows that are read anew */
bool has_even_moments(const Scheduler *s,
                      const Kernel *k); /* they meet without counts and divisions */

/* ---- schedule/fit_ring.c ---- */

int64_t staged_bytes(const Scheduler *s, const Kernel *k,
                     bool hoisted);                          /* a stage, or what all rows share */
int64_t exchange_bytes(const Scheduler *s, const Kernel *k); /* of what threads tell each other */
int64_t static_bytes(const Scheduler *s,
                     const Kernel *k); /* variables declared as shared, at most */
int long_slices(const Scheduler *s,
                const Kernel *k); /* of a row, each a stage over 32 KB; 0: not so */
bool has_long_slices(const Scheduler *s,
                     const Kernel *k);                    /* the kernel's cluster is of that size */
bool fills_largest(const Scheduler *s, const Kernel *k);  /* cluster, with few threads */
bool copies_largest(const Scheduler *s, const Kernel *k); /* cluster, with a copy warp */
bool copies_f32_sum(const Scheduler *s, const Kernel *k); /* whether a copy warp is better */
int64_t sums_f32_slice(const Scheduler *s,
                       const Kernel *k); /* columns of a CTA; 0: not by clusters */
bool groups_f32_sum(const Scheduler *s,
                    const Kernel *k); /* longer than two fit in the largest cluster */
int full_slice_threads(const Scheduler *s,
                       const Kernel *k);      /* where few are best; 0: not such a slice */
bool fit_ring(const Scheduler *s, Kernel *k); /* stages, shared memory; maybe fewer CTAs an SM */

/* ---- schedule/fit_unaligned.c ---- */

bool passes_by_blocks(const Scheduler *s, const Kernel *k); /* if there is room */
int block_slice(const Scheduler *s, const Kernel *k);       /* columns of a CTA then; 0: all */
int block_vectors(const Scheduler *s, const Kernel *k);     /* of 8 elements, a thread */
int pair_vectors(
    const Scheduler *s,
    const Kernel *k); /* the same of rows of two tensors; 0: it is no such row, or short */
int block_ctas(const Scheduler *s, const Kernel *k); /* that ptxas should make room for; 0: any */
bool fit_blocks(const Scheduler *s, Kernel *k);      /* whether there is room, where rows pass so */

/* ---- schedule/column_vectors.c ---- */

void set_late(Kernel *k); /* column vectors that later phases read, and those a tile ahead */
void set_few(const Scheduler *s, Kernel *k); /* ... and those of few rows, in shared memory */
bool may_read_early(const Kernel *k);
void place_late(Kernel *k, bool early); /* a tile ahead, all of them */
/* Of launches of up to so many CTAs; false: there is nothing that can come so. */
bool place_few(const Scheduler *s, Kernel *k, int ctas);
int column_keepers(const Scheduler *s,
                   const Kernel *k); /* CTAs that share such a row; 0: it is not of them */
int keeper_threads(const Kernel *k, int64_t vectors); /* for so many vectors a CTA */
int keeper_stages(int64_t stage_bytes);

/* ---- schedule/stage_reuse.c ---- */

bool is_read_at_once(const Kernel *k); /* all of a row, when its turn comes */
bool may_reuse(const Kernel *k);
bool wants_reuse(const Scheduler *s, const Kernel *k);
int stages_of_reuse(const Kernel *k);

/* ---- schedule/pacing.c ---- */

int pacing_ctas(
    const Scheduler *s,
    const Kernel *k); /* that share a row which is asked for at a pace; 0: it is of others */
int pacing_threads(const Scheduler *s, const Kernel *k,
                   int ctas); /* of each, where so many share a row */
bool pacing_holds_columns(const Scheduler *s, const Kernel *k); /* column vectors, in registers */
int pacing_lag(const Scheduler *s, const Kernel *k);
bool wants_pace(const Scheduler *s, const Kernel *k);
int64_t paced_bytes(const Kernel *k, int64_t traffic); /* of a row, for which its pace makes time */
int paced_from(const Kernel *k); /* times what L2 holds: fewer bytes have no pace */

/* ---- schedule/narrow_f32.c ---- */

int narrow_f32_slice(
    const Scheduler *s,
    const Kernel *k); /* columns of a CTA of a cluster that has a row; 0: others say */

/* schedule/odd_rows.c: rows of single elements, which a copy warp brings */
bool is_odd(const Scheduler *s,
            const Kernel
                *k); /* whether a kernel has the cluster that these get: another may be asked for */
bool is_odd_at_pace(const Scheduler *s, const Kernel *k); /* of those that is_odd tells */
int odd_ctas(const Scheduler *s, const Kernel *k); /* that share a row; 0: it is not one of those */
int odd_threads(const Scheduler *s, const Kernel *k,
                int ctas);                                /* of each, where so many share a row */
int odd_ctas_per_sm(const Scheduler *s, const Kernel *k); /* 0: as many as fit */
int odd_stages(const Scheduler *s, const Kernel *k);      /* 0: as elsewhere */

/* ---- schedule/split_over_grid.c ---- */

/* Has a group share a row that each phase reads anew, where that is better; whether it has. */
bool share_streams(const Scheduler *s, Kernel *k, bool on_chip);

/* ---- schedule/fit_bulk.c ---- */

bool takes_bulk(const Scheduler *s, const Kernel *k); /* its rows by one bulk copy each */
int bulk_slice(const Kernel *k);                      /* columns of a CTA then, at most */
int bulk_threads(const Kernel *k, int64_t vectors);   /* for so many vectors a CTA */
int bulk_ctas(const Scheduler *s, const Kernel *k);   /* an SM */
bool fit_bulk(const Scheduler *s, Kernel *k);         /* whether there is room */
bool has_fewer_ctas(const Kernel *k);                 /* than rows, as was asked for */
bool can_take_bulk(const Scheduler *s, const Kernel *k);
bool hold_bulk(const Scheduler *s, Kernel *k); /* makes room; false: there is none */

/* ---- schedule/held_rows.c ---- */

bool stores_bytes(const Scheduler *s,
                  const Kernel *k); /* three phases read a row that is stored as bytes */
bool holds_bytes_long(const Scheduler *s,
                      const Kernel *k); /* a row stored as bytes by few CTAs, not held by many */
bool narrows_f32_long(const Scheduler *s,
                      const Kernel *k); /* the same of f32, whose registers the next row refills */
bool rereads_bytes(const Scheduler *s, const Kernel *k); /* a long row of bytes, in each phase */
int held_threads(const Scheduler *s,
                 const Kernel *k); /* that keep a long row in registers; 0: none */
bool reads_again(const Scheduler *s, const Kernel *k); /* each phase reads the row */

/* ---- schedule/cluster_per_row.c ---- */

int few_vector_ctas(const Scheduler *s,
                    const Kernel *k); /* that share a row with two vectors a thread; 0: none */
int single_slice(const Scheduler *s,
                 const Kernel *k); /* columns of a CTA whose cluster has a single row; 0: none */
bool fills_warps(int64_t columns, int ctas); /* CTAs that share them, with four vectors a thread */
bool fills_slices_of_f32(int64_t columns);   /* of as many CTAs as have up to 4096 each */

/* ---- schedule/tuned.c ---- */

/* A schedule that is asked for; 0: as the rules have it. */
typedef struct {
    Family family;
    int threads, rows, cluster, stages, per_sm, reuse;
} Advice;

static const Advice no_advice;

const char *
advised_schedule(const Scheduler *s); /* once the rules have mapped all kernels; NULL: none */

/* ---- schedule/tuned_spread.c ---- */

Advice spread_advice(const Scheduler *s, const Kernel *k);

/* ---- schedule/partial_vectors.c ---- */

Advice partial_advice(const Scheduler *s, const Kernel *k);

/* ---- schedule/register_prefetch.c ---- */

bool rings_f32_moments(
    const Scheduler *s,
    const Kernel *k); /* such rows pass through a ring, though registers might hold them */
bool may_refill(const Scheduler *s,
                const Kernel *k); /* a row's registers with the next, in a cluster */

#endif
