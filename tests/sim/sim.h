// sim.h: CUDA C on the host. A generated text is compiled after this header, unchanged, with
// -fsanitize=thread: the hooks below take the sanitizer's place and hand every access to the machine
// (tests/sim/machine.h). Behind it comes twins.h; the rest of the prelude is compiled as it is.
#pragma once

#include "abi.h"

// Declared here, not included: a kernel may be called what a header calls something else.
#define SIM_MATH(name) extern "C" double name(double); extern "C" float name##f(float);
SIM_MATH(acos) SIM_MATH(asin) SIM_MATH(atan) SIM_MATH(cbrt) SIM_MATH(ceil) SIM_MATH(cos) SIM_MATH(cosh)
SIM_MATH(erf) SIM_MATH(erfc) SIM_MATH(exp) SIM_MATH(exp2) SIM_MATH(expm1) SIM_MATH(fabs) SIM_MATH(floor)
SIM_MATH(log) SIM_MATH(log10) SIM_MATH(log1p) SIM_MATH(log2) SIM_MATH(rint) SIM_MATH(round) SIM_MATH(sin)
SIM_MATH(sinh) SIM_MATH(sqrt) SIM_MATH(tan) SIM_MATH(tanh) SIM_MATH(trunc)
#define SIM_MATH2(name) extern "C" double name(double, double); extern "C" float name##f(float, float);
SIM_MATH2(atan2) SIM_MATH2(copysign) SIM_MATH2(fmax) SIM_MATH2(fmin) SIM_MATH2(fmod) SIM_MATH2(pow)
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
extern "C" int abs(int);
extern "C" long long llabs(long long);

#define SIM_PLAIN __attribute__((no_sanitize("thread")))
#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

SIM_EXPORT SimLink sim_link;
SimLink sim_link;

// ---- language ----

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __builtin_assume(what) ((void)0)
#define __align__(bytes) __attribute__((aligned(bytes)))
// One copy a CTA: the variable is in thread-local storage, whose address __tls_get_addr (below) gives.
#define __shared__ thread_local

#define threadIdx (sim_link.self->thread)
#define blockIdx (sim_link.self->block)
#define blockDim (sim_link.self->block_size)
#define gridDim (sim_link.self->grid_size)
constexpr int warpSize = 32;

// Dynamic shared memory is `extern __shared__ T smem[];` with a T of the kernel's choice: the assembler
// name is all that the two have in common.
alignas(1024) thread_local unsigned char sim_dynamic[SIM_DYNAMIC_SMEM] __asm__("smem")
    __attribute__((used));

#ifdef __clang__
// clang asks at each use whether smem has a constructor
__asm__(".text\n.weak _ZTH4smem\n.hidden _ZTH4smem\n.type _ZTH4smem, @function\n_ZTH4smem: ret\n");
#endif

struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8)));
struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16)));
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---- conversions and arithmetic ----

template <class To, class From> static inline __attribute__((always_inline)) To sim_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}
static inline float __int_as_float(int x) { return sim_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return sim_bits<float>(x); }
static inline int __float_as_int(float x) { return sim_bits<int>(x); }
static inline int __float2int_rz(float x)
{
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)x;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __float_as_uint(float x) { return sim_bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return sim_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return sim_bits<long long>(x); }

// toward zero; beyond the largest float that means the largest float, unless it was infinite
static inline float __double2float_rz(double x)
{
    float r = (float)x;
    if (x == x && fabs((double)r) > fabs(x))
        r = sim_bits<float>(sim_bits<int>(r) - 1);
    return r;
}
static inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline float __fdividef(float x, float y) { return x / y; }
#define __expf expf
#define __logf logf
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
template <class T> static inline T __ldg(const T *p) { return *p; }

// ---- threads working together ----

#define SIM_HERE __builtin_return_address(0)

