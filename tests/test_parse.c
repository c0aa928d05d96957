/* test_parse.c: the front end from text to tree, and its diagnostics. */
#include "import_file.h"
#include "parsed.h"
#include "suites.h"

#include "frontend/ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_report(const char *text, const char *expected)
{
    Parsed p = parse_text(text);
    ck_assert_str_eq(text_string(p.d.text), expected);
    arena_free(p.arena);
}

/* `part` occurs in the reports, and there are `errors` of them. */
static void check_error(const char *text, int errors, const char *part)
{
    Parsed p = parse_text(text);
    const char *reports = text_string(p.d.text);
    ck_assert_msg(strstr(reports, part) != NULL, "no \"%s\" in:\n%s", part, reports);
    ck_assert_msg(p.d.errors == errors, "%d errors, not %d:\n%s", p.d.errors, errors, reports);
    arena_free(p.arena);
}

static void check_tree(const char *expression, const char *expected)
{
    char text[256];
    snprintf(text, sizeof text, "fn f(x) = %s", expression);
    Parsed p = parse_text(text);
    ck_assert_msg(p.d.errors == 0, "%s", text_string(p.d.text));
    const char *tree = strstr(p.tree, "return\n") + strlen("return\n");
    ck_assert_str_eq(tree, expected);
    arena_free(p.arena);
}

#define HEAD "graph f[N](x : f32[N]) -> (y : f32[N]) {\n"

/* ---- what is read ---- */

START_TEST(test_precedence)
{
    check_tree("-x ** 2", "        unary -\n"
                          "            binary **\n"
                          "                name x\n"
                          "                integer 2\n");
    check_tree("2 ** -x ** 3", "        binary **\n"
                               "            integer 2\n"
                               "            unary -\n"
                               "                binary **\n"
                               "                    name x\n"
                               "                    integer 3\n");
    check_tree("1 - x - 2", "        binary -\n"
                            "            binary -\n"
                            "                integer 1\n"
                            "                name x\n"
                            "            integer 2\n");
    check_tree("x || !x == 1 && x < 2 + 3 * x", "        binary ||\n"
                                                "            name x\n"
                                                "            binary &&\n"
                                                "                binary ==\n"
                                                "                    unary !\n"
                                                "                        name x\n"
                                                "                    integer 1\n"
                                                "                binary <\n"
                                                "                    name x\n"
                                                "                    binary +\n"
                                                "                        integer 2\n"
                                                "                        binary *\n"
                                                "                            integer 3\n"
                                                "                            name x\n");
}
END_TEST

START_TEST(test_literals)
{
    check_tree("1e-5", "        float 1e-5\n");
    check_tree(".5", "        float .5\n");
    check_tree("1.", "        float 1.\n");
    check_tree("-inf", "        unary -\n            constant inf\n");
    check_tree("9223372036854775807", "        integer 9223372036854775807\n");
    check_error("fn f(x) = 9223372036854775808", 1, "t.fuse:1:11: error: the integer literal");
    check_error("fn f(x) = 1e999", 1, "the float literal is too large");
    check_error("fn f(x) = 1e", 1, "'1e' is not a number");
    check_error("fn f(x) = 0x10", 1, "numbers are decimal");
}
END_TEST

START_TEST(test_names_before_brackets_are_calls)
{
    check_tree("mean[M, N,](mean,)", "        call mean[M, N]\n            name mean\n");
    check_tree("x\n(2)", "        call x\n            integer 2\n");
}
END_TEST

START_TEST(test_file_forms)
{
    static const char *const same[] = {
        "fn f(x) = x == 1\n",
        "\xef\xbb\xbf\nfn f(x) = x == 1",
        "fn f(x)\r\n = x\r\n == 1\r\n",
        "fn\nf # c\n(\nx # d\n)=x==1#e",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        Parsed p = parse_text(same[i]);
        ck_assert_str_eq(p.tree, "fn f(x)\n    return\n        binary ==\n            name x\n"
                                 "            integer 1\n");
        arena_free(p.arena);
    }
}
END_TEST

