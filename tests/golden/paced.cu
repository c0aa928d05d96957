// graph paced, for sm_90a; the comment above each kernel says how to launch it
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

// waits for a phase that other CTAs of the cluster have ended: what they sent is there then
DEVICE void barrier_wait_cluster(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

// A transaction barrier in shared memory: a phase ends when `count` arrivals and the bytes announced
// with barrier_expect (which is an arrival too) have come; waiters name the phase's parity, 0 first.
DEVICE void barrier_init(unsigned long long &barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void barrier_arrive(unsigned long long &barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)) : "memory");
}

DEVICE void barrier_expect(unsigned long long &barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(bytes) : "memory");
}

DEVICE void barrier_wait(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

// one thread copies 16-byte aligned bytes to shared memory; the barrier counts them as they land
DEVICE void bulk_copy(void *to, const void *from, int bytes, unsigned long long &barrier)
{
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], policy; }"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes),
                    "r"((unsigned)__cvta_generic_to_shared(&barrier)) : "memory");
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

// orders this thread's plain writes to shared memory before later bulk copies to the same place
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

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

// announces the bytes of a row whose copies were all started
DEVICE void copies_end(int bytes, unsigned long long &full)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_expect(full, bytes);
}

// this warp is done with a stage
DEVICE void release(unsigned long long &empty)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(empty);
}

// a vector of a row that copy_row brought
template <int n, class T> DEVICE vector<T, n> vector_at(const T *row, int at)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(row + at));
    return v;
}

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

// how many values a reduction sends
template <class R> constexpr int width_of = 1;

// an integer travels as the bits of a double
template <int stride, class S, template <class> class R, class T>
DEVICE void send_slot(S *&twin, R<T> r, unsigned long long &barrier)
{
    S bits;
    *(T *)&bits = r.value;
    send_value(twin, bits, barrier, threadIdx.x);
    twin += stride;
}

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

