// prelude.cuh: the device helpers that generated kernels call, written by hand and header-free.
// A section begins at a line `//@ names it provides`; the printed text holds only the sections whose
// names it mentions, directly or through another section; one of `//@ A+B` if it holds A and B. Sections storage_of_TYPE are
// for texts that store such a type, or round like it (cuda.c).
// All inline PTX of fusec is here. tests/sim has a host twin of every name.

//@ DEVICE
#define DEVICE static __device__ __forceinline__ __attribute__((unused))

//@ infinity
// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

//@ not_a_number
DEVICE float not_a_number() { return __int_as_float(0x7fffffff); }

//@ sigmoid
DEVICE float sigmoid(float x) { return 1 / (1 + expf(-x)); }
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
    const int all = __float2int_rz(x), bits = 8 * (int)sizeof(T);
    if constexpr (sizeof(T) == sizeof(int))
        return all;
    const int most = (T)-1 < 0 ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = (T)-1 < 0 ? -most - 1 : 0;
    return (T)(all < least ? least : all > most ? most : all);
}

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

//@ split
// item = outer * size + inner
template <class T> DEVICE void split(long long item, long long size, long long &outer, T &inner)
{
    if ((unsigned long long)(item | size) >> 32 == 0)    // 32-bit division is several times faster
        outer = (unsigned)item / (unsigned)size;
    else
        outer = item / size;
    inner = (T)(item - outer * size);
}

//@ vector
// n neighbouring elements of a row
template <class T, int n> struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) vector {
    T data[n];
    __device__ __forceinline__ T &operator[](int i) { return data[i]; }
    __device__ __forceinline__ const T &operator[](int i) const { return data[i]; }
};

//@ packed
// Elements as f32 from the words that two of them share: an instruction each, where ptxas makes two of every second
// one. For vectors that are read anew when they are needed: of those that stay it would keep what it converted.
template <class T, int n> struct packed;
template <int n> struct packed<bf16, n> {
    vector<bf16, n> v;
    __device__ __forceinline__ packed(const vector<bf16, n> &from) : v(from) {}
    __device__ __forceinline__ float operator[](int i) const
    {
        const unsigned pair = ((const unsigned *)&v)[i / 2];
        return __uint_as_float(i % 2 ? pair & 0xffff0000 : pair << 16);
    }
};

//@ copy_vector
// one aligned vector, as few memory instructions as there are
template <class T, int n> DEVICE void copy_vector(vector<T, n> *to, const vector<T, n> *from)
{
    constexpr int bytes = sizeof(T) * n;
    if constexpr (bytes % 16 == 0) {
        #pragma unroll
        for (int k = 0; k < bytes / 16; k++)
            ((uint4 *)to)[k] = ((const uint4 *)from)[k];
    } else if constexpr (bytes == 8) {
        *(uint2 *)to = *(const uint2 *)from;
    } else if constexpr (bytes == 4) {
        *(unsigned *)to = *(const unsigned *)from;
    } else {
        *to = *from;
    }
}

//@ misalignment
// Bytes by which a row misses the alignment of its vectors. Single elements are always aligned.
template <int n, class T> DEVICE int misalignment(const T *row)
{
    return n == 1 ? 0 : (int)((unsigned long long)row % alignof(vector<T, n>));
}

//@ load_words
// to = from[0 .. n), by elements and without a register more: the kernels that call it may have none. Only of memory that
// nobody writes while the kernel runs: the asm says that it depends on the address alone.
template <class T, int n> DEVICE void load_words(vector<T, n> &to, const T *from)
{
    if constexpr (sizeof(T) == 2)
        #pragma unroll
        for (int w = 0; w < n / 2; w++) {
            unsigned word;
            asm("{ .reg .b16 a, b; ld.global.b16 a, [%1]; ld.global.b16 b, [%1+2]; mov.b32 %0, {a, b}; }"
                : "=r"(word) : "l"(from + 2 * w));
            ((unsigned *)&to)[w] = word;
        }
    else
        #pragma unroll
        for (int i = 0; i < n; i++)
            to[i] = from[i];
}

//@ keep_branch
// Ends the branch for rows that are not aligned and keeps it a branch. Without this ptxas predicates a short one (up to 16
// loads of 4 bytes) and issues its loads among the aligned ones; all share the six scoreboards by which loads are waited
// for, so that later ones wait for earlier ones: rows were asked for when the weights were there. `all`: every load is done,
// whatever the row's end.
template <class T> DEVICE void keep_branch(bool all, int loads)
{
    if (all && sizeof(T) == 4 && loads <= 16)
        asm volatile("nanosleep.u32 0;");
}

//@ read_again read_last hinted_block
// Two reads of a row that tell the caches: `read_again` that it will be, `read_last` that it will not.
// So what is written between them does not drive it out. They may move past stores: no kernel reads an
// element that it has written.
struct read_again {};
struct read_last {};
DEVICE vector<unsigned, 4> hinted_block(const void *at, read_again)
{
    vector<unsigned, 4> r;
    asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
        "ld.global.L1::evict_last.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], policy; }"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(at));
    return r;
}
DEVICE vector<unsigned, 4> hinted_block(const void *at, read_last)
{
    vector<unsigned, 4> r;
    asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
        "ld.global.L1::evict_first.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], policy; }"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(at));
    return r;
}

//@ kept_longer
// L2 is told to evict lines that rows are read from after lines that are written. Not to read them again, which most are
// not: what is written leaves for memory soon and in order so, which was 1 to 3 % faster on an H100. Loads by an address
// that kept_longer has given have this policy, and are otherwise like any to the compiler.
extern "C" __device__ void *__nv_associate_access_property(const void *, unsigned long long);
template <class T> DEVICE const T *kept_longer(const T *at)
{
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return (const T *)__nv_associate_access_property(at, policy);
}

//@ read_once
// n elements of a row, from an aligned address, by that policy; of less than 16 bytes it does not pay
template <class T, int n> DEVICE void read_once(vector<T, n> &v, const T *at)
{
    copy_vector(&v, (const vector<T, n> *)(sizeof(v) < 16 ? at : kept_longer(at)));
}

//@ load
// v = row[col .. col + n), or anything from `size` on; one wide access where the row's alignment allows
template <class T, int n>
DEVICE void load(vector<T, n> &v, const T *row, int col, int size)
{
    if (col >= size)
        return;
    if (misalignment<n>(row) == 0) {
        copy_vector(&v, (const vector<T, n> *)(row + col));
    } else {
        load_words(v, row + col);
        keep_branch<T>(true, n);    //? keep_branch
    }
}

//@ dynamic_smem
// bytes of shared memory that the launch gives each CTA
DEVICE unsigned dynamic_smem()
{
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

//@ load_once
// v = row[col .. col + n), or anything from `size` on, of a row that is read once
template <class T, int n>
DEVICE void load_once(vector<T, n> &v, const T *row, int col, int size)
{
    if (col >= size)
        return;
    if (misalignment<n>(row) == 0) {
        read_once(v, row + col);
    } else {
        load_words(v, row + col);
        keep_branch<T>(true, n);    //? keep_branch
    }
}

//@ load_hinted
// v = row[col .. col + n); `use`: read_again or read_last
template <class use, class T, int n> DEVICE void load_hinted(vector<T, n> &v, const T *row, int col)
{
    if (misalignment<n>(row) != 0)
        load_words(v, row + col);
    else if constexpr (sizeof(v) % 16 != 0)
        copy_vector(&v, (const vector<T, n> *)(row + col));
    else
        #pragma unroll
        for (int k = 0; k < (int)sizeof(v) / 16; k++)
            ((vector<unsigned, 4> *)&v)[k] = hinted_block((const uint4 *)(row + col) + k, use());
}

//@ load_row
// a whole row: v[t] holds the n elements from column first + t * step on
template <int step, class T, int n, int tiles>
DEVICE void load_row(vector<T, n> (&v)[tiles], const T *row, int first, int size)
{
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                read_once(v[t], row + first + t * step);
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                load_words(v[t], row + first + t * step);
        keep_branch<T>(tiles * step == size, tiles * n);    //? keep_branch
    }
}

