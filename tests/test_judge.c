/* test_judge.c: whether the judge notices what is wrong: the right outputs of every example and of
 * every case, as the evaluator stores them, broken in many ways. */
#include "compile.h"
#include "prop/data.h"
#include "suites.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 13 };

/* ---- one output, and ways to break it ---- */

typedef struct {
    DType dtype;
    int64_t count, columns; /* all elements; those of a row */
    const char *right;
    char *broken;    /* a copy of it at first */
    int64_t largest; /* the element of the largest magnitude that is checked, -1: none */
} Sample;

static size_t place(const Sample *s, int64_t element)
{
    return (size_t)element * (size_t)dtype_info[s->dtype].bytes;
}

static double right_value(const Sample *s, int64_t element)
{
    const void *at = s->right + place(s, element);
    return dtype_is_float(s->dtype) ? dtype_load_float(s->dtype, at)
                                    : (double)dtype_load_int(s->dtype, at);
}

static void put(const Sample *s, int64_t element, double value)
{
    dtype_store_float(s->dtype, s->broken + place(s, element), value);
}

static void take(const Sample *s, int64_t element, int64_t from)
{
    memcpy(s->broken + place(s, element), s->right + place(s, from),
           (size_t)dtype_info[s->dtype].bytes);
}

static void fill(const Sample *s, double value)
{
    for (int64_t i = 0; i < s->count; i++) put(s, i, value);
}

static void scale(const Sample *s, double factor)
{
    for (int64_t i = 0; i < s->count; i++)
        if (dtype_is_float(s->dtype)) put(s, i, right_value(s, i) * factor);
}

static void nan_everywhere(const Sample *s)
{
    fill(s, (double)NAN);
}
static void infinity_everywhere(const Sample *s)
{
    fill(s, HUGE_VAL);
}
static void zeros(const Sample *s)
{
    fill(s, 0);
}
static void nine_thousandths_more(const Sample *s)
{
    scale(s, 1.009);
}
static void a_hundredth_more(const Sample *s)
{
    scale(s, 1.01);
}
static void a_hundredth_less(const Sample *s)
{
    scale(s, 0.99);
}
static void twice(const Sample *s)
{
    scale(s, 2);
}
static void other_sign(const Sample *s)
{
    scale(s, -1);
}
static void nothing_written(const Sample *s)
{
    memset(s->broken, 0xff, place(s, s->count));
}
static void nan_in_one(const Sample *s)
{
    put(s, s->largest, (double)NAN);
}
static void infinity_in_one(const Sample *s)
{
    put(s, s->largest, HUGE_VAL);
}
static void zero_in_one(const Sample *s)
{
    put(s, s->largest, 0);
}

static void one_off(const Sample *s)
{
    char *at = s->broken + place(s, s->largest);
    if (dtype_is_float(s->dtype))
        put(s, s->largest, right_value(s, s->largest) * 1.02);
    else
        dtype_store_int(s->dtype, at, dtype_load_int(s->dtype, at) ^ 1);
}

static void number_in_last_column(const Sample *s)
{
    for (int64_t i = s->columns - 1; i < s->count; i += s->columns) put(s, i, 12345);
}

static void nan_in_last_column(const Sample *s)
{
    for (int64_t i = s->columns - 1; i < s->count; i += s->columns) put(s, i, (double)NAN);
}

static void last_row_of_zeros(const Sample *s)
{
    for (int64_t i = s->count - s->columns; i < s->count; i++) put(s, i, 0);
}

static void first_row_everywhere(const Sample *s)
{
    for (int64_t i = 0; i < s->count; i++) take(s, i, i % s->columns);
}

static void next_element(const Sample *s)
{
    for (int64_t i = 0; i < s->count; i++) take(s, i, (i + 1) % s->count);
}

static void backwards(const Sample *s)
{
    for (int64_t i = 0; i < s->count; i++) take(s, i, s->count - 1 - i);
}

static void halves_swapped(const Sample *s)
{
    for (int64_t i = 0; i < s->count; i++) take(s, i, (i + s->count / 2) % s->count);
}

static void one_takes_its_neighbour(const Sample *s)
{
    take(s, s->largest, (s->largest + 1) % s->count);
}

