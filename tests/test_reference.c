/* test_reference.c: the evaluator against plain loops, its bounds against real f32
 * arithmetic, and the judge against right and wrong results. */
#include "from_text.h"
#include "reference/reference.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 8 };

/* One evaluation of a program with random inputs. */
typedef struct {
    FromText program;
    Graph *graph;
    Sizes sizes;
    HostTensor inputs[MAX_TENSORS], outputs[MAX_TENSORS];
    double scalars[MAX_TENSORS];
    double *exact[MAX_TENSORS];
    float *bound[MAX_TENSORS];
} Case;

static size_t count_of(const Case *c, AxisSet axes)
{
    return (size_t)axes_size(&c->sizes, axes);
}

static void run_case(Case *c, int threads)
{
    const Evaluation e = {
        .graph = c->graph,
        .sizes = c->sizes,
        .inputs = c->inputs,
        .scalars = c->scalars,
        .outputs = c->outputs,
        .exact = c->exact,
        .bound = c->bound,
        .threads = threads,
    };
    ck_assert(evaluate(&e));
}

static Case open_case(const char *text)
{
    Case c = {.program = from_text(text)};
    ck_assert_msg(c.program.graph != NULL, "%s", c.program.report);
    c.graph = c.program.graph;
    Arena *arena = c.program.arena;
    for (int i = 0; i < MAX_AXES; i++)
        c.sizes.of[i] = i < c.graph->axis_count ? c.graph->axes[i].size : 1;
    for (int i = 0; i < c.graph->params.count; i++) {
        const Param *p = &c.graph->params.data[i];
        c.inputs[i] =
            (HostTensor){NEW_ARRAY(arena, double, count_of(&c, p->axes) + 1), p->dtype, p->axes};
        c.scalars[i] = p->default_value;
        random_input(c.graph, i, &c.sizes, 7, c.inputs[i].data);
    }
    for (int i = 0; i < c.graph->outputs.count; i++) {
        const Output *o = &c.graph->outputs.data[i];
        const size_t count = count_of(&c, o->axes) + 1;
        c.outputs[i] = (HostTensor){NEW_ARRAY(arena, double, count), o->dtype, o->axes};
        c.exact[i] = NEW_ARRAY(arena, double, count);
        c.bound[i] = NEW_ARRAY(arena, float, count);
    }
    return c;
}

static Case evaluate_text(const char *text)
{
    Case c = open_case(text);
    run_case(&c, 1);
    return c;
}

static void close_case(Case *c)
{
    arena_free(c->program.arena);
}

static Verdict judge_output(const Case *c, int output, const void *out)
{
    const Output *o = &c->graph->outputs.data[output];
    return judge(o->dtype, out, c->exact[output], c->bound[output], (int64_t)count_of(c, o->axes));
}

#define LAYER_NORM_BWD                                                                             \
    "graph g[M = 37, N = 1030](x : f32[M, N], dy : f32[M, N], gamma : f32[N],"                     \
    " mean : f32[M], rstd : f32[M]) -> (dx : f32[M, N], dgamma : f32[N]) {"                        \
    " xhat = (x - mean) * rstd\n wdy = dy * gamma\n c1 = mean[N](wdy * xhat)\n"                    \
    " c2 = mean[N](wdy)\n dx = (wdy - xhat * c1 - c2) * rstd\n"                                    \
    " dgamma = sum[M](dy * xhat) }"

/* The same in plain f32, one row. */
static void layer_norm_row(const Case *c, int m, int n, float *dx, float *dgamma)
{
    const float *x = (const float *)c->inputs[0].data + m * n;
    const float *dy = (const float *)c->inputs[1].data + m * n;
    const float *gamma = c->inputs[2].data;
    const float mean = ((const float *)c->inputs[3].data)[m];
    const float rstd = ((const float *)c->inputs[4].data)[m];
    float c1 = 0, c2 = 0;
    for (int i = 0; i < n; i++) {
        const float xhat = (x[i] - mean) * rstd, wdy = dy[i] * gamma[i];
        c1 += wdy * xhat;
        c2 += wdy;
        dgamma[i] += dy[i] * xhat;
    }
    c1 /= (float)n;
    c2 /= (float)n;
    for (int i = 0; i < n; i++) {
        const float xhat = (x[i] - mean) * rstd, wdy = dy[i] * gamma[i];
        dx[m * n + i] = (wdy - xhat * c1 - c2) * rstd;
    }
}

