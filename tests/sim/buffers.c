/* buffers.c: the global memory of a machine: what the kernels may touch, poisoned first,
 * and at the end whether every element of the outputs was written. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

static bool is_dense(const SimBuffer *b)
{
    int64_t expected = 1;
    for (int i = b->rank - 1; i >= 0; i--) {
        if (b->sizes[i] != 1 && b->strides[i] != expected) return false;
        expected *= b->sizes[i];
    }
    return true;
}

/* The other sizes of such a tensor, and so its strides, may be as large as they like. */
static bool is_empty(const SimBuffer *b)
{
    for (int i = 0; i < b->rank; i++)
        if (b->sizes[i] == 0) return true;
    return false;
}

/* Elements from the first to the last, 0 if there are none. */
static int64_t extent_of(const SimBuffer *b)
{
    int64_t extent = 1;
    if (is_empty(b)) return 0;
    for (int i = 0; i < b->rank; i++) extent += (b->sizes[i] - 1) * llabs(b->strides[i]);
    return extent;
}

/* Of the first in memory, from the one that has index 0 in all axes; 0 or below. */
static int64_t lowest_offset(const SimBuffer *b)
{
    int64_t offset = 0;
    if (is_empty(b)) return 0;
    for (int i = 0; i < b->rank; i++)
        if (b->strides[i] < 0) offset += (b->sizes[i] - 1) * b->strides[i];
    return offset;
}

/* The offset in elements of the item-th element in row-major order; -1 past the last. */
static int64_t offset_of(const SimBuffer *b, int64_t item)
{
    int64_t offset = 0;
    for (int i = b->rank - 1; i >= 0; i--) {
        offset += item % b->sizes[i] * b->strides[i];
        item /= b->sizes[i];
    }
    return item ? -1 : offset;
}

static void poison(Region *r)
{
    int64_t at;
    if (!r->holes) {
        memset(r->base, 0xff, r->bytes);
        return;
    }
    for (int64_t i = 0; (at = offset_of(&r->buffer, i)) >= 0; i++) {
        size_t one;
        shadow_grain(&r->shadow, (size_t)at, (size_t)at + 1, &one)->flags = CELL_WRITABLE;
        memset(r->base + at * r->buffer.element, 0xff, (size_t)r->buffer.element);
    }
}

static bool overlaps(const Region *a, const Region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes &&
           (a->buffer.kind != BUFFER_INPUT || b->buffer.kind != BUFFER_INPUT);
}

static bool watch(Region *r, size_t elements)
{
    const size_t block =
        r->buffer.element < BLOCK_BYTES ? BLOCK_BYTES / (size_t)r->buffer.element : 1;
    const size_t blocks = (elements + block - 1) / block;
    void *memory = map_zeros(shadow_bytes(blocks, block));
    if (memory) r->shadow = shadow_in(memory, blocks, block);
    return memory != NULL;
}

static bool is_written(const Region *r, size_t element)
{
    size_t alike;
    return shadow_look(&r->shadow, element, &alike)->flags & CELL_WRITTEN;
}

bool machine_add_buffer(Machine *m, const SimBuffer *buffer)
{
    if (m->region_count == MAX_REGIONS)
        return complain_about(m, "more than %d buffers", MAX_REGIONS);
    Region *r = &m->regions[m->region_count];
    const int64_t extent = extent_of(buffer);
    *r = (Region){.buffer = *buffer, .base = buffer->data, .holes = !is_dense(buffer)};
    if (extent == 0) return true;
    r->base += lowest_offset(buffer) * buffer->element;
    r->bytes = (size_t)extent * (size_t)buffer->element;
    for (int i = 0; i < m->region_count; i++)
        if (overlaps(r, &m->regions[i]))
            return complain_about(m, "%s and %s overlap", buffer->name, m->regions[i].buffer.name);
    if (buffer->kind != BUFFER_INPUT) {
        if (!watch(r, (size_t)extent))
            return complain_about(m, "out of memory: nothing to watch %s with", buffer->name);
        poison(r);
    }
    m->region_count++;
    return true;
}

static bool check_written(Machine *m, const Region *r)
{
    int64_t at;
    for (int64_t i = 0; (at = offset_of(&r->buffer, i)) >= 0; i++)
        if (!is_written(r, (size_t)at))
            return complain_about(m, "element %lld of %s (in row-major order) is never written",
                                  (long long)i, r->buffer.name);
    return true;
}

double written_share(const Machine *m)
{
    enum { SAMPLES = 256 };
    int written = 0, asked = 0;
    for (int i = 0; i < m->region_count; i++) {
        const Region *r = &m->regions[i];
        const size_t elements = r->bytes / (size_t)r->buffer.element;
        if (r->buffer.kind != BUFFER_OUTPUT || elements < SAMPLES) continue;
        for (size_t k = 0; k < SAMPLES; k++) written += is_written(r, elements / SAMPLES * k);
        asked += SAMPLES;
    }
    return asked ? (double)written / asked : 0;
}

bool machine_finish(Machine *m)
{
    for (int i = 0; i < m->region_count && !m->failed; i++)
        if (m->regions[i].buffer.kind == BUFFER_OUTPUT) check_written(m, &m->regions[i]);
    return !m->failed;
}
