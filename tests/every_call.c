/* every_call.c: calls of the C API: programs compiled and run on the CPU device, and the entries that
 * compute or print little; all that they give is recorded. */
#include "every_call.h"

#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { POOL = 1 << 17, ROWS = 3, MOST_TENSORS = 16, MOST_PROGRAMS = 16 };

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

/* ---- the state of the process ---- */

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
bool watches;

void check_state(const char *what)
{
    const State after = read_state();
    ck_assert_msg(!watches || memcmp(&before, &after, sizeof after) == 0,
                  "%s leaves the process changed", what);
}

/* ---- calls ---- */

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
    fusec_program *program, *backward;
    fusec_plan *plan;
    DO(fusec_program_parse(input->text, input->length, "p.fuse", &program, error));
    DO(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, error));
    put(r, fusec_plan_text(plan), strlen(fusec_plan_text(plan)));
    launch(r, plan);
    /* Some have no tensor of floats. */
    fusec_error refusal;
    (void)fusec_program_grad(program, NULL, NULL, &backward, &refusal);
    check_state("grad");
    const char *text = backward ? fusec_program_text(backward) : refusal.message;
    put(r, text, strlen(text));
    fusec_program_destroy(backward);
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

Record do_all(void)
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

bool is_expected(Record r)
{
    const bool same = r.length == expected.length && memcmp(r.bytes, expected.bytes, r.length) == 0;
    free(r.bytes);
    return same;
}

/* ---- programs and inputs ---- */

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

void expect_calls(void)
{
    program_count = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) read_program(files[i]);
    programs[program_count++] = (Input){strdup(constants), sizeof constants - 1};
    fill_pools();
    watches = true;
    expected = do_all();
}

void forget_calls(void)
{
    for (int i = 0; i < program_count; i++) free(programs[i].text);
    free(expected.bytes);
}
