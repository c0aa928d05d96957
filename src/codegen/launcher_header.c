/* codegen/launcher_header.c: NAME.h of a launcher: see launcher.h. */
#include "base/reserved.h"
#include "codegen/launcher.h"

#include <inttypes.h>
#include <string.h>

/* Words of C and C++ alone: other names that kernels reserve are free as fields. */
static bool is_word(const char *name)
{
    static const char *const words[] = {
        "alignas",  "alignof",  "and",       "asm",       "auto",      "bitand",   "bitor",
        "bool",     "break",    "case",      "catch",     "char",      "class",    "compl",
        "concept",  "const",    "constexpr", "continue",  "decltype",  "default",  "delete",
        "do",       "double",   "else",      "enum",      "explicit",  "export",   "extern",
        "false",    "float",    "for",       "friend",    "goto",      "if",       "inline",
        "int",      "long",     "mutable",   "namespace", "new",       "noexcept", "not",
        "nullptr",  "operator", "or",        "private",   "protected", "public",   "register",
        "requires", "restrict", "return",    "short",     "signed",    "sizeof",   "static",
        "struct",   "switch",   "template",  "this",      "throw",     "true",     "try",
        "typedef",  "typeid",   "typename",  "typeof",    "union",     "unsigned", "using",
        "virtual",  "void",     "volatile",  "while",     "xor",       "int64_t",  "size_t"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], name)) return true;
    return false;
}

/* The name itself, with underscores behind it where it is such a word, a macro's or taken. */
static const char *free_name(Arena *arena, Map *taken, const char *name)
{
    while (is_word(name) || is_library_name(name) || name_find(taken, name) >= 0)
        name = arena_format(arena, "%s_", name);
    name_add(arena, taken, name, 1);
    return name;
}

static int rank_of(AxisSet axes)
{
    return __builtin_popcount(axes);
}

FieldNames name_fields(Arena *arena, const LaunchPlan *plan)
{
    FieldNames names = {0};
    Map taken = {0};
    static const char *const own[] = {"workspace", "workspace_bytes", "call", "args", "stream"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) name_add(arena, &taken, own[i], 1);
    names.tensors = NEW_ARRAY(arena, const char *, plan->tensor_count + 1);
    names.strides = NEW_ARRAY(arena, const char *, plan->tensor_count + 1);
    names.scalars = NEW_ARRAY(arena, const char *, plan->scalar_count + 1);
    for (int i = 0; i < plan->axis_count; i++)
        names.axes[i] = free_name(arena, &taken, plan->axis_names[i]);
    for (int i = 0; i < plan->tensor_count; i++)
        names.tensors[i] = free_name(arena, &taken, plan->tensors[i].name);
    for (int i = 0; i < plan->scalar_count; i++)
        names.scalars[i] = free_name(arena, &taken, plan->scalars[i].name);
    for (int i = 0; i < plan->tensor_count; i++)
        if (rank_of(plan->tensors[i].axes) > 1)
            names.strides[i] =
                free_name(arena, &taken, arena_format(arena, "%s_strides", plan->tensors[i].name));
    return names;
}

const char *axes_of(Arena *arena, const LaunchPlan *plan, AxisSet axes)
{
    const char *list = "";
    for (int i = 0; i < plan->axis_count; i++)
        if (axes >> i & 1)
            list = arena_format(arena, "%s%s%s", list, *list ? ", " : "", plan->axis_names[i]);
    return list;
}

static void put_tensor(Text *out, const LaunchPlan *plan, const FieldNames *names, int index)
{
    const LaunchTensor *t = &plan->tensors[index];
    const int rank = rank_of(t->axes);
    if (!t->wanted) return;
    line(out, "%svoid *%s; /* %s[%s]%s */", t->output ? "" : "const ", names->tensors[index],
         dtype_info[t->dtype].fuse, axes_of(out->arena, plan, t->axes),
         t->output ? ", written" : "");
    if (rank > 1) line(out, "int64_t %s[%d];", names->strides[index], rank - 1);
}

static void put_scalar(Text *out, const LaunchScalar *scalar, const char *name)
{
    static const char *const types[] = {
        [TYPE_F32] = "float", [TYPE_F64] = "double", [TYPE_I64] = "int64_t", [TYPE_BOOL] = "int"};
    const char *dtype = dtype_info[scalar->dtype].fuse;
    const bool narrow = scalar->dtype != DTYPE_F32 && scalar->dtype != DTYPE_F64 &&
                        scalar->dtype != DTYPE_I64 && scalar->dtype != DTYPE_BOOL;
    line(out, "%s %s; /* %s%s%s */", types[dtype_info[scalar->dtype].type], name, dtype,
         narrow ? ", a value that it holds exactly" : "",
         scalar->has_default ? "" : "; it has no default");
}