//@ load_columns
// what all rows share: v[t] holds the n elements from column first + t * step on
template <int step, class T, int n, int tiles>
DEVICE void load_columns(vector<T, n> (&v)[tiles], const T *columns, int first, int size)
{
    if (misalignment<n>(columns) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                copy_vector(&v[t], (const vector<T, n> *)(columns + first + t * step));
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                load_words(v[t], columns + first + t * step);
        keep_branch<T>(tiles * step == size, tiles * n);    //? keep_branch
    }
}

//@ blocks place_in_block
// Room for n elements of a row that may begin anywhere in a block of 16 bytes. They lie at the same distance from a
// multiple of 16 here as in memory, which takes up to 15 bytes more, so that whole blocks can be copied.
template <class T, int n> struct alignas(16) blocks {
    T data[(n * sizeof(T) + 30) / 16 * 16 / sizeof(T)];
};
// elements between the block's beginning and `at`
template <class T> DEVICE int place_in_block(const T *at) { return (int)((unsigned long long)at % 16 / sizeof(T)); }

//@ move_blocks
// to[0 .. size) = from[0 .. size) by the threads of a team, where both have the same place in a block: whole blocks
// as such, what is before them by the first lanes, what is behind by the last; nothing where size <= 0
template <int threads, int most, bool once, class T> DEVICE void move_blocks(T *to, const T *from, int size)
{
    constexpr int block = 16 / sizeof(T), turns = (most / block + threads - 1) / threads;
    const int lane = threadIdx.x % threads, place = place_in_block(from);
    const int head = place ? block - place : 0, whole = (size - head) / block;
    const int last = head + whole * block + threads - 1 - lane;
    vector<T, block> held[turns];
    #pragma unroll
    for (int k = 0; k < turns; k++)
        if (lane + k * threads < whole)
            if constexpr (once)
                read_once(held[k], from + head + (lane + k * threads) * block);
            else
                copy_vector(&held[k], (const vector<T, block> *)(from + head) + lane + k * threads);
    #pragma unroll
    for (int k = 0; k < turns; k++)
        if (lane + k * threads < whole)
            copy_vector((vector<T, block> *)(to + head) + lane + k * threads, &held[k]);
    if (lane < head && lane < size)
        to[lane] = from[lane];
    if (last < size)
        to[last] = from[last];
}

//@ read_blocks write_blocks
// a row to shared memory and back, by the threads of a team; a barrier must stand between a copy and what threads do with
// their elements there
template <int threads, class T, int n> DEVICE void read_blocks(blocks<T, n> &to, const T *row, int size)
{
    move_blocks<threads, n, true>(to.data + place_in_block(row), row, size);
}
template <int threads, class T, int n> DEVICE void write_blocks(T *row, const blocks<T, n> &from, int size)
{
    move_blocks<threads, n, false>(row, from.data + place_in_block(row), size);
}

//@ from_blocks
// this thread's part of a row that read_blocks has brought; anything behind the row's end
template <int step, class T, int tiles, int n>
DEVICE void from_blocks(vector<T, 1> (&v)[tiles], const blocks<T, n> &from, const T *row, int first)
{
    const T *at = from.data + place_in_block(row) + first;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t][0] = at[t * step];
}

//@ to_blocks
// a value, rounded to T, to where write_blocks takes row[col] from; there is room behind the row's end
template <class T, int n, class V> DEVICE void to_blocks(blocks<T, n> &to, const T *row, int col, const V (&value)[1])
{
    to.data[place_in_block(row) + col] = as<T>(value[0]);
}

//@ load_aligned
// v = row[col .. col + n), or anything from `size` on, of a row that is read once and known to be aligned
template <class T, int n> DEVICE void load_aligned(vector<T, n> &v, const T *row, int col, int size)
{
    if (col < size)
        read_once(v, row + col);
}

//@ widen_again
// Element i as an f32, by other instructions than a conversion's. Where a row's elements are used before and
// after a reduction, ptxas would keep what it converted, which takes twice the registers.
template <int n> DEVICE float widen_again(const vector<bf16, n> &v, int i)
{
    const unsigned pair = ((const unsigned *)&v)[i / 2];
    float r;
    if (i % 2 == 0)
        asm("prmt.b32 %0, %1, 0, 0x1044;" : "=f"(r) : "r"(pair));
    else
        asm("prmt.b32 %0, %1, 0, 0x3244;" : "=f"(r) : "r"(pair));
    return r;
}

//@ widen_half_again
// An f16 of a vector widened, and widened anew wherever this is written: only a conversion can, so of a word that the
// compiler cannot know to be the same, by an xor with 0, for grids are of height 1 where rows are whole.
template <int n> DEVICE float widen_half_again(const vector<f16, n> &v, int i)
{
    const unsigned pair = ((const unsigned *)&v)[i / 2] ^ (gridDim.y - 1);
    return f16{(unsigned short)(i % 2 == 0 ? pair : pair >> 16)};
}

//@ widen_once
// Element i of f16 as an f32, by a function that the compiler knows: what follows from it and is written again after a
// reduction is computed once. (Assembly, as in `f16`, it may not merge over a barrier.)
extern "C" __device__ float __nv_half2float(unsigned short);
template <int n> DEVICE float widen_once(const vector<f16, n> &v, int i) { return __nv_half2float(v[i].bits); }

//@ widen_by_cvt
// A bf16 as an f32 by a conversion, as f16 has one. Around the shift of an element that may be outside of its row ptxas
// branches, element by element.
DEVICE float widen_by_cvt(bf16 x)
{
    float r;
    asm("cvt.f32.bf16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}

//@ as_column
// Where a number is among the columns of a row, of which there are fewer than 2^31: those before the
// first compare as -1, those from 2^31 on as 2^31 - 1.
DEVICE int as_column(long long n) { return (int)(n < -1 ? -1 : n < 0x7fffffff ? n : 0x7fffffff); }

//@ shared_address
// Where a copy that has a policy for L2 goes to. No address has the highest bit; without this ptxas 13.0 may split the
// address between two kinds of registers, and encodes such a copy in a way that the GPU refuses.
DEVICE unsigned shared_address(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared) & 0x7fffffff; }

//@ async_copy fetch_commit fetch_wait
// copies to shared memory that go on while the thread computes; it waits for its own, in order
template <int bytes> DEVICE void async_copy(void *to, const void *from)
{
    const unsigned at = shared_address(to);
    if constexpr (bytes == 16)
        asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
            "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy; }" :: "r"(at), "l"(from) : "memory");
    else
        asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
            "cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, policy; }"
            :: "r"(at), "l"(from), "n"(bytes) : "memory");
}
DEVICE void fetch_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// until all but the newest `left` groups have landed
template <int left> DEVICE void fetch_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory"); }

//@ fetch_row
// starts the copies of this thread's part of a row into its part of a buffer
template <int step, class T, int n, int tiles, int threads>
DEVICE void fetch_row(vector<T, n> (&buffer)[tiles][threads], const T *row, int first, int size)
{
    constexpr int bytes = sizeof(T) * n, piece = bytes < 16 ? bytes : 16;
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                #pragma unroll
                for (int k = 0; k < bytes; k += piece)
                    async_copy<piece>((char *)&buffer[t][threadIdx.x] + k, (const char *)(row + first + t * step) + k);
    } else {
        #pragma unroll 1
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first + t * step < size)
                load_words(buffer[t][threadIdx.x], row + first + t * step);
    }
}

//@ fetch_vector
// starts the copy of n elements, where any are left
template <class T, int n> DEVICE void fetch_vector(vector<T, n> &to, const T *from, int left)
{
    constexpr int bytes = sizeof(T) * n, piece = bytes < 16 ? bytes : 16;
    if (left <= 0)
        return;
    if (misalignment<n>(from) == 0)
        #pragma unroll
        for (int k = 0; k < bytes; k += piece)
            async_copy<piece>((char *)&to + k, (const char *)from + k);
    else
        load_words(to, from);
}

