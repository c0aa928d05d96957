//: ring.cuh: rows of a ring: their place in a line, their copies, their release.
//@ async_fence
// orders this thread's plain writes to shared memory before later bulk copies to the same place
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@ line_up
// Where a row starts in a buffer that is 128 bytes longer: at about the place of 128 bytes that it has in memory,
// to a multiple of 16. Bulk copies between different places read a quarter more from L2.
template <class T, int size> DEVICE T *line_up(T (&buffer)[size], const void *row)
{
    return (T *)((const char *)buffer + (unsigned long long)row % 128 / 16 * 16);
}

//@ lines line_place
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

//@ async_block
// starts the copy of a block of 16 bytes, or of the `bytes` at its beginning if they are fewer
DEVICE void async_block(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes < 16 ? bytes : 16), "l"(l2_policy(kept_in_l2())) : "memory");
}

//@ fetch_lines
// Starts the copies of a row by the threads that share it, block by block, whoever's elements a block has: a barrier
// must stand between the wait for them and the first read. Up to 15 bytes before a row are read, none behind it.
template <int threads, int n, class T, int size>
DEVICE void fetch_lines(lines<T, size> &to, const T *row, int count)
{
    constexpr int blocks = (size * sizeof(T) + 15 + 15) / 16, passes = (blocks + threads - 1) / threads;
    const int lane = threadIdx.x % threads;
    if (misalignment<n>(row) == 0) {
        const int before = (int)((unsigned long long)row % 16), bytes = before + count * (int)sizeof(T);
        char *const into = (char *)(to.data + line_place<16 / sizeof(T)>(row));
        #pragma unroll
        for (int k = 0; k < passes; k++) {
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

//@ vector_in
// the vector of n elements from `at` on of a row that fetch_lines brought
template <int n, class T, int size> DEVICE vector<T, n> vector_in(const lines<T, size> &from, int at, const T *row)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(from.data + line_place<n>(row) + at));
    return v;
}

//@ read_lines
// this thread's part of such a row; anything behind the row's end
template <int step, class T, int n, int tiles, int size>
DEVICE void read_lines(vector<T, n> (&v)[tiles], const lines<T, size> &from, const T *row, int first_column)
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t] = vector_in<n>(from, first_column + t * step, row);
}

//@ copy_row
// The copy warp's part of a row that is a multiple of 16 bytes long: one bulk copy, or vector by vector where
// it does not start on such a multiple. Returns how many bytes are still to land.
template <int n, class L2 = kept_in_l2, class T> DEVICE int copy_row(T *to, const T *row, int count, unsigned long long &full)
{
    const int lane = threadIdx.x % 32, bytes = count * (int)sizeof(T);
    if (((unsigned long long)row | bytes) % 16 == 0) {
        if (lane == 0 && count > 0)
            bulk_copy<L2>(to, row, bytes, full);
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

//@ copy_shifted
// The same for rows that are no multiple of 128 bytes, and so start anywhere in a line.
template <int n, class L2 = kept_in_l2, class T, int size>
DEVICE int copy_shifted(T (&to)[size], const T *row, int count, unsigned long long &full)
{
    return copy_row<n, L2>(line_up(to, row), row, count, full);
}

//@ copy_blocks
// The copy warp's part of any row: one bulk copy of the aligned 16-byte blocks that it touches. So up to 15 bytes
// before and after a row are read, never more than the block that its own bytes are in.
template <class L2 = kept_in_l2, class T, int size>
DEVICE int copy_blocks(T (&to)[size], const T *row, int count, unsigned long long &full)
{
    const int before = (int)((unsigned long long)row % 16);
    const int bytes = (before + count * (int)sizeof(T) + 15) / 16 * 16;
    if (threadIdx.x % 32 == 0 && count > 0)
        bulk_copy<L2>(line_up(to, row), (const char *)row - before, bytes, full);
    return count > 0 ? bytes : 0;
}

//@ copies_end
// announces the bytes of a row whose copies were all started
DEVICE void copies_end(int bytes, unsigned long long &full)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_expect(full, bytes);
}

//@ release
// this warp is done with a stage
DEVICE void release(unsigned long long &empty)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(empty);
}

//@ elements_at
// n elements of a row whose blocks were copied, from the slice's element `at` on
template <int n, class T, int size> DEVICE vector<T, n> elements_at(const T (&buffer)[size], int at, const T *row)
{
    const T *from = line_up(buffer, row) + at + (unsigned long long)row % 16 / sizeof(T);
    vector<T, n> v;
    #pragma unroll
    for (int i = 0; i < n; i++)
        v[i] = from[i];
    return v;
}

//@ vector_at
// a vector of a row that copy_row brought
template <int n, class T> DEVICE vector<T, n> vector_at(const T *row, int at)
{
    vector<T, n> v;
    copy_vector(&v, (const vector<T, n> *)(row + at));
    return v;
}

//@ shifted_at
// a vector of a row that copy_shifted brought
template <int n, class T, int size> DEVICE vector<T, n> shifted_at(const T (&buffer)[size], int at, const T *row)
{
    return vector_at<n>(line_up(buffer, row), at);
}

