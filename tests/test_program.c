/* test_program.c: programs in the C API: what parsing reports, and the graphs of a text. */
#include "fusec.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fusec_error error;

START_TEST(parse_errors_are_told)
{
    static const char wrong[] = "graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x + z }";
    fusec_program *program = (fusec_program *)&error;
    ck_assert_int_eq(fusec_program_parse(wrong, strlen(wrong), "w.fuse", &program, &error),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_ptr_null(program);
    ck_assert_msg(strstr(error.message, "w.fuse:1:"), "%s", error.message);
    ck_assert_int_eq(fusec_program_parse(wrong, strlen(wrong), NULL, &program, NULL),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_int_eq(fusec_program_parse(NULL, 3, NULL, &program, &error), FUSEC_INVALID_ARGUMENT);
}
END_TEST

/* A source line that an error quotes says nothing of the machine. */
START_TEST(a_wrong_name_is_not_out_of_memory)
{
    static const char text[] =
        "graph g[M = 4](x : f32[M]) -> (y : f32[M]) {\n y = x * gama  # out of memory\n}";
    fusec_program *program;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error),
                     FUSEC_INVALID_PROGRAM);
}
END_TEST

START_TEST(all_graphs_are_told)
{
    enum { GRAPHS = 1300, LINE = 64 };
    char *text = calloc(GRAPHS, LINE), name[16];
    size_t length = 0;
    for (int i = 0; i < GRAPHS; i++)
        length += (size_t)snprintf(text + length, LINE,
                                   "graph g%d(x : f32[]) -> (y : f32[]) { y = x }\n", i);
    fusec_program *program;
    ck_assert_int_eq(fusec_program_parse(text, length, NULL, &program, &error), FUSEC_OK);
    ck_assert_uint_eq(fusec_program_graph_count(program), GRAPHS);
    snprintf(name, sizeof name, "g%d", GRAPHS - 1);
    ck_assert_str_eq(fusec_program_graph(program, GRAPHS - 1), name);
    fusec_program_destroy(program);
    free(text);
}
END_TEST

static const char forward_text[] =
    "import \"std\"\n"
    "graph norm[M = 4, N = 8](x : f32[M, N], k : i32[M], eps : f32 = 1e-5) -> (\n"
    "    y : f32[M, N], code : i32[M]) { y = rms_norm[N](x, eps) * k  code = k }";

START_TEST(a_gradient_is_a_program)
{
    fusec_program *program, *backward, *again;
    fusec_grad_options options = {.struct_size = sizeof options, .wrt = "x,eps", .save = "none"};
    ck_assert_int_eq(
        fusec_program_parse(forward_text, strlen(forward_text), NULL, &program, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_program_grad(program, "norm", &options, &backward, &error), FUSEC_OK);
    fusec_program_destroy(program);
    ck_assert_str_eq(fusec_program_graph(backward, 0), "norm_bwd");
    ck_assert_str_eq(fusec_program_warnings(backward), "");
    ck_assert_ptr_nonnull(strstr(fusec_program_text(backward), "deps : f32[]"));
    ck_assert_int_eq(fusec_program_grad(backward, NULL, NULL, &again, &error), FUSEC_OK);
    ck_assert_str_eq(fusec_program_graph(again, 0), "norm_bwd_bwd");
    fusec_program_destroy(again);
    fusec_program_destroy(backward);
}
END_TEST

START_TEST(what_has_no_gradient_is_told)
{
    static const struct {
        fusec_grad_options options;
        fusec_status status;
        const char *message;
    } cases[] = {
        {{.of = "code"}, FUSEC_INVALID_PROGRAM, "output 'code' is i32"},
        {{.wrt = "k"}, FUSEC_INVALID_PROGRAM, "input 'k' is i32"},
        {{.of = "z"}, FUSEC_INVALID_ARGUMENT, "no output 'z'"},
        {{.wrt = "z"}, FUSEC_INVALID_ARGUMENT, "no input 'z'"},
        {{.save = "z"}, FUSEC_INVALID_ARGUMENT, "no output 'z'"},
        {{.max_nodes = 2}, FUSEC_LIMIT_EXCEEDED, "2"},
        {{.max_seconds = -1}, FUSEC_INVALID_ARGUMENT, "max_seconds"},
    };
    fusec_program *program, *backward;
    ck_assert_int_eq(
        fusec_program_parse(forward_text, strlen(forward_text), NULL, &program, &error), FUSEC_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fusec_grad_options options = cases[i].options;
        options.struct_size = sizeof options;
        ck_assert_int_eq(fusec_program_grad(program, NULL, &options, &backward, &error),
                         cases[i].status);
        ck_assert_ptr_null(backward);
        ck_assert_msg(strstr(error.message, cases[i].message), "%s", error.message);
    }
    ck_assert_int_eq(fusec_program_grad(program, "other", NULL, &backward, &error),
                     FUSEC_INVALID_ARGUMENT);
    fusec_program_destroy(program);
}
END_TEST

/* What bindings read off a program before they know a size. */
START_TEST(declarations_are_told)
{
    static const char text[] = "graph f(v : f32[]) -> (w : f32[]) { w = v }\n"
                               "graph g[M, N = 8](a : bf16[M, N], s : f32 = -1e-5, b : i64[N],\n"
                               "                  t : i32) -> (y : f16[M, N]) {\n"
                               "    y = a * s + b + t\n}";
    fusec_program *program;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error), FUSEC_OK);
    fusec_axis_info axis = {.struct_size = sizeof axis};
    ck_assert_int_eq(fusec_program_axis(program, 1, 0, &axis), FUSEC_OK);
    ck_assert_int_eq(axis.size, -1);
    ck_assert_int_eq(fusec_program_axis(program, 1, 1, &axis), FUSEC_OK);
    ck_assert_str_eq(axis.name, "N");
    ck_assert_int_eq(axis.size, 8);
    ck_assert_int_eq(fusec_program_axis(program, 1, 2, &axis), FUSEC_INVALID_ARGUMENT);
    fusec_tensor_info tensor = {.struct_size = sizeof tensor};
    ck_assert_int_eq(fusec_program_tensor(program, 1, 1, &tensor), FUSEC_OK);
    ck_assert_str_eq(tensor.name, "b");
    ck_assert(tensor.dtype == FUSEC_I64 && tensor.rank == 1 && tensor.axes[0] == 1);
    ck_assert_int_eq(fusec_program_tensor(program, 1, 2, &tensor), FUSEC_OK);
    ck_assert(tensor.is_output && tensor.rank == 2 && tensor.dtype == FUSEC_F16);
    ck_assert_int_eq(fusec_program_tensor(program, 1, 3, &tensor), FUSEC_INVALID_ARGUMENT);
    fusec_scalar_info scalar = {.struct_size = sizeof scalar};
    ck_assert_int_eq(fusec_program_scalar(program, 1, 0, &scalar), FUSEC_OK);
    ck_assert_double_eq_tol(scalar.default_value, -1e-5, 1e-12);
    ck_assert_int_eq(fusec_program_scalar(program, 1, 1, &scalar), FUSEC_OK);
    ck_assert(!scalar.has_default && scalar.dtype == FUSEC_I32);
    ck_assert_int_eq(fusec_program_scalar(program, 1, 2, &scalar), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_program_scalar(program, 2, 0, &scalar), FUSEC_INVALID_ARGUMENT);
    fusec_program_destroy(program);
}
END_TEST

