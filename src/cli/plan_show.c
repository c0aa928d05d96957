/* plan_show.c: see plan.h. Everything is asked of the public interface. */
#include "cli/plan.h"

#include <inttypes.h>
#include <string.h>

static fusec_axis_info axis_of(const fusec_plan *plan, size_t index)
{
    fusec_axis_info info = {.struct_size = sizeof info};
    fusec_plan_axis(plan, index, &info);
    return info;
}

static fusec_tensor_info tensor_of(const fusec_plan *plan, size_t index)
{
    fusec_tensor_info info = {.struct_size = sizeof info};
    fusec_plan_tensor(plan, index, &info);
    return info;
}

static fusec_scalar_info scalar_of(const fusec_plan *plan, size_t index)
{
    fusec_scalar_info info = {.struct_size = sizeof info};
    fusec_plan_scalar(plan, index, &info);
    return info;
}

static fusec_kernel_info kernel_of(const fusec_plan *plan, size_t index)
{
    fusec_kernel_info info = {.struct_size = sizeof info};
    fusec_plan_kernel(plan, index, &info);
    return info;
}

static const char *default_text(Arena *arena, const fusec_scalar_info *scalar)
{
    char digits[NUMBER_DIGITS];
    shortest_digits(digits, scalar->default_value, scalar->dtype != FUSEC_F64);
    return arena_format(arena, "%s", digits);
}

static const char *code_format(const fusec_plan *plan, size_t *bytes)
{
    const char *code = fusec_plan_binary(plan, bytes);
    return *bytes > 4 && !memcmp(code, "\177ELF", 4) ? "cubin" : "ptx";
}

/* ---- in words ---- */

static int longer(int width, const char *name)
{
    const int length = (int)strlen(name);
    return length > width ? length : width;
}

/* Of the column with the names. */
static int name_width(const fusec_plan *plan)
{
    int width = 8;
    for (size_t i = 0; i < fusec_plan_tensor_count(plan); i++)
        width = longer(width, tensor_of(plan, i).name);
    for (size_t i = 0; i < fusec_plan_scalar_count(plan); i++)
        width = longer(width, scalar_of(plan, i).name);
    for (size_t i = 0; i < fusec_plan_kernel_count(plan); i++)
        width = longer(width, kernel_of(plan, i).name);
    return width;
}

static void print_axes(Text *out, const fusec_plan *plan)
{
    const size_t count = fusec_plan_axis_count(plan);
    for (size_t i = 0; i < count; i++) {
        const fusec_axis_info axis = axis_of(plan, i);
        text_print(out, "%s%s", i ? ", " : "axes: ", axis.name);
        if (axis.is_fixed)
            text_print(out, " = %" PRId64, axis.size);
        else
            text_print(out, " of any size");
    }
    if (count) text_print(out, "\n");
}

static void print_shape(Text *out, const fusec_plan *plan, const fusec_tensor_info *tensor)
{
    text_print(out, "[");
    for (int i = 0; i < tensor->rank; i++)
        text_print(out, "%s%s", i ? ", " : "", axis_of(plan, (size_t)tensor->axes[i]).name);
    text_print(out, "]");
}

static void print_tensors(Text *out, const fusec_plan *plan, int width, bool outputs)
{
    const size_t inputs = fusec_plan_input_count(plan), all = fusec_plan_tensor_count(plan);
    if (outputs ? all > inputs : inputs > 0) line(out, outputs ? "outputs" : "inputs");
    for (size_t i = outputs ? inputs : 0; i < (outputs ? all : inputs); i++) {
        const fusec_tensor_info tensor = tensor_of(plan, i);
        text_print(out, "  %-*s %s", width, tensor.name, fusec_dtype_name(tensor.dtype));
        print_shape(out, plan, &tensor);
        text_print(out, tensor.is_wanted ? "\n" : outputs ? ", not computed\n" : ", not read\n");
    }
}

static void print_scalars(Text *out, const fusec_plan *plan, int width)
{
    const size_t count = fusec_plan_scalar_count(plan);
    if (count) line(out, "scalars");
    for (size_t i = 0; i < count; i++) {
        const fusec_scalar_info scalar = scalar_of(plan, i);
        text_print(out, "  %-*s %s", width, scalar.name, fusec_dtype_name(scalar.dtype));
        if (scalar.has_default) text_print(out, " = %s", default_text(out->arena, &scalar));
        text_print(out, "\n");
    }
}

/* " for M = 16384", the sizes that grids and the workspace are told for; "" where all are compiled
 * in. */
static const char *made_with(Arena *arena, const fusec_plan *plan)
{
    const char *text = "";
    for (size_t i = 0; i < fusec_plan_axis_count(plan); i++) {
        const fusec_axis_info axis = axis_of(plan, i);
        if (!axis.is_fixed)
            text = arena_format(arena, "%s%s%s = %" PRId64, text, *text ? ", " : " for ", axis.name,
                                axis.size);
    }
    return text;
}

static void print_kernels(Text *out, const fusec_plan *plan, int width)
{
    const size_t count = fusec_plan_kernel_count(plan);
    line(out, "kernels%s", made_with(out->arena, plan));
    for (size_t i = 0; i < count; i++) {
        const fusec_kernel_info k = kernel_of(plan, i);
        text_print(out, "  %-*s %" PRId64 " CTAs of %d threads", width, k.name,
                   k.grid[0] * k.grid[1] * k.grid[2], k.threads);
        if (k.cluster > 1) text_print(out, ", %d a row", k.cluster);
        if (k.registers >= 0) text_print(out, ", %d registers a thread", k.registers);
        if (k.spill_bytes > 0) text_print(out, ", %d bytes spilled", k.spill_bytes);
        const int64_t fixed = k.static_smem_bytes > 0 ? k.static_smem_bytes : 0;
        text_print(out, ", %" PRId64 " bytes of shared memory\n", fixed + k.dynamic_smem_bytes);
    }
    line(out, "workspace: %zu bytes%s", fusec_plan_workspace(plan, NULL, 0),
         made_with(out->arena, plan));
}

