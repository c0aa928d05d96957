/* codegen/emit.h: what the files of the CUDA printer share; nobody else includes it.
 *
 *   cuda.c               the module: its head, the prelude's sections, the kernels in order
 *   command.c            the command line that prints a text again
 *   comment.c            the comment above a kernel: where it comes from, its formulas
 *   launch_table.c       the table in that comment: how to launch the kernel by hand
 *   names.c              identifiers
 *   address.c            pointers, offsets, the coordinates of a column
 *   expr.c               expressions
 *   kernel.c             kernels that walk rows
 *   row_values.c         values that a row has once
 *   pass.c               one pass over a row's columns
 *   store.c              what a pass stores
 *   pass_pairs.c         reductions that are computed together, in a pass
 *   pass_streamed.c      the same over a row that each phase reads from memory again
 *   hoist.c              what is computed once before a pass
 *   window.c             the columns of a row that a mask leaves
 *   reduce.c             the reductions that end a phase
 *   load.c               where a row's elements are read from
 *   ring.c               the ring of row buffers in shared memory
 *   copy_warp.c          the copy warp of a warp-specialized kernel
 *   register_prefetch.c  registers that take the next row's elements
 *   row_pipeline.c       the last phase of a row, after the first phase of a later one
 *   unaligned.c          unaligned rows, through shared memory in blocks of 16 bytes
 *   small_grid.c         column vectors in shared memory, for launches of few CTAs
 *   cluster.c            CTAs that share a row: their columns, their exchange
 *   beside.c             rows that are neighbours in memory
 *   epilogue.c           what follows the last row: partials, the finish kernel
 *   group_sums.c         sums over each group of rows: their parts, the kernel that adds them
 *   column_moments.c     a mean and its squares over rows
 *   results.c            what is made of sums once they are complete
 */
#ifndef FUSEC_CUDA_EMIT_H
#define FUSEC_CUDA_EMIT_H

#include "codegen/cuda.h"
#include "base/prelude.h"
#include "base/reserved.h"

typedef LIST(const char *) NameList;

/* What a row's first phase hands to its last, and the variables that hold it: `last` of the row
 * before, and `before` of the row before that, where the pipeline is two rows deep. */
typedef struct {
    Node node;
    const char *last, *before;
} Carried;

/* What a load has at the first and at the last element of a vector. */
typedef struct {
    const char *first, *last;
    bool known; /* in the tile that is being printed */
} TwoValues;

typedef struct {
    Arena *arena;
    const Plan *plan;
    const Graph *g;
    const Kernel *k;
    const LaunchKernel *launch;
    int index;                /* of the kernel in the plan */
    const LaunchEntry *entry; /* that is being printed */
    AxisSet collapsed;        /* row axes that it counts as one, `row`; 0: each has a coordinate */
    AxisSet merged;           /* column axes that have one coordinate, that of the last of them */
    AxisSet contiguous;       /* column axes that tensors have side by side */
    AxisSet line;             /* the same, where a column's results are stored */
    bool gathers;             /* columns are counted as one, but elements may lie anywhere */
    bool by_column;           /* a value is of one column, not of a vector: where sums end */
    int phase;                /* that is being printed */
    Text *out;

    /* C identifiers: those that no kernel can have, for they are reserved or the prelude's; those
     * that the printer keeps for itself; and those of this kernel. */
    Map words, own, used;
    bool renamed; /* something of the program has another name because the printer kept its own */
    /* By name: which of `next` is the next number to try behind it, with an underscore between and
     * without. */
    Map gaps, numbers;
    LIST(int) next;

    TwoValues *two_values; /* by node id */

    const char **args;           /* identifiers of the kernel's parameters, as entry->args */
    const char **stems;          /* of those that are pointers: what else of them is named after */
    const char *sizes[MAX_AXES]; /* identifiers of axis sizes */
    /* Expressions of the coordinates in scope, and of those of the row whose scalars are read
     * ahead, where rows are of several axes. */
    const char *coords[MAX_AXES], *next_coords[MAX_AXES];
    const char *thread;  /* which of a row's threads this one is */
    const char *row;     /* the number of one; of rows beside each other, of a line of them */
    const char *rows;    /* how many of those there are */
    const char *columns; /* how many columns a row has */
    const char *end;     /* where those of this CTA end */

    /* By node id: identifiers, NULL where there is none yet. */
    const char **names;       /* of the value */
    const char **taken;       /* of the vector that a maximum and its sum take */
    const char **seen;        /* of how many values are in a mean so far */
    const char **shifts;      /* of where a mean's distances are summed from */
    const char **rests;       /* of what a rounded mean lacks */
    const char **inverses;    /* of 1 / the value */
    const char **divisors;    /* of the divisor that is made of a row's value, for its columns */
    const char **places;      /* of the index of a column that a pass compares columns with */
    const char **outsides;    /* of the value outside the row's window, in a pass that skips that */
    const char **vector_sums; /* of the sum of a vector's terms, in a pass that adds those */

    /* By node id: facts. */
    int *users;     /* how many times this kernel mentions it */
    bool *local;    /* a variable of its name is in scope */
    bool *serves;   /* a row's value that is computed once for all elements which use it */
    bool *centred;  /* of a mean of x: the kernel computes x - mean */
    bool *repeated; /* it must have the same bits wherever it is computed: graph/extremes.c */
    bool *breaks;   /* it would make a line too long, and gets one of its own */
    int *bits;      /* magnitude_bits() of codegen/expr.c, of the first bits_known nodes */
    uint32_t bits_known;

    /* The first and last column of a row's window; NULL: it begins or ends with the row. */
    const char *first, *last;
    bool outside;           /* an expression is for columns outside */
    bool explains_divisors; /* the text has said what a Divisor does */

    int ahead; /* vectors of each tensor that a pass over a streamed row loads before it computes */
    LIST(Carried) carried; /* with row pipelining */
    LIST(uint32_t) scope;  /* nodes that became local, in order */
} Emitter;

