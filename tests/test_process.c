/* test_process.c: the process belongs to the caller. What fusec prints and computes is the same,
 * byte for byte, in a hostile locale, with other rounding, traps or flush to zero, in a directory
 * that is gone, on a small stack, under a hail of signals and after fork; and no call changes any
 * of that. */
#include "fusec.h"
#include "suites.h"

#include <check.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { POOL = 1 << 17, ROWS = 3, MOST_TENSORS = 16, MOST_PROGRAMS = 16, SECONDS = 60 };
#if defined(__SANITIZE_ADDRESS__)
enum { STACK = 4 << 20 }; /* frames are several times as large */
#else
enum { STACK = 256 << 10 };
#endif

static const char *const files[] = {
    "examples/layernorm_bwd.fuse",     "examples/softmax_causal_bwd.fuse",
    "examples/rmsnorm_quantized.fuse", "examples/adaln_bwd.fuse",
    "examples/rmsnorm_bwd_add.fuse",   "tests/cases/moments_extremes.fuse",
    "tests/cases/narrow_types.fuse",
};
static const char constants[] =
    "graph constants[M = 4, N = 64](x : f32[M, N], small : f32 = 1.5e-42, Q : f64 = 0.1) ->\n"
    "    (y : f32[M, N], z : f64[M, N], s : f32[M], t : bf16[M, N]) {\n"
    "    y = x * 0.5 + 1.25 + small\n"
    "    z = x / Q * 1e-310 + 0.30000000000000004\n"
    "    s = sum[N](x * 1e-3) * 0.1\n"
    "    t = tanh(x) + 1e-41\n"
    "}\n";

typedef struct {
    char *text;
    size_t length;
} Input;

static Input programs[MOST_PROGRAMS];
static int program_count;
static char pools[FUSEC_DTYPE_COUNT][POOL * 8];
static char home[4096], directory[64];

/* ---- what is done in each environment ---- */

typedef struct {
    char *bytes;
    size_t length, capacity;
} Record;

static void put(Record *r, const void *bytes, size_t length)
{
    if (r->length + length > r->capacity) {
        r->capacity = 2 * (r->length + length);
        r->bytes = realloc(r->bytes, r->capacity);
        ck_assert_ptr_nonnull(r->bytes);
    }
    memcpy(r->bytes + r->length, bytes, length);
    r->length += length;
}

/* What a call must leave as it was. */
typedef struct {
    int rounding, traps, raised;
    unsigned control;
    char point;
    locale_t locale;
    sigset_t blocked;
} State;

static State read_state(void)
{
    State s;
    memset(&s, 0, sizeof s);
    s.rounding = fegetround();
    s.traps = fegetexcept();
    s.raised = fetestexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
    /* But for a flag that fenv.h does not know: subnormal operand. */
    s.control = _mm_getcsr() & ~2u;
#endif
    s.point = *localeconv()->decimal_point;
    s.locale = uselocale((locale_t)0);
    pthread_sigmask(SIG_SETMASK, NULL, &s.blocked);
    return s;
}

static State before;
static bool watches; /* one thread, and nobody else changes the locale */

static void check_state(const char *what)
{
    const State after = read_state();
    ck_assert_msg(!watches || memcmp(&before, &after, sizeof after) == 0,
                  "%s leaves the process changed", what);
}