typedef void Break(const Sample *s);

static const struct {
    const char *name;
    Break *apply;
} breaks[] = {
    {"NaN everywhere", nan_everywhere},
    {"infinity everywhere", infinity_everywhere},
    {"zeros", zeros},
    {"times 1.009", nine_thousandths_more},
    {"times 1.01", a_hundredth_more},
    {"times 0.99", a_hundredth_less},
    {"twice", twice},
    {"the other sign", other_sign},
    {"nothing written", nothing_written},
    {"NaN in one element", nan_in_one},
    {"infinity in one element", infinity_in_one},
    {"zero in one element", zero_in_one},
    {"one element off", one_off},
    {"12345 in the last column", number_in_last_column},
    {"NaN in the last column", nan_in_last_column},
    {"a last row of zeros", last_row_of_zeros},
    {"the first row everywhere", first_row_everywhere},
    {"the next element's values", next_element},
    {"backwards", backwards},
    {"halves swapped", halves_swapped},
    {"one element takes its neighbour's", one_takes_its_neighbour},
};
enum { BREAKS = sizeof breaks / sizeof *breaks };

/* ---- judging ---- */

typedef struct {
    int outputs, tried, same; /* breaks that were judged; that changed no number */
} Tally;

/* f64 sums of the same numbers differ in their last bits by their order. */
static bool is_same_number(const Sample *s, int64_t element)
{
    const char *a = s->right + place(s, element), *b = s->broken + place(s, element);
    if (!dtype_is_float(s->dtype)) return !memcmp(a, b, place(s, 1));
    const double x = dtype_load_float(s->dtype, a), y = dtype_load_float(s->dtype, b);
    const double near = s->dtype == DTYPE_F64 ? 1e-12 * fabs(x) : 0;
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= near;
}

/* Whether some element holds another number, of those that are not any number. */
static bool is_changed(const Sample *s, const float *bound)
{
    for (int64_t i = 0; i < s->count; i++)
        if (bound[i] < HUGE_VALF && !is_same_number(s, i)) return true;
    return false;
}

/* An infinity only where there is nothing else. */
static int64_t find_largest(const Sample *s, const float *bound)
{
    int64_t largest = -1;
    double most = -1;
    for (int64_t i = 0; i < s->count; i++) {
        const double size = isinf(right_value(s, i)) ? 0 : fabs(right_value(s, i));
        if (!(bound[i] < HUGE_VALF) || isnan(size) || size <= most) continue;
        largest = i;
        most = size;
    }
    return largest;
}

/* Products of which f32 keeps nothing: the cases are there for their bounds, and have other
 * outputs. */
static bool is_lost(const char *path, const Output *o)
{
    return (strstr(path, "product_below_f32") && !strcmp(o->name, "v4")) ||
           (strstr(path, "product_of_zero_and_huge") && !strcmp(o->name, "v12"));
}

static void try_breaks(const char *path, const Output *o, Sample *s, const double *exact,
                       const float *bound, Tally *tally)
{
    for (int i = 0; i < BREAKS; i++) {
        memcpy(s->broken, s->right, place(s, s->count));
        breaks[i].apply(s);
        if (!is_changed(s, bound)) {
            tally->same++;
            continue;
        }
        tally->tried++;
        ck_assert_msg(judge(s->dtype, s->broken, exact, bound, s->count).wrong > 0,
                      "%s: %s: %s is not noticed", path, o->name, breaks[i].name);
    }
}

