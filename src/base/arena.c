/* base/arena.c: bump allocation in growing blocks, freed all at once.
 *
 * A large request gets a block of its own behind the current one, so a long list that doubles does
 * not waste the rest of a block that is still being filled. */
#include "base/arena.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 4 << 20 };

typedef struct Block Block;
struct Block {
    Block *next;
    size_t used, capacity;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

struct Arena {
    Block *blocks; /* the first one is being filled */
    size_t next_capacity;
    OutOfMemory *handler;
    void *handler_data;
    Budget *budget; /* NULL: none */
    int64_t bytes;  /* of all blocks */
};

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (arena) arena->next_capacity = FIRST_BLOCK;
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena) return;
    arena_set_budget(arena, NULL);
    for (Block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

void arena_on_out_of_memory(Arena *arena, OutOfMemory *handler, void *data)
{
    arena->handler = handler;
    arena->handler_data = data;
}

_Noreturn void arena_out_of_memory(Arena *arena)
{
    if (arena->handler) arena->handler(arena->handler_data);
    abort();
}

void arena_set_budget(Arena *arena, Budget *budget)
{
    if (arena->budget) arena->budget->used -= arena->bytes;
    if (budget) budget->used += arena->bytes;
    arena->budget = budget;
}

Budget *arena_budget(const Arena *arena)
{
    return arena->budget;
}

Arena *arena_scratch(Arena *arena)
{
    Arena *scratch = arena_new();
    if (!scratch) arena_out_of_memory(arena);
    arena_on_out_of_memory(scratch, arena->handler, arena->handler_data);
    arena_set_budget(scratch, arena->budget);
    return scratch;
}

void arena_ask(Arena *arena)
{
    if (arena->budget && !budget_ask(arena->budget)) arena_out_of_memory(arena);
}

void arena_poll(Arena *arena)
{
    if (arena->budget && --arena->budget->countdown < 0) arena_ask(arena);
}

/* Counts a block before it is allocated. */
static void count_bytes(Arena *arena, size_t bytes)
{
    Budget *budget = arena->budget;
    arena->bytes += (int64_t)bytes;
    if (!budget) return;
    budget->used += (int64_t)bytes;
    if (budget->used <= budget->bytes) return;
    if (!budget->stopped) budget->stopped = STOPPED_BY_BYTES;
    arena_out_of_memory(arena);
}

static Block *new_block(Arena *arena, size_t capacity)
{
    count_bytes(arena, sizeof(Block) + capacity);
    Block *block = calloc(1, sizeof *block + capacity);
    if (!block) arena_out_of_memory(arena);
    block
        ->capacity = capacity;
    return block;
}

static void *alloc_large(Arena *arena, size_t bytes)
{
    Block *block = new_block(arena, bytes);
    block
        ->used = bytes;
    if (arena->blocks) {
        block
            ->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        arena->blocks = block;
    }
    return block->bytes;
}

static void open_block(Arena *arena)
{
    Block *block = new_block(arena, arena->next_capacity);
    block
        ->next = arena->blocks;
    arena->blocks = block;
    if (arena->next_capacity < LARGEST_BLOCK) arena->next_capacity *= 2;
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(Block) - ALIGNMENT) arena_out_of_memory(arena);
    arena_poll(arena);
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (bytes > arena->next_capacity / 4) return alloc_large(arena, bytes);
    if (!arena->blocks || arena->blocks->capacity - arena->blocks->used < bytes) open_block(arena);
    Block *block = arena->blocks;
    void *memory = block->bytes + block->used;
    block
        ->used += bytes;
    return memory;
}

char *arena_copy(Arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *arena_vformat(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    char *text = arena_alloc(arena, size);
    if (length > 0) vsnprintf(text, size, format, args);
    return text;
}

char *arena_format(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vformat(arena, format, args);
    va_end(args);
    return text;
}

void *list_grow(Arena *arena, void *data, int count, int *capacity, size_t item)
{
    if (count < *capacity) return data;
    if (*capacity > INT_MAX / 2) arena_out_of_memory(arena);
    *capacity = *capacity ? *capacity * 2 : 8;
    void *grown = arena_alloc(arena, (size_t)*capacity * item);
    if (count) memcpy(grown, data, (size_t)count * item);
    return grown;
}
