/* batch.c: the tensors of one run: host memory, device memory, layouts, launch. See session.h. */
#include "cli/device.h"
#include "cli/session.h"
#include "cli/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sizes of a tensor's axes in order, its rank and elements; false if that overflows. */
static bool describe(const Graph *g, const Sizes *sizes, DType dtype, AxisSet axes, Buffer *buffer)
{
    fusec_tensor *t = &buffer->tensor;
    t->dtype = (fusec_dtype)dtype;
    for (int i = 0; i < g->axis_count; i++)
        if (axes >> i & 1) t->sizes[t->rank++] = sizes->of[i];
    const int64_t count = axes_size(sizes, axes);
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->strides[i] = stride;
        /* Of a tensor without elements the other sizes may be anything. */
        if (count > 0 && __builtin_mul_overflow(stride, t->sizes[i], &stride)) return false;
    }
    buffer->count = count;
    return !__builtin_mul_overflow((size_t)count, (size_t)dtype_info[dtype].bytes, &buffer->bytes);
}

static bool is_scalar(const Session *s, int param)
{
    return s->graph->params.data[param].scalar;
}

static bool describe_all(const Session *s, Batch *b, size_t *total)
{
    const Graph *g = s->graph;
    bool fits = true;
    for (int i = 0; i < g->params.count && fits; i++) {
        const Param *p = &g->params.data[i];
        fits = describe(g, &b->sizes, p->dtype, p->scalar ? 0 : p->axes, &b->inputs[i]) &&
               !__builtin_add_overflow(*total, b->inputs[i].bytes, total);
    }
    for (int i = 0; i < g->outputs.count && fits; i++) {
        const Output *o = &g->outputs.data[i];
        fits = describe(g, &b->sizes, o->dtype, o->axes, &b->outputs[i]) &&
               !__builtin_add_overflow(*total, b->outputs[i].bytes, total);
    }
    return fits && *total < SIZE_MAX / 4;
}

static int complain_memory(size_t bytes)
{
    complain(NULL, "out of memory: the tensors need %.1f GB", (double)bytes * 1e-9);
    return EXIT_MACHINE;
}

int open_batch(const Session *s, const Sizes *sizes, Batch *b)
{
    const Graph *g = s->graph;
    size_t total = 0;
    *b = (Batch){.sizes = *sizes,
                 .inputs = NEW_ARRAY(s->arena, Buffer, g->params.count + 1),
                 .outputs = NEW_ARRAY(s->arena, Buffer, g->outputs.count + 1),
                 .scalars = NEW_ARRAY(s->arena, double, g->params.count + 1),
                 .in = NEW_ARRAY(s->arena, fusec_tensor, g->params.count + 1),
                 .out = NEW_ARRAY(s->arena, fusec_tensor, g->outputs.count + 1),
                 .values = NEW_ARRAY(s->arena, double, g->params.count + 1)};
    if (!describe_all(s, b, &total)) {
        complain(NULL, "the tensors are larger than any memory");
        return EXIT_MACHINE;
    }
    size_t physical = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    if (total > physical) return complain_memory(total);
    bool got = true;
    for (int i = 0; i < g->params.count; i++)
        got &= (b->inputs[i].data = calloc(1, b->inputs[i].bytes + 16)) != NULL;
    for (int i = 0; i < g->outputs.count; i++)
        if (s->wanted[i]) got &= (b->outputs[i].data = calloc(1, b->outputs[i].bytes + 16)) != NULL;
    return got ? EXIT_DONE : complain_memory(total);
}

/* ---- scalars and random inputs ---- */

static double load_scalar(DType dtype, const void *data)
{
    return dtype_is_float(dtype) ? dtype_load_float(dtype, data)
                                 : (double)dtype_load_int(dtype, data);
}

