/* test_grad.c: the backward passes that grad makes: at points where a derivative is 0 / 0 or not
 * there, of random programs, and what they look like. tests/test_mutants.c is about gradcheck. */
#include "gradients.h"
#include "prop/front.h"
#include "prop/generate.h"
#include "reference/gradcheck_internal.h"
#include "suites.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 8, MOST_INPUTS = 3 };

/* ---- singular points ---- */

/* A graph whose inputs x, z, ... have the values, and the gradients of all inputs where all
 * gradients of outputs are 1. */
typedef struct {
    const char *text;
    double inputs[MOST_INPUTS][MOST_VALUES];
    double gradients[MOST_INPUTS][MOST_VALUES]; /* of the backward graph's outputs */
} Point;

#define INF INFINITY

static const Point points[] = {
    /* roots and norms at 0 */
    {"graph g[N = 2](x : f32[N]) -> (y : f32[N]) { y = sqrt(x) }", {{0, 4}}, {{0, 0.25}}},
    {"graph g[N = 2](x : f32[N]) -> (y : f32[N]) { y = x ** 0.5 }", {{0, 4}}, {{0, 0.25}}},
    {"graph g[M = 2, N = 2](x : f32[M, N]) -> (y : f32[M]) { y = sqrt(sum[N](x * x)) }",
     {{0, 0, 3, 4}},
     {{0, 0, 0.6, 0.8}}},
    {"graph g[M = 1, N = 2](x : f32[M, N]) -> (y : f32[M]) { y = sqrt(var[N](x)) }",
     {{5, 5}},
     {{0, 0}}},
    {"import \"std\"\n"
     "graph g[N = 2](x : f32[N]) -> (y : f32[N]) { y = l2_normalize[N](x, 0.5) }",
     {{0, 0}},
     {{2, 2}}},
    /* what where hides stays hidden */
    {"graph g[N = 3](x : f32[N]) -> (y : f32[N]) { y = where(x > 0, log(x), 0.0) }",
     {{0, -1, 2}},
     {{0, 0, 0.5}}},
    {"graph g[N = 3](x : f32[N]) -> (y : f32[N]) {\n"
     "    y = where(x != 0, where(x > 1, sqrt(x - 1), 1 / x), 0.0) }",
     {{0, 2, -1}},
     {{0, 0.5, -1}}},
    {"graph g[N = 2](x : f32[N]) -> (y : f32[N]) { s = where(x > 0, 1 / x, 0.0)  y = s * s }",
     {{0, 2}},
     {{0, -0.25}}},
    {"graph g[M = 2, N = 2](x : f32[M, N], keep : bool[M, N]) -> (y : f32[M, N]) {\n"
     "    y = where(keep, x / sum[N](x), 0.0) }",
     {{0, 0, 1, 3}, {0, 0, 1, 1}},
     {{0, 0, 0, 0}}},
    /* rows without anything visible */
    {"import \"std\"\n"
     "graph g[M = 2, N = 2](x : f32[M, N], hide : bool[M, N]) -> (y : f32[M, N]) {\n"
     "    y = where(hide, 0.0, softmax[N](where(hide, -inf, x))) }",
     {{1, 2, 1, 2}, {1, 1, 0, 1}},
     {{0, 0, 0, 0}}},
    {"import \"std\"\ngraph g[M = 1, N = 2](x : f32[M, N]) -> (y : f32[M]) { y = logsumexp[N](x) }",
     {{-INF, -INF}},
     {{0.5, 0.5}}},
    /* products with zeros */
    {"graph g[M = 3, N = 2](x : f32[M, N]) -> (y : f32[M]) { y = prod[N](x) }",
     {{0, 3, 0, 0, 2, 5}},
     {{3, 0, 0, 0, 5, 2}}},
    /* powers, by base and by exponent */
    {"graph g[N = 5](x : f32[N], z : f32[N]) -> (y : f32[N]) { y = x ** z }",
     {{0, 0, 0, 0, 2}, {0, 0.5, 1, 2, 3}},
     {{0, 0, 1, 0, 12}, {0, 0, 0, 0, 5.545177444479562}}},
    {"graph g[N = 3](x : f32[N], z : f32[N]) -> (y : f32[N]) { y = x ** z }",
     {{-2, -2, -3}, {2, 3, 0}},
     {{-4, 12, 0}, {0, 0, 0}}},
    /* ties and kinks */
    {"graph g[M = 2, N = 3](x : f32[M, N]) -> (y : f32[M]) { y = max[N](x) }",
     {{1, 1, 0, 2, 2, 2}},
     {{0.5, 0.5, 0, 1. / 3, 1. / 3, 1. / 3}}},
    {"graph g[M = 1, N = 3](x : f32[M, N]) -> (y : f32[M]) { y = min[N](x) }",
     {{1, 0, 0}},
     {{0, 0.5, 0.5}}},
    {"graph g[N = 3](x : f32[N], z : f32[N]) -> (y : f32[N]) { y = max(x, z) }",
     {{1, 2, 3}, {1, 3, 2}},
     {{0.5, 0, 1}, {0.5, 1, 0}}},
    {"graph g[N = 3](x : f32[N], z : f32[N]) -> (y : f32[N]) { y = min(x, z) }",
     {{1, 2, 3}, {1, 3, 2}},
     {{0.5, 1, 0}, {0.5, 0, 1}}},
    {"import \"std\"\ngraph g[N = 3](x : f32[N]) -> (y : f32[N]) { y = relu(x) }",
     {{-1, 0, 1}},
     {{0, 0, 1}}},
    {"graph g[N = 5](x : f32[N]) -> (y : f32[N]) { y = clamp(x, -1, 1) }",
     {{-2, -1, 0, 1, 2}},
     {{0, 1, 1, 1, 0}}},
    {"graph g[N = 5](x : f32[N], z : f32[N]) -> (y : f32[N]) { y = clamp(x, z, z + 2) }",
     {{-2, -1, 0, 1, 2}, {-1, -1, -1, -1, -1}},
     {{0, 1, 1, 1, 0}, {1, 0, 0, 0, 1}}},
    {"graph g[N = 4](x : f32[N], z : f32[N], w : f32[N]) -> (y : f32[N]) { y = clamp(x, z, w) }",
     {{0, 0, 2, 0}, {1, 1, -1, 1}, {3, -1, 1, 0.5}},
     {{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 1, 1}}},
    {"graph g[N = 3](x : f32[N]) -> (y : f32[N]) { y = abs(x) + floor(x) + round(x) + sign(x) }",
     {{-1, 0, 1}},
     {{-1, 0, 1}}},
    {"graph g[N = 3](x : f32[N]) -> (y : f32[N]) { y = where(x == 1, x, 2 * x) }",
     {{-1, 0, 1}},
     {{2, 2, 1}}},
    /* stores, casts, other types */
    {"graph g[N = 3](x : f32[N]) -> (y : f8e4m3[N]) { y = x * 2 }",
     {{1000, -1000, 1}},
     {{2, 2, 2}}},
    {"graph g[N = 2](x : f32[N]) -> (y : f32[N]) { y = bf16(x * x) + i32(x) }",
     {{3, 0.5}},
     {{6, 1}}},
    {"graph g[N = 2](x : f64[N], z : f32[N]) -> (y : f32[N]) { y = x * z }",
     {{2, 3}, {4, 5}},
     {{4, 5}, {2, 3}}},
    /* an output that is used again; two outputs of one value */
    {"graph g[N = 2](x : f32[N]) -> (h : f32[N], y : f32[N]) { h = x * x  y = 3 * h }",
     {{1, 2}},
     {{8, 16}}},
    {"graph g[N = 2](x : f32[N]) -> (a : f32[N], b : f32[N]) { a = 2 * x  b = a }",
     {{1, 2}},
     {{4, 4}}},
    {"graph g[N = 2](x : f32[N]) -> (a : f32[N], b : f32[N]) { a = x  b = x }", {{1, 2}}, {{2, 2}}},
    /* a picked element; the label that is no column */
    {"graph g[M = 3, N = 2](x : f32[M, N], i : f32[M]) -> (y : f32[M]) {\n"
     "    y = sum[N](where(index(N) == i, x, 0.0)) }",
     {{1, 2, 3, 4, 5, 6}, {0, 1, 7}},
     {{1, 0, 0, 1, 0, 0}, {0, 0, 0}}},
    /* sums over what was repeated, and repeated sums */
    {"graph g[M = 2, N = 3](x : f32[M]) -> (y : f32[M, N]) { y = x * index(N) }",
     {{1, 2}},
     {{3, 3}}},
    {"graph g[M = 2, N = 2](x : f32[M, N]) -> (y : f32[], w : f32[N]) {\n"
     "    y = mean[M, N](x)  w = sum[M](x) }",
     {{1, 2, 3, 4}},
     {{1.25, 1.25, 1.25, 1.25}}},
    /* no gradient at all is 0 */
    {"graph g[M = 2, N = 2](x : f32[M, N]) -> (y : f32[M, N]) { y = where(x > 0, 1.0, 2.0) }",
     {{1, 2, 3, 4}},
     {{0, 0, 0, 0}}},
};

