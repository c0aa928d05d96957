//: vector.cuh: vectors of neighbouring elements: loads of rows and columns, aligned or not; widening.
//@ split
// item = outer * size + inner
template <class T> DEVICE void split(long long item, long long size, long long &outer, T &inner)
{
    if ((unsigned long long)(item | size) >> 32 == 0)    // 32-bit division is several times faster
        outer = (unsigned)item / (unsigned)size;
    else
        outer = item / size;
    inner = (T)(item - outer * size);
}

//@ advance
// from the coordinates of an item to those of the one `by` places further on
template <int by, class T, class N> DEVICE void advance(T &outer, T &inner, N size)
{
    outer += by / size;
    inner += by % size;
    if (inner >= size) {
        inner -= size;
        outer++;
    }
}

//@ vector
// n neighbouring elements of a row
template <class T, int n> struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) vector {
    T data[n];
    __device__ __forceinline__ T &operator[](int i) { return data[i]; }
    __device__ __forceinline__ const T &operator[](int i) const { return data[i]; }
};

//@ packed
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

//@ copy_vector
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

//@ misalignment
// Bytes by which a row misses the alignment of its vectors. Single elements are always aligned.
template <int n, class T> DEVICE int misalignment(const T *row)
{
    return n == 1 ? 0 : (int)((unsigned long long)row % alignof(vector<T, n>));
}

//@ load_words
// to = from[0 .. n), element by element. It needs no further registers, because the kernels that call it may have none left.
// Nobody may write that memory while the kernel runs: the asm tells the compiler that the value depends on the address alone.
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

//@ keep_branch
// Ends the branch for rows that are not aligned and keeps it a branch. Without this ptxas predicates a short one (up to 16
// loads of 4 bytes) and issues its loads among the aligned ones; all share the six scoreboards by which loads are waited
// for, so that later ones wait for earlier ones: rows were asked for when the weights were there. `all`: every load is done,
// whatever the row's end.
template <class T> DEVICE void keep_branch(bool all, int loads)
{
    if (all && sizeof(T) == 4 && loads <= 16)
        asm volatile("nanosleep.u32 0;");
}

//@ read_again read_last hinted_block
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

//@ kept_in_l2 l2_policy
// What L2 does with the lines of rows that are read. It keeps them, most of them not to be read again: the point is that it
// then evicts written lines first, so they go to memory early and in order. Each access makes the policy anew (volatile), for
// it is a constant to the GPU and would cost two registers.
struct kept_in_l2 {};
DEVICE unsigned long long l2_policy(kept_in_l2)
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

//@ dropped_from_l2
// Or it evicts them first, where a kernel writes little: then it keeps what earlier kernels have written.
struct dropped_from_l2 {};
DEVICE unsigned long long l2_policy(dropped_from_l2)
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

//@ by_policy
// Marks what is loaded from an address. To the compiler, loads from it are ordinary ones.
extern "C" __device__ void *__nv_associate_access_property(const void *, unsigned long long);
template <class L2, class T> DEVICE const T *by_policy(const T *at)
{
    return (const T *)__nv_associate_access_property(at, l2_policy(L2()));
}

//@ read_once
// n elements of a row, from an aligned address; of less than 16 bytes a policy does not pay
template <class L2 = kept_in_l2, class T, int n> DEVICE void read_once(vector<T, n> &v, const T *at)
{
    copy_vector(&v, (const vector<T, n> *)(sizeof(v) < 16 ? at : by_policy<L2>(at)));
}

//@ load
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
        keep_branch<T>(true, n);    //? keep_branch
    }
}

//@ gather
// v = the elements of columns col .. col + n, or anything from `size` on. place_of(column) points to one; `run` lie side by side
template <int run, class T, int n, class C, class F> DEVICE void gather(vector<T, n> &v, C col, C size, F place_of)
{
    if (col >= size)
        return;
    #pragma unroll
    for (int i = 0; i < n; i++)
        v[i] = place_of(col + i / run * run)[i % run];
}

//@ is_aligned
// Whether vectors of n are aligned, from `at` on and as far apart as any of `strides`.
template <int n, class T, class... Strides> DEVICE bool is_aligned(const T *at, Strides... strides)
{
    return misalignment<n>(at) == 0 && (... && (misalignment<n>((const T *)0 + strides) == 0));
}

//@ rows_here
// Of a thread's n rows, `apart` from each other, those that come before the `left` that there are.
template <int n> DEVICE int rows_here(long long left, int apart)
{
    int count = 0;
    #pragma unroll
    for (int i = 0; i < n; i++)
        count += i * apart < left;
    return count;
}

//@ load_some
// v[i] = at[i * apart] for the first `count`, or all; one wide access where all are there, side by side and aligned
template <class T, int n> DEVICE void load_some(vector<T, n> &v, const T *at, int count, int apart)
{
    if (count >= n && apart == 1 && misalignment<n>(at) == 0) {
        read_once(v, at);
    } else {
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (i < count)
                v[i] = at[i * apart];
    }
}

