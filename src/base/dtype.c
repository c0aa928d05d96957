/* base/dtype.c: stored elements to values and back.
 *
 * A Format describes every small float; one rounding routine and one encoder serve them all. A
 * double is rounded once, by adding and subtracting a constant whose last place is the wanted
 * quantum, so no conversion passes through a second format. */
#include "base/dtype.h"

#include <math.h>
#include <string.h>

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(name, fuse, safetensors, cuda, bytes, type) {fuse, safetensors, cuda, bytes, type},
#include "base/dtypes.def"
#undef DTYPE
};

/* A binary float: `precision` significant bits with the hidden one, `emin` the exponent
 * of the smallest normal number. Magnitude bits are ((E - emin) << (precision - 1)) + m
 * for a value m * 2^(E - precision + 1): this covers subnormals (E = emin, m without its
 * top bit) too. */
typedef struct {
    int precision, emin, emax;
    double max;
    bool saturates; /* overflow gives the largest finite value, not infinity */
    bool has_infinity;
    unsigned infinity; /* magnitude bits above every finite value */
    unsigned nan, sign;
} Format;

static const Format formats[DTYPE_COUNT] = {
    [DTYPE_F64] = {53, -1022, 1023, 0x1.fffffffffffffp1023, false, true, 0, 0, 0},
    [DTYPE_F32] = {24, -126, 127, 0x1.fffffep127, false, true, 0, 0, 0},
    [DTYPE_F16] = {11, -14, 15, 65504, false, true, 0x7c00, 0x7e00, 0x8000},
    [DTYPE_BF16] = {8, -126, 127, 0x1.fep127, false, true, 0x7f80, 0x7fc0, 0x8000},
    [DTYPE_F8E4M3] = {4, -6, 8, 448, true, false, 0x7f, 0x7f, 0x80},
    [DTYPE_F8E5M2] = {3, -14, 15, 57344, true, true, 0x7c, 0x7f, 0x80},
};

const char *type_name(Type type)
{
    switch (type) {
    case TYPE_F32: return "f32";
    case TYPE_F64: return "f64";
    case TYPE_I64: return "i64";
    case TYPE_BOOL: return "bool";
    }
    return "?";
}

bool dtype_find(const char *fuse_name, DType *dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(dtype_info[i].fuse, fuse_name) == 0) {
            *dtype = (DType)i;
            return true;
        }
    }
    return false;
}

bool dtype_is_float(DType dtype)
{
    return type_is_float(dtype_info[dtype].type);
}

/* The exponent of |value|; of a subnormal double, below every emin; of infinity and NaN,
 * 1024. */
static int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

static int clamp_exponent(const Format *f, double value)
{
    const int exponent = exponent_of(value);
    return exponent < f->emin ? f->emin : exponent > f->emax ? f->emax : exponent;
}

