/* schedule/launch.c: grid sizes and workspace layout, from a LaunchPlan and the sizes of a launch.
 * The one place for these formulas: the runtime, the simulator and the plan's comments
 * all come here. */
#include "schedule/launch.h"

#include <inttypes.h>

enum { SLOT_ALIGNMENT = 256 };

/* a * b for numbers that are not negative; saturates. */
static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t product_of_sizes(const LaunchPlan *plan, AxisSet axes, const Sizes *sizes)
{
    int64_t product = 1;
    for (int i = 0; i < plan->axis_count; i++)
        if (axes >> i & 1) {
            if (sizes->of[i] == 0) return 0;
            product = multiply(product, sizes->of[i]);
        }
    return product;
}

int64_t least_part_rows(const LaunchGrid *parts)
{
    return parts->per_cta - parts->per_cta / 8;
}

/* Parts that the rows of a group are in: all CTAs' number, a half, a third or a fourth of it, so
 * that the parts of a few groups are as many for each CTA, where those are about as long as parts
 * are to be, or longer. */
static int64_t count_parts(const LaunchGrid *grid, int64_t rows)
{
    for (int of = 1; of <= PART_DIVISORS; of++) {
        int64_t share = grid->max_ctas / of;
        if (share > 1 && rows / share >= least_part_rows(grid)) return share;
    }
    int64_t parts = (rows - 1) / grid->per_cta + 1;
    return parts < grid->max_ctas ? parts : grid->max_ctas;
}

int list_entries(const LaunchPlan *plan, const LaunchEntry **entries)
{
    int count = 0;
    for (int i = 0; i < plan->kernel_count; i++) entries[count++] = &plan->kernels[i].entry;
    for (int i = 0; i < plan->kernel_count; i++)
        if (has_strided(&plan->kernels[i])) entries[count++] = &plan->kernels[i].strided;
    return count;
}

int64_t launch_groups(const LaunchPlan *plan, int kernel, int dim, const Sizes *sizes)
{
    const LaunchGrid *grid = &plan->kernels[kernel].grid[dim];
    int64_t product = product_of_sizes(plan, grid->axes, sizes);
    if (product == 0) return 0;
    if (dim == PARTS_DIM && plan->kernels[kernel].part_groups) return count_parts(grid, product);
    int64_t groups = (product - 1) / grid->per_cta + 1;
    if (groups > grid->max_ctas) groups = grid->max_ctas;
    return grid->times > 1 ? multiply(groups, grid->times) : groups;
}

/* No rows at all are in no part. */
bool takes_whole_groups(const LaunchPlan *plan, int kernel, const Sizes *sizes)
{
    const LaunchKernel *launch = &plan->kernels[kernel];
    if (!launch->part_groups) return false;
    int64_t groups = product_of_sizes(plan, launch->grid[0].axes, sizes),
            ctas = launch->grid[0].max_ctas;
    int64_t parts = launch_groups(plan, kernel, PARTS_DIM, sizes), last = groups % ctas;
    int64_t idle = last ? ctas - last : 0; /* while the others walk their last group */
    return parts == 1 || (parts > 1 && idle <= groups / PARTS_SHARE);
}

/* CTAs that share out the groups of a kernel, or their parts. */
static int64_t share_parts(const LaunchPlan *plan, int kernel, const Sizes *sizes)
{
    const LaunchKernel *launch = &plan->kernels[kernel];
    int64_t parts = launch_groups(plan, kernel, PARTS_DIM, sizes);
    if (!parts || takes_whole_groups(plan, kernel, sizes))
        return launch_groups(plan, kernel, 0, sizes);
    int64_t items = multiply(product_of_sizes(plan, launch->grid[0].axes, sizes), parts);
    return items < launch->part_ctas ? items : launch->part_ctas;
}

