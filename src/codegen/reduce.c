/* codegen/reduce.c: the reductions that end a phase: their variables, the exchange between a row's
 * threads, and their results. */
#include "codegen/emit.h"

#include <string.h>

const InnerReduction *paired_sum(const Emitter *e, Node partner)
{
    const InnerReduction *r = inner_of(e->k, partner);
    return r && r->sum.id ? inner_of(e->k, r->sum) : NULL;
}

bool is_part(const Emitter *e, Node n)
{
    return is_reduction(e->g, n) && inner_of(e->k, n) && reduces_part(e->g, e->k, n);
}

unsigned footprint(const Emitter *e, Node n)
{
    return footprint_of(e->k, &e->plan->analysis->sizes, node(e->g, n)->axes);
}

bool is_kept(const Emitter *e, Node n)
{
    return e->k->keeps && e->k->keeps[n.id].first;
}

bool is_kept_from(const Emitter *e, Node n, int phase)
{
    return is_kept(e, n) && e->k->keeps[n.id].first == 1 + phase;
}

const char *subscript(const Emitter *e, Node n)
{
    static const char *const of[] = {"", "[t]", "[i]", "[t][i]"};
    return is_part(e, n) || is_kept(e, n) || is_across_value(e, n) ? of[footprint(e, n)] : "";
}

const char *variable(Emitter *e, Node n)
{
    return arena_format(e->arena, "%s%s", node_name(e, n), subscript(e, n));
}

/* The sizes of the array in which a result is. */
static const char *extents(const Emitter *e, Node n)
{
    static const char *const of[] = {"", "[tiles]", "[vec]", "[tiles][vec]"};
    return is_part(e, n) || is_kept(e, n) ? of[footprint(e, n)] : "";
}

void declare_kept(Emitter *e, int phase)
{
    for (int i = 1; e->k->keeps && i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        if (is_kept_from(e, n, phase))
            line(e->out, "%s %s%s;    // for later phases", type_cuda(node(e->g, n)->type),
                 node_name(e, n), extents(e, n));
    }
}

void end_kept(Emitter *e, int phase)
{
    for (int i = 1; e->k->keeps && i < e->g->nodes.count; i++)
        if (is_kept_from(e, (Node){(uint32_t)i}, phase)) make_local(e, (Node){(uint32_t)i});
}

static int threads_of_block(const Emitter *e, Node n)
{
    return is_part(e, n) ? block_threads(e->g, e->k, &e->plan->analysis->sizes, n) : 0;
}

bool strides_over_parts(const Emitter *e, Node n)
{
    return is_part(e, n) && !threads_of_block(e, n);
}

/* A thread's part of a reduction, or (received) the part that another CTA has sent. */
static const char *part_call(Emitter *e, Node reduction, const char *variable, bool received)
{
    Op op = node(e->g, reduction)->op;
    const InnerReduction *sum = paired_sum(e, reduction);
    if (sum && op == OP_MEAN) {
        const char *kind = received                              ? ""
                           : e->k->beside                        ? "each_"
                           : e->k->moments == MOMENTS_OF_THREADS ? "warp_"
                           : e->k->moments == MOMENTS_EVEN       ? "even_"
                                                                 : "";
        return arena_format(e->arena, "%smoments_of(%s, %s, %s, %s)", kind, variable,
                            node_name(e, sum->node), e->seen[reduction.id],
                            e->shifts[reduction.id]);
    }
    if (sum) return arena_format(e->arena, "online_of(%s, %s)", variable, node_name(e, sum->node));
    if (is_part(e, reduction))
        return arena_format(e->arena, "each_of<%s>(%s)", combiner_of(e->g, reduction)->functor,
                            variable);
    return arena_format(e->arena, "%s_of(%s)", combiner_of(e->g, reduction)->helper, variable);
}

const char *slots_text(Emitter *e, int values, const char *threads)
{
    const char *warps = arena_format(e->arena, "%s / 32", threads);
    return values > 1 ? arena_format(e->arena, "%d * (%s)", values, warps) : warps;
}

const char *reduce_call(Emitter *e, Node reduction, const char *variable)
{
    return part_call(e, reduction, variable, false);
}

