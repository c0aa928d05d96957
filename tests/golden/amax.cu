// graph amax, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

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

DEVICE float value_of_e4m3(unsigned char bits)
{
    const int magnitude = bits & 0x7f, exponent = magnitude >> 3, fraction = magnitude & 7;
    const float size = exponent ? __int_as_float((exponent + 120) << 23 | fraction << 20)
                                : (float)fraction * 0.001953125f;
    const float value = magnitude == 0x7f ? __int_as_float(0x7fffffff) : size;
    return bits & 0x80 ? -value : value;
}

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

struct f8e4m3 {
    unsigned char bits;
    __device__ __forceinline__ operator float() const { return widen_e4m3(bits); }
};
DEVICE f8e4m3 to_storage(float x, f8e4m3 *) { return {(unsigned char)pack_e4m3(x, 0)}; }
DEVICE void store_pair(f8e4m3 *at, float low, float high) { *(unsigned short *)at = pack_e4m3(low, high); }

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
    }
}

// Where a copy that has a policy for L2 goes to. No address has the highest bit; without this ptxas 13.0 may split the
// address between two kinds of registers, and encodes such a copy in a way that the GPU refuses.
DEVICE unsigned shared_address(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared) & 0x7fffffff; }

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

template <class T, int n, int tiles, int threads>
DEVICE void read_row(vector<T, n> (&v)[tiles], const vector<T, n> (&buffer)[tiles][threads])
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        copy_vector(&v[t], &buffer[t][threadIdx.x]);
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

// the kernel behind this one in the stream may get ready, where there is room; it waits by itself for what this one writes
DEVICE void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

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
#endif

// amax (column), from amax.fuse:1-4
//   max_1_partial = max[M, N](abs(x)), this CTA's rows
// A CTA walks 8 rows at a time, from blockIdx.x * 8, + gridDim.x * 8, ... and keeps its sums; 32 threads share a row.
// A thread has 8 neighbouring columns in each of 2 tiles.
// Launch 1 of 4: grid (min(ceil(M / 8), 528), 1), block 256, 24576 bytes of dynamic shared memory.
// The second number of __launch_bounds__ leaves registers for 4 CTAs an SM.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// max_1_partial: workspace, one for each of the gridDim.x CTAs of amax: 1 of f32
extern "C" __global__ __launch_bounds__(256, 4)
void amax(
    const bf16 *__restrict__ x, long long x_M,
    float *__restrict__ max_1_partial,
    long long M) {
    constexpr int N = 512;
    constexpr int threads_per_row = 32, teams = 8, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row
    const int first = member * vec;

    float column_max = -infinity();
    const long long first_row = (long long)blockIdx.x * teams + team, row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 3;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first, N);
        }
        fetch_commit();
    };
    int stage = 1;    // the loop begins early, to fill the ring; the first row has stage 0
    #pragma unroll 1
    for (long long row = first_row - row_step * (stages - 1); row < M; row += row_step) {
        const Stage &now = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], row + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (row < first_row)
            continue;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, now.x);
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                column_max = max_nan(column_max, fabsf(x_));
            }
        }
    }

    let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done
    __shared__ float cta_scratch[1][2][threads / 32];
    int cta_turn = 0;
    row_reduce<threads>(cta_scratch, cta_turn, max_of(column_max));
    if (threadIdx.x == 0) {
        max_1_partial[blockIdx.x] = column_max;
    }
}

// amax_finish (finish), from amax.fuse:1-4
//   max_1_partial = max[M, N](abs(x)), from the partials
// amax left a partial for each of its CTAs. Here a CTA has up to 8 columns; the 128 threads of a
// column take its partials in turn, and then meet.
// Launch 2 of 4: grid (ceil(1 / 8), 1), block 1024, 115840 bytes of dynamic shared memory.
// None of it is used: it keeps an SM to 1 CTA.
// (0 is right as well, and slower where programmatic stream serialization lets CTAs in early: they crowd on the first free SMs.)
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// max_1_partial: workspace, one for each of the gridDim.x CTAs of amax: 1 of f32
// max_0_value: workspace, 1 of f32
// partials: how many there are, min(ceil(M / 8), 528)
extern "C" __global__ __launch_bounds__(1024)
void amax_finish(
    const float *__restrict__ max_1_partial,
    float *__restrict__ max_0_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 5;
    __shared__ float scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float column_max = -infinity();
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    column_max = max_nan(column_max, max_1_partial[item]);
                }
    }
    slice_reduce<width>(scratch, max_of(column_max));
    if (slice == 0 && col < 1) {
        max_0_value[0] = column_max;
    }
}

// amax_2 (pointwise), from amax.fuse:1-4
//   q = x / scale
// where
//   scale = max[M, N](abs(x)) / 448.0
// A CTA walks 8 rows at a time, from blockIdx.x * 8, + gridDim.x * 8, ...; 32 threads share a row.
// A thread has 8 neighbouring columns in each of 2 tiles.
// Launch 3 of 4: grid (ceil(M / 8), 1), block 256, no dynamic shared memory.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// max_0_value: workspace, 1 of f32: max[M, N](abs(x))
extern "C" __global__ __launch_bounds__(256)
void amax_2(
    const bf16 *__restrict__ x, long long x_M,
    const float *__restrict__ max_0_value,
    f8e4m3 *__restrict__ q, long long q_M,
    long long M) {
    constexpr int N = 512;
    constexpr int threads_per_row = 32, teams = 8;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row
    const int first = member * vec;
    const float row_max = max_0_value[0];
    const float scale = row_max / 448.0f;

    const long long first_row = (long long)blockIdx.x * teams + team, row_step = (long long)gridDim.x * teams;
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        vector<bf16, vec> x_v[tiles];
        load_row<step>(x_v, x + row * x_M, first, N);
        const Divisor scale_divisor = divisor(scale);
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first + t * step;
            float q_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                q_out[i] = x_ / scale_divisor;
            }
            store_vector(q + row * q_M, col, q_out);
        }
    }
}

// amax_3 (pointwise), from amax.fuse:1-4
//   scale = max[M, N](abs(x)) / 448.0
// A CTA walks rows blockIdx.x, + gridDim.x, ... (in a grid as below just one); its 32 threads share a row.
// A thread has one column.
// Launch 4 of 4: grid (1, 1), block 32, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// max_0_value: workspace, 1 of f32: max[M, N](abs(x))
extern "C" __global__ __launch_bounds__(32)
void amax_3(
    const float *__restrict__ max_0_value,
    float *__restrict__ scale) {
    constexpr int threads = 32;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const float row_max = max_0_value[0];

    if (member == 0)
        scale[0] = row_max / 448.0f;
}
