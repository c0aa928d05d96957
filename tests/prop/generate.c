/* generate.c: see generate.h. A program grows statement by statement: each combines
 * values that exist, of any axes, by one of the recipes below. Beside every term goes an
 * interval that holds its value for usual inputs, so that most programs stay where f32 is
 * tight; one in eight does not care. */
#include "build.h"

#include <math.h>
#include <string.h>

/* ---- sizes ---- */

static int64_t draw_size(Draw *d)
{
    static const int sizes[] = {1,   2,   3,   4,    5,    7,    8,    9,    11,   13,
                                15,  16,  17,  23,   31,   32,   33,   48,   63,   64,
                                65,  96,  127, 128,  129,  255,  256,  257,  320,  511,
                                512, 513, 768, 1000, 1023, 1024, 1025, 2047, 2049, 4099};
    if (chance(d, 1, 40)) return 0;
    if (chance(d, 1, 12)) return 1;
    return sizes[below(d, sizeof sizes / sizeof *sizes)];
}

/* Few groups of many short rows: so many that their sums are in parts. */
static void draw_groups(Draw *d)
{
    SketchAxis *axes = d->sketch->axes;
    int last = d->sketch->axis_count - 1;
    axes[last].size = 8 + (int64_t)below(d, 32);
    axes[last - 1].size = 200 + (int64_t)below(d, 500);
    axes[last - 2].size = 1 + (int64_t)below(d, 3);
    for (int i = 0; i < last - 2; i++) axes[i].size = 1;
}

static void draw_axes(Draw *d, int64_t elements)
{
    static const char *const names[] = {"B", "H", "Q", "K", "M", "N", "S", "C"};
    Sketch *s = d->sketch;
    s->axis_count = 1 + (int)below(d, 4);
    if (chance(d, 1, 2)) s->axis_count = 2;
    int first = (int)below(d, 3);
    for (int i = 0; i < s->axis_count; i++, first++)
        s->axes[i] = (SketchAxis){chance(d, 1, 8) ? draw_name(d, NULL) : names[first], 1};
    int64_t left = elements;
    for (int i = 0; i < s->axis_count; i++) {
        int64_t size = draw_size(d);
        while (size > left) size /= 2 + (int64_t)below(d, 4);
        /* the fastest axes are drawn first: long rows and few of them, mostly */
        s->axes[s->axis_count - 1 - i].size = size;
        left /= size > 1 ? size : 1;
    }
    if (s->axis_count > 2 && chance(d, 2, 3)) draw_groups(d);
    for (int i = 0; i < s->axis_count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(s->axes[i].name, s->axes[k].name))
                s->axes[i].name = arena_format(d->arena, "axis%d", i);
}

static AxisSet all_axes(const Draw *d)
{
    return ((AxisSet)1 << d->sketch->axis_count) - 1;
}

/* Suffixes, prefixes, single axes, all, and any. */
static AxisSet draw_set(Draw *d, AxisSet from)
{
    const AxisSet all = all_axes(d);
    const uint32_t cut = below(d, (uint32_t)d->sketch->axis_count + 1);
    AxisSet set = 0;
    switch (below(d, 6)) {
    case 0:
    case 1: set = all & ~((1U << cut) - 1); break;
    case 2: set = (1U << cut) - 1; break;
    case 3: set = 1U << below(d, (uint32_t)d->sketch->axis_count); break;
    case 4: set = all; break;
    default: set = all & (AxisSet)bits(d); break;
    }
    return set & from;
}

/* ---- inputs ---- */

static DType draw_dtype(Draw *d)
{
    static const DType dtypes[] = {DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_BF16,   DTYPE_BF16,
                                   DTYPE_F16, DTYPE_F16, DTYPE_F64, DTYPE_F8E4M3, DTYPE_F8E5M2,
                                   DTYPE_I64, DTYPE_I32, DTYPE_I8,  DTYPE_U8,     DTYPE_BOOL};
    return dtypes[below(d, sizeof dtypes / sizeof *dtypes)];
}

static const char *draw_default(Draw *d, DType dtype)
{
    static const char *const floats[] = {"1e-5", "0.5", "1", "-2.25", "3"};
    static const char *const integers[] = {"1", "2", "5"};
    if (dtype == DTYPE_BOOL) return chance(d, 1, 2) ? "true" : "false";
    return dtype_is_float(dtype) ? floats[below(d, 5)] : integers[below(d, 3)];
}

