/* test_tuning.c: the tuning file: what is written is found again, other entries stay, damage is
 * noticed, writers at the same time lose nothing, and compiling takes what it says. */
#include "explain/explain.h"
#include "schedule/plan.h"
#include "suites.h"
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64], file[128];

static void make_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/fusec-tuning-XXXXXX");
    ck_assert(mkdtemp(directory) != NULL);
    snprintf(file, sizeof file, "%s/new/tuning", directory);
    setenv("FUSEC_TUNING_FILE", file, 1);
}

static void remove_directory(void)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", directory, directory);
    ck_assert_int_eq(system(command), 0);
}

static TuningKey key_of(int number)
{
    TuningKey key;
    snprintf(key.digits, sizeof key.digits, "%032x", (unsigned)number);
    return key;
}

static void store(int number, const char *device, const char *schedule)
{
    char why[TUNING_WHY];
    TuningEntry entry = {key_of(number), "sm_90a", device, schedule, 1.5, 2.5, "g M=1"};
    ck_assert_msg(tuning_store(&entry, why), "%s", why);
}

/* What the file has, or NULL; `why` is as `wanted`. */
static const char *find(int number, const char *device, const char *wanted)
{
    static char schedule[1 << 16];
    char why[TUNING_WHY];
    TuningKey key = key_of(number);
    char *found = tuning_find(&key, "sm_90a", device, why);
    ck_assert_msg(strstr(why, wanted) && (*wanted || !*why), "'%s', not '%s'", why, wanted);
    if (found) snprintf(schedule, sizeof schedule, "%s", found);
    free(found);
    return found ? schedule : NULL;
}

