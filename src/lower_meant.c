/* lower_meant.c: what the names mean that other languages and libraries have for what this one has: the hints of
 * unknown names. Letters by which names differ are not counted here; many of these are nearer to something else. */
#include "lowering.h"

#include <strings.h>

typedef struct {
    const char *theirs, *ours;
} Meaning;

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const Meaning functions[] = {
    {"maximum", "max(a, b)"}, {"fmax", "max(a, b)"},
    {"minimum", "min(a, b)"}, {"fmin", "min(a, b)"},
    {"amax", "max[N](x)"},    {"amin", "min[N](x)"},
    {"select", "where(c, a, b)"}, {"ifelse", "where(c, a, b)"}, {"if", "where(c, a, b)"},
    {"fabs", "abs(x)"},       {"power", "pow(a, b)"},
    {"square", "x * x"},      {"sqr", "x * x"},
    {"reciprocal", "1 / x"},  {"neg", "-x"},
    {"trunc", "where(x < 0, ceil(x), floor(x))"},
    {"logistic", "sigmoid(x)"}, {"logit", "log(x / (1 - x))"}, {"erfc", "1 - erf(x)"},
    {"log10", "log(x) / log(10)"}, {"exp10", "10 ** x"},
    {"tan", "sin(x) / cos(x)"},
    {"sinh", "(exp(x) - exp(-x)) / 2"}, {"cosh", "(exp(x) + exp(-x)) / 2"},
    {"atanh", "(log1p(x) - log1p(-x)) / 2"},
    {"isinf", "abs(x) == inf"}, {"isfinite", "abs(x) < inf"},
    {"std", "sqrt(var[N](x))"}, {"stddev", "sqrt(var[N](x))"}, {"variance", "var[N](x)"},
    {"average", "mean[N](x)"}, {"avg", "mean[N](x)"},
    {"product", "prod[N](x)"}, {"norm", "sqrt(sum[N](x * x))"},
    {"count", "size(N), or sum[N](where(c, 1, 0))"},
    {"matmul", "sum[K](a * b), which is slow for large matrices"}, {"dot", "sum[N](a * b)"},
    {"arange", "index(N)"},   {"iota", "index(N)"},   {"len", "size(N)"},
    {"gather", "sum[N](where(index(N) == i, x, 0))"},
    {"cast", "f32(x), or another dtype"}, {"astype", "f32(x), or another dtype"},
};

/* Near to sin and cos, and not at all what they are. */
static const char *const missing[] = {"asin", "acos", "atan", "arcsin", "arccos", "arctan"};

static const Meaning dtypes[] = {
    {"bfloat16", "bf16"}, {"half", "f16"},   {"float16", "f16"}, {"fp16", "f16"},
    {"float", "f32"},     {"float32", "f32"}, {"fp32", "f32"},
    {"double", "f64"},    {"float64", "f64"}, {"fp64", "f64"},
    {"long", "i64"},      {"int64", "i64"},  {"int", "i32"},     {"int32", "i32"},
    {"char", "i8"},       {"int8", "i8"},    {"uint8", "u8"},    {"byte", "u8"},   {"boolean", "bool"},
    {"fp8", "f8e4m3"},    {"f8", "f8e4m3"},  {"e4m3", "f8e4m3"}, {"float8_e4m3fn", "f8e4m3"},
    {"e5m2", "f8e5m2"},   {"float8_e5m2", "f8e5m2"},
};

static const Meaning constants[] = {
    {"true", "true"}, {"false", "false"}, {"inf", "inf"},
    {"infinity", "inf"}, {"nan", "inf - inf"}, {"pi", "3.14159265"}, {"M_PI", "3.14159265"},
};

static const char *find(const char *name, const Meaning *meanings, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(name, meanings[i].theirs)) return meanings[i].ours;
    return NULL;
}

const char *dtype_meant(const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (!strcasecmp(name, dtype_info[i].fuse)) return dtype_info[i].fuse;
    return find(name, dtypes, LENGTH(dtypes));
}

const char *function_meant(Arena *arena, const char *name)
{
    for (int i = 0; i < LENGTH(missing); i++)
        if (!strcasecmp(name, missing[i])) return "there are no inverses of sin and cos";
    const char *ours = find(name, functions, LENGTH(functions)), *dtype = dtype_meant(name);
    if (ours) return arena_format(arena, "write %s", ours);
    return dtype ? arena_format(arena, "write %s(x)", dtype) : NULL;
}

const char *constant_meant(Arena *arena, const char *name)
{
    const char *ours = find(name, constants, LENGTH(constants));
    return ours ? arena_format(arena, "write %s", ours) : NULL;
}
