/* plans.c: the plans of an operator, one for each device and sizes of columns. */
#include "ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(fusec_device *) devices[MOST_DEVICES];

static fusec_device *find_device(Call *call, int number)
{
    fusec_device *device = atomic_load(&devices[number]), *none = NULL;
    fusec_error error;
    if (device) return device;
    const fusec_status status =
        number ? fusec_device_open(number - 1, &device, &error) : fusec_device_cpu(&device, &error);
    if (status != FUSEC_OK) {
        call_fail(call, "%s", error.message);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&devices[number], &none, device)) return device;
    fusec_device_destroy(device); /* another thread was first */
    return none;
}

/* "dx,dgamma" of the outputs wanted; NULL: all. */
static const char *wanted_names(const Call *call, char *names, size_t size)
{
    const Op *op = call->op;
    size_t length = 0;
    if (call->wanted == (1ull << op->outputs) - 1) return NULL;
    for (int i = 0; i < op->outputs; i++)
        if (call->wanted >> i & 1)
            length += (size_t)snprintf(names + length, size - length, "%s%s", length ? "," : "",
                                       op->tensors[op->inputs + i].name);
    return names;
}

static fusec_plan *make_plan(Call *call, int device_number)
{
    char names[MOST_TENSORS * 128];
    const Op *op = call->op;
    fusec_device *device = find_device(call, device_number);
    fusec_plan_options options = {.struct_size = sizeof options};
    fusec_size sizes[MOST_AXES];
    fusec_plan *plan;
    fusec_error error;
    if (!device) return NULL;
    for (int i = 0; i < op->axes; i++) sizes[i] = (fusec_size){op->axis_names[i], call->sizes[i]};
    options.outputs = wanted_names(call, names, sizeof names);
    if (fusec_plan_create(device, op->program, op->graph, sizes, (size_t)op->axes, &options, &plan,
                          &error) == FUSEC_OK)
        return plan;
    call_fail(call, "%s", error.message);
    return NULL;
}

static bool fits(const PlanEntry *entry, const Call *call, int device)
{
    if (entry->device != device || entry->wanted != call->wanted) return false;
    for (int i = 0; i < call->op->axes; i++)
        if ((entry->fixed >> i & 1) && entry->sizes[i] != call->sizes[i]) return false;
    return true;
}

static PlanEntry *add_plan(Call *call, int device)
{
    PlanEntry *entry = calloc(1, sizeof *entry);
    fusec_plan *plan = entry ? make_plan(call, device) : NULL;
    if (!plan) {
        if (!entry) call_fail(call, "out of memory");
        free(entry);
        return NULL;
    }
    entry->device = device;
    entry->wanted = call->wanted;
    entry->plan = plan;
    for (int i = 0; i < call->op->axes; i++) {
        fusec_axis_info axis = {.struct_size = sizeof axis};
        fusec_plan_axis(plan, (size_t)i, &axis);
        entry->sizes[i] = call->sizes[i];
        if (axis.is_fixed) entry->fixed |= 1u << i;
    }
    entry->next = atomic_load(&call->op->plans);
    while (!atomic_compare_exchange_weak(&call->op->plans, &entry->next, entry)) continue;
    return entry;
}

fusec_plan *call_find_plan(Call *call)
{
    const int device = call->device_type == torch.cpu ? 0 : call->device_index + 1;
    if (device < 0 || device >= MOST_DEVICES) {
        call_fail(call, "there is no GPU %d", (int)call->device_index);
        return NULL;
    }
    PlanEntry *entry = atomic_load_explicit(&call->op->plans, memory_order_acquire);
    while (entry && !fits(entry, call, device)) entry = entry->next;
    if (!entry) entry = add_plan(call, device);
    if (!entry) return NULL;
    if (call->leading > 1 && (entry->fixed & 1)) {
        call_fail(
            call,
            "the graph's first axis, %s, is no axis of rows: tensors have the axes that it declares",
            call->op->axis_names[0]);
        return NULL;
    }
    return entry->plan;
}
