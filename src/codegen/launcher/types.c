/* ---- the same in every launcher: what a launch is made of ---- */

enum {
    GRID_RANK = 3,
    PARTS_DIM = 2,
    PARTS_SHARE = 8,
    PART_DIVISORS = 4,
    WORKSPACE_ALIGNMENT = 256,
    MAX_DEVICES = 64,
    MAX_GRID_Y = 65535
};

enum {
    BAD_POINTER = -1,
    BAD_SIZE = -2,
    BAD_ALIGNMENT = -3,
    BAD_WORKSPACE = -4,
    NO_KERNEL = -5,
    NO_DRIVER = -6,
    BAD_GRID = -7
};

typedef uint32_t AxisSet; /* bit i: axis i */

typedef struct {
    AxisSet axes;
    int bytes;          /* of an element */
    int output, wanted; /* what is not wanted is never touched */
} Tensor;

typedef enum {
    ARG_TENSOR,     /* index: tensor */
    ARG_STRIDE,     /* index: tensor; along `axis`, in elements */
    ARG_ROW_STRIDE, /* index: tensor; between neighbouring rows, in elements */
    ARG_SIZE,       /* of `axis` */
    ARG_ROWS,       /* index: kernel; rows of all its collapsed axes */
    ARG_SCALAR,     /* index: scalar */
    ARG_SLOT,       /* index: slot of the workspace */
    ARG_GRID,       /* index: kernel; groups along dimension `axis` of its grid */
    ARG_INTERVAL,   /* index: kernel; ns between two steps of a group */
    ARG_ALONE       /* index: kernel; whether its CTAs take whole groups */
} ArgKind;

typedef struct {
    ArgKind kind;
    int index, axis;
} Arg;

typedef struct {
    const char *name; /* of the kernel in the cubin; NULL: there is none */
    int overlaps;     /* it may start while its predecessor in the stream finishes */
    int arg_count;
    const Arg *args;
} Entry;

/* Groups of a dimension: min(ceil(product of sizes / per_cta), max_ctas) * times. */
typedef struct {
    AxisSet axes;
    int64_t per_cta, max_ctas, times;
} Grid;

typedef struct {
    Entry entry[2];    /* the second for what the first is not for */
    AxisSet collapsed; /* row axes that entry[0] counts as one: rows that are evenly spaced */
    AxisSet dense;     /* columns that entry[0] counts as one: they lie side by side */
    int threads;
    int cluster;         /* CTAs along x */
    int mailbox;         /* -1, or the slot by which they meet in place of a cluster */
    int64_t part_groups; /* over 0: groups of rows are summed in parts ... */
    int64_t part_ctas;   /* ... shared out to so many CTAs at most */
    int adds_parts;      /* -1, or the kernel whose parts it adds, if it left any */
    int64_t smem_bytes, few_bytes, few_ctas; /* few_bytes in a grid of up to few_ctas */
    int64_t step_bytes;                      /* over 0: its groups are paced */
    int paced_from;
    Grid grid[GRID_RANK];
} Kernel;

typedef struct {
    AxisSet axes;
    int bytes;                     /* of an element */
    int copies_kernel, copies_dim; /* -1, or one copy for each group of that kernel */
    int64_t width;
} Slot;

typedef struct {
    int capability; /* 90: 9.0 */
    int exactly;    /* it runs on that one alone; else on later minor versions, too */
    const unsigned char *cubin;
    int kernel_count, slot_count;
    const Kernel *kernels;
    const Slot *slots;
} Plan;

typedef union {
    void *pointer;
    long long integer;
    int number;
    unsigned interval;
    float f32;
    double f64;
    unsigned char boolean;
} Value;
