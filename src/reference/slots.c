/* reference/slots.c: the steps of one pass, and which chunk each computes into. */
#include "reference/plan.h"

#include <math.h>

bool has_inner(const Pass *pass, AxisSet axes)
{
    return pass->axes && (axes >> (31 - __builtin_clz(pass->axes)) & 1);
}

/* Strides of a dense tensor with `axes` along the outer axes of the pass. */
void find_strides(const Plan *p, const Pass *pass, AxisSet axes, int64_t *strides)
{
    int64_t stride = 1;
    int position = pass->outer + 1;
    for (int axis = MAX_AXES - 1; axis >= 0; axis--) {
        if (!(pass->axes >> axis & 1)) continue;
        const bool has = axes >> axis & 1;
        if (--position < pass->outer) strides[position] = has ? stride : 0;
        if (has) stride *= p->evaluation->sizes.of[axis];
    }
}

static int axis_position(const Pass *pass, uint32_t axis)
{
    return __builtin_popcount(pass->axes & ((1U << axis) - 1));
}

static void scalar_step(const Plan *p, Step *step, const Param *param, uint32_t index)
{
    const double value = p->evaluation->scalars[index];
    step->kind = STEP_CONST;
    if (type_is_float(step->operation.type))
        step->number = dtype_round(param->dtype, value);
    else
        step->integer = param->dtype == DTYPE_BOOL
                            ? value != 0
                            : dtype_saturate(param->dtype, int_from_double(value));
}

static void leaf_step(const Plan *p, const Pass *pass, Step *step, const NodeInfo *info)
{
    const Evaluation *e = p->evaluation;
    switch (info->op) {
    case OP_CONST:
        step->kind = STEP_CONST;
        step->number = info->type == TYPE_F32 ? (double)(float)info->number : info->number;
        step->integer = info->integer;
        return;
    case OP_SIZE:
        step->kind = STEP_CONST;
        step->integer = e->sizes.of[info->axis];
        return;
    case OP_INDEX:
        step->kind = STEP_INDEX;
        step->axis = axis_position(pass, info->axis);
        return;
    default: break;
    }
    const Param *param = &p->graph->params.data[info->param];
    if (param->scalar) {
        scalar_step(p, step, param, info->param);
        return;
    }
    step->kind = STEP_TENSOR;
    step->dtype = param->dtype;
    step->data = e->inputs[info->param].data;
}

Operation operation_of(const Plan *p, uint32_t id)
{
    const NodeInfo *info = &p->graph->nodes.data[id];
    const Range first = p->ranges[info->args[0].id], second = p->ranges[info->args[1].id];
    const Node operand = info->args[info->op == OP_WHERE ? 1 : 0];
    Operation operation = {
        .op = info->op,
        .type = info->type,
        .from = node(p->graph, operand)->type,
        .range = p->ranges[id],
        .nonnegative = first.low >= 0,
        .nonzero = second.low > 0 || second.high < 0,
    };
    if (info->op == OP_CAST) operation.dtype = info->dtype;
    return operation;
}

static Step make_step(const Plan *p, const Pass *pass, uint32_t id, const int *slot_of, bool done)
{
    const NodeInfo *info = &p->graph->nodes.data[id];
    Step step = {
        .operation = operation_of(p, id),
        .inner = has_inner(pass, info->axes),
        .exact = p->exact[id] || !p->bounds,
        .slot = slot_of[id],
    };
    find_strides(p, pass, info->axes, step.strides);
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const uint32_t a = info->args[i].id;
        step.args[i] = a ? slot_of[a] : -1;
        if (!a || p->exact[a] || !p->bounds) step.exact_args |= 1U << i;
    }
    if (done) {
        step.kind = STEP_KEPT;
        step.kept = p->kept[id];
    } else if (is_leaf(info)) {
        leaf_step(p, pass, &step, info);
    }
    return step;
}

static void release_operands(const Plan *p, Pass *pass, Slots *s, uint32_t id)
{
    const NodeInfo *info = &p->graph->nodes.data[id];
    for (int i = 0; i < MAX_OPERANDS; i++) {
        const uint32_t a = info->args[i].id;
        if (a && s->last_use[a] == (int)id && has_inner(pass, p->graph->nodes.data[a].axes)) {
            *list_push(p->arena, &s->free) = s->slot_of[a];
            s->last_use[a] = -1;
        }
    }
}

static void push_step(const Plan *p, Pass *pass, const Step *step)
{
    if (step->inner)
        *list_push(p->arena, &pass->chunk_steps) = *step;
    else
        *list_push(p->arena, &pass->row_steps) = *step;
}

/* Adds a step that reads values of a reduction's, with the bounds that are kept with them. */
static int add_kept(const Plan *p, Pass *pass, uint32_t reduction, const Kept *kept)
{
    const AxisSet axes = p->graph->nodes.data[reduction].axes;
    Step step = {.kind = STEP_KEPT,
                 .operation = {.type = TYPE_F32},
                 .kept = kept,
                 .exact = !kept->e,
                 .inner = has_inner(pass, axes),
                 .slot = pass->slots++};
    find_strides(p, pass, axes, step.strides);
    push_step(p, pass, &step);
    return step.slot;
}

void add_step(const Plan *p, Pass *pass, Slots *s, uint32_t id, bool done)
{
    const Moments *m = &p->moments[id];
    const bool inner = has_inner(pass, p->graph->nodes.data[id].axes);
    const bool reuse = inner && s->free.count > 0;
    s->slot_of[id] = reuse ? s->free.data[--s->free.count] : pass->slots++;
    Step step = make_step(p, pass, id, s->slot_of, done);
    if (step.kind == STEP_COMPUTE && m->mean) {
        /* add_square() handles the parts of the bound itself. */
        step.operation.range = (Range){-HUGE_VAL, HUGE_VAL};
        if (m->close) step.args[1] = add_kept(p, pass, m->mean, p->centres[m->mean]);
    }
    const uint32_t extreme = step.kind == STEP_COMPUTE ? p->extremes[id] : 0;
    if (extreme) {
        const NodeInfo *info = &p->graph->nodes.data[id];
        step.operation.extreme = op_combine[p->graph->nodes.data[extreme].op];
        step.operation.value = info->args[0].id == extreme;
        step.args[2] = add_kept(p, pass, extreme, p->seconds[extreme]);
    }
    push_step(p, pass, &step);
    if (inner && !done) release_operands(p, pass, s, id);
}

/* Adds the square of a distance, whose mean is computed. */
int add_square(const Plan *p, Pass *pass, const Moments *m, const int *slot_of)
{
    const uint32_t axes = p->graph->nodes.data[m->distance].axes;
    const int centre = add_kept(p, pass, m->mean, p->centres[m->mean]);
    const int taken = m->close ? centre : add_kept(p, pass, m->mean, p->kept[m->mean]);
    const Step step = {
        .operation = {.op = OP_MUL,
                      .centred = true,
                      .type = TYPE_F32,
                      .from = TYPE_F32,
                      .range = {0, HUGE_VAL}},
        .inner = has_inner(pass, axes),
        .slot = pass->slots++,
        .args = {slot_of[m->distance], taken, centre},
    };
    push_step(p, pass, &step);
    return step.slot;
}
