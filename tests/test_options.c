/* test_options.c: the command line as data: what it accepts and what it refuses with status 2. */
#include "cli/options.h"
#include "suites.h"

#include <string.h>

enum { MOST = 16 };

/* Splits a command line at spaces and parses it. */
static bool parse(Arena *arena, const char *text, Options *o, int *status)
{
    char *words = arena_copy(arena, text, strlen(text));
    char *argv[MOST + 1] = {0};
    int argc = 0;
    for (char *word = strtok(words, " "); word && argc < MOST; word = strtok(NULL, " "))
        argv[argc++] = word;
    *o = (Options){.arena = arena};
    return parse_options(o, argc, argv, status);
}

START_TEST(a_file_alone_means_emit)
{
    Arena *arena = arena_new();
    Options o;
    int status;
    ck_assert(parse(arena, "fusec a.fuse M=32 N=0 --arch=sm_80 -o out.cu", &o, &status));
    ck_assert_int_eq(o.command, COMMAND_EMIT);
    ck_assert_int_eq(o.emit, EMIT_CUDA);
    ck_assert_int_eq(o.sizes.count, 2);
    ck_assert_str_eq(o.sizes.data[0].axis, "M");
    ck_assert_int_eq(o.sizes.data[0].size, 32);
    ck_assert_int_eq(o.sizes.data[1].size, 0);
    ck_assert_str_eq(o.arch, "sm_80");
    ck_assert_str_eq(o.output, "out.cu");
    arena_free(arena);
}
END_TEST

START_TEST(run_takes_settings_and_layouts)
{
    Arena *arena = arena_new();
    Options o;
    int status;
    ck_assert(parse(arena,
                    "fusec run - --set eps=1e-6 --set on=true --stride x=576,1 "
                    "--offset x=3 --seed 7 --verify --device cpu",
                    &o, &status));
    ck_assert_int_eq(o.command, COMMAND_RUN);
    ck_assert_str_eq(o.files.data[0], "-");
    ck_assert_double_eq(o.settings.data[0].value, 1e-6);
    ck_assert_double_eq(o.settings.data[1].value, 1);
    ck_assert_int_eq(o.strides.data[0].count, 2);
    ck_assert_int_eq(o.strides.data[0].values[0], 576);
    ck_assert_int_eq(o.offsets.data[0].values[0], 3);
    ck_assert_uint_eq(o.seed, 7);
    ck_assert(o.verify);
    arena_free(arena);
}
END_TEST

static const char *const refused[] = {
    "fusec",
    "fusec emit",
    "fusec emitt",
    "fusec a.fuse --arhc sm_80",
    "fusec a.fuse M=x",
    "fusec a.fuse M=-1",
    "fusec a.fuse M=99999999999999999999",
    "fusec a.fuse M=",
    "fusec a.fuse N=4 N=5",
    "fusec run a.fuse N=4 M=2 N=4",
    "fusec a.fuse --emit=ptxx",
    "fusec a.fuse --graph",
    "fusec check a.fuse --verify",
    "fusec run a.fuse --device tpu",
    "fusec run a.fuse --seed -1",
    "fusec run a.fuse --set eps",
    "fusec run a.fuse --stride x",
    "fusec run a.fuse --offset x=1,2",
    "fusec a.fuse b.fuse",
    "fusec run a.fuse --verify=yes",
    "fusec cache",
    "fusec cache burn",
    "fusec plan",
    "fusec plan --json",
    "fusec plan show a.plan --in b",
    "fusec plan run a.plan --arch sm_80",
    "fusec completions fish",
    "fusec fmt a.fuse M=3",
    "fusec fmt - -w",
    "fusec tune",
    "fusec tune a.fuse --device cpu",
    "fusec tune a.fuse --schedule row",
    "fusec tune a.fuse --no-tuning",
    "fusec fmt a.fuse --no-tuning",
    "fusec fmt -w --check a.fuse",
};

START_TEST(bad_usage_exits_2)
{
    Arena *arena = arena_new();
    Options o;
    int status;
    bool accepted = parse(arena, refused[_i], &o, &status);
    ck_assert_msg(!accepted && status == EXIT_USAGE, "%s", refused[_i]);
    arena_free(arena);
}
END_TEST

Suite *options_suite(void)
{
    Suite *suite = suite_create("options");
    TCase *cases = tcase_create("command line");
    tcase_add_test(cases, a_file_alone_means_emit);
    tcase_add_test(cases, run_takes_settings_and_layouts);
    tcase_add_loop_test(cases, bad_usage_exits_2, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(suite, cases);
    return suite;
}
