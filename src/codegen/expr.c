/* codegen/expr.c: expressions of generated CUDA. An expression is one line for each binding, in the
 * order and with the grouping of the program, so that its rounding is the program's. */
#include "codegen/emit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *float_text(Emitter *e, Type type, double value)
{
    if (type == TYPE_F32) value = (float)value;
    if (isnan(value)) return "not_a_number()";
    if (isinf(value)) return value > 0 ? "infinity()" : "-infinity()";
    char digits[NUMBER_DIGITS];
    shortest_digits(digits, value, type == TYPE_F32);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    return arena_format(e->arena, "%s%s%s", digits, point, type == TYPE_F32 ? "f" : "");
}

/* `wide`: the other operand is no variable either, and the text must be a long long all the
 * same. */
static const char *integer_text(Emitter *e, Type type, int64_t value, bool wide)
{
    if (type == TYPE_BOOL) return value ? "true" : "false";
    if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
    bool small = value >= INT32_MIN && value <= INT32_MAX && !wide;
    return arena_format(e->arena, small ? "%" PRId64 : "%" PRId64 "LL", value);
}

const char *product_text(Emitter *e, AxisSet axes)
{
    NameList factors = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (axes >> i & 1) *list_push(e->arena, &factors) = e->sizes[i];
    return join(e->arena, &factors, " * ");
}

const char *count_text(Emitter *e, AxisSet axes)
{
    const char *product = product_text(e, axes);
    return axes & (axes - 1) ? arena_format(e->arena, "(%s)", product) : product;
}

/* A cast to an integer of 32 bits or fewer, as such. */
static const char *narrow_text(Emitter *e, const NodeInfo *info)
{
    const NodeInfo *from = node(e->g, info->args[0]);
    const char *x = expression(e, info->args[0], 0), *type = dtype_info[info->dtype].cuda;
    if (from->type == TYPE_F32) return arena_format(e->arena, "whole_as<%s>(%s)", type, x);
    if (from->type == TYPE_F64) return arena_format(e->arena, "as<%s>(whole(%s))", type, x);
    return arena_format(e->arena, "as<%s>(%s)", type, x);
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
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2:
        return arena_format(e->arena, floats ? "(float)as<%s>(%s)" : "(float)as<%s>((double)(%s))",
                            dtype_info[info->dtype].cuda, x);
    case DTYPE_I64: return arena_format(e->arena, floats ? "whole(%s)" : "(long long)(%s)", x);
    default: return arena_format(e->arena, "(long long)%s", narrow_text(e, info));
    }
}

/* Fills a pattern of graph/ops.def. Operators parenthesize operands that bind less tightly, and
 * on the right also those that bind alike, so that the grouping is the program's. */
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
        bool infix =
            op->class == CLASS_BINARY || op->class == CLASS_UNARY || node(e->g, n)->op == OP_WHERE;
        bool tighter = which > 0 || op->class == CLASS_UNARY || node(e->g, n)->op == OP_WHERE;
        int need = infix ? op->precedence + tighter : 0;
        Node operand = arg(e->g, n, which);
        const NodeInfo *info = node(e->g, operand);
        bool chosen =
            node(e->g, n)->op == OP_WHERE && info->op == OP_CONST && info->type == TYPE_I64;
        text_print(text, "%s",
                   chosen ? integer_text(e, TYPE_I64, info->integer, true)
                          : expression(e, operand, need));
    }
    return text_string(text);
}

/* Of the two phases of neighbouring rows the first widens by instructions of its own, too: the
 * compiler takes two for every other element. */
static bool widens_first(const Kernel *k)
{
    enum { TWO = 2 };
    return k->beside && k->phases == TWO;
}

/* Each phase by other instructions than the phase before. */
static const char *widener(const Emitter *e, const Load *load)
{
    const int after = e->phase - load->first_phase;
    if (load->dtype == DTYPE_F16) return "widen_half_again";
    return after % 2 == 0 && (after > 0 || widens_first(e->k)) ? "widen_anew" : "widen_again";
}

