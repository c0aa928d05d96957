/* device.c: see device.h. */
#include "device.h"

#include "nvrtc.h"
#include "../sim/object.h"
#include "cli/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MESSAGE = 4000 };

/* ---- variants ---- */

static const char *rename_graph(Arena *arena, const char *text, const char *name, const char *other)
{
    const char *head = arena_format(arena, "graph %s", name);
    const char *at = strstr(text, head);
    if (!at) return text;
    return arena_format(arena, "%.*sgraph %s%s", (int)(at - text), text, other, at + strlen(head));
}

enum { FAMILIES = 5, COPY_WARP = 2 };

/* The k-th schedule to try for a seed, 0 to SCHEDULES - 1: each family as it is and with
 * keys; most are refused, as most graphs are of one family. */
static void draw_schedule(uint64_t seed, int k, char *schedule, size_t size)
{
    static const char *const families[] = {"row", "grid-stride", "warp-specialized", "column",
                                           "pointwise"};
    static const int threads[] = {32, 64, 128, 256, 512, 96}, rows[] = {1, 2, 4, 3, 8},
                     stages[] = {3, 1, 4, 2};
    const uint64_t mixed = (seed * SCHEDULES + (uint64_t)k) * 0x9e3779b97f4a7c15u >> 20;
    const char *family = families[k % FAMILIES];
    const int team = threads[mixed % 6], ctas = 1 + (int)(mixed / 30 % 7),
              stage = stages[mixed / 210 % 4], cluster = 2 << mixed / 840 % 3;
    switch (k / FAMILIES) {
    case 0: snprintf(schedule, size, "%s", family); break;
    case 1: snprintf(schedule, size, "%s:threads=%d", family, team); break;
    case 2:
        snprintf(schedule, size, "%s:threads=%d,%s=%d,ctas=%d", family, team,
                 k % FAMILIES == COPY_WARP && mixed / 30 % 2 ? "groups" : "rows",
                 rows[mixed / 6 % 5], ctas);
        break;
    case 3: snprintf(schedule, size, "%s:cluster=%d", family, cluster); break;
    case 4:
        if (mixed / 5040 % 4 == 0)
            snprintf(schedule, size, "%s:reads=2", family);
        else if (mixed / 5040 % 4 == 1)
            snprintf(schedule, size, "%s:cluster=%d,stages=1", family, cluster);
        else if (mixed / 5040 % 4 == 2)
            snprintf(schedule, size, "%s:stages=%d,reuse=1", family, stage);
        else
            snprintf(schedule, size, "%s:stages=%d,ctas=%d", family, stage, ctas);
        break;
    case 5: snprintf(schedule, size, "%s:cluster=%d,threads=%d", family, cluster, team); break;
    default:
        snprintf(schedule, size, "%s:stages=%d,threads=%d,cluster=%d", family, stage, team,
                 1 + (int)(mixed / 2520 % 2));
        break;
    }
}

/* A finding about one variant. */
static bool blame(const Variant *v, Finding *f)
{
    memcpy(f->schedule, v->schedule, sizeof f->schedule);
    return false;
}

/* Compiles the next variant; false where the schedule is refused, which is a finding only
 * when it is `due`. */
static bool add_variant(Checked *checked, const char *schedule, bool due, Variant *v, int index,
                        Finding *f)
{
    const Case *c = checked->origin;
    const char *name =
        arena_format(checked->arena, "p%lluv%d", (unsigned long long)c->number, index);
    *v = (Variant){.checked = checked};
    snprintf(v->schedule, sizeof v->schedule, "%s", schedule ? schedule : "");
    v->compiled =
        compile_text(rename_graph(checked->arena, c->text, c->name, name), schedule, UNTIL_CUDA);
    if (v->compiled.status == COMPILE_OK) return true;
    const bool refused = strstr(v->compiled.diagnostics, "schedule refused: ") != NULL;
    if (!refused || due) {
        found(f, "schedule", "--schedule %s:\n%s", v->schedule, v->compiled.diagnostics);
        blame(v, f);
    }
    compile_free(&v->compiled);
    return false;
}

/* The same but for the variant's number, behind `prefix`. */
static bool is_same_text(const char *a, const char *b, const char *prefix)
{
    const size_t length = strlen(prefix);
    while (*a && *a == *b) {
        const bool named = !strncmp(a, prefix, length) && !strncmp(b, prefix, length);
        a += named ? length : 1;
        b += named ? length : 1;
        if (named) a += strspn(a, "0123456789"), b += strspn(b, "0123456789");
    }
    return *a == *b;
}

/* Several schedules often come to one text; it is kept once. */
static bool is_new(const Variant *variants, int count)
{
    const Checked *checked = variants[count].checked;
    const char *prefix =
        arena_format(checked->arena, "p%lluv", (unsigned long long)checked->origin->number);
    for (int i = 0; i < count; i++)
        if (is_same_text(variants[i].compiled.cuda, variants[count].compiled.cuda, prefix))
            return false;
    return true;
}

