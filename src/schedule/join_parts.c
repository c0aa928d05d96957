/* schedule/join_parts.c: parts of a graph that share nothing (analyze/parts.c) are scheduled apart;
 * here their plans become one, whose kernels run one part after the other. */
#include "schedule/internal.h"

#include <string.h>

/* How many there are of the parts before. */
typedef struct {
    int kernels, slots;
} Base;

static int moved(int index, int base)
{
    return index < 0 ? index : index + base;
}

static void move_kernel(Kernel *k, Base base)
{
    for (int i = 0; i < k->load_count; i++) k->loads[i].slot = moved(k->loads[i].slot, base.slots);
    for (int i = 0; i < k->store_count; i++)
        k->stores[i].slot = moved(k->stores[i].slot, base.slots);
    for (int i = 0; i < k->accumulator_count; i++) {
        k->accumulators[i].slot = moved(k->accumulators[i].slot, base.slots);
        k->accumulators[i].shift_slot = moved(k->accumulators[i].shift_slot, base.slots);
    }
    k->mailbox = moved(k->mailbox, base.slots);
    k->finishes = moved(k->finishes, base.kernels);
    k->clears = moved(k->clears, base.kernels);
}

/* Sizes of the columns of any part are compiled in, so those of others' are no arguments any more.
 */
static LaunchEntry move_entry(Arena *arena, LaunchEntry entry, const char *name, AxisSet fixed,
                              Base base)
{
    LaunchArg *args = NEW_ARRAY(arena, LaunchArg, entry.arg_count + 1);
    int count = 0;
    for (int i = 0; i < entry.arg_count; i++) {
        LaunchArg arg = entry.args[i];
        if (arg.kind == ARG_SIZE && fixed >> arg.axis & 1) continue;
        switch (arg.kind) {
        case ARG_SLOT: arg.index += base.slots; break;
        case ARG_ROWS:
        case ARG_GRID:
        case ARG_INTERVAL:
        case ARG_ALONE: arg.index += base.kernels; break;
        case ARG_TENSOR:
        case ARG_STRIDE:
        case ARG_ROW_STRIDE:
        case ARG_SIZE:
        case ARG_SCALAR: break;
        }
        args[count++] = arg;
    }
    return (LaunchEntry){name, count, args};
}

static void add_kernels(Arena *arena, Plan *plan, LaunchKernel *kernels, const Plan *part,
                        Base base)
{
    for (int i = 0; i < part->kernel_count; i++) {
        plan->kernels[base.kernels + i] = part->kernels[i];
        move_kernel(&plan->kernels[base.kernels + i], base);
        kernels[base.kernels + i] = part->launch.kernels[i];
    }
    plan->kernel_count += part->kernel_count;
    for (int i = base.kernels; i < plan->kernel_count; i++) {
        Kernel *k = &plan->kernels[i];
        LaunchKernel *launch = &kernels[i];
        k->name = kernel_name(arena, plan->analysis->graph, plan, i, false);
        const AxisSet fixed = plan->analysis->columns;
        launch->entry = move_entry(arena, launch->entry, k->name, fixed, base);
        if (launch->strided.name)
            launch->strided =
                move_entry(arena, launch->strided,
                           kernel_name(arena, plan->analysis->graph, plan, i, true), fixed, base);
        launch->mailbox = moved(launch->mailbox, base.slots);
        launch->adds_parts = moved(launch->adds_parts, base.kernels);
    }
}

static void add_slots(Plan *plan, LaunchSlot *slots, const Plan *part, Base base)
{
    for (int i = 0; i < part->slot_count; i++) {
        plan->slots[plan->slot_count] = part->slots[i];
        plan->slots[plan->slot_count++].slot += base.slots;
    }
    for (int i = 0; i < part->launch.slot_count; i++) {
        slots[base.slots + i] = part->launch.slots[i];
        slots[base.slots + i].copies_kernel =
            moved(slots[base.slots + i].copies_kernel, base.kernels);
    }
}

