/* test_judge.c: what the judge forgives and what it does not: small graphs, one element of an output
 * broken at a time. */
#include "compile.h"
#include "prop/data.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* An evaluated program of axes M and N. */
typedef struct {
    Arena *arena;
    Compilation compiled;
    Data data;
} Judged;

static Judged open_sized(const char *body, int64_t rows, int64_t columns)
{
    Judged j = {.arena = arena_new()};
    const char *text = arena_format(j.arena, "graph g[M = 4, N = 64]%s", body);
    CompileRequest request = {.text = text,
                              .length = strlen(text),
                              .name = "t.fuse",
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_GRAPH};
    j.compiled = compile(&request);
    ck_assert_msg(j.compiled.status == COMPILE_OK, "%s", j.compiled.diagnostics);
    const Sizes sizes = {{rows, columns}};
    ck_assert(make_data(&j.data, j.arena, j.compiled.lowered, &sizes, 1));
    return j;
}

static Judged open_judged(const char *body)
{
    return open_sized(body, 4, 64);
}

/* Evaluates again with the input's element set. */
static void set_input(Judged *j, int input, int64_t element, double value)
{
    const HostTensor *t = &j->data.inputs[input];
    dtype_store_float(t->dtype, (char *)t->data + element * dtype_info[t->dtype].bytes, value);
    ck_assert(evaluate_again(&j->data, j->compiled.lowered, 1, j->data.outputs, j->data.exact,
                             j->data.bound));
}

static void close_judged(Judged *j)
{
    compile_free(&j->compiled);
    arena_free(j->arena);
}

static Verdict judge_now(const Judged *j, int output)
{
    const Output *o = &j->data.graph->outputs.data[output];
    return judge(o->dtype, j->data.outputs[output].data, j->data.exact[output],
                 j->data.bound[output], axes_size(&j->data.sizes, o->axes));
}

static int64_t wrong_with(const Judged *j, int output, int64_t element, double value)
{
    const HostTensor *t = &j->data.outputs[output];
    char *at = (char *)t->data + element * dtype_info[t->dtype].bytes, kept[8];
    memcpy(kept, at, sizeof kept);
    dtype_store_float(t->dtype, at, value);
    const int64_t wrong = judge_now(j, output).wrong;
    memcpy(at, kept, sizeof kept);
    return wrong;
}

static double bound_of(const Judged *j, int output, int64_t element)
{
    return (double)j->data.bound[output][element];
}

START_TEST(only_elements_that_reach_a_step_are_forgiven)
{
    Judged j = open_judged(
        "(x : f32[M, N], s : f32[N]) -> (y : f32[M, N], n : f32[M], k : i32[M, N], c : i64[M], b : bool[M, N]) {"
        " y = round(x * s) * 0.25\n n = sum[N](floor(x * s))\n k = i32(x * 100.0 / 3.0)\n"
        " c = sum[N](i64(x * s > 0.3))\n b = x * s > 0.3 }");
    for (int64_t i = 0; i < 256; i++) {
        ck_assert_double_lt(bound_of(&j, 0, i), 1e-6);
        ck_assert_double_eq(bound_of(&j, 2, i), 0);
        ck_assert_int_eq(wrong_with(&j, 0, i, j.data.exact[0][i] + 0.25), 1);
        ck_assert_int_eq(wrong_with(&j, 2, i, exact_value(&j.data, 2, i) + 1), 1);
        ck_assert_int_eq(wrong_with(&j, 4, i, 1 - exact_value(&j.data, 4, i)), 1);
    }
    ck_assert_int_eq(wrong_with(&j, 1, 2, j.data.exact[1][2] + 1), 1);
    ck_assert_int_eq(wrong_with(&j, 3, 2, exact_value(&j.data, 3, 2) - 1), 1);
    set_input(&j, 1, 7, 1);
    set_input(&j, 0, 64 + 7, 1.5); /* a step of round, of one element alone */
    ck_assert_int_eq(wrong_with(&j, 0, 64 + 7, 0.25), 0);
    ck_assert_int_eq(wrong_with(&j, 0, 64 + 7, 1), 1);
    ck_assert_int_eq(wrong_with(&j, 0, 64 + 7, (double)NAN), 1);
    ck_assert_int_eq(wrong_with(&j, 0, 64 + 8, j.data.exact[0][64 + 8] + 0.25), 1);
    set_input(&j, 0, 64 + 7, 2); /* and of floor, in a sum */
    ck_assert_int_eq(wrong_with(&j, 1, 1, j.data.exact[1][1] - 1), 0);
    ck_assert_int_eq(wrong_with(&j, 1, 1, j.data.exact[1][1] - 2), 1);
    ck_assert_int_eq(wrong_with(&j, 1, 2, j.data.exact[1][2] - 1), 1);
    close_judged(&j);
}
END_TEST

