/* front.c: see front.h. */
#include "front.h"

#include "frontend/ast.h"
#include "graph/graph.h"
#include "naive.h"

#include <math.h>
#include <string.h>

Case case_of(Arena *arena, const Sketch *s)
{
    return (Case){.seed = s->seed,
                  .number = s->seed,
                  .name = "g",
                  .text = print_sketch(arena, s, "g", 0),
                  .same = {print_sketch(arena, s, "g", PRINT_PARENTHESES),
                           print_sketch(arena, s, "g", PRINT_INLINE)}};
}

Compilation compile_text(const char *text, const char *schedule, CompileUntil until)
{
    CompileRequest request = {.text = text,
                              .length = strlen(text),
                              .name = "prop.fuse",
                              .schedule = schedule,
                              .target = *target_find("sm_90a"),
                              .until = until};
    request.target.sms = 4; /* so that CTAs walk many rows */
    return compile(&request);
}

/* The first error's words, so that a shrunken program fails for the same reason. */
static bool found_error(Finding *f, const char *what, const char *diagnostics)
{
    const char *error = strstr(diagnostics, "error: ");
    char kind[sizeof f->kind] = "";
    for (size_t n = 0; error && error[n + 7] && !strchr("'\n%", error[n + 7]) && n < 40; n++)
        kind[n] = error[n + 7];
    return found(f, kind, "%s:\n%s", what, diagnostics);
}

static const char *graph_text(Arena *arena, const Graph *g)
{
    Text *out = text_new(arena);
    print_graph(out, g);
    return text_string(out);
}

/* ---- texts ---- */

static bool check_same_graph(const Checked *c, const char *text, const char *what, Finding *f)
{
    Compilation other = compile_text(text, NULL, UNTIL_GRAPH);
    bool good = true;
    if (other.status != COMPILE_OK)
        good = found(f, what, "%s does not compile:\n%s\n%s", what, text, other.diagnostics);
    else if (strcmp(graph_text(c->arena, c->compiled.lowered),
                    graph_text(other.arena, other.lowered)))
        good = found(f, what, "%s means another graph:\n%s\n%s", what, text,
                     graph_text(c->arena, other.lowered));
    compile_free(&other);
    return good;
}

static const char *format_text(Arena *arena, const char *text)
{
    jmp_buf escape;
    Source *source = NEW(arena, Source);
    Text *out = text_new(arena);
    Diagnostics d = {.arena = arena, .text = text_new(arena), .escape = &escape};
    *source = (Source){.name = "prop.fuse", .text = text, .length = strlen(text)};
    if (setjmp(escape) == 0) format_source(out, arena, &d, source);
    return d.errors ? NULL : text_string(out);
}

static bool check_format(const Checked *c, Finding *f)
{
    const char *once = format_text(c->arena, c->origin->text);
    if (!once) return found(f, "fmt", "fmt cannot read the program");
    const char *twice = format_text(c->arena, once);
    if (!twice || strcmp(once, twice))
        return found(f, "fmt", "fmt changes its own output:\n%s\n%s", once, twice ? twice : "");
    return check_same_graph(c, once, "fmt's output", f);
}

/* ---- values ---- */

static bool check_simplified(const Checked *c, Finding *f)
{
    const Graph *g = c->compiled.graph;
    HostTensor *outputs = NEW_ARRAY(c->arena, HostTensor, g->outputs.count + 1);
    double **exact = NEW_ARRAY(c->arena, double *, g->outputs.count + 1);
    float **bound = NEW_ARRAY(c->arena, float *, g->outputs.count + 1);
    if (!evaluate_again(&c->data, g, 2, outputs, exact, bound)) return found(f, "memory", "memory");
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &c->data.graph->outputs.data[i];
        const Verdict v = judge(o->dtype, outputs[i].data, c->data.exact[i], c->data.bound[i],
                                axes_size(&c->data.sizes, o->axes));
        if (v.wrong)
            return found(f, "simplify",
                         "%s: the simplified graph gives %lld other values, the worst "
                         "is element %lld: %.17g for %.17g, bound %g",
                         o->name, (long long)v.wrong, (long long)v.worst, exact[i][v.worst],
                         exact_value(&c->data, i, v.worst), (double)c->data.bound[i][v.worst]);
    }
    return true;
}

/* The reference itself, against one that computes element by element. */
static bool check_reference(const Checked *c, Finding *f)
{
    const Graph *g = c->data.graph;
    for (int i = 0; i < g->outputs.count; i++) {
        const Output *o = &g->outputs.data[i];
        const double *plain =
            naive_values(c->arena, g, &c->data.sizes, c->data.inputs, c->data.scalars, o->value);
        const int64_t count = axes_size(&c->data.sizes, o->axes);
        for (int64_t k = 0; plain && k < count; k++) {
            const double a = plain[k], b = exact_value(&c->data, i, k),
                         bound = (double)c->data.bound[i][k];
            if (a == b || (isnan(a) && isnan(b)) || !(bound < HUGE_VAL)) continue;
            if (fabs(a - b) <= 1e-9 * fabs(a) + DOUBT * bound + 0x1p-149) continue;
            return found(f, "reference",
                         "%s: element %lld is %.17g, the reference says %.17g, "
                         "bound %g",
                         o->name, (long long)k, a, b, bound);
        }
    }
    return true;
}

static bool check_again(const Checked *c, Finding *f)
{
    Compilation again = compile_text(c->origin->text, NULL, UNTIL_CUDA);
    const bool good = again.status == COMPILE_OK && !strcmp(again.cuda, c->compiled.cuda);
    compile_free(&again);
    return good ? true : found(f, "determinism", "compiling twice gives two texts");
}

bool check_front(const Case *c, Checked *checked, Finding *f)
{
    *checked = (Checked){.origin = c, .arena = arena_new()};
    checked->compiled = compile_text(c->text, NULL, UNTIL_CUDA);
    const Compilation *compiled = &checked->compiled;
    if (compiled->status != COMPILE_OK)
        return found_error(f, "the program is refused", compiled->diagnostics);
    if (!make_data(&checked->data, checked->arena, compiled->lowered, &compiled->sizes, c->seed))
        return found(f, "memory", "no memory");
    bool good = check_format(checked, f) && check_again(checked, f);
    for (int i = 0; i < 2 && good; i++)
        good =
            !c->same[i] || check_same_graph(checked, c->same[i], "a text of the same meaning", f);
    return good && check_reference(checked, f) && check_simplified(checked, f);
}

void close_checked(Checked *c)
{
    compile_free(&c->compiled);
    arena_free(c->arena);
    c->arena = NULL;
}
