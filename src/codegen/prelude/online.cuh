//: online.cuh: a maximum and the sum of exponentials about it, in one pass.
//@ exp2_flush
// 2^x in one instruction, 4 units of 2^-24 off; where it is below 2^-126, 0
DEVICE float exp2_flush(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

//@ quick_exp
// exp of a rounded difference, as exact as the difference is: it loses 9 + 2.4 |x| in units of 2^-24.
// The square of exp(x / 2) is right below 2^-126 too.
DEVICE float quick_exp(float x)
{
    const float root = exp2_flush(x * 0.72134752f);
    return root * root;
}

//@ warp_max
// The largest of a warp's values, which max_nan has made: so a NaN is positive and wins. Integers
// that order like floats have an instruction for it.
DEVICE float warp_max(float x)
{
    const int bits = __float_as_int(x), key = bits ^ (bits >> 31 & 0x7fffffff);
    int top;
    asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(top) : "r"(key));
    return __int_as_float(top ^ (top >> 31 & 0x7fffffff));
}

//@ exp_flush
DEVICE float exp_flush(float x) { return exp2_flush(x * 1.442695041f); }

//@ Online online_of online_base online_move online_end
// The largest of a row's values and the sum of exp(value - largest) in one go: when the largest
// changes, one factor moves the sum.
struct Online {
    float &largest, &sum;
};
DEVICE Online online_of(float &largest, float &sum) { return {largest, sum}; }
// finite where nothing but -infinity was seen, so that a masked element adds 0
DEVICE float online_base(float largest) { return fmaxf(largest, -3.402823466e38f); }
DEVICE void online_move(Online r, float largest)
{
    r.sum *= exp_flush(online_base(r.largest) - online_base(largest));
    r.largest = largest;
}
// makes the sum NaN where the largest is infinite, else adds 0
DEVICE void online_end(float largest, float &sum) { sum += largest - largest; }
template <int lanes> DEVICE void lane_reduce(Online r)
{
    float top = r.largest;
    if constexpr (lanes == 32)
        top = warp_max(top);
    else
        lane_reduce<lanes>(max_of(top));
    online_move(r, top);
    lane_reduce<lanes>(sum_of(r.sum));
}

//@ online_end_at
// the same where a number is subtracted in place of the largest: of one that is -infinity (low), or infinity (high)
template <bool low, bool high> DEVICE void online_end_at(float largest, float &sum)
{
    if (low && largest == -infinity())
        sum = 0;
    else if (high && largest == infinity())
        sum = infinity();
    else
        online_end(largest, sum);
}

//@ online_add
// joins some of a thread's values to what it has
template <int n> DEVICE void online_add(float &largest, float &sum, const float (&values)[n])
{
    float top = largest;
    #pragma unroll
    for (int i = 0; i < n; i++)
        top = max_nan(top, values[i]);
    online_move({largest, sum}, top);
    const float base = online_base(top);
    #pragma unroll
    for (int i = 0; i < n; i++)
        sum += exp_flush(values[i] - base);
}

//@ online_stream online_settle
// The same for a row in many pieces, where a factor for every rise would add up its errors: until
// online_settle the sum is that for the largest rounded up to an integer, which moves by 1 or more.
template <int n> DEVICE void online_stream(float &largest, float &sum, const float (&values)[n])
{
    float base = ceilf(largest), top = largest;
    #pragma unroll
    for (int i = 0; i < n; i++)
        top = max_nan(top, values[i]);
    online_move({base, sum}, ceilf(top));
    #pragma unroll
    for (int i = 0; i < n; i++)
        sum += exp_flush(values[i] - online_base(base));
    largest = top;
}
DEVICE void online_settle(float largest, float &sum)
{
    float base = ceilf(largest);
    online_move({base, sum}, largest);
}

//@ Online+put_slot
template <int stride, class S> DEVICE void put_slot(S *&slot, bool writes, Online r)
{
    put_slot<stride>(slot, writes, max_of(r.largest));
    put_slot<stride>(slot, writes, sum_of(r.sum));
}

//@ Online+combine_slots
// A lane takes a slot, then lanes meet. Where there are fewer slots than lanes, several take the same.
template <int count, class S> DEVICE void combine_slots(const S *&slots, Online r)
{
    constexpr int lanes = count > 16 ? 32 : count > 8 ? 16 : count > 4 ? 8 : count > 2 ? 4 : 2;
    const int lane = threadIdx.x % lanes;
    r.largest = lane < count ? *(const float *)(slots + lane) : -infinity();
    r.sum = lane < count ? *(const float *)(slots + count + lane) : 0;
    lane_reduce<lanes>(r);
    slots += 2 * count;
}

