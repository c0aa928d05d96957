//: store.cuh: stores of vectors and rows.
//@ fill
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
//@ put_word
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

//@ put_elements
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

//@ put_vector
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

//@ put_numbers
// v at an aligned address, by numbers of 8 bytes where it has them. Behind a branch the compiler takes
// a plain store apart into words too, and put_vector would cost registers.
template <class T, int n> DEVICE void put_numbers(T *at, const vector<T, n> &v)
{
    if constexpr (sizeof(v) % 8 == 0) {
        const unsigned *w = (const unsigned *)&v;
        #pragma unroll
        for (int k = 0; k < (int)sizeof(v) / 8; k++)
            ((unsigned long long *)at)[k] = w[2 * k] | (unsigned long long)w[2 * k + 1] << 32;
    } else {
        copy_vector((vector<T, n> *)at, &v);
    }
}

//@ store_streamed
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

//@ store_vector
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

//@ store_row
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

//@ scatter
// values, rounded to T, to the elements of columns col .. col + n, nothing from `size` on; as gather, the other way
template <class T, int run, int n, class V, class C, class F>
DEVICE void scatter(const V (&values)[n], C col, C size, F place_of)
{
    vector<T, n> v;
    fill(v, values);
    if (col >= size)
        return;
    #pragma unroll
    for (int i = 0; i < n; i++)
        place_of(col + i / run * run)[i % run] = v[i];
}

//@ store_aligned
// to workspace, whose rows are aligned
template <class T, int n, class V> DEVICE void store_aligned(T *row, int col, const V (&values)[n], int size)
{
    vector<T, n> v;
    fill(v, values);
    if (col < size)
        copy_vector((vector<T, n> *)(row + col), &v);
}

//@ store_some
// at[i * apart] = values[i], rounded to T, for the first `count`
template <class T, int n, class V> DEVICE void store_some(T *at, const V (&values)[n], int count, int apart)
{
    vector<T, n> v;
    fill(v, values);
    if (count >= n && apart == 1 && misalignment<n>(at) == 0) {
        put_numbers(at, v);
    } else {
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (i < count)
                at[i * apart] = v[i];
    }
}

//@ store_span
// Neighbouring rows: as load_span, the other way.
template <int step, int apart, class T, int n, int tiles>
DEVICE void store_span(const vector<T, n> (&v)[tiles], T *at, long long stride, int first_column, int columns, int count,
    bool together)
{
    at += first_column * stride;
    if (together) {
        #pragma unroll
        for (int t = 0; t < tiles; t++, at += step * stride)
            if (tiles * step == columns || first_column + t * step < columns)
                put_numbers(at, v[t]);
    } else {
        #pragma unroll
        for (int t = 0; t < tiles; t++, at += step * stride)
            if (tiles * step == columns || first_column + t * step < columns)
                #pragma unroll
                for (int i = 0; i < n; i++)
                    if (i < count)
                        at[i * apart] = v[t][i];
    }
}
