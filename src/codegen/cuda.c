/* codegen/cuda.c: plan -> CUDA C. The module holds the prelude sections that its kernels mention,
 * then the kernels in launch order, each with the comment of codegen/comment.c. */
#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

static const char version[] =
#include "version.inc"
    ;

static const char *arg_type(const Emitter *e, const LaunchArg *arg)
{
    const LaunchPlan *plan = &e->plan->launch;
    switch (arg->kind) {
    case ARG_TENSOR: {
        const LaunchTensor *tensor = &plan->tensors[arg->index];
        return arena_format(e->arena, "%s%s *__restrict__ ", tensor->output ? "" : "const ",
                            dtype_info[tensor->dtype].cuda);
    }
    case ARG_SLOT: {
        bool reads = e->k->finishes >= 0 && plan->slots[arg->index].copies_kernel >= 0;
        for (int i = 0; i < e->k->load_count; i++) reads |= e->k->loads[i].slot == arg->index;
        return arena_format(e->arena, "%s%s *__restrict__ ", reads ? "const " : "",
                            dtype_info[plan->slots[arg->index].dtype].cuda);
    }
    case ARG_SCALAR:
        return arena_format(e->arena, "%s ",
                            type_cuda(dtype_info[plan->scalars[arg->index].dtype].type));
    case ARG_ALONE:
    case ARG_GRID: return "int ";
    case ARG_INTERVAL: return "unsigned ";
    case ARG_STRIDE:
    case ARG_ROW_STRIDE:
    case ARG_ROWS:
    case ARG_SIZE: break;
    }
    return "long long ";
}

/* Whether the text itself states the cluster size (__cluster_dims__), not the launch alone. ptxas
 * then omits the code for launches without a cluster. Kernels with sums over rows have no registers
 * to spare, and would spill. */
bool names_cluster(const Emitter *e)
{
    return e->launch->cluster > 1 && !is_grouped(e->k) && !e->k->accumulator_count;
}

/* The parameters, a tensor with its strides on one line. */
const char *signature_text(Emitter *e)
{
    Text *text = text_new(e->arena);
    const LaunchKernel *launch = e->launch;
    const LaunchEntry *entry = e->entry;
    /* gathers element by element want the registers more than the CTAs, where CTAs do not wait for
     * each other */
    const bool free = e->gathers && !is_grouped(e->k);
    const char *ctas =
        e->k->wanted_ctas && !free ? arena_format(e->arena, ", %d", e->k->wanted_ctas) : "";
    const char *cluster =
        names_cluster(e) ? arena_format(e->arena, "__cluster_dims__(%d, 1, 1) ", launch->cluster)
                         : "";
    line(text, KERNEL_BEGINS " %s__launch_bounds__(%d%s)", cluster, launch->threads, ctas);
    text_print(text, "void %s(", entry->name);
    for (int i = 0; i < entry->arg_count; i++) {
        bool same_line = i && entry->args[i].kind == entry->args[i - 1].kind &&
                         entry->args[i].kind != ARG_TENSOR && entry->args[i].kind != ARG_SLOT;
        same_line |= entry->args[i].kind == ARG_STRIDE || entry->args[i].kind == ARG_ROW_STRIDE;
        text_print(text, "%s%s%s", i ? same_line ? ", " : ",\n    " : "\n    ",
                   arg_type(e, &entry->args[i]), e->args[i]);
    }
    text_put(text, ")", 1);
    return text_string(text);
}

static const char *lower_case(Emitter *e, const char *name)
{
    char *copy = arena_copy(e->arena, name, strlen(name));
    for (char *c = copy; *c; c++) *c = (char)tolower((unsigned char)*c);
    return copy;
}

/* Names a pointer; what the kernel loads or stores through it has names of the same stem. */
static void name_pointer(Emitter *e, int index)
{
    const LaunchArg *arg = &e->entry->args[index];
    const bool slot = arg->kind == ARG_SLOT;
    bool loads = false, stores = false;
    for (int i = 0; i < e->k->load_count; i++)
        loads |= (slot ? e->k->loads[i].slot : e->k->loads[i].tensor) == arg->index;
    for (int i = 0; i < e->k->store_count; i++)
        stores |= (slot ? e->k->stores[i].slot : e->k->stores[i].tensor) == arg->index;
    e->stems[index] = take_stem(e, arg->name, loads, stores, &e->args[index]);
}