START_TEST(f32_layer_norm_stays_inside_the_bound)
{
    Case c = evaluate_text(LAYER_NORM_BWD);
    enum { M = 37, N = 1030 };
    float *dx = NEW_ARRAY(c.program.arena, float, M *N);
    float *dgamma = NEW_ARRAY(c.program.arena, float, N);
    for (int m = 0; m < M; m++) layer_norm_row(&c, m, N, dx, dgamma);
    ck_assert_int_eq(judge_output(&c, 0, dx).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 1, dgamma).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 0, c.outputs[0].data).wrong, 0);
    float *other = NEW_ARRAY(c.program.arena, float, M *N);
    memcpy(other, dx, M * N * sizeof *dx);
    other[7] = nextafterf(dx[7], 9); /* another right value */
    other[8] += 1e-4f;
    other[M * N - 1] = NAN;
    ck_assert_int_eq(judge_changed(DTYPE_F32, dx, dx, c.exact[0], c.bound[0], M * N), 0);
    ck_assert_int_eq(judge_changed(DTYPE_F32, other, dx, c.exact[0], c.bound[0], M * N), 2);
    for (int i = 0; i < M * N; i++) dx[i] += 1e-4f; /* a small mistake, but everywhere */
    ck_assert_int_gt(judge_output(&c, 0, dx).wrong, M * N / 2);
    dgamma[5] = NAN;
    const Verdict verdict = judge_output(&c, 1, dgamma);
    ck_assert_int_eq(verdict.wrong, 1);
    ck_assert_int_eq(verdict.worst, 5);
    close_case(&c);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    Case one = open_case(LAYER_NORM_BWD), three = open_case(LAYER_NORM_BWD);
    run_case(&one, 1);
    run_case(&three, 3);
    for (int i = 0; i < 2; i++) {
        const size_t count = count_of(&one, one.graph->outputs.data[i].axes);
        ck_assert_mem_eq(one.exact[i], three.exact[i], count * sizeof(double));
        ck_assert_mem_eq(one.bound[i], three.bound[i], count * sizeof(float));
    }
    close_case(&one);
    close_case(&three);
}
END_TEST

START_TEST(masked_softmax_is_exact_where_masked)
{
    Case c = evaluate_text("graph g[Q = 9, K = 9](x : f32[Q, K]) -> (y : f32[Q, K]) {"
                           " s = where(index(K) > index(Q), -inf, x)\n"
                           " e = exp(s - max[K](s))\n y = e / sum[K](e) }");
    const float *x = c.inputs[0].data;
    float y[81];
    for (int q = 0; q < 9; q++) {
        float top = -INFINITY, sum = 0;
        for (int k = 0; k <= q; k++) top = fmaxf(top, x[q * 9 + k]);
        for (int k = 0; k <= q; k++) sum += expf(x[q * 9 + k] - top);
        for (int k = 0; k < 9; k++) y[q * 9 + k] = k > q ? 0 : expf(x[q * 9 + k] - top) / sum;
    }
    ck_assert_int_eq(judge_output(&c, 0, y).wrong, 0);
    ck_assert_double_eq(c.exact[0][1], 0);
    ck_assert_double_lt((double)c.bound[0][1], 1e-40);
    y[1] = 1e-6f;
    ck_assert_int_eq(judge_output(&c, 0, y).wrong, 1);
    close_case(&c);
}
END_TEST

