/* test_tune.c: which schedule `fusec tune` keeps, from times that are made up; and its way from
 * compiling to times, on the CPU device, which takes plans, poison and events like a GPU. */
#include "cli/device.h"
#include "planned.h"
#include "programs.h"
#include "schedule/plan.h"
#include "suites.h"
#include "cli/timer.h"
#include "cli/tune.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 20, TRIALS = 4 };

static Arena *arena;
static double times[TRIALS][ROUNDS];
static Trial trials[TRIALS];

/* The default takes 100 us, the others so much less, all with a drift that is larger than that. */
static void make_up(const double gains[TRIALS])
{
    arena = arena_new();
    for (int i = 0; i < TRIALS; i++) {
        for (int r = 0; r < ROUNDS; r++) times[i][r] = (100 - gains[i]) * (1 + 0.01 * r);
        trials[i] = (Trial){.schedule = "row",
                            .times = times[i],
                            .rounds = ROUNDS,
                            .registers = 32,
                            .finalist = true};
        set_median(arena, &trials[i]);
    }
}

START_TEST(a_clear_winner_is_kept)
{
    make_up((double[]){0, 2, 5, -3});
    Choice c = choose_trial(trials, TRIALS);
    ck_assert_int_eq(c.best, 2);
    ck_assert(c.kept);
    ck_assert_int_eq(c.wins, ROUNDS);
    ck_assert_double_eq_tol(c.gain, 0.05, 1e-9);
    ck_assert_double_eq(times[2][0], 95); /* the order of the rounds is kept */
    arena_free(arena);
}
END_TEST

START_TEST(less_than_a_percent_is_noise)
{
    make_up((double[]){0, 0.9, 0.5, 0});
    Choice c = choose_trial(trials, TRIALS);
    ck_assert_int_eq(c.best, 1);
    ck_assert(!c.kept);
    arena_free(arena);
}
END_TEST

START_TEST(a_median_that_few_rounds_bear_out_is_noise)
{
    make_up((double[]){0, 0, 0, 0});
    for (int r = 0; r < ROUNDS; r++) times[1][r] = r % 3 ? 90 : 200;
    set_median(arena, &trials[1]);
    Choice c = choose_trial(trials, TRIALS);
    ck_assert_int_eq(c.best, 1);
    ck_assert_double_gt(c.gain, 0.1);
    ck_assert(!c.kept);
    arena_free(arena);
}
END_TEST

START_TEST(the_default_stays_where_it_is_best)
{
    make_up((double[]){0, -1, -2, -3});
    Choice c = choose_trial(trials, TRIALS);
    ck_assert_int_eq(c.best, 0);
    ck_assert(!c.kept);
    arena_free(arena);
}
END_TEST

START_TEST(finalists_are_the_fastest_and_the_default)
{
    make_up((double[]){0, 3, 1, 2});
    for (int i = 0; i < TRIALS; i++) trials[i].finalist = false;
    trials[1].rejected = "spills";
    choose_finalists(arena, trials, TRIALS, 1);
    ck_assert(trials[0].finalist && !trials[1].finalist && !trials[2].finalist &&
              trials[3].finalist);
    arena_free(arena);
}
END_TEST

static Report report_of(Choice choice)
{
    static const char *const axes[] = {"M", "N"};
    static const int64_t sizes[] = {16, 4096};
    return (Report){.graph = "g",
                    .device = "a \"GPU\"",
                    .arch = "sm_90a",
                    .file = "/f",
                    .axis_count = 2,
                    .axes = axes,
                    .sizes = sizes,
                    .bytes = 1000000,
                    .trials = trials,
                    .count = TRIALS,
                    .choice = choice};
}

START_TEST(the_table_says_what_was_found)
{
    make_up((double[]){0, 2, 5, 1});
    trials[3].rejected = "spills 8 bytes in the compiled kernel";
    Report r = report_of(choose_trial(trials, TRIALS));
    Text *out = text_new(arena);
    print_report(out, &r);
    const char *text = text_string(out);
    ck_assert_msg(strstr(text, "g M=16 N=4096 on a \"GPU\"\n") == text, "%s", text);
    ck_assert_msg(strstr(text, "0.950  finalist\n") < strstr(text, "1.000  default\n"), "%s", text);
    ck_assert(strstr(text, "rejected: row: spills 8 bytes"));
    ck_assert(
        strstr(text, "5.0% faster than the default in its median, faster in 20 of 20 rounds"));
    ck_assert(strstr(text, "kept in /f\n"));
    arena_free(arena);
}
END_TEST

