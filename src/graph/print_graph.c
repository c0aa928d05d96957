/* graph/print_graph.c: a graph as text: the dump of --emit=graph, and single expressions in the
 * language's own syntax, which diagnostics and the comments above kernels show. */
#include "graph/graph.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Expressions are for reading: what is nested deeper or is longer than this prints as "...". As
 * source, with a depth below 0, they are complete, and so are their numbers. */
enum {
    TEXT_DEPTH = 100,
    BRIEF_DEPTH = 16,
    NAME_DEPTH = 3,
    TEXT_LENGTH = 2000,
    AS_SOURCE = -(1 << 30)
};

/* Precedences of the language, loosest first. */
enum {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_EQUAL,
    LEVEL_COMPARE,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_UNARY,
    LEVEL_POWER,
    LEVEL_ATOM
};

static void put_axes(Text *out, const Graph *g, AxisSet axes, const char *comma)
{
    const char *separator = "";
    for (int i = 0; i < g->axis_count; i++) {
        if (!(axes >> i & 1)) continue;
        text_print(out, "%s%s", separator, g->axes[i].name);
        separator = comma;
    }
}

const char *axes_text(Arena *arena, const Graph *g, AxisSet axes)
{
    Text *out = text_new(arena);
    text_print(out, "[");
    put_axes(out, g, axes, ", ");
    text_print(out, "]");
    return text_string(out);
}

/* The fewest digits that give a number but for rounding of f64: a coefficient that was computed
 * is 0.1, not 0.10000000000000001. */
static void precise_digits(char digits[NUMBER_DIGITS], double number)
{
    const double rounding = 4.5e-16;
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, NUMBER_DIGITS, "%.*g", precision, number);
        if (fabs(strtod(digits, NULL) - number) <= rounding * fabs(number)) return;
    }
}

/* Digits as %g writes them, as a person does: 30.0, 0.0001, 1e-5. */
static void put_digits(Text *out, const char *digits)
{
    const double number = strtod(digits, NULL);
    const char *exponent = strchr(digits, 'e');
    const int power = exponent ? atoi(exponent + 1) : 0;
    if (exponent && (power < 0 || power > 15))
        text_print(out, "%.*se%d", (int)(exponent - digits), digits, power);
    else if (exponent)
        text_print(out, "%.1f", number);
    else
        text_print(out, "%s%s", digits, strchr(digits, '.') ? "" : ".0");
}

/* The shortest literal that reads back as the same value of its type, always with a point
 * or an exponent: 2.0, 1e-5, 0.044715. */
