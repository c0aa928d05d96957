/* codegen/launcher.c: NAME.c of a launcher: see launcher.h. */
#include "codegen/launcher.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char types_text[] = {
#include "launcher_types.inc"
};
static const char launch_text[] = {
#include "launcher_launch.inc"
};

AxisSet launch_axes(const LaunchPlan *plan)
{
    return (((AxisSet)1 << plan->axis_count) - 1) & ~plan->fixed;
}

/* ---- tables ---- */

static void put_cubin(Text *out, const LauncherPlan *p)
{
    enum { A_LINE = 24 };
    const unsigned char *bytes = p->cubin;
    text_print(out, "static const unsigned char cubin_%s[] = {", p->arch);
    for (size_t i = 0; i < p->cubin_bytes; i++)
        text_print(out, "%s%u,", i % A_LINE ? "" : "\n    ", bytes[i]);
    text_print(out, "\n};\n");
}

/* Their order is that of ArgKind in codegen/launcher/types.c. */
static const char *const kind_words[] = {
    [ARG_TENSOR] = "ARG_TENSOR", [ARG_STRIDE] = "ARG_STRIDE", [ARG_ROW_STRIDE] = "ARG_ROW_STRIDE",
    [ARG_SIZE] = "ARG_SIZE",     [ARG_ROWS] = "ARG_ROWS",     [ARG_SCALAR] = "ARG_SCALAR",
    [ARG_SLOT] = "ARG_SLOT",     [ARG_GRID] = "ARG_GRID",     [ARG_INTERVAL] = "ARG_INTERVAL",
    [ARG_ALONE] = "ARG_ALONE"};

static void put_args(Text *out, const char *arch, int kernel, int which, const LaunchEntry *entry)
{
    if (entry->arg_count == 0) return;
    text_print(out, "static const Arg args_%s_%d_%d[] = {\n", arch, kernel, which);
    for (int i = 0; i < entry->arg_count; i++)
        text_print(out, "    {%s, %d, %d}, /* %s */\n", kind_words[entry->args[i].kind],
                   entry->args[i].index, entry->args[i].axis, entry->args[i].name);
    text_print(out, "};\n");
}

static void put_entry(Text *out, const LauncherPlan *p, int kernel, int which)
{
    const LaunchKernel *k = &p->launch->kernels[kernel];
    const LaunchEntry *entry = which ? &k->strided : &k->entry;
    if (which && !has_strided(k)) {
        text_print(out, "{NULL, 0, 0, NULL}");
        return;
    }
    text_print(out, "{\"%s\", %d, %d, ", entry->name, p->overlaps[2 * kernel + which],
               entry->arg_count);
    if (entry->arg_count)
        text_print(out, "args_%s_%d_%d}", p->arch, kernel, which);
    else
        text_print(out, "NULL}");
}

static void put_kernel(Text *out, const LauncherPlan *p, int kernel)
{
    const LaunchKernel *k = &p->launch->kernels[kernel];
    text_print(out, "    {{");
    put_entry(out, p, kernel, 0);
    text_print(out, ",\n      ");
    put_entry(out, p, kernel, 1);
    text_print(out,
               "},\n     %#" PRIx32 ", %#" PRIx32 ", %d, %d, %d, %" PRId64 ", %" PRId64 ", %d,\n",
               k->collapsed, k->dense, k->threads, k->cluster, k->mailbox, k->part_groups,
               k->part_ctas, k->adds_parts);
    text_print(out, "     %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %d,\n     {",
               k->smem_bytes, k->few_bytes, k->few_ctas, k->step_bytes, k->paced_from);
    for (int dim = 0; dim < GRID_RANK; dim++)
        text_print(out, "%s{%#" PRIx32 ", %" PRId64 ", %" PRId64 ", %" PRId64 "}", dim ? ", " : "",
                   k->grid[dim].axes, k->grid[dim].per_cta, k->grid[dim].max_ctas,
                   k->grid[dim].times);
    text_print(out, "}},\n");
}

static void put_slots(Text *out, const LauncherPlan *p)
{
    if (p->launch->slot_count == 0) return;
    text_print(out, "static const Slot slots_%s[] = {\n", p->arch);
    for (int i = 0; i < p->launch->slot_count; i++) {
        const LaunchSlot *slot = &p->launch->slots[i];
        text_print(out, "    {%#" PRIx32 ", %d, %d, %d, %" PRId64 "}, /* %s */\n", slot->axes,
                   dtype_info[slot->dtype].bytes, slot->copies_kernel, slot->copies_dim,
                   slot->width, slot->name);
    }
    text_print(out, "};\n");
}