/* Scalars are passed as f64, which does not hold all integers beyond 2^53. */
static int complain_inexact(const char *name, int64_t value, int status)
{
    complain("scalars are passed as f64",
             "scalar %s cannot be %lld: beyond 2^53 not all integers are exact", name,
             (long long)value);
    return status;
}

static bool is_inexact(int64_t value)
{
    return int_from_double((double)value) != value;
}

static int find_scalar(const Session *s, const char *name)
{
    for (int i = 0; i < s->graph->params.count; i++)
        if (is_scalar(s, i) && !strcmp(s->graph->params.data[i].name, name)) return i;
    return -1;
}

static int complain_setting(const Session *s, const char *name)
{
    const Graph *g = s->graph;
    const char **names = NEW_ARRAY(s->arena, const char *, g->params.count + 1);
    int count = 0;
    bool tensor = false;
    for (int i = 0; i < g->params.count; i++) {
        if (is_scalar(s, i))
            names[count++] = g->params.data[i].name;
        else
            tensor |= !strcmp(g->params.data[i].name, name);
    }
    complain(tensor ? "it is a tensor: give it by --in FILE.safetensors"
                    : hint_name(s->arena, name, names, count),
             "graph %s has no scalar %s to set", g->name, name);
    return EXIT_USAGE;
}

int settle_scalars(const Session *s, Batch *b, const bool *given, bool random)
{
    const Graph *g = s->graph;
    const Options *o = s->options;
    bool *known = NEW_ARRAY(s->arena, bool, g->params.count + 1),
         *drawn = NEW_ARRAY(s->arena, bool, g->params.count + 1);
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        if (!p->scalar) continue;
        known[i] = p->has_default || random || (given && given[i]);
        if (given && given[i]) {
            const void *data = b->inputs[i].data;
            if (p->dtype == DTYPE_I64 && is_inexact(dtype_load_int(p->dtype, data)))
                return complain_inexact(p->name, dtype_load_int(p->dtype, data), EXIT_WRONG);
            b->scalars[i] = load_scalar(p->dtype, data);
        } else if (p->has_default) {
            b->scalars[i] = p->default_value;
        } else if (random) {
            random_input(g, i, &b->sizes, o->seed, b->inputs[i].data);
            b->scalars[i] = load_scalar(p->dtype, b->inputs[i].data);
            drawn[i] = true;
        }
    }
    for (int i = 0; i < o->settings.count; i++) {
        int param = find_scalar(s, o->settings.data[i].name);
        if (param < 0) return complain_setting(s, o->settings.data[i].name);
        DType dtype = g->params.data[param].dtype;
        known[param] = true;
        drawn[param] = false;
        double value = o->settings.data[i].value;
        int64_t whole = strtoll(o->settings.data[i].text, NULL, 10);
        if (dtype == DTYPE_I64 && is_inexact(whole))
            return complain_inexact(o->settings.data[i].name, whole, EXIT_USAGE);
        if (!dtype_takes(dtype, value)) {
            complain(NULL, "%g is not a value for %s, a scalar of %s", value,
                     o->settings.data[i].name, dtype_info[dtype].fuse);
            return EXIT_USAGE;
        }
        b->scalars[param] = dtype_is_float(dtype) ? dtype_round(dtype, value) : value;
        if (dtype_is_float(dtype) && dtype_distorts(dtype, value, b->scalars[param]))
            remark("scalar %s: %s cannot hold %g: it becomes %g", o->settings.data[i].name,
                   dtype_info[dtype].fuse, value, b->scalars[param]);
    }
    for (int i = 0; i < g->params.count; i++) {
        const char *name = g->params.data[i].name;
        if (drawn[i])
            remark("scalar %s has no default: %g, at random (--set %s=... sets it)", name,
                   b->scalars[i], name);
        if (!is_scalar(s, i) || known[i]) continue;
        complain(arena_format(s->arena, "--set %s=1", name), "scalar %s has no value", name);
        return EXIT_WRONG;
    }
    return EXIT_DONE;
}