static void put_number(Text *out, Type type, double number, bool precise)
{
    if (isnan(number) || isinf(number)) {
        text_print(out, "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        return;
    }
    char digits[NUMBER_DIGITS];
    if (precise) {
        precise_digits(digits, number);
        put_digits(out, digits);
        return;
    }
    shortest_digits(digits, number, type == TYPE_F32);
    char *exponent = strchr(digits, 'e');
    if (exponent) {
        int power = atoi(exponent + 1);
        *exponent = '\0';
        text_print(out, "%se%d", digits, power);
        return;
    }
    text_print(out, "%s%s", digits, strchr(digits, '.') ? "" : ".0");
}

void put_literal(Text *out, Type type, double number)
{
    char digits[NUMBER_DIGITS];
    shortest_digits(digits, number, type == TYPE_F32);
    if (isfinite(number))
        put_digits(out, digits);
    else
        put_number(out, type, number, false);
}

static void put_constant(Text *out, const NodeInfo *info, bool precise)
{
    if (info->type == TYPE_BOOL)
        text_print(out, "%s", info->integer ? "true" : "false");
    else if (info->type == TYPE_I64)
        text_print(out, "%lld", (long long)info->integer);
    else
        put_number(out, info->type, info->number, precise);
}

/* ---- expressions ---- */

static int operator_level(Op op)
{
    switch (op) {
    case OP_OR: return LEVEL_OR;
    case OP_AND: return LEVEL_AND;
    case OP_EQ:
    case OP_NE: return LEVEL_EQUAL;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return LEVEL_COMPARE;
    case OP_ADD:
    case OP_SUB: return LEVEL_SUM;
    case OP_MUL:
    case OP_DIV: return LEVEL_PRODUCT;
    case OP_NEG:
    case OP_NOT: return LEVEL_UNARY;
    case OP_POW: return LEVEL_POWER;
    default: return LEVEL_ATOM;
    }
}

static bool is_negative(const NodeInfo *info)
{
    if (info->op != OP_CONST || info->type == TYPE_BOOL) return false;
    return info->type == TYPE_I64 ? info->integer < 0 : signbit(info->number) != 0;
}

static void put_node(Text *out, const Graph *g, Node n, int level, int depth, bool expand);

static void put_binary(Text *out, const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    int level = operator_level(info->op);
    bool chains = level == LEVEL_SUM || level == LEVEL_PRODUCT || level <= LEVEL_AND;
    int right = level == LEVEL_POWER ? LEVEL_UNARY : level + 1;
    /* ** groups to the right, where a sign needs no parentheses; comparisons do not chain;
     * everything else groups to the left. */
    put_node(out, g, info->args[0], chains ? level : level + 1, depth, false);
    text_print(out, " %s ", op_info[info->op].text);
    const NodeInfo *exponent = node(g, info->args[1]);
    const bool whole = depth < 0 && level == LEVEL_POWER && exponent->op == OP_CONST &&
                       exponent->number == floor(exponent->number) && fabs(exponent->number) < 1e6;
    if (whole)
        text_print(out, "%.0f", exponent->number);
    else
        put_node(out, g, info->args[1], right, depth, false);
}

static void put_call(Text *out, const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    text_print(out, "%s",
               info->op == OP_CAST ? dtype_info[info->dtype].fuse : op_info[info->op].text);
    if (op_info[info->op].class == CLASS_REDUCE)
        text_print(out, "%s", axes_text(out->arena, g, info->reduced));
    text_print(out, "(");
    for (int i = 0; i < op_info[info->op].arity; i++) {
        text_print(out, "%s", i ? ", " : "");
        put_node(out, g, info->args[i], LEVEL_OR, depth, false);
    }
    text_print(out, ")");
}

static void put_expanded(Text *out, const Graph *g, Node n, int depth)
{
    const NodeInfo *info = node(g, n);
    switch (info->op) {
    case OP_CONST: put_constant(out, info, depth < 0); break;
    case OP_PARAM: text_print(out, "%s", g->params.data[info->param].name); break;
    case OP_INDEX:
    case OP_SIZE:
        text_print(out, "%s(%s)", op_info[info->op].text, g->axes[info->axis].name);
        break;
    case OP_NEG:
    case OP_NOT:
        text_print(out, "%s", op_info[info->op].text);
        put_node(out, g, info->args[0], LEVEL_UNARY, depth, false);
        break;
    default:
        if (operator_level(info->op) == LEVEL_ATOM)
            put_call(out, g, n, depth);
        else
            put_binary(out, g, n, depth);
    }
}

/* Prints a node where operators looser than `level` need parentheses. */
static void put_node(Text *out, const Graph *g, Node n, int level, int depth, bool expand)
{
    /* Conversions are implicit in the language. */
    while (node(g, n)->op == OP_CONVERT && (expand || !node(g, n)->name)) n = arg(g, n, 0);
    const NodeInfo *info = node(g, n);
    if (info->name && !expand) {
        text_print(out, "%s", info->name);
        return;
    }
    if (depth >= TEXT_DEPTH || (depth >= 0 && out->length > TEXT_LENGTH)) {
        text_print(out, "...");
        return;
    }
    int own = is_negative(info) ? LEVEL_UNARY : operator_level(info->op);
    text_print(out, "%s", own < level ? "(" : "");
    put_expanded(out, g, n, depth + 1);
    text_print(out, "%s", own < level ? ")" : "");
}

const char *node_text(Arena *arena, const Graph *g, Node n, bool expand_top)
{
    Text *out = text_new(arena);
    put_node(out, g, n, LEVEL_OR, 0, expand_top);
    return text_string(out);
}

const char *source_text(Arena *arena, const Graph *g, Node n)
{
    Text *out = text_new(arena);
    put_node(out, g, n, LEVEL_OR, AS_SOURCE, true);
    return text_string(out);
}

const char *brief_text(Arena *arena, const Graph *g, Node n)
{
    Text *out = text_new(arena);
    put_node(out, g, n, LEVEL_OR, TEXT_DEPTH - BRIEF_DEPTH, true);
    return text_string(out);
}

const char *value_name(Arena *arena, const Graph *g, Node n)
{
    if (node(g, n)->name) return node(g, n)->name;
    Text *out = text_new(arena);
    put_node(out, g, n, LEVEL_OR, TEXT_DEPTH - NAME_DEPTH, true);
    return text_string(out);
}

/* ---- the dump ---- */

/* "mul", "exp", "sum[N]": operators by their names, all else as it is spelled. */
static void put_op(Text *out, const Graph *g, const NodeInfo *info)
{
    const OpInfo *op = &op_info[info->op];
    if (isalpha((unsigned char)op->text[0]))
        text_print(out, "%s", op->text);
    else
        for (const char *c = op->name; *c; c++) text_print(out, "%c", tolower((unsigned char)*c));
    if (op->class == CLASS_REDUCE) {
        text_print(out, "[");
        put_axes(out, g, info->reduced, ",");
        text_print(out, "]");
    }
}

static void put_payload(Text *out, const Graph *g, const NodeInfo *info)
{
    text_print(out, " ");
    if (info->op == OP_CONST)
        put_constant(out, info, false);
    else if (info->op == OP_PARAM)
        text_print(out, "%s%s", dtype_info[g->params.data[info->param].dtype].fuse,
                   g->params.data[info->param].scalar ? " scalar" : "");
    else
        text_print(out, "%s", g->axes[info->axis].name);
}

static void put_typed(Text *out, const Graph *g, const char *type, AxisSet axes)
{
    text_print(out, "%s[", type);
    put_axes(out, g, axes, ",");
    text_print(out, "]");
}

static void print_node(Text *out, const Graph *g, uint32_t id)
{
    const NodeInfo *info = &g->nodes.data[id];
    text_print(out, "%%%u ", id);
    put_typed(out, g, type_name(info->type), info->axes);
    text_print(out, "%s%s = ", info->name ? " " : "", info->name ? info->name : "");
    put_op(out, g, info);
    if (info->op == OP_CAST) text_print(out, " %s", dtype_info[info->dtype].fuse);
    if (op_info[info->op].class == CLASS_LEAF) put_payload(out, g, info);
    for (int i = 0; i < op_info[info->op].arity; i++) text_print(out, " %%%u", info->args[i].id);
    text_print(out, "\n");
}

static void print_head(Text *out, const Graph *g)
{
    text_print(out, "graph %s[", g->name ? g->name : "");
    for (int i = 0; i < g->axis_count; i++) {
        text_print(out, "%s%s", i ? ", " : "", g->axes[i].name);
        if (g->axes[i].size >= 0) text_print(out, " = %lld", (long long)g->axes[i].size);
    }
    text_print(out, "]\n");
}

void print_graph(Text *out, const Graph *g)
{
    print_head(out, g);
    for (uint32_t id = 1; id < (uint32_t)g->nodes.count; id++) print_node(out, g, id);
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *output = &g->outputs.data[i];
        if (!output->value.id) continue;
        text_print(out, "%s ", output->name);
        put_typed(out, g, dtype_info[output->dtype].fuse, output->axes);
        text_print(out, " = %%%u\n", output->value.id);
    }
}