//@ load_span
// Neighbouring rows: v[t] holds n of them, from `at` on, of column first_column + t * step, columns `stride` apart. One wide
// access a column where they are side by side; else they are `apart` from each other, and all rows end after `left`. So that
// no access waits for another then, what is not there is read from the last row, and many are read before the first is packed.
template <int step, int apart, class L2 = kept_in_l2, class T, int n, int tiles>
DEVICE void load_span(vector<T, n> (&v)[tiles], const T *at, long long stride, int first_column, int columns, long long left,
    bool together)
{
    at += first_column * stride;
    if (together) {
        #pragma unroll
        for (int t = 0; t < tiles; t++, at += step * stride)
            if (tiles * step == columns || first_column + t * step < columns)
                read_once<L2>(v[t], at);
    } else {
        constexpr int chunk = 32 / n < tiles ? 32 / n : tiles;
        #pragma unroll
        for (int first = 0; first < tiles; first += chunk) {
            T read[chunk][n];
            #pragma unroll
            for (int c = 0; c < chunk; c++, at += step * stride)
                if (first + c < tiles && (tiles * step == columns || first_column + (first + c) * step < columns))
                    #pragma unroll
                    for (int i = 0; i < n; i++)
                        read[c][i] = at[i * apart < left ? i * apart : (int)left - 1];
            #pragma unroll
            for (int c = 0; c < chunk; c++)
                if (first + c < tiles)
                    #pragma unroll
                    for (int i = 0; i < n; i++)
                        v[first + c][i] = read[c][i];
        }
    }
}

//@ dynamic_smem
// bytes of shared memory that the launch gives each CTA
DEVICE unsigned dynamic_smem()
{
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

//@ load_once
// v = row[col .. col + n), or anything from `size` on, of a row that is read once
template <class L2 = kept_in_l2, class T, int n>
DEVICE void load_once(vector<T, n> &v, const T *row, int col, int size)
{
    if (col >= size)
        return;
    if (misalignment<n>(row) == 0) {
        read_once<L2>(v, row + col);
    } else {
        load_words(v, row + col);
        keep_branch<T>(true, n);    //? keep_branch
    }
}

//@ load_hinted
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

//@ load_row
// a whole row: v[t] holds the n elements from column first_column + t * step on
template <int step, class L2 = kept_in_l2, class T, int n, int tiles>
DEVICE void load_row(vector<T, n> (&v)[tiles], const T *row, int first_column, int size)
{
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                read_once<L2>(v[t], row + first_column + t * step);
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                load_words(v[t], row + first_column + t * step);
        keep_branch<T>(tiles * step == size, tiles * n);    //? keep_branch
    }
}

//@ load_window
// the same, but only vectors with some of the columns first ... last; v[t] of others is anything
template <int step, class T, int n, int tiles>
DEVICE void load_window(vector<T, n> (&v)[tiles], const T *row, int first_column, int first, int last)
{
    if (misalignment<n>(row) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (first_column + t * step <= last && first_column + t * step + n > first)
                read_once(v[t], row + first_column + t * step);
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (first_column + t * step <= last && first_column + t * step + n > first)
                load_words(v[t], row + first_column + t * step);
    }
}

//@ load_columns
// what all rows share: v[t] holds the n elements from column first_column + t * step on
template <int step, class T, int n, int tiles>
DEVICE void load_columns(vector<T, n> (&v)[tiles], const T *columns, int first_column, int size)
{
    if (misalignment<n>(columns) == 0) {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                copy_vector(&v[t], (const vector<T, n> *)(columns + first_column + t * step));
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            if (tiles * step == size || first_column + t * step < size)
                load_words(v[t], columns + first_column + t * step);
        keep_branch<T>(tiles * step == size, tiles * n);    //? keep_branch
    }
}

//@ blocks place_in_block
// Room for n elements of a row that may begin anywhere in a block of 16 bytes. They lie at the same distance from a
// multiple of 16 here as in memory, which takes up to 15 bytes more, so that whole blocks can be copied.
template <class T, int n> struct alignas(16) blocks {
    T data[(n * sizeof(T) + 30) / 16 * 16 / sizeof(T)];
};
// elements between the block's beginning and `at`
template <class T> DEVICE int place_in_block(const T *at) { return (int)((unsigned long long)at % 16 / sizeof(T)); }

//@ move_blocks
// to[0 .. size) = from[0 .. size) by the threads of a team, where both have the same place in a block: whole blocks
// as such, what is before them by the first lanes, what is behind by the last; nothing where size <= 0
template <int threads, int most, bool once, class T> DEVICE void move_blocks(T *to, const T *from, int size)
{
    constexpr int block = 16 / sizeof(T), passes = (most / block + threads - 1) / threads;
    const int lane = threadIdx.x % threads, place = place_in_block(from);
    const int head = place ? block - place : 0, whole = (size - head) / block;
    const int last = head + whole * block + threads - 1 - lane;
    vector<T, block> held[passes];
    #pragma unroll
    for (int k = 0; k < passes; k++)
        if (lane + k * threads < whole)
            if constexpr (once)
                read_once(held[k], from + head + (lane + k * threads) * block);
            else
                copy_vector(&held[k], (const vector<T, block> *)(from + head) + lane + k * threads);
    #pragma unroll
    for (int k = 0; k < passes; k++)
        if (lane + k * threads < whole)
            copy_vector((vector<T, block> *)(to + head) + lane + k * threads, &held[k]);
    if (lane < head && lane < size)
        to[lane] = from[lane];
    if (last < size)
        to[last] = from[last];
}

