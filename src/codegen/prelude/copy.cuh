//: copy.cuh: asynchronous copies to shared memory (cp.async).
//@ shared_address
// Where a copy that has a policy for L2 goes to. No address has the highest bit; without this ptxas 13.0 may split the
// address between two kinds of registers, and encodes such a copy in a way that the GPU refuses.
DEVICE unsigned shared_address(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared) & 0x7fffffff; }

//@ async_copy fetch_commit fetch_wait
// copies to shared memory that go on while the thread computes; it waits for its own, in order
template <int bytes, class L2 = kept_in_l2> DEVICE void async_copy(void *to, const void *from)
{
    const unsigned at = shared_address(to);
    const unsigned long long policy = l2_policy(L2());
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
            :: "r"(at), "l"(from), "l"(policy) : "memory");
    else
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;"
            :: "r"(at), "l"(from), "n"(bytes), "l"(policy) : "memory");
}
DEVICE void fetch_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// until all but the newest `left` groups have landed
template <int left> DEVICE void fetch_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory"); }

//@ fetch_row
// starts the copies of this thread's part of a row into its part of a buffer
template <int step, class L2 = kept_in_l2, class T, int n, int tiles, int threads>
DEVICE void fetch_row(vector<T, n> (&buffer)[tiles][threads], const T *row, int first_column, int size)
{
    constexpr int bytes = sizeof(T) * n, piece = bytes < 16 ? bytes : 16;
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                #pragma unroll
                for (int k = 0; k < bytes; k += piece)
                    async_copy<piece, L2>((char *)&buffer[t][threadIdx.x] + k, (const char *)(row + first_column + t * step) + k);
    } else {
        #pragma unroll 1
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                load_words(buffer[t][threadIdx.x], row + first_column + t * step);
    }
}

//@ fetch_vector
// starts the copy of n elements, where any are left
template <class L2 = kept_in_l2, class T, int n> DEVICE void fetch_vector(vector<T, n> &to, const T *from, int left)
{
    constexpr int bytes = sizeof(T) * n, piece = bytes < 16 ? bytes : 16;
    if (left <= 0)
        return;
    if (misalignment<n>(from) == 0)
        #pragma unroll
        for (int k = 0; k < bytes; k += piece)
            async_copy<piece, L2>((char *)&to + k, (const char *)from + k);
    else
        load_words(to, from);
}

//@ fetch_element
// starts the copy of an element that all threads of a warp read: the first copies it for all
template <class T, int warps> DEVICE void fetch_element(T (&buffer)[warps], const T *from)
{
    if (threadIdx.x % 32 == 0)
        async_copy<sizeof(T)>(&buffer[threadIdx.x / 32], from);
}

//@ arrived
// v, once its load has landed. Compilers wait for a load where its value is first used. If that is in a loop behind the
// load, every pass waits there, for younger loads too. So v is used here, by an xor with 0 that no compiler sees to
// be 0: every launch has gridDim.z 1.
template <class T> DEVICE T arrived(T v)
{
    *(unsigned *)&v ^= gridDim.z - 1;
    return v;
}

//@ read_row
template <class T, int n, int tiles, int threads>
DEVICE void read_row(vector<T, n> (&v)[tiles], const vector<T, n> (&buffer)[tiles][threads])
{
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        copy_vector(&v[t], &buffer[t][threadIdx.x]);
}

