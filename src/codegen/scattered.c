/* codegen/scattered.c: columns of several axes that a kernel counts as one, in tensors that have
 * them apart: a vector's elements are read and stored one by one. */
#include "codegen/emit.h"

void emit_gather(Emitter *e, const Load *load, const char *into)
{
    line(e->out, "gather(%s, col, %s, %s);", into, e->end,
         place_function(e, load_pointer(e, load), load->tensor, load->axes));
}

void emit_scatter(Emitter *e, const Store *store)
{
    line(e->out, "%sscatter<%s>(%s_out, col, %s, %s);",
         rows_share_warps(e->k) ? "if (has_row) " : "", dtype_info[store->dtype].cuda, store->name,
         e->end, place_function(e, store_pointer(e, store), store->tensor, store->axes));
}
