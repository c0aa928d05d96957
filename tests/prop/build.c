/* build.c: see build.h. The types follow the language's rules, the intervals ordinary
 * arithmetic; both are written anew here rather than taken from the compiler. */
#include "build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t bits(Draw *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t below(Draw *d, uint32_t limit)
{
    return (uint32_t)((bits(d) >> 32) * limit >> 32);
}

bool chance(Draw *d, uint32_t of, uint32_t in)
{
    return below(d, in) < of;
}

/* ---- names ---- */

static bool is_taken(const Draw *d, const char *name)
{
    for (int i = 0; i < d->values.count; i++)
        if (!strcmp(d->values.data[i]->text, name)) return true;
    for (int i = 0; i < d->sketch->params.count; i++)
        if (!strcmp(d->sketch->params.data[i].name, name)) return true;
    return false;
}

const char *draw_name(Draw *d, const char *stem)
{
    static const char *const nasty[] = {
        "mean",     "max",       "rstd",     "scale",     "index",     "size",    "int",   "float",
        "for",      "double",    "threads",  "row",       "col",       "first",   "tiles", "vec",
        "step",     "threadIdx", "blockDim", "partials",  "M",         "N",       "K",     "bf16",
        "f16",      "T",         "expf",     "half",      "template",  "Sum",     "as",    "store",
        "load_row", "x_",        "long",     "class",     "auto",      "size_t",  "lane",  "warp",
        "t",        "i",         "smem",     "vector",    "rows",      "columns", "team",  "cta",
        "item",     "M_",        "stride",   "x_stride",  "x1_stride", "sqrtf",   "exp",   "powf",
        "graph_",   "partial",   "finish",   "constexpr", "const",     "y",       "v",     "a",
        "b",        "out",       "NULL"};
    for (int i = 0; i < 4 && chance(d, 1, stem ? 8 : 1); i++) {
        const char *name = nasty[below(d, sizeof nasty / sizeof *nasty)];
        if (!is_taken(d, name)) return name;
    }
    return arena_format(d->arena, "%s%d", stem ? stem : "axis", d->values.count);
}

void add_value(Draw *d, Term *t)
{
    *list_push(d->arena, &d->values) = t;
}

/* ---- intervals ---- */

static double least(double a, double b)
{
    return a < b ? a : b;
}
static double most(double a, double b)
{
    return a > b ? a : b;
}
static double magnitude(const Term *t)
{
    return most(fabs(t->low), fabs(t->high));
}

static void set_range(Term *t, double a, double b)
{
    t->low = least(a, b);
    t->high = most(a, b);
}

static void set_product(Term *t, const Term *a, double low, double high)
{
    const double p[] = {a->low * low, a->low * high, a->high * low, a->high * high};
    set_range(t, least(least(p[0], p[1]), least(p[2], p[3])),
              most(most(p[0], p[1]), most(p[2], p[3])));
}

static void range_of_binary(Term *t, char op, const Term *a, const Term *b)
{
    if (op == '+') set_range(t, a->low + b->low, a->high + b->high);
    if (op == '-') set_range(t, a->low - b->high, a->high - b->low);
    if (op == '*') set_product(t, a, b->low, b->high);
    if (op == '/' && b->low * b->high > 0)
        set_product(t, a, 1 / b->high, 1 / b->low);
    else if (op == '/')
        set_range(t, -1e30, 1e30);
}

static void range_of_power(Term *t, const Term *a, const Term *b)
{
    const double p = b->low, high = pow(magnitude(a), p);
    set_range(t, p < 0 ? pow(a->high, p) : 0, p < 0 ? pow(a->low, p) : most(high, 1));
    if (p == 3) t->low = -high;
}