/* ---- values computed twice ---- */
/* The pattern of an addition that the compiler must not join with a product; NULL: it may. */
const char *lone_addition(const Emitter *e, Node n);

/* ---- names ---- */
const char *unique_name(Emitter *e, const char *base);
/* Keeps the names that kernels declare for themselves; where there is a text of the kernel, only
 * those that it has. */
void keep_own_names(Emitter *e, const char *text);
/* What a pointer to a tensor or a slot and all that is about it are named after: `base`, or, where
 * one of those names is taken, that with a number: x2, x2_v, x2_M. Gives the pointer's own name. */
const char *take_stem(Emitter *e, const char *base, bool loads, bool stores, const char **pointer);
const char *stem_name(const Emitter *e, int tensor, int slot); /* one of them is -1 */
const char *node_name(Emitter *e, Node n);
const char *arg_name(const Emitter *e, ArgKind kind, int index, int axis);
const char *type_cuda(Type type);
int open_scope(const Emitter *e);
void close_scope(Emitter *e, int mark);
void make_local(Emitter *e, Node n);

/* Declares the coordinates of `col` that `body` mentions, where a column stands for several
 * axes. */
const char *column_type(const Emitter *e);
void emit_column_coords(Emitter *e, const Text *body);
/* The coordinates of columns of two axes. False: there are more, or one. */
typedef struct {
    const char *outer, *inner, *outer_size, *size; /* size: how many inner ones there are */
    int64_t fixed;                                 /* that number; 0: a launch knows it */
} ColumnPair;
bool has_column_pair(const Emitter *e);
bool find_column_pair(Emitter *e, ColumnPair *found);
/* The same at the start of a tile, with `col` itself: the first column of a thread's vector. */
void emit_tile_column(Emitter *e, const Text *body);
/* Between these two calls, coordinates are those of element i of the vector. */
typedef struct {
    const char *of[MAX_AXES];
} Coords;
Coords enter_vector(Emitter *e);
Coords enter_column(Emitter *e, const char *column); /* ... or of one column, an expression */
/* ... or of `col`, which a loop counts by ones: a tile's are at `col + i`; several axes each have a
 * coordinate that is made of it. */
Coords enter_only_column(Emitter *e);
void leave_vector(Emitter *e, const Coords *outside);
/* A function of a column, `at`, that gives where its element is. */
const char *place_function(Emitter *e, const char *pointer, int tensor, AxisSet axes);