static void judge_output(const char *path, const Data *data, int output, Tally *tally)
{
    const Output *o = &data->graph->outputs.data[output];
    const int64_t count = axes_size(&data->sizes, o->axes);
    const AxisSet last = o->axes ? (AxisSet)1 << (31 - __builtin_clz(o->axes)) : 0;
    Sample s = {.dtype = o->dtype,
                .count = count,
                .columns = axes_size(&data->sizes, last),
                .right = data->outputs[output].data};
    const Verdict v = judge(o->dtype, s.right, data->exact[output], data->bound[output], count);
    ck_assert_msg(v.wrong == 0, "%s: %s: its right values are called wrong", path, o->name);
    if (count == 0) return;
    s.broken = NEW_ARRAY(data->arena, char, place(&s, count) + 1);
    s.largest = find_largest(&s, data->bound[output]);
    if (is_lost(path, o)) return;
    ck_assert_msg(v.unchecked < count, "%s: %s: nothing of it is checked", path, o->name);
    ck_assert_msg(s.largest >= 0 || v.nans == count, "%s: %s: no number is checked", path, o->name);
    if (s.largest < 0) s.largest = 0;
    try_breaks(path, o, &s, data->exact[output], data->bound[output], tally);
    tally->outputs++;
}

/* ---- files ---- */

static char *read_text(Arena *arena, const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = NEW_ARRAY(arena, char, 1 << 16);
    ck_assert_uint_lt(fread(text, 1, (1 << 16) - 1, file), (1 << 16) - 1);
    fclose(file);
    return text;
}

/* The sizes of the file, the largest halved until it is little work. */
static Sizes small_sizes(const Graph *g)
{
    Sizes sizes = {0};
    for (int i = 0; i < g->axis_count; i++) sizes.of[i] = g->axes[i].size;
    for (;;) {
        double elements = 1;
        int longest = 0;
        for (int i = 0; i < g->axis_count; i++) {
            elements *= (double)sizes.of[i];
            if (sizes.of[i] > sizes.of[longest]) longest = i;
        }
        if (elements <= MOST_ELEMENTS) return sizes;
        sizes.of[longest] = (sizes.of[longest] + 1) / 2;
    }
}

static void judge_file(const char *path, Tally *tally)
{
    Arena *arena = arena_new();
    const char *text = read_text(arena, path), *seed = strstr(text, "# seed: ");
    CompileRequest request = {.text = text,
                              .length = strlen(text),
                              .name = path,
                              .target = *target_find("sm_90a"),
                              .until = UNTIL_GRAPH};
    Compilation c = compile(&request);
    ck_assert_msg(c.status == COMPILE_OK, "%s: %s", path, c.diagnostics);
    const Sizes sizes = small_sizes(c.lowered);
    Data data;
    ck_assert(make_data(&data, arena, c.lowered, &sizes, seed ? strtoull(seed + 8, NULL, 10) : 1));
    for (int i = 0; i < c.lowered->outputs.count; i++) judge_output(path, &data, i, tally);
    compile_free(&c);
    arena_free(arena);
}

static void judge_folder(const char *folder, Tally *tally)
{
    DIR *directory = opendir(folder);
    char path[512];
    ck_assert_msg(directory != NULL, "%s", folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".fuse")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        judge_file(path, tally);
    }
    closedir(directory);
}

START_TEST(what_is_broken_is_noticed)
{
    Tally tally = {0};
    judge_folder("examples", &tally);
    judge_folder("tests/cases", &tally);
    printf("judge: %d outputs, %d breaks tried, %d changed nothing\n", tally.outputs, tally.tried,
           tally.same);
}
END_TEST

/* ---- one graph, one element broken at a time ---- */

/* An evaluated program of axes M = 4, N = 64. */
typedef struct {
    Arena *arena;
    Compilation compiled;
    Data data;
} Judged;

static Judged open_judged(const char *body)
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
    const Sizes sizes = small_sizes(j.compiled.lowered);
    ck_assert(make_data(&j.data, j.arena, j.compiled.lowered, &sizes, 1));
    return j;
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

Suite *judge_suite(void)
{
    Suite *suite = suite_create("judge");
    TCase *cases = tcase_create("broken outputs");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_is_broken_is_noticed);
    tcase_add_test(cases, only_elements_that_reach_a_step_are_forgiven);
    tcase_add_test(cases, errors_end_where_functions_are_flat);
    tcase_add_test(cases, what_may_be_nan_is_apart_from_what_may_be_infinite);
    tcase_add_test(cases, integers_are_compared_as_integers);
    tcase_add_test(cases, the_largest_error_and_the_largest_share);
    tcase_add_test(cases, no_infinity_for_the_largest_number);
    suite_add_tcase(suite, cases);
    return suite;
}
