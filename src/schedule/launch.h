/* schedule/launch.h: all that a launcher needs to know about a compiled plan, as plain data without
 * a graph: the runtime launches from it, the simulator too, and it is what a saved plan holds.
 *
 * Axes are numbered as in the graph; column sizes are compiled in, row sizes are given at launch.
 * Tensors are numbered inputs first (declaration order, scalars left out), then outputs. */
#ifndef FUSEC_LAUNCH_H
#define FUSEC_LAUNCH_H

#include "graph/graph.h"

enum {
    GRID_RANK = 3,
    MOST_ALONG_Y = 65535, /* CTAs of a grid, by CUDA */
    PARTS_DIM = 2,
    PARTS_SHARE = 8,
    MAX_LAUNCH_ARGS = 512, /* of one kernel: 4096 bytes is what all versions of CUDA pass */
    MAX_LAUNCH_SLOTS = 256
};

typedef struct {
    const char *name;
    DType dtype;
    AxisSet axes;
    bool output, wanted; /* unwanted outputs are never touched; pass NULL */
} LaunchTensor;

typedef struct {
    const char *name;
    DType dtype; /* passed as its compute type: float, double, long long, bool, after
                    rounding to dtype */
    bool has_default;
    double default_value;
} LaunchScalar;

/* A buffer of the workspace. Elements: `copies` x product of the axes' sizes; each slot begins at a
 * multiple of 256 bytes, in order. The parts of a kernel with part_groups have room for that many
 * groups, though with more they need less: a workspace for larger sizes serves smaller ones. */
typedef struct {
    const char *name;
    DType dtype;
    AxisSet axes;
    int copies_kernel; /* -1: one copy; else one for each group of that kernel ... */
    int copies_dim;    /* ... along this dimension of its grid */
    int64_t width;     /* elements for each of the axes': 1, but in a mailbox */
} LaunchSlot;

typedef enum {
    ARG_TENSOR,     /* index: tensor; a pointer */
    ARG_STRIDE,     /* index: tensor, axis: graph axis; elements between neighbours, long long */
    ARG_ROW_STRIDE, /* index: tensor; collapse_rows(), long long */
    ARG_SIZE,       /* axis; long long */
    ARG_ROWS,       /* index: kernel; how many rows its collapsed axes have, long long */
    ARG_SCALAR,     /* index: scalar */
    ARG_SLOT,       /* index: slot; a pointer into the workspace */
    ARG_GRID,       /* index: kernel, axis: grid dimension; its group count, int */
    ARG_INTERVAL,   /* index: kernel; launch_interval(), unsigned */
    ARG_ALONE       /* index: kernel; takes_whole_groups(), int */
} ArgKind;

enum { READ_BY_WRITER = -1 };
typedef struct {
    ArgKind kind;
    int index, axis;
    int phase;        /* ARG_TENSOR: the last in which an input's memory is read, or the one
                         in which an output's is written; of an input READ_BY_WRITER: a thread
                         reads each element before it writes that of any output */
    const char *name; /* of the kernel's parameter */
} LaunchArg;

/* A function of the module and what it is called with. */
typedef struct {
    const char *name; /* the extern "C" symbol */
    int arg_count;
    const LaunchArg *args;
} LaunchEntry;

/* Groups along one grid dimension: min(ceil(product of sizes / per_cta), max_ctas), times `times`
 * where that is over 1. A group is a cluster along x, where the kernel has clusters or a mailbox,
 * and else a CTA. A product of zero gives none and the kernel is not launched (its copies are then
 * zero too). */
typedef struct {
    AxisSet axes; /* empty: the product is 1 */
    int64_t per_cta;
    int64_t max_ctas;
    int64_t times;
} LaunchGrid;

typedef struct {
    LaunchEntry entry;
    AxisSet collapsed;   /* several row axes that `entry` counts as one. It is for tensors for which
                            collapse_rows()   says that this can be, ... 0: it is for all ... */
    AxisSet dense;       /* several column axes that `entry` counts as one, for tensors that have
                            all of them side by side: is_dense_along(); 0: none */
    LaunchEntry strided; /* ... and this for the others; name NULL: there is none */
    int threads;
    int cluster; /* CTAs a cluster along x, 1: none */
    int mailbox; /* -1, or the slot through which `cluster` CTAs along x exchange in place of
                    a cluster: the kernel before zeroes it, and all CTAs must live at once
                    (a cooperative launch) */
    int64_t part_groups; /* over 0: grid[0] counts groups of rows that are summed apart, grid[2] the
                            parts that each one's rows are in, and the CTAs, which are one along z,
                            share out all parts. Where there is one part, or where the CTAs that
                            would be left idle by the last round are an eighth (PARTS_SHARE) of the
                            groups or fewer, they share out whole groups. So they always do from so
                            many groups on */
    int64_t part_ctas;   /* CTAs at most that share out parts */
    int adds_parts;     /* -1, or the kernel before it whose parts it adds: it is not launched where
                           CTAs there take whole groups, for then they store the results */
    bool overlaps;      /* may start while the kernel before it in the stream ends, also one that is
                           not of this plan: its text waits for that (programmatic stream
                           serialization, sm_90 and later) */
    int64_t smem_bytes; /* dynamic */
    int64_t few_bytes; /* ... of a launch of up to few_ctas CTAs along x, in place of it; right with
                          either, and few are faster so */
    int64_t few_ctas;
    int64_t step_bytes; /* that memory is given time for each time a group takes rows: what it reads
                           and writes, or somewhat more (paced_bytes in schedule/pacing.c); 0: it
                           has no interval */
    int paced_from;     /* the interval is for rows that are so many times what L2 holds, or more */
    LaunchGrid grid[GRID_RANK];
} LaunchKernel;

