/* test_lower_errors.c: errors and warnings about names, axes and types: each has its place and its
 * hint. */
#include "from_text.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *text, *place, *message, *hint;
} ErrorCase;

#define HEAD "graph g[M = 4, N = 8](x : f32[M, N], i : i32[M], p : bool[M])"
static const ErrorCase error_cases[] = {
    {HEAD " -> (y : f32[M]) {\n y = xx }", "2:6", "unknown name 'xx'", "did you mean 'x'"},
    {HEAD " -> (y : f32[M]) {\n y = N }", "2:6", "unknown name 'N'", "size(N)"},
    {HEAD " -> (y : f32[M]) {\n y = z z = i }", "2:6", "unknown name 'z'", "is bound later"},
    {HEAD " -> (y : f32[M]) {\n y = y + i }", "2:6", "unknown name 'y'", "in its own definition"},
    {HEAD " -> (y : f32[M]) {\n y = softmx(i) }", "2:6", "unknown function 'softmx'", NULL},
    {HEAD " -> (y : f32[M]) {\n y = sqr(i) }", "2:6", "unknown function 'sqr'", "x * x"},
    {HEAD " -> (y : f32[M]) {\n y = sqtr(i) }", "2:6", "unknown function 'sqtr'", "'sqrt'"},
    {HEAD " -> (y : f32[M]) {\n y = Maximum(i, i) }", "2:6", "unknown function 'Maximum'",
     "write max(a, b)"},
    {HEAD " -> (y : f32[M]) {\n y = float(i) }", "2:6", "unknown function 'float'", "write f32(x)"},
    {HEAD " -> (y : f32[M]) {\n y = asin(i) }", "2:6", "unknown function 'asin'", "no inverses"},
    {HEAD " -> (y : f32[M]) {\n y = fp8(i) }", "2:6", "unknown function 'fp8'", "write f8e4m3(x)"},
    {HEAD " -> (y : f32[M]) {\n y = where(True, i, 0) }", "2:12", "unknown name 'True'",
     "write true"},
    {HEAD " -> (y : f32[M]) {\n y = atan(i) }", "2:6", "unknown function 'atan'", "no inverses"},
    {HEAD " -> (y : f32[M]) {\n y = sum[N](X) }", "2:13", "unknown name 'X'", "'x'"},
    {HEAD " -> (y : f32[M]) {\n y = silu(i) }", "2:6", "unknown function 'silu'", "import \"std\""},
    {HEAD " -> (y : f32[M]) {\n y = sum(x) }", "2:6", "needs its axes", "sum[N](...)"},
    {HEAD " -> (y : f32[M]) {\n y = max(x) }", "2:6", "needs its axes", "max[N](...)"},
    {HEAD " -> (y : f32[M]) {\n y = sum[K](x) }", "2:10", "unknown axis 'K'", NULL},
    {HEAD " -> (y : f32[M]) {\n y = sum[N](i) }", "2:6", "'sum' over [N]", "sum[M]"},
    {HEAD " -> (y : f32[M]) {\n y = sum[N, N](x) }", "2:13", "named twice", NULL},
    {HEAD " -> (y : f32[M]) {\n y = index(K) }", "2:12", "unknown axis 'K'", NULL},
    {HEAD " -> (y : f32[M]) {\n y = size(3) }", "2:11", "name of an axis", NULL},
    {HEAD " -> (y : f32[M]) {\n y = exp[M](i) }", "2:6", "takes no axes", NULL},
    {HEAD " -> (y : f32[M]) {\n y = exp(i, i) }", "2:6", "takes 1 argument, not 2", NULL},
    {HEAD " -> (y : f32[M]) {\n y = where(i, i, i) }", "2:12", "needs a condition, not a number",
     "!= 0"},
    {HEAD " -> (y : f32[M]) {\n y = !i }", "2:7", "needs a condition, not a number", "!= 0"},
    {HEAD " -> (y : bool[M]) {\n y = p && i }", "2:11", "needs a condition", "!= 0"},
    {HEAD " -> (y : f32[M]) {\n y = x }", "2:6", "[M], but its expression has [M, N]", "sum[N]"},
    {HEAD " -> (y : f32[M, N]) {\n y = i }", "2:6", "[M, N], but its expression has [M]",
     "declare y : f32[M]"},
    {HEAD " -> (y : f32[M]) {\n y = 1 }", "2:6", "but its expression has []", NULL},
    {HEAD " -> (y : f32[N]) {\n y = mean[N](x * i) }", "2:6", "[N], but its expression has [M]",
     "mean[M](...)"},
    {HEAD " -> (y : f32[]) {\n y = sum[N](x) }", "2:6", "[], but its expression has [M]",
     "sum[M, N](...)"},
    {HEAD " -> (y : f32[N]) {\n s = sum[N](x * i)\n y = 2 * s / size(N) }", "3:6",
     "[N], but its expression has [M]", "sum[M](...)"},
    {HEAD " -> (y : f32[N]) {\n y = rsqrt(mean[N](x * x) + 1e-5) }", "2:6",
     "[N], but its expression has [M]", "mean[M](...)"},
    {HEAD " -> (y : f32[N]) {\n y = i + sum[N](x) }", "2:6", "[N], but its expression has [M]", ""},
    {HEAD " -> (y : i64[M]) {\n y = argmax[N](x) }", "2:6", "unknown function",
     "min[N](where(x == max[N](x), index(N), size(N)))"},
    {HEAD " -> (y : f32[M, N]) {\n y = cumsum[N](x) }", "2:6", "unknown function",
     "no running sums"},
    {HEAD " -> (y : f32[M, N]) {\n y = cumlogsumexp[N](x) }", "2:6", "unknown function",
     "no running sums"},
    {HEAD " -> (y : f32[M, N]) {\n y = x * pi }", "2:10", "unknown name 'pi'", "write 3.14"},
    {HEAD " -> (y : f32[M, N]) {\n y = x * popcount(i) }", "2:10", "unknown function",
     "no operations on bits"},
    {HEAD " -> (y : f32[M, N]) {\n y = dropout(x) }", "2:6", "unknown function",
     "no random numbers"},
    {HEAD " -> (y : f32[M, N]) {\n y = scna(x) }", "2:6", "unknown function", ""},
    {HEAD " -> (y : i32[M]) {\n y = i / 2 }", "2:6", "y' is i32, but its expression is f32",
     "i32("},
    {HEAD " -> (y : bool[M]) {\n y = i }", "2:6", "is bool, but its expression is i64", "!= 0"},
    {HEAD " -> (y : f32[M], z : f32[M]) {\n y = i + 0.5 }", "1:79", "'z' is never bound", NULL},
    {HEAD " -> (y : f32[M], scale : f32[M]) {\n y = i + 0.5\n scael = i }", "1:79",
     "'scale' is never bound", "'scael' is bound, and never used"},
    {HEAD " -> (y : f32[M], out : f32[M]) {\n y = i + 0.5\n z = i }", "1:79",
     "'out' is never bound", "'z' is bound, and never used"},
    {HEAD " -> (y : f32[M], out : f32[M]) {\n y = i + 0.5\n a = i\n b = i }", "1:79",
     "'out' is never bound", NULL},
    {HEAD " -> (y : f32[M]) {\n y = i + 1\n y = i + 2 }", "3:2", "'y' is bound twice", "2:2"},
    {HEAD " -> (y : f32[M]) {\n x = i + 1\n y = i + 2 }", "2:2", "'x' is bound twice",
     "it is the input of t.fuse:1:23, which keeps its value: bind a new name"},
    {HEAD " -> (x : f32[M]) {\n x = i + 1 }", "1:67", "an input and an output", NULL},
    {HEAD " -> (y : f32[M], y : f32[M]) {\n y = i + 1 }", "1:79", "declared twice", NULL},
    {HEAD " -> (y : f32) {\n y = sum[M](i) }", "1:67", "needs brackets", "y : f32[]"},
    {HEAD " -> (y : f31[M]) {\n y = i + 1 }", "1:71", "unknown dtype 'f31'", "there are f64, f32,"},
    {HEAD " -> (y : u16[M]) {\n y = i + 1 }", "1:71", "unknown dtype 'u16'",
     "convert the tensor to i32"},
    {HEAD " -> (y : fp4[M]) {\n y = i + 1 }", "1:71", "unknown dtype 'fp4'",
     "no elements of 4 bits"},
    {HEAD " -> (y : BF16[M]) {\n y = i + 1 }", "1:71", "unknown dtype 'BF16'", "'bf16'"},
    {HEAD " -> (y : Float[M]) {\n y = i + 1 }", "1:71", "unknown dtype 'Float'", "'f32'"},
    {HEAD " -> () {\n u = x }", "1:7", "no output", NULL},
    {"graph g[M = 1, N = 2](x : f32[N, M]) -> (y : f32[M, N]) {\n y = x }", "1:23", "graph's order",
     "x : f32[M, N]"},
    {"graph g[M = 1, N = 2](x : f32[N, M]) -> (y : f32[M, N]) {\n y = x }", "1:23", "graph's order",
     "copy the tensor to that order"},
    {"graph g[A = 1, M = 1, N = 2](x : f32[M, A, N]) -> (y : f32[A, M, N]) {\n y = x }", "1:30",
     "graph's order", "gives the strides"},
    {"graph g[M = 1](x : f32[M, M]) -> (y : f32[M]) {\n y = x }", "1:27", "axis 'M' twice", NULL},
    {"graph g[M = 1](x : f32[K]) -> (y : f32[M]) {\n y = x }", "1:24", "unknown axis 'K'", NULL},
    {"graph g[M = 1, M = 2](x : f32[M]) -> (y : f32[M]) {\n y = x }", "1:16", "declared twice",
     NULL},
    {"graph g[M = 1](x : f32[M], x : f32) -> (y : f32[M]) {\n y = x }", "1:28", "bound twice",
     "1:16"},
    {"graph g[M = 1](x : f32[M], c : i32 = 1.5) -> (y : f32[M]) {\n y = x + c }", "1:38",
     "default does not fit a scalar of i32", NULL},
    {"graph g[M = 1](x : f32[M], c : f32 = true) -> (y : f32[M]) {\n y = x + c }", "1:38",
     "default does not fit a scalar of f32", NULL},
    {"graph g[M = 1](x : f32[M], c : f32 = --1) -> (y : f32[M]) {\n y = x + c }", "1:38",
     "signed literal", NULL},
    {"graph g[A,B,C,D,E,F,G,H,I](x : f32[A,B,C,D,E,F,G,H,I]) -> (y : f32[]) {\n y = 1 }", "1:28",
     "at most 8", NULL},
    {"graph g[A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q](x : f32[A]) -> (y : f32[A]) {\n y = x }", "1:41",
     "at most 16 axes", NULL},
    {"graph g[M = 4294967296, N = 2147483648](x : f32[M, N]) -> (y : f32[M]) {\n"
     " y = sum[N](x) }",
     "1:41", "more than 2^63 bytes", NULL},
    {"fn f(a) = a + b\n" HEAD " -> (y : f32[M]) {\n y = f(i) + 1.0 }", "1:15", "unknown name 'b'",
     NULL},
    {"fn f(a) = a + b\n" HEAD " -> (y : f32[M]) {\n y = i + 1 }", "1:15", "unknown name 'b'", NULL},
    {"fn f(a) = f(a)\n" HEAD " -> (y : f32[M]) {\n y = i + 1 }", "1:11", "recursion", NULL},
    {"fn f(a) = h(a)\nfn h(a) = f(a)\n" HEAD " -> (y : f32[M]) {\n y = f(i) }", "2:11", "recursion",
     NULL},
    {"fn f(a) = a\nfn f(a) = a + 1\n" HEAD " -> (y : f32[M]) {\n y = f(i) }", "2:4",
     "defined twice", "1:4"},
    {"fn exp(a) = a\n" HEAD " -> (y : f32[M]) {\n y = i }", "1:4", "built-in", NULL},
    {"fn f(a, a) = a\n" HEAD " -> (y : f32[M]) {\n y = i }", "1:9", "bound twice", NULL},
    {"fn f[K](a) = sum[K](a)\n" HEAD " -> (y : f32[M]) {\n y = f(x) }", "3:6",
     "takes 1 axis in brackets, not 0", "f[N](...)"},
    {"fn f[K, L](a) = sum[K, L](a)\n" HEAD " -> (y : f32[M]) {\n y = f[N](x) }", "3:6",
     "takes 2 axes in brackets, not 1", NULL},
    {"fn f[K](a) = sum[K](a)\n" HEAD " -> (y : f32[M]) {\n y = f[N](i) }", "1:14", "'sum' over [N]",
     "called at t.fuse:3:6"},
    {"fn f[K](a) = index(K) + a\n" HEAD " -> (y : f32[M, N]) {\n y = f[M, N](x) }", "1:14",
     "of several axes [M, N]", NULL},
    {"import \"std\"\n" HEAD " -> (y : f32[M]) {\n y = softmax[N](i) }", "3:6",
     "in 'softmax': 'max' over [N]", NULL},
#define CUBE "graph g[B = 2, C = 3, H = 4](x : f32[B, C, H], w : f32[C], s : f32)"
    {CUBE " -> (y : f32[B, H]) {\n y = std[C](x) }", "2:6", "unknown function",
     "write sqrt(var[C](x)), which divides by size(C)"},
    {CUBE " -> (y : f32[C]) {\n y = std[B, H](x) }", "2:6", "unknown function",
     "write sqrt(var[B, H](x)), which divides by size(B) * size(H)"},
    {CUBE " -> (y : i64[B, H]) {\n y = argmax[C](x) }", "2:6", "unknown function",
     "write min[C](where(x == max[C](x), index(C), size(C)))"},
    {CUBE " -> (y : i64[C]) {\n y = argmax[B, H](x) }", "2:6", "unknown function", ""},
    {CUBE " -> (y : f32[B, H]) {\n y = average(x, C) }", "2:6", "unknown function",
     "write mean[C](x)"},
    {CUBE " -> (y : f32[C, H]) {\n y = amax(x, 0) }", "2:6", "unknown function", "write max[B](x)"},
    {CUBE " -> (y : f32[B, C]) {\n y = norm[Q](x) }", "2:6", "unknown function",
     "write sqrt(sum[H](x * x))"},
    {CUBE " -> (y : f32[B, C, H]) {\n y = tril[C, H](x) }", "2:6", "unknown function",
     "write where(index(H) <= index(C), x, 0)"},
    {CUBE " -> (y : f32[B, C, H]) {\n y = triu[C](x) }", "2:6", "unknown function",
     "write where(index(C) >= index(B), x, 0)"},
    {CUBE " -> (y : f32[B, H]) {\n y = topk[C](x) }", "2:6", "unknown function",
     "sum[C](where(c, 1, 0)) counts"},
    {CUBE " -> (y : f32[B, H]) {\n y = sum[C](x, C) }", "2:6", "takes 1 argument",
     "axes go in brackets: sum[C](x)"},
    {CUBE " -> (y : f32[B]) {\n y = max[C](x, H) }", "2:6", "takes 1 argument",
     "axes go in brackets: max[C, H](x)"},
    {CUBE " -> (y : f32[]) {\n y = mean[H](sum[C](w)) }", "2:6", "'mean' over [H]",
     "over [H] it changes nothing: write sum[C](w)\n"},
    {CUBE " -> (y : f32[]) {\n y = 2 * max[H](s + 1) }", "2:10", "'max' over [H]",
     "over [H] it changes nothing: write (s + 1)\n"},
    {CUBE " -> (y : f32[]) {\n y = mean[C, H](w) }", "2:6", "'mean' over [H]",
     "over [H] it changes nothing: write mean[C](w)\n"},
    {CUBE " -> (y : f32[]) {\n y = sum[H](sum[C](w)) }", "2:6", "'sum' over [H]",
     "a single number, which has no axis"},
    {CUBE " -> (y : f32[]) {\n y = sum[C, H](w) }", "2:6", "'sum' over [H]",
     "its own axes, as in sum[C]"},
    {"import \"std\"\n" CUBE " -> (y : f32[B, C, H]) {\n y = softmax(x, C) }", "3:6",
     "takes 1 axis in brackets", "softmax[C](...)"},
    {HEAD " -> (y : f32[M]) {\n y = i }\n" HEAD " -> (y : f32[M]) {\n y = i }", "3:7",
     "graph 'g' is defined twice", "1:7"},
};
#undef CUBE
enum { ERROR_CASES = sizeof error_cases / sizeof *error_cases };