int64_t launch_ctas(const LaunchPlan *plan, int kernel, int dim, const Sizes *sizes)
{
    const LaunchKernel *launch = &plan->kernels[kernel];
    if (launch->adds_parts >= 0 && takes_whole_groups(plan, launch->adds_parts, sizes)) return 0;
    int64_t groups = launch_groups(plan, kernel, dim, sizes);
    if (launch->part_groups > 0 && dim == 0) return share_parts(plan, kernel, sizes);
    if (launch->part_groups > 0 && dim == PARTS_DIM) return groups > 0;
    return dim == 0 ? multiply(groups, launch->cluster) : groups;
}

unsigned launch_interval(const LaunchPlan *plan, int kernel, const Sizes *sizes, double rate,
                         int64_t l2_bytes)
{
    const LaunchKernel *launch = &plan->kernels[kernel];
    const LaunchGrid *grid = &launch->grid[0];
    int64_t steps = product_of_sizes(plan, grid->axes, sizes) / grid->per_cta;
    if (rate <= 0 || multiply(steps, launch->step_bytes) < launch->paced_from * l2_bytes) return 0;
    double ns = (double)launch->step_bytes * (double)launch_groups(plan, kernel, 0, sizes) / rate;
    return ns < INT32_MAX ? (unsigned)ns : INT32_MAX;
}

int64_t collapsed_rows(const LaunchPlan *plan, int kernel, const Sizes *sizes)
{
    return product_of_sizes(plan, plan->kernels[kernel].collapsed, sizes);
}

bool collapse_rows(const LaunchPlan *plan, int tensor, AxisSet rows, const Sizes *sizes,
                   const int64_t *strides, int64_t *stride)
{
    AxisSet axes = plan->tensors[tensor].axes;
    bool known = !(axes & ~rows);
    int64_t next = 1; /* what the stride of the axis before is to be, once that is known */
    *stride = 0;
    for (int axis = plan->axis_count - 1; axis >= 0; axis--) {
        if (!((axes & rows) >> axis & 1) || sizes->of[axis] == 1) continue;
        int64_t own = strides[__builtin_popcount(axes & (((AxisSet)1 << axis) - 1))];
        if (known && own != next) return false;
        if (!known) *stride = own;
        known = true;
        if (__builtin_mul_overflow(own, sizes->of[axis], &next)) return false;
    }
    return true;
}

bool is_dense_along(const LaunchPlan *plan, int tensor, AxisSet axes, const Sizes *sizes,
                    const int64_t *strides)
{
    AxisSet own = plan->tensors[tensor].axes;
    if (axes & ~own) return true;
    int64_t next = 1;
    for (int axis = plan->axis_count - 1, dim = __builtin_popcount(own) - 1; axis >= 0; axis--) {
        if (!(own >> axis & 1)) continue;
        const bool apart = axes >> axis & 1 && sizes->of[axis] > 1 && strides[dim] != next;
        if (apart) return false;
        if (axes >> axis & 1) next = multiply(next, sizes->of[axis]);
        dim--;
    }
    return true;
}

const LaunchEntry *choose_entry(const LaunchPlan *plan, int kernel, const Sizes *sizes,
                                StridesOf *strides_of, const void *launch)
{
    const LaunchKernel *k = &plan->kernels[kernel];
    int64_t stride;
    for (int i = 0; has_strided(k) && i < k->entry.arg_count; i++) {
        const LaunchArg *arg = &k->entry.args[i];
        if (arg->kind != ARG_TENSOR) continue;
        const int64_t *strides = strides_of(launch, arg->index);
        if (!is_dense_along(plan, arg->index, k->dense, sizes, strides) ||
            !collapse_rows(plan, arg->index, k->collapsed, sizes, strides, &stride))
            return &k->strided;
    }
    return &k->entry;
}

/* Of some axes, but of groups of rows that are in parts at most as many as have their parts apart.
 * Were it not for that limit, a workspace would have room for what no CTA leaves there; were it
 * none from there on, it would shrink. */
