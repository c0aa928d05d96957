/* session.h: a graph ready to run, and a batch of its tensors: what `run`, `bench` and the GPU
 * cases share. Everything goes through the public interface of the runtime; random inputs and the
 * reference use the checked graph beside it. */
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
    bool is_simulated;     /* then `device` is the CPU's, for its memory */
    Compilation simulated; /* on the simulator: in place of the plan */
    fusec_plan *plan;
    Sizes sizes; /* planned with */
} Session;

enum { POISON = 0xFF }; /* unwritten memory: a NaN in every float dtype */

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
/* Opens the device that --device names: "cuda", "cpu", "sim"; NULL: the GPU, else the CPU with a
 * remark. */
int open_device(Session *s, const char *name);
/* Takes sizes from --in tensors (NULL: none; -1: unknown), the command line and the defaults. */
int settle_sizes(Session *s, const Sizes *from_tensors);
/* Compiles the graph for s->sizes. */
int open_plan(Session *s, bool no_cache);
void close_session(Session *s);

/* Allocates host memory for a batch; does not fill the inputs. */
int open_batch(const Session *s, const Sizes *sizes, Batch *b);
/* Takes scalars from --set and the defaults; with `random`, draws the others from the seed. */
int settle_scalars(const Session *s, Batch *b, const bool *given, bool random);
void fill_random(const Session *s, Batch *b);
/* Copies a batch to device memory, laid out as --stride and --offset say; poisons outputs and
 * workspace. */
int upload_batch(const Session *s, Batch *b);
int launch_batch(const Session *s, const Batch *b);
/* The same for more rows than `small` has, repeating its values. */
int open_repeated(const Session *s, const Batch *small, const Sizes *sizes, Batch *full);
/* Allocates device memory filled with POISON. */
int alloc_poisoned(const Session *s, size_t bytes, void **memory);
/* The workspace that a launch with these sizes needs. */
size_t workspace_bytes(const Session *s, const fusec_plan *plan, const Sizes *sizes);
/* Waits, and copies the outputs back. */
int download_batch(const Session *s, Batch *b);
void close_batch(const Session *s, Batch *b);

/* The reference's results for a batch, by output: values and error bounds. */
typedef struct {
    double **exact;
    float **bound;
    HostTensor *outputs, *inputs;
} Truth;

int open_truth(const Session *s, const Batch *b, Truth *t);
/* Sets whether all outputs of the batch are within their bounds; puts a line for each into `table`
 * (NULL: none). */
bool judge_batch(const Session *s, const Batch *b, const Truth *t, Text *table);
Verdict judge_output(const Session *s, const Batch *b, const Truth *t, int output);
/* As JSON. */
void put_verdict(Text *out, const Verdict *v);
void close_truth(const Session *s, Truth *t);
/* All three in one. */
int verify_batch(const Session *s, const Batch *b, Text *table, bool *passed);

#endif