// Reduces each variable over a row that a whole cluster shares: each CTA tells all of them, itself as well, its result.
template <int threads, class S, int slots, int values, int cluster, class... R>
DEVICE void cluster_reduce(S (&scratch)[1][2][slots], Exchange<S, values, cluster> &x, int &round, R... r)
{
    int turn = round & 1, sent = round;    // as many rounds are sent as are collected
    row_reduce<threads>(scratch, turn, r...);
    cluster_send(x, sent, r...);
    cluster_collect(x, round, r...);
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

// paced (warp-specialized), from paced.fuse:3-21
//   dx = (wdy - xhat * c1 - c2) * rstd
//   dgamma = sum[M](dy * xhat), this cluster's rows
//   dbeta = sum[M](dy), this cluster's rows
// where
//   xhat = (x - mean) * rstd
//   wdy = dy * gamma
//   c1 = mean[N](wdy * xhat)
//   c2 = mean[N](wdy)
// A cluster of 2 CTAs walks rows blockIdx.x / 2, + gridDim.x / 2, ... and keeps its sums; each CTA has a slice of
// the columns, its 256 threads share it.
// A thread has 8 neighbouring columns in each of 3 tiles.
// Launch 1 of 2: grid (2 * min(M, 66), 1), cluster 2 (an attribute of the launch), block 288, 98304 bytes of dynamic shared memory.
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dgamma_partial: workspace, one for each cluster of paced: N of f32
// dbeta_partial: workspace, one for each cluster of paced: N of f32
// interval: ns from one row that a cluster asks for to its next. 0, each as soon as there is room, is always right;
// for twice the data that L2 holds, or more, 73736 * min(M, 66) / (0.92 * bytes that memory moves in a ns by its clock) is faster.
extern "C" __global__ __launch_bounds__(288, 1)
void paced(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    const bf16 *__restrict__ gamma,
    const float *__restrict__ mean,
    const float *__restrict__ rstd,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dgamma_partial,
    float *__restrict__ dbeta_partial,
    long long M,
    unsigned interval) {
    constexpr int N = 12288;
    constexpr int cluster = 2, slice = 6144;    // CTAs that share a row, columns of each
    constexpr int threads = 256;
    constexpr int vec = 8, tiles = 3, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    const int begin = blockIdx.x % cluster * slice;
    const int local = member * vec, first = begin + local;
    __shared__ float scratch[1][2][2 * (threads / 32)];
    __shared__ Exchange<float, 2, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);
    const long long first_row = blockIdx.x / cluster, row_step = gridDim.x / cluster;

    // one warp copies rows into a ring of stages, the others compute
    constexpr int stages = 4;
    struct Stage {
        alignas(128) bf16 x[slice];
        alignas(128) bf16 dy[slice];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    __shared__ unsigned long long full[stages], empty[stages];
    if (threadIdx.x < stages) {
        barrier_init(full[threadIdx.x], 1);
        barrier_init(empty[threadIdx.x], threads / 32);
    }
    __syncthreads();
    if (threadIdx.x >= threads) {
        int stage = 0, parity = 1;    // the first time round, every stage is empty
        unsigned due = clock_ns();    // when the next row may be asked for
        for (long long row = first_row; row < M; row += row_step) {
            Stage &into = ring[stage];
            barrier_wait(empty[stage], parity);
            keep_pace(due, interval);
            int bytes = 0;
            bytes += copy_row<vec>(into.x, x + row * x_M + begin, slice, full[stage]);
            bytes += copy_row<vec>(into.dy, dy + row * dy_M + begin, slice, full[stage]);
            copies_end(bytes, full[stage]);
            if (++stage == stages) {
                stage = 0;
                parity ^= 1;
            }
        }
        cluster_wait();    // as the others do before they first send
        return;
    }
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma + begin, local, slice);

    float dgamma_sum[tiles][vec] = {};
    float dbeta_sum[tiles][vec] = {};
    int stage = 0, parity = 0;
    long long next = first_row;
    float mean_next = arrived(next < M ? (float)mean[next] : 0);
    float rstd_next = arrived(next < M ? (float)rstd[next] : 0);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        barrier_wait(full[stage], parity);
        const Stage &now = ring[stage];
        const float mean_ = mean_next;
        const float rstd_ = rstd_next;
        float c1 = 0;
        float c2 = 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const packed<bf16, vec> x_v = vector_at<vec>(now.x, local + t * step);
            const packed<bf16, vec> dy_v = vector_at<vec>(now.dy, local + t * step);
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
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
        cluster_reduce<threads>(scratch, exchange, round, sum_of(c1), sum_of(c2));
        c1 /= N;
        c2 /= N;

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first + t * step;
            const packed<bf16, vec> x_v = vector_at<vec>(now.x, local + t * step);
            const packed<bf16, vec> dy_v = vector_at<vec>(now.dy, local + t * step);
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                dx_out[i] = (wdy - xhat * c1 - c2) * rstd_;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
        release(empty[stage]);
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    let_next_kernel_start();    // whose wait_for_previous_kernel() holds it until all of this one is done
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        store_aligned(dgamma_partial + blockIdx.x / cluster * (long long)N, first + t * step, dgamma_sum[t], N);
        store_aligned(dbeta_partial + blockIdx.x / cluster * (long long)N, first + t * step, dbeta_sum[t], N);
    }
}

// paced_finish (finish), from paced.fuse:3-21
//   dgamma = sum[M](dy * xhat), from the partials
//   dbeta = sum[M](dy), from the partials
// paced left a partial for each of its clusters. Here a CTA has up to 32 columns; the 16 threads of a
// column take its partials in turn, and then meet.
// Launch 2 of 2: grid (ceil(N / 32), 1), block 512, no dynamic shared memory.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
// dgamma_partial: workspace, one for each cluster of paced: N of f32
// dbeta_partial: workspace, one for each cluster of paced: N of f32
// partials: how many there are, min(M, 66)
extern "C" __global__ __launch_bounds__(512)
void paced_finish(
    const float *__restrict__ dgamma_partial,
    const float *__restrict__ dbeta_partial,
    bf16 *__restrict__ dgamma,
    bf16 *__restrict__ dbeta,
    int partials) {
    constexpr int N = 12288, width = 32, slices = 16, batch = 5;
    __shared__ float scratch[2][16 * width];
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