#define DO(call)                                                                                   \
    do {                                                                                           \
        fusec_error error_;                                                                        \
        fusec_error *const error = &error_;                                                        \
        ck_assert_msg((call) == FUSEC_OK, "%s", error_.message);                                   \
        check_state(#call);                                                                        \
    } while (0)

#define REFUSED(record, call)                                                                      \
    do {                                                                                           \
        fusec_error error_;                                                                        \
        fusec_error *const error = &error_;                                                        \
        ck_assert_int_ne(call, FUSEC_OK);                                                          \
        put(record, error_.message, strlen(error_.message));                                       \
        check_state(#call);                                                                        \
    } while (0)

/* Inputs lie in the pools, outputs in fresh memory. */
static size_t describe(const fusec_plan *plan, size_t index, fusec_tensor *t)
{
    fusec_tensor_info info = {.struct_size = sizeof info};
    fusec_axis_info axis = {.struct_size = sizeof axis};
    ck_assert_int_eq(fusec_plan_tensor(plan, index, &info), FUSEC_OK);
    *t = (fusec_tensor){.dtype = info.dtype, .rank = info.rank};
    size_t count = 1;
    for (int d = info.rank; d-- > 0;) {
        ck_assert_int_eq(fusec_plan_axis(plan, (size_t)info.axes[d], &axis), FUSEC_OK);
        t->sizes[d] = axis.is_fixed ? axis.size : ROWS;
        t->strides[d] = (int64_t)count;
        count *= (size_t)t->sizes[d];
    }
    ck_assert_uint_le(count, POOL);
    t->data = info.is_output ? calloc(count, 8) : pools[info.dtype];
    return count * fusec_dtype_bytes(info.dtype);
}

static void launch(Record *r, fusec_plan *plan)
{
    fusec_tensor tensors[MOST_TENSORS];
    size_t bytes[MOST_TENSORS];
    const size_t inputs = fusec_plan_input_count(plan), count = fusec_plan_tensor_count(plan);
    for (size_t i = 0; i < count; i++) bytes[i] = describe(plan, i, &tensors[i]);
    DO(fusec_plan_launch(plan, tensors, tensors + inputs, NULL, NULL, NULL, error));
    for (size_t i = inputs; i < count; i++) {
        put(r, tensors[i].data, bytes[i]);
        free(tensors[i].data);
    }
}

static void do_program(Record *r, fusec_device *device, const Input *input)
{
    fusec_program *program;
    fusec_plan *plan;
    DO(fusec_program_parse(input->text, input->length, "p.fuse", &program, error));
    DO(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, error));
    put(r, fusec_plan_text(plan), strlen(fusec_plan_text(plan)));
    launch(r, plan);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    check_state("destroy");
}

/* The entries that compute or print little. */
static void do_rest(Record *r, fusec_device *device)
{
    static const char scalar[] = "graph g(k : i32, a : f32 = 1e-42) -> (y : f32[]) { y = a + k }";
    static const char wrong[] = "graph g(k : i32 = 0.5) -> (y : f32[]) { y = 1e400 + k * $ }";
    static const double values[] = {1.5, 0.5};
    fusec_program *program;
    fusec_plan *plan;
    fusec_event *begin, *end;
    double milliseconds;
    float y;
    void *memory;
    const fusec_tensor output = {.data = &y, .dtype = FUSEC_F32};
    DO(fusec_program_parse(scalar, sizeof scalar - 1, NULL, &program, error));
    DO(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, error));
    REFUSED(r, fusec_plan_launch(plan, NULL, &output, values, NULL, NULL, error));
    REFUSED(r, fusec_program_parse(wrong, sizeof wrong - 1, NULL, &(fusec_program *){NULL}, error));
    REFUSED(r, fusec_nvrtc_version(NULL, NULL, NULL, 0, error));
    REFUSED(r, fusec_plan_save(plan, "plan", error));
    DO(fusec_event_create(device, &begin, error));
    DO(fusec_event_create(device, &end, error));
    DO(fusec_event_record(begin, NULL, error));
    DO(fusec_event_record(end, NULL, error));
    DO(fusec_event_elapsed(begin, end, &milliseconds, error));
    DO(fusec_alloc(device, 64, &memory, error));
    DO(fusec_fill_async(device, memory, 1, 64, NULL, error));
    DO(fusec_device_synchronize(device, error));
    DO(fusec_cache_clear(NULL, error));
    fusec_free(device, memory);
    fusec_event_destroy(begin);
    fusec_event_destroy(end);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    check_state("destroy");
}

static Record do_all(void)
{
    Record r = {0};
    fusec_device *device;
    before = read_state();
    DO(fusec_device_cpu(&device, error));
    for (int i = 0; i < program_count; i++) do_program(&r, device, &programs[i]);
    do_rest(&r, device);
    fusec_device_destroy(device);
    check_state("destroy");
    return r;
}

static Record expected;

static bool is_expected(Record r)
{
    const bool same = r.length == expected.length && memcmp(r.bytes, expected.bytes, r.length) == 0;
    free(r.bytes);
    return same;
}

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

/* ---- before all ---- */

static unsigned next_random(void)
{
    static uint64_t state = 52;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

/* Bits of element i, ordinary numbers with some that are not normalized. */
static uint64_t element(fusec_dtype dtype, int i)
{
    const unsigned r = next_random();
    const bool tiny = i % 97 == 5;
    switch (dtype) {
    case FUSEC_F64:
        return (uint64_t)(r & 1) << 63 | (tiny ? 0 : (uint64_t)(1018 + r % 7) << 52) | r;
    case FUSEC_F32: return (r & 1) << 31 | (tiny ? 0 : (122 + r % 7) << 23) | (r >> 8 & 0x7fffff);
    case FUSEC_F16: return (r & 1) << 15 | (tiny ? 0 : (11 + r % 6) << 10) | (r >> 8 & 0x3ff);
    case FUSEC_BF16: return (r & 1) << 15 | (tiny ? 0 : (122 + r % 7) << 7) | (r >> 8 & 0x7f);
    case FUSEC_F8E4M3:
    case FUSEC_F8E5M2: return (r & 1) << 7 | (r >> 8 & 0x3f);
    default: return r & 1;
    }
}

static void fill_pools(void)
{
    for (int d = 0; d < FUSEC_DTYPE_COUNT; d++)
        for (int i = 0; i < POOL; i++) {
            const uint64_t bits = element((fusec_dtype)d, i);
            const size_t bytes = fusec_dtype_bytes((fusec_dtype)d);
            memcpy(pools[d] + (size_t)i * bytes, &bits, bytes);
        }
}

static void read_program(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 16);
    const size_t length = fread(text, 1, 1 << 16, file);
    fclose(file);
    programs[program_count++] = (Input){text, length};
}

static void prepare(void)
{
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
    strcpy(directory, "/tmp/fusec-process-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("FUSEC_NVRTC", "/dev/null", 1);
    setenv("FUSEC_CACHE_DIR", directory, 1);
    program_count = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) read_program(files[i]);
    programs[program_count++] = (Input){strdup(constants), sizeof constants - 1};
    fill_pools();
    stopped = 0;
    watches = true;
    expected = do_all();
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
    for (int i = 0; i < program_count; i++) free(programs[i].text);
    free(expected.bytes);
}

Suite *process_suite(void)
{
    Suite *suite = suite_create("process");
    TCase *tests = tcase_create("process");
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
