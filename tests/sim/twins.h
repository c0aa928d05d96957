// twins.h: sections `//@ names` that replace the prelude's sections of the same names, which the host
// cannot compile. It is the end of the header that generated texts are compiled after.

// An f32 rounded to nearest even to a float of `fraction` bits whose exponent field is `width` bits.
template <int width, int fraction> static inline unsigned sim_round(float x)
{
    constexpr int bias = (1 << (width - 1)) - 1, infinity = ((1 << width) - 1) << fraction;
    const unsigned sign = __float_as_uint(x) >> 31 << (width + fraction);
    const double size = fabs((double)x);
    if (x != x)
        return (1u << (width + fraction)) - 1;
    if (size >= __builtin_ldexp(1, bias + 1))
        return sign | infinity;
    int exponent = size > 0 ? __builtin_ilogb(size) : 1 - bias;
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    const int steps = (int)rint(__builtin_ldexp(size, fraction - exponent));
    return sign | (unsigned)(((exponent + bias - 1) << fraction) + steps);
}

static inline float sim_half_value(unsigned bits)
{
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? __builtin_nanf("") : __builtin_inff())
                       : exponent     ? __builtin_ldexpf((float)(fraction | 1024), (int)exponent - 25)
                                      : __builtin_ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}

//@ ask_for_columns
template <int threads, class T> static inline void ask_for_columns(const T *columns, int n)
{
    for (int at = threadIdx.x * (128 / (int)sizeof(T)); at < n; at += threads * (128 / (int)sizeof(T)))
        (void)*(const volatile unsigned char *)(columns + at);
}

//@ let_next_kernel_start
SIM_CALL void let_next_kernel_start() {}

//@ wait_for_previous_kernel
SIM_CALL void wait_for_previous_kernel() { sim_link.api->wait_for_previous(sim_link.machine); }

// -0 is below +0
static inline bool sim_negative(float x) { return __float_as_int(x) < 0; }

//@ min_nan
static inline float min_nan(float a, float b)
{
    return a != a || b != b ? __int_as_float(0x7fffffff) : sim_negative(a) > sim_negative(b) || a < b ? a : b;
}

//@ max_nan
static inline float max_nan(float a, float b)
{
    return a != a || b != b ? __int_as_float(0x7fffffff) : sim_negative(a) < sim_negative(b) || a > b ? a : b;
}

//@ whole
// the GPU's conversion saturates, the host's is undefined
template <class T> static inline long long whole(T x)
{
    return x != x                                ? 0
           : x >= T(9223372036854775808.0)       ? 0x7fffffffffffffffLL
           : x < T(-9223372036854775808.0)       ? -0x7fffffffffffffffLL - 1
                                                 : (long long)x;
}

//@ bf16
struct bf16 {
    unsigned short bits;
    __forceinline__ operator float() const { return __int_as_float((int)bits << 16); }
};
static inline bf16 to_storage(float x, bf16 *) { return {(unsigned short)sim_round<8, 7>(x)}; }
static inline void store_pair(bf16 *at, float low, float high)
{
    *(unsigned *)at = sim_round<8, 7>(high) << 16 | sim_round<8, 7>(low);
}

//@ f16
struct f16 {
    unsigned short bits;
    __forceinline__ operator float() const { return sim_half_value(bits); }
};
static inline f16 to_storage(float x, f16 *) { return {(unsigned short)sim_round<5, 10>(x)}; }
static inline void store_pair(f16 *at, float low, float high)
{
    *(unsigned *)at = sim_round<5, 10>(high) << 16 | sim_round<5, 10>(low);
}

//@ put_word
// by elements of `size` bytes, so that the machine judges the accesses that the GPU makes
template <int size> struct SimElement { using type = unsigned; };
template <> struct SimElement<1> { using type = unsigned char; };
template <> struct SimElement<2> { using type = unsigned short; };
template <int size> static inline void put_word(void *at, unsigned word)
{
    using T = typename SimElement<size>::type;
    for (int i = 0; i < 4 / (int)sizeof(T); i++) ((T *)at)[i] = (T)(word >> (8 * (int)sizeof(T) * i));
}

