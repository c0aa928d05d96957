// graph mean_cross_entropy, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

// a + b, which wraps around: a compiler may take for granted that what signed operators give never does
DEVICE long long wrap_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }

// NaN if either operand is (fminf and fmaxf would drop it)
DEVICE float min_nan(float a, float b)
{
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

DEVICE double min_nan(double a, double b) { return a != a || a < b ? a : b; }

// NaN if either operand is (fminf and fmaxf would drop it)
DEVICE float max_nan(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

DEVICE double max_nan(double a, double b) { return a != a || a > b ? a : b; }

// no integer is NaN
DEVICE long long min_nan(long long a, long long b) { return a < b ? a : b; }
DEVICE long long max_nan(long long a, long long b) { return a > b ? a : b; }

// a double as the f32 toward zero whose last bit says that something was cut off: rounding this to
// a narrower format is then right in one step
DEVICE float sticky_float(double x)
{
    const float cut = __double2float_rz(x);
    return cut == x || x != x ? cut : __int_as_float(__float_as_int(cut) | 1);
}

// to_storage(value, (T *)0) is the value rounded or saturated to what T stores
template <class T> DEVICE T to_storage(T x, T *) { return x; }    // it is already

DEVICE double to_storage(float x, double *) { return x; }
DEVICE float to_storage(double x, float *) { return (float)x; }

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

DEVICE bf16 to_storage(double x, bf16 *) { return to_storage(sticky_float(x), (bf16 *)0); }

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

// Room for n elements of a row that may begin anywhere in a block of 16 bytes. They lie at the same distance from a
// multiple of 16 here as in memory, which takes up to 15 bytes more, so that whole blocks can be copied.
template <class T, int n> struct alignas(16) blocks {
    T data[(n * sizeof(T) + 30) / 16 * 16 / sizeof(T)];
};
// elements between the block's beginning and `at`
template <class T> DEVICE int place_in_block(const T *at) { return (int)((unsigned long long)at % 16 / sizeof(T)); }

// Where a number is among the columns of a row, of which there are fewer than 2^31: those before the
// first compare as -1, those from 2^31 on as 2^31 - 1.
DEVICE int as_column(long long n) { return (int)(n < -1 ? -1 : n < 0x7fffffff ? n : 0x7fffffff); }

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

// v, once its load has landed. Compilers wait for a load where its value is first used. If that is in a loop behind the
// load, every pass waits there, for younger loads too. So v is used here, by an xor with 0 that no compiler sees to
// be 0: every launch of this kernel has gridDim.y 1.
template <class T> DEVICE T arrived(T v)
{
    *(unsigned *)&v ^= gridDim.y - 1;
    return v;
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

template <> __device__ __forceinline__ long long Sum<long long>::combine(long long a, long long b) { return wrap_add(a, b); }

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

// 2^x in one instruction, 4 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float exp2_flush(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// 1 / x in one instruction, 2 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float quick_inverse(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
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

template <int stride, class S> DEVICE void put_slot(S *&slot, bool mine, Online r)
{
    put_slot<stride>(slot, mine, max_of(r.largest));
    put_slot<stride>(slot, mine, sum_of(r.sum));
}

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

// the same for rows of up to 32 threads, which need no shared memory
template <int threads, class... R> DEVICE void lanes_reduce(R... r) { (lane_reduce<threads>(r), ...); }

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

// starts the copy of a block of 16 bytes, or of the `bytes` at its beginning if they are fewer
DEVICE void async_block(void *to, const void *from, int bytes)
{
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                 "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, policy; }"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes < 16 ? bytes : 16) : "memory");
}

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

// the vector of n elements from `at` on of a row that fetch_lines brought
template <int n, class T, int size> DEVICE vector<T, n> vector_in(const lines<T, size> &from, int at, const T *row)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(from.data + line_place<n>(row) + at));
    return v;
}

// this thread's part of such a row; anything behind the row's end
template <int step, class T, int n, int tiles, int size>
DEVICE void read_lines(vector<T, n> (&v)[tiles], const lines<T, size> &from, const T *row, int first)
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t] = vector_in<n>(from, first + t * step, row);
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