//@ fetch_element
// starts the copy of an element that all threads of a warp read: the first copies it for all
template <class T, int warps> DEVICE void fetch_element(T (&buffer)[warps], const T *from)
{
    if (threadIdx.x % 32 == 0)
        async_copy<sizeof(T)>(&buffer[threadIdx.x / 32], from);
}

//@ arrived
// v, once its load has landed. Compilers wait for a load where its value is first used. If that is in a loop behind the
// load, every pass waits there, for younger loads too. So v is used here, by an xor with 0 that no compiler sees to
// be 0: every launch of this kernel has gridDim.y 1.
template <class T> DEVICE T arrived(T v)
{
    *(unsigned *)&v ^= gridDim.y - 1;
    return v;
}

//@ read_row
template <class T, int n, int tiles, int threads>
DEVICE void read_row(vector<T, n> (&v)[tiles], const vector<T, n> (&buffer)[tiles][threads])
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        copy_vector(&v[t], &buffer[t][threadIdx.x]);
}

//@ fill
// rounds n computed values into the vector that a store writes
template <class T, int n, class V> DEVICE void fill(vector<T, n> &v, const V (&values)[n])
{
    constexpr int step = n % 2 ? 1 : 2;
    #pragma unroll
    for (int i = 0; i < n; i += step)
        if constexpr (step == 2)
            store_pair(&v[i], values[i], values[i + 1]);
        else
            v[i] = as<T>(values[i]);
}
//@ put_word
// the elements of `size` bytes in a word; one asm statement, since compilers spend most of their time on the
// loops that this replaces
template <int size> DEVICE void put_word(void *at, unsigned word)
{
    if constexpr (size == 1)
        asm volatile("{ .reg .b32 b, c, d; shr.b32 b, %1, 8; shr.b32 c, %1, 16; shr.b32 d, %1, 24;"
            "st.global.b8 [%0], %1; st.global.b8 [%0+1], b; st.global.b8 [%0+2], c; st.global.b8 [%0+3], d; }"
            :: "l"(at), "r"(word) : "memory");
    else if constexpr (size == 2)
        asm volatile("{ .reg .b16 a, b; mov.b32 {a, b}, %1; st.global.b16 [%0], a; st.global.b16 [%0+2], b; }"
            :: "l"(at), "r"(word) : "memory");
    else
        *(unsigned *)at = word;
}

//@ put_elements
// row[col .. col + n) = v, element by element
template <class T, int n> DEVICE void put_elements(T *row, int col, const vector<T, n> &v)
{
    if constexpr (sizeof(v) % 4 == 0) {
        #pragma unroll
        for (int w = 0; w < (int)sizeof(v) / 4; w++)
            put_word<sizeof(T)>((char *)(row + col) + 4 * w, ((const unsigned *)&v)[w]);
    } else {
        #pragma unroll
        for (int i = 0; i < n; i++)
            row[col + i] = v[i];
    }
}

//@ put_vector
// v at an aligned address. In a loop that is not unrolled the compiler takes a plain store apart into
// words; elsewhere it does not, and this would cost it registers.
template <class T, int n> DEVICE void put_vector(void *at, const vector<T, n> &v)
{
    const unsigned *w = (const unsigned *)&v;
    if constexpr (sizeof(v) % 16 == 0)
        #pragma unroll
        for (int k = 0; k < (int)sizeof(v) / 16; k++)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                :: "l"((uint4 *)at + k), "r"(w[4 * k]), "r"(w[4 * k + 1]), "r"(w[4 * k + 2]), "r"(w[4 * k + 3]));
    else if constexpr (sizeof(v) == 8)
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" :: "l"(at), "r"(w[0]), "r"(w[1]));
    else
        copy_vector((vector<T, n> *)at, &v);
}

//@ store_streamed
// row[col .. col + n) = values, rounded to T
template <class T, int n, class V> DEVICE void store_streamed(T *row, int col, const V (&values)[n])
{
    vector<T, n> v;
    fill(v, values);
    if (misalignment<n>(row) == 0)
        put_vector(row + col, v);
    else
        put_elements(row, col, v);
}

//@ store_vector
// row[col .. col + n) = values, rounded to T
template <class T, int n, class V> DEVICE void store_vector(T *row, int col, const V (&values)[n])
{
    vector<T, n> v;
    fill(v, values);
    if (misalignment<n>(row) == 0)
        copy_vector((vector<T, n> *)(row + col), &v);
    else
        put_elements(row, col, v);
}

//@ store_row
// row[col .. col + n) = values, rounded to T; nothing from `size` on
template <class T, int n, class V> DEVICE void store_row(T *row, int col, const V (&values)[n], int size)
{
    vector<T, n> v;
    fill(v, values);
    if (col >= size)
        return;
    if (misalignment<n>(row) == 0)
        copy_vector((vector<T, n> *)(row + col), &v);
    else
        put_elements(row, col, v);
}

//@ store_aligned
// to workspace, whose rows are aligned
template <class T, int n, class V> DEVICE void store_aligned(T *row, int col, const V (&values)[n], int size)
{
    vector<T, n> v;
    fill(v, values);
    if (col < size)
        copy_vector((vector<T, n> *)(row + col), &v);
}

//@ sum_of Sum
// a variable that is part of a sum
template <class T> struct Sum {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a + b; }
};
template <class T> DEVICE Sum<T> sum_of(T &value) { return {value}; }

//@ sum_of+reductions_of_integers
template <> __device__ __forceinline__ long long Sum<long long>::combine(long long a, long long b) { return wrap_add(a, b); }

//@ max_of Max
// a variable that is part of a maximum
template <class T> struct Max {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return max_nan(a, b); }
};
template <class T> DEVICE Max<T> max_of(T &value) { return {value}; }

//@ min_of Min
// a variable that is part of a minimum
template <class T> struct Min {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return min_nan(a, b); }
};
template <class T> DEVICE Min<T> min_of(T &value) { return {value}; }

//@ prod_of Prod
// a variable that is part of a product
template <class T> struct Prod {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a * b; }
};
template <class T> DEVICE Prod<T> prod_of(T &value) { return {value}; }

//@ prod_of+reductions_of_integers
template <> __device__ __forceinline__ long long Prod<long long>::combine(long long a, long long b) { return wrap_mul(a, b); }

//@ lane_reduce
// over `lanes` neighbouring lanes (a power of two), every lane gets the result; the tree is fixed
template <int lanes, class R> DEVICE void lane_reduce(R r)
{
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        r.value = R::combine(r.value, __shfl_xor_sync(0xffffffff, r.value, distance));
}

//@ put_slot
// leaves a warp's result in a slot; the next value's slots are `stride` further
template <int stride, class S, template <class> class R, class T>
DEVICE void put_slot(S *&slot, bool mine, R<T> r)
{
    if (mine)
        *(T *)slot = r.value;
    slot += stride;
}

//@ combine_slots
// every thread adds the values in `count` slots in the same order
template <int count, class S, template <class> class R, class T>
DEVICE void combine_slots(const S *&slots, R<T> r)
{
    r.value = *(const T *)slots;
    #pragma unroll
    for (int w = 1; w < count; w++)
        r.value = R<T>::combine(r.value, *(const T *)(slots + w));
    slots += count;
}

//@ quotient
// x / c for a constant c: by its inverse, and by what that leaves over, which makes the rounding a division's but for
// results near the smallest numbers. Of 0, infinity and NaN nothing is left over.
DEVICE float quotient(float x, float c)
{
    const float inverse = 1 / c, about = x * inverse, size = fabsf(about);
    return size > 0 && size < infinity() ? fmaf(fmaf(-about, c, x), inverse, about) : about;
}

//@ Divisor divisor
// What many numbers are divided by: x / divisor(c) is x / c by the inverse of c and by what that has too much, rounded as
// a division but for numbers near the smallest. c and its inverse are scaled where one would be among those. x takes the
// sign of c, for divided by a positive number 0 keeps its own.
struct Divisor {
    float scale, scaled, inverse;
};
DEVICE Divisor divisor(float c)
{
    const float size = fabsf(c), scale = size < 0x1p-126f ? 0x1p32f : size > 0x1p126f ? 0x1p-32f : 1;
    return {copysignf(scale, c), size * scale, 1 / (size * scale)};
}
DEVICE float operator/(float x, Divisor by)
{
    const float scaled = x * by.scale, about = scaled * by.inverse, over = fmaf(about, by.scaled, -scaled);
    return fabsf(over) < infinity() ? fmaf(-over, by.inverse, about) : about;    // of infinity it is NaN
}