static void write_file(const char *text)
{
    store(1, "H100", "row"); /* makes the directory */
    FILE *f = fopen(file, "w");
    ck_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

START_TEST(what_is_stored_is_found)
{
    ck_assert_ptr_null(find(1, "H100", ""));
    store(1, "NVIDIA H100 80GB HBM3", "row:threads=512");
    store(2, "NVIDIA H100 80GB HBM3", "grid-stride:cluster=2,stages=3");
    store(1, "NVIDIA H200", "row:rows=2");
    ck_assert_str_eq(find(1, "NVIDIA H100 80GB HBM3", ""), "row:threads=512");
    ck_assert_str_eq(find(2, "NVIDIA H100 80GB HBM3", ""), "grid-stride:cluster=2,stages=3");
    ck_assert_str_eq(find(1, "NVIDIA H200", ""), "row:rows=2");
    ck_assert_ptr_null(find(1, "NVIDIA", ""));
    ck_assert_ptr_null(find(3, "NVIDIA H200", ""));
}
END_TEST

START_TEST(an_entry_is_replaced_and_removed)
{
    store(1, "H100", "row:threads=512");
    store(2, "H100", "row");
    store(1, "H100", "row:threads=256");
    ck_assert_str_eq(find(1, "H100", ""), "row:threads=256");
    store(1, "H100", NULL);
    ck_assert_ptr_null(find(1, "H100", ""));
    ck_assert_str_eq(find(2, "H100", ""), "row");
}
END_TEST

/* What tune writes, it reads; a text that readers would not take leaves the file as it is. */
START_TEST(every_key_of_a_schedule_is_read)
{
    static const char every[] =
        "warp-specialized:threads=64,rows=1,ctas=132,per_sm=12,cluster=2,stages=1,"
        "groups=1,reads=2,bulk=1,limit=8,reuse=1";
    char why[TUNING_WHY];
    TuningEntry two_fields = {key_of(2), "sm_90a", "H100", "row\trow", 1, 2, "g"};
    store(1, "H100", every);
    ck_assert_str_eq(find(1, "H100", ""), every);
    ck_assert(!tuning_store(&two_fields, why));
    ck_assert_msg(strstr(why, "cannot write"), "%s", why);
    ck_assert_str_eq(find(1, "H100", ""), every);
}
END_TEST

/* Complete schedules of a plan of many kernels, and of parts. */
START_TEST(long_schedules_are_read)
{
    static const char one[] = "row:exact=1,threads=128,cluster=4,per_sm=4,single=1+",
                      last[] = "row:exact=1,threads=96/column:exact=1,threads=64";
    enum { COUNT = 200 };
    char *many = calloc(1, COUNT * sizeof one + sizeof last);
    for (int i = 0; i < COUNT; i++) memcpy(many + (size_t)i * (sizeof one - 1), one, sizeof one);
    strcat(many, last);
    store(1, "H100", many);
    store(2, "H100", "row");
    ck_assert_str_eq(find(1, "H100", ""), many);
    ck_assert_str_eq(find(2, "H100", ""), "row");
    free(many);
}
END_TEST

START_TEST(nothing_is_written_for_nothing)
{
    char made[160];
    store(1, "H100", NULL);
    snprintf(made, sizeof made, "%s/new", directory);
    ck_assert_int_ne(access(made, F_OK), 0);
    setenv("FUSEC_TUNING_FILE", "/dev/null", 1);
    store(1, "H100", NULL);
}
END_TEST

START_TEST(comments_stay)
{
    char text[512] = "";
    write_file("fusec tuning 1\n# mine\n\n");
    store(7, "H100", "row");
    FILE *f = fopen(file, "r");
    ck_assert(f != NULL && fread(text, 1, sizeof text - 1, f) > 0 && fclose(f) == 0);
    ck_assert(strstr(text, "fusec tuning 1\n# mine\n\n0000") == text);
    ck_assert_str_eq(find(7, "H100", ""), "row");
}
END_TEST

#define ENTRY "00000000000000000000000000000001\tsm_90a\trow\t1.5\t2.5\tH100\tg\n"

static const struct {
    const char *text, *why;
} damaged[] = {
    {"fusec tuning 2\n" ENTRY, "line 1"},
    {"\x7f"
     "ELF",
     "line 1"},
    {"fusec tuning 1\n" ENTRY "0000", "line 3"},
    {"fusec tuning 1\n" ENTRY "zz\tsm_90a\trow\t1\t2\tH100\tg\n", "line 3"},
    {"fusec tuning 1\n" ENTRY "00000000000000000000000000000002\tsm_90a\trow\t1\n", "line 3"},
    {"fusec tuning 1\n00000000000000000000000000000001\tsm_90a\tr$w\t1\t2\tH100\tg\n", "line 2"},
    {"fusec tuning 1\n00000000000000000000000000000001\tsm_90a\trow\tnan\t2\tH100\tg\n", "line 2"},
    {"fusec tuning 1\n00000000000000000000000000000001\tsm_90a\trow\t1\t2\tH100\tg\t\n", "line 2"},
    {"fusec tuning 1", "line 1"},
};

START_TEST(damage_is_noticed_and_left_alone)
{
    char why[TUNING_WHY], text[512] = "";
    write_file(damaged[_i].text);
    ck_assert_ptr_null(find(1, "H100", damaged[_i].why));
    TuningEntry entry = {key_of(1), "sm_90a", "H100", "row", 1, 2, "g"};
    ck_assert(!tuning_store(&entry, why));
    ck_assert_msg(strstr(why, damaged[_i].why), "%s", why);
    FILE *f = fopen(file, "r");
    ck_assert(f != NULL && fread(text, 1, sizeof text - 1, f) > 0 && fclose(f) == 0);
    ck_assert_str_eq(text, damaged[_i].text);
}
END_TEST

START_TEST(no_regular_file_is_no_file)
{
    char why[TUNING_WHY];
    setenv("FUSEC_TUNING_FILE", "/dev/null", 1);
    ck_assert_ptr_null(find(1, "H100", ""));
    TuningEntry entry = {key_of(1), "sm_90a", "H100", "row", 1, 2, "g"};
    ck_assert(!tuning_store(&entry, why));
    ck_assert(strstr(why, "not a regular file"));
}
END_TEST

START_TEST(an_unwritable_place_says_so)
{
    char why[TUNING_WHY], path[160];
    store(1, "H100", "row");
    snprintf(path, sizeof path, "%s/below", file); /* a file is no directory */
    setenv("FUSEC_TUNING_FILE", path, 1);
    TuningEntry entry = {key_of(1), "sm_90a", "H100", "row", 1, 2, "g"};
    ck_assert(!tuning_store(&entry, why));
    ck_assert_msg(strstr(why, "cannot write"), "%s", why);
    ck_assert_ptr_null(find(1, "H100", ""));
}
END_TEST

START_TEST(a_link_stays_one)
{
    char path[160];
    struct stat about;
    store(1, "H100", "row");
    snprintf(path, sizeof path, "%s/link", directory);
    ck_assert_int_eq(symlink(file, path), 0);
    setenv("FUSEC_TUNING_FILE", path, 1);
    store(2, "H100", "row");
    ck_assert(lstat(path, &about) == 0 && S_ISLNK(about.st_mode));
    ck_assert_str_eq(find(1, "H100", ""), "row");
    ck_assert_str_eq(find(2, "H100", ""), "row");
}
END_TEST

START_TEST(the_place_follows_the_environment)
{
    char path[PATH_MAX];
    unsetenv("FUSEC_TUNING_FILE");
    setenv("XDG_CONFIG_HOME", "/there", 1);
    ck_assert(tuning_path(path) == strlen("/there/fusec/tuning"));
    ck_assert_str_eq(path, "/there/fusec/tuning");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    setenv("HOME", "/nowhere/h/me", 1);
    ck_assert(tuning_path(path) > 0);
    ck_assert_str_eq(path, "/nowhere/h/me/.config/fusec/tuning");
    unsetenv("HOME");
    unsetenv("XDG_CONFIG_HOME");
    ck_assert(tuning_path(path) == 0);
    ck_assert_ptr_null(find(1, "H100", ""));
}
END_TEST

START_TEST(writers_at_the_same_time_lose_nothing)
{
    enum { WRITERS = 4, EACH = 8 };
    for (int w = 0; w < WRITERS; w++) {
        pid_t child = fork();
        if (child) continue;
        for (int i = 0; i < EACH; i++) store(w * EACH + i, "H100", "row");
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        ck_assert(wait(&status) > 0 && status == 0);
    }
    for (int i = 0; i < WRITERS * EACH; i++) ck_assert_ptr_nonnull(find(i, "H100", ""));
}
END_TEST

/* ---- compiling ---- */

static const char plain[] = "graph g[M = 4, N = 4096](x : f32[M, N]) -> (y : f32[M, N])"
                            " { y = x / sum[N](x) }";
static const char commented[] = "# a comment\ngraph g[M = 8, N](x : f32[M, N])\n"
                                "-> (y : f32[M, N]) {\n    y = x / sum[N](x) }";

static CompileRequest request_for(const char *text, const AxisSize *sizes)
{
    return (CompileRequest){.text = text,
                            .length = strlen(text),
                            .name = "g.fuse",
                            .sizes = sizes,
                            .size_count = 2,
                            .target = *target_find("sm_90a"),
                            .until = UNTIL_CUDA};
}

static TuningKey key_for(const char *text, int64_t rows, int64_t columns)
{
    AxisSize sizes[] = {{"M", rows}, {"N", columns}};
    CompileRequest request = request_for(text, sizes);
    Compilation c = compile(&request);
    TuningKey key;
    ck_assert_msg(c.status == COMPILE_OK, "%s", c.diagnostics);
    ck_assert(tuning_key(&c, &key));
    compile_free(&c);
    return key;
}

START_TEST(the_key_is_of_the_graph_and_its_columns)
{
    TuningKey key = key_for(plain, 16, 4096);
    ck_assert_str_eq(key_for(commented, 99, 4096).digits, key.digits);
    ck_assert_str_ne(key_for(plain, 16, 4097).digits, key.digits);
}
END_TEST

static Compilation compile_with(const char *device, Tuned *tuned)
{
    AxisSize sizes[] = {{"M", 4}, {"N", 4096}};
    CompileRequest request = request_for(plain, sizes);
    Compilation c = compile(&request);
    ck_assert_int_eq(c.status, COMPILE_OK);
    ck_assert(compile_tuned(&request, device, &c, tuned));
    return c;
}

static void store_for(const char *schedule)
{
    char why[TUNING_WHY];
    TuningEntry entry = {key_for(plain, 1, 4096), "sm_90a", "H100", schedule, 1, 2, "g"};
    ck_assert_msg(tuning_store(&entry, why), "%s", why);
}

START_TEST(an_entry_is_compiled_with)
{
    Tuned tuned;
    store_for("row:threads=128");
    Compilation c = compile_with("H100", &tuned);
    ck_assert_int_eq(c.plan->kernels[0].threads_per_row, 128);
    ck_assert_str_eq(tuned.schedule, "row:threads=128");
    ck_assert_str_eq(tuned.warning, "");
    compile_free(&c);
    c = compile_with("A100", &tuned);
    ck_assert_int_ne(c.plan->kernels[0].threads_per_row, 128);
    ck_assert_ptr_null(tuned.schedule);
    compile_free(&c);
}
END_TEST

START_TEST(explain_says_where_the_schedule_is_from)
{
    Tuned tuned;
    KernelUsage usage = {-1, -1, -1, -1};
    store_for("row:threads=128");
    Compilation c = compile_with("H100", &tuned);
    Text *words = text_new(c.arena), *json = text_new(c.arena);
    Origin origin = {tuned.schedule, "from the tuning file"};
    explain_words(words, c.plan, &usage, origin, NULL);
    explain_json(json, c.plan, &usage, origin, NULL);
    ck_assert(strstr(text_string(words), "schedule: row:threads=128 (from the tuning file)\n"));
    ck_assert(strstr(text_string(json), "\"made_by\": {\"schedule\": \"row:threads=128\", "));
    compile_free(&c);
}
END_TEST

START_TEST(an_entry_that_is_refused_is_ignored)
{
    Tuned tuned;
    store_for("grid-stride:threads=31");
    Compilation c = compile_with("H100", &tuned);
    ck_assert_int_eq(c.status, COMPILE_OK);
    ck_assert_ptr_nonnull(c.cuda);
    ck_assert_ptr_null(tuned.schedule);
    ck_assert_msg(strstr(tuned.warning, "no longer"), "%s", tuned.warning);
    compile_free(&c);
}
END_TEST

Suite *tuning_suite(void)
{
    Suite *suite = suite_create("tuning");
    TCase *cases = tcase_create("file");
    tcase_add_checked_fixture(cases, make_directory, remove_directory);
    tcase_add_test(cases, what_is_stored_is_found);
    tcase_add_test(cases, an_entry_is_replaced_and_removed);
    tcase_add_test(cases, every_key_of_a_schedule_is_read);
    tcase_add_test(cases, long_schedules_are_read);
    tcase_add_test(cases, nothing_is_written_for_nothing);
    tcase_add_test(cases, comments_stay);
    tcase_add_loop_test(cases, damage_is_noticed_and_left_alone, 0,
                        sizeof damaged / sizeof *damaged);
    tcase_add_test(cases, no_regular_file_is_no_file);
    tcase_add_test(cases, an_unwritable_place_says_so);
    tcase_add_test(cases, a_link_stays_one);
    tcase_add_test(cases, the_place_follows_the_environment);
    tcase_add_test(cases, writers_at_the_same_time_lose_nothing);
    tcase_add_test(cases, the_key_is_of_the_graph_and_its_columns);
    tcase_add_test(cases, an_entry_is_compiled_with);
    tcase_add_test(cases, explain_says_where_the_schedule_is_from);
    tcase_add_test(cases, an_entry_that_is_refused_is_ignored);
    suite_add_tcase(suite, cases);
    return suite;
}
