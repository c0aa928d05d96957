/* device.c: see device.h. */
#include "device.h"

#include "nvrtc.h"
#include "../sim/object.h"
#include "simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MESSAGE = 4000 };

/* ---- variants
 * -------------------------------------------------------------------------------- */

static const char *rename_graph(Arena *arena, const char *text, const char *name,
                                const char *other)
{
    const char *head = arena_format(arena, "graph %s", name);
    const char *at = strstr(text, head);
    if (!at) return text;
    return arena_format(arena, "%.*sgraph %s%s", (int)(at - text), text, other,
                        at + strlen(head));
}

/* The k-th schedule to try for a seed; false: that was the last. */
static bool draw_schedule(uint64_t seed, int k, char *schedule, size_t size)
{
    static const char *const families[] = {"row", "grid-stride", "column", "pointwise"};
    static const int threads[] = {32, 64, 128, 256, 512, 96}, rows[] = {1, 2, 4, 3, 8};
    const uint64_t mixed = (seed * 8 + (uint64_t)k) * 0x9e3779b97f4a7c15u >> 20;
    const char *family = families[k % 4];
    if (k >= 12) return false;
    switch (k / 4) {
    case 0: snprintf(schedule, size, "%s", family); break;
    case 1: snprintf(schedule, size, "%s:threads=%d", family, threads[mixed % 6]); break;
    default:
        snprintf(schedule, size, "%s:threads=%d,rows=%d,ctas=%d", family,
                 threads[mixed % 6], rows[mixed / 6 % 5], 1 + (int)(mixed / 30 % 7));
        break;
    }
    return true;
}

static bool add_variant(Checked *checked, const char *schedule, Variant *v, int index,
                        Finding *f)
{
    const Case *c = checked->origin;
    const char *name =
        arena_format(checked->arena, "p%lluv%d", (unsigned long long)c->seed, index);
    *v = (Variant){.checked = checked};
    snprintf(v->schedule, sizeof v->schedule, "%s", schedule ? schedule : "");
    v->compiled = compile_text(rename_graph(checked->arena, c->text, c->name, name),
                               schedule, UNTIL_CUDA);
    if (v->compiled.status == COMPILE_OK) return true;
    const bool refused = strstr(v->compiled.diagnostics, "schedule refused: ") != NULL;
    if (!refused || !schedule)
        found(f, "schedule", "--schedule %s:\n%s", v->schedule, v->compiled.diagnostics);
    compile_free(&v->compiled);
    return false;
}

/* The same but for the variant's number, the digit behind `v` in its name. */
static bool is_same_text(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && (a[i] == b[i] || (i > 0 && a[i - 1] == 'v' && b[i]))) i++;
    return !a[i] && !b[i];
}

/* Several schedules often come to one text; it is kept once. */
static bool is_new(const Variant *variants, int count)
{
    for (int i = 0; i < count; i++)
        if (is_same_text(variants[i].compiled.cuda, variants[count].compiled.cuda))
            return false;
    return true;
}

bool make_variants(Checked *checked, bool schedules, Variant *variants, int *count,
                   Finding *f)
{
    char schedule[64];
    *count = 0;
    f->kind[0] = 0;
    if (!add_variant(checked, NULL, &variants[0], 0, f)) return false;
    *count = 1;
    for (int k = 0; schedules && *count < MOST_VARIANTS; k++) {
        if (!draw_schedule(checked->origin->seed, k, schedule, sizeof schedule)) break;
        const bool good = add_variant(checked, schedule, &variants[*count], *count, f);
        if (!good && f->kind[0]) return false;
        if (good && is_new(variants, *count))
            ++*count;
        else if (good)
            compile_free(&variants[*count].compiled);
    }
    return true;
}

/* ---- the simulator
 * --------------------------------------------------------------------------- */

static bool found_fault(const Variant *v, const char *message, Finding *f)
{
    static const char *const kinds[] = {
        "race",       "out of bounds",      "misaligned",
        "divergence", "deadlock",           "other bits",
        "shows in",   "nobody has written", "which is an input"};
    const char *kind = "simulator";
    for (size_t i = sizeof kinds / sizeof *kinds; i-- > 0;)
        if (strstr(message, kinds[i])) kind = kinds[i];
    return found(f, kind, "schedule '%s': %s", v->schedule, message);
}

