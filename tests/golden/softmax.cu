// softmax_rows for sm_90a, by fusec 0.3.0:
//   fusec softmax.fuse N=1000 --arch sm_90a
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

// 1 / x in one instruction, 2 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float quick_inverse(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// NaN if either operand is (fminf and fmaxf would drop it)
DEVICE float max_nan(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

// to_storage(value, (T *)0) is the value rounded or saturated to what T stores
template <class T> DEVICE T to_storage(T x, T *) { return x; }    // it is already

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

// as<T>(x): what a store to a tensor of T keeps of x
template <class T, class V> DEVICE T as(V x) { return to_storage(x, (T *)0); }

// of types that have no instruction for two neighbours
template <class T, class V> DEVICE void store_pair(T *at, V low, V high)
{
    at[0] = as<T>(low);
    at[1] = as<T>(high);
}

// n neighbouring elements of a row
template <class T, int n> struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) vector {
    T data[n];
    __device__ __forceinline__ T &operator[](int i) { return data[i]; }
    __device__ __forceinline__ const T &operator[](int i) const { return data[i]; }
};

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

// Bytes by which a row misses the alignment of its vectors. Single elements are always aligned.
template <int n, class T> DEVICE int misalignment(const T *row)
{
    return n == 1 ? 0 : (int)((unsigned long long)row % alignof(vector<T, n>));
}

// to = from[0 .. n), element by element. It needs no further registers, because the kernels that call it may have none left.
// Nobody may write that memory while the kernel runs: the asm tells the compiler that the value depends on the address alone.
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

// What L2 does with the lines of rows that are read. It keeps them, most of them not to be read again: the point is that it
// then evicts written lines first, so they go to memory early and in order. Each access makes the policy anew (volatile), for
// it is a constant to the GPU and would cost two registers.
struct kept_in_l2 {};
DEVICE unsigned long long l2_policy(kept_in_l2)
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Marks what is loaded from an address. To the compiler, loads from it are ordinary ones.
extern "C" __device__ void *__nv_associate_access_property(const void *, unsigned long long);
template <class L2, class T> DEVICE const T *by_policy(const T *at)
{
    return (const T *)__nv_associate_access_property(at, l2_policy(L2()));
}

// n elements of a row, from an aligned address; of less than 16 bytes a policy does not pay
template <class L2 = kept_in_l2, class T, int n> DEVICE void read_once(vector<T, n> &v, const T *at)
{
    copy_vector(&v, (const vector<T, n> *)(sizeof(v) < 16 ? at : by_policy<L2>(at)));
}

// a whole row: v[t] holds the n elements from column first_column + t * step on
template <int step, class L2 = kept_in_l2, class T, int n, int tiles>
DEVICE void load_row(vector<T, n> (&v)[tiles], const T *row, int first_column, int size)
{
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                read_once<L2>(v[t], row + first_column + t * step);
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                load_words(v[t], row + first_column + t * step);
    }
}

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

// a variable that is part of a sum
template <class T> struct Sum {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a + b; }
};
template <class T> DEVICE Sum<T> sum_of(T &value) { return {value}; }

// a variable that is part of a maximum
template <class T> struct Max {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return max_nan(a, b); }
};
template <class T> DEVICE Max<T> max_of(T &value) { return {value}; }

// over `lanes` neighbouring lanes (a power of two), every lane gets the result; the tree is fixed
template <int lanes, class R> DEVICE void lane_reduce(R r)
{
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        r.value = R::combine(r.value, __shfl_xor_sync(0xffffffff, r.value, distance));
}

// 2^x in one instruction, 4 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float exp2_flush(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// exp of a rounded difference, as exact as the difference is: it loses 9 + 2.4 |x| in units of 2^-24.
// The square of exp(x / 2) is right below 2^-126 too.
DEVICE float quick_exp(float x)
{
    const float root = exp2_flush(x * 0.72134752f);
    return root * root;
}

// The largest of a warp's values, which max_nan has made: so a NaN is positive and wins. Integers
// that order like floats have an instruction for it.
DEVICE float warp_max(float x)
{
    const int bits = __float_as_int(x), key = bits ^ (bits >> 31 & 0x7fffffff);
    int top;
    asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(top) : "r"(key));
    return __int_as_float(top ^ (top >> 31 & 0x7fffffff));
}

DEVICE float exp_flush(float x) { return exp2_flush(x * 1.442695041f); }

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
// makes the sum NaN where the largest is infinite, else adds 0
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

// the same for rows of up to 32 threads, which need no shared memory
template <int threads, class... R> DEVICE void lanes_reduce(R... r) { (lane_reduce<threads>(r), ...); }

// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

#endif

// softmax_rows (row), from softmax.fuse:3-5
//   y = e / sum[N](e)
// where
//   e = exp(x - max[N](x))
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(M / 4), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 4, from blockIdx.x * 4
// columns        32 threads a row, each with 4 tiles of 8 adjacent columns, 256 apart, the last not
//                full
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __launch_bounds__(128)
void softmax_rows(
    const bf16 *__restrict__ x, long long x_M,
    bf16 *__restrict__ y, long long y_M,
    long long M) {
    constexpr int N = 1000;
    constexpr int threads_per_row = 32, teams = 4;
    constexpr int vec = 8, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int lane = threadIdx.x % threads_per_row;
    const int first_column = lane * vec;

    const long long row = (long long)blockIdx.x * teams + team;
    if (row >= M)
        return;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, N);
    float row_max = -infinity();    // max[N](x)
    float row_sum = 0;    // sum[N](e)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float row_max_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_max_of[i] = col < N ? x_ : -infinity();
        }
        online_add(row_max, row_sum, row_max_of);
    }
    lanes_reduce<threads_per_row>(online_of(row_max, row_sum));
    online_end(row_max, row_sum);

    const float inverse_row_sum = quick_inverse(row_sum);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = widen_again(x_v[t], i);
            const float e = quick_exp(x_ - row_max);
            y_out[i] = e * inverse_row_sum;
        }
        store_row(y + row * y_M, col, y_out, N);
    }
}