/* ---- expressions ---- */
/* A node as a C expression, parenthesized if it binds less tightly than `precedence`. */
const char *expression(Emitter *e, Node n, int precedence);
/* Whether elements are multiplied by 1 / n where the program divides them by it. */
bool is_inverted(const Emitter *e, Node n);
/* `value`, of compute type `type`, as what the store of a `dtype` takes (its compute type). */
const char *store_value(Emitter *e, const char *value, Type type, DType dtype);
/* Whether an element's place in a tensor with these axes follows from its column. */
bool is_in_line(const Emitter *e, AxisSet axes);
/* The arguments of load and store_row: a row's address, a column of it, and the number of columns.
 * Where an element's place does not follow from its column each vector counts as a row: its column
 * is 0, its limit what is left of the columns, or (streamed rows) the whole vector. */
const char *address(Emitter *e, const char *pointer, int tensor, AxisSet axes, Access access);
const char *column_text(const Emitter *e, AxisSet axes);
const char *limit_text(Emitter *e, AxisSet axes);
/* `pointer[offset]` of the current element. */
const char *element(Emitter *e, const char *pointer, int tensor, AxisSet axes);
/* `value` rounded or saturated to `dtype`, to be assigned to an element. */
const char *rounded(Emitter *e, const char *value, Type type, DType dtype);
/* What is assigned to an element of a tensor, or of a vector that is stored. */
const char *stored_value(Emitter *e, const Store *store);
const char *value_of_vector(Emitter *e, const Store *store);
const char *load_pointer(const Emitter *e, const Load *load);
const char *store_pointer(const Emitter *e, const Store *store);
const char *store_type(const Emitter *e, const Store *store); /* of a value until it is stored */
bool is_column_value(const Emitter *e, Node n);
/* Whether all elements of a vector, which lies along the fastest axis, have the same value. */
bool is_vector_value(const Emitter *e, Node n);
/* What a kernel finds of each part of a row is in an array, by tiles or by the elements of a
 * vector. */
bool is_part(const Emitter *e, Node n);
unsigned footprint(const Emitter *e, Node n); /* footprint_of() its axes */
/* ... and so is what is kept for later phases: the array is declared before the pass of the
 * first. */
bool is_kept(const Emitter *e, Node n);
bool is_kept_from(const Emitter *e, Node n, int phase);
void declare_kept(Emitter *e, int phase);
void end_kept(Emitter *e, int phase); /* behind that pass */
void emit_over_parts(Emitter *e, Node n,
                     const char *rest);            /* `rest` behind each of its variables */
const char *subscript(const Emitter *e, Node n);   /* "[t]", "[i]"; "": it is no array */
const char *variable(Emitter *e, Node n);          /* its name, and that */
bool strides_over_parts(const Emitter *e, Node n); /* the reduction is no block's */
const Load *find_load(const Emitter *e, Node n);   /* NULL: the kernel does not read it */
/* Whether a value of a column is divided by a number that the text holds. */
bool divides_by_constant(const Emitter *e, Node n);
/* Whether a node gets a line of its own: it has a name of the user's, or is mentioned more than
 * once. */
bool wants_line(const Emitter *e, Node n);
const char *identity_text(const Graph *g, Node reduction);
void emit_accumulate(Emitter *e, Node reduction, const char *into, const char *value);
/* A new name made of a node's name and an ending. */
const char *name_after(Emitter *e, Node n, const char *end);
/* The number of elements of some axes, as a factor and as a whole: `(B * H)`, `B * H`. */
const char *count_text(Emitter *e, AxisSet axes);
const char *product_text(Emitter *e, AxisSet axes);
const char *join(Arena *arena, const NameList *list, const char *separator);

