/* reference/random_inputs.c: seeded random inputs. Counter-based: an element depends only on the
 * seed, the input's name and its own index, so the sizes of other tensors do not matter. */
#include "reference/reference.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { USUAL_LIMIT = 16 }; /* of integers that no axis limits */

#define TWO_PI 6.28318530717958647693

/* splitmix64's output function over a Weyl sequence. */
static uint64_t random_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In (0, 1). */
static double random_unit(uint64_t key, uint64_t counter)
{
    return ((double)(random_bits(key, counter) >> 12) + 0.5) * 0x1p-52;
}

/* Box and Muller: elements 2k and 2k + 1 of a standard normal sequence. */
static void random_normals(uint64_t key, uint64_t k, double pair[2])
{
    const double radius = sqrt(-2 * log(random_unit(key, 2 * k)));
    const double angle = TWO_PI * random_unit(key, 2 * k + 1);
    pair[0] = radius * cos(angle);
    pair[1] = radius * sin(angle);
}

static bool is_positive_name(const char *name)
{
    static const char *const names[] = {"rstd", "rs", "std", "var", "scale"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* What an integer expression contains. */
typedef struct {
    bool has_param; /* the one asked for */
    AxisSet axes;
} Parts;

static Parts join_parts(const Parts *parts, const NodeInfo *info)
{
    const Parts *a = &parts[info->args[0].id], *b = &parts[info->args[1].id];
    return (Parts){a->has_param || b->has_param, a->axes | b->axes};
}

/* The parts of a node whose operands are known. */
static Parts find_parts(const Parts *parts, const NodeInfo *info, uint32_t param)
{
    switch (info->op) {
    case OP_PARAM: return (Parts){.has_param = info->param == param};
    case OP_INDEX:
    case OP_SIZE: return (Parts){.axes = (AxisSet)1 << info->axis};
    case OP_CONVERT:
    case OP_CAST:
    case OP_NEG:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL: return join_parts(parts, info);
    default: return (Parts){0};
    }
}

static int64_t smallest_axis(const Graph *g, const Sizes *sizes, AxisSet axes)
{
    int64_t smallest = INT64_MAX;
    for (int axis = 0; axis < g->axis_count; axis++)
        if (axes >> axis & 1 && sizes->of[axis] < smallest) smallest = sizes->of[axis];
    return smallest;
}

/* The limit of an integer parameter: the smallest axis that it is compared with. */
static uint64_t integer_limit(Arena *arena, const Graph *g, uint32_t param, const Sizes *sizes)
{
    int64_t limit = INT64_MAX;
    Parts *parts = NEW_ARRAY(arena, Parts, g->nodes.count);
    for (int id = 1; id < g->nodes.count; id++) {
        const NodeInfo *info = &g->nodes.data[id];
        parts[id] = find_parts(parts, info, param);
        if (!is_comparison(info->op)) continue;
        const Parts compared = join_parts(parts, info);
        const int64_t smallest =
            compared.has_param ? smallest_axis(g, sizes, compared.axes) : INT64_MAX;
        if (smallest < limit) limit = smallest;
    }
    return limit == INT64_MAX ? USUAL_LIMIT : limit < 1 ? 1 : (uint64_t)limit;
}

static uint64_t limit_of(const Graph *g, uint32_t param, const Sizes *sizes)
{
    Arena *arena = arena_new();
    const uint64_t limit = arena ? integer_limit(arena, g, param, sizes) : USUAL_LIMIT;
    arena_free(arena);
    return limit;
}

static void random_integers(const Param *p, uint64_t key, uint64_t limit, int64_t count, char *data)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = random_bits(key, (uint64_t)i) >> 32;
        const uint64_t value =
            limit >> 32 ? random_bits(key, (uint64_t)i) % limit : bits * limit >> 32;
        dtype_store_int(p->dtype, data + i * dtype_info[p->dtype].bytes, (int64_t)value);
    }
}

static void random_floats(const Param *p, uint64_t key, int64_t count, char *data)
{
    const bool positive = is_positive_name(p->name);
    double pair[2] = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        if ((i & 1) == 0) random_normals(key, (uint64_t)i / 2, pair);
        const double value = positive ? 0.5 + fabs(pair[i & 1]) : pair[i & 1];
        dtype_store_float(p->dtype, data + i * dtype_info[p->dtype].bytes, value);
    }
}

void random_input(const Graph *g, int param, const Sizes *sizes, uint64_t seed, void *data)
{
    const Param *p = &g->params.data[param];
    const uint64_t key = XXH3_64bits_withSeed(p->name, strlen(p->name), seed);
    const int64_t count = axes_size(sizes, p->axes);
    if (dtype_is_float(p->dtype))
        random_floats(p, key, count, data);
    else if (dtype_info[p->dtype].bytes == 1)
        random_integers(p, key, 2, count, data);
    else
        random_integers(p, key, limit_of(g, (uint32_t)param, sizes), count, data);
}
