/* test_graph.c: the builder, the printers, and the algebra of simplify, which must not
 * change what IEEE arithmetic says. */
#include "from_text.h"
#include "suites.h"

#include "graph/simplify.h"
#include "target.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const Node none = {0};

static Graph *graph_of_two_axes(Arena *arena)
{
    Graph *g = graph_new(arena);
    g->name = "g";
    g->axes[0] = (Axis){.name = "M", .size = 4};
    g->axes[1] = (Axis){.name = "N", .size = -1};
    g->axis_count = 2;
    *list_push(arena, &g->params) = (Param){.name = "x", .dtype = DTYPE_BF16, .axes = 3};
    *list_push(arena, &g->params) = (Param){.name = "r", .dtype = DTYPE_F32, .axes = 1};
    return g;
}

START_TEST(equal_nodes_are_one)
{
    Arena *arena = arena_new();
    Graph *g = graph_of_two_axes(arena);
    Node x = graph_param(g, 0), r = graph_param(g, 1);
    Node a = graph_op(g, OP_SUB, x, r, none), b = graph_op(g, OP_SUB, x, r, none);
    ck_assert_uint_eq(a.id, b.id);
    ck_assert_uint_ne(a.id, graph_op(g, OP_SUB, r, x, none).id);
    ck_assert_uint_ne(graph_reduce(g, OP_SUM, 1, x).id, graph_reduce(g, OP_SUM, 2, x).id);
    ck_assert_uint_ne(graph_number(g, TYPE_F32, 0.0).id, graph_number(g, TYPE_F32, -0.0).id);
    ck_assert_uint_eq(graph_number(g, TYPE_F32, NAN).id, graph_number(g, TYPE_F32, NAN).id);
    ck_assert_uint_ne(graph_number(g, TYPE_F32, 1).id, graph_number(g, TYPE_F64, 1).id);
    ck_assert_uint_eq(graph_convert(g, TYPE_F32, x).id, x.id);
    ck_assert_uint_eq(node(g, a)->axes, 3);
    ck_assert_uint_eq(node(g, graph_reduce(g, OP_MAX_OVER, 2, a))->axes, 1);
    verify_graph(g);
    arena_free(arena);
}
END_TEST

START_TEST(the_table_grows)
{
    Arena *arena = arena_new();
    Graph *g = graph_new(arena);
    for (int i = 0; i < 5000; i++) graph_integer(g, TYPE_I64, i);
    int count = g->nodes.count;
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq((int)node(g, graph_integer(g, TYPE_I64, i))->integer, i);
    ck_assert_int_eq(g->nodes.count, count);
    arena_free(arena);
}
END_TEST

START_TEST(the_first_name_stays)
{
    Arena *arena = arena_new();
    Graph *g = graph_of_two_axes(arena);
    Node a = graph_op(g, OP_EXP, graph_param(g, 0), none, none);
    graph_name(g, a, NULL, (Span){.source = NULL});
    graph_name(g, a, "first", (Span){.source = NULL});
    graph_name(g, a, "second", (Span){.source = NULL});
    ck_assert_str_eq(node(g, a)->name, "first");
    Node half = graph_number(g, TYPE_F32, 0.5);
    graph_name(g, half, "half", (Span){.source = NULL});
    ck_assert_ptr_null(node(g, half)->name);
    arena_free(arena);
}
END_TEST

START_TEST(sizes_multiply_and_saturate)
{
    Sizes sizes = {{3, 5, 0, INT64_MAX, 2}};
    ck_assert_int_eq(axes_size(&sizes, 0), 1);
    ck_assert_int_eq(axes_size(&sizes, 3), 15);
    ck_assert_int_eq(axes_size(&sizes, 24), INT64_MAX);
    ck_assert_int_eq(axes_size(&sizes, 28), 0);
    ck_assert_int_eq(axes_count(27), 4);
}
END_TEST