static const char *name_argument(Emitter *e, const LaunchArg *arg)
{
    if (arg->kind == ARG_SIZE) return e->sizes[arg->axis];
    if (arg->kind == ARG_GRID || arg->kind == ARG_ALONE || arg->kind == ARG_ROWS) return arg->name;
    if (arg->kind != ARG_STRIDE && arg->kind != ARG_ROW_STRIDE) return unique_name(e, arg->name);
    const char *tensor = e->plan->launch.tensors[arg->index].name;
    return unique_name(e, arena_format(e->arena, "%s%s", stem_name(e, arg->index, -1),
                                       arg->name + strlen(tensor)));
}

static void name_arguments(Emitter *e)
{
    for (int i = 0; i < e->g->axis_count; i++) e->sizes[i] = unique_name(e, e->g->axes[i].name);
    e->args = NEW_ARRAY(e->arena, const char *, e->entry->arg_count + 1);
    e->stems = NEW_ARRAY(e->arena, const char *, e->entry->arg_count + 1);
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind == ARG_TENSOR || arg->kind == ARG_SLOT)
            name_pointer(e, i);
        else
            e->args[i] = name_argument(e, arg);
    }
}

/* A single axis is counted by the loop variable itself; of several each gets a coordinate. */
static void name_coordinates(Emitter *e, AxisSet axes, const char *single)
{
    bool several = axes & (axes - 1) & ~e->collapsed;
    for (int i = 0; i < e->g->axis_count; i++)
        if (axes >> i & 1)
            e->coords[i] = several ? unique_name(e, lower_case(e, e->g->axes[i].name)) : single;
}

/* The coordinate that stands for several columns has the names of all. */
static void name_merged(Emitter *e)
{
    NameList names = {0};
    for (int i = 0; i < e->g->axis_count; i++)
        if (e->merged >> i & 1) *list_push(e->arena, &names) = lower_case(e, e->g->axes[i].name);
    if (names.count) e->coords[fastest_column(e->k)] = unique_name(e, join(e->arena, &names, "_"));
}

/* A copy of the kernel whose loads and stores have the stems from which `x_v`, `x_next` and `x_out`
 * are made. */
static const Kernel *name_accesses(Emitter *e)
{
    Kernel *k = NEW(e->arena, Kernel);
    *k = *e->k;
    k->loads = NEW_ARRAY(e->arena, Load, k->load_count + 1);
    k->stores = NEW_ARRAY(e->arena, Store, k->store_count + 1);
    for (int i = 0; i < k->load_count; i++) {
        k->loads[i] = e->k->loads[i];
        k->loads[i].name = stem_name(e, k->loads[i].tensor, k->loads[i].slot);
    }
    for (int i = 0; i < k->store_count; i++) {
        k->stores[i] = e->k->stores[i];
        k->stores[i].name = stem_name(e, k->stores[i].tensor, k->stores[i].slot);
    }
    return k;
}

static bool is_paired_sum(const Kernel *k, Node n)
{
    const InnerReduction *r = inner_of(k, n);
    return r && r->partner.id;
}

/* Whether the kernel computes a node's operands element by element. It does not where a pair of
 * reductions computes it, or where a single thread reads the one element that counts. */
static bool uses_operands(const Emitter *e, Node n)
{
    if (is_reduction(e->g, n)) return !is_paired_sum(e->k, n) && !picks_element(e, n);
    return e->users[n.id] > 0;
}

/* By node id: whether computing a row's value takes a function call or a division beside the row's
 * reductions. Operands come first. */
static bool *find_work(const Emitter *e)
{
    bool *work = NEW_ARRAY(e->arena, bool, e->g->nodes.count);
    for (int i = 1; i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        Op op = node(e->g, n)->op;
        if (is_reduction(e->g, n)) continue;
        work[i] = op_info[op].class == CLASS_CALL || op == OP_DIV;
        for (int k = 0; k < op_info[op].arity; k++) work[i] |= work[arg(e->g, n, k).id];
    }
    return work;
}

/* Whether all elements of a row use such a value in the pass before which it becomes known. A value
 * that is known before the row is read would have to be waited for first. One that only a later
 * pass uses would occupy a register until then. */
static bool serves_elements(const Emitter *e, Node n, Node user, const bool *work)
{
    bool now = e->k->phase && e->k->phase[n.id] > 0 && e->k->phase[n.id] == e->k->phase[user.id];
    return now && is_column_value(e, user) && !is_column_value(e, n) && work[n.id];
}