/* Each is a function of a huge number, or of one that may be any number, that comes to something
 * ordinary. */
START_TEST(errors_end_where_functions_are_flat)
{
    static const char *const values[] = {
        "30.0 * tanh(x / 30.0)",
        "sigmoid(x)",
        "sigmoid(-x)",
        "erf(x * 0.7)",
        "exp(-x)",
        "exp2(-x * 3.0)",
        "expm1(-x)",
        "1.0 / (1.0 + exp(x))",
        "1.0 / (1.0 + exp(-x))",
        "min(max(x * 3.0, -2.0), 2.0)",
        "clamp(1.0 / (x * 0.1 - x / 10.0 + 0.0 * z), -2.0, 2.0)",
        "tanh(x * x * x * 1e9)",
        "where(x * 3.0 > 5.0, 1.0, x)",
        "x * 1.5 * sigmoid(-x * 1.5)",
        "0.5 * -x * (1.0 + erf(-x * 0.7071))",
        "log1p(exp(-x * 2.0))",
        "1.0 / (x * x * 1e10)",
        "max[N](where(index(N) == 9, -x * 3.0, z))",
        "sin(x * 0.0)",
        "log(sum[N](exp(30.0 * tanh(x / 30.0))))",
        "log(sum[N](exp(where(index(N) == 9, -x * 3.0, z))))",
        "f8e4m3(x * 3.0)",
        "sign(x * 3.0)",
        "1.0 / (1.0 + x * 2.0 * x)",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char body[256];
        const bool reduces = strstr(values[i], "[N]");
        snprintf(body, sizeof body, "(x : f32[M, N], z : f32[M, N]) -> (y : f32[M%s]) { y = %s }",
                 reduces ? "" : ", N", values[i]);
        Judged j = open_judged(body);
        set_input(&j, 0, 9, 1e30);
        const int64_t at = reduces ? 0 : 9;
        const double right = j.data.exact[0][at];
        ck_assert_msg(bound_of(&j, 0, at) <= 1, "%s: the bound of %g is %g", values[i], right,
                      bound_of(&j, 0, at));
        ck_assert_int_eq(judge_now(&j, 0).wrong, 0);
        ck_assert_int_eq(wrong_with(&j, 0, at, right + 5), 1);
        ck_assert_int_eq(wrong_with(&j, 0, at, (double)NAN), 1);
        close_judged(&j);
    }
}
END_TEST

START_TEST(what_may_be_nan_is_apart_from_what_may_be_infinite)
{
    Judged j = open_judged(
        "(x : f32[M, N]) -> (a : f32[M, N], b : f32[M, N], c : f32[M, N], d : f32[M, N], s : f32[M, N]) {"
        " near = x * 0.1 - x / 10.0\n a = 1.0 / near\n b = log(near)\n c = near / near\n"
        " tiny = x * 1e-30\n d = 0.0 / (tiny * tiny)\n s = sin(1.0 / (x * 0.0)) }");
    ck_assert_int_eq(wrong_with(&j, 0, 3, HUGE_VAL), 0);
    ck_assert_int_eq(wrong_with(&j, 0, 3, (double)NAN), 1); /* 1 / 0 is no NaN */
    for (int output = 1; output < 4; output++)
        ck_assert_int_eq(wrong_with(&j, output, 3, (double)NAN), 0);
    ck_assert_int_eq(judge_now(&j, 0).unchecked, 256);
    ck_assert_int_eq(judge_now(&j, 3).unchecked, 256);
    ck_assert_int_eq(judge_now(&j, 4).nans, 256);
    close_judged(&j);
}
END_TEST