void fill_random(const Session *s, Batch *b)
{
    Progress progress;
    progress_begin(&progress, "random inputs");
    int count = s->graph->params.count;
    for (int i = 0; i < count; i++) {
        if (!is_scalar(s, i))
            random_input(s->graph, i, &b->sizes, s->options->seed, b->inputs[i].data);
        progress_step(&progress, (double)(i + 1) / count);
    }
    progress_end(&progress);
}

int open_repeated(const Session *s, const Batch *small, const Sizes *sizes, Batch *full)
{
    int status = open_batch(s, sizes, full);
    for (int i = 0; i < s->graph->params.count && status == EXIT_DONE; i++) {
        const Buffer *from = &small->inputs[i];
        Buffer *to = &full->inputs[i];
        for (size_t at = 0; from->bytes && at < to->bytes; at += from->bytes) {
            size_t bytes = to->bytes - at < from->bytes ? to->bytes - at : from->bytes;
            memcpy((char *)to->data + at, from->data, bytes);
        }
        full->scalars[i] = small->scalars[i];
    }
    return status == EXIT_DONE ? upload_batch(s, full) : status;
}

/* ---- layouts ---- */

static const Layout *find_layout(const Layout *layouts, int count, const char *name)
{
    const Layout *found = NULL;
    for (int i = 0; i < count; i++)
        if (!strcmp(layouts[i].name, name)) found = &layouts[i];
    return found;
}

/* Finds the axes of the tensor that a layout names; false: there is none. */
static bool find_laid_out(const Session *s, const char *name, AxisSet *axes)
{
    const Graph *g = s->graph;
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        *axes = p->axes;
        if (!p->scalar && !strcmp(p->name, name)) return true;
    }
    for (int i = 0; i < g->outputs.count; i++) {
        *axes = g->outputs.data[i].axes;
        if (!strcmp(g->outputs.data[i].name, name)) return true;
    }
    return false;
}

static int check_layout(const Session *s, const Layout *layout, bool stride)
{
    AxisSet axes;
    if (!find_laid_out(s, layout->name, &axes)) {
        complain(NULL, "graph %s has no input or output tensor %s to lay out", s->graph->name,
                 layout->name);
        return EXIT_USAGE;
    }
    if (!stride || layout->count == axes_count(axes)) return EXIT_DONE;
    complain(NULL, "tensor %s has %d axes, --stride gives %d", layout->name, axes_count(axes),
             layout->count);
    return EXIT_USAGE;
}

static int check_layouts(const Session *s)
{
    const Options *o = s->options;
    int status = EXIT_DONE;
    for (int i = 0; i < o->strides.count && status == EXIT_DONE; i++)
        status = check_layout(s, &o->strides.data[i], true);
    for (int i = 0; i < o->offsets.count && status == EXIT_DONE; i++)
        status = check_layout(s, &o->offsets.data[i], false);
    return status;
}

/* The place of dense element `index` in a strided tensor. */
static int64_t strided_place(const fusec_tensor *t, int64_t index)
{
    int64_t place = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        place += index % t->sizes[i] * t->strides[i];
        index /= t->sizes[i];
    }
    return place;
}