START_TEST(the_json_is_json)
{
    make_up((double[]){0, 2, 5, 1});
    trials[0].schedule = NULL;
    trials[3].rejected = "error:\n\"x\"";
    Report r = report_of(choose_trial(trials, TRIALS));
    Text *out = text_new(arena);
    print_report_json(out, &r);
    json_error_t wrong;
    json_t *json = json_loads(text_string(out), 0, &wrong);
    ck_assert_msg(json != NULL, "%s: %s", wrong.text, text_string(out));
    ck_assert_str_eq(json_string_value(json_object_get(json, "device")), "a \"GPU\"");
    ck_assert_uint_eq(json_array_size(json_object_get(json, "candidates")), 3);
    json_t *rejected = json_array_get(json_object_get(json, "rejected"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(rejected, "reason")), "error:\n\"x\"");
    ck_assert(json_is_true(json_object_get(json, "kept")));
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(json, "sizes"), "N")),
                     4096);
    json_decref(json);
    arena_free(arena);
}
END_TEST

/* ---- the whole way ---- */

static const char *const words[] = {"row", "row:threads=64", "row:threads=31"};

START_TEST(candidates_are_compiled_verified_and_timed)
{
    Session s;
    Batch small = {0};
    Options o = {.arena = arena_new(), .command = COMMAND_TUNE};
    *list_push(o.arena, &o.files) = "examples/softmax.fuse";
    *list_push(o.arena, &o.sizes) = (AxisSize){"M", 50};
    *list_push(o.arena, &o.sizes) = (AxisSize){"N", 1040};
    fusec_error error;
    Trial some[3] = {{.schedule = words[0]}, {.schedule = words[1]}, {.schedule = words[2]}};
    ck_assert_int_eq(open_session(&s, &o), EXIT_DONE);
    ck_assert_int_eq(settle_sizes(&s, NULL), EXIT_DONE);
    ck_assert_int_eq(open_device(&s, "cpu"), EXIT_DONE);
    ck_assert_int_eq(
        fusec_program_parse(s.program.text, s.program.length, "softmax.fuse", &s.parsed, &error),
        FUSEC_OK);
    ck_assert_int_eq(compile_trials(&s, some, 3), EXIT_DONE);
    ck_assert(!some[0].rejected && !some[1].rejected);
    ck_assert_msg(strstr(some[2].rejected, "schedule refused"), "%s", some[2].rejected);
    s.plan = some[0].plan;
    ck_assert_int_eq(verify_trials(&s, some, 3, &small), EXIT_DONE);
    ck_assert(!some[0].rejected && !some[1].rejected);
    ck_assert_int_eq(time_trials(&s, some, 3, &small, 4096), EXIT_DONE);
    ck_assert(some[0].us > 0 && some[1].us > 0 && some[0].rounds == some[1].rounds);
    close_batch(&s, &small);
    for (int i = 0; i < 3; i++) fusec_plan_destroy(some[i].plan);
    s.plan = NULL;
    close_session(&s);
    arena_free(o.arena);
}
END_TEST

/* A plan of a graph of the same tensors: what a kernel that is wrong would store. */
static fusec_plan *plan_of(const Session *s, const char *value)
{
    fusec_plan *plan;
    fusec_program *program;
    fusec_error error;
    const char *text = arena_format(
        s->arena,
        "graph g[M = 9, N = 256](x : f32[M, N], s : f32[N]) -> (y : f32[M, N]) { y = %s }", value);
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), "g.fuse", &program, &error), FUSEC_OK);
    const fusec_status status =
        fusec_plan_create(s->device, program, NULL, NULL, 0, NULL, &plan, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    fusec_program_destroy(program);
    return plan;
}

