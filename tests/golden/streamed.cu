// graph streamed, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

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
    }
}

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

// 1 / x in one instruction, 2 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float quick_inverse(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// all lanes take the shift of the first, which has seen values if any has
template <int lanes, class R> DEVICE void share_shift(R r)
{
    const float shift = __shfl_sync(0xffffffff, r.shift, 0, lanes);
    r.sum += r.seen * (r.shift - shift);
    r.shift = shift;
}

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

// x, for distances from it. Infinity and NaN are near nothing; nor need numbers beyond 2^96 be, whose squares are infinite
// unless all are equal.
DEVICE float moments_shift(float x) { return fabsf(x) < 0x1p96f ? x : 0; }

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

// From squares about the shift to squares about the mean. Infinite ones stay so, unless the sum is infinite too: then they are NaN.
template <class R> DEVICE void moments_settle(R r, float inverse)
{
    r.squares -= r.squares < infinity() ? r.sum * (r.sum * inverse) : r.sum - r.sum;
}

DEVICE void moments_settle(Moments r) { moments_settle(r, quick_inverse(fmaxf(r.seen, 1))); }

// from a mean's distance from the shift to the mean, rounded, and what that lacks: none where it is infinite
DEVICE float moments_end(float &mean, float shift)
{
    const float distance = mean;
    mean += shift;
    return fabsf(mean) < infinity() ? shift - mean + distance : 0;
}

template <int stride, class S> DEVICE void put_slot(S *&slot, bool mine, Moments r)
{
    put_slot<stride>(slot, mine, sum_of(r.sum));
    put_slot<stride>(slot, mine, sum_of(r.squares));
    put_slot<stride>(slot, mine, sum_of(r.shift));
    put_slot<stride>(slot, mine, sum_of(r.seen));
}

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

// streamed (row), from streamed.fuse:2-6
//   y = (x - mean) * rstd * gamma
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
// A CTA has row blockIdx.x; its 704 threads share it.
// A thread takes 8 neighbouring columns at a time and reads them again in each phase.
// Launch 1 of 1: grid (M, 1), block 704, no dynamic shared memory.
// The second number of __launch_bounds__ leaves registers for 2 CTAs an SM.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
extern "C" __global__ __launch_bounds__(704, 2)
void streamed(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_M,
    float eps) {
    constexpr int N = 22528;
    constexpr int threads = 704;
    constexpr int vec = 8, tiles = 4, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int first = member * vec;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    int turn = 0;

    const long long row = blockIdx.x;
    float mean = 0;
    float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
    float mean_seen = 0, mean_shift = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        vector<bf16, vec> x_v;
        load_hinted<read_again>(x_v, x + row * x_M, col);
        float mean_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            mean_of[i] = x_;
        }
        moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
    }
    moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
    row_reduce<threads>(scratch, turn, moments_of(mean, row_variance, mean_seen, mean_shift));
    mean /= N;
    const float mean_rest = moments_end(mean, mean_shift);
    row_variance /= N;

    const float rstd = rsqrtf(row_variance + eps);
    #pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        vector<bf16, vec> x_v;
        load_hinted<read_last>(x_v, x + row * x_M, col);
        vector<bf16, vec> gamma_v;
        load(gamma_v, gamma, col, N);
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            const float gamma_ = gamma_v[i];
            y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_;
        }
        store_streamed(y + row * y_M, col, y_out);
    }
}