/* Every set of axes of a rank-3 tensor, with an innermost axis that is no whole chunk. */
START_TEST(reductions_over_any_axes)
{
    Case c = evaluate_text(
        "graph g[A = 3, B = 5, C = 700](x : f32[A, B, C]) -> (a : f64[B, C], b : f64[A, C],"
        " c : f64[A, B], ac : f64[B], abc : f64[]) { d = f64(x)\n"
        " a = sum[A](d)\n b = mean[B](d)\n c = max[C](d)\n ac = var[A, C](d)\n"
        " abc = sum[A, B, C](d) }");
    const float *x = c.inputs[0].data;
    double ac[5] = {0}, mean[5] = {0}, total = 0;
    for (int i = 0; i < 3 * 5 * 700; i++) {
        mean[i / 700 % 5] += (double)x[i] / 2100;
        total += (double)x[i];
    }
    for (int i = 0; i < 3 * 5 * 700; i++) {
        const double d = (double)x[i] - mean[i / 700 % 5];
        ac[i / 700 % 5] += d * d / 2100;
    }
    for (int i = 0; i < 5; i++) ck_assert_double_eq_tol(c.exact[3][i], ac[i], 1e-12);
    ck_assert_double_eq_tol(c.exact[4][0], total, 1e-9);
    for (int i = 0; i < 5 * 700; i++)
        ck_assert_double_eq_tol(c.exact[0][i],
                                (double)x[i] + (double)x[i + 3500] + (double)x[i + 7000], 1e-12);
    for (int i = 0; i < 15; i++) {
        double top = -HUGE_VAL;
        for (int k = 0; k < 700; k++) top = fmax(top, (double)x[i * 700 + k]);
        ck_assert_double_eq(c.exact[2][i], top);
    }
    double b = 0;
    for (int i = 0; i < 5; i++) b += (double)x[(2 * 5 + i) * 700 + 699] / 5;
    ck_assert_double_eq_tol(c.exact[1][2 * 700 + 699], b, 1e-12);
    close_case(&c);
}
END_TEST

START_TEST(empty_axes)
{
    Case c = evaluate_text(
        "graph g[M = 2, N = 0](x : f32[M, N]) -> (a : f32[M], b : f32[M], c : f32[M],"
        " d : f32[M], e : f32[M], f : f32[M], g : f32[M, N], h : f32[N]) {"
        " a = sum[N](x)\n b = prod[N](x)\n c = max[N](x)\n d = min[N](x)\n e = mean[N](x)\n"
        " f = var[N](x)\n g = x * 2.0\n h = sum[M](x) }");
    for (int m = 0; m < 2; m++) {
        ck_assert_double_eq(c.exact[0][m], 0);
        ck_assert_double_eq(c.exact[1][m], 1);
        ck_assert_double_eq(c.exact[2][m], -HUGE_VAL);
        ck_assert_double_eq(c.exact[3][m], HUGE_VAL);
        ck_assert(isnan(c.exact[4][m]) && isnan(c.exact[5][m]));
        ck_assert_int_eq(judge_output(&c, 4, c.outputs[4].data).wrong, 0);
    }
    close_case(&c);
}
END_TEST

START_TEST(integers_wrap_and_stay_integers)
{
    Case c = open_case("graph g[N = 3](k : i64[N]) -> (a : i64[], b : i64[N], c : i8[N],"
                       " d : f32[N]) { a = sum[N](k)\n b = k * k\n c = k\n d = k / 2 }");
    const int64_t values[] = {INT64_MAX, 1, -7};
    memcpy(c.inputs[0].data, values, sizeof values);
    run_case(&c, 1);
    ck_assert_int_eq(*(int64_t *)c.outputs[0].data, INT64_MAX - 6);
    ck_assert_int_eq(((int64_t *)c.outputs[1].data)[0], 1);
    ck_assert_int_eq(((signed char *)c.outputs[2].data)[0], 127);
    ck_assert_double_eq(c.exact[3][2], -3.5);
    close_case(&c);
}
END_TEST

START_TEST(nan_and_range_follow_f32)
{
    Case c = open_case("graph g[N = 4](x : f32[N]) -> (a : f32[], b : f32[N], c : f32[N]) {"
                       " a = max[N](x)\n b = max(x, 0.0)\n c = x * x }");
    const float values[] = {NAN, 1e30f, -1, 2};
    memcpy(c.inputs[0].data, values, sizeof values);
    run_case(&c, 1);
    ck_assert(isnan(c.exact[0][0]) && isnan(c.exact[1][0]));
    ck_assert_double_eq(c.exact[2][1], HUGE_VAL);
    float right[] = {NAN, INFINITY, 1, 4}, wrong[] = {0, 3e38f, 1, 4};
    ck_assert_int_eq(judge_output(&c, 2, right).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 2, wrong).wrong, 2);
    ck_assert_int_eq(judge_output(&c, 2, right).nans, 1);
    ck_assert_int_eq(judge_output(&c, 2, wrong).nans, 0);
    close_case(&c);
}
END_TEST