START_TEST(test_leading_minus_continues)
{
    Parsed p = parse_text(HEAD "    y = x\n    - 1\n}\n");
    ck_assert_int_eq(p.d.errors, 0);
    ck_assert_int_eq(p.d.warnings, 1);
    ck_assert_ptr_nonnull(strstr(text_string(p.d.text), "t.fuse:3:5: warning:"));
    ck_assert_ptr_nonnull(strstr(p.tree, "binary -"));
    arena_free(p.arena);
    p = parse_text(HEAD "    y = x +\n    -1\n}\n");
    ck_assert_int_eq(p.d.warnings, 0);
    arena_free(p.arena);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(test_report_form)
{
    check_report(HEAD "\ty = \"\xc3\xa9\" + \xc3\x97 + x\n}\n",
                 "t.fuse:2:6: error: expected an expression after '=', found the path\n"
                 "      y = \"\xc3\xa9\" + \xc3\x97 + x\n"
                 "          ^~~\n"
                 "t.fuse:2:13: error: unexpected character: names and operators are plain ASCII\n"
                 "      y = \"\xc3\xa9\" + \xc3\x97 + x\n"
                 "                ^\n"
                 "  hint: write *\n");
    check_report("fn f(x) = 1 + 12abc",
                 "t.fuse:1:15: error: '12abc' is not a number\n"
                 "  fn f(x) = 1 + 12abc\n"
                 "                ^~~~~\n"
                 "  hint: numbers look like 42, 1.5 or 1e-5, and '*' multiplies\n");
}
END_TEST

START_TEST(test_expectations)
{
    check_error(HEAD "    y = x +\n}\n", 1, "t.fuse:2:11: error: expected an expression after '+'");
    check_error(HEAD "    y = g(x x)\n}\n", 1, "expected an operator, ',' or ')' after 'x'");
    check_error(HEAD "    y = x\n", 1, "found the end of the file");
    check_error("graph f[N=2.5]() -> () {}", 1, "expected an integer after '='");
    check_error("graph f(x : ) -> () {}", 1, "expected a dtype after ':'");
    check_error("graf f() -> () {}", 1, "did you mean 'graph'?");
    check_error("fn f(x) { y = x }", 1, "function 'f' returns nothing");
    check_error(HEAD "    return x\n}\n", 1, "a graph returns nothing");
    check_error(HEAD "    y = where(x = 1, 2, 3)\n}\n", 1, "'==' compares");
    check_error("graph f(x : f32[] = 1) -> () {}", 1, "only a scalar has a default");
}
END_TEST

/* A reserved word in the place of a name is one error, and the text goes on behind it. */
START_TEST(test_reserved_words)
{
    static const char *const texts[] = {
        "fn inf(x) = x",
        "fn graph(x) = x",
        "graph import[M](x : f32[M]) -> (y : f32[M]) { y = x }",
        "graph g[M](x : f32[M], graph : f32) -> (y : f32[M]) { y = x * graph }",
        "graph g[M](x : f32[M],\n fn : f32) -> (y : f32[M]) { y = x * fn }",
        "graph g[M](x : f32[M], return : f32) -> (y : f32[M]) { y = x * return + 1 }",
        "graph g[M, graph = 4](x : f32[M, graph]) -> (y : f32[M]) { y = sum[graph](x) }",
        "graph g[import](x : f32[import]) -> (y : f32[import]) { y = x }",
        "graph g[M](x : f32[M]) -> (fn : f32[M]) { fn = x }",
        HEAD "    graph = x * 2\n    y = graph\n}\n",
        HEAD "    return = x * 2\n    y = x\n}\n",
        HEAD "    true = x * 2\n    y = x\n}\n",
        HEAD "    y = sum[inf](x)\n}\n",
        "graph g[M](x : f32[M], fn = 1) -> (y : f32[M]) { y = x }",
        "graph g[M](x : f32[M], inf = 1) -> (y : f32[M]) { y = x }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_error(texts[i], 1, "hint: the word is reserved: choose another name");
    check_error("graph g[M](x : graph) -> (y : f32[M]) { y = x }", 1, "expected a dtype after ':'");
    check_error(HEAD "    y = x * graph\n}\nfn f(x) = x x\n", 2, "t.fuse:4:13:");
    check_error("fn f(x) = x +\nfn g(x) = x x\n", 2, "t.fuse:2:13:");
    check_error("fn f(x) {\n    return x\nfn (x) = x\n", 2, "expected a function name");
}
END_TEST

START_TEST(test_foreign_spellings)
{
    check_error(HEAD "    y = x;\n}\n", 1, "hint: statements end by themselves");
    check_error(HEAD "    y := x\n}\n", 1, "hint: write '=' to bind a name");
    check_error(HEAD "    y = x ^ 2\n}\n", 1, "hint: write '**' for a power");
    check_error(HEAD "    y = x & x\n}\n", 1, "hint: write '&&'");
    check_error(HEAD "    y += x\n}\n", 1, "every name is bound once");
    check_error("graph g[M = 4, N = 8](x : f32[M, N / 2]) -> (y : f32[M]) { y = x }\n", 1,
                "hint: an axis is a name, not a computed size");
    check_error(HEAD "    y = where(x > 0 and x < 1, x, 0)\n}\n", 1, "hint: write &&");
    check_error(HEAD "    y = where(not b, x, 0)\n}\n", 1, "hint: write !x");
    check_error(HEAD "    y = if x > 0 then x\n}\n", 1, "hint: write where(condition, a, b)");
    check_error(HEAD "    y = where(g(x) = 1, x, 0)\n}\n", 1, "'==' compares");
    check_error(HEAD "    y = x.exp()\n}\n", 1, "hint: write exp(x)");
    check_error(HEAD "    y = x.float()\n}\n", 1, "hint: write f32(x), not x.float()");
    check_error(HEAD "    y = x.pow(2)\n}\n", 1, "hint: write x ** p, not x.pow(p)");
    check_error("fn f(x : f32) = x\n", 1, "hint: a function declares no types");
    check_error("fn f(x) -> f32 { return x }\n", 1, "hint: a function declares no types");
    check_error(HEAD "    y = x\n", 1, "hint: the '{' at t.fuse:1:40 is not closed");
    static const char *const cut[] = {HEAD "    y =\n", HEAD "    y = x + # }\n",
                                      HEAD "    y = x\n    z = -\n", HEAD "    return\n"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        check_error(cut[i], 1, "hint: the '{' at t.fuse:1:40 is not closed");
    check_error(HEAD "    y = x +\n\n" HEAD "    y = x\n}\n", 1,
                "hint: the '{' at t.fuse:1:40 is not closed");
    check_error("fn f(x) {\n  return x\ngraph g() -> () { }\n", 1,
                "hint: the '{' at t.fuse:1:9 is not closed");
    check_error(HEAD "    y = exp((x\n    z = x\n}\n", 1,
                "hint: the '(' at t.fuse:2:13 is not closed");
    check_error(HEAD "    y = where(~b, x, 0)\n}\n", 1, "hint: write !");
    check_error(HEAD "    if x > 0 { y = x } else { y = 0 }\n}\n", 1,
                "write NAME = where(condition, a, b)");
    check_error(HEAD "    if x > 0 {\n y = x\n } else if x > 1 {\n y = 0\n }\n z = 1 2\n}\n", 2,
                "t.fuse:7:8: error");
    check_error(HEAD "    y = if (x > 0) { x } else { 0 }\n}\n", 1,
                "write NAME = where(condition, a, b)");
    check_error("fn f(x) = if x > 0 { x } else { 0 }\n" HEAD "    y = x\n}\n", 1,
                "hint: write where(condition, a, b)");
    check_error("fn f(x) = if (x > 0) { x } else { 0 }\n" HEAD "    y = x\n}\n", 1,
                "write NAME = where(condition, a, b)");
    check_error("fn f(x) = if x > 0 { x } else { 0 }\n" HEAD "    y = x x\n}\n", 2,
                "t.fuse:3:11: error");
    check_error(HEAD "    y = x\n    unless b { y = 0 }\n}\n", 1, "where(condition, a, b)");
    check_error(HEAD "    match b { y = x }\n}\n", 1, "where(condition, a, b)");
    check_error(HEAD "    for i in x { y = x }\n}\n", 1, "no loops");
    check_error(HEAD "    y = x << 2\n}\n", 1, "no operations on bits: write x * 2 ** n");
    check_error(HEAD "    y = x as f32\n}\n", 1, "write f32(x), or another dtype");
    check_error("graph f[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M]) {\n    y = x[i]\n}\n", 1,
                "hint: pick an element by its index: sum[N](where(index(N) == i, x, 0))");
    check_error("graph f[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M]) {\n    y = x[i, N] + 1\n}\n",
                1, "sum[M](where(index(M) == i, x, 0))");
    check_error("graph f[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M]) {\n    y = x[0]\n}\n", 1,
                "sum[M](where(index(M) == 0, x, 0))");
    check_error("graph f[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M]) {\n    y = x[-1]\n}\n", 1,
                "sum[M](where(index(M) == size(M) -1, x, 0))");
    static const struct {
        const char *value, *hint;
    } cases[] = {
        {"x[0, 3]", "sum[M, N](where(index(M) == 0 && index(N) == 3, x, 0))"},
        {"x[:, 0]", "sum[N](where(index(N) == 0, x, 0))"},
        {"x[:, N-1]", "where(index(N) == size(N)-1, x, 0)"},
        {"x[:, None]", "names of their axes: write x"},
        {"x[0:4]", "select a part of an axis by a mask: where(index(N) < 4, x, 0)"},
        {"sum(x, axis=0)", "goes in brackets: sum[M](x)"},
        {"x[..., 0]", "an index along an axis"},
        {"x.shape[0]", "write size(N)"},
        {"softmax[1](x)", "name the axis: softmax[N](x)"},
        {"mean[-2](x * 2)", "name the axis: mean[M](x * 2)"},
        {"max[0, 1](x)", "name the axis: max[M, N](x)"},
        {"max[0](w)", "name the axis: max[N](w)"},
        {"size[0]", "write size(N)"},
        {"sum(x)[N]", "write sum[N](x)"},
        {"sum(x + (1))[M, N]", "write sum[M, N](x + (1))"},
        {"sum(x)[1]", "write sum[N](x)"},
        {"x @ w", "write sum[N](a * b)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(
            text, sizeof text,
            "graph f[M = 4, N = 8](x : f32[M, N], w : f32[N]) -> (y : f32[M]) {\n    y = %s\n}\n",
            cases[i].value);
        check_error(text, 1, cases[i].hint);
    }
    check_error("graph f[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M]) {\n    y = x[M, N] * 2\n}\n",
                1, "hint: write the value without its axes: x;");
    check_error(HEAD "    // note\n    y = x\n}\n", 1, "comments begin with '#'");
}
END_TEST

START_TEST(test_heads)
{
    static const struct {
        const char *head, *hint;
    } cases[] = {
        {"g[M](x : f32[M], eps = 1e-6) -> (y : f32[M])", "write eps : f32 = 1e-6\n"},
        {"g[M](x : f32[M], k = -3) -> (y : f32[M])", "write k : i64 = -3\n"},
        {"g[M](x : f32[M], flag = true) -> (y : f32[M])", "write flag : bool = true\n"},
        {"g[M](x = f32[M], eps : f32) -> (y : f32[M])", "write x : f32[M]\n"},
        {"g[M](x : f32[M], f32 eps) -> (y : f32[M])", "write eps : f32\n"},
        {"g[M](x : f32[M], eps) -> (y : f32[M])", "a scalar NAME : DTYPE\n"},
        {"g[M](x : f32[M]) -> (y = x)", "a parameter is written NAME : DTYPE[AXES]"},
        {"g[M](x : f32[M]) : (y : f32[M])", "outputs stand behind '->'"},
        {"g[M](x : f32[M]) => (y : f32[M])", "outputs stand behind '->'"},
        {"g[M](x : f32[M]) (y : f32[M])", "outputs stand behind '->'"},
        {"layer-norm-bwd[M](x : f32[M]) -> (y : f32[M])", "write layer_norm_bwd\n"},
        {"g[n-heads = 4](x : f32[M]) -> (y : f32[M])", "write n_heads\n"},
        {"g[M](x-hat : f32[M]) -> (y : f32[M])", "write x_hat\n"},
        {"g.h[M](x : f32[M]) -> (y : f32[M])", "names have no '.'"},
        {"g[4, 8](x : f32[M]) -> (y : f32[M])", "an axis has a name: [N = 4]\n"},
        {"g[M](x : f32[M], s : f32[1]) -> (y : f32[M])", "write f32[]\n"},
        {"g[M](x : f32[M]) -> (y : bf16[M, 1])", "write bf16[M]\n"},
        {"g[M = 4, N = 8](x : f32[4, 8]) -> (y : f32[M])", "write f32[M, N]\n"},
        {"g[M = 4, N = 8](x : f32[8, 4]) -> (y : f32[M])", "as in [K = 8]\n"},
        {"g[M = 4, K = 4](x : f32[4]) -> (y : f32[M])", "as in [L = 4]\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "graph %s { y = x }\n", cases[i].head);
        check_error(text, 1, cases[i].hint);
    }
    check_error("fn f[1](x) = x", 1, "an axis is a name");
    check_error("fn f[K](x) = max[0](x)", 1, "name the axis: max[K](x)");
    check_error("fn f(x-hat) = x", 1, "write x_hat");
    check_error(HEAD "    y = x\n    x-hat = x\n}\n", 1, "write x_hat");
}
END_TEST

START_TEST(test_last_statement)
{
    static const char *const bodies[] = {
        "x * s", "m = mean[K](x)  x - m", "m = s\n x * m", "m = 3 \n 2 * m", "m = s + 1\n (x - m)",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char text[200];
        snprintf(text, sizeof text, "fn f[K](x, s) { %s }\n", bodies[i]);
        check_error(text, 1, "NAME = EXPRESSION, the last one return EXPRESSION");
    }
    check_error(HEAD "    y = x\n    z\n}\n", 1, "a statement is written NAME = EXPRESSION\n");
}
END_TEST

START_TEST(test_separators)
{
    check_report("graph g[M; N](x : f32[M, N]) -> (y : f32[M, N]) { y = x }",
                 "t.fuse:1:10: error: unexpected ';'\n"
                 "  graph g[M; N](x : f32[M, N]) -> (y : f32[M, N]) { y = x }\n"
                 "           ^\n"
                 "  hint: write ','\n");
    check_error("graph g[M](x : f32[M];\n    s : f32;\n) -> (y : f32[M]) { y = x }", 2,
                "hint: write ','");
    check_error(HEAD "    y = max(x; 1)\n}\n", 1, "hint: write ','");
    check_error(HEAD "    m = exp(x;\n    y = m\n}\n", 2, "hint: statements end by themselves");
}
END_TEST

START_TEST(test_recovery)
{
    check_error(HEAD "    a = x +\n    b = * x\n    y = x\n}\n", 2, "t.fuse:3:9: error:");
    check_error(HEAD "    y = x\ngraph g() -> () { a = 1 2 }\nfn h(x) = x x\n", 3, "t.fuse:4:13:");
    check_error("graph f(x = f32) -> () {\n    y = x\n}\nfn g(x) = +\n", 2, "t.fuse:4:11: error:");
}
END_TEST

START_TEST(test_ten_errors)
{
    Text *text = text_new(arena_new());
    for (int i = 0; i < 30; i++) text_print(text, "fn f%d(x) = *\n", i);
    check_error(text_string(text), 10, "\ntoo many errors, no more are shown\n");
    arena_free(text->arena);
}
END_TEST

START_TEST(test_garbage)
{
    static const char bytes[] = "fn f(x) = x\0 + \xff\xfe\x01 1\n#\0\n\x7f";
    Parsed p = parse_bytes(bytes, sizeof bytes - 1);
    ck_assert_int_gt(p.d.errors, 0);
    for (const char *at = text_string(p.d.text); *at; at++)
        ck_assert_msg(*at == '\n' || (*at >= ' ' && *at < 0x7f), "byte %d is shown", *at);
    arena_free(p.arena);
}
END_TEST

START_TEST(test_long_lines_are_clipped)
{
    Text *text = text_new(arena_new());
    text_print(text, "fn f(x) = x");
    for (int i = 0; i < 100000; i++)
        text_print(text, " # \xc3\xa9%s", i == 50000 ? "\nfn g(x) = x +" : "\t");
    text_print(text, "\nfn h(x) = x");
    for (int i = 0; i < 900; i++) text_print(text, " + x");
    text_print(text, " + )");
    Parsed p = parse_text(text_string(text));
    ck_assert_int_eq(p.d.errors, 2);
    ck_assert_uint_lt(p.d.text->length, 1000);
    ck_assert_ptr_nonnull(strstr(text_string(p.d.text), "\n  ..."));
    arena_free(p.arena);
    arena_free(text->arena);
}
END_TEST

static void check_nesting(const char *open, const char *inner, const char *close, int levels,
                          int errors)
{
    Text *text = text_new(arena_new());
    text_print(text, "fn f(x) = ");
    for (int i = 0; i < levels; i++) text_print(text, "%s", open);
    text_print(text, "%s", inner);
    for (int i = 0; i < levels; i++) text_print(text, "%s", close);
    check_error(text_string(text), errors, errors ? "nested too deeply" : "");
    arena_free(text->arena);
}

START_TEST(test_nesting)
{
    static const char *const forms[][3] = {
        {"(", "x", ")"},  {"-", "x", ""},      {"x ** ", "x", ""},          {"", "x", " + x"},
        {"f(", "x", ")"}, {"(x + ", "x", ")"}, {"!(x + f(x * ", "x", "))"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check_nesting(forms[i][0], forms[i][1], forms[i][2], 300, 0);
        check_nesting(forms[i][0], forms[i][1], forms[i][2], 1100, 1);
        check_nesting(forms[i][0], forms[i][1], forms[i][2], 100000, 1);
    }
    check_nesting("(", "x", ")", 1000, 0);
    check_nesting("", "x", " + x", 1000, 0);
}
END_TEST

/* ---- imports ---- */

typedef struct {
    char directory[64];
    char path[128];
} Place;

static Place make_place(void)
{
    Place place = {.directory = "/tmp/fusec-parse-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(place.directory));
    return place;
}

static const char *in_place(Place *place, const char *name)
{
    snprintf(place->path, sizeof place->path, "%s/%s", place->directory, name);
    return place->path;
}

static void write_file(Place *place, const char *name, const char *text)
{
    FILE *file = fopen(in_place(place, name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static Parsed parse_in(Place *place, const char *text)
{
    Parsed p;
    ImportCalls calls;
    const fusec_parse_options files = {.import = fusec_import_file, .release = fusec_release_file};
    import_calls_open(&calls, &files, NULL);
    parse_with(&p,
               (Source){.name = in_place(place, "main.fuse"), .text = text, .length = strlen(text)},
               &calls.imports);
    import_calls_close(&calls);
    return p;
}

static void remove_place(Place *place, int files)
{
    for (int i = 0; i < files; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.fuse", i);
        unlink(in_place(place, name));
    }
    ck_assert_int_eq(rmdir(place->directory), 0);
}

START_TEST(test_diamond)
{
    Place place = make_place();
    write_file(&place, "0.fuse", "import \"std\" import \"2.fuse\"\n");
    write_file(&place, "1.fuse", "import \"./2.fuse\" import \"std\"\n");
    write_file(&place, "2.fuse", "import \"std\" fn g(x) = x\n");
    Parsed p = parse_in(&place, "import \"0.fuse\" import \"1.fuse\" import \"std\"");
    ck_assert_msg(p.d.errors == 0, "%s", text_string(p.d.text));
    int modules = 0;
    for (const Module *at = p.program; at; at = at->next) modules++;
    ck_assert_int_eq(modules, 5);
    ck_assert_ptr_nonnull(strstr(p.program->source->name, "main.fuse"));
    arena_free(p.arena);
    remove_place(&place, 3);
}
END_TEST

START_TEST(test_import_faults)
{
    Place place = make_place();
    write_file(&place, "0.fuse", "import \"1.fuse\"\n");
    write_file(&place, "1.fuse", "import \"0.fuse\"\nfn f(x) = +\n");
    Parsed p = parse_in(&place, "import \"0.fuse\"\nimport \"gone.fuse\"\nimport \".\"\n");
    const char *reports = text_string(p.d.text);
    ck_assert_int_eq(p.d.errors, 4);
    ck_assert_ptr_nonnull(strstr(reports, "/1.fuse:1:1: error: import cycle"));
    ck_assert_ptr_nonnull(strstr(reports, "/1.fuse:2:11: error: expected an expression"));
    ck_assert_ptr_nonnull(strstr(reports, "/main.fuse:2:8: error: cannot read"));
    ck_assert_ptr_nonnull(strstr(reports, "Is a directory"));
    ck_assert(!p.d.machine);
    arena_free(p.arena);
    remove_place(&place, 2);
}
END_TEST

/* ---- hints ---- */

START_TEST(test_nearest_name)
{
    static const char *const names[] = {"softmax", "gamma", "beta", "N"};
    ck_assert_str_eq(nearest_name("sofmtax", names, 4), "softmax");
    ck_assert_str_eq(nearest_name("gama", names, 4), "gamma");
    ck_assert_ptr_null(nearest_name("M", names, 4));
    ck_assert_ptr_null(nearest_name("rstd", names, 4));
    ck_assert_str_eq(nearest_name("n", names, 4), "N");
    ck_assert_str_eq(nearest_name("BETA", names, 4), "beta");
    ck_assert_ptr_null(nearest_name("zeat", names, 4)); /* two letters from one of four */
    ck_assert_ptr_null(nearest_name("gam", names, 4));  /* and of three from any */
}
END_TEST

Suite *parse_suite(void)
{
    const TTest *const tests[] = {
        test_precedence,
        test_literals,
        test_names_before_brackets_are_calls,
        test_file_forms,
        test_leading_minus_continues,
        test_report_form,
        test_expectations,
        test_reserved_words,
        test_heads,
        test_last_statement,
        test_separators,
        test_foreign_spellings,
        test_recovery,
        test_ten_errors,
        test_garbage,
        test_long_lines_are_clipped,
        test_nesting,
        test_diamond,
        test_import_faults,
        test_nearest_name,
    };
    Suite *suite = suite_create("parse");
    TCase *tcase = tcase_create("parse");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}
