/* ops.h: an operator of torch that runs one graph of a program. */
#ifndef FUSEC_TORCH_OPS_H
#define FUSEC_TORCH_OPS_H

#include "fusec.h"
#include "shim.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    MOST_OPS = 1024,
    MOST_TENSORS = 64, /* inputs and outputs of a graph */
    MOST_SCALARS = 16,
    MOST_AXES = 16,
    MOST_DEVICES = 64
};

typedef struct {
    const char *name;
    fusec_dtype dtype;
    int rank, axes[FUSEC_MAX_RANK];
} Declared;

/* A plan and what it is for. Plans are only ever added. */
typedef struct PlanEntry PlanEntry;
struct PlanEntry {
    int device; /* 0: the CPU, else the GPU's number and one */
    uint64_t wanted;
    uint32_t fixed; /* bit i: axis i is compiled in */
    int64_t sizes[MOST_AXES];
    fusec_plan *plan;
    PlanEntry *next;
};

typedef enum {
    OP_FORWARD,  /* inputs, scalars -> outputs */
    OP_BACKWARD, /* inputs, scalars, int wanted -> outputs; those that are not wanted are empty. An
                    input that cannot be launched is copied, for a gradient may be a view of any kind */
    OP_OUT       /* inputs, scalars, outputs -> nothing: the outputs are written in place */
} OpKind;

typedef struct {
    const fusec_program *program; /* kept by the caller */
    const char *graph;
    OpKind kind;
    int inputs, outputs, scalars, axes;
    Declared tensors[MOST_TENSORS]; /* outputs behind the inputs */
    fusec_dtype scalar_dtypes[MOST_SCALARS];
    const char *axis_names[MOST_AXES];
    int64_t axis_sizes[MOST_AXES]; /* the defaults; -1: none */
    uint64_t wanted;               /* bit i: output i is a result of a forward operator */
    _Atomic(PlanEntry *) plans;
} Op;

/* One call of an operator. */
typedef struct {
    Op *op;
    StableValue *stack;
    uint64_t wanted;
    int32_t device_type, device_index;
    TorchTensor
        tensors[MOST_TENSORS]; /* those owned by the call: arguments, then what it allocates */
    fusec_tensor views[MOST_TENSORS];
    double scalars[MOST_SCALARS];
    int64_t sizes[MOST_AXES];
    int leading; /* how many axes of the tensors the graph's first axis stands for */
    int64_t lead[FUSEC_MAX_RANK];
    char message[1400]; /* "": no error */
} Call;

/* Writes the message, if there is none yet, and returns false. */
bool call_fail(Call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* arguments.c: describes the inputs and finds the sizes of all axes. */
bool call_read_inputs(Call *call);
/* Describes a tensor for the launch, whose leading `extra` axes and the one behind them are the
 * graph's first. False, without a message, where those do not lie evenly. */
bool call_describe(Call *call, int index, int extra, const int64_t *sizes, const int64_t *strides);
/* The shape that an output has; its rank. */
int call_output_shape(const Call *call, const Declared *output, int64_t *sizes);
/* plans.c: the plan for a call, made at the first one of its kind. NULL: the call has a message. */
fusec_plan *call_find_plan(Call *call);

/* Makes an operator: registers its kernel for the CPU and CUDA under `name`, whose schema is
 * declared elsewhere. The program must live as long as the process. `wanted` has bit i set for each
 * output that a forward or mutating operator has. Returns "" or what is wrong, until the next call
 * of this thread. */
FUSEC_API const char *fusec_torch_define(const char *name, const fusec_program *program,
                                         size_t graph, int kind, uint64_t wanted);

#endif