//@ read_blocks write_blocks
// a row to shared memory and back, by the threads of a team; a barrier must stand between a copy and what threads do with
// their elements there
template <int threads, class T, int n> DEVICE void read_blocks(blocks<T, n> &to, const T *row, int size)
{
    move_blocks<threads, n, true>(to.data + place_in_block(row), row, size);
}
template <int threads, class T, int n> DEVICE void write_blocks(T *row, const blocks<T, n> &from, int size)
{
    move_blocks<threads, n, false>(row, from.data + place_in_block(row), size);
}

//@ from_blocks
// this thread's part of a row that read_blocks has brought; anything behind the row's end
template <int step, class T, int tiles, int n>
DEVICE void from_blocks(vector<T, 1> (&v)[tiles], const blocks<T, n> &from, const T *row, int first_column)
{
    const T *at = from.data + place_in_block(row) + first_column;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        v[t][0] = at[t * step];
}

//@ to_blocks
// a value, rounded to T, to where write_blocks takes row[col] from; there is room behind the row's end
template <class T, int n, class V> DEVICE void to_blocks(blocks<T, n> &to, const T *row, int col, const V (&value)[1])
{
    to.data[place_in_block(row) + col] = as<T>(value[0]);
}

//@ load_aligned
// v = row[col .. col + n), or anything from `size` on, of a row that is read once and known to be aligned
template <class T, int n> DEVICE void load_aligned(vector<T, n> &v, const T *row, int col, int size)
{
    if (col < size)
        read_once(v, row + col);
}

//@ widen_again
// Element i as an f32, by other instructions than a conversion's. Where a row's elements are used before and
// after a reduction, ptxas would keep what it converted, which takes twice the registers.
template <int n> DEVICE float widen_again(const vector<bf16, n> &v, int i)
{
    const unsigned pair = ((const unsigned *)&v)[i / 2];
    float r;
    if (i % 2 == 0)
        asm("prmt.b32 %0, %1, 0, 0x1044;" : "=f"(r) : "r"(pair));
    else
        asm("prmt.b32 %0, %1, 0, 0x3244;" : "=f"(r) : "r"(pair));
    return r;
}

//@ widen_anew
// The same by other instructions again, for every other phase: of two that are alike ptxas would keep all that follows.
template <int n> DEVICE float widen_anew(const vector<bf16, n> &v, int i)
{
    const unsigned pair = ((const unsigned *)&v)[i / 2];
    float r;
    if (i % 2 == 0)
        asm("prmt.b32 %0, 0, %1, 0x5400;" : "=f"(r) : "r"(pair));
    else
        asm("prmt.b32 %0, 0, %1, 0x7600;" : "=f"(r) : "r"(pair));
    return r;
}

//@ widen_half_again
// An f16 of a vector widened, and widened anew wherever this is written: only a conversion can, so of a word that the
// compiler cannot know to be the same, by an xor with 0, for every launch has gridDim.z 1.
template <int n> DEVICE float widen_half_again(const vector<f16, n> &v, int i)
{
    const unsigned pair = ((const unsigned *)&v)[i / 2] ^ (gridDim.z - 1);
    return f16{(unsigned short)(i % 2 == 0 ? pair : pair >> 16)};
}

//@ widen_once
// Element i of f16 as an f32, by a function that the compiler knows: what follows from it and is written again after a
// reduction is computed once. (Assembly, as in `f16`, it may not merge over a barrier.)
extern "C" __device__ float __nv_half2float(unsigned short);
template <int n> DEVICE float widen_once(const vector<f16, n> &v, int i) { return __nv_half2float(v[i].bits); }

//@ widen_by_cvt
// A bf16 as an f32 by a conversion, as f16 has one. Around the shift of an element that may be outside of its row ptxas
// branches, element by element.
DEVICE float widen_by_cvt(bf16 x)
{
    float r;
    asm("cvt.f32.bf16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}

//@ as_column
// Where a number is among the columns of a row, of which there are fewer than 2^31: those before the
// first compare as -1, those from 2^31 on as 2^31 - 1.
DEVICE int as_column(long long n) { return (int)(n < -1 ? -1 : n < 0x7fffffff ? n : 0x7fffffff); }

//@ as_distance
// a number that is compared with sums of places, which are less than 2^61
DEVICE long long as_distance(long long n)
{
    constexpr long long far = 1ll << 62;
    return n < -far ? -far : n < far ? n : far;
}

//@ lesser
DEVICE int lesser(int a, int b) { return a < b ? a : b; }

//@ greater
DEVICE int greater(int a, int b) { return a > b ? a : b; }
