/* session.h: a graph ready to run, and a batch of its tensors: what `run`, `bench` and the GPU
 * cases share. Everything goes through the public interface of the runtime; the checked graph
 * beside it is what random inputs and the reference need. */
#ifndef FUSEC_CLI_SESSION_H
#define FUSEC_CLI_SESSION_H

#include "fusec.h"
#include "cli/program.h"
#include "reference/reference.h"

typedef struct {
    Arena *arena;
    const Options *options;
    Program program;
    Compilation checked; /* as far as UNTIL_GRAPH */
    const Graph *graph;  /* as written */
    bool *wanted;        /* by output */
    fusec_program *parsed;
    fusec_device *device;
    bool owns_device, is_cpu;
    bool is_simulated;     /* then `device` is the CPU's, for its memory, and ... */
    Compilation simulated; /* ... this takes the plan's place */
    fusec_plan *plan;
    Sizes sizes; /* planned with */
} Session;

enum { POISON = 0xFF }; /* the byte of memory nobody wrote: a NaN in every float dtype */

/* One tensor (or scalar) of a batch. */
typedef struct {
    void *data; /* host, dense, row-major */
    int64_t count;
    size_t bytes;
    void *memory;        /* the device's; `tensor` points into it */
    bool laid_out;       /* by --stride or --offset */
    size_t room, before; /* bytes of that memory; those before the tensor */
    fusec_tensor tensor;
} Buffer;

typedef struct {
    Sizes sizes;
    Buffer *inputs;         /* by param */
    Buffer *outputs;        /* by output */
    double *scalars;        /* by param */
    fusec_tensor *in, *out; /* as fusec_plan_launch takes them */
    double *values;
    void *workspace;
} Batch;

/* Reads FILE and checks its one graph. */
int open_session(Session *s, const Options *o);
/* Opens the device that --device asks for: "cuda", "cpu", "sim", NULL: the GPU, else the CPU, said
 * aloud. */
int open_device(Session *s, const char *name);
/* Sizes from --in tensors (NULL: none known, -1), the command line and the defaults. */
int settle_sizes(Session *s, const Sizes *from_tensors);
/* Compiles the graph for s->sizes. */
int open_plan(Session *s, bool no_cache);
void close_session(Session *s);

/* Host memory for a batch; the inputs not yet filled in. */
int open_batch(const Session *s, const Sizes *sizes, Batch *b);
/* Scalars from --set and the defaults; with `random`, what is left is drawn from the seed. */
int settle_scalars(const Session *s, Batch *b, const bool *given, bool random);
void fill_random(const Session *s, Batch *b);
/* Device memory, laid out as --stride and --offset say, outputs and workspace poisoned. */
int upload_batch(const Session *s, Batch *b);
int launch_batch(const Session *s, const Batch *b);
/* The same with more rows than `small` has, its values over and over; uploaded. */
int open_repeated(const Session *s, const Batch *small, const Sizes *sizes, Batch *full);
/* The device's memory, filled with POISON. */
int alloc_poisoned(const Session *s, size_t bytes, void **memory);
/* What a launch with these sizes needs. */
size_t workspace_bytes(const Session *s, const fusec_plan *plan, const Sizes *sizes);
/* Waits, and brings the outputs back. */
int download_batch(const Session *s, Batch *b);
void close_batch(const Session *s, Batch *b);

/* What the reference says about a batch, by output: values and error bounds. */
typedef struct {
    double **exact;
    float **bound;
    HostTensor *outputs, *inputs;
} Truth;

int open_truth(const Session *s, const Batch *b, Truth *t);
/* Whether all outputs of the batch are within their bounds; a line for each goes to `table` (NULL:
 * none). */
bool judge_batch(const Session *s, const Batch *b, const Truth *t, Text *table);
void close_truth(const Session *s, Truth *t);
/* All three in one. */
int verify_batch(const Session *s, const Batch *b, Text *table, bool *passed);

#endif