static void add_param(Draw *d, DType dtype, AxisSet axes)
{
    Sketch *s = d->sketch;
    SketchParam p = {.name = draw_name(d, "x"), .dtype = dtype, .axes = axes};
    p.scalar = !axes && chance(d, 2, 3);
    p.axes = axes;
    if (p.scalar) p.initial = draw_default(d, dtype);
    Term *t = new_term(d, TERM_NAME, p.name, dtype_info[dtype].type, p.axes);
    t->low = type_is_float(t->type) ? -4.5 : 0;
    t->high = type_is_float(t->type) ? 4.5 : dtype_info[dtype].bytes == 1 ? 1 : 15;
    if (p.scalar) {
        t->low = t->low < -2.25 ? -2.25 : t->low;
        t->high = t->high > 5 ? 5 : t->high;
    }
    p.term = t;
    *list_push(d->arena, &s->params) = p;
    add_value(d, t);
}

static void draw_params(Draw *d)
{
    const int count = 1 + (int)below(d, 5);
    const DType usual = draw_dtype(d);
    add_param(d, type_is_float(dtype_info[usual].type) ? usual : DTYPE_F32, all_axes(d));
    for (int i = 0; i < count; i++)
        add_param(d, chance(d, 1, 2) ? usual : draw_dtype(d),
                  chance(d, 1, 3) ? all_axes(d) : draw_set(d, all_axes(d)));
}

/* ---- values of a kind ---- */

static Term *draw_value(Draw *d)
{
    /* the newest are liked best: chains grow deep */
    const uint32_t count = (uint32_t)d->values.count;
    const uint32_t newest = count > 3 && chance(d, 1, 2) ? count - 3 : 0;
    return d->values.data[newest + below(d, count - newest)];
}

static Term *draw_float(Draw *d)
{
    static const char *const literals[] = {"0.5", "1.0", "2.0", "0.1", "1e-3", "3.0"};
    if (chance(d, 1, 12)) return literal(d, literals[below(d, 6)]);
    for (int i = 0; i < 8; i++) {
        Term *t = draw_value(d);
        if (type_is_float(t->type)) return t;
    }
    return d->values.data[0];
}

static Term *draw_integer(Draw *d)
{
    static const char *const literals[] = {"0", "1", "2", "3", "7"};
    for (int i = 0; i < 4; i++) {
        Term *t = draw_value(d);
        if (!type_is_float(t->type)) return t;
    }
    switch (below(d, 3)) {
    case 0: return literal(d, literals[below(d, 5)]);
    case 1: return axis_term(d, "size", (int)below(d, (uint32_t)d->sketch->axis_count));
    default: return axis_term(d, "index", (int)below(d, (uint32_t)d->sketch->axis_count));
    }
}

static const char *draw_comparison(Draw *d)
{
    static const char *const texts[] = {"<", "<=", ">", ">=", "==", "!="};
    return texts[below(d, 6)];
}

static Term *draw_condition(Draw *d)
{
    for (int i = 0; i < 3; i++) {
        Term *t = draw_value(d);
        if (t->type == TYPE_BOOL) return t;
    }
    if (chance(d, 1, 10)) return unary_call(d, "isnan", draw_float(d));
    if (chance(d, 1, 10))
        return binary(d, chance(d, 1, 2) ? "&&" : "||",
                      binary(d, "<", draw_integer(d), draw_integer(d)),
                      unary(d, "!", binary(d, "==", draw_integer(d), draw_integer(d))));
    /* comparing inputs decides nothing that rounding could change */
    if (chance(d, 1, 3)) {
        Term *input = d->sketch->params.data[below(d, (uint32_t)d->sketch->params.count)].term;
        return binary(d, draw_comparison(d), input, literal(d, chance(d, 1, 2) ? "0" : "0.5"));
    }
    if (d->stepping && chance(d, 1, 2))
        return binary(d, draw_comparison(d), draw_float(d), draw_float(d));
    return binary(d, draw_comparison(d), draw_integer(d), draw_integer(d));
}

