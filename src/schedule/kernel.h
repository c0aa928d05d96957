/* schedule/kernel.h: a kernel of a plan: what it computes, how its threads walk the data, where that
 * waits. schedule/schedule.c decides everything here; codegen/cuda.c only prints it.
 *
 * Every kernel walks rows: the elements of `rows` one after another (a team of threads a row), the
 * elements of `columns` across the team. A pass over a row's columns is a phase; the inner
 * reductions of a phase share one barrier. Reductions over all rows are accumulated across the rows
 * a CTA walks and leave one partial a CTA; a finish kernel adds the partials. So it is with the
 * rows of each group, where some row axes remain; there the CTAs that take one group are some or
 * one, by how many groups a launch has, but what they add is the same. */
#ifndef FUSEC_KERNEL_H
#define FUSEC_KERNEL_H

#include "analyze/analyze.h"
#include "schedule/launch.h"
#include "schedule/window.h"

typedef enum {
    FAMILY_POINTWISE,        /* no reduction */
    FAMILY_ROW,              /* inner reductions only */
    FAMILY_GRID_STRIDE,      /* reductions over all rows beside per-row work */
    FAMILY_WARP_SPECIALIZED, /* either of the two above, with a copy warp */
    FAMILY_COLUMN,           /* reductions over rows only */
    FAMILY_FINISH,           /* adds the partials of another kernel */
    FAMILY_CLEAR,            /* zeroes the mailbox of another kernel */
    FAMILY_COUNT
} Family;

/* How a kernel reads or writes a tensor or slot along its columns. */
typedef enum {
    ACCESS_ROW,     /* no column: one element a row (or one for all) */
    ACCESS_VECTOR,  /* its fastest axis is the columns' too: neighbours along it are adjacent */
    ACCESS_ELEMENT, /* columns at strides, or not all of them: one element at a time */
    ACCESS_PICKED   /* a load: by sums that pick one element of a row alone */
} Access;

/* How a row is split among CTAs. */
typedef enum {
    WHOLE_ROWS,     /* it is not */
    COLUMN_PARTS,   /* into parts of `tiles` each: of kernels without inner reductions */
    CLUSTER_SLICES, /* a cluster's CTAs have a slice each, and exchange through shared memory */
    GROUP_SLICES,   /* so; they are more than the GPU's clusters have, so they exchange through
                       global memory, and a further warp listens there */
    GROUP_TURNS     /* so, but they take turns along a row, which each phase reads again */
} Split;

/* How a thread's tiles meet the end of a row, or of its CTA's slice. */
typedef enum {
    TILES_UNCHECKED,    /* none is checked: a streamed row ends with one, or none has work */
    TILES_FULL,         /* none is: they are a CTA's columns, no more and no fewer */
    TILES_FULL_CHECKED, /* so, and all are checked all the same */
    TILES_RAGGED,       /* all are checked: not all are full, or there are too many to unroll */
    TILES_LAST_OPEN     /* the last is: all others are full, which sums over a row may count on */
} Remainder;

/* How threads find a mean and its squares. */
typedef enum {
    MOMENTS_OF_VECTORS, /* they add a vector at a time */
    MOMENTS_OF_THREADS, /* they take their elements once they have all of them */
    MOMENTS_EVEN        /* a vector at a time; threads meet without counts, for all have as many */
} Moments;

/* Where a row is between a kernel's phases. */
typedef enum {
    ROWS_IN_REGISTERS, /* each thread has its tiles in registers of their own */
    ROWS_REFILLED,     /* so, and a tile's take the next row's elements as soon as it is stored */
    ROWS_BY_BLOCKS,    /* so; rows begin anywhere in a block of 16 bytes and are read and stored as
                          whole blocks, through shared memory */
    ROWS_IN_RING,      /* in a stage of a ring, or in registers behind one */
    ROWS_BY_BULK_COPY, /* in shared memory, to which one bulk copy brings it */
    ROWS_STREAMED      /* nowhere: each phase reads it again */
} Residency;

