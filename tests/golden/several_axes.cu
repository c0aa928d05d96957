// graph several_axes, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

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

// n elements of a row, from an aligned address, by that policy; of less than 16 bytes it does not pay
template <class T, int n> DEVICE void read_once(vector<T, n> &v, const T *at)
{
    copy_vector(&v, (const vector<T, n> *)(sizeof(v) < 16 ? at : kept_longer(at)));
}

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
    }
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

// a variable that is part of a sum
template <class T> struct Sum {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a + b; }
};
template <class T> DEVICE Sum<T> sum_of(T &value) { return {value}; }

// over `lanes` neighbouring lanes (a power of two), every lane gets the result; the tree is fixed
template <int lanes, class R> DEVICE void lane_reduce(R r)
{
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        r.value = R::combine(r.value, __shfl_xor_sync(0xffffffff, r.value, distance));
}

// leaves a warp's result in a slot; the next value's slots are `stride` further
template <int stride, class S, template <class> class R, class T>
DEVICE void put_slot(S *&slot, bool mine, R<T> r)
{
    if (mine)
        *(T *)slot = r.value;
    slot += stride;
}

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

// A barrier of the `threads` neighbouring threads that this one belongs to. A single team has barrier 0, a constant, so that
// ptxas reserves that one alone; several have one of 1 to 15 each, by a number in a register, and ptxas reserves all sixteen.
template <int threads, int teams> DEVICE void team_barrier()
{
    if constexpr (teams == 1)
        asm volatile("bar.sync 0, %0;" :: "n"(threads) : "memory");
    else
        asm volatile("bar.sync %0, %1;" :: "r"((int)threadIdx.x / threads + 1), "n"(threads) : "memory");
}

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

// reduces each variable over the threads of a row; all of them get the result
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_reduce(S (&scratch)[teams][2][slots], int &turn, R... r)
{
    row_post<threads>(scratch, turn, r...);
    row_collect<threads>(scratch, turn, r...);
}

// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

#endif

// several_axes (row), from several_axes.fuse:2-4
//   y = (x - mean[C, S](x)) * gamma
// A CTA has row blockIdx.x; its 64 threads share it.
// A thread has 8 neighbouring columns in each of 2 tiles.
// Columns are C * S: col counts them, and a vector lies along S, a multiple of its length.
// Launch 1 of 1: grid (B, 1), block 64, 8832 bytes of dynamic shared memory.
// None of it is used: it keeps an SM to 23 CTAs.
// Strides, x_B and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
extern "C" __global__ __launch_bounds__(64)
void several_axes(
    const bf16 *__restrict__ x, long long x_B, long long x_C,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_B, long long y_C) {
    constexpr int C = 16, S = 64;
    constexpr int columns = C * S;
    constexpr int threads = 64;
    constexpr int vec = 8, tiles = 2, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int first = member * vec;
    __shared__ float scratch[1][2][threads / 32];
    int turn = 0;

    const long long row = blockIdx.x;
    vector<bf16, vec> x_v[tiles];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step, s_ = col % S, c = col / S;
        load_once(x_v[t], x + row * x_B + c * x_C + s_, 0, columns - col);
    }
    float row_mean = 0;    // mean[C, S](x)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_mean += x_;
        }
    }
    row_reduce<threads>(scratch, turn, sum_of(row_mean));
    row_mean /= (C * S);

    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step, s_ = col % S, c = col / S;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float gamma_ = gamma[c];
            y_out[i] = (x_ - row_mean) * gamma_;
        }
        store_vector(y + row * y_B + c * y_C + s_, 0, y_out);
    }
}
