/* test_process.c: the process belongs to the caller. What fusec prints and computes is the same,
 * byte for byte, in a hostile locale, with other rounding, traps or flush to zero, in a directory
 * that is gone, on a small stack, under a hail of signals and after fork; and no call changes any
 * of that. */
#include "every_call.h"
#include "suites.h"

#include <check.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SECONDS = 60 };
#if defined(__SANITIZE_ADDRESS__)
enum { STACK = 4 << 20 }; /* frames are several times as large */
#else
enum { STACK = 256 << 10 };
#endif

static char home[4096], directory[64];

/* ---- the environments ---- */

/* A decimal comma; capitals, lower case and letters are others. */
static void make_locale(void)
{
    static const char source[] =
        "LC_CTYPE\nupper <U0051>\nlower <U0071>\nspace <U0009>;<U0020>\ndigit <U0030>..<U0039>\n"
        "toupper (<U0071>,<U0051>)\ntolower (<U0051>,<U0058>)\nEND LC_CTYPE\n"
        "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    char path[128], command[512];
    snprintf(path, sizeof path, "%s/source", directory);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(source, file);
    fclose(file);
    snprintf(command, sizeof command, "localedef -c -i %s %s/hostile >/dev/null 2>&1", path,
             directory);
    ck_assert_int_ge(system(command), 0);
    setenv("LOCPATH", directory, 1);
}

static void use_locale(void)
{
    make_locale();
    ck_assert_msg(setlocale(LC_ALL, "hostile") != NULL, "localedef (libc-bin) made no locale");
    ck_assert_int_eq(*localeconv()->decimal_point, ',');
}

static locale_t of_thread;

static void use_thread_locale(void)
{
    use_locale();
    of_thread = duplocale(LC_GLOBAL_LOCALE);
    setlocale(LC_ALL, "C");
    ck_assert_ptr_nonnull(of_thread);
    uselocale(of_thread);
}

static void round_up(void)
{
    fesetround(FE_UPWARD);
}
static void round_down(void)
{
    fesetround(FE_DOWNWARD);
}
static void round_to_zero(void)
{
    fesetround(FE_TOWARDZERO);
}

static void enable_traps(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
}

static void flush_to_zero(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ */
#endif
}

static void lose_directory(void)
{
    char lost[] = "/tmp/fusec-lost-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(lost));
    ck_assert_int_eq(chdir(lost), 0);
    ck_assert_int_eq(rmdir(lost), 0);
}

static volatile sig_atomic_t signals, strays;
static pthread_t signalled;

static void count_signal(int number)
{
    (void)number;
    signals++;
    strays += !pthread_equal(pthread_self(), signalled);
}

/* Handlers on a stack of their own, and no system call is taken up again by itself. */
static void send_signals(void)
{
    static char stack[1 << 16];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_ONSTACK};
    const struct itimerval often = {{0, 300}, {0, 300}};
    signalled = pthread_self();
    sigaltstack(&alternate, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static const struct {
    const char *name;
    void (*change)(void);
} environments[] = {
    {"a locale", use_locale},         {"a locale of the thread", use_thread_locale},
    {"FE_UPWARD", round_up},          {"FE_DOWNWARD", round_down},
    {"FE_TOWARDZERO", round_to_zero}, {"traps", enable_traps},
    {"flush to zero", flush_to_zero}, {"no directory", lose_directory},
    {"signals", send_signals},
};
enum { ENVIRONMENTS = sizeof environments / sizeof *environments };

START_TEST(results_are_the_same)
{
    environments[_i].change();
    const Record r = do_all();
    ck_assert_int_eq(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL), 0);
    fesetenv(FE_DFL_ENV);
    ck_assert_msg(is_expected(r), "%s changes a result", environments[_i].name);
    ck_assert_int_eq(strays, 0);
}
END_TEST

/* ---- threads ---- */

static void *do_all_in_thread(void *record)
{
    *(Record *)record = do_all();
    return NULL;
}

static void run_on_small_stack(void *(*run)(void *), void *data)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    pthread_setattr_default_np(&attributes); /* of threads that give no size, too */
    ck_assert_int_eq(pthread_create(&thread, &attributes, run, data), 0);
    pthread_join(thread, NULL);
}