/* Counts from users down to operands. */
void count_users(Emitter *e)
{
    const Kernel *k = e->k;
    const bool *work = find_work(e);
    for (int i = 0; i < k->store_count; i++) e->users[k->stores[i].node.id]++;
    for (int i = 0; i < k->accumulator_count; i++)
        if (!is_satellite(&k->accumulators[i]))
            e->users[arg(e->g, k->accumulators[i].node, 0).id]++;
    for (int i = e->g->nodes.count - 1; k->computed && i > 0; i--) {
        Node n = {(uint32_t)i};
        if (!k->computed[i]) continue;
        if (picks_element(e, n)) e->users[picked_place(e, n).id]++;
        if (!uses_operands(e, n)) continue;
        Node operands[MOST_MENTIONED];
        const int count = list_mentioned(e, n, operands);
        for (int j = 0; j < count; j++) {
            e->users[operands[j].id]++;
            e->serves[operands[j].id] |= serves_elements(e, operands[j], n, work);
        }
    }
}

/* A program may write a million operations without names, or repeat them by a function. An
 * expression therefore holds a limited number of them, so neither a reader nor a compiler has to
 * nest deeper. Operands come first. */
void break_lines(Emitter *e)
{
    enum { LONGEST = 64 };
    int *length = NEW_ARRAY(e->arena, int, e->g->nodes.count);
    for (int i = 1; e->k->computed && i < e->g->nodes.count; i++) {
        Node n = {(uint32_t)i};
        length[i] = 1;
        if (!e->k->computed[i] || is_reduction(e->g, n)) continue;
        for (int j = 0; j < op_info[node(e->g, n)->op].arity; j++)
            if (!wants_line(e, arg(e->g, n, j))) length[i] += length[arg(e->g, n, j).id];
        e->breaks[i] = length[i] > LONGEST;
    }
}

static void make_arrays(Emitter *e)
{
    const int count = e->g->nodes.count;
    e->names = NEW_ARRAY(e->arena, const char *, count);
    e->local = NEW_ARRAY(e->arena, bool, count);
    e->taken = NEW_ARRAY(e->arena, const char *, count);
    e->vector_sums = NEW_ARRAY(e->arena, const char *, count);
    e->seen = NEW_ARRAY(e->arena, const char *, count);
    e->shifts = NEW_ARRAY(e->arena, const char *, count);
    e->rests = NEW_ARRAY(e->arena, const char *, count);
    e->inverses = NEW_ARRAY(e->arena, const char *, count);
    e->divisors = NEW_ARRAY(e->arena, const char *, count);
    e->two_values = NEW_ARRAY(e->arena, TwoValues, count);
    e->places = NEW_ARRAY(e->arena, const char *, count);
    e->users = NEW_ARRAY(e->arena, int, count);
    e->serves = NEW_ARRAY(e->arena, bool, count);
    e->breaks = NEW_ARRAY(e->arena, bool, count);
    e->centred = NEW_ARRAY(e->arena, bool, count);
    e->repeated = find_repeated(e->arena, e->g);
    e->bits = NEW_ARRAY(e->arena, int, count);
}

static Emitter *make_emitter(Arena *arena, const Plan *plan, int index, bool strided)
{
    Emitter *e = NEW(arena, Emitter);
    e->arena = arena;
    e->plan = plan;
    e->g = plan->analysis->graph;
    e->k = &plan->kernels[index];
    e->launch = &plan->launch.kernels[index];
    e->index = index;
    e->entry = strided ? &e->launch->strided : &e->launch->entry;
    e->collapsed = strided ? 0 : e->launch->collapsed;
    e->gathers = strided && e->k->dense;
    e->contiguous = strided ? 0 : e->k->contiguous;
    e->by_column = e->k->finishes >= 0;
    e->merged = e->gathers || is_dense(e->k) ? 0 : e->k->dense;
    e->out = text_new(arena);
    make_arrays(e);
    add_reserved_names(arena, &e->words);
    add_prelude_names(arena, &e->words);
    name_add(arena, &e->used, e->entry->name, 0);
    return e;
}

static void name_all(Emitter *e)
{
    const bool finish = e->k->finishes >= 0;
    name_arguments(e);
    e->k = name_accesses(e);
    e->row = e->k->beside ? "line" : "row";
    name_coordinates(e, e->k->rows, e->row);
    name_coordinates(e, e->k->kept, "group");
    name_coordinates(e, column_axes(e->k), finish || e->k->beside ? "col" : "col + i");
    name_merged(e);
    if (e->k->beside)
        name_coordinates(e, e->k->beside,
                         unique_name(e, lower_case(e, e->g->axes[fastest_column(e->k)].name)));
    e->thread = e->k->threads_per_row == 32 ? "lane" : "thread_in_row";
    const AxisSet columns = column_axes(e->k);
    e->columns = columns & (columns - 1) ? "columns" : columns ? count_text(e, columns) : "1";
    e->end = e->k->slice && is_ragged(e->k) ? "slice_end" : e->columns;
}

