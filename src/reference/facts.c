/* reference/facts.c: facts about a graph's values before any is computed: which are exact in f32
 * arithmetic, and the range of each. A range holds for f32 arithmetic too, whatever its errors,
 * unless the value is NaN. */
#include "graph/evaluate_op.h"
#include "reference/reference.h"
#include "reference/steps.h"

/* Operations that only choose among their operands or change signs are exact on exact
 * operands. */
static bool rounds(const NodeInfo *info)
{
    const OpClass class = op_info[info->op].class;
    if (!type_is_float(info->type) || class == CLASS_LEAF || info->op == OP_CONVERT ||
        info->op == OP_CAST)
        return false;
    return op_info[info->op].error > 0;
}

bool *find_exact(Arena *arena, const Graph *g)
{
    bool *exact = NEW_ARRAY(arena, bool, g->nodes.count);
    exact[0] = true;
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        exact[id] = !rounds(info);
        for (int i = 0; i < MAX_OPERANDS; i++) exact[id] = exact[id] && exact[info->args[i].id];
    }
    return exact;
}

/* ---- ranges ---- */

static const Range anything = {-HUGE_VAL, HUGE_VAL}, unit = {0, 1}, symmetric = {-1, 1};

static Range at_least(double low)
{
    return (Range){low, HUGE_VAL};
}

static bool is_finite(Range r)
{
    return r.low > -HUGE_VAL && r.high < HUGE_VAL;
}

/* f32 rounds the ends too: a little outwards, to 0 below its normal numbers, to infinity above the
 * largest. */
static double moved_out(double end, double direction)
{
    const double far = end + direction * fabs(end) * 8 * UNIT_F32;
    if (fabs(end) < 0x1p-126) return end * direction > 0 ? direction * 0x1p-126 : 0;
    return far * direction > MAX_F32 ? direction * HUGE_VAL : far;
}

static Range rounded_out(const NodeInfo *info, double low, double high)
{
    const double most = 0x1p62; /* up to here no integer wraps around */
    if (type_is_float(info->type)) return (Range){moved_out(low, -1), moved_out(high, 1)};
    return low >= -most && high <= most ? (Range){low, high} : anything;
}

static Range span(const NodeInfo *info, const double ends[4])
{
    double low = ends[0], high = ends[0];
    for (int i = 1; i < 4; i++) {
        low = fmin(low, ends[i]);
        high = fmax(high, ends[i]);
    }
    return rounded_out(info, low, high);
}