static const char *vector_element(Emitter *e, const Load *load)
{
    const char *v = arena_format(e->arena, "%s_v", load->name);
    if (is_across(e->k, load)) return arena_format(e->arena, "%s[i]", v);
    if (load->widening == WIDENED_ALIKE) return arena_format(e->arena, "widen_once(%s[t], i)", v);
    if (load->widening == WIDENED_ANEW &&
        (is_hoisted(load) || widens_first(e->k) || e->phase > load->first_phase))
        return arena_format(e->arena, "%s(%s[t], i)", widener(e, load), v);
    const char *element =
        arena_format(e->arena, is_resident(load) || e->ahead ? "%s[t][i]" : "%s[i]", v);
    return load->widening == WIDENED_BY_CVT ? arena_format(e->arena, "widen_by_cvt(%s)", element)
                                            : element;
}

const Load *find_load(const Emitter *e, Node n)
{
    return load_of(e->k, n);
}

/* Whether a load may lie outside the row. The loop over a streamed row ends with its columns, which
 * are whole vectors. */
static bool may_be_outside(const Emitter *e, const Load *load)
{
    return load->access == ACCESS_ELEMENT && is_ragged(e->k) && !is_streamed(e->k);
}

/* An element of a tensor or slot, read at its place in memory. */
static const char *load_text(Emitter *e, const Load *load)
{
    const char *pointer = load->slot >= 0 ? arg_name(e, ARG_SLOT, load->slot, 0)
                                          : arg_name(e, ARG_TENSOR, load->tensor, 0);
    const char *type = type_cuda(dtype_info[load->dtype].type);
    if (load->access == ACCESS_VECTOR) return vector_element(e, load);
    const char *chosen = choose_value(e, load);
    if (chosen) return chosen;
    const char *at = element(e, pointer, load->tensor, load->axes);
    if (may_be_outside(e, load))
        return arena_format(e->arena, "%s < %s ? (%s)%s : 0",
                            is_vector_value(e, load->node) ? "col" : "col + i", e->end, type, at);
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
    for (uint32_t i = 0; i < node(e->g, n)->param; i++) scalar += e->g->params.data[i].scalar;
    return arg_name(e, ARG_SCALAR, scalar, 0);
}

/* Whether n divides each element by a number that the text states and that is no power of two. The
 * compiler's own division has a branch for odd cases, and would take longer than the rest of the
 * element's arithmetic. */
bool divides_by_constant(const Emitter *e, Node n)
{
    const NodeInfo *divisor = node(e->g, arg(e->g, n, 1));
    double by = divisor->op == OP_CONST ? divisor->number : 0;
    if (divisor->op == OP_CONVERT && node(e->g, divisor->args[0])->op == OP_SIZE) {
        uint32_t axis = (uint32_t)node(e->g, divisor->args[0])->axis;
        bool fixed = e->plan->launch.fixed >> axis & 1;
        by = fixed ? (double)(float)e->plan->analysis->sizes.of[axis] : 0;
    }
    int exponent;
    double fraction = fabs(frexp(by, &exponent));
    bool finite = fraction > 0.5 && fraction < 1; /* neither a power of two, 0 nor NaN */
    bool plain = finite && exponent > -100 && exponent < 100;
    return node(e->g, n)->type == TYPE_F32 && plain && is_column_value(e, n);
}

/* The size of a row axis has so many bits at most: check_sizes() in compile.c. */
enum { SIZE_BITS = 59, MOST_BITS = 62 };

static int bits_of(uint64_t most)
{
    return most <= 1 ? 0 : 64 - __builtin_clzll(most - 1);
}

static int bits_of_size(const Emitter *e, AxisSet axes)
{
    if (!axes_within(axes, e->plan->launch.fixed)) return SIZE_BITS;
    return bits_of((uint64_t)axes_size(&e->plan->analysis->sizes, axes));
}

