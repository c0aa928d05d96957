/* codegen/cluster.c: threads of a CTA that share a row, and CTAs that share a row as a cluster or a
 * group: which columns each has, and through which memory they exchange results. */
#include "codegen/emit.h"

const char *sharers(const Emitter *e)
{
    return is_grouped(e->k) ? "group" : "cluster";
}

/* `blockIdx.x % cluster`: which of the CTAs that share a row this one is. */
const char *rank_text(Emitter *e)
{
    return arena_format(e->arena, "blockIdx.x %% %s", sharers(e));
}

const char *slice_text(const Emitter *e)
{
    return e->k->uneven ? "slice_end - slice_begin" : "slice";
}

const char *slice_end(const Emitter *e)
{
    return e->k->uneven || is_ragged(e->k) ? "slice_end" : "slice_begin + slice";
}

const char *own_columns(const Emitter *e)
{
    return e->k->slice ? slice_text(e) : e->columns;
}

const char *team_threads(const Emitter *e)
{
    return e->k->teams > 1 ? "threads_per_row" : "threads";
}

const char *sharing_threads(const Emitter *e)
{
    return takes_turns(e->k) ? arena_format(e->arena, "%s * threads", sharers(e)) : "threads";
}

const char *team_barrier(const Emitter *e)
{
    if (e->k->threads_per_row <= 32) return "__syncwarp()";
    return e->k->teams > 1 ? "team_barrier<threads_per_row, teams>()"
                           : "team_barrier<threads, 1>()";
}

/* The columns of this CTA. */
void emit_slice(Emitter *e)
{
    line(e->out, "const int slice_begin = %s * slice;", rank_text(e));
    if (e->k->uneven)
        line(e->out, "const int slice_end = slice_begin + slice < %s ? slice_begin + slice : %s;",
             e->columns, e->columns);
    else if (is_ragged(e->k))
        line(e->out, "const int slice_end = slice_begin + slice;");
    line(e->out, "const int local_column = %s * vec, first_column = slice_begin + local_column;",
         e->thread);
}

/* The memory through which CTAs that share a row exchange results. */
void emit_exchange(Emitter *e, int values)
{
    const char *type = exchanges_wide(e->g, e->k) ? "double" : "float";
    if (!is_grouped(e->k)) {
        line(e->out, "__shared__ Exchange<%s, %d, cluster> exchange;", type, values);
        return;
    }
    const char *mailbox = arg_name(e, ARG_SLOT, e->k->mailbox, 0);
    line(e->out, "constexpr int rounds = %d;    // of mail that there is room for",
         mailbox_rounds(e->k));
    line(e->out, "typedef Mailbox<%s, %d, group, rounds> Box;", type, values);
    line(e->out, "Box *const boxes = (Box *)%s + blockIdx.x / group * group;", mailbox);
    line(e->out, "__shared__ News<%s, %d, group, rounds> news;", type, values);
}