void print_saved_plan(Text *out, const fusec_plan *plan)
{
    size_t bytes;
    const char *format = code_format(plan, &bytes);
    const int width = name_width(plan);
    line(out, "%s for %s, saved by fusec %s", fusec_plan_graph(plan), fusec_plan_arch(plan),
         fusec_version());
    print_axes(out, plan);
    print_tensors(out, plan, width, false);
    print_scalars(out, plan, width);
    print_tensors(out, plan, width, true);
    print_kernels(out, plan, width);
    size_t cubins = 0;
    while (fusec_plan_cubin(plan, cubins, NULL)) cubins++;
    line(out, "code: %s of %zu bytes%s, and its CUDA C of %zu", format, bytes,
         cubins > 1 ? arena_format(out->arena, " in %zu files", cubins) : "",
         strlen(fusec_plan_text(plan)));
}

/* ---- as JSON ---- */

static void put_axes(Text *out, const fusec_plan *plan)
{
    text_print(out, ",\n  \"axes\": [");
    for (size_t i = 0; i < fusec_plan_axis_count(plan); i++) {
        const fusec_axis_info axis = axis_of(plan, i);
        text_print(out, "%s\n    {\"name\": ", i ? "," : "");
        text_quote(out, axis.name);
        text_print(out, ", \"size\": %" PRId64 ", \"fixed\": %s}", axis.size,
                   axis.is_fixed ? "true" : "false");
    }
    text_print(out, "]");
}

static void put_tensors(Text *out, const fusec_plan *plan, bool outputs)
{
    const size_t inputs = fusec_plan_input_count(plan), all = fusec_plan_tensor_count(plan);
    const size_t first = outputs ? inputs : 0, end = outputs ? all : inputs;
    text_print(out, ",\n  \"%s\": [", outputs ? "outputs" : "inputs");
    for (size_t i = first; i < end; i++) {
        const fusec_tensor_info tensor = tensor_of(plan, i);
        text_print(out, "%s\n    {\"name\": ", i > first ? "," : "");
        text_quote(out, tensor.name);
        text_print(out, ", \"dtype\": \"%s\", \"axes\": [", fusec_dtype_name(tensor.dtype));
        for (int d = 0; d < tensor.rank; d++) {
            if (d) text_print(out, ", ");
            text_quote(out, axis_of(plan, (size_t)tensor.axes[d]).name);
        }
        text_print(out, "], \"%s\": %s}", outputs ? "computed" : "read",
                   tensor.is_wanted ? "true" : "false");
    }
    text_print(out, "]");
}

static void put_scalars(Text *out, const fusec_plan *plan)
{
    text_print(out, ",\n  \"scalars\": [");
    for (size_t i = 0; i < fusec_plan_scalar_count(plan); i++) {
        const fusec_scalar_info scalar = scalar_of(plan, i);
        const char *digits = default_text(out->arena, &scalar);
        const bool is_number = *digits != 'i' && *digits != 'n' && digits[1] != 'i';
        text_print(out, "%s\n    {\"name\": ", i ? "," : "");
        text_quote(out, scalar.name);
        text_print(out, ", \"dtype\": \"%s\", \"default\": ", fusec_dtype_name(scalar.dtype));
        text_print(out, !scalar.has_default ? "null}" : is_number ? "%s}" : "\"%s\"}", digits);
    }
    text_print(out, "]");
}

static void put_kernels(Text *out, const fusec_plan *plan)
{
    text_print(out, ",\n  \"kernels\": [");
    for (size_t i = 0; i < fusec_plan_kernel_count(plan); i++) {
        const fusec_kernel_info k = kernel_of(plan, i);
        text_print(out, "%s\n    {\"name\": ", i ? "," : "");
        text_quote(out, k.name);
        text_print(out, ", \"grid\": [%" PRId64 ", %" PRId64 ", %" PRId64 "], \"threads\": %d",
                   k.grid[0], k.grid[1], k.grid[2], k.threads);
        text_known(out, "cluster", k.cluster);
        text_known(out, "registers", k.registers);
        text_known(out, "spill_bytes", k.spill_bytes);
        text_known(out, "static_smem_bytes", k.static_smem_bytes);
        text_print(out, ", \"dynamic_smem_bytes\": %" PRId64 "}", k.dynamic_smem_bytes);
    }
    text_print(out, "]");
}

void print_saved_plan_json(Text *out, const fusec_plan *plan)
{
    size_t bytes;
    const char *format = code_format(plan, &bytes);
    text_print(out, "{\n  \"graph\": ");
    text_quote(out, fusec_plan_graph(plan));
    text_print(out, ",\n  \"arch\": ");
    text_quote(out, fusec_plan_arch(plan));
    text_print(out, ",\n  \"fusec\": \"%s\"", fusec_version());
    put_axes(out, plan);
    put_tensors(out, plan, false);
    put_scalars(out, plan);
    put_tensors(out, plan, true);
    put_kernels(out, plan);
    text_print(out, ",\n  \"workspace_bytes\": %zu", fusec_plan_workspace(plan, NULL, 0));
    text_print(out, ",\n  \"code\": {\"format\": \"%s\", \"bytes\": %zu}\n}\n", format, bytes);
}
