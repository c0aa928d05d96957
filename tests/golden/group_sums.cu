// graph adaln_bwd, for sm_90a; the comment above each kernel says how to launch it
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

// item = outer * size + inner
template <class T> DEVICE void split(long long item, long long size, long long &outer, T &inner)
{
    if ((unsigned long long)(item | size) >> 32 == 0)    // 32-bit division is several times faster
        outer = (unsigned)item / (unsigned)size;
    else
        outer = item / size;
    inner = (T)(item - outer * size);
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

// Of so many items: the first, and the count, of those that this CTA has, where the CTAs along x have as many each, some
// one more. (A count beyond an int would take hours.)
DEVICE void share_out(long long items, long long &first, int &count)
{
    long long each, over;
    split(items, gridDim.x, each, over);
    first = each * blockIdx.x + (blockIdx.x < over ? blockIdx.x : over);
    count = (int)each + (blockIdx.x < over);
}

// from a part of a group to the next, which may be the first of the next group
DEVICE void next_part(long long &group, int &part, int parts)
{
    if (++part == parts) {
        part = 0;
        group++;
    }
}

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

// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// the kernel behind this one in the stream may get ready, where there is room; it waits by itself for what this one writes
DEVICE void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

#endif

// adaln_bwd (column), from group_sums.fuse:2-8
//   dshift = sum[T](dy)
//   dscale = sum[T](dy * xhat)
// The rows of one B are a group, and a group is in parts. A CTA walks the rows of its parts, 5 at a time, and
// leaves the sums of each. Alone with whole groups it adds them as the finish kernel would, and stores
// the results. 96 threads share a row.
// A thread has 8 neighbouring columns in each of 2 tiles, the last not full.
// Launch 1 of 2: grid (min(alone ? B : B * parts, 132), 1), block 480, 184320 bytes of dynamic shared memory.
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// Strides, dy_B and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dshift_partial: workspace, parts * min(B, 1056) * C of f32
// dscale_partial: workspace, parts * min(B, 1056) * C of f32
// parts: of a group, the first of 132, 66, 44, 33 that leaves 56 rows a part or more; else min(ceil(T / 64), 132)
// alone: whether each CTA has whole groups: parts == 1 or (132 - B % 132) % 132 <= B / 8
extern "C" __global__ __launch_bounds__(480, 1)
void adaln_bwd(
    const bf16 *__restrict__ dy, long long dy_B, long long dy_T,
    const bf16 *__restrict__ xhat, long long xhat_B, long long xhat_T,
    float *__restrict__ dshift, long long dshift_B,
    float *__restrict__ dscale, long long dscale_B,
    float *__restrict__ dshift_partial,
    float *__restrict__ dscale_partial,
    long long B, long long T,
    int parts,
    int alone) {
    constexpr int C = 1152;
    constexpr int threads_per_row = 96, teams = 5, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row, member = threadIdx.x % threads_per_row;    // of the threads that share a row
    const int first = member * vec;

    constexpr int chunk = 16;    // so many parts are added, then chunks
    // the CTAs share out the parts of all groups, or, alone, whole groups: this one has `count` parts
    long long group;
    int part = 0, count;
    if (alone) {
        share_out(B, group, count);
        count *= parts;
    } else {
        long long first_part;
        share_out(B * parts, first_part, count);
        split(first_part, parts, group, part);
    }
    const long long row_step = (long long)parts * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 4;
    struct Stage {
        vector<bf16, vec> dy[tiles][threads];
        vector<bf16, vec> xhat[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    // the row that is copied next, and how many parts are left from its own on
    long long ahead_group = group;
    int ahead_part = part, left = count;
    long long ahead_row = ahead_part * teams + team - row_step;
    const auto fetch = [&](Stage &into) {
        ahead_row += row_step;
        while (left > 0 && ahead_row >= T) {
            next_part(ahead_group, ahead_part, parts);    // until one has a row for this team
            ahead_row = ahead_part * teams + team;
            left--;
        }
        if (left > 0) {
            const long long group = ahead_group, row = ahead_row;
            fetch_row<step>(into.dy, dy + group * dy_B + row * dy_T, first, C);
            fetch_row<step>(into.xhat, xhat + group * xhat_B + row * xhat_T, first, C);
        }
        fetch_commit();
    };
    int stage = 0;
    #pragma unroll 1
    for (int s = 0; s < stages - 1; s++)
        fetch(ring[s]);
    for (; count > 0; count--) {
        const long long first_row = part * teams + team;
        float dshift_sum[tiles][vec] = {};
        float dscale_sum[tiles][vec] = {};
        #pragma unroll 1
        for (long long row = first_row; row < T; row += row_step) {
            const Stage &now = ring[stage];
            fetch(ring[(stage + stages - 1) % stages]);
            stage = (stage + 1) % stages;
            fetch_wait<stages - 1>();    // a thread reads what it has copied itself
            vector<bf16, vec> dy_v[tiles];
            read_row(dy_v, now.dy);
            vector<bf16, vec> xhat_v[tiles];
            read_row(xhat_v, now.xhat);
            #pragma unroll
            for (int t = 0; t < tiles; t++) {
                const int col = first + t * step;
                #pragma unroll
                for (int i = 0; i < vec; i++) {
                    const float dy_ = dy_v[t][i];
                    const float xhat_ = xhat_v[t][i];
                    if (col < C) {
                        dshift_sum[t][i] += dy_;
                        dscale_sum[t][i] += dy_ * xhat_;
                    }
                }
            }
        }
        if (count == 1) let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done

        // a part's sums go to the workspace; alone, the CTA adds them behind the last
        const long long own = alone ? part * (long long)gridDim.x + blockIdx.x : part * B + group;
        struct Sums {
            alignas(16) float dshift_sum[teams][tiles * step];
            alignas(16) float dscale_sum[teams][tiles * step];
        };
        Sums &sums = *(Sums *)(ring + stages);
        __syncthreads();
        leave_sums<Sum>(sums.dshift_sum, dshift_sum);
        leave_sums<Sum>(sums.dscale_sum, dscale_sum);
        __syncthreads();
        store_sums<threads, vec, Sum>(dshift_partial + own * C, sums.dshift_sum, C);
        store_sums<threads, vec, Sum>(dscale_partial + own * C, sums.dscale_sum, C);
        if (alone && part == parts - 1) {
            __syncthreads();    // all of them are there
            for (int col = threadIdx.x; col < C; col += threads) {
                const float dshift_sum_all = add_parts<Sum, chunk>((float)0, dshift_partial, parts, col, C);
                const float dscale_sum_all = add_parts<Sum, chunk>((float)0, dscale_partial, parts, col, C);
                dshift[group * dshift_B + col] = dshift_sum_all;
                dscale[group * dscale_B + col] = dscale_sum_all;
            }
        }
        next_part(group, part, parts);
    }
}

// adaln_bwd_finish (finish), from group_sums.fuse:2-8
//   dshift = sum[T](dy), from the partials
//   dscale = sum[T](dy * xhat), from the partials
// adaln_bwd left a partial for each part. Here the threads of a column of a group add 16 in their order
// each, and then meet. Not to be launched where the CTAs there were alone with whole groups: they have
// stored the results.
// Launch 2 of 2: grid (ceil((B * C) / 32), 1), block 288, no dynamic shared memory.
// Strides, dshift_B and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dshift_partial: workspace, parts * min(B, 1056) * C of f32
// dscale_partial: workspace, parts * min(B, 1056) * C of f32
// partials: how many there are, the first of 132, 66, 44, 33 that leaves 56 rows a part or more; else min(ceil(T / 64), 132)
extern "C" __global__ __launch_bounds__(288)
void adaln_bwd_finish(
    const float *__restrict__ dshift_partial,
    const float *__restrict__ dscale_partial,
    float *__restrict__ dshift, long long dshift_B,
    float *__restrict__ dscale, long long dscale_B,
    long long B,
    int partials) {
    constexpr int C = 1152, width = 32, slices = 9, threads = width * slices, chunk = 16;
    const int slice = threadIdx.x / width;
    const long long columns = B * C, col = blockIdx.x * (long long)width + threadIdx.x % width;
    wait_for_previous_kernel();

    float dshift_sum[1] = {0};
    float dscale_sum[1] = {0};
    const int begin = slice * chunk, end = begin + chunk < partials ? begin + chunk : partials;
    if (col < columns) {
        #pragma unroll 8
        for (int p = begin; p < end; p++) {
            dshift_sum[0] += dshift_partial[p * columns + col];
            dscale_sum[0] += dscale_partial[p * columns + col];
        }
    }

    __shared__ float scratch[threads];
    team_reduce<threads, width, Sum>(scratch, dshift_sum);
    team_reduce<threads, width, Sum>(scratch, dscale_sum);
    if (slice == 0 && col < columns) {
        const long long c = col % C, b = col / C;
        dshift[b * dshift_B + c] = dshift_sum[0];
        dscale[b * dscale_B + c] = dscale_sum[0];
    }
}
