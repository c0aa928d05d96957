/* safetensors.h: the tensor files of the command line: 8 bytes with the header's length (little
 * endian), a JSON header { "name": {"dtype", "shape", "data_offsets"}, ... }, the elements.
 *
 * Files are not trusted: any error is reported in one message. Tensors may have no axes; dtypes
 * that fusec does not have are refused. */
#ifndef FUSEC_SAFETENSORS_H
#define FUSEC_SAFETENSORS_H

#include "base/dtype.h"

#include <stddef.h>

enum { MAX_TENSOR_RANK = 8 };

typedef struct {
    char *name;
    DType dtype;
    int rank;
    int64_t sizes[MAX_TENSOR_RANK];
    void *data; /* dense, row-major, aligned to its elements */
} Tensor;

typedef struct {
    Tensor *tensors; /* in the header's order */
    int count;
    void *bytes; /* the whole file, into which tensors point */
    size_t length;
    bool owned;          /* whether this owns `bytes` */
    void *copy;          /* or a copy into which they point, where the file's data is not aligned */
    bool machine_failed; /* the machine could not read it, whatever it contains */
} TensorFile;

/* Reads a file ("-": standard input). False: `message` says why, nothing is held, and
 * file->machine_failed says whether the machine failed. */
bool tensors_read(const char *path, TensorFile *file, char *message, size_t capacity);
/* The same from bytes in memory, which stay the caller's and must outlive the tensors. */
bool tensors_parse(void *bytes, size_t length, const char *name, TensorFile *file, char *message,
                   size_t capacity);
void tensors_close(TensorFile *file);
const Tensor *tensors_find(const TensorFile *file, const char *name); /* NULL: none */

/* Elements, and bytes, of a tensor. */
int64_t tensor_count(const Tensor *tensor);
size_t tensor_bytes(const Tensor *tensor);

/* Writes a file ("-": standard output). A regular file is written under a temporary name
 * in its directory, synced and renamed; anything else (a pipe, a device) is written
 * directly. */
bool tensors_write(const char *path, const Tensor *tensors, int count, char *message,
                   size_t capacity);

#endif