/* Names the variables that hold the number of a mean's values, and the shift from which their
 * distances are summed. */
static void name_moments(Emitter *e, Node mean)
{
    if (e->seen[mean.id]) return;
    e->seen[mean.id] = name_after(e, mean, "_seen");
    e->shifts[mean.id] = name_after(e, mean, "_shift");
}

void emit_over_parts(Emitter *e, Node n, const char *rest)
{
    const unsigned along = footprint(e, n);
    if (along & ALONG_TILES) {
        line(e->out, "#pragma unroll");
        line(e->out, "for (int t = 0; t < tiles; t++)");
        e->out->indent++;
    }
    if (along & ALONG_VECTOR) {
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
        e->out->indent++;
    }
    line(e->out, "%s %s", variable(e, n), rest);
    e->out->indent -= (along & ALONG_TILES ? 1 : 0) + (along & ALONG_VECTOR ? 1 : 0);
}

void declare_reductions(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        if (r->phase != phase || r->lacking) continue;
        const NodeInfo *info = node(e->g, r->node);
        const char *identity = identity_text(e->g, r->node), *array = extents(e, r->node);
        const bool zeroed = *array && !strcmp(identity, "0");
        line(e->out, "%s %s%s%s%s;%s%s", type_cuda(info->type), node_name(e, r->node), array,
             zeroed   ? " = {}"
             : *array ? ""
                      : " = ",
             zeroed || *array ? "" : identity, info->name ? "" : "    // ",
             info->name ? "" : node_text(e->arena, e->g, r->node, true));
        if (*array && !zeroed)
            emit_over_parts(e, r->node, arena_format(e->arena, "= %s;", identity));
        if (node(e->g, r->partner)->op != OP_MEAN) continue;
        name_moments(e, r->partner);
        line(e->out, "float %s = 0, %s%s = %s;", e->seen[r->partner.id], e->shifts[r->partner.id],
             array, *array ? "{}" : "0");
    }
}

/* Declares the same variables where they are received. */
void declare_received(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        const InnerReduction *r = &e->k->inner[i];
        if (r->phase != phase || r->lacking) continue;
        bool moments = node(e->g, r->partner)->op == OP_MEAN;
        line(e->out, "%s %s;", type_cuda(node(e->g, r->node)->type), node_name(e, r->node));
        if (!moments) continue;
        name_moments(e, r->partner);
        line(e->out, "float %s, %s;", e->seen[r->partner.id], e->shifts[r->partner.id]);
    }
}

/* Whether a row's threads need not meet for it: those of a block do, or each thread has all. */
static bool meets_none(const Emitter *e, Node n)
{
    return threads_of_block(e, n) || has_whole_parts(e->g, e->k, &e->plan->analysis->sizes, n);
}

static const char *list_parts(Emitter *e, int phase, bool received)
{
    NameList calls = {0};
    for (int i = 0; i < e->k->inner_count; i++) {
        Node n = e->k->inner[i].node;
        if (is_part(e, n) && meets_none(e, n)) continue;
        if (e->k->inner[i].phase == phase && !e->k->inner[i].partner.id)
            *list_push(e->arena, &calls) = part_call(e, n, node_name(e, n), received);
    }
    return join(e->arena, &calls, ", ");
}

const char *reduce_list(Emitter *e, int phase)
{
    return list_parts(e, phase, false);
}

const char *received_list(Emitter *e, int phase)
{
    return list_parts(e, phase, true);
}

/* quotient() takes a third of the instructions of the compiler's division, which matters for short
 * vectors. */
static void emit_mean(Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    const char *sum = node_name(e, n), *count = product_text(e, info->reduced);
    const int64_t size = axes_size(&e->plan->analysis->sizes, info->reduced);
    const bool exact = !(size & (size - 1)); /* by its inverse */
    const char *of_part =
        exact || info->type != TYPE_F32
            ? arena_format(e->arena, "/= %s;", count)
            : arena_format(e->arena, "= quotient(%s, %s);", variable(e, n), count);
    if (is_part(e, n))
        emit_over_parts(e, n, of_part);
    else if (e->k->moments == MOMENTS_OF_THREADS && info->type == TYPE_F32)
        line(e->out, "%s = quotient(%s, %s);", sum, sum, count);
    else
        line(e->out, "%s /= %s;", sum, count);
}

