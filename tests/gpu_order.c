/* gpu_order.c: launches of a stream that read what the ones before them wrote, and overwrite what
 * those read.
 *
 *     gpu_order cuda|cpu
 *
 * A kernel may start while the one before it ends, whosever that is, and waits by itself. Each step
 * here adds one to all elements of one tensor and leaves them in another, over and over between
 * two, so that a kernel which did not wait would read or overwrite what is not done. Slow fills
 * come first, so that all launches are queued before the first runs; fills and copies come between.
 * Prints what is wrong and exits 1; exits 3 with `skipped` when there is no device. */
#include "fusec.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `s` makes it two kernels; the row's least value makes it one that reduces rows. */
static const char program_text[] =
    "graph step[M, N](x : f32[M, N]) -> (y : f32[M, N], s : f32[N]) {\n"
    "    y = x + 1 + min(min[N](x), 0)\n"
    "    s = sum[M](x)\n"
    "}\n";

typedef struct {
    int64_t rows, columns;
    const char *outputs, *schedule;
} Case;

static const Case cases[] = {
    {1, 64, "y", NULL},      {64, 64, "y", NULL},
    {4096, 64, "y", NULL},   {1, 4096, "y", NULL},
    {64, 4096, "y", NULL},   {700, 4096, "y", NULL},
    {3, 1023, "y", NULL},    {64, 16384, "y", NULL},
    {3, 262144, "y", NULL},  {2, 1048576, "y", NULL},
    {64, 1024, NULL, NULL},  {4096, 1024, NULL, NULL},
    {300, 4096, NULL, NULL}, {300, 1023, NULL, NULL},
    {70, 65536, NULL, NULL}, {300, 4096, NULL, "warp-specialized"},
};

static fusec_device *device;
static int steps = 200; /* an even number */
enum { FILLS = 30 };    /* of 256 MiB, so many milliseconds for the host to queue all steps in */
static fusec_error error;

static void check(fusec_status status, const char *what)
{
    if (status == FUSEC_OK) return;
    printf("%s: %s: %s\n", what, fusec_status_name(status), error.message);
    exit(EXIT_FAILURE);
}

static void *allocate(size_t bytes)
{
    void *memory;
    check(fusec_alloc(device, bytes, &memory, &error), "alloc");
    return memory;
}

static fusec_plan *make_plan(const Case *c)
{
    fusec_program *program;
    fusec_plan *plan;
    const fusec_size sizes[] = {{"M", c->rows}, {"N", c->columns}};
    fusec_plan_options options = {
        .struct_size = sizeof options, .outputs = c->outputs, .schedule = c->schedule};
    check(fusec_program_parse(program_text, strlen(program_text), "step.fuse", &program, &error),
          "parse");
    check(fusec_plan_create(device, program, NULL, sizes, 2, &options, &plan, &error), "plan");
    fusec_program_destroy(program);
    return plan;
}

static float start_value(int64_t i)
{
    return (float)(i % 1009);
}

/* What the elements, and the sums over the rows as the last step found them, should be. */
static int64_t count_wrong(const Case *c, const float *y, const float *s)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < c->rows * c->columns; i++)
        wrong += y[i] != start_value(i) + (float)steps;
    for (int64_t col = 0; !c->outputs && col < c->columns; col++) {
        double sum = 0;
        for (int64_t row = 0; row < c->rows; row++)
            sum += start_value(row * c->columns + col) + (float)(steps - 1);
        wrong += s[col] != (float)sum;
    }
    return wrong;
}

static fusec_tensor matrix(const Case *c, void *data)
{
    fusec_tensor t = {.data = data, .dtype = FUSEC_F32, .rank = 2, .sizes = {c->rows, c->columns}};
    t.strides[0] = c->columns;
    t.strides[1] = 1;
    return t;
}

/* Now and then the values go on by way of a copy, from a third place, whose old contents a fill has
 * wiped. */
static void take_detour(void *at, void *spare, size_t bytes, fusec_stream stream)
{
    check(fusec_fill_async(device, spare, 0xff, bytes, stream, &error), "fill");
    check(fusec_copy_async(device, spare, at, bytes, stream, &error), "copy");
    check(fusec_fill_async(device, at, 0xff, bytes, stream, &error), "fill");
    check(fusec_copy_async(device, at, spare, bytes, stream, &error), "copy");
}

static bool run_case(const Case *c, fusec_stream stream)
{
    size_t bytes = (size_t)(c->rows * c->columns) * sizeof(float), first_bytes = (size_t)1 << 28;
    fusec_plan *plan = make_plan(c);
    float *host = malloc(bytes), *sums = malloc((size_t)c->columns * sizeof *sums);
    void *at[] = {allocate(bytes), allocate(bytes)}, *spare = allocate(bytes),
         *first = allocate(first_bytes);
    void *workspace = allocate(fusec_plan_workspace(plan, NULL, 0));
    fusec_tensor s = {.data = allocate((size_t)c->columns * sizeof *sums),
                      .dtype = FUSEC_F32,
                      .rank = 1,
                      .sizes = {c->columns}};
    s.strides[0] = 1;
    for (int64_t i = 0; i < c->rows * c->columns; i++) host[i] = start_value(i);
    check(fusec_copy(device, at[0], host, bytes, &error), "copy");
    for (int i = 0; i < FILLS; i++)
        check(fusec_fill_async(device, first, 1, first_bytes, stream, &error), "fill");
    for (int step = 0; step < steps; step++) {
        if (step % 50 == 1) take_detour(at[step % 2], spare, bytes, stream);
        const fusec_tensor x = matrix(c, at[step % 2]),
                           outputs[] = {matrix(c, at[1 - step % 2]), s};
        check(fusec_plan_launch(plan, &x, outputs, NULL, workspace, stream, &error), "launch");
    }
    check(fusec_device_synchronize(device, &error), "synchronize");
    check(fusec_copy(device, host, at[0], bytes, &error), "copy");
    check(fusec_copy(device, sums, s.data, (size_t)c->columns * sizeof *sums, &error), "copy");
    int64_t wrong = count_wrong(c, host, sums);
    if (wrong)
        printf("%" PRId64 " x %" PRId64 " %s: %" PRId64 " elements are wrong after %d steps\n",
               c->rows, c->columns, c->outputs ? c->outputs : "y,s", wrong, steps);
    fusec_plan_destroy(plan);
    void *const all[] = {at[0], at[1], spare, first, workspace, s.data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fusec_free(device, all[i]);
    free(host);
    free(sums);
    return wrong == 0;
}

int main(int argc, char **argv)
{
    bool cpu = argc == 2 && !strcmp(argv[1], "cpu");
    if (argc != 2 || (!cpu && strcmp(argv[1], "cuda"))) {
        fprintf(stderr, "usage: gpu_order cuda|cpu\n");
        return 2;
    }
    if (cpu) steps = 4;
    fusec_status status =
        cpu ? fusec_device_cpu(&device, &error) : fusec_device_open(0, &device, &error);
    if (status != FUSEC_OK) {
        printf("skipped: %s\n", error.message);
        return 3;
    }
    fusec_stream stream;
    check(fusec_stream_create(device, &stream, &error), "stream");
    int good = 0, count = (int)(sizeof cases / sizeof *cases);
    for (int i = 0; i < count; i++) good += run_case(&cases[i], i % 2 ? stream : NULL);
    fusec_stream_destroy(device, stream);
    fusec_device_destroy(device);
    printf("order of launches: %d of %d cases\n", good, count);
    return good == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
