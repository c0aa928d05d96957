/* test_alternatives.c: the other schedules of a plan: each is complete, can be, and is there once;
 * and what is asked for by a key of any of them is in the plan. */
#include "planned.h"
#include "schedule/keys.h"
#include "suites.h"

#include <string.h>

static const struct {
    const char *path, *gpu;
    int64_t columns;
} plans[] = {
    {"examples/layernorm.fuse", "h100", 4096},     {"examples/layernorm.fuse", "a100", 1000},
    {"examples/layernorm_bwd.fuse", "h100", 5120}, {"examples/layernorm_bwd.fuse", "b200", 65536},
    {"examples/rmsnorm.fuse", "h200", 96},         {"examples/rmsnorm_bwd.fuse", "rtx4090", 2048},
    {"examples/softmax.fuse", "h100", 50257},      {"examples/softmax.fuse", "h200", 262144},
    {"examples/softmax_bwd.fuse", "rtx4090", 1},   {"tests/cases/mean_of_huge.fuse", "h100", 8192},
    {"tests/golden/pointwise.fuse", "h100", 4096}, {"examples/rmsnorm_quantized.fuse", "a100", 16},
    {"tests/cases/held_short.fuse", "b200", 1280},
};
enum { PLANS = sizeof plans / sizeof *plans };

static Compilation compile_plan(int i)
{
    choose_program(plans[i].path);
    return compile_target(NULL, 64, plans[i].columns, target_find(plans[i].gpu));
}

static const Plan *plan_with(const Compilation *c, const char *schedule)
{
    const char *problem = NULL;
    const Plan *plan =
        try_schedule(c->arena, c->analysis->first, &c->plan->target, schedule, &problem);
    ck_assert_msg(plan != NULL, "%s: %s", schedule, problem);
    return plan;
}

/* Whether some kernel's schedule has that value. */
static bool has_value(const Compilation *c, const char *complete, int key, int value)
{
    Schedule *all;
    int count;
    ck_assert_ptr_null(parse_schedules(c->arena, complete, &all, &count));
    for (int i = 0; i < count; i++)
        if (all[i].at[key] == value) return true;
    return false;
}

/* Where a schedule first is in a list; its length: nowhere. */
static int find_alternative(const Alternatives *list, const char *schedule)
{
    int at = 0;
    while (at < list->count && strcmp(list->data[at].schedule, schedule)) at++;
    return at;
}

START_TEST(each_makes_itself)
{
    Compilation c = compile_plan(_i);
    const Alternatives list = list_alternatives(c.arena, c.plan);
    ck_assert_int_ge(list.count, 2);
    for (int i = 0; i < list.count; i++) {
        const Alternative *a = &list.data[i];
        ck_assert_msg(strstr(a->schedule, ":exact=1,") != NULL, "%s", a->schedule);
        ck_assert_str_eq(complete_schedule(c.arena, plan_with(&c, a->schedule)), a->schedule);
        ck_assert(a->time > 0 && (!i || list.data[i - 1].time <= a->time));
        ck_assert_int_eq(find_alternative(&list, a->schedule), i);
    }
    compile_free(&c);
}
END_TEST

/* Without a table the choice is one of them, and no other is faster by more than the model can tell; it
 * chooses what was timed. */
START_TEST(the_choice_is_among_them)
{
    static const double RESOLUTION = 0.97;
    int first = 0;
    Target target = *target_find(plans[_i].gpu);
    target.no_table = true;
    choose_program(plans[_i].path);
    Compilation c = compile_target(NULL, 64, plans[_i].columns, &target);
    const char *chosen = complete_schedule(c.arena, c.plan);
    const Alternatives list = list_alternatives(c.arena, c.plan);
    const int at = find_alternative(&list, chosen);
    ck_assert_msg(at < list.count, "%s is none of %d", chosen, list.count);
    while (list.data[first].tune_only) first++;
    ck_assert_msg(list.data[first].time > RESOLUTION * list.data[at].time, "%s: %s takes %f of it",
                  chosen, list.data[first].schedule, list.data[first].time / list.data[at].time);
    compile_free(&c);
}
END_TEST