static int bits_of_dtype(DType dtype)
{
    int bytes = dtype_info[dtype].bytes;
    return dtype == DTYPE_BOOL ? 0 : bytes == 8 ? MOST_BITS + 1 : 8 * bytes;
}

/* An integer's magnitude is at most 2 to this power; above MOST_BITS: it may wrap around. The
 * operands' magnitudes are known. */
static int magnitude_bits(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    int bits[MAX_OPERANDS] = {0}, arity = op_info[info->op].arity;
    if (info->type == TYPE_BOOL) return 0;
    if (info->type != TYPE_I64) return MOST_BITS + 1;
    for (int i = 0; i < arity; i++) bits[i] = e->bits[info->args[i].id];
    int larger = bits[0] > bits[1] ? bits[0] : bits[1], own = MOST_BITS + 1;
    switch (info->op) {
    case OP_CONST:
        own = bits_of(info->integer < 0 ? 0 - (uint64_t)info->integer : (uint64_t)info->integer);
        break;
    case OP_INDEX:
    case OP_SIZE: own = bits_of_size(e, (AxisSet)1 << info->axis); break;
    case OP_PARAM: own = bits_of_dtype(e->g->params.data[info->param].dtype); break;
    case OP_CAST: own = bits_of_dtype(info->dtype); break;
    case OP_CONVERT:
    case OP_ABS:
    case OP_NEG: own = bits[0]; break;
    case OP_SIGN: own = 0; break;
    case OP_MIN:
    case OP_MAX: own = larger; break;
    case OP_WHERE: own = bits[1] > bits[2] ? bits[1] : bits[2]; break;
    case OP_ADD:
    case OP_SUB: own = larger + 1; break;
    case OP_MUL: own = bits[0] + bits[1]; break;
    case OP_SUM: own = bits[0] + bits_of_size(e, info->reduced); break;
    default: break; /* the maximum of nothing is the smallest i64 */
    }
    return own > MOST_BITS ? MOST_BITS + 1 : own;
}

/* Finds the magnitudes of all unknown nodes up to n first; operands come before users. */
static bool may_wrap(Emitter *e, Node n)
{
    for (; e->bits_known <= n.id; e->bits_known++)
        e->bits[e->bits_known] = magnitude_bits(e, (Node){e->bits_known});
    return e->bits[n.id] > MOST_BITS;
}

/* The pattern of an operation that wraps around, as signed operators of C++ do not; NULL: the
 * operation has none. */
static const char *wrapping_pattern(Op op)
{
    switch (op) {
    case OP_NEG: return "wrap_neg($0)";
    case OP_ADD: return "wrap_add($0, $1)";
    case OP_SUB: return "wrap_sub($0, $1)";
    case OP_MUL: return "wrap_mul($0, $1)";
    default: return NULL;
    }
}

/* A logarithm that needs no variable: what rounds it to an integer takes it from the exponent. */
static bool is_log2_alone(const Emitter *e, Node n)
{
    return node(e->g, n)->op == OP_LOG2 && node(e->g, n)->type == TYPE_F32 && !e->local[n.id];
}

bool is_inverted(const Emitter *e, Node n)
{
    const InnerReduction *r = inner_of(e->k, n);
    return r && r->inverse;
}

/* Of a sum; where a thread has several, each is inverted where it is needed. */
static const char *inverse_text(Emitter *e, Node sum)
{
    const char *known = e->inverses[sum.id];
    return known ? known : arena_format(e->arena, "quick_inverse(%s)", expression(e, sum, 0));
}

/* Whether n divides what was an integer by a constant of at least 1: no quotient is infinite. */
static bool divides_whole(const Emitter *e, Node n)
{
    const NodeInfo *x = node(e->g, arg(e->g, n, 0)), *by = node(e->g, arg(e->g, n, 1));
    const bool whole = x->op == OP_CONVERT && node(e->g, x->args[0])->type == TYPE_I64;
    return whole && (by->op != OP_CONST || fabs(by->number) >= 1);
}