static Range product_range(const NodeInfo *info, Range a, Range b)
{
    if (is_finite(a) && is_finite(b))
        return span(info,
                    (double[]){a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    const bool square = info->args[0].id == info->args[1].id && type_is_float(info->type);
    if (square || (a.low >= 0 && b.low >= 0 && type_is_float(info->type))) return at_least(0);
    return anything;
}

static Range quotient_range(const NodeInfo *info, Range a, Range b)
{
    if (is_finite(a) && (b.low > 0 || b.high < 0))
        return span(info,
                    (double[]){a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
    return a.low >= 0 && b.low >= 0 ? at_least(0) : anything;
}

/* Larger integers may wrap around, so nothing is known of them. */
static Range cast_range(const NodeInfo *info, Range a)
{
    const DType dtype = info->dtype;
    switch (dtype) {
    case DTYPE_BOOL: return unit;
    case DTYPE_I64: return anything;
    case DTYPE_F64: return a;
    default: break;
    }
    const Range r = {dtype_round(dtype, a.low), dtype_round(dtype, a.high)};
    return dtype_is_float(dtype) ? r : (Range){fmin(r.low, 0), fmax(r.high, 0)}; /* NaN gives 0 */
}

static Range stored_range(DType dtype)
{
    switch (dtype) {
    case DTYPE_BOOL: return unit;
    case DTYPE_I64:
    case DTYPE_F64:
    case DTYPE_F32: return anything;
    default: return (Range){dtype_round(dtype, -HUGE_VAL), dtype_round(dtype, HUGE_VAL)};
    }
}

static Range leaf_range(const Graph *g, const NodeInfo *info, const Evaluation *e)
{
    const Param *param = &g->params.data[info->op == OP_PARAM ? info->param : 0];
    double value = 0;
    switch (info->op) {
    case OP_CONST: value = type_is_float(info->type) ? info->number : (double)info->integer; break;
    case OP_SIZE: value = (double)e->sizes.of[info->axis]; break;
    case OP_INDEX: return (Range){0, fmax(0, (double)e->sizes.of[info->axis] - 1)};
    case OP_PARAM:
        if (!param->scalar) return stored_range(param->dtype);
        value = dtype_round(param->dtype, e->scalars[info->param]);
        break;
    default: return anything;
    }
    return isnan(value) ? anything : rounded_out(info, value, value);
}

static Range function_range(const NodeInfo *info, Range a)
{
    switch (info->op) {
    case OP_EXP:
    case OP_EXP2:
    case OP_VAR: return at_least(0);
    case OP_RSQRT: return (Range){0, a.low > 0 ? moved_out(1 / sqrt(a.low), 1) : HUGE_VAL};
    case OP_EXPM1: return at_least(-1);
    case OP_LOG1P: return a.low >= 0 ? at_least(0) : anything;
    case OP_SQRT:
        return (Range){0, a.high < HUGE_VAL ? moved_out(sqrt(fmax(a.high, 0)), 1) : HUGE_VAL};
    case OP_SIN:
    case OP_COS: return symmetric;
    case OP_TANH:
    case OP_ERF:
    case OP_SIGN: return a.low >= 0 ? unit : symmetric;
    case OP_SIGMOID:
    case OP_NOT:
    case OP_AND:
    case OP_OR:
    case OP_ISNAN: return unit;
    case OP_FLOOR: return (Range){floor(a.low), floor(a.high)};
    case OP_CEIL: return (Range){ceil(a.low), ceil(a.high)};
    case OP_ROUND: return (Range){rint(a.low), rint(a.high)};
    case OP_CONVERT: return rounded_out(info, a.low, a.high);
    case OP_CAST: return cast_range(info, a);
    default: return is_comparison(info->op) ? unit : anything;
    }
}

static Range reduction_range(const Graph *g, const NodeInfo *info, Range a, const Sizes *sizes)
{
    const NodeInfo *source = node(g, info->args[0]);
    if (axes_size(sizes, source->axes & ~info->axes) < 1 || !type_is_float(info->type))
        return anything;
    const Combine how = op_combine[info->op];
    const double none = f64_identity(how);
    if (combiner_info[how].rule == RULE_ENDS)
        return (Range){f64_combine(how, none, a.low), f64_combine(how, none, a.high)};
    if (a.low >= 0) return at_least(0);
    return a.high <= 0 && adds_terms(info->op) ? (Range){-HUGE_VAL, 0} : anything;
}

static bool is_even(const Graph *g, Node exponent)
{
    const NodeInfo *info = node(g, exponent);
    return info->op == OP_CONST && type_is_float(info->type) && fmod(info->number, 2) == 0;
}

static Range range_of(const Graph *g, const NodeInfo *info, const Range *known, const Evaluation *e)
{
    const Range a = known[info->args[0].id], b = known[info->args[1].id],
                c = known[info->args[2].id];
    if (op_info[info->op].class == CLASS_LEAF) return leaf_range(g, info, e);
    if (op_info[info->op].class == CLASS_REDUCE && info->op != OP_VAR)
        return reduction_range(g, info, a, &e->sizes);
    switch (info->op) {
    case OP_NEG: return rounded_out(info, -a.high, -a.low);
    case OP_ABS: return a.low >= 0 ? a : rounded_out(info, 0, fmax(-a.low, a.high));
    case OP_ADD: return rounded_out(info, a.low + b.low, a.high + b.high);
    case OP_SUB: return rounded_out(info, a.low - b.high, a.high - b.low);
    case OP_MUL: return product_range(info, a, b);
    case OP_DIV: return quotient_range(info, a, b);
    case OP_POW: return a.low >= 0 || is_even(g, info->args[1]) ? at_least(0) : anything;
    case OP_MIN: return (Range){fmin(a.low, b.low), fmin(a.high, b.high)};
    case OP_MAX: return (Range){fmax(a.low, b.low), fmax(a.high, b.high)};
    case OP_WHERE: return (Range){fmin(b.low, c.low), fmax(b.high, c.high)};
    default: return function_range(info, a);
    }
}

Range *find_ranges(Arena *arena, const Graph *g, const Evaluation *e)
{
    Range *known = NEW_ARRAY(arena, Range, g->nodes.count);
    known[0] = anything;
    for (int id = 1; id < g->nodes.count; id++) {
        const Range r = range_of(g, &g->nodes.data[id], known, e);
        known[id] = isnan(r.low) || isnan(r.high) ? anything : r;
    }
    return known;
}
