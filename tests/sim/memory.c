/* memory.c: judges every access of a kernel to memory that is not the thread's own: where
 * it lies, how it is aligned, whether what it reads was written, and by whom without a
 * barrier between.
 *
 * A cell keeps the last write and two reads. Two accesses race if one is a write and the
 * earlier is not in the later thread's clock; the order in which they happened to run
 * does not matter. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *verb(SimAccess kind)
{
    return kind == SIM_READ ? "read" : kind == SIM_WRITE ? "write" : "atomic";
}

void *map_zeros(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool happened_before(const Machine *m, const Thread *t, const Touch *touch)
{
    if (touch->by < m->first_id || touch->by == t->id) return true;
    const int index = (int)(touch->by - m->first_id);
    const int cta = index / m->actors, actor = index % m->actors;
    return clock_get(&t->cta->base, cta, actor) >= touch->epoch ||
           clock_get(&t->clock, cta, actor) >= touch->epoch ||
           (t->known && clock_get(t->known, cta, actor) >= touch->epoch);
}

typedef struct {
    Machine *m;
    Thread *t;
    SimAccess kind;
    uint32_t at;
    size_t size;
    const char *name; /* of the buffer or shared variable */
    size_t offset;    /* bytes from its beginning */
    bool shared;
} Access;

_Noreturn static void report_race(const Access *a, const Touch *other, const char *how)
{
    char who[128];
    print_thread(a->m, other->by, who, sizeof who);
    const char *where = object_place(a->m->object, other->at);
    fault(a->m, a->at,
          "race: %s of %zu bytes of %s%s, byte %zu, %s by %s at %s with nothing between "
          "that orders the two",
          verb(a->kind), a->size, a->shared ? "shared " : "", a->name, a->offset, how, who, where);
}

static void note_read(const Access *a, Cell *cell)
{
    const Touch touch = {a->t->id, a->t->epoch, a->at};
    for (int i = 0; i < CELL_READERS; i++) {
        if (cell->read[i].by == a->t->id || happened_before(a->m, a->t, &cell->read[i])) {
            cell->read[i] = touch;
            return;
        }
    }
    cell->read[random_below(a->m, CELL_READERS)] = touch;
}

static void check_cell(const Access *a, Cell *cell)
{
    if (cell->flags & CELL_PENDING)
        fault(a->m, a->at,
              "%s of shared %s, byte %zu, while an asynchronous copy to it has not been "
              "waited for",
              verb(a->kind), a->name, a->offset);
    if (cell->flags & CELL_BARRIER)
        fault(a->m, a->at, "%s of shared %s, byte %zu, which is a transaction barrier",
              verb(a->kind), a->name, a->offset);
    const bool unwritten = a->kind != SIM_WRITE && !(cell->flags & CELL_WRITTEN);
    if (unwritten && a->shared && a->kind == SIM_READ)
        doubt(a->m, a->at, a->name, a->offset);
    else if (unwritten)
        fault(a->m, a->at, "%s of %s%s, byte %zu, which nobody has written", verb(a->kind),
              a->shared ? "shared " : "", a->name, a->offset);
    const bool both_atomic = a->kind == SIM_ATOMIC && cell->flags & CELL_ATOMIC;
    if (!both_atomic && !happened_before(a->m, a->t, &cell->write))
        report_race(a, &cell->write, "written");
    if (a->kind == SIM_READ) {
        note_read(a, cell);
        return;
    }
    for (int i = 0; i < CELL_READERS; i++)
        if (!happened_before(a->m, a->t, &cell->read[i])) report_race(a, &cell->read[i], "read");
    cell->write = (Touch){a->t->id, a->t->epoch, a->at};
    cell->flags =
        (cell->flags & CELL_WRITABLE) | CELL_WRITTEN | (a->kind == SIM_ATOMIC ? CELL_ATOMIC : 0);
}

/* From granule `first` to before `end`. */
static void check_cells(Access *a, Shadow *shadow, size_t first, size_t end, size_t granule)
{
    for (size_t at = first, granules; at < end; at += granules) {
        check_cell(a, shadow_grain(shadow, at, end, &granules));
        a->offset += granules * granule;
    }
    shadow_join(shadow, first, end);
}