/* Up to three groups of warps, that have as many stages each. */
START_TEST(groups_are_among_them)
{
    enum { MOST = 3 };
    bool found[MOST + 2] = {false};
    choose_program("examples/layernorm_bwd.fuse");
    Compilation c = compile_target(NULL, 64, 4096, target_find("h200"));
    const Alternatives list = list_alternatives(c.arena, c.plan);
    for (int i = 0; i < list.count; i++) {
        Schedule *all;
        int count;
        ck_assert_ptr_null(parse_schedules(c.arena, list.data[i].schedule, &all, &count));
        ck_assert_int_le(all->groups, MOST);
        found[all->groups] = true;
        ck_assert(all->groups == 1 ||
                  (all->family == FAMILY_WARP_SPECIALIZED && all->stages % all->groups == 0));
    }
    ck_assert(found[1] && found[2] && found[MOST]);
    compile_free(&c);
}
END_TEST

START_TEST(candidates_are_some_of_them)
{
    enum { MOST = 12 };
    Compilation c = compile_plan(_i);
    const char *chosen = complete_schedule(c.arena, c.plan);
    const Alternatives all = list_alternatives(c.arena, c.plan),
                       some = list_candidates(c.arena, c.plan, MOST);
    ck_assert(some.count >= 1 && some.count <= MOST);
    for (int i = 0; i < some.count; i++) {
        ck_assert_int_lt(find_alternative(&all, some.data[i].schedule), all.count);
        ck_assert_str_ne(some.data[i].schedule, chosen);
    }
    ck_assert_str_eq(some.data[0].schedule,
                     all.data[!strcmp(all.data[0].schedule, chosen)].schedule);
    compile_free(&c);
}
END_TEST

static const char images[] =
    "graph images[M = 64, C = 96, N = 49](x : bf16[M, C, N]) -> (y : bf16[M, C, N], m : f32[C]) {\n"
    "    m = mean[M, N](x)\n"
    "    y = (x - m) * rsqrt(var[M, N](x) + 1e-5)\n"
    "}\n";

/* Those of other columns, of all kernels that walk rows, and as many as were asked for. */
START_TEST(all_candidates_are_plans)
{
    enum { MOST = 16, ROWS = 64, PIXELS = 49 };
    choose_text(images);
    Compilation c =
        _i < PLANS ? compile_plan(_i) : compile_target(NULL, ROWS, PIXELS, target_find("h200"));
    const char *chosen = complete_schedule(c.arena, c.plan);
    int left_out, others = 0;
    const Alternatives list =
        list_all_candidates(c.arena, c.analysis->first, c.plan, MOST, &left_out);
    ck_assert(list.count >= 1 && list.count <= MOST && left_out >= 0);
    for (int i = 0; i < list.count; i++) {
        const Plan *plan = plan_with(&c, list.data[i].schedule);
        ck_assert_str_eq(complete_schedule(c.arena, plan), list.data[i].schedule);
        ck_assert_str_ne(list.data[i].schedule, chosen);
        others += plan->analysis->choice != c.plan->analysis->choice;
    }
    int fitting = 0;
    for (const Analysis *a = c.analysis->first; a && !a->part_count; a = a->other)
        fitting += a != c.analysis && axes_within(a->fixed, c.analysis->fixed);
    ck_assert_int_eq(others, fitting);
    ck_assert(_i < PLANS || others > 0);
    compile_free(&c);
}
END_TEST

START_TEST(a_name_makes_the_plan)
{
    Compilation c = compile_plan(_i);
    const char *name = name_plan(c.arena, c.plan), *complete = complete_schedule(c.arena, c.plan);
    ck_assert_str_eq(complete_schedule(c.arena, plan_with(&c, name)), complete);
    ck_assert_uint_le(strlen(name), strlen(complete));
    compile_free(&c);
}
END_TEST

/* Each value of each key, once. */
START_TEST(what_is_asked_for_is_in_the_plan)
{
    enum { MOST_VALUE = 4096 };
    static bool seen[FAMILY_COUNT][KEYS][MOST_VALUE];
    Compilation c = compile_plan(_i);
    const Alternatives list = list_alternatives(c.arena, c.plan);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < list.count; i++) {
        Schedule *all;
        int count;
        ck_assert_ptr_null(parse_schedules(c.arena, list.data[i].schedule, &all, &count));
        for (int key = 0; key < KEYS && count == 1; key++) {
            const int value = all->at[key];
            if (key == KEY_exact || value == key_info[key].plain || value >= MOST_VALUE ||
                seen[all->family][key][value])
                continue;
            seen[all->family][key][value] = true;
            Schedule asked = {.any = true, .family = all->family};
            asked.at[key] = value;
            const char *text = schedule_text(c.arena, &asked);
            const Plan *plan = plan_with(&c, text);
            ck_assert_msg(has_value(&c, complete_schedule(c.arena, plan), key, value), "%s", text);
        }
    }
    compile_free(&c);
}
END_TEST

