/* schedule/internal.h: what the files of the schedule stage share; nobody else includes it.
 *
 *   schedule.c        the choice: cuts the graph, chooses each kernel's schedule, builds the plan
 *   levels.c, apart.c, cut.c, columns.c, phases.c, finished.c, join_parts.c, plan_size.c
 *                     the work: which kernels there are, what each computes, what crosses
 *   online.c, gather.c, window.c, facts.c
 *                     what is known of a kernel's work
 *   keys.def, keys.c  the keys of a schedule, and its texts
 *   propose.c, propose_rings.c
 *                     the schedules of a kernel that are worth a look
 *   choose.c          the best of them: a measured one of the target's table, or the model's
 *   table.c           the target's table
 *   cost.c, instructions.c, access.c, operations.c
 *                     the model
 *   fit.c, shape.c, homes.c, keep.c, convert.c, shared_memory.c, max_ctas.c, registers.c
 *                     the kernel that a schedule makes, or why it cannot be
 *   refusals.c        why a schedule that was asked for cannot be
 *   alternatives.c, walkers.c, explain_cuts.c
 *                     the other schedules of a plan; its own as a text; why it has several kernels
 *   finish.c, build_launch.c
 *                     the kernel that adds partials; grids, arguments, workspace */
#ifndef FUSEC_SCHEDULING_H
#define FUSEC_SCHEDULING_H

#include "schedule/keys.h"
#include "schedule/plan.h"

/* What cost.c knows of one kernel's elements, which its schedules with such vectors compute. */
typedef struct {
    const bool *of; /* its `computed` */
    int vec;
    double once, again, costly;
} OperationCache;

typedef struct {
    Arena *arena;
    const Analysis *a;
    const Graph *g;
    const Target *target;
    bool fitted; /* estimates of registers are known to be right for its architecture */
    OperationCache *operations;

    /* the schedule of the kernel that is mapped, and those of all kernels that walk rows, in the
     * order of `kernels` */
    Schedule forced;
    const Schedule *asked;
    int asked_count;
    /* what a schedule that is tried does not tell follows from what it tells: fit_schedule()
     * puts it in `forced` */
    bool derive;
    bool taken;            /* some kernel is as `forced` asks */
    Rejection refused_row; /* a row's schedule of the target's table that cannot be, and why */

    /* how the graph is cut: whether reductions over rows, kept by column, ride on the row kernels;
     * those over all rows (groups 0), or those over the rows of each group, which is an element of
     * these axes; whether sums of one number of each row, and reductions over parts of a row, have
     * kernels of their own */
    bool ride, apart_sums, apart_parts;
    AxisSet groups;

    /* by node id */
    const bool *live;
    const bool *columned; /* something that it is made of has columns */
    bool *apart; /* made of row reductions that kernels with more rows do not compute: apart.c */
    int *level, *cut, *home; /* levels.c */
    bool *crosses;           /* the same */
    Node *finished; /* of what is made of reductions that end together, and not in rows: the first
                       of them; 0: it is made of others: finished.c */
    bool *passed;   /* which of these values other kernels read */
    Node *left_by;  /* of what is made of reductions in rows alone, and worth storing: one of those,
                       whose kernel leaves it for kernels that do not compute them; else 0 */
    int *slot_of;   /* the slot with the value, -1: none */
    int *first_output; /* the outputs of each node, in order; -1: none */

    int *next_output;     /* by output; -1: no more */
    const int *tensor_of; /* by parameter: how many before it are tensors */
    LIST(Kernel) kernels;
    LIST(Slot) slots;
    const char *problem; /* why this cut cannot be mapped, NULL if it can */
} Scheduler;

enum { WARP = 32, MOST_THREADS = 1024, MAX_VECTOR = 8 };
enum { MOST_TEAMS = 15 };   /* of more than a warp: each has a barrier beside the CTA's */
enum { SUM_THREADS = 512 }; /* of a CTA with accumulators: the fewer CTAs, the fewer partials */

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a ? (a - 1) / b + 1 : 0;
}

/* ---- schedule.c ---- */

Scheduler *new_scheduler(Arena *arena, const Analysis *a, const Target *target);
/* One to ask about a plan that is made. */
Scheduler reading_scheduler(Arena *arena, const Analysis *a, const Target *target);
/* explain_cuts.c: says for every reduction that ends a kernel why it does, once for those with the
 * same reason. */
void explain_cuts(Scheduler *s, Plan *plan);
/* Cuts the graph as it was cut for a kernel. False: s->problem. */
bool cut_alike(Scheduler *s, const Kernel *k);
/* Chooses the schedules of all kernels; whether some kernel is as that asks. */
bool choose_as(Scheduler *s, const Schedule *asked);

/* ---- the work ---- */