/* 2^exponent for exponents of normal doubles. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double round_small(const Format *f, double value)
{
    if (isnan(value)) return value;
    const int last_place = clamp_exponent(f, value) - f->precision + 1;
    const double shifter = 1.5 * power_of_two(52 + last_place);
    double magnitude = fabs(value);
    if (magnitude <= f->max * 2) magnitude = (magnitude + shifter) - shifter;
    if (magnitude > f->max) magnitude = f->saturates ? f->max : (double)INFINITY;
    return copysign(magnitude, value);
}

double dtype_ulp(DType dtype, double value)
{
    if (!dtype_is_float(dtype)) return 1;
    const Format *f = &formats[dtype];
    return ldexp(1, clamp_exponent(f, value) - f->precision + 1);
}

static unsigned encode(const Format *f, double value)
{
    if (isnan(value)) return f->nan;
    const double rounded = round_small(f, value);
    const unsigned sign = signbit(rounded) ? f->sign : 0;
    if (isinf(rounded)) return sign | f->infinity;
    const int exponent = clamp_exponent(f, rounded);
    const double mantissa = fabs(rounded) * power_of_two(f->precision - 1 - exponent);
    return sign | (((unsigned)(exponent - f->emin) << (f->precision - 1)) + (unsigned)mantissa);
}

static double decode(const Format *f, unsigned bits)
{
    const unsigned magnitude = bits & ~f->sign;
    const unsigned field = magnitude >> (f->precision - 1);
    const unsigned hidden = 1U << (f->precision - 1);
    double value;
    if (magnitude == f->infinity && f->has_infinity) {
        value = (double)INFINITY;
    } else if (magnitude >= f->infinity) {
        value = (double)NAN;
    } else {
        const unsigned mantissa = (magnitude & (hidden - 1)) + (field ? hidden : 0);
        const int exponent = f->emin + (int)(field ? field - 1 : 0);
        value = mantissa * power_of_two(exponent - f->precision + 1);
    }
    return bits & f->sign ? -value : value;
}

double dtype_load_float(DType dtype, const void *element)
{
    uint16_t half;
    float single;
    double value;
    switch (dtype) {
    case DTYPE_F64: memcpy(&value, element, sizeof value); return value;
    case DTYPE_F32: memcpy(&single, element, sizeof single); return (double)single;
    case DTYPE_F16:
    case DTYPE_BF16: memcpy(&half, element, sizeof half); return decode(&formats[dtype], half);
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2: return decode(&formats[dtype], *(const unsigned char *)element);
    default: return (double)dtype_load_int(dtype, element);
    }
}

int64_t dtype_load_int(DType dtype, const void *element)
{
    int64_t wide;
    int32_t word;
    switch (dtype) {
    case DTYPE_I64: memcpy(&wide, element, sizeof wide); return wide;
    case DTYPE_I32: memcpy(&word, element, sizeof word); return word;
    case DTYPE_I8: return *(const signed char *)element;
    case DTYPE_U8: return *(const unsigned char *)element;
    case DTYPE_BOOL: return *(const unsigned char *)element != 0;
    default: return int_from_double(dtype_load_float(dtype, element));
    }
}

void dtype_store_float(DType dtype, void *element, double value)
{
    uint16_t half;
    float single;
    switch (dtype) {
    case DTYPE_F64: memcpy(element, &value, sizeof value); return;
    case DTYPE_F32:
        single = (float)value;
        memcpy(element, &single, sizeof single);
        return;
    case DTYPE_F16:
    case DTYPE_BF16:
        half = (uint16_t)encode(&formats[dtype], value);
        memcpy(element, &half, sizeof half);
        return;
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2:
        *(unsigned char *)element = (unsigned char)encode(&formats[dtype], value);
        return;
    case DTYPE_BOOL: *(unsigned char *)element = value != 0; return;
    default: dtype_store_int(dtype, element, int_from_double(value));
    }
}

void dtype_store_int(DType dtype, void *element, int64_t value)
{
    const int64_t kept = dtype_saturate(dtype, value);
    int32_t word;
    switch (dtype) {
    case DTYPE_I64: memcpy(element, &kept, sizeof kept); return;
    case DTYPE_I32:
        word = (int32_t)kept;
        memcpy(element, &word, sizeof word);
        return;
    case DTYPE_I8:
    case DTYPE_U8:
    case DTYPE_BOOL: *(unsigned char *)element = (unsigned char)kept; return;
    default: dtype_store_float(dtype, element, (double)value);
    }
}

double dtype_round(DType dtype, double value)
{
    switch (dtype) {
    case DTYPE_F64: return value;
    case DTYPE_F32: return (double)(float)value;
    case DTYPE_BOOL: return value != 0;
    default: break;
    }
    if (dtype_is_float(dtype)) return round_small(&formats[dtype], value);
    return (double)dtype_saturate(dtype, int_from_double(value));
}

int64_t dtype_saturate(DType dtype, int64_t value)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    switch (dtype) {
    case DTYPE_I32: low = INT32_MIN, high = INT32_MAX; break;
    case DTYPE_I8: low = INT8_MIN, high = INT8_MAX; break;
    case DTYPE_U8: low = 0, high = UINT8_MAX; break;
    case DTYPE_BOOL: return value != 0;
    default: break;
    }
    return value < low ? low : value > high ? high : value;
}

bool dtype_takes(DType dtype, double value)
{
    return dtype_is_float(dtype) || dtype_round(dtype, value) == value;
}

int64_t int_from_double(double value)
{
    if (isnan(value)) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    if (value < -0x1p63) return INT64_MIN;
    return (int64_t)value;
}

bool dtype_distorts(DType dtype, double value, double kept)
{
    if (!dtype_is_float(dtype) || isinf(value)) return kept != value;
    bool saturates = fabs(value) > fabs(kept) && dtype_round(dtype, 2 * value) == kept;
    return isinf(kept) || saturates || (value != 0 && kept == 0);
}
