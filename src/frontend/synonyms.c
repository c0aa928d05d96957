/* frontend/synonyms.c: names of other languages and libraries: how this language writes them, or
 * that it has no such thing. Most of them resemble another name here, which would be a wrong
 * hint. */
#include "frontend/lower_internal.h"

#include <string.h>
#include <strings.h>

/* `ours`: how it is written here. $ stands for an axis of the program, @ for the axis before it. */
typedef struct {
    const char *theirs, *ours;
} Meaning;

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const Meaning functions[] = {
    {"maximum", "max(a, b)"},
    {"fmax", "max(a, b)"},
    {"minimum", "min(a, b)"},
    {"fmin", "min(a, b)"},
    {"amax", "max[$](x)"},
    {"amin", "min[$](x)"},
    {"select", "where(c, a, b)"},
    {"ifelse", "where(c, a, b)"},
    {"if", "where(c, a, b)"},
    {"fabs", "abs(x)"},
    {"power", "pow(a, b)"},
    {"square", "(x * x)"},
    {"sqr", "(x * x)"},
    {"reciprocal", "(1 / x)"},
    {"neg", "(-x)"},
    {"trunc", "where(x < 0, ceil(x), floor(x))"},
    {"rint", "round(x)"},
    {"nearbyint", "round(x)"},
    {"sgn", "sign(x)"},
    {"cbrt", "(sign(x) * abs(x) ** (1.0 / 3.0))"},
    {"logistic", "sigmoid(x)"},
    {"logit", "log(x / (1 - x))"},
    {"erfc", "(1 - erf(x))"},
    {"log10", "(log(x) / log(10))"},
    {"exp10", "(10 ** x)"},
    {"ln", "log(x)"},
    {"logaddexp", "(max(a, b) + log1p(exp(-abs(a - b))))"},
    {"softplus", "(max(x, 0) + log1p(exp(-abs(x))))"},
    {"mish", "(x * tanh(max(x, 0) + log1p(exp(-abs(x)))))"},
    {"relu6", "clamp(x, 0, 6)"},
    {"leaky_relu", "where(x > 0, x, 0.01 * x)"},
    {"elu", "where(x > 0, x, expm1(x))"},
    {"softsign", "(x / (1 + abs(x)))"},
    {"hardsigmoid", "(clamp(x + 3, 0, 6) / 6)"},
    {"hardswish", "(x * clamp(x + 3, 0, 6) / 6)"},
    {"heaviside", "where(x > 0, 1, 0)"},
    {"tan", "(sin(x) / cos(x))"},
    {"sinh", "((exp(x) - exp(-x)) / 2)"},
    {"cosh", "((exp(x) + exp(-x)) / 2)"},
    {"atanh", "((log1p(x) - log1p(-x)) / 2)"},
    {"hypot", "sqrt(a * a + b * b)"},
    {"fma", "(a * b + c)"},
    {"fmod", "(x - y * where(x / y < 0, ceil(x / y), floor(x / y)))"},
    {"mod", "(x - y * floor(x / y))"},
    {"remainder", "(x - y * floor(x / y))"},
    {"floordiv", "floor(x / y)"},
    {"floor_divide", "floor(x / y)"},
    {"clip", "clamp(x, lo, hi)"},
    {"isinf", "(abs(x) == inf)"},
    {"isfinite", "(abs(x) < inf)"},
    {"any", "(max[$](c) != 0)"},
    {"all", "(min[$](c) != 0)"},
    {"std", "sqrt(var[$](x)), which divides by size($)"},
    {"stddev", "sqrt(var[$](x)), which divides by size($)"},
    {"variance", "var[$](x)"},
    {"average", "mean[$](x)"},
    {"avg", "mean[$](x)"},
    {"product", "prod[$](x)"},
    {"norm", "sqrt(sum[$](x * x))"},
    {"sumsq", "sum[$](x * x)"},
    {"nansum", "sum[$](where(isnan(x), 0, x))"},
    {"count", "size($), or sum[$](where(c, 1, 0))"},
    {"argmax", "min[$](where(x == max[$](x), index($), size($)))"},
    {"argmin", "min[$](where(x == min[$](x), index($), size($)))"},
    {"matmul", "sum[$](a * b), which is slow for large matrices"},
    {"dot", "sum[$](a * b)"},
    {"einsum", "sum[$](a * b), which is slow for large matrices"},
    {"arange", "index($)"},
    {"iota", "index($)"},
    {"len", "size($)"},
    {"shape", "size($)"},
    {"numel", "size($)"},
    {"outer", "(a * b): axes are matched by name"},
    {"gather", "sum[$](where(index($) == i, x, 0))"},
    {"take", "sum[$](where(index($) == i, x, 0))"},
    {"one_hot", "where(index($) == i, 1.0, 0.0)"},
    {"onehot", "where(index($) == i, 1.0, 0.0)"},
    {"masked_fill", "where(c, a, x)"},
    {"mask_fill", "where(c, a, x)"},
    {"tril", "where(index($) <= index(@), x, 0)"},
    {"triu", "where(index($) >= index(@), x, 0)"},
    {"zeros", "0.0: numbers are broadcast"},
    {"zeros_like", "0.0: numbers are broadcast"},
    {"ones", "1.0: numbers are broadcast"},
    {"ones_like", "1.0: numbers are broadcast"},
    {"full", "the number itself: numbers are broadcast"},
    {"cast", "f32(x), or another dtype"},
    {"astype", "f32(x), or another dtype"},
};

