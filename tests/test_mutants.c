/* test_mutants.c: gradcheck finds backward passes that are wrong. Each node of an example's
 * backward pass is changed in turn, in every way that there is: its sign, a factor, an operand, an
 * axis, sum for mean; whatever then computes other numbers must be found. */
#include "gradients.h"
#include "programs.h"
#include "reference/gradcheck_internal.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ADALN                                                                                      \
    "graph f[B = 2, T = 3, C = 4](x : bf16[B, T, C], scale : bf16[B, C], shift : bf16[B, C], "     \
    "eps : f32 = 1e-5) -> (y : bf16[B, T, C], mean : f32[B, T], rstd : f32[B, T]) {\n"             \
    "    mean = mean[C](x)  rstd = rsqrt(var[C](x) + eps)\n"                                       \
    "    y = (x - mean) * rstd * (1 + scale) + shift }\n"

/* FORWARD, a file or a text; BACKWARD, a file, NULL: what grad makes. */
static const struct {
    const char *forward, *backward, *of;
} passes[] = {
    {"examples/layernorm.fuse", "examples/layernorm_bwd.fuse", NULL},
    {"examples/rmsnorm.fuse", "examples/rmsnorm_bwd.fuse", NULL},
    {"examples/softmax.fuse", "examples/softmax_bwd.fuse", NULL},
    {"examples/softmax_scaled.fuse", "examples/softmax_scaled_bwd.fuse", NULL},
    {"examples/softmax_masked.fuse", "examples/softmax_masked_bwd.fuse", NULL},
    {"examples/softmax_causal.fuse", "examples/softmax_causal_bwd.fuse", NULL},
    {"examples/softmax_aligned_causal.fuse", "examples/softmax_aligned_causal_bwd.fuse", NULL},
    {"examples/group_norm.fuse", "examples/group_norm_bwd.fuse", NULL},
    {ADALN, "examples/adaln_bwd.fuse", NULL},
    {"examples/cross_entropy.fuse", NULL, "loss"},
    {"examples/layernorm_residual.fuse", NULL, NULL},
    {"examples/rmsnorm_residual.fuse", NULL, NULL},
};

static char *program_text(const char *given)
{
    return strchr(given, '\n') ? strdup(given) : read_program(given);
}

/* ---- the ways to change a node ---- */

enum { MOST_WAYS = 12 };

static bool is_arithmetic(Op op)
{
    return op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_DIV;
}

/* The node `copy` of g, changed in the way of that number; {0}: there is no such way. */
static Node change(Graph *g, Node copy, int way)
{
    const Node none = {0};
    const NodeInfo info = *node(g, copy);
    const Node a = info.args[0], b = info.args[1];
    if (!type_is_float(info.type)) return none;
    switch (way) {
    case 0: return graph_op(g, OP_NEG, copy, none, none);
    case 1: return graph_op(g, OP_MUL, copy, graph_number(g, info.type, 2), none);
    case 2: return graph_op(g, OP_ADD, copy, graph_number(g, info.type, 0.001), none);
    case 3: return is_arithmetic(info.op) && node(g, a)->axes == info.axes ? a : none;
    case 4: return is_arithmetic(info.op) && node(g, b)->axes == info.axes ? b : none;
    case 5: return info.op == OP_ADD ? graph_op(g, OP_SUB, a, b, none) : none;
    case 6: return info.op == OP_SUB ? graph_op(g, OP_ADD, a, b, none) : none;
    case 7: return info.op == OP_MUL ? graph_op(g, OP_ADD, a, b, none) : none;
    case 8: return info.op == OP_SUM ? graph_reduce(g, OP_MEAN, info.reduced, a) : none;
    case 9: return info.op == OP_MEAN ? graph_reduce(g, OP_SUM, info.reduced, a) : none;
    case 10: return info.op == OP_WHERE ? graph_op(g, OP_WHERE, a, info.args[2], b) : none;
    default: return none;
    }
}

/* A sum over another axis, or over fewer, which is then taken at one place; {0}: there is none. */
static Node change_axis(Graph *g, Node copy)
{
    const NodeInfo info = *node(g, copy);
    const Node none = {0};
    if (!is_reduction(g, copy) || !type_is_float(info.type)) return none;
    const AxisSet fewer = info.reduced & (info.reduced - 1);
    const AxisSet rest = info.reduced & ~fewer;
    if (!fewer) return none;
    const Node partial = graph_reduce(g, info.op, fewer, info.args[0]);
    return graph_reduce(g, OP_MAX_OVER, rest, partial);
}

/* A copy of the graph with one node changed; NULL: that cannot be. */
static Graph *mutant(Arena *arena, const Graph *from, uint32_t at, int way)
{
    Graph *g = graph_like(arena, from);
    Node *map = NEW_ARRAY(arena, Node, from->nodes.count);
    for (uint32_t id = 1; id < (uint32_t)from->nodes.count; id++) {
        Node args[MAX_OPERANDS];
        for (int i = 0; i < MAX_OPERANDS; i++) args[i] = map[from->nodes.data[id].args[i].id];
        map[id] = graph_copy_node(g, from, (Node){id}, args);
        if (id != at) continue;
        map[id] = way == MOST_WAYS - 1 ? change_axis(g, map[id]) : change(g, map[id], way);
        if (!map[id].id) return NULL;
    }
    for (int i = 0; i < g->outputs.count; i++) {
        g->outputs.data[i].value = map[from->outputs.data[i].value.id];
        if (node(g, g->outputs.data[i].value)->axes != g->outputs.data[i].axes) return NULL;
    }
    return g;
}