/* A huge finite mask value has a huge error, of which exp leaves nothing; 0 * log(0) is not looked
 * at. */
START_TEST(what_a_mask_hides_has_a_bound)
{
    static const char *const masks[] = {"-1e30", "-3e38", "-inf"};
    for (int i = 0; i < 3; i++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "graph g[N = 4](x : f32[N]) -> (lse : f32[], h : f32[]) {"
            " s = where(x > 0.0, x * 3.0, %s)\n m = max[N](s)\n e = exp(s - m)\n z = sum[N](e)\n"
            " lse = log(z) + m\n q = e / z\n h = -sum[N](where(q > 0.0, q * log(q), 0.0)) }",
            masks[i]);
        Case c = open_case(text);
        const float values[] = {1, -1, 2, -2};
        memcpy(c.inputs[0].data, values, sizeof values);
        run_case(&c, 1);
        const float right[] = {(float)c.exact[0][0]}, wrong[] = {right[0] * 1.001f};
        ck_assert_double_eq_tol(c.exact[1][0], 0.190, 0.001);
        const float entropy[] = {(float)c.exact[1][0] * 1.001f};
        ck_assert_int_eq(judge_output(&c, 0, right).wrong, 0);
        ck_assert_int_eq(judge_output(&c, 0, wrong).wrong, 1);
        ck_assert_int_eq(judge_output(&c, 1, entropy).wrong, 1);
        ck_assert_int_eq(judge_output(&c, 1, entropy).unchecked, 0);
        close_case(&c);
    }
}
END_TEST

START_TEST(what_may_be_anything_is_counted)
{
    Case c =
        open_case("graph g[N = 3](x : f32[N]) -> (y : f32[N]) { y = log(exp(x) - 2.7182818) }");
    const float values[] = {1, 2, 3};
    memcpy(c.inputs[0].data, values, sizeof values);
    run_case(&c, 1);
    const float y[] = {7, 1.54132486f, 2.85458654f};
    ck_assert_int_eq(judge_output(&c, 0, y).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 0, y).unchecked, 1);
    close_case(&c);
}
END_TEST

START_TEST(a_mean_may_be_in_range_where_its_sum_is_not)
{
    Case c = open_case("graph g[M = 2, N = 4](x : f32[M, N]) -> (a : f32[M], s : f32[M]) {"
                       " a = mean[N](x)\n s = sum[N](x) }");
    const float values[] = {3e38f, 3e38f, 3e38f, 3e38f, 1e37f, 1e37f, 1e37f, 1e37f};
    memcpy(c.inputs[0].data, values, sizeof values);
    run_case(&c, 1);
    float means[] = {INFINITY, 1e37f}, wrong[] = {3e38f, INFINITY}, sums[] = {INFINITY, 4e37f};
    ck_assert_int_eq(judge_output(&c, 0, means).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 0, wrong).wrong, 1);
    ck_assert_int_eq(judge_output(&c, 1, sums).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 1, wrong).wrong, 2);
    close_case(&c);
}
END_TEST

START_TEST(random_inputs_keep_their_promises)
{
    Case c = open_case("graph g[M = 50, N = 40](x : f32[M, N], rstd : f32[M], len : i32[M],"
                       " mask : u8[M]) -> (y : f32[M, N]) {"
                       " y = where(index(N) < len, x * rstd * mask, 0.0) }");
    double sum = 0, squares = 0;
    for (int i = 0; i < 2000; i++) {
        const double x = (double)((float *)c.inputs[0].data)[i];
        sum += x;
        squares += x * x;
    }
    ck_assert_double_lt(fabs(sum / 2000), 0.1);
    ck_assert_double_lt(fabs(squares / 2000 - 1), 0.15);
    for (int i = 0; i < 50; i++) {
        const int32_t length = ((int32_t *)c.inputs[2].data)[i];
        ck_assert(((float *)c.inputs[1].data)[i] >= 0.5f);
        ck_assert(length >= 0 && length < 40);
        ck_assert_uint_le(((unsigned char *)c.inputs[3].data)[i], 1);
    }
    close_case(&c);
}
END_TEST

