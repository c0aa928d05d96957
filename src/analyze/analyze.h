/* analyze/analyze.h: graph -> analysis: which axes are rows and which columns, what kind each
 * reduction is, in which phase it runs, which inputs must stay on chip between phases, and how many
 * bytes must be moved at least. docs/explanation/concepts.md defines the terms. schedule/schedule.c decides from
 * the analysis, explain/explain.c prints it. */
#ifndef FUSEC_ANALYZE_H
#define FUSEC_ANALYZE_H

#include "graph/graph.h"

typedef enum {
    KIND_INNER,         /* reduces columns only, all of them or some */
    KIND_OUTER,         /* reduces all row axes and no column */
    KIND_PARTIAL_OUTER, /* reduces some row axes and no column */
    KIND_FULL,          /* reduces everything its expression has */
    KIND_MIXED          /* anything else that touches rows and columns */
} ReductionKind;

typedef struct {
    Node node;
    const char *name; /* its binding's name, else its text, `sum[N](-a)` */
    ReductionKind kind;
    int phase;    /* the phase in which it accumulates: its operand's, or its partner's */
    Node partner; /* the reduction it is computed with, see find_partner(); 0: none */
    Node centre;  /* the mean that it is accumulated with, see Analysis.centres; 0: none */
} Reduction;

/* An input that several phases need, so that it stays on chip between them. */
typedef struct {
    Node node; /* a PARAM with row axes */
    const char *name;
    int64_t bytes_per_row;
} Persistent;

/* Which axes are a row's columns. The words of the schedule's key `axes` are in this order. */
typedef enum {
    COLUMNS_REDUCED, /* those that a reduction removes; the last, where none removes such */
    COLUMNS_LAST,    /* the last */
    COLUMNS_SPLIT,   /* those behind rows that reductions over rows and columns are split at */
    COLUMNS_WIDER,   /* as many of the last as make whole vectors */
    COLUMNS_SHORT    /* those of the few rows that a sum takes, behind the first axis */
} Columns;

typedef struct Analysis {
    const Graph *graph;
    Sizes sizes;
    AxisSet rows, columns;
    Columns choice;
    AxisSet beside; /* the fastest axis where it is of the rows: these are neighbours in memory, and
                       a row's columns are apart; else 0 */
    AxisSet
        fixed; /* whose sizes are compiled in: the columns, and the last axes of tensors that have
                      neither columns nor the rows of one that has */
    const struct Analysis *first; /* of the analyses of a graph that differ in their columns */
    const struct Analysis *other; /* the next of them; NULL: there are no more */
    /* Outputs that share nothing with others, and have rows along other axes, are parts. Each is
     * analyzed alone; their reductions and columns are here, too. 0: the graph has no such parts. */
    int part_count;
    const struct Analysis *const *parts;
    int reduction_count;
    const Reduction *reductions;
    int persistent_count;
    const Persistent *persistent;
    const Node *partners; /* by node id: Reduction.partner */
    const Node *centres;  /* by node id: of a mean of squares about a mean, and of what the f32 of
                             that mean lacks, over rows: the mean, with which a kernel finds them;
                             0: it is none of these */
    const int *phase;     /* by node id: how many inner reductions lie before the value */
    int phases;           /* 1 + the largest phase */
    int64_t read_bytes, write_bytes; /* each used input once, each wanted output once */
} Analysis;

const char *kind_name(ReductionKind kind); /* "inner", "partial_outer", ... */

enum { LAST_PHASE_BIT = 63 };
/* The bit of a phase in a set of phases. The last bit stands for all phases from there on. */
static inline uint64_t phase_bit(int phase)
{
    return (uint64_t)1 << (phase < LAST_PHASE_BIT ? phase : LAST_PHASE_BIT);
}

/* Some reductions over r = max[K](x) or r = mean[K](x) need no phase after that of r: both are
 * accumulated in one phase.
 *
 *   sum[K](exp(x - max[K](x)))   one factor turns the sum of exp(x - b) into that for another b
 *                                (Milakov and Gimelshein 2018, arXiv:1805.02867)
 *   mean[K]((x - mean[K](x))^2)  one addition turns squares about the mean of a part into squares
 *                                about the common mean (Chan, Golub, LeVeque 1979)
 *
 * Gives r; 0: the reduction is none of these. f32 alone, where the errors are within the bound. */
Node find_partner(const Graph *g, const Sizes *sizes, Node n);
/* The first kind may be written as exp(x - where(abs(r) == inf, 0, r)): which infinite maxima are
 * replaced. */
enum { EXCLUDES_LOW = 1, EXCLUDES_HIGH = 2 };
unsigned excluded_of_base(const Graph *g, Node sum);

/* analyze/places.c: a comparison of an element's place among the columns with a number of its row:
 * index(K) op the sum of some terms. */
enum { MOST_TERMS = 6 };
typedef struct {
    Node n;
    bool minus;   /* it is subtracted */
    bool limited; /* it may be any number: it is limited before it is added to others */
} PlaceTerm;
typedef struct {
    Node comparison;
    Op op;
    bool plain;  /* the program compares the index itself with the only term ... */
    bool turned; /* ... and writes the index on the right */
    int count;
    PlaceTerm terms[MOST_TERMS];
} PlaceTest;

/* Whether a comparison is one, where the columns are one axis. */
bool find_place_test(const Graph *g, AxisSet columns, Node comparison, PlaceTest *test);
Op opposite_comparison(Op op); /* of the comparison that holds where `op` does not */

/* Its graph has corrected squares about rounded means where `g` leaves those to other kernels. */
Analysis *analyze(Arena *arena, const Graph *g, const Sizes *sizes);
/* The same of `g` as it is. */
Analysis *analyze_as_is(Arena *arena, const Graph *g, const Sizes *sizes);
/* The corrected graph; NULL: it would be the same. */
Graph *correct_moments(Arena *arena, const Analysis *a);
/* Whether a node is such squares as Analysis.centres tells of. */
static inline bool is_variance(const Analysis *a, Node n)
{
    return a->centres[n.id].id && node(a->graph, arg(a->graph, n, 0))->op == OP_MUL;
}
const Node *find_centres(Arena *arena, const Analysis *a); /* for Analysis.centres */
/* For analyze/parts.c: the axes of live nodes; the columns among them; the last of some axes; the
 * analysis of a graph as one part, with such columns (0: those that find_columns() finds). */
AxisSet live_axes(const Graph *g, const bool *live);
AxisSet find_columns(const Graph *g, const Sizes *sizes, const bool *live, AxisSet axes);
AxisSet last_of(AxisSet axes);
Analysis *analyze_alone(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns);
/* analyze/split.c: the columns with which reductions over rows and columns can be split, 0: there are
 * none; the graph with those that are. */
AxisSet find_split(const Graph *g, const bool *live, AxisSet axes);
Graph *split_reductions(Arena *arena, const Graph *g, const Sizes *sizes, AxisSet columns);
void print_analysis(Text *out, const Analysis *a); /* --emit=analysis */

static inline bool axes_within(AxisSet inner, AxisSet outer)
{
    return !(inner & ~outer);
}

#endif
