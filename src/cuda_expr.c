/* cuda_expr.c: names, expressions and addresses of generated CUDA. The user's names survive; an
 * expression is one line for each binding, in the order and with the grouping of the program, so
 * that its rounding is the program's. */
#include "cuda_emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

/* C++ and CUDA words, functions that patterns call, and variables that every kernel has. */
static const char *const reserved[] = {
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
    "catch", "char", "class", "compl", "concept", "const", "constexpr", "continue", "decltype",
    "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern", "false",
    "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public", "register",
    "requires", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while", "xor", "main", "asm", "uint4", "uint2",
    "threadIdx", "blockIdx", "gridDim", "blockDim", "warpSize",
    "powf", "pow", "fabsf", "fabs", "sqrtf", "sqrt", "rsqrtf", "rsqrt", "expf", "exp", "exp2f",
    "exp2", "logf", "log", "log2f", "log2", "log1pf", "log1p", "expm1f", "expm1", "sinf", "sin",
    "cosf", "cos", "tanhf", "tanh", "erff", "erf", "floorf", "floor", "ceilf", "ceil", "rintf",
    "rint", "row", "col", "t", "i", "lane", "team", "first", "turn", "scratch", "mine", "base",
    "rows", "columns", "threads", "smem", "ring", "stage", "stages", "now",
    "ahead", "fetch", "next", "held", "into", "cluster", "full", "empty", "slice", "local", "bulk", "begin", "count", "parity", "left", "first_row", "row_step", "exchange", "sent", "collected", "last", "last_row", "finish_row", "cta_scratch", "cta_turn", "Stage", "Columns", "s", "teams", "vec", "tiles", "step", "group", "groups", "partials",
    "threads_per_row", "slice", "slices", "item", "items", "p", "y0", "y1", "yn", "j0", "j1", "jn",
    "linux", "unix", "assert", "signbit", "NULL"};

bool is_reserved_name(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(reserved[i], name))
            return true;
    return false;
}

static bool is_taken(const Emitter *e, const char *name)
{
    if (is_reserved_name(name))
        return true;
    for (int i = 0; i < e->used.count; i++)
        if (!strcmp(e->used.data[i], name))
            return true;
    return is_prelude_name(name);
}

const char *unique_name(Emitter *e, const char *base)
{
    const char *name = base;
    for (int i = 1; is_taken(e, name); i++)
        name = i == 1 ? arena_format(e->arena, "%s_", base)
                      : arena_format(e->arena, "%s_%d", base, i);
    *list_push(e->arena, &e->used) = name;
    return name;
}

/* What an unnamed value is called by what made it. */
static const char *made_name(Op op)
{
    switch (op) {
    case OP_ADD: return "total";
    case OP_SUB: return "difference";
    case OP_MUL: return "product";
    case OP_DIV: return "quotient";
    case OP_NEG: return "negative";
    case OP_SUM: return "row_sum";
    case OP_MEAN: return "row_mean";
    case OP_MAX_OVER: return "row_max";
    case OP_MIN_OVER: return "row_min";
    case OP_PROD: return "row_prod";
    case OP_WHERE: return "chosen";
    case OP_CAST: return "rounded";
    case OP_CONVERT: return "widened";
    case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_GT: case OP_GE: return "holds";
    case OP_AND: return "both";
    case OP_OR: return "either";
    case OP_NOT: return "opposite";
    case OP_POW: return "power";
    default: return "value";
    }
}

