// graph odd_rows, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// a float as an integer: toward zero, saturating, NaN gives 0
template <class T> DEVICE long long whole(T x) { return x == x ? (long long)x : 0; }

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
    }
}

// Room for n elements of a row that may begin anywhere in a block of 16 bytes. They lie at the same distance from a
// multiple of 16 here as in memory, which takes up to 15 bytes more, so that whole blocks can be copied.
template <class T, int n> struct alignas(16) blocks {
    T data[(n * sizeof(T) + 30) / 16 * 16 / sizeof(T)];
};
// elements between the block's beginning and `at`
template <class T> DEVICE int place_in_block(const T *at) { return (int)((unsigned long long)at % 16 / sizeof(T)); }

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

// this thread's part of a row that read_blocks has brought; anything behind the row's end
template <int step, class T, int tiles, int n>
DEVICE void from_blocks(vector<T, 1> (&v)[tiles], const blocks<T, n> &from, const T *row, int first)
{
    const T *at = from.data + place_in_block(row) + first;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t][0] = at[t * step];
}

// a value, rounded to T, to where write_blocks takes row[col] from; there is room behind the row's end
template <class T, int n, class V> DEVICE void to_blocks(blocks<T, n> &to, const T *row, int col, const V (&value)[1])
{
    to.data[place_in_block(row) + col] = as<T>(value[0]);
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

// odd_rows (row), from odd_rows.fuse:2-4
//   y = x * rsqrt(mean[N](x * x) + 0.001) * gamma
// A CTA has row blockIdx.x; its 64 threads share it.
// A thread has 16 columns, 64 apart.
// Launch 1 of 1: grid (M, 1), block 64, 4160 bytes of dynamic shared memory.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
extern "C" __global__ __launch_bounds__(64)
void odd_rows(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_M) {
    constexpr int N = 1023;
    constexpr int threads = 64;
    constexpr int vec = 1, tiles = 16, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    __builtin_assume(member < threads);
    const int first = member * vec;
    __shared__ float scratch[1][2][threads / 32];
    int turn = 0;
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma, first, N);

    const long long row = blockIdx.x;

    // rows begin anywhere in a block of 16 bytes: whole blocks are copied, and threads take their elements here
    struct Rows {
        blocks<bf16, tiles * step> x;
        blocks<bf16, tiles * step> y;
    };
    alignas(128) extern __shared__ uint4 smem[];
    Rows &through = *(Rows *)smem;

    read_blocks<threads>(through.x, x + row * x_M, N);
    team_barrier<threads, 1>();
    vector<bf16, vec> x_v[tiles];
    from_blocks<step>(x_v, through.x, x + row * x_M, first);
    float row_mean = 0;    // mean[N](x * x)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            if (col < N) {
                row_mean += x_ * x_;
            }
        }
    }
    row_reduce<threads>(scratch, turn, sum_of(row_mean));
    row_mean /= N;

    const float rsqrt_value = rsqrtf(row_mean + 0.001f);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float gamma_ = gamma_v[t][i];
            y_out[i] = x_ * rsqrt_value * gamma_;
        }
        to_blocks(through.y, y + row * y_M, col, y_out);
    }
    team_barrier<threads, 1>();
    write_blocks<threads>(y + row * y_M, through.y, N);
}