static void put_args(Text *out, const Launcher *l, const FieldNames *names)
{
    const LaunchPlan *plan = l->plans[0].launch;
    text_print(out, "typedef struct %s_args {\n", l->name);
    out->indent = 1;
    for (int i = 0; i < plan->axis_count; i++)
        if (launch_axes(plan) >> i & 1) line(out, "int64_t %s;", names->axes[i]);
    for (int i = 0; i < plan->tensor_count; i++) put_tensor(out, plan, names, i);
    for (int i = 0; i < plan->scalar_count; i++)
        put_scalar(out, &plan->scalars[i], names->scalars[i]);
    line(out, "void *workspace; /* device memory, aligned to 256 bytes */");
    line(out, "size_t workspace_bytes;");
    out->indent = 0;
    text_print(out, "} %s_args;\n\n", l->name);
}

static void put_functions(Text *out, const Launcher *l, const FieldNames *names)
{
    const LaunchPlan *plan = l->plans[0].launch;
    const AxisSet axes = launch_axes(plan);
    const char *sizes = "", *name = l->name;
    for (int i = 0; i < plan->axis_count; i++)
        if (axes >> i & 1)
            sizes = arena_format(out->arena, "%s%sint64_t %s", sizes, *sizes ? ", " : "",
                                 names->axes[i]);
    text_print(
        out,
        "/* Clears *args and sets the scalars that have a default. */\n"
        "void %s_init(%s_args *args);\n\n"
        "/* Bytes of workspace that a launch needs, on any GPU that there are kernels for. A workspace\n"
        " * for larger sizes serves smaller ones; where it is 0, the pointer may be NULL.\n"
        " * SIZE_MAX: the sizes are negative or too large. */\n"
        "size_t %s_workspace(%s);\n\n",
        name, name, name, *sizes ? sizes : "void");
    text_print(
        out,
        "/* Launches all kernels into the stream (a CUstream or cudaStream_t) of the current context, and\n"
        " * returns at once; the stream may be captured into a graph. 0: done; below 0: an argument is\n"
        " * wrong or no kernel fits the GPU, and nothing is launched; above 0: the CUresult of the driver. */\n"
        "int %s_launch(const %s_args *args, struct CUstream_st *stream);\n\n"
        "/* What a status says; the text is never freed. */\n"
        "const char *%s_error(int status);\n\n",
        name, name, name);
}

static void put_introduction(Text *out, const Launcher *l)
{
    const LaunchPlan *plan = l->plans[0].launch;
    const char *archs = "", *fixed = "";
    for (int i = 0; i < l->count; i++)
        archs = arena_format(out->arena, "%s%s%s", archs, i ? ", " : "", l->plans[i].arch);
    for (int i = 0; i < plan->axis_count; i++)
        if (plan->fixed >> i & 1)
            fixed = arena_format(out->arena, "%s%s%s = %" PRId64, fixed, *fixed ? ", " : "",
                                 plan->axis_names[i], plan->sizes.of[i]);
    text_print(out,
               "/* %s.h: graph %s for %s%s%s. Written by\n"
               " *   %s\n"
               " *\n"
               " * All functions may be called from several threads. */\n",
               l->name, plan->graph, archs, *fixed ? ", with " : "", fixed, l->command);
}

void print_launcher_header(Text *out, const Launcher *l)
{
    const FieldNames names = name_fields(out->arena, l->plans[0].launch);
    put_introduction(out, l);
    text_print(out,
               "#ifndef FUSEC_BUILT_%s\n#define FUSEC_BUILT_%s\n\n#include <stddef.h>\n"
               "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
               "struct CUstream_st;\n\n",
               l->name, l->name);
    text_print(
        out,
        "/* Tensors are device memory, which the caller keeps until the stream has done the launch; outputs\n"
        " * overlap no other tensor. Strides count elements. The last axis has none, because its elements\n"
        " * are neighbours; 0 means that the tensor is dense. */\n");
    put_args(out, l, &names);
    put_functions(out, l, &names);
    text_print(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}