/* Who brings rows to a ring. */
typedef enum {
    BROUGHT_BY_THREADS,        /* each copies the vectors that it takes itself */
    BROUGHT_BY_THREADS_AHEAD,  /* so; a row goes on to registers at once, and the next row to be
                                  copied takes its stage: so one stage is enough */
    BROUGHT_BY_LINES,          /* threads for each other: rows begin anywhere in a line of memory,
                                  and blocks of 16 bytes go to the same place of a stage's */
    BROUGHT_BY_COPY_WARP,      /* a further warp, with bulk copies ... */
    BROUGHT_BY_PACED_COPY_WARP /* ... that it asks for at intervals */
} Bringer;

/* Where the accumulators of a CTA's teams meet. */
typedef enum {
    MEET_BY_TILES,   /* one accumulator's, a tile at a time */
    MEET_IN_RING,    /* all at once in the ring, after the last row */
    MEET_BESIDE_RING /* all at once after a part's last row, when the ring has the next part's */
} Meeting;

/* Where what is loaded waits until it is used. A column vector is of all rows alike. */
typedef enum {
    LOADED_WHEN_NEEDED,   /* nowhere: each phase reads it from memory */
    LOADED_LATE,          /* so: a column vector that a later phase is the first to need */
    LOADED_AHEAD,         /* so, but a tile ahead: the first while results meet */
    ROW_IN_REGISTERS,     /* a row's, from the first phase that needs it */
    ROW_IN_STAGE,         /* a row's, in the ring or where a bulk copy brings it */
    ROW_THROUGH_STAGE,    /* a row's, in the ring, then in registers */
    COLUMNS_IN_REGISTERS, /* a column vector, from before the first row */
    COLUMNS_IN_SHARED     /* so, in shared memory */
} Place;

/* How elements of 2 bytes become f32. */
typedef enum {
    WIDENED,       /* by one instruction in all phases */
    WIDENED_ANEW,  /* by another after the first phase, or in each where it is loaded before */
    WIDENED_ALIKE, /* the compiler is to know that every conversion of it is the same */
    WIDENED_BY_CVT /* of bf16: by an instruction that converts, not by a shift */
} Widening;

typedef struct Load {
    Node node;        /* the PARAM, or the reduction that a slot holds */
    int tensor, slot; /* one of them is -1 */
    const char *name; /* of the kernel's pointer */
    DType dtype;
    AxisSet axes;
    Access access;
    int first_phase; /* where it is first needed */
    Place place;
    uint64_t phases; /* bit set of the phases that need it, see phase_bit() */
    Widening widening;
    bool masked; /* a row's: its elements count inside the kernel's window alone */
} Load;

typedef struct {
    Node node;        /* the value */
    int tensor, slot; /* one of them is -1 */
    const char *name;
    DType dtype;
    AxisSet axes;
    Access access;
    int phase;
    bool result; /* an accumulator's value: stored when the last row is done */
} Store;

/* A reduction over the rows that the kernel walks. */
typedef struct {
    Node node;
    const char *name;      /* of the accumulator */
    int phase;             /* in which its operand is computed */
    bool per_column;       /* an accumulator for each column; else one for all */
    int slot;              /* of its partials; -1: it has none */
    const char *slot_name; /* the kernel's pointer to them */
    Node mean;             /* of squares about a mean, and of what its f32 lacks: the mean, with
                              which they are accumulated: Analysis.centres; 0: by itself */
    Node squares, rest;    /* of such a mean: these; 0: none. It is then accumulated as distances
                              from a shift ... */
    int shift_slot;        /* ... whose partials have this slot, else -1 */
    const char *shift_name;
} Accumulator;

typedef struct {
    Node node;
    int phase;
    Node partner;       /* the maximum or mean that it is accumulated together with:
                           schedule/online.c; 0: by itself */
    Node sum;           /* the first of which it is the partner itself; 0: of none */
    Node rest;          /* of a mean: what its f32 lacks; 0: nobody needs it */
    bool lacking;       /* it is what the f32 of its partner lacks */
    bool inverse;       /* column values are multiplied by 1 / it where the program divides */
    Node picked, place; /* the tensor of which it is the element at that place: schedule/gather.c;
                           0: it is a sum */
} InnerReduction;

/* A value of a row's elements that several phases need, and that is kept for them. */
typedef struct {
    int first; /* 1 + the phase that computes it; 0: it is not kept */
    int last;  /* the last that needs it */
} Kept;