static void put_plan(Text *out, const LauncherPlan *p)
{
    text_print(out, "\n/* ---- %s ---- */\n\n", p->arch);
    for (int k = 0; k < p->launch->kernel_count; k++) {
        put_args(out, p->arch, k, 0, &p->launch->kernels[k].entry);
        if (has_strided(&p->launch->kernels[k]))
            put_args(out, p->arch, k, 1, &p->launch->kernels[k].strided);
    }
    text_print(out, "static const Kernel kernels_%s[] = {\n", p->arch);
    for (int k = 0; k < p->launch->kernel_count; k++) put_kernel(out, p, k);
    text_print(out, "};\n");
    put_slots(out, p);
    put_cubin(out, p);
}

static void put_tensors(Text *out, const LaunchPlan *plan)
{
    text_print(out, "\nstatic const Tensor tensors[TENSORS] = {\n");
    for (int i = 0; i < plan->tensor_count; i++) {
        const LaunchTensor *t = &plan->tensors[i];
        text_print(out, "    {%#" PRIx32 ", %d, %d, %d}, /* %s */\n", t->axes,
                   dtype_info[t->dtype].bytes, t->output, t->wanted, t->name);
    }
    text_print(out, "};\n");
}

/* A cubin for sm_90a runs on 9.0 alone, one for sm_80 on 8.6, too. */
static void put_plans(Text *out, const Launcher *l)
{
    text_print(out, "\nstatic const Plan plans[PLANS] = {\n");
    for (int i = 0; i < l->count; i++) {
        const LauncherPlan *p = &l->plans[i];
        char *end;
        const long capability = strtol(p->arch + strlen("sm_"), &end, 10);
        text_print(out, "    {%ld, %d, cubin_%s, %d, %d, kernels_%s, ", capability, *end == 'a',
                   p->arch, p->launch->kernel_count, p->launch->slot_count, p->arch);
        if (p->launch->slot_count)
            text_print(out, "slots_%s},\n", p->arch);
        else
            text_print(out, "NULL},\n");
    }
    text_print(out, "};\n\n");
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* Lengths of arrays; none is 0. */
static void put_counts(Text *out, const Launcher *l)
{
    const LaunchPlan *plan = l->plans[0].launch;
    int kernels = 1, slots = 1, args = 1;
    for (int i = 0; i < l->count; i++) {
        const LaunchPlan *p = l->plans[i].launch;
        kernels = most(kernels, p->kernel_count);
        slots = most(slots, p->slot_count);
        for (int k = 0; k < p->kernel_count; k++) args = most(args, most_args(&p->kernels[k]));
    }
    text_print(out,
               "enum {\n    PLANS = %d,\n    AXES = %d,\n    TENSORS = %d,\n    SCALARS = %d,\n"
               "    KERNELS = %d,\n    SLOTS = %d,\n    ARGS = %d\n};\n",
               l->count, most(1, plan->axis_count), most(1, plan->tensor_count),
               most(1, plan->scalar_count), kernels, slots, args);
    text_print(out, "#define ARCHITECTURES \"");
    for (int i = 0; i < l->count; i++) text_print(out, "%s%s", i ? ", " : "", l->plans[i].arch);
    text_print(out, "\"\n\n");
}

/* ---- the functions ---- */

static void put_sizes(Text *out, const LaunchPlan *plan, const FieldNames *names, const char *from)
{
    for (int i = 0; i < plan->axis_count; i++)
        if (plan->fixed >> i & 1)
            line(out, "call.sizes[%d] = %" PRId64 ";", i, plan->sizes.of[i]);
        else
            line(out, "call.sizes[%d] = %s%s;", i, from, names->axes[i]);
}

static void put_workspace(Text *out, const Launcher *l, const FieldNames *names)
{
    const LaunchPlan *plan = l->plans[0].launch;
    const AxisSet axes = launch_axes(plan);
    text_print(out, "\nsize_t %s_workspace(", l->name);
    for (int i = 0, first = 1; i < plan->axis_count; i++)
        if (axes >> i & 1) {
            text_print(out, "%sint64_t %s", first ? "" : ", ", names->axes[i]);
            first = 0;
        }
    text_print(out, "%s)\n{\n", axes ? "" : "void");
    out->indent = 1;
    line(out, "Call call;");
    line(out, "memset(&call, 0, sizeof call);");
    put_sizes(out, plan, names, "");
    line(out, "return most_workspace(&call);");
    out->indent = 0;
    line(out, "}");
}

static const char *scalar_member(const LaunchScalar *scalar)
{
    switch (dtype_info[scalar->dtype].type) {
    case TYPE_F64: return "f64";
    case TYPE_I64: return "integer";
    case TYPE_BOOL: return "boolean";
    case TYPE_F32: break;
    }
    return "f32";
}

static void put_init(Text *out, const Launcher *l, const FieldNames *names)
{
    const LaunchPlan *plan = l->plans[0].launch;
    text_print(out, "\nvoid %s_init(%s_args *args)\n{\n", l->name, l->name);
    out->indent = 1;
    line(out, "memset(args, 0, sizeof *args);");
    for (int i = 0; i < plan->scalar_count; i++) {
        const LaunchScalar *s = &plan->scalars[i];
        char digits[NUMBER_DIGITS];
        if (!s->has_default) continue;
        shortest_digits(digits, s->default_value, false);
        if (!strcmp(digits, "inf") || !strcmp(digits, "-inf"))
            line(out, "args->%s = %sINFINITY;", names->scalars[i], *digits == '-' ? "-" : "");
        else if (!strcmp(digits, "nan"))
            line(out, "args->%s = NAN;", names->scalars[i]);
        else if (dtype_info[s->dtype].type == TYPE_F32)
            line(out, "args->%s = (float)%s;", names->scalars[i], digits);
        else
            line(out, "args->%s = %s;", names->scalars[i], digits);
    }
    out->indent = 0;
    line(out, "}");
}

static void put_launch(Text *out, const Launcher *l, const FieldNames *names)
{
    const LaunchPlan *plan = l->plans[0].launch;
    text_print(out, "\nint %s_launch(const %s_args *args, struct CUstream_st *stream)\n{\n",
               l->name, l->name);
    out->indent = 1;
    line(out, "Call call;");
    line(out, "memset(&call, 0, sizeof call);");
    line(out, "call.workspace = (char *)args->workspace;");
    line(out, "call.workspace_bytes = args->workspace_bytes;");
    put_sizes(out, plan, names, "args->");
    for (int i = 0; i < plan->tensor_count; i++) {
        if (!plan->tensors[i].wanted) continue;
        line(out, "take_tensor(&call, %d, args->%s, %s%s);", i, names->tensors[i],
             names->strides[i] ? "args->" : "NULL", names->strides[i] ? names->strides[i] : "");
    }
    for (int i = 0; i < plan->scalar_count; i++)
        if (dtype_info[plan->scalars[i].dtype].type == TYPE_BOOL)
            line(out, "call.scalars[%d].boolean = args->%s != 0;", i, names->scalars[i]);
        else
            line(out, "call.scalars[%d].%s = args->%s;", i, scalar_member(&plan->scalars[i]),
                 names->scalars[i]);
    line(out, "return launch_call(&call, stream);");
    out->indent = 0;
    line(out, "}");
}

void print_launcher_source(Text *out, const Launcher *l)
{
    const LaunchPlan *plan = l->plans[0].launch;
    const FieldNames names = name_fields(out->arena, plan);
    text_print(
        out,
        "/* %s.c: launches the kernels of graph %s; %s.h says how. Written by\n"
        " *   %s\n"
        " * Compile it as C or C++ with <cuda.h> of CUDA 12 or later, and link libcuda; with\n"
        " * -DFUSEC_DLOPEN it opens libcuda at the first launch instead. */\n",
        l->name, plan->graph, l->name, l->command);
    text_print(out,
               "#include \"%s.h\"\n\n#include <cuda.h>\n#include <math.h>\n#include <pthread.h>\n"
               "#include <string.h>\n#ifdef FUSEC_DLOPEN\n#include <dlfcn.h>\n#endif\n\n",
               l->name);
    put_counts(out, l);
    text_print(out, "%s", types_text);
    put_tensors(out, plan);
    for (int i = 0; i < l->count; i++) put_plan(out, &l->plans[i]);
    put_plans(out, l);
    text_print(out, "%s", launch_text);
    text_print(out, "\n/* ---- the functions of %s.h ---- */\n", l->name);
    put_init(out, l, &names);
    put_workspace(out, l, &names);
    put_launch(out, l, &names);
    text_print(out, "\nconst char *%s_error(int status)\n{\n    return error_text(status);\n}\n",
               l->name);
}