static void emit_online_end(Emitter *e, Node largest, Node sum)
{
    const unsigned excludes = excluded_of_base(e->g, sum);
    const char *end = "online_end";
    if (excludes)
        end = arena_format(e->arena, "online_end_at<%s, %s>",
                           excludes & EXCLUDES_LOW ? "true" : "false",
                           excludes & EXCLUDES_HIGH ? "true" : "false");
    line(e->out, "%s(%s, %s);", end, node_name(e, largest), node_name(e, sum));
}

/* Whether n is x - mean where the mean of x is computed with its squares: then what the rounded
 * mean lacks is subtracted as well. */
static bool is_centred(const Emitter *e, Node n, Node mean)
{
    const NodeInfo *info = node(e->g, n);
    return info->op == OP_SUB && info->args[1].id == mean.id &&
           info->args[0].id == arg(e->g, mean, 0).id && !e->repeated[n.id];
}

void find_centred(Emitter *e)
{
    for (int i = 1; i < e->g->nodes.count; i++) {
        const Node n = {(uint32_t)i}, mean = arg(e->g, n, 1);
        if (e->users[i] > 0 && mean.id && is_centred(e, n, mean)) e->centred[mean.id] = true;
    }
}

const char *mean_rest(const Emitter *e, Node n)
{
    Node mean = node(e->g, n)->op == OP_SUB ? arg(e->g, n, 1) : (Node){0};
    if (!mean.id || !is_centred(e, n, mean) || !e->rests[mean.id]) return NULL;
    return arena_format(e->arena, "%s%s", e->rests[mean.id], subscript(e, mean));
}

/* The row value that x - mean is multiplied by wherever it is used: one operation then scales the
 * distance and subtracts the rest. */
Node scale_of_centred(const Emitter *e, Node n)
{
    Node found = {0};
    if (!mean_rest(e, n) || e->users[n.id] != 1) return found;
    for (int i = 1; i < e->g->nodes.count; i++) {
        const NodeInfo *user = &e->g->nodes.data[i];
        if (user->op != OP_MUL || e->users[i] < 1 || user->args[0].id == user->args[1].id) continue;
        for (int k = 0; k < 2; k++) {
            const Node by = user->args[1 - k];
            if (user->args[k].id == n.id && (!is_column_value(e, by) || is_of_rows_beside(e, by)))
                found = by;
        }
    }
    return found;
}

/* (x - mean - rest) * scale, where the part that does not depend on x is computed once. */
const char *scaled_text(Emitter *e, Node centred, Node by)
{
    const char *scale = expression(e, by, op_info[OP_MUL].precedence + 1);
    return arena_format(e->arena, "fmaf(%s - %s, %s, -%s * %s)",
                        expression(e, arg(e->g, centred, 0), op_info[OP_SUB].precedence),
                        variable(e, arg(e->g, centred, 1)), scale, mean_rest(e, centred), scale);
}

/* Until here the variable of a mean computed with its squares holds its distance from the shift. */
static void emit_moments_end(Emitter *e, Node mean)
{
    Node rest = inner_of(e->k, mean)->rest;
    bool centred = rest.id || e->centred[mean.id];
    if (rest.id) e->rests[mean.id] = node_name(e, rest);
    if (centred && !e->rests[mean.id]) e->rests[mean.id] = name_after(e, mean, "_rest");
    const char *of = subscript(e, mean), *rest_name = e->rests[mean.id];
    if (*of && centred) line(e->out, "float %s%s;", rest_name, extents(e, mean));
    if (*of) {
        line(e->out, "#pragma unroll");
        line(e->out, "for (int i = 0; i < vec; i++)");
    }
    const char *to = !centred ? ""
                     : *of    ? arena_format(e->arena, "%s%s = ", rest_name, of)
                              : arena_format(e->arena, "const float %s = ", rest_name);
    line(e->out, "%s%smoments_end(%s, %s%s);", *of ? "    " : "", to, variable(e, mean),
         e->shifts[mean.id], of);
}