START_TEST(errors_have_places_and_hints)
{
    const ErrorCase *c = &error_cases[_i];
    char place[60];
    snprintf(place, sizeof place, "t.fuse:%s: error: ", c->place);
    FromText f = from_text(c->text);
    ck_assert_msg(f.graph == NULL && f.errors == 1, "%s\n%s", c->text, f.report);
    ck_assert_msg(strstr(f.report, place) != NULL, "%s not in\n%s", place, f.report);
    ck_assert_msg(strstr(f.report, c->message) != NULL, "%s not in\n%s", c->message, f.report);
    const char *hint = strstr(f.report, "hint: ");
    if (c->hint && !*c->hint)
        ck_assert_msg(!hint, "%s", f.report);
    else if (c->hint)
        ck_assert_msg(hint && strstr(hint, c->hint), "%s not in\n%s", c->hint, f.report);
    arena_free(f.arena);
}
END_TEST

START_TEST(one_bad_name_is_one_error)
{
    FromText f = from_text(HEAD " -> (y : f32[M], z : f32[M]) {\n"
                                " a = nope\n b = a + 1\n y = b\n z = sum[K](x) + nix }");
    ck_assert_int_eq(f.errors, 3);
    ck_assert_ptr_nonnull(strstr(f.report, "'nope'"));
    ck_assert_ptr_nonnull(strstr(f.report, "axis 'K'"));
    ck_assert_ptr_nonnull(strstr(f.report, "'nix'"));
    arena_free(f.arena);
}
END_TEST