static Evaluator evaluator_of(Arena *arena, const Graph *g)
{
    const Sizes sizes = small_sizes(g, 100);
    return evaluator_new(arena, g, &sizes);
}

static void set_tensor(const Evaluator *e, int param, const double *values)
{
    const Param *p = &e->g->params.data[param];
    char *to = e->inputs[param].data;
    const int64_t count = axes_size(&e->sizes, p->axes);
    for (int64_t i = 0; i < count; i++, to += dtype_info[p->dtype].bytes) {
        if (dtype_is_float(p->dtype))
            dtype_store_float(p->dtype, to, values[i]);
        else
            dtype_store_int(p->dtype, to, (int64_t)values[i]);
    }
}

static int find_param(const Graph *g, const char *name)
{
    for (int i = 0; i < g->params.count; i++)
        if (!strcmp(g->params.data[i].name, name)) return i;
    return -1;
}

/* Ones for gradients, the point's values for inputs, the forward pass's for what was saved. */
static void set_backward(const Point *p, const Evaluator *f, const Evaluator *b)
{
    const double ones[MOST_VALUES] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < b->g->params.count; i++) {
        const char *name = b->g->params.data[i].name;
        const int input = find_param(f->g, name);
        const double *values = input >= 0 ? p->inputs[input] : ones;
        for (int k = 0; input < 0 && k < f->g->outputs.count; k++)
            if (!strcmp(f->g->outputs.data[k].name, name)) values = f->outputs[k];
        set_tensor(b, i, values);
    }
}

