/* data.c: see data.h. */
#include "data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool found(Finding *f, const char *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    snprintf(f->kind, sizeof f->kind, "%s", kind);
    f->schedule[0] = 0;
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return false;
}

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t bytes_of(const Sizes *sizes, DType dtype, AxisSet axes)
{
    return axes_size(sizes, axes) * dtype_info[dtype].bytes;
}

/* ---- inputs ---- */

/* A few elements that tests forget. */
static void sprinkle(const HostTensor *t, int64_t count, uint64_t seed)
{
    static const double special[] = {INFINITY, -INFINITY, NAN,  0.0,   -0.0,  1e-40,
                                     6e-8,     -1e30,     3e38, 65504, 1e-300};
    for (int64_t i = 0; i < count && dtype_is_float(t->dtype); i++) {
        const uint64_t bits = mix(seed + (uint64_t)i);
        if (bits % 31 == 0)
            dtype_store_float(t->dtype, (char *)t->data + i * dtype_info[t->dtype].bytes,
                              special[(bits >> 32) % (sizeof special / sizeof *special)]);
    }
}

/* Values around 1000: differences of near numbers. */
static void shift(const HostTensor *t, int64_t count)
{
    for (int64_t i = 0; i < count && dtype_is_float(t->dtype); i++) {
        void *at = (char *)t->data + i * dtype_info[t->dtype].bytes;
        dtype_store_float(t->dtype, at, 1000 + dtype_load_float(t->dtype, at));
    }
}

static AxisSet last_axis(AxisSet axes)
{
    return axes ? (AxisSet)1 << (31 - __builtin_clz(axes)) : 0;
}

/* Along some outer axis of one input in four: as a gradient that was broadcast. */
static void repeat_values(Data *data, int param, uint64_t seed)
{
    const HostTensor *t = &data->inputs[param];
    AxisSet outer = t->axes & ~last_axis(t->axes);
    if (!outer || mix(seed) % 4) return;
    for (uint64_t skip = mix(seed + 1) % (uint64_t)axes_count(outer); skip > 0; skip--)
        outer &= outer - 1;
    const int axis = __builtin_ctz(outer);
    const AxisSet within = t->axes & ~(((AxisSet)2 << axis) - 1);
    const int64_t block = bytes_of(&data->sizes, t->dtype, within), size = data->sizes.of[axis],
                  blocks = axes_size(&data->sizes, t->axes & ~within);
    for (int64_t i = 0; i < blocks; i++)
        memmove((char *)t->data + i * block, (char *)t->data + i / size * size * block,
                (size_t)block);
    data->repeated[param] = (AxisSet)1 << axis;
}

/* One seed in eight has values around 1000, one in eight special ones. */
static void fill_input(Data *data, int param, uint64_t seed)
{
    const Param *p = &data->graph->params.data[param];
    HostTensor *t = &data->inputs[param];
    const int64_t count = axes_size(&data->sizes, p->axes);
    t->data = NEW_ARRAY(data->arena, char, bytes_of(&data->sizes, p->dtype, p->axes) + 1);
    random_input(data->graph, param, &data->sizes, seed, t->data);
    if (seed % 8 == 6) shift(t, count);
    if (seed % 8 == 7) sprinkle(t, count, mix(seed + (uint64_t)param));
    repeat_values(data, param, mix(seed * 64 + (uint64_t)param));
}

static void make_scalar(Data *data, int param, int scalar)
{
    const Param *p = &data->graph->params.data[param];
    data->scalars[param] = p->has_default ? p->default_value : 1;
    data->launch_scalars[scalar] = data->scalars[param];
}

bool evaluate_again(const Data *data, const Graph *g, int threads, HostTensor *outputs,
                    double **exact, float **bound)
{
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &data->graph->outputs.data[i];
        const int64_t count = axes_size(&data->sizes, o->axes);
        outputs[i] = (HostTensor){NULL, o->dtype, o->axes};
        outputs[i].data = NEW_ARRAY(data->arena, char, count *dtype_info[o->dtype].bytes + 1);
        exact[i] = NEW_ARRAY(data->arena, double, count + 1);
        bound[i] = NEW_ARRAY(data->arena, float, count + 1);
    }
    return evaluate(&(Evaluation){.graph = g,
                                  .sizes = data->sizes,
                                  .inputs = data->inputs,
                                  .scalars = data->scalars,
                                  .outputs = outputs,
                                  .exact = exact,
                                  .bound = bound,
                                  .threads = threads});
}

double exact_value(const Data *data, int output, int64_t element)
{
    int64_t whole;
    memcpy(&whole, data->exact[output] + element, sizeof whole);
    return dtype_is_float(data->graph->outputs.data[output].dtype) ? data->exact[output][element]
                                                                   : (double)whole;
}