/* ---- passes ---- */
/* Whether a row has less than a warp, so that the teams of a warp must stay together. */
bool rows_share_warps(const Kernel *k);
const char *copied_vector(Emitter *e, const Load *load);
const char *staged_vector(Emitter *e, const Load *load); /* a thread's vector in shared memory */
void emit_value(Emitter *e, Node n);                     /* `const T name = expression;` */
bool is_store_only(const Emitter *e, Node n);            /* nothing but one store mentions it */
const char *load_address(Emitter *e, const Load *load);
const char *slice_address(Emitter *e, const Load *load); /* of this CTA's part of a row */
const char *row_part(Emitter *e, const Load *load);
const char *tile_loader(const Emitter *e, const Load *load);
/* The last argument of a loader's template: what L2 does with the lines; "": it keeps them. */
const char *l2_argument(const Load *load);
/* codegen/two_values.c */
void emit_two_values(Emitter *e, const bool *needed); /* before a vector's elements */
void forget_two_values(Emitter *e);
const char *choose_value(Emitter *e, const Load *load); /* an element's; NULL: it is read itself */
/* codegen/scattered.c: a tile's vector, from and to wherever its elements are. */
void emit_gather(Emitter *e, const Load *load, const char *into);
void emit_scatter(Emitter *e, const Store *store);
const char *vector_type(Emitter *e, DType dtype);
void emit_resident_loads(Emitter *e, int phase, bool hoisted);
void emit_l2_prefetch(Emitter *e); /* early, for column vectors that a later phase reads */
/* Loads a tile of each vector, from memory or (launches of few CTAs) shared memory, into variables
 * named after the vector and this suffix. */
typedef LIST(const Load *) Reloads;
void emit_reloaded_tiles(Emitter *e, const Reloads *loads, const char *suffix, const char *tile,
                         const char *column);
/* Launches of few CTAs: the shared memory of their column vectors, the copies to it, and the wait
 * for those that are prefetched, or for the others. */
void emit_small_grid_memory(Emitter *e);
void emit_small_grid_copies(Emitter *e);
void emit_small_grid_wait(Emitter *e, bool early);
/* Prefetched column vectors of a phase: the first tile's, before it; in it, for each tile, the wait
 * for its own and the load of the next one's. */
void emit_first_tiles(Emitter *e, int phase);
void emit_prefetched_tiles(Emitter *e, int phase);
bool declare_hoisted_loads(Emitter *e);
void emit_hoisted_loads(Emitter *e);
/* Text printed between these two calls is held back, because what precedes it depends on it. The
 * first returns where it will go; the second takes that and returns the text. */
Text *open_body(Emitter *e);
const Text *close_body(Emitter *e, Text *kernel);
/* Prints a loop that runs `body` for each of a thread's tiles. */
void emit_tiles(Emitter *e, const Text *body, const char *pragma);
void emit_pass(Emitter *e, int phase);
bool mentions(const char *text, const char *name);

/* ---- what a pass finds once a row ---- */
/* Declares what a pass computes once a row; `needed` by node id: what the pass computes. */
void emit_hoisted(Emitter *e, const bool *needed);
/* The same of divisors that a vector's elements share. */
void emit_vector_divisors(Emitter *e, const bool *needed);
/* Whether a node compares an element's index along an axis with a number that is the same for the
 * whole row. Its text then compares in 32 bits, relative to the thread's vector, and does not
 * mention the index. */
bool compares_place(const Emitter *e, Node n);
/* The values that a node's text mentions: its operands, or what it compares a place with. */
enum { MOST_MENTIONED = MOST_TERMS }; /* more than there are operands */
int list_mentioned(const Emitter *e, Node n, Node operands[MOST_MENTIONED]);
const char *place_text(Emitter *e, Node n);
/* Declares the place of a comparison, unless it is there; its name, or a number. */
const char *declare_place(Emitter *e, const PlaceTest *test);
void forget_hoisted(Emitter *e, int phase); /* before a row's first pass */
/* Whether a reduction is sum[N](where(index(N) == t, x, 0)) of a tensor x. Then one thread reads
 * that element. */
bool picks_element(const Emitter *e, Node n);
Node picked_place(const Emitter *e, Node sum);
void emit_picks(Emitter *e, int phase);

/* ---- the row ---- */
bool depends_on_row(const Emitter *e, Node n);
/* Whether a load is done before its row begins, by the ring or a row ahead. */
bool is_ahead(const Emitter *e, const Load *load);
/* Whether a row has the coordinates that its scalars were read by. A team without a row, which
 * repeats another team's, has not. */
bool keeps_coords(const Emitter *e);
void emit_coords_now(Emitter *e);
void emit_scalars_ahead(Emitter *e);
void emit_scalars_now(Emitter *e);
void emit_scalars_next(Emitter *e);
/* Loads tensors that have one value a row (`rows`), or one for all rows, unless they were read
 * ahead. */
