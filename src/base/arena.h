/* base/arena.h: one arena for each compilation. Everything in it is freed together, so src/ has no
 * free().
 *
 * Memory is zeroed and 16-byte aligned. When memory runs out the arena calls its handler, which
 * must not return (compile.c unwinds to its setjmp); without a handler it aborts. An arena with a
 * budget also calls it once the budget is used up or the caller has cancelled: budget->stopped says
 * which. */
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

/* Its allocations count against the budget until they are freed; NULL: against none. */
void arena_set_budget(Arena *arena, Budget *budget);
Budget *arena_budget(const Arena *arena); /* NULL: none */
/* A new arena, with the same handler and budget, for what can be dropped early. Free it before the
 * other one. */
Arena *arena_scratch(Arena *arena);
/* Asks at once whether to continue; does not return if not. */
void arena_ask(Arena *arena);
/* The same from time to time, for loops that do not allocate. */
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
