/* tensors.c: see tensors.h. */
#include "cli/tensors.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

static int complain_extra(const Session *s, const InputFile *file, const char *name)
{
    const Graph *g = s->graph;
    const char **names = NEW_ARRAY(s->arena, const char *, g->params.count + 1);
    int count = 0;
    for (int i = 0; i < g->params.count; i++)
        if (!file->params[i]) names[count++] = g->params.data[i].name;
    const char *near = nearest_name(name, names, count);
    for (int i = 0; i < g->params.count; i++) names[i] = g->params.data[i].name;
    complain(near ? arena_format(s->arena, "did you mean %s?", near)
                  : list_names(s->arena, names, g->params.count),
             "%s: graph %s has no input %s", file->path, g->name, name);
    return EXIT_WRONG;
}

static int match_names(const Session *s, InputFile *file)
{
    const Graph *g = s->graph;
    for (int t = 0; t < file->file.count; t++)
        for (int i = 0; i < g->params.count; i++)
            if (!strcmp(g->params.data[i].name, file->file.tensors[t].name)) {
                file->params[i] = &file->file.tensors[t];
                file->given[i] = true;
            }
    for (int t = 0; t < file->file.count; t++) {
        bool used = false;
        for (int i = 0; i < g->params.count; i++) used |= file->params[i] == &file->file.tensors[t];
        if (!used) return complain_extra(s, file, file->file.tensors[t].name);
    }
    for (int i = 0; i < g->params.count; i++) {
        const Param *p = &g->params.data[i];
        if (file->params[i] || p->scalar) continue;
        complain(NULL, "%s: the input %s : %s%s is missing", file->path, p->name,
                 dtype_info[p->dtype].fuse, axes_text(s->arena, g, p->axes));
        return EXIT_WRONG;
    }
    return EXIT_DONE;
}

static const char *shape_text(Arena *arena, int rank, const int64_t *sizes)
{
    Text *shape = text_new(arena);
    text_print(shape, "[");
    for (int i = 0; i < rank; i++) text_print(shape, "%s%lld", i ? ", " : "", (long long)sizes[i]);
    text_print(shape, "]");
    return text_string(shape);
}

/* "x is [16, 6] as [M, N]", for a tensor of the file. */
static const char *fitted_text(const Session *s, const InputFile *file, const char *name)
{
    const Graph *g = s->graph;
    for (int i = 0; i < g->params.count; i++) {
        const Tensor *t = file->params[i];
        if (t && !strcmp(t->name, name))
            return arena_format(s->arena, "%s is %s as %s", name,
                                shape_text(s->arena, t->rank, t->sizes),
                                axes_text(s->arena, g, g->params.data[i].axes));
    }
    return "";
}

/* Takes the sizes of one tensor; an axis must have the same size everywhere. */
static int fit_tensor(const Session *s, InputFile *file, const Param *p, const Tensor *t)
{
    const Graph *g = s->graph;
    int rank = p->scalar ? 0 : axes_count(p->axes), next = 0;
    if (t->dtype != p->dtype) {
        const char *hint = arena_format(
            s->arena, "convert it, or declare %s : %s%s in %s", t->name, dtype_info[t->dtype].fuse,
            p->scalar ? "" : axes_text(s->arena, g, p->axes), s->options->files.data[0]);
        if (!s->program.text) hint = "convert it"; /* a saved plan */
        complain(hint, "%s: %s is %s, the graph wants %s (%s)", file->path, t->name,
                 dtype_info[t->dtype].safetensors, dtype_info[p->dtype].safetensors,
                 dtype_info[p->dtype].fuse);
        return EXIT_WRONG;
    }
    if (t->rank != rank) {
        complain(NULL, "%s: %s has the shape %s, the graph wants %s", file->path, t->name,
                 shape_text(s->arena, t->rank, t->sizes),
                 p->scalar ? "a scalar" : axes_text(s->arena, g, p->axes));
        return EXIT_WRONG;
    }
    for (int i = 0; i < g->axis_count && rank; i++) {
        if (!(p->axes >> i & 1)) continue;
        int64_t size = t->sizes[next++];
        if (file->sizes.of[i] < 0) {
            file->sizes.of[i] = size;
            file->sized_by[i] = t->name;
        }
        if (file->sizes.of[i] == size) continue;
        complain(arena_format(s->arena, "%s, %s", fitted_text(s, file, file->sized_by[i]),
                              fitted_text(s, file, t->name)),
                 "%s: %s has %s = %lld, %s %lld", file->path, t->name, g->axes[i].name,
                 (long long)size, file->sized_by[i], (long long)file->sizes.of[i]);
        return EXIT_WRONG;
    }
    return EXIT_DONE;
}

int open_inputs(const Session *s, const char *path, InputFile *file)
{
    const Graph *g = s->graph;
    *file = (InputFile){.path = path,
                        .params = NEW_ARRAY(s->arena, const Tensor *, g->params.count + 1),
                        .given = NEW_ARRAY(s->arena, bool, g->params.count + 1)};
    for (int i = 0; i < MAX_AXES; i++) file->sizes.of[i] = -1;
    char message[512];
    if (!tensors_read(path, &file->file, message, sizeof message)) {
        complain(NULL, "%s", message);
        return file->file.machine_failed ? EXIT_MACHINE : EXIT_WRONG;
    }
    int status = match_names(s, file);
    for (int i = 0; i < g->params.count && status == EXIT_DONE; i++)
        if (file->params[i]) status = fit_tensor(s, file, &g->params.data[i], file->params[i]);
    return status;
}

void fill_from_inputs(const Session *s, const InputFile *file, Batch *b)
{
    for (int i = 0; i < s->graph->params.count; i++)
        if (file->params[i] && tensor_bytes(file->params[i]))
            memcpy(b->inputs[i].data, file->params[i]->data, tensor_bytes(file->params[i]));
}