//@ exp2_flush
// 2^x in one instruction, 4 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float exp2_flush(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

//@ quick_inverse
// 1 / x in one instruction, 2 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float quick_inverse(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

//@ quick_exp
// exp of a rounded difference, as exact as the difference is: it loses 9 + 2.4 |x| in units of 2^-24.
// The square of exp(x / 2) is right below 2^-126 too.
DEVICE float quick_exp(float x)
{
    const float root = exp2_flush(x * 0.72134752f);
    return root * root;
}

//@ warp_max
// The largest of a warp's values, which max_nan has made: so a NaN is positive and wins. Integers
// that order like floats have an instruction for it.
DEVICE float warp_max(float x)
{
    const int bits = __float_as_int(x), key = bits ^ (bits >> 31 & 0x7fffffff);
    int top;
    asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(top) : "r"(key));
    return __int_as_float(top ^ (top >> 31 & 0x7fffffff));
}

//@ exp_flush
DEVICE float exp_flush(float x) { return exp2_flush(x * 1.442695041f); }

//@ Online online_of online_base online_move online_end
// The largest of a row's values and the sum of exp(value - largest) in one go: when the largest
// changes, one factor moves the sum.
struct Online {
    float &largest, &sum;
};
DEVICE Online online_of(float &largest, float &sum) { return {largest, sum}; }
// finite where nothing but -infinity was seen, so that a masked element adds 0
DEVICE float online_base(float largest) { return fmaxf(largest, -3.402823466e38f); }
DEVICE void online_move(Online r, float largest)
{
    r.sum *= exp_flush(online_base(r.largest) - online_base(largest));
    r.largest = largest;
}
// a row of nothing but -infinity has no sum
DEVICE void online_end(float largest, float &sum) { sum += largest - largest; }
template <int lanes> DEVICE void lane_reduce(Online r)
{
    float top = r.largest;
    if constexpr (lanes == 32)
        top = warp_max(top);
    else
        lane_reduce<lanes>(max_of(top));
    online_move(r, top);
    lane_reduce<lanes>(sum_of(r.sum));
}

//@ online_end_at
// the same where a number is subtracted in place of the largest: of one that is -infinity (low), or infinity (high)
template <bool low, bool high> DEVICE void online_end_at(float largest, float &sum)
{
    if (low && largest == -infinity())
        sum = 0;
    else if (high && largest == infinity())
        sum = infinity();
    else
        online_end(largest, sum);
}

//@ online_add
// joins some of a thread's values to what it has
template <int n> DEVICE void online_add(float &largest, float &sum, const float (&values)[n])
{
    float top = largest;
    #pragma unroll
    for (int i = 0; i < n; i++)
        top = max_nan(top, values[i]);
    online_move({largest, sum}, top);
    const float base = online_base(top);
    #pragma unroll
    for (int i = 0; i < n; i++)
        sum += exp_flush(values[i] - base);
}

//@ online_stream online_settle
// The same for a row in many pieces, where a factor for every rise would add up its errors: until
// online_settle the sum is that for the largest rounded up to an integer, which moves by 1 or more.
template <int n> DEVICE void online_stream(float &largest, float &sum, const float (&values)[n])
{
    float base = ceilf(largest), top = largest;
    #pragma unroll
    for (int i = 0; i < n; i++)
        top = max_nan(top, values[i]);
    online_move({base, sum}, ceilf(top));
    #pragma unroll
    for (int i = 0; i < n; i++)
        sum += exp_flush(values[i] - online_base(base));
    largest = top;
}
DEVICE void online_settle(float largest, float &sum)
{
    float base = ceilf(largest);
    online_move({base, sum}, largest);
}

//@ Online+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool mine, Online r)
{
    put_slot<stride>(slot, mine, max_of(r.largest));
    put_slot<stride>(slot, mine, sum_of(r.sum));
}

//@ Online+combine_slots
// A lane takes a slot, then lanes meet. Where there are fewer slots than lanes, several take the same.
template <int count, class S> DEVICE void combine_slots(const S *&slots, Online r)
{
    constexpr int lanes = count > 16 ? 32 : count > 8 ? 16 : count > 4 ? 8 : count > 2 ? 4 : 2;
    const int lane = threadIdx.x % lanes;
    r.largest = lane < count ? *(const float *)(slots + lane) : -infinity();
    r.sum = lane < count ? *(const float *)(slots + count + lane) : 0;
    lane_reduce<lanes>(r);
    slots += 2 * count;
}

//@ share_shift
// all lanes take the shift of the first, which has seen values if any has
template <int lanes, class R> DEVICE void share_shift(R r)
{
    const float shift = __shfl_sync(0xffffffff, r.shift, 0, lanes);
    r.sum += r.seen * (r.shift - shift);
    r.shift = shift;
}

//@ Moments moments_of
// A row's sum and the squares of its values about their mean in one go, however far from 0 they are. `sum` is that of their
// distances from `shift`, which is near them. What saw a part of a row keeps squares about that part's mean; where parts
// meet, the distances of their means come to it.
struct Moments {
    float &sum, &squares, &seen, &shift;
};
DEVICE Moments moments_of(float &sum, float &squares, float &seen, float &shift) { return {sum, squares, seen, shift}; }
template <int lanes> DEVICE void lane_reduce(Moments r)
{
    share_shift<lanes>(r);
    const float count = r.seen, mean = r.sum * quick_inverse(fmaxf(count, 1));
    lane_reduce<lanes>(sum_of(r.sum));
    lane_reduce<lanes>(sum_of(r.seen));
    const float off = mean - r.sum * quick_inverse(fmaxf(r.seen, 1));
    r.squares += off * (off * count);
    lane_reduce<lanes>(sum_of(r.squares));
}

//@ WarpMoments warp_moments_of
// The same where all lanes of a warp have its sum and its count, and each has its own values' squares about the warp's mean.
struct WarpMoments : Moments {};
DEVICE WarpMoments warp_moments_of(float &sum, float &squares, float &seen, float &shift)
{
    return {{sum, squares, seen, shift}};
}
template <int lanes> DEVICE void lane_reduce(WarpMoments r) { lane_reduce<lanes>(sum_of(r.squares)); }

//@ EvenMoments even_moments_of
// The same where all that meet have seen as many: they need no counts from each other, and no divisions.
struct EvenMoments {
    float &sum, &squares, &seen, &shift;
};
DEVICE EvenMoments even_moments_of(float &sum, float &squares, float &seen, float &shift) { return {sum, squares, seen, shift}; }
template <int lanes> DEVICE void lane_reduce(EvenMoments r)
{
    share_shift<lanes>(r);
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const float sum = __shfl_xor_sync(0xffffffff, r.sum, distance), off = sum - r.sum;
        r.squares += __shfl_xor_sync(0xffffffff, r.squares, distance);
        r.squares += off * (off * (0.5f / r.seen));    // the same bits on both sides
        r.sum += sum;
        r.seen *= 2;
    }
}

//@ moments_shift
// x, for distances from it. Infinity and NaN are near nothing; nor need numbers beyond 2^96 be, whose squares are infinite
// unless all are equal.
DEVICE float moments_shift(float x) { return fabsf(x) < 0x1p96f ? x : 0; }

//@ moments_move
// moves the shift to the mean of what a thread has seen so far, where their squares are finite
template <class R> DEVICE void moments_move(R r)
{
    const float to = r.shift + r.sum * (1 / r.seen), by = to - r.shift;
    if (r.squares < infinity()) {
        r.squares -= by * (2 * r.sum - r.seen * by);
        r.sum -= r.seen * by;
        r.shift = to;
    }
}

