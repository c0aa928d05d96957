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
    CLUSTER_TURNS,  /* so, but they take turns along a row, which each phase reads again */
    GROUP_SLICES,   /* slices; they are more than the GPU's clusters have, so they exchange through
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
    bool masked;  /* a row's: its elements count inside the kernel's window alone */
    bool dropped; /* L2 evicts its lines first: schedule/l2.c */
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

#endif