static inline bool has_strided(const LaunchKernel *kernel)
{
    return kernel->collapsed || kernel->dense;
}

/* Arguments of either of its entries. */
static inline int most_args(const LaunchKernel *kernel)
{
    return kernel->entry.arg_count > kernel->strided.arg_count ? kernel->entry.arg_count
                                                               : kernel->strided.arg_count;
}

typedef struct {
    const char *graph;
    int axis_count;
    const char *axis_names[MAX_AXES];
    AxisSet fixed; /* axes whose size is compiled in */
    Sizes sizes;   /* compiled-in sizes, and the sizes planned with for the others */
    int tensor_count, scalar_count, slot_count, kernel_count;
    const LaunchTensor *tensors;
    const LaunchScalar *scalars;
    const LaunchSlot *slots;
    const LaunchKernel *kernels;
    int input_count; /* tensors[0 .. input_count) are inputs */
} LaunchPlan;

/* All entries of kernels in the order in which the text has them; `entries` has room for 2 *
 * kernel_count. Gives how many. */
int list_entries(const LaunchPlan *plan, const LaunchEntry **entries);
/* Groups of a kernel along a dimension for the given sizes, and the CTAs that are launched for
 * them. */
int64_t launch_groups(const LaunchPlan *plan, int kernel, int dim, const Sizes *sizes);
int64_t launch_ctas(const LaunchPlan *plan, int kernel, int dim, const Sizes *sizes);
/* Dynamic shared memory of a launch of so many CTAs along x. */
static inline int64_t launch_smem(const LaunchKernel *kernel, int64_t ctas)
{
    return kernel->few_ctas && ctas <= kernel->few_ctas ? kernel->few_bytes : kernel->smem_bytes;
}
/* ... and of the most that one has. */
static inline int64_t most_smem(const LaunchKernel *kernel)
{
    return kernel->few_bytes > kernel->smem_bytes ? kernel->few_bytes : kernel->smem_bytes;
}
/* Of parts whose number is a share of the CTAs': one of up to so many. */
enum { PART_DIVISORS = 4 };
int64_t least_part_rows(const LaunchGrid *parts);
/* Whether the CTAs of a kernel with part_groups share out whole groups. */
bool takes_whole_groups(const LaunchPlan *plan, int kernel, const Sizes *sizes);
/* The ns that are to pass between two steps of a group, so that all groups together ask for `rate`
 * bytes of global memory a ns. 0: they ask as they can, as they do where all rows together are too
 * few for a cache of l2_bytes (paced_from). */
unsigned launch_interval(const LaunchPlan *plan, int kernel, const Sizes *sizes, double rate,
                         int64_t l2_bytes);
/* Byte offset of each slot, and the workspace's size in bytes. `offsets` may be NULL. */
int64_t launch_workspace(const LaunchPlan *plan, const Sizes *sizes, int64_t *offsets);
int64_t launch_slot_elements(const LaunchPlan *plan, int slot, const Sizes *sizes);

/* Rows of a kernel whose row axes are collapsed; saturates. */
int64_t collapsed_rows(const LaunchPlan *plan, int kernel, const Sizes *sizes);
/* Whether the rows of a tensor, which has all of the row axes `rows` or none, are evenly apart, so
 * that one stride leads from each to the next, last axis first: *stride, in elements. A tensor of
 * nothing but rows is to be dense. `strides` are the tensor's, by its own axes. */
bool collapse_rows(const LaunchPlan *plan, int tensor, AxisSet rows, const Sizes *sizes,
                   const int64_t *strides, int64_t *stride);
/* Whether a tensor that has all of some axes, its last, has their elements side by side. One that
 * lacks an axis of them may be anyhow. */
bool is_dense_along(const LaunchPlan *plan, int tensor, AxisSet axes, const Sizes *sizes,
                    const int64_t *strides);
/* Whether an output may lie on an input that is laid out alike. */
bool may_lie_on(const LaunchPlan *plan, int input, int output);
/* The entry of a kernel that takes a launch's tensors, whose strides `strides_of` gives. */
typedef const int64_t *StridesOf(const void *launch, int tensor);
const LaunchEntry *choose_entry(const LaunchPlan *plan, int kernel, const Sizes *sizes,
                                StridesOf *strides_of, const void *launch);

/* Whether no two elements of a tensor that is not empty share a place: each stride steps over all
 * that smaller ones reach. The tensor lies within an address space. */
bool elements_are_apart(int rank, const int64_t *sizes, const int64_t *strides);

#endif