/* How a reduction that is not computed inside a row is computed. */
typedef enum {
    BY_ROW,    /* it reduces the columns, or part of them: inside a row-walking kernel */
    BY_RIDING, /* over all rows of its operand: accumulated by the kernel that walks them */
    BY_COLUMN, /* over row axes: a kernel of its own whose threads keep their columns */
    BY_ITSELF  /* a row kernel of its own whose columns are the reduced axes */
} Way;

Way reduction_way(const Scheduler *s, Node n);
/* Whether something is summed over rows and keeps the columns; adds one number of each row. */
bool has_sums_over_rows(const Scheduler *s);
bool has_parts_of_rows(const Scheduler *s); /* that are reduced inside rows */
bool adds_numbers(const Scheduler *s);
/* Whether a reduction by itself takes no column: where apart_sums says so, such numbers. */
bool adds_long_rows(const Scheduler *s, Node n);
AxisSet find_groups(Scheduler *s); /* of sums that may ride: see Scheduler.groups */
void find_reductions_apart(Scheduler *s);
/* Whether what has more rows than `n` takes from the workspace what n is made of. */
bool leaves_apart(const Scheduler *s, Node n, Node user);
void find_levels(Scheduler *s, bool late);
/* Whether one kernel computes both; of sums over rows, whether one adds their partials too. */
bool end_together(const Scheduler *s, Node a, Node b);
void find_finished(Scheduler *s); /* once homes are known: see Scheduler.finished */
void find_left(Scheduler *s);     /* once they are final: see Scheduler.left_by */
/* Whether a finish kernel, whose sums end with `own`, loads a value. */
bool is_finish_load(const Scheduler *s, Node own, Node n);
/* Adds to `needed`, what it stores, all that it computes and loads for that. */
void find_finish_needs(const Scheduler *s, Node own, bool *needed);
void find_finish_contents(Scheduler *s, int kernel);
void add_load(Scheduler *s, int kernel, Node n);
static inline bool is_tensor(const Graph *g, Node n)
{
    return node(g, n)->op == OP_PARAM && !g->params.data[node(g, n)->param].scalar;
}
static inline bool computes_rows(const Scheduler *s, const Kernel *k)
{
    return k->columns == s->a->columns && !k->columnwise;
}
/* Late: of reductions inside rows, once all kernels' roots are placed. */
void find_homes(Scheduler *s);
/* "arguments: a kernel has 513, more than 512: ..." */
const char *too_many(Arena *arena, const char *what, int count, int most);
/* Why a plan would be too large, once its levels or its kernels' contents are known, or of what is
 * placed so far; NULL: it is not. */
const char *find_depth(const Scheduler *s);
const char *find_crowd(const Scheduler *s);
const char *find_oversize(const Scheduler *s);
void cut_graph(Scheduler *s); /* s->problem: into too much */
void pair_reductions(const Scheduler *s, Kernel *k);
void pair_accumulators(const Scheduler *s, Kernel *k);
void find_kernel_phases(Scheduler *s, Kernel *k); /* once reductions are paired */
void find_load_phases(Scheduler *s, Kernel *k);
/* Which sums pick one element; and what is read by them alone, once it is known which phases need
 * what. place_of_pick: inside a row; 0: it takes all of the row. */
Node place_of_pick(const Scheduler *s, Node reduction);
void find_picks(const Scheduler *s, Kernel *k);
void leave_picked(Kernel *k);
DType slot_dtype(Type type);
/* Columns of a kernel that walks values with these axes; of one that stores a value. */
AxisSet columns_of(const Scheduler *s, AxisSet axes);
AxisSet columns_of_store(const Scheduler *s, Node v);

/* ---- facts.c ---- */

int64_t column_count(const Scheduler *s, const Kernel *k);
bool has_dynamic_columns(const Scheduler *s, const Kernel *k); /* too many for int, or open */
bool has_column_accumulators(const Kernel *k);
double accumulator_registers(const Scheduler *s, const Kernel *k); /* of one column */
bool is_row_vector(const Kernel *k, const Load *load);
bool is_column_vector(const Kernel *k, const Load *load);
int row_inputs(const Kernel *k);        /* row vectors */
int column_vectors(const Kernel *k);    /* that all rows share */
bool gains_by_walking(const Kernel *k); /* rows, one after the other */
bool is_stored_row(const Store *store);
bool has_moments(const Scheduler *s, const Kernel *k); /* a mean goes with its squares */
bool has_wide_columns(const Kernel *k); /* column vectors of wider elements than rows */

/* ---- propose.c, choose.c, alternatives.c ---- */

/* Shows the kernels of all schedules that are worth a look; s->forced: what is asked for;
 * tune_only: also those that the model is not to choose. Gives how many. */