void close_inputs(InputFile *file)
{
    tensors_close(&file->file);
}

int fill_batch(Session *s, Batch *b)
{
    const char *in = s->options->in;
    InputFile file = {0};
    int status = in ? open_inputs(s, in, &file) : EXIT_DONE;
    if (status == EXIT_DONE) status = settle_sizes(s, in ? &file.sizes : NULL);
    if (status == EXIT_DONE) status = open_batch(s, &s->sizes, b);
    if (status == EXIT_DONE) {
        if (in)
            fill_from_inputs(s, &file, b);
        else
            fill_random(s, b);
        status = settle_scalars(s, b, in ? file.given : NULL, !in);
    }
    close_inputs(&file);
    return status;
}

/* ---- outputs ---- */

int save_outputs(const Session *s, const Batch *b, const char *path)
{
    const Graph *g = s->graph;
    char message[512];
    Tensor *tensors = NEW_ARRAY(s->arena, Tensor, g->outputs.count + 1);
    int count = 0;
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        if (!s->wanted[i]) continue;
        Tensor *t = &tensors[count++];
        *t = (Tensor){.name = arena_format(s->arena, "%s", o->name),
                      .dtype = o->dtype,
                      .rank = b->outputs[i].tensor.rank,
                      .data = b->outputs[i].data};
        memcpy(t->sizes, b->outputs[i].tensor.sizes, sizeof t->sizes);
    }
    if (tensors_write(path, tensors, count, message, sizeof message)) return EXIT_DONE;
    complain(NULL, "%s", message);
    return EXIT_MACHINE;
}

typedef struct {
    double min, max, sum;
    int64_t nans;
} Range;

static Range measure(DType dtype, const Buffer *y)
{
    Range r = {INFINITY, -INFINITY, 0, 0};
    const char *element = y->data;
    for (int64_t i = 0; i < y->count; i++, element += dtype_info[dtype].bytes) {
        double v = dtype_is_float(dtype) ? dtype_load_float(dtype, element)
                                         : (double)dtype_load_int(dtype, element);
        if (isnan(v)) {
            r.nans++;
            continue;
        }
        if (v < r.min) r.min = v;
        if (v > r.max) r.max = v;
        r.sum += v;
    }
    return r;
}

/* A number for a table: integers with all their digits; "-" where there is no number, as for a mean
 * of inf and -inf. */
static const char *number_text(Arena *arena, DType dtype, double value, bool any)
{
    if (!any || isnan(value)) return "-";
    return arena_format(arena, dtype_is_float(dtype) ? "%.6g" : "%.0f", value);
}

int output_width(const Session *s)
{
    int width = 16;
    for (int i = 0; i < s->graph->outputs.count; i++) {
        const int length = (int)strlen(s->graph->outputs.data[i].name);
        if (s->wanted[i] && length > width) width = length;
    }
    return width;
}

void summarize_outputs(const Session *s, const Batch *b, Text *out)
{
    const Graph *g = s->graph;
    const int width = output_width(s);
    line(out, "%-*s %-6s %-18s %12s %12s %12s  %s", width, "output", "dtype", "shape", "min", "max",
         "mean", "hash");
    for (int i = 0; i < g->outputs.count; i++) {
        if (!s->wanted[i]) continue;
        const Output *o = &g->outputs.data[i];
        const Buffer *y = &b->outputs[i];
        Range r = measure(o->dtype, y);
        int64_t numbers = y->count - r.nans;
        line(out, "%-*s %-6s %-18s %12s %12s %12s  %016llx", width, o->name,
             dtype_info[o->dtype].fuse, shape_text(s->arena, y->tensor.rank, y->tensor.sizes),
             number_text(s->arena, o->dtype, r.min, numbers),
             number_text(s->arena, o->dtype, r.max, numbers),
             number_text(s->arena, DTYPE_F32, r.sum / (double)(numbers ? numbers : 1), numbers),
             (unsigned long long)XXH3_64bits(y->data, y->bytes));
        if (r.nans)
            line(out, "    %lld of %lld elements are NaN", (long long)r.nans, (long long)y->count);
    }
}

/* null where there is no number; an infinity, for which JSON has none, as a string. */
static void put_number(Text *out, const char *key, DType dtype, double value, bool any)
{
    const char *digits = number_text(out->arena, dtype, value, any);
    const bool infinite = any && isinf(value);
    text_print(out, ", \"%s\": ", key);
    text_print(out, infinite ? "\"%s\"" : "%s", *digits == '-' && !digits[1] ? "null" : digits);
}

void put_output(const Session *s, const Batch *b, int output, Text *out)
{
    const Output *o = &s->graph->outputs.data[output];
    const Buffer *y = &b->outputs[output];
    const Range r = measure(o->dtype, y);
    const int64_t numbers = y->count - r.nans;
    text_print(out, "{\"name\": ");
    text_quote(out, o->name);
    text_print(out, ", \"dtype\": \"%s\", \"shape\": [", dtype_info[o->dtype].fuse);
    for (int i = 0; i < y->tensor.rank; i++)
        text_print(out, "%s%lld", i ? ", " : "", (long long)y->tensor.sizes[i]);
    text_print(out, "]");
    put_number(out, "min", o->dtype, r.min, numbers);
    put_number(out, "max", o->dtype, r.max, numbers);
    put_number(out, "mean", DTYPE_F32, r.sum / (double)(numbers ? numbers : 1), numbers);
    text_print(out, ", \"nans\": %lld, \"hash\": \"%016llx\"", (long long)r.nans,
               (unsigned long long)XXH3_64bits(y->data, y->bytes));
}
