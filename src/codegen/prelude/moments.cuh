//: moments.cuh: a mean and its squares, in one pass.
//@ share_shift
// all lanes take the shift of the first, which has seen values if any has
template <int lanes, class R> DEVICE void share_shift(R r)
{
    const float shift = __shfl_sync(0xffffffff, r.shift, 0, lanes);
    r.sum += r.seen * (r.shift - shift);
    r.shift = shift;
}

//@ Moments moments_of
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

//@ WarpMoments warp_moments_of
// The same where all lanes of a warp have its sum and its count, and each has its own values' squares about the warp's mean.
struct WarpMoments : Moments {};
DEVICE WarpMoments warp_moments_of(float &sum, float &squares, float &seen, float &shift)
{
    return {{sum, squares, seen, shift}};
}
template <int lanes> DEVICE void lane_reduce(WarpMoments r) { lane_reduce<lanes>(sum_of(r.squares)); }

//@ EvenMoments even_moments_of
// The same where all that meet have seen as many: they need no counts from each other, and no divisions.
struct EvenMoments {
    float &sum, &squares, &seen, &shift;
};
DEVICE EvenMoments even_moments_of(float &sum, float &squares, float &seen, float &shift) { return {sum, squares, seen, shift}; }
template <int lanes> DEVICE void lane_reduce(EvenMoments r)
{
    share_shift<lanes>(r);
    #pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const float sum = __shfl_xor_sync(0xffffffff, r.sum, distance), off = sum - r.sum;
        r.squares += __shfl_xor_sync(0xffffffff, r.squares, distance);
        r.squares += off * (off * (0.5f / r.seen));    // the same bits on both sides
        r.sum += sum;
        r.seen *= 2;
    }
}

//@ moments_shift
// x, for distances from it. Infinity and NaN are near nothing; nor need numbers beyond 2^96 be, whose squares are infinite
// unless all are equal.
DEVICE float moments_shift(float x) { return fabsf(x) < 0x1p96f ? x : 0; }

//@ moments_move
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

//@ moments_aim
// The shift is the first of a thread's values, and moves as often as their number doubles: so it is never much farther from
// their mean than they are.
template <class R> DEVICE void moments_aim(R r, float first)
{
    if (r.seen == 0)
        r.shift = moments_shift(first);
    else if ((__float_as_int(r.seen) & 0x7fffff) == 0)    // a power of two
        moments_move(r);
}

//@ moments_add
// Adds some of a row's values to what a thread has: until moments_settle, squares about the shift.
template <class R, int n> DEVICE void moments_add(R r, const float (&values)[n])
{
    moments_aim(r, values[0]);
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

//@ moments_add_some
// The same of the first `count` vectors, if there are as many.
template <class R, int tiles, int n> DEVICE void moments_add_some(R r, const float (&values)[tiles][n], long long count)
{
    moments_aim(r, values[0][0]);
    float more = 0, more_squares = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < n; i++) {
            const float off = t < count ? values[t][i] - r.shift : 0;
            more += off;
            more_squares += off * off;
        }
    r.sum += more;
    r.squares += more_squares;
    r.seen += n * (count < tiles ? (int)count : tiles);
}

//@ moments_settle
// From squares about the shift to squares about the mean. Infinite ones stay so, unless the sum is infinite too: then they are NaN.
template <class R> DEVICE void moments_settle(R r, float inverse)
{
    r.squares -= r.squares < infinity() ? r.sum * (r.sum * inverse) : r.sum - r.sum;
}

//@ Moments+moments_settle
DEVICE void moments_settle(Moments r) { moments_settle(r, quick_inverse(fmaxf(r.seen, 1))); }

//@ EvenMoments+moments_settle
DEVICE void moments_settle(EvenMoments r) { moments_settle(r, 1 / r.seen); }

//@ EachMoments each_moments_of
// The same of n rows, of each of which a thread has seen as many values.
struct RowMoments {    // one of them
    float &sum, &squares, &seen, &shift;
};
template <int n> struct EachMoments {
    float (&sum)[n], (&squares)[n], &seen, (&shift)[n];
    __device__ __forceinline__ RowMoments row(int i) const { return {sum[i], squares[i], seen, shift[i]}; }
};
template <int n>
DEVICE EachMoments<n> each_moments_of(float (&sum)[n], float (&squares)[n], float &seen, float (&shift)[n])
{
    return {sum, squares, seen, shift};
}
template <int lanes, int n> DEVICE void lane_reduce(EachMoments<n> r)
{
    const float count = r.seen, inverse = quick_inverse(fmaxf(count, 1));
    lane_reduce<lanes>(sum_of(r.seen));
    const float inverse_of_all = quick_inverse(fmaxf(r.seen, 1));
    #pragma unroll
    for (int i = 0; i < n; i++) {
        const float shift = __shfl_sync(0xffffffff, r.shift[i], 0, lanes);
        r.sum[i] += count * (r.shift[i] - shift);
        r.shift[i] = shift;
        const float mean = r.sum[i] * inverse;
        lane_reduce<lanes>(sum_of(r.sum[i]));
        const float off = mean - r.sum[i] * inverse_of_all;
        r.squares[i] += off * (off * count);
        lane_reduce<lanes>(sum_of(r.squares[i]));
    }
}

