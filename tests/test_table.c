/* test_table.c: a target's table of schedules that were measured: its rows decide where they can be,
 * and nowhere else; and the classes of kernels, by which rows are found. */
#include "planned.h"
#include "schedule/plan.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 4096 };

/* A GPU like an H100, of its own name and table. */
static Target with_table(const char *rows)
{
    Target target = *target_find("h100");
    strcpy(target.gpu, "lab");
    ck_assert(target_add_table("lab", rows));
    return target;
}

/* Chosen of layer norm by a table. */
static Compilation choose_by(const char *rows, int64_t columns)
{
    choose_program("examples/layernorm.fuse");
    const Target target = with_table(rows);
    return compile_target(NULL, ROWS, columns, &target);
}

static void check_class(const char *path, int64_t columns, const char *wanted)
{
    int64_t found;
    choose_program(path);
    Compilation c = compile_sizes(NULL, ROWS, columns, "sm_90a");
    const char *row = row_of_plan(c.arena, c.plan, &found);
    ck_assert_msg(row != NULL, "%s", path);
    ck_assert_str_eq(row, wanted);
    ck_assert_int_eq(found, columns);
    compile_free(&c);
}

START_TEST(a_class_is_what_is_done_for_each_row)
{
    check_class("examples/layernorm.fuse", 4096, "2>2|2+2|mean*mean|0 bf16 8");
    check_class("examples/layernorm.fuse", 4100, "2>2|2+2|mean*mean|0 bf16 4");
    check_class("examples/layernorm.fuse", 4097, "2>2|2+2|mean*mean|0 bf16 1");
    check_class("examples/rmsnorm.fuse", 4096, "2>2|2|mean|0 bf16 8");
    check_class("examples/softmax.fuse", 4096, "2>2||max*sum|0 bf16 8");
    check_class("examples/layernorm_bwd.fuse", 4096, "2+2>2|2|mean+mean|2 bf16 8");
    check_class("examples/layernorm_residual.fuse", 4096, "2+2>2+2|2+2|mean*mean|0 bf16 8");
    check_class("tests/cases/moments_f32.fuse", 4096, "4>4|4+4|mean*mean|0 f32 4");
}
END_TEST

static void check_no_class(const char *text)
{
    int64_t columns;
    choose_text(text);
    Compilation c = compile_sizes(NULL, ROWS, COLUMNS, "sm_90a");
    ck_assert_ptr_null(row_of_plan(c.arena, c.plan, &columns));
    compile_free(&c);
}

START_TEST(what_reduces_no_rows_has_none)
{
    check_no_class("graph g[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x + x }");
    check_no_class("graph g[M, N](x : f32[M, N]) -> (y : f32[N]) { y = sum[M](x) }");
}
END_TEST

#define CLASS "2>2|2+2|mean*mean|0 bf16 8 "
static const char exact[] = "row:exact=1,threads=512,stages=2,per_sm=2,row=ring,live=2";

START_TEST(a_row_decides)
{
    static const char rows[] =
        CLASS "4096..4096 row:exact=1,threads=512,stages=2,per_sm=2,row=ring,live=2 5.0\n" CLASS
              "5120..8192 row:threads=1024 5.0\n";
    Compilation c = choose_by(rows, 4096);
    ck_assert(c.plan->tuned && c.plan->kernels[0].tuned);
    ck_assert_str_eq(complete_schedule(c.arena, c.plan), exact);
    compile_free(&c);
    static const int64_t within[] = {5120, 8192}, beside[] = {4088, 4104, 5112, 8200};
    for (int i = 0; i < 2; i++) {
        c = choose_by(rows, within[i]);
        ck_assert(c.plan->tuned && c.plan->kernels[0].threads_per_row == 1024);
        compile_free(&c);
    }
    for (int i = 0; i < 4; i++) {
        c = choose_by(rows, beside[i]);
        ck_assert(!c.plan->tuned && c.plan->kernels[0].threads_per_row < 1024);
        compile_free(&c);
    }
}
END_TEST