typedef struct Kernel {
    const char *name;
    Family family;

    /* How the graph was cut: sums over rows ride on the kernels that walk them; sums of one number
     * of each row, and reductions over parts of a row, have kernels of their own. The part of the
     * graph that it is of. */
    bool rides, adds_apart, parts_apart;
    int part;
    bool tuned; /* a row of the target's table decided its schedule, not the model */

    /* Work: what it walks and computes, with no word about threads. */
    int level, index; /* kernels run in ascending level, then in order of index */
    AxisSet rows, columns;
    AxisSet beside; /* of the columns: the fastest axis where rows are neighbours along it. A thread
                        then has a vector of rows of each of its columns, and a CTA its teams' */
    AxisSet kept;   /* row axes that remain; the rows of one element of them are a group */
    bool columnwise; /* walks rows only to reduce them: computes no inner reduction */
    bool dynamic;    /* columns include a row axis: their count is known at launch */
    int phases;
    int load_count, store_count, inner_count, accumulator_count;
    Load *loads;
    Store *stores;
    InnerReduction *inner;
    Accumulator *accumulators;
    int finishes;         /* FINISH: the kernel whose partials it adds; else -1 */
    int clears;           /* CLEAR: the kernel whose mailbox it zeroes; else -1 */
    int *phase;           /* by node id: phases within this kernel */
    bool *computed;       /* by node id: computed here (not loaded from a slot) */
    Kept *keeps;          /* by node id; NULL: nothing is kept */
    const Window *window; /* NULL: all of a row counts */

    /* Shape: a thread handles `vec` elements side by side, `tiles` times; a row has
     * threads_per_row threads in each of `cluster` CTAs, a CTA `teams` rows. (FINISH: a CTA's
     * columns, a thread each; how many threads share a column's partials, `tiles` at a time
     * each.) */
    int vec, tiles;
    /* The last of several column axes, which are taken for one: tensors have them side by side,
     * or another entry serves them; 0: none. */
    AxisSet dense;
    /* All of several column axes, of which a vector lies along the fastest: tensors have them side
     * by side, or another entry finds each vector's place; 0: there is no such entry. */
    AxisSet contiguous;
    int threads_per_row, teams;
    int groups;    /* of teams, which take the stages of a copy warp's ring in turn; else 1 */
    int registers; /* of a thread that computes, once the copy warp has handed over its own, for which
                      it is a warpgroup; 0: all have as many */
    int lanes;     /* beside: neighbouring lanes that share a row, of as many warps as it takes */
    Split split;
    int cluster;     /* CTAs of a cluster or group; else 1 */
    int column_ctas; /* those of the parts of a row; else 1 */
    int slice;       /* columns of each CTA that has a slice; else 0 */
    bool uneven;     /* the last of them have fewer, or none */
    int mailbox;     /* of a group: the slot through which it exchanges; else -1 */
    int part_rows;   /* kept: a group's rows are in parts of about so many, or of more where those
                        would be more parts than fill the GPU; else 0 */
    int chunk;       /* kept, and the kernel that finishes it: parts that are added apart */

    /* Remainder: the end of a row or slice. */
    Remainder remainder;
    int full_tiles; /* so many tiles all threads have whole, in every CTA of the row */
    Moments moments;

    /* Homes: where rows are between phases, and what is added up of them; Load.place has the
     * rest. */
    Residency residency;
    int stages; /* rows in the ring; 0: there is none */
    Bringer bringer;
    int lag; /* the last phase of a row runs after the first of the next row but lag - 1, which
                hides the reduction between them; 0: no lag */
    Meeting meeting;
    bool counts_places; /* each element is compared with a place, not each vector */

    /* Launch: how a grid covers rows, and what a CTA takes of an SM. */
    bool backwards;  /* the first CTAs take the last rows: backwards.c */
    bool one_row;    /* a CTA, cluster or team has one row, and ends with it */
    int most_ctas;   /* of the whole grid, as was asked for; 0: any */
    int ctas_per_sm; /* persistent: how many CTAs an SM holds at once */
    int live_ctas;   /* persistent: how many its grid has for each SM */
    int wanted_ctas; /* an SM: what ptxas is told to make room for; 0: nothing */
    int limit_ctas;  /* that an SM holds at most, for which each asks for ...; 0: as many as fit */
    int64_t idle_bytes; /* ... so much dynamic shared memory, of which it uses nothing */
    int64_t smem_bytes; /* dynamic: the ring, and what is staged for all rows */
    int few_ctas; /* a launch of no more CTAs gives each few_bytes of dynamic shared memory, to
                     which column vectors that a later phase reads are copied; 0: none does */
    int64_t few_bytes;
} Kernel;