//@ moments_add
// Adds some of a row's values to what a thread has: until moments_settle, squares about the shift. That is the first of the
// values, and from 32 values on moves as often as their number doubles: so that of many it is not much farther from their mean
// than they are.
template <class R, int n> DEVICE void moments_add(R r, const float (&values)[n])
{
    if (r.seen == 0)
        r.shift = moments_shift(values[0]);
    else if (r.seen >= 32 && (__float_as_int(r.seen) & 0x7fffff) == 0)    // a power of two
        moments_move(r);
    float more = 0, more_squares = 0;
    #pragma unroll
    for (int i = 0; i < n; i++) {
        const float off = values[i] - r.shift;
        more += off;
        more_squares += off * off;
    }
    r.sum += more;
    r.squares += more_squares;
    r.seen += n;
}

//@ moments_settle
// From squares about the shift to squares about the mean. Infinite ones stay so, unless the sum is infinite too: then they are NaN.
template <class R> DEVICE void moments_settle(R r, float inverse)
{
    r.squares -= r.squares < infinity() ? r.sum * (r.sum * inverse) : r.sum - r.sum;
}

//@ Moments+moments_settle
DEVICE void moments_settle(Moments r) { moments_settle(r, quick_inverse(fmaxf(r.seen, 1))); }

//@ EvenMoments+moments_settle
DEVICE void moments_settle(EvenMoments r) { moments_settle(r, 1 / r.seen); }

//@ moments_end
// from a mean's distance from the shift to the mean, rounded, and what that lacks: none where it is infinite
DEVICE float moments_end(float &mean, float shift)
{
    const float distance = mean;
    mean += shift;
    return fabsf(mean) < infinity() ? shift - mean + distance : 0;
}

//@ moments_take
// all values below `size` that a warp's lanes have of a row: values[t] are the n from column first + t * step on, of which
// every lane of every warp has the first `full`
template <int step, int full, int tiles, int n>
DEVICE void moments_take(WarpMoments r, const float (&values)[tiles][n], int first, int size)
{
    int vectors = 32 * full;
    #pragma unroll
    for (int t = full; t < tiles; t++)
        vectors += __popc(__ballot_sync(0xffffffff, first + t * step < size));
    r.seen = n * vectors;
    r.shift = moments_shift(__shfl_sync(0xffffffff, values[0][0], 0));
    r.sum = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (t < full || first + t * step < size)
                r.sum += values[t][i] - r.shift;
    lane_reduce<32>(sum_of(r.sum));
    float mean = r.sum * quick_inverse(fmaxf(r.seen, 1));
    const float rest = moments_end(mean, r.shift);
    const float over = r.seen / 32 * (rest * rest);    // a lane's share, for the squares are about a rounded mean
    r.squares = over < infinity() ? -over : 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (t < full || first + t * step < size)
                r.squares += (values[t][i] - mean) * (values[t][i] - mean);
}

//@ Moments+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool mine, Moments r)
{
    put_slot<stride>(slot, mine, sum_of(r.sum));
    put_slot<stride>(slot, mine, sum_of(r.squares));
    put_slot<stride>(slot, mine, sum_of(r.shift));
    put_slot<stride>(slot, mine, sum_of(r.seen));
}

//@ EvenMoments+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool mine, EvenMoments r)
{
    put_slot<stride>(slot, mine, sum_of(r.sum));
    put_slot<stride>(slot, mine, sum_of(r.squares));
    put_slot<stride>(slot, mine, sum_of(r.shift));
}

//@ EvenMoments+combine_slots
template <int count, class S> DEVICE void combine_slots(const S *&slots, EvenMoments r)
{
    const int lane = threadIdx.x % count;
    r.sum = *(const float *)(slots + lane);
    r.squares = *(const float *)(slots + count + lane);
    r.shift = *(const float *)(slots + 2 * count + lane);
    lane_reduce<count>(r);
    slots += 3 * count;
}

//@ Moments+combine_slots
template <int count, class S> DEVICE void combine_slots(const S *&slots, Moments r)
{
    constexpr int lanes = count > 16 ? 32 : count > 8 ? 16 : count > 4 ? 8 : count > 2 ? 4 : 2;
    const int lane = threadIdx.x % lanes;
    r.sum = lane < count ? *(const float *)(slots + lane) : 0;
    r.squares = lane < count ? *(const float *)(slots + count + lane) : 0;
    r.shift = lane < count ? *(const float *)(slots + 2 * count + lane) : 0;
    r.seen = lane < count ? *(const float *)(slots + 3 * count + lane) : 0;
    lane_reduce<lanes>(r);
    slots += 4 * count;
}

//@ team_barrier
// A barrier of the `threads` neighbouring threads that this one belongs to. A single team has barrier 0, a constant, so that
// ptxas reserves that one alone; several have one of 1 to 15 each, by a number in a register, and ptxas reserves all sixteen.
template <int threads, int teams> DEVICE void team_barrier()
{
    if constexpr (teams == 1)
        asm volatile("bar.sync 0, %0;" :: "n"(threads) : "memory");
    else
        asm volatile("bar.sync %0, %1;" :: "r"((int)threadIdx.x / threads + 1), "n"(threads) : "memory");
}

//@ cluster_rank cluster_arrive cluster_wait
// which of its cluster's CTAs this is
DEVICE int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// A barrier of all threads of a cluster, which orders nothing but what barrier_init has done: that has a fence of its
// own, so the arrival may be relaxed. One that releases waits for earlier accesses to memory as well: a microsecond.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

//@ peer
// the twin of a shared variable in another CTA of the cluster
template <class T> DEVICE T *peer(T *shared, int rank)
{
    T *twin;
    asm("mapa.u64 %0, %1, %2;" : "=l"(twin) : "l"(shared), "r"(rank));
    return twin;
}

//@ clock_ns clock_cycles
// ns, on a clock that all SMs share, and cycles of this SM, of which a ns has two at most; both wrap
DEVICE unsigned clock_ns()
{
    unsigned ns;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns));
    return ns;
}
DEVICE unsigned clock_cycles()
{
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles));
    return cycles;
}

//@ keep_pace
// Rows are asked for one each `interval` ns; of what they are late one interval is made up for. Memory that is asked for more
// than it can do does less: what waits for it piles up, reads and writes get in each other's way. `due`: when the next row
// may be asked for; differences of such times are right though they wrap.
DEVICE void keep_pace(unsigned &due, unsigned interval)
{
    const unsigned begin = clock_cycles();
    unsigned now = clock_ns();
    // while it is to come, in 1 to `interval` ns; but a clock that goes on in longer steps, or stands, is not waited for
    while (due - now - 1 < interval && clock_cycles() - begin < 4 * interval)
        now = clock_ns();
    due = now - due < interval ? due + interval : now;
}

//@ barrier_wait_cluster
// waits for a phase that other CTAs of the cluster have ended: what they sent is there then
DEVICE void barrier_wait_cluster(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

//@ barrier_init
// A transaction barrier in shared memory: a phase ends when `count` arrivals and the bytes announced
// with barrier_expect (which is an arrival too) have come; waiters name the phase's parity, 0 first.
DEVICE void barrier_init(unsigned long long &barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

//@ barrier_arrive
DEVICE void barrier_arrive(unsigned long long &barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)) : "memory");
}

//@ barrier_expect
DEVICE void barrier_expect(unsigned long long &barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(bytes) : "memory");
}

//@ barrier_wait
DEVICE void barrier_wait(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

//@ bulk_copy
// one thread copies 16-byte aligned bytes to shared memory; the barrier counts them as they land
DEVICE void bulk_copy(void *to, const void *from, int bytes, unsigned long long &barrier)
{
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], policy; }"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes),
                    "r"((unsigned)__cvta_generic_to_shared(&barrier)) : "memory");
}

