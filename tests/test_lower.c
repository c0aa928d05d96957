/* test_lower.c: the rules of axes, types, functions and outputs. */
#include "from_text.h"
#include "suites.h"

#include "frontend/lower.h"
#include "frontend/lower_internal.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types ---- */

typedef struct {
    const char *expression;
    Type type;
    const char *text; /* of the node, conversions unseen */
} TypeCase;

static const TypeCase type_cases[] = {
    {"x + 1", TYPE_F32, "x + 1.0"},
    {"h * x", TYPE_F32, "h * x"},
    {"i + 1", TYPE_I64, "i + 1"},
    {"i - k * i", TYPE_I64, "i - k * i"},
    {"i / 2", TYPE_F32, "i / 2.0"},
    {"i / k", TYPE_F32, "i / k"},
    {"x + i", TYPE_F32, "x + i"},
    {"x + d", TYPE_F64, "x + d"},
    {"i + d", TYPE_F64, "i + d"},
    {"i / d", TYPE_F64, "i / d"},
    {"d + 0.1", TYPE_F64, "d + 0.1"},
    {"d * -0.1", TYPE_F64, "d * -0.1"},
    {"p + q", TYPE_I64, "p + q"},
    {"-p", TYPE_I64, "-p"},
    {"p * x", TYPE_F32, "p * x"},
    {"p / q", TYPE_F32, "p / q"},
    {"x ** 2", TYPE_F32, "x ** 2.0"},
    {"i ** i", TYPE_F32, "i ** i"},
    {"d ** 2", TYPE_F64, "d ** 2.0"},
    {"pow(x, 3)", TYPE_F32, "x ** 3.0"},
    {"-x ** 2", TYPE_F32, "-x ** 2.0"},
    {"(-x) ** 2", TYPE_F32, "(-x) ** 2.0"},
    {"x ** r ** s", TYPE_F32, "x ** r ** s"},
    {"(x ** r) ** s", TYPE_F32, "(x ** r) ** s"},
    {"x - (r - s)", TYPE_F32, "x - (r - s)"},
    {"x - r - s", TYPE_F32, "x - r - s"},
    {"x / (r * s)", TYPE_F32, "x / (r * s)"},
    {"(x + r) * s", TYPE_F32, "(x + r) * s"},
    {"x < 1", TYPE_BOOL, "x < 1.0"},
    {"i == k", TYPE_BOOL, "i == k"},
    {"i > x", TYPE_BOOL, "i > x"},
    {"p == q", TYPE_BOOL, "p == q"},
    {"!p && (q || x > 0)", TYPE_BOOL, "!p && (q || x > 0.0)"},
    {"where(p, 1, x)", TYPE_F32, "where(p, 1.0, x)"},
    {"where(p, i, 2)", TYPE_I64, "where(p, i, 2)"},
    {"where(p, q, i)", TYPE_I64, "where(p, q, i)"},
    {"where(p, x, d)", TYPE_F64, "where(p, x, d)"},
    {"where(p, q, true)", TYPE_BOOL, "where(p, q, true)"},
    {"min(i, 3)", TYPE_I64, "min(i, 3)"},
    {"max(i, 0.5)", TYPE_F32, "max(i, 0.5)"},
    {"clamp(i, 0, 5)", TYPE_I64, "clamp(i, 0, 5)"},
    {"clamp(i, 0, 1.5)", TYPE_F32, "clamp(i, 0.0, 1.5)"},
    {"clamp(x, -s, d)", TYPE_F64, "clamp(x, -s, d)"},
    {"abs(i)", TYPE_I64, "abs(i)"},
    {"sign(p)", TYPE_I64, "sign(p)"},
    {"sqrt(i)", TYPE_F32, "sqrt(i)"},
    {"exp(d)", TYPE_F64, "exp(d)"},
    {"tanh(p)", TYPE_F32, "tanh(p)"},
    {"floor(i + 1)", TYPE_I64, "i + 1"},
    {"round(x)", TYPE_F32, "round(x)"},
    {"isnan(x)", TYPE_BOOL, "isnan(x)"},
    {"isnan(i)", TYPE_BOOL, "i != i"},
    {"bf16(x)", TYPE_F32, "bf16(x)"},
    {"f32(d)", TYPE_F32, "f32(d)"},
    {"f64(x)", TYPE_F64, "f64(x)"},
    {"i32(x)", TYPE_I64, "i32(x)"},
    {"u8(p)", TYPE_I64, "u8(p)"},
    {"f16(i)", TYPE_F32, "f16(i)"},
    {"bool(x)", TYPE_BOOL, "x != 0.0"},
    {"bool(i)", TYPE_BOOL, "i != 0"},
    {"sum[N](i)", TYPE_I64, "sum[N](i)"},
    {"sum[N](p)", TYPE_I64, "sum[N](p)"},
    {"max[M, N](i)", TYPE_I64, "max[M, N](i)"},
    {"prod[M](d)", TYPE_F64, "prod[M](d)"},
    {"mean[N](i)", TYPE_F32, "mean[N](i)"},
    {"mean[N](d)", TYPE_F64, "mean[N](d)"},
    {"var[N](p)", TYPE_F32, "var[N](p)"},
    {"min[N](x)", TYPE_F32, "min[N](x)"},
    {"1 / size(N)", TYPE_F32, "1.0 / size(N)"},
    {"index(M) + size(N)", TYPE_I64, "index(M) + size(N)"},
    {"index(M) > k", TYPE_BOOL, "index(M) > k"},
    {"x * inf", TYPE_F32, "x * inf"},
    {"where(p, -inf, x)", TYPE_F32, "where(p, -inf, x)"},
    {"i + true", TYPE_I64, "i + 1"},
    {"silu(i)", TYPE_F32, "i * sigmoid(i)"},
    {"relu(i)", TYPE_I64, "max(i, 0)"},
};
enum { TYPE_CASES = sizeof type_cases / sizeof *type_cases };

