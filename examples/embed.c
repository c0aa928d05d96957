/* embed.c: fusec inside a C program: layer-norm backward on the GPU, or on the CPU
 * without one.
 *
 *     gcc examples/embed.c -Iruntime -Lbuild -lfusec -lm -o embed
 *     LD_LIBRARY_PATH=build ./embed examples/layernorm_bwd.fuse
 *
 * A program is read and parsed, a plan is made for 256 columns and launched for 1000 rows; a few
 * values of dx and dbeta are checked against plain C. The tensors are in the order of the
 * declaration: inputs x dy gamma mean rstd, outputs dx dgamma dbeta. Another graph has other
 * tensors, and is refused. */
#include "fusec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 1000, N = 256, TENSORS = 8, INPUTS = 5 };

static const size_t bytes[TENSORS] = {2 * M * N, 2 * M *N, 2 * N, 4 * M,
                                      4 * M,     2 * M *N, 2 * N, 2 * N};

static fusec_error error;

static void check(fusec_status status, const char *what)
{
    if (status == FUSEC_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, fusec_status_name(status), error.message);
    exit(EXIT_FAILURE);
}

static float from_bf16(uint16_t stored)
{
    uint32_t bits = (uint32_t)stored << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Truncates: every value the inputs take is a bf16 anyway. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void check_that_it_fits(int fits, const fusec_plan *plan)
{
    if (fits) return;
    fprintf(stderr, "graph %s: this program has tensors for examples/layernorm_bwd.fuse alone\n",
            fusec_plan_graph(plan));
    exit(EXIT_FAILURE);
}

/* Describes tensor `i` of the plan for M rows and gives it zeroed host memory and device
 * memory. */
static fusec_tensor make_tensor(fusec_device *device, const fusec_plan *plan, size_t i, void **host)
{
    fusec_tensor_info info = {.struct_size = sizeof info};
    fusec_axis_info axis = {.struct_size = sizeof axis};
    check(fusec_plan_tensor(plan, i, &info), "tensor");
    fusec_tensor t = {.dtype = info.dtype, .rank = info.rank};
    size_t count = 1;
    for (int d = info.rank; d-- > 0;) {
        check(fusec_plan_axis(plan, (size_t)info.axes[d], &axis), "axis");
        t.sizes[d] = strcmp(axis.name, "M") == 0 ? M : N;
        t.strides[d] = (int64_t)count;
        count *= (size_t)t.sizes[d];
    }
    check_that_it_fits(count * fusec_dtype_bytes(info.dtype) == bytes[i], plan);
    *host = calloc(1, bytes[i]);
    check(fusec_alloc(device, bytes[i], &t.data, &error), "alloc");
    return t;
}

/* Inputs whose values are exact in bf16: small multiples of 1/16. */
static void fill_inputs(void *host[TENSORS])
{
    for (int i = 0; i < M * N; i++) {
        ((uint16_t *)host[0])[i] = to_bf16((float)(i * 7 % 61 - 30) / 16);
        ((uint16_t *)host[1])[i] = to_bf16((float)(i * 5 % 47 - 23) / 16);
    }
    for (int n = 0; n < N; n++) ((uint16_t *)host[2])[n] = to_bf16(1 + (float)(n % 8) / 16);
    for (int m = 0; m < M; m++) {
        ((float *)host[3])[m] = (float)(m % 5) / 8;
        ((float *)host[4])[m] = 0.5f + (float)(m % 3) / 8;
    }
}

static double plain_dx(void *host[TENSORS], int row, int column)
{
    const uint16_t *x = (uint16_t *)host[0] + row * N, *dy = (uint16_t *)host[1] + row * N;
    const uint16_t *gamma = host[2];
    double mean = ((float *)host[3])[row], rstd = ((float *)host[4])[row], c1 = 0, c2 = 0;
    for (int n = 0; n < N; n++) {
        double wdy = (double)from_bf16(dy[n]) * (double)from_bf16(gamma[n]);
        c1 += wdy * ((double)from_bf16(x[n]) - mean) * rstd / N;
        c2 += wdy / N;
    }
    double xhat = ((double)from_bf16(x[column]) - mean) * rstd;
    double wdy = (double)from_bf16(dy[column]) * (double)from_bf16(gamma[column]);
    return (wdy - xhat * c1 - c2) * rstd;
}

static int compare(void *host[TENSORS])
{
    double worst = 0;
    for (int row = 0; row < M; row += 111)
        for (int column = 0; column < N; column += 17) {
            double got = (double)from_bf16(((uint16_t *)host[5])[row * N + column]);
            double want = plain_dx(host, row, column);
            worst = fmax(worst, fabs(got - want) / fmax(fabs(want), 0.01));
        }
    double dbeta = 0;
    for (int row = 0; row < M; row++)
        dbeta += (double)from_bf16(((uint16_t *)host[1])[row * N + 3]);
    double got = (double)from_bf16(((uint16_t *)host[7])[3]);
    printf("worst relative error of dx %.5f (bf16 rounds to 0.00391), dbeta[3] %g = %g\n", worst,
           got, dbeta);
    return worst < 0.004 && fabs(got - dbeta) <= 0.004 * fabs(dbeta) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments)
{
    fusec_program *program;
    fusec_device *device;
    fusec_plan *plan;
    fusec_device_info about = {.struct_size = sizeof about};
    fusec_tensor tensors[TENSORS];
    void *host[TENSORS], *workspace;
    double milliseconds;
    const char *path = count > 1 ? arguments[1] : "examples/layernorm_bwd.fuse";

    check(fusec_program_open(path, NULL, &program, &error), "parse");
    if (fusec_device_open(0, &device, &error) != FUSEC_OK) {
        printf("no GPU (%s): the CPU evaluator runs it\n", error.message);
        check(fusec_device_cpu(&device, &error), "device");
    }
    check(fusec_device_get_info(device, &about), "device info");

    fusec_size columns[] = {{"N", N}};
    check(fusec_plan_create(device, program, NULL, columns, 1, NULL, &plan, &error), "plan");
    check_that_it_fits(
        fusec_plan_input_count(plan) == INPUTS && fusec_plan_tensor_count(plan) == TENSORS, plan);
    for (size_t i = 0; i < TENSORS; i++) tensors[i] = make_tensor(device, plan, i, &host[i]);
    fill_inputs(host);
    for (size_t i = 0; i < INPUTS; i++)
        check(fusec_copy(device, tensors[i].data, host[i], bytes[i], &error), "copy in");

    fusec_size rows[] = {{"M", M}};
    check(fusec_alloc(device, fusec_plan_workspace(plan, rows, 1), &workspace, &error), "alloc");
    fusec_event *begin, *end;
    check(fusec_event_create(device, &begin, &error), "event");
    check(fusec_event_create(device, &end, &error), "event");
    for (int i = 0; i < 2; i++) { /* the first launch warms up */
        check(fusec_event_record(begin, NULL, &error), "record");
        check(fusec_plan_launch(plan, tensors, tensors + INPUTS, NULL, workspace, NULL, &error),
              "launch");
        check(fusec_event_record(end, NULL, &error), "record");
    }
    check(fusec_event_elapsed(begin, end, &milliseconds, &error), "elapsed");
    for (size_t i = INPUTS; i < TENSORS; i++)
        check(fusec_copy(device, host[i], tensors[i].data, bytes[i], &error), "copy out");
    printf("%s: plan in %.1f ms, launch in %.3f ms\n", about.name, fusec_plan_milliseconds(plan),
           milliseconds);
    int status = compare(host);

    for (int i = 0; i < TENSORS; i++) {
        fusec_free(device, tensors[i].data);
        free(host[i]);
    }
    fusec_free(device, workspace);
    fusec_event_destroy(begin);
    fusec_event_destroy(end);
    fusec_plan_destroy(plan);
    fusec_device_destroy(device);
    fusec_program_destroy(program);
    return status;
}
