/* codegen/names.c: identifiers of generated CUDA. The user's names survive. Of a name that C, the
 * prelude or this kernel has taken, a value gets an underscore and a tensor a number; one with
 * underscores that C++ reserves loses them. */
#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

static bool is_taken(Emitter *e, const char *name)
{
    const bool own = name_find(&e->own, name) >= 0;
    e->renamed |= own;
    return own || name_find(&e->words, name) >= 0 || name_find(&e->used, name) >= 0;
}

void keep_own_names(Emitter *e, const char *text)
{
    for (const char *word = own_names, *end; *word; word = end + (*end == ' ')) {
        end = word + strcspn(word, " ");
        const char *name = arena_copy(e->arena, word, (size_t)(end - word));
        if (!text || mentions(text, name)) name_add(e->arena, &e->own, name, 0);
    }
}

/* The number from which the search for a free name begins. Names are never released, so all lower
 * ones are taken. */
static int *next_number(Emitter *e, Map *numbers, const char *base, int first)
{
    int found = name_find(numbers, base);
    if (found >= 0) return &e->next.data[found];
    name_add(e->arena, numbers, base, e->next.count);
    int *next = list_push(e->arena, &e->next);
    *next = first;
    return next;
}

const char *unique_name(Emitter *e, const char *base)
{
    const char *plain = plain_name(e->arena, base), *name = plain;
    const char *gap = plain[strlen(plain) - 1] == '_' ? "" : "_";
    if (is_taken(e, name)) {
        int *i = next_number(e, &e->gaps, plain, 1);
        for (; is_taken(e, name); ++*i)
            name = *i == 1 ? arena_format(e->arena, "%s%s", plain, gap)
                           : arena_format(e->arena, "%s%s%d", plain, gap, *i);
    }
    name_add(e->arena, &e->used, name, 0);
    return name;
}

/* Suffixes bring an underscore of their own, so that at the end of `base` is left out. */
const char *take_stem(Emitter *e, const char *base, bool loads, bool stores, const char **pointer)
{
    const char *plain = plain_name(e->arena, base);
    static const char *const suffixes[] = {"_v", "_next", "_out"};
    const int from = loads ? 0 : 2, to = stores ? 3 : 2;
    int length = (int)strlen(plain);
    if (length > 1 && plain[length - 1] == '_') length--;
    for (int number = 1;; number++) {
        const char *stem = number == 1 ? arena_copy(e->arena, plain, (size_t)length)
                                       : arena_format(e->arena, "%.*s%d", length, plain, number);
        *pointer = number == 1 ? plain : stem;
        bool taken = is_taken(e, stem) || is_taken(e, *pointer);
        for (int i = from; i < to; i++)
            taken |= is_taken(e, arena_format(e->arena, "%s%s", stem, suffixes[i]));
        if (taken) continue;
        name_add(e->arena, &e->used, *pointer, 0);
        for (int i = from; i < to; i++)
            name_add(e->arena, &e->used, arena_format(e->arena, "%s%s", stem, suffixes[i]), 0);
        return stem;
    }
}

/* The name of an unnamed value, by the operation that made it. */
static const char *made_name(Arena *arena, Op op)
{
    if (op_info[op].class == CLASS_REDUCE) return arena_format(arena, "row_%s", op_info[op].text);
    switch (op) {
    case OP_ADD: return "total";
    case OP_SUB: return "difference";
    case OP_MUL: return "product";
    case OP_DIV: return "quotient";
    case OP_NEG: return "negative";
    case OP_WHERE: return "chosen";
    case OP_CAST: return "rounded";
    case OP_CONVERT: return "widened";
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return "holds";
    case OP_AND: return "both";
    case OP_OR: return "either";
    case OP_NOT: return "opposite";
    case OP_POW: return "power";
    default: return "value";
    }
}

