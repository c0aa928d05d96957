/* test_import.c: where imports come from: nowhere for a text, a function of the caller's, files.
 * They are read once and kept, and of a file that is no program nothing is shown. */
#include "fusec.h"
#include "suites.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRAPH "graph g[M = 4, N = 8](x : f32[M, N]) -> (y : f32[M, N]) { y = f(x) }\n"

static fusec_error error;
static fusec_program *program;

static void close_program(void)
{
    fusec_program_destroy(program);
    program = NULL;
}

/* The text of a plan of it for the CPU device, to be freed. */
static char *plan_text(void)
{
    fusec_device *device;
    fusec_plan *plan;
    ck_assert_int_eq(fusec_device_cpu(&device, &error), FUSEC_OK);
    fusec_status status = fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    char *text = strdup(fusec_plan_text(plan));
    fusec_plan_destroy(plan);
    fusec_device_destroy(device);
    return text;
}

/* ---- texts at hand ---- */

typedef struct {
    const char *importer, *path, *name, *identity, *text;
} Entry;

typedef struct {
    const Entry *entries;
    int asked, held;
    fusec_status status; /* of what is not there */
} Shelf;

/* What it gives is overwritten when it is released. */
static fusec_status take(void *data, const char *importer, const char *path,
                         fusec_imported *imported)
{
    Shelf *shelf = data;
    ck_assert_uint_eq(imported->struct_size, sizeof *imported);
    shelf->asked++;
    for (const Entry *e = shelf->entries; e->path; e++) {
        if (strcmp(e->path, path) || strcmp(e->importer, importer)) continue;
        imported->memory = strdup(e->text);
        imported->text = imported->memory;
        imported->length = strlen(e->text);
        imported->name = e->name;
        imported->identity = e->identity;
        shelf->held++;
        return FUSEC_OK;
    }
    snprintf(imported->message, sizeof imported->message, "the shelf has no %s", path);
    return shelf->status;
}

static void put_back(void *data, fusec_imported *imported)
{
    Shelf *shelf = data;
    shelf->held--;
    memset(imported->memory, '#', imported->length);
    free(imported->memory);
}

static fusec_status parse(const char *text, Shelf *shelf)
{
    fusec_parse_options options = {
        .struct_size = sizeof options, .import = take, .release = put_back, .data = shelf};
    fusec_status status =
        fusec_program_parse_with(text, strlen(text), "main", &options, &program, &error);
    ck_assert_int_eq(shelf->held, 0);
    return status;
}

START_TEST(a_text_has_no_imports)
{
    static const char text[] = "import \"std\"\nimport \"/etc/passwd\"\n" GRAPH;
    ck_assert_int_eq(fusec_program_parse(text, strlen(text), "main", &program, &error),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message,
                         "main:2:8: error: imports are not allowed for a program given as text"),
                  "%s", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "fusec_program_open"));
    ck_assert_ptr_null(strstr(error.message, "root"));
}
END_TEST

/* Two ways to one file; the name that it is asked from is that of its importer. */
START_TEST(a_diamond_is_one_file)
{
    static const Entry entries[] = {
        {"main", "a", "A", NULL, "import \"c\" import \"std\" fn a(x) = c(x)"},
        {"main", "b", "B", NULL, "import \"./c\" fn b(x) = silu(c(x))"},
        {"A", "c", "C", "one", "fn c(x) = x * 3"},
        {"B", "./c", "another C", "one", "fn c(x) = x * 3"},
        {0}};
    Shelf shelf = {.entries = entries};
    fusec_status status = parse("import \"a\" import \"b\" fn f(x) = a(x) + b(x) " GRAPH, &shelf);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    ck_assert_int_eq(shelf.asked, 4);
    char *text = plan_text();
    ck_assert_ptr_nonnull(strstr(text, "3.0f"));
    ck_assert_int_eq(shelf.asked, 4); /* nothing is asked for again */
    free(text);
    close_program();
}
END_TEST

static const struct {
    const char *text;
    const Entry entries[3];
    fusec_status status, result;
    const char *words;
} wrong[] = {
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "import \"a\""}, {"A", "a", "A", NULL, "import \"a\""}},
     0,
     FUSEC_INVALID_PROGRAM,
     "A:1:1: error: import cycle: 'A' imports itself"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "import \"m\""}, {"A", "m", "main", NULL, "fn f(x) = x"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "A:1:1: error: import cycle: 'A' imports 'main'"},
    {"import \"a\" ",
     {{0}},
     FUSEC_INVALID_PROGRAM,
     FUSEC_INVALID_PROGRAM,
     "main:1:8: error: the shelf has no a"},
    {"import \"a\" ", {{0}}, FUSEC_IO_ERROR, FUSEC_IO_ERROR, "main:1:8: error: the shelf has no a"},
    {"import \"a\" ", {{0}}, FUSEC_OUT_OF_MEMORY, FUSEC_OUT_OF_MEMORY, "out of memory"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "fn f(x) = +"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "A:1:11: error: expected"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "# secret\n\nroot:x:0:0"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "'A' is not a .fuse program: it does not begin with import, fn or graph"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "graphs of secrets"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "'A' is not a .fuse program"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "fn f(x) = x # secret \xff"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "'A' is not a .fuse program: it is not UTF-8 text"},
    {"import \"a\" ",
     {{"main", "a", "A", NULL, "fn f(x) = x # secret \x01"}},
     0,
     FUSEC_INVALID_PROGRAM,
     "it is not UTF-8 text"},
};

