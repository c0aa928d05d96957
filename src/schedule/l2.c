/* schedule/l2.c: which rows L2 drops as soon as it has delivered them: those that no kernel of the
 * plan reads again, of kernels that write little. Lines that earlier kernels have written then stay
 * for whoever reads them, and need not go to memory while this one runs. A kernel that writes much
 * has L2 keep what it reads, so that what it writes leaves early
 * (docs/explanation/what-made-kernels-fast.md, "Read rows with evict_last"). */
#include "schedule/internal.h"

static AxisSet row_axes(const Kernel *k)
{
    return k->rows | k->kept | k->beside;
}

/* Of a tensor that has all rows; else 0. Columns that only a launch counts are taken for many. */
static double bytes_of_row(const Scheduler *s, const Kernel *k, AxisSet axes, DType dtype)
{
    static const double MANY = 1024;
    const AxisSet columns = axes & column_axes(k), known = columns & s->a->fixed;
    if (!axes_within(row_axes(k), axes)) return 0;
    return (double)axes_size(&s->a->sizes, known) * (columns == known ? 1 : MANY) *
           dtype_info[dtype].bytes;
}

/* For each row; what its groups or all rows have in common, and sums over rows, is little. */
static bool writes_little(const Scheduler *s, const Kernel *k)
{
    enum { TIMES = 8 };
    double read = 0, written = 0;
    for (int i = 0; i < k->load_count; i++)
        read += bytes_of_row(s, k, k->loads[i].axes, k->loads[i].dtype);
    for (int i = 0; i < k->store_count; i++)
        if (!k->stores[i].result)
            written += bytes_of_row(s, k, k->stores[i].axes, k->stores[i].dtype);
    return TIMES * written <= read;
}

/* Whether each element is for one row alone, and taken from memory in one phase. */
static bool is_read_once(const Kernel *k, const Load *load)
{
    const bool again = load->phases & (load->phases - 1) && !is_resident(load) && !is_staged(load);
    return load->tensor >= 0 && load->access == ACCESS_VECTOR && !again &&
           axes_within(row_axes(k), load->axes);
}

static bool is_read_later(const Plan *plan, int kernel, int tensor)
{
    for (int i = kernel + 1; i < plan->kernel_count; i++)
        for (int j = 0; j < plan->kernels[i].load_count; j++)
            if (plan->kernels[i].loads[j].tensor == tensor) return true;
    return false;
}

void find_dropped(const Scheduler *s, Plan *plan)
{
    for (int i = 0; i < plan->kernel_count; i++) {
        Kernel *k = &plan->kernels[i];
        if (!walks_rows(k) || !writes_little(s, k)) continue;
        for (int j = 0; j < k->load_count; j++)
            k->loads[j].dropped =
                is_read_once(k, &k->loads[j]) && !is_read_later(plan, i, k->loads[j].tensor);
    }
}