template <class T>
__attribute__((noinline)) SIM_PLAIN T sim_shuffle(SimShuffle kind, unsigned mask, T value, int by,
                                                  int width)
{
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = sim_link.api->shuffle(sim_link.machine, kind, mask, bits, by, width, SIM_HERE);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
#define SIM_INLINE static inline __attribute__((always_inline))
template <class T> SIM_INLINE T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32)
{
    return sim_shuffle(SIM_SHUFFLE_XOR, mask, value, by, width);
}
template <class T> SIM_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return sim_shuffle(SIM_SHUFFLE_INDEX, mask, value, lane, width);
}
template <class T> SIM_INLINE T __shfl_down_sync(unsigned mask, T value, int by, int width = 32)
{
    return sim_shuffle(SIM_SHUFFLE_DOWN, mask, value, by, width);
}
template <class T> SIM_INLINE T __shfl_up_sync(unsigned mask, T value, int by, int width = 32)
{
    return sim_shuffle(SIM_SHUFFLE_UP, mask, value, by, width);
}

#define SIM_CALL static __attribute__((noinline, unused)) SIM_PLAIN
SIM_CALL unsigned __ballot_sync(unsigned mask, int predicate)
{
    return sim_link.api->ballot(sim_link.machine, mask, predicate, SIM_HERE);
}
SIM_CALL int __any_sync(unsigned mask, int predicate)
{
    return sim_link.api->ballot(sim_link.machine, mask, predicate, SIM_HERE) != 0;
}
SIM_CALL int __all_sync(unsigned mask, int predicate)
{
    return sim_link.api->ballot(sim_link.machine, mask, !predicate, SIM_HERE) == 0;
}
SIM_CALL void __syncwarp(unsigned mask = 0xffffffff) { sim_link.api->warp_barrier(sim_link.machine, mask, SIM_HERE); }
SIM_CALL void __syncthreads() { sim_link.api->block_barrier(sim_link.machine, SIM_HERE); }
SIM_CALL void __threadfence() { sim_link.api->fence(sim_link.machine); }
SIM_CALL void __threadfence_block() { sim_link.api->fence(sim_link.machine); }
SIM_CALL void __nanosleep(unsigned) { sim_link.api->yield(sim_link.machine); }
SIM_CALL void __trap() { sim_link.api->trap(sim_link.machine, "__trap()", SIM_HERE); }

template <class T, class Change> SIM_PLAIN T sim_atomic(T *address, Change change, void *at)
{
    sim_link.api->atomic(sim_link.machine, address, sizeof(T), at);
    const T old = *address;
    *address = change(old);
    return old;
}
#define SIM_ATOMIC(name, change)                                                                   \
    template <class T> __attribute__((noinline)) SIM_PLAIN T name(T *address, T value)             \
    {                                                                                              \
        return sim_atomic(address, [=](T old) SIM_PLAIN { return T(change); }, SIM_HERE);          \
    }
SIM_ATOMIC(atomicAdd, old + value)
SIM_ATOMIC(atomicSub, old - value)
SIM_ATOMIC(atomicExch, ((void)old, value))
SIM_ATOMIC(atomicMax, old < value ? value : old)
SIM_ATOMIC(atomicMin, value < old ? value : old)
SIM_ATOMIC(atomicAnd, old &value)
SIM_ATOMIC(atomicOr, old | value)
SIM_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
template <class T> __attribute__((noinline)) SIM_PLAIN T atomicCAS(T *address, T expected, T value)
{
    return sim_atomic(
        address, [=](T old) SIM_PLAIN { return old == expected ? value : old; }, SIM_HERE);
}

// ---- launching ----