/* A division as a call. */
static const char *quotient_text(Emitter *e, Node n, const char *function)
{
    return arena_format(e->arena, "%s(%s, %s)", function, expression(e, arg(e->g, n, 0), 0),
                        expression(e, arg(e->g, n, 1), 0));
}

static const char *compute_text(Emitter *e, Node n, int *precedence)
{
    const NodeInfo *info = node(e->g, n);
    const Load *load = find_load(e, n);
    const char *lone = lone_addition(e, n);
    *precedence = op_info[info->op].precedence;
    if (load) {
        const char *text = load_text(e, load);
        *precedence = strchr(text, '?') ? 3 : 16;
        return text;
    }
    switch (info->op) {
    case OP_CONST:
        *precedence = 16;
        if (type_is_float(info->type)) {
            *precedence = info->number < 0 || signbit(info->number) ? 14 : 16;
            return float_text(e, info->type, info->number);
        }
        *precedence = info->integer < 0 ? 14 : 16;
        return integer_text(e, info->type, info->integer, false);
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
    case OP_EXP:
        if (info->type == TYPE_F32 && node(e->g, info->args[0])->op == OP_SUB)
            return fill_pattern(e, n, "quick_exp($0)"); /* as exact as the difference is */
        break;
    case OP_MUL:
        for (int k = 0; k < 2; k++)
            if (scale_of_centred(e, info->args[k]).id) {
                *precedence = 16;
                return scaled_text(e, info->args[k], info->args[1 - k]);
            }
        break;
    case OP_CEIL:
    case OP_FLOOR:
        if (is_log2_alone(e, info->args[0])) {
            *precedence = 16;
            return fill_pattern(e, info->args[0],
                                info->op == OP_CEIL ? "ceil_log2($0)" : "floor_log2($0)");
        }
        break;
    case OP_ADD:
    case OP_SUB:
        if (mean_rest(e, n))
            return fill_pattern(e, n, arena_format(e->arena, "$0 - $1 - %s", mean_rest(e, n)));
        if (!lone) break;
        *precedence = 16;
        return fill_pattern(e, n, lone);
    case OP_DIV:
        if (divides_by_constant(e, n)) {
            *precedence = 16;
            return quotient_text(e, n, divides_whole(e, n) ? "whole_quotient" : "quotient");
        }
        if (is_column_value(e, n) && !is_vector_value(e, n) && e->divisors[info->args[1].id] &&
            info->type == TYPE_F32)
            return arena_format(e->arena, "%s / %s", expression(e, info->args[0], *precedence),
                                e->divisors[info->args[1].id]);
        if (e->repeated[n.id]) break;
        if (info->type == TYPE_F32 && is_at_least_one(e->g, info->args[1])) {
            *precedence = 16;
            return quotient_text(e, n, "quick_quotient");
        }
        if (!is_inverted(e, info->args[1]) || !is_column_value(e, n)) break;
        return arena_format(e->arena, "%s * %s",
                            expression(e, info->args[0], op_info[OP_MUL].precedence),
                            inverse_text(e, info->args[1]));
    default:
        if (compares_place(e, n)) return place_text(e, n);
        break;
    }
    Type type = node(e->g, info->args[op_info[info->op].arity - 1])->type;
    int column = type == TYPE_F32 ? 0 : type == TYPE_F64 ? 1 : 2;
    const char *wrapping = type == TYPE_I64 && may_wrap(e, n) ? wrapping_pattern(info->op) : NULL;
    if (wrapping) *precedence = 16;
    return fill_pattern(e, n, wrapping ? wrapping : op_info[info->op].cuda[column]);
}