void emit_row_loads(Emitter *e, bool rows);
bool wants_row_line(const Emitter *e, Node n);
void emit_row_values(Emitter *e, int phase, bool rows);
void emit_row_accumulators(Emitter *e, int phase);
void emit_row_stores(Emitter *e, int phase);
/* Reductions that are computed together with another: schedule/online.c. */
void find_centred(Emitter *e); /* once users are counted: see Emitter.centred */
const InnerReduction *paired_sum(const Emitter *e, Node partner);          /* NULL: none */
const char *reduce_call(Emitter *e, Node reduction, const char *variable); /* sum_of(c1) */
/* Of x - mean: what is subtracted beside the mean, or NULL; the one row value that it is multiplied
 * by wherever it is used, or 0; its product with that. */
const char *mean_rest(const Emitter *e, Node n);
Node scale_of_centred(const Emitter *e, Node n);
const char *scaled_text(Emitter *e, Node centred, Node by);
/* How many slots row_reduce takes: `2 * (threads / 32)`. */
const char *slots_text(Emitter *e, int values, const char *threads);
void declare_reductions(Emitter *e, int phase);
void declare_received(Emitter *e, int phase);
/* The reductions that end a phase, as the arguments of one call: "sum_of(c1), sum_of(c2)", or "".
 * The second is what other CTAs send of them. */
const char *reduce_list(Emitter *e, int phase);
const char *received_list(Emitter *e, int phase);
void finish_reductions(Emitter *e, int phase);
void declare_block_scratch(Emitter *e);
void emit_reductions(Emitter *e, int phase);
void emit_phase(Emitter *e, int phase);

/* ---- the window of a row ---- */
void emit_window(Emitter *e);          /* declares it, before the row is loaded */
const char *in_window(Emitter *e);     /* the condition that a thread's vector has columns of it */
const char *out_of_window(Emitter *e); /* ... that it has none */
const char *window_ends(Emitter *e);   /* the arguments "first, last" of load_window */
/* Of phases that skip what is outside: whether something of that is neither constant nor neutral,
 * so that it is to be computed, and the names of its values. */
bool has_outside(Emitter *e, int phase);
void emit_outside_values(Emitter *e, int phase);
/* ` if (x != 0)`: where elements outside count; "": everywhere. What is done with one. */
const char *outside_condition(Emitter *e, int phase);
void emit_outside(Emitter *e, int phase);

/* ---- a pass over a row's columns ---- */
typedef struct {
    Emitter *e;
    int phase;
    bool *needed; /* by node id: column values this pass computes */
    bool any;
} Pass;
int count_tile_loads(const Pass *pass); /* vectors that a tile loads for itself */
void emit_tile_loads(const Pass *pass);
bool adds_elements(const Emitter *e, const InnerReduction *r); /* element by element */
void declare_run(Emitter *e);
bool has_runs(const Emitter *e);
bool walks_runs(const Emitter *e);   /* this pass */
const char *run_outer(Emitter *e);   /* the coordinate that a run has one of */
const char *run_guard(Emitter *e);   /* whether the run has a vector's elements */
int vectors_ahead(const Pass *pass); /* 0: each is loaded when it is used */
void emit_stream(const Pass *pass, const Text *tile,
                 const Text *values); /* `tile` for all columns of a streamed row */
void name_vector_sums(const Pass *pass);
void declare_vector_sums(const Pass *pass);
void emit_vector_sums(const Pass *pass);

/* The condition under which an element counts for its row, and for sums over rows and what is
 * stored: teams without a row run along with another's. "": always. */
const char *column_guard(Emitter *e);
const char *element_guard(Emitter *e);
/* What a pass stores: vectors, declared before its elements, or (spans) before all of its tiles;
 * elements that are stored one by one, or (vectors) what those of a vector share, by the thread that
 * has the first. */
void emit_output_vectors(const Pass *pass);
void emit_vector_stores(const Pass *pass);
void declare_spans(const Pass *pass);
void store_spans(const Pass *pass);
void emit_element_stores(const Pass *pass, bool vectors);
/* Whether elements are joined to a mean and its squares; whether such a pair takes all of a
 * thread's values at once. */