START_TEST(integers_are_compared_as_integers)
{
    Judged j = open_judged(
        "(k : i64[N], p : bool[N]) -> (y : i64[N], q : bool[N], w : i64[N]) {"
        " y = k * 0 + 1152921504606846976 + index(N)\n q = !p\n w = prod[M](where(index(M) == 0, k + 3, 1)) }");
    int64_t *y = j.data.outputs[0].data;
    unsigned char *q = j.data.outputs[1].data;
    y[5] += 17;
    ck_assert_int_eq(judge_now(&j, 0).wrong, 1);
    ck_assert_int_eq(judge_now(&j, 0).worst, 5);
    ck_assert_double_eq(judge_now(&j, 0).worst_ulps, 17);
    y[5] -= 18;
    ck_assert_int_eq(judge_now(&j, 0).wrong, 1);
    ck_assert_int_eq(judge_now(&j, 1).wrong, 0);
    q[2] = (unsigned char)(q[2] ? 2 : 255);
    ck_assert_int_eq(judge_now(&j, 1).wrong, 1);
    ck_assert_int_eq(judge_now(&j, 2).wrong, 0);
    close_judged(&j);
}
END_TEST

/* How far a computed value and all others of its row may be off. */
typedef struct {
    double low, high;
} Ends;

static Ends ends_of(const Judged *j, int output, int64_t element)
{
    const double v = j->data.exact[output][element], e = DOUBT * bound_of(j, output, element);
    return (Ends){v - e, v + e};
}

/* Compares output 1 = (output 0 == its largest along M or N, or both) with what the ends of all
 * elements tell; how many are in doubt. */
static int64_t check_largest(const Judged *j, int64_t rows, int64_t columns, bool over_rows,
                             bool over_columns)
{
    int64_t in_doubt = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        const Ends own = ends_of(j, 0, i);
        double low = -HUGE_VAL, high = -HUGE_VAL;
        for (int64_t k = 0; k < rows * columns; k++) {
            const bool same_row = i / columns == k / columns, same = i % columns == k % columns;
            if (k == i || !((over_columns || same) && (over_rows || same_row))) continue;
            low = fmax(low, ends_of(j, 0, k).low);
            high = fmax(high, ends_of(j, 0, k).high);
        }
        const bool doubt = own.low <= high && own.high >= low;
        in_doubt += doubt;
        ck_assert_msg(doubt == (bound_of(j, 1, i) > 0), "element %lld", (long long)i);
        if (!doubt) ck_assert_double_eq(exact_value(&j->data, 1, i), own.low > high);
    }
    return in_doubt;
}

START_TEST(the_largest_is_known_by_its_lead)
{
    static const struct {
        const char *axes;
        int64_t rows, columns;
        bool over_rows, over_columns;
    } cases[] = {
        {"N", 4, 64, false, true},  {"N", 2, 1100, false, true}, {"M", 4, 64, true, false},
        {"M", 700, 3, true, false}, {"M, N", 4, 64, true, true}, {"M, N", 70, 20, true, true},
        {"N", 300, 2, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "(x : f32[M, N], s : f32[N]) -> (y : f32[M, N], b : bool[M, N]) {"
                 " y = x * s * 1.1 + 0.1\n b = y == max[%s](y) }",
                 cases[i].axes);
        const int64_t rows = cases[i].rows, columns = cases[i].columns;
        Judged j = open_sized(body, rows, columns);
        ck_assert_int_eq(
            check_largest(&j, rows, columns, cases[i].over_rows, cases[i].over_columns), 0);
        for (int64_t k = 0; k < rows * columns; k++)
            ck_assert_int_eq(wrong_with(&j, 1, k, 1 - exact_value(&j.data, 1, k)), 1);
        set_input(&j, 1, 1, 1); /* two leaders of the second row, an ulp apart */
        set_input(&j, 1, 0, 1);
        set_input(&j, 0, columns, 300);
        set_input(&j, 0, columns + 1, nextafterf(300, 301));
        const int64_t in_doubt =
            check_largest(&j, rows, columns, cases[i].over_rows, cases[i].over_columns);
        ck_assert_int_eq(in_doubt, cases[i].over_columns ? 2 : 0);
        close_judged(&j);
    }
}
END_TEST