/* What a part uses, the plan does. */
static void want_tensors(LaunchTensor *tensors, const LaunchPlan *part)
{
    for (int i = 0; i < part->tensor_count; i++) tensors[i].wanted |= part->tensors[i].wanted;
}

static const char *part_text(Arena *arena, const Analysis *part)
{
    const Graph *g = part->graph;
    Text *names = text_new(arena);
    int count = 0;
    for (int i = 0; i < g->outputs.count; i++)
        if (g->outputs.data[i].value.id)
            text_print(names, "%s%s", count++ ? ", " : "", g->outputs.data[i].name);
    return arena_format(
        arena, "%s %s nothing with the other outputs, so %s kernels choose their own columns, %s",
        text_string(names), count > 1 ? "share" : "shares", count > 1 ? "their" : "its",
        axes_text(arena, g, part->columns));
}

/* That with most to read and write. */
static const Plan *main_part(const Analysis *a, Plan *const *plans)
{
    const Plan *most = plans[0];
    for (int i = 1; i < a->part_count; i++) {
        const Analysis *part = plans[i]->analysis, *other = most->analysis;
        if (part->read_bytes + part->write_bytes > other->read_bytes + other->write_bytes)
            most = plans[i];
    }
    return most;
}

/* Why there is more than one kernel: that there are parts, and what those say. */
static void add_reasons(Arena *arena, Plan *plan, const Plan *part)
{
    plan->cuts[plan->cut_count++] = part_text(arena, part->analysis);
    for (int i = 0; i < part->cut_count; i++) plan->cuts[plan->cut_count++] = part->cuts[i];
    for (int i = 0; i < part->rejection_count; i++)
        add_rejection(arena, plan, part->rejections[i].schedule, part->rejections[i].reason);
}

Plan *join_plans(Arena *arena, const Analysis *a, Plan *const *plans)
{
    int kernel_count = 0, slot_count = 0, cut_count = 0;
    for (int i = 0; i < a->part_count; i++) {
        kernel_count += plans[i]->kernel_count;
        slot_count += plans[i]->launch.slot_count;
        cut_count += plans[i]->cut_count + 1;
    }
    Plan *plan = NEW(arena, Plan);
    *plan = (Plan){.analysis = a,
                   .target = plans[0]->target,
                   .family = main_part(a, plans)->family,
                   .launch = plans[0]->launch};
    plan->kernels = NEW_ARRAY(arena, Kernel, kernel_count + 1);
    plan->slots = NEW_ARRAY(arena, Slot, slot_count + 1);
    plan->cuts = NEW_ARRAY(arena, const char *, cut_count + 1);
    LaunchPlan *l = &plan->launch;
    LaunchKernel *kernels = NEW_ARRAY(arena, LaunchKernel, kernel_count + 1);
    LaunchSlot *slots = NEW_ARRAY(arena, LaunchSlot, slot_count + 1);
    LaunchTensor *tensors = NEW_ARRAY(arena, LaunchTensor, l->tensor_count + 1);
    memcpy(tensors, l->tensors, sizeof *tensors * (size_t)l->tensor_count);
    Base base = {0, 0};
    for (int i = 0; i < a->part_count; i++) {
        add_kernels(arena, plan, kernels, plans[i], base);
        for (int j = base.kernels; j < plan->kernel_count; j++) plan->kernels[j].part = i;
        add_slots(plan, slots, plans[i], base);
        want_tensors(tensors, &plans[i]->launch);
        add_reasons(arena, plan, plans[i]);
        base.kernels += plans[i]->kernel_count;
        base.slots += plans[i]->launch.slot_count;
    }
    l->fixed = a->columns;
    l->kernels = kernels;
    l->slots = slots;
    l->tensors = tensors;
    l->kernel_count = base.kernels;
    l->slot_count = base.slots;
    return plan;
}