START_TEST(types_follow_the_rules)
{
    const TypeCase *c = &type_cases[_i];
    char body[200];
    snprintf(body, sizeof body, "v = %s\ny = x", c->expression);
    FromText f = from_body("f32[M, N]", body);
    ck_assert_msg(f.graph != NULL, "%s:\n%s", c->expression, f.report);
    verify_graph(f.graph);
    Node v = find_named(f.graph, "v");
    ck_assert_msg(v.id != 0, "%s", c->expression);
    ck_assert_str_eq(type_name(node(f.graph, v)->type), type_name(c->type));
    ck_assert_str_eq(node_text(f.arena, f.graph, v, true), c->text);
    arena_free(f.arena);
}
END_TEST

static double constant_of(const FromText *f)
{
    ck_assert_msg(f->graph != NULL, "%s", f->report);
    const NodeInfo *info = node(f->graph, f->graph->outputs.data[0].value);
    ck_assert_int_eq(info->op, OP_CONST);
    return type_is_float(info->type) ? info->number : (double)info->integer;
}

START_TEST(literals_keep_their_digits_beside_f64)
{
    static const char *const bodies[] = {"y = 0.1", "tenth = 0.1  y = tenth", "y = -(-0.1)"};
    for (int i = 0; i < 3; i++) {
        FromText f = from_body("f64[]", bodies[i]);
        ck_assert(constant_of(&f) == 0.1);
        ck_assert_int_eq(node(f.graph, f.graph->outputs.data[0].value)->type, TYPE_F64);
        arena_free(f.arena);
    }
}
END_TEST

/* ---- outputs ---- */

typedef struct {
    const char *output, *body;
    Type type;
} StoreCase;

static const StoreCase stores[] = {
    {"bf16[M, N]", "y = x", TYPE_F32},     {"bf16[M, N]", "y = i", TYPE_F32},
    {"f32[M, N]", "y = d", TYPE_F64},      {"f64[M, N]", "y = x", TYPE_F64},
    {"f64[M, N]", "y = i", TYPE_F64},      {"f32[M, N]", "y = p", TYPE_F32},
    {"i8[M, N]", "y = i + 1", TYPE_I64},   {"i64[M, N]", "y = p", TYPE_I64},
    {"i32[M, N]", "y = i32(x)", TYPE_I64}, {"bool[M, N]", "y = x > 0", TYPE_BOOL},
    {"f32[]", "y = s", TYPE_F32},          {"f8e4m3[M]", "y = r", TYPE_F32},
    {"f32[M]", "y = sum[N](x)", TYPE_F32}, {"f32[N]", "y = sum[M](x)", TYPE_F32},
};
enum { STORES = sizeof stores / sizeof *stores };

START_TEST(stores_take_what_fits)
{
    const StoreCase *c = &stores[_i];
    FromText f = from_body(c->output, c->body);
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    verify_graph(f.graph);
    ck_assert_int_eq(node(f.graph, f.graph->outputs.data[0].value)->type, c->type);
    arena_free(f.arena);
}
END_TEST