START_TEST(an_error_inside_a_function_is_told_once)
{
    FromText f = from_text("fn f[K](a) = sum[K](a)\n" HEAD " -> (y : f32[M]) {\n"
                           " y = f[N](i) + f[N](i + 1) + f[N](p) }");
    ck_assert_int_eq(f.errors, 1);
    arena_free(f.arena);
}
END_TEST

/* ---- warnings ---- */

START_TEST(unused_names_warn)
{
    FromText f = from_text("import \"std\"\nfn unused(a, b) { c = a  return b }\n" HEAD
                           " -> (y : f32[M]) {\n u = x * 2\n y = unused(i, i) + 0.5 }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    ck_assert_int_eq(f.warnings, 2);
    ck_assert_ptr_nonnull(strstr(f.report, "t.fuse:4:2: warning: binding 'u' is never used"));
    ck_assert_ptr_nonnull(strstr(f.report, "t.fuse:3:50: warning: input 'p' is never used"));
    arena_free(f.arena);
}
END_TEST

START_TEST(separate_namespaces)
{
    FromText f = from_text("fn f(f) = f + 1\n"
                           "graph g[mean = 4, max = 0](mean : f32[mean, max], sum : f32[mean])"
                           " -> (exp : f32[mean]) {\n"
                           " f = sum[max](mean) + f(sum)\n exp = exp(f) }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    ck_assert_int_eq(f.warnings, 0);
    ck_assert_str_eq(output_text(f.graph, 0), "exp(f)");
    ck_assert_int_eq(f.graph->axes[1].size, 0);
    arena_free(f.arena);
}
END_TEST

Suite *lower_errors_suite(void)
{
    Suite *suite = suite_create("lower_errors");
    TCase *c = tcase_create("errors");
    tcase_add_loop_test(c, errors_have_places_and_hints, 0, ERROR_CASES);
    tcase_add_test(c, one_bad_name_is_one_error);
    tcase_add_test(c, an_error_inside_a_function_is_told_once);
    tcase_add_test(c, unused_names_warn);
    tcase_add_test(c, separate_namespaces);
    suite_add_tcase(suite, c);
    return suite;
}