/* Numbers tell unnamed values of one kind apart: row_sum, row_sum2. */
static const char *numbered(Emitter *e, const char *base)
{
    const char *name = base;
    if (!is_taken(e, name)) return name;
    int *i = next_number(e, &e->numbers, base, 2);
    for (; is_taken(e, name); ++*i) name = arena_format(e->arena, "%s%d", base, *i);
    return name;
}

static const char *lower_case(Arena *arena, const char *name)
{
    char *copy = arena_copy(arena, name, strlen(name));
    for (char *c = copy; *c; c++) *c = (char)tolower((unsigned char)*c);
    return copy;
}

/* The name of an unnamed value: of those that are found together with a mean, by what they are to
 * it. */
static const char *plain_base(const Emitter *e, Node n)
{
    const Analysis *a = e->plan->analysis;
    const InnerReduction *r = inner_of(e->k, n);
    if (a->centres[n.id].id) return is_variance(a, n) ? "variance" : "rest";
    if (r && node(e->g, r->partner)->op == OP_MEAN) return "row_variance";
    if (is_part(e, n) && !e->k->beside)
        return arena_format(e->arena, "part_%s", op_info[node(e->g, n)->op].text);
    return made_name(e->arena, node(e->g, n)->op);
}

/* What a value is named after: its own name, or the stem of the tensor of that name. */
static const char *stem_after(const Emitter *e, const char *name)
{
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind == ARG_TENSOR && !strcmp(arg->name, name)) return e->stems[i];
    }
    return name;
}

const char *node_name(Emitter *e, Node n)
{
    const NodeInfo *info = node(e->g, n);
    if (e->names[n.id]) return e->names[n.id];
    const char *base = info->name ? stem_after(e, info->name) : NULL;
    if (info->op == OP_PARAM)
        base = stem_after(e, e->g->params.data[info->param].name);
    else if (info->op == OP_INDEX)
        base = lower_case(e->arena, e->g->axes[info->axis].name);
    else if (!base && op_info[info->op].class == CLASS_CALL && isalpha(op_info[info->op].text[0]) &&
             info->op != OP_WHERE)
        base = arena_format(e->arena, "%s_value", op_info[info->op].text);
    else if (!base)
        base = numbered(e, plain_base(e, n));
    return e->names[n.id] = unique_name(e, base);
}

static int find_arg(const Emitter *e, ArgKind kind, int index, int axis)
{
    bool axis_counts = kind == ARG_STRIDE || kind == ARG_SIZE;
    for (int i = 0; i < e->entry->arg_count; i++) {
        const LaunchArg *arg = &e->entry->args[i];
        if (arg->kind == kind && arg->index == index && (!axis_counts || arg->axis == axis))
            return i;
    }
    return -1;
}

const char *arg_name(const Emitter *e, ArgKind kind, int index, int axis)
{
    const int found = find_arg(e, kind, index, axis);
    return found >= 0 ? e->args[found] : "missing_argument";
}

const char *stem_name(const Emitter *e, int tensor, int slot)
{
    const int found =
        tensor >= 0 ? find_arg(e, ARG_TENSOR, tensor, 0) : find_arg(e, ARG_SLOT, slot, 0);
    return found >= 0 ? e->stems[found] : "missing_argument";
}

const char *type_cuda(Type type)
{
    return type == TYPE_F32   ? "float"
           : type == TYPE_F64 ? "double"
           : type == TYPE_I64 ? "long long"
                              : "bool";
}

int open_scope(const Emitter *e)
{
    return e->scope.count;
}

void close_scope(Emitter *e, int mark)
{
    while (e->scope.count > mark) e->local[e->scope.data[--e->scope.count]] = false;
}

void make_local(Emitter *e, Node n)
{
    e->local[n.id] = true;
    *list_push(e->arena, &e->scope) = n.id;
}

const char *join(Arena *arena, const NameList *list, const char *separator)
{
    Text *text = text_new(arena);
    for (int i = 0; i < list->count; i++)
        text_print(text, "%s%s", i ? separator : "", list->data[i]);
    return text_string(text);
}