/* Names that have no counterpart here, with a reason for each list. */
typedef struct {
    const char *names, *reason;
} Absence;

static const Absence absent_functions[] = {
    {"asin acos atan arcsin arccos arctan atan2", "there are no inverses of sin and cos"},
    {"asinh acosh arcsinh arccosh", "there are no inverses of sinh and cosh"},
    {"erfinv erfcinv", "there is no inverse of erf"},
    {"lgamma tgamma gamma digamma", "there is no gamma function"},
    {"cumsum cumprod cummax cummin cumulative scan accumulate logcumsumexp cumlogsumexp cummean "
     "cumcount cumdist prefix_sum prefix_scan running_sum associative_scan cumtrapz",
     "there are no running sums: a reduction takes all elements along an axis"},
    {"sort argsort topk median quantile percentile mode unique kthvalue",
     "there is no sorting: max and min find the ends, sum[$](where(c, 1, 0)) counts"},
    {"dropout rand randn random uniform normal bernoulli seed",
     "there are no random numbers: pass the mask as an input"},
    {"roll shift flip pad prev diff conv conv1d pool slice narrow",
     "an expression sees one place of each tensor: pass shifted data as another input"},
    {"concat concatenate cat stack split chunk hstack vstack",
     "tensors are not joined or split: make each part an input or an output"},
    {"transpose permute swapaxes reshape view flatten squeeze unsqueeze expand broadcast broadcast_to "
     "broadcast_in_dim expand_dims repeat tile",
     "axes are matched by name: nothing is reshaped or broadcast by hand"},
    {"scatter scatter_add index_add index_put nonzero searchsorted bincount",
     "a result cannot be stored at a computed place"},
    {"bitwise_and bitwise_or bitwise_xor bitwise_not invert lshift rshift popcount",
     "there are no operations on bits"},
    {"print printf assert", "a graph prints nothing: make the value an output"},
    {"while for range map reduce fold vmap", "there are no loops: a reduction runs over an axis"},
};

static const Meaning dtypes[] = {
    {"bfloat16", "bf16"},
    {"bfloat", "bf16"},
    {"half", "f16"},
    {"float16", "f16"},
    {"fp16", "f16"},
    {"float", "f32"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"tf32", "f32"},
    {"single", "f32"},
    {"double", "f64"},
    {"float64", "f64"},
    {"fp64", "f64"},
    {"long", "i64"},
    {"int64", "i64"},
    {"int", "i32"},
    {"int32", "i32"},
    {"int64_t", "i64"},
    {"int32_t", "i32"},
    {"int8_t", "i8"},
    {"uint8_t", "u8"},
    {"s64", "i64"},
    {"s32", "i32"},
    {"s8", "i8"},
    {"char", "i8"},
    {"int8", "i8"},
    {"uint8", "u8"},
    {"byte", "u8"},
    {"boolean", "bool"},
    {"bool8", "bool"},
    {"bf", "bf16"},
    {"fp8", "f8e4m3"},
    {"f8", "f8e4m3"},
    {"e4m3", "f8e4m3"},
    {"float8_e4m3fn", "f8e4m3"},
    {"f8e4m3fn", "f8e4m3"},
    {"float8_e4m3", "f8e4m3"},
    {"fp8e4m3", "f8e4m3"},
    {"fp8_e4m3", "f8e4m3"},
    {"e5m2", "f8e5m2"},
    {"float8_e5m2", "f8e5m2"},
    {"bf8", "f8e5m2"},
    {"fp8e5m2", "f8e5m2"},
    {"fp8_e5m2", "f8e5m2"},
};

