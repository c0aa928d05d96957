/* reference/chunks.c: elements of tensors into the evaluator's chunks and back. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno") /* vectors, at -O2 too */
#endif

#include "reference/steps.h"

#include <string.h>

#define EACH for (int i = 0; i < n; i++)

static void load_bf16(const uint16_t *x, int n, double *v)
{
    uint32_t bits[CHUNK];
    float values[CHUNK];
    EACH bits[i] = (uint32_t)x[i] << 16;
    memcpy(values, bits, (size_t)n * sizeof *bits);
    EACH v[i] = (double)values[i];
}

/* A multiplication moves the exponent: it is exact, and right for subnormals too. */
static void load_f16(const uint16_t *x, int n, double *v)
{
    uint32_t bits[CHUNK];
    float values[CHUNK];
    EACH
    {
        const uint32_t special = (x[i] & 0x7c00) == 0x7c00 ? 0x70000000 : 0;
        bits[i] = ((uint32_t)(x[i] & 0x8000) << 16 | (uint32_t)(x[i] & 0x7fff) << 13) + special;
    }
    memcpy(values, bits, (size_t)n * sizeof *bits);
    EACH v[i] = (double)values[i] * 0x1p112;
}

#define WIDEN(T, to)                                                                               \
    do {                                                                                           \
        const T *x = (const T *)data + offset;                                                     \
        EACH to[i] = x[i];                                                                         \
    } while (0)

void load_chunk(DType dtype, const void *data, int64_t offset, int n, void *v)
{
    double *real = v;
    int64_t *whole = v;
    const unsigned char *bytes = (const unsigned char *)data + offset;
    switch (dtype) {
    case DTYPE_F64: WIDEN(double, real); break;
    case DTYPE_F32: WIDEN(float, real); break;
    case DTYPE_BF16: load_bf16((const uint16_t *)data + offset, n, real); break;
    case DTYPE_F16: load_f16((const uint16_t *)data + offset, n, real); break;
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2: EACH real[i] = dtype_load_float(dtype, bytes + i); break;
    case DTYPE_I64: WIDEN(int64_t, whole); break;
    case DTYPE_I32: WIDEN(int32_t, whole); break;
    case DTYPE_I8: WIDEN(signed char, whole); break;
    case DTYPE_U8: EACH whole[i] = bytes[i]; break;
    case DTYPE_BOOL: EACH whole[i] = bytes[i] != 0; break;
    case DTYPE_COUNT: break;
    }
}

void store_chunk(DType dtype, void *data, int64_t offset, int n, Type type, const void *v)
{
    const int bytes = dtype_info[dtype].bytes;
    char *out = (char *)data + offset * bytes;
    const double *real = v;
    const int64_t *whole = v;
    if (!type_is_float(type))
        EACH dtype_store_int(dtype, out + i * bytes, whole[i]);
    else
        EACH dtype_store_float(dtype, out + i * bytes, real[i]);
}
