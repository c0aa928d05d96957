/* schedule/facts.h: what follows from a kernel's fields. The stages that print and explain a kernel
 * ask these, and do not compare fields themselves. */
#ifndef FUSEC_FACTS_H
#define FUSEC_FACTS_H

#include "schedule/kernel.h"

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
    return k->split == GROUP_TURNS || k->split == CLUSTER_TURNS;
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