//@ row_post row_collect
// The two halves of a reduction over the threads of a row; between them a thread may do other work.
// The halves of `scratch` are used in turn, so that a fast warp's next post cannot overwrite what a
// slow warp still reads: one barrier of the row's team a reduction is enough.
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_post(S (&scratch)[teams][2][slots], int turn, R... r)
{
    constexpr int warps = threads / 32;
    S *slot = scratch[threadIdx.x / threads][turn] + threadIdx.x % threads / 32;
    (lane_reduce<32>(r), ...);
    (put_slot<warps>(slot, threadIdx.x % 32 == 0, r), ...);
}
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_collect(S (&scratch)[teams][2][slots], int &turn, R... r)
{
    constexpr int warps = threads / 32;
    const S *slot = scratch[threadIdx.x / threads][turn];
    team_barrier<threads, teams>();
    (combine_slots<warps>(slot, r), ...);
    turn ^= 1;
}

//@ row_reduce
// reduces each variable over the threads of a row; all of them get the result
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_reduce(S (&scratch)[teams][2][slots], int &turn, R... r)
{
    row_post<threads>(scratch, turn, r...);
    row_collect<threads>(scratch, turn, r...);
}

//@ lanes_reduce
// the same for rows of up to 32 threads, which need no shared memory
template <int threads, class... R> DEVICE void lanes_reduce(R... r) { (lane_reduce<threads>(r), ...); }

//@ async_fence
// orders this thread's plain writes to shared memory before later bulk copies to the same place
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@ line_up
// Where a row starts in a buffer that is 128 bytes longer: at about the place of 128 bytes that it has in memory,
// to a multiple of 16. Bulk copies between different places read a quarter more from L2.
template <class T, int size> DEVICE T *line_up(T (&buffer)[size], const void *row)
{
    return (T *)((const char *)buffer + (unsigned long long)row % 128 / 16 * 16);
}

//@ lines line_place
// Room for n elements of a row that lies here at the place of a line of 128 bytes that it has in memory: copies between
// different places read a quarter more from L2.
template <class T, int n> struct alignas(128) lines {
    T data[n + 128 / sizeof(T)];
};
// that place, in elements; of a row whose vectors of n elements are misaligned, where they are not
template <int n, class T> DEVICE int line_place(const T *row)
{
    constexpr int unit = alignof(vector<T, n>);
    return (int)((unsigned long long)row % 128 / unit * unit / sizeof(T));
}

//@ async_block
// starts the copy of a block of 16 bytes, or of the `bytes` at its beginning if they are fewer
DEVICE void async_block(void *to, const void *from, int bytes)
{
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                 "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, policy; }"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes < 16 ? bytes : 16) : "memory");
}

//@ fetch_lines
// Starts the copies of a row by the threads that share it, block by block, whoever's elements a block has: a barrier
// must stand between the wait for them and the first read. Up to 15 bytes before a row are read, none behind it.
template <int threads, int n, class T, int size>
DEVICE void fetch_lines(lines<T, size> &to, const T *row, int count)
{
    constexpr int blocks = (size * sizeof(T) + 15 + 15) / 16, turns = (blocks + threads - 1) / threads;
    const int lane = threadIdx.x % threads;
    if (misalignment<n>(row) == 0) {
        const int before = (int)((unsigned long long)row % 16), bytes = before + count * (int)sizeof(T);
        char *const into = (char *)(to.data + line_place<16 / sizeof(T)>(row));
        #pragma unroll
        for (int k = 0; k < turns; k++) {
            const int at = 16 * (lane + k * threads);
            if (at < bytes)
                async_block(into + at, (const char *)row - before + at, bytes - at);
        }
    } else {
        #pragma unroll 1
        for (int at = lane * n; at < count; at += threads * n)
            load_words(*(vector<T, n> *)(to.data + line_place<n>(row) + at), row + at);
    }
}

//@ vector_in
// the vector of n elements from `at` on of a row that fetch_lines brought
template <int n, class T, int size> DEVICE vector<T, n> vector_in(const lines<T, size> &from, int at, const T *row)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(from.data + line_place<n>(row) + at));
    return v;
}

//@ read_lines
// this thread's part of such a row; anything behind the row's end
template <int step, class T, int n, int tiles, int size>
DEVICE void read_lines(vector<T, n> (&v)[tiles], const lines<T, size> &from, const T *row, int first)
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t] = vector_in<n>(from, first + t * step, row);
}

//@ copy_row
// The copy warp's part of a row that is a multiple of 16 bytes long: one bulk copy, or vector by vector where
// it does not start on such a multiple. Returns how many bytes are still to land.
template <int n, class T> DEVICE int copy_row(T *to, const T *row, int count, unsigned long long &full)
{
    const int lane = threadIdx.x % 32, bytes = count * (int)sizeof(T);
    if (((unsigned long long)row | bytes) % 16 == 0) {
        if (lane == 0 && count > 0)
            bulk_copy(to, row, bytes, full);
        return count > 0 ? bytes : 0;
    }
    #pragma unroll 2
    for (int at = lane * n; at < count; at += 32 * n) {
        vector<T, n> v;
        if (misalignment<n>(row) == 0)
            copy_vector(&v, (const vector<T, n> *)(row + at));
        else
            load_words(v, row + at);
        copy_vector((vector<T, n> *)(to + at), &v);
    }
    async_fence();
    return 0;
}

//@ copy_shifted
// The same for rows that are no multiple of 128 bytes, and so start anywhere in a line.
template <int n, class T, int size>
DEVICE int copy_shifted(T (&to)[size], const T *row, int count, unsigned long long &full)
{
    return copy_row<n>(line_up(to, row), row, count, full);
}

//@ copy_blocks
// The copy warp's part of any row: one bulk copy of the aligned 16-byte blocks that it touches. So up to 15 bytes
// before and after a row are read, never more than the block that its own bytes are in.
template <class T, int size>
DEVICE int copy_blocks(T (&to)[size], const T *row, int count, unsigned long long &full)
{
    const int before = (int)((unsigned long long)row % 16);
    const int bytes = (before + count * (int)sizeof(T) + 15) / 16 * 16;
    if (threadIdx.x % 32 == 0 && count > 0)
        bulk_copy(line_up(to, row), (const char *)row - before, bytes, full);
    return count > 0 ? bytes : 0;
}

//@ copies_end
// announces the bytes of a row whose copies were all started
DEVICE void copies_end(int bytes, unsigned long long &full)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_expect(full, bytes);
}

//@ release
// this warp is done with a stage
DEVICE void release(unsigned long long &empty)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(empty);
}

//@ elements_at
// n elements of a row whose blocks were copied, from the slice's element `at` on
template <int n, class T, int size> DEVICE vector<T, n> elements_at(const T (&buffer)[size], int at, const T *row)
{
    const T *from = line_up(buffer, row) + at + (unsigned long long)row % 16 / sizeof(T);
    vector<T, n> v;
    #pragma unroll
    for (int i = 0; i < n; i++)
        v[i] = from[i];
    return v;
}

//@ vector_at
// a vector of a row that copy_row brought
template <int n, class T> DEVICE vector<T, n> vector_at(const T *row, int at)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(row + at));
    return v;
}

//@ shifted_at
// a vector of a row that copy_shifted brought
template <int n, class T, int size> DEVICE vector<T, n> shifted_at(const T (&buffer)[size], int at, const T *row)
{
    return vector_at<n>(line_up(buffer, row), at);
}

