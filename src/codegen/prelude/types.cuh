//: The device helpers that generated kernels call, written by hand and header-free: one file for each topic, which the
//: Makefile joins in the order that it lists them. A section begins at a line `//@ names it provides`; the printed text holds
//: only the sections whose names it mentions, directly or through another section; one of `//@ A+B` if it holds A and B.
//: Sections storage_of_TYPE are for texts that store such a type, or round like it (codegen/cuda.c). Lines `//:` are left out.
//: All inline PTX of fusec is in these files. tests/sim has a host twin of every name.
//:
//: types.cuh: element types: conversions, rounding, integers that wrap around.
//@ DEVICE
#define DEVICE static __device__ __forceinline__ __attribute__((unused))

//@ infinity
// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

//@ not_a_number
DEVICE float not_a_number() { return __int_as_float(0x7fffffff); }

//@ quick_inverse
// 1 / x in one instruction, 2 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float quick_inverse(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

//@ quick_quotient
// x / d for d from 1 to infinity, 3 units of 2^-24 off. The inverse of a quarter of d is in the range of quick_inverse.
DEVICE float quick_quotient(float x, float d) { return x * (0.25f * quick_inverse(0.25f * d)); }

//@ sigmoid
DEVICE float sigmoid(float x) { return quick_inverse(1 + expf(-x)); }
DEVICE double sigmoid(double x) { return 1 / (1 + exp(-x)); }

//@ sign
// -1, 0 or 1; NaN stays NaN
template <class T> DEVICE T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }

//@ is_nan
template <class T> DEVICE bool is_nan(T x) { return x != x; }

//@ abs_int
DEVICE long long abs_int(long long x) { return x < 0 ? (long long)(0 - (unsigned long long)x) : x; }

//@ wrap_neg
// -a, which wraps around: a compiler may take for granted that what signed operators give never does
DEVICE long long wrap_neg(long long a) { return (long long)(0 - (unsigned long long)a); }

//@ wrap_add
// a + b, which wraps around: a compiler may take for granted that what signed operators give never does
DEVICE long long wrap_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }

//@ wrap_sub
// a - b, which wraps around: a compiler may take for granted that what signed operators give never does
DEVICE long long wrap_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }

//@ wrap_mul
// a * b, which wraps around: a compiler may take for granted that what signed operators give never does
DEVICE long long wrap_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }

//@ min_nan
// NaN if either operand is (fminf and fmaxf would drop it)
DEVICE float min_nan(float a, float b)
{
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

//@ min_nan+storage_of_double
DEVICE double min_nan(double a, double b) { return a != a || a < b ? a : b; }

//@ max_nan
// NaN if either operand is (fminf and fmaxf would drop it)
DEVICE float max_nan(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

//@ max_nan+storage_of_double
DEVICE double max_nan(double a, double b) { return a != a || a > b ? a : b; }

//@ reductions_of_integers
// no integer is NaN
DEVICE long long min_nan(long long a, long long b) { return a < b ? a : b; }
DEVICE long long max_nan(long long a, long long b) { return a > b ? a : b; }

//@ min_int max_int
DEVICE long long min_int(long long a, long long b) { return a < b ? a : b; }
DEVICE long long max_int(long long a, long long b) { return a > b ? a : b; }

//@ whole
// a float as an integer: toward zero, saturating, NaN gives 0
template <class T> DEVICE long long whole(T x) { return x == x ? (long long)x : 0; }

//@ whole_as
// the same as an integer of 32 bits or fewer
template <class T> DEVICE T whole_as(float x)
{
    const int all = __float2int_rz(x);
    if constexpr (sizeof(T) == sizeof(int)) {
        return all;
    } else {
        constexpr int bits = 8 * (int)sizeof(T);
        const int most = (T)-1 < 0 ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = (T)-1 < 0 ? -most - 1 : 0;
        return (T)(all < least ? least : all > most ? most : all);
    }
}

//@ exponent_of
// the exponent of x > 0 once `more` is added to its bits; what log2(x) is of other values
DEVICE float exponent_of(float x, int more)
{
    const bool tiny = x < 0x1p-126f;
    const int bits = __float_as_int(tiny ? x * 0x1p23f : x);
    if (x > 0 && x < infinity())
        return (bits + more >> 23) - (tiny ? 150 : 127);
    return x == 0 ? -infinity() : x < 0 ? not_a_number() : x;
}

//@ floor_log2
// floor(log2(x)): right also just below a power of two, where log2f gives the next integer
DEVICE float floor_log2(float x) { return exponent_of(x, 0); }

//@ ceil_log2
DEVICE float ceil_log2(float x) { return exponent_of(x, 0x7fffff); }

//@ clamp_int
DEVICE long long clamp_int(long long x, long long low, long long high)
{
    return x < low ? low : x > high ? high : x;
}

//@ sticky_float
// a double as the f32 toward zero whose last bit says that something was cut off: rounding this to
// a narrower format is then right in one step
DEVICE float sticky_float(double x)
{
    const float cut = __double2float_rz(x);
    return cut == x || x != x ? cut : __int_as_float(__float_as_int(cut) | 1);
}

//@ to_storage
// to_storage(value, (T *)0) is the value rounded or saturated to what T stores
template <class T> DEVICE T to_storage(T x, T *) { return x; }    // it is already

//@ storage_of_double
DEVICE double to_storage(float x, double *) { return x; }
DEVICE float to_storage(double x, float *) { return (float)x; }

//@ storage_of_i32
DEVICE int to_storage(long long x, int *) { return (int)clamp_int(x, -2147483647LL - 1, 2147483647LL); }

//@ storage_of_i8
DEVICE signed char to_storage(long long x, signed char *) { return (signed char)clamp_int(x, -128, 127); }

//@ storage_of_u8
DEVICE unsigned char to_storage(long long x, unsigned char *) { return (unsigned char)clamp_int(x, 0, 255); }

//@ bf16
struct bf16 {
    unsigned short bits;
    __device__ __forceinline__ operator float() const { return __int_as_float((int)bits << 16); }
};
DEVICE bf16 to_storage(float x, bf16 *)
{
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
// two neighbours in one instruction
DEVICE void store_pair(bf16 *at, float low, float high)
{
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    *(unsigned *)at = pair;
}

//@ bf16+storage_of_double
DEVICE bf16 to_storage(double x, bf16 *) { return to_storage(sticky_float(x), (bf16 *)0); }

//@ f16
struct f16 {
    unsigned short bits;
    __device__ __forceinline__ operator float() const
    {
        float r;
        asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
        return r;
    }
};
DEVICE f16 to_storage(float x, f16 *)
{
    f16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}
DEVICE void store_pair(f16 *at, float low, float high)
{
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    *(unsigned *)at = pair;
}

//@ f16+storage_of_double
DEVICE f16 to_storage(double x, f16 *) { return to_storage(sticky_float(x), (f16 *)0); }

//@ round_fp8
// x to an 8-bit float: `mantissa` bits, smallest normal 2^lowest, largest finite `highest` (as bits);
// to nearest even, saturating; works on every architecture
template <int mantissa, int lowest, int highest> DEVICE unsigned char round_fp8(float x)
{
    const unsigned negative = __float_as_uint(x) >> 24 & 0x80;
    if (x != x)
        return 0x7f;
    const float size = fabsf(x);
    int exponent = (int)(__float_as_uint(size) >> 23) - 127;
    if (exponent < lowest)
        exponent = lowest;
    if (exponent > 16)
        return (unsigned char)(negative | highest);
    // in units of the last place: exact, since both factors are powers of two
    const float steps = size * __int_as_float((127 + mantissa - exponent) << 23);
    const int code = ((exponent - lowest) << mantissa) + (int)rintf(steps);
    return (unsigned char)(negative | (code > highest ? highest : code));
}

//@ value_of_e4m3
DEVICE float value_of_e4m3(unsigned char bits)
{
    const int magnitude = bits & 0x7f, exponent = magnitude >> 3, fraction = magnitude & 7;
    const float size = exponent ? __int_as_float((exponent + 120) << 23 | fraction << 20)
                                : (float)fraction * 0.001953125f;
    const float value = magnitude == 0x7f ? __int_as_float(0x7fffffff) : size;
    return bits & 0x80 ? -value : value;
}

//@ pack_e4m3
// two neighbours, the first in the low byte; round_fp8's rules are the instruction's
DEVICE unsigned short pack_e4m3(float low, float high)
{
#if __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (unsigned short)(round_fp8<3, -6, 0x7e>(high) << 8 | round_fp8<3, -6, 0x7e>(low));
#endif
}

//@ widen_e4m3
DEVICE float widen_e4m3(unsigned char bits)
{
#if __CUDA_ARCH__ >= 890
    float r;
    asm("{ .reg .b32 pair; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 pair, %1;"
        "mov.b32 {low, high}, pair; cvt.f32.f16 %0, low; }" : "=f"(r) : "h"((unsigned short)bits));
    return r;
#else
    return value_of_e4m3(bits);
#endif
}

//@ f8e4m3
struct f8e4m3 {
    unsigned char bits;
    __device__ __forceinline__ operator float() const { return widen_e4m3(bits); }
};
DEVICE f8e4m3 to_storage(float x, f8e4m3 *) { return {(unsigned char)pack_e4m3(x, 0)}; }
DEVICE void store_pair(f8e4m3 *at, float low, float high) { *(unsigned short *)at = pack_e4m3(low, high); }

//@ f8e4m3+storage_of_double
DEVICE f8e4m3 to_storage(double x, f8e4m3 *) { return to_storage(sticky_float(x), (f8e4m3 *)0); }

//@ pack_e5m2
DEVICE unsigned short pack_e5m2(float low, float high)
{
#if __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (unsigned short)(round_fp8<2, -14, 0x7b>(high) << 8 | round_fp8<2, -14, 0x7b>(low));
#endif
}

//@ f8e5m2
struct f8e5m2 {
    unsigned char bits;
    __device__ __forceinline__ operator float() const
    {
        float r;
        asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)(bits << 8)));
        return r;
    }
};
DEVICE f8e5m2 to_storage(float x, f8e5m2 *) { return {(unsigned char)pack_e5m2(x, 0)}; }
DEVICE void store_pair(f8e5m2 *at, float low, float high) { *(unsigned short *)at = pack_e5m2(low, high); }

//@ f8e5m2+storage_of_double
DEVICE f8e5m2 to_storage(double x, f8e5m2 *) { return to_storage(sticky_float(x), (f8e5m2 *)0); }

//@ as
// as<T>(x): what a store to a tensor of T keeps of x
template <class T, class V> DEVICE T as(V x) { return to_storage(x, (T *)0); }

//@ store_pair
// of types that have no instruction for two neighbours
template <class T, class V> DEVICE void store_pair(T *at, V low, V high)
{
    at[0] = as<T>(low);
    at[1] = as<T>(high);
}

