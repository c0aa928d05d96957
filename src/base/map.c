/* base/map.c: see base/map.h. Open addressing; the table is at most half full. */
#include "base/map.h"

#include <string.h>
#include <xxhash.h>

static MapEntry *map_slot(const Map *map, const void *key, size_t length)
{
    uint32_t at = (uint32_t)XXH3_64bits(key, length) & (map->capacity - 1);
    for (;; at = (at + 1) & (map->capacity - 1)) {
        MapEntry *entry = &map->entries[at];
        if (!entry->key || (entry->length == length && memcmp(entry->key, key, length) == 0))
            return entry;
    }
}

int map_find(const Map *map, const void *key, size_t length)
{
    const MapEntry *entry = map->capacity ? map_slot(map, key, length) : NULL;
    return entry && entry->key ? entry->value : -1;
}

void map_add(Arena *arena, Map *map, const void *key, size_t length, int value)
{
    if (map->count * 2 >= map->capacity) {
        Map old = *map;
        map->capacity = old.capacity ? old.capacity * 2 : 16;
        map->entries = NEW_ARRAY(arena, MapEntry, map->capacity);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.entries[i].key)
                *map_slot(map, old.entries[i].key, old.entries[i].length) = old.entries[i];
    }
    *map_slot(map, key, length) = (MapEntry){key, length, value};
    map->count++;
}

int name_find(const Map *map, const char *name)
{
    return map_find(map, name, strlen(name));
}

void name_add(Arena *arena, Map *map, const char *name, int value)
{
    map_add(arena, map, name, strlen(name), value);
}

const char *name_free(Arena *arena, Map *taken, const char *name)
{
    const char *free = name;
    if (name_find(taken, name) < 0) return name;
    int *number = &map_slot(taken, name, strlen(name))->value;
    if (*number < 2) *number = 2;
    for (; name_find(taken, free) >= 0; ++*number)
        free = arena_format(arena, "%s_%d", name, *number);
    return free;
}
