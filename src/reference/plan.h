/* reference/plan.h: how the evaluator goes about a graph: a list of passes over index spaces.
 *
 * A pass walks the space of one set of axes, row by row and chunk by chunk. It computes what its
 * sinks need, and feeds them: outputs, values kept for later passes, reductions. All reductions of
 * a space that are ready together share a pass. What is cheap to hold is never computed twice. */
#ifndef FUSEC_REFERENCE_PLAN_H
#define FUSEC_REFERENCE_PLAN_H

#include "reference/reference.h"
#include "reference/steps.h"

/* A dense array of a node's values. */
typedef struct {
    void *v;
    double *e; /* NULL: exact, or no bounds wanted */
} Kept;

/* By node id. A mean that the kernels compute together with squares about it: itself. x - such a
 * mean: the mean. The mean of the squares: the mean, and x - mean. 0: none of these. */
typedef struct {
    uint32_t mean, distance;
    /* x - mean knows what the mean's rounding lost wherever it is used, not in its squares alone. */
    bool close;
} Moments;

typedef enum { STEP_COMPUTE, STEP_CONST, STEP_INDEX, STEP_TENSOR, STEP_KEPT } StepKind;

/* Computes one node. A step without the innermost axis is done once a row and fills its
 * chunk. */
typedef struct {
    StepKind kind;
    Operation operation;
    bool inner; /* has the innermost axis */
    bool exact;
    unsigned exact_args;          /* bit i: operand i has no bounds */
    int slot, args[MAX_OPERANDS]; /* chunk numbers; -1: none */
    double number;                /* CONST */
    int64_t integer;
    int axis;    /* INDEX: position in the pass's axes */
    DType dtype; /* TENSOR */
    const void *data;
    const Kept *kept;
    int64_t strides[MAX_AXES]; /* of the outer axes, in elements */
} Step;

typedef enum { SINK_OUTPUT, SINK_KEEP, SINK_REDUCE } SinkKind;

typedef struct {
    SinkKind kind;
    int slot;
    bool exact;
    Type type;
    int64_t strides[MAX_AXES]; /* of the outer axes */
    int output;                /* OUTPUT */
    Kept *kept;                /* KEEP, REDUCE: the result */
    Kept *centre;              /* REDUCE: of a mean, and of squares about it: see Plan; else NULL */
    const Kept *mean;          /* REDUCE: of squares: their mean; else NULL */
    Kept *second;              /* REDUCE: see Plan.seconds */
    Operation operation;       /* REDUCE */
    bool reduces_inner, exact_source;
    int64_t count, terms;        /* items of the result; elements that each item adds */
    int64_t rows_per_slab, slab; /* rows that share leading kept coordinates; items they share */
} Sink;

typedef struct {
    AxisSet axes;
    int outer;               /* number of outer axes */
    int64_t sizes[MAX_AXES]; /* of the outer axes */
    int64_t inner, rows;     /* elements a row, rows */
    int64_t chunks, units;   /* chunks a row; all chunks */
    int blocks;              /* parts that threads take; sizes alone decide how many */
    int slots;
    LIST(Step) row_steps; /* once a row */
    LIST(Step) chunk_steps;
    LIST(Sink) sinks;
} Pass;

typedef struct {
    Arena *arena;
    const Evaluation *evaluation;
    const Graph *graph; /* with var expanded */
    bool bounds;
    bool *exact;      /* by node id */
    Range *ranges;    /* by node id */
    Kept **kept;      /* by node id; NULL: recomputed where needed */
    Moments *moments; /* by node id */
    /* By node id of a mean in moments: its values, with what x less that adds to the error of x;
     * else NULL. */
    Kept **centres;
    /* By node id of a comparison with the largest or smallest along the row of the value that is
     * compared: that reduction, else 0; and by the reduction's: Accumulator.second, else NULL. */
    uint32_t *extremes;
    Kept **seconds;
    LIST(Pass *) passes;
} Plan;

/* Chunk numbers: a step once a row keeps its chunk; the others release theirs after the last
 * use. */
typedef struct {
    int *slot_of, *last_use;
    LIST(int) free;
} Slots;

/* For reference/plan.c: whether a value has the pass's innermost axis; strides of a dense tensor
 * with `axes` along its outer axes. */
bool has_inner(const Pass *pass, AxisSet axes);
void find_strides(const Plan *p, const Pass *pass, AxisSet axes, int64_t *strides);
Operation operation_of(const Plan *p, uint32_t id);
void add_step(const Plan *p, Pass *pass, Slots *s, uint32_t id, bool done);
/* The chunk of the square of a distance, whose mean is computed. */
int add_square(const Plan *p, Pass *pass, const Moments *m, const int *slot_of);
static inline bool is_leaf(const NodeInfo *info)
{
    return op_info[info->op].class == CLASS_LEAF;
}

void find_moments(Plan *p);
void find_extremes(Plan *p);

Plan *plan_evaluation(Arena *arena, const Evaluation *e);
/* The items of a reduction's result that a block may touch: whole slabs, from that of its first
 * row. */
int64_t first_slab(const Pass *pass, const Sink *sink, int block);
int64_t slab_items(const Pass *pass, const Sink *sink, int block);
int64_t block_begin(const Pass *pass, int block); /* its first unit; of `blocks`: the end */

#endif