/* Keeps the variant if its text is new; false: a finding. */
static bool try_schedule(Checked *checked, const char *schedule, bool due, Variant *variants,
                         int *count, Finding *f)
{
    if (!add_variant(checked, schedule, due, &variants[*count], *count, f)) return !f->kind[0];
    if (is_new(variants, *count))
        ++*count;
    else
        compile_free(&variants[*count].compiled);
    return true;
}

enum { ROTATION = 11 };

bool make_variants(Checked *checked, const Devices *devices, Variant *variants, int *count,
                   Finding *f)
{
    const char *kept = checked->origin->schedule;
    char schedule[64];
    *count = 0;
    f->kind[0] = 0;
    bool good = try_schedule(checked, NULL, true, variants, count, f) &&
                (!kept || try_schedule(checked, kept, false, variants, count, f));
    const uint64_t first = checked->origin->seed * ROTATION;
    for (int k = 0; good && devices->schedules && k < SCHEDULES && *count < devices->texts; k++) {
        draw_schedule(checked->origin->seed, (int)((first + (uint64_t)k) % SCHEDULES), schedule,
                      sizeof schedule);
        good = try_schedule(checked, schedule, false, variants, count, f);
    }
    return good;
}

/* ---- the simulator ---- */

static bool found_fault(const Variant *v, const char *message, Finding *f)
{
    static const char *const kinds[] = {"race",       "out of bounds",      "misaligned",
                                        "divergence", "deadlock",           "other bits",
                                        "shows in",   "nobody has written", "which is an input"};
    const char *kind = "simulator";
    for (size_t i = sizeof kinds / sizeof *kinds; i-- > 0;)
        if (strstr(message, kinds[i])) kind = kinds[i];
    found(f, kind, "schedule '%s': %s", v->schedule, message);
    return blame(v, f);
}

static bool judge_outputs(const Variant *v, const Layout *layout, Finding *f)
{
    const Data *data = &v->checked->data;
    for (int i = 0; i < data->graph->outputs.count; i++) {
        const Output *o = &data->graph->outputs.data[i];
        const void *out = read_output(data, layout, i);
        const Verdict verdict =
            judge(o->dtype, out, data->exact[i], data->bound[i], axes_size(&data->sizes, o->axes));
        if (!verdict.wrong) continue;
        const char *worst = (const char *)out + verdict.worst * dtype_info[o->dtype].bytes;
        const double value = dtype_is_float(o->dtype) ? dtype_load_float(o->dtype, worst)
                                                      : (double)dtype_load_int(o->dtype, worst);
        const double exact = exact_value(data, i, verdict.worst);
        found(f, "wrong",
              "schedule '%s': %s: %lld of %lld elements are wrong, the worst is "
              "element %lld: %.9g for %.9g, bound %g",
              v->schedule, o->name, (long long)verdict.wrong, (long long)verdict.count,
              (long long)verdict.worst, value, exact, (double)data->bound[i][verdict.worst]);
        return blame(v, f);
    }
    return true;
}

static bool compare_layouts(const Variant *v, const Layout *a, const Layout *b, Finding *f)
{
    const Data *data = &v->checked->data;
    for (int i = 0; i < data->graph->outputs.count; i++) {
        const Output *o = &data->graph->outputs.data[i];
        if (!memcmp(read_output(data, a, i), read_output(data, b, i),
                    (size_t)bytes_of(&data->sizes, o->dtype, o->axes)))
            continue;
        found(f, "layout", "schedule '%s': %s has other bits when rows lie elsewhere", v->schedule,
              o->name);
        return blame(v, f);
    }
    return true;
}

static bool simulate_variant(const Variant *v, SimObject *object, Finding *f)
{
    const Data *data = &v->checked->data;
    const uint64_t seed = v->checked->origin->seed;
    char message[MESSAGE] = "";
    Layout dense = make_layout(data, 0), spread = make_layout(data, seed * 2 + 1);
    if (!simulate_loaded(&v->plan, &data->sizes, object, dense.tensors,
                         (const int64_t(*)[MAX_RANK])dense.strides, data->launch_scalars, seed,
                         SEEDS, message, sizeof message))
        return found_fault(v, message, f);
    if (!judge_outputs(v, &dense, f)) return false;
    if (!simulate_loaded(&v->plan, &data->sizes, object, spread.tensors,
                         (const int64_t(*)[MAX_RANK])spread.strides, data->launch_scalars, seed, 1,
                         message, sizeof message))
        return found_fault(v, message, f);
    return compare_layouts(v, &dense, &spread, f);
}

/* A kernel's text behind the comment above it, cut in two at the kernel's name. */
typedef struct {
    const char *name, *head, *tail;
    size_t head_size, tail_size;
} KernelText;

static bool is_same_kernel(const KernelText *a, const KernelText *b)
{
    return a->head_size == b->head_size && a->tail_size == b->tail_size &&
           !memcmp(a->head, b->head, a->head_size) && !memcmp(a->tail, b->tail, a->tail_size);
}

/* Where the comment above a kernel begins; NULL: there is none. */
static const char *find_kernel(Arena *arena, const char *text, const char *name)
{
    const char *found = strstr(text, arena_format(arena, "\n// %s (", name));
    return found ? found + 1 : NULL;
}