//@ send_value
// Stores a value in the shared memory of CTA `rank`, whose barrier counts its bytes. `twin` and `barrier` are this CTA's own
// variables; mapa finds those at the same place there. Unlike a cluster barrier it does not wait for other stores.
DEVICE void send_value(float *twin, float value, unsigned long long &barrier, int rank)
{
    asm volatile("{\n"
                 ".reg .b32 to, at;\n"
                 "mapa.shared::cluster.u32 to, %0, %3;\n"
                 "mapa.shared::cluster.u32 at, %2, %3;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [at];\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(twin)), "r"(__float_as_int(value)),
                        "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(rank) : "memory");
}
DEVICE void send_value(double *twin, double value, unsigned long long &barrier, int rank)
{
    asm volatile("{\n"
                 ".reg .b32 to, at;\n"
                 "mapa.shared::cluster.u32 to, %0, %3;\n"
                 "mapa.shared::cluster.u32 at, %2, %3;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %1, [at];\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(twin)), "l"(__double_as_longlong(value)),
                        "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(rank) : "memory");
}

//@ width_of
// how many values a reduction sends
template <class R> constexpr int width_of = 1;

//@ Online+width_of
template <> constexpr int width_of<Online> = 2;

//@ Moments+width_of
template <> constexpr int width_of<Moments> = 4;

//@ WarpMoments+width_of
template <> constexpr int width_of<WarpMoments> = 4;

//@ EvenMoments+width_of
template <> constexpr int width_of<EvenMoments> = 3;

//@ send_slot
// an integer travels as the bits of a double
template <int stride, class S, template <class> class R, class T>
DEVICE void send_slot(S *&twin, R<T> r, unsigned long long &barrier)
{
    S bits;
    *(T *)&bits = r.value;
    send_value(twin, bits, barrier, threadIdx.x);
    twin += stride;
}

//@ Online+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, Online r, unsigned long long &barrier)
{
    send_slot<stride>(twin, max_of(r.largest), barrier);
    send_slot<stride>(twin, sum_of(r.sum), barrier);
}

//@ Moments+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, Moments r, unsigned long long &barrier)
{
    send_slot<stride>(twin, sum_of(r.sum), barrier);
    send_slot<stride>(twin, sum_of(r.squares), barrier);
    send_slot<stride>(twin, sum_of(r.shift), barrier);
    send_slot<stride>(twin, sum_of(r.seen), barrier);
}

//@ EvenMoments+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, EvenMoments r, unsigned long long &barrier)
{
    send_slot<stride>(twin, sum_of(r.sum), barrier);
    send_slot<stride>(twin, sum_of(r.squares), barrier);
    send_slot<stride>(twin, sum_of(r.shift), barrier);
}

//@ Exchange exchange_init cluster_send cluster_collect
// Where the CTAs of a cluster leave each other their results of a row. Two rounds fit: nobody can be
// two rounds ahead of a CTA from which it has not heard.
template <class S, int values, int cluster> struct Exchange {
    S slot[2][values][cluster];
    unsigned long long landed[2];
};
template <class X> DEVICE void exchange_init(X &x)
{
    if (threadIdx.x == 0) {
        barrier_init(x.landed[0], 1);
        barrier_init(x.landed[1], 1);
    }
    cluster_arrive();    // nobody may send to another before that one is ready
}
template <class S, int values, int cluster, class... R>
DEVICE void cluster_send(Exchange<S, values, cluster> &x, int &round, R... r)
{
    constexpr int bytes = (width_of<R> + ...) * cluster * (int)sizeof(S);
    if (round == 0)
        cluster_wait();    // for exchange_init of all CTAs
    S *twin = &x.slot[round & 1][0][cluster_rank()];
    if (threadIdx.x < cluster)
        (send_slot<cluster>(twin, r, x.landed[round & 1]), ...);
    if (threadIdx.x == 0)
        barrier_expect(x.landed[round & 1], bytes);
    round++;
}
template <class S, int values, int cluster, class... R>
DEVICE void cluster_collect(Exchange<S, values, cluster> &x, int &round, R... r)
{
    barrier_wait_cluster(x.landed[round & 1], round >> 1 & 1);
    const S *slots = x.slot[round & 1][0];
    (combine_slots<cluster>(slots, r), ...);
    round++;
}

//@ cluster_reduce
// Reduces each variable over a row that a whole cluster shares: each CTA tells all of them, itself as well, its result.
template <int threads, class S, int slots, int values, int cluster, class... R>
DEVICE void cluster_reduce(S (&scratch)[1][2][slots], Exchange<S, values, cluster> &x, int &round, R... r)
{
    int turn = round & 1, sent = round;    // as many rounds are sent as are collected
    row_reduce<threads>(scratch, turn, r...);
    cluster_send(x, sent, r...);
    cluster_collect(x, round, r...);
}

//@ put_mail look_at_mail
// 4 bytes of a result together with the round that they belong to, written and read as one
DEVICE void put_mail(unsigned long long *at, unsigned bits, int round)
{
    asm volatile("{ .reg .b64 mail; mov.b64 mail, {%1, %2}; st.relaxed.gpu.global.b64 [%0], mail; }"
                 :: "l"(at), "r"(bits), "r"(round + 1) : "memory");
}
DEVICE unsigned long long look_at_mail(const unsigned long long *at)
{
    unsigned long long mail;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(mail) : "l"(at) : "memory");
    return mail;
}

//@ take
// what put_slot<1> has left
template <class S, template <class> class R, class T> DEVICE void take(const S *&from, R<T> r) { r.value = *(const T *)from++; }

//@ Online+take
template <class S> DEVICE void take(const S *&from, Online r)
{
    take(from, max_of(r.largest));
    take(from, sum_of(r.sum));
}

//@ Moments+take
template <class S> DEVICE void take(const S *&from, Moments r)
{
    take(from, sum_of(r.sum));
    take(from, sum_of(r.squares));
    take(from, sum_of(r.shift));
    take(from, sum_of(r.seen));
}

//@ Mailbox News news_init group_send group_listen group_collect
// Where the others of a group, which is larger than a cluster can be, leave a CTA their results of a row:
// in global memory, zero at first. Each 4 bytes carry the number of their round, so nothing else needs to
// be ordered before a reader. Each CTA has a box of its own: where all read the same lines again and again,
// the part of the L2 cache that holds them kept all other traffic waiting (a quarter of the bandwidth).
template <class S, int values, int group, int rounds> struct Mailbox {
    unsigned long long mail[rounds][values][sizeof(S) / 4][group];
};
// What a CTA has heard: its listening warp leaves here what it `heard` of every 32 CTAs. It begins with a
// round when the CTA has `sent` its own: by then all its threads have read what is overwritten.
template <class S, int values, int group, int rounds> struct News {
    S value[rounds][values * (group / 32)];
    unsigned long long sent[rounds], heard[rounds];
};
// nobody may use it before the next __syncthreads()
template <class T> DEVICE void news_init(T &news)
{
    if (threadIdx.x < sizeof(news.sent) / sizeof(*news.sent)) {
        barrier_init(news.sent[threadIdx.x], 1);
        barrier_init(news.heard[threadIdx.x], 1);
    }
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_send(Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news, int &round, R... r)
{
    constexpr int width = (width_of<R> + ...), words = sizeof(S) / 4;
    const int at = round % rounds;
    if (threadIdx.x < 32) {
        S mine[width], *slot = mine;
        (put_slot<1>(slot, true, r), ...);
        #pragma unroll
        for (int part = 0; part < group / 32; part++)
            #pragma unroll
            for (int i = 0; i < width * words; i++)
                put_mail(&boxes[part * 32 + threadIdx.x].mail[at][i / words][i % words][blockIdx.x % group],
                         ((const unsigned *)mine)[i], round);
    }
    if (threadIdx.x == 0)
        barrier_arrive(news.sent[at]);
    round++;
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_listen(const Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news, int &round, R... r)
{
    const Mailbox<S, values, group, rounds> &own = boxes[blockIdx.x % group];
    constexpr int width = (width_of<R> + ...), words = sizeof(S) / 4;
    const int at = round % rounds, lane = threadIdx.x % 32;
    barrier_wait(news.sent[at], round / rounds & 1);
    for (int part = 0; part < group / 32; part++) {
        S theirs[width];
        bool complete;
        do {
            complete = true;
            #pragma unroll
            for (int i = 0; i < width * words; i++) {
                const unsigned long long mail = look_at_mail(&own.mail[at][i / words][i % words][part * 32 + lane]);
                ((unsigned *)theirs)[i] = (unsigned)mail;
                complete &= (int)(mail >> 32) == round + 1;
            }
        } while (!complete);
        const S *from = theirs;
        (take(from, r), ...);
        (lane_reduce<32>(r), ...);
        S *slot = news.value[at] + part;
        (put_slot<group / 32>(slot, lane == 0, r), ...);
    }
    release(news.heard[at]);
    round++;
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_collect(News<S, values, group, rounds> &news, int &round, R... r)
{
    barrier_wait(news.heard[round % rounds], round / rounds & 1);
    const S *slots = news.value[round % rounds];
    (combine_slots<group / 32>(slots, r), ...);
    round++;
}

//@ group_reduce
// Reduces each variable over a row that a whole group shares.
template <int threads, class S, int slots, int values, int group, int rounds, class... R>
DEVICE void group_reduce(S (&scratch)[1][2][slots], Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news,
                         int &turn, int &round, R... r)
{
    int same = round;
    row_reduce<threads>(scratch, turn, r...);
    group_send(boxes, news, same, r...);
    group_collect(news, round, r...);
}

//@ place_of_sum
// Where a column's accumulator lies in a row that threads write `vec` at a time, in pieces of 16 bytes: so that those that
// are written at once are in different banks.
template <class T, int vec> DEVICE int place_of_sum(int col)
{
    constexpr int unit = 16 / sizeof(T), pieces = vec / unit;
    const int piece = col / unit;
    return pieces > 1 ? (piece ^ piece / 8 % pieces) * unit + col % unit : col;
}

//@ leave_sums
// Each team, the `members` that share a row, writes its accumulators to a row of `left`. Teams that share a warp add
// theirs by shuffles first, and the warp has one row: a writer is a team, or a warp of several.
template <template <class> class R, class T, int writers, int columns, int tiles, int vec>
DEVICE void leave_sums(T (&left)[writers][columns], T (&acc)[tiles][vec])
{
    constexpr int members = columns / (tiles * vec), width = members < 32 ? 32 : members;
    constexpr int n = 16 / sizeof(T) < vec ? 16 / sizeof(T) : vec;
    const int member = threadIdx.x % width;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < vec; i += n) {
            vector<T, n> sums;
            #pragma unroll
            for (int k = 0; k < n; k++) {
                sums[k] = acc[t][i + k];
                #pragma unroll
                for (int distance = members; distance < 32; distance *= 2)
                    sums[k] = R<T>::combine(sums[k], __shfl_xor_sync(0xffffffff, sums[k], distance));
            }
            T *at = &left[threadIdx.x / width][place_of_sum<T, vec>((t * members + member) * vec + i)];
            if (member < members)
                copy_vector((vector<T, n> *)at, &sums);
        }
}

//@ store_sums
// Adds what the teams left, in their order, and stores it: all threads of the CTA, as few columns each as there are.
template <int threads, int vec, template <class> class R, class T, int writers, int columns>
DEVICE void store_sums(T *row, const T (&left)[writers][columns], int size)
{
    constexpr int most = 16 / sizeof(T) < vec ? 16 / sizeof(T) : vec;
    constexpr int n = columns >= most * threads ? most : columns >= 2 * threads && most > 1 ? 2 : 1;
    constexpr int turns = (columns + threads * n - 1) / (threads * n);
    #pragma unroll
    for (int turn = 0; turn < turns; turn++) {
        const int col = (turn * threads + threadIdx.x) * n;
        if (columns % (threads * n) && col >= columns)
            break;
        T sum[n];
        #pragma unroll
        for (int g = 0; g < writers; g++) {
            vector<T, n> part;
            copy_vector(&part, (const vector<T, n> *)&left[g][place_of_sum<T, vec>(col)]);
            #pragma unroll
            for (int i = 0; i < n; i++)
                sum[i] = g ? R<T>::combine(sum[i], part[i]) : part[i];
        }
        store_aligned(row, col, sum, size);
    }
}

//@ team_reduce
// Adds accumulators over the teams of a CTA, in the order of the teams; the first team gets the sum.
// Teams that share a warp meet by shuffles first and are one writer then; scratch holds a tile of each writer, neighbouring
// members side by side, whose banks then differ.
template <int threads, int members, template <class> class R, class S, class T, int slots, int vec>
DEVICE void team_reduce(S (&scratch)[slots], T (&acc)[vec])
{
    constexpr int width = members < 32 ? 32 : members, writers = threads / width;
    const int writer = threadIdx.x / width, member = threadIdx.x % width;
    #pragma unroll
    for (int i = 0; i < vec; i++) {
        #pragma unroll
        for (int distance = members; distance < 32; distance *= 2)
            acc[i] = R<T>::combine(acc[i], __shfl_xor_sync(0xffffffff, acc[i], distance));
        if (member < members)
            *(T *)(scratch + (i * writers + writer) * members + member) = acc[i];
    }
    __syncthreads();
    if (threadIdx.x < members)
        for (int g = 1; g < writers; g++)
            #pragma unroll
            for (int i = 0; i < vec; i++)
                acc[i] = R<T>::combine(acc[i], *(const T *)(scratch + (i * writers + g) * members + member));
    __syncthreads();
}

//@ share_out
// Of so many items: the first, and the count, of those that this CTA has, where the CTAs along x have as many each, some
// one more. (A count beyond an int would take hours.)
DEVICE void share_out(long long items, long long &first, int &count)
{
    long long each, over;
    split(items, gridDim.x, each, over);
    first = each * blockIdx.x + (blockIdx.x < over ? blockIdx.x : over);
    count = (int)each + (blockIdx.x < over);
}

//@ next_part
// from a part of a group to the next, which may be the first of the next group
DEVICE void next_part(long long &group, int &part, int parts)
{
    if (++part == parts) {
        part = 0;
        group++;
    }
}

//@ add_parts
// Of a column: adds what this CTA has left of each of `parts` parts, rows of `size` columns, first those of a chunk, then the
// chunks.
template <template <class> class R, int chunk, class T>
DEVICE T add_parts(T identity, const T *partials, int parts, int col, long long size)
{
    T sum = identity;
    #pragma unroll 1
    for (int begin = 0; begin < parts; begin += chunk) {
        const int end = begin + chunk < parts ? begin + chunk : parts;
        T some = identity;
        #pragma unroll 4
        for (int p = begin; p < end; p++)
            some = R<T>::combine(some, partials[(p * (long long)gridDim.x + blockIdx.x) * size + col]);
        sum = begin ? R<T>::combine(sum, some) : some;
    }
    return sum;
}

//@ wait_for_previous_kernel
// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

//@ ask_for_columns
// has L2 fetch n elements from `columns` on, a line of memory for each thread (of the last line perhaps nothing, where the first is not
// whole); it is a hint, nothing waits for it
template <int threads, class T> DEVICE void ask_for_columns(const T *columns, int n)
{
    constexpr int line = 128 / sizeof(T);
    #pragma unroll 1
    for (int at = threadIdx.x * line; at < n; at += threads * line)
        asm volatile("prefetch.global.L2 [%0];" :: "l"(columns + at));
}

//@ let_next_kernel_start
// the kernel behind this one in the stream may get ready, where there is room; it waits by itself for what this one writes
DEVICE void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

//@ slice_reduce leave_slice take_slices
// Combines each variable over the threads of a CTA that have the same column, `width` columns side by
// side: those of a warp by shuffles, then the warps in their order. The first `width` threads get the results.
template <int width, class S, template <class> class R, class T>
DEVICE void leave_slice(S *scratch, R<T> r)
{
    #pragma unroll
    for (int distance = width; distance < 32; distance *= 2)
        r.value = R<T>::combine(r.value, __shfl_xor_sync(0xffffffff, r.value, distance));
    const int lane = threadIdx.x % 32;
    if (lane < width)
        *(T *)(scratch + (width < 32 ? threadIdx.x / 32 * width + lane : threadIdx.x)) = r.value;
}
template <int width, int slots, class S, template <class> class R, class T>
DEVICE void take_slices(const S *scratch, R<T> r)
{
    r.value = *(const T *)(scratch + threadIdx.x);
    #pragma unroll
    for (int i = width; i < slots; i += width)
        r.value = R<T>::combine(r.value, *(const T *)(scratch + i + threadIdx.x));
}
template <int width, class S, int count, int slots, class... R>
DEVICE void slice_reduce(S (&scratch)[count][slots], R... r)
{
    int variable = 0;
    (leave_slice<width>(scratch[variable++], r), ...);
    __syncthreads();
    variable = 0;
    if (threadIdx.x < width)
        (take_slices<width, slots>(scratch[variable++], r), ...);
}
