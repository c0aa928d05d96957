//: sums.cuh: sums over rows: partials, their finish, and launches that overlap.
//@ place_of_sum
// Where a column's accumulator lies in a row that threads write `vec` at a time, in pieces of 16 bytes: so that those that
// are written at once are in different banks.
template <class T, int vec> DEVICE int place_of_sum(int col)
{
    constexpr int unit = 16 / sizeof(T), pieces = vec / unit;
    const int piece = col / unit;
    return pieces > 1 ? (piece ^ piece / 8 % pieces) * unit + col % unit : col;
}

//@ leave_sums
// Each team, the `row_threads` that share a row, writes its accumulators to a row of `left`. Teams that share a warp add
// theirs by shuffles first, and the warp has one row: a writer is a team, or a warp of several.
template <template <class> class R, class T, int writers, int columns, int tiles, int vec>
DEVICE void leave_sums(T (&left)[writers][columns], T (&acc)[tiles][vec])
{
    constexpr int row_threads = columns / (tiles * vec), width = row_threads < 32 ? 32 : row_threads;
    constexpr int n = 16 / sizeof(T) < vec ? 16 / sizeof(T) : vec;
    const int thread_in_row = threadIdx.x % width;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < vec; i += n) {
            vector<T, n> sums;
            #pragma unroll
            for (int k = 0; k < n; k++) {
                sums[k] = acc[t][i + k];
                #pragma unroll
                for (int distance = row_threads; distance < 32; distance *= 2)
                    sums[k] = R<T>::combine(sums[k], __shfl_xor_sync(0xffffffff, sums[k], distance));
            }
            T *at = &left[threadIdx.x / width][place_of_sum<T, vec>((t * row_threads + thread_in_row) * vec + i)];
            if (thread_in_row < row_threads)
                copy_vector((vector<T, n> *)at, &sums);
        }
}

//@ store_sums
// Adds what the teams left, in their order, and stores it: all threads of the CTA, as few columns each as there are.
template <int threads, int vec, template <class> class R, class T, int writers, int columns>
DEVICE void store_sums(T *row, const T (&left)[writers][columns], int size)
{
    constexpr int most = 16 / sizeof(T) < vec ? 16 / sizeof(T) : vec;
    constexpr int n = columns >= most * threads ? most : columns >= 2 * threads && most > 1 ? 2 : 1;
    constexpr int passes = (columns + threads * n - 1) / (threads * n);
    #pragma unroll
    for (int pass = 0; pass < passes; pass++) {
        const int col = (pass * threads + threadIdx.x) * n;
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

//@ team_reduce
// Adds accumulators over the teams of a CTA, in the order of the teams; the first team gets the sum.
// Teams that share a warp meet by shuffles first and are one writer then; scratch holds a tile of each writer, neighbouring
// threads side by side, whose banks then differ.
template <int threads, int row_threads, template <class> class R, class S, class T, int slots, int vec>
DEVICE void team_reduce(S (&scratch)[slots], T (&acc)[vec])
{
    constexpr int width = row_threads < 32 ? 32 : row_threads, writers = threads / width;
    const int writer = threadIdx.x / width, thread_in_row = threadIdx.x % width;
    #pragma unroll
    for (int i = 0; i < vec; i++) {
        #pragma unroll
        for (int distance = row_threads; distance < 32; distance *= 2)
            acc[i] = R<T>::combine(acc[i], __shfl_xor_sync(0xffffffff, acc[i], distance));
        if (thread_in_row < row_threads)
            *(T *)(scratch + (i * writers + writer) * row_threads + thread_in_row) = acc[i];
    }
    __syncthreads();
    if (threadIdx.x < row_threads)
        for (int g = 1; g < writers; g++)
            #pragma unroll
            for (int i = 0; i < vec; i++)
                acc[i] = R<T>::combine(acc[i], *(const T *)(scratch + (i * writers + g) * row_threads + thread_in_row));
    __syncthreads();
}

//@ share_out
// Of so many items: the first, and the count, of those that this CTA has, where the CTAs along x have as many each, some
// one more. (A count beyond an int would take hours.)
DEVICE void share_out(long long items, long long &first_item, int &count)
{
    long long each, over;
    split(items, gridDim.x, each, over);
    first_item = each * blockIdx.x + (blockIdx.x < over ? blockIdx.x : over);
    count = (int)each + (blockIdx.x < over);
}

//@ next_part
// from a part of a group to the next, which may be the first of the next group
DEVICE void next_part(long long &group, int &part, int parts)
{
    if (++part == parts) {
        part = 0;
        group++;
    }
}

//@ sum_of_teams
// Of a column: adds what the teams left, in their order.
template <int vec, template <class> class R, class T, int writers, int columns>
DEVICE T sum_of_teams(T identity, const T (&left)[writers][columns], int col)
{
    const int place = place_of_sum<T, vec>(col);
    T sum = left[0][place];
    #pragma unroll
    for (int g = 1; g < writers; g++)
        sum = R<T>::combine(sum, left[g][place]);
    return R<T>::combine(identity, sum);
}

//@ add_parts
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

//@ wait_for_previous_kernel
// until all that the kernel before this one in the stream wrote is visible
DEVICE void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

//@ ask_for_columns
// has L2 fetch n elements from `columns` on, a line of memory for each thread (of the last line perhaps nothing, where the first is not
// whole); it is a hint, nothing waits for it
template <int threads, class T> DEVICE void ask_for_columns(const T *columns, int n)
{
    constexpr int line = 128 / sizeof(T);
    #pragma unroll 1
    for (int at = threadIdx.x * line; at < n; at += threads * line)
        asm volatile("prefetch.global.L2 [%0];" :: "l"(columns + at));
}

//@ let_next_kernel_start
// the kernel behind this one in the stream may get ready, where there is room; it waits by itself for what this one writes
DEVICE void let_next_kernel_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

//@ slice_reduce leave_slice take_slices
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

//@ span_add
// Adds accumulators over the teams of a CTA whose rows have `lanes` of each of `warps` warps, in a fixed order; the first team
// gets the sum.
template <int lanes, int warps, int threads, template <class> class R, class S, class T, int slots, int n>
DEVICE void span_add(S (&scratch)[slots], T (&acc)[n])
{
    constexpr int groups = threads / (32 * warps), row_threads = lanes * warps;
    const int group = threadIdx.x / (32 * warps);
    const int thread_in_row = threadIdx.x / 32 % warps * lanes + threadIdx.x % lanes;
    #pragma unroll
    for (int i = 0; i < n; i++) {
        #pragma unroll
        for (int distance = lanes; distance < 32; distance *= 2)
            acc[i] = R<T>::combine(acc[i], __shfl_xor_sync(0xffffffff, acc[i], distance));
        if (groups > 1 && threadIdx.x % 32 < lanes)
            *(T *)(scratch + (i * groups + group) * row_threads + thread_in_row) = acc[i];
    }
    if constexpr (groups > 1) {
        __syncthreads();
        if (group == 0)
            #pragma unroll
            for (int g = 1; g < groups; g++)
                #pragma unroll
                for (int i = 0; i < n; i++)
                    acc[i] = R<T>::combine(acc[i], *(const T *)(scratch + (i * groups + g) * row_threads + thread_in_row));
        __syncthreads();
    }
}