/* The choice is then the one without a table. */
START_TEST(what_cannot_be_does_not_decide)
{
    static const char *const rows[] = {
        CLASS "4096..4096 row:exact=1,threads=64,tiles=1 5.0\n",
        CLASS "4096..4096 row:exact=1,threads=128,stages=64,live=1,row=ring 5.0\n",
        CLASS "4096..4096 grid-stride 5.0\n",
        CLASS "4096..4096 row:threads=100 5.0\n",
        CLASS "4096..4096 row:nonsense=1 5.0\n",
        CLASS "4096..4096\n",
        CLASS "4096\n",
        "nonsense\n",
        "\n\n",
        "",
        "2>2|2+2|mean*mean|0 bf16 4 4096..4096 row:threads=512 5.0\n",
        "2>2|2+2|mean*mean|0 f16 8 4096..4096 row:threads=512 5.0\n",
        "2>2|2+2|mean*mean|1 bf16 8 4096..4096 row:threads=512 5.0\n",
    };
    Target none = with_table("");
    none.no_table = true;
    choose_program("examples/layernorm.fuse");
    Compilation model = compile_target(NULL, ROWS, COLUMNS, &none);
    const char *chosen = complete_schedule(model.arena, model.plan);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Compilation c = choose_by(rows[i], COLUMNS);
        ck_assert_msg(!c.plan->tuned, "%s", rows[i]);
        ck_assert_str_eq(complete_schedule(c.arena, c.plan), chosen);
        compile_free(&c);
    }
    compile_free(&model);
}
END_TEST

START_TEST(no_table_and_what_is_asked_for_come_first)
{
    Target target = with_table(CLASS "4096..4096 row:threads=1024 5.0\n");
    choose_program("examples/layernorm.fuse");
    Compilation c = compile_target("row:threads=256", ROWS, COLUMNS, &target);
    ck_assert(!c.plan->tuned && c.plan->kernels[0].threads_per_row == 256);
    compile_free(&c);
    target.no_table = true;
    c = compile_target(NULL, ROWS, COLUMNS, &target);
    ck_assert(!c.plan->tuned && c.plan->kernels[0].threads_per_row < 1024);
    compile_free(&c);
}
END_TEST

START_TEST(the_last_table_of_a_gpu_counts)
{
    Compilation c = choose_by(CLASS "4096..4096 row:threads=1024 5.0\n", COLUMNS);
    ck_assert_int_eq(c.plan->kernels[0].threads_per_row, 1024);
    compile_free(&c);
    c = choose_by(CLASS "4096..4096 row:threads=512 5.0\n", COLUMNS);
    ck_assert_int_eq(c.plan->kernels[0].threads_per_row, 512);
    compile_free(&c);
    choose_program("examples/layernorm.fuse");
    ck_assert_str_ne(target_table(target_find("h100")), "");
    ck_assert_str_eq(target_table(target_find("rtx4090")), "");
}
END_TEST

/* What the tables of fusec hold can be on their GPUs: no row is lost to a change of the keys. */
START_TEST(every_row_is_a_schedule)
{
    static const struct {
        const char *class, *path;
    } classes[] = {
        {"2>2|2+2|mean*mean|0 bf16", "examples/layernorm.fuse"},
        {"2>2|2|mean|0 bf16", "examples/rmsnorm.fuse"},
        {"2>2||max*sum|0 bf16", "examples/softmax.fuse"},
        {"2+2>2|2|mean+mean|2 bf16", "examples/layernorm_bwd.fuse"},
        {"2+2>2|2|mean|1 bf16", "examples/rmsnorm_bwd.fuse"},
        {"2+2>2+2|2+2|mean*mean|0 bf16", "examples/layernorm_residual.fuse"},
    };
    const char *table = target_table(target_find("h100"));
    int rows = 0;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const size_t length = strlen(classes[i].class);
        choose_program(classes[i].path);
        for (const char *at = table; *at; at += strcspn(at, "\n") + 1) {
            int vec;
            long long from, to;
            if (strncmp(at, classes[i].class, length) || at[length] != ' ') continue;
            ck_assert_int_eq(sscanf(at + length, "%d %lld..%lld", &vec, &from, &to), 3);
            while (from % 8 % vec || (vec < 8 && from % (2 * vec) == 0))
                from++; /* of that vector */
            Compilation c = compile_target(NULL, ROWS, from, target_find("h100"));
            ck_assert_msg(c.plan->tuned, "%.*s", (int)strcspn(at, "\n"), at);
            compile_free(&c);
            rows++;
        }
    }
    ck_assert_int_ge(rows, 20);
}
END_TEST

Suite *table_suite(void)
{
    Suite *suite = suite_create("table");
    TCase *cases = tcase_create("table");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_class_is_what_is_done_for_each_row);
    tcase_add_test(cases, what_reduces_no_rows_has_none);
    tcase_add_test(cases, a_row_decides);
    tcase_add_test(cases, what_cannot_be_does_not_decide);
    tcase_add_test(cases, no_table_and_what_is_asked_for_come_first);
    tcase_add_test(cases, the_last_table_of_a_gpu_counts);
    tcase_add_test(cases, every_row_is_a_schedule);
    suite_add_tcase(suite, cases);
    return suite;
}