/* All keys together that a schedule tells. */
START_TEST(all_that_is_told_is_kept)
{
    enum { STEP = 9 };
    Compilation c = compile_plan(_i);
    const Alternatives list = list_alternatives(c.arena, c.plan);
    for (int i = 0; i < list.count; i += STEP) {
        Schedule *all;
        int count;
        ck_assert_ptr_null(parse_schedules(c.arena, list.data[i].schedule, &all, &count));
        if (count > 1) continue;
        for (int key = 0; key < KEYS; key++)
            if (key == KEY_exact || all->at[key] == key_info[key].plain) all->at[key] = 0;
        const Plan *plan = plan_with(&c, schedule_text(c.arena, all));
        const char *complete = complete_schedule(c.arena, plan);
        for (int key = 0; key < KEYS; key++)
            ck_assert_msg(!all->at[key] || has_value(&c, complete, key, all->at[key]), "%s: %s",
                          list.data[i].schedule, key_info[key].name);
    }
    compile_free(&c);
}
END_TEST

START_TEST(what_nothing_has_is_refused)
{
    static const char *const texts[] = {
        "row:lag=2",
        "row:threads=100",
        "row:vec=3",
        "row:threads=64,rows=1000",
        "row:paced=1",
        "row:cluster=3",
        "row:groups=2",
        "row:bulk=1,reuse=1",
        "row:convert=bf16",
        "row:threads=64,few=77",
        "grid-stride:threads=64",
    };
    choose_program("examples/layernorm.fuse");
    Compilation c = compile_sizes(NULL, 64, 4096, "sm_90a");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *problem = NULL;
        ck_assert_msg(!try_schedule(c.arena, c.analysis, &c.plan->target, texts[i], &problem), "%s",
                      texts[i]);
        ck_assert_msg(problem && *problem, "%s", texts[i]);
    }
    compile_free(&c);
}
END_TEST

/* A slow schedule is made though the graph, cut otherwise, would be faster. */
START_TEST(what_is_asked_for_decides_the_cut)
{
    choose_program("examples/layernorm_bwd.fuse");
    Compilation c = compile_sizes(NULL, 64, 4096, "sm_90a");
    const Plan *plan = plan_with(&c, "grid-stride:threads=64,rows=1,cluster=1,stages=2,per_sm=1");
    ck_assert(plan->family == FAMILY_GRID_STRIDE && plan->kernels[0].threads_per_row == 64);
    compile_free(&c);
}
END_TEST

Suite *alternatives_suite(void)
{
    Suite *suite = suite_create("alternatives");
    TCase *cases = tcase_create("alternatives");
    tcase_add_test(cases, what_nothing_has_is_refused);
    tcase_add_test(cases, what_is_asked_for_decides_the_cut);
    tcase_add_loop_test(cases, each_makes_itself, 0, 1);
    tcase_add_loop_test(cases, a_name_makes_the_plan, 0, PLANS);
    suite_add_tcase(suite, cases);
    /* thousands of schedules: the sanitizers' run leaves these out */
    TCase *many = tcase_create("alternatives, many");
    tcase_set_timeout(many, 60);
    tcase_set_tags(many, "slow");
    tcase_add_loop_test(many, each_makes_itself, 1, PLANS);
    tcase_add_loop_test(many, the_choice_is_among_them, 0, PLANS);
    tcase_add_test(many, groups_are_among_them);
    tcase_add_loop_test(many, candidates_are_some_of_them, 0, PLANS);
    tcase_add_loop_test(many, all_candidates_are_plans, 0, PLANS + 1);
    tcase_add_loop_test(many, what_is_asked_for_is_in_the_plan, 0, PLANS);
    tcase_add_loop_test(many, all_that_is_told_is_kept, 0, PLANS);
    suite_add_tcase(suite, many);
    return suite;
}