// mean_cross_entropy (column), from late.fuse:2-18
//   counted = sum[M](counts), this CTA's rows
// where
//   counts = label != 3
// A CTA walks 256 rows at a time, from blockIdx.x * 256, + gridDim.x * 256, ... and keeps its sums; each has a thread.
// A thread has one column.
// Launch 1 of 5: grid (min(ceil(M / 256), 528), 1), block 256, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_partial: workspace, one for each of the gridDim.x CTAs of mean_cross_entropy: 1 of i64
extern "C" __global__ __launch_bounds__(256)
void mean_cross_entropy(
    const long long *__restrict__ label,
    long long *__restrict__ counted_partial,
    long long M) {
    constexpr int threads_per_row = 1, teams = 256, threads = threads_per_row * teams;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row

    long long counted_sum = 0;
    const long long first_row = (long long)blockIdx.x * teams, row_step = (long long)gridDim.x * teams;
    #pragma unroll 1
    for (long long base = first_row; base < M; base += row_step) {
        const bool mine = base + team < M;    // a team without a row reads the first team's, and stores nothing
        const long long row = mine ? base + team : base;
        const long long label_ = label[row];
        const bool counts = label_ != 3;
        if (member == 0 && mine)
            counted_sum += (long long)counts;
    }

    let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done
    __shared__ double cta_scratch[1][2][threads / 32];
    int cta_turn = 0;
    row_reduce<threads>(cta_scratch, cta_turn, sum_of(counted_sum));
    if (threadIdx.x == 0) {
        counted_partial[blockIdx.x] = counted_sum;
    }
}

// mean_cross_entropy_finish (finish), from late.fuse:2-18
//   counted = sum[M](counts), from the partials
// mean_cross_entropy left a partial for each of its CTAs. Here a CTA has up to 8 columns; the 128 threads of a
// column take its partials in turn, and then meet.
// Launch 2 of 5: grid (ceil(1 / 8), 1), block 1024, 115840 bytes of dynamic shared memory.
// None of it is used: it keeps an SM to 1 CTA.
// (0 is right as well, and slower where programmatic stream serialization lets CTAs in early: they crowd on the first free SMs.)
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_partial: workspace, one for each of the gridDim.x CTAs of mean_cross_entropy: 1 of i64
// counted_value: workspace, 1 of i64
// partials: how many there are, min(ceil(M / 256), 528)
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy_finish(
    const long long *__restrict__ counted_partial,
    long long *__restrict__ counted,
    long long *__restrict__ counted_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 5;
    __shared__ double scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    long long counted_sum = 0;
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    counted_sum += counted_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(counted_sum));
    if (slice == 0 && col < 1) {
        counted[0] = counted_sum;
        counted_value[0] = counted_sum;
    }
}