START_TEST(what_is_wrong_is_told)
{
    Shelf shelf = {.entries = wrong[_i].entries, .status = wrong[_i].status};
    char text[256];
    snprintf(text, sizeof text, "%s%s", wrong[_i].text, GRAPH);
    ck_assert_int_eq(parse(text, &shelf), wrong[_i].result);
    ck_assert_msg(strstr(error.message, wrong[_i].words) != NULL, "%s", error.message);
    ck_assert_msg(!strstr(error.message, "secret") && !strstr(error.message, "root"), "%s",
                  error.message);
    ck_assert_ptr_null(program);
}
END_TEST

/* A file that imports the next, and so on for ever; or itself under another name each time. */
static fusec_status endless(void *data, const char *importer, const char *path,
                            fusec_imported *imported)
{
    static char text[9 << 20], name[32];
    int *count = data;
    (void)importer, (void)path;
    snprintf(name, sizeof name, "%d", ++*count);
    imported->name = name;
    imported->text = text;
    imported->length = sizeof text;
    memset(text, '\n', sizeof text);
    memcpy(text, "import \"x\"", 10);
    return FUSEC_OK;
}

static fusec_status endless_short(void *data, const char *importer, const char *path,
                                  fusec_imported *imported)
{
    fusec_status status = endless(data, importer, path, imported);
    imported->length = 10;
    return status;
}

START_TEST(imports_are_bounded)
{
    static char large[(16 << 20) + 2];
    int count = 0;
    fusec_parse_options options = {
        .struct_size = sizeof options, .import = endless, .data = &count};
    ck_assert_int_eq(
        fusec_program_parse_with("import \"x\"", 10, "main", &options, &program, &error),
        FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "more than 67108864 bytes in all") && count == 8, "%s",
                  error.message);
    options.import = endless_short;
    ck_assert_int_eq(
        fusec_program_parse_with("import \"x\"", 10, "main", &options, &program, &error),
        FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "nested too deeply") != NULL, "%s", error.message);
    memset(large, ' ', sizeof large - 1);
    const Entry entries[] = {{"main", "a", "A", NULL, large}, {0}};
    Shelf shelf = {.entries = entries};
    ck_assert_int_eq(parse("import \"a\"", &shelf), FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "'A' is too large for a program") != NULL, "%s",
                  error.message);
}
END_TEST

START_TEST(import_statements_are_counted)
{
    enum { MANY = 10001 };
    static const char one[] = "import \"a\"\n";
    char *text = malloc(MANY * sizeof one);
    const Entry entries[] = {{"main", "a", "A", NULL, "fn a(x) = x"}, {0}};
    Shelf shelf = {.entries = entries};
    for (int i = 0; i < MANY; i++) memcpy(text + (size_t)i * (sizeof one - 1), one, sizeof one);
    ck_assert_int_eq(parse(text, &shelf), FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "at most 10000 imports") != NULL, "%s", error.message);
    free(text);
}
END_TEST

START_TEST(options_are_checked)
{
    struct {
        fusec_parse_options known;
        int more;
    } newer = {.known = {.struct_size = sizeof newer}, .more = 1};
    fusec_parse_options options = {.struct_size = 3};
    ck_assert_int_eq(fusec_program_parse_with("", 0, NULL, &options, &program, &error),
                     FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_program_parse_with("", 0, NULL, &newer.known, &program, &error),
                     FUSEC_UNSUPPORTED);
    newer.more = 0;
    ck_assert_int_eq(fusec_program_parse_with(GRAPH "fn f(x) = x", strlen(GRAPH) + 11, NULL,
                                              &newer.known, &program, &error),
                     FUSEC_OK);
    close_program();
    ck_assert_int_eq(fusec_program_parse_with(NULL, 1, NULL, NULL, &program, &error),
                     FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_program_open(NULL, NULL, &program, &error), FUSEC_INVALID_ARGUMENT);
    ck_assert_int_eq(fusec_program_open("x", NULL, NULL, &error), FUSEC_INVALID_ARGUMENT);
}
END_TEST

/* ---- files ---- */

static char directory[64];