/* Any of an array. */
#define DRAW(d, all) (all)[below(d, (uint32_t)(sizeof(all) / sizeof *(all)))]

/* An integer that is the same along an axis. */
static Term *draw_number(Draw *d, int axis)
{
    static const char *const literals[] = {"0", "1", "5", "40"};
    for (int i = 0; i < 4; i++) {
        Term *t = draw_integer(d);
        if (t->type == TYPE_I64 && !(t->axes >> axis & 1)) return t;
    }
    const int other = (int)below(d, (uint32_t)d->sketch->axis_count);
    return other == axis ? literal(d, DRAW(d, literals)) : axis_term(d, "index", other);
}

/* A bound of a window: an axis's index compared with such a number. */
static Term *draw_bound(Draw *d, int axis)
{
    static const char *const texts[] = {"<", "<=", ">", ">=", "<", "=="};
    Term *number = draw_number(d, axis), *place = axis_term(d, "index", axis);
    if (chance(d, 1, 2))
        number = binary(d, chance(d, 1, 2) ? "-" : "+", number, draw_number(d, axis));
    if (chance(d, 1, 3)) place = binary(d, "-", draw_number(d, axis), place);
    const char *text = DRAW(d, texts);
    return chance(d, 1, 4) ? binary(d, text, number, place) : binary(d, text, place, number);
}

static Term *draw_window(Draw *d, int axis)
{
    Term *bound = draw_bound(d, axis);
    if (chance(d, 1, 2))
        bound = binary(d, chance(d, 1, 5) ? "||" : "&&", bound, draw_bound(d, axis));
    return chance(d, 1, 4) ? unary(d, "!", bound) : bound;
}

/* ---- recipes ---- */

static Term *draw_arithmetic(Draw *d)
{
    static const char *const texts[] = {"+", "-", "*", "*", "+", "/"};
    const char *text = texts[below(d, 6)];
    Term *a = draw_float(d), *b = chance(d, 1, 6) ? draw_integer(d) : draw_float(d);
    if (chance(d, 1, 8)) a = unary(d, "-", a);
    if (text[0] == '/') b = away_from_zero(d, b);
    return binary(d, text, a, b);
}

static Term *draw_power(Draw *d)
{
    static const char *const exponents[] = {"2", "3", "0.5", "-1", "-2.0", "1.5", "0"};
    const char *exponent = exponents[below(d, 7)];
    Term *a = draw_float(d);
    if (exponent[0] != '2' && exponent[0] != '3') a = positive(d, a);
    if (chance(d, 1, 3)) return call(d, "pow", 0, 2, (Term *[]){a, literal(d, exponent)});
    return binary(d, "**", a, literal(d, exponent));
}

static Term *draw_function(Draw *d)
{
    static const char *const anywhere[] = {"sin", "cos",  "tanh", "sigmoid",   "erf",
                                           "abs", "silu", "gelu", "gelu_tanh", "relu"};
    static const char *const small[] = {"exp", "exp2", "expm1"};
    static const char *const positives[] = {"sqrt", "rsqrt", "log", "log2", "log1p"};
    static const char *const steps[] = {"floor", "ceil", "round", "sign"};
    Term *a = chance(d, 1, 10) ? draw_integer(d) : draw_float(d);
    if (d->stepping && chance(d, 1, 3)) return unary_call(d, DRAW(d, steps), a);
    if (chance(d, 1, 3)) return unary_call(d, DRAW(d, small), within(d, a, 10));
    if (chance(d, 1, 3)) return unary_call(d, DRAW(d, positives), positive(d, a));
    return unary_call(d, DRAW(d, anywhere), a);
}

static Term *draw_choice(Draw *d)
{
    Term *a = chance(d, 1, 5) ? draw_integer(d) : draw_float(d), *b = draw_float(d);
    switch (below(d, 5)) {
    case 0: return call(d, "min", 0, 2, (Term *[]){a, b});
    case 1: return call(d, "max", 0, 2, (Term *[]){a, b});
    case 2: return call(d, "clamp", 0, 3, (Term *[]){b, literal(d, "-1"), literal(d, "1.5")});
    default: return call(d, "where", 0, 3, (Term *[]){draw_condition(d), a, b});
    }
}