/* Where a load waits: in registers, in shared memory, for all rows, for a later phase. */
static inline bool is_resident(const Load *load)
{
    return load->place == ROW_IN_REGISTERS || load->place == ROW_THROUGH_STAGE ||
           load->place == COLUMNS_IN_REGISTERS;
}
static inline bool is_staged(const Load *load)
{
    return load->place == ROW_IN_STAGE || load->place == ROW_THROUGH_STAGE ||
           load->place == COLUMNS_IN_SHARED;
}
static inline bool is_hoisted(const Load *load)
{
    return load->place == COLUMNS_IN_REGISTERS || load->place == COLUMNS_IN_SHARED;
}
static inline bool is_late(const Load *load)
{
    return load->place == LOADED_LATE || load->place == LOADED_AHEAD;
}
/* Whether a phase behind this one needs what is loaded, or may. */
static inline bool is_needed_later(const Load *load, int phase)
{
    return phase < LAST_PHASE_BIT ? load->phases >> phase >> 1 != 0
                                  : load->phases >> LAST_PHASE_BIT != 0;
}
/* How a kernel's rows are split. */
static inline bool is_grouped(const Kernel *k)
{
    return k->split == GROUP_SLICES || k->split == GROUP_TURNS;
}
static inline bool takes_turns(const Kernel *k)
{
    return k->split == GROUP_TURNS;
}
static inline bool has_column_parts(const Kernel *k)
{
    return k->split == COLUMN_PARTS;
}
/* Whether its tiles are checked against a row's end. */
static inline bool is_ragged(const Kernel *k)
{
    return k->remainder >= TILES_FULL_CHECKED;
}
/* Where a kernel's rows are. */
static inline bool is_streamed(const Kernel *k)
{
    return k->residency == ROWS_STREAMED;
}
static inline bool is_refilled(const Kernel *k)
{
    return k->residency == ROWS_REFILLED;
}
static inline bool has_bulk_rows(const Kernel *k)
{
    return k->residency == ROWS_BY_BULK_COPY;
}
static inline bool passes_by_blocks(const Kernel *k)
{
    return k->residency == ROWS_BY_BLOCKS;
}
/* Whether a cluster has one row, in its registers, and no other. */
static inline bool has_single_row(const Kernel *k)
{
    return k->cluster > 1 && (k->residency == ROWS_IN_REGISTERS || passes_by_blocks(k));
}
/* Who brings them to its ring. */
static inline bool has_copy_warp(const Kernel *k)
{
    return k->bringer == BROUGHT_BY_COPY_WARP || k->bringer == BROUGHT_BY_PACED_COPY_WARP;
}
static inline bool is_paced(const Kernel *k)
{
    return k->bringer == BROUGHT_BY_PACED_COPY_WARP;
}
static inline bool reuses_stages(const Kernel *k)
{
    return k->bringer == BROUGHT_BY_THREADS_AHEAD;
}
static inline bool is_copied_by_lines(const Kernel *k)
{
    return k->bringer == BROUGHT_BY_LINES;
}
/* Threads that compute; beside them there may be a warp that copies and one that listens. */
static inline int kernel_threads(const Kernel *k)
{
    return k->threads_per_row * k->teams;
}
bool reads_early(const Kernel *k); /* some column vector, a tile ahead of its phase */
enum { WARPGROUP = 128, COPY_REGISTERS = 24 /* the fewest that a thread can have */ };
static inline int helper_threads(const Kernel *k)
{
    return k->registers ? WARPGROUP : 32 * (has_copy_warp(k) + is_grouped(k));
}
/* Whether it walks rows, and does not only serve a kernel that does. */
static inline bool walks_rows(const Kernel *k)
{
    return k->finishes < 0 && k->clears < 0;
}