START_TEST(gradients_at_singular_points)
{
    const Point *p = &points[_i];
    static const char *const ways[] = {"auto", "none"};
    for (int way = 0; way < 2; way++) {
        const GradRequest request = {.save = ways[way]};
        Pair pair = open_pair(p->text, &request);
        Arena *arena = arena_new();
        Evaluator f = evaluator_of(arena, pair.forward.lowered);
        Evaluator b = evaluator_of(arena, pair.backward.lowered);
        for (int i = 0; i < f.g->params.count; i++) set_tensor(&f, i, p->inputs[i]);
        ck_assert(evaluator_run(&f));
        set_backward(p, &f, &b);
        ck_assert(evaluator_run(&b));
        for (int i = 0; i < b.g->outputs.count; i++)
            for (int64_t k = 0; k < b.counts[i]; k++)
                ck_assert_msg(fabs(b.outputs[i][k] - p->gradients[i][k]) < 1e-12,
                              "%s[%d] is %g, not %g\n%s\n%s", b.g->outputs.data[i].name, (int)k,
                              b.outputs[i][k], p->gradients[i][k], p->text, pair.text);
        arena_free(arena);
        close_pair(&pair);
    }
}
END_TEST

/* ---- random programs ---- */

enum { PROGRAMS = 200, ELEMENTS = 256 };

/* "graph g has no output that has a gradient" is an answer, too. */
static bool has_gradient(const char *text)
{
    const GradRequest usual = {0};
    const CompileRequest r = {.text = text,
                              .length = strlen(text),
                              .name = "t.fuse",
                              .grad = &usual,
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_GRAD};
    Compilation c = compile(&r);
    const bool has = c.status == COMPILE_OK;
    ck_assert_msg(has || strstr(c.diagnostics, "that has a gradient"), "%s\n%s", c.diagnostics,
                  text);
    compile_free(&c);
    return has;
}

START_TEST(gradients_of_random_programs)
{
    Arena *arena = arena_new();
    const char *text = print_sketch(arena, generate(arena, 5000 + (uint64_t)_i, ELEMENTS), "g", 0);
    if (has_gradient(text)) {
        Pair pair = open_pair(text, NULL);
        Text *report = text_new(arena);
        const GradVerdict verdict = check_pair(&pair, pair.backward.lowered, NULL, 3, report);
        ck_assert_msg(verdict == GRADCHECK_RIGHT, "%s\n%s\n%s", text_string(report), text,
                      pair.text);
        close_pair(&pair);
    }
    arena_free(arena);
}
END_TEST

Suite *grad_suite(void)
{
    Suite *suite = suite_create("grad");
    TCase *singular = tcase_create("points"), *random = tcase_create("random");
    tcase_add_loop_test(singular, gradients_at_singular_points, 0, sizeof points / sizeof *points);
    tcase_add_loop_test(random, gradients_of_random_programs, 0, PROGRAMS);
    suite_add_tcase(suite, singular);
    suite_add_tcase(suite, random);
    return suite;
}
