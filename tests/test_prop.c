/* test_prop.c: some random programs through all of the compiler that needs no device; the
 * simulator runs many more (tests/prop/prop.c). */
#include "prop/front.h"
#include "prop/generate.h"
#include "prop/shrink.h"
#include "suites.h"

#include <string.h>

enum { PROGRAMS = 50, ELEMENTS = 512 };

START_TEST(random_programs_compile_and_evaluate)
{
    Arena *arena = arena_new();
    const Case c = case_of(arena, generate(arena, (uint64_t)_i, ELEMENTS));
    Checked checked;
    Finding f;
    ck_assert_msg(check_front(&c, &checked, &f), "%s: %s\n%s", f.kind, f.text, c.text);
    close_checked(&checked);
    arena_free(arena);
}
END_TEST

START_TEST(a_seed_gives_one_program)
{
    Arena *arena = arena_new();
    const char *first = print_sketch(arena, generate(arena, 7, ELEMENTS), "g", 0);
    ck_assert_str_eq(first, print_sketch(arena, generate(arena, 7, ELEMENTS), "g", 0));
    ck_assert_str_ne(first, print_sketch(arena, generate(arena, 8, ELEMENTS), "g", 0));
    arena_free(arena);
}
END_TEST

/* Stands for a bug: any program that multiplies. */
static bool multiplies(void *data, const Sketch *s)
{
    Arena *arena = data;
    const char *text = print_sketch(arena, s, "g", PRINT_INLINE);
    Compilation c = compile_text(text, NULL, UNTIL_GRAPH);
    const bool found = c.status == COMPILE_OK && strstr(text, " * ");
    compile_free(&c);
    return found;
}

START_TEST(failures_shrink)
{
    Arena *arena = arena_new();
    uint64_t seed = 0;
    const Sketch *s = generate(arena, seed, ELEMENTS);
    while (!multiplies(arena, s) || s->statements.count < 4) s = generate(arena, ++seed, ELEMENTS);
    const Sketch *small = shrink(arena, s, 500, multiplies, arena);
    ck_assert(multiplies(arena, small));
    ck_assert_int_eq(small->axis_count, 1);
    ck_assert_int_le(small->statements.count, 2);
    ck_assert_int_le(small->params.count, 1);
    arena_free(arena);
}
END_TEST

Suite *prop_suite(void)
{
    Suite *suite = suite_create("prop");
    TCase *programs = tcase_create("programs");
    tcase_add_loop_test(programs, random_programs_compile_and_evaluate, 0, PROGRAMS);
    tcase_add_test(programs, a_seed_gives_one_program);
    tcase_add_test(programs, failures_shrink);
    suite_add_tcase(suite, programs);
    return suite;
}