/* ---- whether a mutant computes other numbers ---- */

static void fill_random(Evaluator *e, uint64_t seed)
{
    for (int i = 0; i < e->g->params.count; i++) {
        if (!e->g->params.data[i].scalar) random_input(e->g, i, &e->sizes, seed, e->inputs[i].data);
        e->scalars[i] = e->g->params.data[i].has_default ? e->g->params.data[i].default_value : 1;
    }
}

/* Inputs of the forward pass and what it saves; what is left of the random ones are gradients. */
static void fill_from(const Evaluator *f, Evaluator *b, const Fit *fits)
{
    for (int i = 0; i < b->g->params.count; i++) {
        const Param *p = &b->g->params.data[i];
        const int64_t count = axes_size(&b->sizes, p->axes);
        const size_t bytes = (size_t)count * (size_t)dtype_info[p->dtype].bytes;
        if (p->scalar) continue;
        if (fits[i].kind == FIT_INPUT)
            memcpy(b->inputs[i].data, f->inputs[fits[i].index].data, bytes);
        else if (fits[i].kind == FIT_SAVED)
            memcpy(b->inputs[i].data, f->outputs[fits[i].index], bytes);
    }
}

static bool differs(Arena *arena, const Graph *forward, const Graph *one, const Graph *other)
{
    const Sizes sizes = small_sizes(forward, 3), back = fit_sizes(forward, &sizes, one);
    Evaluator f = evaluator_new(arena, forward, &sizes);
    Evaluator a = evaluator_new(arena, one, &back), b = evaluator_new(arena, other, &back);
    const Fit *fits = fit_params(arena, forward, one, text_new(arena));
    for (uint64_t seed = 1; seed < 4; seed++) {
        fill_random(&f, seed);
        ck_assert(evaluator_run(&f));
        fill_random(&a, seed);
        fill_random(&b, seed);
        fill_from(&f, &a, fits);
        fill_from(&f, &b, fits);
        ck_assert(evaluator_run(&a) && evaluator_run(&b));
        for (int i = 0; i < one->outputs.count; i++)
            for (int64_t k = 0; k < a.counts[i]; k++) {
                const double x = a.outputs[i][k], y = b.outputs[i][k];
                if (!(fabs(x - y) <= 1e-5 * (fabs(x) + 1e-3)) && !(isnan(x) && isnan(y)))
                    return true;
            }
    }
    return false;
}

START_TEST(every_mutant_is_found)
{
    char *forward = program_text(passes[_i].forward);
    const GradRequest request = {.save = "none", .of = passes[_i].of};
    Pair own = open_pair(forward, &request), pair = own;
    if (passes[_i].backward) {
        char *backward = read_program(passes[_i].backward);
        pair = open_given_pair(forward, backward);
        free(backward);
    }
    const Graph *good = pair.backward.lowered;
    Arena *arena = arena_new();
    Text *report = text_new(arena);
    ck_assert_msg(check_pair(&pair, good, own.backward.lowered, 1, report) == GRADCHECK_RIGHT, "%s",
                  text_string(report));
    const bool *live = graph_live(good);
    int found = 0;
    for (uint32_t id = 1; id < (uint32_t)good->nodes.count; id++)
        for (int way = 0; way < MOST_WAYS && live[id]; way++) {
            Arena *scratch = arena_new();
            const Graph *bad = mutant(scratch, good, id, way);
            Text *of_bad = text_new(scratch);
            /* Each kind of comparison by itself: with differences, and with grad's gradients. */
            const Graph *known = way % 2 ? own.backward.lowered : NULL;
            if (bad && check_pair(&pair, bad, known, 1, of_bad) != GRADCHECK_RIGHT)
                found++;
            else if (bad)
                ck_assert_msg(!differs(scratch, pair.forward.lowered, good, bad),
                              "%s: node %u in way %d is not found:\n%s", passes[_i].forward, id,
                              way, text_string(of_bad));
            arena_free(scratch);
        }
    ck_assert_int_gt(found, 10);
    arena_free(arena);
    if (passes[_i].backward) close_pair(&pair);
    close_pair(&own);
    free(forward);
}
END_TEST

Suite *mutants_suite(void)
{
    Suite *suite = suite_create("mutants");
    TCase *mutants = tcase_create("mutants");
    tcase_set_timeout(mutants, 120);
    tcase_set_tags(mutants, "slow");
    tcase_add_loop_test(mutants, every_mutant_is_found, 0, sizeof passes / sizeof *passes);
    suite_add_tcase(suite, mutants);
    return suite;
}