//@ vector
// What no load has set is NaN or -1, not 0 by luck.
template <class T, int n> struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) vector {
    T data[n];
    SIM_PLAIN vector() { __builtin_memset((void *)data, 0xff, sizeof data); }
    __forceinline__ T &operator[](int i) { return data[i]; }
    __forceinline__ const T &operator[](int i) const { return data[i]; }
};

//@ read_again read_last hinted_block
struct read_again {};
struct read_last {};
template <class use, int words = 4> static inline vector<unsigned, words> hinted_block(const void *at, use)
{
    vector<unsigned, words> r;
    copy_vector(&r, (const vector<unsigned, words> *)at);
    return r;
}

//@ kept_in_l2 l2_policy
struct kept_in_l2 {};
template <class L2> static inline unsigned long long l2_policy(L2) { return 0; }

//@ dropped_from_l2
struct dropped_from_l2 {};

//@ by_policy
template <class L2, class T> static inline const T *by_policy(const T *at) { return at; }

//@ put_vector
template <class T, int n> static inline void put_vector(void *at, const vector<T, n> &v)
{
    copy_vector((vector<T, n> *)at, &v);
}

//@ pack_e4m3
template <int mantissa, int lowest, int highest> static inline unsigned char round_fp8(float x);
static inline unsigned short pack_e4m3(float low, float high)
{
    return (unsigned short)(round_fp8<3, -6, 0x7e>(high) << 8 | round_fp8<3, -6, 0x7e>(low));
}

//@ widen_e4m3
static inline float value_of_e4m3(unsigned char bits);
static inline float widen_e4m3(unsigned char bits) { return value_of_e4m3(bits); }

//@ pack_e5m2
template <int mantissa, int lowest, int highest> static inline unsigned char round_fp8(float x);
static inline unsigned short pack_e5m2(float low, float high)
{
    return (unsigned short)(round_fp8<2, -14, 0x7b>(high) << 8 | round_fp8<2, -14, 0x7b>(low));
}

//@ f8e5m2
static inline unsigned short pack_e5m2(float low, float high);
struct f8e5m2 {
    unsigned char bits;
    __forceinline__ operator float() const { return sim_half_value((unsigned)bits << 8); }
};
static inline f8e5m2 to_storage(float x, f8e5m2 *) { return {(unsigned char)pack_e5m2(x, 0)}; }
static inline void store_pair(f8e5m2 *at, float low, float high)
{
    *(unsigned short *)at = pack_e5m2(low, high);
}
//@ load_words
template <class T, int n> static inline void load_words(vector<T, n> &to, const T *from)
{
    for (int i = 0; i < n; i++) to[i] = from[i];
}

//@ keep_branch
template <class T> static inline void keep_branch(bool, int) {}

//@ dynamic_smem
static inline unsigned dynamic_smem() { return sim_link.self->dynamic_smem; }

//@ shared_address
static inline unsigned shared_address(const void *) { return 0; }    // for copies, which have twins

//@ async_copy fetch_commit fetch_wait
template <int bytes, class L2 = kept_in_l2> __attribute__((noinline)) SIM_PLAIN void async_copy(void *to, const void *from)
{
    sim_link.api->begin_copy(sim_link.machine, to, from, bytes, SIM_HERE);
}
SIM_CALL void fetch_commit() { sim_link.api->commit_copies(sim_link.machine); }
template <int left> SIM_PLAIN void fetch_wait() { sim_link.api->wait_for_copies(sim_link.machine, left); }

//@ async_block
__attribute__((noinline)) SIM_PLAIN void async_block(void *to, const void *from, int bytes)
{
    sim_link.api->begin_block(sim_link.machine, to, from, bytes, SIM_HERE);
}

//@ team_barrier
template <int threads, int teams> __attribute__((noinline)) SIM_PLAIN void team_barrier()
{
    sim_link.api->named_barrier(sim_link.machine, teams == 1 ? 0 : (int)threadIdx.x / threads + 1, threads, 1,
                                SIM_HERE);
}

//@ cluster_rank cluster_arrive cluster_wait
SIM_INLINE int cluster_rank() { return (int)sim_link.self->cluster_rank; }
SIM_CALL void cluster_arrive() { sim_link.api->cluster_arrive(sim_link.machine, 1, SIM_HERE); }
SIM_CALL void cluster_wait() { sim_link.api->cluster_wait(sim_link.machine, SIM_HERE); }

//@ widen_once
template <int n> static inline float widen_once(const vector<f16, n> &v, int i) { return v[i]; }

