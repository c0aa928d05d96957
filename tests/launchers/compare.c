/* compare.c: launchers that `fusec build` wrote against the runtime's own launches, on the stub
 * driver: for the same sizes, strides and scalars each kernel is launched with the same grid, block,
 * shared memory, attributes, stream and arguments. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adaln_bwd_C1000.h"
#include "adaln_bwd_C1152.h"
#include "adaln_bwd_C4096.h"
#include "images.h"
#include "blackwell.h"
#include "pixels.h"
#include "rows_N1000.h"
#include "rows_N1024.h"
#include "rows_N8192.h"

enum { MOST_TEXT = 1 << 14, MOST_TENSORS = 8 };

static const LaunchPlan *now; /* whose kernels are launched */
static char told[MOST_TEXT];
static int cases, wrong;
static unsigned most_along_y; /* CTAs of any launch */

static const LaunchEntry *find_entry(const char *name)
{
    for (int k = 0; k < now->kernel_count; k++) {
        const LaunchKernel *kernel = &now->kernels[k];
        if (!strcmp(kernel->entry.name, name)) return &kernel->entry;
        if (has_strided(kernel) && !strcmp(kernel->strided.name, name)) return &kernel->strided;
    }
    return NULL;
}

static int scalar_bytes(DType dtype)
{
    switch (dtype_info[dtype].type) {
    case TYPE_F32: return 4;
    case TYPE_BOOL: return 1;
    case TYPE_F64:
    case TYPE_I64: break;
    }
    return 8;
}

static int argument_bytes(const LaunchArg *arg)
{
    if (arg->kind == ARG_SCALAR) return scalar_bytes(now->scalars[arg->index].dtype);
    return arg->kind == ARG_GRID || arg->kind == ARG_ALONE || arg->kind == ARG_INTERVAL ? 4 : 8;
}

static void tell(const char *format, unsigned long long value)
{
    const size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, format, value);
}

void stub_launched(const CUlaunchConfig *config, const char *name, void **parameters);
void stub_launched(const CUlaunchConfig *config, const char *name, void **parameters)
{
    const LaunchEntry *entry = find_entry(name);
    const size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s <<<%u %u %u, %u %u %u, %u>>>", name,
             config->grid_x, config->grid_y, config->grid_z, config->block_x, config->block_y,
             config->block_z, config->smem_bytes);
    if (config->grid_y > most_along_y) most_along_y = config->grid_y;
    tell(" stream %llx", (unsigned long long)(uintptr_t)config->stream);
    for (unsigned i = 0; i < config->attribute_count; i++) {
        tell(" attribute %llu", (unsigned long long)config->attributes[i].id);
        tell(" %llu", (unsigned long long)config->attributes[i].value.cluster.x);
    }
    for (int i = 0; entry && i < entry->arg_count; i++) {
        unsigned long long value = 0;
        memcpy(&value, parameters[i], (size_t)argument_bytes(&entry->args[i]));
        tell(" %llx", value);
    }
    tell("\n", 0);
}

static void fail_case(const char *what, const char *more)
{
    printf("launchers: %s\n%s", what, more);
    wrong++;
}

static void need(fusec_status status, const fusec_error *error)
{
    if (status == FUSEC_OK) return;
    printf("launchers: %s\n", error->message);
    exit(1);
}

enum { UNEVEN = 24 };

/* A tensor of a size for each axis, at a place of its own, with `pad` elements behind each row; with
 * UNEVEN of them its rows are not evenly spaced, either. */
static fusec_tensor make_tensor(int place, fusec_dtype dtype, int rank, const int64_t *sizes,
                                int64_t pad)
{
    fusec_tensor t = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    t.data = (void *)((uintptr_t)(place + 1) << 44);
    for (int i = rank - 1; i >= 0; i--) {
        t.sizes[i] = sizes[i];
        t.strides[i] = stride;
        stride = stride * sizes[i] + (i == rank - 1 && rank > 1 ? pad : 0) +
                 (i == 1 && rank == 3 && pad == UNEVEN ? pad : 0);
    }
    return t;
}

static fusec_device *device;
static void *const workspace = (void *)((uintptr_t)20 << 44);
static struct CUstream_st *const stream = (struct CUstream_st *)(void *)&told;

static fusec_plan *open_plan(const char *file, const char *axis, int64_t size)
{
    fusec_error error;
    fusec_program *program;
    fusec_plan *plan;
    const fusec_size sizes[] = {{axis, size}};
    need(fusec_program_open(file, NULL, &program, &error), &error);
    need(fusec_plan_create(device, program, NULL, sizes, 1, NULL, &plan, &error), &error);
    fusec_program_destroy(program);
    now = plan->launch;
    return plan;
}

/* What the runtime launches is in `told`; then the launcher has launched. */
static void compare(const char *name, int status, const char *message, const char *expected)
{
    cases++;
    if (status)
        fail_case(name, message);
    else if (strcmp(expected, told)) {
        fail_case(name, expected);
        printf("but it launches\n%s", told);
    }
}