/* How many elements of an output are wrong once all are multiplied. */
static int64_t wrong_by(const Case *c, int output, float factor)
{
    float *y = c->outputs[output].data;
    for (size_t i = 0; i < count_of(c, c->graph->outputs.data[output].axes); i++) y[i] *= factor;
    return judge_output(c, output, y).wrong;
}

/* 8 million and a few, exact in f32. */
#define FAR " f = f32(i64(floor(x * 8.0)) + 8000000)\n"

START_TEST(moments_far_from_0_are_known)
{
    static const char *const texts[] = {
        "graph g[M = 4, N = 64](x : f32[M, N]) -> (v : f32[M], y : f32[M, N]) {" FAR
        " v = var[N](f)\n y = (f - mean[N](f)) * rsqrt(v + 1e-5) }",
        "graph g[M = 4, N = 64](x : f32[M, N]) -> (v : f32[M], y : f32[M, N]) {" FAR
        " d = f - mean[N](f)\n v = mean[N](d ** 2.0)\n y = d / sqrt(v) }",
        "graph g[M = 4, N = 64](x : f32[M, N]) -> (v : f32[N], y : f32[M, N], a : f32[M]) {" FAR
        " d = f - mean[M](f)\n v = mean[M](d * d)\n y = d * rsqrt(v + 1e-5)\n a = sum[N](y * x) }",
        "graph g[M = 4, N = 64](x : f32[M, N]) -> (v : f32[], y : f32[M, N]) {" FAR
        " d = f - mean[M, N](f)\n v = mean[M, N](d * d)\n y = d * rsqrt(v + 1e-5) }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Case c = evaluate_text(texts[i]);
        for (int output = 0; output < 2; output++) {
            const Verdict v = judge_output(&c, output, c.outputs[output].data);
            ck_assert_int_eq(v.wrong + v.unchecked, 0);
        }
        const size_t variances = count_of(&c, c.graph->outputs.data[0].axes);
        ck_assert_uint_eq((size_t)wrong_by(&c, 0, 1.001f), variances);
        ck_assert_int_ge(wrong_by(&c, 1, 1.001f), 200); /* of 256; some are next to 0 */
        close_case(&c);
    }
}
END_TEST

/* Where another kernel than that which finds a mean and its squares subtracts the mean, that is
 * rounded, or a plain one. */
START_TEST(a_mean_of_another_kernel_is_rounded)
{
    Case c = evaluate_text("graph g[M = 4, N = 64](x : f32[N], z : f32[M, N]) ->"
                           " (v : f32[], y : f32[N], w : f32[M, N]) {" FAR
                           " d = f - mean[N](f)\n v = mean[N](d * d)\n y = d\n w = d * z }");
    float *y = c.outputs[1].data;
    y[3] += 1;
    ck_assert_int_eq(judge_output(&c, 1, y).wrong, 0);
    y[3] += 15;
    ck_assert_int_eq(judge_output(&c, 1, y).wrong, 1);
    ck_assert_int_eq(wrong_by(&c, 0, 1.001f), 1);
    close_case(&c);
}
END_TEST

/* A sum of distances from the first value of a row is off by what rounding makes of that, however
 * near 0 the mean is. */
START_TEST(an_outlier_counts_in_a_mean_with_squares)
{
    Case c = evaluate_text(
        "graph g[N = 1024](x : f32[N]) -> (m : f32[], v : f32[]) {"
        " f = where(index(N) == 0, 12345.678, x * 0.001)\n m = mean[N](f)\n v = var[N](f) }");
    float *m = c.outputs[0].data;
    *m *= 1 + 40 * 0x1p-23f;
    ck_assert_int_eq(judge_output(&c, 0, m).wrong, 0);
    *m *= 1.01f;
    ck_assert_int_eq(judge_output(&c, 0, m).wrong, 1);
    close_case(&c);
}
END_TEST