/* From here on the names of reductions mean their results. */
void finish_reductions(Emitter *e, int phase)
{
    for (int i = 0; i < e->k->inner_count; i++) {
        Node n = e->k->inner[i].node;
        if (e->k->inner[i].phase != phase) continue;
        if (node(e->g, n)->op == OP_MEAN && !e->k->inner[i].lacking) emit_mean(e, n);
        if (node(e->g, n)->op == OP_MEAN && paired_sum(e, n)) emit_moments_end(e, n);
        Node partner = e->k->inner[i].partner;
        if (node(e->g, partner)->op == OP_MAX_OVER) emit_online_end(e, partner, n);
        make_local(e, n);
    }
}

/* Blocks of so many threads' vectors: lanes that are a power of two shuffle, and what several of those
 * have meets in shared memory. */
static void emit_blocks_of(Emitter *e, int phase, int threads)
{
    const int lanes = block_lanes(e->k, threads), places = block_places(e->k, threads);
    const Sizes *sizes = &e->plan->analysis->sizes;
    NameList calls = {0};
    for (int i = 0; i < e->k->inner_count; i++) {
        Node n = e->k->inner[i].node;
        if (e->k->inner[i].phase == phase && is_part(e, n) &&
            block_threads(e->g, e->k, sizes, n) == threads)
            *list_push(e->arena, &calls) = part_call(e, n, node_name(e, n), false);
    }
    const char *list = join(e->arena, &calls, ", ");
    if (!calls.count || threads == 1) return;
    if (!places)
        line(e->out, "lanes_reduce<%d>(%s);", lanes, list);
    else
        line(e->out, "blocks_reduce<%s, %d, %d>(block_scratch, block_parity, %s);",
             e->k->teams > 1 ? "threads_per_row" : "threads", lanes, threads / lanes, list);
}

static void emit_block_reductions(Emitter *e, int phase)
{
    LIST(int) done = {0};
    for (int i = 0; i < e->k->inner_count; i++) {
        const int threads = threads_of_block(e, e->k->inner[i].node);
        bool again = e->k->inner[i].phase != phase || !threads;
        for (int j = 0; j < done.count; j++) again |= done.data[j] == threads;
        if (again) continue;
        *list_push(e->arena, &done) = threads;
        emit_blocks_of(e, phase, threads);
    }
}

/* Shared memory for blocks that are no power of two of lanes, or several warps'. */
void declare_block_scratch(Emitter *e)
{
    const Kernel *k = e->k;
    int most = 0;
    for (int phase = 0; phase < k->phases; phase++) {
        int places = 0;
        for (int i = 0; i < k->inner_count; i++)
            if (k->inner[i].phase == phase)
                places += meeting_places(e->g, k, &e->plan->analysis->sizes, k->inner[i].node);
        most = places > most ? places : most;
    }
    if (!most) return;
    line(e->out, "__shared__ %s block_scratch[%d][2][%d];",
         exchanges_wide(e->g, k) ? "double" : "float", k->teams, most);
    line(e->out, "int block_parity = 0;");
}

void emit_reductions(Emitter *e, int phase)
{
    const Kernel *k = e->k;
    const char *list = reduce_list(e, phase);
    emit_block_reductions(e, phase);
    if (!*list) {
        finish_reductions(e, phase);
        return;
    }
    if (phase == 0) emit_next_landed(e, k->cluster > 1 ? "cluster_reduce" : "row_reduce");
    if (k->beside && warps_of_row(k) > 1)
        line(e->out, "span_reduce<lanes, warps>(scratch, parity, team, %s);", list);
    else if (is_grouped(k))
        line(e->out, "group_reduce<threads>(scratch, boxes, news, parity, round, %s);", list);
    else if (k->cluster > 1)
        line(e->out, "cluster_reduce<threads>(scratch, exchange, round, %s);", list);
    else if (k->threads_per_row > 32)
        line(e->out, "row_reduce<%s>(scratch, parity, %s);",
             k->teams > 1 ? "threads_per_row" : "threads", list);
    else if (k->threads_per_row > 1)
        line(e->out, "lanes_reduce<threads_per_row>(%s);", list);
    finish_reductions(e, phase);
}
