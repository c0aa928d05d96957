/* test_format.c: the canonical formatting, and that it changes no tree. */
#include "parsed.h"
#include "suites.h"

static void check_formatted(const char *text, const char *expected)
{
    Parsed p = parse_text(text);
    ck_assert_msg(p.d.errors == 0, "%s", text_string(p.d.text));
    ck_assert_str_eq(p.formatted, expected);
    Parsed again = parse_text(p.formatted);
    ck_assert_str_eq(again.formatted, expected);
    ck_assert_str_eq(again.tree, p.tree);
    arena_free(again.arena);
    arena_free(p.arena);
}

START_TEST(test_format_aligns)
{
    check_formatted(
        "graph f[M=3,N](x:bf16[M,N],gamma:f32[N],eps:f32=-1e-5)->(y:f32[M],total:f32[])\n"
        "{xhat=x*gamma b=f[N](x,) y=sum[N](xhat) total=sum[M,N](b)}",
        "graph f[M = 3, N](\n"
        "    x     : bf16[M, N],\n"
        "    gamma : f32[N],\n"
        "    eps   : f32 = -1e-5\n"
        ") -> (\n"
        "    y     : f32[M],\n"
        "    total : f32[]\n"
        ") {\n"
        "    xhat = x * gamma\n"
        "    b    = f[N](x)\n"
        "    y     = sum[N](xhat)\n"
        "    total = sum[M, N](b)\n"
        "}\n");
    check_formatted("graph f(x:f32)->(y:f32[]){y=x}",
                    "graph f(x : f32) -> (y : f32[]) {\n    y = x\n}\n");
}
END_TEST

START_TEST(test_format_comments)
{
    check_formatted(
        "import \"std\" # s\nfn f(x, # a\n y) { z = x + # in\n y # tr\n\n\n# own\n"
        "return z # r\n# last\n}#}\n\n\n# end",
        "import \"std\"  # s\n\nfn f(x, y) {\n    # a\n    # in\n    z = x + y  # tr\n\n"
        "    # own\n    return z  # r\n    # last\n}  #}\n\n# end\n");
}
END_TEST

START_TEST(test_format_breaks)
{
    check_formatted(
        "fn f(a_rather_long_name, another_rather_long_name) = a_rather_long_name * 3 - "
        "another_rather_long_name * 4 + 1",
        "fn f(a_rather_long_name, another_rather_long_name) = a_rather_long_name * 3 -\n"
        "    another_rather_long_name * 4 +\n    1\n");
}
END_TEST

Suite *format_suite(void)
{
    Suite *suite = suite_create("format");
    TCase *c = tcase_create("format");
    tcase_add_test(c, test_format_aligns);
    tcase_add_test(c, test_format_comments);
    tcase_add_test(c, test_format_breaks);
    suite_add_tcase(suite, c);
    return suite;
}