static int order_variables(const void *left, const void *right)
{
    const SharedVariable *a = *(const SharedVariable *const *)left,
                         *b = *(const SharedVariable *const *)right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

bool list_variables(Machine *m)
{
    const SimObject *o = m->object;
    m->variable_count = 0;
    m->variables = calloc((size_t)o->shared_count + 1, sizeof *m->variables);
    if (!m->variables) return false;
    for (int i = 0; i < o->shared_count; i++)
        if (!o->shared[i].kernel || !strcmp(o->shared[i].kernel, m->launch->kernel))
            m->variables[m->variable_count++] = &o->shared[i];
    qsort(m->variables, (size_t)m->variable_count, sizeof *m->variables, order_variables);
    return true;
}

/* The variable at or before a place in shared memory, of those that the kernel can mean.
 */
static const SharedVariable *find_shared(const Machine *m, size_t offset)
{
    int below = 0, above = m->variable_count;
    while (below < above) {
        const int middle = (below + above) / 2;
        if (m->variables[middle]->offset <= offset)
            below = middle + 1;
        else
            above = middle;
    }
    return below ? m->variables[below - 1] : NULL;
}

size_t room_of(const Machine *m, const SharedVariable *v)
{
    return v->offset == m->dynamic_at ? (size_t)m->launch->smem_bytes : v->size;
}

static void check_shared(Access *a, Cta *cta, size_t place)
{
    const SharedVariable *v = find_shared(a->m, place);
    if (!v) fault(a->m, a->at, "%s of %zu bytes at no shared variable", verb(a->kind), a->size);
    const size_t bytes = room_of(a->m, v);
    a->shared = true;
    a->name = v->name;
    a->offset = place - v->offset;
    if (a->offset + a->size > bytes)
        fault(a->m, a->at, "out of bounds: %s of %zu bytes at byte %zu of shared %s (%zu bytes)",
              verb(a->kind), a->size, a->offset, v->name, bytes);
    check_cells(a, &cta->shadow, place, place + a->size, 1);
}

size_t shared_room(const Machine *m, size_t place)
{
    const SharedVariable *v = find_shared(m, place);
    return v && place - v->offset < v->size ? v->offset + v->size - place : 0;
}

void print_shared(const Machine *m, size_t place, char *text, size_t size)
{
    const SharedVariable *v = find_shared(m, place);
    if (v)
        snprintf(text, size, "byte %zu of shared %s", place - v->offset, v->name);
    else
        snprintf(text, size, "no shared variable");
}

static void check_region(Access *a, Region *r, size_t offset)
{
    const size_t element = (size_t)r->buffer.element;
    a->name = r->buffer.name;
    a->offset = offset;
    if (a->m->launch->overlaps && !a->t->waited)
        fault(a->m, a->at, "%s of %s, byte %zu, which the kernel before may still use",
              verb(a->kind), a->name, offset);
    if (r->buffer.kind == BUFFER_INPUT) {
        if (a->kind != SIM_READ)
            fault(a->m, a->at, "%s of %s, byte %zu, which is an input", verb(a->kind), a->name,
                  offset);
        return;
    }
    const size_t first = offset / element, last = (offset + a->size - 1) / element;
    for (size_t i = first, alike; r->holes && a->kind != SIM_READ && i <= last; i += alike)
        if (!(shadow_look(&r->shadow, i, &alike)->flags & CELL_WRITABLE))
            fault(a->m, a->at, "%s of %s, byte %zu, between its rows", verb(a->kind), a->name,
                  i * element);
    check_cells(a, &r->shadow, first, last + 1, element);
}

/* The buffer that an address is in or, out of bounds, most likely was meant to be in. */
static Region *find_region(Machine *m, uintptr_t address, size_t size, bool *inside)
{
    Region *near = NULL;
    uintptr_t least = UINTPTR_MAX;
    for (int i = 0; i < m->region_count; i++) {
        Region *r = &m->regions[i];
        const uintptr_t base = (uintptr_t)r->base;
        if (address >= base && address + size <= base + r->bytes) {
            *inside = true;
            return r;
        }
        const uintptr_t gap = address < base ? base - address : address - base;
        if (gap < least) near = r, least = gap;
    }
    *inside = false;
    return near;
}

_Noreturn static void report_outside(const Access *a, uintptr_t address, const Region *near)
{
    if (address - (uintptr_t)a->m->stacks < a->m->stacks_size)
        fault(a->m, a->at, "%s of %zu bytes of another thread's local memory", verb(a->kind),
              a->size);
    if (!near) fault(a->m, a->at, "%s of %zu bytes at no buffer", verb(a->kind), a->size);
    const int64_t offset = (int64_t)(address - (uintptr_t)near->base);
    fault(a->m, a->at, "out of bounds: %s of %zu bytes at byte %lld of %s (%zu bytes)",
          verb(a->kind), a->size, (long long)offset, near->buffer.name, near->bytes);
}

static void check_alignment(const Access *a, uintptr_t address, int aligned)
{
    if (aligned && address % a->size != 0)
        fault(a->m, a->at,
              "misaligned: %s of %zu bytes at an address that is %zu past a multiple "
              "of %zu",
              verb(a->kind), a->size, address % a->size, a->size);
}

/* Constants of the object may be read; the rest of it is the simulator's. */
static bool is_constant(const Access *a, uintptr_t address)
{
    return a->kind == SIM_READ && address >= a->m->object->begin && address < a->m->object->end;
}

/* The CTA of the cluster whose shared memory an address is in; NULL: none. */
static Cta *find_owner(const Access *a, uintptr_t address)
{
    Cta *own = a->t->cta;
    if (address - (uintptr_t)own->smem < a->m->smem_size) return own;
    for (int rank = 0; rank < a->m->launch->cluster; rank++) {
        Cta *cta = peer_of(own, rank);
        if (address - (uintptr_t)cta->smem < a->m->smem_size) return cta;
    }
    return NULL;
}

static void check_access(Access *a, uintptr_t address, int aligned)
{
    if (is_constant(a, address)) return;
    check_alignment(a, address, aligned);
    Cta *cta = find_owner(a, address);
    if (cta) {
        if (cta != a->t->cta) visit_peer(a->m, cta, a->at);
        check_shared(a, cta, address - (uintptr_t)cta->smem);
        return;
    }
    bool inside;
    Region *r = find_region(a->m, address, a->size, &inside);
    if (!inside) report_outside(a, address, r);
    check_region(a, r, address - (uintptr_t)r->base);
}

void touch_memory(void *machine, const void *address, size_t size, SimAccess kind, int aligned,
                  void *at)
{
    Machine *m = machine;
    if (random_below(m, m->patience) == 0) switch_away(m);
    Access a = {.m = m, .t = m->current, .kind = kind, .at = place_of(m, at), .size = size};
    m->quiet = kind == SIM_WRITE ? 0 : m->quiet + 1;
    m->steps++;
    m->last_at = a.at;
    check_access(&a, (uintptr_t)address, aligned);
}

/* ---- what a bulk copy reads: whole aligned blocks, so more than a row ---- */

/* The part of aligned blocks that is in a buffer; all of it where none is. */
static const char *clip(const Machine *m, const char *from, size_t *size)
{
    enum { BLOCK = 16 };
    for (int i = 0; i < m->region_count; i++) {
        const uintptr_t base = (uintptr_t)m->regions[i].base;
        const uintptr_t end = base + m->regions[i].bytes;
        const uintptr_t first = (uintptr_t)from, last = first + *size;
        if (first >= end || last <= base || first + BLOCK <= base || last >= end + BLOCK) continue;
        const uintptr_t low = first < base ? base : first, high = last > end ? end : last;
        *size = high - low;
        return from + (low - first);
    }
    return from;
}

void touch_blocks(Machine *m, const void *from, size_t size, void *at)
{
    const void *part = clip(m, from, &size);
    touch_memory(m, part, size, SIM_READ, 0, at);
}

void copy_blocks(const Machine *m, void *to, const void *from, size_t size)
{
    size_t inside = size;
    const char *part = clip(m, from, &inside);
    memset(to, 0xff, size);
    memcpy((char *)to + (part - (const char *)from), part, inside);
}

bool same_blocks(const Machine *m, const void *was, const void *from, size_t size)
{
    const char *part = clip(m, from, &size);
    return memcmp((const char *)was + (part - (const char *)from), part, size) == 0;
}

void note_source(Machine *m, const char *from, size_t size, Touch reader)
{
    bool inside;
    from = clip(m, from, &size);
    Region *r = find_region(m, (uintptr_t)from, size, &inside);
    if (!inside || r->buffer.kind == BUFFER_INPUT) return;
    const size_t offset = (size_t)(from - r->base), element = (size_t)r->buffer.element;
    const size_t end = (offset + size - 1) / element + 1;
    for (size_t i = offset / element, granules; i < end; i += granules)
        shadow_grain(&r->shadow, i, end, &granules)->read[random_below(m, CELL_READERS)] = reader;
}

void note_landing(Machine *m, const Copy *copy)
{
    Access a = {.m = m, .t = m->current, .kind = SIM_WRITE, .at = copy->at, .size = copy->size};
    check_shared(&a, a.t->cta, (size_t)(copy->to - a.t->cta->smem));
}