// mean_cross_entropy_2 (grid-stride), from late.fuse:2-18
//   dx = where(counts, e / s - where(index(N) == label, 1.0, 0.0), 0.0) / counted
//   sum_2_partial = sum[M](where(counts, each, 0.0)), this CTA's rows
// where
//   counts = label != 3
//   m = max[N](x)
//   e = exp(x - m)
//   s = sum[N](e)
//   each = m + log(s) - sum[N](where(index(N) == label, x, 0.0))
// A CTA walks 4 rows at a time, from blockIdx.x * 4, + gridDim.x * 4, ... and keeps its sums; 32 threads share a row.
// A thread has 4 neighbouring columns in each of 3 tiles, the last not full.
// Launch 3 of 5: grid (min(ceil(M / 4), 1056), 1), block 128, 17920 bytes of dynamic shared memory.
// The second number of __launch_bounds__ leaves registers for 8 CTAs an SM.
// Inputs are read by whole blocks of 16 bytes: up to 15 bytes before their own.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_value: workspace, 1 of i64: sum[M](counts)
// sum_2_partial: workspace, one for each of the gridDim.x CTAs of mean_cross_entropy_2: 1 of f32
extern "C" __global__ __launch_bounds__(128, 8)
void mean_cross_entropy_2(
    const bf16 *__restrict__ x, long long x_M,
    const long long *__restrict__ label,
    const long long *__restrict__ counted_value,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ sum_2_partial,
    long long M) {
    constexpr int N = 300;
    constexpr int threads_per_row = 32, teams = 4, threads = threads_per_row * teams;
    constexpr int vec = 4, tiles = 3, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row
    const int first = member * vec;
    const long long counted = counted_value[0];

    float column_sum = 0;
    const long long first_row = (long long)blockIdx.x * teams + team, row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    // rows begin anywhere in a line of memory: threads copy whole blocks of 16 bytes, for each other
    constexpr int stages = 5;
    struct Stage {
        lines<bf16, tiles * step> x[teams];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_lines<threads_per_row, vec>(into.x[team], x + row * x_M, N);
        }
        fetch_commit();
    };
    int stage = 1;    // the loop begins early, to fill the ring; the first row has stage 0
    long long next = first_row;
    long long label_next = arrived(next < M ? (long long)label[next] : 0);
    #pragma unroll 1
    for (long long row = first_row - row_step * (stages - 1); row < M; row += row_step) {
        const Stage &now = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], row + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (row < first_row)
            continue;
        if (row == first_row) {
            fetch_wait<stages - 1>();
            __syncwarp();    // later rows are shown to all by a reduction of the row before
        }
        const long long label_ = label_next;
        const bool counts = label_ != 3;
        vector<bf16, vec> x_v[tiles];
        read_lines<step>(x_v, now.x[team], x + row * x_M, first);
        float m = -infinity();
        float s_ = 0;
        float row_sum = 0;    // sum[N](where(index(N) == label, x, 0.0))
        const int label_at = as_column(label_);
        if (member == 0 && label_at >= 0 && label_at < N)
            row_sum += (float)x[row * x_M + label_at];
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first + t * step;
            float m_of[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                m_of[i] = col < N ? x_ : -infinity();
            }
            online_add(m, s_, m_of);
        }
        next += row_step;
        label_next = next < M ? (long long)label[next] : 0;
        fetch_wait<stages - 2>();    // the next row's blocks: a barrier shows them to all
        __syncwarp();
        lanes_reduce<threads_per_row>(online_of(m, s_), sum_of(row_sum));
        online_end(m, s_);

        const float inverse_s_ = quick_inverse(s_);
        const float each = m + logf(s_) - row_sum;
        if (member == 0)
            column_sum += counts ? each : 0.0f;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first + t * step;
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float e = quick_exp(x_ - m);
                dx_out[i] = (counts ? e * inverse_s_ - (i == label_at - col ? 1.0f : 0.0f) : 0.0f) / (float)counted;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
    }

    let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done
    __shared__ float cta_scratch[1][2][threads / 32];
    int cta_turn = 0;
    row_reduce<threads>(cta_scratch, cta_turn, sum_of(column_sum));
    if (threadIdx.x == 0) {
        sum_2_partial[blockIdx.x] = column_sum;
    }
}

// mean_cross_entropy_finish_2 (finish), from late.fuse:2-18
//   sum_2_partial = sum[M](where(counts, each, 0.0)), from the partials
// mean_cross_entropy_2 left a partial for each of its CTAs. Here a CTA has up to 8 columns; the 128 threads of a
// column take its partials in turn, and then meet.
// Launch 4 of 5: grid (ceil(1 / 8), 1), block 1024, 115840 bytes of dynamic shared memory.
// None of it is used: it keeps an SM to 1 CTA.
// (0 is right as well, and slower where programmatic stream serialization lets CTAs in early: they crowd on the first free SMs.)
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// sum_2_partial: workspace, one for each of the gridDim.x CTAs of mean_cross_entropy_2: 1 of f32
// sum_1_value: workspace, 1 of f32
// partials: how many there are, min(ceil(M / 4), 1056)
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy_finish_2(
    const float *__restrict__ sum_2_partial,
    float *__restrict__ sum_1_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 9;
    __shared__ float scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float column_sum = 0;
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    column_sum += sum_2_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(column_sum));
    if (slice == 0 && col < 1) {
        sum_1_value[0] = column_sum;
    }
}

// mean_cross_entropy_3 (pointwise), from late.fuse:2-18
//   loss = sum[M](where(counts, each, 0.0)) / counted
// A CTA walks rows blockIdx.x, + gridDim.x, ... (in a grid as below just one); its 32 threads share a row.
// A thread has one column.
// Launch 5 of 5: grid (1, 1), block 32, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_value: workspace, 1 of i64: sum[M](counts)
// sum_1_value: workspace, 1 of f32: sum[M](where(counts, each, 0.0))
extern "C" __global__ __launch_bounds__(32)
void mean_cross_entropy_3(
    const long long *__restrict__ counted_value,
    const float *__restrict__ sum_1_value,
    float *__restrict__ loss) {
    constexpr int threads = 32;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const long long counted = counted_value[0];
    const float row_sum = sum_1_value[0];

    if (member == 0)
        loss[0] = row_sum / (float)counted;
}