/* So do terms that differ by few bits, as a narrow number and a constant; others do not. */
START_TEST(terms_with_the_same_last_bits_round_alike)
{
    Case c = evaluate_text(
        "graph g[M = 498](x : f32[M]) -> (s : f32[], k : f32[]) {"
        " near = f8e4m3(x) - 1.39994466\n s = sum[M](near)\n k = sum[M](x - 1.39994466) }");
    float *s = c.outputs[0].data, *k = c.outputs[1].data;
    *s *= 1 + 22 * 0x1p-23f;
    *k *= 1 + 22 * 0x1p-23f;
    ck_assert_int_eq(judge_output(&c, 0, s).wrong, 0);
    ck_assert_int_eq(judge_output(&c, 1, k).wrong, 1);
    close_case(&c);
}
END_TEST

/* Added one after the other, equal terms round in the same direction again and again. */
START_TEST(equal_terms_round_alike)
{
    enum { TERMS = 2055 };
    static const char *const texts[] = {
        "graph g[M = 2055, N = 3](x : f32[M, N]) -> (s : f32[N], k : f32[N]) {"
        " z = where(x > 100.0, x, 0.1)\n s = sum[M](z)\n k = sum[M](where(z > 1.0, 0.0, 1.0)) }",
        "graph g[M = 3, N = 2055](x : f32[M, N]) -> (s : f32[M], k : f32[M]) {"
        " z = where(x > 100.0, x, 0.1)\n s = sum[N](z)\n k = sum[N](where(z > 1.0, 0.0, 1.0)) }",
        "graph g[M = 3, N = 2055, P = 2](x : f32[M, N]) -> (s : f32[M], k : f32[M]) {"
        " z = where(index(P) == 0, where(x > 100.0, x, 0.1), 0.0)\n s = sum[N, P](z)"
        "\n k = sum[N, P](where(z > 0.0, 1.0, 0.0)) }",
        "graph g[M = 2055, N = 3](x : f32[M, N]) -> (s : f32[N], v : f32[N]) {"
        " z = where(x > 100.0, x, 0.1) * 1e30\n s = mean[M](z)\n v = var[M](z) }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Case c = evaluate_text(texts[i]);
        float *s = c.outputs[0].data, *k = c.outputs[1].data;
        const float term = i < 3 ? 0.1f : 0.1f * 1e30f;
        volatile float sum = 0; /* an f32 at each step */
        for (int j = 0; j < TERMS; j++) sum += term;
        ck_assert(fabsf(sum / TERMS - term) > 60 * 0x1p-24f * term);
        s[1] = i < 3 ? sum : sum / TERMS;
        ck_assert_int_eq(judge_output(&c, 0, s).wrong, 0);
        ck_assert_int_eq(wrong_by(&c, 0, 1.001f), 3);
        k[1] += 1;
        ck_assert_int_eq(i < 3 ? judge_output(&c, 1, k).wrong : 1, 1);
        close_case(&c);
    }
}
END_TEST

Suite *reference_suite(void)
{
    Suite *suite = suite_create("reference");
    TCase *cases = tcase_create("evaluator");
    tcase_add_test(cases, f32_layer_norm_stays_inside_the_bound);
    tcase_add_test(cases, threads_change_no_bit);
    tcase_add_test(cases, what_a_mask_hides_has_a_bound);
    tcase_add_test(cases, what_may_be_anything_is_counted);
    tcase_add_test(cases, masked_softmax_is_exact_where_masked);
    tcase_add_test(cases, reductions_over_any_axes);
    tcase_add_test(cases, empty_axes);
    tcase_add_test(cases, integers_wrap_and_stay_integers);
    tcase_add_test(cases, nan_and_range_follow_f32);
    tcase_add_test(cases, a_mean_may_be_in_range_where_its_sum_is_not);
    tcase_add_test(cases, moments_far_from_0_are_known);
    tcase_add_test(cases, a_mean_of_another_kernel_is_rounded);
    tcase_add_test(cases, an_outlier_counts_in_a_mean_with_squares);
    tcase_add_test(cases, terms_with_the_same_last_bits_round_alike);
    tcase_add_test(cases, equal_terms_round_alike);
    tcase_add_test(cases, random_inputs_keep_their_promises);
    suite_add_tcase(suite, cases);
    return suite;
}