typedef void Consider(void *data, const Kernel *k, const Schedule *schedule);
int propose(Scheduler *s, const Kernel *k, bool tune_only, Consider *consider, void *data);
bool choose_kernel(Scheduler *s, Kernel *k); /* false: s->problem */
/* A plan's kernels that walk rows, as they were cut, by their place; NULL: no more. The place of
 * the one that reads most; -1: none walks rows. */
const Kernel *walker_at(Arena *arena, const Plan *plan, int place);
int main_walker(Arena *arena, const Plan *plan);

/* ---- table.c ---- */

const char *class_of(const Scheduler *s, const Kernel *k); /* as tables name it, in the arena */
const char *row_type(const Kernel *k);
const char *find_tuned(const Scheduler *s, const Kernel *k); /* a schedule's text; NULL: none */

/* ---- operations.c ---- */

double element_operations(const Scheduler *s, const Kernel *k); /* in those of an addition */
double repeated_operations(const Scheduler *s,
                           const Kernel *k); /* costly ones that later phases need again */

/* ---- access.c ---- */

/* How many times as many sectors L2 reads, and the share of memory's rate that is left. */
double wasted_sectors(const Scheduler *s, const Kernel *k);
double share_of_rate(const Scheduler *s, const Kernel *k);
/* How many times as long memory and L2 take: for short runs of elements, and for all reasons. */
double short_runs(const Scheduler *s, const Kernel *k);
double access_slowdown(const Scheduler *s, const Kernel *k);

/* ---- instructions.c ---- */

double doublings(double count); /* log2; 0: there is none */
/* Of a thread for its part of a row; with those by which a row's threads meet and go on to the next
 * row. */
double thread_instructions(const Scheduler *s, const Kernel *k);
double row_instructions(const Scheduler *s, const Kernel *k);
/* Elements of axes as the program declares them, which says what launches are likely to have,
 * though they may have any; 0: it does not say. Of a group's rows, those of one part. */
int64_t declared_size(const Scheduler *s, AxisSet axes);
double likely_part_rows(const Scheduler *s, const Kernel *k);
double share_of_places(const Scheduler *s, const Kernel *k); /* of them, to find its vectors */

/* ---- cost.c ---- */

double kernel_time(const Scheduler *s, const Kernel *k); /* ns, for rows that are many */
/* Of all kernels; `few`: of so few rows that launches count. */
double plan_time(const Scheduler *s, bool few);
int64_t ring_bytes(const Target *target); /* of rows that an SM's rings are to hold */

/* ---- fit.c ---- */

/* Makes a kernel of the schedule in s->forced; false: s->problem. */
bool fit_schedule(Scheduler *s, Kernel *k);
Schedule read_schedule(const Scheduler *s, const Kernel *k); /* the complete one that makes it */
void map_finish(const Scheduler *s, Kernel *k); /* after the kernel whose partials it adds */

/* ---- shape.c ---- */

int narrowest(const Kernel *k);   /* bytes of an element that is read or stored as vectors */
int full_vector(const Kernel *k); /* elements of the widest access */
int find_vector(const Scheduler *s, const Kernel *k); /* ... of which a row is whole ones */
AxisSet find_dense(const Scheduler *s,
                   const Kernel *k); /* columns that are taken for one; 0: none */
/* Columns whose places one of two entries need not find; 0: there is one entry. */
AxisSet find_contiguous(const Scheduler *s, const Kernel *k);
const char *shape_problem(const Scheduler *s, const Kernel *k); /* why no CTA can be so, or NULL */
bool has_too_many_columns(Scheduler *s, const Kernel *k);       /* s->problem */
bool may_have_one_row(const Kernel *k);
void set_slice(const Scheduler *s, Kernel *k);
int64_t columns_of_cta(const Scheduler *s, const Kernel *k); /* at most, of a row */
bool checks_full_tiles(const Scheduler *s, const Kernel *k);
void set_ragged(const Scheduler *s, Kernel *k);
void set_full_tiles(const Scheduler *s, Kernel *k);
bool may_leave_open(const Kernel *k); /* the last tile, which alone is checked */
bool may_take_whole_moments(const Scheduler *s, const Kernel *k);
void set_open_tile(const Scheduler *s, Kernel *k);
bool may_have_even_moments(const Scheduler *s, const Kernel *k); /* they meet without counts */

/* ---- homes.c ---- */

/* Where a row's vectors live between their load and their last use, and the column vectors that
 * all rows share. From left to right it takes fewer registers. */
