/* test_broken.c: whether the judge notices what is wrong: the right outputs of every example and of
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

Suite *broken_suite(void)
{
    Suite *suite = suite_create("broken");
    TCase *cases = tcase_create("outputs");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_is_broken_is_noticed);
    suite_add_tcase(suite, cases);
    return suite;
}