//@ widen_again
template <int n> static inline float widen_again(const vector<bf16, n> &v, int i) { return v[i]; }

//@ widen_anew
template <int n> static inline float widen_anew(const vector<bf16, n> &v, int i) { return v[i]; }

//@ widen_by_cvt
static inline float widen_by_cvt(bf16 x) { return x; }

//@ as_column
static inline int as_column(long long n) { return (int)(n < -1 ? -1 : n < 0x7fffffff ? n : 0x7fffffff); }

//@ exp2_flush
static inline float exp2_flush(float x)
{
    const float r = exp2f(x);
    return r < 0x1p-126f ? 0 : r;
}

//@ quick_inverse
static inline float quick_inverse(float x) { return 1 / x; }

//@ warp_max
static inline float warp_max(float x)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, x, distance);
        x = x != x || other != other ? __int_as_float(0x7fffffff) : x < other ? other : x;
    }
    return x;
}

//@ peer
template <class T> __attribute__((noinline)) SIM_PLAIN T *peer(T *shared, int rank)
{
    return (T *)sim_link.api->peer(sim_link.machine, shared, rank, SIM_HERE);
}

//@ fewer_registers more_registers
template <int count> SIM_CALL void fewer_registers() { sim_link.api->registers(sim_link.machine, count, SIM_HERE); }
template <int count> SIM_CALL void more_registers() { sim_link.api->registers(sim_link.machine, count, SIM_HERE); }

//@ barrier_init
SIM_CALL void barrier_init(unsigned long long &barrier, int count)
{
    sim_link.api->tx_init(sim_link.machine, &barrier, count, SIM_HERE);
}

//@ barrier_arrive
SIM_CALL void barrier_arrive(unsigned long long &barrier)
{
    sim_link.api->tx_arrive(sim_link.machine, &barrier, 0, SIM_HERE);
}

//@ barrier_expect
SIM_CALL void barrier_expect(unsigned long long &barrier, int bytes)
{
    sim_link.api->tx_arrive(sim_link.machine, &barrier, bytes, SIM_HERE);
}

//@ barrier_wait
SIM_CALL void barrier_wait(unsigned long long &barrier, int parity)
{
    sim_link.api->tx_wait(sim_link.machine, &barrier, parity, SIM_HERE);
}

//@ bulk_copy
template <class L2 = kept_in_l2> __attribute__((noinline)) SIM_PLAIN void bulk_copy(void *to, const void *from, int bytes, unsigned long long &barrier)
{
    sim_link.api->bulk_copy(sim_link.machine, to, from, bytes, &barrier, SIM_HERE);
}

//@ clock_ns clock_cycles
// both go on each time that one is looked at, and wrap soon after the start
static unsigned sim_clock = 0u - 5000;
static SIM_PLAIN inline unsigned clock_ns() { return sim_clock += 25; }
static SIM_PLAIN inline unsigned clock_cycles() { return 2 * (sim_clock += 25); }

//@ barrier_wait_cluster
SIM_CALL void barrier_wait_cluster(unsigned long long &barrier, int parity)
{
    sim_link.api->tx_wait(sim_link.machine, &barrier, parity, SIM_HERE);
}

//@ send_value
SIM_CALL void send_value(float *twin, float value, unsigned long long &barrier, int rank)
{
    sim_link.api->send(sim_link.machine, twin, &value, sizeof value, &barrier, rank, SIM_HERE);
}
SIM_CALL void send_value(double *twin, double value, unsigned long long &barrier, int rank)
{
    sim_link.api->send(sim_link.machine, twin, &value, sizeof value, &barrier, rank, SIM_HERE);
}

//@ put_mail look_at_mail
SIM_CALL void put_mail(unsigned long long *at, unsigned bits, int round)
{
    sim_link.api->relaxed(sim_link.machine, at, sizeof *at, 1, SIM_HERE);
    *at = (unsigned long long)(unsigned)(round + 1) << 32 | bits;
}
SIM_CALL unsigned long long look_at_mail(const unsigned long long *at)
{
    sim_link.api->relaxed(sim_link.machine, (void *)at, sizeof *at, 0, SIM_HERE);
    return *at;
}

//@ async_fence
SIM_CALL void async_fence() { sim_link.api->async_fence(sim_link.machine); }

//@