static const Absence absent_dtypes[] = {
    {"u16 uint16 uint16_t ushort i16 int16 int16_t short",
     "there are no integers of 16 bits: convert the tensor to i32, which holds all of their values"},
    {"u32 uint32 uint32_t uint unsigned",
     "there are no unsigned integers of 32 bits: convert the tensor to i64, which holds all of their values"},
    {"u64 uint64 uint64_t ulong size_t",
     "there are no unsigned integers of 64 bits: i64 holds those below 2 ** 63"},
    {"f4 fp4 float4 f4e2m1 e2m1 fp4_e2m1 int4 i4 uint4 u4 nf4 mxfp4 nvfp4",
     "there are no elements of 4 bits"},
    {"e8m0 f8e8m0 ue8m0 float8_e8m0fnu",
     "there is no e8m0: store a scale as f32, or its exponent as u8"},
    {"f8e3m4 e3m4 f6 fp6 f6e2m3 f6e3m2 mxfp6", "floats of 8 bits are f8e4m3 and f8e5m2"},
    {"complex c64 c128 complex64 complex128 cfloat cdouble", "there are no complex numbers"},
    {"u1 i1 bit", "a condition is stored as bool, in a byte"},
    {"f80 f128 float128 fp128 quad", "the widest float is f64"},
    {"string str void object", "elements are numbers"},
};

static const Meaning constants[] = {
    {"true", "true"},       {"false", "false"},        {"inf", "inf"},
    {"infinity", "inf"},    {"nan", "(inf - inf)"},    {"pi", "3.14159265"},
    {"M_PI", "3.14159265"}, {"math.pi", "3.14159265"}, {"e", "exp(1)"},
};

static const char *find(const char *name, const Meaning *meanings, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(name, meanings[i].theirs)) return meanings[i].ours;
    return NULL;
}

static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (size_t n; (n = strcspn(names, " ")) > 0; names += n + (names[n] == ' '))
        if (n == length && !strncasecmp(names, name, n)) return true;
    return false;
}

static const char *find_absent(const char *name, const Absence *absences, int count)
{
    for (int i = 0; i < count; i++)
        if (lists(absences[i].names, name)) return absences[i].reason;
    return NULL;
}

/* "size(H) * size(W)" */
static void print_sizes(Text *text, const char *axes)
{
    for (const char *end; *axes; axes = *end ? end + strspn(end, ", ") : end) {
        end = axes + strcspn(axes, ",");
        text_print(text, "size(%.*s)%s", (int)(end - axes), axes, *end ? " * " : "");
    }
}

/* `lead` and the pattern with axes in it; NULL where it needs other ones. */
static const char *write_pattern(Arena *arena, const char *lead, const char *pattern,
                                 const char *axes, const char *before)
{
    static const char size[] = "size($)", index[] = "index($)";
    const char *comma = axes ? strchr(axes, ',') : NULL;
    if (comma && strchr(pattern, '@') && !strchr(comma + 1, ',')) { /* [Q, K]: both are given */
        before = arena_copy(arena, axes, (size_t)(comma - axes));
        axes = comma + 2;
        comma = NULL;
    }
    Text *text = text_new(arena);
    text_print(text, "%s", lead);
    for (; *pattern; pattern++) {
        const char *name = *pattern == '$' ? axes : before;
        if (comma && !strncmp(pattern, size, sizeof size - 1)) {
            print_sizes(text, axes);
            pattern += sizeof size - 2;
            continue;
        }
        if (comma && !strncmp(pattern, index, sizeof index - 1)) return NULL;
        if (*pattern != '$' && *pattern != '@')
            text_put(text, pattern, 1);
        else if (name)
            text_print(text, "%s", name);
        else
            return NULL;
    }
    return text_string(text);
}

const char *dtype_meant(const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (!strcasecmp(name, dtype_info[i].fuse)) return dtype_info[i].fuse;
    return find(name, dtypes, LENGTH(dtypes));
}

const char *dtype_absent(const char *name)
{
    return find_absent(name, absent_dtypes, LENGTH(absent_dtypes));
}

const char *function_meant(Arena *arena, const char *name, const char *axes, const char *before)
{
    const char *reason = find_absent(name, absent_functions, LENGTH(absent_functions));
    if (reason) return write_pattern(arena, "", reason, axes ? axes : "N", before);
    if (dtype_absent(name)) return dtype_absent(name);
    const char *ours = find(name, functions, LENGTH(functions)), *dtype = dtype_meant(name);
    if (ours) return write_pattern(arena, "write ", ours, axes, before);
    return dtype ? arena_format(arena, "write %s(x)", dtype) : NULL;
}

const char *constant_meant(Arena *arena, const char *name)
{
    const char *ours = find(name, constants, LENGTH(constants));
    return ours ? arena_format(arena, "write %s", ours) : NULL;
}
