// graph layernorm_bwd, for sm_90a; the comment above each kernel says how to launch it
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

// v, once its load has landed. Compilers wait for a load where its value is first used. If that is in a loop behind the
// load, every pass waits there, for younger loads too. So v is used here, by an xor with 0 that no compiler sees to
// be 0: every launch of this kernel has gridDim.y 1.
template <class T> DEVICE T arrived(T v)
{
    *(unsigned *)&v ^= gridDim.y - 1;
    return v;
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

// to workspace, whose rows are aligned
template <class T, int n, class V> DEVICE void store_aligned(T *row, int col, const V (&values)[n], int size)
{
    vector<T, n> v;
    fill(v, values);
    if (col < size)
        copy_vector((vector<T, n> *)(row + col), &v);
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

// Where a column's accumulator lies in a row that threads write `vec` at a time, in pieces of 16 bytes: so that those that
// are written at once are in different banks.
template <class T, int vec> DEVICE int place_of_sum(int col)
{
    constexpr int unit = 16 / sizeof(T), pieces = vec / unit;
    const int piece = col / unit;
    return pieces > 1 ? (piece ^ piece / 8 % pieces) * unit + col % unit : col;
}

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

// layernorm_bwd (grid-stride), from layernorm_bwd.fuse:9-27
//   dx = (wdy - xhat * c1 - c2) * rstd
//   dgamma = sum[M](dy * xhat), this CTA's rows
//   dbeta = sum[M](dy), this CTA's rows
// where
//   xhat = (x - mean) * rstd
//   wdy = dy * gamma
//   c1 = mean[N](wdy * xhat)
//   c2 = mean[N](wdy)
// A CTA walks 2 rows at a time, from blockIdx.x * 2, + gridDim.x * 2, ... and keeps its sums; 256 threads share a row.
// A thread has 8 neighbouring columns in each of 2 tiles.
// Launch 1 of 2: grid (min(ceil(M / 2), 132), 1), block 512, 98304 bytes of dynamic shared memory.
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dgamma_partial: workspace, one for each of the gridDim.x CTAs of layernorm_bwd: N of f32
// dbeta_partial: workspace, one for each of the gridDim.x CTAs of layernorm_bwd: N of f32
extern "C" __global__ __launch_bounds__(512, 1)
void layernorm_bwd(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    const bf16 *__restrict__ gamma,
    const float *__restrict__ mean,
    const float *__restrict__ rstd,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dgamma_partial,
    float *__restrict__ dbeta_partial,
    long long M) {
    constexpr int N = 4096;
    constexpr int threads_per_row = 256, teams = 2, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row
    const int first = member * vec;
    __shared__ float scratch[teams][2][2 * (threads_per_row / 32)];
    int turn = 0;
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma, first, N);

    float dgamma_sum[tiles][vec] = {};
    float dbeta_sum[tiles][vec] = {};
    const long long first_row = (long long)blockIdx.x * teams + team, row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 3;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
        vector<bf16, vec> dy[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first, N);
            fetch_row<step>(into.dy, dy + row * dy_M, first, N);
        }
        fetch_commit();
    };
    int stage = 1;    // the loop begins early, to fill the ring; the first row has stage 0
    long long next = first_row;
    float mean_next = arrived(next < M ? (float)mean[next] : 0);
    float rstd_next = arrived(next < M ? (float)rstd[next] : 0);
    #pragma unroll 1
    for (long long row = first_row - row_step * (stages - 1); row < M; row += row_step) {
        const Stage &now = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], row + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (row < first_row)
            continue;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        const float mean_ = mean_next;
        const float rstd_ = rstd_next;
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, now.x);
        vector<bf16, vec> dy_v[tiles];
        read_row(dy_v, now.dy);
        float c1 = 0;
        float c2 = 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                c1 += wdy * xhat;
                c2 += wdy;
                dgamma_sum[t][i] += dy_ * xhat;
                dbeta_sum[t][i] += dy_;
            }
        }
        next += row_step;
        mean_next = next < M ? (float)mean[next] : 0;
        rstd_next = next < M ? (float)rstd[next] : 0;
        row_reduce<threads_per_row>(scratch, turn, sum_of(c1), sum_of(c2));
        c1 /= N;
        c2 /= N;

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first + t * step;
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                dx_out[i] = (wdy - xhat * c1 - c2) * rstd_;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
    }

    let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done
    // what the teams have summed meets where the ring was: all its copies have been waited for
    struct Sums {
        alignas(16) float dgamma_sum[teams][tiles * step];
        alignas(16) float dbeta_sum[teams][tiles * step];
    };
    Sums &sums = *(Sums *)smem;
    __syncthreads();
    leave_sums<Sum>(sums.dgamma_sum, dgamma_sum);
    leave_sums<Sum>(sums.dbeta_sum, dbeta_sum);
    __syncthreads();
    store_sums<threads, vec, Sum>(dgamma_partial + blockIdx.x * (long long)N, sums.dgamma_sum, N);
    store_sums<threads, vec, Sum>(dbeta_partial + blockIdx.x * (long long)N, sums.dbeta_sum, N);
}

// layernorm_bwd_finish (finish), from layernorm_bwd.fuse:9-27
//   dgamma = sum[M](dy * xhat), from the partials
//   dbeta = sum[M](dy), from the partials
// layernorm_bwd left a partial for each of its CTAs. Here a CTA has up to 32 columns; the 32 threads of a
// column take its partials in turn, and then meet.
// Launch 2 of 2: grid (ceil(N / 32), 1), block 1024, 115840 bytes of dynamic shared memory.
// None of it is used: it keeps an SM to 1 CTA.
// (0 is right as well, and slower where programmatic stream serialization lets CTAs in early: they crowd on the first free SMs.)
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dgamma_partial: workspace, one for each of the gridDim.x CTAs of layernorm_bwd: N of f32
// dbeta_partial: workspace, one for each of the gridDim.x CTAs of layernorm_bwd: N of f32
// partials: how many there are, min(ceil(M / 2), 132)
extern "C" __global__ __launch_bounds__(1024)
void layernorm_bwd_finish(
    const float *__restrict__ dgamma_partial,
    const float *__restrict__ dbeta_partial,
    bf16 *__restrict__ dgamma,
    bf16 *__restrict__ dbeta,
    int partials) {
    constexpr int N = 4096, width = 32, slices = 32, batch = 5;
    __shared__ float scratch[2][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float dgamma_sum = 0;
    float dbeta_sum = 0;
    if (col < N) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)N + col;
                    dgamma_sum += dgamma_partial[item];
                    dbeta_sum += dbeta_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(dgamma_sum), sum_of(dbeta_sum));
    if (slice == 0 && col < N) {
        dgamma[col] = as<bf16>(dgamma_sum);
        dbeta[col] = as<bf16>(dbeta_sum);
    }
}