/* Each is true of the largest (smallest) alone, of all others alone, or of all or none. */
START_TEST(every_comparison_with_the_largest)
{
    static const char *const comparisons[] = {
        "y == top", "top == y", "y != top", "y >= top",   "top <= y", "y < top",
        "top > y",  "y <= top", "top >= y", "y > top",    "top < y",  "y == low",
        "low == y", "low != y", "y <= low", "low >= y",   "y > low",  "low < y",
        "y >= low", "low <= y", "y < low",  "!(y > low)", "low > y",
    };
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "(x : f32[M, N], s : f32[N]) -> (y : f32[M, N], b : bool[M, N], t : bool[M, N]) {"
                 " y = x * s + 0.1\n top = max[N](y)\n low = min[N](y)\n b = %s\n"
                 " t = top == y + low * 0.0 }",
                 comparisons[i]);
        Judged j = open_judged(body);
        for (int64_t k = 0; k < 256; k++)
            ck_assert_msg(!(bound_of(&j, 1, k) > 0), "%s", comparisons[i]);
        ck_assert_int_eq(judge_now(&j, 1).wrong, 0);
        int64_t in_doubt = 0; /* of another value than the one whose maximum it is */
        for (int64_t k = 0; k < 256; k++) in_doubt += bound_of(&j, 2, k) > 0;
        ck_assert_int_eq(in_doubt, 4);
        close_judged(&j);
    }
}
END_TEST

START_TEST(ties_and_special_values_beside_the_largest)
{
    Judged j = open_judged("(x : f32[M, N], s : f32[N]) -> (y : f32[M, N], b : bool[M, N]) {"
                           " y = where(index(N) > 1, x * s, x)\n b = y == max[N](y) }");
    for (int64_t i = 0; i < 2; i++) set_input(&j, 0, i, 1000); /* equal, and both exact */
    for (int64_t i = 64; i < 128; i++) set_input(&j, 0, i, -HUGE_VAL);
    set_input(&j, 0, 128 + 9, (double)NAN);
    set_input(&j, 0, 192 + 7, HUGE_VAL);
    set_input(&j, 1, 7, 2);
    for (int64_t i = 0; i < 256; i++) ck_assert_double_eq(bound_of(&j, 1, i), 0);
    for (int64_t i = 0; i < 64; i++) {
        ck_assert_int_eq((int64_t)exact_value(&j.data, 1, i), i < 2);
        ck_assert_int_eq((int64_t)exact_value(&j.data, 1, 128 + i), 0);
        ck_assert_int_eq((int64_t)exact_value(&j.data, 1, 192 + i), i == 7);
    }
    set_input(&j, 0, 1, nextafterf(1000, 0)); /* exact, and less */
    ck_assert_double_eq(bound_of(&j, 1, 1), 0);
    ck_assert_double_eq(bound_of(&j, 1, 0), 0);
    close_judged(&j);
    Judged wild = open_judged("(x : f32[M, N]) -> (y : f32[M, N], b : bool[M, N]) {"
                              " y = where(index(N) == 5, log(x * 0.1 - x / 10.0), x * 1.1)\n"
                              " b = y == max[N](y) }");
    for (int64_t i = 0; i < 256; i++) /* what may be NaN settles nothing */
        ck_assert(bound_of(&wild, 1, i) > 0);
    close_judged(&wild);
}
END_TEST

/* As the backward pass of max has it: the gradient goes to the largest element. */
START_TEST(what_goes_to_the_largest_is_checked)
{
    Judged j = open_judged(
        "(x : f32[M, N], s : f32[N], g : f32[M]) -> (d : f32[M, N]) { y = abs(x * s + 0.1)\n"
        " is_max = y == max[N](y)\n"
        " d = where(is_max, (g + 3.0) / sum[N](where(is_max, 1.0, 0.0)), 0.0) }");
    int64_t found = 0;
    for (int64_t i = 0; i < 256; i++) {
        const double d = j.data.exact[0][i];
        ck_assert_double_lt(bound_of(&j, 0, i), 1e-4);
        found += d != 0;
        ck_assert_int_eq(wrong_with(&j, 0, i, d != 0 ? d * 1.01 : 0.5), 1);
        if (d != 0) ck_assert_int_eq(wrong_with(&j, 0, i, 0), 1);
    }
    ck_assert_int_eq(found, 4);
    ck_assert_int_eq(judge_now(&j, 0).wrong + judge_now(&j, 0).unchecked, 0);
    close_judged(&j);
}
END_TEST

