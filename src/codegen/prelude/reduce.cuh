//: reduce.cuh: what is reduced: sums, maxima, products; lanes and slots; divisors.
//@ sum_of Sum
// a variable that is part of a sum
template <class T> struct Sum {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a + b; }
};
template <class T> DEVICE Sum<T> sum_of(T &value) { return {value}; }

//@ sum_of+reductions_of_integers
template <> __device__ __forceinline__ long long Sum<long long>::combine(long long a, long long b) { return wrap_add(a, b); }

//@ max_of Max
// a variable that is part of a maximum
template <class T> struct Max {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return max_nan(a, b); }
};
template <class T> DEVICE Max<T> max_of(T &value) { return {value}; }

//@ min_of Min
// a variable that is part of a minimum
template <class T> struct Min {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return min_nan(a, b); }
};
template <class T> DEVICE Min<T> min_of(T &value) { return {value}; }

//@ prod_of Prod
// a variable that is part of a product
template <class T> struct Prod {
    T &value;
    static __device__ __forceinline__ T combine(T a, T b) { return a * b; }
};
template <class T> DEVICE Prod<T> prod_of(T &value) { return {value}; }

//@ prod_of+reductions_of_integers
template <> __device__ __forceinline__ long long Prod<long long>::combine(long long a, long long b) { return wrap_mul(a, b); }

//@ lane_reduce
// over `lanes` neighbouring lanes (a power of two), every lane gets the result; the tree is fixed
template <int lanes, class R> DEVICE void lane_reduce(R r)
{
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        r.value = R::combine(r.value, __shfl_xor_sync(0xffffffff, r.value, distance));
}

//@ put_slot
// leaves a warp's result in a slot; the next value's slots are `stride` further
template <int stride, class S, template <class> class R, class T>
DEVICE void put_slot(S *&slot, bool writes, R<T> r)
{
    if (writes)
        *(T *)slot = r.value;
    slot += stride;
}

//@ combine_slots
// every thread adds the values in `count` slots, which are `apart`, in the same order
template <int count, int apart = 1, class S, template <class> class R, class T>
DEVICE void combine_slots(const S *&slots, R<T> r)
{
    r.value = *(const T *)slots;
    #pragma unroll
    for (int w = 1; w < count; w++)
        r.value = R<T>::combine(r.value, *(const T *)(slots + w * apart));
    slots += count * apart;
}

//@ Each each_of
// several variables, of parts of a row, that are reduced alike: each_of<Max>(largest)
template <template <class> class R, class T, int n> struct Each {
    T (&values)[n];
};
template <template <class> class R, class T, int n> DEVICE Each<R, T, n> each_of(T (&values)[n]) { return {values}; }
template <int lanes, template <class> class R, class T, int n> DEVICE void lane_reduce(Each<R, T, n> r)
{
    #pragma unroll
    for (int i = 0; i < n; i++)
        lane_reduce<lanes>(R<T>{r.values[i]});
}

//@ Each+put_slot
template <int stride, class S, template <class> class R, class T, int n>
DEVICE void put_slot(S *&slot, bool writes, Each<R, T, n> r)
{
    #pragma unroll
    for (int i = 0; i < n; i++)
        put_slot<stride>(slot, writes, R<T>{r.values[i]});
}

//@ Each+combine_slots
template <int count, int apart = 1, class S, template <class> class R, class T, int n>
DEVICE void combine_slots(const S *&slots, Each<R, T, n> r)
{
    #pragma unroll
    for (int i = 0; i < n; i++)
        combine_slots<count, apart>(slots, R<T>{r.values[i]});
}

//@ quotient
// x / c for a constant c: x times its inverse, and one Newton correction. Rounded like x / c, except where the result
// is subnormal. 0, infinity and NaN need no correction.
DEVICE float quotient(float x, float c)
{
    const float inverse = 1 / c, about = x * inverse, size = fabsf(about);
    return size > 0 && size < infinity() ? fmaf(fmaf(-about, c, x), inverse, about) : about;
}

//@ whole_quotient
// The same of a whole number x, which is neither infinite nor -0, and a constant of at least 1: they need no condition.
DEVICE float whole_quotient(float x, float c)
{
    const float inverse = 1 / c, about = x * inverse;
    return fmaf(fmaf(-about, c, x), inverse, about);
}

//@ Divisor divisor
// A number c that many others are divided by: x / divisor(c) is x times the inverse of c, and one Newton correction.
// Rounded like x / c, except where the result is subnormal. Where c or 1 / c is subnormal or nearly so, both c and x are
// scaled. `scaled` is positive and `scale` has the sign of c, so that a zero gets the sign that x / c has.
struct Divisor {
    float scale, scaled, inverse;    // of x and c; |c| times that; 1 / scaled
};
DEVICE Divisor divisor(float c)
{
    const float size = fabsf(c), scale = size < 0x1p-126f ? 0x1p32f : size > 0x1p126f ? 0x1p-32f : 1;
    return {copysignf(scale, c), size * scale, 1 / (size * scale)};
}
DEVICE float operator/(float x, Divisor by)
{
    const float scaled = x * by.scale, about = scaled * by.inverse, over = fmaf(about, by.scaled, -scaled);
    return fabsf(over) < infinity() ? fmaf(-over, by.inverse, about) : about;    // if x is infinite, over is NaN
}

