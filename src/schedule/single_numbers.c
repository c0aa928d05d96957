/* schedule/single_numbers.c: a number that depends on several reductions, such as a loss, is computed
 * by the kernel of one of them. This file chooses which. */
#include "schedule/internal.h"

/* Whether the kernel that computes `last` by itself computes reduction n as well, or finds it in
 * the workspace. */
static bool is_there(const Scheduler *s, Node n, Node last)
{
    const NodeInfo *info = node(s->g, n), *other = node(s->g, last);
    bool same = reduction_way(s, n) == BY_ITSELF && s->home[n.id] == s->home[last.id] &&
                info->axes == other->axes && info->reduced == other->reduced;
    return same || s->cut[n.id] <= s->home[last.id];
}

/* The operands of a node in order, and of those that are no reductions theirs, each node's once. */
typedef struct {
    LIST(Node) users, operands; /* still to be visited, the next one last */
    bool *opened;               /* by node id */
} Descent;

static void open_operands(Scheduler *s, Descent *d, Node user)
{
    if (d->opened[user.id]) return;
    d->opened[user.id] = true;
    for (int i = op_info[node(s->g, user)->op].arity - 1; i >= 0; i--) {
        *list_push(s->arena, &d->users) = user;
        *list_push(s->arena, &d->operands) = arg(s->g, user, i);
    }
}

static Descent descend(Scheduler *s, Node v)
{
    Descent d = {.opened = NEW_ARRAY(s->arena, bool, s->g->nodes.count)};
    open_operands(s, &d, v);
    return d;
}

static bool next_operand(Scheduler *s, Descent *d, Node *user, Node *operand)
{
    if (!d->operands.count) return false;
    *user = d->users.data[--d->users.count];
    *operand = d->operands.data[--d->operands.count];
    if (!is_reduction(s->g, *operand)) open_operands(s, d, *operand);
    return true;
}

/* Whether all reductions are there that a number is made of. */
static bool has_operands(Scheduler *s, Node v, Node last)
{
    Node user, n;
    for (Descent d = descend(s, v); next_operand(s, &d, &user, &n);)
        if (is_reduction(s->g, n) && !is_there(s, n, last)) return false;
    return true;
}

/* Of the reductions that a value is made of at last, one that has a kernel by itself and gives a
 * single number; 0: none. */
static Node last_by_itself(Scheduler *s, Node v)
{
    Node user, n;
    for (Descent d = descend(s, v); next_operand(s, &d, &user, &n);) {
        bool number =
            is_reduction(s->g, n) && reduction_way(s, n) == BY_ITSELF && !node(s->g, n)->axes;
        if (number && s->level[n.id] == s->level[user.id]) return n;
    }
    return (Node){0};
}

Node last_reduction(Scheduler *s, Node v)
{
    const Node last = last_by_itself(s, v);
    return last.id && has_operands(s, v, last) ? last : (Node){0};
}
