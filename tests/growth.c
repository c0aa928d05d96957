/* growth.c: how the time from a program's text to CUDA text grows with the number of its values.
 * Each shape is written with n values and with four times as many, and compiled by a thread with a
 * small stack. More than eight times the time is too much: about n log n takes five times as much,
 * what grows with the square sixteen times.
 *
 *   build/growth              two sizes for each shape; exit status 1 where one grows too fast
 *   build/growth N...         the time at each of these sizes */
#include "compile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STACK_BYTES = 256 << 10, REPEATS = 2, SMALL = 2000, FACTOR = 4, MOST_GROWTH = 8 };
static const double slack = 0.05, /* seconds: what a busy machine may add */
    least = 1e-4;                 /* that any of these takes: else nothing was measured */

/* ---- the shapes ---- */

static void print_head(Text *t, const char *inputs, const char *outputs)
{
    text_print(
        t, "graph shape[M = 4, N = 64](\n    x : f32[M, N]%s\n) -> (\n    %s\n) {\n    v0 = x\n",
        inputs, outputs);
}

static void print_end(Text *t, const char *output, int values)
{
    text_print(t, "    y = %s%d\n}\n", output, values - 1);
}

static void print_chain(Text *t, int n)
{
    print_head(t, "", "y : f32[M, N]");
    for (int i = 1; i < n / 2; i++) text_print(t, "    v%d = v%d * 1.001 + 0.5\n", i, i - 1);
    print_end(t, "v", n / 2);
}

/* Functions that call the one before twice: values without names. `call` has the name of the one
 * before three times. */
static int print_functions(Text *t, const char *first, const char *call, int n)
{
    int depth = 0;
    text_print(t, "fn g0(x) = %s\n", first);
    for (int values = 2; values < n; values *= 2, depth++)
        text_print(t, call, depth + 1, depth, depth, depth + 1);
    return depth;
}

static void print_doubling(Text *t, int n)
{
    int depth = print_functions(t, "x * 1.001 + 0.5", "fn g%d(x) = g%d(g%d(x))    # %d\n", n);
    print_head(t, "", "y : f32[M, N]");
    text_print(t, "    y = g%d(x)\n}\n", depth);
}

static void print_names(Text *t, int n)
{
    int depth = print_functions(t, "x * 1.5", "fn g%d(x) = g%d(x) + g%d(x + %d.25)\n", n);
    print_head(t, "", "y : f32[M, N]");
    text_print(t, "    y = g%d(x)\n}\n", depth);
}

/* One reduction after the other of what functions make, and a sum over rows. */
static void print_phases(Text *t, int n)
{
    int depth = print_functions(t, "x * 1.001 + 0.5", "fn g%d(x) = g%d(g%d(x))    # %d\n", n / 8);
    print_head(t, "", "y : bf16[M, N], w : f32[N]");
    text_print(
        t,
        "    m = g%d(mean[N](g%d(x)))\n    z = g%d(x - m)\n    y = bf16(z)\n    w = g%d(sum[M](z * x))\n}\n",
        depth, depth, depth, depth);
}

static void print_fan(Text *t, int n)
{
    print_head(t, "", "y : f32[M, N]");
    for (int i = 1; i < n / 3; i++) text_print(t, "    p%d = x * (x + %d.5)\n", i, i);
    for (int i = 1; i < n / 3; i++) text_print(t, "    v%d = v%d + p%d\n", i, i - 1, i);
    print_end(t, "v", n / 3);
}

/* Each value is the one before and `term`, which has the value's number once. */
static void print_sums(Text *t, int n, const char *inputs, const char *outputs, const char *term)
{
    print_head(t, inputs, outputs);
    for (int i = 1; i < n; i++) {
        text_print(t, "    v%d = v%d + ", i, i - 1);
        for (const char *c = term; *c; c++)
            if (*c == '#')
                text_print(t, "%d", i);
            else
                text_print(t, "%c", *c);
        text_print(t, "\n");
    }
    print_end(t, "v", n);
}

static void print_constants(Text *t, int n)
{
    print_sums(t, n, "", "y : f32[M, N]", "#.125");
}
static void print_reductions(Text *t, int n)
{
    print_sums(t, n / 3, "", "y : f32[M, N]", "sum[N](x * #.5)");
}
static void print_variances(Text *t, int n)
{
    print_sums(t, n / 6, "", "y : f32[M, N]", "var[N](x * #.5)");
}
static void print_maxima(Text *t, int n)
{
    print_sums(t, n / 8, "", "y : f32[M, N]", "sum[N](exp(x * #.5 - max[N](x * #.5)))");
}
static void print_integers(Text *t, int n)
{
    print_sums(t, n / 3, ", i : i32[M]", "y : f32[M, N]", "where(index(N) == i + #, x, 0)");
}

