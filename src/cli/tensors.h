/* tensors.h: --in and --out: tensor files against the parameters of a graph. */
#ifndef FUSEC_CLI_TENSORS_H
#define FUSEC_CLI_TENSORS_H

#include "cli/safetensors.h"
#include "cli/session.h"

typedef struct {
    const char *path;
    TensorFile file;
    const Tensor **params;          /* by param; NULL: not in the file (scalars only) */
    bool *given;                    /* the same as flags */
    Sizes sizes;                    /* of the axes they have; -1: unknown */
    const char *sized_by[MAX_AXES]; /* the tensor that a size came from */
} InputFile;

/* Reads a file and matches it with the graph: names, dtypes, shapes. Every tensor input must be
 * there, and nothing else but scalars of shape []. Complains and returns an exit status. */
int open_inputs(const Session *s, const char *path, InputFile *file);
void fill_from_inputs(const Session *s, const InputFile *file, Batch *b);
void close_inputs(InputFile *file);
/* Settles the sizes of an open session and opens a batch of them, with the inputs of --in, else random ones. */
int fill_batch(Session *s, Batch *b);

/* Writes the wanted outputs. */
int save_outputs(const Session *s, const Batch *b, const char *path);
/* The width of a table's column with the names of the wanted outputs. */
int output_width(const Session *s);
/* A table of the wanted outputs: shape, dtype, range, mean, a hash of the bytes. */
void summarize_outputs(const Session *s, const Batch *b, Text *out);
/* The same of one output as JSON: an object that is still open. */
void put_output(const Session *s, const Batch *b, int output, Text *out);

#endif