const char *expression(Emitter *e, Node n, int precedence)
{
    if (e->outside && is_column_value(e, n)) n = e->k->window->outside[n.id];
    if (e->local[n.id] && !(e->outside && is_kept(e, n))) return variable(e, n);
    int own = 16;
    const char *text = compute_text(e, n, &own);
    return own < precedence ? arena_format(e->arena, "(%s)", text) : text;
}

const char *store_value(Emitter *e, const char *value, Type type, DType dtype)
{
    Type wanted = dtype_info[dtype].type;
    if (wanted == type || (type_is_float(wanted) && type_is_float(type))) return value;
    /* An integer of up to 2^53 that becomes a narrow float is rounded once, through f64. */
    if (wanted == TYPE_F32 && dtype != DTYPE_F32) wanted = TYPE_F64;
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
    if (same_as_computed(dtype, type)) return value;
    return arena_format(e->arena, "as<%s>(%s)", dtype_info[dtype].cuda, value);
}

/* Of an integer that the program itself makes as narrow as what is stored. */
static bool is_narrow(const Emitter *e, const Store *store)
{
    const NodeInfo *info = node(e->g, store->node);
    const bool cast = info->op == OP_CAST && info->type == TYPE_I64 && info->dtype != DTYPE_I64;
    return cast && info->dtype == store->dtype && !e->local[store->node.id];
}

const char *stored_value(Emitter *e, const Store *store)
{
    const NodeInfo *info = node(e->g, store->node);
    if (is_narrow(e, store)) return narrow_text(e, info);
    return rounded(e, expression(e, store->node, 0), info->type, store->dtype);
}

const char *value_of_vector(Emitter *e, const Store *store)
{
    const NodeInfo *info = node(e->g, store->node);
    if (is_narrow(e, store)) return narrow_text(e, info);
    return store_value(e, expression(e, store->node, 0), info->type, store->dtype);
}

bool is_column_value(const Emitter *e, Node n)
{
    return (node(e->g, n)->axes & e->k->columns) != 0;
}

bool wants_line(const Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    switch (info->op) {
    case OP_CONST:
    case OP_SIZE:
    case OP_NONE: return false;
    case OP_SUB:
        return (info->name || e->users[n.id] > 1 || e->serves[n.id]) && !scale_of_centred(e, n).id;
    case OP_PARAM: return !e->g->params.data[info->param].scalar;
    case OP_INDEX: return e->users[n.id] > 0 && is_column_value(e, n);
    case OP_CONVERT: {
        Op from = node(e->g, info->args[0])->op;
        return (e->users[n.id] > 1 && from != OP_SIZE && from != OP_CONST) || e->breaks[n.id];
    }
    default:
        return info->name || e->users[n.id] > 1 || e->serves[n.id] || e->breaks[n.id] ||
               is_kept(e, n);
    }
}

const char *identity_text(const Graph *g, Node reduction)
{
    const CombinerInfo *how = combiner_of(g, reduction);
    return node(g, reduction)->type == TYPE_I64 ? how->identity_int : how->identity_float;
}

void emit_accumulate(Emitter *e, Node reduction, const char *into, const char *value)
{
    const CombinerInfo *how = combiner_of(e->g, reduction);
    bool integer = node(e->g, reduction)->type == TYPE_I64;
    const char *wraps = integer && may_wrap(e, reduction) ? how->ints_wrap : how->ints;
    const char *const operands[] = {into, value};
    Text *text = text_new(e->arena);
    for (const char *p = integer ? wraps : how->floats; *p; p++)
        if (*p == '$')
            text_print(text, "%s", operands[*++p - '0']);
        else
            text_put(text, p, 1);
    line(e->out, "%s;", text_string(text));
}

const char *name_after(Emitter *e, Node n, const char *end)
{
    const char *name = node_name(e, n);
    int length = (int)strlen(name);
    while (length > 1 && name[length - 1] == '_') length--;
    return unique_name(e, arena_format(e->arena, "%.*s%s", length, name, end));
}