template <class> struct SimSignature;
template <class... A> struct SimSignature<void (*)(A...)> {
    static constexpr int count = sizeof...(A);
    template <int... i> struct Places {};
    template <int n, int... i> struct Count : Count<n - 1, n - 1, i...> {};
    template <int... i> struct Count<0, i...> {
        static SIM_PLAIN void call(void (*kernel)(A...), void **args) { kernel(*(A *)args[i]...); }
    };
};
#define SIM_KERNEL(name)                                                                           \
    SIM_EXPORT const int sim_count_##name = SimSignature<decltype(&name)>::count;                  \
    SIM_EXPORT SIM_PLAIN void sim_call_##name(void **args)                                         \
    {                                                                                              \
        using Signature = SimSignature<decltype(&name)>;                                           \
        Signature::Count<Signature::count>::call(&name, args);                                     \
    }

SIM_EXPORT SIM_PLAIN void *sim_dynamic_address() { return sim_dynamic; }

// ---- the sanitizer's entry points ----

SIM_INLINE SIM_PLAIN void sim_access(const void *address, size_t size, SimAccess kind, int aligned,
                                     void *at)
{
    if ((uintptr_t)address - sim_link.stack >= sim_link.stack_size && size > 0)
        sim_link.api->access(sim_link.machine, address, size, kind, aligned, at);
}
#define SIM_HOOK extern "C" __attribute__((used)) SIM_PLAIN
#define SIM_HOOKS(size)                                                                            \
    SIM_HOOK void __tsan_read##size(void *p) { sim_access(p, size, SIM_READ, 1, SIM_HERE); }       \
    SIM_HOOK void __tsan_write##size(void *p) { sim_access(p, size, SIM_WRITE, 1, SIM_HERE); }     \
    SIM_HOOK void __tsan_volatile_read##size(void *p) { sim_access(p, size, SIM_READ, 1, SIM_HERE); } \
    SIM_HOOK void __tsan_volatile_write##size(void *p) { sim_access(p, size, SIM_WRITE, 1, SIM_HERE); } \
    SIM_HOOK void __tsan_unaligned_read##size(void *p) { sim_access(p, size, SIM_READ, 0, SIM_HERE); } \
    SIM_HOOK void __tsan_unaligned_write##size(void *p) { sim_access(p, size, SIM_WRITE, 0, SIM_HERE); }
SIM_HOOKS(1)
SIM_HOOKS(2)
SIM_HOOKS(4)
SIM_HOOKS(8)
SIM_HOOKS(16)
SIM_HOOK void __tsan_read_range(void *p, size_t size) { sim_access(p, size, SIM_READ, 0, SIM_HERE); }
SIM_HOOK void __tsan_write_range(void *p, size_t size) { sim_access(p, size, SIM_WRITE, 0, SIM_HERE); }
SIM_HOOK void __tsan_init() {}
SIM_HOOK void __tsan_func_entry(void *) {}
SIM_HOOK void __tsan_func_exit() {}
SIM_HOOK void __tsan_vptr_update(void **, void *) {}
SIM_HOOK void __tsan_vptr_read(void **) {}

// Copies that the compiler makes calls of; volatile keeps it from doing so here again.
SIM_HOOK __attribute__((visibility("hidden"))) void *memmove(void *to, const void *from, size_t size)
{
    volatile char *t = (volatile char *)to;
    const volatile char *f = (const volatile char *)from;
    sim_access(from, size, SIM_READ, 0, SIM_HERE);
    sim_access(to, size, SIM_WRITE, 0, SIM_HERE);
    for (size_t i = 0; i < size; i++) {
        const size_t k = (uintptr_t)to <= (uintptr_t)from ? i : size - 1 - i;
        t[k] = f[k];
    }
    return to;
}
SIM_HOOK __attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}
SIM_HOOK __attribute__((visibility("hidden"))) void *memset(void *to, int value, size_t size)
{
    sim_access(to, size, SIM_WRITE, 0, SIM_HERE);
    for (size_t i = 0; i < size; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}

// Where thread-local storage begins is the dynamic linker's answer; here it is the running CTA's.
struct SimTlsIndex {
    unsigned long module, offset;
};
SIM_HOOK __attribute__((visibility("hidden"))) void *__tls_get_addr(SimTlsIndex *index)
{
    return sim_link.shared + index->offset;
}
