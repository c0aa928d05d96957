/* base/map.h: a hash map from bytes (names, memo keys) to small integers. */
#ifndef FUSEC_MAP_H
#define FUSEC_MAP_H

#include "base/arena.h"

#include <stdint.h>

typedef struct {
    const void *key;
    size_t length;
    int value;
} MapEntry;
typedef struct {
    MapEntry *entries;
    uint32_t capacity, count;
} Map;

int map_find(const Map *map, const void *key, size_t length); /* -1: absent */
/* The key must be absent; it is not copied. */
void map_add(Arena *arena, Map *map, const void *key, size_t length, int value);
int name_find(const Map *map, const char *name);
void name_add(Arena *arena, Map *map, const char *name, int value);
/* The name itself or, where it is in the map, the first of name_2, name_3, ... that is not. The
 * caller adds that one: the map's values are the numbers where the next search goes on. */
const char *name_free(Arena *arena, Map *taken, const char *name);

#endif
