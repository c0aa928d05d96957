/* codegen/beside.c: rows that are neighbours in memory while the columns of each are apart, as the
 * pixels of images whose channels are reduced. A thread has a vector of rows of each of its columns.
 * A warp's lanes share a row by so many as `lanes`; the other lanes have the rows beside, so that
 * together they read what lies side by side. */
#include "codegen/emit.h"

static const char *axis_name(const Emitter *e)
{
    return e->sizes[fastest_column(e->k)];
}

static const char *first_row(const Emitter *e)
{
    return e->coords[fastest_column(e->k)];
}

/* Which of a row's threads this is, and which of the vectors of rows it has. */
void emit_beside_place(Emitter *e)
{
    const Kernel *k = e->k;
    if (warps_of_row(k) == 1) {
        line(e->out, "const int team = threadIdx.x / threads_per_row;");
        line(e->out, "const int thread_in_row = threadIdx.x %% threads_per_row;");
    } else {
        line(
            e->out,
            "// a row has `lanes` of each of `warps` warps; their other lanes have the rows beside");
        line(e->out, "constexpr int lanes = %d, warps = %d;", k->lanes, warps_of_row(k));
        line(
            e->out,
            "const int team = threadIdx.x / (32 * warps) * (32 / lanes) + threadIdx.x %% 32 / lanes;");
        line(e->out,
             "const int thread_in_row = threadIdx.x / 32 %% warps * lanes + threadIdx.x %% lanes;");
    }
    line(e->out, "const int first_column = thread_in_row;");
}

/* How many of a thread's vector of rows there are. */
static void emit_here(Emitter *e)
{
    line(e->out,
         "const int here = %s - %s < vec ? (int)(%s - %s) : vec;    // rows that this thread has",
         axis_name(e), first_row(e), axis_name(e), first_row(e));
}

/* A grid that has CTAs for all rows: along x those beside each other, along y the others. */
static void emit_plane(Emitter *e)
{
    line(e->out, "const long long %s = blockIdx.x * (long long)(teams * vec) + team * vec;",
         first_row(e));
    emit_here(e);
    if (!e->k->rows) {
        emit_row(e);
        return;
    }
    e->rows = e->collapsed ? "rows" : count_name(e, e->k->rows, "rows");
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long row = blockIdx.y; row < %s; row += gridDim.y)", e->rows)
        emit_row(e);
}

/* CTAs that share out all rows, as sums over rows want it. */
static void emit_share(Emitter *e)
{
    const bool several = e->k->rows;
    if (several) e->rows = e->collapsed ? "rows" : count_name(e, e->k->rows, "rows");
    line(e->out,
         "const long long spans = (%s - 1) / (teams * vec) + 1;    // of rows beside each other",
         axis_name(e));
    line(e->out, "#pragma unroll 1");
    block (e->out, "for (long long item = blockIdx.x; item < %s; item += gridDim.x)",
           several ? arena_format(e->arena, "%s * spans", e->rows) : "spans") {
        if (several) {
            line(e->out, "long long row, span;");
            line(e->out, "split(item, spans, row, span);");
        }
        line(e->out, "const long long %s = %s * (teams * vec) + team * vec;", first_row(e),
             several ? "span" : "item");
        emit_here(e);
        emit_row(e);
    }
}

void emit_beside_walk(Emitter *e)
{
    if (is_persistent(e->k))
        emit_share(e);
    else
        emit_plane(e);
}