static const char *lower_case(Arena *arena, const char *name)
{
    char *copy = arena_copy(arena, name, strlen(name));
    for (char *c = copy; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return copy;
}

const char *node_name(Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    if (e->names[n.id])
        return e->names[n.id];
    const char *base = info->name;
    if (info->op == OP_PARAM)
        base = e->g->params.data[info->param].name;
    else if (info->op == OP_INDEX)
        base = lower_case(e->arena, e->g->axes[info->axis].name);
    else if (!base && op_info[info->op].class == CLASS_CALL && isalpha(op_info[info->op].text[0]) &&
             info->op != OP_WHERE)
        base = arena_format(e->arena, "%s_value", op_info[info->op].text);
    else if (!base)
        base = made_name(info->op);
    return e->names[n.id] = unique_name(e, base);
}

const char *arg_name(const Emitter *e, ArgKind kind, int index, int axis)
{
    for (int i = 0; i < e->launch->arg_count; i++) {
        const LaunchArg *arg = &e->launch->args[i];
        bool axis_counts = kind == ARG_STRIDE || kind == ARG_SIZE;
        if (arg->kind == kind && arg->index == index && (!axis_counts || arg->axis == axis))
            return e->args[i];
    }
    return "missing_argument";
}

const char *type_cuda(Type type)
{
    return type == TYPE_F32 ? "float" : type == TYPE_F64 ? "double" :
           type == TYPE_I64 ? "long long" : "bool";
}

int open_scope(const Emitter *e) { return e->scope.count; }

void close_scope(Emitter *e, int mark)
{
    while (e->scope.count > mark)
        e->local[e->scope.data[--e->scope.count]] = false;
}

void make_local(Emitter *e, Node n)
{
    e->local[n.id] = true;
    *list_push(e->arena, &e->scope) = n.id;
}

const char *join(Arena *arena, const NameList *list, const char *separator)
{
    Text *text = text_new(arena);
    for (int i = 0; i < list->count; i++)
        text_print(text, "%s%s", i ? separator : "", list->data[i]);
    return text_string(text);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Elements between neighbours along an axis: a kernel argument for tensors, a product of sizes for
 * slots, which are dense. NULL: 1. */
static const char *stride_text(Emitter *e, int tensor, AxisSet axes, int axis)
{
    if (axes >> axis == 1)
        return NULL;
    if (tensor >= 0)
        return arg_name(e, ARG_STRIDE, tensor, axis);
    NameList factors = {0};
    for (int i = axis + 1; i < e->g->axis_count; i++)
        if (axes >> i & 1)
            *list_push(e->arena, &factors) = e->sizes[i];
    const char *product = join(e->arena, &factors, " * ");
    return factors.count > 1 ? arena_format(e->arena, "(%s)", product) : product;
}

static const char *offset_text(Emitter *e, int tensor, AxisSet axes, AxisSet over)
{
    NameList terms = {0};
    for (int i = 0; i < e->g->axis_count; i++) {
        if (!(axes & over) || !((axes & over) >> i & 1))
            continue;
        const char *stride = stride_text(e, tensor, axes, i), *coord = e->coords[i];
        bool sum = strchr(coord, ' ') && stride;
        *list_push(e->arena, &terms) =
            stride ? arena_format(e->arena, sum ? "(%s) * %s" : "%s * %s", coord, stride) : coord;
    }
    return join(e->arena, &terms, " + ");
}

const char *address(Emitter *e, const char *pointer, int tensor, AxisSet axes, Access access)
{
    AxisSet over = access == ACCESS_VECTOR ? axes & ~e->k->columns : axes;
    const char *offset = offset_text(e, tensor, axes, over);
    return *offset ? arena_format(e->arena, "%s + %s", pointer, offset) : pointer;
}

const char *element(Emitter *e, const char *pointer, int tensor, AxisSet axes)
{
    const char *offset = offset_text(e, tensor, axes, axes);
    return arena_format(e->arena, "%s[%s]", pointer, *offset ? offset : "0");
}

/* Coordinates of a column that stands for several axes. */
void emit_column_coords(Emitter *e)
{
    AxisSet columns = e->k->columns;
    if (!(columns & (columns - 1)))
        return;
    const char *type = e->k->dynamic ? "long long" : "int";
    const char *rest = e->k->finishes >= 0 ? "col" : "(col + i)";
    for (int axis = e->g->axis_count - 1; axis >= 0; axis--) {
        if (!(columns >> axis & 1))
            continue;
        bool outermost = !(columns & (((AxisSet)1 << axis) - 1));
        line(e->out, outermost ? "const %s %s = %s;" : "const %s %s = %s %% %s;", type,
             e->coords[axis], rest, e->sizes[axis]);
        rest = arena_format(e->arena, "%s / %s", rest, e->sizes[axis]);
    }
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const char *float_text(Emitter *e, Type type, double value)
{
    if (type == TYPE_F32)
        value = (float)value;
    if (isnan(value))
        return "not_a_number()";
    if (isinf(value))
        return value > 0 ? "infinity()" : "-infinity()";
    char digits[64];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        double back = strtod(digits, NULL);
        if (type == TYPE_F32 ? (float)back == (float)value : back == value)
            break;
    }
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    return arena_format(e->arena, "%s%s%s", digits, point, type == TYPE_F32 ? "f" : "");
}

static const char *integer_text(Emitter *e, Type type, int64_t value)
{
    if (type == TYPE_BOOL)
        return value ? "true" : "false";
    if (value == INT64_MIN)
        return "(-9223372036854775807LL - 1)";
    bool small = value >= INT32_MIN && value <= INT32_MAX;
    return arena_format(e->arena, small ? "%" PRId64 : "%" PRId64 "LL", value);
}

const char *product_text(Emitter *e, AxisSet axes)
{
    NameList factors = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (axes >> i & 1)
            *list_push(e->arena, &factors) = e->sizes[i];
    return join(e->arena, &factors, " * ");
}

const char *count_text(Emitter *e, AxisSet axes)
{
    const char *product = product_text(e, axes);
    return axes & (axes - 1) ? arena_format(e->arena, "(%s)", product) : product;
}

static const char *cast_text(Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n), *from = node(e->g, info->args[0]);
    const char *x = expression(e, info->args[0], 0);
    bool floats = type_is_float(from->type);
    switch (info->dtype) {
    case DTYPE_F64: return arena_format(e->arena, "(double)(%s)", x);
    case DTYPE_F32: return arena_format(e->arena, "(float)(%s)", x);
    case DTYPE_BOOL: return arena_format(e->arena, "(%s) != 0", x);
    case DTYPE_F16: case DTYPE_BF16: case DTYPE_F8E4M3: case DTYPE_F8E5M2:
        return arena_format(e->arena, floats ? "(float)as<%s>(%s)" : "(float)as<%s>((double)(%s))",
                            dtype_info[info->dtype].cuda, x);
    default: break;
    }
    const char *whole = floats ? arena_format(e->arena, "whole(%s)", x) :
                        arena_format(e->arena, "(long long)(%s)", x);
    if (info->dtype == DTYPE_I64)
        return whole;
    return arena_format(e->arena, "(long long)as<%s>(%s)", dtype_info[info->dtype].cuda, whole);
}

/* Fills a pattern of ops.def. Operators parenthesize operands that bind less tightly, and on the
 * right also those that bind alike, so that the grouping is the program's. */
static const char *fill_pattern(Emitter *e, Node n, const char *pattern)
{
    const OpInfo *op = &op_info[node(e->g, n)->op];
    Text *text = text_new(e->arena);
    for (const char *p = pattern; *p; p++) {
        if (*p != '$') {
            text_put(text, p, 1);
            continue;
        }
        int which = *++p - '0';
        bool infix = op->class == CLASS_BINARY || op->class == CLASS_UNARY || node(e->g, n)->op == OP_WHERE;
        bool tighter = which > 0 || op->class == CLASS_UNARY || node(e->g, n)->op == OP_WHERE;
        int need = infix ? op->precedence + tighter : 0;
        text_print(text, "%s", expression(e, arg(e->g, n, which), need));
    }
    return text_string(text);
}

static const char *vector_element(Emitter *e, const Load *load)
{
    const char *v = arena_format(e->arena, "%s_v", load->name);
    return arena_format(e->arena, load->resident ? "%s[t][i]" : "%s[i]", v);
}

static const Load *find_load(const Emitter *e, Node n)
{
    for (int i = 0; i < e->k->load_count; i++)
        if (e->k->loads[i].node.id == n.id)
            return &e->k->loads[i];
    return NULL;
}

/* An element of a tensor or slot where the kernel reads it. */
static const char *load_text(Emitter *e, const Load *load)
{
    const char *pointer = load->slot >= 0 ? arg_name(e, ARG_SLOT, load->slot, 0)
                                          : arg_name(e, ARG_TENSOR, load->tensor, 0);
    const char *type = type_cuda(dtype_info[load->dtype].type);
    if (load->access == ACCESS_VECTOR)
        return vector_element(e, load);
    const char *at = element(e, pointer, load->tensor, load->axes);
    bool outside = load->access == ACCESS_ELEMENT && e->k->ragged;
    if (outside)
        return arena_format(e->arena, "col + i < %s ? (%s)%s : 0", e->columns, type, at);
    return at;
}

static const char *size_text(Emitter *e, Node n)
{
    int axis = (int)node(e->g, n)->axis;
    bool fixed = e->plan->launch.fixed >> axis & 1;
    return fixed ? arena_format(e->arena, "(long long)%s", e->sizes[axis]) : e->sizes[axis];
}

/* The argument of a scalar parameter. */
static const char *scalar_text(Emitter *e, Node n)
{
    int scalar = 0;
    for (uint32_t i = 0; i < node(e->g, n)->param; i++)
        scalar += e->g->params.data[i].scalar;
    return arg_name(e, ARG_SCALAR, scalar, 0);
}

static const char *compute_text(Emitter *e, Node n, int *precedence)
{
    const NodeInfo *info = node(e->g, n);
    const Load *load = find_load(e, n);
    *precedence = op_info[info->op].precedence;
    if (load) {
        bool choice = load->access == ACCESS_ELEMENT && e->k->ragged;
        *precedence = choice ? 3 : 16;
        return load_text(e, load);
    }
    switch (info->op) {
    case OP_CONST:
        *precedence = 16;
        if (type_is_float(info->type)) {
            *precedence = info->number < 0 || signbit(info->number) ? 14 : 16;
            return float_text(e, info->type, info->number);
        }
        *precedence = info->integer < 0 ? 14 : 16;
        return integer_text(e, info->type, info->integer);
    case OP_PARAM: *precedence = 16; return scalar_text(e, n);
    case OP_INDEX: {
        const char *coord = e->coords[info->axis];
        *precedence = strchr(coord, ' ') ? 12 : 16;
        return coord;
    }
    case OP_SIZE: *precedence = 15; return size_text(e, n);
    case OP_CONVERT: {
        Node from = info->args[0];
        const char *x = node(e->g, from)->op == OP_SIZE ? e->sizes[node(e->g, from)->axis]
                                                        : expression(e, from, 15);
        *precedence = 15;
        return arena_format(e->arena, "(%s)%s", type_cuda(info->type), x);
    }
    case OP_CAST: *precedence = info->dtype == DTYPE_BOOL ? 9 : 15; return cast_text(e, n);
    default: break;
    }
    Type type = node(e->g, info->args[op_info[info->op].arity - 1])->type;
    int column = type == TYPE_F32 ? 0 : type == TYPE_F64 ? 1 : 2;
    return fill_pattern(e, n, op_info[info->op].cuda[column]);
}

const char *expression(Emitter *e, Node n, int precedence)
{
    if (e->local[n.id])
        return node_name(e, n);
    int own = 16;
    const char *text = compute_text(e, n, &own);
    return own < precedence ? arena_format(e->arena, "(%s)", text) : text;
}

const char *store_value(Emitter *e, const char *value, Type type, DType dtype)
{
    Type wanted = dtype_info[dtype].type;
    if (wanted == type || (type_is_float(wanted) && type_is_float(type)))
        return value;
    /* an integer that becomes a narrow float is rounded once, through f64 */
    if (type_is_float(wanted))
        return arena_format(e->arena, "(double)(%s)", value);
    return arena_format(e->arena, "(%s)(%s)", type_cuda(wanted), value);
}

static bool same_as_computed(DType dtype, Type type)
{
    return (dtype == DTYPE_F32 && type == TYPE_F32) || (dtype == DTYPE_F64 && type == TYPE_F64) ||
           (dtype == DTYPE_I64 && type == TYPE_I64) || dtype == DTYPE_BOOL;
}

const char *rounded(Emitter *e, const char *value, Type type, DType dtype)
{
    value = store_value(e, value, type, dtype);
    if (same_as_computed(dtype, type))
        return value;
    return arena_format(e->arena, "as<%s>(%s)", dtype_info[dtype].cuda, value);
}

const char *store_pointer(const Emitter *e, const Store *store)
{
    return store->slot >= 0 ? arg_name(e, ARG_SLOT, store->slot, 0)
                            : arg_name(e, ARG_TENSOR, store->tensor, 0);
}

const char *load_pointer(const Emitter *e, const Load *load)
{
    return load->slot >= 0 ? arg_name(e, ARG_SLOT, load->slot, 0)
                           : arg_name(e, ARG_TENSOR, load->tensor, 0);
}

bool is_column_value(const Emitter *e, Node n)
{
    return (node(e->g, n)->axes & e->k->columns) != 0;
}

bool wants_line(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    switch (info->op) {
    case OP_CONST: case OP_SIZE: case OP_NONE: return false;
    case OP_PARAM: return !e->g->params.data[info->param].scalar;
    case OP_INDEX: return e->users[n.id] > 0 && is_column_value(e, n);
    case OP_CONVERT: {
        Op from = node(e->g, info->args[0])->op;
        return e->users[n.id] > 1 && from != OP_SIZE && from != OP_CONST;
    }
    default: return info->name || e->users[n.id] > 1;
    }
}

const char *identity_text(const Graph *g, Node reduction)
{
    const NodeInfo *info = node(g, reduction);
    bool integer = info->type == TYPE_I64;
    switch (info->op) {
    case OP_MAX_OVER: return integer ? "-9223372036854775807LL - 1" : "-infinity()";
    case OP_MIN_OVER: return integer ? "9223372036854775807LL" : "infinity()";
    case OP_PROD: return "1";
    default: return "0";
    }
}

void emit_accumulate(Emitter *e, Node reduction, const char *into, const char *value)
{
    const NodeInfo *info = node(e->g, reduction);
    const char *kind = info->type == TYPE_I64 ? "int" : "nan";
    switch (info->op) {
    case OP_MAX_OVER: line(e->out, "%s = max_%s(%s, %s);", into, kind, into, value); break;
    case OP_MIN_OVER: line(e->out, "%s = min_%s(%s, %s);", into, kind, into, value); break;
    case OP_PROD: line(e->out, "%s *= %s;", into, value); break;
    default: line(e->out, "%s += %s;", into, value); break;
    }
}

const char *reduce_call(Emitter *e, Node reduction, const char *variable)
{
    Op op = node(e->g, reduction)->op;
    const char *kind = op == OP_MAX_OVER ? "max" : op == OP_MIN_OVER ? "min" : op == OP_PROD ? "prod" : "sum";
    return arena_format(e->arena, "%s_of(%s)", kind, variable);
}