START_TEST(outputs_read_unrounded)
{
    FromText f = from_text("graph g[M = 4](x : f32[M]) -> (y : bf16[M], z : f32[M]) {\n"
                           "y = x + 1  z = y * 2 }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Node z = f.graph->outputs.data[1].value;
    ck_assert_uint_eq(arg(f.graph, z, 0).id, f.graph->outputs.data[0].value.id);
    ck_assert_str_eq(output_text(f.graph, 1), "y * 2.0");
    arena_free(f.arena);
}
END_TEST

/* ---- functions ---- */

START_TEST(functions_are_hygienic)
{
    FromText f =
        from_text("fn twice(x) { a = x + 1  return a * 2 }\n"
                  "fn centred[K](v) = v - mean[K](v)\n"
                  "fn both[A, B](v) = centred[B](centred[A](v))\n"
                  "graph g[M = 2, N = 3](x : f32[M, N]) -> (y : f32[M, N], z : f32[M, N]"
                  ", w : f32[M, N]) {\n"
                  "a = x - 1  y = twice(a) + a  z = centred[M, N](x)  w = both[M, N](x) }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    verify_graph(f.graph);
    Node y = f.graph->outputs.data[0].value;
    ck_assert_str_eq(node_text(f.arena, f.graph, arg(f.graph, y, 0), true), "a * 2.0");
    Node inner = arg(f.graph, arg(f.graph, y, 0), 0);
    ck_assert_str_eq(node_text(f.arena, f.graph, inner, true), "a + 1.0");
    ck_assert_uint_ne(inner.id, arg(f.graph, y, 1).id);
    ck_assert_str_eq(output_text(f.graph, 1), "x - mean[M, N](x)");
    ck_assert_str_eq(output_text(f.graph, 2), "x - mean[M](x) - mean[N](x - mean[M](x))");
    arena_free(f.arena);
}
END_TEST

START_TEST(equal_calls_are_inlined_once)
{
    Arena *arena = arena_new();
    Text *text = text_new(arena);
    text_print(text, "fn g0(x) = x + 1\n");
    for (int i = 1; i < 60; i++) text_print(text, "fn g%d(x) = g%d(x) + g%d(x)\n", i, i - 1, i - 1);
    text_print(text, "graph g[M = 2](x : f32[M]) -> (y : f32[M]) { y = g59(x) }\n");
    FromText f = from_text(text_string(text));
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    ck_assert_int_lt(f.graph->nodes.count, 100);
    arena_free(f.arena);
    arena_free(arena);
}
END_TEST

START_TEST(std_is_written_in_the_language)
{
    static const char *const calls[] = {
        "softmax[N](x)",
        "log_softmax[N](x)",
        "layer_norm[M, N](x, 1e-5)",
        "rms_norm[N](x, s)",
        "l2_normalize[N](x, 1e-12)",
        "silu(x)",
        "gelu(x)",
        "gelu_tanh(x)",
        "relu(x)",
        "x - logsumexp[N](x)",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char body[100];
        snprintf(body, sizeof body, "y = %s", calls[i]);
        FromText f = from_body("f32[M, N]", body);
        ck_assert_msg(f.graph != NULL, "%s:\n%s", calls[i], f.report);
        arena_free(f.arena);
    }
}
END_TEST

/* What the hints say to write is in the language. */
START_TEST(hints_for_other_names_compile)
{
    static const char *const theirs[] = {
        "maximum",    "fmin",    "AMAX",      "select",    "fabs",    "power",       "square",
        "reciprocal", "neg",     "trunc",     "erfc",      "log10",   "tan",         "sinh",
        "cosh",       "atanh",   "isinf",     "isfinite",  "std",     "variance",    "avg",
        "norm",       "iota",    "len",       "half",      "float",   "int32",       "fp8",
        "E5M2",       "product", "logistic",  "exp10",     "fmax",    "minimum",     "gather",
        "logit",      "argmax",  "argmin",    "any",       "all",     "softplus",    "mish",
        "relu6",      "elu",     "hardswish", "logaddexp", "hypot",   "fma",         "fmod",
        "floordiv",   "clip",    "sumsq",     "nansum",    "one_hot", "masked_fill", "tril",
        "triu",       "sgn",     "cbrt",      "heaviside", "uint8_t", "shape",       "numel"};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        Arena *arena = arena_new();
        const char *hint = function_meant(arena, theirs[i], "N", "M");
        ck_assert_msg(hint && strncmp(hint, "write ", 6) == 0, "%s", theirs[i]);
        const char *end = strstr(hint, ", which");
        hint = arena_copy(arena, hint, end ? (size_t)(end - hint) : strlen(hint));
        FromText f = from_text(
            arena_format(arena,
                         "graph g[M = 2, N = 4](x : f32[M, N], y : f32[M, N], a : f32, b : f32,"
                         " c : bool[M, N], i : i32, lo : f32, hi : f32) -> (z : f32[M, N])"
                         " { z = x + y + (%s) + a * b * c * i + lo + hi }",
                         hint + 6));
        ck_assert_msg(f.graph != NULL, "%s:\n%s", theirs[i], f.report);
        arena_free(f.arena);
        arena_free(arena);
    }
}
END_TEST

/* A literal beyond its type is told where it is used; -inf and what f64 holds are not. */
START_TEST(literals_beyond_their_type_warn)
{
    static const struct {
        const char *body, *warning;
    } cases[] = {
        {"y = x * 1e39", "1:89: warning: f32 cannot hold this number: it becomes inf"},
        {"y = x + -1e39", "f32 cannot hold this number: it becomes -inf"},
        {"y = x * 1e-50", "f32 cannot hold this number: it becomes 0"},
        {"y = f16(70000.0) * x", "f16 cannot hold this number: it becomes inf"},
        {"y = i8(300) * x", "i8 cannot hold this number: it becomes 127"},
        {"y = x * (1e30 * 1e30)", "f32 cannot hold this number: it becomes inf"},
        {"y = x - 2 ** 200", "f32 cannot hold this number: it becomes inf"},
        {"y = x * (exp(9) - 3e38 * 2)", "f32 cannot hold this number: it becomes inf"},
        {"y = x + (0.0 - exp(88)) * 10", "f32 cannot hold this number: it becomes -inf"},
        {"z = d * 1e39  y = x + z", NULL},
        {"y = x / 0 + 1 / 0 + log(0) + 2 * inf + 10 ** 38", NULL},
        {"y = max(x, -inf) + 1e38", NULL},
        {"y = where(x > 3e38, x, 1e-40)", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(
            text, sizeof text,
            "graph g[M = 4](x : f32[M], d : f64[M], i : i64) -> (y : f32[M], i_ : f64[M]) {  %s  i_ = d + i }",
            cases[i].body);
        FromText f = from_text(text);
        ck_assert_msg(f.graph != NULL && f.warnings == (cases[i].warning != NULL), "%s\n%s", text,
                      f.report);
        if (cases[i].warning)
            ck_assert_msg(strstr(f.report, cases[i].warning) != NULL, "%s", f.report);
        arena_free(f.arena);
    }
}
END_TEST

/* ---- parameters ---- */

START_TEST(defaults_are_rounded_to_their_dtype)
{
    FromText f = from_text("graph g[M = 2](x : f32[M], a : f32 = 0.1, b : f64 = 0.1,"
                           " c : i8 = -1000, d : bool = true, e : bf16 = 0.1, n : f32 = -inf,"
                           " t : f32[]) -> (y : f64[M]) {\n"
                           "y = x + a + b + c + d + e + n + t }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    const Param *p = f.graph->params.data;
    ck_assert(p[1].default_value == (double)0.1f && p[1].has_default && p[1].scalar);
    ck_assert(p[2].default_value == 0.1);
    ck_assert(p[3].default_value == -128.0);
    ck_assert_msg(strstr(f.report, "i8 cannot hold this number: it becomes -128") != NULL, "%s",
                  f.report);
    ck_assert(p[4].default_value == 1.0);
    ck_assert(p[5].default_value == 0.10009765625);
    ck_assert(isinf(p[6].default_value) && p[6].default_value < 0);
    ck_assert(!p[7].scalar && !p[7].has_default && p[7].axes == 0);
    ck_assert(!p[0].scalar && p[0].axes == 1);
    arena_free(f.arena);
}
END_TEST

Suite *lower_suite(void)
{
    Suite *suite = suite_create("lower");
    TCase *c = tcase_create("lower");
    tcase_add_loop_test(c, types_follow_the_rules, 0, TYPE_CASES);
    tcase_add_test(c, literals_keep_their_digits_beside_f64);
    tcase_add_test(c, literals_beyond_their_type_warn);
    tcase_add_loop_test(c, stores_take_what_fits, 0, STORES);
    tcase_add_test(c, outputs_read_unrounded);
    tcase_add_test(c, functions_are_hygienic);
    tcase_add_test(c, equal_calls_are_inlined_once);
    tcase_add_test(c, std_is_written_in_the_language);
    tcase_add_test(c, defaults_are_rounded_to_their_dtype);
    tcase_add_test(c, hints_for_other_names_compile);
    suite_add_tcase(suite, c);
    return suite;
}