bool make_data(Data *data, Arena *arena, const Graph *lowered, const Sizes *sizes, uint64_t seed)
{
    const int params = lowered->params.count + 1, outputs = lowered->outputs.count + 1;
    *data = (Data){.arena = arena, .graph = lowered, .sizes = *sizes};
    data->inputs = NEW_ARRAY(arena, HostTensor, params);
    data->repeated = NEW_ARRAY(arena, AxisSet, params);
    data->scalars = NEW_ARRAY(arena, double, params);
    data->launch_scalars = NEW_ARRAY(arena, double, params);
    data->outputs = NEW_ARRAY(arena, HostTensor, outputs);
    data->exact = NEW_ARRAY(arena, double *, outputs);
    data->bound = NEW_ARRAY(arena, float *, outputs);
    int scalar = 0;
    for (int i = 0; i < lowered->params.count; i++) {
        const Param *p = &lowered->params.data[i];
        data->inputs[i] = (HostTensor){NULL, p->dtype, p->axes};
        if (p->scalar)
            make_scalar(data, i, scalar++);
        else
            fill_input(data, i, seed);
    }
    return evaluate_again(data, lowered, 1, data->outputs, data->exact, data->bound);
}

/* ---- layouts ---- */

/* Calls with the offset of each element, in dense order. */
typedef void Visit(char *in_layout, char *in_dense, int64_t bytes);

static void copy_in(char *in_layout, char *in_dense, int64_t bytes)
{
    memcpy(in_layout, in_dense, (size_t)bytes);
}

static void copy_out(char *in_layout, char *in_dense, int64_t bytes)
{
    memcpy(in_dense, in_layout, (size_t)bytes);
}

static void walk(const Data *data, const HostTensor *t, const int64_t *strides, char *base,
                 Visit *visit)
{
    int64_t sizes[MAX_RANK];
    int rank = 0;
    for (int axis = 0; axis < data->graph->axis_count; axis++)
        if (t->axes >> axis & 1) sizes[rank++] = data->sizes.of[axis];
    const int64_t count = axes_size(&data->sizes, t->axes), bytes = dtype_info[t->dtype].bytes;
    for (int64_t item = 0; item < count; item++) {
        int64_t at = 0, rest = item;
        for (int i = rank - 1; i >= 0; rest /= sizes[i--]) at += rest % sizes[i] * strides[i];
        visit(base + at * bytes, (char *)t->data + item * bytes, bytes);
    }
}

/* Where a tensor lies: the axes in `repeated` have stride 0, those in `backwards` a
 * negative one.
 */
static void place(const Data *data, const HostTensor *t, uint64_t seed, AxisSet repeated,
                  AxisSet backwards, void **tensor, int64_t *strides)
{
    const bool dense = seed == 0;
    const int64_t bytes = dtype_info[t->dtype].bytes;
    int64_t step = 1, first = dense ? 0 : (int64_t)(mix(seed) % 17);
    int rank = axes_count(t->axes);
    for (int axis = data->graph->axis_count - 1; axis >= 0; axis--) {
        const int64_t size = data->sizes.of[axis] > 0 ? data->sizes.of[axis] : 1;
        if (!(t->axes >> axis & 1)) continue;
        strides[--rank] = repeated >> axis & 1 ? 0 : step;
        if (repeated >> axis & 1) continue;
        if (backwards >> axis & 1) {
            strides[rank] = -step;
            first += (size - 1) * step;
        }
        step *= size;
        if (!dense) step += (int64_t)(mix(seed + (uint64_t)axis) % 3) * (1 + (int64_t)(seed % 8));
    }
    char *memory = NEW_ARRAY(data->arena, char, (step + 17) * bytes + 32);
    memory += (16 - ((uintptr_t)memory & 15)) & 15;
    *tensor = memory + first * bytes;
}

static void place_input(const Data *data, int param, uint64_t seed, void **tensor, int64_t *strides)
{
    const HostTensor *t = &data->inputs[param];
    const AxisSet outer = t->axes & ~last_axis(t->axes);
    const bool turned = seed != 0 && mix(seed + 3) % 6 == 0;
    place(data, t, seed, seed ? data->repeated[param] : 0,
          turned ? outer & (AxisSet)mix(seed + 4) : 0, tensor, strides);
    walk(data, t, strides, *tensor, copy_in);
}

Layout make_layout(const Data *data, uint64_t seed)
{
    const Graph *g = data->graph;
    const int most = g->params.count + g->outputs.count + 1;
    Layout layout = {.tensors = NEW_ARRAY(data->arena, void *, most)};
    layout.strides = arena_alloc(data->arena, sizeof *layout.strides * (size_t)most);
    for (int i = 0; i < g->params.count; i++) {
        if (g->params.data[i].scalar) continue;
        const int at = layout.count++;
        place_input(data, i, seed ? mix(seed * 64 + (uint64_t)i) : 0, &layout.tensors[at],
                    layout.strides[at]);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const int at = layout.count++;
        place(data, &data->outputs[i], seed ? mix(seed * 64 + 32 + (uint64_t)i) : 0, 0, 0,
              &layout.tensors[at], layout.strides[at]);
    }
    return layout;
}

void *read_output(const Data *data, const Layout *layout, int output)
{
    HostTensor t = data->outputs[output];
    const int at = layout->count - data->graph->outputs.count + output;
    t.data = NEW_ARRAY(data->arena, char, bytes_of(&data->sizes, t.dtype, t.axes) + 1);
    walk(data, &t, layout->strides[at], layout->tensors[at], copy_out);
    return t.data;
}