/* Whether the text asks how many rows there are: not where each CTA or cluster has one. */
static inline bool counts_rows(const Kernel *k)
{
    return !k->one_row || k->teams > 1;
}

/* What a kernel reads of a node, and a reduction that it computes in each row; NULL: none. Both are
 * in the order of their nodes. */
const Load *load_of(const Kernel *k, Node n);
const InnerReduction *inner_of(const Kernel *k, Node n);
const Accumulator *accumulator_of(const Kernel *k, Node n); /* the same */
/* What a kernel computes for an accumulator in each row. */
static inline Node operand_of(const Graph *g, const Accumulator *acc)
{
    return arg(g, acc->mean.id ? acc->mean : acc->node, 0);
}
/* How many values a thread has of it: one, or of a mean that goes with its squares, two. */
static inline int values_of(const Accumulator *acc)
{
    return acc->squares.id ? 2 : acc->slot >= 0;
}
/* Bytes of a row's column that it reads as vectors. */
int row_bytes(const Kernel *k);
/* Whether anything is done for each element of a row. */
bool has_element_work(const Graph *g, const Kernel *k);
/* Those that have rows to themselves: what leaves a partial. */
static inline const char *sharers_name(const Kernel *k)
{
    return is_grouped(k) ? "group" : k->cluster > 1 ? "cluster" : "CTA";
}
/* The axes that a row's columns stand for. */
static inline AxisSet column_axes(const Kernel *k)
{
    return k->columns & ~k->beside;
}
/* Whether a load has a vector of rows and no column. */
static inline bool is_across(const Kernel *k, const Load *load)
{
    return k->beside && load->access == ACCESS_VECTOR && !(load->axes & column_axes(k));
}
/* Neighbouring columns of a thread's vector. */
static inline int vector_columns(const Kernel *k)
{
    return k->beside ? 1 : k->vec;
}
/* Warps that share a row of those beside each other, and groups of such in a CTA. */
static inline int warps_of_row(const Kernel *k)
{
    return k->threads_per_row / k->lanes;
}
/* Rows that a CTA's walk takes in a step: with a copy warp, those of a stage, which a group
 * takes. */
static inline int rows_of_step(const Kernel *k)
{
    return k->teams / k->groups;
}
/* Whether teams read rows from the same ring, or from the same stages of it, that a copy warp
 * fills. */
static inline bool feeds_teams(const Kernel *k)
{
    return has_copy_warp(k) && k->teams > 1;
}
/* Rows that a CTA has at a time. */
static inline int rows_at_once(const Kernel *k)
{
    return k->teams * (k->beside ? k->vec : 1);
}
static inline bool has_several_column_axes(const Kernel *k)
{
    return (k->columns & (k->columns - 1)) != 0;
}
/* Whether all of several column axes are taken for one. */
static inline bool is_dense(const Kernel *k)
{
    return k->dense && k->dense == k->columns;
}
/* Whether a vector lies along the fastest of several column axes, or along those that are dense,
 * and where it begins follows from its coordinates. */
static inline bool has_several_columns(const Kernel *k)
{
    return has_several_column_axes(k) && !is_dense(k);
}
static inline bool has_several_row_axes(const Kernel *k)
{
    return (k->rows & (k->rows - 1)) != 0;
}
static inline int fastest_column(const Kernel *k)
{
    int axis = 0;
    while (k->columns >> axis > 1) axis++;
    return axis;
}
/* The axes of the inner of two coordinates that columns have; 0: they have another number. */
AxisSet inner_of_two(const Kernel *k);
/* Where a launch knows how many runs of columns a row has, and vectors of so many elements are no
 * wide ones: how many of each tensor a thread loads at once; else 0. */
int vectors_of_run(const Kernel *k, int vec);
/* Rows that are neighbours in memory: whether their columns are of one axis; how many values of a
 * column all of them have in common; whether their vectors are stored after the last is computed.
 * Those stores are behind a branch, and loads for the next column cannot move ahead of it. */