bool joins_moments(const Pass *pass);
bool takes_whole_rows(const Pass *pass);
void emit_pair_vectors(const Pass *pass);
void declare_pairs_ahead(const Pass *pass);
void emit_pairs_ahead(const Pass *pass, const char *count);
void emit_pair_elements(const Pass *pass);
void emit_pair_adds(const Pass *pass);
void emit_pair_ends(const Pass *pass);
void emit_whole_rows(const Pass *pass);
void emit_whole_takes(const Pass *pass);

/* ---- rows beside each other ---- */
void emit_beside_place(Emitter *e);
void emit_beside_walk(Emitter *e);
/* Where a thread's vectors of a tensor are: the arguments of load_span and store_span. */
const char *span_text(Emitter *e, const char *pointer, int tensor, AxisSet axes);
/* Whether a tensor's vectors of rows are aligned, and how far apart a thread's rows are. */
const char *alignment_text(Emitter *e, const char *pointer, int tensor, AxisSet axes);
const char *apart_text(const Emitter *e);
const char *together_text(const Emitter *e); /* whether they are side by side, and all there */
/* What each of these rows has once: computed, it is in an array by the elements of a vector. */
bool is_of_rows_beside(const Emitter *e, Node n);
bool is_across_value(const Emitter *e, Node n);
void emit_across_values(Emitter *e, int phase);
void emit_across_stores(Emitter *e, int phase);
void emit_across_sums(Emitter *e, int phase);
void emit_row(Emitter *e);

/* ---- the row pipeline ---- */
void emit_pipeline_start(Emitter *e);
void emit_pipelined_phases(Emitter *e);
void emit_pipeline_end(Emitter *e);

/* ---- rows that CTAs share ---- */
/* The number of CTAs that share a row, a constant; which of them a CTA is; where its columns end;
 * how many it has; the same, or all columns of a row that one CTA has alone. */
const char *sharers(const Emitter *e);
const char *rank_text(Emitter *e);
const char *slice_end(const Emitter *e);
const char *slice_text(const Emitter *e);
const char *own_columns(const Emitter *e);
/* The number of threads that share a row, a constant; a call at which they wait for each other. */
const char *team_threads(const Emitter *e);
const char *sharing_threads(const Emitter *e); /* of all CTAs that take turns along a row */
const char *team_barrier(const Emitter *e);
void emit_slice(Emitter *e);
/* The memory through which CTAs exchange so many values at once. */
void emit_exchange(Emitter *e, int values);

/* ---- rows in registers ---- */
bool is_prefetched(const Emitter *e, const Load *load);
void emit_prefetch_start(Emitter *e);
void emit_prefetch_row(Emitter *e);
void emit_prefetch_next(Emitter *e, int phase);
void emit_prefetch_tile(Emitter *e, int phase);

/* ---- rows that pass through shared memory by blocks ---- */
void declare_blocks(Emitter *e);
void emit_blocks_read(Emitter *e);
void emit_from_blocks(Emitter *e, const Load *load);
void emit_to_blocks(Emitter *e, const Store *store);
void emit_blocks_written(Emitter *e, int phase);

/* ---- the ring ---- */
void emit_dynamic_memory(Emitter *e);
void emit_ring_memory(Emitter *e);
const char *staged_scalar(Emitter *e, const Load *load);
/* A team's row in a stage, where copies are line-aligned. */
const char *line_aligned_row(Emitter *e, const Load *load);
void emit_ring(Emitter *e);
bool is_held_by_group(const Emitter *e);
void emit_held_by_group(Emitter *e);
bool has_held(const Emitter *e);
const char *first_row_text(Emitter *e, const char *part);
void emit_ring_step(Emitter *e, const char *row);
void emit_stage_reuse(Emitter *e);
/* Before the barrier of a row's first reduction. */
void emit_next_landed(Emitter *e, const char *reduction);
void emit_copy_warp(Emitter *e);
void emit_listener(Emitter *e); /* the warp that receives a group's results, where no warp copies */
void emit_bulk_stage(Emitter *e); /* starts the copy of a CTA's row ... */
void emit_bulk_wait(Emitter *e);  /* ... and waits for it */
/* To the next stage of one of so many groups. */
void emit_advance(Emitter *e, int groups);
void emit_stage_wait(Emitter *e);
void emit_stage_release(Emitter *e);
/* Whether a row's number must be split into coordinates. */
static inline bool splits_rows(const Emitter *e)
{
    return has_several_row_axes(e->k) && !e->collapsed;
}
/* Declares the coordinates of `item`, which counts the elements of several axes. */
void emit_split(Emitter *e, const char *item, AxisSet axes);