/* Of a graph with a step, too, each element is judged by itself. */
START_TEST(wrong_candidates_are_rejected)
{
    static const char right[] = "round(x * s) * 0.25";
    static const char *const wrong[] = {
        "round(x * s) * 0.25 * 1.009",
        "where(index(N) == size(N) - 1, 12345.0, round(x * s) * 0.25)",
        "where(index(N) == 7, log(-1.0 - x * x), round(x * s) * 0.25)",
        "round(x * s) * inf",
        "where(index(N) == 5 && index(M) == 3, 0.125, 0.0) + round(x * s) * 0.25",
    };
    enum { WRONG = sizeof wrong / sizeof *wrong, FIRST = 2 };
    char path[] = "/tmp/fusec-steps-XXXXXX";
    const int file = mkstemp(path);
    Session s;
    Batch small = {0};
    Trial some[FIRST + WRONG] = {{.schedule = "row"}, {.schedule = "row:threads=64"}};
    Options o = {.arena = arena_new(), .command = COMMAND_TUNE};
    const char *text = arena_format(
        o.arena, "graph g[M = 9, N = 256](x : f32[M, N], s : f32[N]) -> (y : f32[M, N]) { y = %s }",
        right);
    ck_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    *list_push(o.arena, &o.files) = path;
    ck_assert_int_eq(open_session(&s, &o), EXIT_DONE);
    ck_assert_int_eq(settle_sizes(&s, NULL), EXIT_DONE);
    ck_assert_int_eq(open_device(&s, "cpu"), EXIT_DONE);
    for (int i = 0; i < FIRST + WRONG; i++)
        some[i].plan = plan_of(&s, i < FIRST ? right : wrong[i - FIRST]);
    s.plan = some[0].plan;
    ck_assert_int_eq(verify_trials(&s, some, FIRST + WRONG, &small), EXIT_DONE);
    for (int i = 0; i < FIRST; i++) ck_assert(!some[i].rejected);
    for (int i = FIRST; i < FIRST + WRONG; i++)
        ck_assert_msg(some[i].rejected && strstr(some[i].rejected, "outputs are wrong"), "%s",
                      wrong[i - FIRST]);
    close_batch(&s, &small);
    for (int i = 0; i < FIRST + WRONG; i++) fusec_plan_destroy(some[i].plan);
    s.plan = NULL;
    close_session(&s);
    arena_free(o.arena);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* ---- a target's table ---- */

static const char *row_after(const Session *s, const Compilation *c, const char *schedule,
                             double gain)
{
    Trial two[] = {{.schedule = "row"}, {.schedule = schedule}};
    const char *found = NULL;
    ck_assert_int_eq(store_row(s, c->plan, two, &(Choice){.best = 1, .gain = gain}), EXIT_DONE);
    ck_assert_int_eq(find_row(s, c->plan, &found), EXIT_DONE);
    return found;
}

static Compilation compile_softmax(int64_t columns)
{
    choose_program("examples/softmax.fuse");
    return compile_sizes(NULL, 64, columns, "sm_90a");
}

START_TEST(a_table_has_what_was_measured_to_be_faster)
{
    char path[] = "/tmp/fusec-table-XXXXXX";
    const int file = mkstemp(path);
    Options o = {.arena = arena_new(), .table = path};
    const Session s = {.arena = o.arena, .options = &o};
    Compilation one = compile_softmax(4096), other = compile_softmax(8192);
    ck_assert(file >= 0 && !close(file));
    ck_assert_str_eq(row_after(&s, &one, "row:threads=512", 0.05), "row:threads=512");
    ck_assert_str_eq(row_after(&s, &other, "row:threads=1024", 0.1), "row:threads=1024");
    ck_assert_str_eq(row_after(&s, &one, "row:threads=256", 0.04), "row:threads=256");
    char *table = read_program(path);
    ck_assert_str_eq(table, "2>2||max*sum|0 bf16 8 4096..4096 row:threads=256 4.0\n"
                            "2>2||max*sum|0 bf16 8 8192..8192 row:threads=1024 10.0\n");
    Target lab = *target_find("h100");
    strcpy(lab.gpu, "lab");
    ck_assert(target_add_table("lab", table));
    Compilation tuned = compile_target(NULL, 64, 8192, &lab);
    ck_assert(tuned.plan->tuned && tuned.plan->kernels[0].threads_per_row == 1024);
    ck_assert_ptr_null(row_after(&s, &one, "row:threads=512", 0.02)); /* too little: it goes */
    ck_assert_ptr_nonnull(row_after(&s, &other, "row:threads=1024", 0.1));
    free(table);
    compile_free(&tuned);
    compile_free(&other);
    compile_free(&one);
    arena_free(o.arena);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(short_times_are_finer_than_the_clock)
{
    double shorts[] = {9, 1, 4.2, 4.0, 4.0, 4.2, 4.0, 100}, longs[] = {30, 20, 100, 21},
           one[] = {3};
    ck_assert_double_eq_tol(typical_of(shorts, 8), 4.1, 1e-12); /* of 4.0 4.0 4.2 4.2 */
    ck_assert_double_eq(typical_of(longs, 4), 30);
    ck_assert_double_eq(typical_of(one, 1), 3);
    ck_assert_double_eq(typical_of(one, 0), 0);
}
END_TEST

Suite *tune_suite(void)
{
    Suite *suite = suite_create("tune");
    TCase *cases = tcase_create("choice");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_clear_winner_is_kept);
    tcase_add_test(cases, less_than_a_percent_is_noise);
    tcase_add_test(cases, a_median_that_few_rounds_bear_out_is_noise);
    tcase_add_test(cases, the_default_stays_where_it_is_best);
    tcase_add_test(cases, finalists_are_the_fastest_and_the_default);
    tcase_add_test(cases, the_table_says_what_was_found);
    tcase_add_test(cases, the_json_is_json);
    tcase_add_test(cases, a_table_has_what_was_measured_to_be_faster);
    tcase_add_test(cases, short_times_are_finer_than_the_clock);
    tcase_add_test(cases, candidates_are_compiled_verified_and_timed);
    tcase_add_test(cases, wrong_candidates_are_rejected);
    suite_add_tcase(suite, cases);
    return suite;
}