static void launch_by_runtime(const fusec_plan *plan, const fusec_tensor *in,
                              const fusec_tensor *out, const double *scalars, char *expected)
{
    fusec_error error;
    *told = 0;
    need(fusec_plan_launch(plan, in, out, scalars, workspace, stream, &error), &error);
    memcpy(expected, told, sizeof told);
    *told = 0;
}

static char expected[MOST_TEXT];

/* The strides of a tensor, or 0 where it is dense, which a launcher takes for the same. */
static void give_strides(int64_t *strides, const fusec_tensor *t, int64_t pad)
{
    for (int i = 0; i + 1 < t->rank; i++) strides[i] = pad ? t->strides[i] : 0;
}

#define ROWS(N_, B_, S_, pad)                                                                      \
    do {                                                                                           \
        const int64_t B = (B_), S = (S_), N = (N_), all[] = {B, S, N};                             \
        fusec_tensor in[] = {make_tensor(0, FUSEC_BF16, 3, all, pad),                              \
                             make_tensor(1, FUSEC_F32, 2, all, 0),                                 \
                             make_tensor(2, FUSEC_BF16, 1, &all[2], 0)};                           \
        fusec_tensor out[] = {make_tensor(3, FUSEC_BF16, 3, all, 0),                               \
                              make_tensor(4, FUSEC_F32, 2, all, 0),                                \
                              make_tensor(5, FUSEC_F32, 1, &all[2], 0)};                           \
        const double scalars[] = {1e-5, 0.5, 3, 1};                                                \
        launch_by_runtime(plan, in, out, scalars, expected);                                       \
        rows_N##N_##_args args;                                                                    \
        rows_N##N_##_init(&args);                                                                  \
        args.B = B, args.S = S, args.most = 3;                                                     \
        args.x = in[0].data, args.shift = in[1].data, args.weight = in[2].data;                    \
        args.y = out[0].data, args.s = out[1].data, args.dw = out[2].data;                         \
        give_strides(args.x_strides, &in[0], pad);                                                 \
        args.workspace = workspace, args.workspace_bytes = rows_N##N_##_workspace(B, S);           \
        int status = rows_N##N_##_launch(&args, stream);                                           \
        compare("rows_N" #N_, status, rows_N##N_##_error(status), expected);                       \
        const fusec_size rows[] = {{"B", B}, {"S", S}};                                            \
        const size_t needed = fusec_plan_workspace(plan, rows, 2);                                 \
        if (needed > args.workspace_bytes)                                                         \
            fail_case("rows_N" #N_ " asks for too little workspace\n", "");                        \
        if (needed == 0 || B == 0 || S == 0) break;                                                \
        args.workspace_bytes = needed - 1;                                                         \
        if (rows_N##N_##_launch(&args, stream) >= 0)                                               \
            fail_case("rows_N" #N_ " launches with too small a workspace\n", "");                  \
    } while (0)

#define ADALN(C_, B_, T_, pad)                                                                     \
    do {                                                                                           \
        const int64_t B = (B_), T = (T_), C = (C_), all[] = {B, T, C}, few[] = {B, C};             \
        fusec_tensor in[] = {                                                                      \
            make_tensor(0, FUSEC_BF16, 3, all, pad), make_tensor(1, FUSEC_BF16, 3, all, 0),        \
            make_tensor(2, FUSEC_F32, 2, all, 0), make_tensor(3, FUSEC_F32, 2, all, 0),            \
            make_tensor(4, FUSEC_BF16, 2, few, pad)};                                              \
        fusec_tensor out[] = {make_tensor(5, FUSEC_BF16, 3, all, 0),                               \
                              make_tensor(6, FUSEC_BF16, 2, few, 0),                               \
                              make_tensor(7, FUSEC_BF16, 2, few, 0)};                              \
        launch_by_runtime(plan, in, out, NULL, expected);                                          \
        adaln_bwd_C##C_##_args args;                                                               \
        adaln_bwd_C##C_##_init(&args);                                                             \
        args.B = B, args.T = T;                                                                    \
        args.dy = in[0].data, args.x = in[1].data, args.mean = in[2].data;                         \
        args.rstd = in[3].data, args.scale = in[4].data;                                           \
        args.dx = out[0].data, args.dscale = out[1].data, args.dshift = out[2].data;               \
        give_strides(args.dy_strides, &in[0], pad);                                                \
        give_strides(args.scale_strides, &in[4], pad);                                             \
        args.workspace = workspace, args.workspace_bytes = adaln_bwd_C##C_##_workspace(B, T);      \
        int status = adaln_bwd_C##C_##_launch(&args, stream);                                      \
        compare("adaln_bwd_C" #C_, status, adaln_bwd_C##C_##_error(status), expected);             \
    } while (0)

/* Where lines of an image are apart, its columns are not side by side. */
#define IMAGES(W_, B_, length, pad)                                                                \
    do {                                                                                           \
        const int64_t B = (B_) + (length), all[] = {B, 6, 7, W_}, few[] = {6, 7};                  \
        fusec_tensor in[] = {                                                                      \
            make_tensor(0, FUSEC_BF16, 4, all, pad), make_tensor(1, FUSEC_BF16, 3, all + 1, 0),    \
            make_tensor(2, FUSEC_F32, 1, few, 0), make_tensor(3, FUSEC_F32, 1, all, 0),            \
            make_tensor(4, FUSEC_F32, 2, few, 0)};                                                 \
        fusec_tensor out[] = {make_tensor(5, FUSEC_BF16, 4, all, 0),                               \
                              make_tensor(6, FUSEC_F32, 1, all, 0),                                \
                              make_tensor(7, FUSEC_F32, 4, all, 0)};                               \
        launch_by_runtime(plan, in, out, NULL, expected);                                          \
        images_args args;                                                                          \
        images_init(&args);                                                                        \
        args.B = B, args.x = in[0].data, args.a = in[1].data, args.g = in[2].data;                 \
        args.h = in[3].data, args.p = in[4].data;                                                  \
        args.y = out[0].data, args.m = out[1].data, args.s = out[2].data;                          \
        give_strides(args.x_strides, &in[0], pad);                                                 \
        int status = images_launch(&args, stream);                                                 \
        compare("images", status, images_error(status), expected);                                 \
    } while (0)

/* Lines of pixels, B * H, are more than CUDA allows along y where there are 100000. */
#define PIXELS(C_, B_, H_, pad)                                                                    \
    do {                                                                                           \
        const int64_t B = (B_), H = (H_), all[] = {B, C_, H, 40};                                  \
        fusec_tensor in[] = {make_tensor(0, FUSEC_F16, 4, all, pad)};                              \
        fusec_tensor out[] = {make_tensor(1, FUSEC_F16, 4, all, 0)};                               \
        launch_by_runtime(plan, in, out, NULL, expected);                                          \
        pixels_args args;                                                                          \
        pixels_init(&args);                                                                        \
        args.B = B, args.H = H, args.W = 40, args.x = in[0].data, args.y = out[0].data;            \
        give_strides(args.x_strides, &in[0], pad);                                                 \
        int status = pixels_launch(&args, stream);                                                 \
        compare("pixels", status, pixels_error(status), expected);                                 \
    } while (0)

static const int64_t batches[] = {0, 1, 2, 7, 33, 132, 1000};
static const int64_t lengths[] = {0, 1, 3, 16, 257, 4096, 100000};
enum { SIZES = sizeof batches / sizeof *batches };

#define EVERY_SIZE(GRAPH, file, axis, size)                                                        \
    do {                                                                                           \
        fusec_plan *plan = open_plan(file, axis, size);                                            \
        for (int b = 0; b < SIZES; b++)                                                            \
            for (int s = 0; s < SIZES; s++)                                                        \
                for (int pad = 0; pad <= UNEVEN; pad += 8)                                         \
                    GRAPH(size, batches[b], lengths[s], pad);                                      \
        fusec_plan_destroy(plan);                                                                  \
    } while (0)

/* A launcher without kernels for this GPU says which ones it has. */
static void check_refusals(void)
{
    blackwell_args args;
    blackwell_init(&args);
    args.B = args.S = 1;
    cases += 3;
    if (blackwell_launch(&args, stream) >= 0) fail_case("NULL is launched\n", "");
    args.x = args.shift = args.weight = args.y = args.s = args.dw = workspace;
    int status = blackwell_launch(&args, stream);
    if (status >= 0 || !strstr(blackwell_error(status), "sm_100a, sm_120a"))
        fail_case("no kernel fits, and this is said:\n", blackwell_error(status));
    args.B = -1;
    if (blackwell_launch(&args, stream) >= 0 || blackwell_workspace(-1, 1) != SIZE_MAX)
        fail_case("a negative size is launched\n", "");
}

int main(void)
{
    fusec_error error;
    need(fusec_device_open(0, &device, &error), &error);
    EVERY_SIZE(ROWS, "tests/launchers/rows.fuse", "N", 1000);
    EVERY_SIZE(ROWS, "tests/launchers/rows.fuse", "N", 1024);
    EVERY_SIZE(ROWS, "tests/launchers/rows.fuse", "N", 8192);
    EVERY_SIZE(ADALN, "examples/adaln_bwd.fuse", "C", 1000);
    EVERY_SIZE(ADALN, "examples/adaln_bwd.fuse", "C", 1152);
    EVERY_SIZE(ADALN, "examples/adaln_bwd.fuse", "C", 4096);
    EVERY_SIZE(IMAGES, "tests/cases/dense_columns.fuse", "W", 3);
    EVERY_SIZE(PIXELS, "tests/launchers/pixels.fuse", "C", 64);
    if (most_along_y != 65535) fail_case("CTAs along y are not as many as CUDA allows\n", "");
    check_refusals();
    fusec_device_destroy(device);
    printf("-- launchers: %d launches like the runtime's, %d wrong\n", cases - wrong, wrong);
    return wrong != 0;
}