/* ---- sums over rows ---- */
const char *accumulator_name(Emitter *e, const Accumulator *acc);
const char *scratch_type(const Emitter *e); /* that holds any of its accumulators */
/* Declares accumulators and walks the rows; those of a part, if rows are in parts. */
void emit_walk(Emitter *e);
void emit_accumulators_end(Emitter *e);
void emit_overlap(Emitter *e); /* waits for the kernel before, where this one may start early */
bool is_waited_for(const Emitter *e); /* whether a finish kernel may start while this one ends */
void declare_team_scratch(Emitter *e);
void emit_meeting(Emitter *e, const char *place);
void emit_sums_store(Emitter *e, const Accumulator *acc, const char *row);
void emit_team_reduce(Emitter *e, const Accumulator *acc);
void emit_groups(Emitter *e);
/* Names the results of a column's sums, computes what else is made of them, and stores it; in
 * another kernel, for the finish kernel `finish`. */
void emit_results(Emitter *e);
void emit_results_of(Emitter *e, const Kernel *finish);
/* Prints `sums`, and the results for the threads of which `stores` holds. */
void emit_sums_and_results(Emitter *e, const char *stores, void (*sums)(Emitter *e));
/* How often the kernel mentions each node, and which would make a line too long. */
void count_users(Emitter *e);
void break_lines(Emitter *e);
/* A CTA's first row. */
const char *first_of_walk(const Emitter *e);
/* A variable `name`, or a size, for the number of elements of `axes`. */
const char *count_name(Emitter *e, AxisSet axes, const char *name);

/* ---- a mean and its squares over rows ---- */
bool has_squares(const Accumulator *acc);  /* it is such a mean */
bool is_satellite(const Accumulator *acc); /* such squares, or what the f32 of the mean lacks */
void declare_moments(Emitter *e, Accumulator *mean);
void add_to_moments(Emitter *e, const Accumulator *mean, const char *value); /* an element */
void add_row_to_moments(Emitter *e, const Accumulator *mean, const char *value);
void declare_taken_vectors(const Pass *pass);
void emit_taken_vectors(const Pass *pass);
void emit_counted_rows(const Pass *pass);
/* Behind the last row. `row`, in slots of partials: "blockIdx.x * (long long)N". */
void settle_moments(Emitter *e);
void declare_meeting(Emitter *e, const Accumulator *mean, const char *writers);
void leave_moments(Emitter *e, const Accumulator *mean);
void store_left_moments(Emitter *e, const Accumulator *mean, const char *row, const char *end);
void meet_moments(Emitter *e, const Accumulator *mean);
void store_moments(Emitter *e, const Accumulator *mean, const char *row, const char *guard);
void store_full_moments(Emitter *e, const Accumulator *mean);
const char *moments_call(Emitter *e, const Accumulator *mean);
/* Partials. */
void join_partial(Emitter *e, const Accumulator *mean, const char *item, const char *part);
void join_slices(Emitter *e, const Accumulator *mean, const char *places);
void add_part_moments(Emitter *e, Accumulator *mean);
void emit_moments_result(Emitter *e, const Accumulator *acc);
const char *
teams_before(Emitter *e); /* `teams = 4`: those of the kernel that leaves the partials */

/* ---- kernels ---- */
void emit_comment(Emitter *e);
void emit_launch_table(Emitter *e);
void put_row(Emitter *e, const char *key, const char *value); /* of that table */
void put_mapping(Emitter *e);        /* which rows and columns CTAs and threads have */
void put_finish_mapping(Emitter *e); /* the same of a finish kernel */
void emit_rows_kernel(Emitter *e);
void emit_finish_kernel(Emitter *e);
void emit_group_finish_kernel(Emitter *e);
void emit_clear_kernel(Emitter *e);
const char *signature_text(Emitter *e);
bool names_cluster(const Emitter *e);

#endif