static bool judge_outputs(const Variant *v, const Layout *layout, Finding *f)
{
    const Data *data = &v->checked->data;
    for (int i = 0; i < data->graph->outputs.count; i++) {
        const Output *o = &data->graph->outputs.data[i];
        const void *out = read_output(data, layout, i);
        const Verdict verdict =
            judge(o->dtype, out, data->exact[i], data->bound[i],
                  axes_size(&data->sizes, o->axes), data->discontinuous[i]);
        if (!verdict.wrong || verdict.discontinuous) continue;
        const char *worst =
            (const char *)out + verdict.worst * dtype_info[o->dtype].bytes;
        const double value = dtype_is_float(o->dtype)
                                 ? dtype_load_float(o->dtype, worst)
                                 : (double)dtype_load_int(o->dtype, worst);
        return found(f, "wrong",
                     "schedule '%s': %s: %lld of %lld elements are wrong, the worst is "
                     "element %lld: %.9g for %.9g, bound %g",
                     v->schedule, o->name, (long long)verdict.wrong,
                     (long long)verdict.count, (long long)verdict.worst, value,
                     data->exact[i][verdict.worst],
                     (double)data->bound[i][verdict.worst]);
    }
    return true;
}

static bool compare_layouts(const Variant *v, const Layout *a, const Layout *b,
                            Finding *f)
{
    const Data *data = &v->checked->data;
    for (int i = 0; i < data->graph->outputs.count; i++) {
        const Output *o = &data->graph->outputs.data[i];
        if (memcmp(read_output(data, a, i), read_output(data, b, i),
                   (size_t)bytes_of(&data->sizes, o->dtype, o->axes)))
            return found(f, "layout",
                         "schedule '%s': %s has other bits when rows lie elsewhere",
                         v->schedule, o->name);
    }
    return true;
}

static bool simulate_variant(const Variant *v, SimObject *object, Finding *f)
{
    const Data *data = &v->checked->data;
    const uint64_t seed = v->checked->origin->seed;
    char message[MESSAGE] = "";
    Layout dense = make_layout(data, 0), spread = make_layout(data, seed * 2 + 1);
    if (!simulate_loaded(v->compiled.launch, &data->sizes, object, dense.tensors,
                         (const int64_t(*)[MAX_RANK])dense.strides, data->launch_scalars,
                         seed, SEEDS, message, sizeof message))
        return found_fault(v, message, f);
    if (!judge_outputs(v, &dense, f)) return false;
    if (!simulate_loaded(v->compiled.launch, &data->sizes, object, spread.tensors,
                         (const int64_t(*)[MAX_RANK])spread.strides, data->launch_scalars,
                         seed, 1, message, sizeof message))
        return found_fault(v, message, f);
    return compare_layouts(v, &dense, &spread, f);
}

static SimObject *load_variants(const Variant *variants, int count, char *message)
{
    Arena *arena = arena_new();
    Text *text = text_new(arena);
    LIST(const char *) names = {0};
    for (int i = 0; i < count; i++) {
        const LaunchPlan *plan = variants[i].compiled.launch;
        text_print(text, "%s\n", variants[i].compiled.cuda);
        for (int k = 0; k < plan->kernel_count; k++)
            *list_push(arena, &names) = plan->kernels[k].name;
    }
    SimObject *object =
        object_load(text_string(text), names.data, names.count, message, MESSAGE);
    arena_free(arena);
    return object;
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
    /* one does not compile: which? */
    for (*at_fault = 0; count > 1 && *at_fault < count; ++*at_fault) {
        int none;
        if (!simulate_variants(&variants[*at_fault], 1, &none, f)) return false;
    }
    *at_fault = 0;
    return found(f, "host compiler", "schedule '%s': %s", variants[0].schedule, message);
}

/* ---- NVRTC
 * ----------------------------------------------------------------------------------- */

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
        good = !nvrtc_compile(&nvrtc, variants[i].compiled.cuda, "sm_90a", NULL, &code,
                              &error);
        if (!good)
            found(f, "NVRTC", "schedule '%s': %.900s\n%.2000s", variants[i].schedule,
                  error.message, code.log ? code.log : "");
        code_free(&code);
    }
    nvrtc_close(&nvrtc);
    return good;
}

bool check_devices(Checked *checked, const Devices *devices, Finding *f)
{
    Variant variants[MOST_VARIANTS];
    int count, at_fault;
    bool good = make_variants(checked, devices->schedules, variants, &count, f);
    good = good && (!devices->nvrtc || compile_variants(variants, count, &at_fault, f));
    good =
        good && (!devices->simulate || simulate_variants(variants, count, &at_fault, f));
    for (int i = 0; i < count; i++) compile_free(&variants[i].compiled);
    return good;
}