/* Each column has a largest of its own: the bound is wide where numbers cancel. */
START_TEST(the_largest_error_and_the_largest_share)
{
    Judged j = open_judged(
        "(x : f32[M, N]) -> (y : f32[M, N]) { y = where(index(N) == 0, x + 1e4 - 1e4, x) }");
    float *y = j.data.outputs[0].data;
    y[0] += 1e-4f;
    y[1] = nextafterf(y[1], 9);
    const Verdict v = judge_now(&j, 0);
    ck_assert_int_eq(v.worst, 1);
    ck_assert_double_gt(v.worst_ulps, 100);
    ck_assert_double_lt(v.worst_share, 2);
    ck_assert_int_eq(v.wrong, 1);
    close_judged(&j);
}
END_TEST

START_TEST(no_infinity_for_the_largest_number)
{
    Judged j = open_judged(
        "(x : f32[M, N]) -> (y : f32[M, N], z : f16[M, N]) {"
        " y = where(x > 0.0, 3.4028234e38, -3.4028234e38)\n z = where(x > 0.0, 65519.0, 65521.0) }");
    ck_assert_int_eq(judge_now(&j, 0).wrong + judge_now(&j, 1).wrong, 0);
    ck_assert_int_eq(wrong_with(&j, 0, 3, copysign(HUGE_VAL, j.data.exact[0][3])), 1);
    for (int64_t i = 0; i < 256; i++)
        ck_assert_int_eq(wrong_with(&j, 1, i, j.data.exact[1][i] > 65520 ? 65504 : HUGE_VAL), 1);
    close_judged(&j);
}
END_TEST

/* A scale whose exponent is in doubt may double an element, which is then rounded to larger steps. */
START_TEST(what_may_be_larger_is_rounded_to_larger_steps)
{
    static const struct {
        double exact, doubt, stored;
        int64_t wrong;
    } cases[] = {{1.94, 1.94, 4.0, 0},  {1.94, 1.94, 4.5, 1}, {1.94, 1.94, 3.75, 0},
                 {1.94, 0, 2.0, 0},     {1.94, 0, 1.75, 1},   {1.99, 0, 2.25, 1},
                 {300, 300, 448, 0},    {300, 0, 320, 1},     {-1.94, 1.94, -4.0, 0},
                 {-1.94, 1.94, 0.25, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char stored[8] = {0};
        dtype_store_float(DTYPE_F8E4M3, stored, cases[i].stored);
        const double exact = cases[i].exact;
        const float bound = (float)(cases[i].doubt / DOUBT);
        ck_assert_msg(judge(DTYPE_F8E4M3, stored, &exact, &bound, 1).wrong == cases[i].wrong,
                      "case %zu", i);
    }
}
END_TEST

Suite *judge_suite(void)
{
    Suite *suite = suite_create("judge");
    TCase *cases = tcase_create("one element");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, only_elements_that_reach_a_step_are_forgiven);
    tcase_add_test(cases, errors_end_where_functions_are_flat);
    tcase_add_test(cases, what_may_be_nan_is_apart_from_what_may_be_infinite);
    tcase_add_test(cases, integers_are_compared_as_integers);
    tcase_add_test(cases, the_largest_is_known_by_its_lead);
    tcase_add_test(cases, every_comparison_with_the_largest);
    tcase_add_test(cases, ties_and_special_values_beside_the_largest);
    tcase_add_test(cases, what_goes_to_the_largest_is_checked);
    tcase_add_test(cases, the_largest_error_and_the_largest_share);
    tcase_add_test(cases, no_infinity_for_the_largest_number);
    tcase_add_test(cases, what_may_be_larger_is_rounded_to_larger_steps);
    suite_add_tcase(suite, cases);
    return suite;
}