static KernelText cut_kernel(Arena *arena, const char *name, const char *begin, const char *end)
{
    const char *head = strstr(begin, "\nextern \"C\" ");
    const char *tail = head ? strstr(head, arena_format(arena, " %s(", name)) : NULL;
    if (!tail || tail > end) return (KernelText){name, begin, end, (size_t)(end - begin), 0};
    tail += 1 + strlen(name);
    return (KernelText){name, head, tail, (size_t)(tail - head) - strlen(name),
                        (size_t)(end - tail)};
}

typedef LIST(KernelText) KernelTexts;

/* Adds a variant's text without the kernels that came before, word for word, under
 * another name: the plan gets that name. Variants of a program share most of their
 * kernels. */
static void add_text(Arena *arena, Text *text, Variant *v, KernelTexts *known)
{
    const LaunchPlan *plan = v->compiled.launch;
    const char *cuda = v->compiled.cuda, *at = cuda;
    LaunchKernel *kernels = NEW_ARRAY(v->compiled.arena, LaunchKernel, plan->kernel_count + 1);
    memcpy(kernels, plan->kernels, sizeof *kernels * (size_t)plan->kernel_count);
    v->plan = *plan;
    v->plan.kernels = kernels;
    const LaunchEntry **entries = NEW_ARRAY(arena, const LaunchEntry *, 2 * plan->kernel_count + 1);
    const int count = list_entries(&v->plan, entries);
    for (int k = 0; k < count; k++) {
        const char *name = entries[k]->name;
        const char *begin = find_kernel(arena, cuda, name), *end = NULL;
        if (!begin || begin < at) {
            *list_push(arena, known) = (KernelText){.name = name};
            continue;
        }
        text_put(text, at, (size_t)(begin - at));
        if (k + 1 < count) end = find_kernel(arena, begin, entries[k + 1]->name);
        at = end ? end : begin + strlen(begin);
        const KernelText kernel = cut_kernel(arena, name, begin, at);
        int same = 0;
        while (same < known->count && !is_same_kernel(&known->data[same], &kernel)) same++;
        if (same < known->count) {
            ((LaunchEntry *)entries[k])->name = known->data[same].name; /* of `kernels` */
            continue;
        }
        *list_push(arena, known) = kernel;
        text_put(text, begin, (size_t)(at - begin));
    }
    text_print(text, "%s\n", at);
}

static SimObject *load_variants(Variant *variants, int count, char *message)
{
    Arena *arena = arena_new();
    Text *text = text_new(arena);
    KernelTexts known = {0};
    for (int i = 0; i < count; i++) add_text(arena, text, &variants[i], &known);
    const char **names = NEW_ARRAY(arena, const char *, known.count + 1);
    for (int i = 0; i < known.count; i++) names[i] = known.data[i].name;
    SimObject *object = object_load(text_string(text), names, known.count, message, MESSAGE);
    arena_free(arena);
    return object;
}

/* One of them does not compile: which? */
static int find_uncompilable(Variant *variants, int count, char *message)
{
    for (int i = 0; i < count && count > 1; i++) {
        SimObject *object = load_variants(&variants[i], 1, message);
        object_free(object);
        if (!object) return i;
    }
    return 0;
}

bool simulate_variants(Variant *variants, int count, int *at_fault, Finding *f)
{
    char message[MESSAGE] = "";
    SimObject *object = load_variants(variants, count, message);
    bool good = true;
    for (*at_fault = 0; object && good; ++*at_fault) {
        if (*at_fault == count) break;
        good = simulate_variant(&variants[*at_fault], object, f);
        if (!good) break;
    }
    if (object) {
        object_free(object);
        return good;
    }
    *at_fault = find_uncompilable(variants, count, message);
    const Variant *v = &variants[*at_fault];
    found(f, "host compiler", "schedule '%s': %s", v->schedule, message);
    return blame(v, f);
}

/* ---- NVRTC ---- */

bool compile_variants(Variant *variants, int count, int *at_fault, Finding *f)
{
    Nvrtc nvrtc;
    fusec_error error;
    *at_fault = 0;
    if (nvrtc_open(&nvrtc, &error)) return found(f, "no NVRTC", "%s", error.message);
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        Code code = {0};
        *at_fault = i;
        good = !nvrtc_compile(&nvrtc, variants[i].compiled.cuda, "sm_90a", NULL, &code, &error);
        if (!good) {
            found(f, "NVRTC", "schedule '%s': %.900s\n%.2000s", variants[i].schedule, error.message,
                  code.log ? code.log : "");
            blame(&variants[i], f);
        }
        code_free(&code);
    }
    nvrtc_close(&nvrtc);
    return good;
}

bool check_devices(Checked *checked, const Devices *devices, Finding *f)
{
    Variant variants[MOST_VARIANTS];
    int count, at_fault;
    bool good = make_variants(checked, devices, variants, &count, f);
    good = good && (!devices->nvrtc || compile_variants(variants, count, &at_fault, f));
    good = good && (!devices->simulate || simulate_variants(variants, count, &at_fault, f));
    for (int i = 0; i < count; i++) compile_free(&variants[i].compiled);
    return good;
}