bool has_one_stride(const Kernel *k);
int columns_for_rows_beside(const Kernel *k);
bool stores_spans(const Kernel *k);
/* Which of a thread's two loops over its elements a value varies along: over its tiles, over the
 * elements of a vector. */
enum { ALONG_TILES = 1, ALONG_VECTOR = 2 };
unsigned footprint_of(const Kernel *k, const Sizes *sizes, AxisSet axes);
/* Whether a reduction that a kernel computes in each row is over part of the row: a block of
 * neighbouring columns, or every so many of them. It leaves a value for each part. */
static inline bool reduces_part(const Graph *g, const Kernel *k, Node reduction)
{
    return node(g, reduction)->reduced != k->columns;
}
bool has_parts(const Graph *g, const Kernel *k); /* such reductions */
/* Threads whose vectors make a block; 0: the reduction takes a column of each block, and meets in
 * all threads of the row. */
int block_threads(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction);
/* Whether a thread has all of a part that is reduced along other axes than the fastest: what is
 * left has a vector for each thread of the row. */
bool has_whole_parts(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction);
/* Of those, neighbouring lanes that shuffles join: a power of two. Where they are not all, the
 * others' sums meet in shared memory, in so many places a team. */
int block_lanes(const Kernel *k, int threads);
int block_places(const Kernel *k, int threads);
int meeting_places(const Graph *g, const Kernel *k, const Sizes *sizes, Node reduction);
/* Bytes of the widest accumulator. */
static inline int widest_accumulator(const Graph *g, const Kernel *k)
{
    for (int i = 0; i < k->accumulator_count; i++)
        if (node(g, k->accumulators[i].node)->type != TYPE_F32) return 8;
    return 4;
}
/* Whether its grid is what the GPU holds at once, and each CTA walks many rows. */
static inline bool is_persistent(const Kernel *k)
{
    return (k->accumulator_count && !k->kept) || k->stages || is_refilled(k) || is_grouped(k);
}
/* Whether the CTAs of a row's parts follow each other in the grid: those that run at one time
 * then read what lies together. Sums over rows know a CTA's rows by its place along x. */
static inline bool has_parts_in_order(const Kernel *k)
{
    return has_column_parts(k) && k->rows && !k->accumulator_count && !k->kept && !k->dynamic;
}
enum { CLEARED_WORDS = 8 }; /* of 8 bytes, by a thread of a kernel that clears a mailbox */
/* How many rows' results a mailbox has room for. A CTA that sends a row's has heard of the row
 * lag + 1 before, so all have sent that one, for which they had read what is 2 (lag + 1) back. */
static inline int mailbox_rounds(const Kernel *k)
{
    return k->lag == 0 ? 2 : k->lag == 1 ? 4 : 8; /* at least 2 (lag + 1), and a power of two */
}
/* The most values that a phase's end exchanges, and whether one of them takes 8 bytes. */
int most_exchanged(const Graph *g, const Kernel *k);
bool exchanges_wide(const Graph *g, const Kernel *k);
/* Which rows pass through shared memory by blocks; column vectors do not. */
static inline bool is_read_by_blocks(const Kernel *k, const Load *load)
{
    return passes_by_blocks(k) && load->access == ACCESS_VECTOR && load->axes & k->rows;
}
static inline bool is_stored_by_blocks(const Kernel *k, const Store *store)
{
    return passes_by_blocks(k) && store->access == ACCESS_VECTOR && !store->result;
}
/* Which rows come into a ring by blocks. */
static inline bool is_lined_up(const Kernel *k, const Load *load)
{
    return is_copied_by_lines(k) && is_staged(load) && !is_hoisted(load) &&
           load->access == ACCESS_VECTOR;
}
/* Whether its copies take whole blocks of 16 bytes of rows that begin anywhere in one: so up to 15
 * bytes before a row are read, and by a copy warp behind it. */
bool copies_stray_bytes(const Kernel *k, int64_t columns);
bool reads_rows_again(const Kernel *k); /* in a later phase */
const char *family_name(Family family); /* "grid-stride" */
/* What the shared memory of a kernel with `limit_ctas` is for. */
const char *reserve_text(Arena *arena, const Kernel *k);

#endif