START_TEST(the_dump_is_one_node_a_line)
{
    FromText f = from_text("graph g[M = 4, N](x : bf16[M, N], s : f32 = 2) -> (y : f16[M]) {\n"
                           "c = x * s + 0.5  y = max[N](bf16(c)) }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Text *out = text_new(f.arena);
    print_graph(out, f.graph);
    ck_assert_str_eq(text_string(out), "graph g[M = 4, N]\n"
                                       "%1 f32[M,N] x = param bf16\n"
                                       "%2 f32[] s = param f32 scalar\n"
                                       "%3 f32[M,N] = mul %1 %2\n"
                                       "%4 f32[] = const 0.5\n"
                                       "%5 f32[M,N] c = add %3 %4\n"
                                       "%6 f32[M,N] = cast bf16 %5\n"
                                       "%7 f32[M] y = max[N] %6\n"
                                       "y f16[M] = %7\n");
    arena_free(f.arena);
}
END_TEST

START_TEST(literals_print_shortest)
{
    static const struct {
        Type type;
        double value;
        const char *text;
    } cases[] = {
        {TYPE_F32, 2, "2.0"},
        {TYPE_F32, 1e-5, "1e-5"},
        {TYPE_F32, (double)0.1f, "0.1"},
        {TYPE_F64, (double)0.1f, "0.10000000149011612"},
        {TYPE_F32, 3e38, "3e38"},
        {TYPE_F32, -0.0, "-0.0"},
        {TYPE_F32, INFINITY, "inf"},
        {TYPE_F64, -INFINITY, "-inf"},
        {TYPE_F32, 0.044715, "0.044715"},
    };
    Arena *arena = arena_new();
    Graph *g = graph_new(arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Node n = graph_number(g, cases[i].type, cases[i].value);
        ck_assert_str_eq(node_text(arena, g, n, true), cases[i].text);
    }
    arena_free(arena);
}
END_TEST

START_TEST(endless_text_is_cut)
{
    Arena *arena = arena_new();
    Graph *g = graph_of_two_axes(arena);
    Node n = graph_param(g, 0);
    for (int i = 0; i < 100000; i++) n = graph_op(g, i % 2 ? OP_ADD : OP_MUL, n, n, none);
    const char *text = node_text(arena, g, n, true);
    ck_assert_uint_lt(strlen(text), 10000);
    ck_assert_ptr_nonnull(strstr(text, "..."));
    arena_free(arena);
}
END_TEST

/* ---- simplify ---- */

typedef struct {
    const char *expression, *text;
} Rewrite;

static const Rewrite rewrites[] = {
    {"x * 1", "x"},
    {"1 * x", "x"},
    {"x / 1", "x"},
    {"x * -1", "-x"},
    {"x - 0", "x"},
    {"x + -0.0", "x"},
    {"x + 0", "x + 0.0"},
    {"x - -0.0", "x - -0.0"},
    {"x * 0", "x * 0.0"},
    {"x - x", "x - x"},
    {"x / x", "x / x"},
    {"--x", "x"},
    {"x + -r", "x - r"},
    {"x - -r", "x + r"},
    {"x ** 1", "x"},
    {"x ** 2", "x * x"},
    {"x ** 3", "x * x * x"},
    {"x ** 0.5", "x ** 0.5"},
    {"x ** 0", "x ** 0.0"},
    {"x ** -1", "x ** -1.0"},
    {"x * (2 + 3)", "x * 5.0"},
    {"x * (1 / 3)", "x * 0.33333334"},
    {"x * (0.1 + 0.2)", "x * 0.3"},
    {"x * sqrt(4.0)", "x * 2.0"},
    {"x * exp(0)", "x"},
    {"x * (1 / 0)", "x * inf"},
    {"x + max(1, 2.5)", "x + 2.5"},
    {"x * (inf - inf)", "x * nan"},
    {"x + (i + 0)", "x + i"},
    {"x + (i - 0) * 1", "x + i"},
    {"x + bf16(0.1)", "x + 0.100097656"},
    {"x + i32(2.7)", "x + 2.0"},
    {"x + i8(300)", "x + 127.0"},
    {"x + f32(r)", "x + r"},
    {"bf16(bf16(x))", "bf16(x)"},
    {"f16(bf16(x))", "f16(bf16(x))"},
    {"bf16(h)", "h"},
    {"f16(h)", "f16(h)"},
    {"x + i32(i)", "x + i"},
    {"x + i8(i)", "x + i8(i)"},
    {"where(true, x, r)", "x"},
    {"where(true, r, x)", "where(true, r, x)"},
    {"where(false, r, x)", "x"},
    {"where(p, x, x)", "x"},
    {"where(!p, x, r)", "where(p, r, x)"},
    {"where(p && true, x, 0)", "where(p, x, 0.0)"},
    {"where(p || false, x, 0)", "where(p, x, 0.0)"},
    {"where(p && false, x, 0)", "where(p && false, x, 0.0)"},
    {"where(!!p, x, 0)", "where(p, x, 0.0)"},
    {"where(1 < 2, x, h)", "x"},
    {"where(p && p, x, 0)", "where(p, x, 0.0)"},
    {"x + sum[N](h * 1)", "x + sum[N](h)"},
    {"x + (s * 1 + s)", "x + (s + s)"},
};
enum { REWRITES = sizeof rewrites / sizeof *rewrites };

START_TEST(simplify_keeps_the_meaning)
{
    const Rewrite *c = &rewrites[_i];
    char body[200];
    snprintf(body, sizeof body, "y = %s", c->expression);
    FromText f = from_body("f32[M, N]", body);
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Graph *g = simplify(f.arena, f.graph, NULL);
    verify_graph(g);
    ck_assert_str_eq(output_text(g, 0), c->text);
    arena_free(f.arena);
}
END_TEST

START_TEST(f64_literals_fold_in_f64)
{
    FromText f = from_body("f64[M, N]", "y = d * (1.0 / (d * 0 + 3)) + f64(0.1) + f32(0.1)");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Graph *g = simplify(f.arena, f.graph, NULL);
    ck_assert_str_eq(output_text(g, 0), "d * (1.0 / (d * 0.0 + 3.0)) + 0.1 + 0.10000000149011612");
    arena_free(f.arena);
}
END_TEST

START_TEST(var_becomes_squared_deviations)
{
    FromText f = from_text("graph g[M = 4, N = 8](x : f32[M, N]) -> (v : f32[M], y : f32[M, N]) {\n"
                           "mu = mean[N](x)  v = var[N](x)  y = (x - mu) * rsqrt(v) }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Graph *g = simplify(f.arena, f.graph, NULL);
    verify_graph(g);
    ck_assert_str_eq(output_text(g, 0), "mean[N](x_centred * x_centred)");
    ck_assert_str_eq(node_text(f.arena, g, find_named(g, "x_centred"), true), "x - mu");
    ck_assert_str_eq(output_text(g, 1), "x_centred * rsqrt(v)");
    arena_free(f.arena);
}
END_TEST

START_TEST(names_made_up_do_not_collide)
{
    FromText f =
        from_text("graph g[M = 4, N = 8](x : f32[M, N], x_mean : f32[M]) -> (v : f32[M]) {\n"
                  "v = var[N](x) + x_mean }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    Graph *g = simplify(f.arena, f.graph, NULL);
    ck_assert_str_eq(node_text(f.arena, g, find_named(g, "x_centred"), true), "x - x_mean_2");
    arena_free(f.arena);
}
END_TEST

START_TEST(what_no_output_needs_is_dropped)
{
    FromText f = from_text("graph g[M = 4](x : f32[M], z : f32[M]) -> (a : f32[M], b : f32[M]) {\n"
                           "u = exp(z)  t = sin(x)  a = t + 1  b = u + t }");
    ck_assert_msg(f.graph != NULL, "%s", f.report);
    bool wanted[] = {true, false};
    Graph *g = simplify(f.arena, f.graph, wanted);
    verify_graph(g);
    ck_assert_uint_eq(g->outputs.data[1].value.id, 0);
    ck_assert_uint_eq(find_named(g, "u").id, 0);
    ck_assert_uint_eq(find_named(g, "z").id, 0);
    ck_assert_int_eq(g->nodes.count, 5);
    ck_assert_int_eq(g->params.count, 2);
    ck_assert_uint_ne(f.graph->outputs.data[1].value.id, 0);
    arena_free(f.arena);
}
END_TEST

START_TEST(long_chains_need_no_stack)
{
    Arena *arena = arena_new();
    Graph *g = graph_of_two_axes(arena);
    Node n = graph_param(g, 0);
    for (int i = 0; i < 200000; i++) n = graph_op(g, OP_SIN, n, none, none);
    *list_push(arena, &g->outputs) = (Output){.name = "y", .axes = 3, .value = n};
    Graph *s = simplify(arena, g, NULL);
    ck_assert_int_eq(s->nodes.count, 200002);
    arena_free(arena);
}
END_TEST

START_TEST(targets_are_found)
{
    int count;
    const char *const *names = target_names(&count);
    ck_assert_int_eq(count, 11);
    for (int i = 0; i < count; i++) ck_assert_str_eq(target_find(names[i])->arch, names[i]);
    ck_assert_ptr_null(target_find("sm_70"));
    ck_assert_int_eq(target_find("sm_90a")->smem_per_cta, 232448);
    ck_assert_int_eq(target_find("sm_80")->max_cluster, 1);
    ck_assert(!target_find("sm_80")->bulk_copy && target_find("sm_100a")->bulk_copy);
    const char *const *gpus = target_gpus(&count);
    ck_assert_int_ge(count, 10);
    for (int i = 0; i < count; i++) ck_assert_str_eq(target_find(gpus[i])->gpu, gpus[i]);
    ck_assert_str_eq(target_find("h200")->arch, "sm_90a");
    ck_assert_str_eq(target_find("sm_103a")->gpu, "b300");
    ck_assert_int_eq(target_find("l40s")->max_cluster, 1);
}
END_TEST

static void check_device(int cc, int sms, double rate, const char *arch, const char *gpu,
                         bool borrowed)
{
    Target target;
    ck_assert(target_of_device(&target, cc, sms, rate));
    ck_assert_str_eq(target.arch, arch);
    ck_assert_str_eq(target.gpu, gpu);
    ck_assert_int_eq(target.sms, sms);
    ck_assert_int_eq(target.borrowed, borrowed);
}

/* By architecture, then by the memory's rate for each SM; where no file is of it, by the nearest.
 */
START_TEST(gpus_at_hand_have_the_nearest_target)
{
    Target target;
    check_device(80, 108, 2039, "sm_80", "a100", false);
    check_device(86, 72, 600, "sm_86", "a10", false);
    check_device(86, 84, 936, "sm_86", "rtx3090", true);
    check_device(87, 16, 204, "sm_86", "rtx3090", true);
    check_device(89, 128, 1008, "sm_89", "rtx4090", false);
    check_device(89, 142, 864, "sm_89", "l40s", false);
    check_device(90, 132, 3352, "sm_90a", "h100", false);
    check_device(90, 132, 4916, "sm_90a", "h200", false);
    check_device(90, 114, 2039, "sm_90a", "h100", true);
    check_device(100, 148, 8000, "sm_100a", "b200", false);
    check_device(103, 148, 8000, "sm_103a", "b300", false);
    check_device(121, 48, 273, "sm_120", "rtx5090", true);
    ck_assert(!target_of_device(&target, 75, 40, 320));
}
END_TEST

START_TEST(clusters_leave_sms_idle)
{
    const Target *h100 = target_find("h100");
    Target half = *h100;
    ck_assert_int_eq(target_cluster_sms(h100, 2), 132);
    ck_assert_int_eq(target_cluster_sms(h100, 4), 120);
    ck_assert_int_eq(target_cluster_sms(h100, 16), 112);
    half.sms = 66;
    ck_assert_int_eq(target_cluster_sms(&half, 8), 56);
    half.sms = 4;
    ck_assert_int_eq(target_cluster_sms(&half, 16), 16);
}
END_TEST

static void refuse_target(const char *text, const char *expected)
{
    char why[128];
    ck_assert(!target_add(text, why));
    ck_assert_msg(strstr(why, expected) != NULL, "not '%s' but '%s'", expected, why);
}

START_TEST(files_add_targets)
{
    char why[128];
    const char *h100_text =
        "/* one\n   more */\nMEASURED(gpu, \"lab_h100\")\nDATA_SHEET(arch, \"sm_90\")\n"
        "MEASURED( memory_rate , 23.5 )\nDATA_SHEET(sms, 114)\nDATA_SHEET(peak_rate, 17.9)\n";
    ck_assert_msg(target_add(h100_text, why), "%s", why);
    const Target *lab = target_find("lab_h100");
    ck_assert_ptr_nonnull(lab);
    ck_assert_str_eq(lab->arch, "sm_90a");
    ck_assert_double_eq(lab->memory_rate, 23.5);
    ck_assert_double_eq(lab->l2_rate, target_find("h100")->l2_rate);
    int constants;
    ck_assert_int_eq(target_measured(lab, &constants), 1);
    ck_assert_int_eq(target_measured(target_find("h100"), &constants), constants);
    check_device(90, 114, 2039, "sm_90a", "lab_h100", false);
    check_device(90, 132, 3352, "sm_90a", "h100", false);
    ck_assert_str_eq(target_find("sm_90a")->gpu, "h100");
    refuse_target("", "gpu or arch is missing");
    refuse_target("MEASURED(gpu, \"x\")\nMEASURED(arch, \"sm_70\")", "unknown architecture");
    refuse_target("MEASURED(gpu, \"x\")\nMEASURED(arch, \"sm_90a\")", "unknown architecture");
    refuse_target("\nGUESSED(sms, 1)", "line 2: unknown source 'GUESSED'");
    refuse_target("MEASURED(speed, 1)", "unknown key 'speed'");
    refuse_target("MEASURED(sms, 0)", "not a whole number in range");
    refuse_target("MEASURED(sms, 1.5)", "not a whole number in range");
    refuse_target("MEASURED(latency, nan)", "out of range");
    refuse_target("MEASURED(latency, fast)", "not a number");
    refuse_target("MEASURED(gpu, H100)", "not a name in quotes");
    refuse_target("MEASURED(sms", "not of the form");
    refuse_target("/* MEASURED(sms, 1)", "a comment without an end");
    refuse_target("MEASURED(gpu, \"x\")\nMEASURED(arch, \"sm_90\")\nMEASURED(max_cluster, 3)",
                  "power of two");
}
END_TEST

Suite *graph_suite(void)
{
    Suite *suite = suite_create("graph");
    TCase *c = tcase_create("graph");
    tcase_add_test(c, equal_nodes_are_one);
    tcase_add_test(c, the_table_grows);
    tcase_add_test(c, the_first_name_stays);
    tcase_add_test(c, sizes_multiply_and_saturate);
    tcase_add_test(c, the_dump_is_one_node_a_line);
    tcase_add_test(c, literals_print_shortest);
    tcase_add_test(c, endless_text_is_cut);
    tcase_add_loop_test(c, simplify_keeps_the_meaning, 0, REWRITES);
    tcase_add_test(c, f64_literals_fold_in_f64);
    tcase_add_test(c, var_becomes_squared_deviations);
    tcase_add_test(c, names_made_up_do_not_collide);
    tcase_add_test(c, what_no_output_needs_is_dropped);
    tcase_add_test(c, long_chains_need_no_stack);
    tcase_add_test(c, targets_are_found);
    tcase_add_test(c, gpus_at_hand_have_the_nearest_target);
    tcase_add_test(c, clusters_leave_sms_idle);
    tcase_add_test(c, files_add_targets);
    suite_add_tcase(suite, c);
    return suite;
}