/* Sets a tensor's place in its memory, and the size of that, as --stride and --offset say. */
static int lay_out(const Session *s, const char *name, Buffer *x)
{
    const Options *o = s->options;
    const Layout *stride = find_layout(o->strides.data, o->strides.count, name);
    const Layout *offset = find_layout(o->offsets.data, o->offsets.count, name);
    x->room = x->bytes;
    x->laid_out = stride || offset;
    if (!x->laid_out) return EXIT_DONE;
    size_t element = fusec_dtype_bytes(x->tensor.dtype);
    int64_t first = offset ? offset->values[0] : 0, last = first;
    bool fits = true;
    for (int i = 0; i < x->tensor.rank; i++) {
        int64_t extent, steps = x->tensor.sizes[i] > 0 ? x->tensor.sizes[i] - 1 : 0;
        if (stride) x->tensor.strides[i] = stride->values[i];
        fits = fits && !__builtin_mul_overflow(steps, x->tensor.strides[i], &extent) &&
               !__builtin_add_overflow(last, extent, &last);
    }
    fits = fits && last < INT64_MAX / 16 &&
           !__builtin_mul_overflow((size_t)last + 1, element, &x->room);
    x->before = (size_t)first * element;
    int fastest = x->tensor.rank - 1;
    if (fastest >= 0 && x->tensor.sizes[fastest] > 1 && x->tensor.strides[fastest] != 1) {
        complain(NULL, "tensor %s: the stride of the last axis must be 1", name);
        return EXIT_USAGE;
    }
    if (!fits) complain(NULL, "the strides reach beyond the address space");
    return fits ? EXIT_DONE : EXIT_MACHINE;
}

/* Copies the elements of the dense host memory to their places in an image of the device's. */
static void spread(const Buffer *x, char *image)
{
    size_t element = fusec_dtype_bytes(x->tensor.dtype);
    for (int64_t i = 0; i < x->count; i++)
        memcpy(image + x->before + (size_t)strided_place(&x->tensor, i) * element,
               (char *)x->data + (size_t)i * element, element);
}

/* The other direction. */
static void gather(const Buffer *x, const char *image)
{
    size_t element = fusec_dtype_bytes(x->tensor.dtype);
    for (int64_t i = 0; i < x->count; i++)
        memcpy((char *)x->data + (size_t)i * element,
               image + x->before + (size_t)strided_place(&x->tensor, i) * element, element);
}

/* Copies an input into its larger buffer (poisoned between the elements), and that buffer to the
 * device. Elements that share a place become equal, in the dense copy too. */
static int upload_laid_out(const Session *s, const Buffer *x)
{
    fusec_error error;
    char *image = malloc(x->room);
    if (!image) return complain_memory(x->room);
    memset(image, POISON, x->room);
    spread(x, image);
    gather(x, image);
    int status = finish_call(fusec_copy(s->device, x->memory, image, x->room, &error), &error);
    free(image);
    return status;
}

static int upload_input(const Session *s, const char *name, Buffer *x)
{
    fusec_error error;
    int status = lay_out(s, name, x);
    if (status == EXIT_DONE)
        status = finish_call(fusec_alloc(s->device, x->room, &x->memory, &error), &error);
    if (status != EXIT_DONE) return status;
    x->tensor.data = (char *)x->memory + x->before;
    if (x->room == 0) return status;
    if (x->laid_out) return upload_laid_out(s, x);
    return finish_call(fusec_copy(s->device, x->memory, x->data, x->bytes, &error), &error);
}

static int alloc_output(const Session *s, const char *name, Buffer *y)
{
    int status = lay_out(s, name, y);
    if (status == EXIT_DONE && y->count &&
        !elements_are_apart(y->tensor.rank, y->tensor.sizes, y->tensor.strides)) {
        complain(NULL, "%s: the strides make elements of the output overlap", name);
        status = EXIT_USAGE;
    }
    if (status == EXIT_DONE) status = alloc_poisoned(s, y->room, &y->memory);
    if (status == EXIT_DONE) y->tensor.data = (char *)y->memory + y->before;
    return status;
}

static int download_output(const Session *s, const Buffer *y)
{
    fusec_error error;
    if (!y->laid_out)
        return finish_call(fusec_copy(s->device, y->data, y->memory, y->bytes, &error), &error);
    char *image = malloc(y->room);
    if (!image) return complain_memory(y->room);
    int status = finish_call(fusec_copy(s->device, image, y->memory, y->room, &error), &error);
    if (status == EXIT_DONE) gather(y, image);
    free(image);
    return status;
}