static void print_kernel(Emitter *e)
{
    name_all(e);
    count_users(e);
    find_centred(e);
    break_lines(e);
    emit_comment(e);
    if (e->k->clears >= 0)
        emit_clear_kernel(e);
    else if (e->launch->adds_parts >= 0)
        emit_group_finish_kernel(e);
    else if (e->k->finishes >= 0)
        emit_finish_kernel(e);
    else
        emit_rows_kernel(e);
}

/* Which names a kernel needs for itself its text tells. So where one of them was in the way of a
 * name of the program, the kernel is printed again, and keeps those that it has. */
static void emit_kernel(Arena *arena, const Plan *plan, int index, bool strided, Text *out)
{
    Emitter *e = make_emitter(arena, plan, index, strided);
    keep_own_names(e, NULL);
    print_kernel(e);
    if (e->renamed) {
        const char *before = text_string(e->out);
        e = make_emitter(arena, plan, index, strided);
        keep_own_names(e, before);
        print_kernel(e);
    }
    text_put(out, e->out->data, e->out->length);
}

/* Names prelude sections that no text mentions: conversions of dtypes that the plan stores or
 * rounds to, and what reductions of integers and rows of 4-byte elements need. */
static void name_needs(Text *names, const Plan *plan)
{
    bool used[DTYPE_COUNT] = {0};
    const Graph *g = plan->analysis->graph;
    for (int i = 0; i < plan->launch.tensor_count; i++) used[plan->launch.tensors[i].dtype] = true;
    for (int i = 0; i < plan->launch.slot_count; i++) used[plan->launch.slots[i].dtype] = true;
    bool integers = false, words = false;
    for (int i = 1; i < g->nodes.count; i++) {
        const NodeInfo *info = &g->nodes.data[i];
        if (info->op == OP_CAST) used[info->dtype] = true;
        integers |= is_reduction(g, (Node){(uint32_t)i}) && info->type == TYPE_I64;
    }
    for (int i = 0; i < plan->kernel_count; i++)
        for (int j = 0; j < plan->kernels[i].load_count; j++) {
            const Load *load = &plan->kernels[i].loads[j];
            words |= load->access == ACCESS_VECTOR && dtype_info[load->dtype].bytes == 4;
        }
    if (integers) text_print(names, "reductions_of_integers ");
    if (words) text_print(names, "keep_branch ");
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (used[i]) text_print(names, "storage_of_%s ", dtype_info[i].fuse);
}

/* Adds the prelude sections that the kernels mention. */
static void emit_helpers(Text *module, Arena *arena, const char *needs, const char *kernels)
{
    const char *doubles = mentions(kernels, "double") ? "storage_of_double" : "";
    emit_prelude(module, arena_format(arena, "%s\n%s%s\n", kernels, needs, doubles));
}

CudaText cuda_begin(Arena *arena, bool includes_prelude)
{
    return (CudaText){text_new(arena), text_new(arena), text_new(arena), includes_prelude};
}

/* A text for another number of SMs than the architecture's own GPU has comes from a GPU at hand. */
static void emit_head(const CudaText *module, Arena *scratch, const Plan *plan, const char *command)
{
    const Target *target = &plan->target, *known = target_find(target->arch);
    const char *sms = known && known->sms == target->sms
                          ? ""
                          : arena_format(scratch, " with %d SMs", target->sms);
    line(module->heads, "// %s for %s%s, by fusec %s%s", plan->analysis->graph->name, target->arch,
         sms, version, command ? ":" : "");
    if (command)
        line(module->heads, "//   %s%s", command,
             module->includes_prelude ? " --prelude include" : "");
}

void cuda_add(CudaText *module, Arena *scratch, const Plan *plan, const char *command)
{
    emit_head(module, scratch, plan, command);
    name_needs(module->needs, plan);
    for (int strided = 0; strided <= 1; strided++)
        for (int i = 0; i < plan->kernel_count; i++) {
            if (strided && !has_strided(&plan->launch.kernels[i])) continue;
            blank_line(module->kernels);
            emit_kernel(scratch, plan, i, strided, module->kernels);
        }
}

const char *cuda_end(CudaText *module)
{
    const char *kernels = text_string(module->kernels);
    if (module->includes_prelude)
        line(module->heads, "#include \"fusec.cuh\"");
    else
        emit_helpers(module->heads, module->heads->arena, text_string(module->needs), kernels);
    text_print(module->heads, "%s", kernels);
    return text_string(module->heads);
}

const char *emit_cuda(Arena *arena, const Plan *plan, const char *command)
{
    CudaText module = cuda_begin(arena, false);
    cuda_add(&module, arena, plan, command);
    return cuda_end(&module);
}