static int64_t count_elements(const LaunchPlan *plan, const LaunchSlot *slot, const Sizes *sizes)
{
    int64_t few = slot->copies_kernel >= 0 ? plan->kernels[slot->copies_kernel].part_groups : 0;
    AxisSet grouped = few ? slot->axes & plan->kernels[slot->copies_kernel].grid[0].axes : 0;
    int64_t groups = product_of_sizes(plan, grouped, sizes);
    return multiply(few && groups > few ? few : groups,
                    product_of_sizes(plan, slot->axes & ~grouped, sizes));
}

int64_t launch_slot_elements(const LaunchPlan *plan, int index, const Sizes *sizes)
{
    const LaunchSlot *slot = &plan->slots[index];
    int64_t copies = slot->width;
    if (slot->copies_kernel >= 0)
        copies =
            multiply(copies, launch_groups(plan, slot->copies_kernel, slot->copies_dim, sizes));
    return multiply(copies, count_elements(plan, slot, sizes));
}

static int64_t slot_bytes(const LaunchPlan *plan, int index, const Sizes *sizes)
{
    int64_t elements = launch_slot_elements(plan, index, sizes);
    int64_t bytes = multiply(elements, dtype_info[plan->slots[index].dtype].bytes);
    if (bytes > INT64_MAX - SLOT_ALIGNMENT) return INT64_MAX;
    return (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

int64_t launch_workspace(const LaunchPlan *plan, const Sizes *sizes, int64_t *offsets)
{
    int64_t total = 0;
    for (int i = 0; i < plan->slot_count; i++) {
        if (offsets) offsets[i] = total;
        int64_t bytes = slot_bytes(plan, i, sizes);
        total = bytes > INT64_MAX - total ? INT64_MAX : total + bytes;
    }
    return total;
}

bool elements_are_apart(int rank, const int64_t *sizes, const int64_t *strides)
{
    int order[MAX_RANK], count = 0;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] == 1) continue;
        int at = count++;
        for (; at > 0 && imaxabs(strides[order[at - 1]]) > imaxabs(strides[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t reach = 0;
    for (int i = 0; i < count; i++) {
        int64_t stride = imaxabs(strides[order[i]]);
        if (stride <= reach) return false;
        reach += (sizes[order[i]] - 1) * stride;
    }
    return true;
}

/* The pointer by which a kernel uses a tensor; NULL: it does not. */
static const LaunchArg *find_use(const LaunchKernel *kernel, int tensor)
{
    for (int i = 0; i < kernel->entry.arg_count; i++)
        if (kernel->entry.args[i].kind == ARG_TENSOR && kernel->entry.args[i].index == tensor)
            return &kernel->entry.args[i];
    return NULL;
}

/* Every element is read before it is written: by kernels before the first writer; or by the writer
 * too, if both tensors have all axes, since the CTA that writes an element then is the one that has
 * read it, and if it reads no row again in a phase after that; or if each element is read by the
 * thread that writes it. */
bool may_lie_on(const LaunchPlan *plan, int input, int output)
{
    int last_reader = -1, first_writer = plan->kernel_count;
    for (int k = 0; k < plan->kernel_count; k++) {
        if (find_use(&plan->kernels[k], input)) last_reader = k;
        if (first_writer == plan->kernel_count && find_use(&plan->kernels[k], output))
            first_writer = k;
    }
    if (last_reader < first_writer) return true;
    if (last_reader > first_writer) return false;
    const LaunchKernel *both = &plan->kernels[first_writer];
    if (find_use(both, input)->phase == READ_BY_WRITER)
        return plan->tensors[input].axes == plan->tensors[output].axes;
    if (find_use(both, input)->phase == READ_BY_WRITER)
        return plan->tensors[input].axes == plan->tensors[output].axes;
    AxisSet all = ((AxisSet)1 << plan->axis_count) - 1;
    return plan->tensors[input].axes == all && plan->tensors[output].axes == all &&
           find_use(both, input)->phase <= find_use(both, output)->phase;
}