//@ each_moments_add
// moments_add of a value of each of n rows
template <int n> DEVICE void each_moments_add(EachMoments<n> r, const float (&values)[n])
{
    const bool moves = r.seen >= 8 && (__float_as_int(r.seen) & 0x7fffff) == 0;
    if (r.seen == 0)
        #pragma unroll
        for (int i = 0; i < n; i++)
            r.shift[i] = moments_shift(values[i]);
    if (moves)
        #pragma unroll
        for (int i = 0; i < n; i++)
            moments_move(r.row(i));
    #pragma unroll
    for (int i = 0; i < n; i++) {
        const float off = values[i] - r.shift[i];
        r.sum[i] += off;
        r.squares[i] += off * off;
    }
    r.seen += 1;
}

//@ EachMoments+moments_settle
template <int n> DEVICE void moments_settle(EachMoments<n> r)
{
    const float inverse = quick_inverse(fmaxf(r.seen, 1));
    #pragma unroll
    for (int i = 0; i < n; i++)
        moments_settle(r.row(i), inverse);
}

//@ EachMoments+put_slot
template <int stride, class S, int n> DEVICE void put_slot(S *&slot, bool writes, EachMoments<n> r)
{
    #pragma unroll
    for (int i = 0; i < n; i++) {
        put_slot<stride>(slot, writes, sum_of(r.sum[i]));
        put_slot<stride>(slot, writes, sum_of(r.squares[i]));
        put_slot<stride>(slot, writes, sum_of(r.shift[i]));
    }
    put_slot<stride>(slot, writes, sum_of(r.seen));
}

//@ EachMoments+combine_slots
// the distances of all are taken to the shift of the first, which has seen values if any has
template <int count, int apart = 1, class S, int n> DEVICE void combine_slots(const S *&slots, EachMoments<n> r)
{
    constexpr int next = count * apart;
    float seen[count];
    r.seen = 0;
    #pragma unroll
    for (int w = 0; w < count; w++) {
        seen[w] = *(const float *)(slots + 3 * n * next + w * apart);
        r.seen += seen[w];
    }
    const float inverse = quick_inverse(r.seen);
    #pragma unroll
    for (int i = 0; i < n; i++) {
        float sum[count];
        r.shift[i] = *(const float *)(slots + 2 * next);
        r.sum[i] = r.squares[i] = 0;
        #pragma unroll
        for (int w = 0; w < count; w++) {
            sum[w] = *(const float *)(slots + w * apart);
            sum[w] += seen[w] * (*(const float *)(slots + 2 * next + w * apart) - r.shift[i]);
            r.sum[i] += sum[w];
        }
        const float mean = r.sum[i] * inverse;
        #pragma unroll
        for (int w = 0; w < count; w++) {
            const float off = sum[w] * quick_inverse(fmaxf(seen[w], 1)) - mean;
            r.squares[i] += *(const float *)(slots + next + w * apart) + off * (off * seen[w]);
        }
        slots += 3 * next;
    }
    slots += next;
}

//@ moments_end
// from a mean's distance from the shift to the mean, rounded, and what that lacks: none where it is infinite
DEVICE float moments_end(float &mean, float shift)
{
    const float distance = mean;
    mean += shift;
    return fabsf(mean) < infinity() ? shift - mean + distance : 0;
}

//@ moments_take
// all values below `size` that a warp's lanes have of a row: values[t] are the n from column first_column + t * step on, of which
// every lane of every warp has the first `full`
template <int step, int full, int tiles, int n>
DEVICE void moments_take(WarpMoments r, const float (&values)[tiles][n], int first_column, int size)
{
    int vectors = 32 * full;
    #pragma unroll
    for (int t = full; t < tiles; t++)
        vectors += __popc(__ballot_sync(0xffffffff, first_column + t * step < size));
    r.seen = n * vectors;
    r.shift = moments_shift(__shfl_sync(0xffffffff, values[0][0], 0));
    r.sum = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (t < full || first_column + t * step < size)
                r.sum += values[t][i] - r.shift;
    lane_reduce<32>(sum_of(r.sum));
    float mean = r.sum * quick_inverse(fmaxf(r.seen, 1));
    const float rest = moments_end(mean, r.shift);
    const float over = r.seen / 32 * (rest * rest);    // a lane's share, for the squares are about a rounded mean
    r.squares = over < infinity() ? -over : 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < n; i++)
            if (t < full || first_column + t * step < size)
                r.squares += (values[t][i] - mean) * (values[t][i] - mean);
}

//@ Moments+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool writes, Moments r)
{
    put_slot<stride>(slot, writes, sum_of(r.sum));
    put_slot<stride>(slot, writes, sum_of(r.squares));
    put_slot<stride>(slot, writes, sum_of(r.shift));
    put_slot<stride>(slot, writes, sum_of(r.seen));
}

//@ EvenMoments+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool writes, EvenMoments r)
{
    put_slot<stride>(slot, writes, sum_of(r.sum));
    put_slot<stride>(slot, writes, sum_of(r.squares));
    put_slot<stride>(slot, writes, sum_of(r.shift));
}

//@ EvenMoments+combine_slots
template <int count, class S> DEVICE void combine_slots(const S *&slots, EvenMoments r)
{
    const int lane = threadIdx.x % count;
    r.sum = *(const float *)(slots + lane);
    r.squares = *(const float *)(slots + count + lane);
    r.shift = *(const float *)(slots + 2 * count + lane);
    lane_reduce<count>(r);
    slots += 3 * count;
}

//@ Moments+combine_slots
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

