/* shrink.c: see shrink.h. Candidates may be nonsense: those are refused for another
 * reason than the program failed for, and dropped. */
#include "shrink.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const Sketch *best;
    int tries;
    StillFails *fails;
    void *data;
} Shrinker;

static Sketch *copy_sketch(Arena *arena, const Sketch *s)
{
    Sketch *copy = NEW(arena, Sketch);
    *copy = *s;
    copy->params.data = NEW_ARRAY(arena, SketchParam, s->params.count + 1);
    copy->statements.data = NEW_ARRAY(arena, SketchStatement, s->statements.count + 1);
    if (s->params.count)
        memcpy(copy->params.data, s->params.data, sizeof *s->params.data * (size_t)s->params.count);
    memcpy(copy->statements.data, s->statements.data,
           sizeof *s->statements.data * (size_t)s->statements.count);
    return copy;
}

static bool try(Shrinker *w, const Sketch *candidate)
{
    if (w->tries <= 0) return false;
    w->tries--;
    if (!w->fails(w->data, candidate)) return false;
    w->best = candidate;
    return true;
}

/* ---- terms ---- */

static int count_terms(const Term *t)
{
    int count = 1;
    for (int i = 0; i < t->count; i++) count += count_terms(t->args[i]);
    return count;
}

static const Term *term_at(const Term *t, int n)
{
    if (n-- == 0) return t;
    for (int i = 0; i < t->count; n -= count_terms(t->args[i++]))
        if (n < count_terms(t->args[i])) return term_at(t->args[i], n);
    return t;
}

/* The tree with its n-th term (in preorder) put in place by `with`; NULL `with` gives the
 * term's own operand `operand`. */
static Term *replace_term(Arena *arena, Term *t, int n, int operand, Term *with)
{
    if (n == 0) return with ? with : operand < t->count ? t->args[operand] : NULL;
    Term *copy = NEW(arena, Term);
    *copy = *t;
    n--;
    for (int i = 0; i < t->count; i++) {
        const int size = count_terms(t->args[i]);
        if (n >= 0 && n < size) {
            copy->args[i] = replace_term(arena, t->args[i], n, operand, with);
            return copy->args[i] ? copy : NULL;
        }
        n -= size;
    }
    return NULL;
}

static bool shrink_terms(Shrinker *w, int statement)
{
    static Term one = {.kind = TERM_LITERAL, .text = "0.5"};
    bool shrunk = false;
    for (int n = 0; n < count_terms(w->best->statements.data[statement].value); n++)
        for (int way = 0; way <= MAX_OPERANDS; way++) {
            Sketch *s = copy_sketch(w->arena, w->best);
            SketchStatement *at = &s->statements.data[statement];
            if (n >= count_terms(at->value)) break;
            const bool plain = way == MAX_OPERANDS;
            if (plain && term_at(at->value, n)->kind == TERM_LITERAL) continue;
            Term *value = replace_term(w->arena, at->value, n, way, plain ? &one : NULL);
            if (!value) continue;
            at->value = value;
            shrunk |= try(w, s);
        }
    return shrunk;
}

/* ---- statements and inputs ---- */

static bool drop_statement(Shrinker *w, int i)
{
    Sketch *s = copy_sketch(w->arena, w->best);
    memmove(&s->statements.data[i], &s->statements.data[i + 1],
            sizeof *s->statements.data * (size_t)(s->statements.count - i - 1));
    s->statements.count--;
    return s->statements.count > 0 && try(w, s);
}

static bool drop_param(Shrinker *w, int i)
{
    Sketch *s = copy_sketch(w->arena, w->best);
    memmove(&s->params.data[i], &s->params.data[i + 1],
            sizeof *s->params.data * (size_t)(s->params.count - i - 1));
    s->params.count--;
    return try(w, s);
}

static bool plain_statement(Shrinker *w, int i)
{
    bool shrunk = false;
    for (int what = 0; what < 3; what++) {
        Sketch *s = copy_sketch(w->arena, w->best);
        SketchStatement *at = &s->statements.data[i];
        if (what == 0 ? !at->output : what == 1 ? !at->function : at->dtype == DTYPE_F32) continue;
        if (what == 0) at->output = false;
        if (what == 1) at->function = false;
        if (what == 2) at->dtype = DTYPE_F32;
        shrunk |= try(w, s);
    }
    return shrunk;
}

static bool plain_param(Shrinker *w, int i)
{
    Sketch *s = copy_sketch(w->arena, w->best);
    if (s->params.data[i].dtype == DTYPE_F32) return false;
    s->params.data[i].dtype = DTYPE_F32;
    return try(w, s);
}

/* ---- axes ---- */

static AxisSet without(AxisSet set, int axis)
{
    const AxisSet below = ((AxisSet)1 << axis) - 1;
    return (set & below) | (set >> 1 & ~below);
}

/* A reduction that has nothing left to reduce is its operand; a coordinate is 0. */
static Term *drop_from_term(Arena *arena, const Term *t, int axis)
{
    static Term zero = {.kind = TERM_LITERAL, .text = "0"};
    Term *copy = NEW(arena, Term);
    *copy = *t;
    copy->over = without(t->over, axis);
    if (t->over && !copy->over)
        return t->kind == TERM_AXIS ? &zero : drop_from_term(arena, t->args[0], axis);
    for (int i = 0; i < t->count; i++) copy->args[i] = drop_from_term(arena, t->args[i], axis);
    return copy;
}

static bool drop_axis(Shrinker *w, int axis)
{
    Sketch *s = copy_sketch(w->arena, w->best);
    for (int i = 0; i < s->params.count; i++)
        s->params.data[i].axes = without(s->params.data[i].axes, axis);
    for (int i = 0; i < s->statements.count; i++)
        s->statements.data[i].value = drop_from_term(w->arena, s->statements.data[i].value, axis);
    memmove(&s->axes[axis], &s->axes[axis + 1],
            sizeof *s->axes * (size_t)(s->axis_count - axis - 1));
    s->axis_count--;
    return s->axis_count > 0 && try(w, s);
}

static bool shrink_axis(Shrinker *w, int axis)
{
    const int64_t size = w->best->axes[axis].size;
    const int64_t smaller[] = {1, 2, size / 2, size - 1};
    for (int i = 0; i < 4; i++) {
        Sketch *s = copy_sketch(w->arena, w->best);
        if (smaller[i] < 1 || smaller[i] >= size) continue;
        s->axes[axis].size = smaller[i];
        if (try(w, s)) return true;
    }
    return false;
}

/* ---- all of it ---- */

static bool shrink_once(Shrinker *w)
{
    bool shrunk = false;
    for (int i = w->best->statements.count - 1; i >= 0; i--) shrunk |= drop_statement(w, i);
    for (int i = w->best->params.count - 1; i >= 0; i--) shrunk |= drop_param(w, i);
    for (int i = w->best->axis_count - 1; i >= 0; i--) shrunk |= drop_axis(w, i);
    for (int i = 0; i < w->best->statements.count; i++)
        if (plain_statement(w, i) + shrink_terms(w, i)) shrunk = true;
    for (int i = 0; i < w->best->params.count; i++) shrunk |= plain_param(w, i);
    for (int i = 0; i < w->best->axis_count; i++) shrunk |= shrink_axis(w, i);
    return shrunk;
}

const Sketch *shrink(Arena *arena, const Sketch *s, int tries, StillFails *fails, void *data)
{
    Shrinker w = {.arena = arena, .best = s, .tries = tries, .fails = fails, .data = data};
    while (w.tries > 0 && shrink_once(&w)) continue;
    return w.best;
}
