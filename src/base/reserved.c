/* base/reserved.c: see base/reserved.h. */
#include "base/reserved.h"

#include <ctype.h>
#include <string.h>

/* Words of C++ and CUDA, functions that patterns call, and names that the printer looks for in a
 * kernel's text, to see which constants it needs. */
static const char reserved[] =
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl concept "
    "const constexpr continue decltype default delete do double else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "nullptr operator or private protected public register requires return short signed sizeof "
    "static struct switch template this throw true try typedef typeid typename union unsigned "
    "using virtual void volatile wchar_t while xor main uint4 uint2 threadIdx blockIdx gridDim "
    "blockDim warpSize powf pow fabsf fabs sqrtf sqrt rsqrtf rsqrt expf exp exp2f exp2 logf log "
    "log2f log2 log1pf log1p expm1f expm1 sinf sin cosf cos tanhf tanh erff erf floorf floor "
    "ceilf ceil rintf rint y0 y1 yn j0 j1 jn linux unix assert signbit NULL and_eq char8_t "
    "char16_t char32_t co_await co_return co_yield consteval constinit not_eq or_eq xor_eq "
    "const_cast dynamic_cast reinterpret_cast static_cast static_assert thread_local store_pair "
    "FUSEC_SIM CUDARTAPI CUDARTAPI_CDECL CUDART_DEVICE CUDART_VERSION "
    "NV_TARGET_MINIMUM_SM_INTEGER NV_TARGET_MINIMUM_SM_SELECTOR col columns threads "
    "threads_per_row teams";

const char own_names[] =
    "row line lines t i thread_in_row team first_column stage_parity scratch has_row cta_row "
    "rows smem ring stage stages current ahead fetch next held into cluster full empty slice local_column "
    "bulk begin parity lane slice_begin slice_end first_row row_step exchange sent round "
    "collected last last_row finish_row cta_scratch cta_parity Stage Columns s stage_rows "
    "stage_row vec tiles step group groups boxes Box news rounds before before_row partials "
    "ready end slices item items width batch sums Sums Rows through part parts alone own chunk "
    "at due few ahead_row ahead_part ahead_group held_group left count first_part p here lanes "
    "aligned together apart whole at_once run "
    "warps span spans start bytes words block_parity block_scratch team_scratch";

/* Functions and types that C or CUDA declares for the whole text, and words that PTX does not allow
 * as the name of a function. The list is the result of trying 70,000 identifiers (those in CUDA
 * 13.0's headers, in the strings of NVRTC and g++, and the C library's exports) as names of
 * kernels, with NVRTC, with and without --minimal, and on the simulator. `acos` stands for `acosf`
 * too. A7 crashes NVRTC 13.0. */
static const char library[] =
    "A7 CUuuid MAJOR_VERSION MINOR_VERSION PATCH_LEVEL WARP_SZ abs acos acosh asin "
    "asinh atan atan2 atanh cbrt clock64 clock_t copysign cosh cospi cyl_bessel_i0 "
    "cyl_bessel_i1 dim3 erfc erfcinv erfcx erfinv exp10 fdim fdivide fma fmax fmin fmod "
    "free frexp function_name hypot ilogb inlined_at int16_t int32_t int64_t int8_t "
    "intmax_t intptr_t j0 j1 jn labs ldexp lgamma libraryPropertyType llabs llmax llmin "
    "llrint llround log10 logb lrint lround malloc max memcpy memmove memset min modf "
    "nan nearbyint nextafter norm norm3d norm4d normcdf normcdfinv offsetof printf "
    "ptrdiff_t rcbrt remainder remquo rhypot rnorm rnorm3d rnorm4d round scalbln scalbn "
    "sincos sincospi sinh sinpi size_t std tan tgamma trunc uint16_t uint32_t uint64_t "
    "uint8_t uintmax_t uintptr_t ullmax ullmin umax umin va_arg va_copy va_end va_list "
    "va_start y0 y1 yn";

static bool lists(const char *words, const char *name, size_t length)
{
    for (size_t n; (n = strcspn(words, " ")) > 0; words += n + (words[n] == ' '))
        if (n == length && !memcmp(words, name, n)) return true;
    return false;
}

bool is_reserved_name(const char *name)
{
    return lists(reserved, name, strlen(name));
}

bool is_own_name(const char *name)
{
    return lists(own_names, name, strlen(name));
}

void add_reserved_names(Arena *arena, Map *names)
{
    for (const char *word = reserved, *end; *word; word = end + (*end == ' ')) {
        end = word + strcspn(word, " ");
        map_add(arena, names, word, (size_t)(end - word), 0);
    }
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

bool is_library_name(const char *name)
{
    const size_t length = strlen(name);
    if (begins(name, "CUDA") || begins(name, "CU_") || begins(name, "NV_")) return true;
    if (begins(name, "cuda") && isupper((unsigned char)name[4])) return true;
    return lists(library, name, length) ||
           (name[length - 1] == 'f' && lists(library, name, length - 1));
}

const char *plain_name(Arena *arena, const char *name)
{
    char *plain = arena_copy(arena, name, strlen(name)), *end = plain;
    for (const char *c = name; *c; c++)
        if (*c != '_' || end == plain || end[-1] != '_') *end++ = *c;
    *end = 0;
    return plain[0] == '_' && isupper((unsigned char)plain[1]) ? plain + 1 : plain;
}
