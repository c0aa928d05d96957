/* base/dtype.h: how tensors are stored (DType) and in what values are computed (Type).
 *
 * A load widens the stored element to its compute type; a store rounds (or saturates) back. */
#ifndef FUSEC_DTYPE_H
#define FUSEC_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { TYPE_F32, TYPE_F64, TYPE_I64, TYPE_BOOL } Type;

typedef enum {
#define DTYPE(name, fuse, safetensors, cuda, bytes, type) DTYPE_##name,
#include "base/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef struct {
    const char *fuse, *safetensors, *cuda;
    int bytes;
    Type type;
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

const char *type_name(Type type); /* "f32", "f64", "i64", "bool" */
bool dtype_find(const char *fuse_name, DType *dtype);
bool dtype_is_float(DType dtype);
static inline bool type_is_float(Type t)
{
    return t == TYPE_F32 || t == TYPE_F64;
}

/* One element in memory <-> its value. Floats pass through double, which holds every stored float
 * exactly. Stores round to nearest even; fp8 saturates to the largest finite value, f16 and bf16
 * overflow to infinity, NaN stays NaN. Integers pass through int64_t; their stores saturate. A
 * double stored as an integer is rounded toward zero and saturates; NaN gives 0. */
double dtype_load_float(DType dtype, const void *element);
int64_t dtype_load_int(DType dtype, const void *element); /* integers and bool */
void dtype_store_float(DType dtype, void *element, double value);
void dtype_store_int(DType dtype, void *element, int64_t value);
/* The value that a store followed by a load gives. */
double dtype_round(DType dtype, double value);
int64_t dtype_saturate(DType dtype, int64_t value);
/* Whether a scalar of the dtype may be given as `value`. Floats are rounded; an integer must be
 * whole and in range. INT64_MAX may be given as the nearest double, 2^63. */
bool dtype_takes(DType dtype, double value);
/* Whether `kept`, what a dtype stores of a number, is no rounding of it: the number overflows, or
 * becomes 0. */
bool dtype_distorts(DType dtype, double value, double kept);
int64_t int_from_double(double value); /* toward zero, saturating */
/* The distance between neighbouring values of a float dtype around `value` (subnormals included).
 */
double dtype_ulp(DType dtype, double value);
/* Whether a row is a multiple of the 16 bytes that bulk copies are made of, or of the 128 that
 * memory moves at once. */
static inline bool is_whole_blocks(int64_t columns, DType dtype)
{
    return columns * dtype_info[dtype].bytes % 16 == 0;
}
enum { LINE_BYTES = 128 };
static inline bool is_whole_lines(int64_t columns, DType dtype)
{
    return columns * dtype_info[dtype].bytes % LINE_BYTES == 0;
}
/* Bytes that a buffer needs beside a row's, so that the row may start at its place of a line. */
static inline int line_room(int64_t columns, DType dtype)
{
    return is_whole_lines(columns, dtype) ? 0 : LINE_BYTES;
}

#endif