/* A value in a window alone, and what all else has; of the last axis, as a rule. */
static Term *draw_masked(Draw *d)
{
    static const char *const literals[] = {"0.0", "-1.0", "1.0", "0.5"};
    const uint32_t count = (uint32_t)d->sketch->axis_count;
    const int axis = (int)(chance(d, 3, 4) ? count - 1 : below(d, count));
    Term *inside = draw_float(d),
         *outside = chance(d, 2, 3) ? literal(d, DRAW(d, literals)) : draw_float(d);
    return call(d, "where", 0, 3, (Term *[]){draw_window(d, axis), inside, outside});
}

static Term *draw_cast(Draw *d)
{
    static const char *const floats[] = {"f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f64", "bf16"};
    static const char *const integers[] = {"i64", "i32", "i8", "u8", "bool"};
    if (d->stepping && chance(d, 1, 3)) return unary_call(d, integers[below(d, 5)], draw_float(d));
    if (chance(d, 1, 4)) return unary_call(d, integers[below(d, 5)], draw_integer(d));
    return unary_call(d, floats[below(d, 7)], chance(d, 1, 5) ? draw_integer(d) : draw_float(d));
}

static Term *draw_integers(Draw *d)
{
    static const char *const texts[] = {"+", "-", "*", "+"};
    switch (below(d, 6)) {
    case 0: return unary_call(d, chance(d, 1, 2) ? "abs" : "sign", draw_integer(d));
    case 1:
        return call(d, chance(d, 1, 2) ? "min" : "max", 0, 2,
                    (Term *[]){draw_integer(d), draw_integer(d)});
    case 2:
        return call(d, "where", 0, 3,
                    (Term *[]){draw_condition(d), draw_integer(d), draw_integer(d)});
    case 3: return draw_condition(d);
    default: return binary(d, texts[below(d, 4)], draw_integer(d), draw_integer(d));
    }
}

static Term *draw_with_axes(Draw *d)
{
    for (int i = 0; i < 8; i++) {
        Term *t = chance(d, 1, 6) ? draw_integer(d) : draw_value(d);
        if (t->axes) return t;
    }
    return d->values.data[0];
}

/* The fastest axis but one, where a third remains: rows of a group. */
static AxisSet group_rows(const Draw *d, AxisSet axes)
{
    const AxisSet rows = all_axes(d) >> 1, next = rows & ~(rows >> 1);
    return axes & next && axes & ~rows && axes & (next - 1) ? next : 0;
}

/* The axes of a reduction of `t`: often those of the one before, which may be of other operands. */
static AxisSet draw_reduced(Draw *d, const Term *t)
{
    AxisSet over = draw_set(d, t->axes);
    const bool again = d->reduced && !(d->reduced & ~t->axes);
    if (group_rows(d, t->axes) && chance(d, 1, 2)) over = group_rows(d, t->axes);
    if (again && chance(d, 1, 2)) over = d->reduced;
    if (!over) over = t->axes;
    return d->reduced = over;
}

static Term *draw_reduction(Draw *d)
{
    static const char *const names[] = {"sum", "sum", "sum", "mean", "mean",
                                        "max", "min", "var", "prod"};
    Term *t = draw_with_axes(d);
    const AxisSet over = draw_reduced(d, t);
    if (chance(d, 1, 3) && type_is_float(t->type)) t = binary(d, "*", t, draw_float(d));
    const char *name = DRAW(d, names);
    if (!strcmp(name, "prod") && !d->wild) t = near_one(d, t);
    return reduce(d, name, over, t);
}

/* Reductions over the same axes, of operands that have more or fewer, one of them with a number. */
static Term *draw_reductions(Draw *d)
{
    static const char *const ops[] = {"+", "-", "*"};
    Term *a = draw_reduction(d), *b = draw_reduction(d);
    Term *number = chance(d, 1, 3) ? draw_integer(d) : draw_float(d);
    return binary(d, DRAW(d, ops), a, binary(d, DRAW(d, ops), b, number));
}