static void make_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/fusec-import-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static const char *in_directory(const char *name)
{
    static char paths[2][128];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_directory(name), "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* What was parsed is planned, whatever becomes of the files. */
START_TEST(files_are_read_once)
{
    write_file("main.fuse", "import \"below/f.fuse\"\n" GRAPH);
    ck_assert_int_eq(mkdir(in_directory("below"), 0700), 0);
    write_file("below/f.fuse", "import \"../k.fuse\" import \"link.fuse\" fn f(x) = x * k(x)\n");
    write_file("k.fuse", "fn k(x) = 1.5 + x\n");
    ck_assert_int_eq(symlink("../k.fuse", in_directory("below/link.fuse")), 0);
    fusec_status status = fusec_program_open(in_directory("main.fuse"), NULL, &program, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    char *before = plan_text();
    write_file("k.fuse", "fn k(x) = 2.5 + x\n");
    write_file("below/f.fuse", "not any more");
    unlink(in_directory("main.fuse"));
    char *after = plan_text();
    ck_assert_str_eq(before, after);
    ck_assert_ptr_nonnull(strstr(before, "1.5f"));
    free(before);
    free(after);
    close_program();
}
END_TEST

START_TEST(a_cycle_of_files_is_found)
{
    static const char text[] = "import \"a.fuse\"";
    fusec_parse_options options = {.struct_size = sizeof options, .import = fusec_import_file};
    write_file("main.fuse", text);
    write_file("a.fuse", "import \"./../../tmp/./main.fuse\"");
    ck_assert_int_eq(symlink("main.fuse", in_directory("m.fuse")), 0);
    write_file("a.fuse", "import \"m.fuse\"");
    ck_assert_int_eq(fusec_program_open(in_directory("main.fuse"), NULL, &program, &error),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "import cycle") != NULL, "%s", error.message);
    ck_assert_int_eq(fusec_program_parse_with(text, strlen(text), in_directory("main.fuse"),
                                              &options, &program, &error),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, "import cycle") != NULL, "%s", error.message);
}
END_TEST

static const struct {
    const char *path, *words;
} files[] = {
    {"/dev/zero", "it is not a regular file"},
    {"/dev/null", "it is not a regular file"},
    {"fifo", "it is not a regular file"},
    {"sparse", "it has more than 16777216 bytes"},
    {"/", "Is a directory"},
    {"below", "Is a directory"},
    {"gone", "No such file"},
    {"/proc/self/environ", "its length changed"},
    {"binary", "it is not UTF-8 text"},
    {"secrets", "it does not begin with import, fn or graph"},
};
enum { FILES = sizeof files / sizeof *files };

/* Neither hangs nor shows anything of it, imported or opened. */
START_TEST(what_is_no_program_file_is_refused)
{
    char text[256];
    mkfifo(in_directory("fifo"), 0600);
    mkdir(in_directory("below"), 0700);
    write_file("binary", "fn f(x) = x \x7f\x80 secret");
    write_file("secrets", "secret=1\n");
    write_file("sparse", "fn f(x) = x # secret");
    ck_assert_int_eq(truncate(in_directory("sparse"), 6LL << 30), 0);
    snprintf(text, sizeof text, "import \"%s\"\n", files[_i].path);
    write_file("main.fuse", text);
    ck_assert_int_eq(fusec_program_open(in_directory("main.fuse"), NULL, &program, &error),
                     FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, files[_i].words) &&
                      strstr(error.message, "main.fuse:1:8: error: "),
                  "%s", error.message);
    ck_assert_msg(!strstr(error.message, "secret=") && !strstr(error.message, "# secret"), "%s",
                  error.message);
    if (_i >= FILES - 2) return; /* what the caller opens is shown */
    const char *path = *files[_i].path == '/' ? files[_i].path : in_directory(files[_i].path);
    ck_assert_int_eq(fusec_program_open(path, NULL, &program, &error), FUSEC_INVALID_PROGRAM);
    ck_assert_msg(strstr(error.message, files[_i].words) != NULL, "%s", error.message);
}
END_TEST

Suite *import_suite(void)
{
    Suite *suite = suite_create("import");
    TCase *texts = tcase_create("texts"), *tests = tcase_create("files");
    tcase_set_timeout(texts, 30);
    tcase_add_test(texts, a_text_has_no_imports);
    tcase_add_test(texts, a_diamond_is_one_file);
    tcase_add_loop_test(texts, what_is_wrong_is_told, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(texts, imports_are_bounded);
    tcase_add_test(texts, import_statements_are_counted);
    tcase_add_test(texts, options_are_checked);
    suite_add_tcase(suite, texts);
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_set_timeout(tests, 10);
    tcase_add_test(tests, files_are_read_once);
    tcase_add_test(tests, a_cycle_of_files_is_found);
    tcase_add_loop_test(tests, what_is_no_program_file_is_refused, 0, FILES);
    suite_add_tcase(suite, tests);
    return suite;
}