typedef enum { IN_REGISTERS, IN_STAGES, IN_MEMORY } Home;
/* Of all loads; whether there is a ring, and what has one value a row passes through it. */
void set_homes(Kernel *k, bool ring, bool scalars, Home rows, Home columns);
bool may_fetch_rows(const Kernel *k); /* threads can copy their vectors to shared memory */
bool has_scalars_of_rows(const Kernel *k);
bool fetches_scalars(const Kernel *k);
bool may_reuse(const Kernel *k);
/* Whether all of a row is read before its first reduction, or (with lag) the next row's. */
bool is_read_in_time(const Kernel *k, Home rows);
bool wants_lines(const Scheduler *s, const Kernel *k, Home rows);
/* Column vectors that a later phase reads from memory: a tile ahead, all of them; of launches of up
 * to so many CTAs in shared memory (false: nothing can come so). set_: where it is worth it. */
bool may_read_early(const Kernel *k);
void place_late(Kernel *k, bool early);
bool place_few(const Scheduler *s, Kernel *k, int ctas);
void set_late(Kernel *k);
void set_few(const Scheduler *s, Kernel *k);

/* ---- keep.c ---- */

void find_kept(const Scheduler *s, Kernel *k); /* of the work, whatever the schedule */
int kept_registers(const Scheduler *s, const Kernel *k);

/* ---- window.c ---- */

void find_window(const Scheduler *s, Kernel *k); /* the same */
/* The share of a row's elements that phases compute, all together. */
double computed_share(const Scheduler *s, const Kernel *k);
double window_checks(const Kernel *k); /* instructions of a thread that find what is outside */

/* ---- convert.c ---- */

bool repeats_costly(const Scheduler *s, const Kernel *k);
/* How those loads are widened that gain by it; the rest stay as they are. */
void rewiden(Kernel *k, bool halves);
void convert_bf16(Kernel *k);
void convert_once(Kernel *k);

/* ---- shared_memory.c ---- */

int64_t staged_bytes(const Scheduler *s, const Kernel *k,
                     bool hoisted);                          /* a stage; shared by all */
int64_t exchange_bytes(const Scheduler *s, const Kernel *k); /* of what threads tell each other */
int64_t static_bytes(const Scheduler *s, const Kernel *k);   /* of declared variables, at most */
bool fit_ring(const Scheduler *s, Kernel *k);
bool can_take_bulk(const Scheduler *s, const Kernel *k);
bool hold_bulk(const Scheduler *s, Kernel *k);
bool has_fewer_ctas(const Kernel *k); /* than rows, as was asked for */
bool may_pass_by_blocks(const Kernel *k, int vec);
bool fit_blocks(const Scheduler *s, Kernel *k);

/* ---- max_ctas.c, registers.c ---- */

/* So many CTAs that an SM holds at most, by shared memory that a kernel does not use; 0: any. */
void keep_to(const Scheduler *s, Kernel *k, int limit);
void set_limit(const Scheduler *s, Kernel *k); /* as is asked for */
bool takes_limit(const Kernel *k);
int register_cap(const Scheduler *s, int threads); /* that a thread of so many of an SM may have */
/* The same of a kernel's threads that compute, in so many CTAs of an SM. */
int register_share(const Scheduler *s, const Kernel *k, int ctas);
/* The same once a copy warp has handed over its own; 0: they are no more than without. */
int handed_registers(const Scheduler *s, int threads, int ctas);
int natural_registers(const Scheduler *s, const Kernel *k); /* that ptxas takes if it may */
int least_registers(const Scheduler *s, const Kernel *k);   /* without which it spills */

/* ---- refusals.c ---- */

/* Why no kernel can be as `forced` asks. */
const char *find_refusal(Scheduler *s);
const char *missing_bulk(const Scheduler *s);      /* why no row comes by one bulk copy */
const char *missing_reuse(const Scheduler *s);     /* why none hands its stage on */
const char *missing_registers(const Scheduler *s); /* why a copy warp hands none over */
/* Why rows are not taken by so many groups in turn; NULL: they may be, if there is room. */
const char *impossible_groups(const Scheduler *s);
/* Why no row can have so many CTAs as were asked for; NULL: it depends on the row. */
const char *impossible_cluster(const Scheduler *s);

/* ---- backwards.c ---- */

void find_backwards(Plan *plan); /* of a plan's kernels, which are in order */

/* ---- l2.c ---- */

void find_dropped(const Scheduler *s, Plan *plan); /* sets Load.dropped; kernels are in order */

/* ---- join_parts.c, build_launch.c ---- */

Plan *join_plans(Arena *arena, const Analysis *a, Plan *const *plans);
/* CTAs, or groups of those that share a row, of the largest grid of a persistent kernel: mostly
 * those that live at once. Of a kernel that sums rows by groups, the most parts of one. */
int64_t resident_ctas(const Scheduler *s, const Kernel *k);
/* The graph's name, with what the kernel does, and which of several of a plan it is. */
const char *kernel_name(Arena *arena, const Graph *g, const Plan *plan, int index, bool strided);
void build_launch(Scheduler *s, Plan *plan);

#endif