static Term *draw_library(Draw *d)
{
    static const char *const names[] = {"softmax",    "log_softmax", "logsumexp",
                                        "layer_norm", "rms_norm",    "l2_normalize"};
    const uint32_t which = below(d, 6);
    Term *t = draw_with_axes(d);
    const AxisSet over = draw_reduced(d, t);
    Term *args[] = {within(d, t, 50), literal(d, "1e-5")};
    return library(d, names[which], over, which >= 3 ? 2 : 1, args);
}

static Term *draw_term(Draw *d)
{
    switch (below(d, 18)) {
    case 0:
    case 1:
    case 2:
    case 3: return draw_arithmetic(d);
    case 4:
    case 5: return draw_function(d);
    case 6: return chance(d, 1, 2) ? draw_choice(d) : draw_masked(d);
    case 7: return draw_cast(d);
    case 8: return draw_integers(d);
    case 9: return draw_power(d);
    case 10: return draw_library(d);
    case 16:
    case 17: return draw_reductions(d);
    default: return draw_reduction(d);
    }
}

/* ---- statements ---- */

static DType output_dtype(Draw *d, Type type)
{
    static const DType integers[] = {DTYPE_I64, DTYPE_I32, DTYPE_I8, DTYPE_U8};
    for (;;) {
        const DType dtype = draw_dtype(d);
        if (dtype_is_float(dtype)) return dtype;
        if (type == TYPE_BOOL && chance(d, 1, 2)) return DTYPE_BOOL;
        if (!type_is_float(type)) return integers[below(d, 4)];
    }
}

static void add_statement(Draw *d, Term *value)
{
    SketchStatement at = {.name = draw_name(d, "v"), .value = value};
    at.function = chance(d, 1, 6);
    at.dtype = output_dtype(d, value->type);
    Term *term = new_term(d, TERM_NAME, at.name, value->type, value->axes);
    term->low = value->low;
    term->high = value->high;
    *list_push(d->arena, &d->sketch->statements) = at;
    add_value(d, term);
}

static bool is_read(const Term *t, const char *name)
{
    if (t->kind == TERM_NAME && !strcmp(t->text, name)) return true;
    for (int i = 0; i < t->count; i++)
        if (is_read(t->args[i], name)) return true;
    return false;
}

/* What nobody reads is an output, and some that are read. */
static void choose_outputs(Draw *d)
{
    Sketch *s = d->sketch;
    for (int i = 0; i < s->statements.count; i++) {
        bool read = false;
        for (int k = i + 1; k < s->statements.count && !read; k++)
            read = is_read(s->statements.data[k].value, s->statements.data[i].name);
        s->statements.data[i].output = !read || chance(d, 1, 5);
    }
}

/* Whatever is made of a tensor is made of what a window leaves of it. */
static void mask_param(Draw *d, int param)
{
    static const char *const literals[] = {"0.0", "1.0", "-2.0"};
    const char *outside = d->wild ? "-inf" : DRAW(d, literals);
    const int last = d->sketch->axis_count - 1;
    Term *x = d->sketch->params.data[param].term,
         *value = call(d, "where", 0, 3, (Term *[]){draw_window(d, last), x, literal(d, outside)});
    add_statement(d, value);
    for (int i = 0; i < d->values.count; i++)
        if (d->values.data[i] == x) d->values.data[i] = d->values.data[d->values.count - 1];
}

static void mask_params(Draw *d)
{
    const int params = d->sketch->params.count;
    for (int i = 0; i < params; i++) {
        const SketchParam *p = &d->sketch->params.data[i];
        if (p->axes == all_axes(d) && dtype_is_float(p->dtype)) mask_param(d, i);
    }
}

Sketch *generate(Arena *arena, uint64_t seed, int64_t elements)
{
    Draw *d = NEW(arena, Draw);
    d->arena = arena;
    d->state = seed;
    d->state = bits(d); /* else the next seed would draw the same numbers, one later */
    d->sketch = NEW(arena, Sketch);
    d->sketch->seed = seed;
    d->wild = chance(d, 1, 8);
    d->stepping = chance(d, 1, 6);
    draw_axes(d, elements);
    draw_params(d);
    if (chance(d, 1, 6)) mask_params(d);
    const int statements = 1 + (int)below(d, chance(d, 1, 4) ? 14 : 6);
    for (int i = 0; i < statements; i++) add_statement(d, tame(d, draw_term(d)));
    choose_outputs(d);
    return d->sketch;
}
