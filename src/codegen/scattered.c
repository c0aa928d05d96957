/* codegen/scattered.c: columns of several axes that a kernel counts as one, in tensors that have
 * them apart: a vector's elements are read and stored one by one. */
#include "codegen/emit.h"

/* How many neighbours of a vector lie side by side in a tensor, wherever the vector begins: it has
 * the fastest axis of the columns as its last, and so many divide that axis and the vector. */
static int neighbours(const Emitter *e, AxisSet axes)
{
    const int axis = fastest_column(e->k);
    const int64_t length = e->plan->analysis->sizes.of[axis];
    int count = 1;
    if (axes >> axis != 1 || !(e->plan->launch.fixed >> axis & 1) || length <= 0) return 1;
    while (e->k->vec % (2 * count) == 0 && length % (2 * count) == 0) count *= 2;
    return count;
}

void emit_gather(Emitter *e, const Load *load, const char *into)
{
    line(e->out, "gather<%d>(%s, col, %s, %s);", neighbours(e, load->axes), into, e->end,
         place_function(e, load_pointer(e, load), load->tensor, load->axes));
}

void emit_scatter(Emitter *e, const Store *store)
{
    line(e->out, "%sscatter<%s, %d>(%s_out, col, %s, %s);",
         rows_share_warps(e->k) ? "if (has_row) " : "", dtype_info[store->dtype].cuda,
         neighbours(e, store->axes), store->name, e->end,
         place_function(e, store_pointer(e, store), store->tensor, store->axes));
}