START_TEST(a_small_stack_is_enough)
{
    Record r;
    run_on_small_stack(do_all_in_thread, &r);
    ck_assert(is_expected(r));
}
END_TEST

/* As deep as fusec allows: functions that call each other. */
static void *compile_deep(void *data)
{
    enum { LEVELS = 990 };
    char *text = calloc(LEVELS + 2, 64), *at = text;
    fusec_device *device;
    fusec_program *program;
    fusec_plan *plan;
    at += sprintf(at, "fn f_0(x) = x + 1\n");
    for (int i = 1; i < LEVELS; i++)
        at += sprintf(at, "fn f_%d(x) { t = x * 2  return f_%d(t) + x }\n", i, i - 1);
    at += sprintf(at, "graph g[N = 64](x : f32[N]) -> (y : f32[N]) { y = f_%d(x) }", LEVELS - 1);
    DO(fusec_device_cpu(&device, error));
    DO(fusec_program_parse(text, (size_t)(at - text), NULL, &program, error));
    DO(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, error));
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    fusec_device_destroy(device);
    free(text);
    return data;
}

START_TEST(deep_programs_take_no_stack_of_the_caller)
{
    watches = false;
    run_on_small_stack(compile_deep, NULL);
}
END_TEST

static volatile int stopped;

static void *change_locales(void *data)
{
    (void)data;
    while (!stopped) {
        setlocale(LC_ALL, "hostile");
        setlocale(LC_ALL, "C");
    }
    return NULL;
}

START_TEST(another_thread_sets_locales)
{
    pthread_t thread;
    make_locale();
    watches = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, change_locales, NULL), 0);
    const Record r = do_all();
    stopped = 1;
    pthread_join(thread, NULL);
    ck_assert(is_expected(r));
}
END_TEST

/* ---- fork ---- */

static bool child_succeeds(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void *go_on(void *data)
{
    (void)data;
    while (!stopped) free(do_all().bytes);
    return NULL;
}

START_TEST(children_compute_the_same)
{
    pthread_t thread;
    watches = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, go_on, NULL), 0);
    for (int i = 0; i < 3; i++) {
        usleep(20000);
        const pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS / 2);
            _exit(is_expected(do_all()) ? 0 : 1);
        }
        ck_assert(child_succeeds(child));
    }
    stopped = 1;
    pthread_join(thread, NULL);
}
END_TEST

static void prepare(void)
{
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    strcpy(directory, "/tmp/fusec-process-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("FUSEC_NVRTC", "/dev/null", 1);
    setenv("FUSEC_CACHE_DIR", directory, 1);
    stopped = 0;
    expect_calls();
}

static void clean_up(void)
{
    char command[128];
    uselocale(LC_GLOBAL_LOCALE);
    if (of_thread) freelocale(of_thread);
    of_thread = (locale_t)0;
    setlocale(LC_ALL, "C");
    ck_assert_int_eq(chdir(home), 0);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
    forget_calls();
}

Suite *process_suite(void)
{
    Suite *suite = suite_create("process");
    TCase *tests = tcase_create("process");
    tcase_set_tags(tests, "plain"); /* a sanitizer wants larger stacks */
    tcase_set_timeout(tests, SECONDS);
    tcase_add_checked_fixture(tests, prepare, clean_up);
    tcase_add_loop_test(tests, results_are_the_same, 0, ENVIRONMENTS);
    tcase_add_test(tests, a_small_stack_is_enough);
    tcase_add_test(tests, deep_programs_take_no_stack_of_the_caller);
    tcase_add_test(tests, another_thread_sets_locales);
    suite_add_tcase(suite, tests);
    /* not under a sanitizer, whose allocator may be locked by another thread when the process forks
     */
    TCase *forks = tcase_create("fork");
    tcase_set_tags(forks, "fork");
    tcase_set_timeout(forks, SECONDS);
    tcase_add_checked_fixture(forks, prepare, clean_up);
    tcase_add_test(forks, children_compute_the_same);
    suite_add_tcase(suite, forks);
    return suite;
}
