/* data.h: the tensors of one random program: inputs, what the reference makes of them,
 * and layouts of the same values in memory. */
#ifndef FUSEC_PROP_DATA_H
#define FUSEC_PROP_DATA_H

#include "compile.h"
#include "reference/reference.h"

/* What went wrong; `kind` stays the same while a program shrinks. */
typedef struct {
    char kind[64];
    char schedule[64]; /* under which; "": the chosen one */
    char text[4096];
} Finding;

/* Fills in a finding and gives false. */
bool found(Finding *f, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct {
    Arena *arena;
    const Graph *graph; /* as lowered */
    Sizes sizes;
    HostTensor *inputs;     /* by param */
    AxisSet *repeated;      /* by param: axes along which its values are all the same */
    double *scalars;        /* by param */
    double *launch_scalars; /* scalars alone */
    HostTensor *outputs;    /* by output: what the CPU stores */
    double **exact;
    float **bound;
} Data;

/* Random inputs of the seed, and the reference's results; false when memory ran out. */
bool make_data(Data *data, Arena *arena, const Graph *lowered, const Sizes *sizes, uint64_t seed);
/* Evaluates another graph of the same program on the same inputs. */
bool evaluate_again(const Data *data, const Graph *g, int threads, HostTensor *outputs,
                    double **exact, float **bound);
/* What the reference says of one element. */
double exact_value(const Data *data, int output, int64_t element);
int64_t bytes_of(const Sizes *sizes, DType dtype, AxisSet axes);

/* The program's tensors in memory: inputs, then outputs. */
typedef struct {
    void **tensors;
    int64_t (*strides)[MAX_RANK];
    int count;
} Layout;

/* Seed 0: dense and aligned; others: rows further apart, bases anywhere, inputs that
 * repeat with stride 0 and some backwards. */
Layout make_layout(const Data *data, uint64_t seed);
/* The dense elements of an output. */
void *read_output(const Data *data, const Layout *layout, int output);

#endif
