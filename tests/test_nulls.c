/* test_nulls.c: every function that libfusec exports, with each of its pointer arguments NULL in
 * turn and with all of them: the answer that fusec.h promises, and no crash. */
#include "fusec.h"
#include "suites.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTERS = 8 };

typedef enum { STATUS, SIZE, NUMBER, TEXT, POINTER, NOTHING } Kind;

typedef struct {
    fusec_status status;
    size_t size;
    double number;
    const void *pointer;
} Answer;

typedef struct {
    const char *name;
    Kind kind;
    const char *pointers;
    Answer (*call)(void **a);
} Entry;

static const char graph_text[] =
    "graph g[M = 2](x : f32[M], s : f32 = 1) -> (y : f32[M]) { y = x * s }";
static fusec_error error;
static fusec_device *device, *new_device;
static fusec_program *program, *new_program;
static fusec_plan *plan, *new_plan;
static fusec_event *event, *new_event;
static void *place;
static char text_place[4096], memory[64], more_memory[64];
static float x[2], y[2];
static fusec_tensor input = {
    .data = x, .dtype = FUSEC_F32, .rank = 1, .sizes = {2}, .strides = {1}};
static fusec_tensor output = {
    .data = y, .dtype = FUSEC_F32, .rank = 1, .sizes = {2}, .strides = {1}};
static fusec_size rows = {"M", 2};
static union {
    size_t struct_size;
    fusec_device_info device;
    fusec_kernel_info kernel;
    fusec_tensor_info tensor;
    fusec_scalar_info scalar;
    fusec_axis_info axis;
} info;

static fusec_imported imported;

static int stop_at_once(void *data, const fusec_cache_entry *entry)
{
    (void)data;
    (void)entry;
    return 1;
}

#define CALL_STATUS(call)                                                                          \
    {                                                                                              \
        .status = call                                                                             \
    }
#define CALL_SIZE(call)                                                                            \
    {                                                                                              \
        .size = call                                                                               \
    }
#define CALL_NUMBER(call)                                                                          \
    {                                                                                              \
        .number = call                                                                             \
    }
#define CALL_TEXT(call)                                                                            \
    {                                                                                              \
        .pointer = call                                                                            \
    }
#define CALL_POINTER(call)                                                                         \
    {                                                                                              \
        .pointer = call                                                                            \
    }
#define CALL_NOTHING(call)                                                                         \
    {                                                                                              \
        .size = (call, 0)                                                                          \
    }
#define ENTRY(kind, name, pointers, arguments)                                                     \
    static Answer call_##name(void **a)                                                            \
    {                                                                                              \
        (void)a;                                                                                   \
        return (Answer)CALL_##kind(fusec_##name arguments);                                        \
    }
#include "entries.def"
#undef ENTRY

static const Entry entries[] = {
#define ENTRY(kind, name, pointers, arguments) {"fusec_" #name, kind, pointers, call_##name},
#include "entries.def"
#undef ENTRY
};
enum { ENTRIES = sizeof entries / sizeof *entries };

/* The arguments of entries.def by their letters. */
static void *argument(char letter)
{
    switch (letter) {
    case 'd': return device;
    case 'p': return program;
    case 'l': return plan;
    case 'v': return event;
    case 'i': return &input;
    case 'u': return &output;
    case 'z': return &rows;
    case 't': return (void *)graph_text;
    case 'x': return (void *)"/nowhere/file";
    case 'm': return memory;
    case 'M': return more_memory;
    case 'I': return &info;
    case 'A': return &imported;
    case 'e': return &error;
    case 'D': return &new_device;
    case 'P': return &new_program;
    case 'L': return &new_plan;
    case 'V': return &new_event;
    case 'o': return &place;
    case 'n': return NULL;
    }
    ck_abort_msg("'%c' is no letter of entries.def", letter);
    return NULL;
}

/* Bit i: argument i is needed. */
static int read_pointers(const char *letters, void *a[MOST_POINTERS], int *needed)
{
    int count = 0;
    *needed = 0;
    for (; *letters; letters++) {
        if (*letters == '!')
            *needed |= 1 << count;
        else
            a[count++] = argument(*letters);
    }
    return count;
}

static void remove_what_was_made(void)
{
    fusec_event_destroy(new_event);
    fusec_plan_destroy(new_plan);
    fusec_program_destroy(new_program);
    fusec_device_destroy(new_device);
    new_event = NULL;
    new_plan = NULL;
    new_program = NULL;
    new_device = NULL;
}

static bool is_refused(const Entry *e, const Answer *answer)
{
    switch (e->kind) {
    case STATUS: return answer->status == FUSEC_INVALID_ARGUMENT;
    case SIZE: return answer->size == 0;
    case NUMBER: return !(answer->number < 0 || answer->number > 0);
    case TEXT: return answer->pointer && !*(const char *)answer->pointer;
    case POINTER: return answer->pointer == NULL;
    case NOTHING: return true;
    }
    return false;
}

