// graph asked_slices, for sm_90a; the comment above each kernel says how to launch it
#ifndef FUSEC_SIM    // the simulator brings helpers of its own

#define DEVICE static __device__ __forceinline__ __attribute__((unused))

// constants that C has no literal for
DEVICE float infinity() { return __int_as_float(0x7f800000); }

// to_storage(value, (T *)0) is the value rounded or saturated to what T stores
template <class T> DEVICE T to_storage(T x, T *) { return x; }    // it is already

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
        keep_branch<T>(true, n);
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

// Where a row starts in a buffer that is 128 bytes longer: at about the place of 128 bytes that it has in memory,
// to a multiple of 16. Bulk copies between different places read a quarter more from L2.
template <class T, int size> DEVICE T *line_up(T (&buffer)[size], const void *row)
{
    return (T *)((const char *)buffer + (unsigned long long)row % 128 / 16 * 16);
}

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

// The same for rows that are no multiple of 128 bytes, and so start anywhere in a line.
template <int n, class T, int size>
DEVICE int copy_shifted(T (&to)[size], const T *row, int count, unsigned long long &full)
{
    return copy_row<n>(line_up(to, row), row, count, full);
}

// announces the bytes of a row whose copies were all started
DEVICE void copies_end(int bytes, unsigned long long &full)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_expect(full, bytes);
}

// a vector of a row that copy_row brought
template <int n, class T> DEVICE vector<T, n> vector_at(const T *row, int at)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(row + at));
    return v;
}

// a vector of a row that copy_shifted brought
template <int n, class T, int size> DEVICE vector<T, n> shifted_at(const T (&buffer)[size], int at, const T *row)
{
    return vector_at<n>(line_up(buffer, row), at);
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

template <> constexpr int width_of<Moments> = 4;

// an integer travels as the bits of a double
template <int stride, class S, template <class> class R, class T>
DEVICE void send_slot(S *&twin, R<T> r, unsigned long long &barrier)
{
    S bits;
    *(T *)&bits = r.value;
    send_value(twin, bits, barrier, threadIdx.x);
    twin += stride;
}

template <int stride, class S> DEVICE void send_slot(S *&twin, Moments r, unsigned long long &barrier)
{
    send_slot<stride>(twin, sum_of(r.sum), barrier);
    send_slot<stride>(twin, sum_of(r.squares), barrier);
    send_slot<stride>(twin, sum_of(r.shift), barrier);
    send_slot<stride>(twin, sum_of(r.seen), barrier);
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

// has L2 fetch n elements from `columns` on, a line of memory for each thread (of the last line perhaps nothing, where the first is not
// whole); it is a hint, nothing waits for it
template <int threads, class T> DEVICE void ask_for_columns(const T *columns, int n)
{
    constexpr int line = 128 / sizeof(T);
    #pragma unroll 1
    for (int at = threadIdx.x * line; at < n; at += threads * line)
        asm volatile("prefetch.global.L2 [%0];" :: "l"(columns + at));
}

#endif

// asked_slices (row), from asked_slices.fuse:3-14
//   y = (x - mean) * rstd * gamma + beta
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
// A cluster of 4 CTAs has row blockIdx.x / 4; each CTA has a slice of the columns, its 512 threads share it.
// A thread has 4 neighbouring columns in each of 7 tiles, the last not full.
// Launch 1 of 1: grid (4 * M, 1), cluster 4 (its own), block 512, 57472 bytes of dynamic shared memory.
// The second number of __launch_bounds__ leaves registers for 3 CTAs an SM.
// So much shared memory wants CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES set first.
// Strides, x_M and the like, are in elements.
// By programmatic stream serialization it may start while the kernel before it ends, and waits by itself; without, that does nothing.
extern "C" __global__ __cluster_dims__(4, 1, 1) __launch_bounds__(512, 3)
void asked_slices(
    const float *__restrict__ x, long long x_M,
    const float *__restrict__ gamma,
    const float *__restrict__ beta,
    float *__restrict__ y, long long y_M,
    float eps) {
    constexpr int N = 50000;
    constexpr int cluster = 4, slice = 12512;    // CTAs that share a row, columns of each
    constexpr int threads = 512;
    constexpr int vec = 4, tiles = 7, step = threads * vec;
    wait_for_previous_kernel();
    const int member = threadIdx.x;
    __builtin_assume(member < threads);
    const int begin = blockIdx.x % cluster * slice;
    const int end = begin + slice < N ? begin + slice : N;
    const int local = member * vec, first = begin + local;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    __shared__ Exchange<float, 4, cluster> exchange;
    int round = 0;    // of the exchange
    const long long row = blockIdx.x / cluster;

    // the row comes to shared memory at once, and stays there
    struct Stage {
        alignas(128) float x[tiles * step + 32];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage &now = *(Stage *)smem;
    __shared__ unsigned long long full;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            barrier_init(full, 1);
        int bytes = 0;
        bytes += copy_shifted<vec>(now.x, x + row * x_M + begin, end - begin, full);
        copies_end(bytes, full);
    }
    exchange_init(exchange);
    __syncthreads();    // the barrier is there for all
    // a later phase reads this tile by tile; so that none waits for memory then, a few CTAs have L2 fetch it now
    if (blockIdx.x < 4 * cluster) {
        ask_for_columns<threads>(gamma + begin, end - begin);
        ask_for_columns<threads>(beta + begin, end - begin);
    }

    barrier_wait(full, 0);
    float mean = 0;
    float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
    float mean_seen = 0, mean_shift = 0;
    #pragma unroll 4
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        const vector<float, vec> x_v = shifted_at<vec>(now.x, local + t * step, x + row * x_M + begin);
        float mean_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            mean_of[i] = x_;
        }
        if (col < end)
            moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
    }
    moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
    // the next phase reads a tile while it computes the one before; this is the first
    vector<float, vec> gamma_next;
    vector<float, vec> beta_next;
    load(gamma_next, gamma, first, end);
    load(beta_next, beta, first, end);
    cluster_reduce<threads>(scratch, exchange, round, moments_of(mean, row_variance, mean_seen, mean_shift));
    mean /= N;
    const float mean_rest = moments_end(mean, mean_shift);
    row_variance /= N;

    const float rstd = rsqrtf(row_variance + eps);
    #pragma unroll 4
    for (int t = 0; t < tiles; t++) {
        const int col = first + t * step;
        const vector<float, vec> gamma_v = gamma_next;
        const vector<float, vec> beta_v = beta_next;
        if (t + 1 < tiles) {
            load(gamma_next, gamma, col + step, end);
            load(beta_next, beta, col + step, end);
        }
        const vector<float, vec> x_v = shifted_at<vec>(now.x, local + t * step, x + row * x_M + begin);
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            const float gamma_ = gamma_v[i];
            const float beta_ = beta_v[i];
            y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_ + beta_;
        }
        store_row(y + row * y_M, col, y_out, end);
    }
}
