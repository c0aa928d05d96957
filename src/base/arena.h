/* base/arena.h: one arena a compilation; everything in it is freed together, so src/ has no free().
 *
 * Memory comes zeroed and 16-byte aligned. Running out of memory calls the arena's handler,
 * which must not return (compile.c unwinds to its setjmp); without a handler it aborts. An arena
 * with a budget calls it, too, once that is used up or the caller gave up: budget->stopped says so.
 */
#ifndef FUSEC_ARENA_H
#define FUSEC_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/budget.h"

typedef struct Arena Arena;
typedef void OutOfMemory(void *data);

Arena *arena_new(void);        /* NULL when there is no memory at all */
void arena_free(Arena *arena); /* NULL allowed */
void arena_on_out_of_memory(Arena *arena, OutOfMemory *handler, void *data);
_Noreturn void arena_out_of_memory(Arena *arena); /* for memory that did not come from it */

/* What it allocates counts there until it is freed; NULL: nowhere. */
void arena_set_budget(Arena *arena, Budget *budget);
Budget *arena_budget(const Arena *arena); /* NULL: none */
/* A new arena for what can be dropped early, with the same handler and budget. Free it before the
 * other. */
Arena *arena_scratch(Arena *arena);
/* Asks at once whether to go on; does not return if not. */
void arena_ask(Arena *arena);
/* Asks now and then: for loops that do not allocate. */
void arena_poll(Arena *arena);

void *arena_alloc(Arena *arena, size_t bytes);
char *arena_copy(Arena *arena, const char *text, size_t length); /* NUL-terminated */
char *arena_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(Arena *arena, const char *format, va_list args);

#define NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define NEW_ARRAY(arena, T, count) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(count)))

/* A growable array in an arena:  LIST(Span) spans = {0};  *list_push(arena, &spans) = span; */
#define LIST(T)                                                                                    \
    struct {                                                                                       \
        T *data;                                                                                   \
        int count, capacity;                                                                       \
    }
#define list_push(arena, list)                                                                     \
    ((list)->data =                                                                                \
         list_grow((arena), (list)->data, (list)->count, &(list)->capacity, sizeof *(list)->data), \
     &(list)->data[(list)->count++])

void *list_grow(Arena *arena, void *data, int count, int *capacity, size_t item);

#endif