/* Calls with the arguments of `nulls` NULL. */
static void call_without(const Entry *e, int nulls)
{
    void *a[MOST_POINTERS] = {NULL};
    int needed;
    const int count = read_pointers(e->pointers, a, &needed);
    info.struct_size = sizeof info;
    error = (fusec_error){.status = FUSEC_OK};
    for (int i = 0; i < count; i++)
        if (nulls >> i & 1) a[i] = NULL;
    const Answer answer = e->call(a);
    if (nulls & needed)
        ck_assert_msg(is_refused(e, &answer), "%s without arguments %#x", e->name, (unsigned)nulls);
    const bool told = count && a[count - 1] == &error && e->kind == STATUS;
    ck_assert_msg(!told || error.status == answer.status, "%s: the error is of another status",
                  e->name);
    remove_what_was_made();
}

START_TEST(null_is_answered)
{
    const Entry *e = &entries[_i];
    void *a[MOST_POINTERS];
    int needed;
    const int count = read_pointers(e->pointers, a, &needed);
    for (int i = 0; i < count; i++) call_without(e, 1 << i);
    call_without(e, (1 << count) - 1);
    call_without(e, 0);
}
END_TEST

static bool is_entry(const char *name)
{
    for (int i = 0; i < ENTRIES; i++)
        if (strcmp(entries[i].name, name) == 0) return true;
    return false;
}

START_TEST(every_export_is_tried)
{
    char name[256];
    int count = 0;
    FILE *names =
        popen("nm -D --defined-only build/libfusec.so | sed -n 's/@.*//; s/.* T //p'", "r");
    ck_assert_ptr_nonnull(names);
    while (fscanf(names, "%255s", name) == 1) {
        ck_assert_msg(is_entry(name), "%s is exported and not in tests/entries.def", name);
        count++;
    }
    ck_assert_int_eq(pclose(names), 0);
    ck_assert_msg(count == ENTRIES, "build/libfusec.so exports %d functions of %d", count, ENTRIES);
}
END_TEST

/* ---- structs that grow ---- */

static fusec_status ask(int which, void *about)
{
    switch (which) {
    case 0: return fusec_plan_tensor(plan, 0, about);
    case 1: return fusec_plan_axis(plan, 0, about);
    case 2: return fusec_plan_kernel(plan, 0, about);
    case 3: return fusec_device_get_info(device, about);
    case 4: return fusec_plan_scalar(plan, 0, about);
    }
    return FUSEC_INVALID_ARGUMENT;
}

/* A program compiled with a header that has only the first `known` bytes of a struct. */
START_TEST(no_more_than_the_size_is_written)
{
    enum { SENTINEL = 0x5a };
    unsigned char about[sizeof info + 64];
    for (size_t known = 0; known < sizeof about; known++) {
        memset(about, SENTINEL, sizeof about);
        memcpy(about, &known, sizeof known);
        const bool good = known > sizeof known;
        ck_assert_int_eq(ask(_i, about), good ? FUSEC_OK : FUSEC_INVALID_ARGUMENT);
        for (size_t i = good ? known : sizeof known; i < sizeof about; i++)
            ck_assert_msg(about[i] == SENTINEL, "byte %zu of %zu is written", i, known);
        ck_assert(memcmp(about, &known, sizeof known) == 0);
    }
}
END_TEST

static void open_all(void)
{
    setenv("FUSEC_NVRTC", "/dev/null", 1);
    setenv("FUSEC_CACHE_DIR", "/nowhere/cache", 1);
    ck_assert_int_eq(fusec_device_cpu(&device, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_program_parse(graph_text, strlen(graph_text), NULL, &program, NULL),
                     FUSEC_OK);
    ck_assert_int_eq(fusec_plan_create(device, program, NULL, NULL, 0, NULL, &plan, NULL),
                     FUSEC_OK);
    ck_assert_int_eq(fusec_event_create(device, &event, NULL), FUSEC_OK);
    ck_assert_int_eq(fusec_event_record(event, NULL, NULL), FUSEC_OK);
}

static void close_all(void)
{
    fusec_event_destroy(event);
    fusec_plan_destroy(plan);
    fusec_program_destroy(program);
    fusec_device_destroy(device);
}

Suite *nulls_suite(void)
{
    Suite *suite = suite_create("nulls");
    TCase *tests = tcase_create("nulls");
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_loop_test(tests, null_is_answered, 0, ENTRIES);
    tcase_add_loop_test(tests, no_more_than_the_size_is_written, 0, 5);
    tcase_add_test(tests, every_export_is_tried);
    suite_add_tcase(suite, tests);
    return suite;
}