static void print_unused(Text *t, int n)
{
    print_head(t, "", "y : f32[M, N]");
    for (int i = 1; i < n; i++) text_print(t, "    v%d = x * %d.5\n", i, i);
    print_end(t, "v", 1);
}

/* More than a kernel can be passed: refused, which is not to take long either. */
static void print_inputs(Text *t, int n)
{
    Text *inputs = text_new(t->arena);
    for (int i = 1; i < n; i++) text_print(inputs, ",\n    a%d : %s", i, i % 2 ? "f32" : "f32[N]");
    print_sums(t, n, text_string(inputs), "y : f32[M, N]", "a#");
}

/* The same of reductions that wait for each other, of which each takes what all before have made.
 */
static void print_waiting(Text *t, int n)
{
    print_head(t, "", "y : f32[M, N]");
    for (int i = 1; i < 2 * n; i++)
        text_print(t, "    v%d = v%d - mean[%s](v%d)\n", i, i - 1, i % 2 ? "M" : "N", i - 1);
    print_end(t, "v", 2 * n);
}

typedef struct {
    const char *name;
    void (*print)(Text *t, int n);
    CompileStatus status;
} Shape;

static const Shape shapes[] = {
    {"a chain of statements", print_chain, COMPILE_OK},
    {"functions that double", print_doubling, COMPILE_OK},
    {"values that need names", print_names, COMPILE_OK},
    {"reductions in between", print_phases, COMPILE_OK},
    {"a sum of products", print_fan, COMPILE_OK},
    {"constants", print_constants, COMPILE_OK},
    {"reductions", print_reductions, COMPILE_OK},
    {"variances", print_variances, COMPILE_OK},
    {"maxima with sums", print_maxima, COMPILE_OK},
    {"integers and places", print_integers, COMPILE_OK},
    {"unused values", print_unused, COMPILE_OK},
    {"inputs", print_inputs, COMPILE_USAGE},
    {"reductions that wait", print_waiting, COMPILE_USAGE},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- the time ---- */

typedef struct {
    CompileRequest request;
    CompileStatus wanted;
    double seconds;
    bool ok;
} Job;

/* Of processor time, of all threads: the compiler has one of its own. */
static double process_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *run_job(void *data)
{
    Job *job = data;
    const double before = process_seconds();
    Compilation c = compile(&job->request);
    job->seconds = process_seconds() - before;
    job->ok = c.status == job->wanted;
    if (!job->ok) fprintf(stderr, "status %d:\n%.1000s", c.status, c.diagnostics);
    compile_free(&c);
    return NULL;
}

static void run_in_small_thread(Job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    job->ok = false;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, run_job, job) == 0) pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

/* The least of some runs; below 0: it was not compiled as it should. */
static double measure(const Shape *shape, int n)
{
    Arena *arena = arena_new();
    Text *text = text_new(arena);
    shape->print(text, n);
    Job job = {.wanted = shape->status};
    job.request = (CompileRequest){.text = text->data,
                                   .length = text->length,
                                   .name = shape->name,
                                   .target = *target_find("sm_90a"),
                                   .until = UNTIL_CUDA};
    double best = -1;
    for (int i = 0; i < REPEATS; i++) {
        run_in_small_thread(&job);
        if (!job.ok) best = -1;
        if (!job.ok) break;
        if (i == 0 || job.seconds < best) best = job.seconds;
    }
    arena_free(arena);
    return best;
}

static int check_growth(void)
{
    int bad = 0;
    for (int i = 0; i < SHAPES; i++) {
        const double few = measure(&shapes[i], SMALL), many = measure(&shapes[i], FACTOR * SMALL);
        const bool ok = few > least && many > few && many <= MOST_GROWTH * few + slack;
        printf("%-26s %6d: %7.1f ms  %6d: %7.1f ms%s\n", shapes[i].name, SMALL, 1e3 * few,
               FACTOR * SMALL, 1e3 * many, ok ? "" : "  TOO MUCH");
        bad += !ok;
    }
    return bad;
}

int main(int argc, char **argv)
{
    if (argc == 1) return check_growth() != 0;
    for (int i = 0; i < SHAPES; i++) {
        printf("%-26s", shapes[i].name);
        for (int k = 1; k < argc; k++) {
            printf(" %10.1f ms", 1e3 * measure(&shapes[i], atoi(argv[k])));
            fflush(stdout);
        }
        printf("\n");
    }
    return 0;
}
