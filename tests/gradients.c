/* gradients.c: see gradients.h. */
#include "gradients.h"

#include "graph/grad.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static Compilation compile_until(const char *text, const GradRequest *request, CompileUntil until)
{
    const CompileRequest r = {.text = text,
                              .length = strlen(text),
                              .name = "t.fuse",
                              .grad = request,
                              .target = *target_find("sm_90a"),
                              .until = until};
    Compilation c = compile(&r);
    ck_assert_msg(c.status == COMPILE_OK, "%s\n%s", c.diagnostics, text);
    return c;
}

Pair open_given_pair(const char *text, const char *backward)
{
    Pair p = {.text = strdup(backward)};
    p.forward = compile_until(text, NULL, UNTIL_GRAPH);
    p.backward = compile_until(p.text, NULL, UNTIL_GRAPH);
    return p;
}

Pair open_pair(const char *text, const GradRequest *request)
{
    const GradRequest usual = {0};
    Compilation c = compile_until(text, request ? request : &usual, UNTIL_GRAD);
    Pair p = open_given_pair(text, c.grad);
    compile_free(&c);
    return p;
}

void close_pair(Pair *p)
{
    compile_free(&p->forward);
    compile_free(&p->backward);
    free(p->text);
}

Sizes small_sizes(const Graph *g, int most)
{
    Sizes sizes;
    for (int i = 0; i < MAX_AXES; i++) {
        sizes.of[i] = i < g->axis_count ? g->axes[i].size : 1;
        if (sizes.of[i] <= 0 || sizes.of[i] > most + i) sizes.of[i] = most + i;
    }
    return sizes;
}

static bool is_seeded(Arena *arena, const Graph *forward, int output, const Graph *backward)
{
    const char *name = gradient_name(arena, forward, forward->outputs.data[output].name);
    for (int i = 0; i < backward->params.count; i++)
        if (!strcmp(backward->params.data[i].name, name)) return true;
    return false;
}

GradVerdict check_pair(const Pair *p, const Graph *backward, const Graph *own, uint64_t seed,
                       Text *report)
{
    const Graph *forward = p->forward.lowered;
    Arena *arena = report->arena;
    double *scalars = NEW_ARRAY(arena, double, forward->params.count + 1);
    bool *of = NEW_ARRAY(arena, bool, forward->outputs.count + 1);
    for (int i = 0; i < forward->params.count; i++) {
        const Param *param = &forward->params.data[i];
        scalars[i] = param->has_default ? param->default_value : 1;
    }
    for (int i = 0; i < forward->outputs.count; i++) of[i] = is_seeded(arena, forward, i, backward);
    const GradCheck check = {.forward = forward,
                             .backward = backward,
                             .own = own,
                             .of = of,
                             .sizes = small_sizes(forward, 3),
                             .scalars = scalars,
                             .seed = seed};
    return check_gradients(arena, &check, report);
}