static void range_of_function(Term *t, const char *name, const Term *a)
{
    static const struct {
        const char *name;
        double (*f)(double);
    } rising[] = {{"sqrt", sqrt}, {"exp", exp},    {"exp2", exp2},   {"expm1", expm1},
                  {"log", log},   {"log2", log2},  {"log1p", log1p}, {"floor", floor},
                  {"ceil", ceil}, {"round", rint}, {"tanh", tanh},   {"erf", erf}};
    t->low = a->low;
    t->high = a->high;
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++)
        if (!strcmp(rising[i].name, name)) set_range(t, rising[i].f(a->low), rising[i].f(a->high));
    if (!strcmp(name, "rsqrt")) set_range(t, 1 / sqrt(a->high), 1 / sqrt(a->low));
    if (!strcmp(name, "sigmoid") || t->type == TYPE_BOOL) set_range(t, 0, 1);
    if (!strcmp(name, "sin") || !strcmp(name, "cos") || !strcmp(name, "sign")) set_range(t, -1, 1);
    if (!strcmp(name, "abs"))
        set_range(t, a->low * a->high > 0 ? least(fabs(a->low), fabs(a->high)) : 0, magnitude(a));
    if (!strcmp(name, "relu")) set_range(t, most(a->low, 0), most(a->high, 0));
    if (strstr(name, "lu")) set_range(t, least(t->low, -0.3), most(t->high, 0));
    if (!strcmp(name, "i8") || !strcmp(name, "u8"))
        set_range(t, most(t->low, -128), least(t->high, 255));
    if (strstr(name, "f8")) set_range(t, most(t->low, -57344), least(t->high, 57344));
}

/* ---- terms ---- */

Term *new_term(Draw *d, TermKind kind, const char *text, Type type, AxisSet axes)
{
    Term *t = NEW(d->arena, Term);
    *t = (Term){.kind = kind, .text = text, .type = type, .axes = axes};
    return t;
}

Term *literal(Draw *d, const char *text)
{
    const bool whole = !strpbrk(text, ".ei"); /* i: of inf */
    Term *t = new_term(d, TERM_LITERAL, text, whole ? TYPE_I64 : TYPE_F32, 0);
    t->low = t->high = strtod(text, NULL);
    return t;
}

Term *axis_term(Draw *d, const char *text, int axis)
{
    const AxisSet set = (AxisSet)1 << axis;
    Term *t = new_term(d, TERM_AXIS, text, TYPE_I64, !strcmp(text, "index") ? set : 0);
    const double size = (double)d->sketch->axes[axis].size;
    t->over = set;
    set_range(t, t->axes ? 0 : size, size);
    return t;
}

static Type wider(Type a, Type b)
{
    if (a == TYPE_F64 || b == TYPE_F64) return TYPE_F64;
    return a == TYPE_F32 || b == TYPE_F32 ? TYPE_F32 : TYPE_I64;
}

static Type float_type(Type type)
{
    return type_is_float(type) ? type : TYPE_F32;
}

Term *unary(Draw *d, const char *text, Term *a)
{
    const Type type = text[0] == '!' ? TYPE_BOOL : wider(a->type, TYPE_I64);
    Term *t = new_term(d, TERM_UNARY, text, type, a->axes);
    t->args[t->count++] = a;
    set_range(t, text[0] == '!' ? 0 : -a->low, text[0] == '!' ? 1 : -a->high);
    return t;
}

Term *binary(Draw *d, const char *text, Term *a, Term *b)
{
    const bool power = !strcmp(text, "**"), arithmetic = strchr("+-*/", text[0]) != NULL;
    Type type = arithmetic ? wider(a->type, b->type) : TYPE_BOOL;
    if (power || text[0] == '/') type = float_type(type);
    Term *t = new_term(d, TERM_BINARY, text, type, a->axes | b->axes);
    t->args[t->count++] = a;
    t->args[t->count++] = b;
    t->high = 1;
    if (power)
        range_of_power(t, a, b);
    else if (arithmetic)
        range_of_binary(t, text[0], a, b);
    return t;
}

static Type type_of_call(const char *name, int count, Term *const *args)
{
    DType dtype;
    Type type = args[0]->type;
    if (!strcmp(name, "isnan")) return TYPE_BOOL;
    if (dtype_find(name, &dtype)) {
        const Type cast = dtype_info[dtype].type;
        return cast;
    }
    if (!strcmp(name, "where"))
        return args[1]->type == TYPE_BOOL && args[2]->type == TYPE_BOOL
                   ? TYPE_BOOL
                   : wider(args[1]->type, args[2]->type);
    for (int i = 1; i < count; i++) type = wider(type, args[i]->type);
    type = wider(type, TYPE_I64);
    static const char *const whole[] = {"abs", "sign", "floor", "ceil", "round",
                                        "min", "max",  "clamp", "relu"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(name, whole[i])) return type;
    return float_type(type);
}