int alloc_poisoned(const Session *s, size_t bytes, void **memory)
{
    fusec_error error;
    int status = finish_call(fusec_alloc(s->device, bytes, memory, &error), &error);
    if (status != EXIT_DONE || bytes == 0) return status;
    return finish_call(fusec_fill_async(s->device, *memory, POISON, bytes, NULL, &error), &error);
}

size_t workspace_bytes(const Session *s, const fusec_plan *plan, const Sizes *sizes)
{
    const Graph *g = s->graph;
    fusec_size named[MAX_AXES];
    for (int i = 0; i < g->axis_count; i++) named[i] = (fusec_size){g->axes[i].name, sizes->of[i]};
    return fusec_plan_workspace(plan, named, (size_t)g->axis_count);
}

int upload_batch(const Session *s, Batch *b)
{
    const Graph *g = s->graph;
    int status = check_layouts(s), inputs = 0, scalars = 0;
    for (int i = 0; i < g->params.count && status == EXIT_DONE; i++) {
        if (is_scalar(s, i)) {
            b->values[scalars++] = b->scalars[i];
            continue;
        }
        status = upload_input(s, g->params.data[i].name, &b->inputs[i]);
        b->in[inputs++] = b->inputs[i].tensor;
    }
    for (int i = 0; i < g->outputs.count && status == EXIT_DONE; i++) {
        Buffer *y = &b->outputs[i];
        if (s->wanted[i]) status = alloc_output(s, g->outputs.data[i].name, y);
        b->out[i] = y->tensor;
    }
    if (status != EXIT_DONE || s->is_simulated) return status;
    return alloc_poisoned(s, workspace_bytes(s, s->plan, &b->sizes), &b->workspace);
}

/* ---- running ---- */

static int simulate_batch(const Session *s, const Batch *b)
{
    const LaunchPlan *plan = s->simulated.launch;
    char message[4096] = "";
    void **tensors = NEW_ARRAY(s->arena, void *, plan->tensor_count + 1);
    int64_t(*strides)[MAX_RANK] =
        arena_alloc(s->arena, sizeof *strides * (size_t)(plan->tensor_count + 1));
    for (int i = 0; i < plan->tensor_count; i++) {
        const fusec_tensor *t = i < plan->input_count ? &b->in[i] : &b->out[i - plan->input_count];
        tensors[i] = t->data;
        memcpy(strides[i], t->strides, sizeof strides[i]);
    }
    if (simulate(plan, &b->sizes, s->simulated.cuda, tensors, (const int64_t(*)[MAX_RANK])strides,
                 b->values, s->options->sms, s->options->seed, message, sizeof message))
        return EXIT_DONE;
    complain(NULL, "simulator: %s", message);
    return EXIT_MACHINE;
}

int launch_batch(const Session *s, const Batch *b)
{
    if (s->is_simulated) return simulate_batch(s, b);
    fusec_error error;
    return finish_call(
        fusec_plan_launch(s->plan, b->in, b->out, b->values, b->workspace, NULL, &error), &error);
}

int download_batch(const Session *s, Batch *b)
{
    fusec_error error;
    int status = finish_call(fusec_device_synchronize(s->device, &error), &error);
    for (int i = 0; i < s->graph->outputs.count && status == EXIT_DONE; i++) {
        const Buffer *y = &b->outputs[i];
        if (s->wanted[i] && y->bytes) status = download_output(s, y);
    }
    return status;
}

void close_batch(const Session *s, Batch *b)
{
    for (int i = 0; b->inputs && i < s->graph->params.count; i++) {
        free(b->inputs[i].data);
        if (s->device) fusec_free(s->device, b->inputs[i].memory);
    }
    for (int i = 0; b->outputs && i < s->graph->outputs.count; i++) {
        free(b->outputs[i].data);
        if (s->device) fusec_free(s->device, b->outputs[i].memory);
    }
    if (s->device) fusec_free(s->device, b->workspace);
    *b = (Batch){0};
}
