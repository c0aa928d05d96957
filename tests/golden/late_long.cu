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

// Ends the branch for rows that are not aligned and keeps it a branch. Without this ptxas predicates a short one (up to 16
// loads of 4 bytes) and issues its loads among the aligned ones; all share the six scoreboards by which loads are waited
// for, so that later ones wait for earlier ones: rows were asked for when the weights were there. `all`: every load is done,
// whatever the row's end.
template <class T> DEVICE void keep_branch(bool all, int loads)
{
    if (all && sizeof(T) == 4 && loads <= 16)
        asm volatile("nanosleep.u32 0;");
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
        keep_branch<T>(true, n);
    }
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
        keep_branch<T>(tiles * step == size, tiles * n);
    }
}

// Where a number is among the columns of a row, of which there are fewer than 2^31: those before the
// first compare as -1, those from 2^31 on as 2^31 - 1.
DEVICE int as_column(long long n) { return (int)(n < -1 ? -1 : n < 0x7fffffff ? n : 0x7fffffff); }

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

// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

#endif

// mean_cross_entropy (row), from late_long.fuse:3-19
//   counted = sum[M](counts)
//   counted_value = sum[M](counts)
// where
//   counts = label != 3
// A CTA walks rows blockIdx.x, + gridDim.x, ... (in a grid as below just one); its 1024 threads share a row.
// A thread takes a column at a time.
// Launch 1 of 3: grid (1, 1), block 1024, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_value: workspace, 1 of i64
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy(
    const long long *__restrict__ label,
    long long *__restrict__ counted,
    long long *__restrict__ counted_value,
    long long M) {
    constexpr int threads = 1024;
    constexpr int vec = 1, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int first = member * vec;
    __shared__ double scratch[1][2][threads / 32];
    int turn = 0;

    long long counted_ = 0;
    #pragma unroll 1
    for (long long at = first; at < M; at += 8 * step) {
        vector<long long, vec> label_v[8];
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            load_once(label_v[t], label, col, M);
        }
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const long long label_ = label_v[t][i];
                const bool counts = label_ != 3;
                counted_ += (long long)counts;
            }
        }
    }
    row_reduce<threads>(scratch, turn, sum_of(counted_));

    if (member == 0) {
        counted[0] = counted_;
        counted_value[0] = counted_;
    }
}

// mean_cross_entropy_2 (row), from late_long.fuse:3-19
//   dx = where(counts, e / s - where(index(N) == label, 1.0, 0.0), 0.0) / counted
//   number_1_value = where(counts, each, 0.0)
// where
//   counts = label != 3
//   m = max[N](x)
//   e = exp(x - m)
//   s = sum[N](e)
//   each = m + log(s) - sum[N](where(index(N) == label, x, 0.0))
// A CTA has row blockIdx.x; its 256 threads share it.
// A thread has 8 neighbouring columns in each of 4 tiles.
// Launch 2 of 3: grid (M, 1), block 256, no dynamic shared memory.
// The second number of __launch_bounds__ leaves registers for 4 CTAs an SM.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_value: workspace, 1 of i64: sum[M](counts)
// number_1_value: workspace, M of f32
extern "C" __global__ __launch_bounds__(256, 4)
void mean_cross_entropy_2(
    const bf16 *__restrict__ x, long long x_M,
    const long long *__restrict__ label,
    const long long *__restrict__ counted_value,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ number_1_value,
    long long M) {
    constexpr int N = 8192;
    constexpr int threads = 256;
    constexpr int vec = 8, tiles = 4, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int first = member * vec;
    __shared__ float scratch[1][2][3 * (threads / 32)];
    int turn = 0;
    const long long counted = counted_value[0];

    const long long row = blockIdx.x;
    const long long label_ = label[row];
    const bool counts = label_ != 3;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first, N);
    float m = -infinity();
    float s_ = 0;
    float row_sum = 0;    // sum[N](where(index(N) == label, x, 0.0))
    const int label_at = as_column(label_);
    if (member == 0 && label_at >= 0 && label_at < N)
        row_sum += (float)x[row * x_M + label_at];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        float m_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            m_of[i] = x_;
        }
        online_add(m, s_, m_of);
    }
    row_reduce<threads>(scratch, turn, online_of(m, s_), sum_of(row_sum));
    online_end(m, s_);

    const float inverse_s_ = quick_inverse(s_);
    const float each = m + logf(s_) - row_sum;
    const Divisor widened_divisor = divisor((float)counted);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        float dx_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float e = quick_exp(x_ - m);
            dx_out[i] = (counts ? e * inverse_s_ - (i == label_at - col ? 1.0f : 0.0f) : 0.0f) / widened_divisor;
        }
        store_vector(dx + row * dx_M, col, dx_out);
    }
    if (member == 0)
        number_1_value[row] = counts ? each : 0.0f;
}

// mean_cross_entropy_3 (row), from late_long.fuse:3-19
//   loss = sum[M](where(counts, each, 0.0)) / counted
// A CTA walks rows blockIdx.x, + gridDim.x, ... (in a grid as below just one); its 1024 threads share a row.
// A thread takes a column at a time.
// Launch 3 of 3: grid (1, 1), block 1024, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// counted_value: workspace, 1 of i64: sum[M](counts)
// number_1_value: workspace, M of f32: where(counts, each, 0.0)
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy_3(
    const long long *__restrict__ counted_value,
    const float *__restrict__ number_1_value,
    float *__restrict__ loss,
    long long M) {
    constexpr int threads = 1024;
    constexpr int vec = 1, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int first = member * vec;
    __shared__ float scratch[1][2][threads / 32];
    int turn = 0;
    const long long counted = counted_value[0];

    float row_sum = 0;    // sum[M](where(counts, each, 0.0))
    #pragma unroll 1
    for (long long at = first; at < M; at += 8 * step) {
        vector<float, vec> number_1_value_v[8];
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            load_once(number_1_value_v[t], number_1_value, col, M);
        }
        float row_sum_of = 0;
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float chosen = number_1_value_v[t][i];
                row_sum_of += chosen;
            }
        }
        row_sum += row_sum_of;
    }
    row_reduce<threads>(scratch, turn, sum_of(row_sum));

    if (member == 0)
        loss[0] = row_sum / (float)counted;
}