START_TEST(a_plan_is_explained)
{
    static const char text[] = "graph g[M, N](x : f32[M, N]) -> (y : f32[M]) { y = sum[N](x) }";
    const fusec_size columns = {"N", 512};
    char words[4096], begin[8];
    fusec_program *program;
    fusec_device *device;
    fusec_plan *plan;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_plan_create(device, program, NULL, &columns, 1, NULL, &plan, &error),
                     FUSEC_OK);
    const size_t length = fusec_plan_explain(plan, 0, NULL, 0);
    ck_assert_uint_eq(fusec_plan_explain(plan, 0, words, sizeof words), length);
    ck_assert_uint_eq(strlen(words), length);
    ck_assert_msg(strstr(words, "axes: rows M; columns N"), "%s", words);
    ck_assert_uint_eq(fusec_plan_explain(plan, 1, begin, sizeof begin) > sizeof begin, 1);
    ck_assert_uint_eq(strlen(begin), sizeof begin - 1);
    fusec_plan_destroy(plan);
    fusec_device_destroy(device);
    fusec_program_destroy(program);
}
END_TEST

/* Rows may be divided where all that is reduced over them is a sum and an output. */
START_TEST(divisible_axes_are_told)
{
    static const char text[] =
        "graph g[M, N](x : f32[M, N]) -> (y : f32[M, N], s : f32[N]) {\n"
        "    s = sum[M](x)\n y = x - max[N](x)\n}\n"
        "graph h[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x - sum[M](x) }\n"
        "graph i[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x * index(M) / sum[N](x) }\n";
    static const int divisible[3][2] = {{1, 0}, {0, 1}, {0, 0}};
    const fusec_size sizes[] = {{"M", 4}, {"N", 512}};
    fusec_program *program;
    fusec_device *device;
    fusec_plan *plan;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), NULL, &program, &error), FUSEC_OK);
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
    for (size_t graph = 0; graph < 3; graph++) {
        ck_assert_int_eq(fusec_plan_create(device, program, fusec_program_graph(program, graph),
                                           sizes, 2, NULL, &plan, &error),
                         FUSEC_OK);
        for (size_t i = 0; i < 2; i++) {
            fusec_axis_info axis = {.struct_size = sizeof axis};
            fusec_tensor_info output = {.struct_size = sizeof output};
            ck_assert_int_eq(fusec_plan_axis(plan, i, &axis), FUSEC_OK);
            ck_assert_int_eq(axis.is_divisible, divisible[graph][i]);
            if (fusec_plan_tensor(plan, 1 + i, &output) != FUSEC_OK) continue;
            ck_assert_uint_eq(output.summed, i == 1);
        }
        fusec_plan_destroy(plan);
    }
    fusec_device_destroy(device);
    fusec_program_destroy(program);
}
END_TEST

Suite *program_suite(void)
{
    Suite *suite = suite_create("program");
    TCase *tests = tcase_create("parse");
    tcase_add_test(tests, parse_errors_are_told);
    tcase_add_test(tests, a_wrong_name_is_not_out_of_memory);
    tcase_add_test(tests, all_graphs_are_told);
    tcase_add_test(tests, a_gradient_is_a_program);
    tcase_add_test(tests, what_has_no_gradient_is_told);
    tcase_add_test(tests, declarations_are_told);
    tcase_add_test(tests, a_plan_is_explained);
    tcase_add_test(tests, divisible_axes_are_told);
    suite_add_tcase(suite, tests);
    return suite;
}