Term *call(Draw *d, const char *name, AxisSet over, int count, Term *const *args)
{
    Term *t = new_term(d, TERM_CALL, name, type_of_call(name, count, args), 0);
    t->over = over;
    t->count = count;
    const int first = !strcmp(name, "where");
    set_range(t, args[first]->low, args[first]->high);
    for (int i = 0; i < count; i++) {
        t->args[i] = args[i];
        t->axes |= args[i]->axes;
        if (i > first) set_range(t, least(t->low, args[i]->low), most(t->high, args[i]->high));
    }
    if (!strcmp(name, "pow")) range_of_power(t, args[0], args[1]);
    return t;
}

Term *unary_call(Draw *d, const char *name, Term *a)
{
    Term *t = call(d, name, 0, 1, &a);
    range_of_function(t, name, a);
    return t;
}

Term *reduce(Draw *d, const char *name, AxisSet over, Term *a)
{
    Type type = wider(a->type, TYPE_I64);
    if (!strcmp(name, "mean") || !strcmp(name, "var")) type = float_type(type);
    Term *t = new_term(d, TERM_CALL, name, type, a->axes & ~over);
    double count = 1;
    for (int i = 0; i < d->sketch->axis_count; i++)
        if (over >> i & 1) count *= (double)d->sketch->axes[i].size;
    t->over = over;
    t->args[t->count++] = a;
    set_range(t, a->low, a->high);
    if (!strcmp(name, "sum")) set_range(t, count * a->low, count * a->high);
    if (!strcmp(name, "var")) set_range(t, 0, (a->high - a->low) * (a->high - a->low));
    if (!strcmp(name, "prod")) set_range(t, -1e3, 1e3);
    return t;
}

Term *library(Draw *d, const char *name, AxisSet over, int count, Term *const *args)
{
    Term *t = call(d, name, over, count, args);
    t->type = float_type(args[0]->type);
    if (!strcmp(name, "logsumexp")) t->axes &= ~over;
    set_range(t, -40, 40);
    if (!strcmp(name, "softmax")) set_range(t, 0, 1);
    if (!strcmp(name, "log_softmax") || t->axes != args[0]->axes) set_range(t, -120, 60);
    return t;
}

/* ---- ranges ---- */

Term *positive(Draw *d, Term *a)
{
    if (d->wild || a->low > 1e-2) return a;
    return binary(d, "+", unary_call(d, "abs", a), literal(d, "0.5"));
}

Term *away_from_zero(Draw *d, Term *a)
{
    if (d->wild || a->low > 1e-2 || a->high < -1e-2) return a;
    return binary(d, "+", binary(d, "*", a, a), literal(d, "1.0"));
}

Term *within(Draw *d, Term *a, double limit)
{
    if (d->wild || magnitude(a) <= limit) return a;
    if (chance(d, 1, 2)) return unary_call(d, "tanh", a);
    return call(d, "clamp", 0, 3, (Term *[]){a, literal(d, "-3.0"), literal(d, "3.0")});
}

Term *near_one(Draw *d, Term *a)
{
    if (!type_is_float(a->type) && magnitude(a) <= 1) return a;
    return binary(d, "+", literal(d, "1.0"),
                  binary(d, "*", literal(d, "0.01"), unary_call(d, "tanh", a)));
}

Term *tame(Draw *d, Term *a)
{
    if (d->wild || !type_is_float(a->type) || magnitude(a) <= 1e4) return a;
    if (chance(d, 1, 2)) return unary_call(d, "tanh", binary(d, "*", a, literal(d, "1e-3")));
    return binary(d, "/", a, binary(d, "+", literal(d, "1.0"), unary_call(d, "abs", a)));
}
